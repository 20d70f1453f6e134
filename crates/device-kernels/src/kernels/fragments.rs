//! The matrix product on tensor cores by CubeCL's fragments of 16 × 16 × 16: what every device with tensor cores has. Its planes
//! multiply fragments of the tiles of [`super::product`]; where a device multiplies as PTX says, [`super::mma`] is faster.

use cubecl::{cmma, prelude::*};

use super::product::{Place, Sizes, bring, place_at_hand, put, sizes_at_hand};

/// Units of a cube.
pub(crate) const UNITS: u32 = 256;
/// Rows, columns and terms of a fragment.
pub(crate) const FRAGMENT: usize = 16;
/// Terms of a stage on tensor cores.
const DEPTH: u32 = 32;
/// Rows and columns of a tile on tensor cores. In larger ones a cube has the registers of a multiprocessor to itself, and waits
/// for its fragments: on an H200 such tiles were slower (0.47 ms beside 0.34).
pub(crate) const SIDE: u32 = 64;
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
    bring(a, a_place, &mut of_left, row_at, sizes.m, begin, end, SIDE, DEPTH, UNITS, !a_turned, false);
    bring(b, b_place, &mut of_right, column_at, sizes.n, begin, end, SIDE, DEPTH, UNITS, b_turned, false);
    for s in 0..stages {
        put_down_rounded::<E>(&of_left, &mut left, !a_turned);
        put_down_rounded::<E>(&of_right, &mut right, b_turned);
        sync_cube();
        if s + 1u32 < stages {
            let next = begin + (s + 1u32) * DEPTH;
            bring(a, a_place, &mut of_left, row_at, sizes.m, next, end, SIDE, DEPTH, UNITS, !a_turned, false);
            bring(
                b,
                b_place,
                &mut of_right,
                column_at,
                sizes.n,
                next,
                end,
                SIDE,
                DEPTH,
                UNITS,
                b_turned,
                false,
            );
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
