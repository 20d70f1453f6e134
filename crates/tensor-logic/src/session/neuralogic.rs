//! Data sets in the text format of NeuraLogic, which PyNeuraLogic reads and ships (Šourek and others: Lifted relational
//! neural networks, 2018, <https://github.com/GustikS/NeuraLogic>), as relations and a program that learns from them.
//!
//! Enter at [`DataSet::read`] and [`DataSet::write`]. A sample is a set of ground literals, and the literals that are asked
//! of it with the values that they are to have. Whatever does not fit together is refused at its place, and nothing is
//! written then.

mod literals;
mod program;
mod relations;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use literals::{Placed, Statement, statements};
use relations::Relations;

pub use crate::session::sheet::Failure;
use crate::session::sheet::{Sheet, write_new};

/// The name of the file of examples in a folder.
pub const EXAMPLES: &str = "examples.txt";
/// The name of the file of queries in a folder.
pub const QUERIES: &str = "queries.txt";

/// What stands at a place of a literal. Integers of 64 bits are numbers, quoted or not; everything else is a word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Constant {
    Int(i64),
    Word(String),
}

/// What a literal is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Empty for a number, one size for a vector, two for a matrix.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub numbers: Vec<f64>,
}

/// A ground literal.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// The predicate, as written.
    pub predicate: String,
    /// What it is said of.
    pub arguments: Vec<Constant>,
    /// Its value, where one is written.
    pub value: Option<Value>,
}

/// An example with its queries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// What holds.
    pub facts: Vec<Literal>,
    /// What is asked, each with its value.
    pub queries: Vec<Literal>,
}

/// A set of samples, counted from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSet {
    /// The name of the folder, or of the file without its ending.
    pub name: String,
    /// The samples in the order of the file.
    pub samples: Vec<Sample>,
}

impl DataSet {
    /// Whether a path is a folder or a file of this format, judged by the names of files only.
    pub fn is_at(path: &Path) -> bool {
        match path.is_dir() {
            true => path.join(EXAMPLES).is_file(),
            false => path.is_file() && path.extension().is_some_and(|end| end == "txt"),
        }
    }

    /// Reads a folder with `examples.txt` and, where it is there, `queries.txt`; or a file of examples, with a file of
    /// queries, or with the one beside it that has `queries` in its name for `examples`.
    ///
    /// # Errors
    /// A file that cannot be read; a text that is none of the format; a fact or a query that disagrees with another one;
    /// examples and queries that cannot be paired; a set without examples or without queries.
    pub fn read(path: &Path, queries: Option<&Path>) -> Result<DataSet, Failure> {
        let is_folder = path.is_dir();
        let examples = if is_folder { path.join(EXAMPLES) } else { path.to_owned() };
        let named = if is_folder { path.canonicalize().ok() } else { Some(path.with_extension("")) };
        let name = named.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "samples".to_owned());
        let sheet = Sheet::read(&examples)?;
        let stated = statements(&sheet)?;
        let asked = match queries {
            Some(path) => Some(Sheet::read(path)?),
            None => match beside(&examples) {
                Some(path) => Sheet::read_if_there(&path)?,
                None => None,
            },
        };
        let pairs = match &asked {
            Some(asked) => paired(&sheet, stated, asked, statements(asked)?)?,
            None => labelled(&sheet, stated)?,
        };
        agree(&sheet, pairs.iter().map(|(facts, _)| facts), "fact")?;
        agree(asked.as_ref().unwrap_or(&sheet), pairs.iter().map(|(_, queries)| queries), "query")?;
        let bare = |placed: Vec<Placed>| placed.into_iter().map(|placed| placed.literal).collect();
        let sample = |(facts, queries)| Sample { facts: bare(facts), queries: bare(queries) };
        Ok(DataSet { name, samples: pairs.into_iter().map(sample).collect() })
    }

    /// Writes the relations as `.csv` files into a folder, made if it is not there, and beside them a program that reads
    /// them and learns the values of the queries; answers with the paths, the program's the last.
    ///
    /// # Errors
    /// A file of such a name that is there already, before anything is written; files that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        let mut relations = Relations::new(&self.samples);
        let mut files = relations.files();
        files
            .push((format!("{}.tl", self.name), program::program(&self.name, &self.samples, &mut relations)));
        write_new(folder, files)
    }
}

/// The file of queries that belongs to a file of examples by its name.
fn beside(examples: &Path) -> Option<PathBuf> {
    let name = examples.file_name()?.to_str()?;
    let other = name.replace("examples", "queries").replace("Examples", "Queries");
    (other != name).then(|| examples.with_file_name(other))
}

/// Facts and queries of each sample.
type Pairs = Vec<(Vec<Placed>, Vec<Placed>)>;

/// The samples of two files: as many examples as lines of queries, or one example of which all is asked.
fn paired(
    sheet: &Sheet,
    stated: Vec<Statement>,
    asked_sheet: &Sheet,
    asked: Vec<Statement>,
) -> Result<Pairs, Failure> {
    let label = |sheet: &Sheet, statement: &Statement, why: &str| {
        let at = statement.label.as_ref().and_then(|label| label.first());
        at.map_or(Ok(()), |placed| Err(sheet.wrong(placed.span, why.to_owned())))
    };
    for statement in &stated {
        let why = format!("the queries stand in {}: an example has none of its own", asked_sheet.name());
        label(sheet, statement, &why)?;
    }
    for statement in &asked {
        label(
            asked_sheet,
            statement,
            "a query with a name is not read: lines belong to examples by their order",
        )?;
        valued(asked_sheet, &statement.literals)?;
    }
    let (examples, queries) = (stated.len(), asked.len());
    let (Some(first), Some(_)) = (stated.first(), asked.first()) else {
        let sheet = if stated.is_empty() { sheet } else { asked_sheet };
        return Err(sheet.wrong(Default::default(), "nothing stands here".to_owned()));
    };
    if examples == 1 {
        let facts = first.literals.clone();
        return Ok(vec![(facts, asked.into_iter().flat_map(|statement| statement.literals).collect())]);
    }
    if examples != queries {
        let message = format!("{queries} lines of queries for {examples} examples");
        let (sheet, longer, kept) =
            if examples > queries { (sheet, &stated, queries) } else { (asked_sheet, &asked, examples) };
        let at = longer.get(kept).and_then(|statement| statement.literals.first());
        return Err(sheet.wrong(at.map_or_else(Default::default, |placed| placed.span), message));
    }
    Ok(stated.into_iter().zip(asked).map(|(facts, queries)| (facts.literals, queries.literals)).collect())
}

/// The samples of one file: queries, `:-`, facts.
fn labelled(sheet: &Sheet, stated: Vec<Statement>) -> Result<Pairs, Failure> {
    if stated.is_empty() {
        return Err(sheet.wrong(Default::default(), "nothing stands here".to_owned()));
    }
    if stated.iter().all(|statement| statement.label.is_none()) {
        let message = "no example has a query, and there is no file of queries beside this one";
        return Err(sheet.wrong(Default::default(), message.to_owned()));
    }
    stated
        .into_iter()
        .map(|statement| {
            let queries = statement.label.unwrap_or_default();
            valued(sheet, &queries)?;
            Ok((statement.literals, queries))
        })
        .collect()
}

/// Refuses a query that does not say what is to come out.
fn valued(sheet: &Sheet, queries: &[Placed]) -> Result<(), Failure> {
    match queries.iter().find(|placed| placed.literal.value.is_none()) {
        Some(placed) => {
            let name = calculemus_base::word::shortened(&placed.literal.predicate);
            Err(sheet.wrong(placed.span, format!("a query has a value before it: `1.0 {name}`")))
        }
        None => Ok(()),
    }
}

/// Refuses values of different shapes for one predicate of one arity, and two values of one literal in a sample.
fn agree<'a>(
    sheet: &Sheet,
    samples: impl Iterator<Item = &'a Vec<Placed>>,
    what: &str,
) -> Result<(), Failure> {
    let mut shapes: BTreeMap<(&str, usize), &Placed> = BTreeMap::new();
    for literals in samples {
        let mut seen: BTreeMap<(&str, &[Constant]), &Placed> = BTreeMap::new();
        for placed in literals {
            let literal = &placed.literal;
            let name = || calculemus_base::word::shortened(&literal.predicate);
            let before = shapes.entry((&literal.predicate, literal.arguments.len())).or_insert(placed);
            let (wanted, found) = (before.literal.shape(), literal.shape());
            if wanted != found {
                let line = sheet.line(before.span);
                let message = format!(
                    "{} is the value of `{}` here, and {} in line {line}",
                    shown(found),
                    name(),
                    shown(wanted)
                );
                return Err(sheet.wrong(placed.span, message));
            }
            let before = seen.entry((&literal.predicate, &literal.arguments)).or_insert(placed);
            if before.literal.numbers() != literal.numbers() {
                let line = sheet.line(before.span);
                let message = format!("this {what} of `{}` has another value in line {line}", name());
                return Err(sheet.wrong(placed.span, message));
            }
        }
    }
    Ok(())
}

fn shown(shape: &[usize]) -> String {
    match shape {
        [] => "a number".to_owned(),
        [size] => format!("a vector of {size}"),
        sizes => {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            format!("a matrix of {}", sizes.join(" x "))
        }
    }
}

impl Literal {
    /// The shape of its value; without one it is worth 1.
    pub fn shape(&self) -> &[usize] {
        self.value.as_ref().map_or(&[], |value| &value.shape)
    }

    /// The numbers of its value; without one it is worth 1.
    pub fn numbers(&self) -> &[f64] {
        self.value.as_ref().map_or(&[1.0], |value| &value.numbers)
    }
}
