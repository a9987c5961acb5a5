//! What a path holds, told by content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::super::ImageError;
use super::files::io_error;
use super::headers::{CLASSIFY, Holds, classify};
use super::manifest::malformed;
use super::stream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A folder that is an OCI layout.
    Layout,
    /// A folder as skopeo's `dir:` and podman's `docker-dir` make it.
    SkopeoDir,
    /// A folder that is an unpacked `docker save`.
    SavedDir,
    /// Any other folder.
    RootDir,
    /// A plain tar that is the archive of an image.
    Archive,
    /// The same, compressed.
    PackedArchive,
    /// A tar of a root file system, compressed or not.
    RootTar,
    Zip,
    /// A file that may hold device code.
    Code,
    Squashfs,
    Unknown,
}

impl Found {
    /// What it is, for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Layout => "an OCI layout",
            Self::SkopeoDir => "an image in skopeo's dir: layout",
            Self::SavedDir => "an unpacked docker archive",
            Self::RootDir => "a root file system",
            Self::Archive => "the archive of an image",
            Self::PackedArchive => "the compressed archive of an image",
            Self::RootTar => "the tar of a root file system",
            Self::Zip => "a zip archive",
            Self::Code => "a single file",
            Self::Squashfs => "a squashfs image",
            Self::Unknown => "a file of unknown kind",
        }
    }
}

/// File name endings of device code that has no magic, or too many.
const CODE: [&str; 8] = ["ptx", "cubin", "fatbin", "hsaco", "spv", "co", "a", "so"];

pub fn detect(path: &Path, place: &str) -> Result<Found, ImageError> {
    let meta = path.metadata().map_err(|e| io_error(place, e))?;
    if meta.is_dir() {
        return Ok(folder(path));
    }
    if !meta.is_file() {
        return Err(malformed(place, "neither a folder nor a regular file"));
    }
    let mut file = File::open(path).map_err(|e| io_error(place, e))?;
    let (head, holds) = stream::peek(&mut file).map_err(|e| io_error(place, e))?;
    if let Some(name) = stream::foreign_packing(&head).filter(|_| holds == Holds::NoTar) {
        return Err(malformed(place, format!("compressed with {name}, which is not supported; unpack it first")));
    }
    let plain = || classify(&head) == holds;
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    if head.is_empty() && !CODE.contains(&ending.as_str()) {
        return Err(malformed(place, "the file is empty"));
    }
    Ok(match (head.as_slice(), holds) {
        ([b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..], _) => Found::Zip,
        ([0x7f, b'E', b'L', b'F', ..] | [0x50, 0xed, 0x55, 0xba, ..], _) => Found::Code,
        ([b'!', b'<', b'a' | b't', b'r' | b'h', ..], _) => Found::Code,
        ([b'h', b's', b'q', b's', ..], _) => Found::Squashfs,
        (_, Holds::Image) if plain() => Found::Archive,
        (_, Holds::Image) => Found::PackedArchive,
        (_, Holds::Files) => Found::RootTar,
        _ if CODE.contains(&ending.as_str()) => Found::Code,
        _ => Found::Unknown,
    })
}

fn folder(path: &Path) -> Found {
    let is_file = |name: &str| path.join(name).is_file();
    if is_file("index.json") && is_file("oci-layout") {
        Found::Layout
    } else if is_file("manifest.json") && is_skopeo_dir(path) {
        Found::SkopeoDir
    } else if is_file("manifest.json") && is_saved(path) {
        Found::SavedDir
    } else {
        Found::RootDir
    }
}

fn is_skopeo_dir(path: &Path) -> bool {
    starts(&path.join("version")).starts_with(b"Directory Transport Version")
}

/// An unpacked docker archive's manifest is a list of images; any web application has a manifest.json.
fn is_saved(path: &Path) -> bool {
    let head = starts(&path.join("manifest.json"));
    head.trim_ascii_start().starts_with(b"[") && head.windows(8).any(|w| w == b"\"Config\"")
}

fn starts(path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(file) = File::open(path) {
        // Unreadable is the same as absent here: whoever reads the folder says so.
        let _ = file.take(CLASSIFY as u64).read_to_end(&mut out);
    }
    out
}
