//! Learning on real data of a law: Kneser–Ney against reference values, and 64 formulas learned by heart.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;

use fol::law::Law;
use fol::score::Scorer;
use fol::symbol::SymbolId;
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::ModelConfig;
use symbolic_transformer::evaluate::iid::iid;
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::learner::{Corpus, Learner, validate};
use symbolic_transformer::network::{Network, Noise};
use symbolic_transformer::ngram::Ngram;
use symbolic_transformer::order::{BatchUnit, Batching, Order};
use training::optimiser::AdamW;
use training::schedule::{Decline, Schedule};
use training::trainer::MAX_SKIPPED;
use training::{Outcome, Progress, Settings, Task, Trainer};

fn public(purpose: &str, n: u64) -> (Law, Corpus) {
    let law = Law::named("public", &[]).unwrap();
    let mut sampler = fol::sample::Sampler::new(&law).unwrap();
    let mut scorer = Scorer::new(&law).unwrap();
    let streams = fol::sample::family(purpose, 0);
    let mut corpus = Corpus::new();
    let mut text = Vec::new();
    for item in 0..n {
        text.clear();
        sampler.sample(&mut streams.stream(item), &mut text);
        let nll = scorer.score(&text).unwrap();
        corpus.push(text.iter().copied(), nll);
    }
    (law, corpus)
}

#[test]
fn kneser_ney_reaches_the_reference_values() {
    let (law, train) = public("train", 10_000);
    let (_, test) = public("test", 2_000);
    // Nats per token, top-1 and top-5 on the public law with K = 5, computed with another implementation (± 0.03).
    let reference = [
        (1, 2.599, 0.211, 0.559),
        (2, 1.445, 0.412, 0.946),
        (3, 1.278, 0.489, 0.948),
        (4, 1.029, 0.546, 0.980),
        (5, 1.017, 0.550, 0.979),
        (7, 0.985, 0.575, 0.981),
    ];
    let mut before = f64::INFINITY;
    for (order, nats, top1, top5) in reference {
        let judged = iid(&mut Ngram::train(&train, order), &test, &law, None).unwrap();
        assert!((judged.nats_per_token - nats).abs() < 0.03, "order {order}: {}", judged.nats_per_token);
        assert!((judged.top1.observed - top1).abs() < 0.02 && (judged.top5.observed - top5).abs() < 0.02);
        assert!(judged.nats_per_token < before, "every order is better than the one below");
        before = judged.nats_per_token;
        assert!((judged.optimum.nats_per_token - 0.772).abs() < 0.01 && judged.excess.value > 0.0);
    }
}

/// Mean −ln of the share of sequences with a prefix that go on with its target: what nothing can beat on them.
fn empirical_entropy(corpus: &Corpus) -> f64 {
    let mut counts: HashMap<&[SymbolId], f64> = HashMap::new();
    for s in corpus.iter() {
        for end in 1..=s.len() {
            *counts.entry(&s[..end]).or_default() += 1.0;
        }
    }
    let cost = |s: &[SymbolId]| (1..s.len()).map(|t| -(counts[&s[..=t]] / counts[&s[..t]]).ln()).sum::<f64>();
    corpus.iter().map(cost).sum::<f64>() / corpus.targets() as f64
}

#[test]
fn sixty_four_formulas_are_learned_by_heart() {
    let (_, train) = public("train", 64);
    let least = empirical_entropy(&train);
    let config = ModelConfig { dropout: 0.0, ..ModelConfig::size("tiny").unwrap() };
    let order = Order::new(train.lengths(), Batching::Plain, BatchUnit::Formulas, 64, 0);
    let mut learner = Learner {
        network: Box::new(Explicit::new(config).unwrap()),
        validation: train.clone(),
        train: train.into(),
        order,
        seed: 0,
        smoothing: 0.0,
        moderator: None,
    };
    let total = 300;
    let settings = Settings {
        optimiser: AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.0, ema: 0.0 }.into(),
        schedule: Schedule { lr: 2e-3, warmup: 20, total, min_lr: 0.0, decline: Decline::Cosine },
        clip: 1.0,
        max_skipped: MAX_SKIPPED,
        accumulate: 1,
        pieces: 0,
        patience: 0,
        min_delta: 0.0,
        goal: 0,
        eval_every: total,
        log_every: 50,
        save_every: total,
        seed: 0,
        config_digest: String::new(),
        data_digest: String::new(),
        optimum: None,
        initial: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let theta = {
        let mut trainer =
            Trainer::open(&mut learner, settings, folder.path(), serde_json::Map::new()).unwrap();
        let ended = trainer.run(&AtomicUsize::new(0), &Progress::Quiet).unwrap();
        assert_eq!(ended, Outcome::Finished("steps".to_owned()));
        trainer.weights().to_vec()
    };
    let scores = validate(learner.network.as_mut(), &theta, &learner.validation).unwrap();
    let nats = scores.nll / scores.targets as f64;
    assert!(nats < least + 0.05, "{nats} nats per token; at best {least}");
    assert!(nats > least - 1e-4, "{nats} is below what is possible, {least}");
    println!("{nats:.4} nats per token, at best {least:.4}");
}

/// Batches of similar length, each update weighted by its targets: their mean is the gradient of the epoch's mean loss.
#[test]
fn buckets_weighted_by_their_targets_are_unbiased() {
    let (_, train) = public("train", 400);
    let config =
        ModelConfig { d_model: 16, n_heads: 2, d_ff: 32, dropout: 0.0, ..ModelConfig::size("tiny").unwrap() };
    let noise = Noise { seed: 0, update: 1, smoothing: 0.0 };
    let mut whole = Explicit::new(config.clone()).unwrap();
    let theta = whole.layout().initialise(3);
    let mut mean = vec![0.0; theta.len()];
    let loss = whole.gradient(&theta, &Batch::new(train.iter()), noise, &mut mean).unwrap();
    mean.iter_mut().for_each(|g| *g /= loss.targets as f32);
    let size = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>().sqrt();
    for (batching, unit, batch) in [
        (Batching::Bucket, BatchUnit::Formulas, 16),
        (Batching::Bucket, BatchUnit::Tokens, 100),
        (Batching::Plain, BatchUnit::Formulas, 30),
    ] {
        let mut learner = Learner {
            network: Box::new(Explicit::new(config.clone()).unwrap()),
            order: Order::new(train.lengths(), batching, unit, batch, 0),
            train: train.clone().into(),
            validation: Corpus::new(),
            seed: 0,
            smoothing: 0.0,
            moderator: None,
        };
        let (batches, expected) = (learner.updates_per_epoch(), learner.mean_targets().unwrap());
        let (mut weighted, mut plain) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
        let mut targets = 0;
        for index in 0..batches {
            let batch = learner.batch(1, index).unwrap();
            let mut gradient = vec![0.0; theta.len()];
            let piece = training::Piece { part: 0, parts: 1 };
            let loss = learner.gradient(&theta, &batch, piece, 1, &mut gradient).unwrap();
            targets += loss.targets;
            for ((w, p), g) in weighted.iter_mut().zip(&mut plain).zip(gradient) {
                *w += f64::from(g) / expected / batches as f64;
                *p += f64::from(g) / loss.targets as f64 / batches as f64;
            }
        }
        assert!((targets as f64 - expected * batches as f64).abs() < 1e-6);
        let far = |x: &[f64]| {
            let apart: Vec<f64> = x.iter().zip(&mean).map(|(a, b)| a - f64::from(*b)).collect();
            size(&apart) / size(x)
        };
        assert!(far(&weighted) < 1e-5, "{batching:?} {unit:?}: {}", far(&weighted));
        // What was done before is another direction where lengths are sorted by number of formulas.
        if batching == Batching::Bucket && unit == BatchUnit::Formulas {
            assert!(far(&plain) > 0.02, "{}", far(&plain));
        }
    }
}
