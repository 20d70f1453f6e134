//! A program in its world: its files, learning, a second semiring; and from a text to answers.
//!
//! Enter at [`calculate`] with a text, or at [`World::calculate`] with files, a seed and an engine
//! of one's own.

use crate::analyse::{Analysed, analyse_tree};
use crate::answer::{Answer, Minimized, text};
use crate::ast::{Program as Tree, Span};
use crate::auto::Auto;
use crate::checkpoints::{Checkpoints, Kept, Learning};
use crate::engine::{Budget, Engine, Parameters, Value};
use crate::error::{Code, Refusal, Warning};
use crate::fast::Fast;
use crate::files::{Files, Folder};
use crate::function::UserFunctions;
use crate::learn::{self, Keeper, Moment, State, Stored};
use crate::lower::{InSemiring, Options};
use crate::program::{Minimize, Program, TensorId};
use crate::run::{Host, Outcome, run};
use crate::source::Source;

/// What is told of a step of learning: its number, how many there are, and the loss before it.
pub type Progress<'a> = Box<dyn FnMut(u64, u64, f64) + 'a>;

/// The world of one program.
pub struct World<'a> {
    source: &'a Source,
    functions: UserFunctions,
    options: Options,
    files: Box<dyn Folder + 'a>,
    progress: Progress<'a>,
    checkpoints: Option<Checkpoints<'a>>,
}

impl<'a> World<'a> {
    /// The world of a program: its files, and the seed of start values, sampling and shuffling.
    pub fn new(source: &'a Source, files: impl Folder + 'a, seed: u64) -> World<'a> {
        let options = Options { seed, ..Options::default() };
        World {
            source,
            functions: UserFunctions::default(),
            options,
            files: Box::new(files),
            progress: Box::new(|_, _, _| {}),
            checkpoints: None,
        }
    }

    /// The same world with further elementwise functions.
    #[must_use]
    pub fn with_functions(self, functions: UserFunctions) -> World<'a> {
        World { functions, ..self }
    }

    /// The same world, where somebody looks on while it learns.
    #[must_use]
    pub fn with_progress(self, progress: Progress<'a>) -> World<'a> {
        World { progress, ..self }
    }

    /// The same world, where learning is kept and goes on where it was left.
    #[must_use]
    pub fn with_checkpoints(self, checkpoints: Checkpoints<'a>) -> World<'a> {
        World { checkpoints: Some(checkpoints), ..self }
    }

    /// The stage of reading.
    ///
    /// # Errors
    /// All refusals of that stage, in order of place.
    pub fn read(&self) -> Result<Tree, Vec<Refusal>> {
        self.source.read(&self.functions)
    }

    /// The stages from names to recursion.
    ///
    /// # Errors
    /// All refusals of the first stage that has any, in order of place.
    pub fn analyse(&mut self, tree: Tree) -> Result<Analysed, Vec<Refusal>> {
        self.lower(tree, &self.options.clone())
    }

    fn lower(&mut self, tree: Tree, options: &Options) -> Result<Analysed, Vec<Refusal>> {
        analyse_tree(&self.source.text, tree, &mut *self.files, &self.functions, options)
    }

    /// The whole way: reads, analyses, and carries out all queries and file writes.
    ///
    /// # Errors
    /// All refusals of the first stage that has any. A refusal of the run is in the outcome, behind
    /// the answers that were given before it.
    pub fn calculate(&mut self, engine: &mut dyn Engine, budget: Budget) -> Result<Calculated, Vec<Refusal>> {
        let analysed = self.analyse(self.read()?)?;
        let source = self.source;
        let outcome = run(&analysed.program, &source.text, budget, engine, self);
        Ok(Calculated { program: analysed.program, warnings: analysed.warnings, outcome })
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
    ) -> Result<(), Refusal> {
        self.files.files().write(program, file, tensor, value, span)
    }

    fn minimize(
        &mut self,
        engine: &mut dyn Engine,
        program: &Program,
        budget: Budget,
        parameters: &mut Parameters,
        goal: TensorId,
        minimize: &Minimize,
    ) -> Result<Minimized, Refusal> {
        let kept = match &mut self.checkpoints {
            Some(checkpoints) => {
                let tree = self.source.read(&self.functions).map_err(first)?;
                let (text, span) = (&self.source.text, minimize.span);
                let learning = Learning { text, tree: &tree, program, goal, span, parameters };
                Some(checkpoints.of(&learning)?)
            }
            None => None,
        };
        let mut keeper = Watched { progress: &mut *self.progress, kept };
        learn::resumable(engine, program, budget, parameters, goal, minimize, &mut keeper)
    }

    fn in_semiring(&mut self, asked: InSemiring) -> Result<Program, Refusal> {
        let options = Options { semiring: Some(asked), ..self.options.clone() };
        let tree = self.read().map_err(first)?;
        self.lower(tree, &options).map(|analysed| analysed.program).map_err(first)
    }
}

/// The first of some refusals.
fn first(reports: Vec<Refusal>) -> Refusal {
    let none = || Refusal::new(Code::NotYet, Span::default(), "the program is refused");
    reports.into_iter().next().unwrap_or_else(none)
}

/// Learning that is looked at, and maybe kept.
struct Watched<'a> {
    progress: &'a mut dyn FnMut(u64, u64, f64),
    kept: Option<Kept<'a>>,
}

impl Keeper for Watched<'_> {
    fn step(&mut self, step: u64, steps: u64, loss: f64) {
        (self.progress)(step, steps, loss);
    }

    fn kept(&mut self) -> Result<Option<Stored>, Refusal> {
        self.kept.as_mut().map_or(Ok(None), Kept::newest)
    }

    fn stands<'s>(
        &mut self,
        moment: Moment,
        step: u64,
        state: &dyn Fn() -> State<'s>,
    ) -> Result<(), Refusal> {
        self.kept.as_mut().map_or(Ok(()), |kept| kept.stands(moment, step, state))
    }
}

/// What came of a program.
#[derive(Debug)]
pub struct Calculated {
    /// Its core form: the spellings of symbols, the tensors' domains.
    pub program: Program,
    /// The warnings of the analysis, in order of place.
    pub warnings: Vec<Warning>,
    /// Answers, learned parameters, and what ended the run early.
    pub outcome: Outcome,
}

impl Calculated {
    /// An answer as people read it: the query's text, and below it what it says.
    pub fn show(&self, answer: &Answer) -> String {
        text::answer(&self.program.symbols, answer)
    }

    /// All answers, one below the other.
    pub fn text(&self) -> String {
        self.outcome.answers.iter().map(|answer| self.show(answer) + "\n").collect()
    }
}

/// What [`calculate`] may use: the command's limit of tuples, and 4 GiB.
const BUDGET: Budget = Budget { tuples: 100_000_000, bytes: 4 << 30 };

/// From a text to its answers, with files in the working folder, seed 0, and the engine that the
/// command takes by default.
///
/// # Errors
/// As [`World::calculate`].
pub fn calculate(text: &str) -> Result<Calculated, Vec<Refusal>> {
    let mut source = Source::new("text", text.as_bytes());
    source.expand(&mut Files::new("."));
    let mut engine = Auto::new(Box::new(Fast::default()));
    World::new(&source, Files::new("."), 0).calculate(&mut engine, BUDGET)
}
