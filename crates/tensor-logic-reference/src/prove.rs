//! Proofs of least height, from the final state of the relations.
//!
//! Enter at [`prove`]. Every binding of every rule below the goal is a possible step. Heights
//! are found level by level: a step is ready when all that it rests on is proved; then the proof
//! is read off from the goal, ties going to the earlier line, then to the smaller tuples.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::bind::Scope;
use super::machine::Machine;
use tensor_logic_core::ast::Span;
use tensor_logic_core::engine::{Engine, Request};
use tensor_logic_core::error::{Code, Places, Refusal, Result};
use tensor_logic_core::program::{
    Argument, Equation, Expr, Given, Guard, IndexFn, Otherwise, Program, Query, Read, Role, Style, TensorId,
    Term,
};
use tensor_logic_core::proof::{Proof, Step, StepKind};
use tensor_logic_core::value::{Const, Tuple};

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

/// A proof of least height of a ground query that holds; `None` where it does not.
///
/// # Errors
/// `budget` where the derivations below the query do not fit, and refusals of the evaluation.
pub fn prove(
    request: &Request<'_>,
    engine: &mut dyn Engine,
    query: &Query,
    text: &str,
) -> Result<Option<Proof>> {
    let needed: Vec<TensorId> = request.program.needs(&[query.tensor]).into_iter().collect();
    let values = engine.values(request, &needed)?;
    let machine = Machine::with_values(request, needed.iter().copied().zip(values).collect());
    let mut search = Search {
        machine,
        program: request.program,
        places: Places::new(text),
        text,
        atoms: Vec::new(),
        numbers: HashMap::new(),
        given: HashMap::new(),
        derivations: Vec::new(),
        room: Some(request.budget.bytes),
    };
    let goal = search.atom((query.tensor, Tuple::new()));
    for tensor in needed {
        search.collect(tensor);
        if search.room.is_none() {
            let limit = request.budget.bytes;
            let message =
                format!("the proof of this query needs more than the {limit} bytes of `--max-bytes`");
            let help = "ask without `@explain`, or raise `--max-bytes`";
            return Err(Refusal::new(Code::Budget, query.span, message).help(help));
        }
    }
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
}

/// What a step of a search takes at least, and each of its parts.
const STEP_BYTES: u64 = 96;
const PART_BYTES: u64 = 32;

/// A literal of a rule's body.
#[derive(Debug, Clone, Copy)]
enum Literal<'p> {
    Read(&'p Read),
    Guard(&'p Guard),
    /// `Even(x)` or `Odd(x)`, which the core form writes as a comparison.
    Parity(&'static str, &'p IndexFn),
}

impl<'p> Search<'p> {
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
        let bytes = STEP_BYTES.saturating_add(PART_BYTES.saturating_mul(parts as u64));
        self.room = self.room.and_then(|room| room.checked_sub(bytes));
    }

    fn line(&self, span: Span) -> usize {
        self.places.of(span.start).0
    }

    /// All steps that could prove a tuple of this relation.
    fn collect(&mut self, id: TensorId) {
        let tensor = self.program.tensor(id);
        if tensor.style == Style::Square {
            return;
        }
        for given in &tensor.given {
            let Given::Facts(facts) = given else { continue };
            for at in 0..facts.count {
                self.take(facts.arity);
                if self.room.is_none() {
                    return;
                }
                let tuple = facts.tuple(at).to_vec();
                let span = facts.spans.get(at);
                let kind = if span.is_some() { StepKind::Fact } else { StepKind::Data };
                let line = self.line(span.copied().unwrap_or(facts.source));
                let step = Step { atom: self.shown(id, &tuple), kind, line, from: Vec::new() };
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
        let literals = self.literals(equation, term);
        let indices: Vec<_> = equation.left.iter().chain(&term.over).copied().collect();
        let scope = Scope { indices: &indices, when: &term.when, body: Some(&term.body), nearby: &[] };
        let line = self.line(equation.span);
        let mut found = Vec::new();
        let parts = literals.len() + equation.head.len();
        let bytes = STEP_BYTES.saturating_add(PART_BYTES.saturating_mul(parts as u64));
        let most = self.room.unwrap_or(0) / bytes;
        let _ = self.machine.witnesses(scope, &mut || {
            if found.len() as u64 > most {
                return ControlFlow::Break(());
            }
            let head: Option<Tuple> = equation.head.iter().map(|place| self.machine.index(place)).collect();
            if let Some(head) = head
                && self.machine.expr(&term.body).is_some()
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
            let premises = premises.into_iter().map(|premise| match premise {
                Ok(atom) => Premise::Atom(self.atom(atom)),
                Err(leaf) => Premise::Leaf(leaf),
            });
            let premises = premises.collect();
            let head = self.atom((equation.tensor, head));
            if let Some(derivations) = self.derivations.get_mut(head) {
                derivations.push(Derivation { line, premises });
            }
        }
    }

    /// The literals of a body in the order of the text. Comparisons of indices and assignments
    /// carry no place: they are the literals of the text in which no read stands.
    fn literals(&self, equation: &Equation, term: &'p Term) -> Vec<Literal<'p>> {
        let mut reads: Vec<usize> = Vec::new();
        term.body.visit_reads(&mut |read, _| reads.push(read.span.start));
        term.when.visit_reads(&mut |read, _| reads.push(read.span.start));
        let mut bare =
            segments(self.text, equation.sign_span.end.max(equation.span.start), equation.span.end)
                .into_iter()
                .filter(|segment| !reads.iter().any(|read| segment.contains(read)));
        let mut placed = Vec::new();
        factors(&term.body, &mut placed);
        let mut last = 0;
        for guard in &term.when.guards {
            let mut at = None;
            match guard {
                Guard::Read(read) | Guard::Not(read) => at = Some(read.span.start),
                Guard::Compare(_, a, b) => {
                    a.visit_reads(&mut |read, _| at = at.or(Some(read.span.start)));
                    b.visit_reads(&mut |read, _| at = at.or(Some(read.span.start)));
                }
                Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
            let segment = if at.is_none() { bare.next() } else { None };
            last = at.or_else(|| segment.as_ref().map(|segment| segment.start)).unwrap_or(last);
            let written = segment.and_then(|segment| self.text.get(segment)).unwrap_or("").trim_start();
            let parity = ["Even", "Odd"].into_iter().find(|name| written.starts_with(name));
            placed.push((
                last,
                match (parity, guard) {
                    (Some(name), Guard::CompareIndex(_, IndexFn::Remainder(of, _), _)) => {
                        Literal::Parity(name, of)
                    }
                    _ => Literal::Guard(guard),
                },
            ));
        }
        placed.sort_by_key(|(at, _)| *at);
        placed.into_iter().map(|(_, literal)| literal).collect()
    }

    fn premise(&self, literal: Literal<'p>, line: usize) -> std::result::Result<Atom, Step> {
        let leaf = |atom: String, kind: StepKind, line: usize| Step { atom, kind, line, from: Vec::new() };
        match literal {
            Literal::Read(read) | Literal::Guard(Guard::Read(read)) => {
                let tuple = self.machine.arguments(read).unwrap_or_default();
                let tensor = self.program.tensor(read.tensor);
                if tensor.style == Style::Round && tensor.role != Role::Parameter {
                    return Ok((read.tensor, tuple));
                }
                Err(leaf(self.shown(read.tensor, &tuple), StepKind::Data, self.line(tensor.span)))
            }
            Literal::Guard(Guard::Not(read)) => {
                let places = read.arguments.iter().map(|argument| match argument {
                    Argument::At(function) => self
                        .machine
                        .index(function)
                        .map_or("?".to_owned(), |value| self.program.symbols.show(value)),
                    Argument::Any => "_".to_owned(),
                });
                let places: Vec<String> = places.collect();
                let round = read.otherwise == Otherwise::Absent;
                let atom =
                    format!("not {}", bracketed(self.program.name(read.tensor), round, &places.join(", ")));
                Err(leaf(atom, StepKind::Negation, self.line(read.span)))
            }
            Literal::Guard(Guard::CompareIndex(sign, a, b)) => {
                let atom = format!("{} {sign} {}", self.function(a), self.function(b));
                Err(leaf(atom, StepKind::Builtin, line))
            }
            Literal::Parity(name, of) => {
                Err(leaf(format!("{name}({})", self.function(of)), StepKind::Builtin, line))
            }
            Literal::Guard(Guard::Bind(index, function)) => {
                let atom =
                    format!("{} = {}", self.function(&IndexFn::Index(*index)), self.function(function));
                Err(leaf(atom, StepKind::Builtin, line))
            }
            Literal::Guard(Guard::Compare(sign, a, b)) => {
                let number =
                    |side| self.machine.expr(side).map_or("absent".to_owned(), |value| format!("{value:?}"));
                Err(leaf(format!("{} {sign} {}", number(a), number(b)), StepKind::Builtin, line))
            }
        }
    }

    fn shown(&self, id: TensorId, tuple: &Tuple) -> String {
        let tensor = self.program.tensor(id);
        bracketed(&tensor.name, tensor.style == Style::Round, &self.program.show_tuple(tuple))
    }

    /// An index function with the values at hand in place of the indices.
    fn function(&self, function: &IndexFn) -> String {
        let inner = |part: &IndexFn| match part {
            IndexFn::Const(_) | IndexFn::Index(_) | IndexFn::Ordinal(_) => self.function(part),
            _ => format!("({})", self.function(part)),
        };
        let binary = |a: &IndexFn, sign: &str, b: &IndexFn| format!("{} {sign} {}", inner(a), inner(b));
        match function {
            IndexFn::Const(_) | IndexFn::Index(_) | IndexFn::Ordinal(_) => {
                let value: Option<Const> = self.machine.index(function);
                value.map_or("?".to_owned(), |value| self.program.symbols.show(value))
            }
            IndexFn::Negate(a) => format!("-{}", inner(a)),
            IndexFn::Add(a, b) => binary(a, "+", b),
            IndexFn::Subtract(a, b) => binary(a, "-", b),
            IndexFn::Multiply(a, b) => binary(a, "*", b),
            IndexFn::Divide(a, b) => binary(a, "/", b),
            IndexFn::Remainder(a, b) => binary(a, "%", b),
        }
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

    /// The proof of the goal. An atom that is used twice is shown twice but kept once.
    fn read_off(&self, goal: usize, heights: &[Option<usize>], query: &Query) -> Option<Proof> {
        let mut steps: Vec<Step> = Vec::new();
        let mut order: Vec<(usize, usize)> = Vec::new();
        let mut at: BTreeMap<usize, usize> = BTreeMap::new();
        let mut open = vec![goal];
        at.insert(goal, 0);
        steps.push(self.step(goal));
        while let Some(atom) = open.pop() {
            if self.given.contains_key(&atom) {
                continue;
            }
            let Some(derivation) = self.best(atom, heights) else { continue };
            let mut from = Vec::new();
            for premise in &derivation.premises {
                let next = steps.len();
                from.push(match premise {
                    Premise::Leaf(leaf) => {
                        steps.push(leaf.clone());
                        next
                    }
                    Premise::Atom(premise) => *at.entry(*premise).or_insert_with(|| {
                        steps.push(self.step(*premise));
                        open.push(*premise);
                        next
                    }),
                });
            }
            let Some(position) = at.get(&atom).copied() else { continue };
            order.push((heights.get(atom).copied().flatten().unwrap_or(0), position));
            if let Some(step) = steps.get_mut(position) {
                step.line = derivation.line;
                step.from = from;
            }
        }
        // Premises are lower than conclusions, so that this order sees them first.
        order.sort_unstable();
        let mut sizes = vec![1u64; steps.len()];
        for (_, position) in order {
            let parts = steps.get(position).into_iter().flat_map(|step| &step.from);
            let size =
                parts.filter_map(|part| sizes.get(*part)).fold(1u64, |sum, size| sum.saturating_add(*size));
            if let Some(slot) = sizes.get_mut(position) {
                *slot = size;
            }
        }
        if sizes.first().is_some_and(|size| *size > SHOWN) {
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
        Some(Proof::new(steps, root))
    }

    fn step(&self, atom: usize) -> Step {
        let shown = || self.atoms.get(atom).map_or_else(String::new, |(id, tuple)| self.shown(*id, tuple));
        let rule = || Step { atom: shown(), kind: StepKind::Rule, line: 0, from: Vec::new() };
        self.given.get(&atom).cloned().unwrap_or_else(rule)
    }
}

/// The reads that a body multiplies or adds, with their places.
fn factors<'p>(body: &'p Expr, into: &mut Vec<(usize, Literal<'p>)>) {
    match body {
        Expr::Read(read) => into.push((read.span.start, Literal::Read(read))),
        Expr::Reduce(_) | Expr::Axis(_) => {}
        _ => body.parts().0.into_iter().for_each(|part| factors(part, into)),
    }
}

fn bracketed(name: &str, round: bool, inside: &str) -> String {
    match (round, inside.is_empty()) {
        (true, _) => format!("{name}({inside})"),
        (false, true) => name.to_owned(),
        (false, false) => format!("{name}[{inside}]"),
    }
}

/// The parts of a text between commas that stand in no bracket, quotes or comment.
fn segments(text: &str, from: usize, to: usize) -> Vec<std::ops::Range<usize>> {
    let mut segments = Vec::new();
    let (mut depth, mut start, mut quoted, mut comment, mut before) = (0i32, from, false, false, ' ');
    for (at, letter) in text.get(from..to).unwrap_or("").char_indices() {
        match letter {
            '\n' => comment = false,
            _ if comment => {}
            '"' if before != '\\' => quoted = !quoted,
            _ if quoted => {}
            '#' => comment = true,
            '/' if before == '/' => comment = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                segments.push(start..from + at);
                start = from + at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    segments.push(start..to);
    segments
}
