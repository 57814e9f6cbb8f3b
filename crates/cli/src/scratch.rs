//! Directories that vanish with the command that made them.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_device::unfinished;

use crate::cleanup::{forget_directory, forget_file, register_directory, register_file};
use crate::failure::{Failure, Outcome};

/// A directory for files that a command makes and no one needs later.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    whole: Whole,
    files: RefCell<Vec<PathBuf>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    Ours,
    Callers,
}

impl Scratch {
    /// A new directory below `parent`, removed on drop.
    pub(crate) fn below(parent: &Path, name: &str) -> Outcome<Scratch> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|e| Failure::doing(format!("cannot make directory {}", path.display()), e))?;
        register_directory(&path);
        Ok(Scratch { path, whole: Whole::Ours, files: RefCell::default() })
    }

    /// The caller's directory `path`, made where it is absent and left in place; only files named
    /// by [`Scratch::fresh`] are removed from it.
    pub(crate) fn at(path: &Path) -> Outcome<Scratch> {
        std::fs::create_dir_all(path)
            .map_err(|e| Failure::doing(format!("cannot make directory {}", path.display()), e))?;
        Ok(Scratch { path: path.to_owned(), whole: Whole::Callers, files: RefCell::default() })
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name` within, for a file that is removed on drop; one of that name that an
    /// earlier command left is removed now.
    pub(crate) fn fresh(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        // First the unfinished one: it may get the other's name while they are removed.
        for path in [unfinished(&path), path.clone()] {
            // Absence is what is wanted; any other trouble shows when the file is made.
            drop(std::fs::remove_file(&path));
            register_file(&path);
            self.files.borrow_mut().push(path);
        }
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for file in self.files.get_mut() {
            // A file that was never made needs no removing.
            drop(std::fs::remove_file(&*file));
            forget_file(file);
        }
        if self.whole == Whole::Ours {
            // Nothing can be done here about a directory that will not go away.
            drop(std::fs::remove_dir_all(&self.path));
            forget_directory(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an interrupted preparation of a device's file had made of it stayed behind.
    #[test]
    fn a_file_that_is_not_finished_goes_with_its_scratch() {
        let below = Scratch::below(&std::env::temp_dir(), "entresol-scratch").unwrap();
        let earlier = below.path().join("a.new");
        std::fs::write(&earlier, "of an earlier command").unwrap();
        let scratch = Scratch::at(below.path()).unwrap();
        let path = scratch.fresh("a");
        assert_eq!(unfinished(&path), earlier);
        assert!(!earlier.exists());
        for path in [&path, &earlier] {
            std::fs::write(path, "of this one").unwrap();
        }
        drop(scratch);
        assert_eq!(std::fs::read_dir(below.path()).unwrap().count(), 0);
    }
}
