//! Writes of a plain file that are durable on return, past the system's page cache. They take one
//! trip to the device; a write and a sync take two.
//!
//! They serve only groups of the log, whose room was laid out before. Readers of the log go through
//! the page cache, which the system keeps consistent with such writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use parking_lot::Mutex;

use super::closable::Closable;

/// Larger writes gain nothing: their bytes take longer than the second trip.
const BYTES_MAX: usize = 256 << 10;
/// What a device may want addresses, offsets and lengths to be multiples of.
const ALIGNMENT: usize = 4096;

/// The same file once more, opened for such writes.
#[derive(Debug)]
pub(crate) struct Direct {
    file: Closable,
    /// Room for an aligned copy of what is written.
    room: Mutex<Vec<u8>>,
}

impl Direct {
    /// Opens `file` again; `None` where the file system has no such writes.
    pub(crate) fn of(file: &File) -> Option<Direct> {
        let same = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut options = OpenOptions::new();
        let options = options.write(true).custom_flags(libc::O_DIRECT | libc::O_DSYNC);
        let file = Closable::new(options.open(same).ok()?);
        Some(Direct { file, room: Mutex::new(Vec::new()) })
    }

    /// Writes whole pages; false if the device refuses such writes, they are too many, or the file
    /// was closed.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        let is_whole = offset.is_multiple_of(ALIGNMENT as u64)
            && bytes.len().is_multiple_of(ALIGNMENT)
            && !bytes.is_empty();
        if !is_whole || bytes.len() > BYTES_MAX {
            return Ok(false);
        }
        let mut room = self.room.lock();
        if room.len() < bytes.len() + ALIGNMENT {
            room.resize(bytes.len() + ALIGNMENT, 0);
        }
        let Some(file) = self.file.get() else { return Ok(false) };
        let start = room.as_ptr().align_offset(ALIGNMENT);
        let Some(aligned) = room.get_mut(start..start + bytes.len()) else { return Ok(false) };
        aligned.copy_from_slice(bytes);
        match file.write_all_at(aligned, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Closes the file, once nobody writes.
    pub(crate) fn close(&self) {
        self.file.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pages_are_taken_and_reads_see_them() {
        let path = std::env::temp_dir().join(format!("entresol-direct-{}", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        let mut found = [0; 4096];
        file.read_exact_at(&mut found, 8192).unwrap();
        if let Some(direct) = Direct::of(&file) {
            assert!(!direct.write(100, &[1; 4096]).unwrap());
            assert!(!direct.write(4096, &[1; 100]).unwrap());
            assert!(!direct.write(0, &vec![1; BYTES_MAX + ALIGNMENT]).unwrap());
            if direct.write(8192, &[7; 4096]).unwrap() {
                file.read_exact_at(&mut found, 8192).unwrap();
                assert_eq!(found, [7; 4096]);
            }
        }
    }
}
