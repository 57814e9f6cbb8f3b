//! The few system calls that the standard library lacks, with errors that say what to do next.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

/// Free bytes for an unprivileged writer on the file system that holds `path`.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let directory = if path.is_dir() { path } else { path.parent()? };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let name = CString::new(directory.as_os_str().as_bytes()).ok()?;
    // SAFETY: a zeroed statvfs is a valid value to be overwritten.
    let mut status: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is a terminated string and `status` outlives the call.
    let failed = unsafe { libc::statvfs(name.as_ptr(), &raw mut status) } != 0;
    (!failed).then(|| status.f_bavail * status.f_frsize)
}

/// The error for a file of `wanted` bytes that could not be allocated.
pub(crate) fn allocation_error(path: &Path, wanted: u64, source: io::Error) -> Error {
    let path_text = path.display();
    let full = matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG));
    if !full {
        return Error::io(format!("{path_text}: cannot allocate {wanted} bytes"), source);
    }
    let free = free_bytes(path).map_or("unknown".to_owned(), |bytes| bytes.to_string());
    let detail = format!(
        "{path_text}: no room for {wanted} bytes, {free} bytes are free ({source}); make room or \
         ask for a smaller capacity"
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
