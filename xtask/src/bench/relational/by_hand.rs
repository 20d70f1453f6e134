//! The encoder block as dense code on candle, with candle's own gradients, in 64 bits as the others.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};
use candle_core::{D, DType, Device, Tensor, Var};
use serde_json::Value as Json;
use training::composed::{layer_norm, matmul, softmax};

use super::ours::{flat, median};

/// Medians of the seconds to evaluate the block and to take a step; the sum of its outputs, and after one step.
pub(super) struct Dense {
    pub(super) evaluate: f64,
    pub(super) step: f64,
    pub(super) value: Vec<f64>,
    pub(super) after: Vec<f64>,
}

/// What is given, as tensors.
struct Block {
    x: Tensor,
    target: Tensor,
    /// Gain and offset that change nothing.
    one: Tensor,
    zero: Tensor,
    weights: BTreeMap<String, Var>,
}

/// Rows of numbers as a matrix.
fn matrix(rows: &Json) -> Result<Tensor> {
    let values = flat(rows);
    let high = rows.as_array().context("no rows")?.len();
    let wide = values.len() / high.max(1);
    Ok(Tensor::from_vec(values, (high, wide), &Device::Cpu)?)
}

impl Block {
    fn of(given: &Json) -> Result<Block> {
        let weights = given["weights"].as_object().context("no weights")?;
        let weights =
            weights.iter().map(|(name, rows)| Ok((name.clone(), Var::from_tensor(&matrix(rows)?)?)));
        let x = matrix(&given["x"])?;
        let width = x.dim(1)?;
        Ok(Block {
            target: Tensor::new(flat(&given["target"]), &Device::Cpu)?,
            one: Tensor::ones(width, DType::F64, &Device::Cpu)?,
            zero: Tensor::zeros(width, DType::F64, &Device::Cpu)?,
            weights: weights.collect::<Result<_>>()?,
            x,
        })
    }

    /// x·Wᵀ
    fn through(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let weight = self.weights.get(name).with_context(|| format!("no {name}"))?;
        Ok(matmul(x, &weight.t()?)?)
    }

    fn norm(&self, x: &Tensor) -> Result<Tensor> {
        Ok(layer_norm(x, &self.one, &self.zero, 1e-10)?)
    }

    fn total(&self) -> Result<Tensor> {
        let [q, k, v] = ["Wq", "Wk", "Wv"].map(|name| self.through(&self.x, name));
        let weights = softmax(&(matmul(&q?, &k?.t()?)? / 4.0)?)?; // [query, key]
        let attention = matmul(&weights, &v?)?; // [token, width]
        let norm = self.norm(&(self.through(&attention, "Wo")? + &self.x)?)?;
        let hidden = self.through(&norm, "W1")?.relu()?; // [token, unit]
        let out = self.norm(&(&norm + self.through(&hidden, "W2")?)?)?;
        Ok(self.through(&out, "P")?.sum(0)?)
    }

    fn step(&self, rate: f64) -> Result<()> {
        let loss = (self.total()? - &self.target)?.sqr()?.sum(D::Minus1)?;
        let gradients = loss.backward()?;
        for weight in self.weights.values() {
            let gradient = gradients.get(weight).context("no gradient")?;
            weight.set(&(weight.as_tensor() - (gradient * rate)?)?)?;
        }
        Ok(())
    }
}

/// The median of the seconds of an act, after one that does not count.
fn timed(runs: usize, mut act: impl FnMut() -> Result<()>) -> Result<f64> {
    act()?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let since = Instant::now();
        act()?;
        times.push(since.elapsed().as_secs_f64());
    }
    Ok(median(times))
}

/// Measures it.
pub(super) fn measured(given: &Json, rate: f64, runs: usize) -> Result<Dense> {
    let block = Block::of(given)?;
    let value = block.total()?.to_vec1()?;
    block.step(rate)?;
    let after = block.total()?.to_vec1()?;
    let evaluate = timed(runs, || block.total().map(drop))?;
    let step = timed(runs, || block.step(rate))?;
    Ok(Dense { evaluate, step, value, after })
}
