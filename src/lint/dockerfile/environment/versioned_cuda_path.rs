//! `/usr/local/cuda-12.1` written out: it goes with the next base.

use std::collections::BTreeSet;

use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Instruction, Keyword};
use crate::lint::dockerfile::wheels::of_base;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::CudaVersion;

/// Folders that are told of.
const MOST: usize = 64;

const FOLDER: &str = "/usr/local/cuda-";

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let mut told = BTreeSet::new();
    for (at, instruction) in lint.reading.document.instructions.iter().enumerate() {
        if !matches!(instruction.keyword, Keyword::Env | Keyword::Run | Keyword::Arg) {
            continue;
        }
        let folders = folders(lint, instruction);
        if folders.is_empty() || told.len() >= MOST {
            continue;
        }
        let Some((stage, _)) = lint.stage_of(at).filter(|(_, s)| s.built) else { continue };
        let Some(base) = lint.base(stage) else { continue };
        let Some(cuda) = base.cuda else { continue };
        for (span, version) in folders {
            // Another toolkit than the base's has its own folder.
            if !told.insert((stage, version)) || (version != cuda && of_base(lint, stage).is_none()) {
                continue;
            }
            let folder = format!("{FOLDER}{version}");
            let message = if version == cuda {
                format!("{folder} is the folder of this base's CUDA: with another base it is gone")
            } else {
                format!("{folder} is not the folder of {}'s CUDA {cuda}: there is nothing", base.repository)
            };
            let found = Found::note(span, message)
                .label("names one version")
                .help("write /usr/local/cuda, which leads there");
            out.push(found.suggest("write /usr/local/cuda", vec![Edit::new(span, "/usr/local/cuda")]));
        }
    }
}

/// The folders that an instruction names, with their places. One that ends in a variable moves with it.
fn folders(lint: &Lint<'_>, instruction: &Instruction) -> Vec<(Span, CudaVersion)> {
    let text = lint.reading.document.slice(instruction.span);
    let one = |(at, _): (usize, &str)| {
        let rest = text.get(at + FOLDER.len()..)?;
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let number = rest.get(..end)?.trim_end_matches('.');
        let behind = rest.get(number.len()..)?;
        if behind.starts_with(['$', '{', '*']) || number.split('.').count() != 2 {
            return None;
        }
        let start = instruction.span.start + at;
        let span = Span::new(start, start + FOLDER.len() + number.len());
        (!in_comment(lint, span)).then_some((span, number.parse().ok()?))
    };
    text.match_indices(FOLDER).filter_map(one).collect()
}

fn in_comment(lint: &Lint<'_>, span: Span) -> bool {
    let comments = &lint.reading.document.comments;
    let behind = comments.partition_point(|c| c.span.start <= span.start);
    behind.checked_sub(1).and_then(|at| comments.get(at)).is_some_and(|c| c.span.contains(span))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "versioned-cuda-path";
    const BASE: &str = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n";

    #[test]
    fn a_version_in_the_folder_s_name() {
        let file = format!("{BASE}ENV PATH=/usr/local/cuda-12.4/bin:$PATH\n");
        assert_eq!(blamed(RULE, &file, &[]), ["/usr/local/cuda-12.4"]);
        assert!(mended(RULE, &file, &[]).contains("PATH=/usr/local/cuda/bin"));
        let other = format!("{BASE}ENV PATH=/usr/local/cuda-12.1/bin:$PATH\n");
        assert!(lint(RULE, &other, &[])[0].message.contains("CUDA 12.4"));
        for quiet in [
            format!("{BASE}ENV PATH=/usr/local/cuda/bin:$PATH\n"),
            format!("{BASE}ENV V=12.4\nENV PATH=/usr/local/cuda-${{V}}/bin:$PATH\n"),
            format!("{BASE}RUN apt-get install -y cuda-toolkit-11-8\nENV CUDA_HOME=/usr/local/cuda-11.8\n"),
            format!("{BASE}RUN ls \\\n  # /usr/local/cuda-12.4\n  /x\n"),
            "FROM ubuntu\nENV PATH=/usr/local/cuda-12.4/bin:$PATH\n".to_owned(),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
