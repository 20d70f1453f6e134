//! The search for a certificate: boxes that are mapped into boxes.
//!
//! States that the cell reaches are sampled and gathered into boxes, none of them wider than a share of the range of each
//! number. From a box, words are followed (`tube`) until the image is narrow: a cell that forgets contracts, though
//! one step may stretch. A narrow image lies in a box, or a box near it grows, or it becomes a new one. Where a readout is not
//! certain, or a set does not become narrow, the box is given up, and boxes of half its width take its place. When no box
//! changes any more, the boxes with the words between them are the automaton.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use seeded::Family;

use super::certificate::{Certificate, SCHEMA, State, Subject, digest, refused};
use super::tube::{Bundle, Tube};
use crate::error::Result;
use crate::step::Step;
use crate::task::machine::Machine;

/// What was found, or why not.
pub type Found = std::result::Result<Certificate, String>;

/// The greatest width of a box at first, as a share of the range of each number.
const WIDEST: f64 = 0.5;
/// Boxes that do not do are replaced by boxes of half their width, so often.
const HALVINGS: i32 = 10;
/// An image is narrow where it has at most this share of the width of a box.
const NARROW: f64 = 0.35;
/// The longest word between two boxes.
const LONGEST_WORD: usize = 64;
/// The most sets between a box and others.
const MOST_TWIGS: usize = 300;
/// The most multiplications of a search whose effort is 1: about ten seconds.
const WORK: u64 = 15_000_000_000;
/// Sequences that are sampled, and their length.
const SAMPLES: (usize, usize) = (64, 64);

/// What is known of all states of a set: the state of the task, and the last symbol where the step reads it.
type Key = (u32, Option<u32>);

#[derive(Debug)]
struct Anchor {
    key: Key,
    low: Vec<f64>,
    high: Vec<f64>,
    /// Words from here, as a tree; the root is the box itself. Empty: to be followed.
    tree: Vec<Twig>,
    is_waiting: bool,
    /// Its greatest width, as a share of the cap.
    share: f64,
    /// Whether it has been given up: smaller ones take its place.
    is_dead: bool,
    /// How often it has grown.
    grown: u64,
}

#[derive(Debug, Clone)]
struct Twig {
    key: Key,
    next: Vec<To>,
}

/// A set whose images are not known yet, ordered by its width.
#[derive(Debug, Clone, Copy)]
struct Open {
    width: f64,
    twig: usize,
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.width.total_cmp(&other.width).then(self.twig.cmp(&other.twig))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}

#[derive(Debug, Clone, Copy)]
enum To {
    Anchor(usize),
    Twig(usize),
}

/// Refuses what cannot be certified.
pub(super) fn check_step(step: &Arc<Step>, machine: &Machine, theta: &[f32]) -> Result<()> {
    if machine.next.iter().any(|row| row.len() != step.input) {
        return Err(refused("the cell has another number of inputs than the task has symbols"));
    }
    Tube::new(step, theta).map(|_| ())
}

/// Searches; `effort` multiplies the work after which it gives up.
///
/// # Errors
/// `certificate` for a step that cannot be certified.
pub fn search(
    subject: &Subject,
    step: &Arc<Step>,
    theta: &[f32],
    machine: &Machine,
    effort: u32,
) -> Result<Found> {
    let tube = Tube::new(step, theta)?;
    let samples = sampled(&tube, machine);
    let cap: Vec<f64> = ranges(&samples).iter().map(|range| range * WIDEST).collect();
    let work = WORK.saturating_mul(u64::from(effort));
    let mut cover = Cover { tube: &tube, machine, cap, work, anchors: Vec::new(), queue: VecDeque::new() };
    cover.seed(&samples);
    Ok(cover.close().map(|()| Certificate {
        schema: SCHEMA.to_owned(),
        subject: subject.clone(),
        weights: digest(theta),
        states: cover.states(),
    }))
}

/// States that random sequences lead to.
fn sampled(tube: &Tube, machine: &Machine) -> Vec<(Key, Vec<f64>)> {
    let mut stream = Family::new("linear-logic-rnn-v1", "certify", 0).stream(0);
    let mut samples = Vec::new();
    for _ in 0..SAMPLES.0 {
        let (mut state, mut key) = (tube.start(), (machine.start, None));
        for _ in 0..SAMPLES.1 {
            let letters = machine.next.first().map_or(1, Vec::len);
            let letter = stream.below(letters as u64) as u32;
            let last = key.1;
            key = after(tube, machine, key, letter);
            state = tube.step(&Bundle::point(state), last, letter).state.mids;
            samples.push((key, state.clone()));
        }
    }
    samples
}

/// What is known after a symbol.
fn after(tube: &Tube, machine: &Machine, key: Key, letter: u32) -> Key {
    let class = machine.next.get(key.0 as usize).and_then(|row| row.get(letter as usize));
    (class.copied().unwrap_or_default(), tube.reads_previous.then_some(letter))
}

/// The range of each number over all samples.
fn ranges(samples: &[(Key, Vec<f64>)]) -> Vec<f64> {
    let n = samples.first().map_or(0, |(_, state)| state.len());
    let range = |at: usize| {
        let ends = samples.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, state)| {
            (low.min(state[at]), high.max(state[at]))
        });
        ends.1 - ends.0
    };
    let ranges: Vec<f64> = (0..n).map(range).collect();
    let widest = ranges.iter().copied().fold(0.0, f64::max);
    // What hardly moves is not worth a box of its own.
    ranges.into_iter().map(|range| range.max(1e-2 * widest).max(1e-9)).collect()
}

struct Cover<'a> {
    tube: &'a Tube,
    machine: &'a Machine,
    /// The greatest width of a box.
    cap: Vec<f64>,
    /// The most multiplications.
    work: u64,
    anchors: Vec<Anchor>,
    queue: VecDeque<usize>,
}

impl Cover<'_> {
    /// The start, and boxes around samples.
    fn seed(&mut self, samples: &[(Key, Vec<f64>)]) {
        let start = self.tube.start();
        self.add((self.machine.start, None), start.clone(), start);
        for (key, state) in samples {
            let fits = |anchor: &Anchor| {
                anchor.key == *key && self.ratio(anchor, state, state).is_some_and(|ratio| ratio < 0.7)
            };
            match self.anchors.iter().skip(1).position(fits) {
                Some(at) => {
                    let anchor = &mut self.anchors[at + 1];
                    anchor.low.iter_mut().zip(state).for_each(|(low, x)| *low = low.min(*x));
                    anchor.high.iter_mut().zip(state).for_each(|(high, x)| *high = high.max(*x));
                }
                None => {
                    self.add(*key, state.clone(), state.clone());
                }
            }
        }
        for anchor in self.anchors.iter_mut().skip(1) {
            for (low, high) in anchor.low.iter_mut().zip(&mut anchor.high) {
                let more = 0.05 * (*high - *low);
                (*low, *high) = (*low - more, *high + more);
            }
        }
        self.anchors[0].is_waiting = true;
        self.queue.push_back(0);
    }

    fn add(&mut self, key: Key, low: Vec<f64>, high: Vec<f64>) -> usize {
        let share = self.share(key, &low, &high);
        let tree = Vec::new();
        self.anchors.push(Anchor {
            key,
            low,
            high,
            tree,
            is_waiting: false,
            share,
            is_dead: false,
            grown: 0,
        });
        self.anchors.len() - 1
    }

    /// How wide boxes may be here, as a share of the cap: half as wide as those that did not do.
    fn share(&self, key: Key, low: &[f64], high: &[f64]) -> f64 {
        let is_here = |dead: &&Anchor| {
            let bounds = dead.low.iter().zip(&dead.high);
            dead.is_dead
                && dead.key == key
                && bounds.zip(low.iter().zip(high)).all(|((from, to), (low, high))| {
                    let mid = low.midpoint(*high);
                    *from <= mid && mid <= *to
                })
        };
        self.anchors.iter().filter(is_here).map(|dead| dead.share / 2.0).fold(1.0, f64::min)
    }

    /// Gives a box up; what leads to it is followed again.
    fn give_up(&mut self, at: usize) {
        let anchor = &mut self.anchors[at];
        anchor.is_dead = true;
        anchor.tree = Vec::new();
        let leads = |to: &To| matches!(to, To::Anchor(to) if *to == at);
        for other in 0..self.anchors.len() {
            if self.anchors[other].tree.iter().any(|twig| twig.next.iter().any(leads)) {
                self.anchors[other].tree = Vec::new();
                self.await_turn(other);
            }
        }
    }

    /// The greatest width of a box with this in it too, as a share of the cap; none above it.
    fn ratio(&self, anchor: &Anchor, low: &[f64], high: &[f64]) -> Option<f64> {
        let mut worst = 0.0_f64;
        for (at, cap) in self.cap.iter().enumerate() {
            let width = anchor.high[at].max(high[at]) - anchor.low[at].min(low[at]);
            worst = worst.max(width / (cap * anchor.share));
            // The rest is room for rounding.
            if worst > 0.999 {
                return None;
            }
        }
        Some(worst)
    }

    /// Follows all boxes until none changes.
    fn close(&mut self) -> std::result::Result<(), String> {
        while let Some(at) = self.queue.pop_front() {
            self.anchors[at].is_waiting = false;
            if self.anchors[at].is_dead {
                continue;
            }
            if let Err(why) = self.follow(at) {
                // The start is a point, and nothing smaller is there.
                let is_least = self.anchors[at].share < 2.0_f64.powi(-HALVINGS);
                if at == 0 || is_least {
                    return Err(why);
                }
                self.give_up(at);
            }
            if self.tube.work() > self.work {
                let boxes = self.anchors.iter().filter(|anchor| !anchor.is_dead).count();
                return Err(format!("not done after {} multiplications, with {boxes} boxes", self.work));
            }
        }
        Ok(())
    }

    /// Follows the words from a box.
    fn follow(&mut self, at: usize) -> std::result::Result<(), String> {
        let anchor = &self.anchors[at];
        let grown = anchor.grown;
        let root = Twig { key: anchor.key, next: Vec::new() };
        let mut tree = vec![root];
        // The widest first: where a box does not do, that is seen soon.
        let mut open = BinaryHeap::from([Open { width: 0.0, twig: 0 }]);
        let mut sets = vec![Some((Bundle::of_box(&anchor.low, &anchor.high), Vec::new()))];
        while let Some(Open { twig, .. }) = open.pop() {
            let Some((set, word)) = sets[twig].take() else { continue };
            let key = tree[twig].key;
            for letter in 0..self.machine.next.first().map_or(0, Vec::len) as u32 {
                let image = self.tube.step(&set, key.1, letter);
                let next = after(self.tube, self.machine, key, letter);
                let word: Vec<u32> = word.iter().copied().chain([letter]).collect();
                let said =
                    || format!("after the word {word:?} from a box of the state {}", self.anchors[at].key.0);
                if !is_certain(&image.logits, next.0) {
                    return Err(format!("the readout is not certain {}", said()));
                }
                let n = image.state.mids.len();
                let radius: Vec<f64> = (0..n).map(|at| image.state.radius(at)).collect();
                let low: Vec<f64> = image.state.mids.iter().zip(&radius).map(|(m, r)| m - r).collect();
                let high: Vec<f64> = image.state.mids.iter().zip(&radius).map(|(m, r)| m + r).collect();
                let share = self.share(next, &low, &high);
                let is_narrow = radius.iter().zip(&self.cap).all(|(r, cap)| 2.0 * r <= NARROW * cap * share);
                let to = match self.inside(next, &low, &high) {
                    Some(to) => To::Anchor(to),
                    None if is_narrow => To::Anchor(self.attach(next, &low, &high)),
                    None if word.len() >= LONGEST_WORD
                        || tree.len() >= MOST_TWIGS
                        || self.is_lost(&radius) =>
                    {
                        return Err(format!("the image is still wide {}", said()));
                    }
                    None => {
                        tree.push(Twig { key: next, next: Vec::new() });
                        let widths = radius.iter().zip(&self.cap).map(|(r, cap)| r / cap);
                        open.push(Open { width: widths.fold(0.0, f64::max), twig: tree.len() - 1 });
                        sets.push(Some((image.state, word)));
                        To::Twig(tree.len() - 1)
                    }
                };
                match to {
                    To::Anchor(to) if to != at => self.await_turn(to),
                    _ => {}
                }
                tree[twig].next.push(to);
            }
        }
        if self.anchors[at].grown == grown {
            self.anchors[at].tree = tree;
        } else {
            self.await_turn(at);
        }
        Ok(())
    }

    /// Whether a set is so wide that nothing is known of it.
    fn is_lost(&self, radius: &[f64]) -> bool {
        radius.iter().zip(&self.cap).any(|(r, cap)| r.is_nan() || WIDEST * r >= *cap)
    }

    /// A box is followed once it is reached, and again when it has changed.
    fn await_turn(&mut self, at: usize) {
        let anchor = &mut self.anchors[at];
        if anchor.tree.is_empty() && !anchor.is_waiting && !anchor.is_dead {
            anchor.is_waiting = true;
            self.queue.push_back(at);
        }
    }

    /// A box that a set lies in.
    fn inside(&self, key: Key, low: &[f64], high: &[f64]) -> Option<usize> {
        self.anchors.iter().position(|anchor| {
            anchor.key == key
                && !anchor.is_dead
                && low.iter().zip(&anchor.low).all(|(x, bound)| within(*x - bound, *bound))
                && high.iter().zip(&anchor.high).all(|(x, bound)| within(bound - *x, *bound))
                && low.iter().zip(high).zip(anchor.low.iter().zip(&anchor.high)).all(
                    |((low, high), bounds)| {
                        // A set that is no point lies in no point.
                        low == high || bounds.0 < bounds.1
                    },
                )
        })
    }

    /// The box that grows by a set, or becomes it.
    fn attach(&mut self, key: Key, low: &[f64], high: &[f64]) -> usize {
        let near = |(at, anchor): (usize, &Anchor)| {
            // The start stays the point that it is.
            let ratio =
                (at > 0 && anchor.key == key && !anchor.is_dead).then(|| self.ratio(anchor, low, high))??;
            Some((at, ratio))
        };
        let nearest = self.anchors.iter().enumerate().filter_map(near).min_by(|a, b| a.1.total_cmp(&b.1));
        // A little more than is needed: for the checker's rounding, and so that a box does not grow by less and less.
        let more = |k: usize| 0.3 * (high[k] - low[k]) + 1e-9 * self.cap[k];
        let Some((at, _)) = nearest else {
            let is_point = low == high;
            let more = |k: usize| if is_point { 0.0 } else { more(k) };
            let low = low.iter().enumerate().map(|(k, x)| x - more(k)).collect();
            let high = high.iter().enumerate().map(|(k, x)| x + more(k)).collect();
            return self.add(key, low, high);
        };
        for k in 0..low.len() {
            let anchor = &self.anchors[at];
            let union = (anchor.low[k].min(low[k]), anchor.high[k].max(high[k]));
            let more = more(k).min((self.cap[k] * anchor.share - (union.1 - union.0)) / 2.0);
            let (needs_low, needs_high) = (
                !within(low[k] - anchor.low[k], anchor.low[k]),
                !within(anchor.high[k] - high[k], anchor.high[k]),
            );
            let anchor = &mut self.anchors[at];
            if needs_low {
                anchor.low[k] = union.0 - more;
            }
            if needs_high {
                anchor.high[k] = union.1 + more;
            }
        }
        let anchor = &mut self.anchors[at];
        anchor.grown += 1;
        anchor.tree = Vec::new();
        at
    }

    /// The boxes that are reached, and the sets between them, as states.
    fn states(&self) -> Vec<State> {
        let mut places: Vec<Option<usize>> = vec![None; self.anchors.len()];
        let (mut order, mut count) = (Vec::new(), 0);
        let mut open = VecDeque::from([0]);
        while let Some(at) = open.pop_front() {
            if places[at].is_some() {
                continue;
            }
            places[at] = Some(count);
            count += self.anchors[at].tree.len();
            order.push(at);
            for to in self.anchors[at].tree.iter().flat_map(|twig| &twig.next) {
                if let To::Anchor(to) = to {
                    open.push_back(*to);
                }
            }
        }
        let mut states = Vec::with_capacity(count);
        for at in order {
            let (anchor, base) = (&self.anchors[at], states.len());
            for (number, twig) in anchor.tree.iter().enumerate() {
                let place = |to: &To| match to {
                    To::Anchor(to) => places[*to].unwrap_or(0),
                    To::Twig(to) => base + to,
                };
                let bounds =
                    || anchor.low.iter().zip(&anchor.high).map(|(low, high)| [*low, *high]).collect();
                states.push(State {
                    class: twig.key.0,
                    last: twig.key.1,
                    next: twig.next.iter().map(place).collect(),
                    bounds: (number == 0).then(bounds),
                });
            }
        }
        states
    }
}

/// Whether a bound holds with room for what the checker adds, or exactly.
fn within(gap: f64, bound: f64) -> bool {
    gap == 0.0 || gap > 1e-11 * bound.abs().max(1e-3)
}

/// Whether the greatest logit is certainly that of the class.
fn is_certain(logits: &Bundle, class: u32) -> bool {
    let class = class as usize;
    (0..logits.mids.len()).filter(|other| *other != class).all(|other| {
        let row = |at: usize| &logits.coefs[at * logits.symbols..(at + 1) * logits.symbols];
        let apart: f64 = row(class).iter().zip(row(other)).map(|(a, b)| (a - b).abs()).sum();
        let gap = logits.mids[class] - logits.mids[other] - logits.rems[class] - logits.rems[other] - apart;
        gap > 1e-9
    })
}
