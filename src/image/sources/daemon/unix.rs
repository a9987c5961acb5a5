//! HTTP over a Unix socket: the one part of the client that is not ureq's own.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};
use ureq::{Error, Timeout};

/// Opens the socket, whatever host is asked for.
#[derive(Debug)]
pub struct UnixConnector(pub PathBuf);

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(&self, details: &ConnectionDetails, _: Option<()>) -> Result<Option<UnixTransport>, Error> {
        let stream = UnixStream::connect(&self.0)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

/// A socket has no address to look up.
#[derive(Debug)]
pub struct NoLookup;

impl Resolver for NoLookup {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
        Ok(addresses)
    }
}

#[derive(Debug)]
pub struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

fn limit(timeout: NextTimeout) -> Option<Duration> {
    timeout.not_zero().map(|t| *t)
}

fn failed(e: io::Error, reason: Timeout) -> Error {
    match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(reason),
        _ => e.into(),
    }
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.stream.set_write_timeout(limit(timeout))?;
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(|e| failed(e, timeout.reason))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.stream.set_read_timeout(limit(timeout))?;
        let input = self.buffers.input_append_buf();
        let amount = loop {
            match self.stream.read(input) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|e| failed(e, timeout.reason))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    /// Each request has a connection of its own.
    fn is_open(&mut self) -> bool {
        false
    }
}
