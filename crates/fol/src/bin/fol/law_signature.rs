//! The signature of a named law, for `check --law` and `next --within`.

use fol::error::{Kind, Refusal};
use fol::signature::Signature;

/// The signature of a built-in law or of a law in a file.
pub(crate) fn law_signature(name: &str) -> Result<Signature, Refusal> {
    Err(Refusal::new(Kind::NotFound, format!("this build knows no law {name:?}")))
}
