//! Drivers as users write them: a version, a branch, a range.

use crate::model::{DriverRange, DriverVersion, Maker, ParseVersionError};

/// Why a driver could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverRangeError {
    #[error("no driver is named; write a version (535.183.01), a branch (535) or a range (>=535.54, <570)")]
    Empty,
    #[error(transparent)]
    Version(#[from] ParseVersionError),
    #[error("`{op}` is not understood in `{text}`; a range is written with `>=` and `<`, as in >=535.54, <570")]
    Operator { text: String, op: String },
    #[error("`{text}` names the {which} twice")]
    Twice { text: String, which: &'static str },
    #[error("`{text}` has no lower bound; the lowest driver decides what runs, so write one, as in >=535, {text}")]
    NoLowest { text: String },
    #[error("`{text}` holds no driver: {lowest} is not below {below}")]
    Inverted { text: String, lowest: DriverVersion, below: DriverVersion },
}

/// Parses a driver: `535.183.01` (that one), `535` or `R535` (the branch), `>=535.54, <570` (a range).
///
/// The lowest driver inside decides. `below` is set whenever the drivers end somewhere, for one version just behind
/// it, for a branch at the next; it is `None` only where newer drivers are meant without end. `maker`: of the GPU, whose
/// drivers number in their own way; Intel's are taken as AMD's.
pub fn parse_driver(text: &str, maker: Maker) -> Result<DriverRange, DriverRangeError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(DriverRangeError::Empty);
    }
    if !text.contains(['<', '>', '=', ',', '!', '~', '^']) {
        let lowest = version(text, maker)?;
        let below = behind(&lowest, maker);
        return Ok(DriverRange { lowest, below, text: text.to_owned() });
    }
    let (mut lowest, mut below) = (None, None);
    for part in text.split(',') {
        let part = part.trim();
        let cut = part.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(part.len());
        let (op, number) = part.split_at(cut);
        let slot = match op.trim() {
            ">=" => (&mut lowest, "lowest driver"),
            "<" => (&mut below, "upper bound"),
            op => return Err(DriverRangeError::Operator { text: text.to_owned(), op: op.to_owned() }),
        };
        if slot.0.replace(version(number, maker)?).is_some() {
            return Err(DriverRangeError::Twice { text: text.to_owned(), which: slot.1 });
        }
    }
    let Some(lowest) = lowest else { return Err(DriverRangeError::NoLowest { text: text.to_owned() }) };
    if let Some(below) = below.clone().filter(|b| *b <= lowest) {
        return Err(DriverRangeError::Inverted { text: text.to_owned(), lowest, below });
    }
    Ok(DriverRange { lowest, below, text: text.to_owned() })
}

fn version(text: &str, maker: Maker) -> Result<DriverVersion, ParseVersionError> {
    match maker {
        Maker::Nvidia => text.parse(),
        Maker::Amd | Maker::Intel => DriverVersion::of_amd(text),
    }
}

/// The version just behind one version or branch: 536 behind 535, 535.183.2 behind 535.183.01.
fn behind(lowest: &DriverVersion, maker: Maker) -> Option<DriverVersion> {
    let text = lowest.to_string();
    let (head, last) = text.rsplit_once('.').map_or(("", text.as_str()), |(h, l)| (h, l));
    let next = last.parse::<u32>().ok()?.checked_add(1)?;
    let text = if head.is_empty() { next.to_string() } else { format!("{head}.{next}") };
    version(&text, maker).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>) {
        let range = parse_driver(text, Maker::Nvidia).unwrap();
        assert_eq!(range.text, text.trim());
        (range.lowest.to_string(), range.below.map(|b| b.to_string()))
    }

    #[test]
    fn versions_branches_and_ranges() {
        assert_eq!(parsed("535"), ("535".into(), Some("536".into())));
        assert_eq!(parsed("R535"), ("535".into(), Some("536".into())));
        assert_eq!(parsed("535.183.01"), ("535.183.01".into(), Some("535.183.2".into())));
        assert_eq!(parsed(" 570.86 "), ("570.86".into(), Some("570.87".into())));
        assert_eq!(parsed(">=535.54, <570"), ("535.54".into(), Some("570".into())));
        assert_eq!(parsed("<570,>=535.54"), ("535.54".into(), Some("570".into())));
        assert_eq!(parsed(">= 535"), ("535".into(), None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let err = |text: &str| parse_driver(text, Maker::Nvidia).unwrap_err();
        assert_eq!(err(" "), DriverRangeError::Empty);
        assert!(matches!(err("<570"), DriverRangeError::NoLowest { .. }));
        assert!(err("<570").to_string().contains(">=535, <570"));
        assert!(matches!(err(">=570, <535"), DriverRangeError::Inverted { .. }));
        assert!(matches!(err(">=535, <535"), DriverRangeError::Inverted { .. }));
        assert!(matches!(err(">=535, >=550"), DriverRangeError::Twice { .. }));
        assert!(matches!(err("<=570"), DriverRangeError::Operator { .. }));
        assert!(matches!(err("~535"), DriverRangeError::Operator { .. }));
        assert!(matches!(err(">=535,"), DriverRangeError::Operator { .. }));
        assert!(matches!(err(",,"), DriverRangeError::Operator { .. }));
        for odd in ["12.2", "535.x", ">=", ">=banana", "535.1.2.3", "5é35", "99999999999999999999", "4294967295"] {
            let _ = (parse_driver(odd, Maker::Nvidia), parse_driver(odd, Maker::Amd));
        }
        assert!(matches!(err("12.2"), DriverRangeError::Version(_)));
        let of_amd =
            |text: &str| parse_driver(text, Maker::Amd).map(|r| (r.lowest, r.below.map(|b| b.to_string())));
        assert_eq!(of_amd("30.30.3").unwrap().1.as_deref(), Some("30.30.4"));
        assert_eq!(of_amd(">=6.2, <30.10").unwrap().1.as_deref(), Some("30.10"));
        assert!(of_amd("535.183.01").unwrap_err().to_string().contains("of AMD"));
    }
}
