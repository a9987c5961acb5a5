//! Lists of architectures that their reader does not take as they are written.

use crate::catalog::arch_lists::ArchProblem;
use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, Place};
use crate::lint::dockerfile::builds::Reads;
use crate::lint::dockerfile::{Found, Lint};

use super::lists::{self, Archs, Use};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let archs = Archs::of(lint);
    for (place, settings) in archs.by_place() {
        let found = settings.into_iter().filter_map(|s| told(lint, &archs, s, place));
        out.extend(found.max_by_key(|f| f.severity));
    }
}

fn told(lint: &Lint<'_>, archs: &Archs<'_>, setting: &ArchSetting<'_>, place: Place) -> Option<Found> {
    let variable = setting.variable;
    // Under another name, or one that others use too, the grammar is a guess.
    let own = setting.name == variable.name || variable.environment.contains(&setting.name);
    let usage = archs.usage(lint, setting);
    if variable.shared || !own || usage < Use::ReadPerhaps {
        return None;
    }
    let value = setting.value.known()?;
    let list = variable.parse(value);
    let first = list.problems.first()?;
    let wrong = value.get(first.range.clone()).filter(|t| !t.trim().is_empty());
    let which = wrong.map_or(String::new(), |w| format!("{}: ", lists::shown(w)));
    let message =
        format!("{}, which {} does not take: {which}{}", lists::said(lint, setting), variable.reader, first.what);
    let span = list.problems.iter().map(|p| lists::part(place, &p.range)).reduce(Span::to).unwrap_or(place.span);
    let surely = setting.readers.iter().any(|(_, reads)| *reads == Reads::Surely);
    let certain = surely && usage == Use::Read && variable.is_sure() && matches!(setting.value, Value::Known(_));
    let mut found = if certain { Found::error(span, message) } else { Found::warning(span, message) };
    found = found.label(first.what.clone()).because(variable.because());
    let Some(edits) = place.verbatim.then(|| edits(place, &list.problems)).flatten() else {
        return Some(found.help(format!("written as in {}", lists::shown(&variable.example))));
    };
    let right = mended(value, &list.problems);
    // The quotes around several members must be there.
    let whole = lists::write(lint, place, &right);
    let edits = if whole.as_ref().is_some_and(|w| w.text != right) { whole.into_iter().collect() } else { edits };
    found = found.help(format!("write {}", lists::shown(&right)));
    let what = "write it as its reader takes it";
    Some(if certain { found.safe_fix(what, edits) } else { found.suggest(what, edits) })
}

/// One edit for each problem, where all have a certain answer.
fn edits(place: Place, problems: &[ArchProblem]) -> Option<Vec<Edit>> {
    let edit = |p: &ArchProblem| Some(Edit::new(place.within(p.range.clone()).span, p.replacement.clone()?));
    problems.iter().map(edit).collect()
}

fn mended(value: &str, problems: &[ArchProblem]) -> String {
    let mut text = value.to_owned();
    let mut sorted: Vec<&ArchProblem> = problems.iter().collect();
    sorted.sort_by_key(|p| std::cmp::Reverse(p.range.start));
    for problem in sorted {
        if text.get(problem.range.clone()).is_some() {
            text.replace_range(problem.range.clone(), problem.replacement.as_deref().unwrap_or_default());
        }
    }
    text
}
