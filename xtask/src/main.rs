//! Wiring.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
use symbolic_transformer::{
    batch::Batch,
    config::ModelConfig,
    explicit::Explicit,
    network::{Network, Noise},
};
use training::optimiser::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (size, b, t, threads) =
        (&a[1], a[2].parse::<usize>().unwrap(), a[3].parse::<usize>().unwrap(), a[4].parse().unwrap());
    training::threads::set(threads).unwrap();
    let config = ModelConfig::size(size).unwrap();
    let mut m = Explicit::new(config).unwrap();
    let mut s = seeded::Family::named("bench").stream(0);
    let seqs: Vec<Vec<u16>> = (0..b).map(|_| (0..t + 1).map(|_| s.below(663) as u16).collect()).collect();
    let batch = Batch::new(seqs.iter().map(Vec::as_slice));
    let layout = m.layout().clone();
    let mut theta = layout.initialise(0);
    let adamw = AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.01, ema: 0.0 };
    let mut moments = Moments::new(&theta, 0.0);
    let mut g = vec![0.0; theta.len()];
    let mut times = vec![];
    for u in 1..=(if b * t * theta.len() > 4_000_000_000 { 8 } else { 30 }) {
        let c = std::time::Instant::now();
        let noise = Noise { seed: 0, update: u, smoothing: 0.0 };
        let l = m.gradient(&theta, &batch, noise, &mut g).unwrap();
        let c2 = c.elapsed().as_secs_f64();
        let norm = global_norm(&layout, &g) / l.targets as f64;
        adamw.update(
            &layout,
            &mut theta,
            &mut moments,
            &mut g,
            u,
            1e-4,
            clip_factor(norm, 1.0) / l.targets as f64,
        );
        times.push((c.elapsed().as_secs_f64(), c2));
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (md, g) = times[times.len() / 2];
    println!(
        "{size} {b}x{t} threads {threads}: {:.1} ms (gradient {:.1}) min {:.1}",
        md * 1e3,
        g * 1e3,
        times[0].0 * 1e3
    );
}
