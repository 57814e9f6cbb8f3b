//! Sockets that clients connect to.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use listenfd::ListenFd;
use mio::event::Source;
use mio::net::{TcpListener, UnixListener, UnixStream};
use nix::errno::Errno;

use crate::error::SettingError;
use crate::stream::Stream;
use crate::tls::Tls;

/// Clients that are gone before they were taken, at most, before others have their turn.
const GONE_IN_A_ROW_MAX: usize = 1000;

/// A socket that clients connect to. A Unix socket's path goes when the listener does.
pub struct Listener {
    socket: Socket,
}

/// Where clients reach a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address<'a> {
    /// An address of TCP.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(&'a Path),
}

enum Socket {
    Tcp(TcpListener, Option<Arc<Tls>>),
    Unix(UnixListener, PathBuf, Owner),
}

/// Who made a Unix socket, and removes its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Us,
    ServiceManager,
}

impl Listener {
    /// Listens on TCP addresses without TLS of its own, if `demand` finds nothing against them.
    /// For port 0 all share the free one that the first of them gets.
    ///
    /// # Errors
    /// An address cannot be listened on, or what `demand` says.
    pub fn tcp(
        addresses: &[String],
        port: u16,
        demand: &dyn Fn(SocketAddr) -> Result<(), SettingError>,
    ) -> Result<Vec<Listener>, SettingError> {
        let mut port = port;
        let mut listeners = Vec::new();
        for address in addresses {
            let listener = open_tcp(address, port, demand)?;
            let listener = Listener { socket: Socket::Tcp(listener, None) };
            if let Address::Tcp(local) = listener.address()? {
                port = local.port();
            }
            listeners.push(listener);
        }
        Ok(listeners)
    }

    /// Listens on a Unix socket, whose path is made with `mode`.
    ///
    /// # Errors
    /// The path cannot be listened on, or another process does.
    pub fn unix(path: &Path, mode: u32) -> Result<Listener, SettingError> {
        let listener = open_unix(path, mode)?;
        Ok(Listener { socket: Socket::Unix(listener, path.to_owned(), Owner::Us) })
    }

    /// The sockets that the service manager opened for this process; none if there is no such one.
    ///
    /// # Errors
    /// One of them is no stream socket that listens.
    pub fn inherited() -> Result<Vec<Listener>, SettingError> {
        let mut given = ListenFd::from_env();
        let mut listeners = Vec::new();
        for index in 0..given.len() {
            let wrong = |detail: String| {
                SettingError::at(format!("socket {index} of the service manager"), detail)
            };
            let socket = if let Ok(Some(listener)) = given.take_tcp_listener(index) {
                listener.set_nonblocking(true).map_err(|e| wrong(e.to_string()))?;
                Socket::Tcp(TcpListener::from_std(listener), None)
            } else if let Ok(Some(listener)) = given.take_unix_listener(index) {
                let address = listener.local_addr().map_err(|e| wrong(e.to_string()))?;
                listener.set_nonblocking(true).map_err(|e| wrong(e.to_string()))?;
                let path = address.as_pathname().unwrap_or(Path::new("@")).to_owned();
                Socket::Unix(UnixListener::from_std(listener), path, Owner::ServiceManager)
            } else {
                let detail = "expected a TCP or Unix socket that listens (`ListenStream=`), found \
                              something else";
                return Err(wrong(detail.to_owned()));
            };
            listeners.push(Listener { socket });
        }
        Ok(listeners)
    }

    /// From now on clients of a TCP socket speak TLS from their first byte on, if `tls` says how.
    pub fn secure(&mut self, tls: Option<&Arc<Tls>>) {
        if let Socket::Tcp(_, with) = &mut self.socket {
            *with = tls.cloned();
        }
    }

    /// Where clients reach it.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> Result<Address<'_>, SettingError> {
        match &self.socket {
            Socket::Tcp(listener, _) => match listener.local_addr() {
                Ok(address) => Ok(Address::Tcp(address)),
                Err(error) => Err(SettingError::cannot_listen("bind", "a socket", &error)),
            },
            Socket::Unix(_, path, _) => Ok(Address::Unix(path)),
        }
    }

    /// Another handle on a Unix socket; the path stays this one's.
    pub fn another(&self) -> Option<std::os::unix::net::UnixListener> {
        match &self.socket {
            Socket::Tcp(..) => None,
            Socket::Unix(listener, ..) => {
                let same = listener.as_fd().try_clone_to_owned().ok()?;
                Some(std::os::unix::net::UnixListener::from(same))
            }
        }
    }

    /// The next client; `None` if there is none waiting. Those that are gone already are passed
    /// over, for the event loop tells of the others behind them only once.
    ///
    /// # Errors
    /// The system has no room for one more: clients may be left waiting.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        first_there(|| match &self.socket {
            Socket::Tcp(listener, tls) => {
                let (stream, _) = listener.accept()?;
                Ok(Stream::tcp(stream, tls.as_ref().map(|tls| tls.config()).as_ref()))
            }
            Socket::Unix(listener, path, _) => {
                let (stream, _) = listener.accept()?;
                Ok(Ok(Stream::unix(stream, &path.display().to_string())))
            }
        })
    }

    /// The socket, for the event loop.
    pub fn source(&mut self) -> &mut dyn Source {
        match &mut self.socket {
            Socket::Tcp(listener, _) => listener,
            Socket::Unix(listener, ..) => listener,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path, Owner::Us) = &self.socket {
            // It may be gone already, which is what is wanted.
            let _ = fs::remove_file(path);
        }
    }
}

/// The first client that `accept` takes and that is still there.
fn first_there(
    mut accept: impl FnMut() -> io::Result<io::Result<Stream>>,
) -> io::Result<Option<Stream>> {
    for _ in 0..GONE_IN_A_ROW_MAX {
        match accept() {
            Ok(Ok(stream)) => return Ok(Some(stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if is_shortage(&error) => return Err(error),
            // It reset its connection before it was taken.
            Ok(Err(_)) | Err(_) => {}
        }
    }
    Err(io::Error::other(format!("{GONE_IN_A_ROW_MAX} in a row are gone already")))
}

/// Whether the system is short of what one more socket takes.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM];
    shortages.iter().any(|errno| error.raw_os_error() == Some(*errno as i32))
}

/// Listens on a TCP address that `demand` finds nothing against.
fn open_tcp(
    address: &str,
    port: u16,
    demand: &dyn Fn(SocketAddr) -> Result<(), SettingError>,
) -> Result<TcpListener, SettingError> {
    let host = address.trim_start_matches('[').trim_end_matches(']');
    let resolved: Option<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(ip) => Some(SocketAddr::new(ip, port)),
        Err(_) => (host, port).to_socket_addrs().ok().and_then(|mut all| all.next()),
    };
    let Some(resolved) = resolved else {
        let detail = format!("expected an address of this machine, found `{address}`");
        return Err(SettingError::new("bind", detail));
    };
    demand(resolved)?;
    TcpListener::bind(resolved)
        .map_err(|error| SettingError::cannot_listen("port", &resolved.to_string(), &error))
}

fn open_unix(path: &Path, mode: u32) -> Result<UnixListener, SettingError> {
    let shown = path.display().to_string();
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket {
        if UnixStream::connect(path).is_ok() {
            let detail =
                format!("another process listens on {shown}; stop it, or choose another path");
            return Err(SettingError::new("unix", detail));
        }
        fs::remove_file(path)
            .map_err(|error| SettingError::cannot_listen("unix", &shown, &error))?;
    }
    let listener = UnixListener::bind(path)
        .map_err(|error| SettingError::cannot_listen("unix", &shown, &error))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| SettingError::cannot_listen("unix-mode", &shown, &error))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that reset its connection in the queue ended the loop that takes clients; those
    /// behind it waited until somebody else came.
    #[test]
    fn clients_behind_one_that_is_gone_already_are_taken() {
        let error = |errno: Errno| io::Error::from_raw_os_error(errno as i32);
        let (served, _peer) = UnixStream::pair().unwrap();
        let mut queue = vec![
            Err(error(Errno::EAGAIN)),
            Ok(Ok(Stream::unix(served, "second"))),
            Err(error(Errno::ECONNABORTED)),
            Ok(Err(error(Errno::ENOTCONN))),
        ];
        let mut next = || queue.pop().unwrap();
        let found = first_there(&mut next).unwrap().unwrap();
        assert_eq!(found.addresses().remote, "second:0");
        assert!(first_there(&mut next).unwrap().is_none());
    }

    #[test]
    fn taking_clients_ends_where_the_system_has_no_room_for_them() {
        for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM] {
            let full = || Err(io::Error::from_raw_os_error(errno as i32));
            assert!(first_there(full).is_err(), "{errno}");
        }
        let gone = || Ok(Err(io::Error::from(ErrorKind::NotConnected)));
        assert!(first_there(gone).is_err(), "others have their turn");
    }
}
