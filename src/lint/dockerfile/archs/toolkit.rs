//! The toolkit that compiles in a stage: the base image's, where nothing in the file brings another.

use std::cell::OnceCell;

use crate::catalog::bases::{Base, BaseFamily};
use crate::catalog::system_packages::SystemKind;
use crate::catalog::toolkits::Toolkit;
use crate::dockerfile::shell::Command;
use crate::dockerfile::syntax::Body;
use crate::lint::dockerfile::Lint;

/// What is known of the compilers of a file's stages, each asked once.
pub struct Stages<'a>(Vec<Asked<'a>>);

#[derive(Default)]
struct Asked<'a> {
    toolkit: OnceCell<Option<InForce<'a>>>,
    may_compile: OnceCell<bool>,
    has_compiler: OnceCell<bool>,
}

impl<'a> Stages<'a> {
    pub fn of(lint: &Lint<'a>) -> Self {
        Self(lint.reading.stages.iter().map(|_| Asked::default()).collect())
    }

    /// See [`in_force`].
    pub fn toolkit(&self, lint: &Lint<'a>, stage: usize) -> Option<&InForce<'a>> {
        self.0.get(stage)?.toolkit.get_or_init(|| in_force(lint, stage)).as_ref()
    }

    /// Whether a compiler may be in a stage: the base is not known to lack one, or the file may bring one.
    pub fn may_compile(&self, lint: &Lint<'a>, stage: usize) -> bool {
        self.0.get(stage).is_none_or(|s| *s.may_compile.get_or_init(|| may_compile(lint, stage)))
    }

    /// Whether a compiler is in a stage, on a base that is known to set no list of architectures.
    pub fn has_compiler(&self, lint: &Lint<'a>, stage: usize) -> bool {
        self.0.get(stage).is_some_and(|s| *s.has_compiler.get_or_init(|| has_compiler(lint, stage)))
    }
}

/// A toolkit with the base image that has it.
pub struct InForce<'a> {
    pub toolkit: &'a Toolkit,
    /// "nvidia/cuda:12.4.1-devel-ubuntu22.04".
    pub image: String,
    pub because: String,
    /// Tag and table are sure of it.
    pub sure: bool,
}

/// The toolkit in force in a stage; none where it is not known, or another may be installed.
pub fn in_force<'a>(lint: &Lint<'a>, stage: usize) -> Option<InForce<'a>> {
    let base = lint.base(stage).filter(|b| b.compiler != Some(false))?;
    let toolkit = lint.catalog.toolkits().get(base.cuda?)?;
    if brings_another(lint, stage) {
        return None;
    }
    let image = match &base.tag {
        Some(tag) => format!("{}:{tag}", base.repository),
        None => base.repository.clone(),
    };
    Some(InForce { toolkit, image, sure: base.sure && toolkit.is_sure(), because: base.because })
}

/// Whether a toolkit is installed from packages, in a stage or one that it is FROM.
fn installed(lint: &Lint<'_>, stage: usize) -> bool {
    let chain = lint.chain(stage);
    lint.asks.system.iter().filter(|s| here(lint, &chain, s.command)).flat_map(|s| &s.packages).any(|package| {
        let known = lint.catalog.system_packages().classify(&package.name, package.version.as_deref());
        known.is_some_and(|k| {
            matches!(k.kind, SystemKind::Toolkit | SystemKind::CudaMeta | SystemKind::DistroToolkit)
        })
    })
}

fn has_compiler(lint: &Lint<'_>, stage: usize) -> bool {
    let base = lint.base(stage).filter(|_| sets_no_list(lint, stage));
    base.is_some_and(|b| b.compiler == Some(true) && b.family != BaseFamily::Distro || installed(lint, stage))
}

/// The base image is one of those that are known to set no list of architectures in their environment.
pub fn sets_no_list(lint: &Lint<'_>, stage: usize) -> bool {
    let known = |family| matches!(family, BaseFamily::NvidiaCuda | BaseFamily::Pytorch | BaseFamily::Distro);
    lint.base(stage).is_some_and(|b| known(b.family))
}

fn here(lint: &Lint<'_>, chain: &[usize], command: usize) -> bool {
    let command = lint.reading.commands.get(command);
    command.and_then(|c| lint.reading.stage_of(c.instruction)).is_some_and(|at| chain.contains(&at))
}

fn may_compile(lint: &Lint<'_>, stage: usize) -> bool {
    // A distribution's image gets it somehow, if only by a script.
    let lacks = |b: &Base| b.compiler == Some(false) && b.family != BaseFamily::Distro;
    !lint.base(stage).is_some_and(|b| lacks(&b)) || brings(lint, stage)
}

fn brings_another(lint: &Lint<'_>, stage: usize) -> bool {
    let home = ["CUDA_HOME", "CUDA_PATH", "CUDACXX", "CMAKE_CUDA_COMPILER"].iter().any(|name| {
        let value = lint.reading.ends.get(stage).and_then(|scope| scope.get(*name)).map(|v| &v.value);
        value.is_some_and(|v| {
            v.known().is_none_or(|path| !path.starts_with("/usr/local/cuda/") && path != "/usr/local/cuda")
        })
    });
    home || brings(lint, stage)
}

/// Whether a toolkit comes from packages, another stage or a runfile.
fn brings(lint: &Lint<'_>, stage: usize) -> bool {
    let chain = lint.chain(stage);
    let conda = lint.asks.conda.iter().filter(|c| here(lint, &chain, c.command)).any(|install| {
        let is_cuda = |name: &str| name == "cudatoolkit" || name == "cuda" || name.starts_with("cuda-");
        install.packages.iter().any(|(name, ..)| is_cuda(name)) || !install.files.is_empty()
    });
    let pip = lint
        .asks
        .pip
        .iter()
        .filter(|p| here(lint, &chain, p.command))
        .any(|install| install.requirements.iter().any(|r| r.name.starts_with("nvidia-cuda-nvcc")));
    let moved = lint.build_commands().filter(|(at, _)| here(lint, &chain, *at)).any(|(_, c)| moves(c));
    let copied = lint.reading.document.instructions.iter().enumerate().any(|(at, instruction)| {
        let Body::Words(words) = &instruction.body else { return false };
        lint.reading.stage_of(at).is_some_and(|s| chain.contains(&s))
            && instruction.flag("from").is_some()
            && words.iter().any(|w| w.text.contains("/cuda"))
    });
    installed(lint, stage) || conda || pip || moved || copied
}

/// A runfile, or `/usr/local/cuda` set to another.
fn moves(command: &Command) -> bool {
    let mut words = command.words.iter().filter_map(|w| w.text.value.known());
    match command.program() {
        Some("update-alternatives") => words.any(|w| w.contains("cuda")),
        Some("ln" | "mv") => words.any(|w| w.contains("/usr/local/cuda")),
        _ => words.any(|w| w.contains("cuda_") && w.contains(".run")),
    }
}
