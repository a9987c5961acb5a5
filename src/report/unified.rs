//! Changes of a file as a patch.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

/// Lines around a change in a patch.
const AROUND: usize = 3;

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

/// `a/name`, in quotes where it holds what they must escape. With a tab behind it where the name has blanks: what
/// follows a tab is no part of the name.
fn quoted(side: &str, name: &str) -> String {
    let special = |c: char| c.is_control() || matches!(c, '"' | '\\');
    if !name.contains(special) {
        let tab = if name.contains(' ') { "\t" } else { "" };
        return format!("{side}/{name}{tab}");
    }
    let mut out = format!("\"{side}/");
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if special(c) => {
                let mut bytes = [0; 4];
                out.extend(c.encode_utf8(&mut bytes).bytes().map(|b| format!("\\{b:03o}")));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let text = String::from_utf8(patch("a\n\"b", b"x\n", b"y\n")).unwrap();
        assert!(text.starts_with("--- \"a/a\\012\\\"b\"\n+++ \"b/a"), "{text}");
    }
}
