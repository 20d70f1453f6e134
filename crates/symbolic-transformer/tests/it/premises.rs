//! Premises that are read in both directions: who sees whom, the cache, and what is refused.

use fol::law::Law;
use fol::notation::{Code, Notation, Token, Tokenization};
use seeded::{Family, Stream};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{AttentionMask, ModelConfig, NormPlace, Position, Structured};
use symbolic_transformer::decode::{CachedTransformer, Decoder};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::network::Network;
use symbolic_transformer::premises::SIGNS;
use symbolic_transformer::sample::{Beam, Choice, Request, beams, complete};

use crate::tree::worst;
use crate::variants::NOISE;

pub(crate) const POSITIONS: [Position; 6] = [
    Position::Sinusoidal,
    Position::Learned,
    Position::Rotary,
    Position::Alibi,
    Position::Tree,
    Position::None,
];

fn config(position: Position) -> ModelConfig {
    ModelConfig {
        d_model: 24,
        n_layers: 2,
        n_heads: 3,
        d_ff: 32,
        max_len: 64,
        position,
        norm: if position == Position::Learned { NormPlace::Post } else { NormPlace::Pre },
        attention_mask: AttentionMask::Prefix,
        ..ModelConfig::size("tiny").unwrap()
    }
}

fn model(config: &ModelConfig) -> (Explicit, Vec<f32>) {
    let model = Explicit::new(config.clone()).unwrap();
    let mut theta = model.layout().initialise(1);
    let mut s = Family::named("premises").stream(config.position as u64);
    theta.iter_mut().for_each(|t| *t += 0.2 * s.normal() as f32);
    (model, theta)
}

/// `<bos>`, premises, a sign, an answer of at least one symbol; its length, and the place of the sign.
fn task(s: &mut Stream) -> (Vec<u16>, usize) {
    let mut text = vec![656];
    text.extend((0..s.below(20)).map(|_| s.below(650) as u16));
    let at = text.len();
    text.push(SIGNS[s.below(2) as usize].get());
    text.extend((0..1 + s.below(6)).map(|_| s.below(650) as u16));
    (text, at)
}

/// A token is moved: the rows that see it change, and no others.
#[test]
fn premises_see_one_another_and_answers_what_is_before_them() {
    let mut s = Family::named("premises-who").stream(0);
    for position in POSITIONS {
        let (mut model, theta) = model(&config(position));
        for _ in 0..20 {
            let (text, sign) = task(&mut s);
            let batch = Batch::new([text.as_slice()]).behind(&SIGNS);
            let before = model.logits(&theta, &batch).unwrap().to_vec();
            let v = before.len() / batch.rows();
            let at = s.below(batch.rows() as u64) as usize;
            if at == sign {
                continue;
            }
            let mut moved = batch.clone();
            moved.tokens[at] = (moved.tokens[at] + 1 + s.below(600) as u32) % 650;
            let after = model.logits(&theta, &moved).unwrap();
            let changed: Vec<usize> = (0..batch.rows())
                .filter(|row| before[row * v..(row + 1) * v] != after[row * v..(row + 1) * v])
                .collect();
            let sees = if at < sign { 0..batch.rows() } else { at..batch.rows() };
            assert_eq!(changed, sees.collect::<Vec<_>>(), "{position}: token {at}, sign {sign}");
        }
    }
}

/// Without a sign among the rows, and with one that stands first, it is the causal model, bit for bit.
#[test]
fn where_nothing_stands_before_a_sign_it_is_the_causal_model() {
    for position in POSITIONS {
        let both = config(position);
        let causal = ModelConfig { attention_mask: AttentionMask::Causal, ..both.clone() };
        let ((mut both, theta), (mut causal, _)) = (model(&both), model(&causal));
        let sign = SIGNS[0].get();
        let texts = [&[656, 5, 9, 7, sign][..], &[sign, 3, 4, 5], &[656, 1, 2]];
        let batch = Batch::new(texts);
        assert_eq!(
            both.logits(&theta, &batch).unwrap(),
            causal.logits(&theta, &batch).unwrap(),
            "{position}"
        );
        let batch = Batch::new([&[656, 5, sign, 9, 7][..]]).behind(&SIGNS);
        assert_ne!(
            both.logits(&theta, &batch).unwrap(),
            causal.logits(&theta, &batch).unwrap(),
            "{position}"
        );
    }
}

/// States of any lengths in step, of which some wait for their sign while others answer.
#[test]
fn the_cache_gives_the_full_pass() {
    let mut s = Family::named("premises-cache").stream(0);
    for position in POSITIONS {
        let config = config(position);
        let (mut model, theta) = model(&config);
        let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
        for _ in 0..6 {
            let tasks: Vec<(Vec<u16>, usize)> = (0..4).map(|_| task(&mut s)).collect();
            let batch = Batch::new(tasks.iter().map(|(text, _)| text.as_slice())).behind(&SIGNS);
            let full = model.logits(&theta, &batch).unwrap().to_vec();
            let v = config.vocab_size;
            let mut states: Vec<_> = tasks.iter().map(|_| decoder.start()).collect();
            for time in 0..batch.longest() {
                let live: Vec<usize> = (0..4).filter(|&i| time + 1 < tasks[i].0.len()).collect();
                let tokens: Vec<u32> = live.iter().map(|&i| u32::from(tasks[i].0[time])).collect();
                let mut stepped: Vec<_> = states
                    .iter_mut()
                    .enumerate()
                    .filter(|(i, _)| live.contains(i))
                    .map(|(_, state)| state)
                    .collect();
                let logits = decoder.step(&mut stepped, &tokens).unwrap();
                for (&i, logits) in live.iter().zip(logits.chunks_exact(v)) {
                    let row = batch.starts[i] + time;
                    if time < tasks[i].1 {
                        assert!(logits.iter().all(|z| z.is_nan()), "a premise waits");
                    } else {
                        assert!(worst(logits, &full[row * v..(row + 1) * v]) < 1e-4, "{position} {i} {time}");
                    }
                }
            }
        }
    }
}

/// Requests whose premises differ in length: what is drawn, and what beams find, has the probability that the full pass gives it.
#[test]
fn answers_have_the_probability_of_the_full_pass() {
    let mut s = Family::named("premises-answers").stream(0);
    let config = config(Position::Rotary);
    let (mut model, theta) = model(&config);
    let requests: Vec<Request> = (0..5)
        .map(|_| {
            let (text, sign) = task(&mut s);
            let prompt = text[1..=sign].iter().map(|&t| Token::new(t)).collect();
            Request { prompt, ..Request::free(&Code::PLAIN, 5) }
        })
        .collect();
    let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
    let drawn = complete(&mut decoder, &requests, Choice::PLAIN, 0, |_| {}).unwrap();
    let found = beams(&mut decoder, &requests, Beam { width: 3, alpha: 1.0, early: false }).unwrap();
    let asked = requests.iter().zip(&drawn);
    let all = asked.chain(requests.iter().zip(&found).flat_map(|(r, beam)| beam.iter().map(move |b| (r, b))));
    let mut judged = 0;
    for (request, answer) in all {
        let end = answer.finished.then_some(657);
        let text: Vec<u16> =
            [656].into_iter().chain(answer.tokens.iter().map(|t| t.get())).chain(end).collect();
        let batch = Batch::new([text.as_slice()]).behind(&SIGNS);
        let logits = model.logits(&theta, &batch).unwrap();
        let nll: f64 = (request.prompt.len()..batch.rows())
            .map(|row| {
                let of_row = &logits[row * 663..(row + 1) * 663];
                let sum: f64 = of_row.iter().map(|&z| f64::from(z).exp()).sum();
                sum.ln() - f64::from(of_row[batch.targets[row] as usize])
            })
            .sum();
        assert!((nll - answer.nll).abs() < 1e-3, "{nll} {}", answer.nll);
        judged += 1;
    }
    assert_eq!(judged, 5 + 15);
}

#[test]
fn what_would_be_wrong_is_refused() {
    let plain = config(Position::Sinusoidal);
    let (mut model, theta) = model(&plain);
    // A target that the rows before it see: nothing was left out of what is learned.
    let leaks = Batch::new([&[656_u16, 1, 657][..], &[656, 1, 2, SIGNS[1].get(), 3]]);
    let mut gradient = vec![0.0; theta.len()];
    for refused in [
        model.logits(&theta, &leaks).map(drop).unwrap_err(),
        model.gradient(&theta, &leaks, NOISE, &mut gradient).map(drop).unwrap_err(),
    ] {
        assert!(refused.to_string().starts_with("sequence 1, token 0: a target among premises"), "{refused}");
    }
    assert!(gradient.iter().all(|g| *g == 0.0));
    let composed = symbolic_transformer::model::Composed::new(
        plain.clone(),
        candle_core::DType::F32,
        candle_core::Device::Cpu,
    );
    assert!(composed.unwrap().logits(&theta, &leaks).is_err());

    let related = ModelConfig { structure: Structured::Bias, ..plain.clone() };
    assert!(
        Explicit::new(related).unwrap_err().to_string().contains("relations are those to earlier tokens")
    );
    let law = Law::named("seed", &[]).unwrap();
    let code = Code::new(Tokenization::Atomic, Notation::Infix, &law.signature(), None).unwrap();
    let other = ModelConfig { vocab_size: code.size(), ..plain.clone() };
    let refused = Explicit::in_code(other.clone(), &code).unwrap_err();
    assert!(refused.to_string().contains("tokens of another code"), "{refused}");
    assert!(CachedTransformer::in_code(&other, &code, &theta).is_err());

    // A prompt without a sign: nothing is drawn from numbers that are none.
    let mut decoder = CachedTransformer::new(&plain, &theta).unwrap();
    let request = [Request { prompt: vec![Token::new(3)], ..Request::free(&Code::PLAIN, 5) }];
    let refused = complete(&mut decoder, &request, Choice::PLAIN, 0, |_| {}).unwrap_err();
    assert!(refused.to_string().contains("not numbers"), "{refused}");
    // Premises beyond the longest sequence.
    let long = vec![Token::new(3); 64].into_iter().chain([Token::new(SIGNS[0].get())]).collect();
    let request = [Request { prompt: long, ..Request::free(&Code::PLAIN, 5) }];
    let refused = complete(&mut decoder, &request, Choice::PLAIN, 0, |_| {}).unwrap_err();
    assert!(refused.to_string().contains("max_len = 64"), "{refused}");
}
