//! Tables over many hosts, kept in testdata/golden. `UPDATE_GOLDEN=1 cargo test --lib lint` writes them anew.

use std::fmt::Write as _;
use std::sync::Arc;

use super::case;
use super::lab::{Lab, at};
use crate::catalog::Catalog;
use crate::catalog::require::{Answer, Properties, legacy};
use crate::config::parse_target;
use crate::model::*;

fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} is stale; UPDATE_GOLDEN=1 cargo test --lib lint writes it anew");
}

const ALL_2022: &[&str] =
    &["unknown", "nvidia", "nvidiartx", "geforce", "geforcertx", "quadro", "quadrortx", "titan", "titanrtx"];
const PROFESSIONAL: &[&str] = &[
    "unknown",
    "grid",
    "tesla",
    "nvidia",
    "quadro",
    "quadrortx",
    "nvidiartx",
    "vapps",
    "vpc",
    "vcs",
    "vws",
    "cloudgaming",
];

/// CUDA version, branches of tesla, brands, their branches.
type Official = (&'static str, &'static [u32], &'static [&'static str], &'static [u32]);

/// Conditions of NVIDIA's images: the CUDA version, the branches that are named for tesla alone, the brands, their
/// branches. Of 12.0, 12.1 and 12.5 to 12.8 only the first branches were seen.
const OFFICIAL: &[Official] = &[
    ("11.7", &[450, 470, 510], ALL_2022, &[470, 510]),
    ("11.8", &[450, 470, 510, 515], ALL_2022, &[470, 510, 515]),
    ("12.0", &[450, 470, 510, 515], ALL_2022, &[470, 510, 515]),
    ("12.1", &[450, 470, 510, 515], ALL_2022, &[470, 510, 515]),
    ("12.5", &[], PROFESSIONAL, &[470, 535, 550]),
    ("12.6", &[], PROFESSIONAL, &[470, 535, 550]),
    ("12.8", &[], PROFESSIONAL, &[470, 535, 550]),
    ("12.9", &[], PROFESSIONAL, &[535, 550, 560, 565, 570]),
    ("13.0", &[], PROFESSIONAL, &[535, 550, 565, 570, 575]),
    ("13.1", &[], PROFESSIONAL, &[535, 550, 570, 575, 580]),
    ("13.2", &[], PROFESSIONAL, &[535, 570, 580, 590]),
];

fn official(version: &str) -> String {
    let (cuda, tesla, brands, branches) = OFFICIAL.iter().find(|o| o.0 == version).unwrap();
    let mut text = format!("cuda>={cuda}");
    let mut group = |brand: &str, branch: u32| {
        write!(text, " brand={brand},driver>={branch},driver<{}", branch + 1).unwrap();
    };
    tesla.iter().for_each(|branch| group("tesla", *branch));
    for brand in *brands {
        branches.iter().for_each(|branch| group(brand, *branch));
    }
    text
}

#[test]
fn official_conditions_by_brand_and_driver() {
    let catalog = Catalog::embedded();
    let drivers = [470, 525, 535, 550, 560, 570, 575, 580, 590].map(DriverVersion::branch_floor);
    let mut text = "Official NVIDIA_REQUIRE_CUDA conditions under a runtime that checks them.\n\
                    Of 12.0, 12.1 and 12.5 to 12.8 only the first branches are known.\n\n"
        .to_owned();
    write!(text, "{:<18}", "CUDA   brand").unwrap();
    drivers.iter().for_each(|d| write!(text, "{:>9}", format!("R{d}")).unwrap());
    text.push('\n');
    for (cuda, ..) in OFFICIAL {
        let predicate = official(cuda);
        for brand in ["geforce", "tesla", "nvidia", "unknown"] {
            write!(text, "{:<18}", format!("{cuda:<6} {brand}")).unwrap();
            for driver in &drivers {
                let native = catalog.drivers().native_cuda(driver).unwrap().to_string();
                let release = format!("{driver}.54.15");
                let host = Properties {
                    cuda: Some(&native),
                    driver: Some(&release),
                    arch: Some("8.0"),
                    brand: Some(brand),
                };
                let word = if legacy(&predicate, &host) == Answer::Met { "ok" } else { "refused" };
                write!(text, "{word:>9}").unwrap();
            }
            text.push('\n');
        }
    }
    golden("require_official.txt", &text);
}

/// torch for CUDA 13.0: by itself, or on NVIDIA's base with its conditions and its forward-compat library.
fn torch_cu130(base: bool) -> Lab {
    let mut lab = Lab::new();
    lab.library("SITE/torch/lib/libtorch_cuda.so", ("torch", "2.9.1+cu130"), "libtorch_cuda.so", true).needed =
        vec!["libcudart.so.13".into()];
    let code = |arch: &str| Item {
        arch: arch.parse().unwrap(),
        form: Form::Sass,
        kind: 2,
        isa: None,
        packing: Packing::Zstd,
        toolkit: None,
    };
    let archs = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"];
    let module = &mut Arc::get_mut(&mut lab.0.files[0].facts).unwrap().modules[0];
    module.items = archs.iter().map(|a| ItemCount { item: code(a), entries: 1, bytes: 1 }).collect();
    lab.0.claims.push(Claim {
        component: "torch".into(),
        kind: ClaimKind::Cuda,
        value: "13.0".into(),
        said_by: at("SITE/torch/version.py"),
    });
    lab.env(&[("NVIDIA_VISIBLE_DEVICES", "all"), ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")]);
    if base {
        let path = "usr/local/cuda-13.0/compat/libcuda.so.580.82.07";
        lab.library(path, ("cuda-compat-13-0", "580.82.07"), "libcuda.so.1", false);
        lab.env(&[("CUDA_VERSION", "13.0.1"), ("NVIDIA_REQUIRE_CUDA", &official("13.0"))]);
    }
    lab
}

/// "fail 35": the verdict and the errors that are named beside it.
fn word(lab: &Lab, gpu: &str, driver: u32, runtime: Runtime) -> String {
    let catalog = Catalog::embedded();
    let mut target = parse_target(&format!("{gpu}@{driver}"), catalog).unwrap();
    target.runtime = runtime;
    let roles = super::roles::roles(&lab.0, catalog, &[]);
    let image = (&lab.0, &roles[..], &[][..]);
    let case = case::judge(&target, &[image], catalog, false).unwrap();
    let mut text = case.verdict.to_string();
    let bad = case.problems.iter().filter(|p| p.verdict < Verdict::Ok);
    for problem in bad {
        for code in ["35", "803", "804"].iter().filter(|c| problem.message.contains(&format!("({c})"))) {
            write!(text, " {code}").unwrap();
        }
    }
    if case.compat.as_ref().is_some_and(|c| c.driver().is_some()) {
        text.push_str(" compat");
    }
    text
}

#[test]
fn torch_for_cuda_13_on_all_drivers() {
    let mut text =
        "torch 2.9.1+cu130: verdict, errors named, whether through the image's forward-compat library.\n"
            .to_owned();
    let columns = [
        ("RTX 4090", Runtime::Legacy),
        ("RTX 4090", Runtime::Cdi),
        ("A100", Runtime::Legacy),
        ("A100", Runtime::Cdi),
    ];
    for (base, title) in [(false, "without a CUDA base"), (true, "on nvidia/cuda:13.0.1, compat 580.82.07")] {
        let lab = torch_cu130(base);
        write!(text, "\n{title}\n{:<6}", "").unwrap();
        for (gpu, runtime) in columns {
            write!(text, "{:<18}", format!("{gpu} {runtime:?}").to_lowercase()).unwrap();
        }
        text = text.trim_end().to_owned();
        text.push('\n');
        let branches = Catalog::embedded().drivers().branches().iter().map(|b| b.branch);
        for branch in branches.filter(|b| (525..=620).contains(b)) {
            write!(text, "{:<6}", format!("R{branch}")).unwrap();
            for (gpu, runtime) in columns {
                write!(text, "{:<18}", word(&lab, gpu, branch, runtime)).unwrap();
            }
            text = text.trim_end().to_owned();
            text.push('\n');
        }
    }
    golden("torch_cu130.txt", &text);
}
