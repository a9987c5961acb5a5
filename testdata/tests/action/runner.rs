//! Runs a composite action's steps as a runner of GitHub Actions does: expressions filled in, each script by bash in
//! the workspace, outputs and summary by files. Steps that use other actions are told, not run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::expression::{Scope, evaluate, fill};
use crate::common::testdata;

#[derive(Deserialize)]
pub struct Action {
    pub inputs: BTreeMap<String, Input>,
    pub outputs: BTreeMap<String, Output>,
    pub runs: Runs,
}

#[derive(Deserialize)]
pub struct Input {
    pub description: String,
    pub default: Option<String>,
}

#[derive(Deserialize)]
pub struct Output {
    pub description: String,
    pub value: String,
}

#[derive(Deserialize)]
pub struct Runs {
    pub using: String,
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
pub struct Step {
    pub name: String,
    pub id: Option<String>,
    #[serde(rename = "if")]
    pub condition: Option<String>,
    pub shell: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub run: Option<String>,
    pub uses: Option<String>,
    #[serde(default, rename = "with")]
    pub given: BTreeMap<String, String>,
}

impl Action {
    pub fn read() -> Self {
        let path = testdata().parent().unwrap().join("action.yml");
        serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }
}

/// A job: its workspace, home and event.
pub struct Job {
    root: tempfile::TempDir,
    pub inputs: BTreeMap<String, String>,
    /// `github.event.…` and the like.
    pub context: Scope,
    /// Besides those of the runner.
    pub env: BTreeMap<String, String>,
    /// The action's folder.
    pub action: PathBuf,
}

/// What a run of the action has left.
#[derive(Debug)]
pub struct Done {
    /// The first exit status that is not 0.
    pub code: i32,
    pub log: String,
    pub summary: String,
    pub outputs: BTreeMap<String, String>,
    /// Of each step that ran, its exit status; of those that use an action, what they were given.
    pub steps: Vec<(String, Option<i32>)>,
    pub given: BTreeMap<String, BTreeMap<String, String>>,
}

impl Job {
    /// `cargo` of this job installs the program that the tests were built with, and nothing else.
    pub fn new(inputs: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["work", "home", "temp", "bin"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        let built = env!("CARGO_BIN_EXE_imagelint");
        let cargo = format!(
            "#!/bin/bash\n\
             [ \"$*\" = \"install --quiet --locked --force --path . --bin imagelint --root ${{!#}}\" ] || exit 101\n\
             [ -f Cargo.lock ] && mkdir -p \"${{!#}}/bin\" && ln -s '{built}' \"${{!#}}/bin/imagelint\"\n"
        );
        let job = Self {
            root,
            inputs: inputs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            context: Scope::default(),
            env: BTreeMap::new(),
            action: testdata().parent().unwrap().to_owned(),
        };
        job.program("cargo", &cargo);
        job
    }

    /// Puts a script on the path.
    pub fn program(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.root.path().join("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn temp(&self) -> PathBuf {
        self.root.path().join("temp")
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn run(&self) -> Done {
        let action = Action::read();
        let mut scope = self.context.clone();
        scope.set("runner.os", "Linux");
        scope.set("runner.arch", "X64");
        for name in self.inputs.keys() {
            assert!(action.inputs.contains_key(name), "the action has no input {name}");
        }
        for (name, input) in &action.inputs {
            let default = input.default.clone().unwrap_or_default();
            scope.set(&format!("inputs.{name}"), self.inputs.get(name).unwrap_or(&default));
        }
        let summary = self.root.path().join("summary");
        let _ = fs::remove_file(&summary);
        let mut done = Done {
            code: 0,
            log: String::new(),
            summary: String::new(),
            outputs: BTreeMap::new(),
            steps: Vec::new(),
            given: BTreeMap::new(),
        };
        for step in &action.runs.steps {
            scope.set("success", if done.code == 0 { "true" } else { "" });
            // Without a condition that says otherwise, only after success.
            let condition = step.condition.as_deref().unwrap_or("success()");
            let always = condition.contains("always()");
            if !evaluate(condition, &scope).truthy() || (done.code != 0 && !always) {
                continue;
            }
            let Some(script) = &step.run else {
                done.steps.push((step.name.clone(), None));
                let given = step.given.iter().map(|(k, v)| (k.clone(), fill(v, &scope)));
                done.given.insert(step.name.clone(), given.collect());
                continue;
            };
            let (code, log, outputs) = self.script(step, script, &scope, &summary);
            done.log.push_str(&log);
            for (name, value) in outputs {
                let id = step.id.as_deref().expect("a step with outputs has an id");
                scope.set(&format!("steps.{id}.outputs.{name}"), &value);
            }
            if done.code == 0 {
                done.code = code;
            }
            done.steps.push((step.name.clone(), Some(code)));
        }
        let value = |output: &Output| fill(&output.value, &scope);
        done.outputs = action.outputs.iter().map(|(name, output)| (name.clone(), value(output))).collect();
        done.summary = fs::read_to_string(&summary).unwrap_or_default();
        // Nothing else of the job is touched.
        for file in ["env", "path"] {
            assert_eq!(fs::read_to_string(self.root.path().join(file)).unwrap_or_default(), "", "{done:?}");
        }
        done
    }

    fn script(
        &self,
        step: &Step,
        script: &str,
        scope: &Scope,
        summary: &Path,
    ) -> (i32, String, Vec<(String, String)>) {
        assert_eq!(step.shell.as_deref(), Some("bash"), "{}", step.name);
        assert!(!script.contains("${{"), "{}: a value would become part of the script", step.name);
        let at = |name: &str| self.root.path().join(name);
        fs::write(at("script.sh"), script).unwrap();
        fs::write(at("output"), "").unwrap();
        let mut path = vec![at("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(at("script.sh"));
        command.current_dir(self.work()).env_clear();
        command.env("PATH", std::env::join_paths(path).unwrap()).env("HOME", self.home()).env("RUNNER_OS", "Linux");
        command.env("RUNNER_ARCH", "X64").env("RUNNER_TEMP", self.temp()).env("GITHUB_WORKSPACE", self.work());
        command.env("GITHUB_ACTION_PATH", &self.action).env("GITHUB_OUTPUT", at("output"));
        command.env("GITHUB_STEP_SUMMARY", summary).env("GITHUB_ENV", at("env")).env("GITHUB_PATH", at("path"));
        command.env("GITHUB_ACTIONS", "true").env("CI", "true").envs(&self.env);
        command.envs(step.env.iter().map(|(name, value)| (name, fill(value, scope))));
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let mut log = String::from_utf8(output.stdout).unwrap();
        log.push_str(&String::from_utf8(output.stderr).unwrap());
        let told = fs::read_to_string(at("output")).unwrap();
        let outputs = told.lines().map(|line| {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line:?} among outputs"));
            (name.to_owned(), value.to_owned())
        });
        (output.status.code().unwrap_or(-1), log, outputs.collect())
    }
}
