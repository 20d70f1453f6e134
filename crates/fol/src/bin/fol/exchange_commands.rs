//! `fol import` and `fol export`: formulas from and to other programs.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use fol::Style;
use fol::data::Dataset;
use fol::error::Refusal;
use fol::exchange::{self, Format, Imported, Record, Vocabulary};
use fol::file;
use serde_json::{Value, json};

use crate::answer::Item;
use crate::formula_commands::ids;
use crate::input::one_of;

/// `fol import`
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// What the file is.
    #[arg(long, value_parser = one_of(FORMATS))]
    format: Format,
    /// The file; `-` is standard input.
    file: PathBuf,
    /// Write the records here, as jsonl [default: standard output].
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    /// The labels of a public-json file, in place of the built-in ones.
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
}

/// `fol export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The folder of a data set.
    folder: PathBuf,
    /// Which formulas.
    #[arg(long, value_parser = ["train", "val", "test", "iid"])]
    split: String,
    /// What to write.
    #[arg(long, value_parser = one_of(FORMATS))]
    format: Format,
    /// Where to write; with tptp a folder.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Only the first N formulas.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// The labels of a public-json file, in place of the built-in ones.
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
}

const FORMATS: &[(&str, Format)] = &[
    ("jsonl", Format::Jsonl),
    ("parquet", Format::Parquet),
    ("tptp", Format::Tptp),
    ("public-json", Format::PublicJson),
];

pub(crate) fn import(args: &Import) -> Vec<Item> {
    let input = args.file.to_string_lossy();
    let (imported, lines) = match imported(args) {
        Ok(found) => found,
        Err(refusal) => {
            let nothing = json!({"read": 0, "written": 0, "refused": []});
            let refused = Some((refusal, input.to_string()));
            return vec![Item { refused, ..Item::answered(&input, nothing, "") }];
        }
    };
    let Imported { read, written, refused, text, source } = imported;
    let list: Vec<Value> =
        refused.iter().map(|(record, error)| json!({"record": record, "error": error})).collect();
    let mut fields = json!({"read": read, "written": written, "refused": list});
    if let (Some((text, names)), Value::Object(fields)) = (text, &mut fields) {
        fields.insert("text".to_owned(), json!(fol::print(&text, Style::Unicode)));
        fields.insert("tokens".to_owned(), json!(ids(&fol::encode(&text))));
        fields.insert("names".to_owned(), json!(names));
    }
    let mut shown = lines;
    if args.out.is_some() {
        shown = format!("read {read}, written {written}");
        for (record, refusal) in &refused {
            shown.push_str(&format!("\nrecord {record}: {refusal}"));
        }
    }
    let mut item = Item::answered(&input, fields, shown);
    item.refused = refused.into_iter().next().map(|(_, refusal)| (refusal, source));
    vec![item]
}

/// Imports into the file named, or into lines for standard output.
fn imported(args: &Import) -> Result<(Imported, String), Refusal> {
    let vocabulary = vocabulary(args.vocab.as_deref())?;
    let file: Box<dyn BufRead> = if args.file == Path::new("-") {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        Box::new(BufReader::new(file::open(&args.file)?))
    };
    let into = |out: &mut dyn Write| {
        let mut line = |record: &Record| Ok(writeln!(out, "{}", record.line()?)?);
        exchange::import(args.format, file, &vocabulary, &mut line)
    };
    let mut lines = Vec::new();
    let imported = match &args.out {
        Some(path) => file::write(path, into)?,
        None => into(&mut lines)?,
    };
    Ok((imported, String::from_utf8_lossy(&lines).trim_end().to_owned()))
}

pub(crate) fn export(args: &Export) -> Vec<Item> {
    let folder = args.folder.to_string_lossy();
    let written = vocabulary(args.vocab.as_deref()).and_then(|vocabulary| {
        let split = Dataset::open(&args.folder)?.split(&args.split)?;
        let records = exchange::records(&split).take(args.limit.unwrap_or(usize::MAX));
        exchange::export(records, args.format, &vocabulary, &args.out)
    });
    vec![match written {
        Ok(written) => Item::answered(&folder, json!({"written": written}), format!("written {written}")),
        Err(refusal) => Item::refused(&folder, refusal),
    }]
}

fn vocabulary(path: Option<&Path>) -> Result<Vocabulary, Refusal> {
    path.map_or_else(|| Ok(Vocabulary::default()), |path| Vocabulary::read(file::open(path)?))
}
