//! Ranges of indices that limit each other: the order of factors and statements means nothing, and the sums are those of
//! loops over all bindings whose reads are in range.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::fmt::Write;
use std::path::Path;

use seeded::Stream;

use crate::common;
use crate::common::answers::{calculated, engines};

/// A read: how often each index is added, and the constant.
type Read = (usize, [i64; 3], i64);

const NAMES: [&str; 3] = ["i", "j", "k"];

/// The same in some order.
fn shuffled<T>(items: Vec<T>, random: &mut Stream) -> Vec<T> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    let order = random.permutation(items.len() as u32);
    order.into_iter().filter_map(|at| items[at as usize].take()).collect()
}

fn shown((tensor, factors, constant): &Read, random: &mut Stream) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (name, factor) in NAMES.iter().zip(factors) {
        match factor {
            0 => {}
            1 => parts.push((*name).to_owned()),
            factor => parts.push(format!("{factor}*{name}")),
        }
    }
    let mut text = shuffled(parts, random).join(" + ");
    if *constant != 0 {
        write!(text, " + {constant}").unwrap();
    }
    format!("T{tensor}[{text}]")
}

#[test]
fn indices_that_limit_each_other_have_one_range() {
    let mut random = common::stream("ranges");
    let mut cut = 0;
    for _ in 0..150 {
        let sizes: Vec<usize> = (0..5).map(|_| 1 + random.below(5) as usize).collect();
        let data: Vec<Vec<i64>> =
            sizes.iter().map(|size| (0..*size).map(|_| random.below(9) as i64 - 3).collect()).collect();
        let count = 2 + random.below(2) as usize;
        // Each index stands alone in one read; some reads hold several.
        let mut reads: Vec<Read> =
            (0..count).map(|at| (at, std::array::from_fn(|index| i64::from(index == at)), 0)).collect();
        for _ in 0..1 + random.below(2) {
            let mut factors = [0; 3];
            factors[..count]
                .iter_mut()
                .for_each(|factor| *factor = [0, 1, 1, 2, -1][random.below(5) as usize]);
            if factors.iter().filter(|factor| **factor != 0).count() > 1 {
                reads.push((3 + random.below(2) as usize, factors, random.below(4) as i64 - 1));
            }
        }
        // Loops over all that the reads of single indices allow.
        let wanted = |kept: usize| {
            let mut sums = vec![0; if kept < count { sizes[kept] } else { 1 }];
            for at in 0..5 * 5 * 5 {
                let values = [at / 25, at / 5 % 5, at % 5];
                if values[count..].iter().any(|value| *value > 0) {
                    continue;
                }
                let element = |(tensor, factors, constant): &Read| {
                    let place: i64 = factors.iter().zip(values).map(|(f, v)| f * v).sum::<i64>() + constant;
                    data[*tensor].get(usize::try_from(place).ok()?).copied()
                };
                if let Some(factors) = reads.iter().map(element).collect::<Option<Vec<i64>>>() {
                    sums[if kept < count { values[kept] as usize } else { 0 }] +=
                        factors.iter().product::<i64>();
                }
            }
            sums
        };
        for _ in 0..3 {
            let mut statements: Vec<String> =
                data.iter().enumerate().map(|(at, values)| format!("T{at} = {values:?}")).collect();
            for (name, kept) in [("A", 0), ("B", 1), ("S", 3)] {
                let factors: Vec<String> = reads.iter().map(|read| shown(read, &mut random)).collect();
                let factors = shuffled(factors, &mut random);
                let left =
                    NAMES.get(kept).map_or_else(|| name.to_owned(), |index| format!("{name}[{index}]"));
                statements.push(format!("{left} = {}", factors.join(" ")));
            }
            let text = shuffled(statements, &mut random).join("\n") + "\nA?\nB?\nS?";
            for (engine, mut evaluator) in engines() {
                let found = calculated(&text, Path::new("."), 0, &mut *evaluator);
                let found = found.map_err(|refusals| format!("{text}\n{refusals:?}")).unwrap();
                assert_eq!(found.outcome.refusal, None, "{text}");
                for (answer, kept) in found.outcome.answers.iter().zip([0, 1, 3]) {
                    let wanted: Vec<f64> = wanted(kept).into_iter().map(|sum| sum as f64).collect();
                    assert_eq!(answer.content.numbers(), wanted, "{engine}\n{text}");
                }
            }
        }
        let whole: usize = sizes[..count].iter().product();
        cut += usize::from(whole > 1 && reads.len() > count);
    }
    assert!(cut > 50, "{cut}");
}

/// An index that stands alone nowhere is in range whatever the others are.
#[test]
fn an_index_without_a_read_of_its_own_follows_the_others() {
    for factors in ["U[i] A[i+x]", "A[x+i] U[i]"] {
        let text = format!("A = [1, 4, 9, 16]\nU = [1, 1]\nC[x] = {factors}\nC?");
        let found = calculated(&text, Path::new("."), 0, &mut *engines().remove(0).1).unwrap();
        assert_eq!(found.outcome.answers[0].content.numbers(), [5.0, 13.0, 25.0], "{text}");
    }
}
