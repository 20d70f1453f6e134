//! Proofs of least height, from the final state of the relations.
//!
//! Enter at [`prove`]. Every binding of every rule that the goal may rest on is a possible step. Heights
//! are found level by level: a step is ready when all that it rests on is proved; then the proof
//! is read off from the goal, ties going to the earlier line, then to the smaller tuples. Where probabilities decide which
//! rules of a relation are taken, an engine has said which ([`probable`]).

mod demand;
mod literals;
mod probable;

pub use probable::probable;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use literals::factors;

use super::bind::Scope;
use super::machine::Machine;
use tensor_logic_core::ast::Span;
use tensor_logic_core::engine::{Engine, Request, Value};
use tensor_logic_core::error::{Code, Places, Refusal, Result};
use tensor_logic_core::program::{Equation, Program, Query, Style, TensorId, Term};
use tensor_logic_core::proof::{Proof, Step, StepKind};
use tensor_logic_core::value::Tuple;
use tensor_logic_core::weighted;

/// A tuple of a relation.
type Atom = (TensorId, Tuple);

/// What a step rests on.
#[derive(Debug, Clone)]
enum Premise {
    /// A tuple that needs a proof itself: its number.
    Atom(usize),
    /// What needs none.
    Leaf(Step),
}

/// One way to prove an atom: by a rule from premises, or from nothing.
#[derive(Debug)]
struct Derivation {
    line: usize,
    premises: Vec<Premise>,
}

/// A proof of least height of a ground query that holds; `None` where it does not. `known` are values that the engine need
/// not be asked for, with all tuples that the query may rest on.
///
/// # Errors
/// `budget` where the derivations below the query do not fit, and refusals of the evaluation.
pub fn prove(
    request: &Request<'_>,
    engine: &mut dyn Engine,
    query: &Query,
    text: &str,
    known: &[(TensorId, Value)],
) -> Result<Option<Proof>> {
    let mut search = Search::new(request, engine, query, text, known)?;
    let goal = search.atom((search.proved_by(query.tensor), Tuple::new()));
    search.collect_below(query)?;
    let heights = search.heights();
    let proved = heights.get(goal).copied().flatten().is_some();
    Ok(if proved { search.read_off(goal, &heights, query) } else { None })
}

/// The most steps of a proof that is shown. Shared parts are shown once for every use, so that a
/// proof can be exponentially larger than what it rests on.
const SHOWN: u64 = 1_000_000;

struct Search<'p> {
    machine: Machine<'p, f64>,
    program: &'p Program,
    places: Places<'p>,
    text: &'p str,
    atoms: Vec<Atom>,
    numbers: HashMap<Atom, usize>,
    /// The step of an atom that is given.
    given: HashMap<usize, Step>,
    /// For every atom.
    derivations: Vec<Vec<Derivation>>,
    /// The bytes that further steps may take; `None` once there were too many.
    room: Option<u64>,
    /// What the query needs.
    needed: Vec<TensorId>,
    /// Whether relations with probabilities are taken as they are, without a step of their own.
    closed: bool,
    /// Relations that are only known by others, and these: what proves the sum of an `addmult` proves it.
    sums: Vec<(TensorId, TensorId)>,
}

/// Steps, and where those of atoms stand.
#[derive(Default)]
struct Tree {
    steps: Vec<Step>,
    at: BTreeMap<usize, usize>,
}

/// What a step of a search takes at least, and each of its parts.
const STEP_BYTES: u64 = 96;
const PART_BYTES: u64 = 32;

/// The bytes of a step with so many parts.
fn step_bytes(parts: usize) -> u64 {
    STEP_BYTES.saturating_add(PART_BYTES.saturating_mul(parts as u64))
}

impl<'p> Search<'p> {
    /// A search below a query, with the values of all that it needs.
    fn new(
        request: &'p Request<'p>,
        engine: &mut dyn Engine,
        query: &Query,
        text: &'p str,
        known: &[(TensorId, Value)],
    ) -> Result<Search<'p>> {
        let needed: Vec<TensorId> = request.program.needs(&[query.tensor]).into_iter().collect();
        let is_open = |id: &TensorId| !known.iter().any(|(other, _)| other == id);
        let open: Vec<TensorId> = needed.iter().copied().filter(is_open).collect();
        let values = engine.values(request, &open)?;
        let values = open.into_iter().zip(values).chain(known.iter().cloned());
        Ok(Search {
            machine: Machine::with_values(request, values.collect()),
            program: request.program,
            places: Places::new(text),
            text,
            atoms: Vec::new(),
            numbers: HashMap::new(),
            given: HashMap::new(),
            derivations: Vec::new(),
            room: Some(request.budget.bytes),
            needed,
            closed: false,
            sums: weighted::clamped(request.program),
        })
    }

    /// All steps that could prove a tuple of what the query needs and `wanted` takes.
    fn collect_all(&mut self, query: &Query, wanted: &dyn Fn(TensorId) -> bool) -> Result<()> {
        let limit = self.room.unwrap_or(0);
        for tensor in self.needed.clone().into_iter().filter(|id| wanted(*id)) {
            self.collect(tensor);
            if self.room.is_none() {
                return Err(too_large(query, limit));
            }
        }
        Ok(())
    }

    /// The relation whose rules and facts prove a tuple of this one.
    fn proved_by(&self, id: TensorId) -> TensorId {
        self.sums.iter().find(|(own, _)| *own == id).map_or(id, |(_, sums)| *sums)
    }

    fn atom(&mut self, atom: Atom) -> usize {
        let next = self.atoms.len();
        let number = *self.numbers.entry(atom.clone()).or_insert(next);
        if number == next {
            self.atoms.push(atom);
            self.derivations.push(Vec::new());
        }
        number
    }

    /// Takes the room of a step with so many parts, if there is as much.
    fn take(&mut self, parts: usize) {
        self.room = self.room.and_then(|room| room.checked_sub(step_bytes(parts)));
    }

    /// The line in the whole text.
    fn line(&self, span: Span) -> usize {
        self.places.row(span.start)
    }

    /// All steps that could prove a tuple of this relation.
    fn collect(&mut self, id: TensorId) {
        let tensor = self.program.tensor(id);
        if tensor.style == Style::Square {
            return;
        }
        for given in &tensor.given {
            let Some(facts) = given.facts() else { continue };
            for at in 0..facts.count {
                self.take(facts.arity);
                if self.room.is_none() {
                    return;
                }
                let tuple = facts.tuple(at).to_vec();
                let span = facts.spans.get(at);
                let kind = if span.is_some() { StepKind::Fact } else { StepKind::Data };
                let line = self.line(span.copied().unwrap_or(facts.source));
                let step = Step { atom: self.shown(id, &tuple), kind, line, file: None, from: Vec::new() };
                let number = self.atom((id, tuple));
                let known = self.given.get(&number);
                if known.is_none_or(|known| step.line < known.line) {
                    self.given.insert(number, step);
                }
            }
        }
        let program = self.program;
        for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
            for term in &equation.terms {
                self.term(equation, term);
            }
        }
    }

    fn term(&mut self, equation: &'p Equation, term: &'p Term) {
        let mut placed = Vec::new();
        factors(&term.body, &mut placed);
        let literals = self.literals(equation, term, placed);
        let indices: Vec<_> = equation.left.iter().chain(&term.over).copied().collect();
        let scope = Scope { indices: &indices, when: &term.when, body: Some(&term.body), nearby: &[] };
        let line = self.line(equation.span);
        let mut found = Vec::new();
        let parts = literals.len() + equation.head.len();
        let most = self.room.unwrap_or(0) / step_bytes(parts);
        let _ = self.machine.witnesses(scope, &mut || {
            if found.len() as u64 > most {
                return ControlFlow::Break(());
            }
            let head: Option<Tuple> = equation.head.iter().map(|place| self.machine.index(place)).collect();
            if let Some(head) = head
                && self.may_hold(equation, term)
            {
                let premises: Vec<_> = literals.iter().map(|literal| self.premise(*literal, line)).collect();
                found.push((head, premises));
            }
            ControlFlow::Continue(())
        });
        for (head, premises) in found {
            self.take(parts);
            if self.room.is_none() {
                return;
            }
            let derivation = self.derivation(line, premises);
            let head = self.atom((equation.tensor, head));
            if let Some(derivations) = self.derivations.get_mut(head) {
                derivations.push(derivation);
            }
        }
    }

    /// A step by the rule of a line; the tuples that it rests on get numbers.
    fn derivation(&mut self, line: usize, premises: Vec<std::result::Result<Atom, Step>>) -> Derivation {
        let premises = premises.into_iter().map(|premise| match premise {
            Ok(atom) => Premise::Atom(self.atom(atom)),
            Err(leaf) => Premise::Leaf(leaf),
        });
        let premises = premises.collect();
        Derivation { line, premises }
    }

    /// Whether the body of a rule has a value; of a relation with probabilities, in some world: there all factors hold, and
    /// what is denied is not certain.
    fn may_hold(&self, equation: &Equation, term: &'p Term) -> bool {
        if !self.program.tensor(equation.tensor).is_proved() {
            return self.machine.expr(&term.body).is_some();
        }
        weighted::factors(term).into_iter().all(|(read, denied)| match denied {
            true => !self.machine.is_certain(read),
            false => self.machine.holds(read),
        })
    }

    /// The least height of a proof of every atom: level by level, each derivation once.
    fn heights(&self) -> Vec<Option<usize>> {
        let mut heights: Vec<Option<usize>> = vec![None; self.atoms.len()];
        // Derivations that wait, and which derivations an atom is a premise of.
        let mut waiting: Vec<(usize, usize)> = Vec::new();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.atoms.len()];
        let mut level: Vec<usize> = Vec::new();
        for (head, derivations) in self.derivations.iter().enumerate() {
            if self.given.contains_key(&head) {
                level.push(head);
            }
            for derivation in derivations {
                let premises = derivation.premises.iter().filter_map(|premise| match premise {
                    Premise::Atom(atom) => Some(*atom),
                    Premise::Leaf(_) => None,
                });
                let mut count = 0;
                for atom in premises {
                    count += 1;
                    if let Some(readers) = readers.get_mut(atom) {
                        readers.push(waiting.len());
                    }
                }
                waiting.push((head, count));
            }
        }
        let mut next: Vec<usize> =
            waiting.iter().filter(|(_, count)| *count == 0).map(|(head, _)| *head).collect();
        let mut height = 0;
        while !level.is_empty() || !next.is_empty() {
            let mut proved = Vec::new();
            for atom in level {
                if let Some(slot @ None) = heights.get_mut(atom) {
                    *slot = Some(height);
                    proved.push(atom);
                }
            }
            for reader in proved.iter().flat_map(|atom| readers.get(*atom).into_iter().flatten()) {
                if let Some((head, count)) = waiting.get_mut(*reader) {
                    *count -= 1;
                    if *count == 0 {
                        next.push(*head);
                    }
                }
            }
            level = std::mem::take(&mut next);
            height += 1;
        }
        heights
    }

    /// The best of the derivations of least height.
    fn best(&self, atom: usize, heights: &[Option<usize>]) -> Option<&Derivation> {
        let of = |derivation: &Derivation| {
            let mut parts = derivation.premises.iter().map(|premise| match premise {
                Premise::Atom(atom) => heights.get(*atom).copied().flatten().map(|height| height + 1),
                Premise::Leaf(_) => Some(1),
            });
            parts.try_fold(1, |most, part| Some(most.max(part?)))
        };
        let least = heights.get(atom).copied().flatten()?;
        let shortest = self.derivations.get(atom)?.iter().filter(|each| of(each).is_some_and(|h| h <= least));
        shortest.min_by(|a, b| a.line.cmp(&b.line).then_with(|| self.compare(&a.premises, &b.premises)))
    }

    fn compare(&self, a: &[Premise], b: &[Premise]) -> Ordering {
        let one = |(a, b): (&Premise, &Premise)| match (a, b) {
            (Premise::Atom(a), Premise::Atom(b)) => match (self.atoms.get(*a), self.atoms.get(*b)) {
                (Some((_, a)), Some((_, b))) => self.program.symbols.compare_tuples(a, b),
                _ => Ordering::Equal,
            },
            (Premise::Leaf(a), Premise::Leaf(b)) => a.atom.cmp(&b.atom),
            _ => Ordering::Equal,
        };
        a.iter().zip(b).map(one).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The proof of the goal.
    fn read_off(&self, goal: usize, heights: &[Option<usize>], query: &Query) -> Option<Proof> {
        let mut tree = Tree::default();
        self.grow(goal, heights, &mut tree);
        let mut steps = tree.steps;
        let root = rooted(&mut steps, query)?;
        Some(Proof::new(steps, root).placed(&self.places))
    }

    /// Puts an atom and what it follows from into a tree; its position. An atom that is used twice is shown twice but kept
    /// once.
    fn grow(&self, atom: usize, heights: &[Option<usize>], tree: &mut Tree) -> usize {
        if let Some(position) = tree.at.get(&atom) {
            return *position;
        }
        let first = tree.steps.len();
        tree.at.insert(atom, first);
        tree.steps.push(self.step(atom));
        let mut open = vec![atom];
        while let Some(atom) = open.pop() {
            if self.given.contains_key(&atom) {
                continue;
            }
            let Some(derivation) = self.best(atom, heights) else { continue };
            let mut from = Vec::new();
            for premise in &derivation.premises {
                let next = tree.steps.len();
                from.push(match premise {
                    Premise::Leaf(leaf) => {
                        tree.steps.push(leaf.clone());
                        next
                    }
                    Premise::Atom(premise) => *tree.at.entry(*premise).or_insert_with(|| {
                        tree.steps.push(self.step(*premise));
                        open.push(*premise);
                        next
                    }),
                });
            }
            let Some(position) = tree.at.get(&atom).copied() else { continue };
            if let Some(step) = tree.steps.get_mut(position) {
                step.line = derivation.line;
                step.from = from;
            }
        }
        first
    }

    fn step(&self, atom: usize) -> Step {
        let shown = || self.atoms.get(atom).map_or_else(String::new, |(id, tuple)| self.shown(*id, tuple));
        let rule = || Step { atom: shown(), kind: StepKind::Rule, line: 0, file: None, from: Vec::new() };
        self.given.get(&atom).cloned().unwrap_or_else(rule)
    }
}

fn too_large(query: &Query, limit: u64) -> Refusal {
    let message = format!("the proof of this query needs more than the {limit} bytes of `--max-bytes`");
    let help = "ask without `@explain`, or raise `--max-bytes`";
    Refusal::new(Code::Budget, query.span, message).help(help)
}

/// The root of a proof whose first step is the query, if it is not too large to be shown.
fn rooted(steps: &mut [Step], query: &Query) -> Option<usize> {
    if shown(steps) > SHOWN {
        return None;
    }
    // A query of one literal is proved by what proves the literal.
    let root = match steps.first().map(|step| step.from.as_slice()) {
        Some([only]) => *only,
        _ => 0,
    };
    if let Some(step) = steps.first_mut() {
        step.atom = query.text.split('?').next().unwrap_or("").trim().to_owned();
    }
    Some(root)
}

/// How many steps are shown of a proof: what several follow from is shown below each.
fn shown(steps: &[Step]) -> u64 {
    let mut sizes: Vec<u64> = vec![0; steps.len()];
    let mut open = vec![(0, 0)];
    while let Some((at, next)) = open.last_mut() {
        let Some(step) = steps.get(*at) else { break };
        match step.from.get(*next).copied() {
            Some(child) => {
                *next += 1;
                if sizes.get(child) == Some(&0) {
                    sizes[child] = 1;
                    open.push((child, 0));
                }
            }
            None => {
                let parts = step.from.iter().filter_map(|part| sizes.get(*part));
                sizes[*at] = parts.fold(1, |sum, size| sum.saturating_add(*size));
                open.pop();
            }
        }
    }
    sizes.first().copied().unwrap_or(0)
}
