//! A walk of a string by a pattern of integers (section 7.3).
//!
//! j = 0; emit s\[j\]; add the pattern's entries to j in turn, cyclically; stop when j reaches the length. A pattern
//! with a sum of 0 or less would never end, so it is refused when it is made.

use super::LONGEST;
use crate::error::{Kind, Refusal, Result};

/// A pattern whose entries have a positive sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<i64>);

impl Pattern {
    /// Refused (`walk`) unless the sum is positive.
    pub fn new(entries: Vec<i64>) -> Result<Self> {
        let sum: i128 = entries.iter().map(|&p| i128::from(p)).sum();
        if sum > 0 {
            return Ok(Self(entries));
        }
        let message =
            format!("the pattern {entries:?} has the sum {sum}; a walk needs a positive one to end");
        Err(Refusal::new(Kind::Walk, message))
    }

    /// The entries.
    pub fn entries(&self) -> &[i64] {
        &self.0
    }

    /// What the walk emits. Refused (`walk-out-of-range`) if it steps before the string.
    pub fn walk(&self, string: &[u32]) -> Result<Vec<u32>> {
        let mut out = Vec::new();
        let mut at = 0_i64;
        for &step in self.0.iter().cycle() {
            let Ok(place) = usize::try_from(at) else {
                let message = format!("the walk by {:?} leaves the string: it comes to place {at}", self.0);
                return Err(Refusal::new(Kind::WalkOutOfRange, message));
            };
            let Some(&symbol) = string.get(place) else { break };
            if out.len() >= LONGEST {
                let message = format!("the walk by this pattern is longer than {LONGEST} symbols");
                return Err(Refusal::new(Kind::Walk, message));
            }
            out.push(symbol);
            at = at.saturating_add(step);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, word for word, on letters.
    fn walked(pattern: &[i64]) -> String {
        let letters: Vec<u32> = "abcdefgh".chars().map(u32::from).collect();
        let walk = Pattern::new(pattern.to_vec()).unwrap().walk(&letters).unwrap();
        walk.into_iter().filter_map(char::from_u32).collect()
    }

    #[test]
    fn the_worked_examples() {
        assert_eq!(walked(&[0, 1, 1]), "aabccdeefggh");
        assert_eq!(walked(&[0, 2]), "aacceegg");
        assert_eq!(walked(&[0, 2, -1]), "aacbbdcceddfeegffhgg");
        assert_eq!(walked(&[0, 2, 1, 2, -2, -1]), "aacdfdccefhfeegh");
        assert_eq!(walked(&[4, 1, 1, -4]), "aefgcgh");
    }

    #[test]
    fn refusals() {
        let kind = |entries: &[i64]| Pattern::new(entries.to_vec()).unwrap_err().kind;
        assert_eq!([kind(&[]), kind(&[0]), kind(&[1, -1])], [Kind::Walk; 3]);
        assert_eq!(Pattern::new(vec![i64::MIN, i64::MAX]).unwrap_err().kind, Kind::Walk);
        let left = Pattern::new(vec![1, -2, 3]).unwrap();
        assert_eq!(left.walk(&[0; 5]).unwrap_err().kind, Kind::WalkOutOfRange);
        assert_eq!(left.walk(&[]).unwrap(), Vec::<u32>::new());
        // A step beyond all integers only ends the walk.
        assert_eq!(Pattern::new(vec![1, i64::MAX]).unwrap().walk(&[7, 6]).unwrap(), [7, 6]);
    }
}
