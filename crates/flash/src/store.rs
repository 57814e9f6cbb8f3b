//! The store as callers see it: every call goes on to the engine that its clones share.

use std::sync::Arc;
use std::time::Duration;

use entresol_device::Device;

use crate::engine::Engine;
pub use crate::engine::{
    Budget, JournalRead, JournalReplay, JournalState, Listed, Listing, LogPosition, LogScan,
    Maintenance, SegmentAge, SegmentGroup, SegmentInfo, SegmentMap, Verification,
};
use crate::error::Result;
use crate::options::StoreOptions;
use crate::session::{EntryName, Session, SessionOptions};
use crate::snapshot::Snapshot;
use crate::statistics::{FormerBuffers, StoreStatistics};
use crate::superblock;
use crate::types::{Entry, JournalRecord, JournalSequence, Key, SpaceId, Timestamp};

/// A flash store: never loses an acknowledged entry beyond what its durability allows. With
/// [`crate::Reclaim::Evict`] it is a cache instead. Cheap to clone; thread-safe.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) engine: Arc<Engine>,
}

impl Store {
    /// Shards and bytes of a segment of the store on `device`, which are fixed when it is made;
    /// `None` if there is none that verifies.
    pub fn shape_on(device: &dyn Device) -> Option<(u16, u32)> {
        let superblock = superblock::read(device).ok().flatten()?.superblock;
        Some((superblock.shards, superblock.segment_bytes))
    }

    /// Opens the store on `device`, or makes one, as `options.mode` says. Recovers after a crash.
    ///
    /// Errors: `Incompatible` if the device holds something else, `Corrupt` if both superblocks are
    /// damaged, or gone and a segment is still there, `WrongKey`, `InvalidInput` for options, `Io`.
    pub fn open(device: Arc<dyn Device>, options: StoreOptions, now: Timestamp) -> Result<Store> {
        Ok(Store { engine: Arc::new(Engine::open(device, options, now)?) })
    }

    /// A session for the calling thread.
    pub fn session(&self, options: SessionOptions) -> Result<Session> {
        Session::new(Arc::clone(&self.engine), options)
    }

    /// Entries in `space`, expired ones that were not yet found included. O(1) in entries.
    pub fn count(&self, space: SpaceId) -> u64 {
        self.engine.count(space)
    }

    /// Partitions of `space` that have or had entries, in their order, and how many; likewise.
    pub fn count_partitions(&self, space: SpaceId) -> Vec<(u16, u64)> {
        self.engine.count_partitions(space)
    }

    /// Entries in one partition of `space`, likewise.
    pub fn count_partition(&self, space: SpaceId, partition: u16) -> u64 {
        self.engine.count_partition(space, partition)
    }

    /// Whether a put may have to make room itself before it can be answered: `maintain` has not
    /// kept as many segments free as it aims at.
    pub fn is_short(&self) -> bool {
        self.engine.is_short()
    }

    /// Memory for the index, write buffers, tables and segments read ahead, bytes: what
    /// `statistics` tells of each, added up. O(shards).
    pub fn memory_bytes(&self) -> u64 {
        self.engine.memory_bytes()
    }

    /// Spaces that hold entries, in order.
    pub fn spaces(&self) -> Vec<SpaceId> {
        self.engine.spaces()
    }

    /// Removes all entries of `space`: at once for every reader, durable on return. O(segments).
    pub fn drop_space(&self, space: SpaceId) -> Result<()> {
        self.engine.drop_below(space, None)
    }

    /// Removes all entries of one partition of `space`, likewise.
    pub fn drop_partition(&self, space: SpaceId, partition: u16) -> Result<()> {
        self.engine.drop_below(space, Some(partition))
    }

    /// Does background work: reclaim ahead of need, expiry, notes, periodic sync.
    pub fn maintain(&self, now: Timestamp, budget: Budget) -> Result<Maintenance> {
        self.engine.maintain(now, budget)
    }

    /// On return every write acknowledged before the call survives power loss.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    /// Syncs and writes a checkpoint, so that the next open is fast. Writes after it are refused.
    pub fn close(&self, now: Timestamp) -> Result<()> {
        self.engine.close(now)
    }

    /// Has background work free more room than usual until the next snapshot: in a store that has
    /// been full of what is dead, writes would soon need a segment that the snapshot holds, and it
    /// would be given up before it is read. Whether the room is there: else ask again after some
    /// calls of [`maintain`](Store::maintain), for as long as you have patience.
    pub fn make_room_for_snapshot(&self) -> bool {
        Snapshot::make_room(&self.engine)
    }

    /// The store as it is now, to be read while it goes on. It holds segments from reclaim until
    /// they are read, so it should be read at once, and dropped. See
    /// [`make_room_for_snapshot`](Store::make_room_for_snapshot).
    ///
    /// Errors: `Busy`, while there is another one; `InvalidInput` of a cache, which may lose what
    /// it has; `Poisoned`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::take(&self.engine)
    }

    /// Figures since the store was opened. Waits for the locks of shards, which may be held for as
    /// long as the device takes.
    pub fn statistics(&self) -> StoreStatistics {
        self.engine.statistics()
    }

    /// Likewise, of now if no shard's lock is waited for longer than `patience`; else those of
    /// shards are the latest that anybody asked for.
    pub fn statistics_within(&self, patience: Duration) -> StoreStatistics {
        self.engine.statistics_within(patience)
    }

    /// What the opening found wrong with one of the two copies of the superblock, and what became
    /// of it; `None` if both verify.
    pub fn superblock_damage(&self) -> Option<&str> {
        self.engine.superblock_damage.as_deref()
    }

    /// The device under the store.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.engine.device
    }

    /// The options the store was opened with, those fixed at its making as they were then.
    pub fn options(&self) -> &StoreOptions {
        &self.engine.options
    }

    /// The hash by which the store places `key`: stable for the life of the store.
    pub fn hash(&self, key: Key<'_>) -> u128 {
        crate::record::hash_key(self.engine.hash_seed, key)
    }

    /// What scans call the entry of a key.
    pub fn name(&self, key: Key<'_>) -> EntryName {
        let hash = self.hash(key);
        EntryName::new(self.engine.shard_of(hash), hash)
    }

    /// What became of the write buffers that a former process left.
    pub fn former_buffers(&self) -> &FormerBuffers {
        self.engine.buffers.former()
    }

    /// Times that write buffers were made again since somebody removed them.
    pub fn buffers_remade(&self) -> u64 {
        self.engine.buffers.remade()
    }

    /// What is wrong with where the store's files or its write buffers are, if anything.
    pub fn ground(&self) -> Option<String> {
        self.engine.buffers.ground()
    }

    /// Visits every live entry, segment by segment in the order they were written: large reads,
    /// fast on any device. Entries that are put meanwhile, or moved by reclaim, may or may not be
    /// visited. Damaged records are noted, and the scan goes on.
    pub fn scan_log(
        &self,
        now: Timestamp,
        visit: &mut dyn FnMut(SpaceId, Entry<'_>),
    ) -> Result<LogScan> {
        self.engine.scan_log(&LogPosition::default(), now, visit)
    }

    /// As `scan_log`, of what was put at `since` or later. Reads no segment that was sealed before.
    pub fn scan_log_since(
        &self,
        since: &LogPosition,
        now: Timestamp,
        visit: &mut dyn FnMut(SpaceId, Entry<'_>),
    ) -> Result<LogScan> {
        self.engine.scan_log(since, now, visit)
    }

    /// Where the log goes on: what is put from now on is visited by a scan since then, in this
    /// opening and in later ones.
    pub fn log_position(&self) -> LogPosition {
        self.engine.log_position()
    }

    /// Visits the live entries of `space` by what the footers of segments say of them, without a
    /// read of a record. Entries that are put meanwhile, or moved by reclaim, may be visited twice
    /// or not at all; so may be those whose segment does not verify.
    pub fn list(&self, space: SpaceId, visit: &mut dyn FnMut(Listing)) -> Result<()> {
        self.engine.list(space, visit)
    }

    /// Reads every record of every segment and checks it; changes nothing.
    pub fn verify(&self) -> Result<Verification> {
        self.engine.verify()
    }

    /// Lanes of the journal, one for each shard: records of a lane have an order.
    pub fn journal_lanes(&self) -> u16 {
        self.engine.options.shards
    }

    /// Most bytes of a record of the journal.
    pub fn journal_record_bytes_max(&self) -> usize {
        self.engine.journal_bytes_max()
    }

    /// How a lane of the journal stands.
    ///
    /// Errors: `InvalidInput` for a lane that there is not.
    pub fn journal_state(&self, lane: u16) -> Result<JournalState> {
        self.engine.journal_state(lane)
    }

    /// Says that all records of a lane before the one of the sequence `below` are superseded by
    /// what is durable: a replay leaves them out, and segments that hold no others are released.
    /// Does not wait. After a crash a replay may visit records again that were trimmed since the
    /// newest segment of the lane was opened.
    ///
    /// Errors: `InvalidInput` for a lane that there is not; `Poisoned`.
    pub fn trim_journal(&self, lane: u16, below: JournalSequence) -> Result<()> {
        self.engine.trim_journal(lane, below)
    }

    /// Waits until the segments that [`Store::trim_journal`] released of a lane are free, for good:
    /// no replay visits their records again.
    ///
    /// Errors: `InvalidInput` for a lane that there is not; `Poisoned`.
    pub fn free_journal(&self, lane: u16) -> Result<()> {
        self.engine.free_journal(lane)
    }

    /// Visits the records of a lane from its watermark on, in their order, by reads of whole
    /// segments. What a crash tore at the end was cut off when the store was opened. No lock is
    /// held while `visit` is called; it is not called for what is appended meanwhile.
    ///
    /// Errors: `InvalidInput` for a lane that there is not; `Corrupt` if what stands between them
    /// does not verify, once all records before have been visited.
    pub fn replay_journal(
        &self,
        lane: u16,
        visit: &mut dyn FnMut(JournalRecord<'_>),
    ) -> Result<JournalReplay> {
        self.engine.replay_journal(lane, visit)
    }

    /// As [`Store::replay_journal`], for whoever looks at several segments at the same time: `take`
    /// gets some segments after the other, in their order. A record and what continues it are in
    /// one segment. No lock is held meanwhile, and the device reads the next segments.
    pub fn replay_journal_together(
        &self,
        lane: u16,
        take: &mut dyn FnMut(&mut [JournalRead<'_>]),
    ) -> Result<JournalReplay> {
        self.engine.replay_together(lane, take)
    }

    /// Every segment, in order of shard and number.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.engine.segments()
    }

    /// All segments in about `groups_max` groups of neighbours, and their ages, for whoever looks
    /// at a running store; `None` if a shard's lock would be waited for longer than `patience`.
    pub fn segment_map(&self, groups_max: usize, patience: Duration) -> Option<SegmentMap> {
        self.engine.segment_map(groups_max, patience)
    }
}

impl Session {
    /// The store of this session.
    pub fn store(&self) -> Store {
        Store { engine: Arc::clone(self.engine()) }
    }
}
