//! One requirement: `torch[opt]==2.6.0+cu124; marker`, `name @ URL`, `git+https://…`, a wheel, a path.

use super::super::{Asked, Requirement};
use super::normal_name;
use crate::dockerfile::shell::HOLE;

/// What a text asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Requirement(Box<Requirement>),
    /// A folder that is built: `.`, `./csrc[extra]`, `/opt/x`.
    Path(String),
    /// Nothing that can be named: `dist/*.whl`, a variable alone.
    Nothing,
}

/// Reads a requirement. [`HOLE`] stands for what is not known.
pub fn parse(text: &str, asked: &Asked, unsure: bool) -> Wanted {
    let text = text.trim();
    if text.trim_matches(|c: char| HOLE.contains(c) || c.is_whitespace() || c == '"' || c == '\'').is_empty() {
        return Wanted::Nothing;
    }
    let mut requirement = Requirement {
        name: String::new(),
        extras: Vec::new(),
        specifiers: Vec::new(),
        url: None,
        unsure: unsure || text.contains(HOLE),
        marker: None,
        asked: asked.clone(),
    };
    let (body, marker) = split_marker(text);
    requirement.marker = marker.map(str::to_owned);
    if let Some((name, url)) =
        body.split_once('@').filter(|(_, u)| is_url(u.trim_start()) || is_path(u.trim_start()))
    {
        let (name, extras) = split_extras(name.trim());
        if is_name(name) {
            requirement.name = normal_name(name);
            requirement.extras = extras;
            requirement.url = Some(url.trim().to_owned());
            if let Some((_, version)) = file_version(url.trim()) {
                requirement.specifiers.push(("==".to_owned(), version));
            }
            return Wanted::Requirement(Box::new(requirement));
        }
    }
    if is_url(body) {
        return from_url(requirement, body);
    }
    if is_path(body) {
        return from_path(requirement, body);
    }
    named(requirement, body)
}

/// Operators, the longer ones first.
const OPERATORS: [&str; 9] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">", "="];

/// `name[extras]>=1,<2`
fn named(mut requirement: Requirement, body: &str) -> Wanted {
    let end =
        body.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))).unwrap_or(body.len());
    let (name, rest) = body.split_at(end);
    if !is_name(name) {
        return Wanted::Nothing;
    }
    requirement.name = normal_name(name.trim_end_matches(['-', '_', '.']));
    let mut rest = rest.trim_start();
    if let Some(inner) = rest.strip_prefix('[') {
        let (extras, after) = inner.split_once(']').unwrap_or((inner, ""));
        requirement.extras = split_list(extras);
        rest = after.trim_start();
    }
    rest = rest.strip_prefix('(').map_or(rest, |r| r.trim_end().strip_suffix(')').unwrap_or(r));
    for part in rest.split(',') {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let Some(operator) = OPERATORS.into_iter().find(|o| part.starts_with(o)) else {
            requirement.unsure = true;
            continue;
        };
        let version = part.get(operator.len()..).unwrap_or_default().trim();
        let whole = !version.contains(char::is_whitespace) && !version.contains(HOLE) && !version.is_empty();
        // `=` is no operator of pip's.
        requirement.unsure |= !whole || operator == "=";
        if whole {
            requirement.specifiers.push((operator.to_owned(), version.trim_matches(['"', '\'']).to_owned()));
        }
    }
    Wanted::Requirement(Box::new(requirement))
}

/// A wheel, a source archive, a repository.
fn from_url(mut requirement: Requirement, url: &str) -> Wanted {
    let (bare, fragment) = url.split_once('#').map_or((url, None), |(u, f)| (u, Some(f)));
    let egg = fragment.and_then(|f| f.split('&').find_map(|p| p.strip_prefix("egg=")));
    if let Some(egg) = egg {
        let (name, extras) = split_extras(egg.split(['=', '<', '>']).next().unwrap_or(egg));
        requirement.name = normal_name(name);
        requirement.extras = extras;
    }
    requirement.url = Some(url.to_owned());
    if let Some((name, version)) = file_version(bare) {
        if requirement.name.is_empty() {
            requirement.name = name;
        }
        requirement.specifiers.push(("==".to_owned(), version));
    }
    if let Some(name) = odd_wheel(bare).filter(|_| requirement.name.is_empty()) {
        requirement.name = name;
        requirement.unsure = true;
    }
    if requirement.name.is_empty() {
        requirement.name = repository(bare);
    }
    if requirement.name.is_empty() { Wanted::Nothing } else { Wanted::Requirement(Box::new(requirement)) }
}

fn from_path(mut requirement: Requirement, path: &str) -> Wanted {
    let (bare, extras) = split_extras(path);
    if let Some((name, version)) = file_version(bare) {
        requirement.name = name;
        requirement.extras = extras;
        requirement.specifiers.push(("==".to_owned(), version));
        requirement.url = Some(path.to_owned());
        return Wanted::Requirement(Box::new(requirement));
    }
    // Wheels that a pattern finds, or whose name is not known.
    if bare.contains(['*', '?']) || bare.ends_with(".whl") {
        return Wanted::Nothing;
    }
    Wanted::Path(path.to_owned())
}

/// Name and version of a wheel or source archive.
fn file_version(url: &str) -> Option<(String, String)> {
    let bare = url.split(['#', '?']).next()?;
    let bare = bare.split_once(".whl@").map_or(bare, |(u, _)| u);
    let file = bare.rsplit('/').next()?;
    if file.contains(HOLE) || file.contains('*') {
        return None;
    }
    let file = file.replace("%2B", "+").replace("%2b", "+");
    let (name, version) = if let Some(stem) = file.strip_suffix(".whl") {
        let mut parts = stem.split('-');
        (parts.next()?.to_owned(), parts.next()?.to_owned())
    } else {
        let stem = [".tar.gz", ".zip", ".tar.bz2", ".tgz"].into_iter().find_map(|e| file.strip_suffix(e))?;
        let at = stem
            .match_indices('-')
            .map(|(at, _)| at)
            .find(|at| stem.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit))?;
        (stem.get(..at)?.to_owned(), stem.get(at + 1..)?.to_owned())
    };
    (is_name(&name) && version.starts_with(|c: char| c.is_ascii_digit())).then(|| (normal_name(&name), version))
}

/// The name of a wheel whose version is none.
fn odd_wheel(url: &str) -> Option<String> {
    let name = url.rsplit('/').next()?.strip_suffix(".whl")?.split('-').next()?;
    is_name(name).then(|| normal_name(name))
}

/// The name of a repository: `https://github.com/org/flash-attention.git@v2` gives `flash-attention`.
fn repository(url: &str) -> String {
    let path = url.split_once("://").map_or(url, |(_, p)| p);
    let path = path.split_once('/').map_or("", |(_, p)| p);
    let path = path.split(['@', '?']).next().unwrap_or(path);
    // `/archive/main.zip` stands behind the repository.
    let path = ["/archive/", "/releases/", "/tarball/", "/zipball/"]
        .into_iter()
        .find_map(|m| path.split_once(m).map(|(repository, _)| repository))
        .unwrap_or(path);
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".git").unwrap_or(name);
    if is_name(name) { normal_name(name) } else { String::new() }
}

/// The body, and the marker behind it.
fn split_marker(text: &str) -> (&str, Option<&str>) {
    let at =
        if is_url(text) || text.contains(" @ ") { text.find(" ;").or(text.find("; ")) } else { text.find(';') };
    match at {
        Some(at) => {
            let (body, marker) = text.split_at(at);
            let marker = marker.trim_start_matches([' ', ';']).trim();
            (body.trim_end(), (!marker.is_empty()).then_some(marker))
        }
        None => (text, None),
    }
}

/// A name or path, and the extras in brackets behind it.
pub fn split_extras(name: &str) -> (&str, Vec<String>) {
    match name.split_once('[') {
        Some((name, rest)) => (name.trim(), split_list(rest.trim_end_matches(']'))),
        None => (name, Vec::new()),
    }
}

fn split_list(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|e| !e.is_empty()).map(normal_name).collect()
}

/// A URL, or a repository's.
pub fn is_url(text: &str) -> bool {
    ["git+", "hg+", "svn+", "bzr+", "http://", "https://", "file:", "ssh://", "git://"]
        .into_iter()
        .any(|p| text.starts_with(p))
}

/// A path rather than a name.
pub fn is_path(text: &str) -> bool {
    let bare = text.split('[').next().unwrap_or(text);
    bare == "."
        || bare.starts_with(['/', '~'])
        || bare.starts_with("./")
        || bare.starts_with("..")
        || bare.contains('/')
        || [".whl", ".tar.gz", ".zip"].into_iter().any(|e| bare.ends_with(e))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dockerfile::span::Span;

    fn wanted(text: &str) -> Wanted {
        parse(text, &Asked::Here(Span::default()), false)
    }

    /// Name, extras, specifiers, URL, `?` where it is unsure.
    fn show(text: &str) -> String {
        match wanted(text) {
            Wanted::Requirement(r) => {
                let specifiers: Vec<String> = r.specifiers.iter().map(|(o, v)| format!("{o}{v}")).collect();
                let mut out = format!("{} {}", r.name, specifiers.join(","));
                for extra in &r.extras {
                    out += &format!(" [{extra}]");
                }
                if let Some(url) = &r.url {
                    out += &format!(" @{url}");
                }
                if let Some(marker) = &r.marker {
                    out += &format!(" ;{marker}");
                }
                out + if r.unsure { " ?" } else { "" }
            }
            Wanted::Path(path) => format!("path {path}"),
            Wanted::Nothing => "nothing".into(),
        }
    }

    #[test]
    fn requirements_are_read() {
        for (text, expected) in [
            ("torch", "torch "),
            ("Flash_Attn==2.7", "flash-attn ==2.7"),
            ("torch >= 2.0, <3", "torch >=2.0,<3"),
            ("torch(>=2.0)", "torch >=2.0"),
            ("torch==2.6.0+cu124", "torch ==2.6.0+cu124"),
            ("torch==2.6.*", "torch ==2.6.*"),
            ("jax[cuda12, k8s]~=0.4.30", "jax ~=0.4.30 [cuda12] [k8s]"),
            ("numpy<2; python_version < \"3.9\"", "numpy <2 ;python_version < \"3.9\""),
            ("torch=2.0", "torch =2.0 ?"),
            ("torch==\u{fffc}", "torch  ?"),
            ("nvidia-cudnn-cu\u{fffc}", "nvidia-cudnn-cu  ?"),
            ("torch\u{fffc}", "torch  ?"),
            ("\u{fffc}", "nothing"),
            (".", "path ."),
            (".[dev]", "path .[dev]"),
            ("./csrc", "path ./csrc"),
            ("/opt/x/", "path /opt/x/"),
            ("dist/*.whl", "nothing"),
            ("dist/*.whl[x]", "nothing"),
            ("./a-1.0-py3-none-any.whl[x]", "a ==1.0 [x] @./a-1.0-py3-none-any.whl[x]"),
            (
                "/tmp/torch-2.6.0+cu124-cp310-cp310-linux_x86_64.whl",
                "torch ==2.6.0+cu124 @/tmp/torch-2.6.0+cu124-cp310-cp310-linux_x86_64.whl",
            ),
            (
                "https://x/whl/torch-2.1%2Bcu121-cp310-none.whl#sha256=1",
                "torch ==2.1+cu121 @https://x/whl/torch-2.1%2Bcu121-cp310-none.whl#sha256=1",
            ),
            ("https://x/pkg_a-1.0.tar.gz", "pkg-a ==1.0 @https://x/pkg_a-1.0.tar.gz"),
            (
                "git+https://github.com/a/flash-attention.git@v2.7",
                "flash-attention  @git+https://github.com/a/flash-attention.git@v2.7",
            ),
            (
                "git+https://github.com/a/b.git#egg=c[d]&subdirectory=x",
                "c  [d] @git+https://github.com/a/b.git#egg=c[d]&subdirectory=x",
            ),
            (
                "apex @ git+https://github.com/NVIDIA/apex@1 ; python_version>'3'",
                "apex  @git+https://github.com/NVIDIA/apex@1 ;python_version>'3'",
            ),
            ("x@https://h/x-1.0-py3-none-any.whl", "x ==1.0 @https://h/x-1.0-py3-none-any.whl"),
            ("https://github.com/a/b/archive/main.zip", "b  @https://github.com/a/b/archive/main.zip"),
            ("https://x/ft-nightly-py3-none-any.whl", "ft  @https://x/ft-nightly-py3-none-any.whl ?"),
            ("-x", "nothing"),
        ] {
            assert_eq!(show(text), expected, "{text}");
        }
    }

    #[test]
    fn versions_are_compared() {
        let allows = |text: &str, version: &str| match wanted(text) {
            Wanted::Requirement(r) => r.allows(version),
            _ => None,
        };
        assert_eq!(allows("torch>=2.0,<3", "2.6.0"), Some(true));
        assert_eq!(allows("torch>=2.0,<2.6", "2.6.0"), Some(false));
        assert_eq!(allows("torch==2.6", "2.6.0"), Some(true));
        assert_eq!(allows("torch==2.6.0", "2.6.0+cu124"), Some(true));
        assert_eq!(allows("torch==2.6.0+cu124", "2.6.0"), Some(false));
        assert_eq!(allows("torch==2.*", "2.6.0"), Some(true));
        assert_eq!(allows("torch~=2.5", "2.6.0"), Some(true));
        assert_eq!(allows("torch==\u{fffc}", "2.6.0"), None);
        assert_eq!(allows("torch", "x"), None);
    }
}
