//! Files that are there as a whole or not at all, and are believed only if they are what was written.

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::Digest;

/// The first bytes; the digit changes when what follows is arranged anew.
const MAGIC: &[u8; 8] = b"imlint1\n";

/// Behind the magic: the sha256 of what follows it.
const HEADER: usize = MAGIC.len() + 32;

const LEVEL: i32 = 3;

/// Writes a file in the folder for temporary files, then renames it. Without a rename nothing is seen of it.
pub fn write(path: &Path, temporary: &Path, value: &impl Serialize) -> io::Result<()> {
    // Only what is packed is held whole.
    let mut encoder = BufWriter::new(zstd::stream::write::Encoder::new(Vec::new(), LEVEL)?);
    serde_json::to_writer(&mut encoder, value)?;
    let packed = encoder.into_inner().map_err(io::Error::from)?.finish()?;
    let mut file = tempfile::NamedTempFile::new_in(temporary)?;
    file.write_all(MAGIC)?;
    file.write_all(Digest::of(&packed).as_bytes())?;
    file.write_all(&packed)?;
    // Others may share the folder: the usual mode, not that of temporary files.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Reads a file back. `None`: not there, damaged, of another version, or larger than it may be.
pub fn read<T: DeserializeOwned>(path: &Path, max_file: u64, max_unpacked: u64) -> Option<T> {
    let file = fs::File::open(path).ok()?;
    if file.metadata().ok()?.len() > max_file {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(max_file).read_to_end(&mut bytes).ok()?;
    let (header, packed) = bytes.split_at_checked(HEADER)?;
    let (magic, digest) = header.split_at(MAGIC.len());
    if magic != MAGIC || digest != Digest::of(packed).as_bytes() {
        return None;
    }
    let mut text = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    let length = decoder.take(max_unpacked + 1).read_to_end(&mut text).ok()?;
    if length as u64 > max_unpacked {
        return None;
    }
    serde_json::from_slice(&text).ok()
}
