//! What a law can produce: symbols, indices and arities, without its limits of depth and size.
//!
//! The checker (`check --law`) and the legal-symbol mask (`--within`) read it; every law can give it.

use crate::ast::{Connective, Quantifier, Relation, Turnstile};
use crate::symbol::SymbolId;

/// The symbols, indices and arities of a law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// NOT is there.
    pub not: bool,
    /// The binary connectives.
    pub connectives: Vec<Connective>,
    /// The quantifiers.
    pub quantifiers: Vec<Quantifier>,
    /// The relations between terms.
    pub relations: Vec<Relation>,
    /// The truth values.
    pub truth: Vec<bool>,
    /// For each predicate index, from 0, the arities that it may have, ascending.
    pub predicates: Vec<Vec<usize>>,
    /// For each function index, from 0, the arities that it may have, ascending.
    pub functions: Vec<Vec<usize>>,
    /// Constants are the indices below this number.
    pub constants: u64,
    /// Variables are the indices below this number.
    pub variables: u64,
    /// Sorts are the indices below this number.
    pub sorts: u64,
    /// A binder may stand without a sort.
    pub unsorted: bool,
    /// No variable is ever free.
    pub closed: bool,
    /// What a text may hold beside one formula.
    pub statements: Option<Statements>,
}

/// The statements of a law whose texts are more than one formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statements {
    /// A formula alone may be a statement.
    pub formula: bool,
    /// The sequents.
    pub sequents: Vec<Turnstile>,
    /// A conclusion may be `<unknown>`.
    pub unknown_conclusion: bool,
    /// `φ ≡ ψ`
    pub equivalence: bool,
    /// `P(x, …) ≔ φ`
    pub define_predicate: bool,
    /// `f(x, …) ≔ t`
    pub define_function: bool,
    /// `c ≔ t`
    pub define_constant: bool,
    /// A text may hold more than one statement.
    pub several: bool,
    /// A text may end in DOT.
    pub terminated: bool,
}

impl Signature {
    /// Whether a symbol occurs in any text of the law. DEFINE and DOT depend on their place; here they occur
    /// if some definition and some DOT do.
    pub fn has_symbol(&self, symbol: SymbolId) -> bool {
        let arity = |wanted: usize| {
            let lists = self.predicates.iter().chain(&self.functions);
            lists.flatten().any(|&arity| arity >= wanted)
        };
        let statement = |has: fn(&Statements) -> bool| self.statements.as_ref().is_some_and(has);
        match symbol {
            SymbolId::NOT => self.not,
            SymbolId::TRUE => self.truth.contains(&true),
            SymbolId::FALSE => self.truth.contains(&false),
            SymbolId::LPAREN | SymbolId::RPAREN => !self.connectives.is_empty() || arity(1),
            SymbolId::COMMA => arity(2) || statement(|s| !s.sequents.is_empty()),
            SymbolId::COLON | SymbolId::SORT => self.sorts > 0,
            SymbolId::VAR => self.variables > 0,
            SymbolId::CONST => self.constants > 0,
            SymbolId::PRED => self.predicates.iter().any(|arities| !arities.is_empty()),
            SymbolId::FUNC => self.functions.iter().any(|arities| !arities.is_empty()),
            SymbolId::UNKNOWN => statement(|s| s.unknown_conclusion),
            SymbolId::EQUIVALENT => statement(|s| s.equivalence),
            SymbolId::DEFINE => statement(|s| s.define_predicate || s.define_function || s.define_constant),
            SymbolId::DOT => statement(|s| s.several || s.terminated),
            _ => {
                Connective::from_symbol(symbol).is_some_and(|c| self.connectives.contains(&c))
                    || Quantifier::from_symbol(symbol).is_some_and(|q| self.quantifiers.contains(&q))
                    || Relation::from_symbol(symbol).is_some_and(|r| self.relations.contains(&r))
                    || Turnstile::from_symbol(symbol)
                        .is_some_and(|t| self.statements.as_ref().is_some_and(|s| s.sequents.contains(&t)))
            }
        }
    }

    /// Whether a name of a category (SORT and VAR: with any arity) can occur.
    pub fn has_name(&self, category: SymbolId, index: u64, arity: usize) -> bool {
        match category {
            SymbolId::PRED => has(&self.predicates, index, arity),
            SymbolId::FUNC => has(&self.functions, index, arity),
            SymbolId::CONST => index < self.constants,
            SymbolId::VAR => index < self.variables,
            SymbolId::SORT => index < self.sorts,
            _ => false,
        }
    }

    /// Whether a symbol of this category can be defined.
    pub fn defines(&self, category: SymbolId) -> bool {
        self.statements.as_ref().is_some_and(|s| match category {
            SymbolId::PRED => s.define_predicate,
            SymbolId::FUNC => s.define_function,
            SymbolId::CONST => s.define_constant,
            _ => false,
        })
    }
}

/// Whether an index may have this arity.
fn has(lists: &[Vec<usize>], index: u64, arity: usize) -> bool {
    let arities = usize::try_from(index).ok().and_then(|index| lists.get(index));
    arities.is_some_and(|arities| arities.contains(&arity))
}
