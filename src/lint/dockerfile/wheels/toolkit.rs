//! The CUDA that a stage has from its base, where nothing in the file brings another.

use crate::catalog::bases::Base;
use crate::catalog::system_packages::SystemKind;
use crate::dockerfile::shell::Command;
use crate::dockerfile::syntax::Body;
use crate::lint::dockerfile::Lint;
use crate::model::CudaVersion;

/// The base of a stage and its CUDA, where tag or table are sure of it and no other toolkit is installed on top.
pub fn of_base(lint: &Lint<'_>, stage: usize) -> Option<(Base, CudaVersion)> {
    let base = lint.base(stage).filter(|b| b.sure)?;
    let cuda = base.cuda?;
    (!brings_another(lint, stage, Some(cuda))).then_some((base, cuda))
}

/// The reference as it was written, for messages: "nvidia/cuda:12.4.1-devel-ubuntu22.04".
pub fn name(base: &Base) -> String {
    match &base.tag {
        Some(tag) => format!("{}:{tag}", base.repository),
        None => base.repository.clone(),
    }
}

/// Whether the file brings a toolkit or its libraries, of another major than the base's where that is given.
pub fn brings_another(lint: &Lint<'_>, stage: usize, base: Option<CudaVersion>) -> bool {
    let chain = lint.chain(stage);
    let here = |command: usize| {
        let command = lint.reading.commands.get(command);
        command.and_then(|c| lint.stage_of(c.instruction)).is_some_and(|(at, _)| chain.contains(&at))
    };
    let by_system = lint.asks.system.iter().filter(|s| here(s.command)).flat_map(|s| &s.packages).any(|package| {
        let Some(known) = lint.catalog.system_packages().classify(&package.name, package.version.as_deref()) else {
            return false;
        };
        match known.kind {
            SystemKind::Toolkit | SystemKind::CudaMeta | SystemKind::CudaLibrary => {
                let major = known.cuda.map(|c| c.major).or(known.cuda_major);
                // `cuda-nvcc-$V` may be any.
                package.unsure || base.is_none_or(|b| major.is_some_and(|m| m != b.major))
            }
            SystemKind::DistroToolkit => true,
            _ => false,
        }
    });
    let by_conda = lint.asks.conda.iter().filter(|c| here(c.command)).any(|install| {
        let is_cuda = |name: &str| name == "cudatoolkit" || name == "cuda" || name.starts_with("cuda-");
        install.packages.iter().any(|(name, ..)| is_cuda(name)) || install.files.iter().any(|(_, read)| !read)
    });
    let by_command = lint.build_commands().filter(|(at, _)| here(*at)).any(|(_, c)| moves_toolkit(c));
    let by_home = ["CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR"].iter().any(|name| {
        let value = lint.reading.ends.get(stage).and_then(|scope| scope.get(*name)).map(|v| &v.value);
        value.is_some_and(|v| v.known().is_none_or(|path| path.trim_end_matches('/') != "/usr/local/cuda"))
    });
    let by_copy = lint.reading.document.instructions.iter().enumerate().any(|(at, instruction)| {
        let Body::Words(words) = &instruction.body else { return false };
        lint.reading.stage_of(at).is_some_and(|s| chain.contains(&s))
            && instruction.flag("from").is_some()
            && words.iter().any(|w| w.text.contains("/usr/local/cuda"))
    });
    by_system || by_conda || by_command || by_home || by_copy
}

/// A runfile, a switch of `/usr/local/cuda`, a compiler from elsewhere.
fn moves_toolkit(command: &Command) -> bool {
    let known = || command.words.iter().filter_map(|w| w.text.value.known());
    match command.program() {
        Some("update-alternatives") => known().any(|w| w.contains("cuda")),
        Some("ln") => known().any(|w| w.trim_end_matches('/').ends_with("/usr/local/cuda")),
        _ => known().any(|w| w.contains("cuda_") && w.ends_with(".run")),
    }
}
