//! The type of a proof as a cell sees it: what its arguments want, and why something does not fit them.

use linear_logic::compile::Slot;
use linear_logic::elaborate::{Mode, elaborate, elaborate_against};
use linear_logic::error::Source;
use linear_logic::formula::Formula;
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::program::{Checked, Program};
use linear_logic::stack::on_large_stack;

use super::{MOST_SHOWN, proof};
use crate::error::{Kind, Refusal, Result};
use crate::nearest::cut;

/// A type S₁ ⊸ … ⊸ Sₙ ⊸ R, taken apart at the first R that is an operator α ⊸ β between atoms.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Signature {
    /// The whole, printed.
    pub(crate) text: String,
    /// The Sᵢ.
    pub(crate) arguments: Vec<Argument>,
    /// α and β.
    pub(crate) result: Option<(String, String)>,
}

/// An argument of a proof.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Argument {
    /// Its type, printed.
    pub(crate) text: String,
    /// α and β, if it is α ⊸ β or !(α ⊸ β).
    pub(crate) operator: Option<(String, String)>,
}

impl Signature {
    pub(super) fn of(formula: &Formula) -> Self {
        let atoms = |formula: &Formula| formula.as_operator().map(|(a, b)| (a.to_string(), b.to_string()));
        let text = cut(&formula.short(), MOST_SHOWN);
        let (mut arguments, mut rest) = (Vec::new(), formula);
        while rest.as_operator().is_none() {
            let Some((domain, codomain)) = rest.as_lolli() else { break };
            let operator = atoms(domain.as_bang().unwrap_or(domain));
            arguments.push(Argument { text: cut(&domain.short(), MOST_SHOWN), operator });
            rest = codomain;
        }
        Self { text, arguments, result: atoms(rest) }
    }

    /// What keeps these slots from filling the arguments: their number, or an operator where none fits.
    pub(crate) fn misfit(&self, slots: &[Slot]) -> Option<String> {
        let (found, expected) = (slots.len(), self.arguments.len());
        if found != expected {
            let types: Vec<String> = self.arguments.iter().map(|a| format!("`{}`", a.text)).collect();
            let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
            return Some(format!(
                "arguments of the proof before the state: {expected}{}; slots: {found}",
                cut(&types, MOST_SHOWN)
            ));
        }
        self.arguments.iter().zip(slots).enumerate().find_map(|(number, (argument, slot))| {
            let is_misfit = *slot == Slot::Operator && argument.operator.is_none();
            is_misfit.then(|| {
                let text = &argument.text;
                format!("argument {number} has the type `{text}`, which no operator fits; fill it with a `program`")
            })
        })
    }
}

/// Where a term of a mixture stands that is not of the type which its argument wants.
pub(super) fn faulty_term(program: &Program, proof: Option<&Checked>, slots: &[Slot]) -> Option<String> {
    let mut rest = &proof?.formula;
    for (number, slot) in slots.iter().enumerate() {
        let (domain, codomain) = rest.as_lolli()?;
        let wanted = domain.as_bang().unwrap_or(domain);
        if let Slot::Mix(terms) = slot {
            let fails = |text: &String| {
                let source = Source::new("<slot>", text.clone().into_bytes());
                let found =
                    parse::query(&source).and_then(|q| elaborate_against(program, &source, &q, wanted));
                found.is_err()
            };
            if let Some(at) = terms.iter().position(fails) {
                let wanted = cut(&wanted.short(), MOST_SHOWN);
                return Some(format!("`list[{at}]` of slot {number}, where `{wanted}` is wanted"));
            }
        }
        rest = codomain;
    }
    None
}

/// The type of a text, for who needs no program yet.
///
/// # Errors
/// `proof`, with the refusal of the language inside.
pub(crate) fn signature(what: &str, text: &str, order: Order) -> Result<Signature> {
    let made = on_large_stack(|| {
        let program = Program::new(order, Mode::default()).map_err(|inner| proof("the library", &inner))?;
        let source = Source::new("<proof>", text.as_bytes().to_vec());
        let found = parse::query(&source).and_then(|query| elaborate(&program, &source, &query));
        found.map(|found| Signature::of(&found.formula)).map_err(|inner| proof(what, &inner))
    });
    made.map_err(|error| Refusal::new(Kind::Proof, format!("no thread for the checker: {error}")))?
}
