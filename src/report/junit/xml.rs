//! The few elements of JUnit's XML, well-formed whatever they hold.

use super::{Case, Outcome, Suite};

/// All suites with their sums.
pub(super) fn render(suites: &[Suite]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"imagelint\"");
    let all = suites.iter().map(Sums::of).fold(Sums::default(), Sums::and);
    for (name, value) in [("tests", all.tests), ("failures", all.failures), ("errors", all.errors)] {
        attribute(&mut out, name, &value.to_string());
    }
    out.push_str(">\n");
    suites.iter().for_each(|s| suite(&mut out, s));
    out.push_str("</testsuites>\n");
    out
}

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Sums {
    fn of(suite: &Suite) -> Self {
        let of = |wanted: Outcome| suite.cases.iter().filter(|c| c.outcome == wanted).count();
        Self {
            tests: suite.cases.len(),
            failures: of(Outcome::Failure),
            errors: of(Outcome::Error),
            skipped: of(Outcome::Skipped),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            tests: self.tests + other.tests,
            failures: self.failures + other.failures,
            errors: self.errors + other.errors,
            skipped: self.skipped + other.skipped,
        }
    }
}

fn suite(out: &mut String, suite: &Suite) {
    let sums = Sums::of(suite);
    out.push_str("  <testsuite");
    attribute(out, "name", &suite.name);
    for (name, value) in
        [("tests", sums.tests), ("failures", sums.failures), ("errors", sums.errors), ("skipped", sums.skipped)]
    {
        attribute(out, name, &value.to_string());
    }
    if let Some(seconds) = suite.seconds {
        attribute(out, "time", &format!("{seconds:.3}"));
    }
    out.push_str(">\n");
    suite.cases.iter().for_each(|c| case(out, c));
    out.push_str("  </testsuite>\n");
}

fn case(out: &mut String, case: &Case) {
    out.push_str("    <testcase");
    attribute(out, "classname", &case.class);
    attribute(out, "name", &case.name);
    let word = match case.outcome {
        Outcome::Passed if case.body.is_empty() => {
            out.push_str("/>\n");
            return;
        }
        Outcome::Passed => None,
        Outcome::Failure => Some("failure"),
        Outcome::Error => Some("error"),
        Outcome::Skipped => Some("skipped"),
    };
    out.push_str(">\n");
    if let Some(word) = word {
        out.push_str(&format!("      <{word}"));
        attribute(out, "message", &case.message);
        attribute(out, "type", &case.kind);
        // Text within `skipped` is not read everywhere.
        match case.outcome {
            Outcome::Failure | Outcome::Error if !case.body.is_empty() => {
                out.push('>');
                text(out, &case.body);
                out.push_str(&format!("</{word}>\n"));
            }
            Outcome::Failure | Outcome::Error | Outcome::Skipped | Outcome::Passed => out.push_str("/>\n"),
        }
    }
    if matches!(case.outcome, Outcome::Skipped | Outcome::Passed) && !case.body.is_empty() {
        out.push_str("      <system-out>");
        text(out, &case.body);
        out.push_str("</system-out>\n");
    }
    out.push_str("    </testcase>\n");
}

fn attribute(out: &mut String, name: &str, value: &str) {
    out.push_str(&format!(" {name}=\""));
    // As they are, they would be read as blanks.
    escape(out, value, "&#10;", "&#9;");
    out.push('"');
}

fn text(out: &mut String, value: &str) {
    escape(out, value, "\n", "\t");
}

/// Characters that XML cannot hold are dropped.
fn escape(out: &mut String, value: &str, line_feed: &str, tab: &str) {
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str(line_feed),
            '\t' => out.push_str(tab),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_dropped() {
        let mut out = String::new();
        let evil = "a<b>&\"'\u{0}\u{1b}[2J\u{7f}\u{85}\u{ffff}]]>\r\n\té";
        text(&mut out, evil);
        assert_eq!(out, "a&lt;b&gt;&amp;&quot;'[2J]]&gt;\n\té");
        out.clear();
        attribute(&mut out, "a", evil);
        assert_eq!(out, " a=\"a&lt;b&gt;&amp;&quot;'[2J]]&gt;&#10;&#9;é\"");
    }
}
