//! Flash stores as longs: opening and closing, operations begun and their outcomes reaped, jobs,
//! figures. The crate `host` has what they do.
//!
//! A request is a row of words of the caller's (`request.rs`), an outcome a record (`record.rs`).
//! Outcomes at hand are answered by the call that begins the operation; all others are given out by
//! `entresol_store_reap`, which one thread of the caller's calls again and again.

mod options;
mod record;
mod request;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use entresol_host::{BUFFER_DIRECTORY, Figures, Given, HostedStore, Scan, sweep_buffers};
use entresol_tier::SegmentGroup;
use serde_json::{Value, json};

use crate::tables::Folds;
use crate::text;
use crate::text::Failure;
pub(crate) use record::Records;
pub(crate) use request::durability;
use request::{CallerRequest, Row};

/// A store whose outcomes are records.
pub(crate) type Hosted = HostedStore<Records>;

/// A store as a caller's address leads to it.
#[derive(Debug)]
pub(crate) struct OpenStore {
    pub(crate) host: Arc<Hosted>,
    /// Where merges of ordered tables meet the caller's functions.
    pub(crate) folds: Arc<Folds>,
}

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
        let opened = Hosted::open(&options::parse(options)?);
        let host = opened.map_err(|failure| options::refused(&failure))?;
        Ok(Box::into_raw(Box::new(OpenStore { host, folds: Arc::default() })) as i64)
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
            let CallerRequest { request, mut place } = unsafe { CallerRequest::of(words) }?;
            let given = host.begin(&request, &mut |answer| place.take(answer));
            let at_once = given == Given::AtOnce;
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
        let records = host.reap(|records| {
            let words = records.words();
            // SAFETY: the caller's promise: two words fit.
            unsafe {
                (out as *mut u64).write(words.as_ptr() as u64);
                (out as *mut u64).add(1).write(size_of_val(words) as u64);
            }
            records.count()
        })?;
        Ok(records as i64)
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
        let token = token as u64;
        match job {
            SYNC => host.sync(token)?,
            DROP_PARTITION => host.drop_entries(token, space, Some(partition))?,
            DROP_SPACE => host.drop_entries(token, space, None)?,
            other => {
                let sentence = format!("a store has no job {other}; expected 1 to 3");
                return Err(Failure { kind: 2, sentence });
            }
        }
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
        let scan = host.scan(request::place(space as u64).0, wanted);
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
        host.next_page(token as u64, scan, limit as usize, now)?;
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
        Ok(text::leak(0, &figures_json(&host.figures()?)))
    }
}

export! {
    /// Text: segments in about `groups` groups of neighbours, a JSON array of arrays of numbers; 0
    /// while the store waits for its device.
    entresol_store_segments, Java_io_entresol_heap_engine_Jni_storeSegments(store, groups) {
        // SAFETY: the caller's promise.
        let host = unsafe { host_at(store) };
        let found = host.segment_groups(groups.max(1) as usize)?;
        Ok(found.map_or(0, |found| text::leak(0, &segments_json(&found))))
    }
}

export! {
    /// Closes a store: what was begun is finished and can be reaped, everything is synced, and the
    /// next open is fast. The address is still to be released.
    entresol_store_close, Java_io_entresol_heap_engine_Jni_storeClose(store) {
        // SAFETY: the caller's promise.
        let store = unsafe { store_at(store) };
        // What waits may need the caller's functions before it is merged.
        let closed = store.host.close();
        store.folds.close();
        Ok(closed.map(|()| 0)?)
    }
}

export! {
    /// Releases the address of a store, which is closed before if nobody did.
    entresol_store_release, Java_io_entresol_heap_engine_Jni_storeRelease(store) {
        // SAFETY: given out by `entresol_store_open`, and used for the last time.
        let store = unsafe { Box::from_raw(store as *mut OpenStore) };
        // Nobody is left who could fold.
        store.folds.close();
        store.host.close()?;
        Ok(0)
    }
}

export! {
    /// Removes write buffers that outlived their process, of stores that had files in the folder
    /// named and whose files are gone; how many files of buffers.
    entresol_store_sweep, Java_io_entresol_heap_engine_Jni_storeSweep(folder, length) {
        // SAFETY: the caller's promise.
        let folder = unsafe { text::bytes(folder, length) };
        let folder = Path::new(OsStr::from_bytes(folder));
        Ok(sweep_buffers(Path::new(BUFFER_DIRECTORY), folder)? as i64)
    }
}

/// # Safety
/// `address` is that of a store that was not released.
pub(crate) unsafe fn store_at<'a>(address: i64) -> &'a OpenStore {
    // SAFETY: the caller's promise.
    unsafe { &*(address as *const OpenStore) }
}

/// # Safety
/// As of `store_at`.
unsafe fn host_at<'a>(address: i64) -> &'a Arc<Hosted> {
    // SAFETY: the caller's promise.
    &unsafe { store_at(address) }.host
}

/// Figures as a JSON object.
fn figures_json(Figures { statistics, oldest_pending, tree }: &Figures) -> String {
    let of_tables = tree.iter().flat_map(|tree| tree.figures());
    let figures = statistics.figures().into_iter().chain(of_tables);
    let mut fields: Vec<String> =
        figures.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    fields.push(format!("\"write_amplification\":{:.6}", statistics.write_amplification()));
    fields.push(format!("\"poisoned\":{}", statistics.poisoned));
    fields.push(format!("\"capacity_bytes\":{}", statistics.capacity_bytes));
    let oldest = oldest_pending.as_ref().map_or(0, |pending| pending.age.as_secs());
    fields.push(format!("\"oldest_pending_io_seconds\":{oldest}"));
    format!("{{{}}}", fields.join(","))
}

/// Groups of segments as a JSON array.
fn segments_json(groups: &[SegmentGroup]) -> String {
    let numbers = |group: &SegmentGroup| {
        json!([
            group.segments,
            group.free,
            group.damaged,
            group.used_bytes,
            group.live_bytes,
            group.sealed,
            group.age_writes,
        ])
    };
    Value::from_iter(groups.iter().map(numbers)).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use entresol_device::PendingIo;
    use entresol_tier::Statistics;

    use super::*;

    #[test]
    fn figures_are_an_object_that_ends_with_the_age_of_what_the_device_has_not_answered() {
        let statistics = Statistics { capacity_bytes: 1234, ..Statistics::default() };
        let age = Duration::from_millis(45_600);
        let oldest_pending = Some(PendingIo { device: "stuck".to_owned(), age });
        let text = figures_json(&Figures { statistics, oldest_pending, tree: None });
        let end = ",\"capacity_bytes\":1234,\"oldest_pending_io_seconds\":45}";
        assert!(text.starts_with('{') && text.ends_with(end), "{text}");
    }
}
