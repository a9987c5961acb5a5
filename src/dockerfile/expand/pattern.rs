//! Patterns of `${x#p}`, `${x%p}` and `${x/p/r}`: `*`, `?`, and characters.

use super::{MOST_TEXT, Work};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    One(char),
    /// `?`: any but a line end, as in BuildKit's regular expressions.
    Any,
    /// `*`
    Many,
}

#[derive(Debug)]
pub struct Pattern(Vec<Token>);

impl Pattern {
    /// None where BuildKit takes it for an error: a backslash before a character that needs none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            tokens.push(match c {
                '*' => Token::Many,
                '?' => Token::Any,
                '\\' => match chars.next()? {
                    c @ ('*' | '?' | '\\' | '}' | '/') => Token::One(c),
                    _ => return None,
                },
                c => Token::One(c),
            });
        }
        Some(Self(tokens))
    }

    /// Without what matches at the start. None: too much work.
    pub fn trim_start(&self, text: Vec<char>, longest: bool, work: &Work) -> Option<String> {
        let end = self.end(&text, 0, longest, work)?.unwrap_or(0);
        Some(text.into_iter().skip(end).collect())
    }

    /// Without what matches at the end.
    pub fn trim_end(mut self, mut text: Vec<char>, longest: bool, work: &Work) -> Option<String> {
        self.0.reverse();
        text.reverse();
        let end = self.end(&text, 0, longest, work)?.unwrap_or(0);
        text.drain(..end.min(text.len()));
        text.reverse();
        Some(text.into_iter().collect())
    }

    /// With what matches replaced: the first and longest, or all that do not overlap.
    pub fn replace(&self, text: &[char], by: &str, all: bool, work: &Work) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        let mut last_end = 0;
        let mut from = 0;
        while from <= text.len() {
            let Some(end) = self.end(text, from, true, work)? else {
                from += 1;
                continue;
            };
            // An empty match right behind another is none.
            if end > from || from == 0 || from > last_end {
                out.extend(text.get(copied..from)?);
                out.push_str(by);
                copied = end;
                last_end = end;
                if !all {
                    break;
                }
            }
            from = end.max(from + usize::from(end == from));
            if out.len() > MOST_TEXT {
                return None;
            }
        }
        out.extend(text.get(copied..)?);
        (out.len() <= MOST_TEXT).then_some(out)
    }

    /// Where a match that starts at `start` ends: all ways are followed at once, so that no pattern takes long.
    fn end(&self, text: &[char], start: usize, longest: bool, work: &Work) -> Option<Option<usize>> {
        let tokens = &self.0;
        let mut states = vec![false; tokens.len() + 1];
        let mut next = states.clone();
        let mut found = None;
        follow(tokens, &mut states, 0);
        for at in start..=text.len() {
            if !work.take(1 + tokens.len()) {
                return None;
            }
            if states.last() == Some(&true) {
                found = Some(at);
                if !longest {
                    break;
                }
            }
            let Some(c) = text.get(at) else { break };
            next.fill(false);
            let mut any = false;
            for (index, token) in tokens.iter().enumerate() {
                if states.get(index) != Some(&true) {
                    continue;
                }
                let to = match token {
                    Token::One(one) if one == c => index + 1,
                    Token::Any if *c != '\n' => index + 1,
                    Token::Many if *c != '\n' => index,
                    Token::One(_) | Token::Any | Token::Many => continue,
                };
                follow(tokens, &mut next, to);
                any = true;
            }
            if !any {
                break;
            }
            std::mem::swap(&mut states, &mut next);
        }
        Some(found)
    }
}

/// A state, and those that a `*` matching nothing leads to.
fn follow(tokens: &[Token], states: &mut [bool], mut index: usize) {
    loop {
        match states.get_mut(index) {
            None | Some(true) => return,
            Some(state) => *state = true,
        }
        if tokens.get(index) != Some(&Token::Many) {
            return;
        }
        index += 1;
    }
}
