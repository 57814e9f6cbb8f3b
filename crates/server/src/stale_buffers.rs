//! Write buffers in shared memory whose store is not there any more.
//!
//! They outlive the process on purpose, so a store that is killed and then deleted leaves them
//! behind. They are named and never removed: a store that is not mounted now looks the same, and
//! its buffers hold its last writes.

use std::fmt;
use std::path::Path;

use entresol_device::{Ownerless, ownerless};
use entresol_tier::flash::{BUFFER_FILE_HEADER, BufferOwner};

/// Leftovers that a start names one by one.
const NAMED_MAX: usize = 3;

/// Write buffers that no process has open and whose store's files are not all there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftoverBuffers(Ownerless);

impl fmt::Display for LeftoverBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, missing) = (self.0.path.display(), self.0.missing.display());
        write!(
            f,
            "{path} holds {} MiB of write buffers of a store on {missing}, which is not there: if \
             it was deleted, `rm {path}` frees the memory; if it was moved or is only not mounted, \
             they are its last writes",
            self.0.bytes.div_ceil(1 << 20)
        )
    }
}

/// What to say of `leftovers` at a start: each, or of many how many there are and where to read on.
pub(crate) fn said_of(leftovers: &[LeftoverBuffers], directory: &Path) -> Vec<String> {
    let (Some(first), false) = (leftovers.first(), leftovers.len() <= NAMED_MAX) else {
        return leftovers.iter().map(LeftoverBuffers::to_string).collect();
    };
    let bytes = leftovers.iter().map(|leftover| leftover.0.bytes).sum::<u64>();
    vec![format!(
        "{} files in {} hold {} MiB of write buffers of stores that are not there, the first one \
         of {}; `entresol store info` names each, with what to do",
        leftovers.len(),
        directory.display(),
        bytes.div_ceil(1 << 20),
        first.0.missing.display()
    )]
}

/// The leftover write buffers in `directory`, by name. What cannot be read is passed over.
pub fn leftover_buffers(directory: &Path) -> Vec<LeftoverBuffers> {
    let owner = |name: &str, header: &[u8]| Some(BufferOwner::of_file(name, header)?.places);
    let found = ownerless(directory, BUFFER_FILE_HEADER, owner);
    found.into_iter().map(LeftoverBuffers).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Arc;

    use entresol_device::{Device, FileDevice, FileOptions};
    use entresol_tier::flash::Store;
    use entresol_tier::{StoreOptions, Timestamp};

    use super::*;

    /// A directory of write buffers with a store, and one of its files.
    struct Scratch {
        directory: PathBuf,
        data: PathBuf,
    }

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("entresol-leftovers-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            fs::create_dir_all(directory.join("data")).unwrap();
            let data = directory.join("data/entresol.data").canonicalize();
            let data = data.unwrap_or_else(|_| directory.join("data/entresol.data"));
            Scratch { directory, data }
        }

        fn open(&self) -> Store {
            let capacity_bytes = Some(64 << 20);
            let options = FileOptions { capacity_bytes, ..FileOptions::default() };
            let device: Arc<dyn Device> = Arc::new(FileDevice::open(&self.data, &options).unwrap());
            let buffer_directory = Some(self.directory.clone());
            let options = StoreOptions { buffer_directory, ..StoreOptions::default() };
            Store::open(device, options, Timestamp(0)).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    /// They stayed for ever, and nobody knew whose they were.
    #[test]
    fn buffers_are_named_once_their_store_is_gone_and_nobody_has_them_open() {
        let place = Scratch::new("deleted");
        let store = place.open();
        assert_eq!(leftover_buffers(&place.directory), [], "it is open");
        fs::rename(&place.data, place.directory.join("elsewhere")).unwrap();
        assert_eq!(leftover_buffers(&place.directory), [], "it is open, whatever its name");
        fs::rename(place.directory.join("elsewhere"), &place.data).unwrap();
        // As a kill would, it leaves its buffers behind.
        drop(store);
        assert_eq!(leftover_buffers(&place.directory), [], "the next start needs them");
        fs::remove_file(&place.data).unwrap();
        let found = leftover_buffers(&place.directory);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0.missing, place.data);
        let said = |count| said_of(&vec![found[0].clone(); count], &place.directory);
        assert_eq!(said(3), vec![found[0].to_string(); 3]);
        // A restart beside 85 deleted stores printed a line for each.
        let [line] = &said(85)[..] else { panic!("{:?}", said(85)) };
        assert!(line.starts_with("85 files in ") && line.contains("`entresol store info`"));
        fs::write(&place.data, b"another store by that name").unwrap();
        assert_eq!(leftover_buffers(&place.directory), found);
        fs::remove_file(&place.data).unwrap();
        assert!(found[0].0.bytes > 8 << 20 && found[0].0.path.is_file());
        let text = found[0].to_string();
        assert!(text.contains(&format!("`rm {}`", found[0].0.path.display())), "{text}");
    }

    #[test]
    fn what_is_not_surely_the_buffers_of_a_store_that_is_gone_is_not_named() {
        let place = Scratch::new("unsure");
        let store = |number: u64| place.directory.join(format!("entresol-{number:016x}.buffers"));
        let mut earlier_version = vec![0; 1 << 20];
        fs::write(store(1), &earlier_version).unwrap();
        earlier_version.truncate(100);
        fs::write(store(2), &earlier_version).unwrap();
        fs::create_dir(store(3)).unwrap();
        nix::unistd::mkfifo(&store(4), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink(store(5), store(5)).unwrap();
        assert_eq!(leftover_buffers(&place.directory), []);
        assert_eq!(leftover_buffers(Path::new("/nowhere")), []);
        let opened = place.open();
        drop(opened);
        fs::remove_file(&place.data).unwrap();
        let found = leftover_buffers(&place.directory).remove(0);
        // Under another store's name they are not what their header says.
        fs::rename(&found.0.path, store(6)).unwrap();
        assert_eq!(leftover_buffers(&place.directory), []);
    }
}
