//! Laws of the tables that rules of Dockerfiles read: names stand once, dates are dates, examples are well-formed.

use std::collections::{BTreeMap, BTreeSet};

use super::laws::broken;
use super::{Catalog, CatalogError, arch_lists, bases, cuda_tags, distros, extensions, system_packages};

pub(super) fn check(catalog: &Catalog) -> Result<(), CatalogError> {
    repositories_have_one_family(catalog)?;
    tags_stand_once(catalog)?;
    distributions_end_once(catalog)?;
    extensions_are_told_apart(catalog)?;
    arch_variables_read_their_examples(catalog)?;
    let names = catalog.system_packages().names();
    once(system_packages::FILE, "package", names.map(str::to_owned))
}

/// Whether a text is a day, `YYYY-MM-DD`.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |t: &str, digits: usize| (t.len() == digits).then(|| t.parse::<u32>().ok()).flatten();
    number(year, 4).is_some()
        && number(month, 2).is_some_and(|m| (1..=12).contains(&m))
        && number(day, 2).is_some_and(|d| (1..=31).contains(&d))
}

fn once(file: &'static str, table: &str, names: impl IntoIterator<Item = String>) -> Result<(), CatalogError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.clone()) {
            return Err(broken(file, format!("[[{table}]] `{name}`"), "stands twice"));
        }
    }
    Ok(())
}

fn repositories_have_one_family(catalog: &Catalog) -> Result<(), CatalogError> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, repositories) in catalog.bases().families() {
        for repository in repositories {
            if !repository.split_once('/').is_some_and(|(host, path)| host.contains('.') && !path.is_empty()) {
                let law = format!("`{repository}` names no host");
                return Err(broken(bases::FILE, format!("[[family]] `{name}`"), law));
            }
            if let Some(other) = seen.insert(repository, name) {
                let law = format!("`{repository}` is of `{other}` too");
                return Err(broken(bases::FILE, format!("[[family]] `{name}`"), law));
            }
        }
    }
    Ok(())
}

fn tags_stand_once(catalog: &Catalog) -> Result<(), CatalogError> {
    let tags = catalog.cuda_tags();
    if !is_day(tags.as_of()) {
        return Err(broken(cuda_tags::FILE, "as_of", "is no date"));
    }
    let mut all = Vec::new();
    for row in tags.rows() {
        if row.cuda.parse::<crate::model::CudaVersion>().is_err() {
            return Err(broken(cuda_tags::FILE, format!("[[tag]] `{}`", row.cuda), "is no CUDA version"));
        }
        for flavour in &row.flavours {
            all.extend(row.distros.iter().map(|d| format!("{}-{flavour}-{d}", row.cuda)));
        }
    }
    once(cuda_tags::FILE, "tag", all)
}

fn distributions_end_once(catalog: &Catalog) -> Result<(), CatalogError> {
    for row in catalog.distros().rows() {
        let name = || format!("[[distro]] `{}`", row.title);
        let days = std::iter::once(&row.eol).chain(&row.free_until);
        if let Some(day) = days.clone().find(|d| !is_day(d)) {
            return Err(broken(distros::FILE, name(), format!("`{day}` is no date")));
        }
        if !days.is_sorted() {
            return Err(broken(distros::FILE, name(), "its free support ends before its support"));
        }
    }
    let names = catalog.distros().rows().iter().map(|r| format!("{} {}", r.name, r.version));
    once(distros::FILE, "distro", names)
}

fn extensions_are_told_apart(catalog: &Catalog) -> Result<(), CatalogError> {
    let rows = catalog.extensions().all();
    for row in rows {
        let name = || format!("[[extension]] `{}`", row.project);
        if row.pip.is_empty() && row.repositories.is_empty() {
            return Err(broken(extensions::FILE, name(), "has neither a package nor a repository"));
        }
        if let Some(odd) = row.repositories.iter().find(|r| r.matches('/').count() != 1 || r.to_lowercase() != **r)
        {
            return Err(broken(extensions::FILE, name(), format!("`{odd}` is not owner/name in lower case")));
        }
        if let Some(unknown) = row.variables.iter().find(|v| catalog.arch_variables().variable(v).is_none()) {
            return Err(broken(extensions::FILE, name(), format!("arch_variables.toml has no `{unknown}`")));
        }
    }
    once(extensions::FILE, "extension", rows.iter().map(|r| r.project.clone()))?;
    once(extensions::FILE, "extension", rows.iter().flat_map(|r| r.pip.clone()))?;
    once(extensions::FILE, "extension", rows.iter().flat_map(|r| r.repositories.clone()))
}

fn arch_variables_read_their_examples(catalog: &Catalog) -> Result<(), CatalogError> {
    for variable in catalog.arch_variables().all() {
        let read = variable.parse(&variable.example);
        if let Some(problem) = read.problems.first() {
            let law = format!("its example `{}`: {}", variable.example, problem.what);
            return Err(broken(arch_lists::FILE, format!("[[variable]] `{}`", variable.name), law));
        }
    }
    let names = catalog.arch_variables().all().iter().flat_map(|v| std::iter::once(&v.name).chain(&v.aliases));
    once(arch_lists::FILE, "variable", names.cloned())
}

#[cfg(test)]
mod tests {
    use super::super::FILES;
    use super::*;

    /// The message with which the tables are refused after one text in one file is replaced.
    fn refused(file: &str, from: &str, to: &str) -> String {
        let text = FILES.iter().find(|(f, _)| *f == file).unwrap().1;
        assert!(text.contains(from), "{file} has no {from:?}");
        let text = text.replacen(from, to, 1);
        let files: Vec<_> = FILES.iter().map(|&(f, t)| (f, if f == file { text.as_str() } else { t })).collect();
        Catalog::parse(&files).expect_err("a broken law is refused").to_string()
    }

    #[test]
    fn broken_tables_are_refused_with_the_rows_name() {
        for (file, from, to, message) in [
            (
                "base_images.toml",
                "[\"docker.io/debian\"]",
                "[\"docker.io/nvidia/cuda\"]",
                "is of `nvidia/cuda` too",
            ),
            ("base_images.toml", "[\"docker.io/debian\"]", "[\"debian\"]", "names no host"),
            ("cuda_tags.toml", "as_of = \"2025-12-15\"", "as_of = \"2025-13-15\"", "as_of: is no date"),
            ("cuda_tags.toml", "distros = [\"\", \"ubuntu14.04\"]", "distros = [\"\", \"\"]", "stands twice"),
            ("cuda_tags.toml", "[[tag]]\ncuda = \"6.5\"", "[[tag]]\ncuda = \"6.x\"", "is no CUDA version"),
            ("distros.toml", "eol = \"2023-05-31\"", "eol = \"May 2023\"", "`Ubuntu 18.04`: `May 2023` is no date"),
            ("distros.toml", "free_until = \"2024-06-30\"", "free_until = \"2020-06-30\"", "`Debian 10`: its free"),
            ("distros.toml", "version = \"18.04\"", "version = \"20.04\"", "`ubuntu 20.04`: stands twice"),
            ("extensions.toml", "\"nvidia/apex\"", "\"NVIDIA/apex\"", "`apex`: `NVIDIA/apex` is not"),
            ("extensions.toml", "pip = [\"apex\"]", "pip = [\"flash-attn\"]", "`flash-attn`: stands twice"),
            ("extensions.toml", "[\"FLASH_ATTN_CUDA_ARCHS\"]", "[\"FLASH_ARCHS\"]", "has no `FLASH_ARCHS`"),
            ("arch_variables.toml", "example = \"75,80,86\"", "example = \"7.5,80\"", "its example `7.5,80`"),
            (
                "arch_variables.toml",
                "\"K2_CMAKE_ARGS\"",
                "\"K2_CMAKE_ARGS\", \"CUDAARCHS\"",
                "`CUDAARCHS`: stands twice",
            ),
            ("system_packages.toml", "name = \"cuDNN\"", "name = \"NCCL\"", "`NCCL`: stands twice"),
            ("wheel_cuda.toml", "versions = \">=1.27\"", "versions = \"1.27 or so\"", "`onnxruntime-gpu`"),
        ] {
            let text = refused(file, from, to);
            assert!(text.contains(file) && text.contains(message), "{text}");
        }
    }

    #[test]
    fn days() {
        assert!(is_day("2026-11-30"));
        for odd in ["", "2026-11", "2026-11-31-1", "2026-00-10", "26-11-30", "2026-1a-10", "2026-11-32"] {
            assert!(!is_day(odd), "{odd}");
        }
    }
}
