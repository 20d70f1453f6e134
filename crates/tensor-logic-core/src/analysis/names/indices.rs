//! Constants in index places: what an index expression without indices says.

use crate::ast::{IndexExpr, IndexKind, IndexOperator};
use crate::names::known::Names;
use crate::program::{floor_div, floor_rem};

/// The value of an index expression without indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fixed {
    /// An integer.
    Integer(i64),
    /// A symbol.
    Symbol(String),
}

/// The value of an index expression, if it has no index and its arithmetic succeeds.
pub fn fixed(root: &IndexExpr, names: &Names) -> Option<Fixed> {
    enum Task<'a> {
        Visit(&'a IndexExpr),
        Negate,
        Apply(IndexOperator),
    }
    let mut tasks = vec![Task::Visit(root)];
    let mut values: Vec<Fixed> = Vec::new();
    while let Some(task) = tasks.pop() {
        let made = match task {
            Task::Visit(node) => match &node.kind {
                IndexKind::Index(_) => return None,
                IndexKind::Integer(value) => Fixed::Integer(*value),
                IndexKind::Text(text) => Fixed::Symbol(text.clone()),
                IndexKind::Name(name) => named(name, names)?,
                IndexKind::Group(inner) => {
                    tasks.push(Task::Visit(inner));
                    continue;
                }
                IndexKind::Negate(inner) => {
                    tasks.push(Task::Negate);
                    tasks.push(Task::Visit(inner));
                    continue;
                }
                IndexKind::Binary(operator, left, right) => {
                    tasks.push(Task::Apply(*operator));
                    tasks.push(Task::Visit(right));
                    tasks.push(Task::Visit(left));
                    continue;
                }
            },
            Task::Negate => Fixed::Integer(integer(values.pop())?.checked_neg()?),
            Task::Apply(operator) => {
                let right = integer(values.pop())?;
                let left = integer(values.pop())?;
                Fixed::Integer(apply(operator, left, right)?)
            }
        };
        values.push(made);
    }
    values.pop()
}

fn integer(value: Option<Fixed>) -> Option<i64> {
    match value? {
        Fixed::Integer(value) => Some(value),
        Fixed::Symbol(_) => None,
    }
}

/// A capital name in an index place: an integer constant of the program, or a symbol.
fn named(name: &str, names: &Names) -> Option<Fixed> {
    let Some(constant) = names.constants.get(name) else { return Some(Fixed::Symbol(name.to_owned())) };
    constant.whole.map(Fixed::Integer)
}

fn apply(operator: IndexOperator, left: i64, right: i64) -> Option<i64> {
    match operator {
        IndexOperator::Add => left.checked_add(right),
        IndexOperator::Subtract => left.checked_sub(right),
        IndexOperator::Multiply => left.checked_mul(right),
        IndexOperator::Divide => floor_div(left, right),
        IndexOperator::Remainder => floor_rem(left, right),
    }
}
