//! What can be typed.

mod cache;
mod diff;
mod fleet;
mod gate;
mod generate;
mod lint;
mod many;
mod plan;
mod policy;
mod read;
mod rebuild;
mod servers;
mod wheels;

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Parser, Subcommand, ValueEnum};

use super::error::CliError;
use crate::config::Date;
use crate::model::Platform;
use crate::report::Format;

pub use self::cache::{CacheAction, CacheArgs, CacheCommandArgs, CacheFolder};
pub use self::diff::DiffArgs;
pub use self::fleet::{
    FleetArgs, FleetSource, FromHostArgs, FromInstancesArgs, FromNodesArgs, InitArgs, PresetArgs,
};
pub use self::gate::GateArgs;
pub use self::generate::{CompletionsArgs, GenerateArgs};
pub use self::lint::{LintArgs, RuleLevel};
pub use self::many::{ManyArgs, Shard};
pub use self::plan::{Emit, PlanArgs};
pub use self::policy::PolicyArgs;
pub use self::read::ReadArgs;
pub use self::rebuild::{BuilderName, RebuildArgs};
pub use self::servers::ServerArgs;
pub use self::wheels::WheelArgs;

const EXAMPLES: &str = "\
Examples:
  imagelint scan nvcr.io/nvidia/pytorch:25.01-py3 --target h100@535
  imagelint scan docker-archive:image.tar --fleet imagelint.toml --format json
  imagelint scan ./rootfs --target \"RTX 5090@575\" --target t4
  imagelint lint docker/ --target h100@535
  imagelint inspect libtorch_cuda.so
  imagelint plan oci:layout --target sm_120
  imagelint diff app:1 app:2 --fail-on-loss

Exit status:
  0  nothing at or above --fail-on
  1  something is
  2  the question could not be answered";

/// Will this container image run on these GPUs with these drivers? Scans device code, without a GPU.
#[derive(Debug, Parser)]
#[command(name = "imagelint", version, about, after_help = EXAMPLES, max_term_width = 100)]
#[command(propagate_version = false, disable_help_subcommand = true, arg_required_else_help = true)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// When to colour; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", help_heading = "Display")]
    pub color: Colour,
    /// Columns of tables [default: the terminal's, else 80]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(40..), help_heading = "Display")]
    pub width: Option<u16>,
    /// Nothing on standard error but errors: no progress, no notes
    #[arg(long, short, global = true, help_heading = "Display")]
    pub quiet: bool,
    /// Say more: reasons and sources (-v), every file and every request to a registry (-vv)
    #[arg(long, short, global = true, action = ArgAction::Count, help_heading = "Display")]
    pub verbose: u8,
    /// Folder of TOML files, called as those in rules/data, whose rows are merged over the embedded ones
    #[arg(
        long = "rules",
        global = true,
        value_name = "DIR",
        env = "IMAGELINT_RULES",
        hide_env_values = true,
        help_heading = "Catalog"
    )]
    pub rules_dir: Option<PathBuf>,
    /// The day that waivers and the catalog's age are held against [default: today, UTC]
    #[arg(long, global = true, hide = true, value_name = "DAY", env = "IMAGELINT_TODAY", value_parser = day)]
    pub today: Option<Date>,
}

fn day(text: &str) -> Result<Date, String> {
    text.parse().map_err(|what| format!("`{text}` {what}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge images: which of the fleet's GPUs and drivers run them, and why
    #[command(after_help = SCAN_HELP, alias = "image")]
    Scan(ScanArgs),
    /// Lint Dockerfiles: what they ask for, held against the fleet and against itself
    #[command(after_help = lint::HELP)]
    Lint(LintArgs),
    /// Judge an image and print what to rebuild or replace
    #[command(after_help = plan::HELP)]
    Plan(PlanArgs),
    /// Carry the plan out with an installed builder, then judge what was built
    #[command(after_help = rebuild::HELP)]
    Rebuild(RebuildArgs),
    /// Judge an image and print a shell script that checks the prediction on a GPU node
    #[command(after_help = VERIFY_HELP)]
    VerifyScript(VerifyArgs),
    /// Compare two images: coverage, driver, libraries, packages, settings, size
    #[command(after_help = diff::HELP)]
    Diff(DiffArgs),
    /// List device code and linked libraries of single files
    #[command(after_help = INSPECT_HELP)]
    Inspect(InspectArgs),
    /// Write an imagelint.toml from what is here: Dockerfiles, this host's GPUs, a cluster's nodes
    #[command(after_help = fleet::INIT_HELP)]
    Init(InitArgs),
    /// Print targets for where the fleet is: a cluster, machine types, this host, a platform
    #[command(after_help = fleet::HELP)]
    Fleet(FleetArgs),
    /// Print the page of a rule or a verdict
    Explain(ExplainArgs),
    /// List the rules
    Rules(ListArgs),
    /// List the GPUs that the catalog knows, with their names and architectures
    Gpus(ListArgs),
    /// List the CUDA toolkits that the catalog knows
    Toolkits(ListArgs),
    /// Show where facts of layers are kept, how much, and prune them
    #[command(after_help = cache::HELP)]
    Cache(CacheCommandArgs),
    /// Write the files of imagelint's own repository that its sources imply
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
    /// Count what a JSON report found, as GITHUB_OUTPUT takes it
    #[command(hide = true)]
    ActionOutputs(ActionOutputsArgs),
}

const SCAN_HELP: &str = "\
IMAGE is a registry reference (registry/repo:tag, repo@sha256:…), a path, or one of
  registry:REF         docker:NAME          podman:NAME
  containers-storage:NAME (podman's and buildah's, read in place)
  oci:DIR[:TAG]        oci-archive:FILE     docker-archive:FILE
  dir:ROOTFS           tar:ROOTFS.tar       squashfs:FILE (Enroot)
  file:FILE            one ELF file, fatbin or wheel
  -                    an archive on standard input (docker save, ctr images export, Kaniko)
A bare word is a path where that path exists, otherwise a registry reference.

GPU is a product (a100, \"RTX 5090\"), an nvidia-smi name, a GPU Feature Discovery label, or an
architecture (sm_90, 9.0); DRIVER a version (535.183.01), a branch (535) or a range (\">=535.54, <570\").
Without --target, --fleet or an imagelint.toml the coverage is printed and nothing is judged.

Examples:
  imagelint scan vllm/vllm-openai:latest --target h100@550 --target l4@535
  imagelint scan oci-archive:image.tar -o json=report.json
  imagelint scan registry.example/team/app:1 --username ci --password-stdin <token.txt
  imagelint scan registry.example/team/app:1 --authfile auth.json --ca-file company.pem
  imagelint scan vllm/vllm-openai:latest --mirror mirror.example:5000/hub
  imagelint scan IMAGE --save-evidence scan.json
  imagelint scan --from-evidence scan.json --target b200@580
  imagelint scan IMAGE --baseline report.json        fails on what is new since that report
  imagelint scan IMAGE --target a100 --sizes
  imagelint scan IMAGE --fleet fleet.toml --emit-affinity affinity.yaml
  imagelint scan IMAGE --fleet fleet.toml --attest statement.json && jq .predicate statement.json >p.json &&
    cosign attest --type urn:imagelint:attestation:v1 --predicate p.json IMAGE@DIGEST
  imagelint scan --list images.txt --shard 0/4 -f json >part-0.jsonl";

const VERIFY_HELP: &str = "\
Examples:
  imagelint verify-script registry/app:1 --target a100@535 >verify.sh
  sh verify.sh                                       on the node, with docker or podman
  kubectl exec -i POD -- sh -s inside <verify.sh     within a pod of the image";

const INSPECT_HELP: &str = "\
Examples:
  imagelint inspect libtorch_cuda.so
  imagelint inspect -v *.so --format json";

/// What to judge, and against what.
#[derive(Debug, clap::Args)]
pub struct ImageArgs {
    /// Images to judge
    #[arg(value_name = "IMAGE", required_unless_present_any = ["from_evidence", "list"])]
    pub images: Vec<String>,
    #[command(flatten)]
    pub many: ManyArgs,

    /// GPU, and driver if known, to judge against; again for more
    #[arg(long = "target", short = 't', value_name = "GPU[@DRIVER]", help_heading = "Fleet")]
    pub targets: Vec<String>,
    /// File of targets [default: imagelint.toml, here or in a folder above]
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub fleet: Option<PathBuf>,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Dockerfile that the image was built from: its findings join the image's
    #[arg(long, value_name = "FILE", help_heading = "Dockerfile")]
    pub dockerfile: Option<PathBuf>,
    /// Platform to take of an index [default: each target's own, else linux/amd64]
    #[arg(long, value_name = "OS/ARCH", help_heading = "Fleet")]
    pub platform: Option<Platform>,

    /// Findings that make the exit status 1
    #[arg(long, value_enum, default_value_t = FailOn::Error, value_name = "SEVERITY", help_heading = "Verdict")]
    pub fail_on: FailOn,
    /// Answer even if part of the image could not be read, or a core component not be decided
    #[arg(long, help_heading = "Verdict")]
    pub allow_gaps: bool,

    /// Keep what was scanned, to be judged again with --from-evidence
    #[arg(long, value_name = "FILE", help_heading = "Scan")]
    pub save_evidence: Option<PathBuf>,
    /// Judge a saved scan; no image is read
    #[arg(long, value_name = "FILE", conflicts_with_all = ["images", "list", "shard", "save_evidence", "platform"], help_heading = "Scan")]
    pub from_evidence: Option<PathBuf>,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Add to the report what the run took: seconds, bytes read, layers from the cache
    #[arg(long, help_heading = "Scan")]
    pub stats: bool,

    /// Write a report to a file as well; again for more formats
    #[arg(long = "output", short, value_name = "FORMAT=FILE", value_parser = output, help_heading = "Report")]
    pub outputs: Vec<Output>,
}

#[derive(Debug, clap::Args)]
pub struct ScanArgs {
    #[command(flatten)]
    pub image: ImageArgs,
    /// Report and fail on what is new since an earlier JSON report (-o json=FILE) of the image
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    pub baseline: Option<PathBuf>,
    /// Add the bytes of device code: per component and architecture, and what no target takes
    #[arg(long, help_heading = "Report")]
    pub sizes: bool,
    #[command(flatten)]
    pub gate: GateArgs,
    /// Format on standard output: table, json, sarif, github, markdown, html, junit or gitlab
    #[arg(long, short, default_value = "table", value_parser = format, help_heading = "Report")]
    pub format: Format,
}

#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub image: ImageArgs,
}

#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// ELF files, fatbins, cubins, PTX, offload bundles, code objects, kpack and static archives, wheels
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Inflate compressed offload bundles whole (up to 16 GiB a file) and check sizes, hashes and targets
    #[arg(long)]
    pub verify: bool,
    /// Format on standard output: table or json
    #[arg(long, short, default_value = "table", value_parser = plain_format)]
    pub format: Format,
}

#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// A rule's id, as findings show it, or a verdict (fail, unknown, blocked, cpu, slow, warn, ok)
    #[arg(value_name = "RULE")]
    pub rule: String,
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Format on standard output: table or json
    #[arg(long, short, default_value = "table", value_parser = plain_format)]
    pub format: Format,
}

#[derive(Debug, clap::Args)]
pub struct ActionOutputsArgs {
    /// JSON report of `scan` or `lint`
    #[arg(value_name = "FILE")]
    pub report: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum FailOn {
    #[default]
    Error,
    Warning,
    Note,
    Never,
}

/// One `-o`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub format: Format,
    pub file: PathBuf,
}

/// What reports with findings can be.
const FORMATS: &str = "table, json, sarif, github, markdown, html, junit and gitlab";

fn format(text: &str) -> Result<Format, String> {
    match text {
        "table" | "text" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        "sarif" => Ok(Format::Sarif),
        "github" => Ok(Format::Github),
        "markdown" | "md" => Ok(Format::Markdown),
        "junit" => Ok(Format::Junit),
        "gitlab" => Ok(Format::Gitlab),
        "html" => Ok(Format::Html),
        _ => Err(format!("there are {FORMATS}")),
    }
}

/// Of lists, which hold no findings.
fn plain_format(text: &str) -> Result<Format, String> {
    match text {
        "table" | "text" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        _ => Err("there are table and json".to_owned()),
    }
}

fn output(text: &str) -> Result<Output, String> {
    let (word, file) = text.split_once('=').ok_or("give a format and a file, as in json=report.json")?;
    if file.is_empty() {
        return Err("the file's name is missing".to_owned());
    }
    Ok(Output { format: format(word)?, file: file.into() })
}

/// A first word that is no command is most likely an image.
pub fn mistaken_command(error: &clap::Error) -> Option<CliError> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    // A word that is nearly a command is left to the parser, which names it.
    let image_like = word.contains(['/', ':', '.', '@']) || error.get(ContextKind::SuggestedSubcommand).is_none();
    image_like.then(|| CliError::NoSuchCommand(word.clone()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(args: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(std::iter::once(&"imagelint").chain(args))
    }

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_contract_s_flags_are_accepted() {
        let args = parse(&[
            "scan",
            "a",
            "-",
            "--fleet",
            "f.toml",
            "--target",
            "h100@535",
            "--target",
            "RTX 5090@>=575, <600",
            "--platform",
            "linux/arm64",
            "--format",
            "json",
            "-o",
            "json=a.json",
            "-o",
            "table=b=c.txt",
            "--fail-on",
            "never",
            "--jobs",
            "4",
            "--allow-gaps",
            "--save-evidence",
            "e.json",
            "--quiet",
            "-vv",
            "--stats",
            "--insecure-registry",
            "h:5000",
            "--max-layer-size",
            "64GiB",
            "--color",
            "never",
            "--width",
            "60",
            "--no-cache",
        ])
        .unwrap();
        let Command::Scan(scan) = args.command else { panic!("not a scan") };
        assert_eq!(scan.image.images, ["a", "-"]);
        assert_eq!(scan.image.targets, ["h100@535", "RTX 5090@>=575, <600"]);
        assert_eq!(scan.image.outputs[1], Output { format: Format::Table, file: "b=c.txt".into() });
        assert_eq!(scan.image.read.max_layer_size, Some(64 << 30));
        assert_eq!((args.global.verbose, args.global.quiet, args.global.width), (2, true, Some(60)));
    }

    #[test]
    fn lint_takes_what_a_build_takes() {
        let Command::Lint(lint) = parse(&["lint"]).unwrap().command else { panic!("not lint") };
        assert_eq!(lint.paths, [PathBuf::from(".")]);
        let args = parse(&[
            "lint",
            "a",
            "-",
            "-t",
            "h100",
            "--rule",
            "x",
            "--rule",
            "y=off",
            "--build-arg",
            "A=b",
            "--build-arg",
            "C",
            "--build-target",
            "s",
            "--platform",
            "linux/arm64",
            "--compose",
            "c",
            "--bake",
            "d",
            "--context",
            "e",
            "--fail-on",
            "note",
            "--fix",
            "--no-ignore",
            "-j",
            "2",
            "-f",
            "text",
            "-o",
            "sarif=f",
        ]);
        let Command::Lint(lint) = args.unwrap().command else { panic!("not lint") };
        assert_eq!((lint.rules[0].level, lint.rules[1].level), (RuleLevel::On, RuleLevel::Off));
        assert_eq!((lint.format, lint.outputs[0].format), (Format::Table, Format::Sarif));
        assert!(parse(&["lint", "--fix", "--diff"]).unwrap_err().to_string().contains("cannot be used"));
        assert!(parse(&["rules", "--format", "sarif"]).unwrap_err().to_string().contains("table and json"));
    }

    #[test]
    fn usage_errors_name_what_is_wrong() {
        let error = |args: &[&str]| parse(args).unwrap_err().to_string();
        assert!(error(&["scan"]).contains("IMAGE"));
        assert!(error(&["scan", "x", "--format", "pdf"]).contains("markdown, html, junit and gitlab"));
        assert!(error(&["scan", "x", "-o", "report.json"]).contains("json=report.json"));
        assert!(error(&["scan", "x", "--from-evidence", "e"]).contains("cannot be used"));
        assert!(error(&["scan", "x", "--width", "20"]).contains("40"));
        assert!(error(&["scan", "x", "--baseline"]).contains("--baseline"));
        assert!(error(&["scan", "x", "--max-layer-size", "many"]).contains("64GiB"));
        for args in [&["scan"][..], &["scan", "x", "--format", "pdf"], &["nonsense"]] {
            assert_eq!(parse(args).unwrap_err().exit_code(), 2);
        }
        assert!(parse(&["scan", "--from-evidence", "e"]).is_ok());
    }

    #[test]
    fn an_image_without_a_command_is_told_the_command() {
        let hint = |word: &str| mistaken_command(&parse(&[word]).unwrap_err()).and_then(|e| e.hint());
        assert_eq!(hint("ubuntu:24.04").as_deref(), Some("imagelint scan ubuntu:24.04"));
        assert_eq!(hint("image.tar").as_deref(), Some("imagelint scan image.tar"));
        assert!(hint("scna").is_none(), "the parser names the command that was meant");
    }
}
