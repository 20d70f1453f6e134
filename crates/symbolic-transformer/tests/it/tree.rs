//! Tree positions on formulas, in every code.

use fol::law::Law;
use fol::mask::{Grammar, Options};
use fol::notation::{Code, CodeMask, Notation, Tokenization};
use fol::sample::{Sampler, family};
use seeded::{Family, Stream};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{ModelConfig, NormPlace, Position};
use symbolic_transformer::decode::{CachedTransformer, Decoder};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::learner::Corpus;
use symbolic_transformer::network::Network;
use symbolic_transformer::sample::{Choice, Request, beam, sample};

fn config(code: &Code, d_model: usize) -> ModelConfig {
    ModelConfig {
        vocab_size: code.size(),
        d_model,
        n_layers: 2,
        n_heads: 2,
        d_ff: 32,
        max_len: 512,
        position: Position::Tree,
        norm: if d_model == 32 { NormPlace::Post } else { NormPlace::Pre },
        ..ModelConfig::size("tiny").unwrap()
    }
}

fn model(code: &Code, d_model: usize) -> (Explicit, Vec<f32>) {
    let model = Explicit::in_code(config(code, d_model), code).unwrap();
    let mut theta = model.layout().initialise(1);
    let mut s = Family::named("tree").stream(d_model as u64);
    theta.iter_mut().for_each(|t| *t += 0.1 * s.normal() as f32);
    (model, theta)
}

pub(crate) fn corpus(law: &Law, code: &Code, n: u64) -> Corpus {
    let mut sampler = Sampler::new(law).unwrap();
    let (family, mut corpus) = (family("tree-test", 0), Corpus::new());
    for i in 0..n {
        let mut text = Vec::new();
        sampler.sample(&mut family.stream(i), &mut text);
        corpus.push(text, 0.0);
    }
    corpus.in_code(code, "test").unwrap()
}

/// In each text one token becomes another: no logit before it changes, and its own do.
pub(crate) fn changes_no_earlier_logit(model: &mut Explicit, theta: &[f32], corpus: &Corpus, s: &mut Stream) {
    for i in 0..corpus.len() {
        let mut batch = corpus.batch([i]);
        let v = model.config().vocab_size;
        let before = model.logits(theta, &batch).unwrap().to_vec();
        let at = s.below(batch.rows() as u64) as usize;
        // What follows may be malformed: nothing at all, or a sequence of any tokens.
        batch.tokens[at] = (batch.tokens[at] + 1 + s.below(v as u64 - 1) as u32) % v as u32;
        let after = model.logits(theta, &batch).unwrap();
        assert_eq!(before[..at * v], after[..at * v]);
        assert_ne!(before[at * v..(at + 1) * v], after[at * v..(at + 1) * v]);
    }
}

/// Laws with a code: in symbols, whole names, operators first, redundant parentheses, statements.
pub(crate) fn codes() -> Vec<(Law, Code)> {
    use Notation::{Infix, Prefix};
    use Tokenization::{Atomic, Compositional};
    let law = |name| Law::named(name, &[]).unwrap();
    let code = |name, t, n| (law(name), Code::new(t, n, &law(name).signature(), None).unwrap());
    vec![
        code("public", Compositional, Infix),
        code("public", Atomic, Infix),
        code("seed", Compositional, Prefix),
        code("pr", Atomic, Prefix),
        code("full", Compositional, Infix),
        (law("public"), Code::PLAIN.with_doubled(30).unwrap()),
    ]
}

pub(crate) fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn the_cache_and_batches_of_any_lengths_give_the_full_pass() {
    for (law, code) in codes() {
        for d in [32, 160] {
            let (mut model, theta) = model(&code, d);
            let (corpus, v, config) = (corpus(&law, &code, 12), code.size(), config(&code, d));
            let batch = corpus.batch(0..12);
            let full = model.logits(&theta, &batch).unwrap().to_vec();
            let mut decoder = CachedTransformer::in_code(&config, &code, &theta).unwrap();
            for (i, rows) in batch.ranges().enumerate() {
                let alone = model.logits(&theta, &corpus.batch([i])).unwrap();
                assert!(worst(alone, &full[rows.start * v..rows.end * v]) < 1e-5);
                let mut state = decoder.start();
                for row in rows {
                    let step = decoder.step(&mut [&mut state], &batch.tokens[row..=row]).unwrap();
                    assert!(worst(step, &full[row * v..(row + 1) * v]) < 1e-4);
                }
            }
        }
    }
}

#[test]
fn a_later_token_changes_no_earlier_logit() {
    let mut s = Family::named("causal").stream(0);
    for (law, code) in codes() {
        let (mut model, theta) = model(&code, 32);
        changes_no_earlier_logit(&mut model, &theta, &corpus(&law, &code, 20), &mut s);
    }
}

/// A decay acts on the paths that reach its depth, and on no others.
#[test]
fn each_decay_acts_on_its_depth() {
    let (mut model, theta) = model(&Code::PLAIN, 160);
    // <bos> ∀ VAR 1 PRED 5 ( VAR: the last row's path is 0 0 0.
    let batch = Batch::new([&[656_u16, 630, 644, 1, 646, 5, 639, 644, 1][..]]);
    let before = model.logits(&theta, &batch).unwrap().to_vec();
    let decay = model.layout().iter().find(|p| p.name == "position.decay").unwrap().range.clone();
    for (depth, first) in [(0, 0), (1, 3), (2, 6), (3, 8)] {
        let mut moved = theta.clone();
        moved[decay.start + depth] += 0.5;
        let after = model.logits(&moved, &batch).unwrap();
        assert_eq!(before[..first * 663], after[..first * 663], "depth {depth}");
        assert!(
            first == 8 || before[first * 663..(first + 1) * 663] != after[first * 663..(first + 1) * 663]
        );
    }
}

/// Free samples are malformed as a rule; under the mask they are formulas.
#[test]
fn an_untrained_model_samples_in_every_code() {
    for (law, code) in codes() {
        let (_, theta) = model(&code, 32);
        let config = config(&code, 32);
        let mut decoder = CachedTransformer::in_code(&config, &code, &theta).unwrap();
        let free = sample(&mut decoder, &Request::free(&code, 60), 40, Choice::PLAIN, 0, |_| {}).unwrap();
        assert_eq!(free.len(), 40);
        let signature = law.signature();
        if code.doubled() > 0 || signature.statements.is_some() {
            continue;
        }
        let mut options = Options::new(Grammar::Formula);
        (options.within, options.budget) = (Some(signature), Some(40));
        let mask = Some(CodeMask::new(&code, &options).unwrap());
        let request = Request { mask, ..Request::free(&code, 40) };
        for s in sample(&mut decoder, &request, 100, Choice::PLAIN, 0, |_| {}).unwrap() {
            assert!(s.finished && code.decode(&s.tokens).is_ok());
        }
        assert!(beam(&mut decoder, &request, 4, 1.0).unwrap().iter().any(|s| s.finished));
    }
}

#[test]
fn a_code_of_another_size_is_refused() {
    let (_, code) = codes().swap_remove(1);
    let shape = config(&code, 32);
    let refusal = Explicit::new(shape.clone()).unwrap_err().to_string();
    assert!(refusal.contains("position = \"tree\"") && refusal.contains("663"), "{refusal}");
    assert!(CachedTransformer::new(&shape, &[]).unwrap_err().to_string().contains("tree"));
    assert!(Explicit::in_code(shape, &code).is_ok());
}
