//! Every format tells the same findings: the same (rule, target, place).

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::model::{FilePlace, ImagePath};

/// Rule, target (empty: all), `file:line` of a Dockerfile and path in the image (empty: none).
type Told = BTreeSet<(String, String, String, String)>;

const ALL: [Format; 8] = [
    Format::Table,
    Format::Json,
    Format::Sarif,
    Format::Github,
    Format::Markdown,
    Format::Html,
    Format::Junit,
    Format::Gitlab,
];

/// The lines that tell details of a finding.
#[derive(Default)]
struct Details {
    targets: Vec<String>,
    line: String,
    path: String,
}

impl Details {
    fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut out = Self::default();
        for line in lines {
            match line.trim().split_once(": ") {
                Some(("targets", all)) => out.targets = all.split(", ").map(str::to_owned).collect(),
                Some(("in", place)) => out.line = place.to_owned(),
                Some(("at", path)) => out.path = path.to_owned(),
                _ => {}
            }
        }
        out
    }

    fn add(self, rule: &str, told: &mut Told) {
        let targets = if self.targets.is_empty() { vec![String::new()] } else { self.targets };
        for target in targets {
            told.insert((rule.to_owned(), target, self.line.clone(), self.path.clone()));
        }
    }
}

fn of_json(findings: &Value, told: &mut Told) {
    for finding in findings.as_array().unwrap() {
        let text = |pointer: &str| finding.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        let line = finding
            .pointer("/dockerfile/line")
            .map_or(String::new(), |l| format!("{}:{l}", text("/dockerfile/file")));
        let targets = finding["targets"].as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_owned());
        Details { targets: targets.collect(), line, path: text("/path") }.add(&text("/rule"), told);
    }
}

fn of_sarif(log: &Value, told: &mut Told) {
    for result in log.pointer("/runs/0/results").unwrap().as_array().unwrap() {
        if result.get("suppressions").is_some() {
            continue;
        }
        let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        let uri = text("/locations/0/physicalLocation/artifactLocation/uri");
        let line = result.pointer("/locations/0/physicalLocation/region/startColumn").map_or(String::new(), |_| {
            format!("{uri}:{}", result.pointer("/locations/0/physicalLocation/region/startLine").unwrap())
        });
        let targets = result.pointer("/properties/targets").and_then(Value::as_array).into_iter().flatten();
        let targets = targets.map(|t| t.as_str().unwrap().to_owned()).collect();
        Details { targets, line, path: text("/properties/path") }.add(&text("/ruleId"), told);
    }
}

/// Blocks that begin with `error[rule]`, at any depth.
fn of_blocks(text: &str, told: &mut Told) {
    let head = |line: &str| {
        let line = line.trim_start();
        let rest = ["error[", "warning[", "note["].iter().find_map(|word| line.strip_prefix(word))?;
        rest.split_once(']').map(|(rule, _)| rule.to_owned())
    };
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(rule) = head(line) {
            let details = lines[at + 1..].iter().take_while(|l| l.starts_with(' ') && head(l).is_none()).copied();
            Details::read(details).add(&rule, told);
        }
    }
}

fn of_github(text: &str, told: &mut Told) {
    for line in text.lines().filter(|l| l.starts_with("::")) {
        let (properties, message) = line[2..].split_once("::").unwrap();
        let rule = properties.split("title=").nth(1).unwrap();
        let message = message.replace("%0A", "\n").replace("%25", "%");
        Details::read(message.lines()).add(rule, told);
    }
}

fn of_markdown(text: &str, told: &mut Told) {
    for line in text.lines().filter(|l| l.starts_with("- **")) {
        let rule = line.split("<code>").nth(1).unwrap().split("</code>").next().unwrap();
        let line = markdown::read(line);
        Details::read(line.split("<br>").skip(1)).add(rule, told);
    }
}

fn of_junit(text: &str, told: &mut Told) {
    let document = roxmltree::Document::parse(text).unwrap();
    for node in document.descendants().filter(|n| ["failure", "error", "system-out"].contains(&n.tag_name().name()))
    {
        of_blocks(node.text().unwrap_or(""), told);
    }
}

fn of_html(text: &str, told: &mut Told) {
    let markup = text.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let document = roxmltree::Document::parse(markup).unwrap();
    let words = |node: roxmltree::Node<'_, '_>| -> String {
        node.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect()
    };
    for finding in document.descendants().filter(|n| n.attribute("data-rule").is_some()) {
        let mut details = Details::default();
        for term in finding.descendants().filter(|n| n.has_tag_name("dt")) {
            let told = term.next_sibling_element().unwrap();
            match words(term).as_str() {
                "targets" => details.targets = told.children().filter(|n| n.is_element()).map(words).collect(),
                "in" => details.line = told.first_element_child().map(words).unwrap(),
                "at" => details.path = told.first_element_child().map(words).unwrap(),
                _ => {}
            }
        }
        details.add(finding.attribute("data-rule").unwrap(), told);
    }
}

fn of_gitlab(issues: &Value, told: &mut Told) {
    for issue in issues.as_array().unwrap() {
        let text = |key: &str| issue[key].as_str().unwrap();
        Details::read(text("description").split(" · ").skip(1)).add(text("check_name"), told);
    }
}

fn told(format: Format, text: &str) -> Told {
    let mut told = Told::new();
    let json = || serde_json::from_str::<Value>(text).unwrap();
    match format {
        Format::Table => of_blocks(text, &mut told),
        Format::Json => of_json(&json()["findings"], &mut told),
        Format::Sarif => of_sarif(&json(), &mut told),
        Format::Github => of_github(text, &mut told),
        Format::Markdown => of_markdown(text, &mut told),
        Format::Html => of_html(text, &mut told),
        Format::Junit => of_junit(text, &mut told),
        Format::Gitlab => of_gitlab(&json(), &mut told),
    }
    told
}

/// Findings with a line, with a path, with both, with neither; for some targets and for all.
fn placed() -> Report {
    let mut report = sample::failing();
    let place = |line| FilePlace { file: "Dockerfile".into(), line, column: 1, end_line: line, end_column: 4 };
    report.findings[0].dockerfile = Some(place(3));
    let mut more = report.findings[1].clone();
    more.rule = "devel-in-final-stage".into();
    more.dockerfile = Some(place(5));
    report.findings.push(more);
    let mut core = report.findings[0].clone();
    (core.dockerfile, core.path) = (None, Some(ImagePath::new("opt/other.so")));
    core.targets = vec!["edge-5090".into(), "prod-a100".into()];
    report.findings.push(core);
    report
}

fn verbose() -> Style {
    Style { width: 100_000, verbose: 1, exit: Some(1), ..Style::default() }
}

#[test]
fn every_format_tells_the_same_of_images() {
    for report in [placed(), sample::failing(), sample::wide(), sample::untargeted()] {
        let of = |format: Format| {
            let mut out = Vec::new();
            write(&report, format, &verbose(), &mut out).unwrap();
            told(format, &String::from_utf8(out).unwrap())
        };
        let want = of(Format::Json);
        assert!(report.findings.is_empty() == want.is_empty());
        for format in ALL {
            let mut found = of(format);
            if format == Format::Table {
                // There a place has its column, too.
                found = found.into_iter().map(|(r, t, l, p)| (r, t, without_column(&l), p)).collect();
            }
            assert_eq!(found, want, "{format:?}");
        }
    }
}

fn without_column(place: &str) -> String {
    place.rsplit_once(':').map_or(String::new(), |(line, _)| line.to_owned())
}

#[test]
fn every_format_tells_the_same_of_dockerfiles() {
    let mut report = sample::lint();
    // What is ignored is told as such, and is no finding.
    report.waived.clear();
    let of = |format: Format| {
        let mut out = Vec::new();
        report.write(format, &verbose(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let want = told(Format::Json, &of(Format::Json));
    assert_eq!(want.len(), report.findings.len());
    for format in ALL.into_iter().filter(|f| *f != Format::Table) {
        assert_eq!(told(format, &of(format)), want, "{format:?}");
    }
    // The table shows the line itself.
    let table = of(Format::Table);
    for finding in &report.findings {
        assert!(table.contains(&format!("{}[{}]", finding.severity, finding.rule)), "{}", finding.rule);
        if let Some(place) = &finding.dockerfile {
            assert!(table.contains(&format!("{}:{}:{}", place.file, place.line, place.column)), "{place:?}");
        }
    }
}
