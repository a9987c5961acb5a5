//! OCI layouts (`oci:`, `oci-archive:`) and skopeo's `dir:`: blobs named by digest.

use serde::Deserialize;

use super::super::ImageError;
use super::files::{Files, Stored, verify};
use super::manifest::{self, Descriptor, shown};
use super::oci::{self, Root, Store};
use super::reference::{Selector, same_image};
use super::{Handle, several};
use crate::model::Digest;

const REF_NAME: &str = "org.opencontainers.image.ref.name";
const IMAGE_NAME: &str = "io.containerd.image.name";

/// The most names listed in an error.
const LISTED: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// `blobs/sha256/HEX`
    Blobs,
    /// `HEX`, and `HEX.manifest.json` for the manifests of an index.
    Flat,
}

struct Layout<F> {
    files: F,
    naming: Naming,
}

impl<F: Files> Layout<F> {
    fn name(&self, digest: &Digest) -> String {
        match self.naming {
            Naming::Blobs => format!("blobs/sha256/{}", digest.hex()),
            Naming::Flat => digest.hex(),
        }
    }

    fn manifest_name(&self, digest: &Digest) -> String {
        match self.naming {
            Naming::Blobs => self.name(digest),
            Naming::Flat => format!("{}.manifest.json", digest.hex()),
        }
    }

    fn small(&self, name: &str, digest: &Digest, size: Option<u64>, what: &str) -> Result<Vec<u8>, ImageError> {
        let place = self.files.place();
        let bytes = self.files.small(name)?.ok_or_else(|| missing(place, what, digest))?;
        verify(&bytes, digest, size, &format!("{place}: {what}"))?;
        Ok(bytes)
    }
}

impl<F: Files> Store for Layout<F> {
    fn place(&self) -> &str {
        self.files.place()
    }

    fn manifest(&self, digest: &Digest, size: Option<u64>) -> Result<(Vec<u8>, Option<String>), ImageError> {
        Ok((self.small(&self.manifest_name(digest), digest, size, "manifest")?, None))
    }

    fn config(&self, digest: &Digest, size: Option<u64>) -> Result<Vec<u8>, ImageError> {
        self.small(&self.name(digest), digest, size, "config")
    }

    fn layer(&self, digest: &Digest, _: Option<u64>) -> Result<Stored, ImageError> {
        let place = self.files.place();
        self.files.layer(&self.name(digest))?.ok_or_else(|| missing(place, "layer", digest))
    }

    fn has(&self, digest: &Digest) -> bool {
        self.files.has(&self.manifest_name(digest))
    }
}

fn missing(place: &str, what: &str, digest: &Digest) -> ImageError {
    ImageError::NotFound {
        reference: format!("{place}: {what} {digest}"),
        hint: "the layout is incomplete, copy the image again".to_owned(),
    }
}

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

/// Whether these files are an OCI layout.
pub fn is_layout(files: &dyn Files) -> bool {
    files.has("index.json") && (files.has("oci-layout") || !files.has("manifest.json"))
}

/// Opens an OCI layout.
pub fn open(files: impl Files + 'static, selector: &Selector, reference: String) -> Result<Handle, ImageError> {
    let place = files.place().to_owned();
    let Some(bytes) = files.small("index.json")? else {
        return Err(ImageError::NotFound {
            reference: format!("{place}: index.json"),
            hint: "this is no OCI layout".to_owned(),
        });
    };
    let index: Index = manifest::json(&bytes, "index.json", &place)?;
    let roots = select(index.manifests, selector, &place)?;
    let store = Layout { files, naming: Naming::Blobs };
    oci::open(store, roots.into_iter().map(Root::Descriptor).collect(), reference)
}

/// Opens what `skopeo copy … dir:` and `podman save --format docker-dir` make.
pub fn open_flat(files: impl Files + 'static, reference: String) -> Result<Handle, ImageError> {
    let place = files.place().to_owned();
    let Some(bytes) = files.small("manifest.json")? else {
        return Err(ImageError::NotFound {
            reference: format!("{place}: manifest.json"),
            hint: "the folder is incomplete, copy the image again".to_owned(),
        });
    };
    let document = manifest::parse(&bytes, None, &place)?;
    let store = Layout { files, naming: Naming::Flat };
    oci::open(store, vec![Root::Read(Digest::of(&bytes), document)], reference)
}

/// The names of an entry: the tag or name that OCI tools write, and the full name that containerd writes.
fn names(d: &Descriptor) -> impl Iterator<Item = &str> {
    [d.annotation(IMAGE_NAME), d.annotation(REF_NAME)].into_iter().flatten().filter(|n| !n.is_empty())
}

fn select(all: Vec<Descriptor>, selector: &Selector, place: &str) -> Result<Vec<Descriptor>, ImageError> {
    if all.is_empty() {
        return Err(ImageError::NotAnImage { reference: place.to_owned(), what: "an empty layout".to_owned() });
    }
    let listing = |list: &[Descriptor]| {
        let mut out: Vec<String> = Vec::new();
        for d in list {
            let name = names(d).next().map_or_else(|| format!("@{}", shown(&d.digest)), shown);
            if !out.contains(&name) {
                out.push(name);
            }
        }
        let more = out.len().saturating_sub(LISTED);
        out.truncate(LISTED);
        out.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
    };
    let mut chosen: Vec<Descriptor> = match selector {
        Selector { number: Some(n), .. } => all.get(*n).cloned().into_iter().collect(),
        Selector { digest: Some(digest), .. } => {
            let wanted = digest.to_string();
            let mut listed: Vec<_> = all.iter().filter(|d| d.digest == wanted).cloned().collect();
            // The digest of one platform's manifest is not in index.json: it is taken as it is.
            if listed.is_empty() {
                listed.push(Descriptor { digest: wanted, ..Descriptor::default() });
            }
            listed
        }
        Selector { tag: Some(tag), .. } => {
            let exact = |d: &&Descriptor| names(d).any(|n| n == tag);
            let close = |d: &&Descriptor| names(d).any(|n| same_image(n, tag));
            let found: Vec<_> = all.iter().filter(exact).cloned().collect();
            if found.is_empty() { all.iter().filter(close).cloned().collect() } else { found }
        }
        Selector { .. } => all.clone(),
    };
    if chosen.is_empty() {
        return Err(ImageError::NotFound {
            reference: format!("{place}: image {}", shown(&selector.to_string())),
            hint: format!("it has {}", listing(&all)),
        });
    }
    // Several names of one image are one image; several images of different names are a question.
    let first = names(&chosen[0]).next().map(str::to_owned);
    let one_name = chosen.iter().all(|d| names(d).next() == first.as_deref());
    let one_image = chosen.iter().all(|d| d.digest == chosen[0].digest);
    if !one_name && !one_image {
        return Err(several(place, &listing(&chosen)));
    }
    if one_image {
        chosen.truncate(1);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(hex: char, name: Option<&str>, full: Option<&str>) -> Descriptor {
        let notes = [(REF_NAME, name), (IMAGE_NAME, full)];
        let notes = notes.into_iter().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned())));
        Descriptor {
            digest: format!("sha256:{}", hex.to_string().repeat(64)),
            annotations: Some(notes.collect()),
            ..Descriptor::default()
        }
    }

    fn pick(all: &[Descriptor], selector: &str) -> Result<Vec<char>, String> {
        let selector = Selector::parse(selector, "x").map_err(|e| e.to_string())?;
        let chosen = select(all.to_vec(), &selector, "x").map_err(|e| e.to_string())?;
        Ok(chosen.iter().filter_map(|d| d.digest.chars().nth(7)).collect())
    }

    #[test]
    fn names_choose_images() {
        let two = [entry('a', Some("base"), None), entry('b', Some("localhost/t:oci"), None)];
        assert!(pick(&two, "").unwrap_err().contains("base, localhost/t:oci"));
        assert_eq!(pick(&two, ":base").unwrap(), ['a']);
        assert_eq!(pick(&two, ":localhost/t:oci").unwrap(), ['b']);
        assert_eq!(pick(&two, ":t:oci").unwrap(), ['b']);
        assert_eq!(pick(&two, ":oci").unwrap(), ['b']);
        assert_eq!(pick(&two, ":@1").unwrap(), ['b']);
        assert!(pick(&two, ":nope").unwrap_err().contains("it has base"));
        let digest = format!("@sha256:{}", "c".repeat(64));
        assert_eq!(pick(&two, &digest).unwrap(), ['c']);
        let docker = [
            entry('a', Some("1"), Some("docker.io/library/t:1")),
            entry('b', Some("1"), Some("docker.io/library/u:1")),
        ];
        assert_eq!(pick(&docker, ":u:1").unwrap(), ['b']);
        assert!(pick(&docker, ":1").is_err());
    }

    #[test]
    fn platform_variants_and_aliases_are_no_question() {
        let bare = [entry('a', None, None), entry('b', None, None)];
        assert_eq!(pick(&bare, "").unwrap(), ['a', 'b']);
        let aliases = [entry('a', Some("1"), None), entry('a', Some("latest"), None)];
        assert_eq!(pick(&aliases, "").unwrap(), ['a']);
        assert!(pick(&[], "").unwrap_err().contains("empty layout"));
    }
}
