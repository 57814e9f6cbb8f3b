//! The threads that take and read snapshots for those who copy the store.
//!
//! One of them looks after the others' requests: it takes snapshots, begins reads and ends them,
//! for which it takes the store's locks for moments. It also waits for the device, unless a client
//! asks for its copy to be made when nothing else wants a processor: then the other thread does,
//! which holds no lock of the store or of a worker, and runs only then. Such a copy takes next to
//! nothing from those who use the store, and may take longer than the store can wait for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use entresol_host::run_when_idle;
use entresol_tier::{Error, Snapshot, SnapshotRead};
use tracing::debug;

use crate::backup::Copied;
use crate::error::ServeError;
use crate::operations::OperationId;
use crate::shared::{Copier, Item, Shared, Wanted};

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
                let copied = match wanted {
                    Wanted::Snapshot => snapshot(shared),
                    Wanted::Bytes { snapshot, segment, offset, length, when_idle } => {
                        match snapshot.begin_read(&segment, offset, length) {
                            Ok(mut read) if !when_idle => {
                                let read = read.wait().map(|()| read);
                                read.and_then(|read| snapshot.end_read(read)).map(Copied::Bytes)
                            }
                            Ok(read) => {
                                let reading = Reading { worker, operation, snapshot, read };
                                // Its thread ends after this one.
                                let _ = reader.send(reading);
                                continue;
                            }
                            Err(error) => Err(error),
                        }
                    }
                    Wanted::Given { snapshot, read } => {
                        read.and_then(|read| snapshot.end_read(read)).map(Copied::Bytes)
                    }
                };
                shared.trays[worker].put(Item::Copied(operation, copied));
            }
            Err(RecvTimeoutError::Timeout) if !shared.is_stopping() => {}
            Err(_) => return Ok(()),
        }
    }
}

fn snapshot(shared: &Shared) -> Result<Copied, Error> {
    shared.tier.store().snapshot().map(|taken| Copied::Snapshot(Arc::new(taken)))
}

/// Waits for the device on behalf of the other thread, until that one ends.
pub(crate) fn read(shared: &Shared, reads: &Receiver<Reading>) -> Result<(), ServeError> {
    if !run_when_idle() {
        debug!("the system does not put reads of backups behind all other work");
    }
    while let Ok(Reading { worker, operation, snapshot, mut read }) = reads.recv() {
        let read = read.wait().map(|()| read);
        let wanted = Wanted::Given { snapshot, read };
        // Once the other thread has ended nobody waits for it.
        let _ = shared.copiers.send(Copier { worker, operation, wanted });
    }
    Ok(())
}
