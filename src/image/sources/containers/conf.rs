//! Where podman and buildah keep images: storage.conf, as containers-storage(5) has it, and what overrides it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::super::super::ImageError;
use super::super::files::io_error;
use super::super::manifest::malformed;

/// The largest storage.conf that is read.
const MAX_CONF: u64 = 1 << 20;

/// For everyone, the first that exists.
const SYSTEM: [&str; 2] = ["/etc/containers/storage.conf", "/usr/share/containers/storage.conf"];

/// Root's store where nothing says otherwise.
const ROOT_STORE: &str = "/var/lib/containers/storage";

/// Where images are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Store folders, the one that is written to first.
    pub stores: Vec<PathBuf>,
    /// The driver, where one is named.
    pub driver: Option<String>,
}

/// What the process runs in.
pub struct Surroundings<'a> {
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    pub uid: u32,
    /// The system's files; tests have their own.
    pub system: &'a [PathBuf],
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conf {
    storage: Storage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Storage {
    driver: String,
    graphroot: String,
    rootless_storage_path: String,
    imagestore: String,
    options: Options,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    additionalimagestores: Vec<String>,
    /// Older files have it here.
    rootless_storage_path: String,
    #[serde(flatten)]
    _rest: BTreeMap<String, toml::Value>,
}

pub fn places() -> Result<Places, ImageError> {
    let system = SYSTEM.map(PathBuf::from);
    let env = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let uid = rustix::process::geteuid().as_raw();
    Surroundings { env: &env, uid, system: &system }.places()
}

impl Surroundings<'_> {
    fn home(&self) -> PathBuf {
        (self.env)("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from)
    }

    fn below(&self, variable: &str, usual: &str) -> PathBuf {
        (self.env)(variable).map_or_else(|| self.home().join(usual), PathBuf::from)
    }

    /// The file that counts, and whether it is the user's own.
    fn file(&self) -> Option<(PathBuf, bool)> {
        if let Some(named) = (self.env)("CONTAINERS_STORAGE_CONF") {
            return Some((named.into(), true));
        }
        let own = self.below("XDG_CONFIG_HOME", ".config").join("containers/storage.conf");
        if self.uid != 0 && own.is_file() {
            return Some((own, true));
        }
        self.system.iter().find(|p| p.is_file()).map(|p| (p.clone(), false))
    }

    pub fn places(&self) -> Result<Places, ImageError> {
        let (conf, own) = match self.file() {
            Some((path, own)) => (read(&path)?, own),
            None => (Conf::default(), false),
        };
        let storage = conf.storage;
        let rootless = match storage.rootless_storage_path.as_str() {
            "" => storage.options.rootless_storage_path.as_str(),
            path => path,
        };
        // The system's graphroot is root's; everyone else has one at home.
        let main = if self.uid == 0 || own {
            named(&storage.graphroot).map(|p| self.expanded(p))
        } else {
            named(rootless).map(|p| self.expanded(p))
        };
        let usual = || match self.uid {
            0 => PathBuf::from(ROOT_STORE),
            _ => self.below("XDG_DATA_HOME", ".local/share").join("containers/storage"),
        };
        let mut stores = vec![main.unwrap_or_else(usual)];
        let more = named(&storage.imagestore).into_iter();
        let more = more.chain(storage.options.additionalimagestores.iter().map(String::as_str));
        stores.extend(more.filter(|p| !p.is_empty()).map(|p| self.expanded(p)));
        let driver = (self.env)("STORAGE_DRIVER").and_then(|d| d.into_string().ok());
        let driver = driver.or_else(|| named(&storage.driver).map(str::to_owned));
        Ok(Places { stores, driver: driver.map(usual_name) })
    }

    /// With `$HOME`, `$UID` and `$USER` in it.
    fn expanded(&self, path: &str) -> PathBuf {
        let home = self.home();
        let uid = self.uid.to_string();
        let user = (self.env)("USER").and_then(|u| u.into_string().ok()).unwrap_or_default();
        let text = path.replace("$HOME", &home.to_string_lossy()).replace("$UID", &uid).replace("$USER", &user);
        PathBuf::from(text)
    }
}

fn named(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// `overlay2` is what `overlay` was called.
pub fn usual_name(driver: String) -> String {
    if driver == "overlay2" { "overlay".to_owned() } else { driver }
}

fn read(path: &Path) -> Result<Conf, ImageError> {
    use std::io::Read;
    let place = path.display().to_string();
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| io_error(&place, e))?;
    file.take(MAX_CONF).read_to_string(&mut text).map_err(|e| io_error(&place, e))?;
    toml::from_str(&text).map_err(|e| malformed(&place, e.message().to_owned()))
}

/// `[DRIVER@GRAPHROOT+RUNROOT:OPTIONS]NAME` as skopeo writes it: the place, if there is one, and the name.
pub fn split(text: &str) -> Result<(Option<Places>, &str), ImageError> {
    let Some(inner) = text.strip_prefix('[') else { return Ok((None, text)) };
    let Some((inside, name)) = inner.split_once(']') else {
        return Err(malformed("containers-storage:", "a `[` without its `]`"));
    };
    let (driver, place) = match inside.split_once('@') {
        Some((driver, place)) => (named(driver), place),
        None => (None, inside),
    };
    let root = place.split(['+', ':']).next().unwrap_or_default();
    if !root.starts_with('/') {
        return Err(malformed("containers-storage:", "in the brackets goes [DRIVER@/GRAPHROOT]"));
    }
    let driver = driver.map(|d| usual_name(d.to_owned()));
    Ok((Some(Places { stores: vec![root.into()], driver }), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            let home = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir_all(home.0.path().join(".config/containers")).unwrap();
            home
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        }

        fn places(&self, uid: u32, env: &[(&str, &str)]) -> Result<Places, String> {
            let system = [self.0.path().join("system.conf")];
            let get = |name: &str| match env.iter().find(|(n, _)| *n == name) {
                Some((_, value)) => Some(OsString::from(value)),
                None => (name == "HOME").then(|| self.0.path().into()),
            };
            Surroundings { env: &get, uid, system: &system }.places().map_err(|e| e.to_string())
        }

        fn at(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }
    }

    #[test]
    fn each_user_has_a_store() {
        let home = Home::new();
        assert_eq!(home.places(0, &[]).unwrap().stores, [PathBuf::from(ROOT_STORE)]);
        let own = home.at(".local/share/containers/storage");
        assert_eq!(home.places(7, &[]).unwrap().stores, std::slice::from_ref(&own));
        home.write(
            "system.conf",
            "[storage]\ndriver='overlay2'\ngraphroot='/g'\n[storage.options]\nadditionalimagestores=['/more']\nsize=1",
        );
        let root = home.places(0, &[]).unwrap();
        assert_eq!(root.stores, [PathBuf::from("/g"), "/more".into()]);
        assert_eq!(root.driver.as_deref(), Some("overlay"));
        assert_eq!(home.places(7, &[]).unwrap().stores, [own, "/more".into()]);
        home.write("system.conf", "[storage]\nrootless_storage_path='/users/$USER/$UID'");
        assert_eq!(home.places(7, &[("USER", "u")]).unwrap().stores, [PathBuf::from("/users/u/7")]);
        home.write(".config/containers/storage.conf", "[storage]\ngraphroot='$HOME/g'\ndriver='vfs'");
        assert_eq!(home.places(7, &[]).unwrap().stores, [home.at("g")]);
        // Root's is the system's file, whatever lies in its home.
        assert_eq!(home.places(0, &[]).unwrap().stores, [PathBuf::from(ROOT_STORE)]);
        let named = home.write("named.conf", "[storage]\ngraphroot='/named'\ndriver='vfs'");
        let env = [("CONTAINERS_STORAGE_CONF", named.to_str().unwrap()), ("STORAGE_DRIVER", "overlay")];
        let places = home.places(7, &env).unwrap();
        assert_eq!((places.stores, places.driver.as_deref()), (vec!["/named".into()], Some("overlay")));
        home.write("named.conf", "[storage\n");
        assert!(home.places(7, &env).unwrap_err().contains("named.conf"));
        assert!(home.places(7, &[("CONTAINERS_STORAGE_CONF", "/no/such")]).unwrap_err().contains("/no/such"));
    }

    #[test]
    fn skopeos_brackets() {
        let places = |text| split(text).unwrap();
        assert_eq!(places("a:1"), (None, "a:1"));
        let want = |driver: Option<&str>| Places { stores: vec!["/g/r".into()], driver: driver.map(str::to_owned) };
        assert_eq!(places("[vfs@/g/r+/run]a:1"), (Some(want(Some("vfs"))), "a:1"));
        assert_eq!(places("[/g/r]a"), (Some(want(None)), "a"));
        assert_eq!(places("[overlay2@/g/r:x=y,z]@id"), (Some(want(Some("overlay"))), "@id"));
        assert!(split("[vfs@/g").is_err() && split("[vfs]a").is_err());
    }
}
