//! What the runs of a sweep decided of its claims: differences seed by seed, tests corrected for their number, and what the
//! choice of formulas adds.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use super::measures::in_words;
use super::scores;
use crate::draw::html::{Table, number, text};
use crate::draw::numbers::{MISSING, count, fixed, p_value, plus_minus};
use crate::draw::plot::{Mark, Plot, Point as Dot};
use crate::draw::{Axis, Scale};
use crate::learner::Learner;
use crate::record;
use crate::sweep::claim::{Arm, Claim, Resolved, Rule, first_at, mean_over_log};
use crate::sweep::statistics::{Sample, bootstrap, holm, mean};

/// What a point showed: the numbers of its runs and their folders, seed by seed in one order.
pub(super) struct Showing {
    pub(super) numbers: Vec<Map<String, Value>>,
    pub(super) folders: Vec<PathBuf>,
}

/// What is said of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Holds,
    Fails,
    Undecided,
    /// Runs without the number.
    NotMeasured,
}

impl Word {
    fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
            Self::NotMeasured => "not measured",
        }
    }
}

/// One comparison.
pub(super) struct Verdict<'a> {
    claim: &'a Claim,
    left: Side<'a>,
    right: Side<'a>,
    /// Left minus right, seed by seed.
    difference: Option<Sample>,
    /// What of the measure is still equivalent.
    margin: Option<f64>,
    p: Option<f64>,
    /// p corrected for all comparisons of the sweep.
    holm: Option<f64>,
    /// Left minus right in bits per formula, the mean over seeds, resampled by formula.
    formulas: Option<[f64; 2]>,
    word: Word,
}

struct Side<'a> {
    name: &'a str,
    /// For each seed the measure at each place along the key.
    curves: Vec<Vec<(f64, f64)>>,
    /// For each seed the number that is compared.
    values: Vec<f64>,
}

impl<'a> Side<'a> {
    fn of(claim: &Claim, arm: &'a Arm, points: &[Showing]) -> Option<Self> {
        let seeds = arm.points.iter().filter_map(|p| points.get(p.0)).map(|p| p.numbers.len()).min()?;
        let at = |seed: usize, &(point, place): &(usize, f64)| {
            Some((place, points.get(point)?.numbers.get(seed)?.get(&claim.measure)?.as_f64()?))
        };
        let curve = |seed: usize| arm.points.iter().map(|point| at(seed, point)).collect::<Option<Vec<_>>>();
        let curves: Vec<Vec<(f64, f64)>> = (0..seeds).map(curve).collect::<Option<_>>()?;
        let value = |curve: &Vec<(f64, f64)>| match claim.along {
            Some(_) => mean_over_log(curve),
            None => curve.first().map(|p| p.1),
        };
        let values = curves.iter().map(value).collect::<Option<_>>()?;
        Some(Self { name: &arm.name, curves, values })
    }

    /// An arm without its numbers.
    fn unknown(arm: &'a Arm) -> Self {
        Self { name: &arm.name, curves: Vec::new(), values: Vec::new() }
    }

    fn shown(&self) -> String {
        let mean = mean(&self.values);
        plus_minus(mean.map(|m| m.value), mean.and_then(|m| m.half), 4)
    }

    /// Where each seed first reaches a level.
    fn reached(&self, level: f64) -> Vec<Option<f64>> {
        self.curves.iter().map(|curve| first_at(curve, level)).collect()
    }

    /// The geometric mean of where the seeds reach a level, and how many do.
    fn reaches(&self, level: f64) -> (Option<f64>, usize) {
        let logs: Vec<f64> = self.reached(level).into_iter().flatten().map(f64::ln).collect();
        (mean(&logs).filter(|_| logs.len() == self.curves.len()).map(|m| m.value.exp()), logs.len())
    }

    fn json(&self, claim: &Claim) -> Value {
        let mean = mean(&self.values);
        let mut side = json!({
            "name": self.name, "values": self.values, "mean": mean.map(|m| m.value),
            "half_width": mean.and_then(|m| m.half),
        });
        if let Some(level) = claim.reaches {
            side["reaches"] =
                json!({"level": level, "at": self.reached(level), "mean": self.reaches(level).0});
        }
        side
    }
}

/// All comparisons of the claims.
pub(super) fn of<'a, L: Learner>(claims: &'a [Resolved], points: &[Showing]) -> Result<Vec<Verdict<'a>>> {
    let mut verdicts = Vec::new();
    let family = fol::sample::family("bootstrap", 0);
    for (resolved, pair) in claims.iter().flat_map(|r| r.pairs.iter().map(move |pair| (r, pair))) {
        let claim = &resolved.claim;
        let sides = [&pair.left, &pair.right].map(|arm| Side::of(claim, arm, points));
        let [Some(left), Some(right)] = sides else {
            let [left, right] = [&pair.left, &pair.right].map(Side::unknown);
            let (difference, margin, p, holm, formulas) = (None, None, None, None, None);
            let word = Word::NotMeasured;
            verdicts.push(Verdict { claim, left, right, difference, margin, p, holm, formulas, word });
            continue;
        };
        let differences: Vec<f64> = left.values.iter().zip(&right.values).map(|(l, r)| l - r).collect();
        let difference = Sample::of(&differences);
        let margin = margin::<L>(claim, &pair.right, points);
        let p = difference.and_then(|d| match claim.rule {
            Rule::Equivalent => d.p_within(margin?),
            Rule::Less | Rule::Greater => d.p_differs(),
        });
        let of_texts = ["excess", "nats_per_token", "bits_per_formula", "excess_bits"];
        let costs = of_texts.contains(&claim.measure.as_str()) || claim.measure.starts_with("transfer/");
        let formulas = match claim.along {
            None if costs => {
                let apart = by_formula(claim, [&pair.left, &pair.right], points)?;
                apart.and_then(|apart| bootstrap(&apart, &mut family.stream(verdicts.len() as u64)))
            }
            // What is no cost of a text is not a mean over texts.
            None | Some(_) => None,
        };
        let word = Word::Undecided;
        verdicts.push(Verdict { claim, left, right, difference, margin, p, holm: None, formulas, word });
    }
    let tested: Vec<usize> =
        (0..verdicts.len()).filter(|&i| verdicts.get(i).is_some_and(|v| v.p.is_some())).collect();
    let p: Vec<f64> = tested.iter().filter_map(|&i| verdicts.get(i)?.p).collect();
    for (i, holm) in tested.into_iter().zip(holm(&p)) {
        if let Some(verdict) = verdicts.get_mut(i) {
            verdict.holm = Some(holm);
            verdict.word = verdict.decided();
        }
    }
    Ok(verdicts)
}

/// What is still equivalent, in units of the measure.
fn margin<L: Learner>(claim: &Claim, arm: &Arm, points: &[Showing]) -> Option<f64> {
    if claim.within.is_some() {
        return claim.within;
    }
    let column = L::optimum_of(&claim.measure)?;
    let runs = &points.get(arm.points.first()?.0)?.numbers;
    Some(claim.margin? * runs.first()?.get(column)?.as_f64()?)
}

/// Left minus right in bits of each formula, the mean over seeds. None where the runs did not judge the same formulas.
fn by_formula(claim: &Claim, sides: [&Arm; 2], points: &[Showing]) -> Result<Option<Vec<f64>>> {
    let (place, suite) = match claim.measure.strip_prefix("transfer/") {
        Some(name) => (format!("/transfer/{name}"), scores::transfer(name)),
        None => ("/iid".to_owned(), "iid".to_owned()),
    };
    let mut sums: Vec<f64> = Vec::new();
    let mut judged_on: Option<Value> = None;
    for (sign, side) in [1.0, -1.0].into_iter().zip(sides) {
        let Some(showing) = side.points.first().and_then(|p| points.get(p.0)) else { return Ok(None) };
        for folder in &showing.folders {
            let evaluation = record::document(&folder.join("eval.json"))?;
            let judged = evaluation.pointer(&place);
            let Some(digest) = judged.and_then(|j| j.get("scores")).and_then(Value::as_str) else {
                return Ok(None);
            };
            let data = judged.and_then(|j| j.get("data_digest")).or_else(|| evaluation.get("data_digest"));
            if judged_on.is_some() && judged_on.as_ref() != data {
                return Ok(None);
            }
            judged_on = data.cloned();
            let scores = scores::read(&folder.join(scores::file("eval.json", &suite)), digest)?;
            sums.resize(sums.len().max(scores.len()), 0.0);
            if sums.len() != scores.len() {
                bail!("{}: the runs of one data set judged different numbers of formulas", folder.display());
            }
            let weight = sign / (showing.folders.len() as f64 * std::f64::consts::LN_2);
            sums.iter_mut().zip(&scores).for_each(|(sum, score)| *sum += weight * score.nats);
        }
    }
    Ok(Some(sums))
}

impl Verdict<'_> {
    /// By the corrected p at 5 %; what is not decided for the claim may be decided against it.
    fn decided(&self) -> Word {
        let (Some(difference), Some(holm)) = (self.difference, self.holm) else { return Word::NotMeasured };
        let certain = holm <= 0.05;
        match self.claim.rule {
            Rule::Less if certain => {
                if difference.mean < 0.0 {
                    Word::Holds
                } else {
                    Word::Fails
                }
            }
            Rule::Greater if certain => {
                if difference.mean > 0.0 {
                    Word::Holds
                } else {
                    Word::Fails
                }
            }
            Rule::Equivalent if certain => Word::Holds,
            // The whole 90 % interval lies outside.
            Rule::Equivalent => match (difference.half(0.95), self.margin) {
                (Some(half), Some(margin)) if difference.mean.abs() - half > margin => Word::Fails,
                _ => Word::Undecided,
            },
            Rule::Less | Rule::Greater => Word::Undecided,
        }
    }

    fn rule(&self) -> String {
        match (self.claim.rule, self.margin) {
            (Rule::Less, _) => "left below right".to_owned(),
            (Rule::Greater, _) => "left above right".to_owned(),
            (Rule::Equivalent, margin) => format!("within ± {}", fixed(margin, 4)),
        }
    }

    fn what(&self) -> String {
        match &self.claim.along {
            Some(key) => format!("{}, mean over ln {key}", self.claim.measure),
            None => self.claim.measure.clone(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "claim": self.claim.name, "says": self.claim.says, "measure": self.claim.measure, "along": self.claim.along,
            "rule": self.claim.rule, "margin": self.margin, "left": self.left.json(self.claim),
            "right": self.right.json(self.claim), "difference": self.difference.map(|d| d.mean),
            "half_width_95": self.difference.and_then(|d| d.half(0.975)),
            "half_width_90": self.difference.and_then(|d| d.half(0.95)), "p": self.p, "p_holm": self.holm,
            "bits_per_formula_bootstrap_95": self.formulas, "verdict": self.word.name(),
        })
    }
}

/// For programs.
pub(super) fn document(verdicts: &[Verdict<'_>]) -> Value {
    verdicts.iter().map(Verdict::json).collect()
}

/// For people.
pub(super) fn tables(verdicts: &[Verdict<'_>]) -> Vec<(String, Table, Vec<String>)> {
    let mut table = Table::new([
        "claim",
        "left",
        "#left",
        "right",
        "#right",
        "measure",
        "#left − right",
        "rule",
        "#p",
        "#p (Holm)",
        "#bits per formula, by formulas",
        "verdict",
    ]);
    for v in verdicts {
        let difference =
            plus_minus(v.difference.map(|d| d.mean), v.difference.and_then(|d| d.half(0.975)), 4);
        let interval = v.formulas.map_or(MISSING.to_owned(), |[low, high]| {
            format!("{} to {}", fixed(Some(low), 3), fixed(Some(high), 3))
        });
        table.row(vec![
            text(v.claim.name.clone()),
            text(v.left.name),
            number(v.left.shown()),
            text(v.right.name),
            number(v.right.shown()),
            text(v.what()),
            number(difference),
            text(v.rule()),
            number(p_value(v.p)),
            number(p_value(v.holm)),
            number(interval),
            text(v.word.name()),
        ]);
    }
    let mut notes: Vec<String> = Vec::new();
    for v in verdicts {
        let note = format!("{}: {}.", v.claim.name, v.claim.says);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes.push(
        "Differences seed by seed, ± half the 95 % interval (t distribution); p of two sides, of \"within\" the larger of \
         two one-sided tests; corrected for all rows of the table (Holm), and the verdict is at 5 % of that. The last \
         interval resamples the formulas 10,000 times (95 %)."
            .to_owned(),
    );
    let mut tables = vec![("Claims".to_owned(), table, notes)];
    tables.extend(crossings(verdicts));
    tables
}

/// Where arms reach a level along their key.
fn crossings(verdicts: &[Verdict<'_>]) -> Option<(String, Table, Vec<String>)> {
    let mut table =
        Table::new(["claim", "arm", "measure", "#level", "along", "#reached at", "#seeds that reach it"]);
    for v in verdicts {
        let (Some(level), Some(key)) = (v.claim.reaches, &v.claim.along) else { continue };
        for side in [&v.left, &v.right] {
            let (at, reached) = side.reaches(level);
            table.row(vec![
                text(v.claim.name.clone()),
                text(side.name),
                text(v.claim.measure.clone()),
                number(fixed(Some(level), 3)),
                text(key.clone()),
                number(count(at.map(|at| at.round() as u64))),
                number(format!("{reached} of {}", side.curves.len())),
            ]);
        }
    }
    let note = "Between two sizes linear in the logarithm of the size; the geometric mean over seeds, if all reach it.";
    (!table.is_empty()).then(|| ("Where a level is reached".to_owned(), table, vec![note.to_owned()]))
}

/// A picture for each claim along a key.
pub(super) fn plots(verdicts: &[Verdict<'_>]) -> Vec<(String, Plot)> {
    let mut plots = Vec::new();
    for v in verdicts {
        let Some(key) = &v.claim.along else { continue };
        let mut plot = Plot::new(
            &v.claim.name,
            Axis::new(if key == "train_limit" { "formulas of training" } else { key }, Scale::Log),
            Axis::new(&in_words(&v.claim.measure), Scale::FromZero),
        )
        .noted(format!("{}; mean and 95 % interval over seeds", v.claim.says))
        .level("level", v.claim.reaches);
        for side in [&v.left, &v.right] {
            let places = side.curves.first().map(Vec::as_slice).unwrap_or_default();
            let dot = |(i, &(x, _)): (usize, &(f64, f64))| {
                let values: Vec<f64> = side.curves.iter().filter_map(|curve| Some(curve.get(i)?.1)).collect();
                mean(&values).map(|m| Dot { x, y: m.value, half: m.half })
            };
            plot = plot.with(side.name, Mark::Dots, places.iter().enumerate().filter_map(dot).collect());
        }
        plots.push((format!("claim-{}", v.claim.name), plot));
    }
    plots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::claim::Pair;
    use crate::transformer::config::Config;

    fn claim(rest: &str) -> Claim {
        toml::from_str(&format!("name = \"C\"\nsays = \"so\"\nleft = {{}}\n{rest}")).unwrap()
    }

    /// Points of five seeds with these values of a measure around a centre.
    fn showing(measure: &str, centre: f64, spread: f64) -> Showing {
        let number = |seed: i32| {
            let value = centre + spread * f64::from(seed - 2);
            Map::from_iter([(measure.to_owned(), json!(value)), ("optimum_bits".to_owned(), json!(20.0))])
        };
        Showing { numbers: (0..5).map(number).collect(), folders: Vec::new() }
    }

    fn resolved(claim: Claim, rights: &[usize]) -> Resolved {
        let arm = |i: usize| Arm { name: format!("point {i}"), points: vec![(i, 0.0)] };
        let pair = |&right: &usize| Pair { left: arm(0), right: arm(right) };
        Resolved { claim, pairs: rights.iter().map(pair).collect() }
    }

    fn words(claims: &[Resolved], points: &[Showing]) -> Vec<&'static str> {
        of::<Config>(claims, points).unwrap().iter().map(|v| v.word.name()).collect()
    }

    #[test]
    fn words_follow_the_rules() {
        let less = || claim("measure = \"excess\"\nrule = \"less\"");
        // Seeds that move together have a difference without noise; those that move against each other have twice theirs.
        let points =
            [showing("excess", 1.0, 0.1), showing("excess", 2.0, 0.1), showing("excess", 1.01, -0.1)];
        assert_eq!(words(&[resolved(less(), &[1, 2])], &points), ["holds", "undecided"]);
        let points = [showing("excess", 3.0, 0.1), showing("excess", 2.0, -0.1)];
        assert_eq!(words(&[resolved(less(), &[1])], &points), ["fails"]);
        let greater = claim("measure = \"excess\"\nrule = \"greater\"");
        assert_eq!(words(&[resolved(greater, &[1])], &points), ["holds"]);
        // A number that some run lacks.
        let points = [showing("excess", 3.0, 0.1), showing("kl", 2.0, -0.1)];
        assert_eq!(words(&[resolved(less(), &[1])], &points), ["not measured"]);
    }

    #[test]
    fn equivalence_is_a_share_of_the_optimum() {
        let same = || claim("measure = \"bits_per_formula\"\nrule = \"equivalent\"\nmargin = 0.02");
        // The margin is 0.4 bits.
        let at = |centre: f64, spread: f64| {
            [showing("bits_per_formula", 21.0, spread), showing("bits_per_formula", centre, -spread)]
        };
        assert_eq!(words(&[resolved(same(), &[1])], &at(21.1, 0.01)), ["holds"]);
        assert_eq!(words(&[resolved(same(), &[1])], &at(21.3, 0.2)), ["undecided"]);
        assert_eq!(words(&[resolved(same(), &[1])], &at(22.0, 0.01)), ["fails"]);
        let within = || claim("measure = \"bits_per_formula\"\nrule = \"equivalent\"\nwithin = 2.0");
        assert_eq!(words(&[resolved(within(), &[1])], &at(22.0, 0.01)), ["holds"]);
    }

    /// Many comparisons: each alone would be certain.
    #[test]
    fn chance_is_shared_out() {
        let less = claim("measure = \"excess\"\nrule = \"less\"");
        // t = 1/(0.2·√2.5/√5) = 7.07 with 4 degrees: p = .0021.
        let points = [showing("excess", 1.0, 0.1), showing("excess", 2.0, -0.4)];
        let one =
            of::<Config>(&[resolved(less.clone(), &[1])], &points).map(|v| (v[0].p, v[0].holm)).unwrap();
        let many = resolved(less, &[1, 1, 1, 1]);
        let many = [many];
        let many = of::<Config>(&many, &points).unwrap();
        assert_eq!(one.0, one.1);
        assert!((many[0].holm.unwrap() - 4.0 * one.0.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn areas_and_crossings_along_a_key() {
        let falls = claim("measure = \"excess\"\nrule = \"less\"\nalong = \"train_limit\"\nreaches = 0.5");
        let points = [
            showing("excess", 1.0, 0.01),
            showing("excess", 0.1, 0.01),
            showing("excess", 2.0, 0.01),
            showing("excess", 0.7, 0.01),
        ];
        let arm = |name: &str, first: usize| Arm {
            name: name.to_owned(),
            points: vec![(first, 100.0), (first + 1, 10_000.0)],
        };
        let claims = [Resolved { claim: falls, pairs: vec![Pair { left: arm("a", 0), right: arm("b", 2) }] }];
        let verdicts = of::<Config>(&claims, &points).unwrap();
        let verdict = &verdicts[0];
        assert_eq!(verdict.word.name(), "holds");
        // Mean over ln of the size: (1 + 0.1)/2 against (2 + 0.7)/2.
        assert!((verdict.difference.unwrap().mean - (0.55 - 1.35)).abs() < 1e-12);
        let (at, seeds) = verdict.left.reaches(0.5);
        assert_eq!(seeds, 5);
        // 5/9 of the way from ln 100 to ln 10,000.
        assert!((at.unwrap() / (100.0_f64 * 100.0_f64.powf(5.0 / 9.0)) - 1.0).abs() < 1e-3);
        assert_eq!(verdict.right.reaches(0.5), (None, 0));
        let tables = tables(&verdicts);
        assert!(tables[1].1.markdown().contains("0 of 5"));
        assert_eq!(plots(&verdicts).len(), 1);
    }
}
