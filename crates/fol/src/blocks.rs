//! Symbols in blocks of equal arity, numbered through.

use std::ops::Range;

/// Arity and number of symbols.
pub(crate) type Block = (usize, u64);

/// The arity and the indices of each block.
pub(crate) fn numbered(blocks: &[Block]) -> impl Iterator<Item = (usize, Range<u64>)> {
    let mut first = 0;
    blocks.iter().map(move |&(arity, number)| {
        first += number;
        (arity, first - number..first)
    })
}

/// The number of symbols.
pub(crate) fn number_of(blocks: &[Block]) -> u64 {
    blocks.iter().map(|block| block.1).sum()
}

/// The arity of a symbol; 0 beyond the last.
pub(crate) fn arity_in(blocks: &[Block], index: u64) -> usize {
    numbered(blocks).find(|(_, indices)| indices.contains(&index)).map_or(0, |(arity, _)| arity)
}
