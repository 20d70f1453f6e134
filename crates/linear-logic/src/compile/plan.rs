//! Straight-line programs as data.

use num_rational::BigRational;
use serde_json::{Value, json};

use crate::json::{integer_json, rational_json};

/// What operators are at run time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Matrices; results are operators.
    #[default]
    Matrix,
    /// Matrices; results are their values at one vector.
    Vector,
    /// Vectors, multiplied elementwise.
    Diagonal,
}

impl Backend {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Matrix => "matrix",
            Self::Vector => "vector",
            Self::Diagonal => "diagonal",
        }
    }
}

impl std::str::FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Matrix, Self::Vector, Self::Diagonal]
            .into_iter()
            .find(|backend| backend.name() == text)
            .ok_or_else(|| "a back end is `matrix`, `vector` or `diagonal`".to_owned())
    }
}

/// `Σ c·∏ coefficients`: each summand with its coefficients as (slot, index).
pub type Coefficient = Vec<(BigRational, Vec<(usize, usize)>)>;

/// An instruction; others are named by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the operations of section 12")]
pub enum Instruction {
    Input { slot: usize },
    Identity,
    Zero,
    Mul(usize, usize),
    Add(Vec<usize>),
    Scale { by: Coefficient, of: usize },
    Pow { of: usize, exponent: u64 },
    Vector,
    Apply { operator: usize, vector: usize },
}

impl Instruction {
    /// The name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Identity => "identity",
            Self::Zero => "zero",
            Self::Mul(..) => "mul",
            Self::Add(_) => "add",
            Self::Scale { .. } => "scale",
            Self::Pow { .. } => "pow",
            Self::Vector => "vector",
            Self::Apply { .. } => "apply",
        }
    }

    /// The instructions that this one uses, in order.
    pub fn arguments(&self) -> Vec<usize> {
        match self {
            Self::Input { .. } | Self::Identity | Self::Zero | Self::Vector => Vec::new(),
            Self::Mul(a, b) | Self::Apply { operator: a, vector: b } => vec![*a, *b],
            Self::Add(all) => all.clone(),
            Self::Scale { of, .. } | Self::Pow { of, .. } => vec![*of],
        }
    }

    /// The same instruction with other numbers for those that it uses.
    #[must_use]
    pub(super) fn renumbered(&self, number: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Mul(a, b) => Self::Mul(number(*a), number(*b)),
            Self::Apply { operator, vector } => {
                Self::Apply { operator: number(*operator), vector: number(*vector) }
            }
            Self::Add(all) => Self::Add(all.iter().map(|a| number(*a)).collect()),
            Self::Scale { by, of } => Self::Scale { by: by.clone(), of: number(*of) },
            Self::Pow { of, exponent } => Self::Pow { of: number(*of), exponent: *exponent },
            other => other.clone(),
        }
    }

    fn json(&self, id: usize) -> Value {
        let mut object = json!({ "id": id, "op": self.name() });
        let Some(fields) = object.as_object_mut() else { return object };
        match self {
            Self::Input { slot } => _ = fields.insert("slot".to_owned(), json!(slot)),
            Self::Scale { by, .. } => {
                let by = by.iter().map(|(c, product)| json!([rational_json(c), product])).collect();
                fields.insert("by".to_owned(), by);
            }
            Self::Pow { exponent, .. } => {
                fields.insert("n".to_owned(), integer_json(&(*exponent).into()));
            }
            _ => {}
        }
        let arguments = self.arguments();
        if !arguments.is_empty() {
            fields.insert("args".to_owned(), json!(arguments));
        }
        object
    }
}

/// A straight-line program. An instruction uses only earlier ones, and none occurs twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What operators are.
    pub backend: Backend,
    /// The instructions, in order of use.
    pub instructions: Vec<Instruction>,
    /// For each subject, the instruction that holds its value.
    pub results: Vec<usize>,
}

impl Plan {
    /// How many instructions of this name there are.
    pub fn count(&self, name: &str) -> usize {
        self.instructions.iter().filter(|instruction| instruction.name() == name).count()
    }

    /// `instructions`, `results` and `stats`.
    pub fn json(&self) -> Value {
        let instructions: Vec<Value> =
            self.instructions.iter().enumerate().map(|(id, i)| i.json(id)).collect();
        json!({
            "backend": self.backend.name(),
            "instructions": instructions,
            "results": self.results,
            "stats": {
                "mul": self.count("mul"),
                "apply": self.count("apply"),
                "pow": self.count("pow"),
                "add": self.count("add"),
                "scale": self.count("scale"),
            },
        })
    }
}
