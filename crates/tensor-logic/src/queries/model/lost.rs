//! How much of a model 64 bits may lose: bounds on its numbers, and on what its products drop below the range.
//!
//! Enter at [`Lost::of`]. A product that leaves the range of 64 bits is rounded to 0, or to fewer digits, and a factor behind
//! it may make that matter again. The bounds follow the equations, each tensor having one size for all of its elements: the
//! least and the most that one may be, and how far it may be off by what was dropped. No element is looked at twice, so that
//! this takes a part of what the evaluation takes.

use std::collections::BTreeMap;

use crate::engine::Request;
use crate::program::{
    Class, Combine, Component, Equation, Expr, Given, IndexFn, IndexId, Operation, Program, Range, Role,
    Style, TensorId, Term,
};
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
    /// How far an element may be off; minus infinity where nothing was dropped, infinity where nobody knows.
    off: f64,
    /// Whether some may be below 0.
    signed: bool,
}

/// No element but 0.
const NONE: Size =
    Size { least: f64::INFINITY, most: f64::NEG_INFINITY, off: f64::NEG_INFINITY, signed: false };

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
        Size { least: least.log2(), most: most.log2(), off, signed }
    }

    fn is_zero(&self) -> bool {
        self.most == f64::NEG_INFINITY && self.off == f64::NEG_INFINITY
    }

    /// Either of two.
    fn or(self, other: Size) -> Size {
        Size {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            off: self.off.max(other.off),
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
            self.off = f64::INFINITY;
        }
        (self.least, self.most) = (self.least.max(-FAR), self.most.min(FAR));
        self
    }

    /// A product, in whatever order its factors are multiplied.
    fn product(parts: &[Size]) -> Size {
        if parts.iter().any(Size::is_zero) {
            return NONE;
        }
        let above: f64 = parts.iter().map(|part| part.most.max(0.0)).sum();
        let below: f64 = parts.iter().map(|part| part.least.min(0.0)).sum();
        let mut off = f64::NEG_INFINITY;
        if below < SMALLEST {
            off = DROPPED + above;
        }
        for part in parts {
            off = off.max(part.off + above - part.most.max(0.0));
        }
        off += (parts.len() as f64 + 1.0).log2();
        if above > LARGEST {
            off = f64::INFINITY;
        }
        let sum = |of: fn(&Size) -> f64| parts.iter().map(of).sum();
        Size {
            least: sum(|part| part.least),
            most: sum(|part| part.most),
            off,
            signed: parts.iter().any(|part| part.signed),
        }
        .outside()
    }
}

/// Bounds on the tensors that a model needs.
pub(super) struct Lost(BTreeMap<TensorId, Size>);

impl Lost {
    /// Those of a goal; `None` where some equation is no sum of products, and nothing is known.
    pub(super) fn of(request: &Request<'_>, goal: TensorId) -> Option<Lost> {
        let program = request.program;
        let needed = program.needs(&[goal]);
        let mut sizes = Lost(BTreeMap::new());
        for tensor in &needed {
            sizes.0.insert(*tensor, given(request, *tensor));
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
        let off = self.0.get(&tensor).map_or(f64::INFINITY, |size| size.off);
        value.is_finite() && (off == f64::NEG_INFINITY || off - value.abs().log2() <= NOTHING)
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
                let mut found: Vec<(Size, f64)> = Vec::new();
                for equation in equations().filter(|equation| equation.tensor == *id) {
                    for term in &equation.terms {
                        found.push((self.expr(program, &term.body)?, contributions(program, equation, term)));
                        // Where a comparison is decided by what was dropped, nothing is known.
                        let mut dropped = false;
                        term.when.visit_reads(&mut |read, _| {
                            dropped |= self.size(read.tensor).off != f64::NEG_INFINITY;
                        });
                        if dropped {
                            return None;
                        }
                    }
                }
                let join = |size: Size, (other, _): &(Size, f64)| size.or(*other);
                let all = found.iter().fold(*base, join);
                states.push(match tensor.combine {
                    _ if found.is_empty() => *base,
                    Combine::Sum => {
                        let more = if base.is_zero() { 0.0 } else { 1.0 };
                        let count = found.iter().map(|(_, count)| count.exp2()).sum::<f64>() + more;
                        all.summed(count.max(1.0).log2())
                    }
                    Combine::Max | Combine::Min if tensor.style == Style::Round => all,
                    // A tuple is there or not.
                    Combine::Or | Combine::Exists if all.off == f64::NEG_INFINITY => {
                        Size { least: 0.0, most: 0.0, off: all.off, signed: false }
                    }
                    _ => return None,
                });
            }
            let mut still = true;
            for (id, state) in component.tensors.iter().zip(states) {
                let before = self.size(*id);
                let state = if rounds > 1 { state.or(before) } else { state };
                still &= state == before;
                self.0.insert(*id, state);
            }
            if still {
                break;
            }
            // By then the bounds go on as they went: what is left of the way is taken at once.
            match round {
                BEGUN => watched = component.tensors.iter().map(|id| self.size(*id)).collect(),
                SETTLED => {
                    let left = 1.0 + ((rounds - round) as f64 / (SETTLED - BEGUN) as f64).ceil();
                    for (id, before) in component.tensors.iter().zip(&watched) {
                        let size = self.size(*id);
                        let far = |from: f64, to: f64| if from == to { to } else { to + (to - from) * left };
                        let size = Size {
                            least: far(before.least, size.least),
                            most: far(before.most, size.most),
                            off: far(before.off, size.off),
                            ..size
                        };
                        self.0.insert(*id, size.outside());
                    }
                    break;
                }
                _ => {}
            }
        }
        Some(())
    }

    fn size(&self, tensor: TensorId) -> Size {
        self.0.get(&tensor).copied().unwrap_or(NONE)
    }

    fn all(&self, program: &Program, parts: &[Expr]) -> Option<Vec<Size>> {
        parts.iter().map(|part| self.expr(program, part)).collect()
    }

    fn expr(&self, program: &Program, expr: &Expr) -> Option<Size> {
        Some(match expr {
            Expr::Number(value) => Size::of_numbers(std::iter::once(*value)),
            Expr::Index(_) => Size { least: 0.0, most: 63.0, off: f64::NEG_INFINITY, signed: true },
            Expr::Read(read) => self.size(read.tensor),
            Expr::Missing(read) => {
                let known = self.size(read.tensor).off == f64::NEG_INFINITY;
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
                let sizes = self.all(program, parts)?;
                let count = (sizes.len().max(1) as f64).log2();
                sizes.into_iter().reduce(Size::or).unwrap_or(NONE).summed(count)
            }
            Expr::Reduce(reduce) => {
                let body = self.expr(program, &reduce.body)?;
                let mut dropped = false;
                reduce.when.visit_reads(&mut |read, _| {
                    dropped |= self.size(read.tensor).off != f64::NEG_INFINITY;
                });
                match reduce.operation {
                    Operation::Sum if !dropped => body.summed(bindings(program, &reduce.over)),
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
    // An element may be given several times, and then it is the sum.
    let several =
        tensor.given.iter().any(|given| !matches!(given, Given::Array { .. })) || tensor.given.len() > 1;
    let count = tensor.given.iter().map(|given| given.numbers().len().max(1)).sum::<usize>();
    if several && tensor.combine == Combine::Sum && !size.is_zero() {
        size = size.summed((count as f64).log2());
    }
    size
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

/// How many contributions of a term one element may have, as a logarithm.
fn contributions(program: &Program, equation: &Equation, term: &Term) -> f64 {
    let alone = |index: &&IndexId| !equation.head.iter().any(|place| IndexFn::alone(place) == Some(**index));
    let hidden: Vec<IndexId> = equation.left.iter().filter(alone).copied().collect();
    bindings(program, &term.over) + bindings(program, &hidden)
}
