//! Bases, variables and packages.

use super::*;

fn base(to: &str) -> Change {
    Change::Base { from: "nvidia/cuda:12.4.1-devel-ubuntu22.04".into(), to: to.into() }
}

#[test]
fn the_base_is_changed_where_it_is_named() {
    let to = "nvidia/cuda:12.8.1-devel-ubuntu22.04";
    assert_eq!(done(CUDA, base(to)), "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\n");
    let file = "ARG V=12.4.1\nFROM --platform=linux/amd64 nvidia/cuda:${V}-devel-ubuntu22.04 AS b\nFROM b\nRUN x\n";
    assert_eq!(lines(file, &done(file, base(to))), ["ARG V=12.8.1"]);
    let file = "FROM docker.io/nvidia/cuda:12.4.1-devel-ubuntu22.04@sha256:0123\nRUN x\n";
    let from = Change::Base { from: file[5..file.find('\n').unwrap()].into(), to: to.into() };
    assert!(done(file, from).starts_with("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\n"));
}

#[test]
fn another_release_keeps_flavour_and_distribution_in_all_stages() {
    let change = |to: &str| Change::Base { from: "nvidia/cuda:12.4.1".into(), to: to.into() };
    let file = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS b\nRUN x\nFROM docker.io/nvidia/cuda:12.4.1-runtime-ubuntu22.04\nCOPY --from=b / /\n";
    let new = done(file, change("nvidia/cuda:12.8.1"));
    assert_eq!(
        lines(file, &new),
        ["FROM nvidia/cuda:12.8.1-devel-ubuntu22.04 AS b", "FROM docker.io/nvidia/cuda:12.8.1-runtime-ubuntu22.04"]
    );
    let file = "ARG V=12.4.1\nFROM nvidia/cuda:${V}-devel-ubuntu22.04 AS b\nFROM nvidia/cuda:${V}-base-ubuntu22.04\nCOPY --from=b / /\n";
    assert_eq!(lines(file, &done(file, change("nvidia/cuda:12.8.1"))), ["ARG V=12.8.1"]);
    // A tag that was never published is not written.
    let never = left("FROM nvidia/cuda:12.4.1-devel-ubuntu18.04\n", change("nvidia/cuda:12.8.1"));
    assert!(never.contains("is not there"), "{never}");
    let digest = left("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04@sha256:0123\n", change("nvidia/cuda:12.8.1"));
    assert!(digest.contains("choose one"), "{digest}");
    // Of a file that starts elsewhere it is told which it is.
    assert!(left("FROM ubuntu:24.04\n", change("nvidia/cuda:12.8.1")).contains("starts from ubuntu:24.04"));
}

#[test]
fn a_base_that_is_another_or_not_known_is_left() {
    let to = "nvidia/cuda:12.8.1-devel-ubuntu22.04";
    assert!(left("FROM ubuntu:24.04\n", base(to)).contains("starts from ubuntu:24.04"));
    assert!(left("ARG B\nFROM $B\n", base(to)).contains("not known"));
    assert!(left("FROM scratch\n", base(to)).contains("does not start from an image"));
    let file = "ARG V=12.4.1\nFROM nvidia/cuda:${V}-devel-ubuntu22.04\nARG V\nRUN echo $V\n";
    assert!(left(file, base(to)).contains("V is used in line 4 too"));
    // Another stage of the same image should be of the same release.
    let file = "FROM nvidia/cuda:12.4.1-base-ubuntu22.04 AS b\nFROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nCOPY --from=b / /\n";
    let (new, left) = after(file, &[], &plan_of([base(to)]), None);
    assert!(new.contains("FROM nvidia/cuda:12.8.1-devel"), "{new}");
    assert!(left[0].as_deref().unwrap().contains("line 1 starts from nvidia/cuda:12.4.1-base"), "{left:?}");
}

fn drop_entry(entry: &str) -> Change {
    Change::DropEntry { variable: "LD_LIBRARY_PATH".into(), entry: entry.into() }
}

#[test]
fn an_entry_is_taken_out_of_a_path() {
    for (value, want) in [
        ("/usr/local/cuda/compat:/opt/x", "/opt/x"),
        ("\"/opt/x:/usr/local/cuda/compat/:$LD_LIBRARY_PATH\"", "\"/opt/x:$LD_LIBRARY_PATH\""),
        ("/opt/x:/usr/local/cuda/compat", "/opt/x"),
        ("/usr/local/cuda/compat", "\"\""),
    ] {
        let file = format!("FROM a\nENV A=b LD_LIBRARY_PATH={value} C=d\n");
        let new = done(&file, drop_entry("/usr/local/cuda/compat"));
        assert_eq!(new, format!("FROM a\nENV A=b LD_LIBRARY_PATH={want} C=d\n"));
    }
    assert!(left("FROM a\nENV LD_LIBRARY_PATH=/x\n", drop_entry("/y")).contains("no ENV of the file has it"));
    let file = "FROM a\nARG P=/y\nENV LD_LIBRARY_PATH=$P:/x\n";
    assert!(left(file, drop_entry("/y")).contains("no line spells it out"));
    // Not in the image.
    let file = "FROM a AS b\nENV LD_LIBRARY_PATH=/y\nRUN x\nFROM c\nCOPY --from=b /x /x\n";
    assert!(left(file, drop_entry("/y")).contains("no ENV of the file"));
}

#[test]
fn variables_are_set_in_the_final_stage() {
    let set = |value: &str| Change::SetVariable { name: "NVIDIA_DRIVER_CAPABILITIES".into(), value: value.into() };
    let file =
        "FROM a AS b\nENV NVIDIA_DRIVER_CAPABILITIES=x\nFROM c\nENV NVIDIA_DRIVER_CAPABILITIES=utility\nCMD x\n";
    let new = done(file, set("compute,utility"));
    assert!(new.contains("FROM c\nENV NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"), "{new}");
    let file = "FROM c\nRUN x\nEXPOSE 80\nCMD x\n";
    let new = done(file, set("compute,utility"));
    assert_eq!(new, "FROM c\nRUN x\nENV NVIDIA_DRIVER_CAPABILITIES=\"compute,utility\"\nEXPOSE 80\nCMD x\n");
    let new = done("FROM c\nRUN x", set("all"));
    assert_eq!(new, "FROM c\nRUN x\nENV NVIDIA_DRIVER_CAPABILITIES=\"all\"");
    let file = "FROM c\nENV NVIDIA_DRIVER_CAPABILITIES=$(x)$Y\n";
    assert!(done(file, set("all")).contains("CAPABILITIES=\"all\"\n"));
    let file = "FROM c\nENV NVIDIA_DRIVER_CAPABILITIES=all\n";
    assert!(left(file, set("all")).contains("so already"));
    let bad = Change::SetVariable { name: "A-B".into(), value: "x".into() };
    assert!(left(file, bad).contains("cannot be set"));
}

#[test]
fn variables_are_taken_out() {
    let unset = |name: &str| Change::UnsetVariable { name: name.into() };
    let file = "FROM a\nENV A=b CUDA_DISABLE_PTX_JIT=1 \\\n    C=d\nENV CUDA_DISABLE_PTX_JIT=1\nRUN x\n";
    assert_eq!(done(file, unset("CUDA_DISABLE_PTX_JIT")), "FROM a\nENV A=b \\\n    C=d\nRUN x\n");
    assert!(left("FROM a\nRUN x\n", unset("A")).contains("it comes from the base"));
    assert!(left("FROM a\nENV A=b\nRUN echo $A\n", unset("A")).contains("is used in the file"));
    // What the base sets can be emptied only.
    let file = "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN x\n";
    let (new, left) = after(file, &[], &plan_of([unset("NVIDIA_REQUIRE_CUDA")]), None);
    if new != file {
        assert!(new.ends_with("ENV NVIDIA_REQUIRE_CUDA=\"\"\n"), "{new}");
    }
    assert!(left[0].as_deref().unwrap().contains("base"), "{left:?}");
}

fn packages(add: bool, manager: Manager, names: &[&str]) -> Change {
    let names = names.iter().map(|n| (*n).to_owned()).collect();
    if add {
        Change::AddPackages { manager, names, libraries: Vec::new() }
    } else {
        Change::RemovePackages { manager, names }
    }
}

#[test]
fn packages_are_taken_out_of_commands() {
    let file = "FROM a\nRUN apt-get update && apt-get install -y \\\n    libcudnn8=8.9 \\\n    curl \\\n    wget && rm -rf /x\n";
    let new = done(file, packages(false, Manager::Dpkg, &["libcudnn8", "wget"]));
    assert_eq!(new, "FROM a\nRUN apt-get update && apt-get install -y \\\n    curl && rm -rf /x\n");
    let file = "FROM a\nRUN pip install numpy \"onnxruntime==1.17\" onnxruntime-gpu\n";
    let new = done(file, packages(false, Manager::Pip, &["onnxruntime"]));
    assert_eq!(new, "FROM a\nRUN pip install numpy onnxruntime-gpu\n");
    for (file, words) in [
        ("FROM a\nRUN pip install onnxruntime\n", "installs nothing else"),
        ("FROM a\nRUN pip install numpy\n", "comes with something else"),
        ("FROM a\nARG P=onnxruntime\nRUN pip install numpy $P\n", "does not spell"),
        ("FROM a\nRUN [\"pip\", \"install\", \"numpy\", \"onnxruntime\"]\n", "does not spell"),
    ] {
        let why = left(file, packages(false, Manager::Pip, &["onnxruntime"]));
        assert!(why.contains(words), "{why}");
    }
    let files = [("requirements.txt", "onnxruntime\n")];
    let file = "FROM a\nCOPY requirements.txt .\nRUN pip install numpy -r requirements.txt\n";
    let (_, left) = after(file, &files, &plan_of([packages(false, Manager::Pip, &["onnxruntime"])]), None);
    assert!(left[0].as_deref().unwrap().starts_with("requirements.txt:1 asks for onnxruntime"), "{left:?}");
}

#[test]
fn packages_are_put_into_commands() {
    let file = "FROM a AS b\nRUN apt-get install -y git\nFROM c\nRUN apt-get install -y --no-install-recommends curl wget && rm -rf /x\n";
    let new = done(file, packages(true, Manager::Dpkg, &["libgomp1"]));
    assert!(new.contains("install -y git\n") && new.contains("curl wget libgomp1 && rm"), "{new}");
    let file = "FROM a\nRUN pip install numpy\nRUN pip install torch -i https://download.pytorch.org/whl/cu128\n";
    let new = done(file, packages(true, Manager::Pip, &["nvidia-cudnn-cu12>=9"]));
    assert!(new.contains("pip install numpy \"nvidia-cudnn-cu12>=9\"\n"), "{new}");
    assert!(
        left("FROM a\nRUN x\n", packages(true, Manager::Rpm, &["x"])).contains("no command of the final stage")
    );
    let file = "FROM a\nRUN pip install numpy\n";
    assert!(left(file, packages(true, Manager::Pip, &["numpy"])).contains("already"));
}
