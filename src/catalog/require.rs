//! `NVIDIA_REQUIRE_*`: the conditions that a container runtime checks before it starts an image.
//!
//! Two evaluators are in use and differ: libnvidia-container's (mode `legacy`, the hook of Docker's `--gpus`) and the
//! container toolkit's own for Tegra (mode `csv`). CDI checks nothing. Semantics and vectors:
//! `rules/data/require_vectors.toml`, read in libnvidia-container `src/cli/dsl.c` and nvidia-container-toolkit
//! `internal/requirements`.

use std::cmp::Ordering;

use crate::model::{ConfigFacts, CudaVersion};

/// What the host's driver says of itself and of one GPU. What is not known makes a rule true, as where there is no
/// driver or no device.
#[derive(Debug, Clone, Copy, Default)]
pub struct Properties<'a> {
    /// The driver's own CUDA, `12.2`: compat libraries in the image do not change it.
    pub cuda: Option<&'a str>,
    pub driver: Option<&'a str>,
    /// Compute capability, `8.9`.
    pub arch: Option<&'a str>,
    pub brand: Option<&'a str>,
}

/// What the check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Met,
    Unmet,
    /// "invalid expression": refused as well.
    Invalid,
}

/// The requirements of an image: (variable, predicate), by variable. All must hold.
pub fn requirements(config: &ConfigFacts) -> Vec<(String, String)> {
    if config.var("NVIDIA_DISABLE_REQUIRE").is_some_and(is_true) {
        return Vec::new();
    }
    let mut out: Vec<(String, String)> = Vec::new();
    for (name, _) in &config.env {
        let counts = name.starts_with("NVIDIA_REQUIRE_") && !name.starts_with("NVIDIA_REQUIRE_JETPACK");
        if counts && !out.iter().any(|(n, _)| n == name) {
            out.push((name.clone(), config.var(name).unwrap_or_default().to_owned()));
        }
    }
    out.sort();
    if let Some(version) = legacy_version(config) {
        let mut parts = version.split('.');
        let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("0"));
        out.push(("CUDA_VERSION".to_owned(), format!("cuda>={major}.{minor}")));
    }
    out
}

/// An image from before the variables: `CUDA_VERSION` is set and `NVIDIA_REQUIRE_CUDA` is not. It asks for its CUDA,
/// for all devices and for all capabilities.
pub fn legacy_version(config: &ConfigFacts) -> Option<&str> {
    let version = config.var("CUDA_VERSION").filter(|v| !v.is_empty())?;
    config.var("NVIDIA_REQUIRE_CUDA").is_none_or(str::is_empty).then_some(version)
}

/// Go's strconv.ParseBool.
pub fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
}

/// libnvidia-container's check of one predicate: groups separated by blanks, one of which must hold; rules separated
/// by commas, all of which must hold.
pub fn legacy(predicate: &str, host: &Properties<'_>) -> Answer {
    let mut answer = Answer::Met;
    for group in predicate.split(' ').filter(|g| !g.is_empty()) {
        let rules = group.split(',').filter(|r| !r.is_empty());
        let mut rules = rules.peekable();
        if rules.peek().is_none() {
            continue;
        }
        answer = Answer::Met;
        for rule in rules {
            answer = legacy_rule(rule, host);
            if answer != Answer::Met {
                break;
            }
        }
        if answer != Answer::Unmet {
            return answer;
        }
    }
    answer
}

/// "cuda>=12.8": name, operator, value.
fn split(rule: &str) -> Option<(&str, &str, &str)> {
    let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!');
    let start = rule.find(is_sign)?;
    let end = rule[start..].find(|c| !is_sign(c)).map_or(rule.len(), |n| start + n);
    let (name, sign, value) = (&rule[..start], &rule[start..end], &rule[end..]);
    (!name.is_empty() && !value.is_empty()).then_some((name, sign, value))
}

/// Whether an operator accepts an order; `None`: no operator. A lone `!` is taken for `!=`.
fn accepts(sign: &str, order: Ordering) -> Option<bool> {
    Some(match sign {
        "=" => order.is_eq(),
        "!=" | "!" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => return None,
    })
}

/// Longest text of a rule that the check can print; a failing one that is longer ends it.
const LONGEST: usize = 128;

fn legacy_rule(rule: &str, host: &Properties<'_>) -> Answer {
    let Some((name, sign, value)) = split(rule) else { return Answer::Invalid };
    if accepts(sign, Ordering::Equal).is_none() {
        return Answer::Invalid;
    }
    let known = match name.to_ascii_lowercase().as_str() {
        "cuda" => host.cuda,
        "driver" => host.driver,
        "arch" => host.arch,
        "brand" => {
            if !matches!(sign, "=" | "!=" | "!") {
                return Answer::Invalid;
            }
            let Some(brand) = host.brand else { return Answer::Met };
            let order = if brand.eq_ignore_ascii_case(value) { Ordering::Equal } else { Ordering::Less };
            return verdict(accepts(sign, order), rule);
        }
        _ => return Answer::Invalid,
    };
    let Some(known) = known else { return Answer::Met };
    match order(known, value) {
        Some(order) => verdict(accepts(sign, order), rule),
        None => Answer::Invalid,
    }
}

fn verdict(accepted: Option<bool>, rule: &str) -> Answer {
    match accepted {
        Some(true) => Answer::Met,
        Some(false) if rule.len() < LONGEST => Answer::Unmet,
        Some(false) | None => Answer::Invalid,
    }
}

/// Compares dotted numbers part by part; parts that are absent are zero. `None`: something else is in them.
fn order(a: &str, b: &str) -> Option<Ordering> {
    let parts = |text: &str| -> Option<Vec<u64>> {
        let dotted = text.bytes().all(|c| c.is_ascii_digit() || c == b'.');
        let number = |part: &str| if part.is_empty() { Some(0) } else { part.parse().ok() };
        if dotted { text.split('.').map(number).collect() } else { None }
    };
    let (mut a, mut b) = (parts(a)?, parts(b)?);
    let longest = a.len().max(b.len());
    a.resize(longest, 0);
    b.resize(longest, 0);
    Some(a.cmp(&b))
}

/// The container toolkit's check on Tegra (mode `csv`): only `cuda` and `arch` have values there, names are
/// case-sensitive, unknown ones are passed over, and a rule without an operator spoils the whole.
pub fn csv(predicate: &str, host: &Properties<'_>) -> Answer {
    let mut groups: Vec<Vec<(&str, &str, &str)>> = Vec::new();
    for group in predicate.split(' ').filter(|g| !g.is_empty()) {
        let mut rules = Vec::new();
        for rule in group.split(',').filter(|r| !r.is_empty()) {
            let Some(parts) = split(rule).filter(|r| accepts(r.1, Ordering::Equal).is_some()) else {
                return Answer::Invalid;
            };
            if matches!(parts.0, "cuda" | "driver" | "arch" | "brand") {
                rules.push(parts);
            }
        }
        if !rules.is_empty() {
            groups.push(rules);
        }
    }
    if groups.is_empty() {
        return Answer::Met;
    }
    let holds = |(name, sign, value): &(&str, &str, &str)| match *name {
        "cuda" => holds_for(host.cuda, sign, value),
        "arch" => holds_for(host.arch, sign, value),
        "driver" => false,
        // No brand is known there: an empty text is compared.
        _ => accepts(sign, "".cmp(value)).unwrap_or(false),
    };
    if groups.iter().any(|g| g.iter().all(holds)) { Answer::Met } else { Answer::Unmet }
}

fn holds_for(known: Option<&str>, sign: &str, value: &str) -> bool {
    let Some(known) = known else { return true };
    order(known, value).and_then(|o| accepts(sign, o)).unwrap_or(false)
}

/// What the runtime prints when a predicate is refused: it names the first group, whichever failed.
pub fn message(predicate: &str, answer: Answer) -> Option<String> {
    let first = predicate.split(' ').find(|g| !g.is_empty()).unwrap_or_default();
    match answer {
        Answer::Met => None,
        Answer::Invalid => Some("requirement error: invalid expression".to_owned()),
        Answer::Unmet if first.starts_with("cuda>=") => Some(format!(
            "requirement error: unsatisfied condition: {first}, please update your driver to a newer version, or use an \
             earlier cuda container"
        )),
        Answer::Unmet => Some(format!("requirement error: unsatisfied condition: {first}")),
    }
}

/// The CUDA version that an image declares to need, and the variable that says so.
pub fn declared_cuda(config: &ConfigFacts) -> Option<(&'static str, CudaVersion)> {
    const CUDA: &str = "NVIDIA_REQUIRE_CUDA";
    let asked = config.var(CUDA).and_then(|text| {
        let rules = text.split([' ', ',']).filter_map(split);
        rules.filter(|r| r.0.eq_ignore_ascii_case("cuda") && r.1 == ">=").find_map(|r| r.2.parse().ok())
    });
    let version = || Some(("CUDA_VERSION", config.var("CUDA_VERSION")?.parse().ok()?));
    asked.map(|cuda| (CUDA, cuda)).or_else(version)
}

/// A predicate that is not met, group by group: what was asked and what is there. Groups that fail over one property
/// are told together, in the predicate's order.
pub fn failures(predicate: &str, host: &Properties<'_>, check: fn(&str, &Properties<'_>) -> Answer) -> Vec<String> {
    let mut brands: Vec<&str> = Vec::new();
    let mut branches: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut told: Vec<Told<'_>> = Vec::new();
    for group in predicate.split(' ').filter(|g| !g.is_empty()) {
        let rules = || group.split(',').filter(|r| !r.is_empty());
        let Some(rule) = rules().find(|r| check(r, host) != Answer::Met) else { continue };
        let Some((name, sign, value)) = split(rule) else {
            told.push(Told::Rule(group, "not an expression".to_owned()));
            continue;
        };
        let brand = rules().filter_map(split).find(|r| r.0.eq_ignore_ascii_case("brand") && r.1 == "=");
        match (name.to_ascii_lowercase().as_str(), brand) {
            ("brand", _) if sign == "=" => {
                if brands.is_empty() {
                    told.push(Told::Brands);
                }
                if !brands.contains(&value) {
                    brands.push(value);
                }
            }
            ("driver", Some((_, _, of))) if one_branch(group).is_some() => {
                let branch = one_branch(group).unwrap_or_default();
                match branches.iter_mut().find(|(b, _)| *b == of) {
                    Some((_, all)) => all.push(branch),
                    None => {
                        told.push(Told::Branches(branches.len()));
                        branches.push((of, vec![branch]));
                    }
                }
            }
            (name, _) => {
                let (what, is) = match name {
                    "cuda" => ("the driver has", host.cuda),
                    "driver" => ("the driver is", host.driver),
                    "arch" => ("the GPU is", host.arch),
                    "brand" => ("the GPU is", host.brand),
                    _ => ("not understood", None),
                };
                let is = is.map_or(what.to_owned(), |is| format!("{what} {is}"));
                told.push(Told::Rule(group, is));
            }
        }
    }
    let text = |told: &Told<'_>| match told {
        Told::Brands => {
            let more = if brands.len() > FEW { "|…" } else { "" };
            let few = brands.iter().take(FEW).copied().collect::<Vec<_>>().join("|");
            format!("brand={few}{more}: the GPU is {}", host.brand.unwrap_or("of none"))
        }
        Told::Branches(row) => {
            let (brand, all) = &branches[*row];
            format!(
                "brand={brand} with driver {}: the driver is {}",
                all.join("|"),
                host.driver.unwrap_or("another")
            )
        }
        Told::Rule(group, is) => format!("{group}: {is}"),
    };
    told.iter().map(text).collect()
}

/// Brands that are told by name.
const FEW: usize = 4;

/// What [`failures`] tells, in order.
enum Told<'a> {
    Brands,
    Branches(usize),
    Rule(&'a str, String),
}

/// The branch of `brand=B,driver>=535,driver<536`.
fn one_branch(group: &str) -> Option<&str> {
    let mut rules = group.split(',').filter_map(split).filter(|r| r.0.eq_ignore_ascii_case("driver"));
    let (from, to) = (rules.next()?, rules.next()?);
    let next = from.2.parse::<u32>().ok()?.checked_add(1)?;
    (rules.next().is_none() && from.1 == ">=" && to.1 == "<" && to.2.parse() == Ok(next)).then_some(from.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: &str = include_str!("../../rules/data/require_vectors.toml");

    #[test]
    fn all_vectors_of_the_table() {
        let table: toml::Table = VECTORS.parse().unwrap();
        let vectors = table["vector"].as_array().unwrap();
        assert!(vectors.len() > 40);
        for vector in vectors {
            let text = |key: &str| vector.get(key).and_then(|v| v.as_str());
            let host =
                Properties { cuda: text("cuda"), driver: text("driver"), arch: text("arch"), brand: text("brand") };
            let answer = match legacy(text("expr").unwrap(), &host) {
                Answer::Met => "ok",
                Answer::Unmet => "fail",
                Answer::Invalid => "error",
            };
            assert_eq!(Some(answer), text("expect"), "{vector}");
        }
    }

    #[test]
    fn all_images_of_the_table() {
        let table: toml::Table = VECTORS.parse().unwrap();
        for vector in table["image_vector"].as_array().unwrap() {
            let Some(wanted) = vector.get("requirements").and_then(|r| r.as_array()) else { continue };
            let env = vector["env"].as_table().unwrap();
            let env = env.iter().map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())).collect();
            let config = ConfigFacts { env, ..ConfigFacts::default() };
            let mut wanted: Vec<String> = wanted.iter().map(|w| w.as_str().unwrap().to_owned()).collect();
            let mut got: Vec<String> = requirements(&config).into_iter().map(|(_, p)| p).collect();
            wanted.sort();
            got.sort();
            assert_eq!(got, wanted, "{vector}");
            if let Some(legacy) = vector.get("legacy").and_then(|l| l.as_bool()) {
                assert_eq!(legacy_version(&config).is_some(), legacy, "{vector}");
            }
        }
    }

    #[test]
    fn tegra_looks_at_cuda_and_arch_alone() {
        let host = Properties { cuda: Some("12.2"), arch: Some("8.7"), ..Properties::default() };
        assert_eq!(csv("cuda>=12.2", &host), Answer::Met);
        assert_eq!(csv("CUDA>=13.0", &host), Answer::Met);
        assert_eq!(csv("cuda>=12.8 brand=tesla,driver>=535,driver<536", &host), Answer::Unmet);
        assert_eq!(csv("cuda>=12.0 broken", &host), Answer::Invalid);
        assert_eq!(csv("arch>=8.0,gpu>=1", &host), Answer::Met);
    }

    #[test]
    fn failures_are_told_with_what_is_there() {
        let host =
            Properties { cuda: Some("12.4"), driver: Some("550"), arch: Some("8.9"), brand: Some("geforce") };
        let text = "cuda>=12.8 brand=tesla,driver>=535,driver<536 brand=grid,driver>=535,driver<536 driver>=600";
        assert_eq!(
            failures(text, &host, legacy),
            [
                "cuda>=12.8: the driver has 12.4",
                "brand=tesla|grid: the GPU is geforce",
                "driver>=600: the driver is 550"
            ]
        );
        let tesla = Properties { brand: Some("tesla"), ..host };
        let text = "brand=tesla,driver>=535,driver<536 brand=tesla,driver>=565,driver<566 arch=9.0 nonsense";
        assert_eq!(
            failures(text, &tesla, legacy),
            [
                "brand=tesla with driver 535|565: the driver is 550",
                "arch=9.0: the GPU is 8.9",
                "nonsense: not an expression"
            ]
        );
    }

    #[test]
    fn what_an_image_declares() {
        let declared = |env: &[(&str, &str)]| {
            let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let found = ConfigFacts { env, ..ConfigFacts::default() };
            declared_cuda(&found).map(|(name, cuda)| format!("{name} {cuda}"))
        };
        let asked = ("NVIDIA_REQUIRE_CUDA", "cuda>=12.8 brand=tesla,driver>=535");
        assert_eq!(declared(&[asked, ("CUDA_VERSION", "12.9.1")]).as_deref(), Some("NVIDIA_REQUIRE_CUDA 12.8"));
        assert_eq!(declared(&[("CUDA_VERSION", "12.9.1")]).as_deref(), Some("CUDA_VERSION 12.9"));
        assert_eq!(declared(&[("NVIDIA_REQUIRE_CUDA", "brand=tesla")]), None);
    }

    #[test]
    fn the_message_names_the_first_group() {
        let text = "cuda>=12.8 brand=tesla,driver>=535";
        assert!(message(text, Answer::Unmet).unwrap().contains("unsatisfied condition: cuda>=12.8, please update"));
        assert_eq!(
            message("brand=tesla", Answer::Unmet).unwrap(),
            "requirement error: unsatisfied condition: brand=tesla"
        );
        assert_eq!(message(text, Answer::Met), None);
    }
}
