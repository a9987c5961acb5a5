//! A base with another cuDNN, or with none, than packages want that load the system's.

use super::from::is_cuda;
use crate::catalog::bases::Base;
use crate::dockerfile::syntax::Keyword;
use crate::lint::dockerfile::wheels::{Installed, base_name, system_cudnn};
use crate::lint::dockerfile::{Found, Lint};

/// Packages of a file that are looked at: each asks what the whole stage does.
const MOST: usize = 16;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let installed = Installed::of(lint);
    let loading = installed.packages.iter().filter_map(|p| {
        let known = p.known(lint).filter(|k| !k.brings)?;
        Some((p, known.cudnn_major?, known))
    });
    for (package, wants, known) in loading.take(MOST) {
        let Some(base) = lint.base(package.stage).filter(|b| b.sure && is_cuda(b) && b.flavour.is_some()) else {
            continue;
        };
        let extra = package.requirement.extras.iter().any(|e| e.contains("cuda"));
        if extra
            || installed.brings(lint, package, "cudnn", known.cuda_major)
            || brought_otherwise(lint, package.stage)
        {
            continue;
        }
        let has = match system_cudnn(lint, package.stage) {
            Some(major) => major.map(Has::Major),
            None => of(&base),
        };
        let name = base_name(&base);
        let said = match has {
            Some(Has::None) => format!(
                "{} loads the system's cuDNN {wants}, and `{name}` has none: \"libcudnn.so.{wants}: cannot open shared object \
                 file\"",
                package.told()
            ),
            // Of CTranslate2 a rule of its own tells it.
            Some(Has::Major(major)) if major != wants && package.requirement.name != "ctranslate2" => format!(
                "{} loads cuDNN {wants}, and the image has cuDNN {major}: \"libcudnn.so.{wants}: cannot open shared object \
                 file\"",
                package.told()
            ),
            _ => continue,
        };
        let mut found = Found::warning(package.span, said)
            .label(format!("wants cuDNN {wants}"))
            .help(format!("take the base's flavour with cuDNN {wants}, or install nvidia-cudnn by pip or apt"))
            .because(known.because)
            .because(base.because);
        if let Some(stage) = lint.reading.stages.get(package.stage).and_then(|s| lint.reading.stages.get(s.root.1))
        {
            found = found.also(stage.from, "the base");
        }
        out.push(found);
    }
}

enum Has {
    None,
    Major(u32),
}

/// The cuDNN of a base; none where its major is not told.
fn of(base: &Base) -> Option<Has> {
    match &base.cudnn {
        None => Some(Has::None),
        Some(flavour) => flavour.major.map(Has::Major),
    }
}

/// Whether anything else in the file speaks of cuDNN: an archive, conda, a copy from another image.
fn brought_otherwise(lint: &Lint<'_>, stage: usize) -> bool {
    let document = &lint.reading.document;
    let stages = lint.chain(stage).into_iter().filter_map(|s| lint.reading.stages.get(s));
    let own = stages.filter_map(|s| document.instructions.get(s.instructions.clone())).flatten();
    let speaks = own.filter(|i| i.keyword != Keyword::From).any(|i| {
        let text = document.slice(i.span).to_ascii_lowercase();
        (text.contains("cudnn") && !text.contains("libcudnn")) || text.contains("/usr/local/cuda/lib")
    });
    let conda = lint.asks.conda.iter().any(|c| {
        let at = lint.reading.commands.get(c.command).and_then(|c| lint.reading.stage_of(c.instruction));
        at.is_some_and(|at| lint.chain(stage).contains(&at))
    });
    speaks || conda
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "cudnn-flavour-mismatch";

    fn file(base: &str, pip: &str) -> String {
        format!("FROM nvidia/cuda:{base}\nRUN pip install {pip}\n")
    }

    #[test]
    fn none_or_another() {
        let none = file("12.4.1-runtime-ubuntu22.04", "onnxruntime-gpu==1.20.1");
        assert_eq!(blamed(RULE, &none, &[]), ["onnxruntime-gpu==1.20.1"]);
        assert!(lint(RULE, &none, &[])[0].message.contains("libcudnn.so.9"));
        let old = file("12.2.2-cudnn8-runtime-ubuntu22.04", "onnxruntime-gpu==1.20.1");
        assert!(lint(RULE, &old, &[])[0].message.contains("cuDNN 8"));
    }

    #[test]
    fn silent_where_it_is_there_or_not_known() {
        for text in [
            file("12.4.1-cudnn-runtime-ubuntu22.04", "onnxruntime-gpu==1.20.1"),
            file("12.4.1-runtime-ubuntu22.04", "onnxruntime-gpu==1.20.1 nvidia-cudnn-cu12"),
            file("12.4.1-runtime-ubuntu22.04", "onnxruntime-gpu==1.20.1 torch"),
            file("12.4.1-runtime-ubuntu22.04", "onnxruntime-gpu"),
            file("12.4.1-runtime-ubuntu22.04", "numpy"),
            format!(
                "{}RUN apt-get install -y libcudnn9-cuda-12\n",
                file("12.4.1-runtime-ubuntu22.04", "onnxruntime-gpu==1.20.1")
            ),
            format!(
                "{}RUN curl -LO https://x/cudnn-linux-x86_64-9.tar.xz\n",
                file("12.4.1-runtime-ubuntu22.04", "onnxruntime-gpu==1.20.1")
            ),
            "FROM python:3.12\nRUN pip install onnxruntime-gpu==1.20.1\n".to_owned(),
        ] {
            assert!(lint(RULE, &text, &[]).is_empty(), "{text}");
        }
    }
}
