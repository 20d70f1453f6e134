//! A list that grows without moving: pieces of one size, so that nothing is copied and no memory is cleared twice.

/// A piece has 2^BITS items.
const BITS: u32 = 14;

const MASK: usize = (1 << BITS) - 1;

/// Items of so many numbers each.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    stride: usize,
    len: usize,
    pieces: Vec<Vec<u32>>,
}

impl Pieces {
    /// Empty.
    pub(super) fn new(stride: usize) -> Pieces {
        Pieces { stride, len: 0, pieces: Vec::new() }
    }

    /// The number of items.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an item of [`Pieces::new`]'s size.
    #[inline]
    pub(super) fn push(&mut self, item: &[u32]) {
        if self.len & MASK == 0 {
            // The first piece grows: most lists are short.
            let room = if self.len == 0 { 0 } else { self.stride << BITS };
            self.pieces.push(Vec::with_capacity(room));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.extend_from_slice(item);
        }
        self.len += 1;
    }

    /// An item.
    #[inline]
    pub(super) fn get(&self, at: usize) -> &[u32] {
        &self.pieces[at >> BITS][(at & MASK) * self.stride..][..self.stride]
    }

    /// All items, if they have numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> + Clone {
        self.pieces.iter().flat_map(|piece| piece.chunks_exact(self.stride.max(1)))
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| 4 * piece.capacity()).sum()
    }
}
