//! Tables by small keys. The hash is fixed, so that a run is the same everywhere, and quick, since keys are numbers that no
//! stranger chooses. Nothing here is ever listed in the order of a table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose hashes are the same in every run.
pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Multiplies and turns, once for each word.
#[derive(Debug, Default)]
pub(crate) struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}
