//! The steps of a rule as operators.

use std::collections::BTreeMap;
use std::sync::Arc;

use datarel::{Const, RelationId, Ring, Value};
use differential_dataflow::VecCollection;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::implementations::ValSpine;
use timely::progress::Timestamp;

use crate::codes::Codes;
use crate::plan::{Factor, Local, Operand, Plan, Side, Source, Step};
use crate::refusal::Refusal;
use crate::shared::{Fact, NONE, Row, Shared, Worth, trouble};

/// Tuples by the constants in some places.
type ByKey<'s, T> = Arranged<'s, TraceAgent<ValSpine<Row, Fact, T, isize>>>;

/// What the rules of a scope read.
pub(crate) struct Body<'s, T: Timestamp + Lattice> {
    /// The tuples of the relations, each once.
    pub(crate) relations: BTreeMap<RelationId, VecCollection<'s, T, Fact, isize>>,
    /// One binding of no variables.
    pub(crate) unit: VecCollection<'s, T, Row, isize>,
    arranged: BTreeMap<(Source, Vec<usize>), ByKey<'s, T>>,
    codes: Arc<Codes>,
    shared: Arc<Shared>,
}

fn of(operand: Operand, row: &[u32]) -> u32 {
    match operand {
        Operand::Constant(code) => code,
        Operand::Slot(slot) => row.get(slot).copied().unwrap_or(0),
    }
}

fn all(operands: &[Operand], row: &[u32]) -> Row {
    operands.iter().map(|operand| of(*operand, row)).collect()
}

fn at(places: &[usize], row: &[u32]) -> Row {
    places.iter().filter_map(|place| row.get(*place).copied()).collect()
}

fn same(equal: &[(usize, usize)], row: &[u32]) -> bool {
    equal.iter().all(|(a, b)| row.get(*a) == row.get(*b))
}

/// A value times that of a tuple, if that is a factor.
fn times(ring: Ring, worth: Worth, factor: Factor, other: Worth) -> Worth {
    let Some(from) = factor else { return worth };
    let other = ring.factor(if from.valued() { Some(Value(other?)) } else { None }, from);
    ring.times(Value(worth?), other).map(|value| value.0)
}

impl<'s, T: Timestamp + Lattice> Body<'s, T> {
    pub(crate) fn new(
        unit: VecCollection<'s, T, Row, isize>,
        codes: &Arc<Codes>,
        shared: &Arc<Shared>,
    ) -> Body<'s, T> {
        Body {
            relations: BTreeMap::new(),
            unit,
            arranged: BTreeMap::new(),
            codes: Arc::clone(codes),
            shared: Arc::clone(shared),
        }
    }

    /// The tuples of a source.
    fn source(&self, source: &Source) -> VecCollection<'s, T, Fact, isize> {
        // Of a relation that nobody gave there is nothing.
        let whole = self.relations.get(&source.relation).cloned();
        let whole = whole.unwrap_or_else(|| self.unit.clone().flat_map(|_| None));
        match source.places.clone() {
            None => whole,
            Some(places) => whole.map(move |(row, _)| at(&places, &row)).distinct().map(|row| (row, NONE)),
        }
    }

    /// The tuples of a source by the constants in some places; beside them stand the others.
    fn by_key(&mut self, source: &Source, key: &[usize]) -> ByKey<'s, T> {
        let name = (source.clone(), key.to_vec());
        if let Some(known) = self.arranged.get(&name) {
            return known.clone();
        }
        let key = key.to_vec();
        let split = move |(row, worth): Fact| {
            let rest = (0..row.len()).filter(|place| !key.contains(place)).collect::<Vec<_>>();
            (at(&key, &row), (at(&rest, &row), worth))
        };
        let made = self.source(source).map(split).arrange_by_key();
        self.arranged.insert(name, made.clone());
        made
    }

    /// What a rule contributes to its head.
    pub(crate) fn rule(&mut self, plan: Plan) -> VecCollection<'s, T, Fact, isize> {
        let Plan { rule, makes, ring, valued, steps, head, computed, weight, select } = plan;
        let weight = weight.0;
        let start = self.unit.clone().map(move |row| (row, Some(weight)));
        let maker = Maker { codes: Arc::clone(&self.codes), shared: Arc::clone(&self.shared), rule, makes };
        let bindings = steps.into_iter().fold(start, |bindings, step| match step {
            Step::Scan { source, constants, equal, keep, factor } => {
                self.source(&source).flat_map(move |(row, worth)| {
                    let here = constants.iter().all(|(place, code)| row.get(*place) == Some(code));
                    (here && same(&equal, &row))
                        .then(|| (at(&keep, &row), times(ring, Some(weight), factor, worth)))
                })
            }
            Step::Join { source, key, probe, equal, keep, factor } => {
                let tuples = self.by_key(&source, &key);
                let shared = Arc::clone(&self.shared);
                let by_key = bindings.map(move |(row, worth)| (all(&probe, &row), (row, worth)));
                by_key.join_core(tuples, move |_, (left, worth), (right, other)| {
                    if shared.halted() || !same(&equal, right) {
                        return None;
                    }
                    let place = |side: &Side| match side {
                        Side::Left(place) => left.get(*place),
                        Side::Right(place) => right.get(*place),
                    };
                    let row: Row = keep.iter().filter_map(place).copied().collect();
                    Some((row, times(ring, *worth, factor, *other)))
                })
            }
            Step::Missing { source, probe } => {
                let there = self.source(&source).map(|(row, _)| row);
                let by_key = bindings.map(move |(row, worth)| (all(&probe, &row), (row, worth)));
                by_key.antijoin(there).map(|(_, binding)| binding)
            }
            Step::Local { does, keep } => {
                let maker = maker.clone();
                bindings.flat_map(move |(mut row, worth)| {
                    let holds = does.iter().all(|one| maker.holds(one, &mut row));
                    holds.then(|| (at(&keep, &row), worth))
                })
            }
        });
        let codes = Arc::clone(&self.codes);
        let values = move |operands: &[Operand], row: &[u32]| -> Vec<Const> {
            operands.iter().map(|operand| codes.value(of(*operand, row))).collect()
        };
        bindings.flat_map(move |(row, mut worth)| {
            for (arguments, one) in &computed {
                let factor = (one.measure)(&values(arguments, &row))?;
                worth = worth.and_then(|worth| Some(ring.times(Value(worth), factor)?.0));
            }
            if let Some(select) = &select {
                let value = worth.map_or(f64::NAN, |worth| Value(worth).as_real());
                if !(select.test)(&values(&head, &row), value) {
                    return None;
                }
            }
            Some((all(&head, &row), if valued { worth } else { NONE }))
        })
    }
}

/// What conditions need.
#[derive(Clone)]
struct Maker {
    codes: Arc<Codes>,
    shared: Arc<Shared>,
    rule: usize,
    makes: bool,
}

impl Maker {
    fn value(&self, operand: Operand, row: &[u32]) -> Const {
        self.codes.value(of(operand, row))
    }

    fn values(&self, operands: &[Operand], row: &[u32]) -> Vec<Const> {
        operands.iter().map(|operand| self.value(*operand, row)).collect()
    }

    fn shifted(&self, from: Operand, by: i64, row: &[u32]) -> Option<Const> {
        Some(Const::Int(self.value(from, row).int()?.checked_add(by)?))
    }

    /// One more place. A constant without a code stands in no tuple: if the rule could bring it into one, it is refused.
    fn push(&self, made: Option<Const>, row: &mut Row) -> bool {
        let Some(made) = made else { return false };
        let code = self.codes.code(made);
        if code.is_none() && self.makes {
            self.shared.fail(trouble(&Refusal::Constant { rule: self.rule }));
        }
        row.extend(code);
        code.is_some()
    }

    fn holds(&self, local: &Local, row: &mut Row) -> bool {
        match local {
            Local::Compare(sign, a, b) => sign.holds(self.value(*a, row), self.value(*b, row)),
            Local::Assign(from) => {
                let code = of(*from, row);
                row.push(code);
                true
            }
            Local::Shift(from, by) => self.push(self.shifted(*from, *by, row), row),
            Local::ShiftTest(to, from, by) => {
                self.shifted(*from, *by, row).is_some_and(|made| made == self.value(*to, row))
            }
            Local::Compute(arguments, function) => self.push(function(&self.values(arguments, row)), row),
            Local::ComputeTest(result, arguments, function) => {
                function(&self.values(arguments, row)) == Some(self.value(*result, row))
            }
            Local::Test(arguments, test) => test(&self.values(arguments, row)),
        }
    }
}
