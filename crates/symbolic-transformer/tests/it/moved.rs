//! Models for the tests of the export: every form that it writes, with weights away from their initial values.

use seeded::Family;
use symbolic_transformer::config::{Activation, Embedding, ModelConfig, NormPlace, Position};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::network::Network;

/// Every form of model that can be exported, of width `d`.
pub(crate) fn variants(d: usize) -> Vec<(&'static str, ModelConfig)> {
    let post = ModelConfig {
        d_model: d,
        n_layers: 2,
        n_heads: 4,
        d_ff: 4 * d,
        max_len: 96,
        ..ModelConfig::size("tiny").unwrap_or_else(|| unreachable!("a size"))
    };
    vec![
        ("post", post.clone()),
        ("post-no-final-norm", ModelConfig { final_norm: false, ..post.clone() }),
        ("pre", ModelConfig { norm: NormPlace::Pre, ..post.clone() }),
        ("learned-positions", ModelConfig { position: Position::Learned, ..post.clone() }),
        ("glyph-linear", ModelConfig { embedding: Embedding::GlyphLinear, ..post.clone() }),
        (
            "glyph-cnn-pre",
            ModelConfig { embedding: Embedding::GlyphCnn, norm: NormPlace::Pre, ..post.clone() },
        ),
        ("gelu-tanh", ModelConfig { activation: Activation::GeluTanh, ..post.clone() }),
        (
            "gelu-tanh-pre",
            ModelConfig { activation: Activation::GeluTanh, norm: NormPlace::Pre, ..post.clone() },
        ),
        ("relu", ModelConfig { activation: Activation::Relu, ..post.clone() }),
        ("tied", ModelConfig { tie_output: true, ..post.clone() }),
        ("no-positions-unscaled", ModelConfig { position: Position::None, scale_embedding: false, ..post }),
    ]
}

/// Random weights: all biases and norm weights away from their initial values, logits of a few units.
pub(crate) fn moved_weights(name: &str, config: &ModelConfig) -> Vec<f32> {
    let model = Explicit::new(config.clone()).unwrap_or_else(|e| unreachable!("{e}"));
    let mut theta = model.layout().initialise(1);
    let mut s = Family::named(name).stream(0);
    for p in model.layout().iter() {
        // 625 cells are summed by a glyph embedding, and the rows of a table are scaled by √d.
        let size = if p.name.starts_with("embed.") {
            0.02
        } else {
            0.5 / (p.shape[p.shape.len() - 1] as f64).sqrt()
        };
        let size = if p.shape.len() == 1 { 0.2 } else { size };
        theta[p.range.clone()].iter_mut().for_each(|t| *t += (size * s.normal()) as f32);
    }
    theta
}
