//! The explicit engine: the model's forward and backward pass by hand, on the fused operations of `training`.
//!
//! It computes what `model.rs` says, from the same parameters, at the speed of its matrix products: no graph, no
//! tensor for each operation, no padding. `Explicit::forward` goes down the layers and keeps what the way back
//! needs (`Saved`); `Explicit::backward` comes up. A test compares both with `model.rs`. With gradient checkpointing (Chen
//! et al. 2016) a layer keeps its input alone and is computed once more on the way up: the same numbers, because dropout
//! is a function of site and element.

mod sensors;

use fol::notation::Code;
use training::kernels::{
    Attention, AttentionDropout, Dropout, LayerNorm, Precision, Sequences, Tables, activate,
    activate_backward, add_dropout, add_into, add_scaled, attention, attention_backward, dropout_in_place,
    layer_norm, layer_norm_backward, rotary, rotary_table,
};
use training::{Layout, Ready, Refusal, Result};

use crate::batch::Batch;
use crate::config::{ModelConfig, NormPlace, Position, Structured};
use crate::embedding::{Table, weights_backward_in};
use crate::network::{ByHand, Noise, Reading, Sensing, Site};
use crate::places::{Block, Linear, Norm, Places};
use crate::tree::{self, Paths};
use crate::{premises, structure};

/// A norm's x̂ and 1/deviation.
#[derive(Debug, Default)]
struct SavedNorm {
    normal: Vec<f32>,
    inverse: Vec<f32>,
}

impl SavedNorm {
    fn len(&self) -> usize {
        self.normal.len() + self.inverse.len()
    }
}

/// What one layer keeps for the way back.
#[derive(Debug, Default)]
struct SavedLayer {
    attention_in: Vec<f32>, // [rows, d]
    qkv: Vec<f32>,          // [rows, 3d]
    weights: Vec<f32>,      // [heads · Σ n²]
    context: Vec<f32>,      // [rows, d]
    ffn_in: Vec<f32>,       // [rows, d]
    hidden: Vec<f32>,       // [rows, f]
    slope: Vec<f32>,        // [rows, f]
    norm1: SavedNorm,
    norm2: SavedNorm,
}

impl SavedLayer {
    fn len(&self) -> usize {
        let Self { attention_in, qkv, weights, context, ffn_in, hidden, slope, norm1, norm2 } = self;
        let buffers = [attention_in, qkv, weights, context, ffn_in, hidden, slope];
        buffers.map(Vec::len).iter().sum::<usize>() + norm1.len() + norm2.len()
    }
}

/// Buffers that live from step to step.
#[derive(Debug, Default)]
struct Saved {
    /// One for each layer; with checkpointing one in all, of the layer that was computed last.
    layers: Vec<SavedLayer>,
    /// With checkpointing the input of each layer but the last, [rows, d].
    inputs: Vec<Vec<f32>>,
    norm: SavedNorm,
    last: Vec<f32>,   // [rows, d], what the head sees
    logits: Vec<f32>, // [rows, V]
    h: Vec<f32>,      // [rows, d]
    branch: Vec<f32>, // [rows, d]
    wide: Vec<f32>,   // [rows, 3d] or [rows, f]
    positions: Vec<usize>,
    paths: Paths,
    relations: Vec<u8>, // [Σ n²]
    /// Rows of each sequence that see one another.
    prefixes: Option<Vec<usize>>,
}

/// The model with its buffers.
#[derive(Debug)]
pub struct Explicit {
    config: ModelConfig,
    /// What tokens stand for, where positions are those of a tree.
    code: Code,
    layout: Layout,
    places: Places,
    /// The sinusoid table [max_len, d] (a row more for tree positions), or the rotary table, or nothing.
    table: Vec<f32>,
    slopes: Option<Vec<f32>>,
    embedding: Table,
    /// Layers keep their inputs alone.
    checkpointing: bool,
    /// Of the products of linear maps, while it trains.
    precision: Precision,
    saved: Saved,
}

/// What a pass without dropout computed on its way, for those who ask how.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// [rows, V]
    pub logits: Vec<f32>,
    /// [rows, d] for each layer: what the embedding gives, then what each layer gives, before the final norm.
    pub hidden: Vec<Vec<f32>>,
    /// Of each layer the attention weights, [heads, n, n] sequence after sequence.
    weights: Vec<Vec<f32>>,
    /// Where the rows of each sequence begin, and one entry more.
    starts: Vec<usize>,
    heads: usize,
}

impl Inspection {
    /// How one head looked at one sequence of n rows: [query, key], each row sums to 1 over the keys up to its own.
    pub fn attention(&self, layer: usize, head: usize, sequence: usize) -> &[f32] {
        let mut lengths = self.starts.windows(2).map(|w| w[1] - w[0]);
        let before: usize = lengths.clone().take(sequence).map(|n| self.heads * n * n).sum();
        let n = lengths.nth(sequence).unwrap_or(0);
        let from = before + head * n * n;
        self.weights.get(layer).and_then(|w| w.get(from..from + n * n)).unwrap_or_default()
    }
}

/// One pass: the parameters, the rows, and the randomness where there is some.
#[derive(Clone, Copy)]
struct Pass<'a> {
    theta: &'a [f32],
    batch: &'a Batch,
    noise: Option<Noise>,
    /// Of the products of linear maps.
    precision: Precision,
}

impl Pass<'_> {
    fn apply(&self, map: &Linear, x: &[f32], y: &mut [f32]) {
        let (weight, bias) = (&self.theta[map.weight.clone()], &self.theta[map.bias.clone()]);
        self.precision.linear(x, weight, bias, y, self.batch.rows());
    }

    fn weights_backward(&self, map: &Linear, dy: &[f32], x: &[f32], gradient: &mut [f32]) {
        weights_backward_in(self.precision, map, dy, x, gradient, self.batch.rows());
    }

    fn input_backward(&self, map: &Linear, dy: &[f32], dx: &mut [f32], accumulate: bool) {
        let weight = &self.theta[map.weight.clone()];
        self.precision.linear_backward_input(dy, weight, dx, self.batch.rows(), accumulate);
    }
}

fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    buffer.resize(len, 0.0);
    buffer
}

/// PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos of the same; computed in f64. [positions, d]
pub fn sinusoids(positions: usize, d: usize) -> Vec<f32> {
    let entry = |p: usize, c: usize| {
        let angle = p as f64 / 10_000_f64.powf((c - c % 2) as f64 / d as f64);
        (if c.is_multiple_of(2) { angle.sin() } else { angle.cos() }) as f32
    };
    (0..positions).flat_map(|p| (0..d).map(move |c| entry(p, c))).collect()
}

/// 2^(−8h/heads) for h = 1 … heads.
pub(crate) fn alibi_slopes(heads: usize) -> Vec<f32> {
    (1..=heads).map(|h| 2_f64.powf(-8.0 * h as f64 / heads as f64) as f32).collect()
}

impl Explicit {
    /// A model of this shape.
    pub fn new(config: ModelConfig) -> Result<Self> {
        Self::in_code(config, &Code::PLAIN)
    }

    /// The same over the tokens of a code, which tree positions read.
    pub fn in_code(config: ModelConfig, code: &Code) -> Result<Self> {
        config.check()?;
        tree::check(&config, code)?;
        premises::check(&config, code)?;
        let (layout, places) = Places::new(&config);
        let table = match config.position {
            Position::Sinusoidal => sinusoids(config.max_len, config.d_model),
            Position::Tree => sinusoids(config.max_len + 1, config.d_model),
            Position::Rotary => rotary_table(config.max_len, config.head_size()),
            Position::Learned | Position::Alibi | Position::None => Vec::new(),
        };
        let slopes = (config.position == Position::Alibi).then(|| alibi_slopes(config.n_heads));
        let mut saved = Saved::default();
        saved.layers.resize_with(config.n_layers, SavedLayer::default);
        let (code, embedding, precision) = (code.clone(), Table::default(), Precision::Single);
        Ok(Self {
            config,
            code,
            layout,
            places,
            table,
            slopes,
            embedding,
            checkpointing: false,
            precision,
            saved,
        })
    }

    /// The same with gradient checkpointing: of each layer only the input is kept, and the layer is computed once more
    /// on the way back. The gradient has the same bits.
    #[must_use]
    pub fn with_gradient_checkpointing(mut self) -> Self {
        self.checkpointing = true;
        self.saved.layers.resize_with(1, SavedLayer::default);
        self.saved.inputs.resize_with(self.config.n_layers.saturating_sub(1), Vec::new);
        self
    }

    /// The same with products of numbers that are rounded to bf16, while it trains; weights, sums, norms, attention and loss
    /// stay in f32, and so does a pass without dropout's randomness, which judges.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// The shape.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The vectors of all tokens, [V, d], without `scale_embedding`.
    pub fn vectors<'a>(&'a mut self, theta: &'a [f32]) -> &'a [f32] {
        self.embedding.forward(&self.places.embedding, theta)
    }

    /// A pass without dropout, with what it computed on its way.
    ///
    /// # Errors
    /// As [`Network::logits`](crate::network::Network::logits).
    pub fn inspect(&mut self, theta: &[f32], batch: &Batch) -> Result<Inspection> {
        let mut hidden = Vec::with_capacity(self.config.n_layers + 1);
        let mut weights = Vec::with_capacity(self.config.n_layers);
        // Taken layer by layer: with checkpointing the layers share their room.
        self.run(Pass { theta, batch, noise: None, precision: Precision::Single }, |h, layer| {
            hidden.push(h.to_vec());
            weights.extend(layer.map(<[f32]>::to_vec));
        })?;
        Ok(Inspection {
            logits: self.saved.logits.clone(),
            hidden,
            weights,
            starts: batch.starts.clone(),
            heads: self.config.n_heads,
        })
    }

    /// Down the layers; `each` sees h behind the embedding and behind every layer, there with its attention weights.
    fn run(&mut self, pass: Pass<'_>, mut each: impl FnMut(&[f32], Option<&[f32]>)) -> Result<()> {
        let Pass { theta, batch, noise, .. } = pass;
        self.check(theta, batch)?;
        let mut saved = std::mem::take(&mut self.saved);
        let rows = batch.rows();
        let d = self.config.d_model;
        self.begin(theta, batch, noise, &mut saved);
        each(&saved.h, None);
        for n in 0..self.config.n_layers {
            if let (true, Some(input)) = (noise.is_some(), saved.inputs.get_mut(n)) {
                input.clone_from(&saved.h);
            }
            let slot = self.keep_layer(pass, n, &mut saved);
            each(&saved.h, Some(&saved.layers[slot].weights));
        }
        match &self.places.norm {
            Some(norm) => norm_forward(theta, norm, &saved.h, &mut saved.norm, &mut saved.last),
            None => saved.last.clone_from(&saved.h),
        }
        let (weight, bias) = (self.head_weight(theta), &theta[self.places.head_bias.clone()]);
        pass.precision.linear(
            &saved.last[..rows * d],
            weight,
            bias,
            sized(&mut saved.logits, rows * bias.len()),
            rows,
        );
        self.saved = saved;
        Ok(())
    }

    fn check(&self, theta: &[f32], batch: &Batch) -> Result<()> {
        let longest = batch.longest();
        if longest > self.config.max_len {
            let max = self.config.max_len;
            return Err(Refusal::Learner(format!(
                "a sequence of {longest} tokens is longer than max_len = {max}"
            )));
        }
        if let Some(t) = batch.tokens.iter().find(|&&t| t as usize >= self.config.vocab_size) {
            return Err(Refusal::Learner(format!(
                "token {t} is outside the vocabulary of {}",
                self.config.vocab_size
            )));
        }
        if theta.len() != self.layout.len() {
            return Err(Refusal::Learner("parameters of another model".to_owned()));
        }
        premises::check_targets(&self.config, batch)
    }

    fn dropout(&self, noise: Option<Noise>, site: Site) -> Option<Dropout> {
        noise.and_then(|n| Dropout::new(self.config.dropout, n.seed, n.update, site.number()))
    }

    fn attention_form<'a>(
        &'a self,
        pass: Pass<'a>,
        layer: usize,
        block: &Block,
        numbers: &'a [u8],
        prefixes: Option<&'a [usize]>,
    ) -> Attention<'a> {
        let dropout = self.dropout(pass.noise, Site::AttentionWeights(layer));
        Attention {
            heads: self.config.n_heads,
            size: self.config.head_size(),
            slopes: self.slopes.as_deref(),
            prefixes,
            relations: structure::relations(&self.config, block, pass.theta, numbers),
            dropout: dropout.map(|dropout| AttentionDropout { dropout, first_row: pass.batch.first_row }),
        }
    }

    fn head_weight<'a>(&self, theta: &'a [f32]) -> &'a [f32] {
        match (&self.places.head_weight, &self.places.embedding) {
            (Some(range), _) => &theta[range.clone()],
            // `ModelConfig::check` refuses a tied head with a glyph embedding.
            (None, crate::places::EmbeddingPlaces::Table(range)) => &theta[range.clone()],
            (None, _) => &[],
        }
    }

    /// What the layers read of a batch, and their input.
    fn begin(&mut self, theta: &[f32], batch: &Batch, noise: Option<Noise>, saved: &mut Saved) {
        saved.positions = batch.positions();
        if self.config.structure != Structured::None {
            saved.relations = structure::numbers(&self.code, batch);
        }
        saved.prefixes = premises::prefixes(&self.config, batch);
        self.embed(theta, batch, noise, saved);
    }

    /// h = dropout(scale·E[token] + P[position])
    fn embed(&mut self, theta: &[f32], batch: &Batch, noise: Option<Noise>, saved: &mut Saved) {
        let d = self.config.d_model;
        let scale = self.config.embedding_scale() as f32;
        let learned = self.places.position.clone().map(|r| &theta[r]);
        let tree = self.config.position == Position::Tree;
        let fixed = (tree || self.config.position == Position::Sinusoidal).then_some(self.table.as_slice());
        let positions = learned.or(fixed);
        if tree {
            saved.paths = Paths::of(&self.code, batch);
        }
        let at = if tree { &saved.paths.inside } else { &saved.positions };
        let vectors = self.embedding.forward(&self.places.embedding, theta);
        let h = sized(&mut saved.h, batch.rows() * d);
        for ((h, &token), &p) in h.chunks_exact_mut(d).zip(&batch.tokens).zip(at) {
            let e = &vectors[token as usize * d..][..d];
            match positions {
                Some(table) => {
                    h.copy_from_slice(&table[p * d..][..d]);
                    add_scaled(h, e, scale);
                }
                None => h.iter_mut().zip(e).for_each(|(h, e)| *h = scale * e),
            }
        }
        if let Some(decay) = self.places.decay.clone().map(|r| &theta[r]) {
            for (h, entries) in saved.h.chunks_exact_mut(d).zip(saved.paths.rows()) {
                tree::add_pattern(entries.iter().copied(), decay, h);
            }
        }
        dropout_in_place(self.dropout(noise, Site::Embedding), &mut saved.h, d, batch.first_row);
    }

    fn layer_forward(
        &self,
        pass: Pass<'_>,
        n: usize,
        block: &Block,
        layer: &mut SavedLayer,
        saved: &mut Saved,
    ) {
        let Pass { theta, batch, noise, .. } = pass;
        let (rows, d, f) = (batch.rows(), self.config.d_model, self.config.d_ff);
        let Saved { h, branch, positions, relations, prefixes, .. } = saved;
        let pre = self.config.norm == NormPlace::Pre;
        if pre {
            norm_forward(theta, &block.norm1, h, &mut layer.norm1, &mut layer.attention_in);
        } else {
            layer.attention_in.clone_from(h);
        }
        pass.apply(&block.qkv, &layer.attention_in, sized(&mut layer.qkv, rows * 3 * d));
        self.turn(&mut layer.qkv, positions, false);
        let sequences = Sequences { starts: &batch.starts };
        let weights = sized(&mut layer.weights, self.config.n_heads * sequences.squares());
        let form = self.attention_form(pass, n, block, relations, prefixes.as_deref());
        attention(form, sequences, &layer.qkv, weights, sized(&mut layer.context, rows * d));
        pass.apply(&block.output, &layer.context, sized(branch, rows * d));
        add_dropout(self.dropout(noise, Site::AttentionOutput(n)), h, branch, d, batch.first_row);
        if pre {
            norm_forward(theta, &block.norm2, h, &mut layer.norm2, &mut layer.ffn_in);
        } else {
            norm_forward(theta, &block.norm1, h, &mut layer.norm1, &mut layer.ffn_in);
            h.clone_from(&layer.ffn_in);
        }
        pass.apply(&block.up, &layer.ffn_in, sized(&mut layer.hidden, rows * f));
        let slope = sized(&mut layer.slope, rows * f);
        activate(self.config.activation.kernel(), &mut layer.hidden, slope, f);
        pass.apply(&block.down, &layer.hidden, branch);
        add_dropout(self.dropout(noise, Site::FeedForward(n)), h, branch, d, batch.first_row);
        if !pre {
            norm_forward(theta, &block.norm2, h, &mut layer.norm2, branch);
            std::mem::swap(h, branch);
        }
    }

    fn turn(&self, qkv: &mut [f32], positions: &[usize], backward: bool) {
        if self.config.position == Position::Rotary {
            rotary(&self.table, qkv, positions, self.config.n_heads, self.config.head_size(), backward);
        }
    }

    fn layer_backward(
        &self,
        pass: Pass<'_>,
        n: usize,
        block: &Block,
        layer: &SavedLayer,
        saved: &mut Saved,
        gradient: &mut [f32],
    ) {
        let Pass { theta, batch, noise, .. } = pass;
        let (rows, d, f) = (batch.rows(), self.config.d_model, self.config.d_ff);
        let Saved { h, branch, wide, positions, relations, prefixes, .. } = saved;
        let pre = self.config.norm == NormPlace::Pre;
        // h = norm2(y + drop(down(activate(up(y)))))  or  h + drop(down(activate(up(norm2(h)))))
        if !pre {
            norm_backward(theta, &block.norm2, h, &layer.norm2, gradient);
        }
        branch.clone_from(h);
        dropout_in_place(self.dropout(noise, Site::FeedForward(n)), branch, d, batch.first_row);
        pass.weights_backward(&block.down, branch, &layer.hidden, gradient);
        pass.input_backward(&block.down, branch, sized(wide, rows * f), false);
        activate_backward(wide, &layer.slope, f);
        pass.weights_backward(&block.up, wide, &layer.ffn_in, gradient);
        if pre {
            pass.input_backward(&block.up, wide, branch, false);
            norm_backward(theta, &block.norm2, branch, &layer.norm2, gradient);
            add_into(h, branch);
        } else {
            pass.input_backward(&block.up, wide, h, true);
            norm_backward(theta, &block.norm1, h, &layer.norm1, gradient);
        }
        // h = x + drop(output(attention(qkv(x))))  or  h + drop(output(attention(qkv(norm1(h)))))
        branch.clone_from(h);
        dropout_in_place(self.dropout(noise, Site::AttentionOutput(n)), branch, d, batch.first_row);
        pass.weights_backward(&block.output, branch, &layer.context, gradient);
        let mut dcontext = vec![0.0; rows * d];
        pass.input_backward(&block.output, branch, &mut dcontext, false);
        let form = self.attention_form(pass, n, block, relations, prefixes.as_deref());
        let sequences = Sequences { starts: &batch.starts };
        let dqkv = sized(wide, rows * 3 * d);
        let tables = attention_backward(form, sequences, &layer.qkv, &layer.weights, &dcontext, dqkv);
        let Tables { bias, keys, values } = block.relations.clone();
        for (range, of_batch) in [(bias, tables.bias), (keys, tables.keys), (values, tables.values)] {
            if let (Some(range), Some(of_batch)) = (range, of_batch) {
                add_into(&mut gradient[range], &of_batch);
            }
        }
        self.turn(dqkv, positions, true);
        pass.weights_backward(&block.qkv, dqkv, &layer.attention_in, gradient);
        if pre {
            pass.input_backward(&block.qkv, dqkv, branch, false);
            norm_backward(theta, &block.norm1, branch, &layer.norm1, gradient);
            add_into(h, branch);
        } else {
            pass.input_backward(&block.qkv, dqkv, h, true);
        }
    }
}

fn norm_forward(theta: &[f32], norm: &Norm, x: &[f32], saved: &mut SavedNorm, y: &mut Vec<f32>) {
    let (weight, bias) = (&theta[norm.weight.clone()], &theta[norm.bias.clone()]);
    saved.normal.clear();
    saved.normal.extend_from_slice(x);
    let inverse = sized(&mut saved.inverse, x.len() / weight.len());
    layer_norm(LayerNorm { weight, bias }, &mut saved.normal, sized(y, x.len()), inverse);
}

fn norm_backward(theta: &[f32], norm: &Norm, dy: &mut [f32], saved: &SavedNorm, gradient: &mut [f32]) {
    let (before, from_bias) = gradient.split_at_mut(norm.bias.start);
    let (dweight, dbias) = (&mut before[norm.weight.clone()], &mut from_bias[..norm.bias.len()]);
    layer_norm_backward(&theta[norm.weight.clone()], dy, &saved.normal, &saved.inverse, dweight, dbias);
}

/// table[to[r]] += scale·rows[r], in row order.
pub(crate) fn scatter(rows: &[f32], to: &[usize], scale: f32, d: usize, table: &mut [f32]) {
    for (row, &t) in rows.chunks_exact(d).zip(to) {
        add_scaled(&mut table[t * d..][..d], row, scale);
    }
}

impl Explicit {
    /// Layer n forward, from and to `saved.h`.
    fn keep_layer(&self, pass: Pass<'_>, n: usize, saved: &mut Saved) -> usize {
        let slot = if self.checkpointing { 0 } else { n };
        let mut layer = std::mem::take(&mut saved.layers[slot]);
        self.layer_forward(pass, n, &self.places.layers[n], &mut layer, saved);
        saved.layers[slot] = layer;
        slot
    }

    /// Computes layer n once more from its input; `saved.h`, the gradient, stays.
    fn recompute_layer(&self, pass: Pass<'_>, n: usize, saved: &mut Saved) {
        let input = std::mem::take(&mut saved.inputs[n]);
        let gradient = std::mem::replace(&mut saved.h, input);
        self.keep_layer(pass, n, saved);
        // The buffer, for the next pass.
        saved.inputs[n] = std::mem::replace(&mut saved.h, gradient);
    }
}

impl ByHand for Explicit {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn sense(&mut self, theta: &[f32], batch: &Batch, how: Sensing) -> Result<Option<Reading>> {
        self.read_sensors(theta, batch, how).map(Some)
    }

    fn activation_bytes(&self) -> Option<usize> {
        let Saved { layers, inputs, norm, last, logits, h, branch, wide, .. } = &self.saved;
        let of_layers: usize = layers.iter().map(SavedLayer::len).sum();
        let of_inputs: usize = inputs.iter().map(Vec::len).sum();
        let others: usize = [last, logits, h, branch, wide].map(Vec::len).iter().sum();
        Some(size_of::<f32>() * (of_layers + of_inputs + norm.len() + others))
    }

    fn forward(&mut self, theta: &[f32], batch: &Batch, noise: Option<Noise>) -> Result<&mut [f32]> {
        let precision = if noise.is_some() { self.precision } else { Precision::Single };
        self.run(Pass { theta, batch, noise, precision }, |_, _| {})?;
        Ok(&mut self.saved.logits)
    }

    fn backward(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        noise: Noise,
        gradient: &mut [f32],
        ready: Ready<'_>,
    ) {
        let mut saved = std::mem::take(&mut self.saved);
        let (rows, d, v) = (batch.rows(), self.config.d_model, self.config.vocab_size);
        let vectors = self.config.vocab_size * d;
        let mut dtable = match self.places.embedding {
            // A stored table takes its gradient where it stands.
            crate::places::EmbeddingPlaces::Table(_) => Vec::new(),
            _ => vec![0.0; vectors],
        };
        // head
        let head = self.places.head_weight.clone().unwrap_or(match &self.places.embedding {
            crate::places::EmbeddingPlaces::Table(range) => range.clone(),
            _ => 0..0,
        });
        let (before, from_bias) = gradient.split_at_mut(self.places.head_bias.start);
        let dlogits = &saved.logits[..rows * v];
        let precision = self.precision;
        precision.linear_backward_weights(dlogits, &saved.last, &mut before[head], &mut from_bias[..v], rows);
        let weight = self.head_weight(theta);
        precision.linear_backward_input(dlogits, weight, sized(&mut saved.h, rows * d), rows, false);
        if let Some(norm) = &self.places.norm {
            norm_backward(theta, norm, &mut saved.h, &saved.norm, gradient);
        }
        for (n, block) in self.places.layers.iter().enumerate().rev() {
            let pass = Pass { theta, batch, noise: Some(noise), precision };
            // Of the last layer everything is still there.
            if n < saved.inputs.len() {
                self.recompute_layer(pass, n, &mut saved);
            }
            let slot = if self.checkpointing { 0 } else { n };
            let layer = std::mem::take(&mut saved.layers[slot]);
            self.layer_backward(pass, n, block, &layer, &mut saved, gradient);
            saved.layers[slot] = layer;
            // Behind a layer stand those after it, the last norm and the head, which is done: a head that is the table stands
            // before all layers.
            ready(gradient, block.qkv.weight.start);
        }
        // embedding
        dropout_in_place(self.dropout(Some(noise), Site::Embedding), &mut saved.h, d, batch.first_row);
        if let Some(range) = &self.places.position {
            scatter(&saved.h, &saved.positions, 1.0, d, &mut gradient[range.clone()]);
        }
        if let Some(range) = &self.places.decay {
            tree::decay_backward(&saved.paths, &saved.h, d, &mut gradient[range.clone()]);
        }
        let scale = self.config.embedding_scale() as f32;
        let tokens: Vec<usize> = batch.tokens.iter().map(|&t| t as usize).collect();
        if let crate::places::EmbeddingPlaces::Table(range) = &self.places.embedding {
            scatter(&saved.h, &tokens, scale, d, &mut gradient[range.clone()]);
        } else {
            scatter(&saved.h, &tokens, scale, d, &mut dtable);
            self.embedding.backward(&self.places.embedding, theta, &dtable, gradient);
        }
        self.saved = saved;
    }
}
