//! Estimates of conditional probabilities against the exact quotient: over many seeds, on random models, on every engine.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{self, answers::calculated, answers::engines};
use tensor_logic::answer::Answer;
use tensor_logic::engine::{Engine, Stop};
use tensor_logic::reference::Reference;

/// The answers of a text, or the code of the first refusal.
fn answers_on(engine: &mut dyn Engine, text: &str) -> Result<Vec<Answer>, String> {
    let first = |refusal: &tensor_logic::error::Refusal| refusal.code.name().to_owned();
    let found = calculated(text, Path::new("."), 0, engine)
        .map_err(|refusals| refusals.first().map_or_else(String::new, first))?;
    found.outcome.refusal.as_ref().map_or(Ok(()), |refusal| Err(first(refusal)))?;
    Ok(found.outcome.answers)
}

fn answers(text: &str) -> Result<Vec<Answer>, String> {
    answers_on(&mut Reference::default(), text)
}

/// Numbers and their standard errors.
fn estimate(answer: &Answer) -> (Vec<f64>, Vec<f64>) {
    (answer.content.numbers().to_vec(), answer.sample.as_ref().unwrap().standard_errors.clone().unwrap())
}

/// What stands before the bracket of a query, what behind it: an index of the sum that is read off a binding, several,
/// one value, a variable below the sum, one that stands in one of two terms only, relations, a given number, more
/// bindings than are listed.
const MODELS: &[(&str, &str)] = &[
    ("P = [0.25, 0.75]\nC[y, x] = [[0.5, 0.25], [0.5, 0.75]]\nZ = P[x] C[y, x]\n", "Z[x | y=1]?"),
    ("F = [[2, 1], [1, 3]]\nG = [[1, 4], [2, 1]]\nZ = F[a, b] G[b, c] F[c, d]\n", "Z[a, c | d=0]?"),
    ("F = [[2, 1], [1, 3]]\nG = [[1, 4], [2, 1]]\nZ = F[a, b] G[b, c] F[c, d]\n", "Z[b=1, c | a=1]?"),
    ("F = [[2, 1, 3], [1, 3, 1]]\nT[b] = F[a, b]\nZ = T[b] F[c, b]\n", "Z[a | c=0]?"),
    ("F = [[2, 1, 3], [1, 3, 1]]\nT[b] = F[a, b]\nZ = T[b] F[c, b]\n", "Z[a=1 | b=2]?"),
    ("F = [[2, 1], [1, 3]]\nG = [1, 2, 3]\nZ = F[a, b] + G[c]\n", "Z[a | ]?"),
    ("R(A, B) = 2; R(B, C) = 5; R(A, C) = 1\nZ = R(x, y) R(x, z)\n", "Z[y | z=C]?"),
    ("W = [1, 2, 3]\nZ = 2\nZ = W[a]\n", "Z[a | ]?"),
    ("i, j, k, l, m, n : 12\nZ = exp(sin(i)) (j + 1) (2 + cos(k + l)) (m + 2) (n + 1)\n", "Z[k, n=3 | i=2]?"),
    (
        "i, j, k, l, m, n : 12\nT[i] = (2 + cos(i - j))\nZ = T[i] (k + 3) (l + 1) (m + 1) (n + 1)\n",
        "Z[j=3 | k=3]?",
    ),
];

/// Over many seeds the mean of the estimates is the exact value, but for a bias of order 1/n, and they lie about it as
/// far as the standard errors say.
#[test]
fn estimates_of_quotients_lie_about_the_exact_value() {
    for (model, query) in MODELS {
        let exact = answers(&format!("{model}{query}")).unwrap()[0].content.numbers().to_vec();
        let large = model.contains("12\n");
        let (draws, seeds) = if large { (500, 60) } else { (600, 200) };
        let text: String = (0..seeds).fold((*model).to_owned(), |mut text, seed| {
            writeln!(text, "{query} @sample(n={draws}, seed={seed})").unwrap();
            text
        });
        let estimates: Vec<_> = answers(&text).unwrap().iter().map(estimate).collect();
        for (at, exact) in exact.iter().enumerate() {
            let mean = |of: &dyn Fn(f64, f64) -> f64| {
                estimates.iter().map(|(values, errors)| of(values[at], errors[at])).sum::<f64>()
                    / f64::from(seeds)
            };
            let (middle, error) = (mean(&|value, _| value), mean(&|_, error| error * error).sqrt());
            let spread = mean(&|value, _| (value - exact).powi(2)).sqrt();
            let bias = 4.0 / f64::from(draws);
            assert!(
                (middle - exact).abs() <= 4.5 * error / f64::from(seeds).sqrt() + bias * exact,
                "{query} {at}: {middle} {exact}"
            );
            let spreads = if large { 0.6..1.5 } else { 0.8..1.25 };
            assert!(
                spread + error < 1e-12 || spreads.contains(&(spread / error)),
                "{query} {at}: {spread} {error}"
            );
        }
    }
}

/// With more draws an estimate comes as near as one likes, whatever the model is.
#[test]
fn estimates_of_random_models_are_consistent() {
    let mut stream = common::stream("conditional samples");
    let mut far = 0.0_f64;
    let mut numbers = 0;
    for _ in 0..60 {
        let mut below = |n: u64| stream.below(n) as usize;
        let names = ["a", "b", "c", "d"];
        let mut text = String::from("a, b, c, d : 3\n");
        let tables = 2 + below(3);
        for table in 0..tables {
            let relation = below(3) == 0;
            for (x, y) in (0..9).map(|at| (at / 3, at % 3)) {
                if relation && below(3) > 0 {
                    writeln!(text, "F{table}({x}, {y}) = {}", 1 + below(5)).unwrap();
                } else if !relation {
                    writeln!(text, "F{table}[{x}, {y}] = {}", below(5)).unwrap();
                }
            }
            if relation {
                writeln!(text, "F{table}(0, 0) = 1").unwrap();
            } else {
                writeln!(text, "F{table}[2, 2] = 1").unwrap();
            }
            // A table, or a table of two, of which one variable is summed below the model.
            let (u, v, w) = (names[below(4)], names[below(4)], names[below(4)]);
            let brackets =
                |u, v| if relation { format!("F{table}({u}, {v})") } else { format!("F{table}[{u}, {v}]") };
            match below(3) {
                0 if v != u && v != w => {
                    writeln!(text, "T{table}[{u}] = {} {}", brackets(u, v), brackets(v, w)).unwrap();
                    writeln!(text, "# {u} {v} {w}\nZ{table} = T{table}[{u}]").unwrap();
                }
                _ => writeln!(text, "# {u} {v}\nZ{table} = {}", brackets(u, v)).unwrap(),
            }
        }
        // One product of all that stands behind `Z… =`.
        let factors: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix('Z')?.split_once(" = "))
            .map(|(_, f)| f.to_owned())
            .collect();
        let mut model: String =
            text.lines().filter(|line| !line.starts_with('Z')).collect::<Vec<_>>().join("\n");
        writeln!(model, "\nZ = {}", factors.join(" ")).unwrap();
        let used: Vec<&str> = names
            .iter()
            .filter(|name| text.lines().any(|l| l.starts_with("# ") && l.contains(**name)))
            .copied()
            .collect();
        let (target, evidence) = (used[below(used.len() as u64)], used[below(used.len() as u64)]);
        let given = if below(2) == 0 { format!("{evidence}={}", below(3)) } else { String::new() };
        let query = format!("Z[{target} | {given}]?");
        let exact = answers(&format!("{model}{query}"));
        let sampled = answers(&format!("{model}{query} @sample(n=20000, seed={})", below(1000)));
        let exact = match exact {
            Ok(exact) => exact,
            Err(code) => {
                assert_eq!(sampled.err(), Some(code), "{model}{query}");
                continue;
            }
        };
        let (values, errors) = estimate(&sampled.unwrap()[0]);
        for ((value, error), exact) in values.iter().zip(&errors).zip(exact[0].content.numbers()) {
            let gap = (value - exact).abs();
            assert!(gap <= 5.0 * error + 1e-4 * exact, "{model}{query}: {value} {exact} {error}");
            if *error > 0.0 {
                far += (gap / error).powi(2);
                numbers += 1;
            }
        }
    }
    assert!(numbers > 60, "{numbers}");
    let far = (far / f64::from(numbers)).sqrt();
    assert!((0.7..1.4).contains(&far), "{far} standard errors");
}

/// Estimates are those of the seed, on every engine and with any number of threads.
#[test]
fn estimates_of_quotients_repeat() {
    for (model, query) in MODELS {
        let text = format!("{model}{query} @sample(n=300, seed=5)\n{query} @sample(n=300, seed=6)");
        let wanted: Vec<_> = answers(&text).unwrap().iter().map(estimate).collect();
        assert_eq!(answers(&text).unwrap().iter().map(estimate).collect::<Vec<_>>(), wanted);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for (name, mut engine) in engines() {
                let found = pool.install(|| answers_on(&mut *engine, &text)).unwrap();
                for ((found, errors), (wanted, others)) in found.iter().map(estimate).zip(&wanted) {
                    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9);
                    assert!(
                        near(&found, wanted) && near(&errors, others),
                        "{name} {query}: {found:?} {wanted:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_never_drawn_is_refused() {
    let model = "P = [0, 1]\nZ = P[x] P[y]\n";
    assert_eq!(answers(&format!("{model}Z[y | x=0]? @sample(n=10)")).err().as_deref(), Some("zero-evidence"));
    assert_eq!(
        answers(&format!("{model}Z[y | x=1]? @sample(n=100)")).unwrap()[0].content.numbers(),
        [0.0, 1.0]
    );
    let product = "P = [1, 2]\nZ *= P[x]\nZ[x | ]? @sample(n=10)";
    assert_eq!(answers(product).err().as_deref(), Some("not-a-model"));
    // Target and evidence are one variable.
    let same = "P = [1, 2]\nZ = P[x]\nZ[x | x=1]? @sample(n=10)\nZ[x=0 | x=1]? @sample(n=10)";
    let same = answers(same).unwrap();
    assert_eq!(estimate(&same[0]), (vec![0.0, 1.0], vec![0.0, 0.0]));
    assert_eq!(estimate(&same[1]), (vec![0.0], vec![0.0]));
}

/// A number that is given of a sum is one of its bindings.
#[test]
fn given_numbers_are_drawn_too() {
    let text = "W = [1, 2, 3]\nZ = 5\nZ = W[a]\nZ?\nZ? @sample(n=100000, seed=1)";
    let found = answers(text).unwrap();
    let (value, error) = (found[1].content.numbers()[0], estimate(&found[1]).1[0]);
    assert_eq!(found[0].content.numbers(), [11.0]);
    assert!(error > 0.0 && (value - 11.0).abs() < 5.0 * error, "{value} {error}");
}

/// Seeds have 64 bits, a program's own is that of its draws and vectors, and one draw has no standard error.
#[test]
fn seeds_are_kept_and_one_draw_has_no_error() {
    let model = "P = [1, 2, 3]\nZ = P[x]\n";
    let seed = |text: &str| answers(text).unwrap()[0].sample.as_ref().unwrap().seed;
    for own in [0, 7, (1 << 53) + 1, u64::MAX - 1, u64::MAX] {
        assert_eq!(seed(&format!("{model}Z? @sample(n=2, seed={own})")), own);
        assert_eq!(seed(&format!("@seed({own})\n{model}Z? @sample(n=2)")), own);
        assert_eq!(seed(&format!("@seed({own})\n{model}Z? @sample(n=2, seed=3)")), 3);
        let embedded = answers(&format!("@seed({own})\nR(A, B)\nR(x, y)? @embed")).unwrap()[0].embed;
        assert_eq!(embedded.unwrap().seed, Some(own.max(1)));
    }
    let start = |own: u64| {
        let found = answers(&format!("@seed({own})\nW ~ normal(0, 1)\nW?")).unwrap();
        found[0].content.numbers()[0]
    };
    assert_ne!(start(u64::MAX), start(u64::MAX - 1));
    for query in ["Z?", "Z[x | ]?"] {
        let of =
            |n: u64| answers(&format!("{model}{query} @sample(n={n})")).unwrap().remove(0).sample.unwrap();
        assert_eq!(of(1).standard_errors, None);
        assert!(of(2).standard_errors.is_some());
    }
}

/// Draws end when somebody asks.
#[test]
fn draws_are_interrupted() {
    for query in ["Z?", "Z[x | ]?"] {
        let flag = Arc::new(AtomicBool::new(false));
        let text = format!("P = [1, 2, 3]\nZ = P[x]\n{query} @sample(n=4000000000)");
        let mut engine = Reference::stopping(Stop::when(Arc::clone(&flag)));
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                flag.store(true, Ordering::SeqCst);
            });
            answers_on(&mut engine, &text)
        });
        assert_eq!(refused.unwrap_err(), "budget");
    }
}
