//! A directory that goes with the value, for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A directory of a test's own.
pub(crate) struct Place(PathBuf);

impl Place {
    /// Where temporary files go.
    pub(crate) fn temporary(name: &str) -> Place {
        Place::under(&std::env::temp_dir(), name)
    }

    /// On a memory file system, if there is one.
    pub(crate) fn in_memory(name: &str) -> Option<Place> {
        let root = Path::new("/dev/shm");
        root.is_dir().then(|| Place::under(root, name))
    }

    /// In a directory.
    pub(crate) fn under(root: &Path, name: &str) -> Place {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("entresol-{name}-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Place(path)
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}
