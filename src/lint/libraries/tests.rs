use super::*;
use crate::lint::lab::{Lab, at};
use crate::lint::roles;
use crate::model::*;

impl Lab {
    fn problems(&self) -> Vec<Problem> {
        let catalog = Catalog::embedded();
        let roles = roles::roles(&self.0, catalog, &[]);
        problems(&self.0, &roles, catalog)
    }

    /// The only problem.
    #[track_caller]
    fn one(&self, rule: &str, verdict: Verdict) -> Problem {
        let mut found = self.problems();
        assert_eq!(found.len(), 1, "{found:#?}");
        let problem = found.remove(0);
        assert_eq!((problem.rule, problem.verdict), (rule, verdict), "{problem:#?}");
        assert!(crate::lint::rules::find(rule).is_some());
        problem
    }

    #[track_caller]
    fn quiet(&self) {
        let found = self.problems();
        assert!(found.is_empty(), "{found:#?}");
    }
}

const TORCH: &str = "SITE/torch/lib/libtorch_cuda.so";

#[test]
fn a_missing_gpu_library_fails_the_core() {
    let mut lab = Lab::new();
    lab.torch();
    lab.quiet();
    lab.misses(TORCH, "libcublas.so.12");
    let problem = lab.one("library-not-found", Verdict::Fail);
    assert!(problem.help.contains("nvidia-cublas-cu12"), "{}", problem.help);
    assert!(problem.message.contains("libcublas.so.12: cannot open shared object file"), "{}", problem.message);
}

#[test]
fn what_the_driver_brings_is_not_missing() {
    let mut lab = Lab::new();
    lab.torch();
    lab.loads(TORCH).needs.push(Need { name: "libcuda.so.1".into(), outcome: Outcome::Driver });
    lab.quiet();
}

#[test]
fn an_optional_package_only_warns_and_a_system_library_of_it_is_a_note() {
    let mut lab = Lab::new();
    lab.library("SITE/ext/ext.so", ("ext", "1"), "ext.so", true);
    lab.torch();
    lab.misses("SITE/ext/ext.so", "libcudart.so.11.0");
    lab.one("library-not-found", Verdict::Warn);
    lab.0.loads.clear();
    lab.misses("SITE/ext/ext.so", "libGL.so.1");
    lab.one("system-library-not-found", Verdict::Ok);
    lab.0.loads.clear();
    lab.misses(TORCH, "libgomp.so.1");
    lab.one("system-library-not-found", Verdict::Fail);
    // Packages alone, without a C library, are no system.
    lab.0.libc = None;
    lab.quiet();
}

#[test]
fn another_major_is_named_and_onnxruntime_goes_on_without_a_gpu() {
    let provider = "SITE/onnxruntime/capi/libonnxruntime_providers_cuda.so";
    let mut lab = Lab::new();
    lab.library("SITE/nvidia/cublas/lib/libcublas.so.12", ("nvidia-cublas-cu12", "12.4"), "libcublas.so.12", false);
    lab.library(provider, ("onnxruntime-gpu", "1.18.1"), "libonnxruntime_providers_cuda.so", true);
    lab.misses(provider, "libcublas.so.11");
    let problem = lab.one("library-of-other-major", Verdict::Cpu);
    assert!(problem.message.contains("libcublas.so.12 instead"), "{}", problem.message);
    assert!(problem.help.contains("1.19 to 1.26"), "{}", problem.help);
    let mut lab = Lab::new();
    lab.library(provider, ("onnxruntime-gpu", "1.18.1"), "libonnxruntime_providers_cuda.so", true);
    lab.library(
        "SITE/onnxruntime/capi/libonnxruntime_providers_tensorrt.so",
        ("onnxruntime-gpu", "1.18.1"),
        "libonnxruntime_providers_tensorrt.so",
        false,
    );
    lab.misses("SITE/onnxruntime/capi/libonnxruntime_providers_tensorrt.so", "libnvinfer.so.10");
    lab.quiet();
}

#[test]
fn opened_libraries_count_like_needed_ones() {
    let mut lab = Lab::new();
    lab.torch();
    let outcome = Outcome::Missing { ldconfig: None, refused: None };
    lab.loads(TORCH).opens.push(Need { name: "libcudnn_graph.so.9".into(), outcome });
    lab.one("opened-library-not-found", Verdict::Fail);
}

#[test]
fn stale_caches_and_files_that_cannot_be_loaded() {
    let mut lab = Lab::new();
    lab.torch();
    let outcome = Outcome::Missing { ldconfig: Some(at("opt/lib/libcublas.so.12")), refused: None };
    lab.loads(TORCH).needs.push(Need { name: "libcublas.so.12".into(), outcome });
    lab.one("ld-cache-stale", Verdict::Warn);
    lab.0.loads.clear();
    let refused = Some((at("usr/lib/libcublas.so.12"), "file too short".to_owned()));
    let outcome = Outcome::Missing { ldconfig: None, refused };
    lab.loads(TORCH).needs.push(Need { name: "libcublas.so.12".into(), outcome });
    let problem = lab.one("library-not-loadable", Verdict::Fail);
    assert!(problem.message.contains("file too short"), "{}", problem.message);
}

#[test]
fn symbols_and_versions_that_the_winner_lacks() {
    let old = "usr/local/cuda-12.1/lib64/libnvJitLink.so.12";
    let mut lab = Lab::new();
    let new = lab.library(
        "SITE/nvidia/nvjitlink/lib/libnvJitLink.so.12",
        ("nvidia-nvjitlink-cu12", "12.9.86"),
        "libnvJitLink.so.12",
        false,
    );
    new.exports = Some(Exports::new([(&b"__nvJitLinkComplete_12_9"[..], Some(&b"libnvJitLink.so.12"[..]))]));
    lab.torch();
    lab.library(old, ("cuda", "12.1"), "libnvJitLink.so.12", false);
    lab.finds(TORCH, "libnvJitLink.so.12", old, Law::LibraryPath);
    lab.loads(TORCH).unmet.push(Unmet {
        library: "libnvJitLink.so.12".into(),
        provider: at(old),
        kind: UnmetKind::Symbol,
        names: vec!["__nvJitLinkComplete_12_9".into()],
        count: 1,
    });
    let problem = lab.one("undefined-symbol", Verdict::Fail);
    assert!(problem.help.contains("drop `/usr/local/cuda-12.1/lib64` from LD_LIBRARY_PATH"), "{}", problem.help);
    let version = |name: &str| Unmet {
        library: "libc.so.6".into(),
        provider: at("lib/libc.so.6"),
        kind: UnmetKind::Version,
        names: vec![name.into()],
        count: 1,
    };
    lab.loads(TORCH).unmet = vec![version("GLIBC_2.34")];
    let problem = lab.one("glibc-too-old", Verdict::Fail);
    assert!(problem.message.contains("the image has glibc 2.31"), "{}", problem.message);
    lab.loads(TORCH).unmet = vec![version("GLIBCXX_3.4.30")];
    lab.one("symbol-version-not-found", Verdict::Fail);
}

#[test]
fn cudnn_of_two_versions_in_one_process() {
    let graph = "SITE/nvidia/cudnn/lib/libcudnn_graph.so.9";
    let base = "usr/lib/libcudnn.so.9.1.0";
    for (version, quiet) in [("9.7.1.26", false), ("9.1.0.70", true)] {
        let mut lab = Lab::new();
        lab.library(graph, ("nvidia-cudnn-cu12", version), "libcudnn_graph.so.9", false);
        lab.torch();
        lab.library(base, ("libcudnn9-cuda-12", "9.1.0.70-1"), "libcudnn.so.9", false);
        lab.finds(TORCH, "libcudnn.so.9", base, Law::Cache);
        let outcome = Outcome::Found { path: at(graph), law: Law::Framework("torch".into()) };
        lab.loads(base).opens.push(Need { name: "libcudnn_graph.so.9".into(), outcome });
        if quiet {
            lab.quiet();
        } else {
            let problem = lab.one("mixed-library-versions", Verdict::Fail);
            assert!(
                problem.message.contains("9.7.1.26") && problem.message.contains("9.1.0"),
                "{}",
                problem.message
            );
        }
    }
}

#[test]
fn the_environment_may_hide_another_version() {
    let wheel = "SITE/nvidia/cublas/lib/libcublas.so.12";
    let toolkit = "usr/local/cuda/lib64/libcublas.so.12.4.5.8";
    for (law, quiet) in [(Law::LibraryPath, false), (Law::Runpath, true)] {
        let mut lab = Lab::new();
        lab.library(wheel, ("nvidia-cublas-cu12", "12.8.4.1"), "libcublas.so.12", false);
        lab.torch();
        lab.library(toolkit, ("libcublas-12-4", "12.4.5.8-1"), "libcublas.so.12", false);
        lab.finds(TORCH, "libcublas.so.12", toolkit, law);
        if quiet {
            lab.quiet();
        } else {
            lab.one("library-shadowed", Verdict::Ok);
        }
    }
}

#[test]
fn cpu_builds_matter_where_a_gpu_is_meant() {
    let mut lab = Lab::new();
    let mut package = Package::new(Manager::Conda, "pytorch", Some("2.5.1".into()));
    package.build = Some("cpu_generic_py311_h1".into());
    package.channel = Some("conda-forge".into());
    lab.0.packages.push(package);
    lab.quiet();
    lab.0.image.config.labels.push(("gpu".into(), "true".into()));
    let problem = lab.one("cpu-build-in-gpu-image", Verdict::Cpu);
    assert!(problem.help.contains("CONDA_OVERRIDE_CUDA"), "{}", problem.help);
    lab.0.packages[0].build = Some("cuda126_generic_py311_h1".into());
    lab.quiet();
    // torch for data only, beside jax with GPU code.
    lab.0.packages[0].build = Some("cpu_mkl".into());
    lab.library("SITE/jax_cuda12_plugin/x.so", ("jax-cuda12-plugin", "0.5"), "x.so", true);
    lab.one("cpu-build-in-gpu-image", Verdict::Ok);
}

#[test]
fn statements_about_cuda_agree_or_not() {
    let claim = |value: &str, by: &str| Claim {
        component: "torch".into(),
        kind: ClaimKind::Cuda,
        value: value.into(),
        said_by: at(by),
    };
    let mut lab = Lab::new();
    lab.torch();
    lab.0.claims =
        vec![claim("12.8", "SITE/torch-2.8.0+cu128.dist-info/METADATA"), claim("12.8", "SITE/torch/version.py")];
    lab.component("nvidia-cudnn-cu12", "9.10");
    lab.quiet();
    lab.component("nvidia-cudnn-cu13", "9.12");
    let problem = lab.one("versions-disagree", Verdict::Warn);
    assert!(problem.message.contains("one over the other"), "{}", problem.message);
    assert!(problem.because.iter().any(|b| b.contains("nvidia-cudnn-cu13")), "{:?}", problem.because);
    let mut lab = Lab::new();
    lab.torch();
    lab.0.claims =
        vec![claim("12.8", "SITE/torch-2.8.0+cu128.dist-info/METADATA"), claim("12.6", "SITE/torch/version.py")];
    lab.one("versions-disagree", Verdict::Warn);
}

#[test]
fn compilers_that_packages_need_at_run_time() {
    let mut lab = Lab::new();
    lab.component("triton", "3.5.0");
    lab.component("flashinfer-python", "0.5");
    let found = lab.problems();
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().all(|p| p.rule == "jit-compiler-missing" && p.verdict == Verdict::Warn));
    assert!(found.iter().any(|p| p.message.contains("nvcc") && p.message.contains("curand.h")), "{found:#?}");
    for path in ["usr/bin/gcc", "usr/bin/g++-12", "usr/bin/ninja", "usr/local/cuda/bin/nvcc"] {
        lab.0.landmarks.push(at(path));
    }
    let problem = lab.one("jit-compiler-missing", Verdict::Warn);
    assert!(problem.message.contains("curand.h") && !problem.message.contains("no nvcc"), "{}", problem.message);
    lab.0.landmarks.push(at("usr/local/cuda/include/curand.h"));
    lab.quiet();
    // torch always brings triton.
    let mut lab = Lab::new();
    lab.component("triton", "3.5.0");
    lab.torch();
    lab.one("jit-compiler-missing", Verdict::Ok);
}

#[test]
fn stubs_on_the_loaders_path() {
    let stub = "usr/local/cuda/lib64/stubs/libcuda.so";
    let mut lab = Lab::new();
    lab.torch();
    lab.library(stub, ("cuda", "12.8"), "libcuda.so.1", false);
    lab.quiet();
    let outcome = Outcome::Found { path: at(stub), law: Law::LibraryPath };
    lab.0.driver.push(Need { name: "libcuda.so.1".into(), outcome });
    let problem = lab.one("stub-driver-on-path", Verdict::Fail);
    assert!(problem.message.contains("(34)") && problem.help.contains("LIBRARY_PATH"), "{problem:?}");
}
