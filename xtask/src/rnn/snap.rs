//! `cargo xtask snap`: a trained cell read back as programs and matrices of 0 and 1.
//!
//! The run's folder gets `snap.json`: what was read, and the document of the cell that `cargo xtask cell` takes.

use anyhow::Result;
use clap::Args;
use linear_logic_rnn::snap::{Reading, Snapped, TESTED, snap};
use serde_json::{Value, json};

use super::run::Trained;
use crate::answer::give;
use crate::record::write_document;
use crate::run_folder;

/// The exit status of a cell that does not snap, or to something that is wrong.
const NOT: u8 = 4;

/// Options of `snap`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 the cell snaps and is exact, 4 it does not, 1 refused.")]
pub(crate) struct SnapArgs {
    /// A folder, or a name in runs/.
    run: String,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// Reads a run back; returns the exit status.
pub(crate) fn run(args: &SnapArgs) -> Result<u8> {
    let Trained { folder, config, cell, theta } = Trained::open(&args.run, "have programs")?;
    let reading = snap(&cell, &theta, &config.task()?)?;
    let document = match &reading {
        Reading::Snapped(found) => snapped(found),
        Reading::Not(why) => json!({"snaps": false, "why": why}),
    };
    let _alone = run_folder::lock(&folder)?;
    write_document(&folder.join("snap.json"), &document)?;
    give(args.json, &document, || in_words(&reading))?;
    Ok(match reading {
        Reading::Snapped(found) if found.wrong == 0 => 0,
        _ => NOT,
    })
}

fn snapped(found: &Snapped) -> Value {
    let programs = found
        .programs
        .iter()
        .map(|program| json!({"text": program.text, "normal": program.normal, "states": program.states}));
    json!({
        "snaps": true, "exact": found.wrong == 0, "wrong": found.wrong, "tested": TESTED, "named": found.named,
        "agreed": found.agreed, "start": found.start, "programs": programs.collect::<Vec<Value>>(),
        "maps": found.maps, "options": found.options, "weights": found.theta,
    })
}

fn in_words(reading: &Reading) -> String {
    let found = match reading {
        Reading::Not(why) => return format!("does not snap: {why}\n"),
        Reading::Snapped(found) => found,
    };
    let list = |states: &[u32]| states.iter().map(ToString::to_string).collect::<Vec<String>>().join(" ");
    let mut text = format!(
        "snaps: {} matrices of 0 and 1 in {} dimensions; {} wrong states of {TESTED}\n",
        found.maps.len(),
        found.maps.first().map_or(0, Vec::len),
        found.wrong
    );
    for program in &found.programs {
        text += &format!(
            "program {:4} {}\n  at states {}\n",
            program.text,
            program.normal,
            list(&program.states)
        );
    }
    for (letter, map) in found.maps.iter().enumerate() {
        text += &format!("V({letter}): {}\n", list(map));
    }
    text
}
