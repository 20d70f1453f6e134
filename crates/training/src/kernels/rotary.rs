//! Rotary positions (Su et al. 2021): pairs (2i, 2i+1) of queries and keys turn by position · base^(−2i/size).

use rayon::prelude::*;

/// The table of cosines and sines, computed in f64: [positions, size/2, 2].
pub fn rotary_table(positions: usize, size: usize) -> Vec<f32> {
    let mut table = Vec::with_capacity(positions * size);
    for position in 0..positions {
        for i in 0..size / 2 {
            let angle = position as f64 / 10_000_f64.powf(2.0 * i as f64 / size as f64);
            table.extend([angle.cos() as f32, angle.sin() as f32]);
        }
    }
    table
}

/// Turns the queries and keys of `qkv` [rows, 3·heads·size] in place; `backward` turns the other way, which is the
/// gradient. `positions` \[rows\] must lie inside the table.
pub fn rotary(
    table: &[f32],
    qkv: &mut [f32],
    positions: &[usize],
    heads: usize,
    size: usize,
    backward: bool,
) {
    let width = heads * size;
    let sign = if backward { -1.0 } else { 1.0 };
    qkv.par_chunks_mut((3 * width).max(1)).zip(positions).for_each(|(row, &position)| {
        let Some(angles) = table.get(position * size..(position + 1) * size) else { return };
        let (turned, _value) = row.split_at_mut(2 * width);
        for head in turned.chunks_exact_mut(size.max(1)) {
            for (pair, angle) in head.chunks_exact_mut(2).zip(angles.chunks_exact(2)) {
                let (x, y, cos, sin) = (pair[0], pair[1], angle[0], sign * angle[1]);
                pair[0] = x * cos - y * sin;
                pair[1] = x * sin + y * cos;
            }
        }
    });
}
