//! Rules that need no join: one atom's tuples summed or projected, and the product of two Boolean matrices.
//!
//! `n += tc(x, y)` counts the tuples of `tc`, which the relation knows; `out(x) += tc(x, y)` counts those of each row.
//! `t(x, z) <- s(x, y), s(y, z)` is one step of a search from each `x`. Enter at [`marginal`] and [`product`].

use super::chain::Chain;
use super::database::Database;
use super::join::Output;
use super::limits::{Failure, Limits};
use super::ring::{Ring, Times};
use super::rule::{Literal, Rule, Term};
use super::search::{Found, Search};

/// The tuples of a rule whose body is one atom of different variables, and whose head keeps one of them or none.
pub(super) fn marginal(database: &Database, rule: &Rule) -> Result<Option<Output>, Failure> {
    let [Literal::Atom(atom)] = rule.body.as_slice() else { return Ok(None) };
    let (ring, from) = (database.relation(rule.head).ring(), database.relation(atom.relation));
    let variable = |(at, term): (usize, &Term)| match term {
        Term::Variable(_) => !atom.terms[..at].contains(term),
        // In a condition `_` asks whether there is one.
        Term::Any => atom.factor || ring.idempotent(),
        Term::Constant(_) => false,
    };
    let place = match rule.head_terms.as_slice() {
        [] => None,
        [term @ Term::Variable(_)] => match atom.terms.iter().position(|other| other == term) {
            Some(place) => Some(place),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let plain = rule.weight.is_none() && rule.computed.is_empty() && ring.times == Times::Times;
    let counts = !(ring.counts() && atom.factor && from.ring().valued() && !from.ring().counts());
    if !plain || !counts || from.arity() < 2 || !atom.terms.iter().enumerate().all(variable) {
        return Ok(None);
    }
    let overflow = |key: u32| {
        let tuple = place.map(|_| key).into_iter().collect();
        Failure::Overflow { relation: rule.head, tuple }
    };
    let mut output = Output::default();
    if atom.factor && from.ring().valued() && ring.valued() {
        let convert = |value| ring.factor(Some(value), from.ring());
        let Some(totals) = from.totals(place, convert, ring) else { return Ok(None) };
        for (key, value) in totals {
            output.rows.extend(place.map(|_| key));
            output.values.push(value.ok_or_else(|| overflow(key))?);
        }
        output.len = output.values.len();
        return Ok(Some(output));
    }
    let Some(tally) = from.tally(place) else { return Ok(None) };
    for (key, count) in tally {
        output.rows.extend(place.map(|_| key));
        output.len += 1;
        if ring.valued() {
            // 1, or so many times 1.
            output.values.push(times(ring, count));
        }
    }
    Ok(Some(output))
}

fn times(ring: Ring, count: usize) -> super::ring::Value {
    match (ring.idempotent(), ring.counts()) {
        (true, _) => ring.unit(),
        (false, true) => super::ring::Value::count(count as i64),
        (false, false) => super::ring::Value::real(count as f64),
    }
}

/// The relation of a rule of a Boolean head whose body is a chain of two atoms.
pub(super) fn product(
    database: &mut Database,
    rule: &Rule,
    limits: &Limits,
) -> Result<Option<Found>, Failure> {
    let Some(Chain { head, factors, different }) = Chain::new(rule) else { return Ok(None) };
    let [left, right] = factors[..] else { return Ok(None) };
    if database.relation(head).ring().valued() {
        return Ok(None);
    }
    let [base, arcs] = [left, right].map(|factor| {
        let (from, to) = if factor.transposed { (1, 0) } else { (0, 1) };
        database.relation_mut(factor.relation).index(&[from], &[to])
    });
    let others = database.tuples() - database.relation(head).len() as u64;
    let search = Search {
        relation: head,
        ring: Ring::BOOLEAN,
        base: database.relation(left.relation).sorted(base),
        arcs: database.relation(right.relation).sorted(arcs),
        same_arcs: false,
        tuples: limits.tuples.saturating_sub(others),
        limits,
    };
    search.product(different)
}
