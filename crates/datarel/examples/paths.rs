//! Where one can go, and how many nodes that are, from three lines of rules.
use datarel::{Atom, Constants, Database, Failure, Limits, Ring, Rule, Term, evaluate};

fn main() -> Result<(), Failure> {
    let mut database = Database::new(Constants::integers(0, 9));
    let arc = database.declare("arc", 2, Ring::BOOLEAN);
    let path = database.declare("path", 2, Ring::BOOLEAN);
    database.insert(arc, &[0, 1, 1, 2, 2, 0, 3, 4], &[])?;
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let rules = [
        Rule::new(path, [x, y], [Atom::new(arc, [x, y]).into()]),
        Rule::new(path, [x, z], [Atom::new(path, [x, y]).into(), Atom::new(arc, [y, z]).into()]),
    ];
    evaluate(&mut database, &rules, &Limits::default())?;
    let path = database.relation(path);
    assert_eq!(path.len(), 10);
    assert!(path.contains(&[0, 0]) && !path.contains(&[4, 3]));
    Ok(())
}
