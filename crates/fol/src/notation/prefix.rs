//! Prefix notation: written by a walk of the tree, read by a stack (N6–N9).

use crate::ast::{Connective, Definition, Formula, Relation, Statement, Term, Text};
use crate::codec::{push_index, shifted};
use crate::error::{Kind, Refusal, Stage};
use crate::signature::Signature;
use crate::symbol::{SymbolId, SymbolKind};

/// The one arity of each predicate and function; none where the signature has no such name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arities {
    predicates: Vec<Option<usize>>,
    functions: Vec<Option<usize>>,
}

impl Arities {
    /// Those of a signature (N7).
    pub(super) fn new(signature: &Signature) -> Result<Self, Refusal> {
        let only = |category: SymbolId, lists: &[Vec<usize>]| -> Result<Vec<Option<usize>>, Refusal> {
            let one = |(index, list): (usize, &Vec<usize>)| match list.as_slice() {
                [] => Ok(None),
                [arity] => Ok(Some(*arity)),
                several => {
                    let name = format!("{}{index}", category.unicode());
                    let numbers: Vec<String> = several.iter().map(usize::to_string).collect();
                    let message = format!(
                        "prefix notation needs fixed arities, and {name} has {} arguments",
                        numbers.join(" or ")
                    );
                    let help = "a law whose `predicates` are blocks of one arity each, or infix notation";
                    Err(Refusal::new(Kind::BadValue, message).help(help))
                }
            };
            lists.iter().enumerate().map(one).collect()
        };
        Ok(Self {
            predicates: only(SymbolId::PRED, &signature.predicates)?,
            functions: only(SymbolId::FUNC, &signature.functions)?,
        })
    }

    /// Refuses names that have another arity elsewhere.
    pub(super) fn agree(&self, other: &Self) -> Result<(), Refusal> {
        let pairs = [
            (SymbolId::PRED, &self.predicates, &other.predicates),
            (SymbolId::FUNC, &self.functions, &other.functions),
        ];
        for (category, here, there) in pairs {
            let differs = |pair: (&Option<usize>, &Option<usize>)| {
                pair.0.is_some() && pair.1.is_some() && pair.0 != pair.1
            };
            if let Some(index) = here.iter().zip(there).position(differs) {
                let message =
                    format!("{}{index} has another arity in this law than in the code", category.unicode());
                return Err(Refusal::new(Kind::BadValue, message));
            }
        }
        Ok(())
    }

    /// The arity of a name.
    pub(super) fn of(&self, category: SymbolId, index: u64) -> Option<usize> {
        let all = if category == SymbolId::PRED { &self.predicates } else { &self.functions };
        usize::try_from(index).ok().and_then(|index| all.get(index)).copied().flatten()
    }
}

/// Symbols in prefix order, with the position of each in the canonical text.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) symbols: Vec<SymbolId>,
    places: Vec<usize>,
}

impl Written {
    /// Moves a refusal to the canonical text.
    pub(super) fn locate(&self, mut refusal: Refusal) -> Refusal {
        refusal.token = refusal.token.map(|at| self.places.get(at).copied().unwrap_or(self.places.len()));
        refusal
    }
}

/// A text in prefix order.
pub(super) fn write(text: &Text, arities: &Arities) -> Result<Written, Refusal> {
    let mut writer = Writer { arities, out: Written::default(), at: 0 };
    for (i, statement) in text.statements.iter().enumerate() {
        if i > 0 {
            writer.put(SymbolId::DOT);
        }
        writer.statement(statement)?;
    }
    if text.terminated {
        writer.put(SymbolId::DOT);
    }
    Ok(writer.out)
}

struct Writer<'a> {
    arities: &'a Arities,
    out: Written,
    /// The canonical position of what comes next.
    at: usize,
}

impl Writer<'_> {
    /// A symbol that stands here in both orders.
    fn put(&mut self, symbol: SymbolId) {
        self.out.symbols.push(symbol);
        self.out.places.push(self.at);
        self.at += 1;
    }

    /// A sign of canonical text that prefix notation leaves out.
    fn leave_out(&mut self) {
        self.at += 1;
    }

    /// A sign that stands here, and in canonical text after its first operand.
    fn before(
        &mut self,
        symbol: SymbolId,
        first: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let slot = self.out.places.len();
        self.out.symbols.push(symbol);
        self.out.places.push(self.at);
        first(self)?;
        if let Some(place) = self.out.places.get_mut(slot) {
            *place = self.at;
        }
        self.leave_out();
        Ok(())
    }

    fn name(&mut self, category: SymbolId, index: u64) {
        self.put(category);
        let from = self.out.symbols.len();
        push_index(&mut self.out.symbols, index);
        for _ in from..self.out.symbols.len() {
            self.out.places.push(self.at);
            self.at += 1;
        }
    }

    /// A name whose arity the signature must know, and its arguments or parameters.
    fn applied<T>(
        &mut self,
        category: SymbolId,
        index: u64,
        list: &[T],
        mut each: impl FnMut(&mut Self, &T) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let name = format_args!("{}{index}", category.unicode()).to_string();
        let refuse = |kind: Kind, message: String| {
            Err(Refusal::new(kind, message).at(self.at).found(category.label()))
        };
        match self.arities.of(category, index) {
            None => return refuse(Kind::NotInSignature, format!("{name} has no arity in the signature")),
            Some(arity) if arity != list.len() => {
                let found = list.len();
                return refuse(
                    Kind::ArityMismatch,
                    format!("{name} has arity {arity} in the signature, and {found} arguments here"),
                );
            }
            Some(_) => self.name(category, index),
        }
        for member in list {
            self.leave_out(); // LPAREN, then COMMA
            each(self, member)?;
        }
        if !list.is_empty() {
            self.leave_out(); // RPAREN
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Refusal> {
        match statement {
            Statement::Formula(formula) => self.formula(formula),
            Statement::Sequent(turnstile, premises, conclusion) => {
                for (i, premise) in premises.iter().enumerate() {
                    if i > 0 {
                        self.leave_out();
                    }
                    self.formula(premise)?;
                }
                self.put(turnstile.symbol());
                match conclusion {
                    Some(formula) => self.formula(formula),
                    None => {
                        self.put(SymbolId::UNKNOWN);
                        Ok(())
                    }
                }
            }
            Statement::Definition(definition) => self.definition(definition),
            Statement::Equivalence(left, right) => {
                self.formula(left)?;
                self.put(SymbolId::EQUIVALENT);
                self.formula(right)
            }
        }
    }

    fn definition(&mut self, definition: &Definition) -> Result<(), Refusal> {
        let parameter = |writer: &mut Self, variable: &crate::ast::Variable| {
            writer.name(SymbolId::VAR, variable.0);
            Ok(())
        };
        match definition {
            Definition::Predicate(predicate, parameters, body) => {
                self.applied(SymbolId::PRED, predicate.0, parameters, parameter)?;
                self.put(SymbolId::DEFINE);
                self.formula(body)
            }
            Definition::Function(function, parameters, body) => {
                self.applied(SymbolId::FUNC, function.0, parameters, parameter)?;
                self.put(SymbolId::DEFINE);
                self.term(body)
            }
            Definition::Constant(constant, body) => {
                self.name(SymbolId::CONST, constant.0);
                self.put(SymbolId::DEFINE);
                self.term(body)
            }
        }
    }

    /// As deep as the tree, which the reader has bounded (F8).
    fn formula(&mut self, formula: &Formula) -> Result<(), Refusal> {
        match formula {
            Formula::Truth(truth) => {
                self.put(if *truth { SymbolId::TRUE } else { SymbolId::FALSE });
                Ok(())
            }
            Formula::Predicate(predicate, arguments) => {
                self.applied(SymbolId::PRED, predicate.0, arguments, Self::term)
            }
            Formula::Relation(relation, left, right) => {
                self.before(relation.symbol(), |writer| writer.term(left))?;
                self.term(right)
            }
            Formula::Not(operand) => {
                self.put(SymbolId::NOT);
                self.formula(operand)
            }
            Formula::Binary(connective, left, right) => {
                self.leave_out();
                self.before(connective.symbol(), |writer| writer.formula(left))?;
                self.formula(right)?;
                self.leave_out();
                Ok(())
            }
            Formula::Quantified(quantifier, variable, sort, body) => {
                self.put(quantifier.symbol());
                self.name(SymbolId::VAR, variable.0);
                if let Some(sort) = sort {
                    self.put(SymbolId::COLON);
                    self.name(SymbolId::SORT, sort.0);
                }
                self.formula(body)
            }
        }
    }

    fn term(&mut self, term: &Term) -> Result<(), Refusal> {
        match term {
            Term::Variable(variable) => self.name(SymbolId::VAR, variable.0),
            Term::Constant(constant) => self.name(SymbolId::CONST, constant.0),
            Term::Function(function, arguments) => {
                return self.applied(SymbolId::FUNC, function.0, arguments, Self::term);
            }
        }
        Ok(())
    }
}

/// Canonical symbols with the position of the token during which each was written, and the refusal that stopped the
/// reading, at a position in `tokens`.
pub(super) type Read = (Vec<(SymbolId, usize)>, Option<Refusal>);

/// Symbols in prefix order, each with the position of its token, as canonical symbols.
pub(super) fn read(spelled: &[(SymbolId, usize)], tokens: usize, arities: &Arities) -> Read {
    let mut reader = Reader::text();
    let (mut written, mut out) = (Vec::with_capacity(2 * spelled.len()), Vec::new());
    for &(symbol, at) in spelled {
        let refused = reader.step(symbol, arities, &mut out).err();
        written.extend(out.drain(..).map(|s| (s, at)));
        if let Some(refusal) = refused {
            return (written, Some(refusal.stage(Stage::Parse).at(at).found(symbol.label())));
        }
    }
    let refused = reader.end(arities, &mut out).err();
    written.extend(out.drain(..).map(|s| (s, tokens)));
    (written, refused.map(|refusal| refusal.stage(Stage::Parse).at(tokens).found("end")))
}

/// What encloses what is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// A connective whose left operand is being read.
    Left(SymbolId),
    /// A connective's right operand.
    Right,
    /// A relation whose left side is being read.
    LeftSide(SymbolId),
    /// A relation's right side.
    RightSide,
    /// An argument, after which so many more come, of a function or of a predicate.
    Argument { left: usize, function: bool },
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    /// A statement; after a DOT the text may end instead.
    Statement {
        after_dot: bool,
    },
    /// A formula or `<unknown>`.
    Conclusion,
    Formula,
    Term,
    /// The VAR of a quantifier.
    Binder,
    /// COLON, or the formula under a quantifier.
    AfterBinder,
    /// SORT.
    Sort,
    /// The next digit of an index, or what follows it.
    Index {
        of: Of,
        value: Option<u64>,
    },
    /// DEFINE, after the head of a function or constant.
    Define,
    /// A formula of a statement, or the term that a definition ends with, is over.
    Whole,
}

/// What an index names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Binder,
    Sort,
    /// A variable or a constant.
    Simple,
    Predicate,
    Function,
}

/// The stack machine that reads prefix notation and writes canonical symbols as soon as they are known.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    want: Want,
    frames: Vec<Frame>,
    /// What the statement began with.
    first: SymbolId,
    /// The head of a definition of a function or constant is being read.
    head: bool,
}

fn misplaced(symbol: SymbolId) -> Refusal {
    Refusal::new(Kind::UnexpectedSymbol, format!("{symbol} cannot stand here in prefix notation"))
}

impl Reader {
    /// Before a text.
    fn text() -> Self {
        Self {
            want: Want::Statement { after_dot: false },
            frames: Vec::new(),
            first: SymbolId::PAD,
            head: false,
        }
    }

    /// Before a text of one formula.
    pub(super) fn formula() -> Self {
        Self { want: Want::Formula, ..Self::text() }
    }

    /// Whether digits may come.
    pub(super) fn in_index(&self) -> bool {
        matches!(self.want, Want::Index { .. })
    }

    /// Reads a symbol.
    pub(super) fn step(
        &mut self,
        symbol: SymbolId,
        arities: &Arities,
        out: &mut Vec<SymbolId>,
    ) -> Result<(), Refusal> {
        if let (Want::Index { of, value }, Some(digit)) = (self.want, symbol.numeral()) {
            if value == Some(0) {
                return Err(Refusal::leading_zero());
            }
            let value = shifted(value.unwrap_or(0), digit).ok_or_else(Refusal::index_overflow)?;
            out.push(symbol);
            self.want = Want::Index { of, value: Some(value) };
            return Ok(());
        }
        self.end_index(arities, out)?;
        match self.want {
            Want::Index { .. } => Err(misplaced(symbol)), // without a digit
            Want::Statement { .. } => self.statement(symbol, out),
            Want::Conclusion if symbol == SymbolId::UNKNOWN => {
                out.push(symbol);
                self.want = Want::Whole;
                Ok(())
            }
            Want::AfterBinder if symbol == SymbolId::COLON => {
                out.push(symbol);
                self.want = Want::Sort;
                Ok(())
            }
            Want::Conclusion | Want::AfterBinder | Want::Formula => self.operand(symbol, out),
            Want::Term => self.term(symbol, out),
            Want::Binder if symbol == SymbolId::VAR => self.begin(Of::Binder, symbol, out),
            Want::Sort if symbol == SymbolId::SORT => self.begin(Of::Sort, symbol, out),
            Want::Define if symbol == SymbolId::DEFINE => self.follow(symbol, out),
            Want::Whole => self.follow(symbol, out),
            Want::Binder | Want::Sort | Want::Define => Err(misplaced(symbol)),
        }
    }

    /// The index that is being read, if it has digits, ends here.
    pub(super) fn end_index(&mut self, arities: &Arities, out: &mut Vec<SymbolId>) -> Result<(), Refusal> {
        let Want::Index { of, value: Some(value) } = self.want else { return Ok(()) };
        match of {
            Of::Binder => self.want = Want::AfterBinder,
            Of::Sort => self.want = Want::Formula,
            Of::Simple => self.term_is_over(out),
            Of::Predicate | Of::Function => {
                let function = of == Of::Function;
                let category = if function { SymbolId::FUNC } else { SymbolId::PRED };
                match arities.of(category, value) {
                    Some(0) => self.over(function, out),
                    Some(arity) => {
                        out.push(SymbolId::LPAREN);
                        self.frames.push(Frame::Argument { left: arity - 1, function });
                        self.want = Want::Term;
                    }
                    None => {
                        let name = format!("{}{value}", category.unicode());
                        return Err(Refusal::new(
                            Kind::NotInSignature,
                            format!("{name} has no arity in the signature"),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The input is over.
    pub(super) fn end(&mut self, arities: &Arities, out: &mut Vec<SymbolId>) -> Result<(), Refusal> {
        self.end_index(arities, out)?;
        match self.want {
            Want::Whole | Want::Statement { after_dot: true } => Ok(()),
            _ => Err(Refusal::new(Kind::UnexpectedEnd, "the text is not complete")),
        }
    }

    fn statement(&mut self, symbol: SymbolId, out: &mut Vec<SymbolId>) -> Result<(), Refusal> {
        (self.first, self.head) = (symbol, false);
        match symbol {
            SymbolId::ENTAILS | SymbolId::MODELS => self.follow(symbol, out),
            SymbolId::FUNC | SymbolId::CONST => {
                self.head = true;
                self.term(symbol, out)
            }
            _ => self.operand(symbol, out),
        }
    }

    /// After a whole formula of a statement: what joins it with the next part, or the next premise.
    fn follow(&mut self, symbol: SymbolId, out: &mut Vec<SymbolId>) -> Result<(), Refusal> {
        self.want = match symbol {
            SymbolId::DOT => Want::Statement { after_dot: true },
            SymbolId::ENTAILS | SymbolId::MODELS => Want::Conclusion,
            SymbolId::EQUIVALENT => Want::Formula,
            SymbolId::DEFINE if self.first == SymbolId::PRED => Want::Formula,
            SymbolId::DEFINE => Want::Term,
            _ => {
                // Only what begins a formula may be preceded by the COMMA that is left out.
                let mut premise = Vec::new();
                self.operand(symbol, &mut premise)?;
                out.push(SymbolId::COMMA);
                out.append(&mut premise);
                return Ok(());
            }
        };
        self.head = false;
        out.push(symbol);
        Ok(())
    }

    /// The first symbol of a formula.
    fn operand(&mut self, symbol: SymbolId, out: &mut Vec<SymbolId>) -> Result<(), Refusal> {
        if Connective::from_symbol(symbol).is_some() {
            out.push(SymbolId::LPAREN);
            self.frames.push(Frame::Left(symbol));
            self.want = Want::Formula;
            return Ok(());
        }
        if Relation::from_symbol(symbol).is_some() {
            self.frames.push(Frame::LeftSide(symbol));
            self.want = Want::Term;
            return Ok(());
        }
        match (symbol, symbol.kind()) {
            (SymbolId::PRED, _) => self.begin(Of::Predicate, symbol, out),
            (SymbolId::NOT, _) => {
                out.push(symbol);
                self.want = Want::Formula;
                Ok(())
            }
            (_, SymbolKind::Quantifier) => {
                out.push(symbol);
                self.want = Want::Binder;
                Ok(())
            }
            (_, SymbolKind::Truth) => {
                out.push(symbol);
                self.formula_is_over(out);
                Ok(())
            }
            _ => Err(misplaced(symbol)),
        }
    }

    fn term(&mut self, symbol: SymbolId, out: &mut Vec<SymbolId>) -> Result<(), Refusal> {
        match symbol {
            SymbolId::VAR | SymbolId::CONST => self.begin(Of::Simple, symbol, out),
            SymbolId::FUNC => self.begin(Of::Function, symbol, out),
            _ => Err(misplaced(symbol)),
        }
    }

    fn begin(&mut self, of: Of, category: SymbolId, out: &mut Vec<SymbolId>) -> Result<(), Refusal> {
        out.push(category);
        self.want = Want::Index { of, value: None };
        Ok(())
    }

    /// A name with all its arguments is over.
    fn over(&mut self, function: bool, out: &mut Vec<SymbolId>) {
        if function { self.term_is_over(out) } else { self.formula_is_over(out) }
    }

    fn term_is_over(&mut self, out: &mut Vec<SymbolId>) {
        match self.frames.pop() {
            Some(Frame::Argument { left: 0, function }) => {
                out.push(SymbolId::RPAREN);
                self.over(function, out);
            }
            Some(Frame::Argument { left, function }) => {
                out.push(SymbolId::COMMA);
                self.frames.push(Frame::Argument { left: left - 1, function });
                self.want = Want::Term;
            }
            Some(Frame::LeftSide(relation)) => {
                out.push(relation);
                self.frames.push(Frame::RightSide);
                self.want = Want::Term;
            }
            Some(Frame::RightSide) => self.formula_is_over(out),
            // Only a definition has terms outside formulas. No formula stands in a term.
            Some(Frame::Left(_) | Frame::Right) | None => {
                self.want = if self.head { Want::Define } else { Want::Whole };
            }
        }
    }

    fn formula_is_over(&mut self, out: &mut Vec<SymbolId>) {
        loop {
            match self.frames.pop() {
                Some(Frame::Left(connective)) => {
                    out.push(connective);
                    self.frames.push(Frame::Right);
                    self.want = Want::Formula;
                    return;
                }
                Some(Frame::Right) => out.push(SymbolId::RPAREN),
                _ => {
                    self.want = Want::Whole;
                    return;
                }
            }
        }
    }
}
