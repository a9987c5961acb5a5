//! Lines of a Dockerfile with what is meant, and changes to it.

use super::super::source::Source;
use super::page::Page;
use crate::model::FilePlace;

/// Lines around those that are meant.
const AROUND: usize = 2;
/// Lines that are meant and shown.
const LINES: usize = 12;
/// Lines of a patch.
const PATCH: usize = 2_000;
/// Characters of a line.
const WIDTH: usize = 2_000;

pub(super) fn lines(page: &mut Page, source: &Source<'_>, place: &FilePlace) {
    let last = place.end_line.clamp(place.line, place.line + LINES);
    let from = place.line.saturating_sub(AROUND).max(1);
    page.raw("<pre class=\"source\">");
    for number in from..=last + AROUND {
        let line = source.line(number);
        // Behind the last line there is none.
        if number > last && source.start(number) == source.start(usize::MAX) {
            break;
        }
        let meant = (place.line..=last).contains(&number);
        page.raw(if meant { "<span class=\"line meant\">" } else { "<span class=\"line\">" });
        page.raw("<span class=\"n\">").raw(&number.to_string()).raw("</span>");
        let range = source.range(place);
        let start = source.start(number);
        let (from, to) = (range.start.saturating_sub(start), range.end.saturating_sub(start).min(line.len()));
        match (line.get(..from), line.get(from..to), line.get(to..)) {
            (Some(before), Some(words), Some(after)) if number == place.line && !words.is_empty() => {
                text(page, before).raw("<mark>");
                text(page, words).raw("</mark>");
                text(page, after);
            }
            _ => {
                text(page, line);
            }
        }
        page.raw("</span>\n");
    }
    page.raw("</pre>");
}

/// A patch, line by line.
pub(super) fn patch(page: &mut Page, patch: &str) {
    page.raw("<pre class=\"source\">");
    for line in patch.lines().take(PATCH) {
        page.raw(match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "<span class=\"line file\">",
            [b'+', ..] => "<ins class=\"line\">",
            [b'-', ..] => "<del class=\"line\">",
            [b'@', ..] => "<span class=\"line dim\">",
            _ => "<span class=\"line\">",
        });
        text(page, line);
        page.raw(match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "</span>\n",
            [b'+', ..] => "</ins>\n",
            [b'-', ..] => "</del>\n",
            _ => "</span>\n",
        });
    }
    page.raw("</pre>");
    page.more(patch.lines().count(), PATCH, "lines");
}

/// Tabs are four blanks, as in other formats.
fn text<'p>(page: &'p mut Page, line: &str) -> &'p mut Page {
    let cut = line.char_indices().nth(WIDTH).map_or(line, |(at, _)| line.get(..at).unwrap_or(line));
    page.text(&cut.replace('\t', "    "));
    if cut.len() < line.len() {
        page.raw("…");
    }
    page
}
