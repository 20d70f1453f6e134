//! The explicit engine on a device: the passes of `explicit.rs`, with parameters, gradient and activations there.
//!
//! What goes over in an update is its tokens, and the loss and a norm come back. Attention stores no scores (the kernels
//! compute them once more on the way back), so nothing grows with the square of a length but the numbers of relations. A test compares every logit and
//! every gradient of every variant with `explicit.rs`, dropout included.

mod decode;

use device_kernels::{Attention, Buffer, Groups, Machine, Masks, Part, Products, Related, Rows, Step};
use fol::notation::{Code, NodeRelation};
use training::kernels::{Activation, Dropout, rotary_table};
use training::optimiser::{Moments, Update};
use training::{Decay, Layout, Loss, Optimiser, Refusal, Resident, Result};

use crate::batch::Batch;
use crate::config::{AttentionMask, ModelConfig, NormPlace, Position, Structured};
use crate::embedding::{GlyphPlan, glyph_cells};
use crate::explicit::{alibi_slopes, sinusoids};
use crate::network::{Network, Noise, Site};
use crate::places::{Block, EmbeddingPlaces, Linear, Norm, Places};
use crate::structure;
use crate::tree::{self, DEPTH, Paths};

pub use decode::{DecoderOnDevice, Path};

/// The pictures of the symbols and what a convolution reads, on the device.
struct Glyphs {
    /// [663, 625]
    cells: Buffer,
    convolved: Option<Convolutions>,
}

/// The plan of the two convolutions.
struct Convolutions {
    /// [663·169, 9]
    patches: Buffer,
    /// The entries of the second patches, and which patches an entry is in.
    second: Buffer,
    back_starts: Buffer,
    back_members: Buffer,
    /// Channels first, and back.
    first: Buffer,
    last: Buffer,
}

/// What the embedding of a pass keeps.
struct Convolved {
    slope1: Buffer,
    patches2: Buffer,
    slope2: Buffer,
    features: Buffer,
}

/// x̂ and 1/deviation of a norm.
struct KeptNorm {
    normal: Buffer,
    inverse: Buffer,
}

/// What one layer keeps for the way back.
struct KeptLayer {
    attention_in: Buffer,
    qkv: Buffer,
    sums: Buffer,
    context: Buffer,
    ffn_in: Buffer,
    hidden: Buffer,
    slope: Buffer,
    norm1: KeptNorm,
    norm2: KeptNorm,
}

/// The rows of a pass over there.
struct There {
    tokens: Buffer,
    places: Option<Buffer>,
    /// Of tree positions: where the entries of each row begin, and the entries.
    paths: Option<(Buffer, Buffer)>,
    /// What rows are to each other, where attention knows of the tree.
    relations: Option<Buffer>,
}

/// What a pass is: how many rows, their masks, and how a layer's queries find keys and values.
struct Pass<'a> {
    rows: usize,
    noise: Option<Noise>,
    /// The number of the first row in the whole batch.
    first_row: usize,
    /// Of a layer from qkv to context, and the logarithms of sums that the way back wants.
    attend: &'a Attend<'a>,
}

type Attend<'a> = dyn Fn(usize, &Buffer, &Buffer, &Buffer) -> Result<()> + 'a;

/// What a pass over a batch keeps.
struct Kept {
    there: There,
    tiles: Buffer,
    convolved: Option<Convolved>,
    through: Through,
}

/// What the layers keep, and the logits.
struct Through {
    layers: Vec<KeptLayer>,
    norm: Option<KeptNorm>,
    last: Buffer,
    logits: Buffer,
}

/// The parameters of a run that lie on the device.
struct State {
    theta: Buffer,
    m: Buffer,
    v: Buffer,
    ema: Option<Buffer>,
    gradient: Buffer,
    /// Gradients that were put aside, and room for more of them.
    aside: Vec<Buffer>,
    spare: Vec<Buffer>,
    /// The losses of the rows of each gradient since the last measure.
    losses: Vec<Buffer>,
}

/// The model on a device.
pub struct OnDevice {
    machine: Box<dyn Machine>,
    config: ModelConfig,
    code: Code,
    layout: Layout,
    places: Places,
    /// The sinusoid table or the rotary one.
    table: Option<Buffer>,
    slopes: Option<Buffer>,
    glyphs: Option<Glyphs>,
    /// What the products of a training pass are made of.
    products: Products,
    state: Option<State>,
    /// Weights that were shown last, and their copy there: an evaluation shows the same for all its batches.
    shown: Option<(Vec<f32>, Buffer)>,
    logits: Vec<f32>,
}

impl std::fmt::Debug for OnDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnDevice")
            .field("device", &self.machine.name())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn failed(refusal: device_kernels::Refusal) -> Refusal {
    Refusal::Device(refusal.to_string())
}

/// Refuses what has no room in one buffer.
fn fits(machine: &dyn Machine, numbers: usize, what: impl FnOnce() -> String) -> Result<()> {
    let (bytes, largest) = (numbers * size_of::<f32>(), machine.largest());
    if bytes <= largest {
        return Ok(());
    }
    let (name, what) = (machine.name(), what());
    Err(Refusal::Device(format!(
        "device `{name}` takes {largest} bytes in one buffer at most, and {what} want {bytes}"
    )))
}

fn numbers(places: &[usize]) -> Vec<u32> {
    places.iter().map(|&p| p as u32).collect()
}

/// Relations as places: a device has no bytes.
fn wide(relations: &[u8]) -> Vec<u32> {
    relations.iter().map(|&relation| u32::from(relation)).collect()
}

impl OnDevice {
    /// The model over the tokens of a code, on a device that was opened.
    ///
    /// # Errors
    /// A shape that is none, or a code that tree positions do not read.
    pub fn new(config: ModelConfig, code: &Code, machine: Box<dyn Machine>) -> Result<Self> {
        config.check()?;
        tree::check(&config, code)?;
        if config.attention_mask != AttentionMask::Causal {
            return Err(Refusal::Setting(
                "attention_mask = \"prefix\": attention on a device is causal; the engine of the cpu reads premises both ways".to_owned(),
            ));
        }
        let (layout, places) = Places::new(&config);
        fits(&*machine, layout.len(), || "the parameters".to_owned())?;
        let table = match config.position {
            Position::Sinusoidal => Some(sinusoids(config.max_len, config.d_model)),
            Position::Tree => Some(sinusoids(config.max_len + 1, config.d_model)),
            Position::Rotary => Some(rotary_table(config.max_len, config.head_size())),
            Position::Learned | Position::Alibi | Position::None => None,
        };
        let table = table.map(|table| machine.upload(&table));
        let slopes =
            (config.position == Position::Alibi).then(|| machine.upload(&alibi_slopes(config.n_heads)));
        let glyphs = match &places.embedding {
            EmbeddingPlaces::Table(_) => None,
            EmbeddingPlaces::GlyphLinear(_) => {
                Some(Glyphs { cells: machine.upload(&glyph_cells()), convolved: None })
            }
            EmbeddingPlaces::GlyphCnn(_) => {
                let plan = GlyphPlan::new();
                let convolved = Convolutions {
                    patches: machine.upload(&plan.patches),
                    second: machine.upload_places(&plan.second),
                    back_starts: machine.upload_places(&plan.back_starts),
                    back_members: machine.upload_places(&plan.back_members),
                    first: machine.upload_places(&plan.first),
                    last: machine.upload_places(&plan.last),
                };
                Some(Glyphs { cells: machine.upload(&[]), convolved: Some(convolved) })
            }
        };
        let code = code.clone();
        let (state, shown, logits, products) = (None, None, Vec::new(), Products::Single);
        Ok(Self {
            machine,
            config,
            code,
            layout,
            places,
            table,
            slopes,
            glyphs,
            products,
            state,
            shown,
            logits,
        })
    }

    /// Makes the products of training passes of other numbers; what judges stays f32.
    ///
    /// # Errors
    /// The device does not make them.
    pub fn with_products(mut self, products: Products) -> Result<Self> {
        self.machine.has(products).map_err(failed)?;
        self.products = products;
        Ok(self)
    }

    /// The shape.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn check(&self, batch: &Batch) -> Result<()> {
        let ModelConfig { vocab_size, d_model, d_ff, .. } = self.config;
        let known = self.config.structure != Structured::None;
        let of_relations = if known { 2 * self.config.n_heads * NodeRelation::COUNT } else { 0 };
        let (rows, widest) = (batch.rows(), vocab_size.max(3 * d_model).max(d_ff).max(of_relations));
        fits(&*self.machine, rows * widest, || {
            format!("a batch of {rows} rows of {widest} (a smaller `batch`, or `accumulate`, helps)")
        })?;
        let pairs: usize = batch.ranges().map(|rows| rows.len().pow(2)).sum();
        fits(&*self.machine, if known { pairs } else { 0 }, || {
            format!("the relations of {pairs} pairs of rows")
        })?;
        let longest = batch.longest();
        if longest > self.config.max_len {
            let max = self.config.max_len;
            return Err(Refusal::Learner(format!(
                "a sequence of {longest} tokens is longer than max_len = {max}"
            )));
        }
        match batch.tokens.iter().find(|&&t| t as usize >= self.config.vocab_size) {
            Some(t) => Err(Refusal::Learner(format!(
                "token {t} is outside the vocabulary of {}",
                self.config.vocab_size
            ))),
            None => Ok(()),
        }
    }

    /// The weights there: those that were shown last, if they are the same.
    fn show(&mut self, theta: &[f32]) -> Result<Buffer> {
        if theta.len() != self.layout.len() {
            return Err(Refusal::Learner("parameters of another model".to_owned()));
        }
        if let Some((shown, there)) = &self.shown
            && shown == theta
        {
            return Ok(there.clone());
        }
        let there = self.machine.upload(theta);
        self.shown = Some((theta.to_vec(), there.clone()));
        Ok(there)
    }

    fn masks(&self, noise: Option<Noise>, site: Site, first_row: usize) -> Masks {
        let dropout = noise.and_then(|n| Dropout::new(self.config.dropout, n.seed, n.update, site.number()));
        Masks { dropout, first_row }
    }

    /// What a layer's attention has of the relations whose numbers are there.
    fn related<'a>(
        &self,
        theta: &'a Buffer,
        numbers: Option<&'a Buffer>,
        layer: usize,
    ) -> Option<Related<'a>> {
        let (numbers, block) = numbers.zip(self.places.layers.get(layer))?;
        let tables = block.relations.clone().map(|range| range.start);
        let hidden = structure::hidden(&self.config);
        Some(Related { numbers, count: NodeRelation::COUNT, theta, tables, hidden })
    }

    fn attention_form<'a>(
        &'a self,
        tiles: &'a Buffer,
        relations: Option<Related<'a>>,
        layer: usize,
        batch: &Batch,
        noise: Option<Noise>,
    ) -> Attention<'a> {
        Attention {
            heads: self.config.n_heads,
            size: self.config.head_size(),
            rows: batch.rows(),
            slopes: self.slopes.as_ref(),
            masks: self.masks(noise, Site::AttentionWeights(layer), batch.first_row),
            tiles,
            relations,
        }
    }

    fn send(&self, batch: &Batch) -> There {
        let m = &*self.machine;
        let tree = self.config.position == Position::Tree;
        let paths = tree.then(|| Paths::of(&self.code, batch));
        let places = match (&self.config.position, &paths) {
            (_, Some(paths)) => Some(m.upload_places(&numbers(&paths.inside))),
            (Position::Sinusoidal | Position::Learned | Position::Rotary, _) => {
                Some(m.upload_places(&numbers(&batch.positions())))
            }
            _ => None,
        };
        let paths = paths.map(|paths| self.send_paths(paths.rows().map(|row| row.iter().copied())));
        let known = self.config.structure != Structured::None;
        let relations = known.then(|| m.upload_places(&wide(&structure::numbers(&self.code, batch))));
        There { tokens: m.upload_places(&batch.tokens), places, paths, relations }
    }

    /// Where the entries of each row begin, and the entries.
    fn send_paths(&self, rows: impl Iterator<Item = impl Iterator<Item = usize>>) -> (Buffer, Buffer) {
        let (mut starts, mut entries) = (vec![0], Vec::new());
        for row in rows {
            entries.extend(row.map(|entry| entry as u32));
            starts.push(entries.len() as u32);
        }
        (self.machine.upload_places(&starts), self.machine.upload_places(&entries))
    }

    fn norm_forward(&self, theta: &Buffer, norm: &Norm, x: &Buffer, y: &Buffer, shape: Rows) -> KeptNorm {
        let kept = KeptNorm { normal: self.machine.room(x.len()), inverse: self.machine.room(shape.rows) };
        self.machine.norm(
            x,
            theta,
            norm.weight.start,
            norm.bias.start,
            &kept.normal,
            &kept.inverse,
            y,
            shape,
        );
        kept
    }

    fn norm_backward(
        &self,
        theta: &Buffer,
        norm: &Norm,
        dy: &Buffer,
        kept: &KeptNorm,
        gradient: &Buffer,
        shape: Rows,
    ) {
        let (weight, bias) = (norm.weight.start, norm.bias.start);
        self.machine.norm_backward(theta, weight, bias, dy, &kept.normal, &kept.inverse, gradient, shape);
    }

    fn apply(&self, theta: &Buffer, map: &Linear, x: &Buffer, y: &Buffer, shape: Rows) {
        self.machine.linear(x, theta, map.weight.start, map.bias.start, y, shape, map.bias.len());
    }

    fn weights_backward(&self, map: &Linear, dy: &Buffer, x: &Buffer, gradient: &Buffer, shape: Rows) {
        let (weight, bias) = (map.weight.start, map.bias.start);
        self.machine.linear_backward_weights(dy, x, gradient, weight, bias, shape, map.bias.len());
    }

    fn input_backward(
        &self,
        theta: &Buffer,
        map: &Linear,
        dy: &Buffer,
        dx: &Buffer,
        shape: Rows,
        accumulate: bool,
    ) {
        let out = map.bias.len();
        self.machine.linear_backward_input(dy, theta, map.weight.start, dx, shape, out, accumulate);
    }

    /// The table of symbol vectors where it is computed, [663, d].
    fn vectors(&self, theta: &Buffer) -> (Option<Buffer>, Option<Convolved>) {
        const SYMBOLS: usize = fol::symbol::VOCABULARY;
        let m = &*self.machine;
        match (&self.places.embedding, &self.glyphs) {
            (EmbeddingPlaces::GlyphLinear(map), Some(glyphs)) => {
                let vectors = m.room(SYMBOLS * map.bias.len());
                self.apply(theta, map, &glyphs.cells, &vectors, Rows { rows: SYMBOLS, width: 625 });
                (Some(vectors), None)
            }
            (
                EmbeddingPlaces::GlyphCnn([first, second, last]),
                Some(Glyphs { convolved: Some(plan), .. }),
            ) => {
                let convolve = |map: &Linear, patches: &Buffer, shape: Rows| {
                    let (y, slope) = (m.room(shape.rows * 16), m.room(shape.rows * 16));
                    self.apply(theta, map, patches, &y, shape);
                    m.activate(Activation::Relu, &y, &slope);
                    (y, slope)
                };
                let (y, slope1) = convolve(first, &plan.patches, Rows { rows: SYMBOLS * 169, width: 9 });
                let patches2 = m.room(plan.second.len());
                m.gather(&y, &plan.second, &patches2);
                let (y, slope2) = convolve(second, &patches2, Rows { rows: SYMBOLS * 49, width: 144 });
                let features = m.room(SYMBOLS * 784);
                m.gather(&y, &plan.first, &features);
                let vectors = m.room(SYMBOLS * last.bias.len());
                self.apply(theta, last, &features, &vectors, Rows { rows: SYMBOLS, width: 784 });
                (Some(vectors), Some(Convolved { slope1, patches2, slope2, features }))
            }
            _ => (None, None),
        }
    }

    fn vectors_backward(&self, theta: &Buffer, dvectors: &Buffer, kept: &Kept, gradient: &Buffer) {
        const SYMBOLS: usize = fol::symbol::VOCABULARY;
        let m = &*self.machine;
        match (&self.places.embedding, &self.glyphs, &kept.convolved) {
            (EmbeddingPlaces::GlyphLinear(map), Some(glyphs), _) => {
                let shape = Rows { rows: SYMBOLS, width: 625 };
                self.weights_backward(map, dvectors, &glyphs.cells, gradient, shape);
            }
            (
                EmbeddingPlaces::GlyphCnn([first, second, last]),
                Some(Glyphs { convolved: Some(plan), .. }),
                Some(convolved),
            ) => {
                let shape = Rows { rows: SYMBOLS, width: 784 };
                self.weights_backward(last, dvectors, &convolved.features, gradient, shape);
                let dfeatures = m.room(SYMBOLS * 784);
                self.input_backward(theta, last, dvectors, &dfeatures, shape, false);
                let dy = m.room(dfeatures.len());
                m.gather(&dfeatures, &plan.last, &dy);
                m.multiply(&dy, &convolved.slope2);
                let shape = Rows { rows: SYMBOLS * 49, width: 144 };
                self.weights_backward(second, &dy, &convolved.patches2, gradient, shape);
                let dpatches = m.room(convolved.patches2.len());
                self.input_backward(theta, second, &dy, &dpatches, shape, false);
                let dy = m.room(SYMBOLS * 169 * 16);
                m.gather_sum(&dpatches, &plan.back_starts, &plan.back_members, &dy);
                m.multiply(&dy, &convolved.slope1);
                let shape = Rows { rows: SYMBOLS * 169, width: 9 };
                self.weights_backward(first, &dy, &plan.patches, gradient, shape);
            }
            _ => {}
        }
    }

    fn head_weight(&self) -> usize {
        match (&self.places.head_weight, &self.places.embedding) {
            (Some(range), _) | (None, EmbeddingPlaces::Table(range)) => range.start,
            // `ModelConfig::check` refuses a tied head with a glyph embedding.
            (None, _) => 0,
        }
    }

    fn forward(&self, theta: &Buffer, batch: &Batch, noise: Option<Noise>) -> Result<Kept> {
        let m = &*self.machine;
        let (there, tiles) = (self.send(batch), m.tiles(&batch.starts));
        let (vectors, convolved) = self.vectors(theta);
        let attend = |n: usize, qkv: &Buffer, context: &Buffer, sums: &Buffer| {
            self.turn(qkv, &there, false);
            let relations = self.related(theta, there.relations.as_ref(), n);
            let form = self.attention_form(&tiles, relations, n, batch, noise);
            m.attention(form, qkv, context, sums).map_err(failed)
        };
        let pass = Pass { rows: batch.rows(), noise, first_row: batch.first_row, attend: &attend };
        let through = self.through(theta, vectors.as_ref(), &there, &pass)?;
        Ok(Kept { there, tiles, convolved, through })
    }

    /// From tokens to logits; `vectors` are those of the symbols where no parameter has them.
    fn through(
        &self,
        theta: &Buffer,
        vectors: Option<&Buffer>,
        there: &There,
        pass: &Pass<'_>,
    ) -> Result<Through> {
        let m = &*self.machine;
        let (rows, d) = (pass.rows, self.config.d_model);
        let shape = Rows { rows, width: d };
        let h = m.room(rows * d);
        // h = dropout(scale·E[token] + P[position])
        let own = match &self.places.embedding {
            EmbeddingPlaces::Table(range) => Part { of: theta, at: range.start },
            _ => Part { of: vectors.unwrap_or(theta), at: 0 },
        };
        let positions = match (&self.places.position, self.config.position, &self.table) {
            (Some(range), ..) => Some(Part { of: theta, at: range.start }),
            (None, Position::Sinusoidal | Position::Tree, Some(table)) => Some(Part { of: table, at: 0 }),
            _ => None,
        };
        let positions = positions.zip(there.places.as_ref());
        m.embed(own, positions, &there.tokens, self.config.embedding_scale() as f32, &h, shape);
        if let (Some(range), Some((starts, entries))) = (&self.places.decay, &there.paths) {
            m.add_patterns(&h, Part { of: theta, at: range.start }, starts, entries, shape);
        }
        m.drop_in_place(self.masks(pass.noise, Site::Embedding, pass.first_row), &h, d);
        let mut layers = Vec::with_capacity(self.config.n_layers);
        let mut h = h;
        for (n, block) in self.places.layers.iter().enumerate() {
            let layer;
            (layer, h) = self.layer_forward(theta, pass, n, block, h)?;
            layers.push(layer);
        }
        let (norm, last) = match &self.places.norm {
            Some(norm) => {
                let y = m.room(rows * d);
                (Some(self.norm_forward(theta, norm, &h, &y, shape)), y)
            }
            None => (None, h),
        };
        let v = self.config.vocab_size;
        let logits = m.room(rows * v);
        m.linear(&last, theta, self.head_weight(), self.places.head_bias.start, &logits, shape, v);
        Ok(Through { layers, norm, last, logits })
    }

    fn layer_forward(
        &self,
        theta: &Buffer,
        pass: &Pass<'_>,
        n: usize,
        block: &Block,
        h: Buffer,
    ) -> Result<(KeptLayer, Buffer)> {
        let m = &*self.machine;
        let (rows, d, f) = (pass.rows, self.config.d_model, self.config.d_ff);
        let (shape, wide) = (Rows { rows, width: d }, Rows { rows, width: f });
        let pre = self.config.norm == NormPlace::Pre;
        let attention_in = m.room(rows * d);
        let before = if pre {
            Some(self.norm_forward(theta, &block.norm1, &h, &attention_in, shape))
        } else {
            m.copy(&attention_in, &h);
            None
        };
        let qkv = m.room(rows * 3 * d);
        self.apply(theta, &block.qkv, &attention_in, &qkv, shape);
        let (context, sums) = (m.room(rows * d), m.room(self.config.n_heads * rows));
        (pass.attend)(n, &qkv, &context, &sums)?;
        let branch = m.room(rows * d);
        self.apply(theta, &block.output, &context, &branch, shape);
        m.add_dropped(self.masks(pass.noise, Site::AttentionOutput(n), pass.first_row), &h, &branch, d);
        let ffn_in = m.room(rows * d);
        let (norm1, behind) = match before {
            Some(norm1) => (norm1, Some(self.norm_forward(theta, &block.norm2, &h, &ffn_in, shape))),
            None => {
                let norm1 = self.norm_forward(theta, &block.norm1, &h, &ffn_in, shape);
                m.copy(&h, &ffn_in);
                (norm1, None)
            }
        };
        let (hidden, slope) = (m.room(rows * f), m.room(rows * f));
        self.apply(theta, &block.up, &ffn_in, &hidden, shape);
        m.activate(self.config.activation.kernel(), &hidden, &slope);
        self.apply(theta, &block.down, &hidden, &branch, wide);
        m.add_dropped(self.masks(pass.noise, Site::FeedForward(n), pass.first_row), &h, &branch, d);
        let (norm2, h) = match behind {
            Some(norm2) => (norm2, h),
            None => (self.norm_forward(theta, &block.norm2, &h, &branch, shape), branch),
        };
        Ok((KeptLayer { attention_in, qkv, sums, context, ffn_in, hidden, slope, norm1, norm2 }, h))
    }

    fn turn(&self, qkv: &Buffer, there: &There, backward: bool) {
        if let (Position::Rotary, Some(table), Some(places)) =
            (self.config.position, &self.table, &there.places)
        {
            self.machine.rotary(table, qkv, places, self.config.n_heads, self.config.head_size(), backward);
        }
    }

    /// From the gradient of the logits, which stands in their place, to that of every parameter.
    fn backward(&self, theta: &Buffer, batch: &Batch, noise: Noise, kept: &Kept, gradient: &Buffer) {
        let m = &*self.machine;
        let (rows, d, v) = (batch.rows(), self.config.d_model, self.config.vocab_size);
        let shape = Rows { rows, width: d };
        let (head, through) = (self.head_weight(), &kept.through);
        m.linear_backward_weights(
            &through.logits,
            &through.last,
            gradient,
            head,
            self.places.head_bias.start,
            shape,
            v,
        );
        let h = m.room(rows * d);
        m.linear_backward_input(&through.logits, theta, head, &h, shape, v, false);
        if let (Some(norm), Some(kept)) = (&self.places.norm, &through.norm) {
            self.norm_backward(theta, norm, &h, kept, gradient, shape);
        }
        for (n, (block, layer)) in self.places.layers.iter().zip(&through.layers).enumerate().rev() {
            self.layer_backward(theta, batch, kept, noise, n, block, layer, &h, gradient);
        }
        m.drop_in_place(self.masks(Some(noise), Site::Embedding, batch.first_row), &h, d);
        if let Some(range) = &self.places.position {
            let groups = Groups::new(m, batch.positions().into_iter());
            m.add_groups(&h, &groups, Part { of: gradient, at: range.start }, 1.0, d);
        }
        if let (Some(range), Some((starts, entries))) = (&self.places.decay, &kept.there.paths) {
            m.patterns_backward(&h, starts, entries, Part { of: gradient, at: range.start }, DEPTH, shape);
        }
        let scale = self.config.embedding_scale() as f32;
        let groups = Groups::new(m, batch.tokens.iter().map(|&t| t as usize));
        if let EmbeddingPlaces::Table(range) = &self.places.embedding {
            m.add_groups(&h, &groups, Part { of: gradient, at: range.start }, scale, d);
        } else {
            let dvectors = m.room(v * d);
            m.fill(&dvectors, 0.0);
            m.add_groups(&h, &groups, Part { of: &dvectors, at: 0 }, scale, d);
            self.vectors_backward(theta, &dvectors, kept, gradient);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a layer of a pass")]
    fn layer_backward(
        &self,
        theta: &Buffer,
        batch: &Batch,
        kept: &Kept,
        noise: Noise,
        n: usize,
        block: &Block,
        layer: &KeptLayer,
        h: &Buffer,
        gradient: &Buffer,
    ) {
        let m = &*self.machine;
        let (rows, d, f) = (batch.rows(), self.config.d_model, self.config.d_ff);
        let (shape, wide) = (Rows { rows, width: d }, Rows { rows, width: f });
        let pre = self.config.norm == NormPlace::Pre;
        if !pre {
            self.norm_backward(theta, &block.norm2, h, &layer.norm2, gradient, shape);
        }
        let branch = m.room(rows * d);
        m.copy(&branch, h);
        m.drop_in_place(self.masks(Some(noise), Site::FeedForward(n), batch.first_row), &branch, d);
        self.weights_backward(&block.down, &branch, &layer.hidden, gradient, wide);
        let dhidden = m.room(rows * f);
        self.input_backward(theta, &block.down, &branch, &dhidden, wide, false);
        m.multiply(&dhidden, &layer.slope);
        self.weights_backward(&block.up, &dhidden, &layer.ffn_in, gradient, shape);
        if pre {
            self.input_backward(theta, &block.up, &dhidden, &branch, shape, false);
            self.norm_backward(theta, &block.norm2, &branch, &layer.norm2, gradient, shape);
            m.add(Part { of: h, at: 0 }, &branch);
        } else {
            self.input_backward(theta, &block.up, &dhidden, h, shape, true);
            self.norm_backward(theta, &block.norm1, h, &layer.norm1, gradient, shape);
        }
        m.copy(&branch, h);
        m.drop_in_place(self.masks(Some(noise), Site::AttentionOutput(n), batch.first_row), &branch, d);
        self.weights_backward(&block.output, &branch, &layer.context, gradient, shape);
        let dcontext = m.room(rows * d);
        self.input_backward(theta, &block.output, &branch, &dcontext, shape, false);
        let dqkv = m.room(rows * 3 * d);
        let relations = self.related(theta, kept.there.relations.as_ref(), n);
        let form = self.attention_form(&kept.tiles, relations, n, batch, Some(noise));
        m.attention_backward(form, &layer.qkv, &layer.context, &layer.sums, &dcontext, &dqkv, gradient);
        self.turn(&dqkv, &kept.there, true);
        self.weights_backward(&block.qkv, &dqkv, &layer.attention_in, gradient, shape);
        if pre {
            self.input_backward(theta, &block.qkv, &dqkv, &branch, shape, false);
            self.norm_backward(theta, &block.norm1, &branch, &layer.norm1, gradient, shape);
            m.add(Part { of: h, at: 0 }, &branch);
        } else {
            self.input_backward(theta, &block.qkv, &dqkv, h, shape, true);
        }
    }

    /// Forward and backward; the losses of the rows stay there.
    fn pass(&self, theta: &Buffer, batch: &Batch, noise: Noise, gradient: &Buffer) -> Result<Buffer> {
        let m = &*self.machine;
        m.multiply_in(self.products);
        let kept = self.forward(theta, batch, Some(noise))?;
        let losses = m.room(batch.rows());
        let shape = Rows { rows: batch.rows(), width: self.config.vocab_size };
        let targets = m.upload_places(&batch.targets);
        m.cross_entropy(&kept.through.logits, &targets, noise.smoothing as f32, &losses, shape, true);
        self.backward(theta, batch, noise, &kept, gradient);
        m.multiply_in(Products::Single);
        Ok(losses)
    }
}

/// The targets that count.
fn targets(batch: &Batch, width: usize) -> u64 {
    batch.targets.iter().filter(|&&t| (t as usize) < width).count() as u64
}

impl Network for OnDevice {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn logits(&mut self, theta: &[f32], batch: &Batch) -> Result<&[f32]> {
        self.check(batch)?;
        let theta = self.show(theta)?;
        self.machine.multiply_in(Products::Single);
        let kept = self.forward(&theta, batch, None)?;
        self.logits = self.machine.read(&kept.through.logits).map_err(failed)?;
        self.logits.truncate(batch.rows() * self.config.vocab_size);
        Ok(&self.logits)
    }

    fn gradient(&mut self, theta: &[f32], batch: &Batch, noise: Noise, gradient: &mut [f32]) -> Result<Loss> {
        self.check(batch)?;
        let count = targets(batch, self.config.vocab_size);
        if theta.is_empty()
            && let Some(state) = &self.state
        {
            let losses = self.pass(&state.theta, batch, noise, &state.gradient)?;
            if let Some(state) = &mut self.state {
                state.losses.push(losses);
            }
            return Ok(Loss { sum: 0.0, targets: count });
        }
        let theta = self.show(theta)?;
        let there = self.machine.upload(gradient);
        let losses = self.pass(&theta, batch, noise, &there)?;
        let total = self.machine.room(1);
        self.machine.sum(&losses, false, &total, 0);
        let sum = self.machine.read(&total).map_err(failed)?.first().copied().map_or(f64::NAN, f64::from);
        gradient.copy_from_slice(&self.machine.read(&there).map_err(failed)?);
        Ok(Loss { sum, targets: count })
    }

    fn resident(&mut self) -> Option<&mut dyn Resident> {
        Some(self)
    }
}

fn not_loaded() -> Refusal {
    Refusal::Learner("a device was asked for an update before it had parameters".to_owned())
}

fn nothing_aside() -> Refusal {
    Refusal::Learner("a device was asked for a sum of gradients before they were there".to_owned())
}

impl Resident for OnDevice {
    fn load(&mut self, theta: &[f32], moments: &Moments) -> Result<()> {
        let m = &*self.machine;
        let gradient = m.room(theta.len());
        m.fill(&gradient, 0.0);
        self.state = Some(State {
            theta: m.upload(theta),
            m: m.upload(&moments.m),
            v: m.upload(&moments.v),
            ema: moments.ema.as_ref().map(|ema| m.upload(ema)),
            gradient,
            aside: Vec::new(),
            spare: Vec::new(),
            losses: Vec::new(),
        });
        Ok(())
    }

    fn name(&self) -> &str {
        self.machine.name()
    }

    fn measure(&mut self) -> Result<(Vec<f64>, f64)> {
        let (m, state) = (&*self.machine, self.state.as_mut().ok_or_else(not_loaded)?);
        let losses = std::mem::take(&mut state.losses);
        let found = m.room(losses.len() + 1);
        m.sum(&state.gradient, true, &found, 0);
        for (i, losses) in losses.iter().enumerate() {
            m.sum(losses, false, &found, i + 1);
        }
        let found = m.read(&found).map_err(failed)?;
        let (square, sums) = found.split_first().ok_or_else(not_loaded)?;
        Ok((sums.iter().map(|&sum| f64::from(sum)).collect(), f64::from(*square).sqrt()))
    }

    fn update(&mut self, layout: &Layout, optimiser: &Optimiser, update: Update) -> Result<()> {
        let Optimiser::AdamW(adamw) = optimiser else {
            let name = self.machine.name();
            return Err(Refusal::Setting(format!("optimizer: device `{name}` has AdamW alone")));
        };
        let (m, state) = (&*self.machine, self.state.as_ref().ok_or_else(not_loaded)?);
        let Update { number: t, lr, factor } = update;
        let bias = |beta: f64| 1.0 - beta.powf(t as f64);
        let step = Step {
            clip: factor as f32,
            beta1: adamw.beta1 as f32,
            beta2: adamw.beta2 as f32,
            rate: (lr / bias(adamw.beta1)) as f32,
            correction: (1.0 / bias(adamw.beta2)) as f32,
            eps: adamw.eps as f32,
        };
        let parameters: Vec<_> = layout.iter().collect();
        // Neighbours that decay alike go together.
        for group in parameters.chunk_by(|a, b| a.decay == b.decay) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let decay = if first.decay == Decay::Yes { adamw.weight_decay } else { 0.0 };
            let (at, len) = (first.range.start, last.range.end - first.range.start);
            let keep = (1.0 - lr * decay) as f32;
            m.adamw(&state.theta, &state.m, &state.v, &state.gradient, step, keep, at, len);
        }
        if let Some(ema) = &state.ema {
            let beta = adamw.ema.min((1.0 + t as f64) / (10.0 + t as f64)) as f32;
            m.average(ema, &state.theta, beta);
        }
        Ok(())
    }

    fn clear(&mut self) {
        if let Some(state) = &self.state {
            self.machine.fill(&state.gradient, 0.0);
        }
    }

    fn gradient(&mut self) -> Result<Vec<f32>> {
        let state = self.state.as_ref().ok_or_else(not_loaded)?;
        self.machine.read(&state.gradient).map_err(failed)
    }

    fn push(&mut self) -> Result<()> {
        let (m, state) = (&*self.machine, self.state.as_mut().ok_or_else(not_loaded)?);
        let next = state.spare.pop().unwrap_or_else(|| m.room(state.gradient.len()));
        m.fill(&next, 0.0);
        state.aside.push(std::mem::replace(&mut state.gradient, next));
        Ok(())
    }

    fn add(&mut self) -> Result<()> {
        let state = self.state.as_mut().ok_or_else(not_loaded)?;
        let top = state.aside.pop().ok_or_else(nothing_aside)?;
        let below = state.aside.last().ok_or_else(nothing_aside)?;
        self.machine.add(Part { of: below, at: 0 }, &top);
        state.spare.push(top);
        Ok(())
    }

    fn pop(&mut self) -> Result<()> {
        let state = self.state.as_mut().ok_or_else(not_loaded)?;
        let top = state.aside.pop().ok_or_else(nothing_aside)?;
        state.spare.push(std::mem::replace(&mut state.gradient, top));
        Ok(())
    }

    fn put(&mut self, gradient: &[f32]) -> Result<()> {
        let state = self.state.as_mut().ok_or_else(not_loaded)?;
        if gradient.len() != state.gradient.len() {
            return Err(not_loaded());
        }
        state.gradient = self.machine.upload(gradient);
        Ok(())
    }

    fn store(&mut self, theta: &mut Vec<f32>, moments: &mut Moments) -> Result<()> {
        let (m, state) = (&*self.machine, self.state.as_ref().ok_or_else(not_loaded)?);
        let read = |buffer: &Buffer| m.read(buffer).map_err(failed);
        // All of them before any is put in its place: what a device that fails had given is no state.
        let found = (read(&state.theta)?, read(&state.m)?, read(&state.v)?);
        let average = state.ema.as_ref().map(read).transpose()?;
        (*theta, moments.m, moments.v) = found;
        moments.ema = average;
        Ok(())
    }
}
