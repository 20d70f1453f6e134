//! The support of a scope: which bindings its guards and round reads admit.
//!
//! Every condition can be asked in two ways: *list the bindings that satisfy you* (a relation is
//! a table, `i - j <= 5` an interval for j once i is bound) and *which of these survive*. What is
//! worth listing becomes a table of bindings ([`Rows`]); the rest is a mask over dense axes or
//! over the rows. An index without a domain of its own (bound by tuples, or computed) is always
//! in the table.

use std::sync::Arc;

use datarel::NONE;

use super::block::{Block, Dim, binary, union};
use super::machine::{Context, Counts, Machine, Stored, indices_of, product_columns};
use super::notes::Found;
use super::plan::{Key, Source, Stamps, Thing};
use super::rows::Rows;
use super::scope::Scope;
use crate::ast::Comparison;
use crate::error::Result;
use crate::kernels::{Binary, volume};
use crate::linear::linear;
use crate::program::{
    Argument, Expr, Guard, IndexFn, IndexId, Operation, Otherwise, Range, Read, Sense, TensorId, When,
};
use crate::value::{Const, Domain};
use crate::walk::{expr_indices, guard_indices, read_indices};

/// Something that must hold for a binding.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Condition<'p> {
    /// A guard.
    Guard(&'p Guard),
    /// A round read in the body.
    Present(&'p Read),
    /// A square read in the body that is 0 where the relation has no tuple: may be listed, need
    /// not hold.
    Listed(&'p Read),
    /// `not R(…)` in the body.
    Missing(&'p Read),
    /// Guards with indices of their own: those of them that mention one.
    Some(&'p When),
}

/// The bindings that a scope admits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Support {
    /// The table of bindings, if any index is in one.
    pub(crate) rows: Option<Arc<Rows>>,
    /// The conditions that the table does not settle, by position.
    pub(crate) rest: Vec<usize>,
    /// The ranges of indices that guards compute.
    ranges: Vec<(IndexId, Domain)>,
}

/// A table, and which row of another became which of it (`None`: the same rows).
pub(crate) type Projected = (Arc<Rows>, Option<Arc<Vec<u32>>>);

/// Below this many bindings everything is dense.
const SMALL: usize = 1024;
/// A join of two tables has more rows than this before all are joined together.
const MANY: usize = 1 << 14;
/// A table is taken where it has at most this share of all bindings.
const SHARE: usize = 4;

/// The free indices of an expression, each once.
pub(crate) fn free(expr: &Expr) -> Vec<IndexId> {
    let mut found = Vec::new();
    expr_free(expr, &mut |index| found.push(index));
    distinct(found)
}

fn expr_free(expr: &Expr, visit: &mut dyn FnMut(IndexId)) {
    let (parts, when) = expr.parts();
    let over = if let Expr::Reduce(reduce) = expr { reduce.over.as_slice() } else { &[] };
    let mut open = except(over, visit);
    if parts.is_empty() {
        return expr_indices(expr, &mut open);
    }
    parts.into_iter().for_each(|part| expr_free(part, &mut open));
    if let Some(when) = when {
        let mut open = except(&when.exists, &mut open);
        when.guards.iter().for_each(|guard| guard_free(guard, &mut open));
    }
}

fn except<'v>(own: &'v [IndexId], visit: &'v mut dyn FnMut(IndexId)) -> impl FnMut(IndexId) + 'v {
    |index| {
        if !own.contains(&index) {
            visit(index);
        }
    }
}

fn guard_free(guard: &Guard, visit: &mut dyn FnMut(IndexId)) {
    match guard {
        Guard::Compare(_, a, b) => [a, b].into_iter().for_each(|side| expr_free(side, visit)),
        _ => guard_indices(guard, visit),
    }
}

/// The guards that mention an index that is their own.
fn with_own(when: &When) -> impl Iterator<Item = &Guard> {
    when.guards.iter().filter(|guard| mentions(guard, &when.exists))
}

/// Whether a guard mentions one of these indices.
fn mentions(guard: &Guard, indices: &[IndexId]) -> bool {
    let mut found = false;
    guard_free(guard, &mut |index| found |= indices.contains(&index));
    found
}

/// Sorts and drops repetitions.
pub(crate) fn distinct(mut indices: Vec<IndexId>) -> Vec<IndexId> {
    indices.sort_unstable();
    indices.dedup();
    indices
}

impl<'p> Condition<'p> {
    /// The conditions that guards are.
    pub(crate) fn of_when(when: &'p When) -> Vec<Condition<'p>> {
        let open = when.guards.iter().filter(|guard| !mentions(guard, &when.exists));
        let own = with_own(when).next().map(|_| Condition::Some(when));
        open.map(Condition::Guard).chain(own).collect()
    }

    /// What a value needs in order to be present.
    pub(crate) fn of_body(expr: &'p Expr, into: &mut Vec<Condition<'p>>) {
        match expr {
            Expr::Number(_) | Expr::Index(_) => {}
            // A group with guards of its own, which binds nothing, is there where they hold.
            Expr::Reduce(reduce) if reduce.over.is_empty() && !reduce.explicit => {
                into.extend(Condition::of_when(&reduce.when));
                Condition::of_body(&reduce.body, into);
            }
            Expr::Reduce(_) => {}
            Expr::Read(read) if read.otherwise == Otherwise::Absent => into.push(Condition::Present(read)),
            Expr::Read(_) => {}
            Expr::Missing(read) => into.push(Condition::Missing(read)),
            Expr::Terms(parts) if parts.len() != 1 => {}
            _ => {
                let (parts, when) = expr.parts();
                parts.into_iter().for_each(|part| Condition::of_body(part, into));
                into.extend(when.into_iter().flat_map(Condition::of_when));
            }
        }
    }

    /// Its free indices.
    pub(crate) fn indices(self) -> Vec<IndexId> {
        let mut found = Vec::new();
        let mut visit = |index| found.push(index);
        match self {
            Condition::Guard(guard) => guard_free(guard, &mut visit),
            Condition::Present(read) | Condition::Missing(read) | Condition::Listed(read) => {
                read_indices(read, &mut visit);
            }
            Condition::Some(when) => {
                with_own(when).for_each(|guard| guard_free(guard, &mut visit));
                found.retain(|index| !when.exists.contains(index));
            }
        }
        distinct(found)
    }

    /// The relation whose tuples it lists, if it is one.
    fn relation(self) -> Option<TensorId> {
        match self {
            Condition::Guard(Guard::Read(read)) | Condition::Present(read) | Condition::Listed(read) => {
                Some(read.tensor)
            }
            _ => None,
        }
    }

    /// The tensors that it reads.
    pub(super) fn reads(self, visit: &mut dyn FnMut(&'p Read)) {
        let mut any = |read: &'p Read, _: Sense| visit(read);
        match self {
            Condition::Guard(Guard::Read(read) | Guard::Not(read))
            | Condition::Present(read)
            | Condition::Listed(read)
            | Condition::Missing(read) => visit(read),
            Condition::Guard(Guard::Compare(_, a, b)) => {
                a.visit_reads(&mut any);
                b.visit_reads(&mut any);
            }
            Condition::Guard(Guard::CompareIndex(..) | Guard::Bind(..)) => {}
            Condition::Some(when) => when.visit_reads(&mut any),
        }
    }
}

/// What a guard says of indices alone.
pub(super) fn comparison(condition: Condition<'_>) -> Option<(Comparison, IndexFn, IndexFn)> {
    match condition {
        Condition::Guard(Guard::CompareIndex(sign, a, b)) => Some((*sign, a.clone(), b.clone())),
        Condition::Guard(Guard::Bind(index, function)) => {
            Some((Comparison::Equal, IndexFn::Index(*index), function.clone()))
        }
        _ => None,
    }
}

/// The number 1, as the body of a scope that only asks whether something exists.
static ONE: Expr = Expr::Number(1.0);

/// Whether a comparison holds.
pub(super) fn holds(sign: Comparison, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering;
    let of = match order {
        Some(Ordering::Less) => [Comparison::Less, Comparison::LessEqual, Comparison::NotEqual],
        Some(Ordering::Equal) => [Comparison::Equal, Comparison::LessEqual, Comparison::GreaterEqual],
        Some(Ordering::Greater) => [Comparison::Greater, Comparison::GreaterEqual, Comparison::NotEqual],
        None => [Comparison::NotEqual; 3],
    };
    of.contains(&sign)
}

pub(super) fn holds_const(sign: Comparison, a: Option<Const>, b: Option<Const>) -> bool {
    match (a, b) {
        (Some(Const::Int(a)), Some(Const::Int(b))) => holds(sign, Some(a.cmp(&b))),
        (Some(a), Some(b)) => match sign {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            _ => false,
        },
        _ => false,
    }
}

/// The work of finding a support.
struct Search<'p, 'c> {
    context: &'c Context,
    conditions: &'c [Condition<'p>],
    /// Indices that must be in the table.
    must: Vec<IndexId>,
    /// The table so far; `None`: nothing is listed yet.
    rows: Option<Rows>,
    done: Vec<bool>,
    ranges: Vec<(IndexId, Domain)>,
    /// What was joined, if somebody wants to know.
    steps: Vec<Found>,
}

impl Search<'_, '_> {
    /// Whether an equation that is still to be asked holds between indices of two tables.
    fn equates(&self, left: &Rows, right: &Rows) -> bool {
        self.conditions.iter().zip(&self.done).filter(|(_, done)| !**done).any(|(condition, _)| {
            let Some((Comparison::Equal, a, b)) = comparison(*condition) else { return false };
            let indices = [indices_of(&a), indices_of(&b)].concat();
            let of = |table: &Rows| indices.iter().any(|index| table.binds(*index));
            of(left) && of(right)
        })
    }

    fn bound(&self, index: IndexId) -> bool {
        self.context.fixed(index).is_some() || self.rows.as_ref().is_some_and(|rows| rows.binds(index))
    }
}

impl Machine {
    /// The support of a scope that binds `own`, under these conditions.
    pub(crate) fn support<'p>(
        &mut self,
        node: u64,
        context: &Context,
        own: &[IndexId],
        conditions: &[Condition<'p>],
        body: &[IndexId],
    ) -> Result<Support> {
        let mut relevant: Vec<IndexId> =
            conditions.iter().flat_map(|condition| condition.indices()).collect();
        relevant.extend_from_slice(body);
        relevant.extend_from_slice(own);
        let relevant = distinct(relevant);
        // Whether anything is listed may depend on numbers, and then nothing or all that can be is.
        let listed = conditions.iter().any(|condition| matches!(condition, Condition::Listed(_)));
        let key = context.key((node, if listed { 12 } else { 6 }), &relevant);
        if let Some(Thing::Support(support)) = self.recall(&key) {
            let support = support.clone();
            for (index, domain) in &support.ranges {
                self.set_range(*index, domain.clone());
            }
            return Ok(support);
        }
        let mut must: Vec<IndexId> = own
            .iter()
            .copied()
            .filter(|index| context.fixed(*index).is_none())
            .filter(|index| !matches!(self.program.index(*index).range, Range::Domain(_)))
            .collect();
        // Guards that compute an index of this scope from one of their own: both are listed, and
        // what they have of their own goes again in the end.
        let given = conditions;
        let mut all = conditions.to_vec();
        let mut hidden: Vec<IndexId> = Vec::new();
        let mut flat = Vec::new();
        for (at, condition) in given.iter().enumerate() {
            let Condition::Some(when) = condition else { continue };
            if with_own(when).any(|guard| matches!(guard, Guard::Bind(index, _) if must.contains(index))) {
                flat.push(at);
                hidden.extend(&when.exists);
                all.extend(with_own(when).map(Condition::Guard));
            }
        }
        if !flat.is_empty() {
            let forced = all[given.len()..].iter().flat_map(|condition| condition.indices());
            must.extend(forced.filter(|index| context.fixed(*index).is_none()).collect::<Vec<_>>());
            must.extend(&hidden);
            must = distinct(must);
            let reads = Machine::scope_reads(&all, &ONE);
            self.set_tuple_ranges(&hidden, &reads, &[]);
        }
        let conditions = all.as_slice();
        let stamps = self.support_stamps(conditions, &relevant);
        let rows = self.projected(context, &relevant)?.map(|(rows, _)| Rows::clone(&rows));
        let mut search = Search {
            context,
            conditions,
            must,
            rows,
            done: (0..conditions.len()).map(|at| flat.contains(&at)).collect(),
            ranges: Vec::new(),
            steps: Vec::new(),
        };
        self.search(&mut search, &relevant)?;
        self.note_support(node, std::mem::take(&mut search.steps), search.rows.as_ref());
        if let Some(rows) = search.rows.take() {
            let kept: Vec<IndexId> =
                rows.indices.iter().copied().filter(|index| !hidden.contains(index)).collect();
            search.rows = Some(if kept.len() == rows.indices.len() {
                rows
            } else {
                Rows::clone(&self.grouped(&Arc::new(rows), &kept).0)
            });
        }
        let open = |at: &usize| !search.done[*at] && !matches!(conditions[*at], Condition::Listed(_));
        let rest = (0..given.len()).filter(open).collect();
        let rows = search.rows.map(Arc::new);
        let support = Support { rows, rest, ranges: search.ranges };
        self.memory.keep(key, stamps, Thing::Support(support.clone()));
        Ok(support)
    }

    fn support_stamps(&self, conditions: &[Condition<'_>], relevant: &[IndexId]) -> Stamps {
        let mut sources = Vec::new();
        for condition in conditions {
            condition.reads(&mut |read| {
                let all = || self.counts(read, false) == Counts::All;
                let source = match condition {
                    Condition::Present(_) | Condition::Listed(_) if all() => Source::Tuples(read.tensor),
                    _ => Source::Tensor(read.tensor),
                };
                if !sources.contains(&source) {
                    sources.push(source);
                }
            });
        }
        let tuples = |index: &&IndexId| !matches!(self.program.index(**index).range, Range::Computed);
        sources.extend(relevant.iter().filter(tuples).map(|index| Source::Range(*index)));
        self.stamps(sources)
    }

    /// The context's table with the indices that matter only, and which row became which.
    pub(crate) fn projected(&mut self, context: &Context, relevant: &[IndexId]) -> Result<Option<Projected>> {
        let Some(rows) = &context.rows else { return Ok(None) };
        let kept: Vec<IndexId> =
            rows.indices.iter().copied().filter(|index| relevant.contains(index)).collect();
        if kept.is_empty() {
            return Ok(None);
        }
        if kept.len() == rows.indices.len() {
            return Ok(Some((Arc::clone(rows), None)));
        }
        let (grouped, groups) = self.grouped(rows, &kept);
        if grouped.len == rows.len {
            let mut same = Rows::clone(rows);
            let pairs = rows.indices.iter().zip(&rows.columns).filter(|(index, _)| kept.contains(index));
            (same.indices, same.columns) = pairs.map(|(index, column)| (*index, Arc::clone(column))).unzip();
            return Ok(Some((Arc::new(same), None)));
        }
        Ok(Some((grouped, Some(groups))))
    }

    /// The distinct rows of a table by some of its indices, and which row became which.
    pub(crate) fn grouped(&mut self, rows: &Arc<Rows>, kept: &[IndexId]) -> (Arc<Rows>, Arc<Vec<u32>>) {
        let key =
            Key { place: (rows.id, 4), rows: rows.id, fixed: kept.iter().map(|index| (*index, 0)).collect() };
        if rows.id != 0
            && let Some(Thing::Grouped(grouped, groups)) = self.recall(&key)
        {
            return (Arc::clone(grouped), Arc::clone(groups));
        }
        let index = rows.by(kept);
        let columns = kept.iter().filter_map(|index| rows.column(*index)).cloned().collect();
        let all = Rows { id: 0, len: rows.len, indices: kept.to_vec(), columns, tags: Vec::new() };
        let grouped = Arc::new(all.select(&index.firsts(), self.number()));
        let groups = Arc::new(index.into_groups());
        self.memory.keep(key, Vec::new(), Thing::Grouped(Arc::clone(&grouped), Arc::clone(&groups)));
        (grouped, groups)
    }

    fn search<'p>(&mut self, search: &mut Search<'p, '_>, relevant: &[IndexId]) -> Result<()> {
        let mut tables = self.generators(search, relevant)?;
        self.settle_ready(search)?;
        while !tables.is_empty() {
            let bound = |table: &Rows| table.indices.iter().filter(|index| search.bound(**index)).count();
            let cost = |table: &Rows| {
                let connected = bound(table) > 0 || search.rows.is_none();
                (!connected, table.indices.len() != bound(table), table.len)
            };
            let best = (0..tables.len()).min_by_key(|at| cost(&tables[*at].1)).unwrap_or(0);
            let left = search.rows.take().unwrap_or_else(Rows::unit);
            let joined = match self.join(&left, &tables[best].1, &tables, search)? {
                Some(joined) => {
                    let (at, _) = tables.remove(best);
                    search.done[at] = true;
                    self.note_joined(search, at, joined.len);
                    joined
                }
                None => self.join_all(&left, std::mem::take(&mut tables), search)?,
            };
            search.rows = Some(joined);
            self.settle_ready(search)?;
        }
        // Indices without a domain that nothing lists: computed ones once their arguments are
        // bound, then those that take the values of tuples somewhere.
        loop {
            self.settle_ready(search)?;
            let open: Vec<IndexId> =
                search.must.iter().copied().filter(|index| !search.bound(*index)).collect();
            let Some(first) = open.first().copied() else { break };
            let argument = search.conditions.iter().find_map(|condition| match condition {
                Condition::Guard(Guard::Bind(index, function)) if open.contains(index) => {
                    indices_of(function).into_iter().find(|other| !search.bound(*other) && other != index)
                }
                _ => None,
            });
            let computed = |index: &&IndexId| matches!(self.program.index(**index).range, Range::Computed);
            let next =
                argument.or_else(|| open.iter().find(|index| !computed(index)).copied()).unwrap_or(first);
            self.extend(search, next)?;
        }
        if self.storage != super::machine::Storage::Dense {
            self.propose(search, relevant)?;
        }
        Ok(())
    }

    /// The relations worth joining, as tables.
    fn generators<'p>(
        &mut self,
        search: &Search<'p, '_>,
        relevant: &[IndexId],
    ) -> Result<Vec<(usize, Arc<Rows>)>> {
        let open = relevant.iter().filter(|index| search.context.fixed(**index).is_none());
        let all = self.bindings(open);
        let mut tables = Vec::new();
        for (at, condition) in search.conditions.iter().enumerate() {
            let (Condition::Present(read) | Condition::Listed(read) | Condition::Guard(Guard::Read(read))) =
                *condition
            else {
                if let Condition::Some(when) = condition
                    && !search.done[at]
                    && let Some(table) = self.existing(when, search.context, all)?
                {
                    tables.push((at, table));
                }
                continue;
            };
            // What a guard computes is known once its arguments are: the relation is asked then.
            let computed = |index: &IndexId| {
                matches!(self.program.index(*index).range, Range::Computed) && !search.bound(*index)
            };
            if condition.indices().iter().any(computed) {
                continue;
            }
            if matches!(self.stored(read.tensor), Some(Stored::Relation(_))) {
                let counts = match condition {
                    Condition::Listed(_) => Counts::All,
                    Condition::Guard(_) => self.guard_counts(read),
                    _ => self.counts(read, false),
                };
                tables.push((at, self.table(read, counts, search.context)?));
            }
        }
        let mut listed: Vec<IndexId> = search.must.clone();
        if let Some(rows) = &search.rows {
            listed.extend(&rows.indices);
        }
        let mut taken = vec![false; tables.len()];
        loop {
            let mut changed = false;
            for (slot, (_, table)) in tables.iter().enumerate() {
                let touches = table.indices.iter().any(|index| listed.contains(index));
                let dense = self.bindings(&table.indices);
                let worth = match self.storage {
                    super::machine::Storage::Dense => false,
                    super::machine::Storage::Sparse => !table.indices.is_empty(),
                    super::machine::Storage::Auto => all > SMALL && table.len.saturating_mul(SHARE) <= dense,
                };
                if !taken[slot] && (touches || worth) {
                    taken[slot] = true;
                    changed = true;
                    listed.extend(&table.indices);
                }
            }
            if !changed {
                break;
            }
        }
        Ok(tables.into_iter().zip(taken).filter(|(_, taken)| *taken).map(|(table, _)| table).collect())
    }

    /// Which elements of a guard's relation count.
    fn guard_counts(&self, read: &Read) -> Counts {
        self.counts(read, read.otherwise != Otherwise::Absent)
    }

    /// The bindings for which guards with indices of their own hold, where they are relations and comparisons, and few
    /// of `all` bindings.
    fn existing(&mut self, when: &When, context: &Context, all: usize) -> Result<Option<Arc<Rows>>> {
        use super::machine::Storage;
        let own: Vec<Condition<'_>> = with_own(when).map(Condition::Guard).collect();
        let reads = Machine::scope_reads(&own, &ONE);
        self.set_tuple_ranges(&when.exists, &reads, &[]);
        let mut tables = Vec::new();
        for condition in &own {
            match condition {
                Condition::Guard(Guard::Read(read))
                    if matches!(self.stored(read.tensor), Some(Stored::Relation(_))) =>
                {
                    tables.push(self.table(read, self.guard_counts(read), context)?);
                }
                _ if comparison(*condition).is_some() => {}
                _ => return Ok(None),
            }
        }
        let mut head = Condition::Some(when).indices();
        head.retain(|index| context.fixed(*index).is_none());
        let dense = self.bindings(&head);
        let most = match self.storage {
            Storage::Dense => return Ok(None),
            Storage::Sparse => usize::MAX,
            Storage::Auto if all <= SMALL => return Ok(None),
            Storage::Auto => dense / SHARE,
        };
        let lists = |index: &IndexId| tables.iter().any(|table| table.binds(*index));
        if head.is_empty() || !head.iter().chain(&when.exists).all(lists) {
            return Ok(None);
        }
        let tables: Vec<&Rows> = tables.iter().map(|table| &**table).collect();
        let rows = self.together(&tables, &own, context, &head, most)?;
        Ok(rows.map(Arc::new))
    }

    fn note_joined(&self, search: &mut Search<'_, '_>, at: usize, rows: usize) {
        if let Some(relation) = search.conditions[at].relation() {
            self.note_found(&mut search.steps, Found::Joined(relation, rows));
        }
    }

    /// The rows of a table and of all others that agree, found together.
    fn join_all(
        &mut self,
        left: &Rows,
        tables: Vec<(usize, Arc<Rows>)>,
        search: &mut Search<'_, '_>,
    ) -> Result<Rows> {
        let all: Vec<&Rows> = std::iter::once(left).chain(tables.iter().map(|(_, table)| &**table)).collect();
        let indices = distinct(all.iter().flat_map(|table| table.indices.iter().copied()).collect());
        let most = self.budget.bytes / (4 * (indices.len() as u64 + 1));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let joined = self.together(&all, search.conditions, search.context, &indices, most)?;
        let joined = joined.ok_or_else(|| self.too_large(u128::from(self.budget.bytes) + 1))?;
        tables.iter().for_each(|(at, _)| search.done[*at] = true);
        let relations = tables.iter().filter_map(|(at, _)| search.conditions[*at].relation()).collect();
        self.note_found(&mut search.steps, Found::Together(relations, joined.len));
        Ok(joined)
    }

    /// The rows of two tables that agree. `None` where they are many more than either has, and what is still to be joined
    /// or compared may leave few of them.
    fn join(
        &mut self,
        left: &Rows,
        right: &Rows,
        tables: &[(usize, Arc<Rows>)],
        search: &Search<'_, '_>,
    ) -> Result<Option<Rows>> {
        let common: Vec<IndexId> = right.indices.iter().copied().filter(|index| left.binds(*index)).collect();
        let index = right.by(&common);
        let found = left.find_in(&index, &common);
        let total = found.iter().map(|group| index.rows(*group).len()).sum();
        let many = total > MANY && total / 4 > left.len + right.len;
        let many = many || self.storage == super::machine::Storage::Sparse;
        if many && (tables.len() > 1 || search.equates(left, right)) {
            return Ok(None);
        }
        self.reserve_rows(total, left.columns.len() + right.columns.len())?;
        self.stop.check(self.head)?;
        let (mut lefts, mut rights) = (Vec::with_capacity(total), Vec::with_capacity(total));
        for (row, group) in found.iter().enumerate() {
            rights.extend_from_slice(index.rows(*group));
            lefts.resize(rights.len(), row as u32);
        }
        let id = self.number();
        let mut joined = left.select(&lefts, id);
        let more = right.select(&rights, id);
        for (index, column) in more.indices.into_iter().zip(more.columns) {
            if !common.contains(&index) {
                joined.indices.push(index);
                joined.columns.push(column);
            }
        }
        joined.tags.extend(more.tags);
        Ok(Some(joined))
    }

    /// Computes indices and drops rows as far as everything needed is bound.
    fn settle_ready<'p>(&mut self, search: &mut Search<'p, '_>) -> Result<()> {
        loop {
            let mut changed = false;
            for at in 0..search.conditions.len() {
                let condition = search.conditions[at];
                if search.done[at] || matches!(condition, Condition::Listed(_)) {
                    continue;
                }
                if let Condition::Guard(Guard::Bind(index, function)) = condition
                    && !search.bound(*index)
                    && search.must.contains(index)
                {
                    if indices_of(function).iter().all(|other| search.bound(*other)) {
                        self.compute(search, *index, function)?;
                        search.done[at] = true;
                        changed = true;
                    }
                    continue;
                }
                if search.rows.is_some() && condition.indices().iter().all(|index| search.bound(*index)) {
                    self.filter(search, condition)?;
                    search.done[at] = true;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Binds an index to the values of a function of bound ones.
    fn compute(&mut self, search: &mut Search<'_, '_>, index: IndexId, function: &IndexFn) -> Result<()> {
        let rows = search.rows.take().unwrap_or_else(Rows::unit);
        let ordinal = |row: usize, other: IndexId| {
            search.context.fixed(other).or_else(|| rows.column(other).map(|column| column[row]))
        };
        let values: Vec<Option<Const>> =
            (0..rows.len).map(|row| self.function(function, &|other| ordinal(row, other))).collect();
        let domain = match self.program.index(index).range {
            Range::Domain(ref domain) => domain.clone(),
            Range::Tuples | Range::Computed => self.compact(values.iter().flatten().copied().collect()),
        };
        let column: Vec<u32> = values
            .iter()
            .map(|value| value.and_then(|value| domain.ordinal(value)).map_or(NONE, |at| at as u32))
            .collect();
        let kept: Vec<u32> = (0..rows.len as u32).filter(|row| column[*row as usize] != NONE).collect();
        let id = self.number();
        let column = kept.iter().map(|row| column[*row as usize]).collect();
        search.rows = Some(rows.select(&kept, id).with(index, column, id));
        self.set_range(index, domain.clone());
        search.ranges.push((index, domain));
        Ok(())
    }

    /// A domain that holds these values: an interval where they lie close together.
    pub(crate) fn compact(&self, mut values: Vec<Const>) -> Domain {
        let symbols = &self.program.symbols;
        values.sort_unstable_by(|a, b| symbols.compare(*a, *b));
        values.dedup();
        if let (Some(Const::Int(from)), Some(Const::Int(to))) = (values.first(), values.last()) {
            let span = to.abs_diff(*from);
            if span < 4 * values.len() as u64 + 64 {
                return Domain::Interval { from: *from, to: *to };
            }
        }
        Domain::listed(values)
    }

    /// Drops the rows for which a condition fails.
    fn filter(&mut self, search: &mut Search<'_, '_>, condition: Condition<'_>) -> Result<()> {
        let Some(rows) = search.rows.take() else { return Ok(()) };
        let id = self.number();
        let rows = Arc::new(Rows { id, ..rows });
        let context = search.context.with_rows(Some(Arc::clone(&rows)));
        let block = self.condition(condition, &context)?;
        search.rows = Some(match self.presence(&block, &[Dim::ROWS], &[rows.len]) {
            None => Rows::clone(&rows),
            Some(present) => {
                let kept: Vec<u32> = (0..rows.len as u32).filter(|row| present[*row as usize]).collect();
                let id = self.number();
                rows.select(&kept, id)
            }
        });
        Ok(())
    }

    /// Adds an index with all its values to every row.
    fn extend(&mut self, search: &mut Search<'_, '_>, index: IndexId) -> Result<()> {
        let rows = search.rows.take().unwrap_or_else(Rows::unit);
        let ordinals: Vec<u32> = match self.tuple_ordinals(index) {
            Some(ordinals) => ordinals,
            None => (0..self.size(index) as u32).collect(),
        };
        let total = rows.len.saturating_mul(ordinals.len());
        self.reserve_rows(total, rows.columns.len() + 1)?;
        let picks: Vec<u32> =
            (0..rows.len as u32).flat_map(|row| std::iter::repeat_n(row, ordinals.len())).collect();
        let column = (0..rows.len).flat_map(|_| ordinals.iter().copied()).collect();
        let id = self.number();
        search.rows = Some(rows.select(&picks, id).with(index, column, id));
        self.note_found(&mut search.steps, Found::Extended(index, total));
        Ok(())
    }

    /// Lists what comparisons of indices admit, where that is little.
    fn propose<'p>(&mut self, search: &mut Search<'p, '_>, relevant: &[IndexId]) -> Result<()> {
        let waiting: Vec<usize> = (0..search.conditions.len())
            .filter(|at| !search.done[*at])
            .filter(|at| {
                matches!(search.conditions[*at], Condition::Guard(Guard::CompareIndex(..) | Guard::Bind(..)))
            })
            .collect();
        let mut open: Vec<IndexId> = Vec::new();
        for at in &waiting {
            let unbound = search.conditions[*at].indices().into_iter().filter(|index| !search.bound(*index));
            open.extend(unbound);
        }
        let open = distinct(open);
        if open.is_empty() {
            return Ok(());
        }
        let known = search.rows.as_ref().map_or(1, |rows| rows.len);
        let dense = self.bindings(&open).saturating_mul(known);
        let all = self.bindings(relevant.iter().filter(|index| !search.bound(**index))).saturating_mul(known);
        let sparse = self.storage == super::machine::Storage::Sparse;
        if all <= SMALL && !sparse {
            return Ok(());
        }
        let mut rows = search.rows.clone().unwrap_or_else(Rows::unit);
        for (nth, index) in open.iter().enumerate() {
            let proposals = self.proposals(search, &waiting, &rows, *index);
            let total: usize = proposals.iter().map(|proposal| proposal.count()).sum();
            let last = nth + 1 == open.len();
            if last && !sparse && total.saturating_mul(SHARE) > dense && dense <= 1 << 28 {
                return Ok(());
            }
            self.reserve_rows(total, rows.columns.len() + 1)?;
            let (mut picks, mut column) = (Vec::with_capacity(total), Vec::with_capacity(total));
            for (row, proposal) in proposals.iter().enumerate() {
                proposal.each(|ordinal| column.push(ordinal));
                picks.resize(column.len(), row as u32);
            }
            let id = self.number();
            rows = rows.select(&picks, id).with(*index, column, id);
            self.note_found(&mut search.steps, Found::Listed(*index, total));
        }
        search.rows = Some(rows);
        self.settle_ready(search)
    }

    /// For every row the values of an index that comparisons with bound indices leave.
    fn proposals(
        &self,
        search: &Search<'_, '_>,
        waiting: &[usize],
        rows: &Rows,
        index: IndexId,
    ) -> Vec<Proposal> {
        // A domain as large as all integers has more values than an integer counts.
        let size = i64::try_from(self.size(index)).unwrap_or(i64::MAX);
        let from = match self.range(index) {
            Some(Domain::Interval { from, .. }) => Some(*from),
            _ => None,
        };
        let mut proposals = vec![Proposal { from: 0, to: size - 1, step: 1 }; rows.len];
        let Some(from) = from else { return proposals };
        let known = |other: IndexId| rows.binds(other) || search.context.fixed(other).is_some();
        for at in waiting {
            let Condition::Guard(guard) = search.conditions[*at] else { continue };
            let (sign, a, b) = match guard {
                Guard::CompareIndex(sign, a, b) => (*sign, a.clone(), b.clone()),
                Guard::Bind(index, function) => (Comparison::Equal, IndexFn::Index(*index), function.clone()),
                _ => continue,
            };
            let (a, b, modulus) = match (&a, &b, sign) {
                (IndexFn::Remainder(inner, modulus), rest, Comparison::Equal)
                | (rest, IndexFn::Remainder(inner, modulus), Comparison::Equal) => match **modulus {
                    IndexFn::Const(Const::Int(modulus)) if modulus > 0 => {
                        (IndexFn::clone(inner), IndexFn::clone(rest), Some(modulus))
                    }
                    _ => continue,
                },
                _ => (a, b, None),
            };
            let Some((terms, constant)) = linear(&IndexFn::Subtract(Box::new(a), Box::new(b))) else {
                continue;
            };
            let own =
                terms.iter().find(|(other, _)| *other == index).map_or(0, |(_, coefficient)| *coefficient);
            if own == 0 || terms.iter().any(|(other, _)| *other != index && !known(*other)) {
                continue;
            }
            for (row, proposal) in proposals.iter_mut().enumerate() {
                let rest = terms.iter().filter(|(other, _)| *other != index).try_fold(
                    constant,
                    |sum, (other, c)| {
                        let ordinal = search
                            .context
                            .fixed(*other)
                            .or_else(|| rows.column(*other).map(|column| column[row]))?;
                        sum.checked_add(c.checked_mul(self.value(*other, ordinal)?.int()?)?)
                    },
                );
                // own · value + rest (sign) 0, with value = ordinal + from.
                let rest = rest.and_then(|rest| rest.checked_add(own.checked_mul(from)?));
                match (rest, modulus) {
                    (None, _) => {}
                    (Some(rest), None) => proposal.compare(sign, own, rest),
                    (Some(rest), Some(modulus)) if own == 1 || own == -1 => {
                        let first = if own == 1 { rest.wrapping_neg() } else { rest };
                        proposal.congruent(first.rem_euclid(modulus), modulus);
                    }
                    _ => {}
                }
            }
        }
        proposals
    }

    /// 1, present where a condition holds.
    pub(crate) fn condition(&mut self, condition: Condition<'_>, context: &Context) -> Result<Block> {
        match condition {
            Condition::Guard(Guard::Read(read)) => Machine::holds(self, read, context),
            Condition::Present(read) => Machine::holds(self, read, context),
            Condition::Listed(_) => Ok(Block::scalar(1.0)),
            Condition::Guard(Guard::Not(read)) | Condition::Missing(read) => {
                Ok(Machine::holds(self, read, context)?.complement())
            }
            Condition::Guard(Guard::CompareIndex(sign, a, b)) => self.compare_index(*sign, a, b, context),
            Condition::Guard(Guard::Bind(index, function)) => {
                self.compare_index(Comparison::Equal, &IndexFn::Index(*index), function, context)
            }
            Condition::Guard(Guard::Compare(sign, a, b)) => {
                let (a, b) = (self.expr(a, context)?, self.expr(b, context)?);
                self.reserve_union(&[&a, &b])?;
                Ok(binary(a, b, Binary::Compare(*sign)).present_where(Comparison::Greater).presence())
            }
            Condition::Some(when) => {
                // What the guards stand in has their number itself.
                let (node, own) = (!when.node.number(), with_own(when).map(Condition::Guard).collect());
                let scope = Scope::new(node, &when.exists, own, &ONE, Operation::Max);
                self.nested(&scope, context)
            }
        }
    }

    /// A comparison of indices: made once for the ranges and the table at hand.
    fn compare_index(
        &mut self,
        sign: Comparison,
        a: &IndexFn,
        b: &IndexFn,
        context: &Context,
    ) -> Result<Block> {
        let indices = distinct([indices_of(a), indices_of(b)].concat());
        let next = self.number();
        let place = *self.comparisons.entry((sign, a.clone(), b.clone())).or_insert(next);
        let key = context.key((place, 7), &indices);
        if let Some(Thing::Block(block)) = self.recall(&key) {
            return Ok(block.clone());
        }
        let block = self.compared(sign, a, b, context)?;
        if key.fixed.is_empty() {
            let stamps = self.stamps(indices.into_iter().map(Source::Range));
            self.memory.keep(key, stamps, Thing::Block(block.clone()));
        }
        Ok(block)
    }

    fn compared(&self, sign: Comparison, a: &IndexFn, b: &IndexFn, context: &Context) -> Result<Block> {
        let (dims_a, shape_a, values_a) = self.function_values(a, context)?;
        let (dims_b, shape_b, values_b) = self.function_values(b, context)?;
        let blank = |dims: Vec<Dim>, shape: Vec<usize>| Block::same(0.0, dims, shape);
        let (left, right) = (blank(dims_a, shape_a), blank(dims_b, shape_b));
        let (dims, shape) = union(&[&left, &right]);
        self.reserve(volume(&shape))?;
        let along = |own: &Block| {
            let steps = crate::kernels::strides(&own.shape);
            dims.iter().map(|dim| own.position(*dim).map_or(0, |at| steps[at])).collect::<Vec<usize>>()
        };
        let (along_a, along_b) = (along(&left), along(&right));
        let mut mask = Vec::with_capacity(volume(&shape));
        let mut positions = vec![0; shape.len()];
        for _ in 0..volume(&shape) {
            let at = |along: &[usize]| -> usize { along.iter().zip(&positions).map(|(s, p)| s * p).sum() };
            mask.push(holds_const(sign, values_a[at(&along_a)], values_b[at(&along_b)]));
            crate::kernels::advance(&shape, &mut positions);
        }
        Ok(Block::same(1.0, dims, shape).present_at(mask))
    }

    /// Sets the ranges of indices that take the values of tuples: those at the places of `reads`
    /// (else of `nearby`) where the index stands alone or beside a constant.
    pub(crate) fn set_tuple_ranges(&mut self, indices: &[IndexId], reads: &[&Read], nearby: &[&Read]) {
        for index in indices {
            if !matches!(self.program.index(*index).range, Range::Tuples) {
                continue;
            }
            let gives = |read: &&&Read| {
                read.arguments
                    .iter()
                    .any(|argument| matches!(argument, Argument::At(f) if giver(f, *index).is_some()))
            };
            let mut givers: Vec<&Read> = reads.iter().filter(gives).copied().collect();
            if givers.is_empty() {
                givers = nearby.iter().filter(gives).copied().collect();
            }
            let source = |read: &&Read| match self.counts(read, false) {
                Counts::All => Source::Tuples(read.tensor),
                _ => Source::Tensor(read.tensor),
            };
            let mut relations: Vec<_> = givers.iter().map(source).collect();
            relations.dedup();
            // Two terms may read one relation at different places.
            let reads: Vec<u64> = givers.iter().map(|read| read.node.number()).collect();
            let stamps = (self.stamps(relations), reads);
            if self.tuple_sources.get(index).is_some_and(|(known, _)| *known == stamps) {
                continue;
            }
            let values = self.tuple_values(*index, &givers);
            let domain = self.compact(values.clone());
            let ordinals =
                values.iter().filter_map(|value| domain.ordinal(*value)).map(|at| at as u32).collect();
            self.set_range(*index, domain);
            self.tuple_sources.insert(*index, (stamps, ordinals));
        }
    }

    /// The ordinals of the values that an index takes in tuples.
    fn tuple_ordinals(&self, index: IndexId) -> Option<Vec<u32>> {
        match self.program.index(index).range {
            Range::Tuples => {
                Some(self.tuple_sources.get(&index).map_or(Vec::new(), |(_, ordinals)| ordinals.clone()))
            }
            Range::Domain(_) | Range::Computed => None,
        }
    }

    fn tuple_values(&mut self, index: IndexId, givers: &[&Read]) -> Vec<Const> {
        let mut values = Vec::new();
        for read in givers {
            let relation = self.as_relation(read, self.counts(read, false));
            for (place, argument) in read.arguments.iter().enumerate() {
                let Argument::At(function) = argument else { continue };
                let Some((sign, rest)) = giver(function, index) else { continue };
                // value = sign · index + rest, so index = sign · (value - rest).
                let offsets: Vec<Option<i64>> = match &rest {
                    None => vec![None],
                    Some(rest) => self.all_values(rest).into_iter().map(Some).collect(),
                };
                for value in relation.dictionaries.get(place).into_iter().flat_map(|values| values.iter()) {
                    for offset in &offsets {
                        let found = match (value, offset) {
                            (value, None) if sign == 1 => Some(*value),
                            (Const::Int(value), offset) => {
                                let rest = value.checked_sub(offset.unwrap_or(0));
                                rest.and_then(|rest| rest.checked_mul(sign)).map(Const::Int)
                            }
                            _ => None,
                        };
                        values.extend(found);
                    }
                }
            }
        }
        let symbols = &self.program.symbols;
        values.sort_unstable_by(|a, b| symbols.compare(*a, *b));
        values.dedup();
        values
    }

    /// All integers that an index function can have over the ranges of its indices.
    fn all_values(&self, function: &IndexFn) -> Vec<i64> {
        let indices = indices_of(function);
        let sizes: Vec<usize> = indices.iter().map(|index| self.size(*index)).collect();
        if volume(&sizes) > 1 << 20 {
            return Vec::new();
        }
        let columns = product_columns(&sizes);
        let value = |row: usize| {
            let ordinal =
                |index: IndexId| indices.iter().position(|i| *i == index).map(|at| columns[at][row]);
            self.function(function, &ordinal)?.int()
        };
        let mut values: Vec<i64> = (0..volume(&sizes)).filter_map(value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The reads of a scope that may give values to its indices.
    pub(crate) fn scope_reads<'p>(conditions: &[Condition<'p>], body: &'p Expr) -> Vec<&'p Read> {
        let mut reads = Vec::new();
        for condition in conditions {
            condition.reads(&mut |read| {
                if read.otherwise == Otherwise::Absent {
                    reads.push(read);
                }
            });
        }
        body.visit_reads(&mut |read, sense| {
            if sense == Sense::Positive && read.otherwise == Otherwise::Absent {
                reads.push(read);
            }
        });
        reads
    }
}

/// How a place gives the value of an index: `sign · index + rest`; `None` for the rest: 0.
fn giver(function: &IndexFn, index: IndexId) -> Option<(i64, Option<IndexFn>)> {
    let is = |part: &IndexFn| part.alone() == Some(index);
    let without = |part: &IndexFn| !indices_of(part).contains(&index);
    match function {
        IndexFn::Index(own) => (*own == index).then_some((1, None)),
        IndexFn::Add(a, b) if is(a) && without(b) => Some((1, Some(IndexFn::clone(b)))),
        IndexFn::Add(a, b) if is(b) && without(a) => Some((1, Some(IndexFn::clone(a)))),
        IndexFn::Subtract(a, b) if is(a) && without(b) => Some((1, Some(IndexFn::Negate(b.clone())))),
        IndexFn::Subtract(a, b) if is(b) && without(a) => Some((-1, Some(IndexFn::clone(a)))),
        _ => None,
    }
}

/// Ordinals `from, from + step, … <= to`.
#[derive(Debug, Clone, Copy)]
struct Proposal {
    from: i64,
    to: i64,
    step: i64,
}

impl Proposal {
    fn count(self) -> usize {
        if self.from > self.to { 0 } else { ((self.to - self.from) / self.step) as usize + 1 }
    }

    fn each(self, mut visit: impl FnMut(u32)) {
        let mut next = Some(self.from);
        while let Some(at) = next.filter(|at| *at <= self.to) {
            visit(at as u32);
            next = at.checked_add(self.step);
        }
    }

    /// Keeps the ordinals with `own · ordinal + rest (sign) 0`.
    fn compare(&mut self, sign: Comparison, own: i64, rest: i64) {
        if self.step != 1 || own == i64::MIN || rest == i64::MIN {
            return; // the comparison is checked afterwards
        }
        let negated = -rest;
        // own · ordinal <= bound, or >= bound.
        let mut at_most = |bound: i64| {
            if own > 0 {
                self.to = self.to.min(bound.div_euclid(own));
            } else {
                let least = bound.div_euclid(-own).saturating_neg();
                self.from = self.from.max(least);
            }
        };
        match sign {
            Comparison::LessEqual => at_most(negated),
            Comparison::Less => at_most(negated.saturating_sub(1)),
            Comparison::NotEqual => {}
            Comparison::GreaterEqual | Comparison::Greater | Comparison::Equal => {
                if sign == Comparison::Equal {
                    at_most(negated);
                }
                let bound = if sign == Comparison::Greater { negated.saturating_add(1) } else { negated };
                // own · ordinal >= bound: -own · ordinal <= -bound.
                if own > 0 {
                    self.from = self.from.max(bound.saturating_neg().div_euclid(own).saturating_neg());
                } else {
                    self.to = self.to.min(bound.saturating_neg().div_euclid(-own));
                }
            }
        }
    }

    /// Keeps the ordinals congruent to `remainder`.
    fn congruent(&mut self, remainder: i64, modulus: i64) {
        if self.step != 1 {
            return;
        }
        let ahead = (remainder - self.from).rem_euclid(modulus);
        self.from = self.from.saturating_add(ahead);
        self.step = modulus;
    }
}
