//! Recursion step by step where a step is a few numbers: loops over numbers in place of blocks.
//!
//! Enter at [`Machine::small_steps`]. A block pays when it holds many elements; a recursion of a million
//! scalar steps would make a million blocks of one, and so would a table of a thousand rows and columns
//! that is filled element by element. What qualifies (linear index functions, sums over short ranges) is
//! compiled into a tree whose reads know where they look (`compile`, `tree`), and run once
//! for each step, or step within a step. What the steps of such a table read besides and do not change is
//! found before by the general way, for all of them (`apart`). Everything else goes the general way, with
//! the same result.

mod apart;
mod bounds;
mod compile;
mod tree;

use std::sync::Arc;

use self::compile::{Compiled, Compiler, Nest};
use self::tree::{Apart, Rule, State, Values};
use crate::error::Result;
use crate::head::Accumulator;
use crate::program::{Component, Steps};
use crate::store::machine::{Machine, Stored};
use crate::store::relation::Piece;
use crate::value::Domain;

/// An interrupt is looked at after so many bindings.
const BINDINGS: u64 = 1 << 12;

impl Machine {
    /// Whether a stepped component qualifies, as far as its tensors are kept now.
    pub(crate) fn is_small(&self, component: &Component, steps: &Steps) -> bool {
        Compiler::compile(self, &self.program, component, steps).is_some()
    }

    /// Evaluates a stepped component by loops over numbers, if it qualifies.
    pub(crate) fn small_steps(&mut self, component: &Component, steps: &Steps) -> Result<bool> {
        let program = Arc::clone(&self.program);
        let Some(compiled) = Compiler::compile(self, &program, component, steps) else { return Ok(false) };
        let Compiled { nest, mut rules, tensors, registers, count, listings, bounds, elements } = compiled;
        // Relations have room for tuples that may never be.
        if self.reserve(elements).is_err() {
            return Ok(false);
        }
        let mut apart = Apart::default();
        if !listings.is_empty() {
            let terms = rules.iter_mut().flat_map(|rule| &mut rule.terms).filter(|term| term.list.is_some());
            let own = &component.tensors;
            match self.apart(listings, terms.collect(), own, &registers, elements)? {
                Some(found) => apart = found,
                None => return Ok(false),
            }
        }
        let own = component.tensors.len();
        let mut values = Vec::with_capacity(tensors.len());
        for (at, id) in tensors.iter().enumerate() {
            if let Some(domains) = bounds.get(id) {
                let room = domains.iter().map(Domain::len).product();
                values.push(Values::Tuples(vec![0.0; room], vec![false; room]));
                continue;
            }
            if at < own {
                self.head = self.program.left_side(*id);
                let given = self.given(*id, None)?;
                let stored = self.finish(*id, given);
                self.store(*id, stored);
            }
            let Some(Stored::Dense(array)) = self.stored(*id) else { return Ok(false) };
            let doubles = self.numbers(array).doubles();
            values.push(if at < own { Values::Own(doubles.to_vec()) } else { Values::Given(doubles) });
        }
        let mut state = State { values, registers: vec![0; count], apart: &apart, bindings: 0 };
        let mut going = Going { machine: self, rules: &rules, steps: Vec::new(), looked: 0 };
        going.along(&nest, &mut state)?;
        for (id, values) in tensors.iter().zip(state.values).take(own) {
            let stored = match values {
                Values::Own(values) => Stored::Dense(self.given_array(&values)),
                Values::Tuples(values, present) => {
                    let domains = bounds.get(id).map_or(&[][..], Vec::as_slice);
                    let piece = Piece::of_marked(domains, &values, &present);
                    self.finish(*id, Accumulator::Sparse(vec![piece]))
                }
                Values::Given(_) => continue,
            };
            self.store(*id, stored);
        }
        Ok(true)
    }
}

/// The way through all steps.
struct Going<'a> {
    machine: &'a Machine,
    rules: &'a [Rule],
    /// Those that are open, the outermost first.
    steps: Vec<i64>,
    /// At how many bindings an interrupt was looked at.
    looked: u64,
}

impl Going<'_> {
    fn along(&mut self, nest: &[Nest], state: &mut State<'_>) -> Result<()> {
        for part in nest {
            match part {
                Nest::Rules(own) => {
                    let rules = self.rules.get(own.clone()).unwrap_or_default();
                    rules.iter().for_each(|rule| state.rule(rule, &self.steps));
                    state.bindings += 1;
                    if state.bindings - self.looked >= BINDINGS {
                        self.looked = state.bindings;
                        self.machine.stop.check(self.machine.head)?;
                    }
                }
                Nest::Steps { from, to, up: true, inner } => {
                    (*from..=*to).try_for_each(|step| self.step(step, inner, state))?;
                }
                Nest::Steps { from, to, up: false, inner } => {
                    (*from..=*to).rev().try_for_each(|step| self.step(step, inner, state))?;
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, step: i64, inner: &[Nest], state: &mut State<'_>) -> Result<()> {
        self.steps.push(step);
        let done = self.along(inner, state);
        self.steps.pop();
        done
    }
}
