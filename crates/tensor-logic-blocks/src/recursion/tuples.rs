//! Stepped sums over relations: the tuples of one step are all there before anything is made of them, so that each is gone
//! through once.
//!
//! Enter at [`Machine::sums_by_tuples`]. While a step is gone through, its tensor holds the tuples of the step only, and the others
//! of the component nothing: an equation that reads one tuple of the component for each contribution makes of them what it would
//! make of all, without the rest, which was there before.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::deltas::{Known, is_own, own_reads};
use crate::component::own_equations;
use crate::engine::Parameters;
use crate::error::Result;
use crate::head::Accumulator;
use crate::program::{Combine, Component, Expr, Guard, Moving, Steps, Style, TensorId, Term};
use crate::store::machine::{Machine, Stored};
use crate::store::relation::Relation;
use crate::value::Const;

/// A step of a tensor, in the order in which they are gone through: how far along, and which tensor.
type When = (i64, usize);

impl Machine {
    /// Goes through the steps of sums over relations, if its equations are such.
    pub(crate) fn sums_by_tuples(
        &mut self,
        component: &Component,
        steps: &Steps,
        parameters: &Parameters,
    ) -> Result<bool> {
        if !self.is_by_tuples(component, steps) {
            return Ok(false);
        }
        let program = Arc::clone(&self.program);
        let arity = |id: &TensorId| program.tensor(*id).places.len();
        let members: Vec<(TensorId, Moving)> =
            steps.places.iter().filter_map(|(id, moving)| Some((*id, *moving.first()?))).collect();
        let nothing = |id: &TensorId| Stored::Relation(Arc::new(Relation::empty(arity(id))));
        for (id, _) in &members {
            self.store(*id, nothing(id));
        }
        let mut waiting: BTreeMap<When, Known> = BTreeMap::new();
        for (nth, (id, moving)) in members.iter().enumerate() {
            let Stored::Relation(given) = self.plain(component, *id, parameters)? else { return Ok(false) };
            wait(&mut waiting, &given, *moving, nth);
        }
        let mut done: Vec<Known> = members.iter().map(|(id, _)| Known::new(arity(id))).collect();
        let mut rounds = 0;
        while let Some((now, known)) = waiting.pop_first() {
            rounds += 1;
            let (id, _) = members[now.1];
            let own = Relation::merge(arity(&id), &[known.piece()], Combine::Sum, &program.symbols);
            done[now.1].join(&own, Combine::Sum);
            self.head = program.left_side(id);
            self.within_tuples(id, done.iter().map(|known| known.values.len() as u64).sum())?;
            self.store(id, Stored::Relation(Arc::new(own)));
            for (nth, (other, moving)) in members.iter().enumerate() {
                let made = self.made_of(component, *other, id)?;
                let Some(Stored::Relation(made)) = made else { continue };
                let first = wait(&mut waiting, &made, *moving, nth);
                if first.is_some_and(|first| first <= now) {
                    // No step of the component's.
                    return Ok(false);
                }
            }
            self.store(id, nothing(&id));
        }
        for ((id, _), known) in members.iter().zip(done) {
            let relation = Relation::merge(arity(id), &[known.piece()], Combine::Sum, &program.symbols);
            self.store(*id, Stored::Relation(Arc::new(relation)));
        }
        self.note_rounds(component, rounds, 0.0);
        Ok(true)
    }

    /// What the terms of a tensor that read another one make of the tuples at hand.
    fn made_of(&mut self, component: &Component, id: TensorId, of: TensorId) -> Result<Option<Stored>> {
        let program = Arc::clone(&self.program);
        let reads = |term: &Term| reads(term, of);
        if !own_equations(&program.equations, component, id).any(|equation| equation.terms.iter().any(reads))
        {
            return Ok(None);
        }
        self.head = program.left_side(id);
        loop {
            let mut accumulator = Accumulator::Sparse(Vec::new());
            self.watch(id);
            for equation in own_equations(&program.equations, component, id) {
                if equation.terms.iter().any(reads) {
                    self.contribute_some(equation, &[], &mut accumulator, &reads)?;
                }
            }
            let stored = self.finish(id, accumulator);
            if !self.must_repeat() {
                return Ok(Some(stored));
            }
        }
    }

    /// Whether all tensors are sums over relations that move along one place, and every contribution comes from one tuple of theirs
    /// at most.
    pub(crate) fn is_by_tuples(&self, component: &Component, steps: &Steps) -> bool {
        let program = &self.program;
        let sums = |id: &TensorId| {
            let tensor = program.tensor(*id);
            tensor.style == Style::Round && tensor.combine == Combine::Sum
        };
        let mut cycles = steps.places.iter().map(|(_, moving)| match moving.as_slice() {
            [one] => Some((one.cycle, one.up)),
            _ => None,
        });
        let Some(Some(first)) = cycles.next() else { return false };
        let single = |term: &Term| match own_reads(component, term) {
            0 => true,
            1 => term.when.exists.is_empty() && hangs(component, term),
            _ => false,
        };
        steps.places.len() == component.tensors.len()
            && component.tensors.iter().all(sums)
            && cycles.all(|other| other == Some(first))
            && component.equations.iter().flat_map(|at| &program.equation(*at).terms).all(single)
    }
}

/// Puts tuples where their steps are gone through; the first of these.
fn wait(waiting: &mut BTreeMap<When, Known>, tuples: &Relation, moving: Moving, nth: usize) -> Option<When> {
    let mut first: Option<When> = None;
    for row in 0..tuples.len {
        let tuple = tuples.tuple(row);
        let step = match tuple.get(moving.place) {
            Some(Const::Int(value)) => value.saturating_add(moving.shift),
            // Nothing moves on from a symbol.
            _ => i64::MIN,
        };
        let step = if moving.up || step == i64::MIN { step } else { step.saturating_neg() };
        let at = (step, nth);
        waiting.entry(at).or_insert_with(|| Known::new(tuple.len())).add(&tuple, tuples.value(row));
        first = Some(first.map_or(at, |first| first.min(at)));
    }
    first
}

fn reads(term: &Term, id: TensorId) -> bool {
    let mut found = false;
    term.body.visit_reads(&mut |read, _| found |= read.tensor == id);
    term.when.visit_reads(&mut |read, _| found |= read.tensor == id);
    found
}

/// Whether a term contributes only where the tuple of the component that it reads is.
fn hangs(component: &Component, term: &Term) -> bool {
    let guard = |guard: &Guard| matches!(guard, Guard::Read(read) if is_own(component, read));
    term.when.guards.iter().any(guard) || hangs_on(component, &term.body)
}

/// Whether an expression is there only where the tuple of the component that it reads is, and is made of no other.
fn hangs_on(component: &Component, expr: &Expr) -> bool {
    match expr {
        Expr::Read(read) => is_own(component, read),
        Expr::Call(call) if !call.when.guards.is_empty() => false,
        Expr::Product(_) | Expr::Quotient(..) | Expr::Negate(_) | Expr::Power(..) | Expr::Call(_) => {
            expr.parts().0.into_iter().any(|part| hangs_on(component, part))
        }
        _ => false,
    }
}
