//! A registry that serves one OCI layout, whose answers a test may change: what a server should not do.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Reply, Request, Server, part};
use crate::common::testdata;

/// What a test makes of an answer: the request, how often its path was asked for before, and the honest answer.
pub type Change = dyn Fn(&Request, usize, Reply) -> Reply + Send + Sync;

/// Below `/v2/NAME/`, with its type.
type Files = BTreeMap<String, (String, Vec<u8>)>;

/// Of the image that is served in every test: its layers' digests.
pub struct Served {
    pub server: Server,
    pub layers: Vec<String>,
}

fn files(layout: &str) -> (Files, Vec<String>) {
    let root = testdata().join("builders/images").join(layout);
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let blob = |digest: &Value| {
        let digest = digest.as_str().unwrap();
        (digest.to_owned(), std::fs::read(root.join("blobs").join(digest.replace(':', "/"))).unwrap())
    };
    let index = json(&std::fs::read(root.join("index.json")).unwrap());
    let (digest, bytes) = blob(&index["manifests"][0]["digest"]);
    let manifest = json(&bytes);
    let media_type = "application/vnd.oci.image.manifest.v1+json".to_owned();
    let mut out = Files::new();
    out.insert(format!("manifests/{digest}"), (media_type.clone(), bytes.clone()));
    out.insert("manifests/1".to_owned(), (media_type, bytes));
    let layers = manifest["layers"].as_array().unwrap();
    let mut digests = Vec::new();
    for (place, descriptor) in layers.iter().chain([&manifest["config"]]).enumerate() {
        let (digest, bytes) = blob(&descriptor["digest"]);
        out.insert(format!("blobs/{digest}"), ("application/octet-stream".to_owned(), bytes));
        if place < layers.len() {
            digests.push(digest);
        }
    }
    (out, digests)
}

/// Serves the layout as any repository.
pub fn serve(layout: &str, change: impl Fn(&Request, usize, Reply) -> Reply + Send + Sync + 'static) -> Served {
    let (files, layers) = files(layout);
    let asked: Mutex<HashMap<String, usize>> = Mutex::default();
    let change: Arc<Change> = Arc::new(change);
    let server = Server::start(move |request| {
        let kind = ["manifests/", "blobs/"].into_iter().find_map(|k| request.path.rfind(k));
        let honest = match kind.and_then(|at| files.get(&request.path[at..])) {
            Some((media_type, bytes)) => part(request, bytes, None).with("content-type", media_type),
            None => Reply::status(404),
        };
        let mut asked = asked.lock().unwrap();
        let before = asked.entry(request.path.clone()).or_default();
        *before += 1;
        let before = *before - 1;
        change(request, before, honest)
    });
    Served { server, layers }
}

impl Served {
    /// The image's name.
    pub fn image(&self) -> String {
        format!("{}/a/b:1", self.server.address())
    }

    /// Whom every request was told who asks, by path.
    pub fn authorizations(&self) -> Vec<(String, Option<String>)> {
        let all = self.server.log().into_iter();
        all.map(|r| (r.path.clone(), r.header("authorization").map(str::to_owned))).collect()
    }
}

pub fn is_layer(request: &Request) -> bool {
    request.path.contains("/blobs/")
}
