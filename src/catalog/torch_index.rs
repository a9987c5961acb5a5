//! Indexes that PyTorch's wheels come from, read off their URLs. Table: `wheel_indexes.toml`.

use serde::Deserialize;

use super::wheels::Wheels;
use super::{CatalogError, Tables, Trust};

pub(super) const FILE: &str = "wheel_indexes.toml";

/// An index of PyTorch's wheels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TorchIndex {
    /// "cu124", "cpu", "rocm6.2", "xpu"; empty where the URL names none: `whl`, `torch_stable.html`.
    pub name: String,
    /// Builds of every night.
    pub nightly: bool,
    /// A day stands in the URL: it will not move.
    pub dated: bool,
    /// Release candidates.
    pub test: bool,
    /// A page of links (`torch_stable.html`), for `--find-links`.
    pub page: bool,
    /// Somebody's copy.
    pub mirror: bool,
    pub because: String,
}

/// Where indexes are, `[[host]]`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct HostRow {
    /// Host and path, without scheme, before the index's name: "download.pytorch.org/whl".
    pub prefix: String,
    /// The index's name where the path does not give it.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub mirror: bool,
    #[serde(default)]
    pub nightly: bool,
    #[serde(flatten)]
    trust: Trust,
}

pub(super) fn read(tables: &mut Tables) -> Result<Vec<HostRow>, CatalogError> {
    tables.rows(FILE, "host")
}

impl Wheels {
    /// Where PyTorch serves an index itself.
    pub fn torch_index_url(&self, index: &str) -> Option<String> {
        let own = self.hosts.iter().find(|h| !h.mirror && !h.nightly && h.name.is_none())?;
        Some(format!("https://{}/{index}", own.prefix))
    }

    /// The index of PyTorch's wheels that a URL is; `None` for any other index.
    pub fn index_of_url(&self, url: &str) -> Option<TorchIndex> {
        let bare = url.trim().split_once("://").map_or(url.trim(), |(_, rest)| rest);
        // Credentials of a proxy.
        let bare = match bare.split_once('/') {
            Some((host, path)) => {
                format!("{}/{path}", host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase())
            }
            None => bare.to_ascii_lowercase(),
        };
        let bare = bare.split(['?', '#']).next().unwrap_or_default();
        let behind =
            |row: &&HostRow| bare.strip_prefix(&row.prefix).is_some_and(|r| r.is_empty() || r.starts_with('/'));
        let row = self.hosts.iter().filter(behind).max_by_key(|r| r.prefix.len())?;
        let parts = bare.get(row.prefix.len()..)?.split('/').filter(|p| !p.is_empty());
        let mut index = TorchIndex {
            name: row.name.clone().unwrap_or_default(),
            nightly: row.nightly,
            dated: false,
            test: false,
            page: false,
            mirror: row.mirror,
            because: row.trust.because(FILE, &row.prefix),
        };
        for part in parts {
            let day = part.len() == 8 && part.starts_with("20") && part.bytes().all(|b| b.is_ascii_digit());
            match part {
                "nightly" => index.nightly = true,
                "test" => index.test = true,
                _ if day => index.dated = true,
                _ if part.ends_with(".html") => index.page = true,
                _ if is_index(part) => index.name = part.to_owned(),
                // `torch/` of a project's own page.
                _ => {}
            }
        }
        Some(index)
    }
}

/// "cu124", "cpu", "cpu-cxx11-abi", "rocm6.2", "rocm-rel-6.1", "xpu".
fn is_index(part: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    part == "cpu"
        || part.starts_with("cpu-")
        || part.starts_with("cpu_")
        || part == "xpu"
        || part.strip_prefix("cu").is_some_and(digit)
        || part.strip_prefix("rocm").is_some_and(|r| digit(r.trim_start_matches("-rel-")))
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;

    #[test]
    fn indexes_are_read_off_their_urls() {
        let wheels = Catalog::embedded().wheels();
        let of = |url: &str| {
            let i = wheels.index_of_url(url)?;
            let mut text = i.name;
            for (is, word) in [
                (i.nightly, "nightly"),
                (i.dated, "dated"),
                (i.test, "test"),
                (i.page, "page"),
                (i.mirror, "mirror"),
            ] {
                text += if is { " " } else { "" };
                text += if is { word } else { "" };
            }
            Some(text)
        };
        for (url, want) in [
            ("https://download.pytorch.org/whl/cu124", "cu124"),
            ("https://download.pytorch.org/whl/cu124/", "cu124"),
            ("http://user:pw@download.pytorch.org/whl/cpu", "cpu"),
            ("https://download.pytorch.org/whl/nightly/cu128", "cu128 nightly"),
            ("https://download.pytorch.org/whl/test/rocm6.2", "rocm6.2 test"),
            ("https://download.pytorch.org/whl/nightly/xpu", "xpu nightly"),
            ("https://download.pytorch.org/whl/torch_stable.html", " page"),
            ("https://download.pytorch.org/whl/cu113/torch_stable.html", "cu113 page"),
            ("https://download.pytorch.org/whl", ""),
            ("https://mirrors.aliyun.com/pytorch-wheels/cu118", "cu118 mirror"),
            ("https://repo.radeon.com/rocm/manylinux/rocm-rel-6.4/", "rocm-rel-6.4"),
        ] {
            assert_eq!(of(url).as_deref(), Some(want), "{url}");
        }
        for other in ["", "https://pypi.org/simple", "https://download.pytorch.org/whlx/cu124", "cu124", "://"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
