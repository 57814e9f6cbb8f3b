//! Flash stores: opening and closing, operations begun and their outcomes reaped, work in the
//! background, figures.
//!
//! A request is a row of words of the caller's (`request.rs`), an outcome a record (`record.rs`).
//! Outcomes at hand are answered by the call that begins the operation; all others are given out by
//! `entresol_store_reap`, which one thread of the caller's calls again and again.

mod bell;
mod buffers;
mod host;
mod jobs;
mod options;
mod record;
mod request;
mod roster;
mod waiters;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::text;
use crate::text::Failure;
use host::Host;
use jobs::{Job, Scan, Task};
use options::BUFFER_DIRECTORY;
use request::{CallerRequest, Row};

/// Words of one request.
const REQUEST_WORDS: usize = request::WORDS;
/// Jobs of `entresol_store_begin`.
const SYNC: i64 = 1;
const DROP_PARTITION: i64 = 2;
const DROP_SPACE: i64 = 3;

export! {
    /// Opens a store, or makes it, as lines of `name=value` say; its address.
    entresol_store_open, Java_io_entresol_heap_engine_Jni_storeOpen(options, length) {
        // SAFETY: the caller's promise.
        let options = unsafe { text::bytes(options, length) };
        let host = Host::open(&options::parse(options)?)?;
        Ok(Box::into_raw(Box::new(host)) as i64)
    }
}

export! {
    /// Begins `count` requests; how many were answered at once. The first word of each is 1 if it
    /// was, with a record at its place for outcomes, else 0.
    entresol_store_submit, Java_io_entresol_heap_engine_Jni_storeSubmit(store, requests, count) {
        // SAFETY: the caller's promise.
        let host = unsafe { host_at(store) };
        let mut answered = 0;
        for index in 0..count as usize {
            // SAFETY: the caller's promise: so many requests are there.
            let row = unsafe { (requests as *mut u64).add(index * REQUEST_WORDS) };
            // SAFETY: as above; the row is this call's alone.
            let words: &mut Row = unsafe { &mut *row.cast() };
            // SAFETY: the caller's promise, for the key, the value and the place for outcomes.
            let mut request = unsafe { CallerRequest::of(words) }?;
            let at_once = host.begin(&mut request);
            words[0] = u64::from(at_once);
            answered += i64::from(at_once);
        }
        Ok(answered)
    }
}

export! {
    /// Waits for outcomes. The address of their records goes to `out`, the bytes of all to the next
    /// word; they stay until the next call. How many there are; 0 once the store is closed and all
    /// were given out. For one thread at a time.
    entresol_store_reap, Java_io_entresol_heap_engine_Jni_storeReap(store, out) {
        // SAFETY: the caller's promise.
        let host = unsafe { host_at(store) };
        let batch = host.reap()?;
        // SAFETY: the caller's promise: two words fit.
        unsafe {
            (out as *mut u64).write(batch.address);
            (out as *mut u64).add(1).write(batch.bytes);
        }
        Ok(batch.records)
    }
}

export! {
    /// Begins a job: 1 a sync, 2 dropping a partition (argument: space and partition), 3 dropping a
    /// space. Its outcome is reaped, unless it is refused here.
    entresol_store_begin,
    Java_io_entresol_heap_engine_Jni_storeBegin(store, token, job, argument) {
        // SAFETY: the caller's promise.
        let host = unsafe { host_at(store) };
        let (space, partition) = request::place(argument as u64);
        let task = match job {
            SYNC => Task::Sync,
            DROP_PARTITION => Task::Drop(space, Some(partition)),
            DROP_SPACE => Task::Drop(space, None),
            other => {
                let sentence = format!("a store has no job {other}; expected 1 to 3");
                return Err(Failure { kind: 2, sentence });
            }
        };
        host.enqueue(Job { token: token as u64, task })?;
        Ok(0)
    }
}

export! {
    /// A scan of the entries of those partitions of `space` that `count` 16-bit numbers at
    /// `partitions` name; of all if `count` is below 0. Its address.
    entresol_scan_open,
    Java_io_entresol_heap_engine_Jni_scanOpen(store, space, partitions, count, keys_only) {
        // SAFETY: the caller's promise.
        let host = unsafe { host_at(store) };
        let wanted = usize::try_from(count).ok().map(|count| {
            let first = partitions as *const u16;
            // SAFETY: the caller's promise: so many numbers are there.
            (0..count).map(|index| unsafe { first.add(index).read_unaligned() }).collect()
        });
        let scan = Scan::new(host.scan_step(), request::place(space as u64).0, wanted);
        let scan = if keys_only == 0 { scan } else { scan.of_keys() };
        Ok(Box::into_raw(Box::new(Arc::new(scan))) as i64)
    }
}

export! {
    /// Begins reading the next entries, about `limit`; as of `now` (0: the system's clock). Their
    /// records are reaped, then one that ends the page, unless it is refused here. One page at a
    /// time.
    entresol_scan_next, Java_io_entresol_heap_engine_Jni_scanNext(store, scan, token, limit, now) {
        // SAFETY: the caller's promise.
        let (host, scan) = unsafe { (host_at(store), &*(scan as *const Arc<Scan>)) };
        let now = host.now(now);
        let task = Task::Scan { scan: Arc::clone(scan), limit: limit as usize, now };
        host.enqueue(Job { token: token as u64, task })?;
        Ok(0)
    }
}

export! {
    /// Releases a scan; a page that is under way still comes.
    entresol_scan_close, Java_io_entresol_heap_engine_Jni_scanClose(scan) {
        // SAFETY: given out by `entresol_scan_open`, and used for the last time.
        drop(unsafe { Box::from_raw(scan as *mut Arc<Scan>) });
        Ok(0)
    }
}

export! {
    /// Entries of a space, or of a partition of it if `whole` is 0; expired ones that nobody has
    /// found yet included. Reads nothing.
    entresol_store_count, Java_io_entresol_heap_engine_Jni_storeCount(store, place, whole) {
        // SAFETY: the caller's promise.
        let host = unsafe { host_at(store) };
        let (space, partition) = request::place(place as u64);
        Ok(host.count(space, (whole == 0).then_some(partition))? as i64)
    }
}

export! {
    /// Text: figures since the store was opened, as a JSON object.
    entresol_store_statistics, Java_io_entresol_heap_engine_Jni_storeStatistics(store) {
        // SAFETY: the caller's promise.
        let host = unsafe { host_at(store) };
        Ok(text::leak(0, &host.statistics()?))
    }
}

export! {
    /// Closes a store: what was begun is finished and can be reaped, everything is synced, and the
    /// next open is fast. The address is still to be released.
    entresol_store_close, Java_io_entresol_heap_engine_Jni_storeClose(store) {
        // SAFETY: the caller's promise.
        unsafe { host_at(store) }.close()?;
        Ok(0)
    }
}

export! {
    /// Releases the address of a store, which is closed before if nobody did.
    entresol_store_release, Java_io_entresol_heap_engine_Jni_storeRelease(store) {
        // SAFETY: given out by `entresol_store_open`, and used for the last time.
        let host = unsafe { Box::from_raw(store as *mut Arc<Host>) };
        host.close()?;
        Ok(0)
    }
}

export! {
    /// Removes write buffers that outlived their process, of stores that had files in the folder
    /// named and whose files are gone; how many files of buffers.
    entresol_store_sweep, Java_io_entresol_heap_engine_Jni_storeSweep(folder, length) {
        // SAFETY: the caller's promise.
        let folder = unsafe { text::bytes(folder, length) };
        buffers::sweep(Path::new(BUFFER_DIRECTORY), Path::new(OsStr::from_bytes(folder)))
    }
}

/// # Safety
/// `address` is that of a store that was not released.
unsafe fn host_at<'a>(address: i64) -> &'a Arc<Host> {
    // SAFETY: the caller's promise.
    unsafe { &*(address as *const Arc<Host>) }
}
