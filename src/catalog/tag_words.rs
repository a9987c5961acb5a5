//! The words of an image's tag: `12.4.1-cudnn-devel-ubuntu22.04`, `rocm6.1_ubuntu22.04_py3.10_pytorch_2.1.2`.

use super::bases::Flavour;

/// What a tag says, word by word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TagWords {
    /// All words, lower case.
    pub all: Vec<String>,
    /// The version at the tag's head: "12.4.1" of `12.4.1-base`, "24.05" of `24.05-py3`.
    pub number: Option<String>,
    /// Of a word such as `cuda12.1` or `cu126`.
    pub cuda: Option<String>,
    pub rocm: Option<String>,
    /// `cudnn`, with its major where one is written.
    pub cudnn: Option<Option<u32>>,
    pub flavour: Option<Flavour>,
    pub distro: Option<String>,
    pub torch: Option<String>,
}

/// Names of distributions as tags write them, without their version.
const DISTROS: &[&str] = &[
    "ubuntu",
    "debian",
    "centos",
    "rockylinux",
    "rocky",
    "almalinux",
    "ubi",
    "oraclelinux",
    "opensuse",
    "fedora",
    "alpine",
    "amzn",
    "amazonlinux",
    "azl",
    "azurelinux",
    "cm",
    "sles",
    "rhel",
];

/// Releases that go by a name.
const CODENAMES: &[(&str, &str)] = &[
    ("xenial", "ubuntu16.04"),
    ("bionic", "ubuntu18.04"),
    ("focal", "ubuntu20.04"),
    ("jammy", "ubuntu22.04"),
    ("noble", "ubuntu24.04"),
    ("stretch", "debian9"),
    ("buster", "debian10"),
    ("bullseye", "debian11"),
    ("bookworm", "debian12"),
    ("trixie", "debian13"),
];

pub(super) fn version(text: &str) -> Option<String> {
    let good = text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && !text.ends_with('.');
    good.then(|| text.to_owned())
}

/// Without a `v`, and without what a pre-release or a build adds: "v0.10.2rc1" is 0.10.2.
fn head(word: &str) -> Option<String> {
    let word = word.strip_prefix('v').unwrap_or(word);
    let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(word.len());
    version(word.get(..end)?.trim_end_matches('.'))
}

/// `cu126` and `cuda126` are 12.6, `cu12` is 12.
fn cuda(word: &str) -> Option<String> {
    let digits = version(word.strip_prefix("cuda").or_else(|| word.strip_prefix("cu"))?)?;
    if digits.contains('.') {
        return Some(digits);
    }
    match digits.len() {
        1 | 2 => Some(digits),
        3 | 4 => Some(format!("{}.{}", digits.get(..2)?, digits.get(2..3)?)),
        _ => None,
    }
}

/// `rocm630` is 6.3.0.
fn dotted(version: String) -> String {
    if version.contains('.') || !(2..=3).contains(&version.len()) {
        return version;
    }
    version.chars().map(String::from).collect::<Vec<_>>().join(".")
}

pub(super) fn distro(word: &str) -> Option<String> {
    if let Some((_, name)) = CODENAMES.iter().find(|(code, _)| *code == word) {
        return Some((*name).to_owned());
    }
    let at = word.find(|c: char| c.is_ascii_digit())?;
    let (name, number) = word.split_at_checked(at)?;
    let name = DISTROS.iter().find(|d| **d == name)?;
    Some(format!("{name}{}", version(number)?))
}

/// Reads a tag.
pub(super) fn words(tag: &str) -> TagWords {
    let tag = tag.to_ascii_lowercase();
    let all: Vec<String> = tag.split(['-', '_', '+']).filter(|w| !w.is_empty()).map(str::to_owned).collect();
    let mut read = TagWords { number: all.first().and_then(|w| head(w)), ..TagWords::default() };
    let mut before = "";
    for word in &all {
        let after = |name: &str| word.strip_prefix(name).and_then(version);
        if let Some(cuda) = cuda(word) {
            read.cuda = read.cuda.or(Some(cuda));
        } else if let Some(rocm) = after("rocm").map(dotted) {
            read.rocm = read.rocm.or(Some(rocm));
        } else if let Some(cudnn) = word.strip_prefix("cudnn") {
            read.cudnn = Some(cudnn.split('.').next().and_then(|m| m.parse().ok()));
        } else if let Some(torch) = after("torch").or_else(|| after("pytorch")) {
            read.torch = Some(torch);
        } else if let Some(name) = distro(word) {
            read.distro = Some(name);
        } else {
            let number = version(word);
            match (before, number) {
                ("cuda", Some(n)) => read.cuda = read.cuda.or(Some(n)),
                ("rocm", Some(n)) => read.rocm = read.rocm.or(Some(n)),
                ("torch" | "pytorch" | "release", Some(n)) if all.iter().any(|w| w.ends_with("torch")) => {
                    read.torch = read.torch.or(Some(n));
                }
                // `centos-7`, `ubuntu-22.04`.
                (name, Some(n)) if DISTROS.contains(&name) => read.distro = Some(format!("{name}{n}")),
                _ => match word.as_str() {
                    "base" => read.flavour = read.flavour.or(Some(Flavour::Base)),
                    "runtime" => read.flavour = Some(Flavour::Runtime),
                    "devel" => read.flavour = Some(Flavour::Devel),
                    _ => {}
                },
            }
        }
        before = word;
    }
    read.all = all;
    read
}
