//! What the parser could not take, or a builder would not.

use super::{Found, Lint};

/// Errors of one file that are told one by one: what is no Dockerfile has one a line.
const MOST: usize = 20;

pub(super) fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let document = &lint.reading.document;
    let of_lines = document.instructions.iter().filter_map(|i| i.error.as_ref());
    let mut errors: Vec<_> = of_lines.chain(&document.errors).collect();
    errors.sort_by_key(|e| e.span);
    let more = errors.len().saturating_sub(MOST);
    for error in errors.iter().take(MOST) {
        out.push(Found::error(error.span, error.what.clone()));
    }
    if let (Some(next), 2..) = (errors.get(MOST), more) {
        out.push(Found::error(next.span, format!("{} (and {} more errors behind it)", next.what, more - 1)));
    } else if let Some(next) = errors.get(MOST) {
        out.push(Found::error(next.span, next.what.clone()));
    }
}
