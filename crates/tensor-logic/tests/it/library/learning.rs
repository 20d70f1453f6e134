//! The examples of the library learn.
