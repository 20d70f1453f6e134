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
        let slope = Point { shape: wide.to_vec(), inputs: vec![whole(&o, &wide)], code: twice, truth: false };
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
    let others: Vec<Vec<f64>> = given.iter().map(|values| values.iter().map(|x| 2.0 - x).collect()).collect();
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
                    let scale = (i as f64).sqrt() * if precision == Precision::Single { 1e-5 } else { 1e-14 };
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
