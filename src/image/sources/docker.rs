//! `docker save` in all its layouts: a `manifest.json` that names a config and layers by their paths.

use serde::Deserialize;

use super::super::{Image, ImageError};
use super::files::{Files, verify};
use super::manifest::{self, Config, malformed, shown};
use super::oci::assemble;
use super::reference::{Selector, same_image};
use super::{Handle, several};
use crate::model::Digest;

/// The most images of one archive, and layers of one image.
const MAX_IMAGES: usize = 1024;
const MAX_LAYERS: usize = 1024;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Option<Vec<String>>,
}

impl Saved {
    fn tags(&self) -> &[String] {
        self.repo_tags.as_deref().unwrap_or_default()
    }

    fn layers(&self) -> &[String] {
        self.layers.as_deref().unwrap_or_default()
    }
}

pub fn open(files: impl Files + 'static, selector: &Selector, reference: String) -> Result<Handle, ImageError> {
    let place = files.place().to_owned();
    let Some(bytes) = files.small("manifest.json")? else {
        let what = match files.has("repositories") {
            true => "saved by a Docker before 1.10, which cannot be read; save the image again",
            false => "no manifest.json and no index.json in it",
        };
        return Err(malformed(&place, what));
    };
    let images: Vec<Saved> = manifest::json(&bytes, "manifest.json", &place)?;
    let saved = select(images, selector, &place)?;
    let config = config(&files, &saved)?;
    Ok(Handle::new(reference, Vec::new(), move |wanted| {
        let image = read(&files, &saved, &config)?;
        match (wanted, &image.platform) {
            (Some(wanted), Some(has)) if !has.serves(wanted) => Err(ImageError::NoSuchPlatform {
                reference: files.place().to_owned(),
                platform: wanted.clone(),
                available: has.to_string(),
            }),
            _ => Ok(image),
        }
    }))
}

fn select(images: Vec<Saved>, selector: &Selector, place: &str) -> Result<Saved, ImageError> {
    if images.len() > MAX_IMAGES || images.iter().any(|i| i.layers().len() > MAX_LAYERS) {
        return Err(malformed(place, "too many images or layers"));
    }
    let listing = || {
        let name = |(i, s): (usize, &Saved)| s.tags().first().map_or_else(|| format!("@{i}"), |t| shown(t));
        images.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
    };
    let by_tag = |tag: &str| {
        let exact: Vec<_> = images.iter().filter(|s| s.tags().iter().any(|t| t == tag)).collect();
        let close = || images.iter().filter(|s| s.tags().iter().any(|t| same_image(t, tag))).collect();
        if exact.is_empty() { close() } else { exact }
    };
    let found: Vec<&Saved> = match selector {
        Selector { number: Some(n), .. } => images.get(*n).into_iter().collect(),
        Selector { digest: Some(digest), .. } => {
            let hex = digest.hex();
            images.iter().filter(|s| s.config.contains(&hex)).collect()
        }
        Selector { tag: Some(tag), .. } => by_tag(tag),
        Selector { .. } => images.iter().collect(),
    };
    match found.as_slice() {
        [] if images.is_empty() => {
            Err(ImageError::NotAnImage { reference: place.to_owned(), what: "an empty archive".to_owned() })
        }
        [] => Err(ImageError::NotFound {
            reference: format!("{place}: image {}", shown(&selector.to_string())),
            hint: format!("it has {}", listing()),
        }),
        [first, rest @ ..] if rest.iter().all(|s| s.config == first.config) => Ok((*first).clone()),
        _ => Err(several(place, &listing())),
    }
}

fn config(files: &dyn Files, saved: &Saved) -> Result<Config, ImageError> {
    let place = files.place();
    let bytes = files.small(&saved.config)?.ok_or_else(|| missing(place, "config", &saved.config))?;
    if let Some(digest) = digest_in(&saved.config) {
        verify(&bytes, &digest, None, &format!("{place}: config"))?;
    }
    Config::parse(&bytes, place)
}

fn read(files: &dyn Files, saved: &Saved, config: &Config) -> Result<Image, ImageError> {
    let layer = |name: &String| {
        let stored = files.layer(name)?.ok_or_else(|| missing(files.place(), "layer", name))?;
        // Elsewhere a name may be an ID that is no digest.
        let digest = name.starts_with("blobs/").then(|| digest_in(name)).flatten();
        Ok((digest, stored, None))
    };
    let layers = saved.layers().iter().map(layer).collect::<Result<Vec<_>, ImageError>>()?;
    assemble(files.place(), config, layers)
}

/// The digest that a file is named by: `HEX.json`, `sha256:HEX`, `blobs/sha256/HEX`.
fn digest_in(name: &str) -> Option<Digest> {
    let name = name.rsplit(['/', ':']).next()?;
    let hex = name.strip_suffix(".json").unwrap_or(name);
    format!("sha256:{hex}").parse().ok()
}

fn missing(place: &str, what: &str, name: &str) -> ImageError {
    ImageError::NotFound {
        reference: format!("{place}: {what} {}", shown(name)),
        hint: "the archive is incomplete, save the image again".to_owned(),
    }
}
