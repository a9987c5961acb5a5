//! What is taken from one file: device code, links, package metadata. Each body is read at most once.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::file_gap;
use crate::image::zip::{self, ZipLimits};
use crate::inventory::{self, Fact};
use crate::loader::{self, Capture};
use crate::model::{FileFacts, FileKind, Gap, GapEffect, ImagePath};
use crate::{device, stream::Body};

/// What a file of a layer carries; most files carry nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Carried {
    pub facts: Option<Arc<FileFacts>>,
    pub package: Option<Arc<Fact>>,
    /// What it tells the dynamic loader.
    pub loading: Option<Arc<Capture>>,
    /// Members of a wheel, jar or zip that lies in the image, by their path inside.
    pub members: Vec<(ImagePath, Arc<FileFacts>)>,
    /// Named as a library of the driver, and of no bytes.
    pub empty_driver: bool,
}

impl Carried {
    pub fn is_empty(&self) -> bool {
        self.facts.is_none()
            && self.package.is_none()
            && self.loading.is_none()
            && self.members.is_empty()
            && !self.empty_driver
    }
}

/// The payload of the merged tree.
pub type Payload = Option<Arc<Carried>>;

/// What looks into files. Each file is at most one probe's, told by its path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Device code, linked libraries, archives of these: all that is not another's.
    Device,
    /// Package metadata.
    Inventory,
    /// What the dynamic loader is told.
    Loading,
}

impl Probe {
    pub const ALL: [Self; 3] = [Self::Device, Self::Inventory, Self::Loading];

    /// Changes whenever the probe might find other things in the same bytes: made of its sources.
    pub fn version(self) -> &'static str {
        match self {
            Self::Device => env!("IMAGELINT_PROBE_DEVICE"),
            Self::Inventory => env!("IMAGELINT_PROBE_INVENTORY"),
            Self::Loading => env!("IMAGELINT_PROBE_LOADING"),
        }
    }
}

/// Who looks into a file, and what it expects there.
#[derive(Debug, Clone, Copy)]
pub enum Claim {
    Device,
    Inventory(inventory::Probe),
    Loading(loader::Probe),
}

impl Claim {
    pub fn on(path: &ImagePath) -> Self {
        if let Some(probe) = inventory::wants(path) {
            Self::Inventory(probe)
        } else if let Some(probe) = loader::wants(path) {
            Self::Loading(probe)
        } else {
            Self::Device
        }
    }

    pub fn probe(&self) -> Probe {
        match self {
            Self::Device => Probe::Device,
            Self::Inventory(_) => Probe::Inventory,
            Self::Loading(_) => Probe::Loading,
        }
    }
}

/// Counters and gaps of the files seen so far.
#[derive(Debug, Default)]
pub struct Notes {
    pub gaps: Vec<(Probe, Gap)>,
    pub files: u64,
    pub elfs: u64,
    /// How device code is read.
    pub options: device::Options,
}

impl Notes {
    /// The gaps, whoever found them.
    pub fn into_gaps(self) -> impl Iterator<Item = Gap> {
        self.gaps.into_iter().map(|(_, gap)| gap)
    }
}

/// Extensions of zip archives that are opened, one level deep. A member goes by `ARCHIVE!PATH`.
const ARCHIVES: [&[u8]; 5] = [b".whl", b".jar", b".zip", b".egg", b".war"];

/// Smallest file that can hold anything: shorter than any header.
const MIN_FILE: u64 = 4;

/// Endings of files that are text or pictures and nothing else: neither an ELF file nor a container of device code
/// goes by such a name. What is unpacked at a cost is not unpacked for them.
const PLAIN: [&[u8]; 40] = [
    b".py", b".pyi", b".pyc", b".pyx", b".pxd", b".h", b".hh", b".hpp", b".hxx", b".inl", b".inc", b".cuh", b".cu",
    b".c", b".cc", b".cpp", b".hip", b".txt", b".md", b".rst", b".json", b".yaml", b".yml", b".toml", b".cfg",
    b".ini", b".cmake", b".html", b".css", b".js", b".map", b".png", b".svg", b".gif", b".jpg", b".csv", b".ipynb",
    b".jinja", b".proto", b".typed",
];

/// Whether [`file`] could take anything from a file of this name, told by its path alone.
pub fn may_hold(path: &ImagePath) -> bool {
    let plain = || PLAIN.iter().any(|e| path.file_name().len() > e.len() && path.file_name().ends_with(e));
    inventory::wants(path).is_some() || loader::wants(path).is_some() || !plain()
}

/// Reads one file. Errors are those of the source (a cut layer); trouble with the content becomes gaps.
pub fn file(path: &ImagePath, body: &mut dyn Body, notes: &mut Notes) -> io::Result<Payload> {
    claimed(&Claim::on(path), path, body, notes)
}

/// The same, for what the path has been found to be.
pub fn claimed(claim: &Claim, path: &ImagePath, body: &mut dyn Body, notes: &mut Notes) -> io::Result<Payload> {
    notes.files += 1;
    let mut carried = Carried::default();
    match claim {
        Claim::Inventory(probe) => match inventory::read(probe, path, body) {
            Ok(fact) => carried.package = fact.map(Arc::new),
            Err(why) => notes.gaps.push((Probe::Inventory, Gap::note(path.clone(), why))),
        },
        Claim::Loading(probe) => {
            let (capture, trouble) = loader::read(*probe, body);
            carried.loading = capture.map(Arc::new);
            notes.gaps.extend(trouble.map(|why| (Probe::Loading, Gap::note(path.clone(), why))));
        }
        Claim::Device => device(path, body, &mut carried, notes)?,
    }
    Ok((!carried.is_empty()).then(|| Arc::new(carried)))
}

fn device(path: &ImagePath, body: &mut dyn Body, carried: &mut Carried, notes: &mut Notes) -> io::Result<()> {
    if body.len() == Some(0) {
        carried.empty_driver = is_driver_library(path.file_name());
    } else if body.len().is_none_or(|n| n >= MIN_FILE) {
        let head = body.window(device::HEAD)?;
        if zip::is_zip(head) && ARCHIVES.iter().any(|e| path.as_bytes().ends_with(e)) {
            carried.members = members(path, body, notes)?;
        } else if let Some(kind) = device::kind_of(head) {
            carried.facts = code(kind, path, body, notes)?;
        }
    }
    Ok(())
}

/// Whether a file is named as the libraries that the NVIDIA container runtime mounts from the host.
fn is_driver_library(name: &[u8]) -> bool {
    [&b"libcuda.so"[..], b"libcudadebugger.so", b"libnvidia-", b"libnvcuvid.so", b"libnvoptix.so"]
        .iter()
        .any(|start| name.starts_with(start))
}

fn code(
    kind: FileKind,
    path: &ImagePath,
    body: &mut dyn Body,
    notes: &mut Notes,
) -> io::Result<Option<Arc<FileFacts>>> {
    // A panic in a parser costs the listing of one file, not the scan; the tar reader moves on by its own count.
    let options = notes.options;
    let read = catch_unwind(AssertUnwindSafe(|| device::read_with(kind, path, body, options)));
    match read {
        Ok(facts) => {
            let facts = facts?;
            if facts.kind.is_elf() {
                notes.elfs += 1;
            }
            // An archive or PTX-like text without device code says nothing about GPUs.
            let worth = facts.kind.is_elf() || facts.has_device_code() || !facts.gaps.is_empty();
            Ok(worth.then(|| Arc::new(facts)))
        }
        Err(_) => {
            notes.gaps.push((
                Probe::Device,
                file_gap(path, "could not be read: internal error in a parser (please report it)"),
            ));
            Ok(None)
        }
    }
}

fn members(
    path: &ImagePath,
    body: &mut dyn Body,
    notes: &mut Notes,
) -> io::Result<Vec<(ImagePath, Arc<FileFacts>)>> {
    let mut found = Vec::new();
    let mut inner = Notes { options: notes.options, ..Notes::default() };
    let walked = zip::walk(body, &ZipLimits::default(), &mut |name, _, member| {
        let head = member.window(device::HEAD)?;
        if let Some(kind) = device::kind_of(head)
            && let Some(facts) = code(kind, &name, member, &mut inner)?
        {
            found.push((name, facts));
        }
        Ok(())
    });
    let place = |name: Option<&ImagePath>| match name {
        Some(name) => path.parent().join([path.file_name(), b"!", name.as_bytes()].concat()),
        None => path.clone(),
    };
    notes.elfs += inner.elfs;
    let placed = |(probe, gap): (Probe, Gap)| (probe, Gap { path: Some(place(gap.path.as_ref())), ..gap });
    notes.gaps.extend(inner.gaps.into_iter().map(placed));
    match walked {
        // The archive only lies in the image; nothing is loaded from it.
        Ok(summary) => notes.gaps.extend(summary.problems.into_iter().map(|p| {
            let effect = GapEffect::None;
            let gap = Gap { path: Some(path.clone()), layer: None, offset: Some(p.offset), why: p.what, effect };
            (Probe::Device, gap)
        })),
        Err(e) => {
            let gap = Gap::note(path.clone(), format!("archive inside the image: {e}"));
            notes.gaps.push((Probe::Device, gap));
        }
    }
    Ok(found.into_iter().map(|(name, facts)| (place(Some(&name)), facts)).collect())
}
