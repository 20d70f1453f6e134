//! A definition in use wherever that is shorter, and out of use.

use std::collections::{BTreeMap, HashMap};

use crate::error::{Kind, Refusal};

use super::arena::{Arena, Node, Op};
use super::{Symbol, shown};

/// Where a body stands in a corpus, and what the shortest forms are with it in use.
pub(super) struct Folding<'a> {
    arena: &'a mut Arena,
    body: usize,
    arity: usize,
    symbol: Symbol,
    /// Of each node its shortest form, and the tokens of that.
    done: HashMap<usize, (usize, u64)>,
}

impl<'a> Folding<'a> {
    pub(super) fn new(arena: &'a mut Arena, body: usize, arity: usize, symbol: Symbol) -> Self {
        Self { arena, body, arity, symbol, done: HashMap::new() }
    }

    /// The shortest form of a node, and its tokens. Of two that are equally short the one without the definition.
    pub(super) fn shortest(&mut self, at: usize) -> (usize, u64) {
        if let Some(&done) = self.done.get(&at) {
            return done;
        }
        let Node { op, parts } = self.arena.node(at).clone();
        let mut tokens = op.tokens(parts.len());
        let parts: Vec<usize> = parts
            .into_iter()
            .map(|part| {
                let (part, size) = self.shortest(part);
                tokens += size;
                part
            })
            .collect();
        let mut found = (op, parts, tokens);
        if let Some(arguments) = self.arguments(at) {
            let op = match self.symbol {
                Symbol::Predicate(n) => Op::Predicate(n),
                Symbol::Function(n) => Op::Function(n),
                Symbol::Constant(n) => Op::Constant(n),
            };
            let mut tokens = op.tokens(arguments.len());
            let arguments: Vec<usize> = arguments
                .into_iter()
                .map(|argument| {
                    let (argument, size) = self.shortest(argument);
                    tokens += size;
                    argument
                })
                .collect();
            if tokens < found.2 {
                found = (op, arguments, tokens);
            }
        }
        let (op, parts, tokens) = found;
        let short = (self.arena.put(op, parts), tokens);
        self.done.insert(at, short);
        short
    }

    /// The arguments with which the body is this node.
    pub(super) fn arguments(&mut self, at: usize) -> Option<Vec<usize>> {
        let mut arguments = vec![None; self.arity];
        self.matches(self.body, at, 0, &mut arguments)?;
        arguments.into_iter().collect()
    }

    fn matches(
        &mut self,
        body: usize,
        at: usize,
        depth: usize,
        arguments: &mut [Option<usize>],
    ) -> Option<()> {
        if let Op::Parameter(n) = self.arena.node(body).op {
            if self.arena.is_formula(at) {
                return None;
            }
            let found = self.arena.shifted(at, -(depth as isize), 0)?;
            let argument = arguments.get_mut(n)?;
            return match argument {
                Some(known) => (*known == found).then_some(()),
                None => {
                    *argument = Some(found);
                    Some(())
                }
            };
        }
        let (a, b) = (self.arena.node(body), self.arena.node(at));
        if a.op != b.op || a.parts.len() != b.parts.len() {
            return None;
        }
        let depth = depth + a.op.binders();
        let pairs: Vec<(usize, usize)> = a.parts.iter().copied().zip(b.parts.iter().copied()).collect();
        pairs.into_iter().try_for_each(|(body, at)| self.matches(body, at, depth, arguments))
    }
}

/// The corpus with a definition in use wherever that is shorter, and how often it is used.
pub(super) fn fold(
    arena: &mut Arena,
    corpus: &[usize],
    body: usize,
    arity: usize,
    symbol: Symbol,
) -> (Vec<usize>, u64) {
    let mut folding = Folding::new(arena, body, arity, symbol);
    let roots: Vec<usize> = corpus.iter().map(|&root| folding.shortest(root).0).collect();
    let counts = arena.counts(&roots);
    let is_use = |(at, count): (usize, &u64)| (arena.node(at).op.symbol() == Some(symbol)).then_some(*count);
    let uses = counts.iter().enumerate().filter_map(is_use).sum();
    (roots, uses)
}

/// A node in which every defined symbol is replaced by its body, which has none of them.
pub(super) fn expand(
    arena: &mut Arena,
    root: usize,
    bodies: &BTreeMap<Symbol, (usize, usize)>,
) -> Result<usize, Refusal> {
    Expanding { arena, bodies, done: HashMap::new() }.node(root)
}

struct Expanding<'a> {
    arena: &'a mut Arena,
    bodies: &'a BTreeMap<Symbol, (usize, usize)>,
    done: HashMap<usize, usize>,
}

impl Expanding<'_> {
    fn node(&mut self, at: usize) -> Result<usize, Refusal> {
        if let Some(&done) = self.done.get(&at) {
            return Ok(done);
        }
        let Node { op, parts } = self.arena.node(at).clone();
        let parts = parts.into_iter().map(|part| self.node(part)).collect::<Result<Vec<_>, _>>()?;
        let body = op.symbol().and_then(|symbol| Some((symbol, *self.bodies.get(&symbol)?)));
        let expanded = match body {
            None => self.arena.put(op, parts),
            Some((_, (body, arity))) if arity == parts.len() => {
                self.instance(body, 0, &parts, &mut HashMap::new())
            }
            Some((symbol, (_, arity))) => {
                let message =
                    format!("{} has {arity} parameters and stands with {}", shown(symbol), parts.len());
                return Err(Refusal::new(Kind::ArityMismatch, message));
            }
        };
        self.done.insert(at, expanded);
        Ok(expanded)
    }

    /// A body with arguments in the places of its parameters, `depth` binders in.
    fn instance(
        &mut self,
        body: usize,
        depth: usize,
        arguments: &[usize],
        done: &mut HashMap<(usize, usize), usize>,
    ) -> usize {
        if let Some(&found) = done.get(&(body, depth)) {
            return found;
        }
        let Node { op, parts } = self.arena.node(body).clone();
        let found = match op {
            Op::Parameter(n) => {
                let argument = arguments.get(n).copied().unwrap_or(body);
                // Further in nothing loses its binder.
                self.arena.shifted(argument, depth as isize, 0).unwrap_or(argument)
            }
            op => {
                let depth = depth + op.binders();
                let parts = parts.into_iter().map(|p| self.instance(p, depth, arguments, done)).collect();
                self.arena.put(op, parts)
            }
        };
        done.insert((body, depth), found);
        found
    }
}
