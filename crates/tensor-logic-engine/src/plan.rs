//! The plan of a program: who would evaluate each component for its queries, before anything is evaluated.
//!
//! Enter at [`plan`]. It goes the way of [`crate::auto`] with the same decisions: rules where rules are enough, else
//! blocks, over what rules derive. Numbers are estimates; where something is decided by what is not there yet, the plan
//! says `open` or nothing, or names both that may do it.

use std::collections::{BTreeMap, BTreeSet};

use crate::auto::{evaluated_before, from_the_top};
use crate::bound::{Narrowed, narrowed};
use crate::datalog::{Session, for_rules};
use crate::engine::Budget;
use crate::error::Result;
use crate::fast::Fast;
use crate::gradient::adjoint;
use crate::handed::with_data;
use crate::profile::Profile;
use crate::program::{Action, Component, Given, Kind, Program, Role, TensorId};
use crate::weighted;

/// How a program would be evaluated for its queries and writes, or, if it has none, for all that it computes; `fast`
/// says how blocks are kept.
///
/// # Errors
/// Refusals that loading the facts meets: `overflow`, `budget`.
pub fn plan(program: &Program, fast: &Fast, budget: Budget) -> Result<Profile> {
    let mut planner = Planner { fast, budget, profile: Profile::default() };
    let mut asked = false;
    for action in &program.actions {
        asked = true;
        match action {
            Action::Write { tensor, .. } => planner.goals(program, &[*tensor])?,
            Action::Query(query) => {
                if query.directives.minimize.is_some() {
                    let grown = adjoint(program, query.tensor, &program.learnable(query.tensor));
                    let mut goals = vec![query.tensor];
                    goals.extend(grown.gradients.iter().flatten());
                    planner.goals(&grown.program, &goals)?;
                }
                planner.goals(program, &[query.tensor])?;
            }
        }
    }
    if !asked {
        let ids = (0..).map(TensorId).zip(&program.tensors);
        let computed = ids.filter(|(_, tensor)| tensor.role == Role::Computed && !tensor.hidden);
        planner.goals(program, &computed.map(|(id, _)| id).collect::<Vec<_>>())?;
    }
    Ok(planner.profile)
}

struct Planner<'f> {
    fast: &'f Fast,
    budget: Budget,
    profile: Profile,
}

impl Planner<'_> {
    /// Adds what goals need.
    fn goals(&mut self, program: &Program, goals: &[TensorId]) -> Result<()> {
        let asked = weighted::asked(program, goals);
        if !asked.is_empty() {
            self.profile.add(weighted::planned(program, &asked));
            let mut rest = weighted::inputs(program, &asked);
            rest.extend(goals.iter().filter(|goal| !asked.contains_key(goal)));
            let rest: Vec<TensorId> = rest.into_iter().collect();
            let handed = weighted::handed(program, &asked);
            return if rest.is_empty() { Ok(()) } else { self.goals(&handed, &rest) };
        }
        let mut open = Vec::new();
        for goal in goals {
            match Session::default().planned(program, *goal)? {
                Some((profile, sure)) => {
                    self.profile.append(profile);
                    open.extend((!sure).then_some(*goal));
                }
                None => open.push(*goal),
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        let mut derived: BTreeMap<TensorId, Vec<Given>> = BTreeMap::new();
        let mut tried = BTreeSet::new();
        let narrowed = self.parts(program, &open, &mut derived)?;
        let program = narrowed.as_ref().map_or(program, |narrowed| &narrowed.program);
        from_the_top(program, &open, &mut |component, tensors| {
            self.are_derived(program, component, tensors, (&mut tried, &mut derived))
        })?;
        let seen = derived.keys().copied().collect();
        let fed;
        let fed = if derived.is_empty() {
            program
        } else {
            fed = with_data(program, derived);
            &fed
        };
        self.profile.append(self.fast.planned(fed, &open, &seen, self.budget));
        Ok(())
    }

    /// The program that reads parts of relations, if rules surely make those that goals need.
    fn parts(
        &mut self,
        program: &Program,
        goals: &[TensorId],
        derived: &mut BTreeMap<TensorId, Vec<Given>>,
    ) -> Result<Option<Narrowed>> {
        let mut whole = BTreeSet::new();
        'narrower: while let Some(narrowed) = narrowed(program, &whole) {
            let needed = narrowed.program.needs(goals);
            let mut planned = Profile::default();
            derived.clear();
            for (part, of) in narrowed.parts.iter().filter(|(part, _)| needed.contains(part)) {
                match Session::default().planned(&narrowed.program, *part)? {
                    Some((profile, true)) => planned.append(profile),
                    _ => {
                        whole.insert(*of);
                        continue 'narrower;
                    }
                }
                derived.insert(*part, Vec::new());
            }
            self.profile.append(planned);
            return Ok(Some(narrowed));
        }
        derived.clear();
        Ok(None)
    }

    /// Plans these tensors of a component as far as they are made by rules; says whether all surely are.
    fn are_derived(
        &mut self,
        program: &Program,
        component: &Component,
        tensors: &[TensorId],
        (tried, derived): (&mut BTreeSet<TensorId>, &mut BTreeMap<TensorId, Vec<Given>>),
    ) -> Result<bool> {
        for id in tensors {
            if derived.contains_key(id) || !for_rules(program, component, *id) || !tried.insert(*id) {
                continue;
            }
            let mut found = Session::default().planned(program, *id)?;
            let mut valued = false;
            if found.is_none()
                && let Some(inputs) = evaluated_before(program, component)
            {
                self.goals(program, &inputs)?;
                let nothing = inputs.iter().map(|id| (*id, Vec::new()));
                // Where values may be below 0, they decide whether rules are enough.
                valued = inputs.iter().any(|id| program.tensor(*id).kind != Kind::Bool);
                found = Session::default().planned(&with_data(program, nothing.collect()), *id)?;
            }
            if let Some((profile, sure)) = found {
                self.profile.append(profile);
                if sure && !valued {
                    derived.insert(*id, Vec::new());
                }
            }
        }
        Ok(tensors.iter().all(|id| derived.contains_key(id)))
    }
}
