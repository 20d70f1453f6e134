//! The numbers that are computed with, the buffers that hold them, and memory that is used again.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
pub use tensor_logic_core::room::volume;

use training::kernels::{Kernel, Real, on_large_pages, vectorised};

use super::functions::{doubles, exp_below_zero, singles};
use super::lanes::Lanes;
use super::spare::{DOUBLES, SINGLES, Spare};
use tensor_logic_core::engine::Numbers;
use tensor_logic_core::function::Function;

/// The type of all numbers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Precision {
    /// 64 bits.
    #[default]
    Double,
    /// 32 bits.
    Single,
}

/// The entries that an operation reads, and where its results go.
pub enum On<'a, 'b> {
    /// Numbers of 64 bits.
    Doubles(&'a [&'b [f64]], &'a mut [f64]),
    /// Numbers of 32 bits.
    Singles(&'a [&'b [f32]], &'a mut [f32]),
}

/// A number that is computed with.
pub trait Number:
    Real
    + Lanes
    + Default
    + PartialOrd
    + Send
    + Sync
    + std::fmt::Debug
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The nearest number of this type.
    fn of(value: f64) -> Self;
    /// The same number in 64 bits.
    fn double(self) -> f64;
    /// Arguments below this one are left to the general exponential, as long as it is not 0.
    const LEAST: f64;
    /// x y + z, rounded once; slow where processors have no such instruction.
    fn times_plus(self, y: Self, z: Self) -> Self;
    /// The exponential, written so that a loop over it is vectorised; right for arguments up to 0.
    fn exp_below_zero(self) -> Self;
    /// The function at every number, where there is a form of it that is vectorised; else nothing is done.
    fn elementwise(function: &Function, values: &[Self], to: &mut [Self]) -> bool;
    /// Whether it is neither infinite nor no number.
    fn finite(self) -> bool;
    /// A buffer's numbers, where they are of this type.
    fn slice(buffer: &Buffer) -> Option<&[Self]>;
    /// A buffer of these numbers.
    fn buffer(values: Vec<Self>) -> Buffer;
    /// The tiles that the thread at hand keeps.
    fn spare() -> &'static Spare<Self>;
    /// What an operation reads, and where its results go.
    fn on<'a, 'b>(from: &'a [&'b [Self]], to: &'a mut [Self]) -> On<'a, 'b>;
    /// A buffer's numbers as they are held, where they are of this type.
    fn numbers_of(buffer: Buffer) -> Option<Arc<Vec<Self>>>;
    /// The arrays of this type that are free.
    fn free(pool: &Pool) -> &Mutex<Vec<Vec<Self>>>;
    /// The room for numbers of this type.
    fn room(pool: &Pool) -> &Mutex<Option<Box<Room<Self>>>>;
}

impl Number for f64 {
    const LEAST: f64 = -700.0;
    #[inline(always)]
    fn of(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn double(self) -> f64 {
        self
    }
    #[inline(always)]
    fn times_plus(self, y: f64, z: f64) -> f64 {
        self.mul_add(y, z)
    }
    #[inline(always)]
    fn exp_below_zero(self) -> f64 {
        exp_below_zero(self)
    }
    fn elementwise(function: &Function, values: &[f64], to: &mut [f64]) -> bool {
        doubles(function, values, to)
    }
    #[inline(always)]
    fn finite(self) -> bool {
        self.is_finite()
    }
    fn slice(buffer: &Buffer) -> Option<&[f64]> {
        match buffer {
            Buffer::Numbers(Numbers::Double(values)) => Some(values),
            _ => None,
        }
    }
    fn buffer(values: Vec<f64>) -> Buffer {
        Buffer::Numbers(Numbers::Double(Arc::new(values)))
    }
    fn spare() -> &'static Spare<f64> {
        &DOUBLES
    }
    fn on<'a, 'b>(from: &'a [&'b [f64]], to: &'a mut [f64]) -> On<'a, 'b> {
        On::Doubles(from, to)
    }
    fn numbers_of(buffer: Buffer) -> Option<Arc<Vec<f64>>> {
        match buffer {
            Buffer::Numbers(Numbers::Double(values)) => Some(values),
            _ => None,
        }
    }
    fn free(pool: &Pool) -> &Mutex<Vec<Vec<f64>>> {
        &pool.double
    }
    fn room(pool: &Pool) -> &Mutex<Option<Box<Room<f64>>>> {
        &pool.room_of_doubles
    }
}

impl Number for f32 {
    // It is 0 where numbers of 32 bits lose their last digits.
    const LEAST: f64 = f64::NEG_INFINITY;
    #[inline(always)]
    fn of(value: f64) -> f32 {
        value as f32
    }
    #[inline(always)]
    fn double(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn times_plus(self, y: f32, z: f32) -> f32 {
        self.mul_add(y, z)
    }
    #[inline(always)]
    fn exp_below_zero(self) -> f32 {
        training::kernels::exp(self)
    }
    fn elementwise(function: &Function, values: &[f32], to: &mut [f32]) -> bool {
        singles(function, values, to)
    }
    #[inline(always)]
    fn finite(self) -> bool {
        self.is_finite()
    }
    fn slice(buffer: &Buffer) -> Option<&[f32]> {
        match buffer {
            Buffer::Numbers(Numbers::Single(values)) => Some(values),
            _ => None,
        }
    }
    fn buffer(values: Vec<f32>) -> Buffer {
        Buffer::Numbers(Numbers::Single(Arc::new(values)))
    }
    fn spare() -> &'static Spare<f32> {
        &SINGLES
    }
    fn on<'a, 'b>(from: &'a [&'b [f32]], to: &'a mut [f32]) -> On<'a, 'b> {
        On::Singles(from, to)
    }
    fn numbers_of(buffer: Buffer) -> Option<Arc<Vec<f32>>> {
        match buffer {
            Buffer::Numbers(Numbers::Single(values)) => Some(values),
            _ => None,
        }
    }
    fn free(pool: &Pool) -> &Mutex<Vec<Vec<f32>>> {
        &pool.single
    }
    fn room(pool: &Pool) -> &Mutex<Option<Box<Room<f32>>>> {
        &pool.room_of_singles
    }
}

/// So many zeros; many of them lie on large pages.
pub fn zeros<T: Number>(len: usize) -> Vec<T> {
    let mut zeros = vec![T::ZERO; len];
    on_large_pages(&mut zeros);
    zeros
}

/// Row-major strides.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut result = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        result[at - 1] = result[at] * shape[at].max(1);
    }
    result
}

/// The larger of two; NaN if one is.
#[inline(always)]
pub fn larger<T: PartialOrd + Copy>(x: T, y: T) -> T {
    if x > y || x.partial_cmp(&x).is_none() { x } else { y }
}

/// The smaller of two; NaN if one is.
#[inline(always)]
pub fn smaller<T: PartialOrd + Copy>(x: T, y: T) -> T {
    if x < y || x.partial_cmp(&x).is_none() { x } else { y }
}

/// Whether all numbers are finite.
pub fn finite<T: Number>(values: &[T]) -> bool {
    vectorised(Finite(values))
}

struct Finite<'a, T>(&'a [T]);

impl<T: Number> Kernel for Finite<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        // Whole chunks without a branch: what times 0 is no number is not finite.
        let fine = |chunk: &[T]| {
            let mut lanes = [T::ZERO; 16];
            let (chunks, rest) = chunk.as_chunks::<16>();
            for chunk in chunks {
                (0..16).for_each(|lane| lanes[lane] += chunk[lane] * T::ZERO);
            }
            lanes.iter().all(|lane| lane.finite()) && rest.iter().all(|value| value.finite())
        };
        self.0.chunks(1024).all(fine)
    }
}

/// Numbers or truths, one behind the other.
#[derive(Debug, Clone)]
pub enum Buffer {
    /// Numbers.
    Numbers(Numbers),
    /// What holds; as a number 1 or 0.
    Truths(Arc<Vec<bool>>),
}

impl Buffer {
    pub(super) fn len(&self) -> usize {
        match self {
            Buffer::Numbers(numbers) => numbers.len(),
            Buffer::Truths(truths) => truths.len(),
        }
    }

    /// One of its entries.
    pub(super) fn number(&self, at: usize) -> Option<f64> {
        match self {
            Buffer::Numbers(Numbers::Double(values)) => values.get(at).copied(),
            Buffer::Numbers(Numbers::Single(values)) => values.get(at).copied().map(f64::from),
            Buffer::Truths(values) => values.get(at).map(|value| f64::from(u8::from(*value))),
        }
    }

    /// Its entries as numbers of a type.
    pub fn numbers<T: Number>(&self) -> Vec<T> {
        match self {
            Buffer::Numbers(Numbers::Double(values)) => values.iter().map(|value| T::of(*value)).collect(),
            Buffer::Numbers(Numbers::Single(values)) => {
                values.iter().map(|value| T::of(f64::from(*value))).collect()
            }
            Buffer::Truths(values) => values.iter().map(|value| T::of(f64::from(u8::from(*value)))).collect(),
        }
    }
}

/// Arrays whose values nobody reads any more: a new page costs more than the arithmetic on it.
#[derive(Debug, Default)]
pub struct Pool {
    double: Mutex<Vec<Vec<f64>>>,
    single: Mutex<Vec<Vec<f32>>>,
    room_of_doubles: Mutex<Option<Box<Room<f64>>>>,
    room_of_singles: Mutex<Option<Box<Room<f32>>>>,
    /// About how many bytes are in use of what was taken, and the most that ever were.
    used: AtomicUsize,
    most: AtomicUsize,
    /// Ends operations when it becomes true: what they then compute is not to be looked at.
    stop: Mutex<Option<Arc<AtomicBool>>>,
}

/// Operations of fewer entries or multiply-adds are not asked whether to stop.
const WATCHED: usize = 1 << 16;
/// Smaller arrays are not kept.
const KEPT: usize = 1 << 12;
/// Arrays are let go of where those in use and those kept would take this part more than was ever in use at a time,
/// and this many bytes more.
const MORE: usize = 8;
const ROOM: usize = 1 << 24;
/// So many arrays are kept at most.
const ARRAYS: usize = 1024;

impl Pool {
    /// Ends operations when this becomes true, each at the end of the task at hand. Who has said so forgets what was
    /// computed since.
    pub fn stop_when(&self, flag: Option<Arc<AtomicBool>>) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = flag;
    }

    /// Asks, for every task of an operation, whether the rest of it is to be left out.
    pub(super) fn stopped(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        self.stopped_within(WATCHED)
    }

    /// The same for an operation of so many entries or multiply-adds: one of few is done before anybody could ask.
    pub(super) fn stopped_within(&self, entries: usize) -> impl Fn() -> bool + Send + Sync + use<> {
        let flag = match entries < WATCHED {
            true => None,
            false => self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        move || flag.as_ref().is_some_and(|flag| flag.load(Relaxed))
    }

    /// So many numbers, of whatever value.
    pub fn take<T: Number>(&self, len: usize) -> Vec<T> {
        if len < KEPT {
            return vec![T::ZERO; len];
        }
        let size = size_of::<T>();
        let fits = |array: &Vec<T>| (len..=len.saturating_mul(2)).contains(&array.capacity());
        let mut array = match T::free(self).lock() {
            Ok(mut free) => {
                let fitting = free.iter().enumerate().filter(|(_, array)| fits(array));
                let best = fitting.min_by_key(|(_, array)| array.capacity()).map(|(at, _)| at);
                let found = best.map(|at| free.remove(at));
                let more = found.as_ref().map_or(len, Vec::capacity) * size;
                let used = self.used.fetch_add(more, Relaxed) + more;
                let most = self.most.fetch_max(used, Relaxed).max(used);
                // Those that were given back first make room.
                let mut kept = free.iter().map(Vec::capacity).sum::<usize>() * size;
                while kept > 0 && used + kept > most + most / MORE + ROOM {
                    kept -= free.remove(0).capacity() * size;
                }
                found.unwrap_or_default()
            }
            Err(_) => Vec::new(),
        };
        array.truncate(len);
        if array.is_empty() {
            return zeros(len);
        }
        array.resize(len, T::ZERO);
        array
    }

    /// Keeps an array for later.
    pub fn give<T: Number>(&self, array: Vec<T>) {
        if array.capacity() < KEPT {
            return;
        }
        self.lost(array.capacity() * size_of::<T>());
        let Ok(mut free) = T::free(self).lock() else { return };
        if free.len() >= ARRAYS {
            free.remove(0);
        }
        free.push(array);
    }

    /// The room for small results, for who gives it back with [`Pool::keep`].
    pub(super) fn room<T: Number>(&self) -> Box<Room<T>> {
        T::room(self).lock().ok().and_then(|mut room| room.take()).unwrap_or_default()
    }

    /// Keeps the room for small results for the next one who asks.
    pub(super) fn keep<T: Number>(&self, room: Box<Room<T>>) {
        if let Ok(mut kept) = T::room(self).lock() {
            *kept = Some(room);
        }
    }

    /// So many bytes of what was taken do not come back.
    pub fn lost(&self, bytes: usize) {
        let _ = self.used.fetch_update(Relaxed, Relaxed, |used| Some(used.saturating_sub(bytes)));
    }
}

/// Room for results that live shortly: what was let go of last is taken first, for it is still in a cache.
#[derive(Debug, Default)]
pub struct Room<T> {
    /// By the logarithm of their length.
    free: [Vec<Vec<T>>; KEPT.ilog2() as usize + 1],
}

impl<T: Number> Room<T> {
    /// Room for so many numbers or more.
    pub(super) fn take(&mut self, len: usize, pool: &Pool) -> Vec<T> {
        let size = len.next_power_of_two();
        match self.free.get_mut(size.ilog2() as usize) {
            Some(free) => free.pop().unwrap_or_else(|| vec![T::ZERO; size]),
            None => pool.take(len),
        }
    }

    /// Gives it back.
    pub(super) fn give(&mut self, numbers: Vec<T>, pool: &Pool) {
        // What was taken elsewhere has some other length.
        match self.free.get_mut(numbers.len().checked_ilog2().unwrap_or(0) as usize) {
            Some(free) if numbers.len().is_power_of_two() => free.push(numbers),
            _ => pool.give(numbers),
        }
    }
}

/// Below, exponentials of 64 bits are 0.
pub(super) const NOTHING: f64 = -746.0;
