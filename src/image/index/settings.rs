//! Which index pip would ask on this machine, and whom it trusts: its environment and its files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ureq::tls::{PemItem, RootCerts, parse_pem};

use super::IndexError;

/// Where packages come from unless somebody says otherwise.
const DEFAULT: &str = "https://pypi.org/simple";

/// The largest pip.conf, and the largest file of certificates.
const MAX_CONFIG: u64 = 1 << 20;
const MAX_CERTIFICATES: u64 = 16 << 20;

/// What is asked, and who is trusted.
#[derive(Clone)]
pub struct Settings {
    /// With its credentials: not to be shown.
    pub(super) url: String,
    /// Who names it: `--index-url`, `PIP_INDEX_URL`, `pip.conf`, `pip's default`.
    pub told_by: String,
    pub(super) roots: Option<RootCerts>,
}

/// An environment variable.
type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Looks in pip's order. `etc`: where the system's settings are.
pub fn find(flag: Option<&str>, env: Env<'_>, etc: &Path) -> Result<Settings, IndexError> {
    let config = config(env, etc)?;
    let var = |name: &str| env(name).and_then(|v| v.into_string().ok()).filter(|v| !v.trim().is_empty());
    let from_env = ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"];
    let from_env = from_env.iter().find_map(|name| Some((var(name)?, (*name).to_owned())));
    let (url, told_by) = flag
        .map(|f| (f.to_owned(), "--index-url".to_owned()))
        .or(from_env)
        .or_else(|| Some((config.get("index-url")?.clone(), "pip.conf".to_owned())))
        .unwrap_or_else(|| (DEFAULT.to_owned(), "pip's default".to_owned()));
    // uv's variable may give the index a name.
    let url = match url.split_once('=') {
        Some((name, rest)) if told_by.starts_with("UV_") && !name.contains([':', '/']) => rest.to_owned(),
        _ => url,
    };
    let certificates = var("PIP_CERT")
        .map(|path| (path, "PIP_CERT"))
        .or_else(|| Some((config.get("cert")?.clone(), "pip.conf")))
        .or_else(|| ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"].iter().find_map(|n| Some((var(n)?, *n))));
    let roots = certificates.map(|(path, told_by)| roots(Path::new(&path), told_by)).transpose()?;
    Ok(Settings { url, told_by, roots })
}

/// The files of pip's settings, those that count more later.
fn places(env: Env<'_>, etc: &Path) -> Vec<PathBuf> {
    let named = env("PIP_CONFIG_FILE").map(PathBuf::from);
    if named.as_deref() == Some(Path::new("/dev/null")) {
        return Vec::new();
    }
    let home = env("HOME").map(PathBuf::from);
    let xdg = env("XDG_CONFIG_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let user = xdg.or_else(|| Some(home.as_ref()?.join(".config")));
    let mut out = vec![etc.join("xdg/pip/pip.conf"), etc.join("pip.conf")];
    out.extend(home.map(|h| h.join(".pip/pip.conf")));
    out.extend(user.map(|u| u.join("pip/pip.conf")));
    out.extend(env("VIRTUAL_ENV").map(|v| PathBuf::from(v).join("pip.conf")));
    out.extend(named);
    out
}

/// The settings of `[global]`, and of `[install]`, which count more.
fn config(env: Env<'_>, etc: &Path) -> Result<BTreeMap<String, String>, IndexError> {
    let mut global = BTreeMap::new();
    let mut install = BTreeMap::new();
    for path in places(env, etc) {
        let Ok(bytes) = read(&path, MAX_CONFIG) else { continue };
        for (section, key, value) in ini(&String::from_utf8_lossy(&bytes)) {
            match section.as_str() {
                "global" => global.insert(key, value),
                "install" => install.insert(key, value),
                _ => None,
            };
        }
    }
    global.extend(install);
    Ok(global)
}

/// Sections of `key = value` and `key: value`; a value goes on in indented lines, of which only the first counts
/// here.
fn ini(text: &str) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut out = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            section = name.to_owned();
            continue;
        }
        if line.starts_with(char::is_whitespace) {
            // Goes on: only a value that starts here is of interest.
            if let Some((_, _, value)) = out.last_mut().filter(|(_, _, v): &&mut (_, _, String)| v.is_empty()) {
                *value = trimmed.to_owned();
            }
            continue;
        }
        if let Some((key, value)) = trimmed.split_once(['=', ':']) {
            let key = key.trim().to_ascii_lowercase().replace('_', "-");
            out.push((section.clone(), key, value.trim().to_owned()));
        }
    }
    out.retain(|(_, _, value)| !value.is_empty());
    out
}

fn roots(path: &Path, told_by: &str) -> Result<RootCerts, IndexError> {
    let wrong = |what: String| IndexError::Settings { place: format!("certificates of {told_by}"), what };
    let bytes = read(path, MAX_CERTIFICATES).map_err(|e| wrong(e.to_string()))?;
    // One that cannot be read is one authority less.
    let found: Vec<_> = parse_pem(&bytes)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    match found.is_empty() {
        true => Err(wrong("holds no certificate".to_owned())),
        false => Ok(RootCerts::from(found)),
    }
}

fn read(path: &Path, cap: u64) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    File::open(path)?.take(cap + 1).read_to_end(&mut out)?;
    match out.len() as u64 > cap {
        true => Err(std::io::Error::other(format!("larger than {cap} bytes"))),
        false => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(flag: Option<&str>, env: &[(&str, &str)], etc: &Path) -> Result<(String, String), String> {
        let get = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        find(flag, &get, etc).map(|s| (s.url, s.told_by)).map_err(|e| e.to_string())
    }

    #[test]
    fn pip_s_order_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (etc, home) = (dir.path().join("etc"), dir.path().join("home"));
        std::fs::create_dir_all(home.join(".config/pip")).unwrap();
        std::fs::create_dir_all(&etc).unwrap();
        let url = |flag, env: &[(&str, &str)]| found(flag, env, &etc).unwrap();
        let home_env = ("HOME", home.to_str().unwrap());
        assert_eq!(url(None, &[home_env]).0, DEFAULT);
        std::fs::write(etc.join("pip.conf"), "[global]\nindex-url = https://etc.example/s\n").unwrap();
        assert_eq!(url(None, &[home_env]).0, "https://etc.example/s");
        let user = "# x\n[list]\nindex-url=https://no.example\n[global]\nIndex_Url: https://user.example/s\nextra =\n  a\n";
        std::fs::write(home.join(".config/pip/pip.conf"), user).unwrap();
        assert_eq!(url(None, &[home_env]), ("https://user.example/s".into(), "pip.conf".into()));
        let env = [home_env, ("PIP_INDEX_URL", "https://env.example/s")];
        assert_eq!(url(None, &env), ("https://env.example/s".into(), "PIP_INDEX_URL".into()));
        assert_eq!(url(Some("https://flag.example"), &env).1, "--index-url");
        assert_eq!(
            url(None, &[home_env, ("UV_DEFAULT_INDEX", "own=https://uv.example/s")]).0,
            "https://uv.example/s"
        );
        assert_eq!(url(None, &[home_env, ("PIP_CONFIG_FILE", "/dev/null")]).0, DEFAULT);
        let own = dir.path().join("own.conf");
        std::fs::write(&own, "[global]\nindex-url=https://g.example\n[install]\nindex-url=https://i.example\n")
            .unwrap();
        assert_eq!(url(None, &[home_env, ("PIP_CONFIG_FILE", own.to_str().unwrap())]).0, "https://i.example");
    }

    #[test]
    fn certificates_are_read_or_missed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        let with = |env: &str| found(None, &[(env, file.to_str().unwrap())], dir.path());
        assert!(with("PIP_CERT").unwrap_err().contains("PIP_CERT"));
        std::fs::write(&file, "no certificate").unwrap();
        assert!(with("SSL_CERT_FILE").unwrap_err().contains("holds no certificate"));
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        assert!(with("REQUESTS_CA_BUNDLE").is_ok());
    }
}
