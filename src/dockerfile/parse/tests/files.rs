//! The files of testdata/dockerfile/parser: as BuildKit's own parser reads them (buildkit.jsonl), and as the crate
//! parse-dockerfile does.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::read_bytes;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Body, Document, Instruction, Keyword, Pair};
use parse_dockerfile::{Command, Instruction as Other, UnescapedString};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dockerfile/parser")
}

fn files() -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path());
    let files = entries.filter(|p| p.extension().is_some_and(|e| e == "Dockerfile"));
    let all: BTreeMap<String, Vec<u8>> =
        files.map(|p| (p.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&p).unwrap())).collect();
    assert!(all.len() > 50, "the files were not found");
    all
}

fn refuses(document: &Document) -> bool {
    !document.errors.is_empty() || document.instructions.iter().any(|i| i.error.is_some())
}

fn name(keyword: Keyword) -> Option<String> {
    Some(keyword.name().to_lowercase()).filter(|n| !n.is_empty())
}

fn pairs(instruction: &Instruction) -> Vec<(String, Option<String>)> {
    let Body::Pairs(pairs) = &instruction.body else { return Vec::new() };
    let value = |p: &Pair| p.value.as_ref().map(|v| v.text.clone());
    pairs.iter().map(|p| (p.key.text.clone(), value(p))).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[test]
fn every_file_is_read_as_buildkit_reads_it() {
    let mut files = files();
    let record = std::fs::read_to_string(folder().join("buildkit.jsonl")).unwrap();
    for line in record.lines() {
        let theirs: Value = serde_json::from_str(line).unwrap();
        let file = theirs["file"].as_str().unwrap();
        let document = read_bytes(&files.remove(file).unwrap_or_else(|| panic!("{file} is gone")));
        assert_eq!(refuses(&document), !theirs["ok"].as_bool().unwrap(), "{file}: {}", theirs["error"]);
        if theirs["phase"] == "parse" {
            continue; // there is no more of it
        }
        assert_eq!(document.escape.to_string(), theirs["escape"].as_str().unwrap(), "{file}");
        let all = list(&theirs["instructions"]);
        assert_eq!(all.len(), document.instructions.len(), "{file}");
        for (theirs, ours) in all.iter().zip(&document.instructions) {
            let line = document.lines.line(ours.span.start);
            assert_eq!(Some(line as u64), theirs["start"].as_u64(), "{file}");
            let keyword = Keyword::of(theirs["keyword"].as_str().unwrap());
            assert_eq!(name(keyword), name(ours.keyword), "{file}:{line}");
            assert!(theirs["error"].is_null() || ours.error.is_some(), "{file}:{line}: {}", theirs["error"]);
            if theirs["error"].is_null() {
                let kv = list(&theirs["kv"]).iter();
                let kv: Vec<_> = kv.map(|p| (string(&p["name"]).unwrap(), string(&p["value"]))).collect();
                assert_eq!(kv, pairs(ours), "{file}:{line}");
            }
            let inner = match &ours.body {
                Body::Onbuild(inner) => inner,
                _ => ours,
            };
            let heredocs: Vec<(Option<String>, Option<String>)> =
                list(&theirs["heredocs"]).iter().map(|h| (string(&h["name"]), string(&h["content"]))).collect();
            let own = inner.heredocs.iter();
            let own: Vec<_> = own.map(|h| (Some(h.name.clone()), string(&document.slice(h.body).into()))).collect();
            assert_eq!(heredocs, own, "{file}:{line}");
        }
    }
    assert!(files.is_empty(), "not in buildkit.jsonl: {:?}", files.keys());
}

/// Where parse-dockerfile is known to say something else than BuildKit.
const OTHERWISE: &[(&str, &[&str])] = &[
    (
        "it looks at fewer things",
        &[
            "continuation-alone",
            "directive-twice",
            "few-volume",
            "flag-bool",
            "flag-device",
            "flag-duration",
            "flag-mount-quotes",
            "flag-mount-variable",
            "flag-network",
            "flag-none",
            "flag-retries",
            "flag-twice",
            "flag-unknown",
            "flag-value",
            "from-name",
            "health-command",
            "heredoc-bad-name",
            "json-mixed",
            "onbuild-env",
            "onbuild-from",
            "pairs-no-equals",
            "pairs-no-name",
            "pairs-no-value",
            "pairs-spaces",
        ],
    ),
    ("heredocs start the body of RUN or are none", &["gpu", "heredoc-more", "heredoc-quote"]),
    (
        "two escape characters at the end of a line continue it",
        &["continuation-doubled", "escape-doubled", "pairs-escape"],
    ),
    ("what continues at the end of a file has a longer place", &["continuation-end"]),
    ("commands and lists may not be empty", &["bare", "json-empty"]),
    ("flags are words of the body where there are none, and have no quotes", &["flags-odd"]),
    ("stages may not have the same name", &["from-same"]),
    ("there must be a FROM", &["no-from-arg"]),
    ("what ONBUILD holds must be known", &["onbuild-unknown"]),
    ("places do not count the byte order mark", &["bom"]),
];

/// The places of a keyword and of what could be compared behind it.
type Place = (Range<usize>, Option<Range<usize>>);

#[test]
fn every_file_is_read_as_parse_dockerfile_reads_it() {
    let mut differing = Vec::new();
    for (file, source) in files() {
        let document = read_bytes(&source);
        let theirs = parse_dockerfile::parse(std::str::from_utf8(&source).unwrap());
        let same = match &theirs {
            Ok(theirs) => {
                let mut both =
                    theirs.instructions.iter().map(their_place).zip(document.instructions.iter().map(our_place));
                let same = |(a, b): (Place, Place)| a.0 == b.0 && (a.1.is_none() || b.1.is_none() || a.1 == b.1);
                let count = theirs.instructions.len() == document.instructions.len();
                count && both.all(same) && !refuses(&document)
            }
            Err(_) => refuses(&document),
        };
        if !same {
            differing.push(file.trim_end_matches(".Dockerfile").to_owned());
        }
    }
    let mut known: Vec<&str> = OTHERWISE.iter().flat_map(|(_, files)| *files).copied().collect();
    known.sort_unstable();
    differing.sort_unstable();
    assert_eq!(differing, known);
}

fn our_place(instruction: &Instruction) -> Place {
    let span = match &instruction.body {
        Body::From { image, .. } => Some(image.span),
        Body::Shell(joined) => Some(joined.span(0..joined.text.len())),
        Body::Pairs(pairs) => pairs.first().zip(pairs.last()).map(|(first, last)| first.span.to(last.span)),
        Body::Words(words) => words.last().map(|w| w.span),
        _ => None,
    };
    // Their JSON words have no quotes, and their heredocs are the body.
    let json = matches!(&instruction.body, Body::Words(words) if words.iter().any(|w| w.literal));
    let span = span.filter(|_| !json && instruction.heredocs.is_empty());
    let range = |s: Span| s.start..s.end;
    (range(instruction.keyword_span), span.map(range))
}

fn their_place(instruction: &Other<'_>) -> Place {
    let command = |c: &Command<'_>| match c {
        Command::Shell(line) => Some(line.span.clone()),
        _ => None,
    };
    let text = |s: &UnescapedString<'_>| Some(s.span.clone());
    let (keyword, span) = match instruction {
        Other::Add(i) => (&i.add, text(&i.dest)),
        Other::Arg(i) => (&i.arg, text(&i.arguments)),
        Other::Cmd(i) => (&i.cmd, command(&i.arguments)),
        Other::Copy(i) => (&i.copy, text(&i.dest)),
        Other::Entrypoint(i) => (&i.entrypoint, command(&i.arguments)),
        Other::Env(i) => (&i.env, text(&i.arguments)),
        Other::Expose(i) => (&i.expose, None),
        Other::From(i) => (&i.from, text(&i.image)),
        Other::Healthcheck(i) => (&i.healthcheck, None),
        Other::Label(i) => (&i.label, text(&i.arguments)),
        Other::Maintainer(i) => (&i.maintainer, text(&i.name)),
        Other::Onbuild(i) => (&i.onbuild, None),
        Other::Run(i) => (&i.run, command(&i.arguments)),
        Other::Shell(i) => (&i.shell, None),
        Other::Stopsignal(i) => (&i.stopsignal, text(&i.arguments)),
        Other::User(i) => (&i.user, text(&i.arguments)),
        Other::Volume(i) => (&i.volume, None),
        Other::Workdir(i) => (&i.workdir, text(&i.arguments)),
        _ => panic!("an instruction of a newer parse-dockerfile"),
    };
    (keyword.span.clone(), span.filter(|s| !s.is_empty()))
}
