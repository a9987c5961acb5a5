//! imagelint answers, without a GPU and before anything is deployed: will this container image run on these
//! GPUs with these drivers; if not, what is missing, and what must be rebuilt?
//!
//! The flow, each arrow a pure step unless it says I/O:
//!
//! ```text
//! "registry/img:tag", docker-archive:x.tar, oci:dir, dir:rootfs, file.so …
//!   │ image::sources::open                                               I/O
//!   ▼
//! Image { config, layers }
//!   │ per layer: stored bytes ▶ verify ▶ decompress ▶ tar                one pass, layers in parallel
//!   ▼
//! entries ▶ probes (device code, ELF, package metadata, the loader's files)  each body read at most once
//!   │ image::overlay::merge: whiteouts, opaque directories, links
//!   ▼
//! Evidence       plain data, can be saved and judged again
//!   │ lint::judge with the Catalog (rules/data) and the fleet
//!   ▼
//! Findings, verdicts, plan ▶ report
//! ```

pub mod catalog;
pub mod cli;
pub mod config;
pub mod device;
pub mod diff;
pub mod discover;
pub mod dockerfile;
pub mod elf;
pub mod image;
pub mod inventory;
pub mod lint;
pub mod loader;
pub mod model;
pub mod plan;
pub mod report;
pub mod scan;
pub mod stream;
