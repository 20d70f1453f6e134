//! Relations at rest, by id, with the indexes that joins have asked for.

use super::bits::BitRows;
use super::constants::Constants;
use super::limits::Failure;
use super::ring::{Ring, Value};
use super::rule::RelationId;
use super::search::Found;
use super::sorted::Sorted;

/// Constants and relations.
#[derive(Debug, Default)]
pub struct Database {
    /// The constants.
    pub constants: Constants,
    relations: Vec<Relation>,
    /// What is in all relations but the open one.
    settled: Size,
    /// The relation that was given out last to be changed.
    open: Option<RelationId>,
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    tuples: u64,
    bytes: u64,
}

impl Size {
    fn add(&mut self, relation: &Relation) {
        self.tuples += relation.len() as u64;
        self.bytes += relation.bytes() as u64;
    }

    fn remove(&mut self, relation: &Relation) {
        self.tuples = self.tuples.saturating_sub(relation.len() as u64);
        self.bytes = self.bytes.saturating_sub(relation.bytes() as u64);
    }
}

impl Clone for Database {
    fn clone(&self) -> Database {
        let relations = self.relations.clone();
        // A copy has no more room than it needs.
        let mut settled = Size::default();
        relations.iter().for_each(|relation| settled.add(relation));
        Database { constants: self.constants.clone(), relations, settled, open: None }
    }
}

impl Database {
    /// Without relations.
    pub fn new(constants: Constants) -> Database {
        Database { constants, ..Database::default() }
    }

    /// Adds an empty relation.
    pub fn declare(&mut self, name: impl Into<String>, arity: usize, ring: Ring) -> RelationId {
        let id = RelationId(u32::try_from(self.relations.len()).unwrap_or(u32::MAX));
        let store = Store::Sorted(Sorted::empty(arity));
        let relation = Relation {
            name: name.into(),
            arity,
            ring,
            store,
            indexes: Vec::new(),
            statistics: None,
            expected: None,
        };
        self.settled.add(&relation);
        self.relations.push(relation);
        id
    }

    /// The number of relations.
    pub fn relations(&self) -> usize {
        self.relations.len()
    }

    /// A relation.
    pub fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.0 as usize]
    }

    pub(super) fn relation_mut(&mut self, id: RelationId) -> &mut Relation {
        if self.open != Some(id) {
            self.settle();
            if let Some(relation) = self.relations.get(id.0 as usize) {
                self.settled.remove(relation);
                self.open = Some(id);
            }
        }
        &mut self.relations[id.0 as usize]
    }

    /// Counts what was changed last.
    fn settle(&mut self) {
        if let Some(relation) = self.open.take().and_then(|id| self.relations.get(id.0 as usize)) {
            self.settled.add(relation);
        }
    }

    /// What is in all relations.
    fn size(&self) -> Size {
        let mut size = self.settled;
        if let Some(relation) = self.open.and_then(|id| self.relations.get(id.0 as usize)) {
            size.add(relation);
        }
        size
    }

    /// Adds tuples, one behind the other in `rows`; values as many as tuples, or none (1 each).
    /// Tuples that are there already are joined by ⊕. For arity 0, where `rows` is empty, a call
    /// adds one tuple for each value, and one without values.
    ///
    /// # Errors
    /// [`Failure::Shape`], if constants are left over or values are not as many as tuples; [`Failure::Overflow`] of a
    /// count; [`Failure::Tuples`] beyond 2^32 tuples.
    pub fn insert(&mut self, id: RelationId, rows: &[u32], values: &[Value]) -> Result<(), Failure> {
        let relation = self.relation_mut(id);
        let arity = relation.arity;
        let len = rows.len().checked_div(arity).unwrap_or(values.len().max(1));
        if rows.len() != len * arity || !(values.is_empty() || values.len() == len) {
            return Err(Failure::Shape { relation: id, constants: rows.len(), values: values.len() });
        }
        relation.add(id, rows, values, len)
    }

    /// Removes all tuples.
    pub fn clear(&mut self, id: RelationId) {
        let relation = self.relation_mut(id);
        relation.replace(Sorted::empty(relation.arity));
    }

    /// Exchanges the tuples of two relations of the same arity and ring.
    pub fn exchange(&mut self, one: RelationId, other: RelationId) {
        self.settle();
        self.relations.swap(one.0 as usize, other.0 as usize);
    }

    /// Removes the relations that were declared last, down to so many.
    pub fn truncate(&mut self, relations: usize) {
        self.settle();
        self.relations
            .drain(relations.min(self.relations.len())..)
            .for_each(|relation| self.settled.remove(&relation));
    }

    /// The tuples of all relations.
    pub fn tuples(&self) -> u64 {
        self.size().tuples
    }

    /// The bytes of all relations with their indexes.
    pub fn bytes(&self) -> u64 {
        self.size().bytes
    }
}

/// A relation at rest.
#[derive(Debug, Clone)]
pub struct Relation {
    name: String,
    arity: usize,
    ring: Ring,
    store: Store,
    /// Further orders of the columns.
    indexes: Vec<Sorted>,
    /// The number of different constants in each place, once somebody asked.
    statistics: Option<Vec<usize>>,
    /// How many tuples it will hold, while a plan is made for relations that are not derived.
    expected: Option<f64>,
}

/// How the tuples are kept.
#[derive(Debug, Clone)]
pub(super) enum Store {
    /// In the order of the places.
    Sorted(Sorted),
    /// A binary Boolean relation that is dense among the constants that occur in it.
    Bits(BitRows),
}

impl Relation {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of places.
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// Its ring.
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// The number of tuples.
    pub fn len(&self) -> usize {
        match &self.store {
            Store::Sorted(sorted) => sorted.len(),
            Store::Bits(bits) => bits.len(),
        }
    }

    /// Whether there is no tuple.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a tuple is there.
    pub fn contains(&self, tuple: &[u32]) -> bool {
        match &self.store {
            Store::Sorted(sorted) if sorted.loose => {
                matches!(tuple, [x, y] if sorted.column(1)[sorted.group(*x)].contains(y))
            }
            Store::Sorted(sorted) => !sorted.range(tuple.iter().copied()).is_empty(),
            Store::Bits(bits) => matches!(tuple, [x, y] if bits.contains(*x, *y)),
        }
    }

    /// The value of a tuple; 1 for one of a Boolean relation.
    pub fn value(&self, tuple: &[u32]) -> Option<Value> {
        match &self.store {
            Store::Sorted(sorted) if self.ring.valued() => {
                sorted.value(sorted.range(tuple.iter().copied()).next()?)
            }
            _ => self.contains(tuple).then_some(self.ring.unit()),
        }
    }

    /// All tuples in ascending order, one behind the other.
    pub fn rows(&self) -> Vec<u32> {
        match &self.store {
            Store::Bits(bits) => bits.rows(),
            Store::Sorted(sorted) if sorted.loose => {
                let mut sorted = sorted.clone();
                sorted.settle();
                sorted.rows()
            }
            Store::Sorted(sorted) => sorted.rows(),
        }
    }

    /// The values in the order of [`Relation::rows`]; empty for a Boolean relation.
    pub fn values(&self) -> &[Value] {
        match &self.store {
            Store::Sorted(sorted) => sorted.values(),
            Store::Bits(_) => &[],
        }
    }

    /// Whether its tuples are kept as rows of bits.
    pub fn has_bits(&self) -> bool {
        matches!(self.store, Store::Bits(_))
    }

    /// Bytes in use, with all indexes.
    pub fn bytes(&self) -> usize {
        let store = match &self.store {
            Store::Sorted(sorted) => sorted.bytes(),
            Store::Bits(bits) => bits.bytes(),
        };
        store + self.indexes.iter().map(Sorted::bytes).sum::<usize>()
    }

    /// All tuples in ascending order, as columns by place.
    pub fn columns(&self) -> Vec<Vec<u32>> {
        match &self.store {
            Store::Sorted(sorted) if sorted.loose => {
                let mut sorted = sorted.clone();
                sorted.settle();
                sorted.columns()
            }
            _ => self.unordered(),
        }
    }

    /// The columns by place, tuples in whatever order.
    pub(super) fn unordered(&self) -> Vec<Vec<u32>> {
        match &self.store {
            Store::Sorted(sorted) => sorted.columns(),
            Store::Bits(bits) => bits.columns().to_vec(),
        }
    }

    /// Replaces all tuples.
    pub(super) fn replace(&mut self, sorted: Sorted) {
        self.store = Store::Sorted(sorted);
        self.indexes.clear();
        self.statistics = None;
    }

    /// Replaces all tuples; bits are kept where they take less space than numbers.
    pub(super) fn rest_bits(&mut self, id: RelationId, bits: BitRows) -> Result<(), Failure> {
        if !bits.dense() {
            return self.rest(id, &bits.columns(), &[], bits.len());
        }
        self.store = Store::Bits(bits);
        self.indexes.clear();
        self.statistics = None;
        Ok(())
    }

    /// Replaces all tuples by what a search has found; turned, if its sources are in the second place.
    pub(super) fn rest_found(&mut self, id: RelationId, found: Found, turned: bool) -> Result<(), Failure> {
        match found {
            Found::Bits(bits) if !turned => self.rest_bits(id, bits)?,
            Found::Bits(bits) => {
                let [left, right] = bits.columns();
                self.rest(id, &[right, left], &[], bits.len())?;
            }
            Found::Sorted(sorted) => self.replace(if turned { sorted.transposed() } else { sorted }),
        }
        Ok(())
    }

    /// How many tuples each constant of a place has (without a place: how many there are), where there are any; `None`
    /// where constants lie far apart.
    pub(super) fn tally(&self, place: Option<usize>) -> Option<Vec<(u32, usize)>> {
        match (&self.store, place) {
            _ if self.is_empty() => Some(Vec::new()),
            (_, None) => Some(vec![(0, self.len())]),
            (Store::Bits(bits), Some(place)) => Some(bits.tally(place)),
            (Store::Sorted(sorted), _) => sorted.folded(place, |_| 1, |count, _| count + 1),
        }
    }

    /// The values of the tuples of each constant of a place (without a place: of all), as `value` makes them, joined by
    /// ⊕ in their order: `None` there where a count overflows.
    pub(super) fn totals(
        &self,
        place: Option<usize>,
        value: impl Fn(Value) -> Value,
        ring: Ring,
    ) -> Option<Vec<(u32, Option<Value>)>> {
        let Store::Sorted(sorted) = &self.store else { return None };
        let of = |row| value(sorted.values()[row]);
        sorted.folded(place, |row| Some(of(row)), |total: Option<Value>, row| ring.plus(total?, of(row)))
    }

    /// Joins further tuples to those that are there: sums are taken in the order of arrival.
    pub(super) fn add(
        &mut self,
        id: RelationId,
        rows: &[u32],
        values: &[Value],
        more: usize,
    ) -> Result<(), Failure> {
        let len = self.len() + more;
        if u32::try_from(len).is_err() {
            return Err(Failure::Tuples { relation: id, limit: u64::from(u32::MAX) });
        }
        let mut all = self.values().to_vec();
        if self.ring.valued() {
            all.extend_from_slice(values);
            all.resize(len, self.ring.unit());
        }
        let (old, arity) = (self.rows(), self.arity.max(1));
        let joined = [&old, rows].into_iter().flat_map(|rows| rows.chunks_exact(arity));
        self.rest_rows(id, joined, &all, len)
    }

    /// Replaces all tuples by these, sorted; equal ones are joined.
    pub(super) fn rest(
        &mut self,
        id: RelationId,
        columns: &[Vec<u32>],
        values: &[Value],
        len: usize,
    ) -> Result<(), Failure> {
        let sorted = Sorted::new(self.ring, (0..self.arity).collect(), columns, values, len);
        self.replace(sorted.map_err(|tuple| Failure::Overflow { relation: id, tuple })?);
        Ok(())
    }

    /// Replaces all tuples by those of another relation of the same arity and kind of values.
    pub(super) fn copy(&mut self, other: &Relation) {
        self.store = other.store.clone();
        self.indexes.clear();
        self.statistics.clone_from(&other.statistics);
    }

    /// Replaces all tuples by these rows, sorted; equal ones are joined.
    pub(super) fn rest_rows<'a>(
        &mut self,
        id: RelationId,
        rows: impl Iterator<Item = &'a [u32]> + Clone,
        values: &[Value],
        len: usize,
    ) -> Result<(), Failure> {
        let sorted = Sorted::from_rows(self.ring, self.arity, rows, values, len);
        self.replace(sorted.map_err(|tuple| Failure::Overflow { relation: id, tuple })?);
        Ok(())
    }

    /// The number of different constants in each place.
    pub(super) fn statistics(&mut self) -> &[usize] {
        if self.statistics.is_none() {
            self.statistics = Some(match &self.store {
                Store::Bits(bits) => [0, 1].map(|place| bits.tally(place).len()).to_vec(),
                Store::Sorted(sorted) => sorted.statistics(),
            });
        }
        self.statistics.as_deref().unwrap_or(&[])
    }

    /// About how many tuples it holds or will hold, and how many different constants in each place.
    pub(super) fn size(&mut self) -> (f64, Vec<f64>) {
        if let Some(rows) = self.expected {
            // Of n tuples in a square.
            let distinct = rows.powf(1.0 / self.arity.max(1) as f64).max(1.0);
            return (rows, vec![distinct; self.arity]);
        }
        let distinct = self.statistics().iter().map(|distinct| *distinct as f64).collect();
        (self.len() as f64, distinct)
    }

    /// Plans take it to hold so many tuples.
    pub(super) fn expect(&mut self, tuples: f64) {
        self.expected = Some(tuples);
    }

    /// How many plans take it to hold.
    pub(super) fn expected(&self) -> f64 {
        self.expected.unwrap_or(self.len() as f64)
    }

    /// Plans go by what it holds.
    pub(super) fn expect_nothing(&mut self) {
        self.expected = None;
    }

    /// Makes sure that an order of the columns starts with the places `key` (in any order), then
    /// with `next`, and answers which.
    pub(super) fn index(&mut self, key: &[usize], next: &[usize]) -> IndexId {
        if let Store::Sorted(sorted) = &mut self.store {
            sorted.settle();
        }
        if let Some(id) = self.find_index(key, next) {
            return id;
        }
        let mut order: Vec<usize> = key.iter().chain(next).copied().collect();
        order.extend((0..self.arity).filter(|place| !key.contains(place) && !next.contains(place)));
        if let (Store::Sorted(sorted), [1, 0]) = (&self.store, &order[..]) {
            let mut turned = sorted.transposed();
            turned.order = order;
            self.indexes.push(turned);
            return IndexId(self.indexes.len());
        }
        let columns = self.unordered();
        let values = self.values().to_vec();
        // Tuples are different already, so that nothing is joined and nothing overflows.
        let sorted = Sorted::new(self.ring, order, &columns, &values, self.len()).unwrap_or_default();
        self.indexes.push(sorted);
        IndexId(self.indexes.len())
    }

    fn find_index(&self, key: &[usize], next: &[usize]) -> Option<IndexId> {
        let suits = |order: &[usize]| {
            let (head, tail) = order.split_at(key.len().min(order.len()));
            head.iter().all(|place| key.contains(place)) && tail.starts_with(next)
        };
        let own = match &self.store {
            Store::Sorted(sorted) => suits(&sorted.order),
            Store::Bits(_) => false,
        };
        if own {
            return Some(IndexId(0));
        }
        self.indexes.iter().position(|index| suits(&index.order)).map(|at| IndexId(at + 1))
    }

    /// An index that was made.
    pub(super) fn sorted(&self, index: IndexId) -> &Sorted {
        match (&self.store, index.0.checked_sub(1)) {
            (Store::Sorted(sorted), None) => sorted,
            (_, at) => &self.indexes[at.unwrap_or(0)],
        }
    }
}

/// One of the orders of a relation's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexId(usize);
