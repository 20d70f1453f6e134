//! What a tree means: every equation by going through all values of all its indices.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use tensor_logic::ast::{
    self, Array, Brackets, Constant, DomainExpr, DomainKind, Expr, ExprKind, IndexExpr, IndexKind,
    IndexOperator, Item, Joint, Literal, LiteralKind, Place, PlaceKind, Reference, RightSide, Sign,
    StatementKind,
};
use tensor_logic::program::{Kind, Program, Style, Tensor, TensorId};
use tensor_logic::value::{Const, Domain};

use super::scopes::{self, EXPLICIT, Names, Parts};

/// A value of an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    Int(i64),
    Symbol(String),
}

/// Why nothing is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Skip(pub(super) &'static str);

type Out<T> = Result<T, Skip>;
type Env = BTreeMap<String, Thing>;

/// The elements of a tensor; of a square one all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Found {
    pub(super) elements: BTreeMap<Vec<Thing>, f64>,
}

/// What is known of a tensor without its values.
struct Known {
    round: bool,
    kind: Kind,
    domains: Vec<Vec<Thing>>,
}

/// An equation, a rule or a fact.
struct Said<'t> {
    head: &'t Reference,
    body: Body<'t>,
}

enum Body<'t> {
    Fact,
    Rule(&'t [Literal]),
    Array(&'t Array),
    Equation(Sign, &'t Expr, &'t [Literal]),
}

/// Where an index is read: what it ranges over follows from these.
#[derive(Clone)]
struct Use {
    tensor: String,
    place: usize,
    index: IndexExpr,
    /// Whether a tuple that is missing makes what reads it missing: what does not bind the index does not limit it either.
    loose: bool,
}

/// What is said in one equation.
#[derive(Clone)]
struct Here<'a> {
    square: bool,
    head: &'a Reference,
    uses: Vec<Use>,
    /// The tensors that are computed together with its own.
    together: &'a BTreeSet<String>,
    lefts: Names,
    /// Those of them that every term binds.
    bound: Names,
}

/// The meaning of a program.
pub(super) struct Meaning<'t> {
    known: BTreeMap<String, Known>,
    declared: BTreeMap<String, Vec<Thing>>,
    numbers: BTreeMap<String, f64>,
    said: BTreeMap<String, Vec<Said<'t>>>,
    /// The places of relations in which a declared index stands alone: there is no tuple outside of its domain.
    closed: BTreeSet<(String, usize)>,
    /// What stands instead of slices: the interval of a fresh index.
    slices: &'t BTreeMap<String, (Option<i64>, Option<i64>)>,
    found: BTreeMap<String, Out<Found>>,
    work: Cell<usize>,
}

/// So many bindings may be gone through for a program.
const WORK: usize = 2_000_000;
/// So many rounds of a recursion.
const ROUNDS: usize = 300;
/// What an index of integers is looked for in.
const FAR: i64 = 80;

pub(super) fn thing(program: &Program, value: Const) -> Thing {
    match value {
        Const::Int(value) => Thing::Int(value),
        Const::Symbol(id) => Thing::Symbol(program.symbols.name(id).to_owned()),
    }
}

pub(super) fn things(program: &Program, domain: &Domain) -> Vec<Thing> {
    (0..domain.len()).filter_map(|at| Some(thing(program, domain.value(at)?))).collect()
}

pub(super) fn domains(program: &Program, id: TensorId) -> Vec<Vec<Thing>> {
    program.tensor(id).domains().iter().map(|domain| things(program, domain)).collect()
}

/// All tuples over some domains, row-major.
pub(super) fn all(domains: &[Vec<Thing>]) -> Vec<Vec<Thing>> {
    let longer = |tuples: Vec<Vec<Thing>>, domain: &Vec<Thing>| {
        let with =
            |tuple: &Vec<Thing>, value: &Thing| [tuple.as_slice(), std::slice::from_ref(value)].concat();
        tuples.iter().flat_map(|tuple| domain.iter().map(move |value| with(tuple, value))).collect()
    };
    domains.iter().fold(vec![Vec::new()], longer)
}

/// The tree with a fresh index for every wildcard and slice that is not denied.
pub(super) fn prepared(tree: &ast::Program) -> (ast::Program, BTreeMap<String, (Option<i64>, Option<i64>)>) {
    let mut fresh = Fresh::default();
    let mut tree = tree.clone();
    for statement in &mut tree.statements {
        match &mut statement.kind {
            StatementKind::Equation { head, sign, right: RightSide::Expr { expr, guards }, .. }
                if *sign == Sign::Redefine =>
            {
                fresh.expr(expr);
                guards.iter_mut().for_each(|literal| fresh.literal(literal));
                fresh.versions.entry(head.name.text.clone()).or_default().push('~');
                fresh.named(&mut head.name.text);
                *sign = Sign::Equal;
            }
            StatementKind::Rule { body, .. } => body.iter_mut().for_each(|literal| fresh.literal(literal)),
            StatementKind::Query { goal: ast::Goal::Literals(literals), .. } => {
                literals.iter_mut().for_each(|literal| fresh.literal(literal));
            }
            StatementKind::Equation { right: RightSide::Expr { expr, guards }, .. } => {
                fresh.expr(expr);
                guards.iter_mut().for_each(|literal| fresh.literal(literal));
            }
            _ => {}
        }
    }
    (tree, fresh.slices)
}

#[derive(Default)]
struct Fresh {
    slices: BTreeMap<String, (Option<i64>, Option<i64>)>,
    /// What stands behind the names of tensors that were redefined above.
    versions: BTreeMap<String, String>,
}

impl Fresh {
    fn named(&self, name: &mut String) {
        if let Some(marks) = self.versions.get(name) {
            name.push_str(marks);
        }
    }

    fn reference(&mut self, reference: &mut Reference) {
        self.named(&mut reference.name.text);
        for place in &mut reference.places {
            let bound = |bound: &Option<IndexExpr>| match bound.as_ref().map(|bound| &bound.kind) {
                Some(IndexKind::Integer(value)) => Some(*value),
                _ => None,
            };
            let interval = match &place.kind {
                PlaceKind::Index(_) => continue,
                PlaceKind::Wildcard => (None, None),
                PlaceKind::Slice(from, to) => (bound(from), bound(to)),
            };
            // Who asks with a slice wants to see where; a wildcard is nobody's to see.
            let mark = if matches!(place.kind, PlaceKind::Wildcard) { '_' } else { '#' };
            let name = format!("{mark}{}", self.slices.len());
            self.slices.insert(name.clone(), interval);
            place.kind = PlaceKind::Index(IndexExpr { kind: IndexKind::Index(name), span: place.span });
        }
    }

    fn literal(&mut self, literal: &mut Literal) {
        match &mut literal.kind {
            LiteralKind::Positive(reference) => self.reference(reference),
            LiteralKind::Negative(reference) => self.named(&mut reference.name.text),
            LiteralKind::Assign { .. } => {}
            LiteralKind::Compare { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
        }
    }

    fn expr(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Sum(terms) => terms.iter_mut().for_each(|(_, term)| self.expr(term)),
            ExprKind::Product(factors) => factors.iter_mut().for_each(|(_, factor)| self.expr(factor)),
            ExprKind::Negate(inner) => self.expr(inner),
            ExprKind::Power(base, exponent, _) => {
                self.expr(base);
                self.expr(exponent);
            }
            ExprKind::Reference(reference) => self.reference(reference),
            ExprKind::Not(reference) => self.named(&mut reference.name.text),
            ExprKind::Number(_) | ExprKind::Index(_) | ExprKind::Text(_) => {}
            ExprKind::Call { arguments, guards, .. } => {
                arguments.iter_mut().for_each(|argument| self.expr(argument));
                guards.iter_mut().for_each(|literal| self.literal(literal));
            }
            ExprKind::Group { expr, guards } => {
                self.expr(expr);
                guards.iter_mut().for_each(|literal| self.literal(literal));
            }
        }
    }
}

/// An index expression that is a lone index.
fn alone(index: &IndexExpr) -> Option<&str> {
    match &index.kind {
        IndexKind::Index(name) => Some(name),
        IndexKind::Group(inner) => alone(inner),
        _ => None,
    }
}

fn index_of(place: &Place) -> Out<&IndexExpr> {
    match &place.kind {
        PlaceKind::Index(index) => Ok(index),
        _ => Err(Skip("a slice on the left")),
    }
}

impl<'t> Meaning<'t> {
    /// What a tree says, with the domains, styles and types that the analysis found.
    pub(super) fn of(
        tree: &'t ast::Program,
        slices: &'t BTreeMap<String, (Option<i64>, Option<i64>)>,
        program: &Program,
    ) -> Out<Meaning<'t>> {
        let mut meaning = Meaning {
            known: BTreeMap::new(),
            declared: BTreeMap::new(),
            numbers: BTreeMap::new(),
            said: BTreeMap::new(),
            closed: BTreeSet::new(),
            slices,
            found: BTreeMap::new(),
            work: Cell::new(0),
        };
        for (id, tensor) in (0u32..).map(TensorId).zip(&program.tensors).filter(|(_, tensor)| !tensor.hidden)
        {
            let round = tensor.style == Style::Round;
            let known = Known { round, kind: tensor.kind, domains: domains(program, id) };
            meaning.known.insert(versioned(tensor), known);
        }
        meaning.names(tree)?;
        for statement in &tree.statements {
            meaning.statement(&statement.kind)?;
        }
        let said: Vec<&Said<'_>> = meaning.said.values().flatten().collect();
        let heads = said.iter().flat_map(|said| {
            let place = |(place, at): (usize, &Place)| Some((place, alone(index_of(at).ok()?)?.to_owned()));
            let name = said.head.name.text.clone();
            said.head.places.iter().enumerate().filter_map(place).map(move |(place, index)| (name.clone(), place, index))
        });
        let reads = said.iter().flat_map(|said| {
            let uses = meaning.uses(said, false).into_iter();
            uses.filter_map(|one| Some((one.tensor.clone(), one.place, alone(&one.index)?.to_owned())))
        });
        let declared = |(tensor, place, index): (String, usize, String)| {
            meaning.declared.contains_key(&index).then_some((tensor, place))
        };
        meaning.closed = heads.chain(reads).filter_map(declared).collect();
        meaning.solve();
        Ok(meaning)
    }

    /// What is found of a tensor.
    pub(super) fn tensor(&self, name: &str) -> Out<&Found> {
        match self.found.get(name) {
            Some(Ok(found)) => Ok(found),
            Some(Err(skip)) => Err(*skip),
            None => Err(Skip("nothing is said of it")),
        }
    }

    fn names(&mut self, tree: &ast::Program) -> Out<()> {
        let mut sets: BTreeMap<&str, Vec<Thing>> = BTreeMap::new();
        for statement in &tree.statements {
            if let StatementKind::Set { name, domain } = &statement.kind {
                sets.insert(&name.text, domain_of(domain, &BTreeMap::new())?);
            }
        }
        for statement in &tree.statements {
            match &statement.kind {
                StatementKind::Indices { names, domain } => {
                    let domain = domain_of(domain, &sets)?;
                    self.declared.extend(names.iter().map(|name| (name.text.clone(), domain.clone())));
                }
                StatementKind::Equation {
                    head,
                    sign: Sign::Equal | Sign::Plus,
                    right: RightSide::Expr { expr, guards },
                    ..
                } if head.brackets == Brackets::None && guards.is_empty() =>
                {
                    let number = match &expr.kind {
                        ExprKind::Number(number) => Some(number.value),
                        ExprKind::Negate(inner) => match &inner.kind {
                            ExprKind::Number(number) => Some(-number.value),
                            _ => None,
                        },
                        _ => None,
                    };
                    if let Some(number) = number
                        && self.numbers.insert(head.name.text.clone(), number).is_some()
                    {
                        return Err(Skip("a number twice"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn statement(&mut self, kind: &'t StatementKind) -> Out<()> {
        let (head, body) = match kind {
            StatementKind::Indices { .. } | StatementKind::Set { .. } | StatementKind::Query { .. } => {
                return Ok(());
            }
            StatementKind::Bare { reference, .. } => {
                let constant = |place: &Place| match &place.kind {
                    PlaceKind::Index(index) => {
                        let mut names = Names::new();
                        scopes::of_index(index, &mut names);
                        names.is_empty()
                    }
                    _ => false,
                };
                if reference.brackets != Brackets::Round || !reference.places.iter().all(constant) {
                    return Ok(());
                }
                (reference, Body::Fact)
            }
            StatementKind::Rule { head, body, .. } => (head, Body::Rule(body)),
            StatementKind::Equation { head, sign, right, .. } => match right {
                RightSide::Array(array) => (head, Body::Array(array)),
                RightSide::Expr { expr, guards } => (head, Body::Equation(*sign, expr, guards)),
                RightSide::File { .. } => return Err(Skip("a file")),
            },
            _ => return Err(Skip("another statement")),
        };
        self.said.entry(head.name.text.clone()).or_default().push(Said { head, body });
        Ok(())
    }

    /// Evaluates everything, what is read first; what depends on itself in rounds.
    fn solve(&mut self) {
        let direct: BTreeMap<String, BTreeSet<String>> = self
            .said
            .iter()
            .map(|(name, said)| (name.clone(), said.iter().flat_map(|said| reads(said)).collect()))
            .collect();
        let reach = |from: &str| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
            while let Some(name) = open.pop() {
                for next in direct.get(&name).into_iter().flatten() {
                    if seen.insert(next.clone()) {
                        open.push(next.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<String, BTreeSet<String>> =
            direct.keys().map(|name| (name.clone(), reach(name))).collect();
        let mut names: Vec<String> = direct.keys().cloned().collect();
        names.sort_by_key(|name| reached.get(name).map_or(0, |own| own.len() + usize::from(!own.contains(name))));
        for name in names {
            if self.found.contains_key(&name) {
                continue;
            }
            let Some(own) = reached.get(&name) else { continue };
            let mut together: BTreeSet<String> = own
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|reached| reached.contains(&name)))
                .cloned()
                .collect();
            let recursive = !together.is_empty();
            together.insert(name);
            let unknown = own.difference(&together).find_map(|other| match self.found.get(other) {
                Some(Err(skip)) => Some(*skip),
                _ => None,
            });
            let outcome = match unknown {
                Some(skip) => Err(skip),
                None if recursive => self.in_rounds(&together),
                None => self.round(&together, &BTreeSet::new()).map(|_| ()),
            };
            if let Err(skip) = outcome {
                for name in together {
                    self.found.insert(name, Err(skip));
                }
            }
        }
    }

    fn in_rounds(&mut self, together: &BTreeSet<String>) -> Out<()> {
        for name in together {
            let start = self.joined(name, Vec::new())?;
            self.found.insert(name.clone(), Ok(start));
        }
        for _ in 0..ROUNDS {
            if !self.round(together, together)? {
                return Ok(());
            }
        }
        Err(Skip("rounds that do not rest"))
    }

    /// Computes some tensors from what is there; whether something changed.
    fn round(&mut self, names: &BTreeSet<String>, together: &BTreeSet<String>) -> Out<bool> {
        let mut new = Vec::new();
        for name in names {
            let mut contributions = Vec::new();
            for said in self.said.get(name).into_iter().flatten() {
                self.contribute(said, together, &mut contributions)?;
            }
            new.push((name.clone(), self.joined(name, contributions)?));
        }
        let mut changed = false;
        for (name, found) in new {
            let near = |(a, x): (&Vec<Thing>, &f64), (b, y): (&Vec<Thing>, &f64)| {
                a == b
                    && (x == y
                        || (x.is_finite() && (x - y).abs() <= 1e-13 * x.abs().max(1.0))
                        || (x.is_nan() && y.is_nan()))
            };
            let same = self.found.get(&name).is_some_and(|old| {
                old.as_ref().is_ok_and(|old| {
                    old.elements.len() == found.elements.len()
                        && old.elements.iter().zip(&found.elements).all(|(a, b)| near(a, b))
                })
            });
            changed |= !same;
            self.found.insert(name, Ok(found));
        }
        Ok(changed)
    }

    /// Contributions joined by the aggregator of a tensor.
    fn joined(&self, name: &str, contributions: Vec<(Vec<Thing>, f64)>) -> Out<Found> {
        let known = self.known.get(name).ok_or(Skip("an unknown tensor"))?;
        let signs = self.said.get(name).into_iter().flatten().filter_map(|said| match said.body {
            Body::Equation(sign, ..) if !matches!(sign, Sign::Equal | Sign::Plus) => Some(sign),
            _ => None,
        });
        let sign = signs.last().unwrap_or(Sign::Equal);
        let mut of: BTreeMap<Vec<Thing>, Vec<f64>> = BTreeMap::new();
        for (at, value) in contributions {
            let closed = |place: usize| !known.round || self.closed.contains(&(name.to_owned(), place));
            let inside = |(place, at): (usize, &Thing)| {
                !closed(place) || known.domains.get(place).is_some_and(|domain| domain.contains(at))
            };
            if at.iter().enumerate().all(inside) {
                of.entry(at).or_default().push(value);
            }
        }
        let mut elements = BTreeMap::new();
        if !known.round {
            let empty = match sign {
                Sign::Max => f64::NEG_INFINITY,
                Sign::Min => f64::INFINITY,
                Sign::Times => 1.0,
                _ => 0.0,
            };
            elements.extend(all(&known.domains).into_iter().map(|at| (at, empty)));
        }
        for (at, values) in of {
            let product = || values.iter().product::<f64>();
            let open = sign == Sign::Times && !product().is_finite();
            if open || (values.iter().any(|value| value.is_nan()) && sign != Sign::Equal) {
                return Err(Skip("what is no number"));
            }
            let sum = || values.iter().sum::<f64>();
            let max = || values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let min = || values.iter().copied().fold(f64::INFINITY, f64::min);
            let joined = match (known.kind, sign) {
                (Kind::Tropical, _) | (_, Sign::Min) => min(),
                (Kind::MaxTimes | Kind::MaxMin, _) | (_, Sign::Max) => max(),
                (_, Sign::Avg) => sum() / values.len() as f64,
                (_, Sign::Times) => product(),
                (_, Sign::Or) => f64::from(values.iter().any(|value| *value > 0.0)),
                _ => sum(),
            };
            if known.kind == Kind::Bool && known.round {
                if joined > 0.0 {
                    elements.insert(at, 1.0);
                }
            } else {
                elements.insert(at, joined + 0.0);
            }
        }
        Ok(Found { elements })
    }

    fn is_inside(&self, known: &Known, at: &[Thing]) -> bool {
        at.len() == known.domains.len()
            && at.iter().zip(&known.domains).all(|(at, domain)| domain.contains(at))
    }

    fn contribute(
        &self,
        said: &Said<'t>,
        together: &BTreeSet<String>,
        into: &mut Vec<(Vec<Thing>, f64)>,
    ) -> Out<()> {
        let head = said.head;
        let known = self.known.get(&head.name.text).ok_or(Skip("an unknown tensor"))?;
        let mut lefts = Names::new();
        scopes::of_reference(head, &mut lefts);
        let is_bound = |name: &str| match &said.body {
            Body::Fact | Body::Array(_) => false,
            Body::Rule(body) => binding(name, &positive(body)).is_some(),
            Body::Equation(sign, expr, guards) => terms_of(*sign, expr).iter().all(|(_, term)| {
                let mut must = positive(guards);
                required(term, !known.round, &mut must);
                binding(name, &must).is_some()
            }),
        };
        let here = Here {
            square: !known.round,
            head,
            uses: self.uses(said, !known.round),
            together,
            lefts: lefts.clone(),
            bound: lefts.iter().filter(|name| is_bound(name)).cloned().collect(),
        };
        let left = |env: &Env| -> Out<Vec<Thing>> {
            head.places.iter().map(|place| self.index(index_of(place)?, env)).collect()
        };
        match &said.body {
            Body::Fact => into.push((left(&Env::new())?, one(known.kind))),
            Body::Array(array) => self.array(head, known, array, into)?,
            Body::Rule(body) => {
                let mut open = lefts.clone();
                open.extend(self.open(body, &|_| false));
                let must = positive(body);
                self.each(&here, open.into_iter().collect(), (body, &must, &here.uses), &mut Env::new(), &mut |env| {
                    let mut tag = one(known.kind);
                    for literal in *body {
                        if !self.holds_one(&here, literal, env)? {
                            return Ok(());
                        }
                        if let LiteralKind::Positive(reference) = &literal.kind
                            && known.kind != Kind::Bool
                        {
                            let value = self.read(reference, env, false, &here)?.unwrap_or_default();
                            if self.known.get(&reference.name.text).is_some_and(|own| own.kind == Kind::Bool)
                            {
                                continue;
                            }
                            tag = match known.kind {
                                Kind::Tropical => tag + value,
                                Kind::MaxMin => tag.min(value),
                                Kind::Real | Kind::Count | Kind::MaxTimes => tag * value,
                                _ => return Err(Skip("a type with proofs")),
                            };
                        }
                    }
                    into.push((left(env)?, tag));
                    Ok(())
                })?;
            }
            Body::Equation(_, expr, guards) if is_concat(expr) => {
                self.concatenated(&here, expr, guards, into)?;
            }
            Body::Equation(sign, expr, guards) => {
                for (minus, term) in terms_of(*sign, expr) {
                    let mut parts = Parts::of(term);
                    parts.guards.push(scopes::of_literals(guards));
                    let own = parts.own(&|name| lefts.contains(name)).ok_or(Skip("guards share an index"))?;
                    let open = lefts.iter().chain(&own).cloned().collect();
                    let mut must = positive(guards);
                    required(term, here.square, &mut must);
                    let uses = self.uses_in(term, guards, here.square, false);
                    self.each(&here, open, (guards, &must, &uses), &mut Env::new(), &mut |env| {
                        if !self.hold(&here, guards, env)? {
                            return Ok(());
                        }
                        if let Some(value) = self.value(&here, term, env, false)? {
                            into.push((left(env)?, if minus { -value } else { value }));
                        }
                        Ok(())
                    })?;
                }
            }
        }
        Ok(())
    }

    /// What a query asks, as far as its literals say it; the domains are those of a dense answer.
    pub(super) fn answer(&self, literals: &[Literal], domains: &[Vec<Thing>]) -> Out<Answered> {
        let Some(head) = literals.iter().find_map(|literal| match &literal.kind {
            LiteralKind::Positive(reference) => Some(reference),
            _ => None,
        }) else {
            return Err(Skip("a question without a reference"));
        };
        let mut free = Vec::new();
        for literal in literals {
            in_order(literal, &mut free);
        }
        let mut uses = Vec::new();
        literals.iter().for_each(|literal| self.uses_of_literal(literal, false, &mut uses));
        let together = BTreeSet::new();
        let here = Here { square: false, head, uses, together: &together, lefts: Names::new(), bound: Names::new() };
        let wild: Vec<String> = free.iter().filter(|name| name.starts_with('_')).cloned().collect();
        free.retain(|name| !name.starts_with('_'));
        let [literal] = literals else {
            let mut found = BTreeMap::new();
            let must = positive(literals);
            let open = free.iter().chain(&wild).cloned().collect();
            self.each(&here, open, (literals, &must, &here.uses), &mut Env::new(), &mut |env| {
                if self.hold(&here, literals, env)? {
                    found.insert(free.iter().filter_map(|name| env.get(name).cloned()).collect(), 1.0);
                }
                Ok(())
            })?;
            return Ok(if free.is_empty() {
                Answered::Scalar(Some(f64::from(!found.is_empty())))
            } else {
                Answered::Relation(found)
            });
        };
        if !matches!(literal.kind, LiteralKind::Positive(_)) {
            return Err(Skip("a question of a comparison"));
        }
        let name = &head.name.text;
        let known = self.known.get(name).ok_or(Skip("an unknown tensor"))?;
        if head.brackets == Brackets::None && !known.domains.is_empty() {
            let found = self.tensor(name)?;
            return Ok(match known.round {
                true => Answered::Relation(found.elements.clone()),
                false => {
                    let all = all(&known.domains);
                    Answered::Tensor(all.iter().filter_map(|at| found.elements.get(at).copied()).collect())
                }
            });
        }
        if head.brackets == Brackets::Square || !known.round && head.brackets == Brackets::None {
            let mut values = Vec::new();
            for at in all(domains) {
                if at.len() != free.len() {
                    return Err(Skip("a slice that is asked for"));
                }
                let mut env: Env = free.iter().cloned().zip(at).collect();
                let mut sum = 0.0;
                self.each(&here, wild.clone(), (&[], &[], &here.uses), &mut env, &mut |env| {
                    sum += self.read(head, env, false, &here)?.unwrap_or(0.0);
                    Ok(())
                })?;
                values.push(sum + 0.0);
            }
            return Ok(if free.is_empty() { Answered::Scalar(values.pop()) } else { Answered::Tensor(values) });
        }
        if !wild.is_empty() && known.kind != Kind::Bool {
            return Err(Skip("a wildcard over values"));
        }
        let mut found = BTreeMap::new();
        let open = free.iter().chain(&wild).cloned().collect();
        self.each(&here, open, (literals, &[head], &here.uses), &mut Env::new(), &mut |env| {
            let value = match head.brackets {
                Brackets::Round => self.read(head, env, false, &here)?,
                _ => self.element(head, env)?.0,
            };
            if let Some(value) = value {
                found.insert(free.iter().filter_map(|name| env.get(name).cloned()).collect(), value);
            }
            Ok(())
        })?;
        Ok(match (free.is_empty(), found.values().next(), known.kind) {
            (false, ..) => Answered::Relation(found),
            (true, found, Kind::Bool) => Answered::Scalar(Some(f64::from(found.is_some()))),
            (true, found, _) => Answered::Scalar(found.copied()),
        })
    }

    fn array(
        &self,
        head: &Reference,
        known: &Known,
        array: &Array,
        into: &mut Vec<(Vec<Thing>, f64)>,
    ) -> Out<()> {
        // Of each place the constant, or the values that the entries stand at.
        let mut places: Vec<Vec<Thing>> = Vec::new();
        if head.brackets == Brackets::None {
            places.clone_from(&known.domains);
        }
        let mut open = vec![true; places.len()];
        for place in &head.places {
            let index = index_of(place)?;
            match alone(index) {
                Some(name) => {
                    let domain = self.declared.get(name).cloned();
                    let own = known.domains.get(places.len());
                    let symbols = own.filter(|own| matches!(own.first(), Some(Thing::Symbol(_)))).cloned();
                    let numbers = || (0..FAR).map(Thing::Int).collect();
                    places.push(domain.or(symbols).unwrap_or_else(numbers));
                    open.push(true);
                }
                None => {
                    places.push(vec![self.index(index, &Env::new())?]);
                    open.push(false);
                }
            }
        }
        fn fill(
            array: &Array,
            places: &[Vec<Thing>],
            open: &[bool],
            at: &mut Vec<Thing>,
            into: &mut Vec<(Vec<Thing>, f64)>,
        ) -> Out<()> {
            let fixed = open.iter().take_while(|open| !**open).count();
            let before = at.len();
            at.extend(places[..fixed].iter().flatten().cloned());
            for (nth, item) in array.items.iter().enumerate() {
                let value =
                    places.get(fixed).and_then(|values| values.get(nth)).ok_or(Skip("a larger array"))?;
                at.push(value.clone());
                match item {
                    Item::Array(inner) => fill(inner, &places[fixed + 1..], &open[fixed + 1..], at, into)?,
                    Item::Number(number) => {
                        let rest = places[fixed + 1..].iter().flatten().cloned();
                        if open[fixed + 1..].iter().any(|open| *open) {
                            return Err(Skip("a flat array"));
                        }
                        into.push((at.iter().cloned().chain(rest).collect(), number.value));
                    }
                }
                at.pop();
            }
            at.truncate(before);
            Ok(())
        }
        fill(array, &places, &open, &mut Vec::new(), into)
    }

    fn concatenated(
        &self,
        here: &Here<'_>,
        expr: &Expr,
        guards: &[Literal],
        into: &mut Vec<(Vec<Thing>, f64)>,
    ) -> Out<()> {
        let ExprKind::Call { arguments, guards: inner, .. } = &expr.kind else { return Ok(()) };
        if !guards.is_empty() || !inner.is_empty() {
            return Err(Skip("a guarded row"));
        }
        let lefts: Vec<&str> = here
            .head
            .places
            .iter()
            .map(|place| index_of(place).and_then(|index| alone(index).ok_or(Skip("a computed row"))))
            .collect::<Out<_>>()?;
        let within: Names = arguments.iter().flat_map(scopes::all).collect();
        let new: Vec<&str> = lefts.iter().copied().filter(|name| !within.contains(*name)).collect();
        let [new] = new.as_slice() else { return Err(Skip("a row without one new index")) };
        let stays: Vec<String> =
            lefts.iter().filter(|name| *name != new).map(|name| (*name).to_owned()).collect();
        let mut offset = 0i64;
        for argument in arguments {
            let ExprKind::Reference(reference) = &argument.kind else { return Err(Skip("a computed row")) };
            let uses = self.uses_in(argument, &[], here.square, false);
            let mut merged: Vec<String> = Vec::new();
            for place in &reference.places {
                let mut names = Names::new();
                scopes::of_index(index_of(place)?, &mut names);
                let fresh = names.into_iter().filter(|name| !lefts.contains(&name.as_str()));
                merged.extend(fresh.filter(|name| !merged.contains(name)).collect::<Vec<_>>());
            }
            let ranges: Vec<Vec<Thing>> =
                merged.iter().map(|name| self.range_of(here, name, &uses)).collect::<Out<_>>()?;
            let all = all(&ranges);
            self.each(here, stays.clone(), (&[], &[], &here.uses), &mut Env::new(), &mut |env| {
                for (nth, values) in all.iter().enumerate() {
                    let mut env = env.clone();
                    env.extend(merged.iter().cloned().zip(values.iter().cloned()));
                    if let Some(value) = self.value(here, argument, &env, false)? {
                        env.insert((*new).to_owned(), Thing::Int(offset + nth as i64));
                        let at = lefts.iter().filter_map(|name| env.get(*name).cloned()).collect();
                        into.push((at, value));
                    }
                }
                Ok(())
            })?;
            offset += all.len() as i64;
        }
        Ok(())
    }

    /// Goes through all values of some indices; what a guard computes takes that value.
    fn each(
        &self,
        here: &Here<'_>,
        mut open: Vec<String>,
        (guards, must, uses): (&[Literal], &[&Reference], &[Use]),
        env: &mut Env,
        then: &mut dyn FnMut(&Env) -> Out<()>,
    ) -> Out<()> {
        self.work.set(self.work.get() + 1);
        if self.work.get() > WORK {
            return Err(Skip("many bindings"));
        }
        if open.is_empty() {
            return then(env);
        }
        let computed = |name: &String| {
            guards.iter().find_map(|literal| match &literal.kind {
                LiteralKind::Assign { index, value } if index.text == *name => Some(value),
                _ => None,
            })
        };
        let is_bound = |value: &IndexExpr| {
            let mut names = Names::new();
            scopes::of_index(value, &mut names);
            names.iter().all(|name| env.contains_key(name))
        };
        let ready = open.iter().position(|name| computed(name).is_some_and(is_bound));
        let free = open.iter().position(|name| computed(name).is_none());
        let (at, values) = match (ready, free) {
            (Some(at), _) => {
                let value = computed(&open[at]).ok_or(Skip("nothing computed"))?;
                let value = self.index(value, env)?;
                let declared = self.declared.get(&open[at]);
                let inside = declared.is_none_or(|domain| domain.contains(&value));
                (at, if inside { vec![value] } else { Vec::new() })
            }
            (None, Some(at)) => (at, self.values(here, &open[at], must, uses)?),
            (None, None) => (0, self.values(here, &open[0], must, uses)?),
        };
        let name = open.remove(at);
        for value in values {
            env.insert(name.clone(), value);
            self.each(here, open.clone(), (guards, must, uses), env, then)?;
        }
        env.remove(&name);
        Ok(())
    }

    /// The indices of literals that none of their comparisons sums by itself.
    fn open(&self, literals: &[Literal], bound: &dyn Fn(&str) -> bool) -> Names {
        let mut lists: Vec<(bool, Names)> = Vec::new();
        for literal in literals {
            match &literal.kind {
                LiteralKind::Compare { left, right, .. } => {
                    for side in [left, right] {
                        lists.push((!self.is_index(side), scopes::all(side)));
                    }
                }
                _ => {
                    let mut names = Names::new();
                    scopes::of_literal(literal, &mut names);
                    lists.push((false, names));
                }
            }
        }
        let all: Names = lists.iter().flat_map(|(_, names)| names.clone()).collect();
        let own = |name: &String| {
            let mut holding = lists.iter().filter(|(_, names)| names.contains(name));
            !bound(name)
                && (holding.any(|(value, _)| !value)
                    || lists.iter().filter(|(_, names)| names.contains(name)).count() > 1)
        };
        all.into_iter().filter(own).collect()
    }

    /// Whether there are values of the indices that only these guards have for which all hold.
    fn hold(&self, here: &Here<'_>, guards: &[Literal], env: &Env) -> Out<bool> {
        let open = self.open(guards, &|name| env.contains_key(name));
        let mut holds = false;
        let must = positive(guards);
        let mut uses = Vec::new();
        guards.iter().for_each(|literal| self.uses_of_literal(literal, here.square, &mut uses));
        self.each(here, open.into_iter().collect(), (guards, &must, &uses), &mut env.clone(), &mut |env| {
            if !holds {
                holds = guards
                    .iter()
                    .try_fold(true, |all, guard| Ok(all && self.holds_one(here, guard, env)?))?;
            }
            Ok(())
        })?;
        Ok(holds)
    }

    fn is_index(&self, side: &Expr) -> bool {
        fn names(index: &IndexExpr, check: &dyn Fn(&str) -> bool) -> bool {
            match &index.kind {
                IndexKind::Name(name) => check(name),
                IndexKind::Integer(_) | IndexKind::Index(_) | IndexKind::Text(_) => true,
                IndexKind::Negate(inner) | IndexKind::Group(inner) => names(inner, check),
                IndexKind::Binary(_, a, b) => names(a, check) && names(b, check),
            }
        }
        let known = |name: &str| self.numbers.contains_key(name) || !self.known.contains_key(name);
        side.as_index().is_some_and(|index| names(&index, &known))
    }

    fn holds_one(&self, here: &Here<'_>, literal: &Literal, env: &Env) -> Out<bool> {
        Ok(match &literal.kind {
            LiteralKind::Positive(reference) => match reference.brackets {
                Brackets::Round => self.is_present(reference, env)?,
                _ => self.read(reference, env, false, here)?.is_some_and(|value| value > 0.0),
            },
            LiteralKind::Negative(reference) => !self.exists(reference, env)?,
            LiteralKind::Assign { index, value } => env.get(&index.text) == Some(&self.index(value, env)?),
            LiteralKind::Compare { left, comparison, right, .. } => {
                if self.is_index(left) && self.is_index(right) {
                    let side = |side: &Expr| {
                        let index = side.as_index().ok_or(Skip("no index"))?;
                        self.index(&index, env)
                    };
                    return match (side(left)?, side(right)?) {
                        (Thing::Int(a), Thing::Int(b)) => Ok(of(*comparison, a.cmp(&b))),
                        (a, b) => match comparison {
                            ast::Comparison::Equal => Ok(a == b),
                            ast::Comparison::NotEqual => Ok(a != b),
                            _ => Err(Skip("symbols in an order")),
                        },
                    };
                }
                let (left, right) = (
                    self.argument(here, left, &[], env, false)?,
                    self.argument(here, right, &[], env, false)?,
                );
                let (Some(left), Some(right)) = (left, right) else { return Ok(false) };
                match left.partial_cmp(&right) {
                    Some(order) => of(*comparison, order),
                    None => *comparison == ast::Comparison::NotEqual,
                }
            }
        })
    }

    /// The element that a reference names, and whether it is inside.
    fn element(&self, reference: &Reference, env: &Env) -> Out<(Option<f64>, bool)> {
        let name = &reference.name.text;
        let known = self.known.get(name).ok_or(Skip("a built-in relation"))?;
        let at: Vec<Thing> =
            reference.places.iter().map(|place| self.index(index_of(place)?, env)).collect::<Out<_>>()?;
        let found = match self.found.get(name) {
            Some(Ok(found)) => found.elements.get(&at).copied(),
            Some(Err(skip)) => return Err(*skip),
            None if known.round && !self.said.contains_key(name) => None,
            None => return Err(Skip("a tensor without values")),
        };
        Ok((found, self.is_inside(known, &at)))
    }

    fn read(&self, reference: &Reference, env: &Env, zero: bool, here: &Here<'_>) -> Out<Option<f64>> {
        let name = &reference.name.text;
        if reference.brackets == Brackets::None {
            if let Some(number) = self.numbers.get(name) {
                return Ok(Some(*number));
            }
            if !self.known.contains_key(name) || !self.said.contains_key(name) {
                let index = name.to_lowercase();
                if !self.declared.contains_key(&index) {
                    return Err(Skip("the size of an index that is not declared"));
                }
                return Ok(Some(self.range_of(here, &index, &here.uses)?.len() as f64));
            }
        }
        if reference.brackets == Brackets::Round && matches!(name.as_str(), "Even" | "Odd") {
            return Ok(self.is_present(reference, env)?.then_some(1.0));
        }
        let round = self.known.get(name).is_some_and(|known| known.round);
        let (found, inside) = self.element(reference, env)?;
        Ok(match reference.brackets {
            Brackets::Round if !round && found.is_some_and(is_near_zero) => {
                return Err(Skip("an element near 0"));
            }
            Brackets::Round => match found.filter(|value| round || *value != 0.0) {
                Some(value) => Some(value),
                None => (zero && inside).then_some(0.0),
            },
            // Integers and symbols together are no domain.
            _ if round && !self.said.contains_key(name) => return Err(Skip("an empty relation")),
            _ if round => found.or(inside.then_some(0.0)),
            _ => found,
        })
    }

    fn is_present(&self, reference: &Reference, env: &Env) -> Out<bool> {
        let name = reference.name.text.as_str();
        if matches!(name, "Even" | "Odd") && !self.said.contains_key(name) {
            let [place] = reference.places.as_slice() else { return Err(Skip("a built-in relation")) };
            let Thing::Int(value) = self.index(index_of(place)?, env)? else { return Ok(false) };
            return Ok((value.rem_euclid(2) == 0) == (name == "Even"));
        }
        let round = self.known.get(name).is_some_and(|known| known.round);
        Ok(self.element(reference, env)?.0.is_some_and(|value| round || value != 0.0))
    }

    /// Whether there is such a tuple, for any value where a wildcard or a slice stands.
    fn exists(&self, reference: &Reference, env: &Env) -> Out<bool> {
        if reference.places.iter().all(|place| matches!(place.kind, PlaceKind::Index(_))) {
            return self.is_present(reference, env);
        }
        let name = &reference.name.text;
        let round = self.known.get(name).is_some_and(|known| known.round);
        let found = match self.found.get(name) {
            Some(Ok(found)) => found,
            Some(Err(skip)) => return Err(*skip),
            None if round => return Ok(false),
            None => return Err(Skip("a tensor without values")),
        };
        for (at, value) in &found.elements {
            let mut fits = round || *value != 0.0;
            for (place, at) in reference.places.iter().zip(at) {
                fits &= match &place.kind {
                    PlaceKind::Wildcard => true,
                    PlaceKind::Index(index) => self.index(index, env)? == *at,
                    PlaceKind::Slice(..) => return Err(Skip("a slice that is denied")),
                };
            }
            if fits {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn index(&self, index: &IndexExpr, env: &Env) -> Out<Thing> {
        Ok(match &index.kind {
            IndexKind::Integer(value) => Thing::Int(*value),
            IndexKind::Index(name) => env.get(name).cloned().ok_or(Skip("an index without a value"))?,
            IndexKind::Name(name) => match self.numbers.get(name) {
                Some(number) if number.fract() == 0.0 => Thing::Int(*number as i64),
                Some(_) => return Err(Skip("a constant that is no integer")),
                None => Thing::Symbol(name.clone()),
            },
            IndexKind::Text(text) => Thing::Symbol(text.clone()),
            IndexKind::Group(inner) => self.index(inner, env)?,
            IndexKind::Negate(inner) => match self.index(inner, env)? {
                Thing::Int(value) => Thing::Int(-value),
                Thing::Symbol(_) => return Err(Skip("a symbol in arithmetic")),
            },
            IndexKind::Binary(operator, a, b) => {
                let (Thing::Int(a), Thing::Int(b)) = (self.index(a, env)?, self.index(b, env)?) else {
                    return Err(Skip("a symbol in arithmetic"));
                };
                Thing::Int(match operator {
                    IndexOperator::Add => a + b,
                    IndexOperator::Subtract => a - b,
                    IndexOperator::Multiply => a * b,
                    IndexOperator::Divide if b != 0 => a.div_euclid(b),
                    IndexOperator::Remainder if b != 0 => a.rem_euclid(b),
                    _ => return Err(Skip("a division by 0")),
                })
            }
        })
    }

    fn value(&self, here: &Here<'_>, expr: &Expr, env: &Env, zero: bool) -> Out<Option<f64>> {
        let value = |expr: &Expr| self.value(here, expr, env, zero);
        Ok(match &expr.kind {
            ExprKind::Number(number) => Some(number.value),
            ExprKind::Text(_) => return Err(Skip("a symbol as a value")),
            ExprKind::Index(name) => match env.get(&name.text) {
                Some(Thing::Int(value)) => Some(*value as f64),
                _ => return Err(Skip("a symbol as a value")),
            },
            ExprKind::Reference(reference) => self.read(reference, env, zero, here)?,
            ExprKind::Not(reference) => (!self.exists(reference, env)?).then_some(1.0),
            ExprKind::Negate(inner) => value(inner)?.map(|value| 0.0 - value),
            ExprKind::Power(base, exponent, _) => match (value(base)?, value(exponent)?) {
                (Some(base), Some(exponent)) => Some(base.powf(exponent)),
                _ => None,
            },
            ExprKind::Sum(terms) => {
                let mut sum = Some(0.0);
                for (minus, term) in terms {
                    let value = value(term)?;
                    sum = sum.zip(value).map(|(sum, value)| if *minus { sum - value } else { sum + value });
                }
                sum
            }
            ExprKind::Product(factors) => {
                let (mut product, mut near) = (Some(1.0), false);
                for (joint, factor) in factors {
                    let value = value(factor)?;
                    product = product.zip(value).map(|(product, value)| match joint {
                        Joint::Over => {
                            near |= !matches!(factor.kind, ExprKind::Number(_)) && is_near_zero(value);
                            product / value
                        }
                        _ => product * value,
                    });
                    if *joint == Joint::Remainder {
                        return Err(Skip("a remainder as a value"));
                    }
                    if near {
                        return Err(Skip("a divisor near 0"));
                    }
                }
                product
            }
            ExprKind::Group { expr, guards } if scopes::is_product(expr) => {
                self.sum(here, expr, guards, env, zero)?
            }
            ExprKind::Group { expr, guards } => {
                if self.hold(here, guards, env)? {
                    self.value(here, expr, env, zero)?
                } else {
                    None
                }
            }
            ExprKind::Call { name, axes, arguments, guards } => {
                let name = name.text.as_str();
                match axes {
                    Some(local) if EXPLICIT.contains(&name) => {
                        let local: Vec<String> = local.iter().map(|name| name.text.clone()).collect();
                        self.explicit(here, name, local, arguments, guards, env)?
                    }
                    _ if matches!(name, "softmax" | "lnorm") => {
                        self.along(here, name, axes.as_deref(), arguments, guards, env)?
                    }
                    Some(_) => return Err(Skip("another function along an axis")),
                    None => {
                        if arguments.len() > 1
                            && !scopes::of_literals(guards).iter().all(|name| env.contains_key(name))
                        {
                            return Err(Skip("a guard of two arguments"));
                        }
                        let mut values = Vec::new();
                        for argument in arguments {
                            let Some(value) = self.argument(here, argument, guards, env, here.square)? else {
                                return Ok(None);
                            };
                            values.push(value);
                        }
                        Some(function(name, &values)?)
                    }
                }
            }
        })
    }

    /// The sum over a body's own indices; absent without contributions.
    fn sum(
        &self,
        here: &Here<'_>,
        body: &Expr,
        guards: &[Literal],
        env: &Env,
        zero: bool,
    ) -> Out<Option<f64>> {
        let mut parts = Parts::of(body);
        parts.guards.push(scopes::of_literals(guards));
        let own = parts.own(&|name| env.contains_key(name)).ok_or(Skip("guards share an index"))?;
        let mut sum = None;
        let mut must = positive(guards);
        if !zero {
            required(body, here.square, &mut must);
        }
        let uses = self.uses_in(body, guards, here.square, zero);
        self.each(here, own.into_iter().collect(), (guards, &must, &uses), &mut env.clone(), &mut |env| {
            if self.hold(here, guards, env)?
                && let Some(value) = self.value(here, body, env, zero)?
            {
                sum = Some(sum.unwrap_or(0.0) + value);
            }
            Ok(())
        })?;
        Ok(sum)
    }

    /// An argument: each additive term summed by itself, those without contributions left out. A guard acts in the terms that
    /// have its indices.
    fn argument(
        &self,
        here: &Here<'_>,
        argument: &Expr,
        guards: &[Literal],
        env: &Env,
        zero: bool,
    ) -> Out<Option<f64>> {
        let terms = scopes::terms(argument);
        let names: Vec<Names> = terms.iter().map(|(_, term)| scopes::all(term)).collect();
        let anywhere: Names =
            names.iter().flatten().filter(|name| !env.contains_key(*name)).cloned().collect();
        let mut sum = None;
        for ((minus, term), own) in terms.iter().zip(&names) {
            let acting = acting(guards, own, &anywhere, env)?;
            if let Some(value) = self.sum(here, term, &acting, env, zero)? {
                sum = Some(sum.unwrap_or(0.0) + if *minus { -value } else { value });
            }
        }
        Ok(sum)
    }

    fn explicit(
        &self,
        here: &Here<'_>,
        name: &str,
        local: Vec<String>,
        arguments: &[Expr],
        guards: &[Literal],
        env: &Env,
    ) -> Out<Option<f64>> {
        let [argument] = arguments else { return Err(Skip("a scope of several arguments")) };
        let mut outer = env.clone();
        local.iter().for_each(|name| {
            outer.remove(name);
        });
        let mut values = Vec::new();
        let mut must = positive(guards);
        if let [(_, term)] = scopes::terms(argument).as_slice() {
            required(term, here.square, &mut must);
        }
        let uses = self.uses_in(argument, guards, here.square, false);
        // A local index is none of the left side.
        let mut inner = here.clone();
        inner.lefts.retain(|name| !local.contains(name));
        let here = &inner;
        self.each(here, local, (guards, &must, &uses), &mut outer, &mut |env| {
            values.extend(self.argument(here, argument, guards, env, false)?);
            Ok(())
        })?;
        if values.iter().any(|value| value.is_nan()) && matches!(name, "max" | "min") {
            return Err(Skip("what is no number"));
        }
        let any = !values.is_empty();
        Ok(match name {
            "sum" => Some(values.iter().sum()),
            "count" => Some(values.len() as f64),
            "prod" => Some(values.iter().product()),
            "max" => any.then(|| values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            "min" => any.then(|| values.iter().copied().fold(f64::INFINITY, f64::min)),
            _ => any.then(|| values.iter().sum::<f64>() / values.len() as f64),
        })
    }

    fn along(
        &self,
        here: &Here<'_>,
        name: &str,
        axes: Option<&[ast::Name]>,
        arguments: &[Expr],
        guards: &[Literal],
        env: &Env,
    ) -> Out<Option<f64>> {
        let axes: Vec<String> = match axes {
            Some(axes) => axes.iter().map(|name| name.text.clone()).collect(),
            None => {
                let places = || here.head.places.iter();
                let lone = |place: &Place| index_of(place).ok().and_then(alone).map(str::to_owned);
                let dotted: Vec<String> = places().filter(|place| place.dot).filter_map(lone).collect();
                match (dotted.is_empty(), places().last().and_then(lone)) {
                    (false, _) => dotted,
                    (true, Some(last)) => vec![last],
                    (true, None) => return Err(Skip("no axis")),
                }
            }
        };
        let Some((argument, rest)) = arguments.split_first() else { return Err(Skip("no argument")) };
        if !axes.iter().all(|axis| env.contains_key(axis)) {
            return Err(Skip("an axis without a value"));
        }
        let epsilon = match rest {
            [] => 1e-5,
            [Expr { kind: ExprKind::Number(number), .. }] => number.value,
            _ => return Err(Skip("a computed epsilon")),
        };
        let Some(own) = self.argument(here, argument, guards, env, false)? else { return Ok(None) };
        let mut outer = env.clone();
        axes.iter().for_each(|axis| {
            outer.remove(axis);
        });
        let mut values = Vec::new();
        let mut must = positive(guards);
        if let [(_, term)] = scopes::terms(argument).as_slice() {
            required(term, here.square, &mut must);
        }
        self.each(here, axes, (&[], &must, &here.uses), &mut outer, &mut |env| {
            values.extend(self.argument(here, argument, guards, env, false)?);
            Ok(())
        })?;
        if values.len() == 1 && name == "softmax" {
            return Ok(Some(1.0));
        }
        if values.iter().any(|value| value.is_nan()) {
            return Err(Skip("what is no number"));
        }
        Ok(Some(if name == "softmax" {
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (own - most).exp() / values.iter().map(|value| (value - most).exp()).sum::<f64>()
        } else {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
            (own - mean) / (variance + epsilon).sqrt()
        }))
    }

    /// The values of an index: those of the tuples that must be there, or its range.
    fn bound_values(
        &self,
        here: &Here<'_>,
        name: &str,
        must: &[&Reference],
        uses: &[Use],
    ) -> Out<Vec<Thing>> {
        if self.declared.contains_key(name) {
            return self.range_of(here, name, uses);
        }
        // What not every term binds has one range for all of them.
        let left = here.lefts.contains(name);
        let bound = binding(name, must).filter(|_| !left || here.bound.contains(name));
        if let Some((reference, place, index)) = bound {
            let round = self.known.get(&reference.name.text).is_some_and(|known| known.round);
            let column: BTreeSet<Thing> = match self.found.get(&reference.name.text) {
                Some(Ok(found)) => found
                    .elements
                    .iter()
                    .filter(|(_, value)| round || **value != 0.0)
                    .filter_map(|(at, _)| at.get(place).cloned())
                    .collect(),
                Some(Err(skip)) => return Err(*skip),
                None => BTreeSet::new(),
            };
            return match alone(index) {
                Some(_) => Ok(column.into_iter().collect()),
                None => self.solutions(name, index, &|value| column.contains(value)),
            };
        }
        self.range_of(here, name, if left { &here.uses } else { uses })
    }

    fn values(
        &self,
        here: &Here<'_>,
        name: &str,
        must: &[&Reference],
        uses: &[Use],
    ) -> Out<Vec<Thing>> {
        let range = self.bound_values(here, name, must, uses)?;
        let Some((from, to)) = self.slices.get(name) else { return Ok(range) };
        let inside = |value: &Thing| match value {
            Thing::Int(value) => from.is_none_or(|from| from <= *value) && to.is_none_or(|to| *value < to),
            Thing::Symbol(_) => from.is_none() && to.is_none(),
        };
        Ok(range.into_iter().filter(inside).collect())
    }

    /// What an index ranges over in an equation.
    fn range_of(&self, here: &Here<'_>, name: &str, uses: &[Use]) -> Out<Vec<Thing>> {
        if let Some(domain) = self.declared.get(name) {
            return Ok(domain.clone());
        }
        let names = names_of;
        let own: Vec<&Use> = uses.iter().filter(|one| names(&one.index).contains(name)).collect();
        // What the domains of tensors outside the recursion leave.
        let mut range: Option<BTreeSet<Thing>> = None;
        let mut moved = Vec::new();
        for one in own.iter().filter(|one| !one.loose) {
            let Some(known) = self.known.get(&one.tensor) else { return Err(Skip("a built-in relation")) };
            let Some(domain) = known.domains.get(one.place) else { return Err(Skip("another rank")) };
            if here.together.contains(&one.tensor) {
                continue;
            }
            let others = names(&one.index).len() > 1;
            if others {
                moved.push((*one, domain));
                continue;
            }
            let found: BTreeSet<Thing> = if alone(&one.index).is_some() {
                domain.iter().cloned().collect()
            } else {
                self.solutions(name, &one.index, &|value| domain.contains(value))?.into_iter().collect()
            };
            range = Some(match range {
                Some(range) => range.intersection(&found).cloned().collect(),
                None => found,
            });
        }
        if let Some(range) = range {
            if moved.iter().any(|(one, _)| {
                names(&one.index).iter().any(|other| other != name && !self.declared.contains_key(other))
            }) {
                return Err(Skip("ranges that hang on each other"));
            }
            return Ok(range.into_iter().collect());
        }
        if !moved.is_empty() {
            let mut found: Option<BTreeSet<i64>> = None;
            for (one, domain) in moved {
                let others = names(&one.index).into_iter().filter(|other| other != name);
                let others: Vec<String> = others.collect();
                let domains: Option<Vec<Vec<Thing>>> =
                    others.iter().map(|other| self.declared.get(other).cloned()).collect();
                let domains = domains.ok_or(Skip("ranges that hang on each other"))?;
                let mut fits = BTreeSet::new();
                for value in -FAR..=FAR {
                    let mut inside = true;
                    for at in all(&domains) {
                        let mut env: Env = others.iter().cloned().zip(at).collect();
                        env.insert(name.to_owned(), Thing::Int(value));
                        inside &= domain.contains(&self.index(&one.index, &env)?);
                    }
                    if inside && value.abs() > FAR - 8 {
                        return Err(Skip("an index without an end"));
                    }
                    if inside {
                        fits.insert(value);
                    }
                }
                found = Some(match found {
                    Some(found) => found.intersection(&fits).copied().collect(),
                    None => fits,
                });
            }
            return Ok(found.into_iter().flatten().map(Thing::Int).collect());
        }
        if uses.iter().any(|one| names(&one.index).contains(name)) {
            return Err(Skip("the domain of a class"));
        }
        // The domain of its class: that of the left side, where it stands alone.
        let left =
            here.head.places.iter().position(|place| index_of(place).ok().and_then(alone) == Some(name));
        let known = self.known.get(&here.head.name.text);
        match left.and_then(|place| known?.domains.get(place)) {
            Some(_) if known.is_some_and(|known| known.round) => Err(Skip("the domain of a class")),
            Some(domain) => Ok(domain.clone()),
            None => Err(Skip("an index that nothing limits")),
        }
    }

    /// The integers for which an index expression takes a value that fits.
    fn solutions(&self, name: &str, index: &IndexExpr, fits: &dyn Fn(&Thing) -> bool) -> Out<Vec<Thing>> {
        let mut found = Vec::new();
        for value in -FAR..=FAR {
            let env = Env::from([(name.to_owned(), Thing::Int(value))]);
            if fits(&self.index(index, &env)?) {
                if value.abs() > FAR - 8 {
                    return Err(Skip("an index without an end"));
                }
                found.push(Thing::Int(value));
            }
        }
        Ok(found)
    }

    /// Where the indices of an equation are read.
    fn uses(&self, said: &Said<'_>, square: bool) -> Vec<Use> {
        let mut uses = Vec::new();
        match &said.body {
            Body::Fact | Body::Array(_) => {}
            Body::Rule(body) => {
                body.iter().for_each(|literal| self.uses_of_literal(literal, square, &mut uses))
            }
            Body::Equation(_, expr, guards) => {
                self.uses_of(expr, square, false, &mut uses);
                guards.iter().for_each(|literal| self.uses_of_literal(literal, square, &mut uses));
            }
        }
        uses
    }

    fn uses_in(&self, body: &Expr, guards: &[Literal], square: bool, zero: bool) -> Vec<Use> {
        let mut uses = Vec::new();
        self.uses_of(body, square, zero, &mut uses);
        guards.iter().for_each(|literal| self.uses_of_literal(literal, square, &mut uses));
        uses
    }

    fn use_of(&self, reference: &Reference, zero: bool, uses: &mut Vec<Use>) {
        if matches!(reference.name.text.as_str(), "Even" | "Odd") {
            return;
        }
        for (place, at) in reference.places.iter().enumerate() {
            if let PlaceKind::Index(index) = &at.kind {
                let loose = reference.brackets == Brackets::Round && !zero;
                uses.push(Use { tensor: reference.name.text.clone(), place, index: index.clone(), loose });
            }
        }
    }

    /// A denied reference limits nothing.
    fn denied(&self, reference: &Reference, uses: &mut Vec<Use>) {
        let from = uses.len();
        self.use_of(reference, false, uses);
        uses.iter_mut().skip(from).for_each(|one| one.loose = true);
    }

    fn uses_of_literal(&self, literal: &Literal, square: bool, uses: &mut Vec<Use>) {
        match &literal.kind {
            LiteralKind::Positive(reference) => self.use_of(reference, false, uses),
            LiteralKind::Assign { .. } => {}
            LiteralKind::Negative(reference) => self.denied(reference, uses),
            LiteralKind::Compare { left, right, .. } => {
                self.uses_of(left, square, false, uses);
                self.uses_of(right, square, false, uses);
            }
        }
    }

    fn uses_of(&self, expr: &Expr, square: bool, zero: bool, uses: &mut Vec<Use>) {
        match &expr.kind {
            ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| self.uses_of(term, square, zero, uses)),
            ExprKind::Product(factors) => {
                factors.iter().for_each(|(_, factor)| self.uses_of(factor, square, zero, uses));
            }
            ExprKind::Negate(inner) => self.uses_of(inner, square, zero, uses),
            ExprKind::Power(base, exponent, _) => {
                self.uses_of(base, square, zero, uses);
                self.uses_of(exponent, square, zero, uses);
            }
            ExprKind::Reference(reference) => self.use_of(reference, zero, uses),
            ExprKind::Not(reference) => self.denied(reference, uses),
            ExprKind::Number(_) | ExprKind::Index(_) | ExprKind::Text(_) => {}
            ExprKind::Call { name, axes, arguments, guards } => {
                let name = name.text.as_str();
                let missing = (axes.is_some() && EXPLICIT.contains(&name))
                    || matches!(name, "softmax" | "lnorm" | "concat");
                let from = uses.len();
                for argument in arguments {
                    self.uses_of(argument, square, square && !missing, uses);
                }
                guards.iter().for_each(|literal| self.uses_of_literal(literal, square, uses));
                if EXPLICIT.contains(&name) {
                    // A local index is another one than that of its name outside.
                    let local = axes.iter().flatten().map(|axis| axis.text.as_str());
                    for local in local.filter(|local| !self.declared.contains_key(*local)) {
                        uses.iter_mut().skip(from).for_each(|one| renamed(&mut one.index, local));
                    }
                }
            }
            ExprKind::Group { expr, guards } => {
                self.uses_of(expr, square, zero, uses);
                guards.iter().for_each(|literal| self.uses_of_literal(literal, square, uses));
            }
        }
    }
}

/// The guards that act in a term: those whose indices it has, or nobody, with what they compute.
fn acting(guards: &[Literal], own: &Names, anywhere: &Names, env: &Env) -> Out<Vec<Literal>> {
    let mut groups: Vec<(Names, Vec<&Literal>)> = Vec::new();
    for guard in guards {
        let mut names = Names::new();
        scopes::of_literal(guard, &mut names);
        let shared = |group: &(Names, Vec<&Literal>)| {
            group.0.intersection(&names).any(|name| !anywhere.contains(name) && !env.contains_key(name))
        };
        // Literals that share an index of theirs alone stay together.
        let (joined, rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(shared);
        groups = rest;
        let mut all = (names, vec![guard]);
        for (names, literals) in joined {
            all.0.extend(names);
            all.1.splice(0..0, literals);
        }
        groups.push(all);
    }
    let mut acting = Vec::new();
    for (names, literals) in groups {
        let elsewhere = names.iter().any(|name| anywhere.contains(name) && !own.contains(name));
        let here = names.iter().any(|name| anywhere.contains(name) && own.contains(name));
        match (here, elsewhere) {
            (true, true) => return Err(Skip("a guard of two terms")),
            (false, true) => {}
            _ => acting.extend(literals.into_iter().cloned()),
        }
    }
    Ok(acting)
}

fn has_division(index: &IndexExpr) -> bool {
    match &index.kind {
        IndexKind::Binary(operator, a, b) => {
            matches!(operator, IndexOperator::Divide | IndexOperator::Remainder)
                || has_division(a)
                || has_division(b)
        }
        IndexKind::Negate(inner) | IndexKind::Group(inner) => has_division(inner),
        _ => false,
    }
}

fn of(comparison: ast::Comparison, order: std::cmp::Ordering) -> bool {
    match comparison {
        ast::Comparison::Less => order.is_lt(),
        ast::Comparison::LessEqual => order.is_le(),
        ast::Comparison::Greater => order.is_gt(),
        ast::Comparison::GreaterEqual => order.is_ge(),
        ast::Comparison::Equal => order.is_eq(),
        ast::Comparison::NotEqual => order.is_ne(),
    }
}

/// The tag of what holds.
fn one(kind: Kind) -> f64 {
    match kind {
        Kind::Tropical => 0.0,
        Kind::MaxMin => f64::INFINITY,
        _ => 1.0,
    }
}

fn is_concat(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call { name, .. } if name.text == "concat")
}

fn domain_of(domain: &DomainExpr, sets: &BTreeMap<&str, Vec<Thing>>) -> Out<Vec<Thing>> {
    let number = |index: &IndexExpr| match &index.kind {
        IndexKind::Integer(value) => Ok(*value),
        _ => Err(Skip("a computed domain")),
    };
    Ok(match &domain.kind {
        DomainKind::Size(size) => match &size.kind {
            IndexKind::Name(name) => sets.get(name.as_str()).cloned().ok_or(Skip("a computed domain"))?,
            _ => (0..number(size)?).map(Thing::Int).collect(),
        },
        DomainKind::Interval(from, to) => (number(from)?..=number(to)?).map(Thing::Int).collect(),
        DomainKind::Listed(constants) => constants
            .iter()
            .map(|constant| match constant {
                Constant::Integer(value, _) => Thing::Int(*value),
                Constant::Name(name) => Thing::Symbol(name.text.clone()),
                Constant::Text(text) => Thing::Symbol(text.value.clone()),
            })
            .collect(),
    })
}

fn function(name: &str, values: &[f64]) -> Out<f64> {
    let nan = values.iter().any(|value| value.is_nan());
    Ok(match (name, values) {
        ("max" | "min" | "relu" | "leaky" | "step" | "sign" | "sig", _) if nan => {
            return Err(Skip("what is no number"));
        }
        ("step", [x]) => f64::from(*x > 0.0),
        ("sig", [x]) => 1.0 / (1.0 + (-x).exp()),
        ("sig", [x, t]) if *t == 0.0 => f64::from(*x > 0.0),
        ("sig", [x, t]) => 1.0 / (1.0 + (-x / t).exp()),
        ("tanh", [x]) => x.tanh(),
        ("relu", [x]) => x.max(0.0),
        ("leaky", [x, a]) => {
            if *x > 0.0 {
                *x
            } else {
                a * x
            }
        }
        ("silu", [x]) => x / (1.0 + (-x).exp()),
        ("softplus", [x]) => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        ("exp", [x]) => x.exp(),
        ("log", [x]) => x.ln(),
        ("sqrt", [x]) => x.sqrt(),
        ("sin", [x]) => x.sin(),
        ("cos", [x]) => x.cos(),
        ("abs", [x]) => x.abs(),
        ("sign", [x]) => {
            if *x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        ("floor", [x]) => x.floor(),
        ("max", [x, y]) => x.max(*y),
        ("min", [x, y]) => x.min(*y),
        _ => return Err(Skip("another function")),
    })
}

/// The tensors that a statement reads.
fn reads(said: &Said<'_>) -> BTreeSet<String> {
    fn literal(of: &Literal, into: &mut BTreeSet<String>) {
        match &of.kind {
            LiteralKind::Positive(reference) | LiteralKind::Negative(reference) => {
                into.insert(reference.name.text.clone());
            }
            LiteralKind::Assign { .. } => {}
            LiteralKind::Compare { left, right, .. } => {
                expr(left, into);
                expr(right, into);
            }
        }
    }
    fn expr(of: &Expr, into: &mut BTreeSet<String>) {
        match &of.kind {
            ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| expr(term, into)),
            ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| expr(factor, into)),
            ExprKind::Negate(inner) => expr(inner, into),
            ExprKind::Power(base, exponent, _) => {
                expr(base, into);
                expr(exponent, into);
            }
            ExprKind::Reference(reference) | ExprKind::Not(reference) => {
                into.insert(reference.name.text.clone());
            }
            ExprKind::Number(_) | ExprKind::Index(_) | ExprKind::Text(_) => {}
            ExprKind::Call { arguments, guards, .. } => {
                arguments.iter().for_each(|argument| expr(argument, into));
                guards.iter().for_each(|guard| literal(guard, into));
            }
            ExprKind::Group { expr: inner, guards } => {
                expr(inner, into);
                guards.iter().for_each(|guard| literal(guard, into));
            }
        }
    }
    let mut into = BTreeSet::new();
    match &said.body {
        Body::Fact | Body::Array(_) => {}
        Body::Rule(body) => body.iter().for_each(|one| literal(one, &mut into)),
        Body::Equation(_, right, guards) => {
            expr(right, &mut into);
            guards.iter().for_each(|one| literal(one, &mut into));
        }
    }
    into
}

/// The references among literals.
fn positive(literals: &[Literal]) -> Vec<&Reference> {
    fn reference(literal: &Literal) -> Option<&Reference> {
        match &literal.kind {
            LiteralKind::Positive(reference) => Some(reference),
            _ => None,
        }
    }
    literals.iter().filter_map(reference).collect()
}

/// The references of a body without which it is absent; in arguments of elementwise functions of a square tensor they are read
/// as 0.
fn required<'a>(body: &'a Expr, square: bool, into: &mut Vec<&'a Reference>) {
    match &body.kind {
        ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| required(term, square, into)),
        ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| required(factor, square, into)),
        ExprKind::Negate(inner) => required(inner, square, into),
        ExprKind::Power(base, exponent, _) => {
            required(base, square, into);
            required(exponent, square, into);
        }
        ExprKind::Reference(reference) => into.push(reference),
        ExprKind::Group { expr, guards } => {
            required(expr, square, into);
            into.extend(positive(guards));
        }
        ExprKind::Call { name, axes, arguments, guards } => {
            let name = name.text.as_str();
            if axes.is_some() && EXPLICIT.contains(&name) {
                return;
            }
            into.extend(positive(guards));
            if !square || matches!(name, "softmax" | "lnorm") {
                for argument in arguments {
                    if let [(_, term)] = scopes::terms(argument).as_slice() {
                        required(term, square, into);
                    }
                }
            }
        }
        ExprKind::Number(_) | ExprKind::Not(_) | ExprKind::Index(_) | ExprKind::Text(_) => {}
    }
}

/// What a query is answered with.
#[derive(Debug)]
pub(super) enum Answered {
    Scalar(Option<f64>),
    /// The bindings of the free indices.
    Relation(BTreeMap<Vec<Thing>, f64>),
    /// Row-major.
    Tensor(Vec<f64>),
}

/// The indices of a literal in the order in which they first stand.
fn in_order(literal: &Literal, into: &mut Vec<String>) {
    fn index(of: &IndexExpr, into: &mut Vec<String>) {
        match &of.kind {
            IndexKind::Index(name) if !into.contains(name) => into.push(name.clone()),
            IndexKind::Negate(inner) | IndexKind::Group(inner) => index(inner, into),
            IndexKind::Binary(_, a, b) => {
                index(a, into);
                index(b, into);
            }
            _ => {}
        }
    }
    match &literal.kind {
        LiteralKind::Positive(reference) | LiteralKind::Negative(reference) => {
            for place in &reference.places {
                if let PlaceKind::Index(of) = &place.kind {
                    index(of, into);
                }
            }
        }
        LiteralKind::Compare { .. } | LiteralKind::Assign { .. } => {
            let mut names = Names::new();
            scopes::of_literal(literal, &mut names);
            into.extend(names.into_iter().filter(|name| !into.contains(name)).collect::<Vec<_>>());
        }
    }
}

fn names_of(index: &IndexExpr) -> Names {
    let mut names = Names::new();
    scopes::of_index(index, &mut names);
    names
}

/// The place of a reference that binds an index to the tuples there are.
fn binding<'a>(name: &str, must: &[&'a Reference]) -> Option<(&'a Reference, usize, &'a IndexExpr)> {
    let may = |reference: &&&Reference| {
        reference.brackets == Brackets::Round && !matches!(reference.name.text.as_str(), "Even" | "Odd")
    };
    must.iter().filter(may).find_map(|reference| {
        reference.places.iter().enumerate().find_map(|(nth, place)| {
            let PlaceKind::Index(index) = &place.kind else { return None };
            let names = names_of(index);
            (names.len() == 1 && names.contains(name) && !has_division(index)).then_some((*reference, nth, index))
        })
    })
}

/// What is summed by itself on a right side.
fn terms_of(sign: Sign, expr: &Expr) -> Vec<(bool, &Expr)> {
    match sign {
        Sign::Equal | Sign::Plus => scopes::terms(expr),
        _ => vec![(false, expr)],
    }
}

/// Gives an index a name that no text has.
fn renamed(index: &mut IndexExpr, local: &str) {
    match &mut index.kind {
        IndexKind::Index(name) if name == local => name.push('~'),
        IndexKind::Negate(inner) | IndexKind::Group(inner) => renamed(inner, local),
        IndexKind::Binary(_, a, b) => {
            renamed(a, local);
            renamed(b, local);
        }
        _ => {}
    }
}

/// Whether rounding alone may have made it something else than 0.
fn is_near_zero(value: f64) -> bool {
    value != 0.0 && value.abs() < 1e-11
}

/// The name of a tensor, with a mark for each time that it was redefined.
pub(super) fn versioned(tensor: &Tensor) -> String {
    tensor.name.clone() + &"~".repeat(tensor.version as usize)
}
