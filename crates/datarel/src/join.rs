//! Runs a plan: nested loops over its steps.
//!
//! Enter at [`Join::run`], which can be given a part of the rows of the first step, so that parts
//! run in parallel. What comes out are the heads' tuples that the growing relation does not know.

use std::ops::Range;

use crate::constant::Comparison;
use crate::constant::Const;

use super::component::{Component, Growing};
use super::constants::Constants;
use super::database::Database;
use super::limits::{Failure, Limits};
use super::ring::{Ring, Value};
use super::sorted::{Sorted, seek};
use super::step::{Candidate, Factor, Operand, Plan, Source, Step, Version};

/// Where constants are made: nowhere, if several joins run at a time.
pub(super) enum Interner<'a> {
    /// For plans that make none.
    Shared(&'a Constants),
    /// For plans that may.
    Own(&'a mut Constants),
}

impl Interner<'_> {
    fn value(&self, id: u32) -> Const {
        match self {
            Interner::Shared(constants) => constants.value(id),
            Interner::Own(constants) => constants.value(id),
        }
    }

    fn intern(&mut self, value: Const) -> Result<Option<u32>, Failure> {
        match self {
            Interner::Shared(constants) => Ok(constants.find(value)),
            Interner::Own(constants) => constants.intern(value).map(Some),
        }
    }
}

/// Tuples that a join has made, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The constants.
    pub(super) rows: Vec<u32>,
    /// The values, where the head has them.
    pub(super) values: Vec<Value>,
    /// The number of tuples.
    pub(super) len: usize,
    /// Whether tuples that the growing relation has come out too: who adds them alone finds them out anyway.
    pub(super) all: bool,
}

/// So many tuples are cut to the different ones, if it does not matter how often each was found.
const MOST: usize = 1 << 18;

impl Output {
    /// Leaves of equal tuples one.
    fn thin(&mut self, ring: Ring, arity: usize) {
        // Nothing that is idempotent overflows.
        let rows = self.rows.chunks_exact(arity.max(1));
        if let Ok(sorted) = Sorted::from_rows(ring, arity, rows, &self.values, self.len) {
            *self =
                Output { rows: sorted.rows(), values: sorted.values().to_vec(), len: sorted.len(), ..*self };
        }
    }
}

/// Bodies of so many steps fit any stack.
const DEEP: usize = 100;

/// The stack of a step, and some more.
const STEP_STACK: usize = 1 << 14;

/// Where the tuples of a step stand.
#[derive(Clone, Copy)]
enum Stored<'a> {
    /// At rest.
    Sorted(&'a Sorted),
    /// In a relation that grows.
    Growing(&'a Growing),
    /// The step asks no relation, or several.
    Nowhere,
}

impl<'a> Stored<'a> {
    fn of(step: &Step, database: &'a Database, component: &'a Component) -> Stored<'a> {
        let source = match step {
            Step::Match { source, .. } | Step::Exists { source, .. } => *source,
            Step::Missing(relation, index, _) => Source::Sorted(*relation, *index),
            _ => return Stored::Nowhere,
        };
        match source {
            Source::Sorted(relation, index) => Stored::Sorted(database.relation(relation).sorted(index)),
            Source::Whole(relation, _) | Source::Chain(relation, ..) | Source::Row(relation, _) => {
                component.table(relation).map_or(Stored::Nowhere, Stored::Growing)
            }
        }
    }
}

/// What the next step has for a tuple of a growing relation: where, by which chain, and the key by the columns of the
/// tuple. Most have nothing there, which is asked before anything is bound.
type Ahead<'a> = (Stored<'a>, usize, Vec<Operand>);

/// The question of a step for the tuples of the one before it, if they have all of its key.
fn ahead<'a>(step: &Step, next: Option<(&Step, &Stored<'a>)>) -> Option<Ahead<'a>> {
    let (Step::Match { bind, .. }, (Step::Match { source, key, .. }, stored)) = (step, next?) else {
        return None;
    };
    let chain = match source {
        Source::Sorted(..) => 0,
        Source::Chain(_, chain, _) => *chain,
        Source::Whole(..) | Source::Row(..) => return None,
    };
    let column = |operand: &Operand| match operand {
        Operand::Slot(slot) => bind.iter().find(|bound| bound.1 == *slot).map(|bound| Operand::Slot(bound.0)),
        Operand::Constant(_) => Some(*operand),
    };
    Some((*stored, chain, key.iter().map(column).collect::<Option<_>>()?))
}

/// Whether there is nothing for a tuple.
#[inline]
fn is_idle((stored, chain, key): &Ahead<'_>, tuple: &[u32]) -> bool {
    let key = key.iter().map(|operand| operand.of(tuple));
    match stored {
        Stored::Sorted(sorted) => sorted.range(key).is_empty(),
        Stored::Growing(growing) => growing.table.newest(*chain, key) == 0,
        Stored::Nowhere => false,
    }
}

/// A join at work.
pub(super) struct Join<'a> {
    plan: &'a Plan,
    database: &'a Database,
    head: Option<&'a Growing>,
    /// The same, if tuples that it has are left out: one thread alone finds them out when it adds them.
    known: Option<&'a Growing>,
    constants: Interner<'a>,
    limits: &'a Limits,
    rows: Range<usize>,
    /// Where the tuples of each step stand.
    stored: Vec<Stored<'a>>,
    /// What each step asks first of those that a tuple of the step before is taken to.
    ahead: Vec<Option<Ahead<'a>>>,
    slots: Vec<u32>,
    /// The rows of the candidates of an [`Step::Extend`] at work, and where each was found last, by depth.
    ranges: Vec<Range<usize>>,
    fingers: Vec<Vec<usize>>,
    arguments: Vec<Const>,
    ticks: u32,
    output: Output,
    /// How many tuples the output may have before it is thinned.
    most: usize,
}

/// The number of rows of the first step, if its rows can be given in parts.
pub(super) fn first_rows(plan: &Plan, database: &Database, component: &Component) -> Option<usize> {
    match plan.steps.first()? {
        Step::Match { source: Source::Sorted(relation, index), key, distinct: None, .. } => {
            let key: Option<Vec<u32>> = key.iter().map(constant).collect();
            Some(database.relation(*relation).sorted(*index).range(key?.into_iter()).len())
        }
        Step::Match { source: Source::Whole(relation, version), .. } => {
            component.table(*relation).map(|growing| growing.rows(*version))
        }
        _ => None,
    }
}

fn constant(operand: &Operand) -> Option<u32> {
    match operand {
        Operand::Constant(constant) => Some(*constant),
        Operand::Slot(_) => None,
    }
}

impl<'a> Join<'a> {
    /// Joins the rows given of the first step (all rows of other first steps), and adds what comes out to the output.
    pub(super) fn run(
        plan: &'a Plan,
        database: &'a Database,
        component: &'a Component,
        constants: Interner<'a>,
        limits: &'a Limits,
        rows: Range<usize>,
        output: Output,
    ) -> Result<Output, Failure> {
        let head = component.table(plan.head);
        let mut join = Join {
            plan,
            database,
            head,
            known: head.filter(|_| plan.ring.idempotent() && !output.all),
            constants,
            limits,
            rows,
            stored: Vec::new(),
            ahead: Vec::new(),
            slots: vec![0; plan.slots],
            ranges: Vec::new(),
            fingers: Vec::new(),
            arguments: Vec::new(),
            ticks: 0,
            most: output.len + MOST,
            output,
        };
        join.stored = plan.steps.iter().map(|step| Stored::of(step, database, component)).collect();
        let next = |at: usize| plan.steps.get(at + 1).zip(join.stored.get(at + 1));
        join.ahead = plan.steps.iter().enumerate().map(|(at, step)| ahead(step, next(at))).collect();
        if plan.steps.len() <= DEEP {
            join.step(0, plan.weight)?;
            return Ok(join.output);
        }
        // Steps are nested calls: a long body has a stack of its own.
        std::thread::scope(|scope| {
            let stack = std::thread::Builder::new().stack_size(plan.steps.len() * STEP_STACK);
            let joined = stack.spawn_scoped(scope, || join.step(0, plan.weight)).map(|thread| thread.join());
            match joined {
                Ok(Ok(result)) => result,
                _ => Err(Failure::Interrupted),
            }
        })?;
        Ok(join.output)
    }

    #[inline]
    fn operand(&self, operand: Operand) -> u32 {
        operand.of(&self.slots)
    }

    fn overflow(&self) -> Failure {
        Failure::Overflow { relation: self.plan.head, tuple: self.head() }
    }

    fn head(&self) -> Vec<u32> {
        self.plan.head_terms.iter().map(|term| self.operand(*term)).collect()
    }

    #[inline]
    fn multiply(&self, value: Value, factor: Factor, other: Option<Value>) -> Result<Value, Failure> {
        let Some(from) = factor else { return Ok(value) };
        let other = self.plan.ring.factor(other, from);
        self.plan.ring.times(value, other).ok_or_else(|| self.overflow())
    }

    /// The constants of a key.
    #[inline]
    fn key<'k>(&'k self, key: &'k [Operand]) -> impl Iterator<Item = u32> + Clone + 'k {
        key.iter().map(|operand| operand.of(&self.slots))
    }

    fn tick(&mut self) -> Result<(), Failure> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(1 << 12) {
            self.limits.interrupted()?;
            let bytes = (4 * self.output.rows.len() + 8 * self.output.values.len()) as u64;
            if bytes > self.limits.bytes {
                let (needed, limit) = (bytes, self.limits.bytes);
                return Err(Failure::Bytes { relation: self.plan.head, needed, limit });
            }
        }
        Ok(())
    }

    fn step(&mut self, depth: usize, value: Value) -> Result<(), Failure> {
        let plan = self.plan;
        let Some(step) = plan.steps.get(depth) else { return self.emit(value) };
        self.tick()?;
        match step {
            Step::Match { source, key, bind, same, factor, distinct } => {
                let columns = Columns { bind, same, factor: *factor, distinct: *distinct };
                match (self.stored[depth], *source) {
                    (Stored::Sorted(sorted), _) => self.match_sorted(depth, value, sorted, key, &columns),
                    (Stored::Growing(growing), Source::Whole(_, version)) => {
                        self.match_whole(depth, value, growing, version, &columns)
                    }
                    (Stored::Growing(growing), Source::Chain(_, chain, version)) => {
                        self.match_chain(depth, value, (growing, chain), version, key, &columns)
                    }
                    _ => Ok(()),
                }
            }
            Step::Exists { source, key, factor } => match self.exists(depth, *source, key) {
                Some(other) => {
                    let value = self.multiply(value, *factor, other)?;
                    self.step(depth + 1, value)
                }
                None => Ok(()),
            },
            Step::Missing(_, _, key) => match self.stored[depth] {
                Stored::Sorted(sorted) if !sorted.range(self.key(key)).is_empty() => Ok(()),
                _ => self.step(depth + 1, value),
            },
            Step::Extend(slot, candidates) => self.extend(depth, value, *slot, candidates),
            _ => self.compute(depth, value, step),
        }
    }

    /// The steps that ask no relation.
    fn compute(&mut self, depth: usize, value: Value, step: &'a Step) -> Result<(), Failure> {
        let holds = match step {
            Step::Compare(sign, left, right) => self.compare(*sign, *left, *right),
            Step::Shift(slot, from, by) => {
                let sum = self.shifted(*from, *by);
                self.assign(*slot, sum)?
            }
            Step::ShiftTest(to, from, by) => {
                let sum = self.shifted(*from, *by);
                sum.is_some() && sum == Some(self.constants.value(self.operand(*to)))
            }
            Step::Compute(slot, arguments, function) => {
                let result = self.call(arguments, |arguments| function(arguments));
                self.assign(*slot, result)?
            }
            Step::ComputeTest(result, arguments, function) => {
                let expected = self.constants.value(self.operand(*result));
                self.call(arguments, |arguments| function(arguments)) == Some(expected)
            }
            Step::Test(arguments, test) => self.call(arguments, |arguments| test(arguments)),
            _ => true,
        };
        if holds { self.step(depth + 1, value) } else { Ok(()) }
    }

    fn shifted(&self, from: Operand, by: i64) -> Option<Const> {
        self.constants.value(self.operand(from)).int()?.checked_add(by).map(Const::Int)
    }

    fn assign(&mut self, slot: usize, constant: Option<Const>) -> Result<bool, Failure> {
        let Some(constant) = constant else { return Ok(false) };
        let id = self.constants.intern(constant)?;
        if let Some(id) = id {
            self.slots[slot] = id;
        }
        Ok(id.is_some())
    }

    fn call<T>(&mut self, arguments: &[Operand], function: impl Fn(&[Const]) -> T) -> T {
        let mut constants = std::mem::take(&mut self.arguments);
        constants.clear();
        constants.extend(arguments.iter().map(|operand| self.constants.value(self.operand(*operand))));
        let result = function(&constants);
        self.arguments = constants;
        result
    }

    fn compare(&self, sign: Comparison, left: Operand, right: Operand) -> bool {
        let (left, right) = (self.operand(left), self.operand(right));
        match sign {
            Comparison::Equal => return left == right,
            Comparison::NotEqual => return left != right,
            _ => {}
        }
        let (Some(left), Some(right)) = (self.constants.value(left).int(), self.constants.value(right).int())
        else {
            return false;
        };
        match sign {
            Comparison::Less => left < right,
            Comparison::LessEqual => left <= right,
            Comparison::Greater => left > right,
            _ => left >= right,
        }
    }

    /// The value of a tuple with the key, if there is one.
    #[inline]
    fn exists(&self, depth: usize, source: Source, key: &[Operand]) -> Option<Option<Value>> {
        let key = self.key(key);
        let growing = match self.stored[depth] {
            Stored::Sorted(sorted) => return Some(sorted.value(sorted.range(key).next()?)),
            Stored::Growing(growing) => growing,
            Stored::Nowhere => return None,
        };
        match source {
            Source::Sorted(..) => None,
            Source::Row(_, version) => {
                let row = growing.table.find(key).filter(|row| growing.sees(version, *row))?;
                Some(growing.table.value(row))
            }
            Source::Chain(_, chain, version) => {
                let mut row = growing.table.newest(chain, key);
                while row > 0 && !growing.sees(version, row as usize - 1) {
                    row = growing.table.older(chain, row as usize - 1);
                }
                (row > 0).then(|| growing.table.value(row as usize - 1))
            }
            Source::Whole(_, version) => {
                let mut rows = 0..growing.rows(version);
                rows.any(|row| growing.sees(version, growing.row(version, row))).then_some(None)
            }
        }
    }

    #[inline]
    fn match_sorted(
        &mut self,
        depth: usize,
        value: Value,
        sorted: &'a Sorted,
        key: &[Operand],
        columns: &Columns<'_>,
    ) -> Result<(), Failure> {
        let mut range = sorted.range(self.key(key));
        if depth == 0 && columns.distinct.is_none() {
            let from = (range.start + self.rows.start).min(range.end);
            range = from..(range.start.saturating_add(self.rows.end)).clamp(from, range.end);
        }
        if !key.is_empty() || sorted.order.is_empty() {
            return self.match_rows(depth, value, sorted, range, None, columns);
        }
        // What the second column must be is looked up: `R(x, x)` asks once for each x.
        let second = columns.same.iter().find(|(column, _)| *column == 1 && !sorted.loose);
        let bound_first = columns.bind.iter().find(|(column, _)| *column == 0);
        let bound_first = bound_first.map(|(_, slot)| Operand::Slot(*slot));
        for (first, mut group) in sorted.groups(range) {
            if let Some((_, operand)) = second {
                let key = if bound_first == Some(*operand) { first } else { self.operand(*operand) };
                group = sorted.narrowed(group, key);
            }
            self.match_rows(depth, value, sorted, group, Some(first), columns)?;
        }
        Ok(())
    }

    /// The rows of a range; `first` is the constant of the first column where that is no key.
    fn match_rows(
        &mut self,
        depth: usize,
        value: Value,
        sorted: &Sorted,
        range: Range<usize>,
        first: Option<u32>,
        columns: &Columns<'_>,
    ) -> Result<(), Failure> {
        let at = |column: usize, row: usize| match column {
            0 => first.unwrap_or(0),
            _ => sorted.column(column)[row],
        };
        'rows: for row in range.clone() {
            if let Some(distinct) = columns.distinct
                && row > range.start
                && (1..distinct).all(|column| at(column, row) == at(column, row - 1))
            {
                continue;
            }
            for (column, slot) in columns.bind {
                self.slots[*slot] = at(*column, row);
            }
            for (column, operand) in columns.same {
                if at(*column, row) != self.operand(*operand) {
                    continue 'rows;
                }
            }
            let value = self.multiply(value, columns.factor, sorted.value(row))?;
            self.step(depth + 1, value)?;
        }
        Ok(())
    }

    fn match_whole(
        &mut self,
        depth: usize,
        value: Value,
        growing: &'a Growing,
        version: Version,
        columns: &Columns<'_>,
    ) -> Result<(), Failure> {
        let mut rows = 0..growing.rows(version);
        if depth == 0 {
            rows = self.rows.start.min(rows.end)..self.rows.end.min(rows.end);
        }
        for number in rows {
            let row = growing.row(version, number);
            if !growing.sees(version, row) {
                continue;
            }
            self.match_tuple(depth, value, growing, row, columns)?;
        }
        Ok(())
    }

    fn match_chain(
        &mut self,
        depth: usize,
        value: Value,
        (growing, chain): (&'a Growing, usize),
        version: Version,
        key: &[Operand],
        columns: &Columns<'_>,
    ) -> Result<(), Failure> {
        let mut next = growing.table.newest(chain, self.key(key));
        while next > 0 {
            let row = next as usize - 1;
            if growing.sees(version, row) {
                self.match_tuple(depth, value, growing, row, columns)?;
            }
            next = growing.table.older(chain, row);
        }
        Ok(())
    }

    #[inline]
    fn match_tuple(
        &mut self,
        depth: usize,
        value: Value,
        growing: &'a Growing,
        row: usize,
        columns: &Columns<'_>,
    ) -> Result<(), Failure> {
        let tuple = growing.table.row(row);
        if self.ahead[depth].as_ref().is_some_and(|ahead| is_idle(ahead, tuple)) {
            return Ok(());
        }
        for (column, slot) in columns.bind {
            self.slots[*slot] = tuple[*column];
        }
        for (column, operand) in columns.same {
            if tuple[*column] != self.operand(*operand) {
                return Ok(());
            }
        }
        let value = self.multiply(value, columns.factor, growing.table.value(row))?;
        self.step(depth + 1, value)
    }

    /// Lists the candidate with the fewest rows and looks the values up in the others, each from where the last one
    /// was found: constants come in ascending order, often from one binding to the next too.
    fn extend(
        &mut self,
        depth: usize,
        value: Value,
        slot: usize,
        all: &'a [Candidate],
    ) -> Result<(), Failure> {
        let base = self.ranges.len();
        let mut lister = 0;
        for (at, candidate) in all.iter().enumerate() {
            let range = self.sorted(candidate).range(self.key(&candidate.key));
            if range.is_empty() {
                self.ranges.truncate(base);
                return Ok(());
            }
            self.ranges.push(range);
            if self.ranges[base + at].len() < self.ranges[base + lister].len() {
                lister = at;
            }
        }
        if self.fingers.len() <= depth {
            self.fingers.resize(depth + 1, Vec::new());
        }
        self.fingers[depth].resize(all.len(), 0);
        let sorted = self.sorted(&all[lister]);
        let column = sorted.column(all[lister].key.len());
        let mut last = None;
        'values: for row in self.ranges[base + lister].clone() {
            let constant = column[row];
            if last == Some(constant) {
                continue;
            }
            last = Some(constant);
            let mut value = self.multiply(value, all[lister].factor, sorted.value(row))?;
            for (at, candidate) in all.iter().enumerate().filter(|(at, _)| *at != lister) {
                let sorted = self.sorted(candidate);
                let (column, range) = (sorted.column(candidate.key.len()), &self.ranges[base + at]);
                let row = seek(column, range, constant, &mut self.fingers[depth][at]);
                if row == range.end || column[row] != constant {
                    continue 'values;
                }
                value = self.multiply(value, candidate.factor, sorted.value(row))?;
            }
            self.slots[slot] = constant;
            self.step(depth + 1, value)?;
        }
        self.ranges.truncate(base);
        Ok(())
    }

    fn sorted(&self, candidate: &Candidate) -> &'a Sorted {
        self.database.relation(candidate.relation).sorted(candidate.index)
    }

    /// A binding is complete.
    fn emit(&mut self, mut value: Value) -> Result<(), Failure> {
        let plan = self.plan;
        for (arguments, computed) in &plan.computed {
            let Some(factor) = self.call(arguments, |arguments| (computed.measure)(arguments)) else {
                return Ok(());
            };
            value = plan.ring.times(value, factor).ok_or_else(|| self.overflow())?;
        }
        let (start, slots) = (self.output.rows.len(), &self.slots);
        self.output.rows.extend(plan.head_terms.iter().map(|term| term.of(slots)));
        let tuple = &self.output.rows[start..];
        let passes = plan.select.as_ref().is_none_or(|select| {
            let constants: Vec<Const> = tuple.iter().map(|id| self.constants.value(*id)).collect();
            (select.test)(&constants, value.as_real())
        });
        let known = || {
            let row = self.known.and_then(|head| Some((head, head.table.find(tuple.iter().copied())?)));
            row.is_some_and(|(head, row)| {
                head.table.value(row).is_none_or(|old| !plan.ring.improves(old, value))
            })
        };
        if !passes || known() {
            self.output.rows.truncate(start);
            return Ok(());
        }
        self.output.len += 1;
        if plan.valued {
            self.output.values.push(value);
        }
        if self.output.len >= self.most && plan.ring.idempotent() {
            match self.head {
                Some(_) => self.known = self.head,
                None => {
                    self.output.thin(plan.ring, plan.head_terms.len());
                    self.most = self.output.len.max(MOST) * 2;
                }
            }
        }
        Ok(())
    }
}

/// What a matching step does with columns.
struct Columns<'a> {
    bind: &'a [(usize, usize)],
    same: &'a [(usize, Operand)],
    factor: Factor,
    distinct: Option<usize>,
}
