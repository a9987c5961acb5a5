//! The law against what the vendors' own tools accept.

use super::*;

fn item(text: &str) -> Item {
    let (form, isa) =
        if text.starts_with("compute_") { (Form::Ptx, Some(PtxIsa::new(8, 0))) } else { (Form::Sass, None) };
    Item { arch: text.parse().unwrap(), form, kind: 2, isa, packing: Packing::None, toolkit: None }
}

fn fit(code: &[&str], gpu: &str) -> Fit {
    let items: Vec<Item> = code.iter().map(|c| item(c)).collect();
    module_fit(&items, &Host::bare(gpu.parse().unwrap()))
}

/// Every capability that a toolkit of 2026 can name.
const GPUS: [&str; 18] = [
    "5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.8", "8.9", "9.0",
    "10.0", "10.3", "10.7",
];
const NEWEST: [&str; 3] = ["11.0", "12.0", "12.1"];

/// nvlink 13.5: cubin, then the link targets it was accepted for (suffixes left out, they follow).
const NVLINK: &str = "75: 75\n80: 80 86 87 88 89\n86: 86 87 88 89\n87: 87 88 89\n88: 88 89\n89: 89\n90: 90\n90a: 90\n\
    100: 100 103 107\n100a: 100\n100f: 100 103 107\n103: 103 107\n103a: 103\n103f: 103 107\n107: 107\n107a: 107\n\
    107f: 107\n110: 110\n110a: 110\n110f: 110\n120: 120 121\n120a: 120\n120f: 120 121\n121: 121\n121a: 121\n121f: 121";

/// ptxas 13.5: PTX target, then the lowest of the targets above itself that it was accepted for, or `-`.
const PTXAS_ALL_ABOVE: [&str; 15] =
    ["50", "70", "72", "75", "80", "87", "88", "89", "90", "100", "101", "103", "110", "120", "121"];
const PTXAS_FAMILY: &str = "100f: 100 103 107\n103f: 103 107\n107f: 107\n110f: 110\n101f: 110\n120f: 120 121\n121f: 121\n\
    90a: 90\n100a: 100\n103a: 103\n107a: 107\n101a: 110\n110a: 110\n120a: 120\n121a: 121";

fn all_gpus() -> impl Iterator<Item = &'static str> {
    GPUS.into_iter().chain(NEWEST)
}

#[test]
fn machine_code_follows_nvlink_but_for_jetson() {
    for line in NVLINK.lines() {
        let (code, targets) = line.trim().split_once(": ").unwrap();
        let targets: Vec<&str> = targets.split(' ').collect();
        for gpu in all_gpus() {
            let got = fit(&[&format!("sm_{code}")], gpu);
            let number = gpu.replace('.', "");
            if targets.contains(&number.as_str()) {
                assert!(got > Fit::Blocked(Block::JitDisabled), "sm_{code} on {gpu}: {got:?}");
            } else {
                assert_eq!(got, Fit::Missing, "sm_{code} on {gpu}");
            }
        }
    }
}

#[test]
fn ptx_follows_ptxas() {
    for code in PTXAS_ALL_ABOVE {
        for gpu in all_gpus() {
            let above = gpu.replace('.', "").parse::<u32>().unwrap() >= code.parse().unwrap();
            let want = if above { Fit::Jit } else { Fit::Missing };
            assert_eq!(fit(&[&format!("compute_{code}")], gpu), want, "compute_{code} on {gpu}");
        }
    }
    for line in PTXAS_FAMILY.lines() {
        let (code, targets) = line.trim().split_once(": ").unwrap();
        for gpu in all_gpus() {
            let listed = targets.split(' ').any(|t| t == gpu.replace('.', ""));
            let want = if listed { Fit::Jit } else { Fit::Missing };
            assert_eq!(fit(&[&format!("compute_{code}")], gpu), want, "compute_{code} on {gpu}");
        }
    }
}

#[test]
fn jetson_takes_its_own_code_or_ptx() {
    assert_eq!(fit(&["sm_87"], "8.7"), Fit::Native);
    assert_eq!(fit(&["sm_80"], "8.7"), Fit::Uncertain(Doubt::OrinStack));
    assert_eq!(fit(&["sm_80", "compute_80"], "8.7"), Fit::Jit);
    assert_eq!(fit(&["sm_70"], "7.2"), Fit::Missing);
    assert_eq!(fit(&["sm_60"], "6.2"), Fit::Missing);
    assert_eq!(fit(&["sm_72"], "7.5"), Fit::Uncertain(Doubt::TegraOnDiscrete));
    assert_eq!(fit(&["sm_87"], "8.6"), Fit::Missing);
    assert_eq!(fit(&["sm_100"], "11.0"), Fit::Missing);
    assert_eq!(fit(&["sm_101"], "11.0"), Fit::Native);
    assert_eq!(fit(&["sm_101a"], "11.0"), Fit::Native);
    assert_eq!(fit(&["sm_101"], "10.3"), Fit::Missing);
    let mut orin = Host::bare(Capability::new(8, 7).into());
    orin.cuda = Some(CudaVersion::new(12, 6));
    assert_eq!(module_fit(&[item("sm_80")], &orin), Fit::Missing);
    orin.cuda = Some(CudaVersion::new(13, 2));
    assert_eq!(module_fit(&[item("sm_80")], &orin), Fit::Uncertain(Doubt::OrinStack));
}

#[test]
fn the_driver_bounds_ptx_and_compression() {
    let mut host = Host::bare(Capability::new(9, 0).into());
    host.jit = Some(PtxIsa::new(8, 7));
    let ptx = |major, minor| Item { isa: Some(PtxIsa::new(major, minor)), ..item("compute_80") };
    assert_eq!(module_fit(&[ptx(8, 8)], &host), Fit::Blocked(Block::PtxTooNew(PtxIsa::new(8, 8))));
    assert_eq!(module_fit(&[ptx(8, 7)], &host), Fit::Jit);
    assert_eq!(module_fit(&[ptx(8, 8), item("sm_90")], &host), Fit::Native);
    assert_eq!(module_fit(&[ptx(8, 8), ptx(8, 7)], &host), Fit::Jit);
    host.jit_disabled = true;
    assert_eq!(module_fit(&[ptx(8, 7)], &host), Fit::Blocked(Block::JitDisabled));
    let zstd = |code: &str| Item { packing: Packing::Zstd, ..item(code) };
    let mut old = Host::bare(Capability::new(7, 0).into());
    for (driver, want) in [("535.288.01", Fit::Blocked(Block::Compressed)), ("550.54.14", Fit::Native)] {
        old.driver = Some(driver.parse().unwrap());
        assert_eq!(module_fit(&[zstd("sm_70"), item("compute_60")], &old), want, "{driver}");
        // Only the entry chosen for this GPU counts.
        assert_eq!(module_fit(&[zstd("sm_90"), item("sm_70")], &old), Fit::Native, "{driver}");
    }
}

fn takes(code: &[&str], host: &Host) -> Vec<String> {
    let items: Vec<Item> = code.iter().map(|c| item(c)).collect();
    let word = |i: &Item| match i.form {
        Form::Ptx => i.arch.to_string().replace("sm_", "compute_"),
        _ => i.arch.to_string(),
    };
    taken(&items, host).into_iter().map(word).collect()
}

#[test]
fn of_one_module_the_best_is_taken() {
    let on = |code: &[&str], gpu: &str| takes(code, &Host::bare(gpu.parse().unwrap()));
    let torch = ["sm_50", "sm_60", "sm_80", "sm_86", "sm_90", "compute_90"];
    assert_eq!(on(&torch, "8.9"), ["sm_86"]);
    assert_eq!(on(&torch, "8.0"), ["sm_80"]);
    assert_eq!(on(&torch, "12.0"), ["compute_90"]);
    assert_eq!(on(&torch, "7.0"), [""; 0], "sm_60 is of another major");
    assert_eq!(on(&["sm_90", "sm_90a", "compute_90"], "9.0"), ["sm_90", "sm_90a"]);
    assert_eq!(on(&["sm_90a"], "10.0"), [""; 0]);
    assert_eq!(on(&["sm_100", "sm_100f", "sm_103"], "10.3"), ["sm_103"]);
    assert_eq!(on(&["sm_100", "sm_100f"], "10.3"), ["sm_100", "sm_100f"]);
    assert_eq!(on(&["compute_50", "compute_80", "compute_120"], "9.0"), ["compute_80"]);
    // What may load and what surely does are both kept.
    assert_eq!(on(&["sm_80", "compute_80"], "8.7"), ["sm_80", "compute_80"]);
    let mut forced = Host::bare(Capability::new(8, 0).into());
    forced.force_ptx = true;
    assert_eq!(takes(&["sm_80", "compute_80"], &forced), ["compute_80"]);
}

#[test]
fn something_is_taken_where_something_fits_and_only_there() {
    let code = ["sm_50", "sm_72", "sm_80", "sm_87", "sm_90a", "sm_100f", "sm_120", "compute_75", "compute_100f"];
    for pick in 0..1usize << code.len() {
        let some: Vec<&str> =
            code.iter().enumerate().filter(|(i, _)| pick >> i & 1 == 1).map(|(_, c)| *c).collect();
        for gpu in all_gpus() {
            let missing = fit(&some, gpu) == Fit::Missing;
            let none = takes(&some, &Host::bare(gpu.parse().unwrap())).is_empty();
            assert_eq!(missing, none, "{some:?} on {gpu}");
        }
    }
}

#[test]
fn forced_jit_passes_over_machine_code() {
    let mut host = Host::bare(Capability::new(8, 0).into());
    host.force_ptx = true;
    assert_eq!(module_fit(&[item("sm_80")], &host), Fit::Missing);
    assert_eq!(module_fit(&[item("sm_80"), item("compute_80")], &host), Fit::Jit);
}

fn other(text: &str) -> Item {
    let arch: Arch = text.parse().unwrap();
    let form = match arch {
        Arch::Gfx(_) => Form::CodeObject,
        Arch::Intel(_) => Form::Native,
        _ => Form::Spirv,
    };
    Item { arch, form, kind: 6, isa: None, packing: Packing::None, toolkit: None }
}

fn fit_on(code: &[&str], gpu: &str) -> Fit {
    let items: Vec<Item> = code.iter().map(|c| other(c)).collect();
    module_fit(&items, &crate::catalog::Catalog::embedded().bare_host(gpu.parse().unwrap()))
}

#[test]
fn amd_takes_the_processor_its_generic_target_or_spirv() {
    for (code, gpu, want) in [
        ("gfx942", "gfx942", Fit::Native),
        ("gfx9-4-generic", "gfx942", Fit::Compatible),
        ("gfx9-4-generic", "gfx950", Fit::Compatible),
        ("gfx11-generic", "gfx1102", Fit::Compatible),
        ("amdgcnspirv", "gfx1201", Fit::Jit),
        // No families, no newer minors: each of these is reported to fail.
        ("gfx1030", "gfx1031", Fit::Missing),
        ("gfx1100", "gfx1102", Fit::Missing),
        ("gfx90a", "gfx942", Fit::Missing),
        ("gfx942", "gfx950", Fit::Missing),
        ("gfx9-generic", "gfx90a", Fit::Missing),
        ("gfx9-generic", "gfx908", Fit::Missing),
        ("gfx10-1-generic", "gfx1030", Fit::Missing),
        ("spir64", "gfx942", Fit::Missing),
        ("intel_gpu_12_60_7", "gfx942", Fit::Missing),
    ] {
        assert_eq!(fit_on(&[code], gpu), want, "{code} on {gpu}");
    }
    assert_eq!(fit_on(&["amdgcnspirv", "gfx11-generic", "gfx1102"], "gfx1102"), Fit::Native);
    assert_eq!(fit_on(&["sm_90"], "9.0"), Fit::Missing, "a form that nobody loads");
}

#[test]
fn features_are_any_or_equal() {
    let on = |wants_on| Fit::Blocked(Block::Xnack { wants_on });
    for (code, gpu, want) in [
        ("gfx90a:xnack-", "gfx90a", Fit::Native),
        ("gfx90a:xnack+", "gfx90a", on(true)),
        ("gfx90a:xnack+", "gfx90a:xnack+", Fit::Native),
        ("gfx90a:xnack-", "gfx90a:xnack+", on(false)),
        ("gfx90a", "gfx90a:xnack+", Fit::Native),
        ("gfx90a:sramecc+", "gfx90a", Fit::Native),
        ("gfx90a:sramecc-", "gfx90a", Fit::Missing),
        ("gfx90a:sramecc-", "gfx90a:sramecc-", Fit::Native),
        ("gfx906:sramecc+", "gfx906", Fit::Uncertain(Doubt::SramEcc { wants_on: true })),
        ("gfx906:sramecc-", "gfx906:sramecc-", Fit::Native),
    ] {
        assert_eq!(fit_on(&[code], gpu), want, "{code} on {gpu}");
    }
    assert_eq!(fit_on(&["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a"), Fit::Native);
    assert_eq!(fit_on(&["gfx90a:xnack+", "amdgcnspirv"], "gfx90a"), Fit::Jit);
}

#[test]
fn intel_takes_its_ip_what_is_listed_as_like_it_or_spirv() {
    for (code, gpu, want) in [
        ("intel_gpu_12_60_7", "12.60.7", Fit::Native),
        ("intel_gpu_12_55_8", "12.56.5", Fit::Compatible),
        // The other way round nothing is listed.
        ("intel_gpu_12_56_5", "12.55.8", Fit::Missing),
        ("intel_gpu_20_1_0", "20.2.0", Fit::Compatible),
        ("intel_gpu_12_60_7", "20.1.0", Fit::Missing),
        ("spir64", "20.1.0", Fit::Jit),
        ("amdgcnspirv", "20.1.0", Fit::Missing),
    ] {
        assert_eq!(fit_on(&[code], gpu), want, "{code} on {gpu}");
    }
    assert_eq!(fit_on(&["intel_gpu_12_60_7", "spir64"], "20.1.0"), Fit::Jit);
}
