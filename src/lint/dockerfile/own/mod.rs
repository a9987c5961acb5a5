//! Rules about the file itself: whether it can be read, and the comments in it that are meant for this program.

mod syntax;

use super::{Check, Found, Lint, Needs, check};
use crate::model::Severity;

pub(super) const CHECKS: &[Check] = &[
    check!(syntax, "dockerfile-syntax", Error, File, true, "A line that a builder does not accept"),
    check!(comments, "ignore-malformed", Warning, File, true, "A comment `# imagelint:` that is not understood"),
    check!(comments, "ignore-unknown-rule", Warning, File, true, "A comment ignores a rule that does not exist"),
    check!(comments, "ignore-unmatched", Note, File, true, "A comment ignores what is not found"),
];

/// What comments say is held against what all other rules found, so it comes after them.
mod comments {
    use super::{Found, Lint};

    pub(super) fn check(_: &Lint<'_>, _: &mut Vec<Found>) {}
}
