//! Intel's GPU targets, by the number of their IP: 12.60.7 is Ponte Vecchio. Numbers: intel/compute-runtime,
//! `platforms.h`; the text is that of the SYCL compiler's `-fsycl-targets=intel_gpu_12_60_7`.

use std::fmt;
use std::str::FromStr;

use super::version::{ParseVersionError, serde_as_text};

/// An IP version: major, minor, revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntelIp {
    pub major: u16,
    pub minor: u8,
    pub revision: u8,
}

impl IntelIp {
    /// From the packed number of a zebin's note 6: 10 bits major, 8 bits minor, 6 bits revision at the end.
    pub fn from_packed(packed: u32) -> Self {
        Self { major: (packed >> 22) as u16, minor: (packed >> 14) as u8, revision: (packed & 0x3f) as u8 }
    }

    /// `12.60.7`.
    pub fn dotted(self) -> String {
        format!("{}.{}.{}", self.major, self.minor, self.revision)
    }
}

impl fmt::Display for IntelIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "intel_gpu_{}_{}_{}", self.major, self.minor, self.revision)
    }
}

impl FromStr for IntelIp {
    type Err = ParseVersionError;
    /// `12.60.7` or `intel_gpu_12_60_7`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseVersionError::new(text, "an Intel GPU's IP version such as 12.60.7");
        let (body, between) = match text.strip_prefix("intel_gpu_") {
            Some(body) => (body, '_'),
            None => (text, '.'),
        };
        let plain = |t: &&str| !t.is_empty() && t.len() <= 4 && t.bytes().all(|b| b.is_ascii_digit());
        let mut parts = body.split(between);
        let mut next = || parts.next().filter(plain).ok_or_else(err);
        let ip = Self {
            major: next()?.parse().map_err(|_| err())?,
            minor: next()?.parse().map_err(|_| err())?,
            revision: next()?.parse().map_err(|_| err())?,
        };
        if parts.next().is_some() || ip.major >= 1 << 10 || ip.revision >= 1 << 6 {
            return Err(err());
        }
        Ok(ip)
    }
}
serde_as_text!(IntelIp, "IntelIp");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let pvc = IntelIp { major: 12, minor: 60, revision: 7 };
        assert_eq!(IntelIp::from_packed(0x030F_0007), pvc);
        assert_eq!("12.60.7".parse::<IntelIp>().unwrap(), pvc);
        assert_eq!(pvc.to_string().parse::<IntelIp>().unwrap(), pvc);
        assert_eq!(pvc.dotted(), "12.60.7");
        for text in
            ["12.60", "12.60.7.1", "12.300.1", "12.60.64", "1024.1.1", "a.b.c", "", "intel_gpu_pvc", "+1.2.3"]
        {
            assert!(text.parse::<IntelIp>().is_err(), "{text}");
        }
    }
}
