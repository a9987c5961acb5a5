//! Which images a command line names: its own, those of a list, and of all of them the part that is this run's.

use std::io;
use std::path::Path;

use super::args::{ManyArgs, Shard};
use super::bounded;
use super::error::CliError;

/// The most bytes of a list; a reference takes about a hundred.
const MOST_BYTES: u64 = 64 << 20;

/// Set by Kubernetes in the pods of an Indexed Job.
const INDEX: &str = "JOB_COMPLETION_INDEX";

/// `stdin_is_read`: it holds a password.
pub fn images(args: &ManyArgs, named: &[String], stdin_is_read: bool) -> Result<Vec<String>, CliError> {
    let mut images = named.to_vec();
    if let Some(list) = &args.list {
        if stdin_is_read && list.as_os_str() == "-" {
            return Err(CliError::TwiceStandardInput);
        }
        let text = read(list)?;
        let before = images.len();
        images.extend(lines(&text).map(str::to_owned));
        if images.len() == before {
            return Err(CliError::EmptyList(list.display().to_string()));
        }
    }
    match args.shard {
        None => Ok(images),
        Some(shard) => {
            let index = index(shard, std::env::var(INDEX).ok().as_deref())?;
            Ok(images.into_iter().skip(index).step_by(shard.of).collect())
        }
    }
}

fn index(shard: Shard, environment: Option<&str>) -> Result<usize, CliError> {
    match (shard.index, environment) {
        (Some(index), _) => Ok(index),
        (None, Some(text)) => match text.parse() {
            Ok(index) if index < shard.of => Ok(index),
            _ => Err(CliError::Shard(format!("{INDEX} is {text}, which is no part of {}", shard.of))),
        },
        (None, None) => Err(CliError::Shard(format!("{INDEX} is not set"))),
    }
}

fn read(list: &Path) -> Result<String, CliError> {
    let failed = |e| CliError::read(list, e);
    let Some(bytes) = bounded::read_or_stdin(list, MOST_BYTES).map_err(failed)? else {
        return Err(failed(io::Error::other(format!("larger than {} MiB", MOST_BYTES >> 20))));
    };
    io::read_to_string(&bytes[..]).map_err(failed)
}

/// The lines that name something.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    // A `#` may stand in a path: only a blank before it, or the line's beginning, makes it a comment.
    let without = |line: &'_ str| line.find(" #").or_else(|| line.find("\t#")).unwrap_or(line.len());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines()
        .map(move |line| line[..without(line)].trim())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_comments_and_blank_lines() {
        let text = "\u{feff}# fleet\na/b:1\r\n\n  oci:x#y  \nc:2 # the old one\nd\t# e\n#f";
        assert_eq!(lines(text).collect::<Vec<_>>(), ["a/b:1", "oci:x#y", "c:2", "d"]);
    }

    #[test]
    fn shards_together_are_the_whole() {
        let named: Vec<String> = (0..20).map(|i| format!("i{i}")).collect();
        let part = |index, of| {
            images(&ManyArgs { list: None, shard: Some(Shard { index: Some(index), of }) }, &named, false).unwrap()
        };
        for of in [1, 3, 20, 21] {
            let mut all: Vec<String> = (0..of).flat_map(|i| part(i, of)).collect();
            all.sort();
            let mut want = named.clone();
            want.sort();
            assert_eq!(all, want);
        }
        assert!(part(20, 21).is_empty());
    }

    #[test]
    fn the_environment_names_the_part() {
        let shard = Shard { index: None, of: 3 };
        assert_eq!(index(shard, Some("2")).unwrap(), 2);
        for (text, said) in [(Some("3"), "is 3, which is no part of 3"), (Some("x"), "is x"), (None, "is not set")]
        {
            assert!(index(shard, text).unwrap_err().to_string().contains(said), "{said}");
        }
    }

    #[test]
    fn an_empty_list_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        std::fs::write(&path, "# none\n\n").unwrap();
        let args = ManyArgs { list: Some(path), shard: None };
        assert!(images(&args, &[], false).unwrap_err().to_string().contains("names no image"));
        assert!(images(&ManyArgs { list: Some(dir.path().join("no")), shard: None }, &[], false).is_err());
    }
}
