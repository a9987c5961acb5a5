use super::super::Catalog;
use super::*;

fn find(reference: &str) -> Base {
    Catalog::embedded().bases().find(reference).unwrap_or_else(|| panic!("{reference} is not known"))
}

/// "family cuda|rocm cudnn flavour distro torch".
fn short(reference: &str) -> String {
    let base = find(reference);
    let cudnn = match base.cudnn {
        None => "-".to_owned(),
        Some(CudnnFlavour { major: None }) => "cudnn".to_owned(),
        Some(CudnnFlavour { major: Some(major) }) => format!("cudnn{major}"),
    };
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let flavour = base.flavour.map_or("-".to_owned(), |f| format!("{f:?}"));
    let gpu = base.cuda_text.clone().or(base.rocm.clone().map(|r| format!("rocm{r}")));
    format!("{:?} {} {cudnn} {flavour} {} {}", base.family, or(&gpu), or(&base.distro), or(&base.torch))
}

#[test]
fn what_references_say() {
    for (reference, want) in [
        ("nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04", "NvidiaCuda 12.4.1 cudnn9 Devel ubuntu22.04 -"),
        ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu20.04", "NvidiaCuda 11.8.0 cudnn8 Runtime ubuntu20.04 -"),
        ("docker.io/nvidia/cuda:12.2.2-base-ubi9", "NvidiaCuda 12.2.2 - Base ubi9 -"),
        ("nvcr.io/nvidia/cuda:10.2-devel", "NvidiaCuda 10.2 - Devel - -"),
        (
            "mirror.corp:5000/hub/nvidia/cuda:13.0.2-runtime-rockylinux9",
            "NvidiaCuda 13.0.2 - Runtime rockylinux9 -",
        ),
        ("nvidia/cuda:12.3.2-cudnn9-devel-ubuntu22.04@sha256:00", "NvidiaCuda 12.3.2 cudnn9 Devel ubuntu22.04 -"),
        ("nvidia/cuda", "NvidiaCuda - - - - -"),
        ("nvcr.io/nvidia/pytorch:24.05-py3", "NvidiaNgc 12.4.1 cudnn9 - - 2.4.0a0+07cecf4168.nv24.5"),
        ("nvcr.io/nvidia/tensorflow:20.06-tf1-py3", "NvidiaNgc 11.0.167 cudnn - - -"),
        ("nvcr.io/nvidia/tritonserver:21.10-py3-min", "NvidiaNgc 11.4.2 cudnn8 - - -"),
        ("nvcr.io/nvidia/nemo:24.05", "NvidiaNgc - - - - -"),
        (
            "nvcr.io/nvidia/cuda-dl-base:25.03-cuda12.8-devel-ubuntu24.04",
            "NvidiaNgc 12.8 cudnn Devel ubuntu24.04 2.7.0a0+7c8ec84dab.nv25.3",
        ),
        ("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel", "Pytorch 12.4 cudnn9 Devel - 2.5.1"),
        ("pytorch/pytorch:latest", "Pytorch - - - - -"),
        ("pytorch/manylinux-cuda118", "Pytorch 11.8 - - - -"),
        ("tensorflow/tensorflow:2.15.0-gpu", "Tensorflow 12.2 cudnn8 - - -"),
        ("tensorflow/tensorflow:2.9.1-gpu-jupyter", "Tensorflow 11.2 cudnn8 - - -"),
        ("tensorflow/tensorflow:2.15.0", "Tensorflow - - - - -"),
        ("rocm/dev-ubuntu-22.04:6.3.1-complete", "Rocm rocm6.3.1 - - ubuntu22.04 -"),
        ("rocm/pytorch:rocm6.1_ubuntu22.04_py3.10_pytorch_2.1.2", "Rocm rocm6.1 - - ubuntu22.04 2.1.2"),
        ("rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.9.1", "Rocm rocm7.2.4 - - ubuntu24.04 2.9.1"),
        ("rapidsai/base:24.04-cuda12.2-py3.11", "Other 12.2 - - - -"),
        ("runpod/pytorch:2.0.1-py3.10-cuda11.8.0-devel", "Other 11.8.0 - Devel - -"),
        ("vllm/vllm-openai:v0.10.2", "Other 12.8.1 - - - -"),
        ("lmsysorg/sglang:v0.4.6.post5-cu124", "Other 12.4 - - - -"),
        ("openmmlab/lmdeploy:latest-cu12", "Other 12 - - - -"),
        ("lmsysorg/sglang:v0.4.6.post5-rocm630", "Other rocm6.3.0 - - - -"),
        ("opennmt/ctranslate2:3.6.0-ubuntu22.04-cuda11.2", "Other 11.2 - - ubuntu22.04 -"),
        ("paddlepaddle/paddle:2.6.1-gpu-cuda12.0-cudnn8.9-trt8.6", "Other 12.0 cudnn8 - - -"),
        ("intel/oneapi-basekit:2025.0.1-0-devel-ubuntu22.04", "Intel - - Devel ubuntu22.04 -"),
        ("ubuntu:22.04", "Distro - - - ubuntu22.04 -"),
        ("ubuntu:jammy", "Distro - - - ubuntu22.04 -"),
        ("ubuntu", "Distro - - - ubuntu -"),
        ("debian:bookworm-slim", "Distro - - - debian12 -"),
        ("debian:12.5", "Distro - - - debian12.5 -"),
        ("python:3.11-slim-bookworm", "Distro - - - debian12 -"),
        ("python:3.11-slim", "Distro - - - - -"),
        ("almalinux:8", "Distro - - - almalinux8 -"),
        ("quay.io/pypa/manylinux2014_x86_64", "Distro - - - centos7 -"),
        ("registry.access.redhat.com/ubi9/ubi-minimal:9.4", "Distro - - - ubi9 -"),
    ] {
        assert_eq!(short(reference), want, "{reference}");
    }
    for none in ["scratch", "builder", "me/app:1.0", "$BASE", "nvidia/cuda:${V}-base", "", "my/cuda-app:latest"] {
        assert_eq!(Catalog::embedded().bases().find(none), None, "{none}");
    }
}

#[test]
fn what_images_set() {
    let library_path = |r: &str| find(r).env("LD_LIBRARY_PATH").map(str::to_owned);
    for (reference, want) in [
        ("nvidia/cuda:11.8.0-devel-ubuntu22.04", "/usr/local/nvidia/lib:/usr/local/nvidia/lib64"),
        ("nvidia/cuda:12.9.1-base-ubuntu24.04", "/usr/local/cuda/lib64"),
        ("nvidia/cuda:13.0.2-base-ubi9", "/usr/local/nvidia/lib:/usr/local/nvidia/lib64:/usr/local/cuda/lib64"),
    ] {
        assert_eq!(library_path(reference).as_deref(), Some(want), "{reference}");
        assert!(find(reference).sets_library_path);
    }
    let devel = find("nvidia/cuda:12.4.1-devel-ubuntu22.04");
    assert_eq!(devel.env("CUDA_VERSION"), Some("12.4.1"));
    assert_eq!(devel.env("NVIDIA_DRIVER_CAPABILITIES"), Some("compute,utility"));
    assert_eq!(devel.env("LIBRARY_PATH"), Some("/usr/local/cuda/lib64/stubs"));
    assert_eq!(find("nvidia/cuda:12.4.1-runtime-ubuntu22.04").env("LIBRARY_PATH"), None);
    assert!(find("nvcr.io/nvidia/pytorch:24.05-py3").sets_library_path);
    assert!(!find("ubuntu:22.04").sets_library_path && find("ubuntu:22.04").env.is_empty());
}

#[test]
fn compilers_and_trust() {
    let compiler = |r: &str| find(r).compiler;
    assert_eq!(compiler("nvidia/cuda:12.4.1-devel-ubuntu22.04"), Some(true));
    assert_eq!(compiler("nvidia/cuda:12.4.1-runtime-ubuntu22.04"), Some(false));
    assert_eq!(compiler("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"), Some(false));
    assert_eq!(compiler("nvcr.io/nvidia/pytorch:24.05-py3"), Some(true));
    assert_eq!(compiler("python:3.11"), Some(false));
    assert_eq!(compiler("rocm/pytorch:latest"), None);
    let sure = |r: &str| find(r).sure;
    assert!(sure("nvidia/cuda:12.4.1-devel-ubuntu22.04") && sure("nvidia/cuda:13.9.0-base-ubuntu24.04"));
    assert!(sure("nvcr.io/nvidia/pytorch:24.05-py3"));
    assert!(!sure("nvcr.io/nvidia/pytorch:23.04-py3"), "remembered only");
    assert!(!sure("opennmt/ctranslate2:3.6.0-ubuntu22.04-cuda11.2"), "no row");
    assert!(find("nvcr.io/nvidia/pytorch:24.05-py3").because.contains("MXNet 24.05"));
    let mirror = find("mirror.corp/nvidia/cuda:12.4.1-base-ubuntu22.04");
    assert!(mirror.mirror && mirror.repository == "nvidia/cuda" && !mirror.digest);
    assert_eq!(find("openmmlab/lmdeploy:latest-cu12").cuda, None, "the minor is not said");
    assert_eq!(mirror.cuda, Some(CudaVersion::new(12, 4)));
}
