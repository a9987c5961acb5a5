//! The page of a package: its files, as HTML (PEP 503) or as JSON (PEP 691).

use serde::Deserialize;
use serde::de::IgnoredAny;
use ureq::http::Uri;

use super::super::http::is_safe_step;
use super::address::{self, unescape};
use crate::model::Digest;

/// The most files of one package; the largest real pages have some ten thousand.
const MAX_LINKS: usize = 200_000;

/// The most attributes of one element that are looked at.
const MAX_ATTRIBUTES: usize = 32;

/// One file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub filename: String,
    pub url: Uri,
    pub sha256: Option<Digest>,
    pub size: Option<u64>,
    pub requires_python: Option<String>,
    pub yanked: bool,
    /// Its metadata lies beside it (PEP 658), with this digest where one is told.
    pub metadata: Option<Option<Digest>>,
}

/// Reads a page. Files that lead where they must not are left out.
pub fn read(bytes: &[u8], content_type: Option<&str>, base: &Uri) -> Result<Vec<Link>, String> {
    let is_json = match content_type {
        Some("application/vnd.pypi.simple.v1+json" | "application/json") => true,
        Some("application/vnd.pypi.simple.v1+html" | "text/html" | "application/xhtml+xml") => false,
        // Plain file servers know no types: then the page speaks for itself.
        _ => bytes.trim_ascii_start().starts_with(b"{"),
    };
    if is_json { json(bytes, base) } else { html(&String::from_utf8_lossy(bytes), base) }
}

fn too_many() -> String {
    format!("more than {MAX_LINKS} files")
}

/// The repository's version: a new major one is not understood.
fn supported(version: &str) -> Result<(), String> {
    match version.trim().split('.').next() {
        Some("1") => Ok(()),
        _ => Err(format!("version {} of the index format is not supported", super::shown(version))),
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    meta: Meta,
    files: Vec<File>,
}

#[derive(Deserialize, Default)]
struct Meta {
    #[serde(rename = "api-version", default)]
    api_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: Hashes,
    size: Option<u64>,
    requires_python: Option<String>,
    #[serde(default)]
    yanked: Flag,
    #[serde(default)]
    core_metadata: Option<Offered>,
    #[serde(default)]
    dist_info_metadata: Option<Offered>,
    /// What early servers called it.
    #[serde(default)]
    data_dist_info_metadata: Option<Offered>,
}

#[derive(Deserialize, Default)]
struct Hashes {
    sha256: Option<String>,
}

/// `false`, `true`, or a reason.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Is(bool),
    Reason(IgnoredAny),
}

impl Default for Flag {
    fn default() -> Self {
        Self::Is(false)
    }
}

/// `false`, `true`, or digests.
#[derive(Deserialize)]
#[serde(untagged)]
enum Offered {
    Is(bool),
    Hashes(Hashes),
}

fn json(bytes: &[u8], base: &Uri) -> Result<Vec<Link>, String> {
    let page: Page = serde_json::from_slice(bytes).map_err(|e| format!("not valid JSON ({e})"))?;
    if let Some(version) = &page.meta.api_version {
        supported(version)?;
    }
    if page.files.len() > MAX_LINKS {
        return Err(too_many());
    }
    let link = |file: File| {
        let (url, _) = address::link(base, &file.url)?;
        is_safe_step(base, &url).ok()?;
        let offered = [file.core_metadata, file.dist_info_metadata, file.data_dist_info_metadata];
        let metadata = offered.into_iter().flatten().find_map(|o| match o {
            Offered::Is(there) => there.then_some(None),
            Offered::Hashes(hashes) => Some(hashes.sha256.as_deref().and_then(sha256)),
        });
        Some(Link {
            filename: file.filename,
            url,
            sha256: file.hashes.sha256.as_deref().and_then(sha256),
            size: file.size,
            requires_python: file.requires_python,
            yanked: match file.yanked {
                Flag::Is(yanked) => yanked,
                Flag::Reason(_) => true,
            },
            metadata,
        })
    };
    Ok(page.files.into_iter().filter_map(link).collect())
}

fn sha256(hex: &str) -> Option<Digest> {
    format!("sha256:{}", hex.to_ascii_lowercase()).parse().ok()
}

/// Reads `<a>` elements, as browsers would: any case, any quoting, attributes in any order.
fn html(text: &str, page: &Uri) -> Result<Vec<Link>, String> {
    let mut links = Vec::new();
    let mut base = page.clone();
    let mut rest = text;
    let mut seen = 0;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let element = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        match element.as_str() {
            "a" => {
                seen += 1;
                if seen > MAX_LINKS {
                    return Err(too_many());
                }
                let (attributes, after) = attributes(rest);
                rest = after;
                links.extend(anchor(&attributes, &base));
            }
            "base" => {
                let (attributes, after) = attributes(rest);
                rest = after;
                let href = attributes.iter().find(|(n, _)| n == "href").and_then(|(_, h)| address::link(page, h));
                if let Some((url, _)) = href.filter(|(url, _)| is_safe_step(page, url).is_ok()) {
                    base = url;
                }
            }
            "meta" => {
                let (attributes, after) = attributes(rest);
                rest = after;
                let value = |name: &str| attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
                if value("name") == Some("pypi:repository-version") {
                    supported(value("content").unwrap_or_default())?;
                }
            }
            // What stands in them is no markup.
            "script" | "style" | "title" | "textarea" => {
                let close = find_ignoring_case(rest, &format!("</{element}"));
                rest = close.map_or("", |end| &rest[end..]);
            }
            _ => {}
        }
    }
    if seen == 0 && !text.to_ascii_lowercase().contains("<html") {
        return Err("got something that is no page of links".to_owned());
    }
    Ok(links)
}

/// Where a text of lower case letters stands, whatever the case.
fn find_ignoring_case(text: &str, lower: &str) -> Option<usize> {
    text.as_bytes().windows(lower.len()).position(|w| w.eq_ignore_ascii_case(lower.as_bytes()))
}

fn anchor(attributes: &[(String, String)], base: &Uri) -> Option<Link> {
    let value = |name: &str| attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let (url, fragment) = address::link(base, value("href")?)?;
    is_safe_step(base, &url).ok()?;
    let filename = String::from_utf8(unescape(url.path().rsplit('/').next()?)).ok()?;
    let hash = fragment.split('&').find_map(|f| f.strip_prefix("sha256=")).and_then(sha256);
    let metadata = value("data-core-metadata").or_else(|| value("data-dist-info-metadata"));
    let metadata =
        metadata.filter(|m| !m.eq_ignore_ascii_case("false")).map(|m| m.strip_prefix("sha256=").and_then(sha256));
    Some(Link {
        filename,
        sha256: hash,
        size: None,
        requires_python: value("data-requires-python").map(str::to_owned),
        yanked: value("data-yanked").is_some(),
        metadata,
        url,
    })
}

/// The attributes of an element and what stands behind it. Of two with one name the first counts.
fn attributes(text: &str) -> (Vec<(String, String)>, &str) {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return (out, after);
        }
        if rest.is_empty() {
            return (out, rest);
        }
        // A name may start with `=`, and only with it.
        let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '=');
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find(ends).map_or(rest.len(), |e| e + first);
        let name = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix('=') {
            let after = after.trim_start_matches(|c: char| c.is_ascii_whitespace());
            let (text, behind) = match after.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let inside = &after[1..];
                    inside.split_once(quote).unwrap_or((inside, ""))
                }
                _ => {
                    after.split_at(after.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(after.len()))
                }
            };
            value = entities(text);
            rest = behind;
        }
        if out.len() < MAX_ATTRIBUTES && !out.iter().any(|(n, _)| *n == name) {
            out.push((name, value));
        }
    }
}

/// Character references as their characters; what is none stays.
fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let reference = rest[1..].split_once(';').map(|(r, _)| r).filter(|r| r.len() <= 8);
        match reference.and_then(|r| Some((entity(r)?, r.len() + 2))) {
            Some((c, length)) => {
                out.push(c);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn base() -> Uri {
        "https://h.example/simple/a/".parse().unwrap()
    }

    fn of_html(text: &str) -> Vec<Link> {
        read(text.as_bytes(), Some("text/html"), &base()).unwrap()
    }

    #[test]
    fn html_is_read_however_it_is_quoted() {
        let page = format!(
            "<!DOCTYPE html><HTML><!-- <a href=no.whl> --><script>'<a href=\"no2.whl\">'</script>\
             <A class=x HREF='../../p/a-1-py3-none-any.whl#md5=1&amp;sha256={HASH}' data-requires-python=\"&gt;=3.8&#44;&lt;4\"\n\
             data-yanked>text</a><a data-dist-info-metadata='sha256={HASH}' href=a-1%2Bcu128-py3-none-any.whl />\
             <a name=anchor>no link</a><a href = \"/x/a-2.tar.gz\" data-yanked=\"why\" data-core-metadata=true href='b'>y</a>\
             <a href='http://h.example/plain.whl'></a><a href='https://127.0.0.1/x.whl'></a><a href='//x.example/y.whl'"
        );
        let links = of_html(&page);
        let names: Vec<&str> = links.iter().map(|l| l.filename.as_str()).collect();
        // From https nothing leads to plain HTTP or to this machine.
        assert_eq!(names, ["a-1-py3-none-any.whl", "a-1+cu128-py3-none-any.whl", "a-2.tar.gz", "y.whl"]);
        assert_eq!(links[0].url.to_string(), "https://h.example/p/a-1-py3-none-any.whl");
        assert_eq!(links[0].sha256, sha256(HASH));
        assert_eq!(links[0].requires_python.as_deref(), Some(">=3.8,<4"));
        assert!(links[0].yanked && !links[1].yanked && links[2].yanked);
        assert_eq!((links[1].metadata, links[2].metadata), (Some(sha256(HASH)), Some(None)));
        let links = of_html("<base href='https://f.example/d/'><a href=a.whl>a</a>");
        assert_eq!(links[0].url.to_string(), "https://f.example/d/a.whl");
    }

    #[test]
    fn json_is_read_with_its_digests() {
        let page = serde_json::json!({ "meta": { "api-version": "1.1" }, "name": "a", "files": [
            { "filename": "a-1-py3-none-any.whl", "url": "../../p/a.whl", "hashes": { "sha256": HASH, "md5": "1" },
              "size": 5, "requires-python": null, "yanked": "reason", "core-metadata": { "sha256": HASH } },
            { "filename": "b.whl", "url": "https://f.example/b.whl", "hashes": {}, "yanked": false, "core-metadata": false },
            { "filename": "c.whl", "url": "http://127.0.0.1/c.whl", "hashes": {} },
        ]});
        let links = read(page.to_string().as_bytes(), None, &base()).unwrap();
        assert_eq!(links.len(), 2);
        assert_eq!((links[0].size, links[0].yanked, links[0].sha256), (Some(5), true, sha256(HASH)));
        assert_eq!((links[0].metadata, links[1].metadata), (Some(sha256(HASH)), None));
        assert_eq!(links[0].url.to_string(), "https://h.example/p/a.whl");
    }

    #[test]
    fn damage_is_told_and_never_a_panic() {
        for (text, content_type) in [
            ("{\"files\": 3}", Some("application/json")),
            ("not found", None),
            ("{\"meta\":{\"api-version\":\"2.0\"},\"files\":[]}", None),
            ("<meta name='pypi:repository-version' content='2.0'><a href=x>", Some("text/html")),
        ] {
            assert!(read(text.as_bytes(), content_type, &base()).is_err(), "{text}");
        }
        let page = "<a href=\"x&#xFFFFFF;&#0;&bogus;&amp.whl\" =a = b='c\n d>é</a><base href=><a href=é.whl>";
        for cut in (0..page.len()).filter(|&i| page.is_char_boundary(i)) {
            let _ = read(&page.as_bytes()[..cut], Some("text/html"), &base());
            let _ = read(&page.as_bytes()[cut..], Some("text/html"), &base());
        }
    }

    #[test]
    fn a_long_page_is_read_and_a_longer_one_refused() {
        let one = "<a href=\"a-1.0.99999-py3-none-any.whl\">a</a>\n";
        assert_eq!(of_html(&one.repeat(100_000)).len(), 100_000);
        let error = read(one.repeat(MAX_LINKS + 1).as_bytes(), Some("text/html"), &base()).unwrap_err();
        assert!(error.contains("200000"), "{error}");
        // Elements that never end must not be looked through again and again.
        let start = std::time::Instant::now();
        let _ = read("<script>".repeat(200_000).as_bytes(), Some("text/html"), &base());
        let _ = read("<!--".repeat(200_000).as_bytes(), Some("text/html"), &base());
        let _ = read("<a b='".repeat(100_000).as_bytes(), Some("text/html"), &base());
        assert!(start.elapsed() < std::time::Duration::from_secs(20));
    }
}
