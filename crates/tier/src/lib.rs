//! Memory in front of flash: one cap for index, buffers and cache; reads answered from memory where
//! they can be, from flash with one device read where not.

mod admission;
mod memory;
mod segment_prefetch;
mod session;
mod statistics;
mod tiered;

pub use admission::Admission;
pub use entresol_flash as flash;
pub use entresol_flash::{
    Compression, Condition, Durability, EncryptionKey, Entry, EntryName, Error, ErrorKind, Expiry,
    FoundAt, Job, JournalAppend, JournalContinuation, JournalRecord, JournalReplay, JournalRoom,
    JournalSequence, JournalState, Key, Lifespan, Listed, Listing, NoteEntry, OpenMode, Operation,
    Outcome, Parallel, Pinning, PutOptions, Reclaim, Result, SamplePlace, Sampled, SegmentAge,
    SegmentGroup, SegmentMap, SegmentUse, Snapshot, SnapshotRead, SnapshotSegment, SpaceId,
    StoreOptions, SyncPoint, Timestamp, Version, VisitEntry, WriteMode,
};
pub use session::{Session, SessionOptions, SessionUsers, Visit};
pub use statistics::{Distribution, Statistics};
pub use tiered::{Budget, Maintenance, SCRATCH_BYTES, Tiered, TieredOptions};
