//! Many images: one row each, targets across.

use super::super::paint::{Ink, Page, span};
use super::super::text::{bytes, clean, columns, count};
use super::super::{Report, Role, Style};
use super::grid::{self, Heads, Row};
use crate::model::Verdict;

/// What is told of one image among many.
#[derive(Debug, Clone)]
pub struct ImageRow {
    pub(in crate::report) reference: String,
    /// By target; without targets, of the image.
    pub(in crate::report) verdicts: Vec<(String, Verdict)>,
    /// Nothing could be said of it.
    pub(in crate::report) unread: bool,
    pub(in crate::report) errors: usize,
    pub(in crate::report) warnings: usize,
}

impl ImageRow {
    /// `unread`: the image could not be looked at.
    pub fn new(report: &Report, unread: bool) -> Self {
        use crate::model::Severity;
        let of = |severity| report.findings.iter().filter(|f| f.severity == severity).count();
        let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
        let image = report.image.as_ref();
        let mut verdicts: Vec<(String, Verdict)> =
            report.targets.iter().flatten().map(|t| (t.name.clone(), t.verdict)).collect();
        if verdicts.is_empty() {
            verdicts.extend(image.map(|i| ("verdict".to_owned(), i.verdict)));
        }
        let reference = image.map_or_else(String::new, |i| i.reference.clone());
        Self { reference, verdicts, unread, errors, warnings }
    }

    pub(in crate::report) fn worst(&self) -> Verdict {
        self.verdicts.iter().map(|(_, v)| *v).min().unwrap_or(Verdict::Ok)
    }

    /// Of the target of that name, as [`names`] has it; none of an image that was not read.
    pub(in crate::report) fn of(&self, name: &str) -> Option<Verdict> {
        self.verdicts.iter().find(|(n, _)| clean(n) == name).map(|(_, v)| *v).filter(|_| !self.unread)
    }
}

/// What was not read, then the worst, each with its place.
pub(in crate::report) fn worst_first(images: &[ImageRow]) -> Vec<(usize, &ImageRow)> {
    let mut order: Vec<(usize, &ImageRow)> = images.iter().enumerate().collect();
    order.sort_by_key(|(_, image)| (!image.unread, image.worst()));
    order
}

/// What reading all of the images took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    pub layers: usize,
    pub cached: usize,
    /// Stored bytes that were read.
    pub read: u64,
}

/// The overview, ending in a line feed.
pub fn render(images: &[ImageRow], work: Option<Work>, style: &Style) -> String {
    let mut page = Page::new(style);
    let names = names(images);
    let room = grid::label_room(style.width);
    let row = |(_, image): (usize, &ImageRow)| Row {
        label: end_of(&clean(&image.reference), room),
        role: Role::Optional,
        cells: names.iter().map(|name| image.of(name)).collect(),
    };
    let rows: Vec<Row> = worst_first(images).into_iter().map(row).collect();
    let cell = grid::cell_width(&rows);
    page.heading("IMAGES", &count(images.len(), "image", "images"));
    let heads = Heads::fit(&names, rows.iter().map(|r| r.label.as_str()), cell, style.width);
    if heads == Heads::Numbers {
        for (at, name) in names.iter().enumerate() {
            page.flow(&[span(Ink::Plain, "  ")], 6, Ink::Dim, &format!("{} = {name}", at + 1));
        }
    }
    grid::set(&mut page, &rows, &names, heads, cell);
    summary(&mut page, images, work);
    page.finish()
}

/// The targets' names, each once.
pub(in crate::report) fn names(images: &[ImageRow]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in images.iter().flat_map(|i| &i.verdicts) {
        let name = clean(name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The end of a reference tells more than its beginning.
fn end_of(text: &str, room: usize) -> String {
    let mut from = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    match from.find(|&at| columns(&text[at..]) + usize::from(at > 0) <= room) {
        None | Some(0) => text.to_owned(),
        Some(at) => format!("…{}", &text[at..]),
    }
}

/// `3 images: 1 fail, 2 ok · 1 error, 0 warnings`.
pub(in crate::report) fn sum(images: &[ImageRow]) -> String {
    let unread = images.iter().filter(|i| i.unread).count();
    let mut parts = Vec::new();
    if unread > 0 {
        parts.push(format!("{unread} could not be read"));
    }
    for word in Verdict::ALL {
        let n = images.iter().filter(|i| !i.unread && i.worst() == word).count();
        if n > 0 {
            parts.push(format!("{n} {word}"));
        }
    }
    let text = format!("{}: {}", count(images.len(), "image", "images"), parts.join(", "));
    let sum = |of: fn(&ImageRow) -> usize| images.iter().map(of).sum::<usize>();
    let (errors, warnings) = (sum(|i| i.errors), sum(|i| i.warnings));
    format!("{text} · {}, {}", count(errors, "error", "errors"), count(warnings, "warning", "warnings"))
}

fn summary(page: &mut Page<'_>, images: &[ImageRow], work: Option<Work>) {
    page.gap();
    let mut text = sum(images);
    if let Some(work) = work {
        text.push_str(&format!(
            " · {}, {} known; {} read",
            count(work.layers, "layer", "layers"),
            work.cached,
            bytes(work.read)
        ));
    }
    if let Some(status) = page.exit() {
        text.push_str(&format!(" · exit {status}"));
    }
    page.flow(&[], 2, Ink::Plain, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reference: &str, verdicts: &[Verdict], unread: bool) -> ImageRow {
        let verdicts =
            verdicts.iter().enumerate().map(|(at, v)| (format!("a target with a name {at}"), *v)).collect();
        ImageRow { reference: reference.into(), verdicts, unread, errors: usize::from(!unread), warnings: 2 }
    }

    #[test]
    fn the_worst_come_first_and_what_was_not_read_before_them() {
        let images = [
            row("a:1", &[Verdict::Ok, Verdict::Slow], false),
            row("b:1", &[Verdict::Ok, Verdict::Fail], false),
            row("c:1", &[Verdict::Unknown, Verdict::Unknown], true),
        ];
        let work = Work { layers: 7, cached: 3, read: 2048 };
        let text = render(&images, Some(work), &Style { width: 100, exit: Some(2), ..Style::default() });
        let rows: Vec<Vec<&str>> = text.lines().skip(2).take(3).map(|l| l.split_whitespace().collect()).collect();
        assert!(Verdict::ALL.is_sorted());
        assert_eq!(rows, [["c:1", "-", "-"], ["b:1", "ok", "fail"], ["a:1", "ok", "slow"]]);
        let last = "3 images: 1 could not be read, 1 fail, 1 slow · 2 errors, 6 warnings · 7 layers, 3 known; 2.0 KiB read";
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).ends_with(&format!("{last} · exit 2")), "{text}");
    }

    #[test]
    fn no_line_is_longer_than_the_screen_and_the_tag_is_seen() {
        let long = format!("registry.example/{}/app:the-tag", "team/".repeat(30));
        let many = [Verdict::Ok; 12];
        for width in [40, 60, 80, 200] {
            let text = render(
                &[row(&long, &many, false), row("x", &many, false)],
                None,
                &Style { width, ..Style::default() },
            );
            assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
            assert!(text.contains("app:the-tag "), "{width}:\n{text}");
        }
    }

    #[test]
    fn references_lose_their_beginning() {
        assert_eq!(
            (end_of("abc", 3), end_of("abcd", 3), end_of("", 0)),
            ("abc".into(), "…cd".into(), String::new())
        );
        assert_eq!(end_of("日本語", 5), "…本語");
    }
}
