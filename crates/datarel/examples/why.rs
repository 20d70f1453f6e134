//! Why one gets there: which arcs each way needs, by a semiring of one's own.
use std::collections::BTreeSet;

use datarel::{
    Atom, Constants, Database, Fact, Failure, Limits, Ring, Rule, Semiring, Term, Value, evaluate_tagged,
};

/// Sets of arcs, one for each way.
struct Ways;
type Sets = BTreeSet<BTreeSet<usize>>;

#[rustfmt::skip]
impl Semiring for Ways {
    type Tag = Sets;
    fn zero(&self) -> Sets { Sets::new() }
    fn one(&self) -> Sets { Sets::from([BTreeSet::new()]) }
    fn plus(&self, a: &Sets, b: &Sets) -> Option<Sets> { Some(a | b) }
    fn times(&self, a: &Sets, b: &Sets) -> Option<Sets> { Some(a.iter().flat_map(|a| b.iter().map(move |b| a | b)).collect()) }
    fn idempotent(&self) -> bool { true }
    fn number(&self, _: Value) -> Option<Sets> { Some(self.one()) }
    fn fact(&self, fact: &Fact<'_>) -> Option<Sets> { Some(Sets::from([BTreeSet::from([fact.number])])) }
    fn answer(&self, ways: &Sets) -> Option<f64> { Some(ways.len() as f64) }
}

fn main() -> Result<(), Failure> {
    let mut database = Database::new(Constants::integers(0, 9));
    let [arc, path] = ["arc", "path"].map(|name| database.declare(name, 2, Ring::BOOLEAN));
    database.insert(arc, &[0, 1, 0, 2, 1, 2], &[])?;
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let rules = [
        Rule::new(path, [x, y], [Atom::factor(arc, [x, y]).into()]),
        Rule::new(path, [x, z], [Atom::factor(path, [x, y]).into(), Atom::factor(arc, [y, z]).into()]),
    ];
    let found = evaluate_tagged(&mut database, &rules, &Ways, &Limits::default())?;
    // From 0 to 2 by arc number 1, or by 0 and 2.
    assert_eq!(found.tag(path, &[0, 2]), Some(&Sets::from([[1].into(), [0, 2].into()])));
    Ok(())
}
