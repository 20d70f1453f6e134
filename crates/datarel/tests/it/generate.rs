//! Random programs.

use std::sync::Arc;

use datarel::Comparison;
use datarel::Const;
use datarel::{Atom, Combine, Literal, RelationId, Ring, Rule, Term, Times, Value};
use seeded::Stream;

use crate::naive::{Program, UNIVERSE};

fn below(random: &mut Stream, n: usize) -> usize {
    random.below(n as u64) as usize
}

/// Products with negative numbers do not keep the order: they need programs without `Times`.
/// Minima of maxima in one recursion have no least fixpoint: a program has either.
fn ring(random: &mut Stream, recursive: bool, (negative, least): (bool, bool)) -> Ring {
    let best = if least { Combine::Min } else { Combine::Max };
    let times = [Times::Plus, Times::Min, Times::Times][below(random, if negative { 2 } else { 3 })];
    match below(random, 10) {
        0 | 1 if least => Ring::MIN_PLUS,
        0 | 1 => Ring { combine: Combine::Max, times: Times::Min },
        2..=4 => Ring { combine: best, times },
        5 if !recursive => Ring { combine: Combine::Sum, times },
        6 if !recursive => Ring::COUNT,
        _ => Ring::BOOLEAN,
    }
}

fn value(random: &mut Stream, ring: Ring, negative: bool) -> Value {
    let number = random.below(6) as i64 - i64::from(negative && random.below(8) == 0);
    if ring.counts() { Value::count(number) } else { Value::real(number as f64) }
}

fn facts(
    random: &mut Stream,
    arity: usize,
    (ring, negative): (Ring, bool),
    most: usize,
) -> Vec<(Vec<u32>, Value)> {
    let count = below(random, most + 1);
    let mut facts = Vec::new();
    for _ in 0..count {
        let tuple = (0..arity).map(|_| random.below(u64::from(UNIVERSE)) as u32).collect();
        let value = if ring.valued() { value(random, ring, negative) } else { Value::default() };
        facts.push((tuple, value));
    }
    facts
}

/// A random program; every third has only binary relations and chains, so that the special
/// shapes of recursion occur.
pub(super) fn program(random: &mut Stream) -> Program {
    let chains = random.below(3) == 0;
    let negative = random.below(3) == 0;
    let least = random.below(3) > 0;
    let mut program = Program::default();
    let add = |random: &mut Stream, program: &mut Program, recursive, most| {
        let boolean = chains && random.below(3) > 0;
        let ring = if boolean { Ring::BOOLEAN } else { ring(random, recursive, (negative, least)) };
        let arity = if chains { 2 } else { [0, 1, 1, 2, 2, 2, 3][below(random, 7)] };
        let facts = facts(random, arity, (ring, negative), most);
        program.relations.push((arity, ring));
        program.facts.push(facts);
    };
    for _ in 0..3 {
        add(random, &mut program, false, 9);
    }
    for _ in 0..1 + random.below(3) {
        let recursive = random.below(4) > 0;
        let lower = program.relations.len();
        for _ in 0..1 + random.below(2) {
            let some = if random.below(4) == 0 { 2 } else { 0 };
            add(random, &mut program, recursive, some);
        }
        let all = program.relations.len();
        let visible = if recursive { all } else { lower };
        let mut level = Vec::new();
        for head in lower..all {
            for at in 0..1 + random.below(3) {
                // One rule at least begins with what is finished.
                let visible = if at == 0 { lower } else { visible };
                let rule = match chains {
                    true => chain(random, &program, head, visible),
                    false => rule(random, &program, head, visible, lower),
                };
                level.push(rule);
            }
        }
        program.levels.push(level);
    }
    program
}

/// A real factor does not fit a count.
fn fits(program: &Program, head: usize, relation: usize) -> bool {
    let (to, from) = (program.relations[head].1, program.relations[relation].1);
    !(to.counts() && from.valued() && !from.counts())
}

fn chain(random: &mut Stream, program: &Program, head: usize, visible: usize) -> Rule {
    let length = [1, 2, 2, 2, 3][below(random, 5)];
    let mut body = Vec::new();
    for at in 0..length {
        let (a, b) = (Term::variable(at), Term::variable(at + 1));
        let relation = below(random, visible);
        let terms = if random.below(4) == 0 { [b, a] } else { [a, b] };
        let factor = fits(program, head, relation);
        body.push(Literal::Atom(Atom {
            relation: RelationId(relation as u32),
            terms: terms.to_vec(),
            factor,
        }));
    }
    let ends = (Term::variable(0), Term::variable(length));
    if random.below(6) == 0 {
        body.push(Literal::Compare(Comparison::NotEqual, ends.0, ends.1));
    }
    let terms = if random.below(5) == 0 { [ends.1, ends.0] } else { [ends.0, ends.1] };
    let mut rule = Rule::new(RelationId(head as u32), terms, body);
    let ring = program.relations[head].1;
    if ring.valued() && random.below(5) == 0 {
        rule.weight = Some(value(random, ring, false));
    }
    rule
}

fn rule(random: &mut Stream, program: &Program, head: usize, visible: usize, lower: usize) -> Rule {
    let variables = 1 + random.below(3) as u32;
    let (arity, ring) = program.relations[head];
    let mut body = Vec::new();
    for _ in 0..1 + random.below(3) {
        let relation = below(random, visible);
        let mut terms = Vec::new();
        for _ in 0..program.relations[relation].0 {
            terms.push(match random.below(8) {
                0 => Term::Any,
                1 => Term::Constant(random.below(u64::from(UNIVERSE)) as u32),
                _ => Term::variable(random.below(u64::from(variables)) as u32),
            });
        }
        let factor = !ring.valued() || random.below(4) > 0;
        let factor = factor && fits(program, head, relation);
        let relation = RelationId(relation as u32);
        body.push(Literal::Atom(Atom { relation, terms, factor }));
    }
    let mut bound: Vec<Term> = Vec::new();
    for literal in &body {
        if let Literal::Atom(atom) = literal {
            bound.extend(atom.terms.iter().filter(|term| term.as_variable().is_some()));
        }
    }
    if random.below(5) == 0
        && let Some(from) = bound.first().copied()
    {
        let to = Term::variable(variables);
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
        body.push(Literal::Compare(Comparison::Less, to, Term::Constant(UNIVERSE - 1)));
        body.push(Literal::Compare(Comparison::GreaterEqual, to, Term::Constant(0)));
        bound.push(to);
    }
    let some = |random: &mut Stream, any: bool| match (random.below(6), bound.len()) {
        (0, _) if any => Term::Any,
        (1, _) | (_, 0) => Term::Constant(random.below(u64::from(UNIVERSE)) as u32),
        (_, n) => bound[below(random, n)],
    };
    if random.below(4) == 0 {
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
    let mut rule = Rule::new(RelationId(head as u32), terms, body);
    if ring.valued() && random.below(4) == 0 {
        rule.weight = Some(value(random, ring, false));
    }
    rule
}
