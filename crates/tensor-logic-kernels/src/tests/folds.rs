//! Folds beside loops.

use super::*;

fn folds<T: Number>(precision: Precision) {
    let mut stream = stream("fold");
    for round in 0..400 {
        let folding = folding(&mut stream);
        // Both directions of tiles, few and many entries of either kind.
        let (left, right): (Vec<usize>, Vec<usize>) = match round % 8 {
            0 => (vec![20], vec![3, 67]),
            1 => (vec![3], vec![700]),
            2 => (vec![600], vec![20]),
            3 => (vec![], vec![5, 40]),
            4 => (vec![17, 3], vec![9]),
            _ => (shape(&mut stream, 2), shape(&mut stream, 2)),
        };
        let space = [left.as_slice(), &right].concat();
        let (mut point, values) = point::<T>(&mut stream, &space, true);
        let len = volume(&right);
        // A product may leave either type in one order of its factors and not in another.
        let power = |x: &T| if *x == T::ZERO { 0.0 } else { x.double().abs().ln().abs() };
        let leaves = values.chunks(len.max(1)).any(|row| {
            let powers: f64 = row.iter().map(power).filter(|power| power.is_finite()).sum();
            powers > 80.0
        });
        let folding = if folding == Folding::Product && leaves { Folding::Sum } else { folding };
        let truth = stream.below(8) == 0;
        let each = (0..volume(&left)).map(|row| {
            let own: Vec<f64> = values[row * len..(row + 1) * len].iter().map(|x| x.double()).collect();
            let (value, size) = fold(folding, &own);
            if truth { (f64::from(u8::from(value != 0.0)), 0.0) } else { (value, size) }
        });
        let wanted: Vec<(f64, f64)> = each.collect();
        // A sum that is 0 but for rounding is told from 0 by nobody.
        if truth && folding == Folding::Sum {
            continue;
        }
        point.truth = truth;
        let what = format!("{folding:?} {left:?} {right:?} {point:?}");
        let fold = Fold { point, kept: left.len(), folding };
        close(&forced::<T>(&Array::of(wanted.len(), fold), precision), &wanted, &what);
    }
}

#[test]
fn a_fold_is_a_loop_over_what_goes() {
    both(folds::<f64>, folds::<f32>);
}

/// What goes stands between rows of what stays, in arrays that are read as they lie.
fn folds_of_rows<T: Number>(precision: Precision) {
    let mut stream = stream("folds of rows");
    let threads = |count| rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
    let (one, several) = (threads(1), threads(3));
    for round in 0..200 {
        let outer: Vec<usize> = (0..stream.below(3)).map(|_| 1 + stream.below(50) as usize).collect();
        let inner: Vec<usize> = (0..1 + stream.below(2)).map(|_| 1 + stream.below(7) as usize).collect();
        let goes: Vec<usize> = (0..1 + stream.below(2)).map(|_| 1 + stream.below(9) as usize).collect();
        let goes = match round % 10 {
            0 => vec![120 + stream.below(20) as usize],
            1 => vec![1 + stream.below(3) as usize, 1 + stream.below(3000) as usize],
            _ => goes,
        };
        let outer = if volume(&goes) > 500 { Vec::new() } else { outer };
        let (rows, len, row) = (volume(&outer), volume(&goes), volume(&inner));
        let lies = [outer.as_slice(), &goes, &inner].concat();
        let apart = strides(&lies);
        let stays = outer.len() + inner.len();
        let order = (0..outer.len()).chain(outer.len() + goes.len()..lies.len()).chain(outer.len()..stays);
        let order: Vec<usize> = order.take(stays).chain(outer.len()..outer.len() + goes.len()).collect();
        let mut given =
            |all: usize| -> Vec<T> { (0..all).map(|_| T::of(number(&mut stream, false) + 0.25)).collect() };
        let (x, y, z) = (given(rows * len * row), given(rows * len * row), given(1));
        let view = |values: &[T], times: usize| View {
            array: Array::given(T::buffer(values.to_vec())),
            offset: 0,
            steps: order.iter().map(|dim| Step::By(apart[*dim] * times)).collect(),
        };
        let product = Code::Binary(Binary::Multiply);
        let code =
            vec![Code::Load(0), Code::Load(1), product.clone(), Code::Load(2), Code::Binary(Binary::Add)];
        let shape: Vec<usize> = order.iter().map(|dim| lies[*dim]).collect();
        let inputs = vec![view(&x, 1), view(&y, 1), view(&z, 0)];
        let point = Point { shape, inputs, code, truth: false };
        for folding in [Folding::Sum, Folding::Larger, Folding::Smaller] {
            let fold = Fold { point: point.clone(), kept: stays, folding };
            let run = || forced::<T>(&Array::of(rows * row, fold.clone()), precision);
            let (alone, found) = (one.install(run), several.install(|| crate::threads::looked_for(run)));
            let what = format!("{lies:?} {fold:?}");
            assert_eq!(found, alone, "{what}");
            anywhere(Recorded::of(&Array::of(rows * row, fold.clone())).unwrap(), &alone, &what);
            for (at, found) in found.iter().enumerate() {
                let places = (0..len).map(|nth| (at / row * len + nth) * row + at % row);
                let values = places.clone().map(|place| x[place] * y[place] + z[0]);
                let joined = |so_far: T, value: T| match folding {
                    Folding::Larger => larger(so_far, value),
                    Folding::Smaller => smaller(so_far, value),
                    Folding::Sum | Folding::Product => so_far + value,
                };
                let wanted = values.fold(T::of(folding.start()), joined);
                // Long sums go on in 64 bits, and few sums of many rows in several lanes.
                let most = places.map(|place| (x[place] * y[place] + z[0]).double().abs()).sum::<f64>();
                let bits = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
                let close = (found.double() - wanted.double()).abs() <= len as f64 * bits * most;
                let exact = len <= 128 && !outer.is_empty();
                assert!(if exact { *found == wanted } else { close }, "{found:?} {wanted:?} {what}");
            }
        }
    }
}

#[test]
fn a_fold_between_rows_is_a_loop_over_what_goes() {
    both(folds_of_rows::<f64>, folds_of_rows::<f32>);
}

/// So long that the work is shared out in parts, and more of them than are worked on apart.
fn long_folds<T: Number>(precision: Precision) {
    let mut stream = stream("long fold");
    for (rows, len) in [(1, 1_300_000), (3, 300_000), (70_000, 3), (500, 700)] {
        let values: Vec<f64> = (0..rows * len).map(|_| number(&mut stream, false)).collect();
        for (folding, across) in [(Folding::Sum, false), (Folding::Sum, true), (Folding::Larger, false)] {
            let at =
                |row: usize, column: usize| if across { column * rows + row } else { row * len + column };
            let each = (0..rows).map(|row| {
                let own: Vec<f64> = (0..len).map(|column| T::of(values[at(row, column)]).double()).collect();
                fold(folding, &own)
            });
            let wanted: Vec<(f64, f64)> = each.collect();
            let steps = if across { [Step::By(1), Step::By(rows)] } else { [Step::By(len), Step::By(1)] };
            let view = View { array: Array::doubles(values.clone()), offset: 0, steps: steps.to_vec() };
            let fold = Fold { point: Point::of(vec![rows, len], view), kept: 1, folding };
            let what = format!("{rows} × {len} {folding:?} {across}");
            close(&forced::<T>(&Array::of(rows, fold), precision), &wanted, &what);
        }
    }
}

#[test]
fn long_folds_are_loops_too() {
    both(long_folds::<f64>, long_folds::<f32>);
}
