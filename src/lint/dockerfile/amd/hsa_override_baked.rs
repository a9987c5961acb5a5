//! `HSA_OVERRIDE_GFX_VERSION` in the image's environment: every machine's GPU is taken for that one.

use crate::dockerfile::value::{Origin, Value};
use crate::lint::dockerfile::{Found, Lint};

const NAME: &str = "HSA_OVERRIDE_GFX_VERSION";

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for set in lint.image_env().into_iter().filter(|s| s.name.starts_with(NAME)) {
        // Empty, or whatever the one who builds gives: nothing is baked by the file.
        let Value::Known(value) = set.value else { continue };
        if value.is_empty() || set.trail.iter().any(|t| t.origin == Origin::Given) {
            continue;
        }
        let value = crate::model::escape(value.as_bytes());
        let message = format!(
            "{} is `{value}`{} in the image: on every machine the GPU is taken for that one, and one that it is not \
             hangs or stops with \"invalid ISA\"",
            set.name,
            lint.trail(set.trail)
        );
        out.push(
            Found::warning(set.pair.span, message).label("holds for every GPU").help(format!(
                "leave it out, and give it where it is wanted: `docker run -e {}={value}`",
                set.name
            )),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "hsa-override-baked";

    #[test]
    fn an_override_that_is_in_the_image() {
        let file = "FROM rocm/pytorch:latest\nENV A=1 HSA_OVERRIDE_GFX_VERSION=10.3.0\n";
        assert_eq!(blamed(RULE, file, &[]), ["HSA_OVERRIDE_GFX_VERSION=10.3.0"]);
        let file = "FROM rocm/pytorch:latest\nARG V=11.0.0\nENV HSA_OVERRIDE_GFX_VERSION_1=$V\n";
        assert!(lint(RULE, file, &[])[0].message.contains("`11.0.0`, from ARG V in line 2"));
    }

    #[test]
    fn what_is_not_in_the_image_or_not_known_is_not_told() {
        for file in [
            "FROM rocm/pytorch AS b\nENV HSA_OVERRIDE_GFX_VERSION=10.3.0\nFROM scratch\nCOPY --from=b /x /x\n",
            "FROM rocm/pytorch\nARG V\nENV HSA_OVERRIDE_GFX_VERSION=$V\n",
            "FROM rocm/pytorch\nENV HSA_OVERRIDE_GFX_VERSION=\n",
            "FROM rocm/pytorch\nARG HSA_OVERRIDE_GFX_VERSION=10.3.0\n",
            "FROM rocm/pytorch\n# ENV HSA_OVERRIDE_GFX_VERSION=10.3.0\nENV X=HSA_OVERRIDE_GFX_VERSION\n",
        ] {
            assert!(lint(RULE, file, &[]).is_empty(), "{file}");
        }
    }
}
