//! Texts in memory, and what puts them into a code.

use fol::notation::{Code, Token};
use fol::symbol::SymbolId;
use seeded::Family;
use training::{Refusal, Result};

use crate::batch::Batch;
use crate::premises::SIGNS;

/// Sequences `<bos>` … `<eos>` in one buffer, with what the law says of them.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    tokens: Vec<SymbolId>,
    starts: Vec<usize>,
    /// −ln p of each sequence under the law, in nats.
    nll: Vec<f64>,
    /// What a model reads in place of canonical symbols.
    coded: Option<Coded>,
    /// Only what stands behind the sign of an answer is a target.
    answers: bool,
}

/// The sequences in a code.
#[derive(Debug, Clone)]
struct Coded {
    code: Code,
    tokens: Vec<Token>,
    starts: Vec<usize>,
    /// −ln of the probability of what the code left to a draw, for each sequence.
    draws: Vec<f64>,
}

/// The code of a corpus in canonical symbols.
static PLAIN: Code = Code::PLAIN;

impl Corpus {
    /// An empty corpus.
    pub fn new() -> Self {
        Self { starts: vec![0], ..Self::default() }
    }

    /// Adds a text, and puts the boundary symbols around it. The corpus is in canonical symbols again.
    pub fn push(&mut self, text: impl IntoIterator<Item = SymbolId>, nll: f64) {
        self.coded = None;
        self.tokens.push(SymbolId::BOS);
        self.tokens.extend(text);
        self.tokens.push(SymbolId::EOS);
        self.starts.push(self.tokens.len());
        self.nll.push(nll);
    }

    /// The number of sequences.
    pub fn len(&self) -> usize {
        self.nll.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nll.is_empty()
    }

    /// One sequence, from `<bos>` to `<eos>`.
    pub fn get(&self, i: usize) -> &[SymbolId] {
        match (self.starts.get(i), self.starts.get(i + 1)) {
            (Some(&from), Some(&to)) => self.tokens.get(from..to).unwrap_or_default(),
            _ => &[],
        }
    }

    /// The text of a sequence: what stands between its boundary symbols.
    pub fn inner(sequence: &[SymbolId]) -> &[SymbolId] {
        let text = sequence.strip_prefix(&[SymbolId::BOS]).unwrap_or(sequence);
        text.strip_suffix(&[SymbolId::EOS]).unwrap_or(text)
    }

    /// −ln p of one sequence under the law, and of what its code left to a draw.
    pub fn nll(&self, i: usize) -> f64 {
        let draw = self.coded.as_ref().and_then(|coded| coded.draws.get(i)).copied().unwrap_or(0.0);
        self.nll.get(i).map_or(f64::NAN, |nll| nll + draw)
    }

    /// −ln of the probability of all that the code left to draws.
    pub fn draws(&self) -> f64 {
        self.coded.as_ref().map_or(0.0, |coded| coded.draws.iter().sum())
    }

    /// The sequences.
    pub fn iter(&self) -> impl Iterator<Item = &[SymbolId]> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The same texts, given to models by a code. What [`get`](Self::get) gives are canonical symbols as before. What the
    /// code leaves to a draw is drawn from the stream of the split and of the number of the text, and is a part of what
    /// [`nll`](Self::nll) says.
    ///
    /// # Errors
    /// A text without a code is refused with its number, from 0, and the position of the symbol.
    pub fn in_code(mut self, code: &Code, split: &str) -> Result<Self> {
        self.coded = None;
        if code.is_plain() {
            return Ok(self);
        }
        let (mut tokens, mut starts) = (Vec::with_capacity(self.tokens.len()), vec![0]);
        let mut draws = Vec::with_capacity(self.len());
        let coder = Coder::new(code, split);
        for (i, sequence) in self.iter().enumerate() {
            let (text, draw) = coder.tokens(i, sequence)?;
            tokens.extend(text);
            starts.push(tokens.len());
            draws.push(draw);
        }
        self.coded = Some(Coded { code: code.clone(), tokens, starts, draws });
        Ok(self)
    }

    /// How the texts are given to models.
    pub fn code(&self) -> &Code {
        self.coded.as_ref().map_or(&PLAIN, |coded| &coded.code)
    }

    /// One sequence as models read it, from `<bos>` to `<eos>`.
    pub fn tokens(&self, i: usize) -> Vec<Token> {
        match &self.coded {
            None => self.get(i).iter().map(|symbol| Token::new(symbol.get())).collect(),
            Some(coded) => coded.get(i).to_vec(),
        }
    }

    /// A batch of these sequences, as models read them.
    pub fn batch(&self, which: impl IntoIterator<Item = usize>) -> Batch {
        match &self.coded {
            None if self.answers => Batch::new(which.into_iter().map(|i| self.get(i))).behind(&SIGNS),
            None => Batch::new(which.into_iter().map(|i| self.get(i))),
            Some(coded) => Batch::new(which.into_iter().map(|i| coded.get(i))),
        }
    }

    /// The same texts, of which only what stands behind ENTAILS or `<answer>` is learned and judged. A text without one of them
    /// has no target.
    ///
    /// # Errors
    /// Texts in another code than canonical symbols, which may write these signs elsewhere.
    pub fn answers_only(mut self) -> Result<Self> {
        if self.coded.is_some() {
            return Err(Refusal::Learner("answers are found in canonical symbols, not in a code".to_owned()));
        }
        self.answers = true;
        Ok(self)
    }

    /// The number of rows of each sequence: of its targets, unless only answers are learned.
    pub fn lengths(&self) -> Vec<u32> {
        let starts = self.coded.as_ref().map_or(&self.starts, |coded| &coded.starts);
        let length = |pair: &[usize]| match pair {
            [from, to] => (to - from).saturating_sub(1) as u32,
            _ => 0,
        };
        starts.windows(2).map(length).collect()
    }

    /// The number of targets of all sequences.
    pub fn targets(&self) -> u64 {
        if self.answers {
            let behind = |s: &[SymbolId]| {
                s.iter().position(|symbol| SIGNS.contains(symbol)).map_or(0, |at| s.len() - at - 1)
            };
            return self.iter().map(|s| behind(s) as u64).sum();
        }
        self.lengths().iter().map(|&l| u64::from(l)).sum()
    }

    /// The first `n` sequences (all, if `n` is 0).
    #[must_use]
    pub fn first(mut self, n: usize) -> Self {
        if n > 0 && n < self.len() {
            self.nll.truncate(n);
            self.starts.truncate(n + 1);
            self.tokens.truncate(self.starts.last().copied().unwrap_or(0));
            if let Some(coded) = &mut self.coded {
                coded.starts.truncate(n + 1);
                coded.draws.truncate(n);
                coded.tokens.truncate(coded.starts.last().copied().unwrap_or(0));
            }
        }
        self
    }
}

/// Puts the texts of a split into a code, each for itself: what a code leaves to a draw is drawn from the stream of the split
/// and of the number of the text.
#[derive(Debug, Clone)]
pub(crate) struct Coder {
    code: Code,
    family: Family,
}

impl Coder {
    pub(crate) fn new(code: &Code, split: &str) -> Self {
        Self { code: code.clone(), family: fol::sample::family(&format!("parentheses-{split}"), 0) }
    }

    pub(crate) fn code(&self) -> &Code {
        &self.code
    }

    /// A sequence as models read it, from `<bos>` to `<eos>`, and −ln of the probability of what was drawn.
    ///
    /// # Errors
    /// A text without a code is refused with its number, from 0, and the position of the symbol.
    pub(crate) fn tokens(&self, i: usize, sequence: &[SymbolId]) -> Result<(Vec<Token>, f64)> {
        let text = Corpus::inner(sequence);
        if self.code.is_plain() {
            let whole = [SymbolId::BOS].iter().chain(text).chain(&[SymbolId::EOS]);
            return Ok((whole.map(|symbol| Token::new(symbol.get())).collect(), 0.0));
        }
        let drawn = self.code.draw(text, &mut self.family.stream(i as u64));
        let (text, draw) = drawn.map_err(|refusal| {
            let at = refusal.token.map_or_else(String::new, |at| format!(", symbol {at}"));
            let help = refusal.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
            Refusal::Learner(format!("text {i}{at}: {refusal}{help}"))
        })?;
        let [bos, eos] = self.code.boundaries();
        Ok(([bos].into_iter().chain(text).chain([eos]).collect(), draw))
    }
}

impl Coded {
    fn get(&self, i: usize) -> &[Token] {
        match (self.starts.get(i), self.starts.get(i + 1)) {
            (Some(&from), Some(&to)) => self.tokens.get(from..to).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// Sequences judged in one pass: bounds the logits' memory.
pub(crate) const EVALUATION_ROWS: usize = 4096;

/// Cuts a corpus into batches of at most about [`EVALUATION_ROWS`] rows, in order.
pub(crate) fn evaluation_batches(corpus: &Corpus) -> impl Iterator<Item = std::ops::Range<usize>> {
    let lengths = corpus.lengths();
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from;
        let mut rows = 0;
        while let Some(&l) = lengths.get(from) {
            if from > start && rows + l as usize > EVALUATION_ROWS {
                break;
            }
            rows += l as usize;
            from += 1;
        }
        (from > start).then_some(start..from)
    })
}
