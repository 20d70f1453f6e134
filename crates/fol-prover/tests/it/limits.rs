//! Bad input and hard input end within their limits, by name; a run with steps is the same every time.

use std::time::{Duration, Instant};

use fol::ast::{Constant, Formula, Function, Predicate, Quantifier, Relation, Term, Variable};
use fol::error::Kind;
use fol_prover::prove::Reason;
use fol_prover::random::{Shape, problem};
use fol_prover::{Limit, Problem, Verdict, prove};

use crate::common::{checked, drawn};

#[test]
fn steps_make_the_same_answer_every_time() {
    for item in 0..150 {
        let shape = if item % 2 == 0 { Shape::everything() } else { Shape::equality() };
        let Some(problem) = problem(&mut drawn("again", item), &shape, false) else { continue };
        let limit = Limit::Steps(300 + item * 10);
        assert_eq!(prove(&problem, limit), prove(&problem, limit));
    }
}

#[test]
fn no_steps_no_answer() {
    let problem = Problem::read("P(c), P(c) → Q(c) ⊢ Q(c)").unwrap();
    let answer = prove(&problem, Limit::Steps(0));
    assert_eq!((answer.verdict, answer.steps), (Verdict::Unknown { reason: Reason::Steps }, 0));
    assert!(prove(&problem, Limit::Milliseconds(0)).steps < 200);
}

/// More steps never take an answer back.
#[test]
fn more_steps_answer_more() {
    for item in 0..40 {
        let Some(problem) = problem(&mut drawn("more", item), &Shape::everything(), false) else { continue };
        let mut last = "unknown";
        for steps in [10, 100, 1_000, 10_000, 100_000] {
            let found = checked(&problem, &prove(&problem, Limit::Steps(steps)).verdict);
            assert!(last == "unknown" || found == last || found == "unknown", "{last} then {found}");
            last = if found == "unknown" { last } else { found };
        }
    }
}

fn nested(depth: usize, wrap: impl Fn(Formula) -> Formula) -> Formula {
    (0..depth).fold(Formula::Predicate(Predicate(0), vec![]), |formula, _| wrap(formula))
}

/// A formula of a hundred thousand nodes inside each other is refused, and dropped without recursion by the test.
#[test]
fn what_is_too_deep_is_refused() {
    let stack = 512 << 20;
    calculemus_base::process::on_stack_of(stack, || {
        let not = |formula| Formula::Not(Box::new(formula));
        let all = |formula| Formula::Quantified(Quantifier::Forall, Variable(0), None, Box::new(formula));
        let deep = nested(100_000, not);
        assert_eq!(Problem::new(vec![deep], None).unwrap_err().kind, Kind::TooDeep);
        let deep = nested(100_000, all);
        assert_eq!(Problem::new(vec![], Some(deep)).unwrap_err().kind, Kind::TooDeep);
        let term =
            (0..100_000).fold(Term::Constant(Constant(0)), |term, _| Term::Function(Function(0), vec![term]));
        let deep = Formula::Predicate(Predicate(0), vec![term]);
        assert_eq!(Problem::new(vec![deep], None).unwrap_err().kind, Kind::TooDeep);
    })
    .unwrap();
    let text = format!("⊢ {}P", "¬".repeat(2_000));
    assert_eq!(Problem::read(&text).unwrap_err().kind, Kind::TooDeep);
}

/// As deep as the reader allows, everything works within a thread's usual stack.
#[test]
fn what_is_just_not_too_deep_is_decided() {
    let not = |formula| Formula::Not(Box::new(formula));
    let both = |formula: Formula| {
        let atom = Formula::Predicate(Predicate(0), vec![]);
        Formula::Binary(fol::ast::Connective::Iff, Box::new(atom), Box::new(formula))
    };
    let quantified = |quantifier| {
        move |formula: Formula| Formula::Quantified(quantifier, Variable(0), None, Box::new(formula))
    };
    for formula in [
        nested(1_000, not),
        nested(200, both),
        nested(1_000, quantified(Quantifier::Forall)),
        nested(1_000, quantified(Quantifier::Exists)),
        nested(300, quantified(Quantifier::Exists1)),
    ] {
        let problem = Problem::new(vec![formula.clone()], Some(formula)).unwrap();
        let start = Instant::now();
        checked(&problem, &prove(&problem, Limit::Milliseconds(300)).verdict);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
    let term =
        (0..1_000).fold(Term::Constant(Constant(0)), |term, _| Term::Function(Function(0), vec![term]));
    let equation = |s: &Term, t: Term| Formula::Relation(Relation::Equals, s.clone(), t);
    let fixed = equation(
        &Term::Function(Function(0), vec![Term::Constant(Constant(0))]),
        Term::Constant(Constant(0)),
    );
    let problem = Problem::new(vec![fixed], Some(equation(&term, Term::Constant(Constant(0))))).unwrap();
    assert_ne!(checked(&problem, &prove(&problem, Limit::default()).verdict), "refuted");
}

#[test]
fn what_grows_without_end_stops() {
    for text in [
        // Equality storms.
        "∀x ∀y m(x, y) = m(y, x), ∀x ∀y ∀z m(m(x, y), z) = m(x, m(y, z)), ∀x m(x, x) = x, m(a, b) ≠ a, m(a, b) ≠ b, ∀x ∃y m(x, y) ≠ x ⊢ ⊥",
        "∀x ∀y ∀z f(f(x, y), z) = f(g(x), f(y, g(z))), ∀x g(g(x)) ≠ x, ∀x ∃y f(x, y) ≠ g(y) ⊢ ∃x f(x, x) = x",
        "∀x f(g(x)) = g(f(f(x))), ∀x ∀y (f(x) = f(y) → x = y), ∀x f(x) ≠ a, ∀x (g(x) = x → P(x)) ⊢ ∃x P(f(x))",
        // Functions that nest.
        "P(a, a), ∀x ∀y (P(x, y) → P(f(x), y) ∨ P(x, f(y))), ∀x ¬P(f(f(x)), f(f(x))), ∀x ∀y (f(x) = f(y) → x = y), ∀x f(x) ≠ a ⊢ Q",
        // Terms that double.
        "∀x ∀y ∀z ∀u P(f(x, x), f(y, y), f(z, z), x, y, z), ∀x ∀y ∀z (P(x, y, z, y, z, x) → Q(x)), ∀x ∃y f(x, y) ≠ f(y, x), ∀x ∀y (f(x, y) = x → Q(y)), ∀x ∀y ∀z (f(x, y) = f(x, z) → y = z), ∀x f(x, x) ≠ x, ∀x f(x, a) ≠ a ⊢ Q(a)",
        // Twenty variables.
        "∀a1 ∀b1 ∀c1 ∀d1 ∀e1 ∀f1 ∀g1 ∀h1 ∀i1 ∀j1 ∀k1 ∀l1 (R(a1, b1) ∧ R(c1, d1) ∧ R(e1, f1) ∧ R(g1, h1) → R(i1, j1) ∨ R(k1, l1) ∨ R(a1, l1)), ∀x ∃y (R(x, y) ∧ ¬R(y, x)), ∀x ∃y ¬R(x, f(y)) ⊢ ∃x R(x, x)",
    ] {
        let problem = Problem::read(text).unwrap();
        let start = Instant::now();
        checked(&problem, &prove(&problem, Limit::Milliseconds(500)).verdict);
        assert!(start.elapsed() < Duration::from_secs(5), "{text}: {:?}", start.elapsed());
        let start = Instant::now();
        checked(&problem, &prove(&problem, Limit::Steps(3_000)).verdict);
        assert!(start.elapsed() < Duration::from_secs(10), "{text}: {:?}", start.elapsed());
    }
}

#[test]
fn many_quantifiers_are_no_trap() {
    let names: Vec<String> = (0..40).map(|n| format!("x{n}")).collect();
    let prefix: String = names.iter().map(|name| format!("∀{name} ")).collect();
    let body =
        names.windows(2).map(|pair| format!("R({}, {})", pair[0], pair[1])).collect::<Vec<_>>().join(" ∨ ");
    for text in [
        format!("{prefix}({body}) ⊢ ∃x R(x, x)"),
        format!("{prefix}({body}), c0 ≠ c1, c1 ≠ c2 ⊢ ∃x ∃y (R(x, y) ∧ x ≠ y)"),
        format!("⊢ {prefix}({body})"),
    ] {
        let problem = Problem::read(&text).unwrap();
        let start = Instant::now();
        checked(&problem, &prove(&problem, Limit::Milliseconds(500)).verdict);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
}

#[test]
fn nests_of_unique_existence_do_not_multiply() {
    let prefix: String = (0..30).map(|n| format!("∃!x{n} ")).collect();
    let text = format!("{prefix}(P(x0) ∨ R(x1, x29)) ⊢ {prefix}(P(x0) ∨ R(x1, x29))");
    let problem = Problem::read(&text).unwrap();
    assert_eq!(checked(&problem, &prove(&problem, Limit::Milliseconds(2_000)).verdict), "entailed");
}

/// Terms that double with each literal, for unification and for variables that are put away, and deep ones that meet.
#[test]
fn terms_that_double() {
    let prefix: String = (0..44).map(|n| format!("∀x{n} ")).collect();
    let chain: Vec<String> = (0..43).map(|n| format!("x{n} ≠ f(x{0}, x{0})", n + 1)).collect();
    let pairs: Vec<String> = (0..43).map(|n| format!("x{}", n)).collect();
    let doubled: Vec<String> = (1..44).map(|n| format!("f(x{n}, x{n})")).collect();
    let deep = |depth: usize, inner: &str| format!("{}{inner}{}", "g(".repeat(depth), ")".repeat(depth));
    for text in [
        format!("{prefix}({} ∨ P(x0)), ∀x ¬P(x), ∀x f(x, x) ≠ x ⊢ Q", chain.join(" ∨ ")),
        format!("{prefix}P({}), {prefix}¬P({}), ∀x f(x, x) ≠ x ⊢ Q", pairs.join(", "), doubled.join(", ")),
        format!("∀x ∀y R({}, y), ∀x ∀y ¬R(x, {}), ∀x g(x) ≠ x ⊢ Q(a)", deep(900, "x"), deep(900, "y")),
        format!("∀x (P(x) → P({})), P(a), ∀x ¬P({}), ∀x g(x) ≠ x ⊢ Q(a)", deep(350, "x"), deep(901, "x")),
        format!("∀x {} = x, P(a), ∀x g(x) ≠ x ⊢ P({})", deep(300, "x"), deep(900, "a")),
    ] {
        let problem = Problem::read(&text).unwrap();
        let start = Instant::now();
        checked(&problem, &prove(&problem, Limit::Milliseconds(300)).verdict);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
}

#[test]
fn wide_symbols() {
    let many = (0..60).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ");
    assert_eq!(crate::common::verdict(&format!("P({many}) ⊢ ∃x P(x, {})", &many[4..])), "entailed");
    assert_ne!(crate::common::verdict(&format!("f({many}) = a ⊢ a = f({})", &many[4..])), "entailed");
    assert_eq!(
        crate::common::verdict("P18446744073709551615(c18446744073709551615) ⊢ P0(x18446744073709551615)"),
        "refuted"
    );
}

/// Where not every small model was looked for, that is the reason, and not that there is none.
#[test]
fn the_reason_is_true() {
    let reason = |text: &str, steps| match prove(&Problem::read(text).unwrap(), Limit::Steps(steps)).verdict {
        Verdict::Unknown { reason } => reason,
        other => panic!("{other:?}"),
    };
    // Interpretations of two elements have too many cells: P has 2⁴⁰.
    let (c, d) = (vec!["c"; 40].join(", "), vec!["d"; 40].join(", "));
    let wide = format!("P({c}), f({c}) = c, f({d}) = d ⊢ P({d})");
    assert_eq!(reason(&wide, 100_000), Reason::SmallModels);
    // The share of models is used up: there is one of two elements.
    let names: Vec<String> = (0..13).map(|i| format!("x{i}")).collect();
    let binders: String = names.iter().map(|x| format!("∀{x} ")).collect();
    let many =
        format!("¬c=d, {binders}(P({}) ∨ x0=c ∨ x1=d) ⊢ P({})", names.join(","), vec!["d"; 13].join(","));
    assert!(matches!(reason(&many, 100_000), Reason::SmallModels | Reason::Steps));
}

/// A size whose stage was too short is looked at again: more steps find what is there.
#[test]
fn more_steps_find_a_small_model() {
    let facts: Vec<String> = (0..1500).map(|i| format!("P{i}(f0(c))")).collect();
    let many = format!("∀x ∀y x = y, {} ⊢ Q(f0(c))", facts.join(", "));
    let binders: String = (0..12).map(|i| format!("∃!x{i} ")).collect();
    let names: Vec<String> = (0..12).map(|i| format!("x{i}")).collect();
    let unique = format!("⊢ ¬{binders}R({})", names.join(","));
    for text in [many, unique] {
        let problem = Problem::read(&text).unwrap();
        let found = prove(&problem, Limit::Steps(100_000_000)).verdict;
        assert!(matches!(found, Verdict::Refuted(_)), "{text:.60}: {found:?}");
        assert_eq!(checked(&problem, &found), "refuted");
    }
}
