//! By what a finding is known again in another run: code scanning matches alerts by it, and a baseline its findings.
//! Not its wording, which names versions and architectures, nor layers, nor its place among others.

use std::collections::{BTreeSet, HashMap};

use crate::model::{Digest, Finding};

/// What a finding is about, whatever its targets: of a Dockerfile's, file and the finding's own print; of an image's,
/// the rule, the component, the path and the libraries that it names, all without versions.
pub fn subject(finding: &Finding) -> String {
    match &finding.fingerprint {
        Some(print) => format!("{}\0{print}", finding.dockerfile.as_ref().map_or("", |d| d.file.as_str())),
        None => about(finding),
    }
}

/// The finding's own print; of an image's, of its subject and its targets. Several that are alike share it.
pub fn of(finding: &Finding) -> String {
    if let Some(print) = &finding.fingerprint {
        return print.clone();
    }
    let about = [about(finding), finding.targets.join(",")].join("\0");
    let mut print = Digest::of(about.as_bytes()).hex();
    print.truncate(32);
    print
}

/// Gives each finding of a report a print of its own, also those that are alike.
#[derive(Debug, Default)]
pub struct Prints(HashMap<String, usize>);

impl Prints {
    /// Where the file that a finding is in is told beside its print.
    pub fn beside_file(&mut self, finding: &Finding) -> String {
        let print = of(finding);
        if finding.fingerprint.is_some() { print } else { self.numbered(print) }
    }

    /// Where nothing else tells findings apart: `whole` is what all of them are about, the repository of an image.
    pub fn within(&mut self, whole: &str, finding: &Finding) -> String {
        let about = [whole, &subject(finding), &finding.targets.join(",")].join("\0");
        let mut print = Digest::of(about.as_bytes()).hex();
        print.truncate(32);
        self.numbered(print)
    }

    fn numbered(&mut self, mut print: String) -> String {
        let times = self.0.entry(print.clone()).and_modify(|n| *n += 1).or_insert(1);
        if *times > 1 {
            print.push_str(&format!(":{times}"));
        }
        print
    }
}

/// Schemes that stand before a path: what follows their colon is no tag.
const SCHEMES: [&str; 7] = ["oci", "oci-archive", "docker-archive", "dir", "tar", "file", "squashfs"];

/// A reference without tag and digest.
pub fn repository(reference: &str) -> &str {
    let name = reference.split_once("@sha256:").map_or(reference, |(name, _)| name);
    match name.rsplit_once(':') {
        Some((head, tag)) if !tag.contains('/') && !SCHEMES.contains(&head) => head,
        _ => name,
    }
}

fn about(finding: &Finding) -> String {
    let path = finding.path.as_ref().map(|p| plain(&p.to_string())).unwrap_or_default();
    let component = finding.component.as_deref().unwrap_or_default();
    let libraries: Vec<String> = libraries(&finding.message).into_iter().collect();
    [&finding.rule, component, &path, &libraries.join(",")].join("\0")
}

/// The libraries that a message names: two that are missing from one file are two findings.
fn libraries(message: &str) -> BTreeSet<String> {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '-' | '/');
    let words = message.split(|c| !part_of_name(c)).map(|w| w.trim_end_matches(['.', '-']));
    let names = words.filter_map(|w| w.rsplit('/').next()).filter(|n| is_library(n));
    names.map(plain_name).collect()
}

fn is_library(name: &str) -> bool {
    name.find(".so").is_some_and(|at| at > 0 && matches!(name.as_bytes().get(at + 3), None | Some(b'.')))
}

/// A path without versions: `lib/python3.11/a/libx-1b2c3d4e.so.12.6` is `lib/python/a/libx.so`.
fn plain(path: &str) -> String {
    path.split('/').map(plain_name).collect::<Vec<_>>().join("/")
}

/// A file's name without versions: no dotted numbers, nothing behind `.so`, no hash before it, no Python's number.
pub fn plain_name(name: &str) -> String {
    let mut name = name.to_owned();
    if is_library(&name) {
        let at = name.find(".so").unwrap_or(name.len());
        let stem = &name[..at];
        // auditwheel puts eight digits of a hash there.
        let hash = stem.rsplit_once('-').filter(|(_, h)| h.len() == 8 && h.bytes().all(|b| b.is_ascii_hexdigit()));
        name = format!("{}.so", hash.map_or(stem, |(head, _)| head));
    }
    if let Some(at) = name.find("cpython-") {
        let from = at + "cpython-".len();
        let digits = name[from..].bytes().take_while(u8::is_ascii_digit).count();
        name.replace_range(from..from + digits, "");
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let run = rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(rest.len(), |n| at + n);
        let number = rest[at..run].trim_end_matches('.');
        out.push_str(&rest[..at]);
        if !number.contains('.') {
            out.push_str(number);
        }
        rest = &rest[at + number.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ImagePath, Severity, Verdict};

    fn finding(message: &str, path: &str) -> Finding {
        let draft = Finding::new("library-not-found", Severity::Error, Verdict::Fail, message);
        Finding { path: Some(ImagePath::new(path)), component: Some("torch".into()), ..draft }
    }

    #[test]
    fn names_lose_their_versions_and_nothing_else() {
        for (name, want) in [
            ("libcublas.so.12.6.4", "libcublas.so"),
            ("libcudart-9335f6a2.so.12", "libcudart.so"),
            ("_C.cpython-311-x86_64-linux-gnu.so", "_C.cpython--x86_64-linux-gnu.so"),
            ("cuda-12.8", "cuda-"),
            ("python3.11", "python"),
            ("libbitsandbytes_cuda121.so", "libbitsandbytes_cuda121.so"),
            ("sm_80.cubin", "sm_80.cubin"),
            ("a.sock", "a.sock"),
            (".so", ".so"),
            ("torch-2.7.1+cu126.dist-info", "torch-+cu126.dist-info"),
            ("é9.é", "é9.é"),
        ] {
            assert_eq!(plain_name(name), want, "{name}");
        }
    }

    #[test]
    fn another_build_s_finding_is_the_same() {
        let a = finding("torch 2.6.0 lacks libcudnn.so.9 of 9.1", "opt/lib/python3.11/torch/lib/libc10.so");
        let mut b = finding("torch 2.7.1 lacks libcudnn.so.10 of 10.2", "opt/lib/python3.12/torch/lib/libc10.so");
        b.layer = Some(Digest::of(b"x"));
        assert_eq!((of(&a), subject(&a)), (of(&b), subject(&b)));
    }

    #[test]
    fn other_subjects_are_others() {
        let a = finding("lacks libcudnn.so.9", "a/libx.so");
        for other in [
            finding("lacks libnccl.so.2", "a/libx.so"),
            finding("lacks libcudnn.so.9", "a/liby.so"),
            Finding { rule: "library-shadowed".into(), ..a.clone() },
            Finding { component: None, ..a.clone() },
        ] {
            assert_ne!(of(&a), of(&other), "{other:?}");
        }
        let on = |target: &str| Finding { targets: vec![target.into()], ..a.clone() };
        assert_ne!(of(&on("a")), of(&on("b")));
        assert_eq!(subject(&on("a")), subject(&on("b")), "targets are counted apart");
    }
}
