//! The canonical form of a program: one statement a line, one way to set blanks, ASCII signs.
//!
//! Enter at [`format()`]. A program is laid out from its tokens, not from its tree, so that
//! numbers, quotes, product signs, comments and line breaks inside brackets stay as they were
//! written; the tree only says where statements begin and end and what a few signs mean. What
//! stands between two tokens of a statement is decided in `spacing`. Formatting twice changes
//! nothing, and the tree of the result is the tree of the text.

mod spacing;

use crate::ast::{Span, Statement};
use crate::error::Refusal;
use crate::lex::{Lexed, lex};
use crate::parse::parse;
use spacing::Speller;

/// The canonical form of a text.
///
/// # Errors
/// Its syntax errors, in order of place.
pub fn format(text: &str) -> Result<String, Vec<Refusal>> {
    let (program, reports) = parse(text);
    if !reports.is_empty() {
        return Err(reports);
    }
    let mut layout = Layout { text, lexed: lex(text), comment: 0, token: 0, written: String::new(), end: 0 };
    for statement in &program.statements {
        layout.comments_until(statement.span.start);
        layout.statement(statement);
    }
    layout.comments_until(text.len());
    if !layout.written.is_empty() {
        layout.written.push('\n');
    }
    Ok(layout.written)
}

struct Layout<'a> {
    text: &'a str,
    lexed: Lexed,
    /// The first comment that is not yet written.
    comment: usize,
    /// The first token that is not yet passed.
    token: usize,
    written: String,
    /// Where the last statement or comment ended in the text.
    end: usize,
}

impl<'a> Layout<'a> {
    fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    /// The next comment, if it begins before `offset`.
    fn next_comment(&mut self, offset: usize) -> Option<Span> {
        let next = self.lexed.comments.get(self.comment).copied().filter(|comment| comment.start < offset)?;
        self.comment += 1;
        Some(next)
    }

    /// The comments between statements.
    fn comments_until(&mut self, offset: usize) {
        while let Some(comment) = self.next_comment(offset) {
            if self.written.is_empty() || self.gap(comment.start).contains('\n') {
                self.new_line(comment.start, 0);
            } else {
                self.written.push_str("  ");
            }
            self.written.push_str(self.slice(comment));
            self.end = comment.end;
        }
    }

    /// The text between what was written last and `start`.
    fn gap(&self, start: usize) -> &'a str {
        self.text.get(self.end..start).unwrap_or("")
    }

    /// A new line for what begins at `start`; of the blank lines before it one is kept.
    fn new_line(&mut self, start: usize, indentation: usize) {
        if self.written.is_empty() {
            return;
        }
        let mut lines = self.gap(start).split('\n');
        lines.next();
        lines.next_back();
        if lines.any(|line| line.trim().is_empty()) {
            self.written.push('\n');
        }
        self.written.push('\n');
        self.written.extend(std::iter::repeat_n(' ', indentation));
    }

    fn statement(&mut self, statement: &Statement) {
        self.new_line(statement.span.start, 0);
        let mut speller = Speller::new(statement);
        self.token += self.tokens_from_here(statement.span.start);
        let mut first = true;
        while let Some(token) = self.lexed.tokens.get(self.token).copied() {
            if token.span.start >= statement.span.end {
                break;
            }
            self.token += 1;
            let word = self.slice(token.span);
            let Some((blank, spelling)) = speller.next(token, word) else {
                self.end = token.span.end;
                continue;
            };
            let broken = self.inner_comments(token.span.start, &speller);
            if broken || (token.breaks && speller.outer_depth() > 0 && !first) {
                self.new_line(token.span.start, speller.indentation());
            } else if blank && !first {
                self.written.push(' ');
            }
            self.written.push_str(&spelling);
            self.end = token.span.end;
            first = false;
        }
    }

    /// How many tokens stand before `start` (full stops and `;`).
    fn tokens_from_here(&self, start: usize) -> usize {
        let rest = self.lexed.tokens.get(self.token..).unwrap_or(&[]);
        rest.iter().take_while(|token| token.span.start < start).count()
    }

    /// The comments inside a statement before its token at `offset`; whether there are any.
    fn inner_comments(&mut self, offset: usize, speller: &Speller) -> bool {
        let mut any = false;
        while let Some(comment) = self.next_comment(offset) {
            if self.gap(comment.start).contains('\n') {
                self.new_line(comment.start, speller.indentation());
            } else {
                self.written.push_str("  ");
            }
            self.written.push_str(self.slice(comment));
            self.end = comment.end;
            any = true;
        }
        any
    }
}
