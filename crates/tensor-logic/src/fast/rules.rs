//! Boolean components as rules of the relational engine.
//!
//! Enter at [`Machine::by_rules`]. A component qualifies if its tensors are Boolean relations and
//! every factor of its terms is a relation or a simple guard; then each term is one rule. What
//! does not qualify is evaluated by the general method, with the same result.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::head::Accumulator;
use super::machine::{Machine, Stored, indices_of, linear};
use super::relation::{Codes, Piece, Relation};
use crate::error::{Code, Refusal, Result};
use crate::program::{
    Argument, Class, Combine, Component, Equation, Expr, Guard, IndexFn, IndexId, Otherwise, Program, Range,
    Read, Style, TensorId, Term,
};
use crate::value::{Const, Domain};
use datarel::{self as engine, Atom, Constants, Database, Failure, Limits, Literal, RelationId, Ring, Rule};

/// Rules in the making.
struct Builder<'m> {
    machine: &'m Machine,
    database: Database,
    relations: BTreeMap<TensorId, RelationId>,
    own: Vec<TensorId>,
    /// Tuples copied from finished relations.
    copied: u64,
}

/// One rule in the making.
#[derive(Default)]
struct Body {
    literals: Vec<Literal>,
    variables: Vec<IndexId>,
    /// Variables that stand for computed arguments.
    fresh: u32,
    /// Indices that stand alone where every value lies in their range.
    inside: Vec<IndexId>,
}

/// Numbers of fresh variables begin here.
const FRESH: u32 = 64;

impl Body {
    fn variable(&mut self, index: IndexId) -> engine::Term {
        let known = self.variables.iter().position(|other| *other == index);
        let at = known.unwrap_or_else(|| {
            self.variables.push(index);
            self.variables.len() - 1
        });
        engine::Term::variable(at as u32)
    }

    fn fresh(&mut self) -> engine::Term {
        self.fresh += 1;
        engine::Term::variable(FRESH + self.fresh - 1)
    }
}

impl Machine {
    /// Evaluates a Boolean component by the relational engine; `None` where it does not qualify.
    pub(crate) fn by_rules(&mut self, component: &Component) -> Result<Option<()>> {
        let program = Arc::clone(&self.program);
        let boolean = |id: &TensorId| {
            let tensor = program.tensor(*id);
            tensor.style == Style::Round && tensor.combine == Combine::Exists
        };
        let equations: Vec<&Equation> = component.equations.iter().map(|id| program.equation(*id)).collect();
        let recursive = matches!(component.class, Class::Closure);
        // A cyclic body needs at least three atoms; fewer are joined as well here.
        let wide = equations.iter().flat_map(|equation| &equation.terms).any(|term| atoms(term) > 2);
        if !component.tensors.iter().all(boolean) || !(recursive || wide) {
            return Ok(None);
        }
        let mut given = Vec::new();
        for id in &component.tensors {
            match self.given(*id, None)? {
                Accumulator::Sparse(pieces) => given.push((*id, pieces)),
                _ => return Ok(None),
            }
        }
        let mut builder = Builder {
            machine: self,
            database: Database::new(self.constants()),
            relations: BTreeMap::new(),
            own: component.tensors.clone(),
            copied: 0,
        };
        for (id, pieces) in given {
            let arity = program.tensor(id).places.len();
            let start = Relation::merge(arity, &pieces, Combine::Exists, &program.symbols);
            if builder.insert(id, &start).is_none() {
                return Ok(None);
            }
        }
        let mut rules = Vec::new();
        for equation in &equations {
            for term in &equation.terms {
                let Some(rule) = builder.rule(&program, equation, term) else { return Ok(None) };
                rules.push(rule);
            }
        }
        let Builder { mut database, relations, copied, .. } = builder;
        let limits = Limits {
            tuples: self.budget.tuples.saturating_sub(self.tuples).saturating_add(copied),
            bytes: self.budget.bytes,
            ..Limits::default()
        };
        let tensor_of =
            |relation: RelationId| relations.iter().find(|(_, own)| **own == relation).map(|(id, _)| *id);
        match engine::evaluate(&mut database, &rules, &limits) {
            Ok(_) => {}
            Err(Failure::Tuples { relation, .. }) => {
                self.head = self.left_side(tensor_of(relation).unwrap_or(component.tensors[0]));
                self.within_tuples(u64::MAX)?;
                return Ok(None);
            }
            Err(Failure::Bytes { relation, needed, limit }) => {
                let span = self.left_side(tensor_of(relation).unwrap_or(component.tensors[0]));
                let message =
                    format!("the tuples need {needed} bytes, and {limit} are allowed (`--max-bytes`)");
                let help = "end the rule with a comparison or a declared index, or raise `--max-bytes`";
                return Err(Refusal::new(Code::Budget, span, message).help(help));
            }
            Err(_) => return Ok(None),
        }
        for id in &component.tensors {
            let Some(relation) = relations.get(id) else { return Ok(None) };
            let arity = program.tensor(*id).places.len();
            let found = database.relation(*relation);
            let rows = found.rows();
            let column =
                |place: usize| rows.iter().skip(place).step_by(arity.max(1)).copied().collect::<Vec<u32>>();
            let place = |place: usize| compacted(&column(place), &database.constants);
            let piece = Piece {
                len: found.len(),
                places: (0..arity).map(place).collect(),
                values: None,
                counts: None,
            };
            let stored = Relation::merge(arity, &[piece], Combine::Exists, &program.symbols);
            self.store(*id, Stored::Relation(Arc::new(stored)));
        }
        Ok(Some(()))
    }

    /// An interner in which small integers keep their order.
    fn constants(&self) -> Constants {
        let relations = self.tensors.iter().flatten().filter_map(|(stored, _)| match stored {
            Stored::Relation(relation) => Some(relation),
            Stored::Dense(_) => None,
        });
        let ints = relations.flat_map(|relation| &relation.dictionaries).flat_map(|values| values.iter());
        let (mut low, mut high, mut count) = (i64::MAX, i64::MIN, 0_u64);
        for value in ints.filter_map(|value| value.int()) {
            (low, high, count) = (low.min(value), high.max(value), count + 1);
        }
        let compact = count > 0 && high.abs_diff(low) < 4 * count + 64;
        if compact { Constants::integers(low, high) } else { Constants::default() }
    }
}

/// The codes of a column, over the constants that occur in it.
fn compacted(column: &[u32], constants: &Constants) -> Codes {
    let mut number = vec![u32::MAX; constants.len()];
    let mut codes = Codes::default();
    for id in column {
        let Some(slot) = number.get_mut(*id as usize) else { continue };
        if *slot == u32::MAX {
            *slot = codes.dictionary.len() as u32;
            codes.dictionary.push(constants.value(*id));
        }
        codes.codes.push(*slot);
    }
    codes
}

/// The positive reads of a term.
fn atoms(term: &Term) -> usize {
    let guards = term.when.guards.iter().filter(|guard| matches!(guard, Guard::Read(_))).count();
    let body = match &term.body {
        Expr::Product(parts) => parts.iter().filter(|part| matches!(part, Expr::Read(_))).count(),
        Expr::Read(_) => 1,
        _ => 0,
    };
    guards + body
}

impl Builder<'_> {
    /// Copies a relation whose values are all 1.
    fn insert(&mut self, id: TensorId, relation: &Relation) -> Option<RelationId> {
        if relation.values.is_some() {
            return None;
        }
        let tensor = self.machine.program.tensor(id);
        let made = self.database.declare(tensor.name.clone(), tensor.places.len(), Ring::BOOLEAN);
        let mut ids: Vec<Vec<u32>> = Vec::new();
        for dictionary in &relation.dictionaries {
            let interned: Option<Vec<u32>> =
                dictionary.iter().map(|value| self.database.constants.intern(*value).ok()).collect();
            ids.push(interned?);
        }
        let mut rows = Vec::with_capacity(relation.len * ids.len());
        for row in 0..relation.len {
            rows.extend(relation.columns.iter().zip(&ids).map(|(column, ids)| ids[column[row] as usize]));
        }
        if relation.len > 0 {
            self.database.insert(made, &rows, &[]).ok()?;
        }
        self.copied += relation.len as u64;
        self.relations.insert(id, made);
        Some(made)
    }

    fn relation(&mut self, id: TensorId) -> Option<RelationId> {
        if let Some(known) = self.relations.get(&id) {
            return Some(*known);
        }
        match self.machine.stored(id) {
            Some(Stored::Relation(relation)) if self.machine.program.tensor(id).style == Style::Round => {
                let relation = Arc::clone(relation);
                self.insert(id, &relation)
            }
            _ => None,
        }
    }

    fn rule(&mut self, program: &Program, equation: &Equation, term: &Term) -> Option<Rule> {
        let mut body = Body::default();
        self.factors(&term.body, &mut body)?;
        for guard in &term.when.guards {
            self.guard(guard, &mut body)?;
        }
        let places = &program.tensor(equation.tensor).places;
        let mut head = Vec::new();
        for (function, place) in equation.head.iter().zip(places) {
            let at = self.function(function, &mut body)?;
            if let Some(limit) = &place.limit {
                let within = function.alone().and_then(|index| self.machine.range(index)) == Some(limit);
                if !within {
                    body.literals.push(inside(at, limit.clone()));
                }
            }
            head.push(at);
        }
        let mut open: Vec<IndexId> = body.variables.clone();
        open.retain(|index| !body.inside.contains(index));
        for index in open {
            if let Range::Domain(domain) = &program.index(index).range {
                let at = body.variable(index);
                body.literals.push(inside(at, domain.clone()));
            }
        }
        let fits = body.variables.len() <= FRESH as usize;
        // Numbers without gaps: fresh ones follow the others.
        let shift = FRESH - body.variables.len() as u32;
        let renumber = |at: &mut engine::Term| {
            if let engine::Term::Variable(variable) = at
                && variable.0 >= FRESH
            {
                variable.0 -= shift;
            }
        };
        head.iter_mut().for_each(renumber);
        body.literals.iter_mut().for_each(|literal| each_term(literal, &renumber));
        let made = self.relation(equation.tensor)?;
        fits.then(|| Rule::new(made, head, body.literals))
    }

    fn factors(&mut self, expr: &Expr, body: &mut Body) -> Option<()> {
        match expr {
            Expr::Number(value) => (*value > 0.0).then_some(()),
            Expr::Product(parts) => parts.iter().try_for_each(|part| self.factors(part, body)),
            Expr::Terms(parts) => match parts.as_slice() {
                [part] => self.factors(part, body),
                _ => None,
            },
            Expr::Read(read) if read.otherwise == Otherwise::Absent => {
                let atom = self.atom(read, body)?;
                body.literals.push(Literal::Atom(atom));
                Some(())
            }
            Expr::Missing(read) => self.negation(read, body),
            _ => None,
        }
    }

    fn guard(&mut self, guard: &Guard, body: &mut Body) -> Option<()> {
        match guard {
            Guard::Read(read) => {
                let atom = self.atom(read, body)?;
                body.literals.push(Literal::Atom(atom));
            }
            Guard::Not(read) => self.negation(read, body)?,
            Guard::CompareIndex(sign, a, b) => {
                let (a, b) = (self.function(a, body)?, self.function(b, body)?);
                body.literals.push(Literal::Compare(*sign, a, b));
            }
            Guard::Bind(index, function) => {
                let result = body.variable(*index);
                self.compute(result, function, body)?;
            }
            Guard::Compare(..) => return None,
        }
        Some(())
    }

    fn negation(&mut self, read: &Read, body: &mut Body) -> Option<()> {
        let simple = |argument: &Argument| {
            matches!(argument, Argument::Any | Argument::At(IndexFn::Const(_) | IndexFn::Index(_)))
        };
        // Where an argument has no value, the element is missing: the general method says so.
        if self.own.contains(&read.tensor) || !read.arguments.iter().all(simple) {
            return None;
        }
        let atom = self.atom_of(read, body, false)?;
        body.literals.push(Literal::Not(atom));
        Some(())
    }

    fn atom(&mut self, read: &Read, body: &mut Body) -> Option<Atom> {
        self.atom_of(read, body, true)
    }

    fn atom_of(&mut self, read: &Read, body: &mut Body, positive: bool) -> Option<Atom> {
        let relation = self.relation(read.tensor)?;
        let program = Arc::clone(&self.machine.program);
        let mut terms = Vec::new();
        for (argument, place) in read.arguments.iter().zip(&program.tensor(read.tensor).places) {
            terms.push(match argument {
                Argument::Any => engine::Term::Any,
                Argument::At(function) => self.function(function, body)?,
            });
            if let Argument::At(IndexFn::Index(index)) = argument
                && positive
                && place.limit.is_some()
                && place.limit.as_ref() == self.machine.range(*index)
            {
                body.inside.push(*index);
            }
        }
        Some(Atom::new(relation, terms))
    }

    /// An argument: a variable, a constant, or a fresh variable that is computed.
    fn function(&mut self, function: &IndexFn, body: &mut Body) -> Option<engine::Term> {
        match function {
            IndexFn::Const(value) => {
                Some(engine::Term::Constant(self.database.constants.intern(*value).ok()?))
            }
            IndexFn::Index(index) => Some(body.variable(*index)),
            _ => {
                let result = body.fresh();
                self.compute(result, function, body)?;
                Some(result)
            }
        }
    }

    fn compute(&mut self, result: engine::Term, function: &IndexFn, body: &mut Body) -> Option<()> {
        if let Some((terms, constant)) = linear(function)
            && let [(index, 1)] = terms.as_slice()
        {
            let from = body.variable(*index);
            body.literals.push(Literal::Shift { to: result, from, by: constant });
            return Some(());
        }
        let indices = indices_of(function);
        let arguments: Vec<engine::Term> = indices.iter().map(|index| body.variable(*index)).collect();
        let own = function.clone();
        let ranges: Vec<Option<Domain>> =
            indices.iter().map(|index| self.machine.range(*index).cloned()).collect();
        let value = move |values: &[Const]| {
            let at = |index: IndexId| indices.iter().position(|other| *other == index);
            let value = |index: IndexId| values.get(at(index)?).copied();
            own.evaluate(&value, &|index| ranges.get(at(index)?)?.as_ref()?.ordinal(value(index)?))
        };
        body.literals.push(Literal::Compute { result, arguments, function: Arc::new(value) });
        Some(())
    }
}

/// The value lies in a domain.
fn inside(at: engine::Term, domain: Domain) -> Literal {
    let test = move |values: &[Const]| values.first().is_some_and(|value| domain.contains(*value));
    Literal::Test { arguments: vec![at], test: Arc::new(test) }
}

fn each_term(literal: &mut Literal, visit: &dyn Fn(&mut engine::Term)) {
    match literal {
        Literal::Atom(atom) | Literal::Not(atom) => atom.terms.iter_mut().for_each(visit),
        Literal::Compare(_, a, b) => {
            visit(a);
            visit(b);
        }
        Literal::Shift { to, from, .. } => {
            visit(to);
            visit(from);
        }
        Literal::Compute { result, arguments, .. } => {
            visit(result);
            arguments.iter_mut().for_each(visit);
        }
        Literal::Test { arguments, .. } => arguments.iter_mut().for_each(visit),
    }
}
