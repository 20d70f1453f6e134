//! Large matrix products: on the crate `training`'s kernels in double or single precision, or on an
//! accelerator through candle. The only place of the crate that knows candle.
//!
//! Enter at [`Products`]. Everything else about dense tensors (orders of contraction, index
//! functions, reductions) is decided above and is the same for every kind of product.

use candle_core::{DType, Tensor};
use training::device::DeviceSpec;
use training::kernels::{Mat, MatMut, product};

use crate::error::{Code, Report, Result};

/// How the products of dense tensors are taken.
#[derive(Debug, Clone, Default)]
pub enum Products {
    /// In 64 bits on the processor.
    #[default]
    Double,
    /// In 32 bits on the processor.
    Single,
    /// In 32 bits on a device.
    Device(candle_core::Device),
}

/// The shape of a batched product: `[batch, m, k]` times `[batch, k, n]`.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The number of products.
    pub batch: usize,
    /// Rows of the left operand.
    pub m: usize,
    /// Columns of the left operand, rows of the right one.
    pub k: usize,
    /// Columns of the right operand.
    pub n: usize,
}

impl Products {
    /// The products of a device by its name: `cpu`, `cuda`, `cuda:1`, `metal`.
    ///
    /// # Errors
    /// What the device's driver says, or that this build has no such device.
    pub fn on(device: &str) -> std::result::Result<Products, String> {
        let spec: DeviceSpec = device.parse().map_err(|error| format!("{error}"))?;
        match spec {
            DeviceSpec::Cpu => Ok(Products::Double),
            spec => spec.open().map(Products::Device).map_err(|error| error.to_string()),
        }
    }

    /// `out[b] = x[b] y[b]`.
    ///
    /// # Errors
    /// `too-large`, where a device refuses the product.
    pub fn multiply(&self, shape: Shape, x: &[f64], y: &[f64], out: &mut [f64]) -> Result<()> {
        match self {
            Products::Double => {
                double(shape, x, y, out);
                Ok(())
            }
            Products::Single => {
                single(shape, x, y, out);
                Ok(())
            }
            Products::Device(device) => on_device(device, shape, x, y, out).map_err(|error| {
                Report::new(
                    Code::TooLarge,
                    crate::ast::Span::default(),
                    format!("the device refuses: {error}"),
                )
            }),
        }
    }
}

/// Multiply-adds from which a product is shared among threads.
const PARALLEL: usize = 1 << 18;

fn double(shape: Shape, x: &[f64], y: &[f64], out: &mut [f64]) {
    let Shape { m, k, n, .. } = shape;
    let parallel = m * k * n >= PARALLEL;
    let operands = x.chunks_exact((m * k).max(1)).zip(y.chunks_exact((k * n).max(1)));
    for ((x, y), out) in operands.zip(out.chunks_exact_mut((m * n).max(1))) {
        product(MatMut::new(out, m, n), false, 1.0, Mat::new(x, m, k), Mat::new(y, k, n), parallel);
    }
}

fn single(shape: Shape, x: &[f64], y: &[f64], out: &mut [f64]) {
    let Shape { m, k, n, .. } = shape;
    let narrow = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<f32>>();
    let (x, y) = (narrow(x), narrow(y));
    let mut result = vec![0.0_f32; out.len()];
    let parallel = m * k * n >= PARALLEL;
    let operands = x.chunks_exact((m * k).max(1)).zip(y.chunks_exact((k * n).max(1)));
    for ((x, y), out) in operands.zip(result.chunks_exact_mut((m * n).max(1))) {
        product(MatMut::new(out, m, n), false, 1.0, Mat::new(x, m, k), Mat::new(y, k, n), parallel);
    }
    for (slot, value) in out.iter_mut().zip(result) {
        *slot = f64::from(value);
    }
}

fn on_device(
    device: &candle_core::Device,
    shape: Shape,
    x: &[f64],
    y: &[f64],
    out: &mut [f64],
) -> candle_core::Result<()> {
    let Shape { batch, m, k, n } = shape;
    let x = Tensor::from_slice(x, (batch, m, k), &candle_core::Device::Cpu)?.to_dtype(DType::F32)?;
    let y = Tensor::from_slice(y, (batch, k, n), &candle_core::Device::Cpu)?.to_dtype(DType::F32)?;
    let product = training::composed::matmul(&x.to_device(device)?, &y.to_device(device)?)?; // [batch, m, n]
    let values = product.to_device(&candle_core::Device::Cpu)?.to_dtype(DType::F64)?.flatten_all()?;
    out.copy_from_slice(&values.to_vec1::<f64>()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of product against plain loops; a device is stood for by candle's processor.
    #[test]
    fn products_agree_with_loops() {
        let mut stream = seeded::Family::named("dense").stream(0);
        for _ in 0..50 {
            let mut size = || 1 + stream.below(20) as usize;
            let shape = Shape { batch: size() % 3 + 1, m: size(), k: size(), n: size() };
            let Shape { batch, m, k, n } = shape;
            let x: Vec<f64> = (0..batch * m * k).map(|_| stream.normal()).collect();
            let y: Vec<f64> = (0..batch * k * n).map(|_| stream.normal()).collect();
            let entry = |at: usize| {
                let (b, i, j) = (at / (m * n), at / n % m, at % n);
                (0..k).map(|l| x[(b * m + i) * k + l] * y[(b * k + l) * n + j]).sum::<f64>()
            };
            let kinds = [Products::Double, Products::Single, Products::Device(candle_core::Device::Cpu)];
            for (products, tolerance) in kinds.iter().zip([1e-12, 1e-4, 1e-4]) {
                let mut out = vec![0.0; batch * m * n];
                products.multiply(shape, &x, &y, &mut out).unwrap();
                for (at, value) in out.iter().enumerate() {
                    assert!((value - entry(at)).abs() < tolerance, "{products:?} {shape:?}");
                }
            }
        }
    }
}
