//! How names are compared: product names of GPUs, names of Python packages, and which known name is nearest to a
//! mistyped one.

/// A product name without case, spaces, hyphens, underscores and parentheses: "RTX 5090" and "rtx-5090" are one.
pub fn key(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '.' | '+')).flat_map(char::to_lowercase).collect()
}

/// The words of a product name, lower case.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '+')))
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// A Python package's name as PEP 503 normalises it, blanks around it dropped.
pub fn dist(name: &str) -> String {
    crate::model::package_name(name.trim())
}

/// The numbers of a package's version, for ordering: "2.9.1+cu128" is 2, 9, 1. Zeros at the end are dropped, so that
/// 0.50 is 0.50.0.
pub fn version(text: &str) -> Vec<u64> {
    let public = text.split('+').next().unwrap_or(text);
    let mut parts: Vec<u64> = public.split('.').map_while(|p| p.parse().ok()).collect();
    while parts.last() == Some(&0) {
        parts.pop();
    }
    parts
}

/// All numbers of a version, zeros at its end kept: for comparing as many parts as a row names.
pub fn numbers(text: &str) -> Vec<u64> {
    text.split('.').map_while(|p| p.parse().ok()).collect()
}

/// Edits (insert, remove, replace, swap of neighbours) between two texts.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j - 1] + same).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Up to `limit` known names near `text`, nearest first. Far ones are left out.
pub fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    // A name is short; what is longer than any is no misspelling of one, and need not be measured.
    let text: String = key(text).chars().take(64).collect();
    let far = (text.chars().count() / 3).max(2);
    let mut near: Vec<(usize, &str)> =
        known.map(|name| (distance(&text, &key(name)), name)).filter(|(d, _)| *d <= far).collect();
    near.sort_unstable();
    // Spellings of one name ("RTX 5090", "rtx-5090") are one.
    let mut seen = std::collections::BTreeSet::new();
    near.into_iter().map(|(_, name)| name).filter(|name| seen.insert(key(name))).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_their_separators() {
        assert_eq!(key("NVIDIA GeForce RTX 5090"), "nvidiageforcertx5090");
        assert_eq!(key("rtx_5090"), key("RTX-5090"));
        assert_eq!(words("A100-SXM4 80GB"), ["a100", "sxm4", "80gb"]);
        assert!(version("2.10.0") > version("2.9.1+cu128"));
        assert_eq!(version("0.50"), version("0.50.0"));
        assert_eq!(dist("Flash__Attn.cuda"), "flash-attn-cuda");
    }

    #[test]
    fn near_names() {
        assert_eq!(distance("platfrom", "platform"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("drvier", ["driver", "gpu"].into_iter(), 3), ["driver"]);
        assert!(nearest("zzzzzz", ["driver"].into_iter(), 3).is_empty());
    }
}
