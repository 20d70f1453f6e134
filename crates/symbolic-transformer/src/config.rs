//! The shape of a model: what it is made of, and exactly how many parameters that is.

use fol::notation::NodeRelation;
use serde::{Deserialize, Serialize};
use training::kernels::Activation as Kernel;
use training::{Refusal, Result};

macro_rules! options {
    ($(#[$doc:meta])* $name:ident: $($(#[$variant_doc:meta])* $variant:ident $label:literal),* $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $label)] $variant),* }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $label),* })
            }
        }
    };
}

options! {
    /// Where the norms of a layer stand.
    NormPlace:
    /// After each residual sum (Vaswani et al. 2017).
    Post "post",
    /// Before each branch (GPT-2).
    Pre "pre",
}

options! {
    /// The activation of the feed-forward block.
    Activation:
    /// x·Φ(x), the exact form.
    Gelu "gelu",
    /// The tanh approximation.
    GeluTanh "gelu-tanh",
    /// max(x, 0).
    Relu "relu",
}

options! {
    /// How the model knows positions.
    Position:
    /// The fixed table of sines and cosines.
    Sinusoidal "sinusoidal",
    /// A learned table of `max_len` rows.
    Learned "learned",
    /// Queries and keys turn with the position (Su et al. 2021).
    Rotary "rotary",
    /// A linear penalty on distance (Press et al. 2021).
    Alibi "alibi",
    /// The path of the next token's node from the root, with a learned decay for each depth (Shiv and Quirk 2019), and
    /// the sinusoid of the position inside the node.
    Tree "tree",
    /// Not at all.
    None "none",
}

options! {
    /// What attention knows of the tree (`fol::notation::Structure`): the relation of each token to every earlier one.
    Structured:
    /// Nothing.
    None "none",
    /// A learned number for each head and relation is added to the score; 0 at first.
    Bias "bias",
    /// The second half of the heads look at related tokens, at themselves and at the first token alone.
    Mask "mask",
    /// Learned vectors of relations are added to keys and to values (Shaw et al. 2018); 0 at first.
    Relational "relational",
}

options! {
    /// Which tokens of a text see which.
    AttentionMask:
    /// Each itself and earlier ones.
    Causal "causal",
    /// Those up to the sign of an answer all see one another; those behind it see themselves and earlier ones (the prefix language
    /// model of Raffel et al. 2020, section 3.2.1).
    Prefix "prefix",
}

options! {
    /// Where a symbol's vector comes from.
    Embedding:
    /// A table of V rows.
    Learned "learned",
    /// One linear map of the 625 cells of its glyph.
    GlyphLinear "glyph-linear",
    /// Two convolutions over its glyph.
    GlyphCnn "glyph-cnn",
}

options! {
    /// How parameters begin.
    Init:
    /// Embedding and head N(0, 0.02²), matrices Xavier-uniform.
    Document "document",
    /// Every matrix N(0, 0.02²), outputs of the branches divided by √(2·layers).
    Gpt2 "gpt2",
    /// `document` with the embedding from N(0, 1/d).
    Scaled "scaled",
}

impl Default for Structured {
    /// Runs from before there was a choice.
    fn default() -> Self {
        Self::None
    }
}

impl Default for AttentionMask {
    /// Runs from before there was a choice.
    fn default() -> Self {
        Self::Causal
    }
}

impl Activation {
    /// The kernel.
    pub fn kernel(self) -> Kernel {
        match self {
            Self::Gelu => Kernel::Gelu,
            Self::GeluTanh => Kernel::GeluTanh,
            Self::Relu => Kernel::Relu,
        }
    }
}

/// Steps of a path in the tree that are told apart, each with a decay of its own.
pub(crate) const TREE_DEPTH: usize = 32;

/// A decoder-only transformer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// Symbols, V.
    pub vocab_size: usize,
    /// Width, d.
    pub d_model: usize,
    /// Layers, L.
    pub n_layers: usize,
    /// Heads; they divide the width.
    pub n_heads: usize,
    /// Width of the feed-forward block, f.
    pub d_ff: usize,
    /// Where the norms stand.
    pub norm: NormPlace,
    /// One more norm before the head.
    pub final_norm: bool,
    /// The activation.
    pub activation: Activation,
    /// The positions.
    pub position: Position,
    /// What attention knows of the tree.
    #[serde(default)]
    pub structure: Structured,
    /// Which tokens see which.
    #[serde(default)]
    pub attention_mask: AttentionMask,
    /// The longest sequence.
    pub max_len: usize,
    /// The embedding.
    pub embedding: Embedding,
    /// Multiplies embeddings by √d.
    pub scale_embedding: bool,
    /// The head uses the embedding table.
    pub tie_output: bool,
    /// How parameters begin.
    pub init: Init,
    /// Share of elements dropped in training.
    pub dropout: f64,
}

impl ModelConfig {
    /// The shape of one of the four sizes, with its defaults; `None` for another name.
    pub fn size(name: &str) -> Option<Self> {
        let (d_model, n_layers, n_heads, d_ff) = match name {
            "tiny" => (128, 2, 4, 512),
            "small" => (256, 4, 4, 1024),
            "base" => (512, 6, 8, 2048),
            "large" => (768, 12, 12, 3072),
            _ => return None,
        };
        Some(Self {
            vocab_size: fol::symbol::VOCABULARY,
            d_model,
            n_layers,
            n_heads,
            d_ff,
            norm: if name == "large" { NormPlace::Pre } else { NormPlace::Post },
            final_norm: true,
            activation: Activation::Gelu,
            position: Position::Sinusoidal,
            structure: Structured::None,
            attention_mask: AttentionMask::Causal,
            max_len: 512,
            embedding: Embedding::Learned,
            scale_embedding: true,
            tie_output: false,
            init: Init::Document,
            dropout: 0.1,
        })
    }

    /// The width of a head.
    pub fn head_size(&self) -> usize {
        self.d_model / self.n_heads.max(1)
    }

    /// What multiplies an embedding.
    pub fn embedding_scale(&self) -> f64 {
        if self.scale_embedding { (self.d_model as f64).sqrt() } else { 1.0 }
    }

    /// Everything that is wrong with the shape, all at once.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut demand = |holds: bool, message: String| {
            if !holds {
                found.push(message);
            }
        };
        let Self { d_model, n_layers, n_heads, d_ff, max_len, .. } = *self;
        let range = |name: &str, value: usize, most: usize| {
            (value >= 1 && value <= most, format!("{name} = {value}: 1 to {most} is possible"))
        };
        for (holds, message) in [
            range("d_model", d_model, 65_536),
            range("n_layers", n_layers, 1_000),
            range("n_heads", n_heads, 4_096),
            range("d_ff", d_ff, 1 << 20),
            range("max_len", max_len, 1 << 20),
        ] {
            demand(holds, message);
        }
        let divides = n_heads > 0 && d_model.is_multiple_of(n_heads);
        demand(divides, format!("n_heads = {n_heads} does not divide d_model = {d_model}"));
        demand(
            self.position != Position::Rotary || (divides && self.head_size().is_multiple_of(2)),
            "position = \"rotary\" needs heads of even size".to_owned(),
        );
        demand(
            self.structure != Structured::Mask || n_heads >= 2,
            format!("structure = \"mask\" parts the heads, and n_heads = {n_heads}"),
        );
        demand(
            self.attention_mask == AttentionMask::Causal || self.structure == Structured::None,
            format!(
                "attention_mask = \"prefix\" with structure = \"{}\": relations are those to earlier tokens, and premises see later ones",
                self.structure
            ),
        );
        demand(
            !self.tie_output || self.embedding == Embedding::Learned,
            "tie_output = true needs embedding = \"learned\": a glyph embedding has no table to share"
                .to_owned(),
        );
        demand(
            self.embedding == Embedding::Learned || self.vocab_size == fol::symbol::VOCABULARY,
            "a glyph embedding needs the vocabulary of 663 symbols".to_owned(),
        );
        demand(
            (0.0..1.0).contains(&self.dropout),
            format!("dropout = {}: 0 to below 1 is possible", self.dropout),
        );
        found
    }

    /// Refuses a shape that cannot be built, naming every reason.
    pub fn check(&self) -> Result<()> {
        let problems = self.problems();
        if problems.is_empty() { Ok(()) } else { Err(Refusal::Setting(problems.join("\n"))) }
    }

    /// V·d + L(4d² + 4d + 2df + f + d + 4d) + 2d·\[final norm\] + V·d·\[untied\] + V + max_len·d·\[learned positions\] +
    /// 32·\[tree positions\] + 21·L·heads·\[biases of relations\] + 42·L·(d/heads)·\[vectors of relations\].
    pub fn parameters(&self) -> usize {
        let (v, d, f) = (self.vocab_size, self.d_model, self.d_ff);
        let embedding = match self.embedding {
            Embedding::Learned => v * d,
            Embedding::GlyphLinear => 626 * d,
            Embedding::GlyphCnn => 16 * 9 + 16 + 16 * 16 * 9 + 16 + 785 * d,
        };
        let layer = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d;
        let norm = if self.final_norm { 2 * d } else { 0 };
        let head = if self.tie_output { v } else { v * d + v };
        let positions = match self.position {
            Position::Learned => self.max_len * d,
            Position::Tree => TREE_DEPTH,
            Position::Sinusoidal | Position::Rotary | Position::Alibi | Position::None => 0,
        };
        let relations = NodeRelation::COUNT
            * match self.structure {
                Structured::None | Structured::Mask => 0,
                Structured::Bias => self.n_heads,
                Structured::Relational => 2 * self.head_size(),
            };
        embedding + self.n_layers * (layer + relations) + norm + head + positions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_counts_of_the_four_sizes() {
        for (name, with, without) in [
            ("tiny", 567_191, 566_935),
            ("small", 3_499_671, 3_499_159),
            ("base", 19_594_903, 19_593_879),
            ("large", 86_075_031, 86_073_495),
        ] {
            let config = ModelConfig::size(name).unwrap();
            assert_eq!(config.parameters(), with, "{name}");
            assert_eq!(ModelConfig { final_norm: false, ..config.clone() }.parameters(), without, "{name}");
            // The public project counts one symbol less.
            let public = ModelConfig { vocab_size: 662, ..config };
            assert_eq!(public.parameters(), with - 2 * public.d_model - 1);
            let tree = ModelConfig { position: Position::Tree, ..ModelConfig::size(name).unwrap() };
            assert_eq!(tree.parameters(), with + 32);
            let c = ModelConfig::size(name).unwrap();
            let structured = |structure| ModelConfig { structure, ..c.clone() }.parameters() - with;
            assert_eq!(structured(Structured::Mask), 0);
            assert_eq!(structured(Structured::Bias), 21 * c.n_layers * c.n_heads);
            assert_eq!(structured(Structured::Relational), 42 * c.n_layers * c.d_model / c.n_heads);
        }
    }

    /// 38 signs and 1,250 names, and d_ff such that the whole is as large as with 663 symbols.
    #[test]
    fn whole_names_with_as_many_parameters() {
        for (name, d_ff) in [("tiny", 199), ("small", 868), ("base", 1944), ("large", 3020)] {
            let symbols = ModelConfig::size(name).unwrap();
            let names = ModelConfig { vocab_size: 1288, d_ff, ..symbols.clone() };
            let (a, b) = (symbols.parameters() as f64, names.parameters() as f64);
            assert!((b / a - 1.0).abs() < 5e-4, "{name}: {a} and {b}");
            // No other width is nearer.
            for other in [d_ff - 1, d_ff + 1] {
                let other = ModelConfig { d_ff: other, ..names.clone() }.parameters() as f64;
                assert!((other - a).abs() >= (b - a).abs(), "{name}");
            }
        }
    }

    #[test]
    fn impossible_shapes_are_refused_with_every_reason() {
        let mut c = ModelConfig::size("tiny").unwrap();
        assert!(c.check().is_ok());
        (c.n_heads, c.tie_output, c.embedding, c.dropout) = (3, true, Embedding::GlyphLinear, 1.0);
        assert_eq!(c.problems().len(), 3);
        c.n_heads = 0;
        assert!(c.check().is_err());
    }
}
