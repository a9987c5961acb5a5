//! NVIDIA_REQUIRE_CUDA that asks for another CUDA than the image has.

use crate::lint::dockerfile::wheels::{base_name, of_base, torches};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::CudaVersion;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for set in lint.image_env() {
        if set.name != "NVIDIA_REQUIRE_CUDA" {
            continue;
        }
        let (Some(value), Some(last)) = (set.value.known(), lint.reading.last) else { continue };
        let (Some(asked), Some((base, cuda))) = (lowest(value), of_base(lint, last)) else { continue };
        let floor = |c: CudaVersion| lint.catalog.toolkits().floor_of(c);
        // What the image needs in truth is the most that anything in it needs.
        let wheels: Vec<Option<CudaVersion>> = torches(lint).iter().map(|t| t.cuda(lint)).collect();
        let most = wheels.iter().flatten().copied().chain([cuda]).max().unwrap_or(cuda);
        let trail = lint.trail(set.trail);
        let name = base_name(&base);
        let found = if asked.major < cuda.major {
            let driver = floor(cuda).map_or(String::new(), |f| format!(" below {}", f.driver));
            Found::warning(
                set.value_span(),
                format!(
                    "NVIDIA_REQUIRE_CUDA asks for CUDA {asked}{trail}, and {name} has CUDA {cuda}: hosts with a driver{driver} \
                     are let in, and CUDA fails there"
                ),
            )
            .help(format!("ask for cuda>={cuda}, or leave the base's own value"))
        } else if asked.major > most.major && wheels.iter().all(Option::is_some) && !others(lint) {
            Found::warning(
                set.value_span(),
                format!(
                    "NVIDIA_REQUIRE_CUDA asks for CUDA {asked}{trail}, and {name} has CUDA {cuda}: hosts that would run it \
                     are refused (\"unsatisfied condition: cuda>={asked}\")"
                ),
            )
            .help(format!("ask for cuda>={cuda}, or leave the base's own value"))
        } else {
            continue;
        };
        out.push(found.label(format!("the base has CUDA {cuda}")).because(base.because));
    }
}

/// Whether anything else may bring a CUDA of its own.
fn others(lint: &Lint<'_>) -> bool {
    !lint.asks.pip.is_empty() || !lint.asks.conda.is_empty()
}

/// The lowest CUDA that any alternative lets in: words are alternatives, commas join conditions.
fn lowest(value: &str) -> Option<CudaVersion> {
    let of = |alternative: &str| {
        let mut conditions = alternative.split(',').filter_map(|c| c.trim().strip_prefix("cuda>="));
        conditions.next().and_then(|v| v.parse::<CudaVersion>().ok())
    };
    value.split_whitespace().filter_map(of).min()
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::blamed;

    const RULE: &str = "require-cuda-inconsistent";

    fn file(value: &str) -> String {
        format!("FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nENV NVIDIA_REQUIRE_CUDA=\"{value}\"\n")
    }

    #[test]
    fn below_and_above_the_base() {
        assert_eq!(blamed(RULE, &file("cuda>=11.8"), &[]), ["\"cuda>=11.8\""]);
        assert_eq!(blamed(RULE, &file("cuda>=13.0"), &[]).len(), 1);
        assert_eq!(blamed(RULE, &file("cuda>=12.4 brand=tesla,cuda>=11.0"), &[]).len(), 1);
        for quiet in ["cuda>=12.0", "cuda>=12.4", "cuda>=12.8", "driver>=535", ""] {
            assert!(blamed(RULE, &file(quiet), &[]).is_empty(), "{quiet}");
        }
        // A wheel of a newer CUDA is what it is asked for.
        let wheel = "RUN pip install torch==2.10.0 --index-url https://download.pytorch.org/whl/cu130\n";
        assert!(blamed(RULE, &format!("{}{wheel}", file("cuda>=13.0")), &[]).is_empty());
        assert!(blamed(RULE, "FROM python:3.12\nENV NVIDIA_REQUIRE_CUDA=cuda>=12.8\n", &[]).is_empty());
    }
}
