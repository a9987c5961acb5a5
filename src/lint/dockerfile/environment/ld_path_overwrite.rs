//! LD_LIBRARY_PATH set anew on a base that sets it.

use super::pairs;
use crate::lint::dockerfile::{Found, Lint, Set};
use crate::model::Runtime;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(last) = lint.reading.last else { return };
    let Some(base) = lint.base(last) else { return };
    let Some(known) = base.env("LD_LIBRARY_PATH") else { return };
    let lost = |value: &str| -> Vec<String> {
        let has: Vec<&str> = entries(value).collect();
        entries(known).filter(|e| !has.contains(e)).map(str::to_owned).collect()
    };
    // A later line may bring them back: what the image has in the end counts.
    let end = lint.reading.ends.get(last).and_then(|scope| scope.get("LD_LIBRARY_PATH"));
    let Some(gone) = end.and_then(|v| v.value.known()).map(lost).filter(|g| !g.is_empty()) else { return };
    let all: Vec<Set<'_>> = lint
        .sets(false)
        .into_iter()
        .filter(|s| s.name == "LD_LIBRARY_PATH" && lint.in_image(s.instruction))
        .collect();
    // The first that drops them is to blame.
    let Some(set) = all.iter().find(|s| s.value.known().map(lost).is_some_and(|l| !l.is_empty())) else { return };
    let message = format!(
        "LD_LIBRARY_PATH is set anew, and {} of {} {} lost: the driver is not found where it is mounted there (GKE and \
         other device plugins)",
        gone.join(" and "),
        base.repository,
        if gone.len() == 1 { "is" } else { "are" }
    );
    // The container toolkit puts the driver where ldconfig looks.
    let mounted = lint.targets.is_empty() || lint.targets.iter().any(|t| t.runtime == Runtime::Gke);
    let found =
        if mounted { Found::warning(set.value_span(), message) } else { Found::note(set.value_span(), message) };
    let mut found = found
        .label("drops the base's folders")
        .help("put `:${LD_LIBRARY_PATH}` at its end")
        .because(base.because.clone());
    if let Some(edits) = pairs::appended(set, ":${LD_LIBRARY_PATH}") {
        found = found.suggest("keep the base's folders", edits);
    }
    out.push(found);
}

fn entries(path: &str) -> impl Iterator<Item = &str> {
    path.split(':').map(|e| if e.len() > 1 { e.trim_end_matches('/') } else { e }).filter(|e| !e.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "ld-path-overwrite";
    const BASE: &str = "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n";

    #[test]
    fn it_is_a_note_where_no_target_mounts_the_driver_there() {
        let file = format!("{BASE}ENV LD_LIBRARY_PATH=/opt/x/lib\n");
        assert_eq!(lint(RULE, &file, &[])[0].severity, Severity::Warning);
        assert_eq!(lint(RULE, &file, &["a100@535"])[0].severity, Severity::Note);
    }

    #[test]
    fn the_base_s_folders_are_lost() {
        let file = format!("{BASE}ENV LD_LIBRARY_PATH=/opt/x/lib\n");
        assert_eq!(blamed(RULE, &file, &[]), ["/opt/x/lib"]);
        assert!(mended(RULE, &file, &[]).contains("LD_LIBRARY_PATH=/opt/x/lib:${LD_LIBRARY_PATH}\n"));
        let quoted = format!("{BASE}ENV LD_LIBRARY_PATH=\"/opt/x/lib\"\n");
        assert!(mended(RULE, &quoted, &[]).contains("\"/opt/x/lib:${LD_LIBRARY_PATH}\""));
        for quiet in [
            format!("{BASE}ENV LD_LIBRARY_PATH=/opt/x/lib:$LD_LIBRARY_PATH\n"),
            format!("{BASE}ENV LD_LIBRARY_PATH=/x:/usr/local/nvidia/lib:/usr/local/nvidia/lib64/\n"),
            format!(
                "{BASE}ENV LD_LIBRARY_PATH=/x\nENV LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/nvidia/lib:/usr/local/nvidia/lib64\n"
            ),
            format!("{BASE}ENV OLD=$LD_LIBRARY_PATH\nENV LD_LIBRARY_PATH=/x\nENV LD_LIBRARY_PATH=/y:$OLD\n"),
            "FROM ubuntu\nENV LD_LIBRARY_PATH=/opt/x/lib\n".to_owned(),
            format!("{BASE}RUN LD_LIBRARY_PATH=/x make\n"),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
