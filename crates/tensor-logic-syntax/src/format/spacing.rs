//! The tokens of one statement in canonical spelling, and the blanks between them.
//!
//! Enter at [`Speller::next`]. A blank depends on two neighbours and on the kind of bracket that
//! they stand in.

use std::borrow::Cow;

use crate::ast::{Goal, Sign, Statement, StatementKind};
use crate::lex::{Token, TokenKind};

/// What a bracket holds, which decides on the blanks in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Values and literals: blanks around operators.
    Values,
    /// Index places, arrays, sets, arguments: blanks after commas only.
    Tight,
    /// `[j]` behind a small name: tight, and a `(` behind it is a call's.
    Axes,
    /// `Z[s | w=1]`: tight but for the `|`.
    Condition,
}

/// The state between two tokens of a statement.
pub(super) struct Speller {
    open: Vec<(Inside, Closing)>,
    /// The kind of the token before, its `(`, `[`, `{` and sign words included.
    before: Option<TokenKind>,
    /// The same one token earlier.
    earlier: Option<TokenKind>,
    /// Whether the token before is a `-` that belongs to one operand, not two.
    unary: bool,
    /// Whether the bracket closed last was that of axes.
    after_axes: bool,
    /// The depth before the token at hand.
    depth: usize,
    /// Where a sign of two tokens (`max =`) begins, and its spelling.
    word_sign: Option<(usize, usize, &'static str)>,
    /// `Z[s | w=1]?`: the first bracket is that of a condition.
    condition: bool,
    /// `Z | w=1?`: the `=` at the top is that of evidence.
    evidence: bool,
}

/// How a bracket is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    AsWritten,
    /// The brace of an exponent becomes a parenthesis.
    Round,
}

impl Speller {
    pub(super) fn new(statement: &Statement) -> Speller {
        let word_sign = match &statement.kind {
            StatementKind::Equation { sign, sign_span, .. } => {
                let spelling = match sign {
                    Sign::Max => Some("max="),
                    Sign::Min => Some("min="),
                    Sign::Avg => Some("avg="),
                    Sign::Or => Some("or="),
                    Sign::Equal | Sign::Plus | Sign::Times | Sign::Redefine => None,
                };
                spelling.map(|spelling| (sign_span.start, sign_span.end, spelling))
            }
            _ => None,
        };
        let goal = match &statement.kind {
            StatementKind::Query { goal, .. } => Some(goal),
            _ => None,
        };
        Speller {
            open: Vec::new(),
            before: None,
            earlier: None,
            unary: false,
            after_axes: false,
            depth: 0,
            word_sign,
            condition: matches!(goal, Some(Goal::Conditional { .. })),
            evidence: matches!(goal, Some(Goal::Restricted { .. })),
        }
    }

    /// How many brackets are open before the last token.
    pub(super) fn outer_depth(&self) -> usize {
        self.depth
    }

    /// The indentation of a line that begins with the last token: two blanks for each open
    /// bracket, and two where only a comment made the line end.
    pub(super) fn indentation(&self) -> usize {
        2 * self.depth.max(1)
    }

    /// Whether a blank stands before this token, and its spelling; nothing for one that is part
    /// of the token before it.
    pub(super) fn next<'a>(&mut self, token: Token, word: &'a str) -> Option<(bool, Cow<'a, str>)> {
        let kind = match self.word_sign {
            Some((start, _, _)) if start == token.span.start => TokenKind::PlusEqual,
            Some((start, end, _)) if start < token.span.start && token.span.start < end => return None,
            _ => token.kind,
        };
        self.depth = self.open.len();
        let inside = self.open.last().map_or(Inside::Values, |(inside, _)| *inside);
        let unary = kind == TokenKind::Minus && !self.before.is_some_and(ends_operand);
        let blank = self.before.is_some_and(|before| self.blank(before, kind, inside));
        let spelling = self.spelling(kind, word, token.span.start, inside);
        self.bracket(kind, inside);
        self.earlier = self.before.replace(kind);
        self.unary = unary;
        Some((blank, spelling))
    }

    fn blank(&self, before: TokenKind, kind: TokenKind, inside: Inside) -> bool {
        use TokenKind as K;
        let closes = matches!(kind, K::RightRound | K::RightSquare | K::RightBrace);
        if inside == Inside::Condition && (before == K::Bar || kind == K::Bar) {
            return true;
        }
        if matches!(before, K::LeftRound | K::LeftSquare | K::LeftBrace) || closes || kind == K::Comma {
            return false;
        }
        if before == K::Comma {
            return true;
        }
        if inside != Inside::Values {
            return false;
        }
        match (before, kind) {
            (K::At, _) | (_, K::Question | K::Caret | K::DotDot) | (K::Caret | K::DotDot, _) => false,
            (K::Minus, _) if self.unary => false,
            (_, K::Equal) | (K::Equal, _) if self.evidence && self.open.is_empty() => false,
            (K::Capital | K::Small, K::LeftRound | K::LeftSquare) => false,
            (K::RightSquare, K::LeftRound) if self.after_axes => false,
            _ => true,
        }
    }

    fn spelling<'a>(&self, kind: TokenKind, word: &'a str, start: usize, inside: Inside) -> Cow<'a, str> {
        use TokenKind as K;
        if let Some((_, _, sign)) = self.word_sign.filter(|(sign, _, _)| *sign == start) {
            return Cow::Borrowed(sign);
        }
        let closing = self.open.last().map(|(_, closing)| *closing);
        Cow::Borrowed(match kind {
            K::Small | K::Capital if word.contains('′') => return Cow::Owned(word.replace('′', "'")),
            K::Arrow => "<-",
            // In brackets it is the sign of a slice and a minus.
            K::Turnstile if inside == Inside::Values && self.open.is_empty() => "<-",
            K::Minus => "-",
            K::LessEqual => "<=",
            K::GreaterEqual => ">=",
            K::NotEqual => "!=",
            K::Not => "not",
            K::LeftBrace if self.before == Some(K::Caret) => "(",
            K::RightBrace if closing == Some(Closing::Round) => ")",
            _ => word,
        })
    }

    /// Opens or closes a bracket.
    fn bracket(&mut self, kind: TokenKind, inside: Inside) {
        use TokenKind as K;
        let nested = if inside == Inside::Values { Inside::Values } else { Inside::Tight };
        let opened = match (kind, self.before) {
            (K::LeftSquare, Some(K::Capital))
                if self.condition && self.open.is_empty() && self.earlier.is_none() =>
            {
                Inside::Condition
            }
            (K::LeftSquare, Some(K::Small)) => Inside::Axes,
            (K::LeftSquare, _) => Inside::Tight,
            (K::LeftRound, Some(K::Capital)) => Inside::Tight,
            (K::LeftRound, Some(K::Small)) if self.earlier == Some(K::At) => Inside::Tight,
            (K::LeftRound, _) => nested,
            (K::LeftBrace, Some(K::Caret)) => Inside::Values,
            (K::LeftBrace, _) => Inside::Tight,
            (K::RightRound | K::RightSquare | K::RightBrace, before) => {
                let closed = self.open.pop().map(|(closed, _)| closed);
                self.after_axes = closed == Some(Inside::Axes) && before != Some(K::LeftSquare);
                return;
            }
            (K::Small | K::Comma, _) => return,
            _ => {
                // Anything else makes them the places of a tensor with a small letter.
                if let Some((axes @ Inside::Axes, _)) = self.open.last_mut() {
                    *axes = Inside::Tight;
                }
                return;
            }
        };
        let brace = kind == K::LeftBrace && self.before == Some(K::Caret);
        self.open.push((opened, if brace { Closing::Round } else { Closing::AsWritten }));
    }
}

/// Whether an operand ends with it, so that a `-` behind it has two operands.
fn ends_operand(kind: TokenKind) -> bool {
    use TokenKind as K;
    matches!(kind, K::Number | K::Text | K::Small | K::Capital | K::Underscore)
        || matches!(kind, K::RightRound | K::RightSquare | K::RightBrace)
}
