//! What instances may be: formats, rules, depths, distractors and the law of the letters.

use fol::error::{Kind, Refusal};
use fol::law::Law;
use fol_prover::rules::Name;

use crate::derivation::RULES;
use crate::instance::{Format, Order};

/// The space that instances are drawn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// The law of the letters.
    pub law: Law,
    /// In which order instances come about.
    pub order: Order,
    /// Weights of the formats, in the order of [`Format::ALL`].
    pub formats: [u64; 4],
    /// The rules of chains.
    pub rules: Vec<Name>,
    /// Depths with their weights.
    pub depths: Vec<(usize, u64)>,
    /// Up to so many distractors, every number alike.
    pub distractors: u64,
    /// Predicates, constants and variables of term questions have names from 0 on, so many; 625 have one digit.
    pub names: u32,
    /// Sequences of more tokens, `<bos>` and `<eos>` included, are drawn again.
    pub max_tokens: usize,
}

/// The law of letters unless another is named: closed, without relations between terms, and short, since a chain has many.
pub const LAW: [(&str, &str); 3] = [
    ("relations", "[]"),
    ("levels", "[[1,45],[2,30],[3,20],[4,5]]"),
    ("sizes", "[[1,1,1],[2,2,3],[3,2,3],[4,3,4]]"),
];

/// Names of one digit.
pub const INDICES: u32 = 625;

/// The largest depth of chains.
const DEEPEST: usize = 16;

impl Space {
    /// The space of the specification: single rules for a half, and chains of two to five.
    ///
    /// # Errors
    /// None that a right law of letters gives.
    pub fn usual(order: Order) -> Result<Self, Refusal> {
        let changes: Vec<(String, String)> =
            LAW.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Ok(Self {
            law: Law::named("uniform", &changes)?,
            order,
            formats: [1, 0, 1, 0],
            rules: RULES.to_vec(),
            depths: vec![(1, 100), (2, 40), (3, 35), (4, 20), (5, 5)],
            distractors: 5,
            names: INDICES,
            max_tokens: 384,
        })
    }

    /// Refuses a space that has nothing in it, or two answers to one prefix.
    ///
    /// # Errors
    /// `BadValue`, by the key of the configuration.
    pub fn check(&self) -> Result<(), Refusal> {
        let bad = |key: &str, why: String| Err(Refusal::new(Kind::BadValue, format!("{key}: {why}")));
        if self.formats.iter().all(|weight| *weight == 0) {
            return bad("formats", "every weight is 0".to_owned());
        }
        let [conclusion, steps, ..] = self.formats;
        if conclusion > 0 && steps > 0 {
            let why = "conclusion and steps have the same prefix, and a model could not know which is asked";
            return bad("formats", why.to_owned());
        }
        if let Some(rule) = self.rules.iter().find(|rule| !RULES.contains(rule)) {
            return bad("rules", format!("{} needs equality, which the fragment has not", rule.name()));
        }
        let asks = [Name::Mp, Name::Mt, Name::Hs, Name::Ds, Name::Ump, Name::Uhs, Name::Res];
        if conclusion + steps > 0 && !self.rules.iter().any(|rule| asks.contains(rule)) {
            let why = "no rule combines premises, so nothing would be asked for without a question";
            return bad("rules", why.to_owned());
        }
        if self.rules.is_empty() {
            return bad("rules", "at least one is needed".to_owned());
        }
        if self.depths.iter().all(|(_, weight)| *weight == 0) {
            return bad("depths", "every weight is 0".to_owned());
        }
        if let Some((depth, _)) = self.depths.iter().find(|(depth, _)| !(1..=DEEPEST).contains(depth)) {
            return bad("depths", format!("{depth}: 1 to {DEEPEST} rule applications are possible"));
        }
        if self.distractors > 20 {
            return bad("distractors", format!("{}: at most 20 are possible", self.distractors));
        }
        if !(16..=INDICES).contains(&self.names) {
            return bad("names", format!("{}: 16 to {INDICES} are possible", self.names));
        }
        let deepest = self.depths.iter().filter(|(_, weight)| *weight > 0).map(|(depth, _)| *depth).max();
        // All variables of a term question differ.
        let needed = 1 + deepest.unwrap_or(0) as u64 + 2 * self.distractors;
        if self.formats[3] > 0 && needed > u64::from(self.names) {
            return bad("names", format!("{}: a term question may have {needed} variables", self.names));
        }
        if !(32..=4096).contains(&self.max_tokens) {
            return bad("max_tokens", format!("{}: 32 to 4096 are possible", self.max_tokens));
        }
        Ok(())
    }

    /// The format of a weight that was chosen.
    pub(crate) fn format(at: usize) -> Format {
        Format::ALL.get(at).copied().unwrap_or(Format::Question)
    }
}
