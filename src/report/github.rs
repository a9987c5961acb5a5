//! Annotations of GitHub Actions: lines that the runner takes for notes about files.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::PolicyReport;
use super::table::tally_of;
use super::text::{clean, count, rooted};
use super::told::details;
use crate::model::{Confidence, Finding, Severity, Verdict};

/// GitHub shows so many annotations of each level that a step makes.
const SHOWN: usize = 10;

const LEVELS: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];

/// The worst of each level, however many reports there are, and how many there are in all.
#[derive(Debug, Default)]
pub struct Annotations {
    of_level: [Level; LEVELS.len()],
    /// A line for each of several images.
    images: Vec<String>,
    /// What the policy kept from counting.
    weakened: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Level {
    worst: Vec<(Rank, String)>,
    count: usize,
}

type Rank = (Verdict, std::cmp::Reverse<Confidence>);

impl Annotations {
    /// `base` goes before the names of files; `image`: the one of several that they are of.
    pub fn add(&mut self, findings: &[Finding], base: &str, image: Option<&str>) {
        for (severity, level) in LEVELS.into_iter().zip(&mut self.of_level) {
            for finding in findings.iter().filter(|f| f.severity == severity) {
                level.count += 1;
                let rank = (finding.verdict, std::cmp::Reverse(finding.confidence));
                let place = level.worst.partition_point(|(r, _)| *r <= rank);
                if place < SHOWN {
                    level.worst.insert(place, (rank, annotation(finding, base, image)));
                    level.worst.truncate(SHOWN);
                }
            }
        }
    }

    /// What a policy kept from counting, of however many reports told once.
    pub fn policy(&mut self, policy: Option<&PolicyReport>) {
        self.weakened.extend(policy.iter().flat_map(|p| &p.weakened).map(|what| clean(what)));
    }

    /// A line that says how one of several images does.
    pub fn tell(&mut self, line: &str) {
        // No name begins a line: it might be taken for a command.
        self.images.push(format!("- {line}\n"));
    }

    /// The annotations, and a line that counts all of them.
    pub fn finish(&self, more: &str) -> String {
        let mut out = String::new();
        if !self.weakened.is_empty() {
            let mut message = "The policy counts, not what this change says:".to_owned();
            self.weakened.iter().for_each(|what| message.push_str(&format!("\n{what}")));
            out.push_str(&format!("::warning title=policy::{}\n", data(&message)));
        }
        // It takes the place of a warning.
        let room = [SHOWN, SHOWN - usize::from(!self.weakened.is_empty()), SHOWN];
        let shown = |(level, room): (&Level, usize)| level.worst.len().min(room);
        for (level, room) in self.of_level.iter().zip(room) {
            level.worst.iter().take(room).for_each(|(_, text)| out.push_str(text));
        }
        self.images.iter().for_each(|line| out.push_str(line));
        out.push_str(&tally_of(self.of_level.each_ref().map(|l| l.count)));
        let words = [("error", "errors"), ("warning", "warnings"), ("note", "notes")];
        let hidden = self.of_level.iter().zip(room).map(|(l, room)| l.count - shown((l, room)));
        let hidden = hidden.zip(words).filter(|(n, _)| *n > 0);
        let rest: Vec<String> = hidden.map(|(n, (one, many))| count(n, one, many)).collect();
        if !rest.is_empty() {
            let _ = write!(out, "; {} not annotated, as GitHub shows {SHOWN} of each level", rest.join(", "));
        }
        if !more.is_empty() {
            let _ = write!(out, "; {more}");
        }
        out.push('\n');
        out
    }
}

/// The worst ten of each level of one report, and one line that counts all.
pub fn render(findings: &[Finding], base: &str, policy: Option<&PolicyReport>, more: &str) -> String {
    let mut all = Annotations::default();
    all.policy(policy);
    all.add(findings, base, None);
    all.finish(more)
}

fn annotation(finding: &Finding, base: &str, image: Option<&str>) -> String {
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
    let of = image.map_or(String::new(), |image| format!("{}: ", clean(image)));
    let mut message = format!("{of}{}", clean(&finding.message));
    for detail in details(finding, base) {
        // Writing to a String cannot fail.
        let _ = write!(message, "\n{detail}");
    }
    format!("::{command} {}::{}\n", properties.join(","), data(&message))
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
    use crate::model::FilePlace;

    fn finding(severity: Severity, message: &str) -> Finding {
        let place = FilePlace { file: "a,b/Dockerfile".into(), line: 3, column: 5, end_line: 3, end_column: 9 };
        Finding { dockerfile: Some(place), ..Finding::new("some-rule", severity, Verdict::Warn, message) }
    }

    #[test]
    fn values_are_escaped_as_the_runner_reads_them() {
        let text =
            render(&[finding(Severity::Error, "100 % wrong: a,b\n::set-output name=x::y")], "sub/", None, "");
        let line = text.lines().next().unwrap();
        assert_eq!(
            line,
            "::error file=sub/a%2Cb/Dockerfile,line=3,endLine=3,col=5,endColumn=9,title=some-rule::\
             100 %25 wrong: a,b\\x0a::set-output name=x::y%0Ain: sub/a,b/Dockerfile:3"
        );
        assert_eq!(text.lines().count(), 2, "nothing of a message makes a line of its own");
    }

    #[test]
    fn what_a_policy_kept_from_counting_comes_first_and_takes_a_place() {
        let digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000".parse().unwrap();
        let policy = PolicyReport { digest, weakened: vec!["rule `x` is off\n::error::y".into(), "100 %".into()] };
        let many: Vec<Finding> = (0..10).map(|n| finding(Severity::Warning, &n.to_string())).collect();
        let text = render(&many, "", Some(&policy), "");
        assert_eq!(
            text.lines().next().unwrap(),
            "::warning title=policy::The policy counts, not what this change says:%0A100 %25%0Arule `x` is off\\x0a::error::y"
        );
        assert_eq!(text.lines().filter(|l| l.starts_with("::warning")).count(), 10, "GitHub shows no more");
        assert!(
            text.ends_with("10 warnings; 1 warning not annotated, as GitHub shows 10 of each level\n"),
            "{text}"
        );
    }

    #[test]
    fn the_rest_is_counted() {
        let many: Vec<Finding> = (0..13)
            .flat_map(|n| [finding(Severity::Error, &n.to_string()), finding(Severity::Note, "x")])
            .chain([finding(Severity::Warning, "w")])
            .collect();
        let text = render(&many, "", None, "");
        let of = |word: &str| text.lines().filter(|l| l.starts_with(word)).count();
        assert_eq!((of("::error"), of("::warning"), of("::notice")), (10, 1, 10));
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            "13 errors, 1 warning, 13 notes; 3 errors, 3 notes not annotated, as GitHub shows 10 of each level"
        );
    }

    #[test]
    fn of_several_images_the_worst_ten_are_told() {
        let mut all = Annotations::default();
        for image in ["a:1", "b:1", "::error::c"] {
            let mut findings: Vec<Finding> = (0..6).map(|_| finding(Severity::Error, "m")).collect();
            findings[5].verdict = Verdict::Fail;
            all.add(&findings, "", Some(image));
            all.tell(&format!("{image}: fail"));
        }
        let text = all.finish("");
        let errors: Vec<&str> = text.lines().filter(|l| l.starts_with("::")).collect();
        assert_eq!(errors.len(), 10);
        for (line, image) in errors.iter().zip(["a:1: m", "b:1: m", "::error::c: m"]) {
            assert!(line.contains(image), "the worst first: {line}");
        }
        assert!(
            text.contains("\n- b:1: fail\n")
                && text.ends_with("18 errors; 8 errors not annotated, as GitHub shows 10 of each level\n"),
            "{text}"
        );
    }
}
