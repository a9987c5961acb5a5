//! `kubectl get nodes -o json`, or `-o yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Machine, labels};
use crate::catalog::Catalog;

/// Why a text holds no nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodesError {
    #[error("no JSON: {0}")]
    Json(String),
    #[error("neither JSON nor YAML: {0}")]
    Yaml(String),
    #[error("not text in UTF-8")]
    NotUtf8,
    #[error("holds no nodes, but {0}")]
    OtherKind(String),
    #[error("holds no nodes")]
    Empty,
}

/// One node, as far as it tells of GPUs.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub labels: BTreeMap<String, String>,
    pub capacity: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Document {
    kind: Option<String>,
    items: Option<Vec<Item>>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Item {
    kind: Option<String>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Metadata {
    name: Option<String>,
    labels: Option<BTreeMap<String, Scalar>>,
}

#[derive(Default, Deserialize)]
struct Status {
    capacity: Option<BTreeMap<String, Scalar>>,
}

/// A text, also where YAML made something else of it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Whole(i64),
    Broken(f64),
    Flag(bool),
    Nothing(()),
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Whole(number) => number.to_string(),
            Self::Broken(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Nothing(()) => String::new(),
        }
    }
}

/// The nodes of a list, of a `NodeList`, or one by one, with their GPUs. Objects of other kinds in a list are passed over.
pub fn machines(bytes: &[u8], catalog: &Catalog) -> Result<Vec<Machine>, NodesError> {
    let text = std::str::from_utf8(bytes).map_err(|_| NodesError::NotUtf8)?;
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let documents = if text.starts_with('{') { json(text)? } else { yaml(text)? };
    let mut out = Vec::new();
    let mut other = None;
    for document in documents {
        let kind = document.kind.unwrap_or_default();
        match (kind.as_str(), document.items) {
            ("List" | "NodeList", items) => {
                for item in items.unwrap_or_default() {
                    match item.kind.as_deref() {
                        None | Some("Node") => out.push(machine(item.metadata, item.status, catalog)),
                        Some(kind) => other = Some(kind.to_owned()),
                    }
                }
            }
            ("Node", _) => out.push(machine(document.metadata, document.status, catalog)),
            (kind, _) => other = Some(kind.to_owned()),
        }
    }
    match (out.is_empty(), other) {
        (false, _) => Ok(out),
        (true, Some(kind)) if !kind.is_empty() => {
            let kind: String = kind.chars().take(60).collect();
            Err(NodesError::OtherKind(format!("`{kind}`")))
        }
        (true, _) => Err(NodesError::Empty),
    }
}

fn json(text: &str) -> Result<Vec<Document>, NodesError> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Document>();
    documents.collect::<Result<_, _>>().map_err(|e| NodesError::Json(e.to_string()))
}

fn yaml(text: &str) -> Result<Vec<Document>, NodesError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        budget: serde_saphyr::budget! {
            max_events: 20_000_000,
            max_nodes: 10_000_000,
            max_depth: 64,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 200_000,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|e| NodesError::Yaml(e.to_string()))
}

fn machine(metadata: Metadata, status: Status, catalog: &Catalog) -> Machine {
    let texts = |map: Option<BTreeMap<String, Scalar>>| {
        map.unwrap_or_default().into_iter().map(|(key, value)| (key, value.text())).collect()
    };
    let node = Node { labels: texts(metadata.labels), capacity: texts(status.capacity) };
    let name = metadata.name.filter(|n| !n.is_empty()).unwrap_or_else(|| "without a name".to_owned());
    Machine { name, seen: labels::seen(&node, catalog) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::Seen;

    fn read(text: &str) -> Result<Vec<Machine>, NodesError> {
        machines(text.as_bytes(), Catalog::embedded())
    }

    const NODE: &str =
        r#"{"kind": "Node", "metadata": {"name": "a", "labels": {"nvidia.com/gpu.product": "Tesla-T4"}}}"#;

    fn one(machines: &[Machine]) -> bool {
        let [machine] = machines else { panic!("{machines:?}") };
        machine.name == "a" && matches!(machine.seen.as_slice(), [Seen::Gpu { kind, .. }] if kind.gpu == "Tesla T4")
    }

    #[test]
    fn lists_and_single_nodes() {
        assert!(one(&read(NODE).unwrap()));
        assert!(one(&read(&format!("\u{feff}\n {{\"kind\": \"List\", \"items\": [{NODE}]}}")).unwrap()));
        let bare = NODE.replace("\"kind\": \"Node\", ", "");
        assert!(one(&read(&format!("{{\"kind\": \"NodeList\", \"items\": [{bare}]}}")).unwrap()));
        assert_eq!(read(&format!("{NODE}\n{NODE}")).unwrap().len(), 2);
        let mixed = format!("{{\"kind\": \"List\", \"items\": [{{\"kind\": \"Pod\"}}, {NODE}]}}");
        assert!(one(&read(&mixed).unwrap()));
    }

    #[test]
    fn yaml_is_read_too() {
        let node = "kind: Node\nmetadata:\n  name: a\n  labels:\n    nvidia.com/gpu.product: Tesla-T4\n    x: true\nstatus:\n  capacity:\n    nvidia.com/gpu: 4\n";
        assert!(one(&read(node).unwrap()));
        assert_eq!(read(&format!("{node}---\n{node}")).unwrap().len(), 2);
    }

    #[test]
    fn what_holds_no_nodes_is_told() {
        assert_eq!(read("{\"kind\": \"Pod\"}"), Err(NodesError::OtherKind("`Pod`".into())));
        assert_eq!(read("{\"kind\": \"List\", \"items\": []}"), Err(NodesError::Empty));
        assert!(matches!(read("{\"kind\": \"Node\", "), Err(NodesError::Json(_))));
        assert!(matches!(read("NAME   STATUS\na      Ready\n"), Err(NodesError::Yaml(_))));
        assert!(read("").is_err());
        assert_eq!(machines(b"\xff\xfe{\0", Catalog::embedded()), Err(NodesError::NotUtf8));
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&format!("{{\"kind\": \"Node\", \"x\": {}", "[".repeat(100_000))).is_err());
        let bomb = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\nkind: Node\n";
        assert!(read(bomb).is_err() || read(bomb).is_ok_and(|m| m.len() == 1));
    }
}
