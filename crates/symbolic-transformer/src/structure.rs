//! What attention knows of the tree: for each row of a batch what every earlier one is to it (N21–N24).

use fol::notation::{Code, NodeRelation, Structure, Token};
use training::kernels::{Relations, Tables};

use crate::batch::Batch;
use crate::config::{ModelConfig, Structured};
use crate::places::Block;

/// r(i, j) for the rows of each sequence, [Σ n²]; nothing is said where j > i.
pub(crate) fn numbers(code: &Code, batch: &Batch) -> Vec<u8> {
    let mut numbers = Vec::new();
    for rows in batch.ranges() {
        let n = rows.len();
        let mut structure = Structure::new();
        for &token in batch.tokens.get(rows).unwrap_or_default() {
            push(&mut structure, code, token);
            let from = numbers.len();
            numbers.extend(newest(&structure));
            numbers.resize(from + n, 0);
        }
    }
    numbers
}

/// Reads a token; one beyond all codes is nothing to any.
pub(crate) fn push(structure: &mut Structure, code: &Code, token: u32) {
    structure.push(code, Token::new(u16::try_from(token).unwrap_or(u16::MAX)));
}

/// What each token so far is to the newest.
pub(crate) fn newest(structure: &Structure) -> impl Iterator<Item = u8> {
    structure.newest().into_iter().map(|relation| relation.number() as u8)
}

/// The heads that look at related rows alone, from which on, and what is not related.
pub(crate) fn hidden(config: &ModelConfig) -> Option<(usize, u8)> {
    let masks = config.structure == Structured::Mask;
    masks.then(|| (config.n_heads / 2, NodeRelation::Other.number() as u8))
}

/// What a layer has of relations.
pub(crate) fn tables<'a>(block: &Block, theta: &'a [f32]) -> Tables<&'a [f32]> {
    block.relations.clone().map(|range| &theta[range])
}

/// What a layer's attention has of them.
pub(crate) fn relations<'a>(
    config: &ModelConfig,
    block: &Block,
    theta: &'a [f32],
    numbers: &'a [u8],
) -> Option<Relations<'a>> {
    let (tables, hidden) = (tables(block, theta), hidden(config));
    let known = config.structure != Structured::None;
    known.then_some(Relations { numbers, count: NodeRelation::COUNT, tables, hidden })
}
