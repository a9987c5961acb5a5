//! torch without CUDA in an image that stands on CUDA.

use super::torch::{self, From, Torch};
use crate::catalog::bases::{BaseFamily, Flavour};
use crate::dockerfile::value::{Origin, Trail};
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let kept = torch::kept(lint);
    for torch in &kept {
        let From::Index { name, span, trail, .. } = &torch.from else { continue };
        if !name.starts_with("cpu") || torch.maybe() || is_chosen(trail) || has_another(lint, torch) {
            continue;
        }
        // It must be the image's own base, and one of CUDA.
        let Some(last) = lint.reading.last else { continue };
        let Some(base) = lint.base(last).filter(|b| b.sure) else { continue };
        let gpu = match base.family {
            BaseFamily::NvidiaCuda => base.flavour != Some(Flavour::Base) || base.cuda.is_some(),
            BaseFamily::NvidiaNgc | BaseFamily::Pytorch => base.cuda.is_some(),
            _ => false,
        };
        let Some(cuda) = base.cuda.filter(|_| gpu) else { continue };
        let mut found = Found::warning(
            *span,
            format!("{} has no CUDA, in an image on CUDA {cuda}: torch computes on the CPU", torch.told(lint)),
        )
        .label("torch without CUDA")
        .help(format!("take an index of CUDA {}: --index-url https://download.pytorch.org/whl/cuNNN", cuda.major))
        .because(base.because);
        if let Some(from) = lint.reading.stages.get(last).and_then(|s| lint.reading.stages.get(s.root.1)) {
            found = found.also(from.from, "CUDA comes from here");
        }
        out.push(found);
    }
}

/// Chosen by a build argument: the GPU's build is another choice.
fn is_chosen(trail: &[Trail]) -> bool {
    trail.iter().any(|t| matches!(t.origin, Origin::Arg(_) | Origin::Given | Origin::Predefined))
}

/// Another framework of the image has CUDA: torch is then a tool.
fn has_another(lint: &Lint<'_>, torch: &Torch<'_>) -> bool {
    lint.asks.pip.iter().flat_map(|p| &p.requirements).any(|requirement| {
        let version = requirement.pinned().unwrap_or_default();
        let by_name = lint.catalog.wheels().package_cuda(&requirement.name, version).is_some();
        let by_extra = requirement.extras.iter().any(|e| e.starts_with("cuda") || e == "and-cuda" || e == "gpu");
        requirement.name != "torch" && (by_name || by_extra || requirement.name.ends_with("-gpu"))
    }) || torch.install.no_deps
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::blamed;

    const RULE: &str = "cpu-index-in-gpu-image";
    const CPU: &str = "https://download.pytorch.org/whl/cpu";

    #[test]
    fn torch_without_cuda_on_cuda() {
        let base = "nvidia/cuda:12.4.1-runtime-ubuntu22.04";
        let file = format!("FROM {base}\nRUN pip install torch --index-url {CPU}\n");
        assert_eq!(blamed(RULE, &file, &[]), [CPU]);
        let local = format!("FROM {base}\nRUN pip install torch==2.6.0+cpu --extra-index-url {CPU}\n");
        assert_eq!(blamed(RULE, &local, &[]), ["torch==2.6.0+cpu"]);
        for quiet in [
            format!("FROM python:3.12\nRUN pip install torch --index-url {CPU}\n"),
            format!("FROM {base}\nARG INDEX={CPU}\nRUN pip install torch --index-url $INDEX\n"),
            format!("FROM {base}\nARG D=cpu\nRUN if [ $D = cpu ]; then pip install torch --index-url {CPU}; fi\n"),
            // A tool of the builder.
            format!(
                "FROM {base} AS b\nRUN pip install torch --index-url {CPU}\nFROM {base}\nCOPY --from=b /x /x\n"
            ),
            // Computes with another framework.
            format!("FROM {base}\nRUN pip install torch --index-url {CPU}\nRUN pip install onnxruntime-gpu\n"),
            format!("FROM {base}\nRUN pip install torch\n"),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
