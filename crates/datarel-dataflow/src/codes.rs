//! Constants as codes that are the same in all processes, those that rules make and that updates bring among them.
//!
//! What the database knows has its code there. Other integers and symbols have codes above 2^31 that are computed from
//! them, so that nobody is asked for the next one.

use datarel::{Const, Constants, Failure, SymbolId};

/// Where the codes of other integers begin.
const INTEGERS: u32 = 1 << 31;
/// Where those of other symbols begin.
const SYMBOLS: u32 = 3 << 30;
/// The code of the integer 0, were it not in the database.
const ZERO: i64 = (1 << 31) + (1 << 29);

/// Constants as codes.
#[derive(Debug, Clone)]
pub(crate) struct Codes(Constants);

impl Codes {
    /// The codes of a database and beyond.
    pub(crate) fn new(constants: &Constants) -> Result<Codes, Failure> {
        let fits = constants.len() <= INTEGERS as usize;
        if fits { Ok(Codes(constants.clone())) } else { Err(Failure::TooManyConstants) }
    }

    /// The constant of a code.
    pub(crate) fn value(&self, code: u32) -> Const {
        match code {
            SYMBOLS.. => Const::Symbol(SymbolId(code - SYMBOLS)),
            INTEGERS.. => Const::Int(i64::from(code) - ZERO),
            _ => self.0.value(code),
        }
    }

    /// The code of a constant, if it has one.
    pub(crate) fn code(&self, value: Const) -> Option<u32> {
        let known = self.0.find(value);
        known.or_else(|| match value {
            Const::Int(value) => {
                let code = u32::try_from(value.checked_add(ZERO)?).ok()?;
                (INTEGERS..SYMBOLS).contains(&code).then_some(code)
            }
            Const::Symbol(SymbolId(symbol)) => symbol.checked_add(SYMBOLS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_there_and_back() {
        let mut constants = Constants::integers(-2, 3);
        let known = Const::Symbol(SymbolId(7));
        constants.intern(known).unwrap();
        let codes = Codes::new(&constants).unwrap();
        let ends = [-(1 << 29), (1 << 29) - 1];
        let integers = [-2, 0, 3, 4, -3, 1000].into_iter().chain(ends).map(Const::Int);
        let symbols = [0, 7, 8, (1 << 30) - 1].map(|symbol| Const::Symbol(SymbolId(symbol)));
        for value in integers.chain(symbols) {
            assert_eq!(codes.code(value).map(|code| codes.value(code)), Some(value));
        }
        assert_eq!((codes.code(Const::Int(-2)), codes.code(known)), (Some(0), Some(6)));
        let beyond = [Const::Int(1 << 29), Const::Int(i64::MIN), Const::Symbol(SymbolId(1 << 30))];
        assert_eq!(beyond.map(|value| codes.code(value)), [None; 3]);
    }
}
