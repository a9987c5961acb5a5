//! The builders: which of them runs here, and how each is told to build, to hand out and to push.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::child::{Watch, answers};
use crate::cli::args::BuilderName;
use crate::cli::error::CliError;
use crate::report::text::clean;

/// How long a builder may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Buildx,
    Docker,
    Buildah,
    Podman,
}

/// In the order in which they are looked for.
const KINDS: [Kind; 4] = [Kind::Buildx, Kind::Docker, Kind::Buildah, Kind::Podman];

impl Kind {
    fn typed(self) -> BuilderName {
        match self {
            Self::Buildx | Self::Docker => BuilderName::Docker,
            Self::Buildah => BuilderName::Buildah,
            Self::Podman => BuilderName::Podman,
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Buildx | Self::Docker => "docker",
            Self::Buildah => "buildah",
            Self::Podman => "podman",
        }
    }

    /// What has to succeed for a build to be worth trying. `docker version` asks the daemon, which has to be there too.
    fn probes(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Buildx => &[&["version", "--format", "{{.Server.Version}}"], &["buildx", "version"]],
            Self::Docker => &[&["version", "--format", "{{.Server.Version}}"]],
            Self::Buildah | Self::Podman => &[&["--version"]],
        }
    }

    fn build(self) -> &'static [&'static str] {
        match self {
            Self::Buildx => &["buildx", "build", "--load"],
            Self::Docker | Self::Buildah | Self::Podman => &["build"],
        }
    }
}

/// What is built.
#[derive(Debug)]
pub struct Request<'a> {
    pub dockerfile: &'a Path,
    pub context: &'a Path,
    pub name: &'a str,
    pub stage: Option<&'a str>,
    pub platform: Option<String>,
    pub build_args: &'a [String],
    /// What `FROM ${IMAGE}` is to start from.
    pub image: Option<&'a str>,
    pub extra: &'a [OsString],
}

/// A builder that runs here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builder {
    kind: Kind,
    pub version: String,
}

impl Builder {
    /// The one that is asked for, else the first that runs.
    pub fn find(asked: Option<BuilderName>, watch: &Watch) -> Result<Self, CliError> {
        for kind in KINDS.into_iter().filter(|k| asked.is_none_or(|name| k.typed() == name)) {
            let answer = |args: &&[&str]| answers(Command::new(kind.program()).args(*args), PATIENCE, watch);
            if let Some(answers) = kind.probes().iter().map(answer).collect::<Option<Vec<String>>>() {
                let version = answers.last().map(|line| version(line)).unwrap_or_default();
                return Ok(Self { kind, version });
            }
        }
        Err(CliError::NoBuilder(asked.map(|name| match name {
            BuilderName::Docker => "docker",
            BuilderName::Buildah => "buildah",
            BuilderName::Podman => "podman",
        })))
    }

    /// Its name and version.
    pub fn told(&self) -> String {
        format!("{} {}", self.label(), self.version).trim_end().to_owned()
    }

    /// As users call it.
    pub fn label(&self) -> &'static str {
        match self.kind {
            Kind::Buildx => "docker buildx",
            kind => kind.program(),
        }
    }

    fn command(&self) -> Command {
        Command::new(self.kind.program())
    }

    /// Whether a stage can start from an archive of this machine.
    pub fn starts_from_archives(&self) -> bool {
        matches!(self.kind, Kind::Buildah | Kind::Podman)
    }

    pub fn build(&self, request: &Request<'_>) -> Command {
        let mut command = self.command();
        command.args(self.kind.build());
        command.arg("-f").arg(request.dockerfile).arg("-t").arg(request.name);
        if let Some(stage) = request.stage {
            command.arg("--target").arg(stage);
        }
        if let Some(platform) = &request.platform {
            command.arg("--platform").arg(platform);
        }
        for arg in request.build_args {
            command.arg("--build-arg").arg(arg);
        }
        if let Some(image) = request.image {
            command.arg("--build-arg").arg(format!("IMAGE={image}"));
        }
        command.args(request.extra).arg(request.context);
        command
    }

    /// Writes the image to a file, and what `scan` calls that file.
    pub fn export(&self, name: &str, file: &Path) -> (Command, String) {
        let mut command = self.command();
        let written = |transport: &str| {
            let mut out = OsString::from(transport);
            out.push(file);
            out
        };
        match self.kind {
            Kind::Buildx | Kind::Docker => {
                command.arg("save").arg("-o").arg(file).arg(name);
                (command, shown(&written("docker-archive:")))
            }
            Kind::Buildah => {
                let archive = written("oci-archive:");
                command.args(["push", "-q", name]).arg(&archive);
                (command, shown(&archive))
            }
            Kind::Podman => {
                command.args(["save", "-q", "--format", "oci-archive", "-o"]).arg(file).arg(name);
                (command, shown(&written("oci-archive:")))
            }
        }
    }

    pub fn push(&self, name: &str) -> Command {
        let mut command = self.command();
        command.args(["push", name]);
        command
    }
}

/// Of `buildah version 1.28.2 (…)`, `github.com/docker/buildx v0.14.0 …`: the word that is a number.
fn version(line: &str) -> String {
    let number = |word: &&str| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    let word = line.split_whitespace().find(number).unwrap_or_default();
    clean(word.trim_start_matches('v').trim_end_matches(','))
}

fn shown(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> String {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|w| w.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn versions_are_found_in_what_they_print() {
        for (line, want) in [
            ("buildah version 1.28.2 (image-spec 1.1.0-rc2, runtime-spec 1.0.2-dev)", "1.28.2"),
            ("github.com/docker/buildx v0.14.0 171fcbe", "0.14.0"),
            ("podman version 5.2.2", "5.2.2"),
            ("28.2.2", "28.2.2"),
            ("Docker version 28.2.2, build e6534b4", "28.2.2"),
            ("dev", ""),
        ] {
            assert_eq!(version(line), want);
        }
    }

    #[test]
    fn each_is_told_in_its_own_words() {
        let told = |kind| {
            let builder = Builder { kind, version: String::new() };
            let request = Request {
                dockerfile: Path::new("/t/Dockerfile"),
                context: Path::new("ctx"),
                name: "n:1",
                stage: Some("final"),
                platform: Some("linux/arm64".into()),
                build_args: &["A=b c".into()],
                image: None,
                extra: &["--isolation".into(), "chroot".into()],
            };
            let (export, name) = builder.export("n:1", Path::new("/t/image.tar"));
            [words(&builder.build(&request)), words(&export), name, words(&builder.push("n:1"))]
        };
        let rest = "-f /t/Dockerfile -t n:1 --target final --platform linux/arm64 --build-arg A=b c --isolation chroot ctx";
        assert_eq!(
            told(Kind::Buildx),
            [
                &format!("docker buildx build --load {rest}"),
                "docker save -o /t/image.tar n:1",
                "docker-archive:/t/image.tar",
                "docker push n:1"
            ]
        );
        assert_eq!(told(Kind::Docker)[0], format!("docker build {rest}"));
        assert_eq!(
            told(Kind::Buildah),
            [
                &format!("buildah build {rest}"),
                "buildah push -q n:1 oci-archive:/t/image.tar",
                "oci-archive:/t/image.tar",
                "buildah push n:1"
            ]
        );
        assert_eq!(told(Kind::Podman)[1], "podman save -q --format oci-archive -o /t/image.tar n:1");
    }
}
