//! Names of files that say which AMD GPUs they are for, as patterns: `TensileLibrary_lazy_{arch}.dat`.

use serde::Deserialize;

use crate::model::{GfxArch, GfxGroup, GfxMode, GfxProcessor};

/// Longest name of a file or folder that is looked at, as file systems have it.
const LONGEST: usize = 255;

/// A name or path below a library's folder. `*` is any part of one name, `{arch}` an architecture, `{arch+units}` one
/// with a number of compute units, and `**` at the end any path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    parts: Vec<Vec<Token>>,
    /// It ends with `**`.
    is_open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Text(Vec<u8>),
    Any,
    Arch,
    ArchUnits,
}

/// What a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    pub arch: GfxGroup,
    pub units: Option<u16>,
}

impl TryFrom<String> for Pattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let (body, is_open) = match text.strip_suffix("/**") {
            Some(body) => (body, true),
            None => (text.as_str(), false),
        };
        let parts = body.split('/').map(tokens).collect::<Option<Vec<_>>>();
        let parts = parts.ok_or_else(|| format!("`{text}` is not a pattern of names"))?;
        // Two wildcards between the same fixed texts would be tried in every combination.
        let stars = |part: &Vec<Token>| part.iter().filter(|t| **t == Token::Any).count() > 2;
        match parts.iter().any(|part| part.is_empty() || stars(part)) {
            true => Err(format!("`{text}` has an empty name or more than two `*` in one")),
            false => Ok(Self { parts, is_open }),
        }
    }
}

fn tokens(part: &str) -> Option<Vec<Token>> {
    let mut out = Vec::new();
    let mut rest = part;
    while !rest.is_empty() {
        let end = rest.find(['*', '{']).unwrap_or(rest.len());
        if end > 0 {
            out.push(Token::Text(rest.as_bytes()[..end].to_vec()));
            rest = &rest[end..];
        } else if let Some(after) = rest.strip_prefix('*') {
            out.push(Token::Any);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{arch}") {
            out.push(Token::Arch);
            rest = after;
        } else {
            rest = rest.strip_prefix("{arch+units}")?;
            out.push(Token::ArchUnits);
        }
    }
    Some(out)
}

impl Pattern {
    /// Whether names of it say for which GPUs they are.
    pub fn tells(&self) -> bool {
        self.parts.iter().flatten().any(|t| matches!(t, Token::Arch | Token::ArchUnits))
    }

    /// Whether a path is of it, and what it says. `known`: processors, those first whose names are longest.
    pub fn read(&self, path: &[u8], known: &[GfxProcessor]) -> Option<Option<Told>> {
        let mut names = path.split(|&b| b == b'/');
        let mut told = None;
        for part in &self.parts {
            let name = names.next().filter(|name| name.len() <= LONGEST)?;
            let mut here = None;
            if !matches(part, name, known, &mut here) {
                return None;
            }
            // The folder's name goes before the file's: both say the same, or the folder is for several.
            told = told.or(here);
        }
        (names.next().is_some() == self.is_open).then_some(told)
    }
}

fn matches(tokens: &[Token], text: &[u8], known: &[GfxProcessor], told: &mut Option<Told>) -> bool {
    let Some((first, rest)) = tokens.split_first() else { return text.is_empty() };
    match first {
        Token::Text(fixed) => text.strip_prefix(&fixed[..]).is_some_and(|t| matches(rest, t, known, told)),
        Token::Any => (0..=text.len()).any(|skip| matches(rest, &text[skip..], known, told)),
        Token::Arch => group(text).is_some_and(|(arch, length)| {
            let is = matches(rest, &text[length..], known, told);
            if is {
                *told = Some(Told { arch, units: None });
            }
            is
        }),
        Token::ArchUnits => with_units(text, known).is_some_and(|(found, length)| {
            let is = matches(rest, &text[length..], known, told);
            if is {
                *told = Some(found);
            }
            is
        }),
    }
}

/// The architecture that a text begins with, and its length: `gfx90a-xnack+`, `gfx950_xnackp`, `gfx11xx`.
fn group(text: &[u8]) -> Option<(GfxGroup, usize)> {
    let text = ascii(text)?;
    let body = text.strip_prefix("gfx")?;
    let hex = body.bytes().take_while(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)).count();
    let open = body[hex..].bytes().take_while(|b| *b == b'x').count();
    if open > 0 {
        let length = 3 + hex + open;
        return Some((text[..length].parse().ok()?, length));
    }
    let family = body.find("-generic").map(|at| 3 + at + "-generic".len());
    let generic = family.and_then(|length| Some((text[..length].parse::<GfxProcessor>().ok()?, length)));
    let exact = || Some((text[..3 + hex].parse::<GfxProcessor>().ok()?, 3 + hex));
    let (processor, mut length) = generic.or_else(exact)?;
    let mut arch = GfxArch::from(processor);
    while let Some((mode, word, taken)) = feature(&text[length..]) {
        match word {
            "xnack" => arch.xnack = mode,
            _ => arch.sramecc = mode,
        }
        length += taken;
    }
    Some((GfxGroup::One(arch), length))
}

/// A feature behind an architecture: names of files have other signs than target ids, `-xnack+` and `_xnackp`.
fn feature(text: &str) -> Option<(GfxMode, &'static str, usize)> {
    let rest = text.strip_prefix(['-', '_', ':'])?;
    let word = ["xnack", "sramecc"].into_iter().find(|word| rest.starts_with(word))?;
    let mode = match rest.as_bytes().get(word.len())? {
        b'+' | b'p' => GfxMode::On,
        b'-' | b'_' | b'm' => GfxMode::Off,
        _ => return None,
    };
    Some((mode, word, 1 + word.len() + 1))
}

/// An architecture and a number of compute units, as MIOpen writes them: up to 64 in decimal behind an underscore, more
/// in hexadecimal with nothing between, so that only a known architecture says where its name ends.
fn with_units(text: &[u8], known: &[GfxProcessor]) -> Option<(Told, usize)> {
    let text = ascii(text)?;
    let end = text.find('.').unwrap_or(text.len());
    let name = &text[..end];
    if let Some((arch, units)) = name.split_once('_') {
        let arch: GfxProcessor = arch.parse().ok()?;
        return Some((Told { arch: arch.into(), units: Some(units.parse().ok()?) }, end));
    }
    let found = known.iter().find_map(|processor| {
        let rest = name.strip_prefix(&processor.to_string())?;
        let units = match rest {
            "" => None,
            digits => Some(u16::from_str_radix(digits, 16).ok()?),
        };
        Some(Told { arch: (*processor).into(), units })
    });
    let whole = || Some(Told { arch: name.parse::<GfxProcessor>().ok()?.into(), units: None });
    Some((found.or_else(whole)?, end))
}

/// The plain part that a text begins with: names of architectures have no other.
fn ascii(text: &[u8]) -> Option<&str> {
    let end = text.iter().position(|b| !b.is_ascii()).unwrap_or(text.len());
    std::str::from_utf8(&text[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.to_owned().try_into().unwrap()
    }

    fn told(text: &str, path: &str) -> Option<String> {
        let known: Vec<GfxProcessor> =
            ["gfx1030", "gfx942", "gfx90a", "gfx908", "gfx906"].iter().map(|t| t.parse().unwrap()).collect();
        let told = pattern(text).read(path.as_bytes(), &known)?;
        Some(told.map_or("-".into(), |t| match t.units {
            Some(units) => format!("{} {units}", t.arch),
            None => t.arch.to_string(),
        }))
    }

    #[test]
    fn names_say_their_architecture() {
        for (text, path, expected) in [
            ("TensileLibrary_lazy_{arch}.dat", "TensileLibrary_lazy_gfx90a.dat", Some("gfx90a")),
            ("TensileLibrary_lazy_{arch}.dat", "TensileLibrary_Type_HH_fallback.dat", None),
            ("*_{arch}.co", "TensileLibrary_Type_HH_Ailk_fallback_gfx1100.co", Some("gfx1100")),
            ("*-{arch}.hsaco", "Kernels.so-000-gfx90a-xnack+.hsaco", Some("gfx90a:xnack+")),
            ("*-{arch}.hsaco", "Kernels.so-000-gfx90a.hsaco.bak", None),
            ("*_{arch}.a", "libdevice_conv_operations_gfx950_xnackp.a", Some("gfx950:xnack+")),
            ("*_{arch}.a", "libdevice_conv_operations_gfx950_xnack_.a", Some("gfx950:xnack-")),
            ("amd-{arch}/**", "amd-gfx11xx/flash/attn_fwd/x.aks2", Some("gfx11xx")),
            ("amd-{arch}/**", "amd-gfx110x/x", Some("gfx110x")),
            ("amd-{arch}/**", "amd-gfx110x", None),
            ("{arch}/TensileLibrary_lazy_*.dat", "gfx942/TensileLibrary_lazy_gfx942.dat", Some("gfx942")),
            ("*_{arch}.dat", "a_gfx9-4-generic.dat", Some("gfx9-4-generic")),
            ("*_{arch}.dat", "a_gfx12345x.dat", None),
            ("cache.db", "cache.db", Some("-")),
            ("{arch+units}.*", "gfx942130.db.txt", Some("gfx942 304")),
            ("{arch+units}.*", "gfx90878.HIP.fdb.txt", Some("gfx908 120")),
            ("{arch+units}.*", "gfx90a6e.HIP.fdb.txt", Some("gfx90a 110")),
            ("{arch+units}.*", "gfx1030_36.db.txt", Some("gfx1030 36")),
            ("{arch+units}.*", "gfx906.kdb", Some("gfx906")),
            ("{arch+units}.*", "gfx1250.model", Some("gfx1250")),
            ("{arch+units}.*", "gfx906fffff.kdb", None),
            ("{arch+units}.*", "gfx1030_99999.kdb", None),
        ] {
            assert_eq!(told(text, path).as_deref(), expected, "{text} {path}");
        }
    }

    #[test]
    fn hostile_names_cost_little() {
        let long = "gfx".repeat(2_000);
        assert_eq!(told("*_{arch}*.co", &long), None);
        for name in ["gfx\u{1b}[31m", "gfx90a\u{202e}.co", "*_gfx", "gfx90é", "gfx90a-xnack"] {
            assert_eq!(told("*_{arch}.co", &format!("x_{name}.co")), None, "{name}");
        }
        assert!(told("*{arch}*", &"gfx90a".repeat(40)).is_some());
    }

    #[test]
    fn patterns_are_checked() {
        for text in ["", "a//b", "{sm}", "*a*b*", "{arch"] {
            assert!(Pattern::try_from(text.to_owned()).is_err(), "{text}");
        }
        assert!(pattern("{arch}/**").tells() && !pattern("x.db").tells());
    }
}
