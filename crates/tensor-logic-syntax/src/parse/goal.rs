//! Queries: goals, evidence, directives.

use super::{Parsed, Parser};
use crate::ast::{Argument, Constant, Directive, Evidence, Goal, Name, Number, StatementKind, Target, Value};
use crate::lex::TokenKind;

impl Parser<'_> {
    /// `goal "?" { directive }`
    pub(super) fn query(&mut self) -> Parsed<StatementKind> {
        let goal = self.goal()?;
        self.expect(TokenKind::Question, "`,` or `?`")?;
        let mut directives = Vec::new();
        while self.peek() == TokenKind::At {
            directives.push(self.directive()?);
        }
        Ok(StatementKind::Query { goal, directives })
    }

    fn goal(&mut self) -> Parsed<Goal> {
        if self.peek() == TokenKind::Capital && self.second() == TokenKind::Bar {
            let name = self.name();
            self.advance();
            return Ok(Goal::Restricted { name, evidence: self.list(Self::evidence)? });
        }
        if self.conditional_ahead() {
            return self.conditional();
        }
        Ok(Goal::Literals(self.list(Self::literal)?))
    }

    /// `Z[s, r=1 | w=1]`
    fn conditional(&mut self) -> Parsed<Goal> {
        let name = self.name();
        self.open()?;
        let targets = self.list(|parser| {
            let index = parser.named(TokenKind::Small, "an index")?;
            let value = if parser.eat(TokenKind::Equal) { Some(parser.constant()?) } else { None };
            Ok(Target { index, value })
        })?;
        self.expect(TokenKind::Bar, "`,` or `|`")?;
        let evidence =
            if self.peek() == TokenKind::RightSquare { Vec::new() } else { self.list(Self::evidence)? };
        self.close(TokenKind::RightSquare, "`,` or `]`")?;
        Ok(Goal::Conditional { targets, evidence, span: self.since(name.span), name })
    }

    /// `w=1`
    fn evidence(&mut self) -> Parsed<Evidence> {
        let index = self.named(TokenKind::Small, "an index")?;
        self.expect(TokenKind::Equal, "`=`")?;
        Ok(Evidence { index, value: self.constant()? })
    }

    /// `[ "-" ] INT | NAME | string`
    pub(super) fn constant(&mut self) -> Parsed<Constant> {
        let start = self.span();
        match self.peek() {
            TokenKind::Capital => Ok(Constant::Name(self.name())),
            TokenKind::Text => Ok(Constant::Text(self.quoted())),
            TokenKind::Number => Ok(Constant::Integer(self.integer()?, start)),
            TokenKind::Minus => {
                self.advance();
                let value = self.integer()?;
                Ok(Constant::Integer(-value, self.since(start)))
            }
            _ => Err(self.unexpected("a constant: a whole number, a capital name or a text")),
        }
    }

    /// `@minimize(opt=adam, lr=0.1)`
    pub(super) fn directive(&mut self) -> Parsed<Directive> {
        let start = self.advance();
        let word = self.named(TokenKind::Small, "the name of a directive")?;
        let name = Name { text: word.text, span: start.to(word.span) };
        let mut arguments = None;
        if self.peek() == TokenKind::LeftRound {
            self.open()?;
            let none = self.peek() == TokenKind::RightRound;
            arguments = Some(if none { Vec::new() } else { self.list(Self::argument)? });
            self.close(TokenKind::RightRound, "`,` or `)`")?;
        }
        Ok(Directive { name, arguments, span: self.since(start) })
    }

    fn argument(&mut self) -> Parsed<Argument> {
        let start = self.span();
        let keyed =
            matches!(self.peek(), TokenKind::Small | TokenKind::Capital) && self.second() == TokenKind::Equal;
        let key = keyed.then(|| self.name());
        if keyed {
            self.advance();
        }
        let mut value = self.value()?;
        if let Value::Name(name) = &mut value
            && name.text == "topk"
            && self.peek() == TokenKind::LeftRound
        {
            // A type with its number, `topk(3)`, is one word.
            self.open()?;
            let number = self.signed("the number of proofs")?;
            self.close(TokenKind::RightRound, "`)`")?;
            name.text = format!("topk({})", number.text);
            name.span = self.since(start);
        }
        Ok(Argument { key, value, span: self.since(start) })
    }

    /// `[ "-" ] number | name | NAME | string`
    fn value(&mut self) -> Parsed<Value> {
        Ok(match self.peek() {
            TokenKind::Small | TokenKind::Capital => Value::Name(self.name()),
            TokenKind::Text => Value::Text(self.quoted()),
            _ => Value::Number(self.signed("a number, a name or a text")?),
        })
    }

    /// `( value, … )`, maybe none.
    pub(super) fn values(&mut self) -> Parsed<Vec<Value>> {
        self.open()?;
        let none = self.peek() == TokenKind::RightRound;
        let values = if none { Vec::new() } else { self.list(Self::value)? };
        self.close(TokenKind::RightRound, "`,` or `)`")?;
        Ok(values)
    }
}

impl Value {
    /// The number, if it is one.
    pub fn number(&self) -> Option<&Number> {
        match self {
            Value::Number(number) => Some(number),
            Value::Name(_) | Value::Text(_) => None,
        }
    }
}
