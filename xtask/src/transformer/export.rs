//! `cargo xtask export`: a run as a folder that other programs open.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;
use symbolic_transformer::export::{self, About};

use super::config::{Config, Model};
use super::{code, network};
use crate::answer::give;
use crate::record::document;
use crate::{data, run_folder};

/// Options of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A folder, or a name in runs/.
    run: String,
    /// The format.
    #[arg(long, value_enum)]
    format: Format,
    /// The output folder; without it `hf` inside the run.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The Hugging Face layout, as OPT (norms behind the branches) or GPT-2 (norms before them).
    Hf,
}

/// `cargo xtask export`; returns the exit status.
pub(crate) fn run(args: &ExportArgs) -> Result<u8> {
    let Format::Hf = args.format;
    let folder = run_folder::find(&args.run)?;
    let config: Config = run_folder::config(&folder)?;
    training::threads::set(config.threads)?;
    if config.model != Model::Transformer {
        bail!("NotRepresentable: only a transformer has a class that loads it exactly");
    }
    let code = code::of_run(&folder, &config)?;
    let (_, theta) = network::load(&folder, &config, &code)?;
    let [evaluation, recorded] =
        ["eval.json", "config.json"].map(|name| document(&folder.join(name)).unwrap_or_default());
    let text = |key: &str| recorded.get(key).and_then(|v| v.as_str()).unwrap_or("unknown").to_owned();
    let about = About {
        name: folder.file_name().map_or_else(|| "run".to_owned(), |n| n.to_string_lossy().into_owned()),
        law: data::law_of_run(&config.data).map_or_else(|_| text("law"), |law| data::law_label(&law)),
        data: config.data.clone(),
        data_digest: text("data_digest"),
        commit: text("commit"),
        seed: config.seed,
        results: results(&evaluation),
    };
    let out = args.out.clone().unwrap_or_else(|| folder.join("hf"));
    export::hf(&config.shape(code.size())?, &code, &theta, &about, &out)
        .map_err(|e| anyhow::anyhow!("{}: {e}", e.kind()))?;
    let document = json!({"schema": "xtask/1", "command": "export", "format": "hf", "folder": out});
    give(args.json, &document, || format!("{}\n", out.display()))?;
    Ok(0)
}

/// What the model card shows of the evaluation.
fn results(evaluation: &serde_json::Value) -> Vec<(String, String)> {
    let rows = [
        ("nats per token", "/iid/nats_per_token"),
        ("optimum, nats per token", "/iid/optimum/nats_per_token"),
        ("excess over the optimum, nats per token", "/iid/excess/value"),
        ("top-1", "/iid/top1/observed"),
        ("top-1 of the optimum", "/iid/optimum/top1"),
        ("share of free samples that parse", "/generation/free/parsed"),
    ];
    let value = |path: &str| evaluation.pointer(path).and_then(serde_json::Value::as_f64);
    rows.iter()
        .filter_map(|(name, path)| Some(((*name).to_owned(), format!("{:.4}", value(path)?))))
        .collect()
}
