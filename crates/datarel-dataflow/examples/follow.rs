//! Where one can go while roads are opened and closed: the answers are kept, and only what changes is told.
use datarel::{Atom, Const, Constants, Database, Ring, Rule, Term};
use datarel_dataflow::{Maintained, Options, Refusal, Update};

fn main() -> Result<(), Refusal> {
    let mut database = Database::new(Constants::integers(0, 9));
    let arc = database.declare("arc", 2, Ring::BOOLEAN);
    let path = database.declare("path", 2, Ring::BOOLEAN);
    database.insert(arc, &[0, 1, 1, 2], &[])?;
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let rules = [
        Rule::new(path, [x, y], [Atom::new(arc, [x, y]).into()]),
        Rule::new(path, [x, z], [Atom::new(path, [x, y]).into(), Atom::new(arc, [y, z]).into()]),
    ];
    let options = Options { workers: 2, ..Options::default() };
    let (mut roads, first) = Maintained::start(&database, &rules, &[path], &options)?;
    assert_eq!(first.len(), 3);
    let road =
        |a, b, comes| Update { relation: arc, tuple: vec![Const::Int(a), Const::Int(b)], value: None, comes };
    // Beyond 2 there is a town that no fact knew.
    let (opened, _) = roads.apply(&[road(2, 77, true)])?;
    assert!(opened.len() == 3 && opened.iter().all(|change| change.came));
    let (closed, _) = roads.apply(&[road(0, 1, false)])?;
    assert!(closed.len() == 3 && closed.iter().all(|change| !change.came));
    Ok(())
}
