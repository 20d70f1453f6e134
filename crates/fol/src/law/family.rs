//! The two families of laws.

use super::count_law::CountLaw;
use super::depth_law::DepthLaw;

/// The two ways to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Family {
    Depth(Box<DepthLaw>),
    Count(CountLaw),
}
