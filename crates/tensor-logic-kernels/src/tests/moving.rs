//! What is put elsewhere.

use super::*;

fn moved<T: Number>(precision: Precision) {
    let mut stream = stream("slabs");
    for _ in 0..200 {
        let (count, inner) = (1 + stream.below(5) as usize, stream.below(4) as usize);
        let (from, values) = array(&mut stream, count * inner, true);
        let place = |stream: &mut Stream| match stream.below(3) {
            0 => NOWHERE,
            _ => stream.below(count as u64) as u32,
        };
        let positions: Vec<u32> = (0..stream.below(9)).map(|_| place(&mut stream)).collect();
        let one = |at: &u32| {
            let at = *at;
            let values = &values;
            (0..inner).map(move |l| if at == NOWHERE { 0.0 } else { values[at as usize * inner + l] })
        };
        let wanted: Vec<T> = positions.iter().flat_map(one).map(T::of).collect();
        let what = format!("{positions:?} {inner} {values:?}");
        let slabs = Slabs { from, positions: Arc::new(positions), inner };
        equal(&forced::<T>(&Array::of(wanted.len(), slabs), precision), &wanted, &what);
    }
}

#[test]
fn slabs_stand_where_they_are_put() {
    both(moved::<f64>, moved::<f32>);
}

/// Copies along dimensions in another order, long and short, so that rows are taken together, one by one, and transposed.
fn permuted<T: Number>(precision: Precision) {
    let mut stream = stream("permuted");
    for _ in 0..200 {
        let rank = 2 + stream.below(3) as usize;
        let shape: Vec<usize> =
            (0..rank).map(|_| [1, 2, 4, 9, 16, 33, 60][stream.below(7) as usize]).collect();
        if volume(&shape) > 1 << 18 {
            continue;
        }
        let mut order: Vec<usize> = (0..rank).collect();
        for at in (1..rank).rev() {
            order.swap(at, stream.below(at as u64 + 1) as usize);
        }
        let nested = strides(&order.iter().map(|at| shape[*at]).collect::<Vec<_>>());
        let mut steps = vec![Step::By(0); rank];
        order.iter().zip(&nested).for_each(|(at, step)| steps[*at] = Step::By(*step));
        if stream.below(3) == 0 {
            let at = stream.below(rank as u64) as usize;
            let map = (0..shape[at]).map(|_| stream.below(shape[at] as u64) as u32).collect();
            steps[at] = Step::Map(Arc::new(map), steps[at].by().unwrap_or(1));
        }
        let (array, values) = array(&mut stream, volume(&shape), true);
        let seen = Seen { view: View { array, offset: 0, steps }, values };
        let point = Point::of(shape.clone(), seen.view.clone());
        let wanted: Vec<T> = places(&shape).iter().map(|place| seen.at(place)).collect();
        equal(&forced::<T>(&Array::of(volume(&shape), point), precision), &wanted, &seen.view);
    }
}

#[test]
fn permuted_copies_have_each_entry_in_its_place() {
    both(permuted::<f64>, permuted::<f32>);
}

fn placed<T: Number>(precision: Precision) {
    let mut stream = stream("placed");
    for _ in 0..200 {
        let len = 1 + stream.below(3000) as usize;
        let (base, before) = array(&mut stream, len, false);
        let base = (stream.below(2) == 0).then_some(base);
        let mut wanted: Vec<T> =
            before.iter().map(|value| if base.is_some() { T::of(*value) } else { T::ZERO }).collect();
        let mut whole = base;
        for _ in 0..1 + stream.below(3) {
            // Steps that lead beyond what the smaller ones reach, in any order of the dimensions.
            let rank = stream.below(4) as usize;
            let (mut shape, mut steps, mut reach) = (Vec::new(), Vec::new(), 0);
            for _ in 0..rank {
                let (size, step) = (1 + stream.below(9) as usize, reach + 1 + stream.below(2) as usize);
                if reach + (size - 1) * step < len {
                    reach += (size - 1) * step;
                    shape.push(size);
                    steps.push(step);
                }
            }
            if stream.below(2) == 0 {
                shape.reverse();
                steps.reverse();
            }
            let offset = stream.below((len - reach) as u64) as usize;
            let (part, values) = array(&mut stream, volume(&shape), false);
            for (place, value) in places(&shape).iter().zip(&values) {
                let at: usize = place.iter().zip(&steps).map(|(place, step)| place * step).sum();
                wanted[offset + at] += T::of(*value);
            }
            let places = Places { offset, shape: shape.into(), steps: steps.into() };
            whole = Some(Array::of(len, Placed::onto(whole.take(), len, (part, places))));
        }
        let Some(whole) = whole else { continue };
        equal(&forced::<T>(&whole, precision), &wanted, &whole);
    }
}

#[test]
fn arrays_are_put_where_their_places_say() {
    both(placed::<f64>, placed::<f32>);
}
