//! Where each canonical token stands in the input that was read.
//!
//! Canonical tokens and input hold the same symbols in the same order, but for the parentheses around
//! formulas, `<bos>` and `<eos>`, and leading zeros. So the rest is matched one to one.

use crate::symbol::SymbolId;

/// For each canonical token its position in the input.
pub(super) fn positions(canonical: &[SymbolId], given: &[SymbolId]) -> Vec<usize> {
    if canonical == given {
        return (0..given.len()).collect();
    }
    let (ours, theirs) = (anchors(canonical), anchors(given));
    let mut positions = Vec::with_capacity(canonical.len());
    if let (Some(&ours), Some(&theirs)) = (ours.first(), theirs.first()) {
        positions.extend((1..=ours).rev().map(|before| theirs.saturating_sub(before)));
    }
    for (ours, theirs) in ours.windows(2).zip(theirs.windows(2)) {
        let ([from, to], [start, end]) = (ours, theirs) else { break };
        // Between two anchors stand digits, then parentheses around formulas.
        let digits = |tokens: &[SymbolId], from: usize, to: usize| {
            tokens
                .get(from..to)
                .map_or(0, |between| between.iter().skip(1).take_while(|t| t.numeral().is_some()).count())
        };
        let (kept, written) = (digits(canonical, *from, *to), digits(given, *start, *end));
        for at in 0..to - from {
            let place = match at {
                0 => *start,
                at if at <= kept => start + at + written.saturating_sub(kept),
                at => (start + written + at - kept).min(end - 1),
            };
            positions.push(place);
        }
    }
    positions
}

/// The tokens that canonical tokens and input share, in order, digits and `<bos>` left out, between two ends.
fn anchors(tokens: &[SymbolId]) -> Vec<usize> {
    let mut anchors = Vec::with_capacity(tokens.len() + 1);
    // For each open parenthesis whether it holds arguments.
    let mut open = Vec::new();
    let mut applied = false;
    for (at, &token) in tokens.iter().enumerate() {
        let shared = match token {
            SymbolId::LPAREN => {
                open.push(applied);
                applied
            }
            SymbolId::RPAREN => open.pop().unwrap_or(false),
            SymbolId::BOS | SymbolId::EOS | SymbolId::PAD => false,
            token => token.numeral().is_none(),
        };
        applied = match token {
            SymbolId::PRED | SymbolId::FUNC => true,
            token => applied && token.numeral().is_some(),
        };
        if shared {
            anchors.push(at);
        }
    }
    anchors.push(tokens.len());
    anchors
}
