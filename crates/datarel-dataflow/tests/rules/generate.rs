//! Random programs, and what the engine of `datarel` says of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use datarel::rule::{Computed, Select};
use datarel::{
    Atom, Combine, Comparison, Const, Constants, Database, Failure, Limits, Literal, RelationId, Ring, Rule,
    Term, Times, Value,
};
use seeded::Stream;

/// The integers 0..UNIVERSE are the constants, and their own ids.
pub(crate) const UNIVERSE: u32 = 6;

/// Tuples with their values.
pub(crate) type Tuples = BTreeMap<Vec<Const>, Option<Value>>;

/// A program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    /// Arity and ring of each relation.
    pub(crate) relations: Vec<(usize, Ring)>,
    /// Given tuples.
    pub(crate) facts: Vec<Vec<(Vec<u32>, Value)>>,
    /// Rules.
    pub(crate) rules: Vec<Rule>,
}

impl Program {
    /// A database of it.
    pub(crate) fn database(&self) -> Database {
        let mut database = Database::new(Constants::integers(0, i64::from(UNIVERSE) - 1));
        for (at, ((arity, ring), facts)) in self.relations.iter().zip(&self.facts).enumerate() {
            let id = database.declare(format!("r{at}"), *arity, *ring);
            for (tuple, value) in facts {
                let values = if ring.valued() { vec![*value] } else { Vec::new() };
                database.insert(id, tuple, &values).unwrap();
            }
        }
        database
    }

    /// All relations.
    pub(crate) fn all(&self) -> Vec<RelationId> {
        (0..self.relations.len() as u32).map(RelationId).collect()
    }
}

/// The tuples of all relations of a database.
pub(crate) fn tuples(database: &Database, count: usize) -> Vec<Tuples> {
    let of = |at: usize| {
        let relation = database.relation(RelationId(at as u32));
        let (rows, arity) = (relation.rows(), relation.arity());
        let tuple =
            |row: usize| rows[row * arity..(row + 1) * arity].iter().map(|id| database.constants.value(*id));
        (0..relation.len()).map(|row| (tuple(row).collect(), relation.values().get(row).copied())).collect()
    };
    (0..count).map(of).collect()
}

/// What the engine says, with as few special methods as possible.
pub(crate) fn oracle(program: &Program) -> Result<Vec<Tuples>, Failure> {
    let mut database = program.database();
    datarel::evaluate(&mut database, &program.rules, &Limits { shapes: false, ..Limits::default() })?;
    Ok(tuples(&database, program.relations.len()))
}

/// Whether tuples are the same, and values but for the order of their sums.
pub(crate) fn agree(program: &Program, a: &[Tuples], b: &[Tuples]) -> bool {
    let close = |ring: Ring, a: &Value, b: &Value| match ring.combine {
        Combine::Count => a == b,
        _ => {
            let (a, b) = (a.as_real(), b.as_real());
            a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
    };
    let values = |ring: Ring, a: &Option<Value>, b: &Option<Value>| match (a, b) {
        (Some(a), Some(b)) => close(ring, a, b),
        _ => a == b,
    };
    a.len() == b.len()
        && a.iter().zip(b).zip(&program.relations).all(|((a, b), (_, ring))| {
            a.len() == b.len() && a.iter().zip(b).all(|((s, v), (t, w))| s == t && values(*ring, v, w))
        })
}

/// Whether a value is no number.
pub(crate) fn has_nan(program: &Program, found: &[Tuples]) -> bool {
    found.iter().zip(&program.relations).any(|(tuples, (_, ring))| {
        !ring.counts() && tuples.values().flatten().any(|value| value.as_real().is_nan())
    })
}

pub(crate) fn below(random: &mut Stream, n: usize) -> usize {
    random.below(n as u64) as usize
}

/// Products with negative numbers do not keep the order: they need programs without `Times`.
/// Minima of maxima in one recursion have no least fixpoint: a program has either.
fn ring(random: &mut Stream, recursive: bool, (negative, least): (bool, bool)) -> Ring {
    let best = if least { Combine::Min } else { Combine::Max };
    let times = [Times::Plus, Times::Min, Times::Times][below(random, if negative { 2 } else { 3 })];
    match below(random, 10) {
        0 | 1 if least => Ring::MIN_PLUS,
        0 | 1 => Ring::MAX_MIN,
        2..=4 => Ring { combine: best, times },
        5 if !recursive => Ring { combine: Combine::Sum, times },
        6 if !recursive => Ring::COUNT,
        _ => Ring::BOOLEAN,
    }
}

pub(crate) fn value(random: &mut Stream, ring: Ring, negative: bool) -> Value {
    let number = random.below(6) as i64 - i64::from(negative && random.below(8) == 0);
    if ring.counts() { Value::count(number) } else { Value::real(number as f64) }
}

pub(crate) fn tuple(random: &mut Stream, arity: usize) -> Vec<u32> {
    (0..arity).map(|_| random.below(u64::from(UNIVERSE)) as u32).collect()
}

fn add(random: &mut Stream, program: &mut Program, most: usize, recursive: bool, signs: (bool, bool)) {
    let ring = ring(random, recursive, signs);
    let arity = [0, 1, 1, 2, 2, 2, 2, 3, 3, 4][below(random, 10)];
    let count = below(random, most + 1);
    let fact = |random: &mut Stream| {
        let worth = if ring.valued() { value(random, ring, signs.0) } else { Value::default() };
        (tuple(random, arity), worth)
    };
    let facts = (0..count).map(|_| fact(random)).collect();
    program.relations.push((arity, ring));
    program.facts.push(facts);
}

/// A random program: recursion, negation by strata, comparisons, constants, repeated variables, empty relations, facts of
/// derived relations, sums where they may be.
pub(crate) fn program(random: &mut Stream) -> Program {
    let signs = (random.below(3) == 0, random.below(3) > 0);
    let mut program = Program::default();
    for _ in 0..3 {
        add(random, &mut program, 9, false, signs);
    }
    for _ in 0..1 + random.below(3) {
        let recursive = random.below(4) > 0;
        let lower = program.relations.len();
        for _ in 0..1 + random.below(2) {
            let most = if random.below(4) == 0 { 2 } else { 0 };
            add(random, &mut program, most, recursive, signs);
        }
        let all = program.relations.len();
        for head in lower..all {
            for at in 0..1 + random.below(3) {
                // One rule at least begins with what is finished.
                let visible = if at == 0 || !recursive { lower } else { all };
                let rule = rule(random, &program, head, visible, lower);
                program.rules.push(rule);
            }
        }
    }
    program
}

fn body_atom(random: &mut Stream, program: &Program, head: usize, visible: usize, variables: u64) -> Literal {
    let relation = below(random, visible);
    let term = |random: &mut Stream| match random.below(8) {
        0 => Term::Any,
        1 => Term::Constant(random.below(u64::from(UNIVERSE)) as u32),
        _ => Term::variable(random.below(variables) as u32),
    };
    let terms: Vec<Term> = (0..program.relations[relation].0).map(|_| term(random)).collect();
    let (to, from) = (program.relations[head].1, program.relations[relation].1);
    // A real factor does not fit a count.
    let fits = !(to.counts() && from.valued() && !from.counts());
    let factor = fits && (!to.valued() || random.below(4) > 0);
    Literal::Atom(Atom { relation: RelationId(relation as u32), terms, factor })
}

fn rule(random: &mut Stream, program: &Program, head: usize, visible: usize, lower: usize) -> Rule {
    let variables = 1 + random.below(3);
    let (arity, ring) = program.relations[head];
    // Now and then no atom at all: a fact by a rule.
    let atoms = if random.below(12) == 0 { 0 } else { 1 + random.below(3) };
    let mut body: Vec<Literal> =
        (0..atoms).map(|_| body_atom(random, program, head, visible, variables)).collect();
    let mut bound: Vec<Term> = Vec::new();
    for literal in &body {
        if let Literal::Atom(atom) = literal {
            bound.extend(atom.terms.iter().filter(|term| term.as_variable().is_some()));
        }
    }
    if random.below(5) == 0
        && let Some(from) = bound.first().copied()
    {
        let to = Term::variable(variables as u32);
        let by = random.below(5) as i64 - 2;
        body.push(if random.below(2) == 0 {
            let (to, from) = if random.below(2) == 0 { (to, from) } else { (from, to) };
            Literal::Shift { to, from, by }
        } else {
            let function = move |constants: &[Const]| {
                let sum: i64 = constants.iter().filter_map(|constant| constant.int()).sum();
                Some(Const::Int(sum * 2 + by))
            };
            let arguments = vec![from, *bound.last().unwrap()];
            Literal::Compute { result: to, arguments, function: Arc::new(function) }
        });
        // Mostly within the constants that there are; sometimes new ones are made.
        let most = UNIVERSE + if random.below(3) == 0 { 3 } else { 0 };
        let limit = move |constants: &[Const]| {
            constants
                .iter()
                .all(|constant| constant.int().is_some_and(|int| (-2..i64::from(most)).contains(&int)))
        };
        body.push(Literal::Test { arguments: vec![to], test: Arc::new(limit) });
        bound.push(to);
    }
    if random.below(8) == 0 {
        let new = Term::variable(variables as u32 + 1);
        let other = bound.last().copied().unwrap_or(Term::Constant(2));
        body.push(Literal::Compare(Comparison::Equal, new, other));
        bound.push(new);
    }
    let some = |random: &mut Stream, any: bool| match (random.below(6), bound.len()) {
        (0, _) if any => Term::Any,
        (1, _) | (_, 0) => Term::Constant(random.below(u64::from(UNIVERSE)) as u32),
        (_, n) => bound[below(random, n)],
    };
    if random.below(3) == 0 {
        let relation = below(random, lower);
        let terms: Vec<Term> = (0..program.relations[relation].0).map(|_| some(random, true)).collect();
        body.push(Literal::Not(Atom::new(RelationId(relation as u32), terms)));
    }
    if random.below(4) == 0 {
        let signs = [Comparison::Less, Comparison::NotEqual, Comparison::Equal, Comparison::GreaterEqual];
        body.push(Literal::Compare(signs[below(random, 4)], some(random, false), some(random, false)));
    }
    if random.below(8) == 0 {
        let test = |constants: &[Const]| constants.iter().all(|constant| constant.int() != Some(2));
        body.push(Literal::Test { arguments: vec![some(random, false)], test: Arc::new(test) });
    }
    let terms: Vec<Term> = (0..arity).map(|_| some(random, false)).collect();
    let measured = some(random, false);
    let mut rule = Rule::new(RelationId(head as u32), terms, body);
    if ring.valued() && random.below(4) == 0 {
        rule.weight = Some(value(random, ring, false));
    }
    if ring.valued() && random.below(6) == 0 {
        let counts = ring.counts();
        let measure = move |constants: &[Const]| {
            let number = constants.first()?.int()?.clamp(0, 6);
            Some(if counts { Value::count(number) } else { Value::real(number as f64) })
        };
        rule.computed.push(Computed { arguments: vec![measured], measure: Arc::new(measure) });
    }
    if !ring.valued() && random.below(10) == 0 {
        for literal in &mut rule.body {
            if let Literal::Atom(atom) = literal {
                atom.factor = random.below(2) == 0;
            }
        }
        // Not where a value of a recursion would be looked at: that is no closure.
        let recursive = rule.atoms().any(|atom| atom.relation.0 as usize >= lower);
        let test = |_: &[Const], value: f64| value <= 4.0;
        rule.select = (!recursive).then(|| Select { times: Times::Plus, test: Arc::new(test) });
    }
    rule
}
