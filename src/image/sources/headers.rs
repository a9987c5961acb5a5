//! Names, kinds and sizes of the members of an archive of an image. Layers are read by `image::tar`; this one
//! only has to find blobs in the outer tar, so it is small and strict.

use std::io;

use tar::{EntryType, Header};

use crate::model::ImagePath;
use crate::stream::{Body, Stream};

const BLOCK: usize = 512;

/// The largest PAX or GNU long-name record that is read.
const MAX_RECORD: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Symlink,
    Hardlink,
    Other,
}

/// One member; the body stands at its first byte, and [`Member::padded`] bytes lie before the next header.
#[derive(Debug, Clone)]
pub struct Member {
    pub name: ImagePath,
    /// Target of a link, as it stands in the header.
    pub link: Vec<u8>,
    pub kind: Kind,
    pub size: u64,
}

impl Member {
    /// Zeros between the member's end and the next header.
    pub fn padding(&self) -> u64 {
        (BLOCK as u64 - self.size % BLOCK as u64) % BLOCK as u64
    }

    /// Where a link leads, from the archive's root.
    pub fn target(&self) -> Option<ImagePath> {
        match self.kind {
            Kind::Hardlink => Some(ImagePath::new(&self.link)),
            Kind::Symlink if self.link.starts_with(b"/") => None,
            Kind::Symlink => Some(self.name.parent().join(&self.link)),
            _ => None,
        }
    }
}

/// Reads the next header, and what extends it. `None` at the end of the archive: two zero blocks, or no bytes.
pub fn next(body: &mut dyn Body) -> io::Result<Option<Member>> {
    let (mut pax, mut long_name, mut long_link) = (Pax::default(), None, None);
    loop {
        let Some(header) = block(body)? else { return Ok(None) };
        let size = checked_size(header.entry_size()?)?;
        match header.entry_type() {
            EntryType::XHeader => pax = Pax::parse(&record(body, size)?)?,
            EntryType::GNULongName => long_name = Some(c_string(record(body, size)?)),
            EntryType::GNULongLink => long_link = Some(c_string(record(body, size)?)),
            EntryType::XGlobalHeader => drop(record(body, size)?),
            EntryType::GNUSparse => return Err(bad("a sparse member, which no image archive has")),
            entry_type => {
                let kind = match entry_type {
                    EntryType::Regular | EntryType::Continuous => Kind::File,
                    EntryType::Directory => Kind::Dir,
                    EntryType::Symlink => Kind::Symlink,
                    EntryType::Link => Kind::Hardlink,
                    _ => Kind::Other,
                };
                let name = long_name.or(pax.path).unwrap_or_else(|| header.path_bytes().into_owned());
                let kind = if kind == Kind::File && name.ends_with(b"/") { Kind::Dir } else { kind };
                let in_header = || header.link_name_bytes().map(|l| l.into_owned()).unwrap_or_default();
                let size = match kind {
                    Kind::File | Kind::Other => checked_size(pax.size.unwrap_or(size))?,
                    Kind::Dir | Kind::Symlink | Kind::Hardlink => 0,
                };
                let link = long_link.or(pax.link).unwrap_or_else(in_header);
                return Ok(Some(Member { name: ImagePath::new(&name), link, kind, size }));
            }
        }
    }
}

/// A header block, its checksum verified; `None` at the end.
fn block(body: &mut dyn Body) -> io::Result<Option<Header>> {
    let window = body.window(BLOCK)?;
    if window.is_empty() {
        return Ok(None);
    }
    let Some(bytes) = window.get(..BLOCK) else { return Err(ended()) };
    if bytes.iter().all(|&b| b == 0) {
        return Ok(None);
    }
    let header = Header::from_byte_slice(bytes).clone();
    body.consume(BLOCK);
    let sum = bytes_sum(&header);
    if header.cksum().ok() != Some(sum) {
        return Err(bad("not a tar header: its checksum is wrong"));
    }
    Ok(Some(header))
}

fn bytes_sum(header: &Header) -> u32 {
    let bytes = header.as_bytes();
    let counted = bytes[..148].iter().chain(&bytes[156..]).map(|&b| u32::from(b)).sum::<u32>();
    counted + 8 * u32::from(b' ')
}

fn checked_size(size: u64) -> io::Result<u64> {
    if size > 1 << 60 { Err(bad("a member of impossible size")) } else { Ok(size) }
}

fn record(body: &mut dyn Body, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_RECORD {
        return Err(bad("a name record of more than 1 MiB"));
    }
    let size = size as usize;
    let out = body.window(size.max(1))?.get(..size).ok_or_else(ended)?.to_vec();
    body.consume(size);
    body.skip(((BLOCK - size % BLOCK) % BLOCK) as u64)?;
    Ok(out)
}

fn c_string(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|&b| b == 0) {
        bytes.truncate(end);
    }
    bytes
}

#[derive(Default)]
struct Pax {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Pax {
    /// Records are `LENGTH KEY=VALUE\n`, the length counting itself.
    fn parse(mut bytes: &[u8]) -> io::Result<Self> {
        let mut out = Self::default();
        let broken = || bad("a broken PAX header");
        while !bytes.is_empty() {
            let space = bytes.iter().position(|&b| b == b' ').ok_or_else(broken)?;
            let length = std::str::from_utf8(&bytes[..space]).ok().and_then(|t| t.parse::<usize>().ok());
            let length = length.filter(|&n| n > space + 1 && n <= bytes.len()).ok_or_else(broken)?;
            let record = bytes[space + 1..length].strip_suffix(b"\n").ok_or_else(broken)?;
            let equals = record.iter().position(|&b| b == b'=').ok_or_else(broken)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => out.path = Some(value.to_vec()),
                b"linkpath" => out.link = Some(value.to_vec()),
                b"size" => {
                    let text = std::str::from_utf8(value).map_err(|_| broken())?;
                    out.size = Some(text.parse().map_err(|_| broken())?);
                }
                _ => {}
            }
            bytes = &bytes[length..];
        }
        Ok(out)
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends in the middle of a header")
}

/// What a tar holds, told by its first members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// An image: manifests and layers.
    Image,
    /// A root file system.
    Files,
    /// It is no tar.
    NoTar,
}

/// How much of a tar [`classify`] wants to see.
pub const CLASSIFY: usize = 256 << 10;

/// Tells the archive of an image from a root file system by the first bytes of a tar.
pub fn classify(head: &[u8]) -> Holds {
    let mut body = Stream::new(head, Some(head.len() as u64));
    let mut hints = false;
    match next(&mut body) {
        Err(_) => return Holds::NoTar,
        Ok(None) if head.len() < BLOCK => return Holds::NoTar,
        Ok(None) => return Holds::Files,
        Ok(Some(_)) => {}
    }
    let mut body = Stream::new(head, Some(head.len() as u64));
    while let Ok(Some(member)) = next(&mut body) {
        match speaks_for_image(&member) {
            Some(true) => return Holds::Image,
            Some(false) => return Holds::Files,
            None => hints |= member.kind == Kind::File,
        }
        let length = member.size + member.padding();
        if !body.skip(length).is_ok_and(|n| n == length) {
            break;
        }
    }
    if hints { Holds::Image } else { Holds::Files }
}

/// `Some(true)`: only an image's archive has such a member; `Some(false)`: none has; `None`: both may.
fn speaks_for_image(member: &Member) -> Option<bool> {
    let name = member.name.as_str()?;
    let hex = |t: &str| t.len() == 64 && t.bytes().all(|b| b.is_ascii_hexdigit());
    let mut parts = name.split('/');
    let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let stem = first.split('.').next().unwrap_or_default();
    match (first, second, third) {
        ("", None, None) => None,
        ("blobs", None | Some("sha256" | "sha512"), _) | ("oci-layout", None, None) => Some(true),
        _ if first.starts_with("sha256:") || hex(stem) => Some(true),
        (_, Some("layer.tar"), None) => Some(true),
        (_, Some("VERSION" | "json"), None) => None,
        ("manifest.json" | "index.json" | "repositories", None, None) => None,
        (_, None, None) if member.kind == Kind::Dir => None,
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = tar::Builder::new(Vec::new());
        for (name, data) in entries {
            let mut h = Header::new_gnu();
            h.set_size(data.len() as u64);
            if name.ends_with('/') {
                h.set_entry_type(EntryType::Directory);
            }
            out.append_data(&mut h, name, *data).unwrap();
        }
        out.into_inner().unwrap()
    }

    fn names(bytes: &[u8]) -> io::Result<Vec<(String, u64)>> {
        let mut body = Stream::new(bytes, None);
        let mut out = Vec::new();
        while let Some(m) = next(&mut body)? {
            body.skip(m.size + m.padding())?;
            out.push((m.name.to_string(), m.size));
        }
        Ok(out)
    }

    #[test]
    fn long_names_of_both_kinds_are_read() {
        let long = "d/".repeat(80) + "x.tar";
        let bytes = tar(&[("./a", b"12"), (&long, b"345")]);
        assert_eq!(names(&bytes).unwrap(), [("a".into(), 2), (long, 3)]);

        let mut out = tar::Builder::new(Vec::new());
        let records = [("path", &b"blobs/y"[..]), ("comment", &b"x"[..])];
        out.append_pax_extensions(records).unwrap();
        let mut h = Header::new_ustar();
        h.set_size(1);
        out.append_data(&mut h, "short", &b"z"[..]).unwrap();
        assert_eq!(names(&out.into_inner().unwrap()).unwrap(), [("blobs/y".into(), 1)]);
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let bytes = tar(&[("manifest.json", b"[]"), ("a/layer.tar", &[7; 3000])]);
        for cut in 0..bytes.len() {
            let _ = names(&bytes[..cut]);
            let _ = classify(&bytes[..cut]);
        }
        for i in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[i] ^= 0x81;
            let _ = names(&flipped);
            let _ = classify(&flipped);
        }
        let mut wrong = bytes;
        wrong[3] ^= 1;
        assert!(names(&wrong).is_err());
        assert_eq!(classify(&wrong), Holds::NoTar);
    }

    #[test]
    fn archives_of_images_are_told_from_root_file_systems() {
        let hex = "a".repeat(64);
        let image: &[&[(&str, &[u8])]] = &[
            &[("./", b""), ("./oci-layout", b"{}")],
            &[("index.json", b"{}"), ("blobs/sha256/x", b"1")],
            &[("aaa/", b""), ("aaa/VERSION", b"1.0"), ("aaa/json", b"{}"), ("aaa/layer.tar", b"")],
            &[("manifest.json", b"[]")],
            &[(&format!("sha256:{hex}"), b"{}")],
            &[(&format!("{hex}.tar"), b"{}")],
            &[(&format!("{hex}.json"), b"{}")],
            &[(&format!("{hex}/"), b"")],
        ];
        for case in image {
            assert_eq!(classify(&tar(case)), Holds::Image, "{case:?}");
        }
        let files: &[&[(&str, &[u8])]] = &[
            &[("bin/", b""), ("bin/sh", b"x")],
            &[(".dockerenv", b"")],
            &[("index.json", b"{}"), ("app/", b""), ("app/main.js", b"x")],
            &[("dev/", b""), ("etc/", b"")],
        ];
        for case in files {
            assert_eq!(classify(&tar(case)), Holds::Files, "{case:?}");
        }
        assert_eq!(classify(b"hello"), Holds::NoTar);
        assert_eq!(classify(&[0; 1024]), Holds::Files);
    }
}
