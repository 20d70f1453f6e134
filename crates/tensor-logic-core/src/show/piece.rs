//! Text that knows how tightly it binds, and numbers.

/// How tightly a piece binds, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// `A + B`
    Sum,
    /// `-A B`
    Negative,
    /// `A B / C`
    Product,
    /// `A^2`
    Power,
    /// `A`, `f(A)`, `(A + B)`
    Base,
}

/// A piece of text.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) level: Level,
}

impl Piece {
    pub(super) fn new(text: impl Into<String>, level: Level) -> Piece {
        Piece { text: text.into(), level }
    }

    pub(super) fn base(text: impl Into<String>) -> Piece {
        Piece::new(text, Level::Base)
    }

    /// The text where at least this level is needed.
    pub(super) fn at(self, level: Level) -> String {
        if self.level >= level { self.text } else { format!("({})", self.text) }
    }
}

/// A number that is not negative, as the shortest decimal that reads back.
fn magnitude(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A number as it is written in data: the shortest decimal that reads back, with its sign.
/// `None` for what has no numeral.
pub fn number(value: f64) -> Option<String> {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    value.is_finite().then(|| format!("{sign}{}", magnitude(value.abs())))
}

/// A number as a value; infinities and NaN, which have no numerals, are quotients.
pub(super) fn value(value: f64) -> Piece {
    if value.is_nan() {
        return Piece::base("(0 / 0)");
    }
    let text = if value.is_infinite() { "1 / 0".to_owned() } else { magnitude(value.abs()) };
    match (value.is_sign_negative(), value.is_infinite()) {
        (true, _) => Piece::new(format!("-{text}"), Level::Negative),
        (false, true) => Piece::new(text, Level::Product),
        (false, false) => Piece::base(text),
    }
}

/// Factors side by side; a sign of multiplication where a name before a parenthesis would be
/// a call, and between two numbers.
pub(super) fn side_by_side(factors: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for factor in factors {
        let word = text.chars().last().is_some_and(|last| last.is_alphanumeric() || "_'".contains(last));
        let sign = word && factor.starts_with(|first: char| first == '(' || first.is_ascii_digit());
        if !text.is_empty() {
            text.push_str(if sign { " * " } else { " " });
        }
        text.push_str(&factor);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{number, side_by_side, value};

    #[test]
    fn numbers_are_the_shortest_decimals_that_read_back() {
        for (wanted, given) in [("3", 3.0), ("-0.1", -0.1), ("1e-7", 1e-7), ("1e21", 1e21), ("-0", -0.0)] {
            assert_eq!(number(given).as_deref(), Some(wanted));
        }
        let mut stream = seeded::Family::new("tensor-logic/tests", "numbers", seeded::test_seed()).stream(0);
        for _ in 0..1000 {
            let given = f64::from_bits(stream.below(u64::MAX));
            if let Some(text) = number(given) {
                assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(given.to_bits()));
            }
        }
        assert_eq!(value(f64::NEG_INFINITY).text, "-1 / 0");
    }

    #[test]
    fn a_name_before_a_parenthesis_is_multiplied_by_a_sign() {
        let join = |factors: &[&str]| side_by_side(factors.iter().map(|factor| (*factor).to_owned()));
        assert_eq!(join(&["p", "(A + B)"]), "p * (A + B)");
        assert_eq!(join(&["A[i]", "(B - C)", "2", "X"]), "A[i] (B - C) 2 X");
    }
}
