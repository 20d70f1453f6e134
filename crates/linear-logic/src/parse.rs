//! Tokens to surface trees: recursive descent over the grammar of section 3.2, one function for each of its rules.
//!
//! Enter at [`file()`] or [`query`]. The first token that cannot stand where it stands is refused. Nesting beyond
//! [`MAX_NESTING`] is refused too, so that everything behind the parser may recurse over a tree.

mod formula;
mod parser;
mod term;

pub use parser::MAX_NESTING;
pub use term::MAX_LITERAL;

use std::rc::Rc;

use crate::ast::{Declaration, Name, Query};
use crate::error::{Result, Source};
use crate::lex::Kind as T;
use parser::Parser;

/// The declarations of a file.
///
/// # Errors
/// The first syntax error of the text, or nesting that is too deep.
pub fn file(source: &Rc<Source>) -> Result<Vec<Declaration>> {
    let mut parser = Parser::new(source);
    let mut declarations = Vec::new();
    while parser.kind() != T::End {
        declarations.push(parser.declaration()?);
    }
    Ok(declarations)
}

/// A term, and a formula if a colon follows.
///
/// # Errors
/// As for [`file()`].
pub fn query(source: &Rc<Source>) -> Result<Query> {
    let mut parser = Parser::new(source);
    let term = parser.term()?;
    let formula = if parser.accept(":") { Some(parser.formula()?) } else { None };
    if parser.kind() == T::End {
        Ok(Query { term, formula })
    } else {
        Err(parser.unexpected("the end of the text"))
    }
}

impl Parser<'_> {
    fn declaration(&mut self) -> Result<Declaration> {
        let declaration = if self.accept("def") {
            let name = self.name()?;
            let parameters = self.parameters()?;
            self.expect(":")?;
            let formula = self.formula()?;
            self.expect("=")?;
            Declaration::Definition { name, parameters, formula, term: self.term()? }
        } else if self.accept("type") {
            let name = self.name()?;
            let parameters = self.parameters()?;
            self.expect("=")?;
            Declaration::Type { name, parameters, formula: self.formula()? }
        } else if self.accept("atom") {
            Declaration::Atoms(self.list(Self::name)?)
        } else {
            return Err(self.unexpected("`def`, `type` or `atom`"));
        };
        self.expect(";")?;
        Ok(declaration)
    }

    fn parameters(&mut self) -> Result<Vec<Name>> {
        if !self.accept("{") {
            return Ok(Vec::new());
        }
        let names = self.list(Self::name)?;
        self.expect("}")?;
        Ok(names)
    }
}
