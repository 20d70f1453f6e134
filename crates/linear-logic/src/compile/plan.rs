//! Straight-line programs as data.

use std::fmt;

use num_rational::BigRational;
use serde_json::{Value, json};

use crate::json::{fraction_text, integer_json, rational_json};

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

impl fmt::Display for Instruction {
    /// `mul %0 %1`, `scale %2 by 1/2*s0.1 + s0.0*s0.1`: an instruction is `%` and its number, a coefficient `s`, its slot
    /// and its index.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        if let Self::Input { slot } = self {
            write!(f, " {slot}")?;
        }
        self.arguments().iter().try_for_each(|argument| write!(f, " %{argument}"))?;
        match self {
            Self::Pow { exponent, .. } => write!(f, " ^{exponent}"),
            Self::Scale { by, .. } => {
                for (at, (number, product)) in by.iter().enumerate() {
                    write!(f, " {} {}", if at == 0 { "by" } else { "+" }, fraction_text(number))?;
                    product.iter().try_for_each(|(slot, index)| write!(f, "*s{slot}.{index}"))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
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

/// Bounds on the degrees of a result, a polynomial in the entries of its operators and in the coefficients of its mixtures.
///
/// They are met unless terms cancel, and terms do so only where a proof, a coefficient or a ring brings negative numbers.
/// A degree of 2⁶⁴ or more is `u64::MAX`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Degree {
    /// In the entries of all operators together, their coefficients held fast.
    pub operators: u64,
    /// In the coefficients of all mixtures together, the operators held fast.
    pub coefficients: u64,
}

impl Degree {
    /// That of a product.
    fn and(self, other: Self) -> Self {
        Self {
            operators: self.operators.saturating_add(other.operators),
            coefficients: self.coefficients.saturating_add(other.coefficients),
        }
    }

    /// That of a sum.
    fn or(self, other: Self) -> Self {
        Self {
            operators: self.operators.max(other.operators),
            coefficients: self.coefficients.max(other.coefficients),
        }
    }
}

/// The instructions that are counted, in the order of reports.
const COUNTED: [&str; 5] = ["mul", "apply", "pow", "add", "scale"];

impl fmt::Display for Plan {
    /// Everything that [`Plan::json`] says, a line for each instruction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "backend {}", self.backend.name())?;
        for (id, instruction) in self.instructions.iter().enumerate() {
            writeln!(f, "%{id} = {instruction}")?;
        }
        let results: Vec<String> = self.results.iter().map(|id| format!("%{id}")).collect();
        writeln!(f, "results {}", results.join(", "))?;
        let stats: Vec<String> = COUNTED.iter().map(|name| format!("{name} {}", self.count(name))).collect();
        write!(f, "stats {}", stats.join(", "))
    }
}

impl Plan {
    /// How many instructions of this name there are.
    pub fn count(&self, name: &str) -> usize {
        self.instructions.iter().filter(|instruction| instruction.name() == name).count()
    }

    /// The degree of each result, subject by subject.
    pub fn degrees(&self) -> Vec<Degree> {
        let mut known: Vec<Degree> = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            let of = |id: &usize| known.get(*id).copied().unwrap_or_default();
            let degree = match instruction {
                Instruction::Identity | Instruction::Zero | Instruction::Vector => Degree::default(),
                Instruction::Input { .. } => Degree { operators: 1, coefficients: 0 },
                Instruction::Mul(a, b) | Instruction::Apply { operator: a, vector: b } => of(a).and(of(b)),
                Instruction::Add(all) => all.iter().map(of).fold(Degree::default(), Degree::or),
                Instruction::Scale { by, of: scaled } => {
                    let most = by.iter().map(|(_, product)| product.len()).max().unwrap_or(0);
                    of(scaled).and(Degree { operators: 0, coefficients: most as u64 })
                }
                Instruction::Pow { of: base, exponent } => {
                    let base = of(base);
                    Degree {
                        operators: base.operators.saturating_mul(*exponent),
                        coefficients: base.coefficients.saturating_mul(*exponent),
                    }
                }
            };
            known.push(degree);
        }
        self.results.iter().map(|id| known.get(*id).copied().unwrap_or_default()).collect()
    }

    /// `instructions`, `results` and `stats`.
    pub fn json(&self) -> Value {
        let instructions: Vec<Value> =
            self.instructions.iter().enumerate().map(|(id, i)| i.json(id)).collect();
        let stats: Value = COUNTED.iter().map(|name| ((*name).to_owned(), json!(self.count(name)))).collect();
        json!({
            "backend": self.backend.name(),
            "instructions": instructions,
            "results": self.results,
            "stats": stats,
        })
    }
}
