//! Every kernel against plain loops, on random shapes, views and numbers.

mod cuts;
mod tapes;

use std::sync::Arc;

use seeded::Stream;

use super::{
    Array, Binary, Buffer, Code, Fold, Folding, Grouping, Layout, LnormSlope, Matrices, NOWHERE, Normalise,
    Number, Origin, Placed, Places, Point, Pool, Precision, Product, Recorded, Segments, Slabs, Step, Tape,
    View, larger, smaller, strides, volume,
};
use tensor_logic_core::ast::Comparison;
use tensor_logic_core::function::Function;

fn stream(purpose: &str) -> Stream {
    seeded::Family::new("tensor-logic/kernels", purpose, seeded::test_seed()).stream(0)
}

/// A number that both types hold; now and then none.
fn number(stream: &mut Stream, wild: bool) -> f64 {
    match stream.below(if wild { 12 } else { 9 }) {
        0 => 0.0,
        9 => f64::NAN,
        10 => f64::INFINITY,
        11 => f64::NEG_INFINITY,
        _ => stream.below(33) as f64 / 8.0 - 2.0,
    }
}

/// An array of these numbers, in either type or as truths, and what stands in it.
fn array(stream: &mut Stream, len: usize, wild: bool) -> (Array, Vec<f64>) {
    let wild = wild && stream.below(4) == 0;
    match stream.below(5) {
        0 => {
            let truths: Vec<bool> = (0..len).map(|_| stream.below(2) == 0).collect();
            let values = truths.iter().map(|truth| f64::from(u8::from(*truth))).collect();
            (Array::truths(truths), values)
        }
        kind => {
            let values: Vec<f64> = (0..len).map(|_| number(stream, wild)).collect();
            let buffer = match kind {
                1 => f32::buffer(values.iter().map(|value| *value as f32).collect()),
                _ => f64::buffer(values.clone()),
            };
            (Array::given(buffer), values)
        }
    }
}

/// A view and all that stands in its array.
#[derive(Clone)]
struct Seen {
    view: View,
    values: Vec<f64>,
}

impl Seen {
    fn at<T: Number>(&self, positions: &[usize]) -> T {
        let steps = self.view.steps.iter().zip(positions);
        let offset: usize = steps.map(|(step, position)| step.offset(*position)).sum();
        T::of(self.values[self.view.offset + offset])
    }
}

/// How a reader of this shape may walk something.
fn random_steps(stream: &mut Stream, shape: &[usize]) -> Vec<Step> {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, stream.below(at as u64 + 1) as usize);
    }
    let permuted: Vec<usize> = order.iter().map(|at| shape[*at]).collect();
    let nested = strides(&permuted);
    let mut steps = vec![Step::By(0); shape.len()];
    for (place, at) in order.iter().enumerate() {
        steps[*at] = match stream.below(6) {
            0 => Step::By(0),
            1 => Step::By(stream.below(5) as usize),
            2 => {
                let map = (0..shape[*at]).map(|_| stream.below(6) as u32).collect();
                Step::Map(Arc::new(map), stream.below(4) as usize)
            }
            _ => Step::By(nested[place]),
        };
    }
    steps
}

/// How long an array must be for a reader of this shape.
fn reach(steps: &[Step], shape: &[usize]) -> usize {
    let most = |(step, size): (&Step, &usize)| (0..*size).map(|at| step.offset(at)).max().unwrap_or(0);
    steps.iter().zip(shape).map(most).sum::<usize>() + 1
}

fn seen(stream: &mut Stream, shape: &[usize], wild: bool) -> Seen {
    let steps = random_steps(stream, shape);
    let offset = stream.below(3) as usize;
    let len = offset + reach(&steps, shape) + stream.below(2) as usize;
    let (array, values) = array(stream, len, wild);
    Seen { view: View { array, offset, steps }, values }
}

fn shape(stream: &mut Stream, rank: u64) -> Vec<usize> {
    let rank = stream.below(rank + 1);
    (0..rank)
        .map(|_| [0, 1, 2, 3, 3, 5, 7, 17][stream.below(8) as usize].max(usize::from(stream.below(4) > 0)))
        .collect()
}

/// The positions of a space in order.
fn places(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new()];
    for size in shape {
        found =
            found.iter().flat_map(|place| (0..*size).map(|at| [place.as_slice(), &[at]].concat())).collect();
    }
    found
}

fn forced<T: Number>(array: &Array, precision: Precision) -> Vec<T> {
    array.force(precision, &Arc::new(Pool::default())).numbers()
}

/// Both types, one after the other.
fn both(test: fn(Precision), other: fn(Precision)) {
    test(Precision::Double);
    other(Precision::Single);
}

fn equal<T: Number>(found: &[T], wanted: &[T], what: &dyn std::fmt::Debug) {
    assert_eq!(found.len(), wanted.len(), "{what:?}");
    for (at, (a, b)) in found.iter().zip(wanted).enumerate() {
        let same = a == b || (a.double().is_nan() && b.double().is_nan());
        assert!(same, "at {at}: {a:?} instead of {b:?}: {what:?}");
    }
}

/// What rounding may do to a sum of numbers of this type, as a part of the sum of their sizes.
fn unit<T: Number>() -> f64 {
    let mut unit = 1.0;
    while (T::ONE + T::of(unit / 2.0)).double() > 1.0 {
        unit /= 2.0;
    }
    unit
}

/// How many roundings, each as large as it may be, sums may differ by.
const ROUNDINGS: f64 = 40.0;

/// Sums agree to what rounding does, relative to the sizes of what is added.
fn close<T: Number>(found: &[T], wanted: &[(f64, f64)], what: &dyn std::fmt::Debug) {
    assert_eq!(found.len(), wanted.len(), "{what:?}");
    for (at, (a, (b, size))) in found.iter().zip(wanted).enumerate() {
        let a = a.double();
        let same = a == *b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= ROUNDINGS * unit::<T>() * size;
        assert!(same, "at {at}: {a} instead of {b}: {what:?}");
    }
}

/// A random program on a stack, of so many steps, and how many inputs it reads.
fn code(stream: &mut Stream, inputs: usize) -> Vec<Code> {
    let mut code: Vec<Code> = Vec::new();
    let mut depth = 0;
    for _ in 0..1 + stream.below(7) {
        match stream.below(9) {
            0 if depth >= 1 => code.push(Code::Negate),
            1 if depth >= 1 => {
                let functions = [Function::Relu, Function::Step, Function::Abs, Function::Tanh];
                code.push(Code::Call(functions[stream.below(4) as usize].clone(), 1));
            }
            2 if depth >= 3 => {
                code.push(Code::Select);
                depth -= 2;
            }
            3 if depth >= 2 => {
                code.push(Code::Call(Function::Max, 2));
                depth -= 1;
            }
            4 | 5 if depth >= 2 => {
                code.push(Code::Binary(binary(stream)));
                depth -= 1;
            }
            6 => {
                code.push(Code::Number(number(stream, false)));
                depth += 1;
            }
            _ => {
                code.push(Code::Load(stream.below(inputs as u64) as usize));
                depth += 1;
            }
        }
    }
    if depth == 0 {
        code.push(Code::Load(0));
    }
    for _ in 1..depth {
        code.push(Code::Binary(binary(stream)));
    }
    code
}

fn binary(stream: &mut Stream) -> Binary {
    match stream.below(6) {
        0 | 1 => Binary::Add,
        2 => Binary::Multiply,
        3 => Binary::Divide,
        4 => Binary::Compare(Comparison::Less),
        _ => Binary::Compare(Comparison::Equal),
    }
}

/// The program for one entry.
fn run<T: Number>(code: &[Code], inputs: &[T]) -> T {
    let mut stack: Vec<T> = Vec::new();
    let truth = |holds: bool| if holds { T::ONE } else { T::ZERO };
    for step in code {
        let value = match step {
            Code::Load(at) => inputs[*at],
            Code::Number(value) => T::of(*value),
            Code::Negate => -stack.pop().unwrap(),
            Code::Call(function, count) => {
                let rest = stack.len() - count;
                let arguments: Vec<T> = stack.drain(rest..).collect();
                let mut own = [T::ZERO];
                match arguments.as_slice() {
                    // Their own test says that the vectorised forms are the functions.
                    [_] if T::elementwise(function, &arguments, &mut own) => own[0],
                    _ => T::of(function.value(&arguments.iter().map(|x| x.double()).collect::<Vec<f64>>())),
                }
            }
            Code::Binary(binary) => {
                let (b, a) = (stack.pop().unwrap(), stack.pop().unwrap());
                match binary {
                    Binary::Add => a + b,
                    Binary::Multiply => a * b,
                    Binary::Divide => a / (b + T::ZERO),
                    Binary::Compare(Comparison::Less) => truth(a < b),
                    _ => truth(a == b),
                }
            }
            Code::Select => {
                let (b, a) = (stack.pop().unwrap(), stack.pop().unwrap());
                if stack.pop().unwrap() != T::ZERO { a } else { b }
            }
        };
        stack.push(value);
    }
    stack.pop().unwrap()
}

/// A random point over a space, and its entries by plain loops.
fn point<T: Number>(stream: &mut Stream, shape: &[usize], wild: bool) -> (Point, Vec<T>) {
    let inputs: Vec<Seen> = (0..1 + stream.below(3)).map(|_| seen(stream, shape, wild)).collect();
    let code = code(stream, inputs.len());
    let entry = |place: Vec<usize>| {
        let values: Vec<T> = inputs.iter().map(|input| input.at(&place)).collect();
        run(&code, &values)
    };
    let wanted = places(shape).into_iter().map(entry).collect();
    let views = inputs.into_iter().map(|input| input.view).collect();
    (Point { shape: shape.to_vec(), inputs: views, code, truth: false }, wanted)
}

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

/// What is recorded does the same on entries that begin where its views do, without -0.
fn anywhere<T: Number>(mut recorded: Recorded, wanted: &[T], what: &dyn std::fmt::Debug) {
    let mut arrays: Vec<Vec<T>> = Vec::new();
    recorded.visit(&mut |array, offset| {
        let from = offset.map_or(0, std::mem::take);
        arrays.push(array.done().unwrap().numbers::<T>().split_off(from));
    });
    if !recorded.is_free() {
        return;
    }
    let sources: Vec<&[T]> = arrays.iter().map(Vec::as_slice).collect();
    for _ in 0..2 {
        let mut to = vec![T::of(7.0); recorded.len()];
        recorded.run_on(&sources, &mut to, &Pool::default());
        equal(&to, wanted, what);
        assert!(to.iter().all(|x| *x != T::ZERO || x.double().is_sign_positive()), "{what:?}");
        // What stays the same may be handed over in the order in which it is read, too.
        if let Some(ordered) = recorded.ordered(&sources, &Pool::default()) {
            let mut again = vec![T::of(7.0); recorded.len()];
            let sources = [sources.as_slice(), &[&ordered]].concat();
            recorded.run_on(&sources, &mut again, &Pool::default());
            equal(&again, &to, what);
        }
    }
}

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

/// A sum whose own rounding does not grow with the length.
fn sum(values: &[f64]) -> f64 {
    let plain: f64 = values.iter().sum();
    if !plain.is_finite() {
        return plain;
    }
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}

/// The fold of some numbers, and the size of what rounding is a part of.
fn fold(folding: Folding, values: &[f64]) -> (f64, f64) {
    let size = values.iter().map(|value| value.abs()).sum();
    match folding {
        Folding::Sum => (sum(values), size),
        Folding::Product => {
            let product: f64 = values.iter().product();
            (product, product.abs() * values.len() as f64)
        }
        Folding::Larger => (values.iter().copied().fold(f64::NEG_INFINITY, larger), 0.0),
        Folding::Smaller => (values.iter().copied().fold(f64::INFINITY, smaller), 0.0),
    }
}

fn folding(stream: &mut Stream) -> Folding {
    [Folding::Sum, Folding::Sum, Folding::Product, Folding::Larger, Folding::Smaller]
        [stream.below(5) as usize]
}

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
    let own = rows.max(1) * row + columns.max(1) * column;
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
        let size = |stream: &mut Stream| [0, 1, 1, 2, 3, 5, 8, 17, 33, 40][stream.below(10) as usize];
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
    for (batch, m, k, n) in shapes {
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

fn segments<T: Number>(precision: Precision) {
    let mut stream = stream("segments");
    for round in 0..300 {
        let many = round % 20 == 0;
        let counts: Vec<usize> = (0..stream.below(6))
            .map(|_| match stream.below(5) {
                0 => 0,
                1 if many => 300 + stream.below(700) as usize,
                _ => 1 + stream.below(5) as usize,
            })
            .collect();
        let total: usize = counts.iter().sum();
        // Rows come in any order, some several times, others never.
        let named = total.max(1);
        let rows: Vec<u32> = (0..total).map(|_| stream.below(named as u64) as u32).collect();
        let mut start = vec![0_u32];
        counts.iter().for_each(|count| start.push(start.last().unwrap() + *count as u32));
        let inner: Vec<usize> = match stream.below(8) {
            0 => vec![],
            1 => vec![0],
            2 => vec![64],
            3 => vec![130],
            4 => vec![5, 17],
            5 => vec![16],
            _ => vec![1 + stream.below(9) as usize],
        };
        let width = volume(&inner);
        let wild = stream.below(3) == 0;
        let lane = |stream: &mut Stream, unit: usize, slack: usize| {
            let step = match stream.below(3) {
                0 => Step::Map(Arc::new((0..named).map(|_| stream.below(4) as u32).collect()), unit),
                1 => Step::By(0),
                _ => Step::By(unit),
            };
            let offset = stream.below(3) as usize;
            let reach = reach(std::slice::from_ref(&step), &[named]) + slack;
            let (array, values) = array(stream, offset + reach, wild);
            (array, values, offset, step)
        };
        let folding = if stream.below(4) == 0 { folding(&mut stream) } else { Folding::Sum };
        let sums = folding == Folding::Sum;
        if folding == Folding::Product && many {
            continue;
        }
        let mut numbers = Vec::new();
        for _ in 0..if sums { stream.below(3) } else { 0 } {
            let (array, values, offset, step) = lane(&mut stream, 1, 0);
            numbers.push(Seen { view: View { array, offset, steps: vec![step] }, values });
        }
        let mut slabs = Vec::new();
        for _ in 0..if sums { stream.below(4) } else { 1 } {
            let (array, values, offset, step) = lane(&mut stream, width.max(1), width);
            let mut steps = vec![step];
            steps.extend(strides(&inner).into_iter().map(Step::By));
            slabs.push(Seen { view: View { array, offset, steps }, values });
        }
        let constant = if sums { [1.0, -0.5, 3.0][stream.below(3) as usize] } else { 1.0 };
        let mut wanted = Vec::new();
        for group in 0..counts.len() {
            for place in places(&inner) {
                let own = &rows[start[group] as usize..start[group + 1] as usize];
                let one = |row: &u32| {
                    let at = [&[*row as usize], place.as_slice()].concat();
                    let numbers: f64 = numbers.iter().map(|view| view.at::<f64>(&at[..1])).product();
                    let slabs: f64 = slabs.iter().map(|view| view.at::<f64>(&at)).product();
                    constant * numbers * slabs
                };
                let parts: Vec<f64> = own.iter().map(one).collect();
                wanted.push(fold(folding, &parts));
            }
        }
        let what = format!(
            "{folding:?} {counts:?} {inner:?} {rows:?} {numbers:?} {slabs:?}",
            numbers = numbers.iter().map(|s| &s.view).collect::<Vec<_>>(),
            slabs = slabs.iter().map(|s| &s.view).collect::<Vec<_>>()
        );
        let views = |seen: Vec<Seen>| seen.into_iter().map(|seen| seen.view).collect();
        let segments = Segments {
            groups: Grouping::new(start, rows),
            inner,
            numbers: views(numbers),
            slabs: views(slabs),
            constant,
            folding,
        };
        close(&forced::<T>(&Array::of(wanted.len(), segments), precision), &wanted, &what);
    }
}

#[test]
fn segments_are_sums_over_the_rows_of_each_group() {
    both(segments::<f64>, segments::<f32>);
}

/// One grouping that many sums use, over columns, numbers and slabs that stay, that are met in both types, and that go
/// and are replaced.
fn kept_look_ups<T: Number>(precision: Precision) {
    let mut stream = stream("kept look-ups");
    for round in 0..40 {
        let (groups, table) = (1 + stream.below(6) as usize, [0, 1, 7, 31, 97][stream.below(5) as usize]);
        // Each row once, in its own order or not, or any row any number of times.
        let total = if round % 3 == 2 { stream.below(60) as usize } else { table };
        let rows: Vec<u32> = match round % 3 {
            0 => (0..table as u32).collect(),
            1 => (0..table as u32).rev().collect(),
            _ => (0..total).map(|_| stream.below(table.max(1) as u64) as u32).collect(),
        };
        let rows = if table == 0 { Vec::new() } else { rows };
        let mut start: Vec<u32> = (1..groups).map(|_| stream.below(rows.len() as u64 + 1) as u32).collect();
        start.extend([0, rows.len() as u32]);
        start.sort_unstable();
        let grouping = Grouping::new(start.clone(), rows.clone());
        assert_eq!(grouping.count(), groups);
        let width = [1, 5, 16, 67][stream.below(4) as usize];
        let map =
            |stream: &mut Stream| Arc::new((0..table).map(|_| stream.below(9) as u32).collect::<Vec<u32>>());
        let mut maps: Vec<Arc<Vec<u32>>> = (0..6).map(|_| map(&mut stream)).collect();
        let mut numbers: Vec<_> = (0..6).map(|_| array(&mut stream, 2 * table + 20, false)).collect();
        let slabs = array(&mut stream, 9 * width, false);
        for _ in 0..30 {
            // What is replaced may stand where something else stood.
            if stream.below(3) == 0 {
                let at = stream.below(6) as usize;
                maps[at] = map(&mut stream);
                numbers[at] = array(&mut stream, 2 * table + 20, false);
            }
            let (values, scales) = &numbers[stream.below(6) as usize];
            let step = match stream.below(4) {
                0 => Step::By(0),
                1 => Step::By(2),
                2 => Step::By(1),
                _ => Step::Map(Arc::clone(&maps[stream.below(6) as usize]), 2),
            };
            let number = View { array: values.clone(), offset: stream.below(2) as usize, steps: vec![step] };
            let column = Step::Map(Arc::clone(&maps[stream.below(6) as usize]), width);
            let slab = View { array: slabs.0.clone(), offset: 0, steps: vec![column, Step::By(1)] };
            let mut wanted = Vec::new();
            for group in start.windows(2) {
                for column in 0..width {
                    let one = |row: &u32| {
                        let row = *row as usize;
                        let scale = scales[number.offset + number.steps[0].offset(row)];
                        scale * slabs.1[slab.steps[0].offset(row) + column]
                    };
                    let parts: Vec<f64> =
                        rows[group[0] as usize..group[1] as usize].iter().map(one).collect();
                    wanted.push(fold(Folding::Sum, &parts));
                }
            }
            let segments = Segments {
                groups: Arc::clone(&grouping),
                inner: vec![width],
                numbers: vec![number],
                slabs: vec![slab],
                constant: 1.0,
                folding: Folding::Sum,
            };
            let other = match precision {
                Precision::Double => Precision::Single,
                Precision::Single => Precision::Double,
            };
            if stream.below(3) == 0 {
                let _ = forced::<f64>(&Array::of(wanted.len(), segments.clone()), other);
            }
            let found = forced::<T>(&Array::of(wanted.len(), segments), precision);
            close(&found, &wanted, &(round, &start, &rows));
        }
    }
}

#[test]
fn what_is_looked_up_by_row_is_kept_right() {
    both(kept_look_ups::<f64>, kept_look_ups::<f32>);
}

/// No kernel that says that it makes no -0 makes one.
#[test]
fn zeros_have_no_sign_where_a_kernel_says_so() {
    let tiny = |sign: f64| Array::doubles(vec![sign * 1e-200; 8]);
    let by = |array: Array, steps: Vec<Step>| View { array, offset: 0, steps };
    let matrices = |array: Array| Matrices { array, offset: 0, batch: vec![], row: 1, column: 1 };
    let product = Product {
        batch: vec![],
        m: 1,
        k: 1,
        n: 8,
        a: matrices(tiny(-1.0)),
        b: Matrices { row: 8, ..matrices(tiny(1.0)) },
        scale: 1.0,
    };
    let segments = Segments {
        groups: Grouping::new(vec![0, 1, 1], vec![0]),
        inner: vec![8],
        numbers: vec![by(tiny(-1.0), vec![Step::By(1)])],
        slabs: vec![by(tiny(1.0), vec![Step::By(8), Step::By(1)])],
        constant: -1e-200,
        folding: Folding::Sum,
    };
    let negative = |code: Vec<Code>| {
        let inputs = vec![by(Array::doubles(vec![-0.0, -1.0]), vec![Step::By(1)])];
        Point { shape: vec![2], inputs, code, truth: false }
    };
    let mut arrays = vec![Array::of(8, product), Array::of(16, segments)];
    for function in [Function::Relu, Function::Step, Function::Abs] {
        arrays.push(Array::of(2, negative(vec![Code::Load(0), Code::Call(function, 1)])));
    }
    let added = vec![Code::Load(0), Code::Number(0.0), Code::Binary(Binary::Add)];
    arrays.push(Array::of(2, negative(added)));
    let sum = Fold { point: negative(vec![Code::Load(0)]), kept: 1, folding: Folding::Sum };
    arrays.push(Array::of(2, sum));
    for array in arrays {
        assert!(array.makes_unsigned_zeros());
        assert!(forced::<f64>(&array, Precision::Double).iter().all(|x| *x != 0.0 || x.is_sign_positive()));
    }
    // Those that may make one do not say so.
    for code in [vec![Code::Load(0)], vec![Code::Load(0), Code::Number(-0.0), Code::Binary(Binary::Add)]] {
        assert!(!Array::of(2, negative(code)).makes_unsigned_zeros());
    }
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

/// Sums over many rows, and slabs wider than what is summed at once.
fn long_segments<T: Number>(precision: Precision) {
    let mut stream = stream("long segments");
    for width in [1_usize, 16, 64, 100, 150] {
        let (groups, rows, slabs) = (40_usize, 3000_usize, 70_usize);
        let of: Vec<usize> = (0..rows).map(|_| stream.below(groups as u64) as usize).collect();
        let mut start = vec![0_u32];
        let mut ordered = Vec::new();
        for group in 0..groups {
            ordered.extend((0..rows as u32).filter(|row| of[*row as usize] == group));
            start.push(ordered.len() as u32);
        }
        let map: Vec<u32> = (0..rows).map(|_| stream.below(slabs as u64) as u32).collect();
        let (array_of_slabs, values) = array(&mut stream, slabs * width, false);
        let (array_of_numbers, scales) = array(&mut stream, rows, false);
        let segments = Segments {
            groups: Grouping::new(start, ordered),
            inner: vec![width],
            numbers: vec![View { array: array_of_numbers, offset: 0, steps: vec![Step::By(1)] }],
            slabs: vec![View {
                array: array_of_slabs,
                offset: 0,
                steps: vec![Step::Map(Arc::new(map.clone()), width), Step::By(1)],
            }],
            constant: 0.5,
            folding: Folding::Sum,
        };
        let mut wanted = vec![(0.0, 0.0); groups * width];
        for row in 0..rows {
            for at in 0..width {
                let value = 0.5 * scales[row] * values[map[row] as usize * width + at];
                let slot = &mut wanted[of[row] * width + at];
                *slot = (slot.0 + value, slot.1 + value.abs());
            }
        }
        close(&forced::<T>(&Array::of(groups * width, segments), precision), &wanted, &width);
    }
}

#[test]
fn long_segments_are_loops_too() {
    both(long_segments::<f64>, long_segments::<f32>);
}

/// Several large operations, so that the threads stay awake between them, on numbers that were brought there by all of them.
fn chained<T: Number>(precision: Precision) {
    let (rows, len) = (311, 443);
    let mut stream = stream("chained");
    let values: Vec<f64> = (0..rows * len).map(|_| stream.normal()).collect();
    let chain = || {
        let pool = Arc::new(Pool::default());
        let shape = vec![rows, len];
        let mut arrays = vec![Array::of_doubles(&values, precision, &pool)];
        for _ in 0..5 {
            let last = View::whole(arrays[arrays.len() - 1].clone(), &shape);
            let fold = Fold { point: Point::of(shape.clone(), last.clone()), kept: 1, folding: Folding::Sum };
            let sums = Array::of(rows, fold);
            let of_row = View { array: sums.clone(), offset: 0, steps: vec![Step::By(1), Step::By(0)] };
            let code = vec![
                Code::Load(0),
                Code::Load(1),
                Code::Binary(Binary::Multiply),
                Code::Call(Function::Tanh, 1),
            ];
            let point = Point { shape: shape.clone(), inputs: vec![last, of_row], code, truth: false };
            arrays.extend([sums, Array::of(rows * len, point)]);
        }
        let asked: Vec<(&Array, bool)> = arrays.iter().map(|array| (array, true)).collect();
        Array::force_all(&asked, precision, &pool);
        let found = arrays.iter().flat_map(|array| array.force(precision, &pool).numbers::<T>());
        found.map(|number| number.double().to_bits()).collect::<Vec<u64>>()
    };
    let threads = |count| rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
    let wanted = threads(1).install(chain);
    let brought: Vec<u64> = values.iter().map(|x| T::of(*x).double().to_bits()).collect();
    assert!(wanted[..rows * len] == brought);
    for count in [2, 4, 7] {
        assert!(threads(count).install(chain) == wanted, "{count} threads");
    }
}

#[test]
fn a_chain_of_large_operations_has_the_same_bits_by_any_number_of_threads() {
    both(chained::<f64>, chained::<f32>);
}

mod strips {
    //! Groups of operations, strip after strip, against the same operations done one after the other.

    use super::*;

    /// What is read, by name, and what is done with it.
    struct Attention {
        batch: usize,
        rows: usize,
        others: usize,
        inner: usize,
        scale: f64,
        /// A guard on the position, and whether weights are normalised with an epsilon.
        masked: bool,
        normed: bool,
        /// Whether what is given stands column by column.
        turned: bool,
    }

    /// The arrays of a forward and a backward pass, of which the outcomes are looked at.
    struct Arrays {
        given: [Array; 3],
        all: Vec<Array>,
        outcomes: Vec<usize>,
    }

    fn numbers(stream: &mut Stream, len: usize) -> Vec<f64> {
        (0..len).map(|_| stream.normal()).collect()
    }

    fn whole(array: &Array, shape: &[usize]) -> View {
        View::whole(array.clone(), shape)
    }

    fn steps(array: &Array, steps: &[usize]) -> View {
        View { array: array.clone(), offset: 0, steps: steps.iter().map(|step| Step::By(*step)).collect() }
    }

    fn matrices(array: &Array, batch: usize, row: usize, column: usize) -> Matrices {
        Matrices { array: array.clone(), offset: 0, batch: vec![batch], row, column }
    }

    impl Attention {
        fn draw(stream: &mut Stream) -> Attention {
            let rows = [16, 17, 40, 65, 130, 300][stream.below(6) as usize];
            Attention {
                batch: [1, 2, 8, 9][stream.below(4) as usize],
                rows,
                others: [1, 20, 65, 128, 200][stream.below(5) as usize],
                inner: [1, 2, 17, 32, 33, 64][stream.below(6) as usize],
                scale: [1.0, 0.125, -0.5][stream.below(3) as usize],
                masked: stream.below(3) == 0,
                normed: stream.below(4) == 0,
                turned: stream.below(2) == 0,
            }
        }

        /// Attention and its gradient over given numbers; `kept` says which arrays somebody else looks at too.
        fn arrays(&self, given: &[Vec<f64>], precision: Precision) -> Arrays {
            let (b, i, j, d) = (self.batch, self.rows, self.others, self.inner);
            let of = |values: &Vec<f64>| {
                Array::given(match precision {
                    Precision::Double => f64::buffer(values.clone()),
                    Precision::Single => f32::buffer(values.iter().map(|value| *value as f32).collect()),
                })
            };
            let [q, k, v]: [Array; 3] = std::array::from_fn(|at| of(&given[at]));
            let product = |m: usize, k: usize, n: usize, a: Matrices, c: Matrices, scale: f64| {
                Array::of(b * m * n, Product { batch: vec![b], m, k, n, a, b: c, scale })
            };
            let plus = |array: &Array, shape: &[usize]| {
                let code = vec![Code::Load(0), Code::Number(0.0), Code::Binary(Binary::Add)];
                let point =
                    Point { shape: shape.to_vec(), inputs: vec![whole(array, shape)], code, truth: false };
                Array::of(volume(shape), point)
            };
            let (square, wide) = ([b, i, j], [b, i, d]);
            let (along_i, along_j) = if self.turned { ((1, i), (1, j)) } else { ((d, 1), (d, 1)) };
            let given = |array: &Array, rows: usize, (row, column): (usize, usize)| {
                matrices(array, rows * d, row, column)
            };
            let turned = |(row, column): (usize, usize)| (column, row);
            let s = product(i, d, j, given(&q, i, along_i), given(&k, j, turned(along_j)), self.scale);
            let mask = Array::truths((0..i * j).map(|at| at % j <= at / j).collect());
            let values = Point::of(square.to_vec(), whole(&s, &square));
            let guard = Point::of(square.to_vec(), steps(&mask, &[0, j, 1]));
            let one = Array::doubles(vec![1e-5]);
            let epsilon = Point::of(square.to_vec(), steps(&one, &[0, 0, 0]));
            let normalise = Normalise {
                values,
                present: self.masked.then_some(guard),
                epsilon: self.normed.then_some(epsilon),
                layout: Layout { groups: None, kept: b * i, along: j },
            };
            let weights = Array::of(b * i * j, normalise);
            let p = plus(&weights, &square);
            let o = product(i, j, d, matrices(&p, i * j, j, 1), given(&v, j, along_j), 1.0);
            let (o_raw, o) = (o.clone(), plus(&o, &wide));
            let twice = vec![Code::Load(0), Code::Number(2.0), Code::Binary(Binary::Multiply)];
            let slope =
                Point { shape: wide.to_vec(), inputs: vec![whole(&o, &wide)], code: twice, truth: false };
            let slope = Array::of(b * i * d, slope);
            let dp = product(i, d, j, matrices(&slope, i * d, d, 1), given(&v, j, turned(along_j)), 1.0);
            let (dp_raw, dp) = (dp.clone(), plus(&dp, &square));
            let times = vec![Code::Load(0), Code::Load(1), Code::Binary(Binary::Multiply)];
            let both = vec![whole(&p, &square), whole(&dp, &square)];
            let point = Point { shape: square.to_vec(), inputs: both, code: times, truth: false };
            let sums = Array::of(b * i, Fold { point, kept: 2, folding: Folding::Sum });
            let code = vec![
                Code::Load(0),
                Code::Load(1),
                Code::Load(2),
                Code::Negate,
                Code::Binary(Binary::Add),
                Code::Binary(Binary::Multiply),
            ];
            let inputs = vec![whole(&p, &square), whole(&dp, &square), steps(&sums, &[i, 1, 0])];
            let ds = Array::of(b * i * j, Point { shape: square.to_vec(), inputs, code, truth: false });
            let dq = product(i, j, d, matrices(&ds, i * j, j, 1), given(&k, j, along_j), self.scale);
            let dk = product(j, i, d, matrices(&ds, i * j, 1, j), given(&q, i, along_i), self.scale);
            let dv = product(d, i, j, matrices(&slope, i * d, 1, d), matrices(&p, i * j, j, 1), 1.0);
            let square = vec![whole(&o, &wide), whole(&o, &wide)];
            let code = vec![Code::Load(0), Code::Load(1), Code::Binary(Binary::Multiply)];
            let point = Point { shape: wide.to_vec(), inputs: square, code, truth: false };
            let loss = Array::of(1, Fold { point, kept: 0, folding: Folding::Sum });
            let all = vec![s, weights, p, o_raw, o, slope, dp_raw, dp, sums, ds, dq, dk, dv, loss];
            Arrays { given: [q, k, v], all, outcomes: vec![4, 10, 11, 12, 13] }
        }
    }

    /// What was found for some numbers is kept, and done on others.
    fn kept_as_a_tape(what: &Attention, given: &[Vec<f64>], precision: Precision, wanted: &[Vec<f64>]) {
        let others: Vec<Vec<f64>> =
            given.iter().map(|values| values.iter().map(|x| 2.0 - x).collect()).collect();
        let pool = Arc::new(Pool::default());
        let mut tape = {
            let arrays = what.arrays(&others, precision);
            let origin = |array: &Array| match arrays.given.iter().position(|given| given.same(array)) {
                Some(at) => Some(Origin::Given(at)),
                None => Some(Origin::Fixed),
            };
            let handles = arrays.all.iter().enumerate();
            let asked: Vec<&Array> =
                handles.filter(|(at, _)| arrays.outcomes.contains(at)).map(|(_, array)| array).collect();
            let tape = Tape::of(&asked, origin, (precision, &pool)).unwrap();
            assert!(arrays.all.iter().all(Array::is_waiting), "all of it hangs on what is given");
            tape
        };
        let Arrays { given, outcomes, .. } = what.arrays(given, precision);
        for threads in [1, 2, 2] {
            let workers = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let made = workers.install(|| tape.run(&given, precision, &pool));
            assert_eq!(made.len(), outcomes.len());
            for (at, array) in outcomes.iter().zip(made) {
                assert_eq!(singles(&array.done().unwrap()), wanted[*at], "{at}, {threads} threads");
            }
        }
    }

    fn singles(buffer: &Buffer) -> Vec<f64> {
        buffer.numbers::<f64>()
    }

    #[test]
    fn they_are_what_one_operation_after_the_other_is() {
        let mut stream = stream("strips");
        let mut fused = 0;
        for round in 0..60 {
            let what = Attention::draw(&mut stream);
            let Attention { batch: b, rows: i, others: j, inner: d, .. } = what;
            let given = [b * i * d, b * j * d, b * j * d].map(|len| numbers(&mut stream, len));
            let precision = if round % 2 == 0 { Precision::Single } else { Precision::Double };
            // Each by itself, inputs before their readers.
            let plain = what.arrays(&given, precision);
            let pool = Arc::new(Pool::default());
            let expected: Vec<Vec<f64>> = plain
                .all
                .iter()
                .map(|array| {
                    array.compute(precision, &pool);
                    singles(&array.done().unwrap())
                })
                .collect();
            // What a sum over rows adds up, in size: where that cancels, rounding is as large as it is.
            let size = |at: usize, entry: usize| -> f64 {
                let (from, rest) = (entry / (j * d) * i, entry % (j * d));
                let term = |row: usize| match at {
                    11 => {
                        let (other, column) = (rest / d, rest % d);
                        let q = if what.turned { row + column * i } else { row * d + column };
                        what.scale * expected[9][(from + row) * j + other] * given[0][from * d + q]
                    }
                    _ => {
                        let (column, other) = (rest / j, rest % j);
                        expected[5][(from + row) * d + column] * expected[2][(from + row) * j + other]
                    }
                };
                (0..i).map(|row| term(row).abs()).sum()
            };
            let unit = if precision == Precision::Single { unit::<f32>() } else { unit::<f64>() };
            let mut bits: Option<Vec<Vec<f64>>> = None;
            let looked_at = stream.below(14) as usize;
            for (threads, forward) in [(1, false), (2, false), (3, false), (2, true)] {
                let arrays = what.arrays(&given, precision);
                let pool = Arc::new(Pool::default());
                let workers = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut outcomes = arrays.outcomes.clone();
                if forward {
                    // What comes after is not known yet.
                    outcomes = vec![4];
                }
                let handles = arrays.all.iter().enumerate();
                let listed = handles.filter(|(at, _)| outcomes.contains(at) || !forward || *at != looked_at);
                let listed: Vec<(&Array, bool)> =
                    listed.map(|(at, array)| (array, outcomes.contains(&at))).collect();
                workers.install(|| Array::force_all(&listed, precision, &pool));
                fused += arrays.all.iter().filter(|array| array.is_waiting()).count();
                let found: Vec<Vec<f64>> = arrays
                    .all
                    .iter()
                    .map(|array| workers.install(|| singles(&array.force(precision, &pool))))
                    .collect();
                for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    // Sums over rows are taken strip after strip.
                    let sums = at == 11 || at == 12;
                    for (entry, (x, y)) in found.iter().zip(expected).enumerate() {
                        let same = x == y || x.is_nan() && y.is_nan();
                        let scale =
                            (i as f64).sqrt() * if precision == Precision::Single { 1e-5 } else { 1e-14 };
                        let near = || (x - y).abs() <= scale * (1.0 + y.abs()) * 30.0;
                        let close = sums && (near() || (x - y).abs() <= 8.0 * unit * size(at, entry));
                        assert!(same || close, "{at}: {x} and {y}, {b} {i} {j} {d} {threads} {forward}");
                    }
                }
                if !forward {
                    match &bits {
                        None => bits = Some(found),
                        Some(bits) => assert_eq!(&found, bits, "threads change nothing"),
                    }
                }
            }
            kept_as_a_tape(&what, &given, precision, &bits.unwrap());
        }
        assert!(fused > 60, "strips were tried: {fused}");
    }
}
