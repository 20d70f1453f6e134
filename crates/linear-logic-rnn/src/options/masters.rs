//! What a master cell may be told: its proofs and what fills their arguments (section 4).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::choices::{GateAct, WordOrder, choice};

/// One summand of a master cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Master {
    /// A query of the language.
    pub proof: String,
    /// The atom α.
    pub state: String,
    /// The dimension of every atom of the slots.
    pub dims: BTreeMap<String, usize>,
    /// The slots.
    pub slots: Vec<Slot>,
    /// Where the summand goes.
    #[serde(default)]
    pub place: MasterPlace,
    /// How the state reaches α.
    #[serde(default)]
    pub project: MasterProjection,
    /// How words are read.
    #[serde(default = "literal")]
    pub order: WordOrder,
}

fn literal() -> WordOrder {
    WordOrder::Literal
}

/// Inside σ, or added to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the sentence above")]
pub enum MasterPlace {
    #[default]
    In,
    Out,
}

/// How the state reaches α.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MasterProjection {
    /// It is α.
    #[default]
    Identity,
    /// By weights J and I.
    Learned,
    /// By those of another master.
    #[serde(untagged)]
    Shared {
        /// Its number.
        share: usize,
    },
}

/// What fills an argument of the proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the keys of section 4, under their names")]
pub struct Slot {
    pub kind: SlotKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<GateAct>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<SlotShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<[usize; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Vec<Vec<f64>>>,
}

choice! {
    /// The kinds of slots.
    SlotKind { /// A mixture of closed terms.
        Program = "program", /// V(x)
        Input = "input", /// V(x′)
        PreviousInput = "previous-input", /// A matrix computed from the state.
        Data = "data", /// A matrix.
        Param = "param", /// A matrix that is not trained.
        Constant = "constant" }
}
choice! {
    /// The form of an input slot's operators.
    SlotShape { /// Matrices.
        Full = "full", /// Vectors, multiplied elementwise.
        Diag = "diag" }
}
