//! A parameter on its way: where the loss touches few of its elements, a step costs those only.
//!
//! The rules move every element at every step, if only by their moments and the decay. An element that no gradient
//! touches is left behind and catches up, step by step with a gradient of 0, before anybody looks at it: its
//! value is that of the dense formula to the last bit.

use super::rule::{Pace, Rule, State};
use crate::engine::{Listed, Numbers, Slope, Value};

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
    pub(super) fn of(slope: Slope) -> Gradient {
        match slope {
            Slope::Whole(Value::Dense(values)) => Gradient::Whole(values),
            Slope::Listed(listed) => Gradient::Listed(listed),
            Slope::Whole(Value::Tuples(_) | Value::Counts(_)) => Gradient::Nothing,
        }
    }

    /// Adds the squares of its elements to a sum, in order. The sum is finite if they all are numbers and not too large.
    pub(super) fn squares(&self, sum: f64) -> f64 {
        let add = |sum: f64, value: &f64| sum + value * value;
        match self {
            Gradient::Whole(Numbers::Double(values)) => values.iter().fold(sum, add),
            Gradient::Whole(values) => values.doubles().iter().fold(sum, add),
            Gradient::Listed(listed) => listed.values.iter().fold(sum, add),
            Gradient::Nothing => sum,
        }
    }

    /// Whether all its elements are numbers.
    pub(super) fn is_finite(&self) -> bool {
        match self {
            Gradient::Whole(values) => values.doubles().iter().all(|value| value.is_finite()),
            Gradient::Listed(listed) => listed.values.iter().all(|value| value.is_finite()),
            Gradient::Nothing => true,
        }
    }
}

/// A parameter's state under an update rule.
#[derive(Debug)]
pub(super) struct Moving {
    rule: Rule,
    state: State,
    /// How many steps each element has taken, where that is more than `all`. Empty if there is none.
    taken: Vec<u32>,
    /// So many steps every element has taken.
    all: u32,
    /// The elements that a listed gradient has touched, each once.
    touched: Vec<usize>,
    /// Whether a gradient has touched all.
    whole: bool,
}

impl Moving {
    pub(super) fn new(rule: Rule) -> Moving {
        Moving { rule, state: State::default(), taken: Vec::new(), all: 0, touched: Vec::new(), whole: false }
    }

    /// Takes the last of these steps; elements that have no gradient stay behind.
    pub(super) fn step(&mut self, weights: &mut [f64], gradient: &Gradient, paces: &[Pace]) {
        let Some((pace, before)) = paces.split_last() else { return };
        match gradient {
            Gradient::Whole(values) if values.len() == weights.len() => {
                self.catch_up(weights, before);
                self.whole = true;
                match values {
                    Numbers::Double(values) => self.rule.step(&mut self.state, weights, values, *pace),
                    values => self.rule.step(&mut self.state, weights, &values.doubles(), *pace),
                }
                // A 0 has no sign.
                weights.iter_mut().for_each(|weight| *weight += 0.0);
                self.all = paces.len() as u32;
            }
            Gradient::Whole(_) | Gradient::Nothing => {}
            Gradient::Listed(listed) => {
                self.make_room(weights.len());
                self.bring(weights, &listed.positions, before);
                for at in &listed.positions {
                    if self.taken[*at] == 0 {
                        self.touched.push(*at);
                    }
                    self.taken[*at] = paces.len() as u32;
                }
                self.run(weights, &listed.positions, &listed.values, &[*pace]);
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
            let touched = std::mem::take(&mut self.touched);
            self.bring(weights, &touched, paces);
            self.touched = touched;
        }
        self.all = paces.len() as u32;
    }

    /// Whether one of these elements is behind.
    pub(super) fn is_behind(&self, positions: &[usize], paces: &[Pace]) -> bool {
        let mut rest = positions;
        while !rest.is_empty() {
            let (steps, len) = self.behind(rest);
            if steps < paces.len() {
                return true;
            }
            rest = &rest[len..];
        }
        false
    }

    /// Whether some element may be behind.
    pub(super) fn any_behind(&self, paces: &[Pace]) -> bool {
        (self.all as usize) < paces.len()
    }

    /// How many steps the first of these elements has taken, and how many behind it are as far.
    fn behind(&self, positions: &[usize]) -> (usize, usize) {
        let steps = |at: &usize| self.taken.get(*at).map_or(self.all, |taken| self.all.max(*taken)) as usize;
        let first = positions.first().map_or(0, steps);
        (first, positions.iter().take_while(|at| steps(at) == first).count())
    }

    /// Brings these elements to the end of these steps.
    pub(super) fn bring(&mut self, weights: &mut [f64], positions: &[usize], paces: &[Pace]) {
        let mut rest = positions;
        while !rest.is_empty() {
            let (steps, len) = self.behind(rest);
            let (same, others) = rest.split_at(len);
            rest = others;
            let Some(missed) = paces.get(steps..).filter(|missed| !missed.is_empty()) else { continue };
            // What does not decay and has no moments stays where it is.
            let no = |moments: &[f64]| same.iter().all(|at| moments.get(*at).is_none_or(|m| *m == 0.0));
            let decays = missed.iter().any(|pace| pace.weight_decay != 0.0);
            if decays || !no(&self.state.first) || !no(&self.state.second) {
                self.make_room(weights.len());
                self.run(weights, same, &vec![0.0; len], missed);
                same.iter().for_each(|at| self.taken[*at] = paces.len() as u32);
            }
        }
    }

    fn make_room(&mut self, len: usize) {
        // Fresh zeros cost nothing until they are touched.
        if self.taken.len() < len {
            self.taken = vec![0; len];
        }
        for moments in [&mut self.state.first, &mut self.state.second] {
            if moments.len() < len {
                *moments = vec![0.0; len];
            }
        }
    }

    /// Takes steps with some elements.
    fn run(&mut self, weights: &mut [f64], positions: &[usize], gradient: &[f64], paces: &[Pace]) {
        let pick = |from: &[f64]| positions.iter().map(|at| from[*at]).collect::<Vec<f64>>();
        let mut moved = pick(weights);
        let mut state = State { first: pick(&self.state.first), second: pick(&self.state.second) };
        for pace in paces {
            self.rule.step(&mut state, &mut moved, gradient, *pace);
        }
        for (nth, at) in positions.iter().enumerate() {
            // A 0 has no sign.
            weights[*at] = moved[nth] + 0.0;
            self.state.first[*at] = state.first[nth];
            self.state.second[*at] = state.second[nth];
        }
    }
}
