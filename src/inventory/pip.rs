//! Python distributions: `METADATA` and `RECORD` of a dist-info, `PKG-INFO` of an egg-info.

use super::lines::{Lines, field, token};
use super::{Fact, Files};
use crate::model::ImagePath;
use crate::stream::Body;

/// Header lines read at most: real ones have some dozens (classifiers, requirements).
const HEADERS: usize = 20_000;

/// Name and version from the headers.
pub fn metadata(body: &mut dyn Body) -> Result<Fact, String> {
    let mut lines = Lines::new(body);
    let (mut name, mut version) = (None, None);
    for _ in 0..HEADERS {
        let Some(line) = lines.next().map_err(|e| e.to_string())? else { break };
        if line.is_empty() || (name.is_some() && version.is_some()) {
            break;
        }
        if name.is_none()
            && let Some(value) = field(line, "Name")
        {
            name = Some(distribution_name(value).ok_or("its Name is not the name of a distribution")?);
        }
        if version.is_none()
            && let Some(value) = field(line, "Version")
        {
            version = token(value);
        }
    }
    match name {
        Some(name) => Ok(Fact::Python { name, version }),
        None => Err("it has no Name".to_owned()),
    }
}

fn distribution_name(bytes: &[u8]) -> Option<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    token(bytes).filter(|name| name.bytes().all(plain))
}

/// Name and version from a directory `torch-2.7.0+cu126.dist-info`.
pub fn from_directory(dir: &ImagePath) -> Option<(String, Option<String>)> {
    let stem = dir.file_name().strip_suffix(b".dist-info")?;
    let mut parts = stem.splitn(2, |&b| b == b'-');
    let name = distribution_name(parts.next()?)?;
    Some((name, parts.next().and_then(token)))
}

/// The files a distribution installed. Paths count from the directory that holds the dist-info and may climb
/// out of it (`../../../bin/torchrun`); absolute ones are allowed.
pub fn record(site: &ImagePath, body: &mut dyn Body) -> Result<Fact, String> {
    let mut lines = Lines::new(body);
    let mut files = Files::default();
    while let Some(line) = lines.next().map_err(|e| e.to_string())? {
        let path = first_column(line);
        if path.is_empty() {
        } else if path.starts_with(b"/") {
            files.add(&ImagePath::new(path));
        } else {
            files.add(&site.join(path));
        }
    }
    let overlong = lines.overlong;
    Ok(Fact::PythonFiles { files: files.finish(overlong) })
}

/// The first value of a CSV line, unquoted.
fn first_column(line: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let Some(quoted) = line.strip_prefix(b"\"") else {
        return line.split(|&b| b == b',').next().unwrap_or_default().into();
    };
    let mut out = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter().copied().peekable();
    while let Some(b) = bytes.next() {
        if b == b'"' && bytes.next_if_eq(&b'"').is_none() {
            break;
        }
        out.push(b);
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::super::hash;
    use super::*;
    use crate::stream::{Plain, Stream};

    fn meta(text: &str) -> Result<Fact, String> {
        metadata(&mut Stream::new(Plain(text.as_bytes()), None))
    }

    #[test]
    fn headers_alone_count() {
        // nvidia-nvtx-cu12 12.9.79, from PyPI.
        let text = "Metadata-Version: 2.4\nName: nvidia-nvtx-cu12\nVersion: 12.9.79\nSummary: NVIDIA Tools \
                    Extension\nHome-page: https://developer.nvidia.com/cuda-zone\nAuthor: Nvidia CUDA Installer Team\n";
        let fact = Fact::Python { name: "nvidia-nvtx-cu12".into(), version: Some("12.9.79".into()) };
        assert_eq!(meta(text), Ok(fact));
        assert!(meta("Summary: x\n\nName: in-the-body\n").is_err());
        assert!(meta("Name: bad name\nVersion: 1\n").is_err());
        assert!(meta("").is_err());
        assert_eq!(meta("name: x\r\n\r\n"), Ok(Fact::Python { name: "x".into(), version: None }));
    }

    #[test]
    fn records_are_resolved_from_the_site() {
        // Lines of bitsandbytes 0.45.0 and of an installed torch, and oddities.
        let text = "bitsandbytes/__init__.py,sha256=CYlx4-p8n6LE5uBo4xnTEGMNOX4lLrFcWEXqtTcOKf8,544\r\n\
                    bitsandbytes/libbitsandbytes_cuda117.so,sha256=sl01_MT7nlF9cjhjyXqw5plIrodcvBVbVvtoE5ghGzE,20903696\n\
                    ../../../bin/torchrun,sha256=x,218\n\
                    \"odd,\"\"name\"\"\",,\n\
                    /etc/absolute.so,,\n\
                    ../../../../../../up.so,,\n\
                    \n\
                    nvidia_nvtx_cu12-12.9.79.dist-info/RECORD,,\n";
        let site = ImagePath::new("v/lib/python3.11/site-packages");
        let fact = record(&site, &mut Stream::new(Plain(text.as_bytes()), None)).unwrap();
        let Fact::PythonFiles { files } = fact else { panic!("{fact:?}") };
        let mut expected = [
            "v/lib/python3.11/site-packages/bitsandbytes/__init__.py",
            "v/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cuda117.so",
            "v/bin/torchrun",
            "v/lib/python3.11/site-packages/odd,\"name\"",
            "etc/absolute.so",
            "up.so",
            "v/lib/python3.11/site-packages/nvidia_nvtx_cu12-12.9.79.dist-info/RECORD",
        ]
        .map(|p| hash(p.as_bytes()));
        expected.sort_unstable();
        assert_eq!(files.hashes, expected);
        assert_eq!(files.skipped, 0);
    }

    #[test]
    fn directories_name_distributions() {
        let name = |t: &str| from_directory(&ImagePath::new(t));
        assert_eq!(name("s/torch-2.7.0+cu126.dist-info"), Some(("torch".into(), Some("2.7.0+cu126".into()))));
        assert_eq!(name("torch.dist-info"), Some(("torch".into(), None)));
        assert_eq!(name("torch"), None);
        assert_eq!(name(".dist-info"), None);
    }
}
