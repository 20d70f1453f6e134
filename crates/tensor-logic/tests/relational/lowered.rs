//! Rules from programs of the corpus, component by component, against the reference interpreter.

use std::collections::BTreeMap;
use std::path::Path;

use tensor_logic::engine::{Budget, Engine, Request, Value as Answer};
use tensor_logic::files::Files;
use tensor_logic::program::{Component, Program, Style, TensorId};
use tensor_logic::reference::Reference;
use tensor_logic::relational::{Constants, Database, Limits, Lowering, Value, evaluate};
use tensor_logic::value::Const;

type Tuples = BTreeMap<Vec<Const>, f64>;

/// What the reference says of a round tensor.
fn reference(program: &Program, tensor: TensorId) -> Option<Tuples> {
    let parameters = Default::default();
    let budget = Budget { tuples: 1_000_000, bytes: 1 << 30 };
    let request = Request { program, parameters: &parameters, budget };
    match Reference::default().values(&request, &[tensor]).ok()?.pop()? {
        Answer::Tuples(answer) => Some(answer.tuples.into_iter().zip(answer.values).collect()),
        Answer::Dense(_) => None,
    }
}

fn number(ring: tensor_logic::relational::Ring, value: f64) -> Value {
    if ring.counts() { Value::count(value as i64) } else { Value::real(value) }
}

/// The tensors of a component by rules, all others taken from the reference; `None` where the
/// component is not for rules.
fn rules(program: &Program, component: &Component) -> Option<Vec<(TensorId, Tuples)>> {
    let mut database = Database::new(Constants::integers(0, 50));
    let mut lowering = Lowering::default();
    for tensor in &component.tensors {
        lowering.declare(&mut database, program, *tensor)?;
        assert!(lowering.give(&mut database, program, *tensor).unwrap());
    }
    for tensor in (0..program.tensors.len() as u32).map(TensorId) {
        let round = program.tensor(tensor).style == Style::Round && !program.tensor(tensor).hidden;
        if round && !component.tensors.contains(&tensor) {
            let id = lowering.store(&mut database, program, tensor);
            let ring = database.relation(id).ring();
            for (tuple, value) in reference(program, tensor)? {
                let row: Vec<u32> = tuple.iter().map(|c| database.constants.intern(*c).unwrap()).collect();
                database.insert(id, &row, &[number(ring, value)]).unwrap();
            }
        }
    }
    let mut rules = Vec::new();
    for equation in &component.equations {
        rules.extend(lowering.rules(&mut database, program, *equation)?);
    }
    evaluate(&mut database, &rules, &Limits::default()).ok()?;
    let tuples = |tensor: &TensorId| {
        let relation = database.relation(lowering.relation(*tensor).unwrap());
        let rows = relation.rows();
        let value = |at: usize| match relation.values().get(at) {
            Some(value) if relation.ring().counts() => value.as_count() as f64,
            Some(value) => value.as_real(),
            None => 1.0,
        };
        let tuple = |at: usize| {
            let row = &rows[at * relation.arity()..(at + 1) * relation.arity()];
            row.iter().map(|constant| database.constants.value(*constant)).collect::<Vec<_>>()
        };
        (*tensor, (0..relation.len()).map(|at| (tuple(at), value(at))).collect())
    };
    Some(component.tensors.iter().map(tuples).collect())
}

#[test]
fn rules_of_the_corpus_derive_what_the_reference_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "tl"));
    paths.sort();
    let mut compared = 0;
    for path in paths {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let (functions, options) = Default::default();
        let mut files = Files::new(&folder);
        let Ok(analysed) = tensor_logic::analyse::analyse(&text, &mut files, &functions, &options) else {
            continue;
        };
        let program = analysed.program;
        for component in &program.components {
            let Some(found) = rules(&program, component) else { continue };
            for (tensor, tuples) in found {
                let Some(expected) = reference(&program, tensor) else { continue };
                let same = tuples.len() == expected.len()
                    && tuples
                        .iter()
                        .zip(&expected)
                        .all(|((a, x), (b, y))| a == b && (x == y || (x - y).abs() < 1e-9));
                assert!(same, "{} {}: {tuples:?} and not {expected:?}", path.display(), program.name(tensor));
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared}");
}
