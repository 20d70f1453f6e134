//! Points: programs on numbers at every entry, and what is recorded of them.

use super::*;

fn points<T: Number>(precision: Precision) {
    let mut stream = stream("point");
    for _ in 0..600 {
        let shape = shape(&mut stream, 4);
        let (mut point, mut wanted) = point::<T>(&mut stream, &shape, true);
        if stream.below(8) == 0 {
            point.truth = true;
            wanted.iter_mut().for_each(|x| *x = if *x != T::ZERO { T::ONE } else { T::ZERO });
        }
        let what = format!("{point:?}");
        equal(&forced::<T>(&Array::of(wanted.len(), point), precision), &wanted, &what);
    }
}

#[test]
fn a_point_is_its_program_at_every_entry() {
    both(points::<f64>, points::<f32>);
}

/// Rows of few numbers, many of them, wherever they lie.
fn short_rows<T: Number>(precision: Precision) {
    let mut stream = stream("short rows");
    let shapes: [&[usize]; 7] = [
        &[1300, 2],
        &[3, 500, 3],
        &[2, 300, 2, 5],
        &[700, 1, 15],
        &[5, 2, 260, 3],
        &[40, 70, 2],
        &[2, 3, 900],
    ];
    for round in 0..140 {
        let (point, wanted) = point::<T>(&mut stream, shapes[round % shapes.len()], true);
        let what = format!("{point:?}");
        equal(&forced::<T>(&Array::of(wanted.len(), point), precision), &wanted, &what);
    }
}

#[test]
fn short_rows_are_found_wherever_they_lie() {
    both(short_rows::<f64>, short_rows::<f32>);
}

/// What is recorded, done by itself and where it belongs, is what is done once, but for the sign of 0.
fn recorded<T: Number>(precision: Precision) {
    let mut stream = stream("recorded");
    let pool = Arc::new(Pool::default());
    for round in 0..400 {
        let shape: Vec<usize> = shape(&mut stream, 4).into_iter().map(|size| size.max(1)).collect();
        let (point, _) = point::<T>(&mut stream, &shape, true);
        let kept = stream.below(shape.len() as u64 + 1) as usize;
        let array = match round % 4 {
            0 => Array::of(volume(&shape), point),
            3 => {
                let [incoming, result, epsilon] =
                    [0; 3].map(|_| self::point::<T>(&mut stream, &shape, true).0);
                let along = volume(&shape[kept..]);
                Array::of(volume(&shape), LnormSlope { argument: point, incoming, result, epsilon, along })
            }
            1 => Array::of(volume(&shape[..kept]), Fold { point, kept, folding: folding(&mut stream) }),
            _ => {
                let layout = Layout { groups: None, kept: 1, along: volume(&shape[kept..]) };
                let operation = Normalise { values: point, present: None, epsilon: None, layout };
                Array::of(volume(&shape), operation)
            }
        };
        let (recorded, free) = (Recorded::of(&array).unwrap(), Recorded::of(&array).unwrap());
        let wanted = forced::<T>(&array, precision);
        let what = format!("{recorded:?}");
        for _ in 0..2 {
            // The second time it knows its ways.
            equal(&recorded.run(precision, &pool).numbers::<T>(), &wanted, &what);
            let mut to = T::buffer(vec![T::of(7.0); wanted.len() + 2]);
            if recorded.run_into(&mut to, 1, &pool) {
                let to = to.numbers::<T>();
                equal(&to[1..=wanted.len()], &wanted, &what);
                assert!(to.iter().all(|x| *x != T::ZERO || x.double().is_sign_positive()), "{what}");
                assert_eq!((to[0].double(), to[wanted.len() + 1].double()), (7.0, 7.0));
            }
            assert!(!recorded.run_into(&mut T::buffer(Vec::new()), 1, &pool), "{what}");
        }
        anywhere(free, &wanted, &what);
    }
}

#[test]
fn what_is_recorded_is_written_where_it_belongs() {
    both(recorded::<f64>, recorded::<f32>);
}

/// Points that read points, taken into one or not.
fn nested<T: Number>(precision: Precision) {
    let mut stream = stream("fusion");
    let mut fused = 0;
    for _ in 0..1500 {
        let rank = 1 + stream.below(3) as usize;
        let own: Vec<usize> = (0..rank).map(|_| 1 + stream.below(5) as usize).collect();
        let (deepest, mut values) = point::<T>(&mut stream, &own, true);
        let mut inner = deepest;
        let mut space = own;
        let mut taken = 0;
        for _ in 0..1 + stream.below(3) {
            if stream.below(8) == 0 {
                inner.truth = true;
                values.iter_mut().for_each(|x| *x = if *x != T::ZERO { T::ONE } else { T::ZERO });
            }
            // The reader's dimensions: those of the inner one, permuted, picked by maps, with others beside.
            let steps_inside = strides(&space);
            let mut dims: Vec<(usize, Step)> = Vec::new();
            for (size, step) in space.iter().zip(steps_inside) {
                match stream.below(4) {
                    0 => {
                        let picked = stream.below(7) as usize;
                        let map = (0..picked).map(|_| stream.below(*size as u64) as u32).collect();
                        dims.push((picked, Step::Map(Arc::new(map), step)));
                    }
                    _ => dims.push((*size, Step::By(step))),
                }
            }
            if stream.below(2) == 0 {
                dims.push((1 + stream.below(3) as usize, Step::By(0)));
            }
            for at in (1..dims.len()).rev() {
                dims.swap(at, stream.below(at as u64 + 1) as usize);
            }
            let shape: Vec<usize> = dims.iter().map(|(size, _)| *size).collect();
            let steps: Vec<Step> = dims.into_iter().map(|(_, step)| step).collect();
            let read: Vec<f64> = values.iter().map(|value| value.double()).collect();
            let len = read.len();
            let lies = Seen { view: View { array: Array::of(len, inner), offset: 0, steps }, values: read };
            let other = seen(&mut stream, &shape, true);
            let code = code(&mut stream, 2);
            let entry = |place: Vec<usize>| run(&code, &[lies.at::<T>(&place), other.at::<T>(&place)]);
            let found: Vec<T> = places(&shape).into_iter().map(entry).collect();
            values = found;
            let point =
                Point { shape: shape.clone(), inputs: vec![lies.view, other.view], code, truth: false };
            let point = point.fused();
            taken += usize::from(!point.inputs.iter().any(|view| view.array.own::<Point>().is_some()));
            inner = point;
            space = shape;
            if volume(&space) == 0 || volume(&space) > 2000 {
                break;
            }
        }
        fused += usize::from(taken > 0);
        let what = format!("{inner:?}");
        equal(&forced::<T>(&Array::of(values.len(), inner), precision), &values, &what);
    }
    assert!(fused > 300, "only {fused} of 1500 were fused");
}

#[test]
fn points_that_read_points_are_one_point() {
    both(nested::<f64>, nested::<f32>);
}
