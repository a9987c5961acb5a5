//! What a whole run rests on, chosen once before anything is judged: the facts and the day. What is below the command
//! line is handed both.

use std::sync::OnceLock;

use super::args::Global;
use super::error::CliError;
use super::output::Screen;
use crate::catalog::Catalog;
use crate::config::{self, Date};
use crate::report::text::count;

static CATALOG: OnceLock<Catalog> = OnceLock::new();
static TODAY: OnceLock<Date> = OnceLock::new();

/// Reads `--rules`, and tells what it changes.
pub fn choose(global: &Global, screen: &Screen) -> Result<(), CliError> {
    if let Some(day) = global.today {
        TODAY.get_or_init(|| day);
    }
    let Some(dir) = &global.rules_dir else { return Ok(()) };
    let merged = config::load_rows(dir)?;
    let merged = CATALOG.get_or_init(|| merged);
    if let Some(rows) = merged.merged() {
        screen.notice(&format!(
            "{}: {} added to the catalog, {} replaced ({})",
            dir.display(),
            count(rows.added, "row", "rows"),
            rows.replaced,
            rows.files.join(", ")
        ));
    }
    Ok(())
}

/// The embedded catalog, or what `--rules` made of it.
pub fn catalog() -> &'static Catalog {
    CATALOG.get().unwrap_or_else(|| Catalog::embedded())
}

/// The day that waivers and facts are held against.
pub fn today() -> Date {
    *TODAY.get_or_init(Date::today)
}
