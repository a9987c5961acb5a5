//! `imagelint fleet` and `imagelint init`: targets from where the fleet is, judged as they are.

use crate::common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{Ran, finish, program, run, run_with_input, testdata};
use serde_json::Value;
use tempfile::TempDir;

const NODES: &str = "fleet/nodes.json";
const SAMPLE: &str = "images/sample.tar";

fn json(args: &[&str]) -> Value {
    let ran = run(&[args, &["--format", "json", "-q"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.json()
}

/// `NAME = GPU` of each target.
fn targets(found: &Value) -> Vec<String> {
    let text = |v: &Value| v.as_str().unwrap_or("?").to_owned();
    let rows = found["targets"].as_array().into_iter().flatten();
    rows.map(|t| format!("{} = {}", text(&t["name"]), text(&t["gpu"]))).collect()
}

fn target<'a>(found: &'a Value, name: &str) -> &'a Value {
    let rows = found["targets"].as_array().into_iter().flatten();
    rows.into_iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("no {name}: {found}"))
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The image's verdict for each target of a fleet file.
fn judged(fleet: &str) -> Vec<String> {
    let ran = run(&["scan", SAMPLE, "--fleet", fleet, "--format", "json", "-q"]);
    assert!(ran.code <= 1, "{ran:?}");
    common::verdicts(&ran.json())
}

fn init(dir: &TempDir, more: &[&str]) -> Ran {
    let root = dir.path().join("no-host");
    finish(program().current_dir(dir.path()).args(["init", "--root"]).arg(root).args(more))
}

#[test]
fn a_cluster_of_many_kinds_of_nodes() {
    let found = json(&["fleet", "from-nodes", NODES]);
    assert_eq!(
        targets(&found),
        [
            "a10-vgpu@550.90.07 = NVIDIA A10",
            "a100 = NVIDIA A100",
            "a100-gke = NVIDIA A100",
            "a100-mig@535.183.01 = NVIDIA A100",
            "a100@535.183.01 = NVIDIA A100",
            "a10g = NVIDIA A10G",
            "gh200@560.35.03 = NVIDIA GH200",
            "h100@570.124.06 = NVIDIA H100",
            "l4-shared@550.90.07 = NVIDIA L4",
            "max-1550 = Intel Data Center GPU Max 1550",
            "mi300x@6.10.5 = AMD Instinct MI300X",
            "rtx-pro-6000-blackwell-server-edition-shared-gke = NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "t4@470.182.03 = Tesla T4",
        ]
    );
    assert_eq!(found["without_gpu"], 4);
    let mig = target(&found, "a100-mig@535.183.01");
    assert_eq!((mig["virtualisation"].as_str(), mig["platform"].as_str()), (Some("mig"), Some("linux/amd64")));
    assert_eq!(mig["machines"], serde_json::json!(["a100-mig-0", "a100-mig-1", "a100-mixed-0"]));
    assert_eq!(target(&found, "l4-shared@550.90.07")["sharing"], "time-slicing");
    assert_eq!(target(&found, "gh200@560.35.03")["platform"], "linux/arm64");
    let gke = target(&found, "a100-gke");
    assert_eq!((gke["runtime"].as_str(), gke.get("driver")), (Some("gke"), None));
    // AKS says the machine's type alone, and no driver.
    assert_eq!(target(&found, "a100")["machines"], serde_json::json!(["aks-gpu-14263738-vmss000000"]));
    let left: Vec<&str> =
        found["left_out"].as_array().unwrap().iter().map(|l| l["machines"][0].as_str().unwrap()).collect();
    assert_eq!(left, ["win-0", "ip-10-0-3-8.eu-west-1.compute.internal", "bare-0"]);
    let amd = target(&found, "mi300x@6.10.5");
    assert_eq!(amd["machines"], serde_json::json!(["mi300x-0", "mi300x-1"]));
    assert_eq!(amd["driver"], "6.10.5");
}

/// Acceptance: the fleet of a node list, taken as it is printed, judged in one run.
#[test]
fn what_is_printed_is_a_fleet() {
    let ran = run(&["fleet", "from-nodes", NODES]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.err, "note: 3 kinds of GPUs are not judged: the comments tell why\n");
    assert!(
        ran.out.contains("# driver: no label tells it (GKE's label says latest, which is no version)\n"),
        "{ran:?}"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "fleet.toml", &ran.out);
    let verdicts = judged(&file);
    for wanted in [
        "a100-mig@535.183.01 ok",
        "l4-shared@550.90.07 ok",
        "h100@570.124.06 ok",
        "t4@470.182.03 fail",
        "gh200@560.35.03 fail",
        "a100-gke cpu",
    ] {
        assert!(verdicts.contains(&wanted.to_owned()), "{wanted}: {verdicts:?}");
    }
    assert_eq!(verdicts.len(), 13);
    let schema: Value =
        serde_json::from_str(&fs::read_to_string(testdata().join("../rules/imagelint.schema.json")).unwrap())
            .unwrap();
    let value = serde_json::to_value(ran.out.parse::<toml::Table>().unwrap()).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value));
}

#[test]
fn the_order_of_nodes_and_the_way_they_come_change_nothing() {
    let ran = run(&["fleet", "from-nodes", NODES, "-q"]);
    let text = fs::read_to_string(testdata().join(NODES)).unwrap();
    let mut list: Value = serde_json::from_str(&text).unwrap();
    list["items"].as_array_mut().unwrap().reverse();
    let from_pipe = run_with_input(&["fleet", "from-nodes", "-", "-q"], list.to_string().as_bytes());
    assert_eq!((from_pipe.out, from_pipe.code), (ran.out.clone(), 0));
    let singly: String = list["items"].as_array().unwrap().iter().map(|n| format!("{n}\n")).collect();
    assert_eq!(run_with_input(&["fleet", "from-nodes", "-", "-q"], singly.as_bytes()).out, ran.out);
    let dir = tempfile::tempdir().unwrap();
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- kind: Node\n  metadata:\n    name: n\n    labels:\n      nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3\n      nvidia.com/cuda.driver.major: \"550\"\n      nvidia.com/cuda.driver.minor: \"06\"\n      nvidia.com/cuda.driver.rev: \"\"\n";
    let file = write(dir.path(), "nodes.yaml", yaml);
    assert_eq!(targets(&json(&["fleet", "from-nodes", &file])), ["h100@550.06 = NVIDIA H100"]);
}

#[test]
fn labels_from_anybody_stay_words() {
    let evil = "x\"\n[rules]\nno-device-code-for-target = \"off\"\n#\u{1b}[2J\u{202e}";
    let node = serde_json::json!({ "kind": "Node", "metadata": { "name": evil, "labels": {
        "nvidia.com/gpu.product": evil, "nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/cuda.driver-version.full": evil, "kubernetes.io/arch": evil,
        "amd.com/gpu.product-name": evil, "gpu.intel.com/product": evil } },
        "status": { "capacity": { format!("nvidia.com/mig-1{evil}"): "1", "nvidia.com/gpu": evil } } });
    let ran = run_with_input(&["fleet", "from-nodes", "-"], node.to_string().as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.out.contains('\u{202e}'), "{ran:?}");
    let dir = tempfile::tempdir().unwrap();
    let read: toml::Table = ran.out.parse().unwrap();
    assert_eq!(read.keys().collect::<Vec<_>>(), ["target"], "{ran:?}");
    // A platform that no host has is the user's to see, where the file is read.
    let file = write(dir.path(), "fleet.toml", &ran.out);
    assert!(run(&["scan", SAMPLE, "--fleet", &file, "-q"]).code <= 2);
}

#[test]
fn lists_that_hold_no_fleet() {
    let cpu = r#"{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "a"}}, {"kind": "Node", "metadata": {"name": "b"}}]}"#;
    run_with_input(&["fleet", "from-nodes", "-"], cpu.as_bytes()).refused(&["standard input", "2 nodes", "GPU"]);
    run_with_input(&["fleet", "from-nodes", "-"], b"{\"kind\": \"PodList\", \"items\": []}")
        .refused(&["`PodList`"]);
    run_with_input(&["fleet", "from-nodes", "-"], b"No resources found\n").refused(&["kubectl get nodes"]);
    run_with_input(&["fleet", "from-nodes", "-"], b"{\"kind\": \"List\", \"items\": [{").refused(&["line 1"]);
    run(&["fleet", "from-nodes", "fleet/none.json"]).refused(&["fleet/none.json"]);
    // Something is printed, but it is no answer: none of it can be judged.
    let amd = r#"{"kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"amd.com/gpu": "8"}}}"#;
    let ran = run_with_input(&["fleet", "from-nodes", "-"], amd.as_bytes());
    assert_eq!(ran.code, 2);
    assert!(ran.out.contains("# Not judged: amd.com/gpu: 8: no label names the product"), "{ran:?}");
}

/// A machine of AMD's GPUs has none of NVIDIA's, and ids name products where no label does.
#[test]
fn nodes_of_other_makers_by_machine_and_by_device() {
    let nodes = serde_json::json!({ "kind": "List", "items": [
        { "kind": "Node", "metadata": { "name": "azure", "labels": {
            "node.kubernetes.io/instance-type": "Standard_ND96isr_MI300X_v5" } } },
        { "kind": "Node", "metadata": { "name": "labeller", "labels": { "amd.com/gpu.device-id": "744c" } } },
        { "kind": "Node", "metadata": { "name": "arc", "labels": {
            "gpu.intel.com/device-id.0300-e20b.present": "true", "gpu.intel.com/device-id.0300-e20b.count": "1" } } },
        { "kind": "Node", "metadata": { "name": "new", "labels": {
            "gpu.intel.com/device-id.0300-ffff.present": "true" } } },
    ] });
    let ran = run_with_input(&["fleet", "from-nodes", "-", "--format", "json"], nodes.to_string().as_bytes());
    let found = ran.json();
    let wanted = ["b580 = Intel Arc B580", "mi300x = AMD Instinct MI300X", "rx-7900-xtx = AMD Radeon RX 7900 XTX"];
    let got = targets(&found);
    assert!(got.iter().any(|t| t.ends_with(wanted[0])), "{got:?}");
    assert_eq!(got.len(), 3, "{got:?}");
    assert!(got.iter().any(|t| t == wanted[1]) && got.iter().any(|t| t == wanted[2]), "{got:?}");
    assert_eq!(found["left_out"][0]["what"], "Intel device 0300-ffff");
    let from_instances = json(&["fleet", "from-instances", "Standard_ND96isr_MI300X_v5"]);
    assert_eq!(targets(&from_instances), ["mi300x = AMD Instinct MI300X"]);
}

#[test]
fn machine_types() {
    let found = json(&[
        "fleet",
        "from-instances",
        "g5.xlarge,p5.48xlarge,a2-highgpu-1g",
        "Standard_NC24ads_A100_v4",
        "a4x-highgpu-4g",
    ]);
    assert_eq!(
        targets(&found),
        ["a100 = NVIDIA A100", "a10g = NVIDIA A10G", "gb200 = NVIDIA GB200", "h100 = NVIDIA H100"]
    );
    assert_eq!(
        target(&found, "a100")["machines"],
        serde_json::json!(["Standard_NC24ads_A100_v4", "a2-highgpu-1g"])
    );
    let ran = run(&["fleet", "from-instances", "g5.xlarge"]);
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(judged(&write(dir.path(), "fleet.toml", &ran.out)), ["a10g ok"]);
    assert!(ran.out.contains("instances.toml `g5`: "), "{ran:?}");
    run(&["fleet", "from-instances", "g5.xlrage"]).refused(&["`g5.xlrage`", "did you mean `g5.xlarge`"]);
    run(&["fleet", "from-instances", "g5.xlarge,h100"]).refused(&["`h100`"]);
    run(&["fleet", "from-instances", ""]).refused(&["no machine type is named"]);
}

#[test]
fn a_host_s_own_files() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_str().unwrap();
    let from_root = ["fleet", "from-host", "--root", root];
    run(&from_root).refused(&["no GPU here", "--from FILE"]);
    write(
        dir.path(),
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n",
    );
    write(dir.path(), "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA L40S\n");
    write(dir.path(), "sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 110000\n");
    write(dir.path(), "sys/class/drm/card0/device/vendor", "0x8086\n");
    write(dir.path(), "sys/class/drm/card1/device/vendor", "0x10de\n");
    let found = json(&from_root);
    assert_eq!(targets(&found), ["gfx1100 = gfx1100", "l40s@570.86.15 = NVIDIA L40S"]);
    let left: Vec<&str> =
        found["left_out"].as_array().unwrap().iter().map(|l| l["what"].as_str().unwrap()).collect();
    assert_eq!(left, ["a GPU of Intel, device "]);
    let fleet = run(&from_root).out;
    let verdicts = judged(&write(dir.path(), "fleet.toml", &fleet));
    assert!(verdicts.contains(&"l40s@570.86.15 ok".to_owned()), "{verdicts:?}");
}

#[test]
fn what_nvidia_smi_says() {
    let dir = tempfile::tempdir().unwrap();
    let answer =
        "NVIDIA A100-SXM4-80GB, 535.183.01, 8.0, Enabled\nNVIDIA A100-SXM4-80GB, 535.183.01, 8.0, Disabled\n";
    let file = write(dir.path(), "smi.csv", answer);
    let wanted = ["a100-mig@535.183.01 = NVIDIA A100", "a100@535.183.01 = NVIDIA A100"];
    assert_eq!(targets(&json(&["fleet", "from-host", "--from", &file])), wanted);
    run(&["fleet", "from-host", "--from", SAMPLE]).refused(&[SAMPLE, "nvidia-smi --query-gpu"]);
    // A program of that name on the path, whose driver does not know compute_cap yet.
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2;; esac\ncat {file}\n"
    );
    let smi = write(dir.path(), "bin/nvidia-smi", &script);
    fs::set_permissions(&smi, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", dir.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let ran = finish(program().args(["fleet", "from-host", "--format", "json"]).env("PATH", path));
    assert_eq!(ran.code, 0, "{ran:?}");
    let found = ran.json();
    let named: Vec<String> = targets(&found).into_iter().filter(|t| t.contains("A100")).collect();
    assert_eq!(named.len(), 2, "{found}");
    assert!(found["targets"][0]["platform"].as_str().unwrap().starts_with("linux/"), "{found}");
}

#[test]
fn presets() {
    let all = run(&["fleet", "presets", "--format", "json"]).json();
    let names: Vec<&str> = all.as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["gke", "eks", "aks", "jetson", "wsl2", "cloud-run"]);
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        let ran = run(&["fleet", "preset", name]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.lines().all(|l| l.is_empty() || l.starts_with('#')), "{ran:?}");
        // Rows are taken by deleting the # before them.
        let keys = ["[[target]]", "name =", "gpu =", "driver =", "runtime ="];
        let row =
            |l: &str| l.strip_prefix("# ").filter(|l| keys.iter().any(|k| l.starts_with(k))).map(str::to_owned);
        let taken: String = ran.out.lines().filter_map(row).map(|l| format!("{l}\n")).collect();
        let rows = taken.matches("[[target]]").count();
        assert_eq!(rows == 0, name == "wsl2", "{ran:?}");
        let file = write(dir.path(), &format!("{name}.toml"), &taken);
        if rows > 0 {
            assert_eq!(judged(&file).len(), rows, "{taken}");
        }
        let named = run(&["fleet", "preset", name, "Orin", "RTX 4090@>=550, <560"]);
        let file = write(dir.path(), "named.toml", &named.out);
        assert_eq!((named.code, judged(&file).len()), (0, 2), "{named:?}");
    }
    let gke = json(&["fleet", "preset", "gke", "l4@550"]);
    assert_eq!(target(&gke, "l4-gke@550")["runtime"], "gke");
    run(&["fleet", "preset", "gkee"]).refused(&["`gkee`", "imagelint fleet preset gke"]);
    run(&["fleet", "preset", "gke", "h10000"]).refused(&["h10000"]);
}

#[test]
fn init_writes_a_file_that_is_taken_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "docker/Dockerfile", "ARG V=12.4.1\nFROM nvidia/cuda:${V}-devel-ubuntu22.04\n");
    let ran = init(&dir, &[]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "imagelint.toml: no target yet, an example as a comment\nnext: imagelint scan IMAGE\n"),
        "{ran:?}"
    );
    let file = dir.path().join("imagelint.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("nvidia/cuda:12.4.1-devel-ubuntu22.04 has CUDA 12.4, which needs driver 525.60.13 or newer; to compile PTX of it, 550\n"), "{text}");
    assert!(judged(file.to_str().unwrap()).is_empty());
    // All that is commented out is right once its # is deleted.
    let keys =
        ["[", "required =", "devel-", "rule =", "path =", "reason =", "expires =", "name =", "gpu =", "driver ="];
    let taken: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("# "))
        .filter(|l| keys.iter().any(|k| l.starts_with(k)))
        .collect();
    let all = write(dir.path(), "all.toml", &(taken.join("\n") + "\n"));
    assert_eq!(taken.len(), 13, "{taken:?}");
    assert_eq!(judged(&all), ["production ok"]);

    let again = init(&dir, &[]);
    again.refused(&["imagelint.toml is there already", "--force"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let nodes = testdata().join(NODES);
    let ran = init(&dir, &["--force", "--nodes", nodes.to_str().unwrap()]);
    assert!(ran.out.starts_with("imagelint.toml: 13 targets from the cluster's nodes\n"), "{ran:?}");
    // Found from a folder below, as scan finds it.
    let ran = finish(
        program()
            .current_dir(dir.path().join("docker"))
            .args(["scan", "--format", "json", "-q"])
            .arg(testdata().join(SAMPLE)),
    );
    assert_eq!((ran.code, common::verdicts(&ran.json()).len()), (1, 13));
    init(&dir, &["nowhere"]).refused(&["nowhere"]);
    init(&dir, &["--force", "--nodes", "none.json"]).refused(&["none.json"]);
}

#[test]
fn init_names_the_schema_for_editors() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(init(&dir, &["--schema"]).code, 0);
    let text = fs::read_to_string(dir.path().join("imagelint.toml")).unwrap();
    assert_eq!(text.lines().next(), Some("#:schema ./imagelint.schema.json"));
    let written = fs::read_to_string(dir.path().join("imagelint.schema.json")).unwrap();
    assert_eq!(written, fs::read_to_string(testdata().join("../rules/imagelint.schema.json")).unwrap());
    fs::remove_file(dir.path().join("imagelint.toml")).unwrap();
    init(&dir, &["--schema"]).refused(&["imagelint.schema.json is there already"]);
}
