//! `imagelint explain RULE`, and of a verdict.

use super::args::ExplainArgs;
use super::error::CliError;
use super::lists;
use super::output::Screen;
use crate::lint::{RULES, verdicts};
use crate::model::Verdict;

pub fn run(args: &ExplainArgs, screen: &Screen) -> Result<u8, CliError> {
    if let Some(verdict) = Verdict::named(&args.rule) {
        screen.print(verdicts::page(verdict).as_bytes())?;
        return Ok(0);
    }
    let Some(rule) = RULES.iter().find(|r| r.id == args.rule) else {
        let ids = || RULES.iter().map(|r| r.id).chain(Verdict::ALL.map(Verdict::word));
        let alike = ids().map(|id| (distance(id, &args.rule), id)).min().filter(|&(d, id)| d * 3 <= id.len());
        let near = alike.map(|(_, id)| id).or_else(|| ids().find(|id| id.contains(args.rule.as_str())));
        return Err(CliError::NoSuchRule(args.rule.clone(), near));
    };
    let mut page = rule.page.trim_end().to_owned();
    page.push('\n');
    if let (_, Some(needs)) = lists::judged(rule) {
        let needs = match needs {
            "driver" => "targets with a driver (--target GPU@DRIVER, or a fleet file)",
            "target" => "targets (--target GPU, or a fleet file)",
            _ => "the image that the Dockerfile made (imagelint scan IMAGE --dockerfile FILE)",
        };
        page.push_str(&format!("\nIt needs {needs}.\n"));
    }
    if !rule.on {
        let text = format!(
            "\nIt is off unless asked for: --rule {}, or a level under [rules] of imagelint.toml.\n",
            rule.id
        );
        page.push_str(&text);
    }
    screen.print(page.as_bytes())?;
    Ok(0)
}

/// How many letters must change to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let step = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = step.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
