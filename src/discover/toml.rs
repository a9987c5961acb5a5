//! What was found, as rows of an imagelint.toml.

use std::fmt::Write;

use super::{Found, FoundLeft, FoundTarget, Sharing};
use crate::model::{Runtime, Start, Virtualisation};

/// Names of machines that a comment shows.
const SHOWN: usize = 3;
/// Characters of a comment that come from outside.
const LONGEST: usize = 200;

/// The rows, each with a comment on where it is from. `head`: lines of a comment on top; `one`, `many`: what the
/// machines are called.
pub fn render(found: &Found, head: &[String], one: &str, many: &str) -> String {
    let mut out = String::new();
    for line in head {
        comment(&mut out, line);
    }
    let count = |n: usize| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
    if found.without_gpu > 0 {
        comment(&mut out, &format!("{} without a GPU", count(found.without_gpu)));
    }
    let who = |machines: &[String]| {
        let shown: Vec<&str> = machines.iter().take(SHOWN).map(String::as_str).collect();
        let more = machines.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}: {}{more}", count(machines.len()), shown.join(", "))
    };
    for target in &found.targets {
        gap(&mut out);
        if !target.machines.is_empty() {
            comment(&mut out, &who(&target.machines));
        }
        for remark in &target.remarks {
            comment(&mut out, remark);
        }
        out.push_str(&row(target));
    }
    for left in &found.left_out {
        gap(&mut out);
        not_judged(&mut out, left, &who(&left.machines));
    }
    if found.targets.is_empty() {
        gap(&mut out);
        comment(&mut out, "No target was found.");
    }
    out
}

/// `[[target]]` with all that is not the default.
pub fn row(target: &FoundTarget) -> String {
    let mut out = String::from("[[target]]\n");
    let kind = &target.kind;
    let mut put = |key: &str, value: &str| {
        let _ = writeln!(out, "{key} = {}", quoted(value));
    };
    put("name", &target.name);
    put("gpu", &kind.gpu);
    if let Some(driver) = &kind.driver {
        put("driver", driver);
    }
    if kind.runtime != Runtime::default() {
        put("runtime", kind.runtime.word());
    }
    if kind.start != Start::default() {
        put("start", kind.start.word());
    }
    if kind.virtualisation != Virtualisation::default() {
        put("virtualisation", kind.virtualisation.word());
    }
    if let Some(platform) = &kind.platform {
        put("platform", &platform.to_string());
    }
    match kind.sharing {
        None => {}
        Some(Sharing::TimeSlicing) => comment(&mut out, "shared by time slicing, which no verdict depends on"),
        Some(Sharing::Mps) => comment(&mut out, "shared by MPS, which no verdict depends on"),
        Some(Sharing::Shared) => comment(&mut out, "shared, which no verdict depends on"),
    }
    out
}

/// Rows as comments, to be taken by deleting the `#`.
pub fn commented(text: &str) -> String {
    text.lines().map(|l| if l.starts_with('#') { format!("{l}\n") } else { format!("# {l}\n") }).collect()
}

fn not_judged(out: &mut String, left: &FoundLeft, who: &str) {
    comment(out, &format!("Not judged: {}: {}", left.left.what, left.left.why));
    comment(out, who);
    if let Some(gpu) = &left.left.gpu {
        let _ = writeln!(out, "# [[target]]\n# gpu = {}", quoted(&plain(gpu)));
    }
}

fn gap(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

/// One line, whatever the text holds.
pub fn comment(out: &mut String, text: &str) {
    let _ = writeln!(out, "# {}", plain(text));
}

/// Text from outside in one line, without what could drive a terminal or turn text around.
pub(super) fn plain(text: &str) -> String {
    let odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut out: String = text.chars().map(|c| if odd(c) { '?' } else { c }).take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

/// A TOML string.
pub fn quoted(text: &str) -> String {
    ::toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Left};
    use super::*;
    use crate::model::Platform;

    fn target() -> FoundTarget {
        let kind = Kind {
            driver: Some("535.183.01".into()),
            runtime: Runtime::Gke,
            start: Start::Env,
            virtualisation: Virtualisation::Mig,
            sharing: Some(Sharing::Mps),
            platform: Some(Platform::linux("amd64")),
            ..Kind::of("NVIDIA A100")
        };
        FoundTarget {
            name: "a100-mig@535.183.01".into(),
            kind,
            machines: ["a", "b", "c", "d\nrules = 1"].map(String::from).to_vec(),
            remarks: vec!["x\r\n[[target]]\u{202e}".into()],
        }
    }

    #[test]
    fn rows_and_comments() {
        let left = Left { what: "MI300X".into(), why: "no".into(), gpu: Some("gfx942".into()) };
        let left = FoundLeft { left, machines: vec!["m".into()] };
        let found = Found { targets: vec![target()], left_out: vec![left], without_gpu: 1 };
        let text = render(&found, &["head".into()], "node", "nodes");
        let wanted = "# head\n# 1 node without a GPU\n\n# 4 nodes: a, b, c and 1 more\n# x??[[target]]?\n[[target]]\nname = \"a100-mig@535.183.01\"\ngpu = \"NVIDIA A100\"\ndriver = \"535.183.01\"\nruntime = \"gke\"\nstart = \"env\"\nvirtualisation = \"mig\"\nplatform = \"linux/amd64\"\n# shared by MPS, which no verdict depends on\n\n# Not judged: MI300X: no\n# 1 node: m\n# [[target]]\n# gpu = \"gfx942\"\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn every_word_is_one_of_the_fleet_file() {
        use serde_json::to_value;
        for r in [Runtime::Toolkit, Runtime::Legacy, Runtime::Cdi, Runtime::Gke, Runtime::Wsl, Runtime::Tegra] {
            assert_eq!(to_value(r).unwrap(), r.word());
        }
        for v in [Virtualisation::None, Virtualisation::Mig, Virtualisation::Vgpu, Virtualisation::Passthrough] {
            assert_eq!(to_value(v).unwrap(), v.word());
        }
        assert_eq!(to_value(Start::Env).unwrap(), Start::Env.word());
        assert_eq!(to_value(Start::Env).unwrap(), "env");
    }

    #[test]
    fn text_from_outside_stays_a_string_or_a_comment() {
        let hostile = "\"\n[rules]\nx = \"off\"\u{1b}[31m'''\\";
        let read: ::toml::Table = format!("a = {}", quoted(hostile)).parse().unwrap();
        assert_eq!(read["a"].as_str(), Some(hostile));
        let mut out = String::new();
        comment(&mut out, hostile);
        assert_eq!(out.lines().count(), 1);
        assert!(out.parse::<::toml::Table>().unwrap().is_empty());
        assert!(plain(&"é".repeat(5_000)).chars().count() == LONGEST + 1);
    }
}
