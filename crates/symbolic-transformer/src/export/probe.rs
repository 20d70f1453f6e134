//! `probe.safetensors`: eight sequences with our logits, to check a loaded folder against.
//!
//! Each sequence is `<bos>`, 31 symbols that occur in no other, and then 32 symbols that our model itself continues
//! with, greedily: so one tensor of tokens checks the logits and the continuation. Where `max_len` is below 64 the
//! sequences are that long, and half of them is the prompt.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use seeded::Family;
use training::{Refusal, Result, files};

use crate::batch::Batch;
use crate::config::ModelConfig;
use crate::decode::{CachedTransformer, Decoder};
use crate::explicit::Explicit;
use crate::network::Network;

const SEQUENCES: usize = 8;
const LENGTH: usize = 64;

/// Writes the probe of a model.
pub(super) fn write(config: &ModelConfig, theta: &[f32], path: &Path) -> Result<()> {
    let sequences = continued(config, theta)?;
    let length = sequences.first().map_or(0, Vec::len);
    // A row's target is of no use here, but a batch takes each sequence with one.
    let with_target: Vec<Vec<u32>> = sequences.iter().map(|s| [s.as_slice(), &[0]].concat()).collect();
    let batch = Batch::new(with_target.iter().map(Vec::as_slice));
    let mut model = Explicit::new(config.clone())?;
    let logits: Vec<u8> = model.logits(theta, &batch)?.iter().flat_map(|z| z.to_le_bytes()).collect();
    let tokens: Vec<u8> = sequences.iter().flatten().flat_map(|&t| i64::from(t).to_le_bytes()).collect();

    let refused = |e: safetensors::SafeTensorError| Refusal::bad_file(path, e.to_string());
    let shape = vec![SEQUENCES, length];
    let views = [
        ("tokens", TensorView::new(Dtype::I64, shape.clone(), &tokens).map_err(refused)?),
        ("logits", {
            let shape = [shape, vec![config.vocab_size]].concat();
            TensorView::new(Dtype::F32, shape, &logits).map_err(refused)?
        }),
    ];
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    files::write(path, &safetensors::serialize(views, Some(metadata)).map_err(refused)?)
}

/// The sequences: prompts, and what the model says behind them.
fn continued(config: &ModelConfig, theta: &[f32]) -> Result<Vec<Vec<u32>>> {
    let length = LENGTH.min(config.max_len);
    let prompt = length.div_ceil(2);
    let symbols =
        Family::named("symbolic-transformer-v1:probe").stream(0).permutation(config.vocab_size as u32);
    let bos = fol::symbol::SymbolId::BOS.into();
    let mut sequences: Vec<Vec<u32>> = symbols
        .chunks(prompt.max(2) - 1)
        .take(SEQUENCES)
        .map(|others| std::iter::once(bos).chain(others.iter().copied()).take(prompt).collect())
        .collect();

    let mut decoder = CachedTransformer::new(config, theta)?;
    let mut states: Vec<_> = sequences.iter().map(|_| decoder.start()).collect();
    for time in 0..length.saturating_sub(1) {
        let newest: Vec<u32> = sequences.iter().filter_map(|s| s.get(time).copied()).collect();
        let mut states: Vec<_> = states.iter_mut().collect();
        let logits = decoder.step(&mut states, &newest)?;
        if time + 1 >= prompt {
            for (sequence, logits) in sequences.iter_mut().zip(logits.chunks(config.vocab_size)) {
                sequence.push(largest(logits));
            }
        }
    }
    Ok(sequences)
}

/// The place of the largest entry, the first of equals.
fn largest(logits: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (i, &z) in (0..).zip(logits) {
        if z > best.1 {
            best = (i, z);
        }
    }
    best.0
}
