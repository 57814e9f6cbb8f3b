//! The log-structured flash engine: index in memory, values on a device.
//!
//! One segment log, two reclaim policies. Entries are appended as records to large segments; an
//! index of eight bytes a record says where each one is; a get costs one device read, verified
//! after the read. Reclaim either copies live records forward (a store) or lets them go (a cache).
//!
//! The engine starts no thread and reads no clock: [`Store::maintain`] does background work when it
//! is called, and time is an argument.

mod buffers;
mod checkpoint;
mod engine;
mod error;
mod format;
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
pub mod index;
mod large;
mod log;
mod notes;
mod options;
mod policy;
mod record;
mod recovery;
mod segment;
mod session;
mod shard;
mod snapshot;
mod statistics;
mod store;
mod superblock;
mod types;
mod unreadable;

pub use error::{Error, ErrorKind, Result};
pub use format::{BUFFER_FILE_HEADER, BufferOwner, MAGIC};
pub use options::{
    Compression, EncryptionKey, Job, OpenMode, Parallel, Reclaim, StoreOptions, WriteMode,
    one_after_another,
};
pub use session::{
    AheadEntry, AheadSegment, EntryName, NoteEntry, ReadAhead, SamplePlace, Sampled, SegmentUse,
    Session, SessionOptions, SessionUsers, SyncPoint, Visit, VisitEntry,
};
pub use snapshot::{Snapshot, SnapshotRead, SnapshotSegment};
pub use statistics::{FormerBuffers, Opened, Sizes, StoreStatistics};
pub use store::{
    Budget, JournalRead, JournalReplay, JournalState, Listed, Listing, LogPosition, LogScan,
    Maintenance, SegmentAge, SegmentGroup, SegmentInfo, SegmentMap, Store, Verification,
};
pub use types::{
    Condition, Durability, Entry, Expiry, FoundAt, JournalAppend, JournalContinuation,
    JournalRecord, JournalRoom, JournalSequence, KEY_BYTES_MAX, Key, Lifespan, Operation, Outcome,
    Pinning, PutOptions, SpaceId, Timestamp, VALUE_BYTES_MAX, Version,
};
