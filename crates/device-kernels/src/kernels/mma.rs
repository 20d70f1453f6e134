//! The matrix product on tensor cores whose fragments the kernel lays out itself: PTX's `mma.sync` of 16 × 8 × 16, with `ldmatrix`
//! from shared memory. CUDA's `wmma`, which [`super::product`] multiplies with elsewhere, hides where the entries of a fragment
//! lie, and its loads are generic ones of sixteen bits where a matrix lies across.
//!
//! A cube has a tile, and each of its planes a part of that. The next stage of terms is on its way into registers while one in
//! shared memory is multiplied, and is rounded on its way from there into the other half of shared memory. Sums are f32, and
//! terms are added in their order whatever the tile, so the tile changes no bit.

use cubecl::{cmma, prelude::*};

use super::product::{Place, Sizes, place_at_hand, sizes_at_hand};

/// Entries that are read and put down together.
const SIZE: u32 = 4;
type Four = Const<4>;
/// Units of a plane, as PTX has them.
pub(crate) const PLANE: u32 = 32;
/// What a row of a stage is longer than what it holds: neighbouring rows lie 16 bytes apart in the banks of shared memory, so that
/// eight rows of `ldmatrix` meet in none.
const AWAY: u32 = 8;

/// A tile, and how the planes of a cube share it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows and columns of the tile.
    pub(crate) side: [u32; 2],
    /// Rows and columns of a plane's part: multiples of 16.
    pub(crate) part: [u32; 2],
    /// Terms of a stage: a multiple of 16.
    pub(crate) depth: u32,
}

/// A large tile for products that fill a device with them, and a small one. On an H200 4,096 rows of width 512 to 2,048 took the
/// large one 80 µs (to the gradient of the input 67) and the small one 95 (86). Stages of 32 terms took 95 (84) with two of them
/// under way, planes of 64 × 32 in cubes of 256 units 123.
pub(crate) const TILES: [Tile; 2] = [
    Tile { side: [128, 128], part: [32, 32], depth: 64 },
    Tile { side: [64, 64], part: [32, 16], depth: 32 },
];

impl Tile {
    /// Units of a cube.
    pub(crate) fn units(self) -> u32 {
        self.planes()[0] * self.planes()[1] * PLANE
    }

    /// Planes along the rows and along the columns.
    fn planes(self) -> [u32; 2] {
        [self.side[0] / self.part[0], self.side[1] / self.part[1]]
    }

    /// Bytes of shared memory.
    pub(crate) fn shared_bytes(self) -> usize {
        let [rows, columns] = self.side;
        let most = |side: u32| (side * (self.depth + AWAY)).max(self.depth * (side + AWAY));
        (2 * 2 * (most(rows) + most(columns))) as usize
    }
}

/// Which matrices are read and written by vectors: all of their rows begin, and those that a stage cuts end, at multiples of
/// four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Whole {
    pub(crate) a: bool,
    pub(crate) b: bool,
    pub(crate) c: bool,
}

/// The share of this unit of one stage of one operand, by vectors: `wide` entries along the tile, `deep` along the terms; 0
/// beyond. Reads run along the buffer's rows in both orders.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
fn bring(
    from: &Array<f32>,
    place: Place,
    share: &mut Array<Vector<f32, Four>>,
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
    let row = comptime!((if along_terms { depth } else { side }) / SIZE);
    // The units of a cube bring so many whole rows at a time: a unit's vectors lie below each other.
    let below = comptime!(units / row);
    let (long, across) = ((UNIT_POS % row) * SIZE, UNIT_POS / row);
    let (w, d) = if along_terms { (across, long) } else { (long, across) };
    let (w, d) = (tile_at + w, term_at + d);
    let start = if along_terms { place.at + w * place.stride + d } else { place.at + d * place.stride + w };
    #[unroll]
    for step in 0..comptime!(side * depth / SIZE / units) {
        let down = comptime!(step * below);
        let (w, d) = if along_terms { (w + down, d) } else { (w, d + down) };
        let first = start + down * place.stride;
        if whole {
            let inside = (w < wide) && (d < deep);
            let all = from.to_slice().into_vectorized().with_vector_size::<Four>();
            // No branch around a reading, so that all of a share are under way together.
            let read = all[(select(inside, first, place.at) / SIZE) as usize];
            share[step as usize] = select(inside, read, Vector::<f32, Four>::zeroed());
        } else {
            let mut read = Vector::<f32, Four>::zeroed();
            #[unroll]
            for i in 0..SIZE {
                let inside =
                    if along_terms { (w < wide) && (d + i < deep) } else { (w + i < wide) && (d < deep) };
                let value = from[select(inside, first + i, place.at) as usize];
                read[i as usize] = select(inside, value, 0.0f32);
            }
            share[step as usize] = read;
        }
    }
}

/// Entries of a row of a stage: a row is an entry of the tile with its terms, or a term with all entries of the tile.
fn length(side: u32, depth: u32, along_terms: bool) -> u32 {
    AWAY + if along_terms { depth } else { side }
}

/// How far the fragment number `at` along the tile, of the terms from 16·`step` on, lies behind the first one, in vectors.
fn behind(at: u32, step: u32, length: u32, along_terms: bool) -> u32 {
    let (row, column) = if along_terms { (at, step) } else { (step, at) };
    16 * (row * length + column) / SIZE
}

/// Entries of a stage of one operand.
fn room(side: u32, depth: u32, along_terms: bool) -> u32 {
    length(side, depth, along_terms) * if along_terms { side } else { depth }
}

/// The share of this unit goes to shared memory as it lies in its buffer, rounded.
#[cube]
fn put_down<E: Float>(
    share: &Array<Vector<f32, Four>>,
    to: &mut SharedMemory<Vector<E, Four>>,
    stage: u32,
    #[comptime] side: u32,
    #[comptime] depth: u32,
    #[comptime] units: u32,
    #[comptime] along_terms: bool,
) {
    let row = comptime!((if along_terms { depth } else { side }) / SIZE);
    let length = comptime!(length(side, depth, along_terms) / SIZE);
    let below = comptime!(units / row);
    let first =
        stage * comptime!(room(side, depth, along_terms) / SIZE) + (UNIT_POS / row) * length + UNIT_POS % row;
    #[unroll]
    for step in 0..comptime!(side * depth / SIZE / units) {
        let at = first + comptime!(step * below * length);
        to[at as usize] = Vector::<E, Four>::cast_from(share[step as usize]);
    }
}

/// Where a unit's row of `ldmatrix` begins among the four matrices of 8 × 8 that make a fragment of 16 × 16, in vectors; the
/// fragment begins at the entry `at` along the tile. `straight` has the matrices of one column after each other, else those of
/// one row.
#[cube]
fn lane_at(
    at: u32,
    #[comptime] length: u32,
    #[comptime] along_terms: bool,
    #[comptime] straight: bool,
) -> u32 {
    let lane = UNIT_POS % PLANE;
    let low = lane % 8u32;
    let (row, column) = if straight {
        (lane % 16u32, (lane / 16u32) * 8u32)
    } else {
        ((lane / 16u32) * 8u32 + low, ((lane / 8u32) % 2u32) * 8u32)
    };
    let (row, column) = if along_terms { (row + at, column) } else { (row, column + at) };
    row * comptime!(length / SIZE) + column / SIZE
}

/// Adds what one stage of terms gives to the sums of a plane's part.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a cube has no other way to hand them on")]
fn multiply_stage<E: Float>(
    left: &SharedMemory<Vector<E, Four>>,
    right: &SharedMemory<Vector<E, Four>>,
    a_first: u32,
    b_first: u32,
    sums: &mut Sequence<Array<Vector<f32, Const<2>>>>,
    #[comptime] a_along: bool,
    #[comptime] b_along: bool,
    #[comptime] tile: Tile,
) {
    let depth = comptime!(tile.depth);
    let down = comptime!((tile.part[0] / 16) as usize);
    let across = comptime!((tile.part[1] / 16) as usize);
    let a_length = comptime!(length(tile.side[0], depth, a_along));
    let b_length = comptime!(length(tile.side[1], depth, b_along));
    let mma = cmma::MmaDefinition::<E, E, f32>::new(16usize, 8usize, 16usize);
    #[unroll]
    for step in 0..comptime!(depth / 16) {
        let mut of_b = Sequence::<Array<Vector<E, Const<2>>>>::new();
        #[unroll]
        for j in 0..across {
            let at = (b_first + comptime!(behind(j as u32, step, b_length, b_along))) as usize;
            let four = mma.load_matrix::<Vector<E, Four>, Const<2>>(
                &right.slice(at, at + 1usize),
                cmma::MatrixIdent::B,
                4usize,
                !b_along,
            );
            #[unroll]
            for half in 0..2usize {
                let mut two = Array::<Vector<E, Const<2>>>::new(2usize);
                two[0usize] = four[comptime!(2 * half)];
                two[1usize] = four[comptime!(2 * half + 1)];
                of_b.push(two);
            }
        }
        #[unroll]
        for i in 0..down {
            let at = (a_first + comptime!(behind(i as u32, step, a_length, a_along))) as usize;
            let of_a = mma.load_matrix::<Vector<E, Four>, Const<2>>(
                &left.slice(at, at + 1usize),
                cmma::MatrixIdent::A,
                4usize,
                !a_along,
            );
            #[unroll]
            for j in 0..comptime!(2 * across) {
                let sum = sums.index_mut(comptime!(i * 2 * across + j));
                mma.execute_inplace::<Const<2>, Const<2>, Const<2>>(&of_a, of_b.index(j), sum);
            }
        }
    }
}

/// c ← a·b, or c + a·b, or a·b + bias (which stands in b's buffer), of numbers that are rounded to E. Terms from
/// `CUBE_POS_Z`·`chunk` on, at most `chunk` of them, go to the matrix number `CUBE_POS_Z` of c.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn product_by_mma<E: Float>(
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
    #[comptime] whole: Whole,
) {
    let units = comptime!(tile.units());
    let depth = comptime!(tile.depth);
    let rows = comptime!(tile.side[0]);
    let columns = comptime!(tile.side[1]);
    let planes = comptime!(tile.side[1] / tile.part[1]);
    // Fragments of a plane's part: 16 rows each, and 16 columns, which are two of the sums' fragments.
    let down = comptime!((tile.part[0] / 16) as usize);
    let across = comptime!((tile.part[1] / 16) as usize);
    let a_along = comptime!(!a_turned);
    let b_along = comptime!(b_turned);
    let a_length = comptime!(length(rows, depth, a_along));
    let b_length = comptime!(length(columns, depth, b_along));
    let a_room = comptime!(room(rows, depth, a_along) / SIZE);
    let b_room = comptime!(room(columns, depth, b_along) / SIZE);
    let mut left = SharedMemory::<Vector<E, Four>>::new_aligned(comptime!((2 * a_room) as usize), 16usize);
    let mut right = SharedMemory::<Vector<E, Four>>::new_aligned(comptime!((2 * b_room) as usize), 16usize);

    let sizes = sizes_at_hand(sizes);
    let a_place = place_at_hand(a_place);
    let b_place = place_at_hand(b_place);
    let c_place = place_at_hand(c_place);
    let row_at = CUBE_POS_Y * rows;
    let column_at = CUBE_POS_X * columns;
    let begin = CUBE_POS_Z * chunk;
    let end = select(begin + chunk < sizes.k, begin + chunk, sizes.k);
    let plane = UNIT_POS / PLANE;
    let part_row = (plane / planes) * comptime!(tile.part[0]);
    let part_column = (plane % planes) * comptime!(tile.part[1]);
    let a_lane = lane_at(part_row, a_length, a_along, a_along);
    let b_lane = lane_at(part_column, b_length, b_along, !b_along);

    let mut sums = Sequence::<Array<Vector<f32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(down * across * 2) {
        let mut sum = Array::<Vector<f32, Const<2>>>::new(2usize);
        sum[0usize] = Vector::zeroed();
        sum[1usize] = Vector::zeroed();
        sums.push(sum);
    }
    let mut of_left = Array::<Vector<f32, Four>>::new(comptime!((rows * depth / SIZE / units) as usize));
    let mut of_right = Array::<Vector<f32, Four>>::new(comptime!((columns * depth / SIZE / units) as usize));
    bring(a, a_place, &mut of_left, row_at, sizes.m, begin, end, rows, depth, units, a_along, whole.a);
    bring(b, b_place, &mut of_right, column_at, sizes.n, begin, end, columns, depth, units, b_along, whole.b);
    for s in 0..(end - begin).div_ceil(depth) {
        // The half of shared memory that was multiplied before the last one: no unit is still there.
        let stage = s % 2u32;
        put_down::<E>(&of_left, &mut left, stage, rows, depth, units, a_along);
        put_down::<E>(&of_right, &mut right, stage, columns, depth, units, b_along);
        let next = begin + (s + 1u32) * depth;
        bring(a, a_place, &mut of_left, row_at, sizes.m, next, end, rows, depth, units, a_along, whole.a);
        bring(
            b,
            b_place,
            &mut of_right,
            column_at,
            sizes.n,
            next,
            end,
            columns,
            depth,
            units,
            b_along,
            whole.b,
        );
        sync_cube();
        let (a_first, b_first) = (a_lane + stage * a_room, b_lane + stage * b_room);
        multiply_stage::<E>(&left, &right, a_first, b_first, &mut sums, a_along, b_along, tile);
    }
    // A unit has two neighbours in each of two rows, eight apart, of every fragment.
    let lane = UNIT_POS % PLANE;
    let first_row = row_at + part_row + lane / 4u32;
    let first_column = column_at + part_column + (lane % 4u32) * 2u32;
    #[unroll]
    for i in 0..comptime!(2 * down) {
        let row = first_row + comptime!(8 * i as u32);
        let at = c_place.at + CUBE_POS_Z * sizes.m * sizes.n + row * c_place.stride;
        #[unroll]
        for j in 0..comptime!(2 * across) {
            let column = first_column + comptime!(8 * j as u32);
            let two = sums.index(comptime!(i / 2 * 2 * across + j))[comptime!(i % 2)];
            if whole.c {
                if row < sizes.m && column < sizes.n {
                    let mut all = c.to_slice_mut().into_vectorized().with_vector_size::<Const<2>>();
                    let entry = ((at + column) / 2u32) as usize;
                    let mut value = two;
                    if with_bias {
                        value[0usize] += b[(bias_at + column) as usize];
                        value[1usize] += b[(bias_at + column + 1u32) as usize];
                    }
                    if accumulate {
                        value += all[entry];
                    }
                    all[entry] = value;
                }
            } else {
                #[unroll]
                for e in 0..2u32 {
                    if row < sizes.m && column + e < sizes.n {
                        let entry = (at + column + e) as usize;
                        let mut value = two[e as usize];
                        if with_bias {
                            value += b[(bias_at + column + e) as usize];
                        }
                        if accumulate {
                            value += c[entry];
                        }
                        c[entry] = value;
                    }
                }
            }
        }
    }
}
