//! `imagelint verify-script`: a shell script that a person runs on a GPU node, to compare what was predicted with
//! what is.

use super::{Report, TargetReport};
use crate::model::Verdict;

/// The script; it needs a POSIX shell, `sort -V`, and on the node nvidia-smi and docker or podman.
pub fn script(report: &Report) -> String {
    let image = report.image.as_ref();
    let reference = image.map_or("", |i| i.reference.as_str());
    let digest = image.and_then(|i| i.digest).map(|d| d.to_string()).unwrap_or_default();
    let driver = image.and_then(|i| i.min_driver.as_ref());
    let archs = image.and_then(|i| i.arch_list.as_ref()).map(|a| a.join(" ")).unwrap_or_default();
    let targets = report.targets.as_deref().unwrap_or_default();
    // The node is asked by nvidia-smi.
    let rows: Vec<String> = targets.iter().filter_map(row).collect();
    let frameworks: Vec<&str> =
        FRAMEWORKS.iter().filter(|(_, dists)| installed(report, dists)).map(|f| f.0).collect();
    let values = [
        ("tool", format!("imagelint {}", report.tool.version)),
        ("image", reference.to_owned()),
        ("digest", digest),
        ("min_driver", driver.map(|d| d.version.clone()).unwrap_or_default()),
        ("driver_cause", driver.map(|d| d.cause.clone()).unwrap_or_default()),
        ("arch_list", archs),
        ("frameworks", frameworks.join(" ")),
        ("predictions", rows.join("\n")),
    ];
    let mut out = String::from(HEAD);
    for (name, value) in values {
        out.push_str(&format!("{name}={}\n", quoted(&value)));
    }
    out.push_str(BODY);
    out
}

/// What a framework is imported as, and the packages that bring it.
const FRAMEWORKS: [(&str, &[&str]); 5] = [
    ("torch", &["torch", "pytorch"]),
    ("tensorflow", &["tensorflow", "tf-nightly", "tensorflow-gpu"]),
    ("jax", &["jax", "jax-cuda12-plugin", "jax-cuda13-plugin"]),
    ("onnxruntime", &["onnxruntime-gpu"]),
    ("cupy", &["cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"]),
];

fn installed(report: &Report, dists: &[&str]) -> bool {
    let packages = report.packages.iter().flatten().map(|p| p.name.as_str());
    let components = report.targets.iter().flatten().flat_map(|t| &t.components).map(|c| c.name.as_str());
    packages.chain(components).any(|name| dists.contains(&name))
}

/// "8.0|535.183.01|ok|prod-a100".
fn row(target: &TargetReport) -> Option<String> {
    let capability = target.arch.sm()?.capability()?;
    let word = match target.verdict {
        Verdict::Ok | Verdict::Warn | Verdict::Slow => "runs",
        Verdict::Fail | Verdict::Blocked | Verdict::Cpu => "fails",
        Verdict::Unknown => "unknown",
    };
    let clean = |text: &str| text.replace(['|', '\n'], " ");
    let driver = target.driver.as_deref().unwrap_or("any");
    Some(format!("{capability}|{}|{word}|{} ({})", clean(driver), clean(&target.name), target.verdict.word()))
}

/// A word of the shell that means just these bytes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

const HEAD: &str = r#"#!/bin/sh
# Compares what imagelint predicted for an image with what a GPU node does.
#   sh verify.sh            on the node: its driver and GPUs, then the image, started with docker or podman
#   sh verify.sh inside     within a container or pod of the image:
#                           kubectl exec -i POD -- sh -s inside <verify.sh
# Exit status: 0 everything is as predicted, 1 something is not, 2 nothing could be compared.
set -u
"#;

const BODY: &str = r#"same=0 differ=0
say() { # SUBJECT PREDICTED FOUND
    if [ "$2" = "$3" ]; then mark=ok same=$((same + 1)); else mark=DIFFERS differ=$((differ + 1)); fi
    printf '%-8s %-34s predicted %-22s found %s\n' "$mark" "$1" "$2" "$3"
}
at_least() { # A B: A is not newer than B
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}
predicted() { # CAPABILITY DRIVER: what was said of the first target that this can be
    printf '%s\n' "$predictions" | while IFS='|' read -r cc driver word name; do
        [ "$cc" = "$1" ] || continue
        case $driver in
        any) ;;
        *[!0-9.]*) ;;
        *.*) [ "$driver" = "$2" ] || continue ;;
        *) [ "${2%%.*}" = "$driver" ] || continue ;;
        esac
        printf '%s|%s\n' "$word" "$name"
        break
    done
}
gpus() { nvidia-smi --query-gpu=compute_cap,driver_version,name --format=csv,noheader 2>/dev/null; }
node() {
    list=$(gpus) || list=
    if [ -z "$list" ]; then echo "no GPU here, or no nvidia-smi: nothing to compare" >&2; return; fi
    while IFS=, read -r cc driver name; do
        driver=$(printf %s "$driver" | tr -d ' ')
        answer=$(predicted "$cc" "$driver")
        printf -- '-- %s, capability %s, driver %s: %s\n' "${name# }" "$cc" "$driver" "${answer:-no target of the prediction}"
        [ -z "$min_driver" ] || if at_least "$min_driver" "$driver"; then
            say "driver, needs $min_driver or newer" enough enough
        else
            case ${answer%%|*} in
            fails) say "driver, needs $min_driver or newer" "too old" "too old" ;;
            *) say "driver, needs $min_driver or newer" enough "too old ($driver_cause)" ;;
            esac
        fi
    done <<LIST
$list
LIST
}
start() {
    for runner in docker podman; do
        command -v "$runner" >/dev/null || continue
        case $runner in docker) set -- --gpus all ;; *) set -- --device nvidia.com/gpu=all ;; esac
        "$runner" run --rm -i "$@" --entrypoint sh "$image" -s inside <"$0"
        case $? in
        0) same=$((same + 1)) ;;
        1) differ=$((differ + 1)) ;;
        *)
            case $(predicted_here) in
            fails\|*) say "the image starts" fails fails ;;
            *) say "the image starts" runs fails ;;
            esac
            ;;
        esac
        return
    done
    echo "no docker, no podman: run \"sh $0 inside\" within the image" >&2
}
predicted_here() {
    list=$(gpus | head -n 1)
    cc=${list%%,*} driver=${list#*,}
    driver=$(printf %s "${driver%%,*}" | tr -d ' ')
    predicted "$cc" "$driver"
}
inside() {
    python=$(command -v python3 || command -v python) || python=
    answer=$(predicted_here)
    word=${answer%%|*}
    [ -n "$word" ] || word=unknown
    if [ -z "$python" ]; then
        echo "no Python in the image: only the driver can be looked at" >&2
        return
    fi
    for framework in driver $frameworks; do
        found=$("$python" - "$framework" 2>&1 <<'PYTHON'
import sys
name = sys.argv[1]
if name == "driver":
    import ctypes
    code = ctypes.CDLL("libcuda.so.1").cuInit(0)
    print("runs" if code == 0 else "fails: cuInit gives %d" % code)
elif name == "torch":
    import torch
    print("list|" + " ".join(torch.cuda.get_arch_list()))
    x = torch.ones(4, device="cuda")
    print("runs" if float((x + x).sum()) == 8 else "fails")
elif name == "tensorflow":
    import tensorflow as tf
    print("runs" if tf.config.list_physical_devices("GPU") else "fails: sees no GPU")
elif name == "jax":
    import jax, jax.numpy as np
    ok = any(d.platform == "gpu" for d in jax.devices()) and float(np.ones(4).sum()) == 4
    print("runs" if ok else "fails: sees no GPU")
elif name == "onnxruntime":
    import onnxruntime as ort
    print("runs" if "CUDAExecutionProvider" in ort.get_available_providers() else "fails: no CUDA provider")
elif name == "cupy":
    import cupy
    print("runs" if int(cupy.arange(4).sum()) == 6 else "fails")
PYTHON
        ) || found="fails: $(printf '%s' "$found" | tail -n 1)"
        list=$(printf '%s\n' "$found" | sed -n 's/^list|//p')
        found=$(printf '%s\n' "$found" | tail -n 1)
        [ -z "$list" ] || [ -z "$arch_list" ] || say "torch.cuda.get_arch_list()" "$arch_list" "$list"
        if [ "$word" = unknown ]; then
            printf '%-8s %-34s %s\n' - "$framework" "$found (nothing predicted for this GPU)"
        elif [ "$word" = fails ] && [ "${found%%:*}" = fails ]; then
            say "$framework" fails fails
            printf '         %s\n' "$found"
        elif [ "$framework" = driver ] && [ "$word" = fails ]; then
            printf '%-8s %-34s %s\n' - "$framework" "$found"
        else
            say "$framework" "$word" "$found"
        fi
    done
}
printf '%s for %s %s\n' "$tool" "$image" "$digest"
case ${1-} in
inside) inside ;;
'') node; start ;;
*) echo "usage: sh $0 [inside]" >&2; exit 2 ;;
esac
printf '%s as predicted, %s not\n' "$same" "$differ"
[ "$differ" = 0 ] || exit 1
[ "$same" != 0 ] || exit 2
"#;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::sample;
    use super::*;

    fn script_of(report: &Report, dir: &std::path::Path) -> std::path::PathBuf {
        let path = dir.join("verify.sh");
        std::fs::write(&path, script(report)).unwrap();
        path
    }

    fn program(dir: &std::path::Path, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the script on a node that answers as told.
    fn on_a_node(smi: &str, docker: &str) -> (i32, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = script_of(&sample::failing(), dir.path());
        program(dir.path(), "nvidia-smi", smi);
        program(dir.path(), "docker", docker);
        let env = format!("{}:/usr/bin:/bin", dir.path().display());
        let out = Command::new("sh").arg(path).env("PATH", env).output().unwrap();
        (out.status.code().unwrap(), String::from_utf8_lossy(&out.stdout).into_owned())
    }

    #[test]
    fn the_node_is_compared_with_the_prediction() {
        let (status, text) = on_a_node("echo '8.0, 535.183.01, NVIDIA A100'", "exit 0");
        assert_eq!(status, 0, "{text}");
        let (status, text) = on_a_node("echo '8.0, 470.10, NVIDIA A100'", "exit 0");
        assert_eq!(status, 1, "{text}");
        assert!(text.contains("DIFFERS"), "{text}");
    }

    /// Within the image, each framework is held against the prediction for the GPU that is there.
    #[test]
    fn the_inside_is_compared_framework_by_framework() {
        let run = |capability: &str, python: &str| {
            let dir = tempfile::tempdir().unwrap();
            let path = script_of(&sample::failing(), dir.path());
            program(dir.path(), "nvidia-smi", &format!("echo '{capability}, 575.51.03, some GPU'"));
            program(dir.path(), "python3", python);
            let env = format!("{}:/usr/bin:/bin", dir.path().display());
            let out = Command::new("sh").arg(path).arg("inside").env("PATH", env).output().unwrap();
            (out.status.code().unwrap(), String::from_utf8_lossy(&out.stdout).into_owned())
        };
        let (status, text) = run("12.0", "cat >/dev/null; echo boom >&2; exit 1");
        assert!(text.contains("torch") && !text.contains("DIFFERS"), "{text}");
        assert_eq!(status, 0, "{text}");
        let (status, text) = run("12.0", "cat >/dev/null; echo runs");
        assert_eq!(status, 1, "{text}");
    }

    #[test]
    fn names_from_outside_stay_text() {
        let mut report = sample::failing();
        if let Some(image) = &mut report.image {
            image.reference = "x'; touch hacked; '$(touch hacked)`touch hacked`".to_owned();
        }
        let dir = tempfile::tempdir().unwrap();
        let path = script_of(&report, dir.path());
        let ran = Command::new("sh").arg(path).arg("nonsense").current_dir(dir.path()).output().unwrap();
        assert_eq!(ran.status.code(), Some(2));
        assert!(!dir.path().join("hacked").exists());
    }
}
