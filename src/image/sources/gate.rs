//! What a registry wants to see before it answers, for one repository: a password, or a token that its token server
//! gives for one. Credentials are sent only once they are asked for, and only where they belong.

use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ureq::http::Uri;

use super::super::http::{Answer, Failure, Get, Wire, is_passing, place_of};
use super::auth::{self, Bearer, Challenge, Token};
use super::credentials::{self, Credential, Looked};
use super::hosts;
use super::manifest::shown;

/// The largest token document.
const MAX_TOKEN: u64 = 1 << 20;

const SERVER: &str = "the token server";

pub struct Gate {
    /// As it is named.
    registry: String,
    repository: String,
    /// What was typed is for this registry.
    typed: bool,
    /// Held while a token is asked for, so that many layers ask once.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pass: Pass,
    challenges: Vec<Challenge>,
    looked: Option<Looked>,
    told: Told,
}

/// What is shown to the registry.
#[derive(Clone, Default)]
pub struct Pass {
    pub header: Option<String>,
    /// Goes up with each new one.
    number: u64,
    until: Option<Instant>,
}

/// What became of the credentials.
#[derive(Clone, Default, PartialEq, Eq)]
enum Told {
    /// There are none, or nobody asked.
    #[default]
    Nothing,
    Sent,
    /// This host was not to have them.
    Withheld(String),
}

impl Gate {
    pub fn new(registry: &str, repository: &str, typed: bool) -> Self {
        let (registry, repository) = (registry.to_owned(), repository.to_owned());
        Self { registry, repository, typed, state: Mutex::default() }
    }

    /// What to show now: renewed first where it has run out.
    pub fn pass(&self, wire: &Wire, url: &Uri, what: &str) -> Result<Pass, Failure> {
        let mut state = self.state();
        if state.pass.until.is_some_and(|until| until <= Instant::now()) {
            self.make(&mut state, wire, url, what)?;
        }
        Ok(state.pass.clone())
    }

    /// What to show after `seen` was refused with these challenges; `None`: there is nothing else.
    pub fn renew(
        &self,
        seen: &Pass,
        challenges: Vec<Challenge>,
        wire: &Wire,
        url: &Uri,
        what: &str,
    ) -> Result<Option<Pass>, Failure> {
        let mut state = self.state();
        if state.pass.number != seen.number {
            // Somebody else was refused before, and has a new one already.
            return Ok(Some(state.pass.clone()));
        }
        state.challenges = challenges;
        let made = self.make(&mut state, wire, url, what)?;
        Ok((made && state.pass.header != seen.header).then(|| state.pass.clone()))
    }

    /// Helpers that could not be asked.
    pub fn notes(&self) -> Vec<String> {
        self.state().looked.as_ref().map(|l| l.notes.clone()).unwrap_or_default()
    }

    /// Words for a refusal: what is behind it, and what to try.
    pub fn denied(&self, status: u16, wire: &Wire) -> (String, String) {
        let mut state = self.state();
        if state.looked.is_none() {
            // Refused without having been asked. What cannot be read is no help here.
            let looked = credentials::find(&self.registry, &self.repository, self.typed, wire.options());
            state.looked = Some(looked.unwrap_or_default());
        }
        denied(&state, &self.registry, status)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a new pass of the challenges that were last heard; `false`: none of them can be answered.
    fn make(&self, state: &mut State, wire: &Wire, url: &Uri, what: &str) -> Result<bool, Failure> {
        if state.looked.is_none() {
            let looked = credentials::find(&self.registry, &self.repository, self.typed, wire.options());
            state.looked = Some(looked.map_err(Failure::Final)?);
        }
        let credential = state.looked.as_ref().and_then(|l| l.found.clone()).map(|(c, _)| c);
        let mut problem = None;
        for challenge in state.challenges.clone() {
            let made = match (&challenge, &credential) {
                (Challenge::Basic, Some(c)) => basic(c).map(|header| (header, None)),
                (Challenge::Basic, None) => None,
                (Challenge::Bearer(_), Some(Credential::Registry(token))) => {
                    Some((format!("Bearer {token}"), None))
                }
                (Challenge::Bearer(bearer), c) => match bearer.realm(url) {
                    Ok(realm) => {
                        let asked = Asked { gate: self, wire, bearer, realm: &realm, what };
                        let may = hosts::may_have_credentials(url, &realm, &wire.options().auth_hosts);
                        state.told = match c {
                            Some(_) if may => Told::Sent,
                            Some(_) => Told::Withheld(place_of(&realm)),
                            None => Told::Nothing,
                        };
                        let token = asked.token(c.as_ref().filter(|_| may), state)?;
                        // Early enough for the request that it is shown with.
                        let lifetime = token.lifetime - (token.lifetime / 10).min(Duration::from_secs(10));
                        Some((format!("Bearer {}", token.value), Some(Instant::now() + lifetime)))
                    }
                    Err(why) => {
                        problem = Some(why);
                        continue;
                    }
                },
            };
            if let Some((header, until)) = made {
                if !matches!(challenge, Challenge::Bearer(_)) || matches!(credential, Some(Credential::Registry(_)))
                {
                    state.told = Told::Sent;
                }
                state.pass = Pass { header: Some(header), number: state.pass.number + 1, until };
                return Ok(true);
            }
        }
        match problem {
            Some(why) => {
                let why = format!("{what}: the registry wants a token, but {why}");
                Err(Failure::Final(wire.error(why, "a registry's token server is to be reached by https")))
            }
            None => Ok(false),
        }
    }
}

fn basic(credential: &Credential) -> Option<String> {
    let (username, password) = match credential {
        Credential::Password { username, password } => (username.as_str(), password.as_str()),
        Credential::Identity { username, password, token } if password.is_empty() => {
            (if username.is_empty() { "<token>" } else { username.as_str() }, token.as_str())
        }
        Credential::Identity { username, password, .. } => (username.as_str(), password.as_str()),
        Credential::Registry(_) => return None,
    };
    Some(format!("Basic {}", BASE64_STANDARD.encode(format!("{username}:{password}"))))
}

/// A question to a token server.
struct Asked<'a> {
    gate: &'a Gate,
    wire: &'a Wire,
    bearer: &'a Bearer,
    realm: &'a Uri,
    what: &'a str,
}

impl Asked<'_> {
    fn token(&self, credential: Option<&Credential>, state: &State) -> Result<Token, Failure> {
        if let Some(Credential::Identity { token, .. }) = credential
            && let Some(answer) = self.exchange(token)?
        {
            return self.read(answer, state);
        }
        let query = self.bearer.query(&self.gate.repository);
        let account = match credential {
            Some(Credential::Password { username, .. }) if !username.is_empty() => {
                format!("&{}", auth::form([("account", username.clone())]))
            }
            _ => String::new(),
        };
        let Some(url) = auth::with_query(self.realm, &format!("{query}{account}")) else {
            return Err(self.failed("has no valid address"));
        };
        let header = credential.and_then(basic);
        let get = Get { authorization: header.as_deref(), what: SERVER, ..Get::default() };
        let answer = self.wire.follow(&url, get)?;
        self.read(answer, state)
    }

    /// Exchanges an identity token; `None`: the server knows no such thing, or not this one, and is asked in the
    /// other way.
    fn exchange(&self, token: &str) -> Result<Option<Answer>, Failure> {
        let query = self.bearer.query(&self.gate.repository);
        let more = auth::form([
            ("grant_type", "refresh_token".to_owned()),
            ("client_id", "imagelint".to_owned()),
            ("refresh_token", token.to_owned()),
        ]);
        let answer = self.wire.post(self.realm, &format!("{more}&{query}"), SERVER)?;
        Ok((answer.status == 200 || is_passing(answer.status)).then_some(answer))
    }

    fn failed(&self, why: &str) -> Failure {
        let host = shown(&place_of(self.realm));
        let what = format!("{}: the registry wants a token, and its token server {host} {why}", self.what);
        Failure::Final(self.wire.error(what, ""))
    }

    fn read(&self, answer: Answer, state: &State) -> Result<Token, Failure> {
        let host = shown(&place_of(self.realm));
        match answer.status {
            200 => {}
            status if is_passing(status) => {
                let what = format!("{}: its token server {host} answers HTTP {status}", self.what);
                return Err(Failure::Passing(self.wire.error(what, "try again later")));
            }
            status @ (400 | 401 | 403) => {
                let (why, hint) = denied(state, &self.gate.registry, status);
                let what = format!("{}: its token server {host} gives no token: {why}", self.what);
                return Err(Failure::Final(self.wire.error(what, hint)));
            }
            status => return Err(self.failed(&format!("answers HTTP {status}"))),
        }
        let mut bytes = Vec::new();
        match answer.into_body().take(MAX_TOKEN + 1).read_to_end(&mut bytes) {
            Err(e) => Err(Failure::Passing(self.wire.io_words(&e, SERVER))),
            Ok(n) if n as u64 > MAX_TOKEN => Err(self.failed("gives an answer of more than 1 MiB")),
            Ok(_) => auth::token(&bytes).ok_or_else(|| self.failed("gives none")),
        }
    }
}

fn denied(state: &State, registry: &str, status: u16) -> (String, String) {
    const MAYBE: &str = "Some registries answer so as well where there is no such repository";
    let registry = shown(registry);
    let looked = state.looked.clone().unwrap_or_default();
    let from = looked.found.map(|(_, from)| from).unwrap_or_default();
    let notes: String = looked.notes.iter().map(|note| format!("{note}; ")).collect();
    match &state.told {
        Told::Sent if status == 403 => (
            format!("access denied (HTTP 403) with the credentials of {from}"),
            format!("do they allow to read it? {MAYBE}"),
        ),
        Told::Sent => (
            format!("the credentials of {from} are refused (HTTP {status})"),
            format!("log in again with docker login {registry}, or check the name and password. {MAYBE}"),
        ),
        Told::Withheld(host) => (
            format!(
                "access denied (HTTP {status}); the credentials of {from} were not sent to {}, which is another \
                 host than the registry",
                shown(host)
            ),
            format!("if it may have them, say --allow-auth-host {}", shown(host)),
        ),
        Told::Nothing if !from.is_empty() => (
            format!("access denied (HTTP {status}), and nobody asked for the credentials of {from}"),
            format!("is {registry} the right host? {MAYBE}"),
        ),
        Told::Nothing => (
            format!("access denied (HTTP {status}) without credentials"),
            format!(
                "{notes}there are none for {registry} in {}: docker login {registry}, podman login, --authfile, or \
                 --username with --password-stdin. {MAYBE}",
                if looked.places.is_empty() { "any file".to_owned() } else { looked.places.join(", ") },
            ),
        ),
    }
}
