//! What tokens are to one another, known from a prefix, against the whole tree.

use std::collections::BTreeMap;

use fol::ast::{Definition, Formula, Statement, Term, Text};
use fol::notation::{Code, Entities, NodeRelation, Notation, Structure, Token, Tokenization};
use fol::symbol::SymbolId;

use crate::common::{Trees, law};
use crate::notations::{codes, laws, texts};

/// What a node is, and for a variable or a quantifier its index.
#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Text,
    Binary,
    Quantifier(u64),
    Variable(u64),
    WithArguments,
    Else,
}

/// The nodes of a text by their paths, and of each token the path of its node and the index that was read up to it, in
/// infix notation.
#[derive(Default)]
struct Walk {
    atomic: bool,
    nodes: BTreeMap<Vec<usize>, What>,
    tokens: Vec<(Vec<usize>, Option<u64>)>,
    /// Paths of the parts of the text: statement, and whether it is a conclusion.
    parts: BTreeMap<usize, (usize, bool)>,
}

impl Walk {
    fn sign(&mut self, node: &[usize]) {
        self.tokens.push((node.to_vec(), None));
    }

    fn name(&mut self, index: u64, node: &[usize]) {
        if self.atomic {
            self.tokens.push((node.to_vec(), Some(index)));
            return;
        }
        self.sign(node);
        let spelled = fol::notation::Entity { category: SymbolId::VAR, index }.symbols();
        let mut read = 0;
        for digit in &spelled[1..] {
            read = read * 625 + u64::from(digit.numeral().unwrap().get());
            self.tokens.push((node.to_vec(), Some(read)));
        }
        assert_eq!(read, index);
    }

    fn arguments(&mut self, list: &[Term], node: &[usize]) {
        for (i, term) in list.iter().enumerate() {
            self.sign(node); // LPAREN or COMMA
            self.term(term, &[node, &[i]].concat());
        }
        if !list.is_empty() {
            self.sign(node);
        }
    }

    fn term(&mut self, term: &Term, node: &[usize]) {
        let what = match term {
            Term::Variable(v) => What::Variable(v.0),
            Term::Constant(_) => What::Else,
            Term::Function(..) => What::WithArguments,
        };
        self.nodes.insert(node.to_vec(), what);
        match term {
            Term::Variable(v) => self.name(v.0, node),
            Term::Constant(c) => self.name(c.0, node),
            Term::Function(f, list) => {
                self.name(f.0, node);
                self.arguments(list, node);
            }
        }
    }

    fn formula(&mut self, formula: &Formula, node: &[usize]) {
        let child = |i: usize| [node, &[i]].concat();
        let what = match formula {
            Formula::Binary(..) => What::Binary,
            Formula::Quantified(_, v, ..) => What::Quantifier(v.0),
            Formula::Predicate(..) | Formula::Relation(..) => What::WithArguments,
            Formula::Truth(_) | Formula::Not(_) => What::Else,
        };
        self.nodes.insert(node.to_vec(), what);
        match formula {
            Formula::Truth(_) => self.sign(node),
            Formula::Predicate(p, list) => {
                self.name(p.0, node);
                self.arguments(list, node);
            }
            Formula::Relation(_, left, right) => {
                self.term(left, &child(0));
                self.sign(node);
                self.term(right, &child(1));
            }
            Formula::Not(operand) => {
                self.sign(node);
                self.formula(operand, &child(0));
            }
            Formula::Binary(_, left, right) => {
                self.sign(node);
                self.formula(left, &child(0));
                self.sign(node);
                self.formula(right, &child(1));
                self.sign(node);
            }
            Formula::Quantified(_, v, sort, body) => {
                self.sign(node);
                self.name(v.0, node);
                if let Some(sort) = sort {
                    self.sign(node);
                    self.name(sort.0, node);
                }
                self.formula(body, &child(0));
            }
        }
    }

    fn text(&mut self, text: &Text) {
        self.nodes.insert(Vec::new(), What::Text);
        let mut part = 0;
        for (number, statement) in text.statements.iter().enumerate() {
            if number > 0 {
                self.sign(&[]);
                part += 1;
            }
            self.parts.insert(part, (number, false));
            match statement {
                Statement::Formula(formula) => self.formula(formula, &[part]),
                Statement::Equivalence(left, right) => {
                    self.formula(left, &[part]);
                    self.sign(&[]);
                    part += 1;
                    self.parts.insert(part, (number, false));
                    self.formula(right, &[part]);
                }
                Statement::Sequent(_, premises, conclusion) => {
                    for (i, premise) in premises.iter().enumerate() {
                        if i > 0 {
                            self.sign(&[]);
                            part += 1;
                        }
                        self.parts.insert(part, (number, false));
                        self.formula(premise, &[part]);
                    }
                    self.sign(&[]);
                    part += usize::from(!premises.is_empty());
                    self.parts.insert(part, (number, true));
                    match conclusion {
                        Some(formula) => self.formula(formula, &[part]),
                        None => {
                            self.nodes.insert(vec![part], What::Else);
                            self.sign(&[part]);
                        }
                    }
                }
                Statement::Definition(definition) => {
                    let parameters =
                        |list: &[fol::ast::Variable]| list.iter().map(|&v| Term::Variable(v)).collect();
                    // Until DEFINE comes, a term is the left side of a relation.
                    let term = |walk: &mut Self, head: &Term| {
                        walk.nodes.insert(vec![part], What::WithArguments);
                        walk.term(head, &[part, 0]);
                    };
                    match definition {
                        Definition::Predicate(p, list, _) => {
                            self.formula(&Formula::Predicate(*p, parameters(list)), &[part]);
                        }
                        Definition::Function(f, list, _) => term(self, &Term::Function(*f, parameters(list))),
                        Definition::Constant(c, _) => term(self, &Term::Constant(*c)),
                    }
                    self.sign(&[]);
                    part += 1;
                    self.parts.insert(part, (number, false));
                    match definition {
                        Definition::Predicate(_, _, body) => self.formula(body, &[part]),
                        Definition::Function(_, _, body) | Definition::Constant(_, body) => {
                            self.term(body, &[part]);
                        }
                    }
                }
            }
        }
        if text.terminated {
            self.sign(&[]);
        }
    }

    /// The quantifier around a variable of an index.
    fn binder(&self, node: &[usize], index: Option<u64>) -> Option<&[usize]> {
        (0..node.len()).rev().find_map(|n| {
            let (path, what) = self.nodes.get_key_value(&node[..n])?;
            (Some(*what) == index.map(What::Quantifier)).then_some(path.as_slice())
        })
    }

    /// What token `j` is to token `i`, by the definitions one after the other.
    fn relation(&self, i: usize, j: usize) -> NodeRelation {
        use NodeRelation as R;
        let ((a, read), (b, _)) = (&self.tokens[i], &self.tokens[j]);
        if i == j {
            return R::Itself;
        }
        if a == b {
            return R::SameNode;
        }
        let index = |node: &[usize], read: Option<u64>| match self.nodes[node] {
            What::Variable(_) => read,
            _ => None,
        };
        let whole = match self.nodes[b] {
            What::Variable(v) => Some(v),
            _ => None,
        };
        let one = self.binder(a, index(a, *read));
        let other = self.binder(b, whole);
        if one == Some(b.as_slice()) {
            return R::Binder;
        }
        if other == Some(a.as_slice()) {
            return R::Bound;
        }
        if one.is_some() && one == other {
            return R::SameVariable;
        }
        let child_of = |lower: &[usize], upper: &[usize]| match lower.split_last() {
            Some((&child, rest)) if rest == upper => Some(child),
            _ => None,
        };
        if let Some(child) = child_of(a, b) {
            let applied = self.nodes[b] == What::WithArguments && child < 4;
            return if applied { R::ArgumentOf(child as u8) } else { R::Parent };
        }
        if let Some(child) = child_of(b, a) {
            return match (self.nodes[a], child) {
                (What::WithArguments, 0..4) => R::HasArgument(child as u8),
                (What::Binary, 0) => R::LeftOperand,
                (What::Binary, _) => R::RightOperand,
                _ => R::Child,
            };
        }
        match (a.split_last(), b.split_last()) {
            (Some((&i, one)), Some((&j, other))) if one == other => {
                if one.is_empty() {
                    let (of_a, of_b) = (self.parts[&i], self.parts[&j]);
                    if of_a == (of_b.0, true) && !of_b.1 {
                        return R::PremiseOf;
                    }
                }
                if j < i { R::LeftSibling } else { R::RightSibling }
            }
            _ => R::Other,
        }
    }
}

/// Compares every pair of tokens of a text in a code without prefix notation; returns which relations there were.
fn check(code: &Code, symbols: &[SymbolId]) -> BTreeMap<usize, usize> {
    let text = fol::decode(symbols).unwrap();
    let mut walk = Walk { atomic: code.tokenization() == Tokenization::Atomic, ..Walk::default() };
    walk.text(&text);
    let tokens = code.encode(symbols).unwrap();
    assert_eq!(walk.tokens.len(), tokens.len());
    let mut structure = Structure::new();
    let mut seen = BTreeMap::new();
    for (i, &token) in tokens.iter().enumerate() {
        structure.push(code, token);
        let found = structure.newest();
        for (j, &relation) in found.iter().enumerate() {
            let right = walk.relation(i, j);
            assert_eq!(relation, right, "{j} to {i} of {}", code.words(&tokens));
            *seen.entry(relation.number()).or_default() += 1;
        }
        assert_eq!(found.len(), i + 1);
    }
    seen
}

#[test]
fn relations_are_those_of_the_tree() {
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    for law in laws() {
        for text in texts(&law, 150) {
            for code in codes(&law).iter().filter(|code| code.notation() == Notation::Infix) {
                check(code, &text).into_iter().for_each(|(k, n)| *seen.entry(k).or_default() += n);
            }
        }
    }
    // Arguments beyond those that are told apart.
    let many = plain("∀x3 P1(x0, x3, f2(x3, x4, x5, x6, x7), c1, x9, x3)");
    let many: Vec<SymbolId> = Code::PLAIN.spell(&many).unwrap().into_iter().map(|s| s.0).collect();
    check(&Code::PLAIN, &many).into_iter().for_each(|(k, n)| *seen.entry(k).or_default() += n);
    let signature = law("public", &[]).signature();
    for item in 0..1000 {
        let text = fol::encode(&Trees::new("structure", item).text());
        check(&Code::PLAIN, &text).into_iter().for_each(|(k, n)| *seen.entry(k).or_default() += n);
        let entities = Entities::of_texts([text.as_slice()]).unwrap();
        let code = Code::new(Tokenization::Atomic, Notation::Infix, &signature, Some(entities)).unwrap();
        check(&code, &text);
    }
    // A node that is bound, or a sibling behind, comes later than what it is bound by or behind of; nothing earlier is either.
    let never = [NodeRelation::Bound, NodeRelation::RightSibling].map(NodeRelation::number);
    for number in 0..NodeRelation::COUNT {
        assert_eq!(seen.contains_key(&number), !never.contains(&number), "{number}: {seen:?}");
    }
}

/// In every code, each row is that of the prefix alone, whatever comes behind it.
#[test]
fn a_row_is_that_of_its_prefix() {
    let family = seeded::Family::named("structure-prefixes");
    for (number, law) in laws().iter().enumerate() {
        let mut s = family.stream(number as u64);
        for text in texts(law, 30) {
            for code in codes(law) {
                let tokens = code.encode(&text).unwrap();
                let cut = s.below(tokens.len() as u64 + 1) as usize;
                let rows = |tokens: &[Token]| {
                    let mut structure = Structure::new();
                    tokens
                        .iter()
                        .map(|&token| {
                            structure.push(&code, token);
                            structure.newest()
                        })
                        .collect::<Vec<_>>()
                };
                let (whole, part) = (rows(&tokens), rows(&tokens[..cut]));
                assert_eq!(whole[..cut], part[..]);
            }
        }
    }
}

fn plain(text: &str) -> Vec<Token> {
    use fol::read::{Mode, Source, parse};
    Code::PLAIN.cut(&parse(text, Source::Text, Mode::Lenient).unwrap().tokens).unwrap()
}

/// The example of the page.
#[test]
fn the_example_of_the_page() {
    use NodeRelation as R;
    let mut structure = Structure::new();
    let rows: Vec<Vec<R>> = plain("∀x1 P5(x1)")
        .into_iter()
        .map(|token| {
            structure.push(&Code::PLAIN, token);
            structure.newest()
        })
        .collect();
    assert_eq!((rows[1][0], rows[3][0], rows[7][2]), (R::SameNode, R::Parent, R::Binder));
    // Before its index is read an occurrence is bound by nothing.
    assert_eq!((rows[6][2], rows[6][3], rows[8][7]), (R::Other, R::ArgumentOf(0), R::HasArgument(0)));
    assert_eq!((structure.len(), structure.is_empty()), (9, false));
    // `<bos>` begins a text: what stood before it is nothing to it.
    structure.push(&Code::PLAIN, Code::PLAIN.boundaries()[0]);
    let row = structure.newest();
    assert!(row[..9].iter().all(|r| *r == R::Other) && row[9] == R::Itself);
    for token in plain("P5(x1)") {
        structure.push(&Code::PLAIN, token);
    }
    let row = structure.newest();
    assert_eq!((row[8], row[9], row[10]), (R::Other, R::Parent, R::SameNode));
}

/// What cannot stand somewhere is nothing to anybody, and changes nothing between the others.
#[test]
fn malformed_sequences_have_rows() {
    let code = &Code::PLAIN;
    for text in texts(&law("full", &[]), 100) {
        let tokens = code.encode(&text).unwrap();
        let (mut clean, mut mixed) = (Structure::new(), Structure::new());
        let junk = code.token(SymbolId::QUERY).unwrap();
        for &token in &tokens {
            clean.push(code, token);
            mixed.push(code, junk);
            let row = mixed.newest();
            assert!(row[..row.len() - 1].iter().all(|r| *r == NodeRelation::Other));
            mixed.push(code, token);
            let every_second: Vec<NodeRelation> = mixed.newest().into_iter().skip(1).step_by(2).collect();
            assert_eq!(every_second, clean.newest());
        }
    }
    let family = seeded::Family::named("structure-junk");
    for item in 0..300 {
        let mut s = family.stream(item);
        let mut structure = Structure::new();
        for at in 1..=60 {
            structure.push(code, Token::new(s.below(700) as u16));
            assert_eq!(structure.newest().len(), at);
        }
    }
}
