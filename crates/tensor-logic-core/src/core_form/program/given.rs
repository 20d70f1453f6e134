//! What a program gives: values, facts, and the starts of parameters.

use std::sync::Arc;

use crate::ast::Span;
use crate::value::{Const, Domain, Tuple};

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
    /// Its numbers; none where all are 1.
    pub fn numbers(&self) -> &[f64] {
        match self {
            Given::Facts(facts) => &facts.values,
            Given::Columns(columns) => columns.values.as_ref().map_or(&[], |values| values.as_slice()),
            Given::Array { values, .. } => values,
        }
    }

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
