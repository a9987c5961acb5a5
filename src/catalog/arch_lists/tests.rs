use super::super::Catalog;
use super::*;

fn variable(name: &str) -> &'static ArchVariable {
    Catalog::embedded().arch_variables().variable(name).unwrap_or_else(|| panic!("{name}"))
}

fn texts(archs: &[SmArch]) -> String {
    archs.iter().map(|a| format!("{}{}", a.number, a.suffix())).collect::<Vec<_>>().join(" ")
}

/// "machine code | PTX | keywords", and problems as "text => replacement".
fn read(name: &str, value: &str) -> (String, Vec<String>) {
    let list = variable(name).parse(value);
    let keywords: Vec<String> = list.keywords.iter().map(|k| format!("{k:?}")).collect();
    let said = format!("{} | {} | {}", texts(&list.sass), texts(&list.ptx), keywords.join(" "));
    let problem = |p: &ArchProblem| match &p.replacement {
        Some(to) => format!("{} => {to}", &value[p.range.clone()]),
        None => value[p.range.clone()].to_owned(),
    };
    (said, list.problems.iter().map(problem).collect())
}

#[test]
fn values_that_are_right() {
    for (name, value, want) in [
        ("TORCH_CUDA_ARCH_LIST", "8.0;8.6+PTX", "80 86 | 86 | "),
        ("TORCH_CUDA_ARCH_LIST", "7.0 7.5 8.0 9.0a 12.0f+PTX", "70 75 80 90a 120f | 120f | "),
        ("TORCH_CUDA_ARCH_LIST", "Ampere;Hopper", "80 86 90 | 86 90 | "),
        ("torch_cuda_arch_list", "Volta+Tegra 8.6", "72 86 |  | "),
        ("TORCH_CUDA_ARCH_LIST", "All", " |  | All"),
        ("TORCH_CUDA_ARCH_LIST", "", " |  | "),
        ("-DCMAKE_CUDA_ARCHITECTURES:STRING", "80-real;86-virtual;90a", "80 90a | 86 90a | "),
        ("CUDAARCHS", "all-major", " |  | AllMajor"),
        ("CMAKE_CUDA_ARCHITECTURES", "native", " |  | Native"),
        ("CMAKE_CUDA_ARCHITECTURES", "RAPIDS", " |  | Own"),
        (
            "NVCC_GENCODE",
            "-gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=compute_90",
            "80 | 90 | ",
        ),
        ("NVCC_GENCODE", "-O3 --generate-code arch=compute_90,code=[sm_90,compute_90] -lineinfo", "90 | 90 | "),
        ("NVCC_GENCODE", "-arch=sm_86 --use_fast_math", "86 | 86 | "),
        ("NVCC_GENCODE", "-arch compute_70 -code sm_70,sm_75", "70 75 |  | "),
        ("NVCC_GENCODE", "\"-gencode arch=compute_80,code=lto_80\"", "80 |  | "),
        ("NVCC_GENCODE", "-O2 -DNAME=1", " |  | "),
        ("-gencode", "arch=compute_80,code=sm_80", "80 |  | "),
        ("-arch", "native", " |  | Native"),
        ("-arch", "sm_120a", "120a | 120a | "),
        ("CUPY_NVCC_GENERATE_CODE", "arch=compute_80,code=sm_80;arch=compute_90,code=sm_90", "80 90 |  | "),
        ("TF_CUDA_COMPUTE_CAPABILITIES", "sm_80,compute_90,8.6", "80 90 86 | 90 86 | "),
        ("FLASH_ATTN_CUDA_ARCHS", "80;90", "80 90 | 80 90 | "),
        ("TCNN_CUDA_ARCHITECTURES", "70,75;86", "70 75 86 | 70 75 86 | "),
        ("CUDA_ARCH_BIN", "8.0, 8.6", "80 86 |  | "),
        ("CUDA_ARCH_PTX", "9.0", " | 90 | "),
        ("FLASHINFER_CUDA_ARCH_LIST", "8.0 9.0a 12.0f", "80 90a 120f |  | "),
        ("CUDA_COMPUTE_CAP", "89", "89 |  | "),
        ("GPU", "anything at all", " |  | "),
    ] {
        let (said, problems) = read(name, value);
        assert_eq!(said, want, "{name}={value}");
        assert!(problems.is_empty(), "{name}={value}: {problems:?}");
    }
}

#[test]
fn values_that_are_wrong_and_what_to_write() {
    for (name, value, want, wrong) in [
        ("TORCH_CUDA_ARCH_LIST", "8.0,8.6", "80 86 |  | ", vec![", => ;"]),
        ("TORCH_CUDA_ARCH_LIST", "8.0; 8.6", "80 86 |  | ", vec![";  => ;"]),
        ("TORCH_CUDA_ARCH_LIST", "8.0;8.6;", "80 86 |  | ", vec!["; => "]),
        ("TORCH_CUDA_ARCH_LIST", "80;sm_89", "80 89 |  | ", vec!["80 => 8.0", "sm_89 => 8.9"]),
        ("TORCH_CUDA_ARCH_LIST", "compute_120", "120 |  | ", vec!["compute_120 => 12.0"]),
        ("TORCH_CUDA_ARCH_LIST", "9.0+ptx", "90 | 90 | ", vec!["9.0+ptx => 9.0+PTX"]),
        ("TORCH_CUDA_ARCH_LIST", "ampere", " |  | ", vec!["ampere => Ampere"]),
        ("TORCH_CUDA_ARCH_LIST", "Hopper+PTX", "90 |  | ", vec!["Hopper+PTX => Hopper"]),
        ("TORCH_CUDA_ARCH_LIST", "8", " |  | ", vec!["8"]),
        ("CMAKE_CUDA_ARCHITECTURES", "8.0;8.6", "80 86 | 80 86 | ", vec!["8.0 => 80", "8.6 => 86"]),
        ("CMAKE_CUDA_ARCHITECTURES", "80 86", "80 86 | 80 86 | ", vec!["  => ;"]),
        ("CMAKE_CUDA_ARCHITECTURES", "sm_80-real", "80 |  | ", vec!["sm_80-real => 80-real"]),
        ("CMAKE_CUDA_ARCHITECTURES", "Ampere", " |  | ", vec!["Ampere"]),
        ("NVCC_GENCODE", "-gencode arch=sm_80,code=sm_80", "80 |  | ", vec!["sm_80 => compute_80"]),
        ("NVCC_GENCODE", "-gencode arch=compute_80,code=80", " |  | ", vec!["80 => sm_80"]),
        ("-arch", "80", " |  | ", vec!["80 => sm_80"]),
        ("TF_CUDA_COMPUTE_CAPABILITIES", "8.0;8.6", "80 86 | 80 86 | ", vec!["; => ,"]),
        ("TF_CUDA_COMPUTE_CAPABILITIES", "80", "80 |  | ", vec!["80 => sm_80"]),
        ("FLASH_ATTN_CUDA_ARCHS", "8.0;9.0", "80 90 | 80 90 | ", vec!["8.0 => 80", "9.0 => 90"]),
        ("CUDA_COMPUTE_CAP", "8.0", "80 |  | ", vec!["8.0 => 80"]),
        ("CUDA_COMPUTE_CAP", "80;86", "80 |  | ", vec!["86"]),
        ("PYTORCH_ROCM_ARCH", "gfx90a,GFX942", " |  | ", vec![", => ;", "GFX942 => gfx942"]),
    ] {
        assert_eq!(
            read(name, value),
            (want.to_owned(), wrong.iter().map(ToString::to_string).collect()),
            "{name}={value}"
        );
    }
}

#[test]
fn amd_names() {
    let list = variable("PYTORCH_ROCM_ARCH").parse("gfx90a:xnack-;gfx942 gfx1100");
    assert_eq!(list.gfx, ["gfx90a:xnack-", "gfx942", "gfx1100"]);
    assert!(list.problems.is_empty() && list.is_closed());
    let bare = variable("PYTORCH_ROCM_ARCH").parse("90a");
    assert_eq!((bare.gfx.as_slice(), bare.problems.len()), (["gfx90a".to_owned()].as_slice(), 1));
    assert!(variable("AMDGPU_TARGETS").parse("gfx9-4-generic").problems.is_empty());
}

#[test]
fn what_a_list_serves() {
    let of = |value: &str, gpu: &str| serves(&variable("TORCH_CUDA_ARCH_LIST").parse(value), gpu.parse().unwrap());
    assert_eq!(of("8.0;9.0", "9.0"), Serves::Native);
    assert_eq!(of("8.0;9.0", "8.9"), Serves::Compatible);
    assert_eq!(of("8.0;9.0+PTX", "12.0"), Serves::Ptx);
    assert_eq!(of("8.0;9.0", "12.0"), Serves::No);
    assert_eq!(of("9.0a", "9.0"), Serves::Native);
    assert_eq!(of("10.0a", "10.3"), Serves::No);
    assert_eq!(of("10.0f", "10.3"), Serves::Compatible);
    assert_eq!(of("8.0", "8.7"), Serves::Unsure);
    assert_eq!(of("", "8.0"), Serves::No);
    assert_eq!(of("10.1", "11.0"), Serves::Native);
}

#[test]
fn lists_with_more_in_them() {
    for (name, value, missing, want) in [
        ("TORCH_CUDA_ARCH_LIST", "8.0;8.6+PTX", "9.0 12.0", Some("8.0;8.6+PTX;9.0;12.0")),
        ("TORCH_CUDA_ARCH_LIST", "8.0 8.6", "9.0", Some("8.0 8.6 9.0")),
        ("TORCH_CUDA_ARCH_LIST", "8.0,8.6", "9.0", Some("8.0,8.6;9.0")),
        ("TORCH_CUDA_ARCH_LIST", "", "9.0", Some("9.0")),
        ("TORCH_CUDA_ARCH_LIST", "8.0;", "9.0", Some("8.0;9.0")),
        ("CMAKE_CUDA_ARCHITECTURES", "80-real;86-real", "9.0", Some("80-real;86-real;90-real")),
        ("CMAKE_CUDA_ARCHITECTURES", "80;86", "9.0", Some("80;86;90")),
        ("CMAKE_CUDA_ARCHITECTURES", "native", "9.0", None),
        ("FLASH_ATTN_CUDA_ARCHS", "80", "9.0 12.0", Some("80;90;120")),
        ("HOROVOD_BUILD_CUDA_CC_LIST", "60,70", "8.0", Some("60,70,80")),
        ("TF_CUDA_COMPUTE_CAPABILITIES", "sm_80,compute_90", "12.0", Some("sm_80,compute_90,sm_120")),
        ("TF_CUDA_COMPUTE_CAPABILITIES", "7.0,8.0", "12.0", Some("7.0,8.0,12.0")),
        ("CUDA_ARCH_BIN", "8.0 8.6", "9.0", Some("8.0 8.6 9.0")),
        (
            "NVCC_GENCODE",
            "-gencode=arch=compute_80,code=sm_80",
            "9.0",
            Some("-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90"),
        ),
        (
            "-gencode",
            "arch=compute_80,code=sm_80",
            "9.0",
            Some("arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"),
        ),
        (
            "CUPY_NVCC_GENERATE_CODE",
            "arch=compute_80,code=sm_80",
            "9.0",
            Some("arch=compute_80,code=sm_80;arch=compute_90,code=sm_90"),
        ),
        ("-arch", "sm_80", "9.0", None),
        ("CUDA_COMPUTE_CAP", "80", "9.0", None),
        ("CUDA_COMPUTE_CAP", "", "9.0", Some("90")),
        ("PYTORCH_ROCM_ARCH", "gfx90a", "9.0", None),
        ("TORCH_CUDA_ARCH_LIST", "8.0", "", Some("8.0")),
    ] {
        let missing: Vec<Capability> = missing.split_whitespace().map(|c| c.parse().unwrap()).collect();
        let got = variable(name).add(value, &missing);
        assert_eq!(got.as_deref(), want, "{name}={value}");
        if let (Some(got), false) = (got, missing.is_empty()) {
            let list = variable(name).parse(&got);
            assert!(missing.iter().all(|m| serves(&list, *m) == Serves::Native), "{name}={got}");
        }
    }
}

#[test]
fn variables_by_their_names() {
    let find = |name: &str| Catalog::embedded().arch_variables().variable(name).map(|v| v.grammar);
    assert_eq!(find("-DCMAKE_CUDA_ARCHITECTURES"), Some(Grammar::Cmake));
    assert_eq!(find("--offload-arch"), Some(Grammar::Gfx));
    assert_eq!(find("PATH"), None);
    assert_eq!(find(""), None);
}

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_value_makes_a_parser_panic_and_places_are_of_the_value(value in "\\PC{0,40}|[0-9.;, +PTXa-z_=\\[\\]\"-]{0,60}") {
        for variable in Catalog::embedded().arch_variables().all() {
            let list = variable.parse(&value);
            for range in list.entries.iter().map(|e| &e.range).chain(list.problems.iter().map(|p| &p.range)) {
                prop_assert!(value.get(range.clone()).is_some(), "{}={value:?}: {range:?}", variable.name);
            }
            let _ = variable.add(&value, &[Capability::new(9, 0)]);
        }
    }
}
