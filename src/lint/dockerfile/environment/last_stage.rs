//! The variables by which an image asks for GPUs, at the end of the last stage.

use crate::catalog::bases::BaseFamily;
use crate::dockerfile::edit::Edit;
use crate::dockerfile::reading::Base;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Keyword;
use crate::lint::dockerfile::Lint;

pub const VARIABLES: &[&str] = &["NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"];

pub const LINES: &str = "ENV NVIDIA_VISIBLE_DEVICES=all \\\n    NVIDIA_DRIVER_CAPABILITIES=compute,utility";

/// The last stage, where it stands on a base without these variables and sets none.
pub struct Plain {
    pub stage: usize,
    /// The base's place.
    pub from: Span,
}

pub fn plain(lint: &Lint<'_>) -> Option<Plain> {
    let last = lint.reading.last?;
    let stage = lint.reading.stages.get(last)?;
    let plain = match &stage.root.0 {
        Base::Image(_) => {
            lint.base(last).is_some_and(|b| b.family == BaseFamily::Distro && b.sure && b.env.is_empty())
        }
        // An export of files, unless it runs something.
        Base::Scratch => runs(lint, last),
        _ => false,
    };
    let scope = lint.reading.ends.get(last)?;
    if !plain || VARIABLES.iter().any(|v| scope.get(*v).is_some_and(|set| !set.arg)) {
        return None;
    }
    Some(Plain { stage: last, from: stage.from })
}

fn runs(lint: &Lint<'_>, stage: usize) -> bool {
    let instructions = &lint.reading.document.instructions;
    lint.chain(stage).iter().filter_map(|s| lint.reading.stages.get(*s)).any(|stage| {
        let own = instructions.get(stage.instructions.clone()).unwrap_or_default();
        own.iter().any(|i| matches!(i.keyword, Keyword::Cmd | Keyword::Entrypoint))
    })
}

/// The two lines, behind the FROM of the last stage.
pub fn edits(lint: &Lint<'_>, plain: &Plain) -> Option<Vec<Edit>> {
    let stage = lint.reading.stages.get(plain.stage)?;
    let from = lint.reading.instruction(stage.instructions.start)?;
    Some(vec![Edit::new(Span::new(from.span.end, from.span.end), format!("\n{LINES}"))])
}
