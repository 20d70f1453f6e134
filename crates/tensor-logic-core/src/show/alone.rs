//! Which indices may stand in a place as they are.

use crate::program::{Role, Style, Tensor};
use crate::value::Domain;

/// Whether an index that is declared with this range may stand alone in a place without saying
/// that the place has this domain.
pub(super) fn may_stand_alone(tensor: &Tensor, at: usize, range: &Domain) -> bool {
    let Some(place) = tensor.places.get(at) else { return true };
    // A virtual index is read in step or not at all.
    if place.star {
        return true;
    }
    let symbols = range.value(0).is_some_and(|value| value.int().is_none());
    let given = tensor.style == Style::Square || tensor.role == Role::Data || symbols;
    symbols || place.limit.as_ref() == Some(range) || (given && place.domain.as_ref() == Some(range))
}
