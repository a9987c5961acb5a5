//! `imagelint.toml`: the fleet, what counts as core, levels of rules, waivers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::date::Date;
use super::driver::parse_driver;
use super::raw;
use super::spans::{ConfigError, Source};
use super::target::{auto_name, of_gpu};
use crate::catalog::{Catalog, names};
use crate::model::{ImagePath, Platform, Target};

/// The file's name.
pub const FILE_NAME: &str = "imagelint.toml";

/// How a rule's findings count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Off,
    Note,
    Warning,
    Error,
}

/// A glob over paths in an image: `*` stays within a folder, `**` does not.
#[derive(Debug, Clone)]
pub struct PathGlob {
    text: String,
    matcher: GlobMatcher,
}

impl PathGlob {
    /// A leading slash is dropped: paths in an image have none.
    pub fn new(text: &str) -> Result<Self, globset::Error> {
        let glob = GlobBuilder::new(text.trim_start_matches('/')).literal_separator(true).build()?;
        Ok(Self { text: text.to_owned(), matcher: glob.compile_matcher() })
    }

    pub fn matches(&self, path: &ImagePath) -> bool {
        self.matcher.is_match(&*String::from_utf8_lossy(path.as_bytes()))
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A finding that is accepted, by whom it concerns, why and until when.
#[derive(Debug, Clone)]
pub struct Waiver {
    pub rule: String,
    pub path: Option<PathGlob>,
    pub component: Option<String>,
    /// Names of targets; empty: all.
    pub targets: Vec<String>,
    pub reason: String,
    pub expires: Date,
    /// Where it stands: for telling which waiver matched nothing or has expired.
    pub line: usize,
}

/// What is to be judged, and how strictly.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// In the file's order; names differ.
    pub targets: Vec<Target>,
    /// Components that count as core.
    pub required_components: Vec<String>,
    /// Levels by rule.
    pub levels: BTreeMap<String, Level>,
    pub waivers: Vec<Waiver>,
    /// Kept apart from what it judges: comments in that accept nothing.
    pub is_policy: bool,
}

/// The nearest `imagelint.toml`, from a folder upward.
pub fn find_upward(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().map(|d| d.join(FILE_NAME)).find(|f| f.is_file())
}

impl Fleet {
    /// A fleet of `--target` flags.
    pub fn of_targets(targets: Vec<Target>) -> Self {
        Self { targets, ..Self::default() }
    }

    /// Reads and checks a file. Messages call it as `path` does.
    pub fn load(path: &Path, catalog: &Catalog) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &file, catalog),
            Err(source) => Err(ConfigError::Read { file, source }),
        }
    }

    /// Adds the waivers of a file that holds nothing else.
    pub fn add_waivers(&mut self, path: &Path) -> Result<(), ConfigError> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { file: file.clone(), source })?;
        let source = Source { file: &file, text: &text };
        let raw: raw::File = toml::from_str(&text).map_err(|e| source.toml(&e))?;
        let other = raw.target.first().map(|t| ("targets", t.span().start));
        let other = other.or_else(|| raw.rules.keys().next().map(|rule| ("levels of rules", rule.span().start)));
        let other = other.or_else(|| raw.components.required.first().map(|c| ("components", c.span().start)));
        if let Some((what, at)) = other {
            let help = Some("a file of these is named by --fleet or --policy".to_owned());
            return Err(source.error(at..at, format!("a file of waivers holds no {what}"), help));
        }
        for row in raw.waiver {
            self.waivers.push(waiver(row, source, &self.targets)?);
        }
        Ok(())
    }

    /// Checks a text. `file` is what messages call it.
    pub fn parse(text: &str, file: &str, catalog: &Catalog) -> Result<Self, ConfigError> {
        let source = Source { file, text };
        let raw: raw::File = toml::from_str(text).map_err(|e| source.toml(&e))?;
        let mut targets: Vec<Target> = Vec::new();
        for row in raw.target {
            let span = row.span();
            let named = row.get_ref().name.as_ref().map(Spanned::span);
            let target = target(row, source, catalog)?;
            if targets.iter().any(|t| t.name == target.name) {
                let help = Some("names tell the targets of a fleet apart".to_owned());
                let message = format!("a target `{}` stands above already", target.name);
                return Err(source.error(named.unwrap_or_else(|| header(span)), message, help));
            }
            targets.push(target);
        }
        let required = |c: Spanned<String>| non_empty(&c, "a component's name", source);
        let mut levels = BTreeMap::new();
        for (rule, level) in raw.rules {
            levels.insert(rule_id(&rule, source)?, level);
        }
        let waiver = |w| waiver(w, source, &targets);
        Ok(Self {
            required_components: raw.components.required.into_iter().map(required).collect::<Result<_, _>>()?,
            levels,
            waivers: raw.waiver.into_iter().map(waiver).collect::<Result<_, _>>()?,
            targets,
            is_policy: false,
        })
    }
}

/// The place of a table's head, `[[target]]`, rather than the whole of it.
fn header(span: std::ops::Range<usize>) -> std::ops::Range<usize> {
    span.start..span.start
}

fn required<'a, T>(
    value: &'a Option<T>,
    key: &str,
    row: &std::ops::Range<usize>,
    source: Source<'_>,
    example: &str,
) -> Result<&'a T, ConfigError> {
    value.as_ref().ok_or_else(|| {
        source.error(
            header(row.clone()),
            format!("`{key}` is missing"),
            Some(format!("for example {key} = {example}")),
        )
    })
}

fn non_empty(text: &Spanned<String>, what: &str, source: Source<'_>) -> Result<String, ConfigError> {
    let trimmed = text.get_ref().trim();
    if trimmed.is_empty() || trimmed.chars().any(char::is_control) {
        return Err(source.error(text.span(), format!("{what} must be printable text"), None));
    }
    Ok(trimmed.to_owned())
}

/// Whether the rule exists is for those who know the rules; here, that it may.
fn rule_id(text: &Spanned<String>, source: Source<'_>) -> Result<String, ConfigError> {
    let id = text.get_ref();
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || !id.chars().all(kebab) {
        let near = id.trim().to_lowercase().replace([' ', '_'], "-");
        let help = near.chars().all(kebab).then(|| format!("did you mean `{near}`? `imagelint rules` lists all"));
        return Err(source.error(text.span(), format!("`{id}` is no rule's id"), help));
    }
    Ok(id.clone())
}

fn target(row: Spanned<raw::Target>, source: Source<'_>, catalog: &Catalog) -> Result<Target, ConfigError> {
    let span = row.span();
    let raw = row.into_inner();
    let gpu = required(&raw.gpu, "gpu", &span, source, "\"A100\"")?;
    let found = catalog.gpu(gpu.get_ref()).map_err(|e| source.error(gpu.span(), e.to_string(), None))?;
    let driver = |d: &Spanned<String>| {
        let range = parse_driver(d.get_ref(), found.device.maker());
        range.map_err(|e| source.error(d.span(), e.to_string(), None))
    };
    let driver = raw.driver.as_ref().map(driver).transpose()?;
    let name = match &raw.name {
        Some(name) => non_empty(name, "a target's name", source)?,
        None => auto_name(gpu.get_ref(), driver.as_ref()),
    };
    let mut target = of_gpu(&found, name, driver);
    target.runtime = raw.runtime;
    target.start = raw.start;
    target.virtualisation = raw.virtualisation;
    target.class = raw.class.or(target.class);
    target.required = raw.required.unwrap_or(true);
    if let Some(brand) = &raw.brand {
        target.brand = Some(non_empty(brand, "a brand", source)?.to_lowercase());
    }
    if let Some(platform) = &raw.platform {
        let parsed: Platform =
            platform.get_ref().parse().map_err(|e| source.error(platform.span(), format!("{e}"), None))?;
        target.platforms = vec![parsed];
    }
    Ok(target)
}

fn waiver(row: Spanned<raw::Waiver>, source: Source<'_>, fleet: &[Target]) -> Result<Waiver, ConfigError> {
    let span = row.span();
    let raw = row.into_inner();
    let rule = rule_id(required(&raw.rule, "rule", &span, source, "\"no-device-code-for-target\"")?, source)?;
    let reason = required(&raw.reason, "reason", &span, source, "\"not started on T4 nodes\"")?;
    let expires = required(&raw.expires, "expires", &span, source, "\"2027-03-31\"")?;
    let date = expires.get_ref().parse();
    let date = date.map_err(|e| source.error(expires.span(), format!("`{}` {e}", expires.get_ref()), None))?;
    let glob = |p: &Spanned<String>| {
        non_empty(p, "a path", source)?;
        PathGlob::new(p.get_ref()).map_err(|e| source.error(p.span(), e.to_string(), None))
    };
    if raw.targets.as_ref().is_some_and(Vec::is_empty) {
        let help = Some("leave `targets` out for all targets".to_owned());
        return Err(source.error(header(span), "`targets` is empty, so the waiver is for none", help));
    }
    let mut targets = Vec::new();
    for name in raw.targets.iter().flatten() {
        // A file of waivers alone names targets of a fleet that stands elsewhere.
        if !fleet.is_empty() && !fleet.iter().any(|t| t.name == *name.get_ref()) {
            let near = names::nearest(name.get_ref(), fleet.iter().map(|t| t.name.as_str()), 1);
            let help = near.first().map(|n| format!("did you mean `{n}`?"));
            return Err(source.error(name.span(), format!("no target is named `{}`", name.get_ref()), help));
        }
        targets.push(non_empty(name, "a target's name", source)?);
    }
    Ok(Waiver {
        rule,
        path: raw.path.as_ref().map(glob).transpose()?,
        component: raw.component.as_ref().map(|c| non_empty(c, "a component's name", source)).transpose()?,
        targets,
        reason: non_empty(reason, "a reason", source)?,
        expires: date,
        line: source.text.get(..span.start).unwrap_or_default().matches('\n').count() + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuClass, Runtime, Start, Virtualisation};

    const CONTRACT: &str = r#"
[[target]]
name = "prod-a100"
gpu = "A100"              # catalog name
driver = "535.183.01"
runtime = "toolkit"
start = "gpus"
virtualisation = "none"
brand = "tesla"
platform = "linux/amd64"
class = "datacenter"
required = true

[[target]]
name = "old-t4"
gpu = "T4"
driver = ">=535.54, <570"
runtime = "legacy"
start = "env"
virtualisation = "mig"
required = false

[components]
required = ["flash_attn"]

[rules]
"devel-in-final-stage" = "off"
stub-on-path = "error"

[[waiver]]
rule = "no-device-code-for-target"
path = "opt/legacy/**"
component = "flash_attn"
targets = ["old-t4"]
reason = "not started on T4 nodes"
expires = "2027-03-31"
"#;

    fn parse(text: &str) -> Result<Fleet, ConfigError> {
        Fleet::parse(text, "imagelint.toml", Catalog::embedded())
    }

    #[track_caller]
    fn error(text: &str) -> String {
        parse(text).expect_err("refused").to_string()
    }

    #[test]
    fn the_contracts_file() {
        let fleet = parse(CONTRACT).unwrap();
        let [a100, t4] = fleet.targets.as_slice() else { panic!() };
        assert_eq!((a100.name.as_str(), a100.gpu.as_str()), ("prod-a100", "NVIDIA A100"));
        assert_eq!((a100.brand.as_deref(), a100.class), (Some("tesla"), Some(GpuClass::Datacenter)));
        assert_eq!(a100.platforms, [Platform::linux("amd64")]);
        assert_eq!((a100.runtime, a100.start, a100.required), (Runtime::Toolkit, Start::Gpus, true));
        assert_eq!((t4.runtime, t4.start, t4.required), (Runtime::Legacy, Start::Env, false));
        assert_eq!(t4.virtualisation, Virtualisation::Mig);
        assert_eq!(fleet.required_components, ["flash_attn"]);
        assert_eq!(fleet.levels.get("devel-in-final-stage"), Some(&Level::Off));
        assert_eq!(fleet.levels.get("stub-on-path"), Some(&Level::Error));
        let waiver = &fleet.waivers[0];
        assert_eq!(
            (waiver.targets.as_slice(), waiver.expires.to_string().as_str()),
            (&["old-t4".to_owned()][..], "2027-03-31")
        );
        assert_eq!(CONTRACT.lines().nth(waiver.line - 1), Some("[[waiver]]"));
        assert!(waiver.path.as_ref().unwrap().matches(&ImagePath::new("opt/legacy/a/b.so")));
        assert!(!waiver.path.as_ref().unwrap().matches(&ImagePath::new("opt/other/b.so")));
    }

    #[test]
    fn little_is_needed() {
        assert!(parse("").unwrap().targets.is_empty());
        let fleet = parse("[[target]]\ngpu = \"RTX 5090\"\ndriver = \"575\"").unwrap();
        assert_eq!(fleet.targets[0].name, "rtx-5090@575");
        assert!(
            parse("[[waiver]]\nrule = \"x\"\ntargets = [\"elsewhere\"]\nreason = \"r\"\nexpires = \"2027-01-01\"")
                .is_ok()
        );
    }

    #[test]
    fn misspelt_keys_and_values_are_pointed_at() {
        let text = error("[[target]]\nname = \"a\"\ngpu = \"A100\"\ndrvier = \"535\"\n");
        assert_eq!(
            text,
            "imagelint.toml:4:1: unknown key `drvier`\n  |\n4 | drvier = \"535\"\n  | ^^^^^^\n  = help: did you mean `driver`?"
        );
        let text = error("[[targets]]\ngpu = \"A100\"\n");
        assert!(text.contains("1:3: unknown key `targets`") && text.contains("did you mean `target`?"), "{text}");
        let text = error("[[target]]\ngpu = \"A100\"\nruntime = \"legcy\"\n");
        assert!(text.contains(":3:11: unknown value `legcy`") && text.contains("did you mean `legacy`?"), "{text}");
        let text = error("[rules]\n\"devel-in-final-stage\" = \"warn\"\n");
        assert!(text.contains(":2:") && text.contains("`warn`") && text.contains("warning"), "{text}");
        let text = error("[[waiver]]\nrule = \"x\"\nuntil = \"2027-01-01\"\n");
        assert!(text.contains(":3:1: unknown key `until`"), "{text}");
        let text = error("[[target]\n");
        assert!(text.starts_with("imagelint.toml:1:"), "{text}");
    }

    #[test]
    fn wrong_values_are_pointed_at() {
        let cases = [
            ("[[target]]\nname = \"a\"\n", ":1:1: `gpu` is missing"),
            ("[[target]]\ngpu = \"H10O\"\n", ":2:7: `H10O` is no GPU"),
            ("[[target]]\ngpu = \"A100\"\ndriver = \"<570\"\n", ":3:10: `<570` has no lower bound"),
            ("[[target]]\ngpu = \"A100\"\ndriver = 535\n", ":3:10: invalid type"),
            ("[[target]]\ngpu = \"A100\"\nplatform = \"amd64\"\n", ":3:12: `amd64` is not a platform"),
            (
                "[[target]]\nname = \"a\"\ngpu = \"A100\"\n[[target]]\nname = \"a\"\ngpu = \"H100\"\n",
                ":5:8: a target `a` stands above",
            ),
            ("[[target]]\nname = \" \"\ngpu = \"A100\"\n", ":2:8: a target's name"),
            ("[rules]\n\"Bad Rule\" = \"off\"\n", ":2:1: `Bad Rule` is no rule's id"),
            ("[[waiver]]\nrule = \"x\"\nexpires = \"2027-01-01\"\n", ":1:1: `reason` is missing"),
            ("[[waiver]]\nrule = \"x\"\nreason = \"y\"\n", ":1:1: `expires` is missing"),
            ("[[waiver]]\nrule = \"x\"\nreason = \"\"\nexpires = \"2027-01-01\"\n", ":3:10: a reason"),
            (
                "[[waiver]]\nrule = \"x\"\nreason = \"y\"\nexpires = \"2027-02-29\"\n",
                ":4:11: `2027-02-29` has no such day",
            ),
            ("[[waiver]]\nrule = \"x\"\nreason = \"y\"\nexpires = \"soon\"\n", ":4:11: `soon` is not a day"),
            ("[[waiver]]\nrule = \"x\"\nreason = \"y\"\nexpires = \"2027-01-01\"\npath = \"[\"\n", ":5:8: "),
            (
                "[[waiver]]\nrule = \"x\"\nreason = \"y\"\nexpires = \"2027-01-01\"\ntargets = []\n",
                ":1:1: `targets` is empty",
            ),
        ];
        for (text, wanted) in cases {
            let shown = error(text);
            assert!(shown.contains(wanted), "{shown}\n-- wanted {wanted}");
        }
        let typo = CONTRACT.replace("targets = [\"old-t4\"]", "targets = [\"old-t5\"]");
        assert!(error(&typo).contains("did you mean `old-t4`?"));
    }

    #[test]
    fn the_file_is_found_upward() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(root.path().join(FILE_NAME), "").unwrap();
        assert_eq!(find_upward(&deep), Some(root.path().join(FILE_NAME)));
        assert!(Fleet::load(&deep, Catalog::embedded()).unwrap_err().to_string().contains("cannot be read"));
    }
}
