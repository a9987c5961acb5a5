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
    let Some(archs) = Archs::set(lint) else { return };
    for (place, settings) in archs.by_place() {
        let found = settings.into_iter().filter_map(|s| told(lint, &archs, s, place));
        out.extend(found.max_by_key(|f| f.severity));
    }
}

fn told<'a>(lint: &Lint<'a>, archs: &Archs<'a>, setting: &ArchSetting<'_>, place: Place) -> Option<Found> {
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

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "arch-syntax";
    const DETECTRON: &str = "RUN pip install git+https://github.com/facebookresearch/detectron2\n";

    fn torch(value: &str) -> String {
        format!("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST={value}\n{DETECTRON}")
    }

    #[test]
    fn wrong_separators_and_numbers() {
        for (value, at, right) in [
            ("\"8.0,8.6\"", ",", "\"8.0;8.6\""),
            ("\"sm_80;8.6\"", "sm_80", "\"8.0;8.6\""),
            ("\"8.0; 8.6\"", "; ", "\"8.0;8.6\""),
            ("89", "89", "8.9"),
            ("\"8.0;8.6+ptx\"", "8.6+ptx", "\"8.0;8.6+PTX\""),
        ] {
            let file = torch(value);
            assert_eq!(blamed(RULE, &file, &[]), [at], "{value}");
            let found = &lint(RULE, &file, &[])[0];
            assert!(found.severity == Severity::Error && found.fix.as_ref().unwrap().safe, "{value}");
            assert!(mended(RULE, &file, &[]).contains(&format!("LIST={right}\n")), "{value}");
        }
        let file = "FROM ubuntu:24.04\nRUN cmake -B b -DCMAKE_CUDA_ARCHITECTURES=8.6 .\n";
        assert_eq!(blamed(RULE, file, &[]), ["8.6"]);
        assert!(mended(RULE, file, &[]).contains("ARCHITECTURES=86 ."));
    }

    #[test]
    fn unknown_readers_are_warned_only() {
        let file = torch("\"8.0,8.6\"").replace(DETECTRON, "RUN pip install --no-build-isolation ./csrc\n");
        let found = &lint(RULE, &file, &[])[0];
        assert!(found.severity == Severity::Warning && !found.fix.as_ref().unwrap().safe);
    }

    #[test]
    fn what_is_right_or_of_another_grammar() {
        for file in [
            torch("\"8.0 8.6+PTX\""),
            torch("\"8.0;8.6;9.0a\""),
            torch("Turing"),
            torch("$LIST"),
            torch("\"\""),
            torch("\"8.0,8.6\"").replace(DETECTRON, "RUN pip install requests\n"),
            // Other projects write numbers under this name.
            "FROM ubuntu:24.04\nENV CUDA_ARCH_LIST=\"80;86\"\nRUN pip install --no-build-isolation ./csrc\n"
                .to_owned(),
            "FROM ubuntu:24.04\nRUN cmake -B b -DCMAKE_CUDA_ARCHITECTURES=\"80-real;90a;native\" .\n".to_owned(),
        ] {
            assert!(lint(RULE, &file, &[]).is_empty(), "{file}");
        }
    }
}
