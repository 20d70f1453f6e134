//! The core form as program text: every sum written out.
//!
//! Enter at [`explicit`] for one statement beside the rest of its program (what `tl explain`
//! prints), at [`equation`] for one equation, and at [`program`] for a whole program.
//!
//! The text leaves nothing to the rules of scope: every summed index is bound by `sum[j](…)`,
//! `max[j](…)` and so on, axes are named, and guards stand where they act. A sum over nothing
//! is 0 where it is written out and absent where the language supplies it (N3); where that
//! makes a difference, the text says by a guard when there is something to sum.
//!
//! | file | prints |
//! |---|---|
//! | `piece` | numbers, and text that knows how tightly it binds |
//! | `names` | the names of indices, fresh ones where two would meet |
//! | `index` | index functions and constants |
//! | `alone` | which indices stand in a place as they are |
//! | `value` | values |
//! | `scope` | scopes and guards |
//! | `presence` | when a value is present |
//! | `statement` | left sides, signs, equations and rules |
//! | `whole` | declarations, data and programs |

mod alone;
mod index;
mod names;
mod piece;
mod presence;
mod scope;
mod statement;
mod value;
mod whole;

pub use piece::number;
pub use statement::{equation, explicit};
pub use whole::{program, tensor_names, ways};
