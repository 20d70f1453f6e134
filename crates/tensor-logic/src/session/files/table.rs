//! `.csv`, `.tsv`, `.facts`: one tuple a line.
//!
//! Commas and `.tsv` may quote cells as in RFC 4180; `.facts` files, as Datalog systems write
//! them, are split at tabs and nothing else, so a quotation mark is a letter there.

use crate::digits::are_kept;
use crate::engine::Value;
use crate::files::cells;
use crate::files::content::Fault;
use crate::program::{Facts, Kind};
use crate::value::{Const, Domain, Symbols};

/// How cells are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `.csv`
    Commas,
    /// `.tsv`
    Tabs,
    /// `.facts`
    RawTabs,
}

impl Dialect {
    fn delimiter(self) -> u8 {
        match self {
            Dialect::Commas => b',',
            Dialect::Tabs | Dialect::RawTabs => b'\t',
        }
    }

    fn quotes(self) -> bool {
        self != Dialect::RawTabs
    }
}

/// What the words behind `as` say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// The last column is the value.
    pub values: bool,
    /// The first line is skipped.
    pub header: bool,
}

/// The tuples of a table.
///
/// # Errors
/// Lines of different lengths, bytes that are no UTF-8, values that are no numbers, a quotation that does not end.
pub fn read(bytes: &[u8], dialect: Dialect, layout: Layout, symbols: &mut Symbols) -> Result<Facts, Fault> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(dialect.delimiter())
        .quoting(dialect.quotes())
        .has_headers(layout.header)
        .flexible(true)
        .from_reader(bytes);
    let mut record = csv::ByteRecord::new();
    let mut facts = Facts::default();
    let mut columns = None;
    if layout.header {
        let header = reader.byte_headers().map_err(|error| Fault::Whole(error.to_string()))?;
        columns = (!header.is_empty()).then_some(header.len());
    }
    let mut last = csv::Position::new();
    while reader.read_byte_record(&mut record).map_err(|error| Fault::Whole(error.to_string()))? {
        let line = || record.position().map_or(0, csv::Position::line);
        last = record.position().cloned().unwrap_or(last);
        let expected = *columns.get_or_insert(record.len());
        if record.len() != expected {
            let what = format!("{} cells, the first line has {expected}", record.len());
            return Err(Fault::Line { line: line(), what });
        }
        let arity = expected - usize::from(layout.values && expected > 0);
        facts.arity = arity;
        for cell in record.iter().take(arity) {
            let constant = match cells::integer(cell) {
                Some(value) => Const::Int(value),
                None => cells::constant(utf8(cell, line())?, symbols),
            };
            facts.constants.push(constant);
        }
        if layout.values {
            let cell = utf8(record.get(arity).unwrap_or_default(), line())?;
            let cell = cell.trim();
            let value = cell.parse::<f64>().map_err(|_| Fault::Line {
                line: line(),
                what: format!("the value `{cell}` is no number"),
            })?;
            if let Ok(whole) = cell.parse::<i64>()
                && !are_kept(i128::from(whole))
            {
                facts.whole.push((facts.count, whole));
            }
            facts.values.push(value);
        }
        facts.count += 1;
    }
    let rest = usize::try_from(last.byte()).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
    if dialect.quotes() && is_open(rest, dialect.delimiter()) {
        return Err(Fault::Line { line: last.line(), what: "a quotation that does not end".to_owned() });
    }
    Ok(facts)
}

/// Whether a quotation is open behind some lines: it would have taken all that follows into its cell.
fn is_open(lines: &[u8], delimiter: u8) -> bool {
    let (mut quoted, mut begins) = (false, true);
    let mut bytes = lines.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, quoted) {
            // A mark in a quotation stands twice.
            (b'"', true) => quoted = bytes.next_if_eq(&b'"').is_some(),
            (_, true) => {}
            (b'"', false) => quoted = begins,
            (_, false) => {}
        }
        begins = !quoted && (byte == delimiter || matches!(byte, b'\n' | b'\r'));
    }
    quoted
}

fn utf8(cell: &[u8], line: u64) -> Result<&str, Fault> {
    std::str::from_utf8(cell).map_err(|_| Fault::Line { line, what: "this is no UTF-8".to_owned() })
}

/// What a table is written from.
#[derive(Debug)]
pub struct Rows<'a> {
    /// A relation, or a square tensor: all its elements.
    pub value: &'a Value,
    /// The domains of a square tensor's places.
    pub domains: &'a [Domain],
    /// The type: it says whether there are values and how they are written.
    pub kind: Kind,
}

/// One tuple a line, in order, the value last unless the relation is Boolean.
///
/// # Errors
/// What would be read back as something else: words that read as integers, a mark at the very beginning, a relation without
/// places, and in a `.facts` file words with tabs or line ends, and nothing alone on a line.
pub fn write(rows: &Rows<'_>, symbols: &Symbols, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut writer = csv::WriterBuilder::new()
        .delimiter(dialect.delimiter())
        .quote_style(if dialect.quotes() { csv::QuoteStyle::Necessary } else { csv::QuoteStyle::Never })
        .flexible(true)
        .from_writer(out);
    let mut cells: Vec<String> = Vec::new();
    let counts = rows.value.counts();
    let mut row = |at: usize, tuple: &[Const], value: Option<f64>| {
        cells.clear();
        for constant in tuple {
            cells.push(match constant {
                Const::Int(value) => value.to_string(),
                Const::Symbol(id) => symbols.name(*id).to_owned(),
            });
        }
        if let Some(word) = tuple.iter().zip(&cells).find_map(|(constant, cell)| {
            (matches!(constant, Const::Symbol(_)) && cells::is_integer(cell)).then_some(cell)
        }) {
            return Err(Fault::Whole(format!("the word {word:?} would be read as an integer")));
        }
        if at == 0 && cells.first().is_some_and(|cell| cell.starts_with('\u{feff}')) {
            return Err(Fault::Whole("a table cannot begin with a byte order mark".to_owned()));
        }
        if tuple.is_empty() && value.is_none() {
            return Err(Fault::Whole("a relation without places has nothing to write".to_owned()));
        }
        if !dialect.quotes() && value.is_none() && cells.iter().all(String::is_empty) && cells.len() == 1 {
            return Err(Fault::Whole("an empty word alone on a line cannot be written here".to_owned()));
        }
        if !dialect.quotes() && cells.iter().any(|cell| cell.contains(['\t', '\n', '\r'])) {
            return Err(Fault::Whole("a word with a tab or a line end cannot be written here".to_owned()));
        }
        let count = counts.and_then(|counts| counts.get(at));
        cells.extend(value.map(|value| count.map_or_else(|| number(value, rows.kind), i64::to_string)));
        writer.write_record(&cells).map_err(|error| Fault::Whole(error.to_string()))
    };
    match rows.value {
        Value::Tuples(relation) => {
            for (at, tuple) in relation.tuples.iter().enumerate() {
                let value = relation.values.get(at).copied().filter(|_| rows.kind != Kind::Bool);
                row(at, tuple, value)?;
            }
        }
        Value::Dense(_) | Value::Counts(_) => {
            for (at, value) in rows.value.doubles().iter().enumerate() {
                row(at, &element(rows.domains, at), Some(*value))?;
            }
        }
    }
    writer.flush().map_err(|error| Fault::Whole(error.to_string()))
}

/// The constants of an element, row-major.
fn element(domains: &[Domain], mut at: usize) -> Vec<Const> {
    let mut tuple = vec![Const::Int(0); domains.len()];
    for (place, domain) in tuple.iter_mut().zip(domains).rev() {
        let size = domain.len().max(1);
        *place = domain.value(at % size).unwrap_or(Const::Int(0));
        at /= size;
    }
    tuple
}

/// Integers for `count` and `bool`; otherwise the shortest decimal that reads back the same. A zero has no sign.
fn number(value: f64, kind: Kind) -> String {
    let value = value + 0.0;
    match kind {
        Kind::Count | Kind::Bool => format!("{value}"),
        _ => format!("{value:?}"),
    }
}
