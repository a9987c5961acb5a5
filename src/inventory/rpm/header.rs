//! A header: tags with values. Two counts, an index of 16 bytes a tag, and the values; numbers are big-endian.

/// The tags that are read.
pub mod tag {
    pub const NAME: u32 = 1000;
    pub const VERSION: u32 = 1001;
    pub const RELEASE: u32 = 1002;
    pub const EPOCH: u32 = 1003;
    pub const REQUIRENAME: u32 = 1049;
    pub const DIRINDEXES: u32 = 1116;
    pub const BASENAMES: u32 = 1117;
    pub const DIRNAMES: u32 = 1118;
}

const INT32: u32 = 4;
const STRING: u32 = 6;
const STRING_ARRAY: u32 = 8;

/// Bytes of one index entry: tag, type, offset, count.
const ENTRY: usize = 16;

#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    index: &'a [u8],
    values: &'a [u8],
}

/// Where a tag's values begin, and how many there are.
struct Entry<'a> {
    kind: u32,
    values: &'a [u8],
    count: u32,
}

impl<'a> Header<'a> {
    pub fn parse(blob: &'a [u8]) -> Option<Self> {
        let entries = number(blob, 0)? as usize;
        let length = number(blob, 4)? as usize;
        let (index, values) = blob.get(8..)?.split_at_checked(entries.checked_mul(ENTRY)?)?;
        Some(Self { index, values: values.get(..length)? })
    }

    fn entry(&self, tag: u32) -> Option<Entry<'a>> {
        let entry = self.index.chunks_exact(ENTRY).find(|e| number(e, 0) == Some(tag))?;
        let values = self.values.get(number(entry, 8)? as usize..)?;
        Some(Entry { kind: number(entry, 4)?, values, count: number(entry, 12)? })
    }

    pub fn text(&self, tag: u32) -> Option<&'a [u8]> {
        let entry = self.entry(tag).filter(|e| e.kind == STRING)?;
        strings(entry.values).next()
    }

    pub fn texts(&self, tag: u32) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let entry = self.entry(tag).filter(|e| e.kind == STRING_ARRAY);
        entry.into_iter().flat_map(|e| strings(e.values).take(e.count as usize))
    }

    pub fn numbers(&self, tag: u32) -> impl Iterator<Item = u32> + use<'a> {
        let entry = self.entry(tag).filter(|e| e.kind == INT32);
        entry.into_iter().flat_map(|e| {
            let words = e.values.chunks_exact(4).take(e.count as usize);
            words.filter_map(|w| number(w, 0))
        })
    }
}

/// Texts one after another, each with a zero at its end.
fn strings(mut values: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let end = memchr::memchr(0, values)?;
        let text = &values[..end];
        values = &values[end + 1..];
        Some(text)
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    word.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(entries: &[(u32, u32, u32, u32)], values: &[u8]) -> Vec<u8> {
        let mut out = [entries.len() as u32, values.len() as u32].map(u32::to_be_bytes).concat();
        for (tag, kind, offset, count) in entries {
            out.extend([*tag, *kind, *offset, *count].map(u32::to_be_bytes).concat());
        }
        out.extend_from_slice(values);
        out
    }

    #[test]
    fn values_end_where_the_header_ends() {
        let blob = header(&[(tag::NAME, STRING, 0, 1), (tag::BASENAMES, STRING_ARRAY, 5, 9)], b"demo\0a\0b\0open");
        let parsed = Header::parse(&blob).unwrap();
        assert_eq!(parsed.text(tag::NAME), Some(&b"demo"[..]));
        assert_eq!(parsed.texts(tag::BASENAMES).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(parsed.text(tag::BASENAMES), None, "not of that type");
        assert_eq!(parsed.text(tag::VERSION), None);
        for end in 0..blob.len() {
            assert!(Header::parse(&blob[..end]).is_none());
        }
        let outside = header(&[(tag::EPOCH, INT32, u32::MAX, u32::MAX)], &[0; 8]);
        assert_eq!(Header::parse(&outside).unwrap().numbers(tag::EPOCH).next(), None);
        assert!(Header::parse(&[0xff; 64]).is_none());
    }
}
