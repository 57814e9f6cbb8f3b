//! Native memory for callers, and Java's direct buffers over memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;

use crate::text::Failure;

/// Place of `NewDirectByteBuffer` in the table of Java's native interface, which is fixed by its
/// specification.
const NEW_DIRECT_BYTE_BUFFER: usize = 229;

export! {
    /// `bytes` zeroed bytes, aligned to 64; their address, 0 if there are none.
    entresol_buffer_allocate, Java_io_entresol_heap_engine_Jni_bufferAllocate(bytes) {
        let layout = layout(bytes)?;
        // SAFETY: the layout is not empty.
        Ok(unsafe { alloc_zeroed(layout) } as i64)
    }
}

export! {
    /// Frees what `entresol_buffer_allocate` gave for the same number of bytes.
    entresol_buffer_free, Java_io_entresol_heap_engine_Jni_bufferFree(address, bytes) {
        let layout = layout(bytes)?;
        if address != 0 {
            // SAFETY: allocated with the same layout; the caller has no further use of it.
            unsafe { dealloc(address as *mut u8, layout) };
        }
        Ok(0)
    }
}

/// A direct buffer over `bytes` bytes from `address`.
///
/// # Safety
/// `environment` is what Java passes, and the memory outlives the buffer.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_io_entresol_heap_engine_Jni_buffer(
    environment: *mut *const *const c_void,
    _class: *mut c_void,
    address: i64,
    bytes: i64,
) -> *mut c_void {
    type NewDirectByteBuffer =
        unsafe extern "system" fn(*mut *const *const c_void, *mut c_void, i64) -> *mut c_void;
    // SAFETY: the environment points to the interface's table, whose entry this is.
    let entry = unsafe { *(*environment).add(NEW_DIRECT_BYTE_BUFFER) };
    // SAFETY: the entry is a function of this type by the interface's specification.
    let create = unsafe { std::mem::transmute::<*const c_void, NewDirectByteBuffer>(entry) };
    // SAFETY: called in the thread that the environment belongs to.
    unsafe { create(environment, address as *mut c_void, bytes) }
}

fn layout(bytes: i64) -> Result<Layout, Failure> {
    let size = usize::try_from(bytes).ok().filter(|&size| size > 0);
    size.and_then(|size| Layout::from_size_align(size, 64).ok())
        .ok_or_else(|| Failure { kind: 2, sentence: format!("a buffer of {bytes} bytes") })
}
