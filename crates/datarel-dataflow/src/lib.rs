//! Rules of [`datarel`] as a differential dataflow on timely: by several workers of one process, by several processes, and
//! maintained while facts come and go.
//!
//! Everything is behind the feature `timely`: without it the crate is empty, and a build has none of its dependencies.
//!
//! Strata become scopes one behind the other, a recursive one a scope that iterates. A body is joined from left to right over
//! arrangements by key, `not` is an antijoin with a finished relation, and what a head is given is settled by its ring: one
//! tuple where several derivations meet, the least or the greatest value, the sum. **Values stay in the data**; a difference
//! says how many bindings give the same tuple the same value, so that it is a group whatever the ring is. What does not
//! go there (a sum in a recursion) is a `Refusal` that names it. `datarel::evaluate` is the oracle.
//!
//! Enter at `evaluate`, which has the form of [`datarel::evaluate`], and at `Maintained`.

#[cfg(feature = "timely")]
mod maintained;

#[cfg(feature = "timely")]
mod evaluate;

#[cfg(feature = "timely")]
mod work;

#[cfg(feature = "timely")]
mod dataflow;

#[cfg(feature = "timely")]
mod body;

#[cfg(feature = "timely")]
mod settle;

#[cfg(feature = "timely")]
mod rounds;

#[cfg(feature = "timely")]
mod plan;

#[cfg(feature = "timely")]
mod order;

#[cfg(feature = "timely")]
mod codes;

#[cfg(feature = "timely")]
mod shared;

#[cfg(feature = "timely")]
mod hosts;

#[cfg(feature = "timely")]
mod connect;

#[cfg(feature = "timely")]
mod refusal;

#[cfg(feature = "timely")]
pub use {
    datarel,
    evaluate::{Holder, Options, evaluate},
    hosts::{Cluster, hosts},
    maintained::{Change, Maintained, Update},
    refusal::Refusal,
};
