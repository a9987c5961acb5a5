//! Paths inside an image: bytes, without a leading slash.

use std::fmt;
use std::str::FromStr;

use super::version::serde_as_text;

/// A normalised path in an image: bytes, components joined by single slashes, no leading slash, no `.` and no
/// `..`. The root is the empty path. Shown with control characters, backslashes and bytes that are not UTF-8
/// escaped as `\xNN`, so that a path can never drive a terminal or forge a line of a report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ImagePath(Box<[u8]>);

/// A path and whether `..` tried to climb above the root on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normalised {
    pub path: ImagePath,
    pub escaped: bool,
}

impl ImagePath {
    /// Normalises raw bytes; `..` at the root stays at the root.
    pub fn normalise(raw: &[u8]) -> Normalised {
        let mut out: Vec<u8> = Vec::with_capacity(raw.len());
        let mut escaped = false;
        for part in raw.split(|&b| b == b'/') {
            match part {
                b"" | b"." => {}
                b".." => {
                    escaped |= out.is_empty();
                    let cut = out.iter().rposition(|&b| b == b'/').unwrap_or(0);
                    out.truncate(cut);
                }
                _ => {
                    if !out.is_empty() {
                        out.push(b'/');
                    }
                    out.extend_from_slice(part);
                }
            }
        }
        Normalised { path: Self(out.into_boxed_slice()), escaped }
    }

    pub fn new(raw: impl AsRef<[u8]>) -> Self {
        Self::normalise(raw.as_ref()).path
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as text, where it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&b| b == b'/').filter(|c| !c.is_empty())
    }

    pub fn file_name(&self) -> &[u8] {
        self.components().next_back().unwrap_or_default()
    }

    /// The last component as text, lossy: for matching against tables of names.
    pub fn file_name_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.file_name())
    }

    pub fn parent(&self) -> Self {
        let cut = self.0.iter().rposition(|&b| b == b'/').unwrap_or(0);
        Self(self.0[..cut].into())
    }

    pub fn join(&self, tail: impl AsRef<[u8]>) -> Self {
        let mut raw = self.0.to_vec();
        raw.push(b'/');
        raw.extend_from_slice(tail.as_ref());
        Self::new(raw)
    }
}

impl fmt::Display for ImagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

impl FromStr for ImagePath {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(unescape(text)))
    }
}
serde_as_text!(ImagePath, "ImagePath");

/// Makes bytes safe to print on one line; see [`ImagePath`].
pub fn escape(bytes: &[u8]) -> String {
    use fmt::Write;
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
            if c == '\\' || c.is_control() || hidden {
                let mut buf = [0; 4];
                for b in c.encode_utf8(&mut buf).bytes() {
                    let _ = write!(out, "\\x{b:02x}");
                }
            } else {
                out.push(c);
            }
        }
        for b in chunk.invalid() {
            let _ = write!(out, "\\x{b:02x}");
        }
    }
    out
}

fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = bytes.get(i + 2..i + 4).and_then(|h| std::str::from_utf8(h).ok());
        match (bytes[i], bytes.get(i + 1), hex.and_then(|h| u8::from_str_radix(h, 16).ok())) {
            (b'\\', Some(b'x'), Some(b)) => {
                out.push(b);
                i += 4;
            }
            (b, _, _) => {
                out.push(b);
                i += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_clamped_to_the_root() {
        let n = |t: &str| ImagePath::normalise(t.as_bytes());
        assert_eq!(n("./p//a.so").path.to_string(), "p/a.so");
        assert_eq!(n("a/../../b.so").path.to_string(), "b.so");
        assert!(n("a/../../b.so").escaped);
        assert!(!n("a/../b.so").escaped);
        assert!(n("/").path.is_root());
    }

    #[test]
    fn unprintable_bytes_are_escaped_and_come_back() {
        let p = ImagePath::new(b"bad/\xff\x1b[31m\n\\ok\xe2\x80\xae");
        assert_eq!(p.to_string(), "bad/\\xff\\x1b[31m\\x0a\\x5cok\\xe2\\x80\\xae");
        assert_eq!(p.to_string().parse::<ImagePath>().unwrap(), p);
        assert_eq!(ImagePath::new("uni/日本語").to_string(), "uni/日本語");
    }

    #[test]
    fn parents_and_names() {
        let p = ImagePath::new("a/b/c");
        assert_eq!(p.parent().to_string(), "a/b");
        assert_eq!(p.file_name(), b"c");
        assert_eq!(p.parent().join("../x").to_string(), "a/x");
        assert!(ImagePath::new("a").parent().is_root());
    }
}
