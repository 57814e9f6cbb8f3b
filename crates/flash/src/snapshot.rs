//! A snapshot: a store as it was at one moment, read while the store goes on.
//!
//! It is the device as a loss of power could have left it at that moment, had everything that was
//! appended by then come to the device: a superblock, and what segments in use held. So it opens
//! by recovery, as after a crash, and shows every write that was made before it and none that was
//! made after.
//!
//! Invariants:
//! 1. It is taken under the locks of all shards: no write is in one shard and not in another.
//! 2. A segment that it has still to read is not erased (`log/held.rs`); what was appended before
//!    is never changed. If the store needs the room the snapshot is broken, and says so.

use std::sync::Arc;

use entresol_device::IoBuffer;
use parking_lot::{Mutex, MutexGuard};

use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::format::SUPERBLOCK_BYTES;
use crate::log::{HeldSegment, Hold};
use crate::policy::WhenFull;
use crate::shard::Shard;

/// A store as it was at one moment. Thread-safe. Dropped, it holds nothing any more.
#[derive(Debug)]
pub struct Snapshot {
    engine: Arc<Engine>,
    hold: Arc<Hold>,
    superblock: Vec<u8>,
    segments: Vec<SnapshotSegment>,
}

/// A segment of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotSegment {
    /// Where it is on the device, bytes.
    pub at: u64,
    /// Its use: with the store's identity and the place, the name of what it holds once it is
    /// sealed.
    pub sequence: u64,
    /// So many bytes from its beginning on are of the snapshot; zeros follow.
    pub bytes: u64,
    /// Whether nothing is appended to it any more.
    pub sealed: bool,
    shard: u16,
    number: u32,
}

/// A read of a snapshot that has begun: see [`Snapshot::begin_read`].
#[derive(Debug)]
pub struct SnapshotRead {
    segment: SnapshotSegment,
    bytes: Vec<u8>,
    from_device: Option<FromDevice>,
}

/// What is still to be read from the device.
#[derive(Debug)]
struct FromDevice {
    engine: Arc<Engine>,
    /// Of the first byte in `buffer`.
    at: u64,
    buffer: IoBuffer,
    /// What stands before the bytes that are wanted.
    before: usize,
    length: usize,
}

impl SnapshotRead {
    /// Waits for the device, without any lock: a thread that is kept from running meanwhile keeps
    /// nobody waiting.
    ///
    /// Errors: `Io`.
    pub fn wait(&mut self) -> Result<()> {
        let Some(from) = &mut self.from_device else { return Ok(()) };
        from.engine.device.read_at(from.at, &mut from.buffer)?;
        let read = &from.buffer[from.before..][..from.length];
        self.bytes[..from.length].copy_from_slice(read);
        Ok(())
    }
}

impl Snapshot {
    /// Has background work free room for one to come; whether it is there. Nobody waits for more
    /// where no snapshot can be taken.
    pub(crate) fn make_room(engine: &Engine) -> bool {
        if engine.policy.when_full() == WhenFull::MakesRoom
            || engine.held.lock().upgrade().is_some()
        {
            return true;
        }
        let mut is_there = true;
        engine.shards.iter().for_each(|shard| is_there &= shard.lock().log.spare_for_snapshot());
        is_there
    }

    pub(crate) fn take(engine: &Arc<Engine>) -> Result<Snapshot> {
        engine.check_open()?;
        if engine.policy.when_full() == WhenFull::MakesRoom {
            let detail = "a snapshot of a cache, which may lose what it has; expected a store \
                          (`reclaim` = `store`)";
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let mut held = engine.held.lock();
        if held.upgrade().is_some() {
            let detail = "another snapshot of the store is being read; wait until it is dropped";
            return Err(Error::new(ErrorKind::Busy, detail));
        }
        let hold = Arc::new(Hold::default());
        let mut shards: Vec<_> = engine.shards.iter().map(Mutex::lock).collect();
        shards.iter().try_for_each(|shard| shard.log.check_poisoned())?;
        let superblock = superblock_of(engine, &shards)?;
        let mut segments = Vec::new();
        for shard in &mut shards {
            let shape = shard.log.shape();
            let of_shard = |held: HeldSegment| {
                let at = shape.offset_of(held.segment);
                (
                    held.rank,
                    SnapshotSegment {
                        at,
                        sequence: held.sequence,
                        bytes: u64::from(held.bytes),
                        sealed: held.sealed,
                        shard: shape.shard,
                        number: held.segment,
                    },
                )
            };
            segments.extend(shard.log.hold(&hold).into_iter().map(of_shard));
        }
        drop(shards);
        *held = Arc::downgrade(&hold);
        drop(held);
        segments.sort_by_key(|(rank, segment)| (*rank, segment.at));
        let segments = segments.into_iter().map(|(_, segment)| segment).collect();
        Ok(Snapshot { engine: Arc::clone(engine), hold, superblock, segments })
    }

    /// The store's identity.
    pub fn store(&self) -> u64 {
        self.engine.superblock.lock().store
    }

    /// Bytes of the device.
    pub fn device_bytes(&self) -> u64 {
        self.engine.device.geometry().capacity_bytes
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.engine.options.segment_bytes)
    }

    /// What stands at the beginning of the device, and once more right behind that.
    pub fn superblock(&self) -> &[u8] {
        &self.superblock
    }

    /// The segments in use, those first of which the store has use soonest.
    pub fn segments(&self) -> &[SnapshotSegment] {
        &self.segments
    }

    /// Reads a segment from `offset` on into `out`, which is zeros behind the segment's bytes.
    /// Waits for the device.
    ///
    /// Errors: `Busy`, if the store had to give the snapshot up; `InvalidInput`, of a segment that
    /// was let go, or beyond its end; `Io`.
    pub fn read(&self, segment: &SnapshotSegment, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut read = self.begin_read(segment, offset, out.len())?;
        read.wait()?;
        out.copy_from_slice(&self.end_read(read)?);
        Ok(())
    }

    /// Begins to read `length` bytes of a segment from `offset` on: [`SnapshotRead::wait`] goes on,
    /// in any thread, and [`end_read`](Snapshot::end_read) ends it. It does not wait for the
    /// device.
    ///
    /// Errors: as [`read`](Snapshot::read), but for `Io`.
    pub fn begin_read(
        &self,
        segment: &SnapshotSegment,
        offset: u64,
        length: usize,
    ) -> Result<SnapshotRead> {
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| end > self.segment_bytes()) {
            let most = self.segment_bytes();
            let detail = format!("{length} bytes from {offset} on of a segment of {most} bytes");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let mut bytes = vec![0; length];
        let length = segment.bytes.saturating_sub(offset).min(length as u64) as usize;
        let shard = self.engine.shards[usize::from(segment.shard)].lock();
        self.check(&shard, segment)?;
        let start = shard.log.shape().address(segment.number, 0);
        if let Some(memory) = shard.log.in_memory(start) {
            bytes[..length].copy_from_slice(&memory[offset as usize..][..length]);
            return Ok(SnapshotRead { segment: *segment, bytes, from_device: None });
        }
        drop(shard);
        let sector = self.engine.sector_bytes;
        let from = offset / sector * sector;
        let whole = (offset + length as u64).next_multiple_of(sector) - from;
        let from_device = FromDevice {
            engine: Arc::clone(&self.engine),
            at: segment.at + from,
            buffer: IoBuffer::aligned(whole as usize),
            before: (offset - from) as usize,
            length,
        };
        Ok(SnapshotRead { segment: *segment, bytes, from_device: Some(from_device) })
    }

    /// The bytes of a read that [`SnapshotRead::wait`] has carried out, with zeros behind those of
    /// the segment.
    ///
    /// Errors: `Busy` and `InvalidInput` as of [`read`](Snapshot::read).
    pub fn end_read(&self, read: SnapshotRead) -> Result<Vec<u8>> {
        let SnapshotRead { segment, bytes, from_device } = read;
        if from_device.is_some() {
            // It may have been given up meanwhile, and the segment written anew.
            self.check(&self.engine.shards[usize::from(segment.shard)].lock(), &segment)?;
        }
        Ok(bytes)
    }

    /// Lets a segment go that is read, or need not be read. The store may use it again.
    pub fn let_go(&self, segment: &SnapshotSegment) {
        let mut shard = self.engine.shards[usize::from(segment.shard)].lock();
        shard.log.let_go(segment.number, segment.sequence);
    }

    /// Whether the store had to give the snapshot up, since it needed the room.
    pub fn is_broken(&self) -> bool {
        self.hold.is_broken()
    }

    fn check(&self, shard: &MutexGuard<'_, Shard>, segment: &SnapshotSegment) -> Result<()> {
        if self.hold.is_broken() {
            let detail = "the store needed the room that the snapshot held, or was closed; take \
                          another one while more of the store is free, or read it faster";
            return Err(Error::new(ErrorKind::Busy, detail));
        }
        let row = shard.log.segment(segment.number);
        if row.sequence != segment.sequence || !row.held {
            let detail = format!("the segment at byte {} of the device was let go", segment.at);
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut held = self.engine.held.lock();
        // Where one log gave it up, the others still hold their segments.
        self.engine.shards.iter().for_each(|shard| shard.lock().log.let_all_go());
        *held = std::sync::Weak::new();
    }
}

/// The superblock of a device that holds the snapshot and nothing else: no write buffers outlive
/// it, and no boot of a machine is known under which all of its writes ended.
fn superblock_of(engine: &Engine, shards: &[MutexGuard<'_, Shard>]) -> Result<Vec<u8>> {
    let mut superblock = engine.superblock.lock().clone();
    (superblock.opening, superblock.boot) = (0, 0);
    superblock.checkpoint = Vec::new();
    let next = shards.iter().map(|shard| shard.log.next_sequence()).max();
    superblock.next_segment_sequence = superblock.next_segment_sequence.max(next.unwrap_or(1));
    let last = shards.iter().map(|shard| shard.sequence()).max();
    superblock.record_sequence = superblock.record_sequence.max(last.unwrap_or(0));
    let bytes = superblock.encode();
    let bytes = bytes.ok_or_else(|| crate::superblock::too_many_floors(superblock.floors.len()))?;
    debug_assert_eq!(bytes.len(), SUPERBLOCK_BYTES, "a whole copy");
    Ok(bytes)
}
