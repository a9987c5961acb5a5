//! What to call files that no package lists: after the nearest folder whose name says something.

use super::names::{is_generic, stem, text};
use crate::model::ImagePath;

/// A name and the folder it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub name: String,
    pub root: ImagePath,
}

/// Folders of vendors, under which the products have theirs.
const VENDORS: &[&[u8]] = &[b"amd", b"intel", b"nvidia"];

/// Whether a directory is where Python looks for packages.
pub fn is_site(dir: &ImagePath) -> bool {
    matches!(dir.file_name(), b"site-packages" | b"dist-packages")
}

/// The top of a file within a site directory, by which its package is told; `rel` counts from the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    /// The name it gets when nothing better is known.
    pub name: String,
    /// A file directly in the site: an extension module of its own.
    pub module: bool,
}

pub fn top(rel: &[&[u8]]) -> Option<Top> {
    let folder = |name: String| Some(Top { name, module: false });
    match rel {
        [] => None,
        [file] => Some(Top { name: stem(file), module: true }),
        // The layout of a wheel that was not installed: NAME-VERSION.data/platlib/…
        [data, b"purelib" | b"platlib", rest @ ..] if data.ends_with(b".data") => top(rest),
        [b"nvidia", library, _, ..] => folder(format!("nvidia-{}", text(library).replace('_', "-"))),
        [first, ..] => {
            // auditwheel puts a wheel's own libraries into NAME.libs.
            if let Some(name) = first.strip_suffix(b".libs").filter(|n| !n.is_empty()) {
                folder(text(name))
            } else if first.ends_with(b".data") || first.ends_with(b".egg") {
                folder(text(first.split(|&b| b == b'-').next().unwrap_or_default()))
            } else {
                folder(text(first))
            }
        }
    }
}

/// A file outside every site directory.
pub fn outside(path: &ImagePath) -> Place {
    let parts: Vec<&[u8]> = path.components().collect();
    let Some((file, dirs)) = parts.split_last() else {
        return Place { name: String::new(), root: ImagePath::default() };
    };
    let own = || Place { name: stem(file), root: path.parent() };
    let named = |at: usize| Place { name: text(dirs[at]), root: ImagePath::new(dirs[..=at].join(&b'/')) };
    // In system directories the first folder that says something holds one product; elsewhere the last.
    let start = match dirs {
        [] => return own(),
        [b"usr", b"local", ..] | [b"opt", b"conda" | b"miniconda3" | b"miniforge3", ..] => 2,
        [b"usr" | b"opt" | b"var", ..] => 1,
        [b"lib" | b"lib32" | b"lib64" | b"bin" | b"sbin" | b"etc", ..] => 0,
        _ => {
            let says = |d: &[u8]| !is_generic(d) && !d.starts_with(b"python3");
            return dirs.iter().rposition(|d| says(d)).map_or_else(own, named);
        }
    };
    let first = (start..dirs.len()).find(|&at| !is_generic(dirs[at]));
    match first {
        Some(at) => match dirs.get(at + 1) {
            Some(product) if VENDORS.contains(&dirs[at]) && !is_generic(product) => named(at + 1),
            _ => named(at),
        },
        None => own(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_files_outside_sites() {
        for (path, name, root) in [
            ("opt/foo/lib/libx.so", "foo", "opt/foo"),
            ("opt/rocm-6.2/lib/libamdhip64.so.6", "rocm-6.2", "opt/rocm-6.2"),
            ("opt/nvidia/nsight-compute/2024.1/x.so", "nsight-compute", "opt/nvidia/nsight-compute"),
            ("opt/conda/lib/libcublas.so.12", "libcublas", "opt/conda/lib"),
            ("opt/libx.so.1", "libx", "opt"),
            (
                "usr/local/cuda-12.4/targets/x86_64-linux/lib/libcublas.so.12.4.5.8",
                "cuda-12.4",
                "usr/local/cuda-12.4",
            ),
            ("usr/local/lib/libX.so", "libX", "usr/local/lib"),
            ("usr/local/lib/ollama/cuda_v12/libggml-cuda.so", "ollama", "usr/local/lib/ollama"),
            ("usr/local/nvidia/lib64/libcuda.so.1", "nvidia", "usr/local/nvidia"),
            ("usr/lib/x86_64-linux-gnu/libX.so.1.2", "libX", "usr/lib/x86_64-linux-gnu"),
            ("lib/x86_64-linux-gnu/libX.so.1.2", "libX", "lib/x86_64-linux-gnu"),
            (
                "usr/lib/x86_64-linux-gnu/gstreamer-1.0/libgstnv.so",
                "gstreamer-1.0",
                "usr/lib/x86_64-linux-gnu/gstreamer-1.0",
            ),
            ("usr/bin/tool", "tool", "usr/bin"),
            ("app/x/_C.so", "x", "app/x"),
            ("app/_C.so", "app", "app"),
            (
                "app/build/lib.linux-x86_64-cpython-311/foo/_C.so",
                "foo",
                "app/build/lib.linux-x86_64-cpython-311/foo",
            ),
            ("workspace/llama.cpp/build/bin/libggml-cuda.so", "llama.cpp", "workspace/llama.cpp"),
            ("venv/lib/python3.11/x.so", "venv", "venv"),
            ("build/x.so", "x", "build"),
            ("kernels.cubin", "kernels", ""),
        ] {
            let place = Place { name: name.to_owned(), root: ImagePath::new(root) };
            assert_eq!(outside(&ImagePath::new(path)), place, "{path}");
        }
    }

    #[test]
    fn tops_name_files_in_sites() {
        for (path, name, module) in [
            ("torch/lib/libtorch_cuda.so", "torch", false),
            ("flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", "flash_attn_2_cuda", true),
            ("ctranslate2.libs/libfoo-abc.so", "ctranslate2", false),
            ("nvidia/cuda_runtime/lib/libcudart.so.12", "nvidia-cuda-runtime", false),
            ("nvidia/x.so", "nvidia", false),
            ("foo-1.0.data/platlib/foo/_C.so", "foo", false),
            ("foo-1.0.data/scripts/foo", "foo", false),
            ("foo-1.0-py3.9-linux-x86_64.egg/foo/_C.so", "foo", false),
            (".libs/x.so", ".libs", false),
        ] {
            let path = ImagePath::new(path);
            let rel: Vec<&[u8]> = path.components().collect();
            assert_eq!(top(&rel), Some(Top { name: name.to_owned(), module }), "{path}");
        }
    }
}
