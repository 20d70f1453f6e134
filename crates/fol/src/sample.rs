//! Drawing texts from a law.
//!
//! Enter at [`Sampler`]. An item is a function of its stream alone, and no floating-point number takes part.
//! Tokens are written directly, without a tree; after the first items nothing is allocated.

mod choice;
mod count;
mod depth;

use seeded::Stream;

use crate::error::{Kind, Refusal};
use crate::law::{Family, Law};
use crate::symbol::SymbolId;

/// The randomness of items: family `fol663-v1:PURPOSE:SEED`.
pub fn family(purpose: &str, seed: u64) -> seeded::Family {
    seeded::Family::new("fol663-v1", purpose, seed)
}

/// What the sampler knows about the text that it drew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Nodes of all formulas.
    pub nodes: u32,
    /// The largest number of quantifiers on one path.
    pub quantifier_depth: u32,
    /// 1 to 4; 0 for a text that is not one formula without final DOT.
    pub level: u8,
    /// How many texts before it were too long.
    pub redraws: u32,
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
            Family::Count(law) => Draws::Count(Box::new(count::CountSampler::new(law)?)),
        };
        Ok(Self { family, limit: law.max_tokens().saturating_sub(2) })
    }

    /// A sampler of the formulas of one size of a counting law, all equally likely.
    ///
    /// # Errors
    /// `BadValue` for a law of family `depth` or too many nodes; `EmptySize` if there is no such formula.
    pub fn of_size(law: &Law, nodes: usize) -> Result<Self, Refusal> {
        let family = Draws::Count(Box::new(count::CountSampler::of_size(law.counting()?, nodes)?));
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

/// The refusal of a size without formulas.
pub(crate) fn empty_size(level: u8, nodes: usize) -> Refusal {
    let class = if level == 0 { String::new() } else { format!(" of level {level}") };
    Refusal::new(Kind::EmptySize, format!("this law has no formula{class} of {nodes} nodes"))
}

/// The j-th smallest number that is not among the sorted `used`.
pub(crate) fn unused(j: u64, used: &[u64]) -> u64 {
    used.iter().fold(j, |x, &u| if u <= x { x + 1 } else { x })
}

/// Puts a number into a sorted list.
pub(crate) fn insert_sorted(used: &mut Vec<u64>, n: u64) {
    let at = used.partition_point(|&u| u < n);
    used.insert(at, n);
}
