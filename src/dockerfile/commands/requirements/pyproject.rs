//! pyproject.toml: what a project depends on, by PEP 621, PEP 735, poetry and uv.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::normal_name;
use crate::dockerfile::span::LineIndex;

/// Requirements, each with its line from 1.
pub type Requirements = Vec<(usize, String)>;

/// A project's file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Project {
    pub dependencies: Requirements,
    pub extras: BTreeMap<String, Requirements>,
    /// Dependency groups; poetry's too.
    pub groups: BTreeMap<String, Requirements>,
    /// Poetry's groups that are not installed unless asked for.
    pub optional_groups: Vec<String>,
    /// Line, URL, and whether it takes PyPI's place.
    pub indexes: Vec<(usize, String, bool)>,
}

/// Reads a project's file.
pub fn project(text: &str) -> Result<Project, String> {
    let root = DeTable::parse(text).map_err(|e| e.message().to_owned())?;
    let reader = Reader { lines: LineIndex::new(text) };
    let mut out = Project::default();
    let root = root.get_ref();
    if let Some(project) = table(root, "project") {
        out.dependencies = reader.list(project.get("dependencies"));
        for (name, list) in entries(project, "optional-dependencies") {
            out.extras.insert(name, reader.list(Some(list)));
        }
    }
    for (name, list) in entries(root, "dependency-groups") {
        out.groups.insert(name, reader.list(Some(list)));
    }
    if let Some(uv) = table(root, "tool").and_then(|t| table(t, "uv")) {
        reader.uv(uv, &mut out);
    }
    if let Some(poetry) = table(root, "tool").and_then(|t| table(t, "poetry")) {
        reader.poetry(poetry, &mut out);
    }
    Ok(out)
}

struct Reader {
    lines: LineIndex,
}

type Spanned<'i> = toml::Spanned<DeValue<'i>>;

impl Reader {
    fn line(&self, value: &Spanned<'_>) -> usize {
        self.lines.line(value.span().start)
    }

    /// A list of PEP 508 texts.
    fn list(&self, value: Option<&Spanned<'_>>) -> Requirements {
        let items = value.and_then(|v| v.get_ref().as_array());
        items.into_iter().flatten().filter_map(|i| Some((self.line(i), i.get_ref().as_str()?.to_owned()))).collect()
    }

    fn uv(&self, uv: &DeTable<'_>, out: &mut Project) {
        for item in uv.get("index").and_then(|v| v.get_ref().as_array()).into_iter().flatten() {
            let Some(index) = item.get_ref().as_table() else { continue };
            if let Some(url) = text(index, "url") {
                let default = index.get("default").and_then(|d| d.get_ref().as_bool()) == Some(true);
                out.indexes.push((self.line(item), url.to_owned(), default));
            }
        }
        for (key, default) in [("index-url", true), ("extra-index-url", false)] {
            let Some(value) = uv.get(key) else { continue };
            let urls = value.get_ref().as_str().into_iter().map(str::to_owned);
            let list = self.list(Some(value)).into_iter().map(|(_, url)| url);
            out.indexes.extend(urls.chain(list).map(|url| (self.line(value), url, default)));
        }
        out.groups.entry("dev".to_owned()).or_default().extend(self.list(uv.get("dev-dependencies")));
        // Where a package is taken from replaces what the requirement says of it.
        for (name, source) in entries(uv, "sources") {
            let Some(url) = source.get_ref().as_table().and_then(location) else { continue };
            let lists = out.extras.values_mut().chain(out.groups.values_mut());
            for (_, requirement) in std::iter::once(&mut out.dependencies).chain(lists).flatten() {
                let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
                let own = requirement.get(..end.unwrap_or(requirement.len())).unwrap_or_default();
                if normal_name(own) == normal_name(&name) {
                    *requirement = format!("{own} @ {url}");
                }
            }
        }
    }

    fn poetry(&self, poetry: &DeTable<'_>, out: &mut Project) {
        if let Some(own) = table(poetry, "dependencies") {
            out.dependencies.extend(self.poetry_list(own));
        }
        if let Some(dev) = table(poetry, "dev-dependencies") {
            out.groups.insert("dev".to_owned(), self.poetry_list(dev));
        }
        for (name, group) in entries(poetry, "group") {
            let Some(group) = group.get_ref().as_table() else { continue };
            if group.get("optional").and_then(|o| o.get_ref().as_bool()) == Some(true) {
                out.optional_groups.push(name.clone());
            }
            if let Some(own) = table(group, "dependencies") {
                out.groups.insert(name, self.poetry_list(own));
            }
        }
        for item in poetry.get("source").and_then(|v| v.get_ref().as_array()).into_iter().flatten() {
            let Some(source) = item.get_ref().as_table() else { continue };
            if let Some(url) = text(source, "url") {
                let default = matches!(text(source, "priority"), Some("default" | "primary"));
                out.indexes.push((self.line(item), url.to_owned(), default));
            }
        }
    }

    fn poetry_list(&self, list: &DeTable<'_>) -> Requirements {
        let mut out = Vec::new();
        for (name, value) in list {
            let name = name.get_ref();
            if name == "python" {
                continue;
            }
            let requirement = match value.get_ref() {
                DeValue::String(version) => format!("{name}{}", poetry_version(version)),
                DeValue::Table(table) => match location(table) {
                    Some(url) => format!("{name} @ {url}"),
                    None => format!("{name}{}", poetry_version(text(table, "version").unwrap_or("*"))),
                },
                // One of several, by platform.
                DeValue::Array(_) => name.to_string(),
                _ => continue,
            };
            out.push((self.line(value), requirement));
        }
        out
    }
}

fn table<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<&'a DeTable<'i>> {
    table.get(key)?.get_ref().as_table()
}

fn text<'a>(table: &'a DeTable<'_>, key: &str) -> Option<&'a str> {
    table.get(key)?.get_ref().as_str()
}

/// What stands in a table, by normalised name.
fn entries<'a, 'i>(from: &'a DeTable<'i>, key: &str) -> impl Iterator<Item = (String, &'a Spanned<'i>)> {
    table(from, key).into_iter().flatten().map(|(name, value)| (normal_name(name.get_ref()), value))
}

/// `git`, `url` or `path` of a dependency.
fn location(table: &DeTable<'_>) -> Option<String> {
    if let Some(git) = text(table, "git") {
        let revision = ["rev", "tag", "branch"].into_iter().find_map(|k| text(table, k));
        return Some(format!("git+{git}{}", revision.map(|r| format!("@{r}")).unwrap_or_default()));
    }
    text(table, "url").or(text(table, "path")).map(str::to_owned)
}

/// A version as poetry writes it, in the words of PEP 440: `^2.1` is `>=2.1,<3`.
fn poetry_version(version: &str) -> String {
    let parts = version.split(',').map(str::trim).map(|part| {
        let bump = |base: &str, keep: usize| {
            let mut numbers: Vec<u64> = base.split('.').map_while(|n| n.parse().ok()).take(keep).collect();
            if let Some(last) = numbers.last_mut() {
                *last = last.saturating_add(1);
            }
            let next: Vec<String> = numbers.iter().map(u64::to_string).collect();
            if next.is_empty() { format!(">={base}") } else { format!(">={base},<{}", next.join(".")) }
        };
        if let Some(base) = part.strip_prefix('^') {
            // The first number that is not zero may not change.
            let zeros = base.split('.').take_while(|n| *n == "0").count();
            return bump(base, zeros.min(base.matches('.').count()) + 1);
        }
        match part.strip_prefix('~').filter(|b| !b.starts_with('=')) {
            Some(base) => bump(base, 2),
            None if part == "*" => String::new(),
            None if part.starts_with(|c: char| c.is_ascii_digit()) => format!("=={part}"),
            None => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_read() {
        let text = "[project]\ndependencies = [\n  \"torch>=2\",\n  \"vllm\",\n]\n[project.optional-dependencies]\nGPU = [\"cupy-cuda12x\"]\n\
            [dependency-groups]\ndev = [\"pytest\", {include-group = \"x\"}]\n\
            [tool.uv.sources]\nvllm = { git = \"https://h/vllm\", rev = \"1\" }\n[[tool.uv.index]]\nname = \"p\"\nurl = \"https://d/cu124\"\nexplicit = true\n";
        let project = project(text).unwrap();
        assert_eq!(project.dependencies, [(3, "torch>=2".into()), (4, "vllm @ git+https://h/vllm@1".into())]);
        assert_eq!(project.extras["gpu"], [(7, "cupy-cuda12x".to_owned())]);
        assert_eq!(project.groups["dev"], [(9, "pytest".to_owned())]);
        assert_eq!(project.indexes, [(12, "https://d/cu124".into(), false)]);
    }

    #[test]
    fn poetry_is_read() {
        let text = "[tool.poetry.dependencies]\npython = \"^3.9\"\ntorch = \"^2.1.0\"\nx = {version = \"~1.2\", source = \"s\"}\ny = {git = \"https://h/y\"}\nz = \"*\"\n\
            [tool.poetry.group.dev]\noptional = true\n[tool.poetry.group.dev.dependencies]\nw = \"1.0\"\n[[tool.poetry.source]]\nname = \"s\"\nurl = \"https://d/cu121\"\n";
        let project = project(text).unwrap();
        let all: Vec<&str> = project.dependencies.iter().map(|(_, r)| r.as_str()).collect();
        assert_eq!(all, ["torch>=2.1.0,<3", "x>=1.2,<1.3", "y @ git+https://h/y", "z"]);
        assert_eq!(project.groups["dev"], [(10, "w==1.0".to_owned())]);
        assert_eq!(project.optional_groups, ["dev"]);
        assert_eq!(poetry_version("^0.2.3"), ">=0.2.3,<0.3");
        assert_eq!(poetry_version(">=1,<2"), ">=1,<2");
    }

    #[test]
    fn what_is_no_toml_is_told() {
        assert!(project("[project").is_err());
        assert!(project(&format!("a = {}", "[".repeat(100_000))).is_err());
        assert_eq!(project("project = 3"), Ok(Project::default()));
    }
}
