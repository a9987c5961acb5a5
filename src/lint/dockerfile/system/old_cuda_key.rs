//! The signing key of NVIDIA's CUDA repositories that was withdrawn in 2022.

use crate::catalog::bases::BaseFamily;
use crate::catalog::system_packages::{OldKind, OldSource};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::shell::{Arg, Command, When};
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::ask::lower;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

/// Parts of options and sources that let packages in without a signature.
const UNSIGNED: &[&str] = &[
    "trusted=yes",
    "allow-unauthenticated",
    "allowunauthenticated",
    "allow-insecure",
    "allowinsecure",
    "nogpgcheck",
];

const REPOSITORY: &str = "/compute/cuda/repos/";

/// Keys of a file that are looked at: each asks what the whole stage says.
const MOST: usize = 16;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let rows: Vec<&OldSource> =
        lint.catalog.system_packages().old_sources().iter().filter(|s| s.kind == OldKind::Key).collect();
    let mut seen = 0;
    for (at, command) in lint.build_commands() {
        let words: Vec<&str> = command.args().iter().map(Arg::known_or_partly).collect();
        // The old key is taken out, or it is that of the retired repository, which was never signed anew.
        let removes = ["del", "rm", "--delete-key", "--delete-keys", "-d"];
        let removed = command.program() == Some("rm") || words.iter().any(|w| removes.contains(w));
        if removed || words.iter().any(|w| w.contains("machine-learning/")) {
            continue;
        }
        let receives = words.iter().any(|w| w.starts_with("--recv-key"));
        let fetched = command.args().iter().zip(&words).find_map(|(arg, word)| {
            let lower = word.to_ascii_lowercase();
            let fetches = receives || lower.contains(REPOSITORY);
            Some((arg.span, *word, *rows.iter().find(|r| fetches && lower.contains(&r.text.to_ascii_lowercase()))?))
        });
        let Some((span, word, row)) = fetched else { continue };
        seen += 1;
        if seen > MOST {
            break;
        }
        let Some((stage, _)) = lint.stage_of(command.instruction) else { continue };
        let text = text_of(lint, stage);
        let new = rows.iter().flat_map(|r| &r.successors).any(|s| text.contains(&s.to_ascii_lowercase()));
        if new || UNSIGNED.iter().any(|u| text.contains(u)) {
            continue;
        }
        out.push(said(lint, command, (span, word, row), &Place { stage, at, text }));
    }
}

struct Place {
    stage: usize,
    /// Index of the command.
    at: usize,
    /// All instructions of the stage and of those it is FROM, in lower case.
    text: String,
}

fn said(lint: &Lint<'_>, command: &Command, (span, word, row): (Span, &str, &OldSource), place: &Place) -> Found {
    let base = lint.base(place.stage);
    let updates = lint.chain_commands(place.stage).any(|(at, c)| {
        at > place.at
            && matches!(c.program(), Some("apt-get" | "apt" | "yum" | "dnf" | "microdnf"))
            && c.args().iter().any(|a| matches!(a.text.value.known(), Some("update" | "install" | "makecache")))
    });
    let adds = place.text.matches(REPOSITORY).count() > 1 || place.text.contains("cuda-repo-");
    // NVIDIA has built its own images anew since, with the new key in them.
    let has_new = base.as_ref().is_some_and(|b| b.family == BaseFamily::NvidiaCuda);
    let (severity, then) = match (has_new, adds && updates) {
        (true, _) => (Severity::Note, "the base has the new one already".to_owned()),
        (false, true) => (
            Severity::Error,
            "`apt-get update` stops with \"NO_PUBKEY A4B469963BF863CC\", \"the repository … is not signed\""
                .to_owned(),
        ),
        (false, false) => (Severity::Warning, "packages signed since are refused".to_owned()),
    };
    let sure = command.when == When::Build && !command.guessed && row.is_sure();
    let severity = if sure { severity } else { lower(severity) };
    let message = format!("the key {} was withdrawn in April 2022: {then}", row.text);
    let found = Found { severity, ..Found::note(span, message) }
        .label("withdrawn")
        .help(row.instead.clone())
        .because(row.because());
    let Some(new) = row.successors.first() else { return found };
    let written = lint.reading.document.slice(span);
    let at = written.to_ascii_lowercase().find(&row.text.to_ascii_lowercase());
    match at {
        Some(at) if row.where_same.iter().any(|w| word.contains(w.as_str())) => {
            let start = span.start + at;
            let edit = Edit::new(Span::new(start, start + row.text.len()), new);
            found.safe_fix(format!("take the key {new}"), vec![edit])
        }
        _ => found,
    }
}

fn text_of(lint: &Lint<'_>, stage: usize) -> String {
    let document = &lint.reading.document;
    let stages = lint.chain(stage).into_iter().filter_map(|s| lint.reading.stages.get(s));
    let own = stages.filter_map(|s| document.instructions.get(s.instructions.clone())).flatten();
    own.map(|i| document.slice(i.span).to_ascii_lowercase()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "old-cuda-key";
    const URL: &str = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu1804/x86_64";

    fn file(base: &str, key: &str) -> String {
        format!(
            "FROM {base}\nRUN {key}\nRUN echo \"deb {URL} /\" > /etc/apt/sources.list.d/cuda.list && apt-get update\n"
        )
    }

    #[test]
    fn the_old_key_is_put_right_where_it_stands() {
        let text = file("ubuntu:18.04", &format!("apt-key adv --fetch-keys {URL}/7fa2af80.pub"));
        assert_eq!(blamed(RULE, &text, &[]), [format!("{URL}/7fa2af80.pub")]);
        assert_eq!(lint(RULE, &text, &[])[0].severity, Severity::Error);
        assert_eq!(
            mended(RULE, &text, &[]),
            file("ubuntu:18.04", &format!("apt-key adv --fetch-keys {URL}/3bf863cc.pub"))
        );
        let piped = file("ubuntu:18.04", &format!("curl -fsSL {URL}/7fa2af80.pub | apt-key add -"));
        assert!(mended(RULE, &piped, &[]).contains("3bf863cc.pub | apt-key add -"));
    }

    #[test]
    fn weaker_where_it_harms_less() {
        let severity = |text: &str| lint(RULE, text, &[]).first().map(|f| f.severity);
        let key = format!("apt-key adv --fetch-keys {URL}/7fa2af80.pub");
        assert_eq!(severity(&format!("FROM ubuntu:18.04\nRUN {key}\n")), Some(Severity::Warning));
        assert_eq!(severity(&file("nvidia/cuda:11.4.3-base-ubuntu18.04", &key)), Some(Severity::Note));
    }

    #[test]
    fn silent_where_it_goes_or_the_new_one_comes() {
        let ml =
            "https://developer.download.nvidia.com/compute/machine-learning/repos/ubuntu1804/x86_64/7fa2af80.pub";
        for key in [
            "apt-key del 7fa2af80".to_owned(),
            format!("apt-key adv --fetch-keys {URL}/3bf863cc.pub"),
            format!("apt-key adv --fetch-keys {URL}/7fa2af80.pub && apt-key adv --fetch-keys {URL}/3bf863cc.pub"),
            format!("wget {URL}/cuda-keyring_1.0-1_all.deb && apt-key adv --fetch-keys {URL}/7fa2af80.pub"),
            format!("apt-key adv --fetch-keys {ml}"),
            format!("apt-key adv --fetch-keys {URL}/7fa2af80.pub && apt-get --allow-unauthenticated update"),
            "true # 7fa2af80".to_owned(),
        ] {
            let text = file("ubuntu:18.04", &key);
            assert!(lint(RULE, &text, &[]).is_empty(), "{key}: {:?}", lint(RULE, &text, &[]));
        }
    }
}
