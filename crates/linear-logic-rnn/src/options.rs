//! What a cell may be told: sizes and options, as they stand in documents and configurations.

use serde::{Deserialize, Serialize};

use crate::error::{Kind, Refusal, Result};
use crate::nearest::{did_you_mean, shortened};
use crate::step::Act;
pub use masters::{Master, MasterPlace, MasterProjection, Slot, SlotKind, SlotShape};

/// The kinds of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of section 2.1")]
pub enum CellKind {
    Elman,
    SecondOrder,
    Mrnn,
    Mi,
    Lstm,
    Gru,
    LinearLogic,
    Master,
    Ntm,
    PatternNtm,
    MultiPatternNtm,
}

/// Every kind with its name and the options that belong to it, beside `act` of those that have a σ.
const KINDS: [(CellKind, &str, &[&str]); 11] = [
    (CellKind::Elman, "elman", &["act"]),
    (CellKind::SecondOrder, "second-order", &["act", "v_init"]),
    (CellKind::Mrnn, "mrnn", &["act", "hh", "v_init"]),
    (CellKind::Mi, "mi", &["act", "mi_weights"]),
    (CellKind::Lstm, "lstm", &[]),
    (CellKind::Gru, "gru", &[]),
    (CellKind::LinearLogic, "ll", LINEAR_LOGIC),
    (CellKind::Master, "master", &["act", "masters"]),
    (CellKind::Ntm, "ntm", &["powers"]),
    (CellKind::PatternNtm, "pattern-ntm", &["powers", "pattern_powers", "pattern_start"]),
    (CellKind::MultiPatternNtm, "multi-pattern-ntm", &["powers", "pattern_powers", "pattern_start"]),
];

const LINEAR_LOGIC: &[&str] = &[
    "preset",
    "lambda",
    "pi",
    "order",
    "v",
    "project",
    "gate",
    "gate_act",
    "gate_source",
    "table_len",
    "act",
    "x0",
    "h0",
    "v_norm",
    "hh",
    "v_init",
    "gate_bias",
    "allow_degenerate",
];

impl CellKind {
    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(kind, _, _)| *kind)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _, _)| *kind == self).map_or("", |(_, name, _)| name)
    }

    /// Whether it is one of the Turing machines.
    pub fn is_turing(self) -> bool {
        matches!(self, Self::Ntm | Self::PatternNtm | Self::MultiPatternNtm)
    }

    /// The options that belong to it.
    pub fn options(self) -> &'static [&'static str] {
        KINDS.iter().find(|(kind, _, _)| *kind == self).map_or(&[], |(_, _, options)| options)
    }
}

impl std::str::FromStr for CellKind {
    type Err = Refusal;

    fn from_str(name: &str) -> Result<Self> {
        if let Some((kind, _, _)) = KINDS.iter().find(|(_, known, _)| *known == name) {
            return Ok(*kind);
        }
        let near = did_you_mean(name, KINDS.iter().map(|(_, known, _)| *known));
        let name = shortened(name);
        Err(Refusal::new(Kind::UnknownCell, format!("there is no cell `{name}`{near}")))
    }
}

/// Sizes. Those that a cell has no use for are not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// i
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<usize>,
    /// H, or S of a Turing machine
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    /// K
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aux: Option<usize>,
    /// K₂
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aux2: Option<usize>,
    /// o; without it there is no readout
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<usize>,
    /// y; H if it is not given, for Turing machines 0
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readout: Option<usize>,
    /// N
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<usize>,
    /// c
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<usize>,
    /// Addresses of rings 2, 3 and 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_addresses: Option<usize>,
}

/// The largest size: with it no product of three sizes overflows, and no cell fits into memory.
const LARGEST: usize = 1 << 20;

/// The size, if it may be computed with.
///
/// # Errors
/// `config`
pub(crate) fn not_too_large(name: &str, size: usize) -> Result<usize> {
    if size > LARGEST { Err(Refusal::config(format!("`{name}` = {size} is too large"))) } else { Ok(size) }
}

impl Sizes {
    /// A size that the cell needs.
    ///
    /// # Errors
    /// `config` if it is not given, is 0, or is larger than any cell that fits into memory.
    pub fn need(&self, name: &str) -> Result<usize> {
        let size = match name {
            "input" => self.input,
            "hidden" => self.hidden,
            "aux" => self.aux,
            "aux2" => self.aux2,
            "output" => self.output,
            "addresses" => self.addresses,
            "content" => self.content,
            "pattern_addresses" => Some(self.pattern_addresses.unwrap_or(20)),
            _ => None,
        };
        match size {
            None => Err(Refusal::config(format!("this cell needs the size `{name}`"))),
            Some(0) => Err(Refusal::config(format!("the size `{name}` is 0"))),
            Some(size) => not_too_large(name, size),
        }
    }
}

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$each])* #[serde(rename = $text)] $variant),+ }
    };
}

mod masters;

choice! {
    /// The set of values that all other keys of `ll` start from.
    Preset { /// Definition 2.9.
        Paper = "paper", /// The authors' public code.
        Coded = "coded", /// The recommended start.
        Stable = "stable" }
}
choice! {
    /// How words are read.
    WordOrder { /// ⟦001⟧(X, Y) = X X Y
        Literal = "literal", /// ⟦001⟧(X, Y) = Y X X
        FirstDigitFirst = "first-digit-first", /// The same, short.
        Fdf = "fdf" }
}
choice! {
    /// Where operators live.
    Operators { /// Vectors, multiplied elementwise.
        Diag = "diag", /// Matrices.
        Full = "full", /// Diagonal for Λ, full for Π.
        TwoSpace = "two-space" }
}
choice! {
    /// How the state reaches the space of the operators.
    Projection { /// By J, and back by I.
        Learned = "learned", /// It is the same space.
        Identity = "identity" }
}
choice! {
    /// How many gates a program has.
    Gate { /// One.
        Scalar = "scalar", /// One for each coordinate.
        Diagonal = "diagonal" }
}
choice! {
    /// γ
    GateAct { /// max(x, 0)
        Relu = "relu", /// tanh
        Tanh = "tanh", /// The logistic function.
        Sigmoid = "sigmoid", /// Over the programs.
        Softmax = "softmax", /// x
        Identity = "identity", /// 1, without weights.
        One = "one" }
}
choice! {
    /// What gates depend on.
    GateSource { /// The state.
        State = "state", /// The step: Remark A.1.
        Table = "table" }
}
choice! {
    /// x⁽⁰⁾
    FirstInput { /// 0
        Zero = "zero", /// x⁽¹⁾
        First = "first", /// A weight.
        Learned = "learned" }
}
choice! {
    /// h⁽⁰⁾
    FirstState { /// 0
        Zero = "zero", /// A weight.
        Learned = "learned" }
}
choice! {
    /// What is done to V before use.
    VNorm { /// Nothing.
        None = "none", /// Elementwise tanh.
        Tanh = "tanh", /// Softmax of every column.
        ColumnSoftmax = "column-softmax" }
}
choice! {
    /// How V starts.
    VInit { /// Glorot's uniform distribution.
        Glorot = "glorot", /// The identity, and uniform ±0.1.
        Identity = "identity" }
}
choice! {
    /// The weights of multiplicative integration.
    MiWeights { /// Trained.
        Learned = "learned", /// All 1.
        Ones = "ones" }
}
choice! {
    /// σ
    Sigma { /// max(x, 0)
        Relu = "relu", /// tanh
        Tanh = "tanh", /// x
        Identity = "identity" }
}

impl Sigma {
    /// The function.
    pub fn act(self) -> Act {
        match self {
            Self::Relu => Act::Relu,
            Self::Tanh => Act::Tanh,
            Self::Identity => Act::Identity,
        }
    }
}

impl WordOrder {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::FirstDigitFirst | Self::Fdf => "first-digit-first",
        }
    }

    /// The reading of the language.
    pub fn order(self) -> linear_logic::literal::Order {
        match self {
            Self::Literal => linear_logic::literal::Order::Literal,
            Self::FirstDigitFirst | Self::Fdf => linear_logic::literal::Order::FirstDigitFirst,
        }
    }
}

/// A proof of Λ: a numeral, or a text that checks as `int`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "`lambda` has an entry that is neither an integer from 0 nor a text")]
#[expect(missing_docs, reason = "the sentence above")]
pub enum Numeral {
    Number(u64),
    Text(String),
}

/// The most programs of a list. Each is checked and compiled.
pub(crate) const MOST_PROGRAMS: usize = 10_000;

/// The most masters of a cell. Each is compiled on a stack of its own.
pub(crate) const MOST_MASTERS: usize = 1000;

/// Refuses a list that is too long to be checked.
///
/// # Errors
/// `config`
pub(crate) fn not_too_many(name: &str, count: usize, most: usize) -> Result<()> {
    if count > most {
        return Err(Refusal::config(format!("{name} has {count} entries; at most {most} are computed with")));
    }
    Ok(())
}

/// Options, all optional here; which of them a cell has is checked when it is built.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the keys of sections 2 to 6, under their names")]
pub struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act: Option<Sigma>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hh: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mi_weights: Option<MiWeights>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<Vec<Numeral>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pi: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<WordOrder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<Operators>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Projection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate_act: Option<GateAct>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate_source: Option<GateSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_len: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x0: Option<FirstInput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub h0: Option<FirstState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v_norm: Option<VNorm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v_init: Option<VInit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate_bias: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_degenerate: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub powers: Option<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_powers: Option<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_start: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masters: Option<Vec<Master>>,
}

impl Options {
    /// Options from their document.
    ///
    /// # Errors
    /// `config`, for an unknown key (with the nearest known one) or a value of the wrong form.
    pub fn read(document: &serde_json::Value) -> Result<Self> {
        serde_json::from_value(document.clone())
            .map_err(|error| Refusal::config(explained(&error.to_string())))
    }

    /// The keys that are given.
    pub fn given(&self) -> Vec<String> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(keys)) => keys.into_iter().map(|(key, _)| key).collect(),
            _ => Vec::new(),
        }
    }

    /// Refuses keys that do not belong to the cell.
    ///
    /// # Errors
    /// `config`
    pub fn check(&self, kind: CellKind) -> Result<()> {
        match self.given().iter().find(|key| !kind.options().contains(&key.as_str())) {
            Some(key) => {
                Err(Refusal::config(format!("`{key}` is not an option of the cell `{}`", kind.name())))
            }
            None => Ok(()),
        }
    }
}

/// serde's words for an unknown key, shortened to the nearest key.
pub fn explained(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.to_owned() };
    let Some((key, known)) = rest.split_once('`') else { return message.to_owned() };
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    format!("unknown key `{}`{}", shortened(key), did_you_mean(key, known))
}
