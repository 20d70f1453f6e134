//! Programs whose queries are rules over relations, as dataflows: by several workers and processes ([`Dataflow`]), and with
//! answers that are maintained while facts come and go ([`Watch`]).
//!
//! What is no rule over relations is refused as `not-yet`, with the construct and its place. `updates` reads `+Edge(a, b)`,
//! `shown` writes what has changed.

mod engine;
mod shown;
mod updates;
mod watch;

pub use datarel_dataflow::{Cluster, Refusal as Broken, Update, hosts};
pub use engine::{Dataflow, Trouble};
pub use watch::{Batch, Changed, Read, Watch};
