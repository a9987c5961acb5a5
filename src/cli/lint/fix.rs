//! Edits of findings, applied to a file or printed as a patch.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use crate::model::{EditReport, Finding};
use crate::report::source::Source;

/// Lines around a change in a patch.
const AROUND: usize = 3;

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

/// The change as a patch that `git apply` and `patch -p1` take; empty where nothing changes.
pub fn patch(name: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    let (before, after) = (lines(old), lines(new));
    let mut out = Vec::new();
    let ops = capture_diff_slices(Algorithm::Myers, &before, &after);
    for group in group_diff_ops(ops, AROUND) {
        if out.is_empty() {
            out.extend_from_slice(format!("--- {}\n+++ {}\n", quoted("a", name), quoted("b", name)).as_bytes());
        }
        hunk(&mut out, &group, &before, &after);
    }
    out
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|b| *b == b'\n').collect()
}

fn hunk(out: &mut Vec<u8>, group: &[DiffOp], before: &[&[u8]], after: &[&[u8]]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let old = first.old_range().start..last.old_range().end;
    let new = first.new_range().start..last.new_range().end;
    let header = format!("@@ -{} +{} @@\n", span(&old), span(&new));
    out.extend_from_slice(header.as_bytes());
    let mut put = |sign: u8, lines: &[&[u8]]| {
        for line in lines {
            out.push(sign);
            out.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                out.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    };
    for op in group {
        let (tag, old, new) = op.as_tag_tuple();
        let old = before.get(old).unwrap_or_default();
        let new = after.get(new).unwrap_or_default();
        match tag {
            DiffTag::Equal => put(b' ', old),
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                put(b'-', old);
                put(b'+', new);
            }
        }
    }
}

/// `start,count` as hunks name lines: from 1, and the line before where there is none.
fn span(range: &std::ops::Range<usize>) -> String {
    let start = if range.is_empty() { range.start } else { range.start + 1 };
    format!("{start},{}", range.len())
}

/// `a/name`, with a tab behind it where the name has blanks: what follows a tab is no part of the name.
fn quoted(side: &str, name: &str) -> String {
    let tab = if name.contains(char::is_whitespace) { "\t" } else { "" };
    format!("{side}/{name}{tab}")
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

    #[test]
    fn patches_are_those_of_diff() {
        let old = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10";
        let new = b"1\n2\n3\n4\n5\nsix\n7\n8\n9\n10\n";
        let text = String::from_utf8(patch("d/My File", old, new)).unwrap();
        assert_eq!(
            text,
            "--- a/d/My File\t\n+++ b/d/My File\t\n@@ -3,8 +3,8 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9\n-10\n\\ No newline at \
             end of file\n+10\n"
        );
        assert!(patch("a", old, old).is_empty());
        let text = String::from_utf8(patch("a", b"x\n", b"")).unwrap();
        assert_eq!(text, "--- a/a\n+++ b/a\n@@ -1,1 +0,0 @@\n-x\n");
    }
}
