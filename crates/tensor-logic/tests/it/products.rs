//! Products over many variables: conditional probabilities beyond the numbers of 64 bits, and what is largest or smallest.

#![expect(clippy::unwrap_used, reason = "a test whose programs do not run has failed")]

use std::fmt::Write as _;
use std::path::Path;

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::Engine;
use tensor_logic::error::Code;
use tensor_logic::fast::Fast;
use tensor_logic::reference::Reference;

use crate::common;
use crate::common::answers::calculated;

/// The numbers of all answers, or the code of the first refusal.
fn numbers(engine: &mut dyn Engine, text: &str) -> Result<Vec<f64>, Code> {
    let found = calculated(text, Path::new("."), 0, engine).map_err(|refusals| refusals[0].code)?;
    match &found.outcome.refusal {
        Some(refusal) => Err(refusal.code),
        None => {
            Ok(found.outcome.answers.iter().flat_map(|answer| answer.content.numbers().to_vec()).collect())
        }
    }
}

fn auto(text: &str) -> Result<Vec<f64>, Code> {
    numbers(&mut Auto::new(Box::<Fast>::default()), text)
}

/// A model of a few variables as one product of factors of any of them, with their numbers, and what is asked of it.
struct Drawn {
    factors: Vec<(String, Vec<usize>, Vec<f64>)>,
    asked: String,
}

fn model(random: &mut Stream) -> Drawn {
    let sizes: Vec<usize> = (0..3 + random.below(4)).map(|_| 1 + random.below(3) as usize).collect();
    let zeros = random.below(4);
    let count = sizes.len() + random.below(3) as usize;
    let factors = (0..count).map(|nth| {
        let mut scope: Vec<usize> = vec![nth % sizes.len()];
        for _ in 0..random.below(3) {
            scope.push(random.below(sizes.len() as u64) as usize);
        }
        let places: Vec<String> = scope.iter().map(|at| format!("v{at}")).collect();
        let shape: Vec<usize> = scope.iter().map(|at| sizes[*at]).collect();
        let number = |random: &mut Stream| {
            if random.below(10) < zeros { 0.0 } else { (1 + random.below(8)) as f64 }
        };
        let numbers = (0..shape.iter().product()).map(|_| number(random)).collect();
        (places.join(", "), shape, numbers)
    });
    let factors = factors.collect();
    let order = random.permutation(sizes.len() as u32);
    let mut targets = vec![format!("v{}", order[0])];
    let value = |at: u32, random: &mut Stream| random.below(sizes[at as usize] as u64);
    match random.below(3) {
        0 => targets.push(format!("v{}={}", order[1], value(order[1], random))),
        1 => targets.push(format!("v{}", order[1])),
        _ => {}
    }
    let seen = order[2..].iter().take(random.below(3) as usize);
    let given: Vec<String> = seen.map(|at| format!("v{at}={}", value(*at, random))).collect();
    Drawn { factors, asked: format!("Z[{} | {}]?", targets.join(", "), given.join(", ")) }
}

/// Numbers as an array of this shape.
fn array(numbers: &[f64], shape: &[usize]) -> String {
    let Some((first, rest)) = shape.split_first() else { return format!("{:e}", numbers[0]) };
    let parts: Vec<String> = numbers.chunks(numbers.len() / first).map(|part| array(part, rest)).collect();
    format!("[{}]", parts.join(", "))
}

impl Drawn {
    /// The text with factors so many times as large.
    fn text(&self, times: f64) -> String {
        let mut text = String::new();
        let mut product = Vec::new();
        for (nth, (places, shape, numbers)) in self.factors.iter().enumerate() {
            let numbers: Vec<f64> = numbers.iter().map(|number| times * number).collect();
            writeln!(text, "F{nth} = {}", array(&numbers, shape)).unwrap();
            product.push(format!("F{nth}[{places}]"));
        }
        format!("{text}Z = {}\n{}\n", product.join(" "), self.asked)
    }
}

/// The quotients of a model do not depend on how large its factors are.
#[test]
fn conditional_probabilities_beyond_64_bits_are_those_within() {
    let first = seeded::test_seed();
    let (mut same, mut refused) = (0, 0);
    for seed in first..first + common::drawn(80) {
        let mut random = seeded::Family::new("tensor-logic/tests", "products", seed).stream(0);
        let drawn = model(&mut random);
        let wanted = numbers(&mut Reference::default(), &drawn.text(1.0));
        for times in [1.0, 1e-70, 1e80] {
            let text = drawn.text(times);
            let found = auto(&text);
            match (&found, &wanted) {
                (Ok(found), Ok(wanted)) => {
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9;
                    let all = found.len() == wanted.len() && found.iter().zip(wanted).all(near);
                    assert!(all, "{seed}: {found:?} {wanted:?}\n{text}");
                    same += 1;
                }
                (Err(found), Err(wanted)) => {
                    assert_eq!(found, wanted, "{seed}\n{text}");
                    refused += 1;
                }
                _ => panic!("{seed}: {found:?} {wanted:?}\n{text}"),
            }
        }
    }
    assert!(same > refused, "{same} answers, {refused} refusals");
}

/// A hidden Markov model as one sum over its states: 2^400 bindings.
#[test]
fn a_long_product_is_eliminated() {
    let (steps, small) = (400, "0.00000001");
    let mut product = "P[s0] ".to_owned();
    for step in 1..steps {
        write!(product, "A[s{}, s{step}] B[s{step}, o{step}] ", step - 1).unwrap();
    }
    let seen: Vec<String> = (1..steps).map(|step| format!("o{step}={}", step % 2)).collect();
    let text = format!(
        "P = [0.5, 0.5]\nA = [[0.9, 0.1], [0.2, 0.8]]\nB = [[{small}, 0.00000003], [0.00000002, {small}]]\nZ = {product}\n\
         Z[s{} | {}]?\nZ[s5=1 | {}]?\n",
        steps - 1,
        seen.join(", "),
        seen.join(", "),
    );
    let found = auto(&text).unwrap();
    let (transition, emission) = ([[0.9, 0.1], [0.2, 0.8]], [[1.0, 3.0], [2.0, 1.0]]);
    let forward = |from: [f64; 2], step: usize| {
        let next =
            |s: usize| (from[0] * transition[0][s] + from[1] * transition[1][s]) * emission[s][step % 2];
        let (a, b) = (next(0), next(1));
        [a / (a + b), b / (a + b)]
    };
    let backward = |to: [f64; 2], step: usize| {
        let weighted = |s: usize| {
            (0..2).map(|next| transition[s][next] * emission[next][step % 2] * to[next]).sum::<f64>()
        };
        let (a, b) = (weighted(0), weighted(1));
        [a / (a + b), b / (a + b)]
    };
    let last = (1..steps).fold([0.5, 0.5], forward);
    let (before, behind) = ((1..6).fold([0.5, 0.5], forward), (6..steps).rev().fold([0.5, 0.5], backward));
    let fifth = before[1] * behind[1] / (before[0] * behind[0] + before[1] * behind[1]);
    for (found, wanted) in found.iter().zip([last[0], last[1], fifth]) {
        assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
    }
}

/// The best of 3^40 bindings: of products of numbers that are not below 0, and of sums.
#[test]
fn the_best_of_many_bindings_is_found_index_by_index() {
    let table = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]];
    let chain = |join: &str| {
        let parts: Vec<String> = (0..40).map(|at| format!("T[v{at}, v{}]", at + 1)).collect();
        parts.join(join)
    };
    let written = "T = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]\nI = [0.5, 0.3, 0.2]\n";
    let text = format!(
        "{written}A max= I[v0] {}\nA?\nB min= I[v0] + {}\nB?\nC[v0] max= I[v0] + {}\nC?\nD min= I[v0] {}\nD?\n",
        chain(" "),
        chain(" + "),
        chain(" + "),
        chain(" "),
    );
    let start = [0.5, 0.3, 0.2];
    let step = |from: [f64; 3], join: fn(f64, f64) -> f64, best: fn(f64, f64) -> f64| {
        let of = |to: usize| (0..3).map(|at| join(from[at], table[at][to])).reduce(best).unwrap();
        [of(0), of(1), of(2)]
    };
    let times: fn(f64, f64) -> f64 = |a, b| a * b;
    let plus: fn(f64, f64) -> f64 = |a, b| a + b;
    let all = |start: [f64; 3], join, best: fn(f64, f64) -> f64| {
        (0..40).fold(start, |from, _| step(from, join, best)).into_iter().reduce(best).unwrap()
    };
    let mut wanted = vec![all(start, times, f64::max), all(start, plus, f64::min)];
    for at in 0..3 {
        let mut only = [f64::NEG_INFINITY; 3];
        only[at] = start[at];
        wanted.push(all(only, plus, f64::max));
    }
    wanted.push(all(start, times, f64::min));
    let found = auto(&text).unwrap();
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(&wanted) {
        assert!((found - wanted).abs() <= 1e-12 * wanted.abs(), "{found} {wanted}");
    }
}

/// Numbers below 0 turn the order round: such products are gone through as they stand.
#[test]
fn products_with_numbers_below_0_keep_their_order() {
    let table = [[0.7, -0.2], [-0.4, 0.9]];
    let places: Vec<String> = (0..21).map(|at| format!("T[v{at}, v{}]", at + 1)).collect();
    let text = format!("T = [[0.7, -0.2], [-0.4, 0.9]]\nA max= {}\nA?\n", places.join(" "));
    let step = |(high, low): ([f64; 2], [f64; 2])| {
        let all = |to: usize| {
            (0..2).flat_map(move |from| [high[from] * table[from][to], low[from] * table[from][to]])
        };
        let of = |best: fn(f64, f64) -> f64| [0, 1].map(|to| all(to).reduce(best).unwrap());
        (of(f64::max), of(f64::min))
    };
    let (high, _) = (0..21).fold(([1.0; 2], [1.0; 2]), |from, _| step(from));
    let found = auto(&text).unwrap()[0];
    assert!((found - high[0].max(high[1])).abs() < 1e-12, "{found} {high:?}");
}

/// Sums of products that leave the doubles on the way, of 2^41 bindings: they are not gone through one by one.
#[test]
fn products_leave_the_doubles_on_the_way() {
    let table = [[3.0, 1.0], [1.0, -2.0]];
    let large = 2_f64.powi(40);
    let places: Vec<String> = (0..40).map(|at| format!("F[v{at}, v{}]", at + 1)).collect();
    let step = |from: [f64; 2]| [0, 1].map(|to| from[0] * table[0][to] + from[1] * table[1][to]);
    let chain = |start: [f64; 2]| {
        let [a, b] = (0..40).fold(start, |from, _| step(from));
        a + b
    };
    for (last, power) in [(-60.0, 1600), (-850.0, 1600), (-850.0, 1000)] {
        let shift = power - 1600;
        let small = 2_f64.powi(shift / 40);
        let [a, b] = table.map(|row| row.map(|number| format!("{:e}", number * large * small)).join(", "));
        let text = format!(
            "F = [[{a}], [{b}]]\nG = {:e}\nZ = {} G G\nZ?\nA[v0] = {} G G\nA?\n",
            2_f64.powf(last),
            places.join(" "),
            places.join(" "),
        );
        let found = auto(&text).unwrap();
        let scale = |of: f64| (of.log2() + f64::from(power) + 2.0 * last).exp2();
        let wanted = [chain([1.0, 1.0]), chain([1.0, 0.0]), chain([0.0, 1.0])]
            .map(|number| number.signum() * scale(number.abs()));
        assert_eq!(found.len(), 3, "{text}");
        for (found, wanted) in found.iter().zip(wanted) {
            let near = (found - wanted).abs() <= 1e-9 * wanted.abs();
            assert!(near || (found.is_infinite() && *found == wanted), "{found} {wanted}\n{text}");
        }
    }
}
