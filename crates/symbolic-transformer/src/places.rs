//! Where each tensor of a model stands in the flat buffer, under its name in `model.safetensors`.
//!
//! Weights of query, key and value stand behind each other, and so do their biases: one product makes all three.

use std::ops::Range;

use fol::notation::NodeRelation;
use training::kernels::Tables;
use training::{Decay, Initial, Layout};

use crate::config::{Embedding, Init, ModelConfig, Position, Structured};

/// A linear map [out, in] with its bias \[out\].
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
}

/// A norm: weight and bias, both \[d\].
#[derive(Debug, Clone)]
pub(crate) struct Norm {
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
}

/// One layer.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// Query, key, value: [3d, d] and \[3d\].
    pub(crate) qkv: Linear,
    pub(crate) output: Linear,
    pub(crate) norm1: Norm,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
    pub(crate) norm2: Norm,
    /// [heads, 21], or [21, d/heads] for keys and for values.
    pub(crate) relations: Tables<Range<usize>>,
}

/// The embedding's tensors.
#[derive(Debug, Clone)]
pub(crate) enum EmbeddingPlaces {
    /// [V, d]
    Table(Range<usize>),
    /// [d, 625] and \[d\]
    GlyphLinear(Linear),
    /// [16, 1, 3, 3], [16, 16, 3, 3], [d, 784], each with its bias
    GlyphCnn([Linear; 3]),
}

/// All tensors.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) embedding: EmbeddingPlaces,
    /// [max_len, d]
    pub(crate) position: Option<Range<usize>>,
    /// \[32\], of tree positions
    pub(crate) decay: Option<Range<usize>>,
    pub(crate) layers: Vec<Block>,
    pub(crate) norm: Option<Norm>,
    /// [V, d]; `None` if tied
    pub(crate) head_weight: Option<Range<usize>>,
    /// \[V\]
    pub(crate) head_bias: Range<usize>,
}

struct Builder {
    layout: Layout,
    init: Init,
    layers: usize,
}

impl Builder {
    fn matrix(&self, out: usize, inner: usize, branch_output: bool) -> Initial {
        match self.init {
            Init::Gpt2 if branch_output => Initial::Normal(0.02 / (2.0 * self.layers as f64).sqrt()),
            Init::Gpt2 => Initial::Normal(0.02),
            Init::Document | Init::Scaled => Initial::XavierUniform { fan_in: inner, fan_out: out },
        }
    }

    fn linear(&mut self, name: &str, out: usize, inner: usize, branch_output: bool) -> Linear {
        let initial = self.matrix(out, inner, branch_output);
        let weight = self.layout.add(format!("{name}.weight"), &[out, inner], Decay::Yes, initial);
        Linear { weight, bias: self.bias(name, out) }
    }

    fn bias(&mut self, name: &str, out: usize) -> Range<usize> {
        self.layout.add(format!("{name}.bias"), &[out], Decay::No, Initial::Constant(0.0))
    }

    fn norm(&mut self, name: &str, d: usize) -> Norm {
        let weight = self.layout.add(format!("{name}.weight"), &[d], Decay::No, Initial::Constant(1.0));
        Norm { weight, bias: self.bias(name, d) }
    }

    fn convolution(&mut self, name: &str, out: usize, channels: usize) -> Linear {
        let initial = self.matrix(out * 9, channels * 9, false);
        let weight = self.layout.add(format!("{name}.weight"), &[out, channels, 3, 3], Decay::Yes, initial);
        Linear { weight, bias: self.bias(name, out) }
    }

    fn embedding(&mut self, config: &ModelConfig) -> EmbeddingPlaces {
        let d = config.d_model;
        match config.embedding {
            Embedding::Learned => {
                let deviation = if config.init == Init::Scaled { 1.0 / (d as f64).sqrt() } else { 0.02 };
                let shape = [config.vocab_size, d];
                let initial = Initial::Normal(deviation);
                EmbeddingPlaces::Table(self.layout.add("embed.weight", &shape, Decay::No, initial))
            }
            Embedding::GlyphLinear => EmbeddingPlaces::GlyphLinear(self.linear("embed", d, 625, false)),
            Embedding::GlyphCnn => EmbeddingPlaces::GlyphCnn([
                self.convolution("embed.conv1", 16, 1),
                self.convolution("embed.conv2", 16, 16),
                self.linear("embed.linear", d, 784, false),
            ]),
        }
    }

    /// At first the model is the one without.
    fn relations(&mut self, n: usize, config: &ModelConfig) -> Tables<Range<usize>> {
        let mut add = |part: &str, shape: [usize; 2]| {
            let name = format!("layers.{n}.attention.relation.{part}");
            Some(self.layout.add(name, &shape, Decay::No, Initial::Constant(0.0)))
        };
        let vectors = [NodeRelation::COUNT, config.head_size()];
        match config.structure {
            Structured::None | Structured::Mask => Tables::default(),
            Structured::Bias => {
                Tables { bias: add("bias", [config.n_heads, NodeRelation::COUNT]), ..Tables::default() }
            }
            Structured::Relational => {
                Tables { bias: None, keys: add("key", vectors), values: add("value", vectors) }
            }
        }
    }

    fn block(&mut self, n: usize, config: &ModelConfig) -> Block {
        let (d, f) = (config.d_model, config.d_ff);
        let name = |part: &str| format!("layers.{n}.{part}");
        let initial = self.matrix(d, d, false);
        let mut weights = Vec::new();
        for part in ["query", "key", "value"] {
            let name = name(&format!("attention.{part}.weight"));
            weights.push(self.layout.add(name, &[d, d], Decay::Yes, initial));
        }
        let biases: Vec<_> = ["query", "key", "value"]
            .iter()
            .map(|p| self.bias(&name(&format!("attention.{p}")), d))
            .collect();
        let span = |r: &[Range<usize>]| r.first().map_or(0, |r| r.start)..r.last().map_or(0, |r| r.end);
        Block {
            qkv: Linear { weight: span(&weights), bias: span(&biases) },
            output: self.linear(&name("attention.output"), d, d, true),
            norm1: self.norm(&name("norm1"), d),
            up: self.linear(&name("ffn.up"), f, d, false),
            down: self.linear(&name("ffn.down"), d, f, true),
            norm2: self.norm(&name("norm2"), d),
            relations: self.relations(n, config),
        }
    }
}

impl Places {
    /// The layout of a model and the places of its tensors.
    pub(crate) fn new(config: &ModelConfig) -> (Layout, Self) {
        let d = config.d_model;
        let mut b = Builder { layout: Layout::default(), init: config.init, layers: config.n_layers };
        let embedding = b.embedding(config);
        let position = (config.position == Position::Learned)
            .then(|| b.layout.add("position.weight", &[config.max_len, d], Decay::No, Initial::Normal(0.02)));
        // At first all depths weigh the same.
        let decay = (config.position == Position::Tree).then(|| {
            b.layout.add("position.decay", &[crate::tree::DEPTH], Decay::No, Initial::Constant(1.0))
        });
        let layers = (0..config.n_layers).map(|n| b.block(n, config)).collect();
        let norm = config.final_norm.then(|| b.norm("norm", d));
        let head_weight = (!config.tie_output)
            .then(|| b.layout.add("head.weight", &[config.vocab_size, d], Decay::Yes, Initial::Normal(0.02)));
        let head_bias = b.bias("head", config.vocab_size);
        (b.layout, Self { embedding, position, decay, layers, norm, head_weight, head_bias })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_has_the_counted_parameters() {
        for name in ["tiny", "small", "base"] {
            let config = ModelConfig::size(name).unwrap();
            for embedding in [Embedding::Learned, Embedding::GlyphLinear, Embedding::GlyphCnn] {
                for position in [Position::Sinusoidal, Position::Learned, Position::Tree] {
                    let config = ModelConfig { embedding, position, ..config.clone() };
                    assert_eq!(Places::new(&config).0.len(), config.parameters());
                }
            }
            for structure in [Structured::Bias, Structured::Mask, Structured::Relational] {
                let structured = ModelConfig { structure, ..config.clone() };
                assert_eq!(Places::new(&structured).0.len(), structured.parameters());
            }
            let tied = ModelConfig { tie_output: true, final_norm: false, ..config };
            assert_eq!(Places::new(&tied).0.len(), tied.parameters());
        }
    }

    #[test]
    fn names() {
        let (layout, _) = Places::new(&ModelConfig::size("tiny").unwrap());
        let names: Vec<&str> = layout.by_name().iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names.len(), 1 + 2 * 16 + 2 + 2);
        for name in [
            "embed.weight",
            "layers.1.attention.query.weight",
            "layers.0.ffn.down.bias",
            "layers.1.norm2.weight",
            "norm.bias",
            "head.bias",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        let tree = ModelConfig { position: Position::Tree, ..ModelConfig::size("tiny").unwrap() };
        let decay = Places::new(&tree).0.iter().find(|p| p.name == "position.decay").cloned().unwrap();
        assert_eq!((decay.shape, decay.decay), (vec![32], Decay::No));
    }
}
