//! What rules found as findings of a report: places in lines and columns, comments that ignore, fixes as edits.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::ignore::{Covered, Ignores, instruction_at};
use super::{CHECKS, Check, Fix, Found, Lint, Loudness, can_run, run};
use crate::catalog::Catalog;
use crate::config::{Date, Fleet, Level, Waiver};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Document;
use crate::lint::{report::tool, rules, stale, waive};
use crate::model::{
    Accepted, AcceptedBy, Digest, EditReport, FilePlace, Finding, FixReport, Gap, ImagePath, Maker, Related,
    Severity, Verdict,
};
use crate::report::Report;
use crate::report::lint::{LintGap, LintReport};

/// Version of the JSON schema.
const SCHEMA: u32 = 1;

/// How loud each rule is asked to be, by its id.
pub type Levels = BTreeMap<String, Loudness>;

/// What was found in one file.
#[derive(Debug, Clone)]
pub struct FileReport {
    pub file: String,
    pub source: Arc<str>,
    pub findings: Vec<Finding>,
    /// What comments in the file cover.
    pub ignored: Vec<Finding>,
    pub gaps: Vec<LintGap>,
    /// Comments that a policy does not let count.
    pub overruled: Vec<String>,
}

/// The levels that a fleet file gives.
pub fn levels(fleet: &Fleet) -> Levels {
    let loudness = |level: &Level| match level {
        Level::Off => Loudness::Off,
        Level::Note => Loudness::At(Severity::Note),
        Level::Warning => Loudness::At(Severity::Warning),
        Level::Error => Loudness::At(Severity::Error),
    };
    fleet.levels.iter().map(|(rule, level)| (rule.clone(), loudness(level))).collect()
}

/// Whether a rule of Dockerfiles has its say over this.
fn speaks(check: &Check, lint: &Lint<'_>, levels: &Levels) -> bool {
    let loudness = levels.get(check.id).copied().unwrap_or(if check.on { Loudness::On } else { Loudness::Off });
    loudness != Loudness::Off && can_run(check.needs, lint)
}

/// Runs the rules over one file. `name` is what the report calls it.
pub fn file(name: &str, lint: &Lint<'_>, levels: &Levels) -> FileReport {
    let document = &lint.reading.document;
    let told = Teller { name, document };
    let mut ignores = Ignores::read(lint.reading);
    let mut findings: Vec<(Span, Finding)> = Vec::new();
    let mut ignored = Vec::new();
    let mut sort = |id: &'static str, found: &Found, ignores: &mut Ignores| {
        let mut finding = told.finding(id, found);
        match ignores.cover(lint.reading, id, found.span) {
            None => findings.push((found.span, finding)),
            Some(covered) => {
                finding.accepted = Some(told.accepted(covered));
                ignored.push((found.span, finding));
            }
        }
    };
    for (check, found) in run(lint, levels) {
        sort(check.id, &found, &mut ignores);
    }
    let known: Vec<&'static str> = rules::RULES.iter().map(|r| r.id).collect();
    let runs =
        |id: &str| !id.starts_with("ignore-") && CHECKS.iter().any(|c| c.id == id && speaks(c, lint, levels));
    for (id, mut found) in ignores.complaints(document, &known, &runs) {
        match levels.get(id) {
            Some(Loudness::Off) => continue,
            Some(Loudness::At(severity)) => found.severity = *severity,
            Some(Loudness::On) | None => {}
        }
        sort(id, &found, &mut ignores);
    }
    FileReport {
        file: name.to_owned(),
        source: document.text.as_str().into(),
        findings: numbered(findings),
        ignored: numbered(ignored),
        gaps: gaps(name, lint),
        overruled: Vec::new(),
    }
}

/// Findings that comments accept stand all the same: what is judged must not be what says how.
pub fn overrule_comments(report: &mut FileReport) {
    for mut finding in std::mem::take(&mut report.ignored) {
        if let Some(accepted) = finding.accepted.take() {
            let place = format!("{}:{}", report.file, accepted.line);
            report.overruled.push(format!("{place}: a comment accepts {}", finding.rule));
            finding.because.push(format!("the comment in line {} that accepts it does not count", accepted.line));
        }
        report.findings.push(finding);
    }
    report.findings.sort_by(|a, b| (&a.dockerfile, &a.rule).cmp(&(&b.dockerfile, &b.rule)));
}

/// In the order of the file; those alike by rule and instruction get numbers.
fn numbered(mut findings: Vec<(Span, Finding)>) -> Vec<Finding> {
    findings.sort_by(|(a, x), (b, y)| {
        (a.start, &x.rule, a.end, &x.message).cmp(&(b.start, &y.rule, b.end, &y.message))
    });
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut out = Vec::new();
    for (_, mut finding) in findings {
        if let Some(print) = &mut finding.fingerprint {
            let times = seen.entry(print.clone()).and_modify(|n| *n += 1).or_insert(1);
            if *times > 1 {
                print.push_str(&format!(":{times}"));
            }
        }
        out.push(finding);
    }
    out
}

fn gaps(name: &str, lint: &Lint<'_>) -> Vec<LintGap> {
    let document = &lint.reading.document;
    let gap = |span: &Span, why: String| LintGap {
        path: name.to_owned(),
        line: document.lines.line(span.start),
        offset: span.start,
        why,
    };
    let unparsed = lint.reading.unparsed.iter().map(|span| {
        gap(span, "this script could not be parsed; its commands are guessed from its words".to_owned())
    });
    let missing = lint.asks.missing.iter().map(|(file, span)| {
        gap(span, format!("`{file}` was not found or not understood, so what it asks for is not known"))
    });
    let mut out: Vec<LintGap> = unparsed.chain(missing).collect();
    out.sort();
    out.dedup();
    out
}

/// Joins what was found in several files, and holds it against the fleet's waivers. `base` is what goes before the names
/// of files where they are read from the repository's root: empty, or `docker/`.
pub fn join(
    mut files: Vec<FileReport>,
    base: &str,
    fleet: &Fleet,
    catalog: &Catalog,
    levels: &Levels,
    today: Date,
) -> LintReport {
    files.sort_by(|a, b| a.file.cmp(&b.file));
    let name = |f: &FileReport| [ImagePath::new(&f.file), ImagePath::new(format!("{base}{}", f.file))];
    let names: Vec<ImagePath> = files.iter().flat_map(name).collect();
    let mut all = Vec::new();
    let mut ignored = Vec::new();
    let mut gaps = Vec::new();
    let mut sources = BTreeMap::new();
    let mut overruled = Vec::new();
    for file in files {
        overruled.extend(file.overruled);
        all.extend(file.findings);
        ignored.extend(file.ignored);
        gaps.extend(file.gaps);
        sources.insert(file.file, file.source);
    }
    all.extend(stale::finding(catalog, fleet, today));
    let concerns = |waiver: &Waiver| concerns(waiver, fleet, levels, &names);
    let (findings, mut waived) = waive::apply(all, fleet, today, base, &concerns);
    waived.extend(ignored);
    waived.sort_by(|a, b| (&a.dockerfile, &a.rule).cmp(&(&b.dockerfile, &b.rule)));
    let against = |r: &rules::Rule| CHECKS.iter().any(|c| c.id == r.id && runs(c, fleet, levels));
    let rules = rules::texts(against, findings.iter().chain(&waived));
    LintReport {
        schema: SCHEMA,
        tool: tool(catalog),
        findings,
        waived,
        known: None,
        resolved: None,
        gaps,
        sources,
        base: base.to_owned(),
        rules,
        policy: None,
        overruled,
    }
}

/// Adds what is said of a Dockerfile to the report of the image that it made.
pub fn add_to(report: &mut Report, file: LintReport) {
    report.overruled.extend(file.overruled);
    // The image's report says it of both.
    let own = |f: &Finding| f.rule != stale::RULE;
    report.findings.extend(file.findings.into_iter().filter(own));
    report.waived.extend(file.waived.into_iter().filter(own));
    let gap = |gap: LintGap| Gap::note(ImagePath::new(&gap.path), format!("line {}: {}", gap.line, gap.why));
    report.gaps.extend(file.gaps.into_iter().map(gap));
    let rules: Vec<&str> = report.rules.iter().chain(&file.rules).map(|r| r.id).collect();
    report.rules = rules::texts(|r| rules.contains(&r.id), report.findings.iter().chain(&report.waived));
    report.base = file.base;
    report.sources.extend(file.sources);
}

/// Whether a waiver could have covered something of these files: else that it did not tells nothing.
fn concerns(waiver: &Waiver, fleet: &Fleet, levels: &Levels, files: &[ImagePath]) -> bool {
    CHECKS.iter().any(|c| c.id == waiver.rule && runs(c, fleet, levels))
        && waiver.path.as_ref().is_none_or(|glob| files.iter().any(|f| glob.matches(f)))
}

/// Whether files alone are held against a rule.
fn runs(check: &Check, fleet: &Fleet, levels: &Levels) -> bool {
    let asked = match levels.get(check.id) {
        Some(Loudness::Off) => false,
        Some(_) => true,
        None => check.on,
    };
    let of = |maker| fleet.targets.iter().filter(move |t| t.maker() == maker);
    asked
        && match check.needs {
            super::Needs::File => true,
            super::Needs::Target => of(Maker::Nvidia).next().is_some(),
            super::Needs::AmdTarget => of(Maker::Amd).next().is_some(),
            super::Needs::Driver => of(Maker::Nvidia).any(|t| t.driver.is_some()),
            super::Needs::Image => false,
        }
}

/// Puts places of one file into words.
pub(super) struct Teller<'a> {
    pub(super) name: &'a str,
    pub(super) document: &'a Document,
}

impl Teller<'_> {
    fn finding(&self, id: &'static str, found: &Found) -> Finding {
        let verdict = match found.severity {
            Severity::Error => Verdict::Fail,
            Severity::Warning => Verdict::Warn,
            Severity::Note => Verdict::Ok,
        };
        let mut targets = found.targets.clone();
        targets.sort();
        targets.dedup();
        let related = |(span, words): &(Span, String)| Related { place: self.place(*span), message: words.clone() };
        Finding {
            confidence: found.confidence,
            targets,
            help: found.help.clone(),
            dockerfile: Some(self.place(found.span)),
            label: found.label.clone(),
            because: found.because.clone(),
            related: found.also.iter().map(related).collect(),
            fix: found.fix.as_ref().and_then(|f| self.fix(f)),
            fingerprint: Some(self.fingerprint(id, found.span)),
            ..Finding::new(id, found.severity, verdict, found.message.clone())
        }
    }

    fn accepted(&self, covered: Covered) -> Accepted {
        let line = self.document.lines.line(covered.comment.start);
        Accepted { by: AcceptedBy::Comment, line, reason: covered.reason }
    }

    pub(super) fn place(&self, span: Span) -> FilePlace {
        let (text, lines) = (&self.document.text, &self.document.lines);
        let start = floor(text, span.start);
        let end = floor(text, span.end.max(start));
        let (from, to) = (lines.place(text, start), lines.place(text, end));
        FilePlace {
            file: self.name.to_owned(),
            line: from.line,
            column: from.column,
            end_line: to.line,
            end_column: to.column,
        }
    }

    /// None where its edits cannot be applied together, which is a rule's mistake.
    fn fix(&self, fix: &Fix) -> Option<FixReport> {
        let text = &self.document.text;
        let mut edits: Vec<_> = fix.edits.iter().collect();
        edits.sort();
        edits.dedup();
        let apart = edits.windows(2).all(|w| matches!(w, [a, b] if a.span.end <= b.span.start && a.span != b.span));
        let inside = |span: Span| {
            span.start <= span.end && text.is_char_boundary(span.start) && text.is_char_boundary(span.end)
        };
        if edits.is_empty() || !apart || !edits.iter().all(|e| inside(e.span)) {
            return None;
        }
        let crlf = text.split_inclusive('\n').next().is_some_and(|l| l.ends_with("\r\n"));
        let edit = |edit: &crate::dockerfile::edit::Edit| {
            let place = self.place(edit.span);
            EditReport {
                line: place.line,
                column: place.column,
                end_line: place.end_line,
                end_column: place.end_column,
                text: if crlf { edit.text.replace("\r\n", "\n").replace('\n', "\r\n") } else { edit.text.clone() },
            }
        };
        Some(FixReport { what: fix.what.clone(), safe: fix.safe, edits: edits.into_iter().map(edit).collect() })
    }

    /// Of the rule and the words of the instruction: lines above may come and go, and lines be broken otherwise.
    fn fingerprint(&self, id: &str, span: Span) -> String {
        let document = self.document;
        let instruction = instruction_at(document, span.start).and_then(|i| document.instructions.get(i));
        let text = match instruction {
            Some(instruction) => document.slice(instruction.span),
            None => document.slice(Span::new(
                document.lines.start(document.lines.line(span.start)).unwrap_or_default(),
                span.end,
            )),
        };
        let words: Vec<&str> = text.split_whitespace().filter(|w| *w != "\\" && *w != "`").collect();
        let mut print = Digest::of(format!("{id}\0{}", words.join(" ")).as_bytes()).hex();
        print.truncate(32);
        print
    }
}

/// The nearest place at or before an offset where a character starts.
fn floor(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
