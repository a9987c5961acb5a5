use super::super::super::{Fact, Files, Listed};
use super::*;

const SITE: &str = "opt/v/lib/python3.11/site-packages";

fn facts(rows: &[(String, Fact)]) -> Vec<(ImagePath, &Fact)> {
    rows.iter().map(|(path, fact)| (ImagePath::new(path), fact)).collect()
}

fn python(name: &str, version: &str) -> (String, Fact) {
    let fact = Fact::Python { name: name.into(), version: Some(version.into()) };
    (format!("{SITE}/{name}-{version}.dist-info/METADATA"), fact)
}

fn built(file: &str, import: &str, kind: ClaimKind, value: &str) -> (String, Fact) {
    let said = vec![Said { kind, value: value.into() }];
    (format!("{SITE}/{file}"), Fact::Built { import: import.into(), version: None, said })
}

fn conda(name: &str, version: &str, build: &str) -> (String, Fact) {
    let package = Package { build: Some(build.into()), ..Package::new(Manager::Conda, name, Some(version.into())) };
    let packages = vec![Listed { package, files: Files::default() }];
    (format!("opt/conda/conda-meta/{name}-{version}-{build}.json"), Fact::Packages { packages, unread: 0 })
}

fn shown(rows: &[(String, Fact)]) -> Vec<String> {
    let show = |c: &Claim| {
        let by = c.said_by.to_string();
        format!("{} {:?} {} ({})", c.component, c.kind, c.value, by.strip_prefix(SITE).unwrap_or(&by))
    };
    claims(&Facts::gather(&facts(rows))).iter().map(show).collect()
}

#[test]
fn distributions_say_it_in_names_versions_and_files() {
    let rows = [
        python("onnxruntime_gpu", "1.31.1"),
        built("onnxruntime/capi/build_and_package_info.py", "onnxruntime", ClaimKind::Cuda, "13.0"),
        python("cupy_cuda12x", "14.2.0"),
        python("tensorflow_cpu", "2.16.1"),
        python("py-cpuinfo", "9.0.0"),
        python("torch_scatter", "2.1.2+pt21cu121"),
        python("flash_attn", "2.7.4.post1+cu12torch2.6cxx11abifalse"),
        built("tensorflow/python/platform/build_info.py", "tensorflow", ClaimKind::CpuOnly, "cpu"),
        built("torch/version.py", "torch", ClaimKind::Cuda, "12.6"),
    ];
    assert_eq!(
        shown(&rows),
        [
            "cupy_cuda12x Cuda 12 (/cupy_cuda12x-14.2.0.dist-info/METADATA)",
            "flash_attn Cuda 12 (/flash_attn-2.7.4.post1+cu12torch2.6cxx11abifalse.dist-info/METADATA)",
            "onnxruntime_gpu Cuda 13.0 (/onnxruntime/capi/build_and_package_info.py)",
            "tensorflow_cpu CpuOnly cpu (/tensorflow/python/platform/build_info.py)",
            "tensorflow_cpu CpuOnly cpu (/tensorflow_cpu-2.16.1.dist-info/METADATA)",
            "torch Cuda 12.6 (/torch/version.py)",
            "torch_scatter Cuda 12.1 (/torch_scatter-2.1.2+pt21cu121.dist-info/METADATA)",
        ]
    );
}

#[test]
fn a_vague_claim_gives_way_to_a_clear_one() {
    let rows = [
        python("spam_cu12", "1.0+cu126"),
        (format!("{SITE}/nvidia/cudnn/include/cudnn_version.h"), Fact::Cudnn { version: "9.28.0".into() }),
        (format!("{SITE}/nvidia/cudnn/include/cudnn_version_v9.h"), Fact::Cudnn { version: "9.28.0".into() }),
    ];
    assert_eq!(
        shown(&rows),
        [
            "cudnn Cudnn 9.28.0 (/nvidia/cudnn/include/cudnn_version.h)",
            "spam_cu12 Cuda 12.6 (/spam_cu12-1.0+cu126.dist-info/METADATA)",
        ]
    );
}

#[test]
fn builds_of_conda_packages_are_claims() {
    let rows = [
        conda("pytorch", "2.1.0", "py3.10_cuda11.8_cudnn8.7.0_0"),
        conda("libtorch", "2.5.1", "cpu_mkl_h791ef64_108"),
        conda("zlib", "1.3.1", "h4bc722e_0"),
    ];
    assert_eq!(
        shown(&rows),
        [
            "libtorch CpuOnly cpu (opt/conda/conda-meta/libtorch-2.5.1-cpu_mkl_h791ef64_108.json)",
            "pytorch Cuda 11.8 (opt/conda/conda-meta/pytorch-2.1.0-py3.10_cuda11.8_cudnn8.7.0_0.json)",
            "pytorch Cudnn 8.7.0 (opt/conda/conda-meta/pytorch-2.1.0-py3.10_cuda11.8_cudnn8.7.0_0.json)",
        ]
    );
}

#[test]
fn a_toolkit_goes_by_the_file_that_knows_best() {
    let toolkit = |path: &str, version: &str| {
        (path.to_owned(), Fact::Toolkit { kind: ToolkitKind::Cuda, version: version.into() })
    };
    let rows = [
        toolkit("usr/local/cuda-12.8/version.json", "12.8.1"),
        toolkit("usr/local/cuda-12.8/targets/x86_64-linux/include/cuda.h", "12.8"),
        toolkit("opt/conda/include/cuda.h", "12.4"),
        conda("cuda-toolkit", "12.4.1", "0"),
        toolkit("srv/env/include/cuda.h", "12.4"),
        toolkit(&format!("{SITE}/nvidia/cuda_runtime/include/cuda.h"), "12.9"),
    ];
    let found = toolkits(&Facts::gather(&facts(&rows)));
    let found: Vec<String> = found.iter().map(|t| format!("{} {} ({})", t.path, t.version, t.said_by)).collect();
    assert_eq!(
        found,
        [
            "opt/conda 12.4.1 (opt/conda/conda-meta/cuda-toolkit-12.4.1-0.json)".to_owned(),
            format!("{SITE}/nvidia/cuda_runtime 12.9 ({SITE}/nvidia/cuda_runtime/include/cuda.h)"),
            "usr/local/cuda-12.8 12.8.1 (usr/local/cuda-12.8/version.json)".to_owned(),
        ]
    );
}
