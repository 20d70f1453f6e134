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

mod equation;
mod given;
mod query;

use std::borrow::Cow;

pub use self::equation::{
    Argument, Axis, AxisFunction, Call, Equation, Expr, Guard, IndexFn, Operation, Otherwise, Read, Reduce,
    Sense, Term, When, floor_div, floor_rem,
};
pub use self::given::{Columns, Facts, Given, Start};
pub use self::query::{
    Action, Batch, Decline, Directives, Duration, Embed, Form, Minimize, ModelQuery, Optimiser, Query,
    Schedule, Valid, Vectors, default_rate,
};
use crate::ast::Span;
use crate::value::{Domain, Symbols, Tuple};

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
        self.all_sizes().collect()
    }

    /// The same, one after the other.
    pub fn all_sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.places.iter().map(|place| place.domain.as_ref().map_or(0, Domain::len))
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
