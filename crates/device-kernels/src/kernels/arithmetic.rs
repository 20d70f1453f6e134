//! Functions of one number, as the kernels of the CPU have them: the same polynomials, so that a driver's own idea of
//! an exponential changes no result.

use cubecl::prelude::*;

/// eˣ as `training::kernels::exp` has it: a relative error below 2·10⁻⁷, 0 below −87.3. The rounding is the device's: what
/// adds a large number and takes it away again is nothing to a compiler that may reorder sums, and Mesa's does.
#[cube]
pub(crate) fn exponential(x: f32) -> f32 {
    let below = select(x > 88.0f32, 88.0f32, x);
    let clamped = select(below < -87.3f32, -87.3f32, below);
    let n = (clamped * std::f32::consts::LOG2_E).round();
    let r = fma(n, 2.121_944_4e-4f32, fma(n, -0.693_359_4f32, clamped));
    let p = 1.0f32 / 5040.0f32;
    let p = fma(p, r, 1.0f32 / 720.0f32);
    let p = fma(p, r, 1.0f32 / 120.0f32);
    let p = fma(p, r, 1.0f32 / 24.0f32);
    let p = fma(p, r, 1.0f32 / 6.0f32);
    let p = fma(p, r, 0.5f32);
    let p = fma(p, r, 1.0f32);
    let p = fma(p, r, 1.0f32);
    let power = f32::reinterpret(u32::cast_from(i32::cast_from(n) + 127i32) << 23u32);
    let value = select(below < -87.3f32, 0.0f32, p * power);
    // What is not a number stays none, by its bits: a driver may make of the first line the lesser of two, which forgets it
    // (NVIDIA's for Vulkan does).
    select((u32::reinterpret(x) & 0x7fff_ffffu32) > 0x7f80_0000u32, x, value)
}

/// A 64-bit number in two halves: not every device has one.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct Wide {
    high: u32,
    low: u32,
}

/// The upper half of the product of two 32-bit numbers, from products of 16-bit ones: the device's own instruction is
/// written with 64-bit numbers in WGSL.
#[cube]
fn upper_half(x: u32, y: u32) -> u32 {
    let (x1, x0) = (x >> 16u32, x & 0xffffu32);
    let (y1, y0) = (y >> 16u32, y & 0xffffu32);
    let low = x0 * y0;
    let middle = x1 * y0 + (low >> 16u32);
    let cross = x0 * y1 + (middle & 0xffffu32);
    x1 * y1 + (middle >> 16u32) + (cross >> 16u32)
}

/// x · y modulo 2⁶⁴.
#[cube]
fn multiply(x: Wide, high: u32, low: u32) -> Wide {
    Wide { high: upper_half(x.low, low) + x.high * low + x.low * high, low: x.low * low }
}

/// x ^ (x >> by), by in 1..32.
#[cube]
fn fold(x: Wide, #[comptime] by: u32) -> Wide {
    Wide { high: x.high ^ (x.high >> by), low: x.low ^ ((x.low >> by) | (x.high << (32u32 - by))) }
}

/// The key of a row: the upper half of the finaliser of SplitMix64 (Steele, Lea & Flood 2014) of key ^ row·odd.
#[cube]
pub(crate) fn row_key(key_high: u32, key_low: u32, row: u32) -> u32 {
    let odd = multiply(Wide { high: 0u32, low: row }, 0xd1b5_4a32u32, 0xd192_ed03u32);
    let x = Wide { high: key_high ^ odd.high, low: key_low ^ odd.low };
    let x = multiply(fold(x, 30u32), 0xbf58_476du32, 0x1ce4_e5b9u32);
    let x = multiply(fold(x, 27u32), 0x94d0_49bbu32, 0x1331_11ebu32);
    fold(x, 31u32).high
}

/// 0, or 1/(1 − p), for one element of a row, as `training::kernels::Dropout` has it.
#[cube]
pub(crate) fn drop_factor(row_key: u32, column: u32, threshold: u32, scale: f32) -> f32 {
    let x = row_key ^ (column * 0x9e37_79b9u32);
    let x = (x ^ (x >> 16u32)) * 0x7feb_352du32;
    let x = (x ^ (x >> 15u32)) * 0x846c_a68bu32;
    let x = x ^ (x >> 16u32);
    select(x >= threshold, scale, 0.0f32)
}

/// The sum of one number of each unit of the cube, in a fixed tree; every unit gets it. `units` is a power of two.
#[cube]
pub(crate) fn cube_sum(value: f32, room: &mut SharedMemory<f32>, #[comptime] units: u32) -> f32 {
    room[UNIT_POS as usize] = value;
    sync_cube();
    let mut half = (units / 2).runtime();
    while half > 0u32 {
        if UNIT_POS < half {
            let other = room[(UNIT_POS + half) as usize];
            room[UNIT_POS as usize] += other;
        }
        sync_cube();
        half /= 2u32;
    }
    let sum = room[0];
    sync_cube();
    sum
}

/// The largest of one number of each unit of the cube; every unit gets it.
#[cube]
pub(crate) fn cube_max(value: f32, room: &mut SharedMemory<f32>, #[comptime] units: u32) -> f32 {
    room[UNIT_POS as usize] = value;
    sync_cube();
    let mut half = (units / 2).runtime();
    while half > 0u32 {
        if UNIT_POS < half {
            let other = room[(UNIT_POS + half) as usize];
            let mine = room[UNIT_POS as usize];
            room[UNIT_POS as usize] = select(other > mine, other, mine);
        }
        sync_cube();
        half /= 2u32;
    }
    let largest = room[0];
    sync_cube();
    largest
}
