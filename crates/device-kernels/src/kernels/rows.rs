//! What works on rows: norms, activations, dropout, cross-entropy, sums over rows, rows that are picked and added.

use cubecl::prelude::*;

use super::arithmetic::{cube_max, cube_sum, drop_factor, exponential, row_key};

/// Units of a cube that has a row, or a stretch of entries.
pub(crate) const UNITS: u32 = 128;

/// The masks of one site of one update. `threshold` 0 keeps everything.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Masks {
    pub(crate) key_high: u32,
    pub(crate) key_low: u32,
    pub(crate) threshold: u32,
    pub(crate) scale: f32,
    pub(crate) first_row: u32,
}

/// The entry of this unit, where entries are dealt out one a unit.
#[cube]
pub(crate) fn entry() -> u32 {
    (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) * UNITS + UNIT_POS
}

/// The row of this cube.
#[cube]
pub(crate) fn row() -> u32 {
    CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X
}

/// h ← scale·e\[token\] + p\[place\]
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn embed(
    vectors: &Array<f32>,
    positions: &Array<f32>,
    tokens: &Array<u32>,
    places: &Array<u32>,
    h: &mut Array<f32>,
    vectors_at: u32,
    positions_at: u32,
    scale: f32,
    d: u32,
    len: u32,
    #[comptime] placed: bool,
) {
    let i = entry();
    if i < len {
        let r = (i / d) as usize;
        let c = i % d;
        let mut value = scale * vectors[(vectors_at + tokens[r] * d + c) as usize];
        if placed {
            value += positions[(positions_at + places[r] * d + c) as usize];
        }
        h[i as usize] = value;
    }
}

/// h\[r\] += table\[at + place·d ..\]
#[cube(launch_unchecked)]
pub(crate) fn add_rows(
    h: &mut Array<f32>,
    table: &Array<f32>,
    places: &Array<u32>,
    at: u32,
    d: u32,
    len: u32,
) {
    let i = entry();
    if i < len {
        h[i as usize] += table[(at + places[(i / d) as usize] * d + i % d) as usize];
    }
}

/// The norm of each row in two passes: x̂, 1/deviation and y. (CUDA has a function `norm`.)
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn norm_rows(
    x: &Array<f32>,
    theta: &Array<f32>,
    normal: &mut Array<f32>,
    inverse: &mut Array<f32>,
    y: &mut Array<f32>,
    weight_at: u32,
    bias_at: u32,
    rows: u32,
    width: u32,
    epsilon: f32,
) {
    let mut room = SharedMemory::<f32>::new(UNITS as usize);
    let r = row();
    if r >= rows {
        terminate!();
    }
    let at = r * width;
    let mut sum = 0.0f32;
    for c in range_stepped(UNIT_POS, width, UNITS) {
        sum += x[(at + c) as usize];
    }
    let mean = cube_sum(sum, &mut room, UNITS) / f32::cast_from(width);
    let mut squares = 0.0f32;
    for c in range_stepped(UNIT_POS, width, UNITS) {
        let off = x[(at + c) as usize] - mean;
        squares += off * off;
    }
    let variance = cube_sum(squares, &mut room, UNITS) / f32::cast_from(width);
    let factor = 1.0f32 / (variance + epsilon).sqrt();
    if UNIT_POS == 0 {
        inverse[r as usize] = factor;
    }
    for c in range_stepped(UNIT_POS, width, UNITS) {
        let n = (x[(at + c) as usize] - mean) * factor;
        normal[(at + c) as usize] = n;
        y[(at + c) as usize] = fma(n, theta[(weight_at + c) as usize], theta[(bias_at + c) as usize]);
    }
}

/// dy becomes dx.
#[cube(launch_unchecked)]
pub(crate) fn norm_backward(
    dy: &mut Array<f32>,
    normal: &Array<f32>,
    inverse: &Array<f32>,
    theta: &Array<f32>,
    weight_at: u32,
    rows: u32,
    width: u32,
) {
    let mut room = SharedMemory::<f32>::new(UNITS as usize);
    let r = row();
    if r >= rows {
        terminate!();
    }
    let at = r * width;
    let mut sum = 0.0f32;
    let mut along = 0.0f32;
    for c in range_stepped(UNIT_POS, width, UNITS) {
        let g = dy[(at + c) as usize] * theta[(weight_at + c) as usize];
        sum += g;
        along = fma(g, normal[(at + c) as usize], along);
    }
    let mean = cube_sum(sum, &mut room, UNITS) / f32::cast_from(width);
    let along = cube_sum(along, &mut room, UNITS) / f32::cast_from(width);
    let factor = inverse[r as usize];
    for c in range_stepped(UNIT_POS, width, UNITS) {
        let g = dy[(at + c) as usize] * theta[(weight_at + c) as usize];
        dy[(at + c) as usize] = (g - fma(normal[(at + c) as usize], along, mean)) * factor;
    }
}

/// Φ(x) and e^(−x²/2) go into y and slope of x·Φ(x): `training::kernels::activate` says from where the numbers are.
#[cube]
fn normal_distribution(x: f32) -> f32 {
    let z = x.abs() * 0.707_106_77_f32;
    let bell = exponential(-0.5f32 * x * x);
    let t = 1.0f32 / fma(0.35f32, z, 1.0f32);
    let p = fma(0.039_071_803f32, t, -0.162_569f32);
    let p = fma(p, t, 0.190_017_54f32);
    let p = fma(p, t, -0.039_110_75f32);
    let p = fma(p, t, 0.096_501_8f32);
    let p = fma(p, t, 0.140_951_54f32);
    let p = fma(p, t, 0.152_947_3f32);
    let p = fma(p, t, 0.187_524_37f32);
    let p = fma(p, t, 0.197_184f32);
    let p = fma(p, t, 0.197_481_42f32);
    let tail = 0.5f32 * p * t * bell;
    select(x < 0.0f32, tail, 1.0f32 - tail)
}

/// x ← f(x) and slope ← f′(x). `kind`: 0 for GELU, 1 for its tanh approximation, 2 for ReLU.
#[cube(launch_unchecked)]
pub(crate) fn activate(x: &mut Array<f32>, slope: &mut Array<f32>, len: u32, #[comptime] kind: u32) {
    let i = entry();
    if i < len {
        let i = i as usize;
        let v = x[i];
        if kind == 0 {
            let cdf = normal_distribution(v);
            let bell = exponential(-0.5f32 * v * v);
            x[i] = v * cdf;
            slope[i] = fma(v * 0.398_942_3f32, bell, cdf);
        } else if kind == 1 {
            let u = 0.797_884_6f32 * v * fma(0.044_715f32 * v, v, 1.0f32);
            // Nothing is taken from a number near it, so that both tails keep their digits.
            let tail = exponential(-2.0f32 * u.abs());
            let inverse = 1.0f32 / (1.0f32 + tail);
            let half = select(u < 0.0f32, tail * inverse, inverse);
            let du = 0.797_884_6f32 * fma(0.134_145f32 * v, v, 1.0f32);
            x[i] = v * half;
            slope[i] = fma(2.0f32 * v * tail * inverse * inverse, du, half);
        } else {
            // A NaN is passed on, not made 0.
            slope[i] = select(v > 0.0f32, 1.0f32, 0.0f32);
            x[i] = select(v <= 0.0f32, 0.0f32, v);
        }
    }
}

/// x ← x · y
#[cube(launch_unchecked)]
pub(crate) fn multiply(x: &mut Array<f32>, y: &Array<f32>, len: u32) {
    let i = entry();
    if i < len {
        x[i as usize] *= y[i as usize];
    }
}

/// x\[at ..\] ← x + y
#[cube(launch_unchecked)]
pub(crate) fn add(x: &mut Array<f32>, y: &Array<f32>, at: u32, len: u32) {
    let i = entry();
    if i < len {
        x[(at + i) as usize] += y[i as usize];
    }
}

/// x ← value
#[cube(launch_unchecked)]
pub(crate) fn fill(x: &mut Array<f32>, value: f32, len: u32) {
    let i = entry();
    if i < len {
        x[i as usize] = value;
    }
}

/// x ← x + x by way of f64, which is no part of WebGPU: no driver is asked for it, and none compiles it.
#[cfg(test)]
#[cube(launch_unchecked)]
pub(crate) fn doubled(x: &mut Array<f32>, len: u32) {
    let i = entry();
    if i < len {
        let wide = f64::cast_from(x[i as usize]);
        x[i as usize] = f32::cast_from(wide + wide);
    }
}

/// x ← x/2 + 1, `rounds` times
#[cfg(test)]
#[cube(launch_unchecked)]
pub(crate) fn many_halves(x: &mut Array<f32>, rounds: u32, len: u32) {
    let i = entry();
    if i < len {
        let mut value = x[i as usize];
        for _ in 0..rounds {
            value = value / 2.0 + 1.0;
        }
        x[i as usize] = value;
    }
}

/// to ← from
#[cube(launch_unchecked)]
pub(crate) fn copy(to: &mut Array<f32>, from: &Array<f32>, len: u32) {
    let i = entry();
    if i < len {
        to[i as usize] = from[i as usize];
    }
}

/// x ← x · mask
#[cube(launch_unchecked)]
pub(crate) fn drop_in_place(x: &mut Array<f32>, masks: Masks, width: u32, len: u32) {
    let i = entry();
    if i < len {
        let key = row_key(masks.key_high, masks.key_low, masks.first_row + i / width);
        x[i as usize] *= drop_factor(key, i % width, masks.threshold, masks.scale);
    }
}

/// to ← to + x · mask
#[cube(launch_unchecked)]
pub(crate) fn add_dropped(to: &mut Array<f32>, x: &Array<f32>, masks: Masks, width: u32, len: u32) {
    let i = entry();
    if i < len {
        let key = row_key(masks.key_high, masks.key_low, masks.first_row + i / width);
        let factor = drop_factor(key, i % width, masks.threshold, masks.scale);
        to[i as usize] = fma(x[i as usize], factor, to[i as usize]);
    }
}

/// The loss of each row, and the gradient of the smoothed loss over its logits. A target that is no column costs nothing.
#[cube(launch_unchecked)]
pub(crate) fn cross_entropy(
    logits: &mut Array<f32>,
    targets: &Array<u32>,
    losses: &mut Array<f32>,
    smoothing: f32,
    rows: u32,
    width: u32,
    #[comptime] gradient: bool,
) {
    let mut room = SharedMemory::<f32>::new(UNITS as usize);
    let r = row();
    if r >= rows {
        terminate!();
    }
    let at = r * width;
    let target = targets[r as usize];
    if target >= width {
        if UNIT_POS == 0 {
            losses[r as usize] = 0.0f32;
        }
        if gradient {
            for c in range_stepped(UNIT_POS, width, UNITS) {
                logits[(at + c) as usize] = 0.0f32;
            }
        }
        terminate!();
    }
    let mut largest = logits[at as usize];
    for c in range_stepped(UNIT_POS, width, UNITS) {
        let v = logits[(at + c) as usize];
        largest = select(v > largest, v, largest);
    }
    let largest = cube_max(largest, &mut room, UNITS);
    let mut sum = 0.0f32;
    for c in range_stepped(UNIT_POS, width, UNITS) {
        sum += exponential(logits[(at + c) as usize] - largest);
    }
    let sum = cube_sum(sum, &mut room, UNITS);
    if UNIT_POS == 0 {
        losses[r as usize] = (largest - logits[(at + target) as usize]) + sum.ln();
    }
    if gradient {
        // The unit that writes the target's logit has read it for the loss, or reads no other.
        sync_cube();
        let share = smoothing / f32::cast_from(width);
        for c in range_stepped(UNIT_POS, width, UNITS) {
            let q = exponential(logits[(at + c) as usize] - largest) / sum;
            let wanted = select(c == target, 1.0f32 - smoothing, 0.0f32);
            logits[(at + c) as usize] = q - share - wanted;
        }
    }
}

/// Sums over `block` rows each: partial\[b, c\] = Σ x\[r, c\], or Σ x\[r, c\]·y\[r, c\].
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn column_blocks(
    x: &Array<f32>,
    y: &Array<f32>,
    partial: &mut Array<f32>,
    rows: u32,
    width: u32,
    block: u32,
    len: u32,
    #[comptime] times: bool,
) {
    let i = entry();
    if i < len {
        let b = i / width;
        let c = i % width;
        let end = select((b + 1u32) * block < rows, (b + 1u32) * block, rows);
        let mut sum = 0.0f32;
        for r in b * block..end {
            let e = (r * width + c) as usize;
            if times {
                sum = fma(x[e], y[e], sum);
            } else {
                sum += x[e];
            }
        }
        partial[i as usize] = sum;
    }
}

/// total\[at + c\] ← Σ partial\[b, c\], block after block; and what was there, and a bias of every `columns` entries, which stands
/// in the buffer `theta`.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn column_totals(
    partial: &Array<f32>,
    theta: &Array<f32>,
    total: &mut Array<f32>,
    at: u32,
    bias_at: u32,
    columns: u32,
    width: u32,
    blocks: u32,
    #[comptime] added: bool,
    #[comptime] with_bias: bool,
) {
    let c = entry();
    if c < width {
        let mut sum = 0.0f32;
        for b in 0..blocks {
            sum += partial[(b * width + c) as usize];
        }
        if with_bias {
            sum += theta[(bias_at + c % columns) as usize];
        }
        if added {
            sum += total[(at + c) as usize];
        }
        total[(at + c) as usize] = sum;
    }
}

/// total\[at + to\[g\]·width + c\] += scale·Σ x\[r, c\] over the rows of group g, in their order.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn add_groups(
    x: &Array<f32>,
    to: &Array<u32>,
    starts: &Array<u32>,
    members: &Array<u32>,
    total: &mut Array<f32>,
    at: u32,
    scale: f32,
    width: u32,
    len: u32,
) {
    let i = entry();
    if i < len {
        let g = (i / width) as usize;
        let c = i % width;
        let mut sum = 0.0f32;
        for m in starts[g]..starts[g + 1] {
            sum += x[(members[m as usize] * width + c) as usize];
        }
        let e = (at + to[g] * width + c) as usize;
        total[e] = fma(scale, sum, total[e]);
    }
}

/// y\[i\] ← x\[places\[i\]\], or 0 where the place is beyond all.
#[cube(launch_unchecked)]
pub(crate) fn gather(x: &Array<f32>, places: &Array<u32>, y: &mut Array<f32>, len: u32) {
    let i = entry();
    if i < len {
        let place = places[i as usize];
        let mut value = 0.0f32;
        if place != 0xffff_ffffu32 {
            value = x[place as usize];
        }
        y[i as usize] = value;
    }
}

/// y\[i\] ← Σ x\[members\] of group i.
#[cube(launch_unchecked)]
pub(crate) fn gather_sum(
    x: &Array<f32>,
    starts: &Array<u32>,
    members: &Array<u32>,
    y: &mut Array<f32>,
    len: u32,
) {
    let i = entry();
    if i < len {
        let mut sum = 0.0f32;
        for m in starts[i as usize]..starts[i as usize + 1] {
            sum += x[members[m as usize] as usize];
        }
        y[i as usize] = sum;
    }
}

/// Whether entry `e` of a pattern of 128 stands in column `c` of `d`.
#[cube]
fn stands(e: u32, c: u32, d: u32) -> bool {
    select(d >= 128u32, c % 128u32 == e, e % d == c)
}

/// h\[r\] += the pattern of row r: entry e adds decay\[e / 4\] in its columns.
#[cube(launch_unchecked)]
pub(crate) fn add_patterns(
    h: &mut Array<f32>,
    theta: &Array<f32>,
    starts: &Array<u32>,
    entries: &Array<u32>,
    decay_at: u32,
    d: u32,
    len: u32,
) {
    let i = entry();
    if i < len {
        let r = (i / d) as usize;
        let c = i % d;
        let mut sum = h[i as usize];
        for m in starts[r]..starts[r + 1] {
            let e = entries[m as usize];
            if stands(e, c, d) {
                sum += theta[(decay_at + e / 4u32) as usize];
            }
        }
        h[i as usize] = sum;
    }
}

/// partial\[r, depth\] = the sum of dh over the columns of row r's entry of that depth.
#[cube(launch_unchecked)]
pub(crate) fn pattern_sums(
    dh: &Array<f32>,
    starts: &Array<u32>,
    entries: &Array<u32>,
    partial: &mut Array<f32>,
    depths: u32,
    d: u32,
    len: u32,
) {
    let i = entry();
    if i < len {
        let r = i / depths;
        let depth = i % depths;
        let mut sum = 0.0f32;
        for m in starts[r as usize]..starts[r as usize + 1] {
            let e = entries[m as usize];
            if e / 4u32 == depth {
                for c in 0..d {
                    if stands(e, c, d) {
                        sum += dh[(r * d + c) as usize];
                    }
                }
            }
        }
        partial[i as usize] = sum;
    }
}

/// Turns the pairs of queries and keys by position · base^(−2i/size); `sign` −1 turns back.
#[cube(launch_unchecked)]
pub(crate) fn rotary(
    table: &Array<f32>,
    qkv: &mut Array<f32>,
    positions: &Array<u32>,
    sign: f32,
    size: u32,
    width: u32,
    len: u32,
) {
    let i = entry();
    // One pair a unit: `width` pairs a row, of queries and keys together.
    if i < len {
        let r = i / width;
        let pair = i % width;
        let angle = positions[r as usize] * size + (pair % (size / 2u32)) * 2u32;
        let cos = table[angle as usize];
        let sin = sign * table[(angle + 1u32) as usize];
        let e = (r * 3u32 * width + 2u32 * pair) as usize;
        let x = qkv[e];
        let y = qkv[e + 1];
        qkv[e] = x * cos - y * sin;
        qkv[e + 1] = x * sin + y * cos;
    }
}
