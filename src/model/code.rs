//! What was found in one file: what kind of file it is, what it links, which device code it carries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arch, Asked, CudaVersion, Exports, Gap, GfxArch, GfxProcessor, Import, PtxIsa, ToolFacts};

/// The form of device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// CUDA machine code, a cubin.
    Sass,
    /// CUDA PTX, compiled by the driver at load time.
    Ptx,
    /// Bitcode for link-time optimisation (NVVM's, LLVM's); never loadable by itself.
    LtoIr,
    /// CUDA tile IR; needs a compiler.
    TileIr,
    /// AMD GPU code object.
    CodeObject,
    /// SPIR-V, compiled by the driver at load time: Intel's, or AMD's own.
    Spirv,
    /// Intel GPU machine code.
    Native,
    /// A kind that this version does not understand.
    Unknown,
}

/// How device code is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    None,
    Lz4,
    Zlib,
    /// In fatbins: needs a driver of 550.54.14 or newer (CUDA 12.4) to load.
    Zstd,
    Unknown,
}

/// One piece of device code, as far as a driver's choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Item {
    pub arch: Arch,
    pub form: Form,
    /// The kind number in the header, for forms that are not understood; of code objects their version, 2 to 6.
    pub kind: u16,
    /// PTX only.
    pub isa: Option<PtxIsa>,
    pub packing: Packing,
    /// The toolkit that made it, where the file says so.
    pub toolkit: Option<CudaVersion>,
}

impl Item {
    /// As lists and names tell it: an architecture and a form, and nothing of the code itself.
    pub fn of(arch: impl Into<Arch>, form: Form) -> Self {
        Self { arch: arch.into(), form, kind: 0, isa: None, packing: Packing::None, toolkit: None }
    }
}

/// Equal items of equal modules, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ItemCount {
    pub item: Item,
    pub entries: u64,
    /// Stored payload bytes.
    pub bytes: u64,
}

/// What holds the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    Fatbin,
    /// A cubin outside any fatbin.
    Cubin,
    /// PTX as plain text.
    PtxText,
    /// A clang offload bundle, as HIP registers it.
    Bundle,
    /// The same, compressed (`CCOB`).
    CompressedBundle,
    /// An AMD code object outside any bundle.
    CodeObject,
    /// LLVM's OffloadBinary: OpenMP, OpenACC, HIP of the new driver.
    OffloadBinary,
    /// An archive of kernels that were taken out of a HIP library.
    Kpack,
    /// An image that a SYCL program registers.
    Sycl,
    /// An Intel GPU binary, or an ocloc archive of them, outside any program.
    Zebin,
}

/// Modules (fatbin regions, bundles: what one translation unit registers) of equal make-up within one file. A driver
/// chooses one item per module, so coverage is judged module by module, never over a file's union.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    pub container: Container,
    /// ELF section that holds it, where known.
    pub section: Option<String>,
    /// Input of the device linker (`__nv_relfatbin`, objects): cannot be loaded by itself.
    pub relocatable: bool,
    /// Sorted, one row per distinct item.
    pub items: Vec<ItemCount>,
    /// How many modules of this make-up the file holds.
    pub count: u64,
    /// Offset of the first of them.
    pub first: u64,
}

impl Module {
    /// All entries of all modules of this make-up.
    pub fn entries(&self) -> u64 {
        self.items.iter().map(|i| i.entries).sum()
    }
}

/// The kind of a file, by content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    SharedObject,
    Executable,
    /// ELF relocatable object: not loaded at run time.
    Object,
    /// Static archive: not loaded at run time.
    Archive,
    Fatbin,
    Cubin,
    Ptx,
    /// An AMD code object, `.co` or `.hsaco`.
    CodeObject,
    /// Clang offload bundles, plain or compressed, or OffloadBinaries, in a file of their own.
    Bundle,
    /// An archive of kernels that were taken out of HIP libraries, `.kpack`.
    Kpack,
    /// An Intel GPU binary.
    Zebin,
    /// Starts as ELF, but its header cannot be read.
    BrokenElf,
}

impl FileKind {
    /// Whether the file can be loaded at run time.
    pub fn loadable(self) -> bool {
        match self {
            Self::Object | Self::Archive => false,
            Self::SharedObject
            | Self::Executable
            | Self::Fatbin
            | Self::Cubin
            | Self::Ptx
            | Self::CodeObject
            | Self::Bundle
            | Self::Kpack
            | Self::Zebin
            | Self::BrokenElf => true,
        }
    }

    pub fn is_elf(self) -> bool {
        match self {
            Self::SharedObject | Self::Executable | Self::Object | Self::BrokenElf => true,
            Self::Archive
            | Self::Fatbin
            | Self::Cubin
            | Self::Ptx
            | Self::CodeObject
            | Self::Bundle
            | Self::Kpack
            | Self::Zebin => false,
        }
    }
}

/// An ELF machine (`e_machine`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Machine(pub u16);

impl Machine {
    pub const X86_64: Self = Self(62);
    pub const AARCH64: Self = Self(183);
    pub const CUDA: Self = Self(190);
    pub const INTELGT: Self = Self(205);
    pub const AMDGPU: Self = Self(224);

    /// The OCI platform architecture that runs it.
    pub fn platform(self) -> Option<&'static str> {
        match self.0 {
            3 => Some("386"),
            21 => Some("ppc64le"),
            22 => Some("s390x"),
            40 => Some("arm"),
            62 => Some("amd64"),
            183 => Some("arm64"),
            243 => Some("riscv64"),
            258 => Some("loong64"),
            _ => None,
        }
    }
}

/// The dynamic section of an ELF file, as far as it names other files and their symbols.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ElfFacts {
    pub machine: u16,
    pub soname: Option<String>,
    pub needed: Vec<String>,
    pub rpath: Option<String>,
    pub runpath: Option<String>,
    pub interpreter: Option<String>,
    /// DF_1_NODEFLIB: neither the cache nor the default directories are searched for what it needs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_default_dirs: bool,
    /// The versions it asks of other libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Asked>,
    /// The versions it defines, without the one that names the file itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defines: Vec<String>,
    /// The symbols it wants of GPU libraries. Sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<Import>,
    /// The symbols it defines; GPU libraries only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exports: Option<Exports>,
    /// Names of GPU libraries in its strings, other than its own and those it needs: what it may open. Sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    /// The directories built into a dynamic loader, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system_dirs: Vec<String>,
}

/// Kernels that lie in other files than the program that registers them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kpack {
    /// A HIP library whose kernels were taken out (its wrappers say `HIPK`).
    Reference {
        /// Its name in the archives, where the library says it.
        kernel: Option<String>,
        /// Archives, relative to the library's folder; `@GFXARCH@` stands for the target.
        paths: Vec<String>,
        /// The numbers of its code objects in the archives. Sorted.
        indices: Vec<u32>,
    },
    /// An archive: by `NAME#INDEX` what it holds. Sorted.
    Archive { binaries: Vec<(String, Vec<GfxArch>)> },
}

/// Everything that scanning one file yields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    pub size: u64,
    pub kind: FileKind,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub elf: Option<ElfFacts>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub modules: Vec<Module>,
    /// torch's own list of architectures, a string in libtorch_python.so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub arch_flags: Option<String>,
    /// The file is a compiler of device code.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool: Option<ToolFacts>,
    /// AMD's processors that the compiler in the file knows, by its strings. Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub compiles_gfx: Vec<GfxProcessor>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kpack: Option<Kpack>,
    /// The version that a library's own strings give (NCCL).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub says_version: Option<String>,
    /// Driver branches that a forward-compat libcuda lists in its note (`.note.cuda.fwd_compatibility`). Sorted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compat_hosts: Option<Vec<u32>>,
    /// Paths are left out: the holder of the facts knows them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub gaps: Vec<Gap>,
}

impl FileFacts {
    pub fn new(kind: FileKind, size: u64) -> Self {
        Self {
            size,
            kind,
            elf: None,
            modules: Vec::new(),
            arch_flags: None,
            tool: None,
            compiles_gfx: Vec::new(),
            kpack: None,
            says_version: None,
            compat_hosts: None,
            gaps: Vec::new(),
        }
    }

    /// Whether any device code was found, or that it lies elsewhere.
    pub fn has_device_code(&self) -> bool {
        !self.modules.is_empty() || matches!(self.kpack, Some(Kpack::Reference { .. }))
    }
}
