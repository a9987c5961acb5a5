//! What a stage takes from another by `COPY --from`, and whether what a stage installs comes into the image that way.

use std::collections::BTreeSet;

use super::Lint;
use crate::dockerfile::reading::Base;
use crate::dockerfile::syntax::{Body, Keyword, Word};

/// A `COPY --from` of an earlier stage.
pub struct StageCopy<'a> {
    pub instruction: usize,
    /// Where the files come to.
    pub into: usize,
    pub from: usize,
    /// Sources.
    pub paths: &'a [Word],
}

/// Parts of a path that mean a whole environment of Python packages.
const ENVIRONMENTS: &[&str] =
    &["site-packages", "dist-packages", "venv", "conda", "mamba", "/.local", "/lib/python"];

/// Folders that hold one, copied whole.
const WHOLE: &[&str] = &["", ".", "usr", "usr/local", "usr/local/lib", "usr/local/lib64", "usr/lib", "opt", "root"];

impl Lint<'_> {
    /// Copies from earlier stages, in the order of the file.
    pub fn stage_copies(&self) -> Vec<StageCopy<'_>> {
        let mut out = Vec::new();
        for (at, instruction) in self.reading.document.instructions.iter().enumerate() {
            if instruction.keyword != Keyword::Copy {
                continue;
            }
            let Some(name) = instruction.flag("from").and_then(|f| f.value.as_ref()) else { continue };
            let (Some(into), Body::Words(words)) = (self.reading.stage_of(at), &instruction.body) else { continue };
            let Some(from) = self.stage_named(&name.text, into) else { continue };
            let paths = words.split_last().map_or(&[][..], |(_, sources)| sources);
            out.push(StageCopy { instruction: at, into, from, paths });
        }
        out
    }

    /// The stage before `into` that a name or a number means.
    fn stage_named(&self, name: &str, into: usize) -> Option<usize> {
        let name = name.trim_matches(['"', '\'']).to_ascii_lowercase();
        let before = self.reading.stages.get(..into)?;
        let named = before.iter().rposition(|s| s.name.as_deref() == Some(name.as_str()));
        named.or_else(|| name.parse().ok().filter(|n| *n < into))
    }

    /// Whether Python packages that a stage installs are in the image: set up there, or copied from it as a whole.
    pub fn ships_python(&self, stage: usize) -> bool {
        let copies = self.stage_copies();
        let whole = |word: &Word| {
            let path = word.text.trim_matches(['"', '\'']).trim_end_matches('/');
            WHOLE.contains(&path.trim_start_matches('/')) || ENVIRONMENTS.iter().any(|e| path.contains(e))
        };
        let mut seen = BTreeSet::new();
        let mut open = vec![stage];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            let Some(this) = self.reading.stages.get(at).filter(|s| s.built) else { continue };
            if this.in_image {
                return true;
            }
            open.extend(copies.iter().filter(|c| c.from == at && c.paths.iter().any(whole)).map(|c| c.into));
            let above = self.reading.stages.iter().enumerate().filter(|(_, s)| s.base == Base::Stage(at));
            open.extend(above.map(|(index, _)| index));
        }
        false
    }
}
