//! Records of a data set to files of other programs.

use std::path::Path;

use super::format::{Format, no_parquet};
use super::public;
use super::vocabulary::Vocabulary;
use crate::data::Split;
use crate::error::Refusal;
use crate::record::Record;
use crate::{decode, encode, file, tptp};

/// The formulas of a split, in order.
pub fn records(split: &Split) -> impl Iterator<Item = Result<Record, Refusal>> {
    split.iter().map(|(tokens, stored)| {
        Ok(Record { item: stored.item, text: decode(tokens)?, nll: Some(stored.nll) })
    })
}

/// Writes records as a file (`tptp`: as a folder of files, one for each) and returns their number. TPTP has
/// no form for some records; the others are written then, and the first such refusal is the answer.
///
/// # Errors
/// `TptpUnsupported` for a conclusion `<unknown>`, `UnmappedSymbol` for a symbol that the vocabulary lacks,
/// and the refusals of data set and file system.
pub fn export(
    records: impl Iterator<Item = Result<Record, Refusal>>,
    format: Format,
    vocabulary: &Vocabulary,
    out: &Path,
) -> Result<u64, Refusal> {
    match format {
        Format::Jsonl => lines(records, out),
        Format::Tptp => problems(records, out),
        Format::PublicJson => {
            let formulas = records.map(|r| r.map(|r| encode(&r.text))).collect::<Result<Vec<_>, _>>()?;
            file::write(out, |out| public::write(&formulas, vocabulary, out))?;
            Ok(formulas.len() as u64)
        }
        Format::Parquet => Err(no_parquet()),
    }
}

fn lines(records: impl Iterator<Item = Result<Record, Refusal>>, out: &Path) -> Result<u64, Refusal> {
    file::write(out, |out| {
        let mut written = 0;
        for record in records {
            writeln!(out, "{}", record?.line()?)?;
            written += 1;
        }
        Ok(written)
    })
}

fn problems(records: impl Iterator<Item = Result<Record, Refusal>>, out: &Path) -> Result<u64, Refusal> {
    std::fs::create_dir_all(out).map_err(|error| file::refusal(out, &error))?;
    let (mut written, mut refused) = (0, None);
    for record in records {
        let record = record?;
        match tptp::print(&record.text) {
            Ok(problem) => {
                let path = out.join(format!("{}.p", record.item));
                file::write(&path, |out| Ok(writeln!(out, "{problem}")?))?;
                written += 1;
            }
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    refused.map_or(Ok(written), Err)
}
