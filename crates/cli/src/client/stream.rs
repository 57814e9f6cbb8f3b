//! A connection's bytes: TCP, TLS over TCP, or a Unix socket. No call waits once it is connected.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::address::Way;

/// How long the other end may take for each step of the beginning of TLS: one that speaks none may
/// wait for something else.
const HANDSHAKE_STEP_MAX: Duration = Duration::from_secs(10);

/// A connected socket.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(Box<Tls>),
    Unix(UnixStream),
}

/// TLS over TCP. Reading does not wait for what is to be written: a peer may take no more until
/// somebody takes what it sends.
#[derive(Debug)]
pub(super) struct Tls {
    socket: TcpStream,
    session: ClientConnection,
}

impl Stream {
    pub(super) fn connect(way: &Way) -> io::Result<Stream> {
        let tcp = |host: &str| {
            let socket = TcpStream::connect(host)?;
            socket.set_nodelay(true)?;
            Ok::<_, io::Error>(socket)
        };
        match way {
            Way::Tcp(host) => {
                let socket = tcp(host)?;
                socket.set_nonblocking(true)?;
                Ok(Stream::Tcp(socket))
            }
            Way::Tls(host, authorities) => {
                let (config, name) = (client_config(authorities.as_deref())?, name_in(host)?);
                Ok(Stream::Tls(Box::new(Tls::begin(tcp(host)?, config, name)?)))
            }
            Way::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_nonblocking(true)?;
                Ok(Stream::Unix(socket))
            }
        }
    }

    pub(super) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(socket) => socket.read(bytes),
            Stream::Tls(tls) => tls.read(bytes),
            Stream::Unix(socket) => socket.read(bytes),
        }
    }

    /// Writes from `bytes`; how many were taken. TLS may hold some of them back.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(socket) => socket.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
            Stream::Unix(socket) => socket.write(bytes),
        }
    }

    /// Writes what was held back, as far as the socket takes it.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(tls) => tls.push(),
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
        }
    }

    /// Whether bytes that were taken are not with the socket yet.
    pub(super) fn holds_output(&self) -> bool {
        matches!(self, Stream::Tls(tls) if tls.session.wants_write())
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(socket) => socket.as_fd(),
            Stream::Tls(tls) => tls.socket.as_fd(),
            Stream::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Tls {
    fn begin(
        mut socket: TcpStream,
        config: ClientConfig,
        name: ServerName<'static>,
    ) -> io::Result<Tls> {
        let mut session =
            ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        socket.set_read_timeout(Some(HANDSHAKE_STEP_MAX))?;
        socket.set_write_timeout(Some(HANDSHAKE_STEP_MAX))?;
        while session.is_handshaking() {
            match session.complete_io(&mut socket) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "TLS is not answered"));
                }
                other => drop(other?),
            }
        }
        socket.set_nonblocking(true)?;
        Ok(Tls { socket, session })
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.session.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            let invalid = |error| io::Error::new(ErrorKind::InvalidData, error);
            self.session.process_new_packets().map_err(invalid)?;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Only what is written makes room for more.
        self.push()?;
        let taken = self.session.writer().write(bytes)?;
        match self.push() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(taken),
            pushed => pushed.map(|()| taken),
        }
    }

    fn push(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}

/// TLS with servers whose certificates come from the authorities in a file (PEM).
fn client_config(authorities: Option<&Path>) -> io::Result<ClientConfig> {
    let Some(file) = authorities else {
        let needed = "TLS needs --tls-ca FILE, the authorities (PEM) that the server's certificate \
                      comes from; the system's are often in /etc/ssl/certs/ca-certificates.crt";
        return Err(io::Error::new(ErrorKind::InvalidInput, needed));
    };
    let wrong = |what: &dyn std::fmt::Display| {
        let detail = format!("expected certificates (PEM) in {}: {what}", file.display());
        io::Error::new(ErrorKind::InvalidInput, detail)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() {
        return Err(wrong(&"there is none"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The name that the certificate of the server at `host`, a name with a port, must bear.
fn name_in(host: &str) -> io::Result<ServerName<'static>> {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(name.to_owned()).map_err(|error| {
        io::Error::new(ErrorKind::InvalidInput, format!("'{name}' is no name of a host: {error}"))
    })
}
