//! Whether numbers tell a label: a logistic regression, fitted on some instances and judged on others by the area under its curve.

/// A logistic regression over standardised features.
#[derive(Debug, Clone, PartialEq)]
pub struct Logistic {
    mean: Vec<f64>,
    scale: Vec<f64>,
    /// One for each feature, and the last for the constant.
    weights: Vec<f64>,
}

/// Newton's method needs few rounds for a convex function with a ridge.
const ROUNDS: usize = 30;
/// The ridge, for features that are constant or depend on one another.
const RIDGE: f64 = 1e-3;

impl Logistic {
    /// The least penalised deviance on rows and their labels, by Newton's method (iteratively reweighted least squares).
    pub fn fit(rows: &[Vec<f64>], labels: &[bool]) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        let n = rows.len().max(1) as f64;
        let column = |at: usize| rows.iter().map(move |row| row.get(at).copied().unwrap_or(0.0));
        let mean: Vec<f64> = (0..width).map(|at| column(at).sum::<f64>() / n).collect();
        let scale = (0..width)
            .map(|at| {
                let middle = mean.get(at).copied().unwrap_or(0.0);
                let variance = column(at).map(|v| (v - middle).powi(2)).sum::<f64>() / n;
                if variance > 1e-12 { variance.sqrt() } else { 1.0 }
            })
            .collect();
        let mut model = Self { mean, scale, weights: vec![0.0; width + 1] };
        let rows: Vec<Vec<f64>> = rows.iter().map(|row| model.standardised(row)).collect();
        for _ in 0..ROUNDS {
            let size = width + 1;
            let mut hessian = vec![vec![0.0; size]; size];
            let mut gradient: Vec<f64> = model.weights.iter().map(|w| -RIDGE * w).collect();
            for (at, row) in hessian.iter_mut().enumerate() {
                if let Some(diagonal) = row.get_mut(at) {
                    *diagonal = RIDGE;
                }
            }
            for (row, label) in rows.iter().zip(labels) {
                let p = sigmoid(dot(&model.weights, row));
                let (error, weight) = (f64::from(u8::from(*label)) - p, p * (1.0 - p));
                for ((line, g), a) in hessian.iter_mut().zip(&mut gradient).zip(row) {
                    *g += error * a;
                    line.iter_mut().zip(row).for_each(|(h, b)| *h += weight * a * b);
                }
            }
            let step = solve(hessian, gradient);
            model.weights.iter_mut().zip(&step).for_each(|(w, s)| *w += s);
            if step.iter().all(|s| s.abs() < 1e-9) {
                break;
            }
        }
        model
    }

    fn standardised(&self, row: &[f64]) -> Vec<f64> {
        let centred = row.iter().zip(&self.mean).zip(&self.scale).map(|((v, m), s)| (v - m) / s);
        centred.chain([1.0]).collect()
    }

    /// What the model thinks of a row: above 0 for the label.
    pub fn score(&self, row: &[f64]) -> f64 {
        dot(&self.weights, &self.standardised(row))
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Solves a symmetric positive system by elimination with the largest pivot.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    for column in 0..n {
        let largest = (column..n).max_by(|a, b| {
            let of = |row: &usize| matrix.get(*row).and_then(|r| r.get(column)).map_or(0.0, |v| v.abs());
            of(a).total_cmp(&of(b))
        });
        let Some(pivot) = largest else { break };
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let Some(own) = matrix.get(column).cloned() else { break };
        let (head, value) =
            (own.get(column).copied().unwrap_or(1.0), right.get(column).copied().unwrap_or(0.0));
        for row in column + 1..n {
            let (Some(line), Some(target)) = (matrix.get_mut(row), right.get_mut(row)) else { break };
            let factor = line.get(column).copied().unwrap_or(0.0) / head;
            line.iter_mut().zip(&own).for_each(|(a, b)| *a -= factor * b);
            *target -= factor * value;
        }
    }
    let mut found = vec![0.0; n];
    for row in (0..n).rev() {
        let Some(line) = matrix.get(row) else { continue };
        let known: f64 = line.iter().zip(&found).skip(row + 1).map(|(a, x)| a * x).sum();
        let head = line.get(row).copied().unwrap_or(1.0);
        if let (Some(x), Some(value)) = (found.get_mut(row), right.get(row)) {
            *x = (value - known) / head;
        }
    }
    found
}

/// The area under the curve: how often a row with the label scores above one without, ties half. Half where one side is empty.
pub fn area(scores: &[f64], labels: &[bool]) -> f64 {
    let mut order: Vec<(f64, bool)> = scores.iter().copied().zip(labels.iter().copied()).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positives = labels.iter().filter(|label| **label).count() as f64;
    let negatives = labels.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 {
        return 0.5;
    }
    let (mut below, mut sum) = (0.0, 0.0);
    for group in order.chunk_by(|a, b| a.0 == b.0) {
        let with = group.iter().filter(|(_, label)| *label).count() as f64;
        let without = group.len() as f64 - with;
        sum += with * (below + without / 2.0);
        below += without;
    }
    sum / (positives * negatives)
}

/// The standard error of an area near one half (Hanley & McNeil 1982).
pub fn standard_error(area: f64, positives: usize, negatives: usize) -> f64 {
    let (p, n) = (positives.max(1) as f64, negatives.max(1) as f64);
    let (q1, q2) = (area / (2.0 - area), 2.0 * area * area / (1.0 + area));
    let variance =
        (area * (1.0 - area) + (p - 1.0) * (q1 - area * area) + (n - 1.0) * (q2 - area * area)) / (p * n);
    variance.max(0.0).sqrt()
}

/// Fits on the rows of even number and judges those of odd number: the area, and its standard error.
pub fn judge(rows: &[Vec<f64>], labels: &[bool]) -> (f64, f64) {
    let half = |odd: usize| {
        let chosen = rows.iter().zip(labels).skip(odd).step_by(2);
        let (rows, labels): (Vec<Vec<f64>>, Vec<bool>) =
            chosen.map(|(row, label)| (row.clone(), *label)).unzip();
        (rows, labels)
    };
    let ((fit, known), (other, wanted)) = (half(0), half(1));
    let model = Logistic::fit(&fit, &known);
    let scores: Vec<f64> = other.iter().map(|row| model.score(row)).collect();
    let positives = wanted.iter().filter(|label| **label).count();
    let found = area(&scores, &wanted);
    (found, standard_error(found, positives, wanted.len() - positives))
}
