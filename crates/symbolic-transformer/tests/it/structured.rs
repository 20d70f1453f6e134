//! Attention that knows of the tree, on formulas, in every code.

use fol::notation::{Code, NodeRelation};
use seeded::Family;
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{ModelConfig, NormPlace, Position, Structured};
use symbolic_transformer::decode::{CachedTransformer, Decoder};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::network::Network;
use symbolic_transformer::sample::{Choice, Request, beam, sample};

use crate::tree::{changes_no_earlier_logit, codes, corpus, worst};

const ALL: [Structured; 3] = [Structured::Bias, Structured::Mask, Structured::Relational];

fn config(code: &Code, structure: Structured) -> ModelConfig {
    let (position, norm) = match structure {
        Structured::Relational => (Position::Tree, NormPlace::Pre),
        Structured::Mask => (Position::Alibi, NormPlace::Post),
        _ => (Position::Sinusoidal, NormPlace::Post),
    };
    ModelConfig {
        vocab_size: code.size(),
        d_model: 30,
        n_layers: 2,
        n_heads: 3,
        d_ff: 32,
        position,
        norm,
        structure,
        ..ModelConfig::size("tiny").unwrap()
    }
}

fn model(code: &Code, structure: Structured) -> (Explicit, Vec<f32>) {
    let model = Explicit::in_code(config(code, structure), code).unwrap();
    let mut theta = model.layout().initialise(1);
    let mut s = Family::named("structured").stream(structure as u64);
    theta.iter_mut().for_each(|t| *t += 0.1 * s.normal() as f32);
    (model, theta)
}

#[test]
fn the_cache_and_batches_of_any_lengths_give_the_full_pass() {
    for (law, code) in codes() {
        for structure in ALL {
            let (mut model, theta) = model(&code, structure);
            let (corpus, v, config) = (corpus(&law, &code, 12), code.size(), config(&code, structure));
            let batch = corpus.batch(0..12);
            let full = model.logits(&theta, &batch).unwrap().to_vec();
            let mut decoder = CachedTransformer::in_code(&config, &code, &theta).unwrap();
            for (i, rows) in batch.ranges().enumerate() {
                let alone = model.logits(&theta, &corpus.batch([i])).unwrap();
                assert!(worst(alone, &full[rows.start * v..rows.end * v]) < 1e-5);
                let mut state = decoder.start();
                for row in rows {
                    let step = decoder.step(&mut [&mut state], &batch.tokens[row..=row]).unwrap();
                    assert!(worst(step, &full[row * v..(row + 1) * v]) < 1e-4, "{structure} {row}");
                }
            }
        }
    }
}

#[test]
fn a_later_token_changes_no_earlier_logit() {
    let mut s = Family::named("structured-causal").stream(0);
    for (law, code) in codes() {
        for structure in ALL {
            let (mut model, theta) = model(&code, structure);
            changes_no_earlier_logit(&mut model, &theta, &corpus(&law, &code, 10), &mut s);
        }
    }
}

/// At first biases and vectors are 0: the model is the one without, bit for bit.
#[test]
fn a_model_starts_as_the_one_without() {
    let code = Code::PLAIN;
    let batch = corpus(&codes()[0].0, &code, 8).batch(0..8);
    for structure in [Structured::Bias, Structured::Relational] {
        let with = config(&code, structure);
        let mut without =
            Explicit::in_code(ModelConfig { structure: Structured::None, ..with.clone() }, &code).unwrap();
        let mut with = Explicit::in_code(with, &code).unwrap();
        let theta = with.layout().initialise(3);
        let mut plain = without.layout().initialise(3);
        for p in without.layout().iter() {
            let same = with.layout().iter().find(|q| q.name == p.name).unwrap();
            plain[p.range.clone()].copy_from_slice(&theta[same.range.clone()]);
        }
        let (found, right) = (with.logits(&theta, &batch).unwrap(), without.logits(&plain, &batch).unwrap());
        assert_eq!(found, right);
    }
}

/// Each bias acts on the rows that have its relation to something, and on no others.
#[test]
fn each_bias_acts_where_its_relation_is() {
    let config = ModelConfig { n_layers: 1, ..config(&Code::PLAIN, Structured::Bias) };
    let mut model = Explicit::new(config.clone()).unwrap();
    let mut theta = model.layout().initialise(1);
    let mut s = Family::named("structured").stream(9);
    theta.iter_mut().for_each(|t| *t += 0.1 * s.normal() as f32);
    // <bos> ∀ VAR 1 PRED 5 ( VAR 1 )
    let batch = Batch::new([&[656_u16, 630, 644, 1, 646, 5, 639, 644, 1, 640, 657][..]]);
    let before = model.logits(&theta, &batch).unwrap().to_vec();
    let bias =
        model.layout().iter().find(|p| p.name == "layers.0.attention.relation.bias").unwrap().range.clone();
    let v = config.vocab_size;
    for (relation, rows) in [
        (NodeRelation::Binder, vec![8]),
        (NodeRelation::ArgumentOf(0), vec![7, 8]),
        (NodeRelation::HasArgument(0), vec![9]),
        (NodeRelation::SameNode, vec![2, 3, 5, 6, 8, 9]),
        // The quantifier is of the text, the predicate of the quantifier.
        (NodeRelation::Parent, vec![1, 2, 3, 4, 5, 6, 9]),
        (NodeRelation::Bound, vec![]),
    ] {
        let mut moved = theta.clone();
        for head in 0..3 {
            moved[bias.start + head * NodeRelation::COUNT + relation.number()] += 1.0;
        }
        let after = model.logits(&moved, &batch).unwrap();
        let changed: Vec<usize> =
            (0..batch.rows()).filter(|r| before[r * v..(r + 1) * v] != after[r * v..(r + 1) * v]).collect();
        assert_eq!(changed, rows, "{relation:?}");
    }
}

#[test]
fn samples_and_beams_read_the_tree() {
    for structure in ALL {
        let (_, theta) = model(&Code::PLAIN, structure);
        let config = config(&Code::PLAIN, structure);
        let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
        let request = Request::free(&Code::PLAIN, 40);
        // Hypotheses that branch have trees of their own: the score of each is that of the full pass.
        let mut explicit = Explicit::new(config.clone()).unwrap();
        let found = sample(&mut decoder, &request, 5, Choice::PLAIN, 0, |_| {}).unwrap();
        assert_eq!(found.len(), 5);
        let beams = beam(&mut decoder, &request, 4, 1.0).unwrap();
        for hypothesis in &beams {
            let ids: Vec<u16> = hypothesis.tokens.iter().map(|token| token.get()).collect();
            let ends = hypothesis.finished.then_some(Code::PLAIN.boundaries()[1].get());
            let all: Vec<u16> =
                [Code::PLAIN.boundaries()[0].get()].into_iter().chain(ids).chain(ends).collect();
            let batch = Batch::new([all.as_slice()]);
            let logits = explicit.logits(&theta, &batch).unwrap();
            let score: f64 = logits
                .chunks(663)
                .zip(&all[1..])
                .map(|(row, &next)| {
                    let most = row.iter().copied().fold(f32::MIN, f32::max);
                    let sum: f64 = row.iter().map(|x| f64::from(x - most).exp()).sum();
                    f64::from(row[usize::from(next)] - most) - sum.ln()
                })
                .sum();
            assert!((score + hypothesis.nll).abs() < 1e-3, "{score} {}", hypothesis.nll);
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let one = ModelConfig { n_heads: 1, ..config(&Code::PLAIN, Structured::Mask) };
    assert!(Explicit::new(one).unwrap_err().to_string().contains("parts the heads"));
    let other = ModelConfig { vocab_size: 1288, ..config(&Code::PLAIN, Structured::Bias) };
    assert!(Explicit::new(other).unwrap_err().to_string().contains("structure = \"bias\" reads the tokens"));
}
