//! Words in version tags, build strings and names that say what something was built for: `2.7.0+cu126`,
//! `py3.11_cuda12.1_cudnn8.9.2_0`, `cupy-cuda12x`.

use super::Said;
use crate::model::ClaimKind;

/// The longest text that is looked at: names and versions from outside are at most this long.
const LONGEST: usize = 256;

/// What is said of something built without any GPU.
pub const CPU: &str = "cpu";

/// Everything a text says. `CpuOnly` where a word is just `cpu`.
pub fn tags(text: &str) -> Vec<Said> {
    let text = text.to_ascii_lowercase();
    let mut rest = &text.as_bytes()[..text.len().min(LONGEST)];
    let mut out = Vec::new();
    while let Some(start) = rest.iter().position(u8::is_ascii_alphabetic) {
        let length = rest[start..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let (word, after) = rest[start..].split_at(length);
        rest = after;
        let value = number(after);
        let found = match word {
            b"cuda" => value.and_then(|n| cuda(&n)).or_else(|| apart(after)).map(|v| (ClaimKind::Cuda, v)),
            b"cu" => value.and_then(|n| cuda(&n)).map(|v| (ClaimKind::Cuda, v)),
            b"cudnn" => value.and_then(|n| pointed(&n)).map(|v| (ClaimKind::Cudnn, v)),
            b"rocm" => value.and_then(|n| pointed(&n)).map(|v| (ClaimKind::Rocm, v)),
            b"cpu" if value.is_none() => Some((ClaimKind::CpuOnly, CPU.to_owned())),
            _ => None,
        };
        out.extend(found.map(|(kind, value)| Said { kind, value }));
    }
    out.sort();
    out.dedup();
    out
}

/// Digits, and points between digits, at the beginning.
fn number(rest: &[u8]) -> Option<String> {
    let mut end = 0;
    while let Some(b) = rest.get(end) {
        let point = *b == b'.' && end > 0 && rest.get(end + 1).is_some_and(u8::is_ascii_digit);
        if !b.is_ascii_digit() && !point {
            break;
        }
        end += 1;
    }
    (end > 0).then(|| String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// `12.1`, `12.1.1`, `121`, `1210`, `12`.
fn cuda(number: &str) -> Option<String> {
    let (first, rest) = number.split_once('.').unwrap_or((number, ""));
    if !rest.is_empty() && first.len() <= 2 {
        return Some(number.to_owned());
    }
    let (major, minor) = match first.len() {
        2 if first < "30" => return Some(first.to_owned()),
        2 => first.split_at(1),
        3 | 4 => first.split_at(2),
        _ => return None,
    };
    let minor: u16 = minor.parse().ok()?;
    Some(format!("{major}.{minor}"))
}

/// A number with its points, or one whose parts are single digits without points: `8.9.2`, `89`, `805`, `9`.
fn pointed(number: &str) -> Option<String> {
    if number.contains('.') {
        return Some(number.to_owned());
    }
    let parts: Vec<String> = number.chars().map(String::from).collect();
    (parts.len() <= 3).then(|| parts.join("."))
}

/// conda-forge's torchaudio: `cuda_126py312haeea92a_0`.
fn apart(rest: &[u8]) -> Option<String> {
    let digits = number(rest.strip_prefix(b"_")?)?;
    (digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| cuda(&digits))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        tags(text).iter().map(|s| format!("{:?} {}", s.kind, s.value)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn tags_of_versions_names_and_builds() {
        for (text, expected) in [
            ("2.7.0+cu126", "Cuda 12.6"),
            ("2.9.0+cu130", "Cuda 13.0"),
            ("1.13.1+cu92", "Cuda 9.2"),
            ("2.1.2+pt21cu121", "Cuda 12.1"),
            ("2.7.4.post1+cu12torch2.6cxx11abifalse", "Cuda 12"),
            ("0.4.7+cuda11.cudnn86", "Cuda 11, Cudnn 8.6"),
            ("2.0.0+cpu", "CpuOnly cpu"),
            ("2.0.0+cpu.cxx11.abi", "CpuOnly cpu"),
            ("2.0.0+pt20cpu", "CpuOnly cpu"),
            ("2.5.1+rocm6.2", "Rocm 6.2"),
            ("2.5.1+rocm624", "Rocm 6.2.4"),
            ("2.6.0a0+ecf3bae40a.nv25.01", ""),
            ("2.6.0+xpu", ""),
            ("cupy-cuda12x", "Cuda 12"),
            ("jax-cuda12-plugin", "Cuda 12"),
            ("nvidia-cuda-runtime-cu12", "Cuda 12"),
            ("spconv-cu118", "Cuda 11.8"),
            ("mxnet-cu1210", "Cuda 12.10"),
            ("cu2qu", ""),
            ("pycuda", ""),
            ("accu12", ""),
            ("py-cpuinfo", ""),
            ("cuda-python", ""),
            // Builds of conda packages, from their channels.
            ("py3.8_cuda11.7_cudnn8.5.0_0", "Cuda 11.7, Cudnn 8.5.0"),
            ("py3.10_cuda11.8_cudnn8_0", "Cuda 11.8, Cudnn 8"),
            ("cuda126_py312h1763f6d_306", "Cuda 12.6"),
            ("cuda126_mkl_py312_h1763f6d_306", "Cuda 12.6"),
            ("cuda_126py312haeea92a_0", "Cuda 12.6"),
            ("cuda120py39h20d3a4b_200", "Cuda 12.0"),
            ("gpu_cuda118py311h5e4bbd3_1", "Cuda 11.8"),
            ("cuda12.6_py311h1234567_0", "Cuda 12.6"),
            ("py39_cu113", "Cuda 11.3"),
            ("cpu_generic_py311_h1763f6d_1", "CpuOnly cpu"),
            ("py3.9_cpu_0", "CpuOnly cpu"),
            ("cuda_py311h1234567_0", ""),
            ("h4bc722e_0", ""),
            ("", ""),
            ("é+cu126", "Cuda 12.6"),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
    }
}
