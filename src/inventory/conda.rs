//! conda: one record per package in `conda-meta` of its environment.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::lines::token;
use super::{Fact, Files, Listed, json};
use crate::model::{ImagePath, Manager, Package};
use crate::stream::Body;

/// Bytes of a record read at most: those of packages with ten thousand files have some megabytes.
const LIMIT: u64 = 64 << 20;

/// `conda-meta/NAME-VERSION-BUILD.json`; its paths count from the environment, which holds `conda-meta`.
pub fn record(prefix: &ImagePath, body: &mut dyn Body) -> Result<Fact, String> {
    let Record { name, version, build, channel, subdir, files } = json::read_seed(RecordOf(prefix), body, LIMIT)?;
    let name = token(name.as_bytes()).ok_or("it has no name")?;
    let mut package = Package::new(Manager::Conda, name, token(version.as_bytes()));
    package.build = token(build.as_bytes());
    package.channel = token(short_channel(&channel, &subdir).as_bytes());
    let packages = vec![Listed { package, files: files.finish(0) }];
    Ok(Fact::Packages { packages, unread: 0 })
}

/// `conda-forge` of `https://conda.anaconda.org/conda-forge/linux-64`: without host, platform, and the token that
/// some hosts have in the path.
fn short_channel(channel: &str, subdir: &str) -> String {
    let Some((_, rest)) = channel.split_once("://") else { return channel.to_owned() };
    let mut parts: Vec<&str> = rest.split(['/', '?', '#']).filter(|p| !p.is_empty()).skip(1).collect();
    parts.pop_if(|last| *last == subdir || *last == "noarch");
    if parts.first() == Some(&"t") {
        parts.drain(..parts.len().min(2));
    }
    parts.join("/")
}

#[derive(Default)]
struct Record {
    name: String,
    version: String,
    build: String,
    channel: String,
    subdir: String,
    files: Files,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Field {
    Name,
    Version,
    Build,
    Channel,
    Subdir,
    Files,
    #[serde(other)]
    Other,
}

/// Reads a record of an environment and keeps of its files just the hashes.
struct RecordOf<'a>(&'a ImagePath);

impl<'de> DeserializeSeed<'de> for RecordOf<'_> {
    type Value = Record;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Record, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordOf<'_> {
    type Value = Record;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record of conda-meta")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
        let mut out = Record::default();
        while let Some(field) = map.next_key()? {
            match field {
                Field::Name => out.name = map.next_value()?,
                Field::Version => out.version = map.next_value()?,
                Field::Build => out.build = map.next_value()?,
                Field::Channel => out.channel = map.next_value::<Option<String>>()?.unwrap_or_default(),
                Field::Subdir => out.subdir = map.next_value::<Option<String>>()?.unwrap_or_default(),
                Field::Files => map.next_value_seed(Paths { prefix: self.0, files: &mut out.files })?,
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(out)
    }
}

/// A list of paths, or one path of it.
struct Paths<'a> {
    prefix: &'a ImagePath,
    files: &'a mut Files,
}

impl<'de> DeserializeSeed<'de> for Paths<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Paths<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("paths")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Paths { prefix: self.prefix, files: &mut *self.files })?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, path: &str) -> Result<(), E> {
        self.files.add(&self.prefix.join(path));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash;
    use super::*;
    use crate::stream::{Plain, Stream};

    fn read(text: &str) -> Result<Listed, String> {
        let prefix = ImagePath::new("opt/conda");
        match record(&prefix, &mut Stream::new(Plain(text.as_bytes()), None))? {
            Fact::Packages { mut packages, .. } => Ok(packages.remove(0)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn records_tell_build_channel_and_files() {
        // The form of a record as conda 23 writes it.
        let text = r#"{
            "arch": "x86_64", "build": "py3.10_cuda11.8_cudnn8.7.0_0", "build_number": 0,
            "channel": "https://conda.anaconda.org/pytorch/linux-64", "constrains": ["cpuonly <0"],
            "depends": ["pytorch-cuda >=11.8,<11.9", "python >=3.10,<3.11.0a0"],
            "files": ["bin/torchrun", "lib/python3.10/site-packages/torch/lib/libtorch_cuda.so"],
            "link": {"source": "/opt/conda/pkgs/pytorch-2.1.0", "type": 1}, "name": "pytorch",
            "paths_data": {"paths": [{"_path": "bin/torchrun", "path_type": "hardlink", "sha256": "00"}]},
            "subdir": "linux-64", "timestamp": 1696371543000, "version": "2.1.0"
        }"#;
        let Listed { package, files } = read(text).unwrap();
        assert_eq!(package.name, "pytorch");
        assert_eq!(package.version.as_deref(), Some("2.1.0"));
        assert_eq!(package.build.as_deref(), Some("py3.10_cuda11.8_cudnn8.7.0_0"));
        assert_eq!(package.channel.as_deref(), Some("pytorch"));
        let mut hashes =
            ["opt/conda/bin/torchrun", "opt/conda/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so"]
                .map(|p| hash(p.as_bytes()));
        hashes.sort_unstable();
        assert_eq!(files.hashes, hashes);
    }

    #[test]
    fn channels_go_by_their_name() {
        for (channel, expected) in [
            ("https://conda.anaconda.org/conda-forge/linux-64", "conda-forge"),
            ("https://conda.anaconda.org/conda-forge/noarch", "conda-forge"),
            ("https://repo.anaconda.com/pkgs/main/linux-64", "pkgs/main"),
            ("https://user:pass@conda.anaconda.org/t/SECRET/private/linux-64", "private"),
            ("https://conda.anaconda.org/nvidia/label/cuda-12.4.1", "nvidia/label/cuda-12.4.1"),
            ("https://host/t", ""),
            ("defaults", "defaults"),
        ] {
            assert_eq!(short_channel(channel, "linux-64"), expected, "{channel}");
        }
    }

    #[test]
    fn what_is_no_record_is_told() {
        assert_eq!(read("{}").unwrap_err(), "it has no name");
        assert_eq!(read("[]").unwrap_err(), "is JSON of an unknown form (line 1, column 1)");
        assert!(read(r#"{"name": "x", "files": [1]}"#).is_err());
        assert!(read(r#"{"name": "x", "#).is_err());
        let bare = read(r#"{"name": "x", "version": "1", "channel": null, "files": ["../../../a"]}"#).unwrap();
        assert_eq!(bare.files.hashes, [hash(b"a")]);
    }
}
