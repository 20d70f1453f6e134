//! The faithful tree of a program: what the text says, with its places, before any meaning.
//!
//! Enter at [`Program`]. Every node keeps its [`Span`], so that a refusal can point at it, and
//! the tree keeps what only the formatter needs (comments, line breaks inside brackets, how a
//! number was written). Nothing is resolved here: a capital name in an index place may be a
//! symbol or a number, a round reference with constants may be a fact or a query's literal.
//! The grammar is appendix A of the language's description.

pub use datarel::Comparison;

/// A place in the text: byte offsets, the end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A name as it was written, primes normalised to `'`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// The letters; `′` is stored as `'`.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A number as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// Its value.
    pub value: f64,
    /// Its spelling, kept by the formatter.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

impl Number {
    /// The whole number of 64 bits, from 0 on, that it is with all its digits. A spelling with a point or an exponent has
    /// them up to 2⁵³.
    pub fn whole(&self) -> Option<u64> {
        let kept = (0.0..9_007_199_254_740_992.0).contains(&self.value) && self.value.fract() == 0.0;
        self.text.parse().ok().or(kept.then_some(self.value as u64))
    }

    /// The whole number of 64 bits that the spelling is exactly, also with a point or an exponent (`1e18`, `2.0`).
    pub fn integer(&self) -> Option<i64> {
        let (mantissa, exponent) = match self.text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (self.text.as_str(), 0),
        };
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let part = part.trim_end_matches('0');
        let digits: i128 =
            if part.is_empty() { whole.parse() } else { format!("{whole}{part}").parse() }.ok()?;
        let places = exponent.checked_sub(i32::try_from(part.len()).ok()?)?;
        let power = 10_i128.checked_pow(places.unsigned_abs().min(38))?;
        let value = match places {
            _ if digits == 0 => 0,
            0.. => digits.checked_mul(power)?,
            _ if digits % power == 0 => digits / power,
            _ => return None,
        };
        i64::try_from(value).ok()
    }
}

/// A program: statements in order, and the comments between and behind them.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The statements, in order of the text.
    pub statements: Vec<Statement>,
    /// Comments in order of the text, spans from the `#` or `//` to the end of the line.
    pub comments: Vec<Span>,
}

/// One statement and its whole extent (without a full stop behind it).
#[derive(Debug, Clone)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// From its first to its last token.
    pub span: Span,
}

/// The kinds of statements (section 3).
#[derive(Debug, Clone)]
pub enum StatementKind {
    /// `i, j : 4`
    Indices {
        /// The indices.
        names: Vec<Name>,
        /// Their values.
        domain: DomainExpr,
    },
    /// `Person : {Ann, Bob}`
    Set {
        /// The set.
        name: Name,
        /// Its members.
        domain: DomainExpr,
    },
    /// A bare reference: a declaration (`Neig(x, y)`), a fact (`Parent(Ann, Bob)`), or a mistake.
    /// Also a declaration with a type (`P(x, y) : count`).
    Bare {
        /// The reference.
        reference: Reference,
        /// The type behind `:`.
        kind: Option<TypeExpr>,
    },
    /// `W[i, j] ~ normal(0, 0.1)`, with an optional type before the `~`.
    Parameter {
        /// The parameter with its places.
        reference: Reference,
        /// The type before the `~`.
        kind: Option<TypeExpr>,
        /// The sign.
        tilde: Span,
        /// Its start value.
        start: Start,
    },
    /// `0.3 :: Rain(Mon)`
    Weighted {
        /// The probability.
        weight: Number,
        /// The fact.
        reference: Reference,
    },
    /// `Aunt(x, z) <- Sister(x, y), Parent(y, z)`
    Rule {
        /// What follows.
        head: Reference,
        /// The sign.
        arrow: Span,
        /// From what: at least one literal.
        body: Vec<Literal>,
    },
    /// `Y[i] = …`, `max=`, data, a valued fact, a file; the right side tells.
    Equation {
        /// The left side.
        head: Reference,
        /// How contributions are combined.
        sign: Sign,
        /// The sign's place; of `max =` from `max` to `=`.
        sign_span: Span,
        /// The right side.
        right: RightSide,
    },
    /// `"out.csv" = Y`
    Write {
        /// Where to.
        file: Text,
        /// What.
        reference: Reference,
    },
    /// `Y? @explain`
    Query {
        /// What is asked.
        goal: Goal,
        /// Its directives, in order.
        directives: Vec<Directive>,
    },
    /// `@const(W)` as a statement.
    Directive(Directive),
}

/// A quoted text, escapes resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text {
    /// What it says, without quotes.
    pub value: String,
    /// Where it stands, with quotes.
    pub span: Span,
}

/// `4`, `1..12`, `{Ann, Bob}`, `Person`.
#[derive(Debug, Clone)]
pub struct DomainExpr {
    /// Which of the forms.
    pub kind: DomainKind,
    /// Where it stands.
    pub span: Span,
}

/// The forms of a domain.
#[derive(Debug, Clone)]
pub enum DomainKind {
    /// `4`: 0 to 3. A lone capital name may also be a set or a numeric constant.
    Size(IndexExpr),
    /// `1..12`, both inclusive.
    Interval(IndexExpr, IndexExpr),
    /// `{Ann, Bob}`
    Listed(Vec<Constant>),
}

/// A constant in a set, an evidence or a target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Constant {
    /// An integer.
    Integer(i64, Span),
    /// A capital name: a symbol, or a numeric constant of the program.
    Name(Name),
    /// A symbol with any spelling.
    Text(Text),
}

impl Constant {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Constant::Integer(_, span) => *span,
            Constant::Name(name) => name.span,
            Constant::Text(text) => text.span,
        }
    }
}

/// `count`, `topk(3)`.
#[derive(Debug, Clone)]
pub struct TypeExpr {
    /// The type's name.
    pub name: Name,
    /// Its argument.
    pub argument: Option<i64>,
    /// Where it stands.
    pub span: Span,
}

/// The start value of a parameter.
#[derive(Debug, Clone)]
pub enum Start {
    /// `[[1, 0], [0, 1]]`
    Array(Array),
    /// `0`, `-0.5`
    Number(Number),
    /// `normal(0, 0.1)`
    Call {
        /// The distribution or constant.
        name: Name,
        /// Its arguments; none where no parentheses stand.
        arguments: Vec<Value>,
        /// From the name to the closing parenthesis.
        span: Span,
    },
}

/// A nested array of numbers.
#[derive(Debug, Clone)]
pub struct Array {
    /// Its items.
    pub items: Vec<Item>,
    /// From `[` to `]`.
    pub span: Span,
}

/// An item of an array.
#[derive(Debug, Clone)]
pub enum Item {
    /// A row.
    Array(Array),
    /// A number, its sign applied.
    Number(Number),
}

/// The signs of assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// `=`
    Equal,
    /// `+=`
    Plus,
    /// `max=`
    Max,
    /// `min=`
    Min,
    /// `avg=`
    Avg,
    /// `*=`
    Times,
    /// `or=`
    Or,
    /// `:=`
    Redefine,
}

/// What stands right of a sign of assignment.
#[derive(Debug, Clone)]
pub enum RightSide {
    /// An array.
    Array(Array),
    /// `"a.txt" as values, header`
    File {
        /// The file.
        file: Text,
        /// The words behind `as`.
        options: Vec<Name>,
    },
    /// An expression, with its guards behind `|`.
    Expr {
        /// The value.
        expr: Expr,
        /// The literals behind `|`.
        guards: Vec<Literal>,
    },
}

/// How a reference writes its places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Brackets {
    /// `Y`
    None,
    /// `Y[i]`
    Square,
    /// `Y(i)`
    Round,
}

/// `Emb[n, l+1, d]`, `Parent(x, _)`, `Y`. A small name where only a tensor can stand (`w[i]`) is
/// read as a reference too, and refused as `lowercase-tensor` by the analysis.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The tensor.
    pub name: Name,
    /// The style.
    pub brackets: Brackets,
    /// The places.
    pub places: Vec<Place>,
    /// From the name to the closing bracket.
    pub span: Span,
}

/// One place of a reference.
#[derive(Debug, Clone)]
pub struct Place {
    /// What stands there.
    pub kind: PlaceKind,
    /// A star before it: a virtual index.
    pub star: bool,
    /// A dot behind it: the axis of softmax or lnorm.
    pub dot: bool,
    /// Where it stands, star and dot included.
    pub span: Span,
}

/// What a place holds.
#[derive(Debug, Clone)]
pub enum PlaceKind {
    /// An index expression.
    Index(IndexExpr),
    /// `4:8`, half open; a missing end is the domain's.
    Slice(Option<IndexExpr>, Option<IndexExpr>),
    /// `_`
    Wildcard,
}

/// Arithmetic on indices.
#[derive(Debug, Clone)]
pub struct IndexExpr {
    /// What it is.
    pub kind: IndexKind,
    /// Where it stands.
    pub span: Span,
}

/// The forms of an index expression.
#[derive(Debug, Clone)]
pub enum IndexKind {
    /// `3`
    Integer(i64),
    /// `x`: a small name.
    Index(String),
    /// `Alice`, `L`: a capital name.
    Name(String),
    /// `"loves"`
    Text(String),
    /// `-x`
    Negate(Box<IndexExpr>),
    /// `x + 1`
    Binary(IndexOperator, Box<IndexExpr>, Box<IndexExpr>),
    /// `(x + 1)`: parentheses, kept for the formatter.
    Group(Box<IndexExpr>),
}

/// Operators of index expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, floor division
    Divide,
    /// `%`, floor remainder
    Remainder,
}

/// A value.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// The forms of a value. Sums and products are flat lists in the order of the text.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// `A + B - C`: every term with its sign (true: subtracted). One positive term is never a `Sum`.
    Sum(Vec<(bool, Expr)>),
    /// `A B / C * D`: first factor with [`Joint::First`].
    Product(Vec<(Joint, Expr)>),
    /// `-A B`: unary minus over a product. It binds weaker than `^` and than products. As the
    /// first term of a sum it is `(false, Negate(…))`.
    Negate(Box<Expr>),
    /// Base and exponent: `X^2`, `L^{d/De}`. Braces mean what parentheses mean: the exponent is then
    /// a [`ExprKind::Group`], and the flag says that it was written with braces.
    Power(Box<Expr>, Box<Expr>, bool),
    /// `3`
    Number(Number),
    /// A tensor.
    Reference(Reference),
    /// `not R(x)` as a factor.
    Not(Reference),
    /// A bare small name: the index's integer.
    Index(Name),
    /// A quoted symbol (it means something in comparisons only).
    Text(Text),
    /// `softmax[j](X[i, j] | j <= i)`, `sum[j](…)`, `relu(…)`.
    Call {
        /// The function.
        name: Name,
        /// `[j]`: the indices that it acts along, at least one if there are brackets.
        axes: Option<Vec<Name>>,
        /// At least one.
        arguments: Vec<Expr>,
        /// The literals behind `|`.
        guards: Vec<Literal>,
    },
    /// `(…)` or `(… | …)`.
    Group {
        /// What is inside.
        expr: Box<Expr>,
        /// The literals behind `|`.
        guards: Vec<Literal>,
    },
}

/// How a factor joins those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// The first factor.
    First,
    /// Side by side.
    Beside,
    /// `*`
    Times,
    /// `/`
    Over,
    /// `%` (in comparisons only)
    Remainder,
}

/// A literal of a rule's body, of guards, or of a query.
#[derive(Debug, Clone)]
pub struct Literal {
    /// What it says.
    pub kind: LiteralKind,
    /// Where it stands, `not` included.
    pub span: Span,
}

/// The forms of a literal.
#[derive(Debug, Clone)]
pub enum LiteralKind {
    /// `R(x, y)`
    Positive(Reference),
    /// `not R(x, y)`
    Negative(Reference),
    /// `x < y + 1`; the sign's own span is kept for `symbol-as-number`.
    Compare {
        /// The left side.
        left: Expr,
        /// The sign.
        comparison: Comparison,
        /// Where the sign stands.
        sign: Span,
        /// The right side.
        right: Expr,
    },
    /// `y = x + 1`
    Assign {
        /// The index that is computed, or compared where it is bound.
        index: Name,
        /// Its value.
        value: IndexExpr,
    },
}

/// What a query asks.
#[derive(Debug, Clone)]
pub enum Goal {
    /// One or more literals; a single positive reference is a tensor's or a relation's query.
    Literals(Vec<Literal>),
    /// `Z | w=1 ?`
    Restricted {
        /// The model.
        name: Name,
        /// The evidence, at least one.
        evidence: Vec<Evidence>,
    },
    /// `Z[s, r=1 | w=1]?`
    Conditional {
        /// The model.
        name: Name,
        /// What is asked for, at least one.
        targets: Vec<Target>,
        /// The evidence; there may be none.
        evidence: Vec<Evidence>,
        /// From the name to the closing bracket.
        span: Span,
    },
}

/// `w=1` in evidence.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The index.
    pub index: Name,
    /// Its value.
    pub value: Constant,
}

/// `s` or `s=1` in a conditional query.
#[derive(Debug, Clone)]
pub struct Target {
    /// The index.
    pub index: Name,
    /// Its value, if one is asked for.
    pub value: Option<Constant>,
}

/// `@minimize(opt=adam, lr=0.1)`
#[derive(Debug, Clone)]
pub struct Directive {
    /// The name; its span starts at the `@`.
    pub name: Name,
    /// The arguments; `None` where no parentheses stand.
    pub arguments: Option<Vec<Argument>>,
    /// From `@` to the closing parenthesis.
    pub span: Span,
}

/// An argument of a directive.
#[derive(Debug, Clone)]
pub struct Argument {
    /// `lr` in `lr=0.1`.
    pub key: Option<Name>,
    /// The value.
    pub value: Value,
    /// Where it stands.
    pub span: Span,
}

/// A value in a directive or a start.
#[derive(Debug, Clone)]
pub enum Value {
    /// A number, its sign applied.
    Number(Number),
    /// A small or a capital name.
    Name(Name),
    /// A text.
    Text(Text),
}

/// The most operators, signs and parentheses of a value that becomes an index expression: the
/// tree may be as deep as they are many.
const LARGEST_INDEX: usize = 256;

impl Expr {
    /// The value as an index expression, if it is made of indices, integers, capital names and
    /// texts only, and is small. (Whether its capital names are constants is for others to say.)
    pub fn as_index(&self) -> Option<IndexExpr> {
        let mut budget = LARGEST_INDEX;
        self.within(&mut budget)
    }

    fn within(&self, budget: &mut usize) -> Option<IndexExpr> {
        *budget = budget.checked_sub(1)?;
        let kind = match &self.kind {
            ExprKind::Number(number) => IndexKind::Integer(number.text.parse().ok()?),
            ExprKind::Index(name) => IndexKind::Index(name.text.clone()),
            ExprKind::Text(text) => IndexKind::Text(text.value.clone()),
            ExprKind::Reference(reference) if reference.brackets == Brackets::None => {
                IndexKind::Name(reference.name.text.clone())
            }
            ExprKind::Negate(inner) => IndexKind::Negate(Box::new(inner.within(budget)?)),
            ExprKind::Group { expr, guards } if guards.is_empty() => {
                IndexKind::Group(Box::new(expr.within(budget)?))
            }
            ExprKind::Sum(terms) => {
                let sign =
                    |subtracted: bool| if subtracted { IndexOperator::Subtract } else { IndexOperator::Add };
                return fold_index(
                    terms.iter().map(|(subtracted, term)| (Some(sign(*subtracted)), term)),
                    budget,
                );
            }
            ExprKind::Product(factors) => {
                return fold_index(
                    factors.iter().map(|(joint, factor)| (joint.index_operator(), factor)),
                    budget,
                );
            }
            _ => return None,
        };
        Some(IndexExpr { kind, span: self.span })
    }
}

impl Joint {
    /// The operator of index expressions that it is.
    fn index_operator(self) -> Option<IndexOperator> {
        match self {
            Joint::First | Joint::Times => Some(IndexOperator::Multiply),
            Joint::Over => Some(IndexOperator::Divide),
            Joint::Remainder => Some(IndexOperator::Remainder),
            Joint::Beside => None,
        }
    }
}

/// Joins parts from left to right; the operator of the first is not looked at.
fn fold_index<'a>(
    parts: impl Iterator<Item = (Option<IndexOperator>, &'a Expr)>,
    budget: &mut usize,
) -> Option<IndexExpr> {
    let mut joined: Option<IndexExpr> = None;
    for (operator, part) in parts {
        let right = part.within(budget)?;
        joined = Some(match joined {
            None => right,
            Some(left) => IndexExpr {
                span: left.span.to(right.span),
                kind: IndexKind::Binary(operator?, Box::new(left), Box::new(right)),
            },
        });
    }
    joined
}
