//! Edits of findings, applied to a file.

use crate::model::{EditReport, Finding};
use crate::report::source::Source;

/// A file's new bytes, and how many fixes went into them. Of fixes that overlap that of the worse finding is taken, then
/// the first; all edits of a fix are, or none. `text` has the offsets of `bytes`, whatever these are.
pub fn apply(
    bytes: &[u8],
    text: &str,
    findings: &[Finding],
    wanted: impl Fn(&Finding) -> bool,
) -> (Vec<u8>, usize) {
    let source = Source::new(text);
    let mut taken: Vec<(std::ops::Range<usize>, &EditReport)> = Vec::new();
    let mut fixes = 0;
    let mut worst_first: Vec<&Finding> = findings.iter().filter(|f| wanted(f)).collect();
    worst_first.sort_by_key(|f| std::cmp::Reverse(f.severity));
    for finding in worst_first {
        let Some(fix) = &finding.fix else { continue };
        let edits: Vec<_> = fix.edits.iter().map(|e| (source.edited(e), e)).collect();
        if edits.iter().all(|(range, _)| !taken.iter().any(|(other, _)| overlap(range, other))) {
            taken.extend(edits);
            fixes += 1;
        }
    }
    taken.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for (range, edit) in taken {
        out.extend_from_slice(bytes.get(at..range.start).unwrap_or_default());
        out.extend_from_slice(edit.text.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    (out, fixes)
}

/// Two insertions at one place overlap too: which is to come first is not known.
fn overlap(a: &std::ops::Range<usize>, b: &std::ops::Range<usize>) -> bool {
    a == b || (a.start < b.end && b.start < a.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FixReport, Severity, Verdict};

    fn fix(safe: bool, edits: &[(usize, usize, usize, usize, &str)]) -> Finding {
        let edit = |&(line, column, end_line, end_column, text): &(usize, usize, usize, usize, &str)| EditReport {
            line,
            column,
            end_line,
            end_column,
            text: text.to_owned(),
        };
        let fix = FixReport { what: "x".into(), safe, edits: edits.iter().map(edit).collect() };
        Finding { fix: Some(fix), ..Finding::new("r", Severity::Note, Verdict::Ok, "m") }
    }

    fn applied(text: &str, findings: &[Finding]) -> (String, usize) {
        let safe = |f: &Finding| f.fix.as_ref().is_some_and(|f| f.safe);
        let (bytes, count) = apply(text.as_bytes(), text, findings, safe);
        (String::from_utf8(bytes).unwrap(), count)
    }

    #[test]
    fn of_fixes_that_overlap_the_first_is_taken_whole() {
        let text = "añ b\r\nc\n";
        let findings = [
            fix(true, &[(2, 1, 2, 2, "C"), (1, 2, 1, 3, "n")]),
            fix(true, &[(1, 1, 1, 3, "X")]),
            fix(false, &[(1, 4, 1, 5, "Y")]),
            fix(true, &[(3, 1, 3, 1, "end\n")]),
            fix(true, &[(3, 1, 3, 1, "other\n")]),
        ];
        assert_eq!(applied(text, &findings), ("an b\r\nC\nend\n".to_owned(), 2));
        let worse = Finding { severity: Severity::Error, ..fix(true, &[(1, 1, 1, 3, "W")]) };
        let both = [fix(true, &[(1, 2, 1, 3, "n")]), worse];
        assert_eq!(applied(text, &both).0, "W b\r\nc\n", "the worse finding's goes before");
        assert_eq!(applied("", &[fix(true, &[(9, 9, 1, 1, "x")])]), ("x".to_owned(), 1));
    }
}
