//! The exact probability of every next symbol (F44, F46).
//!
//! Enter at [`Scorer`]: push the symbols of a text and read the negative logarithm of its probability, or ask
//! for the distribution of the next symbol. Three machines work together: `text` knows how statements make a
//! text, `parser` reads one formula, term or head of a definition, and `hidden` keeps what the generator
//! drew and does not show (maximal depth, level, size) as a posterior by Bayes' rule. Only the kind of a node
//! depends on the hidden choices; all other draws are local, so a push costs a few multiplications and the
//! array of 663 probabilities is filled only when it is asked for.

mod coded;
mod event;
mod hidden;
mod hidden_count;
mod hidden_depth;
mod hidden_grammar;
mod machine;
mod model;
mod parser;
mod readings;
mod sink;
mod text;
mod whole;

pub use coded::CodeScorer;
pub use model::Distribution;

use crate::error::{Kind, Refusal};
use crate::law::Law;
use crate::notation::Notation;
use crate::symbol::{SymbolId, VOCABULARY};
use crate::{SymbolSet, expected_labels};

/// A law that knows the probability of every next symbol.
pub trait ExactScorer {
    /// Back to the empty prefix.
    fn reset(&mut self);
    /// The distribution of the next symbol. It sums to 1, after `<eos>` to 0.
    fn next_dist(&mut self) -> &Distribution;
    /// Goes on by one symbol.
    ///
    /// # Errors
    /// `OffLaw` if the symbol has probability 0; the prefix stays as it was.
    fn push(&mut self, symbol: SymbolId) -> Result<(), Refusal>;
    /// Nats since the reset.
    fn nll(&self) -> f64;
}

/// The exact scorer of every law. For laws with statements it gives the law before over-long texts are drawn
/// again.
#[derive(Debug, Clone)]
pub struct Scorer {
    machine: machine::Machine,
    whole: Option<Box<whole::Whole>>,
    history: Vec<SymbolId>,
    nll: f64,
    dist: Box<Distribution>,
    /// `dist` belongs to the present prefix.
    filled: bool,
}

impl Scorer {
    /// The scorer of a law.
    ///
    /// # Errors
    /// `EmptySize` for a range of sizes with an empty class.
    pub fn new(law: &Law) -> Result<Self, Refusal> {
        Self::with_pairs(law, 0)
    }

    /// The scorer of a law's texts as they are written: with second pairs of parentheses where
    /// [`Law::parentheses`] says so, summed over all derivations (N17).
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of_written(law: &Law) -> Result<Self, Refusal> {
        Self::with_pairs(law, law.parentheses())
    }

    fn with_pairs(law: &Law, percent: u8) -> Result<Self, Refusal> {
        let machine = machine::Machine::new(law, Notation::Infix, percent)?;
        let whole = whole::Whole::new(law)?.map(Box::new);
        let dist = Box::new([0.0; VOCABULARY]);
        Ok(Self { machine, whole, history: Vec::new(), nll: 0.0, dist, filled: false })
    }

    /// Goes on by one symbol and answers with its probability.
    ///
    /// # Errors
    /// `OffLaw` at the number of symbols pushed so far, if the probability is 0; the prefix stays as it was.
    pub fn advance(&mut self, symbol: SymbolId) -> Result<f64, Refusal> {
        let p = self.machine.step(symbol);
        if p <= 0.0 || p.is_nan() {
            return Err(self.refuse(symbol));
        }
        self.history.push(symbol);
        self.filled = false;
        self.nll -= p.ln();
        Ok(p)
    }

    /// −ln of the probability of a text, `<eos>` included, from the empty prefix.
    ///
    /// A law of family `boltzmann` scores a whole text by its grammar, without the distribution at each symbol; the
    /// scorer then stands before the empty prefix again, but for what [`nll`](ExactScorer::nll) says.
    ///
    /// # Errors
    /// `OffLaw` at the first symbol of probability 0; where the text may not end, `found` is `end`.
    pub fn score(&mut self, tokens: &[SymbolId]) -> Result<f64, Refusal> {
        self.reset();
        if let Some(nll) = self.whole.as_mut().and_then(|whole| whole.score(tokens)) {
            self.nll = nll;
            return Ok(nll);
        }
        for &token in tokens {
            self.advance(token)?;
        }
        self.advance(SymbolId::EOS).map_err(|refusal| refusal.found("end"))?;
        Ok(self.nll)
    }

    /// The posterior of the hidden choices, such as `("level=3,depth=4", 0.25)`, zeros left out. Laws with
    /// statements have none.
    pub fn posterior(&self) -> Vec<(String, f64)> {
        self.machine.posterior()
    }

    /// The entropy of the next symbol in nats.
    pub fn entropy(&mut self) -> f64 {
        // Adding 0 makes a plain zero of the negative one.
        0.0 - self.next_dist().iter().filter(|&&p| p > 0.0).map(|p| p * p.ln()).sum::<f64>()
    }

    /// Undoes a step of probability 0 by going the way again, and says what could have stood there.
    fn refuse(&mut self, symbol: SymbolId) -> Refusal {
        self.machine.reset();
        for &token in &self.history {
            self.machine.step(token);
        }
        self.filled = false;
        let possible: SymbolSet =
            SymbolId::all().zip(self.next_dist().iter()).filter(|(_, p)| **p > 0.0).map(|(s, _)| s).collect();
        Refusal::new(Kind::OffLaw, format!("{symbol} has probability 0 here under this law"))
            .at(self.history.len())
            .found(symbol.label())
            .expected(expected_labels(&possible))
    }
}

impl ExactScorer for Scorer {
    fn reset(&mut self) {
        self.machine.reset();
        self.history.clear();
        self.nll = 0.0;
        self.filled = false;
    }

    fn next_dist(&mut self) -> &Distribution {
        if !self.filled {
            self.dist.fill(0.0);
            self.machine.fill(&mut *self.dist);
            self.filled = true;
        }
        &self.dist
    }

    fn push(&mut self, symbol: SymbolId) -> Result<(), Refusal> {
        self.advance(symbol).map(drop)
    }

    fn nll(&self) -> f64 {
        self.nll
    }
}
