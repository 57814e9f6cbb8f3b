//! Sockets in an event loop that get events for room only while they wait for room.
//!
//! If an event loop watches a socket for room, the socket gets an event whenever its peer has read.
//! On Unix sockets that is one for every answer, which wakes a thread for nothing.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

use mio::event::Source;
use mio::{Interest, Registry, Token};

/// A non-blocking socket. A write that does not take everything asks the event loop for the next
/// room, and the first that does ends that.
pub struct PolledSocket<S> {
    socket: S,
    entered: Option<(Arc<Registry>, Token)>,
    awaits_room: bool,
}

impl<S: Source + Read + Write> PolledSocket<S> {
    /// A socket in no event loop.
    pub fn new(socket: S) -> PolledSocket<S> {
        PolledSocket { socket, entered: None, awaits_room: false }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Enters it into an event loop under `token`: what can be read is told of, and room once
    /// there was too little.
    ///
    /// # Errors
    /// The event loop cannot take it.
    pub fn register(&mut self, registry: &Arc<Registry>, token: Token) -> io::Result<()> {
        let interest = interest(self.awaits_room);
        self.socket.register(registry, token, interest)?;
        self.entered = Some((Arc::clone(registry), token));
        Ok(())
    }

    /// Takes it out of its event loop.
    ///
    /// # Errors
    /// The event loop does not have it.
    pub fn deregister(&mut self) -> io::Result<()> {
        match self.entered.take() {
            Some((registry, _)) => self.socket.deregister(&registry),
            None => Ok(()),
        }
    }

    /// What a write of `wanted` bytes came to.
    fn written(&mut self, result: io::Result<usize>, wanted: usize) -> io::Result<usize> {
        let took_all = match &result {
            Ok(taken) => *taken >= wanted,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(_) => return result,
        };
        if self.awaits_room == took_all {
            if let Some((registry, token)) = &self.entered {
                self.socket.reregister(registry, *token, interest(!took_all))?;
            }
            self.awaits_room = !took_all;
        }
        result
    }
}

impl<S: Source + Read + Write> Read for PolledSocket<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.read(buffer)
    }
}

impl<S: Source + Read + Write> Write for PolledSocket<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.socket.write(bytes);
        self.written(result, bytes.len())
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let result = self.socket.write_vectored(slices);
        self.written(result, slices.iter().map(|slice| slice.len()).sum())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn interest(awaits_room: bool) -> Interest {
    if awaits_room { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mio::net::UnixStream;
    use mio::{Events, Poll};

    use super::*;

    /// A registered socket, its peer, and the loop.
    fn looped() -> (PolledSocket<UnixStream>, UnixStream, Poll, Events) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let poll = Poll::new().unwrap();
        let registry = Arc::new(poll.registry().try_clone().unwrap());
        let mut socket = PolledSocket::new(ours);
        socket.register(&registry, Token(0)).unwrap();
        (socket, theirs, poll, Events::with_capacity(4))
    }

    fn events(poll: &mut Poll, events: &mut Events) -> Vec<(bool, bool)> {
        poll.poll(events, Some(Duration::ZERO)).unwrap();
        events.iter().map(|event| (event.is_readable(), event.is_writable())).collect()
    }

    #[test]
    fn a_peer_that_reads_an_answer_wakes_nobody() {
        let (mut socket, mut peer, mut poll, mut found) = looped();
        for _ in 0..3 {
            assert_eq!(socket.write(b"answer").unwrap(), 6);
            assert_eq!(peer.read(&mut [0; 16]).unwrap(), 6);
            assert_eq!(events(&mut poll, &mut found), []);
        }
        peer.write_all(b"request").unwrap();
        assert_eq!(events(&mut poll, &mut found), [(true, false)]);
    }

    #[test]
    fn room_is_told_of_after_a_write_that_found_too_little_and_until_one_finds_enough() {
        let (mut socket, mut peer, mut poll, mut found) = looped();
        let bytes = vec![7; 1 << 20];
        let mut owed = 3 << 20;
        let mut turns = 0;
        while owed > 0 {
            match socket.write(&bytes[..owed.min(1 << 20)]) {
                Ok(taken) => owed -= taken,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    assert_eq!(events(&mut poll, &mut found), [], "there is no room yet");
                    while peer.read(&mut [0; 64 << 10]).is_ok() {}
                    assert_eq!(events(&mut poll, &mut found), [(false, true)]);
                    turns += 1;
                }
            }
        }
        assert!(turns > 3, "{turns}");
        while peer.read(&mut [0; 64 << 10]).is_ok() {}
        events(&mut poll, &mut found);
        a_small_write_is_quiet(&mut socket, &mut peer, &mut poll, &mut found);
    }

    fn a_small_write_is_quiet(
        socket: &mut PolledSocket<UnixStream>,
        peer: &mut UnixStream,
        poll: &mut Poll,
        found: &mut Events,
    ) {
        assert_eq!(socket.write(b"answer").unwrap(), 6);
        events(poll, found);
        assert_eq!(peer.read(&mut [0; 16]).unwrap(), 6);
        assert_eq!(events(poll, found), []);
    }
}
