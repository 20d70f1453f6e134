//! The fused operations of the explicit engine, on slices of f32.
//!
//! A *row block* is a `[rows, width]` matrix stored row by row. Every kernel comes with its backward form, and
//! each pair is tested against the composed form of [`crate::composed`] and against loops in f64.
//!
//! Two promises hold for all of them. **Threads change nothing**: rows are independent, and what is summed over
//! rows is summed in blocks of a fixed number of rows, in order. **Vector width changes nothing**: the vector
//! code is the scalar code compiled for wider registers (`multiversion`), with sums in 16 fixed lanes and
//! explicit fused multiply-adds; `CALCULEMUS_VECTORS` = `plain`, `avx2` or `avx512` holds a process to a narrower set
//! than its processor has, so that one machine can test them all. Only the matrix products of the crate `gemm` differ between processors.

mod activation;
mod attention;
mod cached;
mod cross_entropy;
mod dropout;
mod half;
mod linear;
mod lstm;
pub(crate) mod math;
mod norm;
mod product;
mod relations;
mod rotary;
mod rows;
mod vectorise;

pub use activation::{Activation, activate, activate_backward, gelu};
pub use attention::{Attention, AttentionDropout, Sequences, attention, attention_backward};
pub use cached::{cached_scores, cached_values};
pub use cross_entropy::{CrossEntropy, cross_entropy};
pub use dropout::{Dropout, add_dropout, dropout_in_place};
pub use half::{multiplies_half, product_half};
pub use linear::{Precision, linear, linear_backward_input, linear_backward_weights};
pub use lstm::{LstmSaved, LstmStep, lstm_step, lstm_step_backward, tanh};
pub use math::{VECTORS, exp, instruction_set, instruction_sets, log_sum_exp, softmax_in_place};
pub use norm::{LayerNorm, layer_norm, layer_norm_backward};
pub use product::{Mat, MatMut, Real, product};
pub use relations::{Relations, Tables};
pub use rotary::{rotary, rotary_table};
pub use rows::{add_columns, add_into, add_scaled, scale_in_place};
pub use vectorise::{Kernel, fetch_ahead, on_large_pages, registers_of_512_bits, vectorised};

/// Rows summed together by one thread. Fixed, so that the order of summation depends on no thread count.
pub(crate) const ROW_BLOCK: usize = 64;

/// Defines a function once and compiles it for AVX-512, for AVX2 with FMA, and for the plain target; the widest
/// that the processor has is chosen at run time.
macro_rules! multiversion {
    ($(#[$attr:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$attr])*
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn plain($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? { plain($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? { plain($($arg),*) }
                match $crate::kernels::math::vector_level() {
                    // SAFETY: `vector_level` has found these features on this processor.
                    #[expect(unsafe_code, reason = "calls a function compiled for features that were just detected")]
                    $crate::kernels::math::VectorLevel::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    #[expect(unsafe_code, reason = "calls a function compiled for features that were just detected")]
                    $crate::kernels::math::VectorLevel::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::kernels::math::VectorLevel::Plain => {}
                }
            }
            plain($($arg),*)
        }
    };
}
pub(crate) use multiversion;

#[cfg(test)]
mod tests {
    use super::{VECTORS, instruction_set, instruction_sets};

    /// The tests of this module once more with each narrower set of instructions, in processes of their own.
    #[test]
    fn the_narrower_instruction_sets_pass_the_same_tests() {
        if std::env::var_os(VECTORS).is_some() {
            let wanted = std::env::var(VECTORS).unwrap();
            assert!(instruction_set() == wanted || !instruction_sets().any(|set| set == wanted));
            return;
        }
        let sets: Vec<&str> = instruction_sets().collect();
        assert_eq!(sets.last(), Some(&instruction_set()), "without a word the widest");
        for set in sets {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            let output = command.arg("kernels::").env(VECTORS, set).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{set}:\n{said}");
            let passed =
                said.rsplit_once(" passed").and_then(|(head, _)| head.rsplit(' ').next()?.parse().ok());
            assert!(passed.is_some_and(|n: usize| n >= 10), "{set} ran too few tests:\n{said}");
        }
    }
}
