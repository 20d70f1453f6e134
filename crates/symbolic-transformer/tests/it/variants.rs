//! Models that share code with no other, their weights and their batches.

use seeded::Stream;
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{
    Activation, AttentionMask, Embedding, ModelConfig, NormPlace, Position, Structured,
};
use symbolic_transformer::network::Noise;
use symbolic_transformer::premises::SIGNS;

/// A model of width 8 with everything else small, too.
fn small() -> ModelConfig {
    ModelConfig {
        d_model: 8,
        n_layers: 2,
        n_heads: 2,
        d_ff: 12,
        max_len: 16,
        dropout: 0.0,
        ..ModelConfig::size("tiny").unwrap()
    }
}

/// Every combination that shares code with no other.
pub(crate) fn shapes() -> Vec<(&'static str, ModelConfig)> {
    let c = small();
    vec![
        ("post", c.clone()),
        ("pre", ModelConfig { norm: NormPlace::Pre, activation: Activation::GeluTanh, ..c.clone() }),
        ("no final norm", ModelConfig { final_norm: false, activation: Activation::Relu, ..c.clone() }),
        ("pre, no final norm", ModelConfig { final_norm: false, norm: NormPlace::Pre, ..c.clone() }),
        ("learned positions", ModelConfig { position: Position::Learned, ..c.clone() }),
        ("rotary", ModelConfig { position: Position::Rotary, ..c.clone() }),
        ("alibi", ModelConfig { position: Position::Alibi, ..c.clone() }),
        ("tree", ModelConfig { position: Position::Tree, ..c.clone() }),
        (
            "tree, wider than its pattern",
            ModelConfig { position: Position::Tree, d_model: 132, n_layers: 1, ..c.clone() },
        ),
        ("biases of relations", ModelConfig { structure: Structured::Bias, ..c.clone() }),
        ("related heads", ModelConfig { structure: Structured::Mask, norm: NormPlace::Pre, ..c.clone() }),
        (
            "vectors of relations",
            ModelConfig { structure: Structured::Relational, position: Position::Rotary, ..c.clone() },
        ),
        (
            "vectors of relations, dropout",
            ModelConfig { structure: Structured::Relational, dropout: 0.2, n_layers: 1, ..c.clone() },
        ),
        ("no positions", ModelConfig { position: Position::None, scale_embedding: false, ..c.clone() }),
        ("tied", ModelConfig { tie_output: true, ..c.clone() }),
        ("glyph-linear", ModelConfig { embedding: Embedding::GlyphLinear, ..c.clone() }),
        ("glyph-cnn", ModelConfig { embedding: Embedding::GlyphCnn, ..c.clone() }),
        ("more tokens", ModelConfig { vocab_size: 1288, ..c.clone() }),
        ("fewer tokens", ModelConfig { vocab_size: 44, tie_output: true, ..c.clone() }),
        ("premises both ways", ModelConfig { attention_mask: AttentionMask::Prefix, ..c.clone() }),
        (
            "premises both ways, rotary",
            ModelConfig {
                attention_mask: AttentionMask::Prefix,
                position: Position::Rotary,
                norm: NormPlace::Pre,
                ..c.clone()
            },
        ),
        (
            "premises both ways, alibi, dropout",
            ModelConfig {
                attention_mask: AttentionMask::Prefix,
                position: Position::Alibi,
                dropout: 0.2,
                ..c.clone()
            },
        ),
        ("odd sizes", ModelConfig { d_model: 15, n_heads: 3, d_ff: 7, n_layers: 1, ..c.clone() }),
        ("dropout", ModelConfig { dropout: 0.3, ..c }),
    ]
}

pub(crate) fn batch(s: &mut Stream, sequences: u64, longest: u64, config: &ModelConfig) -> Batch {
    if config.position == Position::Tree || config.structure != Structured::None {
        return formulas(s, sequences, 2 * longest);
    }
    let v = config.vocab_size;
    let mut sequences: Vec<Vec<u16>> = (0..sequences)
        .map(|_| (0..2 + s.below(longest - 1)).map(|_| s.below(v as u64) as u16).collect())
        .collect();
    if config.attention_mask == AttentionMask::Causal {
        return Batch::new(sequences.iter().map(Vec::as_slice));
    }
    for (i, sequence) in sequences.iter_mut().enumerate() {
        // Where it stands last among the tokens there is no row of it, and no prefix; the first sequence has one.
        let at = s.below(sequence.len() as u64 - u64::from(i == 0)) as usize;
        sequence[at] = SIGNS[s.below(2) as usize].get();
    }
    Batch::new(sequences.iter().map(Vec::as_slice)).behind(&SIGNS)
}

/// Beginnings of formulas: random tokens have no deep paths.
fn formulas(s: &mut Stream, sequences: u64, longest: u64) -> Batch {
    let law = fol::law::Law::named("public", &[]).unwrap();
    let mut sampler = fol::sample::Sampler::new(&law).unwrap();
    let mut text = Vec::new();
    let sequences: Vec<Vec<u16>> = (0..sequences)
        .map(|_| {
            sampler.sample(s, &mut text);
            let whole = [fol::symbol::SymbolId::BOS].into_iter().chain(text.iter().copied());
            whole.map(fol::symbol::SymbolId::get).take(longest.min(16) as usize).collect()
        })
        .collect();
    Batch::new(sequences.iter().map(Vec::as_slice))
}

/// Weights away from their initial values, so that no gradient is small by symmetry.
pub(crate) fn weights(layout: &training::Layout, s: &mut Stream) -> Vec<f32> {
    let mut theta = layout.initialise(1);
    for p in layout.iter() {
        // 625 cells are summed by a glyph embedding: small weights keep the softmax from saturating.
        let size = if p.name.starts_with("embed.") && p.shape.last() != Some(&8) { 0.02 } else { 0.3 };
        theta[p.range.clone()].iter_mut().for_each(|t| *t += size * s.normal() as f32);
    }
    theta
}

pub(crate) const NOISE: Noise = Noise { seed: 3, update: 5, smoothing: 0.1 };
