//! An open heap: its memory, log, allocator and superblock, and the operations that move bytes
//! among them.
//!
//! Locks, from outer to inner: `superblock` (one checkpoint, growth or backup at a time), then
//! `allocator`, then the log's state. Synced I/O happens under the first; under the second a new
//! span is appended to the log, which on words stores and fences.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::allocator::{self, Allocator, Block, SMALL_BYTES_MAX};
use crate::backing::{Backing, Site, Unit};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    HEAD_OFFSET, PAGE_BYTES, RECORD_HEADER_BYTES, ROOT_OFFSET, RecordKind, Superblock,
};
use crate::guard::Guards;
use crate::heap_file::HeapFile;
use crate::log::{Appended, Goal, Log, past_margin};
use crate::memory::Memory;
use crate::options::Durability;
use crate::replay::{Replay, write_images};
use crate::signal::Signal;

/// An open heap, shared by its handles and its thread.
pub(crate) struct Core {
    pub(crate) file: Arc<HeapFile>,
    pub(crate) memory: Memory,
    pub(crate) log: Log,
    pub(crate) superblock: Mutex<Superblock>,
    pub(crate) allocator: Mutex<Allocator>,
    /// Outermost: held while a size is registered.
    pub(crate) registering: Mutex<()>,
    pub(crate) guards: Guards,
    pub(crate) signal: Signal,
    pub(crate) durability: Durability,
    pub(crate) size: AtomicU64,
    pub(crate) limit: u64,
    pub(crate) data_offset: u64,
    pub(crate) table_offset: u64,
    /// Checkpoints that applied something.
    pub(crate) checkpoints: AtomicU64,
    pub(crate) commits: AtomicU64,
    /// The number of the next transaction that allocates, from 1.
    pub(crate) transactions: AtomicU64,
    /// Whether a thread takes care of checkpoints; else commits do.
    pub(crate) has_keeper: bool,
    pub(crate) is_read_only: bool,
}

/// Blocks from which on zeros come as fresh memory instead of stores.
const FRESH_BYTES_MIN: u64 = 1 << 20;
/// A heap grows by at least this part of its size.
const GROWTH_SHARE: u64 = 8;

impl Core {
    /// A name for messages.
    pub(crate) fn name(&self) -> String {
        self.file.backing.name()
    }

    /// Whether a program may touch `length` bytes at `offset`: data of the heap.
    pub(crate) fn check_range(&self, offset: u64, length: u64) -> Result<()> {
        let size = self.size.load(Ordering::Acquire);
        let inside = offset.checked_add(length).is_some_and(|end| end <= size);
        if inside && offset >= self.data_offset {
            return Ok(());
        }
        let detail = format!(
            "{}: {length} bytes at offset {offset} are not of the heap's data; expected a range \
             within {}..{size}",
            self.name(),
            self.data_offset
        );
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }

    /// Appends a record: room for its header, then its operations.
    pub(crate) fn append(&self, record: &mut [u8]) -> Result<u64> {
        loop {
            if let Appended::At(end) = self.try_append(record)? {
                return Ok(end);
            }
            self.checkpoint()?;
        }
    }

    fn try_append(&self, record: &mut [u8]) -> Result<Appended> {
        debug_assert!(record.len().is_multiple_of(8));
        let body = &record[RECORD_HEADER_BYTES as usize..];
        if record.len() as u64 > self.log.record_bytes_max() {
            return self.log.append_outside(body);
        }
        let checksum = self.log.checksum(body);
        self.log.append(RecordKind::Operations, record, checksum)
    }

    /// Waits until the record that ends at `end` is as durable as asked for.
    pub(crate) fn settle(&self, end: u64, durability: Durability) -> Result<()> {
        match durability {
            // Appending made it durable.
            _ if self.log.unit() == Unit::Word => {}
            Durability::Sync => self.log.settle(end, Goal::Durable, Duration::ZERO)?,
            Durability::Group { delay_us } => {
                let gather = Duration::from_micros(u64::from(delay_us));
                self.log.settle(end, Goal::Durable, gather)?;
            }
            Durability::Buffered { epoch_ms } => {
                self.log.settle(end, Goal::Written, Duration::ZERO)?;
                self.signal.want_sync(Duration::from_millis(u64::from(epoch_ms)));
            }
            Durability::None => self.log.relieve()?,
        }
        if self.log.is_half_full() {
            if self.has_keeper {
                self.signal.want_checkpoint();
            } else {
                self.checkpoint()?;
            }
        }
        // What a thread would do, later and at once.
        if !self.has_keeper && self.signal.take_sync() {
            self.log.sync()?;
        }
        Ok(())
    }

    /// Applies all durable records to the file; their room in the log is free afterwards.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.checkpoint_locked(&mut self.superblock.lock())
    }

    /// Errors: `Poisoned` after any failed write or sync, and the head stays where it is. Pages
    /// that a failed sync should have written read back as if it had, so that a second attempt
    /// would find nothing to write.
    pub(crate) fn checkpoint_locked(&self, superblock: &mut Superblock) -> Result<()> {
        self.log.sync()?;
        self.log.check_poison()?;
        let (head, durable) = self.log.pending();
        if head == durable {
            return Ok(());
        }
        let applied = self.apply(superblock, durable);
        applied.map_err(|error| self.log.poison(&error))?;
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        let retired = self.log.retire(durable, superblock.size_bytes);
        retired.map_err(|error| self.log.poison(&error))
    }

    fn apply(&self, superblock: &mut Superblock, end: u64) -> Result<()> {
        let replay = Replay::read(&self.file, superblock, Some(end))?;
        if past_margin(replay.end) < end {
            let detail = format!(
                "{}: the log reads back damaged at position {} of {end}",
                self.name(),
                replay.end
            );
            return Err(Error::new(ErrorKind::Corrupt, detail));
        }
        replay.apply(&self.file, superblock)?;
        superblock.head = end;
        // Both, before the room of those records is used again: to the other one they would be
        // what comes next.
        self.file.write_superblocks(superblock, Site::Head)
    }

    /// A live block of at least `bytes`, zeroed, for transaction `by`. The heap grows if it must
    /// and may.
    pub(crate) fn allocate(&self, bytes: u64, by: u64) -> Result<Block> {
        allocator::check_size(&self.name(), bytes, self.limit - self.data_offset)?;
        let block = self.reserve(bytes, by)?;
        if block.bytes >= FRESH_BYTES_MIN && block.handle.is_multiple_of(PAGE_BYTES) {
            let length = block.bytes.next_multiple_of(PAGE_BYTES);
            if let Err(error) = self.memory.provide(block.handle, length) {
                self.give_back(&block, by);
                return Err(error);
            }
        } else {
            self.memory.fill_zeros(block.handle, block.bytes);
        }
        Ok(block)
    }

    fn reserve(&self, bytes: u64, by: u64) -> Result<Block> {
        let mut reclaimed = false;
        loop {
            let mut allocator = self.allocator.lock();
            let size = self.size.load(Ordering::Acquire);
            if let Some(block) = allocator.reserve_slot(&self.memory, bytes) {
                allocator.bear(&block, by);
                return Ok(block);
            }
            let is_small = allocator.is_small(bytes);
            if !is_small && let Some(block) = allocator.reserve_run(&self.memory, bytes) {
                allocator.bear(&block, by);
                return Ok(block);
            }
            if is_small && let Some(span) = allocator.plan_span(bytes) {
                let mut record = empty_record();
                allocator.describe_span(&span, &mut record);
                match self.try_append(&mut record) {
                    Ok(Appended::At(_)) => allocator.open_span(&self.memory, span),
                    Ok(Appended::NoRoom) => {
                        allocator.drop_span(&span);
                        drop(allocator);
                        self.checkpoint()?;
                    }
                    Err(error) => {
                        allocator.drop_span(&span);
                        return Err(error);
                    }
                }
                continue;
            }
            let largest = allocator.free_bytes().1;
            drop(allocator);
            if !reclaimed {
                reclaimed = true;
                self.drain_waiting();
                self.reclaim_spans()?;
                continue;
            }
            let wanted = bytes.max(SMALL_BYTES_MAX * 8).next_multiple_of(PAGE_BYTES);
            if !self.grow_for(wanted, size)? {
                return Err(allocator::full(&self.name(), bytes, largest));
            }
        }
    }

    /// Frees a block that nobody was given.
    fn give_back(&self, block: &Block, by: u64) {
        let mut allocator = self.allocator.lock();
        if let Some(block) = allocator.begin_free(block.handle, by) {
            allocator.let_go(&block);
            allocator.unmark(&self.memory, &block);
            allocator.finish_free(&block);
        }
    }

    /// Makes the pages of empty spans free.
    pub(crate) fn reclaim_spans(&self) -> Result<()> {
        loop {
            let mut allocator = self.allocator.lock();
            let mut record = empty_record();
            let spans = allocator.list_empty_spans(&mut record);
            if spans.is_empty() {
                return Ok(());
            }
            match self.try_append(&mut record)? {
                Appended::At(_) => {
                    allocator.free_spans(&self.memory, &spans);
                    return Ok(());
                }
                Appended::NoRoom => {
                    drop(allocator);
                    self.checkpoint()?;
                }
            }
        }
    }

    /// The transaction that allocated the blocks has committed: others may free them.
    pub(crate) fn let_go(&self, blocks: &[Block]) {
        if blocks.is_empty() {
            return;
        }
        let mut allocator = self.allocator.lock();
        blocks.iter().for_each(|block| allocator.let_go(block));
    }

    /// Frees, for good, blocks that are being freed: at once, or when no guard is older.
    pub(crate) fn release(&self, blocks: &[Block]) {
        if blocks.is_empty() {
            return;
        }
        let epoch = self.guards.epoch_of_free();
        let mut allocator = self.allocator.lock();
        for block in blocks {
            allocator.unmark(&self.memory, block);
            if epoch.is_none() {
                allocator.finish_free(block);
            }
        }
        drop(allocator);
        if let Some(epoch) = epoch {
            self.guards.wait(epoch, blocks);
            if !self.guards.is_awaited(epoch) {
                // The last that was older ended before it could know of these.
                self.drain_waiting();
            }
        }
    }

    /// Hands out again what waited for guards that are gone.
    pub(crate) fn drain_waiting(&self) {
        let ready = self.guards.take_ready();
        if ready.is_empty() {
            return;
        }
        let mut allocator = self.allocator.lock();
        for block in &ready {
            allocator.finish_free(block);
        }
    }

    /// Grows so that `wanted` bytes in one piece may be found, which were not while the heap had
    /// `size` bytes; whether it is larger now. Where there is no room for a share of the size,
    /// it grows by no more than is wanted.
    fn grow_for(&self, wanted: u64, size: u64) -> Result<bool> {
        let share = wanted.max(size / GROWTH_SHARE).next_multiple_of(PAGE_BYTES);
        let mut tried = size;
        for more in [share, wanted] {
            let target = size.saturating_add(more).min(self.limit);
            if self.is_read_only || target == tried || target <= size {
                break;
            }
            match self.grow(target) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Full => tried = target,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Makes the heap `bytes` large, whole pages; nothing if it is already.
    pub(crate) fn grow(&self, bytes: u64) -> Result<()> {
        let mut superblock = self.superblock.lock();
        if bytes > self.limit {
            let detail = format!(
                "{}: cannot grow to {bytes} bytes; its limit is {}",
                self.name(),
                self.limit
            );
            return Err(Error::new(ErrorKind::Full, detail));
        }
        loop {
            let before = superblock.size_bytes;
            if bytes <= before {
                return Ok(());
            }
            let mut is_harmless = true;
            let grown = self.log.resize(|| {
                let made = self.make_room(before, bytes);
                made.inspect_err(|error| is_harmless = error.kind() == ErrorKind::Full)?;
                let images = self.file.images_of_growth(before, bytes)?;
                is_harmless = images.is_empty();
                write_images(&self.file, &superblock, &images)?;
                self.file.map(&self.memory, (before, bytes - before), bytes)?;
                is_harmless = false;
                superblock.size_bytes = bytes;
                // Both, before anything is allocated there.
                self.file.write_superblocks(&mut superblock, Site::Size)?;
                Ok(bytes)
            });
            match grown {
                Ok(Some(_)) => {
                    // Whoever is given a block there finds the heap large enough.
                    let mut allocator = self.allocator.lock();
                    self.size.store(bytes, Ordering::Release);
                    allocator.extend(bytes);
                    return Ok(());
                }
                // Extents lie behind the end: applied, they are gone.
                Ok(None) => self.checkpoint_locked(&mut superblock)?,
                Err(error) if is_harmless => return Err(error),
                Err(error) => return Err(self.log.poison(&error)),
            }
        }
    }

    /// Room in the file for data from `before` to `after`, and for its part of the page table.
    fn make_room(&self, before: u64, after: u64) -> Result<()> {
        let backing = &*self.file.backing;
        backing.resize(after)?;
        let made = room_for_table(backing, (self.table_offset, self.data_offset), after)
            .and_then(|()| backing.make_room(before, after - before))
            .and_then(|()| self.file.make_table_room(after));
        made.or_else(|error| backing.resize(before).and(Err(error)))
    }

    /// Cuts free pages off the end, down to `least` bytes; returns the size afterwards.
    pub(crate) fn shrink(&self, least: u64) -> Result<u64> {
        self.drain_waiting();
        self.reclaim_spans()?;
        let mut superblock = self.superblock.lock();
        let before = superblock.size_bytes;
        let pages = least.saturating_sub(self.data_offset).div_ceil(PAGE_BYTES).max(1);
        let after = {
            let mut allocator = self.allocator.lock();
            let after = self.data_offset + allocator.cut(pages) * PAGE_BYTES;
            // Who finds no room meanwhile waits for the end of this, and lets the heap grow again.
            self.size.store(after, Ordering::Release);
            after
        };
        let cut = match after == before {
            true => self.checkpoint_locked(&mut superblock).map(|()| None),
            false => self.cut(&mut superblock, after),
        };
        match cut {
            Ok(Some(after)) => return Ok(after),
            // The file may end there already: whoever got pages behind it might find nothing.
            Err(error) if error.kind() == ErrorKind::Poisoned => return Err(error),
            Ok(None) | Err(_) => {}
        }
        let mut allocator = self.allocator.lock();
        self.size.store(before, Ordering::Release);
        allocator.extend(before);
        cut.map(|_| before)
    }

    /// Makes the heap end at `after`, where nobody is given pages any more; `None` if extents lie
    /// behind it.
    fn cut(&self, superblock: &mut Superblock, after: u64) -> Result<Option<u64>> {
        // Who freed the pages may wait for a sync: in the file they are allocated until then.
        self.checkpoint_locked(superblock)?;
        let (before, mut is_harmless) = (superblock.size_bytes, true);
        let cut = self.log.resize(|| {
            is_harmless = false;
            superblock.size_bytes = after;
            // Both, before the file ends there: to the other one it would be cut short.
            self.file.write_superblocks(superblock, Site::Size)?;
            // Whoever still looks there finds zeros, whatever becomes of the file.
            self.memory.provide(after, before - after)?;
            self.file.backing.resize(after)?;
            Ok(after)
        });
        cut.map_err(|error| if is_harmless { error } else { self.log.poison(&error) })
    }

    /// Everything committed is in the file, and nothing more is committed. Repeating it does
    /// nothing. If `blanks`, what is left to look at is zeros: pages of the file that nobody
    /// would show what its next owner writes there, or end the process where it cuts them off.
    pub(crate) fn close(&self, blanks: bool) -> Result<()> {
        let blank = || if blanks { self.memory.blank() } else { Ok(()) };
        if self.is_read_only {
            // Whoever copies the heap comes to its end before.
            let _nobody_copies = self.superblock.lock();
            self.log.close();
            let blanked = blank();
            self.file.backing.release();
            return blanked;
        }
        self.log.close();
        let closed = self.checkpoint();
        let blanked = blank();
        self.file.backing.release();
        closed.and(blanked)
    }

    /// The root's value.
    pub(crate) fn root(&self) -> u64 {
        self.memory.load(ROOT_OFFSET)
    }
}

/// Most records fit this, bytes.
const RECORD_BYTES_USUAL: usize = 256;

/// A record without operations yet.
pub(crate) fn empty_record() -> Vec<u8> {
    let mut record = Vec::with_capacity(RECORD_BYTES_USUAL);
    record.resize(RECORD_HEADER_BYTES as usize, 0);
    record
}

/// Room for the page table's words of a heap of `size` bytes.
pub(crate) fn room_for_table(
    backing: &dyn Backing,
    (table_offset, data_offset): (u64, u64),
    size: u64,
) -> Result<()> {
    let bytes = ((size - data_offset) / PAGE_BYTES * 8).next_multiple_of(PAGE_BYTES);
    backing.make_room(table_offset, bytes)
}

/// Brings everything a program may see into `memory`; returns an error for each damaged page, which
/// stays zeros.
pub(crate) fn map_all(
    file: &HeapFile,
    memory: &Memory,
    superblock: &Superblock,
) -> Result<Vec<Error>> {
    let Superblock { table_offset, size_bytes, .. } = *superblock;
    let mut damaged = file.map_whole(memory, (HEAD_OFFSET, PAGE_BYTES), size_bytes)?;
    let rest = (table_offset, size_bytes - table_offset);
    damaged.extend(file.map_whole(memory, rest, size_bytes)?);
    Ok(damaged)
}
