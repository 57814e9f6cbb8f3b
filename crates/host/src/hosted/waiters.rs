//! Sessions of callers that wait for the device in their own threads: a read costs such a caller
//! one submission and one wait, and no thread but its own.

use entresol_tier::{Error, Session};
use parking_lot::{Condvar, Mutex};

/// Callers that wait at once, at most; whoever comes then waits for what others reap.
const CALLERS_MAX: usize = 32;

/// Sessions that a caller each takes for as long as it waits. Thread-safe.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    sessions: Mutex<Sessions>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Sessions {
    idle: Vec<Session>,
    taken: usize,
    closed: bool,
}

/// A session that its caller has to itself; it goes back when this is dropped.
pub(super) struct Taken<'a> {
    waiters: &'a Waiters,
    session: Option<Session>,
}

impl Waiters {
    /// A session with nothing in flight, opened by `open` where none is idle; none where too many
    /// are taken, where it cannot be opened, and after the end.
    pub(super) fn take(&self, open: impl FnOnce() -> Result<Session, Error>) -> Option<Taken<'_>> {
        let mut sessions = self.sessions.lock();
        if sessions.closed || sessions.taken == CALLERS_MAX {
            return None;
        }
        sessions.taken += 1;
        let idle = sessions.idle.pop();
        drop(sessions);
        let mut taken = Taken { waiters: self, session: idle };
        if taken.session.is_none() {
            taken.session = open().ok();
        }
        taken.session.is_some().then_some(taken)
    }

    /// Waits for those that are taken and ends all.
    pub(super) fn close(&self) {
        let mut sessions = self.sessions.lock();
        sessions.closed = true;
        while sessions.taken > 0 {
            self.returned.wait(&mut sessions);
        }
        sessions.idle.clear();
    }
}

impl Taken<'_> {
    /// What was taken.
    pub(super) fn session(&mut self) -> &mut Session {
        self.session.as_mut().expect("it is given back by the drop alone")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // One that was left while it worked would answer the next caller with what it still has.
        let idle = self.session.take().filter(|session| session.in_flight() == 0);
        let mut sessions = self.waiters.sessions.lock();
        sessions.idle.extend(idle);
        sessions.taken -= 1;
        drop(sessions);
        self.waiters.returned.notify_one();
    }
}
