//! Proofs to straight-line programs: section 12.
//!
//! Compilation is evaluation. Over the carrier of `builder`, an operator is a combination of instructions, and
//! composing two operators writes an instruction, unless it is there already.

mod builder;
mod plan;
mod run;

use builder::{Builder, MAX_INSTRUCTIONS};
pub use plan::{Backend, Coefficient, Degree, Instruction, Plan};
pub use run::{Inputs, Operand};

use crate::argument::supported;
use crate::denote::{Carrier, Evaluator, ValueId};
use crate::elaborate::{Extension, elaborate_against};
use crate::error::{Kind, Refusal, Result, Source};
use crate::formula::Formula;
use crate::json::{Json, refuse};
use crate::parse;
use crate::program::{Checked, Program};
use crate::ring::Ring;

/// What an argument of a proof is filled with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Slot {
    /// An operator that is supplied at run time.
    #[default]
    Operator,
    /// A combination of closed terms, with coefficients that are supplied at run time.
    Mix(Vec<String>),
}

impl Slot {
    /// The slot that a JSON value describes.
    ///
    /// # Errors
    /// `argument`
    pub fn read(json: &Json) -> Result<Self> {
        if json.only(["operator"]) == Some([&Json::True]) {
            return Ok(Self::Operator);
        }
        let Some([Json::Array(terms)]) = json.only(["mix"]) else {
            return Err(refuse("a slot is `{\"operator\":true}` or `{\"mix\":[…]}`"));
        };
        let terms = terms.iter().map(|term| match term {
            Json::Text(term) => Ok(term.clone()),
            _ => Err(refuse("`mix` is a list of texts")),
        });
        Ok(Self::Mix(terms.collect::<Result<_>>()?))
    }
}

/// One program for several closed proofs, which share instructions.
///
/// # Errors
/// `not-compilable`, `argument`, `unsupported`, `limit`, and refusals of the terms of a mixture.
pub fn compile(program: &Program, subjects: &[Checked], slots: &[Slot], backend: Backend) -> Result<Plan> {
    compile_within(program, subjects, slots, backend, MAX_INSTRUCTIONS)
}

/// The same for a caller who has a use for short programs only: a longer one is refused as soon as it is that long.
///
/// # Errors
/// As for [`compile`].
pub fn compile_within(
    program: &Program,
    subjects: &[Checked],
    slots: &[Slot],
    backend: Backend,
    most: usize,
) -> Result<Plan> {
    let mut evaluator = Evaluator::new(Builder::new(backend, most.min(MAX_INSTRUCTIONS)), program.order());
    let mut results = Vec::with_capacity(subjects.len());
    for subject in subjects {
        supported(&subject.term, Extension::None)?;
        let value = filled(program, &mut evaluator, subject, slots)?;
        results.push(result(&mut evaluator, value)?);
    }
    Ok(evaluator.carrier().plan(&results)?)
}

/// The value of a proof after its slots are filled: an operator between atoms.
fn filled(
    program: &Program,
    evaluator: &mut Evaluator<Builder>,
    subject: &Checked,
    slots: &[Slot],
) -> Result<ValueId> {
    let not_compilable = |why: String, help: &str| {
        Refusal::new(Kind::NotCompilable, why).found(&subject.formula).help(help.to_owned())
    };
    let mut formula = subject.formula.clone();
    let mut fillings = Vec::new();
    while formula.as_operator().is_none() {
        let Some((domain, codomain)) = formula.as_lolli() else {
            let why = format!("the type `{}` does not end in `α -o β`", subject.formula.short());
            return Err(not_compilable(why, "a program computes an operator between atoms"));
        };
        let slot = slots.get(fillings.len()).cloned().unwrap_or_default();
        let inner = domain.as_bang().unwrap_or(domain);
        if slot == Slot::Operator && inner.as_operator().is_none() {
            let why = format!("no operator fits the argument of type `{}`", domain.short());
            return Err(not_compilable(why, "fill it with a mixture of terms: `--slot '{\"mix\":[…]}'`"));
        }
        fillings.push((slot, domain.clone()));
        formula = codomain.clone();
    }
    if slots.len() > fillings.len() {
        return Err(refuse(format!("there are more slots than arguments of `{}`", subject.formula.short())));
    }
    let mut value = evaluator.closed(&subject.term)?;
    for (number, (slot, domain)) in fillings.into_iter().enumerate() {
        let inner = domain.as_bang().unwrap_or(&domain);
        let mut argument = match slot {
            Slot::Operator => {
                let input = evaluator.carrier_mut().input(number)?;
                evaluator.operator_value(input)
            }
            Slot::Mix(terms) => mixture(program, evaluator, number, &terms, inner)?,
        };
        if domain.is_banged() {
            argument = evaluator.point(argument);
        }
        value = evaluator.apply(value, argument)?;
    }
    Ok(value)
}

/// Σ cᵢ tᵢ
fn mixture(
    program: &Program,
    evaluator: &mut Evaluator<Builder>,
    slot: usize,
    terms: &[String],
    formula: &Formula,
) -> Result<ValueId> {
    let mut sum = Vec::with_capacity(terms.len());
    for (index, text) in terms.iter().enumerate() {
        let source = Source::new("<slot>", text.clone().into_bytes());
        let term = elaborate_against(program, &source, &parse::query(&source)?, formula)?;
        supported(&term.term, Extension::None)?;
        let coefficient = evaluator.carrier().ring().variable(&format!("{slot}.{index}"));
        let coefficient =
            coefficient.ok_or_else(|| Refusal::new(Kind::Limit, "there are too many coefficients"))?;
        sum.push((coefficient, evaluator.closed(&term.term)?));
    }
    Ok(evaluator.combine(sum)?)
}

/// The instruction that holds the result.
fn result(evaluator: &mut Evaluator<Builder>, value: ValueId) -> Result<usize> {
    let found = match evaluator.carrier_mut().vector()? {
        Some(vector) => {
            let vector = evaluator.vector_value(vector);
            let image = evaluator.apply(value, vector)?;
            evaluator.vector(image)
        }
        None => evaluator.operator(value)?,
    };
    Ok(evaluator.carrier_mut().emit(&found.unwrap_or_default())?)
}
