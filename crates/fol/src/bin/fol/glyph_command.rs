//! `fol glyph`: symbols as pictures, and pictures as symbols.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::error::ErrorKind;
use fol::error::{Kind, Refusal};
use fol::file;
use fol::glyph::picture::{self, Lines};
use fol::glyph::{Glyph, sheet, svg};
use fol::symbol::SymbolId;
use serde_json::json;

use crate::answer::Item;
use crate::input::{Inputs, usage};

/// The most pixels for one cell: a glyph of 10,000 by 10,000 pixels.
const LARGEST_SCALE: i64 = 400;

/// `fol glyph`
#[derive(Debug, Args)]
pub(crate) struct GlyphArgs {
    /// Ids or labels; `-` reads them from standard input, one a line.
    #[arg(value_name = "SYMBOL", allow_negative_numbers = true, required_unless_present_any = ["all", "sheet", "read"])]
    inputs: Vec<String>,
    /// All 663 symbols.
    #[arg(long)]
    all: bool,
    /// Write the one glyph as PNG.
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Write the one glyph as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write all glyphs with their labels on one sheet, as PNG or SVG.
    #[arg(long, value_name = "FILE")]
    sheet: Option<PathBuf>,
    /// Pixels for each side of a cell [default: 20, on a sheet 3].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=LARGEST_SCALE))]
    scale: Option<u32>,
    /// Draw a grey line along each cell border.
    #[arg(long)]
    grid: bool,
    /// The symbol of a picture.
    #[arg(long, value_name = "FILE.png")]
    read: Option<PathBuf>,
}

impl GlyphArgs {
    fn lines(&self) -> Lines {
        if self.grid { Lines::Grid } else { Lines::None }
    }
}

pub(crate) fn glyph(args: &GlyphArgs) -> anyhow::Result<Vec<Item>> {
    let found = subjects(args)?;
    let one = match found.as_slice() {
        [(_, symbol)] => Some(symbol),
        _ if args.png.is_some() || args.svg.is_some() => {
            return Err(usage(ErrorKind::WrongNumberOfValues, "--png and --svg take one glyph"));
        }
        _ => None,
    };
    let written = one.map_or(Ok(()), |symbol| write_one(args, symbol));
    let mut items: Vec<Item> = found
        .iter()
        .map(|(input, symbol)| match (symbol, &written) {
            (Ok(symbol), Ok(())) => shown(input, *symbol),
            (Err(refusal), _) | (_, Err(refusal)) => Item::refused(input, refusal.clone()),
        })
        .collect();
    if let Some(path) = &args.sheet
        && let Err(refusal) = write_sheet(path, args)?
    {
        items.push(Item::refused(&path.to_string_lossy(), refusal));
    }
    Ok(items)
}

/// The symbols that are asked about, each with the input that named it.
fn subjects(args: &GlyphArgs) -> anyhow::Result<Vec<(String, Result<SymbolId, Refusal>)>> {
    let mut found = vec![];
    if args.all {
        found.extend(SymbolId::all().map(|symbol| (symbol.label().to_owned(), Ok(symbol))));
    }
    for input in Inputs::of(&args.inputs)? {
        let symbol = named(&input);
        found.push((input, symbol));
    }
    if let Some(path) = &args.read {
        found.push((path.to_string_lossy().into_owned(), read(path)));
    }
    Ok(found)
}

/// A symbol by id or label.
fn named(input: &str) -> Result<SymbolId, Refusal> {
    let name = input.trim();
    let id = name.bytes().all(|b| b.is_ascii_digit()).then(|| name.parse().ok()).flatten();
    id.map_or_else(|| SymbolId::from_label(name), SymbolId::new).ok_or_else(|| {
        Refusal::new(Kind::UnknownId, format!("{name:?} is neither an id nor a label"))
            .found(name)
            .help("ids are 0 to 662; `fol vocab` lists the labels")
    })
}

/// The symbol of a picture.
fn read(path: &Path) -> Result<SymbolId, Refusal> {
    let file: File = file::open(path)?;
    let glyph = picture::read(BufReader::new(file))?;
    glyph.symbol().ok_or_else(|| Refusal::new(Kind::UnknownGlyph, "no symbol has this glyph"))
}

fn shown(input: &str, symbol: SymbolId) -> Item {
    let glyph = Glyph::of(symbol);
    let (id, label, black, rows) = (symbol.get(), symbol.label(), glyph.black(), glyph.rows());
    let text = format!("{id} {label}, {black} black\n{}", rows.join("\n"));
    Item::answered(input, json!({"id": id, "label": label, "black": black, "rows": rows}), text)
}

/// Writes the pictures of the one glyph, if there is one.
fn write_one(args: &GlyphArgs, symbol: &Result<SymbolId, Refusal>) -> Result<(), Refusal> {
    let Ok(symbol) = symbol else { return Ok(()) };
    let (glyph, scale) = (Glyph::of(*symbol), args.scale.unwrap_or(20));
    if let Some(path) = &args.png {
        file::write(path, |out| Ok(picture::write(&glyph, scale, args.lines(), out)?))?;
    }
    if let Some(path) = &args.svg {
        let document = svg::document(&glyph, scale, args.lines());
        file::write(path, |out| Ok(out.write_all(document.as_bytes())?))?;
    }
    Ok(())
}

fn write_sheet(path: &Path, args: &GlyphArgs) -> anyhow::Result<Result<(), Refusal>> {
    let scale = args.scale.unwrap_or(sheet::SCALE);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("png") => Ok(file::write(path, |out| Ok(sheet::write_png(scale, args.lines(), out)?))),
        Some("svg") => Ok(file::write(path, |out| Ok(out.write_all(sheet::svg(scale).as_bytes())?))),
        _ => Err(usage(ErrorKind::InvalidValue, "the name of a sheet ends in .png or .svg")),
    }
}
