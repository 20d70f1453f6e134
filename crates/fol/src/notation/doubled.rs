//! Redundant parentheses: a binary or atomic formula in one more pair (N15–N17).

use seeded::Stream;

use crate::ast::{Connective, Formula, Relation, Text};
use crate::encode::encode;
use crate::error::{Kind, Refusal, Stage};
use crate::symbol::{SymbolId, SymbolKind};

/// The symbols of a text of one formula, in which each binary or atomic formula is put into one more pair of
/// parentheses in so many of 100 cases, and −ln of the probability of these draws.
pub(super) fn write(formula: &Formula, percent: u8, stream: &mut Stream) -> (Vec<SymbolId>, f64) {
    let mut nll = 0.0;
    let mut writer = Writer {
        draw: || {
            let doubled = stream.below(100) < u64::from(percent);
            nll -= (f64::from(if doubled { percent } else { 100 - percent }) / 100.0).ln();
            doubled
        },
        out: Vec::new(),
        spans: Vec::new(),
    };
    writer.formula(formula);
    let out = writer.out;
    (out, nll)
}

/// Refuses a pair that was taken out and stood around anything but one binary or atomic formula: what is left may be a
/// text all the same, `∃(x0 ∀x1 x0 = x1)` without its parentheses. `pairs` come in the order in which they end.
pub(super) fn confirm(text: &Text, pairs: &[Pair]) -> Result<(), Refusal> {
    let Some(first) = pairs.first() else { return Ok(()) };
    let Some(formula) = text.as_formula() else {
        return Err(not_a_formula().at(first.token).found(SymbolId::RPAREN.label()));
    };
    let mut writer = Writer { draw: || false, out: Vec::new(), spans: Vec::new() };
    writer.formula(formula);
    writer.spans.sort_unstable();
    match pairs.iter().find(|pair| writer.spans.binary_search(&pair.around).is_err()) {
        Some(pair) => Err(misplaced(SymbolId::RPAREN, pair.token)),
        None => Ok(()),
    }
}

struct Writer<F> {
    /// Draws for a formula whether it is doubled.
    draw: F,
    out: Vec<SymbolId>,
    /// Where each binary and atomic formula begins and ends, without its second pair.
    spans: Vec<(usize, usize)>,
}

impl<F: FnMut() -> bool> Writer<F> {
    /// As deep as the tree, which the reader has bounded (F8).
    fn formula(&mut self, formula: &Formula) {
        match formula {
            Formula::Not(operand) => {
                self.out.push(SymbolId::NOT);
                self.formula(operand);
            }
            Formula::Quantified(quantifier, variable, sort, body) => {
                // All but the body, which is written instead of a formula of one symbol.
                let truth = Box::new(Formula::Truth(true));
                let head = Formula::Quantified(*quantifier, *variable, *sort, truth);
                let mut symbols = encode(&Text::formula(head));
                symbols.pop();
                self.out.append(&mut symbols);
                self.formula(body);
            }
            Formula::Binary(connective, left, right) => self.twice(|writer| {
                writer.out.push(SymbolId::LPAREN);
                writer.formula(left);
                writer.out.push(connective.symbol());
                writer.formula(right);
                writer.out.push(SymbolId::RPAREN);
            }),
            Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => self.twice(|writer| {
                writer.out.append(&mut encode(&Text::formula(formula.clone())));
            }),
        }
    }

    fn twice(&mut self, write: impl FnOnce(&mut Self)) {
        let doubled = (self.draw)();
        if doubled {
            self.out.push(SymbolId::LPAREN);
        }
        let begin = self.out.len();
        write(self);
        self.spans.push((begin, self.out.len()));
        if doubled {
            self.out.push(SymbolId::RPAREN);
        }
    }
}

/// A parenthesis that is open.
struct Open {
    /// Where it stands.
    at: usize,
    /// Around arguments.
    arguments: bool,
    /// A connective stands directly in it.
    connective: bool,
    /// A relation stands directly in it.
    relation: bool,
}

/// A pair that was taken out.
pub(super) struct Pair {
    /// The token of its closing parenthesis.
    token: usize,
    /// Where what it stood around begins and ends among the symbols that are left.
    around: (usize, usize),
}

/// Symbols, each with the position of its token.
type Located = Vec<(SymbolId, usize)>;

/// Symbols without redundant parentheses, and the pairs that were taken out. A pair around what by its symbols is no
/// binary or atomic formula, or around one that has its second pair already, is refused at the closing parenthesis; the
/// tree decides the rest ([`confirm`]).
pub(super) fn strip(symbols: &[(SymbolId, usize)]) -> Result<(Located, Vec<Pair>), Refusal> {
    let mut redundant = vec![false; symbols.len()];
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    // The category of the name that has just been read, and the pair of a binary formula that has just been closed.
    let (mut category, mut closed) = (SymbolId::PAD, None);
    for (at, &(symbol, token)) in symbols.iter().enumerate() {
        let just_closed = std::mem::take(&mut closed);
        match symbol {
            SymbolId::LPAREN => {
                let arguments = matches!(category, SymbolId::PRED | SymbolId::FUNC);
                open.push(Open { at, arguments, connective: false, relation: false });
            }
            SymbolId::RPAREN => match open.pop() {
                Some(pair) if !pair.arguments && pair.connective => closed = Some(pair.at),
                Some(pair) if !pair.arguments => {
                    let first = symbols.get(pair.at + 1).map_or(SymbolId::RPAREN, |s| s.0);
                    let once = match first {
                        SymbolId::LPAREN => just_closed == Some(pair.at + 1),
                        SymbolId::PRED | SymbolId::TRUE | SymbolId::FALSE => true,
                        // A term has no second pair, both sides of a relation together have.
                        SymbolId::VAR | SymbolId::CONST | SymbolId::FUNC => pair.relation,
                        _ => false,
                    };
                    if !once {
                        return Err(misplaced(symbol, token));
                    }
                    pairs.push((pair.at, at));
                    for place in [pair.at, at] {
                        if let Some(mark) = redundant.get_mut(place) {
                            *mark = true;
                        }
                    }
                }
                // Around arguments, or without a beginning: for the strict reader.
                _ => {}
            },
            _ if Connective::from_symbol(symbol).is_some() => {
                if let Some(pair) = open.last_mut() {
                    pair.connective = true;
                }
            }
            _ if Relation::from_symbol(symbol).is_some() => {
                if let Some(pair) = open.last_mut() {
                    pair.relation = true;
                }
            }
            // The digits before a pair that is taken out do not go on behind it.
            _ if symbol.kind() == SymbolKind::Numeral && category == SymbolId::RPAREN => {
                return Err(misplaced(symbol, token));
            }
            _ => {}
        }
        if symbol.kind() != SymbolKind::Numeral {
            category = symbol;
        }
    }
    // How many symbols are left before each place.
    let left: Vec<usize> = redundant
        .iter()
        .scan(0, |count, mark| {
            let before = *count;
            *count += usize::from(!mark);
            Some(before)
        })
        .collect();
    let before = |at: usize| left.get(at).copied().unwrap_or(0);
    let pairs = pairs.into_iter().map(|(begin, end)| Pair {
        token: symbols.get(end).map_or(end, |s| s.1),
        around: (before(begin), before(end)),
    });
    let pairs = pairs.collect();
    Ok((symbols.iter().zip(redundant).filter(|(_, mark)| !mark).map(|(s, _)| *s).collect(), pairs))
}

pub(super) fn not_a_formula() -> Refusal {
    Refusal::new(Kind::NotAFormula, "redundant parentheses are for texts of one formula")
}

fn misplaced(symbol: SymbolId, token: usize) -> Refusal {
    let message = format!(
        "{symbol} cannot stand here: only a binary formula in its own parentheses and an atom have a second pair"
    );
    Refusal::new(Kind::UnexpectedSymbol, message).stage(Stage::Parse).at(token).found(symbol.label())
}
