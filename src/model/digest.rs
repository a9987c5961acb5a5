//! Content digests.

use std::fmt;
use std::str::FromStr;

use super::version::{ParseVersionError, serde_as_text};

/// A sha256 digest, `sha256:` and 64 hex digits. Other algorithms are refused: nothing in the field uses them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hex digits.
    pub fn hex(&self) -> String {
        use fmt::Write;
        self.0.iter().fold(String::with_capacity(64), |mut out, b| {
            let _ = write!(out, "{b:02x}");
            out
        })
    }

    /// The first 12 hex digits, as people name images.
    pub fn short(&self) -> String {
        self.hex()[..12].to_owned()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl FromStr for Digest {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseVersionError::new(text, "a digest (sha256: and 64 hex digits)");
        let hex = text.strip_prefix("sha256:").ok_or_else(err)?.as_bytes();
        if hex.len() != 64 {
            return Err(err());
        }
        let mut out = [0; 32];
        for (byte, pair) in out.iter_mut().zip(hex.chunks(2)) {
            let digit = |c: u8| match c {
                b'0'..=b'9' => Ok(c - b'0'),
                b'a'..=b'f' => Ok(c - b'a' + 10),
                _ => Err(err()),
            };
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(out))
    }
}
serde_as_text!(Digest, "Digest");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_sha256_is_a_digest() {
        let d = Digest::of(b"");
        assert_eq!(d.to_string(), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(d.to_string().parse::<Digest>().unwrap(), d);
        assert!("sha256:../../../../etc/passwd".parse::<Digest>().is_err());
        assert!(format!("sha256:{}", "A".repeat(64)).parse::<Digest>().is_err());
        assert!(format!("sha512:{}", "a".repeat(64)).parse::<Digest>().is_err());
    }
}
