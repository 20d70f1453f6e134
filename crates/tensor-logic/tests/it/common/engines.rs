//! Two engines on one program: the same values, or the same refusal.

use tensor_logic::analyse::analyse;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::error::Refusal;
use tensor_logic::fast::{Fast, Storage};
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::{Program, Role, TensorId};
use tensor_logic::reference::Reference;

/// Every way in which relations may be stored.
pub(crate) const STORAGES: [Storage; 3] = [Storage::Auto, Storage::Dense, Storage::Sparse];

/// Limits of a test.
pub(crate) const BUDGET: Budget = Budget { tuples: 1000, bytes: 1 << 28 };

/// The core form of a text.
pub(crate) fn analysed(text: &str) -> Result<Program, Vec<Refusal>> {
    let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default())?;
    Ok(analysed.program)
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// How two values differ.
pub(crate) fn value_difference(found: &Value, wanted: &Value) -> Option<String> {
    let values = |a: &[f64], b: &[f64]| {
        if a.len() != b.len() {
            return Some(format!("{} values instead of {}", a.len(), b.len()));
        }
        let at = a.iter().zip(b).position(|(a, b)| !close(*a, *b))?;
        Some(format!("at {at}: {} instead of {} in {a:?} instead of {b:?}", a[at], b[at]))
    };
    match (found, wanted) {
        (Value::Dense(a), Value::Dense(b)) => values(&a.doubles(), &b.doubles()),
        (Value::Tuples(a), Value::Tuples(b)) if a.tuples == b.tuples => values(&a.values, &b.values),
        _ => Some(format!("{found:?} instead of {wanted:?}")),
    }
}

/// The tensors that can be asked for.
pub(crate) fn goals(program: &Program) -> Vec<TensorId> {
    let all = (0u32..).map(TensorId).zip(&program.tensors).map(|(id, _)| id);
    all.filter(|goal| program.needs(&[*goal]).iter().all(|id| program.tensor(*id).role != Role::Missing))
        .collect()
}

/// What the reference says of every tensor that can be asked for.
pub(crate) type Wanted = Vec<(TensorId, Result<Vec<Value>, Refusal>)>;

/// What the reference says of a program.
pub(crate) fn wanted(program: &Program) -> Wanted {
    let parameters = Parameters::new();
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    let value = |goal: TensorId| (goal, Reference::default().values(&request, &[goal]));
    goals(program).into_iter().map(value).collect()
}

/// A tensor of which an engine says something else than the reference.
pub(crate) struct Difference {
    pub(crate) goal: TensorId,
    pub(crate) found: Result<Vec<Value>, Refusal>,
    pub(crate) how: String,
}

/// How the fast engine differs from the reference on any tensor of a program.
pub(crate) fn disagreement(program: &Program, storage: Storage) -> Option<String> {
    difference(program, storage, &wanted(program))
}

/// How the fast engine differs from what is wanted of a program.
pub(crate) fn difference(program: &Program, storage: Storage, wanted: &Wanted) -> Option<String> {
    let found = differences(program, &mut Fast::with_storage(storage), wanted).next()?;
    Some(format!("{storage:?}: {}", found.how))
}

/// How the engine that programs run on differs from what is wanted of one, when all is asked one after the other.
pub(crate) fn auto_difference(program: &Program, wanted: &Wanted) -> Option<String> {
    let found = differences(program, &mut Auto::new(Box::<Fast>::default()), wanted).next()?;
    Some(format!("auto: {}", found.how))
}

/// All that an engine says otherwise than wanted, when all is asked one after the other.
pub(crate) fn differences<'a>(
    program: &'a Program,
    engine: &'a mut dyn Engine,
    wanted: &'a Wanted,
) -> impl Iterator<Item = Difference> + 'a {
    wanted.iter().filter_map(move |(goal, wanted)| {
        let parameters = Parameters::new();
        let request = Request { program, parameters: &parameters, budget: BUDGET };
        let found = engine.values(&request, &[*goal]);
        let difference = match (&found, wanted) {
            (Ok(found), Ok(wanted)) => value_difference(&found[0], &wanted[0])?,
            (Err(found), Err(wanted)) if found.code == wanted.code && found.span == wanted.span => {
                return None;
            }
            _ => format!("{found:?}\n instead of {wanted:?}"),
        };
        let how = format!("{} ({goal:?}): {difference}", program.name(*goal));
        Some(Difference { goal: *goal, found, how })
    })
}

/// How many answers there are to what a tensor is, in each storage that of the interpreter; where it refuses, all refuse.
pub(crate) fn answers_of_both(text: &str, name: &str, storages: &[Storage]) -> usize {
    let Ok(program) = analysed(text) else { return 0 };
    let Some(goal) = program.tensors.iter().rposition(|tensor| tensor.name == name) else { return 0 };
    let (goal, parameters) = (TensorId(goal as u32), Parameters::new());
    let budget = Budget { tuples: 10_000_000, bytes: 1 << 30 };
    let request = Request { program: &program, parameters: &parameters, budget };
    let wanted = Reference::default().values(&request, &[goal]);
    let mut answers = 0;
    for storage in storages {
        let found = Auto::new(Box::new(Fast::with_storage(*storage))).values(&request, &[goal]);
        let codes = [&found, &wanted].map(|result| result.as_ref().err().map(|refusal| refusal.code));
        assert_eq!(codes[0], codes[1], "{storage:?}\n{text}\n{found:?} {wanted:?}");
        if let (Ok(found), Ok(wanted)) = (&found, &wanted) {
            assert_eq!(value_difference(&found[0], &wanted[0]), None, "{storage:?}\n{text}");
            answers += 1;
        }
    }
    answers
}
