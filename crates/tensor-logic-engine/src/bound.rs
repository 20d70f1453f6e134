//! Relations of which equations read a part only.
//!
//! Enter at [`narrowed`]. `C = count[x](P(1, x))` over a closure `P` needs what can be reached from 1, and nothing else of it. Where all
//! equations outside of its own component read a relation that rules make with constants, each such reading becomes one of a relation
//! of its own, `Q(x) <- P(1, x)`, which rules derive with the constants as demand, as they do for a query.

use std::collections::{BTreeMap, BTreeSet};

use crate::datalog::for_rules;
use crate::program::{
    Argument, Class, Combine, Component, Equation, EquationId, Expr, Guard, Index, IndexFn, IndexId,
    Otherwise, Program, Range, Read, Role, Stamp, Style, Tensor, TensorId, Term, When,
};
use crate::value::Const;

/// A program that reads parts in the place of wholes.
#[derive(Debug)]
pub(crate) struct Narrowed {
    /// It: the tensors of the other, then the parts.
    pub(crate) program: Program,
    /// The parts, and what each is one of.
    pub(crate) parts: Vec<(TensorId, TensorId)>,
}

/// A relation, and the constants that are read in its places.
type Part = (TensorId, Vec<Option<Const>>);

/// The program that reads parts of relations, these excepted; or no, if it has none to read.
pub(crate) fn narrowed(program: &Program, whole: &BTreeSet<TensorId>) -> Option<Narrowed> {
    let parts = parts(program, whole);
    if parts.is_empty() {
        return None;
    }
    let mut narrowed = Narrowed { program: program.clone(), parts: Vec::new() };
    let mut made: BTreeMap<Part, TensorId> = BTreeMap::new();
    for part in parts {
        let id = add(&mut narrowed.program, &part)?;
        narrowed.parts.push((id, part.0));
        made.insert(part, id);
    }
    for component in &program.components {
        for at in component.equations.iter().filter(|at| is_reader(program, component, **at)) {
            let Some(equation) = narrowed.program.equations.get_mut(at.0 as usize) else { continue };
            let mut change = |read: &mut Read| {
                let key = constants(read).map(|constants| (read.tensor, constants));
                if let Some((own, part)) = key.and_then(|key| made.get_key_value(&key)) {
                    let mut free = own.1.iter().map(Option::is_none);
                    read.tensor = *part;
                    read.arguments.retain(|_| free.next().unwrap_or(true));
                }
            };
            for term in &mut equation.terms {
                term.body.change_reads(&mut change);
                term.when.change_reads(&mut change);
            }
        }
    }
    Some(narrowed)
}

/// The parts that stand for all that equations read of some relations.
fn parts(program: &Program, whole: &BTreeSet<TensorId>) -> BTreeSet<Part> {
    let mut made: BTreeMap<TensorId, usize> = BTreeMap::new();
    for (nth, component) in program.components.iter().enumerate() {
        let suits = |id: &&TensorId| !whole.contains(id) && suits(program, component, **id);
        made.extend(component.tensors.iter().filter(suits).map(|id| (*id, nth)));
    }
    let mut found: BTreeSet<Part> = BTreeSet::new();
    if made.is_empty() {
        return found;
    }
    for (nth, component) in program.components.iter().enumerate() {
        for at in component.equations.iter().filter(|at| is_reader(program, component, **at)) {
            program.equation(*at).visit_reads(&mut |read, _| {
                if made.get(&read.tensor).is_none_or(|own| *own == nth) {
                    return;
                }
                match constants(read).filter(|_| is_inside(program, read)) {
                    Some(constants) => {
                        found.insert((read.tensor, constants));
                    }
                    None => {
                        made.remove(&read.tensor);
                    }
                }
            });
        }
    }
    found.retain(|(tensor, _)| made.contains_key(tensor));
    found
}

/// Whether rules make a relation, and more of it than what they read: by recursion, or by a join that leaves out what it joins over.
fn suits(program: &Program, component: &Component, id: TensorId) -> bool {
    let tensor = program.tensor(id);
    let joins = |equation: &Equation| {
        equation.terms.iter().any(|term| {
            let mut reads = 0;
            term.body.visit_reads(&mut |_, _| reads += 1);
            term.when.visit_reads(&mut |_, _| reads += 1);
            reads > 1 && !term.over.is_empty()
        })
    };
    tensor.style == Style::Round
        && tensor.role == Role::Computed
        && matches!(tensor.combine, Combine::Exists | Combine::Min | Combine::Max)
        && match component.class {
            Class::Closure => true,
            Class::Plain => component.equations.iter().any(|at| joins(program.equation(*at))),
            Class::Stepped(_) | Class::Numeric => false,
        }
}

/// Whether the readings of an equation count: those of a rule are asked for by who asks for the rule.
fn is_reader(program: &Program, component: &Component, at: EquationId) -> bool {
    let id = program.equation(at).tensor;
    program.tensor(id).style == Style::Square || !for_rules(program, component, id)
}

/// The constants that a reading names, if it names any.
fn constants(read: &Read) -> Option<Vec<Option<Const>>> {
    let constant = |argument: &Argument| match argument {
        Argument::At(IndexFn::Const(value)) => Some(*value),
        _ => None,
    };
    let constants: Vec<Option<Const>> = read.arguments.iter().map(constant).collect();
    constants.iter().any(Option::is_some).then_some(constants)
}

/// Whether a tuple that a reading names is read as the part has it: absent, or 0 at constants that the places have.
fn is_inside(program: &Program, read: &Read) -> bool {
    let places = &program.tensor(read.tensor).places;
    match read.otherwise {
        Otherwise::Absent => true,
        Otherwise::ZeroOutside => false,
        Otherwise::Zero => places.iter().zip(&read.arguments).all(|(place, argument)| match argument {
            Argument::At(IndexFn::Const(value)) => {
                place.domain.as_ref().is_some_and(|domain| domain.contains(*value))
            }
            _ => true,
        }),
    }
}

/// Adds a part behind what it is one of: `Q(x) <- P(1, x)`.
fn add(program: &mut Program, (of, constants): &Part) -> Option<TensorId> {
    let whole = program.tensor(*of).clone();
    let mut arguments = Vec::new();
    let (mut places, mut left) = (Vec::new(), Vec::new());
    for (place, constant) in whole.places.iter().zip(constants) {
        arguments.push(Argument::At(match constant {
            Some(value) => IndexFn::Const(*value),
            None => {
                let name = format!("x{}", left.len());
                program.indices.push(Index { name, range: Range::Tuples, span: whole.span });
                let index = IndexId(u32::try_from(program.indices.len() - 1).ok()?);
                left.push(index);
                places.push(place.clone());
                IndexFn::Index(index)
            }
        }));
    }
    let id = TensorId(u32::try_from(program.tensors.len()).ok()?);
    let read = Read::new(*of, arguments, Otherwise::Absent, whole.span);
    let (when, body) = match whole.combine {
        Combine::Exists => (When::from(vec![Guard::Read(read)]), Expr::Number(1.0)),
        _ => (When::default(), Expr::Read(read)),
    };
    let span = program.left_side(*of);
    let rule = Equation {
        tensor: id,
        head: left.iter().map(|index| IndexFn::Index(*index)).collect(),
        left,
        terms: vec![Term { over: Vec::new(), when, body }],
        node: Stamp::default(),
        span,
        head_span: span,
        sign_span: span,
    };
    // What is hidden is nobody's relation, and is not kept for the next program.
    program.tensors.push(Tensor { hidden: true, places, given: Vec::new(), start: None, ..whole });
    program.equations.push(rule);
    let equations = vec![EquationId(u32::try_from(program.equations.len() - 1).ok()?)];
    let at = program.components.iter().position(|component| component.tensors.contains(of))?;
    program.components.insert(at + 1, Component { tensors: vec![id], equations, class: Class::Plain });
    Some(id)
}
