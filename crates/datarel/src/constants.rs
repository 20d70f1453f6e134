//! The constants of a database as `u32`, in both directions.

use std::collections::HashMap;

use crate::constant::Const;

use super::limits::Failure;

/// An interner. Integers of an interval fixed at the start get their ids in order, so that
/// comparing ids compares integers; all other constants get the next free id.
#[derive(Debug, Clone, Default)]
pub struct Constants {
    /// The integer with id 0.
    from: i64,
    /// How many ids the interval takes.
    span: u32,
    others: Vec<Const>,
    ids: HashMap<Const, u32>,
}

impl Constants {
    /// An interner whose first ids are the integers `from..=to`. An interval of more than 2^31
    /// integers is cut: the rest is interned one by one.
    pub fn integers(from: i64, to: i64) -> Constants {
        let span = (i128::from(to) - i128::from(from) + 1).clamp(0, 1 << 31);
        Constants { from, span: u32::try_from(span).unwrap_or(0), ..Constants::default() }
    }

    /// The id of a constant, made if it is new.
    ///
    /// # Errors
    /// All 2^32 - 1 ids are taken.
    pub fn intern(&mut self, value: Const) -> Result<u32, Failure> {
        if let Some(id) = self.find(value) {
            return Ok(id);
        }
        let next = u64::from(self.span) + self.others.len() as u64;
        let id = u32::try_from(next).ok().filter(|id| *id < u32::MAX).ok_or(Failure::TooManyConstants)?;
        self.others.push(value);
        self.ids.insert(value, id);
        Ok(id)
    }

    /// The id of a constant, if it has one.
    pub fn find(&self, value: Const) -> Option<u32> {
        if let Const::Int(value) = value {
            let offset = i128::from(value) - i128::from(self.from);
            if (0..i128::from(self.span)).contains(&offset) {
                return u32::try_from(offset).ok();
            }
        }
        self.ids.get(&value).copied()
    }

    /// The constant of an id; 0 for an id that was never given.
    pub fn value(&self, id: u32) -> Const {
        if id < self.span {
            return Const::Int(self.from + i64::from(id));
        }
        self.others.get((id - self.span) as usize).copied().unwrap_or(Const::Int(0))
    }

    /// One more than the largest id that was given.
    pub fn len(&self) -> usize {
        self.span as usize + self.others.len()
    }

    /// Whether no id was given.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::SymbolId;

    #[test]
    fn ids_go_there_and_back_and_keep_the_order_of_the_interval() {
        let mut constants = Constants::integers(-2, 3);
        for value in [-2, 0, 3, 4, -3, i64::MIN, i64::MAX] {
            let id = constants.intern(Const::Int(value)).unwrap();
            assert_eq!(constants.value(id), Const::Int(value));
            assert_eq!(constants.find(Const::Int(value)), Some(id));
        }
        let symbol = Const::Symbol(SymbolId(7));
        assert_eq!(constants.find(symbol), None);
        let id = constants.intern(symbol).unwrap();
        assert_eq!((constants.value(id), constants.intern(symbol).unwrap()), (symbol, id));
        assert!(constants.find(Const::Int(-2)) < constants.find(Const::Int(3)));
        assert_eq!(Constants::integers(5, 4).len(), 0);
    }
}
