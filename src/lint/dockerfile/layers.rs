//! Which instruction made which layer of a scanned image, told from the image's history.
//!
//! History is text: BuildKit writes `RUN |1 A=b /bin/sh -c COMMAND # buildkit`, buildah and the classic builder
//! `/bin/sh -c COMMAND` and `/bin/sh -c #(nop) COPY file:… in /to`. The command is the Dockerfile's own, with its
//! variables not yet put in. Layers of the base come first, so both are aligned from the end.

use std::collections::BTreeSet;

use crate::dockerfile::reading::{Base, Reading};
use crate::dockerfile::syntax::{Body, Instruction, Keyword};

/// Instructions or layers looked at; an image has at most some hundreds.
const MOST: usize = 1024;

/// The instruction behind each layer, as an index into the document; none where the base brought it, or nothing in
/// the file explains it.
pub fn instructions(reading: &Reading, layers: &[Option<String>]) -> Vec<Option<usize>> {
    let mut out = vec![None; layers.len()];
    let makers = makers(reading);
    let steps: Vec<(usize, String)> =
        layers.iter().enumerate().filter_map(|(at, text)| Some((at, plain(text.as_deref()?)))).collect();
    let (makers, steps) = (last(&makers), last(&steps));
    // Longest common subsequence, from the end: kept[i][j] is the most that the first i and j can share.
    let mut kept = vec![vec![0_u32; steps.len() + 1]; makers.len() + 1];
    let same: Vec<Vec<bool>> =
        makers.iter().map(|(_, maker)| steps.iter().map(|(_, step)| maker.made(step)).collect()).collect();
    let alike = |i: usize, j: usize| same.get(i).and_then(|row| row.get(j)).copied().unwrap_or(false);
    let at = |kept: &Vec<Vec<u32>>, i: usize, j: usize| kept.get(i).and_then(|r| r.get(j)).copied().unwrap_or(0);
    for i in 1..=makers.len() {
        for j in 1..=steps.len() {
            let best = if alike(i - 1, j - 1) {
                at(&kept, i - 1, j - 1) + 1
            } else {
                at(&kept, i - 1, j).max(at(&kept, i, j - 1))
            };
            if let Some(cell) = kept.get_mut(i).and_then(|row| row.get_mut(j)) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j) = (makers.len(), steps.len());
    while i > 0 && j > 0 {
        if alike(i - 1, j - 1) && at(&kept, i, j) == at(&kept, i - 1, j - 1) + 1 {
            if let (Some((maker, _)), Some((layer, _))) = (makers.get(i - 1), steps.get(j - 1))
                && let Some(slot) = out.get_mut(*layer)
            {
                *slot = Some(*maker);
            }
            (i, j) = (i - 1, j - 1);
        } else if at(&kept, i - 1, j) >= at(&kept, i, j - 1) {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    out
}

fn last<T>(all: &[T]) -> &[T] {
    all.get(all.len().saturating_sub(MOST)..).unwrap_or(all)
}

/// What a layer's step must look like to be of an instruction.
enum Maker {
    /// The step ends with this command.
    Run(String),
    /// COPY or ADD to this place; none where it holds variables.
    Copy(&'static str, Option<String>),
    Workdir(Option<String>),
}

impl Maker {
    fn of(reading: &Reading, instruction: &Instruction) -> Option<Self> {
        match (&instruction.keyword, &instruction.body) {
            (Keyword::Run, Body::Shell(body)) => {
                let whole = instruction.heredocs.first().filter(|_| body.text.trim_start().starts_with("<<"));
                let text = whole.map_or(body.text.as_str(), |heredoc| reading.document.slice(heredoc.body));
                Some(Self::Run(plain(text))).filter(|m| !matches!(m, Self::Run(t) if t.is_empty()))
            }
            (Keyword::Run, Body::Exec(words)) => {
                let words: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
                Some(Self::Run(plain(&words.join(" "))))
            }
            (Keyword::Copy, Body::Words(words)) => {
                Some(Self::Copy("COPY", words.last().and_then(|w| fixed(&w.text))))
            }
            (Keyword::Add, Body::Words(words)) => {
                Some(Self::Copy("ADD", words.last().and_then(|w| fixed(&w.text))))
            }
            (Keyword::Workdir, Body::Words(words)) => {
                Some(Self::Workdir(words.first().and_then(|w| fixed(&w.text))))
            }
            _ => None,
        }
    }

    fn made(&self, step: &str) -> bool {
        match self {
            Self::Run(command) => {
                step.strip_suffix(command.as_str()).is_some_and(|r| r.is_empty() || r.ends_with(' '))
            }
            Self::Copy(keyword, to) => starts(step, keyword) && ends(step, to.as_deref()),
            Self::Workdir(to) => starts(step, "WORKDIR") && ends(step, to.as_deref()),
        }
    }
}

fn starts(step: &str, keyword: &str) -> bool {
    step.strip_prefix(keyword).is_some_and(|rest| rest.starts_with(' '))
}

/// A step says where things go with or without the slash at the end, and from the working directory or the root.
fn ends(step: &str, to: Option<&str>) -> bool {
    let Some(to) = to else { return true };
    let bare = |t: &str| t.trim_start_matches("./").trim_matches('/').to_owned();
    let (to, place) = (bare(to), bare(step.rsplit(' ').next().unwrap_or_default()));
    to == place || to == "." || place.strip_suffix(to.as_str()).is_some_and(|r| r.ends_with('/'))
}

fn fixed(word: &str) -> Option<String> {
    let word = word.trim_matches(['"', '\'']);
    (!word.contains('$')).then(|| word.to_owned())
}

/// What may have made layers of the image, in the order of the build.
fn makers(reading: &Reading) -> Vec<(usize, Maker)> {
    let mut chain = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = reading.last;
    while let Some(index) = next.filter(|i| seen.insert(*i)) {
        let Some(stage) = reading.stages.get(index) else { break };
        chain.push(stage);
        next = match stage.base {
            Base::Stage(below) => Some(below),
            Base::Image(_) | Base::Scratch | Base::None => None,
        };
    }
    let instructions = chain.iter().rev().flat_map(|stage| stage.instructions.clone());
    instructions.filter_map(|at| Some((at, Maker::of(reading, reading.instruction(at)?)?))).collect()
}

/// Without what builders write around it, with single blanks. Backslashes at line ends are gone from a Dockerfile's
/// joined text already; in a history they may stand.
fn plain(text: &str) -> String {
    let text = text.trim().trim_end_matches("# buildkit").trim();
    let text = text.strip_prefix("/bin/sh -c #(nop)").unwrap_or(text);
    let words: Vec<&str> = text.split_whitespace().filter(|w| *w != "\\").collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dockerfile::parse::parse;
    use crate::dockerfile::reading::{Inputs, read};

    fn lines(file: &str, steps: &[&str]) -> Vec<Option<usize>> {
        let reading = read(parse(file.as_bytes()), &Inputs::default());
        let steps: Vec<Option<String>> =
            steps.iter().map(|s| Some((*s).to_owned()).filter(|s| !s.is_empty())).collect();
        let line = |at: usize| reading.document.lines.line(reading.instruction(at).unwrap().span.start);
        instructions(&reading, &steps).into_iter().map(|i| i.map(line)).collect()
    }

    const FILE: &str = "FROM ubuntu AS a\nRUN one\nFROM debian AS b\nARG V=1\nRUN apt-get update && \\\n    two $V\n\
        FROM b\nENV X=1\nWORKDIR /app\nCOPY --from=a x y/ /app/\nRUN <<EOF\nthree\nfour\nEOF\nRUN two $V\n";

    #[test]
    fn buildkit_and_buildah_say_the_same_in_other_words() {
        let buildkit = [
            "/bin/sh -c #(nop) ADD file:1 in / ",
            "RUN |1 V=1 /bin/sh -c apt-get update &&     two $V # buildkit",
            "WORKDIR /app",
            "COPY x y/ /app/ # buildkit",
            "RUN |1 V=1 /bin/sh -c three\nfour # buildkit",
            "RUN |1 V=1 /bin/sh -c two $V # buildkit",
        ];
        assert_eq!(lines(FILE, &buildkit), [None, Some(5), Some(9), Some(10), Some(11), Some(15)]);
        let buildah = [
            "/bin/sh -c #(nop) ADD file:1 in / ",
            "|1 V=1 /bin/sh -c apt-get update && two $V",
            "/bin/sh -c #(nop) COPY multi:9 in /app/ ",
            "/bin/sh -c two $V",
        ];
        assert_eq!(lines(FILE, &buildah), [None, Some(5), Some(10), Some(15)]);
    }

    #[test]
    fn what_the_file_does_not_explain_has_no_line() {
        // The builder's stage is not in the image, and a base may have run the same command.
        assert_eq!(
            lines(FILE, &["/bin/sh -c one", "", "RUN /bin/sh -c two $V", "RUN /bin/sh -c two $V # buildkit"]),
            [None, None, None, Some(15)]
        );
        assert_eq!(lines("FROM scratch\n", &["RUN x"]), [None]);
        assert!(lines(FILE, &[]).is_empty());
    }
}
