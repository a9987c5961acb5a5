//! Linked libraries, compilers and versions: what the report lists of them, and what is wrong with them.

mod rows;

pub use rows::{compilers, rows};
