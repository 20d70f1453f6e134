//! What tapes make of operations that are drawn, beside these one by one.

use std::sync::Arc;

use seeded::Stream;

use super::{both, number, stream};
use crate::schedule::waiting;
use crate::threads::looked_for;
use crate::{
    Array, Binary, Buffer, Code, Fold, Folding, Grouping, Layout, LnormSlope, Matrices, Normalise, Number,
    Origin, Point, Pool, Precision, Product, Segments, Slabs, Step, Tape, View,
};
use tensor_logic_core::function::Function;

/// How the entries of an array lie, of R rows and C columns.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lies {
    ByRows,
    ByColumns,
    /// As one row of R C entries.
    Flat,
    /// One entry for each row.
    Rows,
    /// One entry for each column.
    Columns,
    One,
}

const ALL: [Lies; 6] = [Lies::ByRows, Lies::ByColumns, Lies::Flat, Lies::Rows, Lies::Columns, Lies::One];

impl Lies {
    fn shape(self, (r, c): (usize, usize)) -> Vec<usize> {
        match self {
            Lies::ByRows => vec![r, c],
            Lies::ByColumns => vec![c, r],
            Lies::Flat => vec![r * c],
            Lies::Rows => vec![r],
            Lies::Columns => vec![c],
            Lies::One => Vec::new(),
        }
    }

    fn len(self, sizes: (usize, usize)) -> usize {
        self.shape(sizes).iter().product()
    }

    /// How far apart neighbours of a column, and of a row, lie in it.
    fn steps(self, (r, c): (usize, usize)) -> (usize, usize) {
        match self {
            Lies::ByRows | Lies::Flat => (c, 1),
            Lies::ByColumns => (1, r),
            Lies::Rows => (1, 0),
            Lies::Columns => (0, 1),
            Lies::One => (0, 0),
        }
    }

    /// How somebody whose results lie like this reads an array that lies like another: at a fixed place along what it
    /// does not have.
    fn view(self, array: &Array, of: Lies, sizes: (usize, usize), stream: &mut Stream) -> View {
        let (row, column) = of.steps(sizes);
        let (r, c) = sizes;
        let fixed = |size: usize, stream: &mut Stream| stream.below(size as u64) as usize;
        let (offset, steps) = match self {
            Lies::ByRows => (0, vec![Step::By(row), Step::By(column)]),
            Lies::ByColumns => (0, vec![Step::By(column), Step::By(row)]),
            Lies::Flat if row == c * column => (0, vec![Step::By(column)]),
            Lies::Flat => {
                let map = (0..r * c).map(|at| (at / c * row + at % c * column) as u32).collect();
                (0, vec![Step::Map(Arc::new(map), 1)])
            }
            Lies::Rows => (fixed(c, stream) * column, vec![Step::By(row)]),
            Lies::Columns => (fixed(r, stream) * row, vec![Step::By(column)]),
            Lies::One => (fixed(r, stream) * row + fixed(c, stream) * column, Vec::new()),
        };
        View { array: array.clone(), offset, steps }
    }
}

type Made = (Array, Lies);

/// An elementwise operation of some of these.
fn point(stream: &mut Stream, known: &[Made], lies: Lies, sizes: (usize, usize)) -> Point {
    let count = 1 + stream.below(3) as usize;
    let inputs = (0..count).map(|at| {
        // What was made last is read most often: what several read is part of none.
        let last = at == 0 && stream.below(2) == 0;
        let most = if last { 0 } else { stream.below(known.len() as u64) };
        let back = stream.below(most + 1) as usize;
        let (array, of) = &known[known.len() - 1 - back];
        lies.view(array, *of, sizes, stream)
    });
    let mut inputs: Vec<View> = inputs.collect();
    let mut code = vec![Code::Load(0)];
    for at in 1..count {
        code.push(Code::Load(at));
        match stream.below(3) {
            0 => code.extend([Code::Negate, Code::Binary(Binary::Add)]),
            1 => code.push(Code::Binary(Binary::Multiply)),
            _ => code.push(Code::Binary(Binary::Add)),
        }
    }
    if stream.below(5) == 0 {
        // A number that stays the same, with which nothing or something is done.
        let one = Array::doubles(vec![7.0, [1.0, 1.0, 0.75, -0.0, 2.0, f64::NAN][stream.below(6) as usize]]);
        inputs.push(View {
            array: one,
            offset: 1,
            steps: lies.shape(sizes).iter().map(|_| Step::By(0)).collect(),
        });
        let load = Code::Load(inputs.len() - 1);
        let binary = [Binary::Multiply, Binary::Multiply, Binary::Divide, Binary::Add, Binary::Power]
            [stream.below(5) as usize];
        match stream.below(2) {
            0 => code.insert(0, load),
            _ => code.push(load),
        }
        code.push(Code::Binary(binary));
    }
    let count = inputs.len();
    match stream.below(6) {
        0 => code.push(Code::Call(Function::Tanh, 1)),
        1 => code.push(Code::Negate),
        2 => code.extend([Code::Number(0.0), Code::Binary(Binary::Add)]),
        3 => code.extend([Code::Number(0.5), Code::Binary(Binary::Multiply)]),
        _ => {}
    }
    if stream.below(6) == 0 {
        // Times what it is already, or less that: read once more, as an adjoint reads it.
        let again = inputs.clone();
        let shifted = |code: &Code| match code {
            Code::Load(at) => Code::Load(at + count),
            other => other.clone(),
        };
        let mut more: Vec<Code> = code.iter().map(shifted).collect();
        match stream.below(3) {
            0 => more.extend([Code::Number(1.5), Code::Binary(Binary::Add)]),
            1 => more.extend([Code::Negate, Code::Call(Function::Exp, 1)]),
            _ => {}
        }
        code.extend(more);
        code.push(Code::Binary(if stream.below(2) == 0 { Binary::Multiply } else { Binary::Add }));
        inputs.extend(again);
    }
    let shape = lies.shape(sizes);
    let other =
        known.get(stream.below(2 * known.len() as u64) as usize).and_then(|(array, _)| waiting_point(array));
    if let Some(other) = other.filter(|other| other.shape == shape && other.code.len() < 40) {
        // All that another one makes as a part: it is computed once.
        let count = inputs.len();
        inputs.extend(other.inputs);
        code.extend(other.code.into_iter().map(|code| match code {
            Code::Load(at) => Code::Load(at + count),
            code => code,
        }));
        code.push(Code::Binary(if stream.below(2) == 0 { Binary::Multiply } else { Binary::Add }));
    }
    Point { shape, inputs, code, truth: false }
}

/// The elementwise work that an array waits for.
fn waiting_point(array: &Array) -> Option<Point> {
    array.operation()?.any().downcast_ref::<Point>().cloned()
}

/// Sums of rows by groups, some of them of none.
fn segments(stream: &mut Stream, array: &Array, (r, c): (usize, usize)) -> Segments {
    let mut rows: Vec<u32> = (0..2 * r).map(|_| stream.below(r as u64) as u32).collect();
    if stream.below(3) == 0 {
        rows = (0..r as u32).collect();
    }
    let mut start: Vec<u32> = (1..r).map(|_| stream.below(rows.len() as u64 + 1) as u32).collect();
    start.extend([0, rows.len() as u32]);
    start.sort_unstable();
    let step = match stream.below(3) {
        0 => Step::Map(Arc::new((0..r).map(|_| stream.below(r as u64) as u32).collect()), c),
        1 => Step::By(0),
        _ => Step::By(c),
    };
    let mut number = View { array: array.clone(), offset: c - 1, steps: vec![Step::By(c)] };
    if stream.below(3) == 0 {
        let same = [1.0, 1.0, 0.3][stream.below(3) as usize];
        number = View { array: Array::doubles(vec![same]), offset: 0, steps: vec![Step::By(0)] };
    }
    let slab = View { array: array.clone(), offset: 0, steps: vec![step, Step::By(1)] };
    Segments {
        groups: Grouping::new(start, rows),
        inner: vec![c],
        numbers: if stream.below(2) == 0 { vec![number; 1 + stream.below(2) as usize] } else { Vec::new() },
        slabs: vec![slab; 1 + stream.below(2) as usize],
        constant: [0.7, 1.0][stream.below(2) as usize],
        folding: [Folding::Sum, Folding::Sum, Folding::Larger][stream.below(3) as usize],
    }
}

/// Rows put elsewhere, each at most once if that is not asked otherwise, as sums of one row or none.
fn put(stream: &mut Stream, array: &Array, (r, c): (usize, usize)) -> Array {
    let order: Vec<u32> = stream.permutation(r as u32);
    let often = stream.below(4) == 0;
    let rows: Vec<u32> = order.into_iter().map(|row| if often { 0 } else { row }).collect();
    let (mut start, mut end) = (vec![0], 0);
    for _ in 0..r {
        end += u32::from(stream.below(5) > 0);
        start.push(end);
    }
    let rows = rows[..end as usize].to_vec();
    let step = match stream.below(2) {
        0 => Step::By(c),
        _ => Step::Map(Arc::new((0..r as u32).rev().collect()), c),
    };
    let slabs = vec![View { array: array.clone(), offset: 0, steps: vec![step, Step::By(1)] }];
    let groups = Grouping::new(start, rows);
    let (inner, numbers, folding) = (vec![c], Vec::new(), Folding::Sum);
    let constant = [1.0, 1.0, 0.7][stream.below(3) as usize];
    Array::of(r * c, Segments { groups, inner, numbers, slabs, constant, folding })
}

/// The same once more, with maps of its own, or almost the same.
fn again(stream: &mut Stream, array: &Array) -> Option<Array> {
    let other = stream.below(3) == 0;
    let own = |view: &mut View| {
        for step in &mut view.steps {
            if let Step::Map(map, _) = step {
                *map = Arc::new(map.to_vec());
            }
        }
    };
    let operation = array.operation()?;
    if let Some(mut fold) = operation.any().downcast_ref::<Fold>().cloned() {
        fold.point.inputs.iter_mut().for_each(own);
        if other {
            fold.folding = if fold.folding == Folding::Sum { Folding::Larger } else { Folding::Sum };
        }
        return Some(Array::of(array.len(), fold));
    }
    if let Some(mut segments) = operation.any().downcast_ref::<Segments>().cloned() {
        segments.slabs.iter_mut().for_each(own);
        if other && stream.below(2) == 0 && segments.folding == Folding::Sum {
            segments.constant = 0.9;
        } else if other {
            segments.groups = segments.groups.turned();
        }
        return Some(Array::of(array.len(), segments));
    }
    let mut point = waiting_point(array)?;
    point.inputs.iter_mut().for_each(own);
    point.code.extend(other.then_some(Code::Negate));
    Some(Array::of(array.len(), point))
}

/// One operation more.
fn operation(stream: &mut Stream, known: &[Made], sizes: (usize, usize)) -> Made {
    let (r, c) = sizes;
    match stream.below(13) {
        0 => {
            let (x, y) =
                (point(stream, known, Lies::ByRows, sizes), point(stream, known, Lies::ByRows, sizes));
            let argument = point(stream, known, Lies::ByRows, sizes);
            let epsilon = epsilon(stream, sizes);
            let slope = LnormSlope { argument, incoming: x, result: y, epsilon, along: c };
            (Array::of(r * c, slope), Lies::ByRows)
        }
        1 | 2 => {
            let values = point(stream, known, Lies::ByRows, sizes);
            let epsilon = (stream.below(2) == 0).then(|| epsilon(stream, sizes));
            let layout = Layout { groups: None, kept: r, along: c };
            (Array::of(r * c, Normalise { values, present: None, epsilon, layout }), Lies::ByRows)
        }
        3 | 4 => {
            let (lies, kept) =
                [(Lies::ByRows, Lies::Rows), (Lies::ByColumns, Lies::Columns)][stream.below(2) as usize];
            let folding = [Folding::Sum, Folding::Larger][stream.below(2) as usize];
            let fold = Fold { point: point(stream, known, lies, sizes), kept: 1, folding };
            (Array::of(kept.len(sizes), fold), kept)
        }
        5 => {
            // Rows by rows, so that it is R × R, of which a row is read: all others are by R and C.
            let whole = |known: &[Made]| {
                let found = known.iter().rev().find(|(_, lies)| matches!(lies, Lies::ByRows | Lies::Flat));
                found.map(|(array, _)| array.clone())
            };
            let Some(array) = whole(known) else { return operation(stream, &known[..1], sizes) };
            if stream.below(2) == 0 {
                let mut segments = segments(stream, &array, sizes);
                if segments.folding != Folding::Sum {
                    (segments.numbers, segments.constant) = (Vec::new(), 1.0);
                    segments.slabs.truncate(1);
                }
                let sums = Array::of(r * c, segments);
                let sums = if stream.below(2) == 0 { put(stream, &sums, sizes) } else { sums };
                return (sums, Lies::ByRows);
            }
            let lies =
                |row, column| Matrices { array: array.clone(), offset: 0, batch: Vec::new(), row, column };
            let (batch, scale) = (Vec::new(), 0.25);
            let product = Product { batch, m: r, k: c, n: r, a: lies(c, 1), b: lies(1, c), scale };
            let square = Array::of(r * r, product);
            let view = View { array: square, offset: 0, steps: vec![Step::By(r + 1)] };
            (Array::of(r, Point::of(vec![r], view)), Lies::Rows)
        }
        6 => {
            // The last one once more, or backwards.
            let (array, lies) = known[known.len() - 1].clone();
            let len = array.len() as u32;
            let order: Vec<u32> =
                if stream.below(3) > 0 { (0..len).collect() } else { (0..len).rev().collect() };
            let order = Arc::new(order);
            if stream.below(2) == 0 {
                return (Array::of(len as usize, Slabs { from: array, positions: order, inner: 1 }), lies);
            }
            let view = View { array, offset: 0, steps: vec![Step::Map(order, 1)] };
            (Array::of(len as usize, Point::of(vec![len as usize], view)), lies)
        }
        7 => {
            // One of them as it is, by itself.
            let (array, lies) = &known[stream.below(known.len() as u64) as usize];
            (again(stream, array).unwrap_or_else(|| array.clone()), *lies)
        }
        _ => {
            // As the last one half the time: what reads as it was written is taken in most.
            let last = known[known.len() - 1].1;
            let lies = if stream.below(2) == 0 { last } else { ALL[stream.below(6) as usize] };
            (Array::of(lies.len(sizes), point(stream, known, lies, sizes)), lies)
        }
    }
}

/// The same for all entries, or one for each.
fn epsilon(stream: &mut Stream, sizes: (usize, usize)) -> Point {
    let lies = [Lies::One, Lies::One, Lies::Columns][stream.below(3) as usize];
    let array = Array::doubles((0..lies.len(sizes)).map(|at| 0.125 * (at + 1) as f64).collect());
    let view = Lies::ByRows.view(&array, lies, sizes, stream);
    Point::of(Lies::ByRows.shape(sizes), view)
}

/// Operations on what is given, the same for the same stream.
fn drawn(mut stream: Stream, given: &[Made], sizes: (usize, usize)) -> Vec<Made> {
    let mut known = given.to_vec();
    for _ in 0..3 + stream.below(9) {
        let next = operation(&mut stream, &known, sizes);
        known.push(next);
    }
    known.split_off(given.len())
}

fn tapes<T: Number>(precision: Precision) {
    let family = || seeded::Family::new("tensor-logic/kernels", "drawn tapes", seeded::test_seed());
    let mut stream = stream("tapes");
    let (mut taken_in, mut operations) = (0, 0);
    for round in 0..400 {
        let sizes = (1 + stream.below(9) as usize, 1 + stream.below(20) as usize);
        let lies = [Lies::ByRows, ALL[stream.below(6) as usize]];
        let mut given = || -> Vec<Made> {
            lies.map(|lies| {
                let values = (0..lies.len(sizes)).map(|_| T::of(number(&mut stream, false))).collect();
                (Array::given(T::buffer(values)), lies)
            })
            .to_vec()
        };
        let numbers = [given(), given(), given()];
        let pool = Arc::new(Pool::default());
        let made = drawn(family().stream(round), &numbers[0], sizes);
        let asked: Vec<bool> = (1..=made.len()).map(|at| at == made.len() || stream.below(8) == 0).collect();
        let wanted = made.iter().zip(&asked).filter(|(_, asked)| **asked);
        let listed: Vec<&Array> = wanted.map(|((array, _), _)| array).collect();
        let origin = |array: &Array| match numbers[0].iter().position(|(given, _)| given.same(array)) {
            Some(at) => Some(Origin::Given(at)),
            None => Some(Origin::Fixed),
        };
        let before = waiting(&listed.iter().map(|array| (*array, true)).collect::<Vec<_>>()).len();
        let mut tape = Tape::of(&listed, origin, (precision, &pool)).unwrap();
        operations += before;
        taken_in += before.saturating_sub(tape.operations());
        for numbers in [&numbers[0], &numbers[1], &numbers[2], &numbers[0]] {
            let arrays: Vec<Array> = numbers.iter().map(|(array, _)| array.clone()).collect();
            let found = tape.run(&arrays, precision, &pool);
            // Each by itself.
            let alone = drawn(family().stream(round), numbers, sizes);
            let pool = Arc::new(Pool::default());
            let wanted: Vec<Buffer> = alone.iter().map(|(array, _)| array.force(precision, &pool)).collect();
            let wanted = wanted.iter().zip(&asked).filter(|(_, asked)| **asked);
            assert_eq!(found.len(), asked.iter().filter(|asked| **asked).count());
            for (found, (wanted, _)) in found.iter().zip(wanted) {
                let (found, wanted) = (found.done().unwrap().numbers::<f64>(), wanted.numbers::<f64>());
                let same = |(x, y): (&f64, &f64)| x == y || x.is_nan() && y.is_nan();
                assert!(
                    found.len() == wanted.len() && found.iter().zip(&wanted).all(same),
                    "{round}: {found:?} instead of {wanted:?}\n{made:?}"
                );
            }
        }
    }
    assert!(taken_in > operations / 10, "of {operations} operations {taken_in} became part of others");
}

#[test]
fn operations_that_take_others_in_have_the_bits_of_both() {
    both(tapes::<f64>, tapes::<f32>);
}

/// The tapes of larger numbers, on several threads and on one.
fn shared<T: Number>(precision: Precision) {
    let family = || seeded::Family::new("tensor-logic/kernels", "shared tapes", seeded::test_seed());
    let mut stream = stream("shared tapes");
    let threads = |count| rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
    let (one, several) = (threads(1), threads(3));
    // Nothing says which sign a NaN has.
    let bits_of = |value: &f64| if value.is_nan() { u64::MAX } else { value.to_bits() };
    for round in 0..40 {
        let sizes = (1 + stream.below(700) as usize, 1 + stream.below(90) as usize);
        let lies = [Lies::ByRows, ALL[stream.below(6) as usize]];
        let given: Vec<Made> = lies
            .map(|lies| {
                let values = (0..lies.len(sizes)).map(|_| T::of(number(&mut stream, false))).collect();
                (Array::given(T::buffer(values)), lies)
            })
            .to_vec();
        let made = || drawn(family().stream(round), &given, sizes);
        let bits = || -> Vec<Vec<u64>> {
            let pool = Arc::new(Pool::default());
            let arrays = made();
            let numbers = |(array, _): &Made| array.force(precision, &pool).numbers::<f64>();
            arrays.iter().map(|made| numbers(made).iter().map(bits_of).collect()).collect()
        };
        let tape = || -> Vec<Vec<u64>> {
            let pool = Arc::new(Pool::default());
            let arrays = made();
            let asked: Vec<&Array> = arrays.iter().map(|(array, _)| array).collect();
            let origin = |array: &Array| match given.iter().position(|(given, _)| given.same(array)) {
                Some(at) => Some(Origin::Given(at)),
                None => Some(Origin::Fixed),
            };
            let mut tape = Tape::of(&asked, origin, (precision, &pool)).unwrap();
            let arrays: Vec<Array> = given.iter().map(|(array, _)| array.clone()).collect();
            let found = tape.run(&arrays, precision, &pool);
            let numbers = |array: &Array| array.force(precision, &pool).numbers::<f64>();
            found.iter().map(|array| numbers(array).iter().map(bits_of).collect()).collect()
        };
        let alone = one.install(bits);
        for work in [&bits as &(dyn Fn() -> Vec<Vec<u64>> + Sync), &tape] {
            let found = several.install(|| looked_for(work));
            assert!(found == alone, "{round}: {sizes:?}\n{:?}", made());
        }
    }
}

#[test]
fn what_several_threads_share_has_the_bits_of_one() {
    both(shared::<f64>, shared::<f32>);
}

/// Sums and folds that look maps up are compared by what the maps say.
#[test]
fn equal_sums_are_done_once_and_others_are_not() {
    let pool = Arc::new(Pool::default());
    let given = Array::given(f64::buffer(vec![1.0, 2.0, 4.0, 8.0]));
    let view = |map: [u32; 4]| {
        let steps = vec![Step::Map(Arc::new(map.to_vec()), 1)];
        View { array: given.clone(), offset: 0, steps }
    };
    let sums = |map, rows: [u32; 4], constant| {
        let groups = Grouping::new(vec![0, 1, 4], rows.to_vec());
        let slabs = vec![View { steps: [view(map).steps, vec![Step::By(1)]].concat(), ..view(map) }];
        let (inner, numbers, folding) = (vec![1], Vec::new(), Folding::Sum);
        Array::of(2, Segments { groups, inner, numbers, slabs, constant, folding })
    };
    let fold = |map, folding| Array::of(1, Fold { point: Point::of(vec![4], view(map)), kept: 0, folding });
    let origin = |array: &Array| array.same(&given).then_some(Origin::Given(0));
    let (rows, map) = ([0, 1, 2, 3], [3, 1, 1, 0]);
    let all = [
        (sums(map, rows, 1.0), vec![8.0, 5.0]),
        (sums(map, rows, 1.0), vec![8.0, 5.0]),
        (sums(map, [1, 0, 2, 3], 1.0), vec![2.0, 11.0]),
        (sums([0, 1, 2, 3], rows, 1.0), vec![1.0, 14.0]),
        (sums(map, rows, 0.5), vec![4.0, 2.5]),
        (fold(map, Folding::Sum), vec![13.0]),
        (fold(map, Folding::Sum), vec![13.0]),
        (fold(map, Folding::Larger), vec![8.0]),
        (fold([0, 1, 1, 0], Folding::Sum), vec![6.0]),
    ];
    let asked: Vec<&Array> = all.iter().map(|(array, _)| array).collect();
    let mut tape = Tape::of(&asked, origin, (Precision::Double, &pool)).unwrap();
    assert_eq!(tape.operations(), 7);
    let made = tape.run(std::slice::from_ref(&given), Precision::Double, &pool);
    for (made, (_, wanted)) in made.iter().zip(&all) {
        assert_eq!(made.done().unwrap().numbers::<f64>(), *wanted);
    }
}
