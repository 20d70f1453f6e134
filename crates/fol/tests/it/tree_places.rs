//! The place of the next token in the tree, known from a prefix, against a walk of the whole tree.

use fol::ast::{Definition, Formula, Statement, Term, Text};
use fol::law::Law;
use fol::notation::{Code, Entities, Notation, Token, Tokenization, TreePlace};
use fol::symbol::{Numeral, SymbolId};

use crate::common::{Trees, law};
use crate::notations::{codes, laws, texts};

type Place = (Vec<usize>, usize);

/// A node: its path, and how many of its tokens were written.
type Node = (Vec<usize>, usize);

/// The tokens of a text, written by a walk of its tree, each with the place that a prefix can know of it; none where a
/// further digit stands.
struct Walk {
    prefix: bool,
    atomic: bool,
    out: Vec<(Vec<SymbolId>, Option<Place>)>,
    /// Behind a predicate without arguments in infix notation its LPAREN is expected, whatever comes.
    instead: Option<Place>,
}

impl Walk {
    fn put(&mut self, symbols: &[SymbolId], node: &mut Node) {
        let place = self.instead.take().unwrap_or_else(|| node.clone());
        self.out.push((symbols.to_vec(), Some(place)));
        node.1 += 1;
    }

    fn sign(&mut self, symbol: SymbolId, node: &mut Node) {
        self.put(&[symbol], node);
    }

    /// What a prefix expects at the token that was written as number `at`.
    fn expect(&mut self, at: usize, place: Place) {
        self.out[at].1 = Some(place);
    }

    fn name(&mut self, category: SymbolId, index: u64, node: &mut Node) {
        let entity = fol::notation::Entity { category, index }.symbols();
        if self.atomic {
            return self.put(&entity, node);
        }
        self.sign(entity[0], node);
        self.sign(entity[1], node);
        self.out.extend(entity[2..].iter().map(|&digit| (vec![digit], None)));
    }

    fn infix(&mut self, symbol: SymbolId, node: &mut Node) {
        if !self.prefix {
            self.sign(symbol, node);
        }
    }

    fn arguments(&mut self, number: usize, node: &mut Node, mut each: impl FnMut(&mut Self, usize, Node)) {
        for i in 0..number {
            self.infix(if i == 0 { SymbolId::LPAREN } else { SymbolId::COMMA }, node);
            each(self, i, child(node, i));
        }
        if number > 0 {
            self.infix(SymbolId::RPAREN, node);
        }
    }

    fn term(&mut self, term: &Term, mut node: Node) {
        match term {
            Term::Variable(v) => self.name(SymbolId::VAR, v.0, &mut node),
            Term::Constant(c) => self.name(SymbolId::CONST, c.0, &mut node),
            Term::Function(f, list) => {
                self.name(SymbolId::FUNC, f.0, &mut node);
                self.arguments(list.len(), &mut node, |walk, i, node| walk.term(&list[i], node));
            }
        }
    }

    fn formula(&mut self, formula: &Formula, mut node: Node) {
        let node = &mut node;
        match formula {
            Formula::Truth(t) => self.sign(if *t { SymbolId::TRUE } else { SymbolId::FALSE }, node),
            Formula::Predicate(p, list) => {
                self.name(SymbolId::PRED, p.0, node);
                self.arguments(list.len(), node, |walk, i, node| walk.term(&list[i], node));
                if list.is_empty() && !self.prefix {
                    self.instead = Some(node.clone());
                }
            }
            Formula::Relation(relation, left, right) => {
                if self.prefix {
                    self.sign(relation.symbol(), node);
                    self.term(left, child(node, 0));
                } else {
                    let at = self.out.len();
                    self.term(left, child(node, 0));
                    self.expect(at, node.clone());
                    self.sign(relation.symbol(), node);
                }
                self.term(right, child(node, 1));
            }
            Formula::Not(operand) => {
                self.sign(SymbolId::NOT, node);
                self.formula(operand, child(node, 0));
            }
            Formula::Binary(connective, left, right) => {
                if self.prefix {
                    self.sign(connective.symbol(), node);
                    self.formula(left, child(node, 0));
                } else {
                    self.sign(SymbolId::LPAREN, node);
                    self.formula(left, child(node, 0));
                    self.sign(connective.symbol(), node);
                }
                self.formula(right, child(node, 1));
                self.infix(SymbolId::RPAREN, node);
            }
            Formula::Quantified(quantifier, variable, sort, body) => {
                self.sign(quantifier.symbol(), node);
                self.name(SymbolId::VAR, variable.0, node);
                if let Some(sort) = sort {
                    let at = self.out.len();
                    self.sign(SymbolId::COLON, node);
                    self.expect(at, child(node, 0));
                    self.name(SymbolId::SORT, sort.0, node);
                }
                self.formula(body, child(node, 0));
            }
        }
    }

    /// The place behind the text.
    fn text(&mut self, text: &Text) -> Place {
        let (mut root, mut part): (Node, usize) = ((Vec::new(), 0), 0);
        let root = &mut root;
        for (i, statement) in text.statements.iter().enumerate() {
            if i > 0 {
                self.sign(SymbolId::DOT, root);
                part += 1;
            }
            match statement {
                Statement::Formula(formula) => self.formula(formula, child(root, part)),
                Statement::Equivalence(left, right) => {
                    self.formula(left, child(root, part));
                    self.sign(SymbolId::EQUIVALENT, root);
                    part += 1;
                    self.formula(right, child(root, part));
                }
                Statement::Sequent(turnstile, premises, conclusion) => {
                    for (i, premise) in premises.iter().enumerate() {
                        let behind = self.instead.clone().unwrap_or_else(|| root.clone());
                        if i > 0 {
                            self.infix(SymbolId::COMMA, root);
                            part += 1;
                        }
                        let at = self.out.len();
                        self.formula(premise, child(root, part));
                        if i > 0 && self.prefix {
                            self.expect(at, behind);
                        }
                    }
                    let at = self.out.len();
                    self.sign(turnstile.symbol(), root);
                    if premises.is_empty() {
                        self.expect(at, child(root, part));
                    } else {
                        part += 1;
                    }
                    match conclusion {
                        Some(formula) => self.formula(formula, child(root, part)),
                        None => self.sign(SymbolId::UNKNOWN, &mut child(root, part)),
                    }
                }
                Statement::Definition(definition) => {
                    self.head(definition, root, part);
                    part += 1;
                    match definition {
                        Definition::Predicate(_, _, body) => self.formula(body, child(root, part)),
                        Definition::Function(_, _, body) | Definition::Constant(_, body) => {
                            self.term(body, child(root, part));
                        }
                    }
                }
            }
        }
        if text.terminated {
            self.sign(SymbolId::DOT, root);
            return child(root, part + 1);
        }
        self.instead.take().unwrap_or_else(|| root.clone())
    }

    /// The head of a definition, and DEFINE.
    fn head(&mut self, definition: &Definition, root: &mut Node, part: usize) {
        let whole = child(root, part);
        let parameters: Vec<Term> = match definition {
            Definition::Predicate(_, list, _) | Definition::Function(_, list, _) => {
                list.iter().map(|&v| Term::Variable(v)).collect()
            }
            Definition::Constant(..) => Vec::new(),
        };
        let head = match definition {
            Definition::Predicate(p, ..) => {
                self.formula(&Formula::Predicate(*p, parameters), whole);
                return self.sign(SymbolId::DEFINE, root);
            }
            Definition::Function(f, ..) => Term::Function(*f, parameters),
            Definition::Constant(c, _) => Term::Constant(*c),
        };
        if self.prefix {
            self.term(&head, whole);
            return self.sign(SymbolId::DEFINE, root);
        }
        // As if it were the left side of a relation, until DEFINE comes.
        let at = self.out.len();
        self.term(&head, child(&whole, 0));
        self.expect(at, whole.clone());
        let at = self.out.len();
        self.sign(SymbolId::DEFINE, root);
        self.expect(at, whole);
    }
}

fn child(node: &Node, number: usize) -> Node {
    ([node.0.as_slice(), &[number]].concat(), 0)
}

fn place(tree: &TreePlace) -> Place {
    (tree.path().collect(), tree.inside())
}

/// Compares every place of a text in a code; returns how many there were.
fn check(code: &Code, symbols: &[SymbolId]) -> usize {
    let text = fol::decode(symbols).unwrap();
    let (prefix, atomic) = (code.notation() == Notation::Prefix, code.tokenization() == Tokenization::Atomic);
    let mut walk = Walk { prefix, atomic, out: Vec::new(), instead: None };
    let end = walk.text(&text);
    let tokens = code.encode(symbols).unwrap();
    assert_eq!(walk.out.len(), tokens.len());
    let mut tree = TreePlace::new();
    tree.push(code, tokens[0]); // of another text: `<bos>` begins a new one
    tree.push(code, code.boundaries()[0]);
    for (at, (&token, (wanted, expected))) in tokens.iter().zip(&walk.out).enumerate() {
        let spelled: Vec<SymbolId> = code.spell(&[token]).unwrap().iter().map(|s| s.0).collect();
        assert_eq!(&spelled, wanted);
        if let Some(expected) = expected {
            assert_eq!(&place(&tree), expected, "token {at} of {}", code.words(&tokens));
        }
        tree.push(code, token);
    }
    assert_eq!(place(&tree), end, "the end of {}", code.words(&tokens));
    let before = tree.clone();
    tree.push(code, code.boundaries()[1]);
    assert_eq!(tree, before);
    tokens.len()
}

#[test]
fn places_are_those_of_the_tree() {
    let mut places = 0;
    for law in laws() {
        for text in texts(&law, 400) {
            places += codes(&law).iter().map(|code| check(code, &text)).sum::<usize>();
        }
    }
    assert!(places > 200_000, "{places}");
}

/// Any tree: deep, with lists of any length, of names of any size, in texts of any statements.
#[test]
fn places_of_random_trees() {
    let signature = law("public", &[]).signature();
    for item in 0..2000 {
        let text = fol::encode(&Trees::new("tree-places", item).text());
        check(&Code::PLAIN, &text);
        let entities = Entities::of_texts([text.as_slice()]).unwrap();
        let code = Code::new(Tokenization::Atomic, Notation::Infix, &signature, Some(entities)).unwrap();
        check(&code, &text);
    }
}

fn plain(text: &str) -> Vec<Token> {
    use fol::read::{Mode, Source, parse};
    Code::PLAIN.cut(&parse(text, Source::Text, Mode::Lenient).unwrap().tokens).unwrap()
}

/// The example of N18 to N20.
#[test]
fn the_example_of_the_page() {
    let mut tree = TreePlace::new();
    let mut found = vec![place(&tree)];
    for token in plain("∀x1 P5(x1)") {
        tree.push(&Code::PLAIN, token);
        found.push(place(&tree));
    }
    let right: [(&[usize], usize); 10] = [
        (&[0], 0),
        (&[0], 1),
        (&[0], 2),
        (&[0, 0], 0),
        (&[0, 0], 1),
        (&[0, 0], 2),
        (&[0, 0, 0], 0),
        (&[0, 0, 0], 1),
        (&[0, 0], 3),
        (&[], 0),
    ];
    assert_eq!(found, right.map(|(path, inside)| (path.to_vec(), inside)));
}

/// A redundant pair is a node of its own, with one child.
#[test]
fn redundant_parentheses() {
    let code = Code::PLAIN.with_doubled(99).unwrap();
    let mut tree = TreePlace::new();
    let symbols = [SymbolId::LPAREN, SymbolId::LPAREN, SymbolId::TRUE, SymbolId::RPAREN];
    let paths: Vec<Place> = symbols
        .into_iter()
        .chain([SymbolId::AND, SymbolId::FALSE, SymbolId::RPAREN])
        .map(|symbol| {
            tree.push(&code, code.token(symbol).unwrap());
            place(&tree)
        })
        .collect();
    let right: [(&[usize], usize); 7] =
        [(&[0, 0], 0), (&[0, 0, 0], 0), (&[0, 0], 1), (&[0], 1), (&[0, 1], 0), (&[0], 2), (&[], 0)];
    assert_eq!(paths, right.map(|(path, inside)| (path.to_vec(), inside)));
}

/// What cannot stand somewhere changes nothing there, and no sequence is without places.
#[test]
fn malformed_sequences_have_places() {
    let family = seeded::Family::named("malformed");
    let laws: Vec<Law> = laws();
    for (number, law) in laws.iter().enumerate() {
        let mut s = family.stream(number as u64);
        for (text, code) in texts(law, 60).iter().zip(codes(law).iter().cycle()) {
            let tokens = code.encode(text).unwrap();
            let (mut tree, mut clean) = (TreePlace::new(), TreePlace::new());
            for &token in &tokens {
                for junk in [SymbolId::PAD, SymbolId::EOS, SymbolId::QUERY] {
                    tree.push(code, code.token(junk).unwrap());
                    assert_eq!(tree, clean);
                }
                tree.push(code, token);
                clean.push(code, token);
                assert_eq!(tree, clean);
            }
            // Anything at all, beyond the vocabulary, too: at most one node and one implied relation for each token.
            for read in 0..300 {
                let junk = s.below(code.size() as u64 + 3) as u16;
                let symbol = |s: u16| code.token(SymbolId::new(625 + s)?);
                let sign = symbol(s.below(30) as u16).unwrap_or(Token::new(junk));
                tree.push(code, if s.below(2) == 0 { sign } else { Token::new(junk) });
                let (path, inside) = place(&tree);
                assert!(path.len() <= 2 * (tokens.len() + read + 2) && inside <= tokens.len() + read + 1);
            }
        }
    }
    // Digits without end.
    let law = law("seed", &[]);
    let code = Code::new(Tokenization::Compositional, Notation::Prefix, &law.signature(), None).unwrap();
    let mut tree = TreePlace::new();
    tree.push(&code, code.token(SymbolId::PRED).unwrap());
    for _ in 0..50 {
        tree.push(&code, code.token(Numeral::new(7).unwrap().symbol()).unwrap());
    }
    assert_eq!(place(&tree), (Vec::new(), 0));
}
