//! Atoms that follow from each other, one after the other eliminated from each other's rules.
//!
//! Where every rule of a cycle has one atom of the cycle at most, an atom follows from a sum: of what holds alone, and of
//! other atoms of the cycle, each under a condition. The least solution of x = a or (b and x) is a, so that an atom is
//! forgotten in its own sum and then written out in those of others: the elimination of Gauss, over functions (as in Mader:
//! Verification of modal properties using Boolean equation systems, 1997). What is made on the way speaks of the choices of
//! what was eliminated, and of no bound on the length of a proof, as the rounds of a least fixpoint do: on a graph of small
//! width, in an order along it, all diagrams stay small.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagram::{Diagrams, FALSE, Full, Node};

/// What an atom follows from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    /// What is enough alone.
    pub(crate) alone: Node,
    /// Atoms of the cycle, and what is enough together with each.
    pub(crate) with: BTreeMap<u32, Node>,
}

impl Sum {
    /// Adds a way to follow: alone or together with an atom.
    pub(crate) fn add(
        &mut self,
        atom: Option<u32>,
        holds: Node,
        diagrams: &mut Diagrams<'_>,
    ) -> Result<(), Full> {
        if holds != FALSE {
            let entry = match atom {
                Some(atom) => self.with.entry(atom).or_insert(FALSE),
                None => &mut self.alone,
            };
            *entry = diagrams.or(*entry, holds)?;
        }
        Ok(())
    }
}

/// So many times the terms that there are at first may come to be, and so many in any case.
const GROWTH: usize = 16;
const FEW: usize = 1 << 10;

/// The values of the `wanted` atoms of a cycle, the atoms numbered from 0, eliminated in this order; `None` where there
/// would be too many terms.
pub(crate) fn least(
    mut sums: Vec<Sum>,
    order: &[u32],
    wanted: &[u32],
    diagrams: &mut Diagrams<'_>,
) -> Result<Option<Vec<Node>>, Full> {
    let mut readers: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); sums.len()];
    for (reader, sum) in (0..).zip(&sums) {
        sum.with.keys().for_each(|atom| _ = readers[*atom as usize].insert(reader));
    }
    let mut count: usize = sums.iter().map(|sum| sum.with.len()).sum();
    let most = count.saturating_mul(GROWTH).max(FEW);
    for atom in order {
        diagrams.ask()?;
        let mut own = std::mem::take(&mut sums[*atom as usize]);
        own.with.remove(atom);
        for reader in &readers[*atom as usize] {
            let mut sum = std::mem::take(&mut sums[*reader as usize]);
            let before = sum.with.len();
            if let Some(holds) = sum.with.remove(atom) {
                let alone = diagrams.and(holds, own.alone)?;
                sum.add(None, alone, diagrams)?;
                for (other, under) in own.with.iter().filter(|(other, _)| *other != reader) {
                    let both = diagrams.and(holds, *under)?;
                    sum.add(Some(*other), both, diagrams)?;
                }
            }
            count = (count + sum.with.len()).saturating_sub(before);
            sums[*reader as usize] = sum;
        }
        // Who reads it reads now what it reads, if not to be found in itself.
        for reader in std::mem::take(&mut readers[*atom as usize]) {
            own.with.keys().for_each(|other| _ = readers[*other as usize].insert(reader));
        }
        own.with.keys().for_each(|other| _ = readers[*other as usize].remove(atom));
        sums[*atom as usize] = own;
        if count > most {
            return Ok(None);
        }
    }
    // What is left of a sum speaks of atoms that were eliminated later.
    let mut is_needed = vec![false; sums.len()];
    wanted.iter().for_each(|atom| is_needed[*atom as usize] = true);
    for atom in order {
        if is_needed[*atom as usize] {
            sums[*atom as usize].with.keys().for_each(|other| is_needed[*other as usize] = true);
        }
    }
    let mut values = vec![FALSE; sums.len()];
    for atom in order.iter().rev().filter(|atom| is_needed[**atom as usize]) {
        let Sum { alone: mut value, with } = std::mem::take(&mut sums[*atom as usize]);
        for (other, holds) in with {
            let way = diagrams.and(holds, values[other as usize])?;
            value = diagrams.or(value, way)?;
        }
        values[*atom as usize] = value;
    }
    Ok(Some(values))
}
