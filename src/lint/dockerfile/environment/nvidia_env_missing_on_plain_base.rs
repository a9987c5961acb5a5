//! CUDA wheels on a base that does not ask for GPUs.

use super::last_stage;
use crate::lint::dockerfile::wheels::torches;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(plain) = last_stage::plain(lint) else { return };
    let torches = torches(lint);
    let Some(torch) = torches.iter().find(|t| t.cuda(lint).is_some()) else { return };
    let mut found = Found::note(
        plain.from,
        "the base sets no NVIDIA_VISIBLE_DEVICES, and neither does the file: started with the nvidia runtime and without \
         --gpus, the container gets no GPU",
    )
    .label("asks for no GPU")
    .help(format!("where that is how it is started: {}", last_stage::LINES.replace(" \\\n   ", "")))
    .also(torch.asked, "torch with CUDA");
    if let Some(edits) = last_stage::edits(lint, &plain) {
        found = found.suggest("ask for GPUs", edits);
    }
    out.push(found);
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, mended};

    const RULE: &str = "nvidia-env-missing-on-plain-base";
    const TORCH: &str = "RUN pip install torch==2.6.0\n";

    #[test]
    fn wheels_with_cuda_on_a_plain_base() {
        let file = format!("FROM ubuntu:22.04\n{TORCH}");
        assert_eq!(blamed(RULE, &file, &[]), ["ubuntu:22.04"]);
        assert!(mended(RULE, &file, &[]).starts_with("FROM ubuntu:22.04\nENV NVIDIA_VISIBLE_DEVICES=all \\\n"));
        for quiet in [
            format!("FROM ubuntu:22.04\nENV NVIDIA_VISIBLE_DEVICES=all\n{TORCH}"),
            format!("FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n{TORCH}"),
            format!("FROM example.com/x:1\n{TORCH}"),
            "FROM ubuntu:22.04\nRUN pip install numpy\n".to_owned(),
            "FROM ubuntu:22.04\nRUN pip install torch --index-url https://download.pytorch.org/whl/cpu\n"
                .to_owned(),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
