//! Drawing texts from a law.
//!
//! Enter at [`Sampler`]. An item is a function of its stream alone, and no floating-point number takes part.
//! Tokens are written directly, without a tree; after the first items nothing is allocated.

mod choice;
mod count;
mod depth;
pub(crate) mod distinct;
mod facts;

pub use facts::Facts;
use seeded::Stream;

use crate::error::Refusal;
use crate::law::{Family, Law};
use crate::symbol::SymbolId;

/// The randomness of items (F33): family `fol663-v1:PURPOSE:SEED`.
pub fn family(purpose: &str, seed: u64) -> seeded::Family {
    seeded::Family::new("fol663-v1", purpose, seed)
}

/// Draws texts of one law.
#[derive(Debug, Clone)]
pub struct Sampler {
    family: Draws,
    /// The most tokens without `<bos>` and `<eos>`.
    limit: usize,
}

#[derive(Debug, Clone)]
enum Draws {
    Depth(Box<depth::DepthSampler>),
    Count(Box<count::CountSampler>),
}

impl Sampler {
    /// A sampler of a law.
    ///
    /// # Errors
    /// `EmptySize` for a range of sizes with an empty class; `BadValue` if no text fits `max_tokens`.
    pub fn new(law: &Law) -> Result<Self, Refusal> {
        law.check_drawable()?;
        let family = match &law.family {
            Family::Depth(law) => Draws::Depth(Box::new(depth::DepthSampler::new(law))),
            Family::Count(law) => Draws::Count(Box::new(count::CountSampler::new(law.clone())?)),
        };
        Ok(Self { family, limit: law.max_tokens().saturating_sub(2) })
    }

    /// A sampler of the formulas of one size of a counting law, all equally likely.
    ///
    /// # Errors
    /// `BadValue` for a law of family `depth` or too many nodes; `EmptySize` if there is no such formula.
    pub fn of_size(law: &Law, nodes: usize) -> Result<Self, Refusal> {
        let family = Draws::Count(Box::new(count::CountSampler::of_size(law.counting(nodes)?, nodes)?));
        Ok(Self { family, limit: law.max_tokens().saturating_sub(2) })
    }

    /// Draws one text; `out` then holds its tokens without `<bos>` and `<eos>`.
    pub fn sample(&mut self, stream: &mut Stream, out: &mut Vec<SymbolId>) -> Facts {
        let mut redraws = 0;
        loop {
            let facts = match &mut self.family {
                Draws::Depth(sampler) => sampler.draw(stream, self.limit, out),
                Draws::Count(sampler) => sampler.draw(stream, out),
            };
            if out.len() <= self.limit {
                return Facts { redraws, ..facts };
            }
            redraws += 1;
        }
    }
}
