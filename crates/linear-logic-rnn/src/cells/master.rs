//! The cell that a user's proofs define: section 4.
//!
//! ```text
//! h′ = σ( Σ_{m in} Z_m + H h + U x + B ) + Σ_{m out} Z_m          Z_m = I_m ⟦proof_m⟧(slots) J_m h
//! ```
//! All weights are made first, so that slots and projections may share those of any other master.

use linear_logic::compile::Slot as ProofSlot;

use super::glue::{Glue, Notes};
use super::linear_logic::activate;
use super::recurrent::Simple;
use crate::error::{Kind, Refusal, Result};
use crate::nearest::shortened;
use crate::options::{
    GateAct, MOST_MASTERS, MOST_PROGRAMS, Master, MasterPlace, MasterProjection, Shared, Sizes, Slot,
    SlotKind, SlotShape, not_too_many, of,
};
use crate::program::{Compiled, ProgramText, Subject, Writer, compiled};
use crate::step::{Builder, Factor, Start, ValueId, View, WeightId};

/// What fills a slot, with its weights.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Filling {
    /// γ(W h + b), or ones.
    Program { weights: Option<(WeightId, WeightId)>, len: usize, act: GateAct },
    /// V(x), or V(x′), from `from` to `to` dimensions.
    Operator { weight: WeightId, is_diagonal: bool, from: usize, to: usize },
    /// γ(W h + b) as a matrix.
    Data { weight: WeightId, bias: WeightId, act: GateAct, from: usize, to: usize },
    /// A matrix.
    Matrix { weight: WeightId, from: usize, to: usize },
}

/// A master whose proof is compiled and whose weights stand.
struct Ready<'a> {
    master: &'a Master,
    made: Compiled,
    fillings: Vec<Option<Filling>>,
    /// I and J
    projection: Option<(WeightId, WeightId)>,
}

pub(super) fn master(
    b: &mut Builder,
    sizes: &Sizes,
    options: &of::Master,
    notes: &mut Notes,
) -> Result<Glue> {
    let masters = options.masters.as_deref().unwrap_or_default();
    if masters.is_empty() {
        return Err(Refusal::config("the cell `master` needs `masters`, at least one"));
    }
    not_too_many("`masters`", masters.len(), MOST_MASTERS)?;
    let made: Result<Vec<Compiled>> =
        masters.iter().enumerate().map(|(at, master)| proof_of(at, master, notes)).collect();
    let simple = Simple::new(b, sizes, Start::Zero)?;
    let mut ready = Vec::new();
    for (at, (master, made)) in masters.iter().zip(made?).enumerate() {
        ready.push(weights(b, &simple, at, master, made)?);
    }
    share(&mut ready)?;
    let mut inside = Vec::new();
    let mut outside = Vec::new();
    for ready in &ready {
        let z = summand(b, &simple, ready)?;
        match ready.master.place {
            MasterPlace::In => inside.push(z),
            MasterPlace::Out => outside.push(z),
        }
    }
    let z = simple.affine(b, true, &inside);
    if outside.is_empty() {
        return Ok(simple.end(b, options.act, z));
    }
    let act = options.act.unwrap_or(crate::options::Sigma::Relu).act();
    let mut parts = vec![b.act(act, z)];
    parts.append(&mut outside);
    let next = b.sum(&parts);
    b.set_state(simple.state, next);
    Ok(Glue { next, act })
}

fn unfit(at: usize, why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Kind::Proof, format!("masters[{at}]: {why}"))
}

/// The compiled proof; its type fits the slots.
fn proof_of(at: usize, master: &Master, notes: &mut Notes) -> Result<Compiled> {
    let mut slots = Vec::new();
    for (number, slot) in master.slots.iter().enumerate() {
        let list = || format!("masters[{at}].slots[{number}]: ");
        slots.push(match (slot.kind, &slot.list) {
            (SlotKind::Program, Some(terms)) if !terms.is_empty() => {
                not_too_many(&format!("{}`list`", list()), terms.len(), MOST_PROGRAMS)?;
                ProofSlot::Mix(terms.clone())
            }
            (SlotKind::Program, _) => {
                return Err(Refusal::config(format!("{}a `program` needs a `list` of terms", list())));
            }
            (_, Some(_)) => {
                return Err(Refusal::config(format!("{}`list` belongs to the kind `program`", list())));
            }
            (_, None) => ProofSlot::Operator,
        });
    }
    let what = format!("masters[{at}]");
    let subject = Subject { what, text: master.proof.clone(), against: None };
    let made = compiled(&[subject], &slots, master.order.order())?;
    if let Some(why) = made.signature.misfit(&slots) {
        return Err(unfit(at, why));
    }
    if made.signature.result.as_ref() != Some(&(master.state.clone(), master.state.clone())) {
        let (state, found) = (shortened(&master.state), &made.signature.text);
        let why = format!("the proof has the type `{found}`, which does not end in `{state} -o {state}`");
        return Err(unfit(at, why));
    }
    let canonical = made.types.first().cloned().unwrap_or_default();
    let degree = made.plan.degrees().first().copied().unwrap_or_default();
    notes.programs.push(ProgramText {
        place: format!("masters[{at}]"),
        text: master.proof.clone(),
        canonical,
        applied: None,
        degree,
    });
    Ok(made)
}

fn dimension(at: usize, master: &Master, atom: &str) -> Result<usize> {
    match master.dims.get(atom) {
        None => Err(Refusal::config(format!("masters[{at}]: `dims` does not say how large {atom} is"))),
        Some(0) => Err(Refusal::config(format!("masters[{at}]: the dimension of {atom} is 0"))),
        Some(n) if *n > 1 << 20 => Err(Refusal::config(format!("masters[{at}]: {atom} = {n} is too large"))),
        Some(n) => Ok(*n),
    }
}

/// Makes the weights that a master has of its own.
fn weights<'a>(
    b: &mut Builder,
    simple: &Simple,
    at: usize,
    master: &'a Master,
    made: Compiled,
) -> Result<Ready<'a>> {
    let width = dimension(at, master, &master.state)?;
    let projection = match master.project {
        MasterProjection::Learned => Some((
            b.matrix(format!("m{at}.I"), &[simple.hidden, width]),
            b.matrix(format!("m{at}.J"), &[width, simple.hidden]),
        )),
        MasterProjection::Identity if width != simple.hidden => {
            return Err(Refusal::config(format!(
                "masters[{at}]: without a projection {} has `hidden` = {} dimensions, not {width}",
                master.state, simple.hidden
            )));
        }
        MasterProjection::Identity | MasterProjection::Shared(_) => None,
    };
    let mut fillings = Vec::new();
    for (number, slot) in master.slots.iter().enumerate() {
        let atoms = made.signature.arguments.get(number).and_then(|argument| argument.operator.clone());
        fillings.push(filling(b, simple, (at, number), master, slot, atoms)?);
    }
    Ok(Ready { master, made, fillings, projection })
}

/// What fills a slot; `None` if it is shared.
fn filling(
    b: &mut Builder,
    simple: &Simple,
    (at, number): (usize, usize),
    master: &Master,
    slot: &Slot,
    atoms: Option<(String, String)>,
) -> Result<Option<Filling>> {
    let name = format!("m{at}.s{number}");
    let refuse = |why: &str| Refusal::config(format!("masters[{at}].slots[{number}]: {why}"));
    if slot.value.is_some() && slot.kind != SlotKind::Constant {
        return Err(refuse("`value` belongs to the kind `constant`"));
    }
    if slot.shape.is_some() && !matches!(slot.kind, SlotKind::Input | SlotKind::PreviousInput) {
        return Err(refuse("`shape` belongs to the kinds `input` and `previous-input`"));
    }
    if slot.act.is_some() && !matches!(slot.kind, SlotKind::Program | SlotKind::Data) {
        return Err(refuse("`act` belongs to the kinds `program` and `data`"));
    }
    if slot.kind == SlotKind::Program {
        return program(b, simple, &name, slot).map(Some).map_err(|why| refuse(&why));
    }
    let Some((from_atom, to_atom)) = atoms else {
        return Err(unfit(at, format!("argument {number} is not an operator α -o β")));
    };
    for (given, found) in [(&slot.from, &from_atom), (&slot.to, &to_atom)] {
        if given.as_ref().is_some_and(|given| given != found) {
            return Err(unfit(at, format!("argument {number} has the type {from_atom} -o {to_atom}")));
        }
    }
    let (from, to) = (dimension(at, master, &from_atom)?, dimension(at, master, &to_atom)?);
    if slot.share.is_some() {
        if slot.value.is_some() {
            return Err(refuse("a shared slot has no `value` of its own"));
        }
        if slot.kind == SlotKind::Data {
            of_data(slot.act).map_err(|why| refuse(&why))?;
        }
        return Ok(None);
    }
    Ok(Some(match slot.kind {
        SlotKind::Program => return Ok(None),
        SlotKind::Input | SlotKind::PreviousInput => {
            let is_diagonal = slot.shape == Some(SlotShape::Diag);
            if is_diagonal && from != to {
                return Err(refuse("a diagonal operator does not change the dimension"));
            }
            let shape = if is_diagonal { vec![simple.input, to] } else { vec![simple.input, to, from] };
            Filling::Operator { weight: b.matrix(format!("{name}.W"), &shape), is_diagonal, from, to }
        }
        SlotKind::Data => {
            let act = of_data(slot.act).map_err(|why| refuse(&why))?;
            let weight = b.matrix(format!("{name}.W"), &[to * from, simple.hidden]);
            let bias = b.bias(format!("{name}.b"), to * from, 0.0);
            Filling::Data { weight, bias, act, from, to }
        }
        SlotKind::Param => Filling::Matrix { weight: b.matrix(format!("{name}.W"), &[to, from]), from, to },
        SlotKind::Constant => {
            let Some(value) = &slot.value else { return Err(refuse("a `constant` needs a `value`")) };
            if value.len() != to || value.iter().any(|row| row.len() != from) {
                return Err(Refusal::shape(format!(
                    "masters[{at}].slots[{number}]: `value` must have {to} rows of {from}"
                )));
            }
            if value.iter().flatten().any(|x| !x.is_finite()) {
                return Err(refuse("`value` has an entry that is not finite"));
            }
            let weight = b.fixed(format!("{name}.value"), &[to, from], value.concat());
            Filling::Matrix { weight, from, to }
        }
    }))
}

fn program(
    b: &mut Builder,
    simple: &Simple,
    name: &str,
    slot: &Slot,
) -> std::result::Result<Filling, String> {
    if slot.from.is_some() || slot.to.is_some() || slot.share.is_some() {
        return Err("`from`, `to` and `share` do not belong to the kind `program`".to_owned());
    }
    let len = slot.list.as_ref().map_or(0, Vec::len);
    let act = slot.act.unwrap_or(GateAct::Relu);
    let weights = (act != GateAct::One).then(|| {
        (b.matrix(format!("{name}.W"), &[len, simple.hidden]), b.bias(format!("{name}.b"), len, 0.0))
    });
    Ok(Filling::Program { weights, len, act })
}

/// γ of data, relu if nothing is said.
fn of_data(act: Option<GateAct>) -> std::result::Result<GateAct, String> {
    match act.unwrap_or(GateAct::Relu) {
        GateAct::Softmax | GateAct::One => Err("`act` of data is relu, tanh, sigmoid or identity".to_owned()),
        act => Ok(act),
    }
}

/// Where a chain of shares ends; `None` where it does not, or leads nowhere.
fn end_of<P: Copy>(from: P, most: usize, next: impl Fn(P) -> Option<Option<P>>) -> Option<P> {
    let mut at = from;
    for _ in 0..=most {
        match next(at)? {
            Some(other) => at = other,
            None => return Some(at),
        }
    }
    None
}

/// Gives shared slots and projections the weights of those that they name.
fn share(ready: &mut [Ready<'_>]) -> Result<()> {
    for at in 0..ready.len() {
        if let MasterProjection::Shared(Shared { share }) = ready[at].master.project {
            let next = |at: usize| match ready.get(at)?.master.project {
                MasterProjection::Shared(Shared { share }) => Some(Some(share)),
                _ => Some(None),
            };
            let other = end_of(share, ready.len(), next).and_then(|end| ready.get(end));
            let Some((other, found)) = other.and_then(|other| Some((other.master, other.projection?))) else {
                return Err(Refusal::config(format!(
                    "masters[{at}]: `project` shares that of master {share}, which has no weights of its own"
                )));
            };
            let (mine, its) = (&ready[at].master, other);
            if mine.dims.get(&mine.state) != its.dims.get(&its.state) {
                return Err(Refusal::config(format!(
                    "masters[{at}]: `project` shares that of master {share}, whose state has another dimension"
                )));
            }
            ready[at].projection = Some(found);
        }
        for number in 0..ready[at].master.slots.len() {
            let Some([m, s]) = ready[at].master.slots[number].share else { continue };
            let refuse =
                |why: &str| Err(Refusal::config(format!("masters[{at}].slots[{number}]: `share`: {why}")));
            let all = ready.iter().map(|other| other.master.slots.len()).sum();
            let next = |[m, s]: [usize; 2]| Some(ready.get(m)?.master.slots.get(s)?.share);
            let end = end_of([m, s], all, next);
            let found = end.and_then(|[m, s]| {
                let other = ready.get(m)?;
                Some((other.fillings.get(s).copied().flatten()?, other.master.slots.get(s)?.kind))
            });
            let Some((found, kind)) = found else {
                return refuse("there is no such slot with weights of its own");
            };
            if !fits(&found, kind, ready, (at, number)) {
                return refuse("that slot has another kind or shape");
            }
            let own = ready[at].master.slots[number].act;
            ready[at].fillings[number] = Some(match (found, own) {
                (Filling::Data { weight, bias, from, to, .. }, Some(act)) => {
                    Filling::Data { weight, bias, act, from, to }
                }
                (found, _) => found,
            });
        }
    }
    Ok(())
}

/// Whether a slot can use another's weights.
fn fits(found: &Filling, kind: SlotKind, ready: &[Ready<'_>], (at, number): (usize, usize)) -> bool {
    let master = ready[at].master;
    let argument = ready[at].made.signature.arguments.get(number);
    let Some((from_atom, to_atom)) = argument.and_then(|argument| argument.operator.clone()) else {
        return false;
    };
    let wanted = (master.dims.get(&from_atom).copied(), master.dims.get(&to_atom).copied());
    let slot = &master.slots[number];
    let (kind_fits, from, to) = match *found {
        Filling::Program { .. } => return false,
        Filling::Operator { is_diagonal, from, to, .. } => {
            let same_shape = slot.shape.is_none_or(|shape| (shape == SlotShape::Diag) == is_diagonal);
            (matches!(slot.kind, SlotKind::Input | SlotKind::PreviousInput) && same_shape, from, to)
        }
        Filling::Data { from, to, .. } => (slot.kind == SlotKind::Data, from, to),
        // A parameter is learned and a constant is not.
        Filling::Matrix { from, to, .. } => (slot.kind == kind, from, to),
    };
    kind_fits && wanted == (Some(from), Some(to))
}

/// Z_m
fn summand(b: &mut Builder, simple: &Simple, ready: &Ready<'_>) -> Result<ValueId> {
    let h = simple.h;
    let plain = |weight: WeightId| Factor { weight, view: View::Plain };
    let u = match ready.projection {
        Some((_, to)) => b.product(to, h),
        None => h,
    };
    let mut coefficients = Vec::new();
    for (number, filling) in ready.fillings.iter().enumerate() {
        coefficients.push(match filling {
            Some(Filling::Program { weights: Some((weight, bias)), len, act }) => {
                let raw = b.affine(&[(plain(*weight), h)], Some(*bias), &[]);
                Some(activate(b, *act, *len, raw))
            }
            Some(Filling::Program { weights: None, len, .. }) => {
                let ones = b.fixed(format!("ones.{number}.{len}"), &[*len], vec![1.0; *len]);
                Some(b.vector(ones))
            }
            _ => None,
        });
    }
    let slots = &ready.master.slots;
    let mut operate = |b: &mut Builder, slot: usize, z: ValueId| {
        let Some(filling) = ready.fillings.get(slot).copied().flatten() else {
            return Err(Refusal::new(Kind::Proof, format!("slot {slot} is not an operator")));
        };
        let x = match slots.get(slot).map(|slot| slot.kind) {
            Some(SlotKind::PreviousInput) => b.previous(),
            _ => simple.x,
        };
        Ok(match filling {
            Filling::Program { .. } => {
                return Err(Refusal::new(Kind::Proof, format!("slot {slot} is a program, not an operator")));
            }
            Filling::Operator { weight, is_diagonal: true, .. } => {
                let operator = b.select(weight, x);
                b.mul(operator, z)
            }
            Filling::Operator { weight, .. } => b.operate(weight, x, z),
            Filling::Data { weight, bias, act, .. } => {
                let raw = b.affine(&[(plain(weight), h)], Some(bias), &[]);
                let matrix = activate(b, act, 1, raw);
                b.apply(matrix, z)
            }
            Filling::Matrix { weight, .. } => b.product(weight, z),
        })
    };
    let mut writer = Writer {
        plan: &ready.made.plan,
        vector: u,
        coefficients: &coefficients,
        operate: &mut operate,
        applied: 0,
    };
    let results = writer.results(b)?;
    let Some(z) = results.first().copied() else {
        return Err(Refusal::new(Kind::Proof, "the proof has no result"));
    };
    Ok(match ready.projection {
        Some((back, _)) => b.product(back, z),
        None => z,
    })
}
