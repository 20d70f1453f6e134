//! Large matrix products: on the crate `training`'s kernels in double or single precision, or on an
//! accelerator through candle. The only place of the crate that knows candle.
//!
//! Enter at [`Products`]. Everything else about dense tensors (orders of contraction, index
//! functions, reductions) is decided above and is the same for every kind of product.

use candle_core::{DType, Tensor};
use rayon::prelude::*;
use training::device::DeviceSpec;
use training::kernels::{Mat, MatMut, Real, product};

use crate::error::{Code, Refusal, Result};

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

/// Matrices in a slice, and the steps from matrix to matrix, row to row, column to column (one of
/// the last two is 1).
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a, T = f64> {
    /// The numbers.
    pub values: &'a [T],
    /// The steps.
    pub steps: [usize; 3],
}

impl<'a, T> Operand<'a, T> {
    /// Matrices one behind the other, each row by row.
    pub fn new(values: &'a [T], rows: usize, columns: usize) -> Operand<'a, T> {
        Operand { values, steps: [rows * columns, columns, 1] }
    }

    /// The matrix at a position of the batch.
    fn matrix(self, at: usize, rows: usize, columns: usize) -> Mat<'a, T> {
        let values = &self.values[at * self.steps[0]..];
        match self.steps {
            [_, row, 1] => Mat::strided(values, rows, columns, row),
            [_, _, column] if rows == 1 => Mat::strided(values, columns, 1, column).t(),
            [_, row, _] if columns == 1 => Mat::strided(values, rows, 1, row),
            [_, _, column] => Mat::strided(values, columns, rows, column).t(),
        }
    }

    /// The same in one piece.
    fn together(self, batch: usize, rows: usize, columns: usize) -> Vec<T>
    where
        T: Copy,
    {
        let [matrix, row, column] = self.steps;
        let place = |at: usize| {
            let (b, i, j) = (at / (rows * columns), at / columns % rows, at % columns);
            b * matrix + i * row + j * column
        };
        (0..batch * rows * columns).map(|at| self.values[place(at)]).collect()
    }
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
    pub fn multiply(&self, shape: Shape, x: Operand<'_>, y: Operand<'_>, out: &mut [f64]) -> Result<()> {
        match self {
            Products::Double => {
                double(shape, x, y, out);
                Ok(())
            }
            Products::Single => {
                single(shape, x, y, out);
                Ok(())
            }
            Products::Device(device) => {
                let (x, y) =
                    (x.together(shape.batch, shape.m, shape.k), y.together(shape.batch, shape.k, shape.n));
                on_device(device, shape, &x, &y, out).map_err(|error| {
                    Refusal::new(
                        Code::TooLarge,
                        crate::ast::Span::default(),
                        format!("the device refuses: {error}"),
                    )
                })
            }
        }
    }
}

/// Multiply-adds from which a product is shared among threads.
const PARALLEL: usize = 1 << 18;

fn double(shape: Shape, x: Operand<'_>, y: Operand<'_>, out: &mut [f64]) {
    batched(shape, x, y, out);
}

/// The products of a batch: each on all threads, or, where they are many, each on one.
fn batched<T: Real + Send + Sync>(shape: Shape, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
    let Shape { batch, m, k, n } = shape;
    let one = |(at, out): (usize, &mut [T]), parallel: bool| {
        product(MatMut::new(out, m, n), false, T::ONE, x.matrix(at, m, k), y.matrix(at, k, n), parallel);
    };
    let matrices = (m * n).max(1);
    let threads = rayon::current_num_threads();
    if batch >= 2 * threads && threads > 1 && batch * m * k * n >= PARALLEL {
        let least = (PARALLEL / (m * k * n).max(1)).max(1);
        out.par_chunks_exact_mut(matrices).with_min_len(least).enumerate().for_each(|each| one(each, false));
    } else {
        let parallel = m * k * n >= PARALLEL;
        out.chunks_exact_mut(matrices).enumerate().for_each(|each| one(each, parallel));
    }
}

fn single(shape: Shape, x: Operand<'_>, y: Operand<'_>, out: &mut [f64]) {
    let narrow = |values: &[f64]| {
        let mut result = vec![0.0_f32; values.len()];
        let pairs = result.par_chunks_mut(PARALLEL).zip(values.par_chunks(PARALLEL));
        pairs.for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f32));
        result
    };
    let (narrow_x, narrow_y) = (narrow(x.values), narrow(y.values));
    let mut result = vec![0.0_f32; out.len()];
    let x = Operand { values: narrow_x.as_slice(), steps: x.steps };
    let y = Operand { values: narrow_y.as_slice(), steps: y.steps };
    batched(shape, x, y, &mut result);
    let pairs = out.par_chunks_mut(PARALLEL).zip(result.par_chunks(PARALLEL));
    pairs.for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(to, from)| *to = f64::from(*from)));
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
                products.multiply(shape, Operand::new(&x, m, k), Operand::new(&y, k, n), &mut out).unwrap();
                for (at, value) in out.iter().enumerate() {
                    assert!((value - entry(at)).abs() < tolerance, "{products:?} {shape:?}");
                }
            }
        }
    }
}
