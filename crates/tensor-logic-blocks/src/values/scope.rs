//! Scopes: the contributions of all bindings of some indices, folded.
//!
//! Enter at [`Machine::scope`]; sums of products are in `sum`.

mod sum;

use crate::engine::Storage;
use std::sync::Arc;

use crate::ast::Comparison;
use crate::engine::Numbers;
use crate::error::Result;
use crate::function::Function;
use crate::kernels::{Binary, Precision};
use crate::presence::{always, bounds, fits};
use crate::program::{Argument, Expr, IndexFn, IndexId, Operation, Otherwise, Place, Range, Read};
use crate::store::block::{Block, Dim, binary, reduce, reduce_rows, repeated};
use crate::store::condition::{Condition, Support, free, scope_reads};
use crate::store::doubt::{Doubt, bits_of};
use crate::store::machine::{Context, Machine, Stored};
use crate::store::relation::Relation;
use crate::store::rows::Rows;
use crate::value::Domain;
use sum::{Factor, factors};

/// Tells a scope of which is asked where it has a value from the same one whose value is asked for: what both list differs.
pub(crate) const ONLY_PRESENT: u64 = 1 << 62;

/// So many values of an index are tried, one by one.
const TRIED: usize = 1 << 24;

/// A scope.
#[derive(Debug, Clone)]
pub(crate) struct Scope<'p> {
    /// Tells it apart.
    pub(crate) node: u64,
    /// The indices that it binds.
    pub(crate) own: &'p [IndexId],
    /// Those of them that are folded away.
    pub(crate) over: &'p [IndexId],
    /// What its guards demand.
    pub(crate) when: Vec<Condition<'p>>,
    /// The contribution.
    pub(crate) body: &'p Expr,
    /// How contributions are folded.
    pub(crate) operation: Operation,
    /// Reads that give values to indices that no read of the scope itself binds.
    pub(crate) nearby: &'p [&'p Read],
    /// Whether a sum of zeros may stand where nothing is listed.
    pub(crate) zero: bool,
    /// Whether 0 may stand where a sum is absent: it goes into a sum over elements that all exist.
    pub(crate) fill: bool,
    /// Whether only that counts which contributions are above 0 (`or=`): a NaN is not, and hides none that is.
    pub(crate) truth: bool,
    /// Whether the rows must be those of the whole body: no sum is taken inside.
    pub(crate) whole: bool,
}

impl<'p> Scope<'p> {
    /// A scope that folds all that it binds.
    pub(crate) fn new(
        node: u64,
        own: &'p [IndexId],
        when: Vec<Condition<'p>>,
        body: &'p Expr,
        operation: Operation,
    ) -> Scope<'p> {
        let (zero, fill, truth, whole) = (false, false, false, false);
        Scope { node, own, over: own, when, body, operation, nearby: &[], zero, fill, truth, whole }
    }

    /// Whether it is the largest or the smallest element of a read, or of a product, which is 0 where one of its factors is.
    pub(crate) fn picks_one(&self) -> bool {
        matches!(self.operation, Operation::Max | Operation::Min)
            && matches!(self.body, Expr::Read(_) | Expr::Product(_))
    }

    /// What must hold.
    pub(crate) fn conditions(&self) -> Vec<Condition<'p>> {
        let mut conditions = self.when.clone();
        Condition::of_body(self.body, &mut conditions);
        conditions
    }
}

/// What a scope gives: values beside the rows of a table (none: no rows), absent elsewhere, or 0
/// there if `zero`.
#[derive(Debug, Clone)]
pub(crate) struct Folded {
    /// The table.
    pub(crate) rows: Option<Arc<Rows>>,
    /// The values.
    pub(crate) block: Block,
    /// Whether bindings without a row have the value 0 rather than none.
    pub(crate) zero: bool,
}

impl Machine {
    /// A scope inside an expression, carried to the dimensions of the context.
    pub(crate) fn nested(&mut self, scope: &Scope<'_>, context: &Context) -> Result<Block> {
        let folded = self.scope(scope, context)?;
        let block = match folded.rows {
            None => folded.block,
            Some(rows) => self.align(&rows, folded.block, context)?,
        };
        Ok(if folded.zero { block.filled(0.0) } else { block })
    }

    /// Folds the contributions of a scope.
    pub(crate) fn scope(&mut self, scope: &Scope<'_>, context: &Context) -> Result<Folded> {
        if let Some(factored) = self.factored(scope, context) {
            self.inside.push(factored.index);
            let folded = self.scope(&scope.nested(&factored), context)?;
            // a (x + y) is a x + a y for finite numbers only, as max(a x, a y) is a max(x, y).
            if !matches!(scope.body, Expr::Plus(_)) {
                self.suspect(scope.node, &folded.block, Doubt::NotFinite);
            }
            return Ok(folded);
        }
        if scope.operation == Operation::Avg
            && !(scope.truth || scope.whole)
            && let Some((sums, counts)) = self.taken_first(scope, context)?
        {
            let counts = self.beside(counts, &sums, context)?;
            return Ok(Folded { block: binary(sums.block.clone(), counts.block, Binary::Divide), ..sums });
        }
        let inside = std::mem::take(&mut self.inside);
        let mut conditions = scope.conditions();
        let reads = scope_reads(&conditions, scope.body);
        self.set_tuple_ranges(scope.own, &reads, scope.nearby);
        let sums = scope.operation == Operation::Sum || scope.picks_one();
        let listed = if scope.zero && sums { self.zero_reads(scope, context)? } else { Vec::new() };
        conditions.extend(listed.iter().map(|read| Condition::Listed(read)));
        let support = self.support(scope.node, context, scope.own, &conditions, &free(scope.body))?;
        self.note_inside(scope.node, inside);
        let inner = context.with_rows(support.rows.clone());
        let rest: Vec<Condition<'_>> = support.rest.iter().map(|at| conditions[*at]).collect();
        if scope.operation == Operation::Sum {
            let mut folded = self.sum(scope, &support, &rest, &inner)?;
            folded.zero = !listed.is_empty();
            return Ok(folded);
        }
        if scope.operation == Operation::Count {
            return self.how_many(scope, &support, &rest, &inner);
        }
        let block = self.expr(scope.body, &inner)?;
        let positive = Binary::Compare(Comparison::Greater);
        let block = if scope.truth { block.with(positive, 0.0) } else { block };
        let dense = |index: &IndexId| inner.dim(*index).is_some_and(|dim| dim != Dim::ROWS);
        self.streamed = scope.over.iter().any(dense);
        let mut block = self.restricted(block, &rest, &inner)?;
        let mut drop = Vec::new();
        for index in scope.over {
            match inner.dim(*index) {
                Some(dim) if dim != Dim::ROWS && block.position(dim).is_some() => drop.push(dim),
                Some(dim) if dim != Dim::ROWS => {
                    let size = self.size(*index);
                    block = if size == 0 { block.vanished() } else { block };
                    block = repeated(block, scope.operation, size);
                }
                _ => {}
            }
        }
        let in_rows =
            support.rows.as_ref().is_some_and(|rows| scope.over.iter().any(|index| rows.binds(*index)));
        if scope.operation == Operation::Avg && in_rows && !drop.is_empty() {
            // A mean over both the rows and dense axes: sum and number apart.
            let count = reduce(block.clone().presence(), &drop, Operation::Sum);
            let total = reduce(block, &drop, Operation::Sum);
            let total = self.fold_rows(scope, &support, total, Operation::Sum)?;
            let count = self.fold_rows(scope, &support, count, Operation::Sum)?;
            return Ok(Folded { block: binary(total.block.clone(), count.block, Binary::Divide), ..total });
        }
        let block = reduce(block, &drop, scope.operation);
        let here = if block.mask.is_some() { block.clone().presence() } else { Block::scalar(1.0) };
        let folded = self.fold_rows(scope, &support, block, scope.operation)?;
        if listed.is_empty() { Ok(folded) } else { self.beside_zeros(scope, &support, folded, here) }
    }

    /// The sums of a mean, and how many bindings each has, where both may be taken before a join: then neither is over the
    /// bindings of the whole body.
    pub(crate) fn taken_first(
        &mut self,
        scope: &Scope<'_>,
        context: &Context,
    ) -> Result<Option<(Folded, Folded)>> {
        let sums = Scope { operation: Operation::Sum, whole: false, ..scope.clone() };
        let counts = Scope { operation: Operation::Count, node: scope.node ^ ONLY_PRESENT, ..sums.clone() };
        if self.factored(&sums, context).is_none() || self.factored(&counts, context).is_none() {
            return Ok(None);
        }
        let (sums, counts) = (self.scope(&sums, context)?, self.scope(&counts, context)?);
        let both = sums.rows.is_none() || counts.rows.is_some();
        Ok(both.then_some((sums, counts)))
    }

    /// Numbers of bindings beside the rows of their sums.
    pub(crate) fn beside(&mut self, counts: Folded, sums: &Folded, context: &Context) -> Result<Folded> {
        let same = match (&counts.rows, &sums.rows) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let Some(rows) = counts.rows.as_ref().filter(|_| !same) else { return Ok(counts) };
        let inner = context.with_rows(sums.rows.clone());
        let block = self.align(rows, counts.block, &inner)?;
        Ok(Folded { rows: sums.rows.clone(), block, zero: false })
    }

    /// The largest or the smallest of what is listed where it is `here`, and of the zeros that are not listed.
    fn beside_zeros(
        &mut self,
        scope: &Scope<'_>,
        support: &Support,
        folded: Folded,
        here: Block,
    ) -> Result<Folded> {
        let Some(rows) = &support.rows else { return Ok(folded) };
        if rows.len == 0 && folded.rows.is_none() {
            return Ok(Folded { block: Block::scalar(0.0), ..folded });
        }
        let inside = self.values_inside(scope).unwrap_or_default();
        let values = |own: &IndexId| match inside.iter().find(|(index, _)| index == own) {
            Some((_, inside)) => inside.iter().filter(|inside| **inside).count(),
            None => self.size(*own),
        };
        let all: usize = scope.over.iter().filter(|own| rows.binds(**own)).map(values).product();
        let counts = self.fold_rows(scope, support, here, Operation::Sum)?.block;
        let missing = counts.with(Binary::Compare(Comparison::Less), all as f64);
        let with_zero = match scope.operation {
            Operation::Max => folded.block.clone().call(&Function::Relu),
            _ => folded.block.clone().negated().call(&Function::Relu).negated(),
        };
        // What is listed is finite: 0 times it is 0.
        let others = binary(missing.clone().negated().with(Binary::Add, 1.0), folded.block, Binary::Multiply);
        let block = binary(binary(missing, with_zero, Binary::Multiply), others, Binary::Add);
        Ok(Folded { rows: folded.rows, block, zero: true })
    }

    /// Folds rows that differ in folded indices only.
    pub(super) fn fold_rows(
        &mut self,
        scope: &Scope<'_>,
        support: &Support,
        block: Block,
        operation: Operation,
    ) -> Result<Folded> {
        let Some(rows) = &support.rows else { return Ok(Folded { rows: None, block, zero: false }) };
        let kept: Vec<IndexId> =
            rows.indices.iter().copied().filter(|index| !scope.over.contains(index)).collect();
        if kept.len() == rows.indices.len() {
            return Ok(Folded { rows: Some(Arc::clone(rows)), block, zero: false });
        }
        if kept.is_empty() {
            let (mut dims, mut shape) = (block.dims.clone(), block.shape.clone());
            if block.position(Dim::ROWS).is_none() {
                dims.push(Dim::ROWS);
                shape.push(rows.len);
            }
            let block = reduce(block.expanded(&dims, &shape), &[Dim::ROWS], operation);
            return Ok(Folded { rows: None, block, zero: false });
        }
        let (grouped, groups) = self.grouped(rows, &kept);
        let groups = self.by_group(rows, &groups, grouped.len);
        let block = reduce_rows(block, &groups, operation);
        Ok(Folded { rows: Some(grouped), block, zero: false })
    }

    /// Square reads of relations that may be listed instead of read everywhere: where nothing is
    /// listed the sum is 0. That needs all other factors to be total and finite; or, where 0 may
    /// stand for what is absent, finite where the conditions hold. And their product must be
    /// finite, whatever the order: 0 times what leaves the numbers is none.
    pub(crate) fn zero_reads<'p>(&mut self, scope: &Scope<'p>, context: &Context) -> Result<Vec<&'p Read>> {
        let conditions = scope.conditions();
        let beside = scope.fill && scope.operation == Operation::Sum;
        if !(beside || conditions.is_empty()) || self.storage == Storage::Dense {
            return Ok(Vec::new());
        }
        let holds = |read: &Read| {
            let same = |present: &Read| present.node == read.node;
            conditions
                .iter()
                .any(|condition| matches!(condition, Condition::Present(present) if same(present)))
        };
        let open = |index: &IndexId| match self.program.index(*index).range {
            Range::Domain(_) => true,
            Range::Tuples => beside && self.range(*index).is_some(),
            Range::Computed => false,
        };
        if !free(scope.body).iter().chain(scope.own).all(open) {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        let constant = factors(scope.body, &mut all);
        // No product of some of the factors is above 2 to this.
        let mut bits = bits_of(&[constant.times / constant.over]);
        let (mut listed, mut dense, mut relations) = (Vec::new(), Vec::new(), Vec::new());
        // What is folded may leave domains where something is left of it for every other index.
        let folded = scope.picks_one()
            && self
                .values_inside(scope)
                .is_some_and(|found| found.iter().all(|(_, inside)| inside.contains(&true)));
        let mut over: Vec<IndexId> = scope.over.to_vec();
        for factor in &all {
            let mut reads = Vec::new();
            match *factor {
                Factor::Times(Expr::Read(read)) => reads.push(read),
                Factor::Times(expr @ Expr::Index(function)) => {
                    let Some((from, to)) = bounds(&self.program, function) else { return Ok(Vec::new()) };
                    if !always(&self.program, expr) {
                        return Ok(Vec::new());
                    }
                    bits += bits_of(&[from as f64, to as f64]);
                }
                Factor::Times(expr) => {
                    if !plain_sum(expr, &mut reads, &mut over) {
                        return Ok(Vec::new());
                    }
                }
                _ => return Ok(Vec::new()),
            }
            let own = matches!(factor, Factor::Times(Expr::Read(_)));
            for read in reads {
                let present = holds(read);
                // What lies outside of the domain is absent, which adds as little as 0.
                let inside = beside || folded || self.in_domain(read);
                if !present && (read.otherwise == Otherwise::Absent || !inside) {
                    return Ok(Vec::new());
                }
                match self.stored(read.tensor) {
                    Some(Stored::Dense(data)) => dense.push(data.clone()),
                    Some(Stored::Relation(relation)) => {
                        relations.push(relation.clone());
                        if present {
                            continue;
                        }
                        let indices = Condition::Listed(read).indices();
                        let dense = self.bindings(indices.iter().filter(|i| context.fixed(**i).is_none()));
                        let worth = relation.len.saturating_mul(4) <= dense && dense > 1024;
                        if own && (worth || self.storage == Storage::Sparse) {
                            listed.push(read);
                        }
                    }
                    _ => return Ok(Vec::new()),
                }
            }
        }
        // Numbers are gone through only where something depends on it.
        if listed.is_empty() || over.iter().any(|index| self.size(*index) == 0) {
            return Ok(Vec::new());
        }
        // What is summed inside of the product grows with its terms.
        let inside = over.iter().skip(scope.over.len());
        bits += inside.map(|index| (self.size(*index) as f64).log2()).sum::<f64>();
        bits += relations.iter().map(|relation| self.bits_of(relation)).sum::<f64>();
        for data in &dense {
            bits += match self.numbers(data) {
                Numbers::Double(values) => bits_of(&values),
                Numbers::Single(values) => bits_of(&values),
            };
        }
        let most = match self.precision {
            Precision::Double => f64::MAX_EXP,
            Precision::Single => f32::MAX_EXP,
        };
        Ok(if bits < f64::from(most) - 1.0 { listed } else { Vec::new() })
    }

    fn bits_of(&self, relation: &Relation) -> f64 {
        relation.doubles().map_or(0.0, |values| {
            self.looks.set(self.looks.get() + 1);
            bits_of(values)
        })
    }

    /// Whether an expression is present whatever the binding, as far as a look at it says.
    pub(crate) fn total(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Number(_) => true,
            Expr::Read(read) => {
                let dense = matches!(self.stored(read.tensor), Some(Stored::Dense(_)));
                dense && read.otherwise != Otherwise::Absent && self.in_domain(read)
            }
            Expr::Call(call) => {
                call.when.guards.is_empty() && call.arguments.iter().all(|part| self.total(part))
            }
            Expr::Product(_) | Expr::Plus(_) | Expr::Quotient(..) | Expr::Power(..) | Expr::Negate(_) => {
                expr.parts().0.into_iter().all(|part| self.total(part))
            }
            _ => false,
        }
    }

    /// The folded indices that lead reads out of their domains, with the values at which none does, in order; `None` where other
    /// indices decide that, or several together.
    fn values_inside(&self, scope: &Scope<'_>) -> Option<Vec<(IndexId, Vec<bool>)>> {
        let mut all: Option<Vec<(IndexId, Vec<bool>)>> = Some(Vec::new());
        scope.body.visit_reads(&mut |read, _| {
            let Some(found) = all.as_mut() else { return };
            let places = &self.program.tensor(read.tensor).places;
            let outside = |(argument, place): &(&Argument, &Place)| !self.is_inside(argument, place);
            for (argument, place) in read.arguments.iter().zip(places).filter(outside) {
                let Argument::At(function) = argument else { return all = None };
                let mut indices = Vec::new();
                function.visit(&mut |index| indices.push(index));
                let own = match indices.as_slice() {
                    [own, others @ ..] if others.iter().all(|other| other == own) => *own,
                    _ => return all = None,
                };
                let range = self.range(own).filter(|range| range.len() <= TRIED);
                let (Some(domain), Some(range)) = (&place.domain, range) else { return all = None };
                let inside = |(at, value)| {
                    let value = function.evaluate(&|_| Some(value), &|_| Some(at));
                    value.is_some_and(|value| domain.contains(value))
                };
                let inside: Vec<bool> = range.values().enumerate().map(inside).collect();
                if inside.iter().all(|inside| *inside) {
                    continue;
                }
                if !scope.over.contains(&own) {
                    return all = None;
                }
                match found.iter_mut().find(|(index, _)| *index == own) {
                    Some((_, before)) => before.iter_mut().zip(inside).for_each(|(a, b)| *a &= b),
                    None => found.push((own, inside)),
                }
            }
        });
        all
    }

    /// Whether all places of a read are indices (or constants) inside the domain.
    pub(super) fn in_domain(&self, read: &Read) -> bool {
        let places = &self.program.tensor(read.tensor).places;
        read.arguments.iter().zip(places).all(|(argument, place)| self.is_inside(argument, place))
    }

    fn is_inside(&self, argument: &Argument, place: &Place) -> bool {
        let Argument::At(function) = argument else { return false };
        match (&place.domain, function.alone()) {
            (None, Some(_)) => true,
            (Some(domain), Some(index)) => self.range(index).is_some_and(|range| contains(domain, range)),
            (Some(domain), None) => fits(&self.program, function, domain),
            (None, None) => matches!(function, IndexFn::Const(_)),
        }
    }
}

/// The reads of a sum that was taken out of a product of reads, and what it sums over.
fn plain_sum<'p>(expr: &'p Expr, reads: &mut Vec<&'p Read>, over: &mut Vec<IndexId>) -> bool {
    let Expr::Reduce(reduce) = expr else { return false };
    let Expr::Product(parts) = &reduce.body else { return false };
    over.extend(&reduce.over);
    let mut plain = reduce.operation == Operation::Sum && !reduce.explicit && reduce.when.guards.is_empty();
    for part in parts {
        match part {
            Expr::Read(read) => reads.push(read),
            part => plain = plain && plain_sum(part, reads, over),
        }
    }
    plain
}

/// Whether a domain holds another.
fn contains(domain: &Domain, other: &Domain) -> bool {
    match (domain, other) {
        (Domain::Interval { from, to }, Domain::Interval { from: low, to: high }) => {
            other.is_empty() || (from <= low && high <= to)
        }
        _ => domain == other || other.values().all(|value| domain.contains(value)),
    }
}
