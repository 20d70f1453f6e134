//! How much of a model 64 bits may lose: bounds on its numbers, and on what its products drop below the range.
//!
//! Enter at [`Lost::of`]. A product that leaves the range of 64 bits is rounded to 0, or to fewer digits, and a factor behind
//! it may make that matter again. The bounds follow the equations, each tensor having one size for all of its elements: the
//! least and the most that one may be, and how far it may be off by what was dropped. No element is looked at twice, so that
//! this takes a part of what the evaluation takes.

use std::collections::{BTreeMap, HashMap};
use std::f64::consts::LOG2_E;

use crate::engine::Request;
use crate::program::{
    Argument, Class, Combine, Component, Equation, Expr, Given, IndexFn, IndexId, Operation, Program, Range,
    Role, Style, TensorId, Term,
};
use crate::value::Const;
use tensor_logic_core::start::start_values;

/// The logarithm of the smallest number with all digits, with some room.
const SMALLEST: f64 = -1020.0;
/// The logarithm of the largest number, with room for sums of which nobody knows the order.
const LARGEST: f64 = 1000.0;
/// A product below the smallest number is off by less than this, as a logarithm.
const DROPPED: f64 = -1022.0;
/// What was dropped may be so much of a number, as a logarithm: less than its last digit.
const NOTHING: f64 = -60.0;
/// Bounds further out say no more than that the numbers are outside.
const FAR: f64 = 4.0 * LARGEST;

/// After so many steps of a recursion it is looked at how the bounds change, and after so many they are taken to go on so.
const BEGUN: usize = 128;
const SETTLED: usize = 192;

/// Bounds on the elements of a tensor that are not 0, as logarithms to base 2 of their sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Size {
    least: f64,
    most: f64,
    /// How far an element is off, if every product that it is made of was dropped; infinity where nobody knows.
    off: f64,
    /// Whether some product may have been dropped.
    dropped: bool,
    /// Whether some may be below 0.
    signed: bool,
}

/// No element but 0.
const NONE: Size = Size {
    least: f64::INFINITY,
    most: f64::NEG_INFINITY,
    off: f64::NEG_INFINITY,
    dropped: false,
    signed: false,
};

impl Size {
    fn of_numbers(values: impl Iterator<Item = f64>) -> Size {
        let (mut least, mut most, mut signed, mut finite) = (f64::INFINITY, 0.0_f64, false, true);
        for value in values {
            let size = value.abs();
            finite &= value.is_finite();
            signed |= value < 0.0;
            most = most.max(size);
            if size != 0.0 {
                least = least.min(size);
            }
        }
        let off = if finite { f64::NEG_INFINITY } else { f64::INFINITY };
        Size { least: least.log2(), most: most.log2(), off, dropped: !finite, signed }
    }

    fn is_zero(&self) -> bool {
        self.most == f64::NEG_INFINITY && !self.dropped
    }

    /// Either of two.
    fn or(self, other: Size) -> Size {
        Size {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            off: self.off.max(other.off),
            dropped: self.dropped || other.dropped,
            signed: self.signed || other.signed,
        }
    }

    /// A sum of so many (as a logarithm) of such numbers.
    fn summed(mut self, count: f64) -> Size {
        // What cancels leaves a last digit at least.
        if self.signed {
            self.least -= 53.0;
        }
        self.most += count;
        self.off += count;
        self.outside()
    }

    /// Says that nobody knows anything where sums and products of such numbers may be beyond the range.
    fn outside(mut self) -> Size {
        if self.most > LARGEST {
            (self.off, self.dropped) = (f64::INFINITY, true);
        }
        (self.least, self.most) = (self.least.max(-FAR), self.most.min(FAR));
        self
    }

    /// A product, in whatever order its factors are multiplied.
    fn product(parts: &[Size]) -> Size {
        let factors: Vec<Factor> = parts.iter().map(|part| Factor { size: *part, summed: None }).collect();
        Size::sum_of_products(&factors, 0.0)
    }

    /// A sum of products, in whatever order factors are multiplied and indices are summed: those that no factor accounts for
    /// have so many bindings (as a logarithm).
    fn sum_of_products(factors: &[Factor], count: f64) -> Size {
        if factors.iter().any(|factor| factor.size.is_zero()) {
            return NONE;
        }
        // The most that a factor may be before and behind its sum, or that leaving it out is.
        let above = |factor: &Factor| factor.most().max(factor.size.most).max(0.0);
        let all: f64 = factors.iter().map(above).sum();
        let below: f64 = factors.iter().map(|factor| factor.size.least.min(0.0)).sum();
        let signed = factors.iter().any(|factor| factor.size.signed);
        let mut dropped = below < SMALLEST || factors.iter().any(|factor| factor.size.dropped);
        // Each multiplication may drop something; what a factor is off by stays in one product.
        let mut off = DROPPED + all + (factors.len() as f64).log2();
        for factor in factors {
            off = either(off, factor.size.off + all - above(factor));
        }
        off += count;
        if all + count > LARGEST {
            (off, dropped) = (f64::INFINITY, true);
        }
        let least: f64 = factors.iter().map(|factor| factor.size.least).sum();
        let summed = count > 0.0 || factors.iter().any(|factor| factor.summed.is_some());
        // What cancels leaves a last digit at least.
        let least = if signed && summed { least - 53.0 } else { least };
        let most = factors.iter().map(Factor::most).sum::<f64>() + count;
        Size { least, most, off, dropped, signed }.outside()
    }

    /// A sum of two.
    fn plus(self, other: Size) -> Size {
        if self.is_zero() || other.is_zero() {
            return self.or(other);
        }
        let signed = self.signed || other.signed;
        let least = self.least.min(other.least);
        Size {
            least: if signed { least - 53.0 } else { least },
            most: either(self.most, other.most),
            off: either(self.off, other.off),
            dropped: self.dropped || other.dropped,
            signed,
        }
        .outside()
    }
}

/// The logarithm of the sum of two numbers.
fn either(a: f64, b: f64) -> f64 {
    let (less, more) = if a < b { (a, b) } else { (b, a) };
    if less == f64::NEG_INFINITY || more == f64::INFINITY {
        more
    } else {
        more + (less - more).exp2().ln_1p() * LOG2_E
    }
}

/// A factor of a product that is summed.
struct Factor {
    size: Size,
    /// The most that it is when it is summed over the indices that it accounts for.
    summed: Option<f64>,
}

impl Factor {
    fn most(&self) -> f64 {
        self.summed.unwrap_or(self.size.most)
    }
}

/// Bounds on the tensors that a model needs.
pub(super) struct Lost {
    sizes: BTreeMap<TensorId, Size>,
    /// The most that sums of what is given are, by tensor and the places that are summed.
    sums: HashMap<(TensorId, u64), Option<f64>>,
}

impl Lost {
    /// Those of a goal; `None` where some equation is no sum of products, and nothing is known.
    pub(super) fn of(request: &Request<'_>, goal: TensorId) -> Option<Lost> {
        let program = request.program;
        let needed = program.needs(&[goal]);
        let mut sizes = Lost { sizes: BTreeMap::new(), sums: HashMap::new() };
        for tensor in &needed {
            sizes.sizes.insert(*tensor, given(request, *tensor));
        }
        for component in &program.components {
            if component.tensors.iter().any(|tensor| needed.contains(tensor)) {
                sizes.component(program, component)?;
            }
        }
        Some(sizes)
    }

    /// Whether an element of a tensor with this value has all its digits.
    pub(super) fn keeps(&self, tensor: TensorId, value: f64) -> bool {
        let size = self.size(tensor);
        value.is_finite() && (!size.dropped || size.off - value.abs().log2() <= NOTHING)
    }

    fn component(&mut self, program: &Program, component: &Component) -> Option<()> {
        let equations = || component.equations.iter().map(|equation| program.equation(*equation));
        let base: Vec<Size> = component.tensors.iter().map(|id| self.size(*id)).collect();
        let rounds = match &component.class {
            Class::Plain => 1,
            // Each step reads the steps before it.
            Class::Stepped(steps) => {
                let long = steps.places.iter().flat_map(|(id, places)| {
                    places.iter().map(|moving| program.tensor(*id).all_sizes().nth(moving.place).unwrap_or(0))
                });
                long.fold(1usize, |product, size| product.saturating_mul(size.max(1)))
            }
            Class::Closure | Class::Numeric => return None,
        };
        let mut watched: Vec<Size> = Vec::new();
        for round in 0..rounds {
            let mut states = Vec::with_capacity(base.len());
            for (id, base) in component.tensors.iter().zip(&base) {
                let tensor = program.tensor(*id);
                let mut found: Vec<Size> = Vec::new();
                for equation in equations().filter(|equation| equation.tensor == *id) {
                    for term in &equation.terms {
                        // Where a comparison is decided by what was dropped, nothing is known.
                        let mut dropped = false;
                        term.when.visit_reads(&mut |read, _| {
                            dropped |= self.size(read.tensor).dropped;
                        });
                        if dropped {
                            return None;
                        }
                        found.push(self.summed(program, &term.body, &hidden(equation, term))?);
                    }
                }
                let any = found.iter().fold(*base, |size, other| size.or(*other));
                states.push(match tensor.combine {
                    _ if found.is_empty() => *base,
                    Combine::Sum => found.into_iter().fold(*base, Size::plus),
                    Combine::Max | Combine::Min if tensor.style == Style::Round => any,
                    // A tuple is there or not.
                    Combine::Or | Combine::Exists if !any.dropped => Size::of_numbers(std::iter::once(1.0)),
                    _ => return None,
                });
            }
            let mut still = true;
            for (id, state) in component.tensors.iter().zip(states) {
                let before = self.size(*id);
                let state = if rounds > 1 { state.or(before) } else { state };
                still &= state == before;
                self.sizes.insert(*id, state);
            }
            if still {
                break;
            }
            // By then the bounds go on as they went: what is left of the way is taken at once. A few rounds behind it tell what
            // products of such numbers drop.
            match round {
                BEGUN => watched = component.tensors.iter().map(|id| self.size(*id)).collect(),
                SETTLED => self.go_on(component, &watched, rounds),
                _ if round > SETTLED + 2 * component.tensors.len() => break,
                _ => {}
            }
        }
        Some(())
    }

    /// Takes all that is left of so many steps at once.
    fn go_on(&mut self, component: &Component, before: &[Size], rounds: usize) {
        let left = 1.0 + ((rounds - SETTLED) as f64 / (SETTLED - BEGUN) as f64).ceil();
        // What every step adds alike grows with the number of steps.
        let more = 1.0 + (rounds as f64 / SETTLED as f64).log2();
        let slow = (SETTLED as f64 / BEGUN as f64).log2();
        let far = |from: f64, to: f64| match to - from {
            _ if from == to => to,
            change if (0.0..=slow).contains(&change) => to + more.min(change * left),
            change => to + change * left,
        };
        for (id, before) in component.tensors.iter().zip(before) {
            let size = self.size(*id);
            let (most, off) = (far(before.most, size.most), far(before.off, size.off));
            let size = Size { least: far(before.least, size.least), most, off, ..size };
            self.sizes.insert(*id, size.outside());
        }
    }

    fn size(&self, tensor: TensorId) -> Size {
        self.sizes.get(&tensor).copied().unwrap_or(NONE)
    }

    /// The sum of an expression over these indices. An index is accounted for by what is given and stands at it, if that
    /// says more than the number of its values: a distribution adds up to 1, however many values it has.
    fn summed(&mut self, program: &Program, body: &Expr, over: &[IndexId]) -> Option<Size> {
        let mut parts = Vec::new();
        flatten(body, &mut parts);
        let mut factors = Vec::with_capacity(parts.len());
        for part in &parts {
            factors.push(Factor { size: self.expr(program, part)?, summed: None });
        }
        let mut open: Vec<IndexId> = over.to_vec();
        for (part, factor) in parts.iter().zip(&mut factors) {
            let Expr::Read(read) = part else { continue };
            let at = |argument: &Argument| argument.function().and_then(IndexFn::alone);
            let own: Vec<Option<IndexId>> = read.arguments.iter().map(at).collect();
            let mine = |index: &IndexId| own.iter().filter(|own| **own == Some(*index)).count() == 1;
            let taken: Vec<IndexId> = open.iter().copied().filter(mine).collect();
            if taken.is_empty() || own.len() > 64 {
                continue;
            }
            let mask = (0..).zip(&own).filter(|(_, own)| own.is_some_and(|own| taken.contains(&own)));
            let mask = mask.fold(0u64, |mask, (place, _)| mask | 1 << place);
            let known = self.sums.entry((read.tensor, mask));
            if let Some(sum) = *known.or_insert_with(|| largest_sum(program, read.tensor, mask))
                && sum < factor.size.most + bindings(program, &taken)
            {
                factor.summed = Some(sum);
                open.retain(|index| !taken.contains(index));
            }
        }
        Some(Size::sum_of_products(&factors, bindings(program, &open)))
    }

    fn all(&mut self, program: &Program, parts: &[Expr]) -> Option<Vec<Size>> {
        parts.iter().map(|part| self.expr(program, part)).collect()
    }

    fn expr(&mut self, program: &Program, expr: &Expr) -> Option<Size> {
        Some(match expr {
            Expr::Number(value) => Size::of_numbers(std::iter::once(*value)),
            Expr::Index(_) => {
                Size { least: 0.0, most: 63.0, off: f64::NEG_INFINITY, dropped: false, signed: true }
            }
            Expr::Read(read) => self.size(read.tensor),
            Expr::Missing(read) => {
                let known = !self.size(read.tensor).dropped;
                known.then(|| Size::of_numbers(std::iter::once(1.0)))?
            }
            Expr::Product(parts) => Size::product(&self.all(program, parts)?),
            Expr::Quotient(above, below) => {
                let (above, below) = (self.expr(program, above)?, self.expr(program, below)?);
                // Of what a recursion divides by itself the bounds know nothing.
                if below.is_zero() || below.off != f64::NEG_INFINITY {
                    return None;
                }
                let inverse = Size { least: -below.most, most: -below.least, ..below };
                Size::product(&[above, inverse])
            }
            Expr::Negate(part) => Size { signed: true, ..self.expr(program, part)? },
            Expr::Power(base, exponent) => match &**exponent {
                Expr::Number(n) if n.fract() == 0.0 && (1.0..=64.0).contains(n) => {
                    Size::product(&vec![self.expr(program, base)?; *n as usize])
                }
                _ => return None,
            },
            Expr::Terms(parts) | Expr::Plus(parts) => {
                self.all(program, parts)?.into_iter().fold(NONE, Size::plus)
            }
            Expr::Reduce(reduce) => {
                let mut dropped = false;
                reduce.when.visit_reads(&mut |read, _| {
                    dropped |= self.size(read.tensor).dropped;
                });
                match reduce.operation {
                    Operation::Sum if !dropped => self.summed(program, &reduce.body, &reduce.over)?,
                    _ => return None,
                }
            }
            Expr::Call(_) | Expr::Axis(_) => return None,
        })
    }
}

/// The size of what is given of a tensor, or of a parameter.
fn given(request: &Request<'_>, id: TensorId) -> Size {
    let tensor = request.program.tensor(id);
    let mut size = NONE;
    if tensor.role == Role::Parameter {
        let started = || start_values(request.program, id);
        let values = request.parameters.get(&id).map_or_else(started, std::sync::Arc::clone);
        size = Size::of_numbers(values.iter().copied());
    }
    for given in &tensor.given {
        let own = match given {
            Given::Array { values, .. } => Size::of_numbers(values.iter().copied()),
            _ if given.numbers().is_empty() => Size::of_numbers(std::iter::once(1.0)),
            _ => Size::of_numbers(given.numbers().iter().copied()),
        };
        size = size.or(own);
    }
    // A tuple is there or not, whatever number it is given.
    if matches!(tensor.combine, Combine::Exists | Combine::Or) && !tensor.given.is_empty() {
        return Size::of_numbers(std::iter::once(1.0));
    }
    // An element may be given several times, and then it is the sum.
    let times = most_often(&tensor.given);
    if times > 1 && tensor.combine == Combine::Sum && !size.is_zero() {
        size = size.summed((times as f64).log2());
    }
    size
}

/// How often an element is given at most.
fn most_often(given: &[Given]) -> usize {
    let of = |given: &Given| match given {
        Given::Array { .. } | Given::Columns(_) => 1,
        Given::Facts(facts) if facts.count > LISTED => facts.count,
        Given::Facts(facts) => {
            let mut times: HashMap<&[Const], usize> = HashMap::new();
            (0..facts.count).for_each(|at| *times.entry(facts.tuple(at)).or_default() += 1);
            times.into_values().max().unwrap_or(0)
        }
    };
    given.iter().map(of).sum()
}

/// How many bindings of some indices there are at most, as a logarithm.
fn bindings(program: &Program, indices: &[IndexId]) -> f64 {
    let count = |index: &IndexId| match &program.index(*index).range {
        Range::Domain(domain) => (domain.len().max(1) as f64).log2(),
        Range::Tuples => 40.0,
        Range::Computed => 0.0,
    };
    indices.iter().map(count).sum()
}

/// The indices over which the contributions of a term to one element go.
fn hidden(equation: &Equation, term: &Term) -> Vec<IndexId> {
    let alone = |index: &&IndexId| equation.head.iter().any(|place| place.alone() == Some(**index));
    let left = equation.left.iter().filter(|index| !alone(index));
    term.over.iter().chain(left).copied().collect()
}

/// The factors of a product.
fn flatten<'e>(expr: &'e Expr, into: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Product(parts) => parts.iter().for_each(|part| flatten(part, into)),
        Expr::Terms(parts) | Expr::Plus(parts) if parts.len() == 1 => flatten(&parts[0], into),
        _ => into.push(expr),
    }
}

/// Elements of relations are gone through one by one: so many at most.
const LISTED: usize = 1 << 20;

/// The logarithm of the largest sum of the sizes of what is given over some places of a tensor; `None` where more than what is
/// given makes it.
fn largest_sum(program: &Program, id: TensorId, mask: u64) -> Option<f64> {
    let tensor = program.tensor(id);
    if tensor.role != Role::Data || !matches!(tensor.combine, Combine::Sum | Combine::Exists) {
        return None;
    }
    let is_number = tensor.combine == Combine::Sum;
    let is_summed = |place: usize| mask >> place & 1 == 1;
    let most = |sums: &mut dyn Iterator<Item = f64>| sums.fold(0.0, f64::max).log2();
    if let [Given::Array { fixed, shape, values, .. }] = tensor.given.as_slice()
        && fixed.iter().all(Option::is_none)
        && is_number
    {
        // The place among the sums of an element, counted along like the digits of its own.
        let mut strides = vec![0; shape.len()];
        let mut count = 1;
        for place in (0..shape.len()).rev().filter(|place| !is_summed(*place)) {
            strides[place] = count;
            count *= shape[place];
        }
        let (mut sums, mut digits, mut at) = (vec![0.0; count], vec![0; shape.len()], 0);
        for value in values.iter() {
            sums[at] += value.abs();
            for place in (0..shape.len()).rev() {
                digits[place] += 1;
                at += strides[place];
                if digits[place] < shape[place] {
                    break;
                }
                at -= strides[place] * shape[place];
                digits[place] = 0;
            }
        }
        return Some(most(&mut sums.into_iter()));
    }
    let domains = tensor.domains();
    let count: usize = tensor.given.iter().map(elements).sum();
    if count > LISTED {
        return None;
    }
    let mut sums: HashMap<Vec<Const>, f64> = HashMap::new();
    for given in &tensor.given {
        given.each(&domains, |tuple, value| {
            let rest = tuple.iter().enumerate().filter(|(place, _)| !is_summed(*place));
            let more = if is_number { value.abs() } else { 1.0 };
            *sums.entry(rest.map(|(_, value)| *value).collect()).or_insert(0.0) += more;
        });
    }
    Some(most(&mut sums.values().copied()))
}

/// How many elements are given.
fn elements(given: &Given) -> usize {
    match given {
        Given::Array { values, .. } => values.len(),
        Given::Facts(facts) => facts.count,
        Given::Columns(columns) => columns.len,
    }
}
