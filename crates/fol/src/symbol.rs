//! The vocabulary: 663 symbols, ids 0 to 662 (F1, F2).
//!
//! Ids 0–624 are the numerals, the digits of indices in base 625; the rest are named here. A symbol has one
//! *label*, used in JSON, in `--from words`, in messages and in `tokenizer.json`. A numeral's value and a
//! symbol's id are different types: value 627 is not id 627.

/// The number of symbols.
pub const VOCABULARY: usize = 663;

/// The base of the index codec, and the number of numerals.
pub const BASE: u16 = 625;

/// The id of a symbol, below 663.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(u16);

/// A digit in base 625.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numeral(u16);

/// What a symbol is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A digit of an index.
    Numeral,
    /// NOT and the four binary connectives.
    Connective,
    /// FORALL, EXISTS, EXISTS1.
    Quantifier,
    /// Equality and the five other relations between terms.
    Relation,
    /// Parentheses, comma, colon, dot.
    Structure,
    /// VAR, CONST, PRED, FUNC, SORT.
    Category,
    /// TRUE and FALSE.
    Truth,
    /// ENTAILS, MODELS, DEFINE, EQUIVALENT.
    Meta,
    /// `<pad>` to `<unknown>`.
    Control,
}

impl SymbolKind {
    /// The name in the vocabulary listing.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

macro_rules! symbols {
    ($($id:literal $name:ident $kind:ident $label:literal $unicode:literal $ascii:literal;)*) => {
        impl From<SymbolId> for u32 {
    fn from(symbol: SymbolId) -> Self {
        Self::from(symbol.0)
    }
}

impl SymbolId {
            $(#[doc = concat!("The symbol `", $label, "`.")] pub const $name: Self = Self($id);)*
        }
        /// Label, Unicode and ASCII spelling of the ids from 625 on, in id order.
        const NAMED: [(SymbolKind, &str, &str, &str); VOCABULARY - BASE as usize] =
            [$((SymbolKind::$kind, $label, $unicode, $ascii),)*];
    };
}

symbols! {
    625 NOT Connective "NOT" "¬" "~";
    626 AND Connective "AND" "∧" "&";
    627 OR Connective "OR" "∨" "|";
    628 IMPLIES Connective "IMPLIES" "→" "->";
    629 IFF Connective "IFF" "↔" "<->";
    630 FORALL Quantifier "FORALL" "∀" "forall";
    631 EXISTS Quantifier "EXISTS" "∃" "exists";
    632 EXISTS1 Quantifier "EXISTS1" "∃!" "exists1";
    633 EQUALS Relation "EQUALS" "=" "=";
    634 NOT_EQUALS Relation "NOT_EQUALS" "≠" "!=";
    635 LESS_THAN Relation "LESS_THAN" "<" "<";
    636 GREATER_THAN Relation "GREATER_THAN" ">" ">";
    637 LESS_EQUAL Relation "LESS_EQUAL" "≤" "<=";
    638 GREATER_EQUAL Relation "GREATER_EQUAL" "≥" ">=";
    639 LPAREN Structure "LPAREN" "(" "(";
    640 RPAREN Structure "RPAREN" ")" ")";
    641 COMMA Structure "COMMA" "," ",";
    642 COLON Structure "COLON" ":" ":";
    643 DOT Structure "DOT" "." ".";
    644 VAR Category "VAR" "x" "x";
    645 CONST Category "CONST" "c" "c";
    646 PRED Category "PRED" "P" "P";
    647 FUNC Category "FUNC" "f" "f";
    648 SORT Category "SORT" "S" "S";
    649 TRUE Truth "TRUE" "⊤" "true";
    650 FALSE Truth "FALSE" "⊥" "false";
    651 ENTAILS Meta "ENTAILS" "⊢" "|-";
    652 MODELS Meta "MODELS" "⊨" "|=";
    653 DEFINE Meta "DEFINE" "≔" ":=";
    654 EQUIVALENT Meta "EQUIVALENT" "≡" "==";
    655 PAD Control "<pad>" "<pad>" "<pad>";
    656 BOS Control "<bos>" "<bos>" "<bos>";
    657 EOS Control "<eos>" "<eos>" "<eos>";
    658 UNK Control "<unk>" "<unk>" "<unk>";
    659 SEP Control "<sep>" "<sep>" "<sep>";
    660 QUERY Control "<query>" "<query>" "<query>";
    661 ANSWER Control "<answer>" "<answer>" "<answer>";
    662 UNKNOWN Control "<unknown>" "<unknown>" "<unknown>";
}

/// The labels of the numerals, so that every label is a `&'static str`.
static NUMERAL_LABELS: std::sync::LazyLock<Vec<String>> =
    std::sync::LazyLock::new(|| (0..BASE).map(|n| n.to_string()).collect());

impl SymbolId {
    /// The symbol with this id, if there is one.
    pub fn new(id: u16) -> Option<Self> {
        (usize::from(id) < VOCABULARY).then_some(Self(id))
    }

    /// All symbols, in id order.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        (0..VOCABULARY as u16).map(Self)
    }

    /// The id as a number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The id as an array index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The digit that this symbol writes, if it is a numeral.
    pub fn numeral(self) -> Option<Numeral> {
        Numeral::new(self.0)
    }

    /// The symbol of a label.
    pub fn from_label(label: &str) -> Option<Self> {
        if label.starts_with(|c: char| c.is_ascii_digit()) {
            let n: u16 = label.parse().ok()?;
            return (n.to_string() == label).then(|| Numeral::new(n)).flatten().map(Numeral::symbol);
        }
        let i = NAMED.iter().position(|named| named.1 == label)?;
        Self::new(BASE + i as u16)
    }

    fn named(self) -> Option<&'static (SymbolKind, &'static str, &'static str, &'static str)> {
        NAMED.get(self.index().checked_sub(usize::from(BASE))?)
    }

    fn numeral_label(self) -> &'static str {
        NUMERAL_LABELS.get(self.index()).map_or("", String::as_str)
    }

    /// The kind.
    pub fn kind(self) -> SymbolKind {
        self.named().map_or(SymbolKind::Numeral, |n| n.0)
    }

    /// The label.
    pub fn label(self) -> &'static str {
        self.named().map_or_else(|| self.numeral_label(), |n| n.1)
    }

    /// The Unicode spelling.
    pub fn unicode(self) -> &'static str {
        self.named().map_or_else(|| self.numeral_label(), |n| n.2)
    }

    /// The ASCII spelling.
    pub fn ascii(self) -> &'static str {
        self.named().map_or_else(|| self.numeral_label(), |n| n.3)
    }
}

impl std::fmt::Display for SymbolId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

impl Numeral {
    /// The digit of this value, if it is below 625.
    pub fn new(value: u16) -> Option<Self> {
        (value < BASE).then_some(Self(value))
    }

    /// The last digit of an index.
    pub fn last_of(index: u64) -> Self {
        Self((index % u64::from(BASE)) as u16)
    }

    /// The value.
    pub fn get(self) -> u16 {
        self.0
    }

    /// The symbol that writes this digit.
    pub fn symbol(self) -> SymbolId {
        SymbolId(self.0)
    }
}
