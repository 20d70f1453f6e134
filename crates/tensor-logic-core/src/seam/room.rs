//! What square tensors take: which are stored by their support, and which do not fit.

use crate::error::{Code, Refusal, Result};
use crate::program::{Program, TensorId};

/// The number of elements, saturating.
pub fn volume(shape: &[usize]) -> usize {
    shape.iter().fold(1, |product: usize, size| product.saturating_mul(*size))
}

/// Square tensors with more elements are stored by their support where that is small: of at most this share of all elements.
const LARGE: (usize, usize) = (1 << 16, 4);

/// The same with more elements than these, of a smaller share: to clear so many takes as long as a step of learning on the few
/// that there are.
pub const MIDDLE: usize = 1 << 10;
const FEW: usize = 16;

/// Whether a square tensor of so many elements, of which so many may be another number than 0, is stored by these.
pub fn is_by_support(all: usize, entries: usize) -> bool {
    [LARGE, (MIDDLE, FEW)]
        .into_iter()
        .any(|(least, share)| all > least && entries.saturating_mul(share) <= all)
}

/// Whether a square tensor of so many elements may be stored by its support.
pub fn may_be_by_support(all: usize) -> bool {
    all > MIDDLE
}

/// The bytes that all elements of a tensor need, beside those that are `taken` already.
///
/// # Errors
/// `too-large` where they are more than the `limit`.
pub fn whole(program: &Program, id: TensorId, taken: u64, limit: u64) -> Result<u64> {
    let sizes = program.tensor(id).all_sizes();
    let needed = sizes.fold(8u128, |bytes, size| bytes.saturating_mul(size as u128));
    if needed.saturating_add(u128::from(taken)) > u128::from(limit) {
        let name = &program.tensor(id).name;
        let message = format!("`{name}` needs {needed} bytes, and {limit} are allowed (`--max-bytes`)");
        let help = "smaller domains, round brackets where few elements exist, or a higher `--max-bytes`";
        return Err(Refusal::new(Code::TooLarge, program.left_side(id), message).help(help));
    }
    Ok(needed as u64)
}
