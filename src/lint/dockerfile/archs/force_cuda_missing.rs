//! A project that builds its device code only where it sees a GPU, or is told to.

use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::builds::Build;
use crate::lint::dockerfile::{Found, Lint};

use super::ext_build_without_arch_list::has_compiler;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for build in lint.builds() {
        out.extend(told(lint, &build));
    }
}

fn told(lint: &Lint<'_>, build: &Build<'_>) -> Option<Found> {
    let project = build.project?;
    let first = project.force.first()?;
    let has_device = lint.reading.instruction(build.command.instruction)?.flag("device").is_some();
    if !build.is_sure() || has_device || !has_compiler(lint, build.stage) {
        return None;
    }
    let names = || project.force.iter().filter_map(|f| f.split('=').next());
    let given =
        |name: &str| lint.seen(build.command, name).is_some() || build.speaks_of(&name.to_ascii_lowercase());
    if names().any(given) {
        return None;
    }
    let name = names().next()?;
    // Exported in a RUN that ended, or set behind: the value is there, but not seen.
    let elsewhere = lint.reading.commands.iter().find_map(|c| c.assigned.get(name));
    let message = format!(
        "{} is built without {first}: no GPU is visible while an image is built, so its device code is left out and \
         its GPU functions fail when they are called",
        project.project
    );
    let mut found = Found::warning(build.span, message).label(format!("without {first}"));
    found = found.because(project.because()).help(format!("put `ENV {first}` before this RUN"));
    if let Some(elsewhere) = elsewhere.filter(|a| !build.command.span.contains(a.span)) {
        found = found.also(elsewhere.span, "not seen by the build");
    }
    let start = lint.reading.instruction(build.command.instruction)?.span.start;
    Some(found.suggest(format!("set {first}"), vec![Edit::new(Span::new(start, start), format!("ENV {first}\n"))]))
}
