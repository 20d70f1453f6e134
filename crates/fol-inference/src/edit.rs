//! Small edits after which a conclusion does not follow. Each keeps the number of premises and, but for one, every length.

use fol::ast::{Connective, Formula, Quantifier};
use seeded::Stream;

use crate::tree::{Renaming, constants, predicates, put_for};

/// What was done to premises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    /// A premise is gone, and one of its shape about other things stands in its place.
    DropPremise,
    /// `A → B` became `B → A` where `A` was at hand: what is at hand is now the consequent.
    AffirmConsequent,
    /// `A → B` became `B → A` where `¬B` was at hand: what is denied is now the antecedent.
    DenyAntecedent,
    /// ∀ became ∃, or ∃ became ∀.
    SwapQuantifiers,
    /// A premise speaks of another individual.
    ChangeConstant,
    /// Every premise speaks of other predicates and individuals.
    Rename,
}

impl Edit {
    /// The small ones.
    pub const ALL: [Self; 5] = [
        Self::DropPremise,
        Self::AffirmConsequent,
        Self::DenyAntecedent,
        Self::SwapQuantifiers,
        Self::ChangeConstant,
    ];

    /// As a data set writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DropPremise => "drop-premise",
            Self::AffirmConsequent => "affirm-consequent",
            Self::DenyAntecedent => "deny-antecedent",
            Self::SwapQuantifiers => "swap-quantifiers",
            Self::ChangeConstant => "change-constant",
            Self::Rename => "rename",
        }
    }
}

/// The premises after an edit of one of them; none where no premise can be edited so.
pub(crate) fn edited(edit: Edit, premises: &[Formula], draw: &mut Stream) -> Option<Vec<Formula>> {
    let all: Vec<Formula> = premises.to_vec();
    if edit == Edit::Rename {
        return Some(all.iter().map(|premise| renamed(premise, premises, draw)).collect());
    }
    for at in draw.permutation(all.len() as u32) {
        let premise = all.get(at as usize)?;
        let changed = match edit {
            Edit::DropPremise => Some(renamed(premise, premises, draw)),
            Edit::AffirmConsequent => converse(premise, premises, false),
            Edit::DenyAntecedent => converse(premise, premises, true),
            Edit::SwapQuantifiers => swapped(premise),
            Edit::ChangeConstant => other_constant(premise, premises, draw),
            Edit::Rename => None,
        };
        if let Some(changed) = changed.filter(|changed| changed != premise) {
            let mut edited = all.clone();
            *edited.get_mut(at as usize)? = changed;
            return Some(edited);
        }
    }
    None
}

/// The same shape with predicates and constants of the premises, drawn anew.
fn renamed(premise: &Formula, premises: &[Formula], draw: &mut Stream) -> Formula {
    let (names, individuals) = (predicates(premises), constants(premises));
    let mut renaming = Renaming::default();
    for (arity, predicate) in predicates([premise]) {
        let alike: Vec<_> = names.iter().filter(|(a, _)| *a == arity).collect();
        if let Some((_, other)) = alike.get(draw.below(alike.len().max(1) as u64) as usize) {
            renaming.predicates.insert((arity, predicate), *other);
        }
    }
    for constant in constants([premise]) {
        if let Some(other) = individuals.get(draw.below(individuals.len().max(1) as u64) as usize) {
            renaming.constants.insert(constant, *other);
        }
    }
    renaming.apply(premise)
}

/// The converse of an implication, also under ∀. The fallacy is affirming the consequent unless a negation of what is now the
/// antecedent is among the premises.
fn converse(premise: &Formula, premises: &[Formula], denying: bool) -> Option<Formula> {
    match premise {
        Formula::Binary(Connective::Implies, a, b) => {
            let denied = premises.iter().any(|other| matches!(other, Formula::Not(body) if body == b));
            (denied == denying).then(|| Formula::Binary(Connective::Implies, b.clone(), a.clone()))
        }
        Formula::Quantified(Quantifier::Forall, x, sort, body) => {
            let inner = converse(body, premises, denying)?;
            Some(Formula::Quantified(Quantifier::Forall, *x, *sort, Box::new(inner)))
        }
        _ => None,
    }
}

/// The first quantifier changed.
fn swapped(formula: &Formula) -> Option<Formula> {
    match formula {
        Formula::Quantified(quantifier, x, sort, body) => {
            let other = match quantifier {
                Quantifier::Forall => Quantifier::Exists,
                Quantifier::Exists => Quantifier::Forall,
                Quantifier::Exists1 => return None,
            };
            Some(Formula::Quantified(other, *x, *sort, body.clone()))
        }
        Formula::Not(body) => Some(Formula::Not(Box::new(swapped(body)?))),
        Formula::Binary(connective, left, right) => match swapped(left) {
            Some(left) => Some(Formula::Binary(*connective, Box::new(left), right.clone())),
            None => Some(Formula::Binary(*connective, left.clone(), Box::new(swapped(right)?))),
        },
        _ => None,
    }
}

fn other_constant(premise: &Formula, premises: &[Formula], draw: &mut Stream) -> Option<Formula> {
    let own = constants([premise]);
    let from = *own.get(draw.below(own.len().max(1) as u64) as usize)?;
    let others: Vec<_> = constants(premises).into_iter().filter(|constant| *constant != from).collect();
    let to = *others.get(draw.below(others.len().max(1) as u64) as usize)?;
    Some(put_for(premise, from, &fol::ast::Term::Constant(to)))
}
