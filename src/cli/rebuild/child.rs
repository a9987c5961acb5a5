//! Programs that are run: their output as it comes, and their end when the user wants no more.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anstream::adapter::strip_str;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::secrets::Secrets;
use crate::report::text::clean;

/// Lines of a build that are kept for its error.
const KEPT: usize = 20;
/// Bytes of a line that are kept.
const KEPT_OF_LINE: usize = 2000;
/// Bytes after which a line that does not end is passed on.
const LONGEST: u64 = 64 << 10;
/// How long a program that is asked to end may take.
const GRACE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// What must not be left behind when a signal ends the run: the program under way, and a folder of temporary files.
#[derive(Debug, Clone)]
pub struct Watch(Arc<Mutex<Left>>);

#[derive(Debug, Default)]
struct Left {
    child: Option<Pid>,
    folder: Option<PathBuf>,
    /// A signal came: nothing is started any more.
    ending: bool,
}

impl Watch {
    /// From now on SIGINT, SIGTERM and SIGHUP end the program under way with all that it started, then remove `folder`,
    /// then do to this process what they always do.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let left = Left { folder: Some(folder.to_owned()), ..Left::default() };
        let watch = Self(Arc::new(Mutex::new(left)));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let own = watch.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                own.end();
                // What it does not do, nobody can; the next signal finds the same end.
                let _ = emulate_default_handler(signal);
            }
        })?;
        Ok(watch)
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let child = {
            let mut left = self.left();
            left.ending = true;
            left.child
        };
        if let Some(group) = child {
            end_group(group);
        }
        if let Some(folder) = self.left().folder.take() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    /// Starts a program as the leader of a process group of its own.
    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut left = self.left();
        if left.ending {
            drop(left);
            wait_for_the_end();
        }
        let child = command.process_group(0).spawn()?;
        left.child = group_of(&child);
        Ok(child)
    }

    fn ended(&self) {
        let mut left = self.left();
        left.child = None;
        if left.ending {
            drop(left);
            wait_for_the_end();
        }
    }
}

/// The group that a child leads.
fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// The thread of signals is about to end the process.
fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

/// Asks a process group to end, and makes it.
fn end_group(group: Pid) {
    let _ = kill_process_group(group, Signal::TERM);
    let started = Instant::now();
    while started.elapsed() < GRACE && test_kill_process_group(group).is_ok() {
        thread::sleep(STEP);
    }
    let _ = kill_process_group(group, Signal::KILL);
}

/// How a program ended, and the last lines that it printed.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub tail: Vec<String>,
}

/// Runs a program; what it prints goes to standard error line by line as it comes, unless `quiet`. Both its outputs are
/// one pipe, so that lines keep their order.
pub fn stream(mut command: Command, quiet: bool, secrets: &Secrets, watch: &Watch) -> io::Result<Ended> {
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = watch.spawn(&mut command)?;
    // Its ends of the pipe: the last that is closed ends the reading.
    drop(command);
    let tail = pass_on(reader, quiet, secrets);
    let status = child.wait();
    watch.ended();
    Ok(Ended { status: status?, tail: tail.into() })
}

/// Gives the last lines.
fn pass_on(pipe: impl Read, quiet: bool, secrets: &Secrets) -> VecDeque<String> {
    let mut tail = VecDeque::new();
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        // What cannot be read any more is over.
        if pipe.by_ref().take(LONGEST).read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            return tail;
        }
        let line = secrets.hidden(&line);
        if !quiet {
            // Standard error may be closed; the build goes on.
            let _ = io::stderr().lock().write_all(&line);
        }
        let end = line.len().min(KEPT_OF_LINE);
        // Bars are drawn over themselves with carriage returns: the last state is what a reader saw.
        let text = String::from_utf8_lossy(line.get(..end).unwrap_or_default());
        let text = strip_str(text.trim_end().rsplit('\r').next().unwrap_or_default()).to_string();
        let text = clean(&text.replace('\t', " "));
        if text.trim().is_empty() {
            continue;
        }
        if tail.len() == KEPT {
            tail.pop_front();
        }
        tail.push_back(text);
    }
}

/// Whether a program runs and answers within the time with success, and the first line that it prints.
pub fn answers(command: &mut Command, within: Duration, watch: &Watch) -> Option<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = watch.spawn(command).ok()?;
    let group = group_of(&child);
    let out = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut line = Vec::new();
        if let Some(pipe) = out {
            let mut pipe = BufReader::new(pipe);
            let _ = pipe.by_ref().take(LONGEST).read_until(b'\n', &mut line);
            // It is let finish: one that cannot write its other lines would fail.
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        line
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(None) if started.elapsed() < within => thread::sleep(STEP),
            Ok(None) => {
                let _ = group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = child.wait();
                break None;
            }
            Ok(status) => break status,
            Err(_) => break None,
        }
    };
    watch.ended();
    let line = reader.join().unwrap_or_default();
    status.filter(ExitStatus::success)?;
    Some(String::from_utf8_lossy(&line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn idle() -> Watch {
        Watch(Arc::default())
    }

    #[test]
    fn the_last_lines_are_kept_as_text() {
        let script = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line $i; done; printf '\\033[31mred\\033[0m\\n' >&2; \
                      printf '10%%\\r100%%\\nno end'; exit 3";
        let ended = stream(shell(script), true, &Secrets::default(), &idle()).unwrap();
        assert_eq!((ended.status.code(), ended.tail.len()), (Some(3), KEPT));
        let text = ended.tail.join("\n");
        assert!(text.contains("red") && text.contains("line 50") && text.contains("no end"), "{text}");
        assert!(!text.contains("line 1\n") && !text.contains('\u{1b}') && !text.contains("10%\r"), "{text}");
    }

    #[test]
    fn what_never_ends_is_not_waited_for() {
        let started = Instant::now();
        assert_eq!(answers(&mut shell("sleep 60 & wait"), Duration::from_millis(100), &idle()), None);
        assert!(started.elapsed() < Duration::from_secs(8));
        let second = Duration::from_secs(20);
        assert_eq!(answers(&mut shell("echo version 1; echo more"), second, &idle()).unwrap(), "version 1");
        assert_eq!(answers(&mut shell("echo version 1; exit 1"), second, &idle()), None);
        assert_eq!(answers(&mut Command::new("no-such-program"), second, &idle()), None);
    }
}
