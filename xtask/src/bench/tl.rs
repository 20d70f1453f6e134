//! `cargo xtask bench tl [CASE]...`: relations, beside peers measured in turns in the same run.
//!
//! Every engine runs in a process of its own, five times, ours and each peer in turns. The result
//! is measured in two forms: *native*, as the engine keeps it, and *listed*, as rows of u32; peers
//! list. A wrong count is a failure and no time. A ratio is that of the medians, the best peer's by
//! ours; only the run counts in it, not loading and planning.

mod cases;
mod inputs;
mod ours;
mod peers;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

pub(crate) use inputs::SplitMix64;

use super::BenchArgs;
use crate::answer::{print_json, print_text, usage};
use cases::{CASES, Case, Peer};
use peers::{Installed, Outcome};

/// Each engine runs so many times.
const RUNS: usize = 5;

/// The numbers of threads that are measured.
const THREADS: [usize; 2] = [1, 2];

/// Where inputs stand unless `--out` says otherwise.
const INPUTS: &str = "target/bench";

fn inputs_folder(args: &BenchArgs) -> PathBuf {
    args.out.clone().unwrap_or_else(|| PathBuf::from(INPUTS))
}

fn case(id: &str) -> Result<&'static Case> {
    let known = || CASES.iter().map(|case| case.id).collect::<Vec<_>>().join(" ");
    CASES.iter().find(|case| case.id == id).ok_or_else(|| usage(format!("no case {id}; known: {}", known())))
}

/// `bench inputs [--out DIR] [CASE]...`: writes the inputs that are missing.
pub(super) fn write_inputs(args: &BenchArgs, names: &[String]) -> Result<u8> {
    let all: Vec<&str> = inputs::CASES.to_vec();
    let names: Vec<&str> = if names.is_empty() { all } else { names.iter().map(String::as_str).collect() };
    for name in names {
        inputs::write(&inputs_folder(args), name)?;
        print_text(&format!("{name}\n"));
    }
    Ok(0)
}

/// `bench tl-one CASE`: one run of ours, for the process that measures.
pub(super) fn one(args: &BenchArgs, names: &[String]) -> Result<u8> {
    let [id] = names else { return Err(usage("bench tl-one takes one case")) };
    print_json(&ours::run(case(id)?, &inputs_folder(args), args.threads)?)?;
    Ok(0)
}

/// `bench tl [CASE]...`
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    let wanted: Vec<&Case> = match names {
        [] => CASES.iter().collect(),
        ids => ids.iter().map(|id| case(id)).collect::<Result<_>>()?,
    };
    let python = args.python.clone().unwrap_or_else(|| "python3".to_owned());
    let installed = Installed { folder: args.peers_folder(), python };
    let folder = inputs_folder(args);
    let mut documents = Vec::new();
    let mut failed = false;
    for case in wanted {
        inputs::write(&folder, case.input)?;
        match measure(case, &folder, &installed) {
            Ok(measured) => {
                if !args.json {
                    print_text(&measured.text(case));
                }
                documents.extend(measured.json(case));
            }
            Err(error) => {
                failed = true;
                crate::answer::say!("error: {}: {error:#}", case.id);
            }
        }
    }
    if args.json {
        print_json(&Value::Array(documents))?;
    }
    Ok(u8::from(failed))
}

/// All runs of a case.
struct Measured {
    /// Ours, by the number of threads.
    ours: Vec<(usize, Vec<Value>)>,
    /// Those peers that are installed.
    peers: Vec<(Peer, Vec<Outcome>)>,
    missing: Vec<Peer>,
}

fn measure(case: &Case, folder: &Path, installed: &Installed) -> Result<Measured> {
    let mut measured = Measured {
        ours: THREADS.iter().map(|threads| (*threads, Vec::new())).collect(),
        peers: case.peers.iter().map(|peer| (*peer, Vec::new())).collect(),
        missing: Vec::new(),
    };
    for _ in 0..RUNS {
        for (peer, outcomes) in &mut measured.peers {
            if measured.missing.contains(peer) {
                continue;
            }
            match installed.run(*peer, case, folder)? {
                Some(outcome) => outcomes.push(outcome),
                None => {
                    measured.missing.push(*peer);
                    continue;
                }
            }
            own_runs(case, folder, &mut measured.ours)?;
        }
        if measured.missing.len() == measured.peers.len() {
            own_runs(case, folder, &mut measured.ours)?;
        }
    }
    measured.peers.retain(|(_, outcomes)| !outcomes.is_empty());
    Ok(measured)
}

/// One run of ours with each number of threads, in processes of their own, until there are enough.
fn own_runs(case: &Case, folder: &Path, runs: &mut [(usize, Vec<Value>)]) -> Result<()> {
    for (threads, documents) in runs {
        if documents.len() >= RUNS {
            continue;
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "tl-one", case.id, "--threads", &threads.to_string(), "--out"]).arg(folder);
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        documents.push(serde_json::from_slice(&output.stdout).context("the answer of tl-one")?);
    }
    Ok(())
}

/// The median and the minimum.
fn summary(mut seconds: Vec<f64>) -> (f64, f64) {
    seconds.sort_by(f64::total_cmp);
    let at = |at: usize| seconds.get(at).copied().unwrap_or(f64::NAN);
    (at(seconds.len() / 2), at(0))
}

fn column(documents: &[Value], key: &str) -> (f64, f64) {
    summary(documents.iter().filter_map(|document| document.get(key)?.as_f64()).collect())
}

impl Measured {
    fn peer(outcomes: &[Outcome]) -> (f64, f64) {
        summary(outcomes.iter().map(|outcome| outcome.seconds).collect())
    }

    /// The best peer by its median.
    fn best(&self) -> Option<(Peer, f64)> {
        let times = self.peers.iter().map(|(peer, outcomes)| (*peer, Measured::peer(outcomes).0));
        times.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn json(&self, case: &Case) -> Vec<Value> {
        let peers: Vec<Value> = self
            .peers
            .iter()
            .map(|(peer, outcomes)| {
                let first = outcomes.first();
                json!({"name": peer.name(), "version": peer.version(), "run_s": Measured::peer(outcomes).0,
                    "peak_bytes": outcomes.iter().filter_map(|outcome| outcome.peak).max(),
                    "total": first.is_some_and(|outcome| outcome.total)})
            })
            .collect();
        let best = self.best();
        let mut rows = Vec::new();
        for (threads, documents) in &self.ours {
            for (form, key) in [("native", "native_s"), ("listed", "listed_s")] {
                let (run, least) = column(documents, key);
                rows.push(json!({
                    "case": case.id, "form": form, "threads": threads, "load_s": column(documents, "load_s").0,
                    "plan_s": column(documents, "plan_s").0, "run_s": run, "run_min_s": least,
                    "count": documents.first().and_then(|document| document.get("count")),
                    "peak_bytes": column(documents, "peak_bytes").0 as u64, "peers": peers,
                    "best_peer": best.map(|(peer, _)| peer.name()), "ratio": best.map(|(_, time)| time / run),
                }));
            }
        }
        rows
    }

    fn text(&self, case: &Case) -> String {
        let mut text = format!("{} {} {}\n", case.id, case.input, case.program);
        let best = self.best();
        for (threads, documents) in &self.ours {
            let (load, plan) = (column(documents, "load_s").0, column(documents, "plan_s").0);
            let peak = column(documents, "peak_bytes").0 / 1e6;
            text +=
                &format!("  {threads} thread(s): load {load:.3} s, plan {plan:.3} s, peak {peak:.0} MB\n");
            for (form, key) in [("native", "native_s"), ("listed", "listed_s")] {
                let (run, least) = column(documents, key);
                let ratio = best.map_or_else(String::new, |(peer, time)| {
                    format!(", {:.1} x {}", time / run, peer.name())
                });
                text += &format!("    {form}: {run:.4} s, at least {least:.4} s{ratio}\n");
            }
        }
        for (peer, outcomes) in &self.peers {
            let (run, least) = Measured::peer(outcomes);
            let total = if outcomes.iter().any(|outcome| outcome.total) { " (total)" } else { "" };
            let peak = outcomes.iter().filter_map(|outcome| outcome.peak).max();
            let peak = peak.map_or_else(String::new, |bytes| format!(", peak {:.0} MB", bytes as f64 / 1e6));
            text += &format!("  {}: {run:.4} s, at least {least:.4} s{peak}{total}\n", peer.name());
        }
        for peer in &self.missing {
            text += &format!("  {}: not installed\n", peer.name());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn cases_have_inputs_and_programs() {
        for case in CASES {
            assert!(inputs::CASES.contains(&case.input), "{}", case.id);
            assert!(
                case.expected.iter().all(|(name, _)| case.text.contains(&format!("{name}("))),
                "{}",
                case.id
            );
        }
    }

    #[test]
    fn a_small_case_has_its_count() -> Result<()> {
        let folder = tempfile::tempdir()?;
        inputs::write(folder.path(), "chain2k")?;
        let answer = ours::run(case("R4")?, folder.path(), 1)?;
        assert_eq!(answer.get("count").and_then(Value::as_u64), Some(2_001_000));
        let unknown = case("R99").err().ok_or_else(|| anyhow!("R99 is known"))?;
        assert!(unknown.to_string().contains("R12"));
        Ok(())
    }
}
