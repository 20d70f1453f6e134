//! The program that finds ground rules: Boolean relations beside those that have probabilities.
//!
//! For every relation `R` there is one of the tuples that may follow, `S_R`, made by the same rules with all weights
//! forgotten; one of those that the goals need, `N_R`; and for every rule the bindings `B` under which its head is needed
//! and its body may hold:
//!
//! ```text
//! R(x, z) <- R(x, y), E(y, z), not Q(y)     S_R(x, z)      <- S_R(x, y), S_E(y, z)
//!                                           B(x, y, z)     <- N_R(x, z), S_R(x, y), S_E(y, z)
//!                                           N_R(x, y)      <- B(x, y, z)
//!                                           N_Q(y)         <- B(x, y, z), S_Q(y)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::Asked;
use crate::ast::{Comparison, Program as Tree, Span};
use crate::program::{
    Argument, Combine, Equation, EquationId, Expr, Facts, Given, Guard, IndexFn, IndexId, Kind, Otherwise,
    Place, Program, Range, Read, Role, Stamp, Style, Tensor, TensorId, Term, When,
};
use crate::rename::Renaming;
use crate::value::{Const, Domain};
use tensor_logic_core::recursion;
use tensor_logic_core::weighted::factors;

/// A program with the relations that find ground rules.
pub(super) struct Grounding {
    pub(super) program: Arc<Program>,
    /// The relations below the goals, and of each the tuples that are needed.
    pub(super) needed: BTreeMap<TensorId, TensorId>,
    /// The rules, and of each its bindings: a place for every index.
    pub(super) bindings: Vec<Bindings>,
    /// Tensors whose elements are probabilities.
    pub(super) tagged: BTreeSet<TensorId>,
}

/// The bindings of a rule.
pub(super) struct Bindings {
    pub(super) equation: EquationId,
    pub(super) indices: Vec<IndexId>,
    pub(super) tuples: TensorId,
}

/// Relations with probabilities that some follow from, themselves among them.
pub(super) fn proved_below<'g>(
    program: &Program,
    goals: impl Iterator<Item = &'g TensorId>,
) -> BTreeSet<TensorId> {
    let mut open: Vec<TensorId> = goals.copied().collect();
    let mut below: BTreeSet<TensorId> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
            for (read, _) in equation.terms.iter().flat_map(factors) {
                if program.tensor(read.tensor).is_proved() && below.insert(read.tensor) {
                    open.push(read.tensor);
                }
            }
        }
    }
    below
}

/// The program that finds the ground rules of some relations. In `base` relations of lower levels stand as values, for
/// guards and tags; the rules, also of lower levels, are those of `program`.
pub(super) fn ground(program: &Program, base: &Program, goals: &Asked) -> Grounding {
    let below = proved_below(program, goals.keys());
    let mut maker = Maker { program: base.clone(), may: BTreeMap::new(), inside: BTreeMap::new() };
    for id in &below {
        maker.may_follow(*id, program.tensor(*id));
    }
    let needed: BTreeMap<TensorId, TensorId> =
        below.iter().map(|id| (*id, maker.relation(*id, program.tensor(*id).places.clone()))).collect();
    let mut bindings = Vec::new();
    let mut tagged = BTreeSet::new();
    for (id, equation) in (0..).map(EquationId).zip(&program.equations) {
        let Some(need) = needed.get(&equation.tensor) else { continue };
        for term in &equation.terms {
            let (guards, over) = (maker.support(term), maker.bound(equation, term));
            let may = maker.may[&equation.tensor];
            let when = When { guards: guards.clone(), ..term.when.clone() };
            maker.rule(may, equation.head.clone(), &over, when, equation.span);
            let place = Place { domain: None, limit: None, star: false };
            let tuples = maker.relation(equation.tensor, vec![place; over.len()]);
            let arguments: Vec<Argument> = equation.head.iter().cloned().map(Argument::At).collect();
            let mut wanted = vec![there(*need, arguments)];
            wanted.extend(guards);
            let when = When { guards: wanted, ..term.when.clone() };
            let head: Vec<IndexFn> = over.iter().copied().map(IndexFn::Index).collect();
            maker.rule(tuples, head.clone(), &over, when, equation.span);
            for (read, denied) in factors(term) {
                match needed.get(&read.tensor) {
                    Some(need) => {
                        maker.need(*need, read, denied, tuples, &over, equation.span);
                    }
                    None => {
                        tagged.insert(read.tensor);
                    }
                }
            }
            bindings.push(Bindings { equation: id, indices: over, tuples });
        }
    }
    for (goal, wanted) in goals {
        let span = program.tensor(*goal).span;
        for (places, constants) in wanted.patterns() {
            let indices = maker.indices(program.tensor(*goal).places.len());
            let head: Vec<IndexFn> = indices.iter().copied().map(IndexFn::Index).collect();
            let at = |index: &IndexFn| Argument::At(index.clone());
            let mut guards = vec![there(maker.may[goal], head.iter().map(at).collect())];
            if !places.is_empty() {
                let named = maker.listed(*goal, places.len(), constants.iter().flatten().copied());
                let own = places.iter().filter_map(|place| head.get(*place)).map(at);
                guards.insert(0, there(named, own.collect()));
            }
            maker.rule(needed[goal], head, &indices, guards.into(), span);
        }
    }
    let mut program = maker.program;
    program.actions.clear();
    if let Ok(components) = recursion::analyse(&program, &Tree::default()) {
        program.components = components;
    }
    Grounding { program: Arc::new(program), needed, bindings, tagged }
}

/// The tuple is there.
fn there(tensor: TensorId, arguments: Vec<Argument>) -> Guard {
    Guard::Read(Read::new(tensor, arguments, Otherwise::Absent, Span::default()))
}

struct Maker {
    program: Program,
    /// The tuples of each relation that may follow.
    may: BTreeMap<TensorId, TensorId>,
    /// The constants of domains that are no intervals.
    inside: BTreeMap<(TensorId, usize), TensorId>,
}

impl Maker {
    /// A Boolean relation beside a tensor.
    fn relation(&mut self, beside: TensorId, places: Vec<Place>) -> TensorId {
        let of = self.program.tensor(beside);
        let tensor = Tensor {
            name: format!("ground rules of {}", of.name),
            version: 0,
            hidden: false,
            style: Style::Round,
            kind: Kind::Bool,
            combine: Combine::Exists,
            places,
            role: Role::Computed,
            given: Vec::new(),
            start: None,
            span: of.span,
        };
        self.program.tensors.push(tensor);
        TensorId(u32::try_from(self.program.tensors.len() - 1).unwrap_or(u32::MAX))
    }

    /// A relation beside a tensor that has these tuples, one constant after the other.
    fn listed(&mut self, beside: TensorId, arity: usize, constants: impl Iterator<Item = Const>) -> TensorId {
        let constants: Vec<Const> = constants.collect();
        let place = Place { domain: None, limit: None, star: false };
        let listed = self.relation(beside, vec![place; arity]);
        let count = constants.len() / arity.max(1);
        let facts = Facts { arity, count, constants, ..Facts::default() };
        if let Some(entry) = self.program.tensors.get_mut(listed.0 as usize) {
            entry.role = Role::Data;
            entry.given = vec![Given::Facts(Arc::new(facts))];
        }
        listed
    }

    /// Fresh indices that tuples bind.
    fn indices(&mut self, count: usize) -> Vec<IndexId> {
        let first = self.program.indices.len() as u32;
        for place in 0..count {
            let (name, span) = (format!("x{place}"), Span::default());
            self.program.indices.push(crate::program::Index { name, range: Range::Tuples, span });
        }
        (first..first + count as u32).map(IndexId).collect()
    }

    /// The tuples that may follow: those that are given, whatever they weigh.
    fn may_follow(&mut self, id: TensorId, tensor: &Tensor) {
        let may = self.relation(id, tensor.places.clone());
        self.may.insert(id, may);
        let mut given = Vec::new();
        for block in &tensor.given {
            if let Some(facts) = block.facts() {
                let constants = facts.constants.clone();
                let unweighted =
                    Facts { arity: facts.arity, count: facts.count, constants, ..Facts::default() };
                given.push(Given::Facts(Arc::new(unweighted)));
            }
        }
        if let Some(entry) = self.program.tensors.get_mut(may.0 as usize) {
            entry.given = given;
        }
        if tensor.role == Role::Parameter {
            // All tuples of its places.
            let indices = self.indices(tensor.places.len());
            for (index, domain) in indices.iter().zip(tensor.domains()) {
                if let Some(entry) = self.program.indices.get_mut(index.0 as usize) {
                    entry.range = Range::Domain(domain);
                }
            }
            let head = indices.iter().copied().map(IndexFn::Index).collect();
            self.rule(may, head, &indices, When::default(), tensor.span);
        }
        if let Some(entry) = self.program.tensors.get_mut(may.0 as usize)
            && tensor.role == Role::Data
        {
            entry.role = Role::Data;
        }
    }

    /// The indices of a rule: a binding of them is one ground rule.
    fn bound(&self, equation: &Equation, term: &Term) -> Vec<IndexId> {
        let mut bound = equation.left.clone();
        bound.extend(term.over.iter().filter(|index| !equation.left.contains(index)));
        bound
    }

    /// What must be there for a rule's body to hold in some world, beside its other guards.
    fn support(&mut self, term: &Term) -> Vec<Guard> {
        let (mut guards, mut squares) = (Vec::new(), Vec::new());
        for (read, denied) in factors(term) {
            if denied {
                continue;
            }
            if let Some(may) = self.may.get(&read.tensor) {
                guards.push(there(*may, read.arguments.clone()));
            } else if self.program.tensor(read.tensor).style == Style::Round {
                guards.push(there(read.tensor, read.arguments.clone()));
            } else {
                squares.push(read);
            }
        }
        guards.extend(term.when.guards.iter().cloned());
        for read in squares {
            for (place, argument) in read.arguments.iter().enumerate() {
                if let Argument::At(function) = argument {
                    self.inside(read.tensor, place, function, &mut guards);
                }
            }
        }
        guards
    }

    /// Whether a guard says which values an index takes.
    fn binds(&self, guard: &Guard, index: IndexId) -> bool {
        match guard {
            Guard::Read(read) => {
                let alone = |argument: &Argument| Argument::function(argument).and_then(IndexFn::alone);
                self.program.tensor(read.tensor).style == Style::Round
                    && read.arguments.iter().any(|argument| alone(argument) == Some(index))
            }
            Guard::Bind(bound, _) => *bound == index,
            Guard::Not(_) | Guard::CompareIndex(..) | Guard::Compare(..) => false,
        }
    }

    /// An index function stays inside a place of a square tensor, which gives an index its values that nothing else does.
    fn inside(&mut self, tensor: TensorId, place: usize, function: &IndexFn, guards: &mut Vec<Guard>) {
        let Some(domain) = self.program.tensor(tensor).places.get(place).and_then(|at| at.domain.clone())
        else {
            return;
        };
        if let IndexFn::Index(index) = function
            && let Range::Domain(range) = &self.program.index(*index).range
            && *range == domain
        {
            return;
        }
        let is_bound = match function {
            IndexFn::Index(index) => {
                matches!(self.program.index(*index).range, Range::Domain(_))
                    || guards.iter().any(|guard| self.binds(guard, *index))
            }
            function => matches!(function, IndexFn::Const(Const::Int(_))),
        };
        if let (Domain::Interval { from, to }, true) = (&domain, is_bound) {
            let (from, to) = (*from, *to);
            let number = |value| IndexFn::Const(Const::Int(value));
            guards.push(Guard::CompareIndex(Comparison::LessEqual, number(from), function.clone()));
            guards.push(Guard::CompareIndex(Comparison::LessEqual, function.clone(), number(to)));
            return;
        }
        let listed = match self.inside.get(&(tensor, place)) {
            Some(listed) => *listed,
            None => {
                let listed = self.listed(tensor, 1, domain.values());
                self.inside.insert((tensor, place), listed);
                listed
            }
        };
        guards.push(there(listed, vec![Argument::At(function.clone())]));
    }

    /// `need(arguments) <- bindings(indices)`; what is denied is needed where it may follow.
    fn need(
        &mut self,
        need: TensorId,
        read: &Read,
        denied: bool,
        bindings: TensorId,
        bound: &[IndexId],
        span: Span,
    ) {
        let arguments = bound.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
        let mut guards = vec![there(bindings, arguments)];
        let mut over = bound.to_vec();
        let mut head = Vec::new();
        for argument in &read.arguments {
            head.push(match argument {
                Argument::At(function) => function.clone(),
                Argument::Any => {
                    let any = self.indices(1);
                    over.extend(&any);
                    IndexFn::Index(any[0])
                }
            });
        }
        if denied {
            let arguments = head.iter().cloned().map(Argument::At).collect();
            guards.push(there(self.may[&read.tensor], arguments));
        }
        self.rule(need, head, &over, guards.into(), span);
    }

    /// What an assignment computed in the rule that an index comes from, tuples bind here.
    fn bind(&mut self, equation: &Equation) {
        for term in &equation.terms {
            let computes = |index: &IndexId| {
                term.when.guards.iter().any(|guard| matches!(guard, Guard::Bind(other, _) if other == index))
            };
            for index in equation.left.iter().chain(&term.over).filter(|index| !computes(index)) {
                if let Some(entry) = self.program.indices.get_mut(index.0 as usize)
                    && matches!(entry.range, Range::Computed)
                {
                    entry.range = Range::Tuples;
                }
            }
        }
    }

    /// `tensor(head) <- when`, over these indices.
    fn rule(&mut self, tensor: TensorId, head: Vec<IndexFn>, indices: &[IndexId], when: When, span: Span) {
        let mut left = Vec::new();
        for function in &head {
            function.visit(&mut |index| {
                if !left.contains(&index) {
                    left.push(index);
                }
            });
        }
        let over = indices.iter().copied().filter(|index| !left.contains(index)).collect();
        let terms = vec![Term { over, when, body: Expr::Number(1.0) }];
        let (head_span, sign_span, node) = (span, span, Stamp::default());
        let equation = Equation { tensor, head, left, terms, node, span, head_span, sign_span };
        let equation = Renaming::new(&mut self.program).equation(&equation);
        self.bind(&equation);
        self.program.equations.push(equation);
        if let Some(entry) = self.program.tensors.get_mut(tensor.0 as usize) {
            entry.role = Role::Computed;
        }
    }
}
