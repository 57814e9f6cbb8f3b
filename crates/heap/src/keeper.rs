//! The heap's own thread: checkpoints beside commits, and syncs of buffered commits.
//!
//! Invariant: the thread holds the core of the heap and never the heap itself, so that it never
//! drops the last handle; closing stops and joins the thread.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::core::Core;
use crate::error::{Error, Result};

/// Starts the thread.
pub(crate) fn start(core: &Arc<Core>) -> Result<JoinHandle<()>> {
    let core = Arc::clone(core);
    let thread = std::thread::Builder::new().name("heap".to_owned());
    let started = thread.spawn(move || {
        while let Some((checkpoint, sync)) = core.signal.wait() {
            // A failure poisons the heap, and every later commit tells of it.
            if sync {
                let _told_to_commits = core.log.sync();
            }
            if checkpoint {
                let _told_to_commits = core.checkpoint();
            }
        }
    });
    started.map_err(|error| Error::io("cannot start the heap's thread", error))
}
