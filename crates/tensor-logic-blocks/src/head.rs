//! From the contributions of equations to the elements of tensors.
//!
//! An [`Accumulator`] starts with what is given, takes the contributions of one term after the
//! other, and gives the stored value at the end. Terms are summed over their own indices first,
//! so what arrives has one contribution for each binding of the left side.

mod elements;
mod given;
mod several;
mod slices;
mod tuples;

use std::sync::Arc;

use self::several::Part;
pub(crate) use self::slices::{Described, Positions, Slice, join};
use crate::engine::Numbers;
use crate::error::Result;
use crate::kernels::{Array, Binary, Buffer, Number, Point, Precision, volume};
use crate::program::{
    Class, Combine, Component, Equation, IndexId, Operation, Read, Role, Style, TensorId, Term,
};
use crate::store::block::{Block, Dim, binary, joint};
use crate::store::condition::{Condition, scope_reads};
use crate::store::machine::{Context, Machine, Stored};
use crate::store::offsets::Offsets;
use crate::store::relation::{Piece, Relation};
use crate::values::scope::{Folded, Scope};

/// The contributions to a tensor.
pub(crate) enum Accumulator {
    /// All elements, row-major.
    Dense {
        /// Joined contributions.
        data: Elements,
        /// Of a mean, how many.
        counts: Option<Elements>,
        /// The number of elements.
        size: usize,
    },
    /// Contributions to some elements: positions, values, and which of them are there.
    Slices(Vec<Slice>),
    /// The same, to be computed.
    Described(Vec<Described>),
    /// Pieces, the first the tuples joined so far.
    Sparse(Vec<Piece>),
    /// Nothing yet, and one term is all there will be.
    Lone,
    /// What terms add to a square tensor, as long as all of them list it.
    Several(Vec<Part>),
    /// The tuples that one term makes.
    Ready(Relation),
}

/// Contributions to all elements of a square tensor, joined.
#[derive(Debug)]
pub(crate) enum Elements {
    /// There is none yet.
    None,
    /// Their sum.
    Sum(Array),
    /// Joined one by one.
    Joined(Vec<f64>),
}

impl Machine {
    /// Adds the contributions of an equation; `fixed` are indices of its left side that have one
    /// value at the moment.
    pub(crate) fn contribute(
        &mut self,
        equation: &Equation,
        fixed: &[(IndexId, u32)],
        into: &mut Accumulator,
    ) -> Result<()> {
        self.contribute_some(equation, fixed, into, &|_| true)
    }

    /// The same of some of its terms.
    pub(crate) fn contribute_some(
        &mut self,
        equation: &Equation,
        fixed: &[(IndexId, u32)],
        into: &mut Accumulator,
        which: &dyn Fn(&Term) -> bool,
    ) -> Result<()> {
        self.stop.check(equation.head_span)?;
        let since = self.note_equation(equation, fixed.is_empty());
        let done = self.contributions(equation, fixed, into, which);
        self.note_evaluated(equation, since);
        done
    }

    fn contributions(
        &mut self,
        equation: &Equation,
        fixed: &[(IndexId, u32)],
        into: &mut Accumulator,
        which: &dyn Fn(&Term) -> bool,
    ) -> Result<()> {
        self.head = equation.head_span;
        let context = Context { rows: None, fixed: fixed.to_vec() };
        let mut nearby = Vec::new();
        if equation.terms.len() > 1 {
            for term in &equation.terms {
                nearby.extend(scope_reads(&Condition::of_when(&term.when), &term.body));
            }
        }
        for term in equation.terms.iter().filter(|term| which(term)) {
            self.term(equation, term, &context, &nearby, into)?;
        }
        Ok(())
    }

    fn term(
        &mut self,
        equation: &Equation,
        term: &Term,
        context: &Context,
        nearby: &[&Read],
        into: &mut Accumulator,
    ) -> Result<()> {
        let combine = self.program.tensor(equation.tensor).combine;
        self.wanted = equation.left.iter().map(|index| Dim::of(*index)).collect();
        let open = |index: &IndexId| context.fixed(*index).is_none();
        let over: Vec<IndexId> = term.over.iter().copied().filter(open).collect();
        let mut own: Vec<IndexId> = equation.left.iter().copied().filter(open).collect();
        own.extend(&over);
        let operation = match combine {
            Combine::Sum | Combine::Exists | Combine::Avg | Combine::Proofs | Combine::Slopes => {
                Operation::Sum
            }
            Combine::Max | Combine::Or => Operation::Max,
            Combine::Min => Operation::Min,
            Combine::Times => Operation::Product,
        };
        let square = self.program.tensor(equation.tensor).style == Style::Square;
        let sum = square && combine == Combine::Sum;
        let when = Condition::of_when(&term.when);
        let scope = Scope {
            over: &over,
            nearby,
            fill: sum,
            truth: combine == Combine::Or,
            // A mean is a sum by its number: both for the same rows.
            whole: combine == Combine::Avg,
            ..Scope::new(term.when.node.number(), &own, when, &term.body, operation)
        };
        let scope = Scope { zero: sum || (square && scope.picks_one()), ..scope };
        if combine == Combine::Exists {
            // A sum above 0 asks for the sum of all terms; nothing more is needed of each.
            return self.folded(equation, &scope, context, into);
        }
        if combine == Combine::Avg {
            let scope = Scope { zero: false, fill: false, ..scope };
            let (sums, counts) = self.counted(&scope, context)?;
            return self.take(equation, sums, context, Some(counts), into);
        }
        self.folded(equation, &scope, context, into)
    }

    /// The sums of a mean, and how many bindings each has. Where sums and numbers may be taken before a join, neither is over
    /// the bindings of the whole body; otherwise both are for the same rows.
    fn counted(&mut self, scope: &Scope<'_>, context: &Context) -> Result<(Folded, Folded)> {
        if let Some(both) = self.taken_first(scope, context)? {
            return Ok(both);
        }
        let counting = Scope { operation: Operation::Count, ..scope.clone() };
        let counts = self.scope(&counting, context)?;
        Ok((self.scope(scope, context)?, counts))
    }

    fn folded(
        &mut self,
        equation: &Equation,
        scope: &Scope<'_>,
        context: &Context,
        into: &mut Accumulator,
    ) -> Result<()> {
        let mut folded = self.scope(scope, context)?;
        if folded.zero && scope.picks_one() {
            // Beside other terms a 0 is not nothing.
            let block = match &folded.rows {
                Some(rows) => self.align(rows, folded.block, context)?,
                None => folded.block,
            };
            folded = Folded { rows: None, block: block.filled(0.0), zero: false };
        }
        self.take(equation, folded, context, None, into)
    }

    /// Takes the results of one term into the tensor: with their numbers, the two parts of a mean.
    fn take(
        &mut self,
        equation: &Equation,
        folded: Folded,
        context: &Context,
        counts: Option<Folded>,
        into: &mut Accumulator,
    ) -> Result<()> {
        let counts = counts.map(|counts| self.beside(counts, &folded, context)).transpose()?;
        let inner = context.with_rows(folded.rows.clone());
        self.note_contributions(&folded.block, &inner);
        if matches!(into, Accumulator::Lone) {
            let mean = counts.as_ref().map(|counts| Folded {
                block: binary(folded.block.clone(), counts.block.clone(), Binary::Divide),
                ..folded.clone()
            });
            *into = match self.alone(equation, mean.as_ref().unwrap_or(&folded), &inner)? {
                Some(relation) => Accumulator::Ready(relation),
                None => {
                    self.reserve_tensor(equation.tensor)?;
                    self.given(equation.tensor, None)?
                }
            };
        }
        match into {
            Accumulator::Lone | Accumulator::Ready(_) => Ok(()),
            Accumulator::Several(parts) => {
                let parts = std::mem::take(parts);
                *into = self.one_more(equation, folded, &inner, parts)?;
                Ok(())
            }
            Accumulator::Dense { .. } => self.scatter(equation, folded, counts.as_ref(), &inner, into),
            Accumulator::Slices(_) | Accumulator::Described(_) => {
                let key = equation.node.number();
                let program = Arc::clone(&self.program);
                let places = &program.tensor(equation.tensor).places;
                let offsets = self.offsets(equation.head.iter(), places, &inner, key)?;
                let (dims, shape) = self.head_space(&offsets, &folded.block, &inner);
                self.reserve(volume(&shape).saturating_mul(2))?;
                // What is absent adds nothing.
                let sum = self.program.tensor(equation.tensor).combine == Combine::Sum;
                let block = if sum { folded.block.clone().filled(0.0) } else { folded.block.clone() };
                let (positions, dims, shape) = match offsets.run() {
                    // Both spaces have the dimensions of the head, and this one no others.
                    Some((from, dims_there, shape_there)) if dims_there.len() == dims.len() => {
                        (Positions::From(from), dims_there, shape_there)
                    }
                    _ => {
                        let len = volume(&program.tensor(equation.tensor).sizes());
                        (Positions::of(&offsets, &dims, &shape, len, block.mask.is_none()), dims, shape)
                    }
                };
                let present = self.presence(&block, &dims, &shape);
                let values = block.expanded(&dims, &shape).array();
                drop(block);
                drop(folded);
                match into {
                    Accumulator::Described(slices) => slices.push(Described { positions, shape, values }),
                    Accumulator::Slices(slices) => {
                        // Computed now: the state that it reads is written next.
                        self.force(&values);
                        let values = self.typed(values);
                        slices.push(Slice { positions, values, present });
                    }
                    _ => {}
                }
                Ok(())
            }
            Accumulator::Sparse(pieces) => {
                let counts = counts.as_ref().map(|counts| &counts.block);
                let found = self.pieces(equation, &folded.block, counts, &inner)?;
                pieces.extend(found);
                self.merge_pieces(equation.tensor, pieces)
            }
        }
    }

    /// An array that is there, in the type that is computed with.
    pub(super) fn typed(&self, array: Array) -> Array {
        match (self.precision, array.done()) {
            (Precision::Double, Some(Buffer::Numbers(Numbers::Double(_))))
            | (Precision::Single, Some(Buffer::Numbers(Numbers::Single(_))))
            | (_, None) => array,
            (Precision::Double, Some(buffer)) => Array::given(f64::buffer(buffer.numbers())),
            (Precision::Single, Some(buffer)) => Array::given(f32::buffer(buffer.numbers())),
        }
    }

    /// The space of the bindings of a left side.
    fn head_space(&self, offsets: &Offsets, block: &Block, context: &Context) -> (Vec<Dim>, Vec<usize>) {
        let (dims, shape) = offsets.space();
        let rows = context.rows.iter().map(|rows| (Dim::ROWS, rows.len));
        joint(rows.chain(dims.into_iter().zip(shape)).chain(block.space()))
    }

    /// The stored value of all contributions.
    pub(crate) fn finish(&self, id: TensorId, accumulator: Accumulator) -> Stored {
        let tensor = self.program.tensor(id);
        match accumulator {
            Accumulator::Dense { data: Elements::Sum(sum), .. }
                if matches!(tensor.combine, Combine::Sum | Combine::Avg) =>
            {
                // Elementwise work for one reader may become part of that one's, and operations that share an outer index are
                // done together.
                if !self.defers && (!self.passing[id.0 as usize] || !sum.waits_for::<Point>()) {
                    self.force(&sum);
                }
                Stored::Dense(sum)
            }
            Accumulator::Dense { mut data, size, .. } => {
                let values = self.joined(&mut data, tensor.combine, size);
                if tensor.combine == Combine::Exists {
                    values.iter_mut().for_each(|slot| *slot = f64::from(u8::from(*slot > 0.0)));
                }
                Stored::Dense(self.given_array(values))
            }
            Accumulator::Ready(relation) => {
                relation.array().iter().for_each(|values| drop(self.force(values)));
                Stored::Relation(Arc::new(relation))
            }
            // One term was to come, and the left side has none; several have become one.
            Accumulator::Lone
            | Accumulator::Several(_)
            | Accumulator::Slices(_)
            | Accumulator::Described(_) => Stored::Dense(Array::truths(Vec::new())),
            Accumulator::Sparse(pieces) => {
                let arity = tensor.places.len();
                Stored::Relation(Arc::new(Relation::merge(
                    arity,
                    &pieces,
                    tensor.combine,
                    &self.program.symbols,
                )))
            }
        }
    }

    /// Whether a tensor may be stored by what its terms list, and takes no room before they do.
    pub(crate) fn may_be_listed(&self, component: &Component, id: TensorId) -> bool {
        self.is_lone(component, id) || self.is_several(component, id) || self.is_listed(id)
    }

    /// Whether one term is all that a tensor will ever be.
    pub(crate) fn is_lone(&self, component: &Component, id: TensorId) -> bool {
        let tensor = self.program.tensor(id);
        let mut own =
            component.equations.iter().map(|at| self.program.equation(*at)).filter(|e| e.tensor == id);
        let one = own.next().is_some_and(|equation| equation.terms.len() == 1) && own.next().is_none();
        let joins = match tensor.style {
            Style::Square => tensor.combine == Combine::Sum,
            Style::Round => {
                !matches!(tensor.combine, Combine::Or | Combine::Exists | Combine::Proofs | Combine::Slopes)
            }
        };
        let computed = tensor.role == Role::Computed && tensor.given.is_empty();
        one && joins && computed && matches!(component.class, Class::Plain)
    }
}
