//! The matrix product: a safe face of the crate `gemm`.

use gemm::Parallelism;

/// A number that products are made of.
pub trait Real: Copy + 'static {
    /// 1
    const ONE: Self;
}

impl Real for f32 {
    const ONE: f32 = 1.0;
}

impl Real for f64 {
    const ONE: f64 = 1.0;
}

/// A matrix seen in a slice: entry (i, j) is at `i·row_stride + j·column_stride`.
#[derive(Debug, Clone, Copy)]
pub struct Mat<'a, T = f32> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

/// A matrix seen in a slice that is written; rows are contiguous.
#[derive(Debug)]
pub struct MatMut<'a, T = f32> {
    data: &'a mut [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
}

/// Whether entry (rows − 1, columns − 1) lies inside.
fn fits(len: usize, rows: usize, columns: usize, row_stride: usize, column_stride: usize) -> bool {
    rows == 0 || columns == 0 || (rows - 1) * row_stride + (columns - 1) * column_stride < len
}

impl<'a, T> Mat<'a, T> {
    /// A `[rows, columns]` matrix stored row by row without gaps.
    pub fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// A `[rows, columns]` matrix whose rows begin `row_stride` entries apart.
    ///
    /// # Panics
    /// If the slice is too short: a fault of the caller, never of an input.
    pub fn strided(data: &'a [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(fits(data.len(), rows, columns, row_stride, 1), "matrix larger than its slice");
        Self { data, rows, columns, row_stride, column_stride: 1 }
    }

    /// The transpose, without moving anything.
    #[must_use]
    pub fn t(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

impl<'a, T> MatMut<'a, T> {
    /// A `[rows, columns]` matrix stored row by row without gaps.
    pub fn new(data: &'a mut [T], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// A `[rows, columns]` matrix whose rows begin `row_stride` entries apart.
    ///
    /// # Panics
    /// If the slice is too short or the rows overlap: a fault of the caller, never of an input.
    pub fn strided(data: &'a mut [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(fits(data.len(), rows, columns, row_stride, 1), "matrix larger than its slice");
        assert!(rows <= 1 || row_stride >= columns, "rows overlap");
        Self { data, rows, columns, row_stride }
    }
}

/// out ← scale·a·b, or out ← out + scale·a·b if `accumulate`. With `parallel`, on the threads of rayon's pool.
///
/// # Panics
/// If the shapes do not match: a fault of the caller, never of an input.
#[expect(unsafe_code, reason = "gemm takes raw pointers")]
pub fn product<T: Real>(
    out: MatMut<'_, T>,
    accumulate: bool,
    scale: T,
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    parallel: bool,
) {
    assert!(out.rows == a.rows && out.columns == b.columns && a.columns == b.rows, "shapes of a product");
    let threads = if parallel { rayon::current_num_threads() } else { 1 };
    let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
    // SAFETY: `fits` has checked that all entries of the three matrices lie inside their slices, `out` is
    // borrowed exclusively and its rows do not overlap.
    unsafe {
        gemm::gemm(
            out.rows,
            out.columns,
            a.columns,
            out.data.as_mut_ptr(),
            1,
            out.row_stride as isize,
            accumulate,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            T::ONE,
            scale,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::Family;

    #[test]
    fn doubles_do_not_depend_on_threads() {
        let mut s = Family::named("product").stream(1);
        let (m, n, k) = (130, 70, 300);
        let a: Vec<f64> = (0..m * k).map(|_| s.normal()).collect();
        let b: Vec<f64> = (0..k * n).map(|_| s.normal()).collect();
        let run = |threads: usize| {
            let mut out = vec![0.0; m * n];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                product(
                    MatMut::new(&mut out, m, n),
                    false,
                    1.0,
                    Mat::new(&a, m, k),
                    Mat::new(&b, k, n),
                    true,
                );
            });
            out
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
        let dot: f64 = (0..k).map(|l| a[l] * b[l * n]).sum();
        assert!((one[0] - dot).abs() < 1e-11);
    }

    #[test]
    fn products_agree_with_loops() {
        let mut s = Family::named("product").stream(0);
        for _ in 0..200 {
            let (m, n, k) = (1 + s.below(40) as usize, 1 + s.below(40) as usize, 1 + s.below(70) as usize);
            let a: Vec<f32> = (0..m * k).map(|_| s.normal() as f32).collect();
            let b: Vec<f32> = (0..k * n).map(|_| s.normal() as f32).collect();
            let start: Vec<f32> = (0..m * (n + 3)).map(|_| s.normal() as f32).collect();
            let (ta, tb, accumulate) = (s.below(2) == 1, s.below(2) == 1, s.below(2) == 1);
            let mut out = start.clone();
            let left = if ta { Mat::new(&a, k, m).t() } else { Mat::new(&a, m, k) };
            let right = if tb { Mat::new(&b, n, k).t() } else { Mat::new(&b, k, n) };
            product(MatMut::strided(&mut out, m, n, n + 3), accumulate, 0.5, left, right, false);
            for i in 0..m {
                for j in 0..n + 3 {
                    let mut want = f64::from(start[i * (n + 3) + j]);
                    if j < n {
                        let dot: f64 = (0..k)
                            .map(|l| {
                                let x = if ta { a[l * m + i] } else { a[i * k + l] };
                                let y = if tb { b[j * k + l] } else { b[l * n + j] };
                                f64::from(x) * f64::from(y)
                            })
                            .sum();
                        want = if accumulate { want } else { 0.0 } + 0.5 * dot;
                    }
                    assert!((f64::from(out[i * (n + 3) + j]) - want).abs() < 1e-4);
                }
            }
        }
    }
}
