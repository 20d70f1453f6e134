//! The kernels, each once for every device.

pub(crate) mod arithmetic;
pub(crate) mod attention;
pub(crate) mod fragments;
pub(crate) mod mma;
pub(crate) mod product;
pub(crate) mod rows;
pub(crate) mod update;
