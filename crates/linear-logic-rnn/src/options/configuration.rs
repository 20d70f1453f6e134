//! The kinds of cells and what each may be told: one variant and one struct for each kind, written down once.
//!
//! A [`Configuration`] is a document `{"cell": NAME, …}` whose further keys are those of the cell. All of them are
//! optional here; what a cell cannot do without is said when it is built.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choices::{
    FirstInput, FirstState, Gate, GateAct, GateSource, MiWeights, Numeral, Operators, Preset, Projection,
    Sigma, VInit, VNorm, WordOrder,
};
use super::masters::Master as Summand;
use crate::error::{Kind, Refusal, Result};
use crate::nearest::{did_you_mean, shortened};

/// Every option of every cell with the type of its value, in the order in which documents are written.
macro_rules! keys {
    ($($key:ident: $type:ty),+ $(,)?) => {
        $(
            #[expect(non_camel_case_types, reason = "a type for each key, under the name of the key")]
            type $key = $type;
        )+

        /// The names of the options.
        pub(super) const KEYS: &[&str] = &[$(stringify!($key)),+];

        /// The value of an option, as it is written from now on; `None` if there is no such option.
        pub(super) fn judged(key: &str, value: Value) -> Option<serde_json::Result<Value>> {
            match key {
                $(stringify!($key) => {
                    Some(serde_json::from_value::<$type>(value).and_then(serde_json::to_value))
                })+
                _ => None,
            }
        }
    };
}

keys! {
    act: Sigma,
    hh: bool,
    mi_weights: MiWeights,
    preset: Preset,
    lambda: Vec<Numeral>,
    pi: Vec<String>,
    window: usize,
    order: WordOrder,
    v: Operators,
    project: Projection,
    gate: Gate,
    gate_act: GateAct,
    gate_source: GateSource,
    table_len: usize,
    x0: FirstInput,
    h0: FirstState,
    v_norm: VNorm,
    v_init: VInit,
    gate_bias: f64,
    allow_degenerate: bool,
    powers: Vec<i64>,
    pattern_powers: Vec<i64>,
    pattern_start: f64,
    masters: Vec<Summand>,
}

/// The kinds of cells with their names and the options that belong to them.
macro_rules! cells {
    ($($(#[$doc:meta])* $kind:ident = $name:literal { $($key:ident),* $(,)? })+) => {
        /// The kinds of cells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum CellKind { $($(#[$doc])* $kind),+ }

        impl CellKind {
            /// Every kind.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$kind),+].into_iter()
            }

            /// The name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }

            /// The options that belong to it.
            pub fn options(self) -> &'static [&'static str] {
                match self { $(Self::$kind => &[$(stringify!($key)),*]),+ }
            }
        }

        /// What a cell is told.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "cell")]
        pub enum Configuration { $($(#[$doc])* #[serde(rename = $name)] $kind($kind)),+ }

        impl Configuration {
            /// The kind of the cell.
            pub fn kind(&self) -> CellKind {
                match self { $(Self::$kind(_) => CellKind::$kind),+ }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            pub struct $kind {
                $(
                    #[doc = concat!("The option `", stringify!($key), "`.")]
                    #[serde(skip_serializing_if = "Option::is_none")]
                    pub $key: Option<$key>,
                )*
            }
        )+
    };
}

cells! {
    /// A simple recurrent cell (Def. 2.1).
    Elman = "elman" { act }
    /// The input chooses the matrix of the state (Def. 2.2).
    SecondOrder = "second-order" { act, v_init }
    /// The same, through diagonal matrices.
    Mrnn = "mrnn" { act, hh, v_init }
    /// Multiplicative integration.
    Mi = "mi" { act, mi_weights }
    /// Long short-term memory.
    Lstm = "lstm" {}
    /// A gated recurrent unit.
    Gru = "gru" {}
    /// The cell of Definition 2.9.
    LinearLogic = "ll" {
        preset, lambda, pi, window, order, v, project, gate, gate_act, gate_source, table_len, act, x0, h0, v_norm, hh,
        v_init, gate_bias, allow_degenerate,
    }
    /// A cell from proofs.
    Master = "master" { act, masters }
    /// A neural Turing machine.
    Ntm = "ntm" { powers }
    /// One with a ring that holds a pattern.
    PatternNtm = "pattern-ntm" { powers, pattern_powers, pattern_start }
    /// One with two such rings.
    MultiPatternNtm = "multi-pattern-ntm" { powers, pattern_powers, pattern_start }
}

impl CellKind {
    /// Whether it is one of the Turing machines.
    pub fn is_turing(self) -> bool {
        matches!(self, Self::Ntm | Self::PatternNtm | Self::MultiPatternNtm)
    }
}

impl std::str::FromStr for CellKind {
    type Err = Refusal;

    fn from_str(name: &str) -> Result<Self> {
        if let Some(kind) = Self::all().find(|kind| kind.name() == name) {
            return Ok(kind);
        }
        let near = did_you_mean(name, Self::all().map(Self::name));
        let name = shortened(name);
        Err(Refusal::new(Kind::UnknownCell, format!("there is no cell `{name}`{near}")))
    }
}
