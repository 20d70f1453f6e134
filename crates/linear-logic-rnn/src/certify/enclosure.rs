//! Enclosures: a step on sets, every rounding bounded. The arithmetic of the checker, and of nothing else.
//!
//! Every number of a step is an affine form: `mid + Σ coef·s`, up to `rem`, for symbols s in [−1, 1]. What rounding does to
//! `mid` is computed exactly (two-sum, and the product by fma), what it does to `coef` is bounded, and both go to `rem`,
//! which is rounded up. So what is exact in f64 has no remainder, and automata that a cell computes exactly are certified
//! as well as those that it approaches.

use super::certificate::refused;
use crate::error::Result;
use crate::step::{Act, Groups, Op, Step, ValueId};

/// What exp, tanh and the logistic function are wrong by, relatively. Of exp and tanh glibc says at most 2 ulp, other
/// libraries 3; the logistic function adds three roundings to them.
const LIBRARY: f64 = 16.0 * f64::EPSILON;
/// What a product loses besides if it is too small for 53 bits: far more than the least number, 5·10⁻³²⁴.
const TINY: f64 = 1e-290;

/// A number that is not known exactly.
#[derive(Debug, Clone, Default)]
pub(super) struct Form {
    pub(super) mid: f64,
    coef: Vec<f64>,
    rem: f64,
    /// Σ |coef|, or more.
    spread: f64,
}

/// a + b and a·b of numbers that are not negative, rounded up; exact where one is 0.
fn plus(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { a + b } else { (a + b).next_up() }
}
fn times(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { (a * b).next_up() }
}

impl Form {
    /// A sum of n numbers is wrong by n roundings at most.
    pub(super) fn tight(mut self) -> Self {
        let roundings = (self.coef.len() + 2) as f64 * f64::EPSILON;
        self.spread = times(self.coef.iter().map(|c| c.abs()).sum(), 1.0 + roundings);
        self
    }
    /// How far the number may be from its middle.
    pub(super) fn radius(&self) -> f64 {
        plus(self.spread, self.rem)
    }
    /// self + w·x
    pub(super) fn add(&mut self, w: f64, x: &Self) {
        let product = w * x.mid;
        let sum = self.mid + product;
        let back = sum - self.mid;
        let lost = ((self.mid - (sum - back)) + (product - back)).abs() + w.mul_add(x.mid, -product).abs();
        let tiny = if w != 0.0 && x.mid != 0.0 && product.abs() < 1e-250 { TINY } else { 0.0 };
        self.mid = sum;
        self.rem = plus(plus(self.rem, times(w.abs(), x.rem)), plus(times(lost, 1.0 + f64::EPSILON), tiny));
        if w != 0.0 && x.spread != 0.0 {
            self.coef.resize(self.coef.len().max(x.coef.len()), 0.0);
            self.coef.iter_mut().zip(&x.coef).for_each(|(c, x)| *c += w * x);
            // Half an ulp of each product and of each sum; twice that is taken, which is room for `spread` itself.
            self.spread = plus(self.spread, times(w.abs(), x.spread));
            self.rem = plus(self.rem, plus(times(2.0 * f64::EPSILON, self.spread), TINY));
        }
    }
    /// Lower and upper bound; without a radius the number itself, and no bounds where numbers were left.
    pub(super) fn bounds(&self) -> (f64, f64) {
        match self.radius() {
            radius if !(radius + self.mid).is_finite() => (f64::NEG_INFINITY, f64::INFINITY),
            0.0 => (self.mid, self.mid),
            radius => ((self.mid - radius).next_down(), (self.mid + radius).next_up()),
        }
    }
    /// self + a·b = self + mid(a) b + mid(b) (a − mid(a)) + what is left
    fn add_product(&mut self, a: &Self, b: &Self) {
        self.add(a.mid, b);
        self.add(b.mid, &Self { mid: 0.0, ..a.clone() });
        self.rem = plus(self.rem, times(a.radius(), b.radius()));
    }
    /// A line and what the function leaves of it. Where the function bends one way only: `f − slope·d` lies between its
    /// values at the ends and the tangent in the middle. Else it lies between the least and the greatest slope, which is
    /// at 0.
    fn through(&self, f: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64, is_convex: bool) -> Self {
        let radius = self.radius();
        let (low, high) = ((self.mid - radius).next_down(), (self.mid + radius).next_up());
        let (a, mid, b) = (f(low), f(self.mid), f(high));
        let (line, least, most) = if is_convex || low >= 0.0 || high <= 0.0 {
            let line = if radius > 0.0 { (b - a) / (high - low) } else { 0.0 };
            let (a, b) = (a - line * (low - self.mid), b - line * (high - self.mid));
            let tangent = ((slope(self.mid) - line) * (high - low) / 2.0).abs();
            (line, a.min(b).min(mid - tangent), a.max(b).max(mid + tangent))
        } else {
            let (least, most) = (slope(low).min(slope(high)), slope(0.0));
            let rest = (most - least) / 2.0 * ((high - low) / 2.0);
            (least.midpoint(most), mid - rest, mid + rest)
        };
        // What f and its slope are wrong by, and a dozen roundings of numbers that are no larger than these.
        let size = 1.0 + a.abs() + mid.abs() + b.abs() + (line.abs() + 1.0) * (high - low);
        let rem = plus((most - least) / 2.0, 4.0 * LIBRARY * size);
        let mut to = Self { mid: least.midpoint(most), rem, ..Self::default() };
        to.add(line, &Self { mid: 0.0, ..self.clone() });
        to.tight()
    }
    fn act(&self, act: Act) -> Self {
        let (radius, logistic) = (self.radius(), |x: f64| 1.0 / (1.0 + (-x).exp()));
        match act {
            Act::Identity => self.clone(),
            Act::Relu if self.mid >= radius => self.clone(),
            Act::Relu if self.mid <= -radius => Self::default(),
            Act::Relu => Self { rem: plus(self.mid.abs(), radius), ..Self::default() },
            Act::Tanh => self.through(f64::tanh, |x| 1.0 - x.tanh() * x.tanh(), false),
            Act::Sigmoid => self.through(logistic, |x| logistic(x) * logistic(-x), false),
        }
    }
}

pub(super) fn known(all: &[f64]) -> Vec<Form> {
    all.iter().map(|x| Form { mid: *x, ..Form::default() }).collect()
}

pub(super) fn one_hot(len: usize, letter: u32) -> Vec<Form> {
    known(&(0..len).map(|at| f64::from(u8::from(at == letter as usize))).collect::<Vec<f64>>())
}

/// Entry i of a softmax, 1 / (1 + Σ_j e^(z_j − z_i)). The sum is 1 at least; below
/// that the inverse goes on straight, so that it is convex.
fn softmax(z: &[Form], i: usize, others: impl Iterator<Item = usize>) -> Form {
    let mut sum = Form { mid: 1.0, ..Form::default() };
    for j in others.filter(|j| *j != i) {
        let mut apart = z[j].clone();
        apart.add(-1.0, &z[i]);
        sum.add(1.0, &apart.tight().through(f64::exp, f64::exp, true));
    }
    let inverse = |x: f64| if x < 1.0 { 2.0 - x } else { 1.0 / x };
    sum.tight().through(inverse, |x| -1.0 / (x * x).max(1.0), true)
}

/// Every value of a step.
pub(super) fn run(
    step: &Step,
    w: &[Vec<f64>],
    states: &[Form],
    previous: &[Form],
    letter: u32,
) -> Result<Vec<Vec<Form>>> {
    let mut values: Vec<Vec<Form>> = Vec::new();
    for node in &step.nodes {
        let of = |id: &ValueId| &values[id.index()];
        let mut to = vec![Form::default(); node.len];
        match &node.op {
            Op::Input => to = one_hot(node.len, letter),
            Op::Previous => to = previous.to_vec(),
            Op::State(id) => to = states[step.place_of(*id)].to_vec(),
            Op::Vector(weight) => to = known(&w[weight.index()]),
            Op::Affine { terms, bias, add } => {
                to = bias.map_or(to, |bias| known(&w[bias.index()]));
                for (factor, x) in terms {
                    let w = &w[factor.weight.index()];
                    for (r, c) in (0..node.len).flat_map(|r| (0..of(x).len()).map(move |c| (r, c))) {
                        to[r].add(w[step.entry_of(*factor, r, c)], &of(x)[c]);
                    }
                }
                add.iter().for_each(|x| to.iter_mut().zip(of(x)).for_each(|(to, x)| to.add(1.0, x)));
            }
            Op::Outer(x, z) => {
                let pairs = of(x).iter().flat_map(|x| of(z).iter().map(move |z| (x, z)));
                to.iter_mut().zip(pairs).for_each(|(to, (x, z))| to.add_product(x, z));
            }
            Op::Mul(a, b) => {
                let pairs = of(a).iter().cycle().zip(of(b));
                to.iter_mut().zip(pairs).for_each(|(to, (a, b))| to.add_product(a, b));
            }
            Op::Mix { gates, items } => {
                let n = of(gates).len() / items.len();
                for (k, m) in (0..node.len).flat_map(|k| (0..items.len()).map(move |m| (k, m))) {
                    to[k].add_product(&of(gates)[m * n + k % n], &of(&items[m])[k]);
                }
            }
            Op::Scale(c, x) => to.iter_mut().zip(of(x)).for_each(|(to, x)| to.add(*c, x)),
            Op::Act(act, x) => to = of(x).iter().map(|x| x.act(*act)).collect(),
            Op::Softmax(groups, x) => {
                let (n, apart, len) = match groups {
                    Groups::Rows(n) => (*n, 1, *n),
                    Groups::Blocks(n) => (node.len, node.len / n, node.len),
                };
                let others = |i: usize| (i / n * n + i % n % apart..i / n * n + len).step_by(apart);
                to = (0..node.len).map(|i| softmax(of(x), i, others(i))).collect();
            }
            Op::Slice { of: x, start } => to = of(x)[*start..start + node.len].to_vec(),
            op => return Err(refused(format!("the operation {op:?} is not certified"))),
        }
        values.push(to.into_iter().map(Form::tight).collect());
    }
    Ok(values)
}

/// Numbers between bounds, with a symbol for each.
pub(super) fn of_box(bounds: &[[f64; 2]]) -> Vec<Form> {
    let form = |(at, [low, high]): (usize, &[f64; 2])| {
        let mid = low.midpoint(*high);
        let radius = if low == high { 0.0 } else { (high - mid).max(mid - low).next_up() };
        let coef = (0..=at).map(|k| if k == at { radius } else { 0.0 }).collect();
        Form { mid, coef, ..Form::default() }.tight()
    };
    bounds.iter().enumerate().map(form).collect()
}

/// The same numbers, where each remainder has become a symbol of its own, which later numbers share.
pub(super) fn renewed(mut forms: Vec<Form>) -> Vec<Form> {
    let symbols = forms.iter().map(|form| form.coef.len()).max().unwrap_or(0);
    for (at, form) in forms.iter_mut().enumerate().filter(|(_, form)| form.rem > 0.0) {
        form.coef.resize(symbols + at, 0.0);
        form.coef.push(std::mem::take(&mut form.rem));
        *form = std::mem::take(form).tight();
    }
    forms
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use seeded::{Family, Stream};

    use super::*;
    use crate::cell::Cell;
    use crate::engine::{Engine, Inputs, Sequences, Starts};
    use crate::options::{Options, Sizes};

    fn uniform(s: &mut Stream, spread: f64) -> f64 {
        (2.0 * s.uniform() - 1.0) * spread
    }

    /// Cells with every operation that is certified: softmax over programs and coordinate by coordinate, words that read
    /// the symbol before, gates that are cut and multiplied.
    fn cells() -> Vec<(&'static str, &'static str)> {
        vec![
            ("elman", "{}"),
            ("elman", r#"{"act": "tanh"}"#),
            ("second-order", r#"{"act": "tanh"}"#),
            ("mrnn", r#"{"act": "tanh"}"#),
            ("mi", r#"{"act": "tanh"}"#),
            ("lstm", "{}"),
            ("gru", "{}"),
            ("ll", r#"{"preset": "stable", "lambda": [1, 2], "pi": ["0", "10"]}"#),
            ("ll", r#"{"preset": "stable", "lambda": [0, 1, 2], "gate": "diagonal"}"#),
            ("ll", r#"{"preset": "coded", "lambda": [1, 2], "pi": ["1"], "gate_act": "sigmoid"}"#),
            ("ll", r#"{"preset": "paper", "v": "two-space", "lambda": [1], "pi": ["10"]}"#),
        ]
    }

    /// What the engine computes from points of a box lies in the enclosure of the box, at every number of the step.
    #[test]
    fn points_of_a_box_stay_in_its_image() {
        let sizes: Sizes =
            serde_json::from_str(r#"{"input": 2, "hidden": 4, "aux": 3, "aux2": 3, "output": 3}"#).unwrap();
        let mut widths = Vec::new();
        for (at, (kind, options)) in cells().into_iter().enumerate() {
            let options: Options = serde_json::from_str(options).unwrap();
            let cell = Cell::new(kind.parse().unwrap(), &sizes, &options).unwrap();
            let step = &cell.step;
            for round in 0..8 {
                let mut s = Family::named("enclosure").stream((100 * at + round) as u64);
                let theta: Vec<f64> = (0..cell.count()).map(|_| uniform(&mut s, 1.5)).collect();
                let n = step.states[0].len;
                let spread = [0.0, 1e-6, 0.02, 0.5][round % 4];
                // States after the first start at 0, where the engine starts them.
                let bounds: Vec<[f64; 2]> = (0..step.states.iter().map(|state| state.len).sum::<usize>())
                    .map(|k| {
                        let mid = if k < n { uniform(&mut s, 1.0) } else { 0.0 };
                        if k < n { [mid - spread, mid + spread] } else { [0.0; 2] }
                    })
                    .collect();
                let letters = [s.below(2) as u32, s.below(2) as u32];
                let weights = step.entries(&theta);
                let first = run(step, &weights, &of_box(&bounds), &one_hot(2, 1), letters[0]).unwrap();
                let states = step.states.iter().flat_map(|state| first[state.next.index()].clone()).collect();
                let second =
                    run(step, &weights, &renewed(states), &one_hot(2, letters[0]), letters[1]).unwrap();
                for point in 0..20 {
                    let share = |s: &mut Stream| if point % 2 == 0 { s.uniform() } else { s.below(2) as f64 };
                    let state =
                        bounds[..n].iter().map(|[low, high]| low + share(&mut s) * (high - low)).collect();
                    let starts = Starts { state: Some(state), previous: Some(vec![0.0, 1.0]) };
                    let engine = Engine::new(Arc::clone(step), &theta).with_starts(starts);
                    let sequences = Sequences { inputs: Inputs::Tokens(&letters), length: 2, count: 1 };
                    engine.observe(sequences, |time, seen| {
                        for (name, id) in &step.reports {
                            let forms = &[&first, &second][time][id.index()];
                            for (form, x) in forms.iter().zip(seen.value(*id)) {
                                let (low, high) = form.bounds();
                                // The engine rounds, too.
                                let wrong = 1e-13 * (1.0 + x.abs());
                                assert!(
                                    low - wrong <= x && x <= high + wrong,
                                    "{kind} {name}: {low} {x} {high}"
                                );
                                widths.push((spread, (high - low) / (1.0 + x.abs())));
                            }
                        }
                    });
                }
            }
        }
        // An enclosure that held everything would hold points, too.
        let widest = |of: f64| widths.iter().filter(|(s, _)| *s == of).map(|w| w.1).fold(0.0, f64::max);
        assert!(
            widest(0.0) < 1e-9 && widest(1e-6) < 1e-3 && widest(1e-6) > 1e-7,
            "{} {}",
            widest(0.0),
            widest(1e-6)
        );
    }

    #[test]
    fn what_is_exact_has_no_remainder() {
        let mut sum = Form::default();
        for (w, x) in [(3.0, 0.5), (-1.0, 7.0), (0.25, 1e6)] {
            sum.add(w, &known(&[x])[0]);
        }
        assert_eq!((sum.mid, sum.radius()), (250_000.0 - 5.5, 0.0));
        // 0.1 and 0.2 are no numbers of f64 whose product is one.
        sum.add(0.1, &known(&[0.2])[0]);
        assert!(sum.radius() > 0.0 && sum.radius() < 1e-9);
        let product = |a: f64, b: f64| {
            let mut form = Form::default();
            form.add_product(&known(&[a])[0], &known(&[b])[0]);
            form.bounds()
        };
        assert_eq!(product(3.0, 5.0), (15.0, 15.0));
        // Far below the least number the product is not 0.
        let (low, high) = product(1e-200, 1e-200);
        assert!(low <= 0.0 && high > 0.0);
    }

    /// Functions over intervals, at their ends and between them.
    #[test]
    fn functions_stay_in_their_enclosures() {
        let mut s = Family::named("functions").stream(0);
        for _ in 0..2000 {
            let (mid, radius) =
                (uniform(&mut s, 6.0), 10.0_f64.powf(-uniform(&mut s, 1.0) * 6.0 - 4.0) * 1e4);
            let form = &of_box(&[[mid - radius, mid + radius]])[0];
            for share in [-1.0, -0.5, 0.0, 0.3, 1.0] {
                let x = mid + share * radius * (1.0 - 1e-12);
                for (act, value) in [
                    (Act::Tanh, x.tanh()),
                    (Act::Sigmoid, 1.0 / (1.0 + (-x).exp())),
                    (Act::Relu, x.max(0.0)),
                    (Act::Identity, x),
                ] {
                    let (low, high) = form.act(act).bounds();
                    assert!(
                        low <= value && value <= high,
                        "{act:?} of {mid} ± {radius} at {x}: {low} {value} {high}"
                    );
                }
            }
            let (low, high) = form.act(Act::Tanh).bounds();
            assert!(high - low <= 8.0 * radius + 1e-10, "{mid} {radius}: {}", high - low);
        }
    }
}
