//! What a master cell may be told: its proofs and what fills their arguments (section 4).

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::choices::{GateAct, WordOrder, choice};

/// One summand of a master cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Master {
    /// A query of the language.
    pub proof: String,
    /// The atom α.
    pub state: String,
    /// The dimension of every atom of the slots.
    pub dims: BTreeMap<String, usize>,
    /// The slots.
    #[serde(deserialize_with = "super::objects::list")]
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

impl Serialize for Master {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Master {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is derived would take a list of the values, too.
        deserializer.deserialize_map(Names)
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Master;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with named values")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Master, A::Error> {
        Master::deserialize(MapAccessDeserializer::new(map))
    }
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
    Shared(Shared),
}

/// The master whose projection another one takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// Its number.
    pub share: usize,
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

impl Slot {
    /// One of a kind, with nothing said beside it.
    pub fn of(kind: SlotKind) -> Self {
        Self { kind, list: None, act: None, from: None, to: None, shape: None, share: None, value: None }
    }

    /// A mixture of closed terms, Σ γ(W h + b)_k t_k; γ is relu if nothing is said.
    pub fn programs<T: Into<String>>(terms: impl IntoIterator<Item = T>) -> Self {
        Self { list: Some(terms.into_iter().map(Into::into).collect()), ..Self::of(SlotKind::Program) }
    }

    /// V(x), a matrix from a trained stack by the input.
    pub fn input() -> Self {
        Self::of(SlotKind::Input)
    }

    /// V(x′), likewise by the input before.
    pub fn previous() -> Self {
        Self::of(SlotKind::PreviousInput)
    }

    /// γ(W h + b), a matrix from the state; γ is relu if nothing is said.
    pub fn data() -> Self {
        Self::of(SlotKind::Data)
    }

    /// A trained matrix.
    pub fn weight() -> Self {
        Self::of(SlotKind::Param)
    }

    /// This matrix, row by row.
    pub fn matrix(value: Vec<Vec<f64>>) -> Self {
        Self { value: Some(value), ..Self::of(SlotKind::Constant) }
    }

    /// γ, of programs and of data.
    #[must_use]
    pub fn act(self, act: GateAct) -> Self {
        Self { act: Some(act), ..self }
    }

    /// Diagonal operators, of an input and of the one before.
    #[must_use]
    pub fn diagonal(self) -> Self {
        Self { shape: Some(SlotShape::Diag), ..self }
    }

    /// The weights of another slot: the number of its proof, and its own.
    #[must_use]
    pub fn shared(self, proof: usize, slot: usize) -> Self {
        Self { share: Some([proof, slot]), ..self }
    }
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
