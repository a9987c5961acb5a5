//! Heredocs: their openers in a line of RUN, COPY or ADD, and the lines that belong to them.

use super::lex::{self, Keep};
use super::lines::Lines;
use super::part::Part;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Heredoc;

/// What an opener says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opener {
    pub(super) name: String,
    pub(super) expand: bool,
    pub(super) strip_tabs: bool,
}

/// A name that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadName;

/// Reads a whole word as an opener: `<<EOF`, `3<<-"EOF"`; none where it is none.
pub(super) fn opener(word: &str) -> Result<Option<Opener>, BadName> {
    let Some(rest) = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<") else {
        return Ok(None);
    };
    let (strip_tabs, rest) = rest.strip_prefix('-').map_or((false, rest), |rest| (true, rest));
    let rest = rest.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
    if rest.is_empty() || rest.contains('<') {
        return Ok(None);
    }
    let split = |quotes| lex::words(rest, Keep { quotes, escapes: false }).ok_or(BadName);
    let bare = split(false)?;
    let [name] = bare.as_slice() else {
        return Ok(None);
    };
    let raw = split(true)?;
    let [quoted] = raw.as_slice() else {
        return Err(BadName);
    };
    let quotes = |text: &str| text.matches(['\'', '"']).count();
    let expand = quotes(&name.text) == quotes(&quoted.text);
    Ok(Some(Opener { name: name.text.clone(), expand, strip_tabs }))
}

/// The openers of a line, keyword and flags included, with their places; or the place of the one that has no name.
pub(super) fn openers(line: Part<'_>) -> Result<Vec<(Opener, Span)>, Span> {
    let mut found = Vec::new();
    if !line.text().contains("<<") {
        return Ok(found);
    }
    for word in lex::words(line.text(), Keep { quotes: true, escapes: true }).unwrap_or_default() {
        let span = || line.sub(word.start, word.end).span();
        if let Some(opener) = opener(&word.text).map_err(|BadName| span())? {
            found.push((opener, span()));
        }
    }
    Ok(found)
}

/// Reads lines up to the terminator, or all there are.
pub(super) fn read(lines: &mut Lines<'_>, opener: Opener, place: Span) -> Heredoc {
    let Opener { name, expand, strip_tabs } = opener;
    let start = lines.at();
    let (body, end) = loop {
        let at = lines.at();
        let Some(line) = lines.next() else {
            break (Span::new(start, at), None);
        };
        let text = lines.slice(line);
        let word = if strip_tabs { text.trim_start_matches('\t') } else { text };
        if word == name {
            break (Span::new(start, at), Some(Span::new(line.end - word.len(), line.end)));
        }
    };
    Heredoc { name, expand, strip_tabs, opener: place, body, end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dockerfile::syntax::Joined;

    fn named(word: &str) -> Option<(String, bool, bool)> {
        opener(word).unwrap().map(|o| (o.name, o.expand, o.strip_tabs))
    }

    #[test]
    fn names_may_be_quoted() {
        let is = |name: &str, expand, strip| Some((name.to_owned(), expand, strip));
        assert_eq!(named("<<EOF"), is("EOF", true, false));
        assert_eq!(named("<<-EOF"), is("EOF", true, true));
        assert_eq!(named("<< EOF"), is("EOF", true, false));
        assert_eq!(named("3<<EOF"), is("EOF", true, false));
        assert_eq!(named("<<'EOF'"), is("EOF", false, false));
        assert_eq!(named("<<-\"E OF\""), is("E OF", false, true));
        assert_eq!(named("<<E'O'F"), is("EOF", false, false));
        assert_eq!(named(r"<<E\ F"), is("E F", true, false));
        assert_eq!(named(r"<<\'E\'"), is("'E'", true, false));
        // BuildKit knows no `<<~`.
        assert_eq!(named("<<~EOF"), is("~EOF", true, false));
        assert_eq!(named("<<EOF>x"), is("EOF>x", true, false));
    }

    #[test]
    fn other_words_are_no_openers() {
        for word in ["<EOF", "<<<EOF", "<<", "<<-", "cat<<EOF", "<<''", "<<EOF<x", "a", ""] {
            assert_eq!(named(word), None, "{word}");
        }
        assert_eq!(opener("<<'a"), Err(BadName));
    }

    #[test]
    fn openers_have_their_places() {
        let line = Joined::at("RUN cat <<A 2<<-'B' >x", 10);
        let found = openers(Part::all(&line)).unwrap();
        assert_eq!(
            found.iter().map(|(o, s)| (o.name.as_str(), s.start, s.end)).collect::<Vec<_>>(),
            [("A", 18, 21), ("B", 22, 29)]
        );
        // A quote that is not closed: no heredoc at all.
        let line = Joined::at("RUN cat <<A 'x", 0);
        assert_eq!(openers(Part::all(&line)).unwrap(), []);
    }

    #[test]
    fn bodies_end_at_the_terminator() {
        let text = "a\n\tEOF\r\nEOF \n EOF\nEOF\r\nrest\n";
        let place = Span::default();
        let strict = Opener { name: "EOF".into(), expand: true, strip_tabs: false };
        let mut lines = Lines::new(text);
        let heredoc = read(&mut lines, strict.clone(), place);
        assert_eq!(&text[heredoc.body.start..heredoc.body.end], "a\n\tEOF\r\nEOF \n EOF\n");
        assert_eq!(lines.slice(heredoc.end.unwrap()), "EOF");
        assert_eq!(&text[lines.at()..], "rest\n");
        let stripped = read(&mut Lines::new(text), Opener { strip_tabs: true, ..strict.clone() }, place);
        assert_eq!((stripped.body, stripped.end), (Span::new(0, 2), Some(Span::new(3, 6))));
        let open = read(&mut Lines::new("a\nb"), strict, place);
        assert_eq!((open.body, open.end), (Span::new(0, 3), None));
    }
}
