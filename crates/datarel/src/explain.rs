//! Evaluations that say what they do, and what one would do.
//!
//! Enter at [`evaluate_profiled`] and, where nothing is to be evaluated, at [`explain`].

use super::component::Component;
use super::database::Database;
use super::fixpoint::{self, Counters, check};
use super::limits::{Failure, Limits};
use super::linear::Linear;
use super::matrix::Matrices;
use super::plan::plan;
use super::profile::{Method, Profile, Recorder};
use super::rule::{RelationId, Rule};
use super::strata::{Stratum, strata};

/// [`evaluate`](super::evaluate), which writes down what it does. The profile grows: several evaluations may share one.
///
/// # Errors
/// Those of [`evaluate`](super::evaluate). The profile then holds what was done before, the stratum that failed last.
pub fn evaluate_profiled(
    database: &mut Database,
    rules: &[Rule],
    limits: &Limits,
    profile: &mut Profile,
) -> Result<Counters, Failure> {
    let mut recorder = Recorder::of(profile);
    let done = fixpoint::evaluate_noted(database, rules, limits, &mut recorder);
    recorder.end(database);
    done
}

/// What [`evaluate`](super::evaluate) would do, as far as that can be told before it: methods and orders of joins, where
/// each relation that rules define is taken to hold about as many tuples as its rules' joins have rows. Nothing is
/// derived; relations may get further orders of their columns.
///
/// # Errors
/// Those of [`evaluate`](super::evaluate) that need no evaluation.
pub fn explain(database: &mut Database, rules: &[Rule]) -> Result<Profile, Failure> {
    check(database, rules)?;
    let mut profile = Profile::default();
    let own = database.relations();
    for stratum in strata(database.relations(), rules).iter().filter(|stratum| !stratum.rules.is_empty()) {
        let mut recorder = Recorder::of(&mut profile);
        recorder.begin(stratum);
        recorder.method(method(database, rules, stratum));
        let rows = explained(database, rules, stratum, &mut recorder)?;
        database.truncate(own);
        for relation in &stratum.relations {
            let known = database.relation(*relation).len() as f64;
            let more: f64 = rows.iter().filter(|(head, _)| head == relation).map(|(_, rows)| rows).sum();
            let constants = (database.constants.len() as f64).max(1.0);
            let most = constants.powi(database.relation(*relation).arity() as i32);
            database.relation_mut(*relation).expect((known + more).min(most));
        }
        if let Some(last) = profile.strata.last_mut() {
            let of = |relation: &RelationId| database.relation(*relation).expected();
            last.tuples = last.relations.iter().map(of).sum::<f64>().round() as u64;
        }
    }
    for relation in (0..own).map(|at| RelationId(at as u32)) {
        database.relation_mut(relation).expect_nothing();
    }
    Ok(profile)
}

/// The method of a stratum, by the shape of its rules.
fn method(database: &mut Database, rules: &[Rule], stratum: &Stratum) -> Method {
    if !stratum.recursive {
        return Method::Once;
    }
    let own = |rule: &&Rule| rule.atoms().any(|atom| stratum.relations.contains(&atom.relation));
    let recursive: Vec<&Rule> = stratum.rules.iter().map(|rule| &rules[*rule]).filter(own).collect();
    let step = RelationId(database.relations() as u32);
    let linear = match stratum.relations[..] {
        [relation] => Linear::recognise(database, relation, &recursive, step).is_some(),
        _ => false,
    };
    match (linear, Matrices::recognise(database, &stratum.relations, &recursive)) {
        (true, _) => Method::Search,
        (false, Some(_)) => Method::Matrices,
        (false, None) => Method::Rounds,
    }
}

/// Writes down the orders of a stratum's rules; about how many rows each has, if it is joined once.
fn explained(
    database: &mut Database,
    rules: &[Rule],
    stratum: &Stratum,
    recorder: &mut Recorder<'_>,
) -> Result<Vec<(RelationId, f64)>, Failure> {
    let mut rows = Vec::new();
    let constants = std::mem::take(&mut database.constants);
    for number in &stratum.rules {
        let rule = &rules[*number];
        let recursive = |relation: RelationId| stratum.recursive && stratum.relations.contains(&relation);
        let deltas: Vec<usize> =
            rule.atoms().enumerate().filter(|(_, a)| recursive(a.relation)).map(|(at, _)| at).collect();
        let versions: Vec<Option<usize>> =
            if deltas.is_empty() { vec![None] } else { deltas.into_iter().map(Some).collect() };
        for delta in versions {
            let mut component = Component::of(database, &stratum.relations, stratum.recursive);
            let planned = plan(database, &mut component, &constants, rule, *number, delta);
            let planned = match planned {
                Ok(planned) => planned,
                Err(failure) => {
                    database.constants = constants;
                    return Err(failure);
                }
            };
            recorder.planned(*number, delta, &planned, database);
            // What a recursion adds is not known; what it begins with is.
            let last = recorder.stratum().and_then(|stratum| stratum.rules.last());
            if let (None, Some(last)) = (delta, last) {
                rows.push((rule.head, last.order.iter().map(|join| join.estimate).product()));
            }
        }
    }
    database.constants = constants;
    Ok(rows)
}
