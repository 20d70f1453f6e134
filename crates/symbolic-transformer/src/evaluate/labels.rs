//! What the tree of a formula says of each of its tokens, in any code.
//!
//! Enter at [`Labels::of`]. The reader of `fol` makes the tree; one walk of it goes along the symbols that the tokens
//! stand for, in the order of the notation, and says of each where it stands. Redundant parentheses are no part of the
//! tree: the walk takes them where they are.

use std::ops::Range;

use fol::ast::{Formula, Term};
use fol::notation::{Code, Notation, Token};
use fol::symbol::{SymbolId, SymbolKind};

/// What the tree has next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// A formula begins.
    Formula,
    /// The variable of a quantifier begins.
    Binder,
    /// The sort of a variable, or the COLON before it.
    Sort,
    /// A digit of an index.
    Index,
    /// The parenthesis before arguments.
    Open,
    /// A term begins that is no formula's first.
    Term,
    /// COMMA or RPAREN behind an argument.
    Separator,
    /// A relation, in infix notation.
    Relation,
    /// A connective, in infix notation.
    Connective,
    /// The parenthesis behind a formula.
    Close,
    /// The text is over.
    End,
}

/// A name where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    /// VAR, CONST, PRED, FUNC or SORT.
    pub(crate) category: SymbolId,
    pub(crate) index: u64,
    /// Its rows.
    pub(crate) rows: Range<usize>,
    /// The number of the quantifier, from 0 in the order of the text, whose variable this is; none where it is free or no
    /// variable.
    pub(crate) quantifier: Option<usize>,
    /// It stands behind its quantifier.
    pub(crate) binds: bool,
}

impl Name {
    /// Its last row.
    pub(crate) fn last(&self) -> usize {
        self.rows.end.saturating_sub(1)
    }
}

/// What is known of the rows of a text of one formula: row 0 is `<bos>`, row t the t-th token; `<eos>` has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels {
    /// Parentheses that are open behind each row.
    pub(crate) depth: Vec<usize>,
    /// The variables of the quantifiers whose scope each row is in, outermost first. A scope begins with the last row of
    /// the variable, or of its sort.
    pub(crate) scope: Vec<Vec<u64>>,
    /// What comes behind each row.
    pub(crate) next: Vec<Role>,
    /// All names, in the order of the text.
    pub(crate) names: Vec<Name>,
    /// Parentheses: the closing row and the opening one.
    pub(crate) pairs: Vec<(usize, usize)>,
    /// The last rows of the arguments of predicates and functions.
    pub(crate) arguments: Vec<usize>,
    /// The last rows of all formulas inside the formula, itself included; each once, ascending.
    pub(crate) ends: Vec<usize>,
    /// The last rows of the right operand and of the left one, of every connective with two.
    pub(crate) siblings: Vec<(usize, usize)>,
}

impl Labels {
    /// The labels of a text, given as tokens without boundaries; none for a text that is not one formula.
    pub(crate) fn of(code: &Code, tokens: &[Token]) -> Option<Self> {
        let text = fol::decode(&code.decode(tokens).ok()?).ok()?;
        let symbols = code.spell(tokens).ok()?;
        let closing = closing(&symbols);
        let rows = tokens.len() + 1;
        let mut walk = Walk {
            symbols: &symbols,
            closing: &closing,
            prefix: code.notation() == Notation::Prefix,
            at: 0,
            roles: vec![Role::End; rows + 1],
            bound: Vec::new(),
            quantifiers: 0,
            out: Self { depth: vec![0; rows], scope: vec![Vec::new(); rows], ..Self::default() },
        };
        walk.formula(text.as_formula()?, Role::Formula)?;
        if walk.at < symbols.len() {
            return None;
        }
        let Walk { roles, mut out, .. } = walk;
        out.next = roles.into_iter().skip(1).collect();
        out.ends.sort_unstable();
        out.ends.dedup();
        let mut open = Vec::new();
        for &(symbol, at) in &symbols {
            match symbol {
                SymbolId::LPAREN => open.push(at + 1),
                SymbolId::RPAREN => out.pairs.push((at + 1, open.pop()?)),
                _ => {}
            }
            *out.depth.get_mut(at + 1)? = open.len();
        }
        Some(out)
    }
}

/// The place of the closing parenthesis of each opening one; the number of symbols elsewhere.
fn closing(symbols: &[(SymbolId, usize)]) -> Vec<usize> {
    let mut closing = vec![symbols.len(); symbols.len()];
    let mut open = Vec::new();
    for (at, &(symbol, _)) in symbols.iter().enumerate() {
        match symbol {
            SymbolId::LPAREN => open.push(at),
            SymbolId::RPAREN => {
                if let Some(slot) = open.pop().and_then(|from: usize| closing.get_mut(from)) {
                    *slot = at;
                }
            }
            _ => {}
        }
    }
    closing
}

/// The walk: every function goes over what it is called for and answers with the last row of it, or with nothing where the
/// symbols are not those of the tree.
struct Walk<'a> {
    /// Symbols in the order of the notation, each with the place of its token.
    symbols: &'a [(SymbolId, usize)],
    closing: &'a [usize],
    prefix: bool,
    at: usize,
    /// Of each row, `<bos>` included, and one more for the end.
    roles: Vec<Role>,
    /// Variables in scope with the numbers of their quantifiers.
    bound: Vec<(u64, usize)>,
    quantifiers: usize,
    out: Labels,
}

impl Walk<'_> {
    fn is(&self, ahead: usize, symbol: SymbolId) -> bool {
        self.symbols.get(self.at + ahead).is_some_and(|s| s.0 == symbol)
    }

    fn take(&mut self, symbol: SymbolId, role: Role) -> Option<usize> {
        let &(found, token) = self.symbols.get(self.at)?;
        if found != symbol {
            return None;
        }
        // A token of several symbols has the role of its first.
        if self.at.checked_sub(1).and_then(|before| self.symbols.get(before)).is_none_or(|s| s.1 != token) {
            *self.roles.get_mut(token + 1)? = role;
        }
        let scope = self.bound.iter().map(|b| b.0).collect();
        *self.out.scope.get_mut(token + 1)? = scope;
        self.at += 1;
        Some(token + 1)
    }

    fn name(&mut self, category: SymbolId, index: u64, role: Role) -> Option<Name> {
        let first = self.take(category, role)?;
        let mut last = first;
        while let Some(&(digit, _)) = self.symbols.get(self.at).filter(|s| s.0.kind() == SymbolKind::Numeral)
        {
            last = self.take(digit, Role::Index)?;
        }
        Some(Name { category, index, rows: first..last + 1, quantifier: None, binds: false })
    }

    fn keep(&mut self, name: Name) -> usize {
        let last = name.last();
        self.out.names.push(name);
        last
    }

    fn term(&mut self, term: &Term, role: Role) -> Option<usize> {
        match term {
            Term::Variable(variable) => {
                let name = self.name(SymbolId::VAR, variable.0, role)?;
                let quantifier = self.bound.iter().rev().find(|b| b.0 == variable.0).map(|b| b.1);
                Some(self.keep(Name { quantifier, ..name }))
            }
            Term::Constant(constant) => {
                let name = self.name(SymbolId::CONST, constant.0, role)?;
                Some(self.keep(name))
            }
            Term::Function(function, arguments) => self.applied(SymbolId::FUNC, function.0, arguments, role),
        }
    }

    fn applied(&mut self, category: SymbolId, index: u64, arguments: &[Term], role: Role) -> Option<usize> {
        let name = self.name(category, index, role)?;
        let mut last = self.keep(name);
        for (i, argument) in arguments.iter().enumerate() {
            if !self.prefix {
                let (sign, role) =
                    if i == 0 { (SymbolId::LPAREN, Role::Open) } else { (SymbolId::COMMA, Role::Separator) };
                self.take(sign, role)?;
            }
            last = self.term(argument, Role::Term)?;
            self.out.arguments.push(last);
        }
        if !self.prefix && !arguments.is_empty() {
            last = self.take(SymbolId::RPAREN, Role::Separator)?;
        }
        Some(last)
    }

    /// Whether the parenthesis here is one that the tree does not have, before a binary formula or an atom.
    fn is_redundant(&self, formula: &Formula) -> bool {
        let closing = |at: usize| self.closing.get(at).copied().unwrap_or(0);
        match formula {
            _ if self.prefix || !self.is(0, SymbolId::LPAREN) => false,
            Formula::Binary(..) => {
                self.is(1, SymbolId::LPAREN) && closing(self.at + 1) + 1 == closing(self.at)
            }
            Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => true,
            Formula::Not(_) | Formula::Quantified(..) => false,
        }
    }

    fn formula(&mut self, formula: &Formula, role: Role) -> Option<usize> {
        let last = if self.is_redundant(formula) {
            self.take(SymbolId::LPAREN, role)?;
            self.inner(formula, Role::Formula)?;
            self.take(SymbolId::RPAREN, Role::Close)?
        } else {
            self.inner(formula, role)?
        };
        self.out.ends.push(last);
        Some(last)
    }

    fn inner(&mut self, formula: &Formula, role: Role) -> Option<usize> {
        match formula {
            Formula::Truth(value) => self.take(if *value { SymbolId::TRUE } else { SymbolId::FALSE }, role),
            Formula::Predicate(predicate, arguments) => {
                self.applied(SymbolId::PRED, predicate.0, arguments, role)
            }
            Formula::Relation(relation, left, right) if self.prefix => {
                self.take(relation.symbol(), role)?;
                self.term(left, Role::Term)?;
                self.term(right, Role::Term)
            }
            Formula::Relation(relation, left, right) => {
                self.term(left, role)?;
                self.take(relation.symbol(), Role::Relation)?;
                self.term(right, Role::Term)
            }
            Formula::Not(operand) => {
                self.take(SymbolId::NOT, role)?;
                self.formula(operand, Role::Formula)
            }
            Formula::Binary(connective, left, right) if self.prefix => {
                self.take(connective.symbol(), role)?;
                let left = self.formula(left, Role::Formula)?;
                let right = self.formula(right, Role::Formula)?;
                self.out.siblings.push((right, left));
                Some(right)
            }
            Formula::Binary(connective, left, right) => {
                self.take(SymbolId::LPAREN, role)?;
                let left = self.formula(left, Role::Formula)?;
                self.take(connective.symbol(), Role::Connective)?;
                let right = self.formula(right, Role::Formula)?;
                self.out.siblings.push((right, left));
                self.take(SymbolId::RPAREN, Role::Close)
            }
            Formula::Quantified(quantifier, variable, sort, body) => {
                self.take(quantifier.symbol(), role)?;
                let name = self.name(SymbolId::VAR, variable.0, Role::Binder)?;
                let number = self.quantifiers;
                self.quantifiers += 1;
                let mut last = self.keep(Name { quantifier: Some(number), binds: true, ..name });
                if let Some(sort) = sort {
                    self.take(SymbolId::COLON, Role::Sort)?;
                    let name = self.name(SymbolId::SORT, sort.0, Role::Sort)?;
                    last = self.keep(name);
                }
                self.bound.push((variable.0, number));
                self.out.scope.get_mut(last)?.push(variable.0);
                let last = self.formula(body, Role::Formula);
                self.bound.pop();
                last
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fol::law::Law;
    use fol::notation::Tokenization;
    use seeded::test_seed;

    /// Texts of a law with their tokens in a code.
    pub(crate) fn drawn(law: &Law, code: &Code, n: u64) -> Vec<(Vec<SymbolId>, Vec<Token>)> {
        let mut sampler = fol::sample::Sampler::new(law).unwrap();
        let family = fol::sample::family("labels-test", test_seed());
        let draw = |i| {
            let mut stream = family.stream(i);
            let mut text = Vec::new();
            sampler.sample(&mut stream, &mut text);
            let (tokens, _) = code.draw(&text, &mut stream).unwrap();
            (text, tokens)
        };
        (0..n).map(draw).collect()
    }

    fn plain(text: &str) -> Labels {
        let read = fol::read::parse(text, fol::read::Source::Text, fol::read::Mode::Strict).unwrap();
        let tokens: Vec<Token> = read.tokens.iter().map(|s| Token::new(s.get())).collect();
        Labels::of(&Code::PLAIN, &tokens).unwrap()
    }

    /// Every label of one formula, by hand.
    #[test]
    fn a_formula_by_hand() {
        // <bos> ( FORALL VAR 1 PRED 2 ( VAR 1 , VAR 3 ) AND VAR 1 EQUALS VAR 3 )
        // 0     1 2      3   4 5    6 7 8   9 10 11 12 13 14 15 16 17  18  19 20
        let labels = plain("(∀x1 P2(x1, x3) ∧ x1 = x3)");
        assert_eq!(labels.depth, [0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0]);
        let bound: Vec<usize> = (0..21).filter(|&t| labels.scope[t] == [1]).collect();
        assert_eq!(bound, (4..=13).collect::<Vec<_>>());
        use Role::{
            Binder, Close, Connective, End, Formula as F, Index as I, Open, Relation, Separator as S,
            Term as T,
        };
        assert_eq!(
            labels.next,
            [F, F, Binder, I, F, I, Open, T, I, S, T, I, S, Connective, F, I, Relation, T, I, Close, End]
        );
        assert_eq!(labels.pairs, [(13, 7), (20, 1)]);
        assert_eq!(labels.arguments, [9, 12]);
        assert_eq!((labels.ends, labels.siblings), (vec![13, 19, 20], vec![(19, 13)]));
        let names: Vec<_> = labels
            .names
            .iter()
            .map(|n| (n.category.label(), n.index, n.rows.clone(), n.quantifier, n.binds))
            .collect();
        assert_eq!(
            names,
            [
                ("VAR", 1, 3..5, Some(0), true),
                ("PRED", 2, 5..7, None, false),
                ("VAR", 1, 8..10, Some(0), false),
                ("VAR", 3, 11..13, None, false),
                ("VAR", 1, 15..17, None, false),
                ("VAR", 3, 18..20, None, false),
            ]
        );
        // The inner quantifier of a name binds it; a name of two digits is one name.
        let labels = plain("∃x1 ∀x1 P0(x1)");
        assert_eq!(labels.scope.last().unwrap(), &[1, 1]);
        assert_eq!(labels.names.last().unwrap().quantifier, Some(1));
        assert_eq!(plain("P625").names[0].rows, 1..4);
    }

    /// The place behind the formula or term that begins at `at`, in infix symbols.
    fn behind(s: &[SymbolId], at: usize) -> usize {
        let digits =
            |from: usize| from + s[from..].iter().take_while(|d| d.kind() == SymbolKind::Numeral).count();
        let group = |from: usize| {
            let mut open = 0;
            for (i, &symbol) in s.iter().enumerate().skip(from) {
                open += i32::from(symbol == SymbolId::LPAREN) - i32::from(symbol == SymbolId::RPAREN);
                if open == 0 {
                    return i + 1;
                }
            }
            panic!("a parenthesis is not closed")
        };
        let term = |from: usize| {
            let end = digits(from + 1);
            if s.get(end) == Some(&SymbolId::LPAREN) { group(end) } else { end }
        };
        match s[at] {
            SymbolId::NOT => behind(s, at + 1),
            SymbolId::FORALL | SymbolId::EXISTS | SymbolId::EXISTS1 => {
                let mut from = digits(at + 2);
                if s[from] == SymbolId::COLON {
                    from = digits(from + 2);
                }
                behind(s, from)
            }
            SymbolId::LPAREN => group(at),
            SymbolId::TRUE | SymbolId::FALSE => at + 1,
            SymbolId::PRED => term(at),
            _ => term(term(at) + 1),
        }
    }

    /// Against plain scans of the symbols of random formulas.
    #[test]
    fn random_formulas_by_scanning() {
        let (mut occurrences, mut siblings) = (0, 0);
        for (name, changes) in [
            ("public", vec![]),
            ("seed", vec![]),
            ("pr", vec![]),
            ("public", vec![("names".to_owned(), "2000".to_owned())]),
            ("uniform", vec![]),
        ] {
            let law = Law::named(name, &changes).unwrap();
            for (text, tokens) in drawn(&law, &Code::PLAIN, 150) {
                let labels = Labels::of(&Code::PLAIN, &tokens).unwrap();
                let rows = text.len() + 1;
                let quantifiers: Vec<usize> =
                    (0..text.len()).filter(|&i| text[i].kind() == SymbolKind::Quantifier).collect();
                // The variable of a quantifier, and the symbols that its body stands in.
                let digits = |from: usize| {
                    text[from..]
                        .iter()
                        .take_while(|d| d.kind() == SymbolKind::Numeral)
                        .copied()
                        .collect::<Vec<_>>()
                };
                let bodies: Vec<(Vec<SymbolId>, Range<usize>)> = quantifiers
                    .iter()
                    .map(|&q| (digits(q + 2), q + 2 + digits(q + 2).len()..behind(&text, q)))
                    .collect();
                for t in 0..rows {
                    let before = &text[..t];
                    let count = |s: SymbolId| before.iter().filter(|&&x| x == s).count();
                    assert_eq!(labels.depth[t], count(SymbolId::LPAREN) - count(SymbolId::RPAREN));
                    // Row t is symbol t − 1; a scope begins one symbol before its body.
                    let holds = |r: &Range<usize>| t > 0 && (r.start..r.end + 1).contains(&t);
                    let index =
                        |digits: &[SymbolId]| digits.iter().fold(0, |n, d| n * 625 + u64::from(d.get()));
                    let inside: Vec<u64> =
                        bodies.iter().filter(|b| holds(&b.1)).map(|b| index(&b.0)).collect();
                    assert_eq!(labels.scope[t], inside, "{} at {t}", Code::PLAIN.words(&tokens));
                }
                assert_eq!(labels.next.len(), rows);
                assert_eq!(labels.next.iter().filter(|r| **r == Role::End).count(), 1);
                for (t, next) in labels.next.iter().enumerate().take(text.len()) {
                    let symbol = text[t];
                    assert_eq!(*next == Role::Index, symbol.kind() == SymbolKind::Numeral);
                    assert_eq!(
                        *next == Role::Connective,
                        symbol.kind() == SymbolKind::Connective && symbol != SymbolId::NOT
                    );
                    assert_eq!(*next == Role::Relation, symbol.kind() == SymbolKind::Relation);
                    assert_eq!(*next == Role::Binder, t > 0 && text[t - 1].kind() == SymbolKind::Quantifier);
                    if symbol == SymbolId::RPAREN {
                        assert!(matches!(next, Role::Close | Role::Separator));
                    }
                }
                for &(close, open) in &labels.pairs {
                    assert_eq!((text[close - 1], text[open - 1]), (SymbolId::RPAREN, SymbolId::LPAREN));
                    assert_eq!(labels.depth[open], labels.depth[close] + 1);
                    assert!((open..close).all(|t| labels.depth[t] > labels.depth[close]));
                }
                assert_eq!(labels.pairs.len(), text.iter().filter(|s| **s == SymbolId::LPAREN).count());
                for name in labels.names.iter().filter(|n| n.category == SymbolId::VAR && !n.binds) {
                    let at = name.rows.start - 1;
                    let own = digits(at + 1);
                    let binder = bodies.iter().rposition(|b| b.1.contains(&at) && b.0 == own);
                    assert_eq!(name.quantifier, binder);
                    occurrences += 1;
                }
                // Operands of a connective: what ends before it, and what begins behind it.
                let operands: Vec<(usize, usize)> = (0..text.len())
                    .filter(|&i| text[i].kind() == SymbolKind::Connective && text[i] != SymbolId::NOT)
                    .map(|i| (behind(&text, i + 1), i))
                    .collect();
                let mut found = labels.siblings.clone();
                found.sort_unstable_by_key(|s| s.1);
                assert_eq!(found, operands);
                siblings += found.len();
            }
        }
        assert!(occurrences > 500 && siblings > 300, "{occurrences} {siblings}");
    }

    /// Every code says the same of the same formula.
    #[test]
    fn codes_agree() {
        for (name, notation) in
            [("public", Notation::Infix), ("seed", Notation::Prefix), ("seed", Notation::Infix)]
        {
            let law = Law::named(name, &[]).unwrap();
            for tokenization in [Tokenization::Compositional, Tokenization::Atomic] {
                for doubled in [0, 30] {
                    if doubled > 0 && notation == Notation::Prefix {
                        continue;
                    }
                    let code = Code::new(tokenization, notation, &law.signature(), None).unwrap();
                    let code = code.with_doubled(doubled).unwrap();
                    let mut longer = 0;
                    for (text, tokens) in drawn(&law, &code, 100) {
                        let ids: Vec<Token> = text.iter().map(|s| Token::new(s.get())).collect();
                        let plain = Labels::of(&Code::PLAIN, &ids).unwrap();
                        let labels = Labels::of(&code, &tokens).unwrap();
                        let said = |l: &Labels| {
                            let said = |n: &Name| {
                                (n.category, n.index, n.quantifier, n.binds, l.scope[n.last()].clone())
                            };
                            l.names.iter().map(said).collect::<Vec<_>>()
                        };
                        assert_eq!(said(&plain), said(&labels));
                        assert_eq!(plain.siblings.len(), labels.siblings.len());
                        assert_eq!(plain.arguments.len(), labels.arguments.len());
                        assert_eq!(labels.depth.len(), tokens.len() + 1);
                        assert_eq!(labels.depth.last(), Some(&0));
                        if notation == Notation::Prefix {
                            assert!(labels.pairs.is_empty());
                            assert!(
                                labels
                                    .next
                                    .iter()
                                    .all(|r| !matches!(r, Role::Connective | Role::Relation | Role::Close))
                            );
                        } else {
                            assert!(labels.pairs.len() >= plain.pairs.len());
                            longer += labels.pairs.len() - plain.pairs.len();
                        }
                        // The formula and its parts end with the same names in all codes.
                        let names =
                            |l: &Labels, end: usize| l.names.iter().filter(|n| n.last() <= end).count();
                        let sides = |l: &Labels| {
                            l.siblings.iter().map(|s| (names(l, s.0), names(l, s.1))).collect::<Vec<_>>()
                        };
                        assert_eq!(sides(&plain), sides(&labels));
                    }
                    assert_eq!(longer > 0, doubled > 0);
                }
            }
        }
    }

    #[test]
    fn a_text_of_statements_has_none() {
        let read = fol::read::parse("P0 . P1", fol::read::Source::Text, fol::read::Mode::Strict).unwrap();
        let tokens: Vec<Token> = read.tokens.iter().map(|s| Token::new(s.get())).collect();
        assert!(Labels::of(&Code::PLAIN, &tokens).is_none());
    }
}
