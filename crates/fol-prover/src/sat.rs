//! A propositional solver: clauses learned from conflicts, two watched literals, activities, restarts by Luby's sequence
//! (Marques-Silva and Sakallah 1996; Eén and Sörensson 2003).
//!
//! Clauses can be added between searches. Each learned clause knows the clauses that it came from, and unit propagation
//! alone shows it from them: so a proof can be made of what was learned. Nothing depends on a clock or on chance.

mod heap;

use crate::limit::{Budget, Spent};
use heap::Heap;

/// A variable or its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lit(u32);

impl Lit {
    pub(crate) fn new(variable: usize, positive: bool) -> Self {
        Self((variable as u32) << 1 | u32::from(!positive))
    }

    pub(crate) fn variable(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) fn is_positive(self) -> bool {
        self.0 & 1 == 0
    }

    pub(crate) fn negated(self) -> Self {
        Self(self.0 ^ 1)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a clause; clauses that were given and that were learned are numbered through.
pub(crate) type ClauseId = usize;

/// No clause: a decision.
const NONE: usize = usize::MAX;
/// More clauses than this are not kept.
const CLAUSES: usize = 2_000_000;
/// So many looks at watched clauses are a step.
const LOOKS: u64 = 256;
/// Conflicts before the first restart.
const RESTART: u64 = 64;

#[derive(Debug, Clone, Copy)]
struct Watch {
    clause: ClauseId,
    /// Some other literal of the clause: if it is true, the clause need not be looked at.
    blocker: Lit,
}

/// The solver.
#[derive(Debug, Default)]
pub(crate) struct Solver {
    clauses: Vec<Vec<Lit>>,
    /// For a learned clause, what it came from.
    antecedents: Vec<Vec<ClauseId>>,
    watches: Vec<Vec<Watch>>,
    /// Of each literal: 1 true, -1 false, 0 open.
    values: Vec<i8>,
    levels: Vec<u32>,
    reasons: Vec<ClauseId>,
    phases: Vec<bool>,
    trail: Vec<Lit>,
    /// How long the trail was at each decision.
    decisions: Vec<usize>,
    propagated: usize,
    order: Heap,
    seen: Vec<bool>,
    /// From which clauses the empty one follows, once it does.
    refuted: Option<Vec<ClauseId>>,
    conflicts: u64,
    /// Watched clauses that were looked at and not yet counted as steps.
    looks: u64,
}

impl Solver {
    /// A new variable, which is tried as false first.
    pub(crate) fn variable(&mut self) -> usize {
        let variable = self.levels.len();
        self.watches.extend([Vec::new(), Vec::new()]);
        self.values.extend([0, 0]);
        self.levels.push(0);
        self.reasons.push(NONE);
        self.phases.push(false);
        self.seen.push(false);
        self.order.add(variable);
        variable
    }

    /// Whether a literal is true in the model that was found.
    pub(crate) fn is_true(&self, lit: Lit) -> bool {
        self.values[lit.index()] > 0
    }

    /// From which clauses the empty clause came, if it did.
    pub(crate) fn refutation(&self) -> Option<&[ClauseId]> {
        self.refuted.as_deref()
    }

    /// What a learned clause came from; nothing for a clause that was given.
    pub(crate) fn antecedents(&self, clause: ClauseId) -> &[ClauseId] {
        &self.antecedents[clause]
    }

    /// The literals of a clause.
    pub(crate) fn literals(&self, clause: ClauseId) -> &[Lit] {
        &self.clauses[clause]
    }

    /// Adds a clause and undoes all decisions.
    pub(crate) fn add(&mut self, mut lits: Vec<Lit>) -> ClauseId {
        self.undo(0);
        lits.sort_unstable();
        lits.dedup();
        let id = self.clauses.len();
        // What is not false comes first, so that the watched literals are right.
        lits.sort_by_key(|lit| self.values[lit.index()] < 0);
        self.install(lits, Vec::new());
        if self.refuted.is_none() {
            match self.clauses[id].as_slice() {
                [] => self.refuted = Some(vec![id]),
                [first, rest @ ..] => {
                    let (first, open) =
                        (*first, rest.first().is_some_and(|lit| self.values[lit.index()] >= 0));
                    match self.values[first.index()] {
                        -1 => self.refuted = Some(self.why_at_level_0(id)),
                        0 if !open => self.assign(first, id),
                        _ => {}
                    }
                }
            }
        }
        id
    }

    fn install(&mut self, lits: Vec<Lit>, antecedents: Vec<ClauseId>) {
        let id = self.clauses.len();
        if let [first, second, ..] = lits.as_slice() {
            self.watches[first.negated().index()].push(Watch { clause: id, blocker: *second });
            self.watches[second.negated().index()].push(Watch { clause: id, blocker: *first });
        }
        self.clauses.push(lits);
        self.antecedents.push(antecedents);
    }

    /// Searches for a model: true if there is one. A solver with very many clauses gives up, as if its budget were spent.
    pub(crate) fn solve(&mut self, budget: &mut Budget) -> Result<bool, Spent> {
        let mut restarts = 0;
        let mut until = self.conflicts + RESTART * luby(restarts);
        loop {
            if self.refuted.is_some() {
                return Ok(false);
            }
            if self.clauses.len() > CLAUSES {
                return Err(Spent);
            }
            let conflict = self.propagate();
            budget.spend(self.looks / LOOKS)?;
            self.looks %= LOOKS;
            match conflict {
                Some(conflict) => {
                    budget.spend(1)?;
                    self.conflicts += 1;
                    if self.decisions.is_empty() {
                        self.refuted = Some(self.why_at_level_0(conflict));
                    } else {
                        self.learn(conflict);
                    }
                }
                None => {
                    if self.conflicts >= until {
                        restarts += 1;
                        until = self.conflicts + RESTART * luby(restarts);
                        self.undo(0);
                    }
                    if !self.decide() {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn decide(&mut self) -> bool {
        while let Some(variable) = self.order.pop() {
            let lit = Lit::new(variable, self.phases[variable]);
            if self.values[lit.index()] == 0 {
                self.decisions.push(self.trail.len());
                self.assign(lit, NONE);
                return true;
            }
        }
        false
    }

    fn assign(&mut self, lit: Lit, reason: ClauseId) {
        self.values[lit.index()] = 1;
        self.values[lit.negated().index()] = -1;
        self.levels[lit.variable()] = self.decisions.len() as u32;
        self.reasons[lit.variable()] = reason;
        self.trail.push(lit);
    }

    fn undo(&mut self, level: usize) {
        let Some(&length) = self.decisions.get(level) else { return };
        for lit in self.trail.drain(length..) {
            self.values[lit.index()] = 0;
            self.values[lit.negated().index()] = 0;
            self.phases[lit.variable()] = lit.is_positive();
            self.order.push(lit.variable());
        }
        self.decisions.truncate(level);
        self.propagated = self.propagated.min(length);
    }

    /// Follows all units; a clause that became false, if one did.
    fn propagate(&mut self) -> Option<ClauseId> {
        while let Some(&lit) = self.trail.get(self.propagated) {
            self.propagated += 1;
            let mut watches = std::mem::take(&mut self.watches[lit.index()]);
            self.looks += watches.len() as u64 + 1;
            let mut kept = 0;
            let mut conflict = None;
            let mut at = 0;
            'watches: while at < watches.len() {
                let watch = watches[at];
                at += 1;
                if self.values[watch.blocker.index()] > 0 {
                    watches[kept] = watch;
                    kept += 1;
                    continue;
                }
                let clause = &mut self.clauses[watch.clause];
                if clause[0] == lit.negated() {
                    clause.swap(0, 1);
                }
                let first = clause[0];
                let watch = Watch { clause: watch.clause, blocker: first };
                if self.values[first.index()] <= 0 {
                    for i in 2..clause.len() {
                        if self.values[clause[i].index()] >= 0 {
                            clause.swap(1, i);
                            self.watches[clause[1].negated().index()].push(watch);
                            continue 'watches;
                        }
                    }
                }
                watches[kept] = watch;
                kept += 1;
                if self.values[first.index()] < 0 {
                    conflict = Some(watch.clause);
                    break;
                } else if self.values[first.index()] == 0 {
                    self.assign(first, watch.clause);
                }
            }
            while at < watches.len() {
                watches[kept] = watches[at];
                kept += 1;
                at += 1;
            }
            watches.truncate(kept);
            self.watches[lit.index()] = watches;
            if conflict.is_some() {
                return conflict;
            }
        }
        None
    }

    /// Learns the clause of the first unique implication point, goes back and asserts it.
    fn learn(&mut self, conflict: ClauseId) {
        let level = self.decisions.len() as u32;
        let mut learned = vec![Lit(0)];
        let mut antecedents = vec![conflict];
        let mut settled = Vec::new();
        let mut marked = Vec::new();
        let mut open = 0;
        let mut clause = conflict;
        let mut resolved: Option<Lit> = None;
        let mut at = self.trail.len();
        loop {
            for &lit in &self.clauses[clause] {
                let variable = lit.variable();
                if Some(lit) == resolved || self.seen[variable] {
                    continue;
                }
                self.seen[variable] = true;
                marked.push(variable);
                self.order.bump(variable);
                match self.levels[variable] {
                    0 => settled.push(variable),
                    at if at == level => open += 1,
                    _ => learned.push(lit),
                }
            }
            let lit = loop {
                at -= 1;
                let lit = self.trail[at];
                if self.seen[lit.variable()] && self.levels[lit.variable()] == level {
                    break lit;
                }
            };
            open -= 1;
            if open == 0 {
                learned[0] = lit.negated();
                break;
            }
            clause = self.reasons[lit.variable()];
            antecedents.push(clause);
            resolved = Some(lit);
        }
        // A literal whose reason says nothing new is left out.
        let mut kept = vec![learned[0]];
        for &lit in &learned[1..] {
            let reason = self.reasons[lit.variable()];
            let implied = reason != NONE
                && self.clauses[reason]
                    .iter()
                    .all(|other| self.seen[other.variable()] || self.levels[other.variable()] == 0);
            if implied {
                antecedents.push(reason);
                settled.extend(
                    self.clauses[reason].iter().map(|l| l.variable()).filter(|v| self.levels[*v] == 0),
                );
            } else {
                kept.push(lit);
            }
        }
        for variable in marked {
            self.seen[variable] = false;
        }
        self.settle(settled, &mut antecedents);
        let mut back = 0;
        if kept.len() > 1 {
            let level_of = |lit: &Lit| self.levels[lit.variable()];
            let highest = (1..kept.len()).max_by_key(|&i| level_of(&kept[i])).unwrap_or(1);
            kept.swap(1, highest);
            back = level_of(&kept[1]) as usize;
        }
        self.undo(back);
        self.order.decay();
        let (id, first) = (self.clauses.len(), kept[0]);
        self.install(kept, antecedents);
        self.assign(first, id);
    }

    /// Adds the reasons of what is settled without a decision, and theirs.
    fn settle(&mut self, mut open: Vec<usize>, antecedents: &mut Vec<ClauseId>) {
        let mut marked = Vec::new();
        while let Some(variable) = open.pop() {
            if self.seen[variable] {
                continue;
            }
            self.seen[variable] = true;
            marked.push(variable);
            let reason = self.reasons[variable];
            if reason != NONE {
                antecedents.push(reason);
                open.extend(self.clauses[reason].iter().map(|lit| lit.variable()));
            }
        }
        for variable in marked {
            self.seen[variable] = false;
        }
    }

    /// From which clauses it follows that a clause, which is false without any decision, is.
    fn why_at_level_0(&mut self, clause: ClauseId) -> Vec<ClauseId> {
        let mut antecedents = vec![clause];
        let open = self.clauses[clause].iter().map(|lit| lit.variable()).collect();
        self.settle(open, &mut antecedents);
        antecedents
    }
}

/// 1, 1, 2, 1, 1, 2, 4, 1, …
fn luby(mut i: u64) -> u64 {
    i += 1;
    loop {
        let bits = u64::BITS - i.leading_zeros();
        if i + 1 == 1 << bits {
            return 1 << (bits - 1);
        }
        i -= (1 << (bits - 1)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;

    fn satisfiable(variables: usize, clauses: &[Vec<(usize, bool)>]) -> bool {
        (0..1u32 << variables).any(|bits| {
            clauses.iter().all(|clause| clause.iter().any(|&(v, positive)| (bits >> v & 1 == 1) == positive))
        })
    }

    /// Whether unit propagation shows a clause from others.
    fn follows(clause: &[Lit], from: &[Vec<Lit>]) -> bool {
        let mut yes: Vec<Lit> = clause.iter().map(|lit| lit.negated()).collect();
        loop {
            let mut changed = false;
            for other in from {
                let open: Vec<Lit> =
                    other.iter().filter(|lit| !yes.contains(&lit.negated())).copied().collect();
                match open.as_slice() {
                    [] => return true,
                    [unit] if !yes.contains(unit) => {
                        yes.push(*unit);
                        changed = true;
                    }
                    _ => {}
                }
            }
            if !changed {
                return false;
            }
        }
    }

    #[test]
    fn answers_are_those_of_all_assignments_and_what_is_learned_follows() {
        let family = seeded::Family::new("fol-prover", "sat", seeded::test_seed());
        let (mut yes, mut no) = (0, 0);
        for item in 0..400 {
            let mut draw = family.stream(item);
            let variables = 3 + draw.below(7) as usize;
            let mut clauses: Vec<Vec<(usize, bool)>> = Vec::new();
            let mut solver = Solver::default();
            for _ in 0..variables {
                solver.variable();
            }
            // Clauses come between searches, as the engine adds them.
            for _ in 0..12 {
                for _ in 0..draw.below(8) {
                    let length = 1 + draw.below(4);
                    let clause: Vec<(usize, bool)> = (0..length)
                        .map(|_| (draw.below(variables as u64) as usize, draw.below(2) == 0))
                        .collect();
                    solver.add(clause.iter().map(|&(v, positive)| Lit::new(v, positive)).collect());
                    clauses.push(clause);
                }
                let found = solver.solve(&mut Budget::new(Limit::Steps(100_000))).unwrap();
                assert_eq!(found, satisfiable(variables, &clauses), "{clauses:?}");
                if found {
                    yes += 1;
                    let holds = |&(v, positive): &(usize, bool)| solver.is_true(Lit::new(v, positive));
                    assert!(clauses.iter().all(|clause| clause.iter().any(holds)));
                } else {
                    no += 1;
                    break;
                }
            }
            let all = |ids: &[ClauseId]| ids.iter().map(|id| solver.clauses[*id].clone()).collect::<Vec<_>>();
            for id in 0..solver.clauses.len() {
                let from = solver.antecedents(id);
                assert!(from.iter().all(|earlier| *earlier < id));
                assert!(from.is_empty() || follows(&solver.clauses[id], &all(from)));
            }
            if let Some(from) = solver.refutation() {
                assert!(follows(&[], &all(from)));
            }
        }
        assert!(yes > 100 && no > 100, "{yes} {no}");
    }

    #[test]
    fn restarts_follow_luby() {
        assert_eq!((0..15).map(luby).collect::<Vec<_>>(), [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
