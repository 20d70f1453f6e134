//! Random programs, evaluated from their text: what the language's description says of a tree, by going through all bindings.
//!
//! The engines and the reference interpreter share the way from the text to the core form (scopes, what a round reference
//! means where it stands, what a guard restricts), so that a mistake there is in both. Here that way is taken a second time,
//! and only the domains of tensors, their styles and their types are the analysis's. What the description leaves open, or what
//! is rare and long to say, is skipped, with its reason.

mod meaning;
mod scopes;

use std::collections::BTreeMap;
use std::time::Duration;

use tensor_logic::answer::Content;
use tensor_logic::ast::{self, Goal, StatementKind};
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::parse::parse;
use tensor_logic::program::{Program, Role, TensorId};
use tensor_logic::reference::Reference;
use tensor_logic::run::run;
use tensor_logic::value::Const;

use crate::common::engines::analysed;
use crate::common::generator;
use crate::common::shrink::shrunk;
use crate::common::{self};
use crate::run::Alone;

use meaning::{Answered, Found, Meaning, Skip, Thing};

const BUDGET: Budget = Budget { tuples: 1000, bytes: 1 << 28 };

/// How long a program is made smaller.
const PATIENCE: Duration = Duration::from_secs(5);

/// How far numbers of the same meaning may lie apart: sums in another order, rounds that end elsewhere.
const NEAR: f64 = 1e-6;

fn near(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= NEAR * a.abs().max(b.abs()).max(1.0)
}

/// The elements of a value, those of a square tensor all of them.
fn elements(program: &Program, id: TensorId, value: &Value) -> BTreeMap<Vec<Thing>, f64> {
    let thing = |value: Const| meaning::thing(program, value);
    match value {
        Value::Tuples(found) => {
            let tuple = |tuple: &[Const]| tuple.iter().map(|value| thing(*value)).collect();
            let tuples = found.tuples.iter().map(|found| tuple(found));
            tuples.zip(found.values.iter().copied()).collect()
        }
        _ => meaning::all(&meaning::domains(program, id))
            .into_iter()
            .zip(value.doubles().iter().copied())
            .collect(),
    }
}

/// What became of a program's tensors.
#[derive(Default)]
struct Tally {
    same: usize,
    skipped: BTreeMap<&'static str, usize>,
    refused: usize,
    answers: usize,
}

/// The first tensor of which the text says something else than the reference.
fn difference(text: &str, tally: &mut Tally) -> Option<String> {
    let program = analysed(text).ok()?;
    let (tree, errors) = parse(text);
    assert!(errors.is_empty(), "{text}");
    let (tree, slices) = meaning::prepared(&tree);
    let meaning = match Meaning::of(&tree, &slices, &program) {
        Ok(meaning) => meaning,
        Err(Skip(why)) => {
            *tally.skipped.entry(why).or_default() += 1;
            return None;
        }
    };
    let parameters = Parameters::new();
    let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
    for (id, tensor) in (0u32..).map(TensorId).zip(&program.tensors) {
        let missing = |id: &TensorId| program.tensor(*id).role == Role::Missing;
        if tensor.hidden || program.needs(&[id]).iter().any(missing) {
            continue;
        }
        let said = match meaning.tensor(&meaning::versioned(tensor)) {
            Ok(said) => said,
            Err(Skip(why)) => {
                *tally.skipped.entry(why).or_default() += 1;
                continue;
            }
        };
        let Ok(found) = Reference::default().values(&request, &[id]) else {
            tally.refused += 1;
            continue;
        };
        let Some(found) = found.first().map(|value| elements(&program, id, value)) else { continue };
        let Found { elements: said, .. } = said;
        let same = found.len() == said.len()
            && found.iter().zip(said).all(|((a, x), (b, y))| a == b && near(*x, *y));
        if !same && hangs_on_rounding(&program) {
            *tally.skipped.entry("an element near 0").or_default() += 1;
            continue;
        }
        if !same {
            return Some(format!("{}: the reference has {found:?}\n  the text says {said:?}", tensor.name));
        }
        tally.same += 1;
    }
    answers(text, &tree, &program, &meaning, tally)
}

/// The first query that is answered otherwise than the text says.
fn answers(
    text: &str,
    tree: &ast::Program,
    program: &Program,
    meaning: &Meaning<'_>,
    tally: &mut Tally,
) -> Option<String> {
    let queries = tree.statements.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Query { goal, directives } => Some((goal, directives.is_empty())),
        _ => None,
    });
    let outcome = run(program, text, BUDGET, &mut Reference::default(), &mut Alone(text));
    for ((goal, plain), answer) in queries.zip(&outcome.answers) {
        let Goal::Literals(literals) = goal else { continue };
        let domains = match &answer.content {
            Content::Tensor { domains, .. } => {
                domains.iter().map(|domain| meaning::things(program, domain)).collect()
            }
            _ => Vec::new(),
        };
        let said = match meaning.answer(literals, &domains) {
            Ok(said) if plain => said,
            Ok(_) => continue,
            Err(Skip(why)) => {
                *tally.skipped.entry(why).or_default() += 1;
                continue;
            }
        };
        let same = match (&answer.content, &said) {
            (Content::Scalar(found), Answered::Scalar(said)) => match (found, said) {
                (Some(found), Some(said)) => near(*found, *said),
                (found, said) => found == said,
            },
            (Content::Tensor { values, .. }, Answered::Tensor(said)) => {
                values.len() == said.len() && values.iter().zip(said).all(|(a, b)| near(*a, *b))
            }
            (Content::Relation { tuples, values, .. }, Answered::Relation(said)) => {
                let thing = |value: &Const| meaning::thing(program, *value);
                let found: Vec<Vec<Thing>> =
                    tuples.iter().map(|tuple| tuple.iter().map(thing).collect()).collect();
                let ones = vec![1.0; found.len()];
                let values = values.as_ref().unwrap_or(&ones);
                found.len() == said.len()
                    && found
                        .iter()
                        .zip(values)
                        .all(|(at, value)| said.get(at).is_some_and(|said| near(*said, *value)))
            }
            _ => false,
        };
        // Whether an element is 0 may hang on rounding.
        if !same && hangs_on_rounding(program) {
            *tally.skipped.entry("an element near 0").or_default() += 1;
            continue;
        }
        if !same {
            return Some(format!("{}: answered {:?}\n  the text says {said:?}", answer.text, answer.content));
        }
        tally.answers += 1;
    }
    None
}

/// Whether an element of a program is 0 but for rounding.
fn hangs_on_rounding(program: &Program) -> bool {
    let parameters = Parameters::new();
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    let small = |value: &f64| *value != 0.0 && value.abs() < 1e-11;
    (0u32..).map(TensorId).zip(&program.tensors).any(|(id, _)| {
        let values = Reference::default().values(&request, &[id]);
        values.is_ok_and(|values| values.iter().any(|value| value.doubles().iter().any(small)))
    })
}

#[test]
fn the_text_says_what_the_reference_computes() {
    let mut stream = common::stream("surface");
    let mut tally = Tally::default();
    for _ in 0..common::drawn(300) {
        let lines = generator::program(&mut stream);
        if difference(&lines.join("\n"), &mut tally).is_some() {
            let differs = |lines: &[String]| difference(&lines.join("\n"), &mut Tally::default()).is_some();
            let lines = shrunk(lines, PATIENCE, &mut |lines| differs(lines));
            let text = lines.join("\n");
            let how = difference(&text, &mut Tally::default()).unwrap_or_default();
            if std::env::var("CALCULEMUS_SHOW").is_err() {
                panic!("{text}\n{how}");
            }
            println!("{text}\n{how}\n");
        }
    }
    let Tally { same, answers, refused, skipped } = &tally;
    println!("{same} tensors and {answers} answers are the same, {refused} refused, skipped: {skipped:?}");
    assert!(tally.same > tally.skipped.values().sum::<usize>(), "most is understood");
}
