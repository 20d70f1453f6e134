//! Causal attention over ragged sequences without a stored score (after Dao et al. 2022): a cube has a tile of rows of one
//! sequence and one head, a unit a row, and keys and values come by in tiles. The way back computes the weights once more
//! from the logarithm of each row's sum. Nothing is added by two units, so nothing depends on their order.

use cubecl::prelude::*;

use super::arithmetic::{drop_factor, exponential, row_key};
use super::rows::{Masks, entry};

/// Rows of a tile.
pub(crate) const TILE: u32 = 32;

/// Units that share out the key of a row, each with every second of the rows that look at it: a unit's way through a long sequence
/// is what all wait for. For 4,096 rows of sequences of 128 and 8 heads of 64 an H200 takes 0.30 ms so, and 0.40 with one unit; the
/// way there and the gradient of the queries took longer with two (0.14 and 0.17 ms, and 0.11 and 0.15 with one).
pub(crate) const SHARES: u32 = 2;

/// What attention is told.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) heads: u32,
    /// Rows of the batch.
    pub(crate) rows: u32,
    /// 1/√size
    pub(crate) scale: f32,
}

/// What rows are to each other, for kernels that are told.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Kinds {
    /// How many numbers there are.
    pub(crate) count: u32,
    /// In heads from this one on a row does not look at those of the number that is hidden.
    pub(crate) from: u32,
    pub(crate) hidden: u32,
    /// Where the table of values begins among the parameters.
    pub(crate) values: u32,
}

/// What of relations a model has: kernels for those that have none read nothing of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Knows {
    /// Something is added to scores.
    pub(crate) scored: bool,
    /// Something is added to values.
    pub(crate) valued: bool,
    /// Some rows are hidden.
    pub(crate) hidden: bool,
}

/// A score that no other is below: e to its power is 0 beside any that is one.
const UNSEEN: f32 = -1.0e30;

/// What row j is to row i of the sequence `begin .. end`, whose numbers begin at `squares`.
#[cube]
fn relation(
    numbers: &Array<u32>,
    squares: u32,
    begin: u32,
    end: u32,
    i: u32,
    j: u32,
    #[comptime] knows: Knows,
) -> u32 {
    let mut number = 0u32;
    if comptime!(knows.scored || knows.valued || knows.hidden) {
        number = numbers[(squares + (i - begin) * (end - begin) + j - begin) as usize];
    }
    number
}

/// A score with what the relation adds to it, or that of a row that is hidden: never the first of its sequence, nor the row
/// itself. `of_row` is where the numbers of the row and head begin.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a part of a kernel")]
fn related_score(
    score: f32,
    related: &Array<f32>,
    of_row: u32,
    number: u32,
    head: u32,
    between: bool,
    kinds: Kinds,
    #[comptime] knows: Knows,
) -> f32 {
    let mut sum = score;
    if comptime!(knows.scored) {
        sum += related[(of_row + number) as usize];
    }
    if comptime!(knows.hidden) {
        sum = select(between && head >= kinds.from && number == kinds.hidden, UNSEEN, sum);
    }
    sum
}

/// out\[at + (row·heads + head)·count + n\] ← scale·Σ x·table\[n\] over the columns of the head, and the head's bias of n.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn relate(
    x: &Array<f32>,
    theta: &Array<f32>,
    out: &mut Array<f32>,
    stride: u32,
    heads: u32,
    size: u32,
    count: u32,
    table: u32,
    bias: u32,
    scale: f32,
    at: u32,
    len: u32,
    #[comptime] along: bool,
    #[comptime] biased: bool,
) {
    let e = entry();
    if e < len {
        let n = e % count;
        let head = (e / count) % heads;
        let r = e / count / heads;
        let mut sum = 0.0f32;
        if along {
            for c in 0..size {
                let entry = theta[(table + n * size + c) as usize];
                sum = fma(x[(r * stride + head * size + c) as usize], entry, sum);
            }
            sum *= scale;
        }
        if biased {
            sum += theta[(bias + head * count + n) as usize];
        }
        out[(at + e) as usize] = sum;
    }
}

/// x\[row, head\] += scale·Σ of\[row, head, n\]·table\[n\]
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn relate_backward(
    of: &Array<f32>,
    theta: &Array<f32>,
    x: &mut Array<f32>,
    stride: u32,
    heads: u32,
    size: u32,
    count: u32,
    table: u32,
    scale: f32,
    len: u32,
) {
    let e = entry();
    if e < len {
        let c = e % size;
        let head = (e / size) % heads;
        let r = e / size / heads;
        let mut sum = 0.0f32;
        for n in 0..count {
            let weight = of[((r * heads + head) * count + n) as usize];
            sum = fma(weight, theta[(table + n * size + c) as usize], sum);
        }
        x[(r * stride + head * size + c) as usize] += scale * sum;
    }
}

/// The gradient of a table, in blocks of rows: out\[block, n, c\] ← scale·Σ of\[at + row, head, n\]·x\[row, head, c\].
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn table_blocks(
    of: &Array<f32>,
    x: &Array<f32>,
    out: &mut Array<f32>,
    at: u32,
    stride: u32,
    rows: u32,
    block: u32,
    heads: u32,
    size: u32,
    count: u32,
    scale: f32,
    len: u32,
) {
    let e = entry();
    if e < len {
        let c = e % size;
        let n = (e / size) % count;
        let first = e / size / count * block;
        let last = select(first + block < rows, first + block, rows);
        let mut sum = 0.0f32;
        for r in first..last {
            for head in 0..heads {
                let weight = of[(at + (r * heads + head) * count + n) as usize];
                sum = fma(weight, x[(r * stride + head * size + c) as usize], sum);
            }
        }
        out[e as usize] = scale * sum;
    }
}

/// Where the tile of this cube stands among the tiles. Each head begins with another one: a device deals cubes out in turns, and
/// tiles of the same place in their sequences, which take equally long, would all go to the same multiprocessors.
#[cube]
fn own_tile() -> usize {
    (((CUBE_POS_X + CUBE_POS_Y) % CUBE_COUNT_X) * 4u32) as usize
}

/// Rows `at ..` of one part of x into shared memory, [TILE, size]; 0 beyond `end`.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a part of a kernel")]
fn fetch(
    x: &Array<f32>,
    to: &mut SharedMemory<f32>,
    at: u32,
    end: u32,
    stride: u32,
    offset: u32,
    #[comptime] size: u32,
    #[comptime] shares: u32,
) {
    // So many are under way together: one after the other they are what a tile waits for.
    let own = comptime!(size.div_ceil(shares));
    let together = comptime!(if own.is_multiple_of(16) {
        16u32
    } else if own.is_multiple_of(8) {
        8u32
    } else {
        1u32
    });
    let units = comptime!(TILE * shares);
    for batch in 0..comptime!(own / together) {
        let mut values = Array::<f32>::new(comptime!(together as usize));
        #[unroll]
        for i in 0..together {
            let e = (batch * together + i) * units + UNIT_POS;
            let r = at + e / size;
            let inside = (r < end) && (e < TILE * size);
            let value = x[(select(inside, r, at) * stride + offset + e % size) as usize];
            values[i as usize] = select(inside, value, 0.0f32);
        }
        #[unroll]
        for i in 0..together {
            let e = (batch * together + i) * units + UNIT_POS;
            if comptime!(size.is_multiple_of(shares)) || e < TILE * size {
                to[e as usize] = values[i as usize];
            }
        }
    }
}

/// Where entry c of this unit's row stands in [TILE, size], where all rows are put down at once: neighbouring rows begin in other
/// banks.
#[cube]
fn aside(c: u32, #[comptime] size: u32) -> usize {
    let row = UNIT_POS % TILE;
    (row * size + (c + row) % size) as usize
}

/// What the second unit of a row has summed is added to what the first has, of all rows at once.
#[cube]
fn put_together(sums: &mut Array<f32>, room: &mut SharedMemory<f32>, #[comptime] size: u32) {
    sync_cube();
    #[unroll]
    for c in 0..size {
        if UNIT_POS >= TILE {
            room[aside(c, size)] = sums[c as usize];
        }
    }
    sync_cube();
    #[unroll]
    for c in 0..size {
        if UNIT_POS < TILE {
            sums[c as usize] += room[aside(c, size)];
        }
    }
}

/// Σ x·y over a row of y that begins at `at`, in four sums, so that a unit waits for none of its additions.
#[cube]
fn dot(x: &Array<f32>, y: &SharedMemory<f32>, at: u32, #[comptime] size: u32) -> f32 {
    let mut sums = Array::<f32>::new(4usize);
    #[unroll]
    for i in 0..4u32 {
        sums[i as usize] = 0.0f32;
    }
    #[unroll]
    for c in 0..size {
        let i = comptime!((c % 4) as usize);
        sums[i] = fma(x[c as usize], y[(at + c) as usize], sums[i]);
    }
    (sums[0usize] + sums[1usize]) + (sums[2usize] + sums[3usize])
}

/// context ← softmax(q·kᵀ/√size)·v, and of each row and head the logarithm of its sum. `tiles` has for each tile the first
/// row of its sequence, the row behind the last, the tile's own first row, and where the sequence's relations begin. `related`
/// has of each row and head what each relation adds to a score.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn forward(
    qkv: &Array<f32>,
    tiles: &Array<u32>,
    slopes: &Array<f32>,
    numbers: &Array<u32>,
    related: &Array<f32>,
    theta: &Array<f32>,
    context: &mut Array<f32>,
    sums: &mut Array<f32>,
    form: Form,
    masks: Masks,
    kinds: Kinds,
    #[comptime] size: u32,
    #[comptime] penalised: bool,
    #[comptime] dropped: bool,
    #[comptime] knows: Knows,
) {
    let mut keys = SharedMemory::<f32>::new((TILE * size) as usize);
    let mut values = SharedMemory::<f32>::new((TILE * size) as usize);
    let tile = own_tile();
    let begin = tiles[tile];
    let end = tiles[tile + 1];
    let first = tiles[tile + 2];
    let squares = tiles[tile + 3];
    let head = CUBE_POS_Y;
    let width = form.heads * size;
    let stride = 3u32 * width;
    let offset = head * size;
    let r = first + UNIT_POS;
    let active = r < end;

    let mut q = Array::<f32>::new(size as usize);
    let mut out = Array::<f32>::new(size as usize);
    #[unroll]
    for c in 0..size {
        let mut value = 0.0f32;
        if active {
            value = qkv[(r * stride + offset + c) as usize] * form.scale;
        }
        q[c as usize] = value;
        out[c as usize] = 0.0f32;
    }
    let mut slope = 0.0f32;
    if penalised {
        slope = slopes[head as usize];
    }
    let key = row_key(masks.key_high, masks.key_low, (masks.first_row + r) * form.heads + head);
    let of_row = (r * form.heads + head) * kinds.count;
    let mut largest = f32::new(-3.0e38);
    let mut sum = 0.0f32;
    let seen = select(first + TILE < end, first + TILE, end);
    for t in range_stepped(begin, seen, TILE) {
        sync_cube();
        fetch(qkv, &mut keys, t, end, stride, width + offset, size, 1u32);
        fetch(qkv, &mut values, t, end, stride, 2u32 * width + offset, size, 1u32);
        sync_cube();
        if active {
            let last = select(t + TILE < r + 1u32, t + TILE, r + 1u32);
            for j in t..last {
                let at = (j - t) * size;
                let mut score = dot(&q, &keys, at, size);
                if penalised {
                    score -= slope * f32::cast_from(r - j);
                }
                let number = relation(numbers, squares, begin, end, r, j, knows);
                let between = j > begin && j < r;
                let score = related_score(score, related, of_row, number, head, between, kinds, knows);
                let higher = select(score > largest, score, largest);
                let fade = exponential(largest - higher);
                let weight = exponential(score - higher);
                sum = fma(sum, fade, weight);
                let mut applied = weight;
                if dropped {
                    applied *= drop_factor(key, j - begin, masks.threshold, masks.scale);
                }
                #[unroll]
                for c in 0..size {
                    let mut value = values[(at + c) as usize];
                    if comptime!(knows.valued) {
                        value += theta[(kinds.values + number * size + c) as usize];
                    }
                    out[c as usize] = fma(out[c as usize], fade, applied * value);
                }
                largest = higher;
            }
        }
    }
    if active {
        let inverse = 1.0f32 / sum;
        #[unroll]
        for c in 0..size {
            context[(r * width + offset + c) as usize] = out[c as usize] * inverse;
        }
        sums[(head * form.rows + r) as usize] = largest + sum.ln();
    }
}

/// What a row loses along its own weights, Σ dcontext·context over its head: \[heads, rows\].
#[cube(launch_unchecked)]
pub(crate) fn along(
    dcontext: &Array<f32>,
    context: &Array<f32>,
    sums: &mut Array<f32>,
    rows: u32,
    heads: u32,
    size: u32,
    len: u32,
) {
    let i = entry();
    if i < len {
        let head = i / rows;
        let r = i % rows;
        let at = r * heads * size + head * size;
        let mut sum = 0.0f32;
        for c in 0..size {
            sum = fma(dcontext[(at + c) as usize], context[(at + c) as usize], sum);
        }
        sums[i as usize] = sum;
    }
}

/// The gradient of the queries: a unit has a row, keys and values come by.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn backward_queries(
    qkv: &Array<f32>,
    tiles: &Array<u32>,
    slopes: &Array<f32>,
    dcontext: &Array<f32>,
    sums: &Array<f32>,
    along: &Array<f32>,
    numbers: &Array<u32>,
    related: &Array<f32>,
    dqkv: &mut Array<f32>,
    by_number: &mut Array<f32>,
    form: Form,
    masks: Masks,
    kinds: Kinds,
    #[comptime] size: u32,
    #[comptime] penalised: bool,
    #[comptime] dropped: bool,
    #[comptime] knows: Knows,
) {
    let mut keys = SharedMemory::<f32>::new((TILE * size) as usize);
    let mut values = SharedMemory::<f32>::new((TILE * size) as usize);
    let tile = own_tile();
    let begin = tiles[tile];
    let end = tiles[tile + 1];
    let first = tiles[tile + 2];
    let squares = tiles[tile + 3];
    let head = CUBE_POS_Y;
    let width = form.heads * size;
    let stride = 3u32 * width;
    let offset = head * size;
    let r = first + UNIT_POS;
    let active = r < end;

    let mut q = Array::<f32>::new(size as usize);
    let mut g = Array::<f32>::new(size as usize);
    let mut dq = Array::<f32>::new(size as usize);
    #[unroll]
    for c in 0..size {
        let mut of_q = 0.0f32;
        let mut of_g = 0.0f32;
        if active {
            of_q = qkv[(r * stride + offset + c) as usize] * form.scale;
            of_g = dcontext[(r * width + offset + c) as usize];
        }
        q[c as usize] = of_q;
        g[c as usize] = of_g;
        dq[c as usize] = 0.0f32;
    }
    let mut slope = 0.0f32;
    if penalised {
        slope = slopes[head as usize];
    }
    let key = row_key(masks.key_high, masks.key_low, (masks.first_row + r) * form.heads + head);
    let mut log_sum = 0.0f32;
    let mut of_along = 0.0f32;
    if active {
        log_sum = sums[(head * form.rows + r) as usize];
        of_along = along[(head * form.rows + r) as usize];
    }
    // Behind what is added to scores is what values give along the gradient of the context.
    let half = form.rows * form.heads * kinds.count;
    let of_row = (r * form.heads + head) * kinds.count;
    if comptime!(knows.scored || knows.valued) {
        let own = select(active, kinds.count, 0u32);
        for n in 0..own {
            by_number[(of_row + n) as usize] = 0.0f32;
            by_number[(half + of_row + n) as usize] = 0.0f32;
        }
    }
    let seen = select(first + TILE < end, first + TILE, end);
    for t in range_stepped(begin, seen, TILE) {
        sync_cube();
        fetch(qkv, &mut keys, t, end, stride, width + offset, size, 1u32);
        fetch(qkv, &mut values, t, end, stride, 2u32 * width + offset, size, 1u32);
        sync_cube();
        if active {
            let last = select(t + TILE < r + 1u32, t + TILE, r + 1u32);
            for j in t..last {
                let at = (j - t) * size;
                let mut score = dot(&q, &keys, at, size);
                let mut slant = dot(&g, &values, at, size);
                if penalised {
                    score -= slope * f32::cast_from(r - j);
                }
                let number = relation(numbers, squares, begin, end, r, j, knows);
                let between = j > begin && j < r;
                let score = related_score(score, related, of_row, number, head, between, kinds, knows);
                if comptime!(knows.valued) {
                    slant += related[(half + of_row + number) as usize];
                }
                let weight = exponential(score - log_sum);
                let mut applied = weight;
                if dropped {
                    let factor = drop_factor(key, j - begin, masks.threshold, masks.scale);
                    slant *= factor;
                    applied *= factor;
                }
                let ds = weight * (slant - of_along);
                if comptime!(knows.scored) {
                    by_number[(of_row + number) as usize] += ds;
                }
                if comptime!(knows.valued) {
                    by_number[(half + of_row + number) as usize] += applied;
                }
                #[unroll]
                for c in 0..size {
                    dq[c as usize] = fma(ds, keys[(at + c) as usize], dq[c as usize]);
                }
            }
        }
    }
    if active {
        #[unroll]
        for c in 0..size {
            dqkv[(r * stride + offset + c) as usize] = dq[c as usize] * form.scale;
        }
    }
}

/// The gradients of the keys and values: a unit has the key of a row, queries and gradients of the later rows come by.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn backward_keys(
    qkv: &Array<f32>,
    tiles: &Array<u32>,
    slopes: &Array<f32>,
    dcontext: &Array<f32>,
    sums: &Array<f32>,
    along: &Array<f32>,
    numbers: &Array<u32>,
    related: &Array<f32>,
    dqkv: &mut Array<f32>,
    form: Form,
    masks: Masks,
    kinds: Kinds,
    #[comptime] size: u32,
    #[comptime] penalised: bool,
    #[comptime] dropped: bool,
    #[comptime] knows: Knows,
) {
    let mut queries = SharedMemory::<f32>::new((TILE * size) as usize);
    let mut gradients = SharedMemory::<f32>::new((TILE * size) as usize);
    let mut row_sums = SharedMemory::<f32>::new(TILE as usize);
    let mut row_along = SharedMemory::<f32>::new(TILE as usize);
    let mut row_keys = SharedMemory::<u32>::new(TILE as usize);
    let tile = own_tile();
    let begin = tiles[tile];
    let end = tiles[tile + 1];
    let first = tiles[tile + 2];
    let squares = tiles[tile + 3];
    let head = CUBE_POS_Y;
    let width = form.heads * size;
    let stride = 3u32 * width;
    let offset = head * size;
    let j = first + UNIT_POS % TILE;
    let share = UNIT_POS / TILE;
    let active = j < end;

    let mut k = Array::<f32>::new(size as usize);
    let mut v = Array::<f32>::new(size as usize);
    let mut dk = Array::<f32>::new(size as usize);
    let mut dv = Array::<f32>::new(size as usize);
    #[unroll]
    for c in 0..size {
        let mut of_k = 0.0f32;
        let mut of_v = 0.0f32;
        if active {
            of_k = qkv[(j * stride + width + offset + c) as usize] * form.scale;
            of_v = qkv[(j * stride + 2u32 * width + offset + c) as usize];
        }
        k[c as usize] = of_k;
        v[c as usize] = of_v;
        dk[c as usize] = 0.0f32;
        dv[c as usize] = 0.0f32;
    }
    let mut slope = 0.0f32;
    if penalised {
        slope = slopes[head as usize];
    }
    // Behind what is added to scores is what values give along the gradient of the context.
    let half = form.rows * form.heads * kinds.count;
    for t in range_stepped(first, end, TILE) {
        sync_cube();
        fetch(qkv, &mut queries, t, end, stride, offset, size, SHARES);
        fetch(dcontext, &mut gradients, t, end, width, offset, size, SHARES);
        let mine = t + UNIT_POS;
        if share == 0u32 && mine < end {
            row_sums[UNIT_POS as usize] = sums[(head * form.rows + mine) as usize];
            row_along[UNIT_POS as usize] = along[(head * form.rows + mine) as usize];
            if dropped {
                row_keys[UNIT_POS as usize] =
                    row_key(masks.key_high, masks.key_low, (masks.first_row + mine) * form.heads + head);
            }
        }
        sync_cube();
        if active {
            let from = select(t > j, t, j);
            let last = select(t + TILE < end, t + TILE, end);
            for i in range_stepped(from + share, last, SHARES) {
                let of_tile = i - t;
                let at = of_tile * size;
                let mut score = dot(&k, &queries, at, size);
                let mut slant = dot(&v, &gradients, at, size);
                if penalised {
                    score -= slope * f32::cast_from(i - j);
                }
                let number = relation(numbers, squares, begin, end, i, j, knows);
                let of_row = (i * form.heads + head) * kinds.count;
                let between = j > begin && j < i;
                let score = related_score(score, related, of_row, number, head, between, kinds, knows);
                if comptime!(knows.valued) {
                    slant += related[(half + of_row + number) as usize];
                }
                let weight = exponential(score - row_sums[of_tile as usize]);
                let mut applied = weight;
                if dropped {
                    let factor =
                        drop_factor(row_keys[of_tile as usize], j - begin, masks.threshold, masks.scale);
                    applied *= factor;
                    slant *= factor;
                }
                let ds = weight * (slant - row_along[of_tile as usize]);
                #[unroll]
                for c in 0..size {
                    dv[c as usize] = fma(applied, gradients[(at + c) as usize], dv[c as usize]);
                    dk[c as usize] = fma(ds, queries[(at + c) as usize], dk[c as usize]);
                }
            }
        }
    }
    put_together(&mut dk, &mut queries, size);
    put_together(&mut dv, &mut gradients, size);
    if active && share == 0u32 {
        #[unroll]
        for c in 0..size {
            dqkv[(j * stride + width + offset + c) as usize] = dk[c as usize] * form.scale;
            dqkv[(j * stride + 2u32 * width + offset + c) as usize] = dv[c as usize];
        }
    }
}

/// Keys and values of each row go to their places in the cache, \[places, 2·width\].
#[cube(launch_unchecked)]
pub(crate) fn keep(qkv: &Array<f32>, places: &Array<u32>, cache: &mut Array<f32>, width: u32, len: u32) {
    let i = entry();
    if i < len {
        let both = 2u32 * width;
        let r = i / both;
        let c = i % both;
        let place = places[r as usize];
        cache[(place * both + c) as usize] = qkv[(r * 3u32 * width + width + c) as usize];
    }
}

/// context of the newest token of each hypothesis: a cube has a hypothesis and a head, its units share out what was read
/// before, and their sums are put together in their order. `members` from `starts` on has the places of a hypothesis'
/// tokens in the cache, oldest first, its newest among them, and `numbers` what they are to it.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn newest(
    qkv: &Array<f32>,
    cache: &Array<f32>,
    starts: &Array<u32>,
    members: &Array<u32>,
    slopes: &Array<f32>,
    numbers: &Array<u32>,
    related: &Array<f32>,
    theta: &Array<f32>,
    context: &mut Array<f32>,
    form: Form,
    kinds: Kinds,
    #[comptime] size: u32,
    #[comptime] penalised: bool,
    #[comptime] knows: Knows,
) {
    let mut parts = SharedMemory::<f32>::new((TILE * size) as usize);
    let mut peaks = SharedMemory::<f32>::new(TILE as usize);
    let mut weights = SharedMemory::<f32>::new(TILE as usize);
    let r = CUBE_POS_X;
    let head = CUBE_POS_Y;
    let width = form.heads * size;
    let offset = head * size;
    let begin = starts[r as usize];
    let end = starts[(r + 1u32) as usize];

    let mut q = Array::<f32>::new(size as usize);
    let mut out = Array::<f32>::new(size as usize);
    #[unroll]
    for c in 0..size {
        q[c as usize] = qkv[(r * 3u32 * width + offset + c) as usize] * form.scale;
        out[c as usize] = 0.0f32;
    }
    let mut slope = 0.0f32;
    if penalised {
        slope = slopes[head as usize];
    }
    let of_row = (r * form.heads + head) * kinds.count;
    let mut largest = f32::new(-3.0e38);
    let mut sum = 0.0f32;
    for j in range_stepped(begin + UNIT_POS, end, TILE) {
        let at = members[j as usize] * 2u32 * width + offset;
        let mut score = 0.0f32;
        #[unroll]
        for c in 0..size {
            score = fma(q[c as usize], cache[(at + c) as usize], score);
        }
        if penalised {
            score -= slope * f32::cast_from(end - 1u32 - j);
        }
        let mut number = 0u32;
        if comptime!(knows.scored || knows.valued || knows.hidden) {
            number = numbers[j as usize];
        }
        let between = j > begin && j + 1u32 < end;
        let score = related_score(score, related, of_row, number, head, between, kinds, knows);
        let higher = select(score > largest, score, largest);
        let fade = exponential(largest - higher);
        let weight = exponential(score - higher);
        sum = fma(sum, fade, weight);
        #[unroll]
        for c in 0..size {
            let mut value = cache[(at + width + c) as usize];
            if comptime!(knows.valued) {
                value += theta[(kinds.values + number * size + c) as usize];
            }
            out[c as usize] = fma(out[c as usize], fade, weight * value);
        }
        largest = higher;
    }
    peaks[UNIT_POS as usize] = largest;
    weights[UNIT_POS as usize] = sum;
    #[unroll]
    for c in 0..size {
        parts[(UNIT_POS * size + c) as usize] = out[c as usize];
    }
    sync_cube();
    let mut peak = f32::new(-3.0e38);
    for u in 0..TILE {
        peak = select(peaks[u as usize] > peak, peaks[u as usize], peak);
    }
    let mut total = 0.0f32;
    for u in 0..TILE {
        total = fma(weights[u as usize], exponential(peaks[u as usize] - peak), total);
    }
    for c in range_stepped(UNIT_POS, size, TILE) {
        let mut value = 0.0f32;
        for u in 0..TILE {
            value = fma(parts[(u * size + c) as usize], exponential(peaks[u as usize] - peak), value);
        }
        context[(r * width + offset + c) as usize] = value / total;
    }
}
