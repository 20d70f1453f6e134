//! The signature of a named law, for `check --law` and `next --within`.

use fol::error::Refusal;
use fol::law::Law;
use fol::signature::Signature;

/// The signature of a built-in law or of a law in a file.
pub(crate) fn law_signature(name: &str) -> Result<Signature, Refusal> {
    Law::named(name, &[]).map(|law| law.signature())
}
