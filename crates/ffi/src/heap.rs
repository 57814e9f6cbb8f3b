//! Heaps: opening and closing, what they hold, and single operations in a transaction of their own.

use std::sync::Arc;

use entresol_heap::{
    Access, Aes256Gcm, Cipher, CreateOptions, Heap, Medium, OpenOptions, ReadGuard,
};

use crate::address::heap_at;
use crate::dirty;
use crate::text;
use crate::transaction::{alone, durability, finish};

/// Bytes of a label.
const LABEL_BYTES: i64 = 16;
/// Bytes of a key.
const KEY_BYTES: i64 = 32;
/// Flag of `entresol_heap_open`: for reading only.
const READ_ONLY: i64 = 1;
/// Flag of `entresol_heap_open`: whatever the label.
const ANY_LABEL: i64 = 2;

export! {
    /// Creates a heap of `bytes` that may grow to `limit`, encrypted unless `key` is 0; its
    /// address.
    entresol_heap_create, Java_io_entresol_heap_engine_Jni_heapCreate(
        path, path_length, bytes, limit, label, level, argument, medium, key
    ) {
        // SAFETY: the caller's promise.
        let path = unsafe { text::path(path, path_length) };
        let options = CreateOptions {
            bytes: bytes as u64,
            limit_bytes: limit as u64,
            // SAFETY: the caller's promise.
            label: unsafe { label_at(label) },
            durability: durability(level, argument).unwrap_or_default(),
            medium: medium_of(medium),
            // SAFETY: the caller's promise.
            cipher: unsafe { cipher_at(key) },
            ..CreateOptions::default()
        };
        Ok(give(Heap::create(path, &options)?))
    }
}

export! {
    /// Opens a heap; its address.
    entresol_heap_open, Java_io_entresol_heap_engine_Jni_heapOpen(
        path, path_length, label, flags, level, argument, medium, key
    ) {
        // SAFETY: the caller's promise.
        let path = unsafe { text::path(path, path_length) };
        let access = if flags & READ_ONLY != 0 { Access::ReadOnly } else { Access::ReadWrite };
        // SAFETY: the caller's promise.
        let label = (flags & ANY_LABEL == 0).then(|| unsafe { label_at(label) });
        let options = OpenOptions {
            label,
            access,
            durability: durability(level, argument).unwrap_or_default(),
            medium: medium_of(medium),
            // SAFETY: the caller's promise.
            cipher: unsafe { cipher_at(key) },
        };
        Ok(give(Heap::open(path, &options)?))
    }
}

export! {
    /// Closes a heap. Threads that still use it get failures; its memory is zeros from now on, and
    /// stays where it is until the heap is released.
    entresol_heap_close, Java_io_entresol_heap_engine_Jni_heapClose(heap) {
        // SAFETY: the caller's promise.
        unsafe { heap_at(heap) }.close_under_users()?;
        Ok(0)
    }
}

export! {
    /// Releases the address of a heap, and its memory with the last of its transactions, guards,
    /// maps and views; closes it before, if nobody did.
    entresol_heap_release, Java_io_entresol_heap_engine_Jni_heapRelease(heap) {
        // SAFETY: given out by `give`, and used for the last time.
        drop(unsafe { Box::from_raw(heap as *mut Heap) });
        Ok(0)
    }
}

export! {
    /// Makes everything committed durable.
    entresol_heap_sync, Java_io_entresol_heap_engine_Jni_heapSync(heap) {
        // SAFETY: the caller's promise.
        unsafe { heap_at(heap) }.sync()?;
        Ok(0)
    }
}

export! {
    /// Address of offset 0; the same until the heap is closed.
    entresol_heap_base, Java_io_entresol_heap_engine_Jni_heapBase(heap) {
        // SAFETY: the caller's promise.
        Ok(unsafe { heap_at(heap) }.base() as i64)
    }
}

export! {
    /// Bytes that handles lie below now.
    entresol_heap_bytes, Java_io_entresol_heap_engine_Jni_heapBytes(heap) {
        // SAFETY: the caller's promise.
        Ok(unsafe { heap_at(heap) }.size_bytes() as i64)
    }
}

export! {
    /// Bytes that the heap may grow to.
    entresol_heap_limit, Java_io_entresol_heap_engine_Jni_heapLimit(heap) {
        // SAFETY: the caller's promise.
        Ok(unsafe { heap_at(heap) }.limit_bytes() as i64)
    }
}

export! {
    /// The lowest handle there can be; only bytes from here on may be touched.
    entresol_heap_first, Java_io_entresol_heap_engine_Jni_heapFirst(heap) {
        // SAFETY: the caller's promise.
        Ok(unsafe { heap_at(heap) }.data_offset() as i64)
    }
}

export! {
    /// The root.
    entresol_heap_root, Java_io_entresol_heap_engine_Jni_heapRoot(heap) {
        // SAFETY: the caller's promise.
        Ok(unsafe { heap_at(heap) }.root() as i64)
    }
}

export! {
    /// Sets the root.
    entresol_heap_set_root, Java_io_entresol_heap_engine_Jni_heapSetRoot(heap, root) {
        // SAFETY: the caller's promise.
        let heap = unsafe { heap_at(heap) };
        alone(heap, 0, |transaction| Ok(transaction.set_root(root as u64)?))?;
        Ok(0)
    }
}

export! {
    /// Lets the heap have `bytes` bytes.
    entresol_heap_grow, Java_io_entresol_heap_engine_Jni_heapGrow(heap, bytes) {
        // SAFETY: the caller's promise.
        unsafe { heap_at(heap) }.grow(bytes as u64)?;
        Ok(0)
    }
}

export! {
    /// Gives free room at the end back to the file system; the bytes left.
    entresol_heap_shrink, Java_io_entresol_heap_engine_Jni_heapShrink(heap) {
        // SAFETY: the caller's promise.
        Ok(unsafe { heap_at(heap) }.shrink(0)? as i64)
    }
}

export! {
    /// Allocates; `header`, unless 0, goes to the first 8 bytes. The handle.
    entresol_heap_allocate,
    Java_io_entresol_heap_engine_Jni_heapAllocate(heap, bytes, header, level) {
        // SAFETY: the caller's promise.
        let heap = unsafe { heap_at(heap) };
        let mut transaction = heap.begin();
        let handle = transaction.allocate(bytes as u64)?;
        if header != 0 {
            transaction.write_u64(handle, header as u64)?;
        }
        finish(transaction, level)?;
        Ok(handle as i64)
    }
}

export! {
    /// Frees an allocation.
    entresol_heap_free, Java_io_entresol_heap_engine_Jni_heapFree(heap, handle, level) {
        // SAFETY: the caller's promise.
        let heap = unsafe { heap_at(heap) };
        alone(heap, level, |transaction| Ok(transaction.free(handle as u64)?))?;
        Ok(0)
    }
}

export! {
    /// 1 if `handle` is a live allocation's, else 0.
    entresol_heap_is_live, Java_io_entresol_heap_engine_Jni_heapIsLive(heap, handle) {
        // SAFETY: the caller's promise.
        Ok(i64::from(unsafe { heap_at(heap) }.is_live(handle as u64)))
    }
}

export! {
    /// Bytes of a live allocation; 0 of any other handle.
    entresol_heap_usable, Java_io_entresol_heap_engine_Jni_heapUsable(heap, handle) {
        // SAFETY: the caller's promise.
        Ok(unsafe { heap_at(heap) }.usable_bytes(handle as u64).unwrap_or(0) as i64)
    }
}

export! {
    /// 1 if allocations of `bytes` have a size class of their own now, else 0.
    entresol_heap_register, Java_io_entresol_heap_engine_Jni_heapRegister(heap, bytes) {
        // SAFETY: the caller's promise.
        Ok(i64::from(unsafe { heap_at(heap) }.register_size(bytes as u64)?))
    }
}

export! {
    /// Makes a range, with its current bytes, as durable as a commit at that level.
    entresol_heap_persist,
    Java_io_entresol_heap_engine_Jni_heapPersist(heap, offset, length, level) {
        // SAFETY: the caller's promise.
        let heap = unsafe { heap_at(heap) };
        alone(heap, level, |commit| Ok(commit.log(offset as u64, length as u64)?))?;
        Ok(0)
    }
}

export! {
    /// Makes all stores durable, those included that nobody logged.
    entresol_heap_persist_dirty, Java_io_entresol_heap_engine_Jni_heapPersistDirty(heap) {
        // SAFETY: the caller's promise.
        dirty::persist(unsafe { heap_at(heap) })?;
        Ok(0)
    }
}

export! {
    /// Puts up to `count` figures (u64) to `out`, in the order of `entresol.h`; how many there are.
    entresol_heap_statistics, Java_io_entresol_heap_engine_Jni_heapStatistics(heap, out, count) {
        // SAFETY: the caller's promise.
        let found = unsafe { heap_at(heap) }.statistics();
        let figures = [
            found.size_bytes,
            found.limit_bytes,
            found.live,
            found.live_bytes,
            found.free_page_bytes,
            found.free_slot_bytes,
            found.largest_free_bytes,
            found.log_bytes,
            found.log_pending_bytes,
            found.commits,
            found.records,
            found.record_bytes,
            found.checkpoints,
            found.syncs,
            found.written_bytes,
            found.lines,
        ];
        for (index, figure) in figures.iter().enumerate().take(count as usize) {
            // SAFETY: the caller's promise: `count` figures fit.
            unsafe { (out as *mut u64).add(index).write(*figure) };
        }
        Ok(figures.len() as i64)
    }
}

export! {
    /// Text: what the medium holds, and when.
    entresol_heap_durability, Java_io_entresol_heap_engine_Jni_heapDurability(heap) {
        // SAFETY: the caller's promise.
        let report = unsafe { heap_at(heap) }.durability();
        Ok(text::leak(0, &report.to_string()))
    }
}

export! {
    /// Text: what is wrong with the heap; 0 if nothing is.
    entresol_heap_check, Java_io_entresol_heap_engine_Jni_heapCheck(heap) {
        // SAFETY: the caller's promise.
        let report = unsafe { heap_at(heap) }.check()?;
        Ok(if report.problems.is_empty() { 0 } else { text::leak(0, &report.problems.join("\n")) })
    }
}

export! {
    /// Copies what is committed to a new file.
    entresol_heap_backup, Java_io_entresol_heap_engine_Jni_heapBackup(heap, path, path_length) {
        // SAFETY: the caller's promise.
        let (heap, path) = unsafe { (heap_at(heap), text::path(path, path_length)) };
        heap.backup(path)?;
        Ok(0)
    }
}

export! {
    /// Keeps freed blocks from being used again; the guard's address.
    entresol_heap_guard, Java_io_entresol_heap_engine_Jni_heapGuard(heap) {
        // SAFETY: the caller's promise.
        let guard: ReadGuard = unsafe { heap_at(heap) }.guard();
        Ok(Box::into_raw(Box::new(guard)) as i64)
    }
}

export! {
    /// Releases a guard.
    entresol_guard_release, Java_io_entresol_heap_engine_Jni_guardRelease(guard) {
        // SAFETY: given out by `entresol_heap_guard`, and used for the last time.
        drop(unsafe { Box::from_raw(guard as *mut ReadGuard) });
        Ok(0)
    }
}

fn give(heap: Heap) -> i64 {
    Box::into_raw(Box::new(heap)) as i64
}

/// # Safety
/// The bytes of a label are at `address`.
unsafe fn label_at(address: i64) -> [u8; LABEL_BYTES as usize] {
    let mut label = [0; LABEL_BYTES as usize];
    // SAFETY: the caller's promise.
    label.copy_from_slice(unsafe { text::bytes(address, LABEL_BYTES) });
    label
}

/// # Safety
/// The bytes of a key are at `address`, or it is 0.
unsafe fn cipher_at(address: i64) -> Option<Arc<dyn Cipher>> {
    if address == 0 {
        return None;
    }
    let mut key = [0; KEY_BYTES as usize];
    // SAFETY: the caller's promise.
    key.copy_from_slice(unsafe { text::bytes(address, KEY_BYTES) });
    Some(Arc::new(Aes256Gcm::new(key)))
}

fn medium_of(medium: i64) -> Medium {
    match medium {
        1 => Medium::Pages,
        2 => Medium::Bytes,
        _ => Medium::Auto,
    }
}
