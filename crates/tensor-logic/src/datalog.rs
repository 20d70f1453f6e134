//! Rules of the core form on the relational engine.
//!
//! Enter at [`compile`]: if everything that a goal needs is relations joined by rules, it becomes
//! a database and rules over small integers, with the constants of the goal as demand. What is
//! not (a dense read, an average, a sum in recursion) makes it say no, and the goal goes to the
//! evaluation of blocks.
//!
//! `translate` turns one equation into rules; `answer` turns what the relational engine
//! derived back into values and refusals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::digits::EXACT_LIMIT;
use crate::engine::Budget;
use crate::error::Refusal;
use crate::program::{Combine, EquationId, Facts, Given, Kind, Program, Role, Style, TensorId};
use datarel::{self, Constants, Database, Failure, Limits, RelationId, Ring, Rule, magic};

mod answer;
mod translate;

/// A goal ready for the relational engine.
#[derive(Debug)]
pub struct Compiled {
    /// Constants, facts, and what is derived.
    pub database: Database,
    /// The rules, restricted to what the goal demands.
    pub rules: Vec<Rule>,
    /// Where the goal's tuples will be.
    pub goal: RelationId,
    /// The tensor that each relation stands for, copies for demand included.
    tensors: BTreeMap<RelationId, TensorId>,
}

/// Compiles a goal, or says no.
///
/// # Errors
/// Refusals that loading the facts meets: `overflow`, `budget`.
pub fn compile(program: &Program, goal: TensorId) -> Option<Result<Compiled, Refusal>> {
    let needed = program.needs(&[goal]);
    let constants = constants(program, &needed);
    match Compiler::build(program, &needed, &[goal], constants)? {
        Ok(compiler) => compiler.finish(goal),
        Err(report) => Some(Err(report)),
    }
}

/// Compiles several relations as a whole, without demand, over these constants. Tuples may be
/// inserted before the evaluation.
///
/// # Errors
/// See [`compile`].
pub fn compile_whole(
    program: &Program,
    goals: &[TensorId],
    constants: Constants,
) -> Option<Result<Compiled, Refusal>> {
    let needed = program.needs(goals);
    let built = Compiler::build(program, &needed, goals, constants)?;
    Some(built.map(|compiler| {
        let tensors = compiler.relations.iter().map(|(id, relation)| (*relation, *id)).collect();
        let goal = goals.first().and_then(|goal| compiler.relations.get(goal)).copied();
        let goal = goal.unwrap_or(RelationId(0));
        Compiled { database: compiler.database, rules: compiler.rules, goal, tensors }
    }))
}

impl Compiled {
    /// The relation of a tensor; of several copies the first.
    pub fn relation(&self, tensor: TensorId) -> Option<RelationId> {
        self.tensors.iter().find(|(_, id)| **id == tensor).map(|(relation, _)| *relation)
    }
}

/// Evaluates a compiled goal; says whether the relational engine has a plan for all its rules.
///
/// # Errors
/// `budget`, `divergence`, `overflow`.
pub fn evaluate(program: &Program, compiled: &mut Compiled, budget: Budget) -> Result<bool, Refusal> {
    let limits = Limits { tuples: budget.tuples, bytes: budget.bytes, ..Limits::default() };
    match datarel::evaluate(&mut compiled.database, &compiled.rules, &limits) {
        Ok(_) => compiled.digits_fit(program).map(|()| true),
        Err(failure) if unplanned(&failure) => Ok(false),
        Err(failure) => Err(answer::refusal(program, &compiled.database, &compiled.tensors, failure)),
    }
}

/// Whether the relational engine declines: a rule of a shape that it has no plan for.
fn unplanned(failure: &Failure) -> bool {
    matches!(failure, Failure::Rule { .. } | Failure::NotStratified { .. } | Failure::TooManyConstants)
}

struct Compiler<'a> {
    program: &'a Program,
    database: Database,
    relations: BTreeMap<TensorId, RelationId>,
    /// Relations that hold the values of declared domains.
    domains: Vec<(crate::value::Domain, RelationId)>,
    rules: Vec<Rule>,
}

/// The integers that the facts span keep their order.
fn constants(program: &Program, needed: &BTreeSet<TensorId>) -> Constants {
    let mut ends: Option<(i64, i64)> = None;
    let mut total = 0usize;
    for id in needed {
        for given in &program.tensor(*id).given {
            let Given::Facts(facts) = given else { continue };
            total += facts.constants.len();
            for value in facts.constants.iter().filter_map(|value| value.int()) {
                let (low, high) = ends.unwrap_or((value, value));
                ends = Some((low.min(value), high.max(value)));
            }
        }
    }
    match ends {
        // Not where a few constants lie far apart.
        Some((low, high)) if high.abs_diff(low) <= 4 * total as u64 + 1024 => Constants::integers(low, high),
        _ => Constants::default(),
    }
}

impl<'a> Compiler<'a> {
    /// Relations, rules and facts, or `None` where something is no relation.
    fn build(
        program: &'a Program,
        needed: &BTreeSet<TensorId>,
        goals: &[TensorId],
        constants: Constants,
    ) -> Option<Result<Compiler<'a>, Refusal>> {
        let mut compiler = Compiler {
            program,
            database: Database::new(constants),
            relations: BTreeMap::new(),
            domains: Vec::new(),
            rules: Vec::new(),
        };
        for id in needed {
            let ring = compiler.ring(*id, goals.contains(id))?;
            let tensor = program.tensor(*id);
            let relation = compiler.database.declare(tensor.name.clone(), tensor.places.len(), ring);
            compiler.relations.insert(*id, relation);
        }
        for (at, equation) in program.equations.iter().enumerate() {
            if needed.contains(&equation.tensor) {
                compiler.equation(EquationId(at as u32))?;
            }
        }
        if !compiler.sums_are_finished() {
            return None;
        }
        for id in needed {
            if let Err(failure) = compiler.load(*id)? {
                let tensors = compiler.relations.iter().map(|(id, relation)| (*relation, *id)).collect();
                return Some(Err(answer::refusal(program, &compiler.database, &tensors, failure)));
            }
        }
        Some(Ok(compiler))
    }

    /// The ring of a tensor, or `None` where the relational engine has none for it. A scalar
    /// that is asked for may be a sum of tuples.
    fn ring(&self, id: TensorId, goal: bool) -> Option<Ring> {
        let tensor = self.program.tensor(id);
        let scalar_sum = goal && tensor.places.is_empty() && tensor.combine == Combine::Sum;
        if tensor.style == Style::Square
            && !(scalar_sum && tensor.role == Role::Computed && tensor.given.is_empty())
        {
            return None;
        }
        let times = self.times_of(id)?;
        let combine = match (tensor.combine, tensor.kind) {
            (Combine::Exists, _) => return Some(Ring::BOOLEAN),
            (Combine::Or, _) => return None,
            (Combine::Sum, Kind::Count) => datarel::Combine::Count,
            (Combine::Sum, _) => datarel::Combine::Sum,
            (Combine::Max, _) => datarel::Combine::Max,
            (Combine::Min, _) => datarel::Combine::Min,
            (Combine::Times | Combine::Avg, _) => return None,
        };
        if tensor.kind == Kind::Count && combine != datarel::Combine::Count {
            return None;
        }
        Some(Ring { combine, times })
    }

    /// Loads what is given. `None`: not as a relation.
    fn load(&mut self, id: TensorId) -> Option<Result<(), Failure>> {
        let relation = *self.relations.get(&id)?;
        let given = self.program.tensor(id).given.clone();
        for given in &given {
            let Given::Facts(facts) = given else { return None };
            let counts = self.database.relation(relation).ring().counts();
            if counts && facts.values.iter().any(|value| value.fract() != 0.0 || value.abs() >= EXACT_LIMIT) {
                return None;
            }
            if let Err(failure) = self.facts(relation, facts) {
                return Some(Err(failure));
            }
        }
        Some(Ok(()))
    }

    fn facts(&mut self, relation: RelationId, facts: &Arc<Facts>) -> Result<(), Failure> {
        let mut rows = Vec::with_capacity(facts.constants.len());
        for value in &facts.constants {
            rows.push(self.database.constants.intern(*value)?);
        }
        let ring = self.database.relation(relation).ring();
        let value = |number: f64| {
            if ring.counts() { datarel::Value::count(number as i64) } else { datarel::Value::real(number) }
        };
        let values: Vec<datarel::Value> = match ring.valued() {
            true => (0..facts.count).map(|at| value(facts.value(at))).collect(),
            false => Vec::new(),
        };
        if facts.count > 0 {
            self.database.insert(relation, &rows, &values)?;
        }
        Ok(())
    }

    /// Sums are taken once, when all that they need is finished: none stands in a recursion.
    fn sums_are_finished(&self) -> bool {
        let sums = |id: &TensorId| self.program.tensor(*id).combine == Combine::Sum;
        self.program.components.iter().all(|component| {
            let recursive = !matches!(component.class, crate::program::Class::Plain);
            let here = component.tensors.iter().any(|id| self.relations.contains_key(id));
            !(recursive && here && component.tensors.iter().any(sums))
        })
    }

    /// Restricts the rules to what the goal asks for.
    fn finish(mut self, goal: TensorId) -> Option<Result<Compiled, Refusal>> {
        let mut tensors: BTreeMap<RelationId, TensorId> =
            self.relations.iter().map(|(id, relation)| (*relation, *id)).collect();
        let relation = self.relations.get(&goal).copied()?;
        let free = vec![None; self.program.tensor(goal).places.len()];
        match magic(&mut self.database, &self.rules, relation, &free) {
            Ok(demand) => {
                for (copy, original) in &demand.copies {
                    if let Some(tensor) = tensors.get(original).copied() {
                        tensors.insert(*copy, tensor);
                    }
                }
                let (rules, goal) = (demand.rules, demand.answer);
                Some(Ok(Compiled { database: self.database, rules, goal, tensors }))
            }
            Err(failure) if unplanned(&failure) => None,
            Err(failure) => Some(Err(answer::refusal(self.program, &self.database, &tensors, failure))),
        }
    }
}
