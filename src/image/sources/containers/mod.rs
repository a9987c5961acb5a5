//! containers-storage: the store of podman, buildah and skopeo, read in place.
//!
//! Each layer's tar is put together again from what the store keeps of it, so that what is found is verified by the
//! same diff_id as anywhere else. Where that is not kept, the layer's folder is read as it lies.

mod beneath;
mod conf;
mod diff;
mod names;
mod store;
mod tar_split;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::history::created_by;
use super::super::{Content, Image, ImageError, Layer};
use super::Handle;
use super::files::{io_error, verify};
use super::manifest::{self, Config, Descriptor, Document, Manifest, malformed, shown};
use crate::model::{Digest, Platform};
use beneath::Beneath;
use conf::Places;
use diff::DiffFolder;
use store::{DRIVERS, ImageRow, LayerRow, Store, is_id};
use tar_split::{Kind, TarSplit};

/// The most layers followed from one image down.
const MAX_LAYERS: usize = 1024;

pub fn open(text: &str) -> Result<Handle, ImageError> {
    let (places, name) = conf::split(text)?;
    let places = match places {
        Some(places) => places,
        None => conf::places()?,
    };
    at(&places, name, "containers-storage:")
}

/// What podman has in its store under a name, for when its socket is not there.
pub fn podman(name: &str) -> Result<Handle, ImageError> {
    at(&conf::places()?, name, "podman:")
}

fn at(places: &Places, name: &str, scheme: &str) -> Result<Handle, ImageError> {
    let reference = format!("{scheme}{}", shown(name));
    if name.is_empty() {
        return Err(malformed(scheme, "a name must follow"));
    }
    let searched = places.stores.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
    if let Some(driver) = places.driver.as_deref().filter(|d| !DRIVERS.contains(d)) {
        let what = format!("a store of the driver {}, which cannot be read in place", shown(driver));
        return Err(malformed(&reference, format!("{what}; use `podman save {} | imagelint scan -`", shown(name))));
    }
    let stores = Arc::new(stores(places, &reference)?);
    let (store, image) = names::find(&stores, name, scheme, &searched)?;
    let found = Found {
        store: stores.iter().position(|s| std::ptr::eq(s, store)).unwrap_or_default(),
        image: image.clone(),
        stores: stores.clone(),
        place: reference.clone(),
    };
    found.open(reference)
}

/// Those that are there. Without any, what was looked for.
fn stores(places: &Places, reference: &str) -> Result<Vec<Store>, ImageError> {
    let mut out = Vec::new();
    for root in &places.stores {
        for driver in DRIVERS.iter().filter(|d| places.driver.as_deref().is_none_or(|named| named == **d)) {
            match Store::open(root, driver) {
                Ok(store) => out.extend(store),
                Err(ImageError::Io { place, source }) if source.kind() == io::ErrorKind::PermissionDenied => {
                    let what = "permission denied: the store of another user; try sudo, or podman's socket";
                    return Err(malformed(&place, what));
                }
                Err(e) => return Err(e),
            }
        }
    }
    if out.is_empty() {
        let roots: Vec<String> = places.stores.iter().map(|p| p.display().to_string()).collect();
        let driver = places.driver.as_deref().unwrap_or("overlay and vfs");
        let hint =
            format!("no store of {} in {}; root's images are seen with sudo", shown(driver), roots.join(", "));
        return Err(ImageError::NotFound { reference: reference.to_owned(), hint });
    }
    Ok(out)
}

/// An image and the stores that its layers are in.
struct Found {
    stores: Arc<Vec<Store>>,
    store: usize,
    image: ImageRow,
    place: String,
}

impl Found {
    fn open(self, reference: String) -> Result<Handle, ImageError> {
        let mut choice = self.choice()?;
        if let [(None, _)] = choice.as_slice() {
            choice.clear();
        }
        if choice.is_empty() {
            let (manifest, digest) = self.manifest()?;
            let config = self.config(&manifest)?;
            let layers = self.layers(&config)?;
            let notices = self.notices(&layers);
            let handle = Handle::new(reference, Vec::new(), move |wanted| {
                let image = self.read(&config, digest, &layers)?;
                self.check(wanted, image)
            });
            return Ok(notices.into_iter().fold(handle, Handle::told));
        }
        let platforms = choice.iter().filter_map(|(p, _)| p.clone()).collect();
        Ok(Handle::new(reference, platforms, move |wanted| {
            let of = |wanted: &Platform| {
                choice.iter().find(|(p, _)| p.as_ref().is_some_and(|p| p.serves(wanted))).map(|(_, row)| row)
            };
            let row = match wanted {
                Some(wanted) => of(wanted),
                None => of(&Platform::default()).or(choice.first().map(|(_, row)| row)),
            };
            let Some((store, image)) = row else { return Err(self.no_such(wanted, &choice)) };
            let one = Self {
                stores: self.stores.clone(),
                store: *store,
                image: image.clone(),
                place: self.place.clone(),
            };
            let (manifest, digest) = one.manifest()?;
            let config = one.config(&manifest)?;
            one.read(&config, digest, &one.layers(&config)?)
        }))
    }

    fn check(&self, wanted: Option<&Platform>, image: Image) -> Result<Image, ImageError> {
        match (wanted, &image.platform) {
            (Some(wanted), Some(has)) if !has.serves(wanted) => Err(ImageError::NoSuchPlatform {
                reference: self.place.clone(),
                platform: wanted.clone(),
                available: has.to_string(),
            }),
            _ => Ok(image),
        }
    }

    fn no_such(&self, wanted: Option<&Platform>, choice: &[Choice]) -> ImageError {
        let has: Vec<String> = choice.iter().filter_map(|(p, _)| p.as_ref().map(Platform::to_string)).collect();
        ImageError::NoSuchPlatform {
            reference: self.place.clone(),
            platform: wanted.cloned().unwrap_or_default(),
            available: has.join(", "),
        }
    }

    fn store(&self) -> &Store {
        &self.stores[self.store]
    }

    fn document(&self, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
        self.store().document(&self.image, name, &self.place)
    }

    /// The bytes of its manifest, checked against the digest that the store knows it by.
    fn manifest_bytes(&self) -> Result<(Vec<u8>, Digest), ImageError> {
        let bytes = match self.document("manifest")? {
            Some(bytes) => bytes,
            None => match &self.image.digest {
                Some(digest) => {
                    self.document(&format!("manifest-{digest}"))?.ok_or_else(|| self.lacks("manifest"))?
                }
                None => return Err(self.lacks("manifest")),
            },
        };
        let actual = Digest::of(&bytes);
        let known =
            self.image.big_data_digests.as_ref().and_then(|d| d.get("manifest")).or(self.image.digest.as_ref());
        if let Some(expected) = known.and_then(|d| d.parse().ok()) {
            verify(&bytes, &expected, None, &format!("{}: manifest", self.place))?;
        }
        Ok((bytes, actual))
    }

    fn lacks(&self, what: &str) -> ImageError {
        ImageError::NotFound {
            reference: format!("{}: its {what} in the store", self.place),
            hint: "pull the image again".to_owned(),
        }
    }

    /// Of a list: the images that it names and that are in the stores.
    fn choice(&self) -> Result<Vec<Choice>, ImageError> {
        let (bytes, _) = self.manifest_bytes()?;
        let Document::Index(list) = manifest::parse(&bytes, None, &self.place)? else { return Ok(Vec::new()) };
        let own = |d: &Descriptor| {
            let rows =
                self.stores.iter().enumerate().flat_map(|(s, store)| store.images.iter().map(move |i| (s, i)));
            let mut rows = rows.filter(|(_, i)| i.id != self.image.id && i.layer.is_some());
            let row = rows.find(|(_, i)| i.digests().any(|has| has == d.digest))?;
            Some((d.platform.as_ref().and_then(|p| p.checked()), (row.0, row.1.clone())))
        };
        let choice: Vec<Choice> = list.iter().filter(|d| !d.is_attached()).filter_map(own).collect();
        if choice.is_empty() {
            let hint = "the store has the list and none of its images; pull one with --platform".to_owned();
            return Err(ImageError::NotFound { reference: self.place.clone(), hint });
        }
        Ok(choice)
    }

    fn manifest(&self) -> Result<(Manifest, Digest), ImageError> {
        let (bytes, digest) = self.manifest_bytes()?;
        match manifest::parse(&bytes, None, &self.place)? {
            Document::Manifest(manifest) => Ok((*manifest, digest)),
            Document::Index(_) => Err(malformed(&self.place, "a list within a list")),
        }
    }

    fn config(&self, manifest: &Manifest) -> Result<Config, ImageError> {
        let digest = manifest.config.digest(&self.place)?;
        let bytes = self.document(&digest.to_string())?.ok_or_else(|| self.lacks("config"))?;
        verify(&bytes, &digest, None, &format!("{}: config", self.place))?;
        Config::parse(&bytes, &self.place)
    }

    /// The layers, lowest first: the store that each is in, its row and its diff_id.
    fn layers(&self, config: &Config) -> Result<Vec<Row>, ImageError> {
        let mut rows = Vec::new();
        let mut next = self.image.layer.clone().filter(|id| !id.is_empty());
        while let Some(id) = next {
            if !is_id(&id) || rows.len() >= MAX_LAYERS {
                return Err(malformed(&self.place, "the store's list of layers is damaged"));
            }
            let near = std::iter::once(self.store).chain(0..self.stores.len());
            let found = near.filter_map(|s| Some((s, self.stores[s].layer(&id)?))).next();
            let Some((store, row)) = found else { return Err(self.lacks(&format!("layer {}", &id[..12]))) };
            next = row.parent.clone().filter(|id| !id.is_empty());
            rows.push((store, row.clone()));
        }
        rows.reverse();
        let ids = config.diff_ids(rows.len(), &self.place)?;
        let rows: Vec<Row> = rows.into_iter().zip(ids).map(|((s, row), id)| (s, row, id)).collect();
        for (_, row, id) in &rows {
            if row.diff_digest.as_ref().is_some_and(|d| *d != id.to_string()) {
                let what = format!("layer {} is not the one that the image's config names", &row.id[..12]);
                return Err(malformed(&self.place, what));
            }
        }
        Ok(rows)
    }

    /// A vfs layer without its tar-split cannot be told from those below it: then the whole is read as one.
    fn as_one(&self, rows: &[Row]) -> bool {
        rows.iter().any(|(s, row, _)| self.stores[*s].driver == "vfs" && !self.has_split(*s, row))
    }

    fn has_split(&self, store: usize, row: &LayerRow) -> bool {
        exists(&self.stores[store].tar_split(&row.id))
    }

    fn notices(&self, rows: &[Row]) -> Vec<String> {
        let lacking = rows.iter().filter(|(s, row, _)| !self.has_split(*s, row)).count();
        if lacking == 0 {
            return Vec::new();
        }
        let how = match self.as_one(rows) {
            true => "the image is read as one root file system, its layers not told apart",
            false => "such a layer is read as it lies in its folder",
        };
        let what = format!("{}: {lacking} of {} layers have no tar-split", self.place, rows.len());
        vec![format!("{what}, so what they hold cannot be verified; {how}")]
    }

    fn read(&self, config: &Config, digest: Digest, rows: &[Row]) -> Result<Image, ImageError> {
        let mut image =
            Image { digest: Some(digest), platform: config.platform(), config: config.facts(), layers: Vec::new() };
        if self.as_one(rows) {
            let Some((store, row, _)) = rows.last() else { return Ok(image) };
            let content = self.folder_of(*store, row, true)?;
            image.layers.push(Layer { digest: None, diff_id: None, size: None, created_by: None, content });
            return Ok(image);
        }
        let steps = created_by(config.history(), rows.len());
        for ((store, row, diff_id), created_by) in rows.iter().zip(steps) {
            let (content, diff_id, size) = match self.has_split(*store, row) {
                true => {
                    let size = row.diff_size.and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0);
                    let known = row.diff_digest.is_some();
                    (self.split_of(*store, row)?, Some(*diff_id), size.filter(|_| known))
                }
                false => (self.folder_of(*store, row, false)?, None, None),
            };
            image.layers.push(Layer { digest: None, diff_id, size, created_by, content });
        }
        Ok(image)
    }

    fn layer_place(&self, row: &LayerRow) -> String {
        format!("{}: layer {}", self.place, &row.id[..12])
    }

    /// Checks that the layer's folder can be opened, and says where it is.
    fn folder(&self, store: usize, row: &LayerRow) -> Result<(PathBuf, String), ImageError> {
        let store = &self.stores[store];
        let place = self.layer_place(row);
        if store.is_composefs(&row.id) {
            let what = "kept as composefs, which cannot be read in place; use `podman save … | imagelint scan -`";
            return Err(malformed(&place, what));
        }
        let path = store.folder(&row.id);
        match Beneath::open(&path) {
            Ok(_) => Ok((path, place)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(self.lacks(&format!("layer {}", &row.id[..12]))),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                Err(malformed(&place, tar_split::unopened("its folder", &e)))
            }
            Err(e) => Err(io_error(&place, e)),
        }
    }

    fn folder_of(&self, store: usize, row: &LayerRow, whole: bool) -> Result<Content, ImageError> {
        let (path, place) = self.folder(store, row)?;
        let folder = Beneath::open(&path).map_err(|e| io_error(&place, e))?;
        Ok(Content::Files(Box::new(DiffFolder::new(folder, whole))))
    }

    fn split_of(&self, store: usize, row: &LayerRow) -> Result<Content, ImageError> {
        let (path, place) = self.folder(store, row)?;
        let kind = if self.stores[store].driver == "vfs" { Kind::Whole } else { Kind::Diff };
        let lines = self.stores[store].tar_split(&row.id);
        // Opened when its turn comes: an image may have more layers than a process may have files.
        Ok(Content::Blob(Box::new(move || {
            let failed = |e| io_error(&place, e);
            let folder = Beneath::open(&path).map_err(failed)?;
            let lines = File::open(&lines).map_err(failed)?;
            Ok(Box::new(TarSplit::new(lines, folder, kind, place.clone())))
        })))
    }
}

/// An image of a list: its platform, the number of its store and its row.
type Choice = (Option<Platform>, (usize, ImageRow));

/// A layer: the number of its store, its row and its diff_id.
type Row = (usize, LayerRow, Digest);

/// Also where it may not be looked at: then reading it says so.
fn exists(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

#[cfg(test)]
mod tests;
