//! Patterns of the shell (`*`, `?`, `[…]`), as `${x#…}` and its kin use them.

/// The longest text that is matched against a pattern: trying every cut takes time.
const MOST_TEXT: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Char(char),
    One,
    Many,
    Set { not: bool, ranges: Vec<(char, char)> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<Piece>);

impl Pattern {
    /// A backslash makes the next character an ordinary one.
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().take(MOST_TEXT).collect();
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(char) = chars.get(at) {
            at += 1;
            match char {
                '*' if pieces.last() == Some(&Piece::Many) => {}
                '*' => pieces.push(Piece::Many),
                '?' => pieces.push(Piece::One),
                '\\' => {
                    pieces.push(Piece::Char(chars.get(at).copied().unwrap_or('\\')));
                    at += 1;
                }
                '[' => match set(chars.get(at..).unwrap_or_default()) {
                    Some((piece, length)) => {
                        pieces.push(piece);
                        at += length;
                    }
                    None => pieces.push(Piece::Char('[')),
                },
                other => pieces.push(Piece::Char(*other)),
            }
        }
        Self(pieces)
    }

    /// Whether it is the pattern of a whole text.
    pub fn matches(&self, text: &str) -> bool {
        text.len() <= MOST_TEXT && self.covers(&text.chars().collect::<Vec<char>>())
    }

    /// About how many steps it may take on a text.
    pub fn work(&self, text: &str) -> usize {
        let length = text.len().min(MOST_TEXT) + 1;
        length * length * (self.0.len() + 1)
    }

    /// The whole text, by two pointers: the last `*` is the only place to go back to.
    fn covers(&self, text: &[char]) -> bool {
        let (mut piece, mut at) = (0, 0);
        let mut back: Option<(usize, usize)> = None;
        loop {
            match (self.0.get(piece), text.get(at)) {
                (Some(Piece::Many), _) => {
                    back = Some((piece, at));
                    piece += 1;
                    continue;
                }
                (Some(one), Some(char)) if one.takes(*char) => {
                    piece += 1;
                    at += 1;
                    continue;
                }
                (None, None) => return true,
                _ => {}
            }
            match back {
                Some((star, from)) if from < text.len() => {
                    back = Some((star, from + 1));
                    piece = star + 1;
                    at = from + 1;
                }
                _ => return false,
            }
        }
    }

    /// `${x#…}`, `${x##…}`; none where the text is too long.
    pub fn cut_start(&self, text: &str, longest: bool) -> Option<String> {
        let chars = chars(text)?;
        let mut ends: Vec<usize> = (0..=chars.len()).collect();
        if longest {
            ends.reverse();
        }
        let end = ends.into_iter().find(|end| self.covers(chars.get(..*end).unwrap_or_default()));
        Some(chars.get(end.unwrap_or(0)..).unwrap_or_default().iter().collect())
    }

    /// `${x%…}`, `${x%%…}`.
    pub fn cut_end(&self, text: &str, longest: bool) -> Option<String> {
        let chars = chars(text)?;
        let mut starts: Vec<usize> = (0..=chars.len()).collect();
        if !longest {
            starts.reverse();
        }
        let start = starts.into_iter().find(|start| self.covers(chars.get(*start..).unwrap_or_default()));
        Some(chars.get(..start.unwrap_or(chars.len())).unwrap_or_default().iter().collect())
    }

    /// `${x/…/by}`, `${x//…/by}`: the longest match at each place.
    pub fn replace(&self, text: &str, by: &str, all: bool) -> Option<String> {
        let chars = chars(text)?;
        let longest = if self.0.contains(&Piece::Many) { chars.len() } else { self.0.len() };
        let mut out = String::new();
        let mut at = 0;
        let mut done = false;
        while at < chars.len() {
            let most = chars.len().min(at + longest);
            let end = if done {
                None
            } else {
                (at + 1..=most).rev().find(|end| self.covers(chars.get(at..*end).unwrap_or_default()))
            };
            match end {
                Some(end) => {
                    out.push_str(by);
                    at = end;
                    done = !all;
                }
                None => {
                    out.extend(chars.get(at));
                    at += 1;
                }
            }
        }
        Some(out)
    }
}

impl Piece {
    fn takes(&self, char: char) -> bool {
        match self {
            Self::Char(own) => *own == char,
            Self::One => true,
            Self::Many => false,
            Self::Set { not, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&char)) != *not,
        }
    }
}

fn chars(text: &str) -> Option<Vec<char>> {
    (text.len() <= MOST_TEXT).then(|| text.chars().collect())
}

/// `[…]`, from behind the bracket, and its length with the closing one.
fn set(rest: &[char]) -> Option<(Piece, usize)> {
    let not = matches!(rest.first(), Some('!' | '^'));
    let mut at = usize::from(not);
    let mut ranges = Vec::new();
    let start = at;
    loop {
        let char = *rest.get(at)?;
        if char == ']' && at > start {
            return Some((Piece::Set { not, ranges }, at + 1));
        }
        if let ['[', ':', class @ ..] = rest.get(at..)? {
            let end = class.iter().position(|c| *c == ':')?;
            let name: String = class.get(..end)?.iter().collect();
            match name.as_str() {
                "digit" => ranges.push(('0', '9')),
                "alpha" => ranges.extend([('a', 'z'), ('A', 'Z')]),
                "alnum" => ranges.extend([('a', 'z'), ('A', 'Z'), ('0', '9')]),
                "lower" => ranges.push(('a', 'z')),
                "upper" => ranges.push(('A', 'Z')),
                "space" => ranges.extend([(' ', ' '), ('\t', '\r')]),
                _ => return None,
            }
            at += end + 4;
            continue;
        }
        match (rest.get(at + 1), rest.get(at + 2)) {
            (Some('-'), Some(to)) if *to != ']' => {
                ranges.push((char, *to));
                at += 3;
            }
            _ => {
                ranges.push((char, char));
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_cut_and_parts_replaced() {
        let cut = |p: &str, t: &str, l| Pattern::new(p).cut_end(t, l).unwrap_or_default();
        assert_eq!(cut(".*", "12.4.1", false), "12.4");
        assert_eq!(cut(".*", "12.4.1", true), "12");
        assert_eq!(cut("x", "12.4.1", true), "12.4.1");
        let start = |p: &str, t: &str, l| Pattern::new(p).cut_start(t, l).unwrap_or_default();
        assert_eq!(start("*/", "a/b/c", false), "b/c");
        assert_eq!(start("*/", "a/b/c", true), "c");
        assert_eq!(start("v", "v1", false), "1");
        let replace = |p: &str, t: &str, by: &str, all| Pattern::new(p).replace(t, by, all).unwrap_or_default();
        assert_eq!(replace(".", "12.4.1", "", true), "1241");
        assert_eq!(replace(".", "12.4.1", "-", false), "12-4.1");
        assert_eq!(replace("[0-9]*", "cu124", "x", false), "cux");
        assert_eq!(replace("[![:digit:]]", "1a2b", "", true), "12");
        assert_eq!(replace("\\*", "a*b", "-", true), "a-b");
    }

    #[test]
    fn hard_patterns_end() {
        let pattern = Pattern::new(&"*a".repeat(100));
        assert!(pattern.cut_end(&"a".repeat(MOST_TEXT), true).is_some());
        assert!(pattern.replace(&"b".repeat(MOST_TEXT), "", true).is_some());
        assert_eq!(pattern.cut_end(&"a".repeat(MOST_TEXT + 1), true), None);
    }
}
