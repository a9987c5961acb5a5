//! `--emit-affinity` and `--emit-compatibility`: what is written selects, of a cluster's nodes, those whose targets are
//! ok, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, run, testdata};

const NODES: &str = "fleet/nodes.json";

/// The nodes' labels, by name.
fn nodes() -> BTreeMap<String, BTreeMap<String, String>> {
    let list: Value = serde_json::from_str(&fs::read_to_string(testdata().join(NODES)).unwrap()).unwrap();
    let labels = |node: &Value| {
        let all = node["metadata"]["labels"].as_object().unwrap().iter();
        all.map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())).collect()
    };
    let name = |node: &Value| node["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(|node| (name(node), labels(node))).collect()
}

/// One expression, as Kubernetes' scheduler takes it.
fn holds(expression: &Value, labels: &BTreeMap<String, String>) -> bool {
    let label = labels.get(expression["key"].as_str().unwrap());
    let values: Vec<&str> =
        expression["values"].as_array().map_or(Vec::new(), |v| v.iter().map(|v| v.as_str().unwrap()).collect());
    let number = |text: &str| text.parse::<i64>().ok();
    let one = || {
        assert_eq!(values.len(), 1, "{expression}");
        number(values[0]).unwrap()
    };
    match expression["operator"].as_str().unwrap() {
        "In" => label.is_some_and(|l| values.contains(&l.as_str())),
        "NotIn" => label.is_none_or(|l| !values.contains(&l.as_str())),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        "Gt" => label.and_then(|l| number(l)).is_some_and(|l| l > one()),
        "Lt" => label.and_then(|l| number(l)).is_some_and(|l| l < one()),
        other => panic!("{other} is no operator"),
    }
}

/// The nodes that an affinity selects: any term, all expressions of it.
fn selected(yaml: &str) -> BTreeSet<String> {
    let pod: Value = serde_saphyr::from_str(yaml).unwrap();
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array().unwrap();
    assert!(!terms.is_empty());
    let any = |labels: &BTreeMap<String, String>| {
        terms.iter().any(|t| t["matchExpressions"].as_array().unwrap().iter().all(|e| holds(e, labels)))
    };
    for term in terms {
        for expression in term["matchExpressions"].as_array().unwrap() {
            let op = expression["operator"].as_str().unwrap();
            let count = expression["values"].as_array().map_or(0, Vec::len);
            assert_eq!(count == 0, matches!(op, "Exists" | "DoesNotExist"), "{expression}");
        }
    }
    nodes().into_iter().filter(|(_, labels)| any(labels)).map(|(name, _)| name).collect()
}

/// The nodes that an image compatibility specification holds for, were the labels features of them.
fn compatible(yaml: &str) -> BTreeSet<String> {
    let document: Value = serde_saphyr::from_str(yaml).unwrap();
    assert_eq!(document["version"], "v1alpha1");
    let rule = &document["compatibilities"][0]["rules"][0];
    let any = |labels: &BTreeMap<String, String>| {
        rule["matchAny"].as_array().unwrap().iter().any(|term| {
            term["matchFeatures"].as_array().unwrap().iter().all(|feature| {
                assert_eq!(feature["feature"], "local.label");
                feature["matchExpressions"].as_object().unwrap().iter().all(|(key, e)| {
                    let op = e["op"].as_str().unwrap();
                    assert!(["In", "Exists", "DoesNotExist", "Gt", "Lt"].contains(&op), "{e}");
                    let all = serde_json::json!({ "key": key, "operator": op, "values": e["value"] });
                    holds(&all, labels)
                })
            })
        })
    };
    nodes().into_iter().filter(|(_, labels)| any(labels)).map(|(name, _)| name).collect()
}

/// The cluster's fleet, in a file, and the machines of each target.
fn fleet(dir: &Path) -> (String, BTreeMap<String, BTreeSet<String>>) {
    let file = dir.join("fleet.toml");
    fs::write(&file, run(&["fleet", "from-nodes", NODES, "--quiet"]).out).unwrap();
    let found = run(&["fleet", "from-nodes", NODES, "--format", "json", "--quiet"]).json();
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let machines = |t: &Value| t["machines"].as_array().unwrap().iter().map(text).collect();
    let all = found["targets"].as_array().unwrap().iter().map(|t| (text(&t["name"]), machines(t))).collect();
    (file.to_str().unwrap().to_owned(), all)
}

struct Emitted {
    ran: Ran,
    affinity: Option<String>,
    compatibility: Option<String>,
}

fn emit(dir: &Path, image: &str, fleet: &str, more: &[&str]) -> Emitted {
    let (affinity, compatibility) = (dir.join("affinity.yaml"), dir.join("compatibility.yaml"));
    for file in [&affinity, &compatibility] {
        let _ = fs::remove_file(file);
    }
    let args = ["scan", image, "--fleet", fleet, "--format", "json", "--emit-affinity", affinity.to_str().unwrap()];
    let args = [&args[..], &["--emit-compatibility", compatibility.to_str().unwrap()], more].concat();
    let ran = run(&args);
    let read = |file: &Path| fs::read_to_string(file).ok();
    Emitted { ran, affinity: read(&affinity), compatibility: read(&compatibility) }
}

/// For every case, whatever its verdicts are: the round trip from the nodes to the nodes.
#[test]
fn the_nodes_of_ok_targets_are_selected_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let (file, machines) = fleet(dir.path());
    // Told by its machine type alone, of a family that no list has the types of.
    let untold = "aks-gpu-14263738-vmss000000";
    let (mut some, mut sets) = (0, BTreeSet::new());
    let names = fs::read_dir(testdata().join("cases/images")).unwrap();
    let names: BTreeSet<String> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    for (at, name) in names.into_iter().enumerate() {
        let image = format!("cases/images/{name}");
        // The second for some: each takes a scan.
        for wanted in [&["ok"][..], &["ok", "warn", "slow"]].into_iter().take(if at % 4 == 0 { 2 } else { 1 }) {
            let emitted = emit(dir.path(), &image, &file, &["--emit-for", &wanted.join(",")]);
            // The report is there in any case.
            let verdicts = emitted.ran.json();
            let of = |counts: bool| -> BTreeSet<String> {
                let targets = verdicts["targets"].as_array().unwrap().iter();
                let targets = targets.filter(|t| wanted.contains(&t["verdict"].as_str().unwrap()) == counts);
                targets.flat_map(|t| machines[t["name"].as_str().unwrap()].clone()).collect()
            };
            // A node with several kinds of GPUs is wanted for what runs there.
            let good = of(true);
            let Some(yaml) = emitted.affinity else {
                assert!(good.is_empty(), "{name}: {:?}", emitted.ran);
                assert_eq!(emitted.ran.code, 2, "{:?}", emitted.ran);
                assert!(emitted.ran.err.contains("there is no node to send it to"), "{:?}", emitted.ran);
                continue;
            };
            let mut expected = good.clone();
            if expected.remove(untold) {
                assert!(yaml.contains("# a100: nodes of Standard_NC*ads_A100_v4"), "{yaml}");
            }
            assert_eq!(selected(&yaml), expected, "{name} {wanted:?}: {yaml}");
            for target in verdicts["targets"].as_array().unwrap() {
                let (target, verdict) = (target["name"].as_str().unwrap(), target["verdict"].as_str().unwrap());
                let left = yaml.contains(&format!("# Left out, {target}: {verdict}: "));
                assert_eq!(left, !wanted.contains(&verdict), "{name}: {target} {verdict}\n{yaml}");
            }
            if let Some(compatibility) = emitted.compatibility {
                let found = compatible(&compatibility);
                assert!(found.is_subset(&expected), "{name}: {found:?}: {compatibility}");
            }
            some += 1;
            sets.insert(expected);
        }
    }
    assert!(some > 40 && sets.len() > 8, "{some} affinities, {} different ones", sets.len());
}

/// Ranges of drivers, by the numbers of the labels.
#[test]
fn drivers_are_told_by_their_parts() {
    let dir = tempfile::tempdir().unwrap();
    let image = "cases/images/no-gpu-code.tar";
    let ours = |driver: &str| {
        let file = dir.path().join("fleet.toml");
        fs::write(&file, format!("[[target]]\ngpu = \"H100\"\ndriver = \"{driver}\"\n")).unwrap();
        let emitted = emit(dir.path(), image, file.to_str().unwrap(), &["--emit-for", "ok,warn,slow,cpu,fail"]);
        selected(&emitted.affinity.unwrap_or_else(|| panic!("{:?}", emitted.ran))).contains("h100-0")
    };
    // The node has 570.124.06.
    for inside in [
        "570.124.06",
        "570.124.6",
        "570",
        "570.124",
        ">=570",
        ">=535.54",
        ">=570.100",
        ">=570.124.06",
        ">=560, <580",
        ">=535, <570.125",
        ">=570.100, <570.125",
        ">=570.124.05, <571",
    ] {
        assert!(ours(inside), "{inside}");
    }
    for outside in [
        "570.124.07",
        "570.124.05",
        "570.123",
        "560",
        "575",
        ">=575",
        ">=570.125",
        ">=570.124.07",
        ">=535.54, <570",
        ">=535, <570.124",
        ">=570.100, <570.124",
    ] {
        assert!(!ours(outside), "{outside}");
    }
}

#[test]
fn what_labels_cannot_tell_apart_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fleet.toml");
    let fleet = |rows: &str| {
        fs::write(&file, rows).unwrap();
        emit(dir.path(), "docker-archive:images/sample.tar", file.to_str().unwrap(), &["--fail-on", "never"])
    };
    // The same nodes; the runtime decides, and no label tells it.
    let legacy = "[[target]]\nname = \"plain\"\ngpu = \"H100\"\n[[target]]\nname = \"wsl\"\ngpu = \"H100\"\nruntime = \"gke\"\n";
    let gke = fleet(legacy);
    let yaml = gke.affinity.unwrap();
    assert!(yaml.contains("# Left out, wsl: cpu"), "{yaml}");
    assert!(selected(&yaml).contains("h100-0") && yaml.contains("cloud.google.com/gke-accelerator"), "{yaml}");
    // Started by the image's own variables, on the same GPUs: which nodes those are, no label says.
    let rows = "[[target]]\nname = \"a\"\ngpu = \"A100\"\n[[target]]\nname = \"b\"\ngpu = \"A100\"\nstart = \"env\"\n\
                [[target]]\nname = \"h\"\ngpu = \"H100\"\n";
    fs::write(&file, rows).unwrap();
    let emitted = emit(dir.path(), "cases/images/not-requested.tar", file.to_str().unwrap(), &[]);
    let verdicts: Vec<Value> =
        emitted.ran.json()["targets"].as_array().unwrap().iter().map(|t| t["verdict"].clone()).collect();
    assert_eq!(verdicts, ["ok", "cpu", "ok"]);
    let yaml = emitted.affinity.unwrap();
    assert!(yaml.contains("# Left out, a: no label tells its nodes from those of b, which is cpu"), "{yaml}");
    assert_eq!(selected(&yaml), BTreeSet::from(["h100-0".to_owned()]), "{yaml}");
    // A driver that is another target's is kept out by its branch.
    let rows = "[[target]]\nname = \"any\"\ngpu = \"T4\"\n[[target]]\nname = \"old\"\ngpu = \"T4\"\ndriver = \"470.182.03\"\n";
    fs::write(&file, rows).unwrap();
    let emitted = emit(dir.path(), "images/sample.tar", file.to_str().unwrap(), &["--emit-for", "ok,warn"]);
    let yaml = emitted.affinity.unwrap_or_else(|| panic!("{:?}", emitted.ran));
    assert!(yaml.contains("# Left out, old: fail"), "{yaml}");
    assert!(!selected(&yaml).contains("t4-old-0"), "{yaml}");
}

#[test]
fn usage_is_checked_and_nothing_from_outside_leaves_a_comment() {
    let run = |args: &[&str]| run(&[&["scan", "-q", "images/sample.tar", "--target", "a100"], args].concat());
    run(&["--emit-affinity", "-"]).refused(&["standard output is the report's; name a file"]);
    run(&["--emit-for", "good", "--emit-affinity", "x"])
        .refused(&["there are ok, warn, slow, cpu, blocked, unknown, fail"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    let file = file.to_str().unwrap();
    run(&["oci:builders/images/umoci.oci", "--emit-affinity", file]).lacking(&["are of one image"]);
    // A name of a target stands in comments; it cannot end one.
    let fleet = dir.path().join("fleet.toml");
    let name = "x: y\\u2028spec: {hostPID: true} # {{ }} `$(id)`";
    fs::write(&fleet, format!("[[target]]\nname = \"{name}\"\ngpu = \"A100\"\n")).unwrap();
    let emitted = emit(dir.path(), "images/sample.tar", fleet.to_str().unwrap(), &[]);
    let yaml = emitted.affinity.unwrap();
    let pod: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(pod["spec"].as_object().unwrap().len(), 1, "{yaml}");
    assert!(!yaml.contains('\u{2028}'), "{yaml}");
}
