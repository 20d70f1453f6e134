//! What pages, pictures and tables are made of. Nothing here knows a learner.

pub(crate) mod csv;

pub(crate) use calculemus_draw::{Axis, Scale, graph, html, numbers, plot};
