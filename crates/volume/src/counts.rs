//! The counts of a volume, in blocks and requests, as Open CAS presents them.

/// Counts of one volume since the cache was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Read requests that found every block in the cache.
    pub read_hits: u64,
    /// Read requests that found some of their blocks.
    pub read_partial_misses: u64,
    /// Read requests that found none.
    pub read_full_misses: u64,
    /// Write requests all of whose blocks were cached.
    pub write_hits: u64,
    /// Write requests some of whose blocks were cached.
    pub write_partial_misses: u64,
    /// Write requests none of whose blocks was cached.
    pub write_full_misses: u64,
    /// Reads that went around the cache.
    pub pass_through_reads: u64,
    /// Writes that went around the cache.
    pub pass_through_writes: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Trim requests and requests for zeros.
    pub trims: u64,
    /// Prefetch requests.
    pub prefetches: u64,
    /// Blocks read by clients, around the cache excepted.
    pub blocks_read: u64,
    /// … of them found in the cache.
    pub blocks_read_hit: u64,
    /// Blocks written by clients, around the cache excepted: each invalidates what was cached.
    pub blocks_written: u64,
    /// … of them that were cached.
    pub blocks_written_hit: u64,
    /// Blocks put into the cache.
    pub insertions: u64,
    /// Blocks of clients' reads, all of them.
    pub blocks_to_clients: u64,
    /// Blocks of clients' writes, all of them.
    pub blocks_from_clients: u64,
    /// Read requests to the backing.
    pub backing_reads: u64,
    /// Write requests to the backing.
    pub backing_writes: u64,
    /// Flushes of the backing.
    pub backing_flushes: u64,
    /// Blocks read from the backing.
    pub blocks_from_backing: u64,
    /// Blocks written to the backing.
    pub blocks_to_backing: u64,
    /// Reads that another request's read of the same blocks answered.
    pub coalesced: u64,
    /// Blocks written back.
    pub cleaned_blocks: u64,
    /// Blocks that were looked for in the cache one by one, to let go of them or to check them.
    pub blocks_sought: u64,
    /// Reads of the cache that failed.
    pub cache_read_errors: u64,
    /// Writes to the cache that failed.
    pub cache_write_errors: u64,
    /// Reads of the backing that failed.
    pub backing_read_errors: u64,
    /// Writes to the backing that failed, flushes included.
    pub backing_write_errors: u64,
}

/// How much of a request was in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    All,
    Some,
    None,
}

impl Found {
    pub(crate) fn of(hits: u64, blocks: u64) -> Found {
        match hits {
            0 => Found::None,
            hits if hits == blocks => Found::All,
            _ => Found::Some,
        }
    }
}

impl Counts {
    pub(crate) fn count_read(&mut self, hits: u64, blocks: u64) {
        self.blocks_read += blocks;
        self.blocks_read_hit += hits;
        self.blocks_to_clients += blocks;
        match Found::of(hits, blocks) {
            Found::All => self.read_hits += 1,
            Found::Some => self.read_partial_misses += 1,
            Found::None => self.read_full_misses += 1,
        }
    }

    pub(crate) fn count_write(&mut self, hits: u64, blocks: u64) {
        self.blocks_written += blocks;
        self.blocks_written_hit += hits;
        self.blocks_from_clients += blocks;
        match Found::of(hits, blocks) {
            Found::All => self.write_hits += 1,
            Found::Some => self.write_partial_misses += 1,
            Found::None => self.write_full_misses += 1,
        }
    }
}
