//! The programs of `programs/`: every answer is that of loops written by hand, on every engine.
//!
//! [`networks`], [`article`], [`logic`] and [`probability`] are the loops: a line for each query,
//! in order. A value that a program's page gives beside a query is compared too.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its programs has failed")]

use std::path::{Path, PathBuf};

use crate::common::answers::{bindings, calculated, commented, contradiction, engines};
use tensor_logic::answer::Answer;
use tensor_logic::world::Calculated;

mod article;
mod learning;
mod logic;
mod networks;
mod plain;
mod printed;
mod probability;

/// What a query must say.
enum Want {
    /// All numbers, row-major, or those beside the tuples.
    Numbers(Vec<f64>),
    /// The bindings of a relation.
    Bindings(Vec<String>),
    /// Both.
    Valued(Vec<(String, f64)>),
    /// An estimate within five standard errors of this.
    About(f64),
}

/// A program's name, and what its queries say.
type Oracle = (&'static str, fn() -> Vec<Want>);

fn number(value: f64) -> Want {
    Want::Numbers(vec![value])
}

/// Rows as one list.
fn rows(matrix: &[Vec<f64>]) -> Want {
    Want::Numbers(matrix.concat())
}

/// Bindings of one index.
fn named(index: &str, values: &[&str]) -> Want {
    Want::Bindings(values.iter().map(|value| format!("{index} = {value}")).collect())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

fn program(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.tl"))).unwrap()
}

fn close(found: &[f64], wanted: &[f64]) -> bool {
    let near = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-9 * b.abs().max(1.0);
    found.len() == wanted.len() && found.iter().zip(wanted).all(near)
}

/// How an answer differs from what is wanted.
fn difference(found: &Calculated, answer: &Answer, want: &Want) -> Option<String> {
    let numbers = answer.content.numbers();
    let same = match want {
        Want::Numbers(wanted) => close(numbers, wanted),
        Want::Bindings(wanted) => bindings(found, &answer.content) == *wanted && numbers.is_empty(),
        Want::Valued(wanted) => {
            let (names, values): (Vec<String>, Vec<f64>) = wanted.iter().cloned().unzip();
            bindings(found, &answer.content) == names && close(numbers, &values)
        }
        Want::About(wanted) => {
            let errors = answer.sample.as_ref().and_then(|sample| sample.standard_errors.as_deref());
            let error = errors.map_or(0.0, |errors| errors[0]);
            numbers.first().is_some_and(|found| error > 0.0 && (found - wanted).abs() < 5.0 * error)
        }
    };
    let wanted = match want {
        Want::Numbers(wanted) => format!("{wanted:?}"),
        Want::Bindings(wanted) => format!("{wanted:?}"),
        Want::Valued(wanted) => format!("{wanted:?}"),
        Want::About(wanted) => format!("about {wanted}"),
    };
    (!same).then(|| format!("{} instead of {wanted}", found.show(answer)))
}

#[test]
fn every_answer_is_that_of_the_loops() {
    let mut wrong = Vec::new();
    for (name, oracle) in oracles() {
        let text = program(name);
        let wanted = oracle();
        let pages = commented(&text);
        for (engine, mut evaluator) in engines() {
            let found = match calculated(&text, &folder(), 0, &mut *evaluator) {
                Ok(found) => found,
                Err(reports) => {
                    wrong.push(format!("{name}: {reports:?}"));
                    continue;
                }
            };
            let answers = &found.outcome.answers;
            assert_eq!(found.outcome.refusal, None, "{name} on {engine}");
            assert_eq!(
                (answers.len(), pages.len()),
                (wanted.len(), wanted.len()),
                "{name}: one line a query"
            );
            for ((answer, want), (query, page)) in answers.iter().zip(&wanted).zip(&pages) {
                assert_eq!(answer.text, *query, "{name}");
                let said = found.show(answer).replacen(query.as_str(), "", 1);
                let page = page.as_ref().and_then(|page| contradiction(page, &said));
                wrong
                    .extend(difference(&found, answer, want).map(|why| format!("{name} on {engine}: {why}")));
                wrong.extend(page.map(|why| format!("{name}: {why}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} answers\n{}", wrong.len(), wrong.join("\n"));
}

fn oracles() -> Vec<Oracle> {
    [networks::ORACLES, article::ORACLES, logic::ORACLES, probability::ORACLES].concat()
}

#[test]
fn every_program_has_loops_and_a_header() {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut there: Vec<String> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "tl"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let mut known: Vec<String> = oracles().iter().map(|(name, _)| (*name).to_owned()).collect();
    known.extend(learning::PROGRAMS.map(str::to_owned));
    there.sort();
    known.sort();
    assert_eq!(there, known);
    for name in there {
        let text = program(&name);
        let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("# ")).collect();
        assert!(header.len() >= 2, "{name}: a header says the source and what to see");
        assert!(
            text.lines().all(|line| line.chars().count() <= 110 || line.contains('[')),
            "{name}: long lines"
        );
    }
}
