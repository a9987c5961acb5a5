//! What the strings of a few well-known files say: compilers their release and targets, NCCL its version, a
//! dynamic loader the directories it searches.

use std::collections::BTreeSet;

use memchr::memmem;

use crate::model::{CudaVersion, FileFacts, GfxProcessor, SmArch, ToolFacts, ToolKind};

/// What every tool of a toolkit prints about itself: `…release 12.9, V12.9.86`.
const RELEASE: &[u8] = b"Cuda compilation tools, release ";

/// Files of `libNAME` whose version stands behind a mark.
const VERSIONS: [(&[u8], &[u8]); 2] = [(b"libnccl", b"NCCL version "), (b"libnvshmem_host", b"NVSHMEM v")];

/// Files of `libNAME` that compile for AMD's GPUs.
const GFX_COMPILERS: [&[u8]; 2] = [b"libtriton", b"libamd_comgr"];

/// More than LLVM has processors of AMD.
const MAX_PROCESSORS: usize = 512;

/// Architectures that a toolkit may know; other numbers are no architectures.
const ARCHS: std::ops::RangeInclusive<u32> = 20..=199;

/// Longest version, directory, symbol.
const MAX_TEXT: usize = 256;

/// Longer than any forward-compat note.
const MAX_NOTE: usize = 1024;

/// More directories than any loader has built in.
const MAX_DIRS: usize = 16;

enum Reads {
    Tool {
        kind: ToolKind,
        release: Option<CudaVersion>,
        hint: Option<CudaVersion>,
        newest: Option<SmArch>,
    },
    Version {
        mark: &'static [u8],
        version: Option<String>,
    },
    Loader {
        dirs: Vec<String>,
    },
    Compat {
        hosts: Option<Vec<u32>>,
    },
    /// LLVM with its code generator for AMD: names of processors.
    Gfx {
        known: BTreeSet<GfxProcessor>,
    },
}

/// Reads the strings of one file while it streams by.
pub(super) struct Says(Reads);

impl Says {
    /// By the file's name; `None` for nearly all files.
    pub(super) fn new(file_name: &[u8]) -> Option<Self> {
        if let Some(kind) = tool(file_name) {
            return Some(Self(Reads::Tool { kind, release: None, hint: None, newest: None }));
        }
        if is_loader(file_name) {
            return Some(Self(Reads::Loader { dirs: Vec::new() }));
        }
        if file_name.starts_with(b"libcuda.so.") {
            return Some(Self(Reads::Compat { hosts: None }));
        }
        if GFX_COMPILERS.iter().any(|name| is_library(file_name, name)) {
            return Some(Self(Reads::Gfx { known: BTreeSet::new() }));
        }
        let (_, mark) = VERSIONS.iter().find(|(name, _)| is_library(file_name, name))?;
        Some(Self(Reads::Version { mark, version: None }))
    }

    /// Shows a chunk; a string that it cuts off is expected whole in the next.
    pub(super) fn see(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Reads::Tool { kind, release, hint, newest } => {
                *release = (*release).max(behind(chunk, RELEASE).filter_map(self::release).max());
                match kind {
                    ToolKind::Nvrtc => {
                        let names = behind(chunk, b"libnvrtc-builtins");
                        *hint = (*hint).max(names.filter_map(builtins_of).max());
                    }
                    ToolKind::Nvjitlink => {
                        let symbols = behind(chunk, b"\0__nvJitLink");
                        *hint = (*hint).max(symbols.filter_map(version_of_symbol).max());
                    }
                    ToolKind::Nvcc | ToolKind::Ptxas | ToolKind::Nvlink => {
                        *newest = (*newest).max(behind(chunk, b"\0sm_").filter_map(arch).max());
                    }
                }
            }
            Reads::Version { mark, version } => {
                if version.is_none() {
                    *version = behind(chunk, mark).find_map(version_text);
                }
            }
            Reads::Compat { hosts } => {
                if hosts.is_none() {
                    *hosts = compat_hosts(chunk);
                }
            }
            Reads::Gfx { known } => {
                // More than there are processors is no compiler's list.
                if known.len() < MAX_PROCESSORS {
                    known.extend(behind(chunk, b"\0gfx").filter_map(processor));
                }
            }
            Reads::Loader { dirs } => {
                let found = directories(chunk);
                if found.len() > dirs.len() {
                    *dirs = found;
                }
            }
        }
    }

    /// Adds what was read to the file's facts.
    pub(super) fn tell(self, facts: &mut FileFacts) {
        match self.0 {
            Reads::Tool { kind, release, hint, newest } => {
                facts.tool = Some(ToolFacts { kind, cuda: release.or(hint), newest });
            }
            Reads::Version { version, .. } => facts.says_version = version,
            Reads::Compat { hosts } => facts.compat_hosts = hosts,
            Reads::Gfx { known } => facts.compiles_gfx = known.into_iter().collect(),
            Reads::Loader { dirs } => {
                if let Some(elf) = &mut facts.elf {
                    elf.system_dirs = dirs;
                }
            }
        }
    }
}

/// The branches of a forward-compat note: JSON with the keys `CUDA version`, `driver` and `device`
/// (nvidia-container-toolkit, cmd/nvidia-cdi-hook/cudacompat).
fn compat_hosts(chunk: &[u8]) -> Option<Vec<u32>> {
    memmem::find_iter(chunk, b"{").find_map(|at| {
        let rest = &chunk[at..chunk.len().min(at + MAX_NOTE)];
        let note = &rest[..=memchr::memchr(b'}', rest)?];
        memmem::find(note, b"\"CUDA version\"")?;
        let note: serde_json::Value = serde_json::from_slice(note).ok()?;
        let branches = note.get("driver")?.as_array()?;
        let mut hosts: Vec<u32> = branches.iter().filter_map(|b| u32::try_from(b.as_u64()?).ok()).collect();
        hosts.sort_unstable();
        Some(hosts)
    })
}

/// The compiler that a file is by its name; wheels put hashes and words into the names of libraries.
fn tool(name: &[u8]) -> Option<ToolKind> {
    match name {
        b"nvcc" => Some(ToolKind::Nvcc),
        b"nvlink" => Some(ToolKind::Nvlink),
        b"ptxas" => Some(ToolKind::Ptxas),
        _ if name.starts_with(b"ptxas-") => Some(ToolKind::Ptxas),
        _ if name.starts_with(b"libnvrtc-builtins") => None,
        _ if is_library(name, b"libnvrtc") => Some(ToolKind::Nvrtc),
        _ if is_library(name, b"libnvJitLink") => Some(ToolKind::Nvjitlink),
        _ => None,
    }
}

/// Whether a file is a library of a name: `libnvrtc.so.12`, `libnvrtc-0c1f1a3b.so.12`, `libnvrtc.alt.so.12`.
fn is_library(file: &[u8], name: &[u8]) -> bool {
    file.strip_prefix(name)
        .is_some_and(|rest| matches!(rest.first(), Some(b'.' | b'-')) && memmem::find(rest, b".so").is_some())
}

/// `ld-linux-x86-64.so.2`, `ld-linux-aarch64.so.1`, `ld-2.31.so`, `ld64.so.2`.
fn is_loader(name: &[u8]) -> bool {
    let numbered = name.strip_prefix(b"ld-2.").is_some_and(|rest| rest.ends_with(b".so"));
    let plain = name.starts_with(b"ld-linux") && memmem::find(name, b".so.").is_some();
    numbered || plain || name.starts_with(b"ld64.so.")
}

/// What follows each mark, as far as the chunk goes.
fn behind<'a>(chunk: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    memmem::find_iter(chunk, mark).map(move |at| {
        let rest = &chunk[at + mark.len()..];
        &rest[..rest.len().min(MAX_TEXT)]
    })
}

/// `12.9, V12.9.86`.
fn release(text: &[u8]) -> Option<CudaVersion> {
    let end = memmem::find(text, b", V")?;
    let version: CudaVersion = digits_and_dots(&text[..end])?.parse().ok()?;
    let full = &text[end + 3..];
    let full = digits_and_dots(&full[..full.iter().position(|b| !b.is_ascii_digit() && *b != b'.')?])?;
    (full.matches('.').count() == 2 && full.parse::<CudaVersion>().ok()? == version).then_some(version)
}

/// The version behind `libnvrtc-builtins`: `.so.12.8`, `.alt.so.12.8`.
fn builtins_of(text: &[u8]) -> Option<CudaVersion> {
    let rest = text.strip_prefix(b".alt").unwrap_or(text).strip_prefix(b".so.")?;
    let end = rest.iter().position(|b| !b.is_ascii_digit() && *b != b'.')?;
    let version = digits_and_dots(&rest[..end])?;
    version.contains('.').then(|| version.parse().ok()).flatten()
}

/// The version in what follows `__nvJitLink`: `GetLinkedPtx_12_9`.
fn version_of_symbol(text: &[u8]) -> Option<CudaVersion> {
    let symbol = std::str::from_utf8(&text[..memchr::memchr(0, text)?]).ok()?;
    let (rest, minor) = symbol.rsplit_once('_')?;
    let (_, major) = rest.rsplit_once('_')?;
    format!("{major}.{minor}").parse().ok()
}

/// A plain architecture by its number: `121`, to the end of its string.
fn arch(text: &[u8]) -> Option<SmArch> {
    let number = std::str::from_utf8(&text[..memchr::memchr(0, text)?]).ok()?;
    let plain = !number.is_empty() && number.len() <= 3 && number.bytes().all(|b| b.is_ascii_digit());
    let arch: SmArch = plain.then(|| number.parse().ok()).flatten()?;
    ARCHS.contains(&arch.number).then_some(arch)
}

/// A processor by what follows `gfx` to the end of its string: `90a`.
fn processor(text: &[u8]) -> Option<GfxProcessor> {
    let end = memchr::memchr(0, text).filter(|end| *end <= 4)?;
    let processor: GfxProcessor = format!("gfx{}", std::str::from_utf8(&text[..end]).ok()?).parse().ok()?;
    (!processor.is_generic()).then_some(processor)
}

/// `2.21.5+cuda12.4`.
fn version_text(text: &[u8]) -> Option<String> {
    let end = text.iter().position(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'.' | b'+' | b'-'))?;
    let version = std::str::from_utf8(&text[..end]).ok()?;
    (version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.')).then(|| version.to_owned())
}

fn digits_and_dots(text: &[u8]) -> Option<&str> {
    text.iter().all(|b| b.is_ascii_digit() || *b == b'.').then(|| std::str::from_utf8(text).ok()).flatten()
}

/// The longest row of directories among a chunk's strings: each ends with a slash, the next follows at once.
fn directories(chunk: &[u8]) -> Vec<String> {
    let mut best = Vec::new();
    let mut done = 0;
    for hit in memmem::find_iter(chunk, b"lib") {
        let Some(start) = memchr::memrchr(0, &chunk[..hit]).map(|i| i + 1).filter(|s| *s >= done) else { continue };
        let mut row = Vec::new();
        done = start;
        while let Some(length) = memchr::memchr(0, &chunk[done..chunk.len().min(done + MAX_TEXT)]) {
            let text = &chunk[done..done + length];
            let directory = text.starts_with(b"/") && text.ends_with(b"/") && text.iter().all(u8::is_ascii_graphic);
            if !directory || row.len() == MAX_DIRS {
                break;
            }
            row.push(String::from_utf8_lossy(text).into_owned());
            done += length + 1;
        }
        done = done.max(hit);
        if row.len() > best.len() {
            best = row;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ElfFacts, FileKind};

    fn said(name: &str, strings: &str) -> FileFacts {
        let mut says = Says::new(name.as_bytes()).unwrap();
        let bytes = strings.as_bytes();
        for chunk in [bytes, &bytes[bytes.len() / 2..]] {
            says.see(chunk);
        }
        let mut facts = FileFacts::new(FileKind::SharedObject, 0);
        facts.elf = Some(ElfFacts::default());
        says.tell(&mut facts);
        facts
    }

    #[test]
    fn a_compat_library_lists_its_hosts() {
        // The note of 575.57.08, as facts/forward_compat has it.
        let note = r#"{"format":1,"CUDA version":"12.9","driver":[575,535,550],"device":[1,2,7]}"#;
        let text = format!("\0{{\"x\":1}}NVIDIA Corporation\0{note}\0");
        assert_eq!(said("libcuda.so.575.57.08", &text).compat_hosts, Some(vec![535, 550, 575]));
        assert_eq!(said("libcuda.so.1", "\0{\"driver\":[535]}\0{\"CUDA version\":").compat_hosts, None);
        assert_eq!(said("libnccl.so.2", &text).compat_hosts, None);
    }

    #[test]
    fn compilers_say_their_release() {
        let strings = "\0Cuda compilation tools, release %d.%d,\0Cuda compilation tools, release 12.9, V12.9.86\n\
            Build cuda_12.9.r12.9/compiler.36037853_0\0sm_90\0sm_9fD\0sm_121a\0sm_121\0xsm_130\0sm_999\0sm_\0";
        let newest = Some(SmArch::new(121, crate::model::Feature::Plain));
        let cuda = Some(CudaVersion::new(12, 9));
        let tool = said("ptxas-blackwell", strings).tool;
        assert_eq!(tool, Some(ToolFacts { kind: ToolKind::Ptxas, cuda, newest }));
        let tool = said("libnvrtc-0c1f1a3b.so.12", strings).tool;
        assert_eq!(tool, Some(ToolFacts { kind: ToolKind::Nvrtc, cuda, newest: None }));
        let none = said("nvlink", "Cuda compilation tools, release 12.9, V12.8.86\n\0").tool.unwrap();
        assert_eq!((none.kind, none.cuda, none.newest), (ToolKind::Nvlink, None, None));
    }

    #[test]
    fn libraries_without_that_string_say_it_otherwise() {
        let text = "\0Make sure that libnvrtc-builtins.so.11.2 is installed correctly.\0";
        assert_eq!(said("libnvrtc.so.11.2", text).tool.unwrap().cuda, Some(CudaVersion::new(11, 2)));
        let text =
            "\0__nvJitLinkCreate_12_0\0__nvJitLinkCreate_12_10\0__nvJitLinkCreate_12_9\0__nvJitLinkVersion\0";
        assert_eq!(said("libnvJitLink.so.12", text).tool.unwrap().cuda, Some(CudaVersion::new(12, 10)));
    }

    #[test]
    fn compilers_for_amd_name_their_processors() {
        let text = "\0gfx942\0gfx90a\0gfx1201\0gfx12\0gfx000\0xgfx908\0gfx9-generic\0gfx942\0gfx11";
        let known = |name| said(name, text).compiles_gfx.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(known("libtriton.so"), ["gfx90a", "gfx942", "gfx1201"]);
        assert_eq!(known("libamd_comgr.so.3"), ["gfx90a", "gfx942", "gfx1201"]);
        assert!(Says::new(b"libtriton_amd_codegen.so").is_none());
    }

    #[test]
    fn which_files_are_tools() {
        for no in
            ["libnvrtc-builtins.so.12.4", "libnvrtc-builtins.alt.so.12.8", "libnvrtc_static.a", "nvcc.profile"]
        {
            assert!(Says::new(no.as_bytes()).is_none(), "{no}");
        }
        for yes in ["nvcc", "libnvrtc.alt.so.12", "libnvJitLink.so.13", "ld64.so.2", "ld-2.31.so", "libnccl.so"] {
            assert!(Says::new(yes.as_bytes()).is_some(), "{yes}");
        }
    }

    #[test]
    fn versions_of_libraries() {
        let text = "NCCL version %s\0NCCL version 2.21.5+cuda12.4\0NCCL version 2.0.0\0";
        assert_eq!(said("libnccl.so.2", text).says_version.as_deref(), Some("2.21.5+cuda12.4"));
        assert_eq!(said("libnvshmem_host.so.3", "NVSHMEM v3.7.2\0").says_version.as_deref(), Some("3.7.2"));
    }

    #[test]
    fn loaders_say_where_they_search() {
        let dirs = |text: &str| said("ld-linux-x86-64.so.2", text).elf.unwrap().system_dirs;
        let debian = "x/lib\0/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0/lib/\0/usr/lib/\0\0/etc/\0";
        assert_eq!(dirs(debian), ["/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/lib/", "/usr/lib/"]);
        assert_eq!(dirs("\0libc.so.6\0/lib64/\0/usr/lib64/\0/lib64/ld-linux.so\0"), ["/lib64/", "/usr/lib64/"]);
        assert_eq!(dirs("\0/lib64/"), Vec::<String>::new(), "cut off");
    }
}
