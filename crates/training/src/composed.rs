//! The composed form of the fused operations: candle's operations, those whose gradients are right.
//!
//! Slow and obvious, generic over dtype and device. The explicit engine is compared with it.

use candle_core::{D, DType, Result, Tensor};

/// The matrix product. candle 0.11.1 returns wrong values for some strided operands on the CPU, so both are made
/// contiguous (free where they already are).
#[expect(clippy::disallowed_methods, reason = "the one place where matmul is called")]
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.contiguous()?.matmul(&b.contiguous()?)
}

/// x·Wᵀ + b for x of any rank: flattened to two dimensions, because candle's own layer is wrong on strided input.
pub fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let (out, inner) = weight.dims2()?;
    let mut shape = x.dims().to_vec();
    let rows = x.elem_count() / inner.max(1);
    if let Some(last) = shape.last_mut() {
        *last = out;
    }
    let y = matmul(&x.reshape((rows, inner))?, &weight.t()?)?; // [rows, out]
    y.broadcast_add(bias)?.reshape(shape)
}

/// Softmax over the last axis.
pub fn softmax(x: &Tensor) -> Result<Tensor> {
    let shifted = x.broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?;
    let e = shifted.exp()?;
    e.broadcast_div(&e.sum_keepdim(D::Minus1)?)
}

/// Layer normalisation over the last axis, two passes.
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, epsilon: f64) -> Result<Tensor> {
    let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let normal = centred.broadcast_div(&(variance + epsilon)?.sqrt()?)?;
    normal.broadcast_mul(weight)?.broadcast_add(bias)
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
    let shifted = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?.detach())?;
    let log_sum = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
    let picked = shifted.gather(&targets.unsqueeze(1)?, 1)?; // [rows, 1]
    ((log_sum - picked)?.squeeze(1)? * weights.to_dtype(logits.dtype())?)?.sum_all()
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
