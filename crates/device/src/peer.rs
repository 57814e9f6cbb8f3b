//! Asks the system whether the other end of a TCP connection is still there.
#![expect(unsafe_code, reason = "the system is told through setsockopt")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// How the system finds out that a peer vanished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence before it asks.
    pub idle: Duration,
    /// From one question to the next.
    pub interval: Duration,
    /// Questions without an answer before the connection ends.
    pub questions: u32,
    /// How long bytes may be on their way without an answer; `None`: as long as the system has it.
    pub unanswered: Option<Duration>,
}

impl KeepAlive {
    /// Asks after `idle` of silence, and three times within a tenth of that: a peer that vanished
    /// is known after 1.1 times as long.
    pub fn after(idle: Duration) -> KeepAlive {
        let interval = (idle / 30).max(Duration::from_secs(1));
        KeepAlive { idle, interval, questions: 3, unanswered: None }
    }

    /// Until a silent peer that vanished is known to be gone.
    pub fn until_known(&self) -> Duration {
        self.idle + self.interval * self.questions
    }

    /// Has the system look after `socket`.
    ///
    /// # Errors
    /// It is no TCP socket, or the system does not take a number.
    pub fn apply(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let seconds = |time: Duration| time.as_secs().clamp(1, i16::MAX as u64) as libc::c_int;
        let unanswered = self.unanswered.unwrap_or_default().as_millis();
        let unanswered = unanswered.min(i32::MAX as u128) as libc::c_int;
        set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds(self.idle))?;
        set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds(self.interval))?;
        set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, self.questions as libc::c_int)?;
        set(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, unanswered)?;
        set(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)
    }
}

fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer is to an integer of that length, which is there for the time of the call.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    fn option(socket: &TcpStream, level: libc::c_int, name: libc::c_int) -> libc::c_int {
        let mut value: libc::c_int = -1;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: both pointers are to integers that are there for the time of the call.
        let done = unsafe {
            let (value, length) = ((&raw mut value).cast(), &raw mut length);
            libc::getsockopt(socket.as_raw_fd(), level, name, value, length)
        };
        assert_eq!(done, 0);
        value
    }

    /// Peers that had vanished kept their connections for ever.
    #[test]
    fn the_system_asks_whether_the_peer_is_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let tcp = |name| option(&socket, libc::IPPROTO_TCP, name);
        let mut keep_alive = KeepAlive::after(Duration::from_secs(300));
        assert_eq!(keep_alive.until_known(), Duration::from_secs(330));
        keep_alive.unanswered = Some(Duration::from_secs(330));
        keep_alive.apply(socket.as_fd()).unwrap();
        assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
        assert_eq!(tcp(libc::TCP_KEEPIDLE), 300);
        assert_eq!(tcp(libc::TCP_KEEPINTVL), 10);
        assert_eq!(tcp(libc::TCP_KEEPCNT), 3);
        assert_eq!(tcp(libc::TCP_USER_TIMEOUT), 330_000);
        // From the shortest to the longest that there is.
        for idle in [Duration::from_millis(1), Duration::from_secs(1 << 40)] {
            KeepAlive::after(idle).apply(socket.as_fd()).unwrap();
        }
    }
}
