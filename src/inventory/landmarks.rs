//! Programs and headers that run-time compilers look for: Triton and torch.compile call a C compiler, extensions
//! that are built on first use call nvcc and ninja, and their code includes CUDA's headers. And the files by which
//! OpenCL's loader finds drivers.

use crate::model::ImagePath;

/// Landmarks kept at most.
pub const LIMIT: usize = 10_000;

const PROGRAMS: [&[u8]; 12] = [
    b"cc",
    b"gcc",
    b"g++",
    b"c++",
    b"clang",
    b"clang++",
    b"nvcc",
    b"ninja",
    b"ninja-build",
    b"cmake",
    b"make",
    b"ptxas",
];

/// Programs that go by a version too: `gcc-12`.
const NUMBERED: [&[u8]; 4] = [b"gcc-", b"g++-", b"clang-", b"clang++-"];

const HEADERS: [&[u8]; 8] = [
    b"cublas_v2.h",
    b"cuda.h",
    b"cuda_runtime.h",
    b"cudnn.h",
    b"curand.h",
    b"curand_kernel.h",
    b"nccl.h",
    b"nvrtc.h",
];

/// Whether a path is one, should it lead to a file. Headers count where a compiler finds them by their bare name: in
/// a directory `include` (but not of copies inside another project's), also by machine as Debian has it; Python's in
/// `include/python3.11`.
pub fn is_landmark(path: &ImagePath) -> bool {
    let mut parts = path.components().rev();
    let (Some(name), Some(parent)) = (parts.next(), parts.next()) else { return false };
    match parent {
        b"vendors" if parts.next() == Some(b"OpenCL") => name.ends_with(b".icd"),
        b"bin" | b"sbin" => PROGRAMS.contains(&name) || is_numbered(name),
        _ if path.components().filter(|p| *p == b"include").count() > 1 => false,
        b"include" => HEADERS.contains(&name),
        _ if parts.next() != Some(b"include") => false,
        _ if parent.starts_with(b"python") => name == b"Python.h",
        _ => parent.ends_with(b"-linux-gnu") && HEADERS.contains(&name),
    }
}

fn is_numbered(name: &[u8]) -> bool {
    let number = NUMBERED.iter().find_map(|p| name.strip_prefix(*p));
    number.is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_and_headers_are_landmarks() {
        for path in [
            "usr/bin/cc",
            "usr/bin/gcc-12",
            "usr/local/cuda-12.8/bin/nvcc",
            "v/lib/python3.11/site-packages/nvidia/cu13/bin/ptxas",
            "opt/conda/bin/ninja",
            "usr/local/cuda-12.8/targets/x86_64-linux/include/curand_kernel.h",
            "usr/include/x86_64-linux-gnu/cudnn.h",
            "usr/include/python3.11/Python.h",
            "etc/OpenCL/vendors/intel.icd",
        ] {
            assert!(is_landmark(&ImagePath::new(path)), "{path}");
        }
        for path in [
            "cc",
            "usr/lib/cc",
            "usr/bin/gcc-ar-12",
            "usr/bin/gcc-",
            "s/torch/include/torch/csrc/inductor/cpp_wrapper/cuda.h",
            "usr/include/Python.h",
            "etc/vendors/intel.icd",
            "usr/include/linux/cuda.h",
            "s/tensorflow/include/third_party/gpus/cuda/include/cuda.h",
            "",
        ] {
            assert!(!is_landmark(&ImagePath::new(path)), "{path}");
        }
    }
}
