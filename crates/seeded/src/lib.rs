//! Owned randomness.
//!
//! A [`Family`] is a ChaCha20 key made from a name; item `i` of it is a [`Stream`], the ChaCha20 stream
//! number `i` under that key. Nothing else is random: an item depends on no other item, on no thread and on
//! no shard, and no floating-point number takes part in an integer decision.
//!
//! ```
//! let mut s = seeded::Family::new("fol663-v1", "data", 0).stream(0);
//! assert_eq!(s.next_u64(), 0x14fb2e89afa236e1);
//! assert!(s.below(6) < 6);
//! ```

mod trial;

pub use trial::test_seed;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A key, and with it 2⁶⁴ independent streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    key: [u8; 32],
}

impl Family {
    /// The family `PREFIX:PURPOSE:SEED`, for example `fol663-v1:data:0`.
    pub fn new(prefix: &str, purpose: &str, seed: u64) -> Self {
        Self::named(&format!("{prefix}:{purpose}:{seed}"))
    }

    /// The family whose key is BLAKE3 of the bytes of `name`.
    pub fn named(name: &str) -> Self {
        Self { key: *blake3::hash(name.as_bytes()).as_bytes() }
    }

    /// The 32 bytes of the ChaCha20 key.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// The stream of one item.
    pub fn stream(&self, item: u64) -> Stream {
        Stream::from_key(self.key, item)
    }
}

/// A sequence of draws.
#[derive(Debug, Clone)]
pub struct Stream {
    words: ChaCha20Rng,
    /// The second half of a Box–Muller pair.
    spare_normal: Option<f64>,
}

impl Stream {
    /// The stream `number` under a raw key, from block 0.
    pub fn from_key(key: [u8; 32], number: u64) -> Self {
        let mut words = ChaCha20Rng::from_seed(key);
        words.set_stream(number);
        Self { words, spare_normal: None }
    }

    /// Two ChaCha20 words, the first one less significant.
    pub fn next_u64(&mut self) -> u64 {
        self.words.next_u64()
    }

    /// A uniform integer in `0..n`, by Lemire's multiplication with rejection. Draws nothing if `n` is 1;
    /// `n = 0` has no answer and is read as 1.
    pub fn below(&mut self, n: u64) -> u64 {
        if n <= 1 {
            return 0;
        }
        let mut m = u128::from(self.next_u64()) * u128::from(n);
        // The threshold (2⁶⁴ − n) mod n is below n, so most draws need no division.
        if (m as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (m as u64) < threshold {
                m = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (m >> 64) as u64
    }

    /// [`below_digits`](Self::below_digits) for numbers of at most 128 bits, without allocation.
    pub fn below_u128(&mut self, n: u128) -> u128 {
        if let Ok(n) = u64::try_from(n) {
            return u128::from(self.below(n));
        }
        let last = n - 1;
        if last <= u128::from(u64::MAX) {
            return u128::from(self.next_u64());
        }
        loop {
            let low = u128::from(self.next_u64());
            let x = (low | u128::from(self.next_u64()) << 64) & (u128::MAX >> last.leading_zeros());
            if x <= last {
                return x;
            }
        }
    }

    /// A uniform integer in `0..n` for an `n` of any size; both are little-endian digits in base 2⁶⁴.
    /// Up to 2⁶⁴ it is [`below`](Self::below); above, it draws ⌈bits(n−1)/64⌉ words, least significant first,
    /// cuts them to bits(n−1) bits, and repeats until the number is below n.
    pub fn below_digits(&mut self, n: &[u64]) -> Vec<u64> {
        let len = n.iter().rposition(|&d| d != 0).map_or(0, |i| i + 1);
        let n = n.get(..len).unwrap_or(n);
        match n {
            [] => return vec![0],
            [one] => return vec![self.below(*one)],
            [0, 1] => return vec![self.next_u64()], // 2⁶⁴: every word is an answer
            _ => {}
        }
        let mut last = n.to_vec();
        for d in &mut last {
            let (less, borrow) = d.overflowing_sub(1);
            *d = less;
            if !borrow {
                break;
            }
        }
        while last.last() == Some(&0) {
            last.pop();
        }
        let spare_bits = last.last().map_or(0, |d| d.leading_zeros());
        loop {
            let mut x: Vec<u64> = last.iter().map(|_| self.next_u64()).collect();
            if let Some(top) = x.last_mut() {
                *top &= u64::MAX >> spare_bits;
            }
            if x.iter().rev().le(last.iter().rev()) {
                return x;
            }
        }
    }

    /// An index into `weights`, each with probability proportional to its weight: the first one whose running
    /// sum exceeds a draw below the sum. `None` if all weights are 0 or their sum overflows.
    pub fn choose(&mut self, weights: &[u64]) -> Option<usize> {
        let sum = weights.iter().try_fold(0u64, |a, &w| a.checked_add(w))?;
        if sum == 0 {
            return None;
        }
        let mut r = self.below(sum);
        for (i, &w) in weights.iter().enumerate() {
            if r < w {
                return Some(i);
            }
            r -= w;
        }
        None
    }

    /// A uniform number in [0, 1) with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number (Box–Muller, in pairs).
    pub fn normal(&mut self) -> f64 {
        if let Some(z) = self.spare_normal.take() {
            return z;
        }
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare_normal = Some(radius * sin);
        radius * cos
    }

    /// A uniform permutation of `0..n` (Fisher–Yates, from the end).
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut p: Vec<u32> = (0..n).collect();
        for i in (1..p.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            p.swap(i, j);
        }
        p
    }
}

/// The README's program is run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_chacha20_words() {
        let mut s = Stream::from_key([0; 32], 0);
        assert_eq!(s.next_u64(), 0xade0b876 | 0x903df1a0 << 32);
        assert_eq!(s.next_u64(), 0xe56a5d40 | 0x28bd8653 << 32);
    }

    #[test]
    fn golden_family() {
        let f = Family::new("fol663-v1", "data", 0);
        let hex: String = f.key().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "d8c8b3a3fe0a4b19af455d5a9b2ec9690f8a8fdd83720ea87b3f32d0dfee124c");
        let mut s = f.stream(0);
        let first = [s.next_u64(), s.next_u64(), s.next_u64()];
        assert_eq!(first, [0x14fb2e89afa236e1, 0x643394db50b49a5e, 0x276fc84238ad2fcd]);
    }

    #[test]
    fn below_is_unbiased_and_draws_nothing_for_one() {
        let mut s = Family::named("test").stream(0);
        let mut t = s.clone();
        assert_eq!(s.below(1), 0);
        assert_eq!(s.next_u64(), t.next_u64());
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[s.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_600..10_400).contains(c)), "{counts:?}");
    }

    #[test]
    fn large_below_agrees_with_its_definition() {
        // Every answer is below n, the top digit takes every value, and 2⁶⁴ is one plain word.
        let n = [5u64, 3];
        let mut s = Family::named("test").stream(1);
        let mut seen = [false; 4];
        for _ in 0..1000 {
            let x = s.below_digits(&n);
            assert!(x[1] < 3 || (x[1] == 3 && x[0] < 5));
            seen[x[1] as usize] = true;
        }
        assert_eq!(seen[..3], [true; 3]);
        let mut a = Family::named("test").stream(2);
        let mut b = a.clone();
        assert_eq!(a.below_digits(&[0, 1]), [b.next_u64()]);
        assert_eq!(a.below_digits(&[7]), [b.below(7)]);
        assert_eq!(a.below_digits(&[7, 0]), [b.below(7)]);
        for n in [1, 2, 1 << 64, (1 << 64) + 1, 12345 << 90, u128::MAX] {
            let digits = a.below_digits(&[n as u64, (n >> 64) as u64]);
            let wide = digits.iter().rev().fold(0u128, |x, &d| x << 64 | u128::from(d));
            assert_eq!(b.below_u128(n), wide);
        }
    }

    #[test]
    fn choose_follows_the_weights() {
        let mut s = Family::named("test").stream(3);
        let mut counts = [0u32; 3];
        for _ in 0..10_000 {
            counts[s.choose(&[1, 0, 3]).unwrap()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((2_300..2_700).contains(&counts[0]), "{counts:?}");
        assert_eq!(s.choose(&[0, 0]), None);
        assert_eq!(s.choose(&[u64::MAX, 1]), None);
    }

    #[test]
    fn normal_has_mean_0_and_variance_1() {
        let mut s = Family::named("test").stream(4);
        let x: Vec<f64> = (0..50_000).map(|_| s.normal()).collect();
        let mean = x.iter().sum::<f64>() / 5e4;
        let variance = x.iter().map(|x| x * x).sum::<f64>() / 5e4;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    #[test]
    fn permutation_is_one() {
        let mut p = Family::named("test").stream(5).permutation(100);
        assert_ne!(p, (0..100).collect::<Vec<_>>());
        p.sort_unstable();
        assert_eq!(p, (0..100).collect::<Vec<_>>());
    }
}
