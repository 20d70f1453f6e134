//! `tl fmt`: the canonical form of a program, printed, written or compared.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use calculemus_base::file::Whole;
use clap::Args;
use clap::error::ErrorKind;
use tensor_logic::answer::json;
use tensor_logic::format::format;

use crate::answer::{Answer, Shape};
use crate::input::{File, usage};

/// `tl fmt`
#[derive(Debug, Args)]
pub(crate) struct Fmt {
    #[command(flatten)]
    file: File,
    /// Rewrite the file.
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Only compare: exit status 1 if the file would change.
    #[arg(long)]
    check: bool,
}

pub(crate) fn fmt(args: &Fmt) -> anyhow::Result<Answer> {
    if args.write && args.file.is_standard_input() {
        return Err(usage(ErrorKind::ArgumentConflict, "standard input cannot be rewritten"));
    }
    let source = args.file.read()?;
    let formatted = match source.decoded().and_then(|()| format(&source.text)) {
        Ok(formatted) => formatted,
        Err(errors) => return Ok(Answer::refused(&source, errors)),
    };
    let changed = formatted != source.text;
    if args.write && changed {
        replace(&args.file.file, &formatted)?;
    }
    let mut answer = Answer::new(&source, Shape::Bare);
    let mut text = String::new();
    json::string(&mut text, &formatted);
    answer.fields = vec![("changed", changed.to_string()), ("text", text)];
    if !args.write && !args.check {
        answer.text = formatted;
    }
    if args.check && changed {
        answer.fails = true;
        answer.notice = format!("tl: {} is not in its canonical form\n", source.file);
    }
    Ok(answer)
}

/// Writes a file whole. A link stays a link to the file that it names, and the file keeps its permissions.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let path = path.canonicalize()?;
    let mut whole =
        Whole::create(&path).with_context(|| format!("cannot write beside {}", path.display()))?;
    whole.write_all(text.as_bytes())?;
    whole.file().set_permissions(std::fs::metadata(&path)?.permissions())?;
    whole.finish().with_context(|| format!("cannot replace {}", path.display()))
}
