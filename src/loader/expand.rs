//! Search paths as text: their elements, and the tokens in them (`$ORIGIN`, `$LIB`, `$PLATFORM`).

/// What the tokens stand for.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a> {
    /// The directory of the file, without a leading slash.
    pub origin: &'a [u8],
    pub lib: &'a str,
    pub platform: &'a str,
}

/// Replaces glibc's tokens. Braces are allowed; a token ends where its name cannot go on.
pub fn glibc(text: &str, tokens: &Tokens<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + tokens.origin.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let known = [("ORIGIN", 0), ("PLATFORM", 1), ("LIB", 2)];
        match known.iter().find_map(|(name, which)| Some((width(rest, name)?, which))) {
            Some((width, which)) => {
                match which {
                    0 => {
                        out.push(b'/');
                        out.extend_from_slice(tokens.origin);
                    }
                    1 => out.extend_from_slice(tokens.platform.as_bytes()),
                    _ => out.extend_from_slice(tokens.lib.as_bytes()),
                }
                rest = &rest[width..];
            }
            None => out.push(b'$'),
        }
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// How long a token is that stands at the start of a text, behind the `$`.
fn width(text: &str, name: &str) -> Option<usize> {
    if let Some(inner) = text.strip_prefix('{') {
        return inner.strip_prefix(name)?.starts_with('}').then_some(name.len() + 2);
    }
    let after = text.strip_prefix(name)?;
    let goes_on = after.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    (!goes_on).then_some(name.len())
}

/// Replaces `$ORIGIN` as musl does; with any other token it takes no part of the path.
pub fn musl(text: &str, origin: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() + origin.len());
    let mut parts = text.split('$');
    out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let rest = part.strip_prefix("ORIGIN").or_else(|| part.strip_prefix("{ORIGIN}"))?;
        out.push(b'/');
        out.extend_from_slice(origin);
        out.extend_from_slice(rest.as_bytes());
    }
    Some(out)
}

/// The absolute elements of a path list, without leading and trailing slashes. Empty and relative elements mean
/// the directory that a process happens to be in, and are left out.
pub fn elements<'a>(list: &'a [u8], separators: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    list.split(move |b| separators.contains(b)).filter(|e| e.starts_with(b"/")).map(trim)
}

fn trim(mut path: &[u8]) -> &[u8] {
    while let Some(rest) = path.strip_prefix(b"/") {
        path = rest;
    }
    while let Some(rest) = path.strip_suffix(b"/") {
        path = rest;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        let tokens = Tokens { origin: b"opt/x", lib: "lib64", platform: "x86_64" };
        let g = |t: &str| String::from_utf8(glibc(t, &tokens)).unwrap();
        assert_eq!(g("$ORIGIN/../lib:/a"), "/opt/x/../lib:/a");
        assert_eq!(g("${ORIGIN}/${LIB}/$PLATFORM"), "/opt/x/lib64/x86_64");
        assert_eq!(g("$ORIGINAL/$LIB_/${LIB"), "$ORIGINAL/$LIB_/${LIB");
        assert_eq!(g("$$LIB-x$"), "$lib64-x$");
        let m = |t: &str| musl(t, b"opt/x").map(|b| String::from_utf8(b).unwrap());
        assert_eq!(m("${ORIGIN}/a:$ORIGIN"), Some("/opt/x/a:/opt/x".into()));
        assert_eq!(m("/a:$LIB"), None);
    }

    #[test]
    fn empty_and_relative_elements_are_left_out() {
        let e: Vec<&[u8]> = elements(b"/a/:;rel::/b//c;//", b":;").collect();
        assert_eq!(e, [&b"a"[..], b"b//c", b""]);
    }
}
