//! Programs of ours, and how long they take.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value as Json;
use tensor_logic::analyse::analyse;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request};
use tensor_logic::fast::Fast;
use tensor_logic::function::UserFunctions;
use tensor_logic::learn::minimize;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::{Action, Program, TensorId};
use tensor_logic::start::all_start_values;

pub(super) const BUDGET: Budget = Budget { tuples: 100_000_000, bytes: 4 << 30 };

pub(super) fn analysed(text: &str) -> Result<Program> {
    let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default());
    Ok(analysed.map_err(|reports| anyhow!("{reports:?}"))?.program)
}

pub(super) fn named(program: &Program, name: &str) -> Result<TensorId> {
    let at = program.tensors.iter().position(|tensor| tensor.name == name);
    Ok(TensorId(at.with_context(|| format!("no tensor {name}"))? as u32))
}

/// What learning gave.
pub(super) struct Learned {
    /// The loss before each step.
    pub(super) losses: Vec<f64>,
    /// Seconds of each step but the first.
    pub(super) seconds: Vec<f64>,
    pub(super) parameters: Parameters,
}

/// Carries out the `@minimize` of a program's last query.
pub(super) fn learned(program: &Program) -> Result<Learned> {
    let asked = program.actions.iter().rev().find_map(|action| match action {
        Action::Query(query) => Some((query.tensor, query.directives.minimize.clone()?)),
        Action::Write { .. } => None,
    });
    let (goal, settings) = asked.context("nothing is minimized")?;
    let mut parameters = all_start_values(program);
    let (mut losses, mut seconds, mut clock) = (Vec::new(), Vec::new(), None::<Instant>);
    let mut progress = |_, _, loss| {
        let now = Instant::now();
        seconds.extend(clock.replace(now).map(|before| (now - before).as_secs_f64()));
        losses.push(loss);
    };
    let mut engine = Auto::new(Box::<Fast>::default());
    minimize(&mut engine, program, BUDGET, &mut parameters, goal, &settings, &mut progress)
        .map_err(|report| anyhow!("{report:?}"))?;
    Ok(Learned { losses, seconds, parameters })
}

/// The median of the seconds in which a tensor is evaluated, of the second half of so many runs, and its value. Parameters
/// are given anew each time, and are others by a billionth each time but the last: what did not change would not be computed
/// again.
pub(super) fn evaluated(
    program: &Program,
    name: &str,
    parameters: &Parameters,
    runs: usize,
) -> Result<(f64, Vec<f64>)> {
    let goal = named(program, name)?;
    let mut engine = Auto::new(Box::<Fast>::default());
    let (mut times, mut value) = (Vec::new(), Vec::new());
    for run in (0..=runs).rev() {
        let moved = |value: &f64| value * (1.0 + run as f64 * 1e-9);
        let anew = parameters.iter().map(|(id, values)| {
            let values: Vec<f64> = values.iter().map(moved).collect();
            (*id, values.into())
        });
        let anew = anew.collect();
        let request = Request { program, parameters: &anew, budget: BUDGET };
        let clock = Instant::now();
        let values = engine.values(&request, &[goal]).map_err(|report| anyhow!("{report:?}"))?;
        times.push(clock.elapsed().as_secs_f64());
        value = values.first().context("no value")?.doubles().into_owned();
    }
    Ok((median(times.split_off(times.len() / 2)), value))
}

/// The one in the middle.
pub(super) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What PyNeuraLogic says.
pub(super) fn peer(python: &str, folder: &Path, arguments: &[&str]) -> Result<Json> {
    let output = Command::new(python).arg(folder.join("relational.py")).args(arguments).output()?;
    ensure!(output.status.success(), "the peer fails: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A number of a peer's answer.
pub(super) fn number(answer: &Json, name: &str) -> Result<f64> {
    answer[name].as_f64().with_context(|| format!("the peer has no {name}"))
}

/// The numbers of an array, row by row.
pub(super) fn flat(value: &Json) -> Vec<f64> {
    match value {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        number => number.as_f64().into_iter().collect(),
    }
}

/// Refuses what differs by more than rounding.
pub(super) fn same(what: &str, ours: &[f64], theirs: &[f64]) -> Result<()> {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
    let equal = ours.len() == theirs.len() && ours.iter().zip(theirs).all(close);
    ensure!(equal, "{what}: ours {ours:?}, the peer {theirs:?}");
    Ok(())
}
