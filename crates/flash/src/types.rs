//! The nouns that cross the engine's surface: keys, entries, operations and their outcomes.

use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// Longest key, bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// Longest value, bytes.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// A table of entries inside one store. Spaces share segments, memory and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SpaceId(pub u16);

/// Milliseconds since the Unix epoch. Time is always an argument: the engine reads no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(pub u64);

/// Identifies one put of a key; grows with each put within a shard and survives reclaim and
/// restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u64);

/// Names an entry: its space, the caller's partition number within the space (0 where the caller
/// has none; it must be a function of the key), and the key's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key<'a> {
    /// The table.
    pub space: SpaceId,
    /// The caller's partition.
    pub partition: u16,
    /// 1 byte to [`KEY_BYTES_MAX`].
    pub bytes: &'a [u8],
}

impl<'a> Key<'a> {
    /// A key in `space`, partition 0.
    pub fn new(space: SpaceId, bytes: &'a [u8]) -> Key<'a> {
        Key { space, partition: 0, bytes }
    }
}

/// Whose entries: a space and a partition of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Owner {
    pub space: SpaceId,
    pub partition: u16,
}

impl Key<'_> {
    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        Owner { space: self.space, partition: self.partition }
    }
}

/// When an entry ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expiry {
    /// Absent from this moment on.
    pub at: Option<Timestamp>,
    /// Absent once it was neither read nor written for this many seconds (kept to within an
    /// eighth).
    pub idle_seconds: Option<NonZeroU32>,
}

/// What must hold for a write to happen; tested and applied as one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Condition {
    /// Nothing.
    #[default]
    Always,
    /// The key has no entry.
    Absent,
    /// The key has an entry.
    Present,
    /// The key's entry is of this version.
    Version(Version),
}

impl Condition {
    /// Whether it holds where the entry is of the version `current`, or where there is none.
    pub(crate) fn holds(self, current: Option<Version>) -> bool {
        match self {
            Condition::Always => true,
            Condition::Absent => current.is_none(),
            Condition::Present => current.is_some(),
            Condition::Version(version) => current == Some(version),
        }
    }
}

/// Whether a cache may evict the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinning {
    /// A cache may evict it.
    #[default]
    Evictable,
    /// Only a remove or expiry ends it.
    Pinned,
}

/// How long a record is expected to live before it is replaced or removed. Records of like lifespan
/// share segments, so that reclaim copies few of them. A cache takes no note of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifespan {
    /// As what the record replaces lets expect.
    #[default]
    Learned,
    /// Short.
    Short,
    /// Long.
    Long,
}

/// How an entry is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PutOptions {
    /// When it ends.
    pub expiry: Expiry,
    /// What must hold.
    pub condition: Condition,
    /// Whether a cache may evict it.
    pub pinning: Pinning,
    /// A byte of the caller's that travels with the value (the server keeps the value's type here).
    pub label: u8,
    /// The durability of this put; `None`: the store's.
    pub durability: Option<Durability>,
    /// How long it is expected to live. The first put with a hint raises the format of the store,
    /// which blocks for a few syncs once in its life.
    pub lifespan: Lifespan,
}

/// Where a get found an entry: what [`Operation::Replace`] and [`Operation::RemoveFound`] need not
/// look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundAt {
    /// The half of the key's hash that the index does not use.
    pub(crate) hash: u64,
    pub(crate) address: u64,
    pub(crate) record_bytes: u64,
    pub(crate) segment_sequence: NonZeroU64,
    pub(crate) version: Version,
}

/// What survives, once a write was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// In this process's memory: lost with the process.
    Memory,
    /// Survives the death of the process (`kill -9`), not of the machine: `SW_CRASH_SAFE`.
    Process,
    /// Handed to the device; what its volatile cache holds may be lost with power.
    Flushed,
    /// As `Process`, and synced at least every so many milliseconds.
    Periodic(NonZeroU32),
    /// Survives power loss: `HW_CRASH_SAFE`. Concurrent writers share one sync.
    Synced,
}

impl FromStr for Durability {
    type Err = Error;

    /// Reads `memory`, `process`, `flushed`, `periodic:MILLISECONDS` or `synced`.
    fn from_str(text: &str) -> Result<Durability> {
        let periodic = |text: &str| {
            let period = text.strip_prefix("periodic:")?;
            period.strip_suffix("ms").unwrap_or(period).parse().ok().map(Durability::Periodic)
        };
        match text {
            "memory" => Ok(Durability::Memory),
            "process" => Ok(Durability::Process),
            "flushed" => Ok(Durability::Flushed),
            "synced" => Ok(Durability::Synced),
            other => periodic(other).ok_or_else(|| {
                let detail = format!(
                    "expected memory, process, flushed, periodic:MS or synced, found '{other}'"
                );
                Error::new(ErrorKind::InvalidInput, detail)
            }),
        }
    }
}

/// One thing to do, given to `Session::submit`.
#[derive(Debug, Clone, Copy)]
pub enum Operation<'a> {
    /// Read an entry.
    Get {
        /// Whose.
        key: Key<'a>,
    },
    /// Write an entry.
    Put {
        /// Whose.
        key: Key<'a>,
        /// 0 bytes to [`VALUE_BYTES_MAX`].
        value: &'a [u8],
        /// How.
        options: PutOptions,
    },
    /// Remove an entry.
    Remove {
        /// Whose.
        key: Key<'a>,
        /// What must hold (`Absent` makes no sense and is refused).
        condition: Condition,
    },
    /// Write an entry in place of one that a get has just found: without a read, and with nothing
    /// left to be checked, if it still stands where it was found. Else, or under a condition, as
    /// [`Operation::Put`].
    Replace {
        /// Whose.
        key: Key<'a>,
        /// 0 bytes to [`VALUE_BYTES_MAX`].
        value: &'a [u8],
        /// How.
        options: PutOptions,
        /// What the get gave with the entry of the key.
        found: FoundAt,
    },
    /// Remove an entry that a get has just found, without a read if it still stands there. Else as
    /// [`Operation::Remove`] without a condition.
    RemoveFound {
        /// Whose.
        key: Key<'a>,
        /// What the get gave with the entry of the key.
        found: FoundAt,
    },
    /// Remove an entry that may be there, without a read: the record that the index presumes to be
    /// the key's is hidden, as by a put, until that is checked. Answered with
    /// [`Outcome::Missing`], or with [`Outcome::Removed`] where it had to be read.
    Discard {
        /// Whose.
        key: Key<'a>,
    },
    /// Change when an entry ends; the value stays. It has a new version, so that who read it before
    /// does not write its old end back.
    Touch {
        /// Whose.
        key: Key<'a>,
        /// The new end.
        expiry: Expiry,
        /// What must hold (`Absent` makes no sense and is refused).
        condition: Condition,
    },
}

/// How an operation ended. Slices are valid during the visit only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Get: the entry.
    Found(Entry<'a>),
    /// Get: the entry takes more than the session may read of one; it was not read to its end.
    Larger {
        /// Bytes that it takes, or more.
        bytes: u64,
    },
    /// Get, remove, touch: there is no such entry.
    Missing,
    /// Put: done, at the durability asked for.
    Stored {
        /// The new entry's version.
        version: Version,
    },
    /// Put, remove or touch: the condition does not hold; nothing was changed.
    Refused {
        /// The version that is there, if any.
        current: Option<Version>,
    },
    /// Remove: gone, at the store's durability.
    Removed {
        /// The version that was there.
        version: Version,
    },
    /// Touch: done.
    Touched {
        /// The entry's new version.
        version: Version,
    },
    /// Record of the journal: appended, at the durability asked for.
    Journaled {
        /// Its place in the order of its lane.
        sequence: JournalSequence,
        /// The record that it continues, by the record's own sequence; `sequence`, if none.
        head: JournalSequence,
    },
}

/// A key and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key's bytes.
    pub key: &'a [u8],
    /// The value's bytes.
    pub value: &'a [u8],
    /// Which put wrote it.
    pub version: Version,
    /// The caller's byte.
    pub label: u8,
    /// When it ends.
    pub expiry: Expiry,
    /// Whether a cache may evict it.
    pub pinning: Pinning,
    /// Where a get found it on flash; `None`: it was not a get, or memory answered.
    pub found: Option<FoundAt>,
}

/// The place of a record in the order of its lane of the journal. Grows with each append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct JournalSequence(pub u64);

/// A record for the journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalAppend<'a> {
    /// The lane, below [`crate::Store::journal_lanes`]. Each has an order of its own.
    pub lane: u16,
    /// The caller's number, given back with the record.
    pub owner: u64,
    /// At most [`crate::Store::journal_record_bytes_max`].
    pub bytes: &'a [u8],
    /// The durability of the append; `None`: the store's.
    pub durability: Option<Durability>,
    /// How it may continue the record before it.
    pub continues: Option<JournalContinuation<'a>>,
    /// What it may take of the lane.
    pub room: JournalRoom,
}

/// What an append may take of the segments that its lane may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalRoom {
    /// All but so many bytes: it is refused as `Full` where it would leave fewer. Those are for
    /// appends that leave less, which make room.
    Leaving(u32),
    /// All, and a few segments more, which the lane gives back as it is trimmed. For appends
    /// without which it could not be trimmed: what others left may be gone, as each opening begins
    /// a segment of its own.
    Beyond,
}

/// What is appended in place of the bytes of a record where the last record of the lane is the one
/// that is thought to be, and can be continued. It takes 8 bytes beside its own, where a record
/// takes 40 and is aligned to 32. It is there only if all that it continues is.
#[derive(Debug, Clone, Copy)]
pub struct JournalContinuation<'a> {
    /// The last append of the lane.
    pub after: JournalSequence,
    /// Its bytes, at least one; it has the owner of the record that it continues. They may leave
    /// out what can be known from what they continue.
    /// Whoever leaves out anything trims by the sequences of records alone, not by those of what
    /// continues them.
    pub bytes: &'a [u8],
}

/// A record of the journal, or what continues one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalRecord<'a> {
    /// Its place in the order of its lane.
    pub sequence: JournalSequence,
    /// The record that it continues, by the record's own sequence; `sequence`, if none.
    pub head: JournalSequence,
    /// The caller's number.
    pub owner: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}
