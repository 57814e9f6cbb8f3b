//! One lock's part of the memory cache.
//!
//! Invariants:
//! 1. A live entry is in a chunk of exactly one queue and in the index; a dead one is in neither.
//! 2. `bytes()` is at most the capacity whenever the lock is free, unless a resize is under way or
//!    the capacity is too small for a single chunk, when the shard holds nothing but its empty
//!    index.
//! 3. One chunk is kept back for entries that move: an eviction needs no room it does not have.
//! 4. Chunks that are given back leave those that stay as low in the arena as they were: huge pages
//!    are given back whole, but for the last ones.

use std::collections::VecDeque;

use entresol_device::ArenaPiece;
use entresol_flash::Result;
use entresol_flash::index::{Candidates, Index, Place, SizeCode};

use super::chunk::{CHUNKS_MIN, Chunk, ChunkMemory, QueueName, SCALE_MAX};
use super::entry::{self, ALIGNMENT, State, Stored};
use super::ghost::Ghosts;
use super::thinning::Thinning;
use super::{Cached, MemoryStatistics};

#[derive(Debug)]
pub(super) struct Shard {
    capacity: usize,
    /// The capacity that chunks and ghosts were sized for.
    made_for: usize,
    /// Whether a resize is giving memory back, a few entries at a time.
    shrinking: bool,
    chunk_bytes: usize,
    memory: ChunkMemory,
    /// By chunk number.
    chunks: Vec<Chunk>,
    /// Numbers of chunks with memory and in no queue.
    free: Vec<usize>,
    /// Numbers without memory.
    vacant: Vec<usize>,
    small: Queue,
    main: Queue,
    index: Index,
    found: Candidates,
    ghosts: Ghosts,
    thinning: Thinning,
    /// A running mean of the bytes of new entries.
    usual_bytes: usize,
    statistics: MemoryStatistics,
}

#[derive(Debug, Default)]
struct Queue {
    /// Numbers of chunks, oldest first; entries are appended to the last.
    chunks: VecDeque<usize>,
    /// Where the oldest entry is in the first chunk.
    tail: usize,
    entries: u64,
}

/// Why an entry is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Write,
    Get,
    ReadAhead,
}

/// What became of the entry at a tail.
enum Passed {
    /// It is gone, or was already, or there was none.
    Freed,
    /// It moved to the head of a queue.
    Moved,
}

/// Bytes of capacity for each fingerprint remembered: as many as there are entries of this size.
const BYTES_A_GHOST: usize = 512;
/// Index memory that is not worth a rebuild.
const INDEX_BYTES_SPARE: usize = 16 << 10;
/// Share of the chunks that is the small queue's.
const SMALL_SHARE: usize = 10;
/// Chunks that inserts leave for entries that move.
const SPARE_CHUNKS: usize = 1;
/// Entries that a step of a resize, or a put meanwhile, passes: what others wait for at most.
const PASSES_A_STEP: usize = 256;
const PASSES_A_PUT: usize = 8;
/// Hits in the small queue that make an entry one of the main queue.
const PROMOTION_HITS: u8 = 1;

impl Shard {
    /// An empty one that takes its chunks from `memory` for shards of this capacity.
    pub(super) fn new(capacity: u64, memory: ChunkMemory) -> Result<Shard> {
        let capacity = capacity as usize;
        Ok(Shard {
            capacity,
            made_for: capacity,
            shrinking: false,
            chunk_bytes: memory.arena.piece_bytes(),
            memory,
            chunks: Vec::new(),
            free: Vec::new(),
            vacant: Vec::new(),
            small: Queue::default(),
            main: Queue::default(),
            index: Index::new(ADDRESS_BITS, buckets_max(capacity))?,
            found: Candidates::default(),
            ghosts: Ghosts::new(capacity / BYTES_A_GHOST),
            thinning: Thinning::default(),
            usual_bytes: 0,
            statistics: MemoryStatistics::default(),
        })
    }

    #[inline]
    pub(super) fn get(
        &mut self,
        hash: u128,
        key: (u16, &[u8]),
        visit: &mut dyn FnMut(Cached<'_>),
    ) -> bool {
        let Some(address) = self.locate(hash, key) else { return false };
        entry::hit(self.stored_mut(address));
        visit(self.stored(address).item());
        true
    }

    pub(super) fn prefetch(&self, hash: u128) {
        self.index.prefetch(index_hash(hash));
    }

    pub(super) fn prefetch_entry(&mut self, hash: u128) -> bool {
        let bytes = self.usual_bytes.clamp(PREFETCH_BYTES_MIN, PREFETCH_BYTES_MAX);
        self.index.candidates(index_hash(hash), &mut self.found);
        for place in self.found.iter() {
            let (chunk, at) = self.split(place.address as usize);
            if let Some(memory) = &self.chunks[chunk].memory {
                memory.prefetch(at, bytes);
            }
        }
        !self.found.is_empty()
    }

    pub(super) fn holds(&self, hash: u128, key: (u16, &[u8])) -> bool {
        self.locate(hash, key).is_some()
    }

    /// Puts `item` in place of what is there, unless that is of a later version.
    pub(super) fn put(&mut self, hash: u128, item: &Cached<'_>) {
        self.put_into(hash, item, Cause::Write);
    }

    /// The same of what a get found on flash. One that is new here may be left out the first time.
    pub(super) fn put_found(&mut self, hash: u128, item: &Cached<'_>) {
        self.put_into(hash, item, Cause::Get);
    }

    /// Puts an entry in that nobody has asked for yet. It may have to wait longer for its first get
    /// than the small queue keeps entries.
    pub(super) fn put_ahead(&mut self, hash: u128, item: &Cached<'_>) {
        self.put_into(hash, item, Cause::ReadAhead);
    }

    fn put_into(&mut self, hash: u128, item: &Cached<'_>, cause: Cause) {
        let bytes = entry::stored_bytes(item);
        let mut state = State { frequency: 0, newcomer: cause == Cause::Get };
        let mut queue = None;
        if let Some(address) = self.locate(hash, (item.space, item.key)) {
            let old = self.stored(address);
            if old.version() > item.version {
                return;
            }
            state = old.state();
            if old.bytes() == bytes {
                entry::write(self.stored_mut(address), hash, item, state);
                self.statistics.inserts += 1;
                return;
            }
            queue = Some(self.chunks[self.chunk_of(address)].queue);
            self.bury(hash, address);
        } else if cause == Cause::ReadAhead {
            state.frequency = entry::UNASKED;
        }
        if bytes > self.entry_bytes_max() {
            return;
        }
        let Some(queue) = queue.or_else(|| self.queue_of_new(hash, cause)) else { return };
        self.make_room(queue, bytes);
        if let Some(address) = self.claim(queue, bytes, SPARE_CHUNKS) {
            let usual = self.usual_bytes * (USUAL_OVER - 1);
            self.usual_bytes = (usual + bytes).div_ceil(USUAL_OVER);
            entry::write(self.stored_mut(address), hash, item, state);
            self.index.insert(index_hash(hash), place(address));
            self.queue(queue).entries += 1;
            self.statistics.inserts += 1;
        }
        self.keep_cap(if self.shrinking { PASSES_A_PUT } else { usize::MAX });
    }

    /// Where an entry begins that is not here; `None`: nowhere, this time.
    fn queue_of_new(&mut self, hash: u128, cause: Cause) -> Option<QueueName> {
        if cause == Cause::ReadAhead {
            return Some(QueueName::Main);
        }
        if self.ghosts.recall(hash, self.index.len()) {
            self.statistics.ghost_hits += 1;
            return Some(QueueName::Main);
        }
        // Not while there is room, or the main queue has yet to fill: it takes from the small one.
        let is_full = self.chunks_available() <= SPARE_CHUNKS + 1
            && self.small.chunks.len() <= self.small_chunks_max() + 1;
        if cause == Cause::Get && is_full && !self.thinning.takes() {
            self.ghosts.remember(hash);
            return None;
        }
        Some(QueueName::Small)
    }

    pub(super) fn remove(&mut self, hash: u128, key: (u16, &[u8])) {
        if let Some(address) = self.locate(hash, key) {
            self.bury(hash, address);
        }
    }

    pub(super) fn clear(&mut self, space: u16) {
        let mut found = Vec::new();
        self.each_live(|stored, address| {
            if stored.space() == space {
                found.push((stored.hash(), address));
            }
        });
        found.into_iter().for_each(|(hash, address)| self.bury(hash, address));
    }

    /// `fresh_memory` is for shards of the new capacity, for one that starts afresh.
    pub(super) fn resize(
        &mut self,
        capacity: u64,
        fresh_memory: &mut dyn FnMut() -> Result<ChunkMemory>,
    ) {
        let scale = self.made_for / SCALE_MAX..=self.made_for.saturating_mul(SCALE_MAX);
        if !scale.contains(&(capacity as usize)) {
            // Without address space for another the old one stays, within the new cap.
            if let Ok(fresh) = fresh_memory().and_then(|memory| Shard::new(capacity, memory)) {
                let statistics = self.statistics;
                *self = Shard { statistics, ..fresh };
                return;
            }
        }
        self.capacity = capacity as usize;
        self.shrinking = true;
    }

    /// Does a part of what a resize asks for; whether more is left.
    pub(super) fn shrink_step(&mut self) -> bool {
        if !self.shrinking || !self.keep_cap(PASSES_A_STEP) {
            return self.shrinking;
        }
        self.shrinking = false;
        if self.index.bytes() > INDEX_BYTES_SPARE as u64 + 40 * self.index.len() {
            self.rebuild_index();
        }
        false
    }

    pub(super) fn bytes(&self) -> u64 {
        ((self.chunks.len() - self.vacant.len()) * self.chunk_bytes + self.overhead()) as u64
    }

    #[cfg(test)]
    pub(super) fn arena_bytes(&self) -> usize {
        let pieces = self.chunks.iter().filter_map(|chunk| chunk.memory.as_ref());
        pieces.map(|piece| (piece.number() + 1) * self.chunk_bytes).max().unwrap_or(0)
    }

    pub(super) fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics { entries: self.index.len(), bytes: self.bytes(), ..self.statistics }
    }

    /// It writes nothing: processors would take what one of them wrote from each other.
    #[inline]
    fn locate(&self, hash: u128, (space, key): (u16, &[u8])) -> Option<usize> {
        let is_it = |place: Place| self.stored(place.address as usize).is(hash, space, key);
        self.index.find(index_hash(hash), is_it).map(|place| place.address as usize)
    }

    #[inline]
    fn stored(&self, address: usize) -> Stored<'_> {
        let (chunk, at) = self.split(address);
        Stored(&self.chunks[chunk].bytes()[at..])
    }

    #[inline]
    fn stored_mut(&mut self, address: usize) -> &mut [u8] {
        let (chunk, at) = self.split(address);
        &mut self.chunks[chunk].bytes_mut()[at..]
    }

    fn chunk_of(&self, address: usize) -> usize {
        self.split(address).0
    }

    /// The chunk of an address and the offset in it, bytes. Chunks are powers of two.
    #[inline]
    fn split(&self, address: usize) -> (usize, usize) {
        let at = address * ALIGNMENT;
        (at >> self.chunk_bytes.trailing_zeros(), at & (self.chunk_bytes - 1))
    }

    /// Takes a live entry out of the index and marks its bytes.
    fn bury(&mut self, hash: u128, address: usize) {
        let known = self.index.remove(index_hash(hash), address as u64);
        debug_assert!(known, "a live entry is in the index");
        entry::bury(self.stored_mut(address));
        let queue = self.chunks[self.chunk_of(address)].queue;
        self.queue(queue).entries -= 1;
    }

    fn queue(&mut self, name: QueueName) -> &mut Queue {
        match name {
            QueueName::Small => &mut self.small,
            QueueName::Main => &mut self.main,
        }
    }

    /// Longest entry that is cached: a quarter of the small queue, half a chunk.
    fn entry_bytes_max(&self) -> usize {
        let small = self.chunks_max() * self.chunk_bytes / SMALL_SHARE;
        (small / 4).min(self.chunk_bytes / 2)
    }

    fn overhead(&self) -> usize {
        self.memory.rounding
            + self.index.bytes() as usize
            + self.ghosts.bytes()
            + (self.chunks.capacity() + CHUNKS_MIN) * size_of::<Chunk>()
    }

    fn chunks_max(&self) -> usize {
        self.capacity.saturating_sub(self.overhead()) / self.chunk_bytes
    }

    fn small_chunks_max(&self) -> usize {
        (self.chunks_max() / SMALL_SHARE).max(1)
    }

    /// Chunks that could be put into a queue now.
    fn chunks_available(&self) -> usize {
        let held = self.chunks.len() - self.vacant.len();
        (self.chunks_max() + self.free.len()).saturating_sub(held)
    }

    /// Evicts so that `bytes` can be appended to `queue`, and a little ahead, so that no insert has
    /// to evict a whole chunk.
    fn make_room(&mut self, queue: QueueName, bytes: usize) {
        if self.shrinking {
            // What finds no room now is not cached.
            return;
        }
        let mut allowance = bytes * 4;
        while self.chunks_available() <= SPARE_CHUNKS && !self.is_unused() {
            let needed = !self.has_room(queue, bytes);
            if !needed && allowance == 0 {
                break;
            }
            let passed = self.pass_tail();
            let step = if matches!(passed, Passed::Freed) { bytes } else { bytes / 2 };
            allowance = allowance.saturating_sub(step.max(ALIGNMENT));
        }
    }

    fn has_room(&mut self, queue: QueueName, bytes: usize) -> bool {
        let head = self.queue(queue).chunks.back().copied();
        head.is_some_and(|number| self.chunks[number].used + bytes <= self.chunk_bytes)
    }

    fn is_unused(&self) -> bool {
        self.small.chunks.is_empty() && self.main.chunks.is_empty()
    }

    /// Room for `bytes` at the head of `queue`, leaving `spare` chunks; the address.
    fn claim(&mut self, queue: QueueName, bytes: usize, spare: usize) -> Option<usize> {
        if !self.has_room(queue, bytes) {
            if self.chunks_available() <= spare {
                return None;
            }
            let number = self.free.pop().or_else(|| self.add_chunk())?;
            self.chunks[number].used = 0;
            self.chunks[number].queue = queue;
            self.queue(queue).chunks.push_back(number);
        }
        let number = *self.queue(queue).chunks.back()?;
        let at = self.chunks[number].used;
        self.chunks[number].used += bytes;
        Some((number * self.chunk_bytes + at) / ALIGNMENT)
    }

    /// A chunk with fresh memory; none if the arena has no more: that only makes the cache smaller.
    fn add_chunk(&mut self) -> Option<usize> {
        let memory = self.memory.arena.take()?;
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() - 1
        });
        self.chunks[number].memory = Some(memory);
        Some(number)
    }

    /// Gives memory back, passing at most `passes` entries for it; whether the cap is kept.
    fn keep_cap(&mut self, passes: usize) -> bool {
        let mut left = passes;
        while self.chunks.len() - self.vacant.len() > self.chunks_max() {
            if let Some(number) = self.free.pop() {
                self.vacate(number);
            } else if self.is_unused() {
                return true;
            } else if left == 0 {
                return false;
            } else {
                left -= 1;
                self.pass_tail();
            }
        }
        true
    }

    /// Gives memory back: that of an unused chunk, or of the one that lies highest in the arena,
    /// whose bytes then move to the unused one's.
    fn vacate(&mut self, number: usize) {
        let place = |number: &usize| self.chunks[*number].memory.as_ref().map(ArenaPiece::number);
        let highest = (0..self.chunks.len()).max_by_key(place).filter(|highest| *highest != number);
        if let Some(highest) = highest
            && let Ok([unused, moved]) = self.chunks.get_disjoint_mut([number, highest])
        {
            moved.move_to(unused);
        }
        self.chunks[number] = Chunk::default();
        self.vacant.push(number);
    }

    /// Decides on the oldest entry of the queue that is over its share.
    fn pass_tail(&mut self) -> Passed {
        let from_small =
            self.small.chunks.len() > self.small_chunks_max() || self.main.chunks.is_empty();
        let name = if from_small { QueueName::Small } else { QueueName::Main };
        let queue = self.queue(name);
        let tail = queue.tail;
        let Some(number) = queue.chunks.front().copied() else { return Passed::Freed };
        if tail == self.chunks[number].used {
            let queue = self.queue(name);
            queue.chunks.pop_front();
            queue.tail = 0;
            self.free.push(number);
            return Passed::Freed;
        }
        let stored = Stored(&self.chunks[number].bytes()[tail..]);
        let (hash, bytes, live) = (stored.hash(), stored.bytes(), stored.is_live());
        let State { frequency, newcomer } = stored.state();
        self.queue(name).tail += bytes;
        if !live {
            return Passed::Freed;
        }
        if newcomer && name == QueueName::Small {
            self.thinning.passed(frequency >= PROMOTION_HITS);
        }
        let address = (number * self.chunk_bytes + tail) / ALIGNMENT;
        let kept = match name {
            QueueName::Small => (frequency >= PROMOTION_HITS).then_some(0),
            QueueName::Main => frequency.checked_sub(1),
        };
        if let Some(frequency) = kept
            && self.move_to_main(hash, address, frequency)
        {
            return Passed::Moved;
        }
        self.bury(hash, address);
        match name {
            QueueName::Small => {
                self.statistics.evicted_small += 1;
                self.ghosts.remember(hash);
            }
            QueueName::Main => self.statistics.evicted_main += 1,
        }
        Passed::Freed
    }

    /// Moves a live entry to the head of the main queue; false if there is no room.
    fn move_to_main(&mut self, hash: u128, from: usize, frequency: u8) -> bool {
        let bytes = self.stored(from).bytes();
        let Some(to) = self.claim(QueueName::Main, bytes, 0) else { return false };
        let (source, target) = (from * ALIGNMENT, to * ALIGNMENT);
        let chunk = self.chunk_bytes;
        let numbers = [source / chunk, target / chunk];
        if let Ok([old, new]) = self.chunks.get_disjoint_mut(numbers) {
            let old = &old.bytes()[source % chunk..][..bytes];
            new.bytes_mut()[target % chunk..][..bytes].copy_from_slice(old);
        } else {
            let memory = self.chunks[numbers[0]].bytes_mut();
            memory.copy_within(source % chunk..source % chunk + bytes, target % chunk);
        }
        entry::set_frequency(self.stored_mut(to), frequency);
        entry::bury(self.stored_mut(from));
        let old_queue = self.chunks[numbers[0]].queue;
        self.queue(old_queue).entries -= 1;
        self.main.entries += 1;
        let moved = self.index.replace(index_hash(hash), from as u64, place(to));
        debug_assert!(moved, "a live entry is in the index");
        true
    }

    /// Puts the entries into an index of the right size: an index never shrinks by itself.
    fn rebuild_index(&mut self) {
        let Ok(mut index) = Index::new(ADDRESS_BITS, buckets_max(self.made_for)) else { return };
        self.each_live(|stored, at| index.insert(index_hash(stored.hash()), place(at)));
        self.index = index;
    }

    /// Visits each live entry with its address.
    fn each_live<'a>(&'a self, mut visit: impl FnMut(Stored<'a>, usize)) {
        for queue in [&self.small, &self.main] {
            let mut at = queue.tail;
            for number in &queue.chunks {
                let chunk = &self.chunks[*number];
                while at < chunk.used {
                    let stored = Stored(&chunk.bytes()[at..]);
                    if stored.is_live() {
                        visit(stored, (number * self.chunk_bytes + at) / ALIGNMENT);
                    }
                    at += stored.bytes();
                }
                at = 0;
            }
        }
    }
}

/// Enough for 2 TiB of chunks.
const ADDRESS_BITS: u32 = 36;
/// Bytes of an entry that are loaded ahead: as many as entries usually have, within these.
const PREFETCH_BYTES_MAX: usize = 2048;
const PREFETCH_BYTES_MIN: usize = 128;
/// A new entry counts for one part in so many of the mean.
const USUAL_OVER: usize = 16;

/// Buckets for as many entries as will ever fit: they are two units long at least.
fn buckets_max(capacity: usize) -> u64 {
    (capacity * SCALE_MAX / (2 * ALIGNMENT) / 6) as u64
}

fn place(address: usize) -> Place {
    Place { address: address as u64, size: SizeCode::covering(0) }
}

fn index_hash(hash: u128) -> u64 {
    (hash >> 64) as u64
}
