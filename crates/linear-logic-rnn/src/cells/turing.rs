//! Neural Turing machines with location addressing: section 6.
//!
//! A ring has addresses 0 … N − 1, a read and a write address (distributions over the ring), and a memory. All
//! machines share the controller and ring 1; ring 2 (and 3, chosen between by ring 4) holds a pattern that turns the
//! read address of ring 1.

use training::Initial;

use super::glue::Glue;
use crate::error::{Refusal, Result};
use crate::options::Sizes;
use crate::step::{Act, Builder, Factor, Groups, MOST_FEATURES, Start, StateId, ValueId, View, WeightId};

/// A ring before the step.
struct Ring {
    name: usize,
    content: usize,
    read: (StateId, ValueId),
    write: (StateId, ValueId),
    memory: (StateId, ValueId),
}

/// The weights that turn a vector of the state into something.
fn head(b: &mut Builder, name: &str, rows: usize, h: ValueId) -> ValueId {
    let hidden = b.len_of(h);
    let weight = b.matrix(format!("{name}.W"), &[rows, hidden]);
    let bias = b.bias(format!("{name}.b"), rows, 0.0);
    b.affine(&[(Factor { weight, view: View::Plain }, h)], Some(bias), &[])
}

impl Ring {
    fn new(b: &mut Builder, name: usize, addresses: usize, content: usize, first: f64) -> Self {
        let at_zero = || {
            let mut start = vec![0.0; addresses];
            start[0] = 1.0;
            Start::Constant(start)
        };
        let entry = |at: usize| if at.is_multiple_of(content) { first } else { 0.0 };
        let memory = match first {
            0.0 => Start::Zero,
            _ => Start::Constant((0..addresses * content).map(entry).collect()),
        };
        Self {
            name,
            content,
            read: b.state(format!("{name}.r"), addresses, at_zero()),
            write: b.state(format!("{name}.w"), addresses, at_zero()),
            memory: b.state(format!("{name}.M"), addresses * content, memory),
        }
    }

    /// Σ_j q_j R^{powers_j} v
    fn turned(
        &self,
        b: &mut Builder,
        head_name: &str,
        address: ValueId,
        powers: &[i64],
        h: ValueId,
    ) -> ValueId {
        let logits = head(b, &format!("{}.{head_name}.q", self.name), powers.len(), h);
        let q = b.softmax(Groups::Rows(powers.len()), logits);
        b.turn(q, address, powers)
    }

    fn sharpened(&self, b: &mut Builder, head_name: &str, address: ValueId, h: ValueId) -> ValueId {
        let raw = head(b, &format!("{}.{head_name}.g", self.name), 1, h);
        let positive = b.act(Act::Relu, raw);
        let one = b.fixed(format!("{}.{head_name}.one", self.name), &[1], vec![1.0]);
        let exponent = b.affine(&[], Some(one), &[positive]);
        b.sharpen(address, exponent)
    }

    /// The new addresses and memory. `pull` changes the turned read address before it is sharpened.
    fn step(
        &self,
        b: &mut Builder,
        powers: &[i64],
        h: ValueId,
        pull: impl FnOnce(&mut Builder, ValueId) -> ValueId,
    ) {
        let read = self.turned(b, "r", self.read.1, powers, h);
        let read = pull(b, read);
        let read = self.sharpened(b, "r", read, h);
        let write = self.turned(b, "w", self.write.1, powers, h);
        let write = self.sharpened(b, "w", write, h);
        let erase = head(b, &format!("{}.e", self.name), self.content, h);
        let erase = b.act(Act::Sigmoid, erase);
        let add = head(b, &format!("{}.a", self.name), self.content, h);
        let add = if self.name == 1 { b.act(Act::Relu, add) } else { add };
        let memory = b.write(self.memory.1, write, erase, add);
        for ((state, _), next) in [(self.read, read), (self.write, write), (self.memory, memory)] {
            b.set_state(state, next);
        }
        for (what, value) in [("r", read), ("w", write), ("M", memory)] {
            b.report(format!("{}.{what}", self.name), value);
        }
    }

    /// softmax by rows of M, read
    fn pattern(&self, b: &mut Builder) -> ValueId {
        let rows = b.softmax(Groups::Rows(self.content), self.memory.1);
        b.read(rows, self.read.1)
    }
}

/// The rings of a machine beside the first.
#[derive(Default)]
pub(super) struct Patterns<'a> {
    /// How many: 0, 1 or 3.
    pub(super) rings: usize,
    pub(super) powers: Option<&'a [i64]>,
    pub(super) start: Option<f64>,
}

pub(super) fn machine(
    b: &mut Builder,
    sizes: &Sizes,
    powers: Option<&[i64]>,
    patterns: &Patterns<'_>,
) -> Result<Glue> {
    let (hidden, input) = (sizes.need("hidden")?, sizes.need("input")?);
    let (addresses, content) = (sizes.need("addresses")?, sizes.need("content")?);
    let powers = powers.unwrap_or(&[0, -1, 1]);
    let pattern_powers = patterns.powers.unwrap_or(&[0, 1, 2]);
    if powers.is_empty() || pattern_powers.is_empty() {
        return Err(Refusal::config("`powers` and `pattern_powers` have at least one entry"));
    }
    let (state, h) = b.state("h", hidden, Start::Zero);
    let x = b.input();
    let main = Ring::new(b, 1, addresses, content, 0.0);
    let extra = patterns.rings;
    let start = patterns.start.unwrap_or(0.0);
    if !start.is_finite() {
        return Err(Refusal::config("`pattern_start` is not a number"));
    }
    let small = if extra > 0 { sizes.need("pattern_addresses")? } else { 0 };
    if small.saturating_mul(pattern_powers.len()) > MOST_FEATURES {
        return Err(Refusal::config(
            "`pattern_addresses` and `pattern_powers` make a memory that is too large",
        ));
    }
    let rings: Vec<Ring> = (0..extra)
        .map(|at| {
            // Ring 4 chooses between rings 2 and 3; their memories alone start at `pattern_start`.
            let (content, first) = if at == 2 { (2, 0.0) } else { (pattern_powers.len(), start) };
            Ring::new(b, at + 2, small, content, first)
        })
        .collect();

    let read = b.read(main.memory.1, main.read.1);
    let mut terms = Vec::new();
    for (name, columns, of) in [("H", hidden, h), ("V", content, read), ("U", input, x)] {
        let weight: WeightId = b.matrix(name, &[hidden, columns]);
        terms.push((Factor { weight, view: View::Plain }, of));
    }
    let bias = b.bias("B", hidden, 0.0);
    let next = b.affine(&terms, Some(bias), &[]);
    let next = b.act(Act::Tanh, next);

    let pattern = match rings.as_slice() {
        [] => None,
        [one] => Some(one.pattern(b)),
        [first, second, choice, ..] => {
            let both = [first.pattern(b), second.pattern(b)];
            let m = choice.pattern(b);
            Some(b.mix(m, &both))
        }
        _ => None,
    };
    let address = main.read.1;
    main.step(b, powers, h, |b, turned| {
        let Some(pattern) = pattern else { return turned };
        let weight = b.matrix("gate.W", &[1, hidden]);
        let bias = b.weight("gate.b", &[1], Initial::Constant(1.0));
        let g = b.affine(&[(Factor { weight, view: View::Plain }, h)], Some(bias), &[]);
        let g = b.act(Act::Sigmoid, g);
        // g·a + (1 − g)·p = p + g·(a − p)
        let pulled = b.turn(pattern, address, pattern_powers);
        let minus = b.scale(-1.0, pulled);
        let gap = b.sum(&[turned, minus]);
        let moved = b.mul(g, gap);
        b.sum(&[pulled, moved])
    });
    for ring in &rings {
        ring.step(b, powers, h, |_, turned| turned);
    }
    b.set_state(state, next);
    Ok(Glue { next, act: Act::Relu })
}
