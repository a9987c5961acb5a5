//! From the command line to how registries are spoken to.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use super::args::ServerArgs;
use super::error::CliError;
use super::output::Screen;
use crate::image::sources::{Login, OpenOptions, Trace};
use crate::report::text::clean;

/// The longest password that is read. Tokens of clouds have some KiB.
const MAX_PASSWORD: u64 = 64 << 10;

/// How many `-v` it takes to be told of each request.
const TRACES: u8 = 2;

pub fn options(args: &ServerArgs, screen: &Screen) -> Result<OpenOptions, CliError> {
    let mut out = OpenOptions {
        insecure: args.insecure_registries.clone(),
        ca_file: args.ca_file.clone(),
        auth_file: args.authfile.clone(),
        auth_hosts: args.auth_hosts.clone(),
        mirrors: args.mirrors.clone(),
        stdin_is_read: args.password_stdin,
        ..OpenOptions::default()
    };
    if let Some(seconds) = args.read_timeout {
        out.read_timeout = Duration::from_secs(seconds);
    }
    if let Some(username) = &args.username {
        let login = Login { username: username.clone(), password: password()?, from: "--username" };
        out.login = Some(Arc::new(login));
    }
    if screen.verbose() >= TRACES && !screen.quiet {
        out.trace = Some(Trace::new(|line| {
            // Standard error may be closed; there is nobody left to tell.
            let _ = writeln!(io::stderr().lock(), "http: {}", clean(line));
        }));
    }
    Ok(out)
}

/// The password: all of standard input, without the end of its line.
fn password() -> Result<String, CliError> {
    let place = "standard input, the password";
    let refused =
        |what: &str| CliError::Read { place: place.to_owned(), source: io::Error::other(what.to_owned()) };
    let mut text = String::new();
    let read = io::stdin().take(MAX_PASSWORD + 1).read_to_string(&mut text);
    read.map_err(|source| CliError::Read { place: place.to_owned(), source })?;
    if text.len() as u64 > MAX_PASSWORD {
        return Err(refused("longer than any password"));
    }
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    match password {
        "" => Err(refused("it is empty")),
        password => Ok(password.to_owned()),
    }
}
