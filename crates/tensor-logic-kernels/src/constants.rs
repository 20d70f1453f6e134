//! Numbers that stay the same as parts of elementwise programs.
//!
//! Enter at [`Point::by_numbers`]. To read one number takes as long as to multiply some dozens, and to multiply by 1 as long as by
//! another number.

use super::array::{Known, Step, View};
use super::code::{Binary, Code};
use super::point::{LONGEST, Point};

/// A piece of a program that leaves one number.
struct Piece {
    code: Vec<Code>,
    /// Whether that is 1 for all entries.
    is_one: bool,
}

impl Point {
    /// The same operation, with the numbers in its program that it reads for all of its entries. The bits are the same.
    pub(super) fn by_numbers(self, known: Known<'_>) -> Point {
        let one = |view: &View| -> Option<usize> {
            let steps = view.steps.iter().zip(&self.shape);
            steps.into_iter().try_fold(view.offset, |at, (step, size)| match step {
                Step::By(0) => Some(at),
                step => (*size == 1).then(|| at + step.offset(0)),
            })
        };
        let number = |view: &View| one(view).and_then(|at| known(&view.array, at));
        let numbers: Vec<Option<f64>> = self.inputs.iter().map(number).collect();
        if numbers.iter().all(Option::is_none) || self.code.len() > LONGEST {
            return self;
        }
        match with(&self.code, &numbers) {
            Some(code) => self.without_idle_inputs(code),
            None => self,
        }
    }
}

/// The program with these numbers in place of the inputs that they are, and without what changes nothing; `None` for one that
/// keeps something.
fn with(code: &[Code], numbers: &[Option<f64>]) -> Option<Vec<Code>> {
    let mut stack: Vec<Piece> = Vec::new();
    for code in code {
        let count = match code {
            Code::Keep(_) | Code::Kept(_) => return None,
            Code::Load(_) | Code::Number(_) => 0,
            Code::Negate => 1,
            Code::Call(_, count) => *count,
            Code::Binary(_) => 2,
            Code::Select => 3,
        };
        let mut parts = stack.split_off(stack.len().checked_sub(count)?);
        let own = match code {
            Code::Load(at) => numbers.get(*at).copied().flatten().map_or(Code::Load(*at), Code::Number),
            other => other.clone(),
        };
        // x / 1, x 1 and 1 x are x, also where x is no number or 0 with a sign.
        let left = match (&own, parts.as_slice()) {
            (Code::Binary(Binary::Multiply), [a, _]) if a.is_one => Some(1),
            (Code::Binary(Binary::Multiply | Binary::Divide), [_, b]) if b.is_one => Some(0),
            _ => None,
        };
        stack.push(match left {
            Some(left) => parts.swap_remove(left),
            None => {
                let is_one = matches!(own, Code::Number(number) if number == 1.0);
                let mut code: Vec<Code> = parts.into_iter().flat_map(|part| part.code).collect();
                code.push(own);
                Piece { code, is_one }
            }
        });
    }
    match stack.len() {
        1 => stack.pop().map(|piece| piece.code),
        _ => None,
    }
}
