//! `cargo xtask test`: the project's tests; with `--slow` their slow halves too, and a dated line in the log.

use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::answer::say;
use crate::{place, run_folder};

/// The log of measured runs.
const LOG: &str = "docs/results/LOG.md";

/// Options of `test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The slow halves too (CALCULEMUS_SLOW=1), with a dated line in docs/results/LOG.md.
    #[arg(long)]
    slow: bool,
    /// The kernels and the engine of devices instead, on Vulkan (Mesa's software driver will do), and their texts for CUDA and
    /// ROCm where NVRTC and clang are installed; and that what is composed of candle's operations compiles for CUDA.
    #[arg(long, conflicts_with = "slow")]
    devices: bool,
    /// What goes to `cargo test`; without it `--workspace`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// `cargo xtask test`; returns the exit status.
pub(crate) fn run(args: &TestArgs) -> Result<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    if args.devices {
        return devices(&cargo, &args.arguments);
    }
    // What is measured has answers of its own, which the tests of the measurements compare.
    let whole = ["--workspace".to_owned(), "--features=xtask/bench".to_owned()];
    let whole = if args.slow { &whole[..] } else { &whole[..1] };
    let arguments = if args.arguments.is_empty() { whole } else { &args.arguments };
    let mut command = Command::new(cargo);
    command.arg("test").args(arguments);
    if args.slow {
        command.env("CALCULEMUS_SLOW", "1");
    }
    let clock = std::time::Instant::now();
    let status = command.status().context("cargo test")?;
    let seconds = clock.elapsed().as_secs_f64();
    if args.slow {
        let verdict = if status.success() { "all pass" } else { "**not all pass**" };
        let what =
            format!("the slow halves of the tests: `cargo xtask test --slow -- {}`", arguments.join(" "));
        let number = format!("{verdict}, {seconds:.0} s, what had to be built included");
        log([what, number, format!("commit {}, {}", run_folder::commit(), run_folder::machine())])?;
    }
    Ok(u8::from(!status.success()))
}

/// The tests that a build without a device has not.
fn devices(cargo: &std::ffi::OsStr, arguments: &[String]) -> Result<u8> {
    let kernels = ["--package", "device-kernels", "--features", "vulkan,cuda,rocm"];
    let engine = ["--package", "symbolic-transformer", "--features", "vulkan", "--test", "devices"];
    for which in [&kernels[..], &engine[..]] {
        let status =
            Command::new(cargo).arg("test").args(which).args(arguments).status().context("cargo test")?;
        if !status.success() {
            return Ok(1);
        }
    }
    // What is composed of candle's operations, for CUDA: its compiler comes as a Python package.
    let status = Command::new(place::file(".ci/candle-cuda")).status().context(".ci/candle-cuda")?;
    Ok(u8::from(!status.success()))
}

/// Writes a dated row at the end of the log: what was done, the number, with what.
fn log(cells: [String; 3]) -> Result<()> {
    let path = place::file(LOG);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    if !text.lines().any(|l| l.starts_with("| date | ") && l.matches('|').count() == cells.len() + 2) {
        bail!("{}: no table of {} columns that begins with `| date |`", path.display(), cells.len() + 1);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let row = format!("| {} | {} |", date(now.as_secs() / 86_400), cells.join(" | "));
    training::files::write(&path, format!("{}\n{row}\n", text.trim_end()).as_bytes())?;
    say!("{}: {row}", path.display());
    Ok(())
}

/// The date of a day, counted from 1970-01-01, in the Gregorian calendar of years that begin in March.
fn date(day: u64) -> String {
    let day = day + 719_468; // 0000-03-01
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{of_month:02}", 400 * era + year + next)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_have_their_dates() {
        for (day, want) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_088, "2024-12-31"),
            (20_089, "2025-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(day), want);
        }
    }
}
