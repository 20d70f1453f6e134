//! Which places may be lifted, and what the scopes of the equations read there.
//!
//! Enter at [`Places::of`]. Places and indices that stand for the same constants are one class. A class is left alone if
//! something tells its constants apart: a parameter has a place in it, an index of it is computed with or compared, runs
//! along the axis of a softmax, or has fewer values than the class. A relation between constants is summed over: it has to
//! be a factor of its scope, with at most one index that the scope does not bind.

use std::collections::{BTreeMap, BTreeSet};

use super::Core;
use crate::ast::Span;
use crate::program::{
    Argument, Combine, Equation, Expr, Guard, IndexFn, IndexId, Kind, Operation, Otherwise, Place, Program,
    Range, Read, Reduce, Role, Style, TensorId, Term, When,
};
use crate::value::{Const, Domain};

/// A place of a tensor, or an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Place(TensorId, usize),
    Index(IndexId),
}

/// The number of a class.
pub(super) type ClassId = usize;

/// The classes of places and indices.
#[derive(Debug, Default)]
pub(super) struct Places {
    nodes: BTreeMap<Node, usize>,
    /// Of each node another one of its class, or itself.
    parents: Vec<usize>,
    /// Classes whose constants stay apart.
    apart: BTreeSet<ClassId>,
    /// Constants that the program names.
    pub(super) named: BTreeSet<(ClassId, Const)>,
    /// The values of each class.
    domains: BTreeMap<ClassId, Domain>,
    changing: BTreeSet<TensorId>,
}

/// How a scope joins its contributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joins {
    /// They are added: a binding that stands for several has a factor.
    Adds,
    /// They are only asked whether there are any.
    Asks,
    /// Each counts: a binding that stands for several is repeated. So it is under a maximum, which shares its gradient
    /// evenly among those that attain it.
    Repeats,
}

/// A scope: a term of an equation, or a sum, maximum, … inside one.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) joins: Joins,
    /// The relations between constants that are factors, and that are guards.
    pub(super) factors: Vec<Read>,
    pub(super) guards: Vec<Read>,
    /// All indices of these relations.
    pub(super) indices: Vec<IndexId>,
    /// The one of a lifted class that is bound outside.
    pub(super) outside: Option<IndexId>,
    /// Bound indices of lifted classes that none of them has.
    pub(super) alone: Vec<IndexId>,
    pub(super) span: Span,
}

impl Scope {
    /// Whether relations between constants are read.
    pub(super) fn is_related(&self) -> bool {
        !self.indices.is_empty()
    }

    /// The place of an index in the relations.
    pub(super) fn place(&self, program: &Program, index: IndexId) -> Place {
        let found = self.factors.iter().chain(&self.guards).find_map(|read| {
            let at = read.arguments.iter().position(|argument| alone(argument) == Some(index))?;
            program.tensor(read.tensor).places.get(at).cloned()
        });
        Place { star: false, ..found.unwrap_or(Place { domain: None, limit: None, star: false }) }
    }
}

fn alone(argument: &Argument) -> Option<IndexId> {
    argument.function().and_then(IndexFn::alone)
}

impl Places {
    pub(super) fn of(core: &Core, kept: Option<&str>) -> Places {
        let mut places = Places { changing: core.changing.clone(), ..Places::default() };
        let program = &core.program;
        for equation in &program.equations {
            for (at, function) in equation.head.iter().enumerate() {
                places.join(Node::Place(equation.tensor, at), function);
            }
            places.join_reads(equation);
        }
        places.forbid_what_is_told_apart(program, kept);
        // A class that is left alone may leave a relation with one lifted place, which needs no sum.
        loop {
            let before = places.apart.len();
            for equation in &program.equations {
                places.forbid_by_scopes(program, equation);
            }
            if places.apart.len() == before {
                return places;
            }
        }
    }

    /// Whether any class is lifted.
    pub(super) fn any(&self) -> bool {
        self.domains.keys().any(|class| !self.apart.contains(class))
    }

    // -- classes ------------------------------------------------------------------------------

    fn node(&mut self, node: Node) -> usize {
        let next = self.parents.len();
        let id = *self.nodes.entry(node).or_insert(next);
        if id == next {
            self.parents.push(next);
        }
        id
    }

    fn root(&self, mut id: usize) -> usize {
        while let Some(parent) = self.parents.get(id).copied().filter(|parent| *parent != id) {
            id = parent;
        }
        id
    }

    fn unite(&mut self, a: Node, b: Node) {
        let (a, b) = (self.node(a), self.node(b));
        let (a, b) = (self.root(a), self.root(b));
        if let Some(slot) = self.parents.get_mut(a) {
            *slot = b;
        }
    }

    fn class_of(&self, node: Node) -> Option<ClassId> {
        self.nodes.get(&node).map(|id| self.root(*id))
    }

    fn lifted(&self, node: Node) -> Option<ClassId> {
        self.class_of(node).filter(|class| !self.apart.contains(class) && self.domains.contains_key(class))
    }

    /// The class of an index, if it is lifted.
    pub(super) fn of_index(&self, index: IndexId) -> Option<ClassId> {
        self.lifted(Node::Index(index))
    }

    /// The class of a place, if it is lifted.
    pub(super) fn of_place(&self, tensor: TensorId, place: usize) -> Option<ClassId> {
        self.lifted(Node::Place(tensor, place))
    }

    /// The lifted classes and their values.
    pub(super) fn lifted_classes(&self) -> impl Iterator<Item = (ClassId, &Domain)> {
        self.domains
            .iter()
            .filter(|(class, _)| !self.apart.contains(class))
            .map(|(class, domain)| (*class, domain))
    }

    /// What stands in a place: an index alone is of its class, a constant is named; all else is told apart later.
    fn join(&mut self, place: Node, function: &IndexFn) {
        match function {
            IndexFn::Index(index) => self.unite(place, Node::Index(*index)),
            IndexFn::Const(_) => {
                self.node(place);
            }
            other => {
                self.node(place);
                other.visit(&mut |index| {
                    self.node(Node::Index(index));
                });
            }
        }
    }

    fn join_reads(&mut self, equation: &Equation) {
        let mut joined = Vec::new();
        equation.visit_reads(&mut |read, _| joined.push(read.clone()));
        for read in joined {
            for (at, argument) in read.arguments.iter().enumerate() {
                if let Some(function) = argument.function() {
                    self.join(Node::Place(read.tensor, at), function);
                }
            }
        }
    }

    // -- what is told apart -------------------------------------------------------------------

    fn forbid(&mut self, node: Node) {
        let id = self.node(node);
        let root = self.root(id);
        self.apart.insert(root);
    }

    fn forbid_function(&mut self, function: &IndexFn) {
        let mut indices = Vec::new();
        function.visit(&mut |index| indices.push(index));
        indices.into_iter().for_each(|index| self.forbid(Node::Index(index)));
    }

    fn forbid_what_is_told_apart(&mut self, program: &Program, kept: Option<&str>) {
        let nodes: Vec<Node> = self.nodes.keys().copied().collect();
        for node in nodes {
            let (domain, tells) = match node {
                Node::Place(id, at) => {
                    let tensor = program.tensor(id);
                    let place = tensor.places.get(at);
                    let limited =
                        place.is_some_and(|place| place.limit.is_some() && place.limit != place.domain);
                    let parameter = tensor.role == Role::Parameter;
                    let given = self.changing.contains(&id) && !tensor.given.is_empty();
                    let star = place.is_some_and(|place| place.star);
                    (place.and_then(|place| place.domain.clone()), limited || parameter || given || star)
                }
                Node::Index(index) => {
                    let index = program.index(index);
                    let domain = match &index.range {
                        Range::Domain(domain) => Some(domain.clone()),
                        Range::Tuples | Range::Computed => None,
                    };
                    (domain, matches!(index.range, Range::Computed) || kept == Some(index.name.as_str()))
                }
            };
            if tells {
                self.forbid(node);
            }
            let (Some(domain), Some(class)) = (domain, self.class_of(node)) else { continue };
            match self.domains.get(&class) {
                Some(known) if *known != domain => self.forbid(node),
                Some(_) => {}
                None => {
                    self.domains.insert(class, domain);
                }
            }
        }
        for equation in &program.equations {
            self.forbid_twice(&equation.head);
            self.forbid_functions(
                equation.tensor,
                equation.head.iter().enumerate().map(|(at, each)| (at, Some(each))),
            );
            let mut reads = Vec::new();
            equation.visit_reads(&mut |read, _| reads.push(read.clone()));
            for read in &reads {
                let functions = read.arguments.iter().map(Argument::function).enumerate();
                self.forbid_functions(read.tensor, functions);
            }
            for term in &equation.terms {
                self.forbid_when(&term.when);
                self.forbid_expr(&term.body);
            }
        }
    }

    /// `P[x, x]` writes what is equal, and colours do not say which constants are.
    fn forbid_twice(&mut self, head: &[IndexFn]) {
        for (at, index) in head.iter().enumerate().filter_map(|(at, function)| Some((at, function.alone()?)))
        {
            if head.iter().skip(at + 1).any(|other| other.alone() == Some(index)) {
                self.forbid(Node::Index(index));
            }
        }
    }

    fn forbid_functions<'a>(
        &mut self,
        tensor: TensorId,
        functions: impl Iterator<Item = (usize, Option<&'a IndexFn>)>,
    ) {
        for (at, function) in functions {
            let place = Node::Place(tensor, at);
            match function {
                Some(IndexFn::Index(_)) => {}
                Some(IndexFn::Const(value)) => {
                    let id = self.node(place);
                    let class = self.root(id);
                    self.named.insert((class, *value));
                }
                Some(other) => {
                    self.forbid(place);
                    self.forbid_function(other);
                }
                None => self.forbid(place),
            }
        }
    }

    fn forbid_when(&mut self, when: &When) {
        when.exists.iter().for_each(|index| self.forbid(Node::Index(*index)));
        for guard in &when.guards {
            match guard {
                Guard::Read(_) | Guard::Not(_) => {}
                Guard::CompareIndex(_, a, b) => {
                    self.forbid_function(a);
                    self.forbid_function(b);
                }
                Guard::Compare(_, a, b) => {
                    self.forbid_expr(a);
                    self.forbid_expr(b);
                }
                Guard::Bind(index, function) => {
                    self.forbid(Node::Index(*index));
                    self.forbid_function(function);
                }
            }
        }
    }

    fn forbid_expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Index(function) => self.forbid_function(function),
            Expr::Missing(read) => {
                read.arguments
                    .iter()
                    .filter_map(Argument::function)
                    .for_each(|each| self.forbid_function(each));
            }
            Expr::Axis(axis) => axis.axes.iter().for_each(|index| self.forbid(Node::Index(*index))),
            _ => {}
        }
        let (parts, when) = expr.parts();
        parts.into_iter().for_each(|part| self.forbid_expr(part));
        when.into_iter().for_each(|when| self.forbid_when(when));
    }

    // -- scopes -------------------------------------------------------------------------------

    /// Whether a read is of a relation between lifted constants that no parameter changes.
    fn relates(&self, program: &Program, read: &Read) -> bool {
        let tensor = program.tensor(read.tensor);
        let data = !self.changing.contains(&read.tensor) && tensor.role != Role::Parameter;
        data && self.lifted_places(read) > 1
    }

    fn lifted_places(&self, read: &Read) -> usize {
        (0..read.arguments.len()).filter(|at| self.of_place(read.tensor, *at).is_some()).count()
    }

    fn forbid_read(&mut self, read: &Read) {
        (0..read.arguments.len()).for_each(|at| self.forbid(Node::Place(read.tensor, at)));
    }

    fn forbid_by_scopes(&mut self, program: &Program, equation: &Equation) {
        let combine = program.tensor(equation.tensor).combine;
        for term in &equation.terms {
            let scope = self.scope_of_term(program, combine, equation, term);
            self.forbid_by_scope(program, &scope, &term.when, &term.body);
        }
    }

    /// Leaves alone what the scope cannot sum, and goes on inside it.
    fn forbid_by_scope(&mut self, program: &Program, scope: &Scope, when: &When, body: &Expr) {
        let related: Vec<Read> = scope.factors.iter().chain(&scope.guards).cloned().collect();
        let simple = |argument: &Argument| match argument.function() {
            Some(IndexFn::Const(_) | IndexFn::Index(_)) => true,
            Some(_) | None => false,
        };
        for read in &related {
            let tensor = program.tensor(read.tensor);
            // What is 0 where there is no tuple counts for values that tuples elsewhere give: this relation does not list them.
            let by_tuples = |argument: &Argument| {
                alone(argument).is_some_and(|index| matches!(program.index(index).range, Range::Tuples))
            };
            let unlisted = read.otherwise != Otherwise::Absent && read.arguments.iter().any(by_tuples);
            if unlisted || !read.arguments.iter().all(simple) {
                self.forbid_read(read);
            }
            let plain = tensor.style == Style::Round
                && tensor.kind == Kind::Bool
                && read.otherwise == Otherwise::Absent;
            if scope.joins != Joins::Adds && !plain {
                self.forbid_read(read);
            }
        }
        for read in &scope.guards {
            if program.tensor(read.tensor).style != Style::Round || read.otherwise != Otherwise::Absent {
                self.forbid_read(read);
            }
        }
        let inside: BTreeSet<*const Read> = factors(body).into_iter().map(std::ptr::from_ref).collect();
        self.forbid_elsewhere(program, body, &inside);
        for guard in &when.guards {
            match guard {
                Guard::Not(read) if self.relates(program, read) => self.forbid_read(read),
                Guard::Compare(_, a, b) => {
                    self.forbid_elsewhere(program, a, &inside);
                    self.forbid_elsewhere(program, b, &inside);
                }
                _ => {}
            }
        }
    }

    /// Relations between constants that are no factors of a scope.
    fn forbid_elsewhere(&mut self, program: &Program, expr: &Expr, factors: &BTreeSet<*const Read>) {
        match expr {
            Expr::Read(read)
                if self.relates(program, read) && !factors.contains(&std::ptr::from_ref(read)) =>
            {
                self.forbid_read(read);
            }
            Expr::Reduce(reduce) => {
                let scope = self.scope_of_reduce(program, reduce);
                self.forbid_by_scope(program, &scope, &reduce.when, &reduce.body);
            }
            _ => {
                let (parts, when) = expr.parts();
                parts.into_iter().for_each(|part| self.forbid_elsewhere(program, part, factors));
                for guard in when.into_iter().flat_map(|when| &when.guards) {
                    match guard {
                        Guard::Read(read) | Guard::Not(read) if self.relates(program, read) => {
                            self.forbid_read(read)
                        }
                        Guard::Compare(_, a, b) => {
                            self.forbid_elsewhere(program, a, factors);
                            self.forbid_elsewhere(program, b, factors);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// All scopes, in the order in which [`super::quotient`] meets them.
    pub(super) fn scopes(&mut self, program: &Program) -> Vec<Scope> {
        let mut scopes = Vec::new();
        for equation in &program.equations {
            let combine = program.tensor(equation.tensor).combine;
            for term in &equation.terms {
                scopes.push(self.scope_of_term(program, combine, equation, term));
                self.scopes_inside(program, &term.when, &term.body, &mut scopes);
            }
        }
        scopes
    }

    fn scopes_inside(&mut self, program: &Program, when: &When, body: &Expr, scopes: &mut Vec<Scope>) {
        for guard in &when.guards {
            if let Guard::Compare(_, a, b) = guard {
                self.scopes_of(program, a, scopes);
                self.scopes_of(program, b, scopes);
            }
        }
        self.scopes_of(program, body, scopes);
    }

    fn scopes_of(&mut self, program: &Program, expr: &Expr, scopes: &mut Vec<Scope>) {
        if let Expr::Reduce(reduce) = expr {
            scopes.push(self.scope_of_reduce(program, reduce));
            return self.scopes_inside(program, &reduce.when, &reduce.body, scopes);
        }
        let (parts, when) = expr.parts();
        parts.into_iter().for_each(|part| self.scopes_of(program, part, scopes));
        let when = when.cloned().unwrap_or_default();
        for guard in &when.guards {
            if let Guard::Compare(_, a, b) = guard {
                self.scopes_of(program, a, scopes);
                self.scopes_of(program, b, scopes);
            }
        }
    }

    fn scope_of_term(
        &mut self,
        program: &Program,
        combine: Combine,
        equation: &Equation,
        term: &Term,
    ) -> Scope {
        let joins = match combine {
            Combine::Sum => Joins::Adds,
            Combine::Or | Combine::Exists => Joins::Asks,
            Combine::Max | Combine::Min | Combine::Times | Combine::Avg => Joins::Repeats,
            Combine::Proofs | Combine::Slopes => Joins::Repeats,
        };
        self.scope(program, joins, &term.over, &term.when, &term.body, equation.span)
    }

    fn scope_of_reduce(&mut self, program: &Program, reduce: &Reduce) -> Scope {
        let joins = match reduce.operation {
            Operation::Sum => Joins::Adds,
            Operation::Max | Operation::Min | Operation::Product => Joins::Repeats,
            Operation::Avg | Operation::Count => Joins::Repeats,
        };
        self.scope(program, joins, &reduce.over, &reduce.when, &reduce.body, reduce.span)
    }

    /// A scope, and what it cannot have left alone.
    fn scope(
        &mut self,
        program: &Program,
        joins: Joins,
        over: &[IndexId],
        when: &When,
        body: &Expr,
        span: Span,
    ) -> Scope {
        let guards = when.guards.iter().filter_map(|guard| match guard {
            Guard::Read(read) => Some(read),
            _ => None,
        });
        let guards: Vec<Read> = guards.filter(|read| self.relates(program, read)).cloned().collect();
        let factors: Vec<Read> =
            factors(body).into_iter().filter(|read| self.relates(program, read)).cloned().collect();
        let mut indices: Vec<IndexId> = Vec::new();
        for argument in factors.iter().chain(&guards).flat_map(|read| &read.arguments) {
            if let Some(index) = alone(argument).filter(|index| !indices.contains(index)) {
                indices.push(index);
            }
        }
        let lifted = |index: &&IndexId| self.of_index(**index).is_some();
        let outside: Vec<IndexId> =
            indices.iter().filter(lifted).filter(|index| !over.contains(index)).copied().collect();
        let alone = over.iter().filter(lifted).filter(|index| !indices.contains(index)).copied().collect();
        // What depends on two constants is no function of their colours.
        if outside.len() > 1 {
            outside.iter().for_each(|index| self.forbid(Node::Index(*index)));
        }
        Scope { joins, factors, guards, indices, outside: outside.first().copied(), alone, span }
    }
}

/// The reads that a value is a product of.
pub(super) fn factors(body: &Expr) -> Vec<&Read> {
    match body {
        Expr::Read(read) => vec![read],
        Expr::Product(parts) => parts.iter().flat_map(factors).collect(),
        Expr::Negate(part) | Expr::Quotient(part, _) => factors(part),
        _ => Vec::new(),
    }
}
