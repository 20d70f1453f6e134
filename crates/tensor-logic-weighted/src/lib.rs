//! Weighted facts, and what follows from them: probabilities of proofs.
//!
//! Enter at [`Weighted::evaluate`]. What the language says of such relations stands in [`tensor_logic_core::weighted`]. The rules
//! are grounded by relations without weights, which the engine derives like all others (`ground`); ground rules become
//! circuits (`circuits`), compiled once and run as often as weights change. In the program that the rest is evaluated on,
//! a relation `R` with probabilities is `R(x) += T(x, n) V[n]`: the tuples that it has, which are data, times
//! their values, which are handed over like those of a parameter.
//!
//! Where relations with probabilities read values that come from others, they are evaluated level by level. The adjoints
//! of weights ([`Combine::Slopes`]) come from the circuits too.

mod circuits;
mod explained;
mod ground;
mod linear;
mod rules;
mod wanted;

pub mod semirings;

pub use explained::{Probable, explained};
pub use wanted::{Asked, Wanted, asked};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tensor_logic_core::{ast, engine, error, profile, program, rename, start, value};

use crate::ast::{Program as Tree, Span};
use crate::engine::{Parameters, Request, Stop, Tuples, Value};
use crate::error::Result;
use crate::profile::{Component as Done, Executor, Layout, Part, Stored, label, written};
use crate::program::{
    Argument, Combine, Equation, Expr, Facts, Given, Index, IndexFn, IndexId, Kind, Otherwise, Place,
    Program, Range, Read, Role, Stamp, Start, Style, Tensor, TensorId, Term, When,
};
use crate::value::{Const, Domain};
use circuits::{Compiled, Found};
use ground::{Grounding, ground, proved_below};
use linear::linear;
use rules::Context;
use tensor_logic_core::recursion;
use tensor_logic_core::weighted::factors;

/// What the values of other programs are asked of.
pub type Ask<'a> = &'a mut dyn FnMut(&Request<'_>, &[TensorId]) -> Result<Vec<Value>>;

/// So many programs' circuits are remembered.
const PLANS: usize = 8;

/// The circuits of programs, those used last first.
#[derive(Default)]
pub struct Weighted {
    plans: Vec<Plan>,
}

/// What is done for some goals of a program.
struct Plan {
    stamp: u64,
    asked: Asked,
    levels: Vec<Level>,
    /// Whether somebody will ask where ground rules come from.
    explained: bool,
    /// The program whose rules are ground, if it is another (`linear`).
    program: Option<Program>,
}

/// Relations that need only values of lower levels.
struct Level {
    relations: Asked,
    slopes: BTreeSet<TensorId>,
    grounding: Grounding,
    compiled: Option<Compiled>,
    /// What came of it last.
    found: Option<Arc<Found>>,
    after: Option<After>,
}

/// The program in which a level's relations stand as values.
struct After {
    program: Arc<Program>,
    /// The tuples that relations have in it.
    tuples: BTreeMap<TensorId, Tuples>,
    /// What the values are handed over as.
    handed: BTreeMap<TensorId, TensorId>,
}

/// What came of the goals.
pub struct Evaluated {
    /// The values of the relations and slopes.
    pub values: BTreeMap<TensorId, Value>,
    /// The program for the rest.
    pub program: Arc<Program>,
    /// Its parameters.
    pub parameters: Parameters,
    /// How many tuples of computed relations stand in ground rules, by name.
    pub counts: BTreeMap<String, u64>,
    /// What was done.
    pub done: Vec<Done>,
}

/// Whether a tensor is evaluated here.
fn is_own(program: &Program, id: TensorId) -> bool {
    matches!(program.tensor(id).combine, Combine::Proofs | Combine::Slopes)
}

/// The tensors whose values the rules of relations with probabilities read, but for what is evaluated here.
pub fn inputs(program: &Program, asked: &Asked) -> BTreeSet<TensorId> {
    let below = proved_below(program, asked.keys());
    let rules = program.equations.iter().filter(|equation| below.contains(&equation.tensor));
    rules.flat_map(|equation| values_of(program, equation)).filter(|id| !is_own(program, *id)).collect()
}

/// The tensors whose values an equation reads.
fn values_of(program: &Program, equation: &Equation) -> Vec<TensorId> {
    let mut values = Vec::new();
    visit_values(program, equation, &mut |read| values.push(read.tensor));
    values
}

/// Where an equation reads values: of rules with probabilities, only those in guards and tags.
fn visit_values<'e>(program: &Program, equation: &'e Equation, visit: &mut impl FnMut(&'e Read)) {
    let proved = program.tensor(equation.tensor).is_proved();
    for term in &equation.terms {
        term.when.visit_reads(&mut |read, _| visit(read));
        if proved {
            let tags = factors(term).into_iter().map(|(read, _)| read);
            tags.filter(|read| !program.tensor(read.tensor).is_proved()).for_each(&mut *visit);
        } else {
            term.body.visit_reads(&mut |read, _| visit(read));
        }
    }
}

/// How many evaluations of relations with probabilities lie below each tensor.
fn levels(program: &Program) -> Vec<usize> {
    let mut levels = vec![0; program.tensors.len()];
    for component in &program.components {
        let mut level = 0;
        for equation in component.equations.iter().map(|id| program.equation(*id)) {
            for id in values_of(program, equation) {
                if !component.tensors.contains(&id) {
                    level = level.max(levels[id.0 as usize] + usize::from(is_own(program, id)));
                }
            }
            if program.tensor(equation.tensor).is_proved() {
                for (read, _) in equation.terms.iter().flat_map(factors) {
                    level = level.max(levels[read.tensor.0 as usize]);
                }
            }
        }
        component.tensors.iter().for_each(|id| levels[id.0 as usize] = level);
    }
    levels
}

impl Weighted {
    /// Forgets all circuits.
    pub fn forget(&mut self) {
        self.plans.clear();
    }

    /// The values of `asked`, and a program in which they stand as values; `ask` evaluates programs without them.
    ///
    /// # Errors
    /// `bad-probability`, `budget`, and what `ask` refuses.
    pub fn evaluate(
        &mut self,
        request: &Request<'_>,
        asked: Asked,
        stop: &Stop,
        ask: Ask<'_>,
    ) -> Result<Evaluated> {
        let stamp = request.program.stamp.number();
        let known = self.plans.iter().position(|plan| plan.stamp == stamp && plan.asked == asked);
        let mut plan = match known {
            Some(at) => self.plans.remove(at),
            None => {
                let program = linear(request.program);
                Plan { stamp, asked, levels: Vec::new(), explained: false, program }
            }
        };
        let evaluated = plan.evaluate(request, stop, ask);
        self.plans.truncate(PLANS - 1);
        self.plans.insert(0, plan);
        evaluated
    }
}

impl Plan {
    fn evaluate(&mut self, request: &Request<'_>, stop: &Stop, ask: Ask<'_>) -> Result<Evaluated> {
        let original = self.program.as_ref().unwrap_or(request.program);
        let of = levels(original);
        let depth = self.asked.keys().map(|id| of[id.0 as usize] + 1).max().unwrap_or(0);
        let mut evaluated = Evaluated {
            values: BTreeMap::new(),
            program: Arc::new(Program::default()),
            parameters: request.parameters.clone(),
            counts: BTreeMap::new(),
            done: Vec::new(),
        };
        let mut found: BTreeMap<TensorId, (usize, Arc<Found>)> = BTreeMap::new();
        for at in 0..depth {
            if self.levels.len() <= at {
                let base = match at {
                    0 => original,
                    _ => &*evaluated.program,
                };
                let own = self.asked.iter().filter(|(id, _)| of[id.0 as usize] == at);
                let proved = |(id, _): &(&TensorId, &Wanted)| original.tensor(**id).is_proved();
                let (relations, slopes): (Vec<_>, Vec<_>) = own.partition(proved);
                let relations = relations.into_iter().map(|(id, wanted)| (*id, wanted.clone())).collect();
                let slopes = slopes.into_iter().map(|(id, _)| *id).collect();
                let grounding = ground(original, base, &relations);
                self.levels.push(Level {
                    relations,
                    slopes,
                    grounding,
                    compiled: None,
                    found: None,
                    after: None,
                });
            }
            let (before, rest) = self.levels.split_at_mut(at);
            let Some(level) = rest.first_mut() else { break };
            let parameters = evaluated.parameters.clone();
            let (budget, explained) = (request.budget, self.explained);
            let context = Context { program: original, parameters: &parameters, budget, stop, explained };
            let changed = level.evaluate(&context, before, &mut found, &mut evaluated, at, ask)?;
            if changed {
                self.levels.truncate(at + 1);
            }
        }
        Ok(evaluated)
    }
}

impl Level {
    /// Evaluates a level; whether the programs of the levels behind it are others now.
    fn evaluate(
        &mut self,
        context: &Context<'_>,
        before: &[Level],
        found: &mut BTreeMap<TensorId, (usize, Arc<Found>)>,
        evaluated: &mut Evaluated,
        at: usize,
        ask: Ask<'_>,
    ) -> Result<bool> {
        let grounding = &self.grounding;
        let mut goals: Vec<TensorId> = grounding.needed.values().copied().collect();
        goals.extend(grounding.bindings.iter().map(|bindings| bindings.tuples));
        goals.extend(&grounding.tagged);
        let ground = goals.len();
        let adjoints: Vec<(TensorId, TensorId, TensorId)> =
            self.slopes.iter().flat_map(|id| through(context.program, *id)).collect();
        goals.extend(adjoints.iter().map(|(_, _, adjoint)| *adjoint));
        let inner =
            Request { program: &grounding.program, parameters: context.parameters, budget: context.budget };
        let values = if goals.is_empty() { Vec::new() } else { ask(&inner, &goals)? };
        let (values, owed) = values.split_at(ground.min(values.len()));
        let mut now: BTreeMap<TensorId, Value> = BTreeMap::new();
        if !self.relations.is_empty() {
            let since = Instant::now();
            let compiled = match self.compiled.take().filter(|compiled| compiled.holds(grounding, values)) {
                Some(compiled) => compiled,
                None => Compiled::new(context, grounding, &self.relations, values),
            };
            let compiled = self.compiled.insert(compiled);
            let (_, tagged) = values.split_at(values.len() - grounding.tagged.len().min(values.len()));
            let tagged = grounding.tagged.iter().copied().zip(tagged).collect();
            let probabilities = Arc::new(compiled.evaluate(context, &tagged)?);
            self.found = Some(Arc::clone(&probabilities));
            evaluated.done.push(done(context.program, compiled, since.elapsed()));
            for (id, tuples) in &probabilities.tuples {
                now.insert(*id, Value::Tuples(tuples.clone()));
                found.insert(*id, (at, Arc::clone(&probabilities)));
            }
            for (id, count) in &compiled.counts {
                let tensor = context.program.tensor(*id);
                if tensor.role == Role::Computed && !tensor.hidden {
                    evaluated.counts.insert(tensor.name.clone(), *count);
                }
            }
        }
        for ((slopes, relation, _), value) in adjoints.iter().zip(owed) {
            let Some((level, probabilities)) = found.get(relation) else { continue };
            // The adjoint of a goal that is itself a relation without places is a number.
            let number;
            let tuples = match value {
                Value::Tuples(tuples) => tuples,
                other => {
                    let values = other.doubles().to_vec();
                    number = Tuples { tuples: vec![Vec::new(); values.len()], values, counts: Vec::new() };
                    &number
                }
            };
            let Some(compiled) = before.get(*level).and_then(|level| level.compiled.as_ref()) else {
                continue;
            };
            let source = source_of(context.program, *slopes);
            let adjoints = BTreeMap::from([(*relation, tuples)]);
            now.insert(*slopes, compiled.slopes(context, probabilities, &adjoints, source)?);
        }
        let same = self.after.as_ref().is_some_and(|after| after.holds(&now));
        if !same {
            let base = match before.last().and_then(|level| level.after.as_ref()) {
                Some(after) => &*after.program,
                None => context.program,
            };
            self.after = Some(After::new(base, &now));
        }
        if let Some(after) = &self.after {
            evaluated.program = Arc::clone(&after.program);
            for (id, parameter) in &after.handed {
                if let Some(value) = now.get(id) {
                    evaluated.parameters.insert(*parameter, Arc::new(value.doubles().to_vec()));
                }
            }
        }
        evaluated.values.extend(now);
        Ok(!same)
    }
}

/// The program in which these stand as values, before anybody knows which tuples there are.
pub fn handed(program: &Program, asked: &Asked) -> Arc<Program> {
    let value = |id: &TensorId| {
        let tensor = program.tensor(*id);
        let tuple = vec![Const::Int(0); tensor.places.len()];
        let value = match tensor.style {
            Style::Square => Value::Dense(Vec::new().into()),
            Style::Round => {
                Value::Tuples(Tuples { tuples: vec![tuple], values: vec![0.0], counts: Vec::new() })
            }
        };
        (*id, value)
    };
    After::new(program, &asked.keys().map(value).collect()).program
}

/// What a profile says of relations with probabilities that are evaluated together.
pub fn planned(program: &Program, asked: &Asked) -> Done {
    let below = proved_below(program, asked.keys());
    // What a query asks of them is one of them too, and has no name.
    let named = || below.iter().filter(|id| !program.tensor(**id).hidden);
    let names = named().map(|id| label(program, *id)).collect();
    let span = named().next().and_then(|id| written(program, *id));
    let mut component = Done::new(names, span, Executor::Circuits);
    for id in named() {
        let (tensor, layout) = (label(program, *id), Layout::Columns);
        component.stored.push(Stored { tensor, layout, rows: None, bytes: None });
    }
    for equation in &program.equations {
        if !below.contains(&equation.tensor) || program.tensor(equation.tensor).hidden {
            continue;
        }
        component.parts.push(part(profile::equation_label(program, equation), Some(equation.span)));
    }
    component
}

fn part(text: String, span: Option<Span>) -> Part {
    Part { text, span, calls: 0, rows_in: 0, rows_out: 0, orders: Vec::new(), time: Duration::ZERO }
}

/// What was done for relations with probabilities.
fn done(program: &Program, compiled: &Compiled, time: Duration) -> Done {
    // As in a plan: what a query asks of them has no name.
    let named = || compiled.counts.iter().filter(|(id, _)| !program.tensor(*id).hidden);
    let names = named().map(|(id, _)| label(program, *id)).collect();
    let span = named().next().and_then(|(id, _)| written(program, *id));
    let mut component = Done::new(names, span, Executor::Circuits);
    component.calls = 1;
    component.time = time;
    component.rows_out = compiled.counts.iter().map(|(_, count)| *count).sum();
    let (rules, nodes) = compiled.size();
    let circuits = part("ground rules (in) and nodes of their diagrams (out)".to_owned(), None);
    component.parts.push(Part { calls: 1, rows_in: rules, rows_out: nodes, ..circuits });
    for (id, count) in named() {
        let (tensor, layout) = (label(program, *id), Layout::Columns);
        component.stored.push(Stored { tensor, layout, rows: Some(*count), bytes: None });
    }
    component
}

/// The relation and its adjoint that slopes are made from, with the slopes.
fn through(program: &Program, slopes: TensorId) -> Option<(TensorId, TensorId, TensorId)> {
    let equation = program.equations.iter().find(|equation| equation.tensor == slopes)?;
    let mut reads = Vec::new();
    equation.visit_reads(&mut |read, _| reads.push(read.tensor));
    match reads.as_slice() {
        [relation, adjoint, ..] => Some((slopes, *relation, *adjoint)),
        _ => None,
    }
}

/// The tensor whose weights the slopes are of.
fn source_of(program: &Program, slopes: TensorId) -> TensorId {
    let mut reads = Vec::new();
    if let Some(equation) = program.equations.iter().find(|equation| equation.tensor == slopes) {
        equation.visit_reads(&mut |read, _| reads.push(read.tensor));
    }
    reads.get(2).copied().unwrap_or(slopes)
}

impl After {
    /// Whether values would stand in this program: relations have the same tuples.
    fn holds(&self, now: &BTreeMap<TensorId, Value>) -> bool {
        now.iter().all(|(id, value)| match value {
            Value::Tuples(tuples) => self.tuples.get(id).is_some_and(|known| known.tuples == tuples.tuples),
            Value::Dense(_) | Value::Counts(_) => self.handed.contains_key(id),
        })
    }

    fn new(base: &Program, now: &BTreeMap<TensorId, Value>) -> After {
        let mut program = base.clone();
        let (mut known, mut handed) = (BTreeMap::new(), BTreeMap::new());
        for (id, value) in now {
            program.equations.iter_mut().filter(|equation| equation.tensor == *id).for_each(|equation| {
                equation.terms.clear();
            });
            match value {
                Value::Tuples(tuples) => {
                    known.insert(*id, Tuples { tuples: tuples.tuples.clone(), ..Tuples::default() });
                    handed.extend(tupled(&mut program, *id, tuples).map(|parameter| (*id, parameter)));
                }
                Value::Dense(_) | Value::Counts(_) => {
                    let tensor = &mut program.tensors[id.0 as usize];
                    tensor.role = Role::Parameter;
                    tensor.combine = Combine::Sum;
                    tensor.start = Some(Start::Number(0.0));
                    handed.insert(*id, *id);
                }
            }
        }
        // What a program does not compute any more has no equations.
        let kept: Vec<Equation> =
            program.equations.iter().filter(|equation| !equation.terms.is_empty()).cloned().collect();
        program.equations = kept;
        if let Ok(components) = recursion::analyse(&program, &Tree::default()) {
            program.components = components;
        }
        After { program: Arc::new(program), tuples: known, handed }
    }
}

/// `R(x) += T(x, n) V[n]`; says which tensor `V` is.
fn tupled(program: &mut Program, id: TensorId, tuples: &Tuples) -> Option<TensorId> {
    let span = program.tensor(id).span;
    let tensor = &mut program.tensors[id.0 as usize];
    tensor.given.clear();
    tensor.combine = Combine::Sum;
    tensor.kind = Kind::Real;
    tensor.role = Role::Empty;
    let count = tuples.tuples.len();
    if count == 0 {
        return None;
    }
    tensor.role = Role::Computed;
    let arity = tensor.places.len();
    let mut facts = Facts { arity: arity + 1, ..Facts::default() };
    for (at, tuple) in (0..).zip(&tuples.tuples) {
        let mut tuple = tuple.clone();
        tuple.push(Const::Int(at));
        facts.push(&tuple, 1.0, None);
    }
    let place = |domain| Place { domain, limit: None, star: false };
    let name = format!("values of {}", tensor.name);
    let mut push = |style, kind, combine, places, role, given, start| {
        let name = name.clone();
        let tensor = Tensor {
            name,
            version: 0,
            hidden: false,
            style,
            kind,
            combine,
            places,
            role,
            given,
            start,
            span,
        };
        program.tensors.push(tensor);
        TensorId(u32::try_from(program.tensors.len() - 1).unwrap_or(u32::MAX))
    };
    let positions = Domain::size(count);
    let mut places = vec![place(None); arity];
    places.push(place(Some(positions.clone())));
    let listed = vec![Given::Facts(Arc::new(facts))];
    let listed = push(Style::Round, Kind::Bool, Combine::Exists, places, Role::Data, listed, None);
    let places = vec![place(Some(positions))];
    let start = Some(Start::Number(0.0));
    let values = push(Style::Square, Kind::Real, Combine::Sum, places, Role::Parameter, Vec::new(), start);
    let first = program.indices.len() as u32;
    for at in 0..=arity {
        program.indices.push(Index { name: format!("x{at}"), range: Range::Tuples, span });
    }
    let indices: Vec<IndexId> = (first..=first + arity as u32).map(IndexId).collect();
    let (left, over) = indices.split_at(arity);
    let at = |indices: &[IndexId]| {
        indices.iter().copied().map(|index| Argument::At(IndexFn::Index(index))).collect()
    };
    let body = Expr::Product(vec![
        Expr::Read(Read::new(listed, at(&indices), Otherwise::Absent, span)),
        Expr::Read(Read::new(values, at(over), Otherwise::Zero, span)),
    ]);
    let head = left.iter().copied().map(IndexFn::Index).collect();
    let terms = vec![Term { over: over.to_vec(), when: When::default(), body }];
    let (left, head_span, sign_span, node) = (left.to_vec(), span, span, Stamp::default());
    program.equations.push(Equation { tensor: id, head, left, terms, node, span, head_span, sign_span });
    Some(values)
}
