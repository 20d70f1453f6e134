//! A parameter's state under its rule, to be kept and taken up again as it is: what is behind stays behind.

use std::borrow::Cow;

use super::super::state::{Column, State as Kept, Stored, Unfit};
use super::{BLOCK, Moving, NONE, Rule, State};

impl Moving {
    /// Adds what is kept of the parameter of a name.
    pub(in crate::learning::learn) fn keep<'a>(&'a self, name: &str, state: &mut Kept<'a>) {
        state.counters.parameters.push((self.all, self.whole));
        for (what, values) in [("first", &self.state.first), ("second", &self.state.second)] {
            state.add(format!("{what}.{name}"), Column::Doubles(Cow::Borrowed(values)));
        }
        for (what, values) in [("taken", &self.taken), ("blocks", &self.blocks)] {
            state.add(format!("{what}.{name}"), Column::Words(Cow::Borrowed(values)));
        }
        let touched = self.touched.iter().map(|at| *at as u64).collect();
        state.add(format!("touched.{name}"), Column::Places(touched));
    }

    /// What was kept of the parameter of a name, which has so many elements. Nothing is believed that would lead out of an
    /// array.
    pub(in crate::learning::learn) fn of(
        rule: Rule,
        name: &str,
        (len, steps): (usize, u64),
        (all, whole): (u32, bool),
        stored: &mut Stored,
    ) -> Result<Moving, Unfit> {
        let first = stored.doubles(&format!("first.{name}"), None)?;
        let second = stored.doubles(&format!("second.{name}"), None)?;
        let taken = stored.words(&format!("taken.{name}"))?;
        let blocks = stored.words(&format!("blocks.{name}"))?;
        let touched = stored.places(&format!("touched.{name}"))?;
        let moving = Moving { rule, state: State { first, second }, taken, blocks, all, touched, whole };
        if moving.fits(len) && moving.taken.iter().chain([&all]).all(|taken| u64::from(*taken) <= steps) {
            return Ok(moving);
        }
        Err(Unfit)
    }

    /// Whether all places are those of a parameter with so many elements.
    fn fits(&self, len: usize) -> bool {
        let (first, second, taken) = (self.state.first.len(), self.state.second.len(), self.taken.len());
        let has_second = second == if self.has_second() { taken } else { 0 };
        if self.whole {
            let has_first = first == if self.has_first() { len } else { 0 };
            return taken == len && has_first && has_second && self.blocks.is_empty();
        }
        let is_there = |block: &u32| *block == NONE || (*block as usize) < taken / BLOCK;
        let has_blocks =
            if self.blocks.is_empty() { taken == 0 } else { self.blocks.len() == len.div_ceil(BLOCK) };
        let touches = self.touched.iter().all(|at| *at < len);
        first == taken
            && has_second
            && taken.is_multiple_of(BLOCK)
            && has_blocks
            && touches
            && self.blocks.iter().all(is_there)
    }
}
