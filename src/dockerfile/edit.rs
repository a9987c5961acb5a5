//! Changes to a file by byte ranges: nothing else of it changes.

use super::span::Span;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    pub span: Span,
    pub text: String,
}

impl Edit {
    pub fn new(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }
}

/// Why edits cannot be made. None of them is made then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("bytes {} to {} are not in the file: take the edit from a parse of this very file", .0.start, .0.end)]
    Outside(Span),
    /// Both change the same bytes, or insert at the same place, where nothing says which comes first.
    #[error(
        "two edits change the same place (bytes {} to {}, and {} to {}): make one, read the file again, then the other",
        .0.start, .0.end, .1.start, .1.end
    )]
    Overlap(Span, Span),
}

/// The file with the edits made; their order does not matter. Equal edits count once. An insertion at the start of
/// what is replaced comes before the replacement.
pub fn apply(source: &[u8], edits: &[Edit]) -> Result<Vec<u8>, EditError> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_unstable();
    edits.dedup();
    let mut out = Vec::with_capacity(source.len());
    let mut at = 0;
    let mut last: Option<Span> = None;
    for edit in edits {
        let span = edit.span;
        if source.get(span.start..span.end).is_none() {
            return Err(EditError::Outside(span));
        }
        if let Some(last) = last.filter(|last| span.start < last.end || span == *last) {
            return Err(EditError::Overlap(last, span));
        }
        out.extend_from_slice(source.get(at..span.start).unwrap_or_default());
        out.extend_from_slice(edit.text.as_bytes());
        at = span.end;
        last = Some(span);
    }
    out.extend_from_slice(source.get(at..).unwrap_or_default());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: usize, end: usize, text: &str) -> Edit {
        Edit::new(Span::new(start, end), text)
    }

    #[test]
    fn edits_in_any_order_change_their_bytes_alone() {
        let edits = [edit(6, 11, "there"), edit(0, 1, "j"), edit(11, 11, "!"), edit(5, 6, "")];
        assert_eq!(apply(b"hello world", &edits).unwrap(), b"jellothere!");
        assert_eq!(apply(b"a\xffb", &[edit(2, 3, "c")]).unwrap(), b"a\xffc");
        assert_eq!(apply(b"abc", &[]).unwrap(), b"abc");
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let edits = [edit(1, 2, "B"), edit(2, 3, "C"), edit(1, 1, "+")];
        assert_eq!(apply(b"abc", &edits).unwrap(), b"a+BC");
    }

    #[test]
    fn equal_edits_are_made_once() {
        let edits = [edit(1, 1, "x"), edit(1, 1, "x"), edit(2, 3, ""), edit(2, 3, "")];
        assert_eq!(apply(b"abc", &edits).unwrap(), b"axb");
    }

    #[test]
    fn what_two_edits_claim_is_an_error() {
        let overlap = |a: Edit, b: Edit| {
            let spans = (a.span, b.span);
            assert_eq!(apply(b"abcdef", &[b, a]), Err(EditError::Overlap(spans.0, spans.1)));
        };
        overlap(edit(0, 3, "x"), edit(2, 4, "y"));
        overlap(edit(0, 5, "x"), edit(1, 2, ""));
        overlap(edit(0, 3, "x"), edit(2, 2, "y"));
        overlap(edit(2, 2, "x"), edit(2, 2, "y"));
        overlap(edit(2, 4, "x"), edit(2, 4, "y"));
    }

    #[test]
    fn outside_of_the_file_is_an_error() {
        for span in [Span::new(2, 4), Span::new(4, 4), Span::new(2, 1)] {
            assert_eq!(apply(b"abc", &[Edit::new(span, "x")]), Err(EditError::Outside(span)));
        }
    }
}
