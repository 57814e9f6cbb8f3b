//! The log: records at positions that only grow, in a ring of the file.
//!
//! Invariants:
//! 1. Records become durable in the order of their positions: if one is durable, so are all before
//!    it.
//! 2. On pages, a write begins at a page boundary behind everything written before: no block that
//!    holds durable records is written again until the log's head has passed it.
//! 3. No record begins within [`RECORD_HEADER_BYTES`] of the end of a page, and none crosses the
//!    end of the ring.
//! 4. A failed write or sync poisons: nothing is appended afterwards.
//!
//! Locks: `state` is the innermost lock of the heap. On pages no I/O happens under it; on words the
//! record is stored and fenced under it, which keeps invariant 1.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::backing::{Backing, Site, Unit};
use crate::encryption::PIECE_BYTES_MAX;
use crate::encryption::format::{EncryptedExtent, Subject};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Extent, LOG_OFFSET, PAGE_BYTES, RECORD_HEADER_BYTES, RecordHeader, RecordKind, Superblock,
};
use crate::heap_file::HeapFile;

/// The log of an open heap. Thread-safe.
pub(crate) struct Log {
    file: Arc<HeapFile>,
    backing: Arc<dyn Backing>,
    unit: Unit,
    bytes: u64,
    generation: u32,
    seed: u32,
    state: Mutex<State>,
    changed: Condvar,
    half_full: AtomicBool,
    /// Records appended, and their bytes, for statistics.
    pub(crate) records: AtomicU64,
    pub(crate) record_bytes: AtomicU64,
}

struct State {
    /// Where recovery would begin: what is before may be overwritten.
    head: u64,
    /// Where the next record may begin.
    tail: u64,
    /// What is before was handed to the medium.
    written: u64,
    /// What is before is durable.
    durable: u64,
    /// Records not yet handed to the medium, in order.
    staged: Vec<Segment>,
    /// Buffers to stage in, emptied.
    spare: Vec<Vec<u8>>,
    /// Whether a thread writes.
    is_writing: bool,
    /// Where the next extent may lie; the size of the heap where there is none.
    extent_end: u64,
    /// Extents in use: the position behind the record that points to each, once there is one.
    extents: Vec<Option<u64>>,
    stopped: Option<Stop>,
}

/// Bytes that stand together in the ring.
struct Segment {
    position: u64,
    bytes: Vec<u8>,
}

#[derive(Clone)]
enum Stop {
    ReadOnly,
    Closed,
    Poisoned(String),
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    /// It is in the log and ends there.
    At(u64),
    /// The ring has no room until a checkpoint.
    NoRoom,
}

/// How far a record must have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Handed to the system.
    Written,
    /// Synced.
    Durable,
}

/// Staged bytes past which even lazy commits write.
const STAGED_BYTES_MAX: u64 = 1 << 20;

impl Log {
    /// A log that continues, empty, at the head of `superblock`.
    pub(crate) fn new(file: Arc<HeapFile>, superblock: &Superblock) -> Log {
        let backing = Arc::clone(&file.backing);
        let head = superblock.head;
        let state = State {
            head,
            tail: head,
            written: head,
            durable: head,
            staged: Vec::new(),
            spare: Vec::new(),
            is_writing: false,
            extent_end: superblock.size_bytes,
            extents: Vec::new(),
            stopped: None,
        };
        Log {
            unit: backing.unit(),
            backing,
            file,
            bytes: superblock.log_bytes,
            generation: superblock.generation,
            seed: superblock.seed(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            half_full: AtomicBool::new(false),
            records: AtomicU64::new(0),
            record_bytes: AtomicU64::new(0),
        }
    }

    /// The largest record that goes into the ring, bytes with header.
    pub(crate) fn record_bytes_max(&self) -> u64 {
        self.bytes / 4
    }

    /// What the medium writes as a whole.
    pub(crate) fn unit(&self) -> Unit {
        self.unit
    }

    /// Checksum of a record's body, to hand to [`Log::append`]. Encrypted records have none.
    pub(crate) fn checksum(&self, body: &[u8]) -> u32 {
        match self.file.encryption {
            Some(_) => 0,
            None => crc32c::crc32c_append(self.seed, body),
        }
    }

    /// Appends a record: room for its header, then the body with this checksum; a multiple of 8.
    /// Once it is in the log, `record` holds what stands there.
    pub(crate) fn append(
        &self,
        kind: RecordKind,
        record: &mut [u8],
        checksum: u32,
    ) -> Result<Appended> {
        let mut state = self.state.lock();
        self.append_locked(&mut state, kind, record, checksum)
    }

    fn append_locked(
        &self,
        state: &mut State,
        kind: RecordKind,
        record: &mut [u8],
        checksum: u32,
    ) -> Result<Appended> {
        state.check(&*self.backing)?;
        let length = record.len() as u64;
        let from = past_margin(state.tail);
        let ring_left = self.bytes - from % self.bytes;
        let position = if length > ring_left { from + ring_left } else { from };
        let end = position + length;
        if end.next_multiple_of(PAGE_BYTES) > state.head + self.bytes {
            return Ok(Appended::NoRoom);
        }
        if position > from {
            let mut padding = [0; RECORD_HEADER_BYTES as usize];
            self.padding(from, ring_left, state.durable, &mut padding);
            self.put(state, from, &padding)?;
        }
        let header = RecordHeader {
            length: length as u32,
            position,
            durable: state.durable,
            generation: self.generation,
            kind,
        };
        self.encode(&header, checksum, record);
        self.put(state, position, record)?;
        state.tail = end;
        if end - state.head > self.bytes / 2 {
            self.half_full.store(true, Ordering::Relaxed);
        }
        if self.unit == Unit::Word {
            if let Err(error) = self.backing.sync(Site::Log) {
                return Err(self.poison_locked(state, &error));
            }
            (state.written, state.durable) = (end, end);
        }
        self.records.fetch_add(1, Ordering::Relaxed);
        self.record_bytes.fetch_add(length, Ordering::Relaxed);
        Ok(Appended::At(end))
    }

    /// Appends a record whose body is too large for the ring: the body goes behind the heap's end
    /// first. `Full` if the file cannot grow so far.
    pub(crate) fn append_outside(&self, body: &[u8]) -> Result<Appended> {
        let length = body.len() as u64;
        if self.file.encryption.is_some() && length > PIECE_BYTES_MAX {
            let detail = format!(
                "{}: a transaction that writes {length} bytes; expected at most \
                 {PIECE_BYTES_MAX} in an encrypted heap",
                self.backing.name()
            );
            return Err(Error::new(ErrorKind::Full, detail));
        }
        let room = length.next_multiple_of(PAGE_BYTES);
        let (offset, index) = {
            let mut state = self.state.lock();
            state.check(&*self.backing)?;
            let offset = state.extent_end;
            if let Err(error) = self.lengthen(offset, room) {
                // A new length is synced, and records that were written before with it.
                let is_harmless = error.kind() == ErrorKind::Full;
                return Err(if is_harmless {
                    error
                } else {
                    self.poison_locked(&mut state, &error)
                });
            }
            state.extent_end = offset + room;
            state.extents.push(None);
            (offset, state.extents.len() - 1)
        };
        let written = self.write_extent(offset, body);
        let mut state = self.state.lock();
        let mut record = vec![0; RECORD_HEADER_BYTES as usize];
        match written {
            Ok(place) => record.extend_from_slice(&place),
            Err(error) => return Err(self.poison_locked(&mut state, &error)),
        }
        let checksum = self.checksum(&record[RECORD_HEADER_BYTES as usize..]);
        let kind = RecordKind::Outside;
        let appended = self.append_locked(&mut state, kind, &mut record, checksum)?;
        let end = match appended {
            Appended::At(end) => end,
            // The extent is given up; the next attempt makes another.
            Appended::NoRoom => 0,
        };
        state.extents[index] = Some(end);
        Ok(appended)
    }

    /// Makes room at the end of the file; where there is none, it stays as it was.
    fn lengthen(&self, end: u64, room: u64) -> Result<()> {
        self.backing.resize(end + room)?;
        let made = self.backing.make_room(end, room);
        made.or_else(|error| self.backing.resize(end).and(Err(error)))
    }

    /// Writes operations behind the heap's end; returns the body of the record that says where.
    fn write_extent(&self, offset: u64, body: &[u8]) -> Result<Vec<u8>> {
        let (mut bytes, mut place) = (body.to_vec(), Vec::new());
        let length = bytes.len() as u64;
        match &self.file.encryption {
            Some(encryption) => {
                let stamp = encryption.encrypt(Subject::Extent, offset, &mut bytes);
                EncryptedExtent { offset, length, stamp }.encode(&mut place);
            }
            None => {
                let checksum = self.checksum(body);
                Extent { offset, length, checksum }.encode(&mut place);
            }
        }
        bytes.resize(bytes.len().next_multiple_of(PAGE_BYTES as usize), 0);
        self.backing.write(Site::Extent, offset, &bytes)?;
        self.backing.sync(Site::Extent)?;
        Ok(place)
    }

    /// Waits until everything before `end` has come as far as `goal`. Whoever finds nobody writing
    /// writes for all; it first waits `gather` for others to join.
    pub(crate) fn settle(&self, end: u64, goal: Goal, gather: Duration) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            let reached = match goal {
                Goal::Written => state.written,
                Goal::Durable => state.durable,
            };
            if reached >= end {
                return Ok(());
            }
            state.check_poison(&*self.backing)?;
            if state.is_writing {
                self.changed.wait(&mut state);
                continue;
            }
            state.is_writing = true;
            if !gather.is_zero() {
                self.gather(&mut state, gather);
            }
            let segments = self.close_group(&mut state);
            let upto = state.tail;
            let is_first = state.written == state.durable;
            let outcome =
                MutexGuard::unlocked(&mut state, || self.write(&segments, goal, is_first));
            state.is_writing = false;
            match outcome {
                Ok(()) => {
                    state.written = upto;
                    if goal == Goal::Durable {
                        state.durable = upto;
                    }
                    state.keep_spare(segments);
                }
                Err(error) => {
                    self.poison_locked(&mut state, &error);
                }
            }
            self.changed.notify_all();
        }
    }

    /// Makes everything appended so far durable; returns where it ends.
    pub(crate) fn sync(&self) -> Result<u64> {
        let tail = self.state.lock().tail;
        self.settle(tail, Goal::Durable, Duration::ZERO)?;
        Ok(self.state.lock().durable)
    }

    /// Writes what is staged if it has become much.
    pub(crate) fn relieve(&self) -> Result<()> {
        let (tail, written) = {
            let state = self.state.lock();
            (state.tail, state.written)
        };
        if self.unit == Unit::Page && tail - written > STAGED_BYTES_MAX {
            self.settle(tail, Goal::Written, Duration::ZERO)?;
        }
        Ok(())
    }

    /// From where to where records wait to be applied, all of them durable.
    pub(crate) fn pending(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.head, state.durable)
    }

    /// Bytes that wait for a checkpoint, and bytes there are.
    pub(crate) fn fill(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.tail - state.head, self.bytes)
    }

    /// Whether a checkpoint should come soon.
    pub(crate) fn is_half_full(&self) -> bool {
        self.half_full.load(Ordering::Relaxed)
    }

    /// The records before `head` are applied, and a superblock says so: their room is free.
    /// Returns whether the file may be cut back to its size, which nothing lies behind any more.
    pub(crate) fn retire(&self, head: u64, size: u64) -> Result<()> {
        let mut state = self.state.lock();
        state.head = head;
        self.half_full.store(state.tail - head > self.bytes / 2, Ordering::Relaxed);
        for extent in &mut state.extents {
            if extent.is_some_and(|end| end <= head) {
                *extent = Some(0);
            }
        }
        if !state.extents.is_empty() && state.extents.iter().all(|extent| *extent == Some(0)) {
            state.extents.clear();
            state.extent_end = size;
            // Under the lock: an extent must not be placed meanwhile.
            self.backing.resize(size)?;
        }
        Ok(())
    }

    /// Runs `change`, which makes the heap end elsewhere and returns the new size, while no extent
    /// lies behind it and none is placed; `None` if there is one.
    pub(crate) fn resize(&self, change: impl FnOnce() -> Result<u64>) -> Result<Option<u64>> {
        let mut state = self.state.lock();
        state.check(&*self.backing)?;
        if !state.extents.is_empty() {
            return Ok(None);
        }
        state.extent_end = change()?;
        Ok(Some(state.extent_end))
    }

    /// Refuses every append.
    pub(crate) fn close_for_reading(&self) {
        self.state.lock().stopped.get_or_insert(Stop::ReadOnly);
    }

    /// Refuses every later append.
    pub(crate) fn close(&self) {
        let stopped = &mut self.state.lock().stopped;
        if !matches!(stopped, Some(Stop::Poisoned(_))) {
            *stopped = Some(Stop::Closed);
        }
    }

    /// Whether what is in the file and in memory may be read and copied: unless the heap was closed
    /// or a write or sync failed.
    pub(crate) fn check_whole(&self) -> Result<()> {
        let state = self.state.lock();
        match &state.stopped {
            Some(Stop::ReadOnly) => Ok(()),
            _ => state.check(&*self.backing),
        }
    }

    /// Refuses every later append and settles nobody; returns the error to hand on.
    pub(crate) fn poison(&self, error: &Error) -> Error {
        let poisoned = self.poison_locked(&mut self.state.lock(), error);
        self.changed.notify_all();
        poisoned
    }

    /// Whether appends would be refused.
    pub(crate) fn check(&self) -> Result<()> {
        self.state.lock().check(&*self.backing)
    }

    /// Whether a write or sync failed.
    pub(crate) fn check_poison(&self) -> Result<()> {
        self.state.lock().check_poison(&*self.backing)
    }

    fn poison_locked(&self, state: &mut State, error: &Error) -> Error {
        if !matches!(state.stopped, Some(Stop::Poisoned(_))) {
            state.stopped = Some(Stop::Poisoned(error.to_string()));
        }
        poisoned(&self.backing.name(), &error.to_string())
    }

    fn gather(&self, state: &mut MutexGuard<'_, State>, gather: Duration) {
        let until = Instant::now() + gather;
        while !self.changed.wait_until(state, until).timed_out() {}
    }

    /// Ends the staged records at a page boundary and takes them.
    fn close_group(&self, state: &mut State) -> Vec<Segment> {
        let from = past_margin(state.tail);
        let end = from.next_multiple_of(PAGE_BYTES);
        if let Some(last) = state.staged.last_mut() {
            if from < end {
                let mut padding = [0; RECORD_HEADER_BYTES as usize];
                self.padding(from, end - from, state.durable, &mut padding);
                last.bytes.resize((from - last.position) as usize, 0);
                last.bytes.extend_from_slice(&padding);
            }
            last.bytes.resize((end - last.position) as usize, 0);
            state.tail = end;
        }
        std::mem::take(&mut state.staged)
    }

    /// Writes a group; `is_first` if everything before is durable, so that a durable write of its
    /// own will do instead of a sync of all.
    fn write(&self, segments: &[Segment], goal: Goal, is_first: bool) -> Result<()> {
        if let (Goal::Durable, true, [Segment { position, bytes }]) = (goal, is_first, segments) {
            let offset = LOG_OFFSET + position % self.bytes;
            return self.backing.write_durably(Site::Log, offset, bytes);
        }
        for Segment { position, bytes } in segments {
            self.backing.write(Site::Log, LOG_OFFSET + position % self.bytes, bytes)?;
        }
        match goal {
            Goal::Durable => self.backing.sync(Site::Log),
            Goal::Written => Ok(()),
        }
    }

    /// Hands bytes of a record to the medium, or stages them.
    fn put(&self, state: &mut State, position: u64, bytes: &[u8]) -> Result<()> {
        if self.unit == Unit::Word {
            let offset = LOG_OFFSET + position % self.bytes;
            let written = self.backing.write(Site::Log, offset, bytes);
            return written.map_err(|error| self.poison_locked(state, &error));
        }
        let continues = state
            .staged
            .last()
            .is_some_and(|last| position / self.bytes == last.position / self.bytes);
        if !continues {
            // The one before, if there is one, ends with the ring.
            if let Some(last) = state.staged.last_mut() {
                let end = (last.position / self.bytes + 1) * self.bytes;
                let written = last.bytes.len().next_multiple_of(PAGE_BYTES as usize);
                last.bytes.resize(written.min((end - last.position) as usize), 0);
            }
            let bytes = state.spare.pop().unwrap_or_default();
            state.staged.push(Segment { position, bytes });
        }
        if let Some(segment) = state.staged.last_mut() {
            segment.bytes.resize((position - segment.position) as usize, 0);
            segment.bytes.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn padding(&self, position: u64, length: u64, durable: u64, record: &mut [u8]) {
        let length = length as u32;
        let (generation, kind) = (self.generation, RecordKind::Padding);
        let header = RecordHeader { length, position, durable, generation, kind };
        self.encode(&header, self.seed, record);
    }

    /// The bytes of a record, in place; `checksum` is that of the body. Under the lock, because the
    /// position is the nonce of encrypted ones.
    fn encode(&self, header: &RecordHeader, checksum: u32, record: &mut [u8]) {
        match &self.file.encryption {
            Some(encryption) => encryption.encrypt_record(header, record),
            None => header.encode(checksum, record),
        }
    }
}

impl State {
    fn check(&self, backing: &dyn Backing) -> Result<()> {
        match &self.stopped {
            Some(Stop::Closed) => {
                let detail = format!("{}: the heap was closed", backing.name());
                Err(Error::new(ErrorKind::Closed, detail))
            }
            Some(Stop::ReadOnly) => {
                let detail = format!("{}: the heap was opened for reading only", backing.name());
                Err(Error::new(ErrorKind::ReadOnly, detail))
            }
            _ => self.check_poison(backing),
        }
    }

    fn check_poison(&self, backing: &dyn Backing) -> Result<()> {
        match &self.stopped {
            Some(Stop::Poisoned(why)) => Err(poisoned(&backing.name(), why)),
            _ => Ok(()),
        }
    }

    fn keep_spare(&mut self, segments: Vec<Segment>) {
        for Segment { mut bytes, .. } in segments {
            if self.spare.len() < 2 && bytes.capacity() as u64 <= STAGED_BYTES_MAX {
                bytes.clear();
                self.spare.push(bytes);
            }
        }
    }
}

/// Where a record may begin that would follow `position`.
pub(crate) fn past_margin(position: u64) -> u64 {
    let left = position.next_multiple_of(PAGE_BYTES) - position;
    if left < RECORD_HEADER_BYTES { position + left } else { position }
}

fn poisoned(name: &str, why: &str) -> Error {
    let detail = format!(
        "{name}: nothing more is committed, because a write or sync failed ({why}); reopen the heap"
    );
    Error::new(ErrorKind::Poisoned, detail)
}
