//! Tar, read forward once.
//!
//! Headers are decoded with the tar crate; iteration is our own, because the crate reads PAX and long-name
//! records whole whatever their size, and does not know PAX sparse files (measured).

mod extension;
mod sparse;

use std::io;

use crate::model::ImagePath;
use crate::stream::{Body, Part};

use extension::Extensions;

const BLOCK: usize = 512;

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Dir,
    /// Target as written.
    Symlink(Vec<u8>),
    /// Target, normalised from the root.
    Hardlink(ImagePath),
    /// Device, fifo: never opened.
    Special,
    /// `.wh.NAME`: NAME of lower layers is gone. The path is that of NAME.
    Whiteout,
    /// `.wh..wh..opq`: lower layers' children are gone. The path is that of the directory.
    Opaque,
    /// Told only for its notes.
    Ignored,
}

/// One entry of a layer.
#[derive(Debug)]
pub struct Entry {
    pub path: ImagePath,
    pub kind: EntryKind,
    /// Logical size of a file.
    pub size: u64,
    /// Something odd that was mended, to be told.
    pub notes: Vec<String>,
}

/// Why a tar could not be read further. Offsets are in the unpacked tar.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    #[error("tar header at byte {at}: {what}")]
    Header { at: u64, what: String },
    #[error("tar ends in the middle of `{path}` (byte {at}): {missing} bytes are missing")]
    Truncated { at: u64, path: ImagePath, missing: u64 },
    #[error("tar has more than {limit} entries")]
    TooManyEntries { limit: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads all entries; `visit` gets each file's bytes and need not read them.
pub fn walk(
    body: &mut dyn Body,
    max_entries: u64,
    visit: &mut dyn FnMut(Entry, &mut dyn Body) -> io::Result<()>,
) -> Result<(), TarError> {
    let mut pending = Extensions::default();
    let mut count = 0u64;
    loop {
        let at = body.position();
        let Some(header) = read_header(body, at)? else { return Ok(()) };
        count += 1;
        if count > max_entries {
            return Err(TarError::TooManyEntries { limit: max_entries });
        }
        let bad = |what: &str| TarError::Header { at, what: what.to_owned() };
        let stored = number(&header.as_old().size).ok_or_else(|| bad("the size is negative or not a number"))?;
        let kind = header.as_old().linkflag[0];
        if matches!(kind, b'x' | b'g' | b'X' | b'L' | b'K') {
            pending.read(kind, stored, body, at)?;
            continue;
        }
        let extensions = std::mem::take(&mut pending);
        let size = extensions.size(stored).map_err(|what| TarError::Header { at, what })?;
        read_entry(body, at, &header, kind, size, extensions, visit)?;
    }
}

/// The next header; `None` at the end of the archive (two zero blocks, or no more bytes).
fn read_header(body: &mut dyn Body, at: u64) -> Result<Option<tar::Header>, TarError> {
    let bad = |what: &str| TarError::Header { at, what: what.to_owned() };
    let window = body.window(2 * BLOCK)?;
    if window.is_empty() {
        return Ok(None);
    }
    let Some(block) = window.first_chunk::<BLOCK>() else { return Err(bad("cut off")) };
    if block.iter().all(|&b| b == 0) {
        let next = &window[BLOCK..window.len().min(2 * BLOCK)];
        if next.iter().all(|&b| b == 0) {
            return Ok(None);
        }
        return Err(bad("a single zero block in the middle"));
    }
    let mut header = tar::Header::new_old();
    header.as_mut_bytes().copy_from_slice(block);
    if !checksum_holds(block) {
        return Err(bad("the checksum does not match: not a tar, or damaged"));
    }
    body.consume(BLOCK);
    Ok(Some(header))
}

fn checksum_holds(block: &[u8; BLOCK]) -> bool {
    let field: &[u8; 8] = match block[148..156].first_chunk() {
        Some(f) => f,
        None => return false,
    };
    let Some(want) = number(field) else { return false };
    let spaces = 8 * u64::from(b' ');
    let others = || block[..148].iter().chain(&block[156..]);
    let unsigned: u64 = others().map(|&b| u64::from(b)).sum::<u64>() + spaces;
    // Ancient tars summed signed bytes.
    let signed: i64 = others().map(|&b| i64::from(b as i8)).sum::<i64>() + spaces as i64;
    want == unsigned || i64::try_from(want) == Ok(signed)
}

/// Whether these bytes begin a tar: what tells a layer from any other blob.
pub fn looks_like_tar(head: &[u8]) -> bool {
    match head.first_chunk::<BLOCK>() {
        Some(block) => {
            checksum_holds(block) || head.len() >= 2 * BLOCK && head[..2 * BLOCK].iter().all(|&b| b == 0)
        }
        None => false,
    }
}

/// A numeric field: octal text, or base 256 when its first bit is set. `None` if negative or not a number.
fn number(field: &[u8]) -> Option<u64> {
    match field {
        [first, rest @ ..] if first & 0x80 != 0 => {
            if first & 0x40 != 0 {
                return None;
            }
            let mut value = u64::from(first & 0x3f);
            for &b in rest {
                value = value.checked_mul(256)?.checked_add(u64::from(b))?;
            }
            Some(value)
        }
        _ => {
            let text = field.split(|&b| b == 0).next()?.trim_ascii();
            text.iter().try_fold(0u64, |v, &b| match b {
                b'0'..=b'7' => v.checked_mul(8)?.checked_add(u64::from(b - b'0')),
                _ => None,
            })
        }
    }
}

fn read_entry(
    body: &mut dyn Body,
    at: u64,
    header: &tar::Header,
    kind: u8,
    stored: u64,
    mut extensions: Extensions,
    visit: &mut dyn FnMut(Entry, &mut dyn Body) -> io::Result<()>,
) -> Result<(), TarError> {
    let raw_name = extensions.take_path().unwrap_or_else(|| header.path_bytes().into_owned());
    let raw_link =
        extensions.take_link().or_else(|| header.link_name_bytes().map(|l| l.into_owned())).unwrap_or_default();
    let mut notes = Vec::new();
    let normal = ImagePath::normalise(&raw_name);
    if normal.escaped {
        notes.push(format!(
            "the entry's path `{}` climbs above the root; taken from the root",
            crate::model::escape(&raw_name)
        ));
    }
    let is_dir = kind == b'5' || (matches!(kind, 0 | b'0') && raw_name.ends_with(b"/"));
    let entry_kind = match kind {
        _ if is_dir => EntryKind::Dir,
        b'1' => {
            let link = ImagePath::normalise(&raw_link);
            if link.escaped {
                notes.push("the hard link's target climbs above the root; taken from the root".to_owned());
            }
            EntryKind::Hardlink(link.path)
        }
        b'2' => EntryKind::Symlink(raw_link),
        b'3' | b'4' | b'6' => EntryKind::Special,
        // POSIX: unknown types are regular files.
        _ => EntryKind::File,
    };
    // Links, directories and devices carry no data, whatever their size field says (as Go and GNU tar hold it);
    // old hard links with a size are the one dialect that differs, and no image builder writes it.
    let stored = match entry_kind {
        EntryKind::File => stored,
        _ => 0,
    };
    let sparse = match kind {
        b'S' => Some(sparse::Map::from_gnu(header, body, at)?),
        _ => None,
    };
    let data_at = body.position();
    let path = normal.path;
    let mut part = Part::new(body, stored);
    let sparse = match sparse {
        Some(map) => Some(map),
        None => sparse::Map::from_pax(&extensions, &mut part, at)?,
    };
    let (path, entry_kind) = whiteout(path, entry_kind, &mut notes);
    if let Some((path, kind)) = path.zip(entry_kind) {
        match sparse {
            Some(map) => {
                let entry = Entry { path: path.clone(), kind, size: map.size, notes };
                let mut expanded = map.expand(&mut part);
                visit(entry, &mut expanded)?;
            }
            None => visit(Entry { path: path.clone(), kind, size: stored, notes }, &mut part)?,
        }
    } else if !notes.is_empty() {
        let entry = Entry { path: ImagePath::new(&raw_name), kind: EntryKind::Ignored, size: 0, notes };
        visit(entry, &mut part)?;
    }
    let missing = part.finish()?;
    let padding = stored.wrapping_neg() % BLOCK as u64;
    if missing > 0 {
        return Err(TarError::Truncated { at: data_at, path: ImagePath::new(&raw_name), missing });
    }
    // A missing pad of the very last entry harms nobody.
    body.skip(padding)?;
    Ok(())
}

/// Tells whiteouts from plain files. Markers that would delete the root or a parent, and aufs's own, are
/// ignored with a note.
fn whiteout(path: ImagePath, kind: EntryKind, notes: &mut Vec<String>) -> (Option<ImagePath>, Option<EntryKind>) {
    let Some(hidden) = path.file_name().strip_prefix(b".wh.") else { return (Some(path), Some(kind)) };
    if hidden == b".wh..opq" {
        return (Some(path.parent()), Some(EntryKind::Opaque));
    }
    if matches!(hidden, b"" | b"." | b"..") || hidden.starts_with(b".wh.") {
        notes.push(format!("the whiteout `{path}` names nothing that could be removed; ignored"));
        return (None, None);
    }
    (Some(path.parent().join(hidden)), Some(EntryKind::Whiteout))
}

#[cfg(test)]
mod tests;
