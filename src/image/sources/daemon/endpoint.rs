//! Where a daemon listens: what the environment says, what docker's and podman's own settings say, the usual sockets.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::super::ImageError;
use super::super::files::io_error;
use super::super::manifest::{json, malformed, shown};
use crate::model::Digest;

/// The largest settings file that is read.
const MAX_SETTINGS: u64 = 4 << 20;

/// The largest certificate or key.
const MAX_PEM: u64 = 1 << 20;

/// Ports of the Docker Engine API, without and with TLS.
const PLAIN_PORT: u16 = 2375;
const TLS_PORT: u16 = 2376;

/// Where a daemon listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Unix(PathBuf),
    /// Host and port; with TLS where there are certificates.
    Tcp {
        authority: String,
        tls: Option<Certificates>,
    },
}

/// PEM texts: whom to trust, and who one is.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Certificates {
    pub authority: Option<Vec<u8>>,
    /// Certificate and key.
    pub own: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the key.
        write!(f, "Certificates {{ authority: {}, own: {} }}", self.authority.is_some(), self.own.is_some())
    }
}

/// An endpoint, and what said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub endpoint: Endpoint,
    /// `DOCKER_HOST`, `the context prod`; empty for the usual socket.
    pub by: String,
}

/// What the process runs in.
pub struct Surroundings<'a> {
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    pub uid: u32,
    /// Put before the usual paths; tests have a folder of their own.
    pub root: &'a Path,
}

/// What was looked for in vain.
pub type Tried = Vec<PathBuf>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DockerConfig {
    current_context: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Context {
    endpoints: Endpoints,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Endpoints {
    docker: ContextEndpoint,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ContextEndpoint {
    host: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Connections {
    connection: ConnectionList,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ConnectionList {
    default: String,
    connections: std::collections::BTreeMap<String, Connection>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Connection {
    #[serde(rename = "URI")]
    uri: String,
}

impl Surroundings<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.env)(name).and_then(|v| v.into_string().ok()).filter(|v| !v.is_empty())
    }

    fn home(&self, below: &str) -> PathBuf {
        (self.env)("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from).join(below)
    }

    fn docker_folder(&self) -> PathBuf {
        (self.env)("DOCKER_CONFIG").map_or_else(|| self.home(".docker"), PathBuf::from)
    }

    /// Docker's endpoint, or what was looked for.
    pub fn docker(&self) -> Result<Result<Chosen, Tried>, ImageError> {
        if let Some(host) = self.text("DOCKER_HOST") {
            let tls = match self.text("DOCKER_TLS_VERIFY") {
                Some(_) => {
                    let folder = (self.env)("DOCKER_CERT_PATH").map_or_else(|| self.docker_folder(), PathBuf::from);
                    Some(certificates(&folder)?)
                }
                None => None,
            };
            return Ok(Ok(Chosen { endpoint: endpoint(&host, "DOCKER_HOST", tls)?, by: "DOCKER_HOST".to_owned() }));
        }
        if let Some(name) = self.context()? {
            return self.of_context(&name).map(Ok);
        }
        let mut usual = vec![self.at("/var/run/docker.sock")];
        usual.extend((self.env)("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("docker.sock")));
        usual.extend([".docker/run/docker.sock", ".docker/desktop/docker.sock"].map(|p| self.home(p)));
        Ok(first_there(usual))
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The context that is not the default one.
    fn context(&self) -> Result<Option<String>, ImageError> {
        let name = match self.text("DOCKER_CONTEXT") {
            Some(name) => Some(name),
            None => {
                settings::<DockerConfig>(&self.docker_folder().join("config.json"))?.and_then(|c| c.current_context)
            }
        };
        Ok(name.filter(|n| !n.is_empty() && n != "default"))
    }

    fn of_context(&self, name: &str) -> Result<Chosen, ImageError> {
        let by = format!("docker's context {}", shown(name));
        let hash = Digest::of(name.as_bytes()).hex();
        let folder = self.docker_folder().join("contexts");
        let meta = folder.join("meta").join(&hash).join("meta.json");
        let Some(context) = settings::<Context>(&meta)? else {
            let hint = "`docker context ls` lists those there are".to_owned();
            return Err(ImageError::NotFound { reference: by, hint });
        };
        let tls = folder.join("tls").join(&hash).join("docker");
        let tls = if tls.is_dir() { Some(certificates(&tls)?) } else { None };
        Ok(Chosen { endpoint: endpoint(&context.endpoints.docker.host, &by, tls)?, by })
    }

    /// Podman's endpoint, or what was looked for.
    pub fn podman(&self) -> Result<Result<Chosen, Tried>, ImageError> {
        if let Some(host) = self.text("CONTAINER_HOST") {
            let endpoint = endpoint(&host, "CONTAINER_HOST", None)?;
            return Ok(Ok(Chosen { endpoint, by: "CONTAINER_HOST".to_owned() }));
        }
        if let Some(name) = self.text("CONTAINER_CONNECTION") {
            return match self.connections()?.connections.get(&name) {
                Some(c) => {
                    let by = format!("podman's connection {}", shown(&name));
                    Ok(Ok(Chosen { endpoint: endpoint(&c.uri, &by, None)?, by }))
                }
                None => Err(ImageError::NotFound {
                    reference: format!("podman's connection {}", shown(&name)),
                    hint: "`podman system connection ls` lists those there are".to_owned(),
                }),
            };
        }
        let system = self.at("/run/podman/podman.sock");
        let own = match (self.env)("XDG_RUNTIME_DIR") {
            Some(dir) => PathBuf::from(dir).join("podman/podman.sock"),
            None => self.at(&format!("/run/user/{}/podman/podman.sock", self.uid)),
        };
        // Each user has images of their own: the system's are root's.
        let tried = match first_there(if self.uid == 0 { vec![system, own] } else { vec![own] }) {
            Err(tried) => tried,
            found => return Ok(found),
        };
        // A machine of podman's is reached by ssh, which is not spoken here; then its store is none of ours either.
        let list = self.connections()?;
        let default = list.connections.get(&list.default).filter(|c| !c.uri.starts_with("ssh:"));
        Ok(match default {
            Some(c) => {
                let by = format!("podman's connection {}", shown(&list.default));
                Ok(Chosen { endpoint: endpoint(&c.uri, &by, None)?, by })
            }
            None => Err(tried),
        })
    }

    fn connections(&self) -> Result<ConnectionList, ImageError> {
        let folder = (self.env)("XDG_CONFIG_HOME").map_or_else(|| self.home(".config"), PathBuf::from);
        let file = folder.join("containers/podman-connections.json");
        Ok(settings::<Connections>(&file)?.unwrap_or_default().connection)
    }
}

fn first_there(paths: Vec<PathBuf>) -> Result<Chosen, Tried> {
    // What may not be looked at is there: opening it says so.
    match paths.iter().find(|p| p.try_exists().unwrap_or(true)) {
        Some(path) => Ok(Chosen { endpoint: Endpoint::Unix(path.clone()), by: String::new() }),
        None => Err(paths),
    }
}

/// Reads `unix:///run/docker.sock`, `tcp://host:2376`.
fn endpoint(text: &str, by: &str, tls: Option<Certificates>) -> Result<Endpoint, ImageError> {
    let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
    let refused = |what: &str| Err(malformed(by, format!("{}: {what}", shown(text))));
    match scheme {
        "unix" => match rest.strip_prefix("//").unwrap_or(rest) {
            path if path.starts_with('/') => Ok(Endpoint::Unix(path.into())),
            _ => refused("a socket's path starts with a slash"),
        },
        "tcp" | "http" | "https" => {
            let tls = tls.or_else(|| (scheme == "https").then(Certificates::default));
            let authority = rest.trim_start_matches('/').trim_end_matches('/');
            if authority.is_empty()
                || authority.contains(['/', '@', '?', '#'])
                || authority.contains(char::is_whitespace)
            {
                return refused("a host and a port are wanted");
            }
            let has_port = authority.rsplit(']').next().is_some_and(|end| end.contains(':'));
            let port = if tls.is_some() { TLS_PORT } else { PLAIN_PORT };
            let authority = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
            Ok(Endpoint::Tcp { authority, tls })
        }
        "ssh" => refused("ssh is not spoken here; use `docker save IMAGE | imagelint scan -` over it"),
        "npipe" => refused("named pipes are Windows'; use `docker save IMAGE | imagelint scan -`"),
        _ => refused("unix:///PATH or tcp://HOST:PORT is understood"),
    }
}

fn certificates(folder: &Path) -> Result<Certificates, ImageError> {
    let read = |name: &str| bytes(&folder.join(name), MAX_PEM);
    let own = match (read("cert.pem")?, read("key.pem")?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        _ => None,
    };
    Ok(Certificates { authority: read("ca.pem")?, own })
}

fn bytes(path: &Path, cap: u64) -> Result<Option<Vec<u8>>, ImageError> {
    let place = path.display().to_string();
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io_error(&place, e)),
    };
    let mut out = Vec::new();
    file.take(cap + 1).read_to_end(&mut out).map_err(|e| io_error(&place, e))?;
    match out.len() as u64 > cap {
        true => Err(ImageError::TooLarge { place, what: "the file".to_owned(), limit: cap }),
        false => Ok(Some(out)),
    }
}

fn settings<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ImageError> {
    match bytes(path, MAX_SETTINGS)? {
        Some(text) if !text.trim_ascii().is_empty() => {
            json(&text, "the file", &path.display().to_string()).map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn put(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn ask<T>(&self, uid: u32, env: &[(&str, &str)], ask: impl Fn(&Surroundings) -> T) -> T {
            let get = |name: &str| match env.iter().find(|(n, _)| *n == name) {
                Some((_, value)) => Some(OsString::from(value)),
                None => (name == "HOME").then(|| self.at("home").into()),
            };
            ask(&Surroundings { env: &get, uid, root: self.0.path() })
        }

        fn docker(&self, env: &[(&str, &str)]) -> Result<Result<Chosen, Tried>, String> {
            self.ask(7, env, |s| s.docker().map_err(|e| e.to_string()))
        }

        fn podman(&self, uid: u32, env: &[(&str, &str)]) -> Result<Result<Chosen, Tried>, String> {
            self.ask(uid, env, |s| s.podman().map_err(|e| e.to_string()))
        }
    }

    fn unix(path: impl Into<PathBuf>) -> Endpoint {
        Endpoint::Unix(path.into())
    }

    fn tcp(authority: &str) -> Endpoint {
        Endpoint::Tcp { authority: authority.to_owned(), tls: None }
    }

    #[test]
    fn docker_is_where_docker_looks() {
        let m = Machine(tempfile::tempdir().unwrap());
        let tried = m.docker(&[("XDG_RUNTIME_DIR", "/no/such")]).unwrap().unwrap_err();
        assert_eq!(tried[..2], [m.at("var/run/docker.sock"), "/no/such/docker.sock".into()]);
        m.put("var/run/docker.sock", "");
        let usual = m.docker(&[]).unwrap().unwrap();
        assert_eq!((usual.endpoint, usual.by.as_str()), (unix(m.at("var/run/docker.sock")), ""));
        // The context of the settings, then that of the environment, then the host of the environment.
        m.put("home/.docker/config.json", "{\"auths\":{},\"currentContext\":\"lab\"}");
        let hash = |name: &str| Digest::of(name.as_bytes()).hex();
        let meta = |name: &str| format!("home/.docker/contexts/meta/{}/meta.json", hash(name));
        assert!(m.docker(&[]).unwrap_err().contains("docker's context lab: not found"));
        m.put(&meta("lab"), "{\"Name\":\"lab\",\"Endpoints\":{\"docker\":{\"Host\":\"unix:///run/lab.sock\"}}}");
        assert_eq!(m.docker(&[]).unwrap().unwrap().endpoint, unix("/run/lab.sock"));
        m.put(&meta("far"), "{\"Endpoints\":{\"docker\":{\"Host\":\"ssh://me@far\"}}}");
        let far = m.docker(&[("DOCKER_CONTEXT", "far")]).unwrap_err();
        assert!(far.contains("docker's context far") && far.contains("docker save"), "{far}");
        m.put(&format!("home/.docker/contexts/tls/{}/docker/ca.pem", hash("lab")), "PEM");
        m.put(&meta("lab"), "{\"Endpoints\":{\"docker\":{\"Host\":\"tcp://h\"}}}");
        let tls = Some(Certificates { authority: Some(b"PEM".to_vec()), own: None });
        let want = Endpoint::Tcp { authority: "h:2376".to_owned(), tls };
        assert_eq!(m.docker(&[]).unwrap().unwrap().endpoint, want);
        assert_eq!(m.docker(&[("DOCKER_CONTEXT", "default")]).unwrap().unwrap().by, "");
        let env = [("DOCKER_CONTEXT", "far"), ("DOCKER_HOST", "tcp://[::1]:99")];
        assert_eq!(m.docker(&env).unwrap().unwrap().endpoint, tcp("[::1]:99"));
        m.put("home/.docker/config.json", "{");
        assert!(m.docker(&[]).unwrap_err().contains("config.json"));
    }

    #[test]
    fn hosts_are_read_or_refused() {
        let e = |text: &str| endpoint(text, "DOCKER_HOST", None).map_err(|e| e.to_string());
        assert_eq!(e("unix:///a/b").unwrap(), unix("/a/b"));
        assert_eq!(e("unix:/a/b").unwrap(), unix("/a/b"));
        assert_eq!(e("tcp://h").unwrap(), tcp("h:2375"));
        assert_eq!(e("tcp://[::1]").unwrap(), tcp("[::1]:2375"));
        assert_eq!(e("http://h:1/").unwrap(), tcp("h:1"));
        for (bad, word) in [
            ("ssh://u@h", "docker save"),
            ("npipe:////./pipe/x", "docker save"),
            ("tcp://", "a host"),
            ("tcp://u:p@h", "a host"),
            ("unix://a", "slash"),
            ("/a/b", "unix:///PATH"),
        ] {
            let told = e(bad).unwrap_err();
            assert!(told.contains(word) && told.starts_with("DOCKER_HOST: "), "{told}");
        }
    }

    #[test]
    fn podman_is_where_podman_looks() {
        let m = Machine(tempfile::tempdir().unwrap());
        assert_eq!(m.podman(7, &[]).unwrap().unwrap_err(), [m.at("run/user/7/podman/podman.sock")]);
        m.put("run/podman/podman.sock", "");
        assert!(m.podman(7, &[]).unwrap().is_err(), "root's images are not the user's");
        assert_eq!(m.podman(0, &[]).unwrap().unwrap().endpoint, unix(m.at("run/podman/podman.sock")));
        m.put("run/user/7/podman/podman.sock", "");
        assert_eq!(m.podman(7, &[]).unwrap().unwrap().endpoint, unix(m.at("run/user/7/podman/podman.sock")));
        let file = "home/.config/containers/podman-connections.json";
        let list = |default: &str| {
            format!(
                "{{\"Connection\":{{\"Default\":\"{default}\",\"Connections\":{{\"a\":{{\"URI\":\"ssh://x/y\"}},\
                 \"b\":{{\"URI\":\"unix:///b\"}}}}}}}}"
            )
        };
        m.put(file, &list("a"));
        assert!(m.podman(8, &[]).unwrap().is_err());
        assert!(m.podman(8, &[("CONTAINER_CONNECTION", "a")]).unwrap_err().contains("ssh"));
        assert_eq!(m.podman(8, &[("CONTAINER_CONNECTION", "b")]).unwrap().unwrap().endpoint, unix("/b"));
        assert!(m.podman(8, &[("CONTAINER_CONNECTION", "c")]).unwrap_err().contains("not found"));
        m.put(file, &list("b"));
        assert_eq!(m.podman(8, &[]).unwrap().unwrap().endpoint, unix("/b"));
        let host = [("CONTAINER_HOST", "tcp://h:1")];
        assert_eq!(m.podman(8, &host).unwrap().unwrap().endpoint, tcp("h:1"));
    }
}
