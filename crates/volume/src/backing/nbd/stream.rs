//! A connection's bytes: TCP or a Unix socket, with or without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use entresol_net::PolledSocket;
use mio::event::Source;
use mio::{Registry, Token};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// A connected socket.
pub(super) trait Socket: Read + Write + Send {
    /// How long reads and writes may take; `None`: they never wait.
    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// The socket for an event loop, which it must not wait in.
    fn into_source(self: Box<Self>) -> Box<dyn Polled>;
}

/// A socket that an event loop knows.
pub(super) trait Polled: Source + Read + Write + Send {}

impl<T: Source + Read + Write + Send> Polled for T {}

impl Socket for TcpStream {
    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_nonblocking(timeout.is_none())?;
        self.set_read_timeout(timeout)?;
        self.set_write_timeout(timeout)
    }

    fn into_source(self: Box<Self>) -> Box<dyn Polled> {
        Box::new(mio::net::TcpStream::from_std(*self))
    }
}

impl Socket for UnixStream {
    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_nonblocking(timeout.is_none())?;
        self.set_read_timeout(timeout)?;
        self.set_write_timeout(timeout)
    }

    fn into_source(self: Box<Self>) -> Box<dyn Polled> {
        Box::new(mio::net::UnixStream::from_std(*self))
    }
}

/// A connection before requests are sent: its calls wait, within a time.
pub(super) struct WaitingStream {
    socket: Box<dyn Socket>,
    tls: Option<Box<ClientConnection>>,
}

impl WaitingStream {
    pub(super) fn new(mut socket: Box<dyn Socket>, timeout: Duration) -> io::Result<WaitingStream> {
        socket.set_timeout(Some(timeout))?;
        Ok(WaitingStream { socket, tls: None })
    }

    /// Goes on over TLS, with a server of this name.
    pub(super) fn secure(
        &mut self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<()> {
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(1 << 20));
        while tls.is_handshaking() {
            again(|| tls.complete_io(&mut self.socket))?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.socket.write_all(bytes),
            Some(tls) => {
                tls.writer().write_all(bytes)?;
                while tls.wants_write() {
                    again(|| tls.write_tls(&mut self.socket))?;
                }
                Ok(())
            }
        }
    }

    /// Appends what comes next, at least a byte.
    pub(super) fn read(&mut self, input: &mut Vec<u8>) -> io::Result<()> {
        let mut bytes = [0; 4096];
        let count = match &mut self.tls {
            None => again(|| self.socket.read(&mut bytes))?,
            Some(tls) => {
                let mut stream = rustls::Stream::new(&mut **tls, &mut self.socket);
                again(|| stream.read(&mut bytes))?
            }
        };
        if count == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server hung up"));
        }
        input.extend_from_slice(&bytes[..count]);
        Ok(())
    }

    /// From now on no call waits.
    pub(super) fn into_ready(mut self) -> io::Result<ReadyStream> {
        self.socket.set_timeout(None)?;
        Ok(ReadyStream { socket: PolledSocket::new(self.socket.into_source()), tls: self.tls })
    }
}

/// Calls again where the wait was interrupted: one with a time-out is not taken up again by the
/// system, and completions of io_uring interrupt the thread that began them.
pub(super) fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

/// A connection in an event loop: no call waits, `WouldBlock` says that the loop will tell.
pub(super) struct ReadyStream {
    socket: PolledSocket<Box<dyn Polled>>,
    tls: Option<Box<ClientConnection>>,
}

impl ReadyStream {
    pub(super) fn register(&mut self, registry: &Arc<Registry>, token: Token) -> io::Result<()> {
        self.socket.register(registry, token)
    }

    pub(super) fn deregister(&mut self) -> io::Result<()> {
        self.socket.deregister()
    }

    /// Reads into `buffer`; 0 means that the server hung up.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.read(buffer);
        };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets()
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    /// Writes from `bytes`; how many were taken.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write(bytes);
        };
        // Only what is written makes room for more.
        while tls.wants_write() {
            tls.write_tls(&mut self.socket)?;
        }
        let taken = tls.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(taken),
            flushed => flushed.map(|()| taken),
        }
    }

    /// Writes what TLS holds back; `WouldBlock` while there is more.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}
