//! Programs of elementwise work in postfix order, and how they run on a tile of entries at a time.
//!
//! Enter at [`Evaluator::evaluate`].

use std::mem::discriminant;

use smallvec::SmallVec;
use training::kernels::{Kernel, vectorised};

use super::functions::Map;
use super::number::{Number, larger, smaller};
use super::space::{Run, Scratch, Source, Space, Tile};
use tensor_logic_core::ast::Comparison;
use tensor_logic_core::function::{Function, power};

/// One step of a program on a stack.
#[derive(Debug, Clone)]
pub enum Code {
    /// Pushes the entry of an input.
    Load(usize),
    /// Pushes a number.
    Number(f64),
    /// The negative of the topmost.
    Negate,
    /// A function of as many of the topmost as it is given.
    Call(Function, usize),
    /// Two become one.
    Binary(Binary),
    /// Of (condition, a, b): a where the condition is not 0, else b.
    Select,
    /// Keeps the topmost under this number.
    Keep(usize),
    /// Pushes what is kept under this number.
    Kept(usize),
}

impl Code {
    /// Whether two steps of programs do the same to the same.
    pub(super) fn is_same(&self, other: &Code) -> bool {
        match (self, other) {
            (Code::Load(a), Code::Load(b)) => a == b,
            (Code::Number(a), Code::Number(b)) => a.to_bits() == b.to_bits(),
            (Code::Negate, Code::Negate) | (Code::Select, Code::Select) => true,
            // What a user's function gives is not known to be the same again.
            (Code::Call(Function::User(_), _), _) => false,
            (Code::Call(a, _), Code::Call(b, _)) => discriminant(a) == discriminant(b),
            (Code::Binary(a), Code::Binary(b)) => a == b,
            (Code::Keep(a), Code::Keep(b)) | (Code::Kept(a), Code::Kept(b)) => a == b,
            _ => false,
        }
    }

    /// Whether it takes many times as long as a sum.
    pub(super) fn is_dear(&self) -> bool {
        match self {
            Code::Call(function, _) => !matches!(
                function,
                Function::Relu
                    | Function::Step
                    | Function::Sign
                    | Function::Abs
                    | Function::Floor
                    | Function::Leaky
                    | Function::Max
                    | Function::Min
            ),
            Code::Binary(Binary::Power) => true,
            _ => false,
        }
    }
}

/// What is made of two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Binary {
    /// Their sum.
    Add,
    /// Their product.
    Multiply,
    /// The first by the second.
    Divide,
    /// The first to the second.
    Power,
    /// 1 or 0.
    Compare(Comparison),
}

/// Runs a program on tiles of a space.
pub(super) struct Evaluator<'a, T: Number> {
    code: &'a [Code],
    sizes: &'a [usize],
    sources: &'a [Source<'a, T>],
    stack: SmallVec<[Run<'a, T>; 6]>,
    kept: SmallVec<[Option<Run<'a, T>>; 2]>,
    scratch: Scratch<T>,
}

impl<'a, T: Number> Evaluator<'a, T> {
    pub(super) fn over(code: &'a [Code], space: &'a Space, sources: &'a [Source<'a, T>]) -> Evaluator<'a, T> {
        let sizes = &space.sizes;
        let (stack, kept) = (SmallVec::new(), SmallVec::new());
        Evaluator { code, sizes, sources, stack, kept, scratch: Scratch::new() }
    }

    /// The entries from a position on, at most a tile; `bases` moves each input.
    pub(super) fn evaluate(&mut self, position: usize, bases: &[usize], to: &mut [T]) {
        if let [code @ .., Code::Number(zero), Code::Binary(Binary::Add)] = self.code
            && zero.to_bits() == 0
            && !code.is_empty()
        {
            // In place: no tile for what only loses its sign.
            self.run(code, position, bases, to);
            return vectorised(Unsigned(to));
        }
        self.run(self.code, position, bases, to);
    }

    /// The same of a part of the program that leaves one number.
    fn run(&mut self, code: &'a [Code], position: usize, bases: &[usize], to: &mut [T]) {
        let len = to.len();
        if let [Code::Load(at)] = code {
            let base = bases.get(*at).copied().unwrap_or(0);
            return self.sources[*at].load_into(self.sizes, position, base, to);
        }
        let (last, mut others) = match code {
            [others @ .., Code::Negate, Code::Binary(Binary::Add)] => (Some(Join::Subtract), others),
            [others @ .., Code::Binary(binary)] => (Some(Join::Binary(*binary)), others),
            _ => (None, code),
        };
        while let Some((code, rest)) = others.split_first() {
            others = match (code, rest) {
                (Code::Negate, [Code::Binary(Binary::Add), rest @ ..]) => {
                    self.join(Join::Subtract, len);
                    rest
                }
                _ => {
                    self.step(code, position, bases, len);
                    rest
                }
            };
        }
        match last {
            Some(join) => {
                let (Some(b), Some(a)) = (self.stack.pop(), self.stack.pop()) else { return };
                join.both(operand(&a, len), operand(&b, len), to);
                self.scratch.give(a);
                self.scratch.give(b);
            }
            None => {
                let Some(run) = self.stack.pop() else { return };
                match operand(&run, len) {
                    Operand::One(value) => to.fill(value),
                    Operand::Many(values) => to.copy_from_slice(values),
                }
                self.scratch.give(run);
            }
        }
        self.kept.drain(..).flatten().for_each(|run| self.scratch.give(run));
    }

    fn step(&mut self, code: &Code, position: usize, bases: &[usize], len: usize) {
        match code {
            Code::Load(at) => {
                let base = bases.get(*at).copied().unwrap_or(0);
                let run = self.sources[*at].load(self.sizes, position, len, base, &mut self.scratch);
                self.stack.push(run);
            }
            Code::Number(value) => self.stack.push(Run::One(T::of(*value))),
            Code::Negate => self.unary(len, |x| -x),
            Code::Call(function, 1) => self.call(function, len),
            Code::Call(function, 2) => self.call_of_two(function, len),
            Code::Call(function, count) => self.general(function, *count, len),
            Code::Binary(binary) => self.join(Join::Binary(*binary), len),
            Code::Select => {
                let (Some(b), Some(a)) = (self.stack.pop(), self.stack.pop()) else { return };
                let Some(condition) = self.stack.pop() else { return };
                let mut tile = self.scratch.tile();
                let [x, a_run, b_run] = [operand(&condition, len), operand(&a, len), operand(&b, len)];
                select(x, a_run, b_run, &mut tile[..len]);
                [condition, a, b].into_iter().for_each(|run| self.scratch.give(run));
                self.stack.push(Run::Tile(tile));
            }
            Code::Keep(slot) => {
                let Some(run) = self.stack.pop() else { return };
                let (own, kept) = run.twice();
                self.stack.push(own);
                if *slot >= self.kept.len() {
                    self.kept.resize_with(slot + 1, || None);
                }
                if let Some(before) = self.kept[*slot].replace(kept) {
                    self.scratch.give(before);
                }
            }
            Code::Kept(slot) => {
                let Some(run) = self.kept.get_mut(*slot).and_then(Option::take) else { return };
                let (own, kept) = run.twice();
                self.stack.push(own);
                self.kept[*slot] = Some(kept);
            }
        }
    }

    /// Two become one.
    fn join(&mut self, join: Join, len: usize) {
        let (Some(b), Some(a)) = (self.stack.pop(), self.stack.pop()) else { return };
        let mut tile = self.scratch.tile();
        join.both(operand(&a, len), operand(&b, len), &mut tile[..len]);
        self.scratch.give(a);
        self.scratch.give(b);
        self.stack.push(Run::Tile(tile));
    }

    fn unary(&mut self, len: usize, f: impl Fn(T) -> T + Copy) {
        let Some(run) = self.stack.pop() else { return };
        if let Run::One(value) = run {
            return self.stack.push(Run::One(f(value)));
        }
        let mut tile = self.scratch.tile();
        if let Operand::Many(values) = operand(&run, len) {
            vectorised(Map { values, to: &mut tile[..len], f });
        }
        self.scratch.give(run);
        self.stack.push(Run::Tile(tile));
    }

    fn call(&mut self, function: &Function, len: usize) {
        match function {
            Function::Relu => self.unary(len, |x| if x <= T::ZERO { T::ZERO } else { x }),
            Function::Step => self.unary(len, |x| {
                if x > T::ZERO {
                    T::ONE
                } else if x <= T::ZERO {
                    T::ZERO
                } else {
                    x
                }
            }),
            Function::Sign => self.unary(len, |x| {
                if x > T::ZERO {
                    T::ONE
                } else if x < T::ZERO {
                    -T::ONE
                } else {
                    x * T::ZERO
                }
            }),
            Function::Abs => self.unary(len, |x| if x < T::ZERO { -x } else { x + T::ZERO }),
            _ => self.elementwise(function, len),
        }
    }

    fn call_of_two(&mut self, function: &Function, len: usize) {
        match function {
            Function::Leaky => self.join(Join::Leaky, len),
            Function::Max => self.join(Join::Larger, len),
            Function::Min => self.join(Join::Smaller, len),
            Function::Sig => match self.stack.last() {
                // It is that of the quotient, by 0 a step.
                Some(Run::One(by)) if *by == T::ZERO => {
                    self.stack.pop();
                    self.call(&Function::Step, len);
                }
                Some(Run::One(_)) => {
                    self.join(Join::Binary(Binary::Divide), len);
                    self.elementwise(function, len);
                }
                _ => self.general(function, 2, len),
            },
            _ => self.general(function, 2, len),
        }
    }

    fn elementwise(&mut self, function: &Function, len: usize) {
        let general = |x: T| T::of(function.value(&[x.double()]));
        let Some(run) = self.stack.pop() else { return };
        if let Run::One(value) = run {
            // One number has the bits that a tile of it would have.
            let mut own = [T::ZERO];
            let found = T::elementwise(function, &[value], &mut own);
            return self.stack.push(Run::One(if found { own[0] } else { general(value) }));
        }
        let mut tile = self.scratch.tile();
        if let Operand::Many(values) = operand(&run, len)
            && !T::elementwise(function, values, &mut tile[..len])
        {
            tile[..len].iter_mut().zip(values).for_each(|(slot, value)| *slot = general(*value));
        }
        self.scratch.give(run);
        self.stack.push(Run::Tile(tile));
    }

    fn general(&mut self, function: &Function, count: usize, len: usize) {
        let first = self.stack.len().saturating_sub(count);
        let runs: Vec<Run<'a, T>> = self.stack.drain(first..).collect();
        let mut tile: Tile<T> = self.scratch.tile();
        let mut arguments = vec![0.0; count];
        {
            let operands: Vec<Operand<'_, T>> = runs.iter().map(|run| operand(run, len)).collect();
            for (at, slot) in tile[..len].iter_mut().enumerate() {
                arguments.iter_mut().zip(&operands).for_each(|(to, from)| *to = from.at(at).double());
                *slot = T::of(function.value(&arguments));
            }
        }
        runs.into_iter().for_each(|run| self.scratch.give(run));
        self.stack.push(Run::Tile(tile));
    }
}

/// One number for all entries, or one for each.
#[derive(Clone, Copy)]
enum Operand<'a, T> {
    One(T),
    Many(&'a [T]),
}

impl<T: Copy> Operand<'_, T> {
    #[inline(always)]
    fn at(self, at: usize) -> T {
        match self {
            Operand::One(value) => value,
            Operand::Many(values) => values[at],
        }
    }
}

fn operand<'r, T: Copy>(run: &'r Run<'_, T>, len: usize) -> Operand<'r, T> {
    match run {
        Run::One(value) => Operand::One(*value),
        Run::Slice(values) => Operand::Many(&values[..len]),
        Run::Tile(tile) => Operand::Many(&tile[..len]),
        Run::Shared(tile) => Operand::Many(&tile[..len]),
    }
}

/// What is done to two.
#[derive(Clone, Copy)]
enum Join {
    Binary(Binary),
    /// The sum of the first and the negative of the second, which are two steps of a program.
    Subtract,
    /// The first where it is above 0, else the second times it.
    Leaky,
    Larger,
    Smaller,
}

impl Join {
    fn both<T: Number>(self, a: Operand<'_, T>, b: Operand<'_, T>, to: &mut [T]) {
        match self {
            Join::Binary(binary) => combine(binary, a, b, to),
            Join::Subtract => both(a, b, to, |x, y| x - y),
            Join::Leaky => both(a, b, to, |x, y| if x > T::ZERO { x } else { y * x }),
            Join::Larger => both(a, b, to, larger),
            Join::Smaller => both(a, b, to, smaller),
        }
    }
}

fn combine<T: Number>(binary: Binary, a: Operand<'_, T>, b: Operand<'_, T>, to: &mut [T]) {
    let truth = |holds: bool| if holds { T::ONE } else { T::ZERO };
    match binary {
        Binary::Add => both(a, b, to, |x, y| x + y),
        Binary::Multiply => both(a, b, to, |x, y| x * y),
        // A 0 has no sign: -0 + 0 is 0.
        Binary::Divide => both(a, b, to, |x, y| x / (y + T::ZERO)),
        Binary::Power if matches!(b, Operand::One(b) if b == T::ONE + T::ONE) => both(a, a, to, |x, y| x * y),
        // Whatever the base.
        Binary::Power if matches!(b, Operand::One(b) if b == T::ZERO) => to.fill(T::ONE),
        Binary::Power => both(a, b, to, |x, y| T::of(power(x.double(), y.double()))),
        Binary::Compare(Comparison::Less) => both(a, b, to, |x, y| truth(x < y)),
        Binary::Compare(Comparison::LessEqual) => both(a, b, to, |x, y| truth(x <= y)),
        Binary::Compare(Comparison::Greater) => both(a, b, to, |x, y| truth(x > y)),
        Binary::Compare(Comparison::GreaterEqual) => both(a, b, to, |x, y| truth(x >= y)),
        Binary::Compare(Comparison::Equal) => both(a, b, to, |x, y| truth(x == y)),
        Binary::Compare(Comparison::NotEqual) => both(a, b, to, |x, y| truth(x != y)),
    }
}

fn both<T: Number>(a: Operand<'_, T>, b: Operand<'_, T>, to: &mut [T], f: impl Fn(T, T) -> T + Copy) {
    match (a, b) {
        (Operand::Many(a), Operand::Many(b)) => vectorised(Zip { a, b, to, f }),
        (Operand::Many(values), Operand::One(b)) => vectorised(Map { values, to, f: |a| f(a, b) }),
        (Operand::One(a), Operand::Many(values)) => vectorised(Map { values, to, f: |b| f(a, b) }),
        (Operand::One(a), Operand::One(b)) => to.fill(f(a, b)),
    }
}

/// Of two what a condition says, which is not 0 for the first.
fn select<T: Number>(x: Operand<'_, T>, a: Operand<'_, T>, b: Operand<'_, T>, to: &mut [T]) {
    let pick = |x: T, a: T, b: T| if x != T::ZERO { a } else { b };
    match (x, a, b) {
        (Operand::One(x), a, b) => match if x != T::ZERO { a } else { b } {
            Operand::One(value) => to.fill(value),
            Operand::Many(values) => to.copy_from_slice(values),
        },
        (Operand::Many(x), Operand::Many(a), Operand::One(b)) => {
            vectorised(Zip { a: x, b: a, to, f: |x, a| pick(x, a, b) });
        }
        (Operand::Many(x), Operand::One(a), Operand::Many(b)) => {
            vectorised(Zip { a: x, b, to, f: |x, b| pick(x, a, b) });
        }
        (Operand::Many(values), Operand::One(a), Operand::One(b)) => {
            vectorised(Map { values, to, f: |x| pick(x, a, b) });
        }
        (Operand::Many(x), Operand::Many(a), Operand::Many(b)) => {
            to.copy_from_slice(b);
            let pairs = to.iter_mut().zip(x).zip(a);
            pairs.for_each(|((slot, x), a)| *slot = pick(*x, *a, *slot));
        }
    }
}

/// -0 becomes 0.
pub(super) struct Unsigned<'a, T>(pub(super) &'a mut [T]);

impl<T: Number> Kernel for Unsigned<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().for_each(|value| *value += T::ZERO);
    }
}

struct Zip<'a, T, F> {
    a: &'a [T],
    b: &'a [T],
    to: &'a mut [T],
    f: F,
}

impl<T: Copy, F: Fn(T, T) -> T> Kernel for Zip<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.iter_mut().zip(self.a).zip(self.b).for_each(|((slot, a), b)| *slot = (self.f)(*a, *b));
    }
}
