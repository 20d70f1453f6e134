//! A program with data and functions of the program around it: text, arrays and relations in;
//! answers out.
//!
//! Enter at [`Notebook`]. It does what `tl run` does, in memory:
//!
//! ```
//! # fn main() -> Result<(), tensor_logic::notebook::Refusals> {
//! use tensor_logic::notebook::Notebook;
//!
//! let mut notebook = Notebook::new("Reach(x, y) <- Edge(x, y)\nReach(x, z) <- Reach(x, y), Edge(y, z)");
//! notebook.relation("Edge", [("Ann", "Bob"), ("Bob", "Cal")]);
//! assert_eq!(notebook.ask("Reach(Ann, x)?")?.tuples(), [["Bob"], ["Cal"]]);
//! # Ok(())
//! # }
//! ```
//!
//! Data is given to the text as files are: every array and relation is a statement behind the
//! text that names a file which only this notebook has. What `@minimize` learns stays for later
//! queries.

mod data;
mod reply;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::ast::{Span, Statement, StatementKind};
use crate::auto::Auto;
use crate::draw::{Severity, Sheet};
use crate::engine::{Budget, Engine, Parameters};
use crate::error::{Code, Refusal};
use crate::fast::Fast;
use crate::files::Files;
use crate::function::{UserFunction, UserFunctions};
use crate::program::{Program, Role, TensorId};
use crate::reference::Reference;
use crate::run::run_from;
use crate::source::Source;
use crate::world::World;

pub use data::{Array, Constant, Row};
use data::{Gift, Gifts};
pub use reply::Reply;

/// Which evaluator answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// The fast one.
    #[default]
    Auto,
    /// The reference interpreter: plain loops.
    Reference,
}

/// A refused program or query.
#[non_exhaustive]
#[derive(Debug, Clone)]
pub struct Refusals {
    /// Why, in order of place.
    pub reports: Vec<Refusal>,
    /// The text that the reports point into.
    pub text: String,
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sheet = Sheet::new("program", &self.text);
        let drawn: Vec<String> =
            self.reports.iter().map(|report| sheet.draw(report, Severity::Error)).collect();
        f.write_str(drawn.join("").trim_end())
    }
}

impl std::error::Error for Refusals {}

/// A program, and what is given to it.
#[derive(Debug, Clone)]
pub struct Notebook {
    text: String,
    gifts: BTreeMap<String, Gift>,
    functions: UserFunctions,
    engine: EngineKind,
    budget: Budget,
    seed: u64,
    folder: PathBuf,
    learned: BTreeMap<String, Arc<[f64]>>,
}

/// The limits of a notebook until others are set.
const BUDGET: Budget = Budget { tuples: 100_000_000, bytes: 4 << 30 };

/// Programs may be nested 256 deep, and each stage walks them by recursion.
const STACK: usize = 256 << 20;

impl Notebook {
    /// A notebook with a program. What is wrong with it is said by the first question.
    pub fn new(text: impl Into<String>) -> Notebook {
        Notebook {
            text: text.into(),
            gifts: BTreeMap::new(),
            functions: UserFunctions::default(),
            engine: EngineKind::default(),
            budget: BUDGET,
            seed: 0,
            folder: PathBuf::from("."),
            learned: BTreeMap::new(),
        }
    }

    /// The program.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Another program for the same data.
    pub fn set_text(&mut self, text: impl Into<String>) {
        self.text = text.into();
    }

    /// Gives a tensor its elements, in place of those that the text gives it. A parameter starts
    /// with them.
    pub fn set(&mut self, name: &str, array: impl Into<Array>) {
        let array = array.into();
        self.learned.remove(name);
        self.gifts.insert(name.to_owned(), Gift::Array(array));
    }

    /// Gives a relation its tuples, in place of those that the text gives it.
    pub fn relation(&mut self, name: &str, rows: impl IntoIterator<Item = impl Into<Row>>) {
        let rows = rows.into_iter().map(|row| (row.into(), None)).collect();
        self.gifts.insert(name.to_owned(), Gift::Relation(rows));
    }

    /// Gives a relation tuples with values.
    pub fn valued(&mut self, name: &str, rows: impl IntoIterator<Item = (impl Into<Row>, f64)>) {
        let rows = rows.into_iter().map(|(row, value)| (row.into(), Some(value))).collect();
        self.gifts.insert(name.to_owned(), Gift::Relation(rows));
    }

    /// Registers an elementwise function of one argument and its derivative.
    pub fn function(
        &mut self,
        name: &str,
        value: impl Fn(f64) -> f64 + Send + Sync + 'static,
        derivative: impl Fn(f64) -> f64 + Send + Sync + 'static,
    ) {
        let first = |arguments: &[f64]| arguments.first().copied().unwrap_or(f64::NAN);
        self.functions.register(UserFunction {
            name: name.to_owned(),
            arity: 1,
            value: Arc::new(move |arguments| value(first(arguments))),
            derivative: Arc::new(move |arguments, _| derivative(first(arguments))),
        });
    }

    /// Which evaluator answers.
    pub fn set_engine(&mut self, engine: EngineKind) {
        self.engine = engine;
    }

    /// The limits of evaluation.
    pub fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// The seed of start values, sampling and shuffling.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Where the paths of files in the program start.
    pub fn set_folder(&mut self, folder: impl Into<PathBuf>) {
        self.folder = folder.into();
    }

    /// Answers one query; the program's own queries are passed over, and no file is written.
    ///
    /// # Errors
    /// The refusals of the program and of the query.
    pub fn ask(&mut self, query: &str) -> Result<Reply, Refusals> {
        let (mut replies, _) = self.answer(Asked::Only(query))?;
        let nothing = || self.refused(Span::default(), "this is no query: a query ends with `?`");
        replies.pop().ok_or_else(nothing)
    }

    /// Answers all queries of the program and writes its files.
    ///
    /// # Errors
    /// The refusals of the program and of its first refused query.
    pub fn run(&mut self) -> Result<Vec<Reply>, Refusals> {
        self.answer(Asked::Own).map(|(replies, _)| replies)
    }

    /// Everything that needs no evaluation: the warnings.
    ///
    /// # Errors
    /// The refusals of the program.
    pub fn check(&mut self) -> Result<Vec<Refusal>, Refusals> {
        self.on_a_deep_stack(|notebook| {
            let source = notebook.source(&Asked::Own);
            let mut world = notebook.world(&source);
            let analysed = world.read().and_then(|tree| world.analyse(tree));
            analysed
                .map(|analysed| analysed.warnings)
                .map_err(|reports| Refusals { reports, text: source.text.clone() })
        })
    }

    /// The core form of the program, without its queries, with what is given to it: for an engine of one's
    /// own, which takes the values of parameters with every request.
    ///
    /// # Errors
    /// The refusals of the program.
    pub fn core(&mut self) -> Result<Program, Refusals> {
        self.on_a_deep_stack(|notebook| {
            let source = notebook.source(&Asked::Nothing);
            let mut world = notebook.world(&source);
            let analysed = world.read().and_then(|tree| world.analyse(tree));
            drop(world);
            match analysed {
                Ok(analysed) => Ok(analysed.program),
                Err(reports) => Err(Refusals { reports, text: source.text }),
            }
        })
    }

    fn refused(&self, span: Span, message: &str) -> Refusals {
        Refusals { reports: vec![Refusal::new(Code::Syntax, span, message)], text: self.text.clone() }
    }

    fn answer(&mut self, asked: Asked<'_>) -> Result<(Vec<Reply>, Vec<Refusal>), Refusals> {
        self.on_a_deep_stack(|notebook| notebook.answer_here(asked))
    }

    fn answer_here(&mut self, asked: Asked<'_>) -> Result<(Vec<Reply>, Vec<Refusal>), Refusals> {
        let source = self.source(&asked);
        let refused = |reports: Vec<Refusal>| Refusals { reports, text: source.text.clone() };
        let mut world = self.world(&source);
        let analysed = world.read().and_then(|tree| world.analyse(tree)).map_err(refused)?;
        let program = &analysed.program;
        let mut engine: Box<dyn Engine> = match self.engine {
            EngineKind::Auto => Box::new(Auto::new(Box::new(Fast::default()))),
            EngineKind::Reference => Box::new(Reference::default()),
        };
        let parameters = self.parameters(program).map_err(|report| refused(vec![report]))?;
        let outcome = run_from(program, &source.text, self.budget, engine.as_mut(), &mut world, parameters);
        drop(world);
        let learned = outcome.parameters.iter();
        self.learned.extend(learned.map(|(id, values)| (program.name(*id).to_owned(), Arc::clone(values))));
        if let Some(report) = outcome.refusal {
            return Err(refused(vec![report]));
        }
        let symbols = Arc::new(program.symbols.clone());
        let reply = |answer| Reply { answer, symbols: Arc::clone(&symbols) };
        Ok((outcome.answers.into_iter().map(reply).collect(), outcome.warnings))
    }

    /// The values of parameters that were learned or set.
    fn parameters(&self, program: &Program) -> Result<Parameters, Refusal> {
        let mut parameters = Parameters::new();
        for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
            if tensor.role != Role::Parameter {
                continue;
            }
            let sizes = tensor.places.iter().map(|place| place.domain.as_ref().map_or(0, |d| d.len()));
            let shape: Vec<usize> = sizes.collect();
            if let Some(Gift::Array(array)) = self.gifts.get(&tensor.name)
                && array.shape() != shape
            {
                let message = format!("`{}` is given {:?} and has {shape:?}", tensor.name, array.shape());
                return Err(Refusal::new(Code::SizeConflict, tensor.span, message));
            }
            let count = shape.iter().product::<usize>();
            let learned = self.learned.get(&tensor.name).filter(|values| values.len() == count);
            let given = match self.gifts.get(&tensor.name) {
                Some(Gift::Array(array)) => Some(array.shared()),
                _ => None,
            };
            parameters.extend(learned.cloned().or(given).map(|values| (id, values)));
        }
        Ok(parameters)
    }

    /// The text, the statements that name what is given, and what is asked.
    fn source(&self, asked: &Asked<'_>) -> Source {
        let parameters = parameters_of(&self.text);
        let mut source = Source::new("program", self.text.as_bytes());
        for (name, gift) in &self.gifts {
            let starts = matches!(gift, Gift::Array(_)) && parameters.contains(name);
            let statement = (!starts && !gift.is_number()).then(|| gift.statement(name));
            source.give(name, statement.as_deref());
            if let Gift::Array(array) = gift
                && let Some(value) = array.number()
            {
                source.set(name, value);
            }
        }
        if !matches!(asked, Asked::Own) {
            source.silence();
            source.write_nothing();
        }
        if let Asked::Only(query) = asked {
            source.ask(query);
        }
        source
    }

    fn world<'a>(&'a self, source: &'a Source) -> World<'a> {
        let files = Gifts { given: &self.gifts, files: Files::new(&self.folder) };
        World::new(source, files, self.seed).with_functions(self.functions.clone())
    }

    /// Runs on a thread of its own, whose stack is only touched where it is needed.
    fn on_a_deep_stack<T: Send>(&mut self, work: impl FnOnce(&mut Notebook) -> T + Send) -> T {
        let mut work = Some(work);
        let mut done = None;
        let notebook = &mut *self;
        let outcome = std::thread::scope(|scope| {
            let work = work.take();
            let done = &mut done;
            let thread = std::thread::Builder::new().stack_size(STACK);
            let started = thread.spawn_scoped(scope, move || *done = work.map(|work| work(notebook)));
            started.map(std::thread::ScopedJoinHandle::join)
        });
        match (outcome, done) {
            (_, Some(done)) => done,
            (Ok(Err(panic)), None) => std::panic::resume_unwind(panic),
            (Ok(Ok(())) | Err(_), None) => std::panic::resume_unwind(Box::new("no thread could be started")),
        }
    }
}

/// What is asked.
enum Asked<'a> {
    /// The program's own queries and writes.
    Own,
    /// This query only.
    Only(&'a str),
    /// Nothing.
    Nothing,
}

/// The names that the text declares with a start value.
fn parameters_of(text: &str) -> Vec<String> {
    let (tree, _) = crate::parse::parse(text);
    let name = |statement: &Statement| match &statement.kind {
        StatementKind::Parameter { reference, .. } => Some(reference.name.text.clone()),
        _ => None,
    };
    tree.statements.iter().filter_map(name).collect()
}
