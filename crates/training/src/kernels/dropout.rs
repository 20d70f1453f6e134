//! Dropout by counter: whether an element is kept is a function of (seed, update, site, row, column) alone.
//!
//! Nothing is stored; the backward pass asks again. `row` counts rows of the *whole* batch, so accumulation in
//! pieces, thread counts and resuming change no mask.

use rayon::prelude::*;

use super::{ROW_BLOCK, multiversion};

/// The masks of one site of one update.
#[derive(Debug, Clone, Copy)]
pub struct Dropout {
    key: u64,
    /// An element is dropped if its 32-bit hash is below this.
    threshold: u32,
    /// 1/(1 − p)
    scale: f32,
}

/// The finaliser of SplitMix64 (Steele, Lea & Flood 2014).
fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A 32-bit mixer of low bias (C. Wellons, "hash-prospector": 0.17 bits of bias in 10³).
#[inline(always)]
fn mix32(x: u32) -> u32 {
    let x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    let x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

impl Dropout {
    /// The masks of `site` in update number `update`: each element is dropped with probability `p`. `None` if
    /// nothing is dropped.
    pub fn new(p: f64, seed: u64, update: u64, site: u64) -> Option<Self> {
        if p <= 0.0 {
            return None;
        }
        let key = mix64(mix64(mix64(seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(update)).wrapping_add(site));
        let threshold = (p * 4_294_967_296.0).min(4_294_967_295.0) as u32;
        Some(Self { key, threshold, scale: (1.0 / (1.0 - p)) as f32 })
    }

    /// The key of the site, the threshold below which a hash drops its element, and 1/(1 − p): what a device needs to make
    /// the same masks.
    pub fn counters(&self) -> (u64, u32, f32) {
        (self.key, self.threshold, self.scale)
    }

    /// The key of one row.
    pub(crate) fn row(&self, row: u64) -> u32 {
        (mix64(self.key ^ row.wrapping_mul(0xd1b5_4a32_d192_ed03)) >> 32) as u32
    }

    /// The factors, 0 or 1/(1 − p), of the first `width` elements of a row: for the composed engine.
    pub fn factors(&self, row: u64, width: usize) -> Vec<f32> {
        let key = self.row(row);
        (0..width as u32).map(|c| self.factor(key, c)).collect()
    }

    /// 0, or 1/(1 − p), for one element.
    #[inline(always)]
    pub(crate) fn factor(self, row_key: u32, column: u32) -> f32 {
        let kept = mix32(row_key ^ column.wrapping_mul(0x9e37_79b9)) >= self.threshold;
        if kept { self.scale } else { 0.0 }
    }
}

multiversion! {
    fn drop_row(x: &mut [f32], dropout: Dropout, row_key: u32) {
        for (c, v) in (0_u32..).zip(x) {
            *v *= dropout.factor(row_key, c);
        }
    }
}

multiversion! {
    fn add_drop_row(to: &mut [f32], x: &[f32], dropout: Dropout, row_key: u32) {
        for ((c, t), v) in (0_u32..).zip(to).zip(x) {
            *t = v.mul_add(dropout.factor(row_key, c), *t);
        }
    }
}

/// x ← x · mask, for a row block whose first row is row `first_row` of the batch. Its own backward form.
pub fn dropout_in_place(dropout: Option<Dropout>, x: &mut [f32], width: usize, first_row: usize) {
    let Some(dropout) = dropout else { return };
    let width = width.max(1);
    x.par_chunks_mut(ROW_BLOCK * width).enumerate().for_each(|(b, block)| {
        for (r, row) in block.chunks_exact_mut(width).enumerate() {
            let number = first_row + b * ROW_BLOCK + r;
            drop_row(row, dropout, dropout.row(number as u64));
        }
    });
}

/// to ← to + x · mask: the residual connection. Its gradient with respect to `x` is [`dropout_in_place`].
pub fn add_dropout(dropout: Option<Dropout>, to: &mut [f32], x: &[f32], width: usize, first_row: usize) {
    let Some(dropout) = dropout else { return super::add_into(to, x) };
    let width = width.max(1);
    let blocks = to.par_chunks_mut(ROW_BLOCK * width).zip(x.par_chunks(ROW_BLOCK * width));
    blocks.enumerate().for_each(|(b, (to, x))| {
        for (r, (to, x)) in to.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
            let number = first_row + b * ROW_BLOCK + r;
            add_drop_row(to, x, dropout, dropout.row(number as u64));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_kept_is_right_and_masks_differ() {
        let d = |update, site| Dropout::new(0.1, 7, update, site);
        let ones = |d, first| {
            let mut x = vec![1.0; 200 * 300];
            dropout_in_place(d, &mut x, 300, first);
            x
        };
        let a = ones(d(1, 1), 0);
        let kept = a.iter().filter(|&&v| v != 0.0).count() as f64 / 60_000.0;
        assert!((kept - 0.9).abs() < 0.006, "{kept}");
        assert!(a.iter().all(|&v| v == 0.0 || (v - 1.0 / 0.9).abs() < 1e-6));
        assert_ne!(a, ones(d(2, 1), 0));
        assert_ne!(a, ones(d(1, 2), 0));
        // Neighbouring rows are independent: both kept in 0.81 of the columns.
        let both = (0..59_700).filter(|&i| a[i] != 0.0 && a[i + 300] != 0.0).count() as f64 / 59_700.0;
        assert!((both - 0.81).abs() < 0.01, "{both}");
        // The place in the whole batch decides, not the place in the piece.
        assert_eq!(a[64 * 300..], ones(d(1, 1), 64)[..136 * 300]);
        assert!(Dropout::new(0.0, 7, 1, 1).is_none());
    }
}
