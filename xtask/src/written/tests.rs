//! The learners as equations against those that are written by hand: the loss and every gradient, on weights and data
//! that are drawn anew in every run.
//!
//! Every entry is compared. In 64 bits it may be 1e-10 off, on the scale of the largest of its own tensor. In 32 bits
//! both sides round: 1e-5 on the scale of the largest of all gradients, of which each is made, and 1e-4 on that of its
//! own tensor, so that no small one is wrong unseen.

use candle_core::{DType, Device};
use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::composed::Composed as ComposedCell;
use linear_logic_rnn::engine::{Engine, Inputs, Objective, Sequences, Targets};
use linear_logic_rnn::options::{Options, Sizes};
use linear_logic_rnn::task::batch::Batch as Strings;
use seeded::{Family, Stream};
use serde_json::json;
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::ModelConfig;
use symbolic_transformer::explicit::{Explicit, sinusoids};
use symbolic_transformer::model::Composed;
use symbolic_transformer::network::{Network, Noise};
use tensor_logic::engine::Numbers;
use tensor_logic::fast::Precision;
use tensor_logic::notebook::Array;

use super::recurrent::{self, CELL, Form, LSTM};
use super::transformer::{self, Written};

fn stream(purpose: &str) -> Stream {
    Family::new("written", purpose, seeded::test_seed()).stream(0)
}

fn doubles(numbers: &Numbers) -> Vec<f64> {
    numbers.doubles().to_vec()
}

/// Compares on the scale of the largest wanted entry; what is 0 in exact arithmetic has the scale `floor`.
fn compare(what: &str, found: &[f64], wanted: &[f64], tolerance: f64, floor: f64) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let scale = wanted.iter().fold(floor, |scale: f64, x| scale.max(x.abs()));
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let apart = (found - wanted).abs();
        assert!(apart <= tolerance * scale, "{what}, entry {at}: {found} instead of {wanted}, scale {scale}");
    }
}

/// Compares gradients in 32 bits: of every tensor its name, what is found and what is wanted, and whether it is 0 in
/// exact arithmetic.
fn compare_singles(all: &[(String, Vec<f64>, Vec<f64>, bool)]) {
    let largest = all.iter().flat_map(|(_, _, wanted, _)| wanted);
    let scale = largest.fold(1e-3, |scale: f64, x| scale.max(x.abs()));
    for (name, found, wanted, nothing) in all {
        compare(name, found, wanted, 1e-5, scale);
        if !nothing {
            compare(name, found, wanted, 1e-4, 1e-2 * scale);
        }
    }
}

/// Texts of 1 to `longest` rows.
fn texts(s: &mut Stream, count: u64, longest: u64, symbols: u64) -> Batch {
    let one = |s: &mut Stream| (0..2 + s.below(longest)).map(|_| s.below(symbols) as u16).collect();
    let texts: Vec<Vec<u16>> = (0..count).map(|_| one(s)).collect();
    Batch::new(texts.iter().map(Vec::as_slice))
}

/// Weights away from where they begin, so that no gradient is small by symmetry, and the smaller the more of them are
/// summed: where a softmax saturates, 32 bits lose digits on both sides.
fn drawn(layout: &training::Layout, width: usize, s: &mut Stream) -> Vec<f32> {
    let spread = 0.8 / (width as f64).sqrt();
    layout.initialise(1).iter().map(|weight| weight + (spread * s.normal()) as f32).collect()
}

/// Shapes that share no size, and such that do; with and without dropout.
fn shapes() -> Vec<ModelConfig> {
    let tiny = ModelConfig::size("tiny").unwrap();
    let of = |vocab_size, d_model, n_layers, n_heads, d_ff, dropout| ModelConfig {
        vocab_size,
        d_model,
        n_layers,
        n_heads,
        d_ff,
        dropout,
        max_len: 16,
        ..tiny.clone()
    };
    vec![
        of(11, 8, 2, 2, 12, 0.0),
        of(11, 8, 2, 2, 12, 0.3),
        of(5, 6, 1, 3, 7, 0.2),
        // Norms over few entries lose digits where these are nearly alike.
        of(7, 16, 3, 1, 5, 0.1),
        of(663, 32, 2, 4, 40, 0.1),
    ]
}

/// What the batches are: one row alone, one text, texts of one row, ragged ones.
const BATCHES: [(u64, u64); 4] = [(1, 1), (1, 9), (3, 1), (6, 9)];

/// The bias of a key moves all scores of a row alike: its gradient is 0, and what is found is rounding.
fn is_nothing(name: &str) -> bool {
    name.ends_with("key.bias")
}

#[test]
fn the_transformer_of_equations_is_the_explicit_one() {
    let mut s = stream("transformer, 32 bits");
    for config in shapes() {
        let mut explicit = Explicit::new(config.clone()).unwrap();
        let mut written = Written::new(transformer::TEXT, config.clone(), Precision::Single).unwrap();
        for (update, (count, longest)) in (1..).zip(BATCHES) {
            let batch = texts(&mut s, count, longest, config.vocab_size as u64);
            let theta = drawn(explicit.layout(), config.d_model, &mut s);
            let wide = |logits: &[f32]| logits.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
            let logits = wide(explicit.logits(&theta, &batch).unwrap());
            compare("logits", &wide(written.logits(&theta, &batch).unwrap()), &logits, 1e-5, 1.0);
            let noise = Noise { seed: 3, update, smoothing: 0.0 };
            let [mut own, mut theirs] = [vec![0.0; theta.len()], vec![0.0; theta.len()]];
            let found = written.gradient(&theta, &batch, noise, &mut own).unwrap();
            let wanted = explicit.gradient(&theta, &batch, noise, &mut theirs).unwrap();
            assert_eq!(found.targets, wanted.targets);
            compare("loss", &[found.sum], &[wanted.sum], 1e-5, 0.0);
            let of = |weight: &training::parameters::Parameter| {
                let [own, theirs] = [&own, &theirs].map(|all| wide(&all[weight.range.clone()]));
                (weight.name.clone(), own, theirs, is_nothing(&weight.name))
            };
            compare_singles(&explicit.layout().iter().map(of).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_transformer_of_equations_is_the_composed_one_in_64_bits() {
    let mut s = stream("transformer, 64 bits");
    for config in shapes() {
        // The table of positions is rounded to 32 bits there: it is given as data, in place of the equation.
        let (mut text, before) = (String::new(), transformer::TEXT.lines().count());
        for line in transformer::TEXT.lines().filter(|line| !line.starts_with("PosEnc[p, d] =")) {
            text += &format!("{line}\n");
        }
        assert_eq!(text.lines().count() + 1, before);
        let mut written = Written::new(&text, config.clone(), Precision::Double).unwrap();
        let composed = Composed::new(config.clone(), DType::F64, Device::Cpu).unwrap();
        let layout = Network::layout(&composed).clone();
        for (update, (count, longest)) in (1..).zip(BATCHES) {
            let batch = texts(&mut s, count, longest, config.vocab_size as u64);
            let table = sinusoids(batch.longest(), config.d_model);
            let table: Vec<f64> = table.iter().map(|x| f64::from(*x)).collect();
            written.data("PosEnc", Array::new([batch.longest(), config.d_model], table));
            let theta = drawn(&layout, config.d_model, &mut s);
            let noise = Noise { seed: 3, update, smoothing: 0.0 };
            let (loss, slopes) = written.slopes(&theta, &batch, noise).unwrap();
            let weights = composed.variables(&theta).unwrap();
            let (wanted, _) = composed.losses(&weights, &batch, Some(noise)).unwrap();
            let targets = batch.rows() as f64;
            compare("loss", &[loss], &[wanted.to_scalar::<f64>().unwrap() / targets], 1e-10, 0.0);
            let store = wanted.backward().unwrap();
            for ((_, parts), slopes) in written.parts().into_iter().zip(&slopes) {
                let mut wanted: Vec<f64> = Vec::new();
                for part in &parts {
                    let gradient = store.get(weights.get(part).unwrap()).unwrap();
                    wanted.extend(gradient.flatten_all().unwrap().to_vec1::<f64>().unwrap());
                }
                wanted.iter_mut().for_each(|slope| *slope /= targets);
                let nothing = parts.iter().any(|part| is_nothing(part));
                let floor = if nothing { 1.0 } else { 1e-6 };
                compare(&parts.join(", "), &doubles(slopes), &wanted, 1e-10, floor);
                // Where each row attends to itself alone, queries and keys move nothing.
                let attends = ["query", "key"].iter().any(|name| parts[0].contains(name));
                let moves = !nothing && (batch.longest() > 1 || !attends);
                assert!(
                    !moves || wanted.iter().any(|slope| slope.abs() > 1e-9),
                    "{parts:?} without a gradient"
                );
            }
        }
    }
}

#[test]
fn what_the_program_does_not_say_is_refused() {
    let tiny = || ModelConfig::size("tiny").unwrap();
    let refusal = |config: ModelConfig| {
        let made = Written::new(transformer::TEXT, config, Precision::Single);
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refusal(tiny()), "");
    let config =
        ModelConfig { norm: symbolic_transformer::config::NormPlace::Pre, tie_output: true, ..tiny() };
    assert_eq!(refusal(config), "the program is not written for norm = \"pre\", tie_output = true");
    let mut written = Written::new(transformer::TEXT, tiny(), Precision::Single).unwrap();
    let theta = vec![0.0; Network::layout(&written).len()];
    let mut gradient = theta.clone();
    let batch = texts(&mut stream("refusals"), 2, 3, 663);
    let noise = Noise { seed: 0, update: 1, smoothing: 0.1 };
    let error = written.gradient(&theta, &batch, noise, &mut gradient).unwrap_err();
    assert!(error.to_string().contains("label_smoothing = 0.1"), "{error}");
    // A program that cannot be read is refused where it is wrong.
    let mut broken =
        Written::new(&transformer::TEXT.replace("gelu(", "gelou("), tiny(), Precision::Single).unwrap();
    let noise = Noise { smoothing: 0.0, ..noise };
    let error = broken.gradient(&theta, &batch, noise, &mut gradient).unwrap_err().to_string();
    assert!(error.contains("unknown-function") && error.contains("gelou"), "{error}");
}

/// Random strings under a random mask that counts something.
fn strings(s: &mut Stream, sequences: usize, steps: usize) -> Strings {
    let mut bits = |count: usize| -> Vec<u32> { (0..count).map(|_| s.below(2) as u32).collect() };
    let (tokens, targets) = (bits(steps * sequences), bits(steps * sequences));
    let mut mask: Vec<bool> = bits(steps).iter().map(|bit| *bit == 1).collect();
    mask[steps - 1] = true;
    Strings { sequences, steps, tokens, targets, mask }
}

/// A program against a cell: the loss, and every gradient in both precisions.
fn cell_agrees(form: &Form, cell: &Cell, s: &mut Stream) {
    for (sequences, steps) in [(1, 1), (1, 7), (5, 2), (37, 6)] {
        let batch = strings(s, sequences, steps);
        let theta: Vec<f64> = (0..cell.count()).map(|_| f64::from(0.6 * s.normal() as f32)).collect();
        let single: Vec<f32> = theta.iter().map(|x| *x as f32).collect();
        let mask: Vec<bool> = batch.mask.iter().flat_map(|counts| vec![*counts; batch.sequences]).collect();
        let all = Sequences { inputs: Inputs::Tokens(&batch.tokens), length: steps, count: sequences };
        let objective = Objective::CrossEntropy(Targets { classes: &batch.targets, mask: &mask });
        let counted = (batch.counted() * sequences) as f64;
        let slopes = |precision: Precision| {
            let mut written = recurrent::Written::new(form, cell, &batch, precision).unwrap();
            match precision {
                Precision::Single => written.slopes(&single).unwrap(),
                Precision::Double => written.slopes(&theta).unwrap(),
            }
        };
        let check =
            |(loss, slopes): (f64, Vec<Numbers>), sum: f64, gradient: &[f64], precision: Precision| {
                let (mut rest, mut all) = (gradient, Vec::new());
                for ((_, weight), slopes) in cell.step.trained().zip(&slopes) {
                    let (here, behind) = rest.split_at(weight.len());
                    rest = behind;
                    let wanted: Vec<f64> = here.iter().map(|slope| slope / counted).collect();
                    // With one step the state that a matrix is applied to is 0.
                    assert!(steps == 1 || wanted.iter().any(|slope| *slope != 0.0), "{}", weight.name);
                    all.push((weight.name.clone(), doubles(slopes), wanted, false));
                }
                match precision {
                    Precision::Single => {
                        compare("loss", &[loss], &[sum / counted], 1e-5, 0.0);
                        compare_singles(&all);
                    }
                    Precision::Double => {
                        compare("loss", &[loss], &[sum / counted], 1e-10, 0.0);
                        all.iter().for_each(|(name, own, theirs, _)| compare(name, own, theirs, 1e-10, 1e-6));
                    }
                }
            };
        let mut gradient = vec![0.0; theta.len()];
        let sum = Engine::new(cell.step.clone(), &theta).gradient(all, objective, &mut gradient);
        check(slopes(Precision::Double), sum, &gradient, Precision::Double);
        let composed = ComposedCell::new(cell.step.clone(), &theta, DType::F64, &Device::Cpu).unwrap();
        let sum = composed.gradient(all, objective, &mut gradient).unwrap();
        check(slopes(Precision::Double), sum, &gradient, Precision::Double);
        let mut narrow = vec![0.0; theta.len()];
        let sum = Engine::new(cell.step.clone(), &single).gradient(all, objective, &mut narrow);
        let wide: Vec<f64> = narrow.iter().map(|slope| f64::from(*slope)).collect();
        check(slopes(Precision::Single), sum, &wide, Precision::Single);
    }
}

fn sizes(hidden: usize, aux: Option<usize>) -> Sizes {
    Sizes { input: Some(2), hidden: Some(hidden), aux, output: Some(2), readout: Some(0), ..Sizes::default() }
}

#[test]
fn the_cell_of_equations_is_that_of_the_proofs() {
    let mut s = stream("cell");
    let options = Options::read(&json!({"preset": "coded", "lambda": [1, 2]})).unwrap();
    for (hidden, aux) in [(1, 1), (6, 3), (4, 4)] {
        let cell = Cell::new("ll".parse().unwrap(), &sizes(hidden, Some(aux)), &options).unwrap();
        cell_agrees(&CELL, &cell, &mut s);
    }
}

#[test]
fn the_lstm_of_equations_is_the_lstm() {
    let mut s = stream("lstm");
    for hidden in [1, 5] {
        let cell = Cell::new("lstm".parse().unwrap(), &sizes(hidden, None), &Options::default()).unwrap();
        cell_agrees(&LSTM, &cell, &mut s);
    }
}
