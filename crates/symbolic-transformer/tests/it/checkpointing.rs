//! Gradient checkpointing: the bits of the plain pass, with less kept.

use seeded::{Family, Stream};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::{Activation, AttentionMask, ModelConfig, NormPlace, Structured};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::network::{Network, Noise};
use symbolic_transformer::premises::SIGNS;

use crate::premises::POSITIONS;

fn config(s: &mut Stream) -> ModelConfig {
    let heads = 1 + s.below(4) as usize;
    let pick = |s: &mut Stream, n| s.below(n) as usize;
    let both_ways = pick(s, 4) == 0;
    ModelConfig {
        attention_mask: if both_ways { AttentionMask::Prefix } else { AttentionMask::Causal },
        d_model: heads * 2 * (1 + pick(s, 6)),
        n_layers: 1 + pick(s, 5),
        n_heads: heads,
        d_ff: 1 + pick(s, 40),
        norm: [NormPlace::Post, NormPlace::Pre][pick(s, 2)],
        final_norm: pick(s, 2) == 0,
        activation: [Activation::Gelu, Activation::GeluTanh, Activation::Relu][pick(s, 3)],
        position: POSITIONS[pick(s, 6)],
        structure: match pick(s, 4) {
            _ if both_ways => Structured::None,
            0 => Structured::Bias,
            1 if heads > 1 => Structured::Mask,
            2 => Structured::Relational,
            _ => Structured::None,
        },
        tie_output: pick(s, 2) == 0,
        max_len: 64,
        dropout: 0.3,
        ..ModelConfig::size("tiny").unwrap()
    }
}

fn batch(s: &mut Stream) -> Batch {
    let sequences: Vec<Vec<u16>> =
        (0..1 + s.below(6)).map(|_| (0..2 + s.below(30)).map(|_| s.below(663) as u16).collect()).collect();
    // Some have a sign of an answer among their tokens; at least of one there is something to learn.
    let last: &[u16] = &[656, SIGNS[0].get(), 3, 657];
    Batch::new(sequences.iter().map(Vec::as_slice).chain([last])).behind(&SIGNS)
}

#[test]
fn recomputed_layers_give_the_same_bits() {
    let mut s = Family::named("checkpointing").stream(0);
    for _ in 0..60 {
        let config = config(&mut s);
        let mut plain = Explicit::new(config.clone()).unwrap();
        let mut checkpointed = Explicit::new(config.clone()).unwrap().with_gradient_checkpointing();
        let mut theta = plain.layout().initialise(s.below(1000));
        theta.iter_mut().for_each(|t| *t += 0.1 * s.normal() as f32);
        // Batches of several sizes, in the buffers of the one before; pieces of batches draw the masks of their rows.
        for update in 1..4 {
            let noise = Noise { seed: 7, update, smoothing: 0.1 };
            let whole = batch(&mut s);
            for batch in [&whole, &whole.piece(whole.sequences() / 2..whole.sequences())] {
                let [mut a, mut b] = [(); 2].map(|()| vec![0.0; theta.len()]);
                let one = plain.gradient(&theta, batch, noise, &mut a).unwrap();
                let two = checkpointed.gradient(&theta, batch, noise, &mut b).unwrap();
                assert_eq!(one.sum.to_bits(), two.sum.to_bits(), "{config:?}");
                assert!(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits()), "{config:?}");
                assert!(a.iter().any(|a| *a != 0.0));
            }
            assert_eq!(plain.logits(&theta, &whole).unwrap(), checkpointed.logits(&theta, &whole).unwrap());
        }
    }
}

/// L − 1 inputs and one layer in place of L layers.
#[test]
fn what_is_kept_is_an_input_for_each_layer_and_one_layer() {
    let mut s = Family::named("kept").stream(0);
    let whole = batch(&mut s);
    let squares: usize = whole.ranges().map(|r| r.len() * r.len()).sum();
    let kept = |layers: usize, checkpointing: bool| {
        let config = ModelConfig { n_layers: layers, ..ModelConfig::size("tiny").unwrap() };
        let mut model = Explicit::new(config).unwrap();
        if checkpointing {
            model = model.with_gradient_checkpointing();
        }
        let theta = model.layout().initialise(0);
        let noise = Noise { seed: 0, update: 1, smoothing: 0.0 };
        model.gradient(&theta, &whole, noise, &mut vec![0.0; theta.len()]).unwrap();
        model.activation_bytes().unwrap()
    };
    let (d, f, heads) = (128, 512, 4);
    // attention_in, qkv, context, ffn_in, two norms with their deviations; hidden and slope; the weights.
    let layer = 4 * (whole.rows() * (8 * d + 2 + 2 * f) + heads * squares);
    let input = 4 * whole.rows() * d;
    assert_eq!(kept(7, false) - kept(3, false), 4 * layer);
    assert_eq!(kept(7, true) - kept(3, true), 4 * input);
    assert_eq!(kept(1, true), kept(1, false));
    assert_eq!(kept(7, false) - kept(7, true), 6 * (layer - input));
}
