//! What several ranks would do to a run, simulated update by update, beside the estimate on paper: everybody waits for the
//! slowest, a gradient goes through the slowest link twice, checkpoints cost time, and a failure costs what was done since the
//! last one. `docs/scale.md` of the workspace has the assumptions.
#![expect(clippy::print_stdout, reason = "it prints a table")]

use seeded::{Family, Stream};

/// A run on paper. Times in seconds.
#[derive(Clone, Copy)]
struct Run {
    ranks: u32,
    updates: u64,
    /// Forward and backward of a rank's share.
    compute: f64,
    /// Spread of a rank's time from update to update: the logarithm's standard deviation.
    jitter: f64,
    /// Bytes of the gradient, and bytes a second of a rank's link in one direction.
    gradient: f64,
    link: f64,
    /// Between two checkpoints; what one costs; what a restart costs.
    every: f64,
    checkpoint: f64,
    restart: f64,
    /// Mean time between failures of one rank.
    between_failures: f64,
}

impl Run {
    /// Everybody sends a share of its gradient to each other, and the sums come back: 2·(K − 1)/K of its bytes.
    fn sum(&self) -> f64 {
        let k = f64::from(self.ranks);
        2.0 * (k - 1.0) / k * self.gradient / self.link
    }

    /// The mean of the slowest of K normal deviates (Blom 1958).
    fn slowest(&self) -> f64 {
        let k = f64::from(self.ranks);
        if k < 2.0 { 0.0 } else { inverse_normal((k - 0.375) / (k + 0.25)) }
    }

    /// Seconds of the run: between two checkpoints (1/λ + R)(exp(λ(τ + C)) − 1), with λ failures a second (Daly 2006).
    fn estimate(&self) -> f64 {
        let update = self.compute * (self.jitter * self.slowest()).exp() + self.sum();
        let rate = f64::from(self.ranks) / self.between_failures;
        let segment = (1.0 / rate + self.restart) * (rate * (self.every + self.checkpoint)).exp_m1();
        self.updates as f64 * update / self.every * segment
    }

    /// The same, lived through.
    fn simulate(&self, stream: &mut Stream) -> f64 {
        let rate = f64::from(self.ranks) / self.between_failures;
        let wait = |s: &mut Stream| -(1.0 - s.uniform()).ln() / rate;
        let (mut clock, mut done, mut kept, mut since) = (0.0, 0, 0, 0.0);
        let mut next = wait(stream);
        while done < self.updates {
            let slowest = (0..self.ranks).map(|_| stream.normal()).fold(f64::NEG_INFINITY, f64::max);
            let update = self.compute * (self.jitter * slowest).exp() + self.sum();
            (clock, since, done) = (clock + update, since + update, done + 1);
            if since >= self.every {
                (clock, since, kept) = (clock + self.checkpoint, 0.0, done);
            }
            if clock >= next {
                (clock, since, done) = (clock + self.restart, 0.0, kept);
                next = clock + wait(stream);
            }
        }
        clock
    }
}

/// The quantile of the normal distribution, by bisection of the integral of its density.
fn inverse_normal(p: f64) -> f64 {
    let below = |x: f64| {
        let n = 2000;
        let h = x / f64::from(n);
        let density = |t: f64| (-t * t / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let inner: f64 = (0..n).map(|i| density((f64::from(i) + 0.5) * h)).sum();
        0.5 + inner * h
    };
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if below(middle) < p { low = middle } else { high = middle }
    }
    low
}

fn main() {
    // `large`: 86,075,031 parameters, 6 operations for each and a token; a card at 0.4 of 989·10¹² a second (assumed: none
    // was measured), 50,000 hours between its failures, which is what Llama 3's training had (Meta 2024).
    let of = |ranks: u32, tokens: f64, link: f64| Run {
        ranks,
        updates: 20_000,
        compute: 6.0 * 86_075_031.0 * tokens / (0.4 * 989e12),
        jitter: 0.05,
        gradient: 4.0 * 86_075_031.0,
        link,
        every: 120.0,
        checkpoint: 1.4,
        restart: 180.0,
        between_failures: 50_000.0 * 3600.0,
    };
    let many = |run: Run, hours: f64| Run { between_failures: hours * 3600.0, ..run };
    println!(
        "ranks, tokens a rank, link GB/s, failure after hours: seconds on paper, simulated, share of sums"
    );
    for (name, run) in [
        ("8, 10,000, 450, 50,000", of(8, 10_000.0, 450e9)),
        ("64, 10,000, 50, 50,000", of(64, 10_000.0, 50e9)),
        ("64, 100,000, 50, 50,000", of(64, 100_000.0, 50e9)),
        ("64, 100,000, 50, 5", many(of(64, 100_000.0, 50e9), 5.0)),
        ("64, 100,000, 1.25, 50,000", of(64, 100_000.0, 1.25e9)),
    ] {
        let mut stream = Family::named("scale").stream(u64::from(run.ranks));
        let simulated = (0..20).map(|_| run.simulate(&mut stream)).sum::<f64>() / 20.0;
        let (paper, sums) = (run.estimate(), run.sum() * run.updates as f64);
        println!("{name}: {paper:.0}, {simulated:.0}, {:.2}", sums / simulated);
        assert!((simulated / paper - 1.0).abs() < 0.05, "{name}: {simulated} {paper}");
    }
}
