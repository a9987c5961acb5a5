//! Libraries of the driver that NVIDIA_DRIVER_CAPABILITIES leaves out, though something uses them.

use super::pairs;
use crate::catalog::uses::CapabilityUser;
use crate::dockerfile::commands::Asked;
use crate::dockerfile::shell::When;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::{Found, Lint};

/// Where a user of a capability shows.
struct Use<'a> {
    user: &'a CapabilityUser,
    span: Span,
    what: String,
    maybe: bool,
}

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(last) = lint.reading.last else { return };
    let scope = lint.reading.ends.get(last);
    let Some(variable) = scope.and_then(|s| s.get("NVIDIA_DRIVER_CAPABILITIES")) else { return };
    let Some(value) = variable.value.known().filter(|v| !v.trim().is_empty()) else { return };
    let has = |capability: &str| value.split(',').any(|c| c.trim() == capability || c.trim() == "all");
    let env = lint.image_env();
    let set = env.iter().find(|s| s.name == "NVIDIA_DRIVER_CAPABILITIES");
    let mut told: Vec<&str> = Vec::new();
    for one in uses(lint) {
        let capability = one.user.capability.as_str();
        if has(capability) || told.contains(&capability) {
            continue;
        }
        told.push(capability);
        let by = match set {
            Some(_) => String::new(),
            None => " of the base".to_owned(),
        };
        let message = format!(
            "{} ({}) opens libraries of the driver that the container gets only with the capability `{capability}`, and \
             NVIDIA_DRIVER_CAPABILITIES={value}{by} leaves it out: \"cannot open shared object file\"",
            one.user.name, one.what
        );
        let span = set.map_or(one.span, |s| s.value_span());
        let mut found = if one.maybe { Found::note(span, message) } else { Found::warning(span, message) };
        found = found.label(format!("without `{capability}`")).because(one.user.because());
        if let Some(set) = set {
            found = found.also(one.span, "used here").help(format!("add it: {value},{capability}"));
            let literal = set.pair.value.as_ref().is_some_and(|v| !v.text.contains('$'));
            if let Some(edits) = pairs::appended(set, &format!(",{capability}")).filter(|_| literal) {
                found = found.safe_fix(format!("add `{capability}`"), edits);
            }
        } else {
            found = found.help(format!("ENV NVIDIA_DRIVER_CAPABILITIES={value},{capability}"));
        }
        out.push(found);
    }
}

fn uses<'a>(lint: &'a Lint<'_>) -> Vec<Use<'a>> {
    let users = lint.catalog.uses().capability_users();
    let mut out = Vec::new();
    for install in &lint.asks.pip {
        let Some(command) = lint.reading.commands.get(install.command).filter(|c| lint.built(c.instruction)) else {
            continue;
        };
        for requirement in &install.requirements {
            let by_url = |u: &&CapabilityUser| requirement.url.as_deref().is_some_and(|url| u.is_repository(url));
            if let Some(user) = users.iter().find(|u| u.is_package(&requirement.name) || by_url(u)) {
                let span = match &requirement.asked {
                    Asked::Here(span) => *span,
                    Asked::File { .. } => command.span,
                };
                let maybe = command.when == When::BuildMaybe || requirement.marker.is_some();
                out.push(Use { user, span, what: requirement.name.clone(), maybe });
            }
        }
    }
    for command in lint.reading.commands.iter().filter(|c| lint.built(c.instruction) && !c.guessed) {
        for word in &command.words {
            let Some(text) = word.text.value.known() else { continue };
            if let Some(user) = users.iter().find(|u| u.is_said(text) || u.is_repository(text)) {
                let what = text.chars().take(60).collect();
                out.push(Use { user, span: word.span, what, maybe: command.when == When::BuildMaybe });
            }
        }
    }
    for set in lint.image_env() {
        let Some(text) = set.value.known() else { continue };
        if let Some(user) = users.iter().find(|u| u.is_said(text)) {
            out.push(Use { user, span: set.pair.span, what: set.name.to_owned(), maybe: false });
        }
    }
    // What surely is used first.
    out.sort_by_key(|u| (u.maybe, u.span));
    out
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "capability-missing";
    const ENV: &str = "FROM ubuntu\nENV NVIDIA_DRIVER_CAPABILITIES=compute,utility\n";

    #[test]
    fn a_capability_that_is_used_and_not_asked_for() {
        let file = format!("{ENV}RUN pip install PyNvVideoCodec\n");
        assert_eq!(blamed(RULE, &file, &[]), ["compute,utility"]);
        assert!(mended(RULE, &file, &[]).contains("NVIDIA_DRIVER_CAPABILITIES=compute,utility,video\n"));
        let ffmpeg = format!("{ENV}RUN ./configure --enable-nvenc && make\n");
        assert_eq!(blamed(RULE, &ffmpeg, &[]).len(), 1);
        let start = format!("{ENV}CMD [\"ffmpeg\", \"-c:v\", \"h264_nvenc\"]\n");
        assert_eq!(blamed(RULE, &start, &[]).len(), 1);
        let icd = format!("{ENV}ENV VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/nvidia_icd.json\n");
        assert!(mended(RULE, &icd, &[]).contains("compute,utility,graphics"));
        let quoted =
            "FROM ubuntu\nENV NVIDIA_DRIVER_CAPABILITIES=\"compute,utility\"\nRUN pip install pynvvideocodec\n";
        assert!(mended(RULE, quoted, &[]).contains("\"compute,utility,video\""));
    }

    #[test]
    fn the_base_s_own_value() {
        let file = "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install PyNvVideoCodec\n";
        let found = lint(RULE, file, &[]);
        assert_eq!((found[0].severity, found[0].fix.is_none()), (Severity::Warning, true));
    }

    #[test]
    fn what_is_there_or_not_used() {
        for quiet in [
            "FROM ubuntu\nENV NVIDIA_DRIVER_CAPABILITIES=compute,video\nRUN pip install PyNvVideoCodec\n"
                .to_owned(),
            "FROM ubuntu\nENV NVIDIA_DRIVER_CAPABILITIES=all\nRUN pip install PyNvVideoCodec\n".to_owned(),
            "FROM ubuntu\nRUN pip install PyNvVideoCodec\n".to_owned(),
            "FROM ubuntu\nARG C\nENV NVIDIA_DRIVER_CAPABILITIES=$C\nRUN pip install PyNvVideoCodec\n".to_owned(),
            format!("{ENV}RUN apt-get install -y ffmpeg libgl1 libvulkan1\n"),
            format!("{ENV}# h264_nvenc\nRUN make\n"),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
