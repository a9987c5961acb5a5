//! Names of libraries and search paths, picked from a string table before it is known where that table is.
//!
//! `.dynstr` stands near the beginning of a file and may hold tens of MB of symbol names; the dynamic section,
//! which tells where it is and which strings matter, comes later in the stream. The strings that matter look
//! like library names or paths, so those are kept with their offsets and looked up afterwards.

use std::sync::OnceLock;

use super::{Marks, vendor};

/// Library names kept per file; real libraries have a few dozen.
const MAX_NAMES: usize = 20_000;

/// Absolute paths kept per file: search paths are few, but a library may carry 100,000 strings of data that begin
/// with a slash (libcudnn_heuristic does).
const MAX_PATHS: usize = 4_096;

/// Symbols and versions picked per file; see [`Harvest::pick`].
const MAX_PICKED: usize = 32_768;

/// Longest name of a symbol or version that is picked.
const MAX_PICKED_LENGTH: usize = 256;

/// Longest name of a version that is picked.
const MAX_VERSION: usize = 40;

/// Longest list of directories, where they begin at `$ORIGIN`: TensorFlow's have over 4096 characters.
const MAX_LIST: usize = 64 << 10;

/// Longest string that is looked at; longer ones are no name that a loader takes.
const MAX_LENGTH: usize = 4096;

/// Candidate strings of one file.
#[derive(Debug, Default)]
pub struct Harvest {
    /// (file offset, text), ascending by offset.
    strings: Vec<(u64, Box<[u8]>)>,
    names: usize,
    paths: usize,
    picked: usize,
    /// A list of directories that went on behind the last chunk, and its offset.
    open: Option<(u64, Vec<u8>)>,
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
    /// Looks through a chunk at file offset `at`; a string may begin with the chunk if that is where a segment
    /// begins.
    pub fn see(&mut self, at: u64, chunk: &[u8], begins: bool) {
        self.go_on(at, chunk);
        let mut done = 0;
        let mut from = 0;
        while let Some(hit) = marks().find(chunk, from) {
            from = hit + 1;
            let is_path = chunk[hit] == 0;
            let mark = if is_path { hit + 1 } else { hit };
            if mark < done {
                continue;
            }
            let look = mark.saturating_sub(MAX_LENGTH);
            let start = memchr::memrchr(0, &chunk[look..mark]).map(|i| look + i + 1);
            let start = start.or_else(|| (begins && look == 0).then_some(0));
            let is_list = chunk[mark] == b'$';
            let most = if is_list { MAX_LIST } else { MAX_LENGTH };
            let end = memchr::memchr(0, &chunk[mark..chunk.len().min(mark + most)]).map(|i| mark + i);
            let (Some(start), Some(end)) = (start, end) else {
                // Too long to be shown whole again.
                if let Some(start) = start.filter(|s| is_list && chunk.len() - s > OVERLAP && mark - s < OVERLAP) {
                    self.open = Some((at + start as u64, chunk[start..].to_vec()));
                    return;
                }
                continue;
            };
            done = end;
            // The first string of a section may stand right behind code.
            let odd = chunk[start..end].iter().rposition(|b| !(0x20..0x7f).contains(b));
            let start = odd.map_or(start, |i| start + i + 1);
            if start <= mark {
                self.add(at + start as u64, &chunk[start..end], is_path);
            }
        }
    }

    /// Finds the rest of a long list.
    fn go_on(&mut self, at: u64, chunk: &[u8]) {
        let Some((offset, mut list)) = self.open.take() else { return };
        let known = (offset + list.len() as u64).checked_sub(at);
        let Some(rest) = known.and_then(|k| chunk.get(usize::try_from(k).ok()?..)) else { return };
        let end = memchr::memchr(0, rest);
        list.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
        if list.len() > MAX_LIST || !list.iter().all(|b| (0x20..0x7f).contains(b)) {
            return;
        }
        match end {
            Some(_) => self.add(offset, &list, false),
            None => self.open = Some((offset, list)),
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

    /// Takes those strings that begin within `from..to` of a chunk, or reach into it, which are names of a GPU
    /// vendor's functions or of versions. A string that the chunk cuts off is taken when it is shown whole.
    pub fn pick(&mut self, at: u64, chunk: &[u8], from: usize, to: usize) {
        let look = from.saturating_sub(MAX_PICKED_LENGTH);
        let before = memchr::memrchr(0, &chunk[look..from]).map(|i| look + i + 1);
        // What begins before that is too long for a name.
        let mut start = before.unwrap_or(if at == 0 { 0 } else { usize::MAX });
        for end in memchr::memchr_iter(0, &chunk[from..]).map(|i| from + i) {
            if start >= to && start != usize::MAX {
                return;
            }
            if let Some(text) = chunk.get(start..end).filter(|t| t.len() <= MAX_PICKED_LENGTH)
                && (vendor::is_call(text) || is_version(text))
            {
                self.add_picked(at + start as u64, text);
            }
            start = end + 1;
        }
    }

    fn add_picked(&mut self, offset: u64, text: &[u8]) {
        let seen = self.strings.last().is_some_and(|(last, _)| *last >= offset);
        if !seen && self.picked < MAX_PICKED {
            self.picked += 1;
            self.strings.push((offset, text.into()));
        }
    }

    /// All names of libraries, with their offsets.
    pub fn names(&self) -> impl Iterator<Item = (u64, &str)> {
        self.strings.iter().filter_map(|(at, text)| Some((*at, std::str::from_utf8(text).ok()?)))
    }

    /// The string at a file offset, which may be the tail of a longer one (linkers merge suffixes).
    pub fn get(&self, offset: u64) -> Option<&str> {
        let i = self.strings.partition_point(|(o, _)| *o <= offset).checked_sub(1)?;
        let (start, text) = &self.strings[i];
        let tail = text.get(usize::try_from(offset - start).ok()?..)?;
        std::str::from_utf8(tail).ok()
    }
}

/// Whether text may be the name of a version: `GLIBC_2.34`, `libcudart.so.12`, `tensorflow`. Names of C++ are not.
fn is_version(text: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'+');
    (3..=MAX_VERSION).contains(&text.len()) && !text.starts_with(b"_Z") && text.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tails_of_names() {
        let table = b"\0_ZN3foo\0libc.so.6\0$ORIGIN/../lib:/opt/x\0/usr/lib\0xlibm.so\0nothing\0";
        let mut h = Harvest::default();
        h.see(1000, table, false);
        let at = |needle: &[u8]| 1000 + memchr::memmem::find(table, needle).unwrap() as u64;
        assert_eq!(h.get(at(b"libc.so.6")), Some("libc.so.6"));
        assert_eq!(h.get(at(b"$ORIGIN")), Some("$ORIGIN/../lib:/opt/x"));
        assert_eq!(h.get(at(b"/usr/lib")), Some("/usr/lib"));
        assert_eq!(h.get(at(b"libm.so")), Some("libm.so"));
        assert_eq!(h.get(at(b"nothing")), None);
        h.see(1000, table, false);
        assert_eq!(h.get(at(b"libc.so.6")), Some("libc.so.6"));
        h.see(2000, b"\0code\xc3libcuda.so.1\0libx.so\xc3\0", false);
        assert_eq!(h.get(2006), Some("libcuda.so.1"));
        assert_eq!(h.get(2019), None);
        let list = [&b"\0"[..], &b"$ORIGIN/../x:".repeat(1000), b"\0"].concat();
        h.see(5000, &list[..9000], false);
        h.see(5000 + 9000 - OVERLAP as u64, &list[9000 - OVERLAP..], false);
        assert_eq!(h.get(5001).map(str::len), Some(list.len() - 2));
        let mut h = Harvest::default();
        h.see(3000, b"libcut.so\0", false);
        h.see(4000, b"libnvcuvid.so.1\0", true);
        assert_eq!((h.get(3000), h.get(4000)), (None, Some("libnvcuvid.so.1")));
    }

    #[test]
    fn calls_and_versions_are_picked() {
        let table = b"cuda\0cudaFree\0_ZN3fooE\0GLIBC_2.17\0libcudart.so.12\0_Zopen\0%s\0cuInit";
        let mut h = Harvest::default();
        h.pick(500, table, 2, table.len());
        let found: Vec<&str> = h.names().map(|n| n.1).collect();
        assert_eq!(found, ["cudaFree", "GLIBC_2.17", "libcudart.so.12"]);
        let again = [&table[table.len() - 20..], b"\0"].concat();
        h.pick(500 + table.len() as u64 - 20, &again, 20, 21);
        assert_eq!(h.get(500 + table.len() as u64 - 6), Some("cuInit"));
    }
}
