//! Writing what a class lacks into weights that it has, in f64.
//!
//! **The head's bias.** A norm gives y = g∘z + b with Σz = 0. With weight 1 and bias 1 in its place the head sees
//! z + 1, and W′ = W·diag(g) + v·1ᵀ with v = (W·b + c − W·g)/d makes W′(z + 1) = W·y + c, because 1ᵀz = 0.
//!
//! **A norm after the last layer.** Where a class has none, a layer whose attention and feed-forward block are zero
//! is its two norms, one behind the other. The second is the final norm. The first must leave the last real
//! layer's output as it is, and no norm is the identity; but one is linear on inputs of variance far below ε, so
//! that layer's own last norm is split in two ([`SplitNorm`]).

use training::{Layout, Refusal, Result};

use crate::config::{ModelConfig, Position};
use crate::embedding::symbol_vectors;
use crate::explicit::sinusoids;
use crate::places::{Linear, Norm, Places};

/// ε of every norm, ours and theirs.
pub(super) const EPSILON: f64 = 1e-5;

/// How small the split norm makes its values: relative error s²/(2ε) ≈ 4.5·10⁻⁸.
const SMALL: f64 = 1.0 / 1_048_576.0;

/// A model's weights, to be read in f64.
pub(super) struct Source<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) places: Places,
    theta: &'a [f32],
    /// The symbols' vectors [V, d], not yet scaled.
    vectors: Vec<f64>,
}

/// A norm's weight and bias.
pub(super) struct NormWeights {
    pub(super) weight: Vec<f64>,
    pub(super) bias: Vec<f64>,
}

/// One norm as two: y = second(first(x)), where the first gives s·x̂ and the second is linear on that.
pub(super) struct SplitNorm {
    pub(super) first: NormWeights,
    pub(super) second: NormWeights,
}

impl<'a> Source<'a> {
    /// The weights of a model; those of another are refused.
    pub(super) fn new(config: &'a ModelConfig, theta: &'a [f32]) -> Result<Self> {
        let (layout, places): (Layout, Places) = Places::new(config);
        if layout.len() != theta.len() {
            return Err(Refusal::Learner("parameters of another model".to_owned()));
        }
        let vectors = symbol_vectors(&places.embedding, theta);
        Ok(Self { config, places, theta, vectors })
    }

    /// Entries of the flat buffer.
    fn read(&self, range: &std::ops::Range<usize>) -> Vec<f64> {
        read(self.theta, range)
    }

    /// The embedding table [V, d] as the model adds it to the positions.
    pub(super) fn embedding(&self) -> Vec<f64> {
        let scale = self.config.embedding_scale();
        self.vectors.iter().map(|e| scale * e).collect()
    }

    /// The position table [max_len, d].
    pub(super) fn positions(&self) -> Vec<f64> {
        let (rows, d) = (self.config.max_len, self.config.d_model);
        match (&self.places.position, self.config.position) {
            (Some(range), _) => self.read(range),
            (None, Position::Sinusoidal) => sinusoids(rows, d).into_iter().map(f64::from).collect(),
            (None, _) => vec![0.0; rows * d],
        }
    }

    /// A norm.
    pub(super) fn norm(&self, norm: &Norm) -> NormWeights {
        NormWeights { weight: self.read(&norm.weight), bias: self.read(&norm.bias) }
    }

    /// Weight [out, in] and bias \[out\] of a map.
    pub(super) fn map(&self, map: &Linear) -> (Vec<f64>, Vec<f64>) {
        (self.read(&map.weight), self.read(&map.bias))
    }

    /// Weight [out, in] and bias \[out\] of one of the three maps that stand together: 0 query, 1 key, 2 value.
    pub(super) fn third(&self, qkv: &Linear, part: usize) -> (Vec<f64>, Vec<f64>) {
        let share = |range: &std::ops::Range<usize>| {
            let len = range.len() / 3;
            self.read(&(range.start + part * len..range.start + (part + 1) * len))
        };
        (share(&qkv.weight), share(&qkv.bias))
    }

    /// W′ [V, d]: the head behind a norm of weight 1 and bias 1 instead of `norm`, with the head's bias in it.
    pub(super) fn head(&self, norm: &NormWeights) -> Vec<f64> {
        let d = self.config.d_model;
        let weight = match &self.places.head_weight {
            Some(range) => self.read(range),
            None => self.vectors.clone(), // tied
        };
        let NormWeights { weight: g, bias: b } = norm;
        let bias = self.read(&self.places.head_bias);
        let row = |(w, c): (&[f64], &f64)| -> Vec<f64> {
            let constant: f64 = c + w.iter().zip(b.iter().zip(g)).map(|(w, (b, g))| w * (b - g)).sum::<f64>();
            w.iter().zip(g).map(|(w, g)| w * g + constant / d as f64).collect()
        };
        weight.chunks_exact(d).zip(&bias).flat_map(row).collect()
    }
}

impl NormWeights {
    /// x̂ + 1, what [`Source::head`] stands behind.
    pub(super) fn plus_one(d: usize) -> Self {
        Self { weight: vec![1.0; d], bias: vec![1.0; d] }
    }

    /// s·x̂ first; then √ε/s·g and b on a norm that divides by √(s² + ε) ≈ √ε.
    pub(super) fn split(self) -> SplitNorm {
        let first = Self { weight: vec![SMALL; self.weight.len()], bias: vec![0.0; self.bias.len()] };
        let weight = self.weight.iter().map(|g| g * EPSILON.sqrt() / SMALL).collect();
        SplitNorm { first, second: Self { weight, bias: self.bias } }
    }
}

/// The transpose of a [rows, columns] matrix.
pub(super) fn transposed(x: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|c| x.iter().skip(c).step_by(columns.max(1)).copied()).collect()
}

fn read(theta: &[f32], range: &std::ops::Range<usize>) -> Vec<f64> {
    theta.get(range.clone()).unwrap_or_default().iter().map(|&x| f64::from(x)).collect()
}
