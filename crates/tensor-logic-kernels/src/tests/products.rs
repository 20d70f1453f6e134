//! Products of matrices beside three loops.

use super::*;

/// Matrices that lie in one of the ways that the kernel takes.
fn matrices(
    stream: &mut Stream,
    batch: &[usize],
    rows: usize,
    columns: usize,
    wild: bool,
) -> (Matrices, Vec<f64>) {
    let slack = stream.below(3) as usize;
    let (row, column) = match stream.below(3) {
        // One row or one column may lie in any steps.
        _ if rows == 1 || columns == 1 => (1 + stream.below(4) as usize, 1 + stream.below(4) as usize),
        0 => (1, rows.max(1) + slack),
        _ => (columns.max(1) + slack, 1),
    };
    // Half of them end with their last entry.
    let last = rows.saturating_sub(1) * row + columns.saturating_sub(1) * column;
    let own = last + 1 + [0, row + column][stream.below(2) as usize];
    let mut steps = Vec::new();
    let mut reach = own;
    for size in batch {
        let step = if stream.below(3) == 0 { 0 } else { reach };
        steps.push(step);
        reach += step * size;
    }
    let offset = stream.below(4) as usize;
    let (array, values) = array(stream, offset + reach, wild);
    (Matrices { array, offset, batch: steps, row, column }, values)
}

fn products<T: Number>(precision: Precision) {
    let mut stream = stream("product");
    let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let (one, several) = (pool(1), pool(3));
    for round in 0..500 {
        let size = |stream: &mut Stream| [0, 1, 1, 2, 3, 5, 8, 16, 17, 33, 40][stream.below(11) as usize];
        // Now and then one that is cut into rows, or whose sums are.
        let (m, k, n) = match round {
            0 => (130, 700, 33),
            1 => (7, 9001, 61),
            2 => (1500, 37, 40),
            3 => (1, 8200, 260),
            _ => (size(&mut stream), size(&mut stream), size(&mut stream)),
        };
        let most = if round < 4 { 2 } else { 4 };
        let batch: Vec<usize> = (0..stream.below(3)).map(|_| stream.below(most) as usize).collect();
        let wild = stream.below(3) == 0;
        let (a, x) = matrices(&mut stream, &batch, m, k, wild);
        let (b, y) = matrices(&mut stream, &batch, k, n, wild);
        let scale = [1.0, -1.5, 0.25][stream.below(3) as usize];
        let mut wanted = Vec::new();
        for place in places(&batch) {
            let of = |m: &Matrices| m.offset + m.batch.iter().zip(&place).map(|(s, p)| s * p).sum::<usize>();
            for i in 0..m {
                for j in 0..n {
                    let one = |l: usize| {
                        let (a, b) = (of(&a) + i * a.row + l * a.column, of(&b) + l * b.row + j * b.column);
                        scale * x[a] * y[b]
                    };
                    let parts: Vec<f64> = (0..k).map(one).collect();
                    wanted.push(fold(Folding::Sum, &parts));
                }
            }
        }
        let product = Product { batch, m, k, n, a, b, scale };
        let what = format!("{product:?}");
        let array = || Array::of(wanted.len(), product.clone());
        let found = several.install(|| forced::<T>(&array(), precision));
        close(&found, &wanted, &what);
        let alone = one.install(|| forced::<T>(&array(), precision));
        anywhere(Recorded::of(&array()).unwrap(), &alone, &what);
        let bits = |values: &[T]| values.iter().map(|value| value.double().to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&found), bits(&alone), "{what}");
    }
}

#[test]
fn a_product_is_three_loops() {
    both(products::<f64>, products::<f32>);
}

/// Shapes that are cut into parts of what is summed over, into strips of rows, or not at all.
fn long_products<T: Number>(precision: Precision) {
    let mut stream = stream("long products");
    let shapes = [
        (vec![], 37, 4001, 29),
        (vec![3], 64, 1024, 64),
        (vec![2, 2], 17, 1999, 31),
        (vec![], 5, 70_001, 13),
        (vec![], 1031, 30, 67),
        (vec![2], 1200, 31, 64),
        (vec![], 1025, 17, 257),
    ];
    // Few results that are long sums.
    let few = |stream: &mut Stream| {
        let [m, n] = [(); 2].map(|()| 1 + stream.below(19) as usize);
        (vec![], m, 400 + stream.below(1500) as usize, n)
    };
    let few: Vec<_> = (0..60).map(|_| few(&mut stream)).collect();
    for (batch, m, k, n) in shapes.into_iter().chain(few) {
        let (a, x) = matrices(&mut stream, &batch, m, k, false);
        let (b, y) = matrices(&mut stream, &batch, k, n, false);
        let scale = [1.0, -1.5][stream.below(2) as usize];
        let mut wanted = Vec::new();
        for place in places(&batch) {
            let of = |m: &Matrices| m.offset + m.batch.iter().zip(&place).map(|(s, p)| s * p).sum::<usize>();
            let (from, to) = (of(&a), of(&b));
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let one = |l| scale * x[from + i * a.row + l * a.column] * y[to + l * b.row + j * b.column];
                let parts: (f64, f64) =
                    (0..k).map(one).fold((0.0, 0.0), |(s, t), v| (s + v, t + f64::abs(v)));
                wanted.push(parts);
            }
        }
        let what = format!("{batch:?} {m} {k} {n}");
        let product = Product { batch, m, k, n, a, b, scale };
        let on = |threads: usize| {
            let threads = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            threads.install(|| forced::<T>(&Array::of(wanted.len(), product.clone()), precision))
        };
        let one = on(1);
        assert!(one == on(2) && one == on(3), "{what}: the bits depend on the threads");
        close(&one, &wanted, &what);
    }
}

#[test]
fn a_long_product_is_three_loops_whatever_the_threads() {
    both(long_products::<f64>, long_products::<f32>);
}

/// Of sizes that one thread does unless others look for work: then in tasks of rows.
fn shared_products<T: Number>(precision: Precision) {
    let mut stream = stream("shared products");
    let threads = |count| rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
    let (one, several) = (threads(1), threads(3));
    for _ in 0..200 {
        let (m, k, n) = (1 + stream.below(2500), 1 + stream.below(70), 1 + stream.below(40));
        let [m, k, n] = [m, k, n].map(|size| size as usize);
        let batch: Vec<usize> = (0..stream.below(2)).map(|_| 1 + stream.below(3) as usize).collect();
        let (a, _) = matrices(&mut stream, &batch, m, k, false);
        let (b, _) = matrices(&mut stream, &batch, k, n, false);
        let len = volume(&batch) * m * n;
        let product = Product { batch, m, k, n, a, b, scale: 0.5 };
        let run = || forced::<T>(&Array::of(len, product.clone()), precision);
        let alone = one.install(run);
        let found = several.install(|| crate::threads::looked_for(run));
        let bits = |values: &[T]| values.iter().map(|value| value.double().to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&found), bits(&alone), "{product:?}");
    }
}

#[test]
fn a_product_in_tasks_of_rows_has_the_bits_of_one_thread() {
    both(shared_products::<f64>, shared_products::<f32>);
}
