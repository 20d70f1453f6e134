//! The suite `generation`: what a model writes when it is let loose, judged by the real parser and the real law.

use std::collections::{BTreeMap, HashSet};

use fol::Key;
use fol::canon::Canonicalizer;
use fol::check::{self, Options};
use fol::error::Kind;
use fol::law::Law;
use fol::measure::of_record;
use fol::notation::{Code, Notation};
use fol::read::{Mode, Parsed, Source};
use fol::signature::Signature;
use fol::symbol::SymbolId;
use rayon::prelude::*;
use serde::Serialize;
use training::{Refusal, Result};

use super::novelty::Known;
use super::statistics::chi_square_p;
use crate::sample::Sample;

/// How many texts of each level and of each size the law writes, from exact samples.
#[derive(Debug, Clone)]
pub struct Reference {
    levels: BTreeMap<u8, u64>,
    sizes: BTreeMap<u32, u64>,
    texts: u64,
}

impl Reference {
    /// `n` texts of the law, seed 0.
    pub fn of(law: &Law, n: u64) -> Result<Self> {
        let refuse = |r: fol::error::Refusal| Refusal::Learner(r.to_string());
        let mut sampler = fol::sample::Sampler::new(law).map_err(refuse)?;
        let family = fol::sample::family("sample", 0);
        let mut reference = Self { levels: BTreeMap::new(), sizes: BTreeMap::new(), texts: n };
        let mut tokens = Vec::new();
        for item in 0..n {
            tokens.clear();
            let facts = sampler.sample(&mut family.stream(item), &mut tokens);
            *reference.levels.entry(facts.level).or_default() += 1;
            *reference.sizes.entry(facts.nodes).or_default() += 1;
        }
        Ok(reference)
    }
}

/// Shares of distinct classes that are not in the training set.
#[derive(Debug, Clone, Copy, Serialize)]
#[expect(non_snake_case, reason = "the names of the levels")]
pub struct Novel {
    /// Same tokens.
    pub K0: f64,
    /// Up to names of bound variables.
    pub K1: f64,
    /// Up to names of everything.
    pub K2: f64,
}

/// The level mix of the samples against that of the law.
#[derive(Debug, Clone, Serialize)]
pub struct Levels {
    /// Samples of each level.
    pub counts: BTreeMap<u8, u64>,
    /// Σ (observed − expected)²/expected.
    pub chi2: f64,
    /// The probability of a larger one under the law.
    pub p: f64,
}

/// The suite's answer for one way of sampling.
#[derive(Debug, Clone, Serialize)]
pub struct Generation {
    /// The number of samples.
    pub samples: usize,
    /// Share that ended and that the strict reader accepts.
    pub parsed: f64,
    /// Share with balanced parentheses; `null` in prefix notation, which has none.
    pub balanced: Option<f64>,
    /// Share that ended with `<eos>`.
    pub finished: f64,
    /// Of the parsed: share with the law's symbols, indices and arities.
    pub arity_ok: f64,
    /// Of the parsed: share whose sorts agree; `null` for laws without sorts.
    pub sort_ok: Option<f64>,
    /// Of the parsed: share without free variables; `null` for laws with free variables.
    pub binding_ok: Option<f64>,
    /// Of the parsed: share of distinct K1 classes.
    pub distinct: f64,
    /// Shares of distinct classes that are not in the training set.
    pub novel: Novel,
    /// The number of K3 classes.
    pub skeletons: usize,
    /// The level mix.
    pub levels: Levels,
    /// Total-variation distance of the sizes, model against law.
    pub size_tv: f64,
}

/// One parsed sample.
struct Judged {
    arity_ok: bool,
    sort_ok: bool,
    closed: bool,
    keys: fol::canon::Keys,
    level: u8,
    nodes: u32,
}

/// Judges samples in a code.
pub fn judge(samples: &[Sample], code: &Code, law: &Law, known: &Known, reference: &Reference) -> Generation {
    let signature = law.signature();
    let judged: Vec<Judged> = samples
        .par_iter()
        .filter(|s| s.finished)
        .map_init(Canonicalizer::default, |canonicalizer, s| {
            judge_one(&code.decode(&s.tokens).ok()?, &signature, canonicalizer)
        })
        .flatten()
        .collect();
    let n = judged.len();
    let share = |count: usize, of: usize| if of == 0 { 0.0 } else { count as f64 / of as f64 };
    let of_parsed = |f: &dyn Fn(&Judged) -> bool| share(judged.iter().filter(|j| f(j)).count(), n);
    let of_all = |f: &dyn Fn(&Sample) -> bool| share(samples.iter().filter(|s| f(s)).count(), samples.len());
    let classes = |k: usize| judged.iter().filter_map(|j| j.keys.get(k).copied()).collect::<HashSet<Key>>();
    let by_form = [classes(0), classes(1), classes(2)];
    let novel = |k: usize| by_form.get(k).map_or(0.0, |found| known.share_of_new(k, found));
    Generation {
        samples: samples.len(),
        parsed: share(n, samples.len()),
        balanced: (code.notation() == Notation::Infix)
            .then(|| of_all(&|s| code.spell(&s.tokens).is_ok_and(|symbols| balanced(&symbols)))),
        finished: of_all(&|s| s.finished),
        arity_ok: of_parsed(&|j| j.arity_ok),
        sort_ok: (signature.sorts > 0).then(|| of_parsed(&|j| j.sort_ok)),
        binding_ok: signature.closed.then(|| of_parsed(&|j| j.closed)),
        distinct: share(by_form.get(1).map_or(0, HashSet::len), n),
        novel: Novel { K0: novel(0), K1: novel(1), K2: novel(2) },
        skeletons: classes(3).len(),
        levels: levels(&judged, reference),
        size_tv: size_distance(&judged, reference),
    }
}

/// The strict reader's answer for symbols without boundaries.
pub(crate) fn strict(tokens: &[SymbolId]) -> std::result::Result<Parsed, fol::error::Refusal> {
    let ids: Vec<String> = tokens.iter().map(|t| t.get().to_string()).collect();
    fol::read::parse(&ids.join(" "), Source::Tokens, Mode::Strict)
}

fn judge_one(
    tokens: &[SymbolId],
    signature: &Signature,
    canonicalizer: &mut Canonicalizer,
) -> Option<Judged> {
    let parsed = strict(tokens).ok()?;
    let refused = |options: Options, kinds: &[Kind]| {
        check::check(&parsed, &options).err().is_some_and(|r| kinds.contains(&r.kind))
    };
    let within = || Options { within: Some(signature.clone()), overloaded: true, ..Options::default() };
    let measures = of_record(&parsed.text);
    Some(Judged {
        arity_ok: !refused(within(), &[Kind::ArityMismatch, Kind::NotInSignature]),
        sort_ok: !refused(Options { sorts: true, ..within() }, &[Kind::SortMismatch]),
        closed: !refused(
            Options { closed: true, overloaded: true, ..Options::default() },
            &[Kind::FreeVariable],
        ),
        keys: canonicalizer.keys(tokens).ok()?,
        level: measures.level,
        nodes: measures.nodes as u32,
    })
}

/// Every parenthesis is closed, and none before it is opened.
fn balanced(symbols: &[(SymbolId, usize)]) -> bool {
    let mut open = 0_i64;
    for &(t, _) in symbols {
        open += i64::from(t == SymbolId::LPAREN) - i64::from(t == SymbolId::RPAREN);
        if open < 0 {
            return false;
        }
    }
    open == 0
}

fn levels(judged: &[Judged], reference: &Reference) -> Levels {
    let mut counts: BTreeMap<u8, u64> = reference.levels.keys().map(|&l| (l, 0)).collect();
    for j in judged {
        *counts.entry(j.level).or_default() += 1;
    }
    let n = judged.len() as f64;
    let expected =
        |level: &u8| n * reference.levels.get(level).map_or(0.0, |&c| c as f64 / reference.texts as f64);
    // A level that the law never writes makes the statistic infinite.
    let chi2 = counts
        .iter()
        .filter(|_| n > 0.0)
        .map(|(level, &c)| (c as f64 - expected(level)).powi(2) / expected(level))
        .sum();
    let degrees = reference.levels.len().saturating_sub(1) as f64;
    let p = if n == 0.0 || f64::is_nan(chi2) || f64::is_infinite(chi2) {
        0.0
    } else {
        chi_square_p(chi2, degrees)
    };
    Levels { counts, chi2, p }
}

fn size_distance(judged: &[Judged], reference: &Reference) -> f64 {
    let mut sizes: BTreeMap<u32, f64> = BTreeMap::new();
    for j in judged {
        *sizes.entry(j.nodes).or_default() += 1.0 / judged.len() as f64;
    }
    for (&size, &count) in &reference.sizes {
        *sizes.entry(size).or_default() -= count as f64 / reference.texts as f64;
    }
    0.5 * sizes.values().map(|d| d.abs()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fol::notation::Token;

    fn drawn(law: &Law, n: u64) -> Vec<Sample> {
        let mut sampler = fol::sample::Sampler::new(law).unwrap();
        let family = fol::sample::family("test", 5);
        (0..n)
            .map(|i| {
                let mut tokens = Vec::new();
                sampler.sample(&mut family.stream(i), &mut tokens);
                let tokens = Code::PLAIN.encode(&tokens).unwrap();
                Sample { tokens, nll: 0.0, finished: true, score: None }
            })
            .collect()
    }

    #[test]
    fn the_law_itself_is_judged_perfect() {
        for name in ["public", "seed", "full"] {
            let law = Law::named(name, &[]).unwrap();
            let reference = Reference::of(&law, 20_000).unwrap();
            let g = judge(&drawn(&law, 5_000), &Code::PLAIN, &law, &Known::default(), &reference);
            assert_eq!((g.parsed, g.balanced, g.arity_ok, g.novel.K1), (1.0, Some(1.0), 1.0, 1.0), "{name}");
            assert_eq!(g.binding_ok, (name != "public").then_some(1.0));
            assert!(g.levels.p > 1e-4 && g.size_tv < 0.06, "{name}: {} {}", g.levels.p, g.size_tv);
        }
    }

    #[test]
    fn nonsense_is_judged_nonsense() {
        let law = Law::named("public", &[]).unwrap();
        let reference = Reference::of(&law, 1_000).unwrap();
        let broken = |ids: &[u16], finished| Sample {
            tokens: ids.iter().map(|&i| Token::new(i)).collect(),
            nll: 0.0,
            finished,
            score: None,
        };
        // ), P0 without arguments (not of the law), P0(x0) unfinished
        let samples =
            [broken(&[640], true), broken(&[646, 0], true), broken(&[646, 0, 639, 644, 0, 640], false)];
        let g = judge(&samples, &Code::PLAIN, &law, &Known::default(), &reference);
        assert!((g.parsed - 1.0 / 3.0).abs() < 1e-12 && (g.balanced.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(g.arity_ok, 0.0);
        let empty = judge(&[], &Code::PLAIN, &law, &Known::default(), &reference);
        assert_eq!((empty.parsed, empty.levels.p), (0.0, 0.0));
    }
}
