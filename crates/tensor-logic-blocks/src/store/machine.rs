//! The state of an evaluation: stored tensors, ranges of indices, limits, and the context in
//! which an expression is evaluated.

use crate::engine::Storage;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::block::{Block, Dim, union};
use super::doubt::Doubt;
use super::plan::{Key, Memory, Source, Stamps, Thing};
use super::relation::Relation;
use super::rows::{Indexed, Rows};
use crate::ast::{Comparison, Span};
use crate::engine::Budget;
use crate::engine::Numbers;
use crate::engine::Stop;
use crate::error::{Code, Refusal, Result};
use crate::kernels::{Array, Buffer, Pool, Precision, volume};
use crate::program::{
    Class, Component, Equation, Expr, Guard, IndexFn, IndexId, Kind, Operation, Program, Range, Stamp, Style,
    Tensor, TensorId,
};
use crate::value::{Const, Domain};

/// The value of a tensor.
#[derive(Debug, Clone)]
pub(crate) enum Stored {
    /// All elements, row-major.
    Dense(Array),
    /// The tuples that exist.
    Relation(Arc<Relation>),
}

impl Stored {
    /// Where its numbers stand in memory, and whether they are all elements. Nothing of given values: they never change.
    fn address(&self) -> Option<(usize, bool)> {
        match self {
            Stored::Dense(array) => Some((array.address(), true)),
            Stored::Relation(relation) => relation.computed().map(|values| (values.address(), false)),
        }
    }
}

/// The body of a scope with one of its sums inside.
#[derive(Debug)]
pub(crate) struct Factored {
    /// Tells it apart.
    pub(crate) node: Stamp,
    /// What folds it.
    pub(crate) operation: Operation,
    /// The product.
    pub(crate) body: Expr,
    /// The index that is summed inside.
    pub(crate) index: IndexId,
    /// The indices that are still bound outside.
    pub(crate) own: Vec<IndexId>,
    /// Those of them that are folded away.
    pub(crate) over: Vec<IndexId>,
}

/// Which elements count as present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Every tuple.
    All = 0,
    /// Those with a value above 0.
    Positive = 1,
    /// Those with another value than 0.
    NotZero = 2,
}

/// What is bound where an expression is evaluated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    /// The table of bindings; a block's [`Dim::ROWS`] runs along it.
    pub(crate) rows: Option<Arc<Rows>>,
    /// Indices that have one value.
    pub(crate) fixed: Vec<(IndexId, u32)>,
}

impl Context {
    /// The ordinal of a fixed index.
    pub(crate) fn fixed(&self, index: IndexId) -> Option<u32> {
        self.fixed.iter().find(|(i, _)| *i == index).map(|(_, ordinal)| *ordinal)
    }

    /// Whether the table binds the index.
    pub(crate) fn in_rows(&self, index: IndexId) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.binds(index))
    }

    /// The same with another table.
    pub(crate) fn with_rows(&self, rows: Option<Arc<Rows>>) -> Context {
        Context { rows, fixed: self.fixed.clone() }
    }

    /// Where something belongs that depends on these indices alone.
    pub(crate) fn key(&self, place: (u64, u8), indices: &[IndexId]) -> Key {
        let by_rows = indices.iter().any(|index| self.dim(*index) == Some(Dim::ROWS));
        let rows = self.rows.as_ref().filter(|_| by_rows).map_or(0, |rows| rows.id);
        let fixed = self.fixed.iter().copied().filter(|(index, _)| indices.contains(index)).collect();
        Key { place, rows, fixed }
    }

    /// The number of rows, 1 without a table.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.as_ref().map_or(1, |rows| rows.len)
    }

    /// The dimension along which an index runs; none if it is fixed.
    pub(crate) fn dim(&self, index: IndexId) -> Option<Dim> {
        if self.fixed(index).is_some() {
            None
        } else if self.in_rows(index) {
            Some(Dim::ROWS)
        } else {
            Some(Dim::of(index))
        }
    }
}

/// The relations that give an index its values, as they were, and the references to them.
pub(crate) type Givers = (Stamps, Vec<u64>);

/// Which square tensors one equation reads, once, and nobody else but who asks for them.
fn passing(program: &Program) -> Vec<bool> {
    let mut reads = vec![0_u32; program.tensors.len()];
    let plain: HashSet<TensorId> = program
        .components
        .iter()
        .filter(|component| matches!(component.class, Class::Plain))
        .flat_map(|component| component.tensors.iter().copied())
        .collect();
    for equation in &program.equations {
        // What is evaluated again and again reads it as often.
        let weight = if plain.contains(&equation.tensor) { 1 } else { 2 };
        equation.visit_reads(&mut |read, _| reads[read.tensor.0 as usize] += weight);
    }
    let once = |(id, tensor): (u32, &Tensor)| {
        reads[id as usize] == 1
            && tensor.style == Style::Square
            && tensor.kind != Kind::Count
            && plain.contains(&TensorId(id))
    };
    (0..).zip(&program.tensors).map(once).collect()
}

/// The levels of a recursion whose tuples hang on each other without a circle.
#[derive(Debug)]
pub(crate) struct Levels {
    /// How many there are.
    pub(crate) count: u32,
    /// The relations of which the first place is the level.
    pub(crate) steps: Vec<TensorId>,
}

impl Levels {
    /// The index of an equation that ranges over the levels.
    pub(crate) fn index(&self, equation: &Equation) -> Option<IndexId> {
        equation.terms.first()?.when.guards.iter().find_map(|guard| match guard {
            Guard::Read(read) if self.steps.contains(&read.tensor) => {
                read.arguments.first()?.function()?.alone()
            }
            _ => None,
        })
    }
}

/// The coefficients of one tensor's elements in another's, of a component that is linear in itself.
#[derive(Debug, Clone)]
pub(crate) struct Coefficients {
    /// The hidden tensor that holds them, as a component of its own.
    pub(crate) component: Component,
    pub(crate) tensor: TensorId,
    /// Whose elements they make, and of whose.
    pub(crate) head: TensorId,
    pub(crate) read: TensorId,
}

/// The coefficients of components that are linear in themselves, by their first tensor.
pub(crate) type Linear = HashMap<TensorId, Vec<Coefficients>>;

/// The state of an evaluation.
pub(crate) struct Machine {
    /// The program.
    pub(crate) program: Arc<Program>,
    /// Square tensors that one equation reads, once: they need not be computed on their own.
    pub(crate) passing: Vec<bool>,
    /// Stored tensors, with a stamp that changes whenever the value does.
    pub(crate) tensors: Vec<Option<(Stored, u64)>>,
    /// Which of them stands where in memory, and whether all its elements do; or stood, before it was stored anew.
    addresses: HashMap<(usize, bool), TensorId>,
    /// What parameters of the component at hand are to which its equations add something.
    pub(crate) starts: BTreeMap<TensorId, Arc<Vec<f64>>>,
    /// What each index ranges over at the moment, with a stamp.
    ranges: Vec<Option<(Domain, u64)>>,
    /// Components that are done level by level, by their first tensor.
    pub(crate) levels: HashMap<TensorId, Arc<Levels>>,
    /// The matrices of components that are linear in themselves.
    pub(crate) linear: Linear,
    /// How many tuples of the program one of a tensor's stands for, where that is not one; of square ones, all of it.
    pub(crate) blocks: BTreeMap<TensorId, u64>,
    /// Limits.
    pub(crate) budget: Budget,
    /// Forced storage.
    pub(crate) storage: Storage,
    /// The type of all numbers.
    pub(crate) precision: Precision,
    /// Memory that is used again.
    pub(crate) pool: Arc<Pool>,
    /// Tables by indices of theirs.
    pub(crate) indexed: Indexed,
    /// Scopes whose products are formed entry by entry, because not all their numbers are finite.
    pub(crate) exact: HashSet<u64>,
    /// Scopes with a sum inside that is taken first, by their numbers and what they bind.
    pub(crate) factored: HashMap<(u64, Vec<IndexId>), Option<Arc<Factored>>>,
    /// Comparisons of indices, numbered.
    pub(crate) comparisons: HashMap<(Comparison, IndexFn, IndexFn), u64>,
    /// What is summed inside of the scope at hand, for the notes.
    pub(crate) inside: Vec<IndexId>,
    /// Whether what the next conditions make is folded at once: then it takes no room.
    pub(crate) streamed: bool,
    /// Numbers with the scopes that they were taken in, and what must not be among them.
    pub(crate) suspects: Vec<(u64, Array, Doubt)>,
    /// Bytes of square tensors.
    pub(crate) bytes: u64,
    /// Tuples of relations that are finished.
    pub(crate) tuples: u64,
    /// The dimensions of the left side of the equation at hand, in its order.
    pub(crate) wanted: Vec<Dim>,
    /// The left side of the equation at hand, for refusals.
    pub(crate) head: Span,
    /// What is remembered between evaluations.
    pub(crate) memory: Memory,
    /// The values of indices that take those of tuples: what they came from, and their ordinals.
    pub(crate) tuple_sources: HashMap<IndexId, (Givers, Vec<u32>)>,
    /// Orders of contraction, by the spaces of the factors and what is summed.
    pub(crate) orders: HashMap<super::plan::Network, Vec<(usize, usize)>>,
    /// What equations contribute to the steps of a recursion.
    pub(crate) records: super::records::Records,
    /// What makes each tensor, where it is recorded.
    pub(crate) slots: Vec<super::plan::Slot>,
    /// What an equation asks for, if it is about to be recorded.
    pub(crate) watched: RefCell<Option<super::plan::Watch>>,
    /// The number that was given out when a range changed the last time.
    pub(crate) ranged: u64,
    /// Whether a finished tensor may wait until somebody asks for its numbers, and how many do.
    pub(crate) defers: bool,
    pub(crate) deferred: usize,
    /// How often somebody asked for the numbers of an array.
    pub(crate) looks: Cell<u64>,
    /// Of the component at hand, what nobody else reads, and of that what was not written down.
    pub(crate) unread: Vec<TensorId>,
    pub(crate) left_out: Vec<TensorId>,
    /// An array without entries.
    pub(crate) nothing_there: Array,
    /// The last number given out.
    pub(crate) numbers: u64,
    /// What ends it.
    pub(crate) stop: Stop,
    /// What is noted of the work, if somebody wants to know.
    pub(crate) notes: Option<Box<super::notes::Notes>>,
}

impl Machine {
    /// The state before anything is evaluated.
    pub(crate) fn new(
        program: Arc<Program>,
        budget: Budget,
        storage: Storage,
        precision: Precision,
        pool: Arc<Pool>,
    ) -> Machine {
        let tensors = program.tensors.iter().map(|_| None).collect();
        let ranges = program.indices.iter().map(|index| match &index.range {
            Range::Domain(domain) => Some((domain.clone(), 0)),
            Range::Tuples | Range::Computed => None,
        });
        let ranges = ranges.collect();
        let slots = program.tensors.iter().map(|_| super::plan::Slot::default()).collect();
        Machine {
            passing: passing(&program),
            program,
            tensors,
            addresses: HashMap::new(),
            ranges,
            linear: Linear::default(),
            levels: HashMap::new(),
            blocks: BTreeMap::new(),
            budget,
            storage,
            precision,
            pool,
            exact: HashSet::new(),
            factored: HashMap::new(),
            comparisons: HashMap::new(),
            inside: Vec::new(),
            streamed: false,
            indexed: Indexed::default(),
            suspects: Vec::new(),
            bytes: 0,
            tuples: 0,
            wanted: Vec::new(),
            head: Span::default(),
            memory: Memory::new(budget.bytes),
            tuple_sources: HashMap::new(),
            orders: HashMap::new(),
            records: super::records::Records::default(),
            starts: BTreeMap::new(),
            slots,
            watched: RefCell::new(None),
            ranged: 0,
            defers: false,
            deferred: 0,
            looks: Cell::new(0),
            unread: Vec::new(),
            left_out: Vec::new(),
            nothing_there: Array::truths(Vec::new()),
            numbers: 0,
            stop: Stop::default(),
            notes: None,
        }
    }

    /// Computes an array, and what it needs.
    pub(crate) fn force(&self, array: &Array) -> Buffer {
        self.looks.set(self.looks.get() + 1);
        array.force(self.precision, &self.pool)
    }

    /// Computes, of the tensors that wait, those that are asked for and what they need: together, so that what only they
    /// read of each other need not be stored. They come in the order of their components.
    pub(crate) fn settle<'c>(
        &mut self,
        components: impl Iterator<Item = &'c Component>,
        asked: impl Fn(TensorId) -> bool,
    ) {
        if std::mem::take(&mut self.deferred) == 0 {
            return;
        }
        let waiting = components.flat_map(|component| &component.tensors).filter_map(|id| {
            let Some(Stored::Dense(array)) = self.stored(*id) else { return None };
            array.is_waiting().then(|| (array, asked(*id)))
        });
        let waiting: Vec<(&Array, bool)> = waiting.collect();
        Array::force_all(&waiting, self.precision, &self.pool);
    }

    /// The numbers of an array.
    pub(crate) fn numbers(&self, array: &Array) -> Numbers {
        match self.force(array) {
            Buffer::Numbers(numbers) => numbers,
            truths @ Buffer::Truths(_) => truths.numbers::<f64>().into(),
        }
    }

    /// The values of a block over its dimensions.
    pub(crate) fn values(&self, block: &Block) -> Arc<Vec<f64>> {
        self.numbers(&block.array()).doubles()
    }

    /// Where a block is present, over these dimensions; `None`: everywhere.
    pub(crate) fn presence(&self, block: &Block, dims: &[Dim], shape: &[usize]) -> Option<Arc<Vec<bool>>> {
        let mask = block.mask.as_ref()?.expanded(dims, shape).array();
        match self.force(&mask) {
            Buffer::Truths(truths) => Some(truths),
            numbers => Some(Arc::new(numbers.numbers::<f64>().iter().map(|value| *value != 0.0).collect())),
        }
    }

    /// These numbers as an array of the type that is computed with.
    pub(crate) fn given_array(&self, values: &[f64]) -> Array {
        Array::of_doubles(values, self.precision, &self.pool)
    }

    /// Remembers numbers that make a scope's products wrong if they are what is doubted.
    pub(crate) fn suspect(&mut self, scope: u64, numbers: &Block, doubt: Doubt) {
        self.suspect_array(scope, numbers.values.array.clone(), doubt);
    }

    /// The same, of an array.
    pub(crate) fn suspect_array(&mut self, scope: u64, numbers: Array, doubt: Doubt) {
        self.suspects.push((scope, numbers, doubt));
    }

    /// Whether numbers are what they must not be: the scopes that it came from are exact from
    /// now on, and what was made since the last call is to be made again.
    pub(crate) fn must_repeat(&mut self) -> bool {
        let mut found = false;
        for (scope, array, doubt) in std::mem::take(&mut self.suspects) {
            let fine = match self.force(&array) {
                Buffer::Numbers(Numbers::Double(values)) => doubt.dispelled(&values),
                Buffer::Numbers(Numbers::Single(values)) => doubt.dispelled(&values),
                Buffer::Truths(_) => true,
            };
            if !fine && self.exact.insert(scope) {
                found = true;
            }
        }
        if found {
            // Something may have been decided by numbers that are none.
            self.memory.clear();
        }
        found
    }

    /// A number that was not given out before.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// About how many bytes are kept from one evaluation to the next.
    pub(crate) fn kept_bytes(&self) -> usize {
        let stored = self.tensors.iter().flatten().map(|(stored, _)| match stored {
            Stored::Dense(array) => 8 * array.len(),
            Stored::Relation(relation) => (8 + 4 * relation.columns.len()) * relation.len,
        });
        self.memory.bytes() + stored.sum::<usize>()
    }

    /// The stored value of a tensor.
    pub(crate) fn stored(&self, tensor: TensorId) -> Option<&Stored> {
        self.tensors.get(tensor.0 as usize)?.as_ref().map(|(stored, _)| stored)
    }

    /// The stamp of a tensor's value.
    pub(crate) fn stamp(&self, tensor: TensorId) -> u64 {
        self.tensors.get(tensor.0 as usize).and_then(|slot| slot.as_ref()).map_or(0, |(_, stamp)| *stamp)
    }

    /// The tensor that an array is stored as, or the relation whose values it is.
    pub(crate) fn place_of(&self, array: &Array, is_dense: bool) -> Option<TensorId> {
        let id = *self.addresses.get(&(array.address(), is_dense))?;
        (self.stored(id)?.address() == Some((array.address(), is_dense))).then_some(id)
    }

    /// Notes where a tensor is stored. Of several that are stored as one it is the first.
    pub(crate) fn note_address(&mut self, id: TensorId) {
        if self.addresses.len() > 4 * self.tensors.len() + 64 {
            let mut addresses = std::mem::take(&mut self.addresses);
            addresses.retain(|address, id| self.stored(*id).and_then(Stored::address) == Some(*address));
            self.addresses = addresses;
        }
        let Some(address) = self.stored(id).and_then(Stored::address) else { return };
        let known = self.addresses.get(&address).copied().filter(|known| *known < id);
        if known.and_then(|known| self.stored(known)).and_then(Stored::address) != Some(address) {
            self.addresses.insert(address, id);
        }
    }

    /// Stores a value.
    pub(crate) fn store(&mut self, tensor: TensorId, stored: Stored) {
        let stamp = self.number();
        if let Some(slot) = self.tensors.get_mut(tensor.0 as usize) {
            *slot = Some((stored, stamp));
        }
        self.note_address(tensor);
    }

    /// Forgets a value.
    pub(crate) fn forget(&mut self, tensor: TensorId) {
        if let Some(slot) = self.tensors.get_mut(tensor.0 as usize) {
            *slot = None;
        }
    }

    /// Counts what a component holds that need not be made anew.
    pub(crate) fn count(&mut self, component: &Component) {
        for id in &component.tensors {
            match self.stored(*id) {
                Some(Stored::Dense(data)) => self.bytes += 8 * data.len() as u64,
                Some(Stored::Relation(_)) | None => {}
            }
            self.tuples = self.tuples.saturating_add(self.tuples_of(*id));
        }
    }

    /// How many tuples a tensor holds that the program derives.
    pub(crate) fn tuples_of(&self, id: TensorId) -> u64 {
        let block = self.blocks.get(&id).copied();
        match (self.stored(id), self.program.tensor(id).style) {
            (Some(Stored::Relation(relation)), Style::Round) => {
                (relation.len as u64).saturating_mul(block.unwrap_or(1))
            }
            (Some(_), Style::Square) => block.unwrap_or(0),
            (Some(Stored::Dense(_)), Style::Round) | (None, _) => 0,
        }
    }

    /// What an index ranges over; nothing if that is unknown.
    pub(crate) fn range(&self, index: IndexId) -> Option<&Domain> {
        self.ranges.get(index.0 as usize)?.as_ref().map(|(domain, _)| domain)
    }

    /// Sets what an index ranges over.
    pub(crate) fn set_range(&mut self, index: IndexId, domain: Domain) {
        if self.range(index) != Some(&domain) {
            let stamp = self.number();
            self.ranged = stamp;
            if let Some(slot) = self.ranges.get_mut(index.0 as usize) {
                *slot = Some((domain, stamp));
            }
        }
    }

    /// The stamp of what something is made from.
    pub(crate) fn source_stamp(&self, source: Source) -> u64 {
        match source {
            Source::Tensor(tensor) => self.stamp(tensor),
            Source::Tuples(tensor) => match self.stored(tensor) {
                Some(Stored::Relation(relation)) => relation.tuples,
                _ => self.stamp(tensor),
            },
            Source::Range(index) => self
                .ranges
                .get(index.0 as usize)
                .and_then(|slot| slot.as_ref())
                .map_or(0, |(_, stamp)| *stamp),
        }
    }

    /// The stamps of what a thing is made from.
    pub(crate) fn stamps(&self, sources: impl IntoIterator<Item = Source>) -> Stamps {
        sources.into_iter().map(|source| (source, self.source_stamp(source))).collect()
    }

    /// A remembered thing that is still right.
    pub(crate) fn recall(&self, key: &Key) -> Option<&Thing> {
        let (stamps, thing) = self.memory.find(key, |source| self.source_stamp(source))?;
        if let Some(watch) = self.watched.borrow_mut().as_mut() {
            watch.recalled(stamps, thing);
        }
        Some(thing)
    }

    /// The number of values of an index.
    pub(crate) fn size(&self, index: IndexId) -> usize {
        self.range(index).map_or(0, Domain::len)
    }

    /// The number of bindings of some indices.
    pub(crate) fn bindings<'i>(&self, indices: impl IntoIterator<Item = &'i IndexId>) -> usize {
        indices.into_iter().fold(1, |all: usize, index| all.saturating_mul(self.size(*index)))
    }

    /// The size of a dimension.
    pub(crate) fn dim_size(&self, dim: Dim, context: &Context) -> usize {
        dim.index().map_or_else(|| context.row_count(), |index| self.size(index))
    }

    /// The value of an index at a position.
    pub(crate) fn value(&self, index: IndexId, ordinal: u32) -> Option<Const> {
        self.range(index)?.value(ordinal as usize)
    }

    /// Whether the index is one whose positions are asked for (`concat`).
    fn ordinal(&self, index: IndexId, value: Option<Const>) -> Option<usize> {
        self.range(index)?.ordinal(value?)
    }

    /// The value of an index function where `ordinal` gives positions of indices.
    pub(crate) fn function(
        &self,
        function: &IndexFn,
        ordinal: &impl Fn(IndexId) -> Option<u32>,
    ) -> Option<Const> {
        let value = |index: IndexId| self.value(index, ordinal(index)?);
        function.evaluate(&value, &|index| self.ordinal(index, value(index)))
    }

    /// Refuses an array of so many elements that it does not fit.
    pub(crate) fn reserve(&self, elements: usize) -> Result<()> {
        let bytes = (elements as u128).saturating_mul(8);
        if bytes > u128::from(self.budget.bytes) || elements > isize::MAX as usize / 16 {
            return Err(self.too_large(bytes));
        }
        Ok(())
    }

    /// Refuses the joint space of blocks if an array over it does not fit.
    pub(crate) fn reserve_union(&self, blocks: &[&Block]) -> Result<()> {
        self.reserve(volume(&union(blocks).1))
    }

    /// The refusal of an array of this many bytes.
    pub(crate) fn too_large(&self, bytes: u128) -> Refusal {
        let limit = self.budget.bytes;
        let message = format!("this needs {bytes} bytes, and {limit} are allowed (`--max-bytes`)");
        let help = "smaller domains, round brackets where few elements exist, or a higher `--max-bytes`";
        Refusal::new(Code::TooLarge, self.head, message).help(help)
    }

    /// Refuses a table of bindings of so many rows that it does not fit.
    pub(crate) fn reserve_rows(&self, rows: usize, columns: usize) -> Result<()> {
        let bytes = (rows as u128).saturating_mul(4 * (columns as u128 + 1));
        if rows >= u32::MAX as usize || bytes > u128::from(self.budget.bytes) {
            return Err(self.too_large(bytes));
        }
        Ok(())
    }
}

/// The positions of the indices of a product space, one column each, in row-major order.
pub(crate) fn product_columns(sizes: &[usize]) -> Vec<Vec<u32>> {
    let total: usize = sizes.iter().product();
    let mut columns = Vec::with_capacity(sizes.len());
    let mut block = total;
    for size in sizes {
        block /= (*size).max(1);
        let mut column = Vec::with_capacity(total);
        while column.len() < total {
            for value in 0..*size as u32 {
                column.extend(std::iter::repeat_n(value, block));
            }
        }
        columns.push(column);
    }
    columns
}

/// The indices of an index function, each once.
pub(crate) fn indices_of(function: &IndexFn) -> Vec<IndexId> {
    let mut found = Vec::new();
    function.visit(&mut |index| {
        if !found.contains(&index) {
            found.push(index);
        }
    });
    found
}
