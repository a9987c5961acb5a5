//! All tests from outside, in one program: linking one for each would take most of their time.

mod common;
mod served;

mod action;
mod affinity;
mod attest;
mod cache;
mod cases;
mod cli;
mod corpus;
mod data_sets;
mod deploy;
mod diff;
mod field;
mod fleet;
mod generate;
mod hostile;
mod html;
mod lint;
mod loader;
mod makers;
mod plan;
mod policy;
mod rebuild;
mod registry;
mod reports;
mod rocm;
mod rules_dir;
mod servers;
mod shape;
mod sources;
mod stores;
mod wheels;
