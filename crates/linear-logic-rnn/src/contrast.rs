//! The deciding comparison: a cell with a program beside the same cell with a placebo, over tasks and families.
//!
//! Enter at [`Contrast::new`]. Its rule was written down before the first run that it judges:
//!
//! - **Gate.** On tasks that were made with the program, it must be learned sooner than the placebo (p < .05). If not,
//!   nothing that follows says anything, and the outcome is *undecided*.
//! - **Sooner** is a stratified rank sum of the updates until a run reaches its goal, runs that never do tied last; its p
//!   is exact and two-sided, and corrected for all contrasts (Holm 1979). *Better* and *worse* come from it.
//! - **No difference** is said only if that is not significant and the 90 % interval of the difference in solved runs
//!   (Newcombe 1998, method 10) lies within ±0.15. Otherwise the outcome is *undecided*.

use serde::Serialize;

use crate::statistics::{rank_sums, twice_midrank};

/// The p from which a difference is chance.
const LEVEL: f64 = 0.05;
/// The normal quantile of a two-sided interval of 90 %.
const NINETY: f64 = 1.644_853_626_951_472_7;
/// A difference of solved runs that is none.
const NEGLIGIBLE: f64 = 0.15;
/// Runs of one stratum that the exact test takes: sums of ranks are counted in f64, exactly below 2⁵³.
const MOST_RUNS: usize = 100;

/// What one run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Updates until the goal; `None` if it ended without.
    pub reached_at: Option<u64>,
    /// Whether it is right far beyond its training lengths.
    pub solved: bool,
}

/// The runs of a program and of its placebo, on one task and in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stratum {
    /// The task and the family.
    pub name: String,
    /// With the program.
    pub program: Vec<Trial>,
    /// With the placebo.
    pub placebo: Vec<Trial>,
}

/// A stratified rank-sum test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankSum {
    /// The sum of the ranks of the program's runs less its mean under chance: below 0 where they are sooner.
    pub statistic: f64,
    /// Exact and two-sided.
    pub p: f64,
}

impl RankSum {
    /// The test; `None` without strata, where one side is empty, or where a stratum has more than 100 runs.
    ///
    /// Under chance every choice of the program's runs among those of a stratum is equally likely, and strata are
    /// independent: the distribution of the sum is the convolution of theirs (van Elteren 1960, with equal weights).
    pub fn of(strata: &[Stratum]) -> Option<Self> {
        let (mut found, mut mean) = (0, 0);
        let mut chances = vec![1.0];
        for stratum in strata {
            let order = |trial: &Trial| trial.reached_at.map_or(f64::INFINITY, |at| at as f64);
            let program: Vec<f64> = stratum.program.iter().map(order).collect();
            let all: Vec<f64> = stratum.program.iter().chain(&stratum.placebo).map(order).collect();
            let size = program.len();
            if size == 0 || size == all.len() || all.len() > MOST_RUNS {
                return None;
            }
            let ranks: Vec<usize> = all.iter().map(|v| twice_midrank(&all, *v)).collect();
            found += ranks.iter().take(size).sum::<usize>();
            // The mean of twice the rank sum.
            mean += size * (all.len() + 1);
            let counts = rank_sums(&ranks, size);
            let total: f64 = counts.iter().sum();
            chances = convolved(&chances, &counts, total);
        }
        if strata.is_empty() {
            return None;
        }
        let far = chances.iter().enumerate().filter(|(sum, _)| sum.abs_diff(mean) >= found.abs_diff(mean));
        let p = far.map(|(_, chance)| chance).sum::<f64>().min(1.0);
        Some(Self { statistic: (found as f64 - mean as f64) / 2.0, p })
    }

    /// Whether the program is sooner, and not by chance.
    pub fn is_sooner(&self) -> bool {
        self.statistic < 0.0 && self.p < LEVEL
    }
}

/// The distribution of the sum of two independent sums; the second is given by counts.
fn convolved(chances: &[f64], counts: &[f64], total: f64) -> Vec<f64> {
    let mut sum = vec![0.0; chances.len() + counts.len() - 1];
    for (at, chance) in chances.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
        for (sum, count) in sum.iter_mut().skip(at).zip(counts) {
            *sum += chance * count / total;
        }
    }
    sum
}

/// Successes of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Solved {
    pub solved: usize,
    pub runs: usize,
}

impl Solved {
    fn of<'a>(trials: impl Iterator<Item = &'a Trial>) -> Self {
        trials.fold(Self { solved: 0, runs: 0 }, |sum, trial| Self {
            solved: sum.solved + usize::from(trial.solved),
            runs: sum.runs + 1,
        })
    }

    fn share(self) -> f64 {
        self.solved as f64 / self.runs.max(1) as f64
    }

    /// Wilson's interval of the share.
    fn interval(self, z: f64) -> (f64, f64) {
        let n = self.runs as f64;
        let middle = self.share() + z * z / (2.0 * n);
        let half = z * (self.share() * (1.0 - self.share()) / n + z * z / (4.0 * n * n)).sqrt();
        let whole = 1.0 + z * z / n;
        ((middle - half) / whole, (middle + half) / whole)
    }
}

/// The 90 % interval of the difference of two shares (Newcombe 1998, method 10); `None` without runs.
pub fn newcombe(a: Solved, b: Solved) -> Option<(f64, f64)> {
    if a.runs == 0 || b.runs == 0 {
        return None;
    }
    let ((al, au), (bl, bu)) = (a.interval(NINETY), b.interval(NINETY));
    let (p, q) = (a.share(), b.share());
    let low = ((p - al).powi(2) + (bu - q).powi(2)).sqrt();
    let high = ((au - p).powi(2) + (q - bl).powi(2)).sqrt();
    Some((p - q - low, p - q + high))
}

/// What is said of a hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// The program is learned sooner.
    #[serde(rename = "better")]
    Better,
    /// The placebo is.
    #[serde(rename = "worse")]
    Worse,
    /// Neither, and as many runs are solved.
    #[serde(rename = "no difference")]
    NoDifference,
    /// The runs do not say.
    #[serde(rename = "undecided")]
    Undecided,
}

/// A hypothesis with what its runs showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// Its name.
    pub hypothesis: String,
    /// The test on planted tasks: `None` if it was not made; where none is asked for, the contrast is itself a control.
    pub gate: Option<RankSum>,
    /// The test.
    pub test: Option<RankSum>,
    /// Its p, corrected for all contrasts.
    pub p_holm: Option<f64>,
    /// Solved runs with the program.
    pub program: Solved,
    /// Solved runs with the placebo.
    pub placebo: Solved,
    /// The 90 % interval of the difference of the shares.
    pub interval: Option<(f64, f64)>,
    /// What follows.
    pub outcome: Outcome,
    #[serde(skip)]
    needs_gate: bool,
}

impl Contrast {
    /// The contrast of all strata. `gate` is `None` where it needs none, and the strata of planted tasks where it does:
    /// none, if they were not run.
    pub fn new(hypothesis: impl Into<String>, strata: &[Stratum], gate: Option<&[Stratum]>) -> Self {
        let program = Solved::of(strata.iter().flat_map(|s| &s.program));
        let placebo = Solved::of(strata.iter().flat_map(|s| &s.placebo));
        let test = RankSum::of(strata);
        let mut contrast = Self {
            hypothesis: hypothesis.into(),
            gate: gate.and_then(RankSum::of),
            test,
            p_holm: test.map(|test| test.p),
            program,
            placebo,
            interval: newcombe(program, placebo),
            outcome: Outcome::Undecided,
            needs_gate: gate.is_some(),
        };
        contrast.decide();
        contrast
    }

    /// Takes the p that is corrected for all contrasts that are judged together (Holm 1979), and decides again.
    pub fn correct(&mut self, p_holm: f64) {
        self.p_holm = Some(p_holm);
        self.decide();
    }

    fn decide(&mut self) {
        let sees = !self.needs_gate || self.gate.is_some_and(|gate| gate.is_sooner());
        self.outcome = match (self.test, self.p_holm, self.interval) {
            (Some(test), Some(p), _) if sees && p < LEVEL && test.statistic < 0.0 => Outcome::Better,
            (Some(test), Some(p), _) if sees && p < LEVEL && test.statistic > 0.0 => Outcome::Worse,
            (Some(_), Some(_), Some((low, high))) if sees && low >= -NEGLIGIBLE && high <= NEGLIGIBLE => {
                Outcome::NoDifference
            }
            _ => Outcome::Undecided,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::{Family, Stream};

    fn trials(values: &[u64]) -> Vec<Trial> {
        // 0: never.
        values.iter().map(|v| Trial { reached_at: (*v > 0).then_some(*v), solved: *v > 0 }).collect()
    }

    fn stratum(program: &[u64], placebo: &[u64]) -> Stratum {
        Stratum { name: "t".to_owned(), program: trials(program), placebo: trials(placebo) }
    }

    /// Every choice of the program's runs in every stratum, one by one, with midranks as the definition has them.
    fn enumerated(strata: &[Stratum]) -> f64 {
        let value = |t: &Trial| t.reached_at.map_or(f64::MAX, |at| at as f64);
        let mut sums = vec![0.0];
        let mut found = 0.0;
        for stratum in strata {
            let all: Vec<f64> = stratum.program.iter().chain(&stratum.placebo).map(value).collect();
            let rank = |v: f64| {
                let below = all.iter().filter(|x| **x < v).count() as f64;
                below + (all.iter().filter(|x| **x == v).count() as f64 + 1.0) / 2.0
            };
            let centre = stratum.program.len() as f64 * (all.len() as f64 + 1.0) / 2.0;
            let sum = |chosen: u32| {
                let ranks = all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
                ranks.map(|(_, v)| rank(*v)).sum::<f64>() - centre
            };
            found += sum((1 << stratum.program.len()) - 1);
            let choices =
                (0..1_u32 << all.len()).filter(|c| c.count_ones() as usize == stratum.program.len());
            let each: Vec<f64> = choices.map(sum).collect();
            sums = sums.iter().flat_map(|a| each.iter().map(move |b| a + b)).collect();
        }
        let far = sums.iter().filter(|s: &&f64| s.abs() >= found.abs() - 1e-9).count();
        far as f64 / sums.len() as f64
    }

    #[test]
    fn the_exact_p_is_that_of_all_choices() {
        let mut stream = Family::named("contrast").stream(0);
        for _ in 0..100 {
            let values = 2 + stream.below(9);
            let draw = |s: &mut Stream, n: u64| (0..n).map(|_| s.below(values)).collect::<Vec<u64>>();
            let mut strata = Vec::new();
            for _ in 0..1 + stream.below(3) {
                let (n, m) = (1 + stream.below(3), 1 + stream.below(3));
                strata.push(stratum(&draw(&mut stream, n), &draw(&mut stream, m)));
            }
            let test = RankSum::of(&strata).unwrap();
            assert!((test.p - enumerated(&strata)).abs() < 1e-12, "{strata:?} {test:?}");
        }
    }

    #[test]
    fn known_values() {
        // One stratum is the test of Mann and Whitney.
        let one = stratum(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]);
        let test = RankSum::of(std::slice::from_ref(&one)).unwrap();
        assert_eq!((test.p, test.statistic), (2.0 / 252.0, -12.5));
        // Two strata that say the opposite say nothing together.
        let other = stratum(&[6, 7, 8, 9, 10], &[1, 2, 3, 4, 5]);
        assert_eq!(RankSum::of(&[one, other]).unwrap().statistic, 0.0);
        // Runs that never reached the goal are tied, behind the last that did.
        assert_eq!(RankSum::of(&[stratum(&[0, 0], &[0, 0])]).unwrap().p, 1.0);
        assert!(RankSum::of(&[stratum(&[9000], &[0])]).unwrap().statistic < 0.0);
        assert!(RankSum::of(&[]).is_none() && RankSum::of(&[stratum(&[], &[1])]).is_none());
        // Newcombe's own example (1998, table II, column a): 56 of 70 and 48 of 80, at 95 % 0.0524 to 0.3339.
        let (a, b) = (Solved { solved: 56, runs: 70 }, Solved { solved: 48, runs: 80 });
        let ((al, au), (bl, bu)) = (a.interval(1.959_964), b.interval(1.959_964));
        let low = 0.2 - ((0.8 - al).powi(2) + (bu - 0.6).powi(2)).sqrt();
        let high = 0.2 + ((au - 0.8).powi(2) + (0.6 - bl).powi(2)).sqrt();
        assert!((low - 0.0524).abs() < 5e-5 && (high - 0.3339).abs() < 5e-5, "{low} {high}");
        let (low, high) = newcombe(a, b).unwrap();
        assert!(low > 0.0524 && high < 0.3339, "90 % is narrower");
        assert!(newcombe(a, Solved { solved: 0, runs: 0 }).is_none());
    }

    #[test]
    fn every_outcome_on_made_up_runs() {
        let (soon, late): (Vec<u64>, Vec<u64>) = ((1..=20).collect(), (21..=40).collect());
        let mixed: (Vec<u64>, Vec<u64>) = (1..=40).partition(|v| v % 2 == 0);
        let sees = [stratum(&soon, &late)];
        let outcome = |program: &[u64], placebo: &[u64], gate: Option<&[Stratum]>| {
            Contrast::new("H", &[stratum(program, placebo)], gate).outcome
        };
        assert_eq!(outcome(&soon, &late, Some(&sees)), Outcome::Better);
        assert_eq!(outcome(&late, &soon, Some(&sees)), Outcome::Worse);
        assert_eq!(outcome(&mixed.0, &mixed.1, Some(&sees)), Outcome::NoDifference);
        // Half of either solved: as many, but the interval is too wide to say so.
        let half: Vec<u64> = (1..=20).map(|v| if v % 2 == 0 { v } else { 0 }).collect();
        assert_eq!(outcome(&half, &half, Some(&sees)), Outcome::Undecided);
        // An instrument that is blind decides nothing, nor one that was not tried, nor one that sees the opposite.
        let blind = [stratum(&mixed.0, &mixed.1)];
        let opposite = [stratum(&late, &soon)];
        for gate in [&blind[..], &[], &opposite] {
            assert_eq!(outcome(&soon, &late, Some(gate)), Outcome::Undecided);
        }
        assert_eq!(outcome(&soon, &late, None), Outcome::Better);
    }

    #[test]
    fn a_corrected_p_decides() {
        let strata = [stratum(&[1, 2, 3, 4, 7], &[5, 6, 8, 9, 10])];
        let mut contrast = Contrast::new("H", &strata, None);
        let p = contrast.test.unwrap().p;
        assert!(contrast.outcome == Outcome::Better && p < 0.05 && 2.0 * p > 0.05, "{p}");
        contrast.correct(2.0 * p);
        assert_eq!((contrast.p_holm, contrast.outcome), (Some(2.0 * p), Outcome::Undecided));
    }
}
