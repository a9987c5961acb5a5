//! Base images whose name the file alone does not tell.

use std::collections::BTreeSet;

use super::from::images;
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let mut said = BTreeSet::new();
    for image in images(lint).into_iter().filter(|i| i.text.value == Value::Unknown) {
        let written = lint.reading.document.slice(image.from);
        // What may be an earlier stage is told by no argument.
        if lint.reading.stages.get(image.stage).is_some_and(|s| !s.maybe.is_empty()) || !said.insert(written) {
            continue;
        }
        let Some(stage) = lint.reading.stages.get(image.stage) else { continue };
        let scope = lint.scope(stage.instructions.start);
        let unset = |name: &str| scope.and_then(|s| s.get(name)).is_none_or(|v| v.unset);
        let names: Vec<&str> = image.text.trail.iter().map(|t| t.name.as_str()).filter(|n| unset(n)).collect();
        let (who, help) = match names.as_slice() {
            [] => (String::new(), "give the variables that it is made of".to_owned()),
            names => (
                format!(" ({} not set)", names.join(", ")),
                format!("pass what a build passes: --build-arg {}=…", names.join("=… --build-arg ")),
            ),
        };
        let message = format!(
            "the base image `{written}` is not known from this file{who}: rules about its CUDA and its system are \
             silent for this stage"
        );
        out.push(Found::note(image.from, message).label("not known").help(help));
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "unresolvable-base";

    #[test]
    fn a_base_that_only_the_build_knows() {
        let file = "ARG BASE_IMAGE\nFROM $BASE_IMAGE\nFROM ${BASE_IMAGE} AS x\n";
        assert_eq!(blamed(RULE, file, &[]), ["${BASE_IMAGE}"]);
        let file = "ARG CUDA\nFROM nvidia/cuda:${CUDA}-devel-ubuntu22.04\n";
        assert!(lint(RULE, file, &[])[0].message.contains("CUDA"), "{:?}", lint(RULE, file, &[]));
    }

    #[test]
    fn silent_where_it_is_known() {
        for file in [
            "ARG BASE=ubuntu:24.04\nFROM $BASE\n",
            "FROM ubuntu AS a\nFROM a\n",
            "FROM scratch\n",
            "FROM someone/something:1\n",
            "ARG B\nFROM $B AS unused\nFROM ubuntu\n",
            "FROM ubuntu AS build-amd64\nFROM ubuntu AS build-arm64\nFROM build-${TARGETARCH}\n",
        ] {
            assert!(lint(RULE, file, &[]).is_empty(), "{file}: {:?}", lint(RULE, file, &[]));
        }
    }
}
