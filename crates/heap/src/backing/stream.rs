//! Stores that go past the processor's caches to persistent memory, and the fence that waits.
//!
//! If the instruction set has no such stores, plain stores are followed by a write-back of each
//! line. Machines with neither do not get a [`super::Unit::Word`] backing.
#![expect(unsafe_code, reason = "instructions that have no safe form")]

/// Whether this machine can say that stores are durable.
pub(crate) const fn is_supported() -> bool {
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

/// Stores `bytes` at `at`, 8 bytes at a time, so that they are durable after [`fence`].
///
/// # Safety
/// `at` is valid for writes of `bytes.len()` bytes and, as `bytes.len()`, a multiple of 8.
pub(crate) unsafe fn store(at: *mut u8, bytes: &[u8]) {
    debug_assert!(bytes.len().is_multiple_of(8) && at.addr().is_multiple_of(8));
    #[cfg(target_arch = "x86_64")]
    for index in 0..bytes.len() / 8 {
        // SAFETY: inside the range the caller vouches for, aligned to 8, and inside `bytes`.
        unsafe {
            let word = bytes.as_ptr().cast::<i64>().add(index).read_unaligned();
            std::arch::x86_64::_mm_stream_si64(at.cast::<i64>().add(index), word);
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: the range the caller vouches for; `bytes` is Rust's own memory. The write-back
        // of a line that is mapped has no other effect.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
            let mut line = at.addr() & !63;
            while line < at.addr() + bytes.len() {
                std::arch::asm!("dc cvac, {line}", line = in(reg) line, options(nostack));
                line += 64;
            }
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: the range the caller vouches for.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
    }
}

/// Waits until what was stored is durable.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier.
    unsafe {
        std::arch::asm!("dsb sy", options(nostack));
    }
}
