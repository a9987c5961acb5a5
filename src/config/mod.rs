//! What the user asks to be judged against: `--target` and `imagelint.toml`, from text to checked values.

pub mod date;
pub mod driver;
pub mod fleet;
mod raw;
mod rows;
mod schema;
mod spans;
pub mod target;

pub use date::Date;
pub use driver::{DriverRangeError, parse_driver};
pub use fleet::{Fleet, Level, PathGlob, Waiver, find_upward};
pub use rows::load_rows;
pub use schema::{SCHEMA_NAME, schema};
pub use spans::{ConfigError, Pointed};
pub use target::{TargetError, parse_target, parse_targets};
