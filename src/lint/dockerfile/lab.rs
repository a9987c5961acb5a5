//! Dockerfiles by hand, for the tests of rules.

use std::collections::BTreeMap;

use super::{CHECKS, Found, Lint, Loudness};
use crate::catalog::Catalog;
use crate::dockerfile::commands::{Files, asks};
use crate::dockerfile::edit;
use crate::dockerfile::parse::parse;
use crate::dockerfile::reading::{Inputs, Reading, read};
use crate::model::Target;

/// Files beside the Dockerfile, by path.
pub struct Beside<'a>(pub &'a [(&'a str, &'a str)]);

impl Files for Beside<'_> {
    fn read(&self, path: &str) -> Option<Result<Vec<u8>, String>> {
        let wanted = path.trim_start_matches("./");
        self.0.iter().find(|(p, _)| *p == wanted).map(|(_, text)| Ok(text.as_bytes().to_vec()))
    }
}

/// What one rule says of a file, with targets as on the command line (`a100@535`) and files beside it.
pub fn lint_with(rule: &str, dockerfile: &str, targets: &[&str], files: &[(&str, &str)]) -> Vec<Found> {
    let targets: Vec<Target> = targets.iter().map(|t| target(t)).collect();
    lint_on(rule, dockerfile, &targets, files)
}

/// The same with targets that say more than a command line can.
pub fn lint_on(rule: &str, dockerfile: &str, targets: &[Target], files: &[(&str, &str)]) -> Vec<Found> {
    let check = CHECKS.iter().find(|c| c.id == rule).unwrap_or_else(|| panic!("no rule {rule}"));
    let base = |reference: &str| Catalog::embedded().bases().find(reference).map(|b| b.env).unwrap_or_default();
    let inputs = Inputs { base_env: Some(&base), platform: Some("linux/amd64".to_owned()), ..Inputs::default() };
    let reading: Reading = read(parse(dockerfile.as_bytes()), &inputs);
    let asks = asks(&reading, &Beside(files));
    let lint = Lint::new(&reading, &asks, targets, Catalog::embedded(), None);
    let off = CHECKS.iter().filter(|c| c.id != rule).map(|c| (c.id.to_owned(), Loudness::Off));
    let asked: BTreeMap<_, _> = off.chain([(rule.to_owned(), Loudness::On)]).collect();
    let found: Vec<Found> = super::run(&lint, &asked).into_iter().map(|(_, f)| f).collect();
    for one in &found {
        assert!(one.severity <= check.severity, "{rule} says more than its severity: {one:?}");
        assert!(!dockerfile.get(one.span.start..one.span.end).unwrap().is_empty(), "{rule} points at nothing");
        assert!(!one.label.contains('\n') && !one.message.contains('\n'), "{one:?}");
        if let Some(fix) = &one.fix {
            edit::apply(dockerfile.as_bytes(), &fix.edits).unwrap();
        }
    }
    found
}

pub fn lint(rule: &str, dockerfile: &str, targets: &[&str]) -> Vec<Found> {
    lint_with(rule, dockerfile, targets, &[])
}

/// The texts that the findings of a rule point at.
pub fn blamed<'a>(rule: &str, dockerfile: &'a str, targets: &[&str]) -> Vec<&'a str> {
    lint(rule, dockerfile, targets).iter().map(|f| &dockerfile[f.span.start..f.span.end]).collect()
}

/// The file after the edits of all findings of a rule; each must be gone then.
pub fn mended(rule: &str, dockerfile: &str, targets: &[&str]) -> String {
    let found = lint(rule, dockerfile, targets);
    let edits: Vec<_> = found.iter().filter_map(|f| f.fix.as_ref()).flat_map(|f| f.edits.clone()).collect();
    assert!(!edits.is_empty(), "{rule} has no edit for {dockerfile}");
    let text = String::from_utf8(edit::apply(dockerfile.as_bytes(), &edits).unwrap()).unwrap();
    let left: Vec<Found> = lint(rule, &text, targets).into_iter().filter(|f| f.fix.is_some()).collect();
    assert!(left.is_empty(), "{rule} still speaks of {text}: {left:?}");
    text
}

pub fn target(text: &str) -> Target {
    crate::config::parse_target(text, Catalog::embedded()).unwrap()
}

/// The files of a repository, where a corpus keeps them under LINT_BESIDE: `owner+name/path` for the Dockerfile
/// `owner+name__path__Dockerfile`.
struct Repository(Option<(std::path::PathBuf, std::path::PathBuf)>);

impl Repository {
    fn of(dockerfile: &str) -> Self {
        let Some(root) = std::env::var_os("LINT_BESIDE") else { return Self(None) };
        let mut parts = dockerfile.split("__");
        let root = std::path::Path::new(&root).join(parts.next().unwrap_or_default());
        let mut folder = root.join(parts.collect::<Vec<_>>().join("/"));
        folder.pop();
        Self(Some((root, folder)))
    }
}

impl Files for Repository {
    fn read(&self, path: &str) -> Option<Result<Vec<u8>, String>> {
        let (root, folder) = self.0.as_ref()?;
        let wanted = path.trim_start_matches("./").trim_start_matches('/');
        let found = [root.join(wanted), folder.join(wanted)].into_iter().find(|p| p.is_file())?;
        Some(std::fs::read(found).map_err(|e| e.to_string()))
    }
}

/// Prints what rules say of all files of a folder: `LINT_CORPUS=DIR LINT_BESIDE=DIR RULES=a,b TARGETS=a100@535 cargo test
/// corpus -- --ignored --nocapture`.
#[test]
#[ignore = "for reading; needs LINT_CORPUS"]
fn corpus() {
    let split = |name: &str| -> Vec<String> {
        let text = std::env::var(name).unwrap_or_default();
        text.split(',').filter(|t| !t.is_empty()).map(str::to_owned).collect()
    };
    let (rules, targets) = (split("RULES"), split("TARGETS"));
    let targets: Vec<Target> = targets.iter().map(|t| target(t)).collect();
    let mut files: Vec<_> =
        std::fs::read_dir(std::env::var("LINT_CORPUS").unwrap()).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files {
        let base = |reference: &str| Catalog::embedded().bases().find(reference).map(|b| b.env).unwrap_or_default();
        let inputs =
            Inputs { base_env: Some(&base), platform: Some("linux/amd64".to_owned()), ..Inputs::default() };
        let reading = read(parse(&std::fs::read(&path).unwrap()), &inputs);
        let name = path.file_name().unwrap().to_string_lossy();
        let asks = asks(&reading, &Repository::of(&name));
        let catalog = Catalog::embedded();
        let lint = Lint::new(&reading, &asks, &targets, catalog, None);
        let level = |id: &str| if rules.iter().any(|r| r == id) { Loudness::On } else { Loudness::Off };
        let asked: BTreeMap<_, _> = CHECKS.iter().map(|c| (c.id.to_owned(), level(c.id))).collect();
        let asked = if rules.is_empty() { BTreeMap::new() } else { asked };
        for (check, found) in super::run(&lint, &asked) {
            let line = lint.line(found.span);
            println!("{name}:{line}: {}[{}] {}", found.severity, check.id, found.message);
        }
    }
}
