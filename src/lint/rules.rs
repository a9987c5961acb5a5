//! The rules: static records, each with its page in `rules/lints`.

use crate::model::Severity;

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
}

macro_rules! rule {
    ($id:literal, $severity:ident, $summary:literal) => {
        Rule {
            id: $id,
            severity: Severity::$severity,
            summary: $summary,
            page: include_str!(concat!("../../rules/lints/", $id, ".md")),
        }
    };
}

/// All rules, by id.
pub const RULES: &[Rule] = &[
    rule!("code-mostly-for-other-targets", Warning, "Half of a library's code or more is written for other chips"),
    rule!("compressed-code-needs-newer-driver", Error, "zstd-compressed code on a driver before 550.54.14"),
    rule!("device-code-may-not-load", Warning, "Machine code whose loading on this GPU nobody promises (Jetson)"),
    rule!("device-code-not-readable", Warning, "Device code that could not be listed whole"),
    rule!("driver-does-not-know-gpu", Error, "The driver is older than the GPU, or has dropped it"),
    rule!("driver-too-old-for-cuda", Error, "The driver is below the floor of the CUDA major in use"),
    rule!("jit-at-start", Warning, "Only PTX for the GPU: compiled by the driver at each cold start"),
    rule!("jit-disabled", Error, "Only PTX for the GPU, and the image forbids compiling it"),
    rule!("needs-runtime-linker", Warning, "Only LTO-IR or tile IR: loads through a compiler at run time"),
    rule!("no-device-code-for-target", Error, "No device code for the GPU: \"no kernel image is available\""),
    rule!("no-gpu-code", Note, "The image holds no GPU code"),
    rule!("no-variant-for-image", Error, "A package brings variants of its library, none of them for this image"),
    rule!("ptx-too-new-for-driver", Error, "PTX newer than the driver's compiler: \"unsupported toolchain\""),
    rule!("scan-incomplete", Warning, "Part of the image could not be read"),
    rule!("special-code-for-other-targets", Note, "Kernels for other chips beside code that serves this one"),
    rule!("waiver-expired", Error, "A waiver of the fleet file is past its day"),
    rule!("waiver-unmatched", Note, "A waiver of the fleet file matches nothing"),
    rule!("wrong-platform", Error, "Image or program for another CPU architecture: \"exec format error\""),
];

/// The rule of an id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.id == id)
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
            .collect();
        pages.sort();
        let ids: Vec<&str> = RULES.iter().map(|r| r.id).collect();
        assert_eq!(pages, ids, "sorted by id");
        for rule in RULES {
            assert!(rule.page.starts_with(&format!("# {}\n", rule.id)), "{}", rule.id);
            for part in ["## Why", "## Example", "## Fix", "## Limits"] {
                assert!(rule.page.contains(part), "{} has no {part}", rule.id);
            }
        }
    }
}
