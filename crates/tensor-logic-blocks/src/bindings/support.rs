//! The support of a scope: which bindings its guards and round reads admit.
//!
//! Every condition can be asked in two ways: *list the bindings that satisfy you* (a relation is
//! a table, `i - j <= 5` an interval for j once i is bound) and *which of these survive*. What is
//! worth listing becomes a table of bindings ([`Rows`]); the rest is a mask over dense axes or
//! over the rows. An index without a domain of its own (bound by tuples, or computed) is always
//! in the table.

use std::sync::Arc;

use datarel::NONE;

use crate::ast::Comparison;
use crate::engine::Storage;
use crate::error::Result;
use crate::program::{Guard, IndexFn, IndexId, Otherwise, Range, Read, When};
use crate::store::block::Dim;
use crate::store::condition::{Condition, ONE, Support, comparison, distinct, scope_reads, with_own};
use crate::store::machine::{Context, Counts, Machine, Stored, indices_of};
use crate::store::notes::Found;
use crate::store::plan::{Key, Source, Stamps, Thing};
use crate::store::rows::Rows;
use crate::value::{Const, Domain};

/// Below this many bindings everything is dense.
pub(crate) const SMALL: usize = 1024;
/// A join of two tables has more rows than this before all are joined together.
pub(crate) const MANY: usize = 1 << 14;
/// A table is taken where it has at most this share of all bindings.
pub(crate) const SHARE: usize = 4;

/// What is remembered of a support by its tuples alone has another place than what numbers decide: by so much.
const AGAIN: u8 = 16;

/// The work of finding a support.
pub(crate) struct Search<'p, 'c> {
    pub(crate) context: &'c Context,
    pub(crate) conditions: &'c [Condition<'p>],
    /// Indices that must be in the table.
    pub(crate) must: Vec<IndexId>,
    /// The table so far; `None`: nothing is listed yet.
    pub(crate) rows: Option<Rows>,
    pub(crate) done: Vec<bool>,
    pub(crate) ranges: Vec<(IndexId, Domain)>,
    /// What was joined, if somebody wants to know.
    pub(crate) steps: Vec<Found>,
}

impl Search<'_, '_> {
    /// Whether a comparison that may leave few pairs is still to be asked of indices of two tables.
    pub(crate) fn relates(&self, left: &Rows, right: &Rows) -> bool {
        self.conditions.iter().zip(&self.done).filter(|(_, done)| !**done).any(|(condition, _)| {
            let Some((sign, a, b)) = comparison(*condition) else { return false };
            if sign == Comparison::NotEqual {
                return false;
            }
            let indices = [indices_of(&a), indices_of(&b)].concat();
            let of = |table: &Rows| indices.iter().any(|index| table.binds(*index));
            of(left) && of(right)
        })
    }

    pub(crate) fn bound(&self, index: IndexId) -> bool {
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
            let computes = |guard: &Guard| matches!(guard, Guard::Bind(index, _) if must.contains(index));
            if with_own(when).any(computes) || self.lists_beside(when, given, &must, context) {
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
            let reads = scope_reads(&all, &ONE);
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
        if let Some(rows) = search.rows.take_if(|_| !hidden.is_empty()) {
            let kept: Vec<IndexId> =
                rows.indices.iter().copied().filter(|index| !hidden.contains(index)).collect();
            search.rows = Some(Rows::clone(&self.grouped(&Arc::new(rows), &kept).0));
        }
        let open = |at: &usize| !search.done[*at] && !matches!(conditions[*at], Condition::Listed(_));
        let rest = (0..given.len()).filter(open).collect();
        let rows = search.rows.map(Arc::new);
        let mut support = Support { rows, rest, ranges: search.ranges };
        self.recognise(&key, &stamps, &mut support);
        self.memory.keep(key, stamps, Thing::Support(support.clone()));
        Ok(support)
    }

    /// Where numbers decided which tuples count, they may have decided as they did before: then the table is that of before, with
    /// all that was found for it.
    fn recognise(&mut self, key: &Key, stamps: &Stamps, support: &mut Support) {
        let tuples = |source: Source| match source {
            Source::Tensor(tensor) if matches!(self.stored(tensor), Some(Stored::Relation(_))) => {
                Source::Tuples(tensor)
            }
            source => source,
        };
        let of_tuples = self.stamps(stamps.iter().map(|(source, _)| tuples(*source)));
        if of_tuples == *stamps {
            return;
        }
        let (node, code) = key.place;
        let again = Key { place: (node, code + AGAIN), ..key.clone() };
        if let (Some(rows), Some(Thing::Support(before))) = (&support.rows, self.recall(&again))
            && before.ranges == support.ranges
            && let Some(before) = before.rows.as_ref().filter(|before| before.is_same(rows))
        {
            support.rows = Some(Arc::clone(before));
        }
        self.memory.keep(again, of_tuples, Thing::Support(support.clone()));
    }

    /// Whether guards with indices of their own list what nothing else does, for bindings of other indices: events of which
    /// `I(a, b, k), a <= t, t < b` lists the intervals `k`. They are joined then with what lists the others.
    fn lists_beside(
        &self,
        when: &When,
        given: &[Condition<'_>],
        must: &[IndexId],
        context: &Context,
    ) -> bool {
        let mut listed = Vec::new();
        for guard in with_own(when) {
            if let Guard::Read(read) = guard
                && matches!(self.stored(read.tensor), Some(Stored::Relation(_)))
            {
                listed.extend(Condition::Guard(guard).indices());
            }
        }
        let elsewhere = |index: &IndexId| {
            let lists = |condition: &&Condition<'_>| {
                matches!(condition, Condition::Present(_) | Condition::Guard(Guard::Read(_)))
            };
            given.iter().filter(lists).any(|condition| condition.indices().contains(index))
        };
        let alone = |index: &IndexId| must.contains(index) && !elsewhere(index);
        let beside = |index: &IndexId| context.fixed(*index).is_none() && !listed.contains(index);
        listed.iter().any(alone) && Condition::Some(when).indices().iter().any(beside)
    }

    fn support_stamps(&self, conditions: &[Condition<'_>], relevant: &[IndexId]) -> Stamps {
        let mut sources = Vec::new();
        for condition in conditions {
            condition.reads(&mut |read| {
                let all = || self.counts(read, false) == Counts::All;
                let source = match condition {
                    Condition::Present(_) | Condition::Listed(_) if all() => Source::Tuples(read.tensor),
                    Condition::Guard(Guard::Read(_)) if self.guard_counts(read) == Counts::All => {
                        Source::Tuples(read.tensor)
                    }
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

    fn search<'p>(&mut self, search: &mut Search<'p, '_>, relevant: &[IndexId]) -> Result<()> {
        let mut tables = self.generators(search, relevant)?;
        self.settle_ready(search)?;
        if tables.len() > 1 {
            for (_, table) in &mut tables {
                self.selected(search, table)?;
            }
        }
        while !tables.is_empty() {
            let bound = |table: &Rows| table.indices.iter().filter(|index| search.bound(**index)).count();
            let cost = |table: &Rows| {
                let connected = bound(table) > 0 || search.rows.is_none();
                (!connected, table.indices.len() != bound(table), table.len)
            };
            let best = (0..tables.len()).min_by_key(|at| cost(&tables[*at].1)).unwrap_or(0);
            let left = search.rows.take().unwrap_or_else(Rows::unit);
            let by_value = self.joined_by_value(search, &left, &tables[best].1, tables.len() == 1)?;
            let joined = match by_value {
                Some((joined, at)) => {
                    search.done[at] = true;
                    Some(joined)
                }
                None => self.join(&left, &tables[best].1, &tables, search)?,
            };
            let joined = match joined {
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
        if self.storage != Storage::Dense {
            self.propose(search, relevant)?;
        }
        Ok(())
    }

    /// Leaves of a table that is to be joined what comparisons of its own indices admit, which are not asked again.
    fn selected(&mut self, search: &mut Search<'_, '_>, table: &mut Arc<Rows>) -> Result<()> {
        for at in 0..search.conditions.len() {
            let condition = search.conditions[at];
            if search.done[at] || comparison(condition).is_none() {
                continue;
            }
            let indices = condition.indices();
            let own = |index: &IndexId| table.binds(*index);
            let fixed = |index: &IndexId| search.context.fixed(*index).is_some();
            if indices.iter().any(own) && indices.iter().all(|index| own(index) || fixed(index)) {
                let left = self.holding(search, condition, Rows::clone(table))?;
                *table = Arc::new(left);
                search.done[at] = true;
            }
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
                    Storage::Dense => false,
                    Storage::Sparse => !table.indices.is_empty(),
                    Storage::Auto => all > SMALL && table.len.saturating_mul(SHARE) <= dense,
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
        use crate::engine::Storage;
        let own: Vec<Condition<'_>> = with_own(when).map(Condition::Guard).collect();
        let reads = scope_reads(&own, &ONE);
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
        right: &Arc<Rows>,
        tables: &[(usize, Arc<Rows>)],
        search: &Search<'_, '_>,
    ) -> Result<Option<Rows>> {
        let common: Vec<IndexId> = right.indices.iter().copied().filter(|index| left.binds(*index)).collect();
        let index = self.indexed.index(right, &common);
        let found = left.find_in(&index, &common);
        let total = found.iter().map(|group| index.rows(*group).len()).sum();
        let many = total > MANY && total / 4 > left.len + right.len;
        let many = many || self.storage == Storage::Sparse;
        if many && (tables.len() > 1 || search.relates(left, right)) {
            return Ok(None);
        }
        self.reserve_rows(total, left.columns.len() + right.columns.len())?;
        self.stop.check(self.head)?;
        let (mut lefts, mut rights) = (Vec::with_capacity(total), Vec::with_capacity(total));
        for (row, group) in found.iter().enumerate() {
            rights.extend_from_slice(index.rows(*group));
            lefts.resize(rights.len(), row as u32);
        }
        Ok(Some(self.side_by_side((left, &lefts), (right, &rights), &common)))
    }

    /// These rows of two tables, each beside one of the other.
    pub(crate) fn side_by_side(
        &mut self,
        (left, lefts): (&Rows, &[u32]),
        (right, rights): (&Rows, &[u32]),
        common: &[IndexId],
    ) -> Rows {
        let id = self.number();
        let mut joined = left.select(lefts, id);
        let more = right.select_but(rights, common, id);
        joined.indices.extend(more.indices);
        joined.columns.extend(more.columns);
        joined.tags.extend(more.tags);
        joined
    }

    /// Computes indices and drops rows as far as everything needed is bound.
    pub(crate) fn settle_ready<'p>(&mut self, search: &mut Search<'p, '_>) -> Result<()> {
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

    /// Drops the rows for which a condition fails.
    fn filter(&mut self, search: &mut Search<'_, '_>, condition: Condition<'_>) -> Result<()> {
        let Some(rows) = search.rows.take() else { return Ok(()) };
        search.rows = Some(self.holding(search, condition, rows)?);
        Ok(())
    }

    /// The rows for which a condition holds.
    fn holding(&mut self, search: &Search<'_, '_>, condition: Condition<'_>, rows: Rows) -> Result<Rows> {
        let id = self.number();
        let rows = Arc::new(Rows { id, ..rows });
        let context = search.context.with_rows(Some(Arc::clone(&rows)));
        let block = self.condition(condition, &context)?;
        Ok(match self.presence(&block, &[Dim::ROWS], &[rows.len]) {
            None => Rows::clone(&rows),
            Some(present) => {
                let kept: Vec<u32> = (0..rows.len as u32).filter(|row| present[*row as usize]).collect();
                let id = self.number();
                rows.select(&kept, id)
            }
        })
    }

    /// Adds an index with all its values to every row.
    fn extend(&mut self, search: &mut Search<'_, '_>, index: IndexId) -> Result<()> {
        let rows = search.rows.take().unwrap_or_else(Rows::unit);
        let ordinals: Vec<u32> = match self.tuple_ordinals(index) {
            Some(ordinals) => ordinals,
            None => (0..self.size(index) as u32).collect(),
        };
        let id = self.number();
        let table = Rows::unit().select(&vec![0; ordinals.len()], id).with(index, ordinals, id);
        if let Some((joined, at)) = self.joined_by_value(search, &rows, &table, true)? {
            search.done[at] = true;
            self.note_found(&mut search.steps, Found::Extended(index, joined.len));
            search.rows = Some(joined);
            return Ok(());
        }
        let ordinals = table.column(index).cloned().unwrap_or_default();
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
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::Fast;
    use crate::engine::{Budget, Engine, Parameters, Request};
    use crate::function::UserFunctions;
    use crate::program::TensorId;
    use tensor_logic_core::analyse::analyse;
    use tensor_logic_core::lower::{NoFiles, Options};

    /// What numbers decide as they did before is not made again at every step, and what they decide in another way is.
    #[test]
    fn a_support_that_numbers_decide_is_recognised() {
        let facts: Vec<String> = (0..40).map(|r| format!("Next({r}, {})", 7 * r % 60)).collect();
        let text = format!(
            "r : 40\nt : 60\n{}\nW[r] ~ 1\nG[r, t] = Next(r, t) W[r]\n\
             Y[r, t] = leaky((G[r, t] | G(r, t)) + 0, 1) + W[r]\n",
            facts.join("; ")
        );
        let analysed = analyse(&text, &mut NoFiles, &UserFunctions::default(), &Options::default());
        let program = analysed.unwrap().program;
        let named = |name: &str| {
            TensorId(program.tensors.iter().position(|tensor| tensor.name == name).unwrap() as u32)
        };
        let (goals, weights) = ([named("Y")], named("W"));
        let budget = Budget { tuples: 1 << 20, bytes: 1 << 28 };
        let mut engine = Fast::default();
        let mut bytes = Vec::new();
        for round in 0..12 {
            // Now and then an element is 0 and then none, here or there.
            let value = |at: usize| match (round, at) {
                (6, 3) | (7, 8) => 0.0,
                _ => 1.0 + (round * at) as f64,
            };
            let parameters = Parameters::from([(weights, Arc::new((0..40).map(value).collect()))]);
            let request = Request { program: &program, parameters: &parameters, budget };
            let found = engine.values(&request, &goals).unwrap();
            let wanted = Fast::default().values(&request, &goals).unwrap();
            assert_eq!(found[0].doubles(), wanted[0].doubles(), "{round}");
            bytes.push(engine.sessions[0].session.machine.memory.bytes());
        }
        assert_eq!(bytes[2], bytes[5], "a step leaves nothing behind: {bytes:?}");
    }
}
