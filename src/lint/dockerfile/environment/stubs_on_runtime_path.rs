//! The toolkit's stub of libcuda on LD_LIBRARY_PATH.

use crate::lint::dockerfile::wheels::brings_another;
use crate::lint::dockerfile::{Found, Lint, Set};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let env = lint.image_env();
    let Some(set) = env.iter().find(|s| s.name == "LD_LIBRARY_PATH") else { return };
    let Some((folder, sure)) = stubs(set) else { return };
    let Some(last) = lint.reading.last else { return };
    // A runtime flavour has no such folder.
    let absent = lint.base(last).is_some_and(|b| b.compiler == Some(false)) && !brings_another(lint, last, None);
    let end = "CUDA programs that open it stop with \"CUDA driver is a stub library\" (34)";
    let message =
        format!("{folder} on LD_LIBRARY_PATH puts the toolkit's stub of libcuda before the host's driver: {end}");
    let found = match (sure, linked(lint)) {
        _ if absent => Found::note(
            set.value_span(),
            format!(
                "{folder} on LD_LIBRARY_PATH: this base has no such folder; with a devel base the stub of libcuda in it \
                     would go before the host's driver"
            ),
        ),
        (true, true) => Found::error(set.value_span(), message),
        _ => Found::warning(set.value_span(), message),
    };
    out.push(
        found
            .label("a stub before the driver")
            .help("drop the folder, or name it in LIBRARY_PATH, which only linkers read; for one command, set it in front of it"),
    );
}

/// The folder, and whether it is written out.
fn stubs(set: &Set<'_>) -> Option<(String, bool)> {
    let is = |entry: &str| entry.trim_end_matches('/').ends_with("/stubs");
    if let Some(value) = set.value.known() {
        return value.split(':').find(|e| is(e)).map(|e| (e.to_owned(), true));
    }
    // What a variable brings is not known, but this folder stands in the text.
    let raw = set.pair.value.as_ref()?.text.trim_matches(['"', '\'']);
    let entry = raw.split(':').find(|e| is(e))?;
    Some((entry.to_owned(), !entry.contains('$')))
}

/// Whether the name that programs ask for is made there: a stub is only `libcuda.so` by itself.
fn linked(lint: &Lint<'_>) -> bool {
    lint.build_commands().any(|(_, c)| {
        let mut words = c.args().iter().filter_map(|a| a.text.value.known());
        matches!(c.program(), Some("ln" | "cp"))
            && words.clone().any(|w| w.contains("stubs"))
            && words.any(|w| w.ends_with("libcuda.so.1"))
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "stubs-on-runtime-path";
    const BASE: &str = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n";
    const ENV: &str = "ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:$LD_LIBRARY_PATH\n";

    #[test]
    fn a_stub_before_the_driver() {
        let link = "RUN ln -s /usr/local/cuda/lib64/stubs/libcuda.so /usr/local/cuda/lib64/stubs/libcuda.so.1\n";
        let file = format!("{BASE}{link}{ENV}");
        assert_eq!(blamed(RULE, &file, &[]), ["/usr/local/cuda/lib64/stubs:$LD_LIBRARY_PATH"]);
        assert_eq!(lint(RULE, &file, &[])[0].severity, Severity::Error);
        assert_eq!(lint(RULE, &format!("{BASE}{ENV}"), &[])[0].severity, Severity::Warning);
        let unknown = format!("FROM example.com/base:1\n{link}{ENV}");
        assert_eq!(lint(RULE, &unknown, &[])[0].severity, Severity::Error);
        let runtime = format!("FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n{ENV}");
        assert_eq!(lint(RULE, &runtime, &[])[0].severity, Severity::Note);
    }

    #[test]
    fn for_linking_only() {
        for quiet in [
            format!("{BASE}ENV LIBRARY_PATH=/usr/local/cuda/lib64/stubs\n"),
            format!("{BASE}RUN LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs make\n"),
            format!("{BASE}ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64\n"),
            format!("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS b\n{ENV}{BASE}"),
            format!("{BASE}{ENV}RUN make\nENV LD_LIBRARY_PATH=/usr/local/cuda/lib64\n"),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
