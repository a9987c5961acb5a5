//! A fleet file that is kept apart from what it judges, beside the one that is not.

use super::rules::RULES;
use crate::config::{Fleet, Level};
use crate::inventory::same_component;
use crate::model::{DriverRange, Severity, Target, escape};

/// What judging by `own` would make easier than judging by the policy does, one line each.
pub fn weakened(policy: &Fleet, own: &Fleet) -> Vec<String> {
    let mut out = Vec::new();
    for target in &policy.targets {
        match own.targets.iter().find(|t| t.name == target.name) {
            // Without any targets it says nothing about them.
            None if own.targets.is_empty() => {}
            None => out.push(format!("the target {} is left out", shown(&target.name))),
            Some(other) => out.extend(easier(target, other)),
        }
    }
    for component in &policy.required_components {
        let is_there = own.required_components.iter().any(|c| same_component(c, component));
        if !is_there && !own.required_components.is_empty() {
            out.push(format!("the component {} is not required", shown(component)));
        }
    }
    for (rule, level) in &own.levels {
        let strict = policy.levels.get(rule).copied().or_else(|| default(rule));
        if let Some(strict) = strict.filter(|strict| level < strict) {
            out.push(format!("the rule {} is set to {}, not {}", shown(rule), word(*level), word(strict)));
        }
    }
    for waiver in &own.waivers {
        let is_known = policy.waivers.iter().any(|w| {
            let same = |a: &Option<String>, b: &Option<String>| a == b;
            let path = |w: &crate::config::Waiver| w.path.as_ref().map(|p| p.text().to_owned());
            w.rule == waiver.rule
                && same(&w.component, &waiver.component)
                && path(w) == path(waiver)
                && w.targets == waiver.targets
                && w.expires >= waiver.expires
        });
        if !is_known {
            out.push(format!("{} is waived in line {}", shown(&waiver.rule), waiver.line));
        }
    }
    out
}

fn easier(target: &Target, other: &Target) -> Vec<String> {
    let name = shown(&target.name);
    let mut out = Vec::new();
    if target.required && !other.required {
        out.push(format!("the target {name} is not required"));
    }
    if target.device != other.device {
        out.push(format!("the target {name} is another GPU: {}", shown(&other.gpu)));
    }
    let lowest = |t: &Target| t.driver.as_ref().map(|d| d.lowest.clone());
    // A driver that is not named is no driver's limit.
    let is_newer = match (lowest(target), lowest(other)) {
        (Some(asked), Some(said)) => said > asked,
        (Some(_), None) => true,
        (None, _) => false,
    };
    if is_newer {
        let text = |d: &Option<DriverRange>| d.as_ref().map_or("any driver".to_owned(), |d| shown(&d.text));
        out.push(format!("the target {name} has {}, not {}", text(&other.driver), text(&target.driver)));
    }
    out
}

/// How loud a rule is if nobody says otherwise.
fn default(rule: &str) -> Option<Level> {
    let rule = RULES.iter().find(|r| r.id == rule)?;
    Some(match rule.severity {
        _ if !rule.on => Level::Off,
        Severity::Note => Level::Note,
        Severity::Warning => Level::Warning,
        Severity::Error => Level::Error,
    })
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Off => "off",
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

fn shown(text: &str) -> String {
    escape(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    const POLICY: &str = r#"
[[target]]
name = "a"
gpu = "A100"
driver = "535"
[[target]]
name = "b"
gpu = "T4"
[components]
required = ["flash_attn", "xformers"]
[rules]
"jit-at-start" = "error"
[[waiver]]
rule = "driver-in-image"
path = "opt/**"
reason = "known"
expires = "2999-01-01"
"#;

    fn fleet(text: &str) -> Fleet {
        Fleet::parse(text, "x", Catalog::embedded()).unwrap()
    }

    #[test]
    fn the_same_file_weakens_nothing_and_neither_does_an_empty_one() {
        assert_eq!(weakened(&fleet(POLICY), &fleet(POLICY)), [""; 0]);
        assert_eq!(weakened(&fleet(POLICY), &fleet("")), [""; 0]);
        let stricter = POLICY.replace("535", "525").replace("2999", "2998");
        assert_eq!(weakened(&fleet(POLICY), &fleet(&stricter)), [""; 0]);
    }

    #[test]
    fn every_way_to_make_it_easier_is_told() {
        let told = |from: &str, to: &str| {
            assert!(POLICY.contains(from), "{from}");
            weakened(&fleet(POLICY), &fleet(&POLICY.replace(from, to))).join("; ")
        };
        assert_eq!(told("\"535\"", "\"550\""), "the target a has 550, not 535");
        assert_eq!(told("driver = \"535\"", ""), "the target a has any driver, not 535");
        assert_eq!(told("gpu = \"T4\"", "gpu = \"T4\"\nrequired = false"), "the target b is not required");
        assert!(told("gpu = \"A100\"", "gpu = \"H100\"").contains("another GPU"));
        assert_eq!(told("name = \"b\"", "name = \"c\""), "the target b is left out");
        assert_eq!(told(", \"xformers\"", ""), "the component xformers is not required");
        assert_eq!(told("= \"error\"", "= \"off\""), "the rule jit-at-start is set to off, not error");
        // A rule of which the policy says nothing has its own level.
        let off = "[rules]\n\"driver-in-image\" = \"note\"";
        assert!(told("[rules]", off).contains("driver-in-image is set to note"));
        assert!(told("opt/**", "**").contains("driver-in-image is waived in line"));
        assert!(told("2999-01-01", "3000-01-01").contains("is waived in line"));
    }
}
