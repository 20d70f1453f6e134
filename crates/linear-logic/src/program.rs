//! How texts add to what is declared.
//!
//! The data way of a file: [`parse::file`] gives declarations, and [`Program::load`] elaborates one after the other,
//! each against those before it. A refused definition leaves its declared type behind, so that those after it are
//! still checked. A [`Program`] begins with the [`library`].

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::ast::{Declaration, Name};
use crate::declared::{Abbreviation, MAX_ADVICE};
pub use crate::declared::{Checked, Program};
use crate::elaborate::{self, Mode, Names};
use crate::error::{Kind, Refusal, Result, Source};
use crate::library;
use crate::literal::Order;
use crate::parse;
use crate::term::Definition;

/// What a file led to.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In the order of the text.
    pub refusals: Vec<Refusal>,
    /// Names of the library that are hidden from now on.
    pub warnings: Vec<Refusal>,
}

impl Program {
    /// The library alone, for an order of words; `mode` is for the texts to come.
    ///
    /// # Errors
    /// None in practice: the library is checked by every test.
    pub fn new(order: Order, mode: Mode) -> Result<Self> {
        let mut program = Self {
            order,
            mode: Mode::default(),
            types: HashMap::new(),
            atoms: HashSet::new(),
            definitions: HashMap::new(),
            library: HashMap::new(),
            list: Vec::new(),
            library_size: 0,
            advice: Cell::new(MAX_ADVICE),
        };
        if let Some(refusal) = program.load(&library::source(order)).refusals.pop() {
            return Err(refusal);
        }
        program.mode = mode;
        program.library = std::mem::take(&mut program.definitions);
        program.library_size = program.list.len();
        Ok(program)
    }

    /// Adds the declarations of a file.
    pub fn load(&mut self, source: &Rc<Source>) -> Loaded {
        let mut loaded = Loaded::default();
        let declarations = match parse::file(source) {
            Ok(declarations) => declarations,
            Err(refusal) => {
                loaded.refusals.push(refusal);
                return loaded;
            }
        };
        let mut types: HashSet<Rc<str>> = self.types.keys().cloned().collect();
        for declaration in &declarations {
            let result = match declaration {
                Declaration::Atoms(names) => {
                    self.atoms.extend(names.iter().map(|name| name.text.clone()));
                    Ok(())
                }
                Declaration::Type { name, parameters, formula } => {
                    self.declare_type(source, &mut types, name, parameters, formula)
                }
                Declaration::Definition { name, parameters, formula, term } => {
                    self.define(source, &mut loaded.warnings, (name, parameters), formula, term)
                }
            };
            loaded.refusals.extend(result.err());
        }
        loaded
    }

    fn declare_type(
        &mut self,
        source: &Rc<Source>,
        declared: &mut HashSet<Rc<str>>,
        name: &Name,
        parameters: &[Name],
        formula: &crate::ast::Formula,
    ) -> Result<()> {
        if !declared.insert(name.text.clone()) {
            return Err(duplicate(source, name, "type"));
        }
        let parameters = distinct(source, parameters)?;
        let formula = Names { program: self, source, parameters: &parameters }.formula(formula)?;
        self.types.insert(name.text.clone(), Abbreviation { parameters, formula });
        Ok(())
    }

    fn define(
        &mut self,
        source: &Rc<Source>,
        warnings: &mut Vec<Refusal>,
        (name, parameters): (&Name, &[Name]),
        formula: &crate::ast::Formula,
        term: &crate::ast::Term,
    ) -> Result<()> {
        if self.definitions.contains_key(&name.text) {
            return Err(duplicate(source, name, "definition"));
        }
        if self.library.contains_key(&name.text) {
            let message = format!("the definition of `{}` hides that of the library", name.text);
            warnings.push(Refusal::new(Kind::Unsupported, message).at(source, name.span));
        }
        let parameters = distinct(source, parameters)?;
        let names = Names { program: self, source, parameters: &parameters };
        let formula = names.formula(formula)?;
        let checked = elaborate::closed(names, term, Some(&formula));
        let (term, result) = match checked {
            Ok(checked) => (Some(checked.term), Ok(())),
            Err(refusal) => (None, Err(refusal)),
        };
        let definition = Rc::new(Definition { name: name.text.clone(), parameters, formula, term });
        self.definitions.insert(name.text.clone(), definition.clone());
        self.list.push(definition);
        result
    }
}

fn duplicate(source: &Rc<Source>, name: &Name, what: &str) -> Refusal {
    let message = format!("`{}` is the name of a {what} already", name.text);
    let help = "give one of the two another name".to_owned();
    Refusal::new(Kind::DuplicateName, message).at(source, name.span).variable(&*name.text).help(help)
}

fn distinct(source: &Rc<Source>, parameters: &[Name]) -> Result<Vec<Rc<str>>> {
    let mut seen = HashSet::new();
    for name in parameters {
        if !seen.insert(&name.text) {
            return Err(duplicate(source, name, "parameter"));
        }
    }
    Ok(parameters.iter().map(|name| name.text.clone()).collect())
}
