//! Transactions: after a crash either all of their changes are there, or none.
//!
//! Stores happen in place. The transaction keeps the old bytes, to put them back when it is
//! aborted, and a list of ranges. At the commit the bytes of these ranges become one record.
//!
//! Invariants:
//! 1. Within one level of savepoints a byte's old value is kept once, before the transaction's
//!    first store to it. Old values are put back from the last to the first.
//! 2. Blocks allocated here are logged as a whole: nobody needs their old bytes.
//! 3. A block that is freed here can be reused by others only behind this transaction's record.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::allocator::{Block, Mark};
use crate::attendance::Attendance;
use crate::core::empty_record;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{OPERATION_BYTES_MAX, Operation, PageEntry, ROOT_OFFSET};
use crate::heap::Heap;
use crate::memory::Memory;
use crate::options::Durability;
use crate::ranges::Ranges;

/// Changes to a heap in progress. It may be moved between threads. Dropping it aborts it.
///
/// ```text
/// begin ──► active ──commit──► committed
///             └──── abort ───► aborted (also: dropped, or a commit that found no room)
/// ```
#[derive(Debug)]
pub struct Transaction {
    heap: Heap,
    /// What the allocator knows it by; 0 until it allocates.
    number: u64,
    /// Ranges to log, in the order in which they were named.
    entries: Vec<Entry>,
    /// Old bytes of entries that keep them, one after another.
    old: Vec<u8>,
    /// What entries of this level of savepoints cover.
    covered: Ranges,
    /// Whether `covered` alone says what to log.
    is_flat: bool,
    allocated: Vec<Block>,
    freed: Vec<Block>,
    record: Vec<u8>,
    attendance: Attendance,
    patience: Duration,
    /// Savepoints made.
    savepoints: u64,
    /// Numbers of savepoints that rollbacks undid, in order: from, and up to.
    undone: Vec<(u64, u64)>,
}

/// How long a change or a view waits for another transaction unless told otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
struct Entry {
    offset: u64,
    length: u64,
    keeps_old: bool,
}

/// A state of a transaction that it can be rolled back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    number: u64,
    entries: usize,
    allocated: usize,
    freed: usize,
}

impl Transaction {
    pub(crate) fn new(heap: Heap) -> Transaction {
        Transaction {
            heap,
            number: 0,
            entries: Vec::new(),
            old: Vec::new(),
            covered: Ranges::default(),
            is_flat: true,
            allocated: Vec::new(),
            freed: Vec::new(),
            record: Vec::new(),
            attendance: Attendance::default(),
            patience: PATIENCE,
            savepoints: 0,
            undone: Vec::new(),
        }
    }

    /// Who wants to know when it ends.
    pub(crate) fn attendance(&self) -> &Attendance {
        &self.attendance
    }

    /// As [`Transaction::attendance`], to add somebody.
    pub(crate) fn attendance_mut(&mut self) -> &mut Attendance {
        &mut self.attendance
    }

    /// The same, waiting at most so long for another transaction that changes a collection; 10
    /// seconds otherwise. Without patience it never blocks its thread:
    /// [`Held`](crate::ErrorKind::Held) says that the other one has to end first.
    pub fn with_patience(mut self, patience: Duration) -> Transaction {
        self.patience = patience;
        self
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// The heap that it changes.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Names `length` bytes at `offset` that the program is going to store to: their present
    /// values come back if the transaction aborts, their values at the commit become durable.
    /// Naming bytes twice, or bytes of a block allocated here, costs next to nothing.
    ///
    /// Errors: `InvalidInput` outside the heap's data.
    pub fn add(&mut self, offset: u64, length: u64) -> Result<()> {
        self.heap.core().check_range(offset, length)?;
        self.keep(offset, length);
        Ok(())
    }

    /// As [`Transaction::add`] for callers that put old values back by themselves: the bytes'
    /// values at the commit become durable, and an abort leaves them alone.
    pub fn log(&mut self, offset: u64, length: u64) -> Result<()> {
        self.heap.core().check_range(offset, length)?;
        if length > 0 {
            self.is_flat = false;
            self.entries.push(Entry { offset, length, keeps_old: false });
        }
        Ok(())
    }

    /// Names the range and stores `bytes` there.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.add(offset, bytes.len() as u64)?;
        self.heap.core().memory.write(offset, bytes);
        Ok(())
    }

    /// Names the range and stores `value` there, little-endian; in one piece, and after everything
    /// this thread stored before, where `offset` is a multiple of 8.
    pub fn write_u64(&mut self, offset: u64, value: u64) -> Result<()> {
        self.add(offset, 8)?;
        self.heap.core().memory.store(offset, value);
        Ok(())
    }

    /// As [`Transaction::write_u64`], four bytes.
    pub fn write_u32(&mut self, offset: u64, value: u32) -> Result<()> {
        self.write(offset, &value.to_le_bytes())
    }

    /// Allocates at least `bytes`, all zero; returns the handle. It exists once the transaction
    /// commits: store it where it will be found in the same transaction, and nothing can leak.
    ///
    /// Errors: `Full` if there is no room; the transaction goes on. `InvalidInput` for 0 bytes.
    pub fn allocate(&mut self, bytes: u64) -> Result<u64> {
        let core = self.heap.core();
        if self.number == 0 {
            self.number = core.transactions.fetch_add(1, Ordering::Relaxed);
        }
        let block = core.allocate(bytes, self.number)?;
        self.allocated.push(block);
        self.entries.push(Entry { offset: block.handle, length: block.bytes, keeps_old: false });
        self.covered.cover(block.handle, block.handle + block.bytes, |_, _| {});
        Ok(block.handle)
    }

    /// Frees an allocation when the transaction commits. Nothing it needs can run out.
    ///
    /// Errors: `NotLive` if it is no live allocation, or one that another transaction is freeing,
    /// or has made and not yet committed.
    pub fn free(&mut self, handle: u64) -> Result<()> {
        let core = self.heap.core();
        let block = core.allocator.lock().begin_free(handle, self.number).ok_or_else(|| {
            let detail = format!(
                "{}: {handle} is not the handle of a live allocation; it was freed, never \
                 allocated, or its transaction has not committed",
                core.name()
            );
            Error::new(ErrorKind::NotLive, detail)
        })?;
        self.freed.push(block);
        Ok(())
    }

    /// Sets the handle that everything begins with; any number will do.
    pub fn set_root(&mut self, handle: u64) -> Result<()> {
        self.store_word(ROOT_OFFSET, handle);
        Ok(())
    }

    /// Names and stores a word of the head page.
    pub(crate) fn store_word(&mut self, offset: u64, value: u64) {
        self.keep(offset, 8);
        self.heap.core().memory.store(offset, value);
    }

    /// A state to come back to: what follows can be undone alone.
    pub fn savepoint(&mut self) -> Savepoint {
        if !self.entries.is_empty() {
            self.is_flat = false;
            self.covered.clear();
        }
        self.savepoints += 1;
        Savepoint {
            number: self.savepoints,
            entries: self.entries.len(),
            allocated: self.allocated.len(),
            freed: self.freed.len(),
        }
    }

    /// Undoes everything since `to`, which stays valid. Ranges named by [`Transaction::log`] are
    /// the caller's to put back.
    ///
    /// Errors: `InvalidInput` if the transaction was rolled back to a state before `to`.
    pub fn rollback(&mut self, to: Savepoint) -> Result<()> {
        let was_undone = |(from, upto): &(u64, u64)| (*from..=*upto).contains(&to.number);
        let is_known = to.entries <= self.entries.len()
            && to.allocated <= self.allocated.len()
            && to.freed <= self.freed.len();
        if !is_known || self.undone.iter().any(was_undone) {
            let detail = "a savepoint that an earlier rollback undid";
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        self.undone.retain(|(from, _)| *from <= to.number);
        if self.savepoints > to.number {
            self.undone.push((to.number + 1, self.savepoints));
        }
        self.undo(to);
        self.is_flat = false;
        self.covered.clear();
        Ok(())
    }

    /// Makes all changes durable, at the heap's level of durability.
    ///
    /// Errors: `Full` if even the largest transactions' room is exhausted, `ReadOnly`, `Closed`,
    /// `Poisoned` if a write or sync failed before: the transaction was aborted. `Unsettled` if one
    /// failed now: whether it is there after the heap is opened again is not known; this process
    /// sees it as committed.
    pub fn commit(self) -> Result<()> {
        let durability = self.heap.core().durability;
        self.commit_with(durability)
    }

    /// As [`Transaction::commit`], at this level of durability.
    pub fn commit_with(mut self, durability: Durability) -> Result<()> {
        let core = self.heap.core();
        if self.entries.is_empty() && self.freed.is_empty() {
            return core.log.check_poison();
        }
        self.record = empty_record();
        let (cancelled, freed) = self.split_freed();
        self.describe(&cancelled, &freed);
        let core = self.heap.core();
        // On an error `self` is dropped, which aborts.
        let end = core.append(&mut self.record)?;
        core.commits.fetch_add(1, Ordering::Relaxed);
        core.let_go(&self.allocated);
        core.release(&self.freed);
        self.forget();
        // Whoever changes the same bytes next has its record behind this one.
        self.attendance.end();
        self.heap.core().settle(end, durability).map_err(Error::unsettled)
    }

    /// Puts everything back as it was when the transaction began.
    pub fn abort(self) {
        drop(self);
    }

    fn keep(&mut self, offset: u64, length: u64) {
        if length == 0 {
            return;
        }
        let memory = &self.heap.core().memory;
        let (entries, old) = (&mut self.entries, &mut self.old);
        self.covered.cover(offset, offset + length, |start, end| {
            memory.append_to(start, end - start, old);
            entries.push(Entry { offset: start, length: end - start, keeps_old: true });
        });
    }

    /// Blocks that were allocated here and freed again, and blocks of others that were freed; by
    /// handle.
    fn split_freed(&self) -> (Vec<u64>, Vec<Block>) {
        if self.freed.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut own: Vec<u64> = self.allocated.iter().map(|block| block.handle).collect();
        own.sort_unstable();
        let is_own = |block: &&Block| own.binary_search(&block.handle).is_ok();
        let (cancelled, freed): (Vec<&Block>, Vec<&Block>) = self.freed.iter().partition(is_own);
        let mut cancelled: Vec<u64> = cancelled.into_iter().map(|block| block.handle).collect();
        cancelled.sort_unstable();
        (cancelled, freed.into_iter().copied().collect())
    }

    /// Appends to the record what the transaction does.
    fn describe(&mut self, cancelled: &[u64], freed: &[Block]) {
        let memory = &self.heap.core().memory;
        if self.is_flat {
            for (start, end) in self.covered.iter() {
                gather(memory, start, end, &mut self.record);
            }
        } else {
            let mut all = Ranges::default();
            for entry in &self.entries {
                all.cover(entry.offset, entry.offset + entry.length, |_, _| {});
            }
            all.iter().for_each(|(start, end)| gather(memory, start, end, &mut self.record));
        }
        let allocated = self.allocated.iter();
        let kept = allocated.filter(|block| cancelled.binary_search(&block.handle).is_err());
        describe_blocks(kept, Change::Allocated, &mut self.record);
        describe_blocks(freed.iter(), Change::Freed, &mut self.record);
    }

    /// Puts back what was done since `to`.
    fn undo(&mut self, to: Savepoint) {
        let core = self.heap.core();
        let _restoring = self.attendance.restore();
        for entry in self.entries.drain(to.entries..).rev() {
            if entry.keeps_old {
                let start = self.old.len() - entry.length as usize;
                core.memory.write(entry.offset, &self.old[start..]);
                self.old.truncate(start);
            }
        }
        let freed: Vec<Block> = self.freed.drain(to.freed..).collect();
        let allocated: Vec<Block> = self.allocated.drain(to.allocated..).collect();
        if freed.is_empty() && allocated.is_empty() {
            return;
        }
        let mut allocator = core.allocator.lock();
        for block in &freed {
            allocator.cancel_free(block);
        }
        for block in &allocated {
            let found = allocator.begin_free(block.handle, self.number);
            allocator.let_go(block);
            debug_assert!(found.is_some(), "what was allocated here is live once frees are undone");
        }
        drop(allocator);
        core.release(&allocated);
    }

    fn forget(&mut self) {
        self.entries.clear();
        self.allocated.clear();
        self.freed.clear();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.undo(Savepoint { number: 0, entries: 0, allocated: 0, freed: 0 });
        self.attendance.end();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Allocated,
    Freed,
}

fn describe_blocks<'a>(
    blocks: impl Iterator<Item = &'a Block>,
    change: Change,
    record: &mut Vec<u8>,
) {
    let mut bits: Option<(u64, u64)> = None;
    let put = |bits: Option<(u64, u64)>, record: &mut Vec<u8>| match (bits, change) {
        (None, _) => {}
        (Some((offset, mask)), Change::Allocated) => Operation::Set { offset, mask }.encode(record),
        (Some((offset, mask)), Change::Freed) => Operation::Clear { offset, mask }.encode(record),
    };
    for block in blocks {
        match block.mark {
            Mark::Slot { word, mask } => match &mut bits {
                Some((same, gathered)) if *same == word => *gathered |= mask,
                _ => put(bits.replace((word, mask)), record),
            },
            Mark::Run { word } => {
                let entry = match change {
                    Change::Allocated => PageEntry::Run { bytes: block.bytes },
                    Change::Freed => PageEntry::Free,
                };
                let bytes = &entry.encode().to_le_bytes();
                Operation::Bytes { offset: word, bytes }.encode(record);
            }
        }
    }
    put(bits, record);
}

/// Ranges from which on zeros are looked for.
const SPARSE_BYTES_MIN: u64 = 256;
/// Zeros of shorter ranges are written out.
const ZEROS_MIN: u64 = 16;
/// What is looked at as a whole when zeros are.
const GRAIN: u64 = 64;

/// Appends the bytes of `start..end` as they are now; stretches of zeros by their length.
pub(crate) fn gather(memory: &Memory, start: u64, end: u64, record: &mut Vec<u8>) {
    if end - start < SPARSE_BYTES_MIN {
        let (length, words) = (end - start, start.is_multiple_of(8) && end.is_multiple_of(8));
        if words && length >= ZEROS_MIN && memory.leading_zeros(start, length) == length {
            return Operation::Zeros { offset: start, length }.encode(record);
        }
        return gather_bytes(memory, start, end, record);
    }
    let (first, last) = (start.next_multiple_of(8), end / 8 * 8);
    gather_bytes(memory, start, first, record);
    let mut at = first;
    while at < last {
        let zeros = memory.leading_zeros(at, last - at);
        if zeros >= GRAIN {
            Operation::Zeros { offset: at, length: zeros }.encode(record);
            at += zeros;
            continue;
        }
        let from = at;
        at += zeros;
        while at < last && memory.leading_zeros(at, GRAIN.min(last - at)) < GRAIN {
            at += GRAIN.min(last - at);
        }
        gather_bytes(memory, from, at, record);
    }
    gather_bytes(memory, last, end, record);
}

fn gather_bytes(memory: &Memory, mut start: u64, end: u64, record: &mut Vec<u8>) {
    while start < end {
        let length = (end - start).min(OPERATION_BYTES_MAX);
        record.extend_from_slice(&Operation::bytes_word(start, length).to_le_bytes());
        memory.append_to(start, length, record);
        record.resize(record.len().next_multiple_of(8), 0);
        start += length;
    }
}
