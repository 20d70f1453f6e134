//! Relations over interned constants: storage, joins and least fixpoints of rules, in memory.
//!
//! A relation is a set of tuples of `u32` codes (see [`Constants`]), held in sorted columns or, where both places are
//! small and well filled, in rows of bits; its tuples may have values in a [`Ring`] (counts, reals, the least, the
//! greatest). Rules are the small form of [`rule`]: atoms, negated atoms, comparisons, sums. [`evaluate`] brings them to
//! their least fixpoint, semi-naive, with joins that never build more than the fractional cover of a cyclic body allows,
//! closures by rows of bits, and limits on memory, rounds and time. [`magic`] rewrites rules so that only what a question
//! needs is derived.
//!
//! Enter at [`Database`] and [`evaluate`]:
//!
//! ```
//! use datarel::{evaluate, Atom, Constants, Database, Limits, Ring, Rule, Term};
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
//! # Ok::<(), datarel::Failure>(())
//! ```

mod bits;
mod chain;
mod component;
mod constant;
mod constants;
mod database;
mod derive;
mod explain;
mod fixpoint;
mod index;
mod join;
mod limits;
mod linear;
mod magic;
mod matrix;
mod pieces;
mod plan;
mod product;
mod profile;
mod project;
mod ring;
pub mod rule;
mod search;
mod semiring;
mod sorted;
mod step;
mod strata;
mod table;
mod tagged;
mod valued;

pub use constant::{Comparison, Const, SymbolId};
pub use constants::Constants;
pub use database::{Database, Relation};
pub use explain::{evaluate_profiled, explain};
pub use fixpoint::{Counters, evaluate};
pub use index::{Index, NONE, by_group};
pub use limits::{Failure, Limits};
pub use magic::{Demand, magic};
pub use profile::{Access, JoinProfile, Method, Profile, RuleProfile, StratumProfile};
pub use ring::{Combine, Ring, Times, Value};
pub use rule::{Atom, Literal, RelationId, Rule, Term, Variable};
pub use semiring::{AddMult, Fact, Semiring};
pub use sorted::sorting;
pub use strata::{Stratum, strata};
pub use tagged::{Tagged, evaluate_tagged};
