//! `target` blocks of bake files, HCL or JSON.

use std::collections::{BTreeMap, BTreeSet};

use hcl::Value as Hcl;
use hcl::expr::{Expression, Object, ObjectKey, TemplateExpr};
use hcl::structure::Body;
use serde_json::Value as Json;

use super::super::expand::Work;
use super::eval::{self, Variables};
use super::{BuildInput, InputError, check_size, put};

/// Targets of a file, those of a matrix each counted.
const MOST_TARGETS: usize = 1024;

/// Combinations of one matrix; beyond it its variables are unknown.
const MOST_COMBINATIONS: usize = 256;

/// Arguments of all targets, the inherited ones counted where they are inherited.
const MOST_ARGS: usize = 100_000;

/// `=` and `:` of a file: an object of the parser's takes time with the square of its entries.
const MOST_ENTRIES: usize = 10_000;

/// The targets of a bake file; a matrix gives one for each of its combinations. Variables have their defaults.
/// Targets that no group has and that others inherit are not builds.
pub fn bake(text: &str) -> Result<Vec<BuildInput>, InputError> {
    check_size(text)?;
    if text.bytes().filter(|b| matches!(b, b'=' | b':')).count() > MOST_ENTRIES {
        return Err(InputError::new(None, format!("more than {MOST_ENTRIES} entries")));
    }
    let file = if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        from_json(text)?
    } else {
        from_hcl(text)?
    };
    let work = Work::default();
    let variables = defaults(&file.variables, &work);
    let mut concrete = Vec::new();
    for (name, attributes) in &file.targets {
        if file.targets.len() > MOST_TARGETS || concrete.len() > MOST_TARGETS {
            return Err(InputError::new(None, format!("more than {MOST_TARGETS} targets")));
        }
        concrete.extend(combinations(name, attributes, &variables, &work));
    }
    let none = BTreeMap::new();
    let mut listed = BTreeSet::from(["default".to_owned()]);
    for group in &file.groups {
        listed.extend(texts(eval::eval(group, Variables { file: &variables, own: &none, work: &work })));
    }
    let mut resolver = Resolver {
        targets: &concrete,
        variables: &variables,
        work: &work,
        done: BTreeMap::new(),
        inherited: BTreeSet::new(),
    };
    for target in &concrete {
        resolver.resolve(&target.name, &mut Vec::new());
    }
    let mut inputs = Vec::new();
    let mut args = 0;
    for target in &concrete {
        if resolver.inherited.contains(&target.name) && !listed.contains(&target.name) {
            continue;
        }
        let Some(input) = resolver.resolve(&target.name, &mut Vec::new()) else { continue };
        args += input.args.len();
        if args > MOST_ARGS {
            return Err(InputError::new(None, format!("more than {MOST_ARGS} arguments")));
        }
        inputs.push(input);
    }
    Ok(inputs)
}

type Attributes = BTreeMap<String, Expression>;

/// A file as it is written.
#[derive(Default)]
struct File {
    /// With their defaults.
    variables: Vec<(String, Expression)>,
    targets: Vec<(String, Attributes)>,
    /// What groups list.
    groups: Vec<Expression>,
}

fn from_hcl(text: &str) -> Result<File, InputError> {
    let body: Body = hcl::parse(text).map_err(|error| match error {
        hcl::Error::Parse(error) => InputError::new(Some(error.location().line()), error.message()),
        error => InputError::new(None, error.to_string()),
    })?;
    let mut file = File::default();
    let attributes =
        |body: &Body| -> Attributes { body.attributes().map(|a| (a.key().to_owned(), a.expr().clone())).collect() };
    // An attribute outside of blocks is a variable too.
    file.variables.extend(attributes(&body));
    for block in body.blocks() {
        let Some(name) = block.labels().first().map(|l| l.as_str().to_owned()) else { continue };
        let mut attributes = attributes(block.body());
        match block.identifier() {
            "variable" => file.variables.extend(attributes.remove("default").map(|value| (name, value))),
            "target" => add(&mut file.targets, name, attributes),
            "group" => file.groups.extend(attributes.remove("targets")),
            _ => {}
        }
    }
    Ok(file)
}

fn from_json(text: &str) -> Result<File, InputError> {
    let json: Json = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| InputError::new(Some(error.line()), error.to_string()))?;
    let mut file = File::default();
    let items = |key: &str| json.get(key).and_then(Json::as_object).into_iter().flatten();
    for (name, variable) in items("variable") {
        file.variables.extend(variable.get("default").map(|value| (name.clone(), expression(value))));
    }
    for (name, target) in items("target") {
        let attributes = target.as_object().into_iter().flatten();
        let attributes = attributes.map(|(key, value)| (key.clone(), expression(value))).collect();
        add(&mut file.targets, name.clone(), attributes);
    }
    for (_, group) in items("group") {
        file.groups.extend(group.get("targets").map(expression));
    }
    Ok(file)
}

/// Adds a target; blocks of one name are one target.
fn add(targets: &mut Vec<(String, Attributes)>, name: String, attributes: Attributes) {
    if let Some((_, old)) = targets.iter_mut().find(|(n, _)| *n == name) {
        old.extend(attributes);
    } else if targets.len() <= MOST_TARGETS {
        targets.push((name, attributes));
    }
}

/// JSON as HCL has it: texts are templates.
fn expression(json: &Json) -> Expression {
    match json {
        Json::Null => Expression::Null,
        Json::Bool(value) => Expression::Bool(*value),
        Json::Number(number) => number
            .as_i64()
            .map(hcl::Number::from)
            .or_else(|| hcl::Number::from_f64(number.as_f64()?))
            .map_or(Expression::Null, Expression::Number),
        Json::String(text) if text.contains("${") || text.contains("%{") => {
            Expression::TemplateExpr(Box::new(TemplateExpr::from(text.clone())))
        }
        Json::String(text) => Expression::String(text.clone()),
        Json::Array(items) => Expression::Array(items.iter().map(expression).collect()),
        Json::Object(items) => {
            let items = items
                .iter()
                .map(|(key, value)| (ObjectKey::Expression(Expression::String(key.clone())), expression(value)));
            Expression::Object(items.collect::<Object<ObjectKey, Expression>>())
        }
    }
}

/// The variables whose defaults are known; they may use each other in any order.
fn defaults(declared: &[(String, Expression)], work: &Work) -> BTreeMap<String, Hcl> {
    let mut known = BTreeMap::new();
    let none = BTreeMap::new();
    let mut open: Vec<&(String, Expression)> = declared.iter().collect();
    // Each round settles those that use only settled ones; chains are short.
    for _ in 0..16 {
        let before = open.len();
        let mut rest = Vec::new();
        for variable in open {
            let (name, expression) = variable;
            match eval::eval(expression, Variables { file: &known, own: &none, work }) {
                Some(value) => {
                    known.insert(name.clone(), value);
                }
                None => rest.push(variable),
            }
        }
        open = rest;
        if open.is_empty() || open.len() == before {
            break;
        }
    }
    known
}

/// A target, for one combination of its matrix.
struct Target<'a> {
    name: String,
    attributes: &'a Attributes,
    own: BTreeMap<String, Hcl>,
}

fn combinations<'a>(
    name: &str,
    attributes: &'a Attributes,
    file: &BTreeMap<String, Hcl>,
    work: &Work,
) -> Vec<Target<'a>> {
    let one = |own| Target { name: name.to_owned(), attributes, own };
    let Some(matrix) = attributes.get("matrix") else { return vec![one(BTreeMap::new())] };
    let none = BTreeMap::new();
    let Some(Hcl::Object(axes)) = eval::eval(matrix, Variables { file, own: &none, work }) else {
        return vec![one(BTreeMap::new())];
    };
    let axes: Vec<(String, Vec<Hcl>)> = axes
        .into_iter()
        .filter_map(|(key, values)| match values {
            Hcl::Array(values) if !values.is_empty() => Some((key, values)),
            _ => None,
        })
        .collect();
    let count = axes.iter().try_fold(1_usize, |all, (_, values)| all.checked_mul(values.len()));
    let Some(count) = count.filter(|count| *count <= MOST_COMBINATIONS) else {
        return vec![one(BTreeMap::new())];
    };
    let mut targets = Vec::with_capacity(count);
    for index in 0..count {
        let mut rest = index;
        let mut own = BTreeMap::new();
        // The last axis runs fastest.
        for (key, values) in axes.iter().rev() {
            own.extend(values.get(rest % values.len()).map(|value| (key.clone(), value.clone())));
            rest /= values.len();
        }
        let named = attributes
            .get("name")
            .and_then(|expression| eval::text(&eval::eval(expression, Variables { file, own: &own, work })?));
        let name = named.unwrap_or_else(|| format!("{name}-{index}"));
        targets.push(Target { name, attributes, own });
    }
    targets
}

/// Targets with what they inherit.
struct Resolver<'a> {
    targets: &'a [Target<'a>],
    variables: &'a BTreeMap<String, Hcl>,
    work: &'a Work,
    done: BTreeMap<String, BuildInput>,
    /// What others inherit.
    inherited: BTreeSet<String>,
}

/// The texts of a list.
fn texts(list: Option<Hcl>) -> Vec<String> {
    match list {
        Some(Hcl::Array(items)) => items.iter().filter_map(eval::text).collect(),
        _ => Vec::new(),
    }
}

impl Resolver<'_> {
    /// `path`: those that are being resolved; a circle is cut there.
    fn resolve(&mut self, name: &str, path: &mut Vec<String>) -> Option<BuildInput> {
        if let Some(done) = self.done.get(name) {
            let cost = done.args.iter().map(|(n, v)| n.len() + v.all().map(str::len).sum::<usize>() + 1).sum();
            return self.work.take(cost).then(|| done.clone());
        }
        // Longer chains are nobody's.
        if path.len() >= 16 || path.iter().any(|n| n == name) {
            return None;
        }
        let target = self.targets.iter().find(|t| t.name == name)?;
        let variables = Variables { file: self.variables, own: &target.own, work: self.work };
        let get = |key: &str| target.attributes.get(key).and_then(|e| eval::eval(e, variables));
        let mut input = BuildInput::default();
        path.push(name.to_owned());
        let mut parents = BTreeSet::new();
        for parent in texts(get("inherits")) {
            if !parents.insert(parent.clone()) {
                continue;
            }
            let Some(resolved) = self.resolve(&parent, path) else { continue };
            self.inherited.insert(parent);
            input.dockerfile = resolved.dockerfile.or(input.dockerfile);
            input.context = resolved.context.or(input.context);
            input.target = resolved.target.or(input.target);
            input.unplaced |= resolved.unplaced;
            if !resolved.platforms.is_empty() {
                input.platforms = resolved.platforms;
            }
            for (name, value) in resolved.args {
                put(&mut input.args, name, value);
            }
        }
        path.pop();
        name.clone_into(&mut input.service_or_target);
        let text = |key: &str| get(key).as_ref().and_then(eval::text);
        input.dockerfile = text("dockerfile").or(input.dockerfile);
        input.context = text("context").or(input.context);
        input.target = text("target").or(input.target);
        if target.attributes.contains_key("platforms") {
            input.platforms = texts(get("platforms"));
        }
        let unknown = |key: &str| target.attributes.contains_key(key) && text(key).is_none();
        input.unplaced |=
            target.attributes.contains_key("dockerfile-inline") || unknown("dockerfile") || unknown("context");
        if let Some(Expression::Object(args)) = target.attributes.get("args") {
            for (key, expression) in args.iter() {
                let Some(key) = eval::key(key, variables) else { continue };
                match eval::value(expression, variables) {
                    Some(value) => put(&mut input.args, key, value),
                    // `null` takes it back.
                    None => input.args.retain(|(name, _)| *name != key),
                }
            }
        }
        self.done.insert(name.to_owned(), input.clone());
        Some(input)
    }
}

#[cfg(test)]
mod tests;
