//! Where in the tree the next token stands, known from the tokens before it (N18–N20).
//!
//! Enter at [`TreePlace::push`]. The state is the open nodes, from the text down, each with the child that is being read
//! or comes next. It is no checker: a token that cannot stand where it stands changes nothing, so that every sequence has
//! its places.

use super::{Arities, Code, Meaning, Token};
use crate::ast::{Connective, Relation, Turnstile};
use crate::codec::shifted;
use crate::symbol::{Numeral, SymbolId, SymbolKind};

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The root. Its parts are the formulas and terms of its statements; the next one is a term behind the head of a
    /// function or constant.
    Text {
        term: bool,
    },
    /// A binary formula; until its connective is read it may be a redundant pair of parentheses.
    Pair,
    Not,
    Quantifier {
        sorted: bool,
    },
    Relation,
    /// A predicate or a function, in prefix notation with its arity.
    Applied {
        category: SymbolId,
        arity: usize,
    },
    /// A variable or a constant.
    Leaf {
        variable: bool,
    },
    /// ⊤, ⊥ or `<unknown>`
    Sign,
}

/// The node of a token that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Nodes are numbered as they begin; the text is 0.
    pub(crate) node: usize,
    pub(crate) parent: usize,
    /// Its number among the children of its parent.
    pub(crate) child: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    kind: Kind,
    /// The number of the node.
    node: usize,
    /// The child that is being read or comes next.
    child: usize,
    /// How many of its own tokens were read.
    own: usize,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    /// The innermost node's next child.
    Child,
    /// The VAR of a quantifier.
    Binder,
    /// SORT.
    Sort,
    /// The first digit of an index.
    Index,
    /// The LPAREN of arguments.
    Arguments,
    /// Another token of the innermost node: its connective, its sign, a COMMA, an RPAREN.
    Own,
}

/// The place of the next token: the path of its node from the root, and its position in that node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreePlace {
    /// The text first; never empty.
    frames: Vec<Frame>,
    want: Want,
    /// In prefix notation, right behind the index of a name that has arguments: the state before, and the index. A
    /// further digit makes it another name.
    index: Option<(Vec<Frame>, u64)>,
    /// How many nodes there were.
    nodes: usize,
    /// The node of the last token that could stand where it stood.
    owner: Owner,
    /// Whether that token is a digit, which another may follow.
    digits: bool,
}

const TEXT: Frame = Frame { kind: Kind::Text { term: false }, node: 0, child: 0, own: 0 };

impl Default for TreePlace {
    fn default() -> Self {
        Self::new()
    }
}

impl TreePlace {
    /// Before a text.
    pub fn new() -> Self {
        let owner = Owner { node: 0, parent: 0, child: 0, kind: TEXT.kind };
        Self { frames: vec![TEXT], want: Want::Child, index: None, nodes: 1, owner, digits: false }
    }

    /// The child numbers from the root to the node of the next token (N18).
    pub fn path(&self) -> impl Iterator<Item = usize> + '_ {
        let below = usize::from(self.want != Want::Child);
        self.frames.iter().take(self.frames.len() - below).map(|frame| frame.child)
    }

    /// How many tokens of that node were read (N19).
    pub fn inside(&self) -> usize {
        if self.want == Want::Child { 0 } else { self.top().own }
    }

    /// Reads a token of a code. `<bos>` begins a text, and what cannot stand here changes nothing (N20).
    pub fn push(&mut self, code: &Code, token: Token) {
        self.read(code, token);
    }

    /// The same; the node of the token, if it can stand here.
    pub(crate) fn read(&mut self, code: &Code, token: Token) -> Option<Owner> {
        let fits = match code.meaning(token)? {
            Meaning::Symbol(SymbolId::BOS) => {
                *self = Self::new();
                true
            }
            Meaning::Symbol(symbol) => match symbol.numeral() {
                Some(digit) => self.digit(code, digit),
                None => self.sign(code, symbol),
            },
            Meaning::Entity(entity) => {
                let fits = self.sign(code, entity.category);
                if fits {
                    self.named(code, entity.index);
                }
                fits
            }
        };
        fits.then_some(self.owner)
    }

    /// The open nodes below the text.
    pub(crate) fn open(&self) -> impl Iterator<Item = Owner> + '_ {
        let below = self.frames.iter().zip(self.frames.iter().skip(1));
        below.map(|(above, frame)| frame.owner(above))
    }

    fn top(&self) -> Frame {
        self.frames.last().copied().unwrap_or(TEXT)
    }

    /// One more token of the innermost node was read.
    fn count(&mut self) {
        if let Some(top) = self.frames.last_mut() {
            top.own += 1;
        }
        self.own();
    }

    /// The token that was read is one of the innermost node's.
    fn own(&mut self) {
        let above = self.frames.len().checked_sub(2).and_then(|at| self.frames.get(at));
        self.owner = self.top().owner(above.unwrap_or(&TEXT));
    }

    fn push_node(&mut self, kind: Kind, own: usize, want: Want) {
        self.frames.push(Frame { kind, node: self.nodes, child: 0, own });
        self.nodes += 1;
        self.want = want;
        self.own();
    }

    /// A formula of one sign.
    fn push_sign(&mut self, prefix: bool) {
        self.push_node(Kind::Sign, 1, Want::Own);
        self.frames.pop();
        self.child_is_over(prefix);
    }

    /// Whether a symbol that is no digit can stand here. If so, it was read.
    fn sign(&mut self, code: &Code, symbol: SymbolId) -> bool {
        let prefix = code.arities.is_some();
        let fits = match self.want {
            Want::Child => self.sort(symbol) || self.separator(symbol) || self.begin(symbol, prefix),
            Want::Binder | Want::Sort => {
                let wanted = if self.want == Want::Binder { SymbolId::VAR } else { SymbolId::SORT };
                let fits = symbol == wanted;
                if fits {
                    self.count();
                    self.want = Want::Index;
                }
                fits
            }
            Want::Index => false,
            Want::Arguments if symbol == SymbolId::LPAREN => {
                self.count();
                self.want = Want::Child;
                true
            }
            Want::Arguments => self.without_arguments(symbol),
            Want::Own => self.goes_on(symbol) || (prefix && self.next_part(symbol)),
        };
        if fits {
            (self.index, self.digits) = (None, false);
        }
        fits
    }

    /// COLON behind a binder.
    fn sort(&mut self, symbol: SymbolId) -> bool {
        let fits = symbol == SymbolId::COLON && self.top().kind == Kind::Quantifier { sorted: false };
        if let (true, Some(top)) = (fits, self.frames.last_mut()) {
            top.kind = Kind::Quantifier { sorted: true };
            self.count();
            self.want = Want::Sort;
        }
        fits
    }

    /// A turnstile without premises.
    fn separator(&mut self, symbol: SymbolId) -> bool {
        let text = matches!(self.top().kind, Kind::Text { term: false });
        let fits = text && Turnstile::from_symbol(symbol).is_some();
        if fits {
            self.count();
        }
        fits
    }

    /// The first symbol of a formula or a term.
    fn begin(&mut self, symbol: SymbolId, prefix: bool) -> bool {
        let kind = self.top().kind;
        let (in_text, a_term) = match kind {
            Kind::Text { term } => (true, term),
            Kind::Relation | Kind::Applied { .. } => (false, true),
            _ => (false, false),
        };
        let applied = Kind::Applied { category: symbol, arity: 0 };
        match symbol {
            SymbolId::VAR | SymbolId::CONST | SymbolId::FUNC => {
                if !a_term && prefix && !in_text {
                    return false;
                }
                if !a_term && !prefix {
                    // The left side of a relation, or of a definition: its sign will tell.
                    self.push_node(Kind::Relation, 0, Want::Child);
                }
                let leaf = Kind::Leaf { variable: symbol == SymbolId::VAR };
                let kind = if symbol == SymbolId::FUNC { applied } else { leaf };
                self.push_node(kind, 1, Want::Index);
            }
            _ if a_term => return false,
            SymbolId::PRED => self.push_node(applied, 1, Want::Index),
            SymbolId::NOT => self.push_node(Kind::Not, 1, Want::Child),
            SymbolId::TRUE | SymbolId::FALSE => self.push_sign(prefix),
            SymbolId::UNKNOWN if in_text => self.push_sign(prefix),
            SymbolId::LPAREN if !prefix => self.push_node(Kind::Pair, 1, Want::Child),
            _ if symbol.kind() == SymbolKind::Quantifier => {
                self.push_node(Kind::Quantifier { sorted: false }, 1, Want::Binder);
            }
            _ if prefix && Connective::from_symbol(symbol).is_some() => {
                self.push_node(Kind::Pair, 1, Want::Child);
            }
            _ if prefix && Relation::from_symbol(symbol).is_some() => {
                self.push_node(Kind::Relation, 1, Want::Child);
            }
            _ => return false,
        }
        true
    }

    /// In prefix notation nothing stands between premises.
    fn next_part(&mut self, symbol: SymbolId) -> bool {
        let [text] = self.frames.as_mut_slice() else { return false };
        text.child += 1;
        let fits = self.begin(symbol, true);
        if let (false, [text]) = (fits, self.frames.as_mut_slice()) {
            text.child -= 1;
        }
        fits
    }

    /// A predicate without arguments is over if the symbol goes on with what encloses it.
    fn without_arguments(&mut self, symbol: SymbolId) -> bool {
        let above = self.frames.len().saturating_sub(1);
        let around = self.frames.iter().take(above);
        let passed = |frame: &&Frame| matches!(frame.kind, Kind::Not | Kind::Quantifier { .. });
        let Some(owner) = around.rev().find(|frame| !passed(frame)) else { return false };
        let predicate = matches!(self.top().kind, Kind::Applied { category: SymbolId::PRED, .. });
        let fits = predicate && owner.takes(symbol);
        if fits {
            self.frames.pop();
            self.child_is_over(false);
            self.goes_on(symbol);
        }
        fits
    }

    /// A further symbol of the innermost node.
    fn goes_on(&mut self, symbol: SymbolId) -> bool {
        if symbol == SymbolId::DEFINE
            && let [text, relation] = self.frames.as_mut_slice()
            && relation.kind == Kind::Relation
        {
            // What was taken for the left side of a relation is the head of a definition.
            (text.kind, text.child, text.own) = (Kind::Text { term: true }, text.child + 1, text.own + 1);
            self.frames.pop();
            self.own();
            self.want = Want::Child;
            return true;
        }
        if !self.top().takes(symbol) {
            return false;
        }
        self.count();
        if symbol == SymbolId::RPAREN {
            self.frames.pop();
            self.child_is_over(false);
        } else if let Some(top) = self.frames.last_mut() {
            top.child += 1;
            if matches!(top.kind, Kind::Text { .. }) {
                top.kind = Kind::Text { term: false };
            }
            self.want = Want::Child;
        }
        true
    }

    /// Whether a digit can stand here. If so, it was read.
    fn digit(&mut self, code: &Code, digit: Numeral) -> bool {
        if self.want == Want::Index {
            self.count();
            self.digits = true;
            self.named(code, u64::from(digit.get()));
        } else if let Some((frames, index)) = self.index.take() {
            // The index was longer than it seemed.
            let Some(longer) = shifted(index, digit) else { return false };
            (self.frames, self.want) = (frames, Want::Index);
            self.named(code, longer);
        }
        // In infix notation a further digit belongs to the node of the one before it.
        self.digits
    }

    /// An index is over as soon as it has a digit.
    fn named(&mut self, code: &Code, index: u64) {
        match (self.top().kind, &code.arities) {
            (Kind::Leaf { .. }, arities) => {
                self.frames.pop();
                self.child_is_over(arities.is_some());
            }
            (Kind::Applied { .. }, None) => self.want = Want::Arguments,
            (Kind::Applied { category, .. }, Some(arities)) => self.applied(arities, category, index),
            _ => self.want = Want::Child, // of a quantifier
        }
    }

    /// A name in prefix notation: its arity says how many children it has.
    fn applied(&mut self, arities: &Arities, category: SymbolId, index: u64) {
        self.index = Some((self.frames.clone(), index));
        match (arities.of(category, index), self.frames.last_mut()) {
            (Some(arity), Some(top)) if arity > 0 => {
                top.kind = Kind::Applied { category, arity };
                self.want = Want::Child;
            }
            _ => {
                self.frames.pop();
                self.child_is_over(true);
            }
        }
    }

    /// A formula or a term is over: its parent goes on, or is over, too.
    fn child_is_over(&mut self, prefix: bool) {
        while let Some(top) = self.frames.last_mut() {
            let children = match top.kind {
                Kind::Text { .. } => break,
                Kind::Not | Kind::Quantifier { .. } => 1,
                Kind::Relation => 2,
                Kind::Pair if prefix => 2,
                Kind::Applied { arity, .. } if prefix => arity,
                // A parenthesis ends them.
                Kind::Pair | Kind::Applied { .. } | Kind::Leaf { .. } | Kind::Sign => break,
            };
            if top.child + 1 < children {
                if prefix {
                    top.child += 1;
                    self.want = Want::Child;
                    return;
                }
                break;
            }
            self.frames.pop();
        }
        self.want = Want::Own;
    }
}

impl Frame {
    fn owner(&self, above: &Self) -> Owner {
        Owner { node: self.node, parent: above.node, child: above.child, kind: self.kind }
    }

    /// Whether a symbol can be the next one of this node.
    fn takes(&self, symbol: SymbolId) -> bool {
        match self.kind {
            Kind::Text { .. } => {
                matches!(symbol, SymbolId::COMMA | SymbolId::EQUIVALENT | SymbolId::DEFINE | SymbolId::DOT)
                    || Turnstile::from_symbol(symbol).is_some()
            }
            Kind::Pair => {
                symbol == SymbolId::RPAREN || (self.child == 0 && Connective::from_symbol(symbol).is_some())
            }
            Kind::Relation => self.child == 0 && Relation::from_symbol(symbol).is_some(),
            Kind::Applied { .. } => matches!(symbol, SymbolId::COMMA | SymbolId::RPAREN),
            Kind::Not | Kind::Quantifier { .. } | Kind::Leaf { .. } | Kind::Sign => false,
        }
    }
}
