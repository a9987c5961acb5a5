//! Text from outside within GitHub's Markdown, in which HTML, mentions, references and tables all have a meaning.

use super::super::text::{clean, cut};

/// Columns of one text: a message says what it has to say in less.
const MOST: usize = 1000;

/// Splits what GitHub would take for `@someone` or `#12` after it has read the Markdown, so that no entity helps.
const APART: &str = "&#8203;";

/// Text that is read as it stands, on one line: in paragraphs, cells and HTML alike.
pub(super) fn text(text: &str) -> String {
    let text = cut(&clean(text), MOST);
    let mut out = String::with_capacity(text.len());
    escape(&mut out, &text, APART);
    out
}

/// The same, set as code, where nobody is mentioned: names, paths, commands.
pub(super) fn code(text: &str) -> String {
    let mut out = String::from("<code>");
    escape(&mut out, &cut(&clean(text), MOST), "");
    out.push_str("</code>");
    out
}

/// Entities are never taken for structure, neither by Markdown nor by HTML. `apart` goes behind what mentions.
fn escape(out: &mut String, text: &str, apart: &str) {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let special = match c {
            '&' | '<' | '>' | '|' | '`' | '*' | '[' | ']' | '\\' | '~' | '$' | '!' => true,
            // Within a word it stresses nothing.
            '_' => !(before.is_alphanumeric() && rest.starts_with(char::is_alphanumeric)),
            // What makes links.
            ':' => rest.starts_with("//"),
            '.' => before.eq_ignore_ascii_case(&'w'),
            _ => false,
        };
        match special {
            true => out.push_str(&format!("&#{};", u32::from(c))),
            false => out.push(c),
        }
        if matches!(c, '@' | '#') {
            out.push_str(apart);
        }
        before = c;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As a browser reads it.
    pub(in crate::report) fn read(text: &str) -> String {
        let mut out = text.replace(APART, "").replace("<code>", "").replace("</code>", "");
        for c in "|`*_[]\\~$!:.<>&".chars() {
            out = out.replace(&format!("&#{};", u32::from(c)), &c.to_string());
        }
        out
    }

    #[test]
    fn nothing_has_a_meaning() {
        let evil =
            "a|b `c` **d** _e_ [x](y) <img src=x> @me #12 ~~f~~ $x$ https://h/ www.h \\| &lt; ![i](u)\n\r# h";
        for told in [text(evil), code(evil)] {
            let inner = told.trim_start_matches("<code>").trim_end_matches("</code>");
            assert!(!inner.contains(['|', '`', '*', '_', '[', ']', '<', '>', '\\', '~', '$', '\n', '!']), "{told}");
            assert!(!inner.contains("://") && !inner.contains("www."), "{told}");
            assert_eq!(read(&told), clean(evil));
        }
        assert_eq!(text("@me #1"), "@&#8203;me #&#8203;1");
        assert_eq!(code("a@b:1_2_"), "<code>a@b:1_2&#95;</code>");
        assert!(text(&"é".repeat(5000)).ends_with('…'));
    }
}
