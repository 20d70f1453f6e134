//! Whether a formula is of a counting signature, and if not, the first symbol that does not fit.
//!
//! The mask of the signature, in a scope with the free variables, takes the tokens of the formula one by one.

use crate::ast::{Formula, Text};
use crate::encode::encode;
use crate::error::{Kind, Refusal};
use crate::law::CountLaw;
use crate::mask::{Grammar, Mask, Options};
use crate::symbol::SymbolId;
use crate::{SymbolSet, expected_labels};

/// Refuses a formula that is not of the signature, at the first symbol that does not fit.
pub(super) fn check(
    formula: &Formula,
    law: &CountLaw,
    free: u64,
    bound: Option<usize>,
) -> Result<(), Refusal> {
    let mut signature = law.signature();
    signature.variables = signature.variables.max(1);
    let options = Options { within: Some(signature), closed: true, ..Options::new(Grammar::Formula) };
    let mut mask = Mask::below(&options, free, bound);
    let tokens = encode(&Text::formula(formula.clone()));
    for (at, &token) in tokens.iter().chain([&SymbolId::EOS]).enumerate() {
        let legal = *mask.legal();
        if mask.push(token).is_err() {
            let before = tokens.get(..at).unwrap_or(&tokens);
            let digits = before.iter().rev().take_while(|token| token.numeral().is_some()).count();
            let category = before.len().checked_sub(digits + 1).and_then(|at| before.get(at)).copied();
            let found = tokens.get(at).map_or("end", |token| token.label());
            return Err(refusal(token, legal, category.filter(|_| digits > 0)).at(at).found(found));
        }
    }
    Ok(())
}

/// The refusal of a symbol. After digits, those of an index of this category, what the index needs is told apart
/// from what could follow it.
fn refusal(symbol: SymbolId, legal: SymbolSet, category: Option<SymbolId>) -> Refusal {
    let (index, others): (Vec<_>, Vec<_>) = legal.iter().partition(|symbol| symbol.numeral().is_some());
    let (index, others): (SymbolSet, SymbolSet) = (index.into_iter().collect(), others.into_iter().collect());
    let predicate = category == Some(SymbolId::PRED);
    let (message, expected) = match symbol.numeral() {
        _ if category.is_none() => (symbol.label(), legal),
        Some(_) => (symbol.label(), index),
        None if others.is_empty() => ("end", index),
        None if predicate && others.contains(SymbolId::LPAREN) => ("end", others),
        // The predicate takes no arguments.
        None if predicate && symbol == SymbolId::LPAREN => (symbol.label(), SymbolSet::EMPTY),
        None => (symbol.label(), others),
    };
    Refusal::new(Kind::OffLaw, format!("{message} does not fit the signature of the law here"))
        .expected(expected_labels(&expected))
}
