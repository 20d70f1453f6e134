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

use anyhow::Result;
use serde_json::{Value, json};

pub(crate) use inputs::SplitMix64;

use super::{BenchArgs, Spread, chosen, in_a_process};
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

fn cases(names: &[String]) -> Result<Vec<&'static Case>> {
    chosen(CASES, |case| case.id, names)
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
    let [case] = cases(names)?[..] else { return Err(usage("bench tl-one takes one case")) };
    print_json(&ours::run(case, &inputs_folder(args), args.threads)?)?;
    Ok(0)
}

/// `bench tl [CASE]...`
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    let python = args.python.clone().unwrap_or_else(|| "python3".to_owned());
    let installed = Installed { folder: args.peers_folder(), python };
    let folder = inputs_folder(args);
    let mut documents = Vec::new();
    let mut failed = false;
    for case in cases(names)? {
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
        let (threads, out) = (format!("--threads={threads}"), Path::new("--out"));
        documents.push(in_a_process([Path::new("tl-one"), case.id.as_ref(), threads.as_ref(), out, folder])?);
    }
    Ok(())
}

fn column(documents: &[Value], key: &str) -> Spread {
    Spread::of(documents.iter().filter_map(|document| document.get(key)?.as_f64()))
}

impl Measured {
    fn peer(outcomes: &[Outcome]) -> Spread {
        Spread::of(outcomes.iter().map(|outcome| outcome.seconds))
    }

    /// The best peer by its median.
    fn best(&self) -> Option<(Peer, f64)> {
        let times = self.peers.iter().map(|(peer, outcomes)| (*peer, Measured::peer(outcomes).median()));
        times.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn json(&self, case: &Case) -> Vec<Value> {
        let peers: Vec<Value> = self
            .peers
            .iter()
            .map(|(peer, outcomes)| {
                let first = outcomes.first();
                json!({"name": peer.name(), "version": peer.version(), "run_s": Measured::peer(outcomes).median(),
                    "peak_bytes": outcomes.iter().filter_map(|outcome| outcome.peak).max(),
                    "total": first.is_some_and(|outcome| outcome.total)})
            })
            .collect();
        let best = self.best();
        let mut rows = Vec::new();
        for (threads, documents) in &self.ours {
            for (form, key) in [("native", "native_s"), ("listed", "listed_s")] {
                let runs = column(documents, key);
                rows.push(json!({
                    "case": case.id, "form": form, "threads": threads, "load_s": column(documents, "load_s").median(),
                    "plan_s": column(documents, "plan_s").median(), "run_s": runs.median(), "run_min_s": runs.least(),
                    "count": documents.first().and_then(|document| document.get("count")),
                    "peak_bytes": column(documents, "peak_bytes").median() as u64, "peers": peers,
                    "best_peer": best.map(|(peer, _)| peer.name()), "ratio": best.map(|(_, time)| time / runs.median()),
                }));
            }
        }
        rows
    }

    fn text(&self, case: &Case) -> String {
        let mut text = format!("{} {} {}\n", case.id, case.input, case.program);
        let best = self.best();
        for (threads, documents) in &self.ours {
            let middle = |key: &str| column(documents, key).median();
            let (load, plan, peak) = (middle("load_s"), middle("plan_s"), middle("peak_bytes") / 1e6);
            text +=
                &format!("  {threads} thread(s): load {load:.3} s, plan {plan:.3} s, peak {peak:.0} MB\n");
            for (form, key) in [("native", "native_s"), ("listed", "listed_s")] {
                let runs = column(documents, key);
                let (run, least) = (runs.median(), runs.least());
                let ratio = best.map_or_else(String::new, |(peer, time)| {
                    format!(", {:.1} x {}", time / run, peer.name())
                });
                text += &format!("    {form}: {run:.4} s, at least {least:.4} s{ratio}\n");
            }
        }
        for (peer, outcomes) in &self.peers {
            let runs = Measured::peer(outcomes);
            let (run, least) = (runs.median(), runs.least());
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
        let answer = ours::run(cases(&["R4".to_owned()])?[0], folder.path(), 1)?;
        assert_eq!(answer.get("count").and_then(Value::as_u64), Some(2_001_000));
        let unknown = cases(&["R99".to_owned()]).err().ok_or_else(|| anyhow!("R99 is known"))?;
        assert!(unknown.to_string().contains("R12"));
        Ok(())
    }
}
