//! The matrix product: a safe face of the kernels of the crate `gemm`.
//!
//! `gemm` itself chooses among five number types and so compiles kernels for complex numbers and half precision too;
//! its parts for f32 and f64 are crates of their own, and these alone are used. [`product`] does what `gemm::gemm`
//! does before it calls them: see [`Real::kernel`].

use gemm_common::Parallelism;

/// dst ← α·dst + β·lhs·rhs: rows, columns, inner size; dst with its strides by column and by row and whether it is
/// read; lhs and rhs with theirs; α, β; three conjugations; threads.
type Kernel<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// A number that products are made of.
pub trait Real: Copy + 'static {
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;

    /// The fastest kernel of this processor, which wants its result column by column.
    #[doc(hidden)]
    fn kernel() -> Kernel<Self>;
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    fn kernel() -> Kernel<f32> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn kernel() -> Kernel<f64> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
}

/// A matrix seen in a slice: entry (i, j) is at `i·row_stride + j·column_stride`.
#[derive(Debug, Clone, Copy)]
pub struct Mat<'a, T = f32> {
    pub(super) data: &'a [T],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

/// A matrix seen in a slice that is written; rows are contiguous.
#[derive(Debug)]
pub struct MatMut<'a, T = f32> {
    pub(super) data: &'a mut [T],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
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
#[expect(unsafe_code, reason = "the kernels take raw pointers")]
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
    // The rows of `out` are contiguous, so it is its transpose that stands column by column: outᵀ = bᵀ·aᵀ. A single
    // column is both.
    let (inner, stride) = (a.columns, out.row_stride as isize);
    let by_column = stride <= 1;
    let (left, right, rows, columns) =
        if by_column { (a, b, out.rows, out.columns) } else { (b.t(), a.t(), out.columns, out.rows) };
    let (column_stride, row_stride) = if by_column { (1, stride) } else { (stride, 1) };
    // SAFETY: `fits` has checked that all entries of the three matrices lie inside their slices, `out` is
    // borrowed exclusively and its rows do not overlap; transposing reads and writes the same entries.
    unsafe {
        T::kernel()(
            rows,
            columns,
            inner,
            out.data.as_mut_ptr(),
            column_stride,
            row_stride,
            accumulate,
            left.data.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.data.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
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
