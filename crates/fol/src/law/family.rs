//! The families of laws.

use super::boltzmann_law::BoltzmannLaw;
use super::count_law::CountLaw;
use super::depth_law::DepthLaw;

/// The ways to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Family {
    Depth(Box<DepthLaw>),
    Count(CountLaw),
    Boltzmann(BoltzmannLaw),
}
