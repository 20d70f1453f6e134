//! Sums of products.
//!
//! Enter at [`Machine::sum`]. They are not computed binding by binding: factors that share a summed dense index are contracted
//! among themselves first, for the rows that they distinguish; what is left is one pass over the table of bindings.

use std::sync::Arc;

use super::super::contract::{Contraction, contract};
use super::super::slope::Slope;
use super::{Folded, ONLY_PRESENT, Scope};
use crate::error::Result;
use crate::function::Function;
use crate::kernels::{Array, Binary, Folding, Grouping, Segments, View, volume};
use crate::program::{Argument, Expr, IndexId, Operation, Otherwise, Range, Reduce};
use crate::store::block::{Block, Dim, Groups, binary, folded};
use crate::store::condition::{Condition, Support, distinct, free};
use crate::store::doubt::Doubt;
use crate::store::machine::{Context, Machine, Stored};
use crate::store::plan::{Key, Thing};
use crate::store::rows::Rows;
use crate::value::Domain;

/// A factor of a product.
#[derive(Debug, Clone, Copy)]
pub(super) enum Factor<'p> {
    Times(&'p Expr),
    Over(&'p Expr),
    /// A quotient.
    Ratio(&'p Expr, &'p Expr),
    When(Condition<'p>),
    /// 1 where an expression is present.
    There(&'p Expr),
}

impl Factor<'_> {
    fn indices(self) -> Vec<IndexId> {
        match self {
            Factor::Times(expr) | Factor::Over(expr) | Factor::There(expr) => free(expr),
            Factor::Ratio(a, b) => distinct([free(a), free(b)].concat()),
            Factor::When(condition) => condition.indices(),
        }
    }
}

/// The constants of a product. What is divided by is kept apart where its inverse is not exact: multiplied by that, 3 / 10 would be
/// rounded twice, to 0.30000000000000004.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Constant {
    pub(super) times: f64,
    pub(super) over: f64,
}

impl Constant {
    const ONE: Constant = Constant { times: 1.0, over: 1.0 };

    fn times(times: f64) -> Constant {
        Constant { times, ..Constant::ONE }
    }

    fn over(self, divisor: f64) -> Constant {
        let is_power_of_2 = divisor.to_bits() << 12 == 0;
        match is_power_of_2 {
            true => Constant { times: self.times / divisor, ..self },
            false => Constant { over: self.over * divisor, ..self },
        }
    }
}

/// Takes a product apart; returns its constants. Numbers beyond what a double holds with ease stay
/// factors: with the data beside them they may come to something.
pub(super) fn factors<'p>(expr: &'p Expr, into: &mut Vec<Factor<'p>>) -> Constant {
    let mut product = |parts: &'p [Expr]| {
        parts.iter().map(|part| factors(part, into)).fold(Constant::ONE, |all, own| Constant {
            times: all.times * own.times,
            over: all.over * own.over,
        })
    };
    match expr {
        Expr::Number(value) if MODERATE.contains(&value.abs()) => Constant::times(*value),
        Expr::Product(parts) => product(parts),
        Expr::Negate(a) => {
            let constant = factors(a, into);
            Constant { times: -constant.times, ..constant }
        }
        // It is one operation.
        Expr::Quotient(..) if Slope::of(expr).is_some() => {
            into.push(Factor::Times(expr));
            Constant::ONE
        }
        Expr::Quotient(a, b) => {
            let constant = factors(a, into);
            match known(b) {
                Some(divisor) if MODERATE.contains(&divisor.abs()) => constant.over(divisor),
                _ => {
                    into.push(Factor::Over(b));
                    constant
                }
            }
        }
        Expr::Terms(parts) if parts.len() == 1 => product(parts),
        Expr::Power(base, exponent)
            if matches!(**base, Expr::Read(_)) && matches!(**exponent, Expr::Number(2.0)) =>
        {
            // A sum of squares is a product with itself.
            into.extend([Factor::Times(base), Factor::Times(base)]);
            Constant::ONE
        }
        _ => {
            into.push(Factor::Times(expr));
            Constant::ONE
        }
    }
}

/// The number that an expression is, whatever the data are: `sqrt(16)`.
fn known(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Number(value) => Some(*value),
        Expr::Negate(a) => Some(-known(a)?),
        Expr::Call(call) if call.when.guards.is_empty() && !matches!(call.function, Function::User(_)) => {
            let arguments: Option<Vec<f64>> = call.arguments.iter().map(known).collect();
            Some(call.function.value(&arguments?))
        }
        _ => None,
    }
}

/// Constants that are multiplied before they meet the data.
const MODERATE: std::ops::Range<f64> = 1e-9..1e9;

/// Values for the rows of a table, by way of the rows that they distinguish.
struct Beside {
    block: Block,
    map: Option<Arc<Vec<u32>>>,
}

/// The factors of a sum over rows.
struct Factors<'p, 's> {
    all: &'s [Factor<'p>],
    /// The indices of each.
    indices: &'s [Vec<IndexId>],
    /// The indices that are summed and in no row.
    summed: &'s [IndexId],
}

/// Takes out the divisors that nothing is summed over, which divide the sum, and puts others to a factor that has all of their
/// indices: a quotient is one operation, and twice 49 over 49 is 2. What is left is multiplied by its inverse.
fn divided<'p>(all: &mut Vec<Factor<'p>>, scope: &Scope<'_>, everywhere: bool) -> Vec<&'p Expr> {
    let mut outside = Vec::new();
    for factor in std::mem::take(all) {
        let Factor::Over(divisor) = factor else {
            all.push(factor);
            continue;
        };
        let own = free(divisor);
        let summed = own.iter().any(|index| scope.over.contains(index));
        if everywhere && !summed && !matches!(divisor, Expr::Number(_)) {
            outside.push(divisor);
            continue;
        }
        let holds = |factor: &&mut Factor<'p>| match factor {
            Factor::Times(expr) if summed => {
                let indices = free(expr);
                own.iter().all(|index| indices.contains(index))
            }
            _ => false,
        };
        match all.iter_mut().find(holds) {
            Some(dividend) => {
                if let Factor::Times(expr) = *dividend {
                    *dividend = Factor::Ratio(expr, divisor);
                }
            }
            None => all.push(Factor::Over(divisor)),
        }
    }
    outside
}

/// Whether what the only condition makes is summed as it is made: no other factor has an index that it lacks.
fn is_streamed(all: &[Factor<'_>], indices: &[Vec<IndexId>], summed: &[IndexId]) -> bool {
    let mut conditions = all.iter().zip(indices).filter(|(factor, _)| matches!(factor, Factor::When(_)));
    let (Some((_, own)), None) = (conditions.next(), conditions.next()) else { return false };
    let within = indices.iter().flatten().all(|index| own.contains(index));
    within && summed.iter().any(|index| own.contains(index))
}

impl Machine {
    /// A sum of products.
    pub(super) fn sum(
        &mut self,
        scope: &Scope<'_>,
        support: &Support,
        rest: &[Condition<'_>],
        inner: &Context,
    ) -> Result<Folded> {
        let mut all = Vec::new();
        let mut constant = factors(scope.body, &mut all);
        let divides = constant.over != 1.0 || all.iter().any(|factor| matches!(factor, Factor::Over(_)));
        let scales = constant.times.abs() != 1.0 && all.len() > 1;
        let mut divisors = Vec::new();
        let exact = self.exact.contains(&scope.node);
        if (divides || scales) && scope.over.is_empty() || divides && exact {
            // What is not summed, and what a divisor has no inverse for, is computed as it stands.
            (all, constant) = (vec![Factor::Times(scope.body)], Constant::ONE);
        } else if divides {
            // Where 0 stands for sums that no row has, nothing is divided.
            divisors = divided(&mut all, scope, support.rows.is_none() || !scope.fill);
        }
        all.extend(rest.iter().map(|condition| Factor::When(*condition)));
        let Folded { rows, mut block, zero } = self.sum_of(scope, support, inner, (&all, constant.times))?;
        if constant.over != 1.0 {
            block = block.with(Binary::Divide, constant.over);
        }
        if !divisors.is_empty() {
            let outer = inner.with_rows(rows.clone());
            for divisor in divisors {
                let divisor = self.expr(divisor, &outer)?;
                self.reserve_union(&[&block, &divisor])?;
                block = binary(block, divisor, Binary::Divide);
            }
            // a / x + b / x is (a + b) / x for finite numbers only.
            self.suspect(scope.node, &block, Doubt::NotFinite);
        }
        Ok(Folded { rows, block, zero })
    }

    /// How many bindings have a value: the sum of 1 for each, which is a product of what is present each for itself.
    pub(super) fn how_many(
        &mut self,
        scope: &Scope<'_>,
        support: &Support,
        rest: &[Condition<'_>],
        inner: &Context,
    ) -> Result<Folded> {
        let mut all = Vec::new();
        self.partial(scope.body, &mut all);
        all.extend(rest.iter().map(|condition| Factor::When(*condition)));
        self.sum_of(scope, support, inner, (&all, 1.0))
    }

    /// The parts of an expression that may be absent where no condition of its scope says so, one by one; all of it is there
    /// where they all are.
    fn partial<'p>(&self, expr: &'p Expr, into: &mut Vec<Factor<'p>>) {
        match expr {
            // Its scope has the condition that it is present.
            Expr::Read(read) if read.otherwise == Otherwise::Absent => {}
            Expr::Read(read) if read.otherwise == Otherwise::ZeroOutside || self.in_domain(read) => {}
            // It is 0, or 1, where nothing is contributed.
            Expr::Reduce(reduce)
                if reduce.explicit
                    && matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product) => {
            }
            _ if self.total(expr) => {}
            Expr::Product(_) | Expr::Plus(_) | Expr::Quotient(..) | Expr::Power(..) | Expr::Negate(_) => {
                expr.parts().0.into_iter().for_each(|part| self.partial(part, into));
            }
            Expr::Call(call) if call.when.guards.is_empty() => {
                call.arguments.iter().for_each(|part| self.partial(part, into));
            }
            Expr::Terms(parts) if parts.len() == 1 => {
                parts.iter().for_each(|part| self.partial(part, into));
            }
            _ => into.push(Factor::There(expr)),
        }
    }

    /// The sum of the products of these factors and a constant.
    fn sum_of(
        &mut self,
        scope: &Scope<'_>,
        support: &Support,
        inner: &Context,
        (all, mut constant): (&[Factor<'_>], f64),
    ) -> Result<Folded> {
        let indices: Vec<Vec<IndexId>> = all.iter().map(|factor| factor.indices()).collect();
        let mut summed: Vec<IndexId> = Vec::new();
        for index in scope.over {
            if inner.dim(*index).is_some_and(|dim| dim != Dim::ROWS) {
                if indices.iter().any(|own| own.contains(index)) {
                    summed.push(*index);
                } else {
                    let size = self.size(*index);
                    constant *= size as f64;
                    if size == 0 {
                        return self.fold_rows(scope, support, Block::absent(), Operation::Sum);
                    }
                }
            }
        }
        let drop: Vec<Dim> = summed.iter().map(|index| Dim::of(*index)).collect();
        let Some(rows) = &support.rows else {
            let streamed = is_streamed(all, &indices, &summed);
            let blocks = all.iter().map(|factor| {
                self.streamed = streamed && matches!(factor, Factor::When(_));
                self.factor(scope.node, *factor, inner)
            });
            let blocks: Result<Vec<Block>> = blocks.collect();
            let (blocks, order) =
                (blocks?, scope.own.iter().map(|index| Dim::of(*index)).collect::<Vec<_>>());
            let scale = constant * self.repeated(&blocks, &drop);
            let what = Contraction { scope: scope.node, drop: &drop, order: &order, scale, power: None };
            let block = contract(self, blocks, what)?;
            return Ok(Folded { rows: None, block, zero: false });
        };
        let factors = Factors { all, indices: &indices, summed: &summed };
        // a (x + y) is a x + a y for finite numbers only: others are multiplied before anything is summed.
        // And a number that is large by itself overflows only where it is multiplied before what makes it small.
        let extreme = |factor: &Factor<'_>| {
            matches!(factor, Factor::Times(Expr::Number(_)) | Factor::Over(Expr::Number(_)))
        };
        let extreme = all.len() > 2 && all.iter().any(extreme);
        let groups = if self.exact.contains(&scope.node) && (extreme || !summed.is_empty()) {
            vec![(0..all.len()).collect()]
        } else {
            linked(&indices, &summed)
        };
        let split = groups.len() > 1 && (extreme || !summed.is_empty());
        let parts = self.parts(scope.node, &factors, groups, rows, inner)?;
        let folded = self.sum_rows(scope, support, rows, parts, constant)?;
        if split {
            self.suspect(scope.node, &folded.block, Doubt::NotFinite);
        }
        Ok(folded)
    }

    /// How often blocks are summed along dimensions that none of them has: an index leaves no trace in a guard that always holds.
    fn repeated(&self, blocks: &[Block], drop: &[Dim]) -> f64 {
        let none = |dim: &&Dim| blocks.iter().all(|block| block.position(**dim).is_none());
        drop.iter().filter(none).filter_map(|dim| dim.index()).map(|index| self.size(index) as f64).product()
    }

    /// The products of groups of factors, each summed over what is its own.
    fn parts(
        &mut self,
        scope: u64,
        factors: &Factors<'_, '_>,
        groups: Vec<Vec<usize>>,
        rows: &Arc<Rows>,
        inner: &Context,
    ) -> Result<Vec<Beside>> {
        let Factors { all, indices, summed } = factors;
        let drop: Vec<Dim> = summed.iter().map(|index| Dim::of(*index)).collect();
        let mut parts: Vec<Beside> = Vec::new();
        for group in groups {
            let own = distinct(group.iter().flat_map(|at| indices[*at].iter().copied()).collect());
            let tagged = match (group.as_slice(), all.get(group.first().copied().unwrap_or(0))) {
                ([_], Some(Factor::Times(Expr::Read(read)))) => rows.tag(read.node.number()).is_some(),
                _ => false,
            };
            // A slab is taken as it stands, so nothing of it may be summed here.
            if let ([at], false) = (group.as_slice(), tagged)
                && !own.iter().any(|index| summed.contains(index))
                && let Some(part) = self.whole_slabs(all[*at], inner)?
            {
                parts.push(part);
                continue;
            }
            let projected =
                if tagged { Some((Arc::clone(rows), None)) } else { self.projected(inner, &own)? };
            let (context, map) = match projected {
                None => (inner.with_rows(None), None),
                Some((fewer, map)) => (inner.with_rows(Some(fewer)), map),
            };
            let blocks: Result<Vec<Block>> =
                group.iter().map(|at| self.factor(scope, all[*at], &context)).collect();
            let drop: Vec<Dim> =
                drop.iter().copied().filter(|dim| dim.index().is_some_and(|i| own.contains(&i))).collect();
            let blocks = blocks?;
            let scale = self.repeated(&blocks, &drop);
            let what = Contraction { scope, drop: &drop, order: &[], scale, power: None };
            parts.push(Beside { block: contract(self, blocks, what)?, map });
        }
        Ok(parts)
    }

    /// A square tensor read by one index of the table and then along its other places: where it
    /// stands, with the column of that index as the way to its slabs.
    fn whole_slabs(&mut self, factor: Factor<'_>, context: &Context) -> Result<Option<Beside>> {
        let (Factor::Times(Expr::Read(read)), Some(rows)) = (factor, &context.rows) else { return Ok(None) };
        let Some(Stored::Dense(data)) = self.stored(read.tensor).cloned() else { return Ok(None) };
        // Once, for all who pick slabs of it; nothing depends on its numbers.
        data.force(self.precision, &self.pool);
        let alone = |argument: &Argument| match argument {
            Argument::At(function) => function.alone().filter(|index| context.fixed(*index).is_none()),
            Argument::Any => None,
        };
        let indices: Option<Vec<IndexId>> = read.arguments.iter().map(alone).collect();
        let Some(([first, others @ ..], column)) =
            indices.as_deref().and_then(|indices| Some((indices, rows.column(*indices.first()?)?)))
        else {
            return Ok(None);
        };
        if read.otherwise == Otherwise::Absent
            || others.iter().any(|index| rows.binds(*index))
            || self.size(*first) > rows.len
        {
            return Ok(None);
        }
        let block = self.read(read, &context.with_rows(None))?;
        if !block.values.array.same(&data)
            || block.mask.is_some()
            || block.dims.first() != Some(&Dim::of(*first))
        {
            return Ok(None);
        }
        let column = Arc::clone(column);
        let block = block.renamed(Dim::of(*first), Dim::ROWS);
        Ok(Some(Beside { block, map: Some(column) }))
    }

    fn factor(&mut self, scope: u64, factor: Factor<'_>, context: &Context) -> Result<Block> {
        match factor {
            Factor::Times(expr) => self.expr(expr, context),
            Factor::Over(expr) => {
                let divisor = self.expr(expr, context)?;
                self.suspect(scope, &divisor, Doubt::NoInverse);
                Ok(divisor.inverse())
            }
            Factor::Ratio(a, b) => {
                let (a, b) = (self.expr(a, context)?, self.expr(b, context)?);
                self.reserve_union(&[&a, &b])?;
                Ok(binary(a, b, Binary::Divide))
            }
            Factor::When(condition) => self.condition(condition, context),
            Factor::There(Expr::Reduce(reduce)) => self.any(reduce, context),
            Factor::There(expr) => Ok(self.expr(expr, context)?.presence()),
        }
    }

    /// 1 where some contribution to a sum, or to what else is folded, is present.
    fn any(&mut self, reduce: &Reduce, context: &Context) -> Result<Block> {
        let Reduce { over, when, body, .. } = reduce;
        let node = when.node.number() ^ ONLY_PRESENT;
        let scope = Scope::new(node, over, Condition::of_when(when), body, Operation::Count);
        Ok(self.nested(&scope, context)?.presence())
    }

    /// Whether all that an index may be lies one behind the other in what it names.
    fn is_interval(&self, index: IndexId) -> bool {
        match self.program.index(index).range {
            Range::Domain(_) => true,
            Range::Tuples => matches!(self.range(index), Some(Domain::Interval { .. })),
            Range::Computed => false,
        }
    }

    /// The products of the parts, summed over rows that differ in folded indices only.
    fn sum_rows(
        &mut self,
        scope: &Scope<'_>,
        support: &Support,
        rows: &Arc<Rows>,
        parts: Vec<Beside>,
        constant: f64,
    ) -> Result<Folded> {
        let kept: Vec<IndexId> =
            rows.indices.iter().copied().filter(|index| !scope.over.contains(index)).collect();
        let folds = kept.len() < rows.indices.len();
        let beside = |part: Beside| match &part.map {
            None => part.block,
            Some(map) => part.block.gathered(Dim::ROWS, map, Dim::ROWS),
        };
        let masked = parts.iter().any(|part| part.block.mask.is_some());
        if masked || !folds {
            let mut product = Block::scalar(constant);
            for part in parts {
                let block = beside(part);
                self.reserve_union(&[&product, &block])?;
                product = binary(product, block, Binary::Multiply);
            }
            return self.fold_rows(scope, support, product, Operation::Sum);
        }
        let one_sum = kept.is_empty() && !self.exact.contains(&scope.node);
        if let (true, Some(at)) = (one_sum, outer_product(&parts)) {
            // Slabs over axes of their own: what belongs to the rows of one is summed there first, and what
            // is left is a product of matrices.
            let mut others = parts;
            let first = others.remove(at);
            let (Some(map), count) = (first.map, first.block.size(Dim::ROWS)) else {
                return Ok(Folded { rows: None, block: Block::scalar(0.0), zero: false });
            };
            let groups = self.by_group(rows, &map, count);
            let sums = self.scatter_sum(others, rows, &groups, constant)?;
            let drop = [Dim::ROWS];
            let what = Contraction { scope: scope.node, drop: &drop, order: &[], scale: 1.0, power: None };
            let block = contract(self, vec![first.block, sums], what)?;
            // An element that no row has is multiplied by 0.
            self.suspect(scope.node, &block, Doubt::NotFinite);
            let block = if rows.len == 0 { block.vanished() } else { block };
            return Ok(Folded { rows: None, block, zero: false });
        }
        if kept.is_empty() {
            // One sum over all rows.
            let mut blocks = vec![Block::same(constant, vec![Dim::ROWS], vec![rows.len])];
            blocks.extend(parts.into_iter().map(beside));
            let block = folded(blocks, &[Dim::ROWS], Folding::Sum);
            let block = if rows.len == 0 { block.vanished() } else { block };
            return Ok(Folded { rows: None, block, zero: false });
        }
        // All elements of the index that is kept, where most of them occur.
        if let ([index], true) = (kept.as_slice(), scope.fill)
            && let Some(column) = rows.column(*index)
            && self.is_interval(*index)
            && self.size(*index) <= rows.len
        {
            let groups = self.by_group(rows, &Arc::clone(column), self.size(*index));
            let block = self.scatter_sum(parts, rows, &groups, constant)?;
            return Ok(Folded { rows: None, block: block.renamed(Dim::ROWS, Dim::of(*index)), zero: false });
        }
        let (grouped, groups) = self.grouped(rows, &kept);
        let groups = self.by_group(rows, &groups, grouped.len);
        let block = self.scatter_sum(parts, rows, &groups, constant)?;
        Ok(Folded { rows: Some(grouped), block, zero: false })
    }

    /// One pass over the rows: `result[group] = Σ constant · Π parts`.
    fn scatter_sum(
        &mut self,
        parts: Vec<Beside>,
        rows: &Arc<Rows>,
        groups: &Groups,
        constant: f64,
    ) -> Result<Block> {
        let mut axes: Vec<Dim> = Vec::new();
        let mut shape: Vec<usize> = Vec::new();
        let mut order: Vec<&Beside> = parts.iter().collect();
        order.sort_by_key(|part| std::cmp::Reverse(part.block.dims.len()));
        for part in &order {
            for (dim, size) in part.block.dims.iter().zip(&part.block.shape) {
                if *dim != Dim::ROWS && !axes.contains(dim) {
                    axes.push(*dim);
                    shape.push(*size);
                }
            }
        }
        let count = groups.count();
        self.reserve(volume(&shape).saturating_mul(count))?;
        // Numbers of a row, and slabs over the axes.
        let mut numbers: Vec<View> = Vec::new();
        let mut slabs: Vec<View> = Vec::new();
        let (mut dims, mut sizes) = (vec![Dim::ROWS], vec![rows.len]);
        dims.extend(&axes);
        sizes.extend(&shape);
        for part in parts {
            let block = match &part.map {
                None => part.block,
                Some(map) => part.block.gathered(Dim::ROWS, map, Dim::ROWS),
            };
            if block.dims.iter().all(|dim| *dim == Dim::ROWS) {
                numbers.push(block.view(&[Dim::ROWS]));
            } else {
                let slab = block.expanded(&dims, &sizes).slabs();
                // What is repeated along axes of others becomes an array of its own.
                self.reserve(slab.array.len())?;
                slabs.push(slab);
            }
        }
        let segments = Segments {
            groups: Arc::clone(&groups.rows),
            inner: shape,
            numbers,
            slabs,
            constant,
            folding: Folding::Sum,
        };
        sizes[0] = count;
        Ok(Block::whole(dims, sizes.clone(), Array::of(volume(&sizes), segments)))
    }

    /// The rows in the order of their groups.
    pub(crate) fn by_group(&mut self, rows: &Arc<Rows>, groups: &Arc<Vec<u32>>, count: usize) -> Groups {
        let place = Arc::as_ptr(groups) as u64;
        let key = Key { place: (place, 8), rows: rows.id, fixed: Vec::new() };
        // The address stands for the column as long as the remembered thing holds it.
        if let Some(Thing::Groups(known)) = self.recall(&key)
            && Arc::ptr_eq(&known.of, groups)
            && known.count() == count
        {
            return known.clone();
        }
        let (start, ordered) = datarel::by_group(groups, count);
        let found = Groups { of: Arc::clone(groups), rows: Grouping::new(start, ordered) };
        self.memory.keep(key, Vec::new(), Thing::Groups(found.clone()));
        found
    }
}

/// Of slabs over different axes the one that stands for the most rows.
fn outer_product(parts: &[Beside]) -> Option<usize> {
    let axes = |part: &Beside| {
        let mut axes: Vec<Dim> = part.block.dims.iter().copied().filter(|dim| *dim != Dim::ROWS).collect();
        axes.sort_unstable();
        axes
    };
    let mut slabs = parts.iter().map(axes).filter(|axes| !axes.is_empty());
    let first = slabs.next()?;
    if slabs.all(|axes| axes == first) {
        return None;
    }
    let shared = |at: &usize| {
        let part = &parts[*at];
        part.map.is_some() && part.block.position(Dim::ROWS).is_some() && !axes(part).is_empty()
    };
    (0..parts.len()).filter(shared).min_by_key(|at| parts[*at].block.size(Dim::ROWS))
}

/// Factors linked by common summed indices.
fn linked(indices: &[Vec<IndexId>], summed: &[IndexId]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Vec<usize>, Vec<IndexId>)> = Vec::new();
    for (at, own) in indices.iter().enumerate() {
        let links: Vec<IndexId> = own.iter().copied().filter(|index| summed.contains(index)).collect();
        let (mut members, mut joint) = (vec![at], links);
        let mut others = Vec::new();
        for (group, known) in groups {
            if known.iter().any(|index| joint.contains(index)) {
                members.extend(group);
                joint.extend(known);
            } else {
                others.push((group, known));
            }
        }
        members.sort_unstable();
        others.push((members, joint));
        groups = others;
    }
    groups.into_iter().map(|(members, _)| members).collect()
}
