//! What a tree means: every equation by going through all values of all its indices.

mod prepared;
mod ranges;
mod values;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use tensor_logic::ast::{
    self, Array, Brackets, Constant, DomainExpr, DomainKind, Expr, ExprKind, IndexExpr, IndexKind, Item,
    Literal, LiteralKind, Place, PlaceKind, Reference, RightSide, Sign, StatementKind,
};
use tensor_logic::program::{Kind, Program, Style, Tensor, TensorId};
use tensor_logic::value::{Const, Domain};

use super::scopes::{self, Names, Parts};
pub(super) use prepared::prepared;
use ranges::{binding, each_binds, positive, required};
use values::is_near_zero;

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
/// Where the fresh indices lie that stand for slices; those for wildcards lie anywhere.
pub(super) type Slices = BTreeMap<String, (Option<i64>, Option<i64>)>;

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
    slices: &'t Slices,
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
    pub(super) fn of(tree: &'t ast::Program, slices: &'t Slices, program: &Program) -> Out<Meaning<'t>> {
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
            said.head
                .places
                .iter()
                .enumerate()
                .filter_map(place)
                .map(move |(place, index)| (name.clone(), place, index))
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
                } if head.brackets == Brackets::None && guards.is_empty() => {
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
        names.sort_by_key(|name| {
            reached.get(name).map_or(0, |own| own.len() + usize::from(!own.contains(name)))
        });
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
        let mut signs = self.said.get(name).into_iter().flatten().filter_map(|said| match said.body {
            Body::Equation(sign, ..) if !matches!(sign, Sign::Equal | Sign::Plus) => Some(sign),
            _ => None,
        });
        let sign = signs.next_back().unwrap_or(Sign::Equal);
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
            if known.kind == Kind::Bool && known.round && is_near_zero(joined) {
                return Err(Skip("an element near 0"));
            }
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
                self.each(
                    &here,
                    open.into_iter().collect(),
                    (body, &must, &here.uses),
                    &mut Env::new(),
                    &mut |env| {
                        let mut tag = one(known.kind);
                        for literal in *body {
                            if !self.holds_one(&here, literal, env)? {
                                return Ok(());
                            }
                            if let LiteralKind::Positive(reference) = &literal.kind
                                && known.kind != Kind::Bool
                            {
                                let value = self.read(reference, env, false, &here)?.unwrap_or_default();
                                if self
                                    .known
                                    .get(&reference.name.text)
                                    .is_some_and(|own| own.kind == Kind::Bool)
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
                    },
                )?;
            }
            Body::Equation(_, expr, guards) if is_concat(expr) => {
                self.concatenated(&here, expr, guards, into)?;
            }
            Body::Equation(sign, expr, guards) => {
                if each_binds(expr, !known.round) {
                    return Err(Skip("terms that bind an index each"));
                }
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
        let here =
            Here { square: false, head, uses, together: &together, lefts: Names::new(), bound: Names::new() };
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
            return Ok(if free.is_empty() {
                Answered::Scalar(values.pop())
            } else {
                Answered::Tensor(values)
            });
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
                    // Of a whole array, or over symbols, the class says where its entries stand.
                    let whole = self.said.get(&head.name.text).is_some_and(|said| said.len() == 1);
                    let symbols = |own: &&Vec<Thing>| matches!(own.first(), Some(Thing::Symbol(_)));
                    let symbols = own.filter(|own| whole || symbols(own)).cloned();
                    let moved = own.is_some_and(|own| own.first() != Some(&Thing::Int(0)));
                    if domain.is_none() && symbols.is_none() && moved {
                        return Err(Skip("an array for a part"));
                    }
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
        if arguments.len() > 1 && stays.iter().any(|name| !self.declared.contains_key(name)) {
            return Err(Skip("a row of several arguments beside an index that is not declared"));
        }
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

/// What is summed by itself on a right side.
fn terms_of(sign: Sign, expr: &Expr) -> Vec<(bool, &Expr)> {
    match sign {
        Sign::Equal | Sign::Plus => scopes::terms(expr),
        _ => vec![(false, expr)],
    }
}

/// The name of a tensor, with a mark for each time that it was redefined.
pub(super) fn versioned(tensor: &Tensor) -> String {
    tensor.name.clone() + &"~".repeat(tensor.version as usize)
}
