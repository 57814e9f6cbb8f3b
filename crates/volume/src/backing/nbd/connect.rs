//! From a URI to a connection that takes requests.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_wire::nbd::{
    ALLOCATION_CONTEXT, Agreement, ClientHandshake, ClientOptions, ClientStep, ErrorKind as Wire,
    Refusal, TlsWish, Transport, Uri,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::stream::{ReadyStream, Socket, WaitingStream, again};
use crate::error::{Error, ErrorKind, Result};

/// An export that can be connected to, again and again.
pub(super) struct Target {
    uri: Uri,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    timeout: Duration,
}

/// A connection on which nothing was asked yet.
pub(super) struct Connected {
    pub(super) stream: ReadyStream,
    pub(super) agreement: Agreement,
    /// What came behind the handshake.
    pub(super) input: Vec<u8>,
}

impl Target {
    /// The export that `text` names. A connection must stand within `timeout`.
    ///
    /// Errors: `InvalidInput` if it is no URI, or its files of keys are none; `Unsupported` if it
    /// asks for a kind of TLS that there is not.
    pub(super) fn new(text: &str, timeout: Duration) -> Result<Target> {
        let wrong = |detail: String| Error::new(ErrorKind::InvalidInput, detail);
        let uri = Uri::parse(text).map_err(|error| wrong(format!("{text}: {error}")))?;
        let tls = if uri.encrypted { Some(tls(&uri)?) } else { None };
        Ok(Target { uri, tls, timeout })
    }

    /// The URI without what authenticates.
    pub(super) fn name(&self) -> String {
        self.uri.without_credentials().to_string()
    }

    /// Connects and shakes hands. Waits.
    pub(super) fn connect(&self) -> Result<Connected> {
        let name = self.name();
        let until = Instant::now() + self.timeout;
        let failed = |source: io::Error| {
            let detail = match source.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!("{name}: no answer within {} s", self.timeout.as_secs_f64())
                }
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    format!("{name}: no server there: {source}; is it running?")
                }
                _ => format!("{name}: cannot connect: {source}"),
            };
            Error::new(ErrorKind::Unavailable, detail)
        };
        let socket = self.socket(until).map_err(failed)?;
        let mut stream = WaitingStream::new(socket, self.timeout).map_err(failed)?;
        let mut options = ClientOptions::export(self.uri.export.clone());
        options.contexts.push(ALLOCATION_CONTEXT.to_owned());
        options.tls = if self.tls.is_some() { TlsWish::Required } else { TlsWish::Never };
        let mut handshake = ClientHandshake::new(options);
        let (mut input, mut output) = (Vec::new(), Vec::new());
        loop {
            let step = handshake.step(&input, &mut output);
            stream.write_all(&output).map_err(failed)?;
            output.clear();
            let step = step.map_err(|error| {
                let kind = match error.kind() {
                    Wire::Refused(Refusal::Unknown) => ErrorKind::Name,
                    _ => ErrorKind::Unavailable,
                };
                Error::new(kind, format!("{name}: {error}"))
            })?;
            match step {
                ClientStep::Incomplete { .. } => stream.read(&mut input).map_err(failed)?,
                ClientStep::Continue { consumed } => drop(input.drain(..consumed)),
                ClientStep::StartTls { consumed } => {
                    input.drain(..consumed);
                    let (config, server) = self.tls.as_ref().expect("TLS was asked for");
                    let secured = stream.secure(Arc::clone(config), server.clone());
                    secured.map_err(|source| {
                        let detail = format!("{name}: TLS fails: {source}");
                        Error::new(ErrorKind::Unavailable, detail)
                    })?;
                    handshake
                        .secured(&mut output)
                        .map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))?;
                }
                ClientStep::Ready { consumed, agreement } => {
                    input.drain(..consumed);
                    let stream = stream.into_ready().map_err(failed)?;
                    return Ok(Connected { stream, agreement, input });
                }
                ClientStep::Listed { .. } => {
                    let detail = format!("{name}: sent a list of exports that was not asked for");
                    return Err(Error::new(ErrorKind::Unavailable, detail));
                }
            }
            if Instant::now() > until {
                return Err(failed(io::ErrorKind::TimedOut.into()));
            }
        }
    }

    fn socket(&self, until: Instant) -> io::Result<Box<dyn Socket>> {
        match &self.uri.transport {
            Transport::Unix { path } => {
                let stream = match path.strip_prefix('\0') {
                    Some(name) => {
                        let address = SocketAddr::from_abstract_name(name)?;
                        again(|| UnixStream::connect_addr(&address))
                    }
                    None => again(|| UnixStream::connect(path)),
                };
                Ok(Box::new(stream?))
            }
            Transport::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    match TcpStream::connect_timeout(&address, left) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Box::new(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }
}

/// How TLS is spoken with the server of `uri`, and its name.
fn tls(uri: &Uri) -> Result<(Arc<ClientConfig>, ServerName<'static>)> {
    let wrong = |detail: String| Error::new(ErrorKind::InvalidInput, format!("{uri}: {detail}"));
    let unsupported = |detail: &str| Error::new(ErrorKind::Unsupported, format!("{uri}: {detail}"));
    if uri.tls_type.as_deref().is_some_and(|kind| kind != "x509") || uri.tls_psk_file.is_some() {
        return Err(unsupported("expected TLS by certificates (x509), found another kind"));
    }
    if uri.tls_verify_peer == Some(false) {
        return Err(unsupported("servers are always verified; leave tls-verify-peer=0 out"));
    }
    let Some(folder) = uri.tls_certificates.as_deref().map(Path::new) else {
        return Err(wrong(
            "expected tls-certificates=FOLDER, which holds ca-cert.pem, and client-cert.pem with \
             client-key.pem where the server asks for them"
                .to_owned(),
        ));
    };
    let mut roots = RootCertStore::empty();
    for authority in certificates(&folder.join("ca-cert.pem")).map_err(wrong)? {
        roots.add(authority).map_err(|error| wrong(format!("ca-cert.pem: {error}")))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let loads = provider.key_provider;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_root_certificates(roots);
    let own = folder.join("client-cert.pem");
    let config = if own.exists() {
        let key = folder.join("client-key.pem");
        let at = key.display().to_string();
        let key = PrivateKeyDer::from_pem_file(&key)
            .map_err(|error| wrong(format!("{at}: expected a key: {error}")))?;
        loads.load_private_key(key.clone_key()).map_err(|error| {
            wrong(format!(
                "{at}: the key cannot be used: {error}; expected RSA of 2048, 3072 or 4096 bits, \
                 ECDSA on P-256 or P-384, or Ed25519"
            ))
        })?;
        builder
            .with_client_auth_cert(certificates(&own).map_err(wrong)?, key)
            .map_err(|error| wrong(format!("{}: {error}", own.display())))?
    } else {
        builder.with_no_client_auth()
    };
    let host = match (&uri.tls_hostname, &uri.transport) {
        (Some(name), _) => name.clone(),
        (None, Transport::Tcp { host, .. }) => host.clone(),
        (None, Transport::Unix { .. }) => "localhost".to_owned(),
    };
    let name = ServerName::try_from(host.clone())
        .map_err(|_| wrong(format!("expected a host's name or address, found '{host}'")))?;
    Ok((Arc::new(config), name))
}

fn certificates(path: &Path) -> std::result::Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let all: std::result::Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| format!("{shown}: cannot be read: {error}"))?
        .collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(format!("{shown}: expected certificates, found none")),
        Err(error) => Err(format!("{shown}: expected certificates: {error}")),
    }
}
