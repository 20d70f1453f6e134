//! What is said of components, equations and rules, and how what several evaluations said is added up.

use std::time::Duration;

use crate::ast::Span;

/// What evaluates a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Executor {
    /// Nobody: it is given, or a parameter.
    Given,
    /// Rules over relations: the crate `datarel`.
    Rules,
    /// Each equation once, for all its bindings.
    Whole,
    /// Loops over numbers, a step at a time.
    Numbers,
    /// One slice after the other, each as whole equations are.
    Slices,
    /// Some steps after the others, of which slices and sums are kept.
    Windows,
    /// Whole equations again and again until nothing changes.
    Rounds,
    /// Level by level, where tuples hang on each other without a circle.
    Levels,
    /// Each equation is written out where it is read.
    Inlined,
    /// Its tuples and its values, apart.
    Apart,
    /// Ground rules become circuits of proofs, which are counted by weight.
    Circuits,
    /// No component: facts on their way to the engine, or answers on their way back.
    Border,
}

impl Executor {
    /// Its name as it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Executor::Given => "given",
            Executor::Rules => "rules",
            Executor::Whole => "whole equations",
            Executor::Numbers => "steps of numbers",
            Executor::Slices => "slices",
            Executor::Windows => "window after window",
            Executor::Rounds => "rounds",
            Executor::Levels => "level by level",
            Executor::Inlined => "written out where it is read",
            Executor::Apart => "its tuples and its values, apart",
            Executor::Circuits => "circuits of proofs",
            Executor::Border => "facts and answers",
        }
    }
}

/// How the elements of a tensor are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// All elements, 64 bits each.
    Dense64,
    /// All elements, 32 bits each.
    Dense32,
    /// The elements of a square tensor's support: columns of positions, and values beside them.
    Support,
    /// The tuples of a relation: sorted columns, and values beside them where there are any.
    Columns,
    /// The pairs of a relation as rows of bits.
    Bits,
    /// It depends on what is not evaluated yet.
    Open,
}

impl Layout {
    /// Its name as it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Dense64 => "dense f64",
            Layout::Dense32 => "dense f32",
            Layout::Support => "columns of its support",
            Layout::Columns => "sorted columns",
            Layout::Bits => "rows of bits",
            Layout::Open => "open",
        }
    }
}

/// How a tensor is kept, and how large that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The tensor.
    pub tensor: String,
    /// How.
    pub layout: Layout,
    /// Elements, or tuples; `None` where nobody knows yet.
    pub rows: Option<u64>,
    /// Bytes of that.
    pub bytes: Option<u64>,
}

/// The order in which a rule or the support of an equation is joined.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// What is joined, in words, one after the other.
    pub steps: Vec<String>,
    /// The bindings that come out; of a plan about so many.
    pub rows: Option<f64>,
    /// All bindings, if nothing restricted them; `None` of a rule.
    pub of: Option<f64>,
}

/// An equation or a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// It, as legal text of the core form; a rule that only serves another is named.
    pub text: String,
    /// Where it is written, if it is.
    pub span: Option<Span>,
    /// How often it was evaluated.
    pub calls: u64,
    /// Elements and tuples that were looked at.
    pub rows_in: u64,
    /// Contributions that came out, before they were put together.
    pub rows_out: u64,
    /// The orders of its joins.
    pub orders: Vec<Order>,
    /// How long it took; what puts the contributions of several equations together is the component's.
    pub time: Duration,
}

/// Tensors that are evaluated together.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// The tensors. Of a query that is more than a tensor, its text.
    pub tensors: Vec<String>,
    /// Where the first is written, if it is.
    pub span: Option<Span>,
    /// Who evaluates it.
    pub executor: Executor,
    /// How rules derive it, in the words of a plan: once, a search, products of matrices, rounds.
    pub method: Option<&'static str>,
    /// How often it was evaluated; what was found to be still right was not.
    pub calls: u64,
    /// Rounds, over all evaluations.
    pub rounds: u64,
    /// The largest change of the last round; 0 where it came to rest.
    pub residual: Option<f64>,
    /// Elements and tuples that it held in the end, over all evaluations.
    pub rows_out: u64,
    /// How its tensors are kept.
    pub stored: Vec<Stored>,
    /// Its equations or rules.
    pub parts: Vec<Part>,
    /// How long it took, over all evaluations.
    pub time: Duration,
}

impl Component {
    /// A component of which nothing is known yet.
    pub fn new(tensors: Vec<String>, span: Option<Span>, executor: Executor) -> Component {
        Component {
            tensors,
            span,
            executor,
            method: None,
            calls: 0,
            rounds: 0,
            residual: None,
            rows_out: 0,
            stored: Vec::new(),
            parts: Vec::new(),
            time: Duration::ZERO,
        }
    }

    /// Elements and tuples that were looked at.
    pub fn rows_in(&self) -> u64 {
        self.parts.iter().map(|part| part.rows_in).sum()
    }

    /// The bytes of what it holds.
    pub fn bytes(&self) -> u64 {
        self.stored.iter().filter_map(|stored| stored.bytes).sum()
    }

    /// Whether two entries are one component.
    fn same(&self, other: &Component) -> bool {
        self.executor == other.executor && self.tensors == other.tensors
    }

    /// Adds what another evaluation of the same did.
    fn absorb(&mut self, other: Component) {
        self.calls += other.calls;
        self.rounds += other.rounds;
        self.residual = other.residual.or(self.residual);
        self.rows_out += other.rows_out;
        self.time += other.time;
        self.method = other.method.or(self.method);
        for stored in other.stored {
            match self.stored.iter_mut().find(|known| known.tensor == stored.tensor) {
                Some(known) => *known = stored,
                None => self.stored.push(stored),
            }
        }
        for part in other.parts {
            match self.parts.iter_mut().find(|known| known.text == part.text) {
                None => self.parts.push(part),
                Some(known) => {
                    known.calls += part.calls;
                    known.rows_in += part.rows_in;
                    known.rows_out += part.rows_out;
                    known.time += part.time;
                    if !part.orders.is_empty() {
                        known.orders = part.orders;
                    }
                }
            }
        }
    }
}

/// How a program was evaluated, or would be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The components, in the order in which they were first evaluated.
    pub components: Vec<Component>,
    /// How often the engine was asked for values.
    pub evaluations: u64,
    /// How long all of that took.
    pub time: Duration,
}

impl Profile {
    /// Adds a component, or what was done of it once more.
    pub fn add(&mut self, component: Component) {
        match self.components.iter_mut().find(|known| known.same(&component)) {
            Some(known) => known.absorb(component),
            None => self.components.push(component),
        }
    }

    /// Adds what another engine did.
    pub fn append(&mut self, other: Profile) {
        other.components.into_iter().for_each(|component| self.add(component));
        self.evaluations += other.evaluations;
        self.time += other.time;
    }

    /// The components, the one that took longest first.
    pub fn by_time(&self) -> Vec<&Component> {
        let mut all: Vec<&Component> = self.components.iter().collect();
        all.sort_by_key(|component| std::cmp::Reverse(component.time));
        all
    }

    /// The entries of a component that holds a tensor of this name.
    pub fn of<'p>(&'p self, tensor: &'p str) -> impl Iterator<Item = &'p Component> {
        self.components.iter().filter(move |component| component.tensors.iter().any(|name| name == tensor))
    }
}
