//! What the parser reads, in the shape of the oracle's output: file names on stdin, one JSON line each on stdout.
//! `--time N`: parses all files N times instead and prints the seconds that one round took.

use std::collections::BTreeMap;
use std::io::BufRead;

use imagelint::dockerfile::parse::parse;
use imagelint::dockerfile::syntax::{Body, Document, Flag, Instruction, Keyword, Pair, Word};
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<String> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;
    let names = names.iter().filter(|name| !name.is_empty());
    if let [flag, rounds] = args.as_slice()
        && flag == "--time"
    {
        return time(names, rounds.parse().unwrap_or(1));
    }
    for name in names {
        println!("{}", dump(name, &std::fs::read(name)?));
    }
    Ok(())
}

fn time<'a>(names: impl Iterator<Item = &'a String>, rounds: u32) -> std::io::Result<()> {
    let sources: Vec<Vec<u8>> = names.map(std::fs::read).collect::<Result<_, _>>()?;
    let bytes: usize = sources.iter().map(Vec::len).sum();
    let start = std::time::Instant::now();
    let mut count = 0;
    for _ in 0..rounds {
        count = sources.iter().map(|source| parse(source).instructions.len()).sum();
    }
    let seconds = start.elapsed().as_secs_f64() / f64::from(rounds);
    println!("{} files, {bytes} bytes, {count} instructions: {seconds:.6} s", sources.len());
    Ok(())
}

fn dump(name: &str, source: &[u8]) -> Value {
    let document = parse(source);
    let own = document.errors.iter().map(|e| (e.span, &e.what));
    let errors: Vec<_> = own
        .chain(document.instructions.iter().filter_map(|i| Some((i.error.as_ref()?.span, &i.error.as_ref()?.what))))
        .collect();
    let first = errors.first();
    json!({
        "file": name,
        "ok": errors.is_empty(),
        "error": first.map(|(_, what)| what),
        "error_line": first.map_or(0, |(span, _)| document.lines.line(span.start)),
        "errors": errors.len(),
        "lossless": document.print() == source,
        "escape": document.escape.to_string(),
        "instructions": document.instructions.iter().map(|i| instruction(&document, i)).collect::<Vec<_>>(),
    })
}

fn keyword(document: &Document, instruction: &Instruction) -> String {
    match instruction.keyword {
        Keyword::Unknown => document.slice(instruction.keyword_span).to_lowercase(),
        known => known.name().to_lowercase(),
    }
}

fn instruction(document: &Document, instruction: &Instruction) -> Value {
    let inner = match &instruction.body {
        Body::Onbuild(inner) => Some(inner.as_ref()),
        _ => None,
    };
    let mut out = json!({
        "keyword": keyword(document, instruction),
        "start": document.lines.line(instruction.span.start),
        "end": document.lines.line(instruction.span.end),
        "flags": instruction.flags.iter().map(|f| flag(f, document.escape)).collect::<Vec<_>>(),
        "args": args(document, instruction),
        "json": is_json(&instruction.body),
        "kv": pairs(&instruction.body),
        "heredocs": inner.unwrap_or(instruction).heredocs.iter().map(|h| json!({
            "name": h.name, "expand": h.expand, "chomp": h.strip_tabs, "content": document.slice(h.body),
        })).collect::<Vec<_>>(),
        "error": instruction.error.as_ref().map(|e| &e.what),
    });
    if let Some(inner) = inner {
        out["onbuild"] = keyword(document, inner).into();
    }
    out
}

/// As BuildKit's tree has it: without quotes and escapes.
fn flag(flag: &Flag, escape: char) -> String {
    match &flag.value {
        Some(value) if value.literal => format!("--{}={}", flag.name, value.text),
        Some(value) => format!("--{}={}", flag.name, unquoted(&value.text, escape)),
        None => format!("--{}", flag.name),
    }
}

fn unquoted(text: &str, escape: char) -> String {
    let mut out = String::new();
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match quote {
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ if c == escape => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    out
}

fn is_json(body: &Body) -> bool {
    match body {
        Body::Exec(_) => true,
        Body::Words(words) => words.first().is_some_and(|w| w.literal),
        _ => false,
    }
}

fn pairs(body: &Body) -> Option<Vec<BTreeMap<&'static str, Value>>> {
    let Body::Pairs(pairs) = body else { return None };
    let value = |p: &Pair| p.value.as_ref().map_or(Value::Null, |v| v.text.clone().into());
    Some(pairs.iter().map(|p| BTreeMap::from([("name", p.key.text.clone().into()), ("value", value(p))])).collect())
}

/// The arguments that BuildKit's tree has, pairs excepted.
fn args(document: &Document, instruction: &Instruction) -> Vec<String> {
    let texts = |words: &[Word]| words.iter().map(|w| w.text.clone()).collect();
    match &instruction.body {
        Body::Nothing | Body::Pairs(_) => Vec::new(),
        Body::From { image, alias } => {
            let alias = alias.iter().flat_map(|a| ["AS".to_owned(), a.text.clone()]);
            std::iter::once(image.text.clone()).chain(alias).collect()
        }
        Body::Shell(joined) => vec![joined.text.clone()],
        Body::Exec(words) | Body::Words(words) => texts(words),
        Body::Onbuild(inner) => {
            let own = std::iter::once(document.slice(inner.keyword_span).to_owned());
            own.chain(args(document, inner)).collect()
        }
    }
}
