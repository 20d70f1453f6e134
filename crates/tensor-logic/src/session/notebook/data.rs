//! Arrays and relations in memory, and how a program reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast;
use crate::error::{Code, Refusal};
use crate::files::{Files, Folder};
use crate::lower::{FileSource, Loaded, Wanted};
use crate::program::Facts;
use crate::value::{Const, Symbols};

/// A dense array of numbers, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    values: Arc<[f64]>,
}

impl Array {
    /// An array with these sizes. Missing values are 0, and surplus ones are left out.
    pub fn new(shape: impl Into<Vec<usize>>, values: impl Into<Vec<f64>>) -> Array {
        let (shape, mut values) = (shape.into(), values.into());
        let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        values.resize(count.unwrap_or(values.len()), 0.0);
        Array { shape, values: values.into() }
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, row-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The number that an array without places is.
    pub(super) fn number(&self) -> Option<f64> {
        if self.shape.is_empty() { self.values.first().copied() } else { None }
    }

    pub(super) fn shared(&self) -> Arc<[f64]> {
        Arc::clone(&self.values)
    }
}

impl From<f64> for Array {
    fn from(value: f64) -> Array {
        Array::new([], [value])
    }
}

impl From<Vec<f64>> for Array {
    fn from(values: Vec<f64>) -> Array {
        Array::new([values.len()], values)
    }
}

impl<const N: usize> From<[f64; N]> for Array {
    fn from(values: [f64; N]) -> Array {
        Array::new([N], values)
    }
}

impl<const M: usize, const N: usize> From<[[f64; N]; M]> for Array {
    fn from(rows: [[f64; N]; M]) -> Array {
        Array::new([M, N], rows.concat())
    }
}

/// A constant of a tuple.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constant {
    /// An integer.
    Int(i64),
    /// A symbol.
    Symbol(String),
}

impl From<i64> for Constant {
    fn from(value: i64) -> Constant {
        Constant::Int(value)
    }
}

impl From<i32> for Constant {
    fn from(value: i32) -> Constant {
        Constant::Int(value.into())
    }
}

impl From<&str> for Constant {
    fn from(symbol: &str) -> Constant {
        Constant::Symbol(symbol.to_owned())
    }
}

impl From<String> for Constant {
    fn from(symbol: String) -> Constant {
        Constant::Symbol(symbol)
    }
}

impl PartialEq<&str> for Constant {
    fn eq(&self, other: &&str) -> bool {
        matches!(self, Constant::Symbol(symbol) if symbol == other)
    }
}

impl PartialEq<i64> for Constant {
    fn eq(&self, other: &i64) -> bool {
        matches!(self, Constant::Int(value) if value == other)
    }
}

/// A tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(pub Vec<Constant>);

impl<T: Into<Constant>> From<Vec<T>> for Row {
    fn from(constants: Vec<T>) -> Row {
        Row(constants.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Constant>, const N: usize> From<[T; N]> for Row {
    fn from(constants: [T; N]) -> Row {
        Row(constants.into_iter().map(Into::into).collect())
    }
}

impl<A: Into<Constant>> From<(A,)> for Row {
    fn from((a,): (A,)) -> Row {
        Row(vec![a.into()])
    }
}

impl<A: Into<Constant>, B: Into<Constant>> From<(A, B)> for Row {
    fn from((a, b): (A, B)) -> Row {
        Row(vec![a.into(), b.into()])
    }
}

impl<A: Into<Constant>, B: Into<Constant>, C: Into<Constant>> From<(A, B, C)> for Row {
    fn from((a, b, c): (A, B, C)) -> Row {
        Row(vec![a.into(), b.into(), c.into()])
    }
}

impl<A: Into<Constant>, B: Into<Constant>, C: Into<Constant>, D: Into<Constant>> From<(A, B, C, D)> for Row {
    fn from((a, b, c, d): (A, B, C, D)) -> Row {
        Row(vec![a.into(), b.into(), c.into(), d.into()])
    }
}

/// What is given under a name.
#[derive(Debug, Clone)]
pub(super) enum Gift {
    /// A square tensor.
    Array(Array),
    /// A relation.
    Relation(Vec<(Row, Option<f64>)>),
}

/// What a file's name begins with that only a notebook has.
const HERE: &str = "memory:";

impl Gift {
    /// The statement that gives it to a program.
    pub(super) fn statement(&self, name: &str) -> String {
        let places = |rank: usize| (0..rank).map(|at| format!("place{at}_")).collect::<Vec<_>>().join(", ");
        match self {
            Gift::Array(array) => {
                format!("{name}[{}] = \"{HERE}{name}.npy\"", places(array.shape.len()))
            }
            Gift::Relation(rows) => {
                let rank = rows.first().map_or(0, |(row, _)| row.0.len());
                let valued = if rows.iter().any(|(_, value)| value.is_some()) { " as values" } else { "" };
                match rank {
                    // The program says how many places an empty relation has.
                    0 => format!("{name} = \"{HERE}{name}.csv\"{valued}"),
                    rank => format!("{name}({}) = \"{HERE}{name}.csv\"{valued}", places(rank)),
                }
            }
        }
    }

    /// Whether it is a number, which is set and not read.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, Gift::Array(array) if array.shape.is_empty())
    }

    fn load(&self, symbols: &mut Symbols, span: ast::Span) -> Result<Loaded, Refusal> {
        match self {
            Gift::Array(array) => {
                let rest = Arc::from([]);
                Ok(Loaded::Array { shape: array.shape.clone(), values: array.shared(), rest })
            }
            Gift::Relation(rows) => {
                let arity = rows.first().map_or(0, |(row, _)| row.0.len());
                let mut facts = Facts { arity, ..Facts::default() };
                for (row, value) in rows {
                    if row.0.len() != arity {
                        let message = format!("a tuple has {} places, the first {arity}", row.0.len());
                        return Err(Refusal::new(Code::FileFormat, span, message));
                    }
                    let constant = |constant: &Constant| match constant {
                        Constant::Int(value) => Const::Int(*value),
                        Constant::Symbol(name) => Const::Symbol(symbols.intern(name)),
                    };
                    let tuple: Vec<Const> = row.0.iter().map(constant).collect();
                    facts.push(&tuple, value.unwrap_or(1.0), None);
                }
                Ok(Loaded::Facts(facts))
            }
        }
    }
}

/// What is given, before the files of the program's folder.
pub(super) struct Gifts<'a> {
    pub(super) given: &'a BTreeMap<String, Gift>,
    pub(super) files: Files,
}

impl FileSource for Gifts<'_> {
    fn load(&mut self, wanted: &Wanted<'_>, symbols: &mut Symbols) -> Result<Loaded, Refusal> {
        match self.given.get(wanted.tensor).filter(|_| wanted.file.value.starts_with(HERE)) {
            Some(gift) => gift.load(symbols, wanted.file.span),
            None => self.files.load(wanted, symbols),
        }
    }
}

impl Folder for Gifts<'_> {
    fn files(&self) -> &Files {
        &self.files
    }
}
