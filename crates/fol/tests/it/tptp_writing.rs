//! How texts are written in TPTP.

use fol::error::{Kind, Refusal};
use fol::read::{Mode, Source, parse};
use fol::tptp;

fn written(text: &str) -> Result<String, Refusal> {
    tptp::print(&parse(text, Source::Text, Mode::Lenient).unwrap().text)
}

#[track_caller]
fn check(text: &str, tptp: &str) {
    assert_eq!(written(text).unwrap(), tptp);
}

#[track_caller]
fn check_formula(text: &str, tptp: &str) {
    check(text, &format!("fof(s1, axiom, {tptp})."));
}

#[test]
fn bound_variables_are_renamed_apart_and_free_ones_are_constants() {
    check_formula("∀x1 (∃x1 P5(x1, x7) → P6(x1))", "![X0]: (?[X1]: p5(X1,v7) => p6(X0))");
}

#[test]
fn exists_one_is_written_out_with_its_own_further_variables() {
    check_formula(
        "∃!x1 ∃x2 P0(x1, x2)",
        "?[X0]: (?[X1]: p0(X0,X1) & ![X2]: (?[X3]: p0(X2,X3) => (X2 = X0)))",
    );
}

#[test]
fn sorts_are_guards() {
    check_formula("∀x1:S4 P0(x1)", "![X0]: (s4(X0) => p0(X0))");
    check_formula("∃x1:S4 P0(x1)", "?[X0]: (s4(X0) & p0(X0))");
    check_formula("∃!x1:S4 P0(x1)", "?[X0]: ((s4(X0) & p0(X0)) & ![X1]: ((s4(X1) & p0(X1)) => (X1 = X0)))");
}

#[test]
fn an_overloaded_index_gets_its_arity() {
    check_formula("(P5 ∧ P5(f3(f3(x0, x1))))", "(p5_0 & p5_1(f3_1(f3_2(v0,v1))))");
}

#[test]
fn definitions_and_sequents() {
    check("P1(x3) := ¬x3 = c0", "fof(s1, definition, ![X0]: (p1(X0) <=> ~(X0 = c0))).");
    check("f1(x3, x0) := x0", "fof(s1, definition, ![X0,X1]: (f1(X0,X1) = X1)).");
    check("P1(x3, x3) := P2(x3)", "fof(s1, definition, ![X0,X1]: (p1(X0,X1) <=> p2(X1))).");
    check("c9 := c0", "fof(s1, definition, (c9 = c0)).");
    check("⊤ ⊢ ⊥", "fof(s1_p1, axiom, $true).\nfof(s1_c, conjecture, $false).");
    let refusal = written("⊨ <unknown>").unwrap_err();
    assert_eq!((refusal.kind, refusal.token), (Kind::TptpUnsupported, Some(1)));
}

#[test]
fn nested_exists_one_is_refused_before_it_fills_the_memory() {
    assert_eq!(written(&format!("{}⊤", "∃!x0 ".repeat(200))).unwrap_err().kind, Kind::TptpUnsupported);
}
