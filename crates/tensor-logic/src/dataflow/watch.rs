//! Answers that are maintained while facts come and go: [`Watch`].

use std::collections::{BTreeMap, BTreeSet};

use calculemus_base::word::did_you_mean;
use datarel_dataflow::datarel::{RelationId, Value};
use datarel_dataflow::{Change, Maintained, Options, Update};
use tensor_logic_engine::datalog::{Compiled, compile_all};

use super::engine::{Trouble, goals, limits, no_dataflow, refused};
use super::shown::Shape;
use super::updates::{Word, Written, read};
use crate::analyse::Analysed;
use crate::ast::StatementKind;
use crate::digits::are_kept;
use crate::engine::Budget;
use crate::error::{Code, Refusal, Result};
use crate::program::{Action, Combine, IndexId, Kind, Program, Query, Range, Role, Style, TensorId};
use crate::value::{Const, Tuple};

/// A program whose answers are maintained.
pub struct Watch {
    program: Program,
    compiled: Compiled,
    maintained: Maintained,
    /// The queries of each relation that answers one, by their positions.
    queries: BTreeMap<RelationId, Vec<usize>>,
    shapes: Vec<(String, Shape)>,
}

/// What has changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The changes of answers: by query, then what goes before what comes, in the order of answers.
    pub changes: Vec<Changed>,
    /// The positions of the updates that changed no fact.
    pub idle: Vec<usize>,
}

/// A tuple of an answer that has come or gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The query, by its position.
    pub query: usize,
    /// Whether it has come.
    pub came: bool,
    /// As it is written, without a value.
    pub text: String,
    /// The values of the free indices.
    pub tuple: Tuple,
    /// The value, as it is written, where the relation has values.
    pub value: Option<String>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// Nothing: a comment.
    Nothing,
    /// A fact that no query needs.
    Unneeded,
    /// A fact that comes or goes.
    Update(Update),
}

impl Watch {
    /// Derives the answers of a program, which are the first batch.
    ///
    /// # Errors
    /// A construct that is no rule over relations, or that would be another program if facts were others; what the
    /// evaluation refuses.
    pub fn start(
        analysed: &Analysed,
        budget: Budget,
        workers: usize,
    ) -> std::result::Result<(Watch, Batch), Trouble> {
        let program = analysed.program.clone();
        let goals = goals(&program)?;
        maintainable(analysed, &goals)?;
        let compiled = compile_all(&program, &goals)?;
        let asked = goals.iter().filter_map(|id| compiled.relation(*id)).collect::<BTreeSet<_>>();
        let asked: Vec<RelationId> = asked.into_iter().collect();
        let options = Options { workers, limits: limits(budget), cluster: None };
        let started = Maintained::start(&compiled.database, &compiled.rules, &asked, &options);
        let (maintained, first) = started.map_err(|refusal| refused(&program, &compiled, refusal))?;
        let mut queries: BTreeMap<RelationId, Vec<usize>> = BTreeMap::new();
        let mut shapes = Vec::new();
        for (at, query) in asked_for(&program).enumerate() {
            if let Some(relation) = compiled.relation(query.tensor) {
                queries.entry(relation).or_default().push(at);
            }
            shapes.push((query.text.clone(), Shape::of(&program, query)));
        }
        let watch = Watch { program, compiled, maintained, queries, shapes };
        let changes = watch.shown(&first, true);
        Ok((watch, Batch { changes, idle: Vec::new() }))
    }

    /// Reads a line of updates.
    ///
    /// # Errors
    /// `syntax`, `arity`, `out-of-domain`, `not-yet` and others, with the place in the line.
    pub fn read(&mut self, line: &str) -> Result<Read> {
        let Some(written) = read(line)? else { return Ok(Read::Nothing) };
        let tensor = self.tensor(&written)?;
        let limits: Vec<_> =
            self.program.tensor(tensor).places.iter().map(|place| place.limit.clone()).collect();
        if limits.len() != written.constants.len() {
            let (name, span) = &written.name;
            let message = format!(
                "`{name}` has {} places, and {} constants are given",
                limits.len(),
                written.constants.len()
            );
            return Err(Refusal::new(Code::Arity, *span, message));
        }
        let mut tuple = Vec::new();
        for ((word, span), limit) in written.constants.iter().zip(limits) {
            let value = match word {
                Word::Integer(value) => Const::Int(*value),
                Word::Symbol(name) => Const::Symbol(self.program.symbols.intern(name)),
            };
            if limit.is_some_and(|limit| !limit.contains(value)) {
                let shown = self.program.symbols.show(value);
                let message = format!("`{shown}` is outside the declared domain of this place");
                return Err(Refusal::new(Code::OutOfDomain, *span, message));
            }
            if !self.maintained.takes(value) {
                let what = "an integer that is in no fact of the program lies within ±2^29";
                return Err(no_dataflow(*span, what));
            }
            tuple.push(value);
        }
        let value = self.value(tensor, &written)?;
        let Some(relation) = self.compiled.relation(tensor) else { return Ok(Read::Unneeded) };
        Ok(Read::Update(Update { relation, tuple, value, comes: written.comes }))
    }

    /// Makes updates, all at once.
    ///
    /// # Errors
    /// What the evaluation refuses: then there are no answers any more.
    pub fn apply(&mut self, updates: &[Update]) -> std::result::Result<Batch, Trouble> {
        let applied = self.maintained.apply(updates);
        let (changes, idle) = applied.map_err(|refusal| refused(&self.program, &self.compiled, refusal))?;
        Ok(Batch { changes: self.shown(&changes, false), idle })
    }

    /// The queries as written, in order.
    pub fn queries(&self) -> impl Iterator<Item = &str> {
        self.shapes.iter().map(|(text, _)| text.as_str())
    }

    /// A constant as JSON.
    pub fn constant(&self, out: &mut String, value: Const) {
        match value {
            Const::Int(value) => out.push_str(&value.to_string()),
            Const::Symbol(id) => crate::json::string(out, self.program.symbols.name(id)),
        }
    }

    /// The relation that an update names, if facts of it may come and go.
    fn tensor(&self, written: &Written) -> Result<TensorId> {
        let (name, span) = &written.name;
        let own = |at: &usize| self.program.tensors.get(*at).is_some_and(|t| t.name == *name && !t.hidden);
        let mut found = (0..self.program.tensors.len()).filter(own);
        let Some(at) = found.next() else {
            let known = self.program.tensors.iter().filter(|tensor| !tensor.hidden);
            let known = did_you_mean(name, known.map(|tensor| tensor.name.as_str()));
            let message = format!("the program has no relation `{name}`{known}");
            return Err(Refusal::new(Code::BadArgument, *span, message));
        };
        let id = TensorId(u32::try_from(at).unwrap_or(u32::MAX));
        if found.next().is_some() {
            return Err(no_dataflow(*span, &format!("`{name}` is defined anew by `:=`")));
        }
        if self.program.tensor(id).style == Style::Square {
            return Err(no_dataflow(*span, &format!("`{name}` is dense, and only facts come and go")));
        }
        Ok(id)
    }

    /// The value of an update, if it may have it.
    fn value(&self, id: TensorId, written: &Written) -> Result<Option<Value>> {
        let tensor = self.program.tensor(id);
        let (name, place) = &written.name;
        let valued = tensor.combine != Combine::Exists;
        let refuse = |span, message: String| Err(Refusal::new(Code::TypeConflict, span, message));
        match written.value {
            Some((_, span)) if !valued => refuse(span, format!("`{name}` has no values")),
            None if valued && written.comes => {
                let help = format!("write it behind the fact, as in `+{name}(…) = 2`");
                let message = format!("`{name}` has values, and this fact has none");
                Err(Refusal::new(Code::TypeConflict, *place, message).help(help))
            }
            None => Ok(None),
            Some((value, span)) if tensor.kind == Kind::Count => {
                if value.fract() != 0.0 || !are_kept(value as i128) {
                    return refuse(span, format!("`{name}` counts, and {value} is no count"));
                }
                Ok(Some(Value::count(value as i64)))
            }
            // Rules of Boolean relations were read by the signs of the values that there were.
            Some((value, span)) if !(1e-9..=1e9).contains(&value) && self.signed(id) => {
                let what = format!(
                    "a relation without values reads `{name}`, whose values must then lie within 1e-9 and 1e9"
                );
                Err(no_dataflow(span, &what))
            }
            Some((value, _)) => Ok(Some(Value::real(value))),
        }
    }

    /// Whether a Boolean relation reads a relation.
    fn signed(&self, id: TensorId) -> bool {
        let boolean = |tensor: TensorId| self.program.tensor(tensor).combine == Combine::Exists;
        let mut equations = self.program.equations.iter().filter(|equation| boolean(equation.tensor));
        equations.any(|equation| {
            let mut reads = false;
            equation.visit_reads(&mut |read, _| reads |= read.tensor == id);
            reads
        })
    }

    /// Changes by query, as they are written.
    fn shown(&self, changes: &[Change], first: bool) -> Vec<Changed> {
        let mut shown = Vec::new();
        for (relation, queries) in &self.queries {
            let own = changes.iter().filter(|change| change.relation == *relation);
            let mut own: Vec<Change> = own.cloned().collect();
            let Some(tensor) = self.compiled.tensor(*relation) else { continue };
            self.complete(tensor, *relation, first, &mut own);
            own.sort_by(|a, b| {
                let order = self.program.symbols.compare_tuples(&a.tuple, &b.tuple);
                a.came.cmp(&b.came).then(order)
            });
            for query in queries {
                let Some((_, shape)) = self.shapes.get(*query) else { continue };
                shown.extend(own.iter().map(|change| Changed {
                    query: *query,
                    came: change.came,
                    text: shape.write(&self.program.symbols, &change.tuple),
                    tuple: change.tuple.clone(),
                    value: change.value.map(|value| self.number(*relation, tensor, value)),
                }));
            }
        }
        shown.sort_by_key(|changed| changed.query);
        shown
    }

    /// A number has a value where nothing contributes, too.
    fn complete(&self, tensor: TensorId, relation: RelationId, first: bool, own: &mut Vec<Change>) {
        if self.program.tensor(tensor).style != Style::Square || (own.is_empty() && !first) {
            return;
        }
        let ring = self.compiled.database.relation(relation).ring();
        let default = self.program.tensor(tensor).combine.default_value();
        let default = if ring.counts() { Value::count(default as i64) } else { Value::real(default) };
        for came in [true, false] {
            if !own.iter().any(|change| change.came == came) && (came || !first) {
                own.push(Change { relation, tuple: Vec::new(), value: Some(default), came });
            }
        }
    }

    fn number(&self, relation: RelationId, tensor: TensorId, value: Value) -> String {
        let mut out = String::new();
        match self.compiled.database.relation(relation).ring().counts() {
            true => out.push_str(&value.as_count().to_string()),
            false => crate::answer::json::number(&mut out, self.program.tensor(tensor).kind, value.as_real()),
        }
        out
    }
}

/// The queries of a program.
fn asked_for(program: &Program) -> impl Iterator<Item = &Query> {
    program.actions.iter().filter_map(|action| match action {
        Action::Query(query) => Some(query),
        Action::Write { .. } => None,
    })
}

/// Refuses what would be another program if facts were others: ranges that are taken from the facts; and files, which are
/// written once.
fn maintainable(analysed: &Analysed, goals: &[TensorId]) -> Result<()> {
    let program = &analysed.program;
    for action in &program.actions {
        if let Action::Write { file, span, .. } = action {
            return Err(no_dataflow(*span, &format!("`{file}` is written once, and answers are maintained")));
        }
    }
    for query in asked_for(program) {
        let tensor = program.tensor(query.tensor);
        if tensor.style == Style::Square && !tensor.places.is_empty() {
            return Err(no_dataflow(query.span, "the answer is dense, and only tuples come and go"));
        }
    }
    let mut declared = BTreeSet::new();
    for statement in &analysed.tree.statements {
        if let StatementKind::Indices { names, .. } = &statement.kind {
            declared.extend(names.iter().map(|name| name.text.as_str()));
        }
    }
    let needed = program.needs(goals);
    let inferred = |id: &IndexId| {
        let index = program.index(*id);
        matches!(index.range, Range::Domain(_)) && !declared.contains(index.name.as_str())
    };
    for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
        let over = equation.terms.iter().flat_map(|term| &term.over);
        if let Some(id) = equation.left.iter().chain(over).find(|id| inferred(id)) {
            let index = program.index(*id);
            let what = format!("the range of `{}` is taken from the facts, which come and go", index.name);
            return Err(
                no_dataflow(index.span, &what).help(format!("declare it, as in `{} : 0..9`", index.name))
            );
        }
    }
    if let Some(id) = needed.iter().find(|id| program.tensor(**id).role == Role::Missing) {
        let message = format!("no data, equation or declaration gives `{}`", program.name(*id));
        return Err(Refusal::new(Code::MissingData, program.tensor(*id).span, message));
    }
    Ok(())
}
