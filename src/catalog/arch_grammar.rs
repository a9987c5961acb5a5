//! Reading and writing lists of architectures, grammar by grammar.

use std::ops::Range;

use super::arch_gencode as gencode;
use super::arch_lists::{ArchEntry, ArchList, ArchProblem, ArchVariable, Grammar, Keyword};
use super::arch_text::number;
use crate::model::{Capability, SmArch};

pub(super) fn entry(range: Range<usize>) -> ArchEntry {
    ArchEntry { range, sass: Vec::new(), ptx: Vec::new(), gfx: None, keyword: None }
}

pub(super) fn parse(variable: &ArchVariable, value: &str) -> ArchList {
    match variable.grammar {
        Grammar::Gencode => return gencode::parse(variable, value),
        Grammar::Free => return ArchList::default(),
        _ => {}
    }
    let mut list = ArchList { separator: first(variable).to_owned(), ..ArchList::default() };
    for (range, between) in members(value) {
        if !between.is_empty() && !list.entries.is_empty() {
            separator(variable, value, between, &mut list);
        }
        let text = value.get(range.clone()).unwrap_or_default();
        member(variable, text, range, &mut list);
    }
    strict_ends(variable, value, &mut list);
    list
}

fn first(variable: &ArchVariable) -> &str {
    variable.separators.first().map_or(";", String::as_str)
}

/// The words of a value between blanks, commas and semicolons, each with the bytes that part it from the one before.
fn members(value: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let parts = |c: char| c.is_whitespace() || matches!(c, ';' | ',' | '|');
    let mut found = Vec::new();
    let (mut start, mut last_end) = (None, 0);
    for (at, c) in value.char_indices().chain([(value.len(), ';')]) {
        match (start, parts(c)) {
            (None, false) => start = Some(at),
            (Some(from), true) => {
                found.push((from..at, last_end..from));
                last_end = at;
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Judges what stands between two members.
fn separator(variable: &ArchVariable, value: &str, between: Range<usize>, list: &mut ArchList) {
    let text = value.get(between.clone()).unwrap_or_default();
    if list.entries.len() == 1 {
        list.separator = if takes(variable, text) { text.to_owned() } else { first(variable).to_owned() };
    }
    if takes(variable, text) || variable.separators.is_empty() {
        return;
    }
    let wanted = first(variable);
    let bare = text.trim();
    // `8.0, 8.6` where a comma alone would do: most readers drop blanks, PyTorch's splits at them.
    if variable.grammar != Grammar::Torch && (takes(variable, bare) || bare.is_empty() && takes(variable, " ")) {
        return;
    }
    let what = if variable.grammar == Grammar::Torch && bare.chars().all(|c| c == ';') {
        "two separators in a row leave an empty member, which PyTorch refuses".to_owned()
    } else {
        format!("members are parted by {}", spelled(variable))
    };
    list.problems.push(ArchProblem { range: between, what, replacement: Some(wanted.to_owned()) });
}

fn takes(variable: &ArchVariable, text: &str) -> bool {
    variable.separators.iter().any(|s| s == text)
}

fn spelled(variable: &ArchVariable) -> String {
    let one = |s: &String| if s == " " { "a blank".to_owned() } else { format!("`{s}`") };
    variable.separators.iter().map(one).collect::<Vec<_>>().join(" or ")
}

/// PyTorch splits at each blank and semicolon, and refuses the empty members that ends with one leave.
fn strict_ends(variable: &ArchVariable, value: &str, list: &mut ArchList) {
    if variable.grammar != Grammar::Torch || list.entries.is_empty() {
        return;
    }
    let (start, end) =
        (list.entries.first().map_or(0, |e| e.range.start), list.entries.last().map_or(0, |e| e.range.end));
    for range in [0..start, end..value.len()] {
        if !range.is_empty() {
            let what = "a separator at the end leaves an empty member, which PyTorch refuses".to_owned();
            list.problems.push(ArchProblem { range, what, replacement: Some(String::new()) });
        }
    }
}

fn member(variable: &ArchVariable, text: &str, range: Range<usize>, list: &mut ArchList) {
    let mut one = entry(range.clone());
    let problem = match variable.grammar {
        _ if keyword(variable, text).is_some() => {
            one.keyword = keyword(variable, text);
            Ok(())
        }
        Grammar::Torch => torch(variable, text, &mut one),
        Grammar::Cmake => cmake(text, &mut one),
        Grammar::Bazel => bazel(text, &mut one),
        Grammar::Numbers => plain(text, false, &mut one),
        Grammar::Dotted => plain(text, true, &mut one),
        Grammar::DottedPtx => plain(text, true, &mut one).map(|()| one.ptx.append(&mut one.sass)),
        Grammar::One if list.entries.is_empty() => plain(text, false, &mut one),
        Grammar::One => Err(("one architecture is taken, no list".to_owned(), None)),
        Grammar::Gfx => gfx(text, &mut one),
        Grammar::Gencode | Grammar::Free => Ok(()),
    };
    if let Err((what, replacement)) = problem {
        list.problems.push(ArchProblem { range, what, replacement });
    }
    if variable.ptx {
        one.ptx.clone_from(&one.sass);
    }
    list.push(one);
}

type Refused = Result<(), (String, Option<String>)>;

/// A word that stands for several architectures.
pub(super) fn keyword(variable: &ArchVariable, text: &str) -> Option<Keyword> {
    if !variable.words.iter().any(|w| w == text) {
        return None;
    }
    Some(match text.to_ascii_lowercase().as_str() {
        "native" | "auto" | "current" => Keyword::Native,
        "all" => Keyword::All,
        "all-major" => Keyword::AllMajor,
        _ => Keyword::Own,
    })
}

/// "8.9", "9.0a", "12.0f" as architectures.
fn dotted(text: &str) -> Option<SmArch> {
    let (number, suffix) = match text.strip_suffix(['a', 'f']) {
        Some(number) => (number, text.get(number.len()..)?),
        None => (text, ""),
    };
    let capability: Capability = number.parse().ok()?;
    format!("{}{suffix}", SmArch::from(capability).number).parse().ok()
}

/// "89", "sm_89", "compute_90a": as an architecture, where the number can be one.
pub(super) fn numbered(text: &str) -> Option<SmArch> {
    let arch: SmArch = text.parse().ok()?;
    (20..=199).contains(&arch.number).then_some(arch)
}

/// As PyTorch writes it: "8.9", "9.0a".
pub(super) fn with_dot(arch: SmArch) -> String {
    format!("{}.{}{}", arch.number / 10, arch.number % 10, arch.suffix())
}

fn torch(variable: &ArchVariable, text: &str, one: &mut ArchEntry) -> Refused {
    let (bare, ptx) = match text.strip_suffix("+PTX") {
        Some(bare) => (bare, true),
        None => (text, false),
    };
    let name = |n: &str| variable.named.iter().find(|r| r.name == n);
    if let Some(named) = name(text) {
        for part in named.archs.split(';') {
            let (number, ptx) = part.strip_suffix("+PTX").map_or((part, false), |n| (n, true));
            one.sass.extend(dotted(number));
            one.ptx.extend(dotted(number).filter(|_| ptx));
        }
        return Ok(());
    }
    if let Some(arch) = dotted(bare) {
        one.sass.push(arch);
        one.ptx.extend(ptx.then_some(arch));
        return Ok(());
    }
    if let Some(named) = name(bare) {
        one.sass.extend(named.archs.split(';').filter_map(|p| dotted(p.trim_end_matches("+PTX"))));
        return Err((format!("`{bare}` holds PTX already and takes no `+PTX`"), Some(bare.to_owned())));
    }
    if let Some(named) = variable.named.iter().find(|r| r.name.eq_ignore_ascii_case(text)) {
        return Err((format!("the name is written `{}`", named.name), Some(named.name.clone())));
    }
    let lower = text.to_ascii_lowercase();
    let (bare, tail) = lower.strip_suffix("+ptx").map_or((lower.as_str(), ""), |b| (b, "+PTX"));
    match dotted(bare).or_else(|| numbered(bare)) {
        Some(arch) => {
            one.sass.push(arch);
            one.ptx.extend((!tail.is_empty()).then_some(arch));
            let right = format!("{}{tail}", with_dot(arch));
            Err((format!("PyTorch writes this `{right}`"), Some(right)))
        }
        None => Err(("no architecture that PyTorch knows".to_owned(), None)),
    }
}

fn cmake(text: &str, one: &mut ArchEntry) -> Refused {
    let (bare, real, ptx) = match (text.strip_suffix("-real"), text.strip_suffix("-virtual")) {
        (Some(bare), _) => (bare, true, false),
        (_, Some(bare)) => (bare, false, true),
        _ => (text, true, true),
    };
    let strict = bare.starts_with(|c: char| c.is_ascii_digit());
    let (arch, right) = match (numbered(bare).filter(|_| strict), dotted(bare).or_else(|| numbered(bare))) {
        (Some(arch), _) => (arch, true),
        (_, Some(arch)) => (arch, false),
        _ => return Err(("no architecture that CMake knows".to_owned(), None)),
    };
    one.sass.extend(real.then_some(arch));
    one.ptx.extend(ptx.then_some(arch));
    if right {
        return Ok(());
    }
    let right = format!("{}{}", number(&arch), text.get(bare.len()..).unwrap_or_default());
    Err((format!("CMake writes this `{right}`"), Some(right)))
}

fn bazel(text: &str, one: &mut ArchEntry) -> Refused {
    // A number with a dot is both; `sm_` is machine code alone, `compute_` both.
    let (arch, ptx) = match (dotted(text), text.starts_with("sm_"), text.starts_with("compute_")) {
        (Some(arch), ..) => (Some(arch), true),
        (_, true, _) => (numbered(text), false),
        (_, _, true) => (numbered(text), true),
        _ => {
            let arch = numbered(text);
            one.sass.extend(arch);
            let right = arch.map(|a| a.to_string());
            return Err(("written `sm_80`, `compute_80` or `8.0`".to_owned(), right));
        }
    };
    let Some(arch) = arch else { return Err(("no architecture".to_owned(), None)) };
    one.sass.push(arch);
    one.ptx.extend(ptx.then_some(arch));
    Ok(())
}

/// Numbers with or without a dot, of which one is right.
fn plain(text: &str, dot: bool, one: &mut ArchEntry) -> Refused {
    let bare = text.strip_suffix("-real").or_else(|| text.strip_suffix("-virtual")).unwrap_or(text);
    let digits = bare.starts_with(|c: char| c.is_ascii_digit());
    let (with, without) = (dotted(bare), numbered(bare));
    let Some(arch) = with.or(without) else { return Err(("no architecture".to_owned(), None)) };
    one.sass.push(arch);
    if digits && with.is_some() == dot {
        return Ok(());
    }
    let right = if dot { with_dot(arch) } else { number(&arch) };
    Err((format!("this variable writes it `{right}`"), Some(right)))
}

fn gfx(text: &str, one: &mut ArchEntry) -> Refused {
    let name = text.split(':').next().unwrap_or(text);
    let hex = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let good = name.strip_prefix("gfx").is_some_and(|rest| {
        let rest = rest.strip_suffix("-generic").unwrap_or(rest);
        hex(rest) && !rest.bytes().any(|b| b.is_ascii_uppercase())
    });
    if good {
        one.gfx = Some(text.to_owned());
        return Ok(());
    }
    let lower = name.to_ascii_lowercase();
    let right = match lower.strip_prefix("gfx") {
        Some(rest) if hex(rest) => Some(format!("gfx{rest}")),
        None if hex(&lower) && (3..=4).contains(&lower.len()) => Some(format!("gfx{lower}")),
        _ => None,
    };
    one.gfx.clone_from(&right);
    Err(("AMD's architectures are written `gfx90a`, `gfx1100`".to_owned(), right))
}

/// The value with architectures added.
pub(super) fn add(variable: &ArchVariable, value: &str, missing: &[Capability]) -> Option<String> {
    let archs: Vec<SmArch> = missing.iter().map(|c| SmArch::from(*c)).collect();
    add_archs(variable, value, &archs)
}

pub(super) fn add_archs(variable: &ArchVariable, value: &str, archs: &[SmArch]) -> Option<String> {
    if archs.is_empty() {
        return Some(value.to_owned());
    }
    let list = parse(variable, value);
    let joined =
        |one: &dyn Fn(SmArch) -> String, by: &str| archs.iter().map(|a| one(*a)).collect::<Vec<_>>().join(by);
    let tail = match variable.grammar {
        Grammar::Free | Grammar::Gfx => return None,
        Grammar::One => return (list.entries.is_empty() && archs.len() == 1).then(|| joined(&|a| number(&a), "")),
        Grammar::Gencode => return gencode::add(variable, value, archs),
        Grammar::Torch | Grammar::Dotted | Grammar::DottedPtx => joined(&with_dot, &list.separator),
        Grammar::Numbers => joined(&|a| number(&a), &list.separator),
        // Members that are all `-real` stay so; a bare number would add PTX.
        Grammar::Cmake => {
            let bare = list.entries.iter().any(|e| !e.sass.is_empty() && !e.ptx.is_empty());
            let one = |a: SmArch| number(&a) + if bare { "" } else { "-real" };
            joined(&one, &list.separator)
        }
        Grammar::Bazel => {
            let dots =
                list.entries.first().and_then(|e| value.get(e.range.clone())).is_some_and(|t| t.contains('.'));
            if dots { joined(&with_dot, &list.separator) } else { joined(&|a| a.to_string(), &list.separator) }
        }
    };
    // A keyword stands alone: what it stands for cannot be added to.
    if list.keywords.iter().any(|k| variable.grammar != Grammar::Torch || *k == Keyword::Native) {
        return None;
    }
    let kept = value.trim_end_matches([' ', ';', ',']);
    Some(if kept.is_empty() { tail } else { format!("{kept}{}{tail}", list.separator) })
}
