//! A file that can be closed under its users: each user holds it open during its use, and later
//! users find no file.

use std::fs::File;

use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};

/// A file until it is closed. The lock is a leaf, and held while the system uses the descriptor:
/// its number becomes another file's as soon as it is closed.
#[derive(Debug)]
pub(super) struct Closable {
    file: RwLock<Option<File>>,
}

impl Closable {
    pub(super) fn new(file: File) -> Closable {
        Closable { file: RwLock::new(Some(file)) }
    }

    /// The file, which stays open as long as this is held; `None` if it was closed. A thread holds
    /// it once at a time.
    pub(super) fn get(&self) -> Option<MappedRwLockReadGuard<'_, File>> {
        RwLockReadGuard::try_map(self.file.read(), Option::as_ref).ok()
    }

    /// Closes the file once nobody uses it.
    pub(super) fn close(&self) {
        drop(self.file.write().take());
    }
}
