//! A file for `docker buildx bake`: one target for each tag of the plan.

use hcl::Identifier;
use hcl::expr::{Expression, Heredoc, HeredocStripMode, Object, ObjectKey, TemplateExpr};
use hcl::structure::{Attribute, Block, Body};

use super::super::fresh;
use super::super::patch::{self, is_variable};
use super::{EmitError, Emitted, Input, fresh_file, left};
use crate::model::{Change, KnobForm, escape};
use crate::report::Plan;

/// Characters of a target's name.
const LONGEST: usize = 64;

pub fn bake(input: &Input<'_>, plan: &Plan) -> Result<Emitted, EmitError> {
    let mut notes = Vec::new();
    let tags: Vec<Option<&str>> = match (input.tag, plan.tags.as_slice()) {
        (Some(tag), _) => vec![Some(tag)],
        (None, []) => vec![None],
        (None, all) => all.iter().map(|t| Some(t.name.as_str())).collect(),
    };
    let mut names: Vec<String> = Vec::new();
    let mut targets = Vec::new();
    for tag in tags {
        let name = unique(&target_name(input, tag), &names);
        targets.push(target(input, plan, tag, &name, &mut notes)?);
        names.push(name);
    }
    let group = Block::builder("group").add_label("default").add_attribute(("targets", texts(names))).build();
    let body: Body = std::iter::once(group).chain(targets).collect();
    let text = hcl::format::to_string(&body).map_err(|e| EmitError::Bake(e.to_string()))?;
    notes.dedup();
    Ok(Emitted { bytes: text.into_bytes(), notes })
}

fn texts(list: Vec<String>) -> Expression {
    Expression::Array(list.iter().map(|t| quoted(t)).collect())
}

fn target(
    input: &Input<'_>,
    plan: &Plan,
    tag: Option<&str>,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<Block, EmitError> {
    let mut target = Block::builder("target").add_label(name);
    target = target.add_attribute(("context", "."));
    let mut args = Vec::new();
    match input.dockerfile {
        Some(written) => {
            let patch = patch::patch(written.lint, plan, tag);
            notes.extend(left(&patch, plan));
            args = arguments(plan, &patch);
            let source = &written.lint.reading.document.source;
            target = match patch.edits.is_empty() {
                true => target.add_attribute(("dockerfile", quoted(written.path))),
                false => {
                    let text = String::from_utf8_lossy(&patch.apply(source)).into_owned();
                    target.add_attribute(inline(&text))
                }
            };
        }
        None => {
            target = target.add_attribute(inline(&fresh_file(input, plan, tag)?));
        }
    }
    if !args.is_empty() {
        let mut object = Object::new();
        for (name, value) in args {
            object.insert(ObjectKey::Expression(Expression::String(name)), quoted(&value));
        }
        target = target.add_attribute(("args", Expression::Object(object)));
    }
    target = target.add_attribute(("tags", texts(vec![image_tag(input, tag)])));
    let platform = input.report.image.as_ref().and_then(|i| i.platform.as_ref());
    if let Some(platform) = platform {
        target = target.add_attribute(("platforms", texts(vec![platform.to_string()])));
    }
    Ok(target.build())
}

/// What a project's own Dockerfile is told by build arguments, where no edit says it.
fn arguments(plan: &Plan, patch: &patch::Patch) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for one in patch.steps.iter().filter(|s| s.edits.is_empty()) {
        let change = plan.steps.get(one.step).map(|s| &s.change);
        if let Some(Change::Source { form: KnobForm::Arg, setting, .. }) = change
            && is_variable(&setting.0)
            && !out.iter().any(|(name, _)| *name == setting.0)
        {
            out.push(setting.clone());
        }
    }
    out
}

/// A Dockerfile as it stands, in a heredoc where every line end is one; else in quotes.
fn inline(text: &str) -> Attribute {
    let odd = text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) || !text.ends_with('\n');
    let expression = if odd || text.trim().is_empty() {
        quoted(text)
    } else {
        let delimiter = (0..).map(|n| if n == 0 { "EOT".to_owned() } else { format!("EOT{n}") });
        let taken = |d: &String| text.lines().any(|l| l.trim_start().starts_with(d.as_str()));
        // There are more numbers than lines.
        let delimiter = delimiter.into_iter().find(|d| !taken(d)).unwrap_or_default();
        let heredoc = Heredoc::new(Identifier::sanitized(delimiter), literal(text, false));
        Expression::from(TemplateExpr::Heredoc(heredoc.with_strip_mode(HeredocStripMode::None)))
    };
    Attribute::new("dockerfile-inline", expression)
}

/// Text in which no template starts: `${` and `%{` are doubled. Where more such signs stand in a row, doubling the last
/// would be read in another way: there the row is a text within a template. In quotes, quotes and controls are escaped.
fn literal(text: &str, in_quotes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let sign = |c: char| matches!(c, '$' | '%');
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let row = rest.get(..rest.find(|c| !sign(c)).unwrap_or(rest.len())).unwrap_or_default();
        let behind = rest.get(row.len()..).unwrap_or_default();
        match (row.len(), behind.starts_with('{')) {
            (0, _) => {
                match c {
                    '"' | '\\' if in_quotes => out.extend(['\\', c]),
                    '\n' if in_quotes => out.push_str("\\n"),
                    c if in_quotes && c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                    c => out.push(c),
                }
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
                continue;
            }
            (1, true) => out.extend([c, c]),
            (_, true) => out.push_str(&format!("${{\"{row}\"}}")),
            (_, false) => out.push_str(row),
        }
        rest = behind;
    }
    out
}

/// A text from outside in quotes.
fn quoted(text: &str) -> Expression {
    Expression::from(TemplateExpr::QuotedString(literal(text, true)))
}

/// The image's name without its registry and tag.
fn short_name(input: &Input<'_>) -> String {
    let reference = input.report.image.as_ref().map_or("", |i| i.reference.as_str());
    let last = reference.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let last = last.split_once(':').map_or(last, |(name, _)| name);
    let last =
        ["tar.gz", "tar.zst", "tar"].iter().find_map(|e| last.strip_suffix(e)?.strip_suffix('.')).unwrap_or(last);
    sanitised(last)
}

/// Letters that a target and a tag may have.
fn sanitised(text: &str) -> String {
    let one =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().take(LONGEST).map(one).collect();
    let text = text.trim_matches(['-', '_']);
    if text.is_empty() { "image".to_owned() } else { text.to_owned() }
}

fn target_name(input: &Input<'_>, tag: Option<&str>) -> String {
    tag.map_or_else(|| short_name(input), sanitised)
}

fn unique(name: &str, taken: &[String]) -> String {
    let mut all = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
    all.find(|n| n != "default" && !taken.contains(n)).unwrap_or_default()
}

/// What the built image is called: never the name of the scanned one.
fn image_tag(input: &Input<'_>, tag: Option<&str>) -> String {
    let suffix = tag.map_or_else(|| "rebuilt".to_owned(), sanitised);
    let Some(image) = &input.report.image else { return format!("image:{suffix}") };
    match fresh::name(image) {
        Some(name) => {
            let name = name.split('@').next().unwrap_or_default();
            match name.rsplit_once(':') {
                Some((repository, old)) if !old.contains('/') => format!("{repository}:{old}-{suffix}"),
                _ => format!("{name}:{suffix}"),
            }
        }
        None => format!("{}:{suffix}", escape(short_name(input).as_bytes())),
    }
}
