//! Words for a POSIX shell.

/// A word that means just this text, with quotes only where it needs them.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

/// The same, always in quotes.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_must_be() {
        assert_eq!(word("torch==2.7.0"), "torch==2.7.0");
        assert_eq!(word("a>=1"), "'a>=1'");
        assert_eq!(word(""), "''");
        assert_eq!(quoted("it's $(x)"), "'it'\\''s $(x)'");
    }
}
