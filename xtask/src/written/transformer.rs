//! The symbolic transformer as equations: `learner-transformer.tl`.

use std::borrow::Cow;
use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{Activation, Embedding, ModelConfig, NormPlace, Position};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::network::{Network, Noise, Site};
use tensor_logic::engine::Numbers;
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::notebook::Notebook;
use training::kernels::Dropout;
use training::{Layout, Loss, Refusal};

use super::Bound;

/// The program as it is shipped.
#[cfg(any(test, feature = "bench"))]
pub(crate) const TEXT: &str = include_str!("../../../crates/tensor-logic/programs/learner-transformer.tl");

/// The weights of the program, and what they are in `model.safetensors`; of a name with `*` one stands behind the
/// other for all layers.
const WEIGHTS: [(&str, &str); 21] = [
    ("Emb", "embed.weight"),
    ("WQ", "layers.*.attention.query.weight"),
    ("WK", "layers.*.attention.key.weight"),
    ("WV", "layers.*.attention.value.weight"),
    ("BQ", "layers.*.attention.query.bias"),
    ("BK", "layers.*.attention.key.bias"),
    ("BV", "layers.*.attention.value.bias"),
    ("WO", "layers.*.attention.output.weight"),
    ("BO", "layers.*.attention.output.bias"),
    ("G1", "layers.*.norm1.weight"),
    ("B1", "layers.*.norm1.bias"),
    ("WU", "layers.*.ffn.up.weight"),
    ("BU", "layers.*.ffn.up.bias"),
    ("WD", "layers.*.ffn.down.weight"),
    ("BD", "layers.*.ffn.down.bias"),
    ("G2", "layers.*.norm2.weight"),
    ("B2", "layers.*.norm2.bias"),
    ("GF", "norm.weight"),
    ("BF", "norm.bias"),
    ("WH", "head.weight"),
    ("BH", "head.bias"),
];

/// The names of the weights in the program.
fn names() -> Vec<&'static str> {
    WEIGHTS.iter().map(|(name, _)| *name).collect()
}

/// The network that a program is.
pub(crate) struct Written {
    config: ModelConfig,
    layout: Layout,
    /// Of each weight of the program its parts in the flat buffer.
    places: Vec<Vec<Range<usize>>>,
    notebook: Notebook,
    engine: Fast,
    logits: Vec<f32>,
    /// The last batch that was differentiated.
    last: Option<(Batch, Bound)>,
}

impl Written {
    /// The network of a program, in the shape of a hand-written one.
    ///
    /// # Errors
    /// A shape that the program does not have.
    pub(crate) fn new(text: &str, config: ModelConfig, precision: Precision) -> Result<Self> {
        let layout = Network::layout(&Explicit::new(config.clone())?).clone();
        let problems = unlike(&config);
        if !problems.is_empty() {
            bail!("the program is not written for {}", problems.join(", "));
        }
        let range = |name: &str| {
            let found = layout.get(name).map(|parameter| parameter.range.clone());
            found.ok_or_else(|| anyhow!("no weight {name}"))
        };
        let place = |(_, name): &(&str, &str)| -> Result<Vec<Range<usize>>> {
            match name.split_once('*') {
                None => Ok(vec![range(name)?]),
                Some((before, behind)) => {
                    (0..config.n_layers).map(|layer| range(&format!("{before}{layer}{behind}"))).collect()
                }
            }
        };
        let places = WEIGHTS.iter().map(place).collect::<Result<_>>()?;
        let mut notebook = Notebook::new(text);
        for (name, size) in [
            ("Layers", config.n_layers),
            ("Heads", config.n_heads),
            ("Size", config.head_size()),
            ("Width", config.d_model),
            ("Hidden", config.d_ff),
            ("Symbols", config.vocab_size),
        ] {
            notebook.set(name, size as f64);
        }
        let engine = Fast::default().with_precision(precision);
        Ok(Self { config, layout, places, notebook, engine, logits: Vec::new(), last: None })
    }

    /// Gives the program data beside the batches.
    #[cfg(test)]
    pub(crate) fn data(&mut self, name: &str, array: tensor_logic::notebook::Array) {
        self.notebook.set(name, array);
        self.last = None;
    }

    /// Each weight of the program with the tensors of the hand-written model that stand in it.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> Vec<(&'static str, Vec<String>)> {
        let of = |range: &Range<usize>| {
            let found = self.layout.iter().find(|parameter| parameter.range == *range);
            found.map(|parameter| parameter.name.clone()).unwrap_or_default()
        };
        names().into_iter().zip(self.places.iter().map(|ranges| ranges.iter().map(of).collect())).collect()
    }

    /// Gives the program a batch.
    fn give(&mut self, batch: &Batch) -> Result<()> {
        if batch.longest() > self.config.max_len {
            bail!("a text of {} tokens is longer than max_len = {}", batch.longest(), self.config.max_len);
        }
        let sizes = [("Rows", batch.rows()), ("Texts", batch.sequences()), ("Longest", batch.longest())];
        for (name, size) in sizes {
            self.notebook.set(name, size as f64);
        }
        let at = (0..).zip(places(batch)).map(|(row, (text, place))| [row, text as i64, place as i64]);
        self.notebook.relation("At", at.collect::<Vec<[i64; 3]>>());
        let tuples = |symbols: &[u32]| -> Vec<[i64; 2]> {
            let all = (0..).zip(symbols).filter(|(_, symbol)| **symbol != u32::MAX);
            all.map(|(row, symbol)| [row, i64::from(*symbol)]).collect()
        };
        self.notebook.relation("Token", tuples(&batch.tokens));
        self.notebook.relation("Next", tuples(&batch.targets));
        Ok(())
    }

    /// The masks of an update, where there is dropout: of what belongs to a row [layer, row, width].
    fn masks(&self, batch: &Batch, noise: Noise) -> Vec<(&'static str, Vec<f64>)> {
        let (rate, layers, heads) = (self.config.dropout, self.config.n_layers, self.config.n_heads);
        let dropout = |site: Site| Dropout::new(rate, noise.seed, noise.update, site.number());
        if dropout(Site::Embedding).is_none() {
            return Vec::new();
        }
        let (width, longest) = (self.config.d_model, batch.longest());
        let fill = |to: &mut [f64], site: Dropout, row: usize| {
            let factors = site.factors(row as u64, to.len());
            to.iter_mut().zip(factors).for_each(|(to, factor)| *to = f64::from(factor));
        };
        let of = |sites: Vec<Site>| -> Vec<f64> {
            let mut mask = vec![1.0; sites.len() * batch.rows() * width];
            let mut slots = mask.chunks_exact_mut(width.max(1));
            for site in sites.into_iter().filter_map(dropout) {
                (batch.first_row..)
                    .zip(slots.by_ref().take(batch.rows()))
                    .for_each(|(row, to)| fill(to, site, row));
            }
            mask
        };
        let each = |site: fn(usize) -> Site| (0..layers).map(site).collect();
        // [layer, text, head, position, position read], 1 where no symbol stands.
        let mut pairs = vec![1.0; layers * heads * batch.sequences() * longest * longest];
        for (layer, site) in (0..layers).filter_map(|n| dropout(Site::AttentionWeights(n))).enumerate() {
            for ((text, place), row) in places(batch).zip(batch.first_row..) {
                for head in 0..heads {
                    let block = (layer * batch.sequences() + text) * heads + head;
                    let from = (block * longest + place) * longest;
                    fill(pairs.get_mut(from..from + longest).unwrap_or_default(), site, row * heads + head);
                }
            }
        }
        vec![
            ("KeepInput", of(vec![Site::Embedding])),
            ("KeepWeight", pairs),
            ("KeepAttn", of(each(Site::AttentionOutput))),
            ("KeepDown", of(each(Site::FeedForward))),
        ]
    }

    /// Every weight of the program, from a flat buffer.
    fn weights(&self, theta: &[f32]) -> Vec<(&'static str, Vec<f64>)> {
        let of = |ranges: &Vec<Range<usize>>| -> Vec<f64> {
            let mut all = Vec::with_capacity(ranges.iter().map(Range::len).sum());
            for part in ranges.iter().filter_map(|range| theta.get(range.clone())) {
                all.extend(part.iter().map(|x| f64::from(*x)));
            }
            all
        };
        names().into_iter().zip(self.places.iter().map(of)).collect()
    }

    /// The loss in nats per token, and its gradient by every weight in the order of [`names`].
    ///
    /// # Errors
    /// The refusals of the program.
    pub(crate) fn slopes(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        noise: Noise,
    ) -> Result<(f64, Vec<Numbers>)> {
        if noise.smoothing != 0.0 {
            bail!("the program has no label smoothing, and label_smoothing = {}", noise.smoothing);
        }
        let bound = match self.last.take() {
            Some((last, bound)) if last == *batch => bound,
            _ => {
                self.engine.forget_programs();
                self.give(batch)?;
                Bound::with_gradients(&mut self.notebook, "Loss", &names())?
            }
        };
        let mut given = self.weights(theta);
        given.extend(self.masks(batch, noise));
        let values = bound.values(&mut self.engine, given);
        self.last = Some((batch.clone(), bound));
        let mut values = values?.into_iter();
        let loss = values.next().and_then(|loss| loss.first()).unwrap_or(f64::NAN);
        Ok((loss, values.collect()))
    }
}

/// Text and position of every row.
fn places(batch: &Batch) -> impl Iterator<Item = (usize, usize)> {
    batch.ranges().enumerate().flat_map(|(text, rows)| (0..rows.len()).map(move |place| (text, place)))
}

/// What of a shape the program does not say.
fn unlike(config: &ModelConfig) -> Vec<String> {
    let mut problems = Vec::new();
    let mut demand = |holds: bool, what: &str| {
        if !holds {
            problems.push(what.to_owned());
        }
    };
    demand(config.norm == NormPlace::Post, "norm = \"pre\"");
    demand(config.final_norm, "final_norm = false");
    demand(config.activation == Activation::Gelu, "another activation than \"gelu\"");
    demand(config.position == Position::Sinusoidal, "other positions than \"sinusoidal\"");
    demand(config.embedding == Embedding::Learned, "another embedding than \"learned\"");
    demand(config.scale_embedding, "scale_embedding = false");
    demand(!config.tie_output, "tie_output = true");
    problems
}

fn refused(error: &anyhow::Error) -> Refusal {
    Refusal::Learner(format!("{error:#}"))
}

impl Network for Written {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn logits(&mut self, theta: &[f32], batch: &Batch) -> training::Result<&[f32]> {
        let work = |own: &mut Self| -> Result<Vec<f32>> {
            own.last = None;
            own.engine.forget_programs();
            own.give(batch)?;
            let bound = Bound::new(&mut own.notebook, &["Logit"])?;
            let given = own.weights(theta);
            let values = bound.values(&mut own.engine, given)?;
            // [row, symbol]
            Ok(values.first().map(|values| singles(values).into_owned()).unwrap_or_default())
        };
        self.logits = work(self).map_err(|error| refused(&error))?;
        Ok(&self.logits)
    }

    fn gradient(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        noise: Noise,
        gradient: &mut [f32],
    ) -> training::Result<Loss> {
        let (loss, slopes) = self.slopes(theta, batch, noise).map_err(|error| refused(&error))?;
        let targets = batch.targets.iter().filter(|target| **target != u32::MAX).count();
        // The program's loss is a mean, the trainer's a sum.
        let scale = targets as f32;
        for (ranges, slopes) in self.places.iter().zip(&slopes) {
            let slopes = singles(slopes);
            let mut rest = &*slopes;
            for range in ranges {
                let (here, behind) = rest.split_at(range.len().min(rest.len()));
                rest = behind;
                let to = gradient.get_mut(range.clone()).unwrap_or_default();
                to.iter_mut().zip(here).for_each(|(to, slope)| *to += scale * slope);
            }
        }
        Ok(Loss { sum: loss * targets as f64, targets: targets as u64 })
    }
}

/// The numbers in 32 bits.
fn singles(numbers: &Numbers) -> Cow<'_, [f32]> {
    match numbers {
        Numbers::Single(values) => Cow::Borrowed(values),
        Numbers::Double(values) => values.iter().map(|x| *x as f32).collect(),
    }
}
