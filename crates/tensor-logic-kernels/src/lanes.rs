//! Numbers as registers hold them.

use pulp::Simd;

/// Numbers as the registers of an instruction set hold them.
pub trait Lanes: Copy + 'static {
    /// So many numbers as one register holds.
    type Register<S: Simd>: Copy;

    /// The same number everywhere.
    fn everywhere<S: Simd>(simd: S, x: Self) -> Self::Register<S>;
    /// x y + z, rounded once.
    fn fused<S: Simd>(
        simd: S,
        x: Self::Register<S>,
        y: Self::Register<S>,
        z: Self::Register<S>,
    ) -> Self::Register<S>;
    /// x y
    fn times<S: Simd>(simd: S, x: Self::Register<S>, y: Self::Register<S>) -> Self::Register<S>;
    /// x + y
    fn plus<S: Simd>(simd: S, x: Self::Register<S>, y: Self::Register<S>) -> Self::Register<S>;
    /// As many whole registers as the numbers begin with.
    fn registers<S: Simd>(numbers: &[Self]) -> &[Self::Register<S>];
    /// The same, to be written.
    fn registers_mut<S: Simd>(numbers: &mut [Self]) -> &mut [Self::Register<S>];
    /// Writes the first numbers of a register, as many as there is room for.
    fn write_first<S: Simd>(simd: S, to: &mut [Self], register: Self::Register<S>);
    /// The numbers, and zeros behind them, of which there are fewer than a register holds.
    fn read_first<S: Simd>(simd: S, from: &[Self]) -> Self::Register<S>;
}

macro_rules! lanes {
    ($number:ty, $register:ident, $everywhere:ident, $fused:ident, $times:ident, $plus:ident, $of:ident, $of_mut:ident, $write:ident, $read:ident) => {
        impl Lanes for $number {
            type Register<S: Simd> = S::$register;

            #[inline(always)]
            fn everywhere<S: Simd>(simd: S, x: Self) -> S::$register {
                simd.$everywhere(x)
            }

            #[inline(always)]
            fn fused<S: Simd>(simd: S, x: S::$register, y: S::$register, z: S::$register) -> S::$register {
                simd.$fused(x, y, z)
            }

            #[inline(always)]
            fn times<S: Simd>(simd: S, x: S::$register, y: S::$register) -> S::$register {
                simd.$times(x, y)
            }

            #[inline(always)]
            fn plus<S: Simd>(simd: S, x: S::$register, y: S::$register) -> S::$register {
                simd.$plus(x, y)
            }

            #[inline(always)]
            fn registers<S: Simd>(numbers: &[Self]) -> &[S::$register] {
                S::$of(numbers).0
            }

            #[inline(always)]
            fn registers_mut<S: Simd>(numbers: &mut [Self]) -> &mut [S::$register] {
                S::$of_mut(numbers).0
            }

            #[inline(always)]
            fn write_first<S: Simd>(simd: S, to: &mut [Self], register: S::$register) {
                simd.$write(to, register);
            }

            #[inline(always)]
            fn read_first<S: Simd>(simd: S, from: &[Self]) -> S::$register {
                simd.$read(from)
            }
        }
    };
}

lanes!(
    f32,
    f32s,
    splat_f32s,
    mul_add_f32s,
    mul_f32s,
    add_f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    partial_store_f32s,
    partial_load_f32s
);
lanes!(
    f64,
    f64s,
    splat_f64s,
    mul_add_f64s,
    mul_f64s,
    add_f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    partial_store_f64s,
    partial_load_f64s
);
