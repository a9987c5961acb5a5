//! Which component or package of one image is which of the other.

use std::collections::BTreeMap;

use crate::model::package_name;

/// A name without what says for which CUDA it was built: `nvidia-cublas-cu12` and `nvidia-cublas` are of one family,
/// so are `cupy-cuda12x` and `cupy-cuda13x`.
pub fn family(name: &str) -> String {
    let name = package_name(name);
    let built_for = |word: &str| {
        let digits = word.strip_prefix("cuda").or_else(|| word.strip_prefix("cu"));
        let digits = digits.map(|d| d.strip_suffix('x').unwrap_or(d));
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    let words: Vec<&str> = name.split('-').collect();
    // A name of that word alone is no name.
    let kept: Vec<&str> =
        words.iter().enumerate().filter(|(i, w)| *i == 0 || !built_for(w)).map(|(_, w)| *w).collect();
    kept.join("-")
}

/// Pairs things by their keys: what is equal under the first, of the rest what is equal under the next, and so on. Under
/// all keys but the first only where it is sure: one on each side. Returns (old, new) by their places; one side absent:
/// no counterpart.
pub fn pairs<K: Ord, const N: usize>(old: &[[K; N]], new: &[[K; N]]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut left: Vec<usize> = (0..old.len()).collect();
    let mut right: Vec<usize> = (0..new.len()).collect();
    let mut out = Vec::new();
    for round in 0..N {
        let mut groups: BTreeMap<&K, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for &at in &left {
            groups.entry(&old[at][round]).or_default().0.push(at);
        }
        for &at in &right {
            groups.entry(&new[at][round]).or_default().1.push(at);
        }
        for (mut ours, mut theirs) in groups.into_values() {
            if round > 0 && (ours.len() > 1 || theirs.len() > 1) {
                continue;
            }
            let both = ours.len().min(theirs.len());
            for (a, b) in ours.drain(..both).zip(theirs.drain(..both)) {
                left.retain(|&at| at != a);
                right.retain(|&at| at != b);
                out.push((Some(a), Some(b)));
            }
        }
    }
    out.extend(left.into_iter().map(|a| (Some(a), None)));
    out.extend(right.into_iter().map(|b| (None, Some(b))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families() {
        for (name, want) in [
            ("nvidia-cublas-cu12", "nvidia-cublas"),
            ("nvidia_cublas_cu13", "nvidia-cublas"),
            ("nvidia-cublas", "nvidia-cublas"),
            ("cupy-cuda12x", "cupy"),
            ("tensorrt-cu12-libs", "tensorrt-libs"),
            ("cu12", "cu12"),
            ("curl-cu", "curl-cu"),
            ("nvidia-cudnn-cu12", "nvidia-cudnn"),
            ("cuda-python", "cuda-python"),
        ] {
            assert_eq!(family(name), want, "{name}");
        }
    }

    fn paired(old: &[&str], new: &[&str]) -> Vec<String> {
        let keys = |all: &[&str]| all.iter().map(|n| [(*n).to_owned(), family(n)]).collect::<Vec<_>>();
        let mut out: Vec<String> = pairs(&keys(old), &keys(new))
            .into_iter()
            .map(|(a, b)| format!("{}>{}", a.map_or("", |a| old[a]), b.map_or("", |b| new[b])))
            .collect();
        out.sort();
        out
    }

    #[test]
    fn the_same_name_goes_first_and_a_family_only_where_it_is_sure() {
        assert_eq!(paired(&["x-cu12", "torch"], &["torch", "x-cu13"]), ["torch>torch", "x-cu12>x-cu13"]);
        assert_eq!(paired(&["x-cu12"], &["x-cu12", "x-cu13"]), [">x-cu13", "x-cu12>x-cu12"]);
        assert_eq!(paired(&["x-cu11", "x-cu12"], &["x-cu13"]), [">x-cu13", "x-cu11>", "x-cu12>"]);
        assert_eq!(paired(&["a", "a"], &["a"]), ["a>", "a>a"]);
        assert_eq!(paired(&[], &[]), [""; 0]);
    }
}
