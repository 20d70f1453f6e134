//! Whether a formula is of a counting signature, and if not, the first symbol that does not fit.
//!
//! The walk goes over the tree and counts tokens on the way. At each place it knows which symbols could go on to
//! some formula of the signature; the first token outside them is refused.

use super::CountLaw;
use crate::ast::{Connective, Formula, Quantifier, Relation, Term, Variable};
use crate::blocks::{arity_in, numbered};
use crate::codec::{digits, shifted};
use crate::error::{Kind, Refusal};
use crate::index::{Block, IndexWeights};
use crate::symbol::{Numeral, SymbolId};
use crate::{SymbolSet, expected_labels};

/// Refuses a formula that is not of the signature, at the first symbol that does not fit.
pub(super) fn check(
    formula: &Formula,
    law: &CountLaw,
    free: u64,
    bound: Option<usize>,
) -> Result<(), Refusal> {
    let scope = (0..free).collect();
    Fit { law, scope, bound, position: 0 }.formula(formula).map_err(|refusal| {
        let tokens = crate::encode::encode_formula(formula);
        let found = refusal.token.and_then(|at| tokens.get(at)).map_or("end", |symbol| symbol.label());
        refusal.found(found)
    })
}

struct Fit<'a> {
    law: &'a CountLaw,
    scope: Vec<u64>,
    /// Quantifiers that are still allowed on this path.
    bound: Option<usize>,
    position: usize,
}

impl Fit<'_> {
    fn terms(&self) -> bool {
        !self.scope.is_empty() || self.law.constants > 0
    }

    /// Blocks of predicate indices that can be completed here.
    fn predicates(&self, terms: bool) -> Vec<Block> {
        let usable = numbered(&self.law.predicates).filter(|(arity, _)| *arity == 0 || terms);
        usable.map(|(_, indices)| (indices.start, indices.end, 1.0)).collect()
    }

    /// Whether any atom can stand here, or below one more quantifier.
    fn any_atom(&self, terms: bool) -> bool {
        self.law.truth || (terms && !self.law.relations.is_empty()) || !self.predicates(terms).is_empty()
    }

    fn quantifier(&self) -> bool {
        !self.law.quantifiers.is_empty() && self.bound != Some(0) && self.any_atom(true)
    }

    /// The symbols that can begin a formula here.
    fn starts(&self) -> Vec<SymbolId> {
        let (atom, quantifier) = (self.any_atom(self.terms()), self.quantifier());
        let relation = !self.law.relations.is_empty();
        let mut starts = Vec::new();
        let mut put = |symbol, possible: bool| {
            if possible {
                starts.push(symbol);
            }
        };
        put(SymbolId::NOT, self.law.not && (atom || quantifier));
        for q in &self.law.quantifiers {
            put(q.symbol(), quantifier);
        }
        put(SymbolId::LPAREN, !self.law.connectives.is_empty() && (atom || quantifier));
        put(SymbolId::VAR, relation && !self.scope.is_empty());
        put(SymbolId::CONST, relation && self.law.constants > 0);
        put(SymbolId::PRED, !self.predicates(self.terms()).is_empty());
        put(SymbolId::TRUE, self.law.truth);
        put(SymbolId::FALSE, self.law.truth);
        starts
    }

    fn expect(&mut self, found: SymbolId, expected: &[SymbolId]) -> Result<(), Refusal> {
        if !expected.contains(&found) {
            return Err(refusal(self.position, found.label(), expected));
        }
        self.position += 1;
        Ok(())
    }

    fn formula(&mut self, formula: &Formula) -> Result<(), Refusal> {
        let starts = self.starts();
        match formula {
            Formula::Truth(true) => self.expect(SymbolId::TRUE, &starts),
            Formula::Truth(false) => self.expect(SymbolId::FALSE, &starts),
            Formula::Not(inner) => {
                self.expect(SymbolId::NOT, &starts)?;
                self.formula(inner)
            }
            Formula::Binary(connective, left, right) => {
                self.expect(SymbolId::LPAREN, &starts)?;
                self.formula(left)?;
                let connectives: Vec<_> =
                    self.law.connectives.iter().map(|c: &Connective| c.symbol()).collect();
                self.expect(connective.symbol(), &connectives)?;
                self.formula(right)?;
                self.expect(SymbolId::RPAREN, &[SymbolId::RPAREN])
            }
            Formula::Quantified(quantifier, variable, sort, body) => {
                self.expect(Quantifier::symbol(*quantifier), &starts)?;
                self.position += 1; // VAR
                self.position += digits(variable.0).len();
                let bound = self.bound;
                self.bound = bound.map(|r| r.saturating_sub(1));
                self.scope.push(variable.0);
                if sort.is_some() {
                    return Err(refusal(self.position, SymbolId::COLON.label(), &self.starts()));
                }
                self.formula(body)?;
                self.scope.pop();
                self.bound = bound;
                Ok(())
            }
            Formula::Predicate(predicate, arguments) => {
                self.expect(SymbolId::PRED, &starts)?;
                self.predicate(predicate.0, arguments)
            }
            Formula::Relation(relation, left, right) => {
                self.term(left, &starts)?;
                let relations: Vec<_> = self.law.relations.iter().map(|r: &Relation| r.symbol()).collect();
                self.expect(relation.symbol(), &relations)?;
                self.term(right, &self.term_starts())
            }
        }
    }

    fn predicate(&mut self, index: u64, arguments: &[Term]) -> Result<(), Refusal> {
        let usable = self.predicates(self.terms());
        self.index(index, &usable)?;
        let arity = arity_in(&self.law.predicates, index);
        if arguments.is_empty() {
            // What follows, whatever it is, stands where the parenthesis should.
            return if arity == 0 { Ok(()) } else { Err(refusal(self.position, "end", &[SymbolId::LPAREN])) };
        }
        self.expect(SymbolId::LPAREN, if arity > 0 { &[SymbolId::LPAREN] } else { &[] })?;
        for (i, argument) in arguments.iter().enumerate() {
            if i > 0 {
                self.expect(SymbolId::COMMA, &[if i < arity { SymbolId::COMMA } else { SymbolId::RPAREN }])?;
            }
            self.term(argument, &self.term_starts())?;
        }
        let last = if arguments.len() < arity { SymbolId::COMMA } else { SymbolId::RPAREN };
        self.expect(SymbolId::RPAREN, &[last])
    }

    fn term_starts(&self) -> Vec<SymbolId> {
        let variable = (!self.scope.is_empty()).then_some(SymbolId::VAR);
        variable.into_iter().chain((self.law.constants > 0).then_some(SymbolId::CONST)).collect()
    }

    fn term(&mut self, term: &Term, starts: &[SymbolId]) -> Result<(), Refusal> {
        match term {
            Term::Variable(Variable(index)) => {
                self.expect(SymbolId::VAR, starts)?;
                let scope: Vec<_> = self.scope.iter().map(|&v| (v, v.saturating_add(1), 1.0)).collect();
                self.index(*index, &scope)
            }
            Term::Constant(constant) => {
                self.expect(SymbolId::CONST, starts)?;
                self.index(constant.0, &[(0, self.law.constants, 1.0)])
            }
            Term::Function(..) => self.expect(SymbolId::FUNC, starts),
        }
    }

    fn index(&mut self, index: u64, blocks: &[Block]) -> Result<(), Refusal> {
        let weights = IndexWeights { blocks, points: &[], point: 0.0, without: None };
        let mut value = None;
        for digit in digits(index).into_iter().filter_map(Numeral::new) {
            let mut possible = Vec::new();
            weights.digits(value, |d, _| possible.push(d.symbol()));
            self.expect(digit.symbol(), &possible)?;
            value = shifted(value.unwrap_or(0), digit);
        }
        if weights.range(index, index.saturating_add(1)) > 0.0 {
            return Ok(());
        }
        let mut possible = Vec::new();
        weights.digits(Some(index), |d, _| possible.push(d.symbol()));
        Err(refusal(self.position, "end", &possible))
    }
}

fn refusal(position: usize, found: &str, expected: &[SymbolId]) -> Refusal {
    Refusal::new(Kind::OffLaw, format!("{found} does not fit the signature of the law here"))
        .at(position)
        .found(found)
        .expected(expected_labels(&SymbolSet::of(expected)))
}
