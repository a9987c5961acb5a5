//! From an index or a manifest to an image: whichever store holds them.

use super::super::history::created_by;
use super::super::{Image, ImageError, Layer};
use super::Handle;
use super::files::Stored;
use super::manifest::{self, Config, Descriptor, Document, Manifest, malformed};
use crate::model::{Digest, Platform};

/// The deepest nesting of indexes that is followed.
const MAX_DEPTH: usize = 4;

/// The most documents that are read to find what an index holds.
const MAX_DOCUMENTS: usize = 256;

/// The most images in one reference.
const MAX_CANDIDATES: usize = 4096;

/// Content by digest. What it returns of small things is verified.
pub trait Store: Send + Sync {
    fn place(&self) -> &str;
    /// A manifest or an index, and the content type it was served as.
    fn manifest(&self, digest: &Digest, size: Option<u64>) -> Result<(Vec<u8>, Option<String>), ImageError>;
    fn config(&self, digest: &Digest, size: Option<u64>) -> Result<Vec<u8>, ImageError>;
    fn layer(&self, digest: &Digest, size: Option<u64>) -> Result<Stored, ImageError>;
    /// Whether a manifest is there; layouts may hold an index without all it names.
    fn has(&self, digest: &Digest) -> bool;
}

/// Where to start.
pub enum Root {
    Descriptor(Descriptor),
    Read(Digest, Document),
}

#[derive(Clone)]
struct Candidate {
    digest: Digest,
    size: Option<u64>,
    platform: Option<Platform>,
    manifest: Option<Box<Manifest>>,
    /// Which of the roots it came from.
    root: usize,
}

/// Finds the images below the roots.
pub fn open(store: impl Store + 'static, roots: Vec<Root>, reference: String) -> Result<Handle, ImageError> {
    let mut walk = Walk { store: &store, found: Vec::new(), read: 0, other: Vec::new() };
    for (i, root) in roots.into_iter().enumerate() {
        match root {
            Root::Descriptor(d) => walk.descriptor(d, i, 0)?,
            Root::Read(digest, document) => walk.document(document, digest, None, None, i, 0)?,
        }
    }
    let Walk { mut found, other, .. } = walk;
    if found.iter().any(|c| store.has(&c.digest)) {
        found.retain(|c| store.has(&c.digest));
    }
    if found.is_empty() {
        let what = match other.first() {
            Some(what) => what.clone(),
            None => "an index without images".to_owned(),
        };
        return Err(ImageError::NotAnImage { reference: store.place().to_owned(), what });
    }
    if found.len() > 1 {
        found = with_platforms(&store, found)?;
        check_ambiguous(&store, &found)?;
    }
    let mut platforms: Vec<Platform> = Vec::new();
    if found.len() > 1 {
        for platform in found.iter().filter_map(|c| c.platform.as_ref()) {
            if !platforms.contains(platform) {
                platforms.push(platform.clone());
            }
        }
    }
    Ok(Handle::new(reference, platforms, move |wanted| {
        let candidate = choose(&found, wanted, store.place())?;
        let image = read(&store, candidate)?;
        match (wanted, &image.platform) {
            (Some(wanted), Some(has)) if !has.serves(wanted) && found.len() == 1 => {
                Err(no_such_platform(store.place(), wanted, &has.to_string()))
            }
            _ => Ok(image),
        }
    }))
}

struct Walk<'a> {
    store: &'a dyn Store,
    found: Vec<Candidate>,
    read: usize,
    /// What was seen that is no image.
    other: Vec<String>,
}

impl Walk<'_> {
    fn descriptor(&mut self, d: Descriptor, root: usize, depth: usize) -> Result<(), ImageError> {
        let place = self.store.place();
        if d.is_attached() {
            self.other.push("only attestations or other attached documents".to_owned());
            return Ok(());
        }
        let digest = d.digest(place)?;
        let platform = d.platform.as_ref().and_then(|p| p.checked());
        match d.media_type() {
            manifest::OCI_MANIFEST | manifest::DOCKER_MANIFEST => {
                self.add(Candidate { digest, size: d.size, platform, manifest: None, root })
            }
            manifest::OCI_INDEX | manifest::DOCKER_LIST | "" => {
                self.count()?;
                if !self.store.has(&digest) && depth > 0 {
                    self.other.push(format!("an index whose part {digest} is missing"));
                    return Ok(());
                }
                let (bytes, content_type) = self.store.manifest(&digest, d.size)?;
                let declared = content_type.as_deref().or(d.media_type.as_deref()).filter(|t| !t.is_empty());
                let document = manifest::parse(&bytes, declared, place)?;
                self.document(document, digest, d.size, platform, root, depth)
            }
            other => {
                self.other.push(format!("content of type {}", manifest::shown(other)));
                Ok(())
            }
        }
    }

    fn document(
        &mut self,
        document: Document,
        digest: Digest,
        size: Option<u64>,
        platform: Option<Platform>,
        root: usize,
        depth: usize,
    ) -> Result<(), ImageError> {
        let place = self.store.place();
        match document {
            Document::Manifest(m) => self.add(Candidate { digest, size, platform, manifest: Some(m), root }),
            Document::Index(_) if depth >= MAX_DEPTH => {
                Err(malformed(place, format!("indexes nested more than {MAX_DEPTH} deep")))
            }
            Document::Index(list) if list.iter().any(Descriptor::is_build_cache) => Err(ImageError::NotAnImage {
                reference: place.to_owned(),
                what: "a build cache of BuildKit".into(),
            }),
            Document::Index(list) => list.into_iter().try_for_each(|d| self.descriptor(d, root, depth + 1)),
        }
    }

    fn add(&mut self, candidate: Candidate) -> Result<(), ImageError> {
        if self.found.len() >= MAX_CANDIDATES {
            return Err(malformed(self.store.place(), format!("more than {MAX_CANDIDATES} images")));
        }
        let same = |c: &&mut Candidate| c.digest == candidate.digest;
        match self.found.iter_mut().find(same) {
            Some(known) if known.platform.is_none() => known.platform = candidate.platform,
            Some(known) if candidate.platform.is_none() || known.platform == candidate.platform => {}
            _ => self.found.push(candidate),
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), ImageError> {
        self.read += 1;
        if self.read > MAX_DOCUMENTS {
            return Err(malformed(self.store.place(), format!("more than {MAX_DOCUMENTS} nested documents")));
        }
        Ok(())
    }
}

/// Reads the configs of images whose index does not say for which platform they are.
fn with_platforms(store: &dyn Store, found: Vec<Candidate>) -> Result<Vec<Candidate>, ImageError> {
    if found.iter().filter(|c| c.platform.is_none()).count() > MAX_DOCUMENTS {
        return Err(malformed(store.place(), "too many images of unknown platform"));
    }
    let mut out = Vec::new();
    let mut refused = None;
    for mut candidate in found {
        if candidate.platform.is_none() {
            match manifest_of(store, &candidate).and_then(|m| Ok((config_of(store, &m)?, m))) {
                Ok((config, m)) => {
                    candidate.platform = config.platform();
                    candidate.manifest = Some(m);
                }
                Err(e @ ImageError::NotAnImage { .. }) => {
                    refused = Some(e);
                    continue;
                }
                Err(e) => return Err(e),
            }
        }
        out.push(candidate);
    }
    match (out.is_empty(), refused) {
        (true, Some(e)) => Err(e),
        _ => Ok(out),
    }
}

/// One index may name several images for a platform (Windows builds), the first counts. Several entries of a
/// layout may not: then nobody knows which was meant.
fn check_ambiguous(store: &dyn Store, found: &[Candidate]) -> Result<(), ImageError> {
    for (i, a) in found.iter().enumerate() {
        let twin = |b: &&Candidate| b.root != a.root && b.platform == a.platform;
        if let Some(b) = found[..i].iter().find(twin) {
            let what = format!("several images: {}, {}; add @DIGEST to choose one", b.digest, a.digest);
            return Err(malformed(store.place(), what));
        }
    }
    Ok(())
}

fn choose<'a>(found: &'a [Candidate], wanted: Option<&Platform>, place: &str) -> Result<&'a Candidate, ImageError> {
    let of = |wanted: &Platform| {
        let serves = |c: &&Candidate| c.platform.as_ref().is_some_and(|p| p.serves(wanted));
        let exact = |c: &&Candidate| c.platform.as_ref() == Some(wanted);
        found.iter().find(exact).or_else(|| found.iter().find(serves))
    };
    let chosen = match (found, wanted) {
        ([only], _) if only.platform.is_none() => Some(only),
        ([only], None) => Some(only),
        (_, Some(wanted)) => of(wanted),
        (_, None) => of(&Platform::default()).or(found.first()),
    };
    chosen.ok_or_else(|| {
        let mut names: Vec<String> = Vec::new();
        for candidate in found {
            let name = candidate.platform.as_ref().map_or("an unknown platform".into(), Platform::to_string);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        no_such_platform(place, &wanted.cloned().unwrap_or_default(), &names.join(", "))
    })
}

fn no_such_platform(place: &str, wanted: &Platform, available: &str) -> ImageError {
    ImageError::NoSuchPlatform {
        reference: place.to_owned(),
        platform: wanted.clone(),
        available: available.to_owned(),
    }
}

fn manifest_of(store: &dyn Store, candidate: &Candidate) -> Result<Box<Manifest>, ImageError> {
    if let Some(known) = &candidate.manifest {
        return Ok(known.clone());
    }
    let (bytes, content_type) = store.manifest(&candidate.digest, candidate.size)?;
    match manifest::parse(&bytes, content_type.as_deref(), store.place())? {
        Document::Manifest(m) => Ok(m),
        Document::Index(_) => {
            Err(malformed(store.place(), format!("{} is an index, named as a manifest", candidate.digest)))
        }
    }
}

fn config_of(store: &dyn Store, m: &Manifest) -> Result<Config, ImageError> {
    let digest = m.config.digest(store.place())?;
    Config::parse(&store.config(&digest, m.config.size)?, store.place())
}

fn read(store: &dyn Store, candidate: &Candidate) -> Result<Image, ImageError> {
    let place = store.place();
    let m = manifest_of(store, candidate)?;
    m.layers.iter().try_for_each(|l| manifest::check_layer(l, place))?;
    let config = config_of(store, &m)?;
    let layer = |l: &Descriptor| {
        let digest = l.digest(place)?;
        Ok((Some(digest), store.layer(&digest, l.size)?, l.size))
    };
    let layers = m.layers.iter().map(layer).collect::<Result<Vec<_>, ImageError>>()?;
    let mut image = assemble(place, &config, layers)?;
    image.digest = Some(candidate.digest);
    if image.platform.is_none() {
        image.platform = candidate.platform.clone();
    }
    Ok(image)
}

/// An image of a config and its layers: expected digest, what was found, and expected size.
pub fn assemble(
    place: &str,
    config: &Config,
    layers: Vec<(Option<Digest>, Stored, Option<u64>)>,
) -> Result<Image, ImageError> {
    let diff_ids = config.diff_ids(layers.len(), place)?;
    let steps = created_by(config.history(), layers.len());
    let mut out = Vec::with_capacity(layers.len());
    for (((digest, stored, size), diff_id), created_by) in layers.into_iter().zip(diff_ids).zip(steps) {
        let name = digest.unwrap_or(diff_id);
        if let Some(size) = size.filter(|&n| n != stored.size) {
            let what = format!("digest mismatch: layer {name} has {} bytes, the manifest says {size}", stored.size);
            return Err(malformed(place, what));
        }
        let place = || format!("{place}: layer {name}");
        let mismatch = |expected, actual| Err(ImageError::DigestMismatch { place: place(), expected, actual });
        if let Some(read) = stored.read {
            match (digest, read.diff_id) {
                (Some(expected), _) if expected != read.digest => return mismatch(expected, read.digest),
                (_, Some(actual)) if actual != diff_id => return mismatch(diff_id, actual),
                _ => {}
            }
        }
        out.push(Layer {
            digest,
            diff_id: Some(diff_id),
            size: Some(stored.size),
            created_by,
            content: stored.content,
        });
    }
    Ok(Image { digest: None, platform: config.platform(), config: config.facts(), layers: out })
}
