//! Write buffers that outlived the process of a store which its owner removed since.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use entresol_device::ownerless;
use entresol_tier::flash::{BUFFER_FILE_HEADER, BufferOwner};

use crate::hosted::Failure;

/// Where write buffers outlive the process if nobody says otherwise.
pub const BUFFER_DIRECTORY: &str = "/dev/shm";

/// Removes those in `directory` of stores that had files in `folder`, some of which are gone: who
/// asks has removed them. How many.
///
/// # Errors
/// The system does not remove one.
pub fn sweep_buffers(directory: &Path, folder: &Path) -> Result<usize, Failure> {
    // Stores know their files by paths without links.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let owner = |name: &str, header: &[u8]| Some(BufferOwner::of_file(name, header)?.places);
    let mut removed = 0;
    for found in ownerless(directory, BUFFER_FILE_HEADER, owner) {
        // Another file by that name is another store's, and this one's may have moved.
        if !found.missing.starts_with(&folder) || found.missing.exists() {
            continue;
        }
        match fs::remove_file(&found.path) {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Failure::system(&found.path.display().to_string(), error));
            }
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use entresol_device::{Device, FileDevice, FileOptions};
    use entresol_tier::flash::Store;
    use entresol_tier::{StoreOptions, Timestamp};

    use super::*;

    /// A folder of stores with write buffers beside them, which goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            let name = format!("entresol-host-buffers-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(path.join("one")).unwrap();
            fs::create_dir_all(path.join("other")).unwrap();
            Folder(path)
        }

        fn open(&self, store: &str) -> Store {
            let options = FileOptions { capacity_bytes: Some(64 << 20), ..FileOptions::default() };
            let file = self.0.join(store).join("data");
            let device: Arc<dyn Device> = Arc::new(FileDevice::open(&file, &options).unwrap());
            let buffer_directory = Some(self.0.clone());
            let options = StoreOptions { buffer_directory, ..StoreOptions::default() };
            Store::open(device, options, Timestamp(0)).unwrap()
        }

        fn sweep(&self, folder: &str) -> usize {
            sweep_buffers(&self.0, &self.0.join(folder)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    /// A store that was killed and then removed left 16 MiB of memory behind, for ever.
    #[test]
    fn buffers_go_with_the_removed_store_of_that_folder_alone() {
        let folders = Folder::new();
        let (open, killed) = (folders.open("other"), folders.open("one"));
        // As a kill would, it leaves its buffers behind.
        drop(killed);
        assert_eq!(folders.sweep("one"), 0, "the next start needs them");
        fs::remove_file(folders.0.join("one/data")).unwrap();
        fs::remove_file(folders.0.join("other/data")).unwrap();
        assert_eq!(folders.sweep("other"), 0, "it is open");
        drop(open);
        assert_eq!(folders.sweep("nowhere"), 0);
        assert_eq!(folders.sweep("one"), 1);
        assert_eq!(folders.sweep("one"), 0);
        assert_eq!(folders.sweep("other"), 1);
    }
}
