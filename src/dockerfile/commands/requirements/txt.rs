//! requirements.txt: lines with continuations, comments, options, variables, and files that it names in turn.

use crate::dockerfile::shell::HOLE;

/// Lines taken of one file.
const MOST_LINES: usize = 20_000;

/// One line's meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Anything that [`super::specifier::parse`] reads; the flag tells `-e`.
    Requirement(String, bool),
    /// `-r file`
    File(String),
    /// `-c file`
    Constraint(String),
    /// `-i URL`
    Index(String),
    ExtraIndex(String),
    FindLinks(String),
    NoBinary(String),
    Pre,
}

/// The lines of a file, with their numbers from 1. `variable` tells what `${NAME}` is.
pub fn lines(bytes: &[u8], variable: &dyn Fn(&str) -> Option<String>) -> Vec<(usize, Line)> {
    let text = decode(bytes);
    let mut out = Vec::new();
    let mut rest = text.lines().enumerate().take(MOST_LINES);
    while let Some((number, line)) = rest.next() {
        let mut line = line.to_owned();
        while let Some(start) = line.strip_suffix('\\') {
            line = start.to_owned();
            let Some((_, next)) = rest.next() else { break };
            line.push_str(next);
        }
        if let Some(item) = parse(&expand(uncommented(&line).trim(), variable)) {
            out.push((number + 1, item));
        }
    }
    out
}

/// UTF-8, or UTF-16 as PowerShell writes it.
fn decode(bytes: &[u8]) -> String {
    let wide = |from: fn([u8; 2]) -> u16| {
        let pairs = bytes.get(2..).unwrap_or_default().chunks_exact(2);
        let units: Vec<u16> = pairs.filter_map(|c| c.try_into().ok().map(from)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).into_owned(),
    }
}

/// Without the comment: a `#` at the start or behind a blank.
fn uncommented(line: &str) -> &str {
    let comment = line.char_indices().find(|(at, c)| {
        *c == '#' && line.get(..*at).is_some_and(|before| before.is_empty() || before.ends_with([' ', '\t']))
    });
    comment.map_or(line, |(at, _)| line.get(..at).unwrap_or_default())
}

/// `${NAME}` as pip takes it; `$NAME` stays.
fn expand(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, end)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            break;
        };
        out.push_str(variable(name).as_deref().unwrap_or(HOLE));
        rest = end;
    }
    out + rest
}

fn parse(line: &str) -> Option<Line> {
    if !line.starts_with('-') {
        // Options of one requirement stand behind it.
        let end = [" --", " \\"].into_iter().filter_map(|o| line.find(o)).min().unwrap_or(line.len());
        let text = line.get(..end)?.trim();
        return (!text.is_empty()).then(|| Line::Requirement(text.to_owned(), false));
    }
    let (option, value) = match line.find(['=', ' ', '\t']) {
        Some(at) => (line.get(..at)?, line.get(at + 1..)?.trim()),
        None => (line, ""),
    };
    // `-rfile`
    let (option, value) = if !option.starts_with("--") && option.len() > 2 {
        (option.get(..2)?, line.get(2..)?.trim())
    } else {
        (option, value)
    };
    let value = value.trim_matches(['"', '\'']).to_owned();
    match option {
        "--pre" => Some(Line::Pre),
        _ if value.is_empty() => None,
        "-r" | "--requirement" => Some(Line::File(value)),
        "-c" | "--constraint" => Some(Line::Constraint(value)),
        "-e" | "--editable" => Some(Line::Requirement(value, true)),
        "-i" | "--index-url" | "--pypi-url" => Some(Line::Index(value)),
        "--extra-index-url" => Some(Line::ExtraIndex(value)),
        "-f" | "--find-links" => Some(Line::FindLinks(value)),
        "--no-binary" => Some(Line::NoBinary(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<(usize, Line)> {
        lines(text, &|name| (name == "V").then(|| "2.6".to_owned()))
    }

    fn requirement(text: &str) -> Line {
        Line::Requirement(text.into(), false)
    }

    #[test]
    fn lines_are_read() {
        let text = b"\xef\xbb\xbf# all\n--extra-index-url https://x/cu124\n-i https://y#z\n\ntorch==${V} # why\r\n\
            numpy==1.0 \\\n  --hash=sha256:1 \\\n  --hash=sha256:2\n-r other.txt\n-cc.txt\n-e git+https://h/x#egg=x\n\
            a==${W}\n--pre\n--find-links=z\n--no-binary :all:\n--require-hashes\nb ; python_version < '3'\n";
        assert_eq!(
            read(text),
            [
                (2, Line::ExtraIndex("https://x/cu124".into())),
                (3, Line::Index("https://y#z".into())),
                (5, requirement("torch==2.6")),
                (6, requirement("numpy==1.0")),
                (9, Line::File("other.txt".into())),
                (10, Line::Constraint("c.txt".into())),
                (11, Line::Requirement("git+https://h/x#egg=x".into(), true)),
                (12, requirement("a==\u{fffc}")),
                (13, Line::Pre),
                (14, Line::FindLinks("z".into())),
                (15, Line::NoBinary(":all:".into())),
                (17, requirement("b ; python_version < '3'")),
            ]
        );
    }

    #[test]
    fn odd_bytes_are_read() {
        let wide: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("torch\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(read(&wide), [(1, requirement("torch"))]);
        assert_eq!(read(b"\xff\\"), [(1, requirement("\u{fffd}"))]);
        assert_eq!(read(b"${"), [(1, requirement("${"))]);
    }
}
