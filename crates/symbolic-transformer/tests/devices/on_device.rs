//! The engine of a device beside the explicit one: logits, gradients, and twenty updates of tiny.

use std::sync::atomic::AtomicUsize;

use device_kernels::{Machine, Products, Sixteen};
use seeded::Family;
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{AttentionMask, Embedding, ModelConfig};
use symbolic_transformer::decode::{CachedTransformer, Decoder};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::learner::{Corpus, Learner};
use symbolic_transformer::network::{Network, Noise};
use symbolic_transformer::on_device::{DecoderOnDevice, OnDevice, Path};
use symbolic_transformer::order::{BatchUnit, Batching, Order};
use symbolic_transformer::sample::{Choice, Request, beam, sample};
use training::collective::{Collective, threads};
use training::kernels::Precision;
use training::optimiser::AdamW;
use training::schedule::{Decline, Schedule};
use training::{DeviceSpec, Settings, Trainer};

use crate::variants::{NOISE, batch, weights};

/// The device that is tested: `CALCULEMUS_DEVICE`, as `--device` names it, or the first of Vulkan.
fn tested() -> DeviceSpec {
    std::env::var("CALCULEMUS_DEVICE").map_or(DeviceSpec::Vulkan(0), |name| name.parse().unwrap())
}

/// It, or nothing where its driver is not installed; then it says so.
fn machine() -> Option<Box<dyn Machine>> {
    match device_kernels::open(tested()) {
        Ok(machine) => Some(machine),
        Err(refusal) => {
            training::progress::say(format_args!("not tested: {refusal}"));
            None
        }
    }
}

/// Those that a device computes.
fn shapes() -> Vec<(&'static str, ModelConfig)> {
    let all = crate::variants::shapes().into_iter();
    all.filter(|(_, config)| config.attention_mask == AttentionMask::Causal).collect()
}

fn on(config: &ModelConfig, machine: Box<dyn Machine>) -> OnDevice {
    OnDevice::new(config.clone(), &fol::notation::Code::PLAIN, machine).unwrap()
}

/// Every second one, from where the seed says; with `CALCULEMUS_SLOW=1` all: to compile the kernels for each takes most of
/// the time.
#[test]
fn a_device_agrees_with_the_explicit_engine() {
    let (first, step) = match std::env::var_os("CALCULEMUS_SLOW") {
        Some(_) => (0, 1),
        None => (seeded::test_seed() as usize % 2, 2),
    };
    for (name, config) in shapes().into_iter().skip(first).step_by(step) {
        let Some(machine) = machine() else { return };
        let mut s = Family::named(name).stream(seeded::test_seed() + 7);
        let mut explicit = Explicit::new(config.clone()).unwrap();
        let mut there = on(&config, machine);
        // The convolutions over 663 pictures are slow enough once.
        let cases: &[(u64, u64)] =
            if config.embedding == Embedding::GlyphCnn { &[(4, 9)] } else { &[(1, 2), (5, 9)] };
        for &(count, longest) in cases {
            let mut batch = batch(&mut s, count, longest, &config);
            batch.first_row = 1000;
            if let Some(target) = batch.targets.first_mut() {
                *target = u32::MAX;
            }
            let theta = weights(explicit.layout(), &mut s);
            let (a, b) = (there.logits(&theta, &batch).unwrap(), explicit.logits(&theta, &batch).unwrap());
            assert_eq!(a.len(), b.len());
            let scale = b.iter().fold(1.0_f32, |m, v| m.max(v.abs()));
            let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-5 * scale, "{name}: logits differ by {worst}");

            let (mut ga, mut gb) = (vec![0.5; theta.len()], vec![0.5; theta.len()]);
            let la = Network::gradient(&mut there, &theta, &batch, NOISE, &mut ga).unwrap();
            let lb = explicit.gradient(&theta, &batch, NOISE, &mut gb).unwrap();
            assert_eq!(la.targets, lb.targets);
            assert!((la.sum - lb.sum).abs() <= 1e-5 * lb.sum, "{name}: loss {} and {}", la.sum, lb.sum);
            for p in explicit.layout().iter() {
                let (x, y) = (&ga[p.range.clone()], &gb[p.range.clone()]);
                let norm = y.iter().map(|v| (v - 0.5) * (v - 0.5)).sum::<f32>().sqrt();
                let apart = x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt();
                // What is added to all keys of a row changes no softmax: that gradient is the rounding of sums that
                // cancel, and may be 0.
                let cancels = p.name.ends_with("key.bias");
                let floor = if cancels { 3e-4 } else { 2e-5 };
                // Twice what one of them may be from f64 (`explicit_agrees_with_composed`): both round.
                assert!(apart <= 4e-5 * norm + floor, "{name}: {} differs by {apart} of {norm}", p.name);
                assert!(norm > 0.0 || batch.rows() < 4 || cancels, "{name}: {} has no gradient", p.name);
            }
        }
    }
}

/// Rounded numbers without tensor cores: what tensor cores compute, as far as a device without them can tell.
#[test]
fn products_of_bf16_are_those_of_the_cpu() {
    for (name, config) in shapes().into_iter().take(3) {
        let Some(machine) = machine() else { return };
        let mut s = Family::named(name).stream(seeded::test_seed() + 9);
        let mut explicit = Explicit::new(config.clone()).unwrap().with_precision(Precision::Half);
        let mut single = Explicit::new(config.clone()).unwrap();
        let mut there = on(&config, machine).with_products(Products::Rounded(Sixteen::Bf16)).unwrap();
        let length = |x: &[f32]| x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let apart = |x: &[f32], y: &[f32]| length(&x.iter().zip(y).map(|(x, y)| x - y).collect::<Vec<_>>());
        let mut nearness = Vec::new();
        for _ in 0..5 {
            let theta = weights(explicit.layout(), &mut s);
            let batch = batch(&mut s, 9, 12, &config);
            let gradient = |network: &mut dyn Network| {
                let mut g = vec![0.0; theta.len()];
                network.gradient(&theta, &batch, NOISE, &mut g).unwrap();
                g
            };
            let (a, b, c) = (gradient(&mut there), gradient(&mut explicit), gradient(&mut single));
            nearness.push((apart(&a, &b) / length(&b), apart(&a, &c) / length(&c)));
            // What judges is f32.
            let (x, y) =
                (there.logits(&theta, &batch).unwrap().to_vec(), explicit.logits(&theta, &batch).unwrap());
            assert!(apart(&x, y) < 1e-5 * length(y), "{name}");
        }
        // A number on the edge of two of bf16 may fall to either side. There are few, but one of them is farther off than what
        // rounding does to any, and where much depends on it, so is the gradient: the middle of five draws has none such.
        nearness.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (near, far) = nearness[2];
        assert!(near < 1e-3 && far > 2.0 * near, "{name}: {nearness:?}");
    }
    let Some(machine) = machine() else { return };
    let on_cores = Products::OnCores(Sixteen::F16);
    if machine.has(on_cores).is_err() {
        let refusal = on(&shapes().swap_remove(0).1, machine).with_products(on_cores).unwrap_err();
        assert!(refusal.to_string().contains("tensor cores that multiply f16"), "{refusal}");
    }
}

/// Hypotheses that go on, branch and die, on the device and on the CPU; the distance of their logits.
fn decode(config: &ModelConfig, steps: usize, most: usize, s: &mut seeded::Stream) -> Option<()> {
    let there = on(config, machine()?);
    let theta = weights(there.layout(), s);
    let mut right = CachedTransformer::new(config, &theta).unwrap();
    let mut found = DecoderOnDevice::new(there, &theta).unwrap();
    let v = config.vocab_size;
    let mut live: Vec<_> = (0..most.div_ceil(2)).map(|_| (right.start(), found.start())).collect();
    for step in 0..steps {
        let tokens: Vec<u32> = live.iter().map(|_| s.below(v as u64) as u32).collect();
        let (mut cpu, mut gpu): (Vec<_>, Vec<_>) = live.iter_mut().map(|(a, b)| (a, b)).unzip();
        let a = right.step(&mut cpu, &tokens).unwrap();
        let b = found.step(&mut gpu, &tokens).unwrap();
        assert_eq!(a.len(), b.len());
        let scale = a.iter().fold(1.0_f32, |m, v| m.max(v.abs()));
        let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-5 * scale, "step {step}: {worst} of {scale}");
        // One dies, another branches, one begins.
        if live.len() > 2 && s.below(3) == 0 {
            live.swap_remove(s.below(live.len() as u64) as usize);
        }
        if live.len() < most {
            let chosen = live[s.below(live.len() as u64) as usize].clone();
            live.push(chosen);
        }
        if live.len() < most && s.below(2) == 0 {
            live.push((right.start(), found.start()));
        }
    }
    Some(())
}

#[test]
fn a_device_decodes_as_the_cpu_does() {
    for (name, config) in shapes() {
        let mut s = Family::named(name).stream(seeded::test_seed() + 8);
        let steps = if config.embedding == Embedding::GlyphCnn { 2 } else { config.max_len.min(9) };
        if decode(&config, steps, 5, &mut s).is_none() {
            return;
        }
    }
    // More tokens than a cache has room for at first, and more than one tile of them.
    let (_, config) = shapes().swap_remove(6);
    let config = ModelConfig { max_len: 60, vocab_size: 44, ..config };
    let mut s = Family::named("cache").stream(seeded::test_seed());
    let _ = decode(&config, 45, 40, &mut s);
}

#[test]
fn samples_and_beams_of_a_device_are_those_of_the_cpu() {
    let (_, config) = shapes().swap_remove(0);
    let Some(machine) = machine() else { return };
    let there = on(&config, machine);
    let theta = weights(there.layout(), &mut Family::named("drawn").stream(seeded::test_seed()));
    let mut right = CachedTransformer::new(&config, &theta).unwrap();
    let mut found = DecoderOnDevice::new(there, &theta).unwrap();
    let request = Request::free(&fol::notation::Code::PLAIN, config.max_len - 1);
    let a = sample(&mut right, &request, 20, Choice::PLAIN, 3, |_| {}).unwrap();
    let b = sample(&mut found, &request, 20, Choice::PLAIN, 3, |_| {}).unwrap();
    // A number that lies within the rounding of a bound falls to the other side: hardly ever.
    let alike =
        a.iter().zip(&b).filter(|(a, b)| a.tokens == b.tokens && (a.nll - b.nll).abs() < 1e-3).count();
    assert!(alike >= 19, "{alike} of 20");
    let a = beam(&mut right, &request, 4, 1.0).unwrap();
    let b = beam(&mut found, &request, 4, 1.0).unwrap();
    assert_eq!((&a[0].tokens, a.len()), (&b[0].tokens, b.len()));
    assert!(found.step(&mut [], &[]).unwrap().is_empty());
    let mut state = found.start();
    assert!(found.step(&mut [&mut state], &[5000]).unwrap_err().to_string().contains("vocabulary"));
    for _ in 0..config.max_len {
        found.step(&mut [&mut state], &[3]).unwrap();
    }
    assert!(found.step(&mut [&mut state], &[3]).unwrap_err().to_string().contains("max_len"));
    let fresh: Path = found.start();
    assert!(format!("{fresh:?}").contains("tokens: []"));
}

fn corpus(part: u64, size: usize) -> Corpus {
    let law = fol::law::Law::named("public", &[]).unwrap();
    let mut sampler = fol::sample::Sampler::new(&law).unwrap();
    let (mut corpus, mut text) = (Corpus::new(), Vec::new());
    let family = Family::named("on-device");
    while corpus.len() < size {
        sampler.sample(&mut family.stream(part * 1000 + corpus.len() as u64), &mut text);
        if text.len() < 40 {
            corpus.push(text.iter().copied(), 0.0);
        } else {
            corpus.push([], 0.0);
        }
    }
    corpus
}

fn settings(total: u64) -> Settings {
    let adamw = AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.01, ema: 0.9 };
    Settings {
        optimiser: adamw.into(),
        schedule: Schedule { lr: 1e-3, warmup: 5, total, min_lr: 1e-4, decline: Decline::Cosine },
        clip: 1.0,
        max_skipped: 10,
        accumulate: 2,
        pieces: 0,
        patience: 0,
        min_delta: 0.0,
        goal: 0,
        eval_every: 10,
        log_every: 5,
        save_every: 5,
        seed: 3,
        config_digest: String::new(),
        data_digest: String::new(),
        optimum: None,
        initial: None,
    }
}

fn learner(network: Box<dyn Network>) -> Learner<'static> {
    let train = corpus(0, 64);
    let lengths = train.lengths();
    let order = Order::new(lengths, Batching::Plain, BatchUnit::Formulas, 16, 3);
    Learner {
        network,
        train: train.into(),
        validation: corpus(1, 16),
        order,
        seed: 3,
        smoothing: 0.0,
        moderator: None,
    }
}

/// Trains to an update and returns the weights and the losses of the `update` lines.
fn train(
    network: Box<dyn Network>,
    folder: &std::path::Path,
    total: u64,
    stop: usize,
) -> (Vec<f32>, Vec<f64>) {
    let mut learner = learner(network);
    let mut trainer = Trainer::open(&mut learner, settings(total), folder, serde_json::Map::new()).unwrap();
    trainer.run(&AtomicUsize::new(stop), &training::Progress::Quiet).unwrap();
    let weights = trainer.weights().to_vec();
    let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let losses = lines.filter_map(|line| line["loss"].as_f64()).collect();
    (weights, losses)
}

#[test]
fn twenty_updates_of_tiny_have_the_losses_of_the_cpu_and_go_on_there() {
    let config = ModelConfig { n_layers: 1, ..ModelConfig::size("tiny").unwrap() };
    let (Some(first), Some(second)) = (machine(), machine()) else { return };
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let cpu = || Box::new(Explicit::new(config.clone()).unwrap());
    let (right, right_losses) = train(cpu(), folders[0].path(), 20, 0);
    let (found, losses) = train(Box::new(on(&config, first)), folders[1].path(), 20, 0);
    assert_eq!((losses.len(), right_losses.len()), (4, 4));
    for (a, b) in losses.iter().zip(&right_losses) {
        assert!((a - b).abs() < 1e-4, "{losses:?} {right_losses:?}");
    }
    let apart = found.iter().zip(&right).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 2e-3, "{apart}");
    // Begun on the device, stopped by a signal after its first update, and ended on the CPU: one run, one file.
    let _ = train(Box::new(on(&config, second)), folders[2].path(), 20, 15);
    let (_, losses) = train(cpu(), folders[2].path(), 20, 0);
    for (a, b) in losses.iter().zip(&right_losses) {
        assert!((a - b).abs() < 1e-4, "{losses:?} {right_losses:?}");
    }
}

/// So many ranks with a machine each; the weights of every rank, and the newest checkpoint.
fn together(config: &ModelConfig, world: usize) -> Option<(Vec<Vec<f32>>, Vec<u8>)> {
    machine()?;
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { accumulate: 1, pieces: 4, ..settings(10) };
    let weights = std::thread::scope(|scope| {
        let ranks = threads(world, std::time::Duration::from_secs(300)).into_iter().map(|mut others| {
            let (settings, folder) = (settings.clone(), folder.path());
            scope.spawn(move || {
                let mut learner = learner(Box::new(on(config, machine().unwrap())));
                let start = serde_json::Map::new();
                let mut trainer = if others.rank() == 0 {
                    let alone = Trainer::open(&mut learner, settings, folder, start).unwrap();
                    if world == 1 { alone } else { alone.lead(&mut others).unwrap() }
                } else {
                    Trainer::follow(&mut learner, settings, &mut others).unwrap()
                };
                trainer.run(&AtomicUsize::new(0), &training::Progress::Quiet).unwrap();
                trainer.weights().to_vec()
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let newest = std::fs::read(folder.path().join("last/step-0000010.safetensors")).unwrap();
    Some((weights, newest))
}

/// The sum of the pieces is one tree, added where the gradients lie as far as they are one rank's.
#[test]
fn ranks_on_devices_have_the_bits_of_one() {
    let config = ModelConfig { n_layers: 1, ..ModelConfig::size("tiny").unwrap() };
    let Some((one, newest)) = together(&config, 1) else { return };
    for world in [2, 4] {
        let (many, newest_of_many) = together(&config, world).unwrap();
        for weights in &many {
            assert!(weights.iter().zip(&one[0]).all(|(a, b)| a.to_bits() == b.to_bits()), "{world}");
        }
        assert!(newest == newest_of_many, "{world}");
    }
    // And it is the sum: the CPU's, as far as f32 goes.
    let folder = tempfile::tempdir().unwrap();
    let mut learner = learner(Box::new(Explicit::new(config).unwrap()));
    let settings = Settings { accumulate: 1, pieces: 4, ..settings(10) };
    let mut trainer = Trainer::open(&mut learner, settings, folder.path(), serde_json::Map::new()).unwrap();
    trainer.run(&AtomicUsize::new(0), &training::Progress::Quiet).unwrap();
    let apart = trainer.weights().iter().zip(&one[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 2e-3, "{apart}");
}

#[test]
fn what_cannot_be_is_refused() {
    let (Some(one), Some(other)) = (machine(), machine()) else { return };
    let config = ModelConfig { max_len: 4, ..ModelConfig::size("tiny").unwrap() };
    let mut there = on(&config, one);
    let theta = there.layout().initialise(0);
    let long = Batch::new([&[1_u16, 2, 3, 4, 5, 6][..]]);
    assert!(there.logits(&theta, &long).unwrap_err().to_string().contains("longer than max_len"));
    let foreign = Batch::new([&[1_u16, 2, 3][..]]);
    let foreign = Batch { tokens: vec![5000; foreign.rows()], ..foreign };
    assert!(there.logits(&theta, &foreign).unwrap_err().to_string().contains("vocabulary"));
    let fine = Batch::new([&[1_u16, 2, 3][..]]);
    assert!(there.logits(&theta[1..], &fine).unwrap_err().to_string().contains("another model"));
    let noise = Noise { seed: 0, update: 1, smoothing: 0.0 };
    let mut bad = theta.clone();
    let head = there.layout().get("head.bias").unwrap().range.start;
    bad[head + 5] = f32::NAN;
    let mut gradient = vec![0.0; bad.len()];
    let loss = Network::gradient(&mut there, &bad, &fine, noise, &mut gradient).unwrap();
    assert!(loss.sum.is_nan() && gradient.iter().any(|g| g.is_nan()), "{}", loss.sum);
    assert!(Network::gradient(&mut there, &[], &fine, noise, &mut []).is_err());
    let both_ways = ModelConfig { attention_mask: AttentionMask::Prefix, ..config };
    let refused = OnDevice::new(both_ways, &fol::notation::Code::PLAIN, other).unwrap_err();
    assert!(refused.to_string().contains("attention on a device is causal"), "{refused}");
    let beyond = match tested() {
        DeviceSpec::Cuda(_) => DeviceSpec::Cuda(77),
        DeviceSpec::Rocm(_) => DeviceSpec::Rocm(77),
        _ => DeviceSpec::Vulkan(77),
    };
    let none = device_kernels::open(beyond).err().unwrap().to_string();
    assert!(none.contains(&beyond.to_string()), "{none}");
    assert!(!matches!(beyond, DeviceSpec::Vulkan(_)) || none.contains("vulkan:0"), "{none}");
    assert!(device_kernels::open(DeviceSpec::Cpu).is_err());
    let missing = [DeviceSpec::Cuda(0), DeviceSpec::Rocm(0), DeviceSpec::Metal(0)];
    for spec in missing.into_iter().filter(|spec| !spec.has_kernels()) {
        assert!(
            device_kernels::open(spec).err().unwrap().to_string().contains("without the feature"),
            "{spec}"
        );
    }
    // The composed engine is not there, and nothing runs on the CPU in its place.
    assert!(DeviceSpec::Vulkan(0).check_built().is_ok());
    assert!(DeviceSpec::Vulkan(0).open().unwrap_err().to_string().contains("composed engines"));
}

/// Only what computes by wgpu can be lost on purpose.
#[cfg(any(feature = "vulkan", feature = "metal"))]
mod lost {
    use symbolic_transformer::network::{Network, Noise};
    use training::{Layout, Loss};

    use super::*;

    /// A network whose device is destroyed before one of its gradients.
    struct Losing {
        network: OnDevice,
        left: usize,
        lose: Option<Box<dyn FnOnce() + Send>>,
    }

    impl Network for Losing {
        fn layout(&self) -> &Layout {
            self.network.layout()
        }

        fn logits(&mut self, theta: &[f32], batch: &Batch) -> training::Result<&[f32]> {
            self.network.logits(theta, batch)
        }

        fn gradient(
            &mut self,
            theta: &[f32],
            batch: &Batch,
            noise: Noise,
            gradient: &mut [f32],
        ) -> training::Result<Loss> {
            self.left = self.left.saturating_sub(1);
            if let Some(lose) = self.lose.take_if(|_| self.left == 0) {
                lose();
            }
            self.network.gradient(theta, batch, noise, gradient)
        }

        fn resident(&mut self) -> Option<&mut dyn training::Resident> {
            self.network.resident()
        }
    }

    #[test]
    fn a_device_lost_in_the_middle_costs_the_updates_since_the_last_checkpoint() {
        let config = ModelConfig { n_layers: 1, ..ModelConfig::size("tiny").unwrap() };
        let Ok((machine, lose)) = device_kernels::open_to_lose(DeviceSpec::Vulkan(0)) else { return };
        let folders: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
        let cpu = || Box::new(Explicit::new(config.clone()).unwrap());
        let (right, right_losses) = train(cpu(), folders[0].path(), 20, 0);
        // Two gradients an update, a checkpoint every five: it is lost in the eighth.
        let network = Losing { network: on(&config, machine), left: 16, lose: Some(lose) };
        let mut learner = learner(Box::new(network));
        let folder = folders[1].path();
        let mut trainer = Trainer::open(&mut learner, settings(20), folder, serde_json::Map::new()).unwrap();
        let failed = trainer.run(&AtomicUsize::new(0), &training::Progress::Quiet).unwrap_err();
        let failed = failed.to_string();
        assert!(failed.contains("device `vulkan:0` failed: the device is lost"), "{failed}");
        assert!(failed.contains("`--device cpu`"), "{failed}");
        drop(trainer);
        assert!(folder.join("last/step-0000005.safetensors").is_file());
        let (found, losses) = train(cpu(), folder, 20, 0);
        for (a, b) in losses.iter().zip(&right_losses) {
            assert!((a - b).abs() < 1e-4, "{losses:?} {right_losses:?}");
        }
        let apart = found.iter().zip(&right).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 2e-3, "{apart}");
    }
}
