//! An archive of an image on disk: its members are found once, by their headers, and read where they lie.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::super::ImageError;
use super::files::{Files, Stored, io_error, range, read_small};
use super::headers::{self, Kind};
use super::manifest::{malformed, shown};
use crate::model::ImagePath;
use crate::stream::{Body, Stream};

/// The most members of an archive; an image of 128 layers saved by an old Docker has about 520.
pub const MAX_MEMBERS: usize = 100_000;

/// The most bytes of all members' names together.
pub const MAX_NAMES: usize = 64 << 20;

/// The most links followed from one name.
pub const MAX_HOPS: usize = 16;

#[derive(Debug)]
enum Slot {
    File { offset: u64, size: u64 },
    Link(ImagePath),
}

pub struct TarIndex {
    path: PathBuf,
    place: String,
    members: HashMap<ImagePath, Slot>,
}

impl TarIndex {
    /// Reads all headers of an uncompressed archive, seeking over the bodies.
    pub fn open(path: &Path, place: &str) -> Result<Self, ImageError> {
        let mut body = Stream::open(path).map_err(|e| io_error(place, e))?;
        let (mut members, mut names) = (HashMap::new(), 0);
        while let Some(member) = headers::next(&mut body).map_err(|e| io_error(place, e))? {
            let length = member.size + member.padding();
            let offset = body.position();
            match (member.kind, member.target()) {
                (Kind::File, _) => {
                    members.insert(member.name.clone(), Slot::File { offset, size: member.size });
                }
                (_, Some(target)) => {
                    members.insert(member.name.clone(), Slot::Link(target));
                }
                _ => {}
            }
            names += member.name.as_bytes().len() + member.link.len();
            if members.len() > MAX_MEMBERS || names > MAX_NAMES {
                return Err(malformed(place, "too many members for the archive of an image"));
            }
            let there = body.skip(length).map_err(|e| io_error(place, e))?;
            if there < member.size {
                let what = format!("cut short: {} has {there} of {} bytes", member.name, member.size);
                return Err(malformed(place, what));
            }
        }
        Ok(Self { path: path.to_owned(), place: place.to_owned(), members })
    }

    fn find(&self, name: &str) -> Option<(u64, u64)> {
        let mut name = ImagePath::new(name);
        for _ in 0..=MAX_HOPS {
            match self.members.get(&name)? {
                Slot::File { offset, size } => return Some((*offset, *size)),
                Slot::Link(target) => name = target.clone(),
            }
        }
        None
    }
}

impl Files for TarIndex {
    fn place(&self) -> &str {
        &self.place
    }

    fn small(&self, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
        let Some((offset, size)) = self.find(name) else { return Ok(None) };
        let open = || -> std::io::Result<_> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file.take(size))
        };
        read_small(open().map_err(|e| io_error(&self.place, e))?, size, name, &self.place).map(Some)
    }

    fn layer(&self, name: &str) -> Result<Option<Stored>, ImageError> {
        let Some((offset, size)) = self.find(name) else { return Ok(None) };
        let content = range(self.path.clone(), offset, size, format!("{}: {}", self.place, shown(name)));
        Ok(Some(Stored { content, size, read: None }))
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}
