//! Takes the notes on what the evaluation of blocks does.
//!
//! Enter at [`Machine::note_from_now`] and [`Machine::noted`]. A machine without notes reads no clock: each of these
//! functions then is a test of an option, once for a component, an equation, a term or a support.

use std::time::{Duration, Instant};

use super::block::{Block, Dim};
use super::machine::{Context, Machine, Stored};
use super::notes::{Found, Notes, OfComponent, Since, Support};
use super::rows::Rows;
use crate::kernels::{Precision, volume};
use crate::profile::{self, Executor, Layout, Order, Part, Profile, equation_label, grouped, label, written};
use crate::program::{Component, Equation, IndexId, Style, TensorId};

impl Machine {
    /// Notes what is done from now on, or nothing any more.
    pub(crate) fn note_from_now(&mut self, on: bool) {
        self.notes = on.then(Box::default);
    }

    /// What was noted since.
    pub(crate) fn noted(&mut self) -> Profile {
        let Some(notes) = self.notes.take() else { return Profile::default() };
        self.notes = Some(Box::default());
        let mut profile = Profile::default();
        for (_, component) in &notes.components {
            profile.add(self.component_profile(component, &notes));
        }
        profile
    }

    /// The time, where it matters.
    pub(crate) fn now(&self) -> Since {
        self.notes.as_ref().map(|_| Instant::now())
    }

    /// A component was evaluated.
    pub(crate) fn note_component(&mut self, component: &Component, executor: Executor, since: Since) {
        let (Some(mut notes), Some(since)) = (self.notes.take(), since) else { return };
        let time = since.elapsed();
        let program = &self.program;
        if matches!(executor, Executor::Numbers | Executor::Slices) {
            // Their steps read parts of tensors: the whole is looked at once.
            for at in &component.equations {
                let equation = program.equation(*at);
                notes.equation(equation).rows_in += self.rows_read(equation);
            }
        }
        let rows: u64 = component.tensors.iter().map(|id| self.held(*id)).sum();
        let of = notes.component(component, executor);
        of.executor = executor;
        of.calls += 1;
        of.time += time;
        of.rows_out += rows;
        self.notes = Some(notes);
    }

    /// Rounds that a component took, and the largest change of the last.
    pub(crate) fn note_rounds(&mut self, component: &Component, rounds: u64, residual: f64) {
        if let Some(notes) = &mut self.notes {
            let of = notes.component(component, Executor::Rounds);
            of.rounds += rounds;
            of.residual = Some(residual);
        }
    }

    /// An equation is evaluated.
    pub(crate) fn note_equation(&mut self, equation: &Equation, whole: bool) -> Since {
        let mut notes = self.notes.take()?;
        notes.current = equation.node.number();
        let rows = if whole { self.rows_read(equation) } else { 0 };
        let of = notes.equation(equation);
        of.calls += 1;
        of.rows_in += rows;
        self.notes = Some(notes);
        Some(Instant::now())
    }

    /// It was evaluated.
    pub(crate) fn note_evaluated(&mut self, equation: &Equation, since: Since) {
        if let (Some(notes), Some(since)) = (&mut self.notes, since) {
            notes.equation(equation).time += since.elapsed();
        }
    }

    /// Contributions of the equation at hand.
    pub(crate) fn note_contributions(&mut self, block: &Block, context: &Context) {
        if let Some(notes) = &mut self.notes {
            let along = if block.position(Dim::ROWS).is_some() { 1 } else { context.row_count() };
            let current = notes.current;
            notes.equations.entry(current).or_default().rows_out += (volume(&block.shape) * along) as u64;
        }
    }

    /// So many contributions of the equation at hand, done again.
    pub(crate) fn note_rows(&mut self, rows: usize) {
        if let Some(notes) = &mut self.notes {
            let current = notes.current;
            notes.equations.entry(current).or_default().rows_out += rows as u64;
        }
    }

    /// A step of a search for bindings.
    pub(crate) fn note_found(&self, steps: &mut Vec<Found>, step: Found) {
        if self.notes.is_some() {
            steps.push(step);
        }
    }

    /// These indices are summed inside of a scope whose support was found.
    pub(crate) fn note_inside(&mut self, node: u64, inside: Vec<IndexId>) {
        let Some(notes) = &mut self.notes else { return };
        let orders = notes.equations.entry(notes.current).or_default().orders.iter_mut();
        for (_, support) in orders.filter(|(known, _)| *known == node) {
            support.steps.retain(|step| !matches!(step, Found::Inside(_)));
            support.steps.splice(0..0, inside.iter().map(|index| Found::Inside(*index)));
        }
    }

    /// The support of a scope of the equation at hand was found.
    pub(crate) fn note_support(&mut self, node: u64, steps: Vec<Found>, rows: Option<&Rows>) {
        let of = rows.map(|rows| rows.indices.iter().map(|index| self.size(*index) as f64).product());
        if let (Some(notes), Some(rows), Some(of)) = (&mut self.notes, rows, of) {
            let found = Support { steps, rows: rows.len, of };
            let current = notes.current;
            let orders = &mut notes.equations.entry(current).or_default().orders;
            match orders.iter_mut().find(|(known, _)| *known == node) {
                Some((_, known)) => *known = found,
                None => orders.push((node, found)),
            }
        }
    }

    /// The elements or tuples of a tensor.
    pub(crate) fn held(&self, id: TensorId) -> u64 {
        match self.stored(id) {
            Some(Stored::Dense(array)) => array.len() as u64,
            Some(Stored::Relation(relation)) => relation.len as u64,
            None => 0,
        }
    }

    /// The elements and tuples of what an equation reads.
    fn rows_read(&self, equation: &Equation) -> u64 {
        let mut read = Vec::new();
        equation.visit_reads(&mut |element, _| {
            if !read.contains(&element.tensor) {
                read.push(element.tensor);
            }
        });
        read.into_iter().map(|id| self.held(id)).sum()
    }

    fn component_profile(&self, of: &OfComponent, notes: &Notes) -> profile::Component {
        let program = &self.program;
        let names = of.tensors.iter().map(|id| label(program, *id)).collect();
        let span = of.tensors.first().and_then(|id| written(program, *id));
        let mut component = profile::Component::new(names, span, of.executor);
        (component.calls, component.rounds, component.residual) = (of.calls, of.rounds, of.residual);
        (component.rows_out, component.time) = (of.rows_out, of.time);
        component.stored = of.tensors.iter().filter_map(|id| self.layout(*id)).collect();
        for at in &of.equations {
            let equation = program.equation(*at);
            let Some(noted) = notes.equations.get(&equation.node.number()) else { continue };
            // Loops over numbers are one for all equations.
            let (calls, time) =
                if of.equations.len() == 1 { (of.calls, of.time) } else { (0, Duration::ZERO) };
            component.parts.push(Part {
                text: equation_label(program, equation),
                span: written(program, equation.tensor).map(|_| equation.span),
                calls: noted.calls.max(calls),
                rows_in: noted.rows_in,
                rows_out: noted.rows_out,
                orders: noted.orders.iter().map(|(_, support)| self.order(support)).collect(),
                time: noted.time.max(time),
            });
        }
        component
    }

    /// How the support of a scope was found, if that was noted outside of any equation.
    pub(crate) fn noted_steps(&self, node: u64) -> Vec<String> {
        let orders = self.notes.iter().filter_map(|notes| notes.equations.get(&0));
        let found = orders.flat_map(|of| &of.orders).find(|(known, _)| *known == node);
        found.map_or(Vec::new(), |(_, support)| self.order(support).steps)
    }

    fn order(&self, support: &Support) -> Order {
        let count = |rows: usize| grouped(rows as f64);
        let index = |index: IndexId| &self.program.index(index).name;
        let step = |found: &Found| match *found {
            Found::Joined(id, rows) => format!("{} ({} rows)", label(&self.program, id), count(rows)),
            Found::Together(ref all, rows) => {
                let all: Vec<String> = all.iter().map(|id| label(&self.program, *id)).collect();
                format!("{} together ({} rows)", all.join(", "), count(rows))
            }
            Found::Inside(of) => format!("the sum over {} inside", index(of)),
            Found::Listed(of, rows) => format!("{} as compared ({} rows)", index(of), count(rows)),
            Found::Extended(of, rows) => format!("every {} ({} rows)", index(of), count(rows)),
        };
        let steps = support.steps.iter().map(step).collect();
        Order { steps, rows: Some(support.rows as f64), of: Some(support.of) }
    }

    /// How a tensor is kept.
    pub(crate) fn layout(&self, id: TensorId) -> Option<profile::Stored> {
        let tensor = self.program.tensor(id);
        let (layout, rows, bytes) = match self.stored(id)? {
            Stored::Dense(array) => {
                let (layout, width) = match self.precision {
                    Precision::Double => (Layout::Dense64, 8),
                    Precision::Single => (Layout::Dense32, 4),
                };
                (layout, array.len(), width * array.len())
            }
            Stored::Relation(relation) => {
                let layout = if tensor.style == Style::Square { Layout::Support } else { Layout::Columns };
                let constants: usize = relation.dictionaries.iter().map(|values| values.len()).sum();
                let values = if relation.values.is_some() { 8 * relation.len } else { 0 };
                (layout, relation.len, 4 * relation.len * relation.columns.len() + 16 * constants + values)
            }
        };
        let (rows, bytes) = (Some(rows as u64), Some(bytes as u64));
        Some(profile::Stored { tensor: label(&self.program, id), layout, rows, bytes })
    }
}
