//! Registries of the real kind, started on free ports of this machine, and images pushed to them.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{on_path, skipped, testdata};

/// Of alice, whose password is s3cret.
pub const HTPASSWD: &str = "alice:$2y$05$q5vLxpasvlYB4cYHsu.xouL4vO99b.AwQwSiXsxV1WjB71q61Z40.\n";

/// A registry, stopped when it is dropped.
pub struct Registry {
    pub address: String,
    served: Option<(Child, tempfile::TempDir)>,
    store: Option<PathBuf>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.served {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Registry {
    /// Starts one. `store`: where its images are, shared with others; `more` of its configuration: within `http`, and
    /// at the end.
    pub fn start(store: Option<&Path>, http: &str, more: &str) -> Self {
        let own = tempfile::tempdir().unwrap();
        let store = store.map_or_else(|| own.path().join("images"), Path::to_owned);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: \"{address}\", secret: x{http}}}\n{more}\n",
            store.display()
        );
        let file = own.path().join("config.yml");
        std::fs::write(&file, config).unwrap();
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let registry = Self { address, served: Some((child, own)), store: Some(store) };
        let start = Instant::now();
        while TcpStream::connect(&registry.address).is_err() {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "docker-registry does not answer on {}",
                registry.address
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        registry
    }

    pub fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// The folder of its images, where it was started here.
    pub fn store(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    /// Pushes byte for byte: skopeo compresses plain layers anew, so those are left to the other tests.
    pub fn push(&self, from: &str, name: &str) {
        let output = Command::new("skopeo")
            .args(["copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false", from])
            .arg(format!("docker://{}/{name}", self.address))
            .current_dir(testdata().join("builders/images"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{from}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Whether registries can be started, and images pushed to them.
pub fn can_start() -> bool {
    let missing = ["docker-registry", "skopeo", "openssl"].into_iter().find(|p| !on_path(p));
    if let Some(program) = missing {
        skipped(&format!("no {program}"));
    }
    missing.is_none()
}

/// The registry that `IMAGELINT_TEST_REGISTRY` names, or else one that is started.
pub fn registry() -> Option<Registry> {
    if !on_path("skopeo") {
        skipped("no skopeo to push images with");
        return None;
    }
    if let Ok(address) = std::env::var("IMAGELINT_TEST_REGISTRY") {
        return Some(Registry { address, served: None, store: None });
    }
    if !on_path("docker-registry") {
        skipped("no docker-registry, and IMAGELINT_TEST_REGISTRY names none");
        return None;
    }
    Some(Registry::start(None, "", ""))
}
