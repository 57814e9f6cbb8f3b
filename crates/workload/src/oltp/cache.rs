//! A model of the original's look-aside cache: the counters it would report, without any data.
//!
//! Reads ask the map block by block and put missing blocks; writes invalidate, then put. Behind the
//! map stands a log of 512 KiB segments of which up to 32 are in memory at a time; the model
//! follows its pipeline with a writer and a reader that are never late. The log unit is not cached.

use std::collections::VecDeque;
use std::ops::Range;

use super::clock::ClockMap;
use super::request::{Asu, BLOCK_BYTES, Operation, Request};

/// Bytes of a segment of the cache's log.
pub const SEGMENT_BYTES: u64 = 512 << 10;
const SEGMENT_BLOCKS: usize = (SEGMENT_BYTES / BLOCK_BYTES) as usize;
const SEGMENTS_IN_MEMORY_MAX: usize = 32;

/// What the map counted, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounters {
    /// Blocks asked for.
    pub reads: u64,
    /// Of them in the map.
    pub read_hits: u64,
    /// Blocks written over.
    pub invalidations: u64,
    /// Of them in the map.
    pub invalidate_hits: u64,
    /// Blocks put.
    pub insertions: u64,
    /// Blocks that made room.
    pub evictions: u64,
}

/// What the log counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogCounters {
    /// Blocks read from segments in memory.
    pub memory_hits: u64,
    /// Reads from the device, each of one or more blocks.
    pub device_hits: u64,
    /// Times that the log came back to its first segment.
    pub wraps: u64,
    /// Segments given up unwritten, since nothing was put into them.
    pub segments_skipped: u64,
    /// Segments read ahead, since live blocks remain in them.
    pub segment_reads: u64,
    /// Segments written.
    pub segment_writes: u64,
}

/// The cache's map and log.
#[derive(Debug, Clone)]
pub struct CacheModel {
    map: ClockMap,
    log: LogModel,
    counters: CacheCounters,
}

impl CacheCounters {
    /// Read hits of reads; 0 without reads.
    pub fn read_hit_rate(&self) -> f64 {
        ratio(self.read_hits, self.reads)
    }

    /// Invalidate hits of invalidations; 0 without invalidations.
    pub fn invalidate_hit_rate(&self) -> f64 {
        ratio(self.invalidate_hits, self.invalidations)
    }

    /// What was counted since `earlier`. Evictions may be worked out from the others and what is
    /// held, between which an insertion may be under way: they count once it is over.
    pub fn since(&self, earlier: &CacheCounters) -> CacheCounters {
        CacheCounters {
            reads: self.reads - earlier.reads,
            read_hits: self.read_hits - earlier.read_hits,
            invalidations: self.invalidations - earlier.invalidations,
            invalidate_hits: self.invalidate_hits - earlier.invalidate_hits,
            insertions: self.insertions - earlier.insertions,
            evictions: self.evictions.saturating_sub(earlier.evictions),
        }
    }
}

impl LogCounters {
    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &LogCounters) -> LogCounters {
        LogCounters {
            memory_hits: self.memory_hits - earlier.memory_hits,
            device_hits: self.device_hits - earlier.device_hits,
            wraps: self.wraps - earlier.wraps,
            segments_skipped: self.segments_skipped - earlier.segments_skipped,
            segment_reads: self.segment_reads - earlier.segment_reads,
            segment_writes: self.segment_writes - earlier.segment_writes,
        }
    }
}

impl CacheModel {
    /// An empty cache of the whole segments that fit into `bytes`; `None` if not one does.
    pub fn new(bytes: u64) -> Option<CacheModel> {
        let segments = usize::try_from(bytes / SEGMENT_BYTES).ok().filter(|count| *count > 0)?;
        Some(CacheModel {
            map: ClockMap::new(segments * SEGMENT_BLOCKS),
            log: LogModel::new(segments),
            counters: CacheCounters::default(),
        })
    }

    /// Bytes of the whole segments.
    pub fn capacity_bytes(&self) -> u64 {
        self.map.capacity() as u64 * BLOCK_BYTES
    }

    /// Serves `request` as the original does.
    pub fn serve(&mut self, request: &Request) {
        if request.asu == Asu::Log {
            return;
        }
        match request.operation {
            Operation::Read => self.read(request),
            Operation::Write => {
                for block in request.range() {
                    self.counters.invalidations += 1;
                    let hit = self.map.invalidate(key(request.asu, block));
                    self.counters.invalidate_hits += u64::from(hit);
                }
                self.put(request.asu, request.range());
            }
        }
    }

    /// What the map counted so far.
    pub fn counters(&self) -> CacheCounters {
        self.counters
    }

    /// What the log counted so far.
    pub fn log_counters(&self) -> LogCounters {
        self.log.counters
    }

    /// What the log will have counted once it is closed, which writes the segment being filled.
    pub fn closed_log_counters(&self) -> LogCounters {
        let mut counters = self.log.counters;
        counters.segment_writes += u64::from(self.log.is_written);
        counters
    }

    /// Blocks in the cache.
    pub fn occupancy(&self) -> u64 {
        self.map.len() as u64
    }

    fn read(&mut self, request: &Request) {
        let mut hits = Vec::new();
        let mut missing: Vec<Range<u64>> = Vec::new();
        for block in request.range() {
            match self.map.get(key(request.asu, block)) {
                Some(slot) => hits.push(slot),
                None => match missing.last_mut() {
                    Some(run) if run.end == block => run.end += 1,
                    _ => missing.push(block..block + 1),
                },
            }
        }
        self.counters.reads += request.blocks;
        self.counters.read_hits += hits.len() as u64;
        self.log.get(&hits);
        for run in missing {
            self.put(request.asu, run);
        }
    }

    fn put(&mut self, asu: Asu, blocks: Range<u64>) {
        for block in blocks {
            self.counters.insertions += 1;
            let (slot, evicted) = self.map.insert(key(asu, block));
            self.counters.evictions += u64::from(evicted.is_some());
            self.log.put(slot);
        }
    }
}

/// The segments in memory. The front one is being filled; the others wait for their turn.
#[derive(Debug, Clone)]
struct LogModel {
    segments: usize,
    in_memory: VecDeque<usize>,
    /// The segment that goes to memory next.
    next: usize,
    has_wrapped: bool,
    is_written: bool,
    counters: LogCounters,
}

impl LogModel {
    fn new(segments: usize) -> LogModel {
        let held = segments.min(SEGMENTS_IN_MEMORY_MAX);
        LogModel {
            segments,
            in_memory: (0..held).collect(),
            next: held % segments,
            has_wrapped: false,
            is_written: false,
            counters: LogCounters::default(),
        }
    }

    fn put(&mut self, slot: usize) {
        let segment = slot / SEGMENT_BLOCKS;
        while self.in_memory.front() != Some(&segment) {
            self.advance();
        }
        self.is_written = true;
    }

    /// Counts reads of slots; those of consecutive slots on the device are one read.
    fn get(&mut self, slots: &[usize]) {
        let mut previous = None;
        for &slot in slots {
            if self.in_memory.contains(&(slot / SEGMENT_BLOCKS)) {
                self.counters.memory_hits += 1;
                previous = None;
            } else {
                self.counters.device_hits += u64::from(previous.is_none_or(|p| p + 1 != slot));
                previous = Some(slot);
            }
        }
    }

    /// Writes the segment being filled, and brings the next one to memory in its place.
    fn advance(&mut self) {
        if std::mem::take(&mut self.is_written) {
            self.counters.segment_writes += 1;
        } else {
            self.counters.segments_skipped += 1;
        }
        if self.next == 0 {
            self.counters.wraps += 1;
            self.has_wrapped = true;
        }
        self.counters.segment_reads += u64::from(self.has_wrapped);
        self.in_memory.pop_front();
        self.in_memory.push_back(self.next);
        self.next = (self.next + 1) % self.segments;
    }
}

fn key(asu: Asu, block: u64) -> u64 {
    asu.number() << 32 | block
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = SEGMENT_BLOCKS as u64;

    fn read(cache: &mut CacheModel, blocks: Range<u64>) {
        for position in blocks.step_by(16) {
            let (asu, operation) = (Asu::Data, Operation::Read);
            cache.serve(&Request { asu, operation, blocks: 16, stream: 2, position, due: 0 });
        }
    }

    #[test]
    fn a_segment_whose_blocks_are_all_spared_is_skipped_unwritten() {
        let mut cache = CacheModel::new(3 * SEGMENT_BYTES).unwrap();
        read(&mut cache, 0..3 * SEGMENT);
        read(&mut cache, SEGMENT..2 * SEGMENT);
        read(&mut cache, 3 * SEGMENT..4 * SEGMENT + 16);
        let expected = LogCounters {
            memory_hits: SEGMENT,
            device_hits: 0,
            wraps: 2,
            segments_skipped: 1,
            segment_reads: 5,
            segment_writes: 4,
        };
        assert_eq!(cache.log_counters(), expected);
        assert_eq!(cache.closed_log_counters().segment_writes, 5);
    }

    #[test]
    fn hits_in_segments_that_are_not_in_memory_are_one_read_for_each_run_of_slots() {
        let mut cache = CacheModel::new(40 * SEGMENT_BYTES).unwrap();
        read(&mut cache, 0..40 * SEGMENT);
        // Segment 39 is being filled; 0 to 30 were read ahead.
        read(&mut cache, 35 * SEGMENT..35 * SEGMENT + 16);
        read(&mut cache, 0..16);
        let log = cache.log_counters();
        assert_eq!((log.device_hits, log.memory_hits), (1, 16));
        assert_eq!(cache.counters().read_hits, 32);
    }
}
