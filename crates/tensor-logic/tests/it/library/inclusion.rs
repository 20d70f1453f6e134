//! What inclusion does to names.
