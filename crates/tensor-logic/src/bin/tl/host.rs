//! What a program asks of the world: its files, learning, a second semiring.

use std::path::PathBuf;

use tensor_logic::analyse::{Analysed, analyse_tree};
use tensor_logic::answer::Minimized;
use tensor_logic::ast::{self, Program as Tree, Span};
use tensor_logic::engine::{Budget, Engine, Parameters, Value};
use tensor_logic::error::{Code, Report};
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{FileSource, Loaded, Options};
use tensor_logic::program::{Kind, Minimize, Program, TensorId};
use tensor_logic::run::Host;
use tensor_logic::source::Source;
use tensor_logic::value::Symbols;

/// The world of one program.
pub(crate) struct World<'a> {
    source: &'a Source,
    functions: UserFunctions,
    options: Options,
    files: Files,
}

/// The folder that a program's files lie in.
struct Files {
    folder: PathBuf,
}

impl<'a> World<'a> {
    pub(crate) fn new(source: &'a Source, folder: PathBuf, seed: u64) -> World<'a> {
        let options = Options { seed, ..Options::default() };
        World { source, functions: UserFunctions::default(), options, files: Files { folder } }
    }

    /// The stage of reading.
    pub(crate) fn read(&self) -> Result<Tree, Vec<Report>> {
        self.source.read(&self.functions)
    }

    /// The stages from names to recursion.
    pub(crate) fn analyse(&mut self, tree: Tree) -> Result<Analysed, Vec<Report>> {
        analyse_tree(&self.source.text, tree, &mut self.files, &self.functions, &self.options)
    }
}

impl FileSource for Files {
    fn load(&mut self, file: &ast::Text, _: &[ast::Name], _: &mut Symbols) -> Result<Loaded, Report> {
        let path = self.folder.join(&file.value);
        let message = format!("reading files ({}) cannot be evaluated yet", path.display());
        Err(Report::new(Code::NotYet, file.span, message))
    }
}

impl Host for World<'_> {
    fn write(&mut self, _: &Program, file: &str, _: TensorId, _: &Value, span: Span) -> Result<(), Report> {
        Err(Report::new(Code::NotYet, span, format!("writing files ({file}) cannot be evaluated yet")))
    }

    fn minimize(
        &mut self,
        _: &mut dyn Engine,
        _: &Program,
        _: Budget,
        _: &mut Parameters,
        _: TensorId,
        minimize: &Minimize,
    ) -> Result<Minimized, Report> {
        Err(Report::new(Code::NotYet, minimize.span, "`@minimize` cannot be evaluated yet"))
    }

    fn in_semiring(&mut self, kind: Kind) -> Result<Program, Report> {
        let options = Options { semiring: Some(kind), ..self.options.clone() };
        let first = |reports: Vec<Report>| {
            let none =
                || Report::new(Code::NotYet, Span::default(), "the program is refused in this semiring");
            reports.into_iter().next().unwrap_or_else(none)
        };
        let tree = self.read().map_err(first)?;
        let analysed = analyse_tree(&self.source.text, tree, &mut self.files, &self.functions, &options);
        analysed.map(|analysed| analysed.program).map_err(first)
    }
}
