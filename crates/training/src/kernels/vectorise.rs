//! One way to run any code with the widest vector instructions of this processor.

use super::math::{VectorLevel, vector_level};

/// Code that is compiled once for each instruction set. `run` and all that it calls must be `#[inline(always)]`:
/// only what is inlined is compiled for wide registers.
pub trait Kernel {
    /// What it makes.
    type Output;

    /// Does it.
    fn run(self) -> Self::Output;
}

/// Asks for the cache line of an entry that will be read soon; nothing where there is no such entry.
#[inline(always)]
pub fn fetch_ahead<T>(values: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint that reads nothing; the address is that of an entry.
        #[expect(unsafe_code, reason = "the instruction has no safe form")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
}

/// Asks that a large array lie on large pages, where the system has them: rows picked all over it then wait for their
/// numbers alone, not for the tables of small pages too (a sum over 1,000,000 picked rows of 25 MB took 8.2 ms instead
/// of 11.4). To be asked before anything is written; nothing that can be seen changes.
pub fn on_large_pages<T>(values: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 1 << 21;
        const HUGE: i32 = 14;
        #[expect(unsafe_code, reason = "the system call has no safe form")]
        unsafe extern "C" {
            fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
        }
        // The pages that lie in the array whole.
        let address = values.as_mut_ptr().cast::<u8>();
        let before = address.align_offset(PAGE);
        let length = size_of_val(values).saturating_sub(before) / PAGE * PAGE;
        if length >= 2 * PAGE {
            // SAFETY: the range lies inside the array, which is borrowed exclusively; the advice changes no byte of it,
            // and where it is refused nothing happens.
            #[expect(unsafe_code, reason = "as above")]
            unsafe {
                madvise(address.wrapping_add(before).cast(), length, HUGE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = values;
}

/// Runs a kernel with AVX-512, with AVX2 and FMA, or with the plain target, whichever is the widest here.
pub fn vectorised<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
        fn avx512<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        #[target_feature(enable = "avx2,fma")]
        fn avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        match vector_level() {
            // SAFETY: `vector_level` has found these features on this processor.
            #[expect(unsafe_code, reason = "calls a function compiled for features that were just detected")]
            VectorLevel::Avx512 => return unsafe { avx512(kernel) },
            // SAFETY: as above.
            #[expect(unsafe_code, reason = "calls a function compiled for features that were just detected")]
            VectorLevel::Avx2 => return unsafe { avx2(kernel) },
            VectorLevel::Plain => {}
        }
    }
    kernel.run()
}

/// Registers of 512 bits, where the kernels run with them: for code that names its registers.
pub fn registers_of_512_bits() -> Option<impl pulp::Simd> {
    #[cfg(target_arch = "x86_64")]
    {
        if vector_level() == VectorLevel::Avx512 { pulp::x86::V4::try_new() } else { None }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        None::<pulp::Scalar>
    }
}
