//! What follows in some world.

use crate::proofs::{Atom, Literal, Proofs};
use crate::{Failure, Limits};

impl Proofs {
    /// Whether each of these atoms follows in some world in which what is certain happens, whatever that world's probability
    /// is. Diagrams are needed only where something is denied or excluded.
    ///
    /// # Errors
    /// As [`Proofs::compile`].
    pub fn possible(&self, atoms: &[Atom], limits: &Limits<'_>) -> Result<Vec<bool>, Failure> {
        if !self.affirms() {
            return Ok(self.compile(atoms, limits)?.possible());
        }
        self.check()?;
        let follows = self.together(&|_| true);
        Ok(atoms.iter().map(|atom| follows.get(atom.0 as usize).copied().unwrap_or(false)).collect())
    }

    /// Whether each atom follows from what is certain alone, and without that anything else is denied: in every world that counts.
    pub fn follows_surely(&self) -> Vec<bool> {
        self.together(&|literal| match literal {
            Literal::Is(event) => self.sure[self.choice_of(*event) as usize] == Some(*event),
            Literal::IsNot(event) => {
                self.sure[self.choice_of(*event) as usize].is_some_and(|sure| sure != *event)
            }
            Literal::Follows(_) => true,
            Literal::FollowsNot(_) => false,
        })
    }

    /// Whether nothing is denied, and nothing excludes another: then what follows from some events follows from all.
    fn affirms(&self) -> bool {
        let affirms = |literal: &Literal| matches!(literal, Literal::Is(_) | Literal::Follows(_));
        self.literals.iter().all(affirms) && self.alternatives.windows(2).all(|ends| ends[1] - ends[0] <= 1)
    }

    /// What follows where these literals hold, those of atoms as far as they follow.
    fn together(&self, holds: &dyn Fn(&Literal) -> bool) -> Vec<bool> {
        let mut waiting = vec![0_u32; self.rules()];
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); self.atoms()];
        for rule in 0..self.rules() as u32 {
            for literal in self.body(rule) {
                if let Literal::Follows(atom) = literal {
                    waiting[rule as usize] += 1;
                    readers[atom.0 as usize].push(rule);
                }
            }
            // Such a rule waits for ever.
            waiting[rule as usize] += u32::from(!self.body(rule).iter().all(holds));
        }
        let mut follows = vec![false; self.atoms()];
        let mut open: Vec<u32> =
            (0..self.rules() as u32).filter(|rule| waiting[*rule as usize] == 0).collect();
        while let Some(rule) = open.pop() {
            let head = self.heads[rule as usize].0 as usize;
            if std::mem::replace(&mut follows[head], true) {
                continue;
            }
            for reader in &readers[head] {
                waiting[*reader as usize] -= 1;
                if waiting[*reader as usize] == 0 {
                    open.push(*reader);
                }
            }
        }
        follows
    }
}
