//! "native" and its like, where no GPU is there to be asked.

use crate::catalog::arch_lists::{Grammar, Keyword};
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, Place};
use crate::lint::dockerfile::{Found, Lint};

use super::lists::{self, Archs, Use};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(archs) = Archs::set(lint) else { return };
    for (place, settings) in archs.by_place() {
        let asks = settings.into_iter().filter(|s| is_native(s) && !has_device(lint, s.instruction));
        // Builds that see it and read it under another name count too: the value is meant for them.
        let seen = |s: &&ArchSetting<'_>| !s.readers.is_empty();
        if let Some(setting) = asks.filter(seen).max_by_key(|s| archs.usage(lint, s)) {
            out.push(told(lint, &archs, setting, place));
        }
    }
}

fn is_native(setting: &ArchSetting<'_>) -> bool {
    let lists = setting.lists();
    !lists.is_empty() && lists.iter().all(|l| l.keywords.contains(&Keyword::Native))
}

/// `RUN --device=nvidia.com/gpu`: a GPU is there.
fn has_device(lint: &Lint<'_>, instruction: usize) -> bool {
    lint.reading.instruction(instruction).is_some_and(|i| i.flag("device").is_some())
}

fn told<'a>(lint: &Lint<'a>, archs: &Archs<'a>, setting: &ArchSetting<'_>, place: Place) -> Found {
    let what = match setting.variable.grammar {
        Grammar::Cmake | Grammar::Gencode => "only code for the compiler's default architecture is made",
        _ => "the build stops or takes an architecture of its own",
    };
    let message = format!(
        "{}, but no GPU is visible while an image is built: {what}, not that of the machine it will run on",
        lists::said(lint, setting)
    );
    let known = matches!(setting.value, Value::Known(_));
    let mut found = if known && archs.usage(lint, setting) != Use::ReadPerhaps {
        Found::warning(place.span, message)
    } else {
        Found::note(place.span, message)
    };
    found = found.label("no GPU to be asked").because(setting.variable.because());
    for build in archs.readers(setting).take(1).filter(|b| !b.command.span.contains(place.span)) {
        found = found.also(build.span, "compiled here");
    }
    let (list, whose) = lists::for_fleet(lint, setting.variable);
    found = found.help(format!("name the GPUs it will run on: {}{whose}", lists::shown(&list)));
    match lists::write(lint, place, &list) {
        Some(edit) if !lint.targets.is_empty() => found.suggest("name the targets' architectures", vec![edit]),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "arch-native";
    const BASE: &str = "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\n";

    #[test]
    fn native_where_something_is_compiled() {
        for line in [
            "RUN cmake -B b -DCMAKE_CUDA_ARCHITECTURES=native .",
            "RUN nvcc -arch=native -o x x.cu",
            "ENV CUDAARCHS=native\nRUN cmake -B b .",
            "ENV CMAKE_CUDA_ARCHITECTURES=native\nRUN cmake -B b .",
            "RUN CMAKE_ARGS=\"-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=native\" pip install --no-build-isolation ./csrc",
        ] {
            let file = format!("{BASE}{line}\n");
            assert_eq!(blamed(RULE, &file, &[]), ["native"], "{line}");
        }
        let file = format!("{BASE}RUN cmake -B b -DCMAKE_CUDA_ARCHITECTURES=native .\n");
        assert!(lint(RULE, &file, &[])[0].help.as_deref().unwrap().contains("--target"));
        assert!(mended(RULE, &file, &["t4@470", "h100@550"]).contains("ARCHITECTURES=\"75-real;90-real\" ."));
    }

    #[test]
    fn other_words_and_a_gpu_that_is_there() {
        for line in [
            "RUN cmake -B b -DCMAKE_CUDA_ARCHITECTURES=all-major .",
            "RUN cmake -B b -DCMAKE_CUDA_ARCHITECTURES=80 .",
            "RUN --device=nvidia.com/gpu=all cmake -B b -DCMAKE_CUDA_ARCHITECTURES=native .",
            "ENV CUDAARCHS=native",
            "ENV CUDAARCHS=RAPIDS\nRUN cmake -B b .",
            "RUN cmake -B b -DGGML_NATIVE=native .",
        ] {
            let file = format!("{BASE}{line}\n");
            assert!(lint(RULE, &file, &[]).is_empty(), "{line}");
        }
    }
}
