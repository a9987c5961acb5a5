//! The choice of GPUs written into the image.

use super::pairs;
use crate::lint::dockerfile::{Found, Lint, Set};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for set in lint.image_env() {
        let Some(value) = set.value.known().map(str::trim) else { continue };
        let found = match set.name {
            "CUDA_VISIBLE_DEVICES" => cuda(lint, &set, value),
            "NVIDIA_VISIBLE_DEVICES" => nvidia(lint, &set, value),
            _ => None,
        };
        let Some(mut found) = found else { continue };
        found = found.label("chosen in the image");
        if let Some(edits) = pairs::removed(lint, &set) {
            found = match pairs::is_used(lint, &set) {
                true => found.suggest("remove the variable", edits),
                false => found.safe_fix("remove the variable", edits),
            };
        }
        out.push(found);
    }
}

fn cuda(lint: &Lint<'_>, set: &Set<'_>, value: &str) -> Option<Found> {
    let none = matches!(value, "" | "-1" | "NoDevFiles" | "none");
    let message = if none {
        // Where no GPU is meant, it says so.
        let cuda = lint.base(lint.reading.last?)?.cuda?;
        format!("CUDA_VISIBLE_DEVICES={value} hides every GPU from the programs of an image on CUDA {cuda}")
    } else if value == "all" {
        "CUDA_VISIBLE_DEVICES=all names no device: CUDA takes numbers and UUIDs, and shows none".to_owned()
    } else {
        let trail = lint.trail(set.trail);
        format!(
            "CUDA_VISIBLE_DEVICES={value}{trail} is in the image: programs see no other GPU, whatever the scheduler gives \
             the container"
        )
    };
    Some(Found::warning(set.pair.span, message).help("leave the choice to whoever starts the container"))
}

fn nvidia(lint: &Lint<'_>, set: &Set<'_>, value: &str) -> Option<Found> {
    let device = |part: &str| {
        let part = part.trim();
        let number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b':');
        number || part.starts_with("GPU-") || part.starts_with("MIG-")
    };
    if value.is_empty() || !value.split(',').all(device) {
        return None;
    }
    let message = format!(
        "NVIDIA_VISIBLE_DEVICES={value}{} is in the image: started without --gpus, it gets these GPUs of any host",
        lint.trail(set.trail)
    );
    Some(
        Found::warning(set.pair.span, message)
            .help("write `all`, and leave the choice to whoever starts the container"),
    )
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "visible-devices-baked";

    #[test]
    fn a_choice_in_the_image() {
        let file = "FROM ubuntu\nENV CUDA_VISIBLE_DEVICES=0\nRUN x\n";
        assert_eq!(blamed(RULE, file, &[]), ["CUDA_VISIBLE_DEVICES=0"]);
        assert_eq!(mended(RULE, file, &[]), "FROM ubuntu\nRUN x\n");
        assert_eq!(blamed(RULE, "FROM ubuntu\nENV NVIDIA_VISIBLE_DEVICES 0,1\n", &[]).len(), 1);
        for quiet in [
            "FROM ubuntu\nENV NVIDIA_VISIBLE_DEVICES=all\n",
            "FROM ubuntu\nENV NVIDIA_VISIBLE_DEVICES=void\n",
            // For the build only, in another stage, replaced, or of no GPU image.
            "FROM ubuntu\nARG CUDA_VISIBLE_DEVICES=0\n",
            "FROM ubuntu\nRUN CUDA_VISIBLE_DEVICES=0 make\n",
            "FROM ubuntu AS b\nENV CUDA_VISIBLE_DEVICES=0\nFROM ubuntu\n",
            "FROM ubuntu\nENV CUDA_VISIBLE_DEVICES=-1\n",
            "FROM ubuntu\nARG D\nENV CUDA_VISIBLE_DEVICES=$D\n",
        ] {
            assert!(blamed(RULE, quiet, &[]).is_empty(), "{quiet}");
        }
    }

    #[test]
    fn one_pair_of_many() {
        let file = "FROM ubuntu\nENV A=1 \\\n    CUDA_VISIBLE_DEVICES=0 \\\n    B=2\n";
        assert_eq!(mended(RULE, file, &[]), "FROM ubuntu\nENV A=1 \\\n    B=2\n");
        let first = "FROM ubuntu\nENV CUDA_VISIBLE_DEVICES=0 B=2\n";
        assert_eq!(mended(RULE, first, &[]), "FROM ubuntu\nENV B=2\n");
        let last = "FROM ubuntu\nENV A=1 \\\n    CUDA_VISIBLE_DEVICES=\"0\"";
        assert_eq!(mended(RULE, last, &[]), "FROM ubuntu\nENV A=1");
    }

    #[test]
    fn an_edit_that_takes_more_is_not_made_unread() {
        let used = "FROM ubuntu\nENV CUDA_VISIBLE_DEVICES=0\nCMD run --gpu $CUDA_VISIBLE_DEVICES\n";
        assert!(!lint(RULE, used, &[])[0].fix.as_ref().unwrap().safe);
        let commented = "FROM ubuntu\nENV A=1 \\\n    # one GPU\n    CUDA_VISIBLE_DEVICES=0\n";
        assert!(lint(RULE, commented, &[])[0].fix.is_none());
    }
}
