//! Files that a command line names, and standard input, up to a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// All that is there; none where that is more than `most` bytes, of which no more are read.
pub fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    up_to(File::open(path)?, most)
}

/// The same of standard input.
pub fn read_stdin(most: u64) -> io::Result<Option<Vec<u8>>> {
    up_to(io::stdin().lock(), most)
}

/// The same of a file, or of standard input for `-`.
pub fn read_or_stdin(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    if path.as_os_str() == "-" { read_stdin(most) } else { read(path, most) }
}

fn up_to(source: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"12345").unwrap();
        assert_eq!(read(file.path(), 5).unwrap().unwrap(), b"12345");
        assert_eq!(read_or_stdin(file.path(), 4).unwrap(), None);
        assert!(up_to(io::repeat(b'x'), 1 << 20).unwrap().is_none());
        assert!(read(&file.path().join("none"), 5).is_err());
    }
}
