//! Programs copied from a CUDA stage into an image without CUDA's libraries.

use crate::catalog::bases::BaseFamily;
use crate::catalog::system_packages::SystemKind;
use crate::lint::dockerfile::wheels::torches;
use crate::lint::dockerfile::{Found, Lint};

/// Parts of paths that bring the libraries, or whole environments of Python with them.
const BRINGS: &[&str] = &["cuda", "nvidia", "site-packages", "dist-packages", "venv", "conda", "lib64"];

/// Parts of paths that hold programs.
const PROGRAMS: &[&str] = &[".so", "/bin", "/lib", "/build", "/target/release", "/install", "/dist"];

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(last) = lint.reading.last else { return };
    let Some(base) = lint.base(last).filter(|b| b.family == BaseFamily::Distro && b.sure) else { return };
    let chain = lint.chain(last);
    let copies = lint.stage_copies();
    let into: Vec<_> = copies.iter().filter(|c| chain.contains(&c.into)).collect();
    let path = |word: &crate::dockerfile::syntax::Word| word.text.to_ascii_lowercase();
    if into.iter().any(|c| c.paths.iter().any(|p| BRINGS.iter().any(|b| path(p).contains(b))))
        || has_libraries(lint)
    {
        return;
    }
    let root = |stage: usize| lint.reading.stages.get(stage).map(|s| s.root.1);
    let builds: Vec<_> = lint.builds().iter().map(|b| root(b.stage)).collect();
    let lost = into.iter().find_map(|copy| {
        let from = lint.base(copy.from).filter(|b| b.cuda.is_some() && b.sure)?;
        let built = builds.contains(&root(copy.from));
        let word = copy.paths.iter().find(|p| PROGRAMS.iter().any(|x| path(p).contains(x)))?;
        built.then_some((from, word))
    });
    let Some((from, word)) = lost else { return };
    let name = from.tag.as_deref().map_or(from.repository.clone(), |t| format!("{}:{t}", from.repository));
    let message = format!(
        "what is copied was built on {name}, and the image on {} has no CUDA libraries: \"libcudart.so…: cannot open shared object \
         file\", unless they are linked in",
        base.repository
    );
    out.push(
        Found::warning(word.span, message)
            .label("built with CUDA")
            .help("take the base or runtime flavour of the same CUDA as the last base, or copy the libraries too")
            .because(from.because),
    );
}

/// Whether the image gets CUDA's libraries by packages or wheels.
fn has_libraries(lint: &Lint<'_>) -> bool {
    let here = |command: usize| lint.reading.commands.get(command).is_some_and(|c| lint.in_image(c.instruction));
    let kinds = [SystemKind::CudaLibrary, SystemKind::Toolkit, SystemKind::CudaMeta, SystemKind::DistroToolkit];
    let pip = lint.asks.pip.iter().filter(|p| here(p.command));
    lint.packages().iter().any(|p| p.in_image && kinds.contains(&p.known.kind))
        || !torches(lint).is_empty()
        || pip.into_iter().any(|p| {
            p.files.iter().any(|(_, read)| !read) || p.requirements.iter().any(|r| r.name.starts_with("nvidia-"))
        })
        || lint.asks.conda.iter().any(|c| here(c.command))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "runtime-lib-lost-in-copy";

    fn file(last: &str) -> String {
        format!("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS b\nRUN cmake -DGGML_CUDA=ON . && make\nFROM {last}\n")
    }

    #[test]
    fn a_program_without_its_libraries() {
        assert_eq!(
            blamed(RULE, &file("ubuntu:22.04\nCOPY --from=b /app/build/bin/x /x"), &[]),
            ["/app/build/bin/x"]
        );
    }

    #[test]
    fn silent_where_they_come_along() {
        for last in [
            "nvidia/cuda:12.4.1-runtime-ubuntu22.04\nCOPY --from=b /app/build/bin/x /x",
            "ubuntu:22.04\nCOPY --from=b /app/build/bin/x /usr/local/cuda/lib64 /x/",
            "ubuntu:22.04\nCOPY --from=b /app/build/bin/x /x\nRUN apt-get install -y cuda-libraries-12-4",
            "python:3.12\nCOPY --from=b /app/build/bin/x /x\nRUN pip install torch",
            "ubuntu:22.04\nCOPY --from=b /app/README /x",
        ] {
            assert!(lint(RULE, &file(last), &[]).is_empty(), "{last}");
        }
    }
}
