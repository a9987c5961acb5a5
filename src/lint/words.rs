//! What is said to people: one line per cause, with the words of CUDA's own errors.

use super::case::{ComponentCase, ComponentCause, FileCase, TargetCase};
use crate::catalog::compat::Block;
use crate::catalog::verdict::{Cause, summary};
use crate::model::{Component, Evidence, Gap, Maker, Verdict, escape};

/// "torch 2.7.0+cu126".
pub fn component(component: &Component) -> String {
    let name = escape(component.name.as_bytes());
    match &component.version {
        Some(version) => format!("{name} {}", escape(version.as_bytes())),
        None => name,
    }
}

/// "layer sha256:0123456789ab: what".
pub fn gap(gap: &Gap) -> String {
    let mut out = String::new();
    if let Some(path) = &gap.path {
        out.push_str(&format!("{path}: "));
    } else if let Some(layer) = &gap.layer {
        out.push_str(&format!("layer {}: ", layer.short()));
    }
    out.push_str(&escape(gap.why.as_bytes()));
    out
}

pub fn nothing(evidence: &Evidence) -> String {
    if evidence.files.iter().any(|f| f.facts.has_device_code()) {
        "no GPU code that anything would load".to_owned()
    } else {
        "no GPU code".to_owned()
    }
}

/// The one line for a component on a target, with its name.
pub fn why(case: &TargetCase<'_>, component: &ComponentCase<'_>) -> String {
    let name = self::component(&case.evidence.components[component.index]);
    format!("{name}: {}", reason(case, component))
}

/// The same without the name.
pub fn reason(case: &TargetCase<'_>, component: &ComponentCase<'_>) -> String {
    match &component.cause {
        ComponentCause::NoVariant { wanted, cpu } => {
            let then = if *cpu { "the CPU library is loaded instead" } else { "nothing is loaded" };
            format!("none of its variants is for this image ({}): {then}", escape(wanted.as_bytes()))
        }
        ComponentCause::VariantUnknown(why) => why.clone(),
        ComponentCause::Code(cause) => {
            let file = component
                .files
                .iter()
                .find(|f| Some(f.file.path.as_bytes()) == component.worst.map(|w| w.path.as_bytes()));
            cause_text(cause, case, file)
        }
    }
}

/// Why a file got its word.
pub fn file_reason(case: &TargetCase<'_>, file: &FileCase<'_>) -> String {
    cause_text(&file.judgement.cause, case, Some(file))
}

fn cause_text(cause: &Cause, case: &TargetCase<'_>, file: Option<&FileCase<'_>>) -> String {
    let target = case.target;
    let has = || {
        let told = |f: &FileCase<'_>| {
            let name = escape(f.file.path.file_name());
            format!(": {name} has {}", summary(&f.file.facts.modules, target.maker()))
        };
        file.map_or(String::new(), told)
    };
    let cc = target.device;
    match cause {
        Cause::Fits => match file.map(|f| f.judgement.counts) {
            Some(c) if c.compatible == 0 && c.native > 0 => format!("machine code made for {cc}"),
            _ => format!("machine code that {cc} runs"),
        },
        Cause::SpecialsElsewhere { missing, of } => {
            format!("machine code that {cc} runs; {missing} of {of} modules are kernels for other chips")
        }
        Cause::SomeJit { modules, of } => {
            format!("machine code that {cc} runs; {modules} of {of} modules are compiled by the driver (JIT)")
        }
        Cause::SiblingServes => format!("made for other chips; another library of the package serves {cc}"),
        Cause::MostlySpecial { missing, of } => {
            format!("{missing} of {of} modules, half of its code or more, are for other chips than {cc}")
        }
        Cause::Jit { modules, of } => {
            let text = if target.maker() == Maker::Nvidia { "PTX" } else { "SPIR-V" };
            let what = match of == modules {
                true => format!("only {text}"),
                false => format!("{modules} of {of} modules have only {text}"),
            };
            let cache = cache(case.evidence, target.maker());
            format!("{what} for {cc}, compiled by the driver (JIT) at each cold start{cache}")
        }
        Cause::Uncertain(doubt) => doubt.text().to_owned(),
        Cause::Partly { missing, of, block: None } => {
            let most =
                file.map_or(String::new(), |f| format!(", those of {} first", escape(f.file.path.file_name())));
            format!(
                "{missing} of {of} modules have no device code for {cc}{most}: {} in use",
                no_image(target.maker())
            )
        }
        Cause::Partly { missing, of, block: Some(block) } => {
            format!("{missing} of {of} modules: {}", block_text(*block, case))
        }
        Cause::NoImage => format!("no device code for {cc}{}: {}", has(), no_image(target.maker())),
        Cause::OtherMakers => {
            let maker = target.maker();
            format!("no code for {maker}'s GPUs{}", has())
        }
        Cause::Elsewhere(archives) if archives.is_empty() => {
            "its kernels were taken out into archives, and it does not say which: hipErrorFileNotFound".to_owned()
        }
        Cause::Elsewhere(archives) => {
            format!("its kernels lie in archives of which none is in the image ({archives}): hipErrorFileNotFound")
        }
        Cause::Refused(block) => {
            let name = file.map_or(String::new(), |f| format!("{}: ", escape(f.file.path.file_name())));
            format!("{name}{}", block_text(*block, case))
        }
        Cause::NeedsLinker => {
            "only code that a linker or compiler must finish at run time (LTO-IR, tile IR)".to_owned()
        }
        Cause::Incomplete(why) => format!("its device code could not be listed whole: {why}"),
    }
}

/// What a program says that finds no code for its GPU.
fn no_image(maker: Maker) -> &'static str {
    match maker {
        Maker::Nvidia => "\"no kernel image is available\" (209)",
        Maker::Amd => "\"Unable to find code object for all current devices\" (hipErrorNoBinaryForGpu)",
        Maker::Intel => "\"No kernel named … was found\" (PI_ERROR_INVALID_BINARY)",
    }
}

/// What the image itself does about the JIT's cache.
fn cache(evidence: &Evidence, maker: Maker) -> String {
    let config = &evidence.image.config;
    match maker {
        Maker::Nvidia => {}
        Maker::Amd => return String::new(),
        Maker::Intel if config.var("SYCL_CACHE_PERSISTENT") == Some("1") => {
            return "; the image keeps what was compiled (SYCL_CACHE_PERSISTENT)".to_owned();
        }
        Maker::Intel => {
            return "; the image does not keep what was compiled (SYCL_CACHE_PERSISTENT=1 would)".to_owned();
        }
    }
    match (config.var("CUDA_CACHE_DISABLE"), config.var("CUDA_CACHE_PATH")) {
        (Some("1"), _) => "; the image disables the JIT cache".to_owned(),
        (_, Some(path)) => format!("; the image keeps the JIT cache in {}", escape(path.as_bytes())),
        _ => "; the image keeps no JIT cache of its own".to_owned(),
    }
}

fn block_text(block: Block, case: &TargetCase<'_>) -> String {
    let target = case.target;
    let driver = target.driver.as_ref().map_or("the driver".to_owned(), |d| format!("driver {d}"));
    let driver = match case.compat.as_ref().and_then(|c| c.driver()) {
        Some(library) => format!("{driver} with the forward-compat library {library}"),
        None => driver,
    };
    match block {
        Block::PtxTooNew(isa) => format!(
            "{}'s only code here is PTX {isa}, newer than {driver} compiles: \"PTX was compiled with an unsupported \
             toolchain\" (222)",
            target.device
        ),
        Block::Compressed => format!(
            "its code for {} is compressed with zstd, which {driver} cannot read (550.54.14 is the first that can): \
             \"device kernel image is invalid\" (200)",
            target.device
        ),
        Block::JitDisabled => format!(
            "only PTX for {}, and the image forbids compiling it (CUDA_DISABLE_PTX_JIT): \"PTX JIT compilation was \
             disabled\" (223)",
            target.device
        ),
        Block::Xnack { wants_on: true } => format!(
            "its code for {} was made for retrying page faults (xnack+), which is off unless HSA_XNACK=1 is set: {}",
            target.device,
            no_image(Maker::Amd)
        ),
        Block::Xnack { wants_on: false } => format!(
            "its code for {} was made without retrying page faults (xnack-), which HSA_XNACK=1 turns on: {}",
            target.device,
            no_image(Maker::Amd)
        ),
    }
}

/// Which rule speaks for a component's word; `None`: nothing to say.
pub fn rule_of(component: &ComponentCase<'_>) -> Option<&'static str> {
    Some(match &component.cause {
        ComponentCause::NoVariant { .. } | ComponentCause::VariantUnknown(_) => "no-variant-for-image",
        ComponentCause::Code(cause) => match cause {
            Cause::OtherMakers if component.verdict == Verdict::Ok => "special-code-for-other-targets",
            Cause::NoImage | Cause::OtherMakers | Cause::Partly { block: None, .. } => "no-device-code-for-target",
            Cause::Elsewhere(_) => "kpack-archive-missing",
            Cause::Refused(b) | Cause::Partly { block: Some(b), .. } => match b {
                Block::PtxTooNew(_) => "ptx-too-new-for-driver",
                Block::Compressed => "compressed-code-needs-newer-driver",
                Block::JitDisabled => "jit-disabled",
                Block::Xnack { .. } => "xnack-mode-differs",
            },
            Cause::MostlySpecial { .. } => "code-mostly-for-other-targets",
            Cause::SpecialsElsewhere { .. } | Cause::SiblingServes => "special-code-for-other-targets",
            Cause::Jit { .. } => "jit-at-start",
            Cause::Uncertain(_) => "device-code-may-not-load",
            Cause::NeedsLinker => "needs-runtime-linker",
            Cause::Incomplete(_) => "device-code-not-readable",
            Cause::Fits | Cause::SomeJit { .. } => return None,
        },
    })
}

/// What a component's word weighs in its image.
pub fn weighed(component: &ComponentCase<'_>) -> Verdict {
    use crate::report::Role;
    match component.role {
        Role::Core => component.verdict,
        Role::Optional => component.verdict.max(Verdict::Warn),
        Role::Idle => Verdict::Ok,
    }
}
