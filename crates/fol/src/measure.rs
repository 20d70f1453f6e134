//! Measures of formulas: nodes, quantifier depth, level (F24).

use crate::ast::{Definition, Formula, Statement, Text};

/// The three measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measures {
    /// The number of nodes.
    pub nodes: u64,
    /// The largest number of quantifiers on one path.
    pub quantifier_depth: u64,
    /// The level, 1 to 4; 0 for a text that is not one formula.
    pub level: u8,
}

/// Atoms count 1; NOT, binary connectives and quantifiers count 1 plus their operands.
pub fn nodes(formula: &Formula) -> u64 {
    match formula {
        Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => 1,
        Formula::Not(operand) | Formula::Quantified(_, _, _, operand) => 1 + nodes(operand),
        Formula::Binary(_, left, right) => 1 + nodes(left) + nodes(right),
    }
}

/// The number of nodes as a size.
pub(crate) fn size(formula: &Formula) -> usize {
    usize::try_from(nodes(formula)).unwrap_or(usize::MAX)
}

/// The largest number of quantifiers on one path.
pub fn quantifier_depth(formula: &Formula) -> u64 {
    match formula {
        Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => 0,
        Formula::Not(operand) => quantifier_depth(operand),
        Formula::Quantified(_, _, _, body) => 1 + quantifier_depth(body),
        Formula::Binary(_, left, right) => quantifier_depth(left).max(quantifier_depth(right)),
    }
}

/// 1 atomic, 2 simple compound, 3 quantified, 4 nested.
pub fn level(formula: &Formula) -> u8 {
    measures(formula).level
}

/// The level of a formula of so many nodes and such a quantifier depth.
pub(crate) fn level_of(nodes: u64, quantifier_depth: u64) -> u8 {
    match (nodes, quantifier_depth) {
        (1, _) => 1,
        (_, 0) => 2,
        (_, 1) => 3,
        _ => 4,
    }
}

/// The measures of a formula.
pub fn measures(formula: &Formula) -> Measures {
    let (nodes, quantifier_depth) = (nodes(formula), quantifier_depth(formula));
    Measures { nodes, quantifier_depth, level: level_of(nodes, quantifier_depth) }
}

/// The measures of a record. A text that is not one formula without final DOT has level 0, the sum of the
/// nodes and the maximal quantifier depth over its formulas, heads of definitions left out.
pub fn of_record(text: &Text) -> Measures {
    if let Some(formula) = text.as_formula() {
        return measures(formula);
    }
    let mut sum = Measures { nodes: 0, quantifier_depth: 0, level: 0 };
    for formula in text.statements.iter().flat_map(formulas) {
        sum.nodes += nodes(formula);
        sum.quantifier_depth = sum.quantifier_depth.max(quantifier_depth(formula));
    }
    sum
}

/// The formulas of a statement, from the left.
pub(crate) fn formulas(statement: &Statement) -> Vec<&Formula> {
    match statement {
        Statement::Formula(formula) => vec![formula],
        Statement::Sequent(_, premises, conclusion) => premises.iter().chain(conclusion).collect(),
        Statement::Definition(Definition::Predicate(_, _, body)) => vec![body],
        Statement::Definition(_) => Vec::new(),
        Statement::Equivalence(left, right) => vec![left, right],
    }
}
