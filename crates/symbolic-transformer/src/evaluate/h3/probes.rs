//! Linear probes with control tasks (Hewitt and Liang 2019).
//!
//! A probe is a multinomial logistic regression from the activations of one layer to the labels of one task; where the
//! label is a set, one logistic regression for each member. It is trained on even formulas and judged on odd ones. Its
//! control has the same activations and random labels, one for each type of token, drawn from the labels of the task: what a
//! probe of this form can learn by heart. The difference of the two accuracies is the *selectivity*.
//!
//! Training goes from weights of 0 to the minimum of the mean loss with a small penalty on the weights, on standardised
//! activations: a convex problem, and no draw.

use std::collections::BTreeMap;
use std::ops::Range;

use seeded::Family;
use serde::Serialize;
use training::kernels::{cross_entropy, linear, linear_backward_weights};

use super::minimise::minimise;
use crate::evaluate::iid::Mean;
use crate::evaluate::statistics::mean_interval;

/// Steps of the minimiser.
const STEPS: usize = 150;

/// The penalty is half of this times the sum of the squares of all weights but the biases.
const PENALTY: f64 = 1e-4;

/// What is read off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// Parentheses open behind the token.
    Depth,
    /// The variables in scope: a set.
    Scope,
    /// What the tree has next.
    Category,
    /// Of a variable the number of its quantifier in the text, 0 if it is free.
    Binder,
    /// Whether what ends here is an instance of the definition of this number.
    Instance(usize),
}

impl Task {
    /// Those of the suite.
    pub(super) const ALL: [Self; 4] = [Self::Depth, Self::Scope, Self::Category, Self::Binder];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Depth => "parenthesis depth",
            Self::Scope => "variables in scope",
            Self::Category => "expected category",
            Self::Binder => "binder of the variable",
            Self::Instance(_) => "instance of the definition",
        }
    }
}

/// How well a task is read off a layer.
#[derive(Debug, Clone, Serialize)]
pub struct Probe {
    /// The layer, from 1; 0 is what the embedding gives.
    pub layer: usize,
    /// The task.
    pub task: &'static str,
    /// The different labels of the formulas that train.
    pub labels: usize,
    /// The rows that train.
    pub training: usize,
    /// The rows that judge.
    pub rows: usize,
    /// The share of judging rows with the commonest label of training.
    pub commonest: Option<f64>,
    /// The share of judging rows that are read right (a set: with every member), with its standard error over formulas.
    pub accuracy: Option<Mean>,
    /// The same for the control task.
    pub control: Option<Mean>,
    /// The difference, paired.
    pub selectivity: Option<Mean>,
    /// Why there is no number.
    pub reason: Option<&'static str>,
}

/// Activations of many rows with their labels.
#[derive(Debug)]
pub(super) struct Examples {
    d: usize,
    /// Of each layer [rows, d].
    layers: Vec<Vec<f32>>,
    /// The formula of each row.
    formulas: Vec<usize>,
    /// The token of each row.
    tokens: Vec<u32>,
    labels: BTreeMap<Task, Vec<(usize, u64)>>,
}

/// Some rows of a layer with the labels of a task and those of its control.
#[derive(Debug, Default)]
struct Part {
    /// [rows, d]
    x: Vec<f32>,
    labels: Vec<u64>,
    control: Vec<u64>,
    formulas: Vec<usize>,
}

impl Examples {
    /// No row yet, of a model of so many layers and this width.
    pub(super) fn new(layers: usize, d: usize) -> Self {
        Self {
            d,
            layers: vec![Vec::new(); layers],
            formulas: Vec::new(),
            tokens: Vec::new(),
            labels: BTreeMap::new(),
        }
    }

    /// Adds the rows of a formula, of each layer some rows of [all, d], and answers with the number of the first.
    pub(super) fn add<'a>(
        &mut self,
        formula: usize,
        tokens: &[u32],
        hidden: impl Iterator<Item = (&'a [f32], Range<usize>)>,
    ) -> usize {
        let first = self.tokens.len();
        for (layer, (h, rows)) in self.layers.iter_mut().zip(hidden) {
            layer.extend_from_slice(h.get(rows.start * self.d..rows.end * self.d).unwrap_or_default());
        }
        self.formulas.extend(std::iter::repeat_n(formula, tokens.len()));
        self.tokens.extend_from_slice(tokens);
        first
    }

    /// Adds labels of rows.
    pub(super) fn label(&mut self, task: Task, labels: impl Iterator<Item = (usize, u64)>) {
        self.labels.entry(task).or_default().extend(labels);
    }

    /// The probes of these tasks, layer after layer.
    pub(super) fn probes(&self, tasks: &[Task], seed: u64) -> Vec<Probe> {
        let of_layer = |layer: usize| {
            let x = self.standardised(layer);
            tasks.iter().map(|task| self.probe(layer, &x, *task, seed)).collect::<Vec<_>>()
        };
        (0..self.layers.len()).flat_map(of_layer).collect()
    }

    /// A layer in which each coordinate has mean 0 and deviation 1 over the rows that train.
    fn standardised(&self, layer: usize) -> Vec<f32> {
        let mut x = self.layers.get(layer).cloned().unwrap_or_default();
        let trains: Vec<&[f32]> =
            x.chunks_exact(self.d).zip(&self.formulas).filter(|r| r.1 % 2 == 0).map(|r| r.0).collect();
        let n = trains.len().max(1) as f64;
        let moments: Vec<(f32, f32)> = (0..self.d)
            .map(|c| {
                let of = |row: &&[f32]| row.get(c).copied().map_or(0.0, f64::from);
                let mean = trains.iter().map(of).sum::<f64>() / n;
                let variance = trains.iter().map(|row| (of(row) - mean).powi(2)).sum::<f64>() / n;
                // A coordinate that does not vary says nothing.
                (mean as f32, if variance > 1e-12 { (1.0 / variance.sqrt()) as f32 } else { 0.0 })
            })
            .collect();
        for row in x.chunks_exact_mut(self.d) {
            row.iter_mut().zip(&moments).for_each(|(x, (mean, inverse))| *x = (*x - mean) * inverse);
        }
        x
    }

    fn probe(&self, layer: usize, x: &[f32], task: Task, seed: u64) -> Probe {
        let [training, judging] = self.parts(x, task, seed);
        let mut different = training.labels.clone();
        different.sort_unstable();
        different.dedup();
        let mut probe = Probe {
            layer,
            task: task.name(),
            labels: different.len(),
            training: training.labels.len(),
            rows: judging.labels.len(),
            commonest: None,
            accuracy: None,
            control: None,
            selectivity: None,
            reason: None,
        };
        if different.len() < 2 || judging.labels.is_empty() {
            probe.reason = Some("all labels are alike in this code");
            return probe;
        }
        let right = |labels: &[u64], truth: &[u64]| -> Vec<f64> {
            let read = Regression::trained(task, &training.x, labels, self.d).read(&judging.x);
            read.iter().zip(truth).map(|(a, b)| if a == b { 1.0 } else { 0.0 }).collect()
        };
        let own = right(&training.labels, &judging.labels);
        let control = right(&training.control, &judging.control);
        let over_formulas = |f: &dyn Fn(usize) -> f64| {
            let rows: Vec<usize> = (0..judging.formulas.len()).collect();
            let formula = |row: &usize| judging.formulas.get(*row);
            let formulas: Vec<&[usize]> = rows.chunk_by(|a, b| formula(a) == formula(b)).collect();
            let sums = formulas.iter().map(|rows| (rows.iter().map(|&r| f(r)).sum(), rows.len() as f64));
            let mean = mean_interval(sums);
            Some(Mean { value: mean.value, se: mean.se })
        };
        let at = |list: &[f64], row: usize| list.get(row).copied().unwrap_or(0.0);
        let counts =
            different.iter().map(|label| (training.labels.iter().filter(|l| *l == label).count(), label));
        let commonest = counts.max_by_key(|c| c.0).map_or(0, |c| *c.1);
        let hits = judging.labels.iter().filter(|l| **l == commonest).count();
        probe.commonest = Some(hits as f64 / judging.labels.len() as f64);
        probe.accuracy = over_formulas(&|row| at(&own, row));
        probe.control = over_formulas(&|row| at(&control, row));
        probe.selectivity = over_formulas(&|row| at(&own, row) - at(&control, row));
        probe
    }

    /// The rows that train and those that judge.
    fn parts(&self, x: &[f32], task: Task, seed: u64) -> [Part; 2] {
        let labels = self.labels.get(&task).map_or(&[][..], Vec::as_slice);
        let formula = |row: usize| self.formulas.get(row).copied().unwrap_or(0);
        let seen: Vec<u64> = labels.iter().filter(|l| formula(l.0).is_multiple_of(2)).map(|l| l.1).collect();
        // The label of a type is that of a row drawn by the number of the type.
        let family = Family::new("symbolic-transformer", &format!("control of {}", task.name()), seed);
        let mut of_type = BTreeMap::<u32, u64>::new();
        let mut parts = [Part::default(), Part::default()];
        for &(row, label) in labels {
            let token = self.tokens.get(row).copied().unwrap_or(0);
            let control = *of_type.entry(token).or_insert_with(|| {
                let drawn = family.stream(u64::from(token)).below(seen.len() as u64) as usize;
                seen.get(drawn).copied().unwrap_or(0)
            });
            let [trains, judges] = &mut parts;
            let part = if formula(row).is_multiple_of(2) { trains } else { judges };
            part.x.extend_from_slice(x.get(row * self.d..(row + 1) * self.d).unwrap_or_default());
            part.labels.push(label);
            part.control.push(control);
            part.formulas.push(formula(row));
        }
        parts
    }
}

/// A logistic regression.
struct Regression {
    task: Task,
    /// The label of each output; for sets the bit.
    outputs: Vec<u64>,
    /// [outputs, d] and \[outputs\]
    theta: Vec<f32>,
    d: usize,
}

impl Regression {
    fn trained(task: Task, x: &[f32], labels: &[u64], d: usize) -> Self {
        let mut outputs = if task == Task::Scope {
            let all = labels.iter().fold(0, |all, set| all | set);
            (0..64).map(|bit| 1 << bit).filter(|bit| all & bit != 0).collect()
        } else {
            labels.to_vec()
        };
        outputs.sort_unstable();
        outputs.dedup();
        let width = outputs.len();
        let mut probe = Self { task, outputs, theta: vec![0.0; width * (d + 1)], d };
        let place = |label: &u64| probe.outputs.iter().position(|o| o == label).unwrap_or(0) as u32;
        let targets: Vec<u32> = labels.iter().map(place).collect();
        let mut theta = vec![0.0; probe.theta.len()];
        let mut slope = vec![0.0_f32; theta.len()];
        let each = 1.0 / labels.len().max(1) as f64;
        minimise(&mut theta, STEPS, 1e-5, |theta, gradient| {
            probe.theta.iter_mut().zip(theta).for_each(|(to, from)| *to = *from as f32);
            let mut y = probe.outputs_of(x);
            let loss = match task {
                Task::Scope => probe.sets(&mut y, labels),
                _ => cross_entropy(&mut y, &targets, 0.0, true).loss,
            };
            slope.fill(0.0);
            let (dweight, dbias) = slope.split_at_mut(width * d);
            linear_backward_weights(&y, x, dweight, dbias, labels.len());
            let mut squares = 0.0;
            for (i, ((to, &slope), theta)) in gradient.iter_mut().zip(&slope).zip(theta).enumerate() {
                let penalised = if i < width * d { *theta } else { 0.0 };
                squares += penalised * penalised;
                *to = f64::from(slope) * each + PENALTY * penalised;
            }
            loss * each + 0.5 * PENALTY * squares
        });
        probe.theta = theta.iter().map(|&x| x as f32).collect();
        probe
    }

    /// The summed logistic loss of sets; `y` becomes its gradient.
    fn sets(&self, y: &mut [f32], labels: &[u64]) -> f64 {
        let mut loss = 0.0;
        for (row, set) in y.chunks_exact_mut(self.outputs.len().max(1)).zip(labels) {
            for (y, bit) in row.iter_mut().zip(&self.outputs) {
                let held = if set & bit != 0 { 1.0 } else { 0.0 };
                let z = f64::from(*y);
                // ln(1 + e^z) without overflow.
                loss += z.max(0.0) + (-z.abs()).exp().ln_1p() - held * z;
                *y = (1.0 / (1.0 + (-z).exp()) - held) as f32;
            }
        }
        loss
    }

    /// [rows, outputs]
    fn outputs_of(&self, x: &[f32]) -> Vec<f32> {
        let (rows, width) = (x.len() / self.d.max(1), self.outputs.len());
        let (weight, bias) = self.theta.split_at(width * self.d);
        let mut y = vec![0.0; rows * width];
        linear(x, weight, bias, &mut y, rows);
        y
    }

    /// The label of each row.
    fn read(&self, x: &[f32]) -> Vec<u64> {
        let width = self.outputs.len();
        if width == 0 {
            // Sets that are all empty.
            return vec![0; x.len() / self.d.max(1)];
        }
        let one = |row: &[f32]| {
            let outputs = row.iter().zip(&self.outputs);
            if self.task == Task::Scope {
                return outputs.filter(|o| *o.0 > 0.0).fold(0, |set, o| set | o.1);
            }
            let best = outputs
                .fold((f32::NEG_INFINITY, 0), |best, o| if *o.0 > best.0 { (*o.0, *o.1) } else { best });
            best.1
        };
        self.outputs_of(x).chunks_exact(width).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::{Stream, test_seed};

    /// Rows of 6 labels, 12 types of tokens, and what a layer has of them.
    fn examples(layer: impl Fn(u64, u32, &mut Stream) -> Vec<f32>) -> Examples {
        examples_of(12, layer)
    }

    fn examples_of(types: u64, layer: impl Fn(u64, u32, &mut Stream) -> Vec<f32>) -> Examples {
        let mut stream = Family::named("probes-test").stream(test_seed());
        let d = 16;
        let mut examples = Examples::new(1, d);
        for formula in 0..200 {
            let rows: Vec<(u64, u32)> =
                (0..10).map(|_| (stream.below(6), stream.below(types) as u32)).collect();
            let x: Vec<f32> =
                rows.iter().flat_map(|&(label, token)| layer(label, token, &mut stream)).collect();
            assert_eq!(x.len(), rows.len() * d);
            let tokens: Vec<u32> = rows.iter().map(|r| r.1).collect();
            let first = examples.add(formula, &tokens, [(x.as_slice(), 0..rows.len())].into_iter());
            examples.label(Task::Depth, rows.iter().enumerate().map(|(i, r)| (first + i, r.0)));
            // The bits of the label as a set.
            examples.label(Task::Scope, rows.iter().enumerate().map(|(i, r)| (first + i, r.0)));
        }
        examples
    }

    fn one_hot(at: usize, d: usize) -> Vec<f32> {
        (0..d).map(|i| if i == at { 1.0 } else { 0.0 }).collect()
    }

    fn of(probes: &[Probe], task: Task) -> (f64, f64, f64, f64) {
        let probe = probes.iter().find(|p| p.task == task.name()).unwrap();
        let (a, c, s) = (probe.accuracy.unwrap(), probe.control.unwrap(), probe.selectivity.unwrap());
        assert!((a.value - c.value - s.value).abs() < 1e-12);
        assert_eq!((probe.training, probe.rows), (1000, 1000));
        (a.value, c.value, s.value, s.se)
    }

    #[test]
    fn labels_that_are_there_are_read_and_types_are_controls() {
        // The label is there, the type of the token is not: what is right of the control is the commonest of its labels. Of few types
        // half could have one.
        let probes = examples_of(240, |label, _, _| one_hot(label as usize, 16)).probes(&Task::ALL, 0);
        for task in [Task::Depth, Task::Scope] {
            let (accuracy, control, selectivity, _) = of(&probes, task);
            assert!(accuracy > 0.999 && control < 0.5 && selectivity > 0.5, "{accuracy} {control}");
        }
        // The type is there, the label is not: the control is learned by heart, the task is chance.
        let probes = examples(|_, token, _| one_hot(token as usize, 16)).probes(&Task::ALL, 0);
        for task in [Task::Depth, Task::Scope] {
            let (accuracy, control, selectivity, _) = of(&probes, task);
            assert!(accuracy < 0.3 && control > 0.999 && selectivity < -0.7, "{accuracy} {control}");
        }
    }

    #[test]
    fn noise_is_chance() {
        let probes = examples(|_, _, s| (0..16).map(|_| s.normal() as f32).collect()).probes(&Task::ALL, 1);
        let (accuracy, _, _, se) = of(&probes, Task::Depth);
        assert!((accuracy - 1.0 / 6.0).abs() < 0.08 && se > 0.0 && se < 0.05, "{accuracy}");
        let commonest = probes[0].commonest.unwrap();
        assert!((commonest - 1.0 / 6.0).abs() < 0.06);
    }

    /// A shift and a scale of coordinates change nothing, and the same seed gives the same numbers.
    #[test]
    fn activations_are_standardised() {
        let layer = |label: u64, token: u32, s: &mut Stream| -> Vec<f32> {
            let there = |i: usize| i == label as usize || i == 8 + token as usize % 2;
            (0..16).map(|i| if there(i) { 3.0 } else { 0.0 } + s.normal() as f32).collect()
        };
        let (plain, mut moved) = (examples(layer), examples(layer));
        let far = |(i, x): (usize, &f32)| 100.0 + x * if i % 16 == 3 { 64.0 } else { 0.25 };
        moved.layers = vec![plain.layers[0].iter().enumerate().map(far).collect()];
        let (a, b) =
            (of(&plain.probes(&Task::ALL, 5), Task::Depth), of(&moved.probes(&Task::ALL, 5), Task::Depth));
        assert!((a.0 - b.0).abs() < 0.02 && (a.1 - b.1).abs() < 0.02, "{a:?} {b:?}");
        assert_eq!(of(&plain.probes(&Task::ALL, 5), Task::Depth), a);
        // Two seeds may give controls of equal accuracy, six do not.
        let control = |seed| of(&plain.probes(&Task::ALL, seed), Task::Depth).1;
        assert!((6..12).any(|seed| control(seed) != a.1), "another seed has another control");
    }

    #[test]
    fn labels_that_are_alike_have_no_numbers() {
        let mut alike = examples(|_, _, _| vec![1.0; 16]);
        for labels in alike.labels.values_mut() {
            labels.iter_mut().for_each(|l| l.1 = 0);
        }
        for probe in alike.probes(&Task::ALL, 0) {
            assert!(probe.accuracy.is_none() && probe.reason.is_some());
        }
    }
}
