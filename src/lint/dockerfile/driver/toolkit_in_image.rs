//! The container toolkit inside of an image.

use super::hosts::plays_host;
use super::words::drop_word;
use crate::catalog::system_packages::SystemKind;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    if plays_host(lint) {
        return;
    }
    let packages = lint.packages();
    let of_host = packages.iter().filter(|p| p.in_image && p.known.kind == SystemKind::ContainerToolkit);
    for package in of_host {
        let name = &package.asked.name;
        let message = format!(
            "`{name}` is for the host that starts containers: inside of the image it does nothing, and gives no GPU to it"
        );
        let mut found = package
            .found(Severity::Warning, message)
            .label("belongs on the host")
            .help("leave it out, install it on the host, and start the container with --gpus all");
        let others = package.install.packages.len() > 1;
        if let Some(edit) = drop_word(lint, package.asked.span, name, &[]).filter(|_| others) {
            found = found.suggest(format!("do not install {name}"), vec![edit]);
        }
        out.push(found);
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "toolkit-in-image";

    fn file(run: &str) -> String {
        format!("FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN {run}\n")
    }

    #[test]
    fn the_toolkit_is_told() {
        let text = file("apt-get install -y nvidia-container-toolkit git");
        assert_eq!(blamed(RULE, &text, &[]), ["nvidia-container-toolkit"]);
        assert_eq!(mended(RULE, &text, &[]), file("apt-get install -y git"));
        assert_eq!(blamed(RULE, &file("yum install -y nvidia-docker2"), &[]), ["nvidia-docker2"]);
    }

    #[test]
    fn silent_in_images_that_start_containers() {
        for text in [
            file("apt-get install -y docker-ce nvidia-container-toolkit"),
            file("apt-get remove nvidia-container-toolkit"),
            "FROM docker:27-dind\nRUN apk add nvidia-container-toolkit\n".to_owned(),
            "FROM ubuntu AS b\nRUN apt-get install -y nvidia-container-toolkit\nFROM ubuntu\nCOPY --from=b /x /x\n"
                .to_owned(),
        ] {
            assert!(lint(RULE, &text, &[]).is_empty(), "{text}");
        }
    }
}
