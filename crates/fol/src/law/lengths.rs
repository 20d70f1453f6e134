//! The longest and the shortest text of a law.
//!
//! Both are the same recursion over the grammar, with `max` or `min` at every choice. Formulas are told apart
//! by quantifier depth (0, 1, more), because levels condition on it.

use super::count_law::CountLaw;
use super::depth_law::{Arguments, DepthLaw, Predicates};
use super::parts::Parts;
use super::{Family, Law};
use crate::symbol::BASE;

/// Best lengths of the formulas of quantifier depth 0, 1 and more.
type ByDepth = [Option<u64>; 3];

#[derive(Clone, Copy, PartialEq)]
enum Extreme {
    Longest,
    Shortest,
}

/// The longest text with `<bos>` and `<eos>`; `None` if only `max_tokens` bounds it.
pub(super) fn longest(law: &Law) -> Option<usize> {
    if law.has_statements() {
        return None;
    }
    let tokens = text(law, Extreme::Longest)?;
    (tokens < u64::MAX / 2).then(|| usize::try_from(tokens + 2).ok()).flatten()
}

/// The shortest text with `<bos>` and `<eos>`.
pub(super) fn shortest(law: &Law) -> usize {
    text(law, Extreme::Shortest).and_then(|n| usize::try_from(n.saturating_add(2)).ok()).unwrap_or(usize::MAX)
}

fn text(law: &Law, extreme: Extreme) -> Option<u64> {
    match &law.family {
        Family::Depth(law) => match &law.statements {
            None => Depth { law, extreme }.text(),
            Some(parts) => Depth { law, extreme }.statements(parts),
        },
        Family::Count(law) => count_text(law, extreme),
    }
}

impl Extreme {
    fn better(self, a: Option<u64>, b: Option<u64>) -> Option<u64> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if self == Self::Longest { a.max(b) } else { a.min(b) }),
            (a, b) => a.or(b),
        }
    }

    fn best(self, all: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
        all.into_iter().fold(None, |a, b| self.better(a, b))
    }

    /// Category symbol and digits of an index between the two, the second excluded.
    fn index(self, from: u64, to: u64) -> u64 {
        let index = if self == Self::Longest { to.saturating_sub(1) } else { from };
        1 + digits(index)
    }

    /// Two operands and what a connective and its parentheses add.
    fn binary(self, a: ByDepth, b: ByDepth) -> ByDepth {
        let mut joined: ByDepth = [None; 3];
        for (i, x) in a.into_iter().enumerate() {
            for (j, y) in b.into_iter().enumerate() {
                let both = x.zip(y).map(|(x, y)| x.saturating_add(y).saturating_add(3));
                if let Some(place) = joined.get_mut(i.max(j)) {
                    *place = self.better(*place, both);
                }
            }
        }
        joined
    }
}

fn digits(index: u64) -> u64 {
    let base = u64::from(BASE);
    std::iter::successors(Some(index), |&n| (n >= base).then_some(n / base)).count() as u64
}

/// A list of arguments with parentheses and commas.
fn arguments(arity: usize, each: u64) -> u64 {
    if arity == 0 { 0 } else { (each.saturating_add(1)).saturating_mul(arity as u64).saturating_add(1) }
}

fn add(n: u64, to: ByDepth) -> ByDepth {
    to.map(|x| x.map(|x| x.saturating_add(n)))
}

fn under_quantifier(n: u64, [none, one, more]: ByDepth, extreme: Extreme) -> ByDepth {
    add(n, [None, none, extreme.better(one, more)])
}

struct Depth<'a> {
    law: &'a DepthLaw,
    extreme: Extreme,
}

impl Depth<'_> {
    fn text(&self) -> Option<u64> {
        let table = self.formulas();
        let of_level = |level: u8, depth: u32| {
            let [open, _] = table.get(depth as usize)?;
            match level {
                1 => (depth == 0 || self.law.kinds[0] > 0).then(|| self.atom(false)).flatten(),
                2 => {
                    let below = table.get((depth as usize).checked_sub(1)?)?;
                    let [_, _, connective] = self.law.kinds;
                    (connective > 0).then(|| self.compound(below[0])[0]).flatten()
                }
                3 => open[1],
                4 => open[2],
                _ => self.extreme.best(*open),
            }
        };
        let levels: Vec<u8> = match self.law.levels.as_slice() {
            [] => vec![0],
            levels => levels.iter().filter(|l| l.1 > 0).map(|l| l.0).collect(),
        };
        let depths = self.law.depth_mix.iter().filter(|m| m.1 > 0).map(|m| m.0);
        self.extreme
            .best(depths.flat_map(|d| levels.iter().map(move |&l| (l, d))).map(|(l, d)| of_level(l, d)))
    }

    /// For each number of levels that remain, the best formulas outside and inside binders.
    fn formulas(&self) -> Vec<[ByDepth; 2]> {
        let law = self.law;
        let mut table: Vec<[ByDepth; 2]> =
            vec![[[self.atom(false), None, None], [self.atom(true), None, None]]];
        for _ in 0..law.deepest() {
            let Some(&[open, scoped]) = table.last() else { break };
            let row = [(open, false), (scoped, true)].map(|(below, inside)| {
                let atom = if law.kinds[0] > 0 { self.atom(inside) } else { None };
                let mut best = [atom, None, None];
                let compound = if law.kinds[2] > 0 { self.compound(below) } else { [None; 3] };
                let quantified = if law.kinds[1] > 0 {
                    under_quantifier(self.binder(), scoped, self.extreme)
                } else {
                    [None; 3]
                };
                for (place, (a, b)) in best.iter_mut().zip(compound.into_iter().zip(quantified)) {
                    *place = self.extreme.best([*place, a, b]);
                }
                best
            });
            table.push(row);
        }
        table
    }

    fn compound(&self, below: ByDepth) -> ByDepth {
        let [not, binary @ ..] = self.law.connectives;
        let not = if not > 0 { add(1, below) } else { [None; 3] };
        let binary =
            if binary.iter().any(|&w| w > 0) { self.extreme.binary(below, below) } else { [None; 3] };
        let mut best = not;
        for (place, b) in best.iter_mut().zip(binary) {
            *place = self.extreme.better(*place, b);
        }
        best
    }

    fn variable(&self) -> u64 {
        self.extreme.index(0, self.law.variables())
    }

    fn binder(&self) -> u64 {
        let sort = 1 + self.extreme.index(0, self.law.sorts);
        let sort = match (self.law.sorts, self.law.sorted, self.extreme) {
            (0, _, _) | (_, [_, 0], _) => 0,
            (_, [0, _], _) | (_, _, Extreme::Longest) => sort,
            _ => 0,
        };
        1 + self.variable() + sort
    }

    fn atom(&self, scoped: bool) -> Option<u64> {
        let term = match self.law.arguments {
            Arguments::Public => Some(self.variable()),
            Arguments::Terms => self.term(scoped, 0),
        };
        let [predicate, relation, truth] = self.law.atoms;
        let predicate = if predicate > 0 { self.predicate(term) } else { None };
        let relation = term.filter(|_| relation > 0).map(|t| t.saturating_mul(2).saturating_add(1));
        self.extreme.best([predicate, relation, (truth > 0).then_some(1)])
    }

    fn predicate(&self, term: Option<u64>) -> Option<u64> {
        let of = |from: u64, to: u64, arity: usize| {
            let list = if arity == 0 { 0 } else { arguments(arity, term?) };
            Some(self.extreme.index(from, to).saturating_add(list))
        };
        match &self.law.predicates {
            Predicates::Overloaded { names, arities } => {
                self.extreme.best(arities.iter().filter(|a| a.1 > 0).map(|a| of(0, *names, a.0)))
            }
            Predicates::Blocks(blocks) => {
                let mut first = 0;
                self.extreme.best(blocks.iter().map(|&(arity, number)| {
                    first += number;
                    of(first - number, first, arity)
                }))
            }
        }
    }

    fn term(&self, scoped: bool, depth: u32) -> Option<u64> {
        let law = self.law;
        let variable = (scoped && law.terms[0] > 0).then(|| self.variable());
        let constant = (law.constants > 0 && law.terms[1] > 0).then(|| self.extreme.index(0, law.constants));
        let mut best = self.extreme.better(variable, constant);
        let inner =
            if depth < law.term_depth && law.terms[2] > 0 { self.term(scoped, depth + 1) } else { None };
        if let Some(inner) = inner {
            let mut first = 0;
            for &(arity, number) in &law.functions {
                let index = self.extreme.index(first, first + number);
                first += number;
                best = self.extreme.better(best, Some(index.saturating_add(arguments(arity, inner))));
            }
        }
        best
    }

    fn statements(&self, parts: &Parts) -> Option<u64> {
        let table = self.formulas();
        let depths = self.law.depth_mix.iter().filter(|m| m.1 > 0).map(|m| m.0 as usize);
        let formula = self.extreme.best(depths.filter_map(|d| table.get(d)).flat_map(|row| row[0]))?;
        let premises = parts.premises.iter().filter(|p| p.1 > 0).map(|p| p.0).min().unwrap_or(0);
        let conclusion = if parts.conclusion[1] > 0 { 1 } else { formula };
        let sequent = premises.saturating_mul(formula + 1).max(1).saturating_add(conclusion);
        let lengths = [formula, sequent, sequent, 2 * formula + 1, 4, 8, 5];
        let present = lengths.iter().zip(parts.kinds).filter(|(_, w)| *w > 0).map(|(&n, _)| Some(n));
        let statement = self.extreme.best(present)?;
        let count = parts.count.iter().filter(|c| c.1 > 0).map(|c| c.0).min().unwrap_or(1);
        Some(count.saturating_mul(statement.saturating_add(1)).saturating_sub(1))
    }
}

fn count_text(law: &CountLaw, extreme: Extreme) -> Option<u64> {
    let mut table: Vec<ByDepth> = vec![[None; 3]];
    let variable = extreme.index(0, law.variables());
    // The longest argument may be a variable or a constant; with canonical names both are nearly always short.
    let constant = (law.constants > 0).then(|| extreme.index(0, law.constants));
    let term = extreme.better(Some(variable), constant)?;
    let mut first = 0;
    let predicates = extreme.best(law.predicates.iter().map(|&(arity, number)| {
        first += number;
        Some(extreme.index(first - number, first).saturating_add(arguments(arity, term)))
    }));
    let relation = (!law.relations.is_empty()).then(|| 2 * term + 1);
    let atom = extreme.best([predicates, relation, law.truth.then_some(1)]);
    table.push([atom, None, None]);
    for n in 2..=law.largest() {
        let below = table.get(n - 1).copied().unwrap_or([None; 3]);
        let mut best = if law.not { add(1, below) } else { [None; 3] };
        let mut improve = |row: ByDepth| {
            for (place, b) in best.iter_mut().zip(row) {
                *place = extreme.better(*place, b);
            }
        };
        if !law.quantifiers.is_empty() {
            improve(under_quantifier(1 + variable, below, extreme));
        }
        if !law.connectives.is_empty() {
            for i in 1..n.saturating_sub(1) {
                if let (Some(&a), Some(&b)) = (table.get(i), table.get(n - 1 - i)) {
                    improve(extreme.binary(a, b));
                }
            }
        }
        table.push(best);
    }
    extreme.best(law.sizes.iter().filter(|s| s.1 > 0).flat_map(|&(level, _, lo, hi)| {
        let rows = table.get(lo..=hi).unwrap_or(&[]).to_vec();
        rows.into_iter().map(move |row| match level {
            1 | 2 => row[0],
            3 => row[1],
            4 => row[2],
            _ => extreme.best(row),
        })
    }))
}
