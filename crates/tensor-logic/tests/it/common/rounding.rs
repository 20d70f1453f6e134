//! What hangs on rounding is told from what differs, element by element: by the reference in random arithmetic.
//!
//! Every operation that rounds is off there by some units of the precision in use ([`Reference::disturbed`]), in each of
//! several evaluations by others. What an engine says of an element may be as far from the exact value as these evaluations
//! scatter, and no further; a tuple may be missing or more where it is in some of them only; and it may refuse where one of
//! them does. What the reference refuses it may answer, if no number in place of what is refused makes another answer. What
//! exact numbers decide does not scatter, and neither does what is far from a decision.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tensor_logic::engine::{Engine, Request, Stop, Tuples, Value, is_interrupted};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::program::{Component, Facts, Given, Program, Role, Style, TensorId};
use tensor_logic::reference::{Kept, Reference};
use tensor_logic::value::{Domain, Tuple, element};

use super::engines::value_difference;
use super::single::each_number;

/// How often. One that goes either way is seen to go both but for one in some hundred.
const TIMES: u64 = 32;
/// So many times the scatter: operations are off by parts of what they may be off by.
const SCATTER: f64 = 2.0;
/// What scatters by more than this part of a number is decided by rounding.
const ILL: f64 = 1e-2;
/// Rounds that do not rest in so many do not.
const ROUNDS: u64 = 1000;
/// All evaluations together take no longer.
const LONGEST: Duration = Duration::from_secs(4);

/// Rounds that change nothing by more are at their limit.
const LIMIT: f64 = 1e-15;
/// The factor of [`Scattered::with_more_rounds`].
const MORE: u64 = 1000;

/// A timer: as long as it lives, for [`LONGEST`].
struct Late {
    passed: Arc<AtomicBool>,
    _ended: mpsc::Sender<()>,
}

impl Late {
    fn new() -> Late {
        let (passed, (_ended, end)) = (Arc::new(AtomicBool::new(false)), mpsc::channel::<()>());
        let timer = Arc::clone(&passed);
        std::thread::spawn(move || {
            if end.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
                timer.store(true, Ordering::Relaxed);
            }
        });
        Late { passed, _ended }
    }

    /// What stops when the time has passed.
    fn stop(&self) -> Stop {
        Stop::when(Arc::clone(&self.passed))
    }
}

/// What is said of one tensor.
pub(crate) type Answer = Result<Vec<Value>, Refusal>;

/// How an answer stands to the exact one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judged {
    /// As near as numbers of that precision are.
    Near,
    /// Nothing can be said, and why.
    Open(&'static str),
    Differs,
}

impl Judged {
    /// The worse of two.
    fn and(self, other: Judged) -> Judged {
        match (self, other) {
            (Judged::Differs, _) | (_, Judged::Differs) => Judged::Differs,
            (Judged::Near, other) => other,
            (open, _) => open,
        }
    }
}

/// What the reference says of a tensor in random arithmetic.
pub(crate) struct Scattered<'a> {
    request: Request<'a>,
    goal: TensorId,
    /// Several times.
    pub(crate) samples: Vec<Answer>,
}

impl<'a> Scattered<'a> {
    pub(crate) fn new(request: Request<'a>, goal: TensorId, kept: Kept) -> Scattered<'a> {
        let mut program = request.program.clone();
        program.settings.rounds = program.settings.rounds.min(ROUNDS);
        // Where rounds rest is as far from the limit as the tolerance says, and where a solution stands is not.
        let mut at_limit = program.clone();
        at_limit.settings.tolerance = program.settings.tolerance.min(LIMIT);
        // It is the engines that must end: loops over all there is take as long as they take, and this many times.
        let late = Late::new();
        let sample = |seed: u64| {
            let program = if seed.is_multiple_of(2) { &at_limit } else { &program };
            let within = Request { program, ..request.clone() };
            Reference::stopping(late.stop()).disturbed(&within, &[goal], kept, seed)
        };
        let samples = (1..=TIMES).map(sample).collect();
        Scattered { request, goal, samples }
    }

    /// Whether there was no time for it.
    fn is_late(&self) -> bool {
        self.samples.iter().any(|sample| sample.as_ref().is_err_and(is_interrupted))
    }

    /// What the reference says in more rounds than the program asks for; nothing if that takes too long.
    fn with_more_rounds(&self) -> Option<Answer> {
        let mut program = self.request.program.clone();
        program.settings.rounds = program.settings.rounds.saturating_mul(MORE);
        let late = Late::new();
        let request = Request { program: &program, ..self.request };
        let answer = Reference::stopping(late.stop()).values(&request, &[self.goal]);
        (!answer.as_ref().is_err_and(is_interrupted)).then_some(answer)
    }

    /// The tuples of a component's relations, if these come to rest where numbers have other signs or are smaller: a closure that
    /// falls or grows without end has the tuples of one that does not.
    fn tuples(&self, component: &Component) -> BTreeMap<TensorId, Vec<Tuple>> {
        let mut largest = 0.0;
        each_number(&mut self.request.program.clone(), &mut |x| largest = x.abs().max(largest));
        let small = 0.5 / f64::max(largest, 0.5);
        let known = [1.0, -1.0, small, -small].into_iter().find_map(|by| {
            let mut program = self.request.program.clone();
            each_number(&mut program, &mut |x| *x = by * x.abs());
            program.settings.rounds = program.settings.rounds.min(ROUNDS);
            let request = Request { program: &program, ..self.request };
            Reference::default().values(&request, &component.tensors).ok()
        });
        let values = component.tensors.iter().copied().zip(known.into_iter().flatten());
        let tuples = values.filter_map(|(id, value)| match value {
            Value::Tuples(tuples) => Some((id, tuples.tuples)),
            _ => None,
        });
        tuples.collect()
    }

    /// Whether the reference refuses what an engine refuses, where that is asked for.
    fn refuses(&self, refusal: &Refusal) -> bool {
        let of = self.request.program.equations.iter().filter(|equation| equation.head_span == refusal.span);
        let own = |tensor| Reference::default().values(&self.request, &[tensor]);
        of.into_iter().any(|equation| own(equation.tensor).is_err_and(|own| is_same(&own, refusal)))
    }

    /// Whether a tensor that the reference refuses is not needed: whatever numbers stand in its place, the answer is this one.
    fn needs_not(&self, refusal: &Refusal, found: &[Value]) -> bool {
        self.in_place_of(refusal).is_some_and(|mut answers| {
            answers.all(|again| again.is_ok_and(|again| value_difference(&found[0], &again[0]).is_none()))
        })
    }

    /// Whether something else is refused where numbers stand in place of a tensor that the reference refuses.
    fn refuses_behind(&self, refusal: &Refusal, found: &Refusal) -> bool {
        self.in_place_of(refusal)
            .is_some_and(|mut answers| answers.any(|again| again.is_err_and(|own| is_same(&own, found))))
    }

    /// The answers where numbers, drawn several times, stand in place of a tensor that the reference refuses.
    fn in_place_of(&self, refusal: &Refusal) -> Option<impl Iterator<Item = Answer>> {
        let program = self.request.program;
        let of = program.equations.iter().find(|equation| equation.head_span == refusal.span);
        let component =
            of.and_then(|of| program.components.iter().find(|own| own.tensors.contains(&of.tensor)));
        let component = component?;
        // Of a relation the places must say which tuples there may be.
        let known = |id: &TensorId| {
            let tensor = program.tensor(*id);
            tensor.style == Style::Square || tensor.places.iter().all(|place| place.domain.is_some())
        };
        if !component.tensors.iter().all(known) {
            return None;
        }
        let tuples = self.tuples(component);
        Some((1..=TIMES).map(move |seed| {
            let program = with_numbers(program, component, &tuples, seed);
            let request = Request { program: &program, ..self.request };
            Reference::default().values(&request, &[self.goal])
        }))
    }
}

/// The program where some numbers stand in place of what a component computes, for these tuples where they are known.
fn with_numbers(
    program: &Program,
    component: &Component,
    tuples: &BTreeMap<TensorId, Vec<Tuple>>,
    seed: u64,
) -> Program {
    let mut stream = seeded::Family::named("numbers in place").stream(seed);
    let mut program = program.clone();
    for id in &component.tensors {
        let tensor = &mut program.tensors[id.0 as usize];
        let domains: Vec<Domain> = tensor.places.iter().filter_map(|place| place.domain.clone()).collect();
        let shape: Vec<usize> = domains.iter().map(Domain::len).collect();
        let count = shape.iter().product::<usize>();
        let span = tensor.span;
        let mut number = || 8.0 * stream.uniform() - 4.0;
        tensor.role = Role::Data;
        tensor.given = vec![match tensor.style {
            Style::Square => {
                let values: Vec<f64> = (0..count).map(|_| number()).collect();
                Given::Array { fixed: vec![None; shape.len()], shape, values: values.into(), span }
            }
            Style::Round => {
                let mut facts = Facts { arity: shape.len(), ..Facts::default() };
                let some = (0..count).filter(|at| !(*at as u64 + seed).is_multiple_of(3));
                let some = || some.map(|at| element(&domains, at)).collect();
                for tuple in tuples.get(id).cloned().unwrap_or_else(some) {
                    facts.push(&tuple, number(), Some(span));
                }
                Given::Facts(Arc::new(facts))
            }
        }];
    }
    let own = |id: &TensorId| component.tensors.contains(id);
    program.components.retain(|other| !other.tensors.iter().any(own));
    program
}

/// Whether two refusals are the same one.
fn is_same(a: &Refusal, b: &Refusal) -> bool {
    a.code == b.code && a.span == b.span
}

const REFUSED: Judged = Judged::Open("whether it is refused hangs on rounding");

/// What is to be said of an answer, where the exact one is this, and what is known of it in random arithmetic. Numbers that differ
/// by less than `near`, as parts of the larger one or of 1, are the same.
pub(crate) fn judged(
    found: &Answer,
    wanted: &Answer,
    scattered: Option<&Scattered<'_>>,
    near: f64,
) -> Judged {
    let samples = scattered.map_or(&[][..], |scattered| &scattered.samples);
    if scattered.is_some_and(Scattered::is_late) {
        return Judged::Open("random arithmetic takes too long");
    }
    let (found, wanted) = match (found, wanted) {
        (Err(found), Err(wanted)) if is_same(found, wanted) => return Judged::Near,
        // Of several that do not come to rest, any may be named.
        (Err(found), Err(wanted))
            if [found.code, wanted.code] == [Code::Divergence; 2]
                && scattered.is_some_and(|scattered| {
                    scattered.refuses(found) || scattered.refuses_behind(wanted, found)
                }) =>
        {
            return Judged::Near;
        }
        (Ok(found), Ok(wanted)) => (&found[0], &wanted[0]),
        (Err(found), _) => {
            let refused = samples.iter().any(|sample| sample.as_ref().is_err_and(|own| is_same(own, found)));
            return if refused { REFUSED } else { Judged::Differs };
        }
        (Ok(found), Err(wanted)) => {
            let needless = |scattered: &Scattered<'_>| scattered.needs_not(wanted, found);
            return match scattered {
                _ if samples.iter().any(Result::is_ok) => REFUSED,
                Some(own) if wanted.code == Code::Divergence && needless(own) => Judged::Near,
                // An engine that solves what comes to rest needs no rounds.
                Some(own) if wanted.code == Code::Divergence => match own.with_more_rounds() {
                    Some(Ok(more)) => numbers(&found[0], &more[0], samples, near),
                    Some(Err(_)) => Judged::Differs,
                    None => Judged::Open("the reference needs more rounds than there is time for"),
                },
                _ => Judged::Differs,
            };
        }
    };
    numbers(found, wanted, samples, near)
}

/// The same of numbers.
pub(crate) fn numbers(found: &Value, wanted: &Value, samples: &[Answer], near: f64) -> Judged {
    let values: Vec<&Value> = samples.iter().filter_map(|sample| Some(&sample.as_ref().ok()?[0])).collect();
    let elements = match (found, wanted) {
        (Value::Tuples(found), Value::Tuples(wanted)) => of_tuples(found, wanted, &values, near),
        (Value::Tuples(_), _) | (_, Value::Tuples(_)) => return Judged::Differs,
        (found, wanted) => {
            let (found, wanted) = (found.doubles(), wanted.doubles());
            if found.len() != wanted.len() {
                return Judged::Differs;
            }
            let values: Vec<_> = values.iter().map(|value| value.doubles()).collect();
            let element = |at: usize| {
                let own: Vec<f64> = values.iter().filter_map(|values| values.get(at).copied()).collect();
                number(found[at], wanted[at], &own, near)
            };
            (0..found.len()).map(element).fold(Judged::Near, Judged::and)
        }
    };
    match elements {
        // Which of the samples would have been this one is not known.
        Judged::Differs if values.len() < samples.len() => REFUSED,
        judged => judged,
    }
}

fn of_tuples(found: &Tuples, wanted: &Tuples, samples: &[&Value], near: f64) -> Judged {
    let by_tuple = |tuples: &Tuples| -> BTreeMap<Tuple, f64> {
        tuples.tuples.iter().cloned().zip(tuples.values.iter().copied()).collect()
    };
    let (found, wanted) = (by_tuple(found), by_tuple(wanted));
    let samples: Vec<BTreeMap<Tuple, f64>> = samples
        .iter()
        .filter_map(|sample| match sample {
            Value::Tuples(tuples) => Some(by_tuple(tuples)),
            _ => None,
        })
        .collect();
    let mut all: Vec<&Tuple> = found.keys().chain(wanted.keys()).collect();
    all.sort();
    all.dedup();
    let element = |tuple: &Tuple| {
        let own: Vec<f64> = samples.iter().filter_map(|sample| sample.get(tuple).copied()).collect();
        let open = Judged::Open("whether a tuple is there hangs on rounding");
        match (found.get(tuple), wanted.get(tuple)) {
            (Some(found), Some(wanted)) => number(*found, *wanted, &own, near),
            (None, _) if own.len() < samples.len() => open,
            // What 32 bits hold as 0 only has no tuple there.
            (None, Some(wanted))
                if near > f64::from(f32::EPSILON) && wanted.abs() < f64::from(f32::from_bits(1)) =>
            {
                Judged::Near
            }
            (Some(found), None) => match own.split_first() {
                Some((first, rest)) => open.and(number(*found, *first, rest, near)),
                None => Judged::Differs,
            },
            _ => Judged::Differs,
        }
    };
    all.into_iter().map(element).fold(Judged::Near, Judged::and)
}

fn number(found: f64, wanted: f64, samples: &[f64], near: f64) -> Judged {
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    let gap = (found - wanted).abs();
    if same(found, wanted) || gap <= near * found.abs().max(wanted.abs()).max(1.0) {
        return Judged::Near;
    }
    let scatter =
        samples.iter().map(|sample| if same(*sample, wanted) { 0.0 } else { (sample - wanted).abs() });
    let scatter =
        scatter.fold(0.0, |most: f64, gap| if gap.is_nan() { f64::INFINITY } else { most.max(gap) });
    // Of a product of numbers of which no digit is right, the exponents scatter.
    let size = |x: f64| x.abs().ln();
    let sizes = samples.iter().map(|sample| (size(*sample) - size(wanted)).abs());
    let sizes = sizes.filter(|gap| gap.is_finite()).fold(0.0, f64::max);
    let other_sign = samples.iter().any(|sample| *sample * wanted < 0.0);
    let of_other_size = sizes > std::f64::consts::LN_2
        && (size(found) - size(wanted)).abs() <= SCATTER * sizes
        && (found * wanted > 0.0 || other_sign);
    match (scatter.is_finite(), gap <= SCATTER * scatter || of_other_size) {
        (false, _) => Judged::Open("a number that is none, or too large, hangs on rounding"),
        (true, true) if scatter <= ILL * wanted.abs().max(1.0) => Judged::Near,
        (true, true) => Judged::Open("a step or a difference hangs on rounding"),
        (true, false) => Judged::Differs,
    }
}
