//! Names of GPU vendors' libraries, and of the functions that they give.

/// What follows `lib` in the names of NVIDIA's libraries that begin with `cu`; many others' do as well (libcurl,
/// libcups, libcunit, RAPIDS' libcudf).
const CU: [&[u8]; 26] = [
    b"cuda",
    b"cudadebugger",
    b"cudart",
    b"cublas",
    b"cublasmp",
    b"cudecomp",
    b"cudensitymat",
    b"cudla",
    b"cudnn",
    b"cudss",
    b"cufft",
    b"cufftw",
    b"cufile",
    b"cuinj64",
    b"cuobjclient",
    b"cupauliprop",
    b"cupti",
    b"curand",
    b"cusolver",
    b"cusparse",
    b"custabilizer",
    b"custatevec",
    b"cutensor",
    b"cutensornet",
    b"cufftdx",
    b"cublasdx",
];

/// Others' libraries that begin with `nv`: NVMe, ZFS, persistent memory, a texture compressor of many distributions.
const NOT_NV: [&[u8]; 4] = [b"nvme", b"nvpair", b"nvdimm", b"nvtt"];

/// NVIDIA Performance Primitives: libnppc, libnppial, libnpps.
const NPP: [&[u8]; 3] = [b"nppc", b"nppi", b"npps"];

/// What follows `lib` in the names of AMD's libraries.
const AMD: [&[u8]; 34] = [
    b"amd_comgr",
    b"amd_smi",
    b"amdhip64",
    b"aotriton_v2",
    b"hipblas",
    b"hipblaslt",
    b"hipdnn_backend",
    b"hipfft",
    b"hipfftw",
    b"hiprand",
    b"hiprtc",
    b"hipsolver",
    b"hipsparse",
    b"hipsparselt",
    b"hiptensor",
    b"hsa-runtime64",
    b"hsakmt",
    b"migraphx",
    b"MIOpen",
    b"rccl",
    b"rocalution",
    b"rocblas",
    b"rocfft",
    b"rocm-core",
    b"rocm_smi64",
    b"rocprofiler-register",
    b"rocprofiler-sdk",
    b"rocprofiler64",
    b"rocrand",
    b"rocsolver",
    b"rocsparse",
    b"roctracer64",
    b"roctx64",
    b"rocshmem",
];

/// What follows `lib` in the names of Intel's; libOpenCL is anybody's.
const INTEL: [&[u8]; 15] = [
    b"igc",
    b"igdfcl",
    b"igdgmm",
    b"igdrcl",
    b"mkl_sycl",
    b"onemkl_sycl",
    b"pi_level_zero",
    b"pi_opencl",
    b"pi_unified_runtime",
    b"sycl",
    b"ur_adapter_level_zero",
    b"ur_adapter_opencl",
    b"ur_loader",
    b"ze_intel_gpu",
    b"ze_loader",
];

/// Those of AMD's whose functions carry versions: others are bound to a library by version, or to none.
const VERSIONED: [&[u8]; 4] = [b"amd_comgr", b"amdhip64", b"hiprtc", b"hsa-runtime64"];

/// What functions of NVIDIA's libraries begin with, before a capital letter: `cudaMalloc`, `cuInit`, `nppiAdd`.
const CALLS: [&[u8]; 31] = [
    b"cu",
    b"cuda",
    b"__cuda",
    b"cublas",
    b"cublasmp",
    b"cudnn",
    b"cudss",
    b"cufft",
    b"cupti",
    b"curand",
    b"cusolver",
    b"cusparse",
    b"custatevec",
    b"cutensor",
    b"cutensornet",
    b"cuvid",
    b"nccl",
    b"pnccl",
    b"npp",
    b"nppi",
    b"npps",
    b"nvFatbin",
    b"nvJitLink",
    b"__nvJitLink",
    b"nvcomp",
    b"nvjpeg",
    b"nvml",
    b"nvrtc",
    b"nvvm",
    b"nvPTXCompiler",
    b"NvEncode",
];

/// Functions that do not follow the pattern: NVSHMEM's, the profiler's host library, TensorRT's entry points.
const CALLS_BY_PREFIX: [&[u8]; 5] = [b"nvshmem_", b"nvshmemx_", b"nvshmemi_", b"NVPW_", b"createInfer"];

/// Longest name of a library that is believed.
const MAX_NAME: usize = 128;

/// Whether a file name or SONAME is that of a GPU vendor's library, also as wheels rename it:
/// `libcudart-9335f6a2.so.12`, `libnvrtc.alt.so.12`.
pub fn is_library(name: &[u8]) -> bool {
    let Some((stem, _)) = stem(name) else { return false };
    let family = |family: &&[u8]| continues(stem, family);
    is_nvidia_s(stem) || AMD.iter().any(family) || INTEL.iter().any(family)
}

/// Whether what a library of that name gives is asked for by name: functions of NVIDIA's ([`is_call`]), and those of
/// AMD's that carry versions. Intel's are C++, or are looked up when the program runs.
pub fn gives_calls(name: &[u8]) -> bool {
    let Some((stem, _)) = stem(name) else { return false };
    is_nvidia_s(stem) || VERSIONED.iter().any(|family| continues(stem, family))
}

fn is_nvidia_s(stem: &[u8]) -> bool {
    let family = |family: &&[u8]| continues(stem, family);
    if stem.starts_with(b"nv") {
        return stem.len() > 2 && !NOT_NV.iter().any(family);
    }
    // libcuda_utils.so and libcuda_kernels.so are anybody's.
    let cu = |family: &&[u8]| continues(stem, family) && !(*family == b"cuda" && stem.get(4) == Some(&b'_'));
    CU.iter().any(cu) || continues(stem, b"nccl") || NPP.iter().any(|p| stem.starts_with(p))
}

/// Whether a string is the name by which a GPU vendor's library is opened: `libcudnn.so.9`.
pub fn is_opened(text: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'+' | b'-');
    text.len() <= MAX_NAME
        && is_library(text)
        && stem(text).is_some_and(|(stem, version)| {
            let numbers = version.iter().all(|b| b.is_ascii_digit() || *b == b'.');
            stem.iter().all(plain) && numbers && version.last() != Some(&b'.')
        })
}

/// Whether an undefined symbol that is bound to no library by version is one of a GPU vendor's functions.
pub fn is_call(symbol: &[u8]) -> bool {
    // Most symbols of a C++ library begin otherwise.
    if !matches!(symbol.first(), Some(b'c' | b'n' | b'p' | b'N' | b'_')) || symbol.starts_with(b"_Z") {
        return false;
    }
    CALLS.iter().any(|p| symbol.starts_with(p) && symbol.get(p.len()).is_some_and(u8::is_ascii_uppercase))
        || CALLS_BY_PREFIX.iter().any(|p| symbol.starts_with(p))
}

/// The parts of `libSTEM.soVERSION`.
fn stem(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = name.strip_prefix(b"lib")?;
    let end = memchr::memmem::find(rest, b".so")?;
    let version = &rest[end + 3..];
    matches!(version.first(), None | Some(b'.')).then_some((&rest[..end], version))
}

/// Whether a name is of a family: `cublasLt`, `cudnn_ops`, `nccl-net` are, `cudf` is not of `cud`.
fn continues(stem: &[u8], family: &[u8]) -> bool {
    stem.strip_prefix(family)
        .is_some_and(|rest| !rest.first().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries() {
        for yes in [
            "libcuda.so.1",
            "libcudart.so.12",
            "libcudart-9335f6a2.so.12",
            "libcublasLt.so.13",
            "libcudnn_engines_precompiled.so.9",
            "libcudnn.so",
            "libnccl.so.2",
            "libnccl-net.so",
            "libnvrtc.alt.so.12",
            "libnvrtc-builtins.so.12.4",
            "libnvinfer_plugin.so.10",
            "libnvidia-ml.so.1",
            "libnvmedia.so",
            "libnppial.so.12",
            "libcusparseLt.so.0",
            "libamdhip64.so.6",
            "librocblas-9ce4e1a1.so.4",
            "libhipblaslt.so.0",
            "libMIOpen.so.1",
            "libMIOpenCKGroupedConv_gfx942.so.1",
            "libhsa-runtime64.so.1",
            "libroctx64.so.4",
            "librocprofiler-sdk-roctx.so.1",
            "libsycl.so.8",
            "libsycl-preview.so.8",
            "libur_adapter_level_zero_v2.so.0",
            "libze_intel_gpu.so.1",
            "libmkl_sycl_blas.so.5",
        ] {
            assert!(is_library(yes.as_bytes()), "{yes}");
        }
        for no in [
            "libcurl.so.4",
            "libcups.so.2",
            "libcunit.so.1",
            "libcudf.so",
            "libcuda_utils.so",
            "libnvme.so.1",
            "libnvme-mi.so.1",
            "libnvpair.so.3",
            "libncclx.so",
            "libcublas_static.a",
            "libcaffe2_nvrtc.so",
            "cudart.so",
            "libcudart.sofa",
            "libnv.so",
            "libhippy.so",
            "libhip.so",
            "librocksdb.so.8",
            "librocm.so",
            "libsyclblas.so",
            "libmiopen.so",
            "libzen.so",
            "libze.so",
            "libigcx.so",
            "libOpenCL.so.1",
            "libmkl_core.so.2",
            "libamd.so.3",
        ] {
            assert!(!is_library(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn calls_are_of_few() {
        for (name, gives) in [
            ("libcudart.so.12", true),
            ("libamdhip64.so.6", true),
            ("libamdhip64-1a2b.so.6", true),
            ("libhsa-runtime64.so.1", true),
            ("librocblas.so.4", false),
            ("libsycl.so.8", false),
            ("libc.so.6", false),
        ] {
            assert_eq!(gives_calls(name.as_bytes()), gives, "{name}");
        }
    }

    #[test]
    fn opened_names_are_whole() {
        assert!(is_opened(b"libcudnn_ops_infer.so.8"));
        assert!(is_opened(b"libnvidia-encode.so.1"));
        assert!(!is_opened(b"libcudnn_%s.so.8"));
        assert!(!is_opened(b"libcudart.so.%d") && !is_opened(b"libcudart.so."));
        assert!(!is_opened(b"libcublas.so.12 was not found"));
        assert!(!is_opened(b"libnvrtc.alt.so.12"), "no program opens it by that name");
    }

    #[test]
    fn calls() {
        for yes in ["cuInit", "cudaMalloc", "__cudaRegisterFatBinary", "cublasLtMatmul", "nvrtcVersion"] {
            assert!(is_call(yes.as_bytes()), "{yes}");
        }
        for yes in ["__nvJitLinkCreate_12_4", "nppiAdd_8u_C1RSfs", "nvshmemx_init", "ncclSend", "nvmlInit_v2"] {
            assert!(is_call(yes.as_bytes()), "{yes}");
        }
        for no in ["curl_easy_init", "cuserid", "cudanet", "_ZN2at4cuda4blasEv", "nvme_open", "cu", "cuda_init"] {
            assert!(!is_call(no.as_bytes()), "{no}");
        }
    }
}
