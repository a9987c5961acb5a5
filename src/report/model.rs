//! The finished report: what `--format json` prints, and what every other format renders. The JSON schema
//! (`rules/report.schema.json`) is generated from these types.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::{AmdReport, Sizes};
use crate::model::{
    Arch, Change, Container, CudaVersion, Digest, FileKind, Finding, Form, Gap, ImagePath, LayerSummary, Package,
    Packing, Platform, PtxIsa, Severity, SmArch, Stats, ToolKind, Toolkit, Verdict, Virtualisation,
};

/// The whole report of one image, or (image and targets absent) of single files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this schema: 1.
    pub schema: u32,
    pub tool: Tool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<TargetReport>>,
    pub device_code: Vec<DeviceCode>,
    pub libraries: Vec<Library>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<Vec<Package>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolkits: Option<Vec<Toolkit>>,
    /// Compilers and linkers of device code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compilers: Option<Vec<Compiler>>,
    pub findings: Vec<Finding>,
    /// Findings that a waiver covers.
    pub waived: Vec<Finding>,
    /// Only with `--baseline`: findings that the baseline has too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<Vec<Finding>>,
    /// Only with `--baseline`: how many of its findings are there no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    pub gaps: Vec<Gap>,
    /// Only with `--sizes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    pub stats: StatsReport,
    /// Only with `--policy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyReport>,
    /// Comments that the policy does not let count.
    #[serde(skip)]
    pub overruled: Vec<String>,
    /// The rules that it was held against, by id.
    #[serde(skip)]
    pub rules: Vec<RuleText>,
    /// What goes before names of Dockerfiles where they are read from the repository's root: empty, or `docker/`.
    #[serde(skip)]
    pub base: String,
    /// Text of the Dockerfiles that findings point into, by name.
    #[serde(skip)]
    pub sources: BTreeMap<String, Arc<str>>,
}

/// What was judged by, kept apart from what was judged.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyReport {
    /// Of the file's bytes.
    pub digest: Digest,
    /// What the files beside the image or Dockerfile would have made easier, had they counted.
    pub weakened: Vec<String>,
}

/// What formats tell of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleText {
    pub id: &'static str,
    /// At its worst.
    pub severity: Severity,
    pub summary: &'static str,
    /// Markdown.
    pub page: &'static str,
    /// Whether Dockerfiles are held against it.
    pub of_dockerfiles: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Tool {
    pub name: String,
    pub version: String,
    pub catalog: CatalogId,
}

impl Tool {
    /// What made the report, and by which facts.
    pub fn told(&self) -> String {
        let rules = self.catalog.rules.as_ref();
        let rules = rules.map(|r| format!(" with --rules: {} rows added, {} replaced", r.added, r.replaced));
        format!("{} {}, catalog of {}{}", self.name, self.version, self.catalog.as_of, rules.unwrap_or_default())
    }
}

/// Which facts the verdicts rest on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CatalogId {
    /// Date of the newest facts.
    pub as_of: String,
    /// Of all tables; with `--rules`, of the embedded ones and those merged over them.
    pub digest: Digest,
    /// Only with `--rules`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<RowsReport>,
}

/// Rows that stand over the embedded tables.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RowsReport {
    /// Names of the tables.
    pub files: Vec<String>,
    /// Rows that the embedded tables do not have.
    pub added: usize,
    /// Embedded rows that others stand in for.
    pub replaced: usize,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ImageReport {
    pub reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Stored bytes of all layers.
    pub size: u64,
    /// The worst verdict over required targets; without targets, of what is wrong for any.
    pub verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_driver: Option<MinDriver>,
    /// What torch.cuda.get_arch_list() would print; absent without torch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch_list: Option<Vec<String>>,
    /// Absent without code and data for AMD's GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amd: Option<AmdReport>,
    pub layers: Vec<LayerSummary>,
}

/// The oldest driver that carries the image, and what asks for it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MinDriver {
    pub version: String,
    pub cause: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TargetReport {
    pub name: String,
    pub gpu: String,
    /// `sm_90`, `gfx942`, `intel_gpu_12_60_7`.
    pub arch: Arch,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// `mig`, `vgpu` or `passthrough`; absent: the GPU itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualisation: Option<Virtualisation>,
    pub verdict: Verdict,
    /// One line.
    pub why: String,
    /// False: reported, never gates.
    pub required: bool,
    /// Platform of the image that was judged for this target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    pub components: Vec<ComponentReport>,
}

/// What a component is to the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Core,
    Optional,
    Idle,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ComponentReport {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub role: Role,
    pub verdict: Verdict,
    pub why: String,
    /// Paths of the files that were judged.
    pub files: Vec<ImagePath>,
    pub modules: ModuleCounts,
    /// The same, file by file, worst first.
    pub by_file: Vec<FileVerdict>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileVerdict {
    pub path: ImagePath,
    pub verdict: Verdict,
    pub why: String,
    pub modules: ModuleCounts,
}

/// Modules (fatbin regions) by how they fit the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModuleCounts {
    pub total: u64,
    pub native: u64,
    pub compatible: u64,
    pub jit: u64,
    /// Nothing fits, or what fits cannot be loaded by this driver.
    pub missing: u64,
}

/// Device code of one file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeviceCode {
    pub path: ImagePath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// What kind of file holds it.
    pub format: FileKind,
    /// Why it counts for no verdict: profiler stubs, archives and objects, leftovers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// Modules: fatbin regions, cubins, PTX texts.
    pub modules: u64,
    /// Stored bytes of device code.
    pub bytes: u64,
    pub archs: Vec<ArchRow>,
}

/// Equal code of one file, summed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ArchRow {
    pub arch: Arch,
    pub form: Form,
    pub container: Container,
    pub entries: u64,
    pub bytes: u64,
    pub packing: Packing,
    /// Input of the device linker: not loadable by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub relocatable: bool,
    /// PTX ISA version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isa: Option<PtxIsa>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<CudaVersion>,
    /// The header's kind number, for forms that are not understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<u16>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Library {
    pub path: ImagePath,
    pub kind: FileKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpath: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runpath: Option<String>,
    /// The version it is of, as far as its name, its strings or its package tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// DT_NEEDED, in order.
    pub needs: Vec<Need>,
    /// Libraries that it is known to open by name (dlopen).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<Need>,
}

/// A library by name, and what the dynamic loader would take for it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Need {
    pub soname: String,
    /// The real path of the file in the image, links followed; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<ImagePath>,
    /// The law that found it ("RUNPATH", "LD_LIBRARY_PATH", "ld.so.cache", …), or why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Need {
    /// Not looked for.
    pub fn named(soname: &str) -> Self {
        Self { soname: soname.to_owned(), found: None, why: None }
    }
}

/// A compiler of device code that runs where the image runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Compiler {
    pub path: ImagePath,
    pub kind: ToolKind,
    /// The CUDA release it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<CudaVersion>,
    /// The newest target that it compiles for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_target: Option<SmArch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
}

/// What would mend what is missing.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Plan {
    /// What to do, in this order: of each choice the cheapest that helps.
    pub steps: Vec<Step>,
    /// The other choices, cheapest first. Each effect is of that step alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Step>,
    /// Images to build where no single one serves the fleet: the fewest that do. Steps name their tag.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// The verdict of each target before and after all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// What no step mends, and why.
    pub unresolved: Vec<String>,
    /// What the steps change in the Dockerfile, where one is at hand.
    #[serde(skip)]
    pub patch: Option<String>,
}

/// One of several images that serve a fleet together.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Tag {
    /// What to add to the image's tag: `cu126`.
    pub name: String,
    /// Targets that it serves.
    pub targets: Vec<String>,
    /// Why it cannot be one with another.
    pub why: String,
}

/// What a step does to verdicts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Effect {
    pub basis: Basis,
    /// By target: before and after. Targets of which the step says nothing are absent.
    pub verdicts: BTreeMap<String, (Verdict, Verdict)>,
}

/// What an effect is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The image was built and scanned.
    Measured,
    /// The evidence of this scan was changed as the step says and judged again, with table rows for what is new.
    Predicted,
}

/// What a step costs, cheapest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// A variable, a path or a package of the image.
    Setting,
    /// Another wheel or index of the same version.
    SameVersion,
    /// Another version.
    OtherVersion,
    /// A build from source.
    SourceBuild,
    /// Another base image.
    BaseImage,
    /// Another driver, or forward-compat library, on hosts.
    Hosts,
    /// The target is given up, or served by another image.
    Target,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Step {
    pub kind: StepKind,
    pub component: String,
    pub summary: String,
    /// Targets it is for.
    pub resolves: Vec<String>,
    pub cost: Cost,
    /// The tag that it is for, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Environment variables of the build: (name, value).
    pub env: Vec<(String, String)>,
    /// Shell command, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Edits of the Dockerfile, where one is at hand: `Dockerfile:12:5: "cu126" -> "cu128"`.
    pub edits: Vec<String>,
    /// Table rows it rests on.
    pub because: Vec<String>,
    pub disposition: Disposition,
    /// Why a person should look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// Absent: what it does to verdicts cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    #[serde(skip)]
    pub change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Take another wheel or index of the same project.
    ChangeWheel,
    /// Build from source for a list of architectures.
    Rebuild,
    /// Start from another base image.
    ChangeBase,
    /// Use a newer driver.
    Driver,
    /// Use the image or wheel of another platform.
    Platform,
    /// Use another compiler, or add one.
    Compiler,
    /// Add, drop or reorder libraries, packages or the variables that choose them.
    Libraries,
    /// Take a target out of what this image must serve.
    DropTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// It follows from this scan and from the tables.
    Safe,
    /// A person should look: `review` says why.
    Review,
}

impl Step {
    /// A step of words, to be reviewed.
    pub fn advice(kind: StepKind, component: String, summary: String) -> Self {
        Self {
            kind,
            component,
            summary,
            resolves: Vec::new(),
            cost: Cost::Setting,
            tag: None,
            env: Vec::new(),
            command: None,
            edits: Vec::new(),
            because: Vec::new(),
            disposition: Disposition::Review,
            review: None,
            effect: None,
            change: Change::Advice,
        }
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StatsReport {
    #[serde(flatten)]
    pub counts: Stats,
    /// Only with `--stats`: reading and judging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Only with `--stats`: the bytes of layers, as stored, that this run has read; none of those from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes_read: Option<u64>,
}
