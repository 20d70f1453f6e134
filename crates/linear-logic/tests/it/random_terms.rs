//! Random well-typed terms of all connectives: every reduction step keeps type and denotation, texts and sequent
//! proofs agree with the terms, and mutated texts are refused or keep a type.
//!
//! The default is 600 terms; `CALCULEMUS_SLOW=1` makes it 10,000. `CALCULEMUS_SEED` is the number of the first; a test
//! that fails says the number of its term.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::terms::{Terms, numbers};
use linear_logic::denote::{Dense, Evaluator, Outcome, ValueId};
use linear_logic::elaborate::{Mode, Structure, elaborate};
use linear_logic::error::{Field, Kind, Refusal, Source};
use linear_logic::formula::{Connective, Formula};
use linear_logic::literal::Order;
use linear_logic::program::{Checked, Program};
use linear_logic::reduce::{Reduction, Rewrite};
use linear_logic::ring::Modular;
use linear_logic::sequent::{self, Hypothesis, Proof};
use linear_logic::term::Term;
use linear_logic::{parse, print, verify};
use seeded::{Family, Stream};

fn count() -> u64 {
    if std::env::var_os("CALCULEMUS_SLOW").is_some() { 10_000 } else { 600 }
}

fn explicit() -> Program {
    let mode = Mode { structure: Structure::Explicit, ..Mode::default() };
    Program::new(Order::Literal, mode).unwrap()
}

fn read(program: &Program, text: &str) -> linear_logic::error::Result<Checked> {
    let source = Source::new("<test>", text.as_bytes().to_vec());
    elaborate(program, &source, &parse::query(&source)?)
}

/// A random element of the space of an argument.
fn argument(
    evaluator: &mut Evaluator<Dense<Modular>>,
    formula: &Formula,
    stream: &mut Stream,
) -> Outcome<ValueId> {
    if let Some(inner) = formula.as_bang() {
        let point = argument(evaluator, inner, stream)?;
        return Ok(evaluator.point(point));
    }
    let dimension = evaluator.dimension(formula)?;
    let entries = (0..dimension).map(|_| stream.below(1_000_003)).collect();
    evaluator.from_coordinates(entries, formula)
}

/// The coordinates at random arguments; `None` if the result is not finite.
fn value(term: &Term, formula: &Formula, dimension: usize, seed: u64) -> Outcome<Option<Vec<u64>>> {
    let mut stream = Family::named("linear-logic:arguments").stream(seed);
    let dimensions = BTreeMap::from([(Rc::from("a"), dimension), (Rc::from("b"), 5 - dimension)]);
    let ring = Modular::new(1_000_003).unwrap();
    let mut evaluator = Evaluator::new(Dense::new(ring, dimensions), Order::Literal);
    let mut found = evaluator.closed(term)?;
    let mut rest = formula.clone();
    while !rest.is_finite() {
        let Connective::Lolli(domain, codomain) = rest.connective() else { return Ok(None) };
        if !domain.as_bang().unwrap_or(domain).is_finite() {
            return Ok(None);
        }
        let at = argument(&mut evaluator, domain, &mut stream)?;
        found = evaluator.apply(found, at)?;
        rest = codomain.clone();
    }
    if evaluator.dimension(&rest).is_ok_and(|n| n > 400) {
        return Ok(None);
    }
    evaluator.coordinates(found, &rest).map(Some)
}

fn each(family: &str, mut test: impl FnMut(u64, &Program, &str, &Checked)) {
    let program = explicit();
    for seed in numbers(count()) {
        let mut stream = Family::named(family).stream(seed);
        let fuel = 5 + stream.below(30) as usize;
        let (text, formula) = Terms::new(&mut stream, fuel).closed();
        let checked = read(&program, &text).unwrap_or_else(|why| panic!("seed {seed}: {text}\n{why}"));
        assert_eq!(checked.formula, formula, "seed {seed}: {text}");
        test(seed, &program, &text, &checked);
    }
}

#[test]
fn every_step_keeps_type_and_denotation() {
    let (mut compared, mut rules) = (0, BTreeSet::new());
    each("linear-logic:steps", |seed, _, text, checked| {
        let values: Vec<_> =
            [2, 3].iter().map(|n| value(&checked.term, &checked.formula, *n, seed)).collect();
        let mut reduction = Reduction::new(&checked.term, Order::Literal).unwrap();
        let mut steps = 0;
        while let Some(step) = reduction.next() {
            let step = step.unwrap();
            rules.insert(step.rule);
            let term = reduction.term();
            assert_eq!(verify(&term).as_ref(), Ok(&checked.formula), "seed {seed}, {step:?}: {text}");
            for (n, before) in [2, 3].iter().zip(&values) {
                let after = value(&term, &checked.formula, *n, seed);
                assert_eq!(&after, before, "seed {seed}, {step:?}: {text}\n{}", print::canonical(&term));
            }
            compared += usize::from(matches!(values.first(), Some(Ok(Some(_)))));
            steps += 1;
            assert!(steps < 10_000, "seed {seed}: {text}");
        }
        assert!(reduction.is_normal());
    });
    assert!(compared > count() as usize, "only {compared} steps were compared");
    assert_eq!(rules.len(), Rewrite::ALL.len(), "{rules:?}");
}

#[test]
fn canonical_text_elaborates_to_itself() {
    each("linear-logic:texts", |seed, program, text, checked| {
        assert_eq!(verify(&checked.term).as_ref(), Ok(&checked.formula), "seed {seed}: {text}");
        for printed in [print::canonical(&checked.term), print::kernel(&checked.term)] {
            let again = read(program, &printed).unwrap_or_else(|why| panic!("seed {seed}: {printed}\n{why}"));
            assert_eq!(again.formula, checked.formula, "seed {seed}: {printed}");
            assert_eq!(
                print::canonical(&again.term),
                print::canonical(&checked.term),
                "seed {seed}: {printed}"
            );
        }
    });
}

/// Definitions with the names of binders, in terms that use some of them: none is captured, and other texts stay.
#[test]
fn canonical_text_captures_no_definition() {
    let mut program = explicit();
    let definitions = "def v0 : int = 2; def f : a -o a * int = \\x. x * v0; \
                       def v1{A} : A -o A = \\x. x; def v3 : bint = 0b01; def v00 : a -o a = \\x. x;";
    assert!(program.load(&Source::new("<test>", definitions.into())).refusals.is_empty());
    let f = program.definition("f").and_then(|f| f.term.clone()).unwrap();
    assert_eq!(print::canonical(&f), "\\v1:a. v1 * v0");
    let mut met = BTreeSet::new();
    for seed in numbers(100) {
        let mut stream = Family::named("linear-logic:captured").stream(seed);
        let (text, formula) = Terms::new(&mut stream, 10).closed();
        let mut text = format!("({text} : {formula})");
        for _ in 0..stream.below(4) {
            let used = ["v0", "v1", "v1{b * b}", "v3", "v00"][stream.below(5) as usize];
            met.insert(used);
            // Behind a binder, before one, and on its own.
            text = match stream.below(3) {
                0 => format!("((\\x:a. x * {used}) * {text})"),
                1 => format!("({used} * (\\x:b. x) * {text})"),
                _ => format!("({used} * {text})"),
            };
        }
        let checked = read(&program, &text).unwrap();
        let printed = print::canonical(&checked.term);
        let again = read(&program, &printed).unwrap_or_else(|why| panic!("seed {seed}: {printed}\n{why}"));
        assert_eq!(again.formula, checked.formula, "seed {seed}: {printed}");
        assert_eq!(print::canonical(&again.term), printed, "seed {seed}");
        // The same proof: with its definitions unfolded it has the same text, and no name is avoided.
        let unfolded = |term: &Term| print::canonical(&Reduction::new(term, Order::Literal).unwrap().term());
        assert_eq!(unfolded(&again.term), unfolded(&checked.term), "seed {seed}: {printed}");
    }
    assert_eq!(met.len(), 5);
}

/// A refusal carries what its kind promises, and never finds what it wants.
fn is_honest(refusal: &Refusal) -> bool {
    let has = |field: &Field| match field {
        Field::Variable => refusal.variable.is_some(),
        Field::Expected => refusal.expected.is_some(),
        Field::Found => refusal.found.is_some(),
    };
    let differ = refusal.expected.is_none() || refusal.expected != refusal.found;
    refusal.at.is_some() && refusal.kind.fields().iter().all(has) && differ
}

#[test]
fn mutated_texts_are_refused_or_keep_a_type() {
    let (mut refused, mut kept) = (0, 0);
    each("linear-logic:mutations", |seed, program, text, checked| {
        let mut stream = Family::named("linear-logic:mutate").stream(seed);
        let mut words: Vec<String> = split(text);
        let at = stream.below(words.len() as u64) as usize;
        let other = words[stream.below(words.len() as u64) as usize].clone();
        match stream.below(4) {
            0 => _ = words.remove(at),
            1 => words.insert(at, other),
            2 => words[at] = other,
            _ => words.swap(at, 0),
        }
        let text = words.join(" ");
        // The same where the atom `a` is a parameter: literals without braces are still at the atom.
        let declared = format!("def f{{a}} : {} = {text};", checked.formula);
        let mut loaded = explicit().load(&Source::new("<test>", declared.into_bytes()));
        if let Some(refusal) = loaded.refusals.pop() {
            assert!(is_honest(&refusal), "seed {seed}: {text}\n{refusal:?}");
        }
        match read(program, &text) {
            Ok(checked) => {
                assert_eq!(verify(&checked.term).as_ref(), Ok(&checked.formula), "seed {seed}: {text}");
                kept += 1;
            }
            Err(refusal) => {
                assert!(is_honest(&refusal), "seed {seed}: {text}\n{refusal:?}");
                refused += 1;
            }
        }
    });
    assert!(refused > kept, "{refused} refused, {kept} kept");
}

/// Names, literals and signs.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        match words.last_mut() {
            Some(last) if c.is_alphanumeric() && last.chars().all(char::is_alphanumeric) => last.push(c),
            Some(last) if (last == "-" && (c == 'o' || c == '>')) => last.push(c),
            _ if c == ' ' => words.push(String::new()),
            _ => words.push(c.to_string()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn random_bytes_are_answered() {
    let program = explicit();
    let alphabet: Vec<char> =
        "λ\\x:a.()[]<>{}*&+!-o ->=letincopyasdiscardpromoteforcaseofinlinr|;0b19é\u{0}'₁".chars().collect();
    for seed in numbers(20 * count()) {
        let mut stream = Family::named("linear-logic:bytes").stream(seed);
        let length = stream.below(40);
        let text: String =
            (0..length).map(|_| alphabet[stream.below(alphabet.len() as u64) as usize]).collect();
        if let Err(refusal) = read(&program, &text) {
            assert!(refusal.at.is_some(), "{text}");
        }
    }
}

/// Every inference by its rule, from nothing but the two sequents and those of the premises.
fn follows(proof: &Proof) -> Result<(), String> {
    use sequent::Rule as R;
    type Left = BTreeMap<Hypothesis, Formula>;
    let left = |p: &Proof| -> Left { p.left.iter().cloned().collect() };
    let distinct = |p: &Proof| left(p).len() == p.left.len();
    let conclusion = left(proof);
    let premises: Vec<Left> = proof.premises.iter().map(left).collect();
    let rights: Vec<&Formula> = proof.premises.iter().map(|p| &p.right).collect();
    let goal = &proof.right;
    let only = |a: &Left, b: &Left| -> Vec<(Hypothesis, Formula)> {
        a.iter().filter(|(h, _)| !b.contains_key(h)).map(|(h, f)| (*h, f.clone())).collect()
    };
    let joined = |parts: &[&Left]| -> Option<Left> {
        let all: Left = parts.iter().flat_map(|p| p.iter()).map(|(h, f)| (*h, f.clone())).collect();
        (all.len() == parts.iter().map(|p| p.len()).sum::<usize>()).then_some(all)
    };
    // What a left rule takes away and what it adds.
    let formulas =
        |list: &[(Hypothesis, Formula)]| -> Vec<Formula> { list.iter().map(|(_, f)| f.clone()).collect() };
    let replaced =
        |premise: &Left| (formulas(&only(&conclusion, premise)), formulas(&only(premise, &conclusion)));
    let is = match (proof.rule, premises.as_slice()) {
        (R::Ax, []) => conclusion.len() == 1 && conclusion.values().next() == Some(goal),
        (R::OneR, []) => conclusion.is_empty() && *goal == Formula::one(),
        (R::Cut, [a, b]) => {
            let new = only(b, &conclusion);
            let rest: Left =
                b.iter().filter(|(h, _)| conclusion.contains_key(h)).map(|(h, f)| (*h, f.clone())).collect();
            formulas(&new) == [rights[0].clone()]
                && joined(&[a, &rest]) == Some(conclusion.clone())
                && rights[1] == goal
        }
        (R::TensorR, [a, b]) => {
            joined(&[a, b]) == Some(conclusion.clone())
                && *goal == rights[0].clone().tensor(rights[1].clone())
        }
        (R::WithR, [a, b]) => {
            *a == conclusion && *b == conclusion && *goal == rights[0].clone().with(rights[1].clone())
        }
        (R::LolliR, [a]) => {
            let (gone, new) = replaced(a);
            gone.is_empty() && new.len() == 1 && *goal == new[0].clone().lolli(rights[0].clone())
        }
        (R::LolliL, [a, b]) => {
            let new = only(b, &conclusion);
            let rest: Left =
                b.iter().filter(|(h, _)| conclusion.contains_key(h)).map(|(h, f)| (*h, f.clone())).collect();
            let Some(both) = joined(&[a, &rest]) else { return Err("shared hypotheses".to_owned()) };
            let gone = only(&conclusion, &both);
            let [(_, new)] = new.as_slice() else { return Err("new hypotheses".to_owned()) };
            formulas(&gone) == [rights[0].clone().lolli(new.clone())]
                && rights[1] == goal
                && both.len() + 1 == conclusion.len()
        }
        (R::PlusR1 | R::PlusR2, [a]) => match goal.connective() {
            Connective::Plus(x, y) => {
                *a == conclusion && rights[0] == if proof.rule == R::PlusR1 { x } else { y }
            }
            _ => false,
        },
        (R::PlusL, [a, b]) => {
            let ((gone, new), (again, other)) = (replaced(a), replaced(b));
            let [x, y] = [new.as_slice(), other.as_slice()];
            let fits = matches!((x, y), ([x], [y]) if gone == [x.clone().plus(y.clone())]);
            fits && gone == again && rights.iter().all(|r| *r == goal)
        }
        (R::Prom, [a]) => {
            *a == conclusion
                && conclusion.values().all(Formula::is_banged)
                && *goal == rights[0].clone().bang()
        }
        (rule, [a]) => {
            let (gone, new) = replaced(a);
            let fits = match (rule, gone.as_slice(), new.as_slice()) {
                (R::TensorL, [f], [x, y]) => {
                    *f == x.clone().tensor(y.clone()) || *f == y.clone().tensor(x.clone())
                }
                (R::OneL, [f], []) => *f == Formula::one(),
                (R::WithL1, [f], [x]) => matches!(f.connective(), Connective::With(l, _) if l == x),
                (R::WithL2, [f], [x]) => matches!(f.connective(), Connective::With(_, r) if r == x),
                (R::Der, [f], [x]) => *f == x.clone().bang(),
                (R::Ctr, [f], [x, y]) => f == x && f == y && f.is_banged(),
                (R::Weak, [f], []) => f.is_banged(),
                _ => false,
            };
            fits && rights[0] == goal
        }
        _ => false,
    };
    if !is || !distinct(proof) {
        return Err(format!("{} does not give {:?} ⊢ {goal:?}", proof.rule.name(), proof.left));
    }
    proof.premises.iter().try_for_each(follows)
}

#[test]
fn sequent_proofs_are_proofs_and_normal_forms_have_no_cut() {
    let mut rules = BTreeSet::new();
    each("linear-logic:sequents", |seed, _, text, checked| {
        let proof = sequent::read_back(&checked.term, Order::Literal).unwrap();
        assert_eq!((&proof.right, proof.left.len()), (&checked.formula, 0), "seed {seed}: {text}");
        follows(&proof).unwrap_or_else(|why| panic!("seed {seed}: {text}\n{why}"));
        rules.extend(proof.rules().into_keys());
        let mut reduction = Reduction::new(&checked.term, Order::Literal).unwrap();
        reduction.by_ref().for_each(|step| _ = step.unwrap());
        let proof = sequent::read_back(&reduction.term(), Order::Literal).unwrap();
        follows(&proof).unwrap_or_else(|why| panic!("seed {seed}: {text}\n{why}"));
        assert!(!proof.rules().contains_key(&sequent::Rule::Cut), "seed {seed}: {text}");
    });
    assert_eq!(rules.len(), sequent::Rule::ALL.len(), "{rules:?}");
}

#[test]
fn other_kernel_terms_are_refused() {
    // A text that the elaborator completes is no kernel term under `--explicit`.
    let program = explicit();
    for (text, kind) in [
        ("\\x:!a. ()", Kind::LinearUnused),
        ("\\x:!a. x * x", Kind::LinearReuse),
        ("\\x:!a. [derelict x]", Kind::BoxCapture),
        ("\\x:!a. \\y:b. <y, y>", Kind::LinearUnused),
        ("\\x:!a. \\y:b. <discard x in y, y>", Kind::BranchMismatch),
    ] {
        assert_eq!(read(&program, text).unwrap_err().kind, kind, "{text}");
    }
}
