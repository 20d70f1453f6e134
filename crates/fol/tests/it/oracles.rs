//! Slow, plain ways beside the clever ones: enumeration, and the generator's own probability from the tree.

use std::collections::BTreeMap;

use fol::ast::{Formula, Term};
use fol::count::Counter;
use fol::error::Kind;
use fol::law::Law;

use crate::common::law;
use fol::measure::{level, nodes, quantifier_depth};
use fol::sample::{Sampler, family};
use fol::score::{ExactScorer, Scorer};
use fol::symbol::SymbolId;
use num_bigint::BigUint;

fn formula(tokens: &[SymbolId]) -> Formula {
    fol::decode(tokens).unwrap().as_formula().unwrap().clone()
}

/// The scorer's distribution at every prefix of a finite law against sums over all its texts.
fn check_enumeration(law: &Law, texts: &BTreeMap<Vec<SymbolId>, f64>) {
    assert!((texts.values().sum::<f64>() - 1.0).abs() < 1e-12);
    let mut prefixes: BTreeMap<Vec<SymbolId>, BTreeMap<SymbolId, f64>> = BTreeMap::new();
    for (tokens, p) in texts {
        for (i, &next) in tokens.iter().chain([&SymbolId::EOS]).enumerate() {
            *prefixes.entry(tokens[..i].to_vec()).or_default().entry(next).or_insert(0.0) += p;
        }
    }
    let mut scorer = Scorer::new(law).unwrap();
    for (prefix, next) in prefixes {
        scorer.reset();
        prefix.iter().for_each(|&token| scorer.push(token).unwrap());
        let sum: f64 = next.values().sum();
        for (symbol, &p) in SymbolId::all().zip(scorer.next_dist()) {
            let wanted = next.get(&symbol).copied().unwrap_or(0.0) / sum;
            assert!((p - wanted).abs() < 1e-12, "{symbol} after {prefix:?}: {p}, not {wanted}");
        }
    }
}

#[test]
fn small_counting_laws_by_enumeration() {
    for changes in [
        vec![("sizes", "[2,4]")],
        vec![("sizes", "[1,3]"), ("constants", "1"), ("relations", "[\"EQUALS\"]"), ("truth", "true")],
        vec![
            ("levels", "[[2,1],[3,2],[4,5]]"),
            ("sizes", "[[2,2,4],[3,2,4],[4,3,4]]"),
            ("truth", "true"),
            ("predicates", "[[0,1],[2,1]]"),
        ],
    ] {
        let law = law("pr", &changes);
        let json = law.to_json();
        let sizes: Vec<(u8, u64, usize, usize)> = match json["levels"].as_array().unwrap().as_slice() {
            [] => vec![(
                0,
                1,
                json["sizes"][0].as_u64().unwrap() as usize,
                json["sizes"][1].as_u64().unwrap() as usize,
            )],
            levels => (0..levels.len())
                .map(|i| {
                    let at = |key: &str, j: usize| json[key][i][j].as_u64().unwrap();
                    (at("levels", 0) as u8, at("levels", 1), at("sizes", 1) as usize, at("sizes", 2) as usize)
                })
                .collect(),
        };
        let total: u64 = sizes.iter().map(|s| s.1).sum();
        let counter = Counter::new(&law, 4, 0, None).unwrap();
        let mut texts = BTreeMap::new();
        for (wanted, weight, lo, hi) in sizes {
            for n in lo..=hi {
                let count = u64::try_from(counter.count(n)).unwrap();
                let all = (0..count).map(|r| counter.unrank(n, &BigUint::from(r)).unwrap());
                let class: Vec<_> = all.filter(|t| wanted == 0 || level(&formula(t)) == wanted).collect();
                let p = weight as f64 / total as f64 / (hi - lo + 1) as f64 / class.len() as f64;
                texts.extend(class.into_iter().map(|tokens| (tokens, p)));
            }
        }
        check_enumeration(&law, &texts);
    }
}

/// All arguments of public atoms over a scope, with probabilities.
fn public_atoms(scope: &[u64]) -> Vec<(Vec<SymbolId>, f64)> {
    let var = |v: u64| [SymbolId::VAR, SymbolId::new(v as u16).unwrap()];
    let names: Vec<u64> = (0..5).collect();
    let pool: &[u64] = if scope.is_empty() { &names } else { scope };
    let mut atoms = Vec::new();
    for predicate in 0..5 {
        let head = [SymbolId::PRED, SymbolId::new(predicate).unwrap(), SymbolId::LPAREN];
        for &a in pool {
            let p = 0.7 / 5.0 * 0.5 / pool.len() as f64;
            atoms.push(([&head[..], &var(a), &[SymbolId::RPAREN]].concat(), p));
            for &b in pool {
                let two = [&head[..], &var(a), &[SymbolId::COMMA], &var(b), &[SymbolId::RPAREN]].concat();
                atoms.push((two, p / pool.len() as f64));
            }
        }
    }
    // At depth 1 at most one variable is in scope, so both sides are any names.
    for &a in &names {
        for &b in &names {
            atoms.push(([&var(a)[..], &[SymbolId::EQUALS], &var(b)].concat(), 0.3 / 25.0));
        }
    }
    atoms
}

#[test]
fn public_of_depth_one_by_enumeration() {
    let law = law("public", &[("depth_mix", "[[0,1],[1,3]]")]);
    let atoms = public_atoms(&[]);
    let mut texts: BTreeMap<Vec<SymbolId>, f64> = BTreeMap::new();
    let mut add = |tokens: Vec<SymbolId>, p: f64| *texts.entry(tokens).or_insert(0.0) += p;
    for (atom, p) in &atoms {
        add(atom.clone(), p * (0.25 + 0.75 * 0.3));
        add([&[SymbolId::NOT], &atom[..]].concat(), 0.75 * 0.35 / 5.0 * p);
        for (right, q) in &atoms {
            for c in [SymbolId::AND, SymbolId::OR, SymbolId::IMPLIES, SymbolId::IFF] {
                let both = [&[SymbolId::LPAREN], &atom[..], &[c], &right[..], &[SymbolId::RPAREN]].concat();
                add(both, 0.75 * 0.35 / 5.0 * p * q);
            }
        }
    }
    for quantifier in [SymbolId::FORALL, SymbolId::EXISTS] {
        for v in 0..5 {
            for (atom, p) in public_atoms(&[v]) {
                let head = [quantifier, SymbolId::VAR, SymbolId::new(v as u16).unwrap()];
                add([&head[..], &atom].concat(), 0.75 * 0.35 / 2.0 / 5.0 * p);
            }
        }
    }
    // The full set of prefixes is large; every eleventh pair is enough, the sums still see all texts.
    // A hundred thousand roundings add up.
    assert!((texts.values().sum::<f64>() - 1.0).abs() < 1e-10);
    let mut scorer = Scorer::new(&law).unwrap();
    for (tokens, p) in texts.iter().step_by(11) {
        let nll = scorer.score(tokens).unwrap();
        assert!((nll + p.ln()).abs() < 1e-10, "{tokens:?}");
    }
    // The next symbol after every prefix of at most five symbols, by sums over all texts.
    let mut prefixes: BTreeMap<&[SymbolId], BTreeMap<SymbolId, f64>> = BTreeMap::new();
    for (tokens, p) in &texts {
        for i in 0..tokens.len().min(6) {
            *prefixes.entry(&tokens[..i]).or_default().entry(tokens[i]).or_insert(0.0) += p;
        }
        if tokens.len() <= 5 {
            prefixes.entry(tokens).or_default().insert(SymbolId::EOS, *p);
        }
    }
    for (prefix, next) in prefixes {
        scorer.reset();
        prefix.iter().for_each(|&token| scorer.push(token).unwrap());
        let sum: f64 = next.values().sum();
        for (symbol, &p) in SymbolId::all().zip(scorer.next_dist()) {
            let wanted = next.get(&symbol).copied().unwrap_or(0.0) / sum;
            assert!((p - wanted).abs() < 1e-12, "{symbol} after {prefix:?}: {p}, not {wanted}");
        }
    }
}

/// The probability that the drawing of `public` (with another number of names) gives this tree at a depth.
fn public_probability(formula: &Formula, left: u32, names: f64, scope: &mut Vec<u64>) -> f64 {
    let multiplicity = |scope: &[u64], v: u64| scope.iter().filter(|&&w| w == v).count() as f64;
    let name = |t: &Term| match t {
        Term::Variable(v) => v.0,
        _ => unreachable!(),
    };
    let kind = |p: f64, leaf: bool| match (left, leaf) {
        (0, true) => 1.0,
        (0, false) => 0.0,
        _ => p,
    };
    match formula {
        Formula::Predicate(_, arguments) => {
            let each = |t: &Term| match scope.len() {
                0 => 1.0 / names,
                n => multiplicity(scope, name(t)) / n as f64,
            };
            kind(0.3, true) * 0.7 / 5.0 * 0.5 * arguments.iter().map(each).product::<f64>()
        }
        Formula::Relation(_, a, b) => {
            let (a, b, n) = (name(a), name(b), scope.len() as f64);
            let sides = if scope.len() >= 2 {
                // Ordered pairs of different places.
                let same = if a == b { multiplicity(scope, a) } else { 0.0 };
                (multiplicity(scope, a) * multiplicity(scope, b) - same) / (n * (n - 1.0))
            } else {
                1.0 / (names * names)
            };
            kind(0.3, true) * 0.3 * sides
        }
        Formula::Not(inner) => {
            kind(0.35, false) / 5.0 * public_probability(inner, left.saturating_sub(1), names, scope)
        }
        Formula::Binary(_, a, b) => {
            let left = left.saturating_sub(1);
            kind(0.35, false) / 5.0
                * public_probability(a, left, names, scope)
                * public_probability(b, left, names, scope)
        }
        Formula::Quantified(_, v, _, body) => {
            scope.push(v.0);
            let body = public_probability(body, left.saturating_sub(1), names, scope);
            scope.pop();
            kind(0.35, false) / 2.0 / names * body
        }
        Formula::Truth(_) => 0.0,
    }
}

/// With two names nearly every binder shadows another.
#[test]
fn public_scores_are_the_generators_own() {
    for names in [2.0, 5.0] {
        let law = law("public", &[("names", &format!("{names}"))]);
        let (mut sampler, mut scorer) = (Sampler::new(&law).unwrap(), Scorer::new(&law).unwrap());
        let family = family("test", 2);
        let mut tokens = Vec::new();
        for item in 0..3000 {
            sampler.sample(&mut family.stream(item), &mut tokens);
            let tree = formula(&tokens);
            let mix = [(1, 0.2), (2, 0.4), (3, 0.3), (4, 0.1)];
            let p: f64 =
                mix.iter().map(|&(d, w)| w * public_probability(&tree, d, names, &mut Vec::new())).sum();
            let nll = scorer.score(&tokens).unwrap();
            assert!((nll + p.ln()).abs() < 1e-9, "{nll} {} {tree:?}", -p.ln());
        }
    }
}

/// Over the whole of a finite law with levels, the share of each level is its weight.
#[test]
fn levels_of_depth_laws_by_enumeration() {
    let changes = [
        ("depth_mix", "[[1,1],[2,2]]"),
        ("predicates", "[[0,1],[1,1]]"),
        ("atoms", "{ predicate = 1 }"),
        ("connectives", "{ NOT = 1, AND = 2 }"),
        ("quantifiers", "{ FORALL = 1 }"),
        ("constants", "1"),
        ("levels", "[[1,1],[2,2],[3,3],[4,4]]"),
    ];
    let law = law("seed", &changes);
    let mut scorer = Scorer::new(&law).unwrap();
    let mut shares = [0.0; 5];
    let mut open = vec![(Vec::<SymbolId>::new(), 1.0)];
    while let Some((prefix, p)) = open.pop() {
        scorer.reset();
        prefix.iter().for_each(|&token| scorer.push(token).unwrap());
        let dist = *scorer.next_dist();
        for (symbol, q) in SymbolId::all().zip(dist).filter(|(_, q)| *q > 0.0) {
            if symbol == SymbolId::EOS {
                shares[level(&formula(&prefix)) as usize] += p * q;
            } else {
                open.push(([&prefix[..], &[symbol]].concat(), p * q));
            }
        }
    }
    for (level, share) in [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)] {
        assert!((shares[level] - share).abs() < 1e-12, "{shares:?}");
    }
}

/// A window of 2 to 6 nodes over one unary and one binary predicate, at most one binder on a path. Below one there are
/// A = 2 atoms, so the singularity is where (1 − z)² = 4 · 4 · A · z²; outside none, which moves nothing.
fn window(changes: &[(&str, &str)]) -> Law {
    let small = [
        ("predicates", "[[1,1],[2,1]]"),
        ("constants", "0"),
        ("relations", "[]"),
        ("nodes", "4"),
        ("tolerance", "50"),
        ("scope", "1"),
        ("names", "canonical"),
    ];
    law("boltzmann", &[&small[..], changes].concat())
}

/// All formulas of sizes of a window, with weights zⁿ.
fn weighed(
    counting: &Law,
    sizes: std::ops::RangeInclusive<usize>,
    bound: usize,
    z: f64,
) -> BTreeMap<Vec<SymbolId>, f64> {
    let counter = Counter::new(counting, *sizes.end(), 0, Some(bound)).unwrap();
    let mut texts = BTreeMap::new();
    for n in sizes {
        let count = u64::try_from(counter.count(n)).unwrap();
        texts.extend((0..count).map(|r| (counter.unrank(n, &BigUint::from(r)).unwrap(), z.powi(n as i32))));
    }
    let sum: f64 = texts.values().sum();
    texts.values_mut().for_each(|p| *p /= sum);
    texts
}

#[test]
fn windows_by_enumeration() {
    let rho = 1.0 / (1.0 + 32f64.sqrt());
    // To 4 nodes at every prefix; to 5 with the symbols of the texts alone.
    let short = window(&[("nodes", "3"), ("tolerance", "34")]);
    assert_eq!(short.to_json()["nodes"], 3);
    check_enumeration(&short, &weighed(&law("pr", &[]), 2..=4, 1, rho));
    let one = window(&[
        ("scope", "0"),
        ("constants", "1"),
        ("predicates", "[[1,1]]"),
        ("nodes", "3"),
        ("tolerance", "50"),
    ]);
    let counting = law("pr", &[("constants", "1"), ("predicates", "[[1,1]]")]);
    check_enumeration(&one, &weighed(&counting, 2..=4, 0, 0.2));
    let mut scorer = Scorer::new(&window(&[("nodes", "4"), ("tolerance", "25")])).unwrap();
    for (tokens, p) in weighed(&law("pr", &[]), 3..=5, 1, rho) {
        let whole = scorer.score(&tokens).unwrap();
        assert!((whole + p.ln()).abs() < 1e-9, "{tokens:?}: {whole}, not {}", -p.ln());
    }
}

/// A whole text by the grammar and the mass of the window, against the product over its symbols.
#[test]
fn whole_texts_score_as_their_symbols() {
    for law in [
        law("boltzmann", &[]),
        window(&[]),
        law("boltzmann", &[("scope", "0"), ("truth", "true"), ("nodes", "60"), ("names", "canonical")]),
        law("boltzmann", &[("scope", "3"), ("connectives", "[\"OR\"]"), ("nodes", "21")]),
    ] {
        let (mut sampler, mut scorer) = (Sampler::new(&law).unwrap(), Scorer::new(&law).unwrap());
        let family = crate::common::run_family("windows");
        let mut tokens = Vec::new();
        for item in 0..30 {
            let facts = sampler.sample(&mut family.stream(item), &mut tokens);
            let tree = formula(&tokens);
            assert_eq!(
                (nodes(&tree), quantifier_depth(&tree)),
                (facts.nodes.into(), facts.quantifier_depth.into())
            );
            assert_eq!(level(&tree), facts.level);
            let whole = scorer.score(&tokens).unwrap();
            scorer.reset();
            tokens.iter().chain([&SymbolId::EOS]).for_each(|&token| scorer.push(token).unwrap());
            assert!((scorer.nll() - whole).abs() < 1e-9, "{} {whole}", scorer.nll());
        }
        // Too short, too long, too many binders: refused, and located.
        for text in ["P0(c0)", "∀x0 P0(x0)"] {
            let read = fol::read::parse(text, fol::read::Source::Text, fol::read::Mode::Lenient).unwrap();
            let known = weighed_by_hand(&law, &read.tokens);
            assert_eq!(scorer.score(&read.tokens).is_ok(), known, "{text}");
            if let Err(refusal) = scorer.score(&read.tokens) {
                assert_eq!(refusal.kind, Kind::OffLaw);
                assert!(refusal.token.is_some());
            }
        }
    }
}

/// Whether these few texts belong to the laws above.
fn weighed_by_hand(law: &Law, tokens: &[SymbolId]) -> bool {
    let quantified = tokens.first() == Some(&SymbolId::FORALL);
    quantified && law.to_json()["nodes"] == 4
}

#[test]
fn windows_are_drawn_as_they_are_scored() {
    for law in [
        window(&[("tolerance", "25")]),
        window(&[
            ("scope", "0"),
            ("constants", "2"),
            ("truth", "true"),
            ("nodes", "3"),
            ("connectives", "[\"AND\"]"),
        ]),
        window(&[
            ("scope", "2"),
            ("nodes", "3"),
            ("names", "distinct"),
            ("pool", "4"),
            ("relations", "[\"EQUALS\"]"),
        ]),
    ] {
        let family = crate::common::run_family("windows drawn");
        let mut sampler = Sampler::new(&law).unwrap();
        crate::common::check_drawn(&law, 30_000, |i, out| {
            sampler.sample(&mut family.stream(i), out);
        });
    }
}

/// What the drawing of a small law with binders apart gives, derivation by derivation, as F37 says it.
struct Apart {
    names: u64,
    /// Shares of 100, as fractions.
    shadow: f64,
    vacuous: f64,
    recent: f64,
}

type Texts = Vec<(Vec<SymbolId>, f64)>;

impl Apart {
    /// One unary predicate, one constant, one unary function, ∀, ¬ and ∧ at equal weights.
    fn law(&self, depth_mix: &str) -> Law {
        let percent = |share: f64| format!("{}", (share * 100.0).round());
        law(
            "public-advanced",
            &[
                ("depth_mix", depth_mix),
                ("kinds", "{ atom = 1, quantifier = 1, connective = 1 }"),
                ("connectives", "{ NOT = 1, AND = 1 }"),
                ("quantifiers", "{ FORALL = 1 }"),
                ("atoms", "{ predicate = 1 }"),
                ("predicates", "[[1,1]]"),
                ("functions", "[[1,1]]"),
                ("constants", "1"),
                ("terms", "{ variable = 2, constant = 1, function = 1 }"),
                ("term_depth", "1"),
                ("names", &self.names.to_string()),
                ("shadow", &percent(self.shadow)),
                ("vacuous", &percent(self.vacuous)),
                ("recent", &percent(self.recent)),
            ],
        )
    }

    fn term(&self, scope: &[u64], deep: bool) -> Texts {
        let (variable, function) = (if scope.is_empty() { 0.0 } else { 2.0 }, f64::from(u8::from(!deep)));
        let all = variable + 1.0 + function;
        let digit = |n: u64| SymbolId::new(n as u16).unwrap();
        let mut terms = vec![(vec![SymbolId::CONST, digit(0)], 1.0 / all)];
        for (i, &v) in scope.iter().enumerate() {
            let innermost = f64::from(u8::from(i + 1 == scope.len()));
            let share = self.recent * innermost + (1.0 - self.recent) / scope.len() as f64;
            terms.push((vec![SymbolId::VAR, digit(v)], variable / all * share));
        }
        if !deep {
            for (term, p) in self.term(scope, true) {
                let head = [SymbolId::FUNC, digit(0), SymbolId::LPAREN];
                terms.push(([&head[..], &term, &[SymbolId::RPAREN]].concat(), p / all));
            }
        }
        terms
    }

    fn formula(&self, left: u32, scope: &[u64], above: &[u64]) -> Texts {
        let digit = |n: u64| SymbolId::new(n as u16).unwrap();
        let kind = if left == 0 { 1.0 } else { 1.0 / 3.0 };
        let mut texts = Texts::new();
        for (term, p) in self.term(scope, false) {
            let head = [SymbolId::PRED, digit(0), SymbolId::LPAREN];
            texts.push(([&head[..], &term, &[SymbolId::RPAREN]].concat(), kind * p));
        }
        if left == 0 {
            return texts;
        }
        let operands = self.formula(left - 1, scope, above);
        for (a, p) in &operands {
            texts.push(([&[SymbolId::NOT], &a[..]].concat(), kind / 2.0 * p));
            for (b, q) in &operands {
                let both =
                    [&[SymbolId::LPAREN], &a[..], &[SymbolId::AND], &b[..], &[SymbolId::RPAREN]].concat();
                texts.push((both, kind / 2.0 * p * q));
            }
        }
        let mut taken = above.to_vec();
        taken.sort_unstable();
        taken.dedup();
        let free = (self.names - taken.len() as u64) as f64;
        let shadow = if taken.is_empty() { 0.0 } else { self.shadow };
        for v in 0..self.names {
            let again = taken.contains(&v);
            let named = if again { shadow / taken.len() as f64 } else { (1.0 - shadow) / free };
            let idle = if again { 0.0 } else { 1.0 / free };
            let below = [above, &[v]].concat();
            let head = [SymbolId::FORALL, SymbolId::VAR, digit(v)];
            let bodies = [
                (self.formula(left - 1, &[scope, &[v]].concat(), &below), (1.0 - self.vacuous) * named),
                (self.formula(left - 1, scope, &below), self.vacuous * idle),
            ];
            for (body, p) in bodies.into_iter().flat_map(|(body, p)| body.into_iter().map(move |b| (b, p))) {
                texts.push(([&head[..], &body.0].concat(), kind * p * body.1));
            }
        }
        texts
    }

    /// Every text and its probability, over all its derivations.
    fn texts(&self, depth: u32) -> BTreeMap<Vec<SymbolId>, f64> {
        let mut sums = BTreeMap::new();
        for (text, p) in self.formula(depth, &[], &[]).into_iter().filter(|t| t.1 > 0.0) {
            *sums.entry(text).or_insert(0.0) += p;
        }
        sums
    }
}

#[test]
fn apart_binders_by_enumeration() {
    for (names, shadow, vacuous, recent) in
        [(2, 0.05, 0.05, 0.7), (3, 0.0, 0.4, 1.0), (2, 1.0, 0.0, 0.3), (4, 0.6, 0.5, 0.0)]
    {
        let apart = Apart { names, shadow, vacuous, recent };
        check_enumeration(&apart.law("[[1,1]]"), &apart.texts(1));
        // Two binders on a path, at depth 2; with as few names only every so many texts are looked at one by one.
        let (law, texts) = (apart.law("[[2,1]]"), apart.texts(2));
        assert!((texts.values().sum::<f64>() - 1.0).abs() < 1e-10);
        let mut scorer = Scorer::new(&law).unwrap();
        for (tokens, p) in texts.iter().step_by(7) {
            let nll = scorer.score(tokens).unwrap();
            assert!((nll + p.ln()).abs() < 1e-9, "{tokens:?}: {nll}, not {}", -p.ln());
        }
    }
}

/// The texts that are drawn, against their probabilities.
#[test]
fn apart_binders_are_drawn_as_they_are_scored() {
    let apart = Apart { names: 2, shadow: 0.3, vacuous: 0.3, recent: 0.6 };
    let law = apart.law("[[1,1],[2,1]]");
    let family = crate::common::run_family("apart binders");
    let mut sampler = Sampler::new(&law).unwrap();
    crate::common::check_drawn(&law, 20_000, |i, out| {
        sampler.sample(&mut family.stream(i), out);
    });
}

/// Texts as they are written, with second pairs: their probabilities over all readings, and the draws.
#[test]
fn written_texts_are_scored_over_all_their_readings() {
    let law = law(
        "public-advanced",
        &[
            ("depth_mix", "[[2,1]]"),
            ("predicates", "[[1,1]]"),
            ("functions", "[]"),
            ("constants", "1"),
            ("names", "2"),
        ],
    );
    let (mut sampler, mut scorer) = (Sampler::of_written(&law).unwrap(), Scorer::of_written(&law).unwrap());
    let mut plain = Scorer::new(&law).unwrap();
    let code = fol::notation::Code::PLAIN.with_doubled(15).unwrap();
    let family = crate::common::run_family("written");
    let (mut tokens, mut pairs, mut places) = (Vec::new(), 0u32, 0u32);
    for item in 0..3000 {
        sampler.sample(&mut family.stream(item), &mut tokens);
        let as_tokens = code.cut(&tokens).unwrap();
        let text = code.decode(&as_tokens).unwrap();
        let more = (tokens.len() - text.len()) / 2;
        let of = formula(&text);
        let all = seconds(&of);
        (pairs, places) = (pairs + more as u32, places + all);
        let draws = more as f64 * 0.15f64.ln() + (all as f64 - more as f64) * 0.85f64.ln();
        let nll = scorer.score(&tokens).unwrap();
        assert!((nll - plain.score(&text).unwrap() + draws).abs() < 1e-9, "{tokens:?}");
        // What is printed is read back leniently as the text.
        let read =
            fol::read::parse(&fol::written(&tokens), fol::read::Source::Text, fol::read::Mode::Lenient);
        assert_eq!(read.unwrap().tokens, text);
        assert_eq!(fol::written(&text), fol::print(&fol::decode(&text).unwrap(), fol::Style::Unicode));
    }
    let share = f64::from(pairs) / f64::from(places);
    let deviation = (0.15 * 0.85 / f64::from(places)).sqrt();
    assert!((share - 0.15).abs() < 5.0 * deviation, "{share}");
}

/// How many formulas of a tree may have a second pair.
fn seconds(formula: &Formula) -> u32 {
    match formula {
        Formula::Not(inner) | Formula::Quantified(.., inner) => seconds(inner),
        Formula::Binary(_, a, b) => 1 + seconds(a) + seconds(b),
        _ => 1,
    }
}

#[test]
fn unrank_and_rank_are_inverse_and_exhaustive() {
    let laws = [
        law("pr", &[]),
        law("uniform", &[("levels", "[]"), ("sizes", "[2,3]"), ("truth", "true")]),
        law(
            "pr",
            &[
                ("predicates", "[[0,2],[3,1],[1,1]]"),
                ("connectives", "[\"NOT\", \"IFF\"]"),
                ("quantifiers", "[\"EXISTS1\"]"),
            ],
        ),
    ];
    for law in &laws {
        for (free, bound) in [(0, None), (2, None), (1, Some(1)), (3, Some(0))] {
            let counter = Counter::new(law, 5, free, bound).unwrap();
            for n in 1..=5 {
                let count = counter.count(n);
                let step = (&count / 500u32) + 1u32;
                let mut rank = BigUint::ZERO;
                while rank < count {
                    let tokens = counter.unrank(n, &rank).unwrap();
                    let tree = formula(&tokens);
                    assert_eq!(nodes(&tree) as usize, n);
                    assert!(bound.is_none_or(|r| quantifier_depth(&tree) <= r as u64));
                    assert_eq!(counter.rank(&tree).unwrap(), (n, rank.clone()));
                    rank += &step;
                }
                assert_eq!(counter.unrank(n, &count).err().map(|r| r.kind), Some(Kind::RankOutOfRange));
            }
        }
    }
}

#[test]
fn what_a_signature_lacks_is_refused_at_its_first_symbol() {
    use fol::read::{Mode, Source, parse};
    let check = |changes: &[(&str, &str)], bound: Option<usize>, text: &str, at: usize, expected: &[&str]| {
        let counter = Counter::new(&law("pr", changes), 6, 0, bound).unwrap();
        let parsed = parse(text, Source::Text, Mode::Lenient).unwrap();
        let refusal = counter.rank(parsed.text.as_formula().unwrap()).unwrap_err();
        assert_eq!((refusal.kind, refusal.token), (Kind::OffLaw, Some(at)), "{text}");
        assert_eq!(refusal.found.as_deref(), Some(parsed.tokens.get(at).map_or("end", |t| t.label())));
        assert_eq!(refusal.expected.unwrap(), expected, "{text}");
    };
    check(&[], None, "P0(x0)", 0, &["NOT", "FORALL", "EXISTS", "LPAREN"]);
    check(&[], None, "∀x0 P2(x0)", 4, &["0..1"]);
    check(&[], None, "∀x0 P0(x1)", 7, &["0"]);
    check(&[], None, "∀x0 P0(x0, x0)", 8, &["RPAREN"]);
    check(&[], None, "∀x0 P1(x0)", 8, &["COMMA"]);
    check(&[], None, "∀x0 P1", 5, &["LPAREN"]);
    check(&[], None, "∀x0 x0 = x0", 3, &["NOT", "FORALL", "EXISTS", "LPAREN", "PRED"]);
    check(&[], Some(1), "∀x0 ∀x1 P0(x1)", 3, &["NOT", "LPAREN", "PRED"]);
    check(&[], None, "∀x0:S1 P0(x0)", 3, &["NOT", "FORALL", "EXISTS", "LPAREN", "PRED"]);
    check(&[("connectives", "[\"OR\"]")], None, "∀x3 (P0(x3) ∧ P0(x3))", 10, &["OR"]);
    check(&[("connectives", "[\"OR\"]")], None, "¬∀x3 P0(x3)", 0, &["FORALL", "EXISTS", "LPAREN"]);
    check(&[], None, "∀x627 P0(x1)", 9, &["2"]);
}
