//! Peers: each is a program of its own that prints its time and its count.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::cases::{Case, Peer};

/// What one run of a peer printed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// Seconds of execution, or of the whole process where `total`.
    pub(super) seconds: f64,
    /// Tuples in all its relations.
    pub(super) count: Option<u64>,
    /// Peak memory, where it is known.
    pub(super) peak: Option<u64>,
    /// Whether the time is that of the whole process.
    pub(super) total: bool,
}

/// Where the peers are.
pub(super) struct Installed {
    /// The folder with the drivers, `rules/` built in it.
    pub(super) folder: Option<PathBuf>,
    /// The Python for those that need one.
    pub(super) python: String,
}

impl Peer {
    /// Its name in the results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Peer::Ascent => "ascent",
            Peer::AscentPar => "ascent_par",
            Peer::Datafrog => "datafrog",
            Peer::Crepe => "crepe",
            Peer::Differential => "differential-dataflow",
            Peer::DuckDb => "duckdb",
            Peer::SwiProlog => "swi-prolog",
            Peer::Gringo => "gringo",
        }
    }

    /// Its version, as far as the drivers fix it.
    pub(super) fn version(self) -> &'static str {
        match self {
            Peer::Ascent | Peer::AscentPar => "0.8.1",
            Peer::Datafrog => "2.0.1",
            Peer::Crepe => "0.2.0",
            Peer::Differential => "0.25.1",
            Peer::DuckDb | Peer::SwiProlog | Peer::Gringo => "as installed",
        }
    }
}

impl Installed {
    /// The command of a peer on a case; `None` where it is not installed.
    fn command(&self, peer: Peer, case: &Case, inputs: &Path) -> Result<Option<Command>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let input = inputs.join(case.input);
        let built = |name: &str| {
            let mut places = ["rules/target/release", "target/release"]
                .map(|place| folder.join(place).join(name))
                .into_iter();
            places.find(|path| path.exists())
        };
        let with = |mut command: Command, arguments: &[&str]| {
            command.args(arguments);
            command
        };
        let driver = |name: &str, program: &str| built(name).map(|path| with(Command::new(path), &[program]));
        let mut command = match peer {
            Peer::Ascent => driver("ascent_b", case.program),
            Peer::AscentPar => driver("ascent_b", &format!("{}p", case.program)).map(|mut command| {
                command.env("WORKERS", "2");
                command
            }),
            Peer::Datafrog => driver("datafrog_b", case.program),
            Peer::Crepe => driver("crepe_b", case.program),
            Peer::Differential => {
                let arcs = input.join("arc.facts");
                return Ok(built("dd_tc").map(|path| {
                    let mut command = Command::new(path);
                    command.arg(arcs).args(["-w", "2"]);
                    command
                }));
            }
            Peer::DuckDb => {
                let has = Command::new(&self.python).args(["-c", "import duckdb"]).output();
                if !has.is_ok_and(|output| output.status.success()) {
                    return Ok(None);
                }
                let mut command = Command::new(&self.python);
                command.arg(folder.join("duck.py")).arg(&input).arg(case.program);
                return Ok(Some(command));
            }
            Peer::SwiProlog | Peer::Gringo => return self.logic(peer, &input),
        };
        if let Some(command) = &mut command {
            command.arg(&input);
        }
        Ok(command)
    }

    /// The two that read facts as terms: `arc(1,2).`
    fn logic(&self, peer: Peer, input: &Path) -> Result<Option<Command>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let name = if peer == Peer::SwiProlog { "swipl" } else { "gringo" };
        if !Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()) {
            return Ok(None);
        }
        let facts = input.join("arc.pl");
        if !facts.exists() {
            let text = std::fs::read_to_string(input.join("arc.facts"))?;
            let mut file = tempfile::NamedTempFile::new_in(input)?;
            for line in text.lines() {
                writeln!(file, "arc({}).", line.replace('\t', ","))?;
            }
            file.persist(&facts)?;
        }
        let mut command = Command::new(name);
        match peer {
            Peer::SwiProlog => {
                command.args(["-q", "-g", "main", "-t", "halt"]).arg(folder.join("tc.pl")).arg(facts);
            }
            _ => {
                command.arg(folder.join("tc.lp")).arg(facts).arg("--text");
            }
        }
        Ok(Some(command))
    }

    /// One run of a peer; `None` where it is not installed.
    ///
    /// # Errors
    /// It fails, prints no time, or a count that is not that of the case.
    pub(super) fn run(&self, peer: Peer, case: &Case, inputs: &Path) -> Result<Option<Outcome>> {
        let Some(mut command) = self.command(peer, case, inputs)? else { return Ok(None) };
        let clock = std::time::Instant::now();
        let output = command.output().with_context(|| format!("{command:?}"))?;
        let whole = clock.elapsed().as_secs_f64();
        ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        let mut outcome =
            parse(&text).unwrap_or(Outcome { seconds: whole, count: None, peak: None, total: true });
        if peer == Peer::Gringo {
            outcome = Outcome { seconds: whole, count: None, peak: None, total: true };
        }
        let expected: u64 = case.expected.iter().map(|(_, count)| count).sum();
        if let Some(count) = outcome.count {
            ensure!(count == expected, "{}: {count} tuples, expected {expected}", peer.name());
        }
        Ok(Some(outcome))
    }
}

/// The times and counts in what the drivers print: `ascent tc TAB 0.294s TAB 983066 TAB VmHWM: 65960
/// kB`, then lines of further counts (`ma 33980 va 751977`); `… run 0.98s count 7`; `swi tc 7 ms 980 ms`.
fn parse(text: &str) -> Option<Outcome> {
    let (mut seconds, mut count, mut peak) = (None, None, None);
    let words: Vec<&str> = text.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| words.get(before)).copied().unwrap_or("");
        let next = words.get(at + 1).copied().unwrap_or("");
        let number: Option<u64> = word.parse().ok();
        if let Some(time) = word.strip_suffix('s').and_then(|time| time.parse::<f64>().ok()) {
            // DuckDB prints its loading first.
            seconds = Some(time);
        } else if let (Some(milliseconds), "ms") = (number, next) {
            seconds = Some(milliseconds as f64 / 1000.0);
        } else if let (Some(kilobytes), "kB") = (number, next) {
            peak = Some(kilobytes * 1024);
        } else if let Some(number) = number
            && !["sum", "workers"].contains(&before)
        {
            count = Some(count.unwrap_or(0) + number);
        }
    }
    Some(Outcome { seconds: seconds?, count, peak, total: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_lines_are_read() {
        let cspa = "ascent cspa vf\t1.800s\t156412\tVmHWM:\t   52344 kB\nma 33980 va 751977\n";
        let read = parse(cspa).unwrap();
        assert_eq!((read.seconds, read.count, read.peak), (1.8, Some(942_369), Some(52_344 * 1024)));
        let duck = "duckdb 2.0.0 tc data/g1k: load 0.010s run 0.240s count 983066";
        assert_eq!(parse(duck).map(|read| (read.seconds, read.count)), Some((0.24, Some(983_066))));
        let swi = "swi tc 983066 1390 ms";
        assert_eq!(parse(swi).map(|read| (read.seconds, read.count)), Some((1.39, Some(983_066))));
        let short = "ascent short\t1.849s\t983066\tVmHWM:\t  168316 kB\nsum 150485777\n";
        assert_eq!(parse(short).and_then(|read| read.count), Some(983_066));
        let differential = "tc 983066\ndifferential tc 2.800s workers 2\n";
        assert_eq!(parse(differential).and_then(|read| read.count), Some(983_066));
        assert_eq!(parse("arc(1,2)."), None);
    }
}
