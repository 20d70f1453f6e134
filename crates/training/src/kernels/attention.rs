//! Attention over sequences laid end to end: of each row to itself and to earlier ones, and, where a sequence has a prefix, of
//! the rows of the prefix to each other.
//!
//! A batch is ragged: the rows of all sequences stand in one row block, and `Sequences` says where each begins.
//! So there is no padding to compute, and a batch that was bucketed, packed or plain is the same to this kernel.
//! Each (sequence, head) is one task: its scores stay in cache, its products run on one thread.

use rayon::prelude::*;

use super::math::softmax_row;
use super::relations::Head;
use super::{Dropout, Mat, MatMut, Relations, Tables, multiversion, product};

/// Where each sequence of a ragged batch begins: `starts[i]..starts[i + 1]` are the rows of sequence i.
#[derive(Debug, Clone, Copy)]
pub struct Sequences<'a> {
    /// From 0, ascending; the last entry is the number of rows.
    pub starts: &'a [usize],
}

impl Sequences<'_> {
    fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.starts.windows(2).map(|w| w[0]..w[1])
    }

    /// The number of entries of all attention matrices of one head: Σ n².
    pub fn squares(&self) -> usize {
        self.ranges().map(|r| r.len() * r.len()).sum()
    }
}

/// The form of one attention layer.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// The number of heads.
    pub heads: usize,
    /// The width of a head; the model's width is heads · size.
    pub size: usize,
    /// Slope of the linear distance penalty for each head (ALiBi), if there is one.
    pub slopes: Option<&'a [f32]>,
    /// For each sequence how many of its first rows see one another, later ones too (a prefix mask: Raffel et al. 2020, section
    /// 3.2.1); without it none does. Relations are those of a row to itself and to earlier ones, with a prefix too.
    pub prefixes: Option<&'a [usize]>,
    /// What rows are to each other, if the layer knows it.
    pub relations: Option<Relations<'a>>,
    /// Dropout on the attention weights.
    pub dropout: Option<AttentionDropout>,
}

/// Masks of attention weights, by the query's row in the whole batch, the head and the key's place.
#[derive(Debug, Clone, Copy)]
pub struct AttentionDropout {
    /// The masks.
    pub dropout: Dropout,
    /// The number of the first row in the whole batch.
    pub first_row: usize,
}

impl Attention<'_> {
    fn width(&self) -> usize {
        self.heads * self.size
    }

    /// How many of the first rows of a sequence see one another.
    fn prefix(&self, sequence: usize) -> usize {
        self.prefixes.and_then(|prefixes| prefixes.get(sequence)).copied().unwrap_or(0)
    }

    /// The relations of a sequence of n rows whose entries begin at `at`.
    fn head(&self, head: usize, at: usize, n: usize) -> Option<Head<'_>> {
        let of = self.relations?;
        let numbers = &of.numbers[at..at + n * n];
        Some(Head { numbers, n, size: self.size, head, of })
    }

    fn row_keys(&self, head: usize, rows: std::ops::Range<usize>) -> Option<(Dropout, Vec<u32>)> {
        let d = self.dropout?;
        let key = |r| d.dropout.row(((d.first_row + r) * self.heads + head) as u64);
        Some((d.dropout, rows.map(key).collect()))
    }
}

multiversion! {
    /// Row i of the scores becomes softmax over keys 0..=i, and over all of the prefix where it is in it; other keys get weight 0.
    fn masked_softmax(scores: &mut [f32], n: usize, prefix: usize, slope: f32) {
        for (i, row) in scores.chunks_exact_mut(n.max(1)).enumerate() {
            let (seen, hidden) = row.split_at_mut((i + 1).max(prefix).min(n));
            hidden.fill(0.0);
            if slope != 0.0 {
                for (j, s) in seen.iter_mut().enumerate() {
                    *s -= slope * i.abs_diff(j) as f32;
                }
            }
            softmax_row(seen);
        }
    }
}

multiversion! {
    fn mask_rows(weights: &[f32], out: &mut [f32], n: usize, dropout: Dropout, keys: &[u32]) {
        for ((w, o), &key) in weights.chunks_exact(n.max(1)).zip(out.chunks_exact_mut(n.max(1))).zip(keys) {
            for ((j, w), o) in (0_u32..).zip(w).zip(o) {
                *o = w * dropout.factor(key, j);
            }
        }
    }
}

multiversion! {
    /// dS from dA: softmax backward, row by row over the keys that were seen.
    fn softmax_backward(da: &mut [f32], weights: &[f32], n: usize, prefix: usize) {
        for (i, (g, w)) in da.chunks_exact_mut(n.max(1)).zip(weights.chunks_exact(n.max(1))).enumerate() {
            let seen = (i + 1).max(prefix).min(n);
            let (g, hidden) = g.split_at_mut(seen);
            hidden.fill(0.0);
            let w = w.get(..seen).unwrap_or(w);
            let dot = super::math::sum_lanes(g, w, |a, b| a * b);
            for (g, w) in g.iter_mut().zip(w) {
                *g = (*g - dot) * w;
            }
        }
    }
}

/// context ← softmax(q·kᵀ/√size)·v for each sequence and head.
///
/// Shapes: qkv [rows, 3·width] with query, key and value beside each other, context [rows, width], weights
/// [heads · Σ n²] (for the backward pass; the attention weights before dropout, sequence by sequence, head by head).
pub fn attention(
    form: Attention<'_>,
    sequences: Sequences<'_>,
    qkv: &[f32],
    weights: &mut [f32],
    context: &mut [f32],
) {
    let width = form.width();
    let tasks = split_by_sequence(sequences, weights, context, form.heads, width);
    tasks.into_par_iter().enumerate().for_each(|(sequence, (at, rows, weights, context))| {
        let (n, prefix) = (rows.len(), form.prefix(sequence));
        let qkv = &qkv[rows.start * 3 * width..rows.end * 3 * width];
        let mut dropped = Vec::new();
        for (head, weights) in weights.chunks_exact_mut((n * n).max(1)).enumerate() {
            let [q, k, v] = [0, 1, 2].map(|part| head_view(qkv, n, part * width + head * form.size, &form));
            let scale = 1.0 / (form.size as f32).sqrt();
            product(MatMut::new(weights, n, n), false, scale, q, k.t(), false);
            let relations = form.head(head, at, n);
            if let Some(relations) = &relations {
                relations.score(q, scale, weights);
            }
            let slope = form.slopes.and_then(|s| s.get(head)).copied().unwrap_or(0.0);
            masked_softmax(weights, n, prefix, slope);
            let applied: &[f32] = match form.row_keys(head, rows.clone()) {
                None => weights,
                Some((dropout, keys)) => {
                    dropped.resize(n * n, 0.0);
                    mask_rows(weights, &mut dropped, n, dropout, &keys);
                    &dropped
                }
            };
            let out = &mut context[head * form.size..];
            let context = MatMut::strided(out, n, form.size, width);
            product(context, false, 1.0, Mat::new(applied, n, n), v, false);
            if let Some(relations) = &relations {
                relations.add_values(applied, MatMut::strided(out, n, form.size, width));
            }
        }
    });
}

/// dqkv from dcontext, and what is added to the gradients of the relations' tables, shaped as these are. Shapes and `weights` as
/// in [`attention`]; dqkv is overwritten. The tables' gradients are summed over the sequences in their order.
pub fn attention_backward(
    form: Attention<'_>,
    sequences: Sequences<'_>,
    qkv: &[f32],
    weights: &[f32],
    dcontext: &[f32],
    dqkv: &mut [f32],
) -> Tables<Vec<f32>> {
    let zero = |tables: Tables<&[f32]>| tables.map(|table| vec![0.0; table.len()]);
    let zero = || form.relations.map(|relations| zero(relations.tables)).unwrap_or_default();
    let width = form.width();
    let mut tasks = Vec::new();
    let (mut weights, mut rest) = (weights, dqkv);
    let mut at = 0;
    for (sequence, rows) in sequences.ranges().enumerate() {
        let squares = rows.len() * rows.len();
        let (w, weights_after) = weights.split_at(form.heads * squares);
        let (d, rest_after) = rest.split_at_mut(3 * width * rows.len());
        tasks.push((at, form.prefix(sequence), rows, w, d));
        (weights, rest) = (weights_after, rest_after);
        at += squares;
    }
    let backward = |(at, prefix, rows, weights, dqkv): WayBack<'_>| {
        let mut tables = zero();
        let n = rows.len();
        let qkv = &qkv[rows.start * 3 * width..rows.end * 3 * width];
        let dcontext = &dcontext[rows.start * width..rows.end * width];
        let (mut da, mut dropped) = (vec![0.0; n * n], Vec::new());
        for (head, weights) in weights.chunks_exact((n * n).max(1)).enumerate() {
            let offset = head * form.size;
            let [q, k, v] = [0, 1, 2].map(|part| head_view(qkv, n, part * width + offset, &form));
            let dc = Mat::strided(&dcontext[offset..], n, form.size, width);
            let masks = form.row_keys(head, rows.clone());
            let applied: &[f32] = match &masks {
                None => weights,
                Some((dropout, keys)) => {
                    dropped.resize(n * n, 0.0);
                    mask_rows(weights, &mut dropped, n, *dropout, keys);
                    &dropped
                }
            };
            let part = |p: usize| p * width + offset;
            let dv = MatMut::strided(&mut dqkv[part(2)..], n, form.size, 3 * width);
            product(dv, false, 1.0, Mat::new(applied, n, n).t(), dc, false);
            product(MatMut::new(&mut da, n, n), false, 1.0, dc, v.t(), false);
            let relations = form.head(head, at, n);
            if let Some(relations) = &relations {
                relations.values_backward(applied, dc, &mut da, &mut tables);
            }
            if let Some((dropout, keys)) = &masks {
                let unmasked = da.clone();
                mask_rows(&unmasked, &mut da, n, *dropout, keys);
            }
            softmax_backward(&mut da, weights, n, prefix);
            let scale = 1.0 / (form.size as f32).sqrt();
            let dq = MatMut::strided(&mut dqkv[part(0)..], n, form.size, 3 * width);
            product(dq, false, scale, Mat::new(&da, n, n), k, false);
            let dk = MatMut::strided(&mut dqkv[part(1)..], n, form.size, 3 * width);
            product(dk, false, scale, Mat::new(&da, n, n).t(), q, false);
            if let Some(relations) = &relations {
                let dq = MatMut::strided(&mut dqkv[part(0)..], n, form.size, 3 * width);
                relations.scores_backward(&da, q, scale, dq, &mut tables);
            }
        }
        tables
    };
    if form.relations.is_none_or(|relations| relations.tables.is_empty()) {
        tasks.into_par_iter().for_each(|task| drop(backward(task)));
        return zero();
    }
    let mut total = zero();
    let parts: Vec<Tables<Vec<f32>>> = tasks.into_par_iter().map(backward).collect();
    for part in &parts {
        let pairs =
            [(&mut total.bias, &part.bias), (&mut total.keys, &part.keys), (&mut total.values, &part.values)];
        for (total, part) in pairs.into_iter().filter_map(|(total, part)| total.as_mut().zip(part.as_ref())) {
            super::add_into(total, part);
        }
    }
    total
}

fn head_view<'a>(qkv: &'a [f32], n: usize, offset: usize, form: &Attention<'_>) -> Mat<'a> {
    Mat::strided(&qkv[offset..], n, form.size, 3 * form.width())
}

/// Where its n² entries begin, its prefix, its rows, its weights, the gradient of its queries, keys and values.
type WayBack<'a> = (usize, usize, std::ops::Range<usize>, &'a [f32], &'a mut [f32]);

/// Where its n² entries begin, its rows, its weights, its context.
type Task<'a> = (usize, std::ops::Range<usize>, &'a mut [f32], &'a mut [f32]);

fn split_by_sequence<'a>(
    sequences: Sequences<'_>,
    mut weights: &'a mut [f32],
    mut context: &'a mut [f32],
    heads: usize,
    width: usize,
) -> Vec<Task<'a>> {
    let (mut tasks, mut at) = (Vec::new(), 0);
    for rows in sequences.ranges() {
        let squares = rows.len() * rows.len();
        let (w, weights_after) = weights.split_at_mut(heads * squares);
        let (c, context_after) = context.split_at_mut(width * rows.len());
        tasks.push((at, rows, w, c));
        (weights, context) = (weights_after, context_after);
        at += squares;
    }
    tasks
}
