//! Four ways to give a text to a learner: entities in pieces or whole, operators between or before their operands
//! (`docs/fol/notations.md`).
//!
//! Enter at [`Code`]: [`encode`](Code::encode) takes canonical symbols to [`Token`]s and [`decode`](Code::decode) takes
//! them back. Two steps make it, each with its inverse: a text's symbols are put into the order of the notation
//! (`prefix` writes by a walk of the tree and reads by a stack), and symbols in that order are cut into tokens
//! (`entities`). [`CodeMask`] is the mask of a code; the exact probability of the next token is
//! [`CodeScorer`](crate::score::CodeScorer).

mod doubled;
mod entities;
mod mask;
mod prefix;
mod structure;
mod tree;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Kind, Refusal};
use crate::signature::Signature;
use crate::symbol::{BASE, SymbolId, VOCABULARY};

pub use entities::{Entities, Entity};
pub use mask::CodeMask;
use prefix::Arities;
pub use structure::{NodeRelation, Structure};
pub use tree::TreePlace;

/// How names are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tokenization {
    /// A category symbol and digits.
    Compositional,
    /// One token for each entity.
    Atomic,
}

/// Where operators stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Notation {
    /// As in canonical text.
    Infix,
    /// Before their operands, without parentheses and commas.
    Prefix,
}

impl fmt::Display for Tokenization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compositional => "compositional",
            Self::Atomic => "atomic",
        })
    }
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Infix => "infix",
            Self::Prefix => "prefix",
        })
    }
}

/// What a learner reads and predicts: a number below the size of its code's vocabulary (N1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u16);

impl Token {
    /// The token of a number.
    pub const fn new(id: u16) -> Self {
        Self(id)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number as an array index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl From<Token> for u32 {
    fn from(token: Token) -> Self {
        Self::from(token.0)
    }
}

/// What a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// A symbol.
    Symbol(SymbolId),
    /// A whole name.
    Entity(Entity),
}

/// A one-to-one code of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The list of entities, where names are not cut.
    entities: Option<Entities>,
    /// The arities, where operators stand first.
    arities: Option<Arities>,
    /// In so many of 100 cases a binary or atomic formula stands in a second pair of parentheses.
    doubled: u8,
}

impl Code {
    /// Canonical text: compositional tokens in infix notation.
    pub const PLAIN: Self = Self { entities: None, arities: None, doubled: 0 };

    /// The code of a law's texts, with the law's entities or others (N3, N7).
    ///
    /// # Errors
    /// `BadValue` for a vocabulary of more than 65,536 tokens, and for prefix notation where a name has several
    /// arities.
    pub fn new(
        tokenization: Tokenization,
        notation: Notation,
        signature: &Signature,
        entities: Option<Entities>,
    ) -> Result<Self, Refusal> {
        let entities = match (tokenization, entities) {
            (Tokenization::Compositional, _) => None,
            (Tokenization::Atomic, Some(entities)) => Some(entities),
            (Tokenization::Atomic, None) => Some(Entities::of_signature(signature)?),
        };
        let arities = match notation {
            Notation::Infix => None,
            Notation::Prefix => Some(Arities::new(signature)?),
        };
        Ok(Self { entities, arities, doubled: 0 })
    }

    /// The same with redundant parentheses: in so many of 100 cases a binary or atomic formula stands in a second pair
    /// (N15).
    ///
    /// # Errors
    /// `BadValue` for more than 99, and in prefix notation, which has no parentheses.
    pub fn with_doubled(self, percent: u8) -> Result<Self, Refusal> {
        let refuse = |message: &str| Err(Refusal::new(Kind::BadValue, message));
        if percent > 99 {
            return refuse("of 100 formulas at most 99 have a second pair of parentheses");
        }
        if percent > 0 && self.arities.is_some() {
            return refuse("prefix notation has no parentheses");
        }
        Ok(Self { doubled: percent, ..self })
    }

    /// In so many of 100 cases a binary or atomic formula stands in a second pair of parentheses.
    pub fn doubled(&self) -> u8 {
        self.doubled
    }

    /// How names are cut.
    pub fn tokenization(&self) -> Tokenization {
        if self.entities.is_some() { Tokenization::Atomic } else { Tokenization::Compositional }
    }

    /// Where operators stand.
    pub fn notation(&self) -> Notation {
        if self.arities.is_some() { Notation::Prefix } else { Notation::Infix }
    }

    /// Whether tokens are the symbols of canonical text.
    pub fn is_plain(&self) -> bool {
        *self == Self::PLAIN
    }

    /// The list of entities, where names are not cut.
    pub fn entities(&self) -> Option<&Entities> {
        self.entities.as_ref()
    }

    /// The number of tokens, V.
    pub fn size(&self) -> usize {
        match &self.entities {
            None => VOCABULARY,
            Some(entities) => entities::SIGNS + entities.len(),
        }
    }

    /// The tokens of `<bos>` and `<eos>`.
    pub fn boundaries(&self) -> [Token; 2] {
        // No numerals, so every code has them.
        [SymbolId::BOS, SymbolId::EOS].map(|symbol| self.token(symbol).unwrap_or(Token(symbol.get())))
    }

    /// All tokens, in order.
    pub fn tokens(&self) -> impl Iterator<Item = Token> + Clone + use<> {
        (0..=u16::MAX).take(self.size()).map(Token)
    }

    /// The token of a symbol; none for a numeral where names are not cut.
    pub fn token(&self, symbol: SymbolId) -> Option<Token> {
        match &self.entities {
            None => Some(Token(symbol.get())),
            Some(_) => symbol.get().checked_sub(BASE).map(Token),
        }
    }

    /// What a token stands for; none if there are not so many.
    pub fn meaning(&self, token: Token) -> Option<Meaning> {
        match &self.entities {
            None => SymbolId::new(token.0).map(Meaning::Symbol),
            Some(entities) => match token.index().checked_sub(entities::SIGNS) {
                None => SymbolId::new(token.0 + BASE).map(Meaning::Symbol),
                Some(at) => entities.get(at).map(Meaning::Entity),
            },
        }
    }

    /// The label of a token, as `tokenizer.json` has it (N4); empty if there are not so many.
    pub fn label(&self, token: Token) -> String {
        match self.meaning(token) {
            Some(Meaning::Symbol(symbol)) => symbol.label().to_owned(),
            Some(Meaning::Entity(entity)) => entity.to_string(),
            None => String::new(),
        }
    }

    /// The labels of tokens, separated by one blank.
    pub fn words(&self, tokens: &[Token]) -> String {
        tokens.iter().map(|&token| self.label(token)).collect::<Vec<_>>().join(" ")
    }

    /// The tokens of a text, given as canonical symbols without boundaries.
    ///
    /// # Errors
    /// For an entity that is not in the list, and in prefix notation for a name that the signature does not have or has
    /// with another arity, `NotInSignature` and `ArityMismatch` at its category symbol (N5, N7); in prefix notation
    /// those of the strict reader.
    pub fn encode(&self, symbols: &[SymbolId]) -> Result<Vec<Token>, Refusal> {
        match &self.arities {
            None => self.cut(symbols),
            Some(arities) => {
                let written = prefix::write(&crate::decode(symbols)?, arities)?;
                self.cut(&written.symbols).map_err(|refusal| written.locate(refusal))
            }
        }
    }

    /// As [`encode`](Self::encode), with the draws that the code leaves open, and −ln of their probability: which formulas
    /// have a second pair of parentheses (N15).
    ///
    /// # Errors
    /// As [`encode`](Self::encode); `NotAFormula` for a text that is not one formula, where parentheses are drawn.
    pub fn draw(
        &self,
        symbols: &[SymbolId],
        stream: &mut seeded::Stream,
    ) -> Result<(Vec<Token>, f64), Refusal> {
        if self.doubled == 0 {
            return Ok((self.encode(symbols)?, 0.0));
        }
        // Names first, so that a refusal has its place in the canonical text.
        self.cut(symbols)?;
        let text = crate::decode(symbols)?;
        let Some(formula) = text.as_formula() else {
            return Err(doubled::not_a_formula());
        };
        let (symbols, nll) = doubled::write(formula, self.doubled, stream);
        Ok((self.cut(&symbols)?, nll))
    }

    /// Symbols in the order of the notation, a whole text or the beginning of one, as tokens. The last index has all its
    /// digits.
    ///
    /// # Errors
    /// `NotInSignature` at the category symbol of an entity that is not in the list; `UnexpectedSymbol`, `UnexpectedEnd`,
    /// `LeadingZero` and `IndexOverflow` for digits that are no index, where names are not cut.
    pub fn cut(&self, symbols: &[SymbolId]) -> Result<Vec<Token>, Refusal> {
        match &self.entities {
            None => Ok(symbols.iter().map(|s| Token(s.get())).collect()),
            Some(entities) => entities.cut(symbols),
        }
    }

    /// The symbols that tokens stand for, in the order of the notation, each with the position of its token.
    ///
    /// # Errors
    /// `UnknownId` at a token that there is not.
    pub fn spell(&self, tokens: &[Token]) -> Result<Vec<(SymbolId, usize)>, Refusal> {
        let mut symbols = Vec::with_capacity(tokens.len());
        for (at, &token) in tokens.iter().enumerate() {
            match self.meaning(token) {
                Some(Meaning::Symbol(symbol)) => symbols.push((symbol, at)),
                Some(Meaning::Entity(entity)) => {
                    symbols.extend(entity.symbols().into_iter().map(|s| (s, at)))
                }
                None => {
                    let size = self.size();
                    return Err(Refusal::new(
                        Kind::UnknownId,
                        format!("{} is none of {size} tokens", token.0),
                    )
                    .at(at)
                    .found(token.0.to_string()));
                }
            }
        }
        Ok(symbols)
    }

    /// The canonical symbols of a text, given as tokens without boundaries (N8).
    ///
    /// # Errors
    /// Those of the strict reader, and those of N5 and N7, at the token during which they were found.
    pub fn decode(&self, tokens: &[Token]) -> Result<Vec<SymbolId>, Refusal> {
        self.read(tokens).map_err(|refusal| {
            let at = refusal.token.and_then(|at| tokens.get(at));
            // A name is found whole, though one of its symbols was refused.
            let found = at.map(|&token| self.label(token)).filter(|label| !label.is_empty());
            match found {
                Some(found) => refusal.found(found),
                None => refusal,
            }
        })
    }

    fn read(&self, tokens: &[Token]) -> Result<Vec<SymbolId>, Refusal> {
        let spelled = self.spell(tokens)?;
        if let Some(&(SymbolId::BOS, at)) = spelled.first() {
            let refusal = Refusal::new(Kind::UnexpectedSymbol, "a text without boundaries is wanted");
            return Err(refusal.at(at).found(SymbolId::BOS.label()));
        }
        let mut pairs = Vec::new();
        let (written, refused) = match &self.arities {
            None if self.doubled > 0 => {
                let (left, taken) = doubled::strip(&spelled)?;
                pairs = taken;
                (left, None)
            }
            None => (spelled, None),
            Some(arities) => prefix::read(&spelled, tokens.len(), arities),
        };
        let symbols: Vec<SymbolId> = written.iter().map(|w| w.0).collect();
        let place = |at: usize| written.get(at).map_or(tokens.len(), |w| w.1);
        let text = crate::decode(&symbols);
        if let Ok(text) = &text {
            doubled::confirm(text, &pairs)?;
        }
        let strict = text.err().map(|mut refusal| {
            if !self.is_plain() {
                // What could stand there is said in symbols of another order.
                refusal.expected = None;
            }
            refusal.token = refusal.token.map(place);
            refusal
        });
        // Where reading stopped early the strict reader misses the rest; what it refuses before that comes first.
        match (strict, refused) {
            (Some(strict), Some(refused))
                if strict.token < refused.token && strict.kind != Kind::UnexpectedEnd =>
            {
                Err(strict)
            }
            (_, Some(refusal)) | (Some(refusal), None) => Err(refusal),
            (None, None) => Ok(symbols),
        }
    }

    /// Refuses a signature whose names have other arities than those that the code reads with.
    ///
    /// # Errors
    /// `BadValue`, in prefix notation only.
    pub(crate) fn check(&self, signature: &Signature) -> Result<(), Refusal> {
        self.arities.as_ref().map_or(Ok(()), |arities| arities.agree(&Arities::new(signature)?))
    }

    /// Whether every name of a signature has a token.
    pub fn covers(&self, signature: &Signature) -> bool {
        let Some(entities) = &self.entities else { return true };
        Entities::of_signature(signature).is_ok_and(|all| all.iter().all(|e| entities.find(e).is_some()))
    }
}
