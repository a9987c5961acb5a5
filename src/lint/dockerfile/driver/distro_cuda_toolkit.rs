//! The distribution's CUDA toolkit where NVIDIA's is there already.

use crate::catalog::system_packages::SystemKind;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let packages = lint.packages();
    for package in packages.iter().filter(|p| p.known.kind == SystemKind::DistroToolkit) {
        let chain = lint.chain(package.stage);
        let own = packages.iter().find(|p| p.known.kind == SystemKind::Toolkit && chain.contains(&p.stage));
        let base = lint.base(package.stage);
        let has = match (base.as_ref().and_then(|b| b.cuda_text.as_deref()), own) {
            (Some(cuda), _) => format!("the base has CUDA {cuda}"),
            (None, Some(other)) => format!("`{}` is installed too", other.asked.name),
            (None, None) => continue,
        };
        let name = &package.asked.name;
        let message = format!(
            "`{name}` is the distribution's CUDA toolkit, of another version, and {has}: /usr/bin/nvcc and /usr/local/cuda \
             get mixed in builds"
        );
        let help = match base.as_ref().is_some_and(|b| b.compiler != Some(true)) {
            true => "take the base's devel flavour, or cuda-nvcc-X-Y of its version",
            false => "leave it out: the toolkit is in /usr/local/cuda",
        };
        let mut found = package.found(Severity::Warning, message).label("a second toolkit").help(help);
        found.because.extend(base.map(|b| b.because));
        out.push(found);
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "distro-cuda-toolkit";

    #[test]
    fn beside_the_toolkit_of_nvidia() {
        let file = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get install -y nvidia-cuda-toolkit git\n";
        assert_eq!(blamed(RULE, file, &[]), ["nvidia-cuda-toolkit"]);
        assert!(lint(RULE, file, &[])[0].message.contains("12.4.1"));
        let file = "FROM ubuntu:22.04\nRUN apt-get install -y cuda-toolkit-12-4\nRUN apt-get install -y nvidia-cuda-toolkit\n";
        assert_eq!(blamed(RULE, file, &[]).len(), 1);
    }

    #[test]
    fn silent_where_it_is_the_only_one() {
        for file in [
            "FROM ubuntu:22.04\nRUN apt-get install -y nvidia-cuda-toolkit\n",
            "ARG BASE\nFROM $BASE\nRUN apt-get install -y nvidia-cuda-toolkit\n",
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get purge -y nvidia-cuda-toolkit\n",
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get install -y cuda-toolkit-12-4\n",
        ] {
            assert!(lint(RULE, file, &[]).is_empty(), "{file}");
        }
    }
}
