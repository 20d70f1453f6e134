//! `GPT2LMHeadModel`: exact for pre-norm with a final norm (Radford et al. 2019).
//!
//! GPT-2 stores its linear maps transposed, joins query, key and value, and has no output bias.

use serde_json::json;

use super::fold::{EPSILON, NormWeights, Source, transposed};
use super::{Exported, Refusal, Result, Tensors, class_activation, shared_config, with};
use crate::places::Linear;

/// The class's tensors and configuration.
pub(super) fn export(source: &Source<'_>) -> Result<Exported> {
    let c = source.config;
    let (d, f) = (c.d_model, c.d_ff);
    let Some(last) = &source.places.norm else {
        return Err(Refusal::NotRepresentable { reason: "norm = \"pre\" without final_norm".to_owned() });
    };
    let mut tensors = Tensors::default();
    tensors.add("transformer.wte.weight", &[c.vocab_size, d], &source.embedding());
    tensors.add("transformer.wpe.weight", &[c.max_len, d], &source.positions());
    for (n, block) in source.places.layers.iter().enumerate() {
        let name = |part: &str| format!("transformer.h.{n}.{part}");
        norm(&mut tensors, &name("ln_1"), &source.norm(&block.norm1));
        map(&mut tensors, source, &name("attn.c_attn"), &block.qkv, 3 * d, d);
        map(&mut tensors, source, &name("attn.c_proj"), &block.output, d, d);
        norm(&mut tensors, &name("ln_2"), &source.norm(&block.norm2));
        map(&mut tensors, source, &name("mlp.c_fc"), &block.up, f, d);
        map(&mut tensors, source, &name("mlp.c_proj"), &block.down, d, f);
    }
    norm(&mut tensors, "transformer.ln_f", &NormWeights::plus_one(d));
    tensors.add("lm_head.weight", &[c.vocab_size, d], &source.head(&source.norm(last)));

    let config = json!({
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
        "n_embd": d, "n_inner": f, "n_head": c.n_heads, "n_layer": c.n_layers,
        "n_positions": c.max_len, "n_ctx": c.max_len, "activation_function": class_activation(c.activation),
        "layer_norm_epsilon": EPSILON, "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false,
        "reorder_and_upcast_attn": false, "add_cross_attention": false,
        "resid_pdrop": c.dropout, "embd_pdrop": c.dropout, "attn_pdrop": c.dropout,
    });
    Ok(Exported { config: with(shared_config(c), config), tensors })
}

fn norm(tensors: &mut Tensors, name: &str, norm: &NormWeights) {
    tensors.add(format!("{name}.weight"), &[norm.weight.len()], &norm.weight);
    tensors.add(format!("{name}.bias"), &[norm.bias.len()], &norm.bias);
}

/// A linear map, stored [in, out].
fn map(tensors: &mut Tensors, source: &Source<'_>, name: &str, map: &Linear, out: usize, inner: usize) {
    let (weight, bias) = source.map(map);
    tensors.add(format!("{name}.weight"), &[inner, out], &transposed(&weight, inner));
    tensors.add(format!("{name}.bias"), &[out], &bias);
}
