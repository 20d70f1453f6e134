//! The mask of a code: which tokens may follow (N14).
//!
//! It moves the mask of the canonical text by what each token writes there.

use super::prefix::Reader;
use super::{Code, Meaning, Token};
use crate::ast::{Connective, Relation};
use crate::error::{Kind, Refusal};
use crate::mask::{Grammar, Mask, Options};
use crate::signature::Signature;
use crate::symbol::{BASE, SymbolId, SymbolKind};

/// A prefix of tokens, without `<bos>`, and what may follow it.
#[derive(Debug, Clone)]
pub struct CodeMask {
    code: std::sync::Arc<Code>,
    within: Option<std::sync::Arc<Signature>>,
    mask: Mask,
    /// Where operators stand first.
    reader: Option<Reader>,
}

impl CodeMask {
    /// The mask of the empty prefix.
    ///
    /// # Errors
    /// `BadValue` for a code other than the plain one with the grammar of whole texts, or where the code lacks an entity
    /// of the signature within which texts stay: a category could be legal and have no entity.
    pub fn new(code: &Code, options: &Options) -> Result<Self, Refusal> {
        let within = options.within.as_ref();
        let refuse = |message: &str, help: &str| Err(Refusal::new(Kind::BadValue, message).help(help));
        if !code.is_plain() {
            if code.doubled() > 0 {
                return refuse("redundant parentheses have no mask", "the canonical text");
            }
            if options.grammar != Grammar::Formula {
                return refuse("only the canonical text has a mask of several statements", "grammar formula");
            }
            let covered = match within {
                Some(signature) => code.covers(signature),
                None => code.entities().is_none() && code.arities.is_none(),
            };
            if !covered {
                return refuse(
                    "the vocabulary has not every name that the mask allows",
                    "the entities of the law, and a mask within that law",
                );
            }
        }
        Ok(Self {
            within: within.cloned().map(std::sync::Arc::new),
            mask: Mask::new(options),
            reader: code.arities.is_some().then(Reader::formula),
            code: std::sync::Arc::new(code.clone()),
        })
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// From here on the rest, `<eos>` included, must fit in so many symbols of canonical text.
    pub fn set_budget(&mut self, budget: Option<u32>) {
        self.mask.set_budget(budget);
    }

    /// Whether `<eos>` was pushed.
    pub fn is_complete(&self) -> bool {
        self.mask.is_complete()
    }

    /// Goes on by one token.
    ///
    /// # Errors
    /// If the token is not legal, as the strict reader, without a place.
    pub fn push(&mut self, token: Token) -> Result<(), Refusal> {
        if let (true, Some(Meaning::Symbol(symbol))) = (self.code.is_plain(), self.code.meaning(token)) {
            return self.mask.push(symbol);
        }
        // What is refused must leave the mask as it was.
        let mut next = self.clone();
        next.advance(token)?;
        *self = next;
        Ok(())
    }

    /// The tokens that may follow, in order.
    pub fn legal(&self) -> Vec<Token> {
        if self.code.is_plain() {
            return self.mask.legal().iter().map(|symbol| Token(symbol.get())).collect();
        }
        let mut legal = Vec::new();
        match &self.code.entities {
            None => {
                if self.reader.as_ref().is_none_or(Reader::in_index) {
                    // A digit is written as it is.
                    let digits = self.mask.legal().iter().filter(|s| s.kind() == SymbolKind::Numeral);
                    legal.extend(digits.map(|symbol| Token(symbol.get())));
                }
                legal.extend(self.code.tokens().skip(usize::from(BASE)).filter(|&token| self.allows(token)));
            }
            Some(entities) => {
                legal.extend(self.code.tokens().take(super::entities::SIGNS).filter(|&t| self.allows(t)));
                for category in super::entities::CATEGORIES {
                    let mut begun = self.clone();
                    if begun.write(category).is_err() {
                        continue;
                    }
                    for (index, token) in entities.of_category(category) {
                        let mut named = begun.clone();
                        if named.finish(index).is_ok() {
                            legal.push(token);
                        }
                    }
                }
            }
        }
        legal
    }

    /// Whether a token may follow.
    pub fn allows(&self, token: Token) -> bool {
        self.clone().advance(token).is_ok()
    }

    fn advance(&mut self, token: Token) -> Result<(), Refusal> {
        match self.code.meaning(token) {
            Some(Meaning::Symbol(symbol)) => {
                if self.code.entities.is_some() && symbol.kind() == SymbolKind::Category {
                    return Err(Refusal::new(Kind::UnexpectedSymbol, format!("{symbol} is part of a name")));
                }
                self.write(symbol)
            }
            Some(Meaning::Entity(entity)) => {
                self.write(entity.category)?;
                self.finish(entity.index)
            }
            None => Err(Refusal::new(Kind::UnknownId, format!("{} is no token", token.get()))),
        }
    }

    /// A symbol in the order of the notation.
    fn write(&mut self, symbol: SymbolId) -> Result<(), Refusal> {
        let Some(reader) = &mut self.reader else { return self.mask.push(symbol) };
        let Some(arities) = &self.code.arities else { return Ok(()) };
        let mut out = Vec::new();
        if symbol == SymbolId::EOS {
            reader.end(arities, &mut out)?;
            out.push(symbol);
        } else {
            reader.step(symbol, arities, &mut out)?;
            let sign = Connective::from_symbol(symbol)
                .map(|c| self.within.as_ref().is_none_or(|s| s.connectives.contains(&c)));
            let relation = Relation::from_symbol(symbol)
                .map(|r| self.within.as_ref().is_none_or(|s| s.relations.contains(&r)));
            if sign.or(relation) == Some(false) {
                return Err(Refusal::new(Kind::UnexpectedSymbol, format!("{symbol} is not of the law")));
            }
        }
        for symbol in out {
            self.mask.push(symbol)?;
        }
        let terms = [SymbolId::VAR, SymbolId::CONST, SymbolId::FUNC];
        if Relation::from_symbol(symbol).is_some() && !terms.iter().any(|&t| self.mask.legal().contains(t)) {
            // Nothing is written before the left side, which must be possible.
            return Err(Refusal::new(Kind::UnexpectedSymbol, format!("{symbol} has no place for its sides")));
        }
        Ok(())
    }

    /// The digits of an index, which then is over.
    fn finish(&mut self, index: u64) -> Result<(), Refusal> {
        let mut digits = Vec::new();
        crate::codec::push_index(&mut digits, index);
        for digit in digits {
            self.write(digit)?;
        }
        if let (Some(reader), Some(arities)) = (&mut self.reader, &self.code.arities) {
            let mut out = Vec::new();
            reader.end_index(arities, &mut out)?;
            for symbol in out {
                self.mask.push(symbol)?;
            }
        }
        // Of what may follow, something is no further digit.
        let ends = self.mask.legal().iter().any(|s| s.kind() != SymbolKind::Numeral);
        if ends { Ok(()) } else { Err(Refusal::new(Kind::UnexpectedSymbol, "this name cannot stand here")) }
    }
}
