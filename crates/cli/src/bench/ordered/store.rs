//! A store with one ordered table, sized so that the data are many times the memory cap, and the
//! thread that does its merges.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use entresol_device::Preparation;
use entresol_tier::{
    Budget, SessionOptions, SessionUsers, Statistics, StoreOptions, TieredOptions,
};
use entresol_tree::{Tree, TreeOptions, TreeStatistics};
use entresol_workload::{Distribution, KeyLayout, Mix};

use super::counted::Counted;
use super::session::Rows;
use crate::bench::driver::{Job, Shared, Tally, Until, drive};
use crate::bench::setup::{BENCH_FILE, KEY_BYTES, Setup, prepared_file};
use crate::engine::{Engine, now, open_file};
use crate::failure::{Failure, Outcome};
use crate::progress;
use crate::scratch::Scratch;

/// What a row takes in a leaf besides key and value, bytes.
const ENTRY_BYTES: f64 = 6.0;
/// Share of the rows' bytes that pages take besides: headers, records' framing, delta pages.
const PAGES_SHARE: f64 = 1.12;
/// The part of the memory cap that does not grow with the data: write buffers, sessions.
const FIXED_MEMORY: u64 = 32 << 20;
/// Memory of a row: inner nodes, and the store's index.
const INNER_MEMORY: f64 = 2.0;
const INDEX_MEMORY: f64 = 0.7;
/// What filters take over their bits, with room to grow and some that memory asks nothing of.
const FILTER_SHARE: f64 = 1.5;
/// Share of the data that may wait in memory for a merge.
const WAITING_SHARE: f64 = 0.05;
/// Share of the data that the journal of a shard takes, so that memory asks for merges and not the
/// journal. Merges keep it half empty, and it lets go of changes only as a sweep ends: four times
/// what the changes that wait take in it. Tables use the journal of one shard alone.
const JOURNAL_SHARE: f64 = 0.35;
/// What a change takes in memory besides its bytes.
const CHANGE_SHARE: f64 = 4.0 / 3.0;
/// Bytes of a read buffer: a leaf and its framing.
const READ_BUFFER_BYTES: usize = 16 << 10;
/// Segments reclaimed before the tables are asked again.
const BUDGET: Budget = Budget { segments: 4 };

/// Sizes that follow from a setup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizing {
    /// Keys and values of all rows, bytes.
    pub(crate) data: u64,
    /// The memory cap.
    pub(crate) memory: u64,
    /// Of it: changes that wait for a merge, with what the arena adds.
    pub(crate) waiting: u64,
    /// Of it: inner nodes.
    pub(crate) inner: u64,
    /// Of it: the cache.
    pub(crate) cache: u64,
    /// Bytes of the device.
    pub(crate) capacity: u64,
    /// Of it: the journal.
    pub(crate) journal: u64,
    /// Bits of memory for each row's place in a filter.
    filter_bits: u8,
}

impl Sizing {
    pub(crate) fn of(setup: &Setup) -> Sizing {
        let rows = setup.keys as f64;
        let row = KEY_BYTES + setup.sizes.mean();
        let data = (rows * row) as u64;
        let memory = setup.memory.unwrap_or(FIXED_MEMORY + data / 10);
        let wanted = (data as f64 * WAITING_SHARE * CHANGE_SHARE) as u64;
        let growing = memory.saturating_sub(FIXED_MEMORY);
        let waiting = wanted.min(growing * 2 / 3).max(1 << 20);
        let filter = f64::from(setup.absent_filter_bits) / 8.0 * FILTER_SHARE;
        let inner = (rows * (INNER_MEMORY + filter)) as u64 + (1 << 20);
        let index = (rows * INDEX_MEMORY) as u64;
        let rest = growing.saturating_sub(waiting + waiting / 4 + inner + index);
        let cache = rest.max(2 << 20);
        let journal = data as f64 * JOURNAL_SHARE * f64::from(setup.shards);
        let journal = (journal as u64).max(16 << 20) >> 20 << 20;
        let pages = rows * (row + ENTRY_BYTES) * PAGES_SHARE;
        let apart = (20 << 20) + journal;
        let capacity = ((pages / setup.fill) as u64 + apart).max(journal * 6);
        let capacity = setup.capacity.unwrap_or(capacity) >> 20 << 20;
        let filter_bits = setup.absent_filter_bits;
        Sizing { data, memory, waiting, inner, cache, capacity, journal, filter_bits }
    }

    /// How the tables are kept.
    fn tables(&self) -> TreeOptions {
        TreeOptions {
            waiting_bytes_max: self.waiting,
            directory_bytes_max: self.inner,
            absent_filter_bits: self.filter_bits,
            ..TreeOptions::default()
        }
    }
}

/// An ordered table and the store under it.
pub(crate) struct OrderedStore {
    pub(crate) tree: Arc<Tree>,
    pub(crate) engine: Engine,
    layout: KeyLayout,
    /// Keeps the table open: one that nobody has leaves memory.
    rows: Rows,
    merges: Option<Merges>,
    scratch: Vec<Scratch>,
    opening: Opening,
}

/// What an opening took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    /// The store without its tables: segments, index, write buffers.
    pub(crate) store_seconds: f64,
    /// The tables: the journal is read.
    pub(crate) tables_seconds: f64,
    /// What is filled of the journal.
    pub(crate) journal_bytes: u64,
}

impl OrderedStore {
    /// An empty table whose keys have `layout`.
    pub(crate) fn new(setup: &Setup, layout: KeyLayout) -> Outcome<OrderedStore> {
        let scratch = setup.scratch()?;
        let path = scratch.fresh(BENCH_FILE);
        drop(prepared_file(&path, Sizing::of(setup).capacity)?);
        let (buffers, setup) = setup.with_buffers()?;
        let mut store = OrderedStore::open(&setup, &path, layout)?;
        store.scratch = buffers.into_iter().chain([scratch]).collect();
        Ok(store)
    }

    /// The table in the file at `path`, which someone else keeps.
    pub(crate) fn open(setup: &Setup, path: &Path, layout: KeyLayout) -> Outcome<OrderedStore> {
        let sizing = Sizing::of(setup);
        let device = open_file(path, None, Preparation::Allocated)?;
        let options = setup.options(Some(sizing.cache));
        let options = TieredOptions {
            store: StoreOptions { journal_bytes: sizing.journal, ..options.store },
            memory_bytes: sizing.memory,
            ..options
        };
        let tables = sizing.tables();
        let lane = tables.lane;
        let began = Instant::now();
        let engine = Engine::open_reserving(device, options, tables.memory_bytes_max())?;
        let store_seconds = began.elapsed().as_secs_f64();
        let journal_bytes = engine.tiered.store().journal_state(lane)?.bytes;
        let began = Instant::now();
        let tree = Arc::new(Tree::open(Arc::clone(&engine.tiered), tables, now())?);
        let tables_seconds = began.elapsed().as_secs_f64();
        let opening = Opening { store_seconds, tables_seconds, journal_bytes };
        let merges = Some(Merges::start(Arc::clone(&tree))?);
        let rows = Rows::new(&tree, SessionOptions { depth: 1, ..SessionOptions::default() })?;
        Ok(OrderedStore { tree, engine, layout, rows, merges, scratch: Vec::new(), opening })
    }

    pub(crate) fn opening(&self) -> Opening {
        self.opening
    }

    /// The path of a file beside the store's, of which nothing stays behind.
    pub(crate) fn fresh_sibling(&self, name: &str) -> Option<PathBuf> {
        Some(self.scratch.last()?.fresh(name))
    }

    /// A connection with so many operations in flight at most.
    pub(crate) fn connect(&self, in_flight: usize) -> Outcome<Rows> {
        let options = SessionOptions {
            depth: in_flight.clamp(1, 4096),
            read_buffer_bytes: READ_BUFFER_BYTES,
            users: SessionUsers::One,
        };
        Rows::new(&self.tree, options)
    }

    /// Runs `job` on `setup.threads` threads.
    pub(crate) fn drive(&self, setup: &Setup, job: &Job, shared: &Shared) -> Outcome<Tally> {
        let job = Job { layout: self.layout, ..job.clone() };
        let mut sessions = Vec::new();
        for _ in 0..setup.threads {
            sessions.push(self.connect(job.in_flight)?);
        }
        drive(&job, shared, sessions)?.sound()
    }

    /// Puts every row once, in the order of their numbers, with a sign of life.
    pub(crate) fn fill(&self, setup: &Setup, shared: &Shared) -> Outcome<Tally> {
        let spinner = progress::spinner("filling the table");
        let tally = self.drive(setup, &setup.fill_job(0..setup.keys), shared);
        spinner.finish_and_clear();
        tally
    }

    /// Merges what waits, and hands all of it to the device.
    pub(crate) fn settle(&self) -> Outcome<()> {
        let spinner = progress::spinner("merging what waits");
        let settled = self.tree.settle(now()).and_then(|()| self.engine.tiered.sync());
        spinner.finish_and_clear();
        Ok(settled?)
    }

    /// How many of a sample of the rows are not there.
    pub(crate) fn missing(&self, setup: &Setup, shared: &Shared) -> Outcome<u64> {
        const SAMPLE: u64 = 100_000;
        let until = Until::Operations(SAMPLE.min(setup.keys));
        let job = setup.fast_job(Mix::gets(Distribution::Uniform), until);
        Ok(self.drive(setup, &job, shared)?.misses)
    }

    /// What was counted so far.
    pub(crate) fn counted(&self) -> Counted {
        Counted::of(&self.tree_statistics(), &self.statistics())
    }

    pub(crate) fn tree_statistics(&self) -> TreeStatistics {
        self.tree.statistics()
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.engine.tiered.statistics()
    }

    /// Closes it, all merged: the next opening finds nothing to repeat.
    pub(crate) fn close(self) -> Outcome<()> {
        self.settle()?;
        drop(self.merges);
        drop(self.rows);
        drop(self.tree);
        self.engine.close()
    }
}

/// The thread that does merges and reclaim until it is dropped.
struct Merges {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Merges {
    fn start(tree: Arc<Tree>) -> Outcome<Merges> {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let body = move || {
            while !ended.load(Ordering::Relaxed) {
                // A store that cannot be kept is poisoned: who writes is told so.
                if let Some(rest) = tree.maintain(now(), BUDGET).unwrap_or_default().rest() {
                    std::thread::park_timeout(rest);
                }
            }
        };
        let thread = std::thread::Builder::new().name("merges".to_owned()).spawn(body);
        let thread = thread.map_err(|error| Failure::doing("no thread for merges", error))?;
        Ok(Merges { over, thread: Some(thread) })
    }
}

impl Drop for Merges {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It can only have panicked, which was told where it did.
            let _panicked = thread.join();
        }
    }
}
