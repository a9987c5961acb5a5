//! The law of coverage: does this code load on that GPU with that driver. Decided here and nowhere else.
//!
//! Sources: CUDA Programming Guide 13.x, "Binary Compatibility", "PTX Compatibility" and the feature-set tables;
//! the acceptance matrices of ptxas and nvlink 13.5 (measured, and held by the tests below); for Jetson, field
//! reports and PyTorch's own device table, since NVIDIA promises nothing between Tegra and discrete GPUs. AMD: the
//! HIP runtime's choice (rocm-systems, `hip_fatbin.cpp`) and ROCR's `isa.cpp`; Intel: SYCL's AOT documentation and
//! compute-runtime's `platforms.h`. What is alike to what stands in the tables, and reaches here as [`Host::also`].

use crate::model::{
    Arch, Capability, CudaVersion, Device, DriverVersion, Feature, Form, GfxArch, GfxMode, Item, Maker, Packing,
    PtxIsa, SmArch, Target,
};

/// The first driver that reads zstd-compressed fatbin entries (CUDA 12.4). Older ones stop with error 200.
const ZSTD_DRIVER: (u32, u32, u32) = (550, 54, 14);

/// That driver.
pub fn zstd_driver() -> Option<DriverVersion> {
    let (branch, minor, patch) = ZSTD_DRIVER;
    format!("{branch}.{minor}.{patch}").parse().ok()
}

/// What a driver makes of one module (or one item) on one GPU. Ordered, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fit {
    /// Nothing here is for this GPU: error 209, "no kernel image is available".
    Missing,
    /// There is code for this GPU, but the driver refuses it.
    Blocked(Block),
    /// May load or not, by evidence that disagrees or is missing.
    Uncertain(Doubt),
    /// PTX or SPIR-V, compiled by the driver at load time.
    Jit,
    /// Machine code made for a lower capability of the same family, a generic target, a like GPU.
    Compatible,
    /// Machine code made for this very GPU.
    Native,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Block {
    /// Compressed with zstd, unknown to drivers before 550.54.14: error 200.
    Compressed,
    /// Newer than the driver's JIT: error 222, "PTX was compiled with an unsupported toolchain".
    PtxTooNew(PtxIsa),
    /// `CUDA_DISABLE_PTX_JIT` or `CUDA_DISABLE_JIT` is set: error 223.
    JitDisabled,
    /// AMD code that was made for the other mode of retrying page faults (XNACK) than the GPU is in.
    Xnack { wants_on: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doubt {
    /// Discrete Ampere code on Jetson Orin: refused up to JetPack 6, seen to load from JetPack 7.2 on.
    OrinStack,
    /// Jetson code on a discrete GPU: no report either way.
    TegraOnDiscrete,
    /// Compute capability 8.8: known to ptxas, no product and no report.
    NoEvidence,
    /// AMD code that was made for memory with, or without, error correction (SRAM ECC): which the GPU has is not known.
    SramEcc { wants_on: bool },
}

impl Doubt {
    pub fn text(self) -> &'static str {
        match self {
            Self::OrinStack => {
                "machine code for discrete GPUs does not load on Orin up to JetPack 6 and was seen to load from \
                 JetPack 7.2 (CUDA 13.2) on"
            }
            Self::TegraOnDiscrete => "Jetson machine code on a discrete GPU is promised by nobody",
            Self::NoEvidence => {
                "nothing is known of loading code for another capability on 8.8, or 8.8 code elsewhere"
            }
            Self::SramEcc { wants_on: true } => "its code loads only where the GPU's memory has ECC on (sramecc+)",
            Self::SramEcc { wants_on: false } => {
                "its code loads only where the GPU's memory has ECC off (sramecc-)"
            }
        }
    }
}

/// The host a module would be loaded on.
#[derive(Debug, Clone)]
pub struct Host {
    pub device: Device,
    /// What else the device takes by its maker's tables: an AMD processor's generic target, GPUs whose code an Intel
    /// GPU accepts.
    pub also: Vec<Arch>,
    /// AMD: every GPU of this processor has its memory's ECC on.
    pub always_ecc: bool,
    /// The lowest driver of the target.
    pub driver: Option<DriverVersion>,
    /// CUDA version the driver carries.
    pub cuda: Option<CudaVersion>,
    /// The newest PTX ISA that the driver's JIT takes; `None`: not known, not judged.
    pub jit: Option<PtxIsa>,
    /// `CUDA_FORCE_PTX_JIT=1` in the image: machine code is passed over.
    pub force_ptx: bool,
    /// `CUDA_DISABLE_PTX_JIT=1` or `CUDA_DISABLE_JIT=1` in the image.
    pub jit_disabled: bool,
}

impl Host {
    /// A host of which only the GPU is known.
    pub fn bare(device: Device) -> Self {
        Self {
            device,
            also: Vec::new(),
            always_ecc: false,
            driver: None,
            cuda: None,
            jit: None,
            force_ptx: false,
            jit_disabled: false,
        }
    }

    /// Whose GPU it is.
    pub fn maker(&self) -> Maker {
        self.device.maker()
    }

    fn refuses_zstd(&self) -> bool {
        self.driver.as_ref().zip(zstd_driver()).is_some_and(|(driver, first)| *driver < first)
    }
}

/// Jetson capabilities (Nano and TX1, TX2, Xavier, Orin, Thor): their code and that of discrete GPUs do not mix.
pub fn is_tegra(capability: Capability) -> bool {
    matches!((capability.major, capability.minor), (5, 3) | (6, 2) | (7, 2) | (8, 7) | (11, 0))
}

/// Whether a target is a Jetson or the like.
pub fn on_tegra(target: &Target) -> bool {
    target.capability().is_some_and(is_tegra)
}

/// Machine code on a GPU, whatever the driver.
fn machine(arch: Arch, host: &Host) -> Fit {
    match (arch, host.device) {
        (Arch::Sm(arch), Device::Nvidia(gpu)) => sass(arch, gpu, host),
        (Arch::Gfx(arch), Device::Amd(gpu)) => code_object(arch, gpu, host),
        (Arch::Intel(ip), Device::Intel(gpu)) if ip == gpu => Fit::Native,
        (Arch::Intel(_), Device::Intel(_)) if host.also.contains(&arch) => Fit::Compatible,
        _ => Fit::Missing,
    }
}

/// An AMD code object: the very processor or its generic target, and both features' modes any or equal. There is no
/// rule of families or of newer minors.
fn code_object(code: GfxArch, gpu: GfxArch, host: &Host) -> Fit {
    let fit = if code.processor == gpu.processor {
        Fit::Native
    } else if host.also.contains(&Arch::Gfx(code.processor.into())) {
        Fit::Compatible
    } else {
        return Fit::Missing;
    };
    // Retrying is off unless the process asks for it (HSA_XNACK=1).
    if !code.xnack.takes(gpu.xnack == GfxMode::On) {
        return Fit::Blocked(Block::Xnack { wants_on: code.xnack == GfxMode::On });
    }
    let ecc = match gpu.sramecc {
        GfxMode::Any => host.always_ecc.then_some(true),
        GfxMode::On => Some(true),
        GfxMode::Off => Some(false),
    };
    match (code.sramecc, ecc) {
        (GfxMode::Any, _) => fit,
        (wants, Some(on)) if wants.takes(on) => fit,
        (_, Some(_)) => Fit::Missing,
        (wants, None) => Fit::Uncertain(Doubt::SramEcc { wants_on: wants == GfxMode::On }),
    }
}

/// CUDA machine code on a GPU: `Native`, `Compatible`, `Uncertain` or `Missing`.
fn sass(arch: SmArch, gpu: Capability, host: &Host) -> Fit {
    let Some(code) = arch.capability() else { return Fit::Missing };
    if code == gpu {
        return Fit::Native;
    }
    let same_line = code.major == gpu.major && code.minor <= gpu.minor;
    match arch.feature {
        Feature::Arch => return Fit::Missing,
        // Families exist from 10.0 on; a family is a major.
        Feature::Family if !same_line || code.major < 10 => return Fit::Missing,
        Feature::Family => return Fit::Compatible,
        Feature::Plain if !same_line => return Fit::Missing,
        Feature::Plain => {}
    }
    let no_product = Capability::new(8, 8);
    if code == no_product || gpu == no_product {
        return Fit::Uncertain(Doubt::NoEvidence);
    }
    match (is_tegra(code), is_tegra(gpu)) {
        (false, false) => Fit::Compatible,
        (true, _) => Fit::Uncertain(Doubt::TegraOnDiscrete),
        (false, true) if gpu == Capability::new(8, 7) => match host.cuda {
            Some(cuda) if cuda < CudaVersion::new(13, 0) => Fit::Missing,
            _ => Fit::Uncertain(Doubt::OrinStack),
        },
        (false, true) => Fit::Missing,
    }
}

/// Whether code that a driver compiles is for this GPU, whatever the driver.
fn text_is_for(item: &Item, device: Device) -> bool {
    match (item.form, item.arch, device) {
        (Form::Ptx, Arch::Sm(arch), Device::Nvidia(gpu)) => ptx_is_for(arch, gpu),
        (Form::Spirv, Arch::AmdSpirv, Device::Amd(_)) | (Form::Spirv, Arch::Spir64, Device::Intel(_)) => true,
        _ => false,
    }
}

/// Whether this is machine code, of any maker.
pub fn is_machine_code(item: &Item) -> bool {
    match item.form {
        Form::Sass | Form::CodeObject | Form::Native => true,
        Form::Ptx | Form::Spirv | Form::LtoIr | Form::TileIr | Form::Unknown => false,
    }
}

fn ptx_is_for(arch: SmArch, gpu: Capability) -> bool {
    let Some(code) = arch.capability() else { return false };
    match arch.feature {
        Feature::Arch => code == gpu,
        Feature::Family => code.major >= 10 && code.major == gpu.major && code.minor <= gpu.minor,
        // Plain PTX compares by number, so `compute_101` is taken on 10.3 although it names what is now 11.0.
        Feature::Plain => arch.number <= SmArch::from(gpu).number,
    }
}

/// What the driver makes of one module: machine code that fits is preferred, then PTX.
pub fn module_fit<'a>(items: impl IntoIterator<Item = &'a Item> + Clone, host: &Host) -> Fit {
    let items = || items.clone().into_iter();
    let best = items()
        .filter(|i| is_machine_code(i) && !host.force_ptx)
        .map(|i| (machine(i.arch, host), i))
        .max_by_key(|(fit, i)| (*fit, made_for(i)));
    if let Some((fit @ (Fit::Native | Fit::Compatible), chosen)) = best {
        // Several entries of one architecture are all needed.
        let packed = items().any(|i| i.form == Form::Sass && i.arch == chosen.arch && i.packing == Packing::Zstd);
        return if packed && host.refuses_zstd() { Fit::Blocked(Block::Compressed) } else { fit };
    }
    let machine = best.map_or(Fit::Missing, |(fit, _)| fit);
    let text = items().filter(|i| text_is_for(i, host.device)).map(|i| text_fit(i, host)).max();
    machine.max(text.unwrap_or(Fit::Missing))
}

/// The capability that CUDA machine code was made for; of code that fits equally well the highest is taken.
fn made_for(item: &Item) -> Option<Capability> {
    item.arch.sm()?.capability()
}

/// The items of one module that the driver may take on this GPU: the machine code that fits best, and PTX where none
/// surely does. More than one where they are equal (`sm_90` beside `sm_90a`), or where it is not certain what loads.
/// Empty where nothing here is for this GPU. What the driver takes and then refuses counts as taken.
pub fn taken<'a>(items: impl IntoIterator<Item = &'a Item> + Clone, host: &Host) -> Vec<&'a Item> {
    let items = || items.clone().into_iter();
    let rank = |i: &Item| (machine(i.arch, host), made_for(i));
    let code = || items().filter(|i| is_machine_code(i) && !host.force_ptx && rank(i).0 > Fit::Missing);
    let best = code().map(rank).max();
    let mut out: Vec<&Item> = code().filter(|i| Some(rank(i)) == best).collect();
    if matches!(best, Some((Fit::Native | Fit::Compatible, _))) {
        return out;
    }
    // Of several PTX texts the one made for the newest architecture is as good as any, so it is the one to keep.
    let rank = |i: &Item| (text_fit(i, host), i.arch.sm().map(|a| a.number));
    let texts = || items().filter(|i| text_is_for(i, host.device));
    let best = texts().map(rank).max();
    out.extend(texts().filter(|i| Some(rank(i)) == best));
    out
}

fn text_fit(item: &Item, host: &Host) -> Fit {
    if item.form != Form::Ptx {
        return Fit::Jit;
    }
    if host.jit_disabled {
        return Fit::Blocked(Block::JitDisabled);
    }
    if item.packing == Packing::Zstd && host.refuses_zstd() {
        return Fit::Blocked(Block::Compressed);
    }
    match (item.isa, host.jit) {
        (Some(isa), Some(jit)) if isa > jit => Fit::Blocked(Block::PtxTooNew(isa)),
        _ => Fit::Jit,
    }
}

/// Whether machine code of an architecture serves a GPU, by the plain rule: for tables of wheels and plans.
pub fn sass_serves(arch: SmArch, gpu: Capability) -> bool {
    matches!(sass(arch, gpu, &Host::bare(gpu.into())), Fit::Native | Fit::Compatible)
}

#[cfg(test)]
mod tests;
