//! A finding with the lines that it is about: carets under the words, what belongs to them, what would mend it.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Message, Renderer, Snippet};
use unicode_width::UnicodeWidthChar;

use super::paint::{Ink, Page, span};
use super::source::Source;
use super::text::{clean, columns, wrap};
use crate::model::{Confidence, FilePlace, Finding, FixReport, Severity, escape};

/// Other places of a finding that are shown with their lines.
const PLACES: usize = 3;
/// Lines of an edit that are shown without `-v`.
const EDIT_LINES: usize = 8;
/// The least room for a message beside its rule.
const MESSAGE: usize = 24;
/// Columns that stand for a tab.
const TAB: &str = "    ";

/// One finding, with its source where that is at hand.
pub(super) fn finding(page: &mut Page<'_>, finding: &Finding, source: Option<&Source<'_>>, mark: &str) {
    let unsure = match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " (medium confidence)",
        Confidence::Low => " (low confidence)",
    };
    let lead = format!("{}[{}]", finding.severity, clean(&finding.rule));
    let message = format!("{}{unsure}{mark}", clean(&finding.message));
    if columns(&lead) + 2 + MESSAGE <= page.width() {
        page.flow(&[span(finding.severity, lead), span(Ink::Plain, ": ")], 2, Ink::Strong, &message);
    } else {
        page.flow(&[], 2, finding.severity.into(), &lead);
        page.flow(&[span(Ink::Plain, "  ")], 2, Ink::Strong, &message);
    }
    let Some(place) = &finding.dockerfile else {
        if let Some(help) = &finding.help {
            page.flow(
                &[span(Ink::Plain, "  = "), span(Ink::Strong, "help"), span(Ink::Plain, ": ")],
                10,
                Ink::Plain,
                &clean(help),
            );
        }
        return;
    };
    let shown = finding.related.iter().take(PLACES).map(|r| r.place.line);
    let gutter = shown.chain([place.line]).max().unwrap_or(1).to_string().len();
    origin(page, place, gutter);
    let mut group = Group::with_level(level(finding.severity));
    let mut notes = Vec::new();
    if let Some(source) = source {
        group = group.element(lines(finding, place, source, page.width().saturating_sub(gutter + 3), &mut notes));
    }
    notes.extend(details(finding, page.verbose() > 0, source.is_some()));
    for (word, text) in &notes {
        group = group.element(note(word, text, page.width().saturating_sub(gutter + 3)));
    }
    let renderer = if page.colour() { Renderer::styled() } else { Renderer::plain() };
    // Lines are cut here, not there: its own cutting knows no widths of labels.
    if !group.is_empty() {
        page.block(&renderer.term_width(usize::MAX >> 8).render(&[group]));
    }
    if let (Some(fix), Some(source)) = (&finding.fix, source) {
        edit(page, fix, source, gutter);
    }
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    }
}

/// `path:line:column`; a path that is too long loses its beginning.
fn origin(page: &mut Page<'_>, place: &FilePlace, gutter: usize) {
    let path = clean(&place.file);
    let rest = format!(":{}:{}", place.line, place.column);
    let room = page.width().saturating_sub(gutter + 4 + rest.len());
    let path = if columns(&path) <= room { path } else { format!("…{}", tail(&path, room.saturating_sub(1))) };
    page.line(&[span(Ink::Dim, format!("{:gutter$}--> ", "")), span(Ink::Plain, format!("{path}{rest}"))]);
}

/// The end of a text, within so many columns.
fn tail(text: &str, room: usize) -> &str {
    let mut used = 0;
    let start = text.char_indices().rev().take_while(|(_, c)| {
        used += c.width().unwrap_or(0);
        used <= room
    });
    start.last().map_or("", |(at, _)| text.get(at..).unwrap_or_default())
}

/// A range on one line that gets a caret.
struct Caret<'a> {
    line: usize,
    /// In bytes of the line.
    range: std::ops::Range<usize>,
    label: &'a str,
    primary: bool,
}

impl<'a> Caret<'a> {
    /// What goes on over several lines is marked on its first.
    fn new(place: &FilePlace, label: &'a str, primary: bool, source: &Source<'_>) -> Self {
        let text = source.line(place.line);
        let range = source.range(place);
        let start = range.start.saturating_sub(source.start(place.line)).min(text.len());
        let end = range.end.saturating_sub(source.start(place.line)).clamp(start, text.len());
        let trimmed = text.get(start..end).map_or(end, |t| start + t.trim_end_matches(['\\', ' ', '\t']).len());
        let end = if place.end_line > place.line { trimmed.max(start) } else { end };
        Self { line: place.line, range: start..end, label, primary }
    }
}

/// The lines with their carets. What has no room there becomes a note.
fn lines<'a>(
    finding: &'a Finding,
    place: &FilePlace,
    source: &Source<'_>,
    room: usize,
    notes: &mut Vec<(&'a str, String)>,
) -> Snippet<'a, Annotation<'a>> {
    let mut carets = vec![Caret::new(place, &finding.label, true, source)];
    for (at, related) in finding.related.iter().enumerate() {
        if at < PLACES && related.place.file == place.file {
            carets.push(Caret::new(&related.place, &related.message, false, source));
        } else {
            notes.push(("note", format!("line {}: {}", related.place.line, related.message)));
        }
    }
    let first = carets.iter().map(|c| c.line).min().unwrap_or(1);
    let last = carets.iter().map(|c| c.line).max().unwrap_or(first);
    let mut text = String::new();
    let mut annotations = Vec::new();
    for number in first..=last {
        let here: Vec<&Caret<'_>> = carets.iter().filter(|c| c.line == number).collect();
        // Only neighbours of lines with carets are ever shown.
        if !carets.iter().any(|c| c.line.abs_diff(number) <= 2) {
            text.push('\n');
            continue;
        }
        let anchor = here.first().map_or(0..0, |c| c.range.clone());
        let shown = Shown::new(source.line(number), anchor, room);
        for caret in here {
            let label = clean(caret.label);
            match shown.range(&caret.range) {
                Some(range) => {
                    let end = columns(shown.text.get(..range.end).unwrap_or_default());
                    let fits = end.max(1) + 1 + columns(&label) <= room;
                    match (fits, caret.primary) {
                        (true, _) => {}
                        (false, true) => notes.push(("", label.clone())),
                        (false, false) => notes.push(("", format!("line {number}: {label}"))),
                    }
                    let kind = if caret.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
                    let label = Some(label).filter(|l| fits && !l.is_empty());
                    annotations.push(kind.span(text.len() + range.start..text.len() + range.end).label(label));
                }
                None => notes.push(("note", format!("line {number}: {}", caret.label))),
            }
        }
        text.push_str(&shown.text);
        text.push('\n');
    }
    notes.retain(|(_, text)| !text.is_empty());
    Snippet::source(text).line_start(first).annotations(annotations)
}

/// What else there is to say of it.
fn details(finding: &Finding, all: bool, with_fix: bool) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    if !finding.targets.is_empty() {
        out.push(("targets", finding.targets.join(", ")));
    }
    if all {
        out.extend(finding.because.iter().map(|b| ("because", b.clone())));
    }
    // What the edit's own line will say is not said twice.
    let said = |help: &&String| with_fix && finding.fix.as_ref().is_some_and(|f| f.what == **help);
    out.extend(finding.help.iter().filter(|h| !said(h)).map(|h| ("help", h.clone())));
    if let Some(accepted) = &finding.accepted {
        let reason = if accepted.reason.is_empty() { "no reason is given" } else { &accepted.reason };
        out.push(("ignored", format!("line {}: {reason}", accepted.line)));
    }
    if let Some(fix) = finding.fix.as_ref().filter(|_| with_fix) {
        let how = if fix.safe { "--fix does it" } else { "to be read first; --diff prints it" };
        out.push(("fix", format!("{} ({how})", fix.what)));
    }
    out
}

/// A line behind `=`, wrapped; none of its words may drive the terminal.
fn note(word: &str, text: &str, room: usize) -> Message<'static> {
    let level = if word.is_empty() { Level::NOTE.no_name() } else { Level::NOTE.with_name(word.to_owned()) };
    let taken = if word.is_empty() { 0 } else { columns(word) + 2 };
    let room = room.saturating_sub(taken);
    level.message(wrap(&clean(text), room, room).join("\n"))
}

/// A line as it is shown: harmless, and cut around what matters.
struct Shown {
    text: String,
    /// The part of the line that is shown.
    window: std::ops::Range<usize>,
    /// Place in the line and in `text` of each character shown, and of the end.
    places: Vec<(usize, usize)>,
}

impl Shown {
    fn new(line: &str, anchor: std::ops::Range<usize>, room: usize) -> Self {
        let room = room.max(8);
        // Beyond this many characters no line fits, whatever they are.
        let most = room * 4;
        let fits = |text: &str| text.len() <= most && text.chars().map(width).sum::<usize>() <= room;
        let start = match line.get(..anchor.end.min(line.len())) {
            _ if fits(line) => 0,
            Some(head) if head.len() < most && head.chars().map(width).sum::<usize>() < room => 0,
            _ => {
                let mut used = 0;
                let head = line.get(..anchor.start.min(line.len())).unwrap_or_default();
                let back = head.char_indices().rev().take(most).take_while(|(_, c)| {
                    used += width(*c);
                    used <= room / 3
                });
                back.last().map_or(head.len(), |(at, _)| at)
            }
        };
        let mut text = String::new();
        let mut used = usize::from(start > 0);
        if start > 0 {
            text.push('…');
        }
        let rest = line.get(start..).unwrap_or_default();
        let whole = start == 0 && fits(line);
        let mut places = Vec::new();
        let mut end = start;
        for (at, c) in rest.char_indices().take(most) {
            if !whole && used + width(c) > room - 1 && start + at + c.len_utf8() < line.len() {
                break;
            }
            if used + width(c) > room {
                break;
            }
            used += width(c);
            places.push((start + at, text.len()));
            push_harmless(&mut text, c);
            end = start + at + c.len_utf8();
        }
        places.push((end, text.len()));
        if end < line.len() {
            text.push('…');
        }
        Self { text, window: start..end, places }
    }

    /// The place in `text` of a range of the line; none where it is not shown.
    fn range(&self, range: &std::ops::Range<usize>) -> Option<std::ops::Range<usize>> {
        if range.start > self.window.end
            || range.end < self.window.start
            || (range.start == self.window.end && range.end > range.start)
        {
            return None;
        }
        let at = |offset: usize| {
            let place = self.places.partition_point(|(line, _)| *line < offset);
            self.places.get(place).or(self.places.last()).map_or(0, |(_, text)| *text)
        };
        let start = at(range.start.max(self.window.start));
        Some(start..at(range.end.min(self.window.end)).max(start))
    }
}

/// Columns that a character of a file takes here.
fn width(c: char) -> usize {
    let mut text = String::new();
    push_harmless(&mut text, c);
    columns(&text)
}

fn push_harmless(out: &mut String, c: char) {
    match c {
        '\t' => out.push_str(TAB),
        // What a byte that is not UTF-8 was read as.
        '\u{1a}' => out.push(char::REPLACEMENT_CHARACTER),
        '\\' => out.push('\\'),
        c => out.push_str(&escape(c.encode_utf8(&mut [0; 4]).as_bytes())),
    }
}

/// The lines that a fix changes, before and after.
fn edit(page: &mut Page<'_>, fix: &FixReport, source: &Source<'_>, gutter: usize) {
    let mut rows: Vec<(usize, char, String)> = Vec::new();
    let room = page.width().saturating_sub(gutter + 3);
    let mut at = 0;
    while let Some(first) = fix.edits.get(at) {
        // Edits of one line, and of those that touch, are shown together.
        let (from, mut to) = (first.line, first.end_line);
        let mut group = vec![first];
        while let Some(next) = fix.edits.get(at + group.len()).filter(|e| e.line <= to) {
            to = to.max(next.end_line);
            group.push(next);
        }
        at += group.len();
        let before = source.lines(from, to);
        let base = source.start(from);
        let mut after = String::new();
        let mut done = 0;
        for edit in group {
            let range = source.edited(edit);
            after.push_str(before.get(done..range.start.saturating_sub(base)).unwrap_or_default());
            after.push_str(&edit.text);
            done = range.end.saturating_sub(base);
        }
        after.push_str(before.get(done..).unwrap_or_default());
        changed(before, &after, from, room, &mut rows);
    }
    let most = if page.verbose() > 0 { rows.len() } else { EDIT_LINES };
    for (number, sign, text) in rows.iter().take(most) {
        let ink = if *sign == '+' { Ink::Good } else { Ink::Bad };
        page.line(&[span(Ink::Dim, format!("{number:>gutter$} ")), span(ink, format!("{sign} {text}"))]);
    }
    if let Some(more) = rows.len().checked_sub(most).filter(|n| *n > 0) {
        page.line(&[span(Ink::Dim, format!("{:>gutter$} … {more} more lines (--diff prints all)", ""))]);
    }
}

/// Lines that differ, without those that are alike at both ends.
fn changed(before: &str, after: &str, from: usize, room: usize, rows: &mut Vec<(usize, char, String)>) {
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let foot = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let cut = |lines: &[&str]| {
        lines.get(head..lines.len() - foot).unwrap_or_default().iter().map(|l| (*l).to_owned()).collect()
    };
    let (old, new): (Vec<String>, Vec<String>) = (cut(&old), cut(&new));
    for (sign, lines, others) in [('-', &old, &new), ('+', &new, &old)] {
        for (at, line) in lines.iter().enumerate() {
            // Cut where the line begins to differ from the one that stands against it.
            let other = others.get(at).map_or("", String::as_str);
            let same = line
                .char_indices()
                .zip(other.chars())
                .find(|((_, a), b)| a != b)
                .map_or(line.len().min(other.len()), |((i, _), _)| i);
            let same = (0..=same).rev().find(|i| line.is_char_boundary(*i)).unwrap_or(0);
            rows.push((from + head + at, sign, Shown::new(line, same..same, room).text));
        }
    }
}
