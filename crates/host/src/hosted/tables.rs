//! The ordered tables of a hosted store: opened when somebody first asks for them, with sessions
//! that callers take turns with.
//!
//! Lock order: *opening*, *relieving*, *room*, then the tree. Idle sessions are under a leaf.
//!
//! Where changes have no room one of the writers merges, beside the upkeep; the others sleep until
//! there is room. If each of them merged or looked by turns, switches of threads would take more
//! time than merges.

use std::sync::Arc;
use std::time::Duration;

use entresol_tier::{Error, ErrorKind, SessionOptions, Tiered, Timestamp};
use entresol_tree::{Progress, Session, Tree, TreeOptions, TreeStatistics};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::hosted::failure::Failure;

/// Callers that work at once, at most; whoever comes then waits until one is done.
const CALLERS_MAX: usize = 32;
/// A caller waits for what it asked for, but may ask for several things at once.
const DEPTH: usize = 32;
/// A leaf is read at once.
const READ_BUFFER_BYTES: usize = 16 << 10;
/// Writers wait so long for another one to make room, at most: the journal may have some before
/// memory has.
const ROOM_WAIT: Duration = Duration::from_millis(2);
/// The same where memory has room by now: it was the journal that had none.
const JOURNAL_WAIT: Duration = Duration::from_micros(100);

/// The tables, once they are open. Thread-safe.
#[derive(Debug)]
pub(super) struct Tables {
    options: TreeOptions,
    tree: RwLock<Option<Arc<Tree>>>,
    /// Held while tables are opened.
    opening: Mutex<Opening>,
    sessions: Mutex<Sessions>,
    returned: Condvar,
    /// Held by the writer that merges.
    relieving: Mutex<()>,
    /// Held while room is looked for, and while it is told of: nobody misses what is told.
    room: Mutex<()>,
    has_room: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Allowed,
    /// The store closes.
    Over,
}

#[derive(Debug, Default)]
struct Sessions {
    idle: Vec<Session>,
    taken: usize,
    closed: bool,
}

/// A session that its caller has to itself; it goes back when this is dropped.
struct Taken<'t> {
    tables: &'t Tables,
    session: Option<Session>,
}

impl Tables {
    pub(super) fn new(options: TreeOptions) -> Tables {
        Tables {
            options,
            tree: RwLock::default(),
            opening: Mutex::new(Opening::Allowed),
            sessions: Mutex::default(),
            returned: Condvar::new(),
            relieving: Mutex::default(),
            room: Mutex::default(),
            has_room: Condvar::new(),
        }
    }

    /// The tables, if somebody has asked for them.
    pub(super) fn opened(&self) -> Option<Arc<Tree>> {
        self.tree.read().clone()
    }

    /// The tables of `tiered`, opened if nobody has asked for them before.
    pub(super) fn open(&self, tiered: &Arc<Tiered>, now: Timestamp) -> Result<Arc<Tree>, Failure> {
        let opening = self.opening.lock();
        if *opening == Opening::Over {
            return Err(Failure::closed());
        }
        if let Some(tree) = self.opened() {
            return Ok(tree);
        }
        let tree = Arc::new(Tree::open(Arc::clone(tiered), self.options.clone(), now)?);
        *self.tree.write() = Some(Arc::clone(&tree));
        Ok(tree)
    }

    /// Has `work` done with a session that nobody else has meanwhile.
    pub(super) fn with_session<T>(
        &self,
        tree: &Tree,
        work: impl FnOnce(&mut Session) -> T,
    ) -> Result<T, Failure> {
        let mut sessions = self.sessions.lock();
        while sessions.taken == CALLERS_MAX && !sessions.closed {
            self.returned.wait(&mut sessions);
        }
        if sessions.closed {
            return Err(Failure::closed());
        }
        sessions.taken += 1;
        let idle = sessions.idle.pop();
        drop(sessions);
        let mut taken = Taken { tables: self, session: idle };
        let session = match taken.session.take() {
            Some(session) => session,
            None => tree.session(SessionOptions {
                depth: DEPTH,
                read_buffer_bytes: READ_BUFFER_BYTES,
                ..SessionOptions::default()
            })?,
        };
        Ok(work(taken.session.insert(session)))
    }

    /// Merges what waits, as far as memory or the journal ask for it.
    pub(super) fn maintain(&self, now: Timestamp) -> Result<Progress, Error> {
        let Some(tree) = self.opened() else { return Ok(Progress::default()) };
        let progress = tree.maintain_tables(now)?;
        if progress.did_work && tree.has_room() {
            drop(self.room.lock());
            self.has_room.notify_all();
        }
        Ok(progress)
    }

    /// Merges, for a writer that found no room, or waits until somebody else who does has made
    /// some, or for a moment.
    pub(super) fn relieve(&self, now: Timestamp) -> Result<(), Error> {
        if let Some(_alone) = self.relieving.try_lock() {
            if let Some(rest) = self.maintain(now)?.rest() {
                std::thread::park_timeout(rest);
            }
            return Ok(());
        }
        let mut room = self.room.lock();
        let lacks_room = self.opened().is_some_and(|tree| !tree.has_room());
        let most = if lacks_room { ROOM_WAIT } else { JOURNAL_WAIT };
        self.has_room.wait_for(&mut room, most);
        Ok(())
    }

    pub(super) fn statistics(&self) -> Option<TreeStatistics> {
        self.opened().map(|tree| tree.statistics())
    }

    /// Waits for callers, ends their sessions, and merges all that waits, so that the next opening
    /// finds all that is known now.
    pub(super) fn close(&self, now: Timestamp) -> Result<(), Failure> {
        *self.opening.lock() = Opening::Over;
        let mut sessions = self.sessions.lock();
        sessions.closed = true;
        self.returned.notify_all();
        while sessions.taken > 0 {
            self.returned.wait(&mut sessions);
        }
        sessions.idle.clear();
        drop(sessions);
        let Some(tree) = self.tree.write().take() else { return Ok(()) };
        match tree.settle(now) {
            // Changes that nobody can merge, since a merge function was not named, are in the
            // journal and stay there: nothing is lost, and the store can close.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
            settled => Ok(settled?),
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // One that was left while it worked would answer the next caller with what it still has.
        let idle = self.session.take().filter(|session| session.in_flight() == 0);
        let mut sessions = self.tables.sessions.lock();
        sessions.idle.extend(idle);
        sessions.taken -= 1;
        drop(sessions);
        // One session, one caller; once the store closes, the only one that waits is who closes it.
        self.tables.returned.notify_one();
    }
}

#[cfg(test)]
mod tests;
