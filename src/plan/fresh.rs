//! A Dockerfile for an image that comes without one: it starts from the scanned image and makes the plan's steps.

use crate::model::{Change, ConfigFacts, Manager};
use crate::plan::patch::assignment;
use crate::report::text::{clean, cut};
use crate::report::{Disposition, ImageReport, Plan, Step};

use super::shell::word;
use crate::dockerfile::syntax::Keyword;

/// Columns of a comment, and lines of the history.
const WIDEST: usize = 160;
const MOST_LAYERS: usize = 200;

/// Characters of an image's name.
const LONGEST_NAME: usize = 512;

/// A Dockerfile that starts from the scanned image, with the plan's steps of a tag and of none, and the image's history
/// as comments. Every step that is not certain stands as a comment.
pub fn dockerfile(image: &ImageReport, config: Option<&ConfigFacts>, plan: &Plan, tag: Option<&str>) -> String {
    let mut out = Lines::default();
    match name(image) {
        Some(name) => out.line(&format!("FROM {name}")),
        None => {
            // Fixed words first: at the top of a file `# name=…` is a directive.
            out.comment("A builder cannot start from what was scanned: push or load it, and name it with");
            out.comment(&format!("--build-arg IMAGE=NAME. It was {}", image.reference));
            out.line("ARG IMAGE");
            out.line("FROM ${IMAGE}");
        }
    }
    let user = config.map(|c| c.user.as_str()).filter(|u| is_user(u) && !matches!(*u, "" | "root" | "0" | "0:0"));
    let wanted = |s: &&Step| s.change.is_of_the_image() && (s.tag.is_none() || s.tag.as_deref() == tag);
    let mut root = false;
    for step in plan.steps.iter().filter(wanted) {
        out.blank();
        out.comment(&step.summary);
        if let Some(review) = &step.review {
            out.comment(&format!("to be reviewed: {review}"));
        }
        let lines = instructions(step, config);
        if user.is_some() && !root && lines.iter().any(|l| matches!(l, Line::Do(text) if text.starts_with("RUN ")))
        {
            out.line("USER root");
            root = true;
        }
        for line in lines {
            match line {
                Line::Do(text) => out.line(&text),
                Line::Say(text) => out.comment(&text),
            }
        }
    }
    if let Some(user) = user.filter(|_| root) {
        out.blank();
        out.line(&format!("USER {user}"));
    }
    for step in plan.steps.iter().filter(|s| !s.change.is_of_the_image()) {
        out.blank();
        let whose = if step.change == Change::Advice { "by hand" } else { "not in the image" };
        out.comment(&format!("{whose}: {}", step.summary));
        if let Some(command) = &step.command {
            out.comment(&format!("  {command}"));
        }
    }
    let made: Vec<&str> = image.layers.iter().filter_map(|l| l.created_by.as_deref()).collect();
    if !made.is_empty() {
        out.blank();
        out.comment("How the scanned image was made, its oldest layer first:");
        for step in made.iter().take(MOST_LAYERS) {
            out.comment(&format!("  {step}"));
        }
        if made.len() > MOST_LAYERS {
            out.comment(&format!("  … and {} more", made.len() - MOST_LAYERS));
        }
    }
    out.0
}

enum Line {
    Do(String),
    Say(String),
}

/// Lines of a file, each of what is from outside one line and harmless.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }

    fn comment(&mut self, text: &str) {
        let text = clean(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        self.line(&format!("# {}", cut(&text, WIDEST)));
    }
}

/// What a builder can start from: the name in its registry, with the digest that was scanned.
pub fn name(image: &ImageReport) -> Option<String> {
    let name = image.reference.as_str();
    let (host, path) = name.split_once('/')?;
    let is_host = host == "localhost" || host.contains(['.', ':']);
    let letters = |c: char| c.is_ascii_alphanumeric() || "._-/:@+[]".contains(c);
    let last = path.rsplit('/').next().unwrap_or_default();
    let scheme = host.split_once(':').is_some_and(|(_, port)| !port.bytes().all(|b| b.is_ascii_digit()));
    let good = is_host
        && !scheme
        && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= LONGEST_NAME
        && name.chars().all(letters)
        && !path.split('/').any(|p| matches!(p, "" | "." | ".."))
        && last.contains([':', '@']);
    if !good {
        return None;
    }
    Some(match &image.digest {
        Some(digest) if !name.contains('@') => format!("{name}@{digest}"),
        _ => name.to_owned(),
    })
}

fn is_user(user: &str) -> bool {
    user.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c))
}

fn instructions(step: &Step, config: Option<&ConfigFacts>) -> Vec<Line> {
    let say = |text: String| vec![Line::Say(text)];
    match &step.change {
        Change::Wheel { package, specifier, index, version, .. } => {
            let mut words = vec!["pip install --no-cache-dir --upgrade".to_owned()];
            // With the index's own version: pip takes another build of the same release, which is there, for the same.
            words.push(word(&match (version, index) {
                (Some(version), Some((name, _))) => format!("{package}=={version}+{name}"),
                _ => format!("{package}{specifier}"),
            }));
            if let Some((_, url)) = index {
                words.push(format!("--extra-index-url {}", word(url)));
            }
            run(&words.join(" "))
        }
        Change::Source { setting: (name, value), install, .. } => {
            let mut lines = match assignment(Keyword::Arg, name, value, '\\') {
                Some(line) => vec![Line::Do(line)],
                None => say(format!("give the build {name}={value}")),
            };
            match install.as_str() {
                "" => lines.push(Line::Say("build it here, from its source".to_owned())),
                install if step.disposition == Disposition::Safe => lines.extend(run(install)),
                install => lines.push(Line::Say(format!("RUN {install}"))),
            }
            lines
        }
        Change::Base { from, to } => say(format!("build it on {to} instead of {from}: this file cannot")),
        Change::DropEntry { variable, entry } => {
            let same = |p: &&str| p.trim_end_matches('/') != entry.trim_end_matches('/');
            let rest = config.and_then(|c| c.var(variable)).map(|v| v.split(':').filter(same).collect::<Vec<_>>());
            let line = rest.and_then(|r| assignment(Keyword::Env, variable, &r.join(":"), '\\'));
            line.map_or_else(|| say(format!("take {entry} out of {variable}")), |line| vec![Line::Do(line)])
        }
        Change::SetVariable { name, value } => match assignment(Keyword::Env, name, value, '\\') {
            Some(line) => vec![Line::Do(line)],
            None => say(format!("set {name} to {value}")),
        },
        Change::UnsetVariable { name } => match assignment(Keyword::Env, name, "", '\\') {
            Some(line) => vec![Line::Say("it can be emptied here, not unset".to_owned()), Line::Do(line)],
            None => say(format!("unset {name}")),
        },
        Change::RemovePackages { manager, names } => packages(*manager, names, false),
        Change::AddPackages { manager, names, .. } => packages(*manager, names, true),
        Change::Driver { .. } | Change::DropTargets { .. } | Change::Advice => Vec::new(),
    }
}

/// A command as an instruction; as a comment where it is not one line.
fn run(command: &str) -> Vec<Line> {
    // What a Dockerfile itself would take from the line is a heredoc, a JSON form or a line that goes on.
    let risky = command.chars().any(char::is_control)
        || command.contains("<<")
        || command.trim_start().starts_with(['[', '-', '#'])
        || command.trim_end().ends_with('\\');
    vec![if risky { Line::Say(format!("RUN {command}")) } else { Line::Do(format!("RUN {command}")) }]
}

fn packages(manager: Manager, names: &[String], add: bool) -> Vec<Line> {
    let list = names.iter().map(|n| word(n)).collect::<Vec<_>>().join(" ");
    // A name that starts like an option would be one.
    if names.is_empty() || names.iter().any(|n| n.starts_with('-')) {
        return vec![Line::Say(format!("{} {list}", if add { "install" } else { "remove" }))];
    }
    let command = match (manager, add) {
        (Manager::Pip, true) => format!("pip install --no-cache-dir {list}"),
        (Manager::Pip, false) => format!("pip uninstall -y {list}"),
        (Manager::Dpkg, true) => format!(
            "apt-get update && apt-get install -y --no-install-recommends {list} && rm -rf /var/lib/apt/lists/*"
        ),
        (Manager::Dpkg, false) => format!("apt-get purge -y {list}"),
        (Manager::Rpm, true) => format!("dnf install -y {list} && dnf clean all"),
        (Manager::Rpm, false) => format!("dnf remove -y {list}"),
        (Manager::Apk, true) => format!("apk add --no-cache {list}"),
        (Manager::Apk, false) => format!("apk del {list}"),
        (Manager::Conda, true) => format!("conda install -y {list}"),
        (Manager::Conda, false) => format!("conda remove -y {list}"),
        (Manager::Path, _) => {
            return vec![Line::Say(format!("{} {list}", if add { "add" } else { "remove" }))];
        }
    };
    run(&command)
}
