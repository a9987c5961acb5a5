//! A file on a server, read by ranges, the same file from the first byte to the last; or in one go, where the
//! server knows no ranges.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};
use ureq::BodyReader;
use ureq::http::{Uri, header};

use super::super::ImageError;
use super::super::http::{Answer, Cuts, Failure, Get, Wire};
use super::page::Link;
use super::{refused, shown};
use crate::model::Digest;
use crate::stream::Source;

/// The first request: enough to see a zip's first bytes, and that ranges are served.
const FIRST: u64 = 4;

/// A file, opened.
pub enum Opened {
    /// Any part can be had.
    Ranges(Remote),
    /// The server sends it whole or not at all.
    Whole(Whole),
}

/// A file of which any part can be had.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

struct Inner {
    wire: Wire,
    url: Uri,
    authorization: Option<String>,
    what: String,
    size: u64,
    /// A strong ETag, or the date of the last change.
    validator: Option<String>,
    etag: Option<String>,
    fetched: AtomicU64,
    limit: u64,
}

impl Remote {
    /// Asks for the first bytes. `limit`: the most bytes to be transferred.
    pub fn open(wire: Wire, link: &Link, authorization: Option<String>, limit: u64) -> Result<Opened, ImageError> {
        let what = shown(&link.filename);
        let mut inner = Inner {
            wire,
            url: link.url.clone(),
            authorization,
            what,
            size: 0,
            validator: None,
            etag: None,
            fetched: AtomicU64::new(0),
            limit,
        };
        let answer = inner.ask(&format!("bytes=0-{}", FIRST - 1))?;
        let size = match answer.status {
            206 => match content_range(&answer) {
                Some((0, _, Some(total))) => total,
                _ => return Err(inner.wrong("the server answers a range without saying which of how many bytes")),
            },
            200 => match answer.length() {
                Some(length) => length,
                None => {
                    return Err(inner.wrong("the server serves no ranges and does not say how long the file is"));
                }
            },
            status => return Err(refused(&inner.wire, &inner.what, status)),
        };
        if let Some(told) = link.size.filter(|&told| told != size) {
            return Err(inner.wrong(&format!("{size} bytes, the index says {told}")));
        }
        inner.size = size;
        if answer.status == 200 {
            if size > limit {
                return Err(inner.over(size));
            }
            let whole = Whole { body: answer.into_body(), size, at: 0, what: inner.what.clone() };
            return Ok(Opened::Whole(whole));
        }
        inner.etag = answer.header(header::ETAG).map(str::to_owned);
        let strong = inner.etag.clone().filter(|e| !e.starts_with("W/"));
        inner.validator = strong.or_else(|| answer.header(header::LAST_MODIFIED).map(str::to_owned));
        inner.fetched = AtomicU64::new(FIRST);
        Ok(Opened::Ranges(Self { inner: Arc::new(inner) }))
    }

    pub fn size(&self) -> u64 {
        self.inner.size
    }

    /// Bytes of content that were transferred so far.
    pub fn fetched(&self) -> u64 {
        self.inner.fetched.load(Ordering::Relaxed)
    }

    /// Whether that much more may be transferred.
    pub fn affords(&self, bytes: u64) -> Result<(), ImageError> {
        let all = self.fetched().saturating_add(bytes);
        if all > self.inner.limit { Err(self.inner.over(all)) } else { Ok(()) }
    }

    /// The bytes from `from` up to `to`, asked for when they are first read.
    pub fn range(&self, from: u64, to: u64) -> Ranged {
        let to = to.min(self.inner.size);
        let at = from.min(to);
        Ranged { inner: self.inner.clone(), at, to, cuts: Cuts::from(at), body: None }
    }

    /// A small part, whole.
    pub fn bytes(&self, from: u64, to: u64) -> Result<Vec<u8>, ImageError> {
        let mut out = Vec::new();
        match self.range(from, to).read_to_end(&mut out) {
            Ok(_) => Ok(out),
            Err(e) => Err(match e.downcast::<ImageError>() {
                Ok(e) => e,
                Err(e) => self.inner.wire.io_words(&e, &self.inner.what),
            }),
        }
    }
}

impl Inner {
    fn wrong(&self, why: &str) -> ImageError {
        self.wire.error(format!("{}: {why}", self.what), "")
    }

    fn over(&self, bytes: u64) -> ImageError {
        let what = format!("{}: {bytes} bytes to look into", self.what);
        ImageError::TooLarge { place: self.wire.host().to_owned(), what, limit: self.limit }
    }

    fn ask(&self, range: &str) -> Result<Answer, ImageError> {
        let get = Get {
            range: Some(range),
            if_range: self.validator.as_deref(),
            authorization: self.authorization.as_deref(),
            what: &self.what,
            ..Get::default()
        };
        let answer =
            self.wire.get(&self.what, || -> Result<Answer, Failure> { self.wire.follow(&self.url, get) })?;
        let packed = answer.header(header::CONTENT_ENCODING).filter(|e| !e.eq_ignore_ascii_case("identity"));
        match packed {
            Some(_) => Err(self.wrong("the server packs what it sends, so that ranges mean other bytes")),
            None => Ok(answer),
        }
    }

    /// A body that starts at `from`, and how many bytes it is to have.
    fn connect(&self, from: u64, to: u64) -> Result<(BodyReader<'static>, u64), ImageError> {
        let changed = || self.wrong("it was changed while it was read; try again");
        let answer = self.ask(&format!("bytes={from}-{}", to - 1))?;
        match answer.status {
            206 => {}
            // What If-Range asks for, where it is another file by now.
            200 | 412 | 416 => return Err(changed()),
            status => return Err(refused(&self.wire, &self.what, status)),
        }
        if let (Some(was), Some(is)) = (self.etag.as_deref(), answer.header(header::ETAG))
            && was != is
        {
            return Err(changed());
        }
        let Some((first, last, total)) = content_range(&answer) else {
            return Err(self.wrong("the server answers a range without saying which"));
        };
        if total.is_some_and(|t| t != self.size) {
            return Err(changed());
        }
        if first != from || last >= to {
            return Err(self.wrong("the server sends another range than was asked for"));
        }
        let length = last - first + 1;
        if answer.length().is_some_and(|n| n != length) {
            return Err(self.wrong("the server's answer has another length than its range"));
        }
        Ok((answer.into_body(), length))
    }
}

/// First byte, last byte, and of how many: `bytes 0-99/1234`.
fn content_range(answer: &Answer) -> Option<(u64, u64, Option<u64>)> {
    let (unit, range) = answer.header(header::CONTENT_RANGE)?.split_once(' ')?;
    let (range, total) = range.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
    let total = total.trim().parse().ok();
    let sound = unit.eq_ignore_ascii_case("bytes") && last >= first && last < u64::MAX;
    sound.then_some((first, last, total))
}

/// Part of a file as it comes in; taken up again where it broke off.
pub struct Ranged {
    inner: Arc<Inner>,
    at: u64,
    to: u64,
    cuts: Cuts,
    /// With the bytes that it is still to give.
    body: Option<(BodyReader<'static>, u64)>,
}

impl Read for Ranged {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.to || buf.is_empty() {
            return Ok(0);
        }
        loop {
            let inner = &self.inner;
            let problem = match &mut self.body {
                Some((_, 0)) if self.cuts.has_progress(self.at) => {
                    // Less than was asked for, as servers may: the rest is asked for anew.
                    self.body = None;
                    self.cuts.pause(self.at);
                    continue;
                }
                Some((_, 0)) => inner.wrong("the server sends it in pieces that are too small"),
                Some((body, left)) => {
                    let want = buf.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    match body.read(&mut buf[..want]) {
                        Ok(0) => inner.wrong(&format!("broke off after {} bytes", self.at)),
                        Ok(n) => {
                            self.at += n as u64;
                            *left -= n as u64;
                            let all = inner.fetched.fetch_add(n as u64, Ordering::Relaxed) + n as u64;
                            return if all > inner.limit { Err(io::Error::other(inner.over(all))) } else { Ok(n) };
                        }
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                        Err(e) => inner.wire.io_words(&e, &inner.what),
                    }
                }
                None => match inner.connect(self.at, self.to) {
                    Ok(body) => {
                        self.body = Some(body);
                        continue;
                    }
                    // The client has tried again already, where that helps.
                    Err(e) => return Err(io::Error::other(e)),
                },
            };
            self.body = None;
            self.cuts.again(self.at, problem)?;
        }
    }
}

impl Source for Ranged {}

/// A file as the server sends it, once.
pub struct Whole {
    body: BodyReader<'static>,
    size: u64,
    at: u64,
    what: String,
}

impl Whole {
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Read for Whole {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let want = buf.len().min(usize::try_from(self.size - self.at).unwrap_or(usize::MAX));
        if want == 0 {
            return Ok(0);
        }
        let n = self.body.read(&mut buf[..want])?;
        self.at += n as u64;
        if n == 0 {
            let what = format!("{}: broke off after {} bytes", self.what, self.at);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        Ok(n)
    }
}

impl Source for Whole {}

/// Bytes that are hashed as they go by.
pub struct Hashed<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Hashed<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    /// Of what was read.
    pub fn finish(self) -> Digest {
        Digest::from_bytes(self.hash.finalize().into())
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.hash.update(&buf[..n]);
        Ok(n)
    }
}

impl<R: Read> Source for Hashed<R> {}
