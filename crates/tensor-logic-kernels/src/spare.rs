//! Tiles, and those that a thread uses again.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Entries that are worked on at once: what a small program has on its stack stays in the first cache.
pub(super) const TILE: usize = 512;

/// Numbers of one tile.
pub(super) type Tile<T> = Box<[T; TILE]>;

/// Tiles that a thread uses again: small operations would take most of their time to make them.
pub(super) type Spare<T> = LocalKey<RefCell<Vec<Tile<T>>>>;

thread_local! {
    pub(super) static DOUBLES: RefCell<Vec<Tile<f64>>> = const { RefCell::new(Vec::new()) };
    pub(super) static SINGLES: RefCell<Vec<Tile<f32>>> = const { RefCell::new(Vec::new()) };
}
