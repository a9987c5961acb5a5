//! The loader's own files, taken from their layer while it flows by.

use serde::{Deserialize, Serialize};

use super::cache::{self, Cache};
use super::conf::{self, ConfLine, OsRelease};
use crate::model::ImagePath;
use crate::stream::Body;

/// Real caches are of 10 to 200 KB.
const MAX_CACHE: usize = 16 << 20;
const MAX_TEXT: usize = 1 << 20;

/// Which file of the loader's a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probe {
    /// `etc/ld.so.cache`.
    Cache,
    /// `etc/ld.so.conf` and what it usually includes.
    Conf,
    /// `etc/ld.so.preload`.
    Preload,
    /// `etc/ld-musl-ARCH.path`.
    MuslPath,
    /// `etc/os-release`, `usr/lib/os-release`.
    OsRelease,
}

/// What such a file says. Plain data, small.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capture {
    Cache(Cache),
    /// `etc/ld.so.cache` is there and makes no sense.
    UnreadableCache,
    Conf(Vec<ConfLine>),
    Preload(Vec<String>),
    MuslPath(String),
    OsRelease(OsRelease),
}

/// Decides by path alone whether a regular file is the loader's.
pub fn wants(path: &ImagePath) -> Option<Probe> {
    let path = path.as_bytes();
    // Nearly every file of an image ends here.
    if !path.starts_with(b"etc/") && path != b"usr/lib/os-release" {
        return None;
    }
    match path {
        b"etc/ld.so.cache" => Some(Probe::Cache),
        b"etc/ld.so.conf" => Some(Probe::Conf),
        b"etc/ld.so.preload" => Some(Probe::Preload),
        b"etc/os-release" | b"usr/lib/os-release" => Some(Probe::OsRelease),
        _ if path.starts_with(b"etc/ld.so.conf.d/") => Some(Probe::Conf),
        _ if path.starts_with(b"etc/ld-musl-") && path.ends_with(b".path") => Some(Probe::MuslPath),
        _ => None,
    }
}

/// Reads one of them. What cannot be read is told, and whether it is there at all is still known.
pub fn read(probe: Probe, body: &mut dyn Body) -> (Option<Capture>, Option<String>) {
    let most = if probe == Probe::Cache { MAX_CACHE } else { MAX_TEXT };
    let bytes = match body.read_all(most) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(format!("is larger than {} KiB and was not read", most >> 10)),
        Err(e) => Err(e.to_string()),
    };
    let parsed = match probe {
        Probe::Cache => bytes.and_then(|b| cache::parse(&b)).map(Capture::Cache),
        Probe::Conf => bytes.map(|b| Capture::Conf(conf::lines(&b))),
        Probe::Preload => bytes.map(|b| Capture::Preload(conf::preloads(&String::from_utf8_lossy(&b)))),
        Probe::MuslPath => bytes.map(|b| Capture::MuslPath(String::from_utf8_lossy(&b).into_owned())),
        Probe::OsRelease => bytes.map(|b| Capture::OsRelease(conf::os_release(&b))),
    };
    match parsed {
        Ok(capture) => (Some(capture), None),
        Err(why) => ((probe == Probe::Cache).then_some(Capture::UnreadableCache), Some(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Plain, Stream};

    #[test]
    fn the_loader_s_files_are_found_by_path() {
        let probe = |p: &str| wants(&ImagePath::new(p));
        assert_eq!(probe("etc/ld.so.cache"), Some(Probe::Cache));
        assert_eq!(probe("etc/ld.so.conf"), Some(Probe::Conf));
        assert_eq!(probe("etc/ld.so.conf.d/cuda.conf"), Some(Probe::Conf));
        assert_eq!(probe("etc/ld.so.preload"), Some(Probe::Preload));
        assert_eq!(probe("etc/ld-musl-x86_64.path"), Some(Probe::MuslPath));
        assert_eq!(probe("usr/lib/os-release"), Some(Probe::OsRelease));
        assert_eq!(probe("opt/etc/ld.so.cache"), None);
        assert_eq!(probe("etc/passwd"), None);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let read = |probe, bytes: &[u8]| read(probe, &mut Stream::new(Plain(bytes), None));
        let (capture, why) = read(Probe::Cache, b"nonsense");
        assert_eq!(capture, Some(Capture::UnreadableCache));
        assert!(why.is_some());
        let (capture, why) = read(Probe::Conf, &vec![b'x'; MAX_TEXT + 1]);
        assert_eq!((capture, why.as_deref()), (None, Some("is larger than 1024 KiB and was not read")));
    }
}
