//! Whole files.

use super::parse;

/// What is said of the second line of a file that starts with FROM.
pub(super) fn refused(line: &str) -> Option<String> {
    let document = parse(format!("FROM scratch\n{line}\n").as_bytes());
    assert_eq!(document.errors, [], "{line}");
    document.instructions.get(1)?.error.clone().map(|e| e.what)
}
