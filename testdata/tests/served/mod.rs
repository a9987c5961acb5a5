//! A small HTTP server, and a writer of zip archives, for tests.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod layout;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Of a POST.
    pub body: String,
    /// First and last byte.
    pub range: Option<(usize, usize)>,
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|h| h.0 == name).map(|h| h.1.as_str())
    }
}

#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The connection ends after so many bytes of the body.
    pub cut: Option<usize>,
    /// Before the rest of the body, or before the end where it is cut.
    pub pause: Duration,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), cut: None, pause: Duration::ZERO }
    }

    pub fn ok(body: Vec<u8>) -> Self {
        Self { body, ..Self::status(200) }
    }

    pub fn page(content_type: &str, body: impl Into<String>) -> Self {
        Self::ok(body.into().into_bytes()).with("content-type", content_type)
    }

    /// Ends the connection after so many bytes of the body, and before anything is said where that is none.
    pub fn cut(self, after: usize) -> Self {
        Self { cut: Some(after), ..self }
    }

    /// With a header, in place of one of that name.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|h| h.0 != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// The part of a file that is asked for.
pub fn part(request: &Request, file: &[u8], etag: Option<&str>) -> Reply {
    let Some((from, to)) = request.range else { return Reply::ok(file.to_vec()) };
    if from >= file.len() {
        return Reply::status(416);
    }
    let to = to.min(file.len() - 1);
    let reply = Reply { status: 206, ..Reply::ok(file[from..=to].to_vec()) };
    let reply = reply.with("content-range", &format!("bytes {from}-{to}/{}", file.len()));
    match etag {
        Some(etag) => reply.with("etag", etag),
        None => reply,
    }
}

type Log = Arc<Mutex<Vec<Request>>>;

/// Serves until it is dropped.
pub struct Server {
    address: SocketAddr,
    log: Log,
    ends: Arc<AtomicBool>,
}

impl Server {
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (log, ends) = (Log::default(), Arc::new(AtomicBool::new(false)));
        let (seen, end) = (log.clone(), ends.clone());
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                let (answer, seen) = (answer.clone(), seen.clone());
                // A client that has seen enough goes away.
                std::thread::spawn(move || stream.and_then(|s| talk(s, &*answer, &seen)));
            }
        });
        Self { address, log, ends }
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn log(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // Wakes it.
        drop(TcpStream::connect(self.address));
    }
}

fn talk(stream: TcpStream, answer: &dyn Fn(&Request) -> Reply, log: &Log) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if lines.by_ref().take(64 << 10).read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let mut request = Request { method, path, body: String::new(), range: None, headers };
    let length = request.header("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    lines.take(length).read_to_string(&mut request.body)?;
    request.range = request.header("range").and_then(|r| {
        let (from, to) = r.strip_prefix("bytes=")?.split_once('-')?;
        Some((from.parse().ok()?, to.parse().unwrap_or(usize::MAX)))
    });
    log.lock().unwrap().push(request.clone());
    let reply = answer(&request);
    let mut out = stream;
    if reply.cut == Some(0) {
        return Ok(());
    }
    let mut head =
        format!("HTTP/1.1 {} X\r\nconnection: close\r\ncontent-length: {}\r\n", reply.status, reply.body.len());
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    out.write_all(format!("{head}\r\n").as_bytes())?;
    let (now, later) = reply.body.split_at(reply.cut.unwrap_or(usize::MAX).min(reply.body.len()));
    out.write_all(now)?;
    out.flush()?;
    std::thread::sleep(reply.pause);
    // What was paused comes after all; what was cut does not.
    if reply.pause > Duration::ZERO && reply.cut.is_none() { out.write_all(later) } else { Ok(()) }
}

/// Writes a zip archive.
#[derive(Default)]
pub struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    members: u16,
}

impl Zip {
    pub fn add(&mut self, name: &str, content: &[u8], deflate: bool) {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let packed = if deflate {
            let mut e = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
            e.write_all(content).unwrap();
            e.finish().unwrap()
        } else {
            content.to_vec()
        };
        // Version, flags, method, time, date, CRC, sizes, lengths of name and extra field.
        let mut common = [20u16, 0, if deflate { 8 } else { 0 }, 0, 0x21].map(u16::to_le_bytes).concat();
        let sizes = [crc.sum(), packed.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat();
        common.extend(sizes);
        common.extend([name.len() as u16, 0].map(u16::to_le_bytes).concat());
        let at = self.bytes.len() as u32;
        self.bytes.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), &packed].concat());
        let rest = [[0; 10].as_slice(), &at.to_le_bytes()].concat();
        self.directory.extend([&b"PK\x01\x02\x14\x00"[..], &common, &rest, name.as_bytes()].concat());
        self.members += 1;
    }

    pub fn finish(self) -> Vec<u8> {
        let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
        end.extend([self.members, self.members].map(u16::to_le_bytes).concat());
        end.extend([self.directory.len() as u32, self.bytes.len() as u32].map(u32::to_le_bytes).concat());
        end.extend([0, 0]);
        [self.bytes, self.directory, end].concat()
    }
}
