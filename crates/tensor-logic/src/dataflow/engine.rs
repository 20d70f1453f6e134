//! All answers of a program by a dataflow, once: [`Dataflow`].

use datarel_dataflow::datarel::{self, Failure, RelationId};
use datarel_dataflow::{Cluster, Holder, Options, evaluate};
use tensor_logic_engine::datalog::{Compiled, compile_all};

use crate::ast::Span;
use crate::engine::{Budget, Engine, Request, Value};
use crate::error::{Code, Refusal, Result};
use crate::program::{Action, Form, Program, Role, Style, TensorId};

/// The relations of a program, derived.
pub struct Dataflow {
    stamp: u64,
    compiled: Compiled,
    derived: Vec<(String, u64)>,
}

/// Why there are no answers.
#[derive(Debug)]
pub enum Trouble {
    /// The program.
    Program(Box<Refusal>),
    /// The other processes, or this one among them.
    Processes(datarel_dataflow::Refusal),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        Trouble::Program(Box::new(refusal))
    }
}

impl Dataflow {
    /// Answers all queries and file writes of a program at once, by workers of this process and of the others, if there are
    /// any; `None` where another process has the answers. `text` is what all processes must have alike beside the facts.
    ///
    /// # Errors
    /// A construct that is no rule over relations, what the evaluation refuses, a process that does not answer.
    pub fn evaluate(
        program: &Program,
        text: &str,
        budget: Budget,
        (workers, cluster): (usize, Option<Cluster>),
    ) -> std::result::Result<Option<Dataflow>, Trouble> {
        let goals = goals(program)?;
        let mut compiled = compile_all(program, &goals)?;
        let relations: Vec<_> =
            program.needs(&goals).iter().filter_map(|id| compiled.relation(*id)).collect();
        let cluster = cluster.map(|cluster| Cluster { token: token(text, &compiled), ..cluster });
        let options = Options { workers, limits: limits(budget), cluster };
        let rules = compiled.rules.clone();
        let holder = evaluate(&mut compiled.database, &rules, &relations, &options);
        match holder.map_err(|refusal| refused(program, &compiled, refusal))? {
            Holder::Elsewhere => Ok(None),
            Holder::Here => {
                let derived = derived(program, &compiled, &goals);
                Ok(Some(Dataflow { stamp: program.stamp.number(), compiled, derived }))
            }
        }
    }
}

/// What a budget allows.
pub(super) fn limits(budget: Budget) -> datarel::Limits {
    datarel::Limits { tuples: budget.tuples, bytes: budget.bytes, ..datarel::Limits::default() }
}

/// A number made from what all processes must have alike.
fn token(text: &str, compiled: &Compiled) -> u64 {
    let mut hash = blake3::Hasher::new();
    hash.update(text.as_bytes());
    for id in (0..compiled.database.relations()).map(|at| RelationId(at as u32)) {
        let relation = compiled.database.relation(id);
        hash.update(relation.name().as_bytes());
        for code in relation.rows() {
            hash.update(&code.to_le_bytes());
        }
        for value in relation.values() {
            hash.update(&value.0.to_le_bytes());
        }
    }
    let [a, b, c, d, e, f, g, h, ..] = *hash.finalize().as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// How many tuples the computed relations hold.
fn derived(program: &Program, compiled: &Compiled, goals: &[TensorId]) -> Vec<(String, u64)> {
    let needed = program.needs(goals);
    let own = needed.iter().filter(|id| {
        let tensor = program.tensor(**id);
        tensor.role == Role::Computed && !tensor.hidden && tensor.style == Style::Round
    });
    let count = |id: &TensorId| {
        let relation = compiled.database.relation(compiled.relation(*id)?);
        Some((program.name(*id).to_owned(), relation.len() as u64))
    };
    own.filter_map(count).collect()
}

/// The tensors that answers are made of, if no query asks for more than its relation.
pub(super) fn goals(program: &Program) -> Result<Vec<TensorId>> {
    let goal = |action: &Action| match action {
        Action::Write { tensor, .. } => Ok(*tensor),
        Action::Query(query) => {
            let asked = &query.directives;
            let directive = [
                ("@minimize", asked.minimize.is_some()),
                ("@sample", asked.sample.is_some()),
                ("@semiring", asked.semiring.is_some()),
                ("@embed", asked.embed.is_some()),
                ("@explain", asked.explain),
                ("a query of a model", matches!(query.form, Form::Model(_))),
            ];
            match directive.into_iter().find(|(_, asked)| *asked) {
                Some((name, _)) => {
                    Err(no_dataflow(query.span, &format!("{name} asks for more than a relation")))
                }
                None => Ok(query.tensor),
            }
        }
    };
    program.actions.iter().map(goal).collect()
}

/// What is no dataflow.
pub(super) fn no_dataflow(span: Span, what: &str) -> Refusal {
    let help = "only rules over relations are dataflows: run the program without workers";
    Refusal::new(Code::NotYet, span, format!("no dataflow: {what}")).help(help)
}

/// What the evaluation refuses, as the language refuses it.
pub(super) fn refused(program: &Program, compiled: &Compiled, refusal: datarel_dataflow::Refusal) -> Trouble {
    use datarel_dataflow::Refusal as Broken;
    let refusal = match refusal {
        // Rules for which there is no plan are no rules here, as they are none for the engine, which goes on to blocks.
        Broken::Failure(Failure::Rule { rule, reason }) => {
            let (name, span) = head(program, compiled, rule);
            no_dataflow(span, &format!("a rule of `{name}` has no plan: {reason}"))
        }
        Broken::Failure(Failure::NotStratified { relation }) => {
            let tensor = compiled.tensor(relation).unwrap_or(TensorId(0));
            let what = format!("`{}` depends on its own negation", program.name(tensor));
            no_dataflow(program.left_side(tensor), &what)
        }
        Broken::Failure(failure) => compiled.refusal(program, failure),
        Broken::SumInRecursion { relation } => {
            let tensor = compiled.tensor(relation).unwrap_or(TensorId(0));
            let what = format!("`{}` is a sum in a recursion", program.name(tensor));
            no_dataflow(program.left_side(tensor), &what)
        }
        Broken::Constant { rule } => {
            let (name, span) = head(program, compiled, rule);
            no_dataflow(span, &format!("`{name}` makes an integer beyond ±2^29 that is in no fact"))
        }
        other => return Trouble::Processes(other),
    };
    refusal.into()
}

/// The tensor that a rule defines, and where.
fn head<'a>(program: &'a Program, compiled: &Compiled, rule: usize) -> (&'a str, Span) {
    let origin = compiled.rules.get(rule).and_then(|rule| rule.origin);
    let equation = origin.and_then(|at| program.equations.get(at as usize));
    equation.map_or(("?", Span::default()), |equation| (program.name(equation.tensor), equation.head_span))
}

impl Engine for Dataflow {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        let value = |goal: &TensorId| {
            let own = request.program.stamp.number() == self.stamp;
            let value = if own { self.compiled.value(request.program, *goal) } else { None };
            value.ok_or_else(|| {
                no_dataflow(request.program.tensor(*goal).span, "it was not asked for when the work began")
            })
        };
        goals.iter().map(value).collect()
    }

    fn derived(&self) -> &[(String, u64)] {
        &self.derived
    }
}
