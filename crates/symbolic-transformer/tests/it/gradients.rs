//! The gradient of every parameter: explicit against composed, composed in f64 against differences.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor, Var};
use seeded::Family;
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{Embedding, ModelConfig};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::model::Composed;
use symbolic_transformer::network::Network;
use training::kernels::Precision;

use crate::variants::{NOISE, batch, shapes, weights};

#[test]
fn explicit_agrees_with_composed() {
    for (name, config) in shapes() {
        let mut s = Family::named(name).stream(0);
        let mut explicit = Explicit::new(config.clone()).unwrap();
        let mut composed = Composed::new(config, DType::F64, Device::Cpu).unwrap();
        for (count, longest) in [(1, 2), (1, 9), (5, 9), (3, 2)] {
            let batch = batch(&mut s, count, longest, explicit.config());
            let theta = weights(explicit.layout(), &mut s);
            let (a, b) = (explicit.logits(&theta, &batch).unwrap(), composed.logits(&theta, &batch).unwrap());
            let scale = b.iter().fold(1.0_f32, |m, v| m.max(v.abs()));
            let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-5 * scale, "{name}: logits differ by {worst}");

            let (mut ga, mut gb) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
            let la = explicit.gradient(&theta, &batch, NOISE, &mut ga).unwrap();
            let lb = composed.gradient(&theta, &batch, NOISE, &mut gb).unwrap();
            assert_eq!(la.targets, lb.targets);
            assert!((la.sum - lb.sum).abs() < 1e-5 * lb.sum, "{name}: loss {} and {}", la.sum, lb.sum);
            for p in explicit.layout().iter() {
                let (x, y) = (&ga[p.range.clone()], &gb[p.range.clone()]);
                let norm = y.iter().map(|v| v * v).sum::<f32>().sqrt();
                let apart = x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt();
                // The key's bias moves all scores of a row alike: its gradient is rounding, and of no size.
                let floor = if p.name.ends_with("key.bias") { 1e-4 } else { 1e-5 };
                assert!(apart <= 2e-5 * norm + floor, "{name}: {} differs by {apart} of {norm}", p.name);
            }
        }
    }
}

/// What is told of before the end is what stands there in the end, and most of it is told of early.
pub(crate) fn comes_from_the_end(name: &str, model: &mut dyn Network, batch: &Batch, theta: &[f32]) {
    let mut right = vec![0.0; theta.len()];
    model.gradient(theta, batch, NOISE, &mut right).unwrap();
    let (mut found, mut told) = (vec![0.0; theta.len()], Vec::new());
    let mut places = Vec::new();
    model
        .gradient_as_it_comes(theta, batch, NOISE, &mut found, &mut |gradient, from| {
            places.push(from);
            told.push(gradient[from..].to_vec());
        })
        .unwrap();
    assert!(found == right, "{name}");
    assert!(places.is_sorted_by(|a, b| a > b) && !places.is_empty(), "{name}: {places:?}");
    for (from, told) in places.iter().zip(told) {
        assert!(told == right[*from..], "{name}: it changed behind {from}");
    }
    // All but the embedding.
    let first = model.layout().iter().find(|p| p.name.starts_with("layers.") || p.name.starts_with("lstm."));
    assert_eq!(places.last(), first.map(|p| &p.range.start), "{name}");
}

#[test]
fn a_gradient_comes_from_the_end() {
    for (name, config) in shapes() {
        for checkpointing in [false, true] {
            let mut s = Family::named(name).stream(4);
            let mut model = Explicit::new(config.clone()).unwrap();
            if checkpointing {
                model = model.with_gradient_checkpointing();
            }
            let batch = batch(&mut s, 3, 9, model.config());
            let theta = weights(model.layout(), &mut s);
            comes_from_the_end(name, &mut model, &batch, &theta);
        }
    }
}

#[test]
fn every_parameter_has_a_gradient() {
    for (name, config) in shapes() {
        let mut s = Family::named(name).stream(1);
        let mut model = Explicit::new(config).unwrap();
        let batch = batch(&mut s, 6, 9, model.config());
        let theta = weights(model.layout(), &mut s);
        let mut g = vec![0.0; theta.len()];
        model.gradient(&theta, &batch, NOISE, &mut g).unwrap();
        for p in model.layout().iter() {
            let g = &g[p.range.clone()];
            assert!(g.iter().all(|v| v.is_finite()) && g.iter().any(|&v| v != 0.0), "{name}: {}", p.name);
        }
    }
}

/// Rounding to bf16 keeps eight bits of each factor: gradients move by a hundredth or so, and none is lost. What judges is in
/// f32.
#[test]
fn products_of_bf16_move_gradients_a_little() {
    for (name, config) in shapes() {
        let mut s = Family::named(name).stream(3);
        let mut single = Explicit::new(config.clone()).unwrap();
        let mut half = Explicit::new(config).unwrap().with_precision(Precision::Half);
        let batch = batch(&mut s, 6, 9, single.config());
        let theta = weights(single.layout(), &mut s);
        assert_eq!(single.logits(&theta, &batch).unwrap(), half.logits(&theta, &batch).unwrap(), "{name}");
        let (mut ga, mut gb) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
        let la = half.gradient(&theta, &batch, NOISE, &mut ga).unwrap();
        let lb = single.gradient(&theta, &batch, NOISE, &mut gb).unwrap();
        assert!((la.sum - lb.sum).abs() < 0.02 * lb.sum, "{name}: loss {} and {}", la.sum, lb.sum);
        assert!(ga != gb, "{name}: nothing was rounded");
        for p in single.layout().iter().filter(|p| !p.name.ends_with("key.bias")) {
            let (x, y) = (&ga[p.range.clone()], &gb[p.range.clone()]);
            let norm = y.iter().map(|v| v * v).sum::<f32>().sqrt();
            let apart = x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt();
            assert!(apart <= 0.1 * norm, "{name}: {} differs by {apart} of {norm}", p.name);
            assert!(x.iter().any(|&v| v != 0.0), "{name}: {}", p.name);
        }
    }
}

/// Loss and gradients of the composed model in f64.
fn in_f64(model: &Composed, theta: &BTreeMap<String, Var>, batch: &Batch) -> Tensor {
    model.losses(theta, batch, Some(NOISE)).unwrap().1
}

#[test]
fn composed_agrees_with_differences_in_f64() {
    for (name, config) in shapes() {
        let mut s = Family::named(name).stream(2);
        // One layer: the convolutions over 663 pictures are slow enough.
        let layers = if config.embedding == Embedding::GlyphCnn { 1 } else { config.n_layers };
        let config = ModelConfig { n_layers: layers, ..config };
        let batch = batch(&mut s, 3, 6, &config);
        let model = Composed::new(config, DType::F64, Device::Cpu).unwrap();
        let flat = weights(model.layout(), &mut s);
        let vars = model.variables(&flat).unwrap();
        let store = in_f64(&model, &vars, &batch).backward().unwrap();
        for p in model.layout().iter() {
            let var = &vars[&p.name];
            let gradient: Vec<f64> = store.get(var).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            // The derivative along the gradient and along two random directions.
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            let mut directions: Vec<Vec<f64>> = vec![gradient.iter().map(|g| g / norm.max(1e-12)).collect()];
            for _ in 0..2 {
                directions.push((0..gradient.len()).map(|_| s.normal()).collect());
            }
            let start: Vec<f64> = var.flatten_all().unwrap().to_vec1().unwrap();
            for direction in directions {
                let along: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
                let loss_at = |step: f64| {
                    let moved: Vec<f64> = start.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
                    var.set(&Tensor::from_vec(moved, p.shape.clone(), &Device::Cpu).unwrap()).unwrap();
                    in_f64(&model, &vars, &batch).to_scalar::<f64>().unwrap()
                };
                let difference = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
                loss_at(0.0);
                let error = (difference - along).abs();
                let size = along.abs().max(norm * 1e-2).max(1e-3);
                assert!(error < 1e-5 * size, "{name}: {}: {along} and {difference}", p.name);
            }
        }
    }
}
