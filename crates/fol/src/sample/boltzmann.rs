//! Drawing from laws of family `boltzmann`: a shape node by node until its size is in the window, then its names (F70).
//!
//! A grammar at its singularity draws mostly small formulas, and where few binders lead to many atoms nearly only those.
//! So a node is pointed at: a shape of n nodes is drawn n times as often, at a point a little below the singularity, and a
//! shape within the window is kept with a probability that takes both back. What is kept has the law ρⁿ / W as if plain
//! shapes at the singularity had been drawn and those outside the window rejected.
//!
//! Only integers decide. The shares of the grammar are rounded to multiples of 2⁻⁶², once.

use seeded::Stream;

use super::distinct::take_unused;
use super::facts::Facts;
use crate::ast::{Quantifier, Sign};
use crate::codec::push_index;
use crate::error::Refusal;
use crate::law::atoms::power;
use crate::law::config::bad_value;
use crate::law::{BinderNames, BoltzmannLaw, CountLaw};
use crate::measure::level_of;
use crate::symbol::SymbolId;

/// A law is refused if fewer shapes are kept: one formula would take about a second.
const RAREST: f64 = 1e-6;

/// What all shares add up to.
const WHOLE: u64 = 1 << 62;

/// A law with its shares, and room to draw in.
#[derive(Debug, Clone)]
pub(super) struct BoltzmannSampler {
    law: CountLaw,
    window: (usize, usize),
    /// By the number of binders above.
    places: Vec<Place>,
    /// For each size of the window: of `WHOLE` shapes of this size, how many are kept.
    kept: Vec<u64>,
    shape: Vec<Node>,
    open: Vec<(usize, bool)>,
    pending: Vec<Pending>,
    used: Vec<u64>,
    scope: Vec<u64>,
}

/// The limits of draws below so many binders: the first one that a draw is below says what it falls on.
#[derive(Debug, Clone)]
struct Place {
    /// NOT, quantifier, atom; binary above.
    plain: [u64; 3],
    /// The node itself, NOT, right operand, quantifier; left operand above.
    pointed: [u64; 4],
    /// One for each block of predicates, then relations, then truth values.
    atoms: Vec<u64>,
}

/// A node of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Atom,
    Not,
    Binary,
    Quantifier,
}

/// What is still to be written.
#[derive(Debug, Clone, Copy)]
enum Pending {
    Formula,
    Symbol(SymbolId),
    /// A binder's scope ends.
    Close,
}

/// A share as an integer.
fn whole(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * WHOLE as f64) as u64
}

/// Running sums.
fn limits<const N: usize>(shares: [f64; N]) -> [u64; N] {
    let mut sum = 0u64;
    shares.map(|share| {
        sum = sum.saturating_add(whole(share)).min(WHOLE);
        sum
    })
}

impl BoltzmannSampler {
    pub(super) fn new(law: &BoltzmannLaw) -> Result<Self, Refusal> {
        let singular = law.singular()?;
        let (lo, hi) = law.window();
        // Sizes then fall like n^(−1/2) exp(−n / (2 · nodes)).
        let tilt = 1.0 - 0.5 / law.nodes as f64;
        let grammar = singular.below(tilt);
        let pointed = grammar.pointed_shares();
        let place = |(k, pointed): (usize, &[f64; 5])| {
            let ([atom, not, _, quantifier], [itself, below_not, _, right, below_quantifier]) =
                (grammar.shares(k), *pointed);
            Place {
                plain: limits([not, quantifier, atom]),
                pointed: limits([itself, below_not, right, below_quantifier]),
                atoms: atom_limits(&law.grammar, k),
            }
        };
        let places = pointed.iter().enumerate().map(place).collect();
        // tilt⁻ⁿ / n, on the scale of the largest.
        let mut weights = Vec::new();
        let mut back = 1.0;
        for n in lo..=hi {
            weights.push(back / n as f64);
            back /= tilt;
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        // Of T(0) that is drawn, Σ n · G(n) · zⁿ · weight / largest is kept, and n · zⁿ · weight is ρⁿ · tilt^lo.
        let (masses, _) = law.masses(&singular);
        let drawn = grammar.pointed().first().copied().unwrap_or(f64::INFINITY);
        let kept = power(tilt, lo) * masses.iter().sum::<f64>() / largest;
        if kept < RAREST * drawn {
            let message = "nearly all shapes would be given up; fewer binders on a path, or more nodes, are kept more often";
            return Err(bad_value("scope", message));
        }
        let kept = weights.iter().map(|weight| whole(weight / largest)).collect();
        Ok(Self {
            law: law.grammar.clone(),
            window: (lo, hi),
            places,
            kept,
            shape: Vec::new(),
            open: Vec::new(),
            pending: Vec::new(),
            used: Vec::new(),
            scope: Vec::new(),
        })
    }

    /// One item.
    pub(super) fn draw(&mut self, stream: &mut Stream, out: &mut Vec<SymbolId>) -> Facts {
        while !self.draw_shape(stream) {}
        self.write(stream, out)
    }

    /// Draws a shape in preorder; whether it is kept.
    fn draw_shape(&mut self, stream: &mut Stream) -> bool {
        let (lo, hi) = self.window;
        self.shape.clear();
        self.open.clear();
        self.open.push((0, true));
        while let Some((k, pointed)) = self.open.pop() {
            let Some(place) = self.places.get(k) else { return false };
            let r = stream.below(WHOLE);
            let mut plain = r;
            if pointed {
                let [itself, not, right, quantifier] = place.pointed;
                if r >= itself {
                    self.shape.push(if r < not {
                        self.open.push((k, true));
                        Node::Not
                    } else if r < right {
                        self.open.extend([(k, true), (k, false)]);
                        Node::Binary
                    } else if r < quantifier {
                        self.open.push((k + 1, true));
                        Node::Quantifier
                    } else {
                        self.open.extend([(k, false), (k, true)]);
                        Node::Binary
                    });
                    if self.shape.len() + self.open.len() > hi {
                        return false;
                    }
                    continue;
                }
                plain = stream.below(WHOLE);
            }
            let [not, quantifier, atom] = place.plain;
            self.shape.push(if plain < not {
                self.open.push((k, false));
                Node::Not
            } else if plain < quantifier {
                self.open.push((k + 1, false));
                Node::Quantifier
            } else if plain < atom {
                Node::Atom
            } else {
                self.open.extend([(k, false), (k, false)]);
                Node::Binary
            });
            if self.shape.len() + self.open.len() > hi {
                return false;
            }
        }
        let kept = self.shape.len().checked_sub(lo).and_then(|i| self.kept.get(i)).copied().unwrap_or(0);
        kept >= WHOLE || (kept > 0 && stream.below(WHOLE) < kept)
    }

    /// Draws names for the shape, in preorder, and writes the formula.
    fn write(&mut self, stream: &mut Stream, out: &mut Vec<SymbolId>) -> Facts {
        out.clear();
        self.used.clear();
        self.scope.clear();
        self.pending.clear();
        self.pending.push(Pending::Formula);
        let (mut nodes, mut binders, mut depth) = (0usize, 0u64, 0usize);
        while let Some(pending) = self.pending.pop() {
            match pending {
                Pending::Symbol(symbol) => out.push(symbol),
                Pending::Close => drop(self.scope.pop()),
                Pending::Formula => {
                    let node = self.shape.get(nodes).copied();
                    nodes += 1;
                    match node {
                        Some(Node::Not) => {
                            out.push(SymbolId::NOT);
                            self.pending.push(Pending::Formula);
                        }
                        Some(Node::Binary) => {
                            let connective = pick(&self.law.connectives, stream);
                            out.push(SymbolId::LPAREN);
                            self.pending.extend([
                                Pending::Symbol(SymbolId::RPAREN),
                                Pending::Formula,
                                Pending::Symbol(connective),
                                Pending::Formula,
                            ]);
                        }
                        Some(Node::Quantifier) => {
                            out.push(pick::<Quantifier>(&self.law.quantifiers, stream));
                            let name = match self.law.names {
                                BinderNames::Canonical => binders,
                                BinderNames::Distinct => {
                                    let j = stream.below(self.law.pool - self.used.len() as u64);
                                    take_unused(j, &mut self.used)
                                }
                            };
                            binders += 1;
                            out.push(SymbolId::VAR);
                            push_index(out, name);
                            self.scope.push(name);
                            depth = depth.max(self.scope.len());
                            self.pending.extend([Pending::Close, Pending::Formula]);
                        }
                        Some(Node::Atom) => self.atom(stream, out),
                        None => {}
                    }
                }
            }
        }
        let (nodes, depth) = (self.shape.len() as u32, depth as u32);
        Facts { nodes, quantifier_depth: depth, level: level_of(nodes.into(), depth.into()), redraws: 0 }
    }

    fn atom(&self, stream: &mut Stream, out: &mut Vec<SymbolId>) {
        let limits = self.places.get(self.scope.len()).map_or(&[][..], |place| &place.atoms);
        let r = stream.below(WHOLE);
        let kind = limits.iter().position(|&limit| r < limit).unwrap_or(0);
        let blocks = &self.law.predicates;
        if let Some(&(arity, number)) = blocks.get(kind) {
            let before: u64 = blocks.iter().take(kind).map(|block| block.1).sum();
            out.push(SymbolId::PRED);
            push_index(out, before + stream.below(number));
            for i in 0..arity {
                out.push(if i == 0 { SymbolId::LPAREN } else { SymbolId::COMMA });
                self.term(stream, out);
            }
            if arity > 0 {
                out.push(SymbolId::RPAREN);
            }
        } else if kind == blocks.len() {
            let relation = pick(&self.law.relations, stream);
            self.term(stream, out);
            out.push(relation);
            self.term(stream, out);
        } else {
            out.push(if stream.below(2) == 0 { SymbolId::TRUE } else { SymbolId::FALSE });
        }
    }

    fn term(&self, stream: &mut Stream, out: &mut Vec<SymbolId>) {
        let scope = self.scope.len() as u64;
        let i = stream.below(scope + self.law.constants);
        match self.scope.get(i as usize) {
            Some(&name) if i < scope => {
                out.push(SymbolId::VAR);
                push_index(out, name);
            }
            _ => {
                out.push(SymbolId::CONST);
                push_index(out, i - scope);
            }
        }
    }
}

/// One of some signs, all equally likely.
fn pick<T: Sign>(signs: &[T], stream: &mut Stream) -> SymbolId {
    let i = stream.below(signs.len() as u64);
    signs.get(i as usize).map_or(SymbolId::PAD, |sign| sign.symbol())
}

/// Which block of atoms below k binders, by the numbers of atoms in each.
fn atom_limits(law: &CountLaw, k: usize) -> Vec<u64> {
    let terms = (k as u64 + law.constants) as f64;
    let mut numbers: Vec<f64> =
        law.predicates.iter().map(|&(arity, number)| power(terms, arity) * number as f64).collect();
    numbers.push(law.relations.len() as f64 * terms * terms);
    numbers.push(if law.truth { 2.0 } else { 0.0 });
    let all: f64 = numbers.iter().sum();
    let last = numbers.iter().rposition(|&number| number > 0.0);
    let mut sum = 0.0;
    let limit = |(i, number): (usize, &f64)| {
        sum += number;
        if Some(i) >= last { WHOLE } else { whole(sum / all) }
    };
    numbers.iter().enumerate().map(limit).collect()
}
