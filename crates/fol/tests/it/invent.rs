//! Definitions that shorten a corpus, against the plain way: every generalisation of everything that stands in it, used wherever
//! that is shorter.

use std::collections::{BTreeMap, BTreeSet};

use fol::ast::{
    Connective, Constant, Definition, Formula, Function, Predicate, Statement, Term, Text, Variable,
};
use fol::canon::alpha;
use fol::error::Kind;
use fol::invent::{Definitions, Library, Options, text_of, tokens_of};
use fol::read::{Mode, Source, parse};
use fol::symbol::SymbolId;
use fol::{Style, decode, encode, print};

use crate::common::Trees;

fn formula(text: &str) -> Formula {
    parse(text, Source::Text, Mode::Strict).unwrap().text.as_formula().unwrap().clone()
}

fn definition(text: &str) -> Definition {
    match parse(text, Source::Text, Mode::Strict).unwrap().text.statements.swap_remove(0) {
        Statement::Definition(definition) => definition,
        other => panic!("{other:?}"),
    }
}

fn k1(formula: &Formula) -> Vec<SymbolId> {
    alpha(&Text::formula(formula.clone()))
}

fn tokens(formula: &Formula) -> u64 {
    k1(formula).len() as u64
}

fn all(corpus: &[Formula]) -> u64 {
    corpus.iter().map(tokens).sum()
}

fn invented(corpus: &[Formula], most: usize) -> Library {
    let mut library = Library::new(corpus);
    library.invent(&Options { most, ..Options::default() }, &mut |_| true);
    library
}

/// The example of the page: a body of 15 tokens, a use of 6, a definition of 23; three uses gain 4.
#[test]
fn three_uses_of_a_conjunction_gain_four_tokens() {
    let corpus = ["(P1(x0) ∧ P2(x0))", "∀x3 (P1(x3) ∧ P2(x3))", "¬(P1(c7) ∧ P2(c7))"].map(formula);
    let library = invented(&corpus, 20);
    let found = library.definitions();
    assert_eq!(found.len(), 1);
    assert_eq!(print(&text_of(&found[0].definition), Style::Unicode), "P0(x0) ≔ (P1(x0) ∧ P2(x0)).");
    assert_eq!((found[0].uses, found[0].gain, found[0].best), (3, 4, true));
    assert_eq!((tokens_of(&found[0].definition), tokens(&corpus[0])), (23, 15));
    assert!((4.0 * 663_f64.log2() - 37.4915).abs() < 5e-5);
    let (before, after) = library.tokens();
    assert_eq!(before - after, 4);
    let folded: Vec<String> =
        library.folded().iter().map(|f| print(&Text::formula(f.clone()), Style::Unicode)).collect();
    assert_eq!(folded, ["P0(x0)", "∀x0 P0(x0)", "¬P0(c7)"]);
    // With two uses nothing is gained.
    assert!(invented(&corpus[..2], 20).definitions().is_empty());
    assert!(invented(&[], 20).definitions().is_empty());
}

#[test]
fn functions_and_constants_are_invented_where_terms_repeat() {
    let texts = [
        "P0(f1(f2(c3, x0)))",
        "(P0(f1(f2(c3, c0))) → f1(f2(c3, x7)) = c0)",
        "P0(f1(f2(c3, f1(f2(c3, x1)))))",
    ];
    let library = invented(&texts.map(formula), 1);
    let found = &library.definitions()[0];
    assert_eq!(print(&text_of(&found.definition), Style::Unicode), "f0(x0) ≔ f1(f2(c3, x0)).");
    assert_eq!(found.uses, 5 - 1 + 1);
    let library = invented(&["P(f0(f0(c0)))"; 9].map(|t| formula(&t.replace("P(", "P0("))), 3);
    let kinds: BTreeSet<_> =
        library.definitions().iter().map(|d| matches!(d.definition, Definition::Predicate(..))).collect();
    assert!(kinds.contains(&true), "P0(f0(f0(c0))) is a predicate without parameters");
    assert!(library.folded().iter().all(|f| tokens(f) == 2));
}

/// What is always the same is a parameter where it stands in the body more often than the body in the corpus.
#[test]
fn a_parameter_may_always_be_the_same() {
    let t = "f0(f0(f0(f0(f0(c0)))))";
    let rest = "P2(c9, c8, c7, c6, c5, c4, c3, c2, c1, c9, c8, c7)";
    let corpus =
        ["¬B", "∃x0 B"].map(|text| formula(&text.replace('B', &format!("(P1({t}, {t}, {t}) ∧ {rest})"))));
    let library = invented(&corpus, 1);
    let found = &library.definitions()[0];
    let text = print(&text_of(&found.definition), Style::Unicode);
    assert_eq!(text, format!("P0(x0) ≔ (P1(x0, x0, x0) ∧ {rest})."));
    assert_eq!((found.gain, found.best), (114, true));
    round_trip(&corpus, &library);
}

/// Canonical names of more than 625 binders have two digits: what is gained is counted in what is written.
#[test]
fn gains_are_those_of_long_formulas_as_they_are_written() {
    let text = format!("{}P0(x0)", "∀x0 ".repeat(700));
    let corpus = [formula(&text), formula(&text)];
    let library = invented(&corpus, 2);
    let (before, after) = library.tokens();
    assert_eq!(before, corpus.iter().map(|f| k1(f).len() as u64).sum::<u64>());
    let folded: u64 = library.folded().iter().map(tokens).sum();
    let definitions: u64 = library.definitions().iter().map(|d| tokens_of(&d.definition)).sum();
    assert_eq!(after, folded + definitions);
    assert_eq!(library.definitions().iter().map(|d| d.gain).sum::<u64>(), before - after);
    assert!(!library.definitions().is_empty() && library.definitions().iter().all(|d| !d.best));
}

/// A bound variable is no parameter inside its binder, and a free one none that may stay.
#[test]
fn what_a_definition_may_not_speak_of_becomes_a_parameter_or_stays_out() {
    let repeated = "∃x1 (P0(x1, x5) ∧ P1(x1, x1, x1))";
    let corpus: Vec<Formula> = (0..8).map(|_| formula(repeated)).collect();
    let library = invented(&corpus, 1);
    let text = print(&text_of(&library.definitions()[0].definition), Style::Unicode);
    assert_eq!(text, "P2(x0) ≔ ∃x1 (P0(x1, x0) ∧ P1(x1, x1, x1)).");
    let under: Vec<Formula> = (0..8)
        .map(|n| formula(&format!("∀x0 ∃x1 (R(x{n}) ∧ P1(x1, x0, x0, x0, c1))").replace('R', "P0")))
        .collect();
    let library = invented(&under, 4);
    round_trip(&under, &library);
}

#[test]
fn definitions_that_are_none_are_refused() {
    let refused = |texts: &[&str]| {
        let definitions: Vec<Definition> = texts.iter().map(|t| definition(t)).collect();
        Definitions::new(&definitions).unwrap_err()
    };
    assert_eq!(refused(&["P0(x0) ≔ ¬P0(x0)"]).kind, Kind::CircularDefinition);
    assert_eq!(refused(&["P0(x0) ≔ P1(x1)"]).kind, Kind::FreeInDefinition);
    assert_eq!(refused(&["P0(x0, x0) ≔ P1(x0)"]).kind, Kind::DuplicateParameter);
    let circle = refused(&["P0(x0) ≔ P1(x0)", "P1(x0) ≔ P2(f0(x0))", "f0(x0) ≔ c1", "P2(x0) ≔ P0(x0)"]);
    assert_eq!(circle.kind, Kind::CircularDefinition);
    assert!(circle.message.contains("through P0, P1, P2"), "{}", circle.message);
    assert!(refused(&["c0 ≔ c1", "c0 ≔ c2"]).message.contains("c0 is defined twice"));
    let one = Definitions::new(&[definition("P0(x0) ≔ P1(x0)")]).unwrap();
    assert_eq!(one.expand(&formula("P0(x0, x1)")).unwrap_err().kind, Kind::ArityMismatch);
    // A parameter that stands twice doubles the whole with every level.
    let doubling: Vec<Definition> =
        (1..60).map(|n| definition(&format!("P{n}(x0) ≔ (P{}(x0) ∧ P{}(x0))", n - 1, n - 1))).collect();
    assert_eq!(Definitions::new(&doubling).unwrap_err().kind, Kind::TooLong);
    let deep: Vec<Definition> =
        (1..2000).map(|n| definition(&format!("P{n}(x0) ≔ ¬P{}(x0)", n - 1))).collect();
    assert_eq!(Definitions::new(&deep).unwrap_err().kind, Kind::TooDeep);
}

/// An argument goes under binders of the same name.
#[test]
fn expanding_captures_nothing() {
    let one = Definitions::new(&[definition("P0(x0) ≔ ∀x1 P1(x1, x0)")]).unwrap();
    let found = one.expand(&formula("∀x1 (P0(x1) ∧ P0(f0(x1, x2)))")).unwrap();
    assert_eq!(k1(&found), k1(&formula("∀x9 (∀x3 P1(x3, x9) ∧ ∀x4 P1(x4, f0(x9, x2)))")));
}

/// Expanding what was folded is the corpus again, and the tokens are as they are told.
fn round_trip(corpus: &[Formula], library: &Library) {
    let definitions: Vec<&Definition> = library.definitions().iter().map(|d| &d.definition).collect();
    let known = Definitions::new(definitions.iter().copied()).unwrap();
    let folded = library.folded();
    for (formula, folded) in corpus.iter().zip(&folded) {
        assert_eq!(k1(&known.expand(folded).unwrap()), k1(formula));
        // It is a text like any other.
        let text = Text::formula(folded.clone());
        assert_eq!(decode(&encode(&text)).unwrap(), text);
        assert_eq!(encode(&text), k1(folded));
    }
    let own: u64 = definitions.iter().map(|d| tokens_of(d)).sum();
    let (before, after) = library.tokens();
    assert_eq!(after, all(&folded) + own);
    assert_eq!(before, all(corpus));
    let gained: u64 = library.definitions().iter().map(|d| d.gain).sum();
    assert_eq!(before - after, gained);
}

#[test]
fn random_corpora_come_back() {
    let mut gained = 0;
    for case in 0..150 {
        let mut trees = Trees::new("invent", case);
        trees.names = 1 + case % 3;
        let depth = 1 + case % 4;
        // Parts that come again, in other surroundings.
        let pool: Vec<Formula> = (0..1 + case % 5).map(|_| trees.formula(depth)).collect();
        let corpus: Vec<Formula> = (0..3 + case % 20)
            .map(|_| {
                let part = Box::new(pool[trees.below(pool.len() as u64) as usize].clone());
                Formula::Binary(trees.pick(Connective::ALL), Box::new(trees.formula(depth)), part)
            })
            .collect();
        let options = Options { most: 5, arity: 1 + (case % 4) as usize, patterns: 20_000 };
        let mut library = Library::new(&corpus);
        library.invent(&options, &mut |_| true);
        round_trip(&corpus, &library);
        gained += library.definitions().len();
        for found in library.definitions() {
            assert!(found.gain > 0 && found.uses > 0, "{found:?}");
        }
    }
    assert!(gained > 50, "{gained}");
}

/// Every body that stands somewhere in a corpus, with some terms replaced by parameters.
struct Plain {
    most: usize,
    found: BTreeMap<Vec<SymbolId>, Definition>,
}

/// The terms of a formula, each with whether it has a variable that the formula binds. The paths are those of a walk.
fn parts(formula: &Formula, out: &mut Vec<Part>) {
    out.push(Part::Formula(formula.clone()));
    let mut terms = |list: &[&Term]| list.iter().for_each(|t| sub_terms(t, out));
    match formula {
        Formula::Truth(_) => {}
        Formula::Predicate(_, arguments) => terms(&arguments.iter().collect::<Vec<_>>()),
        Formula::Relation(_, s, t) => terms(&[s, t]),
        Formula::Not(of) | Formula::Quantified(_, _, _, of) => parts(of, out),
        Formula::Binary(_, a, b) => {
            parts(a, out);
            parts(b, out);
        }
    }
}

fn sub_terms(term: &Term, out: &mut Vec<Part>) {
    if !matches!(term, Term::Variable(_)) {
        out.push(Part::Term(term.clone()));
    }
    if let Term::Function(_, arguments) = term {
        arguments.iter().for_each(|t| sub_terms(t, out));
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Part {
    Formula(Formula),
    Term(Term),
}

const PARAMETER: u64 = 1 << 40;

/// All ways to put parameters for terms; those of one value may be one parameter or several. `bound` are the binders around.
fn generalised(term: &Term, bound: &[Variable], given: &[Term], most: usize) -> Vec<(Term, Vec<Term>)> {
    let mut found = Vec::new();
    let own = |t: &Term| variables(t).iter().any(|v| bound.contains(v));
    if !own(term) {
        for (n, value) in given.iter().enumerate() {
            if value == term {
                found.push((Term::Variable(Variable(PARAMETER + n as u64)), given.to_vec()));
            }
        }
        if given.len() < most {
            let next = Term::Variable(Variable(PARAMETER + given.len() as u64));
            found.push((next, [given, std::slice::from_ref(term)].concat()));
        }
    }
    match term {
        Term::Variable(v) if bound.contains(v) => found.push((term.clone(), given.to_vec())),
        Term::Variable(_) => {}
        Term::Constant(_) => found.push((term.clone(), given.to_vec())),
        Term::Function(f, arguments) => {
            for (arguments, given) in lists(arguments, bound, given, most) {
                found.push((Term::Function(*f, arguments), given));
            }
        }
    }
    found
}

fn lists(terms: &[Term], bound: &[Variable], given: &[Term], most: usize) -> Vec<(Vec<Term>, Vec<Term>)> {
    let mut found = vec![(Vec::new(), given.to_vec())];
    for term in terms {
        let mut next = Vec::new();
        for (done, given) in found {
            for (term, given) in generalised(term, bound, &given, most) {
                next.push(([done.clone(), vec![term]].concat(), given));
            }
        }
        found = next;
    }
    found
}

fn generalised_formula(
    formula: &Formula,
    bound: &[Variable],
    given: &[Term],
    most: usize,
) -> Vec<(Formula, Vec<Term>)> {
    match formula {
        Formula::Truth(_) => vec![(formula.clone(), given.to_vec())],
        Formula::Predicate(p, arguments) => {
            let found = lists(arguments, bound, given, most).into_iter();
            found.map(|(arguments, given)| (Formula::Predicate(*p, arguments), given)).collect()
        }
        Formula::Relation(relation, s, t) => {
            let found = lists(&[s.clone(), t.clone()], bound, given, most).into_iter();
            found
                .map(|(mut l, given)| {
                    let t = l.pop().unwrap();
                    (Formula::Relation(*relation, l.pop().unwrap(), t), given)
                })
                .collect()
        }
        Formula::Not(of) => {
            let found = generalised_formula(of, bound, given, most).into_iter();
            found.map(|(of, given)| (Formula::Not(Box::new(of)), given)).collect()
        }
        Formula::Binary(c, a, b) => {
            let mut found = Vec::new();
            for (a, given) in generalised_formula(a, bound, given, most) {
                for (b, given) in generalised_formula(b, bound, &given, most) {
                    found.push((Formula::Binary(*c, Box::new(a.clone()), Box::new(b)), given));
                }
            }
            found
        }
        Formula::Quantified(q, x, sort, body) => {
            let bound = [bound, &[*x]].concat();
            let found = generalised_formula(body, &bound, given, most).into_iter();
            found.map(|(body, given)| (Formula::Quantified(*q, *x, *sort, Box::new(body)), given)).collect()
        }
    }
}

fn variables(term: &Term) -> BTreeSet<Variable> {
    match term {
        Term::Variable(v) => BTreeSet::from([*v]),
        Term::Constant(_) => BTreeSet::new(),
        Term::Function(_, arguments) => arguments.iter().flat_map(variables).collect(),
    }
}

impl Plain {
    fn add(&mut self, part: &Part) {
        let parameters = |n: usize| (0..n as u64).map(|n| Variable(PARAMETER + n)).collect::<Vec<_>>();
        let definitions: Vec<Definition> = match part {
            Part::Formula(formula) => generalised_formula(formula, &[], &[], self.most)
                .into_iter()
                .map(|(body, given)| Definition::Predicate(Predicate(90), parameters(given.len()), body))
                .collect(),
            Part::Term(term) => generalised(term, &[], &[], self.most)
                .into_iter()
                .filter(|(body, _)| !matches!(body, Term::Variable(_)))
                .map(|(body, given)| match given.len() {
                    0 => Definition::Constant(Constant(90), body),
                    n => Definition::Function(Function(90), parameters(n), body),
                })
                .collect(),
        };
        for definition in definitions {
            self.found.entry(alpha(&text_of(&definition))).or_insert(definition);
        }
    }
}

/// The fewest tokens of a part with a definition in use, on trees whose binders all have names of their own.
fn fewest(part: &Part, definition: &Definition) -> u64 {
    let terms = |list: &[Term]| -> u64 {
        let inside: u64 = list.iter().map(|t| fewest(&Part::Term(t.clone()), definition)).sum();
        if list.is_empty() { 0 } else { inside + 1 + list.len() as u64 }
    };
    let named = |n: u64| 1 + fol_digits(n);
    let of = |f: &Formula| fewest(&Part::Formula(f.clone()), definition);
    let plain = match part {
        Part::Formula(Formula::Truth(_)) => 1,
        Part::Formula(Formula::Predicate(p, list)) => named(p.0) + terms(list),
        Part::Formula(Formula::Relation(_, s, t)) => terms(&[s.clone(), t.clone()]) - 3 + 1,
        Part::Formula(Formula::Not(f)) => 1 + of(f),
        Part::Formula(Formula::Binary(_, a, b)) => 3 + of(a) + of(b),
        Part::Formula(Formula::Quantified(_, _, sort, f)) => 3 + sort.map_or(0, |s| 1 + named(s.0)) + of(f),
        Part::Term(Term::Variable(v)) => named(v.0),
        Part::Term(Term::Constant(c)) => named(c.0),
        Part::Term(Term::Function(f, list)) => named(f.0) + terms(list),
    };
    let mut given: BTreeMap<Variable, Term> = BTreeMap::new();
    let (fits, arity) = match (part, definition) {
        (Part::Formula(f), Definition::Predicate(_, p, body)) => {
            (same(body, f, &mut Vec::new(), &mut given), p.len())
        }
        (Part::Term(t), Definition::Function(_, p, body)) => (same_term(body, t, &[], &mut given), p.len()),
        (Part::Term(t), Definition::Constant(_, body)) => (same_term(body, t, &[], &mut given), 0),
        _ => (false, 0),
    };
    if !fits || given.len() != arity {
        return plain;
    }
    let arguments: Vec<Term> = given.into_values().collect();
    plain.min(2 + terms(&arguments))
}

fn fol_digits(n: u64) -> u64 {
    encode(&Text::formula(Formula::Predicate(Predicate(n), Vec::new()))).len() as u64 - 1
}

fn same_term(
    body: &Term,
    term: &Term,
    pairs: &[(Variable, Variable)],
    given: &mut BTreeMap<Variable, Term>,
) -> bool {
    match (body, term) {
        (Term::Variable(v), _) if v.0 >= PARAMETER => {
            if variables(term).iter().any(|x| pairs.iter().any(|(_, bound)| bound == x)) {
                return false;
            }
            given.entry(*v).or_insert_with(|| term.clone()) == term
        }
        (Term::Variable(a), Term::Variable(b)) => pairs.contains(&(*a, *b)),
        (Term::Constant(a), Term::Constant(b)) => a == b,
        (Term::Function(f, a), Term::Function(g, b)) => {
            f == g && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_term(a, b, pairs, given))
        }
        _ => false,
    }
}

fn same(
    body: &Formula,
    formula: &Formula,
    pairs: &mut Vec<(Variable, Variable)>,
    given: &mut BTreeMap<Variable, Term>,
) -> bool {
    match (body, formula) {
        (Formula::Truth(a), Formula::Truth(b)) => a == b,
        (Formula::Predicate(p, a), Formula::Predicate(q, b)) => {
            p == q && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_term(a, b, pairs, given))
        }
        (Formula::Relation(p, a, b), Formula::Relation(q, c, d)) => {
            p == q && same_term(a, c, pairs, given) && same_term(b, d, pairs, given)
        }
        (Formula::Not(a), Formula::Not(b)) => same(a, b, pairs, given),
        (Formula::Binary(p, a, b), Formula::Binary(q, c, d)) => {
            p == q && same(a, c, pairs, given) && same(b, d, pairs, given)
        }
        (Formula::Quantified(p, x, s, a), Formula::Quantified(q, y, t, b)) => {
            pairs.push((*x, *y));
            let fits = p == q && s == t && same(a, b, pairs, given);
            pairs.pop();
            fits
        }
        _ => false,
    }
}

#[test]
fn the_best_definition_of_small_corpora_is_that_of_the_plain_way() {
    let (mut some, mut cases) = (0, 0);
    for case in 0..120 {
        let mut trees = Trees::new("invent/plain", case);
        trees.names = 1;
        let most = 1 + (case % 2) as usize;
        // Little enough for the plain way, and repeated with other names in some places.
        let mut corpus: Vec<Formula> = Vec::new();
        while corpus.len() < 4 {
            let made = trees.formula(2);
            if tokens(&made) < 22 {
                corpus.extend((0..1 + trees.below(3)).map(|_| made.clone()));
            }
        }
        if case % 3 == 0 {
            // One thing that stands in one place of the corpus, and there often.
            let t = ["f0(f0(c0))", "f1(c0, c1)", "f0(f0(f0(c0)))", "f0(c0)"][(case / 3) as usize % 4];
            let atom = ["P8(t, t, t)", "(P8(t, t) → P9(t))", "¬P8(t, x0, t, t)", "P8(t, t, f0(t), t)"];
            corpus.truncate(1 + (case / 6 % 2) as usize);
            corpus.push(formula(&atom[(case / 12) as usize % 4].replace('t', t)));
        }
        // Names of binders that are all different, as both ways have them.
        let corpus: Vec<Formula> =
            corpus.iter().map(|f| decode(&k1(f)).unwrap().as_formula().unwrap().clone()).collect();
        let mut plain = Plain { most, found: BTreeMap::new() };
        let mut everything = Vec::new();
        corpus.iter().for_each(|f| parts(f, &mut everything));
        everything.iter().for_each(|part| plain.add(part));
        if plain.found.len() > 4000 {
            continue;
        }
        cases += 1;
        let before = all(&corpus) as i64;
        let gain = |definition: &Definition| {
            let after: u64 = corpus.iter().map(|f| fewest(&Part::Formula(f.clone()), definition)).sum();
            before - after as i64 - alpha(&text_of(definition)).len() as i64
        };
        let best = plain.found.values().map(gain).max().unwrap_or(0);
        let library = Library::new(&corpus);
        let found = library.propose(&Options { most: 1, arity: most, patterns: u64::MAX }, &mut |_| true);
        let texts: Vec<String> =
            corpus.iter().map(|f| print(&Text::formula(f.clone()), Style::Unicode)).collect();
        assert_eq!(found.as_ref().map_or(0, |p| p.gain() as i64), best.max(0), "{texts:#?}");
        some += u64::from(best > 0);
    }
    assert!(cases > 60 && some > 10, "{cases} {some}");
}

/// The digits of a name that stands in no random formula.
const DIGITS: [u16; 3] = [617, 3, 611];
const MARK: u64 = (617 * 625 + 3) * 625 + 611;

/// Every part of a formula, and the formula with a mark in its place.
fn marked(formula: &Formula, whole: &dyn Fn(Formula) -> Formula, out: &mut Vec<(Part, Formula)>) {
    out.push((Part::Formula(formula.clone()), whole(Formula::Predicate(Predicate(MARK), Vec::new()))));
    let inside = |list: &[Term], put: &dyn Fn(Vec<Term>) -> Formula, out: &mut Vec<(Part, Formula)>| {
        for (at, term) in list.iter().enumerate() {
            let with = |term: Term| {
                let mut list = list.to_vec();
                list[at] = term;
                whole(put(list))
            };
            marked_term(term, &with, out);
        }
    };
    match formula {
        Formula::Truth(_) => {}
        Formula::Predicate(p, list) => inside(list, &|list| Formula::Predicate(*p, list), out),
        Formula::Relation(r, s, t) => {
            inside(&[s.clone(), t.clone()], &|l| Formula::Relation(*r, l[0].clone(), l[1].clone()), out);
        }
        Formula::Not(of) => marked(of, &|f| whole(Formula::Not(Box::new(f))), out),
        Formula::Quantified(q, x, sort, of) => {
            marked(of, &|f| whole(Formula::Quantified(*q, *x, *sort, Box::new(f))), out);
        }
        Formula::Binary(c, a, b) => {
            marked(a, &|f| whole(Formula::Binary(*c, Box::new(f), b.clone())), out);
            marked(b, &|f| whole(Formula::Binary(*c, a.clone(), Box::new(f))), out);
        }
    }
}

fn marked_term(term: &Term, whole: &dyn Fn(Term) -> Formula, out: &mut Vec<(Part, Formula)>) {
    out.push((Part::Term(term.clone()), whole(Term::Constant(Constant(MARK)))));
    if let Term::Function(f, list) = term {
        for (at, term) in list.iter().enumerate() {
            let with = |term: Term| {
                let mut list = list.clone();
                list[at] = term;
                whole(Term::Function(*f, list))
            };
            marked_term(term, &with, out);
        }
    }
}

/// Whether two parts have the same outermost sign.
fn alike(a: &Part, b: &Part) -> bool {
    match (a, b) {
        (Part::Formula(a), Part::Formula(b)) => match (a, b) {
            (Formula::Truth(a), Formula::Truth(b)) => a == b,
            (Formula::Predicate(p, _), Formula::Predicate(q, _)) => p == q,
            (Formula::Relation(r, ..), Formula::Relation(s, ..)) => r == s,
            (Formula::Not(_), Formula::Not(_)) => true,
            (Formula::Binary(c, ..), Formula::Binary(d, ..)) => c == d,
            (Formula::Quantified(q, _, s, _), Formula::Quantified(r, _, t, _)) => (q, s) == (r, t),
            _ => false,
        },
        (Part::Term(a), Part::Term(b)) => match (a, b) {
            (Term::Constant(a), Term::Constant(b)) => a == b,
            (Term::Function(f, _), Term::Function(g, _)) => f == g,
            _ => false,
        },
        _ => false,
    }
}

/// Where a definition could stand, by marks, and where it does, by all generalisations of what stands there.
#[test]
fn places_of_definitions_are_those_of_marks() {
    let (mut compared, mut instances, mut nested) = (0, 0, 0);
    for case in 0..120 {
        let mut trees = Trees::new("places", case);
        trees.names = 1 + case % 2;
        let pool: Vec<Formula> = (0..1 + case % 3).map(|_| trees.formula(1 + case % 3)).collect();
        let corpus: Vec<Formula> = (0..8)
            .map(|_| {
                let part = Box::new(pool[trees.below(pool.len() as u64) as usize].clone());
                let other = match trees.below(2) {
                    0 => Box::new(Formula::Not(part.clone())),
                    _ => Box::new(trees.formula(2)),
                };
                Formula::Binary(trees.pick(Connective::ALL), other, part)
            })
            .collect();
        let mut library = Library::new(&corpus);
        library.invent(&Options { most: 4, arity: 2, patterns: 20_000 }, &mut |_| true);
        let definitions: Vec<&Definition> = library.definitions().iter().map(|d| &d.definition).collect();
        let known = Definitions::new(definitions.iter().copied()).unwrap();
        for (number, definition) in definitions.iter().enumerate() {
            // The body without other definitions, under the name of the plain way.
            let (body, renamed) = match definition {
                Definition::Predicate(_, parameters, short) => {
                    let body = known.expand(short).unwrap();
                    nested += usize::from(tokens(&body) > tokens(short));
                    let renamed = Definition::Predicate(Predicate(90), parameters.clone(), body.clone());
                    (Part::Formula(body), renamed)
                }
                // Terms are expanded inside a formula.
                Definition::Function(_, parameters, body) => {
                    let body = expanded(&known, body);
                    (Part::Term(body.clone()), Definition::Function(Function(90), parameters.clone(), body))
                }
                Definition::Constant(_, body) => {
                    let body = expanded(&known, body);
                    (Part::Term(body.clone()), Definition::Constant(Constant(90), body))
                }
            };
            let wanted = alpha(&text_of(&renamed));
            for formula in corpus.iter().filter(|f| tokens(f) < 80) {
                let mut all = Vec::new();
                marked(formula, &|f| f, &mut all);
                let mut expected = BTreeMap::new();
                for (part, with) in all.iter().filter(|(part, _)| alike(part, &body)) {
                    let text = k1(with);
                    let is_mark = |three: &[SymbolId]| three.iter().map(|s| s.get()).eq(DIGITS);
                    let mark = text.windows(3).position(is_mark).unwrap();
                    let last = k1(formula).len() - (text.len() - (mark + 2));
                    let mut plain = Plain { most: 2, found: BTreeMap::new() };
                    plain.add(part);
                    *expected.entry(last).or_insert(false) |= plain.found.contains_key(&wanted);
                }
                let found = known.places(definition, formula).unwrap();
                assert_eq!(found, expected, "case {case}, {number}: {definition:?} in {formula:?}");
                compared += found.len();
                instances += found.values().filter(|is| **is).count();
            }
        }
    }
    assert!(compared > 500 && instances > 200 && nested > 0, "{compared} {instances} {nested}");
}

/// What is not defined has no places, and neither has a formula that is too long to count its names.
#[test]
fn places_that_cannot_be_told_are_refused() {
    let own = definition("P0(x0) ≔ ¬P1(x0)");
    let known = Definitions::new([&own]).unwrap();
    let places = |formula: &Formula| known.places(&own, formula);
    assert_eq!(places(&formula("(¬P1(c0) ∧ ¬¬P1(x7))")), Ok(BTreeMap::from([(7, true), (16, true)])));
    let other = known.places(&definition("P5(x0) ≔ P1(x0)"), &formula("P1(c0)")).unwrap_err();
    assert_eq!((other.kind, other.message.as_str()), (Kind::NotInSignature, "P5 is not defined here"));
    // 624 tokens, and one more.
    let most = formula(&format!("{}P1(c0)", "¬".repeat(618)));
    assert_eq!(places(&most).unwrap(), BTreeMap::from([(623, true)]));
    assert_eq!(places(&Formula::Not(Box::new(most))).unwrap_err().kind, Kind::TooLong);
}

/// A term without definitions.
fn expanded(known: &Definitions, term: &Term) -> Term {
    match known.expand(&Formula::Predicate(Predicate(MARK), vec![term.clone()])).unwrap() {
        Formula::Predicate(_, mut terms) => terms.remove(0),
        other => panic!("{other:?}"),
    }
}
