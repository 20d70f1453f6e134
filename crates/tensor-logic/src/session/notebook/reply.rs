//! An answer with the spellings of its symbols.

use std::fmt;
use std::sync::Arc;

use super::data::Constant;
use crate::answer::{Answer, Content, text};
use crate::program::Kind;
use crate::value::{Const, Symbols};

/// The answer of a query. It shows itself as `tl run` does.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    pub(super) symbols: Arc<Symbols>,
}

impl Reply {
    /// The number of a scalar, or of a tuple with a value.
    pub fn number(&self) -> Option<f64> {
        match &self.answer.content {
            Content::Scalar(value) => *value,
            Content::Tensor { .. } | Content::Relation { .. } => None,
        }
    }

    /// The answer to a Boolean question.
    pub fn holds(&self) -> Option<bool> {
        self.number().filter(|_| self.answer.kind == Kind::Bool).map(|value| value != 0.0)
    }

    /// All numbers: of a tensor row-major, of a relation beside its tuples.
    pub fn values(&self) -> &[f64] {
        self.answer.content.numbers()
    }

    /// The sizes of a tensor.
    pub fn shape(&self) -> Vec<usize> {
        match &self.answer.content {
            Content::Tensor { domains, .. } => domains.iter().map(|domain| domain.len()).collect(),
            Content::Scalar(_) | Content::Relation { .. } => Vec::new(),
        }
    }

    /// The tuples of a relation, in order.
    pub fn tuples(&self) -> Vec<Vec<Constant>> {
        let Content::Relation { tuples, .. } = &self.answer.content else { return Vec::new() };
        let constant = |value: &Const| match value {
            Const::Int(value) => Constant::Int(*value),
            Const::Symbol(id) => Constant::Symbol(self.symbols.name(*id).to_owned()),
        };
        tuples.iter().map(|tuple| tuple.iter().map(constant).collect()).collect()
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::answer(&self.symbols, &self.answer))
    }
}

/// The value of a scalar and its gradients.
#[derive(Debug, Clone)]
pub struct Gradients {
    /// The value.
    pub value: f64,
    /// The gradient by each tensor, with its name, in the order in which they were named, else in that of their names.
    pub by: Vec<(String, Reply)>,
}
