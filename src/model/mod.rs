//! The vocabulary: plain data that every other module speaks. No I/O, no judgement.

mod arch;
mod change;
mod code;
mod data_set;
mod device;
mod digest;
mod evidence;
mod finding;
mod gap;
mod gfx;
mod intel;
mod links;
mod loads;
mod name;
mod path;
mod target;
mod tool;
mod version;

pub use arch::{Arch, Capability, Feature, Maker, SmArch};
pub use change::{Built, Change, KnobForm, Setting};
pub use code::{Container, ElfFacts, FileFacts, FileKind, Form, Item, ItemCount, Kpack, Machine, Module, Packing};
pub use data_set::{DataSet, DataTarget, GfxGroup};
pub use device::Device;
pub use digest::Digest;
pub use evidence::{
    Component, ConfigFacts, Evidence, EvidenceFile, ImageFacts, LayerSummary, Manager, Package, Platform, Stats,
};
pub use finding::{
    Accepted, AcceptedBy, Confidence, EditReport, FilePlace, Finding, FixReport, Related, Severity, Verdict,
};
pub use gap::{Gap, GapEffect};
pub use gfx::{GfxArch, GfxMode, GfxProcessor};
pub use intel::IntelIp;
pub use links::{Asked, AskedVersion, Exports, Import, fnv1a};
pub use loads::{Law, Loads, Need, Outcome, Unmet, UnmetKind};
pub use name::package_name;
pub use path::{ImagePath, escape};
pub use target::{DriverRange, GpuClass, Runtime, Start, Target, Virtualisation};
pub use tool::{Claim, ClaimKind, LdCache, Libc, ToolFacts, ToolKind, Toolkit, ToolkitKind};
pub use version::{CudaVersion, DriverVersion, ParseVersionError, PtxIsa, RocmVersion, first_two};
