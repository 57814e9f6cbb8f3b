//! Memory that outlives the process: a file mapping, normally on `/dev/shm`.
//!
//! What was stored there survives `kill -9` of the process, since the pages belong to the file; it
//! does not survive power loss or a reboot, and the kernel writes nothing back.
//!
//! Invariants:
//! 1. All pages are allocated when the file is made. A mapping with holes on a full file system
//!    would end the process with SIGBUS at a store.
//! 2. Exclusive use is the caller's business (it holds its device's lock meanwhile).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::buffer::{BUFFER_ALIGNMENT, WriteBuffer};
use crate::error::{Error, ErrorKind, Result};
use crate::mapping::Mapping;
use crate::system;

/// A shared mapping of a whole file. Cut it into [`WriteBuffer`]s to use it.
#[derive(Debug)]
pub struct SharedMemory {
    path: PathBuf,
    memory: Mapping,
}

impl SharedMemory {
    /// Makes the file at `path`, `length` zeroed bytes (a multiple of 4096), and maps it. A file
    /// already there loses its name to the new one; mappings of it live on.
    ///
    /// Errors: `InvalidInput` for the length, `Full` if the file system has no room, else `Io`.
    pub fn create(path: impl AsRef<Path>, length: usize) -> Result<SharedMemory> {
        let path = path.as_ref();
        check_length(path, length as u64)?;
        SharedMemory::remove(path)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|source| Error::io(format!("{}: cannot create", path.display()), source))?;
        let free = system::free_bytes(path);
        let allocated = system::allocate(file.as_raw_fd(), length as u64)
            .map_err(|source| system::allocation_error(path, length as u64, free, source));
        if let Err(error) = allocated {
            SharedMemory::remove(path)?;
            return Err(error);
        }
        SharedMemory::map(path, &file, length)
    }

    /// Maps the file at `path`, all of it.
    ///
    /// Errors: `NotFound`, `InvalidInput` if its length is not one `create` makes, else `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<SharedMemory> {
        let path = path.as_ref();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|source| system::open_error(path, source))?;
        let status = file
            .metadata()
            .map_err(|source| Error::io(format!("{}: cannot stat", path.display()), source))?;
        check_length(path, status.len())?;
        SharedMemory::map(path, &file, status.len() as usize)
    }

    /// Removes the file. No error if there is none.
    pub fn remove(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format!("{}: cannot remove", path.display()), error))
            }
            _ => Ok(()),
        }
    }

    /// Gives the file at `from` the name `to`, in place of what was there.
    pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        fs::rename(from, to).map_err(|error| {
            let detail = format!("{}: cannot be renamed to {}", from.display(), to.display());
            Error::io(detail, error)
        })
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it holds no byte; never true.
    pub fn is_empty(&self) -> bool {
        self.memory.len() == 0
    }

    /// Cuts the memory into parts of these lengths, one behind the other from its beginning on,
    /// each a range of its own. Lengths in bytes, multiples of 4096.
    ///
    /// Errors: `InvalidInput` if the parts do not fit or are not aligned.
    pub fn parts(self, lengths: &[usize]) -> Result<Vec<WriteBuffer>> {
        let aligned = |bytes: &usize| *bytes > 0 && bytes.is_multiple_of(BUFFER_ALIGNMENT);
        let needed = lengths.iter().try_fold(0_usize, |sum, bytes| sum.checked_add(*bytes));
        let fits = needed.is_some_and(|needed| needed <= self.memory.len());
        if !lengths.iter().all(aligned) || !fits {
            let detail = format!(
                "{}: {} bytes of shared memory cannot hold parts of {lengths:?} bytes (each a \
                 multiple of {BUFFER_ALIGNMENT})",
                self.path.display(),
                self.memory.len(),
            );
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        Ok(WriteBuffer::cut(self.memory, lengths))
    }

    fn map(path: &Path, file: &File, length: usize) -> Result<SharedMemory> {
        let memory = Mapping::shared(file, length)?;
        Ok(SharedMemory { path: path.to_owned(), memory })
    }
}

fn check_length(path: &Path, length: u64) -> Result<()> {
    if length == 0 || !length.is_multiple_of(BUFFER_ALIGNMENT as u64) {
        let detail = format!(
            "{}: shared memory of {length} bytes; expected multiples of {BUFFER_ALIGNMENT}",
            path.display()
        );
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn shared_memory_keeps_its_bytes_for_the_next_opening() {
        let dir = TempDir::new("shared");
        let path = dir.path().join("memory");
        let memory = SharedMemory::create(&path, 5 * 4096).unwrap();
        let mut parts = memory.parts(&[4096, 8192, 8192]).unwrap();
        parts[0].bytes_mut()[0] = 1;
        parts[2].bytes_mut()[8191] = 3;
        drop(parts);
        let memory = SharedMemory::open(&path).unwrap();
        assert_eq!(memory.len(), 5 * 4096);
        let parts = memory.parts(&[4096, 8192, 8192]).unwrap();
        assert_eq!((parts[0].bytes()[0], parts[2].bytes()[8191]), (1, 3));
    }

    #[test]
    fn wrong_lengths_are_typed_errors() {
        let dir = TempDir::new("shared-lengths");
        let path = dir.path().join("memory");
        for length in [0, 1, 4097] {
            let error = SharedMemory::create(&path, length).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        assert_eq!(SharedMemory::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
        std::fs::write(&path, [0; 100]).unwrap();
        assert_eq!(SharedMemory::open(&path).unwrap_err().kind(), ErrorKind::InvalidInput);
        let memory = SharedMemory::create(&path, 8192).unwrap();
        assert_eq!(memory.parts(&[4096; 3]).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn creating_anew_leaves_older_mappings_alone() {
        let dir = TempDir::new("shared-anew");
        let path = dir.path().join("memory");
        let old = SharedMemory::create(&path, 8192).unwrap();
        let mut old = old.parts(&[4096, 4096]).unwrap();
        old[0].bytes_mut().fill(9);
        let new = SharedMemory::create(&path, 8192).unwrap();
        let new = new.parts(&[4096, 4096]).unwrap();
        assert!(new[0].bytes().iter().all(|&byte| byte == 0));
        assert_eq!(old[0].bytes()[4095], 9);
        SharedMemory::remove(&path).unwrap();
        SharedMemory::remove(&path).unwrap();
    }
}
