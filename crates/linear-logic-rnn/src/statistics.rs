//! The comparison of samples over seeds: medians, the exact Mann-Whitney test, rows, the verdict (section 12).
//!
//! Enter at [`Report::new`]. Every sample holds one value for each seed, larger is better; a run that diverged counts
//! with what it measured, or with the worst value there is.

use serde::Serialize;

/// Seeds below which there is no verdict.
pub const FEWEST_SEEDS: usize = 5;
/// The least difference of medians that counts.
const LEAST_DIFFERENCE: f64 = 0.01;
/// The differences of decimal numbers are not exact; 0.57 − 0.56 counts as 0.01.
const ROUNDING: f64 = 1e-12;
/// The p from which a difference is chance.
const LEVEL: f64 = 0.05;
/// Values of both samples together that the exact test takes.
const MOST_VALUES: usize = 100;

/// The middle value, or the mean of the two middle ones. `None` of no values or if one is not a number.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.iter().any(|v| v.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = if sorted.len().is_multiple_of(2) { *sorted.get(sorted.len() / 2 - 1)? } else { upper };
    Some(if lower == upper { upper } else { f64::midpoint(lower, upper) })
}

/// The two-sided exact p of the Mann-Whitney test (Mann & Whitney 1947), ties with midranks.
///
/// If both samples come from one distribution, every choice of |a| of the values is as likely to be the first sample.
/// p is the share of choices whose rank sum is at least as far from its mean as that of `a`. `None` if a sample is
/// empty, holds a value that is not a number, or if both together have more than 100 values.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    let all = [a, b].concat();
    if a.is_empty() || b.is_empty() || all.len() > MOST_VALUES || all.iter().any(|v| v.is_nan()) {
        return None;
    }
    let ranks: Vec<usize> = all.iter().map(|v| twice_midrank(&all, *v)).collect();
    let found: usize = ranks.iter().take(a.len()).sum();
    // The mean of twice the rank sum is |a|·(N + 1).
    let mean = a.len() * (all.len() + 1);
    let counts = rank_sums(&ranks, a.len());
    let total: f64 = counts.iter().sum();
    let far = counts.iter().enumerate().filter(|(sum, _)| sum.abs_diff(mean) >= found.abs_diff(mean));
    Some(far.map(|(_, count)| count).sum::<f64>() / total)
}

/// Twice the mean of the ranks, from 1, that the values equal to `value` share: an integer.
pub(crate) fn twice_midrank(all: &[f64], value: f64) -> usize {
    let below = all.iter().filter(|v| **v < value).count();
    let equal = all.iter().filter(|v| **v == value).count();
    2 * below + equal + 1
}

/// The number of choices of `size` ranks for every sum. The numbers are integers in f64: exact below 2⁵³.
pub(crate) fn rank_sums(ranks: &[usize], size: usize) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    // ways[k][s]: choices of k of the ranks seen so far with the sum s.
    let mut ways = vec![vec![0.0; most + 1]; size + 1];
    if let Some(none) = ways.first_mut().and_then(|sums| sums.first_mut()) {
        *none = 1.0;
    }
    for &rank in ranks {
        for k in (1..=size).rev() {
            let (fewer, more) = ways.split_at_mut(k);
            let (Some(from), Some(to)) = (fewer.last(), more.first_mut()) else { continue };
            for (to, from) in to.iter_mut().skip(rank).zip(from) {
                *to += from;
            }
        }
    }
    ways.pop().unwrap_or_default()
}

/// A candidate beside a baseline on one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Better,
    Worse,
    Equal,
}

/// The answer to the question of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Better on at least half of the tasks and worse on none.
    #[serde(rename = "supported")]
    Supported,
    /// Worse on at least half.
    #[serde(rename = "refuted")]
    Refuted,
    /// Neither.
    #[serde(rename = "undecided")]
    Undecided,
    /// Fewer than five seeds somewhere, or no task.
    #[serde(rename = "no verdict")]
    None,
}

/// What a cell reached, one value for each seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The cell.
    pub name: String,
    /// Larger is better.
    pub values: Vec<f64>,
}

/// The two medians of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Medians {
    pub candidate: Option<f64>,
    pub baseline: Option<f64>,
}

/// The comparison on one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The task.
    pub task: String,
    /// The cell that is judged.
    pub candidate: String,
    /// The strongest of the others.
    pub baseline: String,
    /// What they reached.
    pub medians: Medians,
    /// Of the two-sided exact Mann-Whitney test.
    pub p: Option<f64>,
    /// What follows.
    pub result: Comparison,
    /// Seeds of the sample that has fewer.
    #[serde(skip)]
    pub seeds: usize,
}

/// `verdict.json`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What is asked.
    pub question: String,
    /// One for each task.
    pub rows: Vec<Row>,
    /// The answer.
    pub verdict: Verdict,
}

/// The sample with the highest median; of equal ones the first, and one without a median only if there is no other.
pub fn strongest(baselines: &[Sample]) -> Option<&Sample> {
    let reached = |sample: &Sample| median(&sample.values).unwrap_or(f64::NEG_INFINITY);
    // `max_by` keeps the last of equal ones.
    baselines.iter().rev().max_by(|a, b| reached(a).total_cmp(&reached(b)))
}

impl Row {
    /// Compares a candidate with one baseline.
    pub fn new(task: impl Into<String>, candidate: &Sample, baseline: &Sample) -> Self {
        let medians = Medians { candidate: median(&candidate.values), baseline: median(&baseline.values) };
        let p = mann_whitney(&candidate.values, &baseline.values);
        let result = match (medians.candidate, medians.baseline, p) {
            (Some(c), Some(b), Some(p)) if p < LEVEL && c - b >= LEAST_DIFFERENCE - ROUNDING => {
                Comparison::Better
            }
            (Some(c), Some(b), Some(p)) if p < LEVEL && b - c >= LEAST_DIFFERENCE - ROUNDING => {
                Comparison::Worse
            }
            _ => Comparison::Equal,
        };
        Self {
            task: task.into(),
            candidate: candidate.name.clone(),
            baseline: baseline.name.clone(),
            medians,
            p,
            result,
            seeds: candidate.values.len().min(baseline.values.len()),
        }
    }
}

impl Report {
    /// The verdict over the rows of a sweep.
    pub fn new(question: impl Into<String>, rows: Vec<Row>) -> Self {
        let verdict = verdict(&rows);
        Self { question: question.into(), rows, verdict }
    }
}

fn verdict(rows: &[Row]) -> Verdict {
    let count = |result| rows.iter().filter(|row| row.result == result).count();
    let (better, worse) = (count(Comparison::Better), count(Comparison::Worse));
    let at_least_half = |n: usize| 2 * n >= rows.len();
    if rows.is_empty() || rows.iter().any(|row| row.seeds < FEWEST_SEEDS) {
        Verdict::None
    } else if at_least_half(better) && worse == 0 {
        Verdict::Supported
    } else if at_least_half(worse) {
        Verdict::Refuted
    } else {
        Verdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::Family;

    /// All choices of |a| of the values, one by one.
    fn enumerated(a: &[f64], b: &[f64]) -> f64 {
        let all = [a, b].concat();
        let rank = |v: f64| {
            let ties = all.iter().filter(|x| **x == v).count() as f64;
            all.iter().filter(|x| **x < v).count() as f64 + (ties + 1.0) / 2.0
        };
        let mean = a.len() as f64 * (all.len() as f64 + 1.0) / 2.0;
        let distance = |chosen: u32| {
            let ranks = all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, v)| rank(*v));
            (ranks.sum::<f64>() - mean).abs()
        };
        let found = distance((1 << a.len()) - 1);
        let choices = (0..1_u32 << all.len()).filter(|c| c.count_ones() as usize == a.len());
        let (mut far, mut total) = (0.0, 0.0);
        for chosen in choices {
            total += 1.0;
            far += f64::from(u8::from(distance(chosen) >= found - 1e-9));
        }
        far / total
    }

    #[test]
    fn the_exact_p_is_that_of_all_choices() {
        let mut s = Family::named("mann-whitney").stream(0);
        for round in 0..200 {
            // Five against five first; then other sizes. Few different values make ties.
            let (n, m) =
                if round < 100 { (5, 5) } else { (1 + s.below(6) as usize, 1 + s.below(6) as usize) };
            let values = 2 + s.below(30);
            let mut draw = |n| (0..n).map(|_| s.below(values) as f64 / 7.0).collect::<Vec<_>>();
            let (a, b) = (draw(n), draw(m));
            let p = mann_whitney(&a, &b).unwrap();
            assert!((p - enumerated(&a, &b)).abs() < 1e-12, "{a:?} {b:?}: {p}");
            assert!((p - mann_whitney(&b, &a).unwrap()).abs() < 1e-12);
        }
    }

    #[test]
    fn known_values() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        assert_eq!(mann_whitney(&low, &high), Some(2.0 / 252.0));
        assert_eq!(mann_whitney(&low, &low), Some(1.0));
        assert_eq!(mann_whitney(&low[..4], &high[..4]), Some(2.0 / 70.0));
        assert_eq!((mann_whitney(&[], &low), mann_whitney(&[f64::NAN], &low)), (None, None));
        assert_eq!(mann_whitney(&[0.0; 60], &[0.0; 60]), None);
        assert_eq!(mann_whitney(&[0.0; 50], &[0.0; 50]), Some(1.0));
        assert_eq!(
            (median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])),
            (Some(2.0), Some(2.5), None)
        );
        assert_eq!(median(&[f64::INFINITY; 2]), Some(f64::INFINITY));
    }

    fn sample(name: &str, from: f64, seeds: usize) -> Sample {
        Sample { name: name.to_owned(), values: (0..seeds).map(|i| from + 0.001 * i as f64).collect() }
    }

    /// A row for each candidate's level, against a baseline at 0.5.
    fn table(candidates: &[f64], seeds: usize) -> Report {
        let weak = sample("elman", 0.1, seeds);
        let baselines = [weak, sample("lstm", 0.5, seeds), sample("gru", 0.5, seeds)];
        let row =
            |c: &f64| Row::new(format!("at {c}"), &sample("ll", *c, seeds), strongest(&baselines).unwrap());
        Report::new("does it help?", candidates.iter().map(row).collect())
    }

    #[test]
    fn all_outcomes_on_made_up_tables() {
        assert_eq!(table(&[0.9, 0.8, 0.5, 0.5], 5).verdict, Verdict::Supported);
        assert_eq!(table(&[0.9, 0.5, 0.5], 5).verdict, Verdict::Undecided);
        assert_eq!(table(&[0.9, 0.9, 0.9, 0.2], 5).verdict, Verdict::Undecided);
        assert_eq!(table(&[0.9, 0.2], 5).verdict, Verdict::Refuted);
        assert_eq!(table(&[0.2, 0.3, 0.5, 0.5], 5).verdict, Verdict::Refuted);
        assert_eq!(table(&[0.5], 5).verdict, Verdict::Undecided);
        assert_eq!((table(&[0.9], 4).verdict, table(&[], 5).verdict), (Verdict::None, Verdict::None));
        // A difference that is sure but small, and one that is large but not sure.
        assert_eq!(table(&[0.509], 5).rows[0].result, Comparison::Equal);
        assert_eq!(table(&[0.51], 5).rows[0].result, Comparison::Better);
        assert_eq!(table(&[0.9], 3).rows[0].result, Comparison::Equal);
    }

    #[test]
    fn the_file() {
        let report = table(&[0.9], 5);
        let wanted = serde_json::json!({
            "question": "does it help?",
            "rows": [{
                "task": "at 0.9", "candidate": "ll", "baseline": "lstm",
                "medians": {"candidate": 0.902, "baseline": 0.502}, "p": 2.0 / 252.0, "result": "better",
            }],
            "verdict": "supported",
        });
        assert_eq!(serde_json::to_value(&report).unwrap(), wanted);
        assert_eq!(serde_json::to_value(table(&[], 5)).unwrap()["verdict"], "no verdict");
    }
}
