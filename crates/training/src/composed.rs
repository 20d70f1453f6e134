//! The composed form of the fused operations: candle's and candle-nn's operations, those whose values and gradients are
//! right.
//!
//! Slow and obvious, generic over dtype and device. The explicit engine is compared with it. What is written out here
//! is what candle 0.11.1 has wrong; `tests/it/upstream_traps.rs` holds each fault, under the name said beside it.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::{Module, ops};

/// The matrix product. candle 0.11.1 returns wrong values for some strided operands on the CPU, so both are made
/// contiguous (free where they already are).
#[expect(clippy::disallowed_methods, reason = "the one place where matmul is called")]
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.contiguous()?.matmul(&b.contiguous()?)
}

/// x·Wᵀ + b for x of any rank: flattened to contiguous rows, because the layer is wrong on strided input of higher rank.
#[expect(clippy::disallowed_types, reason = "right on contiguous rows, and given nothing else")]
pub fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let (out, inner) = weight.dims2()?;
    let mut shape = x.dims().to_vec();
    let rows = x.elem_count() / inner.max(1);
    if let Some(last) = shape.last_mut() {
        *last = out;
    }
    let layer = candle_nn::Linear::new(weight.clone(), Some(bias.clone()));
    layer.forward(&x.reshape((rows, inner))?.contiguous()?)?.reshape(shape) // [rows, out], then as x
}

/// Softmax over the last axis. (`softmax_last_dim` has no gradient.)
pub fn softmax(x: &Tensor) -> Result<Tensor> {
    ops::softmax(x, D::Minus1)
}

/// Layer normalisation over the last axis, two passes. (`LayerNorm` and `ops::layer_norm` cut the graph.)
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, epsilon: f32) -> Result<Tensor> {
    ops::layer_norm_slow(x, weight, bias, epsilon)
}

/// x·Φ(x), with candle's `erf`, whose gradient has full precision (its `gelu_erf` uses constants of six digits).
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    let cdf = ((x * std::f64::consts::FRAC_1_SQRT_2)?.erf()? + 1.0)?;
    (x * (cdf * 0.5)?)?.contiguous()
}

/// The tanh approximation of GELU.
pub fn gelu_tanh(x: &Tensor) -> Result<Tensor> {
    let cube = (x.sqr()?.mul(x)? * 0.044_715)?;
    let u = ((x + cube)? * (2.0 / std::f64::consts::PI).sqrt())?;
    x * ((u.tanh()? + 1.0)? * 0.5)?
}

/// Σ −ln softmax(logits)\[target\] over rows; `weights` \[rows\] is 1 for a valid target and 0 for padding.
pub fn cross_entropy(logits: &Tensor, targets: &Tensor, weights: &Tensor) -> Result<Tensor> {
    let log_q = ops::log_softmax(logits, D::Minus1)?.gather(&targets.unsqueeze(1)?, 1)?; // [rows, 1]
    (log_q.squeeze(1)? * weights.to_dtype(logits.dtype())?)?.sum_all()?.neg()
}

/// A tensor from f32 entries, in the dtype and on the device of the computation.
pub fn tensor(
    entries: &[f32],
    shape: &[usize],
    dtype: DType,
    device: &candle_core::Device,
) -> Result<Tensor> {
    Tensor::from_slice(entries, shape, device)?.to_dtype(dtype)
}
