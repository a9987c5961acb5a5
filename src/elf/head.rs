//! The part of a file before its dynamic section, kept until that section tells where the symbols are.
//!
//! The tables of dynamic linking stand at the front: symbols, their names, their versions. Only the dynamic
//! section, which comes behind the code, says where. The first [`WHOLE`] bytes hold them in most files. Behind,
//! pages that look like versions are kept; of pages of symbols the undefined ones, and of pages of text those strings
//! that matter ([`Harvest::pick`]): nearly all of the front of a large C++ library is names.

use super::Harvest;

/// Kept whole: the tables of most libraries, names and all.
const WHOLE: u64 = 512 << 10;

/// Most bytes that are kept of one file, until its dynamic section has passed.
const BUDGET: usize = 3 << 20;

/// Most undefined symbols that are noted of one file.
const MAX_UNDEFINED: usize = 128 << 10;

const PAGE: u64 = 4 << 10;

/// A shorter part of a page is kept unseen: too little to judge by.
const FRAGMENT: usize = 512;

/// Pages kept behind a table, and behind text: a table's end, and the small tables that follow.
const AFTER: u8 = 2;

/// Edges of text that get attention: what follows is kept, and names are taken out of the bytes on both sides.
const MAX_EDGES: u16 = 16;

/// Steps by which memory grows.
const STEP: usize = 128 << 10;

/// A symbol's bytes, in 64-bit files.
pub const SYMBOL: usize = 24;

/// The first part of a symbol: its name, kind and section.
pub type Slim = [u8; 8];

/// The front of a file.
#[derive(Debug, Default)]
pub struct Head {
    /// (offset, bytes), ascending, with gaps between.
    runs: Vec<(u64, Vec<u8>)>,
    bytes: usize,
    /// Undefined symbols of pages that are not kept, with their offsets.
    undefined: Vec<(u64, Slim)>,
    /// Everything before has passed.
    next: u64,
    /// Where the last piece that was not kept ends.
    dropped: Option<u64>,
    /// Pages still to be kept behind a table.
    after: u8,
    /// Where the next symbol begins, within a table of them.
    symbols: Option<u64>,
    /// The last piece was text.
    in_text: bool,
    edges: u16,
}

impl Head {
    /// Shows a chunk; what was shown before is passed over. Strings of text that is not kept go to `names`.
    pub fn see(&mut self, at: u64, chunk: &[u8], names: &mut Harvest) {
        let end = at + chunk.len() as u64;
        if at > self.next {
            self.symbols = None;
        }
        let mut from = at.max(self.next);
        while from < end {
            let to = ((from / PAGE + 1) * PAGE).min(end);
            self.piece(at, chunk, ((from - at) as usize, (to - at) as usize), names);
            from = to;
        }
        self.next = self.next.max(end);
    }

    fn piece(&mut self, at: u64, chunk: &[u8], (a, b): (usize, usize), names: &mut Harvest) {
        let (from, piece) = (at + a as u64, &chunk[a..b]);
        let looks = if from < WHOLE || piece.len() < FRAGMENT { Looks::Unknown } else { looks(from, piece) };
        // Where a chunk ends within a page says nothing of what the page holds.
        let is_text = if looks == Looks::Unknown { self.in_text } else { looks == Looks::Text };
        let was_text = std::mem::replace(&mut self.in_text, is_text);
        let edge = was_text != self.in_text && self.edges < MAX_EDGES;
        if edge {
            self.edges += 1;
            let back = if was_text { 0 } else { PAGE as usize };
            names.pick(at, chunk, a.saturating_sub(back), b);
        } else if self.in_text {
            names.pick(at, chunk, a, b);
        }
        let began = self.symbols.is_some();
        let symbols = self.note_symbols(at, chunk, b, looks);
        match looks {
            // Noted already.
            Looks::Symbols(_) if began && symbols => {
                self.dropped = Some(at + b as u64);
                self.after = AFTER;
            }
            Looks::Symbols(_) | Looks::Versions => {
                // The table may have begun in the page before.
                let page = PAGE as usize;
                if self.dropped == Some(from) && a >= page {
                    self.keep(from - PAGE, &chunk[a - page..a]);
                }
                self.keep(from, piece);
                self.after = AFTER;
            }
            Looks::Unknown => self.keep(from, piece),
            Looks::Nothing if edge => {
                self.keep(from, piece);
                self.after = AFTER;
            }
            Looks::Text | Looks::Nothing if self.after > 0 => {
                self.keep(from, piece);
                self.after -= 1;
            }
            Looks::Text | Looks::Nothing => self.dropped = Some(at + b as u64),
        }
    }

    /// Notes the undefined ones of the symbols that end before `to`, and of one that reaches out of a table's last
    /// page. Whether the page goes on with the symbols of those before.
    fn note_symbols(&mut self, at: u64, chunk: &[u8], to: usize, looks: Looks) -> bool {
        let size = SYMBOL as u64;
        let (mut next, goes_on) = match (self.symbols, looks) {
            (Some(next), Looks::Symbols(first)) if first % size == next % size => (next, true),
            (_, Looks::Symbols(first)) => (first, false),
            (Some(next), _) => (next, false),
            (None, _) => return false,
        };
        let in_table = matches!(looks, Looks::Symbols(_));
        let end = at + to as u64;
        while next + size <= end {
            let start = next.checked_sub(at).and_then(|o| chunk.get(o as usize..)).and_then(|c| c.first_chunk());
            if let Some(slim @ [_, _, _, _, info, _, 0, 0]) = start
                && matches!(info >> 4, 1 | 2)
                && self.undefined.len() < MAX_UNDEFINED
            {
                self.undefined.push((next, *slim));
            }
            next += size;
            if !in_table {
                break;
            }
        }
        self.symbols = in_table.then_some(next);
        goes_on
    }

    fn keep(&mut self, at: u64, piece: &[u8]) {
        if self.bytes + piece.len() > BUDGET {
            return;
        }
        self.bytes += piece.len();
        match self.runs.last_mut() {
            Some((start, bytes)) if *start + bytes.len() as u64 == at => {
                if bytes.capacity() - bytes.len() < piece.len() {
                    bytes.reserve_exact(STEP.max(piece.len()));
                }
                bytes.extend_from_slice(piece);
            }
            _ => self.runs.push((at, piece.to_vec())),
        }
    }

    /// What was kept of `start..end`, with offsets.
    pub fn parts(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let first = self.runs.partition_point(|(at, bytes)| at + bytes.len() as u64 <= start);
        self.runs[first..].iter().take_while(move |(at, _)| *at < end).map(move |(at, bytes)| {
            let from = start.saturating_sub(*at) as usize;
            let to = (end - at).min(bytes.len() as u64) as usize;
            (at + from as u64, &bytes[from..to])
        })
    }

    /// Undefined symbols whose bytes were not kept.
    pub fn into_undefined(self) -> Vec<(u64, Slim)> {
        self.undefined
    }
}

/// What a page seems to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// Strings and nothing else.
    Text,
    /// Symbols; the first of them that is whole begins at this offset of the file.
    Symbols(u64),
    /// Versions of symbols.
    Versions,
    /// Not looked at.
    Unknown,
    /// Anything else: code, relocations, zeros.
    Nothing,
}

fn looks(at: u64, piece: &[u8]) -> Looks {
    match text(piece) {
        Some(true) => Looks::Text,
        Some(false) => Looks::Nothing,
        None if is_versions(piece) => Looks::Versions,
        None => symbols(at, piece).map_or(Looks::Nothing, Looks::Symbols),
    }
}

/// Whether bytes are strings alone, `false` where all are zero; `None`: they are something else. Versions that
/// happen to look like letters have a zero in every second place.
fn text(piece: &[u8]) -> Option<bool> {
    let mut zeros = 0;
    for block in piece.chunks(128) {
        let odd = block.iter().fold(false, |odd, &b| odd | ((b != 0) & (b.wrapping_sub(0x20) > 0x5e)));
        if odd {
            return None;
        }
        zeros += usize::from(block.iter().map(|b| u8::from(*b == 0)).sum::<u8>());
    }
    if zeros == piece.len() {
        return Some(false);
    }
    (zeros <= piece.len() / 4).then_some(true)
}

/// Whether all of a piece may be versions of symbols: small numbers, the highest bit free.
fn is_versions(piece: &[u8]) -> bool {
    piece.chunks_exact(2).all(|v| v[0] < 0x80 && v[1] & 0x7f == 0)
}

/// Whether all of a piece may be symbols, at one of three alignments; where the first whole one begins.
fn symbols(at: u64, piece: &[u8]) -> Option<u64> {
    let skew = (at.next_multiple_of(8) - at) as usize;
    let first = [0, 8, 16].into_iter().map(|shift| skew + shift).find(|first| {
        let entries = piece.get(*first..).unwrap_or_default().chunks_exact(SYMBOL);
        entries.len() > 8 && entries.into_iter().all(is_symbol)
    })?;
    Some(at + first as u64)
}

/// Relocations are as long; what would be the section of a symbol is zero there, and its value is not.
fn is_symbol(entry: &[u8]) -> bool {
    let (bind, kind) = (entry[4] >> 4, entry[4] & 15);
    let undefined = entry[6] == 0 && entry[7] == 0;
    entry[3] < 0x10
        && matches!(bind, 0..=2 | 10)
        && kind <= 10
        && entry[5] & 0x7c == 0
        && (!undefined || entry[8..16] == [0; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_tables() {
        let symbol = |name: u8, section: u8| {
            let mut s = [0u8; SYMBOL];
            (s[0], s[1], s[4], s[6], s[8], s[16]) = (name, 3, 0x12, section, section, section);
            s
        };
        let symbols: Vec<u8> = (0..170).flat_map(|i| symbol(i, i % 3)).collect();
        assert_eq!(looks(8192, &symbols), Looks::Symbols(8192));
        assert_eq!(looks(8192, &symbols[8..]), Looks::Symbols(8208));
        let relocations: Vec<u8> = (0..170u8)
            .flat_map(|i| [[i, 16, 0, 0, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0], [i, 9, 0, 0, 0, 0, 0, 0]])
            .flatten()
            .collect();
        assert_eq!(looks(8192, &relocations), Looks::Nothing);
        assert_eq!(looks(8192, &b"\0_ZN2at3addERKNS_6TensorE\0cudaMalloc".repeat(100)), Looks::Text);
        assert_eq!(looks(8192, &[b'Z'; 4096]), Looks::Text, "what patchelf leaves of a table that it moved");
        assert_eq!(looks(8192, &[0; 4096]), Looks::Nothing);
        assert_eq!(looks(8192, &[0x21, 0].repeat(2048)), Looks::Versions, "versions 33 of every symbol");
        assert_eq!(looks(8192, &[1, 0, 2, 0x80].repeat(1024)), Looks::Versions);
    }

    #[test]
    fn pages_of_text_are_left_out_and_their_names_picked() {
        let mut file = vec![1u8; WHOLE as usize - 10];
        file.extend_from_slice(b"\0_ZN3fooE\0cudaMalloc\0GLIBC_2.34\0");
        let versions = WHOLE as usize + 5 * PAGE as usize - 4;
        while file.len() < versions {
            file.extend_from_slice(b"_ZN3bar3bazEv\0");
        }
        file.truncate(versions);
        file.extend_from_slice(b"\0cuInit\0");
        file.extend_from_slice(&[1, 0].repeat(6000));
        file.extend_from_slice(&[0x55; 1 << 20]);
        let (mut head, mut names) = (Head::default(), Harvest::default());
        let step = 10_000;
        for at in (0..file.len()).step_by(step) {
            let end = file.len().min(at + step + 4096);
            head.see(at as u64, &file[at..end], &mut names);
        }
        let at = |needle: &[u8]| memchr::memmem::find(&file, needle).unwrap() as u64;
        assert_eq!(names.get(at(b"cudaMalloc")), Some("cudaMalloc"));
        assert_eq!(names.get(at(b"GLIBC")), Some("GLIBC_2.34"));
        assert_eq!(names.get(at(b"cuInit")), Some("cuInit"));
        let parts: Vec<(u64, u64)> = head.parts(0, file.len() as u64).map(|(at, b)| (at, b.len() as u64)).collect();
        assert_eq!(parts[0], (0, WHOLE));
        let (start, length) = parts[1];
        assert!(start <= versions as u64 && start + length >= versions as u64 + 12_000);
        assert!(parts.iter().map(|p| p.1).sum::<u64>() < WHOLE + 16 * PAGE, "{parts:?}");
        for (at, bytes) in head.parts(100, file.len() as u64 - 7) {
            assert_eq!(bytes, &file[at as usize..at as usize + bytes.len()]);
        }
    }

    #[test]
    fn where_chunks_end_is_no_edge_of_text() {
        let mut file = vec![1u8; WHOLE as usize];
        let text = b"_ZN3bar3bazEv\0".repeat(60_000);
        file.extend_from_slice(&text);
        file.extend_from_slice(b"GLIBC_2.34\0cudaMalloc\0");
        file.extend_from_slice(&[1, 0x80, 0xff].repeat(20_000));
        let at = |needle: &[u8]| memchr::memmem::find(&file, needle).unwrap() as u64;
        for step in [8 * PAGE as usize, 8 * PAGE as usize + 100, 5_000, 12_345] {
            let (mut head, mut names) = (Head::default(), Harvest::default());
            for from in (0..file.len()).step_by(step) {
                let end = file.len().min(from + step);
                head.see(from.saturating_sub(4096) as u64, &file[from.saturating_sub(4096)..end], &mut names);
            }
            assert_eq!(names.get(at(b"GLIBC")), Some("GLIBC_2.34"), "{step}");
            assert_eq!(names.get(at(b"cudaMalloc")), Some("cudaMalloc"), "{step}");
        }
    }
}
