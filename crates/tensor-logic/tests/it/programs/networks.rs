//! The networks of the paper, by loops: from the perceptron to Tables 1 and 2.

use super::plain::{
    Matrix, dot, each, given, linear, matrix, mixed, normalised, relu, sig, softmax, sum, weights,
};
use super::{Oracle, Want, number, rows};

pub(crate) const ORACLES: &[Oracle] = &[
    ("perceptron", perceptron),
    ("mlp", mlp),
    ("rnn", rnn),
    ("convolution", convolution),
    ("kernel-machine", kernel_machine),
    ("table1-gnn", table1),
    ("self-attention", self_attention),
    ("table2-transformer", table2),
    ("embedding-space", embedding_space),
    ("temperature", temperature),
];

fn step(x: f64) -> f64 {
    if x > 0.0 { 1.0 } else { 0.0 }
}

fn perceptron() -> Vec<Want> {
    let (w, x) = ([0.2, 1.9, -0.7, 3.0], [0.0, 1.0, 1.0, 0.0]);
    let kept = (0..4).map(|i| step(w[i] * x[i])).collect();
    vec![number(step(dot(&w, &x))), Want::Numbers(kept), number(step(dot(&w, &x) - 1.5))]
}

fn mlp() -> Vec<Want> {
    let first = [[1.0, -1.0], [0.5, 2.0], [-1.0, 0.0]].map(|row| sig(dot(&row, &[1.0, 0.5])));
    let last = sig(dot(&[1.5, -0.5, 1.0], &first));
    let all = [vec![1.0, 0.5, 0.0], first.to_vec(), vec![last, sig(0.0), sig(0.0)]];
    vec![rows(&all), number(last)]
}

fn rnn() -> Vec<Want> {
    let (w, v) = ([[0.5, -0.3], [0.2, 0.1]], [[1.0, 0.0], [0.5, -1.0]]);
    let inputs = [[1.0, 0.0], [-1.0, 1.0], [2.0, 1.0]];
    let mut state = [0.0, 0.0];
    let mut all = matrix(2, 3, |_, _| 0.0);
    for (t, input) in inputs.iter().enumerate() {
        state = [0, 1].map(|i| sig(dot(&w[i], &state) + dot(&v[i], input)));
        for i in 0..2 {
            all[i][t] = state[i];
        }
    }
    vec![Want::Numbers(state.to_vec()), rows(&all)]
}

fn convolution() -> Vec<Want> {
    let image = [
        [[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 2.0]],
        [[3.0, 1.0], [1.0, 0.0], [0.0, 0.0], [2.0, 1.0], [1.0, 0.0]],
        [[0.0, 0.0], [2.0, 2.0], [1.0, 1.0], [0.0, 0.0], [1.0, 3.0]],
        [[1.0, 2.0], [0.0, 1.0], [1.0, 0.0], [3.0, 0.0], [0.0, 1.0]],
        [[2.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]],
    ];
    let filter = [[[1.0, -1.0], [0.5, 0.0]], [[0.0, 1.0], [-1.0, 0.5]]];
    let mut features = matrix(4, 4, |_, _| 0.0);
    for x in 0..4 {
        for y in 0..4 {
            let mut sum = 0.0;
            for dx in 0..2 {
                for dy in 0..2 {
                    sum += dot(&filter[dx][dy], &image[x + dx][y + dy]);
                }
            }
            features[x][y] = relu(sum);
        }
    }
    let block = |x: usize, y: usize| [0, 1, 2, 3].map(|at| features[2 * x + at / 2][2 * y + at % 2]);
    let pooled = matrix(2, 2, |x, y| block(x, y).iter().sum());
    let top = matrix(2, 2, |x, y| block(x, y).iter().copied().fold(f64::NEG_INFINITY, f64::max));
    let mean = matrix(2, 2, |x, y| block(x, y).iter().sum::<f64>() / 4.0);
    vec![rows(&features), rows(&pooled), rows(&top), rows(&mean)]
}

fn kernel_machine() -> Vec<Want> {
    let x = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]];
    let polynomial = matrix(3, 3, |a, b| dot(&x[a], &x[b]).powi(2));
    let gaussian = matrix(3, 3, |a, b| {
        let distance: f64 = (0..2).map(|j| (x[a][j] - x[b][j]) * (x[a][j] - x[b][j])).sum();
        (-distance / 2.0).exp()
    });
    let decision = 0.5 * gaussian[2][0] - 1.0 * gaussian[2][1] + 0.1;
    vec![rows(&polynomial), rows(&gaussian), number(sig(decision))]
}

fn table1() -> Vec<Want> {
    let neighbours = [vec![1], vec![0, 2, 3], vec![1, 3], vec![2, 1]];
    let layers = [given(&[[1.0, -1.0], [0.0, 2.0]]), given(&[[1.0, 0.5], [-0.5, 1.0]])];
    let out = [0.3, -0.2];
    let mut embedding = given(&[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, -1.0]]);
    for weights in &layers {
        let messages = each(&linear(weights, &embedding), relu);
        embedding = matrix(4, 2, |n, d| {
            let sum: f64 = neighbours[n].iter().map(|other: &usize| messages[*other][d]).sum();
            relu(0.5 * sum + embedding[n][d])
        });
    }
    let node = embedding.iter().map(|row| sig(dot(&out, row))).collect();
    let edge = matrix(4, 4, |a, b| sig(dot(&embedding[a], &embedding[b])));
    let graph = embedding.iter().map(|row| dot(&out, row)).sum();
    vec![rows(&embedding), Want::Numbers(node), rows(&edge), number(sig(graph))]
}

fn self_attention() -> Vec<Want> {
    let x = given(&[[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [-1.0, 1.0, 0.0], [2.0, 0.0, 1.0]]);
    let query = linear(&given(&[[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]]), &x);
    let key = linear(&given(&[[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]), &x);
    let value = linear(&given(&[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, -1.0, 0.0]]), &x);
    let all = weights(&query, &key, |_, _| true);
    vec![rows(&all), rows(&mixed(&all, &value))]
}

/// A matrix of weights that a formula gives.
fn formula(height: usize, width: usize, function: fn(f64) -> f64, terms: [usize; 3]) -> Matrix {
    let [start, down, across] = terms;
    matrix(height, width, |row, column| function((start + down * row + across * column) as f64))
}

fn table2() -> Vec<Want> {
    let words = [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [0.5, 0.5, 0.0, 0.0]];
    let position = matrix(3, 4, |p, d| {
        let p = p as f64;
        if d % 2 == 0 {
            (p / 10000f64.powf(d as f64 / 4.0)).sin()
        } else {
            (p / 10000f64.powf((d as f64 - 1.0) / 4.0)).cos()
        }
    });
    let mut stream = sum(&given(&words), &position);
    let (mut comparisons, mut merged) = (Vec::new(), Vec::new());
    for block in 0..2 {
        let mut heads = vec![Vec::new(); 3];
        for head in 0..2 {
            let query = linear(&formula(2, 4, f64::sin, [1 + 7 * block + 5 * head, 3, 2]), &stream);
            let key = linear(&formula(2, 4, f64::sin, [2 + 3 * block + 7 * head, 5, 2]), &stream);
            let value = linear(&formula(2, 4, f64::cos, [3 + 5 * block + 3 * head, 2, 7]), &stream);
            let all = weights(&query, &key, |_, _| true);
            for (position, row) in mixed(&all, &value).into_iter().enumerate() {
                heads[position].extend(row);
            }
            if block == 0 {
                comparisons.extend(all);
            }
        }
        let attention = linear(&formula(4, 4, f64::cos, [1 + 2 * block, 3, 5]), &heads);
        let middle = normalised(&sum(&attention, &stream), 1e-5);
        let hidden = each(&linear(&formula(3, 4, f64::sin, [4 + 3 * block, 2, 5]), &middle), relu);
        let out = linear(&formula(4, 3, f64::cos, [5 + 2 * block, 7, 3]), &hidden);
        stream = normalised(&sum(&out, &middle), 1e-5);
        merged = heads;
    }
    let scores =
        linear(&given(&[[1.0, 0.0, -1.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, -1.0, 0.0, 0.5]]), &stream);
    let output = softmax(&scores, |_, _| true);
    vec![rows(&position), rows(&comparisons), rows(&merged), rows(&stream), rows(&output)]
}

fn embedding_space() -> Vec<Want> {
    // The embeddings are orthonormal, so everything is read back as it was put in.
    let holds = matrix(3, 3, |a, b| if (a, b) == (0, 1) || (a, b) == (1, 2) { 1.0 } else { 0.0 });
    let same = matrix(3, 3, |a, b| if a == b { 1.0 } else { 0.0 });
    vec![Want::Numbers(vec![1.0, 0.0, 1.0]), rows(&holds), rows(&same)]
}

fn temperature() -> Vec<Want> {
    let at = |theta: f64, t: f64| Want::Numbers([0.97, 0.1].map(|s: f64| sig((s - theta) / t)).to_vec());
    vec![at(0.5, 1.0), at(0.5, 0.1), Want::Numbers(vec![1.0, 0.0]), at(0.0, 0.05)]
}
