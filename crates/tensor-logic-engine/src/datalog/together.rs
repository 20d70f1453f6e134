//! Goals that rules derive all at once: each alone would look at all that is below it, however much of that is whole.
//! Weighted propositions are such goals: rules find what each of them follows from.

use std::collections::{BTreeMap, BTreeSet};

use super::{Session, Take, answer};
use crate::engine::{Budget, is_interrupted};
use crate::error::Refusal;
use crate::program::{Program, Role, Style, TensorId};
use datarel::RelationId;

/// Goals with their values, and how many tuples each computed relation below any of them holds.
pub(crate) type Together<T> = (BTreeMap<TensorId, T>, Vec<(String, u64)>);

/// What no rule can be made of is found one by one; there may be many.
const TRIES: usize = 4;

impl Session {
    /// The values of those goals below which there are only given facts, other goals and what has no places: no demand would
    /// spare anything.
    /// Nothing where they are refused together: each one alone says why.
    ///
    /// # Errors
    /// `interrupted`.
    pub(crate) fn together<T>(
        &mut self,
        program: &Program,
        goals: &BTreeSet<TensorId>,
        budget: Budget,
        take: Take<T>,
    ) -> Result<Together<T>, Refusal> {
        if goals.len() < 2 || self.apart {
            return Ok(Together::default());
        }
        let done = self.try_together(program, goals, budget, take);
        match done {
            Err(report) if is_interrupted(&report) => {
                self.keep_whole();
                Err(report)
            }
            Err(_) => {
                self.reset();
                self.apart = true;
                Ok(Together::default())
            }
            Ok(found) => Ok(found.unwrap_or_default()),
        }
    }

    fn try_together<T>(
        &mut self,
        program: &Program,
        goals: &BTreeSet<TensorId>,
        budget: Budget,
        take: Take<T>,
    ) -> Result<Option<Together<T>>, Refusal> {
        let since = self.now();
        let Some(goals) = self.built_together(program, goals)? else { return Ok(None) };
        self.note_border("facts", since);
        let needed = program.needs(&goals);
        let tensors = self.compiler.tensors();
        let open: BTreeSet<TensorId> = needed.difference(&self.whole).copied().collect();
        if open.iter().any(|id| program.tensor(*id).role == Role::Computed) {
            let (limits, rules) = (self.limits(program, budget, &tensors), self.compiler.rules_of(&open));
            let done = self.evaluate(program, &tensors, &rules, &limits);
            done.map_err(|failure| answer::refusal(program, &self.compiler.database, &tensors, failure))?;
            self.whole.extend(open);
        }
        let since = self.now();
        let database = &self.compiler.database;
        let mut counts: BTreeMap<TensorId, u64> = BTreeMap::new();
        for (relation, id) in tensors.iter().filter(|(_, id)| needed.contains(id)) {
            let tensor = program.tensor(*id);
            if tensor.role == Role::Computed && !tensor.hidden && tensor.style == Style::Round {
                *counts.entry(*id).or_default() += database.relation(*relation).len() as u64;
            }
        }
        let counts = counts.into_iter().map(|(id, count)| (program.name(id).to_owned(), count)).collect();
        let value = |goal: &TensorId| {
            let relation = self.compiler.relations.get(goal).copied().unwrap_or(RelationId(0));
            Ok((*goal, take(program, database, (*goal, relation), budget.bytes)?))
        };
        let values = goals.iter().map(value).collect::<Result<_, Refusal>>()?;
        self.note_border("answers", since);
        // The next query is another one.
        goals.iter().filter(|id| program.tensor(**id).hidden).for_each(|id| self.forget(*id));
        Ok(Some((values, counts)))
    }

    /// The goals that are derived together, once there are relations, rules and facts of all that they need.
    fn built_together(
        &mut self,
        program: &Program,
        goals: &BTreeSet<TensorId>,
    ) -> Result<Option<Vec<TensorId>>, Refusal> {
        let needed = program.needs(&goals.iter().copied().collect::<Vec<_>>());
        let mut readers: BTreeMap<TensorId, Vec<TensorId>> = BTreeMap::new();
        for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
            equation
                .visit_reads(&mut |read, _| readers.entry(read.tensor).or_default().push(equation.tensor));
        }
        let known = |session: &Session, id: &TensorId| {
            session.compiler.rules.contains_key(id) || super::ring(program, *id).is_some()
        };
        let apart = |session: &Session, id: &TensorId| {
            let (role, bound) = (program.tensor(*id).role, !program.tensor(*id).places.is_empty());
            let open = role == Role::Computed && !goals.contains(id) && !session.whole.contains(id);
            // A demand binds places.
            let below = open && bound;
            role == Role::Parameter || below || session.compiler.declined.contains(id) || !known(session, id)
        };
        let mut left: BTreeSet<TensorId> = needed.clone();
        for _ in 0..TRIES {
            let mut open: Vec<TensorId> = left.iter().filter(|id| apart(self, id)).copied().collect();
            while let Some(id) = open.pop() {
                if left.remove(&id) {
                    open.extend(readers.get(&id).into_iter().flatten());
                }
            }
            let own: Vec<TensorId> = goals.intersection(&left).copied().collect();
            if own.len() < 2 {
                return Ok(None);
            }
            if let Some(built) = self.compiler.build(program, &program.needs(&own)) {
                return built.map(|()| Some(own));
            }
        }
        Ok(None)
    }
}
