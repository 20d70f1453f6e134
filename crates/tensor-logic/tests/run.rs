//! The corpus on the reference interpreter: text in, JSON out, compared with what is expected.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has failed")]

use serde_json::Value as Json;
use tensor_logic::analyse::analyse;
use tensor_logic::answer::json;
use tensor_logic::ast;
use tensor_logic::engine::{Budget, Engine, Parameters, Value};
use tensor_logic::error::{Places, Report};
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::{Kind, Program};
use tensor_logic::reference::Reference;
use tensor_logic::run::{self, Host, Outcome, run};

mod common;

const BUDGET: Budget = Budget { tuples: 100_000, bytes: 1 << 30 };

fn analysed(text: &str, semiring: Option<Kind>) -> Result<Program, Vec<Report>> {
    let options = Options { semiring, ..Options::default() };
    let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &options)?;
    Ok(analysed.program)
}

/// A host without a world.
struct Alone<'a>(&'a str);

impl Host for Alone<'_> {
    fn write(
        &mut self,
        _: &Program,
        _: &str,
        _: tensor_logic::program::TensorId,
        _: &Value,
        _: ast::Span,
    ) -> Result<(), Report> {
        Ok(())
    }

    fn minimize(
        &mut self,
        _: &mut dyn Engine,
        _: &Program,
        _: Budget,
        _: &mut Parameters,
        _: tensor_logic::program::TensorId,
        minimize: &tensor_logic::program::Minimize,
    ) -> Result<tensor_logic::answer::Minimized, Report> {
        Err(Report::new(tensor_logic::error::Code::NotYet, minimize.span, "learning"))
    }

    fn in_semiring(&mut self, kind: Kind) -> Result<Program, Report> {
        analysed(self.0, Some(kind)).map_err(|mut reports| reports.remove(0))
    }
}

fn answers(text: &str) -> (Outcome, Program) {
    let program = analysed(text, None).unwrap_or_else(|reports| panic!("{reports:?} in\n{text}"));
    let outcome = run(&program, text, BUDGET, &mut Reference::default(), &mut Alone(text));
    (outcome, program)
}

fn queries(outcome: &Outcome, program: &Program) -> Json {
    let mut out = String::new();
    json::list(&mut out, &outcome.answers, |out, answer| json::answer(out, &program.symbols, answer));
    serde_json::from_str(&out).unwrap()
}

/// The first difference between what came out and what is expected, as the cases' README says.
fn difference(found: &Json, wanted: &Json, path: &str) -> Option<String> {
    match wanted {
        Json::Object(wanted) => wanted.iter().find_map(|(key, value)| {
            if let Some(name) = key.strip_suffix("_between") {
                let number = found[name].as_f64().unwrap_or(f64::NAN);
                let inside = value[0].as_f64()? <= number && number <= value[1].as_f64()?;
                return (!inside).then(|| format!("{path}.{name}: {number} is not in {value}"));
            }
            difference(&found[key], value, &format!("{path}.{key}"))
        }),
        Json::Array(items) => {
            if found.as_array().is_none_or(|found| found.len() != items.len()) {
                return Some(format!("{path}: {found} instead of {wanted}"));
            }
            let pairs = items.iter().enumerate();
            pairs.into_iter().find_map(|(at, item)| difference(&found[at], item, &format!("{path}[{at}]")))
        }
        Json::Number(number) => {
            let wanted = number.as_f64()?;
            let close =
                found.as_f64().is_some_and(|found| (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0));
            (!close).then(|| format!("{path}: {found} instead of {wanted}"))
        }
        _ => (found != wanted).then(|| format!("{path}: {found} instead of {wanted}")),
    }
}

fn wanted(name: &str) -> Json {
    let path = common::folder().join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_corpus_answers_as_it_should() {
    // These need files or embedding space.
    let others = ["run-04-text-file", "run-37-embedding-space"];
    let mut wrong = Vec::new();
    for (name, text) in common::programs() {
        let runs = name.starts_with("run-") || name.starts_with("explain-");
        if !runs || others.contains(&name.as_str()) {
            continue;
        }
        let program = match analysed(&text, None) {
            Ok(program) => program,
            Err(reports) => {
                wrong.push(format!("{name}: refused {reports:?}"));
                continue;
            }
        };
        let outcome = run(&program, &text, BUDGET, &mut Reference::default(), &mut Alone(&text));
        let found = queries(&outcome, &program);
        let difference = difference(&found, &wanted(&name)["queries"], "queries");
        if let Some(refusal) = &outcome.refusal {
            wrong.push(format!("{name}: {refusal:?}"));
        } else if let Some(difference) = difference {
            wrong.push(format!("{name}: {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}

/// Code, line and column of the refusals of a program.
fn refusals(text: &str) -> Vec<(String, usize, usize)> {
    let reports = match analysed(text, None) {
        Err(reports) => reports,
        Ok(program) => {
            let budget = Budget { tuples: 1000, ..BUDGET };
            let outcome = run(&program, text, budget, &mut Reference::default(), &mut Alone(text));
            outcome.refusal.into_iter().collect()
        }
    };
    let places = Places::new(text);
    let place = |report: &Report| {
        let (line, column) = places.of(report.span.start);
        (report.code.name().to_owned(), line, column)
    };
    reports.iter().map(place).collect()
}

#[test]
fn refusals_of_a_run_stand_where_they_should() {
    let cases = [
        ("E(A, B); E(B, A); N[x, z] = E(x, z) + E(x, y) N[y, z]; N?", "divergence", 19),
        ("Y = step(W[i] X[i]); Y?", "missing-data", 10),
        ("W ~ [1, 2]; Y[i] = W[i]; Y? @minimize(steps=1)", "not-scalar", 26),
        ("A = [1, 2]; Loss = A[i]^2; Loss? @minimize(steps=1)", "nothing-to-learn", 34),
        ("P = [0.5, 0.5]; P | x=1 ?", "not-a-model", 17),
        ("P = [0.5, 0.5]; Z = P[x]; Z | w=1 ?", "unknown-evidence", 31),
        ("P = [0, 1]; Z = P[x]; Z[x | x=0]?", "zero-evidence", 23),
        ("N[t] : count; N[0] = 1; N[t+1] = 10 N[t]; N[20]?", "overflow", 25),
        ("N(0); N(y) <- N(x), y = x + 1; N(x)?", "budget", 7),
        ("i, j, k : 100000; T[i, j, k] = 1; T?", "too-large", 19),
    ];
    for (text, code, column) in cases {
        assert_eq!(refusals(text), [(code.to_owned(), 1, column)], "{text}");
    }
}

#[test]
fn gradients_of_the_corpus() {
    for (name, text) in common::programs() {
        if !name.starts_with("grad-") {
            continue;
        }
        let program = analysed(&text, None).unwrap();
        let wanted = wanted(&name);
        let id = |name: &Json| {
            let ids = (0u32..).map(tensor_logic::program::TensorId);
            let mut named = ids.zip(&program.tensors);
            named.find(|(_, tensor)| Some(tensor.name.as_str()) == name.as_str()).unwrap().0
        };
        let parameters = Parameters::new();
        let request =
            tensor_logic::engine::Request { program: &program, parameters: &parameters, budget: BUDGET };
        for gradient in wanted["gradients"].as_array().unwrap() {
            let by = id(&gradient["tensor"]);
            let (value, found) = Reference::default().gradient(&request, id(&wanted["of"]), &[by]).unwrap();
            assert_eq!(difference(&Json::from(value), &wanted["value"], "value"), None, "{name}");
            let domains: Vec<_> =
                program.tensor(by).places.iter().map(|place| place.domain.clone().unwrap()).collect();
            let mut out = String::new();
            json::nested(&mut out, Kind::Real, &domains, &found[0]);
            let found: Json = serde_json::from_str(&out).unwrap();
            assert_eq!(difference(&found, &gradient["values"], "values"), None, "{name}");
        }
    }
}

#[test]
fn examples_of_the_specification() {
    let cases: &[(&str, &[&str])] = &[
        (
            "x : 4\nN(1); N(2)\nSquare[x] = sig(N(x))\nSquare?",
            &["[0.5, 0.7310585786300049, 0.7310585786300049, 0.5]"],
        ),
        (
            "A = [1, 4, 9, 16]\nu : 4\nP[u] = A[u+1] - A[u]\nT[u] max= A[u+1]\nP?\nT?",
            &["[3.0, 5.0, 7.0, -16.0]", "[4.0, 9.0, 16.0, \"-inf\"]"],
        ),
        ("i : 4\nX(1); X(2)\nN = X[i]\nX[i]?\nX(i)?\nN?", &["[0, 1, 1, 0]", "[[1], [2]]", "2.0"]),
        ("s : 0..3\nDay(0)\nDay(s+1) <- Day(s)\nDay(x)?", &["[[0], [1], [2], [3]]"]),
        ("X = 0.5 X + 1\nX?", &["2.0"]),
    ];
    for (text, wanted) in cases {
        let (outcome, program) = answers(text);
        assert_eq!(outcome.refusal, None, "{text}");
        let found = queries(&outcome, &program);
        for (at, wanted) in wanted.iter().enumerate() {
            let query = &found[at];
            let value = [&query["value"], &query["values"], &query["tuples"]];
            let value = value.into_iter().find(|value| !value.is_null()).unwrap();
            let wanted: Json = serde_json::from_str(wanted).unwrap();
            assert_eq!(difference(value, &wanted, "value"), None, "{text}");
        }
    }
    assert!(run::refusals(&analysed("Y = step(W[i] X[i]); Y?", None).unwrap()).len() == 1);
}
