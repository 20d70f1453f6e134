//! What the relational engine did, in the words of the language.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Session;
use crate::error::Refusal;
use crate::profile::{self, Executor, Layout, Order, Part, Profile, Stored, equation_label, label, written};
use crate::program::{EquationId, Program, Role, Style, TensorId};
use datarel::{Access, Database, Failure, JoinProfile, Limits, Method, RelationId, Rule, RuleProfile};

impl Session {
    /// Notes what is done from now on, or nothing any more.
    pub(crate) fn observe(&mut self, on: bool) {
        self.notes = on.then(Profile::default);
    }

    /// What was noted since.
    pub(crate) fn observed(&mut self) -> Profile {
        let noted = self.notes.take().unwrap_or_default();
        self.observe(true);
        noted
    }

    /// Forgets everything but the notes.
    pub(super) fn reset(&mut self) {
        let (notes, stop, apart) = (self.notes.take(), self.stop.clone(), self.apart);
        *self = Session { notes, stop, apart, ..Session::default() };
    }

    /// The time, where it matters.
    pub(super) fn now(&self) -> Option<Instant> {
        self.notes.as_ref().map(|_| Instant::now())
    }

    /// Facts were loaded, or an answer was handed over.
    pub(super) fn note_border(&mut self, what: &str, since: Option<Instant>) {
        if let (Some(notes), Some(since)) = (&mut self.notes, since) {
            let mut border = profile::Component::new(vec![what.to_owned()], None, Executor::Border);
            (border.calls, border.time) = (1, since.elapsed());
            notes.add(border);
        }
    }

    /// Evaluates rules.
    pub(super) fn evaluate(
        &mut self,
        program: &Program,
        tensors: &BTreeMap<RelationId, TensorId>,
        rules: &[Rule],
        limits: &Limits,
    ) -> Result<(), Failure> {
        let database = &mut self.compiler.database;
        let Some(notes) = &mut self.notes else {
            return datarel::evaluate(database, rules, limits).map(drop);
        };
        let mut profile = datarel::Profile::default();
        let done = datarel::evaluate_profiled(database, rules, limits, &mut profile);
        // Rules that are declined are evaluated in another way.
        if !done.as_ref().is_err_and(super::unplanned) {
            Names { program, database, tensors, rules }.add(profile, notes, Executor::Rules);
        }
        done.map(drop)
    }

    /// How rules would derive a goal: with demand where that is worth a try; `None` where they do not. Whether that is sure
    /// stands beside: sums along arcs are derived by rules where the arcs have no cycle, which is not looked at.
    ///
    /// # Errors
    /// Refusals that loading the facts meets.
    pub(crate) fn planned(
        &mut self,
        program: &Program,
        goal: TensorId,
    ) -> Result<Option<(Profile, bool)>, Refusal> {
        let needed = program.needs(&[goal]);
        match self.compiler.build(program, &needed) {
            None => return Ok(None),
            Some(built) => built?,
        }
        let mut tensors = self.compiler.tensors();
        let rules = self.compiler.rules_of(&needed);
        let Ok(demand) = self.demand(program, goal, &rules, &mut tensors) else { return Ok(None) };
        let database = &mut self.compiler.database;
        let explained = datarel::explain(database, &demand.rules);
        let Ok(explained) = explained else { return Ok(None) };
        let sums = |id: &RelationId| {
            matches!(database.relation(*id).ring().combine, datarel::Combine::Sum | datarel::Combine::Count)
        };
        let loops = explained.strata.iter().filter(|stratum| stratum.method != Method::Once);
        let sure = !loops.flat_map(|stratum| &stratum.relations).any(sums);
        let mut profile = Profile::default();
        for id in &needed {
            if program.tensor(*id).role != Role::Computed
                && let Some(relation) = self.compiler.relations.get(id)
            {
                let names = vec![label(program, *id)];
                let mut given = profile::Component::new(names, written(program, *id), Executor::Given);
                given.stored.push(kept(database, *relation, label(program, *id)));
                profile.add(given);
            }
        }
        let names = Names { program, database, tensors: &tensors, rules: &demand.rules };
        names.add(explained, &mut profile, Executor::Rules);
        database.truncate(self.compiler.declared);
        Ok(Some((profile, sure)))
    }
}

/// What relations and rules are called.
struct Names<'a> {
    program: &'a Program,
    database: &'a Database,
    tensors: &'a BTreeMap<RelationId, TensorId>,
    rules: &'a [Rule],
}

impl Names<'_> {
    fn add(&self, profile: datarel::Profile, into: &mut Profile, executor: Executor) {
        for stratum in profile.strata {
            let mut names: Vec<String> = Vec::new();
            let mut span = None;
            for relation in &stratum.relations {
                let name = self.relation(*relation);
                if !names.contains(&name) {
                    names.push(name);
                }
                span = span.or_else(|| written(self.program, *self.tensors.get(relation)?));
            }
            let done = !stratum.time.is_zero();
            let mut component = profile::Component::new(names, span, executor);
            component.method = Some(match stratum.method {
                Method::Once => "each once",
                Method::Search => "a search from each value",
                Method::Matrices => "products of rows of bits",
                Method::Rounds => "semi-naive rounds",
            });
            component.calls = u64::from(done);
            component.rounds = stratum.rounds;
            component.time = stratum.time;
            component.rows_out = if done { stratum.tuples } else { 0 };
            for relation in &stratum.relations {
                let mut stored = self.stored(*relation);
                if !done {
                    let one = stratum.relations.len() == 1 && stratum.method == Method::Once;
                    (stored.rows, stored.bytes) = (one.then_some(stratum.tuples), None);
                }
                component.stored.push(stored);
            }
            component.parts = stratum.rules.iter().map(|rule| self.part(rule, done)).collect();
            into.add(component);
        }
    }

    fn part(&self, rule: &RuleProfile, done: bool) -> Part {
        let of = self.rules.get(rule.rule);
        let equation = of.and_then(|rule| rule.origin).map(EquationId);
        let equation = equation.and_then(|id| self.program.equations.get(id.0 as usize));
        let mut text = match (equation, of) {
            (Some(equation), _) => equation_label(self.program, equation),
            (None, Some(rule)) => self.relation(rule.head),
            (None, None) => String::new(),
        };
        if let (Some(delta), Some(of)) = (rule.delta, of)
            && let Some(atom) = of.atoms().nth(delta)
            && of.atoms().filter(|other| other.relation == atom.relation).count() > 1
        {
            // One rule has several versions.
            text.push_str(&format!(", new in place {}", delta + 1));
        }
        let steps = rule.order.iter().filter_map(|join| self.join(join)).collect();
        let estimate = rule.order.iter().map(|join| join.estimate).product::<f64>();
        let rows = if done { rule.rows_out as f64 } else { estimate };
        let known = done || rule.delta.is_none();
        let order = Order { steps, rows: known.then_some(rows), of: None };
        Part {
            text,
            span: equation.and_then(|equation| written(self.program, equation.tensor).map(|_| equation.span)),
            calls: rule.joins,
            rows_in: rule.rows_in,
            rows_out: rule.rows_out,
            orders: if order.steps.is_empty() { Vec::new() } else { vec![order] },
            time: rule.time,
        }
    }

    fn join(&self, join: &JoinProfile) -> Option<String> {
        let relation = join.relation?;
        let there = (relation.0 as usize) < self.database.relations();
        let (name, arity) = (
            self.relation(relation),
            if there { self.database.relation(relation).arity() } else { join.bound },
        );
        Some(match (join.access, join.bound) {
            (Access::Rows, 0) => name,
            (Access::Rows, bound) => format!("{name} by {bound} of {arity} places"),
            (Access::New, _) => format!("what is new in {name}"),
            (Access::Meet, bound) => format!("{name} by {bound} of {arity} places, where all agree"),
            (Access::Exists, _) => format!("if in {name}"),
            (Access::Missing, _) => format!("if not in {name}"),
            (Access::Computed, _) => return None,
        })
    }

    fn relation(&self, id: RelationId) -> String {
        match self.tensors.get(&id) {
            Some(tensor) => label(self.program, *tensor),
            None if (id.0 as usize) < self.database.relations() => {
                self.database.relation(id).name().to_owned()
            }
            None => "a part".to_owned(),
        }
    }

    fn stored(&self, id: RelationId) -> Stored {
        let name = self.relation(id);
        if (id.0 as usize) >= self.database.relations() {
            return Stored { tensor: name, layout: Layout::Columns, rows: None, bytes: None };
        }
        let square = self.tensors.get(&id).is_some_and(|id| self.program.tensor(*id).style == Style::Square);
        let kept = kept(self.database, id, name);
        if square { Stored { layout: Layout::Support, ..kept } } else { kept }
    }
}

/// How a relation is kept.
fn kept(database: &Database, id: RelationId, tensor: String) -> Stored {
    let relation = database.relation(id);
    let layout = if relation.has_bits() { Layout::Bits } else { Layout::Columns };
    let (rows, bytes) = (Some(relation.len() as u64), Some(relation.bytes() as u64));
    Stored { tensor, layout, rows, bytes }
}
