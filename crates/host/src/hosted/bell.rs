//! What wakes the one who reaps: signals of the sessions' reads, and a bell.

use entresol_tier::Session;
use mio::unix::SourceFd;
use mio::{Interest, Poll, Token, Waker};
use parking_lot::RwLock;

use crate::hosted::failure::Failure;

const BELL: Token = Token(0);
const DEVICE: Token = Token(1);

/// A bell until it is removed. The lock is a leaf.
#[derive(Debug)]
pub(super) struct Bell {
    waker: RwLock<Option<Waker>>,
}

impl Bell {
    /// Wakes the one who reaps, if there is one.
    pub(super) fn ring(&self) {
        if let Some(waker) = &*self.waker.read() {
            // The reaper looks again by itself if this fails.
            let _ = waker.wake();
        }
    }

    /// Closes its descriptor.
    pub(super) fn remove(&self) {
        *self.waker.write() = None;
    }
}

/// What waits for signals of the sessions' reads and of a bell, and whether there are any.
pub(super) fn signals(sessions: &[Session]) -> Result<(Poll, Bell, bool), Failure> {
    let failed = |error: std::io::Error| Failure::system("cannot wait for devices", error);
    let poll = Poll::new().map_err(failed)?;
    let bell = Waker::new(poll.registry(), BELL).map_err(failed)?;
    let mut descriptors: Vec<_> = sessions.iter().flat_map(Session::poll_fds).collect();
    descriptors.sort_unstable();
    descriptors.dedup();
    for descriptor in &descriptors {
        let mut source = SourceFd(descriptor);
        poll.registry().register(&mut source, DEVICE, Interest::READABLE).map_err(failed)?;
    }
    Ok((poll, Bell { waker: RwLock::new(Some(bell)) }, !descriptors.is_empty()))
}
