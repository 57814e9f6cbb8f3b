//! The working memory: address space for the largest size of a heap, with the heap's bytes in it.
//!
//! Invariants:
//! 1. Offset `o` of the heap is at `base + o` as long as the heap is open.
//! 2. Stores into it never reach the file.
//! 3. It is only touched through raw pointers and copies; no reference to its bytes is ever made.
//!    Threads that touch the same bytes at the same time see some mixture of them: order among
//!    transactions is the program's business.
//! 4. Only memory of our own is unmapped at the end. A failed mapping may leave a hole in place of
//!    the memory that it was to replace, and any thread may get that hole for its own use. So a
//!    reservation that may have a hole is never given back.
#![expect(unsafe_code, reason = "memory that is mapped and addressed by hand")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Reserved address space and what is mapped into it. Callers keep to ranges that they provided or
/// mapped; each method asserts that its range lies inside the reservation.
#[derive(Debug)]
pub struct Memory {
    base: *mut u8,
    length: u64,
    /// Whether some of it may have become another's.
    holed: AtomicBool,
}

// SAFETY: process-wide memory without thread affinity, touched only by copies (invariant 3).
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// What large pages of memory have on the machines that this is for.
const LARGE_PAGE_BYTES: u64 = 2 << 20;

/// How a file is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Stores stay in memory.
    Private,
    /// Stores reach the file, some time.
    Shared,
    /// Stores reach the file once they were flushed from the processor's caches.
    Synchronous,
}

impl Memory {
    /// Reserves `length` bytes of address space, without memory.
    pub(crate) fn reserve(length: u64) -> Result<Memory> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), length as usize, libc::PROT_NONE, flags, -1, 0)
        };
        if base == libc::MAP_FAILED {
            let what = format!("cannot reserve {length} bytes of address space");
            return Err(Error::io(what, io::Error::last_os_error()));
        }
        Ok(Memory { base: base.cast(), length, holed: AtomicBool::new(false) })
    }

    /// Where offset 0 is.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Zeroed memory of its own at `offset`, whole pages; what was there is gone.
    pub fn provide(&self, offset: u64, length: u64) -> Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        self.place((offset, length), (libc::PROT_READ | libc::PROT_WRITE, flags), None)
    }

    /// As [`Memory::provide`], for the part of the range that large pages fit into, and in them if
    /// the system has any; the rest stays as it is.
    pub(crate) fn provide_large(&self, offset: u64, length: u64) -> Result<()> {
        let base = self.base as u64;
        let start = (base + offset).next_multiple_of(LARGE_PAGE_BYTES) - base;
        let end = ((base + offset + length) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES).max(base) - base;
        if end <= start {
            return Ok(());
        }
        self.provide(start, end - start)?;
        let at = self.at(start, end - start);
        // SAFETY: the range is our own, and advice changes no bytes. Without large pages it is
        // refused, and small ones do.
        let _advised =
            unsafe { libc::madvise(at.cast(), (end - start) as usize, libc::MADV_HUGEPAGE) };
        Ok(())
    }

    /// The bytes of `file` at `offset`, at the same offset here. What was there stays if the file
    /// cannot be mapped so.
    pub(crate) fn map(&self, file: &File, offset: u64, length: u64, share: Share) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let flags = match share {
            Share::Private => libc::MAP_PRIVATE | libc::MAP_NORESERVE,
            Share::Shared => libc::MAP_SHARED,
            Share::Synchronous => libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC,
        };
        // A file system refuses only after what was there is gone: so first where nothing is.
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (descriptor, from) = (file.as_raw_fd(), offset as libc::off_t);
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let tried = unsafe {
            libc::mmap(std::ptr::null_mut(), length as usize, access, flags, descriptor, from)
        };
        check(tried, offset, length)?;
        // SAFETY: mapped above, and nothing knows of it.
        unsafe { libc::munmap(tried, length as usize) };
        self.place((offset, length), (access, flags), Some(file))
    }

    /// Zeroed memory in place of everything: files are let go, and who still looks or stores here
    /// does no harm.
    pub(crate) fn blank(&self) -> Result<()> {
        self.provide(0, self.length)
    }

    /// Gives memory back; the range must not be touched any more.
    pub(crate) fn withdraw(&self, offset: u64, length: u64) -> Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        self.place((offset, length), (libc::PROT_NONE, flags), None)
    }

    /// Maps over what is there.
    fn place(
        &self,
        (offset, length): (u64, u64),
        (access, flags): (i32, i32),
        file: Option<&File>,
    ) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let at = self.at(offset, length);
        let (descriptor, from) = match file {
            Some(file) => (file.as_raw_fd(), offset as libc::off_t),
            None => (-1, 0),
        };
        let flags = flags | libc::MAP_FIXED;
        // SAFETY: the range lies inside our own reservation, so nothing else is replaced.
        let found =
            unsafe { libc::mmap(at.cast(), length as usize, access, flags, descriptor, from) };
        let placed = check(found, offset, length);
        self.holed.fetch_or(placed.is_err(), Ordering::Relaxed);
        placed
    }

    /// Copies bytes out.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) {
        let at = self.at(offset, out.len() as u64);
        // SAFETY: the range is inside the reservation (asserted) and mapped (the caller's rule);
        // `out` is Rust's own memory, so the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(at, out.as_mut_ptr(), out.len()) };
    }

    /// Copies bytes out, to the end of `out`.
    pub(crate) fn append_to(&self, offset: u64, length: u64, out: &mut Vec<u8>) {
        let at = self.at(offset, length);
        let length = length as usize;
        out.reserve(length);
        // SAFETY: as for `read`; room for `length` bytes behind the end was reserved, and they are
        // all written before the length says so.
        unsafe {
            std::ptr::copy_nonoverlapping(at, out.as_mut_ptr().add(out.len()), length);
            out.set_len(out.len() + length);
        }
    }

    /// Copies bytes in.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        let at = self.at(offset, bytes.len() as u64);
        // SAFETY: as for `read`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
    }

    /// Stores zeros.
    pub(crate) fn fill_zeros(&self, offset: u64, length: u64) {
        let at = self.at(offset, length);
        // SAFETY: as for `read`.
        unsafe { std::ptr::write_bytes(at, 0, length as usize) };
    }

    /// How many of the `length` bytes at `offset` are zeros before the first other one. Both
    /// multiples of 8.
    pub(crate) fn leading_zeros(&self, offset: u64, length: u64) -> u64 {
        let at = self.at(offset, length).cast::<u64>().cast_const();
        assert!(offset.is_multiple_of(8), "words are aligned");
        let words = (length / 8) as usize;
        // SAFETY: as for `read`; aligned because the reservation is.
        let found = (0..words).find(|index| unsafe { at.add(*index).read_volatile() } != 0);
        found.unwrap_or(words) as u64 * 8
    }

    /// The word at `offset`, in one piece where it is aligned.
    pub(crate) fn load(&self, offset: u64) -> u64 {
        let at = self.at(offset, 8);
        if offset.is_multiple_of(8) {
            // SAFETY: as for `read`; aligned, and only touched atomically or by copies.
            return u64::from_le(unsafe { AtomicU64::from_ptr(at.cast()) }.load(Ordering::Acquire));
        }
        // SAFETY: as for `read`.
        u64::from_le(unsafe { at.cast::<u64>().read_unaligned() })
    }

    /// Stores the word at `offset`, in one piece where it is aligned.
    pub(crate) fn store(&self, offset: u64, value: u64) {
        let at = self.at(offset, 8);
        if offset.is_multiple_of(8) {
            // SAFETY: as for `load`.
            unsafe { AtomicU64::from_ptr(at.cast()) }.store(value.to_le(), Ordering::Release);
            return;
        }
        // SAFETY: as for `read`.
        unsafe { at.cast::<u64>().write_unaligned(value.to_le()) };
    }

    pub(crate) fn at(&self, offset: u64, length: u64) -> *mut u8 {
        let end = offset.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.length), "{length} bytes at {offset} are inside");
        // SAFETY: the end lies inside the reservation.
        unsafe { self.base.add(offset as usize) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if *self.holed.get_mut() {
            return;
        }
        // SAFETY: this is the only owner of the range, and there is no hole in it.
        unsafe { libc::munmap(self.base.cast(), self.length as usize) };
    }
}

fn check(found: *mut libc::c_void, offset: u64, length: u64) -> Result<()> {
    if found == libc::MAP_FAILED {
        let what = format!("cannot map {length} bytes at offset {offset}");
        return Err(Error::io(what, io::Error::last_os_error()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_mapped_leaves_no_hole_for_others_memory() {
        let path = std::env::temp_dir().join(format!("entresol-hole-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(8192).unwrap();
        let memory = Memory::reserve(8192).unwrap();
        // Of byte-persistent memory it succeeds; what matters is that something is there.
        let mapped = memory.map(&file, 0, 8192, Share::Synchronous);
        let base = memory.base();
        // SAFETY: asks whether there is a mapping; changes nothing.
        let asked = unsafe { libc::msync(base.cast(), 8192, libc::MS_ASYNC) };
        assert_eq!(asked, 0, "{}, after {mapped:?}", io::Error::last_os_error());
    }
}
