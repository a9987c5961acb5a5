//! The files of testdata/dockerfile/parser: as BuildKit's own parser reads them (buildkit.jsonl), and as the crate
//! parse-dockerfile does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::read_bytes;
use crate::dockerfile::syntax::{Body, Document, Instruction, Keyword, Pair};
use parse_dockerfile::Instruction as Other;
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

/// Where parse-dockerfile is known to say something else than BuildKit, and why.
const OTHERWISE: &[(&str, &str)] = &[];

#[test]
fn every_file_is_read_as_parse_dockerfile_reads_it() {
    for (file, source) in files() {
        let document = read_bytes(&source);
        let text = std::str::from_utf8(&source).unwrap();
        let theirs = parse_dockerfile::parse(text);
        let known = OTHERWISE.iter().find(|(name, _)| *name == file);
        let differs = theirs.is_err() != refuses(&document);
        assert_eq!(differs, known.is_some(), "{file}: {:?}", theirs.err());
        let Ok(theirs) = theirs else { continue };
        if differs {
            continue;
        }
        let theirs: Vec<(usize, usize)> = theirs.instructions.iter().map(keyword_place).collect();
        let ours = document.instructions.iter().map(|i| i.keyword_span);
        assert_eq!(theirs, ours.map(|s| (s.start, s.end)).collect::<Vec<_>>(), "{file}");
    }
}

fn keyword_place(instruction: &Other<'_>) -> (usize, usize) {
    let span = match instruction {
        Other::Add(i) => &i.add,
        Other::Arg(i) => &i.arg,
        Other::Cmd(i) => &i.cmd,
        Other::Copy(i) => &i.copy,
        Other::Entrypoint(i) => &i.entrypoint,
        Other::Env(i) => &i.env,
        Other::Expose(i) => &i.expose,
        Other::From(i) => &i.from,
        Other::Healthcheck(i) => &i.healthcheck,
        Other::Label(i) => &i.label,
        Other::Maintainer(i) => &i.maintainer,
        Other::Onbuild(i) => &i.onbuild,
        Other::Run(i) => &i.run,
        Other::Shell(i) => &i.shell,
        Other::Stopsignal(i) => &i.stopsignal,
        Other::User(i) => &i.user,
        Other::Volume(i) => &i.volume,
        Other::Workdir(i) => &i.workdir,
        _ => panic!("an instruction of a newer parse-dockerfile"),
    };
    (span.span.start, span.span.end)
}
