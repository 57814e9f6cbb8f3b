//! A client's byte stream: TCP, TLS over TCP, or a Unix socket.
//!
//! All calls are non-blocking; `WouldBlock` means that the event loop will say when to go on.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use entresol_device::KeepAlive;
use mio::net::{TcpStream, UnixStream};
use mio::{Registry, Token};
use rustls::{ServerConfig, ServerConnection};

use crate::polled::PolledSocket;

/// Where a client connects from and to.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// The peer's end.
    pub remote: String,
    /// Our end.
    pub local: String,
}

/// A client's byte stream.
pub struct Stream {
    transport: Transport,
    tls: Option<Box<ServerConnection>>,
    addresses: Addresses,
    /// Bytes that TLS gave to the socket.
    sent_bytes: u64,
    /// Bytes that TLS was given since it last held nothing back.
    given_bytes: usize,
}

/// Most bytes that TLS holds back.
const TLS_BYTES_MAX: usize = 256 << 10;

enum Transport {
    Tcp(PolledSocket<TcpStream>),
    Unix(PolledSocket<UnixStream>),
}

impl Stream {
    /// A TCP stream, with TLS if `tls` says how.
    pub fn tcp(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<Stream> {
        stream.set_nodelay(true)?;
        let addresses = Addresses {
            remote: stream.peer_addr()?.to_string(),
            local: stream.local_addr()?.to_string(),
        };
        let tls = match tls {
            None => None,
            Some(config) => {
                let mut connection =
                    ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                connection.set_buffer_limit(Some(TLS_BYTES_MAX));
                Some(Box::new(connection))
            }
        };
        let transport = Transport::Tcp(PolledSocket::new(stream));
        Ok(Stream { transport, tls, addresses, sent_bytes: 0, given_bytes: 0 })
    }

    /// Has the system find out whether the peer is still there, where it is a machine away.
    pub fn keep_alive(&self, how: KeepAlive) {
        if let Transport::Tcp(socket) = &self.transport {
            // One that does not take it serves its client all the same.
            let _ = how.apply(socket.socket().as_fd());
        }
    }

    /// A stream of the Unix socket at `path`.
    pub fn unix(stream: UnixStream, path: &str) -> Stream {
        let address = format!("{path}:0");
        let addresses = Addresses { remote: address.clone(), local: address };
        let transport = Transport::Unix(PolledSocket::new(stream));
        Stream { transport, tls: None, addresses, sent_bytes: 0, given_bytes: 0 }
    }

    /// From now on the stream speaks TLS; `early` are bytes of it that came already.
    ///
    /// # Errors
    /// What came is no TLS.
    pub fn start_tls(&mut self, config: &Arc<ServerConfig>, mut early: &[u8]) -> io::Result<()> {
        let mut tls =
            Box::new(ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?);
        tls.set_buffer_limit(Some(TLS_BYTES_MAX));
        while !early.is_empty() {
            tls.read_tls(&mut early)?;
            let invalid = |error| io::Error::new(ErrorKind::InvalidData, error);
            tls.process_new_packets().map_err(invalid)?;
        }
        self.tls = Some(tls);
        Ok(())
    }

    /// Where it connects from and to.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Reads into `buffer`; 0 means that the peer will send no more.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.transport.read(buffer);
        };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
            if tls.read_tls(&mut self.transport)? == 0 {
                return Ok(0);
            }
            if let Err(error) = tls.process_new_packets() {
                // The alert that says why is owed to the peer; its loss changes nothing.
                let _ = tls.write_tls(&mut self.transport);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            while tls.wants_write() && tls.is_handshaking() {
                match tls.write_tls(&mut self.transport) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    other => other?,
                };
            }
        }
    }

    /// Writes from `bytes`; how many were taken. TLS may hold some of them back.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.transport.write(bytes);
        };
        // With room in the socket there is room in TLS; else the event loop tells of room.
        push(tls, &mut self.transport, &mut self.sent_bytes)?;
        let taken = tls.writer().write(bytes)?;
        self.given_bytes = taken;
        match push(tls, &mut self.transport, &mut self.sent_bytes) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        if taken == 0 && !bytes.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(taken)
    }

    /// Writes from `slices`; how many bytes were taken.
    pub fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.tls.is_none() {
            return self.transport.write_vectored(slices);
        }
        let first = slices.iter().find(|slice| !slice.is_empty());
        first.map_or(Ok(0), |slice| self.write(slice))
    }

    /// Writes what TLS holds back; `WouldBlock` while there is more.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => push(tls, &mut self.transport, &mut self.sent_bytes),
            None => Ok(()),
        }
    }

    /// Whether it speaks TLS.
    pub fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the peer showed a certificate, which the handshake then found to be in order.
    pub fn has_shown_certificate(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.peer_certificates().is_some())
    }

    /// Whether bytes that were taken are not with the socket yet.
    pub fn holds_output(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// At most so many bytes are held back.
    pub fn held_bytes(&self) -> usize {
        if self.holds_output() { self.given_bytes } else { 0 }
    }

    /// Bytes that TLS gave to the socket since the start; 0 without TLS.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Whether a short read may leave bytes behind that the event loop does not know of.
    pub fn holds_back(&self) -> bool {
        self.tls.is_some()
    }

    /// Says goodbye, as far as the peer listens.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // The peer may be gone, or take no more.
            let _ = push(tls, &mut self.transport, &mut self.sent_bytes);
        }
    }

    /// Enters the stream into an event loop under `token`.
    pub fn register(&mut self, registry: &Arc<Registry>, token: Token) -> io::Result<()> {
        match &mut self.transport {
            Transport::Tcp(socket) => socket.register(registry, token),
            Transport::Unix(socket) => socket.register(registry, token),
        }
    }

    /// Takes the stream out of its event loop.
    pub fn deregister(&mut self) -> io::Result<()> {
        match &mut self.transport {
            Transport::Tcp(socket) => socket.deregister(),
            Transport::Unix(socket) => socket.deregister(),
        }
    }
}

/// Writes what `tls` holds back, and counts it; `WouldBlock` while there is more.
fn push(
    tls: &mut ServerConnection,
    transport: &mut Transport,
    sent_bytes: &mut u64,
) -> io::Result<()> {
    while tls.wants_write() {
        *sent_bytes += tls.write_tls(transport)? as u64;
    }
    Ok(())
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Tcp(stream) => stream.read(buffer),
            Transport::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Tcp(stream) => stream.write(bytes),
            Transport::Unix(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Transport::Tcp(stream) => stream.write_vectored(slices),
            Transport::Unix(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
