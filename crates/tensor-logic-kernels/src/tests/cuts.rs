//! Operations that are cut into parts of their results, beside the whole, bit for bit.

use seeded::Stream;

use super::{array, both, point, stream};
use crate::{Array, Fold, Folding, Matrices, Number, Pool, Precision, Product, Recorded, volume};

/// Each part reads from where it is said to on, no further than it is said to, and makes what the whole makes there.
fn parts_are_those<T: Number>(mut whole: Recorded, lanes: usize, each: usize, what: &str) -> bool {
    let mut arrays: Vec<Vec<T>> = Vec::new();
    whole.visit(&mut |array, offset| {
        let from = offset.map_or(0, std::mem::take);
        arrays.push(array.done().unwrap().numbers::<T>().split_off(from));
    });
    if !whole.is_free() {
        return false;
    }
    let pool = Pool::default();
    let sources: Vec<&[T]> = arrays.iter().map(Vec::as_slice).collect();
    let mut wanted = vec![T::of(7.0); whole.len()];
    whole.run_on(&sources, &mut wanted, &pool);
    let width = whole.len() / lanes;
    for first in (0..lanes).step_by(each) {
        let count = each.min(lanes - first);
        let Some((part, along)) = whole.cut(lanes, count) else { return false };
        let own: Vec<&[T]> = sources
            .iter()
            .zip(&along)
            .map(|(source, along)| {
                let (from, reach) = (along.step * first, along.step * (count - 1) + along.reach + 1);
                &source[from..from + reach]
            })
            .collect();
        let mut found = vec![T::of(7.0); part.len()];
        part.run_on(&own, &mut found, &pool);
        let bits = |x: &T| if x.double().is_nan() { u64::MAX } else { x.double().to_bits() };
        let here = wanted[first * width..(first + count) * width].iter().map(bits);
        assert!(found.iter().map(bits).eq(here), "{what}: {count} of {lanes} parts from {first} on");
    }
    true
}

fn matrices(stream: &mut Stream, batch: Vec<usize>, rows: usize, columns: usize) -> Matrices {
    let len = volume(&batch) * rows * columns;
    let (row, column) = if stream.below(2) == 0 { (columns, 1) } else { (1, rows) };
    let mut steps: Vec<usize> = batch.iter().map(|_| rows * columns).collect();
    // One for all of a batch, now and then.
    if stream.below(2) == 0 {
        steps.fill(0);
    }
    Matrices { array: array(stream, len, false).0, offset: 0, batch: steps, row, column }
}

fn cuts<T: Number>(_: Precision) {
    let mut stream = stream("cuts");
    let mut cut = [0; 3];
    for round in 0..800 {
        let mut below = |n: usize| stream.below(n as u64) as usize;
        let (lanes, times) = (16 + below(80), 1 + below(3));
        let each = 16 + below(lanes - 15);
        let operation = match round % 4 {
            0 | 1 => {
                let shape = [lanes * times, 1 + below(4), 1 + below(20)];
                let kept = 1 + below(2);
                let (point, _) = point::<T>(&mut stream, &shape, true);
                match round % 4 {
                    0 => Array::of(volume(&shape), point),
                    _ => {
                        // Other folds are not done where their results belong.
                        let folding = Folding::Sum;
                        Array::of(volume(&shape[..kept]), Fold { point, kept, folding })
                    }
                }
            }
            2 => {
                // Of few and of many columns, and of sums that are too short for chains or not.
                let (m, k, n) = (lanes * times, [1, 2, 3, 5, 16, 25, 130][below(7)], 1 + below(80));
                let (a, b) = (matrices(&mut stream, vec![], m, k), matrices(&mut stream, vec![], k, n));
                Array::of(m * n, Product { batch: vec![], m, k, n, a, b, scale: 0.5 })
            }
            _ => {
                let (m, k, n) = (1 + below(14), [1, 2, 3, 8, 16][below(5)], 1 + below(40));
                let batch = vec![lanes];
                let a = matrices(&mut stream, batch.clone(), m, k);
                let b = matrices(&mut stream, batch.clone(), k, n);
                Array::of(lanes * m * n, Product { batch, m, k, n, a, b, scale: 1.0 })
            }
        };
        let recorded = Recorded::of(&operation).unwrap();
        let what = format!("{recorded:?}");
        cut[(round % 4).min(2)] += usize::from(parts_are_those::<T>(recorded, lanes, each, &what));
    }
    assert!(cut.iter().all(|count| *count > 10), "points, folds and products that are cut: {cut:?}");
}

#[test]
fn parts_have_the_bits_of_the_whole() {
    both(cuts::<f64>, cuts::<f32>);
}
