//! The page's frame, and the only ways into it.

use base64::Engine;

use super::super::text::{clean, count};
use crate::model::{Digest, Verdict};

const STYLE: &str = include_str!("style.css");

/// Markup that grows.
#[derive(Default)]
pub(super) struct Page {
    out: String,
}

impl Page {
    /// Up to the body's start. The policy lets the one style in, by its digest, and nothing else: not even a script that
    /// found its way in would run.
    pub fn document(title: &str) -> Self {
        let mut page = Self::default();
        let digest = Digest::of(STYLE.as_bytes());
        let digest = base64::engine::general_purpose::STANDARD.encode(digest.as_bytes());
        page.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>");
        page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>");
        page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-");
        page.raw(&digest).raw("'; base-uri 'none'; form-action 'none'\"/>");
        page.raw("<meta name=\"color-scheme\" content=\"light dark\"/><title>").text(title).raw("</title><style>");
        page.raw(STYLE).raw("</style></head>\n<body><a class=\"skip\" href=\"#main\">To the report</a>");
        page
    }

    pub fn end(mut self) -> String {
        self.raw("</body></html>\n");
        self.out
    }

    pub fn finish(self) -> String {
        self.out
    }

    /// Markup of our own.
    pub fn raw(&mut self, markup: &str) -> &mut Self {
        self.out.push_str(markup);
        self
    }

    /// Text from anywhere, also between the quotes of an attribute.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for c in clean(text).chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                c => self.out.push(c),
            }
        }
        self
    }

    /// ` name="value"`.
    pub fn attribute(&mut self, name: &str, value: &str) -> &mut Self {
        self.raw(" ").raw(name).raw("=\"").text(value).raw("\"")
    }

    /// The word with its sign: colour alone tells nothing.
    pub fn verdict(&mut self, verdict: Verdict) -> &mut Self {
        let word = verdict.to_string();
        self.raw("<span class=\"v ").raw(&word).raw("\">").sign(verdict).raw(&word).raw("</span>")
    }

    pub fn sign(&mut self, verdict: Verdict) -> &mut Self {
        let sign = match verdict {
            Verdict::Fail => "✕",
            Verdict::Unknown => "?",
            Verdict::Blocked => "⊘",
            Verdict::Cpu => "▽",
            Verdict::Slow => "◔",
            Verdict::Warn => "!",
            Verdict::Ok => "✓",
        };
        self.raw("<i aria-hidden=\"true\">").raw(sign).raw("</i>")
    }

    /// How many of a list are not shown.
    pub fn more(&mut self, all: usize, shown: usize, what: &str) {
        if let Some(more) = all.checked_sub(shown).filter(|&n| n > 0) {
            self.raw("<p class=\"dim\">").text(&format!("… and {more} more {what}; the JSON has all")).raw("</p>");
        }
    }

    /// A section with its heading; `id` is one of ours.
    pub fn section(&mut self, id: &str, title: &str, aside: &str) -> &mut Self {
        self.raw("<section class=\"card\" id=\"")
            .raw(id)
            .raw("\" aria-labelledby=\"")
            .raw(id)
            .raw("-h\"><h2 id=\"");
        self.raw(id).raw("-h\">").text(title);
        if !aside.is_empty() {
            self.raw(" <small>").text(aside).raw("</small>");
        }
        self.raw("</h2>")
    }

    /// What unfolds; the caller closes it.
    pub fn details(&mut self, n: usize, one: &str, many: &str) -> &mut Self {
        self.raw("<details><summary>").text(&count(n, one, many)).raw("</summary>")
    }
}
