//! What `echo $X | cut -d. -f1,2 | tr -d .` prints: the few filters that versions are cut with.

use super::Command;
use super::word::map_values;
use crate::dockerfile::value::Text;

/// What a pipeline prints, given its commands; none where that is not known.
pub fn of(commands: &[Command]) -> Option<Text> {
    let (first, filters) = commands.split_first()?;
    let mut text = printed(first)?;
    for filter in filters {
        let change = Filter::of(filter)?;
        text.value = map_values(&text.value, |line| change.apply(line));
    }
    Some(text)
}

/// What `echo` or `printf %s` prints, as one line.
fn printed(command: &Command) -> Option<Text> {
    let skip = match command.program()? {
        "echo" => command.args().iter().take_while(|a| matches!(a.text.value.known(), Some("-n" | "-e"))).count(),
        "printf" => match command.args().first()?.text.value.known()? {
            "%s" | "%s\\n" | "%s\n" => 1,
            _ => return None,
        },
        _ => return None,
    };
    match command.args().get(skip..)? {
        [one] => Some(one.text.clone()),
        several => {
            let words: Option<Vec<&str>> = several.iter().map(|a| a.text.value.known()).collect();
            let mut text = Text::known(words?.join(" "));
            for arg in several {
                super::vars::add_trail(&mut text.trail, &arg.text.trail);
            }
            Some(text)
        }
    }
}

/// A filter of one line.
enum Filter {
    Fields {
        by: char,
        fields: Vec<(usize, Option<usize>)>,
    },
    Characters(Vec<(usize, Option<usize>)>),
    Delete(Vec<char>),
    Swap(Vec<char>, Vec<char>),
    Replace {
        from: String,
        to: String,
        all: bool,
    },
    /// `awk -F. '{print $1 "." $2}'`
    Print {
        by: Option<char>,
        pieces: Vec<Piece>,
    },
    Same,
}

enum Piece {
    Field(usize),
    Text(String),
}

impl Filter {
    fn of(command: &Command) -> Option<Self> {
        let args: Vec<&str> = command.args().iter().map(|a| a.text.value.known()).collect::<Option<_>>()?;
        match (command.program()?, args.as_slice()) {
            ("cut", args) => cut(args),
            ("tr", ["-d", set]) => Some(Self::Delete(characters(set)?)),
            ("tr", [from, to]) if !from.starts_with('-') => Some(Self::Swap(characters(from)?, characters(to)?)),
            ("sed", [script]) | ("sed", ["-e", script]) => substitution(script),
            ("awk", args) => awk(args),
            ("head", ["-n1" | "-1"] | ["-n", "1"]) | ("xargs", []) => Some(Self::Same),
            _ => None,
        }
    }

    fn apply(&self, line: &str) -> Option<String> {
        if line.contains('\n') {
            return None;
        }
        match self {
            Self::Same => Some(line.to_owned()),
            Self::Delete(set) => Some(line.chars().filter(|c| !set.contains(c)).collect()),
            Self::Swap(from, to) => {
                let swap = |c: char| match from.iter().position(|f| *f == c) {
                    Some(at) => to.get(at).or(to.last()).copied().unwrap_or(c),
                    None => c,
                };
                Some(line.chars().map(swap).collect())
            }
            Self::Replace { from, to, all: true } => Some(line.replace(from, to)),
            Self::Replace { from, to, all: false } => Some(line.replacen(from, to, 1)),
            Self::Fields { by, fields } => {
                // A line without the delimiter is printed as it is.
                if !line.contains(*by) {
                    return Some(line.to_owned());
                }
                let all: Vec<&str> = line.split(*by).collect();
                let kept: Vec<&str> = chosen(fields, all.len()).filter_map(|at| all.get(at).copied()).collect();
                Some(kept.join(by.encode_utf8(&mut [0; 4])))
            }
            Self::Characters(fields) => {
                let all: Vec<char> = line.chars().collect();
                Some(chosen(fields, all.len()).filter_map(|at| all.get(at)).collect())
            }
            Self::Print { by, pieces } => {
                let fields: Vec<&str> = match by {
                    Some(by) => line.split(*by).collect(),
                    None => line.split_whitespace().collect(),
                };
                let text = |p: &Piece| match p {
                    Piece::Text(text) => text.clone(),
                    Piece::Field(0) => line.to_owned(),
                    Piece::Field(n) => fields.get(n - 1).copied().unwrap_or_default().to_owned(),
                };
                Some(pieces.iter().map(text).collect())
            }
        }
    }
}

/// Indexes of the fields that are kept, from 0, in order.
fn chosen(fields: &[(usize, Option<usize>)], count: usize) -> impl Iterator<Item = usize> + '_ {
    (0..count).filter(|at| fields.iter().any(|(from, to)| at + 1 >= *from && to.is_none_or(|to| at < &to)))
}

fn cut(args: &[&str]) -> Option<Filter> {
    let (mut by, mut fields, mut characters) = ('\t', None, None);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let (option, value) = (arg.get(..2)?, arg.get(2..)?);
        let value = if value.is_empty() { rest.next()? } else { value };
        match option {
            "-d" => by = one(value)?,
            "-f" => fields = Some(ranges(value)?),
            "-c" => characters = Some(ranges(value)?),
            _ => return None,
        }
    }
    fields.map(|fields| Filter::Fields { by, fields }).or(characters.map(Filter::Characters))
}

/// `1,3-4,6-`
fn ranges(text: &str) -> Option<Vec<(usize, Option<usize>)>> {
    let number = |t: &str| t.trim().parse::<usize>().ok();
    text.split(',')
        .map(|part| match part.split_once('-') {
            None => number(part).map(|n| (n, Some(n))),
            Some(("", to)) => Some((1, Some(number(to)?))),
            Some((from, "")) => Some((number(from)?, None)),
            Some((from, to)) => Some((number(from)?, Some(number(to)?))),
        })
        .collect()
}

fn one(text: &str) -> Option<char> {
    let mut chars = text.chars();
    let char = chars.next()?;
    match (char, chars.next(), chars.next()) {
        (char, None, _) => Some(char),
        ('\\', Some(char), None) => Some(char),
        _ => None,
    }
}

/// A set of `tr`: no ranges and no classes.
fn characters(set: &str) -> Option<Vec<char>> {
    if set.is_empty() || set.contains('[') || (set.len() > 2 && set.contains('-')) {
        return None;
    }
    match set {
        "\\n" => Some(vec!['\n']),
        _ => Some(set.chars().filter(|c| *c != '\\').collect()),
    }
}

/// `s/from/to/g`, where `from` is no pattern.
fn substitution(script: &str) -> Option<Filter> {
    let mut chars = script.strip_prefix('s')?.chars();
    let by = chars.next().filter(|c| !c.is_alphanumeric())?;
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for char in chars {
        let count = parts.len();
        let part = parts.last_mut()?;
        if escaped {
            if !matches!(char, '.' | '/' | '-' | '+' | '*') && char != by {
                return None;
            }
            part.push(char);
        } else if char == by {
            parts.push(String::new());
        } else if (count == 1 && matches!(char, '.' | '*' | '[' | '^' | '$')) || (count == 2 && char == '&') {
            return None;
        } else if char != '\\' {
            part.push(char);
        }
        escaped = char == '\\' && !escaped;
    }
    match parts.as_slice() {
        [from, to, flags] if !from.is_empty() && matches!(flags.as_str(), "" | "g") => {
            Some(Filter::Replace { from: from.clone(), to: to.clone(), all: flags == "g" })
        }
        _ => None,
    }
}

/// `-F. '{print $1 "." $2}'`
fn awk(args: &[&str]) -> Option<Filter> {
    let (by, program) = match args {
        [program] => (None, program),
        ["-F", by, program] => (Some(one(by)?), program),
        [by, program] => (Some(one(by.strip_prefix("-F")?)?), program),
        _ => return None,
    };
    let mut rest = program.trim().strip_prefix('{')?.strip_suffix('}')?.trim().strip_prefix("print")?;
    let mut pieces = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return (!pieces.is_empty()).then_some(Filter::Print { by, pieces });
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"')?;
            pieces.push(Piece::Text(text.to_owned()));
            rest = after;
        } else if let Some(field) = rest.strip_prefix('$') {
            let length = field.bytes().take_while(u8::is_ascii_digit).count();
            pieces.push(Piece::Field(field.get(..length)?.parse().ok()?));
            rest = field.get(length..)?;
        } else {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::commands;
    use super::*;
    use crate::dockerfile::value::Value;

    #[test]
    fn versions_are_cut() {
        for (script, expected) in [
            ("echo 12.4.1 | cut -d. -f1,2 | tr -d '.'", Some("124")),
            ("echo 12.4.1 | cut -d'.' -f 1-2", Some("12.4")),
            ("echo 12.4.1 | cut -d. -f2-", Some("4.1")),
            ("echo \"12.4.1\" | cut -d. -f1", Some("12")),
            ("echo 12.4 | tr . -", Some("12-4")),
            ("echo abcdefghij | cut -c1-7", Some("abcdefg")),
            ("echo 3.10 | sed 's/\\.//g'", Some("310")),
            ("echo 12.4 | sed 's/\\./-/g'", Some("12-4")),
            ("echo 12.4 | sed 's/.//g'", None),
            ("echo 2.6.0 | awk -F \\. {'print $1 \".\" $2'}", Some("2.6")),
            ("printf '%s' \"2.6+cpu\" | sed 's/+cpu//g'", Some("2.6")),
            ("echo a b", Some("a b")),
            ("date", None),
            ("echo a | rev", None),
        ] {
            let text = of(&commands(script));
            assert_eq!(text.as_ref().and_then(|t| t.value.known()), expected, "{script}");
        }
    }

    #[test]
    fn what_is_not_known_stays_so() {
        let text = of(&commands("echo $NOWHERE | cut -d. -f1"));
        assert_eq!(text.map(|t| t.value), Some(Value::Unknown));
    }
}
