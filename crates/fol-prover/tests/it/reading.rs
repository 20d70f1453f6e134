//! What is a question and what is none.

use fol::error::Kind;
use fol_prover::Problem;

use crate::common::{satisfiable, verdict};

#[track_caller]
fn refused(text: &str) -> (Kind, Option<(usize, usize)>) {
    let refusal = Problem::read(text).unwrap_err();
    (refusal.kind, refusal.span)
}

#[test]
fn questions() {
    let problem = Problem::read("P, Q ⊢ R").unwrap();
    assert_eq!((problem.premises().len(), problem.conclusion().is_some()), (2, true));
    assert!(Problem::read("⊢ P").unwrap().premises().is_empty());
    let problem = Problem::read("Q(x0) := P(x0) ∧ R(x0, x0). P(c). Q(c) ≡ R(c, c). Q(d) ⊢ R(c, c)").unwrap();
    assert_eq!(problem.premises().len(), 4);
}

#[test]
fn statements_before_the_sequent_are_premises() {
    assert_eq!(verdict("Q(x) := P(x) ∧ R(x, x). Q(c) ⊢ R(c, c)"), "entailed");
    assert_eq!(verdict("f(x) := g(g(x)). ⊢ f(a) = g(g(a))"), "entailed");
    assert_eq!(verdict("c1 := f(c2). P(c1) ⊢ P(f(c2))"), "entailed");
    assert_eq!(verdict("P(a) ≡ Q(a). Q(a) ⊢ P(a)"), "entailed");
    assert_eq!(verdict("P(a). ⊢ P(b)"), "refuted");
    assert_eq!(satisfiable(&["P(x) := ¬Q(x)", "P(c) ∧ Q(c)"]), "unsatisfiable");
}

#[test]
fn what_asks_nothing_is_refused() {
    assert_eq!(refused("P(x)"), (Kind::UnexpectedEnd, None));
    assert_eq!(refused("P ⊢ Q. P"), (Kind::UnexpectedEnd, None));
    assert_eq!(refused("P ⊢ <unknown>").0, Kind::UnexpectedSymbol);
    assert_eq!(refused("P ⊢ Q. P ⊢ Q").0, Kind::UnexpectedSymbol);
    assert_eq!(refused("P ⊢").0, Kind::UnexpectedEnd);
    assert_eq!(refused("P1(x1) = P2(x1) ⊢ P").0, Kind::UnexpectedSymbol);
    assert_eq!(refused("P § Q").0, Kind::UnknownCharacter);
    assert_eq!(refused("P(x) := P(x). ⊢ P(c)").0, Kind::CircularDefinition);
    assert_eq!(refused("P(x) := R(x, y). ⊢ P(c)").0, Kind::FreeInDefinition);
    assert_eq!(Problem::read_satisfiable(["P ⊢ Q"]).unwrap_err().kind, Kind::UnexpectedSymbol);
}

#[test]
fn sorts_that_contradict_are_named_where_that_is_asked() {
    let text = "∀x:S0 P(x), ∃x:S1 P(x) ⊢ ∃x P(x)";
    assert_eq!(Problem::check_sorts(text).unwrap_err().kind, Kind::SortMismatch);
    assert!(Problem::check_sorts("∀x:S0 P(x) ⊢ ∀y:S0 P(y)").is_ok());
    // Texts that are read together clash together, at the place in the later one.
    let texts = ["∀x:S0 P(x).", "Q(c)", "∀x:S1 P(x)"];
    let one = Problem::check_sorts_together(texts).unwrap_err();
    assert_eq!((one.0, one.1.kind), (2, Kind::SortMismatch));
    let (from, to) = one.1.span.unwrap();
    assert!(from < to && to <= texts[2].len() && texts[2].is_char_boundary(from), "{from} {to}");
    assert!(Problem::check_sorts_together(["∀x:S0 P(x)", "∀y:S0 P(y)"]).is_ok());
    // As guards they have a meaning all the same.
    assert_eq!(verdict(text), "entailed");
}

/// A problem written as a text and read again is the same problem.
#[test]
fn problems_are_texts() {
    for item in 0..200 {
        let shape = fol_prover::random::Shape::everything();
        let Some(problem) =
            fol_prover::random::problem(&mut crate::common::drawn("texts", item), &shape, false)
        else {
            continue;
        };
        let text = fol::print(&problem.to_text(), fol::Style::Unicode);
        assert_eq!(Problem::read(&text).unwrap(), problem, "{text}");
    }
}
