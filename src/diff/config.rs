//! The image config: environment, entrypoint, command, user, working directory. Values that look secret stay out.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ConfigFacts, escape};
use crate::report::diff::{Kind, SettingChange, VariableChange};

/// What is shown in place of a secret.
const MASK: &str = "***";

/// Words in names of variables and options whose values are nobody's business.
const SECRET: [&str; 11] = [
    "ACCESSKEY",
    "APIKEY",
    "AUTH",
    "CREDENTIAL",
    "CREDENTIALS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PRIVATEKEY",
    "SECRET",
    "TOKEN",
];

/// Two words that make one of these.
const SECRET_PAIRS: [(&str, &str); 5] =
    [("ACCESS", "KEY"), ("API", "KEY"), ("PRIVATE", "KEY"), ("SIGNING", "KEY"), ("ENCRYPTION", "KEY")];

/// Whether a name says that its value is secret: `HF_TOKEN`, `--api-key`, `AWS_SECRET_ACCESS_KEY`.
fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    words
        .iter()
        .any(|w| SECRET.iter().any(|s| w.strip_suffix('S').unwrap_or(w) == *s || w.ends_with(s) && *s != "AUTH"))
        || words.windows(2).any(|w| SECRET_PAIRS.contains(&(w[0], w[1])))
        || words.last() == Some(&"PASS")
}

/// Text with what stands before the `@` of addresses in it taken out.
fn without_logins(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://").map(|at| at + 3) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\''))
            .unwrap_or(rest.len());
        if let Some(login) = rest[..end].rfind('@') {
            out.push_str(MASK);
            rest = &rest[login..];
        }
    }
    out.push_str(rest);
    escape(out.as_bytes())
}

/// Variables that came, went or changed, by name.
pub fn environment(old: &ConfigFacts, new: &ConfigFacts) -> Vec<VariableChange> {
    // Of several settings of one name the last counts.
    let of = |config: &'_ ConfigFacts| -> BTreeMap<String, String> { config.env.iter().cloned().collect() };
    let (before, after) = (of(old), of(new));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let row = |name: &String| {
        let (old, new) = (before.get(name), after.get(name));
        let change = match (old, new) {
            (a, b) if a == b => return None,
            (Some(_), None) => Kind::Removed,
            (None, _) => Kind::Added,
            _ => Kind::Changed,
        };
        let masked = is_secret(name);
        let shown = |value: &String| if masked { MASK.to_owned() } else { without_logins(value) };
        let (old, new) = (old.map(shown), new.map(shown));
        Some(VariableChange { change, name: escape(name.as_bytes()), old, new, masked })
    };
    names.into_iter().filter_map(row).collect()
}

/// What starts, as whom and where.
pub fn settings(old: &ConfigFacts, new: &ConfigFacts) -> Vec<SettingChange> {
    let one = |text: &String| if text.is_empty() { Vec::new() } else { vec![text.clone()] };
    let rows = [
        ("entrypoint", old.entrypoint.clone(), new.entrypoint.clone()),
        ("cmd", old.cmd.clone(), new.cmd.clone()),
        ("user", one(&old.user), one(&new.user)),
        ("working_dir", one(&old.working_dir), one(&new.working_dir)),
    ];
    let differ = rows.into_iter().filter(|(_, old, new)| old != new);
    differ
        .map(|(name, old, new)| SettingChange { name: name.to_owned(), old: words(&old), new: words(&new) })
        .collect()
}

/// The words of a command, less the values of options that are secret: `--token X`, `--token=X`, `TOKEN=X`.
fn words(command: &[String]) -> Vec<String> {
    let mut hide = false;
    let word = |word: &String| {
        let hidden = std::mem::take(&mut hide);
        if hidden && !word.starts_with('-') {
            return MASK.to_owned();
        }
        match word.split_once('=') {
            Some((name, _)) if is_secret(name) && !name.contains(char::is_whitespace) => {
                format!("{}={MASK}", escape(name.as_bytes()))
            }
            _ if word.contains(char::is_whitespace) => script(word),
            _ => {
                hide = word.starts_with('-') && is_secret(word);
                without_logins(word)
            }
        }
    };
    command.iter().map(word).collect()
}

/// A line of shell: its words are judged like those of a command.
fn script(text: &str) -> String {
    let mut out = String::new();
    let mut hide = false;
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        let blank = &part[word.len()..];
        let hidden = hide;
        hide &= word.is_empty();
        match word.split_once('=') {
            _ if word.is_empty() => {}
            _ if hidden && !word.starts_with('-') => out.push_str(MASK),
            Some((name, _)) if is_secret(name) => {
                out.push_str(name);
                out.push('=');
                out.push_str(MASK);
            }
            _ => {
                hide = word.starts_with('-') && is_secret(word);
                out.push_str(word);
            }
        }
        out.push_str(blank);
    }
    without_logins(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(env: &[(&str, &str)]) -> ConfigFacts {
        let env = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        ConfigFacts { env, ..ConfigFacts::default() }
    }

    #[test]
    fn names_that_look_secret() {
        for name in [
            "HF_TOKEN",
            "API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "github_token",
            "--password",
            "DB_PASS",
            "OPENAI_APIKEY",
            "TOKENS",
            "HTTP_AUTH",
            "MYSECRET",
            "WANDB_API_KEY",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "CUDA_VERSION",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD",
            "AUTHOR",
            "PASSAGE",
            "NV_CUDA_LIB_VERSION",
            "",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn the_last_of_a_name_counts_and_secrets_stay_out() {
        let old = config(&[("A", "0"), ("A", "1"), ("GONE", "x"), ("HF_TOKEN", "hf_one"), ("SAME", "s")]);
        let new = config(&[
            ("A", "2"),
            ("HF_TOKEN", "hf_two"),
            ("SAME", "s"),
            ("PIP_INDEX_URL", "https://me:hunter2@host/simple https://a@b"),
        ]);
        let rows = environment(&old, &new);
        let text: Vec<String> = rows
            .iter()
            .map(|r| format!("{} {:?} {:?} {:?} {}", r.name, r.change, r.old, r.new, r.masked))
            .collect();
        assert_eq!(
            text,
            [
                r#"A Changed Some("1") Some("2") false"#,
                r#"GONE Removed Some("x") None false"#,
                r#"HF_TOKEN Changed Some("***") Some("***") true"#,
                r#"PIP_INDEX_URL Added None Some("https://***@host/simple https://***@b") false"#,
            ]
        );
        assert!(environment(&old, &old).is_empty());
    }

    #[test]
    fn commands_show_no_secret_word() {
        let list = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let shown = |line: &[&str]| words(&list(line));
        assert_eq!(shown(&["serve", "--token", "abc", "-v"]), ["serve", "--token", "***", "-v"]);
        assert_eq!(shown(&["serve", "--api-key=abc", "TOKEN=x"]), ["serve", "--api-key=***", "TOKEN=***"]);
        assert_eq!(shown(&["serve", "--token", "--debug"]), ["serve", "--token", "--debug"]);
        let line = "exec  serve --token  abc PASSWORD=x --port 1 https://u:p@h/";
        assert_eq!(shown(&["sh", "-c", line])[2], "exec  serve --token  *** PASSWORD=*** --port 1 https://***@h/");
        assert_eq!(shown(&["sh", "-c", "a\nb"])[2], "a\\x0ab");
    }

    #[test]
    fn what_starts_is_compared() {
        let old = ConfigFacts { entrypoint: vec!["a".into()], user: "root".into(), ..ConfigFacts::default() };
        let new = ConfigFacts { entrypoint: vec!["a".into()], cmd: vec!["b".into()], ..ConfigFacts::default() };
        let rows = settings(&old, &new);
        let names: Vec<&str> = rows.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["cmd", "user"]);
        assert_eq!((rows[1].old.len(), rows[1].new.len()), (1, 0));
    }
}
