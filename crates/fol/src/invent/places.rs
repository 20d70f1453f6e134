//! Where the parts of a formula end in its tokens, and which of them are instances of a body.

use std::collections::BTreeMap;

use crate::symbol::BASE;

use super::Symbol;
use super::arena::{Arena, Node, Op};
use super::fold::Folding;

/// Of the parts that have the outermost sign of the body the last token, and whether one that ends there is an instance; nothing if
/// a canonical name could be longer than the arena counts.
pub(super) fn places(
    arena: &mut Arena,
    root: usize,
    (symbol, body, arity): (Symbol, usize, usize),
) -> Option<BTreeMap<usize, bool>> {
    // Canonical names are numbers below the number of names that are free or bound, and all of them stand in the text.
    if arena.size(root) >= u64::from(BASE) {
        return None;
    }
    let sign = arena.node(body).op;
    let mut found = BTreeMap::new();
    let mut open = vec![(root, 0)];
    while let Some((at, first)) = open.pop() {
        let Node { op, parts } = arena.node(at).clone();
        if op == sign {
            let instance = Folding::new(arena, body, arity, symbol).arguments(at).is_some();
            let last = first + usize::try_from(arena.size(at)).ok()? - 1;
            *found.entry(last).or_insert(false) |= instance;
        }
        let mut next = first + before(op);
        for part in parts {
            open.push((part, next));
            // A sign, or a comma, and behind the last one a parenthesis or nothing.
            next += usize::try_from(arena.size(part)).ok()? + 1;
        }
    }
    Some(found)
}

/// Tokens before the first part.
fn before(op: Op) -> usize {
    match op {
        Op::Relation(_) => 0,
        Op::Binary(_) => 1,
        // Of one part: as many as it has itself.
        Op::Not | Op::Quantified(..) => op.tokens(1) as usize,
        // The name with its parenthesis.
        op => op.tokens(0) as usize + 1,
    }
}
