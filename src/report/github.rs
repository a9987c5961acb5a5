//! Annotations of GitHub Actions: lines that the runner takes for notes about files.

use std::fmt::Write;

use super::table::tally;
use super::text::{clean, count, rooted};
use crate::model::{Finding, Severity};

/// GitHub shows so many annotations of each level that a step makes.
const SHOWN: usize = 10;

/// The worst ten of each level, and one line that counts all. `base` goes before the names of files.
pub fn render(findings: &[Finding], base: &str, more: &str) -> String {
    let mut out = String::new();
    let mut rest = Vec::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Note] {
        let mut of_level: Vec<&Finding> = findings.iter().filter(|f| f.severity == severity).collect();
        of_level.sort_by_key(|f| (f.verdict, std::cmp::Reverse(f.confidence)));
        for finding in of_level.iter().take(SHOWN) {
            annotation(&mut out, finding, base);
        }
        let hidden = of_level.len().saturating_sub(SHOWN);
        if hidden > 0 {
            let (one, many) = match severity {
                Severity::Error => ("error", "errors"),
                Severity::Warning => ("warning", "warnings"),
                Severity::Note => ("note", "notes"),
            };
            rest.push(count(hidden, one, many));
        }
    }
    out.push_str(&tally(findings));
    if !rest.is_empty() {
        let _ = write!(out, "; {} not annotated, as GitHub shows {SHOWN} of each level", rest.join(", "));
    }
    if !more.is_empty() {
        let _ = write!(out, "; {more}");
    }
    out.push('\n');
    out
}

fn annotation(out: &mut String, finding: &Finding, base: &str) {
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(place) = &finding.dockerfile {
        properties.push(format!("file={}", property(&rooted(base, &clean(&place.file)))));
        properties.push(format!("line={}", place.line));
        properties.push(format!("endLine={}", place.end_line));
        // Columns over several lines are not understood there.
        if place.line == place.end_line {
            properties.push(format!("col={}", place.column));
            properties.push(format!("endColumn={}", place.end_column));
        }
    }
    properties.push(format!("title={}", property(&finding.rule)));
    let mut message = clean(&finding.message);
    if let (None, Some(path)) = (&finding.dockerfile, &finding.path) {
        let _ = write!(message, "\nat {path}");
    }
    if let Some(help) = &finding.help {
        let _ = write!(message, "\nhelp: {}", clean(help));
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out, "::{command} {}::{}", properties.join(","), data(&message));
}

/// As the runner unescapes the text behind `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// As it unescapes a property's value.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FilePlace, Verdict};

    fn finding(severity: Severity, message: &str) -> Finding {
        let place = FilePlace { file: "a,b/Dockerfile".into(), line: 3, column: 5, end_line: 3, end_column: 9 };
        Finding { dockerfile: Some(place), ..Finding::new("some-rule", severity, Verdict::Warn, message) }
    }

    #[test]
    fn values_are_escaped_as_the_runner_reads_them() {
        let text = render(&[finding(Severity::Error, "100 % wrong: a,b\n::set-output name=x::y")], "sub/", "");
        let line = text.lines().next().unwrap();
        assert_eq!(
            line,
            "::error file=sub/a%2Cb/Dockerfile,line=3,endLine=3,col=5,endColumn=9,title=some-rule::\
             100 %25 wrong: a,b\\x0a::set-output name=x::y"
        );
        assert_eq!(text.lines().count(), 2, "nothing of a message makes a line of its own");
    }

    #[test]
    fn the_rest_is_counted() {
        let many: Vec<Finding> = (0..13)
            .flat_map(|n| [finding(Severity::Error, &n.to_string()), finding(Severity::Note, "x")])
            .chain([finding(Severity::Warning, "w")])
            .collect();
        let text = render(&many, "", "");
        let of = |word: &str| text.lines().filter(|l| l.starts_with(word)).count();
        assert_eq!((of("::error"), of("::warning"), of("::notice")), (10, 1, 10));
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            "13 errors, 1 warning, 13 notes; 3 errors, 3 notes not annotated, as GitHub shows 10 of each level"
        );
    }
}
