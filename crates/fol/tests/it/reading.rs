//! Readers and printers: inverses of each other, exact in their refusals, and never a panic.

use crate::common::Trees;
use fol::ast::{Connective, Formula, Text};
use fol::error::{Kind, Refusal};
use fol::read::{Mode, Source, parse};
use fol::symbol::SymbolId;
use fol::{Style, decode, encode, print};

#[test]
fn reading_what_was_printed_gives_the_same_tree() {
    for item in 0..3000 {
        let text = Trees::new("print", item).text();
        let tokens = encode(&text);
        assert_eq!(decode(&tokens).as_ref(), Ok(&text), "{}", print(&text, Style::Words));
        for style in [Style::Unicode, Style::Ascii, Style::Subscript, Style::Words] {
            let source = if style == Style::Words { Source::Words } else { Source::Text };
            let written = print(&text, style);
            for mode in [Mode::Strict, Mode::Lenient] {
                let read =
                    parse(&written, source, mode).unwrap_or_else(|refusal| panic!("{written}: {refusal:?}"));
                assert_eq!(read.text, text, "{written}");
                assert_eq!(read.tokens, tokens);
                assert!(read.given.names.is_empty(), "{written}");
                assert!(read.positions.iter().copied().eq(0..tokens.len()));
            }
        }
    }
}

/// Text with the fewest parentheses that the lenient reader needs, and here and there one pair more.
fn sparse(trees: &mut Trees, formula: &Formula, out: &mut String) {
    if trees.one_in(8) {
        out.push('(');
        bare(trees, formula, out);
        out.push(')');
    } else {
        bare(trees, formula, out);
    }
}

fn strength(formula: &Formula) -> u8 {
    match formula {
        Formula::Binary(connective, ..) => match connective {
            Connective::Iff => 0,
            Connective::Implies => 1,
            Connective::Or => 2,
            Connective::And => 3,
        },
        _ => 4,
    }
}

fn bare(trees: &mut Trees, formula: &Formula, out: &mut String) {
    let operand = |trees: &mut Trees, operand: &Formula, least: u8, out: &mut String| {
        if strength(operand) < least {
            out.push('(');
            sparse(trees, operand, out);
            out.push(')');
        } else {
            sparse(trees, operand, out);
        }
    };
    let atom = |formula: &Formula| print(&Text::formula(formula.clone()), Style::Unicode);
    match formula {
        Formula::Not(inner) => {
            out.push('¬');
            operand(trees, inner, 4, out);
        }
        Formula::Quantified(quantifier, variable, sort, body) => {
            let written =
                atom(&Formula::Quantified(*quantifier, *variable, *sort, Box::new(Formula::Truth(true))));
            out.push_str(written.trim_end_matches('⊤'));
            operand(trees, body, 4, out);
        }
        Formula::Binary(connective, left, right) => {
            let own = strength(formula);
            let right_grouping = *connective == Connective::Implies;
            operand(trees, left, own + u8::from(right_grouping), out);
            out.push_str(connective.symbol().unicode());
            operand(trees, right, own + u8::from(!right_grouping), out);
        }
        _ => out.push_str(&atom(formula)),
    }
}

#[test]
fn the_lenient_reader_knows_precedence_and_drops_parentheses() {
    for item in 0..3000 {
        let mut trees = Trees::new("sparse", item);
        let formula = trees.formula(6);
        let mut written = String::new();
        sparse(&mut trees, &formula, &mut written);
        let read =
            parse(&written, Source::Text, Mode::Lenient).unwrap_or_else(|r| panic!("{written}: {r:?}"));
        assert_eq!(read.text.as_formula(), Some(&formula), "{written}");
        for (canonical, &at) in read.tokens.iter().zip(&read.positions) {
            let parenthesis = matches!(*canonical, SymbolId::LPAREN | SymbolId::RPAREN);
            assert!(parenthesis || read.given.symbols[at] == *canonical, "{written}");
        }
    }
}

#[test]
fn leading_zeros_are_dropped_leniently_and_positions_stay() {
    let words =
        "<bos> LPAREN PRED 0 0 7 LPAREN VAR 0 0 RPAREN AND LPAREN TRUE RPAREN RPAREN <eos> <pad> <pad>";
    let read = parse(words, Source::Words, Mode::Lenient).unwrap();
    assert_eq!(print(&read.text, Style::Unicode), "(P7(x0) ∧ ⊤)");
    assert_eq!(read.positions, [1, 2, 5, 6, 7, 9, 10, 11, 13, 14]);
    assert_eq!(parse(words, Source::Words, Mode::Strict).unwrap_err().kind, Kind::LeadingZero);
}

/// One refusal, as kind, token and expected labels.
fn refused(input: &str, source: Source, mode: Mode) -> Refusal {
    parse(input, source, mode).map(|read| panic!("{input}: {read:?}")).unwrap_or_else(|refusal| refusal)
}

#[track_caller]
fn check(words: &str, kind: Kind, token: usize, expected: &str) {
    let refusal = refused(words, Source::Words, Mode::Strict);
    assert_eq!((refusal.kind, refusal.token), (kind, Some(token)), "{refusal:?}");
    assert_eq!(refusal.expected.unwrap().join(" "), expected);
}

const FORMULA: &str = "NOT FORALL EXISTS EXISTS1 LPAREN VAR CONST PRED FUNC TRUE FALSE";
const RELATIONS: &str = "EQUALS NOT_EQUALS LESS_THAN GREATER_THAN LESS_EQUAL GREATER_EQUAL";

#[test]
fn expected_sets_are_exact() {
    use Kind::{IndexOverflow, LeadingZero, UnexpectedEnd, UnexpectedSymbol};
    check("", UnexpectedEnd, 0, &format!("{FORMULA} ENTAILS MODELS"));
    check("<bos>", UnexpectedEnd, 1, &format!("{FORMULA} ENTAILS MODELS"));
    check("<bos> TRUE", UnexpectedEnd, 2, "COMMA DOT ENTAILS MODELS EQUIVALENT <eos>");
    check("<bos> TRUE <eos> <pad>", UnexpectedSymbol, 3, "");
    check("TRUE <eos>", UnexpectedSymbol, 1, "COMMA DOT ENTAILS MODELS EQUIVALENT <eos>");
    check("TRUE COMMA TRUE <eos>", UnexpectedSymbol, 3, "COMMA ENTAILS MODELS");
    check("TRUE COMMA TRUE DOT", UnexpectedSymbol, 3, "COMMA ENTAILS MODELS");
    check("TRUE COMMA", UnexpectedEnd, 2, FORMULA);
    check("TRUE COMMA PRED 0 DEFINE", UnexpectedSymbol, 4, "LPAREN COMMA ENTAILS MODELS");
    check("TRUE DOT DOT", UnexpectedSymbol, 2, &format!("{FORMULA} ENTAILS MODELS <eos>"));
    check("ENTAILS", UnexpectedEnd, 1, &format!("{FORMULA} <unknown>"));
    check("ENTAILS <unknown> TRUE", UnexpectedSymbol, 2, "DOT <eos>");
    check("TRUE EQUIVALENT TRUE EQUIVALENT", UnexpectedSymbol, 3, "DOT <eos>");
    check("VAR 3 EQUALS", UnexpectedEnd, 3, "VAR CONST FUNC");
    check("VAR 3 DEFINE", UnexpectedSymbol, 2, &format!("0..624 {RELATIONS}"));
    check("CONST 0 TRUE", UnexpectedSymbol, 2, &format!("{RELATIONS} DEFINE"));
    check("NOT CONST 0 DEFINE", UnexpectedSymbol, 3, RELATIONS);
    check("FUNC 0 DEFINE", UnexpectedSymbol, 2, "LPAREN");
    check("FUNC 0 LPAREN VAR 0 RPAREN RPAREN", UnexpectedSymbol, 6, &format!("{RELATIONS} DEFINE"));
    check("FUNC 0 LPAREN CONST 0 RPAREN DEFINE", UnexpectedSymbol, 6, RELATIONS);
    check("FUNC 0 LPAREN VAR 0 RPAREN DEFINE TRUE", UnexpectedSymbol, 7, "VAR CONST FUNC");
    check(
        "PRED 0 LPAREN VAR 0 COMMA CONST 1 RPAREN DEFINE",
        UnexpectedSymbol,
        9,
        "COMMA DOT ENTAILS MODELS EQUIVALENT <eos>",
    );
    check(
        "PRED 0 LPAREN VAR 0 RPAREN TRUE",
        UnexpectedSymbol,
        6,
        "COMMA DOT ENTAILS MODELS DEFINE EQUIVALENT <eos>",
    );
    check("PRED 0 DEFINE PRED 1 DEFINE", UnexpectedSymbol, 5, "0..624 LPAREN DOT <eos>");
    check(
        "FORALL VAR 0 5 TRUE",
        LeadingZero,
        3,
        "NOT FORALL EXISTS EXISTS1 LPAREN COLON VAR CONST PRED FUNC TRUE FALSE",
    );
    check("FORALL VAR 0 COLON TRUE", UnexpectedSymbol, 4, "SORT");
    check("FORALL VAR 0 COLON SORT 0 COLON", UnexpectedSymbol, 6, FORMULA);
    check("LPAREN TRUE RPAREN", UnexpectedSymbol, 2, "AND OR IMPLIES IFF");
    check("LPAREN NOT TRUE AND TRUE AND", UnexpectedSymbol, 5, "RPAREN");
    check("PRED 0 0", LeadingZero, 2, "LPAREN COMMA DOT ENTAILS MODELS DEFINE EQUIVALENT <eos>");
    check("TRUE <pad>", UnexpectedSymbol, 1, "COMMA DOT ENTAILS MODELS EQUIVALENT <eos>");
    // 2⁶⁴ − 1 has the digits 309 309 92 450 94 52 490.
    let most = fol::codec::digits(u64::MAX);
    let words = |digits: &[u16]| digits.iter().map(u16::to_string).collect::<Vec<_>>().join(" ");
    let last = most[6];
    let over = format!("VAR {} {}", words(&most[..6]), last + 1);
    check(&over, IndexOverflow, 7, &format!("0..{last} {RELATIONS}"));
    check(&format!("VAR {} 0", words(&most)), IndexOverflow, 8, RELATIONS);
}

#[test]
fn nesting_ends_at_1024() {
    let atoms = "VAR CONST PRED TRUE FALSE";
    let after_binder = &format!("0..624 COLON {atoms}");
    for (opening, tokens, expected) in
        [("NOT ", 1, atoms), ("FORALL VAR 1 ", 3, after_binder), ("LPAREN ", 1, atoms)]
    {
        check(&opening.repeat(1025), Kind::TooDeep, 1024 * tokens, expected);
        let deepest = opening.repeat(1024);
        check(&format!("{deepest} FUNC"), Kind::TooDeep, 1024 * tokens, expected);
        check(&format!("{deepest} AND"), Kind::UnexpectedSymbol, 1024 * tokens, expected);
    }
    let term = |n: usize| format!("{}CONST 0 {}", "FUNC 0 LPAREN ".repeat(n), "RPAREN ".repeat(n));
    check(&format!("CONST 0 EQUALS {}", term(1025)), Kind::TooDeep, 3 + 3 * 1024, "VAR CONST");
    assert!(parse(&format!("CONST 0 EQUALS {}", term(1024)), Source::Words, Mode::Strict).is_ok());
    assert!(parse(&format!("{} TRUE", "NOT ".repeat(1024)), Source::Words, Mode::Strict).is_ok());
}

#[test]
fn lenient_nesting_ends_at_1024() {
    let accepted = |text: &str| match parse(text, Source::Text, Mode::Lenient) {
        Ok(read) => {
            assert_eq!(decode(&read.tokens), Ok(read.text));
            true
        }
        Err(refusal) => {
            assert_eq!(refusal.kind, Kind::TooDeep, "{refusal:?}");
            false
        }
    };
    let nested = |open: &str, n: usize, close: &str| format!("{}P0{}", open.repeat(n), close.repeat(n));
    for (open, close) in
        [("¬", ""), ("(", ")"), ("∀x ", ""), ("P→", ""), ("", "∧P"), ("", "↔P"), ("(", "∨P)")]
    {
        assert!(accepted(&nested(open, 1024, close)), "{open}{close}");
        assert!(!accepted(&nested(open, 1025, close)), "{open}{close}");
        assert!(!accepted(&nested(open, 100_000, close)), "{open}{close}");
    }
    // Here the innermost parentheses are redundant and count, the others belong to the conjunctions.
    assert!(accepted(&nested("P∧(", 1023, ")")));
    assert!(!accepted(&nested("P∧(", 1024, ")")));
    assert!(!accepted(&format!("¬({})", nested("", 1023, "∧P").replace("P0", "¬P0"))));
    assert!(accepted(&format!("¬({})", nested("", 1022, "∧P").replace("P0", "¬P0"))));
    assert!(!accepted(&"(".repeat(100_000)));
}

#[test]
fn names_are_found_and_numbered() {
    let names = |text: &str| {
        let read =
            parse(text, Source::Text, Mode::Lenient).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        let names = read.given.names.iter().flat_map(|(category, names)| {
            names.iter().map(move |(name, index)| format!("{category} {name} {index}"))
        });
        (print(&read.text, Style::Unicode), names.collect::<Vec<_>>().join(", "))
    };
    let check = |text: &str, printed: &str, given: &str| {
        assert_eq!(names(text), (printed.to_owned(), given.to_owned()))
    };
    check("∀X P(x)", "∀x0 P0(x1)", "PRED P 0, VAR X 0, VAR x 1");
    check("∀a:S3 P(a, b)", "∀x0:S3 P0(x0, c0)", "CONST b 0, PRED P 0, VAR a 0");
    check("∀x:Man P(x1, x)", "∀x0:S0 P0(x1, x0)", "PRED P 0, SORT Man 0, VAR x 0");
    check("P(c1, c, d, c1')", "P0(c1, c0, c2, c3)", "CONST c 0, CONST c1' 3, CONST d 2, PRED P 0");
    check("f(f) = f1(c₁₂)", "f0(c0) = f1(c12)", "CONST f 0, FUNC f 0");
    check("∀f12 f12(f12) = y₁", "∀x0 f12(x0) = x1", "VAR f12 0, VAR y1 1");
    check(
        "_a = _A and not notx = w",
        "(c0 = c1 ∧ ¬c2 = x0)",
        "CONST _A 1, CONST _a 0, CONST notx 2, VAR w 0",
    );
    check("x007 = x7", "x7 = x7", "");
    check("exists!x P1 and exists1 y forall y P2", "(∃!x0 P1 ∧ ∃!x1 ∀x1 P2)", "VAR x 0, VAR y 1");
    check("P2 /\\ P1 \\/ P => Q <=> R", "((((P2 ∧ P1) ∨ P0) → P3) ↔ P4)", "PRED P 0, PRED Q 3, PRED R 4");
}

#[test]
fn lexical_refusals() {
    let at = |text: &str, mode| {
        let refusal = refused(text, Source::Text, mode);
        (refusal.kind, format!("{:?}", refusal.stage), refusal.token, refusal.span)
    };
    let lex = |kind, token, span| (kind, "Lex".to_owned(), token, Some(span));
    assert_eq!(at("∀x1 § P", Mode::Lenient), lex(Kind::UnknownCharacter, None, (6, 8)));
    assert_eq!(at("P1 ∧ § (", Mode::Lenient), lex(Kind::UnknownCharacter, None, (7, 9)));
    assert_eq!(at("P625(x007)", Mode::Strict), lex(Kind::LeadingZero, Some(5), (5, 9)));
    assert_eq!(at("x1 = c18446744073709551616", Mode::Lenient), lex(Kind::IndexOverflow, Some(4), (5, 26)));
    assert_eq!(at("P 5", Mode::Lenient), lex(Kind::UnknownCharacter, None, (2, 3)));
    let words = refused("TRUE PREDICATE", Source::Words, Mode::Strict);
    assert_eq!((words.kind, words.token), (Kind::UnknownId, Some(1)));
    let tokens = refused("649,-1", Source::Tokens, Mode::Strict);
    assert_eq!((tokens.kind, tokens.token), (Kind::UnknownId, Some(1)));
}

/// An input is read as something that prints and reads as itself, or refused at a place that it has.
fn answered(input: &str, source: Source, mode: Mode) -> u32 {
    match parse(input, source, mode) {
        Ok(read) => {
            let again = parse(&print(&read.text, Style::Unicode), Source::Text, Mode::Strict).unwrap();
            assert_eq!(again.text, read.text, "{input}");
            0
        }
        Err(refusal) => {
            if let Some((start, end)) = refusal.span {
                assert!(input.get(start..end).is_some(), "{input}: {refusal:?}");
            }
            assert!(refusal.token.is_none_or(|at| at <= 30 * input.len()), "{input}: {refusal:?}");
            1
        }
    }
}

#[test]
fn no_input_panics() {
    let mut refused = 0;
    let pieces = [
        "∀",
        "x",
        "(",
        ")",
        "¬",
        "P1",
        "f(",
        ",",
        ":",
        "S",
        "=",
        "⊢",
        ".",
        "≔",
        "<unknown>",
        "->",
        "c00",
        "∃!",
        "≡",
    ];
    for item in 0..20_000 {
        let mut trees = Trees::new("fuzz", item);
        let bytes: Vec<u8> = (0..trees.below(64)).map(|_| trees.below(256) as u8).collect();
        let symbols: Vec<String> = (0..trees.below(32)).map(|_| trees.pick(&pieces).to_owned()).collect();
        let ids: Vec<String> = (0..trees.below(32))
            .map(|_| match trees.below(3) {
                0 => trees.below(700).to_string(),
                1 => trees.below(3).to_string(),
                _ => (625 + trees.below(38)).to_string(),
            })
            .collect();
        for mode in [Mode::Strict, Mode::Lenient] {
            for source in [Source::Text, Source::Tokens, Source::Words] {
                refused += answered(&String::from_utf8_lossy(&bytes), source, mode);
            }
            refused += answered(&symbols.concat(), Source::Text, mode);
            if let Ok(read) = parse(&ids.join(" "), Source::Tokens, mode) {
                assert_eq!(decode(&read.tokens), Ok(read.text));
            }
        }
    }
    assert!(refused > 100_000, "{refused}");
}

/// Texts of one file: names are shared, and are none that a later text writes; variables are those of their text.
#[test]
fn texts_that_are_read_together_have_their_names_in_common() {
    let texts = ["∀u (A(u, k) → P0(u))", "∀w B(f(w), c1)", "∀u:Town A(g(k), u)", "(A(", "P1(x9)"];
    let mut together = fol::read::Together::of(texts);
    let mut read = |text: &str| {
        together.parse(text, Mode::Strict).map(|parsed| print(&parsed.text, Style::Ascii)).map_err(|r| r.kind)
    };
    let found = texts.map(&mut read);
    let alone = |text: &str| print(&parse(text, Source::Text, Mode::Strict).unwrap().text, Style::Ascii);
    assert_eq!(found[0], Ok(alone("∀u (P2(u, c0) → P0(u))")));
    assert_eq!(found[1], Ok(alone("∀w P3(f0(w), c1)")));
    assert_eq!(found[2], Ok(alone("∀u:s0 P2(f1(c0), u)")));
    assert_eq!((found[3].clone(), found[4].clone()), (Err(Kind::UnexpectedEnd), Ok(alone("P1(x9)"))));
}
