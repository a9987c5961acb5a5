//! Lists of architectures written anew, in the syntax of a build variable or of the example that a knob shows.
//! Lists that stand somewhere already are read and added to by [`arch_lists`](super::arch_lists).

use super::arch_lists::{ArchVariable, Grammar};
use crate::model::{Capability, SmArch};

fn dotted(arch: &SmArch) -> String {
    let cc = arch.capability().unwrap_or(Capability::new(0, 0));
    format!("{cc}{}", arch.suffix())
}

/// As CMake writes it: "89", "90a".
pub(super) fn number(arch: &SmArch) -> String {
    format!("{}{}", arch.number, arch.suffix())
}

fn join(archs: &[SmArch], one: impl Fn(&SmArch) -> String, by: &str) -> String {
    archs.iter().map(one).collect::<Vec<_>>().join(by)
}

/// `8.0;8.9;12.0`: TORCH_CUDA_ARCH_LIST.
pub fn torch(archs: &[SmArch]) -> String {
    join(archs, dotted, ";")
}

/// `80-real;89-real`: machine code only; a bare number would add PTX that nothing here needs.
pub fn cmake(archs: &[SmArch]) -> String {
    join(archs, |a| format!("{}-real", number(a)), ";")
}

/// A list in the syntax that a table's example shows.
pub fn like(variable: &str, example: &str, archs: &[SmArch]) -> String {
    if variable == "TORCH_CUDA_ARCH_LIST" {
        return torch(archs);
    }
    if variable.contains("CMAKE_CUDA_ARCHITECTURES") || variable == "CUDAARCHS" {
        return cmake(archs);
    }
    if example.contains("-gencode") {
        let equals = if example.contains("-gencode=") { "=" } else { " " };
        return join(archs, |a| format!("-gencode{equals}arch=compute_{0},code=sm_{0}", number(a)), " ");
    }
    if example.contains("arch=compute_") {
        return join(archs, |a| format!("arch=compute_{0},code=sm_{0}", number(a)), ";");
    }
    // The first separator between two members, as the example shows it.
    let by = example.find([';', ',', ' ']).map_or(";", |i| &example[i..=i]);
    if example.contains("sm_") {
        return join(archs, ToString::to_string, by);
    }
    let is_dotted =
        example.split([';', ',', ' ']).any(|t| t.starts_with(|c: char| c.is_ascii_digit()) && t.contains('.'));
    if is_dotted { join(archs, dotted, by) } else { join(archs, number, by) }
}

/// A list in a variable's own grammar, parted as the value that it takes the place of; none where the grammar cannot
/// say it: PTX alone where each member is machine code too, several where it takes one.
pub fn in_grammar(variable: &ArchVariable, old: &str, sass: &[SmArch], ptx: &[SmArch]) -> Option<String> {
    let by = variable.parse(old).separator;
    let by = if by.is_empty() { ";" } else { by.as_str() };
    let mut all = sass.to_vec();
    all.extend(ptx.iter().filter(|p| !sass.contains(p)));
    all.sort_unstable();
    if all.is_empty() {
        return None;
    }
    let plain = ptx.is_empty() || variable.ptx;
    let has = |list: &[SmArch], arch: &SmArch| list.contains(arch);
    Some(match variable.grammar {
        Grammar::Torch => join(&all, |a| dotted(a) + if has(ptx, a) { "+PTX" } else { "" }, by),
        Grammar::Cmake => join(
            &all,
            |a| match (has(sass, a), has(ptx, a)) {
                (true, true) => number(a),
                (true, false) => format!("{}-real", number(a)),
                (false, _) => format!("{}-virtual", number(a)),
            },
            by,
        ),
        Grammar::Gencode => gencode(variable, old, sass, ptx)?,
        Grammar::Bazel => {
            let code = |a: &SmArch| if has(ptx, a) { "compute" } else { "sm" };
            join(&all, |a| format!("{}_{}", code(a), number(a)), by)
        }
        Grammar::Numbers if plain => join(&all, number, by),
        Grammar::Dotted if plain => join(&all, dotted, by),
        Grammar::DottedPtx => join(if ptx.is_empty() { &all } else { ptx }, dotted, by),
        Grammar::One if plain && all.len() == 1 => join(&all, number, by),
        Grammar::Numbers | Grammar::Dotted | Grammar::One | Grammar::Gfx | Grammar::Free => return None,
    })
}

/// nvcc's options, or what stands behind one of them.
fn gencode(variable: &ArchVariable, old: &str, sass: &[SmArch], ptx: &[SmArch]) -> Option<String> {
    let pairs = || {
        let sass = sass.iter().map(|a| format!("arch=compute_{0},code=sm_{0}", number(a)));
        sass.chain(ptx.iter().map(|a| format!("arch=compute_{0},code=compute_{0}", number(a)))).collect::<Vec<_>>()
    };
    if variable.name.starts_with('-') {
        // One option takes one architecture; more of them need more options.
        let one = pairs();
        return match (one.as_slice(), sass, ptx) {
            ([pair], ..) if old.starts_with("arch=") => Some(pair.clone()),
            (_, [arch], []) if !old.starts_with("arch=") => Some(format!("sm_{}", number(arch))),
            _ => None,
        };
    }
    let own = if old.trim().is_empty() { variable.example.as_str() } else { old };
    Some(if own.contains("-gencode=") {
        pairs().iter().map(|p| format!("-gencode={p}")).collect::<Vec<_>>().join(" ")
    } else if own.starts_with("arch=") {
        pairs().join(";")
    } else {
        pairs().iter().map(|p| format!("-gencode {p}")).collect::<Vec<_>>().join(" ")
    })
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    #[test]
    fn a_list_is_written_in_the_grammar_of_its_place() {
        let archs = |text: &str| text.split_whitespace().map(|a| a.parse().unwrap()).collect::<Vec<SmArch>>();
        for (variable, old, sass, ptx, want) in [
            ("TORCH_CUDA_ARCH_LIST", "7.5 8.0", "sm_80 sm_90a", "", Some("8.0 9.0a")),
            ("TORCH_CUDA_ARCH_LIST", "7.5", "sm_80 sm_90", "sm_90", Some("8.0;9.0+PTX")),
            ("CMAKE_CUDA_ARCHITECTURES", "75", "sm_80 sm_90", "sm_90", Some("80-real;90")),
            ("CMAKE_CUDA_ARCHITECTURES", "75", "sm_80", "sm_90", Some("80-real;90-virtual")),
            (
                "NVCC_GENCODE",
                "",
                "sm_80",
                "sm_80",
                Some("-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=compute_80"),
            ),
            ("-arch", "sm_75", "sm_80", "", Some("sm_80")),
            ("-arch", "sm_75", "sm_80 sm_90", "", None),
            ("TF_CUDA_COMPUTE_CAPABILITIES", "sm_75,sm_80", "sm_80 sm_90", "sm_90", Some("sm_80,compute_90")),
            ("FLASH_ATTN_CUDA_ARCHS", "80;90", "sm_80 sm_120", "", Some("80;120")),
            ("CUDA_COMPUTE_CAP", "80", "sm_80 sm_90", "", None),
            ("CUDA_COMPUTE_CAP", "80", "sm_90", "", Some("90")),
            ("PYTORCH_ROCM_ARCH", "gfx90a", "sm_90", "", None),
            ("TORCH_CUDA_ARCH_LIST", "8.0", "", "", None),
        ] {
            let row = Catalog::embedded().arch_variables().variable(variable).unwrap();
            assert_eq!(in_grammar(row, old, &archs(sass), &archs(ptx)).as_deref(), want, "{variable} {old}");
        }
    }

    #[test]
    fn each_variable_has_its_syntax() {
        let archs: Vec<SmArch> = ["sm_80", "sm_90a", "sm_120"].iter().map(|a| a.parse().unwrap()).collect();
        for (variable, example, want) in [
            ("TORCH_CUDA_ARCH_LIST", "8.0;9.0+PTX", "8.0;9.0a;12.0"),
            ("TORCH_CUDA_ARCH_LIST", "8.6 8.9", "8.0;9.0a;12.0"),
            ("CMAKE_CUDA_ARCHITECTURES", "80;90", "80-real;90a-real;120-real"),
            ("FLASH_ATTN_CUDA_ARCHS", "80;90;100;120", "80;90a;120"),
            ("TF_CUDA_COMPUTE_CAPABILITIES", "sm_80,compute_90", "sm_80,sm_90a,sm_120"),
            (
                "NVCC_GENCODE",
                "-gencode=arch=compute_90,code=sm_90",
                "-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_120,code=sm_120",
            ),
            (
                "CUPY_NVCC_GENERATE_CODE",
                "arch=compute_80,code=sm_80;arch=compute_90,code=sm_90 | current",
                "arch=compute_80,code=sm_80;arch=compute_90a,code=sm_90a;arch=compute_120,code=sm_120",
            ),
            ("torch_cuda_arch_list", "7.0 7.5 8.0", "8.0 9.0a 12.0"),
            ("X", "60,70,75", "80,90a,120"),
        ] {
            assert_eq!(like(variable, example, &archs), want, "{variable} {example}");
        }
    }
}
