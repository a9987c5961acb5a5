//! PTX as text: a `.version` line, then a `.target` line.

use crate::model::{Form, Item, Packing, PtxIsa, SmArch};

/// What announces PTX within other bytes.
pub const MARK: &[u8] = b".version ";

/// How far `.target` may stand behind `.version`.
pub const LOOK: usize = 512;

/// Decodes text that begins with [`MARK`]; `None` where it is something else (a message, a format string).
pub fn directive(text: &[u8]) -> Option<Item> {
    let rest = text.strip_prefix(MARK)?;
    let (major, rest) = number(trim(rest))?;
    let (minor, rest) = number(rest.strip_prefix(b".")?)?;
    if !matches!(rest.first(), Some(b'\n' | b'\r' | b' ' | b'\t' | b';')) || !(1..=99).contains(&major) {
        return None;
    }
    let look = &rest[..rest.len().min(LOOK)];
    // Only blanks and comments may stand between the two directives.
    let target = memchr::memmem::find(look, b".target")?;
    if look[..target].split(|&b| b == b'\n').map(trim).any(|line| !line.is_empty() && !line.starts_with(b"//")) {
        return None;
    }
    let name = trim(&look[target + b".target".len()..]);
    let end = name.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').unwrap_or(name.len());
    let name = std::str::from_utf8(&name[..end]).ok().filter(|n| n.starts_with("sm_"))?;
    let arch: SmArch = name.parse().ok()?;
    Some(Item {
        arch: arch.into(),
        form: Form::Ptx,
        kind: 1,
        isa: Some(PtxIsa::new(major, minor)),
        packing: Packing::None,
        toolkit: None,
    })
}

/// Whether a file is PTX: comments and blank lines, then `.version`. Gives where it begins.
pub fn file_start(head: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in head.split_inclusive(|&b| b == b'\n') {
        let text = trim(line);
        if text.starts_with(MARK) {
            return Some(at + (line.len() - line.trim_ascii_start().len()));
        }
        if !text.is_empty() && !text.starts_with(b"//") {
            return None;
        }
        at += line.len();
    }
    None
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

fn number(text: &[u8]) -> Option<(u16, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let value = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    Some((value, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives() {
        let item = directive(b".version 8.8\n.target sm_90a, texmode_independent\n.address_size 64").unwrap();
        assert_eq!((item.arch.to_string(), item.isa), ("sm_90a".into(), Some(PtxIsa::new(8, 8))));
        assert!(directive(b".version 7.0\n// made by hand\n\n .target sm_80").is_some());
        for other in [
            &b".version %d.%d\n.target sm_%d"[..],
            b".version 8.8",
            b".version 8.8\nabc\n.target sm_80",
            b".version 8.8\n.target gfx90a",
            b".version ",
            b".version 8.\n.target sm_80",
        ] {
            assert!(directive(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn files() {
        assert_eq!(file_start(b"//\n// Generated\n//\n\n.version 8.8\n"), Some(21 - 1));
        assert_eq!(file_start(b".version 8.8"), Some(0));
        assert_eq!(file_start(b"#include <x>\n.version 8.8"), None);
    }
}
