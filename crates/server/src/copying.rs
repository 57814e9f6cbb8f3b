//! The threads that take and read snapshots for those who copy the store.
//!
//! One of them looks after the others' requests: it takes snapshots, begins reads and ends them,
//! for which it takes the store's locks for moments. It also waits for the device, unless a client
//! asks for its copy to be made when nothing else wants a processor: then the other thread does,
//! which holds no lock of the store or of a worker, and runs only then. Such a copy takes next to
//! nothing from those who use the store, and may take longer than the store can wait for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use entresol_host::run_when_idle;
use entresol_tier::{Error, Snapshot, SnapshotRead};
use tracing::debug;

use crate::backup::{Backup, Copied};
use crate::error::ServeError;
use crate::operations::OperationId;
use crate::shared::{Copier, Item, Shared, Wanted};

/// How long a snapshot is put off at most until background work has made room for it, and how often
/// that is asked.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);
const ROOM_ASKED: Duration = Duration::from_millis(5);

/// A read that waits for the device.
pub(crate) struct Reading {
    worker: usize,
    operation: OperationId,
    snapshot: Arc<Snapshot>,
    read: SnapshotRead,
}

/// Looks after those who copy the store, until the server stops.
pub(crate) fn look_after(
    shared: &Shared,
    wanted: &Receiver<Copier>,
    reader: &Sender<Reading>,
) -> Result<(), ServeError> {
    loop {
        match wanted.recv_timeout(Duration::from_millis(100)) {
            Ok(Copier { worker, operation, wanted }) => {
                let later = |snapshot, read| {
                    // Its thread ends after this one.
                    let _ = reader.send(Reading { worker, operation, snapshot, read });
                };
                if let Some(copied) = copied(shared, wanted, later) {
                    shared.trays[worker].put(Item::Copied(operation, copied));
                }
            }
            Err(RecvTimeoutError::Timeout) if !shared.is_stopping() => {}
            Err(_) => return Ok(()),
        }
    }
}

/// What is wanted; `None` of a read that `later` takes over.
fn copied(
    shared: &Shared,
    wanted: Wanted,
    later: impl FnOnce(Arc<Snapshot>, SnapshotRead),
) -> Option<Result<Copied, Error>> {
    let (snapshot, read) = match wanted {
        Wanted::Snapshot { when_idle } => {
            let asked = Instant::now();
            // It is worth waiting for: else writes soon need what is not read.
            while !shared.tier.store().make_room_for_snapshot()
                && asked.elapsed() < ROOM_PATIENCE
                && !shared.is_stopping()
            {
                thread::sleep(ROOM_ASKED);
            }
            return Some(shared.tier.store().snapshot().map(|taken| {
                // Here, since a worker would keep its clients waiting.
                let backup = Backup::new(Arc::new(taken), when_idle);
                let described = backup.description();
                Copied::Snapshot(Box::new((backup, described)))
            }));
        }
        Wanted::Bytes { snapshot, segment, offset, length, when_idle } => {
            match snapshot.begin_read(&segment, offset, length) {
                Ok(read) if when_idle => {
                    later(snapshot, read);
                    return None;
                }
                begun => (snapshot, begun.and_then(waited)),
            }
        }
        Wanted::Given { snapshot, read } => (snapshot, read),
    };
    Some(read.and_then(|read| snapshot.end_read(read)).map(Copied::Bytes))
}

/// A read that the device has answered.
fn waited(mut read: SnapshotRead) -> Result<SnapshotRead, Error> {
    read.wait().map(|()| read)
}

/// Waits for the device on behalf of the other thread, until that one ends.
pub(crate) fn read(shared: &Shared, reads: &Receiver<Reading>) -> Result<(), ServeError> {
    if !run_when_idle() {
        debug!("the system does not put reads of backups behind all other work");
    }
    while let Ok(Reading { worker, operation, snapshot, read }) = reads.recv() {
        let wanted = Wanted::Given { snapshot, read: waited(read) };
        // Once the other thread has ended nobody waits for it.
        let _ = shared.copiers.send(Copier { worker, operation, wanted });
    }
    Ok(())
}
