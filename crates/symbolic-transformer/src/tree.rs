//! Tree positions: the path of the next token's node as a vector (after Shiv and Quirk 2019).
//!
//! A row's place comes from the tokens up to it alone ([`fol::notation::TreePlace`], N18–N20). Its pattern has 32 × 4
//! entries: entry 4k + c is the decay of depth k if step k of the path goes to child c, and else 0. Steps below depth 32
//! are left out, children beyond the fourth count as the fourth. The pattern is repeated until d columns are full; if d is
//! below 128 it is wound around them. The sinusoid of the position inside the node is added.

use fol::notation::{Code, Token, TreePlace};
use training::{Refusal, Result};

use crate::batch::Batch;
pub(crate) use crate::config::TREE_DEPTH as DEPTH;
use crate::config::{ModelConfig, Position, Structured};

/// Child numbers that are told apart.
pub(crate) const WIDTH: usize = 4;

/// Entries of a pattern.
pub(crate) const PATTERN: usize = WIDTH * DEPTH;

/// The places of the rows of a batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paths {
    /// Which entries of its pattern each row sets, row after row.
    entries: Vec<usize>,
    /// Where the entries of each row end.
    ends: Vec<usize>,
    /// The position inside the node, \[rows\].
    pub(crate) inside: Vec<usize>,
}

impl Paths {
    /// Those of a batch whose tokens are of this code.
    pub(crate) fn of(code: &Code, batch: &Batch) -> Self {
        let mut paths = Self::default();
        for rows in batch.ranges() {
            let mut place = TreePlace::new();
            for &token in batch.tokens.get(rows).unwrap_or_default() {
                push(&mut place, code, token);
                paths.add(&place);
            }
        }
        paths
    }

    fn add(&mut self, place: &TreePlace) {
        self.entries.extend(entries(place));
        self.ends.push(self.entries.len());
        self.inside.push(place.inside());
    }

    /// The entries of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[usize]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| self.entries.get(from..to).unwrap_or_default())
    }
}

/// Reads a token; one beyond all codes changes nothing.
pub(crate) fn push(place: &mut TreePlace, code: &Code, token: u32) {
    if let Ok(token) = u16::try_from(token) {
        place.push(code, Token::new(token));
    }
}

/// The entries that a place sets.
pub(crate) fn entries(place: &TreePlace) -> impl Iterator<Item = usize> + '_ {
    place.path().take(DEPTH).enumerate().map(|(depth, child)| WIDTH * depth + child.min(WIDTH - 1))
}

/// The columns in which an entry stands.
pub(crate) fn columns(entry: usize, d: usize) -> impl Iterator<Item = usize> {
    (entry..d.max(PATTERN)).step_by(PATTERN).map(move |column| column % d)
}

/// h \[d\] += the pattern of a row.
pub(crate) fn add_pattern(entries: impl Iterator<Item = usize>, decay: &[f32], h: &mut [f32]) {
    let d = h.len();
    for entry in entries {
        for column in columns(entry, d) {
            if let (Some(h), Some(decay)) = (h.get_mut(column), decay.get(entry / WIDTH)) {
                *h += decay;
            }
        }
    }
}

/// Adds the gradient of the decays, given that of the rows [rows, d].
pub(crate) fn decay_backward(paths: &Paths, dh: &[f32], d: usize, ddecay: &mut [f32]) {
    for (entries, dh) in paths.rows().zip(dh.chunks_exact(d)) {
        for &entry in entries {
            if let Some(slot) = ddecay.get_mut(entry / WIDTH) {
                *slot += columns(entry, d).filter_map(|column| dh.get(column)).sum::<f32>();
            }
        }
    }
}

/// Refuses what reads the tree over another number of tokens than the code has.
pub(crate) fn check(config: &ModelConfig, code: &Code) -> Result<()> {
    let what = match (config.position, config.structure) {
        (Position::Tree, _) => "position = \"tree\"".to_owned(),
        (_, Structured::None) => return Ok(()),
        (_, structure) => format!("structure = \"{structure}\""),
    };
    if code.size() != config.vocab_size {
        return Err(Refusal::Setting(format!(
            "{what} reads the tokens of a code: this one has {}, and the model {}",
            code.size(),
            config.vocab_size
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fills_all_columns_and_loses_no_depth() {
        for d in [1, 8, 32, 100, 128, 200, 256, 768] {
            let mut times = vec![0; d];
            for entry in 0..PATTERN {
                let columns: Vec<usize> = columns(entry, d).collect();
                assert!(!columns.is_empty() && columns.iter().all(|&c| c < d));
                columns.iter().for_each(|&c| times[c] += 1);
            }
            assert!(times.iter().all(|&t| t >= 1 && (d < PATTERN || t == 1)), "{d}: {times:?}");
        }
    }

    /// Parentheses 40 deep, and a list of six.
    #[test]
    fn paths_are_cut_at_their_depth_and_width() {
        use fol::symbol::SymbolId;
        let mut tokens = vec![SymbolId::BOS.get()];
        tokens.extend(std::iter::repeat_n(SymbolId::LPAREN.get(), 40));
        let batch = Batch::new([[tokens.as_slice(), &[SymbolId::EOS.get()]].concat().as_slice()]);
        let paths = Paths::of(&Code::PLAIN, &batch);
        let lengths: Vec<usize> = paths.rows().map(<[usize]>::len).collect();
        assert_eq!(lengths, (1..=41).map(|n| n.min(DEPTH)).collect::<Vec<_>>());
        // PRED 0 ( x0, x0, …
        let mut tokens = vec![SymbolId::BOS.get(), SymbolId::PRED.get(), 0, SymbolId::LPAREN.get()];
        for _ in 0..6 {
            tokens.extend([SymbolId::VAR.get(), 0, SymbolId::COMMA.get()]);
        }
        let batch = Batch::new([tokens.as_slice()]);
        let paths = Paths::of(&Code::PLAIN, &batch);
        let arguments: Vec<usize> = paths.rows().skip(3).step_by(3).map(|e| e[1]).collect();
        assert_eq!(arguments, [4, 5, 6, 7, 7, 7]);
    }
}
