//! Field cases as Dockerfiles: S13 (variables lost in the last stage), S14 (an extension built without a GPU), S15 (a
//! CPU build from a solver), each with variants that must speak and near misses that must not.

use crate::common;

use std::fs;

use common::finish;
use serde_json::Value;

/// Rules that spoke of a file, with their severities, notes left out; sorted.
fn said(files: &[(&str, &str)], args: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let mut command = common::program();
    command.current_dir(folder.path()).args(["lint", "Dockerfile", "--format", "json", "--quiet"]).args(args);
    let ran = finish(&mut command);
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.err));
    let findings = report["findings"].as_array().unwrap();
    let mut out: Vec<String> = findings
        .iter()
        .filter(|f| f["severity"] != "note")
        .map(|f| {
            format!(
                "{} {}:{}",
                f["severity"].as_str().unwrap(),
                f["rule"].as_str().unwrap(),
                f["dockerfile"]["line"]
            )
        })
        .collect();
    out.sort();
    out
}

fn of(dockerfile: &str, args: &[&str]) -> Vec<String> {
    said(&[("Dockerfile", dockerfile)], args)
}

const FLEET: &[&str] = &["-t", "a10@570", "-t", "h100@570"];

#[test]
fn s13_variables_lost_in_the_last_stage() {
    let lost = "FROM nvidia/cuda:12.8.1-runtime-ubuntu24.04 AS build\nCOPY app /app\n\
        FROM debian:12-slim\nCOPY --from=build /app /app\nCMD [\"/app\"]\n";
    assert_eq!(of(lost, FLEET), ["warning nvidia-env-lost-in-last-stage:3"]);
    let fleet = "[[target]]\nname = \"a\"\ngpu = \"A10\"\ndriver = \"570\"\nstart = \"env\"\n";
    let found = said(&[("Dockerfile", lost), ("imagelint.toml", fleet)], &["--fleet", "imagelint.toml"]);
    assert_eq!(found, ["error nvidia-env-lost-in-last-stage:3"]);
    let kept =
        lost.replace("CMD", "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility\nCMD");
    assert!(of(&kept, FLEET).is_empty());
    assert!(of(&lost.replace("debian:12-slim", "nvidia/cuda:12.8.1-base-ubuntu24.04"), FLEET).is_empty());
    // Nothing of a plain builder needs a GPU.
    assert!(of(&lost.replace("nvidia/cuda:12.8.1-runtime-ubuntu24.04", "debian:12"), FLEET).is_empty());
}

const TORCH: &str = "FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\n\
    RUN pip install torch==2.8.0 --index-url https://download.pytorch.org/whl/cu128\n";

#[test]
fn s14_an_extension_without_a_list() {
    let git = format!("{TORCH}RUN pip install git+https://example.invalid/some-cuda-ext\n");
    assert_eq!(of(&git, FLEET), ["warning ext-build-without-arch-list:3"]);
    let setup = format!("{TORCH}COPY kernels /kernels\nWORKDIR /kernels\nRUN python setup.py install\n");
    assert_eq!(of(&setup, FLEET), ["warning ext-build-without-arch-list:5"]);
    let named = git.replace("RUN pip install git", "ENV TORCH_CUDA_ARCH_LIST=\"8.6;9.0\"\nRUN pip install git");
    assert!(of(&named, FLEET).is_empty());
    let inline = git.replace("RUN pip install git", "RUN TORCH_CUDA_ARCH_LIST='8.6 9.0' pip install git");
    assert!(of(&inline, FLEET).is_empty());
    // Pure Python by its name and flags.
    let plain = format!("{TORCH}RUN pip install git+https://example.invalid/some-client\n");
    assert!(of(&plain, FLEET).is_empty());
}

#[test]
fn s14_a_list_that_the_build_does_not_see() {
    let before =
        format!("ARG TORCH_CUDA_ARCH_LIST\n{TORCH}RUN pip install git+https://example.invalid/some-cuda-ext\n");
    assert_eq!(of(&before, FLEET), ["warning arch-set-after-use:1"]);
    let again = before.replace("RUN pip install git", "ARG TORCH_CUDA_ARCH_LIST\nRUN pip install git");
    assert!(of(&again, &[FLEET, &["--build-arg", "TORCH_CUDA_ARCH_LIST=8.6;9.0"]].concat()).is_empty());
    let cmake = "FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nENV TORCH_CUDA_ARCH_LIST=\"8.6;9.0\"\nCOPY . /src\n\
        RUN cmake -S /src -B /build -DUSE_CUDA=ON && cmake --build /build\n";
    assert_eq!(of(cmake, FLEET), ["warning ext-build-without-arch-list:4"]);
    assert!(of(&cmake.replace("-DUSE_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES='86;90'"), FLEET).is_empty());
    let native = cmake.replace("-DUSE_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=native");
    assert_eq!(of(&native, FLEET), ["warning arch-native:4"]);
}

#[test]
fn s15_a_cpu_build_from_a_solver() {
    let file = "FROM condaforge/miniforge3\nCOPY environment.yml .\nRUN conda env create -f environment.yml\n";
    let environment = "name: x\nchannels: [conda-forge]\ndependencies:\n  - python=3.11\n  - pytorch\n";
    let with =
        |file: &str, environment: &str| said(&[("Dockerfile", file), ("environment.yml", environment)], FLEET);
    assert_eq!(with(file, environment), ["warning conda-without-cuda-override:3"]);
    assert!(with(&file.replace("RUN conda", "RUN CONDA_OVERRIDE_CUDA=12.6 conda"), environment).is_empty());
    assert!(with(&file.replace("RUN", "ENV CONDA_OVERRIDE_CUDA=12.6\nRUN"), environment).is_empty());
    assert!(with(file, &environment.replace("- pytorch", "- pytorch=2.5.1=*cuda*")).is_empty());
    assert!(with(file, &environment.replace("- pytorch", "- numpy")).is_empty());
}
