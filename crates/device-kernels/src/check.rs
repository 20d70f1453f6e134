//! Every operation on a device beside the CPU's, with its time: for whoever has a card and wants to know.

use std::time::Instant;

use training::kernels::{self, Activation, AttentionDropout, Dropout, LayerNorm, Precision, Sequences};

use crate::error::Result;
use crate::machine::{Attention, Buffer, Machine, Masks, Newest, Part, Products, Rows, Step};
use crate::sixteen::Sixteen;

/// One operation that was compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// What it is.
    pub operation: String,
    /// On what.
    pub shape: String,
    /// The largest distance from the CPU's result, over the largest entry of that.
    pub apart: f64,
    /// What is allowed.
    pub allowed: f64,
    /// Seconds of one, the median of five.
    pub seconds: f64,
    /// Floating point operations of one; 0 where nobody counts.
    pub operations: f64,
}

impl Checked {
    /// Whether the distance is allowed.
    pub fn right(&self) -> bool {
        self.apart <= self.allowed
    }
}

/// Numbers in ±2 that look random, by a counter: this crate draws nothing.
fn numbers(key: u32, len: usize) -> Vec<f32> {
    let mut x = key.wrapping_mul(0x9e37_79b9) | 1;
    let draw = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        (f64::from(x) / f64::from(u32::MAX) * 4.0 - 2.0) as f32
    };
    std::iter::repeat_with(draw).take(len).collect()
}

fn apart(found: &[f32], right: &[f32]) -> f64 {
    let largest = right.iter().fold(1e-30_f64, |m, v| m.max(f64::from(v.abs())));
    if found.len() < right.len() {
        return f64::INFINITY;
    }
    let far = found.iter().zip(right).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    // A NaN is far from everything.
    far.map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max) / largest
}

/// Runs that are timed together.
const TOGETHER: u32 = 10;

struct Bench<'a> {
    machine: &'a dyn Machine,
    done: Vec<Checked>,
}

impl Bench<'_> {
    /// Compares what `run` leaves in a buffer with what is right, and times it. The first run is the one that is compared.
    fn compare(
        &mut self,
        operation: impl Into<String>,
        (shape, operations): (String, f64),
        allowed: f64,
        result: &Buffer,
        right: &[f32],
        run: impl Fn() -> Result<()>,
    ) -> Result<()> {
        run()?;
        let apart = apart(&self.machine.read(result)?, right);
        let probe = self.machine.upload(&[0.0]);
        let mut times = Vec::new();
        for _ in 0..5 {
            let clock = Instant::now();
            // Handed over together, as an update hands its operations over.
            for _ in 0..TOGETHER {
                run()?;
            }
            // Waits for all that was handed over; one number comes back.
            self.machine.read(&probe)?;
            times.push(clock.elapsed().as_secs_f64() / f64::from(TOGETHER));
        }
        times.sort_by(f64::total_cmp);
        let seconds = times.get(2).copied().unwrap_or(f64::NAN);
        self.done.push(Checked { operation: operation.into(), shape, apart, allowed, seconds, operations });
        Ok(())
    }
}

/// All operations, at the sizes of a model of width `d` over so many rows.
///
/// # Errors
/// The device failed.
pub fn operations(machine: &dyn Machine, rows: usize, d: usize) -> Result<Vec<Checked>> {
    let mut bench = Bench { machine, done: Vec::new() };
    products(&mut bench, rows, d, Products::Single)?;
    for made_of in Sixteen::ALL {
        let there = machine.has(Products::OnCores(made_of)).is_ok();
        let how = if there { Products::OnCores(made_of) } else { Products::Rounded(made_of) };
        products(&mut bench, rows, d, how)?;
    }
    machine.multiply_in(Products::Single);
    by_rows(&mut bench, rows, d)?;
    attention(&mut bench, rows, d)?;
    update(&mut bench, d * d)?;
    Ok(bench.done)
}

fn products(bench: &mut Bench<'_>, rows: usize, d: usize, made_of: Products) -> Result<()> {
    let m = bench.machine;
    m.multiply_in(made_of);
    let (how, of): (String, &dyn Fn(f32) -> f32) = match &made_of {
        Products::Single => (String::new(), &|x| x),
        Products::OnCores(of) => (format!(", {} on tensor cores", of.name()), &|x| of.round(x)),
        Products::Rounded(of) => (format!(", rounded to {}", of.name()), &|x| of.round(x)),
    };
    let name = |what: &str| format!("{what}{how}");
    let all = |values: &[f32]| values.iter().map(|&x| of(x)).collect::<Vec<_>>();
    let out = 4 * d;
    let (x, dy, theta) = (numbers(1, rows * d), numbers(2, rows * out), numbers(3, out * d + out));
    let (weight, bias) = theta.split_at(out * d);
    let (on_x, on_dy, on_theta) = (m.upload(&x), m.upload(&dy), m.upload(&theta));
    // Tensor cores do not round their sums to the nearest.
    let allowed = if matches!(made_of, Products::OnCores(_)) { 1e-5 } else { 3e-6 };
    let shape = Rows { rows, width: d };
    let (text, work) = (|| format!("{rows} × {d} → {out}"), 2.0 * (rows * d * out) as f64);

    let (y, mut right) = (m.room(rows * out), vec![0.0; rows * out]);
    let (of_x, of_dy, of_weight) = (all(&x), all(&dy), all(weight));
    Precision::Single.linear(&of_x, &of_weight, bias, &mut right, rows);
    bench.compare(name("linear"), (text(), work), allowed, &y, &right, || {
        m.linear(&on_x, &on_theta, 0, out * d, &y, shape, out);
        Ok(())
    })?;

    let (dx, mut right) = (m.room(rows * d), vec![0.0; rows * d]);
    Precision::Single.linear_backward_input(&of_dy, &of_weight, &mut right, rows, false);
    bench.compare(name("linear, to its input"), (text(), work), allowed, &dx, &right, || {
        m.linear_backward_input(&on_dy, &on_theta, 0, &dx, shape, out, false);
        Ok(())
    })?;

    let (gradient, mut right) = (m.room(theta.len()), vec![0.0; theta.len()]);
    let (dweight, dbias) = right.split_at_mut(out * d);
    Precision::Single.linear_backward_weights(&of_dy, &of_x, dweight, &mut vec![0.0; out], rows);
    // The bias adds up what was not rounded.
    for dy in dy.chunks_exact(out) {
        dbias.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
    }
    bench.compare(name("linear, to its weights"), (text(), work), allowed, &gradient, &right, || {
        m.fill(&gradient, 0.0);
        m.linear_backward_weights(&on_dy, &on_x, &gradient, 0, out * d, shape, out);
        Ok(())
    })
}

fn by_rows(bench: &mut Bench<'_>, rows: usize, d: usize) -> Result<()> {
    let m = bench.machine;
    let shape = Rows { rows, width: d };
    let text = || format!("{rows} × {d}");
    let (x, theta) = (numbers(4, rows * d), numbers(5, 2 * d));
    let (on_x, on_theta) = (m.upload(&x), m.upload(&theta));

    let (normal, inverse, y) = (m.room(x.len()), m.room(rows), m.room(x.len()));
    let (mut right_n, mut right_y, mut right_inverse) = (x.clone(), vec![0.0; x.len()], vec![0.0; rows]);
    let (weight, bias) = theta.split_at(d);
    kernels::layer_norm(LayerNorm { weight, bias }, &mut right_n, &mut right_y, &mut right_inverse);
    bench.compare("norm", (text(), 0.0), 3e-6, &y, &right_y, || {
        m.norm(&on_x, &on_theta, 0, d, &normal, &inverse, &y, shape);
        Ok(())
    })?;
    let (dy, gradient) = (m.room(x.len()), m.room(2 * d));
    let (mut right, mut dw, mut db) = (x.clone(), vec![0.0; d], vec![0.0; d]);
    kernels::layer_norm_backward(weight, &mut right, &right_n, &right_inverse, &mut dw, &mut db);
    bench.compare("norm, backward", (text(), 0.0), 3e-6, &dy, &right, || {
        m.copy(&dy, &on_x);
        m.norm_backward(&on_theta, 0, d, &dy, &normal, &inverse, &gradient, shape);
        Ok(())
    })?;

    let (value, slope) = (m.room(x.len()), m.room(x.len()));
    let (mut right, mut right_slope) = (x.clone(), vec![0.0; x.len()]);
    kernels::activate(Activation::Gelu, &mut right, &mut right_slope, d);
    bench.compare("GELU", (text(), 0.0), 3e-6, &value, &right, || {
        m.copy(&value, &on_x);
        m.activate(Activation::Gelu, &value, &slope);
        Ok(())
    })?;

    let masks = Masks { dropout: Dropout::new(0.1, 7, 1, 2), first_row: 5 };
    let mut right = x.clone();
    kernels::dropout_in_place(masks.dropout, &mut right, d, masks.first_row);
    bench.compare("dropout", (text(), 0.0), 0.0, &value, &right, || {
        m.copy(&value, &on_x);
        m.drop_in_place(masks, &value, d);
        Ok(())
    })?;

    let targets: Vec<u32> = (0..rows).map(|r| (r * 7919 % d) as u32).collect();
    let (on_targets, losses) = (m.upload_places(&targets), m.room(rows));
    let mut right = x.clone();
    kernels::cross_entropy(&mut right, &targets, 0.1, true);
    bench.compare("cross-entropy", (text(), 0.0), 3e-6, &value, &right, || {
        m.copy(&value, &on_x);
        m.cross_entropy(&value, &on_targets, 0.1, &losses, shape, true);
        Ok(())
    })
}

fn places(starts: &[usize]) -> Vec<u32> {
    starts.iter().map(|&start| start as u32).collect()
}

fn attention(bench: &mut Bench<'_>, rows: usize, d: usize) -> Result<()> {
    let m = bench.machine;
    let (heads, size) = (d.div_ceil(64).max(2), d / d.div_ceil(64).max(2));
    let width = heads * size;
    let length = rows.min(128);
    let mut starts: Vec<usize> = (0..rows).step_by(length).collect();
    starts.push(rows);
    let (qkv, dcontext) = (numbers(6, rows * 3 * width), numbers(7, rows * width));
    let (tiles, on_qkv, on_dcontext) = (m.tiles(&starts), m.upload(&qkv), m.upload(&dcontext));
    let dropout = Dropout::new(0.1, 3, 1, 4);
    let form = Attention {
        heads,
        size,
        rows,
        slopes: None,
        masks: Masks { dropout, first_row: 0 },
        tiles: &tiles,
        relations: None,
    };
    let right_form = kernels::Attention {
        heads,
        size,
        relations: None,
        slopes: None,
        prefixes: None,
        dropout: dropout.map(|dropout| AttentionDropout { dropout, first_row: 0 }),
    };
    let sequences = Sequences { starts: &starts };
    let (mut weights, mut right) = (vec![0.0; heads * sequences.squares()], vec![0.0; rows * width]);
    kernels::attention(right_form, sequences, &qkv, &mut weights, &mut right);
    let text = || format!("{rows} rows of sequences of {length}, {heads} heads of {size}");
    let work = 2.0 * (sequences.squares() * width) as f64;
    let (context, sums) = (m.room(rows * width), m.room(heads * rows));
    bench.compare("attention", (text(), work), 5e-6, &context, &right, || {
        m.attention(form, &on_qkv, &context, &sums)
    })?;
    // The last rows of all sequences once more, from a cache that has the rows in their places.
    let all: Vec<u32> = (0..rows as u32).collect();
    let (on_starts, on_all) = (m.upload_places(&places(&starts)), m.upload_places(&all));
    let last = |x: &[f32], width: usize| -> Vec<f32> {
        starts.iter().skip(1).flat_map(|end| x[(end - 1) * width..end * width].iter().copied()).collect()
    };
    let (cache, on_last) = (m.room(rows * 2 * width), m.upload(&last(&qkv, 3 * width)));
    m.keep(&on_qkv, &on_all, &cache, width);
    let newest = Newest { heads, size, slopes: None, starts: &on_starts, members: &on_all, relations: None };
    let plain =
        kernels::Attention { heads, size, slopes: None, prefixes: None, relations: None, dropout: None };
    let (mut kept, mut right) = (weights.clone(), vec![0.0; rows * width]);
    kernels::attention(plain, sequences, &qkv, &mut kept, &mut right);
    let (hypotheses, context_of_last) = (starts.len() - 1, m.room((starts.len() - 1) * width));
    let shape = format!("{hypotheses} hypotheses of {length} tokens, {heads} heads of {size}");
    let cost = 4.0 * (rows * width) as f64;
    bench.compare(
        "attention of newest tokens",
        (shape, cost),
        5e-6,
        &context_of_last,
        &last(&right, width),
        || m.attention_of_newest(newest, &on_last, &cache, &context_of_last),
    )?;
    let (dqkv, mut right) = (m.room(qkv.len()), vec![0.0; qkv.len()]);
    kernels::attention_backward(right_form, sequences, &qkv, &weights, &dcontext, &mut right);
    let no_tables = m.room(1);
    bench.compare("attention, backward", (text(), 2.5 * work), 5e-6, &dqkv, &right, || {
        m.attention_backward(form, &on_qkv, &context, &sums, &on_dcontext, &dqkv, &no_tables);
        Ok(())
    })
}

fn update(bench: &mut Bench<'_>, n: usize) -> Result<()> {
    let m = bench.machine;
    let (theta, g) = (numbers(8, n), numbers(9, n));
    let step = Step { clip: 0.5, beta1: 0.9, beta2: 0.98, rate: 1e-2, correction: 50.0, eps: 1e-9 };
    let (keep, on_start, on_g) = (0.999, m.upload(&theta), m.upload(&g));
    let right: Vec<f32> = theta
        .iter()
        .zip(&g)
        .map(|(t, g)| {
            let g = f64::from(*g) * f64::from(step.clip);
            let (first, second) = ((1.0 - f64::from(step.beta1)) * g, (1.0 - f64::from(step.beta2)) * g * g);
            let root = (second * f64::from(step.correction)).sqrt() + f64::from(step.eps);
            (f64::from(keep) * f64::from(*t) - f64::from(step.rate) * first / root) as f32
        })
        .collect();
    let [theta, first, second, gradient] = [0, 1, 2, 3].map(|_| m.room(n));
    bench.compare("AdamW", (format!("{n} weights"), 0.0), 1e-6, &theta, &right, || {
        m.copy(&theta, &on_start);
        m.fill(&first, 0.0);
        m.fill(&second, 0.0);
        m.copy(&gradient, &on_g);
        m.adamw(&theta, &first, &second, &gradient, step, keep, 0, n);
        Ok(())
    })?;
    let (total, square) = (m.room(1), g.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>());
    bench.compare("Σ g²", (format!("{n} numbers"), 0.0), 1e-6, &total, &[square as f32], || {
        m.sum(&on_g, true, &total, 0);
        Ok(())
    })?;
    let (to, right): (Buffer, Vec<f32>) = (m.room(n), g.iter().map(|v| v + 2.0).collect());
    bench.compare("sum of two", (format!("{n} numbers"), 0.0), 0.0, &to, &right, || {
        m.fill(&to, 2.0);
        m.add(Part { of: &to, at: 0 }, &on_g);
        Ok(())
    })
}
