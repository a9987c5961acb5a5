//! The sources' own shape, read from their text: who uses whom, who prints, how long a file is, what may panic.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which top-level modules each may use. A line here is a decision about the design, not a formality:
///
/// * `model` and `stream` stand on nothing, so that evidence stays plain data;
/// * what reads (`elf`, `device`, `image`, `inventory`) or simulates (`loader`) knows no facts and no rules; `scan`
///   joins these and asks `catalog` for two things: how the packages are called that nothing in the image names, and
///   who loads libraries beyond the dynamic loader's own laws;
/// * `catalog` judges code against facts; `lint` makes findings of that, and fills in the report's types, which
///   `report` renders without deciding anything;
/// * `lint` calls `plan`, because a finding's help is the plan's step; `plan` reads the cases that `lint` judged;
/// * `discover` reads from labels and hosts' files which GPUs there are, and asks `catalog` what they are;
/// * `diff` compares two judged images, and judges nothing;
/// * nobody but `main` uses `cli`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stream", &[]),
    ("catalog", &["model"]),
    ("elf", &["model"]),
    ("device", &["elf", "model", "stream"]),
    ("image", &["model", "stream"]),
    ("inventory", &["model", "stream"]),
    ("loader", &["model", "stream"]),
    ("dockerfile", &[]),
    ("config", &["catalog", "model"]),
    ("discover", &["catalog", "model"]),
    ("scan", &["catalog", "device", "image", "inventory", "loader", "model", "stream"]),
    ("report", &["model"]),
    ("diff", &["catalog", "lint", "model", "report"]),
    ("plan", &["catalog", "dockerfile", "inventory", "lint", "model", "report"]),
    ("lint", &["catalog", "config", "dockerfile", "inventory", "model", "plan", "report"]),
    (
        "cli",
        &[
            "catalog",
            "config",
            "diff",
            "discover",
            "dockerfile",
            "image",
            "lint",
            "model",
            "plan",
            "report",
            "scan",
        ],
    ),
];

/// Lines of one file.
const LONGEST: usize = 500;

/// Files that may be longer, each with its reason.
const LONG: &[(&str, &str)] = &[];

/// The only files with unsafe code: calls of what is compiled for processors that have certain instructions.
const UNSAFE: &[&str] = &["src/image/sha256/x86.rs"];

/// Lines before a call in which its `#[allow]` may stand.
const ALLOW_WITHIN: usize = 6;

struct SourceFile {
    /// From the repository's root.
    name: String,
    /// The path of its module: `["image", "sources", "registry"]`; empty for lib.rs and main.rs.
    module: Vec<String>,
    text: String,
    /// Lines of the program itself: what only tests compile is cut off, comments are blank.
    program: Vec<String>,
}

fn sources() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    collect(&root.join("src"), &mut paths);
    // The build script is a program of its own.
    paths.retain(|p| !p.ends_with("src/build.rs"));
    paths.sort();
    let mut files: Vec<SourceFile> = paths.iter().map(|p| source_file(root, p)).collect();
    let tests: BTreeSet<Vec<String>> = files.iter().flat_map(test_modules).collect();
    for file in files.iter_mut().filter(|f| tests.iter().any(|t| f.module.starts_with(t))) {
        file.program.clear();
    }
    assert!(files.len() > 50, "the sources were not found");
    files
}

fn collect(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

fn source_file(root: &Path, path: &Path) -> SourceFile {
    let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
    let inside = name.trim_start_matches("src/").trim_end_matches(".rs");
    let module = inside.split('/').filter(|p| !matches!(*p, "mod" | "lib" | "main")).map(str::to_owned).collect();
    let text = fs::read_to_string(path).unwrap();
    let mut program: Vec<String> = text.lines().map(str::to_owned).collect();
    let inline = |w: &[String]| w[0] == "#[cfg(test)]" && w[1].starts_with("mod ") && w[1].ends_with('{');
    if let Some(cut) = program.windows(2).position(inline) {
        let end = program[cut..].iter().position(|l| l == "}");
        assert_eq!(end.map(|e| cut + e + 1), Some(program.len()), "{name}: tests stand at the end of their file");
        program.truncate(cut);
    }
    for line in program.iter_mut().filter(|l| l.trim_start().starts_with("//")) {
        line.clear();
    }
    SourceFile { name, module, text, program }
}

/// Modules in files of their own that only tests compile.
fn test_modules(file: &SourceFile) -> Vec<Vec<String>> {
    let lines: Vec<&str> = file.text.lines().collect();
    let test_only = lines.windows(2).filter(|w| w[0] == "#[cfg(test)]" && w[1].ends_with(';'));
    let name = |w: &[&str]| w[1].split_once("mod ").map(|(_, n)| n.trim_end_matches(';').to_owned());
    test_only.filter_map(name).map(|n| [file.module.clone(), vec![n]].concat()).collect()
}

/// The top-level modules behind every `crate::`, also `crate::{a, b::c}`.
fn used(program: &str) -> BTreeSet<String> {
    let word =
        |t: &str| t.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
    let mut out = BTreeSet::new();
    for (_, rest) in program.match_indices("crate::").map(|(at, m)| (at, &program[at + m.len()..])) {
        let Some(list) = rest.strip_prefix('{') else {
            out.insert(word(rest));
            continue;
        };
        let mut depth = 1;
        let mut item = String::new();
        for c in list.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth == 0 || (depth == 1 && c == ',') {
                out.insert(word(&item));
                item.clear();
            } else {
                item.push(c);
            }
            if depth == 0 {
                break;
            }
        }
    }
    out.remove("");
    out
}

#[test]
fn modules_use_what_the_design_lets_them() {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in sources().iter().filter(|f| !f.module.is_empty()) {
        let top = &file.module[0];
        let mut uses = used(&file.program.join("\n"));
        uses.remove(top);
        let may = MAY_USE.iter().find(|(m, _)| m == top).unwrap_or_else(|| panic!("{top} is not in MAY_USE")).1;
        for other in &uses {
            assert!(may.contains(&other.as_str()), "{}: {top} may not use {other}", file.name);
        }
        let climb = "super::".repeat(file.module.len());
        assert!(!file.program.iter().any(|l| l.contains(&climb)), "{}: write crate::, not {climb}", file.name);
        found.entry(top.clone()).or_default().extend(uses);
    }
    // What nobody uses any more is taken out of the table.
    for (module, may) in MAY_USE {
        let uses: Vec<&str> = found[*module].iter().map(String::as_str).collect();
        assert_eq!(&uses, may, "{module}: MAY_USE allows what it does not use");
    }
}

#[test]
fn readers_and_facts_know_no_rules() {
    let judges = ["diff", "lint", "plan", "report", "scan", "cli"];
    for (module, may) in MAY_USE {
        assert!(!may.contains(&"cli"), "{module} uses cli");
        if !judges.contains(module) {
            assert!(judges.iter().all(|j| !may.contains(j)), "{module} uses a module above it");
        }
    }
    let main = sources().into_iter().find(|f| f.name == "src/main.rs").unwrap();
    let through: Vec<&String> = main.program.iter().filter(|l| l.contains("imagelint::")).collect();
    assert!(through.iter().all(|l| l.contains("imagelint::cli")), "main only calls cli: {through:?}");
}

#[test]
fn only_report_and_cli_print() {
    let words = ["println!", "print!(", "eprint!(", "dbg!", "io::stdout", "io::stderr"];
    for file in sources().iter().filter(|f| !f.module.first().is_some_and(|m| m == "report" || m == "cli")) {
        for (at, line) in file.program.iter().enumerate() {
            let word = words.iter().find(|w| line.contains(**w));
            assert!(word.is_none(), "{}:{}: {}", file.name, at + 1, line.trim());
        }
    }
}

/// A run rests on one catalog and one day, which the command line chooses: `--rules` counts everywhere or nowhere.
#[test]
fn the_catalog_and_the_day_are_chosen_once() {
    // The defaults of scans are for those who have no command line.
    let may = [
        ("Catalog::embedded", &["src/cli/basis.rs", "src/scan/mod.rs", "src/scan/wheel/mod.rs"][..]),
        ("Date::today", &["src/cli/basis.rs"][..]),
    ];
    for file in sources() {
        for (word, places) in may {
            let at = file.program.iter().position(|l| l.contains(word));
            let excused = places.contains(&file.name.as_str());
            assert!(
                excused || at.is_none(),
                "{}:{}: ask cli::basis, or be handed it",
                file.name,
                at.unwrap_or(0) + 1
            );
        }
    }
}

#[test]
fn no_file_is_long() {
    let files = sources();
    for file in &files {
        let lines = file.text.lines().count();
        let excused = LONG.iter().any(|(name, _)| *name == file.name);
        assert!(lines <= LONGEST || excused, "{} has {lines} lines", file.name);
        assert!(lines > LONGEST || !excused, "{} needs no exception any more", file.name);
    }
    assert!(LONG.iter().all(|(name, why)| !why.is_empty() && files.iter().any(|f| f.name == *name)));
}

/// A call that may panic says why it cannot: an `#[allow]` with its reason, or an `expect` whose text argues.
#[test]
fn what_may_panic_says_why_it_does_not() {
    for file in sources() {
        for (at, line) in file.program.iter().enumerate() {
            let macros = ["panic!(", "unreachable!(", "todo!(", "unimplemented!("];
            let expects = line.split(".expect(\"").nth(1).and_then(|t| t.split('"').next());
            let argues = expects.is_some_and(|t| t.split_whitespace().count() >= 5);
            let may =
                line.contains(".unwrap()") || line.contains(".expect(") || macros.iter().any(|m| line.contains(m));
            let before = &file.program[at.saturating_sub(ALLOW_WITHIN)..at];
            let allowed = before.iter().any(|l| l.contains("#[allow(") && l.contains("reason = "));
            assert!(!may || argues || allowed, "{}:{}: {}", file.name, at + 1, line.trim());
            let above = || file.text.lines().skip(at.saturating_sub(ALLOW_WITHIN)).take(ALLOW_WITHIN);
            let proved = UNSAFE.contains(&file.name.as_str()) && above().any(|l| l.contains("// SAFETY: "));
            assert!(
                proved || !line.contains("unsafe "),
                "{}:{}: unsafe code without its place and proof",
                file.name,
                at + 1
            );
        }
    }
}
