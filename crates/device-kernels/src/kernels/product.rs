//! The matrix product, in tiles of 64 × 64 or 128 × 128: a cube of 256 units, each with 4 × 4 or 8 × 8 sums. The next stage of
//! terms is on its way into registers while one in shared memory is multiplied. Terms are added in their order whatever the tile, so
//! the tile changes no bit. Products on tensor cores are in [`super::fragments`] and [`super::mma`].

use cubecl::prelude::*;

use crate::sixteen::Sixteen;

/// A tile, and what a unit has of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows and columns.
    pub(crate) side: u32,
    /// Rows and columns of sums that a unit has, in groups of four.
    own: u32,
    /// Terms of a stage.
    pub(crate) depth: u32,
}

/// For products that do not fill a device with large tiles.
pub(crate) const SMALL: Tile = Tile { side: 64, own: 4, depth: 16 };
/// For those that do. With stages twice as deep an H200 took up to twice as long where it reads entry by entry, and up to a sixth
/// less where it reads vectors.
pub(crate) const LARGE: Tile = Tile { side: 128, own: 8, depth: 8 };
pub(crate) const LARGE_OF_VECTORS: Tile = Tile { depth: 16, ..LARGE };

/// What a row of a stage is longer than the tile, so that neighbouring terms are in other banks of shared memory.
const APART: u32 = 4;

impl Tile {
    /// Units of a cube.
    pub(crate) fn units(self) -> u32 {
        (self.side / self.own).pow(2)
    }

    /// Bytes of shared memory: two stages of both operands.
    pub(crate) fn shared_bytes(self) -> usize {
        (2 * 2 * self.depth * (self.side + APART)) as usize * size_of::<f32>()
    }
}

/// Where a matrix stands in its buffer: entry (r, c) at `at + r·stride + c`, or the other way around where it is turned.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) at: u32,
    pub(crate) stride: u32,
}

/// The sizes of a product: [m, k] · [k, n].
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
}

/// The nearest number that bf16 has, ties to the even one, as `training::kernels::product_half` rounds; what is not a
/// number stays none.
#[cube]
fn to_bf16(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let up = bits + 0x7fffu32 + ((bits >> 16u32) & 1u32);
    let finite = (bits & 0x7fff_ffffu32) <= 0x7f80_0000u32;
    select(finite, f32::reinterpret(up & 0xffff_0000u32), x)
}

/// The nearest number that f16 has, ties to the even one: from 65,520 on an infinite one, below 2⁻¹⁴ a multiple of 2⁻²⁴; what
/// is not a number stays none.
#[cube]
fn to_f16(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let size = bits & 0x7fff_ffffu32;
    let sign = bits & 0x8000_0000u32;
    let up = (size + 0xfffu32 + ((size >> 13u32) & 1u32)) & 0xffff_e000u32;
    let large = select(up < 0x4780_0000u32, up, 0x7f80_0000u32);
    // The small ones in units of 2⁻²⁴, in whole numbers: of additions of floating point a compiler may leave nothing.
    let digits = (size & 0x7f_ffffu32) | 0x80_0000u32;
    let exponent = size >> 23u32;
    let shift = select(exponent < 101u32, 25u32, 126u32 - exponent);
    let shift = select(exponent < 113u32, shift, 25u32);
    let whole = digits >> shift;
    let rest = digits & ((1u32 << shift) - 1u32);
    let half = 1u32 << (shift - 1u32);
    let more = rest > half || (rest == half && (whole & 1u32) == 1u32);
    let units = select(more, whole + 1u32, whole);
    let small = u32::reinterpret(f32::cast_from(units) * 5.960_464_5e-8f32);
    let near = select(size < 0x3880_0000u32, small, large);
    select(size <= 0x7f80_0000u32, f32::reinterpret(sign | near), x)
}

/// A number that a kernel was told, in a register: where it was told is read again behind every barrier.
#[cube]
fn at_hand(x: u32) -> u32 {
    RuntimeCell::<u32>::new(x).read()
}

#[cube]
pub(crate) fn place_at_hand(place: Place) -> Place {
    Place { at: at_hand(place.at), stride: at_hand(place.stride) }
}

#[cube]
pub(crate) fn sizes_at_hand(sizes: Sizes) -> Sizes {
    Sizes { m: at_hand(sizes.m), n: at_hand(sizes.n), k: at_hand(sizes.k) }
}

/// The share of this unit of one stage of one operand: `wide` entries along the tile, `deep` along the terms; 0 beyond. Reads
/// run along the buffer's rows in both orders, of four entries each where these are whole.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
pub(crate) fn bring(
    from: &Array<f32>,
    place: Place,
    share: &mut Array<f32>,
    tile_at: u32,
    wide: u32,
    term_at: u32,
    deep: u32,
    #[comptime] side: u32,
    #[comptime] depth: u32,
    #[comptime] units: u32,
    #[comptime] along_terms: bool,
    #[comptime] whole: bool,
) {
    let size = comptime!(if whole { 4u32 } else { 1u32 });
    let row = comptime!((if along_terms { depth } else { side }) / size);
    // The units of a cube bring so many whole rows at a time: what one brings lies below each other.
    let below = comptime!(units / row);
    let (long, across) = ((UNIT_POS % row) * size, UNIT_POS / row);
    let (w, d) = if along_terms { (across, long) } else { (long, across) };
    let (w, d) = (tile_at + w, term_at + d);
    let start = if along_terms { place.at + w * place.stride + d } else { place.at + d * place.stride + w };
    #[unroll]
    for step in 0..comptime!(side * depth / units / size) {
        let down = comptime!(step * below);
        let (w, d) = if along_terms { (w + down, d) } else { (w, d + down) };
        let inside = (w < wide) && (d < deep);
        // No branch around a reading, so that all of a share are under way together.
        let entry = select(inside, start + down * place.stride, place.at);
        if whole {
            let all = from.to_slice().into_vectorized().with_vector_size::<Const<4>>();
            let four = all[(entry / 4u32) as usize];
            #[unroll]
            for i in 0..4u32 {
                share[comptime!((4 * step + i) as usize)] = select(inside, four[i as usize], 0.0f32);
            }
        } else {
            share[step as usize] = select(inside, from[entry as usize], 0.0f32);
        }
    }
}

/// The share of this unit goes to shared memory, [depth, side + APART].
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
fn put_down(
    share: &Array<f32>,
    to: &mut SharedMemory<f32>,
    stage: u32,
    #[comptime] side: u32,
    #[comptime] depth: u32,
    #[comptime] units: u32,
    #[comptime] along_terms: bool,
    #[comptime] whole: bool,
    #[comptime] round: Option<Sixteen>,
) {
    let size = comptime!(if whole { 4u32 } else { 1u32 });
    let length = comptime!(side + APART);
    let row = comptime!((if along_terms { depth } else { side }) / size);
    let below = comptime!(units / row);
    let (long, across) = ((UNIT_POS % row) * size, UNIT_POS / row);
    let (w, d) = if along_terms { (across, long) } else { (long, across) };
    let start = (stage * depth + d) * length + w;
    #[unroll]
    for step in 0..comptime!(side * depth / units / size) {
        let at = start + comptime!(step * below * if along_terms { 1 } else { length });
        if comptime!(whole && !along_terms) {
            let mut four = Vector::<f32, Const<4>>::zeroed();
            #[unroll]
            for i in 0..4u32 {
                four[i as usize] = rounded(share[comptime!((4 * step + i) as usize)], round);
            }
            let mut all = to.to_slice_mut().into_vectorized().with_vector_size::<Const<4>>();
            all[(at / 4u32) as usize] = four;
        } else {
            #[unroll]
            for i in 0..size {
                let value = rounded(share[comptime!((size * step + i) as usize)], round);
                to[(at + comptime!(i * length)) as usize] = value;
            }
        }
    }
}

#[cube]
fn rounded(x: f32, #[comptime] round: Option<Sixteen>) -> f32 {
    let mut value = x;
    if comptime!(round == Some(Sixteen::Bf16)) {
        value = to_bf16(value);
    }
    if comptime!(round == Some(Sixteen::F16)) {
        value = to_f16(value);
    }
    value
}

/// What a unit multiplies of a row of a stage that begins at `at`: groups of four, so far apart.
#[cube]
fn take(
    from: &SharedMemory<f32>,
    at: u32,
    to: &mut Array<f32>,
    #[comptime] own: u32,
    #[comptime] far: u32,
    #[comptime] vectors: bool,
) {
    #[unroll]
    for group in 0..comptime!(own / 4) {
        let first = at + comptime!(far * group);
        if vectors {
            let all = from.to_slice().into_vectorized().with_vector_size::<Const<4>>();
            let four = all[(first / 4u32) as usize];
            #[unroll]
            for i in 0..4u32 {
                to[comptime!((4 * group + i) as usize)] = four[i as usize];
            }
        } else {
            #[unroll]
            for i in 0..4u32 {
                to[comptime!((4 * group + i) as usize)] = from[(first + i) as usize];
            }
        }
    }
}

/// Which matrices are read and written by vectors: their rows begin at multiples of four, and end there where that matters; and
/// whether shared memory is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Whole {
    pub(crate) a: bool,
    pub(crate) b: bool,
    pub(crate) c: bool,
    pub(crate) shared: bool,
}

/// c ← a·b, or c + a·b, or a·b + bias (which stands in b's buffer). Terms from `CUBE_POS_Z`·`chunk` on, at most
/// `chunk` of them, go to the matrix number `CUBE_POS_Z` of c.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn product(
    a: &Array<f32>,
    b: &Array<f32>,
    c: &mut Array<f32>,
    sizes: Sizes,
    a_place: Place,
    b_place: Place,
    c_place: Place,
    bias_at: u32,
    chunk: u32,
    #[comptime] a_turned: bool,
    #[comptime] b_turned: bool,
    #[comptime] accumulate: bool,
    #[comptime] with_bias: bool,
    #[comptime] tile: Tile,
    #[comptime] round: Option<Sixteen>,
    #[comptime] whole: Whole,
) {
    let side = comptime!(tile.side);
    let own = comptime!(tile.own);
    let depth = comptime!(tile.depth);
    let units = comptime!(tile.units());
    let length = comptime!(side + APART);
    // How far a unit's groups of four lie apart: those of all units lie between.
    let far = comptime!(side / own * 4);
    let mut left = SharedMemory::<f32>::new_aligned(comptime!((2 * depth * length) as usize), 16usize);
    let mut right = SharedMemory::<f32>::new_aligned(comptime!((2 * depth * length) as usize), 16usize);
    let sizes = sizes_at_hand(sizes);
    let a_place = place_at_hand(a_place);
    let b_place = place_at_hand(b_place);
    let c_place = place_at_hand(c_place);
    let row_at = CUBE_POS_Y * side;
    let column_at = CUBE_POS_X * side;
    let begin = CUBE_POS_Z * chunk;
    let end = select(begin + chunk < sizes.k, begin + chunk, sizes.k);
    // 32 units have 4 × 8 places, so that together they read little of either operand.
    let across = comptime!(side / own / 8);
    let (thirty_two, lane) = (UNIT_POS / 32u32, UNIT_POS % 32u32);
    let unit_row = ((thirty_two / across) * 4u32 + lane / 8u32) * 4u32;
    let unit_column = ((thirty_two % across) * 8u32 + lane % 8u32) * 4u32;

    let mut sums = Array::<f32>::new(comptime!((own * own) as usize));
    #[unroll]
    for e in 0..own * own {
        sums[e as usize] = 0.0f32;
    }
    let mut of_left = Array::<f32>::new(comptime!((side * depth / units) as usize));
    let mut of_right = Array::<f32>::new(comptime!((side * depth / units) as usize));
    let stages = (end - begin).div_ceil(depth);
    bring(a, a_place, &mut of_left, row_at, sizes.m, begin, end, side, depth, units, !a_turned, whole.a);
    bring(b, b_place, &mut of_right, column_at, sizes.n, begin, end, side, depth, units, b_turned, whole.b);
    put_down(&of_left, &mut left, 0u32, side, depth, units, !a_turned, whole.a, round);
    put_down(&of_right, &mut right, 0u32, side, depth, units, b_turned, whole.b, round);
    sync_cube();
    for s in 0..stages {
        let stage = s % 2u32;
        let more = s + 1u32 < stages;
        if more {
            let next = begin + (s + 1u32) * depth;
            bring(
                a,
                a_place,
                &mut of_left,
                row_at,
                sizes.m,
                next,
                end,
                side,
                depth,
                units,
                !a_turned,
                whole.a,
            );
            bring(
                b,
                b_place,
                &mut of_right,
                column_at,
                sizes.n,
                next,
                end,
                side,
                depth,
                units,
                b_turned,
                whole.b,
            );
        }
        #[unroll]
        for d in 0..depth {
            let at = (stage * depth + d) * length;
            let mut x = Array::<f32>::new(comptime!(own as usize));
            let mut y = Array::<f32>::new(comptime!(own as usize));
            take(&left, at + unit_row, &mut x, own, far, whole.shared);
            take(&right, at + unit_column, &mut y, own, far, whole.shared);
            #[unroll]
            for i in 0..own {
                #[unroll]
                for j in 0..own {
                    let e = (i * own + j) as usize;
                    sums[e] = fma(x[i as usize], y[j as usize], sums[e]);
                }
            }
        }
        if more {
            put_down(&of_left, &mut left, 1u32 - stage, side, depth, units, !a_turned, whole.a, round);
            put_down(&of_right, &mut right, 1u32 - stage, side, depth, units, b_turned, whole.b, round);
        }
        sync_cube();
    }
    #[unroll]
    for i in 0..own {
        let row = row_at + unit_row + comptime!(i / 4 * far + i % 4);
        #[unroll]
        for group in 0..comptime!(own / 4) {
            let column = column_at + unit_column + comptime!(group * far);
            if whole.c {
                let mut four = Vector::<f32, Const<4>>::zeroed();
                #[unroll]
                for j in 0..4u32 {
                    four[j as usize] = sums[comptime!((i * own + 4 * group + j) as usize)];
                }
                put_four(c, b, four, row, column, sizes, c_place, bias_at, accumulate, with_bias);
            } else {
                #[unroll]
                for j in 0..4u32 {
                    let sum = sums[comptime!((i * own + 4 * group + j) as usize)];
                    put(c, b, sum, row, column + j, sizes, c_place, bias_at, accumulate, with_bias);
                }
            }
        }
    }
}

/// Four neighbours of the result, where all rows of it have a multiple of four and begin at one.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
fn put_four(
    c: &mut Array<f32>,
    b: &Array<f32>,
    sums: Vector<f32, Const<4>>,
    row: u32,
    column: u32,
    sizes: Sizes,
    place: Place,
    bias_at: u32,
    #[comptime] accumulate: bool,
    #[comptime] with_bias: bool,
) {
    if row < sizes.m && column < sizes.n {
        let entry = place.at + CUBE_POS_Z * sizes.m * sizes.n + row * place.stride + column;
        let mut all = c.to_slice_mut().into_vectorized().with_vector_size::<Const<4>>();
        let entry = (entry / 4u32) as usize;
        let mut values = sums;
        if with_bias {
            #[unroll]
            for j in 0..4u32 {
                values[j as usize] += b[(bias_at + column + j) as usize];
            }
        }
        if accumulate {
            values += all[entry];
        }
        all[entry] = values;
    }
}

/// An entry of the result.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
pub(crate) fn put(
    c: &mut Array<f32>,
    b: &Array<f32>,
    sum: f32,
    row: u32,
    column: u32,
    sizes: Sizes,
    place: Place,
    bias_at: u32,
    #[comptime] accumulate: bool,
    #[comptime] with_bias: bool,
) {
    if row < sizes.m && column < sizes.n {
        let entry = (place.at + CUBE_POS_Z * sizes.m * sizes.n + row * place.stride + column) as usize;
        let mut value = sum;
        if with_bias {
            value += b[(bias_at + column) as usize];
        }
        if accumulate {
            value += c[entry];
        }
        c[entry] = value;
    }
}
