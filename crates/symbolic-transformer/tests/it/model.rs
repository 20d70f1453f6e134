//! What must hold of a model whatever its weights: causality, the cache, batches, sampling.

use fol::law::Law;
use fol::mask::{Grammar, Options};
use fol::notation::{Code, CodeMask, Notation, Token, Tokenization};
use fol::symbol::SymbolId;
use seeded::{Family, Stream};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{AttentionMask, ModelConfig, NormPlace, Position, Structured};
use symbolic_transformer::decode::{CachedTransformer, Decoder};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::network::{Network, Noise};
use symbolic_transformer::sample::{Beam, Choice, Request, Sample, beam, beams, complete, sample};

fn small() -> ModelConfig {
    ModelConfig {
        d_model: 32,
        n_layers: 2,
        n_heads: 4,
        d_ff: 48,
        max_len: 128,
        ..ModelConfig::size("tiny").unwrap()
    }
}

fn shapes() -> Vec<ModelConfig> {
    let c = small();
    vec![
        c.clone(),
        ModelConfig { norm: NormPlace::Pre, position: Position::Learned, ..c.clone() },
        ModelConfig { position: Position::Rotary, tie_output: true, ..c.clone() },
        ModelConfig { position: Position::Alibi, final_norm: false, ..c.clone() },
        ModelConfig { position: Position::Tree, ..c.clone() },
        // As many tokens as symbols would give is nothing special: more, and fewer.
        ModelConfig { vocab_size: 1288, ..c.clone() },
        ModelConfig { vocab_size: 44, tie_output: true, ..c },
    ]
}

fn weights(model: &Explicit, seed: u64) -> Vec<f32> {
    let mut theta = model.layout().initialise(seed);
    let mut s = Family::named("away").stream(seed);
    theta.iter_mut().for_each(|t| *t += 0.1 * s.normal() as f32);
    theta
}

fn sequence(s: &mut Stream, longest: u64, v: usize) -> Vec<u16> {
    (0..2 + s.below(longest)).map(|_| s.below(v as u64) as u16).collect()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn a_later_token_changes_no_earlier_logit() {
    for config in shapes() {
        let v = config.vocab_size;
        let mut model = Explicit::new(config).unwrap();
        let theta = weights(&model, 1);
        let mut tokens: Vec<u16> = (0..40).map(|i| i * 13 % v as u16).collect();
        let before = model.logits(&theta, &Batch::new([tokens.as_slice()])).unwrap().to_vec();
        tokens[25] = (tokens[25] + 1) % v as u16;
        let after = model.logits(&theta, &Batch::new([tokens.as_slice()])).unwrap();
        assert_eq!(before[..25 * v], after[..25 * v]);
        assert_ne!(before[25 * v..26 * v], after[25 * v..26 * v]);
    }
}

/// What is inspected is the plain pass: its logits, weights that sum to 1 and see nothing later, and a last layer from which
/// the head gets the logits.
#[test]
fn an_inspected_pass_is_the_plain_one() {
    let mut s = Family::named("inspected").stream(0);
    for config in shapes() {
        let (v, d, final_norm) = (config.vocab_size, config.d_model, config.final_norm);
        let (layers, heads) = (config.n_layers, config.n_heads);
        let tied = config.tie_output;
        let config = ModelConfig { dropout: 0.5, ..config };
        let mut model = Explicit::new(config.clone()).unwrap();
        let theta = weights(&model, 3);
        let sequences: Vec<Vec<u16>> = (0..5).map(|_| sequence(&mut s, 30, v)).collect();
        let batch = Batch::new(sequences.iter().map(Vec::as_slice));
        let plain = model.logits(&theta, &batch).unwrap().to_vec();
        let seen = model.inspect(&theta, &batch).unwrap();
        assert_eq!(seen.logits, plain);
        // Layers that share their room show the same.
        let mut less = Explicit::new(config).unwrap().with_gradient_checkpointing();
        let seen_by_less = less.inspect(&theta, &batch).unwrap();
        assert_eq!((&seen_by_less.logits, &seen_by_less.hidden), (&seen.logits, &seen.hidden));
        for (layer, head) in (0..layers).flat_map(|l| (0..heads).map(move |h| (l, h))) {
            let both = [&seen, &seen_by_less].map(|s| s.attention(layer, head, 4).to_vec());
            assert_eq!(both[0], both[1]);
        }
        assert_eq!((seen.hidden.len(), seen.hidden[0].len()), (layers + 1, batch.rows() * d));
        for (i, rows) in batch.ranges().enumerate() {
            let n = rows.len();
            let alone = model.inspect(&theta, &batch.piece(i..i + 1)).unwrap();
            for (layer, head) in (0..layers).flat_map(|l| (0..heads).map(move |h| (l, h))) {
                let weights = seen.attention(layer, head, i);
                assert_eq!(weights.len(), n * n);
                assert!(worst(weights, alone.attention(layer, head, 0)) < 1e-5);
                for (query, row) in weights.chunks_exact(n).enumerate() {
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                    assert!(row[query + 1..].iter().all(|&w| w == 0.0) && row.iter().all(|&w| w >= 0.0));
                }
            }
        }
        if !final_norm {
            let find = |name: &str| model.layout().get(name).unwrap().range.clone();
            let matrix = &theta[find(if tied { "embed.weight" } else { "head.weight" })];
            let bias = &theta[find("head.bias")];
            let last = &seen.hidden[layers];
            for (h, logits) in last.chunks_exact(d).zip(plain.chunks_exact(v)) {
                for ((w, b), z) in matrix.chunks_exact(d).zip(bias).zip(logits) {
                    let sum: f32 = w.iter().zip(h).map(|(w, h)| w * h).sum();
                    assert!((sum + b - z).abs() < 1e-4);
                }
            }
        }
    }
    assert!(shapes().iter().any(|c| !c.final_norm), "some shape shows its last layer");
}

#[test]
fn a_batch_of_mixed_lengths_equals_single_runs() {
    let mut s = Family::named("mixed").stream(0);
    for config in shapes() {
        let v = config.vocab_size;
        let mut model = Explicit::new(config).unwrap();
        let theta = weights(&model, 2);
        let sequences: Vec<Vec<u16>> = (0..7).map(|_| sequence(&mut s, 60, v)).collect();
        let batch = Batch::new(sequences.iter().map(Vec::as_slice));
        let together = model.logits(&theta, &batch).unwrap().to_vec();
        for (one, rows) in sequences.iter().zip(batch.ranges()) {
            let alone = model.logits(&theta, &Batch::new([one.as_slice()])).unwrap();
            assert!(worst(alone, &together[rows.start * v..rows.end * v]) < 1e-5);
        }
    }
}

#[test]
fn one_pass_costs_what_the_prefixes_cost() {
    let mut s = Family::named("prefixes").stream(0);
    let mut model = Explicit::new(ModelConfig { dropout: 0.0, ..small() }).unwrap();
    let theta = weights(&model, 3);
    let sequence = sequence(&mut s, 30, 663);
    let noise = Noise { seed: 0, update: 1, smoothing: 0.0 };
    let mut gradient = vec![0.0; theta.len()];
    let whole = model.gradient(&theta, &Batch::new([sequence.as_slice()]), noise, &mut gradient).unwrap();
    let mut sum = 0.0;
    for end in 2..=sequence.len() {
        // Only the last position counts: all other targets are left out.
        let mut batch = Batch::new([&sequence[..end]]);
        let rows = batch.rows();
        batch.targets[..rows - 1].fill(u32::MAX);
        let one = model.gradient(&theta, &batch, noise, &mut gradient).unwrap();
        assert_eq!(one.targets, 1);
        sum += one.sum;
    }
    assert!((whole.sum - sum).abs() / (whole.targets as f64) < 1e-5);
}

#[test]
fn pieces_of_a_batch_have_the_gradient_of_the_whole() {
    let mut s = Family::named("pieces").stream(0);
    let mut model = Explicit::new(ModelConfig { dropout: 0.2, ..small() }).unwrap();
    let theta = weights(&model, 4);
    let sequences: Vec<Vec<u16>> = (0..8).map(|_| sequence(&mut s, 30, 663)).collect();
    let batch = Batch::new(sequences.iter().map(Vec::as_slice));
    let noise = Noise { seed: 5, update: 9, smoothing: 0.0 };
    let mut whole = vec![0.0; theta.len()];
    let all = model.gradient(&theta, &batch, noise, &mut whole).unwrap();
    for parts in [2, 4, 8] {
        let mut pieces = vec![0.0; theta.len()];
        let mut sum = 0.0;
        for part in 0..parts {
            let range = training::Piece { part, parts }.range(batch.sequences());
            sum += model.gradient(&theta, &batch.piece(range), noise, &mut pieces).unwrap().sum;
        }
        assert!((sum - all.sum).abs() < 1e-6 * all.sum);
        let norm = whole.iter().map(|g| g * g).sum::<f32>().sqrt();
        assert!(worst(&whole, &pieces) < 1e-6 * norm, "{parts} parts");
    }
}

#[test]
fn threads_change_no_bit() {
    let mut s = Family::named("threads").stream(0);
    let sequences: Vec<Vec<u16>> = (0..40).map(|_| sequence(&mut s, 60, 663)).collect();
    let batch = Batch::new(sequences.iter().map(Vec::as_slice));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut model = Explicit::new(ModelConfig::size("tiny").unwrap()).unwrap();
            let theta = weights(&model, 5);
            let mut g = vec![0.0; theta.len()];
            let noise = Noise { seed: 1, update: 1, smoothing: 0.1 };
            let loss = model.gradient(&theta, &batch, noise, &mut g).unwrap();
            (loss.sum.to_bits(), g)
        })
    };
    let one = with(1);
    for threads in [2, 3] {
        assert!(one == with(threads), "{threads} threads");
    }
}

#[test]
fn cached_decoding_equals_the_full_pass() {
    let mut s = Family::named("cache").stream(0);
    for config in shapes() {
        let v = config.vocab_size;
        let mut model = Explicit::new(config.clone()).unwrap();
        let theta = weights(&model, 6);
        let sequences: Vec<Vec<u16>> =
            (0..3).map(|_| (0..50).map(|_| s.below(v as u64) as u16).collect()).collect();
        let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
        let mut states: Vec<_> = (0..3).map(|_| decoder.start()).collect();
        let batch = Batch::new(sequences.iter().map(Vec::as_slice));
        let full = model.logits(&theta, &batch).unwrap();
        for t in 0..49 {
            let tokens: Vec<u32> = sequences.iter().map(|s| u32::from(s[t])).collect();
            let mut refs: Vec<_> = states.iter_mut().collect();
            let step = decoder.step(&mut refs, &tokens).unwrap();
            for (i, logits) in step.chunks(v).enumerate() {
                let row = (i * 49 + t) * v;
                assert!(worst(logits, &full[row..row + v]) < 1e-4, "step {t}");
            }
        }
    }
}

fn request(mask: Option<CodeMask>, max_tokens: usize) -> Request {
    let prompt = vec![Token::new(SymbolId::FORALL.get())];
    Request { prompt, mask, ..Request::free(&Code::PLAIN, max_tokens) }
}

fn tokens(samples: &[Sample]) -> Vec<Token> {
    samples[0].tokens.clone()
}

#[test]
fn greedy_is_top_1_is_beam_1_is_cold() {
    let config = small();
    let model = Explicit::new(config.clone()).unwrap();
    let draw = |temperature, top_k| Choice::Draw { temperature, top_k, top_p: 1.0 };
    for seed in 0..5 {
        let theta = weights(&model, seed);
        let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
        let request = request(None, 20);
        let mut with = |choice| tokens(&sample(&mut decoder, &request, 1, choice, 3, |_| {}).unwrap());
        let greedy = with(Choice::Greedy);
        assert_eq!(greedy, with(draw(1.0, 1)));
        assert_eq!(greedy, with(draw(1e-6, 0)));
        assert_eq!(greedy, with(Choice::Draw { temperature: 1.0, top_k: 0, top_p: 1e-9 }));
        let one = beam(&mut decoder, &request, 1, 1.0).unwrap();
        assert_eq!(greedy, tokens(&one));
        let wide = beam(&mut decoder, &request, 6, 0.0).unwrap();
        // Without a length penalty the score is log p; a beam that holds the greedy way loses nothing to it.
        assert!(wide[0].score.unwrap() >= -one[0].nll - 1e-4, "{:?} {:?}", wide[0].score, one[0].nll);
    }
}

#[test]
fn samples_do_not_depend_on_their_number() {
    let config = small();
    let model = Explicit::new(config.clone()).unwrap();
    let theta = weights(&model, 7);
    let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
    let mut draw = |n| sample(&mut decoder, &request(None, 12), n, Choice::PLAIN, 3, |_| {}).unwrap();
    let (few, many) = (draw(3), draw(150));
    assert_eq!(few.len(), 3);
    for (a, b) in few.iter().zip(&many) {
        assert_eq!(a.tokens, b.tokens);
    }
}

/// Prompts of all lengths, none among them, with and without a mask, in one batch: as one by one.
#[test]
fn many_prompts_at_once_are_completed_as_one_by_one() {
    let config = small();
    let model = Explicit::new(config.clone()).unwrap();
    let theta = weights(&model, 11);
    let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
    let law = Law::named("public", &[]).unwrap();
    let mut sampler = fol::sample::Sampler::new(&law).unwrap();
    let family = fol::sample::family("completion-test", 0);
    let requests: Vec<Request> = (0..300_u64)
        .map(|item| {
            let mut prompt = Vec::new();
            sampler.sample(&mut family.stream(item), &mut prompt);
            prompt.truncate(prompt.len() * (item as usize % 4) / 4);
            let prompt = Code::PLAIN.cut(&prompt).unwrap();
            let mask = (item % 3 == 0).then(|| {
                let mut options = Options::new(Grammar::Formula);
                options.budget = Some(60);
                let mut mask = CodeMask::new(&Code::PLAIN, &options).unwrap();
                prompt.iter().for_each(|&s| mask.push(s).unwrap());
                mask.set_budget(Some(20));
                mask
            });
            Request { prompt, mask, ..Request::free(&Code::PLAIN, if item % 7 == 0 { 0 } else { 20 }) }
        })
        .collect();
    let same = |a: &Sample, b: &Sample, i: usize| {
        assert_eq!((&a.tokens, a.finished), (&b.tokens, b.finished), "request {i}");
        assert!((a.nll - b.nll).abs() < 1e-3, "request {i}: {} {}", a.nll, b.nll);
    };
    let together = complete(&mut decoder, &requests, Choice::Greedy, 0, |_| {}).unwrap();
    let beamed = beams(&mut decoder, &requests, Beam { width: 3, alpha: 1.0, early: false }).unwrap();
    assert_eq!((together.len(), beamed.len()), (requests.len(), requests.len()));
    for (i, request) in requests.iter().enumerate().step_by(5) {
        let alone = sample(&mut decoder, request, 1, Choice::Greedy, 0, |_| {}).unwrap();
        same(&together[i], &alone[0], i);
        let alone = beam(&mut decoder, request, 3, 1.0).unwrap();
        assert_eq!(beamed[i].len(), alone.len(), "request {i}");
        beamed[i].iter().zip(&alone).for_each(|(a, b)| same(a, b, i));
    }
    assert!(complete(&mut decoder, &[], Choice::Greedy, 0, |_| {}).unwrap().is_empty());
    assert!(beams(&mut decoder, &[], Beam { width: 3, alpha: 1.0, early: true }).unwrap().is_empty());
}

/// In every code that a law has.
#[test]
fn an_untrained_model_writes_only_formulas_under_the_mask() {
    use Notation::{Infix, Prefix};
    use Tokenization::{Atomic, Compositional};
    for (name, tokenization, notation, n) in [
        ("public", Compositional, Infix, 5_000),
        ("seed", Compositional, Infix, 5_000),
        ("public", Atomic, Infix, 500),
        ("seed", Atomic, Infix, 500),
        ("seed", Compositional, Prefix, 500),
        ("seed", Atomic, Prefix, 500),
    ] {
        let law = Law::named(name, &[]).unwrap();
        let signature = law.signature();
        let code = Code::new(tokenization, notation, &signature, None).unwrap();
        let config =
            ModelConfig { vocab_size: code.size(), d_model: 8, n_layers: 1, n_heads: 1, d_ff: 8, ..small() };
        let model = Explicit::new(config.clone()).unwrap();
        let theta = weights(&model, 8);
        let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
        let mut options = Options::new(Grammar::Formula);
        options.closed = signature.closed;
        options.within = Some(signature);
        options.budget = Some(40);
        let mask = CodeMask::new(&code, &options).unwrap();
        let request = Request { mask: Some(mask), ..Request::free(&code, 40) };
        for s in sample(&mut decoder, &request, n, Choice::PLAIN, 0, |_| {}).unwrap() {
            assert!(s.finished && s.tokens.len() < 40);
            let symbols = code.decode(&s.tokens).unwrap();
            assert!(symbols.len() < 40 && fol::decode(&symbols).unwrap().as_formula().is_some());
        }
        // Beams end with `<eos>` of the code, too.
        let found = beam(&mut decoder, &request, 4, 1.0).unwrap();
        assert!(found.iter().all(|s| !s.finished || code.decode(&s.tokens).is_ok()));
        assert!(found.iter().any(|s| s.finished));
    }
}

#[test]
fn what_a_model_cannot_read_is_refused() {
    let config = small();
    let mut model = Explicit::new(config.clone()).unwrap();
    let theta = weights(&model, 9);
    let long: Vec<u16> = vec![1; 200];
    assert!(
        model
            .logits(&theta, &Batch::new([long.as_slice()]))
            .unwrap_err()
            .to_string()
            .contains("max_len = 128")
    );
    assert!(model.logits(&theta, &Batch::new([&[663_u16, 1][..]])).unwrap_err().to_string().contains("663"));
    assert!(model.logits(&theta[1..], &Batch::new([&[1_u16, 1][..]])).is_err());
    let nan = vec![f32::NAN; theta.len()];
    let mut decoder = CachedTransformer::new(&config, &nan).unwrap();
    assert!(sample(&mut decoder, &request(None, 5), 1, Choice::PLAIN, 0, |_| {}).is_err());
}

/// Prompts of any lengths, none among them, more rows than go through the layers together; and hypotheses that part behind them.
#[test]
fn what_is_read_at_once_is_what_steps_read() {
    let mut s = Family::named("read").stream(0);
    let related = ModelConfig { structure: Structured::Relational, ..small() };
    let both_ways = ModelConfig { attention_mask: AttentionMask::Prefix, ..small() };
    for config in shapes().into_iter().chain([related, both_ways]) {
        let v = config.vocab_size;
        let model = Explicit::new(config.clone()).unwrap();
        let theta = weights(&model, 2);
        let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
        let n = if v == 44 { 130 } else { 6 };
        let prompts: Vec<Vec<u32>> = (0..n)
            .map(|i| {
                let length = if i == 0 { 0 } else { s.below(70) };
                (0..length).map(|_| s.below(v as u64) as u32).collect()
            })
            .collect();
        assert!(n < 100 || prompts.iter().map(Vec::len).sum::<usize>() > 4096);
        let slices: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        let mut read: Vec<_> = prompts.iter().map(|_| decoder.start()).collect();
        decoder.read(&mut read.iter_mut().collect::<Vec<_>>(), &slices).unwrap();
        for (state, prompt) in read.iter_mut().zip(&prompts) {
            let mut stepped = decoder.start();
            for &token in prompt {
                decoder.step(&mut [&mut stepped], &[token]).unwrap();
            }
            // What goes on from it elsewhere leaves no trace, and neither does reading again.
            let mut other = state.clone();
            decoder.read(&mut [&mut other], &[&[1, 2, 3]]).unwrap();
            for token in [7_u32, 651, 5] {
                let token = token % v as u32;
                let right = decoder.step(&mut [&mut stepped], &[token]).unwrap().to_vec();
                let found = decoder.step(&mut [state], &[token]).unwrap();
                assert_eq!(right.iter().all(|z| z.is_nan()), found.iter().all(|z| z.is_nan()));
                assert!(found.iter().any(|z| z.is_nan()) || worst(found, &right) < 1e-4, "{config:?}");
            }
            for token in [1_u32, 2, 3] {
                decoder.step(&mut [&mut stepped], &[token]).unwrap();
            }
            decoder.read(&mut [state], &[&[1, 2, 3]]).unwrap();
            let right = decoder.step(&mut [&mut stepped], &[4]).unwrap().to_vec();
            let found = decoder.step(&mut [state], &[4]).unwrap();
            assert!(found.iter().any(|z| z.is_nan()) || worst(found, &right) < 1e-4, "{config:?}");
        }
    }
}

/// A beam that ends early has as many complete hypotheses as it is wide, unless the longest length ended it; what the patient one finds
/// scores as high at least.
#[test]
fn an_early_beam_ends_with_complete_hypotheses() {
    let config = ModelConfig { vocab_size: 44, ..small() };
    let model = Explicit::new(config.clone()).unwrap();
    let mut theta = weights(&model, 5);
    // An end now and then.
    theta[model.layout().get("head.bias").unwrap().range.start + 2] += 2.0;
    let mut decoder = CachedTransformer::new(&config, &theta).unwrap();
    let request = Request { boundaries: [Token::new(1), Token::new(2)], ..Request::free(&Code::PLAIN, 60) };
    let requests = [request];
    let mut found =
        |early| beams(&mut decoder, &requests, Beam { width: 4, alpha: 1.0, early }).unwrap().swap_remove(0);
    let (early, patient) = (found(true), found(false));
    assert_eq!((early.len(), patient.len()), (4, 4));
    assert!(early.iter().all(|sample| sample.finished), "{early:?}");
    let longest = |samples: &[Sample]| samples.iter().map(|s| s.tokens.len()).max().unwrap();
    assert!(longest(&early) < 60 && longest(&early) <= longest(&patient));
    for (e, p) in early.iter().zip(&patient).filter(|(_, p)| p.finished) {
        assert!(p.score.unwrap() >= e.score.unwrap() - 1e-9);
    }
}
