//! Lists of architectures written anew, in the syntax of a build variable or of the example that a knob shows.
//! Lists that stand somewhere already are read and added to by [`arch_lists`](super::arch_lists).

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

#[cfg(test)]
mod tests {
    use super::*;

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
