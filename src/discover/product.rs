//! Product names as machines show them, with what is appended for MIG, sharing and vGPU.

use super::Sharing;
use crate::model::Virtualisation;

/// A product's name in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// Without what was appended: "NVIDIA-A100-SXM4-40GB".
    pub name: String,
    pub virtualisation: Virtualisation,
    /// "1g.10gb", of MIG.
    pub profile: Option<String>,
    pub sharing: Option<Sharing>,
}

/// Takes a name apart: GPU Feature Discovery's `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED`, nvidia-smi's `NVIDIA
/// A100-4C` and `GRID T4-16Q` in a guest with vGPU.
pub fn product(text: &str) -> Product {
    let mut name = text.trim();
    let mut out =
        Product { name: String::new(), virtualisation: Virtualisation::None, profile: None, sharing: None };
    if let Some(rest) = without_end(name, "-SHARED") {
        (name, out.sharing) = (rest, Some(Sharing::Shared));
    }
    let lower = name.to_ascii_lowercase();
    let mig = lower.rfind("-mig-").or_else(|| lower.rfind(" mig "));
    if let Some((at, profile)) = mig.and_then(|at| Some((at, name.get(at + "-mig-".len()..)?))) {
        out.virtualisation = Virtualisation::Mig;
        out.profile = Some(profile.to_owned()).filter(|p| !p.is_empty());
        name = name.get(..at).unwrap_or(name);
    } else if let Some(base) = of_vgpu(name) {
        out.virtualisation = Virtualisation::Vgpu;
        name = base;
    }
    out.name = name.to_owned();
    out
}

/// The GPU of a vGPU type: memory and edition at the end, the MIG slice before (`NVIDIA A100-1-5C`), GRID in front.
fn of_vgpu(name: &str) -> Option<&str> {
    let (base, kind) = name.rsplit_once('-')?;
    let memory = kind.trim_start_matches(|c: char| c.is_ascii_digit());
    if memory.len() == kind.len() || !matches!(memory, "Q" | "C" | "A" | "B" | "CME") {
        return None;
    }
    let base = match base.rsplit_once('-') {
        Some((before, slices)) if !slices.is_empty() && slices.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => base,
    };
    let bare = base.strip_prefix("GRID").unwrap_or(base).trim_start_matches([' ', '-']);
    (!bare.is_empty()).then_some(bare)
}

fn without_end<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    tail.eq_ignore_ascii_case(end).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Virtualisation::{Mig, None as Whole, Vgpu};

    #[test]
    fn names_with_what_is_appended() {
        for (text, name, virtualisation, profile, shared) in [
            ("NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB", Whole, None, false),
            ("NVIDIA-L4-SHARED", "NVIDIA-L4", Whole, None, true),
            ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "NVIDIA-A100-SXM4-80GB", Mig, Some("1g.10gb"), false),
            ("A100-SXM4-40GB-MIG-1g.5gb-SHARED", "A100-SXM4-40GB", Mig, Some("1g.5gb"), true),
            ("NVIDIA A100-4C", "NVIDIA A100", Vgpu, None, false),
            ("NVIDIA-A10-24Q", "NVIDIA-A10", Vgpu, None, false),
            ("GRID T4-16Q", "T4", Vgpu, None, false),
            ("NVIDIA A100-1-5CME", "NVIDIA A100", Vgpu, None, false),
            ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3", Whole, None, false),
            ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090", Whole, None, false),
            ("", "", Whole, None, false),
            ("-SHARED", "", Whole, None, true),
            ("-MIG-", "", Mig, None, false),
            ("é-4Cé", "é-4Cé", Whole, None, false),
            ("-4C", "-4C", Whole, None, false),
        ] {
            let got = product(text);
            assert_eq!((got.name.as_str(), got.virtualisation), (name, virtualisation), "{text}");
            assert_eq!((got.profile.as_deref(), got.sharing.is_some()), (profile, shared), "{text}");
        }
    }
}
