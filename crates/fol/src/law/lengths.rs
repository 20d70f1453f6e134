//! The longest (F43) and the shortest text of a law.
//!
//! Both are one recursion over the grammar: alternatives compete, parts add up. So lengths are a semiring, with
//! max or min for +. Formulas are told apart by quantifier depth (0, 1, more), because levels condition on it.

use super::by_size::{Amount, ByClass, BySize, Semiring, Ways, add_scaled, below, join};
use super::count_law::CountLaw;
use super::depth_law::{Arguments, DepthLaw, Predicates};
use super::family::Family;
use super::parts::Parts;
use crate::blocks::numbered;
use crate::codec::digit_count;

/// The longest text with `<bos>` and `<eos>`; `None` if only `max_tokens` bounds it.
pub(super) fn longest(law: &Family) -> Option<usize> {
    if matches!(law, Family::Depth(law) if law.statements.is_some()) {
        return None;
    }
    let Length(tokens) = text::<true>(law);
    tokens.filter(|&n| n < u64::MAX / 2).and_then(|n| usize::try_from(n + 2).ok())
}

/// The shortest text with `<bos>` and `<eos>`.
pub(super) fn shortest(law: &Family) -> usize {
    let Length(tokens) = text::<false>(law);
    tokens.and_then(|n| usize::try_from(n.saturating_add(2)).ok()).unwrap_or(usize::MAX)
}

fn text<const LONGEST: bool>(law: &Family) -> Length<LONGEST> {
    match law {
        Family::Depth(law) => match &law.statements {
            None => Depth { law }.text(),
            Some(parts) => Depth { law }.statements(parts),
        },
        Family::Count(law) => count_text(law),
        Family::Boltzmann(law) => count_text(&law.grammar),
    }
}

/// The best number of tokens, the largest or the smallest; `None` where there is no alternative.
#[derive(Clone, Copy)]
struct Length<const LONGEST: bool>(Option<u64>);

impl<const LONGEST: bool> Semiring for Length<LONGEST> {
    const ZERO: Self = Self(None);

    fn plus(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Self(Some(if LONGEST { a.max(b) } else { a.min(b) })),
            (a, b) => Self(a.or(b)),
        }
    }

    fn times(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(a, b)| a.saturating_add(b)))
    }
}

impl<const LONGEST: bool> Length<LONGEST> {
    fn tokens(n: u64) -> Self {
        Self(Some(n))
    }

    fn best(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::ZERO, Self::plus)
    }

    /// Only under a condition.
    fn when(self, possible: bool) -> Self {
        if possible { self } else { Self::ZERO }
    }

    /// Category symbol and digits of an index between the two, the second excluded.
    fn index(from: u64, to: u64) -> u64 {
        1 + u64::from(digit_count(if LONGEST { to.saturating_sub(1) } else { from }))
    }

    /// A name of one of some numbered blocks with its arguments, each of this length.
    fn applied(self, blocks: &[(usize, u64)]) -> Self {
        Self::best(numbered(blocks).map(|(arity, range)| {
            Self::tokens(Self::index(range.start, range.end)).times(self.arguments(arity))
        }))
    }

    /// So many arguments of this length with parentheses and commas.
    fn arguments(self, arity: usize) -> Self {
        let list = |each: u64| each.saturating_add(1).saturating_mul(arity as u64).saturating_add(1);
        if arity == 0 { Self::tokens(0) } else { Self(self.0.map(list)) }
    }

    /// Two terms of this length and a relation.
    fn relation(self) -> Self {
        self.times(self).times(Self::tokens(1))
    }
}

struct Depth<'a, const LONGEST: bool> {
    law: &'a DepthLaw,
}

impl<const LONGEST: bool> Depth<'_, LONGEST> {
    fn text(&self) -> Length<LONGEST> {
        let table = self.formulas();
        let [atom, _, connective] = self.law.kinds;
        let of_level = |level: u8, depth: u32| {
            let [open, _] = table.get(depth as usize)?;
            Some(match level {
                1 => self.atom(false).when(depth == 0 || atom > 0),
                2 => {
                    let [operands, _] = table.get((depth as usize).checked_sub(1)?)?;
                    self.compound(*operands)[0].when(connective > 0)
                }
                3 => open[1],
                4 => open[2],
                _ => Length::best(*open),
            })
        };
        let levels: Vec<u8> = match self.law.levels.as_slice() {
            [] => vec![0],
            levels => levels.iter().filter(|l| l.1 > 0).map(|l| l.0).collect(),
        };
        let depths = self.law.depth_mix.iter().filter(|m| m.1 > 0).map(|m| m.0);
        Length::best(depths.flat_map(|depth| {
            levels.iter().filter_map(move |&level| of_level(level, depth)).collect::<Vec<_>>()
        }))
    }

    /// For each number of levels that remain, the best formulas outside and inside binders.
    fn formulas(&self) -> Vec<[ByClass<Length<LONGEST>>; 2]> {
        let [atom, quantifier, connective] = self.law.kinds.map(|weight| weight > 0);
        let atoms = [false, true].map(|scoped| [self.atom(scoped), Length::ZERO, Length::ZERO]);
        let mut table = vec![atoms];
        for _ in 0..self.law.deepest() {
            let Some(&[open, scoped]) = table.last() else { break };
            let row = [(open, atoms[0]), (scoped, atoms[1])].map(|(operands, atoms)| {
                let mut best = atoms.map(|length| length.when(atom));
                if connective {
                    add_scaled(&mut best, self.compound(operands), Length::tokens(0));
                }
                if quantifier {
                    add_scaled(&mut best, below(scoped, 1), Length::tokens(self.binder()));
                }
                best
            });
            table.push(row);
        }
        table
    }

    fn compound(&self, operands: ByClass<Length<LONGEST>>) -> ByClass<Length<LONGEST>> {
        let [not, binary @ ..] = self.law.connectives;
        let mut best = ByClass::none();
        if not > 0 {
            add_scaled(&mut best, operands, Length::tokens(1));
        }
        if binary.iter().any(|&w| w > 0) {
            add_scaled(&mut best, join(operands, operands), Length::tokens(3));
        }
        best
    }

    fn variable(&self) -> u64 {
        Length::<LONGEST>::index(0, self.law.variables())
    }

    fn binder(&self) -> u64 {
        let [no, yes] = self.law.sorted;
        let sorted = self.law.sorts > 0 && yes > 0 && (LONGEST || no == 0);
        let sort = 1 + Length::<LONGEST>::index(0, self.law.sorts);
        1 + self.variable() + if sorted { sort } else { 0 }
    }

    fn atom(&self, scoped: bool) -> Length<LONGEST> {
        let term = match self.law.arguments {
            Arguments::Public => Length::tokens(self.variable()),
            Arguments::Terms => self.term(scoped, 0),
        };
        let [predicate, relation, truth] = self.law.atoms.map(|weight| weight > 0);
        let predicates = match &self.law.predicates {
            Predicates::Overloaded { names, arities } => Length::best(
                arities.iter().filter(|a| a.1 > 0).map(|&(arity, _)| term.applied(&[(arity, *names)])),
            ),
            Predicates::Blocks(blocks) => term.applied(blocks),
        };
        let truth = Length::tokens(1).when(truth);
        predicates.when(predicate).plus(term.relation().when(relation)).plus(truth)
    }

    fn term(&self, scoped: bool, depth: u32) -> Length<LONGEST> {
        let [variable, constant, function] = self.law.terms.map(|weight| weight > 0);
        let constants = self.law.constants;
        let mut best = Length::tokens(self.variable()).when(scoped && variable);
        best =
            best.plus(Length::tokens(Length::<LONGEST>::index(0, constants)).when(constant && constants > 0));
        if depth < self.law.term_depth && function {
            best = best.plus(self.term(scoped, depth + 1).applied(&self.law.functions));
        }
        best
    }

    fn statements(&self, parts: &Parts) -> Length<LONGEST> {
        let table = self.formulas();
        let depths = self.law.depth_mix.iter().filter(|m| m.1 > 0).map(|m| m.0 as usize);
        let formula: Length<LONGEST> =
            Length::best(depths.filter_map(|d| table.get(d)).flat_map(|row| row[0]));
        let Length(Some(formula)) = formula else { return Length::ZERO };
        let premises = parts.premises.iter().filter(|p| p.1 > 0).map(|p| p.0).min().unwrap_or(0);
        let conclusion = if parts.conclusion[1] > 0 { 1 } else { formula };
        let sequent = premises.saturating_mul(formula + 1).max(1).saturating_add(conclusion);
        let lengths = [formula, sequent, sequent, 2 * formula + 1, 4, 8, 5];
        let present =
            lengths.iter().zip(parts.kinds).filter(|(_, w)| *w > 0).map(|(&n, _)| Length::tokens(n));
        let Length(statement) = Length::<LONGEST>::best(present);
        let count = parts.count.iter().filter(|c| c.1 > 0).map(|c| c.0).min().unwrap_or(1);
        Length(statement.map(|n| count.saturating_mul(n.saturating_add(1)).saturating_sub(1)))
    }
}

fn count_text<const LONGEST: bool>(law: &CountLaw) -> Length<LONGEST> {
    let index = Length::<LONGEST>::index;
    let variable = index(0, law.variables());
    // The longest argument may be a variable or a constant; with canonical names both are nearly always short.
    let term = Length::tokens(variable).plus(Length::tokens(index(0, law.constants)).when(law.constants > 0));
    let atom = term
        .applied(&law.predicates)
        .plus(term.relation().when(!law.relations.is_empty()))
        .plus(Length::tokens(1).when(law.truth));
    let ways = Ways {
        not: law.not.then(|| Length::tokens(1)),
        binary: (!law.connectives.is_empty()).then(|| Length::tokens(3)),
        quantifier: Some(Length::tokens(1 + variable)),
    };
    let largest = law.largest();
    let atoms = |_| [atom, Length::ZERO, Length::ZERO];
    let table = BySize::new(largest, law.deepest(largest), atoms, &ways, |best| best);
    Length::best(law.sizes.iter().filter(|s| s.1 > 0).flat_map(|&(level, _, lo, hi)| {
        let rows = (lo..=hi).map(|n| table.get(n, 0));
        rows.map(move |row| match level {
            1 | 2 => row[0],
            3 => row[1],
            4 => row[2],
            _ => Length::best(row),
        })
        .collect::<Vec<_>>()
    }))
}
