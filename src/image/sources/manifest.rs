//! Manifests, indexes and configs: OCI and Docker v2 schema 2, read leniently, checked where it matters.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::super::ImageError;
use super::super::history::Step;
use crate::model::{ConfigFacts, Digest, Platform, escape};

/// The largest manifest, index or config that is read.
pub const MAX_JSON: u64 = 4 << 20;

/// The most layers an image may have; real ones stay below 130.
const MAX_LAYERS: usize = 1024;

pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const SCHEMA_1: &str = "application/vnd.docker.distribution.manifest.v1+";
const BUILD_CACHE: &str = "application/vnd.buildkit.cacheconfig.v0";

/// What layers are called, before the suffix that names their compression.
const LAYERS: [&str; 4] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: Option<String>,
    pub digest: String,
    pub size: Option<u64>,
    pub platform: Option<RawPlatform>,
    pub annotations: Option<BTreeMap<String, String>>,
    pub artifact_type: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RawPlatform {
    pub os: String,
    pub architecture: String,
    pub variant: Option<String>,
}

impl RawPlatform {
    pub fn is_unknown(&self) -> bool {
        self.os == "unknown" || self.architecture == "unknown"
    }

    /// `None` where nothing usable is said. Free text from outside, so it is made safe to print.
    pub fn checked(&self) -> Option<Platform> {
        let safe = |t: &str| escape(t.as_bytes());
        (!self.os.is_empty() && !self.architecture.is_empty()).then(|| Platform {
            os: safe(&self.os),
            architecture: safe(&self.architecture),
            variant: self.variant.as_deref().filter(|v| !v.is_empty()).map(safe),
        })
    }
}

impl Descriptor {
    pub fn media_type(&self) -> &str {
        self.media_type.as_deref().unwrap_or_default()
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// The digest, valid before any path is made of it.
    pub fn digest(&self, place: &str) -> Result<Digest, ImageError> {
        self.digest.parse().map_err(|_| malformed(place, format!("invalid digest `{}`", shown(&self.digest))))
    }

    /// Whether this describes an image and is none: provenance, a signature, an SBOM.
    pub fn is_attached(&self) -> bool {
        self.platform.as_ref().is_some_and(RawPlatform::is_unknown)
            || self.annotation("vnd.docker.reference.type").is_some()
            || self.artifact_type.as_deref().is_some_and(|t| !t.is_empty() && !is_config(t))
    }

    pub fn is_build_cache(&self) -> bool {
        self.media_type() == BUILD_CACHE
    }
}

#[derive(Debug, Clone)]
pub struct Manifest {
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
}

#[derive(Debug, Clone)]
pub enum Document {
    Index(Vec<Descriptor>),
    Manifest(Box<Manifest>),
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawDocument {
    schema_version: Option<u64>,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    fs_layers: Option<IgnoredAny>,
}

/// Reads a manifest or an index. `content_type` counts where the document does not name its own type.
pub fn parse(bytes: &[u8], content_type: Option<&str>, place: &str) -> Result<Document, ImageError> {
    let raw: RawDocument = json(bytes, "the manifest", place)?;
    let not_an_image = |what: String| ImageError::NotAnImage { reference: place.to_owned(), what };
    let declared = raw.media_type.as_deref().or(content_type).unwrap_or_default();
    if declared.starts_with(SCHEMA_1) || raw.schema_version == Some(1) || raw.fs_layers.is_some() {
        return Err(malformed(
            place,
            "a Docker schema 1 manifest, a format given up in 2019; push the image again",
        ));
    }
    let known = |types: &[&str]| types.contains(&declared);
    match (raw.manifests, raw.config, raw.layers) {
        (Some(_), _, Some(_)) | (Some(_), Some(_), _) => {
            Err(malformed(place, "claims to be an index and a manifest at once"))
        }
        (Some(manifests), ..) if declared.is_empty() || known(&[OCI_INDEX, DOCKER_LIST]) => {
            Ok(Document::Index(manifests))
        }
        (None, Some(config), layers) if declared.is_empty() || known(&[OCI_MANIFEST, DOCKER_MANIFEST]) => {
            if !is_config(config.media_type()) {
                let kind = raw.artifact_type.filter(|t| !t.is_empty());
                let kind = kind.unwrap_or_else(|| config.media_type().to_owned());
                return Err(not_an_image(match kind.contains("cacheconfig") {
                    true => format!("a build cache ({})", shown(&kind)),
                    false => format!("an artifact of type {}", shown(&kind)),
                }));
            }
            let layers = layers.unwrap_or_default();
            if layers.len() > MAX_LAYERS {
                return Err(malformed(place, format!("{} layers, more than {MAX_LAYERS}", layers.len())));
            }
            Ok(Document::Manifest(Box::new(Manifest { config, layers })))
        }
        _ if !declared.is_empty() => Err(not_an_image(format!("a document of type {}", shown(declared)))),
        _ => Err(not_an_image("neither a manifest nor an index".to_owned())),
    }
}

fn is_config(media_type: &str) -> bool {
    [OCI_CONFIG, DOCKER_CONFIG].contains(&media_type)
}

/// Refuses layers that hold no file tree, or one that cannot be read, by name. Which compression a layer has
/// is told by its bytes, not here.
pub fn check_layer(layer: &Descriptor, place: &str) -> Result<(), ImageError> {
    let media_type = layer.media_type();
    let rest = LAYERS.iter().filter_map(|l| media_type.strip_prefix(l)).next();
    match rest {
        Some("" | "+gzip" | ".gzip" | "+zstd" | ".zstd") => Ok(()),
        _ if media_type.ends_with("+encrypted") => Err(malformed(
            place,
            format!("layer {} is encrypted ({}); decrypt the image first", shown(&layer.digest), shown(media_type)),
        )),
        _ if media_type == "application/vnd.in-toto+json" => {
            Err(ImageError::NotAnImage { reference: place.to_owned(), what: "an attestation".to_owned() })
        }
        _ => Err(malformed(
            place,
            format!("layer {} has the unsupported media type `{}`", shown(&layer.digest), shown(media_type)),
        )),
    }
}

/// An image config.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    #[serde(flatten)]
    platform: RawPlatform,
    config: Option<RunConfig>,
    rootfs: Option<RootFs>,
    history: Option<Vec<Step>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RunConfig {
    env: Option<Vec<String>>,
    entrypoint: Option<Words>,
    cmd: Option<Words>,
    labels: Option<BTreeMap<String, Option<String>>>,
    user: Option<String>,
    working_dir: Option<String>,
}

/// A command: a list, or in old configs one word.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Words {
    List(Vec<String>),
    One(String),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RootFs {
    diff_ids: Option<Vec<String>>,
}

impl Config {
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self, ImageError> {
        json(bytes, "the image config", place)
    }

    pub fn platform(&self) -> Option<Platform> {
        self.platform.checked().filter(|_| !self.platform.is_unknown())
    }

    pub fn history(&self) -> &[Step] {
        self.history.as_deref().unwrap_or_default()
    }

    pub fn diff_ids(&self, layers: usize, place: &str) -> Result<Vec<Digest>, ImageError> {
        let ids = self.rootfs.as_ref().and_then(|r| r.diff_ids.as_deref()).unwrap_or_default();
        if ids.len() != layers {
            let what = format!("the manifest has {layers} layers and the config {} diff_ids", ids.len());
            return Err(malformed(place, what));
        }
        let parse = |id: &String| {
            id.parse().map_err(|_| malformed(place, format!("invalid diff_id `{}` in the config", shown(id))))
        };
        ids.iter().map(parse).collect()
    }

    pub fn facts(&self) -> ConfigFacts {
        let run = self.config.clone().unwrap_or_default();
        let words = |w: Option<Words>| match w {
            Some(Words::List(list)) => list,
            Some(Words::One(word)) => vec![word],
            None => Vec::new(),
        };
        let pair = |e: String| match e.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (e, String::new()),
        };
        ConfigFacts {
            env: run.env.unwrap_or_default().into_iter().map(pair).collect(),
            entrypoint: words(run.entrypoint),
            cmd: words(run.cmd),
            working_dir: run.working_dir.unwrap_or_default(),
            user: run.user.unwrap_or_default(),
            labels: run.labels.unwrap_or_default().into_iter().map(|(k, v)| (k, v.unwrap_or_default())).collect(),
        }
    }
}

pub fn json<T: DeserializeOwned>(bytes: &[u8], what: &str, place: &str) -> Result<T, ImageError> {
    serde_json::from_slice(bytes).map_err(|e| malformed(place, format!("{what} cannot be read: {e}")))
}

pub fn malformed(place: &str, what: impl Into<String>) -> ImageError {
    ImageError::Malformed { place: place.to_owned(), what: what.into() }
}

/// Text from outside, short and safe to print.
pub fn shown(text: &str) -> String {
    let mut safe = escape(text.as_bytes());
    if safe.len() > 160 {
        let cut = (0..=157).rev().find(|&i| safe.is_char_boundary(i)).unwrap_or(0);
        safe.truncate(cut);
        safe.push_str("...");
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn refused(text: &str) -> String {
        parse(text.as_bytes(), None, "x").unwrap_err().to_string()
    }

    #[test]
    fn documents_are_told_apart_and_refused_by_name() {
        let config = format!(r#"{{"mediaType":"{OCI_CONFIG}","digest":"{DIGEST}","size":2}}"#);
        let m = format!(r#"{{"schemaVersion":2,"config":{config},"layers":null}}"#);
        assert!(matches!(parse(m.as_bytes(), None, "x"), Ok(Document::Manifest(_))));
        assert!(matches!(parse(br#"{"manifests":[]}"#, Some(OCI_INDEX), "x"), Ok(Document::Index(_))));
        assert!(refused(&format!(r#"{{"config":{config},"manifests":[]}}"#)).contains("at once"));
        assert!(refused(r#"{"schemaVersion":1,"fsLayers":[]}"#).contains("schema 1"));
        assert!(refused(r#"{"mediaType":"application/x+json","layers":[]}"#).contains("application/x+json"));
        assert!(refused(r#"{"artifactType":"a/b","config":{"mediaType":"c/d"}}"#).contains("artifact of type a/b"));
        assert!(refused(r#"{"config":{"mediaType":"c/d","size":-1}}"#).contains("cannot be read"));
        assert!(refused(&"[".repeat(100_000)).contains("cannot be read"));
    }

    #[test]
    fn layers_are_checked_by_media_type() {
        let layer = |t: &str| Descriptor { media_type: Some(t.into()), ..Descriptor::default() };
        let check = |t: &str| check_layer(&layer(t), "x").map_err(|e| e.to_string());
        check("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip").unwrap();
        check("application/vnd.oci.image.layer.v1.tar+zstd").unwrap();
        assert!(check("application/vnd.oci.image.layer.v1.tar+gzip+encrypted").unwrap_err().contains("encrypted"));
        assert!(check("a/b").unwrap_err().contains("`a/b`"));
    }

    #[test]
    fn configs_are_read_leniently() {
        let text = r#"{"architecture":"arm64","os":"linux","config":{"Env":["A=b=c","D"],"Cmd":"sh","Labels":{"x":null},
            "Entrypoint":null},"rootfs":{"diff_ids":["sha256:0"]},"container_config":{},"history":null}"#;
        let config = Config::parse(text.as_bytes(), "x").unwrap();
        assert_eq!(config.platform().unwrap().to_string(), "linux/arm64");
        let facts = config.facts();
        assert_eq!(facts.env, [("A".into(), "b=c".into()), ("D".into(), String::new())]);
        assert_eq!(facts.cmd, ["sh"]);
        assert!(config.diff_ids(2, "x").unwrap_err().to_string().contains("1 diff_ids"));
        assert!(config.diff_ids(1, "x").unwrap_err().to_string().contains("invalid diff_id"));
    }
}
