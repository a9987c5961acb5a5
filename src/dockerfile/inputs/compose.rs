//! `services.*.build` of compose files.

use serde_json::{Map, Value as Json};

use super::super::expand::{Expander, Work};
use super::super::span::Span;
use super::super::value::{Origin, Scope, Value, Variable};
use super::{BuildInput, InputError, check_size, put};

/// The builds of a compose file. Variables of the shell that runs compose have no value, only defaults.
pub fn compose(text: &str) -> Result<Vec<BuildInput>, InputError> {
    check_size(text)?;
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        reject_non_finite_typeless_float: false,
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        budget: serde_saphyr::budget! {
            max_events: 400_000,
            max_nodes: 200_000,
            max_depth: 64,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 200_000,
        },
    };
    let file: Json = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().and_then(|l| usize::try_from(l.line()).ok());
        InputError::new(line, error.to_string())
    })?;
    let Some(services) = file.get("services").and_then(Json::as_object) else {
        return Err(InputError::new(None, "no `services`"));
    };
    let work = Work::default();
    Ok(services.iter().filter_map(|(name, service)| input(name, service, services, &work)).collect())
}

fn input(name: &str, service: &Json, services: &Map<String, Json>, work: &Work) -> Option<BuildInput> {
    let build = service.get("build").or_else(|| inherited(service, services))?;
    let mut input = BuildInput { service_or_target: name.to_owned(), ..BuildInput::default() };
    input.platforms.extend(service.get("platform").and_then(Json::as_str).and_then(|text| plain(text, work)));
    if let Some(context) = build.as_str() {
        input.context = plain(context, work);
        input.unplaced = input.context.is_none();
        return Some(input);
    }
    let build = build.as_object()?;
    let text = |key: &str| build.get(key).and_then(Json::as_str).and_then(|text| plain(text, work));
    (input.context, input.dockerfile, input.target) = (text("context"), text("dockerfile"), text("target"));
    if let Some(platforms) = build.get("platforms").and_then(Json::as_array) {
        input.platforms = platforms.iter().filter_map(|p| plain(p.as_str()?, work)).collect();
    }
    let unknown = |key: &str, value: &Option<String>| build.contains_key(key) && value.is_none();
    input.unplaced = build.contains_key("dockerfile_inline")
        || unknown("context", &input.context)
        || unknown("dockerfile", &input.dockerfile);
    match build.get("args") {
        Some(Json::Object(args)) => {
            for (name, value) in args {
                let value = scalar(value).map_or(Value::Unknown, |text| interpolate(&text, work));
                put(&mut input.args, name.clone(), value);
            }
        }
        Some(Json::Array(args)) => {
            for arg in args.iter().filter_map(Json::as_str) {
                let (name, value) = match arg.split_once('=') {
                    Some((name, value)) => (name, interpolate(value, work)),
                    // Passed on from the shell that runs compose.
                    None => (arg, Value::Unknown),
                };
                put(&mut input.args, name.to_owned(), value);
            }
        }
        _ => {}
    }
    Some(input)
}

/// The build of the service of the same file that a service extends.
fn inherited<'a>(service: &Json, services: &'a Map<String, Json>) -> Option<&'a Json> {
    let parent = |service: &'a Json| services.get(extended(service)?);
    let mut at = services.get(extended(service)?);
    // Longer chains, and circles, are nobody's.
    for _ in 0..8 {
        if let Some(build) = at?.get("build") {
            return Some(build);
        }
        at = parent(at?);
    }
    None
}

fn extended(service: &Json) -> Option<&str> {
    match service.get("extends")? {
        Json::String(name) => Some(name),
        Json::Object(extends) if !extends.contains_key("file") => extends.get("service")?.as_str(),
        _ => None,
    }
}

/// A scalar as compose passes it on: `12.10` without quotes is a number, `12.1`.
fn scalar(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Bool(value) => Some(value.to_string()),
        Json::Number(number) if number.is_f64() => number.as_f64().map(|n| n.to_string()),
        Json::Number(number) => Some(number.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

fn plain(text: &str, work: &Work) -> Option<String> {
    interpolate(text, work).known().map(str::to_owned)
}

/// `$NAME`, `${NAME:-default}`; `$$` is a dollar. The names are of the shell that runs compose: unset here.
fn interpolate(text: &str, work: &Work) -> Value {
    if !text.contains('$') {
        return Value::Known(text.to_owned());
    }
    let unset = Variable {
        value: Value::Unknown,
        origin: Origin::Arg(Span::default()),
        arg: true,
        unset: true,
        trail: Vec::new(),
    };
    let names = text.split('$').filter_map(|part| {
        let part = part.strip_prefix('{').unwrap_or(part);
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        part.get(..end).filter(|name| !name.is_empty())
    });
    let scope: Scope = names.map(|name| (name.to_owned(), unset.clone())).collect();
    // Nothing but `$` is special: no text has this escape character.
    let expander = Expander { scope: &scope, closed: true, escape: '\0', work };
    let parts: Option<Vec<String>> =
        text.split("$$").map(|part| expander.body(part).value.known().map(str::to_owned)).collect();
    parts.map_or(Value::Unknown, |parts| Value::Known(parts.join("$")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> BuildInput {
        let mut inputs = compose(text).unwrap();
        assert_eq!(inputs.len(), 1, "{inputs:?}");
        inputs.pop().unwrap()
    }

    fn arg<'a>(input: &'a BuildInput, name: &str) -> &'a Value {
        &input.args.iter().find(|(n, _)| n == name).unwrap().1
    }

    fn known(text: &str) -> Value {
        Value::Known(text.to_owned())
    }

    #[test]
    fn both_forms_of_args() {
        let map = only(
            "services:\n  train:\n    build:\n      context: docker\n      dockerfile: train.Dockerfile\n\
             \x20     target: final\n      args:\n        CUDA: '12.4.1'\n        PY: 3.10\n        JOBS: 8\n\
             \x20       FAST: true\n        NO: no\n        TOKEN:\n",
        );
        assert_eq!(map.service_or_target, "train");
        assert_eq!(map.context.as_deref(), Some("docker"));
        assert_eq!(map.dockerfile.as_deref(), Some("train.Dockerfile"));
        assert_eq!(map.target.as_deref(), Some("final"));
        assert_eq!(*arg(&map, "CUDA"), known("12.4.1"));
        assert_eq!(*arg(&map, "PY"), known("3.1"), "a number, as compose itself takes it");
        assert_eq!(*arg(&map, "JOBS"), known("8"));
        assert_eq!(*arg(&map, "FAST"), known("true"));
        assert_eq!(*arg(&map, "NO"), known("no"));
        assert_eq!(*arg(&map, "TOKEN"), Value::Unknown);

        let list = only("services:\n  a:\n    build:\n      args: [CUDA=12.10, TOKEN, 'E=a=b']\n");
        assert_eq!(*arg(&list, "CUDA"), known("12.10"));
        assert_eq!(*arg(&list, "TOKEN"), Value::Unknown);
        assert_eq!(*arg(&list, "E"), known("a=b"));
    }

    #[test]
    fn platforms() {
        let one = only("services: {a: {build: ., platform: linux/arm64}}");
        assert_eq!(one.platforms, ["linux/arm64"]);
        let two = only("services: {a: {build: {platforms: [linux/amd64, linux/arm64]}, platform: linux/amd64}}");
        assert_eq!(two.platforms, ["linux/amd64", "linux/arm64"]);
    }

    #[test]
    fn a_build_that_is_a_path_and_services_without_one() {
        let input = only("services:\n  db:\n    image: postgres\n  app:\n    build: ./app\n  none:\n");
        assert_eq!((input.service_or_target.as_str(), input.context.as_deref()), ("app", Some("./app")));
        assert!(input.args.is_empty());
        assert_eq!(input.file().as_deref(), Some("app/Dockerfile"));
        assert_eq!(only("services: {a: {build: $DIR}}").file(), None);
        assert_eq!(only("services: {a: {build: {dockerfile: $D}}}").file(), None);
        assert_eq!(only("services: {a: {build: {dockerfile_inline: FROM x}}}").file(), None);
    }

    #[test]
    fn variables_have_only_defaults() {
        let input = only(
            "services:\n  a:\n    build:\n      args:\n        A: ${CUDA:-12.4}-x\n        B: $CUDA\n        C: $$HOME\n\
             \x20       D: ${A:-${B:-c}}\n        E: '${CUDA'\n        F: \"it's ${X:+y}\"\n",
        );
        assert_eq!(*arg(&input, "A"), known("12.4-x"));
        assert_eq!(*arg(&input, "B"), Value::Unknown);
        assert_eq!(*arg(&input, "C"), known("$HOME"));
        assert_eq!(*arg(&input, "D"), known("c"));
        assert_eq!(*arg(&input, "E"), Value::Unknown);
        assert_eq!(*arg(&input, "F"), known("it's "));
    }

    #[test]
    fn anchors_merge_keys_and_extended_services() {
        let text = "x-args: &args\n  CUDA: '12.4'\nservices:\n  a:\n    build: &build\n      context: .\n\
                    \x20     args:\n        <<: *args\n        PY: '3.12'\n  b:\n    build:\n      <<: *build\n\
                    \x20     target: dev\n  c:\n    extends: a\n  d:\n    extends: {service: d}\n";
        let inputs = compose(text).unwrap();
        assert_eq!(inputs.len(), 3, "{inputs:?}");
        for input in &inputs {
            assert_eq!(*arg(input, "CUDA"), known("12.4"));
            assert_eq!(input.context.as_deref(), Some("."));
        }
        assert_eq!(inputs[1].target.as_deref(), Some("dev"));
        assert_eq!(inputs[2].service_or_target, "c");
    }

    #[test]
    fn tags_of_compose_are_passed_over() {
        let input = only("services:\n  a:\n    ports: !reset []\n    build: {args: {X: !override y}}\n");
        assert_eq!(*arg(&input, "X"), known("y"));
    }

    #[test]
    fn errors_have_a_line() {
        let error = compose("services:\n  a: [\n").unwrap_err();
        assert!(error.line.is_some_and(|line| line >= 2), "{error:?}");
        assert!(!error.what.is_empty() && !error.what.contains('\n'), "{error:?}");
        assert_eq!(compose("a: 1").unwrap_err().line, None);
        assert!(compose("").is_err());
        assert!(compose("services: 3").is_err());
    }

    #[test]
    fn hostile_files_are_errors() {
        let mut bomb = String::from("a0: &a0 [x]\n");
        for level in 1..30 {
            let last = level - 1;
            bomb.push_str(&format!("a{level}: &a{level} [*a{last}, *a{last}, *a{last}, *a{last}, *a{last}]\n"));
        }
        assert!(compose(&bomb).is_err());
        assert!(compose(&"[".repeat(100_000)).is_err());
        assert!(compose(&"- ".repeat(100_000)).is_err());
        assert!(compose(&" ".repeat(super::super::MOST_BYTES + 1)).is_err());
        assert!(compose("services: \u{0}\u{fffd}").is_err());
    }
}
