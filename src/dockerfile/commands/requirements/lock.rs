//! uv.lock and poetry.lock: the versions that were settled, of what is asked for and of all that it needs.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::{DeTable, DeValue};

use super::normal_name;
use crate::dockerfile::span::LineIndex;

/// A package of a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locked {
    pub name: String,
    pub version: Option<String>,
    /// A repository or an archive that it is taken from.
    pub url: Option<String>,
    /// An index other than the usual one, or the usual one.
    pub registry: Option<String>,
    pub line: usize,
    /// There are several of the name, by platform.
    pub several: bool,
}

/// Packages of a lock file that the wanted ones (name and extras) lead to; all of them where none is named.
pub fn locked(text: &str, wanted: &[(String, Vec<String>)]) -> Result<Vec<Locked>, String> {
    let root = DeTable::parse(text).map_err(|e| e.message().to_owned())?;
    let lines = LineIndex::new(text);
    let mut packages: BTreeMap<String, Vec<(usize, &DeTable<'_>)>> = BTreeMap::new();
    let all = root.get_ref().get("package").and_then(|p| p.get_ref().as_array());
    for item in all.into_iter().flatten() {
        let Some(package) = item.get_ref().as_table() else { continue };
        let Some(name) = text_of(package, "name") else { continue };
        packages.entry(normal_name(name)).or_default().push((lines.line(item.span().start), package));
    }
    let reached = if wanted.is_empty() { packages.keys().cloned().collect() } else { reach(&packages, wanted) };
    let mut out = Vec::new();
    for name in reached {
        let all = packages.get(&name).map(Vec::as_slice).unwrap_or_default();
        for (line, package) in all {
            out.push(Locked { several: all.len() > 1, line: *line, ..package_of(&name, package) });
        }
    }
    out.sort_by_key(|p| p.line);
    Ok(out)
}

/// All names that some lead to.
fn reach(
    packages: &BTreeMap<String, Vec<(usize, &DeTable<'_>)>>,
    wanted: &[(String, Vec<String>)],
) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut seen: BTreeSet<(String, Option<String>)> = BTreeSet::new();
    let mut open: Vec<(String, Option<String>)> = Vec::new();
    let add = |open: &mut Vec<_>, name: &str, extras: Vec<String>| {
        open.push((name.to_owned(), None));
        open.extend(extras.into_iter().map(|e| (name.to_owned(), Some(e))));
    };
    for (name, extras) in wanted {
        add(&mut open, name, extras.clone());
    }
    while let Some((name, extra)) = open.pop() {
        if !seen.insert((name.clone(), extra.clone())) {
            continue;
        }
        for (_, package) in packages.get(&name).into_iter().flatten() {
            for (next, extras) in needs(package, extra.as_deref()) {
                add(&mut open, &next, extras);
            }
        }
        reached.insert(name);
    }
    reached
}

/// What a package needs, or one of its extras.
fn needs(package: &DeTable<'_>, extra: Option<&str>) -> Vec<(String, Vec<String>)> {
    let list = match extra {
        None => package.get("dependencies"),
        Some(extra) => package
            .get("optional-dependencies")
            .and_then(|o| o.get_ref().as_table())
            .and_then(|o| o.iter().find(|(name, _)| normal_name(name.get_ref()) == extra).map(|(_, list)| list)),
    };
    match list.map(toml::Spanned::get_ref) {
        // uv
        Some(DeValue::Array(items)) => items
            .iter()
            .filter_map(|item| {
                let item = item.get_ref().as_table()?;
                let extras = item.get("extra").and_then(|e| e.get_ref().as_array());
                let extras = extras.into_iter().flatten().filter_map(|e| e.get_ref().as_str()).map(normal_name);
                Some((normal_name(text_of(item, "name")?), extras.collect()))
            })
            .collect(),
        // poetry
        Some(DeValue::Table(items)) => items
            .iter()
            .filter(|(_, value)| {
                let table = value.get_ref().as_table();
                table.and_then(|t| t.get("optional")?.get_ref().as_bool()) != Some(true)
            })
            .map(|(name, _)| (normal_name(name.get_ref()), Vec::new()))
            .collect(),
        _ => Vec::new(),
    }
}

fn package_of(name: &str, package: &DeTable<'_>) -> Locked {
    let mut out = Locked {
        name: name.to_owned(),
        version: text_of(package, "version").map(str::to_owned),
        url: None,
        registry: None,
        line: 0,
        several: false,
    };
    let Some(source) = package.get("source").and_then(|s| s.get_ref().as_table()) else { return out };
    out.registry = text_of(source, "registry").map(str::to_owned);
    let git = text_of(source, "git").map(|g| format!("git+{g}"));
    out.url =
        git.or(["path", "directory", "editable"].into_iter().find_map(|k| text_of(source, k)).map(str::to_owned));
    // poetry says the kind, and `url` for all kinds; uv has `url` for an archive alone.
    if let Some(url) = text_of(source, "url") {
        match text_of(source, "type") {
            Some("legacy") => out.registry = Some(url.to_owned()),
            Some("git") => out.url = Some(format!("git+{url}")),
            _ => out.url = Some(url.to_owned()),
        }
    }
    out
}

fn text_of<'a>(table: &'a DeTable<'_>, key: &str) -> Option<&'a str> {
    table.get(key)?.get_ref().as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<(String, Vec<String>)> = wanted
            .iter()
            .map(|w| w.split_once('[').map_or(((*w).into(), vec![]), |(n, e)| (n.into(), vec![e.into()])))
            .collect();
        let line = |p: Locked| {
            format!(
                "{}:{}={}{}{}{}",
                p.line,
                p.name,
                p.version.unwrap_or_default(),
                p.registry.map(|r| format!(" {r}")).unwrap_or_default(),
                p.url.map(|u| format!(" @{u}")).unwrap_or_default(),
                if p.several { " ?" } else { "" }
            )
        };
        locked(text, &wanted).unwrap().into_iter().map(line).collect()
    }

    #[test]
    fn uv_locks_are_read() {
        let text = "version = 1\n[[package]]\nname = \"app\"\nsource = { editable = \".\" }\n\
            [[package]]\nname = \"vllm\"\nversion = \"0.8\"\nsource = { registry = \"https://pypi.org/simple\" }\ndependencies = [{ name = \"Torch\", extra = [\"opt\"] }]\n\
            [[package]]\nname = \"torch\"\nversion = \"2.6.0+cu124\"\nsource = { registry = \"https://d/cu124\" }\n[package.optional-dependencies]\nopt = [{ name = \"y\" }]\n\
            [[package]]\nname = \"y\"\nversion = \"1\"\nsource = { git = \"https://h/y?rev=1#2\" }\n\
            [[package]]\nname = \"y\"\nversion = \"2\"\n[[package]]\nname = \"other\"\nversion = \"3\"\n";
        assert_eq!(
            show(text, &["vllm"]),
            [
                "5:vllm=0.8 https://pypi.org/simple",
                "10:torch=2.6.0+cu124 https://d/cu124",
                "16:y=1 @git+https://h/y?rev=1#2 ?",
                "20:y=2 ?"
            ]
        );
        assert_eq!(show(text, &[]).len(), 6);
    }

    #[test]
    fn poetry_locks_are_read() {
        let text = "[[package]]\nname = \"torch\"\nversion = \"2.1\"\n[package.dependencies]\nA_b = \"*\"\nc = {version = \"1\", optional = true}\n[package.source]\ntype = \"legacy\"\nurl = \"https://d/cu121\"\n\
            [[package]]\nname = \"a-b\"\nversion = \"1\"\n[[package]]\nname = \"c\"\nversion = \"1\"\n";
        assert_eq!(show(text, &["torch"]), ["1:torch=2.1 https://d/cu121", "10:a-b=1"]);
        assert!(locked("x =", &[]).is_err());
    }
}
