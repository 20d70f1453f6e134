//! Drawing texts from a law.
//!
//! Enter at [`Sampler`]. An item is a function of its stream alone, and no floating-point number takes part.
//! Tokens are written directly, without a tree; after the first items nothing is allocated.

mod boltzmann;
mod choice;
mod count;
mod depth;
pub(crate) mod distinct;
mod facts;

pub use facts::Facts;
use seeded::Stream;

use crate::error::Refusal;
use crate::law::{Family, Law};
use crate::notation::Code;
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
    /// Draws what the written text has beside the canonical one.
    code: Code,
}

#[derive(Debug, Clone)]
enum Draws {
    Depth(Box<depth::DepthSampler>),
    Count(Box<count::CountSampler>),
    Boltzmann(Box<boltzmann::BoltzmannSampler>),
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
            Family::Boltzmann(law) => Draws::Boltzmann(Box::new(boltzmann::BoltzmannSampler::new(law)?)),
        };
        Ok(Self { family, limit: law.max_tokens().saturating_sub(2), code: Code::PLAIN })
    }

    /// A sampler of a law's texts as they are written: with second pairs of parentheses where [`Law::parentheses`] says
    /// so, drawn after the text on the same stream (N15). `max_tokens` holds for the canonical text.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of_written(law: &Law) -> Result<Self, Refusal> {
        Ok(Self { code: Code::PLAIN.with_doubled(law.parentheses())?, ..Self::new(law)? })
    }

    /// A sampler of the formulas of one size of a counting law, all equally likely.
    ///
    /// # Errors
    /// `BadValue` for a law of family `depth` or too many nodes; `EmptySize` if there is no such formula.
    pub fn of_size(law: &Law, nodes: usize) -> Result<Self, Refusal> {
        let family = Draws::Count(Box::new(count::CountSampler::of_size(law.counting(nodes)?, nodes)?));
        Ok(Self { family, limit: law.max_tokens().saturating_sub(2), code: Code::PLAIN })
    }

    /// Draws one text; `out` then holds its tokens without `<bos>` and `<eos>`.
    pub fn sample(&mut self, stream: &mut Stream, out: &mut Vec<SymbolId>) -> Facts {
        let mut redraws = 0;
        loop {
            let facts = match &mut self.family {
                Draws::Depth(sampler) => sampler.draw(stream, self.limit, out),
                Draws::Count(sampler) => sampler.draw(stream, out),
                Draws::Boltzmann(sampler) => sampler.draw(stream, out),
            };
            if out.len() <= self.limit {
                if let (false, Ok((tokens, _))) = (self.code.is_plain(), self.code.draw(out, stream)) {
                    // Without whole names a token is a symbol.
                    out.clear();
                    out.extend(tokens.into_iter().filter_map(|token| SymbolId::new(token.get())));
                }
                return Facts { redraws, ..facts };
            }
            redraws += 1;
        }
    }
}
