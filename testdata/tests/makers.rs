//! GPUs of three makers: S19 and its kin (data files of ROCm's libraries), kernels in archives, modes, the override, and
//! one table for a mixed fleet.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common;
use common::{run, testdata};

/// Files of an image: from the corpora (`rocm/NAME`), else empty ones.
fn image(files: &[(&str, Option<&str>)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    // A root file system has some program or library.
    let host = ("usr/lib/libhost.so", Some("rocm/host_only.so"));
    for (path, from) in files.iter().chain([&host]) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match from {
            Some(from) => drop(fs::copy(testdata().join(from), path).unwrap()),
            None => fs::write(path, "").unwrap(),
        }
    }
    root
}

fn scan(root: &Path, targets: &[&str], more: &[&str]) -> Value {
    let place = format!("dir:{}", root.display());
    let mut args = vec!["scan", place.as_str(), "--format", "json"];
    for target in targets {
        args.extend(["-t", target]);
    }
    args.extend(more);
    run(&args).json()
}

/// `NAME verdict`, by target.
fn verdicts(report: &Value) -> Vec<String> {
    let targets = report["targets"].as_array().unwrap().iter();
    targets.map(|t| format!("{} {}", t["name"].as_str().unwrap(), t["verdict"].as_str().unwrap())).collect()
}

fn rules(report: &Value, target: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let own = findings.filter(|f| f["targets"].as_array().is_some_and(|t| t.iter().any(|t| t == target)));
    let mut out: Vec<String> = own
        .filter(|f| f["severity"] != "note")
        .map(|f| format!("{} {}", f["severity"].as_str().unwrap(), f["rule"].as_str().unwrap()))
        .collect();
    out.sort();
    out
}

fn why<'a>(report: &'a Value, target: &str) -> &'a str {
    let targets = report["targets"].as_array().unwrap();
    targets.iter().find(|t| t["name"] == target).unwrap()["why"].as_str().unwrap()
}

const ROCBLAS: &str = "opt/rocm/lib/rocblas/library";

/// gfx906 gfx90a gfx942 gfx1030 gfx1100 gfx1201.
const HIP: Option<&str> = Some("rocm/hip_plain.so");

#[test]
fn s19_data_files_lack_the_chip() {
    let data = |arch: &str| format!("{ROCBLAS}/TensileLibrary_lazy_{arch}.dat");
    let (a, b, c) = (data("gfx90a"), data("gfx942"), data("gfx1100"));
    let root = image(&[(&a, None), (&b, None), (&c, None), ("opt/app/libfoo.so", HIP)]);
    let report = scan(root.path(), &["RX 9070", "MI300X", "RX 7600"], &[]);
    assert_eq!(verdicts(&report), ["rx-9070 fail", "mi300x ok", "rx-7600 fail"]);
    assert_eq!(rules(&report, "rx-9070"), ["error library-data-missing"]);
    assert_eq!(rules(&report, "rx-7600"), ["error library-data-missing", "error no-device-code-for-target"]);
    assert!(why(&report, "rx-9070").contains("rocBLAS has no data for gfx1201"), "{}", why(&report, "rx-9070"));
    let said = report.to_string();
    assert!(said.contains("Cannot read") && said.contains("HSA_OVERRIDE_GFX_VERSION"), "{said}");
}

#[test]
fn kin_of_s19() {
    let other = "opt/rocm/lib/hipblaslt/library/TensileLibrary_lazy_gfx942.dat";
    let root = image(&[(other, None), ("opt/app/libfoo.so", HIP)]);
    let report = scan(root.path(), &["MI210", "MI300X"], &[]);
    assert_eq!(verdicts(&report), ["mi210 warn", "mi300x ok"]);
    assert_eq!(rules(&report, "mi210"), ["warning library-data-missing"]);
    // The number of compute units follows the architecture without anything between.
    let miopen = "opt/rocm/share/miopen/db/gfx942130.HIP.fdb.txt";
    let root = image(&[(miopen, None), ("opt/app/libfoo.so", HIP)]);
    let report = scan(root.path(), &["RX 7900 XTX", "MI300X"], &[]);
    assert_eq!(verdicts(&report), ["rx-7900-xtx slow", "mi300x ok"]);
    // A name that begins alike is another GPU's, and what names none covers none.
    let root = image(&[
        (&format!("{ROCBLAS}/TensileLibrary_lazy_gfx906.dat"), None),
        (&format!("{ROCBLAS}/Kernels.so-000-gfx90a.hsaco"), None),
        (&format!("{ROCBLAS}/TensileLibrary_Type_SS_fallback.dat"), None),
        ("opt/app/libfoo.so", HIP),
    ]);
    let report = scan(root.path(), &["MI210", "MI50"], &[]);
    assert_eq!(verdicts(&report)[0], "mi210 fail");
    assert!(!rules(&report, "mi50").iter().any(|r| r.contains("library-data-missing")));
}

/// What is installed twice counts where something loads it.
#[test]
fn data_that_nothing_reads_counts_only_alone() {
    let own = "opt/v/lib/python3.11/site-packages/torch/lib/rocblas/library/TensileLibrary_lazy_gfx942.dat";
    let base = format!("{ROCBLAS}/TensileLibrary_lazy_gfx90a.dat");
    let root = image(&[(own, None), (&base, None), ("opt/app/libfoo.so", HIP)]);
    let report = scan(root.path(), &["MI300X"], &[]);
    // Nothing says which of the two is read.
    assert_eq!(verdicts(&report), ["mi300x fail"]);
}

#[test]
fn modes_decide() {
    let root = image(&[("opt/app/kernels.co", Some("rocm/dev_gfx90a_xnack+_sramecc-.co"))]);
    let report = scan(root.path(), &["MI250X", "gfx90a:xnack+", "gfx90a:sramecc-:xnack+"], &[]);
    assert_eq!(verdicts(&report), ["mi250x fail", "gfx90a:xnack+ fail", "gfx90a:sramecc-:xnack+ ok"]);
    assert!(why(&report, "mi250x").contains("HSA_XNACK=1"), "{}", why(&report, "mi250x"));
}

#[test]
fn generic_targets_and_near_misses() {
    let root = image(&[("opt/app/libfoo.so", Some("rocm/hip_v6_generic.so"))]);
    let targets = ["RX 7600", "RX 6600", "RX 9070", "MI50", "MI210", "MI300X"];
    let report = scan(root.path(), &targets, &[]);
    let expected = ["rx-7600 ok", "rx-6600 ok", "rx-9070 ok", "mi50 ok", "mi210 fail", "mi300x fail"];
    assert_eq!(verdicts(&report), expected);
    // Neither the family nor a newer stepping.
    let root = image(&[("opt/app/libfoo.so", Some("rocm/hip_v4.so"))]);
    assert_eq!(
        verdicts(&scan(root.path(), &["gfx1032", "gfx1030", "gfx90a"], &[])).join(" "),
        "gfx1032 ok gfx1030 fail gfx90a fail"
    );
}

#[test]
fn kernels_in_archives() {
    let files = |archive: &'static str| {
        [("opt/app/lib/libhipk_zeroed.so", Some("rocm/hipk_zeroed.so")), (archive, Some("rocm/il_gfx1150.kpack"))]
    };
    let root = image(&files("elsewhere/il_gfx1150.kpack"));
    let report = scan(root.path(), &["gfx1150", "MI300X"], &[]);
    assert_eq!(verdicts(&report), ["gfx1150 fail", "mi300x fail"]);
    assert!(rules(&report, "gfx1150").contains(&"error kpack-archive-missing".to_owned()), "{report}");
}

#[test]
fn one_table_for_a_mixed_fleet() {
    let root = image(&[
        ("opt/app/libcuda_part.so", Some("corpus/cuda/bin/cu124_wrapped.so")),
        ("opt/app/libhip_part.so", HIP),
        ("opt/app/libsycl_part.so", Some("rocm/sycl_aot_jit.so")),
    ]);
    let targets = ["H100@570", "MI300X", "RX 7900 XTX", "Max 1550"];
    let report = scan(root.path(), &targets, &[]);
    let got = verdicts(&report);
    assert!(got[1] == "mi300x ok" && got[2] == "rx-7900-xtx ok", "{got:?} {report}");
    assert_eq!(got[3], "max-1550 cpu", "no driver of Intel's is in the image: {report}");
    let table = run(&[
        &["scan", &format!("dir:{}", root.path().display())][..],
        &["-t", "H100@570", "-t", "MI300X", "-t", "RX 7900 XTX", "-t", "Max 1550"],
    ]
    .concat());
    for words in [
        "AMD Instinct MI300X (gfx942)",
        "AMD Radeon RX 7900 XTX (gfx1100)",
        "Intel Data Center GPU Max 1550",
        "NVIDIA H100 (sm_90)",
    ] {
        assert!(table.out.contains(words), "{}", table.out);
    }
}

#[test]
fn backends_side_by_side_are_no_failure() {
    let root = image(&[
        ("opt/one/libhip_part.so", HIP),
        ("opt/two/libcuda_part.so", Some("corpus/cuda/bin/cu124_wrapped.so")),
    ]);
    let report = scan(root.path(), &["V100", "MI300X", "Max 1550"], &[]);
    assert_eq!(verdicts(&report), ["v100 ok", "mi300x ok", "max-1550 fail"]);
    assert!(why(&report, "max-1550").contains("no code for Intel's GPUs"), "{}", why(&report, "max-1550"));
    // Alone, code for another maker's GPUs is none.
    let root = image(&[("opt/one/libhip_part.so", HIP)]);
    let report = scan(root.path(), &["V100"], &[]);
    assert_eq!(rules(&report, "v100"), ["error no-device-code-for-target"]);
}
