//! Rounds of a closure over what the round before changed: semi-naive evaluation, as databases call it.
//!
//! Enter at [`Machine::rests_by_deltas`]. An equation that reads one tuple of its component for each contribution makes of all tuples
//! what it makes of those that are new, or better than before, and of the rest, which was joined already. So while a round is
//! gone through, the tensors of the component hold its changes only. Rules over relations are done elsewhere; these are closures
//! that ask for values, elements of square tensors or functions as well.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::component::own_equations;
use crate::divergence::diverges;
use crate::engine::Parameters;
use crate::error::Result;
use crate::function::Function;
use crate::head::Accumulator;
use crate::kernels::{larger, smaller};
use crate::program::{
    Class, Combine, Component, Expr, Guard, Kind, Otherwise, Program, Read, Style, TensorId, Term,
};
use crate::store::machine::{Machine, Stored};
use crate::store::relation::{Codes, Piece, Relation};
use crate::value::Const;
use tensor_logic_core::signs::{keep_order, may_be_negative};

/// The tuples of a relation so far.
#[derive(Default)]
pub(super) struct Known {
    /// For each place its constants, their codes, and the code of each tuple.
    places: Vec<(Codes, HashMap<Const, u32>)>,
    pub(super) values: Vec<f64>,
    /// Where the tuple of these codes stands.
    rows: HashMap<SmallVec<[u32; 4]>, usize>,
}

impl Known {
    pub(super) fn new(arity: usize) -> Known {
        Known { places: vec![Default::default(); arity], ..Known::default() }
    }

    /// Joins tuples to it; which of them are new, or better than before.
    pub(super) fn join(&mut self, relation: &Relation, combine: Combine) -> Relation {
        let mut changed = vec![false; relation.len];
        let codes: Vec<Vec<u32>> = relation
            .dictionaries
            .iter()
            .zip(&mut self.places)
            .map(|(dictionary, (own, codes))| {
                let code = |value: &Const| {
                    *codes.entry(*value).or_insert_with(|| {
                        own.dictionary.push(*value);
                        own.dictionary.len() as u32 - 1
                    })
                };
                dictionary.iter().map(code).collect()
            })
            .collect();
        for (row, changed) in changed.iter_mut().enumerate() {
            let columns = relation.columns.iter().zip(&codes);
            let key: SmallVec<[u32; 4]> =
                columns.map(|(column, codes)| codes[column[row] as usize]).collect();
            let value = relation.value(row);
            let Some(at) = self.rows.get(&key) else {
                self.places.iter_mut().zip(&key).for_each(|((own, _), code)| own.codes.push(*code));
                self.rows.insert(key, self.values.len());
                self.values.push(value);
                *changed = true;
                continue;
            };
            let slot = &mut self.values[*at];
            let best = match combine {
                Combine::Max => larger(*slot, value),
                Combine::Min => smaller(*slot, value),
                _ => *slot,
            };
            *changed = best != *slot && !(best.is_nan() && slot.is_nan());
            *slot = best;
        }
        relation.only(|row| changed[row])
    }

    /// One tuple more; its value is added to the one that is there.
    pub(super) fn add(&mut self, tuple: &[Const], value: f64) {
        let code = |((own, codes), value): (&mut (Codes, HashMap<Const, u32>), &Const)| {
            *codes.entry(*value).or_insert_with(|| {
                own.dictionary.push(*value);
                own.dictionary.len() as u32 - 1
            })
        };
        let key: SmallVec<[u32; 4]> = self.places.iter_mut().zip(tuple).map(code).collect();
        match self.rows.get(&key) {
            Some(at) => self.values[*at] += value,
            None => {
                self.places.iter_mut().zip(&key).for_each(|((own, _), code)| own.codes.push(*code));
                self.rows.insert(key, self.values.len());
                self.values.push(value);
            }
        }
    }

    pub(super) fn piece(self) -> Piece {
        let valued = self.values.iter().any(|value| *value != 1.0);
        Piece {
            len: self.values.len(),
            places: self.places.into_iter().map(|(codes, _)| codes).collect(),
            values: valued.then_some(self.values),
            counts: None,
        }
    }
}

impl Machine {
    /// Goes through the rounds of a closure by what changes, if its equations are such.
    pub(crate) fn rests_by_deltas(&mut self, component: &Component, parameters: &Parameters) -> Result<bool> {
        let program = Arc::clone(&self.program);
        if !is_by_deltas(&program, component) {
            return Ok(false);
        }
        let arity = |id: &TensorId| program.tensor(*id).places.len();
        let mut known: Vec<Known> = component.tensors.iter().map(|id| Known::new(arity(id))).collect();
        for id in &component.tensors {
            self.store(*id, Stored::Relation(Arc::new(Relation::empty(arity(id)))));
        }
        let boolean = component.tensors.iter().all(|id| is_boolean(program.tensor(*id).combine));
        for rounds in 1.. {
            // Small operations do not ask.
            self.stop.check(self.head)?;
            let mut made = Vec::new();
            for id in &component.tensors {
                made.push(match rounds {
                    1 => self.plain(component, *id, parameters)?,
                    _ => self.added(component, *id)?,
                });
            }
            let mut grew = None;
            for ((id, made), known) in component.tensors.iter().zip(made).zip(&mut known) {
                let Stored::Relation(made) = made else { continue };
                let changed = known.join(&made, program.tensor(*id).combine);
                if changed.len > 0 {
                    grew = grew.or(Some(*id));
                }
                self.head = program.left_side(*id);
                self.within_tuples(*id, known.values.len() as u64)?;
                self.store(*id, Stored::Relation(Arc::new(changed)));
            }
            if grew.is_none() {
                self.note_rounds(component, rounds, 0.0);
                break;
            }
            // As many rounds as there are tuples find every path.
            let reached: usize = known.iter().map(|known| known.values.len()).sum();
            if !boolean && rounds > reached as u64 {
                return Err(diverges(&program, component, rounds, grew));
            }
        }
        for (id, known) in component.tensors.iter().zip(known) {
            let combine = program.tensor(*id).combine;
            let relation = Relation::merge(arity(id), &[known.piece()], combine, &program.symbols);
            self.store(*id, Stored::Relation(Arc::new(relation)));
        }
        Ok(true)
    }

    /// What the equations that read the component make of the tuples at hand.
    fn added(&mut self, component: &Component, id: TensorId) -> Result<Stored> {
        let program = Arc::clone(&self.program);
        self.head = program.left_side(id);
        loop {
            let mut accumulator = Accumulator::Sparse(Vec::new());
            self.watch(id);
            for equation in own_equations(&program.equations, component, id) {
                if equation.terms.iter().any(|term| own_reads(component, term) > 0) {
                    self.contribute(equation, &[], &mut accumulator)?;
                }
            }
            let stored = self.finish(id, accumulator);
            if !self.must_repeat() {
                return Ok(stored);
            }
        }
    }
}

fn is_boolean(combine: Combine) -> bool {
    matches!(combine, Combine::Exists | Combine::Or)
}

/// How often a term reads its component.
pub(super) fn own_reads(component: &Component, term: &Term) -> usize {
    let mut count = 0;
    let mut visit = |read: &Read, _| count += usize::from(component.tensors.contains(&read.tensor));
    term.body.visit_reads(&mut visit);
    term.when.visit_reads(&mut visit);
    count
}

/// Whether every contribution comes from one tuple of the component at most, and is the better the better that is.
fn is_by_deltas(program: &Program, component: &Component) -> bool {
    let suits = |id: &TensorId| {
        let tensor = program.tensor(*id);
        let joins = is_boolean(tensor.combine) || matches!(tensor.combine, Combine::Max | Combine::Min);
        tensor.style == Style::Round && joins && tensor.kind != Kind::Count
    };
    let boolean = component.tensors.iter().all(|id| is_boolean(program.tensor(*id).combine));
    let mut multiplies = false;
    let terms = component.equations.iter().flat_map(|at| &program.equation(*at).terms);
    let mut single = |term: &Term| match own_reads(component, term) {
        0 => true,
        1 => {
            let guard = |guard: &Guard| matches!(guard, Guard::Read(read) if is_own(component, read));
            let guarded = term.when.exists.is_empty() && term.when.guards.iter().any(guard);
            guarded || grows(component, &term.body, boolean, &mut multiplies)
        }
        _ => false,
    };
    // A number below 0 may take a tuple away: whole rounds say where.
    let adds = |term: &Term| !boolean || !may_be_negative(program, component, &term.body);
    matches!(component.class, Class::Closure)
        && component.tensors.iter().all(suits)
        && terms.into_iter().all(|term| single(term) && adds(term))
        && (boolean || !multiplies || keep_order(program, component))
}

pub(super) fn is_own(component: &Component, read: &Read) -> bool {
    read.otherwise == Otherwise::Absent && component.tensors.contains(&read.tensor)
}

/// Whether an expression is there only where the tuple of the component that it reads is, and grows with its value, or has no
/// more to say than that it is there.
fn grows(component: &Component, expr: &Expr, boolean: bool, multiplies: &mut bool) -> bool {
    let mut one_of = |parts: &[Expr]| {
        parts.iter().any(|part| {
            let mut own = false;
            part.visit_reads(&mut |read, _| own |= component.tensors.contains(&read.tensor));
            own && grows(component, part, boolean, multiplies)
        })
    };
    match expr {
        Expr::Read(read) => is_own(component, read),
        Expr::Plus(parts) => one_of(parts),
        Expr::Terms(parts) if parts.len() == 1 => one_of(parts),
        Expr::Product(parts) => {
            let grows = one_of(parts);
            *multiplies = true;
            grows
        }
        Expr::Power(base, exponent) if boolean && matches!(**exponent, Expr::Number(0.0)) => {
            grows(component, base, boolean, multiplies)
        }
        Expr::Call(call) if call.when.guards.is_empty() => {
            (boolean || matches!(call.function, Function::Min | Function::Max)) && one_of(&call.arguments)
        }
        _ => false,
    }
}
