//! All tests of the crate that need no insides, in one program: it is linked once.
//!
//! The order is that of the pipeline: reading, core form, engines, gradients, files, the command.
//! `cases` runs the corpus of `tests/cases` through the command, `programs` those of `programs/`,
//! `tutorial` and `reference` the pages.

mod common;

mod draw;
mod format;
mod learn;
mod names;
mod parse;
mod read;
mod recursion;
mod show;

mod demand;
mod drawn;
mod embed;
mod explained;
mod extremes;
mod fast;
mod handed;
mod interrupts;
mod joins;
mod linear;
mod metamorphic;
mod middle;
mod products;
mod profile;
mod query;
mod random_programs;
mod ranges;
mod resumed;
mod run;
mod sampling;
mod schedules;
mod starts;
mod strips;
mod surface;
mod tables;
mod validation;
mod weighted;
mod weighted_reads;
mod windows;

mod again;
mod backwards;
mod candle_tape;
mod drawn_gradients;
mod gradient;
mod gradients;
mod guards;
mod steep;

mod files;

mod batches;
mod careless;
mod cases;
mod checkpoints;
mod closures;
mod codes;
mod command;
mod console;
mod library;
mod lifting;
mod neuralogic;
mod parity;
mod programs;
mod reference;
mod replayed;
mod reported;
mod tudataset;
mod tuple_blocks;
mod tutorial;
