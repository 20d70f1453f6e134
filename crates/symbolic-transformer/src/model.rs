//! The model on one page: what the parameters mean, in candle's operations.
//!
//! This is the *composed* engine. It is slow and obvious, differentiates itself, and runs in f64 and on a GPU; the
//! explicit engine (`explicit.rs`) is compared with it. Rows of a ragged batch are spread to `[batch, time]` for
//! attention alone. Names of tensors are those of `model.safetensors`.

use std::collections::BTreeMap;

use candle_core::{D, DType, Device, Tensor, Var};
use candle_nn::{Embedding as Lookup, Module};
use fol::notation::{Code, NodeRelation};
use training::composed::{cross_entropy, gelu, gelu_tanh, layer_norm, linear, matmul, softmax};
use training::kernels::{Dropout, rotary_table};
use training::{Layout, Loss, Result};

use crate::batch::Batch;
use crate::config::{Activation, Embedding, ModelConfig, NormPlace, Position, Structured};
use crate::embedding::glyph_cells;
use crate::explicit::{alibi_slopes, sinusoids};
use crate::network::{Network, Noise, Site};
use crate::places::Places;
use crate::tree::{self, Paths};
use crate::{premises, structure};

/// The composed engine of one model.
#[derive(Debug)]
pub struct Composed {
    config: ModelConfig,
    /// What tokens stand for, where positions are those of a tree.
    code: Code,
    layout: Layout,
    device: Device,
    dtype: DType,
    /// What multiplies the branches of each layer; without it nothing does.
    gains: Option<Vec<f64>>,
    logits: Vec<f32>,
}

/// One forward pass.
struct Pass<'a> {
    model: &'a Composed,
    weights: &'a BTreeMap<String, Var>,
    batch: &'a Batch,
    noise: Option<Noise>,
}

impl Pass<'_> {
    fn logits(&self) -> Result<Tensor> {
        let c = &self.model.config;
        premises::check_targets(c, self.batch)?;
        let table = self.symbol_vectors()?; // [V, d]
        let tokens = self.index(self.batch.tokens.clone())?; // [rows]
        let mut h = (Lookup::new(table, c.d_model).forward(&tokens)? * c.embedding_scale())?; // [rows, d]
        if let Some(positions) = self.positions()? {
            h = (h + positions)?; // [rows, d]
        }
        h = self.drop(h, Site::Embedding)?;
        for n in 0..c.n_layers {
            let name = |part: &str| format!("layers.{n}.{part}");
            let attention =
                |x: &Tensor| self.gained(self.drop(self.attention(x, n)?, Site::AttentionOutput(n))?, n);
            let ffn = |x: &Tensor| self.gained(self.drop(self.feed_forward(x, n)?, Site::FeedForward(n))?, n);
            h = match c.norm {
                NormPlace::Post => {
                    let h = self.norm(&(&h + attention(&h)?)?, &name("norm1"))?;
                    self.norm(&(&h + ffn(&h)?)?, &name("norm2"))?
                }
                NormPlace::Pre => {
                    let h = (&h + attention(&self.norm(&h, &name("norm1"))?)?)?;
                    (&h + ffn(&self.norm(&h, &name("norm2"))?)?)?
                }
            };
        }
        if c.final_norm {
            h = self.norm(&h, "norm")?;
        }
        let head = if c.tie_output { self.weight("embed.weight")? } else { self.weight("head.weight")? };
        Ok(linear(&h, head, self.weight("head.bias")?)?) // [rows, V]
    }

    /// What a branch adds, times the gain of its layer.
    fn gained(&self, branch: Tensor, n: usize) -> Result<Tensor> {
        match self.model.gains.as_ref().and_then(|gains| gains.get(n)) {
            Some(&gain) => Ok((branch * gain)?),
            None => Ok(branch),
        }
    }

    fn attention(&self, x: &Tensor, n: usize) -> Result<Tensor> {
        let c = &self.model.config;
        let (heads, size, batch, time) =
            (c.n_heads, c.head_size(), self.batch.sequences(), self.batch.longest());
        let spread = self.index(self.spread(time))?;
        let part = |name: &str| -> Result<Tensor> {
            let y = self.linear(x, &format!("layers.{n}.attention.{name}"))?; // [rows, d]
            let y = y.index_select(&spread, 0)?.reshape((batch, time, heads, size))?;
            Ok(y.transpose(1, 2)?.contiguous()?) // [batch, heads, time, size]
        };
        let (mut q, mut k, v) = (part("query")?, part("key")?, part("value")?);
        if c.position == Position::Rotary {
            (q, k) = (self.rotate(&q, time)?, self.rotate(&k, time)?);
        }
        let mut scores = (matmul(&q, &k.t()?)? / (size as f64).sqrt())?; // [batch, heads, query, key]
        if c.position == Position::Alibi {
            scores = scores.broadcast_add(&self.alibi(time)?)?;
        }
        let related = self.relations(time)?; // [batch · query · key, 21]
        let table = |part: &str, related: &Tensor| -> Result<Tensor> {
            let table = self.weight(&format!("layers.{n}.attention.relation.{part}"))?;
            Ok(matmul(related, table)?.reshape((batch, 1, time, time, size))?)
        };
        match (c.structure, &related) {
            (Structured::Bias, Some(related)) => {
                let bias = self.weight(&format!("layers.{n}.attention.relation.bias"))?;
                let bias = matmul(related, &bias.t()?)?.reshape((batch, time, time, heads))?;
                scores = (scores + bias.permute((0, 3, 1, 2))?)?;
            }
            (Structured::Relational, Some(related)) => {
                let along = q.unsqueeze(3)?.broadcast_mul(&table("key", related)?)?.sum(4)?;
                scores = (scores + (along / (size as f64).sqrt())?)?;
            }
            _ => {}
        }
        let future = self.hidden(time)?;
        let hidden =
            Tensor::full(f32::NEG_INFINITY, scores.shape(), &self.model.device)?.to_dtype(scores.dtype())?;
        let mut weights = softmax(&future.where_cond(&hidden, &scores)?)?;
        if let Some(dropout) = self.dropout(Site::AttentionWeights(n)) {
            weights = (weights * self.attention_masks(dropout, time)?)?;
        }
        let mut context = matmul(&weights, &v)?; // [batch, heads, query, size]
        if let (Structured::Relational, Some(related)) = (c.structure, &related) {
            let values = weights.unsqueeze(4)?.broadcast_mul(&table("value", related)?)?.sum(3)?;
            context = (context + values)?;
        }
        let context = context.transpose(1, 2)?.reshape((batch * time, c.d_model))?;
        let rows = context.index_select(&self.index(self.gather(time))?, 0)?; // [rows, d]
        self.linear(&rows, &format!("layers.{n}.attention.output"))
    }

    /// For each pair of rows a one in the column of its relation, [batch · query · key, 21]; padding has none.
    fn relations(&self, time: usize) -> Result<Option<Tensor>> {
        if self.model.config.structure == Structured::None {
            return Ok(None);
        }
        let mut ones = vec![0.0; self.batch.sequences() * time * time * NodeRelation::COUNT];
        for (pair, number) in self.related(time) {
            ones.iter_mut()
                .skip(pair * NodeRelation::COUNT + usize::from(number))
                .take(1)
                .for_each(|x| *x = 1.0);
        }
        let pairs = self.batch.sequences() * time * time;
        self.constant(&ones, &[pairs, NodeRelation::COUNT]).map(Some)
    }

    /// The pairs of rows of each sequence, numbered in [batch, query, key], with their relations.
    fn related(&self, time: usize) -> Vec<(usize, u8)> {
        let numbers = structure::numbers(&self.model.code, self.batch);
        let (mut pairs, mut at) = (Vec::new(), 0);
        for (b, rows) in self.batch.ranges().enumerate() {
            let n = rows.len();
            let of_sequence = numbers.get(at..at + n * n).unwrap_or_default();
            let place = |(i, &number): (usize, &u8)| ((b * time + i / n) * time + i % n, number);
            pairs.extend(of_sequence.iter().enumerate().filter(|(i, _)| i % n <= i / n).map(place));
            at += n * n;
        }
        pairs
    }

    /// 1 where a query does not look, [batch, heads, query, key].
    fn hidden(&self, time: usize) -> Result<Tensor> {
        let (batch, heads) = (self.batch.sequences(), self.model.config.n_heads);
        let prefixes = premises::prefixes(&self.model.config, self.batch).unwrap_or_default();
        let future = |i: usize| {
            let (sequence, query, key) = (i / (heads * time * time), i / time % time, i % time);
            let prefix = prefixes.get(sequence).copied().unwrap_or(0);
            u8::from(key > query && (key >= prefix || query >= prefix))
        };
        let mut hidden: Vec<u8> = (0..batch * heads * time * time).map(future).collect();
        if let Some((from, other)) = structure::hidden(&self.model.config) {
            for (pair, number) in self.related(time) {
                let (b, query, key) = (pair / (time * time), pair / time % time, pair % time);
                let heads = if number == other && key > 0 && key < query { from..heads } else { 0..0 };
                for head in heads {
                    let at = ((b * self.model.config.n_heads + head) * time + query) * time + key;
                    hidden.iter_mut().skip(at).take(1).for_each(|x| *x = 1);
                }
            }
        }
        Ok(Tensor::from_vec(hidden, (batch, heads, time, time), &self.model.device)?)
    }

    fn feed_forward(&self, x: &Tensor, n: usize) -> Result<Tensor> {
        let u = self.linear(x, &format!("layers.{n}.ffn.up"))?; // [rows, f]
        let hidden = match self.model.config.activation {
            Activation::Gelu => gelu(&u)?,
            Activation::GeluTanh => gelu_tanh(&u)?,
            Activation::Relu => u.relu()?,
        };
        self.linear(&hidden, &format!("layers.{n}.ffn.down"))
    }

    fn symbol_vectors(&self) -> Result<Tensor> {
        let cells = || self.constant(&glyph_cells(), &[fol::symbol::VOCABULARY, 625]);
        match self.model.config.embedding {
            Embedding::Learned => Ok(self.weight("embed.weight")?.as_tensor().clone()),
            Embedding::GlyphLinear => self.linear(&cells()?, "embed"),
            Embedding::GlyphCnn => {
                let convolve = |x: &Tensor, name: &str| -> Result<Tensor> {
                    let y = x.conv2d(self.weight(&format!("{name}.weight"))?, 1, 2, 1, 1)?;
                    let bias = self.weight(&format!("{name}.bias"))?.reshape((1, 16, 1, 1))?;
                    Ok(y.broadcast_add(&bias)?.relu()?)
                };
                let x = cells()?.reshape((fol::symbol::VOCABULARY, 1, 25, 25))?;
                let y = convolve(&convolve(&x, "embed.conv1")?, "embed.conv2")?; // [663, 16, 7, 7]
                self.linear(&y.flatten_from(1)?, "embed.linear")
            }
        }
    }

    fn positions(&self) -> Result<Option<Tensor>> {
        let c = &self.model.config;
        let table = match c.position {
            Position::Sinusoidal => {
                let time = self.batch.longest();
                self.constant(&sinusoids(time, c.d_model), &[time, c.d_model])?
            }
            Position::Learned => self.weight("position.weight")?.as_tensor().clone(),
            Position::Tree => return self.tree_positions().map(Some),
            Position::Rotary | Position::Alibi | Position::None => return Ok(None),
        };
        let places = self.batch.positions().iter().map(|&p| p as u32).collect();
        Ok(Some(table.index_select(&self.index(places)?, 0)?))
    }

    /// The pattern of each row's path, and the sinusoid of its place inside its node.
    fn tree_positions(&self) -> Result<Tensor> {
        let (d, rows, time) = (self.model.config.d_model, self.batch.rows(), self.batch.longest() + 1);
        let paths = Paths::of(&self.model.code, self.batch);
        let (mut steps, mut places) = (vec![0.0; rows * tree::PATTERN], vec![0.0; tree::PATTERN * d]);
        let set = |at: usize, row: &mut [f32]| row.iter_mut().skip(at).take(1).for_each(|x| *x = 1.0);
        for (entries, steps) in paths.rows().zip(steps.chunks_exact_mut(tree::PATTERN)) {
            entries.iter().for_each(|&entry| set(entry, steps));
        }
        for (entry, places) in places.chunks_exact_mut(d).enumerate() {
            tree::columns(entry, d).for_each(|column| set(column, places));
        }
        let decay = self.weight("position.decay")?.reshape((tree::DEPTH, 1))?;
        let decay = decay.broadcast_as((tree::DEPTH, tree::WIDTH))?.reshape((1, tree::PATTERN))?;
        let steps = self.constant(&steps, &[rows, tree::PATTERN])?.broadcast_mul(&decay)?; // [rows, 128]
        let pattern = matmul(&steps, &self.constant(&places, &[tree::PATTERN, d])?)?; // [rows, d]
        let table = self.constant(&sinusoids(time, d), &[time, d])?;
        let inside = self.index(paths.inside.iter().map(|&p| p as u32).collect())?;
        Ok((pattern + table.index_select(&inside, 0)?)?)
    }

    /// x [batch, heads, time, size], pairs (2i, 2i+1) turned by the position.
    fn rotate(&self, x: &Tensor, time: usize) -> Result<Tensor> {
        let (batch, heads, _, size) = x.dims4()?;
        let table = self.constant(&rotary_table(time, size), &[1, 1, time, size / 2, 2])?;
        let (cos, sin) = (table.narrow(4, 0, 1)?, table.narrow(4, 1, 1)?);
        let pairs = x.reshape((batch, heads, time, size / 2, 2))?;
        let (a, b) = (pairs.narrow(4, 0, 1)?, pairs.narrow(4, 1, 1)?);
        let first = (a.broadcast_mul(&cos)? - b.broadcast_mul(&sin)?)?;
        let second = (a.broadcast_mul(&sin)? + b.broadcast_mul(&cos)?)?;
        Ok(Tensor::cat(&[first, second], 4)?.reshape((batch, heads, time, size))?)
    }

    fn alibi(&self, time: usize) -> Result<Tensor> {
        let slopes = alibi_slopes(self.model.config.n_heads);
        let penalty = |s: &f32| {
            (0..time * time).map(move |i| -s * (i / time).abs_diff(i % time) as f32).collect::<Vec<_>>()
        };
        let entries: Vec<f32> = slopes.iter().flat_map(penalty).collect();
        self.constant(&entries, &[1, slopes.len(), time, time])
    }

    fn dropout(&self, site: Site) -> Option<Dropout> {
        self.noise.and_then(|n| Dropout::new(self.model.config.dropout, n.seed, n.update, site.number()))
    }

    fn drop(&self, x: Tensor, site: Site) -> Result<Tensor> {
        let Some(dropout) = self.dropout(site) else { return Ok(x) };
        let d = self.model.config.d_model;
        let rows = self.batch.first_row..self.batch.first_row + self.batch.rows();
        let masks: Vec<f32> = rows.clone().flat_map(|r| dropout.factors(r as u64, d)).collect();
        Ok((x * self.constant(&masks, &[rows.len(), d])?)?)
    }

    /// [batch, heads, time, time]
    fn attention_masks(&self, dropout: Dropout, time: usize) -> Result<Tensor> {
        let heads = self.model.config.n_heads;
        let mut masks = vec![0.0; self.batch.sequences() * heads * time * time];
        let mut out = masks.chunks_exact_mut(time.max(1));
        for rows in self.batch.ranges() {
            for head in 0..heads {
                for t in 0..time {
                    let Some(mask) = out.next() else { continue };
                    if t < rows.len() {
                        let row = (self.batch.first_row + rows.start + t) * heads + head;
                        mask.copy_from_slice(&dropout.factors(row as u64, time));
                    }
                }
            }
        }
        self.constant(&masks, &[self.batch.sequences(), heads, time, time])
    }

    /// For each place of [batch, time] the row that stands there; padding repeats the sequence's last row.
    fn spread(&self, time: usize) -> Vec<u32> {
        let place = |r: std::ops::Range<usize>| (0..time).map(move |t| (r.start + t.min(r.len() - 1)) as u32);
        self.batch.ranges().flat_map(place).collect()
    }

    /// For each row its place in [batch, time].
    fn gather(&self, time: usize) -> Vec<u32> {
        let place =
            |(b, r): (usize, std::ops::Range<usize>)| (0..r.len()).map(move |t| (b * time + t) as u32);
        self.batch.ranges().enumerate().flat_map(place).collect()
    }

    fn weight(&self, name: &str) -> Result<&Var> {
        self.weights.get(name).ok_or_else(|| training::Refusal::MissingTensor { name: name.to_owned() })
    }

    fn linear(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        Ok(linear(x, self.weight(&format!("{name}.weight"))?, self.weight(&format!("{name}.bias"))?)?)
    }

    fn norm(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let (weight, bias) = (self.weight(&format!("{name}.weight"))?, self.weight(&format!("{name}.bias"))?);
        Ok(layer_norm(x, weight, bias, 1e-5)?)
    }

    fn index(&self, entries: Vec<u32>) -> Result<Tensor> {
        let len = entries.len();
        Ok(Tensor::from_vec(entries, len, &self.model.device)?)
    }

    fn constant(&self, entries: &[f32], shape: &[usize]) -> Result<Tensor> {
        Ok(training::composed::tensor(entries, shape, self.model.dtype, &self.model.device)?)
    }
}

impl Composed {
    /// A model of this shape, computed in `dtype` on `device`.
    pub fn new(config: ModelConfig, dtype: DType, device: Device) -> Result<Self> {
        Self::in_code(config, &Code::PLAIN, dtype, device)
    }

    /// The same over the tokens of a code, which tree positions read.
    pub fn in_code(config: ModelConfig, code: &Code, dtype: DType, device: Device) -> Result<Self> {
        config.check()?;
        tree::check(&config, code)?;
        premises::check(&config, code)?;
        let (layout, _) = Places::new(&config);
        Ok(Self { config, code: code.clone(), layout, device, dtype, gains: None, logits: Vec::new() })
    }

    /// The same with x + g · f(x) in place of x + f(x), g for each layer: what a [moderator](crate::moderator) does to it.
    #[must_use]
    pub fn with_gains(mut self, gains: Vec<f64>) -> Self {
        self.gains = Some(gains);
        self
    }

    /// The parameters as variables by name; `entries` may be of any precision.
    pub fn variables(&self, theta: &[f32]) -> Result<BTreeMap<String, Var>> {
        let make = |p: &training::parameters::Parameter| {
            let entries = theta.get(p.range.clone()).unwrap_or_default();
            let tensor = training::composed::tensor(entries, &p.shape, self.dtype, &self.device)?;
            Ok((p.name.clone(), Var::from_tensor(&tensor.copy()?)?))
        };
        self.layout.iter().map(make).collect()
    }

    /// The vectors of the symbols [V, d], not scaled: the stored table, or what the glyphs give.
    #[cfg(test)]
    pub(crate) fn symbol_vectors(&self, theta: &[f32]) -> Result<Vec<f64>> {
        let (weights, batch) = (self.variables(theta)?, Batch::default());
        let table = Pass { model: self, weights: &weights, batch: &batch, noise: None }.symbol_vectors()?;
        Ok(table.to_dtype(DType::F64)?.flatten_all()?.to_vec1()?)
    }

    /// The logits [rows, V] as a tensor of a graph.
    pub fn forward(
        &self,
        weights: &BTreeMap<String, Var>,
        batch: &Batch,
        noise: Option<Noise>,
    ) -> Result<Tensor> {
        Pass { model: self, weights, batch, noise }.logits()
    }

    /// The summed plain loss and the summed label-smoothed loss, as tensors.
    pub fn losses(
        &self,
        weights: &BTreeMap<String, Var>,
        batch: &Batch,
        noise: Option<Noise>,
    ) -> Result<(Tensor, Tensor)> {
        let logits = self.forward(weights, batch, noise)?;
        let valid: Vec<f32> = batch.targets.iter().map(|&t| if t == u32::MAX { 0.0 } else { 1.0 }).collect();
        let valid = Tensor::from_vec(valid, batch.rows(), &self.device)?;
        let targets = batch.targets.iter().map(|&t| if t == u32::MAX { 0 } else { t }).collect();
        let targets = Tensor::from_vec::<_, u32>(targets, batch.rows(), &self.device)?;
        let plain = cross_entropy(&logits, &targets, &valid)?;
        let smoothing = noise.map_or(0.0, |n| n.smoothing);
        if smoothing == 0.0 {
            return Ok((plain.clone(), plain));
        }
        let log_sum = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?.detach())?;
        let log_sum =
            (log_sum.exp()?.sum_keepdim(D::Minus1)?.log()? + logits.max_keepdim(D::Minus1)?.detach())?;
        let spread = (log_sum.squeeze(1)? - logits.mean(D::Minus1)?)?; // mean over V of −ln q
        let spread = (spread * valid.to_dtype(self.dtype)?)?.sum_all()?;
        let smoothed = ((&plain * (1.0 - smoothing))? + (spread * smoothing)?)?;
        Ok((plain, smoothed))
    }
}

impl Network for Composed {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn logits(&mut self, theta: &[f32], batch: &Batch) -> Result<&[f32]> {
        let logits = self.forward(&self.variables(theta)?, batch, None)?;
        self.logits = logits.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
        Ok(&self.logits)
    }

    fn gradient(&mut self, theta: &[f32], batch: &Batch, noise: Noise, gradient: &mut [f32]) -> Result<Loss> {
        let weights = self.variables(theta)?;
        let (plain, smoothed) = self.losses(&weights, batch, Some(noise))?;
        let store = smoothed.backward()?;
        for p in self.layout.iter() {
            let missing = || training::Refusal::MissingGradient { name: p.name.clone() };
            let var = weights.get(&p.name).ok_or_else(missing)?;
            let g = store.get(var.as_tensor()).ok_or_else(missing)?;
            let g: Vec<f32> = g.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
            if let Some(to) = gradient.get_mut(p.range.clone()) {
                training::kernels::add_into(to, &g);
            }
        }
        let sum = f64::from(plain.to_dtype(DType::F32)?.to_scalar::<f32>()?);
        let targets = batch.targets.iter().filter(|&&t| t != u32::MAX).count() as u64;
        Ok(Loss { sum, targets })
    }
}
