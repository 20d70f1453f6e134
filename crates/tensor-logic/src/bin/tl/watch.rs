//! `tl watch`: answers that are kept up to date while facts come and go.

use std::path::PathBuf;

use clap::Args;

use crate::input::{Asked, Evaluation, File};

/// `tl watch`
#[derive(Debug, Args)]
pub(crate) struct Watch {
    #[command(flatten)]
    file: File,
    /// Where updates are read, one a line: `+Edge(A, B)`, `-Road(A, B) = 4`; `-` is standard input. An empty line, or the
    /// end, makes those before it at once.
    #[arg(long, value_name = "FILE", default_value = "-")]
    updates: PathBuf,
    /// Wait at the end of the updates for more, until the file is removed; what is there by then is made at once.
    #[arg(long)]
    follow: bool,
    /// Make every line at once.
    #[arg(long)]
    each: bool,
    /// The workers.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    evaluation: Evaluation,
}

#[cfg(not(feature = "timely"))]
pub(crate) fn watch(args: &Watch, _: bool) -> anyhow::Result<crate::answer::Answer> {
    let Watch { file: _, updates: _, follow: _, each: _, workers: _, asked: _, evaluation: _ } = args;
    Err(crate::dataflow::missing("`tl watch`"))
}

#[cfg(feature = "timely")]
pub(crate) use kept::watch;

#[cfg(feature = "timely")]
mod kept {
    use std::fs::{self, File};
    use std::io::{BufRead, BufReader};
    use std::path::Path;
    use std::thread::sleep;
    use std::time::Duration;

    use calculemus_base::stream;
    use clap::error::ErrorKind;
    use tensor_logic::answer::json;
    use tensor_logic::ast::Span;
    use tensor_logic::dataflow::{Batch, Read, Trouble, Watch as Watched};
    use tensor_logic::draw::{Severity, Sheet};
    use tensor_logic::error::{Code, Refusal};
    use tensor_logic::files::Files;

    use super::Watch;
    use crate::answer::{Answer, Shape, complaints};
    use crate::evaluate::{analysed, source};
    use crate::host::world;
    use crate::input::usage;

    /// How often the end of a file is looked at.
    const PAUSE: Duration = Duration::from_millis(50);

    pub(crate) fn watch(args: &Watch, json: bool) -> anyhow::Result<Answer> {
        args.evaluation.prepare(true)?;
        args.evaluation.is_plain()?;
        let from_input = args.updates == Path::new("-");
        if from_input && args.file.is_standard_input() {
            let message = "the program and the updates cannot both be read from standard input";
            return Err(usage(ErrorKind::ArgumentConflict, message));
        }
        if from_input && args.follow {
            return Err(usage(ErrorKind::ArgumentConflict, "--follow needs a file of updates"));
        }
        let source = source(&args.file, &args.asked)?;
        let mut world = world(&source, Files::new(args.file.folder()), args.evaluation.seed);
        let analysed = match analysed(&source, &mut world)? {
            Ok(analysed) => analysed,
            Err(refused) => return Ok(refused),
        };
        let mut answer = Answer::new(&source, Shape::Warnings);
        answer.warnings.clone_from(&analysed.warnings);
        complaints(&answer, &Sheet::new(&source.file, &source.text));
        answer.warnings.clear();
        let started = Watched::start(&analysed, args.evaluation.budget(), usize::from(args.workers));
        let (watched, first) = match started {
            Ok(started) => started,
            Err(trouble) => return refused(answer, trouble),
        };
        let name = if from_input { "standard input".to_owned() } else { args.updates.display().to_string() };
        let mut session =
            Session { watched, name, json, number: 0, line: 0, open: Vec::new(), unneeded: 0, bad: false };
        session.say(&first, 0)?;
        let end = if from_input {
            session.lines(std::io::stdin().lock(), args.each)
        } else {
            session.file(&args.updates, args)
        };
        match end? {
            Some(trouble) => refused(answer, trouble),
            None => {
                // Nothing more is printed: each batch was its own document.
                answer.quiet = true;
                answer.fails = session.bad;
                Ok(answer)
            }
        }
    }

    /// The answer that refuses.
    fn refused(mut answer: Answer, trouble: Trouble) -> anyhow::Result<Answer> {
        match trouble {
            Trouble::Program(refusal) => answer.errors.push(*refusal),
            Trouble::Processes(broken) => return Err(anyhow::Error::new(broken)),
        }
        Ok(answer)
    }

    struct Session {
        watched: Watched,
        /// Of the updates, in messages.
        name: String,
        json: bool,
        /// Of the batch.
        number: u64,
        /// Of the line, from 1.
        line: usize,
        open: Vec<tensor_logic::dataflow::Update>,
        /// Of the batch: facts that no query needs.
        unneeded: usize,
        /// Whether a line was no update.
        bad: bool,
    }

    impl Session {
        /// Reads lines to their end.
        fn lines(&mut self, mut from: impl BufRead, each: bool) -> anyhow::Result<Option<Trouble>> {
            let mut line = Vec::new();
            while from.read_until(b'\n', &mut line)? > 0 {
                if let Some(trouble) = self.line(&line, each)? {
                    return Ok(Some(trouble));
                }
                line.clear();
            }
            self.commit()
        }

        /// Reads a file to its end, and what is written behind it, if that is asked for.
        fn file(&mut self, path: &Path, args: &Watch) -> anyhow::Result<Option<Trouble>> {
            let opened = File::open(path)
                .map_err(|error| usage(ErrorKind::Io, &format!("cannot read {}: {error}", path.display())))?;
            let mut from = BufReader::new(opened);
            if !args.follow {
                return self.lines(from, args.each);
            }
            let mut line = Vec::new();
            loop {
                from.read_until(b'\n', &mut line)?;
                let whole = line.ends_with(b"\n");
                let gone = !whole && fs::metadata(path).is_err();
                if whole || (gone && !line.is_empty()) {
                    if let Some(trouble) = self.line(&line, args.each)? {
                        return Ok(Some(trouble));
                    }
                    line.clear();
                    continue;
                }
                // Half a line is waited for, and those before it are made.
                if let Some(trouble) = self.commit()? {
                    return Ok(Some(trouble));
                }
                if gone {
                    return Ok(None);
                }
                sleep(PAUSE);
            }
        }

        fn line(&mut self, line: &[u8], each: bool) -> anyhow::Result<Option<Trouble>> {
            self.line += 1;
            let lossy = String::from_utf8_lossy(line);
            let text = lossy.trim_end_matches(['\n', '\r']);
            if let Err(error) = std::str::from_utf8(line) {
                let place = Span { start: error.valid_up_to(), end: error.valid_up_to() + 3 };
                let message = "the line is no UTF-8";
                self.complain(text, Refusal::new(Code::Syntax, place, message));
                return if each { self.commit() } else { Ok(None) };
            }
            if text.trim().is_empty() {
                return self.commit();
            }
            match self.watched.read(text) {
                Ok(Read::Nothing) => return Ok(None),
                Ok(Read::Unneeded) => self.unneeded += 1,
                Ok(Read::Update(update)) => self.open.push(update),
                Err(refusal) => self.complain(text, refusal),
            }
            if each { self.commit() } else { Ok(None) }
        }

        /// Makes what was read since the last time.
        fn commit(&mut self) -> anyhow::Result<Option<Trouble>> {
            if self.open.is_empty() && self.unneeded == 0 {
                return Ok(None);
            }
            self.number += 1;
            match self.watched.apply(&std::mem::take(&mut self.open)) {
                Ok(batch) => {
                    let idle = batch.idle.len() + std::mem::take(&mut self.unneeded);
                    self.say(&batch, idle)?;
                    Ok(None)
                }
                Err(trouble) => Ok(Some(trouble)),
            }
        }

        /// Says that a line is no update; those around it are made.
        fn complain(&mut self, text: &str, mut refusal: Refusal) {
            self.bad = true;
            // The line has its own number in a text of as many.
            let before = self.line - 1;
            refusal.span.start += before;
            refusal.span.end += before;
            let text = format!("{}{text}", "\n".repeat(before));
            stream::tell(&Sheet::new(&self.name, &text).draw(&refusal, Severity::Error));
        }

        /// Says what has changed.
        fn say(&self, batch: &Batch, idle: usize) -> std::io::Result<()> {
            let mut out = String::new();
            if self.json {
                out.push_str(&format!("{{\"batch\": {}, \"changes\": ", self.number));
                let queries: Vec<&str> = self.watched.queries().collect();
                json::list(&mut out, &batch.changes, |out, change| {
                    out.push_str("{\"query\": ");
                    json::string(out, queries.get(change.query).unwrap_or(&""));
                    out.push_str(&format!(", \"came\": {}, \"tuple\": ", change.came));
                    json::list(out, &change.tuple, |out, value| self.watched.constant(out, *value));
                    if let Some(value) = &change.value {
                        out.push_str(&format!(", \"value\": {value}"));
                    }
                    out.push('}');
                });
                out.push_str(&format!(", \"unchanged\": {idle}}}\n"));
                return stream::answer(&out);
            }
            for change in &batch.changes {
                out.push_str(if change.came { "+" } else { "-" });
                out.push_str(&change.text);
                if let Some(value) = &change.value {
                    out.push_str(&format!(" = {value}"));
                }
                out.push('\n');
            }
            // An empty line ends a batch, as it does in the updates.
            out.push('\n');
            stream::answer(&out)
        }
    }
}
