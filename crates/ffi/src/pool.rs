//! Pools: a file mapped as plain shared memory.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::text;
use crate::text::Failure;

/// Room is asked for in pieces: one that a signal ends is lost and begun again.
const ROOM_BYTES_MAX: u64 = 32 << 20;

/// What a pool's address refers to; unmapped when dropped.
struct Pool {
    base: *mut libc::c_void,
    bytes: usize,
    /// Of a page, which flushes are rounded to.
    page_bytes: usize,
}

impl Pool {
    /// Maps a file, which is made with `bytes` bytes unless that is 0.
    fn open(path: &Path, bytes: u64) -> Result<Pool, Failure> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(bytes > 0).open(path);
        let file = file.map_err(|_| Failure::io(&format!("cannot open {}", path.display())))?;
        let mapped = Pool::map(&file, path, bytes);
        if mapped.is_err() && bytes > 0 {
            // A pool that could not be made leaves no file; that it cannot be removed is no worse.
            let _ = std::fs::remove_file(path);
        }
        mapped
    }

    fn map(file: &File, path: &Path, bytes: u64) -> Result<Pool, Failure> {
        if bytes > 0 {
            // The length first: what no file can have is refused before there is room for a part.
            let sized = file.set_len(bytes).and_then(|()| {
                make_room(bytes, |from, length| {
                    // SAFETY: a call on an open file.
                    unsafe { libc::posix_fallocate(file.as_raw_fd(), from, length) }
                })
            });
            if let Err(error) = sized {
                let sentence = format!("no {bytes} bytes for {}: {error}", path.display());
                return Err(Failure { kind: 1, sentence });
            }
        }
        let length = file.metadata().map(|metadata| metadata.len()).unwrap_or(0) as usize;
        if length == 0 {
            return Err(Failure { kind: 2, sentence: format!("{} is empty", path.display()) });
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let descriptor = file.as_raw_fd();
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, descriptor, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(Failure::io(&format!("cannot map {}", path.display())));
        }
        // SAFETY: a call without arguments that could be wrong.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        Ok(Pool { base, bytes: length, page_bytes })
    }

    fn flush(&self, offset: usize, length: usize) -> Result<(), Failure> {
        let end = offset.saturating_add(length).min(self.bytes);
        let start = offset.min(end) / self.page_bytes * self.page_bytes;
        // SAFETY: inside the mapping.
        let failed =
            unsafe { libc::msync(self.base.byte_add(start), end - start, libc::MS_SYNC) != 0 };
        if failed { Err(Failure::io("cannot flush a pool")) } else { Ok(()) }
    }
}

impl Pool {
    /// Puts zeroed memory in place of the file, for threads that are still about.
    fn close(&self) -> Result<(), Failure> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: the range is our own, and its bytes are nobody's any more.
        let found = unsafe { libc::mmap(self.base, self.bytes, access, flags, -1, 0) };
        if found == libc::MAP_FAILED { Err(Failure::io("cannot unmap a pool")) } else { Ok(()) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; nobody uses it any more.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}

export! {
    /// Maps a file, which is made with `bytes` bytes unless that is 0; the pool's address.
    entresol_pool_open, Java_io_entresol_heap_engine_Jni_poolOpen(path, path_length, bytes) {
        // SAFETY: the caller's promise.
        let path = unsafe { text::path(path, path_length) };
        Ok(Box::into_raw(Box::new(Pool::open(path, bytes as u64)?)) as i64)
    }
}

export! {
    /// Address of offset 0.
    entresol_pool_base, Java_io_entresol_heap_engine_Jni_poolBase(pool) {
        // SAFETY: the caller's promise.
        Ok(unsafe { pool_at(pool) }.base as i64)
    }
}

export! {
    /// Bytes of the pool.
    entresol_pool_bytes, Java_io_entresol_heap_engine_Jni_poolBytes(pool) {
        // SAFETY: the caller's promise.
        Ok(unsafe { pool_at(pool) }.bytes as i64)
    }
}

export! {
    /// Makes a range durable.
    entresol_pool_flush, Java_io_entresol_heap_engine_Jni_poolFlush(pool, offset, length) {
        // SAFETY: the caller's promise.
        unsafe { pool_at(pool) }.flush(offset as usize, length as usize)?;
        Ok(0)
    }
}

export! {
    /// Lets the file go. The memory is zeros from now on, and stays where it is until the pool is
    /// released.
    entresol_pool_close, Java_io_entresol_heap_engine_Jni_poolClose(pool) {
        // SAFETY: the caller's promise.
        unsafe { pool_at(pool) }.close()?;
        Ok(0)
    }
}

export! {
    /// Releases a pool's memory and address.
    entresol_pool_release, Java_io_entresol_heap_engine_Jni_poolRelease(pool) {
        // SAFETY: given out by `entresol_pool_open`, and used for the last time.
        drop(unsafe { Box::from_raw(pool as *mut Pool) });
        Ok(0)
    }
}

/// Has `allocate` find room for so many bytes, in pieces.
fn make_room(
    bytes: u64,
    mut allocate: impl FnMut(libc::off_t, libc::off_t) -> libc::c_int,
) -> std::io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let piece = (bytes - done).min(ROOM_BYTES_MAX);
        match allocate(done as libc::off_t, piece as libc::off_t) {
            0 => done += piece,
            // A signal, which memory of the system lets end the call: this piece once more.
            libc::EINTR => {}
            code => return Err(std::io::Error::from_raw_os_error(code)),
        }
    }
    Ok(())
}

/// # Safety
/// `address` is an open pool's.
unsafe fn pool_at<'a>(address: i64) -> &'a Pool {
    // SAFETY: the caller's promise.
    unsafe { &*(address as *const Pool) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool in memory of the system could not be made while signals came, as a profiler sends
    /// them.
    #[test]
    fn room_that_a_signal_ended_the_search_for_is_asked_for_again() {
        let mut asked = Vec::new();
        let made = make_room(ROOM_BYTES_MAX + 5, |from, length| {
            asked.push((from, length));
            if asked.len() % 2 == 1 { libc::EINTR } else { 0 }
        });
        assert!(made.is_ok());
        let piece = ROOM_BYTES_MAX as libc::off_t;
        assert_eq!(asked, [(0, piece), (0, piece), (piece, 5), (piece, 5)]);
        let refused = make_room(1, |_, _| libc::ENOSPC).map_err(|error| error.raw_os_error());
        assert_eq!(refused, Err(Some(libc::ENOSPC)));
    }
}
