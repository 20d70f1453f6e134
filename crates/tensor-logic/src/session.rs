//! A program with the files, the data and the person around it.

pub mod library;

pub mod files;

mod sheet;

pub mod tudataset;

pub mod neuralogic;

pub mod checkpoints;

pub mod world;

pub mod notebook;

pub mod console;
