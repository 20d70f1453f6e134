//! Elementwise programs in which each part is computed once, however often it stands there: value numbering, as compilers call it.
//!
//! Enter at [`Point::lean`].

use std::sync::Arc;

use smallvec::SmallVec;

use super::array::{Array, Step, View};
use super::code::Code;
use super::number::volume;
use super::point::{LONGEST, Point};

/// One part of a program: what is done, and the parts that it is done to.
struct Part<'a> {
    code: &'a Code,
    of: SmallVec<[usize; 3]>,
    /// How many parts it is done something with.
    readers: usize,
    /// Where it is kept.
    slot: Option<usize>,
}

/// What has so many entries at most is kept for another reader.
const SHARED: usize = 1 << 18;

impl Point {
    /// The same operation with each part of its program, and each number that is looked up, computed once. The bits are the same.
    #[must_use]
    pub(super) fn lean(self) -> Point {
        match lean(&self.code, &self.inputs) {
            Some(code) => self.without_idle_inputs(code),
            None => self,
        }
    }

    /// The same operation, with what the others make that stands in its program as a whole read from there; `None`, if nothing
    /// does. The bits are the same.
    pub(super) fn sharing(&self, others: &[(Array, Point)]) -> Option<Point> {
        let first: Vec<usize> = (0..self.inputs.len()).map(|at| first_same(&self.inputs, at)).collect();
        let same = |own: &Code, other: &Code, at: &[usize]| match (own, other) {
            (Code::Load(own), Code::Load(other)) => at.get(*other) == first.get(*own),
            (own, other) => own.is_same(other),
        };
        let mut found: Option<Point> = None;
        for (array, other) in others.iter().filter(|(_, other)| other.shape == self.shape) {
            let code = found.as_ref().map_or(&self.code, |found| &found.code);
            if code.len() <= other.code.len() {
                continue;
            }
            // Where it reads the same.
            let own = |view: &View| self.inputs.iter().position(|own| own.is_same(view));
            let Some(at) = other.inputs.iter().map(own).collect::<Option<Vec<usize>>>() else { continue };
            // The program of an expression is one piece of that in which it stands.
            let stands = |from: &[Code]| {
                from.len() >= other.code.len()
                    && from.iter().zip(&other.code).all(|(own, other)| same(own, other, &at))
            };
            let Some(begins) = (0..code.len()).find(|begins| stands(&code[*begins..])) else { continue };
            let mut next = found.take().unwrap_or_else(|| self.clone());
            next.inputs.push(View::whole(array.clone(), &self.shape));
            let load = Code::Load(next.inputs.len() - 1);
            let mut rest = begins;
            while rest < next.code.len() {
                if stands(&next.code[rest..]) {
                    next.code.splice(rest..rest + other.code.len(), [load.clone()]);
                }
                rest += 1;
            }
            found = Some(next);
        }
        found.map(|found| {
            let code = found.code.clone();
            found.without_idle_inputs(code)
        })
    }

    /// Whether others are to read what it makes in place of making it themselves.
    pub(super) fn is_worth_sharing(&self) -> bool {
        let whole = |code: &Code| !matches!(code, Code::Keep(_) | Code::Kept(_));
        !self.truth
            && volume(&self.shape) <= SHARED
            && (2..=LONGEST).contains(&self.code.len())
            && self.code.iter().all(whole)
            && self.code.iter().any(Code::is_dear)
    }

    /// The operation by this program, with the inputs that it reads.
    pub(super) fn without_idle_inputs(self, mut code: Vec<Code>) -> Point {
        let mut stays: Vec<Option<usize>> = vec![None; self.inputs.len()];
        let mut inputs = Vec::new();
        for code in &mut code {
            if let Code::Load(at) = code {
                *at = *stays[*at].get_or_insert_with(|| {
                    inputs.push(self.inputs[*at].clone());
                    inputs.len() - 1
                });
            }
        }
        Point { inputs, code, ..self }
    }
}

/// The program in which nothing is done twice; `None` if that is so already, or it is so long that its parts are not compared in
/// pairs.
fn lean(code: &[Code], inputs: &[View]) -> Option<Vec<Code>> {
    if !(4..=LONGEST).contains(&code.len()) {
        return None;
    }
    let loads: Vec<Code> = (0..inputs.len()).map(|at| Code::Load(first_same(inputs, at))).collect();
    let mut parts: Vec<Part<'_>> = Vec::with_capacity(code.len());
    let (mut stack, mut kept): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for code in code {
        let count = match code {
            Code::Keep(slot) => {
                kept.resize(kept.len().max(slot + 1), 0);
                kept[*slot] = *stack.last()?;
                continue;
            }
            Code::Kept(slot) => {
                stack.push(*kept.get(*slot)?);
                continue;
            }
            Code::Load(_) | Code::Number(_) => 0,
            Code::Negate => 1,
            Code::Call(_, count) => *count,
            Code::Binary(_) => 2,
            Code::Select => 3,
        };
        let code = match code {
            Code::Load(at) => loads.get(*at)?,
            other => other,
        };
        let of: SmallVec<[usize; 3]> = stack.drain(stack.len().checked_sub(count)?..).collect();
        let known = parts.iter().position(|part| part.of == of && part.code.is_same(code));
        stack.push(known.unwrap_or_else(|| {
            of.iter().for_each(|part| parts[*part].readers += 1);
            parts.push(Part { code, of, readers: 0, slot: None });
            parts.len() - 1
        }));
    }
    let worth = |part: &Part<'_>| {
        part.readers > 1
            && match part.code {
                Code::Number(_) => false,
                // What stands there as it is read costs nothing.
                Code::Load(at) => !inputs[*at].is_even(),
                _ => true,
            }
    };
    let again: Vec<bool> = parts.iter().map(worth).collect();
    let [root] = stack.as_slice() else { return None };
    if !again.iter().any(|again| *again) {
        return None;
    }
    let (mut result, mut slots) = (Vec::with_capacity(code.len()), 0);
    write(&mut parts, &again, *root, &mut slots, &mut result);
    Some(result)
}

/// Writes a part behind the parts that it is done to.
fn write(parts: &mut [Part<'_>], again: &[bool], at: usize, slots: &mut usize, to: &mut Vec<Code>) {
    if let Some(slot) = parts[at].slot {
        return to.push(Code::Kept(slot));
    }
    for of in parts[at].of.clone() {
        write(parts, again, of, slots, to);
    }
    to.push(parts[at].code.clone());
    if again[at] {
        parts[at].slot = Some(*slots);
        to.push(Code::Keep(*slots));
        *slots += 1;
    }
}

/// The first input that reads the same entries.
fn first_same(inputs: &[View], at: usize) -> usize {
    inputs[..at].iter().position(|view| view.is_same(&inputs[at])).unwrap_or(at)
}

impl View {
    /// Whether it reads the same entries.
    pub(super) fn is_same(&self, other: &View) -> bool {
        let steps = |(a, b): (&Step, &Step)| match (a, b) {
            (Step::By(a), Step::By(b)) => a == b,
            (Step::Map(a, by), Step::Map(b, other)) => by == other && (Arc::ptr_eq(a, b) || a == b),
            _ => false,
        };
        let lies = (self.offset, self.steps.len()) == (other.offset, other.steps.len());
        lies && self.array.same(&other.array) && self.steps.iter().zip(&other.steps).all(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Binary;
    use tensor_logic_core::function::Function;

    #[test]
    fn each_part_is_done_once() {
        let (numbers, map) = (Array::doubles(vec![0.5, -1.0, 2.0]), Arc::new(vec![2, 0, 1, 1]));
        let read = || View { array: numbers.clone(), offset: 0, steps: vec![Step::Map(Arc::clone(&map), 1)] };
        let copy = View { steps: vec![Step::Map(Arc::new(map.to_vec()), 1)], ..read() };
        let other = View { steps: vec![Step::Map(Arc::new(vec![0, 1, 2, 1]), 1)], ..read() };
        let tanh =
            |at| [Code::Load(at), Code::Load(3), Code::Binary(Binary::Add), Code::Call(Function::Tanh, 1)];
        let times = Code::Binary(Binary::Multiply);
        // tanh(x + y) tanh(x + y) y sig(x)
        let code = [&tanh(0)[..], &tanh(1), &[times.clone(), Code::Load(2), times.clone(), Code::Load(0)]];
        let mut code = code.concat();
        code.extend([Code::Call(Function::Sig, 1), times]);
        let point =
            Point { shape: vec![4], inputs: vec![read(), copy, other.clone(), other], code, truth: false };
        let lean = point.clone().lean();
        let shown = "[Load(0), Keep(0), Load(1), Keep(1), Binary(Add), Call(Tanh, 1), Keep(2), Kept(2), Binary(Multiply), \
                     Kept(1), Binary(Multiply), Kept(0), Call(Sig, 1), Binary(Multiply)]";
        assert_eq!((lean.inputs.len(), format!("{:?}", lean.code).as_str()), (2, shown));
        // It is lean already, also as a part of another.
        assert_eq!(format!("{:?}", lean.clone().lean()), format!("{lean:?}"));
        let bits = |point: &Point| {
            let mut result = [0.0; 4];
            point.evaluate::<f64>(&mut result, false, &crate::Pool::default());
            result.map(f64::to_bits)
        };
        assert_eq!(bits(&lean), bits(&point));
        let square = |point: &Point| {
            let array = Array::of(4, point.clone());
            let inputs = vec![View::whole(array, &[4])];
            let code = vec![Code::Load(0), Code::Load(0), Code::Binary(Binary::Multiply)];
            Point { shape: vec![4], inputs, code, truth: false }.taken_in(false)
        };
        assert_eq!(bits(&square(&lean)), bits(&square(&point)));
        assert_eq!(bits(&square(&lean).lean()), bits(&square(&point)));
    }

    #[test]
    fn what_another_one_makes_is_read_from_there() {
        let (x, y) = (Array::doubles(vec![0.5, -1.0, 2.0]), Array::doubles(vec![1.0, 0.25, -3.0]));
        let map = Arc::new(vec![2, 0, 1, 1]);
        let read = |array: &Array, by: usize| View {
            array: array.clone(),
            offset: 0,
            steps: vec![Step::Map(Arc::clone(&map), by)],
        };
        let of = |inputs: Vec<View>, code: Vec<Code>| Point { shape: vec![4], inputs, code, truth: false };
        let sum = |a, b| {
            vec![Code::Load(a), Code::Load(b), Code::Binary(Binary::Add), Code::Call(Function::Tanh, 1)]
        };
        let tanh = of(vec![read(&x, 1), read(&y, 1)], sum(0, 1));
        let made = [(Array::of(4, tanh.clone()), tanh.clone())];
        assert!(tanh.is_worth_sharing() && tanh.sharing(&made).is_none());
        // y tanh(x + y) tanh(x + y), where y is read from the same places.
        let twice =
            [vec![Code::Load(0)], sum(1, 0), sum(1, 2), vec![Code::Binary(Binary::Multiply); 2]].concat();
        let whole = of(vec![read(&y, 1), read(&x, 1), read(&y, 1)], twice.clone());
        let shared = whole.sharing(&made).unwrap();
        assert_eq!((shared.inputs.len(), shared.code.len()), (2, 5), "{shared:?}");
        let pool = Arc::new(crate::Pool::default());
        let numbers = |point: &Point| {
            Array::of(4, point.clone()).force(crate::Precision::Double, &pool).numbers::<f64>()
        };
        assert_eq!(numbers(&shared), numbers(&whole));
        // The sum the other way round, or of other places, is another one.
        let other = of(vec![read(&y, 0), read(&x, 1), read(&y, 0)], twice);
        assert!(other.sharing(&made).is_none());
        let turned = of(vec![read(&x, 1), read(&y, 1)], [sum(1, 0), vec![Code::Negate]].concat());
        assert!(turned.sharing(&made).is_none());
    }
}
