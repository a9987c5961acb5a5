//! Squashfs images, as enroot keeps them.

use std::path::Path;

use super::super::squashfs::Squashfs;
use super::super::{Content, Image, ImageError, Layer};
use super::Handle;
use super::files::io_error;
use crate::model::{ConfigFacts, ImagePath};

/// Where enroot writes what the image sets in the environment.
const ENVIRONMENT: &str = "etc/environment";

/// The most that is read of it.
const MAX_ENVIRONMENT: usize = 1 << 20;

pub fn open(path: &Path, place: &str, reference: String) -> Result<Handle, ImageError> {
    let fs = Squashfs::open(path).map_err(|e| io_error(place, e))?;
    let size = path.metadata().map_err(|e| io_error(place, e))?.len();
    let text = fs.small(&ImagePath::new(ENVIRONMENT), MAX_ENVIRONMENT).map_err(|e| io_error(place, e))?;
    let env = text.map(|text| variables(&String::from_utf8_lossy(&text))).unwrap_or_default();
    let told = format!("the environment is taken from {ENVIRONMENT} of {place}, where enroot keeps the image's");
    let any = !env.is_empty();
    let (path, place) = (path.to_owned(), place.to_owned());
    let handle = Handle::new(reference, Vec::new(), move |_| {
        let fs = Squashfs::open(&path).map_err(|e| io_error(&place, e))?;
        let layer = Layer {
            digest: None,
            diff_id: None,
            size: Some(size),
            created_by: None,
            content: Content::Files(Box::new(fs)),
        };
        let config = ConfigFacts { env: env.clone(), ..ConfigFacts::default() };
        Ok(Image { digest: None, platform: None, config, layers: vec![layer] })
    });
    Ok(if any { handle.told(told) } else { handle })
}

/// `NAME=VALUE` lines, a value perhaps in quotes.
fn variables(text: &str) -> Vec<(String, String)> {
    let named = |line: &str| {
        let line = line.trim();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if name.is_empty() || !name.bytes().all(plain) {
            return None;
        }
        let quoted = |q: char| value.strip_prefix(q)?.strip_suffix(q);
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        Some((name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_as_enroot_and_debian_write_it() {
        let text =
            "PATH=\"/usr/bin:/bin\"\n# no=comment\nLD_LIBRARY_PATH=/usr/local/nvidia/lib\n\nA B=c\nE='x=y'\nN=\n";
        let want =
            [("PATH", "/usr/bin:/bin"), ("LD_LIBRARY_PATH", "/usr/local/nvidia/lib"), ("E", "x=y"), ("N", "")];
        let got = variables(text);
        let got: Vec<(&str, &str)> = got.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(got, want);
    }
}
