//! What storages and the interpreter say of a program, and how they differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tensor_logic::answer::Content;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Stop, Tuples, Value, is_interrupted};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::fast::{Fast, Precision, Storage};
use tensor_logic::gradient::evaluate::{gradients_at, with_respect_to};
use tensor_logic::learn::minimize;
use tensor_logic::profile::{Layout, Profile};
use tensor_logic::program::{Action, Program, Style, Tensor, TensorId};
use tensor_logic::reference::Reference;
use tensor_logic::start::all_start_values;

use super::drawn::Task;
use crate::common::engines::{STORAGES, analysed};
use crate::common::rounding::{Judged, numbers};
use crate::common::single::{Known, Single, each_number, single};

/// What every engine may take. A table over four indices of 66 values each does not fit, and no answer that is drawn needs one.
const BUDGET: Budget = Budget { tuples: 1 << 20, bytes: 1 << 27 };

/// What the default may take: a few times what another storage answers with, for several copies of a table may stand beside each
/// other. A table of one more place does not fit.
const DEFAULT_BUDGET: Budget = Budget { bytes: 1 << 29, ..BUDGET };

/// What a storage has not said after this it never says.
const LONGEST: Duration = Duration::from_secs(60);

/// How often the default and the sparse storage may look at as many elements and tuples as the storage that looks at the fewest
/// and as the square tensors of the program have, and how many more in any case: what is small may be dense.
const WORK: (u64, u64) = (8, 1 << 20);

/// So many evaluations with other numbers say what hangs on the last digits, and so far are these off.
const SAMPLES: u64 = 6;
const OFF: f64 = 1e-13;

/// Integers below this have all their digits.
const WHOLE: f64 = (1u64 << 53) as f64;

/// What comes of a program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// It is refused before it runs.
    Refused,
    /// All storages agree.
    Same(Counts),
    /// All that differs hangs on the last digits of numbers.
    Rounding(String),
    Differs(String),
    /// The default refuses for want of room where another storage answers, or a storage looks at far more than another.
    Work(String),
    /// No storage has room for what the interpreter answers.
    Room(String),
    /// This storage does not end.
    Hangs(String),
}

/// What programs had to say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) answers: usize,
    /// Those of which the interpreter says the same.
    pub(crate) interpreted: usize,
    /// Those in which there is a number that is not 0.
    pub(crate) alive: usize,
    /// Square tensors that the default storage kept by their supports, where that was watched.
    pub(crate) supports: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.answers += other.answers;
        self.interpreted += other.interpreted;
        self.alive += other.alive;
        self.supports += other.supports;
    }
}

/// What was looked at for an answer, if it was watched.
#[derive(Debug, Clone, Copy)]
struct Work {
    /// Elements and tuples that went in and came out.
    rows: u64,
    supports: usize,
}

impl Work {
    fn of(profile: &Profile) -> Work {
        let rows = profile.components.iter().map(|component| {
            let parts = component.parts.iter().map(|part| part.rows_in + part.rows_out);
            component.rows_out + parts.sum::<u64>()
        });
        let stored = profile.components.iter().flat_map(|component| &component.stored);
        let supports = stored.filter(|stored| stored.layout == Layout::Support).count();
        Work { rows: rows.sum(), supports }
    }
}

/// What a storage says, and its work.
type Asked = (Storage, (Said, Option<Work>));

/// An answer, or a derivative, or what was learned, by its name.
type Said = Vec<(String, Result<Value, Refusal>)>;

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Interpreter(Duration),
    Stored(Storage),
}

/// What ends after a time, if it is not dropped before.
struct Timer {
    flag: Arc<AtomicBool>,
    _ended: mpsc::Sender<()>,
}

impl Timer {
    fn new(patience: Duration) -> Timer {
        let (flag, (_ended, end)) = (Arc::new(AtomicBool::new(false)), mpsc::channel::<()>());
        let timer = Arc::clone(&flag);
        std::thread::spawn(move || {
            if end.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
                timer.store(true, Ordering::Relaxed);
            }
        });
        Timer { flag, _ended }
    }
}

/// What is asked of a program, and how it is watched.
struct Question<'p> {
    task: Task,
    program: &'p Program,
    goals: Vec<TensorId>,
    observed: bool,
}

impl<'p> Question<'p> {
    fn new(task: Task, program: &'p Program, observed: bool) -> Question<'p> {
        let query = |action: &Action| match action {
            Action::Query(query) => Some(query.tensor),
            Action::Write { .. } => None,
        };
        Question { task, program, goals: program.actions.iter().filter_map(query).collect(), observed }
    }

    /// What somebody may take.
    fn budget(&self, who: Who) -> Budget {
        match who {
            Who::Stored(Storage::Auto) => DEFAULT_BUDGET,
            _ => BUDGET,
        }
    }

    /// The elements of all square tensors.
    fn elements(&self) -> u64 {
        let square = self.program.tensors.iter().filter(|tensor| tensor.style == Style::Square);
        let elements = |tensor: &Tensor| tensor.sizes().iter().map(|size| *size as u64).product::<u64>();
        square.map(elements).sum()
    }

    /// What somebody says, and what was looked at for that.
    fn ask(&self, who: Who) -> (Said, Option<Work>) {
        match who {
            Who::Interpreter(patience) => {
                let timer = Timer::new(patience);
                let mut engine = Reference::stopping(Stop::when(Arc::clone(&timer.flag)));
                (self.said(&mut engine, BUDGET), None)
            }
            Who::Stored(storage) => {
                let timer = Timer::new(LONGEST);
                let mut engine = Auto::new(Box::new(Fast::with_storage(storage)));
                engine.stop_when(Arc::clone(&timer.flag));
                engine.observe(self.observed);
                let said = self.said(&mut engine, self.budget(who));
                (said, engine.observed().filter(|_| self.observed).map(|profile| Work::of(&profile)))
            }
        }
    }

    fn said(&self, engine: &mut dyn Engine, budget: Budget) -> Said {
        match self.task {
            Task::Values => {
                let parameters = Parameters::new();
                let request = Request { program: self.program, parameters: &parameters, budget };
                let mut late = None;
                let mut value = |goal: &TensorId| {
                    let found = match late.clone() {
                        Some(late) => Err(late),
                        None => engine.values(&request, &[*goal]).map(|mut values| values.swap_remove(0)),
                    };
                    late = found.as_ref().err().filter(|refusal| is_interrupted(refusal)).cloned();
                    (format!("{} ({goal:?})", self.program.name(*goal)), found)
                };
                self.goals.iter().map(&mut value).collect()
            }
            Task::Gradients => self.in_one(self.gradients(engine, budget)),
            Task::Learning => self.in_one(self.learned(engine, budget)),
        }
    }

    fn in_one(&self, found: Result<Vec<(String, Value)>, Refusal>) -> Said {
        match found {
            Ok(found) => found.into_iter().map(|(name, value)| (name, Ok(value))).collect(),
            Err(refusal) => vec![("Loss".to_owned(), Err(refusal))],
        }
    }

    fn gradients(&self, engine: &mut dyn Engine, budget: Budget) -> Result<Vec<(String, Value)>, Refusal> {
        let (program, parameters) = (self.program, all_start_values(self.program));
        let Some(goal) = self.goals.last() else { return Ok(Vec::new()) };
        let wrt = with_respect_to(program, *goal, &[])?;
        let found = gradients_at(engine, program, budget, parameters, *goal, &wrt)?;
        let number = |values: Vec<f64>| Value::Dense(values.into());
        let slope = |(name, content)| match content {
            Content::Scalar(value) => (name, number(vec![value.unwrap_or(0.0)])),
            Content::Tensor { values, .. } => (name, number(values.to_vec())),
            Content::Relation { values, .. } => (name, number(values.unwrap_or_default())),
        };
        let value = ("Loss".to_owned(), number(vec![found.value]));
        Ok([value].into_iter().chain(found.gradients.into_iter().map(slope)).collect())
    }

    /// The losses before and after some steps, and the parameters.
    fn learned(&self, engine: &mut dyn Engine, budget: Budget) -> Result<Vec<(String, Value)>, Refusal> {
        let (program, mut parameters) = (self.program, all_start_values(self.program));
        let query = program.actions.iter().find_map(|action| match action {
            Action::Query(query) => Some((query.tensor, query.directives.minimize.clone()?)),
            Action::Write { .. } => None,
        });
        let Some((goal, settings)) = query else { return Ok(Vec::new()) };
        let mut losses = Vec::new();
        let mut told = |_: u64, _: u64, loss: f64| losses.push(loss);
        let done = minimize(engine, program, budget, &mut parameters, goal, &settings, &mut told)?;
        losses.push(done.last);
        let number = |values: Vec<f64>| Value::Dense(values.into());
        let parameter = |(id, values): (&TensorId, &Arc<Vec<f64>>)| {
            (program.name(*id).to_owned(), number(values.to_vec()))
        };
        Ok([("Loss".to_owned(), number(losses))]
            .into_iter()
            .chain(parameters.iter().map(parameter))
            .collect())
    }
}

/// Whether a refusal is about room: what one storage has no room for, another may hold.
fn for_room(refusal: &Refusal) -> bool {
    matches!(refusal.code, Code::Budget | Code::TooLarge)
}

/// How far numbers may be apart, as a part of the largest.
fn tolerance(task: Task) -> f64 {
    match task {
        Task::Values => 1e-9,
        Task::Gradients => 1e-8,
        // A step divides by the root of what is small where a slope is.
        Task::Learning => 1e-6,
    }
}

/// The same numbers, but for those that are those of `wanted` within the tolerance: these are exactly those.
fn settled(found: &Value, wanted: &Value, tolerance: f64) -> Value {
    let (own, others) = (found.doubles(), wanted.doubles());
    let all = own.iter().chain(others.iter());
    let largest = all.filter(|x| x.is_finite()).fold(1.0, |a: f64, x| a.max(x.abs()));
    let close = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * largest;
    let settle = |found: &[f64], wanted: &[f64]| -> Vec<f64> {
        found.iter().zip(wanted).map(|(a, b)| if close(*a, *b) { *b } else { *a }).collect()
    };
    match (found, wanted) {
        (Value::Tuples(found), Value::Tuples(wanted)) if found.tuples == wanted.tuples => {
            let values = settle(&found.values, &wanted.values);
            Value::Tuples(Tuples { tuples: found.tuples.clone(), values, counts: Vec::new() })
        }
        (Value::Tuples(_), _) | (_, Value::Tuples(_)) => found.clone(),
        (found, wanted) if found.doubles().len() == wanted.doubles().len() => {
            Value::Dense(settle(&found.doubles(), &wanted.doubles()).into())
        }
        _ => found.clone(),
    }
}

/// Where two values differ, in a line.
fn first_difference(found: &Value, wanted: &Value) -> Option<String> {
    let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
    match (found, wanted) {
        (Value::Tuples(a), Value::Tuples(b)) if a.tuples == b.tuples => {
            let at = a.values.iter().zip(&b.values).position(|(a, b)| !same(*a, *b))?;
            Some(format!("at {:?}: {} instead of {}", a.tuples[at], a.values[at], b.values[at]))
        }
        (Value::Tuples(a), Value::Tuples(b)) => {
            let more = a.tuples.iter().find(|tuple| !b.tuples.contains(tuple));
            let less = b.tuples.iter().find(|tuple| !a.tuples.contains(tuple));
            Some(format!(
                "{} tuples instead of {}: more {more:?}, missing {less:?}",
                a.tuples.len(),
                b.tuples.len()
            ))
        }
        (Value::Tuples(_), _) | (_, Value::Tuples(_)) => Some("of another kind".to_owned()),
        (a, b) => {
            let (a, b) = (a.doubles(), b.doubles());
            if a.len() != b.len() {
                return Some(format!("{} values instead of {}", a.len(), b.len()));
            }
            let differing: Vec<usize> = (0..a.len()).filter(|at| !same(a[*at], b[*at])).collect();
            let at = *differing.first()?;
            Some(format!("{} differ; at {at}: {} instead of {}", differing.len(), a[at], b[at]))
        }
    }
}

/// The same program with its numbers off by a little, each by another part of itself.
fn disturbed(program: &Program, seed: u64) -> Program {
    let mut program = program.clone();
    let mut stream = seeded::Family::named("numbers that are off").stream(seed);
    each_number(&mut program, &mut |x| *x *= 1.0 + OFF * (2.0 * stream.uniform() - 1.0));
    program
}

/// What is to be said of an answer that is not the one wanted.
fn judged(
    question: &Question<'_>,
    basis: Who,
    name: &str,
    (found, wanted): (&Result<Value, Refusal>, &Result<Value, Refusal>),
) -> Judged {
    let samples = (1..=SAMPLES).map(|seed| {
        let program = disturbed(question.program, seed);
        let again = Question { program: &program, goals: question.goals.clone(), ..*question };
        let said = again.ask(basis).0.into_iter().find(|(own, _)| own == name);
        said.and_then(|(_, answer)| match answer {
            Err(refusal) if is_interrupted(&refusal) => None,
            answer => Some(answer.map(|value| vec![value])),
        })
    });
    let samples: Vec<Result<Vec<Value>, Refusal>> = samples.flatten().collect();
    match (found, wanted) {
        (Ok(found), Ok(wanted)) => numbers(found, wanted, &samples, 0.0),
        (Err(refusal), Ok(_)) | (Ok(_), Err(refusal)) => {
            let refuse =
                |sample: &Result<_, Refusal>| sample.as_ref().is_err_and(|own| own.code == refusal.code);
            let some = samples.iter().filter(|sample| refuse(sample)).count();
            match some > 0 && some < samples.len() {
                true => Judged::Open("whether it is refused hangs on rounding"),
                false => Judged::Differs,
            }
        }
        _ => Judged::Differs,
    }
}

/// All that is to be said of a program.
pub(super) fn compared(task: Task, text: &str, observed: bool, patience: Duration, exact: bool) -> Outcome {
    let Ok(program) = analysed(text) else { return Outcome::Refused };
    let question = Question::new(task, &program, observed);
    let interpreter = Who::Interpreter(patience);
    let stored = STORAGES.map(|storage| (storage, question.ask(Who::Stored(storage))));
    let late = |(_, found): &(String, Result<Value, Refusal>)| found.as_ref().is_err_and(is_interrupted);
    for (storage, (said, _)) in &stored {
        if said.iter().any(late) {
            return Outcome::Hangs(format!("{storage:?}"));
        }
    }
    let (interpreted, _) = question.ask(interpreter);
    verdict(&question, &stored, (interpreter, interpreted), exact)
}

fn verdict(
    question: &Question<'_>,
    stored: &[Asked; 3],
    (interpreter, interpreted): (Who, Said),
    exact: bool,
) -> Outcome {
    let (mut rounding, mut room) = (None, None);
    let answer =
        |said: &Said, name: &str| said.iter().find(|(own, _)| own == name).map(|(_, found)| found.clone());
    let mut everyone: Vec<(Who, &Said)> = vec![(interpreter, &interpreted)];
    // The dense storage is the plainest of the three, and has no room first.
    for which in [Storage::Dense, Storage::Sparse, Storage::Auto] {
        let of = stored.iter().filter(|(storage, _)| *storage == which);
        everyone.extend(of.map(|(storage, (said, _))| (Who::Stored(*storage), said)));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in everyone.iter().flat_map(|(_, said)| said.iter().map(|(name, _)| name.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut counts = Counts::default();
    for name in names {
        let all = everyone.iter().filter_map(|(who, said)| Some((*who, answer(said, name)?)));
        let all: Vec<(Who, Result<Value, Refusal>)> = all.collect();
        let holds = |found: &Result<Value, Refusal>| !found.as_ref().is_err_and(for_room);
        let Some((basis, wanted)) = all.iter().find(|(_, found)| holds(found)).cloned() else { continue };
        let alive = |value: &Value| value.doubles().iter().any(|x| *x != 0.0 && x.is_finite());
        counts += Counts {
            answers: usize::from(wanted.is_ok()),
            interpreted: usize::from(wanted.is_ok() && basis == interpreter),
            alive: usize::from(wanted.as_ref().is_ok_and(alive)),
            supports: 0,
        };
        for (who, found) in &all {
            if !holds(found) {
                let answers =
                    |(who, found): &(Who, Result<Value, Refusal>)| *who != interpreter && holds(found);
                if *who == Who::Stored(Storage::Auto) {
                    let why = found.as_ref().err().map(|refusal| refusal.message.clone());
                    match all.iter().find(|one| answers(one)) {
                        Some((other, _)) => {
                            return Outcome::Work(format!("{name}: {why:?}, and {other:?} answers"));
                        }
                        None => room = Some(format!("{name}: {why:?}")),
                    }
                }
                continue;
            }
            let how = match (found, &wanted) {
                (Ok(found), Ok(wanted)) => {
                    let settled = settled(found, wanted, tolerance(question.task));
                    let Some(how) = first_difference(&settled, wanted) else { continue };
                    let large = |value: &Value| value.doubles().iter().any(|x| x.abs() >= WHOLE);
                    if (!exact || large(found) || large(wanted))
                        && judged(question, basis, name, (&Ok(settled), &Ok(wanted.clone())))
                            != Judged::Differs
                    {
                        rounding = Some(format!("{name}: {who:?}: {how}"));
                        continue;
                    }
                    how
                }
                (Err(found), Err(wanted)) if found.code == wanted.code && found.span == wanted.span => {
                    continue;
                }
                (found, wanted) => {
                    if !exact && judged(question, basis, name, (found, wanted)) != Judged::Differs {
                        rounding = Some(format!("{name}: {who:?}: {found:?}"));
                        continue;
                    }
                    let short = |said: &Result<Value, Refusal>| match said {
                        Ok(_) => "an answer".to_owned(),
                        Err(refusal) => format!("{:?}: {}", refusal.code, refusal.message),
                    };
                    format!("{} instead of {}", short(found), short(wanted))
                }
            };
            return Outcome::Differs(format!("{name}: {who:?}, and {basis:?}: {how}"));
        }
    }
    let work = stored.iter().filter(|(storage, _)| *storage == Storage::Auto);
    counts.supports = work.filter_map(|(_, (_, work))| *work).map(|work| work.supports).sum();
    if let Some(how) = too_much_work(question, stored) {
        return Outcome::Work(how);
    }
    if exact && let Some(how) = in_single(question, &interpreted) {
        return Outcome::Differs(how);
    }
    match (rounding, room) {
        (Some(how), _) => Outcome::Rounding(how),
        (None, Some(how)) => Outcome::Room(how),
        (None, None) => Outcome::Same(counts),
    }
}

/// Whether a storage that need not hold all looks at far more than another does, of those that answer all.
fn too_much_work(question: &Question<'_>, stored: &[Asked; 3]) -> Option<String> {
    let all = |said: &Said| said.iter().all(|(_, found)| found.is_ok());
    let work = |which: Storage| {
        let (_, (said, work)) = stored.iter().find(|(storage, _)| *storage == which)?;
        work.filter(|_| all(said)).map(|work| work.rows)
    };
    let sparse = work(Storage::Sparse);
    let least = [work(Storage::Dense), sparse].into_iter().flatten().min()?;
    let most = WORK.1 + WORK.0 * (least + question.elements());
    let too_much = |(who, own): (Storage, u64)| {
        (own > most)
            .then(|| format!("{who:?} looks at {own} elements and tuples, and another storage at {least}"))
    };
    let own = [work(Storage::Auto).map(|own| (Storage::Auto, own)), sparse.map(|own| (Storage::Sparse, own))];
    own.into_iter().flatten().find_map(too_much)
}

/// How 32 bits differ, where all numbers are integers: these have all digits if they are not large.
fn in_single(question: &Question<'_>, interpreted: &Said) -> Option<String> {
    let parameters = Parameters::new();
    let request = Request { program: question.program, parameters: &parameters, budget: BUDGET };
    let answers = question.goals.iter().zip(interpreted);
    let wanted = answers.filter(|(_, (_, found))| !found.as_ref().is_err_and(for_room));
    let wanted: Vec<_> =
        wanted.map(|(goal, (_, found))| (*goal, found.clone().map(|value| vec![value]))).collect();
    let mut known = Known::new();
    STORAGES.into_iter().find_map(|storage| {
        let mut fast = Fast::with_storage(storage).with_precision(Precision::Single);
        let mut engine = |program: &Program, goal| {
            fast.values(&Request { program, parameters: &parameters, budget: BUDGET }, &[goal])
        };
        // What has no room says nothing.
        let held: Vec<_> = wanted
            .iter()
            .filter(|(goal, _)| !engine(question.program, *goal).as_ref().is_err_and(for_room))
            .cloned()
            .collect();
        match single(&request, &held, &mut engine, &mut known) {
            Single::Differs(how) => {
                Some(format!("{storage:?}: {}", how.chars().take(300).collect::<String>()))
            }
            Single::Same | Single::Apart(_) => None,
        }
    })
}
