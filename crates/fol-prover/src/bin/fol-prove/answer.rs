//! What is answered to one input, for people and as JSON.

use std::path::Path;

use calculemus_base::quote;
use fol::error::{Kind, Refusal};
use fol_prover::external::{EProver, ExternalProver};
use fol_prover::{Answer, Limit, Problem, Verdict, json, show};
use serde_json::{Value, json};

/// The answer to one input.
pub(crate) struct Item {
    /// What `--json` prints.
    pub(crate) json: Value,
    /// What people read on standard output.
    pub(crate) text: String,
    /// What people read on standard error.
    pub(crate) refused: Option<String>,
    /// Neither refused nor unknown.
    pub(crate) definite: bool,
}

/// The word for a verdict, as it was asked for.
fn word(problem: &Problem, verdict: &Verdict) -> &'static str {
    match (verdict, problem.conclusion().is_some()) {
        (Verdict::Entailed(_), true) => "entailed",
        (Verdict::Entailed(_), false) => "unsatisfiable",
        (Verdict::Refuted(_), true) => "refuted",
        (Verdict::Refuted(_), false) => "satisfiable",
        (Verdict::Unknown { .. }, _) => "unknown",
    }
}

impl Item {
    pub(crate) fn answered(input: &str, problem: &Problem, answer: &Answer) -> Self {
        let word = word(problem, &answer.verdict);
        let mut text = format!("{word} ({} steps)\n", answer.steps);
        let mut object = json!({
            "input": input,
            "ok": true,
            "verdict": word,
            "reason": null,
            "steps": answer.steps,
            "proof": null,
            "model": null,
        });
        match &answer.verdict {
            Verdict::Entailed(proof) => {
                object["proof"] = json::proof(proof);
                if !proof.definitions.is_empty() {
                    object["definitions"] = json::definitions(proof);
                }
                text += &show::tree(proof);
            }
            Verdict::Refuted(model) => {
                object["model"] = json::model(model);
                text += &show::tables(model);
            }
            Verdict::Unknown { reason } => {
                object["reason"] = json!(reason.to_string());
                text += &format!("{reason}\n");
            }
        }
        let definite = !matches!(answer.verdict, Verdict::Unknown { .. });
        Self { json: object, text, refused: None, definite }
    }

    pub(crate) fn tptp(input: &str, text: String) -> Self {
        let json = json!({"input": input, "ok": true, "tptp": text});
        Self { json, text: text + "\n", refused: None, definite: true }
    }

    /// A refused input; `source` is the text that the refusal points into.
    pub(crate) fn refused(input: &str, refusal: Refusal, source: String) -> Self {
        let end = (refusal.kind == Kind::UnexpectedEnd).then_some((source.len(), source.len()));
        let mut told = format!("{refusal}\n");
        match refusal.span.or(end) {
            Some((start, end)) if !source.is_empty() => told += &quote::marked(&source, start, end),
            _ if source.is_empty() => {}
            _ => {
                let (shown, _) = quote::neighbourhood(source.lines().next().unwrap_or(""), 0);
                told += &format!("  {shown}\n");
            }
        }
        if let Some(help) = &refusal.help {
            told += &format!("  {help}\n");
        }
        let json = json!({"input": input, "ok": false, "error": refusal});
        Self { json, text: String::new(), refused: Some(told), definite: false }
    }

    /// Adds what another prover says. It is no certificate, so it changes no verdict.
    pub(crate) fn compare(&mut self, prover: &Path, problem: &Problem, limit: Limit, ours: &Verdict) {
        let milliseconds = match limit {
            Limit::Milliseconds(ms) => ms,
            Limit::Steps(_) => 10_000,
        };
        let name = prover.display();
        match EProver::at(prover).decide(problem, milliseconds) {
            Ok(other) => {
                let verdict = other.verdict();
                let agrees = match (ours, verdict) {
                    (Verdict::Unknown { .. }, _) | (_, None) => None,
                    (Verdict::Entailed(_), Some(entailed)) => Some(entailed),
                    (Verdict::Refuted(_), Some(entailed)) => Some(!entailed),
                };
                self.json["other"] =
                    json!({"prover": name.to_string(), "szs": other.status, "agrees": agrees});
                self.text += &format!("{name}: {}\n", other.status);
            }
            Err(error) => {
                self.json["other"] = json!({"prover": name.to_string(), "error": error.to_string()});
                self.text += &format!("{name}: {error}\n");
            }
        }
    }
}
