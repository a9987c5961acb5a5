//! nvcc's options that name architectures: `-gencode arch=compute_80,code=sm_80`, `-arch=sm_80`.

use std::ops::Range;

use super::arch_grammar::{entry, keyword, numbered};
use super::arch_lists::{ArchEntry, ArchList, ArchProblem, ArchVariable};
use super::arch_text::number;
use crate::model::SmArch;

/// Options that take an architecture; behind them stands `=` or a blank.
const ARCH: &[&str] = &["-arch", "--gpu-architecture", "-gpu-architecture"];
const CODE: &[&str] = &["-code", "--gpu-code", "-gpu-code"];
const PAIR: &[&str] = &["-gencode", "--generate-code", "-generate-code"];

/// What the next word is the value of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Nothing,
    Arch,
    Code,
    Pair,
}

pub(super) fn parse(variable: &ArchVariable, value: &str) -> ArchList {
    let mut list = ArchList { separator: " ".to_owned(), ..ArchList::default() };
    // The variable may be the option itself, and the value what stands behind it.
    let named = |names: &[&str]| names.contains(&variable.name.as_str());
    let mut next = if named(ARCH) {
        Next::Arch
    } else if named(CODE) {
        Next::Code
    } else if named(PAIR) {
        Next::Pair
    } else {
        Next::Nothing
    };
    let mut arch: Option<ArchEntry> = None;
    for range in words(value) {
        let word = value.get(range.clone()).unwrap_or_default();
        if let Some(kind) = option(word) {
            next = kind;
            continue;
        }
        let (kind, text) = match word.split_once('=') {
            Some((name, text)) if option(name).is_some() => (option(name).unwrap_or(Next::Nothing), text),
            _ if next == Next::Nothing && word.starts_with("arch=") => (Next::Pair, word),
            _ => (next, word),
        };
        let at = range.end - text.len();
        match kind {
            Next::Nothing => {}
            Next::Pair => pair(text, at..range.end, &mut list),
            Next::Arch => arch = Some(alone(variable, text, at..range.end, &mut list)),
            Next::Code => {
                let (mut one, mut problems) = (entry(at..range.end), Vec::new());
                codes(text, at, &mut one, &mut problems);
                list.problems.append(&mut problems);
                // `-code` says what is kept of the `-arch` before it.
                arch = Some(one);
            }
        }
        next = Next::Nothing;
    }
    if let Some(one) = arch {
        list.push(one);
    }
    list
}

fn option(word: &str) -> Option<Next> {
    match word {
        _ if ARCH.contains(&word) => Some(Next::Arch),
        _ if CODE.contains(&word) => Some(Next::Code),
        _ if PAIR.contains(&word) => Some(Next::Pair),
        _ => None,
    }
}

/// Words between blanks, semicolons and quotes.
fn words(value: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in value.char_indices().chain([(value.len(), ' ')]) {
        let parts = c.is_whitespace() || matches!(c, ';' | '"' | '\'');
        match (start, parts) {
            (None, false) => start = Some(at),
            (Some(from), true) => {
                found.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// `arch=compute_80,code=sm_80` or `arch=compute_80,code=[sm_80,compute_80]`.
fn pair(text: &str, range: Range<usize>, list: &mut ArchList) {
    let mut one = entry(range.clone());
    let start = range.start;
    let refused = |what: &str| ArchProblem { range: range.clone(), what: what.to_owned(), replacement: None };
    let Some(rest) = text.strip_prefix("arch=") else {
        list.problems.push(refused("written `arch=compute_80,code=sm_80`"));
        list.push(one);
        return;
    };
    let (arch, code) = match rest.split_once(",code=") {
        Some((arch, code)) => (arch, Some(code)),
        None => (rest, None),
    };
    if numbered(arch).is_none() || !arch.starts_with("compute_") {
        let at = start + "arch=".len();
        let right = numbered(arch).map(|a| format!("compute_{}", number(&a)));
        let what = "`arch=` takes a virtual architecture, `compute_80`".to_owned();
        list.problems.push(ArchProblem { range: at..at + arch.len(), what, replacement: right });
    }
    match code {
        Some(code) => codes(code, range.end - code.len(), &mut one, &mut list.problems),
        // Without `code=` nvcc keeps the PTX.
        None => one.ptx.extend(numbered(arch)),
    }
    list.push(one);
}

/// `sm_80`, or several in brackets, quotes dropped before.
fn codes(text: &str, at: usize, one: &mut ArchEntry, problems: &mut Vec<ArchProblem>) {
    let mut from = 0;
    for part in text.split(',') {
        let bare = part.trim_matches(['[', ']', '\\']);
        let range = at + from..at + from + part.len();
        from += part.len() + 1;
        match (numbered(bare), bare) {
            (Some(arch), _) if bare.starts_with("sm_") => one.sass.push(arch),
            (Some(arch), _) if bare.starts_with("compute_") => one.ptx.push(arch),
            // Intermediate code for linking: machine code in the end.
            (Some(arch), _) if bare.starts_with("lto_") => one.sass.push(arch),
            (_, "") => {}
            (arch, _) => problems.push(ArchProblem {
                range,
                what: "`code=` takes `sm_80` or `compute_80`".to_owned(),
                replacement: arch.map(|a| a.to_string()),
            }),
        }
    }
}

/// The value of `-arch`: `sm_80` is machine code and PTX, `compute_80` PTX alone.
fn alone(variable: &ArchVariable, text: &str, range: Range<usize>, list: &mut ArchList) -> ArchEntry {
    let mut one = entry(range.clone());
    if let Some(word) = keyword(variable, text) {
        one.keyword = Some(word);
        return one;
    }
    let arch: Option<SmArch> = numbered(text);
    match arch {
        Some(arch) if text.starts_with("sm_") => {
            one.sass.push(arch);
            one.ptx.push(arch);
        }
        Some(arch) if text.starts_with("compute_") => one.ptx.push(arch),
        _ => list.problems.push(ArchProblem {
            range,
            what: "`-arch` takes `sm_80` or `compute_80`".to_owned(),
            replacement: arch.map(|a| a.to_string()),
        }),
    }
    one
}

/// The value with one `-gencode` more for each architecture.
pub(super) fn add(variable: &ArchVariable, value: &str, archs: &[SmArch]) -> Option<String> {
    let one = |a: &SmArch| format!("arch=compute_{0},code=sm_{0}", number(a));
    let joined =
        |before: &str, by: &str| archs.iter().map(|a| format!("{before}{}", one(a))).collect::<Vec<_>>().join(by);
    let kept = value.trim_end();
    if kept.contains("-gencode=") || (kept.is_empty() && variable.example.contains("-gencode=")) {
        return Some(format!("{kept} {}", joined("-gencode=", " ")).trim_start().to_owned());
    }
    if kept.contains("-gencode") || PAIR.contains(&variable.name.as_str()) || kept.is_empty() {
        return Some(format!("{kept} {}", joined("-gencode ", " ")).trim_start().to_owned());
    }
    // CuPy parts pairs by semicolons.
    if kept.starts_with("arch=") {
        return Some(format!("{kept};{}", joined("", ";")));
    }
    None
}
