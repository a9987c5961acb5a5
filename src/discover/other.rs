//! GPUs of AMD and Intel, as labels and the kernel name them.

use crate::catalog::Catalog;

/// The catalog's name of a label's product, which may have more words: `AMD_Instinct_MI300X_OAM` is an Instinct MI300X.
/// What the catalog does not know keeps all its words.
pub(super) fn shortest_known(catalog: &Catalog, label: &str) -> String {
    let words: Vec<&str> = label.split(['_', ' ', '-']).filter(|w| !w.is_empty()).collect();
    let mut heads =
        (1..=words.len().min(12)).rev().map(|n| words.iter().take(n).copied().collect::<Vec<_>>().join(" "));
    let known = heads.find_map(|name| Some(catalog.gpu(&name).ok()?.name()));
    known.unwrap_or_else(|| words.join(" "))
}

/// The product in Intel's words, which lack the maker's: `Max_1550`, `Arc_Pro_B60`. What the catalog does not know is
/// named in full.
pub(super) fn intel_product(catalog: &Catalog, label: &str) -> String {
    let words = label.replace(['_', '-'], " ");
    let whole = ["Intel ", "Intel Data Center GPU "].map(|maker| format!("{maker}{words}"));
    let known = whole.iter().find_map(|name| Some(catalog.gpu(name).ok()?.name()));
    let [_, full] = whole;
    known.unwrap_or(full)
}

/// `gfx942` of KFD's `gfx_target_version 90402`; nothing for a processor (0) or an odd number.
pub(super) fn gfx(version: u32) -> Option<String> {
    let (major, minor, step) = (version / 10_000, version / 100 % 100, version % 100);
    (major > 0 && minor < 16 && step < 16).then(|| format!("gfx{major}{minor:x}{step:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_in_labels() {
        let known = |label: &str| shortest_known(Catalog::embedded(), label);
        assert_eq!(known("AMD_Instinct_MI300X_OAM"), "AMD Instinct MI300X");
        assert_eq!(known("Instinct_MI210"), "AMD Instinct MI210");
        assert_eq!(known("AMD_Something_New"), "AMD Something New");
        assert_eq!(known(""), "");
        assert_eq!(known(&"a_".repeat(100_000)).len(), 199_999);
    }

    #[test]
    fn products_of_intel() {
        let known = |label: &str| intel_product(Catalog::embedded(), label);
        assert_eq!(known("Max_1550"), "Intel Data Center GPU Max 1550");
        assert_eq!(known("Flex_170"), "Intel Data Center GPU Flex 170");
        assert_eq!(known("Arc_Pro_B60"), "Intel Arc Pro B60");
        assert_eq!(known("New_1"), "Intel Data Center GPU New 1");
    }

    #[test]
    fn targets_of_kfd() {
        let of = |v| gfx(v);
        assert_eq!(of(90_402).as_deref(), Some("gfx942"));
        assert_eq!(of(90_010).as_deref(), Some("gfx90a"));
        assert_eq!(of(100_300).as_deref(), Some("gfx1030"));
        assert_eq!(of(120_001).as_deref(), Some("gfx1201"));
        assert_eq!((of(0), of(99), of(u32::MAX)), (None, None, None));
    }
}
