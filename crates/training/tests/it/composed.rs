//! Every fused operation against its composed form in f64: values and gradients, on odd sizes, with one row, one
//! sequence, one step. Then the operations of candle that the composed forms use, against differences in f64.
//!
//! The gradient of a fused operation y = f(x) is asked for with random dy = r; candle's is that of Σ r∘y.

use candle_core::{D, DType, Device, Tensor, Var};
use seeded::{Family, Stream};
use training::composed;
use training::kernels::{
    Activation, Attention, AttentionDropout, Dropout, LayerNorm, LstmSaved, LstmStep, Relations, Sequences,
    Tables, activate, activate_backward, add_columns, add_dropout, attention, attention_backward,
    cross_entropy, dropout_in_place, layer_norm, layer_norm_backward, linear, linear_backward_input,
    linear_backward_weights, log_sum_exp, lstm_step, lstm_step_backward, rotary, rotary_table,
    softmax_in_place,
};

fn stream(name: &str) -> Stream {
    Family::named(name).stream(0)
}

fn random(s: &mut Stream, len: usize) -> Vec<f32> {
    (0..len).map(|_| s.normal() as f32).collect()
}

fn wide(entries: &[f32], shape: &[usize]) -> Tensor {
    composed::tensor(entries, shape, DType::F64, &Device::Cpu).unwrap()
}

fn var(entries: &[f32], shape: &[usize]) -> Var {
    Var::from_tensor(&wide(entries, shape).copy().unwrap()).unwrap()
}

fn flat(t: &Tensor) -> Vec<f64> {
    t.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// Relative to the size of what is wanted, as vectors.
#[track_caller]
fn close(got: &[f32], want: &Tensor, tolerance: f64, what: &str) {
    let want = flat(want);
    assert_eq!(got.len(), want.len(), "{what}");
    let size = want.iter().map(|v| v * v).sum::<f64>().sqrt();
    let apart = got.iter().zip(&want).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum::<f64>().sqrt();
    assert!(apart <= tolerance * size + 1e-12, "{what}: differs by {apart} of {size}");
}

/// The gradients of Σ r∘y with respect to variables.
fn gradients<const N: usize>(y: &Tensor, r: &[f32], of: [&Var; N]) -> [Tensor; N] {
    let store = (y * wide(r, y.dims())).unwrap().sum_all().unwrap().backward().unwrap();
    of.map(|v| store.get(v).unwrap().clone())
}

const SIZES: [(usize, usize); 6] = [(1, 1), (1, 17), (2, 16), (65, 7), (130, 33), (3, 257)];

#[test]
fn norms() {
    let mut s = stream("norms");
    // Mean 1000 and deviation 1: the mean is rounded to f32, which is up to 3·10⁻⁵ of a deviation.
    for (shift, value, slope) in [(0.0, 1e-6, 4e-6), (1000.0, 1e-4, 2e-4)] {
        for (rows, width) in SIZES {
            let x: Vec<f32> = random(&mut s, rows * width).iter().map(|v| v + shift).collect();
            let (weight, bias, r) =
                (random(&mut s, width), random(&mut s, width), random(&mut s, rows * width));
            let (vx, vw, vb) = (var(&x, &[rows, width]), var(&weight, &[width]), var(&bias, &[width]));
            let want = composed::layer_norm(&vx, &vw, &vb, 1e-5).unwrap();
            let [dx, dw, db] = gradients(&want, &r, [&vx, &vw, &vb]);

            let (mut normal, mut y, mut inverse) = (x, vec![0.0; rows * width], vec![0.0; rows]);
            layer_norm(LayerNorm { weight: &weight, bias: &bias }, &mut normal, &mut y, &mut inverse);
            close(&y, &want, value, "norm");
            let (mut g, mut gw, mut gb) = (r, vec![0.0; width], vec![0.0; width]);
            layer_norm_backward(&weight, &mut g, &normal, &inverse, &mut gw, &mut gb);
            // With one column the output is the bias, and dx is rounding.
            if width > 1 {
                close(&g, &dx, slope, "norm dx");
                close(&gw, &dw, value, "norm dw");
            }
            close(&gb, &db, 1e-6, "norm db");
        }
    }
}

#[test]
fn linear_maps() {
    let mut s = stream("linear");
    for (rows, inner) in SIZES {
        for out in [1, 5, 64] {
            let (x, weight, bias) =
                (random(&mut s, rows * inner), random(&mut s, out * inner), random(&mut s, out));
            let r = random(&mut s, rows * out);
            let (vx, vw, vb) = (var(&x, &[rows, inner]), var(&weight, &[out, inner]), var(&bias, &[out]));
            let want = composed::linear(&vx, &vw, &vb).unwrap();
            let [dx, dw, db] = gradients(&want, &r, [&vx, &vw, &vb]);

            let mut y = vec![0.0; rows * out];
            linear(&x, &weight, &bias, &mut y, rows);
            close(&y, &want, 1e-6, "linear");
            // What is added to stays.
            let (mut gx, mut gw, mut gb) = (vec![0.0; x.len()], weight.clone(), bias.clone());
            linear_backward_input(&r, &weight, &mut gx, rows, false);
            close(&gx, &dx, 1e-6, "linear dx");
            linear_backward_input(&r, &weight, &mut gx, rows, true);
            close(&gx, &(dx * 2.0).unwrap(), 1e-6, "linear dx, added");
            linear_backward_weights(&r, &x, &mut gw, &mut gb, rows);
            close(&gw, &(dw + vw.as_tensor()).unwrap(), 1e-6, "linear dw");
            close(&gb, &(db + vb.as_tensor()).unwrap(), 1e-6, "linear db");
            let mut columns = vec![0.0; out];
            add_columns(&r, &mut columns);
            close(&columns, &wide(&r, &[rows, out]).sum(0).unwrap(), 1e-6, "columns");
        }
    }
}

#[test]
fn activations() {
    let mut s = stream("activations");
    for (rows, width) in SIZES {
        let x: Vec<f32> = random(&mut s, rows * width).iter().map(|v| 3.0 * v).collect();
        let r = random(&mut s, rows * width);
        for kind in [Activation::Gelu, Activation::GeluTanh, Activation::Relu] {
            let v = var(&x, &[rows, width]);
            let want = match kind {
                Activation::Gelu => composed::gelu(&v),
                Activation::GeluTanh => composed::gelu_tanh(&v),
                Activation::Relu => v.relu(),
            };
            let want = want.unwrap();
            let [dx] = gradients(&want, &r, [&v]);
            let (mut y, mut slope, mut g) = (x.clone(), vec![0.0; x.len()], r.clone());
            activate(kind, &mut y, &mut slope, width);
            close(&y, &want, 1e-6, &format!("{kind:?}"));
            activate_backward(&mut g, &slope, width);
            close(&g, &dx, 1e-6, &format!("{kind:?} dx"));
        }
    }
}

#[test]
fn softmax_and_its_logarithm() {
    let mut s = stream("softmax");
    for (rows, width) in SIZES {
        let x: Vec<f32> = random(&mut s, rows * width).iter().map(|v| 5.0 * v).collect();
        let t = wide(&x, &[rows, width]);
        let mut y = x.clone();
        y.chunks_mut(width).for_each(softmax_in_place);
        close(&y, &composed::softmax(&t).unwrap(), 1e-6, "softmax");
        let sums: Vec<f32> = x.chunks(width).map(log_sum_exp).collect();
        close(&sums, &t.log_sum_exp(D::Minus1).unwrap(), 1e-6, "log-sum-exp");
    }
}

#[test]
fn cross_entropies() {
    let mut s = stream("cross-entropy");
    for (rows, width) in [(1, 1), (1, 2), (3, 7), (70, 663), (129, 5)] {
        for smoothing in [0.0, 0.1] {
            let x: Vec<f32> = random(&mut s, rows * width).iter().map(|v| 4.0 * v).collect();
            let targets: Vec<u32> =
                (0..rows).map(|r| if r % 3 == 2 { u32::MAX } else { s.below(width as u64) as u32 }).collect();
            let valid: Vec<f32> = targets.iter().map(|&t| if t == u32::MAX { 0.0 } else { 1.0 }).collect();
            let picked: Vec<u32> = targets.iter().map(|&t| if t == u32::MAX { 0 } else { t }).collect();
            let v = var(&x, &[rows, width]);
            let weights = wide(&valid, &[rows]);
            let plain =
                composed::cross_entropy(&v, &Tensor::new(picked, &Device::Cpu).unwrap(), &weights).unwrap();
            let spread = (v.log_sum_exp(D::Minus1).unwrap() - v.mean(D::Minus1).unwrap()).unwrap();
            let spread = (spread * &weights).unwrap().sum_all().unwrap();
            let loss = ((&plain * (1.0 - smoothing)).unwrap() + (spread * smoothing).unwrap()).unwrap();
            let store = loss.backward().unwrap();

            let plain = plain.to_scalar::<f64>().unwrap();
            let mut g = x.clone();
            let judged = cross_entropy(&mut g, &targets, smoothing as f32, false);
            assert_eq!(g, x);
            let ce = cross_entropy(&mut g, &targets, smoothing as f32, true);
            assert_eq!(ce.targets, valid.iter().filter(|&&v| v > 0.0).count() as u64);
            assert!((ce.loss - plain).abs() <= 1e-6 * plain + 1e-6, "{} and {plain}", ce.loss);
            assert!((judged.loss - plain).abs() <= 1e-6 * plain + 1e-6);
            let want = store.get(&v).unwrap();
            if width > 1 {
                close(&g, want, 2e-6, "cross-entropy");
            }
            assert!(g.chunks(width).zip(&valid).all(|(g, &v)| v > 0.0 || g.iter().all(|&g| g == 0.0)));
        }
    }
}

/// Attention of one sequence as the papers write it: context [n, width] from qkv [n, 3·width].
fn composed_attention(qkv: &Tensor, form: &Attention<'_>, prefix: usize, first_row: usize) -> Tensor {
    let (n, width) = (qkv.dims()[0], form.heads * form.size);
    let mut contexts = Vec::new();
    for head in 0..form.heads {
        let part = |p: usize| qkv.narrow(1, p * width + head * form.size, form.size).unwrap();
        let scores = composed::matmul(&part(0), &part(1).t().unwrap()).unwrap();
        let slope = form.slopes.map_or(0.0, |s| f64::from(s[head]));
        let bias = |i: usize| {
            let (row, column) = (i / n, i % n);
            let seen = column <= row || (column < prefix && row < prefix);
            if seen { -slope * row.abs_diff(column) as f64 } else { f64::NEG_INFINITY }
        };
        let bias =
            Tensor::from_vec((0..n * n).map(bias).collect::<Vec<f64>>(), (n, n), &Device::Cpu).unwrap();
        let scores = ((scores / (form.size as f64).sqrt()).unwrap() + bias).unwrap();
        let mut weights = composed::softmax(&scores).unwrap();
        if let Some(d) = form.dropout {
            let row =
                |i: usize| d.dropout.factors(((d.first_row + first_row + i) * form.heads + head) as u64, n);
            let masks: Vec<f32> = (0..n).flat_map(row).collect();
            weights = (weights * wide(&masks, &[n, n])).unwrap();
        }
        contexts.push(composed::matmul(&weights, &part(2)).unwrap());
    }
    Tensor::cat(&contexts, 1).unwrap()
}

#[test]
fn attentions() {
    let mut s = stream("attention");
    let slopes = [0.5_f32, 0.25, 0.0625];
    for lengths in [&[1][..], &[1, 1], &[9], &[5, 1, 12, 2], &[40, 3]] {
        for (heads, size) in [(1, 1), (3, 5), (2, 8)] {
            for case in 0..8 {
                let [alibi, dropped, prefixed] = [1, 2, 4].map(|bit| case & bit > 0);
                // From none of the rows to all of them.
                let prefixes: Vec<usize> = lengths.iter().map(|&n| s.below(n as u64 + 1) as usize).collect();
                let starts: Vec<usize> = lengths
                    .iter()
                    .scan(0, |at, n| {
                        *at += n;
                        Some(*at)
                    })
                    .collect();
                let starts = [&[0][..], &starts].concat();
                let (rows, width) = (starts[starts.len() - 1], heads * size);
                let dropout = Dropout::new(if dropped { 0.3 } else { 0.0 }, 1, 2, 3);
                let dropout = dropout.map(|dropout| AttentionDropout { dropout, first_row: 11 });
                let form = Attention {
                    heads,
                    size,
                    slopes: alibi.then_some(&slopes[..heads]),
                    prefixes: prefixed.then_some(&prefixes),
                    relations: None,
                    dropout,
                };
                let sequences = Sequences { starts: &starts };
                let (qkv, r) = (random(&mut s, rows * 3 * width), random(&mut s, rows * width));

                let v = var(&qkv, &[rows, 3 * width]);
                let parts: Vec<Tensor> = starts
                    .windows(2)
                    .zip(&prefixes)
                    .map(|(w, &prefix)| {
                        let prefix = if prefixed { prefix } else { 0 };
                        composed_attention(&v.narrow(0, w[0], w[1] - w[0]).unwrap(), &form, prefix, w[0])
                    })
                    .collect();
                let want = Tensor::cat(&parts, 0).unwrap();
                let [dqkv] = gradients(&want, &r, [&v]);

                let mut weights = vec![7.0; heads * sequences.squares()];
                let (mut context, mut g) = (vec![7.0; rows * width], vec![7.0; qkv.len()]);
                attention(form, sequences, &qkv, &mut weights, &mut context);
                close(&context, &want, 2e-6, "attention");
                attention_backward(form, sequences, &qkv, &weights, &r, &mut g);
                close(&g, &dqkv, 4e-6, "attention dqkv");
            }
        }
    }
}

/// The same of one sequence with relations, their vectors laid out for each pair of rows.
fn related_attention(
    qkv: &Tensor,
    form: &Attention<'_>,
    numbers: &[u8],
    tables: &Tables<Tensor>,
    first_row: usize,
) -> Tensor {
    let (n, width, size) = (qkv.dims()[0], form.heads * form.size, form.size);
    let hidden = form.relations.unwrap().hidden;
    let numbers: Vec<u32> = numbers.iter().map(|&r| u32::from(r)).collect();
    let index = Tensor::from_vec(numbers.clone(), n * n, &Device::Cpu).unwrap();
    let pairs = |table: &Tensor| table.index_select(&index, 0).unwrap().reshape((n, n, size)).unwrap();
    let mut contexts = Vec::new();
    for head in 0..form.heads {
        let part = |p: usize| qkv.narrow(1, p * width + head * size, size).unwrap();
        let mut scores = composed::matmul(&part(0), &part(1).t().unwrap()).unwrap();
        if let Some(keys) = &tables.keys {
            let q = part(0).unsqueeze(1).unwrap(); // [n, 1, size]
            let with = pairs(keys).broadcast_mul(&q).unwrap().sum(2).unwrap();
            scores = (scores + with).unwrap();
        }
        let hide = |i: usize| {
            let (row, column) = (i / n, i % n);
            let unseen = hidden.is_some_and(|(from, number)| {
                head >= from && numbers[i] == u32::from(number) && column != 0 && column != row
            });
            if column > row || unseen { f64::NEG_INFINITY } else { 0.0 }
        };
        let hide =
            Tensor::from_vec((0..n * n).map(hide).collect::<Vec<f64>>(), (n, n), &Device::Cpu).unwrap();
        let mut scores = ((scores / (size as f64).sqrt()).unwrap() + hide).unwrap();
        if let Some(bias) = &tables.bias {
            let of_head = bias.get(head).unwrap().index_select(&index, 0).unwrap().reshape((n, n)).unwrap();
            scores = (scores + of_head).unwrap();
        }
        let mut weights = composed::softmax(&scores).unwrap();
        if let Some(d) = form.dropout {
            let row =
                |i: usize| d.dropout.factors(((d.first_row + first_row + i) * form.heads + head) as u64, n);
            let masks: Vec<f32> = (0..n).flat_map(row).collect();
            weights = (weights * wide(&masks, &[n, n])).unwrap();
        }
        let mut context = composed::matmul(&weights, &part(2)).unwrap();
        if let Some(values) = &tables.values {
            let with = pairs(values).broadcast_mul(&weights.unsqueeze(2).unwrap()).unwrap().sum(1).unwrap();
            context = (context + with).unwrap();
        }
        contexts.push(context);
    }
    Tensor::cat(&contexts, 1).unwrap()
}

/// Each table by itself, all together, with hidden rows and dropout.
#[test]
fn attentions_with_relations() {
    let mut s = stream("relations");
    let count = 4;
    for lengths in [&[1][..], &[9], &[5, 1, 12, 2], &[30, 3]] {
        for (heads, size) in [(1, 1), (3, 5), (2, 8)] {
            for case in 0..16 {
                let [with_bias, with_keys, with_values, hides] = [1, 2, 4, 8].map(|bit| case & bit != 0);
                let mut starts = vec![0];
                lengths.iter().for_each(|n| starts.push(starts[starts.len() - 1] + n));
                let (rows, width) = (starts[starts.len() - 1], heads * size);
                let dropout = Dropout::new(if case % 3 == 0 { 0.3 } else { 0.0 }, 1, 2, 3);
                let dropout = dropout.map(|dropout| AttentionDropout { dropout, first_row: 11 });
                let sequences = Sequences { starts: &starts };
                // Behind a row nothing is read: there stands what no table has.
                let mut numbers: Vec<u8> = Vec::new();
                for n in lengths {
                    numbers.extend((0..n * n).map(|i| if i % n > i / n { 99 } else { s.below(count) as u8 }));
                }
                let bias = random(&mut s, heads * count as usize);
                let (keys, values) =
                    (random(&mut s, count as usize * size), random(&mut s, count as usize * size));
                let tables = Tables {
                    bias: with_bias.then_some(bias.as_slice()),
                    keys: with_keys.then_some(keys.as_slice()),
                    values: with_values.then_some(values.as_slice()),
                };
                let relations = Relations {
                    numbers: &numbers,
                    count: count as usize,
                    tables,
                    hidden: hides.then_some((heads / 2, 1)),
                };
                let form = Attention {
                    heads,
                    size,
                    slopes: None,
                    prefixes: None,
                    relations: Some(relations),
                    dropout,
                };
                let (qkv, r) = (random(&mut s, rows * 3 * width), random(&mut s, rows * width));

                let v = var(&qkv, &[rows, 3 * width]);
                let [b, k, a] = [
                    var(&bias, &[heads, count as usize]),
                    var(&keys, &[count as usize, size]),
                    var(&values, &[count as usize, size]),
                ];
                let given = Tables {
                    bias: with_bias.then(|| b.as_tensor().clone()),
                    keys: with_keys.then(|| k.as_tensor().clone()),
                    values: with_values.then(|| a.as_tensor().clone()),
                };
                let safe: Vec<u8> = numbers.iter().map(|&r| r % 99).collect();
                let mut at = 0;
                let parts = starts.windows(2).map(|w| {
                    let n = w[1] - w[0];
                    at += n * n;
                    let qkv = v.narrow(0, w[0], n).unwrap();
                    related_attention(&qkv, &form, &safe[at - n * n..at], &given, w[0])
                });
                let want = Tensor::cat(&parts.collect::<Vec<_>>(), 0).unwrap();
                let mut weights = vec![7.0; heads * sequences.squares()];
                let (mut context, mut g) = (vec![7.0; rows * width], vec![7.0; qkv.len()]);
                attention(form, sequences, &qkv, &mut weights, &mut context);
                close(&context, &want, 3e-6, "context");
                let found = attention_backward(form, sequences, &qkv, &weights, &r, &mut g);
                let loss = (&want * wide(&r, &[rows, width])).unwrap().sum_all().unwrap();
                let right = loss.backward().unwrap();
                close(&g, right.get(&v).unwrap(), 6e-6, "dqkv");
                for (found, var, name) in
                    [(found.bias, &b, "bias"), (found.keys, &k, "keys"), (found.values, &a, "values")]
                {
                    assert_eq!(found.is_some(), right.get(var).is_some(), "{name}");
                    if let (Some(found), Some(right)) = (found, right.get(var)) {
                        close(&found, right, 2e-5, name);
                    }
                }
            }
        }
    }
}

#[test]
fn rotations() {
    let mut s = stream("rotary");
    for (heads, size) in [(1, 2), (3, 6), (2, 16)] {
        let (rows, width) = (7, heads * size);
        let positions: Vec<usize> = (0..rows).map(|_| s.below(20) as usize).collect();
        let table = rotary_table(20, size);
        let (qkv, r) = (random(&mut s, rows * 3 * width), random(&mut s, rows * 3 * width));
        let v = var(&qkv, &[rows, 3 * width]);
        let pairs = v.reshape((rows, 3, heads, size / 2, 2)).unwrap();
        let angle = |f: fn(f64) -> f64| {
            let entry = |i: usize| {
                let (row, part, pair) =
                    (i / (3 * heads * size / 2), i / (heads * size / 2) % 3, i % (size / 2));
                // Values do not turn.
                let p = if part == 2 { 0.0 } else { positions[row] as f64 };
                f(p / 10_000_f64.powf(2.0 * pair as f64 / size as f64))
            };
            let entries: Vec<f64> = (0..rows * 3 * heads * size / 2).map(entry).collect();
            Tensor::from_vec(entries, (rows, 3, heads, size / 2, 1), &Device::Cpu).unwrap()
        };
        let (cos, sin) = (angle(f64::cos), angle(f64::sin));
        let (a, b) = (pairs.narrow(4, 0, 1).unwrap(), pairs.narrow(4, 1, 1).unwrap());
        let first = ((&a * &cos).unwrap() - (&b * &sin).unwrap()).unwrap();
        let second = ((&a * &sin).unwrap() + (&b * &cos).unwrap()).unwrap();
        let want = Tensor::cat(&[first, second], 4).unwrap().reshape((rows, 3 * width)).unwrap();
        let [dqkv] = gradients(&want, &r, [&v]);

        let (mut y, mut g) = (qkv, r);
        rotary(&table, &mut y, &positions, heads, size, false);
        close(&y, &want, 1e-6, "rotary");
        rotary(&table, &mut g, &positions, heads, size, true);
        close(&g, &dqkv, 1e-6, "rotary back");
    }
}

#[test]
fn dropouts() {
    let mut s = stream("dropout");
    for (rows, width) in SIZES {
        let (x, y) = (random(&mut s, rows * width), random(&mut s, rows * width));
        let dropout = Dropout::new(0.4, 1, 2, 3);
        let masks: Vec<f32> = (0..rows).flat_map(|r| dropout.unwrap().factors(9 + r as u64, width)).collect();
        let want = (wide(&x, &[rows, width]) * wide(&masks, &[rows, width])).unwrap();
        let (mut dropped, mut added, mut plain) = (x.clone(), y.clone(), y.clone());
        dropout_in_place(dropout, &mut dropped, width, 9);
        close(&dropped, &want, 1e-6, "dropout");
        add_dropout(dropout, &mut added, &x, width, 9);
        close(&added, &(want + wide(&y, &[rows, width])).unwrap(), 1e-6, "residual with dropout");
        add_dropout(None, &mut plain, &x, width, 9);
        close(&plain, &(wide(&x, &[rows, width]) + wide(&y, &[rows, width])).unwrap(), 1e-6, "residual");
    }
}

#[test]
fn steps_of_a_recurrence() {
    let mut s = stream("lstm");
    let sigmoid = |x: &Tensor| ((x.neg().unwrap().exp().unwrap() + 1.0).unwrap()).recip().unwrap();
    for (rows, width) in SIZES {
        for first in [false, true] {
            let n = rows * width;
            let sums: Vec<f32> = random(&mut s, 4 * n).iter().map(|v| 2.0 * v).collect();
            let before = if first { Vec::new() } else { random(&mut s, n) };
            let (dh, dc) = (random(&mut s, n), random(&mut s, n));
            let zeros = vec![0.0; n];
            let v = var(&sums, &[rows, 4 * width]);
            let b = var(if first { &zeros } else { &before }, &[rows, width]);
            let gate = |k: usize| v.narrow(1, k * width, width).unwrap();
            let kept = (sigmoid(&gate(1)) * b.as_tensor()).unwrap();
            let cell = (kept + (sigmoid(&gate(0)) * gate(2).tanh().unwrap()).unwrap()).unwrap();
            let output = (sigmoid(&gate(3)) * cell.tanh().unwrap()).unwrap();
            let both = Tensor::cat(&[&output, &cell], 1).unwrap();
            let r: Vec<f32> =
                dh.chunks(width).zip(dc.chunks(width)).flat_map(|(h, c)| [h, c].concat()).collect();
            let [dsums, dbefore] = gradients(&both, &r, [&v, &b]);

            let (mut gates, mut c) = (sums, zeros.clone());
            let (mut squashed, mut h) = (zeros.clone(), zeros);
            let step = LstmStep { gates: &mut gates, cell: &mut c, squashed: &mut squashed, output: &mut h };
            lstm_step(step, &before, width);
            close(&h, &output, 1e-6, "output");
            close(&c, &cell, 1e-6, "cell");
            let saved = LstmSaved { gates: &gates, squashed: &squashed, before: &before };
            let (mut dcell, mut dgates) = (dc, vec![7.0; 4 * n]);
            lstm_step_backward(saved, &dh, &mut dcell, &mut dgates, width);
            close(&dgates, &dsums, 4e-6, "gates");
            close(&dcell, &dbefore, 4e-6, "cell before");
        }
    }
}

type Operation = (&'static str, fn(&Tensor) -> candle_core::Result<Tensor>);

/// What the composed forms and the composed models are made of, on a positive x [3, 4].
const OPERATIONS: [Operation; 30] = [
    ("add", |x| x + x.sqr()?),
    ("sub", |x| x - x.sqr()?),
    ("mul", |x| x * x.exp()?),
    ("div", |x| x / (x.sqr()? + 1.0)?),
    ("affine", |x| x.affine(-2.5, 1.0)),
    ("broadcast_add", |x| x.broadcast_add(&x.sum_keepdim(0)?)),
    ("broadcast_sub", |x| x.broadcast_sub(&x.mean_keepdim(1)?)),
    ("broadcast_mul", |x| x.broadcast_mul(&x.narrow(1, 1, 1)?)),
    ("broadcast_div", |x| x.broadcast_div(&x.sum_keepdim(1)?)),
    ("matmul", |x| composed::matmul(&x.t()?, x)),
    ("linear", |x| {
        composed::linear(x, &x.narrow(0, 0, 2)?, &x.narrow(0, 2, 1)?.narrow(1, 0, 2)?.flatten_all()?)
    }),
    ("layer_norm", |x| composed::layer_norm(x, &x.get(0)?, &x.get(1)?, 1e-5)),
    ("softmax", composed::softmax),
    ("gelu", composed::gelu),
    ("gelu_tanh", composed::gelu_tanh),
    ("exp", |x| x.exp()),
    ("log", |x| x.log()),
    ("sqrt", |x| x.sqrt()),
    ("recip", |x| x.recip()),
    ("neg", |x| x.neg()),
    ("tanh", |x| x.tanh()),
    ("erf", |x| x.erf()),
    ("sum", |x| x.sum(0)),
    ("log_sum_exp", |x| x.log_sum_exp(1)),
    ("gather", |x| x.gather(&Tensor::new(&[[1_u32, 1], [0, 3], [2, 2]], &Device::Cpu)?, 1)),
    ("index_select", |x| x.index_select(&Tensor::new(&[2_u32, 0, 2], &Device::Cpu)?, 0)),
    ("where_cond", |x| x.gt(0.7)?.where_cond(&x.sqr()?, &x.exp()?)),
    ("narrow and cat", |x| Tensor::cat(&[x.narrow(1, 2, 2)?, (x.narrow(1, 0, 3)? * 2.0)?], 1)),
    ("transpose and reshape", |x| x.t()?.reshape((2, 6))?.sqr()),
    ("conv2d", |x| {
        let (picture, kernel) = (x.narrow(1, 0, 3)?, x.narrow(1, 1, 3)?);
        picture.reshape((1, 1, 3, 3))?.conv2d(&kernel.reshape((1, 1, 3, 3))?, 1, 2, 1, 1)
    }),
];

#[test]
fn operations_of_candle_have_the_gradients_of_differences() {
    for (name, f) in OPERATIONS {
        let mut s = stream(name);
        let x: Vec<f64> = (0..12).map(|_| 0.3 + s.uniform()).collect();
        let v = Var::from_slice(&x, (3, 4), &Device::Cpu).unwrap();
        let y = f(&v).unwrap();
        let r = random(&mut s, y.elem_count());
        let [gradient] = gradients(&y, &r, [&v]);
        let sum_at = |i: usize, step: f64| {
            let mut moved = x.clone();
            moved[i] += step;
            let y = f(&Tensor::from_slice(&moved, (3, 4), &Device::Cpu).unwrap()).unwrap();
            flat(&y).iter().zip(&r).map(|(y, r)| y * f64::from(*r)).sum::<f64>()
        };
        for (i, g) in flat(&gradient).iter().enumerate() {
            let difference = (sum_at(i, 1e-6) - sum_at(i, -1e-6)) / 2e-6;
            assert!((g - difference).abs() < 1e-6 * (1.0 + g.abs()), "{name}: {g} and {difference}");
        }
    }
}
