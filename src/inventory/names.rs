//! Names of components: comparing them, and making them from file and folder names.

use crate::model::ImagePath;

/// Import names whose distribution is called otherwise, for metadata without a RECORD.
const DISTRIBUTIONS: &[(&str, &str)] = &[
    ("cupy_backends", "cupy"),
    ("cv2", "opencv"),
    ("functorch", "torch"),
    ("paddle", "paddlepaddle"),
    ("pil", "pillow"),
    ("sklearn", "scikit-learn"),
    ("tensorrt_bindings", "tensorrt-cu12-bindings"),
    ("tensorrt_libs", "tensorrt-cu12-libs"),
    ("torchgen", "torch"),
    ("triton", "pytorch-triton"),
    ("warp", "warp-lang"),
];

/// Words that distinguish builds of one distribution: `faiss-gpu-cu12`, `opencv-python-headless`.
const VARIANTS: &[&str] = &["bin", "contrib", "cpu", "cuda", "gpu", "headless", "nightly", "python", "rocm", "xpu"];

pub use crate::model::package_name as normalise;

/// Whether two names mean the same component: `flash_attn`, `flash-attn`, `Flash.Attn`.
pub fn same_component(a: &str, b: &str) -> bool {
    normalise(a) == normalise(b)
}

/// Whether a distribution is the one that installs the import name: the same name, a known other one, or a
/// variant (`onnxruntime-gpu` installs `onnxruntime`).
pub fn installs(distribution: &str, import: &str) -> bool {
    let (distribution, folded) = (normalise(distribution), normalise(import));
    let other = DISTRIBUTIONS.iter().find(|(i, _)| i.eq_ignore_ascii_case(import)).map(|(_, d)| *d);
    [Some(folded.as_str()), other].into_iter().flatten().any(|name| match distribution.strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('-').is_some_and(|words| words.split('-').all(is_variant)),
        None => false,
    })
}

fn is_variant(word: &str) -> bool {
    let numbered = ["cuda", "cu", "rocm"].iter().find_map(|p| word.strip_prefix(p)).is_some_and(|rest| {
        let digits = rest.strip_suffix('x').unwrap_or(rest);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    });
    numbered || VARIANTS.contains(&word)
}

/// The numbers in a version, to order versions loosely.
pub fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter(|p| !p.is_empty()).map(|p| p.parse().unwrap_or(u64::MAX)).collect()
}

/// A path component as text that is safe to print.
pub fn text(component: &[u8]) -> String {
    ImagePath::new(component).to_string()
}

/// The name of a file without what says only how it was built: `libx.so.1.2` is `libx`, `_C.abi3.so` is `_C`.
pub fn stem(file: &[u8]) -> String {
    let name = text(file);
    let mut cut = name.as_str();
    let library = cut.match_indices(".so").find(|(at, _)| {
        let rest = &cut[at + 3..];
        rest.is_empty() || rest.starts_with('.')
    });
    if let Some((at, _)) = library {
        cut = &cut[..at];
        for tag in [".cpython-", ".abi3", ".cp3", ".pypy"] {
            cut = cut.find(tag).map_or(cut, |at| &cut[..at]);
        }
    } else if let Some((head, extension)) = cut.rsplit_once('.')
        && matches!(extension, "a" | "bin" | "cubin" | "fatbin" | "hsaco" | "jar" | "o" | "ptx" | "whl" | "zip")
    {
        cut = head;
    }
    if cut.is_empty() { name } else { cut.to_owned() }
}

/// Whether a folder's name says nothing about what it holds.
pub fn is_generic(folder: &[u8]) -> bool {
    const GENERIC: &[&[u8]] = &[
        b".libs",
        b"_build",
        b"aarch64",
        b"amd64",
        b"arm64",
        b"bin",
        b"build",
        b"csrc",
        b"debug",
        b"deps",
        b"dist",
        b"etc",
        b"ext",
        b"include",
        b"lib",
        b"lib32",
        b"lib64",
        b"libexec",
        b"libs",
        b"libx32",
        b"minsizerel",
        b"native",
        b"out",
        b"plugins",
        b"release",
        b"relwithdebinfo",
        b"sbin",
        b"share",
        b"source",
        b"src",
        b"stubs",
        b"target",
        b"targets",
        b"x86_64",
    ];
    let folded = folder.to_ascii_lowercase();
    GENERIC.contains(&folded.as_slice())
        || folded.ends_with(b"-linux-gnu")
        || folded.ends_with(b"-linux")
        || [&b"lib.linux-"[..], b"temp.linux-", b"bdist.linux-", b"cmake-build-", b"cpython-"]
            .iter()
            .any(|prefix| folded.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_as_pip_compares_them() {
        assert!(same_component("flash_attn", "Flash-Attn"));
        assert!(same_component("a.b", "a--b"));
        assert!(!same_component("torch", "torchvision"));
        assert_eq!(normalise("Zope.Interface"), "zope-interface");
    }

    #[test]
    fn distributions_install_import_names() {
        for (distribution, import) in [
            ("torch", "torch"),
            ("flash_attn", "flash_attn"),
            ("onnxruntime-gpu", "onnxruntime"),
            ("faiss-gpu-cu12", "faiss"),
            ("cupy-cuda12x", "cupy"),
            ("opencv-python-headless", "cv2"),
            ("llama_cpp_python", "llama_cpp"),
            ("Pillow", "PIL"),
            ("paddlepaddle-gpu", "paddle"),
        ] {
            assert!(installs(distribution, import), "{distribution} {import}");
        }
        assert!(!installs("torch-scatter", "torch"));
        assert!(!installs("torchvision", "torch"));
        assert!(!installs("nvidia-cublas-cu12", "nvidia"));
    }

    #[test]
    fn stems() {
        for (file, expected) in [
            ("libx.so.1.2", "libx"),
            ("libx-2.36.so", "libx-2.36"),
            ("flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", "flash_attn_2_cuda"),
            ("_C.abi3.so", "_C"),
            ("a.sock", "a.sock"),
            ("kernel.cubin", "kernel"),
            ("server", "server"),
            (".so", ".so"),
        ] {
            assert_eq!(stem(file.as_bytes()), expected);
        }
        assert_eq!(stem(b"a\x1b.so"), "a\\x1b");
    }
}
