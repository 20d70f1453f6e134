//! Arithmetic on rows of numbers, as plain as it gets.

pub(crate) type Matrix = Vec<Vec<f64>>;

/// A matrix by its elements.
pub(crate) fn matrix(height: usize, width: usize, element: impl Fn(usize, usize) -> f64) -> Matrix {
    (0..height).map(|row| (0..width).map(|column| element(row, column)).collect()).collect()
}

/// Rows of literals.
pub(crate) fn given<const N: usize>(rows: &[[f64; N]]) -> Matrix {
    rows.iter().map(|row| row.to_vec()).collect()
}

pub(crate) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sum = 0.0;
    for at in 0..left.len() {
        sum += left[at] * right[at];
    }
    sum
}

/// Every row of `inputs` through the weights `[output, input]`.
pub(crate) fn linear(weights: &Matrix, inputs: &Matrix) -> Matrix {
    matrix(inputs.len(), weights.len(), |row, output| dot(&weights[output], &inputs[row]))
}

pub(crate) fn sum(left: &Matrix, right: &Matrix) -> Matrix {
    matrix(left.len(), left[0].len(), |row, column| left[row][column] + right[row][column])
}

pub(crate) fn sig(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub(crate) fn relu(x: f64) -> f64 {
    if x > 0.0 { x } else { 0.0 }
}

pub(crate) fn each(inputs: &Matrix, function: fn(f64) -> f64) -> Matrix {
    matrix(inputs.len(), inputs[0].len(), |row, column| function(inputs[row][column]))
}

/// Softmax over the columns that are admitted; the others get 0.
pub(crate) fn softmax(scores: &Matrix, admitted: impl Fn(usize, usize) -> bool) -> Matrix {
    let mut out = matrix(scores.len(), scores[0].len(), |_, _| 0.0);
    for row in 0..scores.len() {
        let mut total = 0.0;
        for column in 0..scores[row].len() {
            if admitted(row, column) {
                out[row][column] = scores[row][column].exp();
                total += out[row][column];
            }
        }
        for weight in &mut out[row] {
            *weight = if *weight == 0.0 { 0.0 } else { *weight / total };
        }
    }
    out
}

/// Every row with mean 0 and variance 1, but for `epsilon`.
pub(crate) fn normalised(inputs: &Matrix, epsilon: f64) -> Matrix {
    let norm = |row: &Vec<f64>| {
        let n = row.len() as f64;
        let mean = row.iter().sum::<f64>() / n;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        row.iter().map(|x| (x - mean) / (variance + epsilon).sqrt()).collect()
    };
    inputs.iter().map(norm).collect()
}

/// The weights of queries over keys, admitted pairs only.
pub(crate) fn weights(queries: &Matrix, keys: &Matrix, admitted: impl Fn(usize, usize) -> bool) -> Matrix {
    let root = (queries[0].len() as f64).sqrt();
    let scores = matrix(queries.len(), keys.len(), |row, column| dot(&queries[row], &keys[column]) / root);
    softmax(&scores, admitted)
}

/// The sum of values, each by its weight.
pub(crate) fn mixed(weights: &Matrix, values: &Matrix) -> Matrix {
    matrix(weights.len(), values[0].len(), |row, column| {
        (0..values.len()).map(|other| weights[row][other] * values[other][column]).sum()
    })
}
