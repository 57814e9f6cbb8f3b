//! RocksDB through its C interface: values in blob files with blob garbage collection, direct I/O
//! everywhere, one LRU cache for blocks and blobs, bloom filters of ten bits, no compression.
//!
//! The write-ahead log is written and not synced but in the synced phase, where RocksDB groups the
//! commits of concurrent writers itself.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use super::rocksdb_c::*;
use crate::contestant::{
    Blocking, Contestant, Fault, Result, Settings, VisitRow, play_blocking, play_workers,
};
use crate::plan::Phase;
use crate::turn::Turn;

struct RocksDb {
    db: *mut Db,
    read: *mut ReadOptions,
    write: *mut WriteOptions,
    write_synced: *mut WriteOptions,
    threads: usize,
}

// SAFETY: a RocksDB handle may be used by any number of threads at once; the option objects are
// never changed after they were made.
unsafe impl Send for RocksDb {}
// SAFETY: as above.
unsafe impl Sync for RocksDb {}

/// Opens RocksDB in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let path = CString::new(settings.directory.join("rocksdb").as_os_str().as_bytes())?;
    let options = options(settings)?;
    let mut error = ptr::null_mut();
    // SAFETY: all pointers come from RocksDB's own constructors and live as long as the process;
    // `path` outlives the call.
    let rocks = unsafe {
        let write_synced = rocksdb_writeoptions_create();
        rocksdb_writeoptions_set_sync(write_synced, 1);
        RocksDb {
            db: rocksdb_open(options, path.as_ptr(), &mut error),
            read: rocksdb_readoptions_create(),
            write: rocksdb_writeoptions_create(),
            write_synced,
            threads: settings.plan.threads,
        }
    };
    check(error)?;
    Ok(Box::new(rocks))
}

fn options(settings: &Settings) -> Result<*mut Options> {
    let plan = &settings.plan;
    // Of rows in order it has what Entresol has for changes that wait, and half of the memory of
    // Entresol's write buffers as a cache, too; filters and indexes of files come on top.
    let (buffer_bytes, cache_bytes) = match plan.course.is_ordered() {
        false => (plan.memory_bytes / 20, plan.cache_bytes),
        true => (plan.waiting_bytes / 3, plan.cache_bytes + (8 << 20)),
    };
    let (buffer_bytes, cache_bytes) =
        (usize::try_from(buffer_bytes)?, usize::try_from(cache_bytes)?);
    // SAFETY: plain setters on objects made here; the cache and the filter are handed over.
    unsafe {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_increase_parallelism(options, 2);
        rocksdb_options_set_max_background_jobs(options, 2);
        rocksdb_options_set_compression(options, 0);
        rocksdb_options_set_write_buffer_size(options, buffer_bytes);
        rocksdb_options_set_max_write_buffer_number(options, 3);
        rocksdb_options_set_max_open_files(options, -1);
        rocksdb_options_set_use_direct_reads(options, 1);
        rocksdb_options_set_use_direct_io_for_flush_and_compaction(options, 1);
        rocksdb_options_set_enable_blob_files(options, 1);
        rocksdb_options_set_min_blob_size(options, 512);
        if plan.course.is_ordered() {
            // Levels follow from the write buffers, as its own default of 64 and 256 MiB do.
            let level = (plan.waiting_bytes / 3 * 4).max(4 << 20);
            rocksdb_options_set_max_bytes_for_level_base(options, level);
            rocksdb_options_set_target_file_size_base(options, (level / 4).max(1 << 20));
        }
        rocksdb_options_set_blob_file_size(options, (plan.data_bytes() / 32).max(8 << 20));
        rocksdb_options_set_blob_reclaim(options, 1);
        rocksdb_options_set_blob_reclaim_age(options, 0.25);
        rocksdb_options_set_blob_reclaim_share(options, 0.5);
        let cache = rocksdb_cache_create_lru(cache_bytes);
        rocksdb_options_set_blob_cache(options, cache);
        let table = rocksdb_block_based_options_create();
        rocksdb_block_based_options_set_block_cache(table, cache);
        let filter = rocksdb_filterpolicy_create_bloom_full(10.0);
        rocksdb_block_based_options_set_filter_policy(table, filter);
        rocksdb_options_set_block_based_table_factory(options, table);
        Ok(options)
    }
}

impl RocksDb {
    fn property(&self, name: &CStr) -> u64 {
        let mut value = 0;
        // SAFETY: the handle is open and `value` outlives the call.
        unsafe { rocksdb_property_int(self.db, name.as_ptr(), &mut value) };
        value
    }
}

impl Contestant for RocksDb {
    fn workers(&self, phase: Phase) -> usize {
        play_workers(phase, self.threads)
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        play_blocking(self, turns)
    }

    fn flush(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the handle is open; the options are made here and leak, a few bytes a phase.
        unsafe {
            let options = rocksdb_flushoptions_create();
            rocksdb_flushoptions_set_wait(options, 1);
            rocksdb_flush(self.db, options, &mut error);
        }
        check(error)
    }

    fn quiesce(&self) -> Result<()> {
        let busy = [
            c"rocksdb.compaction-pending",
            c"rocksdb.num-running-compactions",
            c"rocksdb.num-running-flushes",
        ];
        for _ in 0..300 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            if busy.iter().all(|name| self.property(name) == 0) {
                break;
            }
        }
        Ok(())
    }
}

impl Blocking for RocksDb {
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the handle is open; the value is read before its slice is destroyed.
        unsafe {
            let pointer = key.as_ptr().cast();
            let slice = rocksdb_get_pinned(self.db, self.read, pointer, key.len(), &mut error);
            check(error)?;
            if slice.is_null() {
                visit(None);
                return Ok(());
            }
            let mut length = 0;
            let value = rocksdb_pinnableslice_value(slice, &mut length);
            visit(Some(std::slice::from_raw_parts(value.cast(), length)));
            rocksdb_pinnableslice_destroy(slice);
        }
        Ok(())
    }

    fn put(&self, entries: &[(&[u8], &[u8])], phase: Phase) -> Result<()> {
        let options = if phase == Phase::Synced { self.write_synced } else { self.write };
        for (key, value) in entries {
            let mut error = ptr::null_mut();
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            // SAFETY: the handle is open; key and value are copied before the call returns.
            unsafe { rocksdb_put(self.db, options, k, key.len(), v, value.len(), &mut error) };
            check(error)?;
        }
        Ok(())
    }

    fn scan(&self, key: &[u8], limit: usize, visit: VisitRow<'_>) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the handle is open; key and value of a row are read before the iterator moves on.
        unsafe {
            let rows = rocksdb_create_iterator(self.db, self.read);
            rocksdb_iter_seek(rows, key.as_ptr().cast(), key.len());
            let mut seen = 0;
            while seen < limit && rocksdb_iter_valid(rows) != 0 {
                let (mut key_bytes, mut value_bytes) = (0, 0);
                let key = rocksdb_iter_key(rows, &mut key_bytes);
                let value = rocksdb_iter_value(rows, &mut value_bytes);
                visit(
                    std::slice::from_raw_parts(key.cast(), key_bytes),
                    std::slice::from_raw_parts(value.cast(), value_bytes),
                );
                rocksdb_iter_next(rows);
                seen += 1;
            }
            rocksdb_iter_get_error(rows, &mut error);
            rocksdb_iter_destroy(rows);
        }
        check(error)
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        let pointer = key.as_ptr().cast();
        // SAFETY: the handle is open; the key is copied before the call returns.
        unsafe { rocksdb_remove(self.db, self.write, pointer, key.len(), &mut error) };
        check(error)
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handle any more.
        unsafe { rocksdb_close(self.db) };
    }
}

fn check(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: RocksDB sets the pointer to a C string that the caller frees.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        rocksdb_free(error.cast());
        text
    };
    Err(Fault::from(text))
}
