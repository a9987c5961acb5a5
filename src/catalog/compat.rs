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
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        let (form, isa) =
            if text.starts_with("compute_") { (Form::Ptx, Some(PtxIsa::new(8, 0))) } else { (Form::Sass, None) };
        Item { arch: text.parse().unwrap(), form, kind: 2, isa, packing: Packing::None, toolkit: None }
    }

    fn fit(code: &[&str], gpu: &str) -> Fit {
        let items: Vec<Item> = code.iter().map(|c| item(c)).collect();
        module_fit(&items, &Host::bare(gpu.parse().unwrap()))
    }

    /// Every capability that a toolkit of 2026 can name.
    const GPUS: [&str; 18] = [
        "5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.8", "8.9", "9.0",
        "10.0", "10.3", "10.7",
    ];
    const NEWEST: [&str; 3] = ["11.0", "12.0", "12.1"];

    /// nvlink 13.5: cubin, then the link targets it was accepted for (suffixes left out, they follow).
    const NVLINK: &str = "75: 75\n80: 80 86 87 88 89\n86: 86 87 88 89\n87: 87 88 89\n88: 88 89\n89: 89\n90: 90\n90a: 90\n\
        100: 100 103 107\n100a: 100\n100f: 100 103 107\n103: 103 107\n103a: 103\n103f: 103 107\n107: 107\n107a: 107\n\
        107f: 107\n110: 110\n110a: 110\n110f: 110\n120: 120 121\n120a: 120\n120f: 120 121\n121: 121\n121a: 121\n121f: 121";

    /// ptxas 13.5: PTX target, then the lowest of the targets above itself that it was accepted for, or `-`.
    const PTXAS_ALL_ABOVE: [&str; 15] =
        ["50", "70", "72", "75", "80", "87", "88", "89", "90", "100", "101", "103", "110", "120", "121"];
    const PTXAS_FAMILY: &str = "100f: 100 103 107\n103f: 103 107\n107f: 107\n110f: 110\n101f: 110\n120f: 120 121\n121f: 121\n\
        90a: 90\n100a: 100\n103a: 103\n107a: 107\n101a: 110\n110a: 110\n120a: 120\n121a: 121";

    fn all_gpus() -> impl Iterator<Item = &'static str> {
        GPUS.into_iter().chain(NEWEST)
    }

    #[test]
    fn machine_code_follows_nvlink_but_for_jetson() {
        for line in NVLINK.lines() {
            let (code, targets) = line.trim().split_once(": ").unwrap();
            let targets: Vec<&str> = targets.split(' ').collect();
            for gpu in all_gpus() {
                let got = fit(&[&format!("sm_{code}")], gpu);
                let number = gpu.replace('.', "");
                if targets.contains(&number.as_str()) {
                    assert!(got > Fit::Blocked(Block::JitDisabled), "sm_{code} on {gpu}: {got:?}");
                } else {
                    assert_eq!(got, Fit::Missing, "sm_{code} on {gpu}");
                }
            }
        }
    }

    #[test]
    fn ptx_follows_ptxas() {
        for code in PTXAS_ALL_ABOVE {
            for gpu in all_gpus() {
                let above = gpu.replace('.', "").parse::<u32>().unwrap() >= code.parse().unwrap();
                let want = if above { Fit::Jit } else { Fit::Missing };
                assert_eq!(fit(&[&format!("compute_{code}")], gpu), want, "compute_{code} on {gpu}");
            }
        }
        for line in PTXAS_FAMILY.lines() {
            let (code, targets) = line.trim().split_once(": ").unwrap();
            for gpu in all_gpus() {
                let listed = targets.split(' ').any(|t| t == gpu.replace('.', ""));
                let want = if listed { Fit::Jit } else { Fit::Missing };
                assert_eq!(fit(&[&format!("compute_{code}")], gpu), want, "compute_{code} on {gpu}");
            }
        }
    }

    #[test]
    fn jetson_takes_its_own_code_or_ptx() {
        assert_eq!(fit(&["sm_87"], "8.7"), Fit::Native);
        assert_eq!(fit(&["sm_80"], "8.7"), Fit::Uncertain(Doubt::OrinStack));
        assert_eq!(fit(&["sm_80", "compute_80"], "8.7"), Fit::Jit);
        assert_eq!(fit(&["sm_70"], "7.2"), Fit::Missing);
        assert_eq!(fit(&["sm_60"], "6.2"), Fit::Missing);
        assert_eq!(fit(&["sm_72"], "7.5"), Fit::Uncertain(Doubt::TegraOnDiscrete));
        assert_eq!(fit(&["sm_87"], "8.6"), Fit::Missing);
        assert_eq!(fit(&["sm_100"], "11.0"), Fit::Missing);
        assert_eq!(fit(&["sm_101"], "11.0"), Fit::Native);
        assert_eq!(fit(&["sm_101a"], "11.0"), Fit::Native);
        assert_eq!(fit(&["sm_101"], "10.3"), Fit::Missing);
        let mut orin = Host::bare(Capability::new(8, 7).into());
        orin.cuda = Some(CudaVersion::new(12, 6));
        assert_eq!(module_fit(&[item("sm_80")], &orin), Fit::Missing);
        orin.cuda = Some(CudaVersion::new(13, 2));
        assert_eq!(module_fit(&[item("sm_80")], &orin), Fit::Uncertain(Doubt::OrinStack));
    }

    #[test]
    fn the_driver_bounds_ptx_and_compression() {
        let mut host = Host::bare(Capability::new(9, 0).into());
        host.jit = Some(PtxIsa::new(8, 7));
        let ptx = |major, minor| Item { isa: Some(PtxIsa::new(major, minor)), ..item("compute_80") };
        assert_eq!(module_fit(&[ptx(8, 8)], &host), Fit::Blocked(Block::PtxTooNew(PtxIsa::new(8, 8))));
        assert_eq!(module_fit(&[ptx(8, 7)], &host), Fit::Jit);
        assert_eq!(module_fit(&[ptx(8, 8), item("sm_90")], &host), Fit::Native);
        assert_eq!(module_fit(&[ptx(8, 8), ptx(8, 7)], &host), Fit::Jit);
        host.jit_disabled = true;
        assert_eq!(module_fit(&[ptx(8, 7)], &host), Fit::Blocked(Block::JitDisabled));
        let zstd = |code: &str| Item { packing: Packing::Zstd, ..item(code) };
        let mut old = Host::bare(Capability::new(7, 0).into());
        for (driver, want) in [("535.288.01", Fit::Blocked(Block::Compressed)), ("550.54.14", Fit::Native)] {
            old.driver = Some(driver.parse().unwrap());
            assert_eq!(module_fit(&[zstd("sm_70"), item("compute_60")], &old), want, "{driver}");
            // Only the entry chosen for this GPU counts.
            assert_eq!(module_fit(&[zstd("sm_90"), item("sm_70")], &old), Fit::Native, "{driver}");
        }
    }

    fn takes(code: &[&str], host: &Host) -> Vec<String> {
        let items: Vec<Item> = code.iter().map(|c| item(c)).collect();
        let word = |i: &Item| match i.form {
            Form::Ptx => i.arch.to_string().replace("sm_", "compute_"),
            _ => i.arch.to_string(),
        };
        taken(&items, host).into_iter().map(word).collect()
    }

    #[test]
    fn of_one_module_the_best_is_taken() {
        let on = |code: &[&str], gpu: &str| takes(code, &Host::bare(gpu.parse().unwrap()));
        let torch = ["sm_50", "sm_60", "sm_80", "sm_86", "sm_90", "compute_90"];
        assert_eq!(on(&torch, "8.9"), ["sm_86"]);
        assert_eq!(on(&torch, "8.0"), ["sm_80"]);
        assert_eq!(on(&torch, "12.0"), ["compute_90"]);
        assert_eq!(on(&torch, "7.0"), [""; 0], "sm_60 is of another major");
        assert_eq!(on(&["sm_90", "sm_90a", "compute_90"], "9.0"), ["sm_90", "sm_90a"]);
        assert_eq!(on(&["sm_90a"], "10.0"), [""; 0]);
        assert_eq!(on(&["sm_100", "sm_100f", "sm_103"], "10.3"), ["sm_103"]);
        assert_eq!(on(&["sm_100", "sm_100f"], "10.3"), ["sm_100", "sm_100f"]);
        assert_eq!(on(&["compute_50", "compute_80", "compute_120"], "9.0"), ["compute_80"]);
        // What may load and what surely does are both kept.
        assert_eq!(on(&["sm_80", "compute_80"], "8.7"), ["sm_80", "compute_80"]);
        let mut forced = Host::bare(Capability::new(8, 0).into());
        forced.force_ptx = true;
        assert_eq!(takes(&["sm_80", "compute_80"], &forced), ["compute_80"]);
    }

    #[test]
    fn something_is_taken_where_something_fits_and_only_there() {
        let code =
            ["sm_50", "sm_72", "sm_80", "sm_87", "sm_90a", "sm_100f", "sm_120", "compute_75", "compute_100f"];
        for pick in 0..1usize << code.len() {
            let some: Vec<&str> =
                code.iter().enumerate().filter(|(i, _)| pick >> i & 1 == 1).map(|(_, c)| *c).collect();
            for gpu in all_gpus() {
                let missing = fit(&some, gpu) == Fit::Missing;
                let none = takes(&some, &Host::bare(gpu.parse().unwrap())).is_empty();
                assert_eq!(missing, none, "{some:?} on {gpu}");
            }
        }
    }

    #[test]
    fn forced_jit_passes_over_machine_code() {
        let mut host = Host::bare(Capability::new(8, 0).into());
        host.force_ptx = true;
        assert_eq!(module_fit(&[item("sm_80")], &host), Fit::Missing);
        assert_eq!(module_fit(&[item("sm_80"), item("compute_80")], &host), Fit::Jit);
    }
}
