//! Where images come from. [`SOURCES`] names them all; a bare word is a path if it exists, otherwise a
//! reference to a registry.

mod archive;
mod auth;
mod containers;
mod credentials;
mod daemon;
mod detect;
mod docker;
mod files;
mod gate;
mod headers;
mod hosts;
mod http;
mod layout;
mod manifest;
mod mirrors;
mod oci;
mod options;
mod reference;
mod registry;
mod rootfs;
mod squashfs;
mod stream;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use self::archive::TarIndex;
pub use self::credentials::Login;
use self::detect::{Found, detect};
use self::files::{Files, Folder, io_error};
use self::manifest::malformed;
pub(super) use self::manifest::shown;
pub use self::mirrors::Mirror;
pub use self::options::{Machine, OpenOptions, Trace};
use self::reference::{Selector, split_path};
use super::{BlobSink, Image, ImageError, Opened};
use crate::model::Platform;

/// What an opener gets: the reference behind its scheme.
type Opener = fn(&str, &OpenOptions, &mut dyn BlobSink) -> Result<Handle, ImageError>;

/// One way to name an image.
pub struct Source {
    /// With its colon, `oci:`; the bare word `-` for standard input.
    pub scheme: &'static str,
    /// What follows the scheme.
    pub takes: &'static str,
    pub about: &'static str,
    open: Opener,
}

/// Every scheme; the first that fits counts.
pub static SOURCES: [Source; 14] = [
    source("registry:", "REF", "an image in a registry", registry_source),
    source("docker://", "REF", "the same, as skopeo says it", docker_slashes),
    source("oci:", "DIR[:TAG]", "an OCI layout", oci_layout),
    source("oci-archive:", "FILE[:TAG]", "an OCI layout in a tar", image_archive),
    source("docker-archive:", "FILE[:TAG]", "what docker save and podman save write", image_archive),
    source("dir:", "DIR", "a root file system, or skopeo's dir: layout", dir),
    source("tar:", "FILE", "a root file system in a tar", root_tar),
    source("file:", "FILE", "one ELF, cubin, fatbin, PTX, archive or wheel", single_file),
    source("-", "[:TAG]", "any of the archives, on standard input", standard_input),
    source("docker:", "NAME", "an image of the Docker daemon", docker_daemon),
    source("docker-daemon:", "NAME", "the same, as skopeo says it", docker_daemon),
    source("podman:", "NAME", "an image of podman, by its socket or in its store", podman),
    source("containers-storage:", "NAME", "an image in the store of podman and buildah", containers),
    source("squashfs:", "FILE", "a root file system in squashfs, as enroot makes it", squashfs_file),
];

/// Several images, of which one must be chosen.
fn several(place: &str, names: &str) -> ImageError {
    // A word that starts with a dash is taken for a flag unless it stands behind two.
    let how = match place == stream::STANDARD_INPUT {
        true => "write -- -:TAG",
        false => "add :TAG",
    };
    malformed(place, format!("several images, {how} to choose one of {names}"))
}

const fn source(scheme: &'static str, takes: &'static str, about: &'static str, open: Opener) -> Source {
    Source { scheme, takes, about, open }
}

/// Whether a reference is of something that is read once, in passing, and dear to read again.
pub fn streams(reference: &str) -> bool {
    let daemons = ["docker:", "docker-daemon:", "podman:"];
    let of_daemon = daemons.iter().any(|s| reference.starts_with(s)) && !reference.starts_with("docker://");
    of_daemon || reference == "-" || reference.starts_with("-:") || reference.starts_with("-@")
}

/// Opens a reference. Layers of what cannot be read twice go to the sink in passing.
pub fn open(
    reference: &str,
    options: &OpenOptions,
    sink: &mut dyn BlobSink,
) -> Result<Box<dyn Opened>, ImageError> {
    let by_scheme = SOURCES.iter().find_map(|s| {
        let rest = reference.strip_prefix(s.scheme)?;
        (s.scheme != "-" || rest.is_empty() || rest.starts_with([':', '@'])).then_some((s, rest))
    });
    let handle = match by_scheme {
        Some((source, rest)) => (source.open)(rest, options, sink)?,
        None => bare(reference, options, sink)?,
    };
    Ok(Box::new(handle))
}

/// Reads the image for a platform.
type ReadImage = dyn Fn(Option<&Platform>) -> Result<Image, ImageError> + Send + Sync;

/// An opened reference, whatever its source.
struct Handle {
    reference: String,
    taken_for: Option<String>,
    notices: Vec<String>,
    platforms: Vec<Platform>,
    image: Box<ReadImage>,
}

impl Handle {
    fn new(
        reference: String,
        platforms: Vec<Platform>,
        image: impl Fn(Option<&Platform>) -> Result<Image, ImageError> + Send + Sync + 'static,
    ) -> Self {
        Self { reference, taken_for: None, notices: Vec::new(), platforms, image: Box::new(image) }
    }

    fn taken_for(mut self, what: String) -> Self {
        self.taken_for = Some(what);
        self
    }

    fn told(mut self, notice: String) -> Self {
        self.notices.push(notice);
        self
    }
}

impl Opened for Handle {
    fn reference(&self) -> &str {
        &self.reference
    }

    fn taken_for(&self) -> Option<&str> {
        self.taken_for.as_deref()
    }

    fn notices(&self) -> &[String] {
        &self.notices
    }

    fn platforms(&self) -> &[Platform] {
        &self.platforms
    }

    fn image(&self, platform: Option<&Platform>) -> Result<Image, ImageError> {
        (self.image)(platform)
    }
}

/// A word without a scheme.
fn bare(word: &str, options: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    if word.is_empty() {
        return Err(malformed("IMAGE", "an empty reference"));
    }
    let path_like = looks_like_path(word);
    match split_path(word) {
        // A tag may hold a slash: what tells is the part that exists.
        Some((path, rest)) if rest.is_empty() || path_like || looks_like_path(&path.to_string_lossy()) => {
            let found = detect(&path, word)?;
            let notice = format!("{} is read as {}", shown(word), found.text());
            Ok(by_content(found, &Named { path, rest, scheme: "" }, sink)?.taken_for(notice))
        }
        _ if path_like => Err(ImageError::NotFound {
            reference: shown(word),
            hint: "no such file or folder; an image in a registry is written registry:NAME".to_owned(),
        }),
        _ => {
            let handle = registry::open(word, options).map_err(|e| near_path(e, word))?;
            let notice = match shown(word) {
                word if word == handle.reference => format!("{word} is taken for an image in a registry"),
                word => format!("{word} is taken for {} in a registry", handle.reference),
            };
            Ok(handle.taken_for(notice))
        }
    }
}

/// Adds to what an error says can be tried.
fn with_hint(mut error: ImageError, more: &str) -> ImageError {
    if let ImageError::Network { hint, .. } | ImageError::NotFound { hint, .. } = &mut error {
        let between = if hint.is_empty() { "" } else { "; " };
        hint.push_str(&format!("{between}{more}"));
    }
    error
}

/// A failure in a registry, where a layout or an archive of that name and tag may have been meant.
fn near_path(e: ImageError, word: &str) -> ImageError {
    let Some((path, _)) = split_path(word) else {
        // Whoever names a host means no path.
        let host = word.split('/').next().is_some_and(|first| word.contains('/') && first.contains(['.', ':']));
        return if host { e } else { with_hint(e, "there is no such path here either") };
    };
    let scheme = match detect(&path, word) {
        Ok(Found::Layout) => "oci:",
        Ok(Found::Archive | Found::PackedArchive) => "docker-archive:",
        _ => return e,
    };
    let more = |hint: String| {
        let own = format!("for the path write {scheme}{}", shown(word));
        if hint.is_empty() { own } else { format!("{hint}; {own}") }
    };
    match e {
        ImageError::NotFound { reference, hint } => ImageError::NotFound { reference, hint: more(hint) },
        ImageError::Network { host, what, hint } => ImageError::Network { host, what, hint: more(hint) },
        e => e,
    }
}

/// Whether a word can only be meant as a path: then a typo is no reason to ask the network.
fn looks_like_path(word: &str) -> bool {
    let endings =
        [".tar", ".tgz", ".gz", ".zst", ".whl", ".so", ".cubin", ".fatbin", ".ptx", ".sqsh", ".squashfs", ".zip"];
    let end = word.rsplit('/').next().unwrap_or(word);
    let end = end.split(':').next().unwrap_or(end);
    if word.contains("://") {
        return false;
    }
    word.starts_with(['/', '.', '~']) || endings.iter().any(|e| end.ends_with(e)) || end.contains(".so.")
}

/// A path of the command line, what follows it, and its scheme.
struct Named<'a> {
    path: PathBuf,
    rest: &'a str,
    scheme: &'a str,
}

impl<'a> Named<'a> {
    fn new(scheme: &'a str, text: &'a str) -> Result<Self, ImageError> {
        if text.is_empty() {
            return Err(malformed(scheme, "a path must follow"));
        }
        let Some((path, rest)) = split_path(text) else {
            let hint = "no such file or folder".to_owned();
            return Err(ImageError::NotFound { reference: format!("{scheme}{}", shown(text)), hint });
        };
        Ok(Self { path, rest, scheme })
    }

    /// A path after which nothing may follow.
    fn whole(scheme: &'a str, text: &'a str) -> Result<Self, ImageError> {
        let named = Self::new(scheme, text)?;
        if named.rest.is_empty() {
            return Ok(named);
        }
        let hint = "no such file or folder".to_owned();
        Err(ImageError::NotFound { reference: format!("{scheme}{}", shown(text)), hint })
    }

    /// As errors name it: the path as it was given.
    fn place(&self) -> String {
        shown(&self.path.to_string_lossy())
    }

    /// As the report names it: no absolute path of this host.
    fn reference(&self) -> String {
        let path = match self.path.is_absolute() {
            true => self.path.file_name().map(Path::new).unwrap_or(Path::new("/")),
            false => &self.path,
        };
        format!("{}{}{}", self.scheme, shown(&path.to_string_lossy()), shown(self.rest))
    }

    fn selector(&self) -> Result<Selector, ImageError> {
        Selector::parse(self.rest, &self.place())
    }

    fn folder(&self) -> Result<Folder, ImageError> {
        Folder::new(&self.path, &self.place())
    }
}

fn by_content(found: Found, named: &Named<'_>, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let (place, reference) = (named.place(), named.reference());
    let takes_no_tag = matches!(
        found,
        Found::SkopeoDir | Found::RootDir | Found::RootTar | Found::Zip | Found::Code | Found::Squashfs
    );
    if takes_no_tag && !named.rest.is_empty() {
        let what = format!("{} holds no images to choose from by {}", found.text(), shown(named.rest));
        return Err(malformed(&place, what));
    }
    match found {
        Found::Layout => layout::open(named.folder()?, &named.selector()?, reference),
        Found::SkopeoDir => layout::open_flat(named.folder()?, reference),
        Found::SavedDir => docker::open(named.folder()?, &named.selector()?, reference),
        Found::RootDir => Ok(rootfs::tree(named.path.clone(), reference)),
        Found::Archive => open_files(TarIndex::open(&named.path, &place)?, &named.selector()?, reference),
        Found::PackedArchive => {
            let file = File::open(&named.path).map_err(|e| io_error(&place, e))?;
            stream::open(Box::new(file), &named.selector()?, reference, &place, sink)
        }
        Found::RootTar => rootfs::tar(&named.path, &place, reference),
        Found::Zip => Ok(rootfs::zip(named.path.clone(), reference)),
        Found::Code => Ok(rootfs::file(named.path.clone(), reference)),
        Found::Squashfs => squashfs::open(&named.path, &place, reference),
        Found::Unknown => {
            Err(malformed(&place, "neither an image, an archive nor device code; file:PATH scans it all the same"))
        }
    }
}

/// Opens the files of an archive, whichever of its two manifests it has. Docker 25 and later write both; the
/// OCI one knows digests and platforms.
fn open_files(files: impl Files + 'static, selector: &Selector, reference: String) -> Result<Handle, ImageError> {
    if layout::is_layout(&files) {
        layout::open(files, selector, reference)
    } else {
        docker::open(files, selector, reference)
    }
}

fn registry_source(rest: &str, options: &OpenOptions, _: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    registry::open(rest.strip_prefix("//").unwrap_or(rest), options)
}

fn docker_slashes(rest: &str, options: &OpenOptions, _: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let handle = registry::open(rest, options)?;
    let notice = format!("docker:// is skopeo's word for a registry; here it is registry:{}", shown(rest));
    Ok(handle.taken_for(notice))
}

fn oci_layout(rest: &str, _: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let named = Named::new("oci:", rest)?;
    match detect(&named.path, &named.place())? {
        found @ (Found::Archive | Found::PackedArchive) => by_content(found, &named, sink),
        _ if named.path.is_dir() => layout::open(named.folder()?, &named.selector()?, named.reference()),
        found => Err(malformed(&named.place(), format!("{}, not an OCI layout", found.text()))),
    }
}

fn image_archive(rest: &str, _: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let named = Named::new("", rest)?;
    match detect(&named.path, &named.place())? {
        found @ (Found::Archive | Found::PackedArchive | Found::Layout | Found::SkopeoDir | Found::SavedDir) => {
            by_content(found, &named, sink)
        }
        // Unusual names first: the manifest decides.
        Found::RootTar if headers_are_plain(&named.path) => by_content(Found::Archive, &named, sink),
        found => Err(malformed(&named.place(), format!("{}, not the archive of an image", found.text()))),
    }
}

fn headers_are_plain(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|f| {
        use io::Read;
        f.take(headers::CLASSIFY as u64).read_to_end(&mut head)
    });
    read.is_ok() && headers::classify(&head) == headers::Holds::Files
}

fn dir(rest: &str, _: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let named = Named::whole("dir:", rest)?;
    match detect(&named.path, &named.place())? {
        Found::RootDir => by_content(Found::RootDir, &named, sink),
        found @ (Found::SkopeoDir | Found::Layout | Found::SavedDir) => {
            let notice = format!("{} is read as {}", named.place(), found.text());
            Ok(by_content(found, &named, sink)?.taken_for(notice))
        }
        found => Err(malformed(&named.place(), format!("{}, not a folder", found.text()))),
    }
}

fn root_tar(rest: &str, _: &OpenOptions, _: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let named = Named::whole("tar:", rest)?;
    match detect(&named.path, &named.place())? {
        Found::RootTar | Found::Archive | Found::PackedArchive => {
            rootfs::tar(&named.path, &named.place(), named.reference())
        }
        found => Err(malformed(&named.place(), format!("{}, not a tar", found.text()))),
    }
}

fn single_file(rest: &str, _: &OpenOptions, _: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let named = Named::whole("file:", rest)?;
    match detect(&named.path, &named.place())? {
        Found::Zip => Ok(rootfs::zip(named.path.clone(), named.reference())),
        _ if named.path.is_file() => Ok(rootfs::file(named.path.clone(), named.reference())),
        found => Err(malformed(&named.place(), format!("{}, not a file", found.text()))),
    }
}

fn standard_input(rest: &str, options: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let place = stream::STANDARD_INPUT;
    if options.stdin_is_read {
        return Err(malformed(place, "--password-stdin has read it; use --authfile for the password"));
    }
    let selector = Selector::parse(rest, place)?;
    stream::open(Box::new(io::stdin()), &selector, format!("-{}", shown(rest)), place, sink)
}

fn squashfs_file(rest: &str, _: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let named = Named::whole("squashfs:", rest)?;
    match detect(&named.path, &named.place())? {
        Found::Squashfs => by_content(Found::Squashfs, &named, sink),
        found => Err(malformed(&named.place(), format!("{}, not squashfs", found.text()))),
    }
}

fn containers(rest: &str, _: &OpenOptions, _: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    containers::open(rest)
}

fn docker_daemon(rest: &str, options: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    daemon::docker(rest, options, sink)
}

fn podman(rest: &str, options: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    daemon::podman(rest, options, sink)
}

#[cfg(test)]
mod tests;
