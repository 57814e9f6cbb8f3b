//! The few system calls that the standard library lacks, with errors that say what to do next.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::device::WriteMode;
use crate::error::{Error, ErrorKind};

/// Allocates the first `length` bytes of a file, extending it to that size.
pub(crate) fn allocate(descriptor: RawFd, length: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(length).map_err(|_| io::Error::from_raw_os_error(27))?;
    loop {
        // SAFETY: plain system call on a descriptor of the caller's.
        if unsafe { libc::fallocate(descriptor, 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Has the kernel take up to so many entries from the submission ring of an io_uring, and wait for
/// nothing.
///
/// # Safety
/// What the ring's entries point to stays until they are completed.
pub(crate) unsafe fn enter_ring(descriptor: RawFd, entries: u32) -> io::Result<()> {
    let (wait_for, flags, signals, size) = (0u32, 0u32, std::ptr::null::<u8>(), 0usize);
    // SAFETY: no memory of ours is passed; the caller answers for the entries.
    let taken = unsafe {
        libc::syscall(libc::SYS_io_uring_enter, descriptor, entries, wait_for, flags, signals, size)
    };
    if taken < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads until `bytes` is full. Takes up short and interrupted reads where they ended.
pub(crate) fn read_fully(descriptor: RawFd, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        let at = (offset + done as u64) as libc::off_t;
        // SAFETY: `rest` is writable memory of that length for the time of the call.
        let count = unsafe { libc::pread(descriptor, rest.as_mut_ptr().cast(), rest.len(), at) };
        done += transferred(count)?;
    }
    Ok(())
}

/// Reads what is there, at most `bytes.len()`; returns how much that was.
pub(crate) fn read_some(descriptor: RawFd, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let at = offset as libc::off_t;
    // SAFETY: `bytes` is writable memory of that length for the time of the call.
    let count = unsafe { libc::pread(descriptor, bytes.as_mut_ptr().cast(), bytes.len(), at) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Writes all of `bytes`. Takes up short and interrupted writes where they ended.
pub(crate) fn write_fully(descriptor: RawFd, offset: u64, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: `bytes` is readable memory of that length.
    unsafe { write_raw(descriptor, offset, (bytes.as_ptr(), bytes.len()), WriteMode::Flushed) }
}

/// Like [`write_fully`], for memory that others of the process may hold references to.
///
/// # Safety
/// The memory is readable for the time of the call.
pub(crate) unsafe fn write_raw(
    descriptor: RawFd,
    offset: u64,
    (start, length): (*const u8, usize),
    mode: WriteMode,
) -> io::Result<()> {
    let flags = match mode {
        WriteMode::Flushed => 0,
        WriteMode::Durable => libc::RWF_DSYNC,
    };
    let mut done = 0;
    while done < length {
        // SAFETY: within the caller's memory, since `done < length`.
        let from = unsafe { start.add(done) };
        let vector = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: length - done };
        let at = (offset + done as u64) as libc::off_t;
        // SAFETY: one vector, on the stack, of memory that the caller vouches for.
        let count = unsafe { libc::pwritev2(descriptor, &raw const vector, 1, at, flags) };
        done += transferred(count)?;
    }
    Ok(())
}

/// What one transfer did: bytes, 0 if it is to be tried again, or its error.
fn transferred(count: isize) -> io::Result<usize> {
    match count {
        0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        1.. => Ok(count as usize),
        _ => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) }
        }
    }
}

/// Sixteen random bytes.
pub(crate) fn random_bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    // SAFETY: the buffer is as long as said; requests this small are never cut short.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if count == 16 { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}

/// Free bytes for an unprivileged writer on the file system that holds `path`, which may be a file
/// that is not there yet. `None` if the system cannot tell.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let directory = if path.is_dir() { path } else { path.parent()? };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let name = CString::new(directory.as_os_str().as_bytes()).ok()?;
    // SAFETY: a zeroed statvfs is a valid value to be overwritten.
    let mut status: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is a terminated string and `status` outlives the call.
    let failed = unsafe { libc::statvfs(name.as_ptr(), &raw mut status) } != 0;
    // Without a size there is no limit, or nobody knows of one.
    (!failed && status.f_blocks > 0).then(|| status.f_bavail * status.f_frsize)
}

/// What kind of file system an open file is on: a magic of `<linux/magic.h>`.
pub(crate) fn file_system_magic(descriptor: RawFd) -> Option<i64> {
    // SAFETY: a zeroed statfs is a valid value to be overwritten.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `status` outlives the call.
    let failed = unsafe { libc::fstatfs(descriptor, &raw mut status) } != 0;
    (!failed).then_some(status.f_type as i64)
}

/// The error for a file of `wanted` bytes more that could not be allocated, where `free` were free
/// before the attempt: after it, what the attempt took is missing. `advice` is what else may be
/// done than to make room.
pub(crate) fn allocation_error(
    path: &Path,
    wanted: u64,
    free: Option<u64>,
    source: io::Error,
    advice: &str,
) -> Error {
    let path_text = path.display();
    let full = matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG));
    if !full {
        return Error::io(format!("{path_text}: cannot allocate {wanted} bytes"), source);
    }
    let free = free.map_or("unknown".to_owned(), |bytes| bytes.to_string());
    let detail = format!(
        "{path_text}: no room for {wanted} bytes, {free} bytes are free ({source}); make room or \
         {advice}"
    );
    Error::new(ErrorKind::Full, detail)
}

/// The error for a path that could not be opened.
pub(crate) fn open_error(path: &Path, source: io::Error) -> Error {
    let path = path.display();
    match source.kind() {
        io::ErrorKind::NotFound => {
            Error::new(ErrorKind::NotFound, format!("{path}: no such file or device"))
        }
        _ => Error::io(format!("{path}: cannot open"), source),
    }
}
