//! Indexes and the like that the environment sets for pip and uv.

use super::environment::Environment;
use super::{PipInstall, PythonTool, Setting};
use crate::dockerfile::value::{Text, Value};

/// What variables and `pip config` set, where the command line does not.
pub fn settings(out: &mut PipInstall, environment: &Environment<'_>) {
    let (index, extra, links): (&[&str], &[&str], &[&str]) = match out.tool {
        PythonTool::Pip => (&["PIP_INDEX_URL"], &["PIP_EXTRA_INDEX_URL"], &["PIP_FIND_LINKS"]),
        PythonTool::UvPip | PythonTool::Project => {
            (&["UV_DEFAULT_INDEX", "UV_INDEX_URL"], &["UV_INDEX", "UV_EXTRA_INDEX_URL"], &["UV_FIND_LINKS"])
        }
    };
    if out.index.is_none() {
        out.index = index.iter().find_map(|n| environment.variable(n));
    }
    for (names, list) in [(extra, &mut out.extra_indexes), (links, &mut out.find_links)] {
        for setting in names.iter().filter_map(|n| environment.variable(n)) {
            list.extend(divided(setting));
        }
    }
    let truth = |name: &str| {
        let value = environment.variable(name).and_then(|s| s.text.value.known().map(str::to_lowercase));
        matches!(value.as_deref(), Some("1" | "true" | "yes" | "on"))
    };
    if out.tool == PythonTool::Pip {
        // pip turns isolation off when the variable says that it is not wanted.
        let value = environment
            .variable("PIP_NO_BUILD_ISOLATION")
            .and_then(|s| s.text.value.known().map(str::to_lowercase));
        out.no_build_isolation |= matches!(value.as_deref(), Some("0" | "false" | "no" | "off"));
        out.pre |= truth("PIP_PRE");
        out.no_deps |= truth("PIP_NO_DEPS");
        if let Some(constraint) =
            environment.variable("PIP_CONSTRAINT").filter(|s| s.text.value.known() != Some(""))
        {
            out.constraints.push(constraint.text);
        }
        if out.index.is_none() {
            out.index = environment.configured("index-url");
        }
        out.extra_indexes.extend(environment.configured("extra-index-url").into_iter().flat_map(divided));
        out.find_links.extend(environment.configured("find-links").into_iter().flat_map(divided));
    } else {
        out.no_build_isolation |= truth("UV_NO_BUILD_ISOLATION");
        if out.torch_backend.is_none() {
            out.torch_backend = environment.variable("UV_TORCH_BACKEND");
        }
    }
}

/// An index that is the empty text is none.
pub fn drop_empty(out: &mut PipInstall) {
    let empty = |s: &Setting| s.text.value.known().is_some_and(|t| t.trim().is_empty());
    out.index = out.index.take().filter(|i| !empty(i));
    out.extra_indexes.retain(|i| !empty(i));
    out.find_links.retain(|i| !empty(i));
}

/// A list in one variable.
fn divided(setting: Setting) -> Vec<Setting> {
    match setting.text.value.known() {
        None => vec![setting],
        Some(text) => text
            .split_whitespace()
            .map(|url| {
                let text = Text { value: Value::Known(url.to_owned()), trail: setting.text.trail.clone() };
                Setting { text, ..setting.clone() }
            })
            .collect(),
    }
}
