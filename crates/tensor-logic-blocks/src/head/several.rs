//! Square tensors that are sums of several terms, each of which lists what it adds.
//!
//! An adjoint has a term for each read of its tensor, so that one which is read twice is such a sum. As long as every
//! term lists its elements and all together are few, they are kept aside ([`Part`]) and joined at the end; otherwise all
//! elements are made, and what was kept aside is added to them.

use super::Accumulator;
use crate::engine::Storage;
use crate::error::Result;
use crate::kernels::{Array, Binary, volume};
use crate::program::{Class, Combine, Component, Equation, IndexId, Operation, Role, Style, TensorId};
use crate::room::{is_by_support, may_be_by_support};
use crate::store::block::{Block, Dim, binary, reduce_rows};
use crate::store::machine::{Context, Machine};
use crate::store::plan::{Key, Thing};
use crate::store::relation::{Relation, Union};
use crate::value::Domain;
use crate::values::scope::Folded;

/// What a term adds: as it was folded, and as the elements that may be another number than 0.
pub(crate) struct Part {
    equation: Equation,
    folded: Folded,
    context: Context,
    listed: Relation,
    values: Array,
    /// What the indices of the left side range over in this term.
    ranges: Vec<(IndexId, Domain)>,
}

impl Machine {
    /// Whether a square tensor is a sum of several terms that may all be listed.
    pub(crate) fn is_several(&self, component: &Component, id: TensorId) -> bool {
        let tensor = self.program.tensor(id);
        let own = component.equations.iter().map(|at| self.program.equation(*at));
        let terms: usize = own.filter(|own| own.tensor == id).map(|own| own.terms.len()).sum();
        let worth = match self.storage {
            Storage::Dense => false,
            Storage::Sparse => true,
            Storage::Auto => may_be_by_support(volume(&tensor.sizes())),
        };
        worth
            && terms > 1
            && tensor.style == Style::Square
            && tensor.combine == Combine::Sum
            && tensor.role == Role::Computed
            && tensor.given.is_empty()
            && !tensor.places.is_empty()
            && matches!(component.class, Class::Plain)
    }

    /// Keeps what a term adds aside, if it is listed and all together is little; else makes all elements.
    pub(super) fn one_more(
        &mut self,
        equation: &Equation,
        folded: Folded,
        context: &Context,
        mut parts: Vec<Part>,
    ) -> Result<Accumulator> {
        let tensor = equation.tensor;
        let listed = self.alone(equation, &folded, context)?;
        let values = listed.as_ref().and_then(Relation::array);
        if let (Some(listed), Some(values)) = (listed, values) {
            let range = |index: &IndexId| Some((*index, self.range(*index)?.clone()));
            let ranges = equation.left.iter().filter_map(range).collect();
            let (equation, context) = (equation.clone(), context.clone());
            parts.push(Part { equation, folded, context, listed, values, ranges });
            let all = volume(&self.program.tensor(tensor).sizes());
            let few = is_by_support(all, parts.iter().map(|part| part.listed.len).sum());
            if few || self.storage == Storage::Sparse {
                return Ok(Accumulator::Several(parts));
            }
            return self.spread(tensor, parts);
        }
        let mut into = self.spread(tensor, parts)?;
        self.scatter(equation, folded, None, context, &mut into)?;
        Ok(into)
    }

    /// All elements, with what was kept aside added to them.
    fn spread(&mut self, tensor: TensorId, parts: Vec<Part>) -> Result<Accumulator> {
        self.reserve_tensor(tensor)?;
        let mut into = self.given(tensor, None)?;
        for part in parts {
            // Each term has ranges of its own, and by now those of another one are at hand.
            let range = |(index, _): &(IndexId, Domain)| Some((*index, self.range(*index)?.clone()));
            let at_hand: Vec<(IndexId, Domain)> = part.ranges.iter().filter_map(range).collect();
            part.ranges.into_iter().for_each(|(index, domain)| self.set_range(index, domain));
            let scattered = self.scatter(&part.equation, part.folded, None, &part.context, &mut into);
            at_hand.into_iter().for_each(|(index, domain)| self.set_range(index, domain));
            scattered?;
        }
        Ok(into)
    }

    /// What was kept aside, as one relation.
    pub(crate) fn united(&mut self, id: TensorId, accumulator: Accumulator) -> Accumulator {
        let Accumulator::Several(parts) = accumulator else { return accumulator };
        let number = parts.first().map_or(0, |part| part.equation.node.number());
        let tuples: Vec<u64> = parts.iter().map(|part| part.listed.tuples).collect();
        let key = Key { place: (number, 21), rows: 0, fixed: Vec::new() };
        let known = match self.recall(&key) {
            Some(Thing::Union(of, union)) if *of == tuples => Some(union.clone()),
            _ => None,
        };
        let union = known.unwrap_or_else(|| {
            let listed: Vec<&Relation> = parts.iter().map(|part| &part.listed).collect();
            let union = Union::new(self.program.tensor(id).places.len(), &listed, &self.program.symbols);
            self.memory.keep(key, Vec::new(), Thing::Union(tuples, union.clone()));
            union
        });
        let blocks = parts.into_iter().zip(&union.groups).map(|(part, groups)| {
            let block = Block::whole(vec![Dim::ROWS], vec![part.listed.len], part.values);
            match groups {
                None => block,
                // What a term says nothing of is an empty sum.
                Some(groups) => reduce_rows(block, groups, Operation::Sum),
            }
        });
        match blocks.reduce(|sum, block| binary(sum, block, Binary::Add)) {
            Some(sum) => Accumulator::Ready(union.relation.valued(sum.array())),
            None => Accumulator::Ready(union.relation),
        }
    }
}
