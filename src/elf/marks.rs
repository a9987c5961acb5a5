//! A few literal byte strings looked for in one pass.

use aho_corasick::{AhoCorasick, MatchKind, packed};

/// A searcher for short literals: vectorised where the processor can, an automaton elsewhere.
pub enum Marks {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

impl Marks {
    /// Builds a searcher for a handful of literals.
    pub fn new(literals: &[&[u8]]) -> Self {
        match packed::Searcher::new(literals) {
            Some(searcher) => Self::Packed(searcher),
            #[allow(clippy::expect_used, reason = "a handful of literal patterns always builds")]
            None => Self::Automaton(
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostFirst)
                    .build(literals)
                    .expect("literal patterns"),
            ),
        }
    }

    /// Where the next literal begins, at or behind `from`.
    pub fn find(&self, haystack: &[u8], from: usize) -> Option<usize> {
        match self {
            Self::Packed(s) => s.find_in(haystack, (from..haystack.len()).into()).map(|m| m.start()),
            Self::Automaton(s) => s.find(haystack.get(from..)?).map(|m| from + m.start()),
        }
    }
}
