//! The steps that a goal may rest on, and no others: of a closure those of the tuples that are met on the way down.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::literals::{Literal, factors};
use super::{Atom, Search, step_bytes, too_large};
use crate::bind::{Plan, Scope};
use tensor_logic_core::error::Result;
use tensor_logic_core::program::{
    Combine, Equation, IndexFn, IndexId, Kind, Query, Range, Style, TensorId, Term,
};
use tensor_logic_core::proof::{Step, StepKind};
use tensor_logic_core::value::{Const, Tuple};

/// A possible step: how far its contribution is from the value, and what it rests on.
type Possible = (f64, Vec<std::result::Result<Atom, Step>>);

/// Rules and facts, by what they are of, as far as they were asked for.
#[derive(Default)]
struct Known<'p> {
    rules: HashMap<TensorId, Rc<Vec<Rule<'p>>>>,
    given: HashMap<TensorId, HashMap<Tuple, (f64, usize, StepKind)>>,
}

/// A rule, with its literals in the order of the text, and how the indices are bound that its head does not bind.
struct Rule<'p> {
    equation: &'p Equation,
    term: &'p Term,
    literals: Vec<Literal<'p>>,
    plan: Plan<'p>,
    line: usize,
}

impl<'p> Search<'p> {
    /// All steps that could prove the first atom, or what these rest on.
    pub(super) fn collect_below(&mut self, query: &Query) -> Result<()> {
        let limit = self.room.unwrap_or(0);
        let mut known = Known::default();
        let mut next = 0;
        while next < self.atoms.len() {
            self.derive(next, &mut known);
            if self.room.is_none() {
                return Err(too_large(query, limit));
            }
            next += 1;
        }
        Ok(())
    }

    fn derive(&mut self, number: usize, known: &mut Known<'p>) {
        let Some((id, tuple)) = self.atoms.get(number).cloned() else { return };
        if self.program.tensor(id).style == Style::Square {
            return;
        }
        let rules = Rc::clone(known.rules.entry(id).or_insert_with(|| Rc::new(self.rules_of(id))));
        let given = known.given.entry(id).or_insert_with(|| self.facts_of(id));
        let given = given.get(&tuple).copied();
        let mut least = given.map_or(f64::INFINITY, |(off, ..)| off);
        let mut room = self.room.unwrap_or(0);
        let mut found: Vec<(&Rule<'p>, Vec<Possible>)> = Vec::new();
        for rule in rules.iter() {
            let bytes = step_bytes(rule.literals.len() + tuple.len());
            let steps = self.steps(rule, &tuple, &mut least, room / bytes);
            room = room.saturating_sub(bytes.saturating_mul(steps.len() as u64));
            found.push((rule, steps));
        }
        if let Some((off, line, kind)) = given
            && off <= least
        {
            self.take(tuple.len());
            let atom = self.shown(id, &tuple);
            let step = Step { atom, kind, line, file: None, from: Vec::new() };
            self.given.insert(number, step);
        }
        for (rule, steps) in found {
            for (_, premises) in steps.into_iter().filter(|(off, _)| *off <= least) {
                self.take(rule.literals.len() + tuple.len());
                if self.room.is_none() {
                    return;
                }
                let derivation = self.derivation(rule.line, premises);
                if let Some(derivations) = self.derivations.get_mut(number) {
                    derivations.push(derivation);
                }
            }
        }
    }

    /// How far a contribution is from the value of its tuple, where the value is the best of them: only the nearest explain it.
    fn off(&self, id: TensorId, tuple: &[Const], contribution: Option<f64>) -> f64 {
        let tensor = self.program.tensor(id);
        if tensor.kind == Kind::Bool || !matches!(tensor.combine, Combine::Max | Combine::Min) {
            return 0.0;
        }
        let value = self.machine.element(&(id, tuple.to_vec()));
        match value.zip(contribution) {
            // Also of infinities and of what is no number.
            Some((value, contribution)) if value.to_bits() == contribution.to_bits() => 0.0,
            Some((value, contribution)) => (value - contribution).abs().min(f64::MAX),
            None => 0.0,
        }
    }

    /// The first of the nearest facts that give each tuple.
    fn facts_of(&self, id: TensorId) -> HashMap<Tuple, (f64, usize, StepKind)> {
        let mut found: HashMap<Tuple, (f64, usize, StepKind)> = HashMap::new();
        for facts in self.program.tensor(id).given.iter().filter_map(|given| given.facts()) {
            for at in 0..facts.count {
                let span = facts.spans.get(at);
                let kind = if span.is_some() { StepKind::Fact } else { StepKind::Data };
                let line = self.line(span.copied().unwrap_or(facts.source));
                let tuple = facts.tuple(at).to_vec();
                let off = self.off(id, &tuple, Some(facts.value(at)));
                let first = found.entry(tuple).or_insert((off, line, kind));
                if (off, line) < (first.0, first.1) {
                    *first = (off, line, kind);
                }
            }
        }
        found
    }

    fn rules_of(&self, id: TensorId) -> Vec<Rule<'p>> {
        let program = self.program;
        let own = program.equations.iter().filter(|equation| equation.tensor == id);
        own.flat_map(|equation| equation.terms.iter().map(move |term| (equation, term)))
            .map(|(equation, term)| {
                let mut placed = Vec::new();
                factors(&term.body, &mut placed);
                let literals = self.literals(equation, term, placed);
                let bound: Vec<IndexId> =
                    equation.head.iter().filter_map(|place| self.bound_by(place)).collect();
                let all = equation.left.iter().chain(&term.over).copied();
                let indices: Vec<IndexId> = all.filter(|index| !bound.contains(index)).collect();
                let scope =
                    Scope { indices: &indices, when: &term.when, body: Some(&term.body), nearby: &[] };
                let (plan, line) = (self.machine.planned(scope), self.line(equation.span));
                Rule { equation, term, literals, plan, line }
            })
            .collect()
    }

    /// The index that a place of a tuple gives a value, but for what an assignment computes.
    fn bound_by(&self, place: &IndexFn) -> Option<IndexId> {
        let index = place.alone()?;
        (!matches!(self.program.index(index).range, Range::Computed)).then_some(index)
    }

    /// The steps by a rule that prove a tuple, of those that are nearest to its value, which is `least` away; so many, and one
    /// more if there are more.
    fn steps(&self, rule: &Rule<'p>, tuple: &[Const], least: &mut f64, most: u64) -> Vec<Possible> {
        let machine = &self.machine;
        let mut bound: Vec<IndexId> = Vec::new();
        let fits = rule.equation.head.iter().zip(tuple).all(|(place, value)| match self.bound_by(place) {
            Some(index) if bound.contains(&index) => machine.index(place) == Some(*value),
            Some(index) => {
                machine.bind(index, Some(*value));
                bound.push(index);
                match &self.program.index(index).range {
                    Range::Domain(domain) => domain.contains(*value),
                    Range::Tuples | Range::Computed => true,
                }
            }
            None => !matches!(place, IndexFn::Const(constant) if constant != value),
        });
        let mut found: Vec<Possible> = Vec::new();
        if fits {
            let _ = machine.follow(&rule.plan, &mut || {
                if found.len() as u64 > most {
                    return ControlFlow::Break(());
                }
                let head = rule.equation.head.iter().zip(tuple);
                if head.into_iter().all(|(place, value)| machine.index(place) == Some(*value))
                    && self.may_hold(rule.equation, rule.term)
                {
                    let premise = |literal: &Literal<'p>| self.premise(*literal, rule.line);
                    let off = self.off(rule.equation.tensor, tuple, machine.expr(&rule.term.body));
                    if off < *least {
                        found.clear();
                        *least = off;
                    }
                    if off <= *least {
                        found.push((off, rule.literals.iter().map(premise).collect()));
                    }
                }
                ControlFlow::Continue(())
            });
        }
        bound.iter().for_each(|index| machine.bind(*index, None));
        found
    }
}
