//! Random sequences of an exact length.
//!
//! | task | drawn, in this order |
//! |---|---|
//! | binary, groups, `mod-sum` | every token uniformly |
//! | walks | every content symbol uniformly in 0 … 7 |
//! | `multi-pattern` | the same, where 7 is the divider; if one is forced and none came, a uniform place becomes one |
//! | `variable-pattern` | the pattern, then a string that fills the rest, at least one symbol |
//!
//! The content of a tape of length n has L = n − 2 symbols. A pattern of `variable-pattern` has at most L − 2 entries,
//! so that 8 and one symbol of the string have room. A list is drawn from uniformly, among the patterns that are short
//! enough; a random pattern has a uniform length in 1 … min(8, L − 2) and uniform entries, and is drawn again, length
//! and entries, until it is allowed. Where a walk leaves its string the whole content is drawn again.

use seeded::Stream;

use super::tape::{CONTENT, DIVIDER, Divider, START, Transform, Variable};
use super::walk::Pattern;
use crate::error::{Kind, Refusal, Result};

/// Contents drawn before it is believed that every walk leaves its string.
const ATTEMPTS: usize = 10_000;
/// Entries of the longest random pattern.
const LONGEST_PATTERN: usize = 8;

/// So many uniform symbols below `symbols`.
pub(super) fn uniform(symbols: u32, length: usize, stream: &mut Stream) -> Vec<u32> {
    (0..length).map(|_| stream.below(u64::from(symbols)) as u32).collect()
}

impl Transform {
    /// The length of the shortest content that can be drawn.
    pub(super) fn shortest(&self) -> usize {
        match self {
            Self::Walk(_) | Self::Sections { .. } => 0,
            Self::Variable(_) => 3,
        }
    }

    /// A content of this length and its transform.
    pub(super) fn draw(&self, length: usize, stream: &mut Stream) -> Result<(Vec<u32>, Vec<u32>)> {
        if length < self.shortest() {
            let message = format!("a tape of this task has n of at least {}", self.shortest() + 2);
            return Err(Refusal::new(Kind::Tape, message));
        }
        let mut attempt = 1;
        loop {
            let content = self.content(length, stream);
            match self.apply(&content) {
                Ok(walk) => return Ok((content, walk)),
                Err(e) if e.kind != Kind::WalkOutOfRange || attempt >= ATTEMPTS => return Err(e),
                // A fixed pattern leaves every string of a length or none.
                Err(e) if matches!(self, Self::Walk(_)) => return Err(e),
                Err(_) => attempt += 1,
            }
        }
    }

    fn content(&self, length: usize, stream: &mut Stream) -> Vec<u32> {
        match self {
            Self::Walk(_) => uniform(CONTENT, length, stream),
            Self::Sections { divider, .. } => {
                let mut content = uniform(CONTENT, length, stream);
                if *divider == Divider::Forced && !content.contains(&DIVIDER) {
                    let place = stream.below(length as u64) as usize;
                    content.iter_mut().skip(place).take(1).for_each(|s| *s = DIVIDER);
                }
                content
            }
            Self::Variable(variable) => {
                let pattern = variable.pattern(length.saturating_sub(2), stream);
                let symbol = |p: &i64| u32::try_from(p + variable.offset()).unwrap_or_default();
                let mut content: Vec<u32> = pattern.iter().map(symbol).collect();
                content.push(START);
                let rest = length.saturating_sub(content.len());
                content.extend(uniform(CONTENT, rest, stream));
                content
            }
        }
    }
}

impl Variable {
    /// A pattern of at most `longest` entries; `longest` is at least 1.
    fn pattern(&self, longest: usize, stream: &mut Stream) -> Vec<i64> {
        match self {
            Self::Listed(patterns) => {
                let short: Vec<&Vec<i64>> = patterns.iter().filter(|p| p.len() <= longest).collect();
                let place = stream.below(short.len() as u64) as usize;
                short.get(place).map_or_else(|| vec![1], |p| p.to_vec())
            }
            Self::Random { below } => loop {
                let length = 1 + stream.below(longest.min(LONGEST_PATTERN) as u64);
                let entry = |_| stream.below(u64::from(*below) + 3) as i64 - i64::from(*below);
                let entries: Vec<i64> = (0..length).map(entry).collect();
                if let Ok(pattern) = Pattern::new(entries) {
                    return pattern.entries().to_vec();
                }
            },
        }
    }
}

/// All words of length 1 … 3 over {0,1,2} that are not zero and not a power of a shorter word.
pub(super) fn primitive_words() -> Vec<Vec<i64>> {
    let mut words = Vec::new();
    let mut layer: Vec<Vec<i64>> = vec![Vec::new()];
    for _ in 0..3 {
        layer = layer.iter().flat_map(|w| (0..3).map(|p| w.iter().copied().chain([p]).collect())).collect();
        words.extend(layer.iter().filter(|w| is_primitive(w)).cloned());
    }
    words
}

/// A word of length n is the power of a shorter one if its first d entries, repeated, give it for some d < n.
fn is_primitive(word: &[i64]) -> bool {
    let repeats = |d: &usize| {
        word.len().is_multiple_of(*d) && word.iter().zip(word.iter().skip(*d)).all(|(a, b)| a == b)
    };
    word.iter().any(|&p| p != 0) && !(1..word.len()).any(|d| repeats(&d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_32_primitive_words() {
        let words = primitive_words();
        assert_eq!(words.len(), 2 + 6 + 24);
        assert_eq!(words[..4], [vec![1], vec![2], vec![0, 1], vec![0, 2]]);
        // The obvious oracle: a power of a shorter word equals one of its own rotations (not the word turned fully).
        let rotated = |w: &[i64], k: usize| [&w[k..], &w[..k]].concat();
        for w in &words {
            assert!((1..w.len()).all(|k| rotated(w, k) != *w), "{w:?}");
        }
    }
}
