//! Every file of the repository that is made from the sources: one list, for `imagelint generate` and its `--check`.

use super::lists;
use crate::catalog::merge;
use crate::config;
use crate::lint::{RULES, Rule, verdicts};
use crate::model::Verdict;
use crate::report::json;

/// Paths from the repository's root, and texts.
pub fn files() -> Vec<(String, String)> {
    let mut all = vec![
        ("rules/report.schema.json".to_owned(), json::schema()),
        ("rules/attestation.schema.json".to_owned(), json::attestation_schema()),
        ("rules/lint.schema.json".to_owned(), json::lint_schema()),
        ("rules/diff.schema.json".to_owned(), json::diff_schema()),
        ("rules/rebuild.schema.json".to_owned(), json::rebuild_schema()),
        (format!("rules/{}", config::SCHEMA_NAME), config::schema()),
        ("rules/data/README.md".to_owned(), index_of_tables()),
        ("rules/lints/README.md".to_owned(), index_of_rules()),
        ("rules/verdicts/README.md".to_owned(), index_of_verdicts()),
    ];
    all.extend(Verdict::ALL.map(|v| (format!("rules/verdicts/{}.md", v.word()), verdicts::page(v))));
    all
}

const MADE: &str = "<!-- Written by `cargo run -- generate` from the sources. -->\n";

fn index_of_tables() -> String {
    let mut out = format!(
        "# Tables\n\n{MADE}\nThe facts that images are judged by: rows of TOML, each with its source and how sure it is. They are compiled in.\n\n\
         `--rules DIR` (or IMAGELINT_RULES) merges rows over them for one run. The folder has files of the names below, each\n\
         with the rows that are to be added. A row that is like an embedded one in what tells its list's rows apart stands in\n\
         its place, whole; any other is added. Values beside the lists, such as `as_of` in `catalog.toml`, stand in the place\n\
         of the embedded ones. What is merged is held against the same laws as the embedded tables, and what breaks one is\n\
         pointed out in the file. Reports tell of it in `tool.catalog`: the digest is another, and `rules` counts the rows.\n\n\
         | File | List | Rows are told apart by |\n|---|---|---|\n"
    );
    for file in merge::file_names() {
        for (list, keys) in merge::identities(file) {
            out.push_str(&format!("| [{file}]({file}) | `[[{list}]]` | {} |\n", keys.join(", ")));
        }
    }
    out
}

fn index_of_rules() -> String {
    let mut out = format!(
        "# Rules\n\n{MADE}\nEach names a problem. Its severity is the one at its worst; what is found on a target takes the\n\
         severity of the [verdict](../verdicts/README.md) that it leads to. `imagelint explain RULE` prints a page.\n"
    );
    let of_images = |r: &&Rule| r.needs.is_none();
    let of_dockerfiles = |r: &&Rule| r.needs.is_some();
    out.push_str("\n## Images\n\n| Rule | Severity | What it says |\n|---|---|---|\n");
    for rule in RULES.iter().filter(of_images) {
        out.push_str(&format!("| {} | {} | {} |\n", link(rule), rule.severity, cell(rule.summary)));
    }
    out.push_str(
        "\n## Dockerfiles\n\nThe third column is what a rule cannot do without, besides the file.\n\n\
         | Rule | Severity | Needs | What it says |\n|---|---|---|---|\n",
    );
    for rule in RULES.iter().filter(of_dockerfiles) {
        let needs = lists::judged(rule).1.unwrap_or("");
        let off = if rule.on { "" } else { ", off" };
        out.push_str(&format!("| {} | {}{off} | {needs} | {} |\n", link(rule), rule.severity, cell(rule.summary)));
    }
    out
}

fn index_of_verdicts() -> String {
    let mut out = format!(
        "# Verdicts\n\n{MADE}\nOne word per target and per component, worst first. `imagelint explain WORD` prints a page.\n\n\
         | Verdict | Findings are | What it means |\n|---|---|---|\n"
    );
    for verdict in Verdict::ALL {
        let page = verdicts::page(verdict);
        // The first paragraph after the title.
        let says = page.split("\n\n").nth(1).unwrap_or_default().replace('\n', " ");
        let word = verdict.word();
        out.push_str(&format!("| [{word}]({word}.md) | {} | {} |\n", verdict.severity(), cell(&says)));
    }
    out
}

fn link(rule: &Rule) -> String {
    format!("[{id}]({id}.md)", id = rule.id)
}

/// What a row of a table holds.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
