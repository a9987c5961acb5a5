//! What a stage takes from another by `COPY --from`, and whether what a stage installs comes into the image that way.

use std::collections::{BTreeMap, BTreeSet};

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
        let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, stage) in self.reading.stages.iter().enumerate() {
            if let Some(name) = &stage.name {
                names.entry(name).or_default().push(at);
            }
        }
        // The stage before `into` that a name or a number means; of the same names the last.
        let named = |name: &str, into: usize| {
            let name = name.trim_matches(['"', '\'']).to_ascii_lowercase();
            let same = names.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let before = same.partition_point(|at| *at < into);
            let found = before.checked_sub(1).and_then(|at| same.get(at).copied());
            found.or_else(|| name.parse().ok().filter(|n| *n < into))
        };
        let mut out = Vec::new();
        for (at, instruction) in self.reading.document.instructions.iter().enumerate() {
            if instruction.keyword != Keyword::Copy {
                continue;
            }
            let Some(name) = instruction.flag("from").and_then(|f| f.value.as_ref()) else { continue };
            let (Some(into), Body::Words(words)) = (self.reading.stage_of(at), &instruction.body) else { continue };
            let Some(from) = named(&name.text, into) else { continue };
            let paths = words.split_last().map_or(&[][..], |(_, sources)| sources);
            out.push(StageCopy { instruction: at, into, from, paths });
        }
        out
    }

    /// The stages whose Python packages are in the image: set up there, or copied from them as a whole.
    pub fn python_stages(&self) -> BTreeSet<usize> {
        let whole = |word: &Word| {
            let path = word.text.trim_matches(['"', '\'']).trim_end_matches('/');
            WHOLE.contains(&path.trim_start_matches('/')) || ENVIRONMENTS.iter().any(|e| path.contains(e))
        };
        let mut sources: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for copy in self.stage_copies().iter().filter(|c| c.paths.iter().any(whole)) {
            sources.entry(copy.into).or_default().push(copy.from);
        }
        let stages = self.reading.stages.iter().enumerate();
        let mut open: Vec<usize> = stages.filter(|(_, s)| s.in_image && s.built).map(|(at, _)| at).collect();
        let mut out = BTreeSet::new();
        while let Some(at) = open.pop() {
            let Some(stage) = self.reading.stages.get(at).filter(|s| s.built) else { continue };
            if out.insert(at) {
                open.extend(sources.get(&at).into_iter().flatten());
                if let Base::Stage(below) = stage.base {
                    open.push(below);
                }
            }
        }
        out
    }
}
