//! Names of packages.

/// A package's name as PEP 503 normalises it: `flash_attn` and `Flash.Attn` are `flash-attn`.
pub fn package_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if !matches!(c, '-' | '_' | '.') {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    out
}
