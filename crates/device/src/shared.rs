//! Memory that outlives the process: a file mapping, normally on `/dev/shm`.
//!
//! Its bytes survive `kill -9` of the process, because the pages belong to the file. They do not
//! survive power loss or a reboot, and the kernel writes nothing back.
//!
//! Invariants:
//! 1. All pages are allocated when the file is made. A mapping with holes on a full file system
//!    would end the process with SIGBUS at a store.
//! 2. A file has one user at a time: the lock goes with the mapping, however the process ends.
//! 3. Making a file never overwrites an existing one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::buffer::{BUFFER_ALIGNMENT, WriteBuffer};
use crate::error::{Error, ErrorKind, Result};
use crate::mapping::Mapping;
use crate::system;

/// What else helps where write buffers have no room.
const ADVICE: &str = "name another directory for write buffers (`buffer-directory`), or take fewer \
                      shards; a container has more with `--shm-size`";

/// A shared mapping of a whole file. Cut it into [`WriteBuffer`]s to use it.
#[derive(Debug)]
pub struct SharedMemory {
    path: PathBuf,
    file: File,
    memory: Mapping,
}

impl SharedMemory {
    /// Makes the file at `path`, `length` zeroed bytes (a multiple of 4096) but for `head`, with
    /// which it begins, and maps it.
    ///
    /// Errors: `InvalidInput` for the lengths, `Full` if the file system has no room, else `Io`,
    /// also where a file is there.
    pub fn create(path: impl AsRef<Path>, length: usize, head: &[u8]) -> Result<SharedMemory> {
        let path = path.as_ref();
        check_length(path, length.max(head.len()) as u64)?;
        let failed = |source| Error::io(format!("{}: cannot create", path.display()), source);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let mut file = options.open(path).map_err(failed)?;
        // First: whoever finds a file whose making was cut short can tell whose it is.
        let headed = file.write_all(head).map_err(failed);
        let free = system::free_bytes(path);
        let allocated = headed.and_then(|()| {
            system::allocate(file.as_raw_fd(), length as u64).map_err(|source| {
                system::allocation_error(path, length as u64, free, source, ADVICE)
            })
        });
        if let Err(error) = allocated {
            SharedMemory::remove(path)?;
            return Err(error);
        }
        SharedMemory::map(path, file, length)
    }

    /// Maps the file at `path`, all of it.
    ///
    /// Errors: `NotFound`, `InUse`, `InvalidInput` if its length is not one `create` makes, `Full`
    /// if it has holes and the file system no room for them, else `Io`.
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
        let free = system::free_bytes(path);
        system::allocate(file.as_raw_fd(), status.len())
            .map_err(|source| system::allocation_error(path, status.len(), free, source, ADVICE))?;
        SharedMemory::map(path, file, status.len() as usize)
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

    /// The files in `directory` whose names begin with `prefix`; none where it cannot be listed.
    pub fn files_of(directory: &Path, prefix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let files = entries.filter(|entry| {
            let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
            named && entry.file_type().is_ok_and(|kind| kind.is_file())
        });
        files.map(|file| file.path()).collect()
    }

    /// The first `length` bytes of the file at `path`, which another process may have; `None` where
    /// it is shorter, or cannot be read.
    pub fn head(path: &Path, length: usize) -> Option<Vec<u8>> {
        let mut head = vec![0; length];
        File::open(path).and_then(|mut file| file.read_exact(&mut head)).ok()?;
        Some(head)
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

    /// The file, to see what becomes of it. It is locked for as long as this is there, too.
    pub fn file(&self) -> Result<SharedFile> {
        let file = self.file.try_clone();
        let failed = |source| Error::io(format!("{}: cannot keep", self.path.display()), source);
        Ok(SharedFile { path: self.path.clone(), file: file.map_err(failed)?, length: self.len() })
    }

    fn map(path: &Path, file: File, length: usize) -> Result<SharedMemory> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let detail = format!("{} is in use by another process", path.display());
                return Err(Error::new(ErrorKind::InUse, detail));
            }
            Err(TryLockError::Error(source)) => {
                return Err(Error::io(format!("{}: cannot lock", path.display()), source));
            }
            Ok(()) => {}
        }
        let memory = Mapping::shared(&file, length)?;
        Ok(SharedMemory { path: path.to_owned(), file, memory })
    }
}

/// A file of shared memory in use.
#[derive(Debug)]
pub struct SharedFile {
    path: PathBuf,
    file: File,
    length: usize,
}

impl SharedFile {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the next process finds it there, as long as it is.
    pub fn is_there(&self) -> bool {
        let Ok(status) = self.file.metadata() else { return false };
        let there = fs::metadata(&self.path);
        status.len() >= self.length as u64
            && there.is_ok_and(|there| (there.dev(), there.ino()) == (status.dev(), status.ino()))
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
        let memory = SharedMemory::create(&path, 5 * 4096, b"head").unwrap();
        let mut parts = memory.parts(&[4096, 8192, 8192]).unwrap();
        parts[0].bytes_mut()[4] = 1;
        parts[2].bytes_mut()[8191] = 3;
        drop(parts);
        let memory = SharedMemory::open(&path).unwrap();
        assert_eq!(memory.len(), 5 * 4096);
        let parts = memory.parts(&[4096, 8192, 8192]).unwrap();
        assert_eq!((&parts[0].bytes()[..5], parts[2].bytes()[8191]), (&b"head\x01"[..], 3));
    }

    #[test]
    fn wrong_lengths_are_typed_errors() {
        let dir = TempDir::new("shared-lengths");
        let path = dir.path().join("memory");
        for length in [0, 1, 4097] {
            let error = SharedMemory::create(&path, length, &[]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        assert_eq!(SharedMemory::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
        std::fs::write(&path, [0; 100]).unwrap();
        assert_eq!(SharedMemory::open(&path).unwrap_err().kind(), ErrorKind::InvalidInput);
        std::fs::remove_file(&path).unwrap();
        let memory = SharedMemory::create(&path, 8192, &[]).unwrap();
        assert_eq!(memory.parts(&[4096; 3]).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    /// A store made its buffers over those of another.
    #[test]
    fn a_file_has_one_user_and_is_not_made_over() {
        let dir = TempDir::new("shared-anew");
        let path = dir.path().join("memory");
        let memory = SharedMemory::create(&path, 8192, &[]).unwrap();
        let file = memory.file().unwrap();
        let parts = memory.parts(&[4096, 4096]).unwrap();
        assert!(SharedMemory::create(&path, 8192, &[]).is_err());
        assert_eq!(SharedMemory::open(&path).unwrap_err().kind(), ErrorKind::InUse);
        drop(file);
        assert_eq!(SharedMemory::open(&path).unwrap_err().kind(), ErrorKind::InUse, "mapped");
        drop(parts);
        let memory = SharedMemory::open(&path).unwrap();
        assert!(memory.file().unwrap().is_there());
        let moved = dir.path().join("moved");
        SharedMemory::rename(&path, &moved).unwrap();
        let file = memory.file().unwrap();
        assert!(!file.is_there(), "another name");
        SharedMemory::rename(&moved, &path).unwrap();
        assert!(file.is_there());
        SharedMemory::remove(&path).unwrap();
        SharedMemory::remove(&path).unwrap();
        assert!(!file.is_there());
    }
}
