//! Decoding: one token at a time, with the keys and values of earlier tokens kept.
//!
//! A [`Decoder`] gives a state for each hypothesis; `step` moves several states by one token each, so that a beam or a
//! set of samples shares its products. The logits equal those of the full pass (a test). Premises that are read in both directions
//! wait for the sign of the answer, and go through the layers together.

use std::sync::Arc;

use fol::notation::{Code, NodeRelation, Structure, TreePlace};
use rayon::prelude::*;
use training::kernels::{
    LayerNorm, Tables, activate, add_scaled, cached_scores, cached_values, layer_norm, linear, rotary,
    rotary_table, softmax_in_place,
};
use training::{Refusal, Result};

use crate::config::{ModelConfig, NormPlace, Position, Structured};
use crate::embedding::Table;
use crate::explicit::{alibi_slopes, sinusoids};
use crate::places::{EmbeddingPlaces, Linear, Norm, Places};
use crate::{premises, structure, tree};

/// Something that predicts the next symbol step by step.
pub trait Decoder {
    /// What a hypothesis remembers.
    type State: Clone;

    /// The state before any token.
    fn start(&self) -> Self::State;

    /// Takes one token into each state and returns the logits [states, V] of what follows.
    fn step(&mut self, states: &mut [&mut Self::State], tokens: &[u32]) -> Result<&[f32]>;

    /// Takes tokens into each state, and says nothing of what follows.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    fn read(&mut self, states: &mut [&mut Self::State], tokens: &[&[u32]]) -> Result<()> {
        read_by_steps(self, states, tokens)
    }

    /// The number of symbols.
    fn vocabulary(&self) -> usize;
}

/// One token into each state that has one left, again and again.
fn read_by_steps<D: Decoder + ?Sized>(
    decoder: &mut D,
    states: &mut [&mut D::State],
    tokens: &[&[u32]],
) -> Result<()> {
    for time in 0..tokens.iter().map(|own| own.len()).max().unwrap_or(0) {
        let (mut open, next): (Vec<&mut D::State>, Vec<u32>) = states
            .iter_mut()
            .zip(tokens)
            .filter_map(|(state, own)| Some((&mut **state, *own.get(time)?)))
            .unzip();
        decoder.step(&mut open, &next)?;
    }
    Ok(())
}

/// Keys and values of each layer, [time, d] each.
type Kept = Vec<(Vec<f32>, Vec<f32>)>;

/// Keys and values of earlier tokens, and where the next one stands in the tree.
#[derive(Debug, Clone, Default)]
pub struct Cache {
    /// Those of a prompt, which all that goes on from it have in common.
    shared: Arc<Kept>,
    /// Those of what came behind it.
    layers: Kept,
    time: usize,
    place: TreePlace,
    /// Premises that wait for the sign of the answer, where they are read in both directions.
    waiting: Vec<u32>,
    answers: bool,
    /// Where attention knows of the tree: the tokens so far, and what each is to the newest.
    structure: Structure,
    relations: Vec<u8>,
}

impl Cache {
    /// What was read first is not copied where hypotheses part.
    fn share(&mut self) {
        if self.shared.is_empty() {
            let nothing = vec![(Vec::new(), Vec::new()); self.layers.len()];
            self.shared = Arc::new(std::mem::replace(&mut self.layers, nothing));
        }
    }
}

/// A token on its way through the layers.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Which of the states it belongs to.
    state: usize,
    /// Its position in the text.
    time: usize,
    /// It sees so many tokens from the first one on.
    sees: usize,
    token: u32,
}

/// Rows that go through the layers together where prompts are read: bounds the memory of a layer.
const ROWS: usize = 4096;

/// A transformer that decodes. With `attention_mask = "prefix"` the logits before the sign of an answer are NaN: of what follows
/// premises nothing is known.
#[derive(Debug)]
pub struct CachedTransformer<'a> {
    config: &'a ModelConfig,
    code: Code,
    places: Places,
    theta: &'a [f32],
    vectors: Vec<f32>,
    positions: Vec<f32>,
    slopes: Vec<f32>,
    logits: Vec<f32>,
}

impl<'a> CachedTransformer<'a> {
    /// The decoder of a model with these parameters.
    pub fn new(config: &'a ModelConfig, theta: &'a [f32]) -> Result<Self> {
        Self::in_code(config, &Code::PLAIN, theta)
    }

    /// The same over the tokens of a code, which tree positions read.
    pub fn in_code(config: &'a ModelConfig, code: &Code, theta: &'a [f32]) -> Result<Self> {
        config.check()?;
        tree::check(config, code)?;
        premises::check(config, code)?;
        let (layout, places) = Places::new(config);
        if layout.len() != theta.len() {
            return Err(Refusal::Learner("parameters of another model".to_owned()));
        }
        let vectors = Table::default().forward(&places.embedding, theta).to_vec();
        let positions = match config.position {
            Position::Sinusoidal => sinusoids(config.max_len, config.d_model),
            Position::Tree => sinusoids(config.max_len + 1, config.d_model),
            Position::Rotary => rotary_table(config.max_len, config.head_size()),
            Position::Learned => places.position.clone().map(|r| theta[r].to_vec()).unwrap_or_default(),
            Position::Alibi | Position::None => Vec::new(),
        };
        let slopes = if config.position == Position::Alibi {
            alibi_slopes(config.n_heads)
        } else {
            vec![0.0; config.n_heads]
        };
        Ok(Self { config, code: code.clone(), places, theta, vectors, positions, slopes, logits: Vec::new() })
    }

    fn apply(&self, map: &Linear, x: &[f32], rows: usize) -> Vec<f32> {
        let mut y = vec![0.0; rows * map.bias.len()];
        linear(x, &self.theta[map.weight.clone()], &self.theta[map.bias.clone()], &mut y, rows);
        y
    }

    fn norm(&self, norm: &Norm, x: &[f32]) -> Vec<f32> {
        let (weight, bias) = (&self.theta[norm.weight.clone()], &self.theta[norm.bias.clone()]);
        let (mut x, mut y) = (x.to_vec(), vec![0.0; x.len()]);
        let mut inverse = vec![0.0; x.len() / weight.len().max(1)];
        layer_norm(LayerNorm { weight, bias }, &mut x, &mut y, &mut inverse);
        y
    }

    /// The tokens that go through the layers now: those that are new, unless they are premises that wait.
    fn rows(&self, states: &mut [&mut Cache], tokens: &[&[u32]]) -> Vec<Row> {
        let mut rows = Vec::with_capacity(tokens.len());
        for (number, (state, own)) in states.iter_mut().zip(tokens).enumerate() {
            let mut time = state.time;
            for &token in *own {
                if state.answers || !premises::both_ways(self.config) {
                    rows.push(Row { state: number, time, sees: time + 1, token });
                    time += 1;
                    continue;
                }
                state.waiting.push(token);
                if premises::is_sign(token) {
                    state.answers = true;
                    let all = std::mem::take(&mut state.waiting);
                    let sees = time + all.len();
                    let row = |(token, time)| Row { state: number, time, sees, token };
                    rows.extend(all.into_iter().zip(time..).map(row));
                    time = sees;
                }
            }
        }
        rows
    }

    /// [rows, d]; the place of each state in the tree moves by its rows.
    fn embed(&self, states: &mut [&mut Cache], rows: &[Row]) -> Result<Vec<f32>> {
        let d = self.config.d_model;
        let scale = self.config.embedding_scale() as f32;
        let mut h = Vec::with_capacity(rows.len() * d);
        for &Row { state, time, token, .. } in rows {
            if time >= self.config.max_len {
                let max = self.config.max_len;
                return Err(Refusal::Learner(format!("a sequence of more than max_len = {max} tokens")));
            }
            let e = self.vectors.get(token as usize * d..(token as usize + 1) * d);
            let e = e.ok_or_else(|| Refusal::Learner(format!("token {token} is outside the vocabulary")))?;
            match self.config.position {
                Position::Sinusoidal | Position::Learned => {
                    let at = h.len();
                    h.extend_from_slice(&self.positions[time * d..][..d]);
                    add_scaled(&mut h[at..], e, scale);
                }
                Position::Tree => {
                    let place = &mut states[state].place;
                    tree::push(place, &self.code, token);
                    let at = h.len();
                    h.extend_from_slice(&self.positions[place.inside() * d..][..d]);
                    add_scaled(&mut h[at..], e, scale);
                    let decay = self.places.decay.clone().map(|r| &self.theta[r]).unwrap_or_default();
                    tree::add_pattern(tree::entries(place), decay, &mut h[at..]);
                }
                Position::Rotary | Position::Alibi | Position::None => h.extend(e.iter().map(|e| scale * e)),
            }
        }
        Ok(h)
    }

    /// Attention of each row over the cache of its state, to which the keys and values of all rows are added first.
    fn attend(&self, layer: usize, states: &mut [&mut Cache], through: &[Row], x: &[f32]) -> Vec<f32> {
        let (rows, d) = (through.len(), self.config.d_model);
        let (heads, size) = (self.config.n_heads, self.config.head_size());
        let mut qkv = self.apply(&self.places.layers[layer].qkv, x, rows); // [rows, 3d]
        if self.config.position == Position::Rotary {
            let times: Vec<usize> = through.iter().map(|row| row.time).collect();
            rotary(&self.positions, &mut qkv, &times, heads, size, false);
        }
        for (row, qkv) in through.iter().zip(qkv.chunks(3 * d)) {
            let (keys, values) = &mut states[row.state].layers[layer];
            let (k, v) = qkv[d..].split_at(d);
            keys.extend_from_slice(k);
            values.extend_from_slice(v);
        }
        let mut context = vec![0.0; rows * d];
        let caches: Vec<&Cache> = states.iter().map(|state| &**state).collect();
        let tables = structure::tables(&self.places.layers[layer], self.theta);
        // A row is a task of its own, computed in one order on one thread.
        through.par_iter().zip(qkv.par_chunks(3 * d)).zip(context.par_chunks_mut(d)).for_each(
            |((row, qkv), context)| {
                let mut weights = vec![0.0; row.sees];
                for head in 0..heads {
                    let part = head * size..(head + 1) * size;
                    let context = &mut context[part.clone()];
                    self.attend_head(
                        (layer, head),
                        row,
                        caches[row.state],
                        (&qkv[part], &tables),
                        (&mut weights, context),
                    );
                }
            },
        );
        self.apply(&self.places.layers[layer].output, &context, rows)
    }

    /// One head of a row; `weights` are room.
    fn attend_head(
        &self,
        (layer, head): (usize, usize),
        row: &Row,
        cache: &Cache,
        (q, tables): (&[f32], &Tables<&[f32]>),
        (weights, context): (&mut [f32], &mut [f32]),
    ) {
        let (d, size, time) = (self.config.d_model, q.len(), row.time);
        let scale = 1.0 / (size as f32).sqrt();
        let (keys, values) = &cache.layers[layer];
        let none = (Vec::new(), Vec::new());
        let (first_keys, first_values) = cache.shared.get(layer).unwrap_or(&none);
        let (first, rest) = weights.split_at_mut((first_keys.len() / d).min(row.sees));
        cached_scores(q, first_keys, d, head * size, scale, first);
        cached_scores(q, keys, d, head * size, scale, rest);
        let slope = self.slopes[head];
        if slope != 0.0 {
            weights.iter_mut().enumerate().for_each(|(j, w)| *w -= slope * time.abs_diff(j) as f32);
        }
        let hidden = structure::hidden(self.config);
        for (j, (weight, &number)) in weights.iter_mut().zip(&cache.relations).enumerate() {
            *weight += relation_score(tables, head, q, number, scale);
            let unseen = hidden.is_some_and(|(from, other)| head >= from && number == other);
            if unseen && j > 0 && j < time {
                *weight = f32::NEG_INFINITY;
            }
        }
        softmax_in_place(weights);
        if let Some(table) = tables.values {
            for (w, &number) in weights.iter().zip(&cache.relations) {
                let of_relation = &table[usize::from(number) * size..][..size];
                context.iter_mut().zip(of_relation).for_each(|(c, a)| *c += w * a);
            }
        }
        let (first, rest) = weights.split_at((first_keys.len() / d).min(row.sees));
        cached_values(first, first_values, d, head * size, context);
        cached_values(rest, values, d, head * size, context);
    }

    /// All layers, for rows whose keys and values their states then have; what the last one gives, [rows, d].
    fn layers(&self, states: &mut [&mut Cache], through: &[Row]) -> Result<Vec<f32>> {
        let rows = through.len();
        let mut h = self.embed(states, through)?;
        for n in 0..self.config.n_layers {
            let block = &self.places.layers[n];
            h = match self.config.norm {
                NormPlace::Post => {
                    let h = self.norm(&block.norm1, &sum(&h, &self.attend(n, states, through, &h)));
                    self.norm(&block.norm2, &sum(&h, &self.feed_forward(n, &h, rows)))
                }
                NormPlace::Pre => {
                    let x = self.norm(&block.norm1, &h);
                    let h = sum(&h, &self.attend(n, states, through, &x));
                    sum(&h, &self.feed_forward(n, &self.norm(&block.norm2, &h), rows))
                }
            };
        }
        for row in through {
            states[row.state].time += 1;
        }
        Ok(h)
    }

    fn feed_forward(&self, layer: usize, x: &[f32], rows: usize) -> Vec<f32> {
        let block = &self.places.layers[layer];
        let mut hidden = self.apply(&block.up, x, rows);
        let mut slope = vec![0.0; hidden.len()];
        activate(self.config.activation.kernel(), &mut hidden, &mut slope, self.config.d_ff);
        self.apply(&block.down, &hidden, rows)
    }
}

/// What a relation adds to the score of a query.
fn relation_score(tables: &Tables<&[f32]>, head: usize, q: &[f32], number: u8, scale: f32) -> f32 {
    let number = usize::from(number);
    let bias = tables.bias.and_then(|table| table.get(head * NodeRelation::COUNT + number));
    let along = tables.keys.and_then(|table| table.get(number * q.len()..(number + 1) * q.len()));
    let along = along.map_or(0.0, |key| q.iter().zip(key).map(|(a, b)| a * b).sum());
    bias.copied().unwrap_or(0.0) + scale * along
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

impl Decoder for CachedTransformer<'_> {
    type State = Cache;

    fn start(&self) -> Cache {
        Cache { layers: vec![(Vec::new(), Vec::new()); self.config.n_layers], ..Cache::default() }
    }

    fn step(&mut self, states: &mut [&mut Cache], tokens: &[u32]) -> Result<&[f32]> {
        let d = self.config.d_model;
        if self.config.structure != Structured::None {
            for (state, &token) in states.iter_mut().zip(tokens) {
                structure::push(&mut state.structure, &self.code, token);
                state.relations = structure::newest(&state.structure).collect();
            }
        }
        let tokens: Vec<&[u32]> = tokens.iter().map(std::slice::from_ref).collect();
        let through = self.rows(states, &tokens);
        let mut h = self.layers(states, &through)?; // [rows, d]
        let rows = through.len();
        if let Some(norm) = &self.places.norm {
            h = self.norm(norm, &h);
        }
        let head = match (&self.places.head_weight, &self.places.embedding) {
            (Some(range), _) | (None, EmbeddingPlaces::Table(range)) => range.clone(),
            (None, _) => return Err(Refusal::Learner("a tied head needs a stored table".to_owned())),
        };
        let head = Linear { weight: head, bias: self.places.head_bias.clone() };
        // What follows its newest row is asked of each state that has one.
        let newest: Vec<usize> = (0..rows)
            .filter(|&at| through.get(at + 1).is_none_or(|next| next.state != through[at].state))
            .collect();
        let last: Vec<f32> = newest.iter().flat_map(|&at| &h[at * d..(at + 1) * d]).copied().collect();
        let known = self.apply(&head, &last, newest.len()); // [states with rows, V]
        if newest.len() == states.len() {
            self.logits = known;
            return Ok(&self.logits);
        }
        let v = self.config.vocab_size;
        self.logits.clear();
        self.logits.resize(states.len() * v, f32::NAN);
        for (&at, known) in newest.iter().zip(known.chunks_exact(v)) {
            self.logits[through[at].state * v..][..v].copy_from_slice(known);
        }
        Ok(&self.logits)
    }

    fn read(&mut self, states: &mut [&mut Cache], tokens: &[&[u32]]) -> Result<()> {
        if self.config.structure != Structured::None {
            // What a token is to those before it is kept of the newest one alone.
            return read_by_steps(self, states, tokens);
        }
        let (mut from, end) = (0, states.len().min(tokens.len()));
        while from < end {
            let (mut to, mut rows) = (from, 0);
            while to < end && (to == from || rows + tokens[to].len() <= ROWS) {
                rows += tokens[to].len();
                to += 1;
            }
            let together = &mut states[from..to];
            let through = self.rows(together, &tokens[from..to]);
            self.layers(together, &through)?;
            together.iter_mut().for_each(|state| state.share());
            from = to;
        }
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        self.config.vocab_size
    }
}
