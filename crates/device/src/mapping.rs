//! Mapped memory: the one place that maps and unmaps.
//!
//! Invariants:
//! 1. A [`Mapping`] starts at a page boundary and is unmapped once, when its last owner is gone.
//! 2. It hands out raw pointers only. The types above (`IoBuffer`, `WriteBuffer`, `Table`) decide
//!    who may touch which byte, and each states its rule.
#![expect(unsafe_code, reason = "memory that the kernel transfers to has to be mapped by hand")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::error::{Error, ErrorKind, Result};

/// A range of mapped memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is process-wide memory without thread affinity, and this type only gives out
// raw pointers; the types that dereference them keep the aliasing rules.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` allows no access to the memory by itself.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed private memory of `length` bytes, populated on first touch. With `MAP_NORESERVE`, so
    /// that address space far larger than RAM can be set aside.
    pub(crate) fn anonymous(length: usize) -> Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Mapping::map(length, flags, libc::PROT_READ | libc::PROT_WRITE, -1)
    }

    /// Address space of `length` bytes without memory: nothing counts, even where the system counts
    /// what is mapped and not touched, until [`Mapping::open`].
    pub(crate) fn reserved(length: usize) -> Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Mapping::map(length, flags, libc::PROT_NONE, -1)
    }

    /// The first `length` bytes of `file`, shared with it.
    pub(crate) fn shared(file: &File, length: usize) -> Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        Mapping::map(length, libc::MAP_SHARED, access, file.as_raw_fd())
    }

    fn map(
        length: usize,
        flags: libc::c_int,
        access: libc::c_int,
        descriptor: libc::c_int,
    ) -> Result<Mapping> {
        if length == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "cannot map 0 bytes of memory"));
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice cannot overlap live memory.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, descriptor, 0) };
        if start == libc::MAP_FAILED {
            let source = io::Error::last_os_error();
            return Err(Error::io(format!("cannot map {length} bytes of memory"), source));
        }
        let start = NonNull::new(start.cast::<u8>())
            .expect("mmap without MAP_FIXED never succeeds at address zero");
        Ok(Mapping { start, length })
    }

    /// Where the memory starts.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes mapped.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Makes memory, zeroed, of `length` reserved bytes from `offset` on; both in whole pages.
    pub(crate) fn open(&self, offset: usize, length: usize) -> io::Result<()> {
        assert!(offset + length <= self.length, "opened past the mapping");
        // SAFETY: the range lies within this live mapping, and gets more access than it had.
        let failed = unsafe {
            let from = self.start.as_ptr().add(offset);
            libc::mprotect(from.cast(), length, libc::PROT_READ | libc::PROT_WRITE) != 0
        };
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Advises the kernel about `length` bytes from `offset`; both in whole pages.
    pub(crate) fn advise(&self, offset: usize, length: usize, advice: i32) -> io::Result<()> {
        assert!(offset + length <= self.length, "advice reaches past the mapping");
        if length == 0 {
            return Ok(());
        }
        // SAFETY: the range lies within this live mapping.
        let failed = unsafe {
            let from = self.start.as_ptr().add(offset);
            libc::madvise(from.cast(), length, advice) != 0
        };
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the only owner of the range, and no pointer into it outlives the owners.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The system's page size, bytes.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: sysconf has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}
