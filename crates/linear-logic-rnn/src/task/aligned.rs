//! Tasks on binary strings with a target at every step (section 7.1).

/// A map from a binary string to a string of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of section 7.1")]
pub enum Aligned {
    Ident,
    Flip,
    Reverse,
    SkipRepeat,
    ZeroMeansRepeat,
    F1,
    PairSwap,
}

impl Aligned {
    /// Every one of them, with its name.
    pub(super) const NAMED: [(&'static str, Self); 7] = [
        ("ident", Self::Ident),
        ("flip", Self::Flip),
        ("reverse", Self::Reverse),
        ("skip-repeat", Self::SkipRepeat),
        ("zero-means-repeat", Self::ZeroMeansRepeat),
        ("f1", Self::F1),
        ("pair-swap", Self::PairSwap),
    ];

    /// The target of step j of the string s; `None` where the position does not count.
    pub(super) fn target(self, s: &[u32], j: usize) -> Option<u32> {
        // The symbol k places back.
        let back = |k: usize| j.checked_sub(k).and_then(|i| s.get(i)).copied();
        let here = back(0)?;
        Some(match self {
            Self::Ident => here,
            Self::Flip => 1 - here.min(1),
            Self::Reverse => s.iter().rev().nth(j).copied()?,
            Self::SkipRepeat if j % 2 == 1 => back(1)?,
            Self::SkipRepeat => here,
            Self::ZeroMeansRepeat if back(1) == Some(0) => 1,
            Self::ZeroMeansRepeat => here,
            Self::F1 if here == 1 && back(1) == Some(1) => {
                if j > 3 {
                    back(2)?
                } else {
                    0
                }
            }
            Self::F1 => 1,
            // tⱼ = wⱼ₋₁, where w exchanges s₂ₘ and s₂ₘ₊₁: the symbol that has just come at odd j, the one two places
            // back at even j. A last single symbol of w would stand one step behind the end.
            Self::PairSwap if j == 0 => return None,
            Self::PairSwap if j % 2 == 1 => here,
            Self::PairSwap => back(2)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::Family;

    fn targets(task: Aligned, s: &[u32]) -> Vec<Option<u32>> {
        (0..s.len()).map(|j| task.target(s, j)).collect()
    }

    #[test]
    fn pair_swap_is_the_exchange_one_step_late() {
        let mut stream = Family::named("pair-swap").stream(0);
        for n in 0..12_usize {
            let s: Vec<u32> = (0..n).map(|_| stream.below(2) as u32).collect();
            let mut w = s.clone();
            w.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
            let late = std::iter::once(None).chain(w.into_iter().map(Some)).take(n);
            assert_eq!(targets(Aligned::PairSwap, &s), late.collect::<Vec<_>>(), "{s:?}");
        }
    }

    #[test]
    fn reverse_twice_and_flip_twice_are_nothing() {
        let s = [0, 1, 1, 0, 1];
        for task in [Aligned::Reverse, Aligned::Flip] {
            let once: Vec<u32> = targets(task, &s).into_iter().flatten().collect();
            assert_ne!(once, s);
            assert_eq!(targets(task, &once), s.map(Some));
        }
    }
}
