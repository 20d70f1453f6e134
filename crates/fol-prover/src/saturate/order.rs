//! The ordering of Knuth and Bendix, all weights one, and what it makes of literals.
//!
//! A term is greater if it has more symbols, or as many and a greater head or a greater first differing argument, and no variable
//! more seldom. Symbols of more arguments are greater, then later ones; the truth is the least term.

use super::bank::{Bank, Id};
use super::clause::Literal;

/// Whether `s` is greater than `t`, for all instances.
pub(super) fn greater(bank: &Bank, rank: &[u32], s: Id, t: Id) -> bool {
    if s == t || bank.weight(s) < bank.weight(t) || !covers(bank, s, t) {
        return false;
    }
    if bank.weight(s) > bank.weight(t) {
        return true;
    }
    let (Some(f), Some(g)) = (bank.symbol(s), bank.symbol(t)) else { return false };
    if f != g {
        return rank[f as usize] > rank[g as usize];
    }
    let mut pairs = bank.arguments(s).iter().zip(bank.arguments(t));
    pairs.find(|(a, b)| a != b).is_some_and(|(a, b)| greater(bank, rank, *a, *b))
}

/// Whether no variable occurs less often in `s` than in `t`.
fn covers(bank: &Bank, s: Id, t: Id) -> bool {
    if bank.is_ground(t) {
        return true;
    }
    let mut counts: Vec<(u32, i32)> = Vec::new();
    count(bank, s, 1, &mut counts);
    count(bank, t, -1, &mut counts);
    counts.iter().all(|(_, count)| *count >= 0)
}

fn count(bank: &Bank, term: Id, by: i32, counts: &mut Vec<(u32, i32)>) {
    if bank.is_ground(term) {
        return;
    }
    match bank.as_variable(term) {
        Some(variable) => match counts.iter_mut().find(|(known, _)| *known == variable) {
            Some((_, count)) => *count += by,
            None => counts.push((variable, by)),
        },
        None => bank.arguments(term).iter().for_each(|argument| count(bank, *argument, by, counts)),
    }
}

/// Whether a literal is greater than another: as multisets of sides, a negative one with each side twice.
pub(super) fn literal_greater(bank: &Bank, rank: &[u32], one: &Literal, other: &Literal) -> bool {
    let sides = |literal: &Literal| {
        let (l, r) = (literal.left, literal.right);
        if literal.positive { vec![l, r] } else { vec![l, l, r, r] }
    };
    let (mut more, mut less) = (sides(one), sides(other));
    more.retain(|side| match less.iter().position(|other| other == side) {
        Some(at) => {
            less.swap_remove(at);
            false
        }
        None => true,
    });
    !more.is_empty() && less.iter().all(|low| more.iter().any(|high| greater(bank, rank, *high, *low)))
}
