//! The suite `h3`: what of the structure of formulas can be seen in a transformer, in the same numbers for every code.
//!
//! Enter at [`h3`]. `relations` (a, c) asks of each head whether it looks where the tree says, `probes` (b) what a linear map
//! reads off each layer, `numerals` (d) whether the vectors of numbers lie in their order. All three take what a model
//! gave, not the model, so that the tests can plant an answer. Labels are those of the parse tree (`labels`). [`instances`] asks
//! with the probes of (b) where definitions could stand.
//!
//! Formulas are those of the unfiltered set. Even ones choose heads and train probes, odd ones judge.

mod minimise;
mod numerals;
mod probes;
mod relations;

use fol::notation::{Code, Tokenization};
use fol::signature::Signature;
use fol::symbol::{SymbolId, SymbolKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use training::Result;

use super::labels::Labels;
use crate::corpus::{Corpus, evaluation_batches};
use crate::explicit::{Explicit, Inspection};
pub use numerals::Numerals;
pub use probes::Probe;
use probes::{Examples, Task};
pub use relations::{Attended, Head};
use relations::{Candidates, Relation};

/// The most formulas of which probes see the activations: half of them train, half of them judge.
const PROBED: usize = 1000;

/// The most formulas of which [`instances`] sees the activations: half of them train, half of them judge.
pub const MOST_FORMULAS: usize = 10_000;

/// The most classes of the task `binder`: the last one is for all later quantifiers.
const BINDERS: usize = 8;

/// The most variables of the task `scope`.
const VARIABLES: usize = 64;

/// The suite's answer.
#[derive(Debug, Clone, Serialize)]
pub struct H3 {
    /// The formulas whose labels and activations were taken.
    pub formulas: usize,
    /// From an occurrence of a variable to its binder, from RPAREN to its LPAREN.
    pub a: Attention,
    /// Linear probes, layer after layer.
    pub b: Vec<Probe>,
    /// From the last token of a sub-formula to that of its sibling.
    pub c: Attended,
    /// Vectors of numerals.
    pub d: Numerals,
}

/// Attention to structure.
#[derive(Debug, Clone, Serialize)]
pub struct Attention {
    /// From the last token of a variable to the name behind its quantifier.
    pub binder: Attended,
    /// From a closing parenthesis to the opening one.
    pub parenthesis: Attended,
}

/// The three relations of a formula.
fn candidates(labels: &Labels) -> [Candidates; 3] {
    let variables = || labels.names.iter().filter(|n| n.category == SymbolId::VAR);
    let binders = || variables().filter(|n| n.binds);
    let to_binder = variables().filter(|n| !n.binds).flat_map(|name| {
        let own = binders().filter(move |b| b.quantifier == name.quantifier);
        own.map(move |binder| (name.last(), binder.rows.clone()))
    });
    let single = |row: usize| row..row + 1;
    [
        Candidates {
            related: to_binder.collect(),
            queries: variables().filter(|n| !n.binds).map(|n| n.last()).collect(),
            keys: binders().map(|b| b.rows.clone()).collect(),
        },
        Candidates {
            related: labels.pairs.iter().map(|&(close, open)| (close, single(open))).collect(),
            queries: labels.pairs.iter().map(|p| p.0).collect(),
            keys: labels.pairs.iter().map(|p| single(p.1)).collect(),
        },
        Candidates {
            related: labels.siblings.iter().map(|&(right, left)| (right, single(left))).collect(),
            queries: labels.ends.clone(),
            keys: labels.ends.iter().copied().map(single).collect(),
        },
    ]
}

/// The tasks of the probes, with what is known of each row of a formula.
struct Read {
    task: Task,
    /// Rows and their labels; for `scope` a bit for each variable.
    rows: Vec<(usize, u64)>,
}

fn tasks(labels: &Labels, variables: &[u64]) -> Vec<Read> {
    let every = |label: &dyn Fn(usize) -> u64| (0..labels.depth.len()).map(|row| (row, label(row))).collect();
    let at = |list: &[usize], row: usize| list.get(row).map_or(0, |x| *x as u64);
    let scope = |row: usize| {
        let inside = labels.scope.get(row).map_or(&[][..], Vec::as_slice);
        let bits = variables.iter().enumerate().filter(|(_, v)| inside.contains(v)).map(|(bit, _)| 1 << bit);
        bits.fold(0_u64, |set, bit| set | bit)
    };
    let used = labels.names.iter().filter(|n| n.category == SymbolId::VAR && !n.binds);
    let binder = |quantifier: Option<usize>| quantifier.map_or(0, |q| (q + 1).min(BINDERS) as u64);
    vec![
        Read { task: Task::Depth, rows: every(&|row| at(&labels.depth, row)) },
        Read { task: Task::Scope, rows: every(&scope) },
        Read {
            task: Task::Category,
            rows: every(&|row| labels.next.get(row).map_or(0, |role| *role as u64)),
        },
        Read { task: Task::Binder, rows: used.map(|n| (n.last(), binder(n.quantifier))).collect() },
    ]
}

/// The variables that are most often in scope, at most [`VARIABLES`] of them.
fn frequent<'a>(labels: impl Iterator<Item = &'a Labels>) -> Vec<u64> {
    let mut counts = BTreeMap::<u64, usize>::new();
    labels.flat_map(|l| &l.scope).flatten().for_each(|v| *counts.entry(*v).or_default() += 1);
    let mut sorted: Vec<(u64, usize)> = counts.into_iter().collect();
    sorted.sort_by_key(|&(variable, count)| (std::cmp::Reverse(count), variable));
    sorted.into_iter().take(VARIABLES).map(|v| v.0).collect()
}

/// Looks into a model with these weights. `corpus` is in the code of the model; of `train` only what occurs is counted.
///
/// # Errors
/// As a pass of the model.
pub fn h3(
    model: &mut Explicit,
    theta: &[f32],
    corpus: &Corpus,
    train: &Corpus,
    signature: &Signature,
    seed: u64,
) -> Result<H3> {
    let code = corpus.code().clone();
    let (layers, heads, d) = (model.config().n_layers, model.config().n_heads, model.config().d_model);
    let labels: Vec<Option<Labels>> = (0..corpus.len())
        .map(|i| {
            let tokens = corpus.tokens(i);
            Labels::of(&code, tokens.get(1..tokens.len().saturating_sub(1))?)
        })
        .collect();
    let variables = frequent(labels.iter().take(PROBED).step_by(2).flatten());
    let mut related = [(); 3].map(|()| Relation::new(layers * heads));
    let mut examples = Examples::new(layers + 1, d);
    for range in evaluation_batches(corpus) {
        let batch = corpus.batch(range.clone());
        let seen = model.inspect(theta, &batch)?;
        for ((sequence, i), rows) in range.clone().enumerate().zip(batch.ranges()) {
            let Some(labels) = labels.get(i).and_then(Option::as_ref) else { continue };
            let attention: Vec<&[f32]> = (0..layers)
                .flat_map(|layer| (0..heads).map(move |head| (layer, head)))
                .map(|(layer, head)| seen.attention(layer, head, sequence))
                .collect();
            for (relation, candidates) in related.iter_mut().zip(candidates(labels)) {
                relation.add(i, &candidates, &attention, rows.len());
            }
            if i < PROBED {
                probe_rows(&mut examples, &seen, i, rows, &batch.tokens, &tasks(labels, &variables));
            }
        }
    }
    let [binder, parenthesis, siblings] = related.map(|relation| relation.judge(heads));
    Ok(H3 {
        formulas: labels.iter().flatten().count(),
        a: Attention { binder, parenthesis },
        b: examples.probes(&Task::ALL, seed),
        c: siblings,
        d: numerals::numerals(&vectors(model, theta, &code, train, signature), seed),
    })
}

/// Whether a linear map of each layer tells where instances of definitions end. `places` are of each definition and each formula
/// the last tokens of all that could be an instance, with whether it is one ([`fol::invent::Definitions::places`]). The probes are
/// those of the suite, on the first [`MOST_FORMULAS`] formulas, layer after layer and in each one the definitions in their order; what they
/// have of a control says little, because what ends alike has one token. Activations of all these places are in memory at once.
///
/// # Errors
/// As a pass of the model.
pub fn instances(
    model: &mut Explicit,
    theta: &[f32],
    corpus: &Corpus,
    places: &[Vec<BTreeMap<usize, bool>>],
    seed: u64,
) -> Result<Vec<Probe>> {
    let mut examples = Examples::new(model.config().n_layers + 1, model.config().d_model);
    let tasks: Vec<Task> = (0..places.len()).map(Task::Instance).collect();
    for range in evaluation_batches(corpus).take_while(|range| range.start < MOST_FORMULAS) {
        let batch = corpus.batch(range.clone());
        let seen = model.inspect(theta, &batch)?;
        for (i, rows) in range.zip(batch.ranges()).filter(|(i, _)| *i < MOST_FORMULAS) {
            // Row 0 is that of <bos>.
            let of = |places: &BTreeMap<usize, bool>| -> Vec<(usize, u64)> {
                places.iter().map(|(last, instance)| (rows.start + last + 1, u64::from(*instance))).collect()
            };
            let own: Vec<Vec<(usize, u64)>> =
                places.iter().map(|p| p.get(i).map_or_else(Vec::new, of)).collect();
            let union: BTreeSet<usize> = own.iter().flatten().map(|place| place.0).collect();
            let mut kept = BTreeMap::new();
            for row in union {
                let token = batch.tokens.get(row..row + 1).unwrap_or_default();
                let hidden = seen.hidden.iter().map(|h| (h.as_slice(), row..row + 1));
                kept.insert(row, examples.add(i, token, hidden));
            }
            for (task, own) in tasks.iter().zip(own) {
                examples.label(*task, own.iter().filter_map(|(row, label)| Some((*kept.get(row)?, *label))));
            }
        }
    }
    Ok(examples.probes(&tasks, seed))
}

/// Gives the rows of a formula to the probes.
fn probe_rows(
    examples: &mut Examples,
    seen: &Inspection,
    formula: usize,
    rows: std::ops::Range<usize>,
    tokens: &[u32],
    tasks: &[Read],
) {
    let own = tokens.get(rows.clone()).unwrap_or_default();
    let first = examples.add(formula, own, seen.hidden.iter().map(|h| (h.as_slice(), rows.clone())));
    for read in tasks {
        examples.label(read.task, read.rows.iter().map(|&(row, label)| (first + row, label)));
    }
}

/// The vectors of the numbers that the law can write, each with whether the training texts have it: numerals where names
/// are cut, else the names of variables.
fn vectors(
    model: &mut Explicit,
    theta: &[f32],
    code: &Code,
    train: &Corpus,
    signature: &Signature,
) -> numerals::Vectors {
    let whole = code.tokenization() == Tokenization::Atomic;
    let mut found = BTreeSet::new();
    for text in train.iter() {
        let mut category = SymbolId::PAD;
        for (i, &symbol) in text.iter().enumerate() {
            match symbol.numeral() {
                Some(numeral) if !whole => drop(found.insert(u64::from(numeral.get()))),
                // Of a variable's name the whole index.
                Some(_) if category == SymbolId::VAR => {
                    let digits = text.get(i..).unwrap_or_default().iter().map_while(|s| s.numeral());
                    let base = u64::from(fol::symbol::BASE);
                    found.insert(
                        digits.fold(0, |n: u64, digit| n.wrapping_mul(base) + u64::from(digit.get())),
                    );
                }
                _ => {}
            }
            category = if symbol.kind() == SymbolKind::Category { symbol } else { SymbolId::PAD };
        }
    }
    let d = model.config().d_model;
    let named: Vec<(u64, usize)> = match code.entities() {
        Some(entities) => code
            .tokens()
            .filter_map(|token| match code.meaning(token)? {
                fol::notation::Meaning::Entity(e) if e.category == SymbolId::VAR => {
                    Some((e.index, token.index()))
                }
                _ => None,
            })
            .take(entities.len())
            .collect(),
        None => {
            let most = [
                signature.variables,
                signature.constants,
                signature.predicates.len() as u64,
                signature.functions.len() as u64,
                signature.sorts,
            ];
            let most = most.into_iter().max().unwrap_or(0).min(u64::from(fol::symbol::BASE));
            (0..most).map(|n| (n, n as usize)).collect()
        }
    };
    let table = model.vectors(theta);
    let row = |at: usize| table.get(at * d..(at + 1) * d).unwrap_or_default().to_vec();
    numerals::Vectors {
        occurred: named.iter().filter(|n| found.contains(&n.0)).count(),
        vectors: named.into_iter().map(|(number, at)| (number, row(at))).collect(),
        of: if whole { "names of variables" } else { "numerals" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ModelConfig, Position};
    use crate::network::Network;
    use fol::law::Law;
    use fol::notation::{Notation, Token};

    fn corpus(law: &Law, code: &Code, n: u64) -> Corpus {
        let mut sampler = fol::sample::Sampler::new(law).unwrap();
        let family = fol::sample::family("h3-test", 0);
        let mut corpus = Corpus::new();
        for i in 0..n {
            let mut text = Vec::new();
            sampler.sample(&mut family.stream(i), &mut text);
            corpus.push(text, 0.0);
        }
        corpus.in_code(code, "h3-test").unwrap()
    }

    fn judged(law: &Law, code: &Code, position: Position, train: &Corpus) -> H3 {
        let config = ModelConfig {
            vocab_size: code.size(),
            d_model: 32,
            n_layers: 2,
            n_heads: 2,
            d_ff: 32,
            position,
            ..ModelConfig::size("tiny").unwrap()
        };
        let mut model = Explicit::new(config).unwrap();
        let theta = model.layout().initialise(0);
        h3(&mut model, &theta, &corpus(law, code, 160), train, &law.signature(), 0).unwrap()
    }

    /// All numbers of an untrained model, in every code; the same twice.
    #[test]
    fn an_untrained_model_in_every_code() {
        use Tokenization::{Atomic, Compositional};
        for (name, tokenization, notation) in [
            ("public", Compositional, Notation::Infix),
            ("public", Atomic, Notation::Infix),
            ("seed", Compositional, Notation::Prefix),
            ("seed", Atomic, Notation::Prefix),
        ] {
            let law = Law::named(name, &[]).unwrap();
            let code = Code::new(tokenization, notation, &law.signature(), None).unwrap();
            let train = corpus(&law, &Code::PLAIN, 50);
            let found = judged(&law, &code, Position::Sinusoidal, &train);
            let again = judged(&law, &code, Position::Sinusoidal, &train);
            assert_eq!(serde_json::to_value(&found).unwrap(), serde_json::to_value(&again).unwrap());
            assert_eq!(found.formulas, 160);
            for attended in [&found.a.binder, &found.a.parenthesis, &found.c] {
                if attended.reason.is_some() {
                    assert_eq!(notation, Notation::Prefix);
                    continue;
                }
                let (auc, mass) = (attended.auc.unwrap(), attended.mass.unwrap());
                assert!((0.0..=1.0).contains(&auc.value) && (0.0..=1.0).contains(&mass));
                assert_eq!((attended.by_head.len(), attended.by_head[1].len()), (2, 2));
            }
            assert_eq!(found.b.len(), 3 * 4);
            for probe in &found.b {
                let alike = notation == Notation::Prefix && probe.task == Task::Depth.name();
                assert_eq!(probe.reason.is_some(), alike, "{} of {name}", probe.task);
                assert!(probe.rows > 40 && probe.training > 40);
            }
            assert!(found.d.spearman.is_some() && found.d.occurred > 2, "{name}");
        }
    }

    /// Without positions layer 0 is a function of the token: the control is learned by heart, and of the order of tokens
    /// nothing is there.
    #[test]
    fn the_embedding_alone_knows_types_only() {
        let law = Law::named("public", &[]).unwrap();
        let found = judged(&law, &Code::PLAIN, Position::None, &Corpus::new());
        for probe in found.b.iter().filter(|p| p.layer == 0) {
            let (control, selectivity) = (probe.control.unwrap(), probe.selectivity.unwrap());
            assert!(control.value > 0.99, "{}: {}", probe.task, control.value);
            assert!(selectivity.value < 0.0);
        }
        assert_eq!((found.d.numbers, found.d.pairs, found.d.occurred), (5, 10, 0));
    }

    /// What the last token says is told by the embedding, what the formula says by no layer of a model that learned nothing, and
    /// of formulas without places, as of those beyond the most, nothing is asked.
    #[test]
    fn instances_are_told_where_the_last_token_does() {
        let law = Law::named("public", &[]).unwrap();
        let corpus = corpus(&law, &Code::PLAIN, MOST_FORMULAS as u64 + 50);
        let config = ModelConfig {
            d_model: 32,
            n_layers: 2,
            n_heads: 2,
            d_ff: 32,
            ..ModelConfig::size("tiny").unwrap()
        };
        let mut model = Explicit::new(config).unwrap();
        let theta = model.layout().initialise(0);
        let asked = |i: usize| !(1000..=MOST_FORMULAS - 20).contains(&i);
        let marks = |label: &dyn Fn(usize, SymbolId) -> bool| -> Vec<BTreeMap<usize, bool>> {
            let inner = |i| Corpus::inner(corpus.get(i)).iter().enumerate();
            let of = |i| inner(i).map(|(at, s)| (at, label(i, *s))).collect();
            (0..corpus.len()).map(|i| if asked(i) { of(i) } else { BTreeMap::new() }).collect()
        };
        let ends = marks(&|_, symbol| symbol == SymbolId::RPAREN);
        // Formulas 0 and 1, 4 and 5 …: as many of those that train as of those that judge.
        let drawn = marks(&|i, _| i % 4 < 2);
        let found = instances(&mut model, &theta, &corpus, &[ends, drawn], 0).unwrap();
        assert_eq!(found.iter().map(|p| p.layer).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
        let rows: usize =
            (0..MOST_FORMULAS).filter(|i| asked(*i)).map(|i| Corpus::inner(corpus.get(i)).len()).sum();
        for two in found.chunks_exact(2) {
            let [ends, drawn] = two else { panic!("two of each layer") };
            assert_eq!((ends.rows + ends.training, drawn.rows + drawn.training), (rows, rows));
            assert!(ends.accuracy.unwrap().value > 0.999 && ends.commonest.unwrap() < 0.9, "{ends:?}");
            assert!((drawn.accuracy.unwrap().value - 0.5).abs() < 0.1, "{drawn:?}");
        }
    }

    /// Which rows of the table are numbers, and which of them occur.
    #[test]
    fn numbers_and_their_rows() {
        let changes = [("names".to_owned(), "7".to_owned())];
        let law = Law::named("public", &changes).unwrap();
        let read =
            fol::read::parse("∀x1 P2(x1, x3)", fol::read::Source::Text, fol::read::Mode::Strict).unwrap();
        let mut train = Corpus::new();
        train.push(read.tokens, 0.0);
        let whole = Code::new(Tokenization::Atomic, Notation::Infix, &law.signature(), None).unwrap();
        for (code, of, occurred) in [(Code::PLAIN, "numerals", 3), (whole, "names of variables", 2)] {
            let config = ModelConfig { vocab_size: code.size(), ..ModelConfig::size("tiny").unwrap() };
            let mut model = Explicit::new(config).unwrap();
            let theta = model.layout().initialise(0);
            let place = model.layout().get("embed.weight").unwrap().range.clone();
            let found = vectors(&mut model, &theta, &code, &train, &law.signature());
            assert_eq!((found.of, found.occurred, found.vectors.len()), (of, occurred, 7));
            for (i, (number, vector)) in found.vectors.iter().enumerate() {
                assert_eq!(*number, i as u64);
                let row = if code.is_plain() {
                    i
                } else {
                    code.tokens().position(|t: Token| code.label(t) == format!("x{i}")).unwrap()
                };
                assert_eq!(vector, &theta[place.clone()][row * 128..(row + 1) * 128]);
            }
        }
    }
}
