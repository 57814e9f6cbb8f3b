//! The part of RocksDB's C interface (`rocksdb/c.h`, 7.8) that the comparison uses.

use std::ffi::{c_char, c_double, c_int, c_uchar};

macro_rules! opaque {
    ($($name:ident),*) => { $(
        #[repr(C)]
        pub(super) struct $name {
            _private: [u8; 0],
        }
    )* };
}

opaque!(
    Db,
    Options,
    TableOptions,
    Cache,
    FilterPolicy,
    ReadOptions,
    WriteOptions,
    FlushOptions,
    Iterator,
    PinnableSlice
);

#[link(name = "rocksdb")]
unsafe extern "C" {
    pub(super) fn rocksdb_options_create() -> *mut Options;
    pub(super) fn rocksdb_options_set_create_if_missing(o: *mut Options, on: c_uchar);
    pub(super) fn rocksdb_options_increase_parallelism(o: *mut Options, threads: c_int);
    pub(super) fn rocksdb_options_set_max_background_jobs(o: *mut Options, jobs: c_int);
    pub(super) fn rocksdb_options_set_compression(o: *mut Options, kind: c_int);
    pub(super) fn rocksdb_options_set_write_buffer_size(o: *mut Options, bytes: usize);
    pub(super) fn rocksdb_options_set_max_write_buffer_number(o: *mut Options, count: c_int);
    pub(super) fn rocksdb_options_set_max_open_files(o: *mut Options, count: c_int);
    pub(super) fn rocksdb_options_set_use_direct_reads(o: *mut Options, on: c_uchar);
    pub(super) fn rocksdb_options_set_use_direct_io_for_flush_and_compaction(
        o: *mut Options,
        on: c_uchar,
    );
    pub(super) fn rocksdb_options_set_enable_blob_files(o: *mut Options, on: c_uchar);
    pub(super) fn rocksdb_options_set_min_blob_size(o: *mut Options, bytes: u64);
    pub(super) fn rocksdb_options_set_blob_file_size(o: *mut Options, bytes: u64);
    #[link_name = "rocksdb_options_set_enable_blob_gc"]
    pub(super) fn rocksdb_options_set_blob_reclaim(o: *mut Options, on: c_uchar);
    #[link_name = "rocksdb_options_set_blob_gc_age_cutoff"]
    pub(super) fn rocksdb_options_set_blob_reclaim_age(o: *mut Options, share: c_double);
    #[link_name = "rocksdb_options_set_blob_gc_force_threshold"]
    pub(super) fn rocksdb_options_set_blob_reclaim_share(o: *mut Options, share: c_double);
    pub(super) fn rocksdb_options_set_blob_cache(o: *mut Options, cache: *mut Cache);
    pub(super) fn rocksdb_options_set_block_based_table_factory(
        o: *mut Options,
        table: *mut TableOptions,
    );
    pub(super) fn rocksdb_block_based_options_create() -> *mut TableOptions;
    pub(super) fn rocksdb_block_based_options_set_block_cache(
        t: *mut TableOptions,
        cache: *mut Cache,
    );
    pub(super) fn rocksdb_block_based_options_set_filter_policy(
        t: *mut TableOptions,
        policy: *mut FilterPolicy,
    );
    pub(super) fn rocksdb_cache_create_lru(bytes: usize) -> *mut Cache;
    pub(super) fn rocksdb_filterpolicy_create_bloom_full(bits: c_double) -> *mut FilterPolicy;
    pub(super) fn rocksdb_readoptions_create() -> *mut ReadOptions;
    pub(super) fn rocksdb_writeoptions_create() -> *mut WriteOptions;
    pub(super) fn rocksdb_writeoptions_set_sync(w: *mut WriteOptions, on: c_uchar);
    pub(super) fn rocksdb_flushoptions_create() -> *mut FlushOptions;
    pub(super) fn rocksdb_flushoptions_set_wait(f: *mut FlushOptions, on: c_uchar);
    pub(super) fn rocksdb_open(
        o: *const Options,
        path: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut Db;
    pub(super) fn rocksdb_put(
        db: *mut Db,
        w: *const WriteOptions,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
        error: *mut *mut c_char,
    );
    pub(super) fn rocksdb_options_set_max_bytes_for_level_base(o: *mut Options, bytes: u64);
    pub(super) fn rocksdb_options_set_target_file_size_base(o: *mut Options, bytes: u64);
    #[link_name = "rocksdb_delete"]
    pub(super) fn rocksdb_remove(
        db: *mut Db,
        w: *const WriteOptions,
        key: *const c_char,
        key_bytes: usize,
        error: *mut *mut c_char,
    );
    pub(super) fn rocksdb_create_iterator(db: *mut Db, r: *const ReadOptions) -> *mut Iterator;
    pub(super) fn rocksdb_iter_seek(i: *mut Iterator, key: *const c_char, key_bytes: usize);
    pub(super) fn rocksdb_iter_valid(i: *const Iterator) -> c_uchar;
    pub(super) fn rocksdb_iter_next(i: *mut Iterator);
    pub(super) fn rocksdb_iter_key(i: *const Iterator, bytes: *mut usize) -> *const c_char;
    pub(super) fn rocksdb_iter_value(i: *const Iterator, bytes: *mut usize) -> *const c_char;
    pub(super) fn rocksdb_iter_get_error(i: *const Iterator, error: *mut *mut c_char);
    pub(super) fn rocksdb_iter_destroy(i: *mut Iterator);
    pub(super) fn rocksdb_get_pinned(
        db: *mut Db,
        r: *const ReadOptions,
        key: *const c_char,
        key_bytes: usize,
        error: *mut *mut c_char,
    ) -> *mut PinnableSlice;
    pub(super) fn rocksdb_pinnableslice_value(
        slice: *const PinnableSlice,
        bytes: *mut usize,
    ) -> *const c_char;
    pub(super) fn rocksdb_pinnableslice_destroy(slice: *mut PinnableSlice);
    pub(super) fn rocksdb_flush(db: *mut Db, f: *const FlushOptions, error: *mut *mut c_char);
    pub(super) fn rocksdb_property_int(db: *mut Db, name: *const c_char, out: *mut u64) -> c_int;
    pub(super) fn rocksdb_close(db: *mut Db);
    pub(super) fn rocksdb_free(memory: *mut std::ffi::c_void);
}
