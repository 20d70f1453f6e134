//! What a program asks of the world: its files, learning, a second semiring.

use indicatif::{ProgressBar, ProgressStyle};
use tensor_logic::analyse::{Analysed, analyse_tree};
use tensor_logic::answer::Minimized;
use tensor_logic::ast::{Program as Tree, Span};
use tensor_logic::engine::{Budget, Engine, Parameters, Value};
use tensor_logic::error::{Code, Report};
use tensor_logic::files::Files;
use tensor_logic::function::UserFunctions;
use tensor_logic::learn;
use tensor_logic::lower::Options;
use tensor_logic::program::{Kind, Minimize, Program, TensorId};
use tensor_logic::run::Host;
use tensor_logic::source::Source;

/// The world of one program.
pub(crate) struct World<'a> {
    source: &'a Source,
    functions: UserFunctions,
    options: Options,
    files: Files,
}

impl<'a> World<'a> {
    pub(crate) fn new(source: &'a Source, files: Files, seed: u64) -> World<'a> {
        let options = Options { seed, ..Options::default() };
        World { source, functions: UserFunctions::default(), options, files }
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

impl Host for World<'_> {
    fn write(
        &mut self,
        program: &Program,
        file: &str,
        tensor: TensorId,
        value: &Value,
        span: Span,
    ) -> Result<(), Report> {
        self.files.write(program, file, tensor, value, span)
    }

    fn minimize(
        &mut self,
        engine: &mut dyn Engine,
        program: &Program,
        budget: Budget,
        parameters: &mut Parameters,
        goal: TensorId,
        minimize: &Minimize,
    ) -> Result<Minimized, Report> {
        // It is drawn on standard error, and only on a terminal.
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} loss {msg}");
        let bar = ProgressBar::new(0);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let mut progress = |step: u64, steps: u64, loss: f64| {
            bar.set_length(steps);
            bar.set_position(step);
            if !bar.is_hidden() {
                bar.set_message(format!("{loss:.6}"));
            }
        };
        let done = learn::minimize(engine, program, budget, parameters, goal, minimize, &mut progress);
        bar.finish_and_clear();
        done
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
