//! rpm: a database of package headers, in one of three containers.

mod header;
mod ndb;
mod sqlite;

use super::driver::Wanted;
use super::lines::token;
use super::{Fact, Files, Listed, MAX_PACKAGES};
use crate::model::{ImagePath, Manager, Package};
use crate::stream::Body;
use header::{Header, tag};

/// Which file of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// `rpmdb.sqlite`.
    Sqlite,
    /// `rpmdb.sqlite-wal`: what was written and not yet moved into the database.
    SqliteLog,
    /// `Packages.db`, SUSE's.
    Ndb,
    /// `Packages`, a hash table of Berkeley DB.
    Berkeley,
}

/// Bytes of a database read at most: pages refer to each other, so it is held whole. Some 2,000 packages have 100 MiB.
const LIMIT: usize = 128 << 20;

/// The longest path, PATH_MAX.
const LONGEST: usize = 4096;

/// Where the database is, was, and is on systems that keep it with the read-only /usr.
const FOLDERS: [&[u8]; 3] = [b"var/lib/rpm", b"usr/lib/sysimage/rpm", b"usr/share/rpm"];

/// Berkeley DB's hash tables have this at byte 12, in the byte order of their machine.
const BERKELEY_HASH: u32 = 0x0006_1561;

pub fn wants(folder: &[u8], name: &[u8]) -> Option<Source> {
    let source = match name {
        b"rpmdb.sqlite" => Source::Sqlite,
        b"rpmdb.sqlite-wal" => Source::SqliteLog,
        b"Packages.db" => Source::Ndb,
        b"Packages" => Source::Berkeley,
        _ => return None,
    };
    FOLDERS.contains(&folder).then_some(source)
}

/// The packages of a database; nothing where a file is empty.
pub fn read(source: Source, body: &mut dyn Body) -> Result<Option<Fact>, String> {
    let head = body.window(16).map_err(|e| e.to_string())?;
    if head.is_empty() {
        return Ok(None);
    }
    match source {
        Source::SqliteLog => {
            return Err("changes of the rpm database that stand in this log are not read".to_owned());
        }
        Source::Berkeley => return Err(berkeley(head).to_owned()),
        Source::Sqlite | Source::Ndb => {}
    }
    let whole = body.read_all(LIMIT).map_err(|e| e.to_string())?;
    let file = whole.ok_or_else(|| format!("rpm database of more than {LIMIT} bytes is not read"))?;
    let mut packages = Packages::default();
    match source {
        Source::Ndb => ndb::blobs(&file, &mut |blob| packages.add(blob))?,
        _ => sqlite::blobs(&file, "Packages", &mut |blob| packages.add(blob))?,
    }
    Ok(Some(Fact::Packages { packages: packages.listed, unread: packages.unread }))
}

fn berkeley(head: &[u8]) -> &'static str {
    let magic = head.get(12..16).and_then(|b| b.try_into().ok());
    let known = |m: [u8; 4]| [u32::from_le_bytes(m), u32::from_be_bytes(m)].contains(&BERKELEY_HASH);
    if magic.is_some_and(known) {
        "Berkeley DB rpm database is not read: its packages are not known"
    } else {
        "rpm database of an unknown form is not read"
    }
}

#[derive(Default)]
struct Packages {
    listed: Vec<Listed>,
    unread: u64,
}

impl Packages {
    /// A header, or `None` where the database has one that cannot be found.
    fn add(&mut self, blob: Option<&[u8]>) {
        let blob = blob.filter(|_| self.listed.len() < MAX_PACKAGES);
        match blob.and_then(Header::parse).as_ref().and_then(package) {
            // The keys that packages were signed with.
            Some(listed) if listed.package.name == "gpg-pubkey" => {}
            Some(listed) => self.listed.push(listed),
            None => self.unread += 1,
        }
    }
}

fn package(header: &Header<'_>) -> Option<Listed> {
    let name = token(header.text(tag::NAME)?)?;
    let text = |tag| header.text(tag).and_then(token);
    let version = text(tag::VERSION).map(|version| {
        let epoch = header.numbers(tag::EPOCH).next().filter(|e| *e > 0).map(|e| format!("{e}:"));
        let release = text(tag::RELEASE).map(|r| format!("-{r}"));
        [epoch.unwrap_or_default(), version, release.unwrap_or_default()].concat()
    });
    let mut package = Package::new(Manager::Rpm, name, version);
    let mut wanted = Wanted::default();
    header.texts(tag::REQUIRENAME).for_each(|one| wanted.add(one));
    package.wants_driver = wanted.finish();

    let dirs: Vec<&[u8]> = header.texts(tag::DIRNAMES).collect();
    let mut files = Files::default();
    for (base, dir) in header.texts(tag::BASENAMES).zip(header.numbers(tag::DIRINDEXES)) {
        match dirs.get(dir as usize) {
            Some(dir) if dir.len() + base.len() <= LONGEST => files.add(&ImagePath::new([dir, base].concat())),
            _ => files.skipped += 1,
        }
    }
    Some(Listed { package, files: files.finish(0) })
}

#[cfg(test)]
mod tests;
