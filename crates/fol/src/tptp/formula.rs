//! The formulas of TPTP.
//!
//! The parser descends, so it counts how deep it stands; chains of `&` and `|` make deep trees without
//! descending, so it also measures the height of what it builds. Both are held at the reader's limit, and
//! a deeper tree never comes to exist.

use super::cursor::Cursor;
use super::lex::Token;
use super::names::Table;
use crate::ast::{Connective, Formula, Quantifier, Relation, Term, Variable};
use crate::built::Built;
use crate::error::{Kind, MAX_DEPTH, Refusal};
use crate::input::Names;

/// A term under construction, and the nodes around the deepest node in it.
type BuiltTerm = (Term, usize);

/// A descent through the lexemes of one file.
pub(super) struct Parser<'a> {
    pub(super) cursor: Cursor<'a>,
    names: Table,
    binding: Binding,
    /// The first variable that nothing binds; reported when the file is read to its end.
    free: Option<Refusal>,
}

/// What makes a variable legal.
enum Binding {
    /// The quantifiers around this place.
    Scope(Vec<Variable>),
    /// A clause, which is closed over its variables, in order of first occurrence.
    Clause(Vec<Variable>),
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a str, names: Table) -> Result<Self, Refusal> {
        Ok(Self { cursor: Cursor::new(source)?, names, binding: Binding::Scope(vec![]), free: None })
    }

    /// The names with their indices, when all is read.
    pub(super) fn finish(self) -> Result<(Table, Names), Refusal> {
        self.free.map_or_else(|| Ok(self.names.resolved()), Err)
    }

    /// A formula of a `fof`.
    pub(super) fn fof(&mut self) -> Result<Formula, Refusal> {
        self.binding = Binding::Scope(vec![]);
        Ok(self.formula(0)?.formula)
    }

    /// A clause, closed.
    pub(super) fn cnf(&mut self) -> Result<Formula, Refusal> {
        self.binding = Binding::Clause(vec![]);
        let mut built = self.clause(0)?;
        let Binding::Clause(variables) = std::mem::replace(&mut self.binding, Binding::Scope(vec![])) else {
            return Ok(built.formula);
        };
        for x in variables.into_iter().rev() {
            built = self.quantified(Quantifier::Forall, x, built)?;
        }
        Ok(built.formula)
    }

    /// A formula up to the next closing parenthesis or comma. Its operands stand as deep as it does itself: what
    /// descends is the parenthesis around it.
    fn formula(&mut self, depth: usize) -> Result<Built, Refusal> {
        let left = self.unit(depth)?;
        let Some(Token::Sign(sign)) = self.cursor.peek() else { return Ok(left) };
        let sign = *sign;
        match sign {
            "&" | "|" => {
                let connective = if sign == "&" { Connective::And } else { Connective::Or };
                let mut chain = left;
                while self.cursor.sees(sign) {
                    self.cursor.advance();
                    let right = self.unit(depth)?;
                    chain = self.binary(connective, chain, right)?;
                }
                Ok(chain)
            }
            "=>" | "<=" | "<=>" | "<~>" | "~|" | "~&" => {
                self.cursor.advance();
                let right = self.unit(depth)?;
                match sign {
                    "=>" => self.binary(Connective::Implies, left, right),
                    "<=" => self.binary(Connective::Implies, right, left),
                    "<=>" => self.binary(Connective::Iff, left, right),
                    "<~>" => self.negated_binary(Connective::Iff, left, right),
                    "~|" => self.negated_binary(Connective::Or, left, right),
                    _ => self.negated_binary(Connective::And, left, right),
                }
            }
            _ => Ok(left),
        }
    }

    /// An operand: an atom, a negation, a quantified formula, or anything in parentheses.
    fn unit(&mut self, depth: usize) -> Result<Built, Refusal> {
        self.not_too_deep(depth)?;
        match self.cursor.peek() {
            Some(Token::Sign("~")) => {
                self.cursor.advance();
                let body = self.unit(depth + 1)?;
                self.checked(body.negated())
            }
            Some(Token::Sign("!")) => self.quantifier(Quantifier::Forall, depth),
            Some(Token::Sign("?")) => self.quantifier(Quantifier::Exists, depth),
            Some(Token::Sign("(")) => {
                self.cursor.advance();
                let inside = self.formula(depth + 1)?;
                self.cursor.expect(")")?;
                self.checked(inside.enclosed())
            }
            _ => self.atom(depth),
        }
    }

    /// `![X,Y]: φ` is ∀X ∀Y φ.
    fn quantifier(&mut self, quantifier: Quantifier, depth: usize) -> Result<Built, Refusal> {
        self.cursor.advance();
        self.cursor.expect("[")?;
        let mut bound = vec![];
        loop {
            let Some(Token::Upper(name)) = self.cursor.peek() else {
                return Err(self.cursor.unexpected("a variable"));
            };
            let name = name.clone();
            bound.push(self.variable(&name)?);
            self.cursor.advance();
            if self.cursor.sees(":") {
                return Err(self.cursor.unsupported("typed variables are not read"));
            }
            if !self.cursor.sees(",") {
                break;
            }
            self.cursor.advance();
        }
        self.cursor.expect("]")?;
        self.cursor.expect(":")?;
        self.not_too_deep(depth + bound.len())?;
        let outside = match &mut self.binding {
            Binding::Scope(scope) => {
                scope.extend(&bound);
                scope.len() - bound.len()
            }
            Binding::Clause(_) => 0,
        };
        let mut built = self.unit(depth + bound.len())?;
        if let Binding::Scope(scope) = &mut self.binding {
            scope.truncate(outside);
        }
        for x in bound.into_iter().rev() {
            built = self.quantified(quantifier, x, built)?;
        }
        Ok(built)
    }

    /// `(…)` around a clause, or literals joined by `|`.
    fn clause(&mut self, depth: usize) -> Result<Built, Refusal> {
        self.not_too_deep(depth)?;
        if self.cursor.sees("(") {
            self.cursor.advance();
            let inside = self.clause(depth + 1)?;
            self.cursor.expect(")")?;
            return self.checked(inside.enclosed());
        }
        let mut chain = self.literal(depth)?;
        while self.cursor.sees("|") {
            self.cursor.advance();
            let right = self.literal(depth)?;
            chain = self.binary(Connective::Or, chain, right)?;
        }
        Ok(chain)
    }

    /// An atom, or a negated atom, which may stand in parentheses.
    fn literal(&mut self, depth: usize) -> Result<Built, Refusal> {
        if !self.cursor.sees("~") {
            return self.atom(depth);
        }
        self.cursor.advance();
        let body = if self.cursor.sees("(") {
            self.cursor.advance();
            let inside = self.atom(depth + 2)?;
            self.cursor.expect(")")?;
            self.checked(inside.enclosed())?
        } else {
            self.atom(depth + 1)?
        };
        self.checked(body.negated())
    }

    /// `p(…)`, `lt(s,t)`, `s = t`, `s != t`, `$true`, `$false`.
    fn atom(&mut self, depth: usize) -> Result<Built, Refusal> {
        let start = self.cursor.at();
        let (name, arguments) = match self.cursor.peek() {
            Some(Token::Dollar(word)) if word == "$true" || word == "$false" => {
                let truth = Formula::Truth(word == "$true");
                self.cursor.advance();
                return Ok(Built::atom(truth, 0));
            }
            Some(Token::Lower(name)) => {
                let name = name.clone();
                self.cursor.advance();
                (Some(name), self.arguments(depth)?)
            }
            Some(Token::Upper(_)) => (None, vec![]),
            _ => return Err(self.cursor.unexpected("a formula")),
        };
        let equation = |parser: &Self| match parser.cursor.peek() {
            Some(Token::Sign("=")) => Some(Relation::Equals),
            Some(Token::Sign("!=")) => Some(Relation::NotEquals),
            _ => None,
        };
        let left = match name {
            Some(name) if equation(self).is_none() => return self.predicate(&name, arguments, start),
            Some(name) => self.applied(&name, arguments, start)?,
            None => self.term(depth)?,
        };
        let Some(relation) = equation(self) else { return Err(self.cursor.unexpected("= or !=")) };
        self.cursor.advance();
        let right = self.term(depth)?;
        Ok(Built::atom(Formula::Relation(relation, left.0, right.0), left.1.max(right.1)))
    }

    fn predicate(&mut self, name: &str, arguments: Vec<BuiltTerm>, start: usize) -> Result<Built, Refusal> {
        let height = arguments.iter().map(|t| t.1).max().unwrap_or(0);
        let relation = match name {
            "lt" => Some(Relation::LessThan),
            "gt" => Some(Relation::GreaterThan),
            "le" => Some(Relation::LessEqual),
            "ge" => Some(Relation::GreaterEqual),
            _ => None,
        };
        let mut terms: Vec<Term> = arguments.into_iter().map(|t| t.0).collect();
        if let (Some(relation), 2) = (relation, terms.len())
            && let (Some(right), Some(left)) = (terms.pop(), terms.pop())
        {
            return Ok(Built::atom(Formula::Relation(relation, left, right), height));
        }
        let predicate =
            self.names.predicate(name, terms.len(), start).map_err(|r| self.cursor.located(r, start))?;
        Ok(Built::atom(Formula::Predicate(predicate, terms), height))
    }

    fn term(&mut self, depth: usize) -> Result<BuiltTerm, Refusal> {
        self.not_too_deep(depth)?;
        match self.cursor.peek() {
            Some(Token::Upper(name)) => {
                let name = name.clone();
                let x = self.variable(&name)?;
                self.occurs(x, &name);
                self.cursor.advance();
                Ok((Term::Variable(x), 0))
            }
            Some(Token::Lower(name)) => {
                let (name, start) = (name.clone(), self.cursor.at());
                self.cursor.advance();
                let arguments = self.arguments(depth)?;
                self.applied(&name, arguments, start)
            }
            _ => Err(self.cursor.unexpected("a term")),
        }
    }

    /// A constant, a free variable, or a function of these arguments.
    fn applied(&mut self, name: &str, arguments: Vec<BuiltTerm>, start: usize) -> Result<BuiltTerm, Refusal> {
        let Some(deepest) = arguments.iter().map(|t| t.1).max() else {
            let term = self.names.constant(name, start).map_err(|r| self.cursor.located(r, start))?;
            return Ok((term, 0));
        };
        if deepest >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        let function =
            self.names.function(name, arguments.len(), start).map_err(|r| self.cursor.located(r, start))?;
        let arguments = arguments.into_iter().map(|t| t.0).collect();
        Ok((Term::Function(function, arguments), deepest + 1))
    }

    /// `(t, …)`, or nothing.
    fn arguments(&mut self, depth: usize) -> Result<Vec<BuiltTerm>, Refusal> {
        let mut arguments = vec![];
        if !self.cursor.sees("(") {
            return Ok(arguments);
        }
        loop {
            self.cursor.advance();
            arguments.push(self.term(depth + 1)?);
            if !self.cursor.sees(",") {
                break;
            }
        }
        self.cursor.expect(")")?;
        Ok(arguments)
    }

    fn variable(&mut self, name: &str) -> Result<Variable, Refusal> {
        let at = self.cursor.at();
        self.names.variable(name, at).map_err(|r| self.cursor.located(r, at))
    }

    /// An occurrence of a variable that is no binder.
    fn occurs(&mut self, x: Variable, name: &str) {
        match &mut self.binding {
            // More of them make the closed clause too deep anyhow.
            Binding::Clause(seen) if seen.len() <= MAX_DEPTH && !seen.contains(&x) => seen.push(x),
            Binding::Scope(scope) if !scope.contains(&x) && self.free.is_none() => {
                let refusal = Refusal::new(Kind::FreeVariable, format!("nothing binds {name}"))
                    .found(name)
                    .help("quantify it, or name it v0, v1, … to make it a free variable of ours");
                self.free = Some(self.cursor.located(refusal, self.cursor.at()));
            }
            _ => {}
        }
    }

    // What is built from parts, one node higher.

    fn quantified(&self, quantifier: Quantifier, x: Variable, body: Built) -> Result<Built, Refusal> {
        self.checked(body.quantified(quantifier, x, None))
    }

    fn binary(&self, connective: Connective, left: Built, right: Built) -> Result<Built, Refusal> {
        self.checked(Built::joined(connective, left, right))
    }

    /// The negation of a binary formula, which has no parentheses of its own to count.
    fn negated_binary(&self, connective: Connective, left: Built, right: Built) -> Result<Built, Refusal> {
        self.checked(self.binary(connective, left, right)?.negated())
    }

    fn checked(&self, built: Built) -> Result<Built, Refusal> {
        if built.height <= MAX_DEPTH { Ok(built) } else { Err(self.too_deep()) }
    }

    /// Stops the descent; the exact limit is that of the height.
    fn not_too_deep(&self, depth: usize) -> Result<(), Refusal> {
        if depth <= MAX_DEPTH + 1 { Ok(()) } else { Err(self.too_deep()) }
    }

    fn too_deep(&self) -> Refusal {
        self.cursor.here(Refusal::new(Kind::TooDeep, format!("the formula nests deeper than {MAX_DEPTH}")))
    }
}
