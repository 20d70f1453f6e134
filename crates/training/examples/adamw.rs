//! One flat buffer of named parameters, drawn by name, moved by AdamW with decay groups.
use training::optimiser::{AdamW, Moments, Update};
use training::{Decay, Initial, Layout};

fn main() {
    let mut layout = Layout::default();
    layout.add("weight", &[3, 4], Decay::Yes, Initial::XavierUniform { fan_in: 4, fan_out: 3 });
    layout.add("bias", &[3], Decay::No, Initial::Constant(0.0));
    let mut theta = layout.initialise(0);
    let adamw = AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.01, ema: 0.0 };
    let (mut moments, mut gradient) = (Moments::new(&theta, adamw.ema), vec![1.0; layout.len()]);
    let update = Update { number: 1, lr: 1e-3, factor: 1.0 };
    adamw.update(&layout, &mut theta, &mut moments, &mut gradient, update);
    assert!((theta[12] + 1e-3).abs() < 1e-9); // the first step is the rate, against the gradient
}
