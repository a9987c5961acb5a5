//! One store of one driver: its lists of images and layers, and the documents of an image.
//!
//! Nothing is locked and nothing is written: the lists are replaced whole by those who change them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::super::ImageError;
use super::super::files::{io_error, read_small};
use super::super::manifest::{json, malformed, shown};

/// The largest list of images or layers: about 50,000 of them.
const MAX_LIST: u64 = 64 << 20;

/// Drivers whose folders are understood.
pub const DRIVERS: [&str; 2] = ["overlay", "vfs"];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct ImageRow {
    pub id: String,
    pub digest: Option<String>,
    pub names: Option<Vec<String>>,
    pub layer: Option<String>,
    pub big_data_digests: Option<BTreeMap<String, String>>,
}

impl ImageRow {
    pub fn names(&self) -> &[String] {
        self.names.as_deref().unwrap_or_default()
    }

    /// Digests that its manifests go by.
    pub fn digests(&self) -> impl Iterator<Item = &str> {
        let manifests = self.big_data_digests.iter().flatten().filter(|(key, _)| key.starts_with("manifest"));
        self.digest.as_deref().into_iter().chain(manifests.map(|(_, digest)| digest.as_str()))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct LayerRow {
    pub id: String,
    pub parent: Option<String>,
    pub diff_digest: Option<String>,
    pub diff_size: Option<i64>,
}

/// A store folder with one driver's part of it.
pub struct Store {
    root: PathBuf,
    pub driver: &'static str,
    pub images: Vec<ImageRow>,
    layers: HashMap<String, LayerRow>,
}

impl Store {
    /// Opens the driver's part; `None` if there is none.
    pub fn open(root: &Path, driver: &'static str) -> Result<Option<Self>, ImageError> {
        let Some(images) = list::<ImageRow>(&root.join(format!("{driver}-images/images.json")))? else {
            return Ok(None);
        };
        let layers: Vec<LayerRow> = list(&root.join(format!("{driver}-layers/layers.json")))?.unwrap_or_default();
        let layers = layers.into_iter().map(|l| (l.id.clone(), l)).collect();
        Ok(Some(Self { root: root.to_owned(), driver, images, layers }))
    }

    pub fn layer(&self, id: &str) -> Option<&LayerRow> {
        self.layers.get(id)
    }

    /// A document of an image: `manifest`, or a config by its digest.
    pub fn document(&self, image: &ImageRow, name: &str, place: &str) -> Result<Option<Vec<u8>>, ImageError> {
        let file = data_name(name);
        if !is_id(&image.id) || file.contains('/') {
            return Err(malformed(place, "the store's list of images is damaged"));
        }
        let path = self.root.join(format!("{}-images/{}/{file}", self.driver, image.id));
        let place = format!("{place}: {}", shown(name));
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(io_error(&place, e)),
        };
        let size = file.metadata().map_err(|e| io_error(&place, e))?.len();
        read_small(file, size, name, &place).map(Some)
    }

    /// What the layer's tar was split into, if that is kept.
    pub fn tar_split(&self, layer: &str) -> PathBuf {
        self.root.join(format!("{}-layers/{layer}.tar-split.gz", self.driver))
    }

    /// Where the layer's files are.
    pub fn folder(&self, layer: &str) -> PathBuf {
        self.root.join(match self.driver {
            "vfs" => format!("vfs/dir/{layer}"),
            driver => format!("{driver}/{layer}/diff"),
        })
    }

    /// Whether the layer's files lie in a composefs, which holds them by digest.
    pub fn is_composefs(&self, layer: &str) -> bool {
        self.root.join(format!("{}/{layer}/composefs-data", self.driver)).exists()
    }
}

/// IDs become parts of paths: hexadecimal digits, and nothing else.
pub fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The file that a document lies in: in base64 where its name has other than small letters, digits and dots.
fn data_name(name: &str) -> String {
    let plain = |b: u8| b == b'.' || b.is_ascii_digit() || b.is_ascii_lowercase();
    if name.bytes().all(plain) { name.to_owned() } else { format!("={}", BASE64_STANDARD.encode(name)) }
}

fn list<T: DeserializeOwned>(path: &Path) -> Result<Option<Vec<T>>, ImageError> {
    let place = path.display().to_string();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io_error(&place, e)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_LIST + 1).read_to_end(&mut bytes).map_err(|e| io_error(&place, e))?;
    if bytes.len() as u64 > MAX_LIST {
        return Err(ImageError::TooLarge { place, what: "the list".to_owned(), limit: MAX_LIST });
    }
    if bytes.trim_ascii().is_empty() {
        return Ok(Some(Vec::new()));
    }
    json::<Option<Vec<T>>>(&bytes, "the list", &place).map(|list| Some(list.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_named_as_the_store_names_them() {
        assert_eq!(data_name("manifest"), "manifest");
        assert_eq!(
            data_name("sha256:99a3b68bed2da8cdcaea060b775080b38f17e52f17b77cd927b722c4548d7985"),
            "=c2hhMjU2Ojk5YTNiNjhiZWQyZGE4Y2RjYWVhMDYwYjc3NTA4MGIzOGYxN2U1MmYxN2I3N2NkOTI3YjcyMmM0NTQ4ZDc5ODU="
        );
        assert!(is_id(&"0a".repeat(32)));
        for bad in ["", "../../etc", &"0A".repeat(32), &"0a".repeat(31)] {
            assert!(!is_id(bad), "{bad}");
        }
    }

    #[test]
    fn lists_are_read_or_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert!(Store::open(root, "vfs").unwrap().is_none());
        std::fs::create_dir_all(root.join("vfs-images")).unwrap();
        let put = |text: &str| std::fs::write(root.join("vfs-images/images.json"), text).unwrap();
        put("");
        assert!(Store::open(root, "vfs").unwrap().unwrap().images.is_empty());
        put("null");
        assert!(Store::open(root, "vfs").unwrap().unwrap().images.is_empty());
        put("[{\"id\":\"a\",\"names\":null,\"new\":{}}]");
        assert_eq!(Store::open(root, "vfs").unwrap().unwrap().images[0].id, "a");
        put("<html>");
        assert!(Store::open(root, "vfs").err().unwrap().to_string().contains("images.json"));
    }
}
