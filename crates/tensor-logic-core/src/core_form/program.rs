//! The core form: what a program means, with every rule of the surface language resolved.
//!
//! Enter at [`Program`]. Analysis makes it from the faithful tree; the reference interpreter, the
//! engine, gradients and `explain` read it and nothing else. Below this line nobody sees a scope
//! rule, an aggregator sign, a size name or a type: sums are written out ([`Reduce`]), every
//! read says how a missing element is read ([`Otherwise`]), types have become combinations
//! (a `tropical` rule is a `min` of sums), `concat` has become index functions on the left.
//!
//! **The value of an expression** under a binding of its free indices is a number or *absent*.
//!
//! | form | value |
//! |---|---|
//! | [`Expr::Terms`] | sum of those present; absent if none is |
//! | [`Expr::Plus`], [`Expr::Product`], quotient, power, call | absent if a part is absent |
//! | [`Expr::Reduce`] | over the bindings of its indices whose guards hold and whose body is present |
//! | [`Expr::Axis`] | softmax or lnorm over the present entries along its axes |
//!
//! An equation adds, for every binding of its left and summed indices whose guards hold and
//! whose body is present, one contribution at the element that its head names. The tensor's
//! [`Combine`] joins all contributions of all its equations and its given data.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ast::{Comparison, Span};
use crate::function::Function;
use crate::value::{Const, Domain, Symbols, Tuple};

/// A tensor of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub u32);

/// An index of one equation (indices of different scopes that share a name are different).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub u32);

/// An equation of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EquationId(pub u32);

/// A whole program in core form.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Spellings of symbols.
    pub symbols: Symbols,
    /// Tensors, in order of first appearance; those that queries need come last.
    pub tensors: Vec<Tensor>,
    /// Indices of all equations.
    pub indices: Vec<Index>,
    /// Equations, in order of the text.
    pub equations: Vec<Equation>,
    /// Components in evaluation order: each needs only earlier ones and itself.
    pub components: Vec<Component>,
    /// Queries and file writes, in order of the text.
    pub actions: Vec<Action>,
    /// Counts that are written with more digits than a number with a point holds, and the refusal
    /// of whoever needs the tensor.
    pub rounded: Vec<(TensorId, crate::error::Refusal)>,
    /// Relations whose weighted tuples exclude each other where they differ in this place only (`@exclusive`).
    pub exclusive: Vec<(TensorId, usize)>,
    /// Tolerance, rounds, seed.
    pub settings: Settings,
    /// Which program this is: engines keep plans by it.
    pub stamp: Stamp,
}

/// A number that no two programs share, and no two nodes of any: a clone, which may be changed, gets a new one.
#[derive(PartialEq, Eq)]
pub struct Stamp(u64);

impl Default for Stamp {
    fn default() -> Stamp {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        Stamp(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }
}

/// It is no part of what a program says.
impl std::fmt::Debug for Stamp {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("_")
    }
}

impl Clone for Stamp {
    fn clone(&self) -> Stamp {
        Stamp::default()
    }
}

impl Stamp {
    /// The number, above 0.
    pub fn number(&self) -> u64 {
        self.0
    }
}

/// Settings of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `@tol`: a numeric recursion rests when no element changes by more than this times max(1, |value|).
    pub tolerance: f64,
    /// `@rounds`
    pub rounds: u64,
    /// `@seed` or `--seed`.
    pub seed: u64,
    /// Tensors that `@const` names: they are not learned.
    pub constant: Vec<TensorId>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { tolerance: 1e-12, rounds: 10_000, seed: 0, constant: Vec::new() }
    }
}

/// Square (total) or round (partial).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Every element of the domain has a value.
    Square,
    /// Only its tuples exist.
    Round,
}

/// The type that an answer is printed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Boolean relation: a tuple exists or not; its value is 1.
    Bool,
    /// Integers; leaving 64 bits is refused.
    Count,
    /// Real numbers.
    Real,
    /// min, +
    Tropical,
    /// max, ×
    MaxTimes,
    /// max, min
    MaxMin,
    /// min(1, +), ×
    AddMult,
    /// The probability that some proof holds.
    Prob,
    /// The same, by so many most probable proofs of each tuple.
    TopK(u32),
}

impl Kind {
    /// Whether its values are probabilities of proofs.
    pub fn is_probability(self) -> bool {
        matches!(self, Kind::Prob | Kind::TopK(_))
    }

    /// As it is written in a program.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Kind::Bool => "bool",
            Kind::Count => "count",
            Kind::Real => "real",
            Kind::Tropical => "tropical",
            Kind::MaxTimes => "maxtimes",
            Kind::MaxMin => "maxmin",
            Kind::AddMult => "addmult",
            Kind::Prob => "prob",
            Kind::TopK(proofs) => return Cow::Owned(format!("topk({proofs})")),
        })
    }
}

/// How contributions to one element are joined (N4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Sum; a square element without any is 0.
    Sum,
    /// Maximum; -inf.
    Max,
    /// Minimum; inf.
    Min,
    /// Product; 1.
    Times,
    /// Mean of those present; 0.
    Avg,
    /// 1 if one is > 0; 0.
    Or,
    /// Boolean relations: the tuple exists if the sum is > 0.
    Exists,
    /// Weighted facts and what follows from them: every equation is a rule, its contributions are proofs (see
    /// [`crate::weighted`]), the value of a tuple is the probability that one of them holds.
    Proofs,
    /// What the probabilities of a relation owe to the weights below it: see [`crate::weighted`].
    Slopes,
}

impl Combine {
    /// The value of a square element without any contribution.
    pub fn default_value(self) -> f64 {
        match self {
            Combine::Sum
            | Combine::Avg
            | Combine::Or
            | Combine::Exists
            | Combine::Proofs
            | Combine::Slopes => 0.0,
            Combine::Max => f64::NEG_INFINITY,
            Combine::Min => f64::INFINITY,
            Combine::Times => 1.0,
        }
    }
}

/// What a tensor is in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Only given.
    Data,
    /// Learnable.
    Parameter,
    /// Has equations.
    Computed,
    /// A relation without facts or rules.
    Empty,
    /// A square tensor that nothing defines: a query that needs it is refused.
    Missing,
}

/// A tensor.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Its name in the text, or what stands for it in messages. A redefinition `:=` makes a
    /// further tensor of the same name with a higher `version`.
    pub name: String,
    /// 0, and one more for every redefinition.
    pub version: u32,
    /// Whether it stands for a query and has no name in the text.
    pub hidden: bool,
    /// Square or round.
    pub style: Style,
    /// The type that it is printed with.
    pub kind: Kind,
    /// How contributions are joined.
    pub combine: Combine,
    /// Its places.
    pub places: Vec<Place>,
    /// What it is.
    pub role: Role,
    /// Given values: facts and arrays. Each given element is one contribution.
    pub given: Vec<Given>,
    /// Where a parameter starts.
    pub start: Option<Start>,
    /// Where it first stands in the text.
    pub span: Span,
}

impl Tensor {
    /// The domains of its places; empty where none is known.
    pub fn domains(&self) -> Vec<Domain> {
        self.places.iter().map(|place| place.domain.clone().unwrap_or(Domain::size(0))).collect()
    }

    /// Whether its values are probabilities of proofs.
    pub fn is_proved(&self) -> bool {
        self.combine == Combine::Proofs
    }

    /// How many values each of its places has, as far as that is known.
    pub fn sizes(&self) -> Vec<usize> {
        self.places.iter().map(|place| place.domain.as_ref().map_or(0, Domain::len)).collect()
    }
}

/// A place of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Its values, where they are known. A place of a square tensor always has one once the
    /// program is analysed; a place of a relation may have none (its constants are mixed, or
    /// its files have not been read).
    pub domain: Option<Domain>,
    /// For a place of a relation: the declared domain of an index that stands alone there. Rules
    /// and facts make no tuple outside it. `domain` is only how a square reference reads it.
    pub limit: Option<Domain>,
    /// `*t`: only the last slice need be kept.
    pub star: bool,
}

/// Given values.
#[derive(Debug, Clone)]
pub enum Given {
    /// Facts: one contribution each; the value of a Boolean fact is 1.
    Facts(Arc<Facts>),
    /// A relation that an engine derived for another. No text gives one.
    Columns(Arc<Columns>),
    /// An array over the places that `fixed` leaves open, row-major, in the order of their domains.
    Array {
        /// A constant, or `None` for a place that the array runs along.
        fixed: Vec<Option<Const>>,
        /// Sizes along the open places.
        shape: Vec<usize>,
        /// The values.
        values: Arc<[f64]>,
        /// Where it stands.
        span: Span,
    },
}

impl Given {
    /// Calls `visit` for every element, and its value, of a tensor with these domains.
    pub fn each(&self, domains: &[Domain], mut visit: impl FnMut(&[Const], f64)) {
        let (fixed, shape, values) = match self {
            Given::Facts(facts) => {
                return (0..facts.count).for_each(|at| visit(facts.tuple(at), facts.value(at)));
            }
            Given::Columns(columns) => return columns.each(visit),
            Given::Array { fixed, shape, values, .. } => (fixed, shape, values),
        };
        for (mut at, value) in values.iter().enumerate() {
            let mut sizes = shape.iter().rev();
            let place = |(domain, fixed): (&Domain, &Option<Const>)| {
                fixed.or_else(|| {
                    let size = (*sizes.next()?).max(1);
                    let ordinal = at % size;
                    at /= size;
                    domain.value(ordinal)
                })
            };
            // A fixed place of a relation may lie outside its domain.
            let element: Option<Tuple> = domains.iter().zip(fixed).rev().map(place).collect();
            if let Some(mut element) = element {
                element.reverse();
                visit(&element, *value);
            }
        }
    }

    /// The facts, unless it is an array.
    pub fn facts(&self) -> Option<Arc<Facts>> {
        match self {
            Given::Facts(facts) => Some(Arc::clone(facts)),
            Given::Columns(columns) => Some(Arc::new(columns.facts())),
            Given::Array { .. } => None,
        }
    }

    /// Whether both are the same block of data, at the same place in memory.
    pub fn is(&self, other: &Given) -> bool {
        match (self, other) {
            (Given::Facts(a), Given::Facts(b)) => Arc::ptr_eq(a, b),
            (Given::Columns(a), Given::Columns(b)) => Arc::ptr_eq(a, b),
            (
                Given::Array { fixed: a, shape: b, values: c, .. },
                Given::Array { fixed: x, shape: y, values: z, .. },
            ) => a == x && b == y && Arc::ptr_eq(c, z),
            _ => false,
        }
    }
}

/// A relation by columns: tuples in ascending order, each once. An engine reads it where it lies.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// The number of tuples.
    pub len: usize,
    /// For each place its constants, each once, in the order of answers.
    pub dictionaries: Vec<Arc<Vec<Const>>>,
    /// For each place the positions of its constants, one a tuple.
    pub columns: Vec<Arc<Vec<u32>>>,
    /// The values; `None`: all 1.
    pub values: Option<Arc<Vec<f64>>>,
}

impl Columns {
    /// The value of a tuple.
    pub fn value(&self, at: usize) -> f64 {
        self.values.as_ref().and_then(|values| values.get(at).copied()).unwrap_or(1.0)
    }

    /// Calls `visit` for every tuple and its value.
    pub fn each(&self, mut visit: impl FnMut(&[Const], f64)) {
        let mut tuple = Tuple::new();
        for at in 0..self.len {
            tuple.clear();
            let places = self.dictionaries.iter().zip(&self.columns);
            tuple.extend(places.filter_map(|(own, column)| own.get(*column.get(at)? as usize).copied()));
            visit(&tuple, self.value(at));
        }
    }

    /// The same as facts.
    pub fn facts(&self) -> Facts {
        let mut facts = Facts { arity: self.columns.len(), ..Facts::default() };
        self.each(|tuple, value| facts.push(tuple, value, None));
        facts
    }
}

/// Facts of a relation, or given elements of a square tensor.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// All tuples, one behind the other: `arity` constants each.
    pub arity: usize,
    /// The number of tuples (needed where the arity is 0).
    pub count: usize,
    /// The constants.
    pub constants: Vec<Const>,
    /// The values; empty where all are 1.
    pub values: Vec<f64>,
    /// Values of a file that are integers of more digits than `values` hold, with their positions. Empty
    /// in a core form.
    pub whole: Vec<(usize, i64)>,
    /// Where each stands in the text; empty for facts from files.
    pub spans: Vec<Span>,
    /// The statement that gave them, for facts from files.
    pub source: Span,
}

impl Facts {
    /// A tuple.
    pub fn tuple(&self, at: usize) -> &[Const] {
        self.constants.get(at * self.arity..(at + 1) * self.arity).unwrap_or(&[])
    }

    /// The value of a fact.
    pub fn value(&self, at: usize) -> f64 {
        self.values.get(at).copied().unwrap_or(1.0)
    }

    /// Adds one.
    pub fn push(&mut self, tuple: &[Const], value: f64, span: Option<Span>) {
        if value != 1.0 && self.values.is_empty() {
            self.values = vec![1.0; self.count];
        }
        if value != 1.0 || !self.values.is_empty() {
            self.values.push(value);
        }
        self.constants.extend_from_slice(tuple);
        self.count += 1;
        self.spans.extend(span);
    }
}

/// The start value of a parameter (N12).
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// An array over all places.
    Array {
        /// Its sizes.
        shape: Vec<usize>,
        /// Its values, row-major.
        values: Arc<[f64]>,
    },
    /// The same number everywhere.
    Number(f64),
    /// Normal with mean and standard deviation.
    Normal(f64, f64),
    /// Uniform between two numbers.
    Uniform(f64, f64),
    /// Uniform, ±sqrt(6/(m+n)).
    Glorot,
    /// Normal, standard deviation sqrt(2/n).
    He,
}

/// An index.
#[derive(Debug, Clone)]
pub struct Index {
    /// Its name; `_` for a wildcard or a slice.
    pub name: String,
    /// Its values.
    pub range: Range,
    /// Its first occurrence.
    pub span: Span,
}

/// What an index ranges over.
#[derive(Debug, Clone)]
pub enum Range {
    /// These values.
    Domain(Domain),
    /// Those that the positive round reads of its scope have in their tuples.
    Tuples,
    /// Computed from other indices by a guard [`Guard::Bind`] of its scope.
    Computed,
}

/// An equation: contributions to one tensor.
#[derive(Debug, Clone)]
pub struct Equation {
    /// The tensor.
    pub tensor: TensorId,
    /// The element that a binding contributes to, one function a place.
    pub head: Vec<IndexFn>,
    /// The indices of the left side: bound once for all terms.
    pub left: Vec<IndexId>,
    /// The terms. Under a sum each is a scope of its own; under other aggregators there is one.
    pub terms: Vec<Term>,
    /// Tells it apart.
    pub node: Stamp,
    /// The statement.
    pub span: Span,
    /// The left side in the text.
    pub head_span: Span,
    /// The sign or arrow.
    pub sign_span: Span,
}

/// A term of an equation: every binding of the equation's `left` and of `over` whose guards
/// hold and whose body is present is one contribution.
#[derive(Debug, Clone)]
pub struct Term {
    /// Summed indices.
    pub over: Vec<IndexId>,
    /// What must hold.
    pub when: When,
    /// The contribution.
    pub body: Expr,
}

/// Guards: some binding of `exists` must satisfy all of them together.
#[derive(Debug, Clone, Default)]
pub struct When {
    /// Indices that occur in the guards only.
    pub exists: Vec<IndexId>,
    /// What must hold.
    pub guards: Vec<Guard>,
    /// Tells it, and what it stands in, apart.
    pub node: Stamp,
}

impl From<Vec<Guard>> for When {
    fn from(guards: Vec<Guard>) -> When {
        When { guards, ..When::default() }
    }
}

/// A value.
#[derive(Debug, Clone)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// The integer of an index function; absent for a symbol.
    Index(IndexFn),
    /// An element.
    Read(Read),
    /// 1 where the element is missing (no tuple, or outside the domain), absent elsewhere.
    Missing(Read),
    /// A product.
    Product(Vec<Expr>),
    /// A quotient of reals.
    Quotient(Box<Expr>, Box<Expr>),
    /// The negative.
    Negate(Box<Expr>),
    /// A power.
    Power(Box<Expr>, Box<Expr>),
    /// A sum of scopes: absent ones are skipped.
    Terms(Vec<Expr>),
    /// A sum inside one scope: all must be present.
    Plus(Vec<Expr>),
    /// A sum, maximum, … over indices.
    Reduce(Box<Reduce>),
    /// An elementwise function.
    Call(Box<Call>),
    /// softmax or lnorm.
    Axis(Box<Axis>),
}

/// A scope.
#[derive(Debug, Clone)]
pub struct Reduce {
    /// How the contributions are joined.
    pub operation: Operation,
    /// The indices.
    pub over: Vec<IndexId>,
    /// What must hold.
    pub when: When,
    /// The contribution.
    pub body: Expr,
    /// Whether it stands in the text as `sum[j](…)`: then over nothing it is 0 (`sum`, `count`)
    /// or 1 (`prod`), and absent otherwise. A scope that the language supplies is absent.
    pub explicit: bool,
    /// Where it stands.
    pub span: Span,
}

/// The operations of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `sum`
    Sum,
    /// `prod`
    Product,
    /// `max`
    Max,
    /// `min`
    Min,
    /// `avg`
    Avg,
    /// `count`
    Count,
}

/// An elementwise call; absent where its guards fail.
#[derive(Debug, Clone)]
pub struct Call {
    /// The function.
    pub function: Function,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// What must hold.
    pub when: When,
    /// Where the function's name stands.
    pub span: Span,
}

/// softmax or lnorm along indices of the surrounding scope. Its entries are the bindings of
/// `axes` (the other indices as they are) whose guards hold and whose argument is present; its
/// value is that of the entry at hand, absent where that is no entry.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Which of the two.
    pub function: AxisFunction,
    /// The indices that it runs along, all together.
    pub axes: Vec<IndexId>,
    /// The argument.
    pub argument: Expr,
    /// What must hold.
    pub when: When,
    /// Where the function's name stands.
    pub span: Span,
}

/// The functions along an axis.
#[derive(Debug, Clone)]
pub enum AxisFunction {
    /// exp(x - max) / sum
    Softmax,
    /// (x - mean) / sqrt(population variance + eps); `None`: 1e-5.
    Lnorm(Option<Expr>),
}

/// An element of a tensor.
#[derive(Debug, Clone)]
pub struct Read {
    /// The tensor.
    pub tensor: TensorId,
    /// The element, one function a place. Only under `not` may a place be [`Argument::Any`].
    pub arguments: Vec<Argument>,
    /// How a missing element is read.
    pub otherwise: Otherwise,
    /// Where it stands.
    pub span: Span,
    /// Tells it apart.
    pub node: Stamp,
}

impl Read {
    /// A read.
    pub fn new(tensor: TensorId, arguments: Vec<Argument>, otherwise: Otherwise, span: Span) -> Read {
        Read { tensor, arguments, otherwise, span, node: Stamp::default() }
    }
}

/// An argument of a read.
#[derive(Debug, Clone)]
pub enum Argument {
    /// This value.
    At(IndexFn),
    /// Any value (`_` under `not`).
    Any,
}

impl Argument {
    /// The function, unless any value will do.
    pub fn function(&self) -> Option<&IndexFn> {
        match self {
            Argument::At(function) => Some(function),
            Argument::Any => None,
        }
    }
}

/// How a missing element is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Otherwise {
    /// A round reference: absent. An element of a square tensor is present where it is not 0.
    Absent,
    /// A square reference: 0 where a relation has no tuple; absent outside the domain.
    Zero,
    /// The first slice of a virtual index: 0 outside the domain too.
    ZeroOutside,
}

/// A guard.
#[derive(Debug, Clone)]
pub enum Guard {
    /// A round reference: the tuple exists (square tensor: the element is not 0).
    /// A square reference: the value is > 0.
    Read(Read),
    /// The negation of the above. With [`Argument::Any`]: no value satisfies it.
    Not(Read),
    /// A comparison of index functions (symbols only by `==` and `!=`).
    CompareIndex(Comparison, IndexFn, IndexFn),
    /// A comparison of values; fails where a side is absent.
    Compare(Comparison, Expr, Expr),
    /// `y = x + 1`, where nothing else binds `y`.
    Bind(IndexId, IndexFn),
}

/// Arithmetic on indices. It has no value where a symbol meets an operator, on overflow, and at
/// a division by 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IndexFn {
    /// A constant.
    Const(Const),
    /// An index.
    Index(IndexId),
    /// The position of an index's value in its domain, from 0 (for `concat`).
    Ordinal(IndexId),
    /// The negative.
    Negate(Box<IndexFn>),
    /// A sum.
    Add(Box<IndexFn>, Box<IndexFn>),
    /// A difference.
    Subtract(Box<IndexFn>, Box<IndexFn>),
    /// A product.
    Multiply(Box<IndexFn>, Box<IndexFn>),
    /// Floor division.
    Divide(Box<IndexFn>, Box<IndexFn>),
    /// Floor remainder.
    Remainder(Box<IndexFn>, Box<IndexFn>),
}

impl IndexFn {
    /// The value where `index` gives the values of indices and `ordinal` their positions.
    pub fn evaluate(
        &self,
        index: &impl Fn(IndexId) -> Option<Const>,
        ordinal: &impl Fn(IndexId) -> Option<usize>,
    ) -> Option<Const> {
        let int = |part: &IndexFn| part.evaluate(index, ordinal)?.int();
        let value = match self {
            IndexFn::Const(value) => return Some(*value),
            IndexFn::Index(id) => return index(*id),
            IndexFn::Ordinal(id) => i64::try_from(ordinal(*id)?).ok()?,
            IndexFn::Negate(a) => int(a)?.checked_neg()?,
            IndexFn::Add(a, b) => int(a)?.checked_add(int(b)?)?,
            IndexFn::Subtract(a, b) => int(a)?.checked_sub(int(b)?)?,
            IndexFn::Multiply(a, b) => int(a)?.checked_mul(int(b)?)?,
            IndexFn::Divide(a, b) => floor_div(int(a)?, int(b)?)?,
            IndexFn::Remainder(a, b) => floor_rem(int(a)?, int(b)?)?,
        };
        Some(Const::Int(value))
    }

    /// The index, where it stands alone.
    pub fn alone(&self) -> Option<IndexId> {
        match self {
            IndexFn::Index(id) => Some(*id),
            _ => None,
        }
    }

    /// Calls `visit` for every index in it.
    pub fn visit(&self, visit: &mut impl FnMut(IndexId)) {
        match self {
            IndexFn::Const(_) => {}
            IndexFn::Index(id) | IndexFn::Ordinal(id) => visit(*id),
            IndexFn::Negate(a) => a.visit(visit),
            IndexFn::Add(a, b)
            | IndexFn::Subtract(a, b)
            | IndexFn::Multiply(a, b)
            | IndexFn::Divide(a, b)
            | IndexFn::Remainder(a, b) => {
                a.visit(visit);
                b.visit(visit);
            }
        }
    }
}

/// Division that rounds towards -inf.
pub fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// The remainder of [`floor_div`]: it has the sign of the divisor.
pub fn floor_rem(a: i64, b: i64) -> Option<i64> {
    let remainder = a.checked_rem(b)?;
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
}

/// Tensors that depend on each other, or one that depends on others only.
#[derive(Debug, Clone)]
pub struct Component {
    /// Its tensors.
    pub tensors: Vec<TensorId>,
    /// Their equations.
    pub equations: Vec<EquationId>,
    /// How it is evaluated (N7).
    pub class: Class,
}

/// The classes of components.
#[derive(Debug, Clone)]
pub enum Class {
    /// No recursion.
    Plain,
    /// Each element once, in index order.
    Stepped(Steps),
    /// The least fixpoint.
    Closure,
    /// The limit of rounds from 0.
    Numeric,
}

/// How a stepped component moves.
#[derive(Debug, Clone)]
pub struct Steps {
    /// For every tensor of the component, in an order in which elements of one step can be
    /// computed one tensor after the other: its moving places, the most significant first, and
    /// whether they move upwards. Tensors that share the cycle of their k-th moving place follow
    /// each other and are looped over together there; others one after the other.
    pub places: Vec<(TensorId, Vec<Moving>)>,
}

/// A moving place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moving {
    /// Which place of the tensor.
    pub place: usize,
    /// Whether later elements have higher indices.
    pub up: bool,
    /// The cycle that it moves on: a number that the places share that move together.
    pub cycle: usize,
    /// What is added to the place's value to say the step: elements of one step may differ in it.
    pub shift: i64,
}

/// A query or a file write.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a program has few, and nearly all are queries")]
pub enum Action {
    /// A query.
    Query(Query),
    /// `"out.csv" = Y`
    Write {
        /// The file, as written.
        file: String,
        /// The tensor.
        tensor: TensorId,
        /// Where it stands.
        span: Span,
    },
}

/// A query.
#[derive(Debug, Clone)]
pub struct Query {
    /// As written, with its directives.
    pub text: String,
    /// Where it stands.
    pub span: Span,
    /// The tensor that answers it: one of the program or a hidden one.
    pub tensor: TensorId,
    /// How the tensor becomes an answer.
    pub form: Form,
    /// What the directives ask.
    pub directives: Directives,
}

/// How a query's tensor becomes an answer.
#[derive(Debug, Clone)]
pub enum Form {
    /// A scalar, a tensor or a relation with these labels for its places.
    Values(Vec<String>),
    /// A rank-0 Boolean relation: true or false.
    Holds,
    /// A rank-0 valued relation: its value, or null.
    ValueOrNull,
    /// `Z[s | w=1]?`, `Z | w=1 ?`: the tensor is the model's scalar.
    Model(ModelQuery),
}

/// A query of a model (N13).
#[derive(Debug, Clone)]
pub struct ModelQuery {
    /// Whether it is normalised: `Z[… | …]`.
    pub conditional: bool,
    /// Targets: the index's name, its value where one is asked for, and its place.
    pub targets: Vec<(String, Option<Const>, Span)>,
    /// Evidence.
    pub evidence: Vec<(String, Const, Span)>,
    /// The model's name in the query.
    pub name: Span,
}

/// What a query's directives ask.
#[derive(Debug, Clone, Default)]
pub struct Directives {
    /// `@explain`
    pub explain: bool,
    /// `@minimize(…)`
    pub minimize: Option<Minimize>,
    /// `@sample(…)`: n, seed, and the directive's place.
    pub sample: Option<(u64, u64, Span)>,
    /// `@semiring(…)`: evaluate the rules below in this semiring.
    pub semiring: Option<Kind>,
    /// `@embed(…)`: answer in embedding space.
    pub embed: Option<Embed>,
}

/// `@embed(…)` (N15).
#[derive(Debug, Clone, PartialEq)]
pub struct Embed {
    /// `D`: the dimension, where it is given.
    pub dimension: Option<u64>,
    /// Of random vectors.
    pub seed: u64,
    /// What a score is compared with, between 0 and 1.
    pub theta: f64,
    /// `T`: 0 for the step at `theta`.
    pub temperature: f64,
    /// Whether an answer that is not certified is refused.
    pub certify: bool,
    /// The vectors of the objects.
    pub vectors: Vectors,
    /// The directive.
    pub span: Span,
}

/// The vectors of objects in embedding space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectors {
    /// Random unit vectors.
    Random,
    /// Orthonormal ones.
    Identity,
    /// The rows of a square tensor, each scaled to length 1.
    Rows(TensorId),
}

/// How the rate of learning changes with the steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// How it falls behind the first steps.
    pub decline: Decline,
    /// Over so many steps it rises from 0.
    pub warmup: u64,
    /// It does not fall below this.
    pub least: f64,
}

/// How a rate falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decline {
    /// It does not.
    Constant,
    /// By the same each step, to 0.
    Linear,
    /// Along half a cosine, to 0.
    Cosine,
}

/// `@minimize(…)` (N12).
#[derive(Debug, Clone)]
pub struct Minimize {
    /// Which optimiser.
    pub optimiser: Optimiser,
    /// Learning rate.
    pub rate: f64,
    /// How the rate changes with the steps.
    pub schedule: Schedule,
    /// Added to the gradient; decoupled for AdamW.
    pub weight_decay: f64,
    /// Global norm of the gradient.
    pub clip: Option<f64>,
    /// How long.
    pub duration: Duration,
    /// `batch=s, size=n`.
    pub batch: Option<Batch>,
    /// Whether constants that are equal for all weights are merged.
    pub lift: bool,
    /// The directive.
    pub span: Span,
}

/// The optimisers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimiser {
    /// v ← m·v + g, W ← W - lr·v
    Sgd {
        /// m
        momentum: f64,
    },
    /// Adam, or AdamW where the decay is decoupled.
    Adam {
        /// First moment's decay.
        beta1: f64,
        /// Second moment's decay.
        beta2: f64,
        /// Added to the root.
        epsilon: f64,
        /// AdamW.
        decoupled: bool,
    },
}

/// How long to learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duration {
    /// So many steps.
    Steps(u64),
    /// So many passes over the batches.
    Epochs(u64),
}

/// `batch=s, size=n, shuffle=1`, and what is held out
#[derive(Debug, Clone)]
pub struct Batch {
    /// The index.
    pub index: String,
    /// Values a step.
    pub size: usize,
    /// Whether the order changes every epoch.
    pub shuffle: bool,
    /// What is held out.
    pub valid: Option<Valid>,
}

/// `valid=0.2, patience=5`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Valid {
    /// The share of the values that nothing is learned from, above 0 and below 1.
    pub part: f64,
    /// After so many epochs in a row without a lower loss of what is held out learning ends.
    pub patience: Option<u64>,
    /// The argument.
    pub span: Span,
}

impl Program {
    /// A tensor.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0 as usize]
    }

    /// An index.
    #[expect(clippy::should_implement_trait, reason = "it looks up an index of the language")]
    pub fn index(&self, id: IndexId) -> &Index {
        &self.indices[id.0 as usize]
    }

    /// An equation.
    pub fn equation(&self, id: EquationId) -> &Equation {
        &self.equations[id.0 as usize]
    }

    /// The tensors that the equations of a tensor read.
    pub fn reads_of(&self, tensor: TensorId) -> Vec<TensorId> {
        let mut found = Vec::new();
        for equation in self.equations.iter().filter(|equation| equation.tensor == tensor) {
            equation.visit_reads(&mut |read, _| {
                if !found.contains(&read.tensor) {
                    found.push(read.tensor);
                }
            });
        }
        found
    }

    /// The left side that is to blame for a tensor: that of its first equation, else its first place.
    pub fn left_side(&self, id: TensorId) -> Span {
        let first = self.equations.iter().find(|equation| equation.tensor == id);
        first.map_or(self.tensor(id).span, |equation| equation.head_span)
    }

    /// A tensor as it is named in messages.
    pub fn name(&self, id: TensorId) -> &str {
        &self.tensor(id).name
    }

    /// A tuple as it is written: `Alice, 3`.
    pub fn show_tuple(&self, tuple: &Tuple) -> String {
        let shown: Vec<String> = tuple.iter().map(|value| self.symbols.show(*value)).collect();
        shown.join(", ")
    }
}

/// Whether a read asks for an element or for its absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// A value or a guard that must hold.
    Positive,
    /// Under `not`.
    Negative,
}

impl Equation {
    /// Calls `visit` for every read of the right side, in order of the text.
    pub fn visit_reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Read, Sense)) {
        for term in &self.terms {
            term.body.visit_reads(visit);
            term.when.visit_reads(visit);
        }
    }
}

impl When {
    /// Calls `visit` for every read.
    pub fn visit_reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Read, Sense)) {
        for guard in &self.guards {
            match guard {
                Guard::Read(read) => visit(read, Sense::Positive),
                Guard::Not(read) => visit(read, Sense::Negative),
                Guard::Compare(_, left, right) => {
                    left.visit_reads(visit);
                    right.visit_reads(visit);
                }
                Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
        }
    }

    /// Changes every read.
    pub fn change_reads(&mut self, change: &mut dyn FnMut(&mut Read)) {
        for guard in &mut self.guards {
            match guard {
                Guard::Read(read) | Guard::Not(read) => change(read),
                Guard::Compare(_, left, right) => {
                    left.change_reads(change);
                    right.change_reads(change);
                }
                Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
        }
    }
}

impl Expr {
    /// The parts directly below, and the guards of this node.
    pub fn parts(&self) -> (Vec<&Expr>, Option<&When>) {
        match self {
            Expr::Number(_) | Expr::Index(_) | Expr::Read(_) | Expr::Missing(_) => (Vec::new(), None),
            Expr::Product(parts) | Expr::Terms(parts) | Expr::Plus(parts) => (parts.iter().collect(), None),
            Expr::Quotient(a, b) | Expr::Power(a, b) => (vec![a, b], None),
            Expr::Negate(a) => (vec![a], None),
            Expr::Reduce(reduce) => (vec![&reduce.body], Some(&reduce.when)),
            Expr::Call(call) => (call.arguments.iter().collect(), Some(&call.when)),
            Expr::Axis(axis) => {
                let mut parts = vec![&axis.argument];
                if let AxisFunction::Lnorm(Some(epsilon)) = &axis.function {
                    parts.push(epsilon);
                }
                (parts, Some(&axis.when))
            }
        }
    }

    /// The same to be changed.
    pub fn parts_mut(&mut self) -> (Vec<&mut Expr>, Option<&mut When>) {
        match self {
            Expr::Number(_) | Expr::Index(_) | Expr::Read(_) | Expr::Missing(_) => (Vec::new(), None),
            Expr::Product(parts) | Expr::Terms(parts) | Expr::Plus(parts) => {
                (parts.iter_mut().collect(), None)
            }
            Expr::Quotient(a, b) | Expr::Power(a, b) => (vec![a, b], None),
            Expr::Negate(a) => (vec![a], None),
            Expr::Reduce(reduce) => (vec![&mut reduce.body], Some(&mut reduce.when)),
            Expr::Call(call) => (call.arguments.iter_mut().collect(), Some(&mut call.when)),
            Expr::Axis(axis) => {
                let mut parts = vec![&mut axis.argument];
                if let AxisFunction::Lnorm(Some(epsilon)) = &mut axis.function {
                    parts.push(epsilon);
                }
                (parts, Some(&mut axis.when))
            }
        }
    }

    /// Changes every read.
    pub fn change_reads(&mut self, change: &mut dyn FnMut(&mut Read)) {
        if let Expr::Read(read) | Expr::Missing(read) = self {
            return change(read);
        }
        let (parts, when) = self.parts_mut();
        parts.into_iter().for_each(|part| part.change_reads(change));
        if let Some(when) = when {
            when.change_reads(change);
        }
    }

    /// Calls `visit` for every read, in order of the text.
    pub fn visit_reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Read, Sense)) {
        match self {
            Expr::Read(read) => visit(read, Sense::Positive),
            Expr::Missing(read) => visit(read, Sense::Negative),
            _ => {
                let (parts, when) = self.parts();
                for part in parts {
                    part.visit_reads(visit);
                }
                if let Some(when) = when {
                    when.visit_reads(visit);
                }
            }
        }
    }
}
