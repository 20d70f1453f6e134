//! The exact probability of every next token of a code (N10–N13).

use std::sync::Arc;

use super::machine::Machine;
use super::sink::Slots;
use crate::error::{Kind, Refusal};
use crate::law::Law;
use crate::notation::{Code, Meaning, Token, Tokenization};
use crate::symbol::{SymbolId, SymbolKind};

/// The exact scorer of a law whose texts are given by a code.
#[derive(Debug, Clone)]
pub struct CodeScorer {
    machine: Machine,
    code: Arc<Code>,
    history: Vec<Token>,
    nll: f64,
    dist: Vec<f64>,
    rest: f64,
    /// `dist` belongs to the present prefix.
    filled: bool,
}

impl CodeScorer {
    /// The scorer of a law's code.
    ///
    /// # Errors
    /// `EmptySize` for a range of sizes with an empty class; `BadValue` if the law has other arities than the code (N7), and
    /// for redundant parentheses under a law with statements (N15).
    pub fn new(law: &Law, code: &Code) -> Result<Self, Refusal> {
        code.check(&law.signature())?;
        Ok(Self {
            machine: Machine::new(law, code.notation(), code.doubled())?,
            dist: vec![0.0; code.size()],
            code: Arc::new(code.clone()),
            history: Vec::new(),
            nll: 0.0,
            rest: 0.0,
            filled: false,
        })
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Back to the empty prefix.
    pub fn reset(&mut self) {
        self.machine.reset();
        self.history.clear();
        self.nll = 0.0;
        self.filled = false;
    }

    /// The distribution of the next token, V entries. With [`rest`](Self::rest) it sums to 1, after `<eos>` to 0.
    pub fn next_dist(&mut self) -> &[f64] {
        self.fill();
        &self.dist
    }

    /// The probability that a name comes which has no token (N13); 0 where the code has every name of the law.
    pub fn rest(&mut self) -> f64 {
        self.fill();
        self.rest
    }

    /// Goes on by one token and answers with its probability.
    ///
    /// # Errors
    /// `OffLaw` at the number of tokens pushed so far, if the probability is 0; the prefix stays as it was.
    pub fn push(&mut self, token: Token) -> Result<f64, Refusal> {
        let p = self.step(token);
        if p <= 0.0 || p.is_nan() {
            self.machine.reset();
            for token in std::mem::take(&mut self.history) {
                self.step(token);
                self.history.push(token);
            }
            self.filled = false;
            let label = self.code.label(token);
            let found = if label.is_empty() { token.get().to_string() } else { label };
            return Err(Refusal::new(Kind::OffLaw, format!("{found} has probability 0 here under this law"))
                .at(self.history.len())
                .found(found));
        }
        self.history.push(token);
        self.filled = false;
        self.nll -= p.ln();
        Ok(p)
    }

    /// Nats since the reset.
    pub fn nll(&self) -> f64 {
        self.nll
    }

    fn step(&mut self, token: Token) -> f64 {
        let cut = self.code.tokenization() == Tokenization::Compositional;
        match self.code.meaning(token) {
            Some(Meaning::Symbol(symbol)) if cut || symbol.kind() != SymbolKind::Category => {
                self.machine.step(symbol)
            }
            Some(Meaning::Entity(entity)) => self.machine.name(entity.category, entity.index),
            Some(Meaning::Symbol(_)) | None => 0.0,
        }
    }

    fn fill(&mut self) {
        if !self.filled {
            self.dist.fill(0.0);
            self.rest = 0.0;
            let code = &self.code;
            self.machine.fill(&mut Slots { code, by_token: &mut self.dist, rest: &mut self.rest });
            self.filled = true;
        }
    }

    /// −ln of the probability of a text, `<eos>` included, from the empty prefix.
    ///
    /// # Errors
    /// `OffLaw` at the first token of probability 0; where the text may not end, `found` is `end`.
    pub fn score(&mut self, tokens: &[Token]) -> Result<f64, Refusal> {
        self.reset();
        for &token in tokens {
            self.push(token)?;
        }
        match self.code.token(SymbolId::EOS) {
            Some(eos) => self.push(eos).map_err(|refusal| refusal.found("end"))?,
            None => 0.0,
        };
        Ok(self.nll)
    }
}
