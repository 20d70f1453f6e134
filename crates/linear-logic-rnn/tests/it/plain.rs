//! The cells of sections 2, 3 and 6 as plain loops on one sequence, from the formulas alone.

use linear_logic_rnn::cell::Cell;

/// The entries of a named weight in a list of all weights.
pub(crate) fn entries<'a>(cell: &Cell, theta: &'a [f64], name: &str) -> &'a [f64] {
    let mut at = 0;
    for (_, weight) in cell.step.trained() {
        if weight.name == name {
            return &theta[at..at + weight.len()];
        }
        at += weight.len();
    }
    panic!("there is no weight {name}")
}

/// Weights by name.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) theta: &'a [f64],
}

impl Weights<'_> {
    pub(crate) fn get(&self, name: &str) -> &[f64] {
        entries(self.cell, self.theta, name)
    }

    /// W x, for a W with as many columns as x has entries.
    pub(crate) fn times(&self, name: &str, x: &[f64]) -> Vec<f64> {
        times(self.get(name), x)
    }

    /// W x + b
    fn head(&self, name: &str, x: &[f64]) -> Vec<f64> {
        plus(&self.times(&format!("{name}.W"), x), self.get(&format!("{name}.b")))
    }
}

pub(crate) fn times(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

pub(crate) fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

pub(crate) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub(crate) fn softmax(x: &[f64]) -> Vec<f64> {
    let total: f64 = x.iter().map(|x| x.exp()).sum();
    x.iter().map(|x| x.exp() / total).collect()
}

/// h and c after every step.
pub(crate) fn lstm(w: Weights<'_>, inputs: &[Vec<f64>], h0: &[f64]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let n = h0.len();
    let (mut h, mut c) = (h0.to_vec(), vec![0.0; n]);
    let mut all = Vec::new();
    for x in inputs {
        let a = plus(&plus(&w.times("W", x), &w.times("R", &h)), w.get("b"));
        for k in 0..n {
            let (i, f, g, o) = (a[k], a[n + k], a[2 * n + k], a[3 * n + k]);
            c[k] = logistic(f) * c[k] + logistic(i) * g.tanh();
            h[k] = logistic(o) * c[k].tanh();
        }
        all.push((h.clone(), c.clone()));
    }
    all
}

/// h after every step.
pub(crate) fn gru(w: Weights<'_>, inputs: &[Vec<f64>], h0: &[f64]) -> Vec<Vec<f64>> {
    let n = h0.len();
    let mut h = h0.to_vec();
    let mut all = Vec::new();
    for x in inputs {
        let (from_x, from_h) = (plus(&w.times("W", x), w.get("b")), w.times("R", &h));
        h = (0..n)
            .map(|k| {
                let r = logistic(from_x[k] + from_h[k]);
                let z = logistic(from_x[n + k] + from_h[n + k]);
                let new = (from_x[2 * n + k] + r * (from_h[2 * n + k] + w.get("c")[k])).tanh();
                (1.0 - z) * new + z * h[k]
            })
            .collect();
        all.push(h.clone());
    }
    all
}

/// How `ll` is set.
pub(crate) struct Proofs<'a> {
    pub(crate) lambda: &'a [u32],
    pub(crate) pi: &'a [&'a str],
    /// The places of words.
    pub(crate) window: usize,
    pub(crate) is_literal: bool,
    pub(crate) is_full: bool,
    pub(crate) is_diagonal_gate: bool,
    pub(crate) gate: fn(f64) -> f64,
    pub(crate) act: fn(f64) -> f64,
}

impl Proofs<'_> {
    /// h after every step, by Definition 2.9.
    pub(crate) fn run(&self, w: Weights<'_>, inputs: &[Vec<f64>], h0: &[f64]) -> Vec<Vec<f64>> {
        let mut h = h0.to_vec();
        // The inputs before this one, the newest first.
        let mut before = vec![vec![0.0; inputs.first().map_or(0, Vec::len)]; self.window - 1];
        let mut all = Vec::new();
        for x in inputs {
            let u = w.times("J", &h);
            let mut mixture = vec![0.0; u.len()];
            let newest = (self.window - 1).to_string();
            let lambda = self.lambda.iter().map(|n| newest.repeat(*n as usize)).collect::<Vec<String>>();
            let pi = self.pi.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
            for (weight, bias, words) in [("P", "C", lambda), ("Q", "D", pi)] {
                if words.is_empty() {
                    continue;
                }
                let gates = plus(&w.times(weight, &h), w.get(bias));
                let each = if self.is_diagonal_gate { u.len() } else { 1 };
                for (word, gates) in words.iter().zip(gates.chunks(each)) {
                    let mut z = u.clone();
                    // Literal: the digits are factors from left to right, so the last one is applied first.
                    let mut digits: Vec<char> = word.chars().collect();
                    if self.is_literal {
                        digits.reverse();
                    }
                    for digit in digits {
                        let back = self.window - 1 - digit.to_digit(10).unwrap() as usize;
                        z = self.apply(w.get("V"), if back == 0 { x } else { &before[back - 1] }, &z);
                    }
                    for (k, z) in z.iter().enumerate() {
                        mixture[k] += (self.gate)(gates[k % each]) * z;
                    }
                }
            }
            let rest = plus(&plus(&w.times("H", &h), &w.times("U", x)), w.get("B"));
            h = plus(&w.times("I", &mixture), &rest).into_iter().map(self.act).collect();
            before.insert(0, x.clone());
            before.truncate(self.window - 1);
            all.push(h.clone());
        }
        all
    }

    /// V(x) z
    fn apply(&self, v: &[f64], x: &[f64], z: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; z.len()];
        for (v, x) in v.chunks(v.len() / x.len()).zip(x) {
            let image =
                if self.is_full { times(v, z) } else { v.iter().zip(z).map(|(v, z)| v * z).collect() };
            sum.iter_mut().zip(image).for_each(|(sum, y)| *sum += x * y);
        }
        sum
    }
}

/// A ring of a Turing machine.
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    pub(crate) name: usize,
    pub(crate) read: Vec<f64>,
    pub(crate) write: Vec<f64>,
    /// [address][content]
    pub(crate) memory: Vec<Vec<f64>>,
}

/// Σ_j q_j R^{p_j} v with R^p e_j = e_{(j+p) mod N}
fn turned(q: &[f64], powers: &[i64], v: &[f64]) -> Vec<f64> {
    let n = v.len() as i64;
    let mut sum = vec![0.0; v.len()];
    for (q, p) in q.iter().zip(powers) {
        for (j, v) in v.iter().enumerate() {
            sum[(j as i64 + p).rem_euclid(n) as usize] += q * v;
        }
    }
    sum
}

impl Ring {
    pub(crate) fn new(name: usize, addresses: usize, content: usize, first: f64) -> Self {
        let mut one = vec![0.0; addresses];
        one[0] = 1.0;
        let mut row = vec![0.0; content];
        row[0] = first;
        Self { name, read: one.clone(), write: one, memory: vec![row; addresses] }
    }

    fn sharpened(&self, w: Weights<'_>, head: &str, v: &[f64], h: &[f64]) -> Vec<f64> {
        let gamma = 1.0 + w.head(&format!("{}.{head}.g", self.name), h)[0].max(0.0);
        let powers: Vec<f64> = v.iter().map(|v| (v + 1e-6).powf(gamma)).collect();
        let total: f64 = powers.iter().sum();
        powers.iter().map(|p| p / total).collect()
    }

    fn rotated(&self, w: Weights<'_>, head: &str, powers: &[i64], v: &[f64], h: &[f64]) -> Vec<f64> {
        turned(&softmax(&w.head(&format!("{}.{head}.q", self.name), h)), powers, v)
    }

    /// Mᵀ r
    fn content(&self) -> Vec<f64> {
        let mut sum = vec![0.0; self.memory[0].len()];
        for (row, r) in self.memory.iter().zip(&self.read) {
            sum.iter_mut().zip(row).for_each(|(sum, m)| *sum += r * m);
        }
        sum
    }

    /// softmax(M)ᵀ r
    fn pattern(&self) -> Vec<f64> {
        Self { memory: self.memory.iter().map(|row| softmax(row)).collect(), ..self.clone() }.content()
    }

    fn next(&self, w: Weights<'_>, powers: &[i64], h: &[f64], read: Vec<f64>) -> Self {
        let read = self.sharpened(w, "r", &read, h);
        let write = self.rotated(w, "w", powers, &self.write, h);
        let write = self.sharpened(w, "w", &write, h);
        let erase: Vec<f64> = w.head(&format!("{}.e", self.name), h).into_iter().map(logistic).collect();
        let mut add = w.head(&format!("{}.a", self.name), h);
        if self.name == 1 {
            add.iter_mut().for_each(|a| *a = a.max(0.0));
        }
        let memory = self.memory.iter().zip(&write).map(|(row, w)| {
            let entries = row.iter().zip(erase.iter().zip(&add));
            entries.map(|(m, (e, a))| m - m * w * e + w * a).collect()
        });
        Self { name: self.name, read, memory: memory.collect(), write }
    }
}

/// h and the rings after every step.
pub(crate) fn machine(
    w: Weights<'_>,
    inputs: &[Vec<f64>],
    hidden: usize,
    mut rings: Vec<Ring>,
    powers: &[i64],
    pattern_powers: &[i64],
) -> Vec<(Vec<f64>, Vec<Ring>)> {
    let mut h = vec![0.0; hidden];
    let mut all = Vec::new();
    for x in inputs {
        let main = &rings[0];
        let mut next = plus(&w.times("H", &h), &w.times("V", &main.content()));
        next = plus(&plus(&next, &w.times("U", x)), w.get("B")).into_iter().map(f64::tanh).collect();
        let mut read = main.rotated(w, "r", powers, &main.read, &h);
        let rho = match rings.as_slice() {
            [_] => None,
            [_, one] => Some(one.pattern()),
            [_, one, other, choice] => {
                let m = choice.pattern();
                let both = one.pattern().into_iter().zip(other.pattern());
                Some(both.map(|(a, b)| m[0] * a + m[1] * b).collect())
            }
            _ => panic!("no machine has {} rings", rings.len()),
        };
        if let Some(rho) = rho {
            let rho: Vec<f64> = rho;
            let g = logistic(w.head("gate", &h)[0]);
            let pulled = turned(&rho, pattern_powers, &main.read);
            read = read.iter().zip(&pulled).map(|(a, b)| g * a + (1.0 - g) * b).collect();
        }
        rings = rings
            .iter()
            .enumerate()
            .map(|(at, ring)| {
                let read = if at == 0 { read.clone() } else { ring.rotated(w, "r", powers, &ring.read, &h) };
                ring.next(w, powers, &h, read)
            })
            .collect();
        h = next;
        all.push((h.clone(), rings.clone()));
    }
    all
}
