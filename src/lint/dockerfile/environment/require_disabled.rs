//! The driver check switched off in the image.

use super::pairs;
use crate::catalog::require::is_true;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for set in lint.image_env() {
        if set.name != "NVIDIA_DISABLE_REQUIRE" || !set.value.known().is_some_and(is_true) {
            continue;
        }
        let mut found = Found::warning(
            set.pair.span,
            "NVIDIA_DISABLE_REQUIRE in the image switches the check of the driver off: on a driver that is too old the \
             container starts, and CUDA fails in it",
        )
        .label("no check of the driver")
        .help("set it where the container is started (docker run -e), for the host that needs it");
        if let Some(edits) = pairs::removed(lint, &set) {
            found = found.suggest("remove the variable", edits);
        }
        out.push(found);
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, mended};

    const RULE: &str = "require-disabled";

    #[test]
    fn the_check_is_off() {
        let file = "FROM ubuntu\nENV NVIDIA_DISABLE_REQUIRE=1\nRUN x\n";
        assert_eq!(blamed(RULE, file, &[]), ["NVIDIA_DISABLE_REQUIRE=1"]);
        assert_eq!(mended(RULE, file, &[]), "FROM ubuntu\nRUN x\n");
        assert!(blamed(RULE, "FROM ubuntu\nENV NVIDIA_DISABLE_REQUIRE=0\n", &[]).is_empty());
        assert!(blamed(RULE, "FROM ubuntu AS b\nENV NVIDIA_DISABLE_REQUIRE=1\nFROM ubuntu\n", &[]).is_empty());
    }
}
