//! A file of annotated formulas as one text.

use super::formula::Parser;
use super::lex::Token;
use super::names::Table;
use crate::ast::{Formula, Statement, Text, Turnstile};
use crate::error::{Kind, Refusal};
use crate::input::Names;

/// Reads one file of `fof` and `cnf` formulas as one text, with the indices that its names were given.
///
/// With a conjecture the text is one sequent, without one it has a statement for each formula. Places are
/// byte spans.
///
/// # Errors
/// The refusals of a reader, `FreeVariable` for a variable of a `fof` formula that nothing binds, and
/// `TptpUnsupported` for all of TPTP that has no reading here.
pub fn read(source: &str) -> Result<(Text, Names), Refusal> {
    let mut parser = Parser::new(source, Table::default())?;
    file(&mut parser)?;
    let (resolved, names) = parser.finish()?;
    let (formulas, conjecture) = file(&mut Parser::new(source, resolved)?)?;
    let (statements, terminated) = match conjecture {
        Some(conclusion) => (vec![Statement::Sequent(Turnstile::Entails, formulas, Some(conclusion))], false),
        None => {
            let several = formulas.len() > 1;
            (formulas.into_iter().map(Statement::Formula).collect(), several)
        }
    };
    if statements.is_empty() {
        return Err(Refusal::new(Kind::UnexpectedEnd, "the file holds no formula")
            .span(source.len(), source.len())
            .found("end")
            .help("write for example fof(a, axiom, p)."));
    }
    Ok((Text { statements, terminated }, names))
}

/// The formulas of a file, and its conjecture.
fn file(parser: &mut Parser<'_>) -> Result<(Vec<Formula>, Option<Formula>), Refusal> {
    let (mut formulas, mut conjecture) = (vec![], None);
    while !parser.cursor.at_end() {
        match annotated(parser, conjecture.is_some())? {
            (Role::Premise, formula) => formulas.push(formula),
            (Role::Conjecture, formula) => conjecture = Some(formula),
        }
    }
    Ok((formulas, conjecture))
}

enum Role {
    Premise,
    Conjecture,
}

/// The roles whose formulas are simply given.
const PREMISES: [&str; 10] = [
    "axiom",
    "hypothesis",
    "definition",
    "assumption",
    "lemma",
    "theorem",
    "corollary",
    "negated_conjecture",
    "plain",
    "unknown",
];

/// `fof(name, role, formula).` and `cnf(name, role, clause).`
fn annotated(parser: &mut Parser<'_>, has_conjecture: bool) -> Result<(Role, Formula), Refusal> {
    let language = match parser.cursor.peek() {
        Some(Token::Lower(word)) => word.clone(),
        _ => return Err(parser.cursor.unexpected("fof( or cnf(")),
    };
    if language != "fof" && language != "cnf" {
        return Err(parser.cursor.unsupported(&format!("{language} is not read; only fof and cnf are")));
    }
    parser.cursor.advance();
    parser.cursor.expect("(")?;
    match parser.cursor.peek() {
        Some(Token::Lower(_) | Token::Integer) => parser.cursor.advance(),
        _ => return Err(parser.cursor.unexpected("a name")),
    }
    parser.cursor.expect(",")?;
    let role = role(parser, has_conjecture)?;
    parser.cursor.expect(",")?;
    let formula = if language == "fof" { parser.fof()? } else { parser.cnf()? };
    if parser.cursor.sees(",") {
        parser.cursor.skip_annotations()?;
    }
    parser.cursor.expect(")")?;
    parser.cursor.expect(".")?;
    Ok((role, formula))
}

fn role(parser: &mut Parser<'_>, has_conjecture: bool) -> Result<Role, Refusal> {
    let role = match parser.cursor.peek() {
        Some(Token::Lower(word)) if PREMISES.contains(&word.as_str()) => Role::Premise,
        Some(Token::Lower(word)) if word == "conjecture" && !has_conjecture => Role::Conjecture,
        Some(Token::Lower(word)) if word == "conjecture" => {
            return Err(parser.cursor.unsupported("a file with two conjectures is no sequent"));
        }
        Some(Token::Lower(word)) => {
            let message = format!("formulas of the role {word} are not read");
            return Err(parser.cursor.unsupported(&message));
        }
        _ => return Err(parser.cursor.unexpected("a role")),
    };
    parser.cursor.advance();
    Ok(role)
}
