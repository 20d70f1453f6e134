//! Relations over small integers: storage, joins and least fixpoints.
//!
//! It knows nothing of the language: constants are `u32` (see [`Constants`]), rules are the small
//! form of [`rule`]. Enter at [`Database`] and [`evaluate`]:
//!
//! ```
//! use tensor_logic::relational::{evaluate, Atom, Constants, Database, Limits, Ring, Rule, Term};
//!
//! let mut database = Database::new(Constants::integers(0, 9));
//! let arc = database.declare("arc", 2, Ring::BOOLEAN);
//! let path = database.declare("path", 2, Ring::BOOLEAN);
//! database.insert(arc, &[0, 1, 1, 2, 2, 3], &[])?;
//! let [x, y, z] = [0, 1, 2].map(Term::variable);
//! let rules = [
//!     Rule::new(path, [x, y], [Atom::new(arc, [x, y]).into()]),
//!     Rule::new(path, [x, z], [Atom::new(path, [x, y]).into(), Atom::new(arc, [y, z]).into()]),
//! ];
//! evaluate(&mut database, &rules, &Limits::default())?;
//! assert_eq!(database.relation(path).len(), 6);
//! # Ok::<(), tensor_logic::relational::Failure>(())
//! ```

mod bits;
mod chain;
mod component;
mod constants;
mod database;
mod derive;
mod fixpoint;
mod join;
mod limits;
mod linear;
mod magic;
mod matrix;
mod plan;
mod project;
mod ring;
pub mod rule;
mod search;
mod sorted;
mod step;
mod strata;
mod table;

pub use constants::Constants;
pub use database::{Database, Relation};
pub use fixpoint::{Counters, evaluate};
pub use limits::{Failure, Limits};
pub use magic::{Demand, magic};
pub use ring::{Combine, Ring, Times, Value};
pub use rule::{Atom, Literal, RelationId, Rule, Term, Variable};
