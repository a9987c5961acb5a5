//! Files in which Python projects say how they were built: `torch/version.py`, TensorFlow's `build_info.py`,
//! what onnxruntime, Paddle and xFormers write.

use serde::Deserialize;

use super::lines::{Lines, token};
use super::tags::{CPU, tags};
use super::{Fact, Said, json};
use crate::model::ClaimKind;
use crate::stream::Body;

/// Lines read at most; the real files have at most some hundreds.
const LINES: usize = 10_000;

/// Bytes of a JSON file read at most; the real one has some hundreds.
const JSON: u64 = 1 << 20;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Project {
    Torch,
    /// Its version alone tells: `0.22.1+cu126`.
    Torchvision,
    Torchaudio,
    Tensorflow,
    Onnxruntime,
    Paddle,
    Xformers,
}

/// Where the files lie in their site.
const FILES: [(&[u8], Project); 7] = [
    (b"torch/version.py", Project::Torch),
    (b"torchvision/version.py", Project::Torchvision),
    (b"torchaudio/version.py", Project::Torchaudio),
    (b"tensorflow/python/platform/build_info.py", Project::Tensorflow),
    (b"onnxruntime/capi/build_and_package_info.py", Project::Onnxruntime),
    (b"paddle/version/__init__.py", Project::Paddle),
    (b"xformers/cpp_lib.json", Project::Xformers),
];

/// Whether a path is one of these files.
pub fn wants(path: &[u8]) -> Option<Project> {
    let within = |file: &[u8]| {
        let head = path.strip_suffix(file)?;
        (head.is_empty() || head.ends_with(b"/")).then_some(())
    };
    FILES.iter().find(|(file, _)| within(file).is_some()).map(|(_, project)| *project)
}

impl Project {
    /// The folder that it installs in its site.
    pub fn import(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Torchvision => "torchvision",
            Self::Torchaudio => "torchaudio",
            Self::Tensorflow => "tensorflow",
            Self::Onnxruntime => "onnxruntime",
            Self::Paddle => "paddle",
            Self::Xformers => "xformers",
        }
    }
}

pub fn read(project: Project, body: &mut dyn Body) -> Result<Fact, String> {
    let (version, mut said) = match project {
        Project::Xformers => (None, xformers(body)?),
        Project::Tensorflow => (None, tensorflow(body)?),
        Project::Torch => torch(&Assigned::read(body)?)?,
        Project::Torchvision | Project::Torchaudio => tagged(&Assigned::read(body)?),
        Project::Onnxruntime => onnxruntime(&Assigned::read(body)?),
        Project::Paddle => (None, paddle(&Assigned::read(body)?)),
    };
    said.sort();
    said.dedup();
    Ok(Fact::Built { import: project.import().to_owned(), version, said })
}

/// Something that is `None`, `'False'` or a version.
fn release(kind: ClaimKind, value: Option<&Value>) -> Option<Said> {
    let Some(Value::Text(value)) = value else { return None };
    value.starts_with(|c: char| c.is_ascii_digit()).then(|| Said { kind, value: value.clone() })
}

fn cpu_only() -> Said {
    Said { kind: ClaimKind::CpuOnly, value: CPU.to_owned() }
}

type Told = (Option<String>, Vec<Said>);

fn torch(file: &Assigned) -> Result<Told, String> {
    let version = file.text("__version__").map(str::to_owned);
    if version.is_none() && file.get("cuda").is_none() {
        return Err("it assigns neither __version__ nor cuda".to_owned());
    }
    let mut said: Vec<Said> = release(ClaimKind::Cuda, file.get("cuda")).into_iter().collect();
    said.extend(release(ClaimKind::Rocm, file.get("rocm")).or_else(|| release(ClaimKind::Rocm, file.get("hip"))));
    said.extend(release(ClaimKind::Xpu, file.get("xpu")));
    // Older files have no line for what they could not be built for.
    let without = |name| matches!(file.get(name), None | Some(Value::None));
    if matches!(file.get("cuda"), Some(Value::None)) && without("hip") && without("rocm") && without("xpu") {
        said.push(cpu_only());
    }
    Ok((version, said))
}

fn tagged(file: &Assigned) -> Told {
    let version = file.text("__version__").map(str::to_owned);
    let said = version.as_deref().and_then(|v| v.split_once('+')).map_or_else(Vec::new, |(_, tag)| tags(tag));
    (version, said)
}

fn onnxruntime(file: &Assigned) -> Told {
    let mut said: Vec<Said> = release(ClaimKind::Cuda, file.get("cuda_version")).into_iter().collect();
    said.extend(release(ClaimKind::Cudnn, file.get("cudnn_version")));
    said.extend(release(ClaimKind::Rocm, file.get("rocm_version")));
    if said.is_empty() && file.text("package_name") == Some("onnxruntime") {
        said.push(cpu_only());
    }
    (file.text("__version__").map(str::to_owned), said)
}

fn paddle(file: &Assigned) -> Vec<Said> {
    let mut said: Vec<Said> = release(ClaimKind::Cuda, file.get("cuda_version")).into_iter().collect();
    said.extend(release(ClaimKind::Cudnn, file.get("cudnn_version")));
    let others = ["hip_version", "xpu_version", "xpu_xre_version"];
    let without =
        |name: &&str| matches!(file.get(name), None | Some(Value::None)) || file.text(name) == Some("False");
    if file.text("cuda_version") == Some("False") && others.iter().all(without) {
        said.push(cpu_only());
    }
    said
}

/// One literal with `('cuda_version', '12.5.1')` and `('is_cuda_build', True)`; until 2.2 lines such as
/// `is_cuda_build = True`.
fn tensorflow(body: &mut dyn Body) -> Result<Vec<Said>, String> {
    let mut lines = Lines::new(body);
    let (mut said, mut cuda, mut rocm) = (Vec::new(), None, None);
    for _ in 0..LINES {
        let Some(line) = lines.next().map_err(|e| e.to_string())? else { break };
        said.extend(release(ClaimKind::Cuda, after(line, b"cuda_version").as_ref()));
        said.extend(release(ClaimKind::Cudnn, after(line, b"cudnn_version").as_ref()));
        said.extend(release(ClaimKind::Rocm, after(line, b"rocm_version").as_ref()));
        cuda = cuda.or_else(|| after(line, b"is_cuda_build"));
        rocm = rocm.or_else(|| after(line, b"is_rocm_build"));
    }
    if cuda == Some(Value::False) && rocm.is_none_or(|r| r == Value::False) {
        said.push(cpu_only());
    }
    Ok(said)
}

/// What stands after a word, its quote and `,`, `:` or `=`.
fn after(line: &[u8], word: &[u8]) -> Option<Value> {
    let at = memchr::memmem::find(line, word)?;
    let begins = at == 0 || matches!(line[at - 1], b'\'' | b'"' | b' ');
    let rest = line[at + word.len()..].strip_prefix(b"_number").unwrap_or(&line[at + word.len()..]);
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b"'").or_else(|| rest.strip_prefix(b"\"")).unwrap_or(rest).trim_ascii_start();
    let rest = [b',', b':', b'='].iter().find_map(|p| rest.strip_prefix(&[*p]))?;
    begins.then(|| Value::read(rest))?
}

#[derive(Deserialize)]
struct CppLib {
    version: CppLibVersion,
}

#[derive(Deserialize)]
struct CppLibVersion {
    cuda: Option<serde_json::Value>,
    hip: Option<serde_json::Value>,
}

/// `{"version": {"cuda": 1208, "hip": null, …}, …}`.
fn xformers(body: &mut dyn Body) -> Result<Vec<Said>, String> {
    let CppLib { version: CppLibVersion { cuda, hip } } = json::read(body, JSON)?;
    let cuda = cuda.as_ref().and_then(serde_json::Value::as_u64).filter(|n| (700..10_000).contains(n));
    let cuda = cuda.map(|n| Said { kind: ClaimKind::Cuda, value: format!("{}.{}", n / 100, n % 100) });
    let hip = hip.as_ref().and_then(serde_json::Value::as_str).and_then(|h| token(h.as_bytes()));
    Ok(cuda.into_iter().chain(hip.map(|value| Said { kind: ClaimKind::Rocm, value })).collect())
}

/// A Python literal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    None,
    True,
    False,
    Text(String),
}

impl Value {
    fn read(literal: &[u8]) -> Option<Self> {
        let literal = literal.trim_ascii();
        let word = |w: &[u8]| {
            literal.strip_prefix(w).is_some_and(|rest| rest.first().is_none_or(|b| !b.is_ascii_alphanumeric()))
        };
        let quote = *literal.first()?;
        match quote {
            b'\'' | b'"' => {
                let text = &literal[1..];
                let end = memchr::memchr(quote, text)?;
                token(&text[..end]).map(Self::Text)
            }
            _ if word(b"None") => Some(Self::None),
            _ if word(b"True") => Some(Self::True),
            _ if word(b"False") => Some(Self::False),
            _ => None,
        }
    }
}

/// Assignments of literals at the beginning of a line, of names that are asked for.
struct Assigned(Vec<(&'static str, Value)>);

impl Assigned {
    const NAMES: [&'static str; 12] = [
        "__version__",
        "cuda",
        "cuda_version",
        "cudnn_version",
        "hip",
        "hip_version",
        "package_name",
        "rocm",
        "rocm_version",
        "xpu",
        "xpu_version",
        "xpu_xre_version",
    ];

    fn read(body: &mut dyn Body) -> Result<Self, String> {
        let mut lines = Lines::new(body);
        let mut out: Vec<(&'static str, Value)> = Vec::new();
        for _ in 0..LINES {
            let Some(line) = lines.next().map_err(|e| e.to_string())? else { break };
            if let Some((name, value)) = assignment(line)
                && let Some(name) = Self::NAMES.iter().find(|n| n.as_bytes() == name)
            {
                // What is assigned last counts.
                out.retain(|(n, _)| n != name);
                out.push((name, value));
            }
        }
        Ok(Self(out))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// `name = 'text'`, with or without a type: the name and the value.
fn assignment(line: &[u8]) -> Option<(&[u8], Value)> {
    let equals = memchr::memchr(b'=', line)?;
    let name = line[..equals].split(|&b| b == b':').next()?.trim_ascii_end();
    Some((name, Value::read(&line[equals + 1..])?))
}

#[cfg(test)]
mod tests;
