//! `imagelint fleet from-host`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::FleetError;
use super::nodes::read;
use super::show::{Source, made_by, show};
use crate::cli::args::FromHostArgs;
use crate::cli::basis;
use crate::cli::error::CliError;
use crate::cli::output::Screen;
use crate::discover::host::Host;
use crate::discover::{self, Found, csv};
use crate::model::{Platform, Runtime};

/// nvidia-smi needs some seconds where the driver is not kept loaded; where it hangs, it hangs for good.
const PATIENCE: Duration = Duration::from_secs(30);
const MOST_MIB: u64 = 4;
/// Where WSL2 keeps it, which is not on every shell's path.
const OF_WSL: &str = "/usr/lib/wsl/lib/nvidia-smi";

pub fn run(args: &FromHostArgs, screen: &Screen) -> Result<u8, CliError> {
    let found = match &args.from {
        Some(file) => saved(file)?,
        None => found(args.root.as_deref(), screen).ok_or(FleetError::NoGpuHere)?,
    };
    let source = Source { head: vec![made_by("from-host")], one: "host", many: "hosts" };
    show(&found, &source, args.format.format, screen)
}

/// Another host's answer of nvidia-smi.
fn saved(file: &Path) -> Result<Found, CliError> {
    let (bytes, place) = read(file, MOST_MIB)?;
    let seen = csv::gpus(&String::from_utf8_lossy(&bytes), Runtime::default(), None, basis::catalog());
    if seen.is_empty() {
        return Err(FleetError::NoAnswer { place }.into());
    }
    Ok(discover::one(seen, basis::catalog()))
}

/// The GPUs of this host, or of the one whose files lie in a folder; nothing where there are none.
pub fn found(root: Option<&Path>, screen: &Screen) -> Option<Found> {
    let catalog = basis::catalog();
    let own = || format!("linux/{}", std::env::consts::ARCH).parse::<Platform>().ok();
    let platform = root.is_none().then(own).flatten();
    let host = Host::new(root.unwrap_or(Path::new("/")), platform.clone(), catalog);
    let mut seen = Vec::new();
    // Nobody asks this host's program of another host's files. Tegra's answers have no name and no version.
    if root.is_none() && host.runtime() != Runtime::Tegra {
        let answer = csv::QUERIES.iter().find_map(|query| ask(query, screen));
        seen = csv::gpus(&answer.unwrap_or_default(), host.runtime(), platform.as_ref(), catalog);
    }
    if seen.is_empty() {
        seen = host.nvidia();
    }
    let mut told = Vec::new();
    if !seen.is_empty() {
        told.push("NVIDIA");
    }
    let amd = host.amd();
    if !amd.is_empty() {
        told.push("AMD");
    }
    seen.extend(amd);
    seen.extend(host.display(&told));
    (!seen.is_empty()).then(|| discover::one(seen, catalog))
}

/// What nvidia-smi prints; nothing where there is none, or it fails.
fn ask(query: &str, screen: &Screen) -> Option<String> {
    let program = [PathBuf::from("nvidia-smi"), PathBuf::from(OF_WSL)];
    let start = |program: &PathBuf| {
        let mut command = Command::new(program);
        command.arg(format!("--query-gpu={query}")).arg("--format=csv,noheader");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
    };
    let mut child = program.iter().find_map(start)?;
    let pipe = child.stdout.take()?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.take(MOST_MIB << 20).read_to_end(&mut text);
        let _ = send.send(text);
    });
    let end = Instant::now() + PATIENCE;
    let text = receive.recv_timeout(PATIENCE);
    let status = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            Ok(Some(status)) => break Some(status),
            _ => break None,
        }
    };
    if status.is_none() {
        let _ = child.kill();
        screen.notice(&format!("nvidia-smi did not answer within {} seconds", PATIENCE.as_secs()));
    }
    let text = text.ok().filter(|_| status.is_some_and(|s| s.success()))?;
    Some(String::from_utf8_lossy(&text).into_owned())
}
