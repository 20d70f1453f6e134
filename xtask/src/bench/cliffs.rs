//! `cargo xtask bench cliffs [CASE]...`: programs that a user would write and that must not fall off a cliff.
//!
//! Every case runs at two sizes, so that growth is seen, each time in a process of its own. What is measured are all
//! queries of the program together, loading of its facts included, analysis not; and the most memory that they take beyond
//! what is given. The larger size has a bound. A wrong answer is a failure: the exit status is 1.

mod cases;

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value as Json, json};
use tensor_logic::analyse::analyse;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::fast::Fast;
use tensor_logic::learn::minimize;
use tensor_logic::lower::{FileSource, Loaded, Wanted};
use tensor_logic::program::{Action, Facts, Program, Query};
use tensor_logic::start::all_start_values;
use tensor_logic::value::Symbols;

use super::BenchArgs;
use crate::answer::{print_json, print_text, usage};
use cases::{CASES, Case, Expected};

/// Each size runs so often; one that takes longer than [`LONG`] runs once.
const RUNS: usize = 3;
const LONG: f64 = 1.0;

/// A program with its data and what comes out.
struct Input {
    text: String,
    /// Relations by the names of their files.
    files: Vec<(&'static str, Facts)>,
    /// One for each query.
    expected: Vec<Expected>,
}

struct Files<'a>(&'a [(&'static str, Facts)]);

impl FileSource for Files<'_> {
    fn load(&mut self, wanted: &Wanted<'_>, _: &mut Symbols) -> std::result::Result<Loaded, Refusal> {
        let found = self.0.iter().find(|(name, _)| *name == wanted.file.value);
        let missing = || Refusal::new(Code::FileNotFound, wanted.file.span, "no such input");
        found.map(|(_, facts)| Loaded::Facts(facts.clone())).ok_or_else(missing)
    }
}

fn case(id: &str) -> Result<&'static Case> {
    let known = || CASES.iter().map(|case| case.id).collect::<Vec<_>>().join(" ");
    CASES.iter().find(|case| case.id == id).ok_or_else(|| usage(format!("no case {id}; known: {}", known())))
}

/// `bench cliffs [CASE]...`
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    let wanted: Vec<&Case> = match names {
        [] => CASES.iter().collect(),
        ids => ids.iter().map(|id| case(id)).collect::<Result<_>>()?,
    };
    let (mut documents, mut failed) = (Vec::new(), false);
    for case in wanted {
        for (at, size) in case.sizes.into_iter().enumerate() {
            let bound = (at == 1).then_some(case.seconds);
            match measure(case, size, args.threads) {
                Ok((seconds, bytes)) => {
                    let within = bound.is_none_or(|bound| seconds <= bound)
                        && (at == 0 || case.bytes.is_none_or(|most| bytes <= most));
                    let most =
                        case.bytes.map_or_else(String::new, |most| format!(", {} MB", most / 1_000_000));
                    let goal = bound.map_or_else(String::new, |bound| {
                        let met = if within { "" } else { "   MISSED" };
                        format!("   (at most {bound} s{most}){met}")
                    });
                    if !args.json {
                        let name = format!("{} {size}", case.id);
                        let peak = bytes as f64 / 1e6;
                        print_text(&format!("{name:<28} {seconds:>9.4} s {peak:>7.0} MB{goal}\n"));
                    }
                    documents
                        .push(json!({"case": case.id, "size": size, "run_s": seconds, "peak_bytes": bytes,
                        "bound_s": bound, "bound_bytes": case.bytes, "within": within}));
                }
                Err(error) => {
                    failed = true;
                    print_text(&format!("{} {size}: {error:#}\n", case.id));
                }
            }
        }
    }
    if args.json {
        print_json(&Json::Array(documents))?;
    }
    Ok(u8::from(failed))
}

/// The median time of the runs, and the least memory.
fn measure(case: &Case, size: u32, threads: usize) -> Result<(f64, u64)> {
    let (mut seconds, mut bytes) = (Vec::new(), u64::MAX);
    while seconds.len() < RUNS && seconds.iter().all(|time| *time < LONG) {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "cliffs-one", case.id, &size.to_string(), "--threads", &threads.to_string()]);
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let answer: Json = serde_json::from_slice(&output.stdout)?;
        seconds.push(answer.get("run_s").and_then(Json::as_f64).context("no time")?);
        bytes = bytes.min(answer.get("peak_bytes").and_then(Json::as_u64).context("no peak")?);
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds.get(seconds.len() / 2).copied().context("no run")?, bytes))
}

/// `bench cliffs-one CASE SIZE`: one run, for the process that measures.
pub(super) fn one(args: &BenchArgs, names: &[String]) -> Result<u8> {
    let [id, size] = names else { return Err(usage("bench cliffs-one takes a case and a size")) };
    let Input { text, files, expected } = (case(id)?.input)(size.parse()?);
    training::threads::set_with_this(args.threads)?;
    let analysed = analyse(&text, &mut Files(&files), &Default::default(), &Default::default());
    let program = analysed.map_err(|reports| anyhow!("{reports:?}"))?.program;
    drop(files);
    let mut parameters = all_start_values(&program);
    let budget = Budget { tuples: 100_000_000, bytes: 16 << 30 };
    let mut engine = Auto::new(Box::<Fast>::default());
    // The answers by plain loops have had their own peak.
    std::fs::write("/proc/self/clear_refs", "5").context("the peak is reset on Linux only")?;
    let given = memory("VmRSS")?;
    let clock = Instant::now();
    let answers = answers(&program, &mut engine, &mut parameters, budget);
    let seconds = clock.elapsed().as_secs_f64();
    let peak = memory("VmHWM")?.saturating_sub(given);
    ensure!(answers.len() == expected.len(), "{} answers, expected {}", answers.len(), expected.len());
    for (at, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
        verify(answer, expected).with_context(|| format!("query {}", at + 1))?;
    }
    print_json(&json!({"run_s": seconds, "peak_bytes": peak}))?;
    Ok(0)
}

/// What the queries answer, in order; `@minimize` moves the parameters first.
fn answers(
    program: &Program,
    engine: &mut dyn Engine,
    parameters: &mut Parameters,
    budget: Budget,
) -> Vec<std::result::Result<Vec<Value>, Refusal>> {
    let queries = program.actions.iter().filter_map(|action| match action {
        Action::Query(query) => Some(query),
        Action::Write { .. } => None,
    });
    let mut answer = |query: &Query| {
        if let Some(settings) = &query.directives.minimize {
            minimize(engine, program, budget, parameters, query.tensor, settings, &mut |_, _, _| {})?;
        }
        engine.values(&Request { program, parameters, budget }, &[query.tensor])
    };
    queries.map(&mut answer).collect()
}

fn verify(answer: &std::result::Result<Vec<Value>, Refusal>, expected: &Expected) -> Result<()> {
    let (count, sum) = match (answer, expected) {
        (Err(report), Expected::Refused(code)) => {
            ensure!(report.code == *code, "refused as {:?}", report.code);
            return Ok(());
        }
        (Err(report), Expected::Sum(..)) => bail!("{report}"),
        (Ok(_), Expected::Refused(code)) => bail!("not refused as {code:?}"),
        (Ok(values), Expected::Sum(..)) => match values.first() {
            Some(Value::Tuples(tuples)) => (tuples.tuples.len(), tuples.values.iter().sum::<f64>()),
            Some(value) => (value.doubles().len(), value.doubles().iter().sum()),
            None => bail!("no value"),
        },
    };
    let Expected::Sum(elements, total) = expected else { return Ok(()) };
    ensure!(count == *elements, "{count} elements, expected {elements}");
    ensure!((sum - total).abs() <= 1e-9 * (1.0 + total.abs()), "the sum is {sum}, expected {total}");
    Ok(())
}

/// A figure of this process, in bytes.
fn memory(key: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("memory is read on Linux only")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).context("no figure")?;
    Ok(line.split_whitespace().next().context("no number")?.parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers expected at small sizes are those of the reference interpreter.
    #[test]
    fn expected_answers_are_those_of_the_reference() {
        for case in CASES {
            let Input { text, files, expected } = (case.input)(case.tiny);
            let analysed = analyse(&text, &mut Files(&files), &Default::default(), &Default::default());
            let program = analysed.unwrap_or_else(|reports| panic!("{}: {reports:?}", case.id)).program;
            let budget = Budget { tuples: 100_000_000, bytes: 1 << 30 };
            let mut reference = tensor_logic::reference::Reference::default();
            let answers = answers(&program, &mut reference, &mut all_start_values(&program), budget);
            for (answer, expected) in answers.iter().zip(&expected) {
                verify(answer, expected).unwrap_or_else(|error| panic!("{}: {error:#}", case.id));
            }
        }
    }
}
