//! Conditional queries of models whose numbers lie far apart, against sums of their logarithms.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::fmt::Write;
use std::path::Path;

use seeded::Stream;

use crate::common::answers::{calculated, engines};

/// A number of any size: its sign, or 0, and the logarithm of its size.
#[derive(Debug, Clone, Copy)]
struct Large {
    sign: f64,
    log: f64,
}

impl Large {
    fn of(value: f64) -> Large {
        Large { sign: if value == 0.0 { 0.0 } else { value.signum() }, log: value.abs().ln() }
    }

    fn times(self, other: Large) -> Large {
        Large { sign: self.sign * other.sign, log: self.log + other.log }
    }

    /// The sum of numbers, and how large it is beside them: little where they cancel.
    fn sum(numbers: &[Large]) -> (Large, f64) {
        let there = || numbers.iter().filter(|number| number.sign != 0.0);
        let most = there().map(|number| number.log).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = there().map(|number| number.sign * (number.log - most).exp()).sum();
        let own = Large::of(sum);
        let beside = if there().next().is_none() { 1.0 } else { sum.abs() };
        (Large { sign: own.sign, log: own.log + most }, beside)
    }
}

const SIZES: [usize; 4] = [2, 3, 2, 2];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A table over some of the variables.
struct Factor {
    over: Vec<usize>,
    values: Vec<f64>,
    round: bool,
}

impl Factor {
    fn drawn(stream: &mut Stream, over: Vec<usize>, far: i32, signed: bool) -> Factor {
        let count = over.iter().map(|at| SIZES[*at]).product();
        let mut value = || {
            let size = match stream.below(8) {
                0 => 0.0,
                1 | 2 => 1.0,
                3 => stream.uniform(),
                _ => (0.5 + stream.uniform()) * 10.0_f64.powi(stream.below(2 * far as u64 + 1) as i32 - far),
            };
            if signed && stream.below(4) == 0 { -size } else { size }
        };
        let values = (0..count).map(|_| value()).collect();
        Factor { over, values, round: stream.below(4) == 0 }
    }

    fn at(&self, assignment: &[usize]) -> f64 {
        let place = self.over.iter().fold(0, |place, at| place * SIZES[*at] + assignment[*at]);
        self.values[place]
    }

    /// Its data, under a name.
    fn define(&self, name: &str, text: &mut String) {
        let sizes: Vec<usize> = self.over.iter().map(|at| SIZES[*at]).collect();
        if self.round {
            for (place, value) in self.values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                let states = match sizes.as_slice() {
                    [_, second] => format!("{}, {}", place / second, place % second),
                    _ => place.to_string(),
                };
                writeln!(text, "{name}({states}) = {value:?}").unwrap();
            }
            return;
        }
        let shown = match sizes.as_slice() {
            [_, second] => {
                let rows: Vec<String> = self.values.chunks(*second).map(|row| format!("{row:?}")).collect();
                format!("[{}]", rows.join(", "))
            }
            _ => format!("{:?}", self.values),
        };
        writeln!(text, "{name} = {shown}").unwrap();
    }

    fn read(&self, name: &str) -> String {
        let names: Vec<&str> = self.over.iter().map(|at| NAMES[*at]).collect();
        match self.round {
            true => format!("{name}({})", names.join(", ")),
            false => format!("{name}[{}]", names.join(", ")),
        }
    }
}

/// All assignments of values to the variables.
fn assignments() -> Vec<Vec<usize>> {
    let count = SIZES.iter().product();
    let states = |mut at: usize| {
        let state = |size: &usize| {
            let state = at % size;
            at /= size;
            state
        };
        SIZES.iter().map(state).collect()
    };
    (0..count).map(states).collect()
}

/// A program of tables, some of whose products have a name of their own; and of each assignment what it adds to the model.
fn products(stream: &mut Stream) -> (String, Vec<(Vec<usize>, Large)>, bool) {
    let far = [3, 60, 160, 250][stream.below(4) as usize];
    let signed = stream.below(5) == 0;
    let mut text = String::from("a, c, d : 2; b : 3\n");
    let mut all: Vec<(Vec<usize>, Large)> = Vec::new();
    for term in 0..1 + usize::from(stream.below(3) == 0) {
        // Each variable stands in some factor: a sum runs over what it reads.
        let mut factors: Vec<Factor> =
            (0..4).map(|at| Factor::drawn(stream, vec![at], far, signed)).collect();
        for _ in 0..stream.below(5) {
            let first = stream.below(4) as usize;
            let over = match stream.below(2) {
                0 => vec![first],
                _ => vec![first, (first + 1 + stream.below(3) as usize) % 4],
            };
            factors.push(Factor::drawn(stream, over, far, signed));
        }
        let mut own: Vec<(Vec<usize>, Large)> = assignments()
            .into_iter()
            .map(|states| {
                let parts = factors.iter().map(|factor| Large::of(factor.at(&states)));
                let product = parts.fold(Large::of(1.0), Large::times);
                (states, product)
            })
            .collect();
        all.append(&mut own);
        let mut reads: Vec<String> = Vec::new();
        for (at, factor) in factors.iter().enumerate() {
            let name = format!("F{term}_{at}");
            factor.define(&name, &mut text);
            // A relation with no tuple is none.
            if factor.round && factor.values.iter().all(|value| *value == 0.0) {
                writeln!(text, "{name}({}) = 0", vec!["0"; factor.over.len()].join(", ")).unwrap();
            }
            reads.push(factor.read(&name));
        }
        // A product of two that reads like a table.
        if stream.below(3) == 0 {
            let (one, other) =
                (stream.below(reads.len() as u64) as usize, stream.below(reads.len() as u64) as usize);
            if one != other {
                let mut over = factors[one].over.clone();
                over.extend(&factors[other].over);
                over.sort_unstable();
                over.dedup();
                let names: Vec<&str> = over.iter().map(|at| NAMES[*at]).collect();
                let left = format!("T{term}[{}]", names.join(", "));
                writeln!(text, "{left} = {} {}", reads[one], reads[other]).unwrap();
                reads[one].clone_from(&left);
                reads.remove(other);
            }
        }
        let order = stream.permutation(reads.len() as u32);
        let product: Vec<&str> = order.iter().map(|at| reads[*at as usize].as_str()).collect();
        writeln!(text, "Z = {}", product.join(" ")).unwrap();
    }
    (text, all, signed)
}

/// What a query answers: a number for each value of the target.
fn answered(text: &str, query: &str, which: usize) -> Result<Vec<f64>, String> {
    let engine = &mut *engines().into_iter().nth(which).unwrap().1;
    let first = |refusal: &tensor_logic::error::Refusal| refusal.code.name().to_owned();
    let found = calculated(&format!("{text}{query}\n"), Path::new("."), 0, engine)
        .map_err(|refusals| refusals.first().map_or_else(String::new, first))?;
    found.outcome.refusal.as_ref().map_or(Ok(()), |refusal| Err(first(refusal)))?;
    Ok(found.outcome.answers[0].content.numbers().to_vec())
}

/// The quotients of sums, for each value of a target under evidence; `None` where the evidence has none, and whether
/// numbers cancel.
fn quotients(
    all: &[(Vec<usize>, Large)],
    target: usize,
    evidence: Option<(usize, usize)>,
) -> (Option<Vec<f64>>, bool) {
    let holds = |states: &[usize]| evidence.is_none_or(|(at, state)| states[at] == state);
    let sum = |state: Option<usize>| {
        let under = all
            .iter()
            .filter(|(states, _)| holds(states) && state.is_none_or(|state| states[target] == state));
        Large::sum(&under.map(|(_, number)| *number).collect::<Vec<_>>())
    };
    let (whole, mut left) = sum(None);
    if whole.sign == 0.0 {
        return (None, false);
    }
    let mut found = Vec::new();
    for state in 0..SIZES[target] {
        let (part, own) = sum(Some(state));
        left = left.min(own);
        found.push(part.sign * whole.sign * (part.log - whole.log).exp());
    }
    (Some(found), left < 1e-3)
}

#[test]
fn quotients_of_products_of_any_size() {
    let seed = seeded::test_seed();
    let count = if std::env::var("CALCULEMUS_SLOW").is_ok() { 20_000 } else { 300 };
    let (mut compared, mut far) = (0, 0);
    for at in seed..seed + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "extremes", at).stream(0);
        let (text, all, signed) = products(&mut stream);
        let target = stream.below(4) as usize;
        let evidence = match stream.below(3) {
            0 => None,
            _ => {
                let other = (target + 1 + stream.below(3) as usize) % 4;
                Some((other, stream.below(SIZES[other] as u64) as usize))
            }
        };
        let given = evidence.map_or_else(String::new, |(at, state)| format!("{}={state}", NAMES[at]));
        let query = format!("Z[{} | {given}]?", NAMES[target]);
        let (wanted, cancels) = quotients(&all, target, evidence);
        if signed && (cancels || wanted.is_none()) {
            continue;
        }
        for which in 0..engines().len() {
            let found = answered(&text, &query, which);
            let at = || format!("seed {at}, engine {which}: {found:?} {wanted:?}\n{text}{query}");
            match (&found, &wanted) {
                (Err(code), None) => assert_eq!(code, "zero-evidence", "{}", at()),
                (Ok(found), Some(wanted)) => {
                    let near = |(a, b): (&f64, &f64)| {
                        // Below 1e-300 there are fewer digits.
                        (a - b).abs() <= 1e-9 * b.abs() + 1e-305
                    };
                    assert!(found.len() == wanted.len() && found.iter().zip(wanted).all(near), "{}", at());
                    compared += 1;
                    far += usize::from(wanted.iter().any(|value| *value != 0.0 && *value < 1e-150));
                }
                _ => panic!("{}", at()),
            }
        }
    }
    assert!(compared as u64 > count / 2 && far as u64 > count / 20, "{compared} {far}");
}

/// How the numbers of a filter are drawn.
#[derive(Debug, Clone, Copy)]
enum Numbers {
    /// Between 0.1 and 1.1, times powers of ten so far from 1, a sixth of those of moves 0.
    Far(u64),
    /// Distributions, beside likelihoods near 1: the sum stays where 64 bits are, for as long as one likes.
    Near,
}

/// A filter: products of as many factors as there are steps.
#[test]
fn filters_of_any_length() {
    let seed = seeded::test_seed();
    let count = if std::env::var("CALCULEMUS_SLOW").is_ok() { 1_000 } else { 20 };
    for at in seed..seed + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "extremes-filters", at).stream(0);
        let most = [20, 300, 3000][stream.below(3) as usize];
        let (steps, states) = (2 + stream.below(most) as usize, 2 + stream.below(2) as usize);
        let numbers = match stream.below(6) {
            0 | 1 => Numbers::Near,
            far => Numbers::Far([0, 2, 6, 100][far as usize - 2]),
        };
        let mut table = |rows: usize, moves: bool| -> Vec<Vec<f64>> {
            let mut number = || match numbers {
                Numbers::Near if moves => stream.uniform(),
                Numbers::Near => 0.9 + 0.15 * stream.uniform(),
                Numbers::Far(_) if moves && stream.below(6) == 0 => 0.0,
                Numbers::Far(far) => {
                    (0.1 + stream.uniform()) * 10.0_f64.powi(stream.below(2 * far + 1) as i32 - far as i32)
                }
            };
            let mut rows: Vec<Vec<f64>> =
                (0..rows).map(|_| (0..states).map(|_| number()).collect()).collect();
            if moves && matches!(numbers, Numbers::Near) {
                for row in &mut rows {
                    let sum: f64 = row.iter().sum();
                    row.iter_mut().for_each(|value| *value /= sum);
                }
            }
            rows
        };
        let (moves, seen) = (table(states, true), table(steps, false));
        let mut filter: Vec<Large> = seen[0].iter().map(|value| Large::of(*value)).collect();
        for row in &seen[1..] {
            let next = |to: usize| {
                let parts: Vec<Large> =
                    (0..states).map(|from| filter[from].times(Large::of(moves[from][to]))).collect();
                Large::sum(&parts).0.times(Large::of(row[to]))
            };
            filter = (0..states).map(next).collect();
        }
        let whole = Large::sum(&filter).0;
        let last = steps - 1;
        // Beginning with a constant, or with the end of the steps.
        let text = match stream.below(2) {
            0 => format!(
                "t : {steps}; x, y, z : {states}\nP = {moves:?}\nE = {seen:?}\nF[0, x] = E[0, x]\n\
                 F[t+1, y] = F[t, x] P[x, y] E[t+1, y]\nZ = F[{last}, z]\n"
            ),
            _ => {
                let turned: Vec<&Vec<f64>> = seen.iter().rev().collect();
                format!(
                    "t : {steps}; x, y, z : {states}\nP = {moves:?}\nE = {turned:?}\nF[{last}, x] = E[{last}, x]\n\
                     G[t, y] = F[t+1, x] P[x, y]\nF[t, y] = G[t, y] E[t, y]\nZ = F[0, z]\n"
                )
            }
        };
        // The reference goes by rounds, each through all steps.
        for which in usize::from(steps > 300)..engines().len() {
            let found = answered(&text, "Z[z | ]?", which);
            if whole.sign == 0.0 {
                assert_eq!(found, Err("zero-evidence".to_owned()), "seed {at}\n{text}");
                continue;
            }
            let wanted: Vec<f64> =
                filter.iter().map(|part| part.sign * (part.log - whole.log).exp()).collect();
            let found = found.unwrap_or_else(|code| panic!("seed {at}: {code}\n{text}"));
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs() + 1e-305;
            assert!(found.iter().zip(&wanted).all(near), "seed {at}, {which}: {found:?} {wanted:?}\n{text}");
        }
    }
}
