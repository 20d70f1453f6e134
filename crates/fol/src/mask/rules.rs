//! What a mask allows, and how few tokens complete it.
//!
//! A symbol is legal only if the input can still be completed within the budget, so every construct needs
//! its least cost. All of them follow from one number, the least cost of a term: 2 (`CONST 0`, or `VAR 0`),
//! or more if only variables with long indices may occur, or none.

use super::cost::{Cost, NEVER, TERM_COSTS, class, cost_if, of_class, sum};
use super::indices::Indices;
use super::options::{Grammar, Options};
use crate::ast::{Connective, Quantifier, Relation, Turnstile};
use crate::signature::Signature;
use crate::symbol::SymbolId;

/// Everything that does not change while symbols are pushed.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) grammar: Grammar,
    pub(super) closed: bool,
    pub(super) not: bool,
    pub(super) connectives: Vec<SymbolId>,
    pub(super) quantifiers: Vec<SymbolId>,
    pub(super) relations: Vec<SymbolId>,
    pub(super) truth: Vec<SymbolId>,
    pub(super) turnstiles: Vec<SymbolId>,
    pub(super) unknown: bool,
    pub(super) equivalence: bool,
    pub(super) several: bool,
    pub(super) terminated: bool,
    /// The categories that definitions may define.
    define: Vec<SymbolId>,
    /// The largest index of a variable, a constant, a sort, if there is one.
    pub(super) variables: Option<u64>,
    pub(super) constants: Option<u64>,
    pub(super) sorts: Option<u64>,
    pub(super) predicates: Indices,
    pub(super) functions: Indices,
    /// For each least cost of a term that of an atom.
    atoms: [Cost; TERM_COSTS],
    /// The least cost of a statement.
    pub(super) statement: Cost,
}

impl Rules {
    pub(super) fn new(options: &Options) -> Self {
        let law = options.within.as_ref();
        let statements = law.and_then(|law| law.statements.as_ref());
        let text = options.grammar == Grammar::Text;
        // What a law says, or everything without a law.
        let has = |symbol: SymbolId| law.is_none_or(|law| law.has_symbol(symbol));
        let allowed = |symbols: &[SymbolId]| symbols.iter().copied().filter(|&symbol| has(symbol)).collect();
        let defined = |category: &SymbolId| text && law.is_none_or(|law| law.defines(*category));
        let largest = |count: fn(&Signature) -> u64| match law {
            None => Some(options.max_index),
            Some(law) => count(law).checked_sub(1).map(|largest| largest.min(options.max_index)),
        };
        let mut rules = Self {
            grammar: options.grammar,
            closed: options.closed,
            not: law.is_none_or(|law| law.not),
            connectives: allowed(Connective::SYMBOLS),
            quantifiers: allowed(Quantifier::SYMBOLS),
            relations: allowed(Relation::SYMBOLS),
            truth: allowed(&[SymbolId::TRUE, SymbolId::FALSE]),
            turnstiles: if text { allowed(Turnstile::SYMBOLS) } else { Vec::new() },
            unknown: text && has(SymbolId::UNKNOWN),
            equivalence: text && has(SymbolId::EQUIVALENT),
            several: text && (law.is_none() || statements.is_some_and(|s| s.several)),
            terminated: text && (law.is_none() || statements.is_some_and(|s| s.terminated)),
            define: [SymbolId::PRED, SymbolId::FUNC, SymbolId::CONST].into_iter().filter(defined).collect(),
            variables: largest(|law| law.variables),
            constants: largest(|law| law.constants),
            sorts: largest(|law| law.sorts),
            predicates: Indices::new(law.map(|law| law.predicates.as_slice()), options.max_index, 0),
            functions: Indices::new(law.map(|law| law.functions.as_slice()), options.max_index, 1),
            atoms: [NEVER; TERM_COSTS],
            statement: NEVER,
        };
        rules.measure();
        rules
    }

    /// Fills in the least costs, from the inside out.
    fn measure(&mut self) {
        let costs: [Cost; TERM_COSTS] = std::array::from_fn(of_class);
        self.predicates.measure(&costs);
        self.functions.measure(&costs);
        self.atoms = costs.map(|term| {
            let relation = cost_if(!self.relations.is_empty(), sum([term, 1, term]));
            let truth = cost_if(!self.truth.is_empty(), 1);
            relation.min(truth).min(sum([1, self.predicates.root_cost(term)]))
        });
        let predicate_body: [Cost; 2] =
            [false, true].map(|some| self.formula(self.parameter_term(some), true));
        let function_body: [Cost; 2] = [false, true].map(|some| self.parameter_term(some));
        let variables = self.variables.is_some();
        self.predicates.measure_heads(variables, cost_if(self.defines(SymbolId::PRED), 0), predicate_body);
        self.functions.measure_heads(variables, cost_if(self.defines(SymbolId::FUNC), 0), function_body);
        let constant =
            cost_if(self.defines(SymbolId::CONST) && self.constants.is_some(), sum([3, self.term(None)]));
        self.statement = [
            self.formula(self.term(None), true),
            cost_if(!self.turnstiles.is_empty(), sum([1, self.conclusion()])),
            sum([1, self.predicates.root_head()]),
            sum([1, self.functions.root_head()]),
            constant,
        ]
        .into_iter()
        .fold(NEVER, Cost::min);
    }

    /// Whether a definition may define a name of this category.
    pub(super) fn defines(&self, category: SymbolId) -> bool {
        self.define.contains(&category)
    }

    /// The least cost of a variable, if those in scope have at least so many digits.
    pub(super) fn variable(&self, in_scope: Option<u32>) -> Cost {
        match (self.closed, in_scope) {
            (false, _) => cost_if(self.variables.is_some(), 2),
            (true, digits) => digits.map_or(NEVER, |digits| 1 + digits),
        }
    }

    /// The least cost of a term.
    pub(super) fn term(&self, in_scope: Option<u32>) -> Cost {
        self.variable(in_scope).min(cost_if(self.constants.is_some(), 2))
    }

    /// The least cost of a term in a body, with parameters (of one digit) or without.
    fn parameter_term(&self, parameters: bool) -> Cost {
        self.term(parameters.then_some(1))
    }

    /// The least cost of a formula, from that of a term. `deeper`: a node more may enclose it.
    pub(super) fn formula(&self, term: Cost, deeper: bool) -> Cost {
        let atom = |term: Cost| self.atoms.get(class(term)).copied().unwrap_or(NEVER);
        // A quantifier brings a short variable into scope: the only other construct that can help.
        let helps = self.closed && deeper && !self.quantifiers.is_empty() && self.variables.is_some();
        atom(term).min(cost_if(helps, sum([3, atom(self.term(Some(1)))])))
    }

    /// The least cost of a conclusion.
    pub(super) fn conclusion(&self) -> Cost {
        self.formula(self.term(None), true).min(cost_if(self.unknown, 1))
    }
}
