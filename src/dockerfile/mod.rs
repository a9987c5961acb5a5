//! Dockerfiles: what is written, and what it means. Knows no GPUs and no rules.
//!
//! bytes ▶ `parse` ▶ [`syntax::Document`] (lossless, spans for every word, errors inside) ▶ `read` ▶
//! [`reading::Reading`] (stages, variables in force, commands) ▶ `commands` (what installers were asked for).

pub mod commands;
pub mod edit;
pub mod expand;
pub mod inputs;
pub mod parse;
mod read;
pub mod reading;
pub mod scope;
pub mod shell;
pub mod span;
pub mod stages;
pub mod syntax;
pub mod value;
