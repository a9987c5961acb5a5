//! What the user asks to be judged against: `--target` and `imagelint.toml`, from text to checked values.

pub mod driver;
pub mod fleet;
mod raw;
mod schema;
mod spans;
pub mod target;

pub use driver::{DriverRangeError, parse_driver};
pub use fleet::{Date, Fleet, Level, PathGlob, Waiver, find_upward};
pub use schema::{SCHEMA_NAME, schema};
pub use spans::{ConfigError, Pointed};
pub use target::{TargetError, parse_target, parse_targets};
