//! The tree: what a text *is*, whatever its spelling (F6).

use crate::symbol::SymbolId;

macro_rules! index_newtype {
    ($($(#[$doc:meta])* $name:ident $category:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// The category symbol that stands before the index.
            pub const CATEGORY: SymbolId = SymbolId::$category;
        }
    )*};
}

index_newtype! {
    /// The index of a variable.
    Variable VAR;
    /// The index of a constant.
    Constant CONST;
    /// The index of a predicate.
    Predicate PRED;
    /// The index of a function.
    Function FUNC;
    /// The index of a sort.
    Sort SORT;
}

/// A term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Term {
    /// `VAR n`
    Variable(Variable),
    /// `CONST n`
    Constant(Constant),
    /// `FUNC n (t, …)`, at least one argument
    Function(Function, Vec<Term>),
}

/// The four binary connectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names of the symbols")]
pub enum Connective {
    And,
    Or,
    Implies,
    Iff,
}

/// The three quantifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names of the symbols")]
pub enum Quantifier {
    Forall,
    Exists,
    Exists1,
}

/// The six relations between terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names of the symbols")]
pub enum Relation {
    Equals,
    NotEquals,
    LessThan,
    GreaterThan,
    LessEqual,
    GreaterEqual,
}

/// Signs of one kind, each with its symbol.
pub(crate) trait Sign: Copy + PartialEq + 'static {
    /// All of them, in id order.
    const ALL: &'static [Self];

    /// The symbol.
    fn symbol(self) -> SymbolId;

    /// What belongs to the sign of a symbol in a list with one number for each.
    fn share(symbol: SymbolId, shares: &[f64]) -> f64 {
        let found = Self::ALL.iter().zip(shares).find(|(sign, _)| sign.symbol() == symbol);
        found.map_or(0.0, |(_, share)| *share)
    }
}

macro_rules! symbol_of {
    ($type:ident: $($variant:ident $symbol:ident),* $(,)?) => {
        impl Sign for $type {
            const ALL: &'static [Self] = Self::ALL;

            fn symbol(self) -> SymbolId {
                Self::symbol(self)
            }
        }

        impl $type {
            /// All of them, in id order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The symbols of all.
            pub(crate) const SYMBOLS: &'static [SymbolId] = &[$(SymbolId::$symbol),*];

            /// The symbol.
            pub fn symbol(self) -> SymbolId {
                match self { $(Self::$variant => SymbolId::$symbol,)* }
            }

            /// The one that a symbol writes, if it writes one.
            pub fn from_symbol(symbol: SymbolId) -> Option<Self> {
                match symbol { $(SymbolId::$symbol => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

symbol_of!(Connective: And AND, Or OR, Implies IMPLIES, Iff IFF);
symbol_of!(Quantifier: Forall FORALL, Exists EXISTS, Exists1 EXISTS1);
symbol_of!(Relation: Equals EQUALS, NotEquals NOT_EQUALS, LessThan LESS_THAN, GreaterThan GREATER_THAN,
    LessEqual LESS_EQUAL, GreaterEqual GREATER_EQUAL);

/// A formula.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Formula {
    /// `⊤` or `⊥`
    Truth(bool),
    /// `PRED n` or `PRED n (t, …)`
    Predicate(Predicate, Vec<Term>),
    /// `s = t` and the five others
    Relation(Relation, Term, Term),
    /// `¬φ`
    Not(Box<Formula>),
    /// `(φ ∧ ψ)` and the three others
    Binary(Connective, Box<Formula>, Box<Formula>),
    /// `∀x φ`, `∀x:S φ` and the two others
    Quantified(Quantifier, Variable, Option<Sort>, Box<Formula>),
}

/// What stands before ≔, with the body that stands after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Definition {
    /// `P(x, …) ≔ φ`
    Predicate(Predicate, Vec<Variable>, Formula),
    /// `f(x, …) ≔ t`, at least one parameter
    Function(Function, Vec<Variable>, Term),
    /// `c ≔ t`
    Constant(Constant, Term),
}

/// The two signs of a sequent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turnstile {
    /// `⊢`
    Entails,
    /// `⊨`
    Models,
}

symbol_of!(Turnstile: Entails ENTAILS, Models MODELS);

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Statement {
    /// A formula alone.
    Formula(Formula),
    /// `φ, … ⊢ ψ`; the conclusion `None` is `<unknown>`.
    Sequent(Turnstile, Vec<Formula>, Option<Formula>),
    /// `head ≔ body`
    Definition(Definition),
    /// `φ ≡ ψ`
    Equivalence(Formula, Formula),
}

/// A text: statements joined by DOT, and whether it ends in one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text {
    /// At least one.
    pub statements: Vec<Statement>,
    /// The text ends in DOT.
    pub terminated: bool,
}

impl Text {
    /// The text of one formula, without a final DOT.
    pub fn formula(formula: Formula) -> Self {
        Self { statements: vec![Statement::Formula(formula)], terminated: false }
    }

    /// The formula, if the text is one formula without a final DOT.
    pub fn as_formula(&self) -> Option<&Formula> {
        match (self.statements.as_slice(), self.terminated) {
            ([Statement::Formula(f)], false) => Some(f),
            _ => None,
        }
    }
}

/// What a three-way question is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// It follows.
    True,
    /// Its negation follows.
    False,
    /// Neither does.
    Unknown,
}

impl Answer {
    /// All three, in the order of their symbols.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// The symbol.
    pub fn symbol(self) -> SymbolId {
        match self {
            Self::True => SymbolId::TRUE,
            Self::False => SymbolId::FALSE,
            Self::Unknown => SymbolId::UNKNOWN,
        }
    }

    /// The answer that a symbol writes, if it writes one.
    pub fn from_symbol(symbol: SymbolId) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.symbol() == symbol)
    }
}

/// Two variables that are equal.
pub type Equation = (Variable, Variable);

/// A statement of an inference task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Task {
    /// `φ, … ⊢ s. … ψ`: the last step is the conclusion; without a step it is `<unknown>`.
    Deduction {
        /// What is given.
        premises: Vec<Formula>,
        /// What follows, one after the other.
        steps: Vec<Formula>,
    },
    /// `φ, … <query> ψ <answer> …`
    Question {
        /// What is given.
        premises: Vec<Formula>,
        /// What is asked about.
        asked: Formula,
        /// The answer.
        answer: Answer,
    },
    /// `a = b <sep> … <sep> <query> a <answer> z`
    Term {
        /// At least one.
        equations: Vec<Equation>,
        /// The variable that is asked about.
        asked: Variable,
        /// The variable at the end of its chain.
        answer: Variable,
    },
}
