//! The LSTM by hand against the same recurrence in candle's operations, in f64, one sequence and one step at a time.

use std::collections::BTreeMap;

use candle_core::{D, DType, Device, Tensor, Var};
use seeded::{Family, Stream};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{Init, ModelConfig};
use symbolic_transformer::decode::Decoder;
use symbolic_transformer::lstm::{Lstm, LstmDecoder, LstmState};
use symbolic_transformer::network::{Network, Noise};
use training::composed::{cross_entropy, linear, matmul, tensor};
use training::kernels::Dropout;

const NOISE: Noise = Noise { seed: 3, update: 5, smoothing: 0.1 };

fn shape(d_model: usize, dropout: f64) -> ModelConfig {
    ModelConfig { d_model, dropout, ..ModelConfig::size("tiny").unwrap() }
}

fn batch(s: &mut Stream, sequences: u64, longest: u64) -> Batch {
    let sequences: Vec<Vec<u16>> = (0..sequences)
        .map(|_| (0..2 + s.below(longest - 1)).map(|_| s.below(663) as u16).collect())
        .collect();
    Batch::new(sequences.iter().map(Vec::as_slice))
}

fn weights(layout: &training::Layout, s: &mut Stream) -> Vec<f32> {
    layout.initialise(1).iter().map(|t| t + 0.3 * s.normal() as f32).collect()
}

/// The recurrence as the papers write it.
struct Composed {
    config: ModelConfig,
    weights: BTreeMap<String, Var>,
}

impl Composed {
    fn new(config: &ModelConfig, layout: &training::Layout, theta: &[f32]) -> Self {
        let var = |p: &training::parameters::Parameter| {
            let entries = tensor(&theta[p.range.clone()], &p.shape, DType::F64, &Device::Cpu).unwrap();
            (p.name.clone(), Var::from_tensor(&entries.copy().unwrap()).unwrap())
        };
        Self { config: config.clone(), weights: layout.iter().map(var).collect() }
    }

    fn sigmoid(x: &Tensor) -> Tensor {
        ((x.neg().unwrap().exp().unwrap() + 1.0).unwrap()).recip().unwrap()
    }

    /// One layer over one sequence, [time, h].
    fn layer(&self, n: usize, x: &Tensor) -> Tensor {
        let w = |part: &str| &self.weights[&format!("lstm.{n}.{part}")];
        let (time, h) = x.dims2().unwrap();
        let mut state = Tensor::zeros((1, h), DType::F64, &Device::Cpu).unwrap();
        let mut cell = state.clone();
        let mut outputs = Vec::new();
        for t in 0..time {
            let sums = linear(&x.narrow(0, t, 1).unwrap(), w("input.weight"), w("bias")).unwrap();
            let sums = (sums + matmul(&state, &w("recurrent.weight").t().unwrap()).unwrap()).unwrap();
            let gate = |k: usize| sums.narrow(1, k * h, h).unwrap();
            let (i, f, g, o) = (
                Self::sigmoid(&gate(0)),
                Self::sigmoid(&gate(1)),
                gate(2).tanh().unwrap(),
                Self::sigmoid(&gate(3)),
            );
            cell = ((f * cell).unwrap() + (i * g).unwrap()).unwrap();
            state = (o * cell.tanh().unwrap()).unwrap();
            outputs.push(state.clone());
        }
        Tensor::cat(&outputs, 0).unwrap()
    }

    /// [rows, V]
    fn logits(&self, batch: &Batch, noise: Option<Noise>) -> Tensor {
        let h = self.config.d_model;
        let scale = if self.config.scale_embedding { (h as f64).sqrt() } else { 1.0 };
        let tokens = Tensor::from_slice(&batch.tokens, batch.rows(), &Device::Cpu).unwrap();
        let x = (self.weights["embed.weight"].embedding(&tokens).unwrap() * scale).unwrap();
        let sequences = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| {
            let parts: Vec<Tensor> =
                batch.ranges().map(|r| f(&x.narrow(0, r.start, r.len()).unwrap())).collect();
            Tensor::cat(&parts, 0).unwrap()
        };
        let mut y = sequences(&|x| self.layer(0, x), &x);
        if let Some(d) = noise.and_then(|n| Dropout::new(self.config.dropout, n.seed, n.update, 0)) {
            let rows = batch.first_row..batch.first_row + batch.rows();
            let masks: Vec<f32> = rows.flat_map(|r| d.factors(r as u64, h)).collect();
            y = (y * tensor(&masks, &[batch.rows(), h], DType::F64, &Device::Cpu).unwrap()).unwrap();
        }
        let y = sequences(&|x| self.layer(1, x), &y);
        linear(&y, &self.weights["head.weight"], &self.weights["head.bias"]).unwrap()
    }

    /// The summed plain loss, and the summed smoothed one.
    fn losses(&self, batch: &Batch, noise: Noise) -> (Tensor, Tensor) {
        let logits = self.logits(batch, Some(noise));
        let rows = batch.rows();
        let ones = Tensor::ones(rows, DType::F64, &Device::Cpu).unwrap();
        let targets = Tensor::from_slice(&batch.targets, rows, &Device::Cpu).unwrap();
        let plain = cross_entropy(&logits, &targets, &ones).unwrap();
        let spread = (logits.log_sum_exp(D::Minus1).unwrap() - logits.mean(D::Minus1).unwrap()).unwrap();
        let s = noise.smoothing;
        let smoothed = ((&plain * (1.0 - s)).unwrap() + (spread.sum_all().unwrap() * s).unwrap()).unwrap();
        (plain, smoothed)
    }
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
}

#[test]
fn explicit_agrees_with_composed() {
    for (name, config) in [
        ("plain", shape(8, 0.0)),
        ("dropout", shape(8, 0.3)),
        ("odd", shape(13, 0.2)),
        ("one", shape(1, 0.0)),
        ("unscaled", ModelConfig { scale_embedding: false, init: Init::Scaled, ..shape(6, 0.1) }),
    ] {
        let mut s = Family::named(name).stream(0);
        let mut explicit = Lstm::new(&config).unwrap();
        for (count, longest) in [(1, 2), (1, 12), (7, 12), (40, 5), (3, 2)] {
            let batch = batch(&mut s, count, longest);
            let theta = weights(explicit.layout(), &mut s);
            let composed = Composed::new(&config, explicit.layout(), &theta);
            let to_f32 = |t: &Tensor| -> Vec<f32> {
                t.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
            };
            let want = to_f32(&composed.logits(&batch, None));
            let got = explicit.logits(&theta, &batch).unwrap();
            let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(got.len() == want.len() && worst < 1e-5, "{name}: logits differ by {worst}");

            let mut gradient = vec![0.0; theta.len()];
            let loss = explicit.gradient(&theta, &batch, NOISE, &mut gradient).unwrap();
            let (plain, smoothed) = composed.losses(&batch, NOISE);
            let plain = plain.to_scalar::<f64>().unwrap();
            assert_eq!(loss.targets as usize, batch.rows());
            assert!((loss.sum - plain).abs() < 1e-5 * plain, "{name}: loss {} and {plain}", loss.sum);
            let store = smoothed.backward().unwrap();
            for p in explicit.layout().iter() {
                let want = to_f32(store.get(composed.weights[&p.name].as_tensor()).unwrap());
                let size = distance(&want, &vec![0.0; want.len()]);
                let apart = distance(&gradient[p.range.clone()], &want);
                assert!(apart <= 2e-5 * size + 1e-6, "{name}: {} differs by {apart} of {size}", p.name);
                // With two steps there is something to remember, and every parameter counts.
                assert!(batch.longest() < 2 || size > 0.0, "{name}: {} has no gradient", p.name);
            }
        }
    }
}

#[test]
fn a_gradient_comes_from_the_end() {
    let mut s = Family::named("comes").stream(0);
    let mut model = Lstm::new(&shape(9, 0.2)).unwrap();
    let (theta, batch) = (weights(model.layout(), &mut s), batch(&mut s, 4, 9));
    crate::gradients::comes_from_the_end("lstm", &mut model, &batch, &theta);
}

#[test]
fn gradients_are_added_to_what_is_there() {
    let config = shape(5, 0.0);
    let mut s = Family::named("added").stream(0);
    let mut model = Lstm::new(&config).unwrap();
    let (theta, batch) = (weights(model.layout(), &mut s), batch(&mut s, 4, 9));
    let (mut once, mut twice) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    model.gradient(&theta, &batch, NOISE, &mut once).unwrap();
    model.gradient(&theta, &batch, NOISE, &mut twice).unwrap();
    model.gradient(&theta, &batch, NOISE, &mut twice).unwrap();
    let doubled: Vec<f32> = once.iter().map(|g| 2.0 * g).collect();
    assert!(distance(&twice, &doubled) < 1e-5 * distance(&doubled, &vec![0.0; doubled.len()]));
}

#[test]
fn pieces_of_a_batch_add_up_with_dropout() {
    let config = shape(7, 0.4);
    let mut s = Family::named("pieces").stream(0);
    let mut model = Lstm::new(&config).unwrap();
    let (theta, whole) = (weights(model.layout(), &mut s), batch(&mut s, 9, 10));
    let (mut a, mut b) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    model.gradient(&theta, &whole, NOISE, &mut a).unwrap();
    for range in [0..4, 4..9] {
        model.gradient(&theta, &whole.piece(range), NOISE, &mut b).unwrap();
    }
    assert!(distance(&a, &b) < 1e-5 * distance(&a, &vec![0.0; a.len()]));
}

#[test]
fn dropout_is_a_function_of_seed_and_update() {
    let config = shape(7, 0.4);
    let mut s = Family::named("dropout").stream(0);
    let mut model = Lstm::new(&config).unwrap();
    let (theta, batch) = (weights(model.layout(), &mut s), batch(&mut s, 6, 10));
    let mut run = |noise| {
        let mut g = vec![0.0; theta.len()];
        let loss = model.gradient(&theta, &batch, noise, &mut g).unwrap();
        (loss, g)
    };
    let first = run(NOISE);
    assert_ne!(first, run(Noise { update: 6, ..NOISE }));
    assert_ne!(first, run(Noise { seed: 4, ..NOISE }));
    assert_eq!(first, run(NOISE));
}

#[test]
fn threads_change_no_bit() {
    let config = shape(151, 0.1);
    let mut s = Family::named("threads").stream(0);
    let layout = Lstm::new(&config).unwrap().layout().clone();
    let (theta, batch) = (weights(&layout, &mut s), batch(&mut s, 64, 30));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut g = vec![0.0; theta.len()];
            let loss = Lstm::new(&config).unwrap().gradient(&theta, &batch, NOISE, &mut g).unwrap();
            (loss, g)
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn decoding_equals_the_full_pass() {
    let config = shape(9, 0.0);
    let mut s = Family::named("decoding").stream(0);
    let mut model = Lstm::new(&config).unwrap();
    let theta = weights(model.layout(), &mut s);
    let sequences: Vec<Vec<u16>> = (0..5).map(|_| (0..13).map(|_| s.below(663) as u16).collect()).collect();
    let full = model.logits(&theta, &Batch::new(sequences.iter().map(Vec::as_slice))).unwrap().to_vec();

    let mut decoder = LstmDecoder::new(&config, &theta).unwrap();
    let mut states: Vec<LstmState> = sequences.iter().map(|_| decoder.start()).collect();
    for t in 0..12 {
        let tokens: Vec<u32> = sequences.iter().map(|q| u32::from(q[t])).collect();
        let mut states: Vec<&mut LstmState> = states.iter_mut().collect();
        let logits = decoder.step(&mut states, &tokens).unwrap();
        for (i, logits) in logits.chunks(663).enumerate() {
            let want = &full[(i * 12 + t) * 663..][..663];
            let worst = logits.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-5, "sequence {i}, step {t}: {worst}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(Lstm::new(&shape(0, 0.1)).is_err() && Lstm::new(&shape(8, 1.0)).is_err());
    // Heads need not divide an LSTM's width.
    let config = shape(151, 0.1);
    let mut model = Lstm::new(&config).unwrap();
    assert!(model.logits(&[0.0], &Batch::new([&[1_u16, 2][..]])).is_err());
    let theta = model.layout().initialise(0);
    assert!(model.logits(&theta, &Batch::new([&[663_u16, 2][..]])).is_err());
    assert!(model.logits(&theta, &Batch::default()).unwrap().is_empty());
    let mut g = vec![0.0; theta.len()];
    assert_eq!(model.gradient(&theta, &Batch::default(), NOISE, &mut g).unwrap().targets, 0);
    let mut decoder = LstmDecoder::new(&config, &theta).unwrap();
    let mut state = decoder.start();
    assert!(decoder.step(&mut [&mut state], &[663]).is_err() && decoder.step(&mut [], &[1]).is_err());
}
