//! Codes of texts: both directions, what is refused, the exact probability of every next token, masks.

use std::collections::{BTreeMap, HashSet};

use fol::ast::{Formula, Text};
use fol::error::{Kind, Refusal};
use fol::law::Law;
use fol::mask::{Grammar, Mask, Options};
use fol::notation::{Code, CodeMask, Entities, Entity, Notation, Token, Tokenization};
use fol::sample::{Sampler, family};
use fol::score::{CodeScorer, ExactScorer, Scorer};
use fol::symbol::{SymbolId, SymbolKind};

use crate::common::{self, Trees, law};

const ALL: [(Tokenization, Notation); 4] = [
    (Tokenization::Compositional, Notation::Infix),
    (Tokenization::Atomic, Notation::Infix),
    (Tokenization::Compositional, Notation::Prefix),
    (Tokenization::Atomic, Notation::Prefix),
];

/// The codes that fit a law: all four, or two if it has no fixed arities.
pub(crate) fn codes(law: &Law) -> Vec<Code> {
    let signature = law.signature();
    ALL.iter().filter_map(|&(t, n)| Code::new(t, n, &signature, None).ok()).collect()
}

fn symbols(text: &str) -> Vec<SymbolId> {
    use fol::read::{Mode, Source, parse};
    parse(text, Source::Text, Mode::Lenient).unwrap().tokens
}

pub(crate) fn texts(law: &Law, number: u64) -> Vec<Vec<SymbolId>> {
    let mut sampler = Sampler::new(law).unwrap();
    let family = family("test", seeded::test_seed());
    let draw = |i| {
        let mut tokens = Vec::new();
        sampler.sample(&mut family.stream(i), &mut tokens);
        tokens
    };
    (0..number).map(draw).collect()
}

/// Laws with fixed arities that between them reach every branch of the grammar, and two without.
pub(crate) fn laws() -> Vec<Law> {
    vec![
        law("public", &[]),
        law("public", &[("overloaded", "{ names = 700, arities = [[0,1],[1,2],[3,1]] }"), ("names", "2000")]),
        law("public", &[("predicates", "[[0,2],[1,3],[2,700]]"), ("names", "2000")]),
        law("seed", &[]),
        law("uniform", &[]),
        law("pr", &[]),
        law("full", &[]),
        law(
            "public-advanced",
            &[("predicates", "[[0,1],[1,2],[2,700]]"), ("vacuous", "30"), ("shadow", "30")],
        ),
        law("boltzmann", &[("nodes", "12")]),
        common::statements(),
        law("uniform", &[("levels", "[[4,1]]"), ("sizes", "[[4,3,25]]"), ("pool", "5000")]),
        law(
            "pr",
            &[("predicates", "[[0,1],[3,1]]"), ("truth", "true"), ("constants", "1"), ("sizes", "[1,12]")],
        ),
    ]
}

#[test]
fn the_example_of_the_page() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fol/notations.md");
    let page = std::fs::read_to_string(page).unwrap();
    let law = law("seed", &[("relations", "{ EQUALS = 1 }")]);
    let text = symbols("∀x1 (P0(x1) ∧ ¬x1 = c2)");
    let lengths: Vec<usize> = codes(&law)
        .iter()
        .map(|code| {
            let tokens = code.encode(&text).unwrap();
            assert!(page.contains(&format!("`{}`", code.words(&tokens))), "{}", code.words(&tokens));
            assert_eq!(code.decode(&tokens).unwrap(), text);
            tokens.len()
        })
        .collect();
    assert_eq!(lengths, [18, 13, 14, 9]);
    // The vocabulary of the document.
    let large = common::law(
        "public",
        &[("names", "625"), ("overloaded", "{ names = 625, arities = [[1,1],[2,1]] }")],
    );
    let code = Code::new(Tokenization::Atomic, Notation::Infix, &large.signature(), None).unwrap();
    assert_eq!(code.size(), 1288);
    let ids = [SymbolId::NOT, SymbolId::PAD, SymbolId::BOS, SymbolId::EOS, SymbolId::UNK];
    assert_eq!(ids.map(|s| code.token(s).unwrap().get()), [0, 30, 31, 32, 33]);
    assert_eq!((code.label(Token::new(38)), code.label(Token::new(1287))), ("x0".into(), "P624".into()));
}

#[test]
fn texts_of_every_law_go_there_and_back() {
    for law in laws() {
        let codes = codes(&law);
        let fixed = law.signature().predicates.iter().all(|arities| arities.len() < 2);
        assert_eq!(codes.len(), if fixed { 4 } else { 2 });
        for text in texts(&law, 200) {
            for code in &codes {
                let tokens = code.encode(&text).unwrap();
                assert!(tokens.len() <= text.len() && tokens.iter().all(|t| t.index() < code.size()));
                assert_eq!(code.decode(&tokens).unwrap(), text, "{}", code.words(&tokens));
            }
        }
    }
}

/// Any tree, names of any size.
#[test]
fn random_trees_as_atomic_tokens() {
    for item in 0..300 {
        let mut trees = Trees::new("notations", item);
        let text = fol::encode(&trees.text());
        let signature = law("public", &[]).signature();
        let entities = Entities::of_texts([text.as_slice()]).unwrap();
        let code = Code::new(Tokenization::Atomic, Notation::Infix, &signature, Some(entities)).unwrap();
        let tokens = code.encode(&text).unwrap();
        assert_eq!(code.decode(&tokens).unwrap(), text);
        for entity in code.entities().unwrap().iter() {
            assert_eq!(Entity::from_label(&entity.to_string()), Some(entity));
        }
    }
}

/// What is read is what its text is written as; what is refused has a place.
#[test]
fn changed_tokens_are_refused_or_read_back() {
    let (mut read, mut refused) = (0, 0);
    for (law, which) in laws().into_iter().zip(0..) {
        for code in codes(&law) {
            let mut stream = common::drawn(&seeded::Family::named("changed"), which);
            for text in texts(&law, 60) {
                let mut tokens = code.encode(&text).unwrap();
                for _ in 0..1 + stream.below(2) {
                    let at = stream.below(tokens.len() as u64) as usize;
                    // Signs more often than names.
                    let signs = if code.tokenization() == Tokenization::Atomic { 0 } else { 625 };
                    let other = match stream.below(3) {
                        0 => stream.below(code.size() as u64 + 1),
                        _ => signs + stream.below(38),
                    };
                    match stream.below(3) {
                        0 if tokens.len() > 1 => drop(tokens.remove(at)),
                        1 => tokens.insert(at, Token::new(other as u16)),
                        _ => tokens[at] = Token::new(other as u16),
                    }
                }
                match code.decode(&tokens) {
                    Ok(symbols) => {
                        read += 1;
                        assert_eq!(code.encode(&symbols).unwrap(), tokens, "{}", code.words(&tokens));
                    }
                    Err(refusal) => {
                        refused += 1;
                        assert!(refusal.token.is_some_and(|at| at <= tokens.len()), "{refusal:?}");
                        assert_eq!(
                            refusal.found.as_deref() == Some("end"),
                            refusal.token == Some(tokens.len())
                        );
                    }
                }
            }
        }
    }
    assert!(read > 0 && refused > 0);
}

#[test]
fn refusals_by_kind_and_place() {
    let law = law("seed", &[("relations", "{ EQUALS = 1 }")]);
    let signature = law.signature();
    let kind = |refusal: Refusal| (refusal.kind, refusal.token, refusal.found.unwrap_or_default());
    let code = |t, n| Code::new(t, n, &signature, None).unwrap();
    let atomic = code(Tokenization::Atomic, Notation::Infix);
    let prefix = code(Tokenization::Compositional, Notation::Prefix);
    let both = code(Tokenization::Atomic, Notation::Prefix);
    let token = |code: &Code, label: &str| code.tokens().find(|&t| code.label(t) == label).unwrap();
    let tokens = |code: &Code, labels: &str| -> Vec<Token> {
        labels.split(' ').map(|label| token(code, label)).collect()
    };
    let encode = |code: &Code, text: &str| kind(code.encode(&symbols(text)).unwrap_err());
    let decode = |code: &Code, labels: &str| kind(code.decode(&tokens(code, labels)).unwrap_err());

    // Names that the law has not.
    let nowhere = (Kind::NotInSignature, Some(3), "CONST".to_owned());
    assert_eq!(encode(&atomic, "P0(c9)"), nowhere);
    assert_eq!(encode(&both, "P0(c9)"), nowhere);
    assert_eq!(encode(&both, "(P0(c0) ∧ c1 = c9)"), (Kind::NotInSignature, Some(11), "CONST".to_owned()));
    assert_eq!(encode(&prefix, "(P0(c0) ∧ P7(c0))"), (Kind::NotInSignature, Some(8), "PRED".to_owned()));
    assert_eq!(encode(&prefix, "¬P0(c0, c1)"), (Kind::ArityMismatch, Some(1), "PRED".to_owned()));
    // Half a name.
    let half = [SymbolId::FORALL, SymbolId::VAR];
    assert_eq!(kind(atomic.cut(&half).unwrap_err()), (Kind::UnexpectedEnd, Some(2), "end".to_owned()));
    let digit = fol::symbol::Numeral::new(3).unwrap().symbol();
    assert_eq!(kind(atomic.cut(&[digit]).unwrap_err()), (Kind::UnexpectedSymbol, Some(0), "3".to_owned()));
    let size = atomic.size() as u16;
    let beyond = atomic.decode(&[token(&atomic, "TRUE"), Token::new(size)]).unwrap_err();
    assert_eq!(kind(beyond), (Kind::UnknownId, Some(1), size.to_string()));
    // Texts that end too early or go on too long, and signs that prefix notation has not.
    assert_eq!(decode(&both, "AND P0 c0"), (Kind::UnexpectedEnd, Some(3), "end".to_owned()));
    assert_eq!(decode(&both, "EQUALS"), (Kind::UnexpectedEnd, Some(1), "end".to_owned()));
    assert_eq!(decode(&both, "P0 c0 c1"), (Kind::UnexpectedSymbol, Some(2), "c1".to_owned()));
    assert_eq!(decode(&both, "AND P0 c0 COMMA"), (Kind::UnexpectedSymbol, Some(3), "COMMA".to_owned()));
    assert_eq!(decode(&prefix, "PRED 0 LPAREN"), (Kind::UnexpectedSymbol, Some(2), "LPAREN".to_owned()));
    assert_eq!(decode(&prefix, "PRED 0 0"), (Kind::LeadingZero, Some(2), "0".to_owned()));
    assert_eq!(decode(&prefix, "PRED 9 CONST"), (Kind::NotInSignature, Some(2), "CONST".to_owned()));
    assert_eq!(
        decode(&prefix, "<bos> PRED 0 CONST 0 <eos>"),
        (Kind::UnexpectedSymbol, Some(0), "<bos>".to_owned())
    );

    // What has no code at all.
    let public = common::law("public", &[]).signature();
    let refusal = Code::new(Tokenization::Atomic, Notation::Prefix, &public, None).unwrap_err();
    assert_eq!(refusal.kind, Kind::BadValue);
    assert!(refusal.message.contains("P0 has 1 or 2 arguments"), "{refusal}");
    for (name, changes) in [("public", vec![]), ("seed", vec![("predicates", "[[2,2]]")])] {
        let other = common::law(name, &changes);
        assert_eq!(CodeScorer::new(&other, &prefix).unwrap_err().kind, Kind::BadValue);
        assert!(CodeScorer::new(&other, &atomic).is_ok());
    }
    let many = common::law("public", &[("names", "4000000000")]).signature();
    assert_eq!(Entities::of_signature(&many).unwrap_err().kind, Kind::BadValue);
}

/// Each code's distribution sums to 1 and says what pushing says, and a text costs what it costs in canonical symbols.
#[test]
fn distributions_sum_to_one_and_formulas_cost_the_same() {
    for law in laws() {
        let mut plain = Scorer::new(&law).unwrap();
        for code in codes(&law) {
            let mut scorer = CodeScorer::new(&law, &code).unwrap();
            let eos = code.token(SymbolId::EOS).unwrap();
            for text in texts(&law, 15) {
                scorer.reset();
                for token in code.encode(&text).unwrap().into_iter().chain([eos]) {
                    let sum: f64 = scorer.next_dist().iter().sum();
                    assert!((sum - 1.0).abs() < 1e-12 && scorer.rest() < 1e-12, "{sum}");
                    let expected = scorer.next_dist()[token.index()];
                    let p = scorer.push(token).unwrap();
                    assert!((p - expected).abs() < 1e-12, "{p} {expected} {}", code.label(token));
                }
                assert!(scorer.next_dist().iter().all(|&p| p <= 0.0));
                let whole = plain.score(&text).unwrap();
                assert!((scorer.nll() - whole).abs() < 1e-9, "{} {whole}", scorer.nll());
            }
        }
    }
}

/// Every text of a finite law with its probability, by the scorer of canonical symbols.
fn enumerated(law: &Law) -> Vec<(Vec<SymbolId>, f64)> {
    let mut scorer = Scorer::new(law).unwrap();
    let (mut whole, mut open) = (Vec::new(), vec![(Vec::<SymbolId>::new(), 1.0)]);
    while let Some((prefix, p)) = open.pop() {
        scorer.reset();
        prefix.iter().for_each(|&symbol| scorer.push(symbol).unwrap());
        for (symbol, q) in SymbolId::all().zip(*scorer.next_dist()).filter(|(_, q)| *q > 0.0) {
            if symbol == SymbolId::EOS {
                whole.push((prefix.clone(), p * q));
            } else {
                open.push(([&prefix[..], &[symbol]].concat(), p * q));
            }
        }
    }
    assert!((whole.iter().map(|w| w.1).sum::<f64>() - 1.0).abs() < 1e-9);
    whole
}

/// The distribution after a prefix of `depth` tokens that all of `texts` have, against sums over them; then after each
/// longer prefix.
fn compare(scorer: &CodeScorer, texts: &[(Vec<Token>, f64)], depth: usize) -> usize {
    let all: f64 = texts.iter().map(|t| t.1).sum();
    let mut wanted: BTreeMap<Token, f64> = BTreeMap::new();
    texts.iter().for_each(|(tokens, p)| *wanted.entry(tokens[depth]).or_insert(0.0) += p / all);
    let mut found = scorer.clone();
    for (token, &p) in scorer.code().tokens().zip(found.next_dist()) {
        let wanted = wanted.get(&token).copied().unwrap_or(0.0);
        let after = || scorer.code().words(&texts[0].0[..depth]);
        assert!(
            (p - wanted).abs() < 1e-12,
            "{} after {}: {p}, not {wanted}",
            scorer.code().label(token),
            after()
        );
    }
    let mut prefixes = 1;
    for same in texts.chunk_by(|a, b| a.0[depth] == b.0[depth]) {
        let mut next = scorer.clone();
        next.push(same[0].0[depth]).unwrap();
        if same[0].0.len() > depth + 1 {
            prefixes += compare(&next, same, depth + 1);
        }
    }
    prefixes
}

/// The next token at every prefix of every code, against sums over all texts of finite laws.
#[test]
fn every_next_token_by_enumeration() {
    let few = [
        ("predicates", "[[0,1],[1,1]]"),
        ("connectives", "{ NOT = 1, AND = 2, OR = 1 }"),
        ("quantifiers", "{ FORALL = 1, EXISTS = 2 }"),
        ("constants", "1"),
    ];
    let statements = [
        ("depth_mix", "[[0,1]]"),
        ("levels", "[]"),
        ("predicates", "[[0,1],[1,1]]"),
        ("atoms", "{ predicate = 1 }"),
        ("constants", "1"),
        ("functions", "[[1,1]]"),
        ("names", "2"),
        ("terms", "{ variable = 1, constant = 2 }"),
        ("statements.count", "[[1,3],[2,1]]"),
        ("statements.dot", "{ no = 3, yes = 1 }"),
        ("statements.premises", "[[0,1],[1,3],[2,2]]"),
        ("statements.conclusion", "{ formula = 3, unknown = 1 }"),
    ];
    let laws = [
        law("pr", &[("sizes", "[2,4]")]),
        law(
            "pr",
            &[("sizes", "[1,3]"), ("constants", "1"), ("relations", "[\"EQUALS\"]"), ("truth", "true")],
        ),
        law(
            "uniform",
            &[
                ("levels", "[[2,1],[3,2],[4,5]]"),
                ("sizes", "[[2,2,3],[3,2,3],[4,3,4]]"),
                ("predicates", "[[0,1],[2,1]]"),
                ("constants", "1"),
                ("relations", "[]"),
                ("connectives", "[\"NOT\",\"IMPLIES\"]"),
                ("pool", "3"),
            ],
        ),
        law(
            "seed",
            &[&few[..], &[("depth_mix", "[[1,1],[2,2]]"), ("levels", "[[1,1],[2,2],[3,3],[4,4]]")]].concat(),
        ),
        law("seed", &statements),
        // One text may be drawn with binders that bind something and with binders that do not.
        law(
            "public-advanced",
            &[
                ("depth_mix", "[[1,1],[2,1]]"),
                ("connectives", "{ NOT = 1, AND = 1 }"),
                ("quantifiers", "{ FORALL = 1 }"),
                ("atoms", "{ predicate = 1 }"),
                ("predicates", "[[1,1]]"),
                ("functions", "[]"),
                ("constants", "1"),
                ("names", "2"),
                ("vacuous", "30"),
                ("shadow", "30"),
            ],
        ),
        law(
            "seed",
            &[
                ("depth_mix", "[[1,1]]"),
                ("levels", "[]"),
                ("predicates", "[[1,1]]"),
                ("functions", "[[1,1],[2,1]]"),
                ("terms.function", "3"),
                ("term_depth", "1"),
                ("constants", "1"),
                ("binder", "pool"),
                ("names", "2"),
                ("atoms", "{ predicate = 2, relation = 1, truth = 1 }"),
                ("relations", "{ EQUALS = 1, LESS_THAN = 2 }"),
                ("connectives", "{ NOT = 1, IFF = 1 }"),
                ("quantifiers", "{ FORALL = 1 }"),
                ("kinds", "{ atom = 2, quantifier = 1 }"),
                ("sorts", "1"),
                ("sorted", "{ no = 1, yes = 1 }"),
            ],
        ),
        // Names of two digits: after the digit 1 an index may end or go on.
        law(
            "public",
            &[
                ("depth_mix", "[[1,1]]"),
                ("predicates", "[[0,1],[1,626]]"),
                ("names", "627"),
                ("kinds", "{ atom = 1 }"),
                ("atoms", "{ predicate = 1, relation = 0, truth = 0 }"),
                ("predicates", "[[1,1]]"),
            ],
        ),
        law(
            "seed",
            &[
                ("depth_mix", "[[0,1]]"),
                ("levels", "[]"),
                ("predicates", "[[0,1250],[1,700]]"),
                ("constants", "2"),
            ],
        ),
        // Without fixed arities, in infix notation.
        law(
            "public",
            &[
                ("depth_mix", "[[0,1],[1,1]]"),
                ("names", "2"),
                ("overloaded", "{ names = 2, arities = [[0,1],[1,2],[2,1]] }"),
                ("connectives", "{ NOT = 1, AND = 1 }"),
            ],
        ),
    ];
    for law in laws {
        let texts = enumerated(&law);
        let codes = codes(&law);
        for code in codes {
            let eos = code.token(SymbolId::EOS).unwrap();
            let coded = |(text, p): &(Vec<SymbolId>, f64)| {
                let tokens = code.encode(text).unwrap();
                ([tokens, vec![eos]].concat(), *p)
            };
            let mut coded: Vec<(Vec<Token>, f64)> = texts.iter().map(coded).collect();
            coded.sort_by(|a, b| a.0.cmp(&b.0));
            assert!(coded.windows(2).all(|pair| pair[0].0 != pair[1].0), "two texts have one code");
            let prefixes = compare(&CodeScorer::new(&law, &code).unwrap(), &coded, 0);
            assert!(prefixes >= texts.len());
        }
    }
}

/// With a list from the data the rest of the probability is said, and what has no token is refused.
#[test]
fn names_without_a_token_are_the_rest() {
    let law = law("atomic", &[("names", "3")]);
    let entities = Entities::of_signature(&law.signature()).unwrap();
    let missing = Entity { category: SymbolId::VAR, index: 1 };
    let fewer = Entities::new(entities.iter().filter(|&e| e != missing)).unwrap();
    let code = Code::new(Tokenization::Atomic, Notation::Infix, &law.signature(), Some(fewer)).unwrap();
    assert!(!code.covers(&law.signature()));
    let mut scorer = CodeScorer::new(&law, &code).unwrap();
    // At the start a variable is the left side of a relation: .3, and each of three names has a third of it.
    assert!((scorer.rest() - 0.1).abs() < 1e-12);
    assert!((scorer.next_dist().iter().sum::<f64>() - 0.9).abs() < 1e-12);
    let refusal = code.encode(&symbols("x0 = x1")).unwrap_err();
    assert_eq!((refusal.kind, refusal.token), (Kind::NotInSignature, Some(3)));
    let mut options = Options::new(Grammar::Formula);
    options.within = Some(law.signature());
    assert_eq!(CodeMask::new(&code, &options).unwrap_err().kind, Kind::BadValue);
    // A token of probability 0 leaves the prefix as it was.
    let before = scorer.next_dist().to_vec();
    let refusal = scorer.push(code.token(SymbolId::RPAREN).unwrap()).unwrap_err();
    assert_eq!(
        (refusal.kind, refusal.token, refusal.found.as_deref()),
        (Kind::OffLaw, Some(0), Some("RPAREN"))
    );
    assert_eq!(scorer.next_dist(), before);
}

/// All formulas that a mask lets through, by going every way.
fn formulas(mask: &Mask) -> Vec<Vec<SymbolId>> {
    let (mut whole, mut open) = (Vec::new(), vec![(Vec::new(), mask.clone())]);
    while let Some((prefix, mask)) = open.pop() {
        for symbol in mask.legal().iter() {
            let mut next = mask.clone();
            next.push(symbol).unwrap();
            let longer: Vec<SymbolId> = [&prefix[..], &[symbol]].concat();
            if next.is_complete() { whole.push(prefix.clone()) } else { open.push((longer, next)) }
        }
    }
    whole
}

/// The legal tokens after every prefix of every formula within a budget are those that some code goes on with.
#[test]
fn masks_of_codes_by_enumeration() {
    let fixed = |changes: &[(&str, &str)]| law("seed", changes);
    for (law, budget) in [
        (
            fixed(&[
                ("predicates", "[[0,1],[1,1]]"),
                ("constants", "1"),
                ("connectives", "{ NOT = 1, AND = 1, IFF = 1 }"),
                ("quantifiers", "{ EXISTS = 1 }"),
                ("atoms", "{ predicate = 1, relation = 1, truth = 1 }"),
                ("relations", "{ EQUALS = 1, LESS_THAN = 1 }"),
                ("truth", "{ TRUE = 1 }"),
                ("depth_mix", "[[1,1]]"),
                ("levels", "[]"),
            ]),
            9,
        ),
        (
            fixed(&[
                ("predicates", "[[2,1],[0,627]]"),
                ("constants", "1"),
                ("connectives", "{ OR = 1 }"),
                ("quantifiers", "{ FORALL = 1 }"),
                ("depth_mix", "[[1,1]]"),
                ("levels", "[]"),
            ]),
            7,
        ),
        (
            fixed(&[
                ("predicates", "[[1,1]]"),
                ("functions", "[[2,1]]"),
                ("terms", "{ variable = 1, constant = 1, function = 1 }"),
                ("term_depth", "1"),
                ("constants", "1"),
                ("connectives", "{ NOT = 1 }"),
                ("quantifiers", "{ FORALL = 1 }"),
                ("sorts", "1"),
                ("sorted", "{ no = 1, yes = 1 }"),
                ("depth_mix", "[[1,1]]"),
                ("levels", "[]"),
            ]),
            15,
        ),
    ] {
        let signature = law.signature();
        let mut options = Options::new(Grammar::Formula);
        (options.within, options.closed, options.budget) = (Some(signature.clone()), true, Some(budget));
        let whole = formulas(&Mask::new(&options));
        assert!(whole.len() > 10);
        for code in codes(&law) {
            let eos = code.token(SymbolId::EOS).unwrap();
            let mut legal: BTreeMap<Vec<Token>, Vec<Token>> = BTreeMap::new();
            for formula in &whole {
                let tokens = [code.encode(formula).unwrap(), vec![eos]].concat();
                for i in 0..tokens.len() {
                    legal.entry(tokens[..i].to_vec()).or_default().push(tokens[i]);
                }
            }
            for (prefix, mut wanted) in legal {
                let mut mask = CodeMask::new(&code, &options).unwrap();
                prefix.iter().for_each(|&token| mask.push(token).unwrap());
                wanted.sort_unstable();
                wanted.dedup();
                assert_eq!(mask.legal(), wanted, "after {}", code.words(&prefix));
                for token in code.tokens().filter(|t| t.get() % 7 == 0) {
                    assert_eq!(mask.allows(token), wanted.contains(&token), "{}", code.label(token));
                }
            }
        }
    }
}

/// Under a mask every walk ends in a formula of the law's signature.
#[test]
fn walks_under_masks_end() {
    for (law, which) in [law("uniform", &[]), law("seed", &[]), law("public", &[])].into_iter().zip(0..) {
        let mut options = Options::new(Grammar::Formula);
        let signature = law.signature();
        (options.closed, options.within, options.budget) = (signature.closed, Some(signature), Some(40));
        for code in codes(&law) {
            for item in 0..6 {
                let mut stream = common::drawn(&seeded::Family::named("walks"), 100 * which + item);
                let mut mask = CodeMask::new(&code, &options).unwrap();
                let mut tokens = Vec::new();
                while !mask.is_complete() {
                    let legal = mask.legal();
                    // Signs rather than names, so that the walk is long.
                    let signs: Vec<Token> = legal
                        .iter()
                        .copied()
                        .filter(|&t| code.label(t).chars().all(|c| c.is_ascii_uppercase() || c == '<'))
                        .collect();
                    let from = if signs.is_empty() || stream.below(3) == 0 { &legal } else { &signs };
                    assert!(!from.is_empty(), "nothing is legal after {}", code.words(&tokens));
                    let token = from[stream.below(from.len() as u64) as usize];
                    mask.push(token).unwrap();
                    tokens.push(token);
                }
                assert_eq!(tokens.pop(), code.token(SymbolId::EOS));
                let symbols = code.decode(&tokens).unwrap();
                assert!(symbols.len() < 40 && symbols.iter().all(|s| s.kind() != SymbolKind::Control));
            }
        }
    }
}

// --- redundant parentheses ---------------------------------------------------------------------------

/// Every way to write a formula with its second pairs of parentheses, by the definition.
fn variants(formula: &Formula, r: f64) -> Vec<(Vec<SymbolId>, f64)> {
    let around = |inner: &[SymbolId]| [&[SymbolId::LPAREN], inner, &[SymbolId::RPAREN]].concat();
    let twice = |(inner, p): (Vec<SymbolId>, f64)| [(around(&inner), p * r), (inner, p * (1.0 - r))];
    match formula {
        Formula::Not(operand) => variants(operand, r)
            .into_iter()
            .map(|(inner, p)| ([&[SymbolId::NOT], inner.as_slice()].concat(), p))
            .collect(),
        Formula::Quantified(_, _, _, body) => {
            let whole = fol::encode(&Text::formula(formula.clone()));
            let head = &whole[..whole.len() - fol::encode(&Text::formula((**body).clone())).len()];
            variants(body, r).into_iter().map(|(inner, p)| ([head, &inner].concat(), p)).collect()
        }
        Formula::Binary(connective, left, right) => {
            let mut all = Vec::new();
            for (a, p) in variants(left, r) {
                for (b, q) in variants(right, r) {
                    let both = [a.as_slice(), &[connective.symbol()], &b].concat();
                    all.extend(twice((around(&both), p * q)));
                }
            }
            all
        }
        _ => twice((fol::encode(&Text::formula(formula.clone())), 1.0)).to_vec(),
    }
}

fn doubled(law: &Law, percent: u8) -> [Code; 2] {
    [Tokenization::Compositional, Tokenization::Atomic].map(|tokenization| {
        let code = Code::new(tokenization, Notation::Infix, &law.signature(), None).unwrap();
        code.with_doubled(percent).unwrap()
    })
}

#[test]
fn second_pairs_are_drawn_and_taken_out() {
    for (law, which) in ["public", "seed", "uniform", "pr"].into_iter().zip(0..) {
        let law = law_of(law);
        let mut plain = Scorer::new(&law).unwrap();
        for code in doubled(&law, 15).into_iter().chain(doubled(&law, 60)) {
            let mut scorer = CodeScorer::new(&law, &code).unwrap();
            let eos = code.token(SymbolId::EOS).unwrap();
            let mut stream = common::drawn(&seeded::Family::named("second pairs"), which);
            for text in texts(&law, 40) {
                let (tokens, draws) = code.draw(&text, &mut stream).unwrap();
                assert_eq!(code.decode(&tokens).unwrap(), text, "{}", code.words(&tokens));
                assert_eq!(code.decode(&code.encode(&text).unwrap()).unwrap(), text);
                scorer.reset();
                for token in tokens.into_iter().chain([eos]) {
                    let sum: f64 = scorer.next_dist().iter().sum();
                    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
                    let expected = scorer.next_dist()[token.index()];
                    assert!((scorer.push(token).unwrap() - expected).abs() < 1e-12);
                }
                let whole = plain.score(&text).unwrap() + draws;
                assert!((scorer.nll() - whole).abs() < 1e-9, "{} {whole}", scorer.nll());
                assert!(scorer.next_dist().iter().all(|&p| p <= 0.0));
            }
        }
    }
}

fn law_of(name: &str) -> Law {
    law(name, &[])
}

/// The next token at every prefix, against sums over all texts and all their second pairs.
#[test]
fn second_pairs_by_enumeration() {
    let terms = [
        ("depth_mix", "[[1,1],[2,1]]"),
        ("predicates", "[[0,1],[1,1]]"),
        ("constants", "1"),
        ("connectives", "{ NOT = 1, AND = 2 }"),
        ("quantifiers", "{ FORALL = 1 }"),
        ("atoms", "{ predicate = 1 }"),
    ];
    for (law, percent) in [
        (
            law(
                "pr",
                &[("sizes", "[2,4]"), ("connectives", "[\"NOT\",\"OR\"]"), ("quantifiers", "[\"FORALL\"]")],
            ),
            15,
        ),
        (
            law(
                "pr",
                &[("sizes", "[1,3]"), ("constants", "1"), ("relations", "[\"EQUALS\"]"), ("truth", "true")],
            ),
            50,
        ),
        (law("seed", &[&terms[..], &[("levels", "[[1,1],[2,2],[3,3],[4,4]]")]].concat()), 15),
        // Where a binder may stay without sort, a predicate without arguments, and an index of one digit go on.
        (
            law(
                "public",
                &[
                    ("depth_mix", "[[1,1]]"),
                    ("kinds", "{ atom = 1, quantifier = 1 }"),
                    ("names", "2"),
                    ("sorts", "2"),
                    ("sorted", "{ no = 1, yes = 2 }"),
                    ("quantifiers", "{ FORALL = 1 }"),
                    ("overloaded", "{ names = 627, arities = [[0,1],[1,2]] }"),
                    ("atoms", "{ predicate = 1, relation = 0, truth = 0 }"),
                ],
            ),
            30,
        ),
    ] {
        let texts = enumerated(&law);
        for code in doubled(&law, percent) {
            let eos = code.token(SymbolId::EOS).unwrap();
            let mut coded: Vec<(Vec<Token>, f64)> = Vec::new();
            for (text, p) in &texts {
                let tree = fol::decode(text).unwrap();
                for (symbols, q) in variants(tree.as_formula().unwrap(), f64::from(percent) / 100.0) {
                    coded.push(([code.cut(&symbols).unwrap(), vec![eos]].concat(), p * q));
                }
            }
            coded.sort_by(|a, b| a.0.cmp(&b.0));
            assert!(coded.windows(2).all(|pair| pair[0].0 != pair[1].0), "two texts have one code");
            assert!(compare(&CodeScorer::new(&law, &code).unwrap(), &coded, 0) > texts.len());
        }
    }
}

/// What is read is one of the ways to write its text.
#[test]
fn changed_second_pairs_are_refused_or_read_back() {
    let law = law("seed", &[("depth_mix", "[[3,1]]"), ("levels", "[]")]);
    let [code, _] = doubled(&law, 30);
    let mut stream = common::drawn(&seeded::Family::named("changed pairs"), 0);
    for text in texts(&law, 150) {
        let (mut tokens, _) = code.draw(&text, &mut stream).unwrap();
        for _ in 0..1 + stream.below(3) {
            let at = stream.below(tokens.len() as u64) as usize;
            let paren = [SymbolId::LPAREN, SymbolId::RPAREN][stream.below(2) as usize];
            match stream.below(3) {
                0 if tokens.len() > 1 => drop(tokens.remove(at)),
                1 => tokens.insert(at, code.token(paren).unwrap()),
                _ => {
                    // A pair at two random places.
                    let end = at + stream.below((tokens.len() - at) as u64) as usize;
                    tokens.insert(end + 1, code.token(SymbolId::RPAREN).unwrap());
                    tokens.insert(at, code.token(SymbolId::LPAREN).unwrap());
                }
            }
        }
        match code.decode(&tokens) {
            Ok(symbols) => {
                let tree = fol::decode(&symbols).unwrap();
                let all = variants(tree.as_formula().unwrap(), 0.5);
                assert!(all.iter().any(|(v, _)| code.cut(v).unwrap() == tokens), "{}", code.words(&tokens));
            }
            Err(refusal) => assert!(refusal.token.is_some_and(|at| at <= tokens.len()), "{refusal:?}"),
        }
    }
}

/// One pair wherever there is room for it: read exactly where it is a way to write a text.
#[test]
fn a_pair_at_every_two_places() {
    let law = law("seed", &[("depth_mix", "[[2,1]]"), ("levels", "[]")]);
    let mut accepted = 0;
    for code in doubled(&law, 30) {
        let paren = |symbol| code.token(symbol).unwrap();
        for text in texts(&law, 60) {
            let tokens = code.encode(&text).unwrap();
            let all: HashSet<Vec<Token>> = match fol::decode(&text).unwrap().as_formula() {
                Some(formula) => variants(formula, 0.5).iter().map(|(v, _)| code.cut(v).unwrap()).collect(),
                None => unreachable!("the law draws formulas"),
            };
            for begin in 0..tokens.len() {
                for end in begin..=tokens.len() {
                    let (before, rest) = tokens.split_at(begin);
                    let (inner, after) = rest.split_at(end - begin);
                    let changed =
                        [before, &[paren(SymbolId::LPAREN)], inner, &[paren(SymbolId::RPAREN)], after]
                            .concat();
                    match code.decode(&changed) {
                        Ok(read) if all.contains(&changed) => {
                            assert_eq!(read, text);
                            accepted += 1;
                        }
                        // Two parentheses that do not belong together, before and behind others: not this text.
                        Ok(read) => {
                            let tree = fol::decode(&read).unwrap();
                            let others = variants(tree.as_formula().unwrap(), 0.5);
                            let known = others.iter().any(|(v, _)| code.cut(v).unwrap() == changed);
                            assert!(known, "{}", code.words(&changed));
                        }
                        Err(_) => assert!(!all.contains(&changed), "{}", code.words(&changed)),
                    }
                }
            }
        }
    }
    assert!(accepted > 100);
}

#[test]
fn refusals_of_second_pairs() {
    let law = law("seed", &[]);
    let [code, atomic] = doubled(&law, 15);
    let decode = |labels: &str| {
        let label = |label| code.tokens().find(|&t| code.label(t) == label).unwrap();
        code.decode(&labels.split(' ').map(label).collect::<Vec<_>>()).map_err(|r| (r.kind, r.token))
    };
    let refused = |at| Err((Kind::UnexpectedSymbol, Some(at)));
    let atom = "PRED 0 LPAREN CONST 0 RPAREN";
    assert_eq!(decode(&format!("LPAREN {atom} RPAREN")).unwrap(), symbols("P0(c0)"));
    assert_eq!(decode(&format!("LPAREN LPAREN {atom} RPAREN RPAREN")), refused(9)); // a third
    assert_eq!(decode(&format!("LPAREN NOT {atom} RPAREN")), refused(8));
    assert_eq!(decode("LPAREN RPAREN"), refused(1));
    assert_eq!(decode(&format!("LPAREN LPAREN LPAREN {atom} AND {atom} RPAREN RPAREN RPAREN")), refused(18));
    assert_eq!(decode(&format!("LPAREN {atom}")), Err((Kind::UnexpectedEnd, Some(7))));
    // What is left is a text, but the pair stood around no formula.
    assert_eq!(decode("EXISTS LPAREN VAR 0 FORALL VAR 1 VAR 0 EQUALS VAR 1 RPAREN"), refused(12));
    assert_eq!(decode("FORALL LPAREN VAR 0 VAR 1 EQUALS VAR 2 RPAREN"), refused(9));
    assert_eq!(decode("LPAREN VAR 0 EQUALS RPAREN VAR 1"), refused(4));
    assert_eq!(decode("LPAREN FUNC 0 LPAREN VAR 1 RPAREN EQUALS RPAREN VAR 1"), refused(8));
    assert_eq!(decode(&format!("LPAREN {atom} DOT RPAREN {atom}")), Err((Kind::NotAFormula, Some(8))));
    assert_eq!(decode(&format!("LPAREN {atom} RPAREN DOT {atom}")), Err((Kind::NotAFormula, Some(7))));
    // Terms, sorts and parts of names have none.
    assert_eq!(decode("PRED 0 LPAREN LPAREN CONST 0 RPAREN RPAREN"), refused(6));
    assert_eq!(decode("LPAREN CONST 1 RPAREN EQUALS CONST 2"), refused(3));
    assert_eq!(decode("FORALL VAR 1 COLON LPAREN SORT 1 RPAREN TRUE"), refused(7));
    assert_eq!(decode("LPAREN PRED 1 RPAREN 1"), refused(4));
    assert_eq!(decode("LPAREN PRED 1 RPAREN LPAREN CONST 1 RPAREN"), refused(7));
    let signature = law.signature();
    let prefix = Code::new(Tokenization::Compositional, Notation::Prefix, &signature, None).unwrap();
    assert_eq!(prefix.with_doubled(15).unwrap_err().kind, Kind::BadValue);
    assert_eq!(Code::PLAIN.with_doubled(100).unwrap_err().kind, Kind::BadValue);
    assert!(Code::PLAIN.with_doubled(0).unwrap().is_plain() && !code.is_plain());
    assert_eq!(CodeScorer::new(&law_of("full"), &code).unwrap_err().kind, Kind::BadValue);
    assert_eq!(CodeMask::new(&code, &Options::new(Grammar::Formula)).unwrap_err().kind, Kind::BadValue);
    let mut stream = seeded::Family::named("refused pairs").stream(0);
    assert_eq!(atomic.draw(&symbols("P0(c0). P0(c0)"), &mut stream).unwrap_err().kind, Kind::NotAFormula);
    let nowhere = atomic.draw(&symbols("¬P0(c9)"), &mut stream).unwrap_err();
    assert_eq!((nowhere.kind, nowhere.token), (Kind::NotInSignature, Some(4)));
}
