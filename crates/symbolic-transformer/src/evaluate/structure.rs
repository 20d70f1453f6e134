//! The suite `structure`: prefixes of eight kinds, at each of which the law says exactly what may come.
//!
//! Enter at [`structure`]. `cases` draws texts of the law, writes them in the code and keeps of each kind a number of
//! prefixes, all different; the same law and code give the same ones, whatever is judged. `judge` compares the
//! predictor with the law there. A kind that the law or the code cannot show is reported without numbers, with the
//! reason.

use std::collections::HashSet;

use fol::law::Law;
use fol::notation::{Code, Entity, Notation, Token};
use fol::sample::{Sampler, family};
use fol::score::CodeScorer;
use fol::signature::Signature;
use fol::symbol::{SymbolId, SymbolKind};
use serde::Serialize;
use training::{Refusal, Result};

use super::iid::Mean;
use super::labels::Labels;
use super::statistics::mean_interval;
use crate::batch::Batch;
use crate::corpus::EVALUATION_ROWS;
use crate::predictor::Predictor;

/// Texts that are drawn, and as many again for each index.
const TEXTS: u64 = 1000;
/// The most prefixes of a kind.
const MOST: usize = 300;
/// The most prefixes of a kind from one text.
const MOST_OF_A_TEXT: usize = 3;

/// A kind of prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The law has one next token.
    Forced,
    /// No next token has more than half of the law's mass: a distribution is the answer.
    Calibrated,
    /// An argument of a predicate or function is complete: whether another one comes is a question of its arity.
    Arity,
    /// At least two parentheses are open, and one may be closed.
    Open,
    /// A name with this index is complete.
    Index(u64),
    /// At least two quantifiers are in scope.
    Nested,
    /// IMPLIES was read.
    Implication,
    /// At most two tokens.
    Shortest,
}

const KINDS: [Kind; 10] = [
    Kind::Forced,
    Kind::Calibrated,
    Kind::Arity,
    Kind::Open,
    Kind::Index(0),
    Kind::Index(99),
    Kind::Index(624),
    Kind::Nested,
    Kind::Implication,
    Kind::Shortest,
];

impl Kind {
    fn name(self) -> String {
        match self {
            Self::Forced => "forced symbol".to_owned(),
            Self::Calibrated => "calibrated choice".to_owned(),
            Self::Arity => "arity".to_owned(),
            Self::Open => "open parentheses".to_owned(),
            Self::Index(index) => format!("index {index}"),
            Self::Nested => "nested quantifiers".to_owned(),
            Self::Implication => "implication".to_owned(),
            Self::Shortest => "shortest inputs".to_owned(),
        }
    }

    /// Why no text of the law can show it in this code; nothing where it may.
    fn missing(self, signature: &Signature, code: &Code) -> Option<String> {
        let arguments = || signature.predicates.iter().chain(&signature.functions).flatten().any(|&a| a > 0);
        let lacks = match self {
            Self::Arity if !arguments() => "no name of this law has arguments",
            Self::Open if code.notation() == Notation::Prefix => "prefix notation has no parentheses",
            Self::Nested if signature.quantifiers.is_empty() => "this law has no quantifier",
            Self::Implication if !signature.has_symbol(SymbolId::IMPLIES) => "this law has no implication",
            Self::Index(index) if names(signature).iter().all(|n| n.1 <= index) => {
                return Some(format!("no name of this law has the index {index}"));
            }
            _ => return None,
        };
        Some(lacks.to_owned())
    }

    /// Whether the prefix that ends with a row is of this kind; `p` is the law's distribution behind it.
    fn fits(self, at: &Place<'_>, p: &[f64]) -> bool {
        let Place { code, tokens, labels, row } = *at;
        let symbol = |symbol| code.token(symbol);
        match self {
            Self::Forced => p.iter().filter(|p| **p > 0.0).count() == 1,
            Self::Calibrated => p.iter().all(|p| *p <= 0.5),
            Self::Arity => labels.arguments.contains(&row),
            Self::Open => {
                let close = symbol(SymbolId::RPAREN).and_then(|t| p.get(t.index())).copied();
                labels.depth.get(row).is_some_and(|d| *d >= 2) && close.unwrap_or(0.0) > 0.0
            }
            Self::Index(index) => labels.names.iter().any(|n| n.index == index && n.last() == row),
            Self::Nested => labels.scope.get(row).is_some_and(|s| s.len() >= 2),
            Self::Implication => tokens.get(row).copied() == symbol(SymbolId::IMPLIES),
            Self::Shortest => false,
        }
    }
}

/// A row of a text.
struct Place<'a> {
    code: &'a Code,
    /// From `<bos>` on.
    tokens: &'a [Token],
    labels: &'a Labels,
    row: usize,
}

/// A sequence and the rows at which it is judged.
#[derive(Debug, Clone)]
struct Case {
    /// From `<bos>` to the token behind the last judged row.
    tokens: Vec<Token>,
    /// The number of a kind, and a row.
    rows: Vec<(usize, usize)>,
}

/// The numbers of one kind of prefixes.
#[derive(Debug, Clone, Serialize)]
pub struct Family {
    /// Its name.
    pub family: String,
    /// The number of prefixes, all different.
    pub prefixes: usize,
    /// Of so many texts.
    pub texts: usize,
    /// Mean Σ p*·ln(p*/q) with its standard error over texts.
    pub kl: Option<Mean>,
    /// The share of prefixes at which the model's best token is one of the law's best.
    pub top1: Option<f64>,
    /// Mean mass of q on what the law can write.
    pub legal: Option<f64>,
    /// Mean entropy of p*, nats.
    pub entropy: Option<f64>,
    /// Why there is no number.
    pub reason: Option<String>,
}

/// The suite's answer.
#[derive(Debug, Clone, Serialize)]
pub struct Structure {
    /// The kinds, in the order of the specification; three rows for the three indices.
    pub families: Vec<Family>,
}

/// Judges a predictor at prefixes of a law's texts in a code.
///
/// # Errors
/// A law without a scorer in this code, and what the predictor refuses.
pub fn structure(predictor: &mut dyn Predictor, law: &Law, code: &Code) -> Result<Structure> {
    let cases = cases(law, code)?;
    let found = judge(predictor, law, code, &cases)?;
    let signature = law.signature();
    let families = KINDS.iter().zip(&found).map(|(&kind, found)| summarise(kind, &signature, code, found));
    Ok(Structure { families: families.collect() })
}

fn refused(refusal: fol::error::Refusal) -> Refusal {
    Refusal::Learner(refusal.to_string())
}

/// The categories of names with how many of each a law has.
fn names(signature: &Signature) -> [(SymbolId, u64); 5] {
    [
        (SymbolId::VAR, signature.variables),
        (SymbolId::CONST, signature.constants),
        (SymbolId::PRED, signature.predicates.len() as u64),
        (SymbolId::FUNC, signature.functions.len() as u64),
        (SymbolId::SORT, signature.sorts),
    ]
}

/// A text in which of each category the first index and `index` change places, where the law has as many names: most laws
/// hold all indices to be alike.
fn renamed(text: &[SymbolId], index: u64, signature: &Signature) -> Vec<SymbolId> {
    let mut first = names(signature).map(|(category, number)| (category, (number <= index).then_some(index)));
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&symbol) = text.get(at) {
        at += 1;
        if symbol.kind() != SymbolKind::Category {
            out.push(symbol);
            continue;
        }
        let mut own = 0;
        while let Some(digit) = text.get(at).and_then(|s| s.numeral()) {
            own = own * u64::from(fol::symbol::BASE) + u64::from(digit.get());
            at += 1;
        }
        if let Some((_, first)) = first.iter_mut().find(|f| f.0 == symbol) {
            let first = *first.get_or_insert(own);
            own = if own == first {
                index
            } else if own == index {
                first
            } else {
                own
            };
        }
        out.extend(Entity { category: symbol, index: own }.symbols());
    }
    out
}

/// The sequences with the rows that are judged.
fn cases(law: &Law, code: &Code) -> Result<Vec<Case>> {
    let mut picker = Picker {
        code,
        scorer: CodeScorer::new(law, code).map_err(refused)?,
        found: vec![HashSet::new(); KINDS.len()],
        cases: Vec::new(),
    };
    let signature = law.signature();
    let mut sampler = Sampler::new(law).map_err(refused)?;
    let family = family("structure", 0);
    let drawn = KINDS.map(|kind| !matches!(kind, Kind::Index(_) | Kind::Shortest));
    for item in 0..TEXTS {
        let mut stream = family.stream(item);
        let mut text = Vec::new();
        sampler.sample(&mut stream, &mut text);
        // A name without a token has no place in any text that the model can read.
        if let Ok((tokens, _)) = code.draw(&text, &mut stream) {
            picker.pick(&tokens, |kind| drawn.get(kind).copied().unwrap_or(false));
        }
        for (number, &kind) in KINDS.iter().enumerate() {
            let Kind::Index(index) = kind else { continue };
            if kind.missing(&signature, code).is_some() {
                continue;
            }
            // Where names are not alike, as with fresh binders or blocks of arities, the text as it was drawn may do.
            let written = code.draw(&renamed(&text, index, &signature), &mut stream).ok();
            let written = written.filter(|(tokens, _)| picker.scorer.score(tokens).is_ok());
            if let Some((tokens, _)) = written.or_else(|| code.draw(&text, &mut stream).ok()) {
                picker.pick(&tokens, |k| k == number);
            }
        }
    }
    picker.shortest()?;
    Ok(picker.cases)
}

struct Picker<'a> {
    code: &'a Code,
    scorer: CodeScorer,
    /// The prefixes of each kind.
    found: Vec<HashSet<Vec<Token>>>,
    cases: Vec<Case>,
}

impl Picker<'_> {
    /// Keeps prefixes of a text that are of the wanted kinds and new.
    fn pick(&mut self, text: &[Token], wanted: impl Fn(usize) -> bool) {
        let full = |found: &HashSet<Vec<Token>>| found.len() >= MOST;
        if self.found.iter().enumerate().all(|(kind, found)| !wanted(kind) || full(found)) {
            return;
        }
        let Some(labels) = Labels::of(self.code, text) else { return };
        let [bos, eos] = self.code.boundaries();
        let mut tokens = [&[bos], text, &[eos]].concat();
        let mut rows = Vec::new();
        self.scorer.reset();
        for row in 0..=text.len() {
            let prefix = tokens.get(1..=row).unwrap_or_default();
            if prefix.last().is_some_and(|&token| self.scorer.push(token).is_err()) {
                return;
            }
            // Where the law may write a name that has no token, no model of the vocabulary is near it.
            if self.scorer.rest() > 1e-12 {
                continue;
            }
            let place = Place { code: self.code, tokens: &tokens, labels: &labels, row };
            let p = self.scorer.next_dist();
            for (kind, found) in self.found.iter_mut().enumerate().filter(|(kind, _)| wanted(*kind)) {
                let of_this = rows.iter().filter(|r: &&(usize, usize)| r.0 == kind).count();
                let fits = !full(found)
                    && of_this < MOST_OF_A_TEXT
                    && KINDS.get(kind).is_some_and(|kind| kind.fits(&place, p));
                if fits && found.insert(prefix.to_vec()) {
                    rows.push((kind, row));
                }
            }
        }
        if let Some(last) = rows.iter().map(|r| r.1).max() {
            tokens.truncate(last + 2);
            self.cases.push(Case { tokens, rows });
        }
    }

    /// The prefixes of no, one and two tokens; of those of one length the most probable.
    fn shortest(&mut self) -> Result<()> {
        let Some(kind) = KINDS.iter().position(|kind| *kind == Kind::Shortest) else { return Ok(()) };
        let [bos, eos] = self.code.boundaries();
        let mut level: Vec<(f64, Vec<Token>)> = vec![(1.0, Vec::new())];
        for most in [1, MOST / 3, MOST - MOST / 3 - 1] {
            level.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            level.truncate(most);
            let mut longer = Vec::new();
            for (probability, prefix) in &level {
                self.scorer.reset();
                for &token in prefix {
                    self.scorer.push(token).map_err(refused)?;
                }
                let uncovered = self.scorer.rest() > 1e-12;
                let p = self.scorer.next_dist();
                let next: Vec<(Token, f64)> =
                    self.code.tokens().zip(p.iter().copied()).filter(|n| n.1 > 0.0).collect();
                longer.extend(
                    next.iter().filter(|n| n.0 != eos).map(|&(token, p)| {
                        (probability * p, prefix.iter().copied().chain([token]).collect())
                    }),
                );
                // What stands behind the prefix is only something that the law may write.
                if let Some(&(behind, _)) = next.first().filter(|_| !uncovered) {
                    let tokens = [bos].into_iter().chain(prefix.iter().copied()).chain([behind]).collect();
                    self.cases.push(Case { tokens, rows: vec![(kind, prefix.len())] });
                }
            }
            level = longer;
        }
        Ok(())
    }
}

/// What one prefix showed.
#[derive(Debug, Clone, Copy)]
struct Shown {
    case: usize,
    kl: f64,
    best: bool,
    legal: f64,
    entropy: f64,
}

/// What was shown at the prefixes of each kind.
fn judge(predictor: &mut dyn Predictor, law: &Law, code: &Code, cases: &[Case]) -> Result<Vec<Vec<Shown>>> {
    let mut scorer = CodeScorer::new(law, code).map_err(refused)?;
    let mut found = vec![Vec::new(); KINDS.len()];
    let size = code.size();
    let mut from = 0;
    while from < cases.len() {
        let mut rows = 0;
        let rest = cases.get(from..).unwrap_or_default();
        let fit = rest.iter().take_while(|case| {
            rows += case.tokens.len();
            rows <= EVALUATION_ROWS
        });
        let number = fit.count().max(1);
        let part = rest.get(..number).unwrap_or(rest);
        let batch = Batch::new(part.iter().map(|case| case.tokens.as_slice()));
        let q = predictor.distributions(&batch)?;
        for ((case, own), range) in (from..).zip(part).zip(batch.ranges()) {
            scorer.reset();
            for (row, at) in range.enumerate() {
                if row > 0 {
                    let token = own.tokens.get(row).copied().unwrap_or_else(|| Token::new(0));
                    scorer.push(token).map_err(refused)?;
                }
                for &(kind, _) in own.rows.iter().filter(|r| r.1 == row) {
                    let q = q.get(at * size..(at + 1) * size).unwrap_or_default();
                    let shown = compare(scorer.next_dist(), q, case);
                    if let Some(list) = found.get_mut(kind) {
                        list.push(shown);
                    }
                }
            }
        }
        from += number;
    }
    Ok(found)
}

fn compare(p: &[f64], q: &[f64], case: usize) -> Shown {
    let mut shown = Shown { case, kl: 0.0, best: false, legal: 0.0, entropy: 0.0 };
    let (mut best, mut most) = ((0.0, f64::NEG_INFINITY), 0.0_f64);
    for (&p, &q) in p.iter().zip(q) {
        if p > 0.0 {
            shown.kl += p * (p / q).ln();
            shown.entropy -= p * p.ln();
            shown.legal += q;
        }
        if q > best.1 {
            best = (p, q);
        }
        most = most.max(p);
    }
    // Equal alternatives may differ by the last digit.
    shown.best = best.0 >= most * (1.0 - 1e-9);
    shown
}

fn summarise(kind: Kind, signature: &Signature, code: &Code, found: &[Shown]) -> Family {
    let n = found.len();
    let mean = |f: &dyn Fn(&Shown) -> f64| (n > 0).then(|| found.iter().map(f).sum::<f64>() / n as f64);
    let texts: Vec<&[Shown]> = found.chunk_by(|a, b| a.case == b.case).collect();
    let kl = mean_interval(texts.iter().map(|t| (t.iter().map(|s| s.kl).sum::<f64>(), t.len() as f64)));
    let none =
        || kind.missing(signature, code).unwrap_or_else(|| "no drawn text has such a prefix".to_owned());
    Family {
        family: kind.name(),
        prefixes: n,
        texts: texts.len(),
        kl: (n > 0).then_some(Mean { value: kl.value, se: kl.se }),
        top1: mean(&|s| if s.best { 1.0 } else { 0.0 }),
        legal: mean(&|s| s.legal),
        entropy: mean(&|s| s.entropy),
        reason: (n == 0).then(none),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predictor::{ExactLaw, Uniform};
    use fol::notation::Tokenization;

    fn law(name: &str) -> Law {
        let wide = [("names", "625"), ("overloaded.names", "625")];
        let few = [
            ("connectives", "{ NOT = 1, AND = 1 }"),
            ("kinds", "{ atom = 1, quantifier = 0, connective = 1 }"),
        ];
        let (name, changes): (&str, &[(&str, &str)]) = match name {
            "public-625" => ("public", &wide),
            "few" => ("public", &few),
            name => (name, &[]),
        };
        let changes: Vec<_> = changes.iter().map(|c| (c.0.to_owned(), c.1.to_owned())).collect();
        Law::named(name, &changes).unwrap()
    }

    fn code(law: &Law, tokenization: Tokenization, notation: Notation) -> Code {
        Code::new(tokenization, notation, &law.signature(), None).unwrap()
    }

    fn codes(name: &str, law: &Law) -> Vec<Code> {
        use Tokenization::{Atomic, Compositional};
        let mut codes = vec![Code::PLAIN, code(law, Atomic, Notation::Infix)];
        codes.push(Code::PLAIN.with_doubled(15).unwrap());
        if name == "seed" {
            codes.push(code(law, Compositional, Notation::Prefix));
            codes.push(code(law, Atomic, Notation::Prefix));
        }
        codes
    }

    fn of<'a>(found: &'a Structure, name: &str) -> &'a Family {
        found.families.iter().find(|f| f.family == name).unwrap()
    }

    /// The law itself has no KL anywhere; the uniform model has ln V − H everywhere.
    #[test]
    fn the_law_has_no_kl_and_the_uniform_model_what_it_must() {
        for name in ["public", "public-625", "seed"] {
            let law = law(name);
            for code in codes(name, &law) {
                let scorer = CodeScorer::new(&law, &code).unwrap();
                let exact = structure(&mut ExactLaw { scorer }, &law, &code).unwrap();
                let uniform = structure(&mut Uniform { size: code.size() }, &law, &code).unwrap();
                assert_eq!((exact.families.len(), uniform.families.len()), (10, 10));
                for (e, u) in exact.families.iter().zip(&uniform.families) {
                    let (Some(kl), Some(of_uniform)) = (e.kl, u.kl) else {
                        assert!(e.reason.is_some() && e.prefixes == 0 && e.top1.is_none());
                        continue;
                    };
                    assert!(kl.value.abs() < 1e-9 && e.reason.is_none(), "{name} {}", e.family);
                    assert!(
                        e.top1 == Some(1.0) && (e.legal.unwrap() - 1.0).abs() < 1e-9,
                        "{name} {}",
                        e.family
                    );
                    let wanted = (code.size() as f64).ln() - u.entropy.unwrap();
                    assert!((of_uniform.value - wanted).abs() < 1e-9, "{name} {}", e.family);
                }
                assert!(of(&exact, "forced symbol").entropy.unwrap() < 1e-12);
                let missing: Vec<&str> =
                    exact.families.iter().filter(|f| f.prefixes == 0).map(|f| f.family.as_str()).collect();
                let names = if name == "public-625" { &[][..] } else { &["index 99", "index 624"] };
                let wanted = if code.notation() == Notation::Prefix {
                    [&["open parentheses"], names].concat()
                } else {
                    names.to_vec()
                };
                assert_eq!(missing, wanted, "{name}");
            }
        }
    }

    /// Numbers that can be computed by hand: the first symbol of `public`, and what comes behind FORALL.
    #[test]
    fn two_prefixes_by_hand() {
        let law = law("public");
        let tokens = [SymbolId::BOS, SymbolId::FORALL, SymbolId::VAR].map(|s| Token::new(s.get()));
        let case = Case { tokens: tokens.to_vec(), rows: vec![(0, 0), (1, 1)] };
        let found = judge(&mut Uniform { size: 663 }, &law, &Code::PLAIN, &[case]).unwrap();
        // Kinds 6 : 7 : 7; NOT is one of five connectives, the others begin with a parenthesis; predicate 7 : relation 3.
        let first = [0.175, 0.175, 0.35 * 0.2, 0.35 * 0.8, 0.3 * 0.7, 0.3 * 0.3];
        let entropy: f64 = -first.iter().map(|p: &f64| p * p.ln()).sum::<f64>();
        assert!((found[0][0].entropy - entropy).abs() < 1e-12);
        assert!((found[0][0].kl - (663_f64.ln() - entropy)).abs() < 1e-12);
        assert!((found[0][0].legal - 6.0 / 663.0).abs() < 1e-12 && !found[0][0].best);
        assert!((found[1][0].kl - 663_f64.ln()).abs() < 1e-12);
    }

    /// Each prefix shows what its kind says: by scans of its symbols and by sums over the scorer, without the labels.
    #[test]
    fn prefixes_are_of_their_kinds() {
        for name in ["public", "public-625", "seed"] {
            let law = law(name);
            let cases = cases(&law, &Code::PLAIN).unwrap();
            let mut scorer = CodeScorer::new(&law, &Code::PLAIN).unwrap();
            let mut seen = vec![HashSet::new(); KINDS.len()];
            for case in &cases {
                for &(kind, row) in &case.rows {
                    let prefix = &case.tokens[1..=row];
                    assert!(seen[kind].insert(prefix.to_vec()), "a prefix stands once");
                    scorer.reset();
                    assert!(prefix.iter().all(|&t| scorer.push(t).is_ok()));
                    let p = scorer.next_dist().to_vec();
                    let s: Vec<SymbolId> = prefix.iter().map(|t| SymbolId::new(t.get()).unwrap()).collect();
                    let count = |symbol: SymbolId| s.iter().filter(|&&x| x == symbol).count();
                    let of = |symbol: SymbolId| p[symbol.index()];
                    match KINDS[kind] {
                        Kind::Forced => assert!(p.iter().any(|p| (p - 1.0).abs() < 1e-12)),
                        Kind::Calibrated => {
                            assert!(
                                p.iter().all(|p| *p <= 0.5) && p.iter().filter(|p| **p > 0.0).count() >= 2
                            );
                        }
                        Kind::Arity => {
                            assert!((of(SymbolId::COMMA) + of(SymbolId::RPAREN) - 1.0).abs() < 1e-12);
                        }
                        Kind::Open => {
                            assert!(count(SymbolId::LPAREN) >= count(SymbolId::RPAREN) + 2);
                            assert!(of(SymbolId::RPAREN) > 0.0);
                        }
                        Kind::Index(index) => {
                            let [.., category, digit] = s[..] else { panic!("a name has two symbols") };
                            assert_eq!(
                                (category.kind(), u64::from(digit.get())),
                                (SymbolKind::Category, index)
                            );
                        }
                        Kind::Nested => {
                            let quantifiers = count(SymbolId::FORALL) + count(SymbolId::EXISTS);
                            assert!(quantifiers >= 2);
                        }
                        Kind::Implication => assert_eq!(s.last(), Some(&SymbolId::IMPLIES)),
                        Kind::Shortest => assert!(s.len() <= 2),
                    }
                }
            }
            for (kind, seen) in KINDS.iter().zip(&seen) {
                let shows = name == "public-625" || !matches!(kind, Kind::Index(99 | 624));
                assert_eq!(!seen.is_empty(), shows, "{name} {}", kind.name());
                assert!(seen.len() <= MOST);
                if shows && *kind != Kind::Shortest {
                    assert!(seen.len() >= 100, "{name} {}: {}", kind.name(), seen.len());
                }
            }
            let shortest = &seen[KINDS.len() - 1];
            assert!(shortest.contains(&vec![]));
            // Of `public` every short prefix is there: 1, 6 first symbols, and what follows each.
            if name == "public" {
                let follows = 2 + 6 + 6 + 5 + 5;
                assert_eq!(shortest.len(), 1 + 6 + follows);
            }
        }
    }

    #[test]
    fn what_a_law_lacks_is_said() {
        let law = law("few");
        let found = structure(&mut Uniform { size: 663 }, &law, &Code::PLAIN).unwrap();
        for (family, reason) in [
            ("nested quantifiers", "this law has no quantifier"),
            ("implication", "this law has no implication"),
            ("index 99", "no name of this law has the index 99"),
        ] {
            let found = of(&found, family);
            assert_eq!(found.reason.as_deref(), Some(reason));
            assert!(found.kl.is_none() && found.entropy.is_none() && found.legal.is_none());
        }
        assert!(of(&found, "arity").kl.is_some());
        let shallow = Law::named("public", &[("depth_mix".to_owned(), "[[1,1]]".to_owned())]).unwrap();
        let found = structure(&mut Uniform { size: 663 }, &shallow, &Code::PLAIN).unwrap();
        let nested = of(&found, "nested quantifiers");
        assert_eq!(nested.reason.as_deref(), Some("no drawn text has such a prefix"));
    }

    #[test]
    fn indices_change_places() {
        let read = |text: &str| {
            fol::read::parse(text, fol::read::Source::Text, fol::read::Mode::Strict).unwrap().tokens
        };
        let signature = law("public-625").signature();
        let text = read("∀x3 (P1(x3) ∧ P99(x99, x4))");
        assert_eq!(renamed(&text, 99, &signature), read("∀x99 (P99(x99) ∧ P1(x3, x4))"));
        // Where there are fewer names nothing changes.
        assert_eq!(renamed(&text, 99, &law("public").signature()), text);
    }
}
