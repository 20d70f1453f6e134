//! Every kernel against plain loops, on random shapes, views and numbers.

mod cuts;
mod folds;
mod moving;
mod normalising;
mod points;
mod products;
mod segments;
mod strips;
mod tapes;
mod tiles;

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
    let mut kept = std::collections::HashMap::new();
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
            Code::Keep(slot) => {
                kept.insert(*slot, stack[stack.len() - 1]);
                continue;
            }
            Code::Kept(slot) => kept[slot],
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
