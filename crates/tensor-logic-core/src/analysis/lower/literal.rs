//! Comparisons and assignments, and the bodies of rules and queries.

use super::Context;
use super::expression::{Bound, Reading, Side};
use super::scope::Occurrences;
use crate::ast::{self, Brackets, Comparison, Literal, LiteralKind, PlaceKind, Reference, Span};
use crate::error::{Code, Refusal};
use crate::function::Function;
use crate::names::walk;
use crate::program::{Call, Expr, Guard, IndexFn, IndexId, Kind, Otherwise, Range, Read, Term, When};
use crate::value::Const;

impl<'a> Context<'a> {
    pub(super) fn comparison(
        &mut self,
        left: &ast::Expr,
        comparison: Comparison,
        sign: Span,
        right: &ast::Expr,
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Guard> {
        let spans = (left.span, right.span);
        let left = self.comparison_side(left, reading, bound)?;
        let right = self.comparison_side(right, reading, bound)?;
        if let (Side::Index(left), Side::Index(right)) = (&left, &right) {
            let order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
            for side in [left, right] {
                self.note_numbers(side, order, sign);
            }
            return Some(Guard::CompareIndex(comparison, left.clone(), right.clone()));
        }
        let left = self.side_value(left, spans.0, sign)?;
        let right = self.side_value(right, spans.1, sign)?;
        Some(Guard::Compare(comparison, left, right))
    }

    /// Symbols have no order and no arithmetic.
    fn note_numbers(&mut self, side: &IndexFn, order: bool, sign: Span) {
        let alone = matches!(side, IndexFn::Index(_) | IndexFn::Const(_));
        if alone && !order {
            return;
        }
        if let IndexFn::Const(Const::Symbol(symbol)) = side {
            let name = self.draft.program.symbols.name(*symbol).to_owned();
            let message = format!("the symbol `{name}` has no place in an order");
            self.refuse(Refusal::new(Code::SymbolAsNumber, sign, message));
        }
        let mut uses = Vec::new();
        side.visit(&mut |id| uses.push((id, sign)));
        self.draft.numeric_uses.extend(uses);
    }

    fn side_value(&mut self, side: Side, span: Span, sign: Span) -> Option<Expr> {
        match side {
            Side::Value(expr) => Some(expr),
            Side::Index(IndexFn::Const(Const::Int(value))) => Some(Expr::Number(value as f64)),
            Side::Index(IndexFn::Const(Const::Symbol(symbol))) => {
                let name = self.draft.program.symbols.name(symbol).to_owned();
                let message = format!("the symbol `{name}` cannot be compared with a number");
                self.refuse(Refusal::new(Code::SymbolAsNumber, sign, message));
                None
            }
            Side::Index(function) => {
                let mut uses = Vec::new();
                function.visit(&mut |id| uses.push((id, span)));
                self.draft.numeric_uses.extend(uses);
                Some(Expr::Index(function))
            }
        }
    }

    /// `y = x + 1`: computes `y` where nothing else binds it, compares otherwise. Which of the
    /// two is decided when all literals of the scope are known: [`Context::note_assignments`].
    pub(super) fn assignment(&mut self, id: IndexId, function: IndexFn) -> Guard {
        // The first assignment binds; a second one compares.
        let note = self.draft.indices.get_mut(id.0 as usize);
        if note.is_some_and(|note| std::mem::take(&mut note.assigned)) {
            return Guard::Bind(id, function);
        }
        Guard::CompareIndex(Comparison::Equal, IndexFn::Index(id), function)
    }

    /// Marks the indices of this scope that assignments compute: those that stand alone in no
    /// positive reference of the literals or of `value`, and have no declared domain.
    pub(super) fn note_assignments<'l>(
        &mut self,
        literals: impl Iterator<Item = &'l Literal> + Clone,
        value: Option<&ast::Expr>,
        opened: &[IndexId],
        bound: &Bound,
    ) {
        for literal in literals.clone() {
            let LiteralKind::Assign { index, .. } = &literal.kind else { continue };
            let Some(id) = bound.find(&index.text).filter(|id| opened.contains(id)) else { continue };
            let declared = self.names.indices.contains_key(&index.text);
            let alone = |reference: &Reference| !self.is_built_in(reference) && alone(reference, &index.text);
            let read = literals
                .clone()
                .any(|other| matches!(&other.kind, LiteralKind::Positive(reference) if alone(reference)))
                || value.is_some_and(|value| reads(value, alone));
            if declared || read {
                continue;
            }
            if let Some(entry) = self.draft.program.indices.get_mut(id.0 as usize) {
                entry.range = Range::Computed;
            }
            if let Some(note) = self.draft.indices.get_mut(id.0 as usize) {
                note.assigned = true;
            }
        }
    }

    /// The body of a rule or a query as one term. `left` are bound already. `kind`: the semiring
    /// that positive literals multiply in; `None` for queries, where a literal only holds.
    pub(super) fn body(
        &mut self,
        literals: &[Literal],
        kind: Option<Kind>,
        bound: &mut Bound,
    ) -> Option<Term> {
        let mut occurrences = Occurrences::default();
        occurrences.literals(literals);
        let positive = |name: &str| literals.iter().any(|literal| mentions_positively(literal, name));
        let (mut over, exists) = self.bind_scope(&occurrences, positive, bound);
        self.note_assignments(literals.iter(), None, &bound.ids(), bound);
        let reading = Reading { square: false, elementwise: false };
        let (mut factors, mut guards) = (Vec::new(), Vec::new());
        for literal in literals {
            self.no_slice(literal)?;
            self.note_literal(literal, bound);
            let LiteralKind::Positive(reference) = &literal.kind else {
                for guard in self.guard(literal, reading, bound)? {
                    match guard {
                        // What is denied has the complement's probability.
                        Guard::Not(read)
                            if kind.is_some_and(Kind::is_probability) && self.is_tagged(&read) =>
                        {
                            factors.push(Expr::Missing(read));
                        }
                        guard => guards.push(guard),
                    }
                }
                continue;
            };
            if let Some(when) = self.parity(reference, true, bound) {
                guards.extend(when?.guards);
                continue;
            }
            let round = reference.brackets == Brackets::Round;
            let otherwise = if round { Otherwise::Absent } else { Otherwise::Zero };
            let read = self.read(reference, otherwise, false, bound)?;
            match kind {
                Some(kind) => self.factor(kind, read, &mut factors, &mut guards),
                None => guards.push(Guard::Read(read)),
            }
        }
        over.append(&mut bound.loose);
        let body = kind.map_or(Expr::Number(1.0), |kind| times(kind, factors));
        Some(Term { over, when: When { exists, ..guards.into() }, body })
    }

    /// Refuses a slice of a denied literal: its index would have to be bound by a positive one, as every other.
    fn no_slice(&mut self, literal: &Literal) -> Option<()> {
        let LiteralKind::Negative(reference) = &literal.kind else { return Some(()) };
        let slice = |place: &&ast::Place| matches!(place.kind, PlaceKind::Slice(..));
        let Some(place) = reference.places.iter().find(slice) else { return Some(()) };
        let name = &reference.name.text;
        let message = format!("nothing binds the index of the slice of `{name}` under `not`");
        let help =
            "for no value of the slice: a rule of its own, `Some(…) <- …` with the slice, and `not Some(…)`";
        self.refuse(Refusal::new(Code::UnboundIndex, place.span, message).help(help));
        None
    }

    /// A positive literal of a rule in a semiring: a valued one multiplies, a Boolean one has
    /// the tag 1̄ and only restricts. A square reference holds where its value is > 0. In a rule of
    /// a Boolean relation every literal only restricts: a tuple counts, whatever its value is.
    fn factor(&self, kind: Kind, read: Read, factors: &mut Vec<Expr>, guards: &mut Vec<Guard>) {
        if kind.is_probability() {
            // A square reference is a tag wherever it is inside: what there is does not depend on weights.
            return match self.is_tagged(&read) {
                true => factors.push(Expr::Read(read)),
                false => guards.push(Guard::Read(read)),
            };
        }
        let tensor = self.draft.program.tensor(read.tensor);
        let boolean = tensor.kind == Kind::Bool;
        let square = read.otherwise != Otherwise::Absent;
        // Real arithmetic has 1̄ = 1, so that a Boolean literal may stand as a factor there.
        let arithmetic = matches!(kind, Kind::Count | Kind::Real);
        if square || (boolean && !arithmetic) || kind == Kind::Bool {
            guards.push(Guard::Read(read.clone()));
            if kind == Kind::Bool || boolean {
                return;
            }
        }
        factors.push(Expr::Read(read));
    }

    /// Whether an element that is read has a value that is a probability: it is true or false otherwise.
    fn is_tagged(&self, read: &Read) -> bool {
        self.draft.program.tensor(read.tensor).kind != Kind::Bool
    }

    /// Notes for every index of a literal which literal to blame if nothing binds it.
    fn note_literal(&mut self, literal: &Literal, bound: &Bound) {
        if matches!(literal.kind, LiteralKind::Positive(_) | LiteralKind::Assign { .. }) {
            return;
        }
        let mut names = Occurrences::default();
        names.literals(std::slice::from_ref(literal));
        for (name, _) in names.all() {
            let Some(id) = bound.find(name) else { continue };
            let computed = matches!(self.draft.program.index(id).range, Range::Computed);
            if let Some(note) = self.draft.indices.get_mut(id.0 as usize)
                && note.literal.is_none()
                && !computed
            {
                note.literal = Some(literal.span);
            }
        }
    }
}

/// The ⊗-product of tags.
fn times(kind: Kind, factors: Vec<Expr>) -> Expr {
    let span = Span::default();
    match (kind, factors.is_empty()) {
        (Kind::Tropical, true) => Expr::Number(0.0),
        (Kind::MaxMin, true) => Expr::Number(f64::INFINITY),
        (_, true) => Expr::Number(1.0),
        (Kind::Tropical, false) => super::expression::one_or(factors, Expr::Plus),
        (Kind::MaxMin, false) => {
            let join = |left, right| {
                let arguments = vec![left, right];
                let call = Call { function: Function::Min, arguments, when: When::default(), span };
                Expr::Call(Box::new(call))
            };
            factors.into_iter().reduce(join).unwrap_or(Expr::Number(f64::INFINITY))
        }
        (_, false) => super::expression::one_or(factors, Expr::Product),
    }
}

/// Whether the value has such a reference.
fn reads(value: &ast::Expr, wanted: impl Fn(&Reference) -> bool) -> bool {
    struct Reads<W>(W, bool);
    impl<'a, W: Fn(&Reference) -> bool> walk::Visitor<'a> for Reads<W> {
        fn reference(&mut self, reference: &'a Reference) {
            self.1 |= (self.0)(reference);
        }
    }
    let mut found = Reads(wanted, false);
    walk::expr(value, &mut found);
    found.1
}

/// Whether the index stands alone in a place of the reference.
fn alone(reference: &Reference, name: &str) -> bool {
    reference.places.iter().any(|place| {
        matches!(&place.kind, PlaceKind::Index(expr) if matches!(&expr.kind, ast::IndexKind::Index(n) if n == name))
    })
}

fn mentions_positively(literal: &Literal, name: &str) -> bool {
    match &literal.kind {
        LiteralKind::Positive(reference) => {
            let mut names = Occurrences::default();
            names.reference(reference);
            names.contains(name)
        }
        LiteralKind::Assign { index, .. } => index.text == name,
        LiteralKind::Negative(_) | LiteralKind::Compare { .. } => false,
    }
}
