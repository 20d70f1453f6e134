//! Softmax, lnorm and their adjoints beside their formulas.

use super::*;

/// A sum whose rounding does not grow with its length (Kahan 1965), so that what is compared with it is judged
/// by its own rounding: thousands of terms added plainly are off by more than [`close`] allows.
fn compensated(values: &mut dyn Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0, 0.0);
    for value in values {
        let term = value - lost;
        let next: f64 = sum + term;
        // What an infinite sum has lost is no number.
        lost = if next.is_finite() { (next - sum) - term } else { 0.0 };
        sum = next;
    }
    sum
}

/// The adjoint of lnorm, in 64 bits entry by entry.
fn lnorm_slope<T: Number>(precision: Precision) {
    let mut stream = stream("slope");
    for _ in 0..300 {
        let shape: Vec<usize> = shape(&mut stream, 4).into_iter().map(|size| size.max(1)).collect();
        let along = volume(&shape[stream.below(shape.len() as u64 + 1) as usize..]);
        let [(argument, x), (incoming, q), (result, y)] =
            [0; 3].map(|_| point::<T>(&mut stream, &shape, false));
        // One for all entries of a row, or one for each.
        let even = stream.below(2) == 0;
        let number = |at: usize| T::of(0.5 + (if even { at / along } else { at }) as f64 % 7.0);
        let eps: Vec<T> = (0..volume(&shape)).map(number).collect();
        let view = View::whole(Array::given(T::buffer(eps.clone())), &shape);
        let epsilon = Point::of(shape.clone(), view);
        let operation = LnormSlope { argument, incoming, result, epsilon, along };
        let what = format!("{operation:?}");
        let found = forced::<T>(&Array::of(volume(&shape), operation), precision);
        let mut wanted = Vec::new();
        for from in (0..volume(&shape)).step_by(along) {
            let row = |values: &[T]| -> Vec<f64> {
                values[from..from + along].iter().map(|value| value.double()).collect()
            };
            let [x, q, y, eps] = [&x, &q, &y, &eps].map(|values| row(values));
            let mean = |values: &mut dyn Iterator<Item = f64>| compensated(values) / along as f64;
            let centre = mean(&mut x.iter().copied());
            let variance = mean(&mut x.iter().map(|x| (x - centre) * (x - centre)));
            let (mean_q, mean_qy) =
                (mean(&mut q.iter().copied()), mean(&mut q.iter().zip(&y).map(|(q, y)| q * y)));
            let sizes = (
                mean(&mut q.iter().map(|q| q.abs())),
                mean(&mut q.iter().zip(&y).map(|(q, y)| (q * y).abs())),
            );
            // The kernel adds in eight lanes; where entries repeat, what each addition loses adds up.
            let length = 1.0 + along as f64 / (16.0 * ROUNDINGS);
            for at in 0..along {
                let root = (variance + eps[at]).sqrt();
                let size = length * (q[at].abs() + sizes.0 + y[at].abs() * sizes.1) / root;
                wanted.push(((q[at] - mean_q - y[at] * mean_qy) / root, size));
            }
        }
        close(&found, &wanted, &what);
    }
}

#[test]
fn the_adjoint_of_lnorm_is_its_formula() {
    both(lnorm_slope::<f64>, lnorm_slope::<f32>);
}

fn normalised<T: Number>(precision: Precision) {
    let mut stream = stream("normalise");
    for _ in 0..600 {
        let (rows, kept) = (stream.below(5) as usize, 1 + stream.below(3) as usize);
        let along = [0, 1, 1, 2, 5, 16, 33, 40][stream.below(8) as usize];
        let groups = (stream.below(2) == 0).then(|| {
            let count = 1 + stream.below(3) as usize;
            ((0..rows).map(|_| stream.below(count as u64) as u32).collect::<Vec<u32>>(), count)
        });
        // Without groups every slot of a row is one.
        let space = vec![rows, kept, along];
        let wild = stream.below(4) == 0;
        let far = if stream.below(4) == 0 { 300.0 } else { 1.0 };
        let values: Vec<f64> = (0..volume(&space)).map(|_| far * number(&mut stream, wild)).collect();
        let none = stream.below(5);
        let present: Option<Vec<f64>> = (stream.below(2) == 0)
            .then(|| (0..values.len()).map(|_| f64::from(u8::from(stream.below(5) < none))).collect());
        let epsilon = [None, Some(1e-5), Some(0.5)][stream.below(3) as usize];
        let here = |at: usize| present.as_ref().is_none_or(|present| present[at] != 0.0);
        // The entries of each group.
        let group_of = |at: usize| {
            let (row, slot) = (at / (kept * along).max(1), at / along.max(1) % kept);
            groups.as_ref().map_or(row, |(groups, _)| groups[row] as usize) * kept + slot
        };
        let mut wanted: Vec<Option<(f64, f64)>> = vec![None; values.len()];
        for at in 0..values.len() {
            let own: Vec<f64> = (0..values.len())
                .filter(|other| here(*other) && group_of(*other) == group_of(at))
                .map(|other| T::of(values[other]).double())
                .collect();
            let value = T::of(values[at]).double();
            let count = own.len() as f64;
            wanted[at] = match (epsilon, here(at)) {
                // Beside the rows of a group, whose mask says what is absent, it is 0.
                (None, false) => {
                    let zero = groups.is_none() && count > 0.0 && own.iter().all(|x| x.is_finite());
                    zero.then_some((0.0, 0.0))
                }
                (Some(_), false) => None,
                (None, true) if own.len() == 1 => Some((1.0, 0.0)),
                (None, true) => {
                    let most = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let total: f64 = own.iter().map(|x| (x - most).exp()).sum();
                    let result = (value - most).exp() / total;
                    Some((result, result + 1e-30))
                }
                (Some(epsilon), true) => {
                    let mean = own.iter().sum::<f64>() / count;
                    let variance = own.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
                    let result = (value - mean) / (variance + T::of(epsilon).double()).sqrt();
                    Some((result, result.abs() + mean.abs() + 1.0))
                }
            };
        }
        let points =
            |values: &[f64]| Point::of(space.clone(), View::whole(Array::doubles(values.to_vec()), &space));
        let layout =
            Layout { groups: groups.clone().map(|(groups, count)| (Arc::new(groups), count)), kept, along };
        let what = format!("{rows} {kept} {along} {groups:?} {epsilon:?} {values:?} {present:?}");
        let normalise = Normalise {
            values: points(&values),
            present: present.as_deref().map(points),
            epsilon: epsilon.map(|epsilon| points(&vec![epsilon; values.len()])),
            layout,
        };
        let found = forced::<T>(&Array::of(values.len(), normalise), precision);
        let known = found.iter().zip(&wanted).filter_map(|(found, wanted)| Some((*found, (*wanted)?)));
        let (found, wanted): (Vec<T>, Vec<(f64, f64)>) = known.unzip();
        close(&found, &wanted, &what);
    }
}

/// Short rows are done together, and what stands in one must not be seen in another.
fn softmax_of_short_rows<T: Number>(precision: Precision) {
    let mut stream = stream("softmax of short rows");
    for round in 0..120 {
        let (rows, along) = (1 + stream.below(300) as usize, 1 + stream.below(9) as usize);
        let wild = round % 3 == 0;
        let mut one = || match stream.below(if wild { 60 } else { 1 }) {
            1 => -1e9,
            2 => f64::NEG_INFINITY,
            3 => f64::NAN,
            4 => 800.0,
            _ => number(&mut stream, false),
        };
        let values: Vec<T> = (0..rows * along).map(|_| T::of(one())).collect();
        let softmax = |values: &[T]| {
            let (len, kept) = (values.len(), values.len() / along);
            let array = Array::given(T::buffer(values.to_vec()));
            let values = Point::of(vec![len], View::whole(array, &[len]));
            let layout = Layout { groups: None, kept, along };
            let normalise = Normalise { values, present: None, epsilon: None, layout };
            forced::<T>(&Array::of(len, normalise), precision)
        };
        let bits = |values: &[T]| values.iter().map(|value| value.double().to_bits()).collect::<Vec<_>>();
        let alone: Vec<T> = values.chunks(along).flat_map(softmax).collect();
        assert_eq!(bits(&softmax(&values)), bits(&alone), "{rows} {along} {values:?}");
    }
}

#[test]
fn short_rows_do_not_see_each_other() {
    both(softmax_of_short_rows::<f64>, softmax_of_short_rows::<f32>);
}

#[test]
fn softmax_and_lnorm_are_their_formulas() {
    both(normalised::<f64>, normalised::<f32>);
}
