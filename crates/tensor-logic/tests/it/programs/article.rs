//! The programs of the PyNeuraLogic article, by loops.

use super::plain::{Matrix, dot, each, given, linear, matrix, mixed, normalised, relu, sig, sum, weights};
use super::{Oracle, Want, number, rows};

pub(crate) const ORACLES: &[Oracle] = &[
    ("attention", attention),
    ("attention-causal", causal),
    ("attention-strided", strided),
    ("attention-relational", relational),
    ("encoder-block", encoder),
    ("batch-of-graphs", batch),
    ("where-relu-stands", order),
    ("xor", xor),
];

fn small() -> [Matrix; 3] {
    [given(&[[1.0, 0.0], [0.0, 1.0]]), given(&[[1.0, 1.0], [1.0, 0.0]]), given(&[[1.0, 2.0], [3.0, 4.0]])]
}

fn attention() -> Vec<Want> {
    let [q, k, v] = small();
    let all = weights(&q, &k, |_, _| true);
    vec![rows(&all), rows(&mixed(&all, &v))]
}

fn causal() -> Vec<Want> {
    let [q, k, v] = small();
    let before = weights(&q, &k, |i, j| j <= i);
    vec![rows(&before), rows(&mixed(&before, &v))]
}

fn strided() -> Vec<Want> {
    let q = matrix(12, 3, |i, d| (1.0 + 2.0 * i as f64 + 3.0 * d as f64).sin());
    let k = matrix(12, 3, |j, d| (2.0 + 3.0 * j as f64 + 5.0 * d as f64).cos());
    let v = matrix(12, 3, |j, d| (3.0 + 5.0 * j as f64 + 2.0 * d as f64).sin());
    let window = |i: usize, j: usize| j <= i && i - j <= 5;
    let stride = |i: usize, j: usize| j <= i && (i - j).is_multiple_of(5);
    let count = |admitted: &dyn Fn(usize, usize) -> bool| {
        number((0..144).filter(|at| admitted(at / 12, at % 12)).count() as f64)
    };
    let near = mixed(&weights(&q, &k, window), &v);
    let far = mixed(&weights(&q, &k, stride), &v);
    vec![count(&window), count(&stride), rows(&near), rows(&far)]
}

fn relational() -> Vec<Want> {
    let nodes = [[1.0, 0.0], [0.0, 1.0]];
    let edges = [(0, 0, [0.0, 0.0]), (0, 1, [1.0, 1.0]), (1, 1, [0.0, 0.0])];
    let through = |weights: [[f64; 2]; 2], input: [f64; 2]| weights.map(|row| dot(&row, &input));
    let both = |left: [f64; 2], right: [f64; 2]| [left[0] + right[0], left[1] + right[1]];
    let one = [[1.0, 0.0], [0.0, 1.0]];
    let (mut all, mut sums) = (matrix(2, 2, |_, _| 0.0), matrix(2, 2, |_, _| 0.0));
    for node in 0..2 {
        let (mut total, mut seen) = (0.0, Vec::new());
        for (i, j, edge) in edges.iter().copied().filter(|edge| edge.0 == node) {
            let query = both(through(one, nodes[i]), through([[0.0, 1.0], [1.0, 0.0]], edge));
            let key = both(through([[1.5, 0.0], [0.0, 1.0]], nodes[j]), through(one, edge));
            let value =
                both(through([[1.0, 0.0], [0.0, 2.0]], nodes[j]), through([[1.0, 1.0], [0.0, 1.0]], edge));
            let score = (dot(&query, &key) / 2f64.sqrt()).exp();
            total += score;
            seen.push((j, score, value));
        }
        for (j, score, value) in seen {
            all[node][j] = score / total;
            sums[node][0] += score / total * value[0];
            sums[node][1] += score / total * value[1];
        }
    }
    vec![rows(&all), rows(&sums)]
}

fn encoder() -> Vec<Want> {
    let x = given(&[[1.0, 0.0, -1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 0.0]]);
    let q = linear(&given(&[[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]), &x);
    let k = linear(&given(&[[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]]), &x);
    let v = linear(&given(&[[1.0, 0.0, 1.0], [1.0, -1.0, 0.0], [0.0, 0.0, 2.0]]), &x);
    let first = given(&[[1.0, -1.0, 0.0], [0.5, 0.5, 1.0], [-1.0, 1.0, 0.5], [0.0, 0.0, 1.0]]);
    let second = given(&[[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, -1.0, 0.0], [0.5, 0.0, 0.0, 1.0]]);
    let all = weights(&q, &k, |_, _| true);
    let norm = normalised(&sum(&mixed(&all, &v), &q), 1e-10);
    let hidden = linear(&second, &each(&linear(&first, &norm), relu));
    let norm = normalised(&sum(&hidden, &norm), 1e-10);
    vec![rows(&all), rows(&norm), Want::Numbers(norm[0].clone())]
}

fn batch() -> Vec<Want> {
    let samples = [
        (vec![("A", 'C'), ("B", 'O')], vec![(0, 1), (1, 0)], 1.0),
        (vec![("A", 'C'), ("B", 'C'), ("D", 'O')], vec![(0, 1), (1, 0), (1, 2), (2, 1)], 0.0),
    ];
    let (mut hidden, mut outs, mut loss) = (Vec::new(), Vec::new(), 0.0);
    for (s, (atoms, bonds, target)) in samples.iter().enumerate() {
        let mut pool = [0.0, 0.0];
        for (x, (name, _)) in atoms.iter().enumerate() {
            let mut h = [0.0, 0.0];
            for (y, _) in bonds.iter().filter(|bond| bond.1 == x) {
                let message = if atoms[*y].1 == 'C' { [1.0, 0.0] } else { [2.0, 1.0] };
                h = [h[0] + message[0], h[1] + message[1]];
            }
            for (d, value) in h.iter().enumerate() {
                hidden.push((format!("s = {}, x = {name}, d = {d}", s + 1), *value));
                pool[d] += value / atoms.len() as f64;
            }
        }
        let out = sig(pool[0] - pool[1]);
        loss -= (target * out.ln() + (1.0 - target) * (1.0 - out).ln()) / 2.0;
        outs.push(out);
    }
    vec![Want::Valued(hidden), Want::Numbers(outs), number(loss)]
}

fn order() -> Vec<Want> {
    let edges = [(1, 2), (2, 1), (2, 3)];
    let features = [0.0, 2.0, -1.0, -5.0];
    let (mut after, mut before) = (Vec::new(), Vec::new());
    for x in 1..3 {
        let neighbours: Vec<f64> =
            edges.iter().filter(|edge| edge.0 == x).map(|edge| features[edge.1]).collect();
        after.push((format!("x = {x}"), relu(neighbours.iter().sum())));
        before.push((format!("x = {x}"), neighbours.iter().map(|value| relu(*value)).sum()));
    }
    vec![Want::Valued(after), Want::Valued(before)]
}

fn xor() -> Vec<Want> {
    let truth = |at: u8| f64::from((at >> 1) ^ (at & 1));
    vec![Want::Numbers((0..4).map(truth).collect())]
}
