//! One training step: explicit engine, composed engine and PyTorch, beside the products' own ceiling.

use std::process::Command;

use anyhow::{Result, bail};
use candle_core::{DType, Device};
use seeded::Family;
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::ModelConfig;
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::model::Composed;
use symbolic_transformer::network::{Network, Noise};
use training::kernels::{Mat, MatMut, Precision, multiplies_half, product, product_half};
use training::optimiser::{AdamW, Moments, Update, clip_factor, global_norm};

use super::{Figure, median, times};

/// The peer, kept beside the bench.
const PEER: &str = include_str!("../../peers/torch_step.py");

pub(super) fn figures(threads: usize, python: Option<&str>) -> Result<Vec<Figure>> {
    let (ceiling, best) = ceiling(false)?;
    let product = "product 512 × 512 × 2048 in f32";
    let mut figures = vec![
        Figure::new(format!("{product}, median"), ceiling, "GFLOP/s"),
        Figure::new(format!("{product}, best"), best, "GFLOP/s"),
    ];
    if multiplies_half() {
        let (half, best) = self::ceiling(true)?;
        let product = "the same of bf16, rounding included";
        figures.push(Figure::new(format!("{product}, median"), half, "GFLOP/s").against("in f32", ceiling));
        figures.push(Figure::new(format!("{product}, best"), best, "GFLOP/s"));
    }
    for (size, sequences, tokens) in [("tiny", 64, 32), ("base", 4, 128)] {
        let Some(config) = ModelConfig::size(size) else { bail!("no size {size}") };
        let batch = batch(sequences, tokens);
        let mut plain = Explicit::new(config.clone())?;
        let explicit = step(&mut plain, &batch)?;
        let name = format!("{size} {sequences}×{tokens}, explicit step");
        // Products only: 6 FLOP for each weight and token, and causal attention as if it were full.
        let matrices = config.parameters() - config.vocab_size * config.d_model;
        let attention = 12 * config.n_layers * tokens * config.d_model;
        let flop = ((6 * matrices + attention) * batch.rows()) as f64;
        let reached = Figure::new(format!("{name}, products"), flop / explicit / 1e9, "GFLOP/s");
        figures.push(reached.against("the product alone, median", ceiling));
        let mut less = Explicit::new(config.clone())?.with_gradient_checkpointing();
        let (slower, name_less) = (step(&mut less, &batch)?, format!("{name}, gradient checkpointing"));
        figures.push(Figure::new(&name_less, slower * 1e3, "ms").against("without", explicit * 1e3));
        let megabytes = |network: &dyn Network| network.activation_bytes().unwrap_or(0) as f64 / 1e6;
        let kept = Figure::new(format!("{name_less}, activations"), megabytes(&less), "MB");
        figures.push(kept.against("without", megabytes(&plain)));
        let composed = step(&mut Composed::new(config.clone(), DType::F32, Device::Cpu)?, &batch)?;
        figures.push(Figure::new(&name, explicit * 1e3, "ms").against("composed", composed * 1e3));
        let half = if multiplies_half() {
            let mut half = Explicit::new(config.clone())?.with_precision(Precision::Half);
            let seconds = step(&mut half, &batch)?;
            let figure = Figure::new(format!("{name}, bf16"), seconds * 1e3, "ms");
            figures.push(figure.against("f32", explicit * 1e3));
            Some(seconds)
        } else {
            None
        };
        if let Some(python) = python {
            if let Some(seconds) = half {
                let peer = torch(python, &config, sequences, tokens, threads, true)?;
                let figure = Figure::new(format!("{name}, bf16"), seconds * 1e3, "ms");
                figures.push(figure.against("PyTorch eager, bf16 autocast", peer));
            }
            for half in [false, true] {
                let peer = torch(python, &config, sequences, tokens, threads, half)?;
                let what = if half { "PyTorch eager, bf16 autocast" } else { "PyTorch eager, f32" };
                figures.push(Figure::new(&name, explicit * 1e3, "ms").against(what, peer));
            }
        }
    }
    Ok(figures)
}

fn batch(sequences: usize, tokens: usize) -> Batch {
    let mut stream = Family::named("bench").stream(0);
    let rows: Vec<Vec<u16>> =
        (0..sequences).map(|_| (0..=tokens).map(|_| stream.below(663) as u16).collect()).collect();
    Batch::new(rows.iter().map(Vec::as_slice))
}

/// What the product itself reaches on this machine now, in GFLOP/s and in the numbers that a step is made of: by the
/// median, and by the least time, when nothing else is in the way.
fn ceiling(half: bool) -> Result<(f64, f64)> {
    let (m, k, n) = (512, 512, 2048);
    let [a, b, mut c] = operands(m, k, n);
    let times = times(21, || {
        let (left, right) = (Mat::new(&a, m, k), Mat::new(&b, k, n));
        let out = MatMut::new(&mut c, m, n);
        if half {
            product_half(out, false, left, right, true);
        } else {
            product(out, false, 1.0, left, right, true);
        }
        Ok(())
    })?;
    let speed = |seconds: f64| (2 * m * k * n) as f64 / seconds / 1e9;
    Ok((speed(times.median()), speed(times.least())))
}

/// Matrices of m × k, k × n and m × n, in the numbers of a step: without them a literal would make them 64 bits wide.
fn operands(m: usize, k: usize, n: usize) -> [Vec<f32>; 3] {
    [vec![0.5; m * k], vec![0.25; k * n], vec![0.0; m * n]]
}

/// Forward, backward, clipping and update, with dropout; the median in seconds.
fn step(network: &mut dyn Network, batch: &Batch) -> Result<f64> {
    let layout = network.layout().clone();
    let mut theta = layout.initialise(0);
    let adamw = AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.01, ema: 0.0 };
    let mut moments = Moments::new(&theta, 0.0);
    let mut gradient = vec![0.0; theta.len()];
    let mut update = 0;
    median(9, || {
        update += 1;
        let noise = Noise { seed: 0, update, smoothing: 0.0 };
        let loss = network.gradient(&theta, batch, noise, &mut gradient)?;
        let n = loss.targets as f64;
        let factor = clip_factor(global_norm(&layout, &gradient) / n, 1.0) / n;
        let step = Update { number: update, lr: 1e-4, factor };
        adamw.update(&layout, &mut theta, &mut moments, &mut gradient, step);
        Ok(())
    })
}

fn torch(
    python: &str,
    c: &ModelConfig,
    sequences: usize,
    tokens: usize,
    threads: usize,
    half: bool,
) -> Result<f64> {
    let mut command = Command::new(python);
    command.args(["-c", PEER]);
    for n in [c.d_model, c.n_layers, c.n_heads, c.d_ff, sequences, tokens, threads] {
        command.arg(n.to_string());
    }
    if half {
        command.arg("bf16");
    }
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().parse() {
        Ok(ms) if output.status.success() => Ok(ms),
        _ => bail!(
            "the peer did not run: {}",
            String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_measured_in_the_numbers_of_a_step() {
        let network = Explicit::new(ModelConfig::size("tiny").unwrap()).unwrap();
        let theta = network.layout().initialise(0);
        assert_eq!(size_of_val(&operands(1, 1, 1)[0][0]), size_of_val(&theta[0]));
    }
}
