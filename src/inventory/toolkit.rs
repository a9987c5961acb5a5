//! Toolkits of NVIDIA, AMD and Intel, and cuDNN, as their own version files and headers say.

use serde::Deserialize;

use super::lines::{Lines, token};
use super::{Fact, json, oneapi, rocm};
use crate::model::{ImagePath, ToolkitKind};
use crate::stream::Body;

/// Bytes of a `version.json` read at most; the real ones have some kilobytes.
const JSON: u64 = 1 << 20;

/// Lines of a header read at most: `CUDA_VERSION` stands within the first thousand of `cuda.h`.
const LINES: usize = 10_000;

/// Which file of a toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// `cuda-12.8/version.json`.
    Json,
    /// `cuda-11.0/version.txt`.
    Text,
    /// `include/cuda.h`.
    Header,
    /// `include/cudnn_version.h`.
    Cudnn,
    /// `rocm-6.4.1/.info/version`.
    RocmInfo,
    /// `include/rocm-core/rocm_version.h`.
    RocmHeader,
    /// `oneapi/compiler/2025.1/env/vars.sh`.
    Oneapi,
}

/// Whether a path is one of these files.
pub fn wants(path: &[u8]) -> Option<Source> {
    let mut parts = path.rsplit(|&b| b == b'/');
    let (name, parent) = (parts.next()?, parts.next()?);
    match name {
        b"version.json" if is_cuda(parent) => Some(Source::Json),
        b"version.txt" if is_cuda(parent) => Some(Source::Text),
        b"cuda.h" if parent == b"include" && is_only_include(path) => Some(Source::Header),
        _ if is_cudnn(name)
            && (parent == b"include" || parent.ends_with(b"-linux-gnu"))
            && is_only_include(path) =>
        {
            Some(Source::Cudnn)
        }
        b"version" if parent == b".info" => rocm::is_root(parts.next()?, parts.next()).then_some(Source::RocmInfo),
        b"rocm_version.h" if parent == b"rocm-core" && is_only_include(path) => Some(Source::RocmHeader),
        b"vars.sh" if parent == b"env" => oneapi::release(path).map(|_| Source::Oneapi),
        _ => None,
    }
}

fn is_cuda(folder: &[u8]) -> bool {
    folder.len() >= 4 && folder[..4].eq_ignore_ascii_case(b"cuda")
}

/// Debian's package has the name without a number as an alternative.
fn is_cudnn(name: &[u8]) -> bool {
    name == b"cudnn_version.h" || (name.starts_with(b"cudnn_version_v") && name.ends_with(b".h"))
}

/// Headers inside another project's include directory are copies.
fn is_only_include(path: &[u8]) -> bool {
    path.split(|&b| b == b'/').filter(|p| *p == b"include").count() == 1
}

/// The directory that a toolkit's file speaks for: `usr/local/cuda-12.8` of
/// `usr/local/cuda-12.8/targets/x86_64-linux/include/cuda.h`. `None` where a header is just a copy that some project
/// brings along.
pub fn root_of(path: &ImagePath, is_prefix: impl Fn(&ImagePath) -> bool) -> Option<ImagePath> {
    let dir = path.parent();
    // AMD's and Intel's files lie one folder deeper, AMD's header two.
    match dir.file_name() {
        b".info" | b"env" => return Some(dir.parent()),
        b"rocm-core" => return Some(dir.parent().parent()),
        _ => {}
    }
    if dir.file_name() != b"include" {
        return Some(dir);
    }
    let root = dir.parent();
    if root.parent().file_name() == b"targets" {
        return Some(root.parent().parent());
    }
    // In wheels: nvidia/cuda_runtime, nvidia/cu13.
    let wheel = root.parent().file_name() == b"nvidia" && root.file_name().starts_with(b"cu");
    let known = is_cuda(root.file_name()) || wheel || matches!(root.as_bytes(), b"usr" | b"usr/local");
    (known || is_prefix(&root)).then_some(root)
}

#[derive(Deserialize)]
struct VersionJson {
    cuda: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    version: String,
}

/// What a toolkit's file says; nothing where the file is another's.
pub fn read(source: Source, path: &ImagePath, body: &mut dyn Body) -> Result<Option<Fact>, String> {
    let kind = match source {
        Source::Json | Source::Text | Source::Header | Source::Cudnn => ToolkitKind::Cuda,
        Source::RocmInfo | Source::RocmHeader => ToolkitKind::Rocm,
        Source::Oneapi => ToolkitKind::Oneapi,
    };
    let version = match source {
        Source::Json => {
            let read: VersionJson = json::read(body, JSON)?;
            read.cuda.and_then(|cuda| token(cuda.version.as_bytes()))
        }
        Source::Text => {
            let mut lines = Lines::new(body);
            let line = lines.next().map_err(|e| e.to_string())?;
            line.and_then(|l| l.strip_prefix(b"CUDA Version ")).and_then(token)
        }
        Source::Header => {
            let [version] = defined(body, [b"CUDA_VERSION"])?;
            // 12080
            version.filter(|v| (1_000..1_000_000).contains(v)).map(|v| format!("{}.{}", v / 1000, v % 1000 / 10))
        }
        Source::Cudnn => {
            let [major, minor, patch] = defined(body, [b"CUDNN_MAJOR", b"CUDNN_MINOR", b"CUDNN_PATCHLEVEL"])?;
            let version = major.map(|m| format!("{m}.{}.{}", minor.unwrap_or(0), patch.unwrap_or(0)));
            return Ok(version.map(|version| Fact::Cudnn { version }));
        }
        Source::RocmInfo => {
            let line = Lines::new(body).next().map_err(|e| e.to_string())?.and_then(token);
            line.as_deref().and_then(rocm::release)
        }
        Source::RocmHeader => {
            let names: [&[u8]; 3] = [b"ROCM_VERSION_MAJOR", b"ROCM_VERSION_MINOR", b"ROCM_VERSION_PATCH"];
            let [major, minor, patch] = defined(body, names)?;
            major.zip(minor).map(|(major, minor)| format!("{major}.{minor}.{}", patch.unwrap_or(0)))
        }
        // The folder's name says it.
        Source::Oneapi => oneapi::release(path.as_bytes()).map(str::to_owned),
    };
    Ok(version.map(|version| Fact::Toolkit { kind, version }))
}

/// The rank of a package's record.
pub const RECORD: u8 = 2;

/// The lower, the more the file knows: a header drops the patch level.
pub fn rank(said_by: &ImagePath) -> u8 {
    match said_by.file_name() {
        b"version.json" | b"version" | b"vars.sh" => 0,
        b"version.txt" => 1,
        _ => RECORD + 1,
    }
}

/// The numbers that a header gives to names.
fn defined<const N: usize>(body: &mut dyn Body, names: [&[u8]; N]) -> Result<[Option<u32>; N], String> {
    let mut lines = Lines::new(body);
    let mut out = [None; N];
    for _ in 0..LINES {
        if out.iter().all(Option::is_some) {
            break;
        }
        let Some(line) = lines.next().map_err(|e| e.to_string())? else { break };
        let Some(rest) = line.trim_ascii_start().strip_prefix(b"#define") else { continue };
        let mut words = rest.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let (Some(name), Some(value)) = (words.next(), words.next()) else { continue };
        if let Some(at) = names.iter().position(|n| *n == name) {
            out[at] = out[at].or_else(|| std::str::from_utf8(value).ok()?.parse().ok());
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Plain, Stream};

    fn told(path: &str, text: &str) -> Option<String> {
        let source = wants(path.as_bytes())?;
        match read(source, &ImagePath::new(path), &mut Stream::new(Plain(text.as_bytes()), None)).unwrap()? {
            Fact::Toolkit { version, .. } => {
                let root = root_of(&ImagePath::new(path), |p| p.as_bytes() == b"opt/conda")?;
                Some(format!("{root} {version}"))
            }
            Fact::Cudnn { version } => Some(format!("cudnn {version}")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn toolkits_name_themselves() {
        let json = r#"{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}, "cuda_nvcc": {"version": "12.8.93"}}"#;
        assert_eq!(told("usr/local/cuda-12.8/version.json", json).as_deref(), Some("usr/local/cuda-12.8 12.8.1"));
        assert_eq!(told("opt/cuda/version.txt", "CUDA Version 11.0.228\n").as_deref(), Some("opt/cuda 11.0.228"));
        assert_eq!(told("opt/cuda/version.json", r#"{"name": "other"}"#), None);
        assert_eq!(told("opt/cudatool/version.txt", "1.0\n"), None);
        assert_eq!(told("app/version.json", json), None);
        assert!(
            read(Source::Json, &ImagePath::new("x"), &mut Stream::new(Plain(&b"{\"cuda\""[..]), None)).is_err()
        );
    }

    #[test]
    fn headers_tell_of_toolkits_and_not_of_copies() {
        let header = "/*\n * x\n */\n#ifndef X\n#define __CUDA_API_VERSION 1\n#define CUDA_VERSION 12090\n";
        for (path, expected) in [
            ("usr/local/cuda-12.9/targets/x86_64-linux/include/cuda.h", Some("usr/local/cuda-12.9 12.9")),
            ("usr/local/cuda-12.9/include/cuda.h", Some("usr/local/cuda-12.9 12.9")),
            (
                "v/lib/python3.11/site-packages/nvidia/cu13/include/cuda.h",
                Some("v/lib/python3.11/site-packages/nvidia/cu13 12.9"),
            ),
            ("nvidia/cuda_runtime/include/cuda.h", Some("nvidia/cuda_runtime 12.9")),
            ("usr/include/cuda.h", Some("usr 12.9")),
            ("opt/conda/include/cuda.h", Some("opt/conda 12.9")),
            ("opt/conda/targets/x86_64-linux/include/cuda.h", Some("opt/conda 12.9")),
            ("s/triton/backends/nvidia/include/cuda.h", None),
            ("s/tensorflow/include/external/cuda_cudart/include/cuda.h", None),
            ("s/torch/include/torch/csrc/inductor/cpp_wrapper/cuda.h", None),
        ] {
            assert_eq!(told(path, header).as_deref(), expected, "{path}");
        }
        // cuDNN 9.28.0, from its wheel.
        let cudnn = "#ifndef CUDNN_VERSION_H_\n#define CUDNN_VERSION_H_\n\n#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 28\n\
                     #define CUDNN_PATCHLEVEL 0\n\n#define CUDNN_VERSION (CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100)\n";
        for path in ["nvidia/cudnn/include/cudnn_version.h", "usr/include/x86_64-linux-gnu/cudnn_version_v9.h"] {
            assert_eq!(told(path, cudnn).as_deref(), Some("cudnn 9.28.0"));
        }
        assert_eq!(told("usr/include/cuda.h", "#define CUDA_VERSION\n"), None);
        assert_eq!(told("usr/include/cuda.h", "#define CUDA_VERSION 99999999999\n"), None);
    }

    #[test]
    fn amd_s_and_intel_s_name_themselves() {
        let header =
            "#define ROCM_VERSION_MAJOR   7\n#define ROCM_VERSION_MINOR   0\n#define ROCM_VERSION_PATCH   2\n";
        for (path, text, expected) in [
            ("opt/rocm-6.4.1/.info/version", "6.4.1-83\n", Some("opt/rocm-6.4.1 6.4.1")),
            ("opt/rocm/core-7.14/.info/version", "7.14.0\n", Some("opt/rocm/core-7.14 7.14.0")),
            ("s/_rocm_sdk_core/.info/version", "7.13.0a20260313", Some("s/_rocm_sdk_core 7.13.0a20260313")),
            ("opt/rocm-6.4.1/.info/version", "\u{1b}[31m", None),
            ("opt/other/.info/version", "6.4.1", None),
            ("opt/rocm-7.0.2/include/rocm-core/rocm_version.h", header, Some("opt/rocm-7.0.2 7.0.2")),
            ("usr/include/rocm-core/rocm_version.h", header, Some("usr 7.0.2")),
            ("s/torch/include/x/include/rocm-core/rocm_version.h", header, None),
            (
                "opt/intel/oneapi/compiler/2025.1/env/vars.sh",
                "#!/bin/sh\n",
                Some("opt/intel/oneapi/compiler/2025.1 2025.1"),
            ),
            ("opt/intel/oneapi/mkl/2025.1/env/vars.sh", "#!/bin/sh\n", None),
        ] {
            assert_eq!(told(path, text).as_deref(), expected, "{path}");
        }
    }
}
