//! A folder for one check, gone with it.

use std::path::{Path, PathBuf};

/// A folder of its own in the system's one for such things. It is not made; whoever writes into it
/// makes it. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// The folder of the check `name` in this process.
    pub(crate) fn of(name: &str) -> Scratch {
        let name = format!("entresol-{name}-{}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it is in the folder for such things.
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// A path as an argument of a command.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_it_goes_with_it() {
        let scratch = Scratch::of("scratch-test");
        let place = scratch.path().to_path_buf();
        std::fs::create_dir_all(place.join("folder")).unwrap();
        std::fs::write(place.join("folder/file"), "text").unwrap();
        drop(scratch);
        assert!(!place.exists());
    }
}
