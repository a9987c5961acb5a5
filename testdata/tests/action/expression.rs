//! As much of the runner's expressions as the action uses: names, words, `==`, `!=`, `&&`, `||`, `always()`.

use std::collections::BTreeMap;

/// Values by dotted name.
#[derive(Debug, Clone, Default)]
pub struct Scope(BTreeMap<String, String>);

impl Scope {
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Bool(bool),
}

impl Value {
    pub fn truthy(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Bool(bool) => *bool,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Bool(bool) => bool.to_string(),
        }
    }
}

/// Replaces each `${{ … }}`.
pub fn fill(text: &str, scope: &Scope) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (expression, after) = after.split_once("}}").expect("an expression ends");
        out.push_str(before);
        out.push_str(&evaluate(expression, scope).text());
        rest = after;
    }
    out + rest
}

pub fn evaluate(text: &str, scope: &Scope) -> Value {
    let mut words = tokens(text);
    words.reverse();
    let value = any(&mut words, scope);
    assert!(words.is_empty(), "{text}: {words:?} is left");
    value
}

fn tokens(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => rest[1..].find('\'').expect("a word ends") + 2,
            '(' | ')' => 1,
            '=' | '!' | '&' | '|' => 2,
            _ => rest.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c))).unwrap_or(rest.len()),
        };
        assert!(length > 0, "{text}: {first:?} is not understood");
        words.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    words
}

/// Tokens come from the end of the list.
fn any(words: &mut Vec<String>, scope: &Scope) -> Value {
    let mut value = all(words, scope);
    while words.last().is_some_and(|w| w == "||") {
        words.pop();
        let other = all(words, scope);
        value = if value.truthy() { value } else { other };
    }
    value
}

fn all(words: &mut Vec<String>, scope: &Scope) -> Value {
    let mut value = equal(words, scope);
    while words.last().is_some_and(|w| w == "&&") {
        words.pop();
        let other = equal(words, scope);
        value = if value.truthy() { other } else { value };
    }
    value
}

fn equal(words: &mut Vec<String>, scope: &Scope) -> Value {
    let value = one(words, scope);
    let wanted = match words.last().map(String::as_str) {
        Some("==") => true,
        Some("!=") => false,
        _ => return value,
    };
    words.pop();
    let other = one(words, scope);
    Value::Bool((value.text() == other.text()) == wanted)
}

fn one(words: &mut Vec<String>, scope: &Scope) -> Value {
    let word = words.pop().expect("an expression goes on");
    if word == "(" {
        let value = any(words, scope);
        assert_eq!(words.pop().as_deref(), Some(")"));
        return value;
    }
    if let Some(text) = word.strip_prefix('\'') {
        return Value::Text(text.trim_end_matches('\'').to_owned());
    }
    if words.last().is_some_and(|w| w == "(") {
        words.pop();
        assert_eq!(words.pop().as_deref(), Some(")"), "{word} takes nothing");
        return match word.as_str() {
            "always" => Value::Bool(true),
            "success" => Value::Bool(scope.0.get("success").is_none_or(|s| !s.is_empty())),
            _ => panic!("{word}() is not known"),
        };
    }
    // What is not there is empty.
    Value::Text(scope.0.get(&word).cloned().unwrap_or_default())
}

#[test]
fn expressions_are_evaluated_as_the_runner_does() {
    let mut scope = Scope::default();
    scope.set("inputs.a", "x y");
    scope.set("steps.b.outputs.c-d", "true");
    let text = |t: &str| Value::Text(t.to_owned());
    for (expression, value) in [
        ("inputs.a", text("x y")),
        ("inputs.none", text("")),
        ("inputs.none || inputs.a", text("x y")),
        ("inputs.a == 'x y' && steps.b.outputs.c-d == 'true'", Value::Bool(true)),
        ("always() && inputs.none != ''", Value::Bool(false)),
        ("inputs.a == '' && (inputs.a || 'z')", Value::Bool(false)),
        ("(inputs.none || 'z') != inputs.a", Value::Bool(true)),
    ] {
        assert_eq!(evaluate(expression, &scope), value, "{expression}");
    }
    assert_eq!(fill("a-${{ inputs.a }}-${{ inputs.none }}.", &scope), "a-x y-.");
}
