//! Plain text: what comes from outside is made harmless, measured, wrapped and padded.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::{Arch, Form, escape};

/// Makes text from outside safe to print on one line: control and invisible characters are escaped as paths escape
/// them. Backslashes stay, since messages quote paths that are escaped already.
pub fn clean(text: &str) -> String {
    let parts: Vec<String> = text.split('\\').map(|part| escape(part.as_bytes())).collect();
    parts.join("\\")
}

/// A file's name from the repository's root; `base` leads to the folder that it was named from.
pub fn rooted(base: &str, file: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    if base.is_empty() || file.starts_with('/') {
        return file.to_owned();
    }
    for part in base.split('/').chain(file.split('/')).filter(|p| !p.is_empty() && *p != ".") {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Columns that text takes.
pub fn columns(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Fills text up with blanks.
pub fn pad(text: &str, width: usize) -> String {
    let mut out = text.to_owned();
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(columns(text))));
    out
}

/// Cuts text at `width` columns; an ellipsis tells that something is gone.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let (head, _) = split_at_columns(text, width.saturating_sub(1));
    format!("{head}…")
}

/// Wraps text at blanks: the first line holds `first` columns, the others `rest`. Words that are longer than a line
/// are broken, at a slash or the like where there is one.
pub fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let rest = rest.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut room = first;
    for mut word in text.split_whitespace() {
        loop {
            let gap = usize::from(!line.is_empty());
            let used = columns(&line);
            if used + gap + columns(word) <= room {
                if gap == 1 {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            // A word that fits on a line of its own goes there; a longer one is broken.
            let free = room.saturating_sub(used + gap);
            if columns(word) > rest && (free >= 24 || (line.is_empty() && free > 0)) {
                let (head, tail) = break_word(word, free);
                if gap == 1 {
                    line.push(' ');
                }
                line.push_str(head);
                word = tail;
            }
            lines.push(std::mem::take(&mut line));
            room = rest;
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The longest head of a word within `width` columns, preferably up to a separator, never empty.
fn break_word(word: &str, width: usize) -> (&str, &str) {
    let (head, _) = split_at_columns(word, width);
    let soft = head.rfind(['/', ',', '_', '-', ':', '=']).map(|at| at + 1);
    let at = match soft {
        Some(at) if at * 2 > head.len() => at,
        _ => head.len(),
    };
    let at = if at == 0 { word.chars().next().map_or(0, char::len_utf8) } else { at };
    word.split_at(at)
}

fn split_at_columns(text: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// `3.2 GiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// An architecture where its maker is known: `90a`, `gfx942`, `12.60.7`.
pub fn bare_arch(arch: Arch) -> String {
    match arch {
        Arch::Sm(arch) => format!("{}{}", arch.number, arch.suffix()),
        Arch::Intel(ip) => ip.dotted(),
        Arch::Gfx(_) | Arch::AmdSpirv | Arch::Spir64 | Arch::Unknown => arch.to_string(),
    }
}

/// `sm_90a`, `ptx 90`, `gfx942`: device code in tables.
pub fn code(arch: Arch, form: Form) -> String {
    let number = bare_arch(arch);
    match form {
        Form::Sass => format!("sm_{number}"),
        Form::Ptx => format!("ptx {number}"),
        Form::LtoIr => format!("lto-ir {number}"),
        Form::TileIr => format!("tile-ir {number}"),
        Form::CodeObject => number,
        Form::Spirv => format!("spirv {number}"),
        Form::Native => format!("intel {number}"),
        Form::Unknown => format!("unknown {number}"),
    }
}

/// `1 gap`, `3 gaps`.
pub fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// Numbers that are sorted, with runs joined: `1-3 5`.
pub fn ranges(numbers: &[usize]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut rest = numbers;
    while let Some(&from) = rest.first() {
        let run = rest.iter().enumerate().take_while(|&(i, &n)| n == from + i).count();
        out.push(match run {
            1 => from.to_string(),
            2 => format!("{from} {}", from + 1),
            _ => format!("{from}-{}", from + run - 1),
        });
        rest = &rest[run..];
    }
    out.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_drives_the_terminal() {
        assert_eq!(clean("a\x1b[31mred\nnext"), "a\\x1b[31mred\\x0anext");
        assert_eq!(clean("lib\\xff.so"), "lib\\xff.so");
        assert_eq!(clean("c1 \u{9b}31m bidi \u{202e}"), "c1 \\xc2\\x9b31m bidi \\xe2\\x80\\xae");
    }

    #[test]
    fn wrapped_lines_fit_and_lose_nothing() {
        let text = "torch has code for 5.0 to 9.0 and no PTX: opt/venv/lib/python3.12/site-packages/torch/lib/x.so 日本語 end";
        for width in 1..90 {
            for first in [0, 3, width] {
                let lines = wrap(text, first.min(width), width);
                for line in &lines {
                    assert!(columns(line) <= width.max(2), "{width}: {line}");
                }
                let squeezed = |t: &str| t.split_whitespace().collect::<String>();
                assert_eq!(squeezed(&lines.concat()), squeezed(text));
            }
        }
        assert_eq!(wrap("", 10, 10), [""]);
        assert_eq!(wrap("a bc", 2, 2), ["a", "bc"]);
    }

    #[test]
    fn files_are_named_from_the_root() {
        assert_eq!(rooted("", "../a"), "../a");
        assert_eq!(rooted("a/b/", "c/D"), "a/b/c/D");
        assert_eq!(rooted("a/b/", "../c"), "a/c");
        assert_eq!(rooted("a/", "../../c"), "../c");
        assert_eq!(rooted("a/", "/abs/D"), "/abs/D");
    }

    #[test]
    fn figures() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1-3 5 7 8");
        assert_eq!(ranges(&[]), "");
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
