//! Arrays, the views that operations read them through, and when they are computed.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rayon::prelude::*;

use super::number::{Buffer, Number, On, Pool, Precision, strides, volume};
use super::threads::shared;
use tensor_logic_core::engine::Numbers;

/// A row-major space of numbers, computed once, when they are first asked for.
#[derive(Clone)]
pub struct Array(Arc<Node>);

struct Node {
    len: usize,
    work: Mutex<Work>,
    /// Where the memory goes when nobody reads the numbers any more.
    pool: OnceLock<Arc<Pool>>,
    /// Whether it stood there from the beginning.
    given: bool,
}

enum Work {
    Done(Buffer),
    Waiting(Arc<dyn Operation>),
}

/// What an operation has found out about its own views; only it knows what that is.
pub(super) type Ways = Box<dyn Any + Send + Sync>;

/// What was found out before, or is now.
pub(super) fn known_or<S: Clone + 'static>(ways: Option<&Ways>, find: impl FnOnce() -> S) -> Cow<'_, S> {
    ways.and_then(|ways| ways.downcast_ref()).map_or_else(|| Cow::Owned(find()), Cow::Borrowed)
}

/// Where parts of an operation's results read an array: each `step` entries behind the last, over `reach` entries and one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Along {
    /// From where one part reads to where the next does.
    pub step: usize,
    /// From the first entry that a part reads to the last.
    pub reach: usize,
}

/// What is to be computed, in numbers of one type.
pub trait Typed: Any + Clone + fmt::Debug + Send + Sync {
    /// Visits the arrays that it reads.
    fn inputs(&self, visit: &mut dyn FnMut(&Array));

    /// The same, to be replaced, and for those that it reads through views by steps where these begin.
    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>));

    /// Whether every place that it reads follows from steps alone.
    fn is_even(&self) -> bool;

    /// Computes it; what it reads is there.
    fn run<T: Number>(&self, pool: &Pool) -> Buffer;

    /// The same, to the bit, along ways that are known.
    fn run_along<T: Number>(&self, _: Option<&Ways>, pool: &Pool) -> Buffer {
        self.run::<T>(pool)
    }

    /// How it goes through what it reads, wherever that begins: to be found once for what is done again and again.
    fn ways(&self) -> Option<Ways> {
        None
    }

    /// Computes it where it belongs, without -0, if it can; what it reads is there.
    fn run_into<T: Number>(&self, _: &mut [T], _: Option<&Ways>, _: &Pool) -> bool {
        false
    }

    /// Whether [`Typed::run_on`] does it.
    fn is_free(&self) -> bool {
        false
    }

    /// Computes it from entries that stand anywhere: for each array that it reads those from where its view begins,
    /// whose own offset is 0, or all of the array. Without -0, if that is asked.
    fn run_on<T: Number>(&self, _: &[&[T]], _: &mut [T], _: Option<&Ways>, _: bool, _: &Pool) {}

    /// How many numbers its second array is when it is brought in the order in which it is read, where that is worth it for
    /// an array that stays the same.
    fn ordered<T: Number>(&self) -> Option<usize> {
        None
    }

    /// Brings the second array of those that [`Typed::run_on`] takes in that order: it may be handed over behind them.
    fn order<T: Number>(&self, _: &[&[T]], _: &mut [T]) {}

    /// The same operation on `to` of the `lanes` equal parts in which its results lie one behind the other, to the bit; and for
    /// each array that it reads, how these parts lie there. `None`, if it cannot be cut so.
    fn cut(&self, _lanes: usize, _to: usize) -> Option<(Self, Vec<Along>)> {
        None
    }

    /// Whether no result is -0.
    fn unsigned_zeros(&self) -> bool {
        false
    }

    /// Whether its results are the entries of the one array that it reads, in their order.
    fn copies(&self) -> bool {
        false
    }

    /// Whether its results may be truths in place of numbers.
    fn may_be_truths(&self) -> bool {
        false
    }

    /// With the elementwise work in it that only this operation reads; the bits of the results are the same.
    #[must_use]
    fn fused(self) -> Self {
        self
    }

    /// With the numbers in it that it reads of these arrays, one for all of its entries; the bits of the results are the same.
    #[must_use]
    fn with_numbers(self, _: Known<'_>) -> Self {
        self
    }

    /// Whether it is known to make the same of the same arrays. Who may hold a map as long as an array says more of it.
    fn is_same(&self, other: &Self) -> bool {
        self.is_even() && other.is_even() && format!("{self:?}") == format!("{other:?}")
    }
}

/// The number at a place of an array, where that stays the same.
pub(super) type Known<'a> = &'a dyn Fn(&Array, usize) -> Option<f64>;

/// The same in numbers of the type that a run computes with.
pub(super) trait Operation: fmt::Debug + Send + Sync {
    fn inputs(&self, visit: &mut dyn FnMut(&Array));
    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>));
    fn is_even(&self) -> bool;
    fn run(&self, precision: Precision, pool: &Pool) -> Buffer;
    fn run_along(&self, precision: Precision, ways: Option<&Ways>, pool: &Pool) -> Buffer;
    fn ways(&self) -> Option<Ways>;
    fn run_doubles(&self, to: &mut [f64], ways: Option<&Ways>, pool: &Pool) -> bool;
    fn run_singles(&self, to: &mut [f32], ways: Option<&Ways>, pool: &Pool) -> bool;
    fn is_free(&self) -> bool;
    fn run_on(&self, on: On<'_, '_>, ways: Option<&Ways>, clean: bool, pool: &Pool);
    fn ordered(&self, precision: Precision) -> Option<usize>;
    fn order(&self, on: On<'_, '_>);
    fn cut(&self, lanes: usize, to: usize) -> Option<(Box<dyn Operation>, Vec<Along>)>;
    fn unsigned_zeros(&self) -> bool;
    fn copies(&self) -> bool;
    fn may_be_truths(&self) -> bool;
    fn fused(self: Box<Self>) -> Box<dyn Operation>;
    fn with_numbers(self: Box<Self>, known: Known<'_>) -> Box<dyn Operation>;
    fn is_same(&self, other: &dyn Operation) -> bool;
    fn any(&self) -> &dyn Any;
    fn copy(&self) -> Box<dyn Operation>;
}

impl<O: Typed> Operation for O {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        Typed::inputs(self, visit);
    }

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        Typed::reads(self, visit);
    }

    fn is_even(&self) -> bool {
        Typed::is_even(self)
    }

    fn run(&self, precision: Precision, pool: &Pool) -> Buffer {
        match precision {
            Precision::Double => Typed::run::<f64>(self, pool),
            Precision::Single => Typed::run::<f32>(self, pool),
        }
    }

    fn run_along(&self, precision: Precision, ways: Option<&Ways>, pool: &Pool) -> Buffer {
        match precision {
            Precision::Double => Typed::run_along::<f64>(self, ways, pool),
            Precision::Single => Typed::run_along::<f32>(self, ways, pool),
        }
    }

    fn ways(&self) -> Option<Ways> {
        Typed::ways(self)
    }

    fn run_doubles(&self, to: &mut [f64], ways: Option<&Ways>, pool: &Pool) -> bool {
        Typed::run_into(self, to, ways, pool)
    }

    fn run_singles(&self, to: &mut [f32], ways: Option<&Ways>, pool: &Pool) -> bool {
        Typed::run_into(self, to, ways, pool)
    }

    fn is_free(&self) -> bool {
        Typed::is_free(self)
    }

    fn run_on(&self, on: On<'_, '_>, ways: Option<&Ways>, clean: bool, pool: &Pool) {
        match on {
            On::Doubles(from, to) => Typed::run_on(self, from, to, ways, clean, pool),
            On::Singles(from, to) => Typed::run_on(self, from, to, ways, clean, pool),
        }
    }

    fn ordered(&self, precision: Precision) -> Option<usize> {
        match precision {
            Precision::Double => Typed::ordered::<f64>(self),
            Precision::Single => Typed::ordered::<f32>(self),
        }
    }

    fn order(&self, on: On<'_, '_>) {
        match on {
            On::Doubles(from, to) => Typed::order(self, from, to),
            On::Singles(from, to) => Typed::order(self, from, to),
        }
    }

    fn cut(&self, lanes: usize, to: usize) -> Option<(Box<dyn Operation>, Vec<Along>)> {
        let (cut, along) = Typed::cut(self, lanes, to)?;
        Some((Box::new(cut), along))
    }

    fn unsigned_zeros(&self) -> bool {
        Typed::unsigned_zeros(self)
    }

    fn copies(&self) -> bool {
        Typed::copies(self)
    }

    fn may_be_truths(&self) -> bool {
        Typed::may_be_truths(self)
    }

    fn fused(self: Box<Self>) -> Box<dyn Operation> {
        Box::new(Typed::fused(*self))
    }

    fn with_numbers(self: Box<Self>, known: Known<'_>) -> Box<dyn Operation> {
        Box::new(Typed::with_numbers(*self, known))
    }

    fn is_same(&self, other: &dyn Operation) -> bool {
        other.any().downcast_ref::<O>().is_some_and(|other| Typed::is_same(self, other))
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn copy(&self) -> Box<dyn Operation> {
        Box::new(self.clone())
    }
}

/// How far a view moves along one dimension.
#[derive(Debug, Clone)]
pub enum Step {
    /// So many entries for each position.
    By(usize),
    /// To the position that stands there, each so many entries long.
    Map(Arc<Vec<u32>>, usize),
}

impl Step {
    /// How far the entry at a position lies from the first.
    #[inline(always)]
    pub fn offset(&self, position: usize) -> usize {
        match self {
            Step::By(step) => position * step,
            Step::Map(map, times) => map[position] as usize * times,
        }
    }

    /// The step, unless positions are looked up.
    pub fn by(&self) -> Option<usize> {
        match self {
            Step::By(step) => Some(*step),
            Step::Map(..) => None,
        }
    }
}

/// An array as somebody reads it: along each of the reader's dimensions by a step of its own.
#[derive(Debug, Clone)]
pub struct View {
    /// What is read.
    pub array: Array,
    /// Where the first entry lies.
    pub offset: usize,
    /// One for each of the reader's dimensions.
    pub steps: Vec<Step>,
}

/// Cuts the outermost of some dimensions for [`Typed::cut`], where arrays are read by these steps.
pub(super) fn cut<S: AsRef<[usize]>>(
    shape: &mut [usize],
    steps: impl Iterator<Item = S>,
    (lanes, to): (usize, usize),
) -> Option<Vec<Along>> {
    let outermost = shape.iter().position(|size| *size != 1)?;
    let each = shape[outermost].checked_div(lanes).filter(|each| each * lanes == shape[outermost])?;
    let along = |steps: S| {
        let steps = steps.as_ref();
        let inner = shape.iter().zip(steps).skip(outermost + 1);
        let inner: usize = inner.map(|(size, step)| size.saturating_sub(1) * step).sum();
        let step = steps[outermost];
        Along { step: each * step, reach: each.saturating_sub(1) * step + inner }
    };
    let along = steps.map(along).collect();
    shape[outermost] = each * to;
    Some(along)
}

/// The steps of views that have no others.
pub(super) fn even_steps(views: &[View]) -> Option<Vec<Vec<usize>>> {
    views.iter().map(|view| view.steps.iter().map(Step::by).collect()).collect()
}

/// What tells an array apart, without holding its numbers.
pub(super) struct WeakArray(Weak<Node>);

impl fmt::Debug for WeakArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakArray")
    }
}

impl WeakArray {
    /// Whether it is this array.
    pub(super) fn is(&self, array: &Array) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&array.0))
    }

    /// Whether somebody holds the array.
    pub(super) fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0.len)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let Some(pool) = self.pool.get() else { return };
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Work::Done(Buffer::Numbers(numbers)) = work {
            match numbers {
                Numbers::Double(values) => give(pool, values),
                Numbers::Single(values) => give(pool, values),
            }
        }
    }
}

fn give<T: Number>(pool: &Pool, values: &mut Arc<Vec<T>>) {
    match Arc::get_mut(values) {
        Some(values) => pool.give(std::mem::take(values)),
        None => pool.lost(values.capacity() * size_of::<T>()),
    }
}

/// Given numbers are converted, and arrays filled, in tasks of so many.
const TASK: usize = 1 << 15;

impl Array {
    /// These numbers.
    pub fn given(buffer: Buffer) -> Array {
        Array::stands(buffer, None, true)
    }

    fn stands(buffer: Buffer, pool: Option<&Arc<Pool>>, given: bool) -> Array {
        let (len, work) = (buffer.len(), Mutex::new(Work::Done(buffer)));
        let pool = pool.map_or_else(OnceLock::new, |pool| OnceLock::from(Arc::clone(pool)));
        Array(Arc::new(Node { len, work, pool, given }))
    }

    /// These numbers, whose memory is used again when nobody reads them any more.
    pub fn pooled(buffer: Buffer, pool: &Arc<Pool>) -> Array {
        Array::stands(buffer, Some(pool), false)
    }

    /// These numbers in the type that is computed with, in memory that is used again. -0 is 0.
    pub fn of_doubles(values: &[f64], precision: Precision, pool: &Arc<Pool>) -> Array {
        fn typed<T: Number>(values: &[f64], pool: &Pool) -> Buffer {
            let mut own = pool.take::<T>(values.len());
            let convert = |(slots, values): (&mut [T], &[f64])| {
                slots.iter_mut().zip(values).for_each(|(slot, value)| *slot = T::of(*value) + T::ZERO);
            };
            match shared(values.len(), TASK) {
                Some(task) => own.par_chunks_mut(task).zip(values.par_chunks(task)).for_each(convert),
                None => convert((&mut own, values)),
            }
            T::buffer(own)
        }
        let buffer = match precision {
            Precision::Double => typed::<f64>(values, pool),
            Precision::Single => typed::<f32>(values, pool),
        };
        Array::stands(buffer, Some(pool), true)
    }

    /// The same number so many times, in memory that is used again.
    pub fn filled(value: f64, len: usize, precision: Precision, pool: &Arc<Pool>) -> Array {
        Array::made(len, precision, pool, Some(value))
    }

    /// So many numbers, whatever they are, in memory that is used again.
    pub fn any(len: usize, precision: Precision, pool: &Arc<Pool>) -> Array {
        Array::made(len, precision, pool, None)
    }

    fn made(len: usize, precision: Precision, pool: &Arc<Pool>, value: Option<f64>) -> Array {
        fn buffer<T: Number>(len: usize, pool: &Pool, value: Option<f64>) -> Buffer {
            let mut values = pool.take::<T>(len);
            if let Some(value) = value.map(T::of) {
                match shared(len, TASK) {
                    Some(task) => values.par_chunks_mut(task).for_each(|part| part.fill(value)),
                    None => values.fill(value),
                }
            }
            T::buffer(values)
        }
        let buffer = match precision {
            Precision::Double => buffer::<f64>(len, pool, value),
            Precision::Single => buffer::<f32>(len, pool, value),
        };
        Array::pooled(buffer, pool)
    }

    /// These numbers in 64 bits.
    pub fn doubles(values: Vec<f64>) -> Array {
        Array::given(Buffer::Numbers(Numbers::Double(Arc::new(values))))
    }

    /// These truths.
    pub fn truths(values: Vec<bool>) -> Array {
        Array::given(Buffer::Truths(Arc::new(values)))
    }

    /// So many numbers that an operation computes.
    pub fn of(len: usize, operation: impl Typed) -> Array {
        Array::waits(len, Arc::new(operation))
    }

    pub(super) fn waits(len: usize, operation: Arc<dyn Operation>) -> Array {
        Array(Arc::new(Node {
            len,
            work: Mutex::new(Work::Waiting(operation)),
            pool: OnceLock::new(),
            given: false,
        }))
    }

    /// Whether its numbers were given, not computed.
    pub fn is_given(&self) -> bool {
        self.0.given
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Where it stands in memory: that of no other array, as long as this one is there.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }

    /// Whether both are one.
    pub fn same(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.0.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries, if they are there.
    pub fn done(&self) -> Option<Buffer> {
        match &*self.work() {
            Work::Done(buffer) => Some(buffer.clone()),
            Work::Waiting(_) => None,
        }
    }

    /// The operation of a kind that computes it, if nobody else reads it and it is still to be done.
    pub(super) fn own<O: Typed>(&self) -> Option<O> {
        self.own_of(1)
    }

    /// The same where one reads it through so many views.
    pub(super) fn own_of<O: Typed>(&self, handles: usize) -> Option<O> {
        if Arc::strong_count(&self.0) > handles {
            return None;
        }
        self.waiting()
    }

    /// The operation of a kind that it waits for.
    pub(super) fn waiting<O: Typed>(&self) -> Option<O> {
        match &*self.work() {
            Work::Waiting(operation) => operation.any().downcast_ref::<O>().cloned(),
            Work::Done(_) => None,
        }
    }

    /// The same operation, of a kind, to be done once more by another reader; the array itself where it is another
    /// kind, or done.
    pub fn again<O: Typed>(&self) -> Array {
        self.waiting::<O>().map_or_else(|| self.clone(), |operation| Array::of(self.len(), operation))
    }

    /// Whether it is still to be computed.
    pub fn is_waiting(&self) -> bool {
        matches!(&*self.work(), Work::Waiting(_))
    }

    /// Whether it is to be computed, by an operation that makes no -0.
    pub fn makes_unsigned_zeros(&self) -> bool {
        matches!(&*self.work(), Work::Waiting(operation) if operation.unsigned_zeros())
    }

    /// What tells it apart, without holding its numbers.
    pub(super) fn weak(&self) -> WeakArray {
        WeakArray(Arc::downgrade(&self.0))
    }

    /// Whether it waits for an operation of a kind.
    pub fn waits_for<O: Typed>(&self) -> bool {
        matches!(&*self.work(), Work::Waiting(operation) if operation.any().is::<O>())
    }

    /// What it waits for.
    pub(super) fn operation(&self) -> Option<Arc<dyn Operation>> {
        match &*self.work() {
            Work::Waiting(operation) => Some(Arc::clone(operation)),
            Work::Done(_) => None,
        }
    }

    /// The arrays that the operation reads for which it waits, in order; none, if it is there.
    pub fn reads(&self) -> Vec<Array> {
        let mut found = Vec::new();
        if let Work::Waiting(operation) = &*self.work() {
            operation.inputs(&mut |array| found.push(array.clone()));
        }
        found
    }

    /// Its name among arrays.
    pub(super) fn name(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// How many hold it.
    pub(super) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Computes it; what it reads is there.
    pub(super) fn compute(&self, precision: Precision, pool: &Arc<Pool>) {
        let mut work = self.work();
        if let Work::Waiting(operation) = &*work {
            let buffer = operation.run(precision, pool);
            let _ = self.0.pool.set(Arc::clone(pool));
            // What it was computed from goes.
            *work = Work::Done(buffer);
        }
    }

    /// These are its numbers.
    pub(super) fn settle(&self, buffer: Buffer, pool: &Arc<Pool>) {
        let mut work = self.work();
        if matches!(&*work, Work::Waiting(_)) {
            let _ = self.0.pool.set(Arc::clone(pool));
            *work = Work::Done(buffer);
        }
    }

    /// Its numbers where they lie, to write to, if nobody else holds it.
    pub fn change(&mut self) -> Option<&mut Buffer> {
        let work = Arc::get_mut(&mut self.0)?.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        match work {
            Work::Done(buffer) => Some(buffer),
            Work::Waiting(_) => None,
        }
    }

    /// Its numbers to write to, where nobody else holds them.
    pub fn take(self) -> Option<Buffer> {
        let mut node = Arc::try_unwrap(self.0).ok()?;
        let work = node.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        let empty = Work::Done(Buffer::Truths(Arc::default()));
        match std::mem::replace(work, empty) {
            Work::Done(buffer) => Some(buffer),
            Work::Waiting(_) => None,
        }
    }
}

/// Visits what views read, and where they begin.
pub(super) fn visit_views<'a>(
    views: impl IntoIterator<Item = &'a mut View>,
    visit: &mut dyn FnMut(&mut Array, Option<&mut usize>),
) {
    views.into_iter().for_each(|view| visit(&mut view.array, Some(&mut view.offset)));
}

impl View {
    /// Whether it looks nothing up.
    pub(super) fn is_even(&self) -> bool {
        self.steps.iter().all(|step| step.by().is_some())
    }

    /// An array with these row-major dimensions.
    pub fn whole(array: Array, shape: &[usize]) -> View {
        let steps = strides(shape).into_iter().map(Step::By).collect();
        View { array, offset: 0, steps }
    }

    /// Whether it walks all of an array in order, over these dimensions.
    pub fn is_whole(&self, shape: &[usize]) -> bool {
        self.offset == 0 && self.array.len() == volume(shape) && self.in_order(shape)
    }

    /// Whether its entries over these dimensions stand one behind the other.
    pub fn in_order(&self, shape: &[usize]) -> bool {
        let expected = strides(shape);
        let mut places = self.steps.iter().zip(shape).zip(expected);
        places.all(|((step, size), expected)| *size <= 1 || step.by() == Some(expected))
    }
}
