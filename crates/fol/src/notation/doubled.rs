//! Redundant parentheses: a binary or atomic formula in one more pair (N15–N17).

use seeded::Stream;

use crate::ast::{Connective, Formula, Relation};
use crate::encode::encode;
use crate::error::{Kind, Refusal, Stage};
use crate::symbol::{SymbolId, SymbolKind};

/// The symbols of a text of one formula, in which each binary or atomic formula is put into one more pair of
/// parentheses in so many of 100 cases, and −ln of the probability of these draws.
pub(super) fn write(formula: &Formula, percent: u8, stream: &mut Stream) -> (Vec<SymbolId>, f64) {
    let mut writer = Writer { percent, stream, out: Vec::new(), nll: 0.0 };
    writer.formula(formula);
    (writer.out, writer.nll)
}

struct Writer<'a> {
    percent: u8,
    stream: &'a mut Stream,
    out: Vec<SymbolId>,
    nll: f64,
}

impl Writer<'_> {
    /// Draws for a formula whether it is doubled.
    fn draw(&mut self) -> bool {
        let doubled = self.stream.below(100) < u64::from(self.percent);
        let share = f64::from(if doubled { self.percent } else { 100 - self.percent }) / 100.0;
        self.nll -= share.ln();
        doubled
    }

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
                let mut symbols = encode(&crate::ast::Text::formula(head));
                symbols.pop();
                self.out.append(&mut symbols);
                self.formula(body);
            }
            Formula::Binary(connective, left, right) => {
                let doubled = self.draw();
                self.pairs(doubled, SymbolId::LPAREN);
                self.out.push(SymbolId::LPAREN);
                self.formula(left);
                self.out.push(connective.symbol());
                self.formula(right);
                self.out.push(SymbolId::RPAREN);
                self.pairs(doubled, SymbolId::RPAREN);
            }
            Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => {
                let doubled = self.draw();
                self.pairs(doubled, SymbolId::LPAREN);
                self.out.append(&mut encode(&crate::ast::Text::formula(formula.clone())));
                self.pairs(doubled, SymbolId::RPAREN);
            }
        }
    }

    fn pairs(&mut self, doubled: bool, symbol: SymbolId) {
        if doubled {
            self.out.push(symbol);
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

/// Symbols without redundant parentheses. A pair around anything but one binary or atomic formula, or around one that has
/// its second pair already, is refused at the closing parenthesis.
pub(super) fn strip(symbols: &[(SymbolId, usize)]) -> Result<Vec<(SymbolId, usize)>, Refusal> {
    let mut redundant = vec![false; symbols.len()];
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
    Ok(symbols.iter().zip(redundant).filter(|(_, mark)| !mark).map(|(s, _)| *s).collect())
}

fn misplaced(symbol: SymbolId, token: usize) -> Refusal {
    let message = format!(
        "{symbol} cannot stand here: only a binary formula in its own parentheses and an atom have a second pair"
    );
    Refusal::new(Kind::UnexpectedSymbol, message).stage(Stage::Parse).at(token).found(symbol.label())
}
