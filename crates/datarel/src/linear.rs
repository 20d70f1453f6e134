//! Linear recursion that carries a column unchanged: one search per value of that column.
//!
//! In `tc(x, z) <- tc(x, y), arc(y, z)` the tuples of one `x` depend on each other only. Each
//! value is searched by itself, with one accumulator that stays in the cache: no tuple is
//! looked up in what has been found. Where the result fills more than 1/64 of all pairs, whole
//! rows of bits are joined instead, one for each strong component of the graph that is walked
//! (Purdom 1970). Values (shortest paths and their like) are corrected in rounds, or, where nearly all pairs have arcs,
//! by Floyd's and Warshall's triple loop; sums are taken in the order of the arcs, which must have no cycle.
//!
//! Enter at [`Linear::recognise`] and [`Linear::close`]. The relation holds its base when the
//! search begins: what is given, and what its other rules derive. The odd case: values that are
//! not at rest after so many rounds as there are tuples may still saturate; then the general
//! method decides ([`Closed::Undecided`]).

use super::database::{Database, IndexId};
use super::limits::{Failure, Limits};
use super::plan::terms;
use super::ring::Ring;
use super::rule::{Atom, Literal, RelationId, Rule, Term};
use super::search::Search;

/// A recursion of this shape.
#[derive(Debug)]
pub(super) struct Linear {
    /// The relation.
    relation: RelationId,
    /// The place that is carried; `None` for a relation with one place, which has one search.
    carried: Option<usize>,
    /// The steps from the other place to itself: rules with the heads (from, to).
    steps: Vec<Rule>,
}

/// Whether a search came to an end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// The relation holds the fixpoint.
    Done,
    /// Values were not at rest, or constants are too large; the relation holds its base.
    Undecided,
}

impl Linear {
    /// The recursion of a relation, if all its recursive rules carry the same place. The steps
    /// have the head `step`.
    pub(super) fn recognise(
        database: &Database,
        relation: RelationId,
        rules: &[&Rule],
        step: RelationId,
    ) -> Option<Linear> {
        let stored = database.relation(relation);
        if let [rule] = rules
            && is_doubling(rule, relation, stored.ring())
        {
            // The base closed under itself.
            let step = Rule::new(
                step,
                rule.head_terms.clone(),
                [Atom::factor(relation, rule.head_terms.clone()).into()],
            );
            return Some(Linear { relation, carried: Some(0), steps: vec![step] });
        }
        let carried: &[Option<usize>] = match stored.arity() {
            1 => &[None],
            2 => &[Some(0), Some(1)],
            _ => return None,
        };
        carried.iter().find_map(|carried| {
            let steps = rules.iter().map(|rule| step_of(rule, relation, *carried, step, stored.ring()));
            let steps = steps.collect::<Option<Vec<Rule>>>()?;
            Some(Linear { relation, carried: *carried, steps })
        })
    }

    /// The rules of the steps, where they are not simply another relation: that relation with
    /// the places from and to.
    pub(super) fn steps(&self, database: &Database) -> Result<(RelationId, usize, usize), &[Rule]> {
        let [rule] = self.steps.as_slice() else { return Err(&self.steps) };
        let [Literal::Atom(atom)] = rule.body.as_slice() else { return Err(&self.steps) };
        let ring = database.relation(self.relation).ring();
        let other = database.relation(atom.relation).ring();
        // Counts are not the bits of reals: they are turned into them by a rule.
        let same = !ring.valued() || (atom.factor && other.valued() && other.counts() == ring.counts());
        // A constant would choose among the tuples.
        let all = atom.terms.iter().all(|term| term.as_variable().is_some());
        match (atom.terms.as_slice(), rule.head_terms.as_slice()) {
            ([a, b], [from, to])
                if same && all && rule.weight.is_none() && rule.computed.is_empty() && a != b =>
            {
                if a == from && b == to {
                    Ok((atom.relation, 0, 1))
                } else if a == to && b == from {
                    Ok((atom.relation, 1, 0))
                } else {
                    Err(&self.steps)
                }
            }
            _ => Err(&self.steps),
        }
    }

    /// Closes the relation under steps along `graph`, from its place `from` to its place `to`.
    pub(super) fn close(
        &self,
        database: &mut Database,
        (graph, from, to): (RelationId, usize, usize),
        limits: &Limits,
    ) -> Result<Closed, Failure> {
        let arcs = database.relation_mut(graph).index(&[from], &[to]);
        let base = match self.carried {
            Some(carried) => database.relation_mut(self.relation).index(&[carried], &[1 - carried]),
            None => database.relation_mut(self.relation).index(&[], &[0]),
        };
        let others = database.tuples() - database.relation(self.relation).len() as u64;
        let search = Search {
            relation: self.relation,
            ring: database.relation(self.relation).ring(),
            base: database.relation(self.relation).sorted(base),
            arcs: database.relation(graph).sorted(arcs),
            same_arcs: self.is_closure_of(database, graph, (from, to), (base, arcs)),
            tuples: limits.tuples.saturating_sub(others),
            limits,
        };
        let result = match (self.carried, search.ring.valued()) {
            (None, true) if !search.ring.idempotent() => search.single_sums()?,
            (Some(_), true) if !search.ring.idempotent() => search.pairs_sums()?,
            (None, false) => search.single()?,
            (None, true) => search.single_valued()?,
            (Some(_), false) => search.pairs()?,
            (Some(_), true) => search.pairs_valued()?,
        };
        match result {
            None => return Ok(Closed::Undecided),
            Some(found) => database.relation_mut(self.relation).rest_found(
                self.relation,
                found,
                self.carried == Some(1),
            )?,
        }
        Ok(Closed::Done)
    }

    /// Whether base and steps are the same arcs: then the relation is their transitive closure.
    fn is_closure_of(
        &self,
        database: &Database,
        graph: RelationId,
        (from, to): (usize, usize),
        (base, arcs): (IndexId, IndexId),
    ) -> bool {
        let (own, other) = (database.relation(self.relation), database.relation(graph));
        self.carried == Some(0)
            && (from, to) == (0, 1)
            && own.len() == other.len()
            && own.sorted(base).same_rows(other.sorted(arcs))
            && own.sorted(base).values() == other.sorted(arcs).values()
    }
}

/// The step of a rule, if the rule carries the place: the body without the relation itself, from
/// the relation's argument to the head's.
pub(super) fn step_of(
    rule: &Rule,
    relation: RelationId,
    carried: Option<usize>,
    step: RelationId,
    ring: Ring,
) -> Option<Rule> {
    let own = |literal: &&Literal| matches!(literal, Literal::Atom(atom) if atom.relation == relation);
    let mut recursive = rule.body.iter().filter(own);
    let (Some(Literal::Atom(atom)), None) = (recursive.next(), recursive.next()) else { return None };
    let body: Vec<Literal> = rule.body.iter().filter(|literal| !own(literal)).cloned().collect();
    let computed = || rule.computed.iter().flat_map(|computed| computed.arguments.iter().copied());
    let occurs = |term: Term| body.iter().flat_map(terms).chain(computed()).any(|other| other == term);
    if let Some(place) = carried {
        let variable = rule.head_terms[place];
        let moving = [rule.head_terms[1 - place], atom.terms[1 - place]];
        let unchanged = variable.as_variable().is_some() && atom.terms[place] == variable;
        if !unchanged || moving.contains(&variable) || occurs(variable) {
            return None;
        }
    }
    let place = carried.map_or(0, |carried| 1 - carried);
    let (from, to) = (atom.terms[place], rule.head_terms[place]);
    let in_atoms = body.iter().any(|literal| matches!(literal, Literal::Atom(a) if a.terms.contains(&from)));
    if from == Term::Any || (from.as_variable().is_some() && !in_atoms) {
        return None;
    }
    let mut step = Rule::new(step, [from, to], body);
    if ring.valued() {
        // Sums and the least of sums may be taken of all else first; with products of negative numbers the largest is
        // that of one factor alone.
        let factors = step.atoms().filter(|atom| atom.factor).count();
        let distributes = ring.times_distribute();
        let single = factors == 1 && rule.weight.is_none() && rule.computed.is_empty();
        if !atom.factor || !(distributes || (single && ring.idempotent())) {
            return None;
        }
        step.weight = rule.weight;
        step.computed.clone_from(&rule.computed);
    }
    Some(step)
}

/// Whether a rule joins a relation with itself: `p(x, z) <- p(x, y), p(y, z)`, where that is the closure of the base.
fn is_doubling(rule: &Rule, relation: RelationId, ring: Ring) -> bool {
    let [Literal::Atom(left), Literal::Atom(right)] = rule.body.as_slice() else { return false };
    let own = [left, right].iter().all(|atom| atom.relation == relation && (atom.factor || !ring.valued()));
    let plain = rule.weight.is_none() && rule.computed.is_empty() && rule.select.is_none();
    let meets = |left: &Atom, right: &Atom| match (&left.terms[..], &right.terms[..], &rule.head_terms[..]) {
        ([x, y], [other, z], [from, to]) => {
            let all = [x, y, z].iter().all(|term| term.as_variable().is_some());
            y == other && x == from && z == to && x != y && y != z && x != z && all
        }
        _ => false,
    };
    own && plain && ring.idempotent() && ring.times_distribute() && (meets(left, right) || meets(right, left))
}
