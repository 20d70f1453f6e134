//! `OPTForCausalLM` with `do_layer_norm_before = false`: exact for post-norm (Zhang et al. 2022).
//!
//! OPT keeps two unused rows in front of its positions, has no norm behind the last layer and no output bias.

use serde_json::json;

use super::fold::{NormWeights, Source};
use super::{Exported, Tensors, class_activation, shared_config, with};
use crate::config::ModelConfig;

/// Rows in front of the position table that are never read.
const UNUSED_ROWS: usize = 2;

/// The class's tensors and configuration.
pub(super) fn export(source: &Source<'_>) -> Exported {
    let c = source.config;
    let d = c.d_model;
    let mut tensors = Tensors::default();
    tensors.add("model.decoder.embed_tokens.weight", &[c.vocab_size, d], &source.embedding());
    let positions = [vec![0.0; UNUSED_ROWS * d], source.positions()].concat();
    tensors.add("model.decoder.embed_positions.weight", &[c.max_len + UNUSED_ROWS, d], &positions);

    let layers = &source.places.layers;
    let mut norms2: Vec<NormWeights> = layers.iter().map(|block| source.norm(&block.norm2)).collect();
    let mut last = norms2.pop().unwrap_or(NormWeights::plus_one(d));
    let mut added = None;
    if let Some(norm) = &source.places.norm {
        let split = last.split();
        norms2.push(split.first);
        added = Some(split.second);
        last = source.norm(norm);
    } else {
        norms2.push(NormWeights::plus_one(d));
    }
    for (n, (block, norm2)) in layers.iter().zip(&norms2).enumerate() {
        let [query, key, value] = [0, 1, 2].map(|part| source.third(&block.qkv, part));
        let [output, up, down] = [&block.output, &block.up, &block.down].map(|map| source.map(map));
        let maps = [query, key, value, output, up, down];
        layer(&mut tensors, c, n, &maps, &source.norm(&block.norm1), norm2);
    }
    if let Some(norm1) = &added {
        // Its blocks are zero, so that it is its two norms.
        let zero = |out: usize, inner: usize| (vec![0.0; out * inner], vec![0.0; out]);
        let maps = [zero(d, d), zero(d, d), zero(d, d), zero(d, d), zero(c.d_ff, d), zero(d, c.d_ff)];
        layer(&mut tensors, c, c.n_layers, &maps, norm1, &NormWeights::plus_one(d));
    }
    tensors.add("lm_head.weight", &[c.vocab_size, d], &source.head(&last));

    let config = json!({
        "architectures": ["OPTForCausalLM"], "model_type": "opt",
        "hidden_size": d, "word_embed_proj_dim": d, "ffn_dim": c.d_ff,
        "num_attention_heads": c.n_heads, "num_hidden_layers": c.n_layers + usize::from(c.final_norm),
        "max_position_embeddings": c.max_len, "activation_function": class_activation(c.activation),
        "do_layer_norm_before": false, "_remove_final_layer_norm": false, "enable_bias": true,
        "layer_norm_elementwise_affine": true, "layerdrop": 0.0,
        "dropout": c.dropout, "attention_dropout": c.dropout,
    });
    Exported { config: with(shared_config(c), config), tensors }
}

/// Weight and bias of query, key, value, output, up, down.
type Maps = [(Vec<f64>, Vec<f64>); 6];

fn layer(
    tensors: &mut Tensors,
    config: &ModelConfig,
    n: usize,
    maps: &Maps,
    norm1: &NormWeights,
    norm2: &NormWeights,
) {
    let (d, f) = (config.d_model, config.d_ff);
    let name = |part: &str, kind: &str| format!("model.decoder.layers.{n}.{part}.{kind}");
    let shapes = [
        ("self_attn.q_proj", d, d),
        ("self_attn.k_proj", d, d),
        ("self_attn.v_proj", d, d),
        ("self_attn.out_proj", d, d),
        ("fc1", f, d),
        ("fc2", d, f),
    ];
    for ((part, out, inner), (weight, bias)) in shapes.into_iter().zip(maps) {
        tensors.add(name(part, "weight"), &[out, inner], weight);
        tensors.add(name(part, "bias"), &[out], bias);
    }
    for (part, norm) in [("self_attn_layer_norm", norm1), ("final_layer_norm", norm2)] {
        tensors.add(name(part, "weight"), &[d], &norm.weight);
        tensors.add(name(part, "bias"), &[d], &norm.bias);
    }
}
