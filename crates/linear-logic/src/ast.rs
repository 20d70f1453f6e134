//! The surface trees: what the grammar says, with a span on every node, nothing looked up.

use std::rc::Rc;

use crate::error::Span;

/// A name where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Its text.
    pub text: Rc<str>,
    /// Its place.
    pub span: Span,
}

/// A declaration of a file.
#[derive(Debug)]
pub enum Declaration {
    /// `def f{A} : C = t;`
    Definition {
        /// f.
        name: Name,
        /// The parameters.
        parameters: Vec<Name>,
        /// C.
        formula: Formula,
        /// t.
        term: Term,
    },
    /// `type F{A} = C;`
    Type {
        /// F.
        name: Name,
        /// The parameters.
        parameters: Vec<Name>,
        /// C.
        formula: Formula,
    },
    /// `atom a, b;`
    Atoms(Vec<Name>),
}

/// The argument of `-e`.
#[derive(Debug)]
pub struct Query {
    /// The term.
    pub term: Term,
    /// The formula behind a colon.
    pub formula: Option<Formula>,
}

/// A formula as it is written.
#[derive(Debug)]
pub struct Formula {
    /// Without the parentheses around it.
    pub span: Span,
    /// What it is.
    pub kind: FormulaKind,
}

/// What a written formula is.
#[derive(Debug)]
#[expect(missing_docs, reason = "the connectives of section 2")]
pub enum FormulaKind {
    Name { name: Rc<str>, arguments: Option<Vec<Formula>> },
    One,
    Tensor(Box<Formula>, Box<Formula>),
    Lolli(Box<Formula>, Box<Formula>),
    With(Box<Formula>, Box<Formula>),
    Plus(Box<Formula>, Box<Formula>),
    Bang(Box<Formula>),
}

/// A term as it is written.
#[derive(Debug)]
pub struct Term {
    /// Without the parentheses around it.
    pub span: Span,
    /// What it is.
    pub kind: TermKind,
}

/// The arguments in braces, if there are braces.
pub type Braces = Option<Vec<Formula>>;

/// What a written term is.
#[derive(Debug)]
#[expect(missing_docs, reason = "the constructs of section 3.2")]
pub enum TermKind {
    Name {
        name: Rc<str>,
        braces: Braces,
    },
    /// The value, unless it is too large.
    Numeral {
        value: Option<u32>,
        braces: Braces,
    },
    /// The digits, unless they are too many; `true` is 1.
    Word {
        digits: Option<Rc<[bool]>>,
        braces: Braces,
    },
    Lambda {
        binder: Name,
        domain: Option<Formula>,
        body: Box<Term>,
    },
    Apply(Box<Term>, Box<Term>),
    Tensor(Box<Term>, Box<Term>),
    LetTensor {
        scrutinee: Box<Term>,
        left: Name,
        right: Name,
        body: Box<Term>,
    },
    Unit,
    LetUnit {
        scrutinee: Box<Term>,
        body: Box<Term>,
    },
    Derelict(Box<Term>),
    Promote {
        sources: Vec<(Term, Name)>,
        body: Box<Term>,
    },
    Copy {
        scrutinee: Box<Term>,
        left: Name,
        right: Name,
        body: Box<Term>,
    },
    Discard {
        scrutinee: Box<Term>,
        body: Box<Term>,
    },
    With(Box<Term>, Box<Term>),
    First(Box<Term>),
    Second(Box<Term>),
    /// `braces_span` is that of `inl` or `inr` with its braces.
    Inject {
        side: Side,
        braces: Braces,
        braces_span: Span,
        term: Box<Term>,
    },
    Case {
        scrutinee: Box<Term>,
        left: (Name, Box<Term>),
        right: (Name, Box<Term>),
    },
    Ascribe(Box<Term>, Formula),
    Coweaken {
        braces: Braces,
    },
    Cocopy(Box<Term>, Box<Term>),
    Coderelict(Box<Term>),
}

/// `inl` or `inr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "two sides")]
pub enum Side {
    Left,
    Right,
}
