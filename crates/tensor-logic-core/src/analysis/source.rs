//! A program as it comes from outside: bytes of a file, and what is given and asked beside it.
//!
//! Enter at [`Source`]. Data and queries from outside stand behind the text, each on a line of its
//! own, so that all of a program has places in one text.

use std::collections::BTreeSet;

use crate::ast::{ExprKind, Number, Program, Reference, RightSide, Statement, StatementKind};
use crate::error::{Code, Refusal};
use crate::function::UserFunctions;
use crate::include::{self, Texts};
use crate::names::{numeric, walk};
use crate::read::{decode, read};

/// A program's text, and what is asked beside it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name in messages.
    pub file: String,
    /// The text, with the queries that were added.
    pub text: String,
    /// What was found when the bytes were decoded.
    broken: Vec<Refusal>,
    /// How many bytes of the text are the file's.
    own: usize,
    /// Whether the file's own queries are passed over.
    silent: bool,
    /// Whether file writes are passed over.
    unwritten: bool,
    /// Numeric constants with other values.
    settings: Vec<(String, f64)>,
    /// Tensors whose data is given from outside.
    given: BTreeSet<String>,
    /// Why what it includes could not be.
    refused: Vec<Refusal>,
}

impl Source {
    /// A program from the bytes of a file. What is no UTF-8 is refused when it is read.
    pub fn new(file: impl Into<String>, bytes: &[u8]) -> Source {
        let (text, broken) = decode(bytes);
        Source {
            file: file.into(),
            own: text.len(),
            text,
            broken,
            silent: false,
            unwritten: false,
            settings: Vec::new(),
            given: BTreeSet::new(),
            refused: Vec::new(),
        }
    }

    /// Puts the files that the program includes into their places; what is wrong with them is refused when it is read.
    /// Before anything is added to the program.
    pub fn expand(&mut self, texts: &mut dyn Texts) {
        if !self.broken.is_empty() && include::includes(&self.text) {
            // Their places are those of the text as it is.
            self.refused = self.broken.clone();
            return;
        }
        match include::expand(&self.text, texts) {
            Ok(text) => self.text = text,
            Err(failure) => (self.text, self.refused) = (failure.text, failure.reports),
        }
        self.own = self.text.len();
    }

    /// Asks a query behind the program's own (`--query`).
    pub fn ask(&mut self, query: &str) {
        self.add(query);
    }

    /// Takes the data of a tensor from outside, by a statement if there is one: what the program's own statements give
    /// the tensor is passed over.
    pub fn give(&mut self, tensor: impl Into<String>, statement: Option<&str>) {
        self.given.insert(tensor.into());
        statement.into_iter().for_each(|statement| self.add(statement));
    }

    fn add(&mut self, statement: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(statement);
        self.text.push('\n');
    }

    /// Passes over the program's own queries (`--only-queries`).
    pub fn silence(&mut self) {
        self.silent = true;
    }

    /// Passes over the program's file writes.
    pub fn write_nothing(&mut self) {
        self.unwritten = true;
    }

    /// Gives a numeric constant another value (`--set`).
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        self.settings.push((name.into(), value));
    }

    /// Whether the bytes were a text.
    ///
    /// # Errors
    /// All syntax errors, if they were not.
    pub fn decoded(&self) -> Result<(), Vec<Refusal>> {
        if self.broken.is_empty() {
            return Ok(());
        }
        let refused = read(&self.text, self.broken.clone(), &UserFunctions::default()).err();
        Err(refused.unwrap_or_default().into_iter().filter(|report| report.code == Code::Syntax).collect())
    }

    /// Reads the program, as [`read`] does, and carries out what is asked beside it.
    ///
    /// # Errors
    /// All refusals of the stage "reading", in order of place.
    pub fn read(&self, functions: &UserFunctions) -> Result<Program, Vec<Refusal>> {
        if !self.refused.is_empty() {
            return Err(self.refused.clone());
        }
        let mut program = read(&self.text, self.broken.clone(), functions)?;
        if self.silent {
            program.statements.retain(|statement| !(self.is_own(statement) && is_query(statement)));
        }
        program.statements.retain(|statement| {
            let is_write = matches!(statement.kind, StatementKind::Write { .. });
            let elsewhere = self.is_own(statement) && self.is_given(statement);
            !(elsewhere || is_write && self.unwritten)
        });
        for (name, value) in &self.settings {
            // Numbers given several times are summed: the first becomes the value, the rest go.
            let mut first = true;
            program.statements.retain_mut(|statement| {
                !is_constant(statement, name) || {
                    overwrite(statement, *value);
                    std::mem::take(&mut first)
                }
            });
        }
        Ok(program)
    }

    /// What is asked beside the program and cannot be: an added statement that is no query, a
    /// constant that the program does not have.
    pub fn misuse(&self, program: &Program) -> Option<String> {
        let added =
            program.statements.iter().find(|statement| !self.is_own(statement) && !is_query(statement));
        if let Some(statement) = added {
            let text = self.text.get(statement.span.start..statement.span.end).unwrap_or("");
            return Some(format!("`{text}` is not a query"));
        }
        let given = |name: &str| program.statements.iter().any(|statement| is_constant(statement, name));
        let unknown = self.settings.iter().find(|(name, _)| !given(name))?;
        Some(format!("the program has no numeric constant `{}`", unknown.0))
    }

    fn is_given(&self, statement: &Statement) -> bool {
        gives(statement).is_some_and(|tensor| self.given.contains(tensor))
    }

    fn is_own(&self, statement: &Statement) -> bool {
        statement.span.start < self.own
    }
}

/// The tensor that a statement gives data to, but for a number of that name, which is set.
fn gives(statement: &Statement) -> Option<&str> {
    let (reference, data) = match &statement.kind {
        StatementKind::Equation { head, right: RightSide::Array(_) | RightSide::File { .. }, .. } => {
            (head, true)
        }
        StatementKind::Equation { head, right: RightSide::Expr { expr, .. }, .. } => {
            (head, !head.places.is_empty() && is_ground(head) && walk::number(expr).is_some())
        }
        StatementKind::Bare { reference, kind: None } => (reference, is_ground(reference)),
        _ => return None,
    };
    data.then_some(reference.name.text.as_str())
}

fn is_ground(reference: &Reference) -> bool {
    reference.places.iter().all(walk::is_constant)
}

fn is_query(statement: &Statement) -> bool {
    matches!(statement.kind, StatementKind::Query { .. })
}

/// Whether a statement is `NAME = number`.
fn is_constant(statement: &Statement, name: &str) -> bool {
    let head = match &statement.kind {
        StatementKind::Equation { head, .. } => head,
        _ => return false,
    };
    head.name.text == name && numeric(statement).is_some()
}

/// Gives `NAME = number` another number.
fn overwrite(statement: &mut Statement, value: f64) {
    if let StatementKind::Equation { right: RightSide::Expr { expr, .. }, .. } = &mut statement.kind {
        expr.kind = ExprKind::Number(Number { value, text: value.to_string(), span: expr.span });
    }
}
