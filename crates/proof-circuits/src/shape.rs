//! What lies below goals, as a shape that other goals may have, too.

use crate::proofs::{Atom, Event, Literal, Proofs, Search};

/// The event in place of an atom that is nothing else: a literal that says the same.
fn plain(proofs: &Proofs, literal: &Literal) -> Literal {
    let only = |atom: &Atom| match proofs.rules_of[atom.0 as usize][..] {
        [rule] => match proofs.body(rule) {
            [literal @ (Literal::Is(_) | Literal::IsNot(_))] => Some(*literal),
            _ => None,
        },
        _ => None,
    };
    let found = match literal {
        Literal::Follows(atom) => only(atom),
        Literal::FollowsNot(atom) => only(atom).map(|literal| match literal {
            Literal::Is(event) => Literal::IsNot(event),
            Literal::IsNot(event) => Literal::Is(event),
            other => other,
        }),
        Literal::Is(_) | Literal::IsNot(_) => None,
    };
    found.unwrap_or(*literal)
}

/// What lies below some goals, numbered in the order in which a search finds it: the choices in an order that is good for
/// diagrams, the atoms behind what they follow from.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) proofs: Proofs,
    pub(crate) goals: Vec<Atom>,
}

impl Shape {
    /// The shape, and the choices that its own stand for.
    pub(crate) fn of(proofs: &Proofs, goals: &[Atom], search: &mut Search<'_>) -> (Shape, Vec<u32>) {
        let below = search.below(goals);
        let mut shape = Proofs::default();
        let mut firsts = Vec::with_capacity(below.choices.len());
        for choice in &below.choices {
            let first = shape.choice(proofs.events_of(*choice).len() as u32).0;
            if let Some(sure) = proofs.sure[*choice as usize] {
                shape.certain(Event(first + sure.0 - proofs.events_of(*choice).start));
            }
            firsts.push(first);
        }
        let mut strata: Vec<u32> = below.atoms.iter().map(|atom| proofs.strata[atom.0 as usize]).collect();
        strata.sort_unstable();
        strata.dedup();
        for atom in &below.atoms {
            let stratum = strata.partition_point(|stratum| *stratum < proofs.strata[atom.0 as usize]);
            shape.atom(stratum as u32);
        }
        let event = |event: &Event| {
            let choice = proofs.choice_of(*event);
            Event(firsts[search.choice(choice) as usize] + event.0 - proofs.events_of(choice).start)
        };
        let own = |literal: &Literal| match plain(proofs, literal) {
            Literal::Is(of) => Literal::Is(event(&of)),
            Literal::IsNot(of) => Literal::IsNot(event(&of)),
            Literal::Follows(atom) => Literal::Follows(search.atom(atom)),
            Literal::FollowsNot(atom) => Literal::FollowsNot(search.atom(atom)),
        };
        for (at, atom) in (0..).map(Atom).zip(&below.atoms) {
            for rule in &proofs.rules_of[atom.0 as usize] {
                let body: Vec<Literal> = proofs.body(*rule).iter().map(own).collect();
                shape.rule(at, &body);
            }
        }
        let goals = goals.iter().map(|goal| search.atom(*goal)).collect();
        (Shape { proofs: shape, goals }, below.choices)
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let proofs = &self.proofs;
        proofs.choices.len() * size_of::<u32>()
            + proofs.alternatives.len() * (size_of::<u32>() + size_of::<Option<Event>>())
            + proofs.atoms() * (size_of::<u32>() + size_of::<Vec<u32>>())
            + proofs.rules() * (size_of::<Atom>() + 2 * size_of::<u32>())
            + proofs.literals.len() * size_of::<Literal>()
    }
}
