//! Whom to believe, and as whom to come: the system's authorities and the public ones, those of `--ca-file`, and for
//! single hosts what `certs.d` has. The public ones are compiled in, so that a bare container without a bundle
//! can speak TLS; what the system adds (a company's own) is believed as well.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, sign::CertifiedKey};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::super::ImageError;
use super::super::sources::{OpenOptions, shown};

/// The largest file of certificates: the system's bundle has a quarter of a MiB.
const MAX_PEM: u64 = 16 << 20;

/// The most files that are read of one folder.
const MAX_FILES: usize = 64;

type Certificates = Vec<Certificate<'static>>;

/// What all hosts' certificates are held against.
pub type Roots = OnceLock<Arc<Certificates>>;

/// How TLS is spoken with one host (`host` or `host:port`). `roots`: the authorities to believe instead.
pub fn of(host: &str, roots: Option<&RootCerts>, options: &OpenOptions) -> Result<TlsConfig, ImageError> {
    let mut config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider());
    if let Some(roots) = roots {
        return Ok(config.root_certs(roots.clone()).build());
    }
    if options.is_insecure(host) {
        config = config.disable_verification(true);
    }
    let own = Own::of(host, options)?;
    let common = common(options)?;
    let roots = match own.authorities.is_empty() {
        true => common,
        false => Arc::new(common.iter().cloned().chain(own.authorities).collect()),
    };
    Ok(config.root_certs(RootCerts::Specific(roots)).client_cert(own.client).build())
}

/// One for the whole program: connections are shared between those that have the same.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(ring::default_provider())).clone()
}

fn common(options: &OpenOptions) -> Result<Arc<Certificates>, ImageError> {
    let kept = &options.shared.roots;
    if let Some(roots) = kept.get() {
        return Ok(roots.clone());
    }
    let mut out = Certificates::new();
    let mut seen = BTreeSet::new();
    let system = rustls_native_certs::load_native_certs();
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().find(|v| options.machine.var(v).is_some());
    if let (Some(variable), true, Some(error)) = (named, system.certs.is_empty(), system.errors.first()) {
        return Err(ImageError::Malformed {
            place: variable.to_owned(),
            what: format!("no certificate can be read there: {error}"),
        });
    }
    for der in &system.certs {
        if seen.insert(der.to_vec()) {
            out.push(Certificate::from_der(der).to_owned());
        }
    }
    for der in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        if !seen.contains(der.as_ref()) {
            out.push(Certificate::from_der(der).to_owned());
        }
    }
    if let Some(path) = &options.ca_file {
        out.extend(authorities(path)?);
    }
    // Of two that get here together the first counts, as everyone must have the same.
    Ok(kept.get_or_init(|| Arc::new(out)).clone())
}

/// What `certs.d` has for a host.
#[derive(Default)]
struct Own {
    authorities: Certificates,
    client: Option<ClientCert>,
}

impl Own {
    fn of(host: &str, options: &OpenOptions) -> Result<Self, ImageError> {
        let mut out = Self::default();
        // A host is one folder's name: nothing else is made a path.
        if host.is_empty() || host.starts_with('.') || host.contains(['/', '\\']) {
            return Ok(out);
        }
        for folder in folders(options) {
            out.add(&folder.join(host))?;
        }
        Ok(out)
    }

    fn add(&mut self, folder: &Path) -> Result<(), ImageError> {
        let Ok(entries) = folder.read_dir() else { return Ok(()) };
        let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).take(MAX_FILES).collect();
        files.sort();
        for file in &files {
            match file.extension().and_then(|e| e.to_str()) {
                Some("crt") => self.authorities.extend(authorities(file)?),
                Some("cert") if self.client.is_none() => self.client = Some(client(file)?),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Where docker's and podman's `certs.d` are.
fn folders(options: &OpenOptions) -> Vec<PathBuf> {
    let machine = &options.machine;
    let mut out = vec![machine.etc.join("docker/certs.d"), machine.etc.join("containers/certs.d")];
    out.extend(machine.config_home().map(|c| c.join("containers/certs.d")));
    out
}

fn wrong(path: &Path, what: impl Into<String>) -> ImageError {
    ImageError::Malformed { place: shown(&path.to_string_lossy()), what: what.into() }
}

fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|f| f.take(MAX_PEM + 1).read_to_end(&mut bytes));
    match read {
        Ok(n) if n as u64 > MAX_PEM => Err(wrong(path, "too large for a file of certificates")),
        Ok(_) => Ok(bytes),
        Err(source) => Err(ImageError::Io { place: shown(&path.to_string_lossy()), source }),
    }
}

fn authorities(path: &Path) -> Result<Certificates, ImageError> {
    let found = certificates(path, &read(path)?)?;
    let mut store = RootCertStore::empty();
    for certificate in &found {
        store
            .add(CertificateDer::from(certificate.der()))
            .map_err(|e| wrong(path, format!("holds no valid certificate: {e}")))?;
    }
    Ok(found)
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Certificates, ImageError> {
    let mut out = Certificates::new();
    for item in parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => out.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(wrong(path, "no valid PEM")),
        }
    }
    if out.is_empty() {
        return Err(wrong(path, "holds no certificate in PEM form (BEGIN CERTIFICATE)"));
    }
    Ok(out)
}

/// A client's certificate and its key, which is beside it: `x.cert` and `x.key`.
fn client(path: &Path) -> Result<ClientCert, ImageError> {
    let chain = certificates(path, &read(path)?)?;
    let beside = path.with_extension("key");
    let pem = read(&beside).map_err(|e| match e {
        ImageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            wrong(path, "a client's certificate, and there is no .key of that name beside it")
        }
        e => e,
    })?;
    let no_key = || wrong(&beside, "holds no private key in PEM form");
    let key = PrivateKey::from_pem(&pem).map_err(|_| no_key())?;
    let der = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| no_key())?;
    // The client takes for granted that they belong together.
    let ders = chain.iter().map(|c| CertificateDer::from(c.der().to_vec())).collect();
    CertifiedKey::from_der(ders, der, &provider()).map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => {
            wrong(path, "a client's certificate that its .key does not belong to")
        }
        e => wrong(path, format!("a client's certificate that cannot be used: {e}")),
    })?;
    Ok(ClientCert::new_with_certs(&chain, key))
}
