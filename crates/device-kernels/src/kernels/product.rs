//! The matrix product, in tiles of 64 × 64: a cube of 256 units, each with 4 × 4 sums, and two stages of shared memory,
//! so that the next tile is fetched while one is multiplied. Where a device has tensor cores for numbers of sixteen bits, its
//! planes multiply fragments of 16 × 16 × 16 of the same stages; sums are f32 in both.

use cubecl::{cmma, prelude::*};

use crate::sixteen::Sixteen;

/// Rows and columns of a tile.
pub(crate) const TILE: u32 = 64;
/// Terms of a stage.
const DEPTH: u32 = 16;
const STAGE: u32 = TILE * DEPTH;
/// Units of a cube.
pub(crate) const UNITS: u32 = 256;

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

/// One stage of one operand into shared memory, [DEPTH, TILE]: `wide` entries along the tile, `deep` along the terms.
/// Reads run along the buffer's rows in both orders.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
fn fetch<E: Numeric>(
    from: &Array<f32>,
    place: Place,
    to: &mut SharedMemory<E>,
    stage: u32,
    tile_at: u32,
    wide: u32,
    term_at: u32,
    deep: u32,
    #[comptime] along_terms: bool,
    #[comptime] round: Option<Sixteen>,
) {
    #[unroll]
    for step in 0..STAGE / UNITS {
        let e = step * UNITS + UNIT_POS;
        let (w, d) = if along_terms { (e / DEPTH, e % DEPTH) } else { (e % TILE, e / TILE) };
        let inside = (tile_at + w < wide) && (term_at + d < deep);
        let mut value = 0.0f32;
        if inside {
            let entry = if along_terms {
                place.at + (tile_at + w) * place.stride + term_at + d
            } else {
                place.at + (term_at + d) * place.stride + tile_at + w
            };
            value = from[entry as usize];
        }
        if comptime!(round == Some(Sixteen::Bf16)) {
            value = to_bf16(value);
        }
        if comptime!(round == Some(Sixteen::F16)) {
            value = to_f16(value);
        }
        to[(stage * STAGE + d * TILE + w) as usize] = E::cast_from(value);
    }
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
    #[comptime] round: Option<Sixteen>,
) {
    let mut left = SharedMemory::<f32>::new(2usize * STAGE as usize);
    let mut right = SharedMemory::<f32>::new(2usize * STAGE as usize);
    let row_at = CUBE_POS_Y * TILE;
    let column_at = CUBE_POS_X * TILE;
    let begin = CUBE_POS_Z * chunk;
    let end = select(begin + chunk < sizes.k, begin + chunk, sizes.k);
    let unit_row = (UNIT_POS / 16u32) * 4u32;
    let unit_column = (UNIT_POS % 16u32) * 4u32;

    let mut sums = Array::<f32>::new(16usize);
    #[unroll]
    for e in 0..16u32 {
        sums[e as usize] = 0.0f32;
    }
    let stages = (end - begin).div_ceil(DEPTH);
    fetch(a, a_place, &mut left, 0u32, row_at, sizes.m, begin, end, !a_turned, round);
    fetch(b, b_place, &mut right, 0u32, column_at, sizes.n, begin, end, b_turned, round);
    sync_cube();
    for s in 0..stages {
        let stage = s % 2u32;
        if s + 1u32 < stages {
            let next = begin + (s + 1u32) * DEPTH;
            fetch(a, a_place, &mut left, 1u32 - stage, row_at, sizes.m, next, end, !a_turned, round);
            fetch(b, b_place, &mut right, 1u32 - stage, column_at, sizes.n, next, end, b_turned, round);
        }
        #[unroll]
        for d in 0..DEPTH {
            let at = stage * STAGE + d * TILE;
            let mut x = Array::<f32>::new(4usize);
            let mut y = Array::<f32>::new(4usize);
            #[unroll]
            for i in 0..4u32 {
                x[i as usize] = left[(at + unit_row + i) as usize];
                y[i as usize] = right[(at + unit_column + i) as usize];
            }
            #[unroll]
            for i in 0..4u32 {
                #[unroll]
                for j in 0..4u32 {
                    let e = (i * 4u32 + j) as usize;
                    sums[e] = fma(x[i as usize], y[j as usize], sums[e]);
                }
            }
        }
        sync_cube();
    }
    #[unroll]
    for i in 0..4u32 {
        #[unroll]
        for j in 0..4u32 {
            let row = row_at + unit_row + i;
            let column = column_at + unit_column + j;
            let sum = sums[(i * 4u32 + j) as usize];
            put(c, b, sum, row, column, sizes, c_place, bias_at, accumulate, with_bias);
        }
    }
}

/// An entry of the result.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
fn put(
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

/// Rows, columns and terms of a fragment.
pub(crate) const FRAGMENT: usize = 16;
/// Fragments of a tile along one side.
const SIDE: u32 = TILE / FRAGMENT as u32;

/// [`product`] of numbers that are rounded to sixteen bits, E, on tensor cores. `plane` is the number of units that work as
/// one; each plane has fragments of one row of the tile.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn product_on_cores<E: Float>(
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
    #[comptime] plane: u32,
) {
    let mut left = SharedMemory::<E>::new(2usize * STAGE as usize);
    let mut right = SharedMemory::<E>::new(2usize * STAGE as usize);
    let mut tile = SharedMemory::<f32>::new((TILE * TILE) as usize);
    let row_at = CUBE_POS_Y * TILE;
    let column_at = CUBE_POS_X * TILE;
    let begin = CUBE_POS_Z * chunk;
    let end = select(begin + chunk < sizes.k, begin + chunk, sizes.k);
    let own = comptime!((SIDE * SIDE * plane / UNITS) as usize);
    let first = (UNIT_POS / plane) * own as u32;
    let row = (first / SIDE) * FRAGMENT as u32;
    let column = (first % SIDE) * FRAGMENT as u32;

    let mut sums = Sequence::<cmma::Matrix<f32>>::new();
    #[unroll]
    for _ in 0..own {
        sums.push(cmma::Matrix::<f32>::from_value(
            cmma::MatrixIdent::Accumulator,
            FRAGMENT,
            FRAGMENT,
            FRAGMENT,
            cmma::MatrixLayout::Undefined,
            0.0f32,
        ));
    }
    let stages = (end - begin).div_ceil(DEPTH);
    fetch(a, a_place, &mut left, 0u32, row_at, sizes.m, begin, end, !a_turned, None);
    fetch(b, b_place, &mut right, 0u32, column_at, sizes.n, begin, end, b_turned, None);
    sync_cube();
    for s in 0..stages {
        let stage = s % 2u32;
        if s + 1u32 < stages {
            let next = begin + (s + 1u32) * DEPTH;
            fetch(a, a_place, &mut left, 1u32 - stage, row_at, sizes.m, next, end, !a_turned, None);
            fetch(b, b_place, &mut right, 1u32 - stage, column_at, sizes.n, next, end, b_turned, None);
        }
        let at = (stage * STAGE) as usize;
        let x = cmma::Matrix::<E>::from_slice(
            cmma::MatrixIdent::A,
            FRAGMENT,
            FRAGMENT,
            FRAGMENT,
            cmma::MatrixLayout::ColMajor,
            &left.slice(at + row as usize, 2usize * STAGE as usize),
            TILE,
        );
        #[unroll]
        for i in 0..own {
            let y = cmma::Matrix::<E>::from_slice(
                cmma::MatrixIdent::B,
                FRAGMENT,
                FRAGMENT,
                FRAGMENT,
                cmma::MatrixLayout::RowMajor,
                &right.slice(at + column as usize + i * FRAGMENT, 2usize * STAGE as usize),
                TILE,
            );
            cmma::execute::<E, E, f32, f32>(&x, &y, sums.index(i), sums.index(i));
        }
        sync_cube();
    }
    #[unroll]
    for i in 0..own {
        let at = (row * TILE + column) as usize + i * FRAGMENT;
        cmma::store(
            &mut tile.slice_mut(at, (TILE * TILE) as usize),
            sums.index(i),
            TILE,
            cmma::MatrixLayout::RowMajor,
        );
    }
    sync_cube();
    for e in range_stepped(UNIT_POS, TILE * TILE, UNITS) {
        let (r, t) = (row_at + e / TILE, column_at + e % TILE);
        put(c, b, tile[e as usize], r, t, sizes, c_place, bias_at, accumulate, with_bias);
    }
}
