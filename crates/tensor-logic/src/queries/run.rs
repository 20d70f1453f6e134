//! The run of a program: its queries and file writes in order, by any engine.
//!
//! Enter at [`run`]. A refusal ends the run and keeps the answers given before it. What needs the
//! world outside the program (files, learning, a second lowering) is asked of a [`Host`].

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::answer::{Answer, Content, Explained, Minimized, Sampled};
use crate::ast::Span;
use crate::embed;
use crate::engine::{Budget, Engine, Parameters, Request, Value};
use crate::error::{Code, Places, Refusal, Result, Warning};
use crate::lower::InSemiring;
use crate::model;
use crate::program::{Action, Combine, Embed, Form, Kind, Minimize, Program, Query, Role, TensorId, Vectors};
use crate::reference::{probable, prove};
use crate::sample::{conditional, estimate};
use crate::start::start_values;
use crate::weighted::{Probable, explained};
use tensor_logic_core::weighted::clamped;

/// What a run asks of its surroundings.
pub trait Host {
    /// Writes a tensor to a file.
    ///
    /// # Errors
    /// `file-not-found`, `file-format`.
    fn write(
        &mut self,
        program: &Program,
        file: &str,
        tensor: TensorId,
        value: &Value,
        span: Span,
    ) -> Result<()>;

    /// Learns: changes the parameters so that the goal gets smaller.
    ///
    /// # Errors
    /// Refusals of the evaluation.
    fn minimize(
        &mut self,
        engine: &mut dyn Engine,
        program: &Program,
        budget: Budget,
        parameters: &mut Parameters,
        goal: TensorId,
        minimize: &Minimize,
    ) -> Result<Minimized>;

    /// The program lowered in another semiring, with the same actions.
    ///
    /// # Errors
    /// Refusals of the program in that semiring.
    fn in_semiring(&mut self, asked: InSemiring) -> Result<Program>;
}

/// What a run says.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The answers, in order.
    pub answers: Vec<Answer>,
    /// Warnings of the run.
    pub warnings: Vec<Warning>,
    /// The files written, in order.
    pub written: Vec<String>,
    /// What ended the run early.
    pub refusal: Option<Refusal>,
    /// The parameters at the end.
    pub parameters: Parameters,
}

/// Carries out all queries and file writes of a program.
pub fn run(
    program: &Program,
    text: &str,
    budget: Budget,
    engine: &mut dyn Engine,
    host: &mut dyn Host,
) -> Outcome {
    run_from(program, text, budget, engine, host, Parameters::new())
}

/// The same with values of parameters that were learned before.
pub fn run_from(
    program: &Program,
    text: &str,
    budget: Budget,
    engine: &mut dyn Engine,
    host: &mut dyn Host,
    parameters: Parameters,
) -> Outcome {
    let outcome = Outcome { parameters, ..Outcome::default() };
    let mut run = Run { text, places: Places::new(text), budget, engine, host, outcome };
    for (at, action) in program.actions.iter().enumerate() {
        let done = match action {
            Action::Query(query) => run.query(program, at, query),
            Action::Write { file, tensor, span } => run.write(program, file, *tensor, *span),
        };
        if let Err(report) = done {
            run.outcome.refusal = Some(report);
            break;
        }
    }
    run.outcome
}

/// What a run refuses without evaluation, for `check`: `missing-data`, `not-scalar`,
/// `nothing-to-learn`, `not-a-model`, `unknown-evidence`.
pub fn refusals(program: &Program) -> Vec<Refusal> {
    let of = |action: &Action| match action {
        Action::Query(query) => before(program, query).err(),
        Action::Write { tensor, .. } => missing_data(program, *tensor).err(),
    };
    program.actions.iter().filter_map(of).collect()
}

/// What is refused before a query is evaluated.
fn before(program: &Program, query: &Query) -> Result<()> {
    missing_data(program, query.tensor)?;
    if let Some(minimize) = &query.directives.minimize {
        let rank = program.tensor(query.tensor).places.len();
        if rank > 0 {
            let message = format!("the goal of `@minimize` must be a scalar, and this one has rank {rank}");
            return Err(Refusal::new(Code::NotScalar, query.span, message));
        }
        if program.tensor(query.tensor).kind == Kind::Bool {
            let message = "the goal of `@minimize` must be a number, and this one is true or false";
            let help = "name the loss alone, as in `Loss? @minimize(…)`";
            return Err(Refusal::new(Code::NotScalar, query.span, message).help(help));
        }
        if program.learnable(query.tensor).is_empty() {
            let message = "the goal depends on no parameter";
            let help = "give a parameter a start, as in `W[i] ~ normal(0, 0.1)`";
            return Err(Refusal::new(Code::NothingToLearn, minimize.span, message).help(help));
        }
    }
    if let Some(asked) = &query.directives.embed {
        embed::check(program, query, asked)?;
    }
    match &query.form {
        Form::Model(query_of) => model::check(program, query, query_of),
        _ => Ok(()),
    }
}

/// The square tensors that a goal needs and nothing gives.
///
/// # Errors
/// `missing-data`, if there are any.
pub fn missing_data(program: &Program, goal: TensorId) -> Result<()> {
    let needed = program.needs(&[goal]);
    let missing = needed.into_iter().filter(|id| program.tensor(*id).role == Role::Missing);
    let missing: Vec<TensorId> = missing.collect();
    let Some(first) = missing.iter().map(|id| program.tensor(*id).span).min() else { return Ok(()) };
    let names: BTreeSet<&str> = missing.iter().map(|id| program.name(*id)).collect();
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    let message = format!("no data, equation or declaration gives {}", names.join(", "));
    let help = "give the data, an equation, or a start as in `W[i] ~ normal(0, 0.1)`";
    Err(Refusal::new(Code::MissingData, first, message).help(help))
}

/// The counts below a goal that cannot be held as they are written.
///
/// # Errors
/// `overflow` at the first of them, if there are any.
pub fn rounded(program: &Program, goal: TensorId) -> Result<()> {
    if program.rounded.is_empty() {
        return Ok(());
    }
    let needed = program.needs(&[goal]);
    let first = program.rounded.iter().find(|(id, _)| needed.contains(id));
    first.map_or(Ok(()), |(_, report)| Err(report.clone()))
}

struct Run<'a> {
    text: &'a str,
    places: Places<'a>,
    budget: Budget,
    engine: &'a mut dyn Engine,
    host: &'a mut dyn Host,
    outcome: Outcome,
}

impl Run<'_> {
    fn value(&mut self, program: &Program, tensor: TensorId) -> Result<Value> {
        self.start(program, tensor);
        let request = Request { program, parameters: &self.outcome.parameters, budget: self.budget };
        let values = self.engine.values(&request, &[tensor])?;
        Ok(values.into_iter().next().unwrap_or(Value::Tuples(Default::default())))
    }

    /// Gives the parameters below a goal their start. What is beyond the budget is left to the
    /// engine, which refuses it.
    fn start(&mut self, program: &Program, goal: TensorId) {
        for id in program.needs(&[goal]) {
            let tensor = program.tensor(id);
            let bytes =
                tensor.sizes().into_iter().fold(8u64, |bytes, size| bytes.saturating_mul(size as u64));
            let open = tensor.role == Role::Parameter && !self.outcome.parameters.contains_key(&id);
            if open && bytes <= self.budget.bytes {
                self.outcome.parameters.insert(id, start_values(program, id));
            }
        }
    }

    fn write(&mut self, program: &Program, file: &str, tensor: TensorId, span: Span) -> Result<()> {
        missing_data(program, tensor)?;
        rounded(program, tensor)?;
        let value = self.value(program, tensor)?;
        self.host.write(program, file, tensor, &value, span)?;
        self.outcome.written.push(file.to_owned());
        Ok(())
    }

    fn query(&mut self, program: &Program, at: usize, query: &Query) -> Result<()> {
        let mut program = Cow::Borrowed(program);
        let mut query = query.clone();
        if let Some(kind) = query.directives.semiring {
            let needed = program.needs(&[query.tensor]);
            let below = needed.iter().map(|id| program.tensor(*id).name.clone()).collect();
            program = Cow::Owned(self.host.in_semiring(InSemiring { kind, below, query: query.span })?);
            if let Some(Action::Query(same)) = program.actions.get(at) {
                query = same.clone();
            }
        }
        before(&program, &query)?;
        rounded(&program, query.tensor)?;
        let mut answer = Answer {
            text: query.text.clone(),
            line: self.places.of(query.span.start).0,
            kind: program.tensor(query.tensor).kind,
            content: Content::Scalar(None),
            counts: None,
            minimize: None,
            sample: None,
            embed: None,
            explain: None,
        };
        if let Some(minimize) = &query.directives.minimize {
            self.start(&program, query.tensor);
            let before = self.outcome.parameters.clone();
            let learned = self.host.minimize(
                self.engine,
                &program,
                self.budget,
                &mut self.outcome.parameters,
                query.tensor,
                minimize,
            );
            if learned.is_err() {
                // Nobody goes on with half of what was to be learned.
                self.outcome.parameters = before;
            }
            answer.minimize = Some(learned?);
        }
        self.content(&program, &query, &mut answer)?;
        if query.directives.explain {
            answer.explain = Some(match answer.explain.take() {
                // What embedding space retrieved is its own; a certified answer has the proofs of the symbolic one.
                Some(own)
                    if !answer.embed.is_some_and(|embed| embed.certified && answer.kind == Kind::Bool) =>
                {
                    own
                }
                Some(own) => Explained { proof: self.explain(&program, &query, &answer)?.proof, ..own },
                None => self.explain(&program, &query, &answer)?,
            });
        }
        self.finite(&program, &query, &answer);
        self.outcome.answers.push(answer);
        Ok(())
    }

    fn content(&mut self, program: &Program, query: &Query, answer: &mut Answer) -> Result<()> {
        self.start(program, query.tensor);
        let request = Request { program, parameters: &self.outcome.parameters, budget: self.budget };
        let sample = query.directives.sample;
        match &query.form {
            Form::Model(model) if sample.is_none() => {
                answer.content = model::answer(self.engine, &request, query, model)?;
                let warning = model::warning(program, query, model, answer.content.numbers());
                self.outcome.warnings.extend(warning);
                if model.conditional {
                    answer.kind = Kind::Real;
                }
                return Ok(());
            }
            _ => {}
        }
        if let Some(asked) = &query.directives.embed {
            return self.embedded(program, query, asked, answer);
        }
        if let Some((n, seed, place)) = sample {
            if let Form::Model(model) = &query.form
                && model.conditional
            {
                let (content, standard_errors) =
                    conditional(self.engine, &request, query, model, (n, seed, place))?;
                answer.content = content;
                answer.kind = Kind::Real;
                answer.sample = Some(Sampled { n, seed, standard_errors });
                return Ok(());
            }
            let evidence = match &query.form {
                Form::Model(model) => model.evidence.as_slice(),
                _ => &[],
            };
            let evidence: Vec<_> = evidence.iter().map(|(name, value, _)| (name.as_str(), *value)).collect();
            let restricted = model::restricted(program, query.tensor, &evidence);
            let request = Request { program: &restricted, ..request };
            let estimate = estimate(self.engine, &request, query.tensor, (n, seed), place)?;
            answer.content = Content::Scalar(Some(estimate.value));
            let standard_errors = estimate.standard_error.map(|error| vec![error]);
            answer.sample = Some(Sampled { n, seed, standard_errors });
            return Ok(());
        }
        let value = self.value(program, query.tensor)?;
        answer.counts = value.counts().map(<[i64]>::to_vec);
        answer.content = shaped(program, query, value);
        Ok(())
    }

    /// Answers in embedding space. The vectors may be parameters, which are no part of what the query needs.
    fn embedded(
        &mut self,
        program: &Program,
        query: &Query,
        asked: &Embed,
        answer: &mut Answer,
    ) -> Result<()> {
        if let Vectors::Rows(id) = asked.vectors {
            missing_data(program, id)?;
            self.start(program, id);
        }
        let request = Request { program, parameters: &self.outcome.parameters, budget: self.budget };
        let found = embed::answer(self.engine, &request, query, asked)?;
        (answer.content, answer.kind) = (found.content, found.kind);
        answer.embed = Some(found.embedded);
        if query.directives.explain {
            // Without a certificate the rules need not derive what was retrieved.
            answer.explain = Some(Explained { derived: found.derived, proof: None, proofs: None });
        }
        Ok(())
    }

    fn explain(&mut self, program: &Program, query: &Query, answer: &Answer) -> Result<Explained> {
        let sums: Vec<&str> = clamped(program).into_iter().map(|(_, sums)| program.name(sums)).collect();
        let mut derived = self.engine.derived().to_vec();
        derived.retain(|(name, _)| !sums.contains(&name.as_str()));
        let holds = match (&query.form, &answer.content) {
            (Form::Holds, Content::Scalar(Some(value))) => *value != 0.0,
            (Form::ValueOrNull, Content::Scalar(value)) => value.is_some(),
            _ => false,
        };
        let request = Request { program, parameters: &self.outcome.parameters, budget: self.budget };
        let found = match &query.form {
            Form::ValueOrNull => explained(&request, self.engine, query.tensor)?,
            _ => None,
        };
        let demanded = match (holds, &query.form) {
            (true, Form::Holds) => self.engine.below(&request, query.tensor)?,
            _ => None,
        };
        let known = found.as_ref().map(|found| &found.below).or(demanded.as_ref());
        let known = known.map_or(&[][..], Vec::as_slice);
        let proof = if holds { prove(&request, self.engine, query, self.text, known)? } else { None };
        let proofs = match &found {
            Some(Probable { derivations, below }) => {
                Some(probable(&request, self.engine, query, self.text, derivations, below)?)
            }
            None => None,
        };
        Ok(Explained { derived, proof, proofs })
    }

    /// Warns of a NaN, and of an infinity that no aggregator puts where nothing contributes.
    fn finite(&mut self, program: &Program, query: &Query, answer: &Answer) {
        let mut below = vec![query.tensor];
        if program.tensor(query.tensor).hidden {
            below.extend(program.reads_of(query.tensor));
        }
        let combines: Vec<Combine> = below.iter().map(|id| program.tensor(*id).combine).collect();
        let wild = |value: &f64| {
            let default = combines.iter().any(|combine| combine.default_value() == *value);
            !value.is_finite() && !default
        };
        if let Some(value) = answer.content.numbers().iter().find(|value| wild(value)) {
            let message = format!("the answer of `{}` holds {value}", query.text);
            self.outcome.warnings.push(Refusal::new(Code::NonFinite, query.span, message));
        }
    }
}

/// A value in the shape that the query asks for.
fn shaped(program: &Program, query: &Query, value: Value) -> Content {
    let tensor = program.tensor(query.tensor);
    let indices = match &query.form {
        Form::Values(labels) => labels.clone(),
        Form::Holds | Form::ValueOrNull | Form::Model(_) => Vec::new(),
    };
    match (&query.form, value) {
        (_, value @ (Value::Dense(_) | Value::Counts(_))) if tensor.places.is_empty() => {
            Content::Scalar(value.doubles().first().copied())
        }
        (_, value @ (Value::Dense(_) | Value::Counts(_))) => {
            let domains = tensor.places.iter().map(|place| place.domain.clone());
            let domains = domains.map(|domain| domain.unwrap_or(crate::value::Domain::size(0))).collect();
            Content::Tensor { indices, domains, values: value.doubles().into() }
        }
        (Form::Holds, Value::Tuples(tuples)) => {
            Content::Scalar(Some(if tuples.tuples.is_empty() { 0.0 } else { 1.0 }))
        }
        (Form::ValueOrNull | Form::Model(_), Value::Tuples(tuples)) => {
            Content::Scalar(tuples.values.first().copied())
        }
        (Form::Values(_), Value::Tuples(tuples)) => {
            let values = (tensor.kind != Kind::Bool).then_some(tuples.values);
            Content::Relation { indices, tuples: tuples.tuples, values }
        }
    }
}
