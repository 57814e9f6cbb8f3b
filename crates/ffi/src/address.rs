//! What the address of a heap leads to.

use entresol_heap::Heap;

/// # Safety
/// `address` is an open heap's.
pub(crate) unsafe fn heap_at<'a>(address: i64) -> &'a Heap {
    // SAFETY: the caller's promise.
    unsafe { &*(address as *const Heap) }
}
