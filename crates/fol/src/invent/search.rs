//! Patterns with holes, from the top down: a hole is filled with a symbol that stands there in some of the places where the pattern fits, or,
//! if it is a term's, becomes a parameter. What a pattern can gain at most, whatever its holes become, ends a branch.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::codec::digit_count;

use super::Symbol;
use super::arena::{Arena, Op};
use super::fold::Folding;

/// How far a search goes, and the names that a definition would have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Parameters at most.
    pub(super) arity: usize,
    /// Patterns that are looked at, at most.
    pub(super) patterns: u64,
    /// How many of the best are kept.
    pub(super) keep: usize,
    pub(super) predicate: u64,
    pub(super) function: u64,
    pub(super) constant: u64,
}

/// What one hole, the leftmost, became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A symbol with so many parts.
    Symbol(Op, usize),
    /// A parameter.
    Parameter(usize),
}

/// A pattern without holes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) steps: Vec<Step>,
    pub(super) arity: usize,
    pub(super) gain: u64,
}

/// What a search found.
pub(super) struct Found {
    /// The best first.
    pub(super) patterns: Vec<Pattern>,
    /// Whether it looked everywhere.
    pub(super) complete: bool,
}

/// The body that steps make.
pub(super) fn body(arena: &mut Arena, steps: &[Step]) -> usize {
    let mut done: Vec<usize> = Vec::new();
    for step in steps.iter().rev() {
        let (op, parts) = match *step {
            Step::Parameter(n) => (Op::Parameter(n), Vec::new()),
            Step::Symbol(op, parts) => {
                let from = done.len().saturating_sub(parts);
                let parts = done.split_off(from).into_iter().rev().collect();
                (op, parts)
            }
        };
        let at = arena.put(op, parts);
        done.push(at);
    }
    done.pop().unwrap_or(0)
}

/// A hole of a pattern.
#[derive(Debug, Clone, Copy)]
struct Hole {
    /// Binders of the pattern around it.
    depth: usize,
    formula: bool,
}

/// Where a pattern fits.
#[derive(Debug, Clone)]
struct Fit {
    root: usize,
    /// What stands in the holes, the next one last.
    holes: Vec<usize>,
    /// What the parameters are.
    arguments: Vec<usize>,
}

/// A pattern with holes.
struct State {
    steps: Vec<Step>,
    /// The next one last.
    holes: Vec<Hole>,
    fits: Vec<Fit>,
    arity: usize,
    /// Tokens of the steps.
    tokens: u64,
    /// It gains less than this, or as much.
    bound: u64,
}

struct Search<'a> {
    arena: Arena,
    corpus: &'a [usize],
    counts: Vec<u64>,
    reach: Reach,
    before: u64,
    /// The best ones so far, the best first.
    best: Vec<Pattern>,
}

/// The patterns of a corpus that gain most.
pub(super) fn search(
    arena: &Arena,
    corpus: &[usize],
    reach: Reach,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Found {
    let counts = arena.counts(corpus);
    let before = corpus.iter().map(|&root| arena.size(root)).sum();
    let mut search = Search { arena: arena.clone(), corpus, counts, reach, before, best: Vec::new() };
    let mut open = search.roots();
    let (mut looked, mut complete) = (0, true);
    while let Some(state) = open.pop() {
        if state.bound <= search.floor() {
            continue;
        }
        looked += 1;
        if looked > reach.patterns || (looked % 16 == 0 && !goes_on(looked)) {
            complete = false;
            break;
        }
        if state.holes.is_empty() {
            search.complete(&state);
        } else {
            open.extend(search.grown(state));
        }
    }
    Found { patterns: search.best, complete }
}

impl Search<'_> {
    /// What a pattern must gain more than.
    fn floor(&self) -> u64 {
        if self.best.len() < self.reach.keep { 0 } else { self.best.last().map_or(0, |p| p.gain) }
    }

    /// Every symbol that something begins with; the most promising one last.
    fn roots(&self) -> Vec<State> {
        let mut by_op: BTreeMap<(Op, usize), Vec<Fit>> = BTreeMap::new();
        for (root, &count) in self.counts.iter().enumerate() {
            let node = self.arena.node(root);
            let variable = matches!(node.op, Op::Bound(_) | Op::Free(_) | Op::Parameter(_));
            if count > 0 && !variable {
                let holes = node.parts.iter().rev().copied().collect();
                let fit = Fit { root, holes, arguments: Vec::new() };
                by_op.entry((node.op, node.parts.len())).or_default().push(fit);
            }
        }
        let states = by_op.into_iter().map(|((op, parts), fits)| {
            let hole = Hole { depth: op.binders(), formula: op.of_formulas() };
            let (steps, holes) = (vec![Step::Symbol(op, parts)], vec![hole; parts]);
            State { steps, holes, fits, arity: 0, tokens: op.tokens(parts), bound: 0 }
        });
        self.in_order(states.collect())
    }

    /// Bounded, without what is not worth it, the most promising one last.
    fn in_order(&self, mut states: Vec<State>) -> Vec<State> {
        for state in &mut states {
            state.bound = self.bound(state);
        }
        let floor = self.floor();
        states.retain(|state| state.bound > floor);
        states.sort_by_key(|state| state.bound);
        states
    }

    /// Tokens of the name of a definition with this root.
    fn name(&self, root: Option<&Step>, arity: usize) -> u64 {
        let formula = matches!(root, Some(Step::Symbol(op, _)) if op.is_formula());
        let index = match (formula, arity) {
            (true, _) => self.reach.predicate,
            (false, 0) => self.reach.constant.min(self.reach.function),
            (false, _) => self.reach.function,
        };
        1 + u64::from(digit_count(index))
    }

    /// What no completion of a pattern gains more than: every fit is a use, and what is not known yet takes least.
    fn bound(&self, state: &State) -> u64 {
        let k = state.arity as u64;
        let name = self.name(state.steps.first(), state.arity);
        let list = if k == 0 { 0 } else { k + 1 };
        let holes: u64 = state.holes.iter().map(|hole| if hole.formula { 1 } else { 2 }).sum();
        // Its name, its parameters of two tokens each, DEFINE, the body and DOT.
        let definition = name + list + 2 * k + 1 + state.tokens + holes + 1;
        let gained = state.fits.iter().map(|fit| {
            let arguments: u64 = fit.arguments.iter().map(|&a| self.arena.size(a)).sum();
            self.counts[fit.root] * self.arena.size(fit.root).saturating_sub(name + list + arguments)
        });
        gained.sum::<u64>().saturating_sub(definition)
    }

    /// The pattern with its next hole filled in every way.
    fn grown(&mut self, state: State) -> Vec<State> {
        let State { steps, mut holes, fits, arity, tokens, .. } = state;
        let Some(hole) = holes.pop() else { return Vec::new() };
        let mut grown = Vec::new();
        let with = |step| steps.iter().copied().chain([step]).collect::<Vec<_>>();
        if !hole.formula {
            grown.extend(self.parameters(hole, &steps, &holes, &fits, arity, tokens));
        }
        let mut by_op: BTreeMap<(Op, usize), Vec<Fit>> = BTreeMap::new();
        for mut fit in fits {
            let Some(at) = fit.holes.pop() else { continue };
            let node = self.arena.node(at);
            // What is bound outside is nothing that a definition may speak of.
            let outside =
                matches!(node.op, Op::Bound(n) if n >= hole.depth) || matches!(node.op, Op::Free(_));
            if !outside {
                fit.holes.extend(node.parts.iter().rev());
                by_op.entry((node.op, node.parts.len())).or_default().push(fit);
            }
        }
        for ((op, parts), fits) in by_op {
            let below = Hole { depth: hole.depth + op.binders(), formula: op.of_formulas() };
            let holes = holes.iter().copied().chain(std::iter::repeat_n(below, parts)).collect();
            let tokens = tokens + op.tokens(parts);
            grown.push(State { steps: with(Step::Symbol(op, parts)), holes, fits, arity, tokens, bound: 0 });
        }
        self.in_order(grown)
    }

    /// The pattern whose next hole is a parameter, one that was there or a new one.
    fn parameters(
        &mut self,
        hole: Hole,
        steps: &[Step],
        holes: &[Hole],
        fits: &[Fit],
        arity: usize,
        tokens: u64,
    ) -> Vec<State> {
        // The argument that each fit would have, seen from outside.
        let arguments: Vec<Option<usize>> = fits
            .iter()
            .map(|fit| {
                let at = *fit.holes.last()?;
                self.arena.shifted(at, -(hole.depth as isize), 0)
            })
            .collect();
        let of = |n: usize, chosen: &dyn Fn(&Fit, usize) -> bool| {
            let with = fits.iter().zip(&arguments).filter_map(|(fit, &argument)| {
                let argument = argument.filter(|&argument| chosen(fit, argument))?;
                let mut fit = fit.clone();
                fit.holes.pop();
                if n == arity {
                    fit.arguments.push(argument);
                }
                Some(fit)
            });
            let fits: Vec<Fit> = with.collect();
            let steps = steps.iter().copied().chain([Step::Parameter(n)]).collect();
            let (arity, tokens) = (arity.max(n + 1), tokens + Op::Parameter(n).tokens(0));
            State { steps, holes: holes.to_vec(), fits, arity, tokens, bound: 0 }
        };
        let mut found: Vec<State> = (0..arity)
            .map(|n| of(n, &|fit, argument| fit.arguments.get(n) == Some(&argument)))
            .filter(|state| !state.fits.is_empty())
            .collect();
        // A new one that is always an old one is worse than that.
        let as_old = found.iter().any(|state| state.fits.len() == fits.len());
        if arity < self.reach.arity && !as_old && !self.is_better_fixed(fits, &arguments) {
            found.push(of(arity, &|_, _| true));
        }
        found.retain(|state| !state.fits.is_empty());
        found
    }

    /// Whether what a new parameter would be is always the same thing, and better stands in the body: there it is written once, as
    /// a parameter once a use. Where it stands in the body several times it may be the other way round.
    fn is_better_fixed(&self, fits: &[Fit], arguments: &[Option<usize>]) -> bool {
        let Some(first) = arguments.first().copied().flatten() else { return false };
        let alike = self.arena.is_closed(first)
            && !self.has_free(first)
            && arguments.iter().all(|&argument| argument == Some(first));
        // A parameter has two tokens.
        let short = self.arena.size(first) <= 2;
        alike && (short || fits.iter().any(|fit| !self.stands_twice(first, fit.root)))
    }

    /// Whether one thing stands in another at two places at least.
    fn stands_twice(&self, what: usize, within: usize) -> bool {
        let (mut found, mut open) = (0, vec![within]);
        while let Some(at) = open.pop() {
            if at == what {
                found += 1;
            } else if self.arena.size(at) > self.arena.size(what) {
                open.extend(&self.arena.node(at).parts);
            }
            if found > 1 {
                return true;
            }
        }
        false
    }

    fn has_free(&self, at: usize) -> bool {
        let node = self.arena.node(at);
        matches!(node.op, Op::Free(_)) || node.parts.iter().any(|&part| self.has_free(part))
    }

    /// What a pattern without holes gains, exactly; it is kept if it is one of the best.
    fn complete(&mut self, state: &State) {
        let formula = matches!(state.steps.first(), Some(Step::Symbol(op, _)) if op.is_formula());
        let symbol = match (formula, state.arity) {
            (true, _) => Symbol::Predicate(self.reach.predicate),
            (false, 0) => Symbol::Constant(self.reach.constant),
            (false, _) => Symbol::Function(self.reach.function),
        };
        let op = match symbol {
            Symbol::Predicate(n) => Op::Predicate(n),
            Symbol::Function(n) => Op::Function(n),
            Symbol::Constant(n) => Op::Constant(n),
        };
        let body = body(&mut self.arena, &state.steps);
        let parameters: u64 = (0..state.arity).map(|n| Op::Parameter(n).tokens(0)).sum();
        let definition = op.tokens(state.arity) + parameters + 1 + self.arena.size(body) + 1;
        let mut folding = Folding::new(&mut self.arena, body, state.arity, symbol);
        let after: u64 = self.corpus.iter().map(|&root| folding.shortest(root).1).sum();
        let Some(gain) = self.before.checked_sub(after + definition).filter(|&gain| gain > self.floor())
        else {
            return;
        };
        let pattern = Pattern { steps: state.steps.clone(), arity: state.arity, gain };
        // Of equals the first stays first.
        let at = self.best.partition_point(|kept| Reverse(kept.gain) <= Reverse(gain));
        self.best.insert(at, pattern);
        self.best.truncate(self.reach.keep);
    }
}
