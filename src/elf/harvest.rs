//! Names of libraries and search paths, picked from a string table before it is known where that table is.
//!
//! `.dynstr` stands near the beginning of a file and may hold tens of MB of symbol names; the dynamic section,
//! which tells where it is and which strings matter, comes later in the stream. The strings that matter look
//! like library names or paths, so those are kept with their offsets and looked up afterwards.

use std::sync::OnceLock;

use super::Marks;

/// Library names kept per file; real libraries have a few dozen.
const MAX_NAMES: usize = 20_000;

/// Absolute paths kept per file: search paths are few, but a library may carry 100,000 strings of data that begin
/// with a slash (libcudnn_heuristic does).
const MAX_PATHS: usize = 4_096;

/// Longest string that is looked at; longer ones are no name that a loader takes.
const MAX_LENGTH: usize = 4096;

/// Candidate strings of one file.
#[derive(Debug, Default)]
pub struct Harvest {
    /// (file offset, text), ascending by offset.
    strings: Vec<(u64, Box<[u8]>)>,
    names: usize,
    paths: usize,
}

/// Bytes at the end of a chunk that must be shown again with the next one, so that no string is cut.
pub const OVERLAP: usize = MAX_LENGTH;

/// A library name, a path relative to the library, an absolute path at the start of a string.
const MARKS: [&[u8]; 4] = [b".so", b"$ORIGIN", b"${ORIGIN", b"\0/"];

fn marks() -> &'static Marks {
    static FOUND: OnceLock<Marks> = OnceLock::new();
    FOUND.get_or_init(|| Marks::new(&MARKS))
}

impl Harvest {
    /// Looks through a chunk at file offset `at`.
    pub fn see(&mut self, at: u64, chunk: &[u8]) {
        let mut done = 0;
        let mut from = 0;
        while let Some(hit) = marks().find(chunk, from) {
            from = hit + 1;
            let is_path = chunk[hit] == 0;
            let mark = if is_path { hit + 1 } else { hit };
            if mark < done {
                continue;
            }
            let start = memchr::memrchr(0, &chunk[mark.saturating_sub(MAX_LENGTH)..mark])
                .map(|i| i + 1 + mark.saturating_sub(MAX_LENGTH));
            let end = memchr::memchr(0, &chunk[mark..chunk.len().min(mark + MAX_LENGTH)]).map(|i| mark + i);
            let (Some(start), Some(end)) = (start, end) else { continue };
            done = end;
            let text = &chunk[start..end];
            if text.iter().all(|b| (0x20..0x7f).contains(b)) {
                self.add(at + start as u64, text, is_path);
            }
        }
    }

    fn add(&mut self, offset: u64, text: &[u8], is_path: bool) {
        let (count, most) = if is_path { (&mut self.paths, MAX_PATHS) } else { (&mut self.names, MAX_NAMES) };
        let seen = self.strings.last().is_some_and(|(last, _)| *last >= offset);
        if !seen && *count < most {
            *count += 1;
            self.strings.push((offset, text.into()));
        }
    }

    /// The string at a file offset, which may be the tail of a longer one (linkers merge suffixes).
    pub fn get(&self, offset: u64) -> Option<&str> {
        let i = self.strings.partition_point(|(o, _)| *o <= offset).checked_sub(1)?;
        let (start, text) = &self.strings[i];
        let tail = text.get(usize::try_from(offset - start).ok()?..)?;
        std::str::from_utf8(tail).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tails_of_names() {
        let table = b"\0_ZN3foo\0libc.so.6\0$ORIGIN/../lib:/opt/x\0/usr/lib\0xlibm.so\0nothing\0";
        let mut h = Harvest::default();
        h.see(1000, table);
        let at = |needle: &[u8]| 1000 + memchr::memmem::find(table, needle).unwrap() as u64;
        assert_eq!(h.get(at(b"libc.so.6")), Some("libc.so.6"));
        assert_eq!(h.get(at(b"$ORIGIN")), Some("$ORIGIN/../lib:/opt/x"));
        assert_eq!(h.get(at(b"/usr/lib")), Some("/usr/lib"));
        assert_eq!(h.get(at(b"libm.so")), Some("libm.so"));
        assert_eq!(h.get(at(b"nothing")), None);
        h.see(1000, table);
        assert_eq!(h.get(at(b"libc.so.6")), Some("libc.so.6"));
    }
}
