//! Ground rules over events.

use crate::Failure;

/// Something that happens or not: a fact that holds, or one of the alternatives of a choice. Numbered from 0 in the order in
/// which they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(pub u32);

/// Something that follows from events by rules. Numbered from 0 in the order in which they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Atom(pub u32);

/// A part of a rule's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Literal {
    /// The event happens.
    Is(Event),
    /// It does not.
    IsNot(Event),
    /// The atom follows.
    Follows(Atom),
    /// It does not. The atom's stratum is below that of the rule's head.
    FollowsNot(Atom),
}

/// Ground rules, and what they are about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Proofs {
    /// The choice of each event.
    pub(crate) choices: Vec<u32>,
    /// The first event of each choice, and one more for the end.
    pub(crate) alternatives: Vec<u32>,
    /// The event of each choice that is the case for certain.
    pub(crate) sure: Vec<Option<Event>>,
    /// Which place each of the first events has where proofs are as probable; that of its number where none is said.
    pub(crate) ranks: Vec<u32>,
    /// The stratum of each atom.
    pub(crate) strata: Vec<u32>,
    /// The rules of each atom, by their numbers.
    pub(crate) rules_of: Vec<Vec<u32>>,
    /// The heads of the rules.
    pub(crate) heads: Vec<Atom>,
    /// Where the body of each rule begins in `literals`, and the end.
    pub(crate) bodies: Vec<u32>,
    pub(crate) literals: Vec<Literal>,
}

impl Proofs {
    /// A fact that holds or not, whatever else holds.
    pub fn fact(&mut self) -> Event {
        self.choice(1)
    }

    /// Alternatives of which at most one happens: the first of as many events.
    pub fn choice(&mut self, alternatives: u32) -> Event {
        if self.alternatives.is_empty() {
            self.alternatives.push(0);
        }
        let first = self.choices.len() as u32;
        let choice = self.alternatives.len() as u32 - 1;
        self.choices.extend((0..alternatives).map(|_| choice));
        self.alternatives.push(self.choices.len() as u32);
        self.sure.push(None);
        Event(first)
    }

    /// The event happens in every world that counts as possible. Its weight is what it is given: derivatives by it are what
    /// they would be otherwise.
    pub fn certain(&mut self, event: Event) {
        if let Some(choice) = self.choices.get(event.0 as usize) {
            self.sure[*choice as usize] = Some(event);
        }
    }

    /// Which place the event has among all where proofs are as probable: those go first whose events do. Without it, it is the
    /// number of the event, and alternatives stand together.
    pub fn rank(&mut self, event: Event, place: u32) {
        let at = event.0 as usize;
        if at < self.choices.len() {
            let known = self.ranks.len() as u32;
            self.ranks.extend(known..=event.0);
            self.ranks[at] = place;
        }
    }

    /// The place of an event.
    pub(crate) fn rank_of(&self, event: Event) -> u32 {
        self.ranks.get(event.0 as usize).copied().unwrap_or(event.0)
    }

    /// An atom without rules, which never follows. Atoms that follow from each other share a stratum; one that another one
    /// denies has a lower one.
    pub fn atom(&mut self, stratum: u32) -> Atom {
        self.strata.push(stratum);
        self.rules_of.push(Vec::new());
        Atom(self.strata.len() as u32 - 1)
    }

    /// The head follows where all literals hold. Atoms and events that were not made are never there: such a rule is none.
    pub fn rule(&mut self, head: Atom, body: &[Literal]) {
        let made = |literal: &Literal| match literal {
            Literal::Is(event) | Literal::IsNot(event) => (event.0 as usize) < self.choices.len(),
            Literal::Follows(atom) | Literal::FollowsNot(atom) => (atom.0 as usize) < self.strata.len(),
        };
        if (head.0 as usize) >= self.strata.len() || !body.iter().all(made) {
            return;
        }
        if self.bodies.is_empty() {
            self.bodies.push(0);
        }
        self.rules_of[head.0 as usize].push(self.heads.len() as u32);
        self.heads.push(head);
        self.literals.extend_from_slice(body);
        self.bodies.push(self.literals.len() as u32);
    }

    /// How many events there are.
    pub fn events(&self) -> usize {
        self.choices.len()
    }

    /// How many atoms there are.
    pub fn atoms(&self) -> usize {
        self.strata.len()
    }

    /// How many rules there are.
    pub fn rules(&self) -> usize {
        self.heads.len()
    }

    /// Whether all rules ask for what is known before their heads.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for (rule, head) in (0..).zip(&self.heads) {
            let stratum = self.strata[head.0 as usize];
            for literal in self.body(rule) {
                let (of, fits) = match literal {
                    Literal::Is(_) | Literal::IsNot(_) => continue,
                    Literal::Follows(atom) => {
                        let of = self.strata[atom.0 as usize];
                        (of, of <= stratum)
                    }
                    Literal::FollowsNot(atom) => {
                        let of = self.strata[atom.0 as usize];
                        (of, of < stratum)
                    }
                };
                if !fits {
                    return Err(Failure::NotStratified { head: *head, stratum, of });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn body(&self, rule: u32) -> &[Literal] {
        let at = rule as usize;
        &self.literals[self.bodies[at] as usize..self.bodies[at + 1] as usize]
    }

    /// The events of a choice.
    pub(crate) fn events_of(&self, choice: u32) -> std::ops::Range<u32> {
        self.alternatives[choice as usize]..self.alternatives[choice as usize + 1]
    }

    pub(crate) fn choice_of(&self, event: Event) -> u32 {
        self.choices[event.0 as usize]
    }

    /// Meets the events below goals, those first that fewest rules lie between: their choices, in that order.
    pub(crate) fn breadth(&self, goals: &[Atom]) -> Vec<u32> {
        let mut seen = vec![false; self.atoms()];
        let mut met = vec![false; self.alternatives.len()];
        let mut choices = Vec::new();
        let mut layer: Vec<Atom> = goals.to_vec();
        while !layer.is_empty() {
            layer.retain(|atom| !std::mem::replace(&mut seen[atom.0 as usize], true));
            let mut next = Vec::new();
            for rule in layer.iter().flat_map(|atom| &self.rules_of[atom.0 as usize]) {
                for literal in self.body(*rule) {
                    match literal {
                        Literal::Is(event) | Literal::IsNot(event) => {
                            let choice = self.choice_of(*event);
                            if !std::mem::replace(&mut met[choice as usize], true) {
                                choices.push(choice);
                            }
                        }
                        Literal::Follows(atom) | Literal::FollowsNot(atom) => next.push(*atom),
                    }
                }
            }
            layer = next;
        }
        choices
    }
}

/// A search for what lies below goals, done again and again over the same rules.
pub(crate) struct Search<'p> {
    proofs: &'p Proofs,
    /// The place of each atom and of each choice among what the last search found, and the search that found it.
    atoms: Vec<(u32, u32)>,
    choices: Vec<(u32, u32)>,
    search: u32,
}

/// What lies below goals, in the order in which a search to the depth finds it: atoms behind what they follow from, except
/// where they follow from each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Below {
    pub(crate) atoms: Vec<Atom>,
    pub(crate) choices: Vec<u32>,
}

impl<'p> Search<'p> {
    pub(crate) fn new(proofs: &'p Proofs) -> Search<'p> {
        let choices = vec![(0, 0); proofs.alternatives.len()];
        Search { proofs, atoms: vec![(0, 0); proofs.atoms()], choices, search: 0 }
    }

    /// What lies below these goals.
    pub(crate) fn below(&mut self, goals: &[Atom]) -> Below {
        self.search += 1;
        let mut below = Below::default();
        // An atom, the next of its rules, and the next literal of that.
        let mut open: Vec<(Atom, usize, usize)> = Vec::new();
        for goal in goals {
            self.open(*goal, &mut open);
            while let Some((atom, rule, literal)) = open.last_mut() {
                let Some(at) = self.proofs.rules_of[atom.0 as usize].get(*rule) else {
                    self.atoms[atom.0 as usize].1 = below.atoms.len() as u32;
                    below.atoms.push(*atom);
                    open.pop();
                    continue;
                };
                let Some(next) = self.proofs.body(*at).get(*literal) else {
                    (*rule, *literal) = (*rule + 1, 0);
                    continue;
                };
                *literal += 1;
                match next {
                    Literal::Is(event) | Literal::IsNot(event) => {
                        let choice = self.proofs.choice_of(*event);
                        let entry = &mut self.choices[choice as usize];
                        if entry.0 != self.search {
                            *entry = (self.search, below.choices.len() as u32);
                            below.choices.push(choice);
                        }
                    }
                    Literal::Follows(atom) | Literal::FollowsNot(atom) => self.open(*atom, &mut open),
                }
            }
        }
        below
    }

    fn open(&mut self, atom: Atom, open: &mut Vec<(Atom, usize, usize)>) {
        let entry = &mut self.atoms[atom.0 as usize];
        if entry.0 != self.search {
            entry.0 = self.search;
            open.push((atom, 0, 0));
        }
    }

    /// The place of an atom in [`Below::atoms`].
    pub(crate) fn atom(&self, atom: Atom) -> Atom {
        Atom(self.atoms[atom.0 as usize].1)
    }

    /// The place of a choice in [`Below::choices`].
    pub(crate) fn choice(&self, choice: u32) -> u32 {
        self.choices[choice as usize].1
    }
}
