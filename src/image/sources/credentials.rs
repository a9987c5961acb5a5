//! Who one is to a registry: what was typed, what the files of docker and podman hold, and what credential helpers
//! answer. Looked up only once a registry asks, by registry and repository, the longest key first.

mod file;
mod helper;

use std::fmt;
use std::path::PathBuf;
use std::sync::PoisonError;

use super::super::ImageError;
use super::hosts;
use super::manifest::{malformed, shown};
use super::options::OpenOptions;

pub use self::helper::Answered;

/// A name and a password that were typed.
pub struct Login {
    pub username: String,
    pub password: String,
    /// The flag, as messages name it.
    pub from: &'static str,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// What can be shown to a registry or its token server.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    Password {
        username: String,
        password: String,
    },
    /// A token that token servers take for one of theirs.
    Identity {
        token: String,
        username: String,
        password: String,
    },
    /// A token that the registry itself takes.
    Registry(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

/// What the search has found.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    /// With the place it is from, as messages name it.
    pub found: Option<(Credential, String)>,
    /// Where nothing was.
    pub places: Vec<String>,
    /// Helpers that could not be asked.
    pub notes: Vec<String>,
}

/// Takes the login for a registry, the first that is named. A password is no matter of two registries: which of
/// them it is for is not to be guessed.
pub fn claim_login(registry: &str, options: &OpenOptions) -> Result<(), ImageError> {
    let Some(login) = &options.login else { return Ok(()) };
    let first = options.shared.login_for.get_or_init(|| registry.to_owned());
    if first == registry {
        return Ok(());
    }
    Err(ImageError::Network {
        host: shown(registry),
        what: format!("{} is for one registry, and {} was named first", login.from, shown(first)),
        hint: "use --authfile, or docker login, for several".to_owned(),
    })
}

/// Looks for credentials. `typed`: a login that was typed may be used, as the registry is the one that was named.
pub fn find(registry: &str, repository: &str, typed: bool, options: &OpenOptions) -> Result<Looked, ImageError> {
    let mut out = Looked::default();
    if let Some(login) = options.login.as_ref().filter(|_| typed) {
        let (username, password) = (login.username.clone(), login.password.clone());
        out.found = Some((Credential::Password { username, password }, login.from.to_owned()));
        return Ok(out);
    }
    for place in places(options) {
        let name = place.name(options);
        let file = match &place {
            Place::File { path, required } => file::read(path, &name, *required)?,
            Place::Variable(text) => Some(file::parse(text.as_bytes(), &name)?),
        };
        let found = match file {
            Some(file) => in_file(&file, &name, registry, repository, options, &mut out.notes)?,
            None => None,
        };
        if let Some(credential) = found {
            out.found = Some((credential, name));
            return Ok(out);
        }
        out.places.push(name);
    }
    Ok(out)
}

fn in_file(
    file: &file::AuthFile,
    name: &str,
    registry: &str,
    repository: &str,
    options: &OpenOptions,
    notes: &mut Vec<String>,
) -> Result<Option<Credential>, ImageError> {
    let mut ask = |helper: &str| -> Option<Credential> {
        let key = (helper.to_owned(), file.spelling(registry).unwrap_or_else(|| hosts::login_key(registry)));
        let mut asked = options.shared.helpers.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = asked.entry(key).or_insert_with_key(|(helper, server)| helper::get(helper, server));
        match answered {
            Ok(credential) => credential.clone(),
            Err(why) => {
                notes.push(format!("docker-credential-{}, which {name} names, {why}", shown(helper)));
                None
            }
        }
    };
    if let Some(credential) = file.helper(registry).and_then(&mut ask) {
        return Ok(Some(credential));
    }
    let stored = file
        .stored(registry, repository)
        .map_err(|key| malformed(name, format!("what it holds for {} is no login; log in again", shown(&key))))?;
    Ok(stored.or_else(|| file.store().and_then(&mut ask)))
}

/// A place that may hold credentials.
enum Place {
    File {
        path: PathBuf,
        /// The user named it, so it has to be there.
        required: bool,
    },
    /// The text of a config.json, as GitLab hands it to jobs.
    Variable(String),
}

impl Place {
    fn name(&self, options: &OpenOptions) -> String {
        match self {
            Self::File { path, .. } => options.machine.shown(path),
            Self::Variable(_) => "DOCKER_AUTH_CONFIG".to_owned(),
        }
    }
}

/// A file that was named is the only one; otherwise the environment's, podman's, docker's.
fn places(options: &OpenOptions) -> Vec<Place> {
    let machine = &options.machine;
    if let Some(path) = options.auth_file.clone().or_else(|| machine.path("REGISTRY_AUTH_FILE")) {
        return vec![Place::File { path, required: true }];
    }
    let mut out = Vec::new();
    out.extend(machine.var("DOCKER_AUTH_CONFIG").filter(|t| !t.trim().is_empty()).map(Place::Variable));
    let mut paths = Vec::new();
    paths.extend(machine.path("XDG_RUNTIME_DIR").map(|d| d.join("containers/auth.json")));
    paths.extend(machine.config_home().map(|d| d.join("containers/auth.json")));
    let docker = machine.path("DOCKER_CONFIG").or_else(|| Some(machine.home()?.join(".docker")));
    paths.extend(docker.map(|d| d.join("config.json")));
    out.extend(paths.into_iter().map(|path| Place::File { path, required: false }));
    out
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use super::super::options::Machine;
    use super::*;

    fn home(files: &[(&str, &str)], vars: &[(&str, &str)]) -> (tempfile::TempDir, OpenOptions) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = home.path().to_str().unwrap().to_owned();
        let mut all =
            vec![("HOME".to_owned(), root.clone()), ("XDG_RUNTIME_DIR".to_owned(), format!("{root}/run"))];
        all.extend(vars.iter().map(|(k, v)| ((*k).to_owned(), v.replace('~', &root))));
        let all: Vec<(&str, &str)> = all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        (home, OpenOptions { machine: Machine::with(&all), ..OpenOptions::default() })
    }

    fn password(user: &str) -> Credential {
        Credential::Password { username: user.into(), password: "p".into() }
    }

    /// A file with one entry, for `user:p`.
    fn entry(key: &str, user: &str) -> String {
        format!(r#"{{"auths":{{"{key}":{{"username":"{user}","password":"p"}}}}}}"#)
    }

    #[test]
    fn places_are_asked_in_order() {
        let files = [
            ("run/containers/auth.json", entry("r.io", "run")),
            (".config/containers/auth.json", entry("r.io", "config")),
            (".docker/config.json", entry("r.io", "docker")),
            ("named.json", entry("r.io", "named")),
            ("other.json", entry("r.io", "other")),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (*n, t.as_str())).collect();
        let user = |files: &[(&str, &str)], vars: &[(&str, &str)], flag: Option<&str>| {
            let (home, mut options) = home(files, vars);
            options.auth_file = flag.map(|f| home.path().join(f));
            find("r.io", "x", true, &options).map(|l| match l.found {
                Some((Credential::Password { username, .. }, from)) => format!("{username} {from}"),
                _ => String::new(),
            })
        };
        let env = [("DOCKER_AUTH_CONFIG", r#"{"auths":{"r.io":{"auth":"ZW52OnA="}}}"#)];
        assert_eq!(user(&files, &[], None).unwrap(), "run ~/run/containers/auth.json");
        assert_eq!(user(&files[1..], &[], None).unwrap(), "config ~/.config/containers/auth.json");
        assert_eq!(user(&files[2..], &[], None).unwrap(), "docker ~/.docker/config.json");
        assert_eq!(user(&files, &env, None).unwrap(), "env DOCKER_AUTH_CONFIG");
        let named = [("REGISTRY_AUTH_FILE", "~/named.json"), env[0]];
        assert_eq!(user(&files, &named, None).unwrap(), "named ~/named.json");
        assert_eq!(user(&files, &named, Some("other.json")).unwrap(), "other ~/other.json");
        assert!(user(&files, &[], Some("gone.json")).unwrap_err().to_string().contains("~/gone.json"));
        assert_eq!(user(&files[..0], &[], None).unwrap(), "");
    }

    #[test]
    fn a_typed_login_is_for_one_registry() {
        let (_home, mut options) = home(&[], &[]);
        let login = Login { username: "u".into(), password: "p".into(), from: "--username" };
        options.login = Some(Arc::new(login));
        claim_login("a.io", &options).unwrap();
        claim_login("a.io", &options.clone()).unwrap();
        let error = claim_login("b.io", &options).unwrap_err().to_string();
        assert!(error.contains("a.io was named first"), "{error}");
        assert!(find("a.io", "x", true, &options).unwrap().found.is_some());
        assert!(find("mirror.io", "x", false, &options).unwrap().found.is_none());
        assert!(!format!("{options:?}").contains("\"p\""));
    }

    #[test]
    fn broken_files_are_named_and_not_shown() {
        for text in
            [r#"{"auths":{"r.io":{"auth":"secret"#, r#"{"auths":"secret"}"#, r#"{"auths":{"r.io":{"auth":7}}}"#]
        {
            let (_home, options) = home(&[(".docker/config.json", text)], &[]);
            let error = find("r.io", "x", true, &options).unwrap_err().to_string();
            assert!(error.contains("~/.docker/config.json") && !error.contains("secret"), "{error}");
        }
        for auth in ["sec_ret", "c2VjcmV0", ""] {
            let text = format!(r#"{{"auths":{{"r.io":{{"auth":"{auth}"}}}}}}"#);
            let (_home, options) = home(&[(".docker/config.json", &text)], &[]);
            let looked = find("r.io", "x", true, &options).map(|l| l.found);
            match auth {
                "" => assert_eq!(looked.unwrap(), None),
                _ => {
                    let error = looked.unwrap_err().to_string();
                    assert!(
                        error.contains("config.json") && error.contains("r.io") && !error.contains(auth),
                        "{error}"
                    );
                }
            }
        }
    }

    fn helper(home: &std::path::Path, name: &str, script: &str) {
        let path = home.join(format!("docker-credential-{name}"));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn helpers_are_asked_by_the_protocol() {
        let dir = tempfile::tempdir().unwrap();
        let get = |script: &str| {
            helper(dir.path(), "test", script);
            helper::get_from(&dir.path().join("docker-credential-test"), "r.io", std::time::Duration::from_secs(5))
        };
        let echo = r#"[ "$1" = get ] && read host || true; printf '{"ServerURL":"%s","Username":"u","Secret":"p"}' "$host""#;
        assert_eq!(get(echo).unwrap(), Some(password("u")));
        let identity = get(r#"cat >/dev/null; echo '{"Username":"<token>","Secret":"t"}'"#).unwrap();
        assert!(matches!(identity, Some(Credential::Identity { token, .. }) if token == "t"));
        assert_eq!(get("echo 'credentials not found in native keychain'; exit 1").unwrap(), None);
        assert_eq!(get(r#"echo '{"Username":"","Secret":""}'"#).unwrap(), None);
        let failed = get("echo secret-of-the-helper; exit 3").unwrap_err();
        assert!(failed.contains("3") && !failed.contains("secret"), "{failed}");
        assert!(get("echo nonsense").unwrap_err().contains("no answer"));
        assert!(get("yes").unwrap_err().contains("too long"));
        let start = std::time::Instant::now();
        let slow = helper::get_from(
            &{
                helper(dir.path(), "slow", "sleep 60");
                dir.path().join("docker-credential-slow")
            },
            "r.io",
            std::time::Duration::from_millis(300),
        );
        assert!(slow.unwrap_err().contains("in time") && start.elapsed().as_secs() < 20);
    }

    #[test]
    fn a_missing_helper_is_told_and_no_more() {
        let text = r#"{"credsStore":"nosuch-helper-of-this-test","credHelpers":{"r.io":"../evil"}}"#;
        let (_home, options) = home(&[(".docker/config.json", text)], &[]);
        let looked = find("r.io", "x", true, &options).unwrap();
        assert_eq!(looked.found, None);
        assert!(looked.notes[0].contains("no name of a helper"), "{:?}", looked.notes);
        assert!(looked.notes[1].contains("is not installed"), "{:?}", looked.notes);
    }
}
