//! A parameter on its way: where the loss touches few of its elements, a step costs those only.
//!
//! The rules move every element at every step, if only by their moments and the decay. An element that no gradient
//! touches is left behind and catches up, step by step with a gradient of 0, before anybody looks at it: its
//! value is that of the dense formula to the last bit.

use rayon::prelude::*;

use super::rule::{Pace, Rule, State};
use crate::engine::{Listed, Numbers, Slope, Value};
use crate::program::Tensor;
use crate::value::Tuple;

mod kept;

/// A step's gradient.
#[derive(Debug)]
pub(super) enum Gradient {
    /// Of all elements.
    Whole(Numbers),
    /// Of those that it is not 0 for.
    Listed(Listed),
    /// 0: the loss does not depend on the parameter.
    Nothing,
}

impl Gradient {
    /// The gradient of a parameter.
    pub(super) fn of(slope: Slope, parameter: &Tensor) -> Gradient {
        match slope {
            Slope::Whole(Value::Dense(values)) => Gradient::Whole(values),
            Slope::Listed(listed) => Gradient::Listed(listed),
            Slope::Whole(Value::Tuples(tuples)) => {
                let domains = parameter.domains();
                let place = |tuple: &Tuple| {
                    let mut places = domains.iter().zip(tuple);
                    places.try_fold(0, |place, (domain, value)| {
                        Some(place * domain.len() + domain.ordinal(*value)?)
                    })
                };
                let known = tuples.tuples.iter().zip(&tuples.values);
                let mut pairs: Vec<(usize, f64)> =
                    known.filter_map(|(tuple, value)| Some((place(tuple)?, *value))).collect();
                pairs.sort_unstable_by_key(|(place, _)| *place);
                let (positions, values) = pairs.into_iter().unzip();
                Gradient::Listed(Listed { positions, values })
            }
            Slope::Whole(Value::Counts(_)) => Gradient::Nothing,
        }
    }

    /// The sum of the squares of its elements, finite if they all are numbers and not too large. The elements are summed
    /// in parts by their positions, so that neither threads nor listed zeros matter.
    pub(super) fn squares(&self) -> f64 {
        match self {
            Gradient::Whole(Numbers::Double(values)) => squares_of(values),
            Gradient::Whole(Numbers::Single(values)) => squares_of(values),
            Gradient::Listed(listed) => {
                let pairs = || listed.positions.iter().zip(&listed.values);
                let mut parts = pairs().map(|(position, _)| position / PART).collect::<Vec<usize>>();
                parts.dedup();
                let mut pairs = pairs().peekable();
                let of_part = |part: usize| {
                    let mut sums = [0.0; LANES];
                    while let Some((position, value)) =
                        pairs.next_if(|(position, _)| *position / PART == part)
                    {
                        sums[position % LANES] += value * value;
                    }
                    sums.iter().sum::<f64>()
                };
                parts.into_iter().map(of_part).sum()
            }
            Gradient::Nothing => 0.0,
        }
    }

    /// Whether all its elements are numbers.
    pub(super) fn is_finite(&self) -> bool {
        match self {
            Gradient::Whole(Numbers::Double(values)) => values.iter().all(|value| value.is_finite()),
            Gradient::Whole(Numbers::Single(values)) => values.iter().all(|value| value.is_finite()),
            Gradient::Listed(listed) => listed.values.iter().all(|value| value.is_finite()),
            Gradient::Nothing => true,
        }
    }
}

/// Squares are summed in parts of so many elements, each in so many lanes.
const PART: usize = 1 << 15;
const LANES: usize = 8;

fn squares_of<T: Copy + Into<f64> + Sync>(values: &[T]) -> f64 {
    let of_part = |part: &[T]| {
        let mut sums = [0.0; LANES];
        let (chunks, rest) = part.as_chunks::<LANES>();
        let square = |value: T| -> f64 {
            let value: f64 = value.into();
            value * value
        };
        for values in chunks {
            (0..LANES).for_each(|lane| sums[lane] += square(values[lane]));
        }
        sums.iter_mut().zip(rest).for_each(|(sum, value)| *sum += square(*value));
        sums.iter().sum::<f64>()
    };
    if values.len() > 2 * PART && rayon::current_num_threads() > 1 {
        let sums: Vec<f64> = values.par_chunks(PART).map(of_part).collect();
        return sums.into_iter().sum();
    }
    values.chunks(PART).map(of_part).sum()
}

/// A parameter's state under an update rule.
#[derive(Debug)]
pub(super) struct Moving {
    rule: Rule,
    /// The moments, of all elements once a gradient has touched all; before, of the blocks that were touched, in
    /// the order in which they were: what is never touched takes no memory.
    state: State,
    /// How many steps each of these has taken, where that is more than `all`.
    taken: Vec<u32>,
    /// Which of these a block of elements is; [`NONE`] if it was never touched.
    blocks: Vec<u32>,
    /// So many steps every element has taken.
    all: u32,
    /// The elements that a listed gradient has touched, each once.
    touched: Vec<usize>,
    /// Whether a gradient has touched all.
    whole: bool,
}

/// The elements of a block.
const BLOCK: usize = 64;

/// No block.
const NONE: u32 = u32::MAX;

impl Moving {
    pub(super) fn new(rule: Rule) -> Moving {
        Moving {
            rule,
            state: State::default(),
            taken: Vec::new(),
            blocks: Vec::new(),
            all: 0,
            touched: Vec::new(),
            whole: false,
        }
    }

    /// The bytes of its state in a step with this gradient, without blocks that it touches for the first time.
    pub(super) fn bytes(&self, gradient: &Gradient) -> u128 {
        let elements = match gradient {
            Gradient::Whole(Numbers::Double(values)) => values.len(),
            Gradient::Whole(Numbers::Single(values)) => values.len(),
            Gradient::Listed(_) | Gradient::Nothing => self.taken.len(),
        };
        let moments = u128::from(self.has_first()) + u128::from(self.has_second());
        elements as u128 * (size_of::<u32>() as u128 + moments * size_of::<f64>() as u128)
    }

    /// Takes the last of these steps; elements that have no gradient stay behind.
    pub(super) fn step(&mut self, weights: &mut [f64], gradient: &Gradient, paces: &[Pace]) {
        let Some((pace, before)) = paces.split_last() else { return };
        match gradient {
            Gradient::Whole(values) if values.len() == weights.len() => {
                self.catch_up(weights, before);
                self.lay_out(weights.len());
                match values {
                    Numbers::Double(values) => self.rule.step(&mut self.state, weights, values, *pace),
                    Numbers::Single(values) => self.rule.step(&mut self.state, weights, values, *pace),
                }
                self.all = paces.len() as u32;
            }
            Gradient::Whole(_) | Gradient::Nothing => {}
            Gradient::Listed(listed) => {
                self.bring(weights, &listed.positions, before);
                self.run(weights, &listed.positions, &listed.values, (&[*pace], paces.len() as u32));
                if !self.whole {
                    self.touched.extend(&listed.positions);
                    // Now and then, so that each is there once or a few times.
                    if self.touched.len() > 2 * self.state.first.len() {
                        self.touched.sort_unstable();
                        self.touched.dedup();
                    }
                }
            }
        }
    }

    /// Brings all elements to the end of these steps.
    pub(super) fn catch_up(&mut self, weights: &mut [f64], paces: &[Pace]) {
        if self.all as usize >= paces.len() {
            return;
        }
        if self.whole || paces.iter().any(|pace| pace.weight_decay != 0.0) {
            let every: Vec<usize> = (0..weights.len()).collect();
            self.bring(weights, &every, paces);
        } else {
            self.touched.sort_unstable();
            self.touched.dedup();
            let touched = std::mem::take(&mut self.touched);
            self.bring(weights, &touched, paces);
            self.touched = touched;
        }
        self.all = paces.len() as u32;
    }

    /// Whether one of these elements is behind.
    pub(super) fn is_behind(&self, positions: &[usize], paces: &[Pace]) -> bool {
        positions.iter().any(|at| self.steps(*at) < paces.len())
    }

    /// Whether some element may be behind.
    pub(super) fn any_behind(&self, paces: &[Pace]) -> bool {
        (self.all as usize) < paces.len()
    }

    /// Brings these elements to the end of these steps.
    pub(super) fn bring(&mut self, weights: &mut [f64], positions: &[usize], paces: &[Pace]) {
        let mut rest = positions;
        while let Some(first) = rest.first() {
            let steps = self.steps(*first);
            let len = rest.iter().take_while(|at| self.steps(**at) == steps).count();
            let (same, others) = rest.split_at(len);
            rest = others;
            let Some(missed) = paces.get(steps..).filter(|missed| !missed.is_empty()) else { continue };
            // What does not decay and has no moments stays where it is.
            let moves = |at: &usize| {
                let moment = |moments: &[f64], slot: usize| moments.get(slot).is_some_and(|m| *m != 0.0);
                let moments =
                    |slot: usize| moment(&self.state.first, slot) || moment(&self.state.second, slot);
                self.slot(*at).is_some_and(moments)
            };
            if missed.iter().any(|pace| pace.weight_decay != 0.0) || same.iter().any(moves) {
                self.run(weights, same, &vec![0.0; len], (missed, paces.len() as u32));
            }
        }
    }

    /// Where the state of an element is.
    fn slot(&self, position: usize) -> Option<usize> {
        if self.whole {
            return Some(position);
        }
        let block = *self.blocks.get(position / BLOCK)?;
        (block != NONE).then(|| block as usize * BLOCK + position % BLOCK)
    }

    /// How many steps an element has taken.
    fn steps(&self, position: usize) -> usize {
        let own = self.slot(position).and_then(|slot| self.taken.get(slot).copied());
        self.all.max(own.unwrap_or(0)) as usize
    }

    /// Where the state of an element is, of `len`; a place is made for it.
    fn place(&mut self, position: usize, len: usize) -> usize {
        if let Some(slot) = self.slot(position) {
            return slot;
        }
        self.blocks.resize(len.div_ceil(BLOCK), NONE);
        let slot = self.taken.len();
        self.blocks[position / BLOCK] = (slot / BLOCK) as u32;
        self.taken.resize(slot + BLOCK, 0);
        self.state.first.resize(slot + BLOCK, 0.0);
        self.state.second.resize(if self.has_second() { slot + BLOCK } else { 0 }, 0.0);
        slot + position % BLOCK
    }

    fn has_second(&self) -> bool {
        !matches!(self.rule, Rule::Sgd { .. })
    }

    fn has_first(&self) -> bool {
        self.rule != (Rule::Sgd { momentum: 0.0 })
    }

    /// Makes places for all elements, in their order.
    fn lay_out(&mut self, len: usize) {
        if self.whole {
            return;
        }
        let second = vec![0.0; if self.has_second() { len } else { 0 }];
        let first = vec![0.0; if self.has_first() { len } else { 0 }];
        let mut state = State { first, second };
        let mut taken = vec![0; len];
        for (at, taken) in taken.iter_mut().enumerate() {
            if let Some(slot) = self.slot(at) {
                if let Some(moment) = state.first.get_mut(at) {
                    *moment = self.state.first[slot];
                }
                if let Some(moment) = state.second.get_mut(at) {
                    *moment = self.state.second[slot];
                }
                *taken = self.taken[slot];
            }
        }
        (self.state, self.taken, self.whole) = (state, taken, true);
        (self.blocks, self.touched) = (Vec::new(), Vec::new());
    }

    /// Takes steps with some elements, which have then taken so many.
    fn run(
        &mut self,
        weights: &mut [f64],
        positions: &[usize],
        gradient: &[f64],
        (paces, end): (&[Pace], u32),
    ) {
        let slots: Vec<usize> = positions.iter().map(|at| self.place(*at, weights.len())).collect();
        let pick = |from: &[f64]| slots.iter().filter_map(|at| from.get(*at).copied()).collect::<Vec<f64>>();
        let mut moved: Vec<f64> = positions.iter().map(|at| weights[*at]).collect();
        let mut state = State { first: pick(&self.state.first), second: pick(&self.state.second) };
        for pace in paces {
            self.rule.step(&mut state, &mut moved, gradient, *pace);
        }
        for (nth, (position, slot)) in positions.iter().zip(slots).enumerate() {
            weights[*position] = moved[nth];
            if let Some(moment) = state.first.get(nth) {
                self.state.first[slot] = *moment;
            }
            if let Some(moment) = self.state.second.get_mut(slot) {
                *moment = state.second[nth];
            }
            self.taken[slot] = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Zeros that are not listed, threads, and numbers of 32 bits have the sum of the whole gradient to the last bit.
    #[test]
    fn squares_do_not_depend_on_how_a_gradient_is_given() {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for len in [0, 5, PART - 1, PART + 1, 4 * PART + 9] {
            let value = |at: usize| if at.is_multiple_of(3) { (at as f32 * 0.7).sin() } else { 0.0 };
            let narrow: Vec<f32> = (0..len).map(value).collect();
            let wide: Vec<f64> = narrow.iter().map(|value| f64::from(*value)).collect();
            let positions: Vec<usize> = (0..len).step_by(3).collect();
            let values = positions.iter().map(|at| wide[*at]).collect();
            let listed = Gradient::Listed(Listed { positions, values });
            let wanted = listed.squares();
            let wide = Gradient::Whole(Numbers::Double(Arc::new(wide)));
            let narrow = Gradient::Whole(Numbers::Single(Arc::new(narrow)));
            for gradient in [&wide, &narrow] {
                assert_eq!(gradient.squares().to_bits(), wanted.to_bits(), "{len}");
                assert_eq!(threads.install(|| gradient.squares()).to_bits(), wanted.to_bits(), "{len}");
            }
            let error = (wanted - (0..len).map(|at| f64::from(value(at)).powi(2)).sum::<f64>()).abs();
            assert!(error <= 1e-9 * wanted.max(1.0), "{len}: {error}");
        }
    }
}
