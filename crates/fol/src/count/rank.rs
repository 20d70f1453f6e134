//! The order of formulas: unranking into pieces, and ranking trees (F32).
//!
//! One node: predicates by index, then relations, then truth values, arguments lexicographically. More: NOT;
//! then each binary connective, by the size of the left operand, then its rank, then that of the right; then
//! each quantifier.

use num_traits::ToPrimitive;

use super::{Number, Piece, Table, VARIABLE};
use crate::ast::{Constant, Formula, Term, Variable};
use crate::blocks::numbered;
use crate::measure::size;
use crate::symbol::{BASE, SymbolId};

/// What unranking carries along.
struct Unranked<'a> {
    pieces: &'a mut Vec<Piece>,
    /// The numbers of the variables in scope, outermost first.
    scope: Vec<u32>,
    /// Variables numbered so far.
    numbered: u32,
}

impl Unranked<'_> {
    fn push(&mut self, symbol: SymbolId) {
        self.pieces.push(Piece::from(symbol.get()));
    }

    fn index(&mut self, index: u64) {
        if index < u64::from(BASE) {
            self.pieces.push(index as Piece);
        } else {
            self.pieces.extend(crate::codec::digits(index).into_iter().map(Piece::from));
        }
    }
}

impl<N: Number + ToPrimitive> Table<N> {
    /// Writes the formula of a rank below the count, and answers with its quantifier depth.
    pub(crate) fn unrank(&self, n: usize, rank: N, pieces: &mut Vec<Piece>) -> u32 {
        let free = u32::try_from(self.free).unwrap_or(0);
        let mut state = Unranked { pieces, scope: (0..free).collect(), numbered: free };
        self.unrank_formula(n, 0, rank, &mut state)
    }

    fn unrank_formula(&self, n: usize, k: usize, mut rank: N, out: &mut Unranked) -> u32 {
        if n <= 1 {
            self.unrank_atom(k, rank, out);
            return 0;
        }
        let below = self.get(n - 1, k);
        if self.law.not {
            if rank < below {
                out.push(SymbolId::NOT);
                return self.unrank_formula(n - 1, k, rank, out);
            }
            rank = rank - below;
        }
        let pairs = self.pairs(n, k);
        for connective in &self.law.connectives {
            if rank < pairs {
                return self.unrank_binary(n, k, connective.symbol(), rank, out);
            }
            rank = rank - pairs.clone();
        }
        let below = self.get(n - 1, k + 1);
        for quantifier in &self.law.quantifiers {
            if rank < below {
                out.push(quantifier.symbol());
                let number = out.numbered;
                out.numbered += 1;
                out.pieces.push(VARIABLE + number);
                out.scope.push(number);
                let depth = self.unrank_formula(n - 1, k + 1, rank, out);
                out.scope.pop();
                return depth + 1;
            }
            rank = rank - below.clone();
        }
        0
    }

    fn unrank_binary(
        &self,
        n: usize,
        k: usize,
        connective: SymbolId,
        mut rank: N,
        out: &mut Unranked,
    ) -> u32 {
        for i in 1..n - 1 {
            let right = self.get(n - 1 - i, k);
            let block = self.get(i, k) * right.clone();
            if rank < block {
                out.push(SymbolId::LPAREN);
                let left_rank = rank.clone() / right.clone();
                let right_rank = rank - left_rank.clone() * right;
                let left = self.unrank_formula(i, k, left_rank, out);
                out.push(connective);
                let right = self.unrank_formula(n - 1 - i, k, right_rank, out);
                out.push(SymbolId::RPAREN);
                return left.max(right);
            }
            rank = rank - block;
        }
        0
    }

    fn unrank_atom(&self, k: usize, mut rank: N, out: &mut Unranked) {
        for (arity, indices) in numbered(&self.law.predicates) {
            let each = self.power(k, arity).unwrap_or_else(N::zero);
            let block = each.clone() * N::from_u64(indices.end - indices.start).unwrap_or_else(N::zero);
            if rank < block {
                let offset = rank.clone() / each.clone();
                out.push(SymbolId::PRED);
                out.index(indices.start + offset.to_u64().unwrap_or(0));
                if arity > 0 {
                    out.push(SymbolId::LPAREN);
                    self.unrank_arguments(k, arity, rank - offset * each, SymbolId::COMMA, out);
                    out.push(SymbolId::RPAREN);
                }
                return;
            }
            rank = rank - block;
        }
        let each = self.power(k, 2).unwrap_or_else(N::zero);
        for relation in &self.law.relations {
            if rank < each {
                self.unrank_arguments(k, 2, rank, relation.symbol(), out);
                return;
            }
            rank = rank - each.clone();
        }
        out.push(if rank.is_zero() { SymbolId::TRUE } else { SymbolId::FALSE });
    }

    fn unrank_arguments(&self, k: usize, arity: usize, mut rank: N, between: SymbolId, out: &mut Unranked) {
        for position in (0..arity).rev() {
            let each = self.power(k, position).unwrap_or_else(N::one);
            let code = rank.clone() / each.clone();
            rank = rank - code.clone() * each;
            let code = code.to_u64().unwrap_or(0);
            match usize::try_from(code).ok().and_then(|i| out.scope.get(i)) {
                Some(&number) => out.pieces.push(VARIABLE + number),
                None => {
                    out.push(SymbolId::CONST);
                    out.index(code - out.scope.len() as u64);
                }
            }
            if position > 0 {
                out.push(between);
            }
        }
    }

    /// The rank of a formula of the signature; `None` if it is not one.
    pub(crate) fn rank(&self, formula: &Formula, scope: &mut Vec<Variable>) -> Option<N> {
        let n = size(formula);
        let k = scope.len() - usize::try_from(self.free).ok()?;
        let not = if self.law.not { self.get(n.saturating_sub(1), k) } else { N::zero() };
        let pairs = self.pairs(n, k);
        match formula {
            Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => {
                self.rank_atom(formula, k, scope)
            }
            Formula::Not(inner) => self.rank(inner, scope),
            Formula::Binary(connective, left, right) => {
                let before = self.law.connectives.iter().position(|c| c == connective)?;
                let mut rank = not + pairs * N::from_usize(before)?;
                let before_right = size(left);
                for i in 1..before_right {
                    rank = rank + self.get(i, k) * self.get(n - 1 - i, k);
                }
                let left = self.rank(left, scope)?;
                Some(rank + left * self.get(n - 1 - before_right, k) + self.rank(right, scope)?)
            }
            Formula::Quantified(quantifier, variable, _, body) => {
                let before = self.law.quantifiers.iter().position(|q| q == quantifier)?;
                let rank = not
                    + pairs * N::from_usize(self.law.connectives.len())?
                    + self.get(n - 1, k + 1) * N::from_usize(before)?;
                scope.push(*variable);
                let body = self.rank(body, scope);
                scope.pop();
                Some(rank + body?)
            }
        }
    }

    fn rank_atom(&self, formula: &Formula, k: usize, scope: &[Variable]) -> Option<N> {
        let mut rank = N::zero();
        for (arity, indices) in numbered(&self.law.predicates) {
            let each = self.power(k, arity)?;
            if let Formula::Predicate(predicate, arguments) = formula
                && indices.contains(&predicate.0)
            {
                let offset = N::from_u64(predicate.0 - indices.start)?;
                return Some(rank + offset * each + self.rank_arguments(arguments.iter(), k, scope)?);
            }
            rank = rank + each * N::from_u64(indices.end - indices.start)?;
        }
        let each = self.power(k, 2)?;
        for relation in &self.law.relations {
            if let Formula::Relation(given, left, right) = formula
                && given == relation
            {
                return Some(rank + self.rank_arguments([left, right].into_iter(), k, scope)?);
            }
            rank = rank + each.clone();
        }
        match formula {
            Formula::Truth(value) => Some(if *value { rank } else { rank + N::one() }),
            _ => None,
        }
    }

    fn rank_arguments<'a>(
        &self,
        arguments: impl Iterator<Item = &'a Term>,
        k: usize,
        scope: &[Variable],
    ) -> Option<N> {
        let terms = self.terms(k)?;
        let mut rank = N::zero();
        for argument in arguments {
            let code = match argument {
                Term::Variable(v) => N::from_usize(scope.iter().rposition(|w| w == v)?)?,
                Term::Constant(Constant(c)) => N::from_usize(scope.len())? + N::from_u64(*c)?,
                Term::Function(..) => return None,
            };
            rank = rank * terms.clone() + code;
        }
        Some(rank)
    }
}
