//! Keys of token sequences, and the buckets that split a data set (F28).

use std::fmt;

use crate::symbol::SymbolId;

/// The first 16 bytes of BLAKE3 over tokens as 16-bit little-endian words; written in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key of tokens without `<bos>` and `<eos>`.
    pub fn of(tokens: &[SymbolId]) -> Self {
        Self::with(&mut Vec::new(), tokens)
    }

    /// The key of tokens, with room for their bytes.
    pub(crate) fn with(bytes: &mut Vec<u8>, tokens: &[SymbolId]) -> Self {
        bytes.clear();
        push_bytes(bytes, tokens);
        let mut key = [0; 16];
        key.iter_mut().zip(blake3::hash(bytes).as_bytes()).for_each(|(to, from)| *to = *from);
        Self(key)
    }
}

/// Writes tokens as 16-bit little-endian words.
pub(crate) fn push_bytes(bytes: &mut Vec<u8>, tokens: &[SymbolId]) {
    let before = bytes.len();
    bytes.resize(before + 2 * tokens.len(), 0);
    let (words, _) = bytes.split_at_mut(before).1.as_chunks_mut::<2>();
    words.iter_mut().zip(tokens).for_each(|(word, token)| *word = token.get().to_le_bytes());
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The bucket of a K2 key, below 1000: membership in a split is a function of the class alone.
pub fn bucket(key: &Key) -> u16 {
    let low = key.0.iter().take(8).rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    (low % 1000) as u16
}

/// The split of a bucket by the weights of train, val and test out of 1000.
pub fn split(bucket: u16, weights: [u16; 3]) -> &'static str {
    let [train, val, _] = weights;
    if bucket < train {
        "train"
    } else if bucket < train.saturating_add(val) {
        "val"
    } else {
        "test"
    }
}

/// The default weights of train, val and test.
pub const DEFAULT_WEIGHTS: [u16; 3] = [800, 100, 100];
