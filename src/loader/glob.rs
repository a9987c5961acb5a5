//! Shell patterns over one path component: what `include` in ld.so.conf and the tables' paths use.

use super::{Place, Tree};

/// Names looked at for one pattern.
const MAX_FOUND: usize = 10_000;

/// Whether a name matches a pattern of `*`, `?` and `[...]`. A leading dot is matched only by a dot.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    // Where to go on after a mismatch: behind the last star, one byte further in the name.
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match step(&pattern[p..], name[n]) {
            Step::Star => {
                p += 1;
                retry = Some((p, n));
            }
            Step::Yes(width) => {
                p += width;
                n += 1;
            }
            Step::No => match retry {
                Some((star, from)) => {
                    p = star;
                    n = from + 1;
                    retry = Some((star, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&b| b == b'*')
}

enum Step {
    Star,
    Yes(usize),
    No,
}

fn step(pattern: &[u8], byte: u8) -> Step {
    match pattern.first() {
        None => Step::No,
        Some(b'*') => Step::Star,
        Some(b'?') => Step::Yes(1),
        Some(b'[') => match set(pattern, byte) {
            Some((true, width)) => Step::Yes(width),
            Some((false, _)) => Step::No,
            None if byte == b'[' => Step::Yes(1),
            None => Step::No,
        },
        Some(&literal) if literal == byte => Step::Yes(1),
        Some(_) => Step::No,
    }
}

/// Whether a byte is in the set that a pattern begins with, and the set's width; `None`: it does not end.
fn set(pattern: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = if negated { 2 } else { 1 };
    let mut at = first;
    let mut inside = false;
    loop {
        let low = *pattern.get(at)?;
        if low == b']' && at > first {
            return Some((inside != negated, at + 1));
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some(b'-'), Some(&high)) if high != b']' => {
                inside |= (low..=high).contains(&byte);
                at += 3;
            }
            _ => {
                inside |= low == byte;
                at += 1;
            }
        }
    }
}

/// The paths that a pattern over several components leads to, sorted; each as written (links not followed).
pub fn expand(tree: &dyn Tree, from: u32, pattern: &[u8]) -> Vec<Vec<u8>> {
    let start = if pattern.starts_with(b"/") { tree.root() } else { from };
    let mut found: Vec<(Vec<u8>, Place)> = vec![(Vec::new(), Place::Dir(start))];
    for part in pattern.split(|&b| b == b'/').filter(|p| !p.is_empty()) {
        let mut next = Vec::new();
        for (path, place) in found {
            let Place::Dir(dir) = place else { continue };
            let mut names = match part.iter().any(|b| b"*?[".contains(b)) {
                true => tree.list(dir).into_iter().map(|(n, _)| n).filter(|n| matches(part, n)).collect(),
                false => vec![part.to_vec()],
            };
            names.sort_unstable();
            for name in names {
                if let Some(place) = tree.look(dir, &name)
                    && next.len() < MAX_FOUND
                {
                    let path = if path.is_empty() { name } else { [&path[..], b"/", &name].concat() };
                    next.push((path, place));
                }
            }
        }
        found = next;
    }
    found.into_iter().map(|(path, _)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let m = |p: &str, n: &str| matches(p.as_bytes(), n.as_bytes());
        assert!(m("*.conf", "cuda.conf"));
        assert!(!m("*.conf", ".hidden.conf"));
        assert!(!m("*.conf", "cuda.conf.rpmsave"));
        assert!(m("lib*.so.*[0-9]", "libcublas.so.12"));
        assert!(!m("lib*.so.*[0-9]", "libcublas.so"));
        assert!(m("?at", "cat") && !m("?at", "at"));
        assert!(m("[!a-c]x", "dx") && !m("[!a-c]x", "bx"));
        assert!(m("a*b*c", "a__b__b_c") && !m("a*b*c", "a__b__b_d"));
        assert!(m("[x", "[x") && m("*", "") && !m("", "a"));
        assert!(!m(&"*a".repeat(30), &"a".repeat(29)));
    }
}
