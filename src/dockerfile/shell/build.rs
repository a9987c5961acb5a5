//! Putting words together from what is known and what is not.

use std::mem;

use super::HOLE;
use super::vars::{MOST_LENGTH, add_trail};
use crate::dockerfile::value::{MOST_VALUES, Text, Trail, Value};

/// Words that one expansion may fall apart into.
const MOST_FIELDS: usize = 4096;

/// A word that an expression came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub text: Text,
    /// See [`super::Arg::partly`].
    pub partly: Option<String>,
}

/// Collects one word of the script, which may become several or none.
#[derive(Debug)]
pub struct Builder {
    done: Vec<Field>,
    /// All that the present word may be; none where it is unknown.
    values: Option<Vec<String>>,
    partly: String,
    trail: Vec<Trail>,
    /// The present word is one even if it is empty.
    started: bool,
    /// Unquoted blanks of a variable's value divide words.
    split: bool,
    /// The text is a pattern: what is quoted gets a backslash.
    pattern: bool,
}

impl Builder {
    pub fn new(split: bool) -> Self {
        Self {
            done: Vec::new(),
            values: Some(vec![String::new()]),
            partly: String::new(),
            trail: Vec::new(),
            started: false,
            split,
            pattern: false,
        }
    }

    pub fn pattern() -> Self {
        Self { pattern: true, ..Self::new(false) }
    }

    /// A quote was opened here: the word is there, even if it stays empty.
    pub fn start(&mut self) {
        self.started = true;
    }

    /// Text as it stands.
    pub fn push(&mut self, text: &str, quoted: bool) {
        self.started |= !text.is_empty();
        if self.pattern && quoted {
            for char in text.chars() {
                if matches!(char, '*' | '?' | '[' | '\\') {
                    self.append("\\");
                }
                self.append(char.encode_utf8(&mut [0; 4]));
            }
        } else {
            self.append(text);
        }
    }

    /// What an expansion came to, with what is known of it where its value is not.
    pub fn push_text(&mut self, text: &Text, partly: Option<&str>, quoted: bool) {
        let known = text.value.known();
        match known {
            Some(value) if self.split && !quoted && value.contains(is_blank) => {
                self.push_divided(value, &text.trail);
                return;
            }
            Some("") => {}
            Some(value) => self.push(value, quoted),
            None => {
                self.started = true;
                self.append_value(&text.value, partly);
            }
        }
        add_trail(&mut self.trail, &text.trail);
    }

    /// What nothing is known of.
    pub fn push_unknown(&mut self) {
        self.started = true;
        self.append_value(&Value::Unknown, None);
    }

    fn push_divided(&mut self, value: &str, trail: &[Trail]) {
        if value.starts_with(is_blank) {
            self.finish_word();
        }
        for (index, part) in value.split(is_blank).filter(|p| !p.is_empty()).enumerate() {
            if index > 0 {
                self.finish_word();
            }
            self.push(part, false);
            add_trail(&mut self.trail, trail);
        }
        if value.ends_with(is_blank) {
            self.finish_word();
        }
    }

    fn append(&mut self, text: &str) {
        let mut long = false;
        for value in self.values.iter_mut().flatten() {
            value.push_str(text);
            long |= value.len() > MOST_LENGTH;
        }
        if long {
            self.values = None;
        }
        self.append_partly(text);
    }

    fn append_partly(&mut self, text: &str) {
        if self.partly.len() + text.len() <= MOST_LENGTH {
            self.partly.push_str(text);
        }
    }

    fn append_value(&mut self, value: &Value, partly: Option<&str>) {
        self.append_partly(partly.unwrap_or(HOLE));
        let alternatives: Vec<&str> = value.all().collect();
        let Some(before) = self.values.take().filter(|v| v.len() * alternatives.len() <= MOST_VALUES) else {
            return;
        };
        if alternatives.is_empty() {
            return;
        }
        let all: Vec<String> =
            before.iter().flat_map(|b| alternatives.iter().map(move |a| format!("{b}{a}"))).collect();
        self.values = all.iter().all(|v| v.len() <= MOST_LENGTH).then_some(all);
    }

    /// Ends the present word, if there is one.
    pub fn finish_word(&mut self) {
        let values = self.values.replace(vec![String::new()]);
        let partly = mem::take(&mut self.partly);
        let trail = mem::take(&mut self.trail);
        if !mem::take(&mut self.started) || self.done.len() >= MOST_FIELDS {
            // Of a word that came to nothing, what made it so still counts for the next.
            self.trail = trail;
            return;
        }
        let value = values.map_or(Value::Unknown, Value::one_of);
        let partly = (value == Value::Unknown).then_some(partly);
        self.done.push(Field { text: Text { value, trail }, partly });
    }

    /// The words.
    pub fn fields(mut self) -> Vec<Field> {
        self.finish_word();
        self.done
    }

    /// One word, empty if there is none.
    pub fn field(mut self) -> Field {
        self.started = true;
        self.split = false;
        self.finish_word();
        self.done.pop().unwrap_or(Field { text: Text::known(""), partly: None })
    }
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value) -> Text {
        Text { value, trail: Vec::new() }
    }

    #[test]
    fn values_multiply_until_there_are_too_many() {
        let two = text(Value::OneOf(vec!["a".into(), "b".into()]));
        let mut builder = Builder::new(true);
        builder.push("x", false);
        builder.push_text(&two, None, false);
        builder.push_text(&two, None, false);
        let field = builder.field();
        assert_eq!(field.text.value.all().collect::<Vec<_>>(), ["xaa", "xab", "xba", "xbb"]);
        let mut builder = Builder::new(true);
        for _ in 0..10 {
            builder.push_text(&two, None, false);
        }
        assert_eq!(builder.field().text.value, Value::Unknown);
    }

    #[test]
    fn unquoted_values_divide() {
        let list = Text::known(" a b ");
        let mut builder = Builder::new(true);
        builder.push("x", false);
        builder.push_text(&list, None, false);
        builder.push("y", false);
        builder.push_text(&list, None, true);
        let all: Vec<String> =
            builder.fields().into_iter().flat_map(|f| f.text.value.known().map(str::to_owned)).collect();
        assert_eq!(all, ["x", "a", "b", "y a b "]);
        assert!(Builder::new(true).fields().is_empty());
    }

    #[test]
    fn what_is_known_of_a_word_stays() {
        let mut builder = Builder::new(true);
        builder.push("torch==", false);
        builder.push_unknown();
        builder.push("+cu", false);
        let field = builder.field();
        assert_eq!((field.text.value, field.partly.as_deref()), (Value::Unknown, Some("torch==\u{fffc}+cu")));
    }
}
