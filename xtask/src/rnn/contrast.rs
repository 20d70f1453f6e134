//! The deciding comparisons of a sweep of cells: their runs, their gates in other sweeps, and the table of what follows.

use anyhow::{Context, Result};
use linear_logic_rnn::contrast::{Contrast, RankSum, Solved, Stratum, Trial};

use super::arm::{Arm, Run, word};
use super::config::Config;
use crate::contrast::Contrast as Asked;
use crate::draw::html::{self, Table};
use crate::draw::numbers::p_value;
use crate::sweep::plan::Draft;
use crate::sweep::statistics::holm;
use crate::sweep::{Plan, Point, finished};
use crate::{keys, place};

/// The share of right last symbols at the longest test length from which a run is solved.
const SOLVED: f64 = 0.99;

/// The runs of an arm.
pub(super) fn trials(arm: &Arm<'_>) -> Vec<Trial> {
    let solved = arm.values(arm.longest_test, "last_symbol");
    let trial = |(run, right): (&Run, f64)| Trial { reached_at: run.reached_at, solved: right >= SOLVED };
    arm.runs.iter().zip(solved).map(trial).collect()
}

/// The strata of some tasks: one for each task and pair.
fn strata(asked: &Asked, tasks: &[String], arms: &[Arm<'_>]) -> Result<Vec<Stratum>> {
    let find = |task: &str, name: &str| {
        let arm = arms.iter().find(|arm| arm.task == task && arm.name == name);
        arm.map(trials).with_context(|| format!("contrast {}: no arm {name} of {task}", asked.name))
    };
    let mut strata = Vec::new();
    for task in tasks {
        for [program, placebo] in &asked.pairs {
            let (program_runs, placebo_runs) = (find(task, program)?, find(task, placebo)?);
            let name = format!("{task}, {program}");
            strata.push(Stratum { name, program: program_runs, placebo: placebo_runs });
        }
    }
    Ok(strata)
}

/// The strata of a gate; none if its sweep is not finished.
fn gate(asked: &Asked, sweep: &str, tasks: &[String]) -> Result<Vec<Stratum>> {
    let plan: Plan<Config> = Draft::read(&keys::find(sweep, &place::configs())?)?.plan()?;
    let folder = place::runs().join(&plan.name);
    let are_finished = |points: &[Point<Config>]| {
        let mut jobs = points.iter().flat_map(|p| &p.runs);
        jobs.try_fold(true, |all, job| Ok::<bool, anyhow::Error>(all && finished::is_finished(job)?))
    };
    let chosen = plan.choose(&folder, &mut |round| are_finished(round))?;
    let points = plan.points(&folder, chosen.as_deref())?;
    if chosen.is_none() || !are_finished(&points)? {
        return Ok(Vec::new());
    }
    let mut arms = Vec::new();
    for point in &points {
        arms.extend(Arm::read(point)?);
    }
    strata(asked, tasks, &arms)
}

/// Every contrast with its outcome.
pub(super) fn judge(asked: &[Asked], arms: &[Arm<'_>]) -> Result<Vec<Contrast>> {
    let mut found = Vec::new();
    for asked in asked {
        let gate = match &asked.gate {
            None => None,
            Some(of) => Some(gate(asked, &of.sweep, &of.tasks)?),
        };
        let strata = strata(asked, &asked.tasks, arms)?;
        found.push(Contrast::new(&asked.name, &strata, gate.as_deref()));
    }
    // Those without a test are no tests of the family.
    let p: Vec<f64> = found.iter().filter_map(|contrast| Some(contrast.test?.p)).collect();
    let judged = found.iter_mut().filter(|contrast| contrast.test.is_some());
    judged.zip(holm(&p)).for_each(|(contrast, p)| contrast.correct(p));
    Ok(found)
}

/// The table of the outcomes.
pub(super) fn table(found: &[Contrast]) -> Table {
    let head = [
        "hypothesis",
        "#gate, p",
        "#rank sum",
        "#p",
        "#p (Holm)",
        "#solved with the program",
        "#with the placebo",
        "#difference, 90 %",
        "outcome",
    ];
    let mut table = Table::new(head.map(ToOwned::to_owned));
    let solved = |solved: Solved| html::number(format!("{} of {}", solved.solved, solved.runs));
    for contrast in found {
        let sum =
            |test: Option<RankSum>| test.map_or_else(|| "–".to_owned(), |t| format!("{:+.1}", t.statistic));
        let gate = contrast.gate.map_or_else(
            || "–".to_owned(),
            |gate| format!("{} ({:+.1})", p_value(Some(gate.p)), gate.statistic),
        );
        table.row(vec![
            html::text(&contrast.hypothesis),
            html::number(gate),
            html::number(sum(contrast.test)),
            html::number(p_value(contrast.test.map(|t| t.p))),
            html::number(p_value(contrast.p_holm)),
            solved(contrast.program),
            solved(contrast.placebo),
            html::number(match contrast.interval {
                Some((low, high)) => format!("{low:+.3} to {high:+.3}"),
                None => "–".to_owned(),
            }),
            html::text(word(&contrast.outcome)),
        ]);
    }
    table
}
