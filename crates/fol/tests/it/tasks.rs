//! Statements of inference tasks: read, written and refused.

use fol::ast::{Formula, Statement, Text, Variable};
use fol::error::Kind;
use fol::read::{Mode, Source, parse};
use fol::symbol::SymbolId;
use fol::task::{self, Answer, Task};
use fol::{Style, encode, expected_labels};
use seeded::{Family, Stream};

fn read(text: &str) -> Task {
    task::read(text, Source::Text, Mode::Lenient).unwrap_or_else(|r| panic!("{text}: {r}")).task
}

/// Formulas of a law with every symbol of formulas.
fn formula(draw: &mut Stream) -> Formula {
    let law = fol::law::Law::named("full", &[]).unwrap();
    let mut sampler = fol::sample::Sampler::new(&law).unwrap();
    let mut tokens = Vec::new();
    loop {
        tokens.clear();
        sampler.sample(draw, &mut tokens);
        let text = fol::decode(&tokens).unwrap();
        if let Some(Statement::Formula(formula)) = text.statements.into_iter().next() {
            return formula;
        }
    }
}

fn drawn(draw: &mut Stream) -> Task {
    let premises: Vec<Formula> = (0..draw.below(4)).map(|_| formula(draw)).collect();
    let variable =
        |draw: &mut Stream| Variable([draw.below(5), draw.below(700), u64::MAX][draw.below(3) as usize]);
    match draw.below(3) {
        0 => Task::Deduction { premises, steps: (0..draw.below(4)).map(|_| formula(draw)).collect() },
        1 => Task::Question { premises, asked: formula(draw), answer: Answer::ALL[draw.below(3) as usize] },
        _ => Task::Term {
            equations: (0..draw.below(4) + 1).map(|_| (variable(draw), variable(draw))).collect(),
            asked: variable(draw),
            answer: variable(draw),
        },
    }
}

#[test]
fn what_is_written_is_read_back_in_every_style() {
    let family = Family::new("fol", "tasks", seeded::test_seed());
    for item in 0..300 {
        let task = drawn(&mut family.stream(item));
        let tokens = task::encode(&task);
        assert_eq!(task::decode(&tokens).unwrap(), task);
        let framed: Vec<SymbolId> =
            [SymbolId::BOS].into_iter().chain(tokens.iter().copied()).chain([SymbolId::EOS]).collect();
        assert_eq!(task::decode(&framed).unwrap(), task);
        for style in [Style::Unicode, Style::Ascii, Style::Subscript] {
            let text = task::print(&task, style);
            for mode in [Mode::Strict, Mode::Lenient] {
                assert_eq!(task::read(&text, Source::Text, mode).unwrap().task, task, "{text}");
            }
        }
        let labels = task::print(&task, Style::Words);
        assert_eq!(task::read(&labels, Source::Words, Mode::Strict).unwrap().task, task, "{labels}");
    }
}

/// Which symbols continue a prefix is asked of every symbol in turn: a symbol fits if the reader refuses the longer prefix
/// later than at that symbol.
#[test]
fn what_is_expected_is_what_fits() {
    let family = Family::new("fol", "tasks-expected", seeded::test_seed());
    for item in 0..40 {
        let mut draw = family.stream(item);
        let task = drawn(&mut draw);
        let whole = task::encode(&task);
        let at = draw.below(whole.len() as u64) as usize;
        let prefix = &whole[..at];
        let mut fits: Vec<SymbolId> = Vec::new();
        // `<bos>` may stand before any text, and is said of none.
        for symbol in SymbolId::all().filter(|symbol| *symbol != SymbolId::BOS) {
            let longer: Vec<SymbolId> = prefix.iter().copied().chain([symbol]).collect();
            match task::decode(&longer) {
                Ok(_) => fits.push(symbol),
                Err(refusal) if refusal.token != Some(at) => fits.push(symbol),
                Err(_) => {}
            }
        }
        if task::decode(prefix).is_ok() {
            fits.push(SymbolId::EOS);
        }
        let refusal = match task::decode(prefix) {
            Err(refusal) => refusal,
            // A whole task: what may follow it is said where something follows that may not.
            Ok(_) => {
                let longer: Vec<SymbolId> = prefix.iter().copied().chain([SymbolId::UNK]).collect();
                task::decode(&longer).unwrap_err()
            }
        };
        fits.sort_unstable();
        fits.dedup();
        let mut set = fol::SymbolSet::EMPTY;
        fits.into_iter().for_each(|symbol| set.insert(symbol));
        let text = task::print(&task, Style::Words);
        assert_eq!(refusal.expected, Some(expected_labels(&set)), "{text} at {at}");
    }
}

#[test]
fn each_format() {
    let Task::Deduction { premises, steps } = read("P(c), P(c) → Q(c) ⊢ Q(c)") else { panic!() };
    assert_eq!((premises.len(), steps.len()), (2, 1));
    let Task::Deduction { premises, steps } = read("P(c) ⊢ <unknown>") else { panic!() };
    assert_eq!((premises.len(), steps.len()), (1, 0));
    let Task::Deduction { steps, .. } = read("P ∧ Q, P → R ⊢ P. R. R ∨ Q") else { panic!() };
    assert_eq!(steps.len(), 3);
    assert_eq!(read("⊢ ⊤"), Task::Deduction { premises: vec![], steps: vec![Formula::Truth(true)] });
    for (sign, answer) in [("⊤", Answer::True), ("⊥", Answer::False), ("<unknown>", Answer::Unknown)] {
        let Task::Question { premises, answer: found, .. } =
            read(&format!("P, Q <query> P ∧ Q <answer> {sign}"))
        else {
            panic!()
        };
        assert_eq!((premises.len(), found), (2, answer));
        assert_eq!(Answer::from_symbol(answer.symbol()), Some(answer));
    }
    let term = read("x0 = x1 <sep> x1 = x2 <sep> <query> x0 <answer> x2");
    let x = Variable;
    assert_eq!(term, Task::Term { equations: vec![(x(0), x(1)), (x(1), x(2))], asked: x(0), answer: x(2) });
    assert_eq!(task::print(&term, Style::Unicode), "x0 = x1 <sep> x1 = x2 <sep> <query> x0 <answer> x2");
    let labels = "VAR 0 EQUALS VAR 1 <sep> VAR 1 EQUALS VAR 2 <sep> <query> VAR 0 <answer> VAR 2";
    assert_eq!(task::print(&term, Style::Words), labels);
    assert_eq!(task::json(&term), serde_json::json!(["term", [[0, 1], [1, 2]], 0, 2]));
    // An equation of variables is a premise as well.
    assert!(matches!(read("x0 = x1, P ⊢ P"), Task::Deduction { .. }));
    assert!(matches!(read("x0 = x1 <query> x1 = x0 <answer> ⊤"), Task::Question { .. }));
}

/// Text, the symbol at which it is refused, its kind, and one of what is expected there.
#[test]
fn what_is_no_task_is_refused_where_it_stops_to_be_one() {
    for (words, at, kind, expected) in [
        ("", 0, Kind::UnexpectedEnd, "ENTAILS"),
        ("PRED 0", 2, Kind::UnexpectedEnd, "<query>"),
        ("PRED 0 DOT", 2, Kind::UnexpectedSymbol, "COMMA"),
        ("PRED 0 COMMA ENTAILS", 3, Kind::UnexpectedSymbol, "NOT"),
        ("PRED 0 MODELS PRED 0", 2, Kind::UnexpectedSymbol, "ENTAILS"),
        ("PRED 0 ENTAILS", 3, Kind::UnexpectedEnd, "<unknown>"),
        ("PRED 0 ENTAILS <unknown> DOT", 4, Kind::UnexpectedSymbol, "<eos>"),
        ("PRED 0 ENTAILS PRED 1 DOT", 6, Kind::UnexpectedEnd, "PRED"),
        ("PRED 0 ENTAILS PRED 1 DOT <unknown>", 6, Kind::UnexpectedSymbol, "PRED"),
        ("PRED 0 ENTAILS PRED 1 COMMA PRED 2", 5, Kind::UnexpectedSymbol, "DOT"),
        ("PRED 0 <query> PRED 0 TRUE", 5, Kind::UnexpectedSymbol, "<answer>"),
        ("PRED 0 <query> PRED 0 <answer> PRED 0", 6, Kind::UnexpectedSymbol, "<unknown>"),
        ("PRED 0 <query> PRED 0 <answer> TRUE TRUE", 7, Kind::UnexpectedSymbol, "<eos>"),
        ("PRED 0 <sep> <query>", 2, Kind::UnexpectedSymbol, "COMMA"),
        ("VAR 0 EQUALS VAR 1 <sep> PRED 0", 6, Kind::UnexpectedSymbol, "<query>"),
        ("VAR 0 EQUALS CONST 1 <sep>", 5, Kind::UnexpectedSymbol, "COMMA"),
        ("VAR 0 EQUALS VAR 1 COMMA VAR 0 EQUALS VAR 1 <sep>", 11, Kind::UnexpectedSymbol, "COMMA"),
        ("VAR 0 EQUALS VAR 1 <sep> <query> CONST 0", 7, Kind::UnexpectedSymbol, "VAR"),
        ("VAR 0 EQUALS VAR 1 <sep> <query> VAR 0 <answer> TRUE", 10, Kind::UnexpectedSymbol, "VAR"),
        ("VAR 0 EQUALS VAR 1 <sep> <query> VAR 0 <answer> VAR 0 1", 12, Kind::LeadingZero, "<eos>"),
    ] {
        let refusal = task::read(words, Source::Words, Mode::Strict).unwrap_err();
        assert_eq!((refusal.token, refusal.kind), (Some(at), kind), "{words}: {refusal}");
        assert!(
            refusal.expected.iter().flatten().any(|label| label == expected),
            "{words}: {:?}",
            refusal.expected
        );
    }
    let refusal = task::read("P(c) <query> Q(c) ⊢ P", Source::Text, Mode::Lenient).unwrap_err();
    assert_eq!((refusal.kind, refusal.span), (Kind::UnexpectedSymbol, Some((18, 21))));
}

/// The plain grammar has none of them, and reads several steps as statements.
#[test]
fn the_plain_grammar_stays_as_it_is() {
    for text in ["P <query> P <answer> ⊤", "x0 = x1 <sep> <query> x0 <answer> x1"] {
        let refusal = parse(text, Source::Text, Mode::Lenient).unwrap_err();
        assert_eq!(refusal.kind, Kind::UnexpectedSymbol, "{text}");
    }
    let steps = parse("P ⊢ P. P ∨ Q", Source::Text, Mode::Lenient).unwrap();
    assert_eq!(steps.text.statements.len(), 2);
    assert_eq!(task::encode(&read("P ⊢ P. P ∨ Q")), steps.tokens);
    let sequent = |text: &str| encode(&parse(text, Source::Text, Mode::Lenient).unwrap().text);
    assert_eq!(task::encode(&read("P, Q ⊢ <unknown>")), sequent("P, Q ⊢ <unknown>"));
    assert_eq!(encode(&Text::formula(Formula::Truth(true))), vec![SymbolId::TRUE]);
}

#[test]
fn the_answer_stands_after_the_first_of_its_signs() {
    for (text, before) in [
        ("P ⊢ Q", 2),
        ("P ⊢ <unknown>", 2),
        ("P <query> Q <answer> ⊤", 5),
        ("x0 = x1 <sep> <query> x0 <answer> x1", 9),
    ] {
        assert_eq!(task::given(&task::encode(&read(text))), Some(before), "{text}");
    }
    assert_eq!(task::given(&[SymbolId::TRUE]), None);
}

/// No list of symbols makes the reader panic.
#[test]
fn any_symbols_are_read_or_refused() {
    let family = Family::new("fol", "tasks-any", seeded::test_seed());
    let signs: Vec<SymbolId> =
        SymbolId::all().filter(|symbol| symbol.get() < 3 || symbol.get() >= 625).collect();
    for item in 0..3_000 {
        let mut draw = family.stream(item);
        let tokens: Vec<SymbolId> =
            (0..draw.below(24)).map(|_| signs[draw.below(signs.len() as u64) as usize]).collect();
        for mode in [Mode::Strict, Mode::Lenient] {
            let words = fol::words(&tokens);
            if let Ok(read) = task::read(&words, Source::Words, mode) {
                assert_eq!(task::decode(&read.tokens).unwrap(), read.task, "{words}");
            }
        }
    }
}
