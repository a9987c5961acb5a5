//! The rules: static records, each with its page in `rules/lints`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::dockerfile::{CHECKS, Check, Needs};
use crate::model::{Finding, Severity};
use crate::report::RuleText;

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Kebab-case, names the problem.
    pub id: &'static str,
    /// At its worst; the verdict it gives decides.
    pub severity: Severity,
    pub summary: &'static str,
    /// Markdown: what, why, example, fix, limits.
    pub page: &'static str,
    /// Of a rule of Dockerfiles: what it cannot do without. None: the rule is about images.
    pub needs: Option<Needs>,
    /// Whether it speaks without being asked for.
    pub on: bool,
}

macro_rules! rule {
    ($id:literal, $severity:ident, $summary:literal) => {
        Rule {
            id: $id,
            severity: Severity::$severity,
            summary: $summary,
            page: include_str!(concat!("../../rules/lints/", $id, ".md")),
            needs: None,
            on: true,
        }
    };
}

impl Rule {
    fn text(&self) -> RuleText {
        RuleText {
            id: self.id,
            severity: self.severity,
            summary: self.summary,
            page: self.page,
            // Some are of images and of Dockerfiles.
            of_dockerfiles: CHECKS.iter().any(|c| c.id == self.id),
        }
    }
}

/// All rules, by id.
pub static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    // What images and Dockerfiles are both asked for is one rule.
    let images = |c: &&Check| IMAGE_RULES.iter().any(|r| r.id == c.id);
    let of_dockerfiles = CHECKS.iter().filter(|c| !images(c)).map(|c| Rule {
        id: c.id,
        severity: c.severity,
        summary: c.summary,
        page: c.page,
        needs: Some(c.needs),
        on: c.on,
    });
    let mut all: Vec<Rule> = IMAGE_RULES.iter().copied().chain(of_dockerfiles).collect();
    all.sort_by_key(|r| r.id);
    all
});

/// The rules of images, by id.
const IMAGE_RULES: &[Rule] = &[
    rule!("catalog-stale", Note, "The facts that images are judged by are older than 180 days"),
    rule!("code-mostly-for-other-targets", Warning, "Half of a library's code or more is written for other chips"),
    rule!("compiler-too-old-for-target", Error, "A compiler used at run time does not know the target"),
    rule!("compressed-code-needs-newer-driver", Error, "zstd-compressed code on a driver before 550.54.14"),
    rule!("cpu-build-in-gpu-image", Error, "A framework without GPU support in an image that is meant for GPUs"),
    rule!("device-code-may-not-load", Warning, "Machine code whose loading on this GPU nobody promises (Jetson)"),
    rule!("device-code-not-readable", Warning, "Device code that could not be listed whole"),
    rule!("driver-capability-missing", Error, "NVIDIA_DRIVER_CAPABILITIES leaves out a library that is used"),
    rule!("driver-does-not-know-gpu", Error, "The driver is older than the GPU, or has dropped it"),
    rule!("driver-in-image", Error, "Files of NVIDIA's driver are in the image"),
    rule!(
        "driver-mount-not-on-path",
        Error,
        "The folder where the node mounts the driver is not on the loader's path"
    ),
    rule!("driver-too-old-for-cuda", Error, "The driver is below the floor of the CUDA major in use"),
    rule!(
        "forward-compat-not-usable",
        Error,
        "A forward-compat libcuda is taken where the GPU (804) or the host's driver (803) refuses it"
    ),
    rule!("forward-compat-used", Note, "The image runs through a forward-compat libcuda of a newer driver"),
    rule!("glibc-too-old", Error, "A file asks for a newer glibc than the image has"),
    rule!("gpu-devices-to-pass", Note, "What to start the container with, so that it gets an AMD or Intel GPU"),
    rule!("gpu-not-requested", Error, "The image does not ask the nvidia runtime for a GPU"),
    rule!("hsa-override-baked", Warning, "The image tells ROCm to take every GPU for another one"),
    rule!("intel-gpu-runtime-missing", Error, "Code for Intel's GPUs without their user-space driver"),
    rule!("jit-at-start", Warning, "Only PTX for the GPU: compiled by the driver at each cold start"),
    rule!("jit-compiler-missing", Warning, "A package compiles at run time and lacks a compiler, tool or header"),
    rule!("jit-disabled", Error, "Only PTX for the GPU, and the image forbids compiling it"),
    rule!("kpack-archive-missing", Error, "A HIP library's kernels lie in archives that are not in the image"),
    rule!("ld-cache-stale", Warning, "A needed library is found only after ldconfig has run"),
    rule!("library-data-missing", Error, "rocBLAS or another library has no data files for the GPU"),
    rule!("library-not-found", Error, "A GPU library that is needed is not in the image"),
    rule!("library-not-loadable", Error, "The file found first for a needed library cannot be loaded"),
    rule!("library-of-other-major", Error, "A needed GPU library is there only in another major version"),
    rule!("library-shadowed", Note, "The environment puts another version of a GPU library first"),
    rule!(
        "mixed-library-versions",
        Error,
        "Libraries that must be of one version would be loaded in different ones"
    ),
    rule!("needs-runtime-linker", Warning, "Only LTO-IR or tile IR: loads through a compiler at run time"),
    rule!("no-device-code-for-target", Error, "No device code for the GPU: \"no kernel image is available\""),
    rule!("no-gpu-code", Note, "The image holds no GPU code"),
    rule!("no-variant-for-image", Error, "A package brings variants of its library, none of them for this image"),
    rule!("opened-library-not-found", Error, "A library that is opened by name at run time is not in the image"),
    rule!("ptx-too-new-for-driver", Error, "PTX newer than the driver's compiler: \"unsupported toolchain\""),
    rule!("requirement-not-met", Error, "The driver does not meet NVIDIA_REQUIRE_*: some runtimes refuse to start"),
    rule!(
        "rocm-driver-not-tested",
        Warning,
        "ROCm in the image and the hosts' kernel driver were not tested together"
    ),
    rule!("scan-incomplete", Warning, "Part of the image could not be read"),
    rule!("special-code-for-other-targets", Note, "Kernels for other chips beside code that serves this one"),
    rule!("stub-driver-on-path", Error, "The loader would take a stub of libcuda"),
    rule!("symbol-version-not-found", Error, "A library lacks a symbol version that is asked of it"),
    rule!("system-library-not-found", Error, "A library of the distribution that is needed is not in the image"),
    rule!("undefined-symbol", Error, "The GPU library that would be loaded lacks a symbol: \"undefined symbol\""),
    rule!("versions-disagree", Warning, "Parts of the image name different CUDA releases in a way that matters"),
    rule!("waiver-expired", Error, "A waiver of the fleet file is past its day"),
    rule!("waiver-unmatched", Note, "A waiver of the fleet file matches nothing"),
    rule!("wrong-platform", Error, "Image or program for another CPU architecture: \"exec format error\""),
    rule!("xnack-mode-differs", Error, "AMD code for the other mode of retrying page faults than the GPU is in"),
];

/// The rule of an id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.id == id)
}

/// The rules that something was held against, and those that its findings name, by id.
pub fn texts<'a>(against: impl Fn(&Rule) -> bool, findings: impl Iterator<Item = &'a Finding>) -> Vec<RuleText> {
    let named: BTreeSet<&str> = findings.map(|f| f.rule.as_str()).collect();
    let told = |r: &&Rule| against(r) || named.contains(r.id);
    RULES.iter().filter(told).map(Rule::text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_page_and_every_page_a_rule() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("rules/lints");
        let mut pages: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap().trim_end_matches(".md").to_owned())
            .filter(|name| name != "README")
            .collect();
        pages.sort();
        let ids: Vec<&str> = RULES.iter().map(|r| r.id).collect();
        assert_eq!(pages, ids, "sorted by id");
        for rule in RULES.iter() {
            assert!(rule.page.starts_with(&format!("# {}\n", rule.id)), "{}", rule.id);
            for part in ["## Why", "## Example", "## Fix", "## Limits"] {
                assert!(rule.page.contains(part), "{} has no {part}", rule.id);
            }
        }
    }
}
