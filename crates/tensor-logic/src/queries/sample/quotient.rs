//! Estimates of conditional probabilities: quotients of two sums of which the same bindings are drawn.
//!
//! With w the contribution of a binding of `Z | e` and x what the same binding contributes where the targets have their
//! values too (0 where it then contributes nothing), `Z[q | e]` is Σx / Σw over all bindings. The estimate is the same
//! quotient over n bindings, r = Σx / Σw: as x and w come from the same draws, most of what varies cancels. Its bias is
//! of order 1/n. Its standard error is that of the first order of Taylor's series (the delta method): the deviation of
//! x - r w, whose mean is 0, over the mean of w and the root of n (Cochran, *Sampling Techniques*, 1977, section 6.4).

use std::collections::BTreeMap;

use super::{boxes, each, family, given, is_sum, listed, pick, too_many, total};
use crate::answer::Content;
use crate::ast::Span;
use crate::engine::{Engine, Request, Tuples};
use crate::error::{Code, Refusal, Result};
use crate::model::{self, Asked};
use crate::program::{ModelQuery, Program, Query, Range, TensorId};
use crate::reference::Evaluated;
use crate::value::{Const, Tuple};

/// The answer of a conditional query from `n` bindings, drawn uniformly with replacement from those that are present
/// under the evidence, and the standard error of each of its numbers, which one draw does not have.
///
/// # Errors
/// `not-a-model` where the goal is no sum of products, `zero-evidence` where what is drawn sums to 0, `too-large`, and
/// refusals of the evaluation.
pub fn conditional(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    query: &Query,
    model: &ModelQuery,
    (n, seed, place): (u64, u64, Span),
) -> Result<(Content, Option<Vec<f64>>)> {
    let goal = query.tensor;
    is_sum(request.program, goal, place)?;
    let asked = Asked::of(request, query, model)?;
    let evident = model::restricted(request.program, goal, &model::given(model));
    let request = Request { program: &evident, ..request.clone() };
    let names: Vec<&str> = model.targets.iter().map(|(name, ..)| name.as_str()).collect();
    let drawn = Drawn { request, goal, asked, family: family(seed), n, place };
    let (all, parts) = match model::read_off(&evident, goal, &names) {
        Some(places) if given(&evident, goal).is_empty() => drawn.read_off(engine, model, &places)?,
        _ => drawn.under_each(engine)?,
    };
    if all.sum == 0.0 {
        let message = format!("what {n} draws find sums to 0, and nothing can be conditioned on it");
        let help = "the evidence has probability 0, or is too rare for so few draws";
        return Err(Refusal::new(Code::ZeroEvidence, query.span, message).help(help));
    }
    let (values, errors) = parts.iter().map(|part| part.over(&all, n)).unzip();
    Ok((drawn.asked.content(values), (n > 1).then_some(errors)))
}

/// Sums over draws of x, of x² and of x·w.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    sum: f64,
    squares: f64,
    products: f64,
}

impl Sums {
    fn add(&mut self, x: f64, w: f64) {
        self.sum += x;
        self.squares += x * x;
        self.products += x * w;
    }

    /// The quotient by the sums of w, and its standard error.
    fn over(&self, all: &Sums, n: u64) -> (f64, f64) {
        let quotient = self.sum / all.sum;
        // Σ(x - r w)², which rounding may take below 0.
        let squares = self.squares - 2.0 * quotient * self.products + quotient * quotient * all.squares;
        let (n, degrees) = (n as f64, n.saturating_sub(1).max(1) as f64);
        (quotient, (squares.max(0.0) * n / degrees).sqrt() / all.sum.abs())
    }
}

/// What weights are divided by, so that their squares are numbers: the size of the first that is not 0.
#[derive(Debug, Clone, Copy, Default)]
struct Unit(Option<f64>);

impl Unit {
    fn of(&mut self, weight: f64) -> f64 {
        if self.0.is_none() && weight != 0.0 && weight.is_finite() {
            self.0 = Some(weight.abs());
        }
        weight / self.0.unwrap_or(1.0)
    }
}

/// Draws from the bindings of a goal under the evidence, which the request's program has.
struct Drawn<'a> {
    request: Request<'a>,
    goal: TensorId,
    asked: Asked<'a>,
    family: seeded::Family,
    n: u64,
    place: Span,
}

impl Drawn<'_> {
    /// Where a binding tells the values of the targets: x is w or 0.
    fn read_off(
        &self,
        engine: &mut dyn Engine,
        model: &ModelQuery,
        places: &[Vec<usize>],
    ) -> Result<(Sums, Vec<Sums>)> {
        let mut all = Sums::default();
        let mut parts = vec![Sums::default(); self.asked.count];
        let mut unit = Unit::default();
        // The assignment that a binding belongs to.
        let assignment = |term: usize, values: &[Const]| {
            let mut open = self.asked.open.iter();
            let mut at = 0;
            for ((_, fixed, _), place) in model.targets.iter().zip(places.get(term)?) {
                let value = *values.get(*place)?;
                match fixed {
                    Some(fixed) if *fixed != value => return None,
                    Some(_) => {}
                    None => {
                        let (_, domain) = open.next()?;
                        at = at * domain.len() + domain.ordinal(value)?;
                    }
                }
            }
            Some(at)
        };
        let mut add = |weight: f64, term: usize, values: &[Const]| {
            let weight = unit.of(weight);
            all.add(weight, weight);
            if let Some(part) = assignment(term, values).and_then(|at| parts.get_mut(at)) {
                part.add(weight, weight);
            }
        };
        if let Some(boxes) = too_many(&self.request, self.goal) {
            let evaluated = Evaluated::below(&self.request, engine, self.goal)?;
            let mut values: Vec<Const> = Vec::new();
            each(self.n, (&engine.stop(), self.place), |at| {
                let number = self.family.stream(at).below_u128(total(&boxes));
                if let Ok((nth, term)) = pick(self.request.program, &boxes, number, &mut values) {
                    add(evaluated.contribution(term, &values).unwrap_or(0.0), nth, &values);
                }
            })?;
        } else {
            let terms = listed(engine, &self.request, self.goal)?;
            let bindings: Vec<(usize, &Tuple, f64)> = (0..)
                .zip(&terms)
                .flat_map(|(nth, part)| {
                    part.tuples.iter().zip(&part.values).map(move |(tuple, value)| (nth, tuple, *value))
                })
                .collect();
            let draws = if bindings.is_empty() { 0 } else { self.n };
            each(draws, (&engine.stop(), self.place), |at| {
                let number = self.family.stream(at).below(bindings.len() as u64);
                if let Some((nth, tuple, value)) = bindings.get(number as usize) {
                    add(*value, *nth, tuple);
                }
            })?;
        }
        Ok((all, parts))
    }

    /// Elsewhere: the program is evaluated under each assignment of values to the targets, and x is what the binding
    /// contributes there.
    fn under_each(&self, engine: &mut dyn Engine) -> Result<(Sums, Vec<Sums>)> {
        if self.n.saturating_mul(8) > self.request.budget.bytes {
            let message = format!("{} draws do not fit in memory", self.n);
            return Err(Refusal::new(Code::TooLarge, self.place, message));
        }
        match too_many(&self.request, self.goal) {
            Some(_) => self.by_boxes(engine),
            None => self.by_list(engine),
        }
    }

    /// The program under an assignment; `None` where there cannot be any.
    fn under(&self, assignment: usize) -> Option<Program> {
        let values = self.asked.assignment(assignment)?;
        Some(model::restricted(self.request.program, self.goal, &values))
    }

    fn by_boxes(&self, engine: &mut dyn Engine) -> Result<(Sums, Vec<Sums>)> {
        let program = self.request.program;
        let boxes = boxes(program, self.goal).unwrap_or_default();
        let given = given(program, self.goal);
        let bindings = total(&boxes).saturating_add(given.len() as u128);
        // What the draws contribute; 0 where a value is not in its index's range.
        let contributions = |engine: &mut dyn Engine, program: &Program| -> Result<Vec<f64>> {
            let request = Request { program, ..self.request.clone() };
            let evaluated = Evaluated::below(&request, engine, self.goal)?;
            let own: Vec<_> = program.equations.iter().filter(|e| e.tensor == self.goal).collect();
            let terms: Vec<_> = own.iter().flat_map(|equation| &equation.terms).collect();
            let mut values: Vec<Const> = Vec::new();
            let mut of = |at: u64| {
                let number = self.family.stream(at).below_u128(bindings);
                let nth = match pick(self.request.program, &boxes, number, &mut values) {
                    Ok((nth, _)) => nth,
                    Err(beyond) => return given.get(beyond as usize).copied(),
                };
                let term = terms.get(nth)?;
                let inside = term.over.iter().zip(&values).all(|(index, value)| {
                    matches!(&program.index(*index).range, Range::Domain(domain) if domain.contains(*value))
                });
                if inside { evaluated.contribution(term, &values) } else { None }
            };
            let mut found = Vec::with_capacity(self.n as usize);
            each(self.n, (&engine.stop(), self.place), |at| found.push(of(at).unwrap_or(0.0)))?;
            Ok(found)
        };
        let mut unit = Unit::default();
        let weights: Vec<f64> =
            contributions(engine, program)?.into_iter().map(|weight| unit.of(weight)).collect();
        let mut all = Sums::default();
        weights.iter().for_each(|weight| all.add(*weight, *weight));
        let mut parts = Vec::with_capacity(self.asked.count);
        for at in 0..self.asked.count {
            let mut part = Sums::default();
            if let Some(program) = self.under(at) {
                let found = contributions(engine, &program)?;
                found.iter().zip(&weights).for_each(|(x, weight)| part.add(unit.of(*x), *weight));
            }
            parts.push(part);
        }
        Ok((all, parts))
    }

    fn by_list(&self, engine: &mut dyn Engine) -> Result<(Sums, Vec<Sums>)> {
        let mut known: BTreeMap<(usize, Tuple, usize), usize> = BTreeMap::new();
        // Bindings that are present under some assignment only are drawn too: they weigh 0.
        let mut positions = |terms: Vec<Tuples>| {
            let mut found: Vec<(usize, f64)> = Vec::new();
            for (nth, part) in terms.into_iter().enumerate() {
                let mut last: Option<(Tuple, usize)> = None;
                for (tuple, value) in part.tuples.into_iter().zip(part.values) {
                    // Given numbers are alike but for their order.
                    let again = match &last {
                        Some((before, again)) if *before == tuple => again + 1,
                        _ => 0,
                    };
                    last = Some((tuple.clone(), again));
                    let next = known.len();
                    found.push((*known.entry((nth, tuple, again)).or_insert(next), value));
                }
            }
            found
        };
        let weights = positions(listed(engine, &self.request, self.goal)?);
        let mut under = Vec::with_capacity(self.asked.count);
        for at in 0..self.asked.count {
            under.push(match self.under(at) {
                Some(program) => {
                    let request = Request { program: &program, ..self.request.clone() };
                    positions(listed(engine, &request, self.goal)?)
                }
                None => Vec::new(),
            });
        }
        let bindings = known.len();
        let spread = |found: &[(usize, f64)]| {
            let mut values = vec![0.0; bindings];
            for (at, value) in found {
                if let Some(slot) = values.get_mut(*at) {
                    *slot = *value;
                }
            }
            values
        };
        let mut times = vec![0_u64; bindings];
        let draws = if bindings == 0 { 0 } else { self.n };
        each(draws, (&engine.stop(), self.place), |at| {
            let number = self.family.stream(at).below(bindings as u64) as usize;
            if let Some(count) = times.get_mut(number) {
                *count += 1;
            }
        })?;
        let mut unit = Unit::default();
        let weights: Vec<f64> = spread(&weights).into_iter().map(|weight| unit.of(weight)).collect();
        let of = |values: &[f64]| {
            let mut sums = Sums::default();
            for ((x, weight), times) in
                values.iter().zip(&weights).zip(&times).filter(|(_, times)| **times > 0)
            {
                let times = *times as f64;
                sums.sum += times * x;
                sums.squares += times * x * x;
                sums.products += times * x * weight;
            }
            sums
        };
        let all = of(&weights);
        let parts = under.iter().map(|found| {
            let values: Vec<f64> = spread(found).into_iter().map(|x| x / unit.0.unwrap_or(1.0)).collect();
            of(&values)
        });
        Ok((all, parts.collect()))
    }
}
