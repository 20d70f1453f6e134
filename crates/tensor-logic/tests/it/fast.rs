//! The fast engine against the reference interpreter and against loops written by hand.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test whose programs do not run has failed")]

use crate::common;
use crate::common::engines::{BUDGET, STORAGES, analysed, disagreement};
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::error::Code;
use tensor_logic::fast::{Fast, Precision, Storage};
use tensor_logic::program::{Class, Combine, Tensor, TensorId};

#[test]
fn the_corpus_has_the_values_of_the_reference() {
    let mut wrong = Vec::new();
    for (name, text) in common::programs() {
        let Some(program) = common::legal(&name, analysed(&text)) else { continue };
        // Relations with probabilities are evaluated before blocks see them: `weighted` has them.
        if program.tensors.iter().any(Tensor::is_proved) {
            continue;
        }
        for storage in STORAGES {
            if let Some(difference) = disagreement(&program, storage) {
                wrong.push(format!("{name}: {difference}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}

/// The values of one tensor of a program.
fn values(text: &str, name: &str, storage: Storage) -> Vec<f64> {
    let program = analysed(text).unwrap_or_else(|reports| panic!("{reports:?}"));
    let at = program.tensors.iter().rposition(|tensor| tensor.name == name).unwrap();
    let parameters = Parameters::new();
    let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
    Fast::with_storage(storage)
        .values(&request, &[TensorId(at as u32)])
        .unwrap()
        .remove(0)
        .doubles()
        .into_owned()
}

fn assert_close(found: &[f64], wanted: &[f64], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= 1e-12 * wanted.abs().max(1.0), "{what} at {at}: {found} {wanted}");
    }
}

/// A matrix of small numbers, and its text.
fn matrix(stream: &mut seeded::Stream, rows: usize, columns: usize) -> (Vec<f64>, String) {
    let values: Vec<f64> = (0..rows * columns).map(|_| stream.below(33) as f64 / 8.0 - 2.0).collect();
    let row = |row: &[f64]| format!("[{}]", row.iter().map(f64::to_string).collect::<Vec<_>>().join(", "));
    let text = values.chunks(columns).map(row).collect::<Vec<_>>().join(", ");
    (values, format!("[{text}]"))
}

#[test]
fn attention_by_hand() {
    let mut stream = common::stream("attention");
    let (n, width) = (40, 6);
    let (q, q_text) = matrix(&mut stream, n, width);
    let (k, k_text) = matrix(&mut stream, n, width);
    let (v, v_text) = matrix(&mut stream, n, width);
    type Mask = fn(usize, usize) -> bool;
    let masks: [(&str, Mask); 4] = [
        ("", |_, _| true),
        (" | j <= i", |i, j| j <= i),
        (" | 0 <= i - j, i - j <= 5", |i, j| j <= i && i - j <= 5),
        (" | j <= i, (i - j) % 5 == 0", |i, j| j <= i && (i - j) % 5 == 0),
    ];
    for (guard, admits) in masks {
        let text = format!(
            "Q = {q_text}\nK = {k_text}\nV = {v_text}\nW[i, j.] = softmax(Q[i, d] K[j, d] / sqrt(D){guard})\nY[i, d] = W[i, j] V[j, d]"
        );
        let mut wanted = vec![0.0; n * width];
        for i in 0..n {
            let scores: Vec<(usize, f64)> = (0..n)
                .filter(|j| admits(i, *j))
                .map(|j| {
                    (j, (0..width).map(|d| q[i * width + d] * k[j * width + d]).sum::<f64>() / 6f64.sqrt())
                })
                .collect();
            let largest = scores.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|(_, score)| (score - largest).exp()).sum();
            for (j, score) in scores {
                for d in 0..width {
                    wanted[i * width + d] += (score - largest).exp() / total * v[j * width + d];
                }
            }
        }
        for storage in STORAGES {
            assert_close(&values(&text, "Y", storage), &wanted, &format!("{guard} {storage:?}"));
        }
    }
}

#[test]
fn convolution_by_hand() {
    let mut stream = common::stream("convolution");
    let (height, width, size) = (9, 7, 3);
    let (image, image_text) = matrix(&mut stream, height, width);
    let (filter, filter_text) = matrix(&mut stream, size, size);
    let text = format!(
        "I = {image_text}\nF = {filter_text}\nY[x, y] = relu(F[a, b] I[x+a, y+b])\nP[x/2, y/2] max= Y[x, y]"
    );
    let (rows, columns) = (height - size + 1, width - size + 1);
    let mut wanted = vec![0.0; rows * columns];
    for x in 0..rows {
        for y in 0..columns {
            let places = (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
            let sum: f64 = places.map(|(a, b)| filter[a * size + b] * image[(x + a) * width + y + b]).sum();
            wanted[x * columns + y] = sum.max(0.0);
        }
    }
    let mut pooled = vec![f64::NEG_INFINITY; rows.div_ceil(2) * columns.div_ceil(2)];
    for x in 0..rows {
        for y in 0..columns {
            let slot = &mut pooled[x / 2 * columns.div_ceil(2) + y / 2];
            *slot = slot.max(wanted[x * columns + y]);
        }
    }
    for storage in STORAGES {
        assert_close(&values(&text, "Y", storage), &wanted, "convolution");
        assert_close(&values(&text, "P", storage), &pooled, "pooling");
    }
}

/// Arrays so large that work is shared out: elementwise, folds in both directions, products, softmax and lnorm
/// of rows and columns and of what a relation admits, sums over tuples, scatters, padded reads.
const LARGE: &str = "
i, j, k, l : 300
R(i, j) <- (7 * i + 3 * j) % 5 == 0
V(i, j) += 1 / (i + j + 1) | (i + 2 * j) % 7 < 3
A[i, j] = sin(i / 7 + j / 3)
B[i, j] = exp(A[j, i] / 2) + cos(i / 5 - j / 11) / 3
Chain[i, l] = A[i, j] B[j, k] A[l, k]
Rows[i] = A[i, j] B[i, j] + A[i, j]
Columns[j] = tanh(A[i, j]) B[i, j]
All = A[i, j]^2 B[j, i]
Largest[j] max= A[i, j] B[j, i]
Soft[i, j.] = softmax(A[i, j] + B[i, j] | j <= i)
Down[i., j] = softmax(A[i, j])
Norm[i, j.] = lnorm(A[i, j] B[i, j])
Graph[i, j.] = softmax(A[i, k] B[j, k] | R(i, j))
Spread[i, k] = Graph[i, j] B[j, k]
Near[i, k] = V(i, j) A[j, k]
Scattered[i/2, j/3] += A[i, j] B[j, i]
Along[i+j] = A[i, j] B[i, j]
p, q : 300
Padded[p, q] = A[p-1, q+1] B[q, p+2]
";

#[test]
fn results_do_not_depend_on_the_threads() {
    let program = analysed(LARGE).unwrap();
    let parameters = Parameters::new();
    let budget = Budget { tuples: 1 << 20, bytes: 1 << 30 };
    let request = Request { program: &program, parameters: &parameters, budget };
    let goals = common::engines::goals(&program);
    let bits = |threads: usize, storage: Storage, precision: Precision| -> Vec<(TensorId, Vec<u64>)> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut fast = Fast::with_storage(storage).with_precision(precision);
        let mut values = |goal: TensorId| {
            let found = pool.install(|| fast.values(&request, &[goal])).unwrap().remove(0);
            let numbers = found.doubles().into_owned();
            (goal, numbers.into_iter().map(f64::to_bits).collect())
        };
        goals.iter().map(|goal| values(*goal)).collect()
    };
    for precision in [Precision::Double, Precision::Single] {
        for storage in STORAGES {
            let one = bits(1, storage, precision);
            assert!(one.iter().filter(|(_, values)| values.len() > 70_000).count() > 8);
            for threads in [2, 3] {
                for ((goal, one), (_, other)) in one.iter().zip(bits(threads, storage, precision)) {
                    let name = program.name(*goal);
                    assert!(*one == other, "{name}: {threads} threads, {storage:?}, {precision:?}");
                }
            }
        }
    }
}

/// Steps of recurrent learners: small operations, which threads share while they are awake.
#[test]
fn learning_does_not_depend_on_the_threads() {
    let cell = (include_str!("../../programs/learner-cell.tl"), ["Units", "Aux"].as_slice());
    let lstm = (include_str!("../../programs/learner-lstm.tl"), ["Units"].as_slice());
    for (text, sizes) in [cell, lstm] {
        let mut notebook = tensor_logic::notebook::Notebook::new(text);
        sizes.iter().for_each(|name| notebook.set(name, 13.0));
        let (steps, strings) = (5_i64, 700_i64);
        notebook.set("Steps", steps as f64);
        notebook.set("Strings", strings as f64);
        let all = (0..strings).flat_map(|s| (0..steps).map(move |t| [s, t, (s * 7 + t * t) % 2]));
        notebook.relation("Token", all.clone());
        notebook.relation("Target", all.filter(|[s, t, _]| (s + t) % 5 > 0));
        let program = notebook.core().unwrap_or_else(|reports| panic!("{reports:?}"));
        let at = program.tensors.iter().position(|tensor| tensor.name == "Loss").unwrap();
        let goal = TensorId(at as u32);
        let adjoint = tensor_logic::gradient::adjoint(&program, goal, &program.learnable(goal));
        let goals: Vec<TensorId> =
            std::iter::once(goal).chain(adjoint.gradients.iter().flatten().copied()).collect();
        assert!(goals.len() > 5);
        let budget = Budget { tuples: 1 << 20, bytes: 1 << 30 };
        let bits = |threads: usize, precision: Precision| -> Vec<Vec<u64>> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut fast = Fast::default().with_precision(precision);
            let mut parameters = tensor_logic::start::all_start_values(&program);
            let mut found = Vec::new();
            // The first time steps are described, then they are done again.
            for _ in 0..4 {
                for values in parameters.values_mut() {
                    *values = std::sync::Arc::new(values.iter().map(|value| 1.25 * value + 0.01).collect());
                }
                let request = Request { program: &adjoint.program, parameters: &parameters, budget };
                let values = pool.install(|| fast.values(&request, &goals)).unwrap();
                found
                    .extend(values.iter().map(|value| value.doubles().iter().map(|x| x.to_bits()).collect()));
            }
            found
        };
        for precision in [Precision::Double, Precision::Single] {
            let one = bits(1, precision);
            for threads in [2, 3] {
                assert!(one == bits(threads, precision), "{threads} threads, {precision:?}\n{text}");
            }
        }
    }
}

#[test]
fn parameters_change_and_nothing_else_is_made_anew() {
    let text = "i, j : 3\nR(0, 1); R(1, 2)\nW[j] ~ ones()\nY[i] = R(i, j) W[j]";
    let program = analysed(text).unwrap();
    let id =
        |name: &str| TensorId(program.tensors.iter().position(|tensor| tensor.name == name).unwrap() as u32);
    let mut fast = Fast::default();
    for round in 0..5 {
        let mut parameters = Parameters::new();
        let weights = [f64::from(round), 2.0 * f64::from(round), 3.0];
        parameters.insert(id("W"), std::sync::Arc::new(weights.to_vec()));
        let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
        let found = fast.values(&request, &[id("Y")]).unwrap().remove(0);
        assert_eq!(found, Value::Dense(vec![weights[1], weights[2], 0.0].into()));
    }
}

/// The loss of a program and its gradients by all parameters, within so many bytes.
fn learned(text: &str, storage: Storage, bytes: u64) -> Vec<Vec<f64>> {
    let program = analysed(text).unwrap_or_else(|reports| panic!("{reports:?}"));
    let at = program.tensors.iter().position(|tensor| tensor.name == "Loss").unwrap();
    let goal = TensorId(at as u32);
    let adjoint = tensor_logic::gradient::adjoint(&program, goal, &program.learnable(goal));
    let mut goals = vec![goal];
    goals.extend(adjoint.gradients.iter().flatten());
    let parameters = tensor_logic::start::all_start_values(&program);
    let budget = Budget { tuples: 1_000_000, bytes };
    let request = Request { program: &adjoint.program, parameters: &parameters, budget };
    let found =
        Fast::with_storage(storage).values(&request, &goals).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let values = found.into_iter().map(|value| value.doubles().into_owned());
    values.collect()
}

/// A square of 1,500 positions takes 18 MB: within 6 none of the value, the gradient, and what lies between
/// them is one.
#[test]
fn guarded_attention_and_its_gradient_are_no_squares() {
    let relation: String =
        (0..1500).map(|at| format!("E({at}, {}); E({at}, {})\n", at * 7 % 1500, at * 11 % 1500)).collect();
    for guard in ["0 <= i - j, i - j <= 3", "j <= i, (i - j) % 400 == 0", "E(i, j)"] {
        let text = format!(
            "i, j : 1500\nd, e : 3\n{relation}Q[i, d] ~ normal(0, 1)\nK[j, d] ~ normal(0, 1)\nW[d, e] ~ normal(0, 1)\n\
             P[i, j.] = softmax(Q[i, d] K[j, d] / 2 | {guard})\nO[i, e] = relu(P[i, j] K[j, d] W[d, e])\nLoss avg= O[i, e]^2"
        );
        let linear = learned(&text, Storage::Auto, 6_000_000);
        let square = learned(&text, Storage::Dense, 1 << 30);
        for (at, (linear, square)) in linear.iter().zip(&square).enumerate() {
            assert_close(linear, square, &format!("{guard}, {at}"));
        }
    }
}

/// One equation with a relation, an embedding and a weight costs what the same in two equations does, also backwards:
/// nothing of the size of tuples × both widths stands in between (14 MB here).
#[test]
fn a_layer_over_a_relation_is_not_expanded() {
    let arcs: String = (0..2000).map(|at| format!("S({}, {})\n", at % 500, at * at % 499)).collect();
    let given = format!("x, y : 500\nd, e : 30\n{arcs}X[y, d] ~ normal(0, 1)\nW[d, e] ~ normal(0, 1)\n");
    let one = format!("{given}H[x, e] = relu(S(x, y) X[y, d] W[d, e])\nLoss avg= H[x, e]^2");
    let two =
        format!("{given}G[x, d] = S(x, y) X[y, d]\nH[x, e] = relu(G[x, d] W[d, e])\nLoss avg= H[x, e]^2");
    let (one, two) = (learned(&one, Storage::Auto, 4_000_000), learned(&two, Storage::Auto, 4_000_000));
    for (one, two) in one.iter().zip(&two) {
        assert_close(one, two, "one equation and two");
    }
}

#[test]
fn a_million_steps_are_loops() {
    let found = values("X[0] = 1\nX[t+1] = 0.5 X[t] + 1\nY = X[1000000]", "Y", Storage::Auto);
    assert_close(&found, &[2.0], "the limit");
    let steps = "t : 0..1998\nF[0] = 1; F[1] = 1\nF[t+2] = (F[t+1] + F[t]) / 1.5 - 0.1 F[t]\nG[t] = F[t] + t";
    let mut wanted = vec![1.0, 1.0];
    (2..=2000).for_each(|at| wanted.push((wanted[at - 1] + wanted[at - 2]) / 1.5 - 0.1 * wanted[at - 2]));
    assert_close(&values(steps, "F", Storage::Auto), &wanted, "two steps back");
}

/// The last integers of 64 bits: a loop that counted past them would not end.
/// Steps of tensors that are shifted against each other, a few numbers and arrays, against the interpreter.
#[test]
fn shifted_steps_are_those_of_the_reference() {
    let small = "t : 9; A[t] = 0.5 B[t+2] + t; B[t] = A[t-3] + 1; N = A[t] B[t]; N?; A?; B?";
    let arrays = "t : 9; i, j : 30; W[i, j] = sin(7 * i + 3 * j)
        A[t, i] = tanh(W[i, j] B[t+2, j] + t); B[t, i] = A[t-3, i] + 1; N = A[t, i] B[t, i]; N?; A?; B?";
    let back = "t : 9; X[t+1] = P[t] + 1; P[t] = 2 Y[t+1]; Y[t] = 0.25 X[t+1] + t; X?; P?; Y?";
    for text in [small, arrays, back] {
        let program = analysed(text).unwrap();
        let stepped = program.components.iter().filter(|c| matches!(c.class, Class::Stepped(_))).count();
        assert_eq!(stepped, 1, "{text}");
        for storage in STORAGES {
            assert_eq!(disagreement(&program, storage), None, "{text}");
        }
    }
}

#[test]
fn steps_at_the_end_of_the_integers_end() {
    let last = i64::MAX;
    let up = format!("t : {}..{last}\nX[{}] = 1\nX[t+1] = 2 X[t]\nY = X[{last}]", last - 2, last - 2);
    let down = format!("t : {}..{}\nX[{}] = 1\nX[t-1] = 2 X[t]\nY = X[{}]", -last, 2 - last, 2 - last, -last);
    for text in [up, down] {
        assert_close(&values(&text, "Y", Storage::Auto), &[4.0], &text);
    }
}

/// Arrays that are only made on the way count against `--max-bytes` too.
#[test]
fn repeated_slabs_are_within_the_budget() {
    let rows: String = (0..100).map(|q| format!("At({q}, {}, {})\n", q / 10, q % 10)).collect();
    let text = format!(
        "{rows}l : 3\nr, q : 100\nh : 4\nk : 8\np : 10\nWeight[l, r, q, h] = sin(l + r * q + h)\n\
         Keep[l, r, h, p] = cos(l + r + h + p)\nValue[l, q, h, k] = sin(l + q + h * k)\n\
         Read[l, r, h, k] = Weight[l, r, q, h] At(q, s, p) Keep[l, r, h, p] Value[l, q, h, k]\nRead[0, 0, 0, 0]?\n"
    );
    let program = analysed(&text).unwrap();
    let goal = TensorId(program.tensors.iter().position(|tensor| tensor.name == "Read").unwrap() as u32);
    let parameters = Parameters::new();
    let found = |bytes: u64| {
        let budget = Budget { bytes, ..BUDGET };
        let request = Request { program: &program, parameters: &parameters, budget };
        Fast::with_storage(Storage::Auto).values(&request, &[goal])
    };
    // 100 rows of 3 · 100 · 4 · 8 numbers are 7.7 MB; the tensors take 1 MB.
    let report = found(5_000_000).unwrap_err();
    assert_eq!(report.code, Code::TooLarge, "{report}");
    assert!(found(50_000_000).is_ok(), "{}", found(50_000_000).unwrap_err());
}

/// One array may be data of programs that join it in different ways: an engine that keeps it tells them apart.
#[test]
fn data_that_programs_share_is_stored_as_each_says() {
    let mut program = analysed("A[i] = [2, 3]\nA[i]?\n").unwrap();
    let goal = TensorId(program.tensors.iter().position(|tensor| tensor.name == "A").unwrap() as u32);
    let parameters = Parameters::new();
    let mut engine = Fast::default();
    for (combine, wanted) in [(Combine::Sum, [2.0, 3.0]), (Combine::Exists, [1.0, 1.0])] {
        program = program.clone();
        program.tensors[goal.0 as usize].combine = combine;
        let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
        let found = engine.values(&request, &[goal]).unwrap().remove(0);
        assert_eq!(found.doubles().as_ref(), wanted, "{combine:?}");
    }
}
