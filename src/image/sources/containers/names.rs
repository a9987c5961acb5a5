//! Which image of the stores is meant: a full name, a short one, an ID or its beginning, a digest.

use super::super::super::ImageError;
use super::super::manifest::shown;
use super::store::{ImageRow, Store};

/// The shortest beginning of an ID.
const MIN_ID: usize = 3;

/// The most names listed in an error.
const LISTED: usize = 12;

/// Finds the image; `searched` is told where there is none.
pub fn find<'a>(
    stores: &'a [Store],
    name: &str,
    scheme: &str,
    searched: &str,
) -> Result<(&'a Store, &'a ImageRow), ImageError> {
    let all = || stores.iter().flat_map(|s| s.images.iter().map(move |i| (s, i)));
    let reference = || format!("{scheme}{}", shown(name));
    for step in [by_name as Step, by_short_name, by_digest, by_id] {
        let mut found: Vec<_> = all().filter(|(_, image)| step(image, name)).collect();
        // One image may lie in several stores; the first counts.
        let first = found.first().map(|(_, image)| image.id.clone());
        found.dedup_by(|a, b| a.1.id == b.1.id);
        match (found.as_slice(), first) {
            ([], _) => {}
            ([first, ..], Some(id)) if found.iter().all(|(_, i)| i.id == id) => return Ok(*first),
            _ => {
                let what = format!("several images: {}; give one in full", names(found.iter().map(|(_, i)| *i)));
                return Err(ImageError::Malformed { place: reference(), what });
            }
        }
    }
    let hint = match all().count() {
        0 => format!("there are no images in {searched}"),
        _ => format!("{searched} has {}", names(all().map(|(_, i)| i))),
    };
    let hint = format!("{hint}; pull it, or write registry:{}", shown(name));
    Err(ImageError::NotFound { reference: reference(), hint })
}

type Step = fn(&ImageRow, &str) -> bool;

/// With the tag that is meant where none is written.
fn tagged(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains([':', '@']) { name.to_owned() } else { format!("{name}:latest") }
}

fn by_name(image: &ImageRow, name: &str) -> bool {
    let name = tagged(name);
    let full = ["", "localhost/", "docker.io/library/", "docker.io/"];
    image.names().iter().any(|n| full.iter().any(|f| n.strip_prefix(f) == Some(&name)))
}

/// The end of a full name, from a slash on.
fn by_short_name(image: &ImageRow, name: &str) -> bool {
    let name = tagged(name);
    image.names().iter().any(|n| n.strip_suffix(&name).is_some_and(|head| head.ends_with('/')))
}

/// `NAME@sha256:…`, `@sha256:…`.
fn by_digest(image: &ImageRow, name: &str) -> bool {
    let Some((name, digest)) = name.split_once('@') else { return false };
    let repository = |n: &str| {
        let last = n.rfind('/').map_or(0, |at| at + 1);
        let end = n[last..].find([':', '@']).map_or(n.len(), |at| last + at);
        n[..end].to_owned()
    };
    let wanted = repository(name);
    let named = |n: &String| {
        let has = repository(n);
        has == wanted || has.strip_suffix(&wanted).is_some_and(|head| head.ends_with('/'))
    };
    // skopeo writes the ID there too.
    (image.digests().any(|d| d == digest) || image.id == digest)
        && (name.is_empty() || image.names().is_empty() || image.names().iter().any(named))
}

fn by_id(image: &ImageRow, name: &str) -> bool {
    let id = name.strip_prefix("sha256:").unwrap_or(name);
    id.len() >= MIN_ID && image.id.starts_with(id)
}

fn names<'a>(images: impl Iterator<Item = &'a ImageRow>) -> String {
    let name = |i: &ImageRow| match i.names().first() {
        Some(name) => shown(name),
        None => shown(i.id.get(..12).unwrap_or(&i.id)),
    };
    let mut all: Vec<String> = images.map(name).collect();
    all.sort();
    all.dedup();
    let more = all.len().saturating_sub(LISTED);
    all.truncate(LISTED);
    all.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(id: char, names: &[&str], digest: char) -> ImageRow {
        let digest = format!("sha256:{}", digest.to_string().repeat(64));
        ImageRow {
            id: id.to_string().repeat(64),
            digest: Some(digest),
            names: Some(names.iter().map(|n| (*n).to_owned()).collect()),
            ..ImageRow::default()
        }
    }

    #[test]
    fn names_are_found_as_podman_finds_them() {
        let images = [
            image('a', &["localhost/demo:1", "quay.io/x/demo:2"], '1'),
            image('b', &["docker.io/library/demo:latest"], '2'),
            image('c', &["quay.io/team/tool:1", "r.io/x/demo:1"], '3'),
            image('d', &["quay.io/other/tool:1"], '4'),
            image('e', &[], '5'),
        ];
        let rows: Vec<(char, &ImageRow)> = images.iter().map(|i| (i.id.chars().next().unwrap(), i)).collect();
        let found = |name: &str| {
            for step in [by_name as Step, by_short_name, by_digest, by_id] {
                let hits: Vec<char> = rows.iter().filter(|(_, i)| step(i, name)).map(|(c, _)| *c).collect();
                if !hits.is_empty() {
                    return hits;
                }
            }
            Vec::new()
        };
        assert_eq!(found("localhost/demo:1"), ['a']);
        assert_eq!(found("demo:1"), ['a'], "one's own before those of others");
        assert_eq!(found("demo"), ['b']);
        assert_eq!(found("demo:2"), ['a']);
        assert_eq!(found("tool:1"), ['c', 'd'], "to be asked");
        assert_eq!(found("team/tool:1"), ['c']);
        assert_eq!(found("eam/tool:1"), Vec::<char>::new());
        assert_eq!(found("eee"), ['e']);
        assert_eq!(found("ee"), Vec::<char>::new());
        assert_eq!(found(&format!("sha256:{}", "d".repeat(64))), ['d']);
        assert_eq!(found(&format!("demo@sha256:{}", "2".repeat(64))), ['b']);
        assert_eq!(found(&format!("@sha256:{}", "5".repeat(64))), ['e']);
        assert_eq!(found(&format!("other@sha256:{}", "2".repeat(64))), Vec::<char>::new());
        assert_eq!(found(&format!("@{}", "c".repeat(64))), ['c']);
    }
}
