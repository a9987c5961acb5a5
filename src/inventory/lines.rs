//! Lines of a body, with bounded memory.

use std::io;

use crate::stream::Body;

/// The longest line that is kept.
pub const LIMIT: usize = 64 << 10;

/// Reads line by line; line ends (`\n`, `\r\n`) are cut off. Longer lines than [`LIMIT`] are passed over and
/// counted.
pub struct Lines<'a> {
    body: &'a mut dyn Body,
    line: Vec<u8>,
    pub overlong: u64,
}

impl<'a> Lines<'a> {
    pub fn new(body: &'a mut dyn Body) -> Self {
        Self { body, line: Vec::new(), overlong: 0 }
    }

    /// The next line, or `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            let mut fits = true;
            let mut any = false;
            loop {
                let window = self.body.window(1)?;
                if window.is_empty() {
                    break;
                }
                any = true;
                let end = memchr::memchr(b'\n', window);
                let part = &window[..end.unwrap_or(window.len())];
                fits &= self.line.len() + part.len() <= LIMIT;
                if fits {
                    self.line.extend_from_slice(part);
                }
                let n = part.len() + usize::from(end.is_some());
                self.body.consume(n);
                if end.is_some() {
                    break;
                }
            }
            if !any {
                return Ok(None);
            }
            if fits {
                return Ok(Some(self.line.strip_suffix(b"\r").unwrap_or(&self.line)));
            }
            self.overlong += 1;
        }
    }
}

/// A name or version from outside: visible ASCII, at most 256 bytes. Anything else is no value.
pub fn token(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.trim_ascii();
    let fits = (1..=256).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
    if fits { String::from_utf8(bytes.to_vec()).ok() } else { None }
}

/// The value of a `Name: value` line, whatever the name's case.
pub fn field<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (head, tail) = line.split_at_checked(name.len())?;
    if head.eq_ignore_ascii_case(name.as_bytes()) { tail.strip_prefix(b":") } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Plain, Stream};

    #[test]
    fn lines_are_cut_and_huge_ones_passed_over() {
        let mut text = b"one\r\n\ntwo\n".to_vec();
        text.extend(vec![b'x'; LIMIT + 1]);
        text.extend_from_slice(b"\nlast");
        let mut body = Stream::new(Plain(&text[..]), None);
        let mut lines = Lines::new(&mut body);
        let mut out = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            out.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(out, ["one", "", "two", "last"]);
        assert_eq!(lines.overlong, 1);
    }

    #[test]
    fn tokens_are_plain() {
        assert_eq!(token(b" 2.7.0+cu126 \r").as_deref(), Some("2.7.0+cu126"));
        assert_eq!(token(b""), None);
        assert_eq!(token(b"a\x1b[31m"), None);
        assert_eq!(token("ä".as_bytes()), None);
        assert_eq!(field(b"name: x", "Name"), Some(&b" x"[..]));
        assert_eq!(field(b"Names: x", "Name"), None);
        assert_eq!(field(b"Na", "Name"), None);
    }
}
