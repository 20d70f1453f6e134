//! TPTP: what is read as what, what is refused where, and writing beside reading.

use fol::ast::{
    Connective, Constant, Formula, Function, Predicate, Quantifier, Relation, Statement, Term, Text,
    Turnstile, Variable,
};
use fol::error::Kind;
use fol::tptp;
use seeded::{Family, Stream};

use crate::common::drawn;

/// A file reads as the text that another file writes out plainly.
#[track_caller]
fn check(source: &str, printed: &str) {
    let (text, _) = tptp::read(source).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(tptp::print(&text).unwrap(), printed);
}

/// The one formula `source` reads as the formula `printed`.
#[track_caller]
fn check_formula(source: &str, printed: &str) {
    check(&format!("fof(a, axiom, {source})."), &format!("fof(s1, axiom, {printed})."));
}

/// A file is refused at the bytes where `place` stands.
#[track_caller]
fn check_refused(source: &str, kind: Kind, place: &str) {
    let refusal = tptp::read(source).unwrap_err();
    let found = refusal.span.and_then(|(start, end)| source.get(start..end));
    assert_eq!((refusal.kind, found), (kind, Some(place)), "{refusal}");
}

#[test]
fn connectives() {
    check_formula("p0 <= p1", "(p1 => p0)");
    check_formula("p0 <~> p1", "~(p0 <=> p1)");
    check_formula("p0 ~| p1", "~(p0 | p1)");
    check_formula("p0 ~& p1", "~(p0 & p1)");
    check_formula("p0 & p1 & ~p2 & p3", "(((p0 & p1) & ~p2) & p3)");
    check_formula("(p0 | p1 | p2) => $false", "(((p0 | p1) | p2) => $false)");
    check_formula("~ c0 = c1", "~(c0 = c1)");
    check_formula("c0!=f1(c1)", "(c0 != f1(c1))");
    check_formula("! [X, Y] : ? [Z] : p0(X,Y,Z) & p1", "(![X0]: ![X1]: ?[X2]: p0(X0,X1,X2) & p1)");
    check_formula("![X]: X = X", "![X0]: (X0 = X0)");
    check_formula(
        "lt(c0,c1) & gt(c0,c1) & 'le'(c0,c1) & ge(c0,c1)",
        "(((lt(c0,c1) & gt(c0,c1)) & le(c0,c1)) & ge(c0,c1))",
    );
}

#[test]
fn comments_annotations_and_quotes() {
    check(
        "% a file\nfof(1, axiom, /* * ( */ 'p3', file('it''s', none), [x(1.5,\"s\",$fof(p))])\n.",
        "fof(s1, axiom, p3).",
    );
    check_refused("fof(a, axiom, p). /* no end", Kind::UnexpectedEnd, "/* no end");
    check_refused("fof('a, axiom, p).", Kind::UnexpectedEnd, "'a, axiom, p).");
}

#[test]
fn names_keep_their_numbers_or_get_the_smallest_unused_ones() {
    let source = "fof(a, axiom, ![Y]: (q(Y,f(g(c1),a)) & p0 & 'It is'(Y)) & r(v3,b)).\n\
                  fof(b, axiom, ![X3]: p2_1(X3)). fof(c, axiom, p2(c1,c1)). fof(d, axiom, f1(a) = f01(a)).";
    let (text, names) = tptp::read(source).unwrap();
    let listed = |category: &str| names[category].iter().map(|(n, i)| (n.as_str(), *i)).collect::<Vec<_>>();
    assert_eq!(listed("VAR"), [("X3", 1), ("Y", 0)]);
    assert_eq!(listed("CONST"), [("a", 0), ("b", 2)]);
    assert_eq!(listed("FUNC"), [("f", 0), ("f01", 3), ("g", 2)]);
    assert_eq!(listed("PRED"), [("'It is'", 3), ("q", 1), ("r", 4)]);
    let Some(Statement::Formula(Formula::Quantified(_, x, _, body))) = text.statements.get(1) else {
        panic!("{text:?}")
    };
    assert_eq!(*x, Variable(1), "X3 stands beside the free variable 3");
    assert_eq!(**body, Formula::Predicate(Predicate(2), vec![Term::Variable(Variable(1))]));
    assert!(text.terminated);
}

#[test]
fn a_suffix_never_merges_two_symbols() {
    check("fof(a, axiom, p5(c0) & p5_1(c0)).", "fof(s1, axiom, (p5(c0) & p0(c0))).");
    check("fof(a, axiom, p5_2(c0) & p5_1(c0)).", "fof(s1, axiom, (p0(c0) & p5(c0))).");
    check("fof(a, axiom, p5_2(c0,c0) & p5_1(c0)).", "fof(s1, axiom, (p5_2(c0,c0) & p5_1(c0))).");
}

#[test]
fn clauses_are_closed_in_order_of_first_occurrence() {
    check(
        "cnf(a, axiom, ( ~ p0(Y) | p1(X,Y) | X != f0(Z) )). cnf(b, negated_conjecture, ~(p2)). cnf(c, plain, $false).",
        "fof(s1, axiom, ![X0]: ![X1]: ![X2]: ((~p0(X0) | p1(X1,X0)) | (X1 != f0(X2)))).\n\
         fof(s2, axiom, ~p2).\nfof(s3, axiom, $false).",
    );
    check_refused("cnf(a, axiom, p & q).", Kind::UnexpectedSymbol, "&");
}

#[test]
fn a_conjecture_makes_a_sequent() {
    let (text, _) =
        tptp::read("fof(c, conjecture, q(a)). fof(h, hypothesis, p(a)). cnf(k, axiom, r).").unwrap();
    let [Statement::Sequent(Turnstile::Entails, premises, Some(_))] = text.statements.as_slice() else {
        panic!("{text:?}")
    };
    assert_eq!((premises.len(), text.terminated), (2, false));
    check_refused("fof(a, conjecture, p).\nfof(b, conjecture, q).", Kind::TptpUnsupported, "conjecture");
}

#[test]
fn refusals_with_their_places() {
    check_refused("fof(a, axiom, p & q | r).", Kind::UnexpectedSymbol, "|");
    check_refused("fof(a, axiom, p => q => r).", Kind::UnexpectedSymbol, "=>");
    check_refused("fof(a, axiom, p(X)).", Kind::FreeVariable, "X");
    check_refused("fof(a, axiom, ![X]: p(X) & q(X, Y)).", Kind::FreeVariable, "X");
    check_refused("include('a.ax').", Kind::TptpUnsupported, "include");
    check_refused("tff(a, axiom, p).", Kind::TptpUnsupported, "tff");
    check_refused("fof(a, type, p).", Kind::TptpUnsupported, "type");
    check_refused("fof(a, axiom, p(12)).", Kind::TptpUnsupported, "12");
    check_refused("fof(a, axiom, p(\"s\")).", Kind::TptpUnsupported, "\"s\"");
    check_refused("fof(a, axiom, $less(a,b)).", Kind::TptpUnsupported, "$less");
    check_refused("fof(a, axiom, ![X: $i]: p(X)).", Kind::TptpUnsupported, ":");
    check_refused("fof(a, axiom, p @ q).", Kind::TptpUnsupported, "@");
    check_refused("fof(a, axiom, [p] --> [q]).", Kind::TptpUnsupported, "[");
    check_refused("fof(a, axiom, p§).", Kind::UnknownCharacter, "§");
    check_refused("fof(a, axiom, X).", Kind::UnexpectedSymbol, ")");
    check_refused("fof(a, axiom, p()).", Kind::UnexpectedSymbol, ")");
    check_refused("fof(a, axiom, p", Kind::UnexpectedEnd, "");
    check_refused("% nothing\n", Kind::UnexpectedEnd, "");
    check_refused("fof(a, axiom, p18446744073709551616).", Kind::IndexOverflow, "p18446744073709551616");
}

#[test]
fn depth_has_a_limit_and_no_input_overflows_the_stack() {
    let read =
        |formula: String| tptp::read(&format!("fof(a, axiom, {formula}).")).map_err(|refusal| refusal.kind);
    assert!(read(format!("{}p", "~".repeat(1024))).is_ok());
    assert_eq!(read(format!("{}p", "~".repeat(1025))), Err(Kind::TooDeep));
    let right = |n: usize| format!("{}p{}", "(p & ".repeat(n), ")".repeat(n));
    assert!(read(right(1024)).is_ok());
    assert_eq!(read(right(1025)), Err(Kind::TooDeep));
    assert!(read(format!("p{}", " & p".repeat(1024))).is_ok());
    assert_eq!(read(format!("p{}", " & p".repeat(1025))), Err(Kind::TooDeep));
    let nested = |n: usize| format!("p({}c{})", "f(".repeat(n), ")".repeat(n));
    assert!(read(nested(1024)).is_ok());
    assert_eq!(read(nested(1025)), Err(Kind::TooDeep));
    for piece in ["(", "~", "![X]:", "p(", "(p & ", "p & ", "p => ", "f(", "[", "/*", "!["] {
        assert!(tptp::read(&format!("fof(a, axiom, {}", piece.repeat(100_000))).is_err());
    }
    assert_eq!(read(format!("![{}]: p", vec!["X"; 100_000].join(","))), Err(Kind::TooDeep));
}

#[test]
fn what_is_written_reads_back_as_the_same_tree() {
    let family = Family::named("fol-test:tptp:0");
    for item in 0..2000 {
        let mut draw = Draw { stream: drawn(&family, item), scope: vec![] };
        let formulas: Vec<Formula> = (0..=draw.stream.below(3)).map(|_| draw.formula(5)).collect();
        let text = if draw.stream.below(2) == 0 {
            let mut premises = formulas;
            let conclusion = premises.pop();
            Text {
                statements: vec![Statement::Sequent(Turnstile::Entails, premises, conclusion)],
                terminated: false,
            }
        } else {
            let terminated = formulas.len() > 1;
            Text { statements: formulas.into_iter().map(Statement::Formula).collect(), terminated }
        };
        let written = tptp::print(&text).unwrap();
        let (read, _) = tptp::read(&written).unwrap_or_else(|refusal| panic!("{refusal}\n{written}"));
        assert!(same_text(&text, &read), "{written}\n{read:?}");
        assert_eq!(tptp::print(&read).unwrap(), written);
    }
}

#[test]
fn random_files_are_answered() {
    const PIECES: [&str; 40] = [
        "fof",
        "cnf",
        "(",
        ")",
        "a",
        "axiom",
        "conjecture",
        ",",
        ".",
        "p",
        "X",
        "Y",
        "v1",
        "X1",
        "p1_2",
        "f(",
        "p(",
        "![X]:",
        "?[X,Y]:",
        "~",
        "&",
        "|",
        "=>",
        "<=",
        "<~>",
        "~|",
        "=",
        "!=",
        "$true",
        "$x",
        "12",
        "'q'",
        "\"",
        "%",
        "/*",
        "[",
        "]",
        ":",
        "\n",
        "fof(a,axiom,",
    ];
    let family = Family::named("fol-test:tptp:1");
    for item in 0..20_000 {
        let mut stream = drawn(&family, item);
        let length = stream.below(64);
        let pieces: String =
            (0..length).map(|_| PIECES[stream.below(PIECES.len() as u64) as usize]).collect();
        let bytes: Vec<u8> = (0..length).map(|_| stream.next_u64() as u8).collect();
        let ascii: Vec<u8> = bytes.iter().map(|b| b % 128).collect();
        for source in [pieces.into_bytes(), bytes, ascii] {
            let source = String::from_utf8_lossy(&source);
            for source in [source.to_string(), format!("fof(a,axiom,{source}).")] {
                if let Ok((text, _)) = tptp::read(&source) {
                    tptp::print(&text).unwrap();
                }
            }
        }
    }
}

/// Random formulas without sorts and ∃!, with shadowing, overloading and free variables.
struct Draw {
    stream: Stream,
    scope: Vec<Variable>,
}

impl Draw {
    fn formula(&mut self, depth: u64) -> Formula {
        let kind = if depth == 0 { self.stream.below(3) } else { self.stream.below(8) };
        match kind {
            0 | 1 => {
                let arity = self.stream.below(3);
                let predicate = Predicate(self.stream.below(3));
                Formula::Predicate(predicate, (0..arity).map(|_| self.term(2)).collect())
            }
            2 => {
                let relation = Relation::ALL[self.stream.below(6) as usize];
                Formula::Relation(relation, self.term(2), self.term(2))
            }
            3 => Formula::Not(Box::new(self.formula(depth - 1))),
            4 => Formula::Truth(self.stream.below(2) == 0),
            5 => {
                let quantifier = [Quantifier::Forall, Quantifier::Exists][self.stream.below(2) as usize];
                let x = Variable(self.stream.below(4));
                self.scope.push(x);
                let body = self.formula(depth - 1);
                self.scope.pop();
                Formula::Quantified(quantifier, x, None, Box::new(body))
            }
            _ => {
                let connective = Connective::ALL[self.stream.below(4) as usize];
                let left = Box::new(self.formula(depth - 1));
                Formula::Binary(connective, left, Box::new(self.formula(depth - 1)))
            }
        }
    }

    fn term(&mut self, depth: u64) -> Term {
        match self.stream.below(if depth == 0 { 2 } else { 3 }) {
            0 => Term::Variable(Variable(self.stream.below(5))),
            1 => Term::Constant(Constant(self.stream.below(3))),
            _ => {
                let arity = 1 + self.stream.below(2);
                let function = Function(self.stream.below(2));
                Term::Function(function, (0..arity).map(|_| self.term(depth - 1)).collect())
            }
        }
    }
}

fn same_text(left: &Text, right: &Text) -> bool {
    left.terminated == right.terminated
        && left.statements.len() == right.statements.len()
        && left.statements.iter().zip(&right.statements).all(|pair| match pair {
            (Statement::Formula(f), Statement::Formula(g)) => same(f, g, &mut vec![]),
            (Statement::Sequent(s, fs, Some(f)), Statement::Sequent(t, gs, Some(g))) => {
                s == t
                    && fs.len() == gs.len()
                    && fs.iter().zip(gs).all(|(f, g)| same(f, g, &mut vec![]))
                    && same(f, g, &mut vec![])
            }
            _ => false,
        })
}

/// Equal up to the names of bound variables: `scope` pairs the binders of both sides.
fn same(left: &Formula, right: &Formula, scope: &mut Vec<(Variable, Variable)>) -> bool {
    match (left, right) {
        (Formula::Truth(a), Formula::Truth(b)) => a == b,
        (Formula::Predicate(p, ss), Formula::Predicate(q, ts)) => p == q && same_terms(ss, ts, scope),
        (Formula::Relation(r, s1, s2), Formula::Relation(q, t1, t2)) => {
            r == q && same_term(s1, t1, scope) && same_term(s2, t2, scope)
        }
        (Formula::Not(f), Formula::Not(g)) => same(f, g, scope),
        (Formula::Binary(c, f1, f2), Formula::Binary(d, g1, g2)) => {
            c == d && same(f1, g1, scope) && same(f2, g2, scope)
        }
        (Formula::Quantified(q, x, None, f), Formula::Quantified(r, y, None, g)) => {
            scope.push((*x, *y));
            let answer = q == r && same(f, g, scope);
            scope.pop();
            answer
        }
        _ => false,
    }
}

fn same_terms(left: &[Term], right: &[Term], scope: &[(Variable, Variable)]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(s, t)| same_term(s, t, scope))
}

fn same_term(left: &Term, right: &Term, scope: &[(Variable, Variable)]) -> bool {
    match (left, right) {
        (Term::Variable(x), Term::Variable(y)) => match scope.iter().rev().find(|(a, b)| a == x || b == y) {
            Some((a, b)) => a == x && b == y,
            None => x == y,
        },
        (Term::Constant(c), Term::Constant(d)) => c == d,
        (Term::Function(f, ss), Term::Function(g, ts)) => f == g && same_terms(ss, ts, scope),
        _ => false,
    }
}
