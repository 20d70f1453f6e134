//! The limit of `x ← b + A x` from nothing, by a solve where the rounds are proved to contract.
//!
//! Enter at [`limit`]. The rounds converge for every b if the spectral radius of A is below 1, and they do if it is so
//! for |A|. That is proved by row sums or column sums of |A| below 1, or by a positive vector v with |A| v < v (Collatz
//! and Wielandt), which is had by solving (1 - |A|) v = 1. Then the limit is the one solution of (1 - A) x = b, and every
//! start leads there. Nothing is claimed where no proof is found: the rounds go on.
//!
//! Systems are solved by BiCGSTAB (van der Vorst 1992) behind an incomplete factorisation without fill, which exists
//! where 1 - |A| is as above (Meijerink and van der Vorst 1977) and is exact for chains; small ones that resist, by
//! elimination. Sums are taken in parts that depend on sizes alone.

use rayon::prelude::*;

/// Rows of a matrix: the columns in order, with their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sparse {
    start: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

/// So many entries are one task.
const TASK: usize = 1 << 12;
/// Rounds contract by less than this: below it rounding decides.
const MARGIN: f64 = 1e-10;
/// Steps of one iterative solve.
const STEPS: usize = 2000;
/// A factorisation may cost so many operations for each entry.
const COST: usize = 64;
/// Systems of more unknowns are not eliminated.
const DENSE: usize = 1200;

impl Sparse {
    /// The n × n matrix of these entries, row, column and number; those of one place are added.
    pub(crate) fn new(n: usize, mut entries: Vec<(u32, u32, f64)>) -> Sparse {
        entries.sort_by_key(|(row, column, _)| (*row, *column));
        let mut sparse = Sparse { start: vec![0; n + 1], ..Sparse::default() };
        let mut last = None;
        for (row, column, value) in entries {
            if last == Some((row, column)) {
                if let Some(sum) = sparse.values.last_mut() {
                    *sum += value;
                }
                continue;
            }
            last = Some((row, column));
            sparse.start[row as usize + 1] += 1;
            sparse.columns.push(column);
            sparse.values.push(value);
        }
        for row in 0..n {
            sparse.start[row + 1] += sparse.start[row];
        }
        sparse
    }

    fn len(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.start[row]..self.start[row + 1];
        self.columns[range.clone()]
            .iter()
            .map(|column| *column as usize)
            .zip(self.values[range].iter().copied())
    }

    /// The product with a vector.
    pub(crate) fn times(&self, x: &[f64]) -> Vec<f64> {
        let of = |row: usize| self.row(row).map(|(column, value)| value * x[column]).sum::<f64>();
        if self.values.len() < TASK {
            return (0..self.len()).map(of).collect();
        }
        (0..self.len()).into_par_iter().map(of).collect()
    }

    fn sizes(&self) -> Sparse {
        Sparse { values: self.values.iter().map(|value| value.abs()).collect(), ..self.clone() }
    }

    /// Whether all rows, or all columns, have sums below 1; the numbers are not below 0.
    fn sums_below_one(&self) -> bool {
        let below = |sums: &[f64]| sums.iter().all(|sum| *sum <= 1.0 - MARGIN);
        let mut columns = vec![0.0; self.len()];
        self.columns.iter().zip(&self.values).for_each(|(column, value)| columns[*column as usize] += value);
        below(&self.times(&vec![1.0; self.len()])) || below(&columns)
    }
}

/// The limit of the rounds `x ← b + A x`, each element to about `tolerance` in units of max(1, its size); `None` where it
/// is not proved that there is one, or where it is not found.
pub(crate) fn limit(
    a: &Sparse,
    b: &[f64],
    start: &[f64],
    tolerance: f64,
    stopped: &dyn Fn() -> bool,
) -> Option<Vec<f64>> {
    if !a.values.iter().chain(b).chain(start).all(|value| value.is_finite()) {
        return None;
    }
    let own = System::new(a, stopped);
    let sizes = a.sizes();
    if !sizes.sums_below_one() {
        let ones = vec![1.0; a.len()];
        let sum = match a.values.iter().all(|value| *value >= 0.0) {
            true => own.solve(&ones, &ones, 1e-6),
            false => System::new(&sizes, stopped).solve(&ones, &ones, 1e-6),
        }?;
        let next = sizes.times(&sum);
        let shrinks = |(sum, next): (&f64, &f64)| *sum > 0.0 && *sum < 1.0 / MARGIN && sum - next > 0.5;
        if !sum.iter().zip(&next).all(shrinks) {
            return None;
        }
    }
    own.solve(b, start, tolerance)
}

/// 1 - A, and what approximates its inverse.
struct System<'a> {
    matrix: Sparse,
    approximate: Approximate,
    stopped: &'a dyn Fn() -> bool,
}

enum Approximate {
    /// The factors L, whose diagonal is 1, and U in one matrix, and where the diagonal stands in each row.
    Factors(Sparse, Vec<usize>),
    Diagonal(Vec<f64>),
}

impl<'a> System<'a> {
    fn new(a: &Sparse, stopped: &'a dyn Fn() -> bool) -> System<'a> {
        let mut matrix = Sparse { start: vec![0], ..Sparse::default() };
        for row in 0..a.len() {
            let mut open = true;
            for (column, value) in a.row(row) {
                if column >= row && open {
                    open = false;
                    matrix.columns.push(row as u32);
                    matrix.values.push(if column == row { 1.0 - value } else { 1.0 });
                    if column == row {
                        continue;
                    }
                }
                matrix.columns.push(column as u32);
                matrix.values.push(-value);
            }
            if open {
                matrix.columns.push(row as u32);
                matrix.values.push(1.0);
            }
            matrix.start.push(matrix.columns.len());
        }
        let approximate = factors(&matrix).unwrap_or_else(|| {
            let own = |row: usize| matrix.row(row).find(|(column, _)| *column == row).map_or(1.0, |(_, v)| v);
            let own = |row| if own(row) == 0.0 { 1.0 } else { own(row) };
            Approximate::Diagonal((0..matrix.len()).map(own).collect())
        });
        System { matrix, approximate, stopped }
    }

    fn residual(&self, b: &[f64], x: &[f64]) -> Vec<f64> {
        self.matrix.times(x).iter().zip(b).map(|(found, wanted)| wanted - found).collect()
    }

    /// What solves the system, each row to a tolerance in units of max(1, its element).
    fn solve(&self, b: &[f64], start: &[f64], tolerance: f64) -> Option<Vec<f64>> {
        let rests = |x: &[f64], r: &[f64]| {
            let of = |(x, r): (&f64, &f64)| r.abs() / x.abs().max(1.0);
            x.iter().zip(r).map(of).fold(0.0, |most, r| if r.is_nan() { f64::INFINITY } else { r.max(most) })
        };
        let mut x = start.to_vec();
        let mut r = self.residual(b, &x);
        let mut rest = rests(&x, &r);
        // What is left is solved for again, as long as that helps.
        for _ in 0..12 {
            if rest <= 0.25 * tolerance || (self.stopped)() {
                break;
            }
            let Some(step) = self.descend(&r) else { break };
            let next: Vec<f64> = x.iter().zip(&step).map(|(x, step)| x + step).collect();
            let left = self.residual(b, &next);
            let found = rests(&next, &left);
            if found >= rest {
                break;
            }
            let helps = found < 0.5 * rest;
            (x, r, rest) = (next, left, found);
            if !helps {
                break;
            }
        }
        if rest <= 0.5 * tolerance {
            return Some(x);
        }
        if self.matrix.len() > DENSE || (self.stopped)() {
            return None;
        }
        let x = self.eliminate(b)?;
        (rests(&x, &self.residual(b, &x)) <= 0.5 * tolerance).then_some(x)
    }

    fn precondition(&self, r: &[f64]) -> Vec<f64> {
        match &self.approximate {
            Approximate::Diagonal(diagonal) => r.iter().zip(diagonal).map(|(r, d)| r / d).collect(),
            Approximate::Factors(factors, own) => {
                let mut x = r.to_vec();
                for row in 0..x.len() {
                    let mut sum = x[row];
                    for at in factors.start[row]..own[row] {
                        sum -= factors.values[at] * x[factors.columns[at] as usize];
                    }
                    x[row] = sum;
                }
                for row in (0..x.len()).rev() {
                    let mut sum = x[row];
                    for at in own[row] + 1..factors.start[row + 1] {
                        sum -= factors.values[at] * x[factors.columns[at] as usize];
                    }
                    x[row] = sum / factors.values[own[row]];
                }
                x
            }
        }
    }

    /// BiCGSTAB from 0, preconditioned from the right: about the solution for a right side.
    fn descend(&self, b: &[f64]) -> Option<Vec<f64>> {
        let n = b.len();
        let (mut x, mut r) = (vec![0.0; n], b.to_vec());
        let shadow = r.clone();
        let wanted = 1e-10 * norm(b);
        let (mut rho, mut alpha, mut omega) = (1.0_f64, 1.0_f64, 1.0_f64);
        let (mut v, mut p) = (vec![0.0; n], vec![0.0; n]);
        for _ in 0..STEPS {
            if (self.stopped)() {
                return None;
            }
            let next = dot(&shadow, &r);
            if next == 0.0 || !next.is_finite() {
                break;
            }
            let beta = next / rho * (alpha / omega);
            rho = next;
            p.iter_mut().zip(&r).zip(&v).for_each(|((p, r), v)| *p = r + beta * (*p - omega * v));
            let y = self.precondition(&p);
            v = self.matrix.times(&y);
            alpha = rho / dot(&shadow, &v);
            if !alpha.is_finite() {
                break;
            }
            r.iter_mut().zip(&v).for_each(|(r, v)| *r -= alpha * v);
            x.iter_mut().zip(&y).for_each(|(x, y)| *x += alpha * y);
            if norm(&r) <= wanted {
                break;
            }
            let z = self.precondition(&r);
            let t = self.matrix.times(&z);
            omega = dot(&t, &r) / dot(&t, &t);
            if !omega.is_finite() || omega == 0.0 {
                break;
            }
            r.iter_mut().zip(&t).for_each(|(r, t)| *r -= omega * t);
            x.iter_mut().zip(&z).for_each(|(x, z)| *x += omega * z);
            if norm(&r) <= wanted {
                break;
            }
        }
        x.iter().all(|value| value.is_finite()).then_some(x)
    }

    /// Gauss's elimination with pivots by column.
    fn eliminate(&self, b: &[f64]) -> Option<Vec<f64>> {
        let n = b.len();
        let mut rows: Vec<Vec<f64>> = (0..n)
            .map(|row| {
                let mut full = vec![0.0; n + 1];
                self.matrix.row(row).for_each(|(column, value)| full[column] = value);
                full[n] = b[row];
                full
            })
            .collect();
        for at in 0..n {
            let largest = (at..n).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
            rows.swap(at, largest);
            let (above, below) = rows.split_at_mut(at + 1);
            let pivot = &above[at];
            if pivot[at] == 0.0 || !pivot[at].is_finite() || (self.stopped)() {
                return None;
            }
            for row in below {
                let factor = row[at] / pivot[at];
                if factor != 0.0 {
                    row[at..].iter_mut().zip(&pivot[at..]).for_each(|(x, p)| *x -= factor * p);
                }
            }
        }
        let mut x = vec![0.0; n];
        for at in (0..n).rev() {
            let known: f64 = rows[at][at + 1..n].iter().zip(&x[at + 1..]).map(|(a, x)| a * x).sum();
            x[at] = (rows[at][n] - known) / rows[at][at];
        }
        Some(x)
    }
}

/// The incomplete factors of a matrix, with entries where it has some; `None` where they would cost too much or do not exist.
fn factors(matrix: &Sparse) -> Option<Approximate> {
    let n = matrix.len();
    let own: Option<Vec<usize>> = (0..n)
        .map(|row| {
            let columns = &matrix.columns[matrix.start[row]..matrix.start[row + 1]];
            columns.binary_search(&(row as u32)).ok().map(|at| matrix.start[row] + at)
        })
        .collect();
    let own = own?;
    let below =
        |row: usize| matrix.columns[matrix.start[row]..own[row]].iter().map(|column| *column as usize);
    let cost: usize = (0..n).flat_map(below).map(|k| matrix.start[k + 1] - own[k]).sum();
    if cost > COST * matrix.columns.len() {
        return None;
    }
    let mut factors = matrix.clone();
    // Where each column stands in the row at hand.
    let mut place = vec![usize::MAX; n];
    for row in 0..n {
        let range = factors.start[row]..factors.start[row + 1];
        range.clone().for_each(|at| place[factors.columns[at] as usize] = at);
        for at in factors.start[row]..own[row] {
            let k = factors.columns[at] as usize;
            let pivot = factors.values[own[k]];
            let factor = factors.values[at] / pivot;
            factors.values[at] = factor;
            for from in own[k] + 1..factors.start[k + 1] {
                let to = place[factors.columns[from] as usize];
                if to != usize::MAX {
                    factors.values[to] -= factor * factors.values[from];
                }
            }
        }
        range.for_each(|at| place[factors.columns[at] as usize] = usize::MAX);
        let pivot = factors.values[own[row]].abs();
        if pivot <= 1e-14 || !pivot.is_finite() {
            return None;
        }
    }
    Some(Approximate::Factors(factors, own))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let of = |(a, b): (&[f64], &[f64])| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    if a.len() <= TASK {
        return of((a, b));
    }
    let parts: Vec<f64> = a.par_chunks(TASK).zip(b.par_chunks(TASK)).map(of).collect();
    parts.iter().sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> seeded::Stream {
        seeded::Family::new("tensor-logic", "solve", seeded::test_seed()).stream(0)
    }

    /// Random matrices, some with signs, some whose rounds diverge: what is found is where many rounds lead, and
    /// where rounds diverge nothing is found.
    #[test]
    fn limits_are_those_of_rounds() {
        let mut random = stream();
        let (mut found, mut refused, mut slow) = (0, 0, 0);
        for case in 0..450 {
            let n = 1 + random.below(40) as usize;
            let (density, signs) = (1 + random.below(5) as usize, random.below(2) == 0);
            let mut entries = Vec::new();
            for _ in 0..density * n {
                let value = random.uniform() * if signs && random.below(2) == 0 { -1.0 } else { 1.0 };
                entries.push((random.below(n as u64) as u32, random.below(n as u64) as u32, value));
            }
            let scale = [0.2, 0.5, 0.9, 1.3][random.below(4) as usize] / density as f64 * 2.0;
            entries.iter_mut().for_each(|(.., value)| *value *= scale);
            let a = Sparse::new(n, entries);
            let b: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let mut x = vec![0.0; n];
            let mut change = f64::INFINITY;
            for _ in 0..200_000 {
                let next: Vec<f64> = a.times(&x).iter().zip(&b).map(|(a, b)| a + b).collect();
                change =
                    next.iter().zip(&x).map(|(a, b)| (a - b).abs() / a.abs().max(1.0)).fold(0.0, f64::max);
                x = next;
                if change <= 1e-15 || !change.is_finite() || change > 1e100 {
                    break;
                }
            }
            match limit(&a, &b, &vec![0.0; n], 1e-12, &|| false) {
                Some(y) => {
                    let apart = |x: &[f64], y: &[f64]| {
                        x.iter().zip(y).map(|(a, b)| (a - b).abs() / a.abs().max(1.0)).fold(0.0, f64::max)
                    };
                    // Rounds that still go on after so many are far from where they lead, but a limit stays where it is.
                    let next: Vec<f64> = a.times(&y).iter().zip(&b).map(|(a, b)| a + b).collect();
                    assert!(
                        change <= 1e-3 && apart(&y, &next) < 1e-9,
                        "{case}: {change} {}",
                        apart(&y, &next)
                    );
                    assert!(change > 1e-13 || apart(&x, &y) < 1e-7, "{case}: {}", apart(&x, &y));
                    slow += u32::from(change > 1e-13);
                    found += 1;
                }
                // Signs may cancel, so that rounds contract where those of the sizes do not; and there may be
                // too little room below 1.
                None => {
                    let (sizes, mut sum) = (a.sizes(), vec![1.0; n]);
                    for _ in 0..20_000 {
                        sum = sizes.times(&sum).iter().map(|next| 1.0 + next).collect();
                    }
                    assert!(signs || change > 1e-13 || sum.iter().any(|sum| *sum >= 1e8), "{case}: {change}");
                    refused += 1;
                }
            }
        }
        assert!(found > 80 && refused > 60 && slow < 5, "{found} {refused} {slow}");
    }

    /// A walk on a long line that ends at one side: rounds take the square of its length.
    #[test]
    fn a_long_chain_is_solved() {
        let n = 20_000;
        let mut entries = Vec::new();
        for at in 0..n as u32 {
            entries.push((at, at.saturating_sub(1), if at == 0 { 0.0 } else { 0.5 }));
            entries.push((at, (at + 1).min(n as u32 - 1), 0.5));
        }
        let x = limit(&Sparse::new(n, entries), &vec![1.0; n], &vec![0.0; n], 1e-10, &|| false).unwrap();
        // Steps until the walk leaves at 0: (i + 1)(2n - i).
        for (at, found) in x.iter().enumerate() {
            let wanted = (at as f64 + 1.0) * (2.0 * n as f64 - at as f64);
            assert!((found - wanted).abs() <= 1e-6 * wanted, "{at}: {found} {wanted}");
        }
    }

    /// Small matrices, all solved by elimination too.
    #[test]
    fn elimination_agrees() {
        let mut random = stream();
        for _ in 0..50 {
            let n = 1 + random.below(20) as usize;
            let entries = (0..3 * n)
                .map(|_| {
                    (random.below(n as u64) as u32, random.below(n as u64) as u32, random.uniform() / 8.0)
                })
                .collect();
            let a = Sparse::new(n, entries);
            let b: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let system = System::new(&a, &|| false);
            let (x, y) = (system.eliminate(&b).unwrap(), system.solve(&b, &vec![0.0; n], 1e-13).unwrap());
            assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-9));
        }
    }
}
