//! `torch/version.py`: the version with its local tag, and the CUDA release torch was built with.

use super::Fact;
use super::lines::{Lines, token};
use crate::stream::Body;

/// Lines read at most; the real file has about ten.
const LINES: usize = 1000;

pub fn version(body: &mut dyn Body) -> Result<Fact, String> {
    let mut lines = Lines::new(body);
    let (mut version, mut cuda) = (None, None);
    for _ in 0..LINES {
        let Some(line) = lines.next().map_err(|e| e.to_string())? else { break };
        match assignment(line) {
            Some((b"__version__", value)) => version = token(value),
            Some((b"cuda", value)) => cuda = token(value),
            _ => {}
        }
    }
    if version.is_none() && cuda.is_none() {
        return Err("it assigns neither __version__ nor cuda".to_owned());
    }
    Ok(Fact::Torch { version, cuda })
}

/// `name = 'text'`, with or without a type: the name and the text. `None` values are no text.
fn assignment(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = line.iter().position(|&b| b == b'=')?;
    let (target, value) = (&line[..equals], line[equals + 1..].trim_ascii());
    let name = target.split(|&b| b == b':').next()?.trim_ascii();
    let quote = *value.first().filter(|&&b| b == b'\'' || b == b'"')?;
    let text = &value[1..];
    let end = text.iter().position(|&b| b == quote)?;
    Some((name, &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Plain, Stream};

    fn read(text: &str) -> Result<Fact, String> {
        version(&mut Stream::new(Plain(text.as_bytes()), None))
    }

    #[test]
    fn both_forms_of_the_file_are_read() {
        let fact = Fact::Torch { version: Some("2.7.0+cu126".to_owned()), cuda: Some("12.6".to_owned()) };
        let generated = "from typing import Optional\n\n\
                         __all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n\
                         __version__ = '2.7.0+cu126'\ndebug = False\ncuda: Optional[str] = '12.6'\n\
                         git_version = '134179474539648ba7dee1317959529fbd0e7f89'\nhip: Optional[str] = None\n";
        assert_eq!(read(generated), Ok(fact.clone()));
        assert_eq!(read("__version__=\"2.7.0+cu126\"\r\ncuda=\"12.6\"  # built\r\n"), Ok(fact));
        let cpu = Fact::Torch { version: Some("2.7.0+cpu".to_owned()), cuda: None };
        assert_eq!(read("__version__ = '2.7.0+cpu'\ncuda: Optional[str] = None\n"), Ok(cpu));
        assert!(read("cuda = 'open\n").is_err());
    }
}
