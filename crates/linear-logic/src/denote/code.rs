//! Kernel terms prepared for evaluation: every variable is a slot of the frame of the λ around it.
//!
//! A λ knows which slots of its surroundings it captures, so that its value depends on these alone: two closures with
//! the same code and the same captures are the same value. The term is swept three times, without recursion.

use std::collections::HashMap;
use std::rc::Rc;

use crate::formula::{Formula, Instance};
use crate::term::{Definition, Node, NodeId, Term, Variable};

/// Where a node of code stands.
pub(super) type CodeId = usize;

/// A slot of a frame.
pub(super) type Slot = usize;

/// A body with the frame that it needs.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) body: CodeId,
    /// The slots of the frame; captured values come first.
    pub(super) slots: usize,
    /// The slot of the argument.
    pub(super) parameter: Slot,
    /// The atoms, if this is a λ of type α ⊸ β.
    pub(super) operator: Option<(Rc<str>, Rc<str>)>,
}

#[derive(Debug, Clone)]
pub(super) enum Code {
    Local(Slot),
    Closure { function: usize, captures: Rc<[Slot]> },
    Apply(CodeId, CodeId),
    Tensor(CodeId, CodeId),
    LetTensor { scrutinee: CodeId, left: Slot, right: Slot, body: CodeId },
    Unit,
    LetUnit { scrutinee: CodeId, body: CodeId },
    Derelict(CodeId),
    Promote { sources: Rc<[(CodeId, Slot)]>, body: CodeId },
    Copy { scrutinee: CodeId, left: Slot, right: Slot, body: CodeId },
    Discard { scrutinee: CodeId, body: CodeId },
    With(CodeId, CodeId),
    First(CodeId),
    Second(CodeId),
    InLeft(CodeId),
    InRight(CodeId),
    Case { scrutinee: CodeId, left: (Slot, CodeId), right: (Slot, CodeId) },
    Global { definition: Rc<Definition>, arguments: Rc<[Formula]> },
    Numeral { value: u32, base: Formula },
    Word { digits: Rc<[bool]>, base: Formula },
    Coweaken,
    Cocopy(CodeId, CodeId),
    Coderelict(CodeId),
}

/// All code of an evaluation.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) nodes: Vec<Code>,
    pub(super) functions: Vec<Function>,
}

/// The λ, or the whole term, whose frame holds a variable.
type Owner = Option<usize>;

impl Program {
    /// Adds a closed term, with formulas for its parameters, and gives its function.
    pub(super) fn add(&mut self, term: &Term, instance: &Instance<'_>) -> usize {
        let layout = Layout::new(term);
        let base = self.nodes.len();
        let at = |id: NodeId| base + id.index();
        for (i, node) in term.nodes().iter().enumerate() {
            let owner = layout.owners.get(i).copied().flatten();
            let slot = |variable| layout.slot(owner, variable);
            let code = match node {
                Node::Variable(x) => Code::Local(slot(*x)),
                Node::Lambda { variable, domain, codomain, body } => {
                    let captured = layout.captures.get(&i).map_or(&[][..], |list| list);
                    let operator = domain.as_atom_of(instance).zip(codomain.as_atom_of(instance));
                    let slots = layout.slots.get(&Some(i)).copied().unwrap_or(0);
                    let parameter = layout.slot(Some(i), *variable);
                    self.functions.push(Function { body: at(*body), slots, parameter, operator });
                    Code::Closure {
                        function: self.functions.len() - 1,
                        captures: captured.iter().map(|x| slot(*x)).collect(),
                    }
                }
                Node::Apply(a, b) => Code::Apply(at(*a), at(*b)),
                Node::Tensor(a, b) => Code::Tensor(at(*a), at(*b)),
                Node::LetTensor { scrutinee, left, right, body } => Code::LetTensor {
                    scrutinee: at(*scrutinee),
                    left: slot(*left),
                    right: slot(*right),
                    body: at(*body),
                },
                Node::Unit => Code::Unit,
                Node::LetUnit { scrutinee, body } => {
                    Code::LetUnit { scrutinee: at(*scrutinee), body: at(*body) }
                }
                Node::Derelict(a) => Code::Derelict(at(*a)),
                Node::Promote { sources, body } => Code::Promote {
                    sources: sources.iter().map(|(source, x)| (at(*source), slot(*x))).collect(),
                    body: at(*body),
                },
                Node::Copy { scrutinee, left, right, body } => Code::Copy {
                    scrutinee: at(*scrutinee),
                    left: slot(*left),
                    right: slot(*right),
                    body: at(*body),
                },
                Node::Discard { scrutinee, body } => {
                    Code::Discard { scrutinee: at(*scrutinee), body: at(*body) }
                }
                Node::With(a, b) => Code::With(at(*a), at(*b)),
                Node::First(a) => Code::First(at(*a)),
                Node::Second(a) => Code::Second(at(*a)),
                Node::InLeft(_, a) => Code::InLeft(at(*a)),
                Node::InRight(_, a) => Code::InRight(at(*a)),
                Node::Case { scrutinee, left, right } => Code::Case {
                    scrutinee: at(*scrutinee),
                    left: (slot(left.0), at(left.1)),
                    right: (slot(right.0), at(right.1)),
                },
                Node::Global { definition, arguments } => Code::Global {
                    definition: definition.clone(),
                    arguments: arguments.iter().map(|formula| formula.instantiate(instance)).collect(),
                },
                Node::Numeral { value, base } => {
                    Code::Numeral { value: *value, base: base.instantiate(instance) }
                }
                Node::Word { digits, base } => {
                    Code::Word { digits: digits.clone(), base: base.instantiate(instance) }
                }
                Node::Coweaken(_) => Code::Coweaken,
                Node::Cocopy(a, b) => Code::Cocopy(at(*a), at(*b)),
                Node::Coderelict(a) => Code::Coderelict(at(*a)),
            };
            self.nodes.push(code);
        }
        let slots = layout.slots.get(&None).copied().unwrap_or(0);
        self.functions.push(Function { body: at(term.root()), slots, parameter: 0, operator: None });
        self.functions.len() - 1
    }
}

impl Formula {
    /// The atom that the formula becomes.
    fn as_atom_of(&self, instance: &Instance<'_>) -> Option<Rc<str>> {
        self.instantiate(instance).as_atom().cloned()
    }
}

/// Whose frame each node uses, and which slot each variable has there.
struct Layout {
    owners: Vec<Owner>,
    /// The captured variables of a λ, in the order in which it finds them.
    captures: HashMap<usize, Vec<Variable>>,
    places: HashMap<(Owner, Variable), Slot>,
    slots: HashMap<Owner, usize>,
}

impl Layout {
    fn new(term: &Term) -> Self {
        let mut layout = Self {
            owners: vec![None; term.size()],
            captures: HashMap::new(),
            places: HashMap::new(),
            slots: HashMap::new(),
        };
        // Wholes before parts: each node tells its parts whose frame they use.
        let mut homes: Vec<Owner> = vec![None; term.names().len()];
        let mut around: HashMap<usize, Owner> = HashMap::new();
        for (i, node) in term.nodes().iter().enumerate().rev() {
            let owner = layout.owners.get(i).copied().flatten();
            let inside = if matches!(node, Node::Lambda { .. }) {
                around.insert(i, owner);
                Some(i)
            } else {
                owner
            };
            node.children(|child| {
                if let Some(place) = layout.owners.get_mut(child.index()) {
                    *place = inside;
                }
            });
            node.binders(|variable, _| {
                if let Some(place) = homes.get_mut(variable.index()) {
                    *place = inside;
                }
            });
        }
        // Each occurrence is captured by every λ between it and its binder.
        for (i, node) in term.nodes().iter().enumerate() {
            let Node::Variable(variable) = node else { continue };
            let home = homes.get(variable.index()).copied().flatten();
            let mut owner = layout.owners.get(i).copied().flatten();
            while owner != home
                && let Some(lambda) = owner
            {
                let captured = layout.captures.entry(lambda).or_default();
                let place = layout.places.entry((owner, *variable));
                if let std::collections::hash_map::Entry::Occupied(_) = place {
                    break;
                }
                place.or_insert(captured.len());
                captured.push(*variable);
                owner = around.get(&lambda).copied().flatten();
            }
        }
        for lambda in 0..term.size() {
            if let Some(captured) = layout.captures.get(&lambda) {
                layout.slots.insert(Some(lambda), captured.len());
            }
        }
        // Behind what is captured: what is bound.
        for node in term.nodes() {
            node.binders(|variable, _| {
                let owner = homes.get(variable.index()).copied().flatten();
                let next = layout.slots.entry(owner).or_insert(0);
                // A variable that does not occur has a slot too.
                layout.places.insert((owner, variable), *next);
                *next += 1;
            });
        }
        layout
    }

    fn slot(&self, owner: Owner, variable: Variable) -> Slot {
        self.places.get(&(owner, variable)).copied().unwrap_or(0)
    }
}
