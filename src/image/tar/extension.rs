//! Records that describe the next entry: PAX headers and GNU long names.

use super::TarError;
use crate::stream::{Body, Part};

/// PAX and long-name records larger than this are refused; real ones are a few hundred bytes.
const MAX_RECORD: u64 = 1 << 20;

/// What is known of the next entry beyond its own header.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    gnu_path: Option<Vec<u8>>,
    gnu_link: Option<Vec<u8>>,
    /// PAX records in order (the sparse 0.0 dialect repeats keys).
    pub(super) pax: Vec<Record>,
}

impl Extensions {
    /// Reads one extension entry of `size` bytes and its padding.
    pub(super) fn read(&mut self, kind: u8, size: u64, body: &mut dyn Body, at: u64) -> Result<(), TarError> {
        let bad = |what: String| TarError::Header { at, what };
        let what = if matches!(kind, b'L' | b'K') { "GNU long name" } else { "PAX header" };
        if size > MAX_RECORD {
            return Err(bad(format!("{what} of {size} bytes is over the limit of {MAX_RECORD}")));
        }
        let mut part = Part::new(body, size);
        let bytes = part.read_all(MAX_RECORD as usize)?.unwrap_or_default();
        if bytes.len() as u64 != size {
            return Err(bad(format!("{what} is cut off")));
        }
        body.skip(size.wrapping_neg() % 512)?;
        let until_nul = || bytes.split(|&b| b == 0).next().unwrap_or_default().to_vec();
        match kind {
            b'L' => self.gnu_path = Some(until_nul()),
            b'K' => self.gnu_link = Some(until_nul()),
            // Global records describe the archive; no builder puts a path or size there, and both would apply to
            // every entry that follows.
            b'g' => {}
            _ => self.pax.extend(records(&bytes).map_err(|w| bad(format!("PAX header: {w}")))?),
        }
        Ok(())
    }

    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        self.pax.iter().rev().find(|(k, _)| k == key.as_bytes()).map(|(_, v)| v.as_slice())
    }

    pub(super) fn number(&self, key: &str) -> Option<Result<u64, String>> {
        let value = self.get(key)?;
        let parsed = std::str::from_utf8(value).ok().and_then(|t| t.parse().ok());
        Some(parsed.ok_or_else(|| format!("PAX record {key} is not a number")))
    }

    /// The stored size: a PAX record wins over the header. Sizes that no file can have are refused.
    pub(super) fn size(&self, header: u64) -> Result<u64, String> {
        let size = self.number("size").unwrap_or(Ok(header))?;
        if size > i64::MAX as u64 - 512 {
            return Err(format!("a size of {size} bytes overflows"));
        }
        Ok(size)
    }

    pub(super) fn take_path(&mut self) -> Option<Vec<u8>> {
        let sparse = self.get("GNU.sparse.name").map(<[u8]>::to_vec);
        let pax = self.get("path").map(<[u8]>::to_vec);
        sparse.or(self.gnu_path.take()).or(pax)
    }

    pub(super) fn take_link(&mut self) -> Option<Vec<u8>> {
        let pax = self.get("linkpath").map(<[u8]>::to_vec);
        self.gnu_link.take().or(pax)
    }
}

/// Key and value of a PAX record.
type Record = (Vec<u8>, Vec<u8>);

/// `LENGTH KEY=VALUE\n`, where LENGTH counts the whole record.
fn records(mut bytes: &[u8]) -> Result<Vec<Record>, &'static str> {
    let mut out = Vec::new();
    while !bytes.is_empty() && bytes[0] != 0 {
        let space = bytes.iter().take(20).position(|&b| b == b' ').ok_or("a record has no length")?;
        let length: usize = std::str::from_utf8(&bytes[..space])
            .ok()
            .and_then(|t| t.parse().ok())
            .ok_or("a record's length is not a number")?;
        let record = bytes.get(space + 1..length).ok_or("a record is longer than its header")?;
        let record = record.strip_suffix(b"\n").ok_or("a record does not end its line")?;
        let equals = record.iter().position(|&b| b == b'=').ok_or("a record has no value")?;
        out.push((record[..equals].to_vec(), record[equals + 1..].to_vec()));
        bytes = &bytes[length..];
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pax_records() {
        let pair = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(records(b"9 path=a\n").unwrap(), [pair("path", "a")]);
        let two = records(b"9 path=a\n12 size=123\n").unwrap();
        assert_eq!(two, [pair("path", "a"), pair("size", "123")]);
        let odd = records(b"12 path==\n\n\n").unwrap();
        assert_eq!(odd, [pair("path", "=\n\n")], "a value may hold anything");
        assert_eq!(records(b"").unwrap(), []);
        assert_eq!(records(b"9 path=a\n\0\0").unwrap().len(), 1, "padding ends them");
        for bad in
            [&b"x"[..], b"99 a=b\n", b"3 a\n", b"18446744073709551616 a=b\n", b"0 a=b\n", b"2 \n", b"8 path=a\n"]
        {
            assert!(records(bad).is_err(), "{bad:?}");
        }
    }
}
