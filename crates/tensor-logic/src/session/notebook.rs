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
//! queries, and so does what was computed, as long as it would come out the same: twenty queries over one closure
//! derive it once. What is refused or interrupted leaves what was true before.
//!
//! The file is long because it is one type: what is given to a notebook, how it evaluates, what it can be asked.

mod data;
mod kept;
mod learned;
mod reply;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::answer::Answer;
use crate::ast::{Span, Statement, StatementKind};
use crate::draw::{Severity, Sheet};
use crate::engine::{Budget, Parameters, is_interrupted};
use crate::error::{Code, Refusal, Warning};
use crate::explain::explain;
use crate::fast::{Precision, Storage};
use crate::files::Files;
use crate::function::{UserFunction, UserFunctions};
use crate::gradient::evaluate::{differentiated, gradients_at, with_respect_to};
use crate::plan::plan;
use crate::profile::{self, Profile};
use crate::program::{Action, Kind, Program, Role, TensorId};
use crate::run::{missing_data, rounded, run_from};
use crate::source::Source;
use crate::start::start_values;
use crate::value::Symbols;
use crate::world::World;

pub use data::{Array, Constant, Row};
use data::{Gift, Gifts};
use kept::Kept;
use learned::Learned;
pub use reply::{Gradients, Reply};
pub use settings::EngineKind;
use settings::{Settings, Watcher, device};

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

impl Refusals {
    /// Whether nothing is wrong, and somebody only interrupted the work ([`Notebook::stop_when`]).
    pub fn is_interrupted(&self) -> bool {
        self.reports.iter().any(is_interrupted)
    }
}

/// A program, and what is given to it.
#[derive(Debug, Clone)]
pub struct Notebook {
    text: String,
    gifts: BTreeMap<String, Gift>,
    functions: UserFunctions,
    settings: Settings,
    learned: BTreeMap<String, Learned>,
    warnings: Vec<Warning>,
    kept: Kept,
    /// A text, what it includes put in, and its parameters: a loop that gives it batch after batch asks for them each time.
    declared: (String, Vec<String>),
}

/// Programs may be nested 256 deep, and each stage walks them by recursion.
const STACK: usize = 256 << 20;

impl Notebook {
    /// A notebook with a program. What is wrong with it is said by the first question.
    pub fn new(text: impl Into<String>) -> Notebook {
        Notebook {
            text: text.into(),
            gifts: BTreeMap::new(),
            functions: UserFunctions::default(),
            settings: Settings::default(),
            learned: BTreeMap::new(),
            warnings: Vec::new(),
            kept: Kept::default(),
            declared: Default::default(),
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

    /// Forgets what was learned of a tensor, if anything was: it starts anew.
    pub fn forget(&mut self, name: &str) -> bool {
        self.learned.remove(name).is_some()
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
        let value = move |arguments: &[f64]| value(first(arguments));
        self.function_of(name, 1, value, move |arguments, _| derivative(first(arguments)));
    }

    /// Registers an elementwise function of several arguments, and its derivative by the argument with a number, from 0.
    pub fn function_of(
        &mut self,
        name: &str,
        arity: usize,
        value: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
        derivative: impl Fn(&[f64], usize) -> f64 + Send + Sync + 'static,
    ) {
        // What was computed with another function of this name is no longer true.
        self.kept.forget();
        let (value, derivative) = (Arc::new(value), Arc::new(derivative));
        self.functions.register(UserFunction { name: name.to_owned(), arity, value, derivative });
    }

    /// Which evaluator answers.
    pub fn set_engine(&mut self, engine: EngineKind) {
        self.kept.forget();
        self.settings.engine = engine;
    }

    /// The type of all numbers, 64 bits if nothing is said; programs that count have 64 bits always.
    pub fn set_precision(&mut self, precision: Precision) {
        self.kept.forget();
        self.settings.precision = precision;
    }

    /// How tensors are stored, if not as is cheaper.
    pub fn set_storage(&mut self, storage: Storage) {
        self.kept.forget();
        self.settings.storage = storage;
    }

    /// The number of threads; until it is set, those of the program around the notebook. Answers do not depend on it.
    ///
    /// # Errors
    /// `bad-argument` for none, and where the system starts no more threads.
    pub fn set_threads(&mut self, threads: usize) -> Result<(), Refusals> {
        if threads == 0 {
            return Err(self.unsettled(Code::BadArgument, "there must be a thread"));
        }
        let threads = training::threads::checked(threads);
        let threads = threads.map_err(|error| self.unsettled(Code::BadArgument, &error.to_string()))?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build();
        let pool = pool.map_err(|error| self.unsettled(Code::BadArgument, &error.to_string()))?;
        self.settings.pool = Some(Arc::new(pool));
        Ok(())
    }

    /// Where programs are evaluated: `cpu`.
    ///
    /// # Errors
    /// `not-yet` for `cuda`, `cuda:N` and `metal`, which the language knows; `bad-argument` for any other name.
    pub fn set_device(&mut self, name: &str) -> Result<(), Refusals> {
        device(name).map_err(|(code, message)| self.unsettled(code, &message))
    }

    /// The limits of evaluation.
    pub fn set_budget(&mut self, budget: Budget) {
        self.settings.budget = budget;
    }

    /// The seed of start values, sampling and shuffling.
    pub fn set_seed(&mut self, seed: u64) {
        self.settings.seed = seed;
    }

    /// Where the paths of files in the program start.
    pub fn set_folder(&mut self, folder: impl Into<PathBuf>) {
        self.settings.folder = folder.into();
    }

    /// Tells of each step of learning: its number from 0, how many there are, and the loss before it.
    pub fn set_progress(&mut self, told: impl FnMut(u64, u64, f64) + Send + 'static) {
        self.settings.progress = Watcher::new(told);
    }

    /// Ends the work at hand soon after this becomes true, between one operation and the next. What was true before stays
    /// true: answers, what was learned, what is kept. Whoever sets it clears it before the next question.
    pub fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.settings.stop = Some(stop);
    }

    fn unsettled(&self, code: Code, message: &str) -> Refusals {
        let reports = vec![Refusal::new(code, Span::default(), message)];
        Refusals { reports, text: String::new() }
    }

    /// Answers one query; the program's own queries are passed over, and no file is written.
    ///
    /// # Errors
    /// The refusals of the program and of the query.
    pub fn ask(&mut self, query: &str) -> Result<Reply, Refusals> {
        let mut replies = self.answer(&Asked::Only(query))?;
        replies.pop().ok_or_else(|| self.no_query())
    }

    /// Answers all queries of the program and writes its files.
    ///
    /// # Errors
    /// The refusals of the program and of its first refused query.
    pub fn run(&mut self) -> Result<Vec<Reply>, Refusals> {
        self.answer(&Asked::Own)
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
            analysed.map(|analysed| analysed.warnings).map_err(|reports| refused(&source, reports))
        })
    }

    /// The warnings of the last question, gradient or run.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The value of a scalar and its gradients by tensors (by all parameters that it needs, if none is named), at what was
    /// learned.
    ///
    /// # Errors
    /// The refusals of the program; `not-scalar`, `nothing-to-learn`, and those of the evaluation.
    pub fn gradients(&mut self, goal: &str, by: &[&str]) -> Result<Gradients, Refusals> {
        self.on_a_deep_stack(|notebook| notebook.gradients_here(goal, by))
    }

    fn gradients_here(&mut self, goal: &str, by: &[&str]) -> Result<Gradients, Refusals> {
        let query = format!("{}?", goal.trim().trim_end_matches('?'));
        let (source, program, warnings) = self.analysed(&Asked::Only(&query))?;
        self.warnings = warnings;
        let goal = differentiated(&program).map_err(|report| refused(&source, vec![report]))?;
        let parameters = self.parameters(&program).map_err(|report| refused(&source, vec![report]))?;
        let names: Vec<String> = by.iter().map(|name| (*name).to_owned()).collect();
        let mut engine = self.kept.engine(&self.settings, &program);
        let found = missing_data(&program, goal)
            .and_then(|()| rounded(&program, goal))
            .and_then(|()| with_respect_to(&program, goal, &names))
            .and_then(|by| {
                gradients_at(engine.as_mut(), &program, self.settings.budget, parameters, goal, &by)
            });
        let symbols = Arc::new(program.symbols.clone());
        self.kept.keep(engine, program);
        let found = found.map_err(|report| refused(&source, vec![report]))?;
        let reply = |(name, content): (String, _)| {
            let text = format!("d{}/d{name}", query.trim_end_matches('?'));
            let (counts, minimize, sample, embed, explain) = (None, None, None, None, None);
            let answer =
                Answer { text, line: 0, kind: Kind::Real, content, counts, minimize, sample, embed, explain };
            (name, Reply { answer, symbols: Arc::clone(&symbols) })
        };
        Ok(Gradients { value: found.value, by: found.gradients.into_iter().map(reply).collect() })
    }

    /// What the program is, and how it would be evaluated for a query, else for its own ones: the text of `tl explain`.
    ///
    /// # Errors
    /// The refusals of the program and of the query.
    pub fn explain(&mut self, query: Option<&str>) -> Result<String, Refusals> {
        self.on_a_deep_stack(|notebook| {
            let (source, program, warnings) = notebook.analysed(&query.map_or(Asked::Own, Asked::Only))?;
            notebook.warnings = warnings;
            let planned = plan(&program, &notebook.settings.fast(), notebook.settings.budget);
            let planned = planned.map_err(|report| refused(&source, vec![report]))?;
            Ok(explain(&program, &source.text).with_plan(&planned).text())
        })
    }

    /// Answers one query, and says how it was evaluated and how long that took. What was computed before and still holds is
    /// not evaluated and has no time. The reference interpreter keeps no profile.
    ///
    /// # Errors
    /// Those of [`Notebook::ask`].
    pub fn profile(&mut self, query: &str) -> Result<(Reply, Profile), Refusals> {
        self.profiled(query).map(|(reply, profile, _)| (reply, profile))
    }

    /// The same with the profile as the text of `tl profile`.
    ///
    /// # Errors
    /// Those of [`Notebook::ask`].
    pub fn profile_text(&mut self, query: &str) -> Result<(Reply, String), Refusals> {
        let since = Instant::now();
        let (reply, profile, text) = self.profiled(query)?;
        Ok((reply, profile::text(&profile, &text, since.elapsed())))
    }

    fn profiled(&mut self, query: &str) -> Result<(Reply, Profile, String), Refusals> {
        self.kept.observe(true, &self.settings);
        let reply = self.ask(query);
        let profile = self.kept.observed();
        self.kept.observe(false, &self.settings);
        let text = self.source(&Asked::Only(query)).text;
        Ok((reply?, profile, text))
    }

    /// The core form of the program, without its queries, with what is given to it: for an engine of one's
    /// own, which takes the values of parameters with every request.
    ///
    /// # Errors
    /// The refusals of the program.
    pub fn core(&mut self) -> Result<Program, Refusals> {
        self.on_a_deep_stack(|notebook| notebook.analysed(&Asked::Nothing).map(|(_, program, _)| program))
    }

    fn no_query(&self) -> Refusals {
        let message = "this is no query: a query ends with `?`";
        let reports = vec![Refusal::new(Code::Syntax, Span::default(), message)];
        Refusals { reports, text: self.text.clone() }
    }

    fn answer(&mut self, asked: &Asked<'_>) -> Result<Vec<Reply>, Refusals> {
        self.on_a_deep_stack(|notebook| notebook.answer_here(asked))
    }

    fn answer_here(&mut self, asked: &Asked<'_>) -> Result<Vec<Reply>, Refusals> {
        let (source, program, warnings) = self.analysed(asked)?;
        self.warnings = warnings;
        let parameters = self.parameters(&program).map_err(|report| refused(&source, vec![report]))?;
        let mut engine = self.kept.engine(&self.settings, &program);
        let mut world = self.world(&source);
        let budget = self.settings.budget;
        let outcome = run_from(&program, &source.text, budget, engine.as_mut(), &mut world, parameters);
        drop(world);
        let symbols = Arc::new(program.symbols.clone());
        self.learn(&program, &symbols, &outcome.parameters);
        self.kept.keep(engine, program);
        if let Some(report) = outcome.refusal {
            return Err(refused(&source, vec![report]));
        }
        self.warnings.extend(outcome.warnings);
        self.warnings.sort_by_key(|report| report.span.start);
        let reply = |answer| Reply { answer, symbols: Arc::clone(&symbols) };
        Ok(outcome.answers.into_iter().map(reply).collect())
    }

    /// The text with what is asked, its core form, and its warnings.
    fn analysed(&mut self, asked: &Asked<'_>) -> Result<(Source, Program, Vec<Warning>), Refusals> {
        let source = self.source(asked);
        let analyse = |source: Source| {
            let mut world = self.world(&source);
            let analysed = world.read().and_then(|tree| world.analyse(tree));
            drop(world);
            match analysed {
                Ok(analysed) => Ok((source, analysed.program, analysed.warnings)),
                Err(reports) => Err(refused(&source, reports)),
            }
        };
        let (mut source, program, warnings) = analyse(source)?;
        // What an `@minimize` learned without a declaration stays a parameter behind it.
        let missing = program.tensors.iter().filter(|tensor| tensor.role == Role::Missing);
        let learned: Vec<_> = missing.filter(|tensor| self.learned.contains_key(&tensor.name)).collect();
        if learned.is_empty() {
            return Ok((source, program, warnings));
        }
        // The places of a declaration bear names, which here must be nobody's.
        let mut own = "place".to_owned();
        while source.text.contains(&own) {
            own.push('e');
        }
        for tensor in learned {
            let places: Vec<String> =
                (1..=tensor.places.len()).map(|place| format!("{own}{place}")).collect();
            let places = if places.is_empty() { String::new() } else { format!("[{}]", places.join(", ")) };
            source.give(&tensor.name, Some(&format!("{}{places} ~ glorot()", tensor.name)));
        }
        analyse(source)
    }

    /// Keeps what a run learned. What only started begins anew with the next question, which may have another seed; but what
    /// nothing declares is a parameter from now on, moved or not.
    fn learn(&mut self, program: &Program, symbols: &Arc<Symbols>, parameters: &Parameters) {
        let learns =
            |action: &Action| matches!(action, Action::Query(query) if query.directives.minimize.is_some());
        if !program.actions.iter().any(learns) {
            return;
        }
        let declared = parameters_of(&self.text);
        for (id, values) in parameters {
            let name = program.name(*id);
            let moved = || **values != *start_values(program, *id);
            if self.learned.contains_key(name) || !declared.iter().any(|known| known == name) || moved() {
                let domains = program.tensor(*id).domains();
                let learned = Learned::new(domains, Arc::clone(symbols), Arc::clone(values));
                self.learned.insert(name.to_owned(), learned);
            }
        }
    }

    /// The values of parameters that were learned or set.
    fn parameters(&self, program: &Program) -> Result<Parameters, Refusal> {
        let mut parameters = Parameters::new();
        for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
            if tensor.role != Role::Parameter {
                continue;
            }
            let shape = tensor.sizes();
            if let Some(Gift::Array(array)) = self.gifts.get(&tensor.name)
                && array.shape() != shape
            {
                let message = format!("`{}` is given {:?} and has {shape:?}", tensor.name, array.shape());
                return Err(Refusal::new(Code::SizeConflict, tensor.span, message));
            }
            let given = match self.gifts.get(&tensor.name) {
                // A 0 has no sign: -0 + 0 is 0.
                Some(Gift::Array(array)) => {
                    Some(Arc::new(array.shared().iter().map(|value| value + 0.0).collect()))
                }
                _ => None,
            };
            let learned = self.learned.get(&tensor.name);
            let learned = learned.and_then(|learned| learned.values(program, id, given.as_deref()));
            parameters.extend(learned.or(given).map(|values| (id, values)));
        }
        Ok(parameters)
    }

    /// The text, the statements that name what is given, and what is asked.
    fn source(&mut self, asked: &Asked<'_>) -> Source {
        let mut source = Source::new("program", self.text.as_bytes());
        source.expand(&mut Files::new(&self.settings.folder));
        if self.declared.0 != source.text {
            self.declared = (source.text.clone(), parameters_of(&source.text));
        }
        let (_, parameters) = &self.declared;
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
        let files = Gifts { given: &self.gifts, files: Files::new(&self.settings.folder) };
        let world = World::new(source, files, self.settings.seed).with_functions(self.functions.clone());
        let progress = self.settings.progress.clone();
        world.with_progress(Box::new(move |step, steps, loss| progress.tell(step, steps, loss)))
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
            let pool = notebook.settings.pool.clone();
            let started = thread.spawn_scoped(scope, move || {
                *done = work.map(|work| match pool {
                    Some(pool) => pool.install(|| work(notebook)),
                    None => work(notebook),
                });
            });
            started.map(std::thread::ScopedJoinHandle::join)
        });
        match (outcome, done) {
            (_, Some(done)) => done,
            (Ok(Err(panic)), None) => std::panic::resume_unwind(panic),
            (Ok(Ok(())) | Err(_), None) => std::panic::resume_unwind(Box::new("no thread could be started")),
        }
    }
}

/// A program that is refused for these reasons.
fn refused(source: &Source, reports: Vec<Refusal>) -> Refusals {
    Refusals { reports, text: source.text.clone() }
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
