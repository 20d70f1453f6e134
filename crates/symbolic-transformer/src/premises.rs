//! Premises that are read in both directions: the tokens up to the sign of an answer see one another.
//!
//! One stack reads premises and writes answers: a prefix language model, which Raffel et al. (2020, section 3.2.1) compare with an
//! encoder beside a decoder. No row before the sign may have a target, which rows before it see.

use fol::notation::Code;
use fol::symbol::SymbolId;
use training::{Refusal, Result};

use crate::batch::Batch;
use crate::config::{AttentionMask, ModelConfig};

/// What stands before an answer.
pub const SIGNS: [SymbolId; 2] = [SymbolId::ENTAILS, SymbolId::ANSWER];

/// Whether premises are read in both directions.
pub(crate) fn both_ways(config: &ModelConfig) -> bool {
    config.attention_mask == AttentionMask::Prefix
}

/// Whether a token is the sign of an answer.
pub(crate) fn is_sign(token: u32) -> bool {
    SIGNS.iter().any(|&sign| u32::from(sign) == token)
}

/// For each sequence how many of its first rows see one another: those up to the first sign, and none where there is no sign.
pub(crate) fn prefixes(config: &ModelConfig, batch: &Batch) -> Option<Vec<usize>> {
    both_ways(config).then(|| batch.signs(&SIGNS).into_iter().map(|at| at.map_or(0, |at| at + 1)).collect())
}

/// Refuses tokens of another code, whose numbers are not those of the signs.
pub(crate) fn check(config: &ModelConfig, code: &Code) -> Result<()> {
    if both_ways(config) && !code.is_plain() {
        return Err(Refusal::Setting(
            "attention_mask = \"prefix\" finds the sign of an answer among canonical symbols, and these are tokens of another code"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Refuses targets that rows before them see.
pub(crate) fn check_targets(config: &ModelConfig, batch: &Batch) -> Result<()> {
    for (number, (rows, prefix)) in
        batch.ranges().zip(prefixes(config, batch).unwrap_or_default()).enumerate()
    {
        let before_sign = rows.start..rows.start + prefix.saturating_sub(1);
        let targets = batch.targets.get(before_sign).unwrap_or_default();
        if let Some(at) = targets.iter().position(|&target| target != u32::MAX) {
            return Err(Refusal::Learner(format!(
                "sequence {number}, token {at}: a target among premises that see it; with attention_mask = \"prefix\" only what \
                 stands behind ENTAILS or <answer> is learned and judged"
            )));
        }
    }
    Ok(())
}
