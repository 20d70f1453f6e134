//! Where the texts of a training set come from: memory, or the files of a data set, of which a window is held.

use std::collections::HashMap;

use fol::data::Reader;
use fol::notation::{Code, Token};
use fol::symbol::SymbolId;
use training::{Refusal, Result};

use crate::batch::Batch;
use crate::corpus::{Coder, Corpus};
use crate::order::Order;

/// The texts that are learned from. Batches are the same wherever they come from.
#[derive(Debug)]
pub enum Texts {
    /// All of them in memory.
    Held(Corpus),
    /// Read from the files of a data set as they are wanted.
    OnDisk(OnDisk),
}

/// Texts in the files of a data set. A window of batches is held, and its texts are read in the order in which they lie.
#[derive(Debug)]
pub struct OnDisk {
    reader: Reader,
    coder: Coder,
    targets: u64,
    window: HashMap<u32, Vec<Token>>,
}

/// Targets of a window, unless one batch has more.
const WINDOW: u64 = 1 << 20;
/// Batches of a window.
const BATCHES: usize = 256;

impl OnDisk {
    /// The texts of a split by its reader, for models that read a code, and the number of targets of each.
    ///
    /// # Errors
    /// What [`Reader::lengths`] refuses, a set of more texts than an order has places for, and a text without a code.
    pub fn new(reader: Reader, code: &Code, split: &str) -> Result<(Self, Vec<u32>)> {
        if u32::try_from(reader.len()).is_err() {
            return Err(Refusal::Learner(format!("{} texts are more than an epoch orders", reader.len())));
        }
        let mut texts = Self { reader, coder: Coder::new(code, split), targets: 0, window: HashMap::new() };
        let mut lengths = if code.is_plain() { texts.reader.lengths().map_err(refused)? } else { Vec::new() };
        if !code.is_plain() {
            for i in 0..texts.reader.len() as u32 {
                lengths.push(texts.read(i)?.len() as u32);
            }
        }
        lengths.iter_mut().for_each(|length| *length = length.saturating_sub(1));
        texts.targets = lengths.iter().map(|&length| u64::from(length)).sum();
        Ok((texts, lengths))
    }

    fn read(&mut self, i: u32) -> Result<Vec<Token>> {
        let sequence = self.reader.read(u64::from(i)).map_err(refused)?;
        if !matches!(sequence.as_slice(), [SymbolId::BOS, .., SymbolId::EOS]) {
            return Err(Refusal::Learner(format!("text {i} does not stand between <bos> and <eos>")));
        }
        Ok(self.coder.tokens(i as usize, &sequence)?.0)
    }

    fn batch(&mut self, order: &mut Order, epoch: u64, index: usize) -> Result<Batch> {
        if order.batch(epoch, index).iter().any(|i| !self.window.contains_key(i)) {
            self.window.clear();
            let mut ahead = order.ahead(epoch, index, BATCHES, WINDOW);
            ahead.sort_unstable();
            for i in ahead {
                let tokens = self.read(i)?;
                self.window.insert(i, tokens);
            }
        }
        let sequences = order.batch(epoch, index).iter().filter_map(|i| self.window.get(i));
        Ok(Batch::new(sequences.map(Vec::as_slice)))
    }
}

/// The refusal of a file, with what helps.
fn refused(refusal: fol::error::Refusal) -> Refusal {
    let help = refusal.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
    Refusal::Learner(format!("{refusal}{help}"))
}

impl Texts {
    /// How the texts are given to models.
    pub fn code(&self) -> &Code {
        match self {
            Self::Held(corpus) => corpus.code(),
            Self::OnDisk(texts) => texts.coder.code(),
        }
    }

    /// The number of targets of all sequences.
    pub fn targets(&self) -> u64 {
        match self {
            Self::Held(corpus) => corpus.targets(),
            Self::OnDisk(texts) => texts.targets,
        }
    }

    /// A batch of an epoch, as models read it.
    ///
    /// # Errors
    /// A file that is not what it was when the set was opened.
    pub fn batch(&mut self, order: &mut Order, epoch: u64, index: usize) -> Result<Batch> {
        match self {
            Self::Held(corpus) => Ok(corpus.batch(order.batch(epoch, index).iter().map(|&i| i as usize))),
            Self::OnDisk(texts) => texts.batch(order, epoch, index),
        }
    }
}

impl From<Corpus> for Texts {
    fn from(corpus: Corpus) -> Self {
        Self::Held(corpus)
    }
}
