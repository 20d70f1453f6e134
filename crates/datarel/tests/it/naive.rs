//! The obvious evaluator: every assignment of constants to variables is tried, rounds recompute
//! everything from the last state.

use std::collections::BTreeMap;

use datarel::Comparison;
use datarel::Const;
use datarel::{Atom, Combine, Literal, RelationId, Ring, Rule, Term, Value, Variable};

/// The integers 0..UNIVERSE are the constants, and their own ids.
pub(super) const UNIVERSE: u32 = 6;

/// Tuples with their values.
pub(super) type Tuples = BTreeMap<Vec<u32>, Value>;

/// A program in levels: rules of a level may negate and sum what lower levels define.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    /// Arity and ring of each relation.
    pub(super) relations: Vec<(usize, Ring)>,
    /// Given tuples.
    pub(super) facts: Vec<Vec<(Vec<u32>, Value)>>,
    /// Rules by level.
    pub(super) levels: Vec<Vec<Rule>>,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Values do not come to rest.
    Divergence,
    /// A count overflows.
    Overflow,
    /// The engine refuses the program.
    Refused,
}

fn add(ring: Ring, tuples: &mut Tuples, tuple: Vec<u32>, value: Value) -> Result<(), Trouble> {
    let value = if ring.valued() { value } else { Value::default() };
    match tuples.get_mut(&tuple) {
        None => {
            tuples.insert(tuple, value);
        }
        Some(old) => *old = ring.plus(*old, value).ok_or(Trouble::Overflow)?,
    }
    Ok(())
}

/// All relations of a program.
pub(super) fn evaluate(program: &Program) -> Result<Vec<Tuples>, Trouble> {
    let mut state: Vec<Tuples> = vec![Tuples::new(); program.relations.len()];
    for (relation, facts) in program.facts.iter().enumerate() {
        for (tuple, value) in facts {
            add(program.relations[relation].1, &mut state[relation], tuple.clone(), *value)?;
        }
    }
    let given = state.clone();
    for level in &program.levels {
        for round in 0.. {
            let mut next = state.clone();
            for rule in level {
                next[rule.head.0 as usize] = given[rule.head.0 as usize].clone();
            }
            for rule in level {
                derive(program, &state, rule, &mut next)?;
            }
            let reached: usize = level.iter().map(|rule| next[rule.head.0 as usize].len()).sum();
            if round > reached + 1 {
                return Err(Trouble::Divergence);
            }
            if next == state {
                break;
            }
            state = next;
        }
    }
    Ok(state)
}

fn derive(program: &Program, state: &[Tuples], rule: &Rule, next: &mut [Tuples]) -> Result<(), Trouble> {
    let ring = program.relations[rule.head.0 as usize].1;
    let rule = &if ring.valued() { without_any(rule) } else { rule.clone() };
    let terms = rule.head_terms.iter().copied().chain(rule.body.iter().flat_map(terms));
    let used: Vec<u32> = terms.filter_map(Term::as_variable).map(|v| v.0).collect();
    let variables = used.iter().max().map_or(0, |last| last + 1);
    for number in 0..UNIVERSE.pow(variables) {
        let binding: Vec<u32> = (0..variables).map(|at| number / UNIVERSE.pow(at) % UNIVERSE).collect();
        if (0..variables).any(|at| binding[at as usize] > 0 && !used.contains(&at)) {
            continue;
        }
        let Some(mut value) = contribution(program, state, rule, ring, &binding)? else { continue };
        value = ring.times(value, rule.weight.unwrap_or(ring.one())).ok_or(Trouble::Overflow)?;
        let tuple = rule.head_terms.iter().map(|term| read(*term, &binding).unwrap()).collect();
        add(ring, &mut next[rule.head.0 as usize], tuple, value)?;
    }
    Ok(())
}

/// In factors `_` is a variable of its own.
fn without_any(rule: &Rule) -> Rule {
    let mut rule = rule.clone();
    let used = rule.body.iter().flat_map(terms).filter_map(Term::as_variable).map(|v| v.0 + 1).max();
    let mut fresh = used.unwrap_or(0);
    for literal in &mut rule.body {
        if let Literal::Atom(Atom { terms, factor: true, .. }) = literal {
            for term in terms.iter_mut().filter(|term| **term == Term::Any) {
                *term = Term::variable(fresh);
                fresh += 1;
            }
        }
    }
    rule
}

fn terms(literal: &Literal) -> Vec<Term> {
    match literal {
        Literal::Atom(atom) | Literal::Not(atom) => atom.terms.clone(),
        Literal::Compare(_, a, b) | Literal::Shift { to: a, from: b, .. } => vec![*a, *b],
        Literal::Compute { result, arguments, .. } => [vec![*result], arguments.clone()].concat(),
        Literal::Test { arguments, .. } => arguments.clone(),
    }
}

fn read(term: Term, binding: &[u32]) -> Option<u32> {
    match term {
        Term::Variable(Variable(number)) => Some(binding[number as usize]),
        Term::Constant(constant) => Some(constant),
        Term::Any => None,
    }
}

fn contribution(
    program: &Program,
    state: &[Tuples],
    rule: &Rule,
    ring: Ring,
    binding: &[u32],
) -> Result<Option<Value>, Trouble> {
    let mut value = ring.one();
    let integer = |term: &Term| i64::from(read(*term, binding).unwrap());
    for literal in &rule.body {
        let holds = match literal {
            Literal::Atom(atom) => {
                let found = matches(state, atom, binding);
                if atom.factor && ring.valued() && !found.is_empty() {
                    let from = program.relations[atom.relation.0 as usize].1;
                    let factor = convert(found[0], from, ring);
                    value = ring.times(value, factor).ok_or(Trouble::Overflow)?;
                }
                !found.is_empty()
            }
            Literal::Not(atom) => matches(state, atom, binding).is_empty(),
            Literal::Compare(sign, left, right) => {
                let (left, right) = (integer(left), integer(right));
                match sign {
                    Comparison::Less => left < right,
                    Comparison::LessEqual => left <= right,
                    Comparison::Greater => left > right,
                    Comparison::GreaterEqual => left >= right,
                    Comparison::Equal => left == right,
                    Comparison::NotEqual => left != right,
                }
            }
            Literal::Shift { to, from, by } => integer(to) == integer(from) + by,
            Literal::Compute { result, arguments, function } => {
                let arguments: Vec<Const> = arguments.iter().map(|term| Const::Int(integer(term))).collect();
                function(&arguments) == Some(Const::Int(integer(result)))
            }
            Literal::Test { arguments, test } => {
                let arguments: Vec<Const> = arguments.iter().map(|term| Const::Int(integer(term))).collect();
                test(&arguments)
            }
        };
        if !holds {
            return Ok(None);
        }
    }
    Ok(Some(value))
}

fn matches(state: &[Tuples], atom: &Atom, binding: &[u32]) -> Vec<Value> {
    let fits = |tuple: &[u32]| {
        let mut places = tuple.iter().zip(&atom.terms);
        places.all(|(constant, term)| read(*term, binding).is_none_or(|wanted| wanted == *constant))
    };
    let RelationId(relation) = atom.relation;
    state[relation as usize].iter().filter(|(tuple, _)| fits(tuple)).map(|(_, value)| *value).collect()
}

fn convert(value: Value, from: Ring, to: Ring) -> Value {
    match (from.combine, to.counts()) {
        (Combine::Exists, true) => Value::count(1),
        (Combine::Exists, false) => Value::real(1.0),
        (Combine::Count, false) => Value::real(value.as_count() as f64),
        _ => value,
    }
}
