//! The matrix product, in tiles of 64 × 64 or 128 × 128: a cube of 256 units, each with 4 × 4 or 8 × 8 sums. The next stage of
//! terms is on its way into registers while one in shared memory is multiplied. Where a device has tensor cores for numbers of
//! sixteen bits, its planes multiply fragments of 16 × 16 × 16 of such tiles; sums are f32 in both. Terms are added in their order
//! whatever the tile, so the tile changes no bit.

use cubecl::{cmma, prelude::*};

use crate::sixteen::Sixteen;

/// Rows and columns of a tile: the small one, and the large one for products that fill a device with them.
pub(crate) const SIDES: [u32; 2] = [64, 128];
/// Entries of a stage of one operand: 16 terms of a small tile, 8 of a large one.
const STAGE: u32 = 1024;
/// What a row of a stage is longer than the tile, so that neighbouring terms are in other banks of shared memory.
const APART: u32 = 4;
/// Units of a cube.
pub(crate) const UNITS: u32 = 256;
/// Entries of a stage that one unit brings, of each operand.
const SHARE: u32 = STAGE / UNITS;

/// Bytes of shared memory that a product of numbers of 32 bits in tiles of this side wants.
pub(crate) fn shared_bytes(side: u32) -> usize {
    (4 * (STAGE / side) * (side + APART)) as usize * size_of::<f32>()
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
fn place_at_hand(place: Place) -> Place {
    Place { at: at_hand(place.at), stride: at_hand(place.stride) }
}

#[cube]
fn sizes_at_hand(sizes: Sizes) -> Sizes {
    Sizes { m: at_hand(sizes.m), n: at_hand(sizes.n), k: at_hand(sizes.k) }
}

/// The share of this unit of one stage of one operand: `wide` entries along the tile, `deep` along the terms; 0 beyond. Reads
/// run along the buffer's rows in both orders.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
fn bring(
    from: &Array<f32>,
    place: Place,
    share: &mut Array<f32>,
    tile_at: u32,
    wide: u32,
    term_at: u32,
    deep: u32,
    #[comptime] side: u32,
    #[comptime] depth: u32,
    #[comptime] along_terms: bool,
) {
    #[unroll]
    for step in 0..side * depth / UNITS {
        let e = step * UNITS + UNIT_POS;
        let (w, d) = if along_terms { (e / depth, e % depth) } else { (e % side, e / side) };
        let inside = (tile_at + w < wide) && (term_at + d < deep);
        let entry = if along_terms {
            place.at + (tile_at + w) * place.stride + term_at + d
        } else {
            place.at + (term_at + d) * place.stride + tile_at + w
        };
        // No branch around a reading, so that all of a share are under way together.
        let value = from[select(inside, entry, place.at) as usize];
        share[step as usize] = select(inside, value, 0.0f32);
    }
}

/// The share of this unit goes to shared memory, [depth, side + APART].
#[cube]
fn put_down(
    share: &Array<f32>,
    to: &mut SharedMemory<f32>,
    stage: u32,
    #[comptime] side: u32,
    #[comptime] depth: u32,
    #[comptime] along_terms: bool,
    #[comptime] round: Option<Sixteen>,
) {
    #[unroll]
    for step in 0..SHARE {
        let e = step * UNITS + UNIT_POS;
        let (w, d) = if along_terms { (e / depth, e % depth) } else { (e % side, e / side) };
        let mut value = share[step as usize];
        if comptime!(round == Some(Sixteen::Bf16)) {
            value = to_bf16(value);
        }
        if comptime!(round == Some(Sixteen::F16)) {
            value = to_f16(value);
        }
        to[((stage * depth + d) * (side + APART) + w) as usize] = value;
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
    #[comptime] side: u32,
    #[comptime] round: Option<Sixteen>,
) {
    let depth = comptime!(STAGE / side);
    let length = comptime!(side + APART);
    // Sums of a unit along one side: groups of four, 64 entries apart.
    let own = comptime!(side / 16);
    let mut left = SharedMemory::<f32>::new(comptime!((2 * depth * length) as usize));
    let mut right = SharedMemory::<f32>::new(comptime!((2 * depth * length) as usize));
    let sizes = sizes_at_hand(sizes);
    let a_place = place_at_hand(a_place);
    let b_place = place_at_hand(b_place);
    let c_place = place_at_hand(c_place);
    let row_at = CUBE_POS_Y * side;
    let column_at = CUBE_POS_X * side;
    let begin = CUBE_POS_Z * chunk;
    let end = select(begin + chunk < sizes.k, begin + chunk, sizes.k);
    let unit_row = (UNIT_POS / 16u32) * 4u32;
    let unit_column = (UNIT_POS % 16u32) * 4u32;

    let mut sums = Array::<f32>::new(comptime!((own * own) as usize));
    #[unroll]
    for e in 0..own * own {
        sums[e as usize] = 0.0f32;
    }
    let mut of_left = Array::<f32>::new(SHARE as usize);
    let mut of_right = Array::<f32>::new(SHARE as usize);
    let stages = (end - begin).div_ceil(depth);
    bring(a, a_place, &mut of_left, row_at, sizes.m, begin, end, side, depth, !a_turned);
    bring(b, b_place, &mut of_right, column_at, sizes.n, begin, end, side, depth, b_turned);
    put_down(&of_left, &mut left, 0u32, side, depth, !a_turned, round);
    put_down(&of_right, &mut right, 0u32, side, depth, b_turned, round);
    sync_cube();
    for s in 0..stages {
        let stage = s % 2u32;
        let more = s + 1u32 < stages;
        if more {
            let next = begin + (s + 1u32) * depth;
            bring(a, a_place, &mut of_left, row_at, sizes.m, next, end, side, depth, !a_turned);
            bring(b, b_place, &mut of_right, column_at, sizes.n, next, end, side, depth, b_turned);
        }
        #[unroll]
        for d in 0..depth {
            let at = (stage * depth + d) * length;
            let mut x = Array::<f32>::new(comptime!(own as usize));
            let mut y = Array::<f32>::new(comptime!(own as usize));
            #[unroll]
            for i in 0..own {
                let from = comptime!(i / 4 * 64 + i % 4);
                x[i as usize] = left[(at + unit_row + from) as usize];
                y[i as usize] = right[(at + unit_column + from) as usize];
            }
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
            put_down(&of_left, &mut left, 1u32 - stage, side, depth, !a_turned, round);
            put_down(&of_right, &mut right, 1u32 - stage, side, depth, b_turned, round);
        }
        sync_cube();
    }
    #[unroll]
    for i in 0..own {
        #[unroll]
        for j in 0..own {
            let row = row_at + unit_row + comptime!(i / 4 * 64 + i % 4);
            let column = column_at + unit_column + comptime!(j / 4 * 64 + j % 4);
            let sum = sums[(i * own + j) as usize];
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
/// Terms of a stage on tensor cores.
const DEPTH: u32 = 32;
/// Rows and columns of a tile on tensor cores. In larger ones a cube has the registers of a multiprocessor to itself, and waits
/// for its fragments: on an H200 such tiles were slower (0.47 ms beside 0.34).
pub(crate) const SIDE: u32 = SIDES[0];
/// What a row of such a stage is longer than what it holds: another bank, and still where a fragment may begin.
const AWAY: u32 = 8;

/// The share of this unit goes to shared memory as it lies in its buffer: [SIDE, DEPTH + AWAY] along the terms, else
/// [DEPTH, SIDE + AWAY].
#[cube]
fn put_down_rounded<E: Float>(share: &Array<f32>, to: &mut SharedMemory<E>, #[comptime] along_terms: bool) {
    #[unroll]
    for step in 0..SIDE * DEPTH / UNITS {
        let e = step * UNITS + UNIT_POS;
        let at = if along_terms {
            (e / DEPTH) * (DEPTH + AWAY) + e % DEPTH
        } else {
            (e / SIDE) * (SIDE + AWAY) + e % SIDE
        };
        to[at as usize] = E::cast_from(share[step as usize]);
    }
}

/// A fragment of one operand, from the entry `at` along the tile and the term `term` on.
#[cube]
fn fragment<E: Float>(
    from: &SharedMemory<E>,
    at: u32,
    term: u32,
    #[comptime] ident: cmma::MatrixIdent,
    #[comptime] along_terms: bool,
) -> cmma::Matrix<E> {
    let length = comptime!(if along_terms { DEPTH + AWAY } else { SIDE + AWAY });
    let size = comptime!((if along_terms { SIDE * (DEPTH + AWAY) } else { DEPTH * (SIDE + AWAY) }) as usize);
    let rows = comptime!(if (ident == cmma::MatrixIdent::A) == along_terms {
        cmma::MatrixLayout::RowMajor
    } else {
        cmma::MatrixLayout::ColMajor
    });
    let first = if along_terms { at * length + term } else { term * length + at };
    cmma::Matrix::<E>::from_slice(
        ident,
        FRAGMENT,
        FRAGMENT,
        FRAGMENT,
        rows,
        &from.slice(first as usize, size),
        length,
    )
}

/// [`product`] of numbers that are rounded to sixteen bits, E, on tensor cores. `plane` is the number of units that work as
/// one; the planes share the tile out in two columns.
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
    let fragment_side = FRAGMENT as u32;
    let planes = comptime!(UNITS / plane);
    // Rows and columns of fragments that a plane has.
    let own_rows = comptime!((SIDE / (planes / 2) / FRAGMENT as u32) as usize);
    let own_columns = comptime!((SIDE / 2 / FRAGMENT as u32) as usize);
    let room = comptime!(|along: bool| if along { SIDE * (DEPTH + AWAY) } else { DEPTH * (SIDE + AWAY) });
    let mut left = SharedMemory::<E>::new(comptime!(room(!a_turned) as usize));
    let mut right = SharedMemory::<E>::new(comptime!(room(b_turned) as usize));
    let mut done = SharedMemory::<f32>::new(comptime!((planes as usize) * FRAGMENT * FRAGMENT));
    let sizes = sizes_at_hand(sizes);
    let a_place = place_at_hand(a_place);
    let b_place = place_at_hand(b_place);
    let c_place = place_at_hand(c_place);
    let row_at = CUBE_POS_Y * SIDE;
    let column_at = CUBE_POS_X * SIDE;
    let begin = CUBE_POS_Z * chunk;
    let end = select(begin + chunk < sizes.k, begin + chunk, sizes.k);
    let own = UNIT_POS / plane;
    let row = (own / 2u32) * comptime!(SIDE / (planes / 2));
    let column = (own % 2u32) * comptime!(SIDE / 2);

    let mut sums = Sequence::<cmma::Matrix<f32>>::new();
    #[unroll]
    for _ in 0..own_rows * own_columns {
        sums.push(cmma::Matrix::<f32>::from_value(
            cmma::MatrixIdent::Accumulator,
            FRAGMENT,
            FRAGMENT,
            FRAGMENT,
            cmma::MatrixLayout::Undefined,
            0.0f32,
        ));
    }
    let mut of_left = Array::<f32>::new(comptime!((SIDE * DEPTH / UNITS) as usize));
    let mut of_right = Array::<f32>::new(comptime!((SIDE * DEPTH / UNITS) as usize));
    let stages = (end - begin).div_ceil(DEPTH);
    bring(a, a_place, &mut of_left, row_at, sizes.m, begin, end, SIDE, DEPTH, !a_turned);
    bring(b, b_place, &mut of_right, column_at, sizes.n, begin, end, SIDE, DEPTH, b_turned);
    for s in 0..stages {
        put_down_rounded::<E>(&of_left, &mut left, !a_turned);
        put_down_rounded::<E>(&of_right, &mut right, b_turned);
        sync_cube();
        if s + 1u32 < stages {
            let next = begin + (s + 1u32) * DEPTH;
            bring(a, a_place, &mut of_left, row_at, sizes.m, next, end, SIDE, DEPTH, !a_turned);
            bring(b, b_place, &mut of_right, column_at, sizes.n, next, end, SIDE, DEPTH, b_turned);
        }
        #[unroll]
        for step in 0..comptime!(DEPTH / FRAGMENT as u32) {
            let term = comptime!(step * FRAGMENT as u32);
            let mut across = Sequence::<cmma::Matrix<E>>::new();
            #[unroll]
            for j in 0..own_columns {
                let at = column + comptime!((j * FRAGMENT) as u32);
                across.push(fragment::<E>(&right, at, term, cmma::MatrixIdent::B, b_turned));
            }
            #[unroll]
            for i in 0..own_rows {
                let at = row + comptime!((i * FRAGMENT) as u32);
                let x = fragment::<E>(&left, at, term, cmma::MatrixIdent::A, !a_turned);
                #[unroll]
                for j in 0..own_columns {
                    let sum = sums.index(i * own_columns + j);
                    cmma::execute::<E, E, f32, f32>(&x, across.index(j), sum, sum);
                }
            }
        }
        sync_cube();
    }
    let at = own * comptime!((FRAGMENT * FRAGMENT) as u32);
    #[unroll]
    for f in 0..own_rows * own_columns {
        cmma::store(
            &mut done.slice_mut(at as usize, comptime!((planes as usize) * FRAGMENT * FRAGMENT)),
            sums.index(f),
            fragment_side,
            cmma::MatrixLayout::RowMajor,
        );
        sync_cube();
        let first_row = row_at + row + comptime!((f / own_columns * FRAGMENT) as u32);
        let first_column = column_at + column + comptime!((f % own_columns * FRAGMENT) as u32);
        for e in range_stepped(UNIT_POS % plane, fragment_side * fragment_side, plane) {
            let (r, t) = (first_row + e / fragment_side, first_column + e % fragment_side);
            put(c, b, done[(at + e) as usize], r, t, sizes, c_place, bias_at, accumulate, with_bias);
        }
        sync_cube();
    }
}
