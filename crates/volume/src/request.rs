//! Requests to a volume, and their results.

use bytes::Bytes;

use crate::cache::Dirty;
use crate::error::Result;
use crate::types::{Mode, Tuning, VolumeId};

/// One request to a volume. Offsets and lengths are bytes, at any alignment, within the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Read a range.
    Read {
        /// Where it begins.
        offset: u64,
        /// How long it is; 0 is done at once.
        length: u32,
    },
    /// Write a range.
    Write {
        /// Where it begins.
        offset: u64,
        /// What is written.
        bytes: Bytes,
        /// What its end means.
        durable: Durable,
    },
    /// Make all that was answered before it survive power loss.
    Flush,
    /// The range is no longer needed; it may read as anything until it is written again (ours
    /// reads as zeros where the backing can).
    Trim {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        length: u64,
        /// What its end means.
        durable: Durable,
    },
    /// The range reads as zeros.
    Zero {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        length: u64,
        /// Whether the backing may make a hole of it.
        hole: Hole,
        /// What it may cost.
        cost: Cost,
        /// What its end means.
        durable: Durable,
    },
    /// Bring a range into the cache.
    Prefetch {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        length: u64,
    },
    /// How a range stands in [`crate::Context::Allocation`], as [`crate::Volumes::extents`] tells.
    Allocation {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        length: u64,
        /// Most runs, at least one.
        most: usize,
    },
    /// Write back all that is dirty; ends when what was dirty at its begin is on the backing.
    WriteBack,
    /// Change what the volume does with the cache; ends when it does so. Leaving a lazy mode writes
    /// all back first; requests go on meanwhile.
    SetMode(Mode),
    /// Change options; ends when they hold, and survive power loss.
    Tune(Tuning),
    /// Take the larger size that the backing has now. Writes all back first; requests go on
    /// meanwhile.
    Resize,
    /// Take the volume off the cache; its backing stays. Ends when nothing is left of it. Requests
    /// begun after it fail. `Io` if blocks are dirty that are to be kept.
    Remove(Dirty),
}

/// What the end of a write means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durable {
    /// A later read sees it; it survives power loss after a [`Request::Flush`].
    #[default]
    AtFlush,
    /// It survives power loss (FUA).
    AtOnce,
}

/// Whether zeros may be a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hole {
    /// The backing may give the room back.
    #[default]
    Allowed,
    /// The room stays allocated.
    Forbidden,
}

/// What zeros may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cost {
    /// As much as it takes.
    #[default]
    Any,
    /// Less than a write of them; else the request fails, `Unsupported`, and nothing is done.
    LessThanWrite,
}

/// How a request ended.
#[derive(Debug)]
pub struct Completion {
    /// The volume it was given to.
    pub volume: VolumeId,
    /// The token it was given with.
    pub token: u64,
    /// For reads the bytes, exactly as many as were asked for; for [`Request::Allocation`] runs, as
    /// [`crate::Run::decode`] reads them; else empty.
    pub result: Result<Bytes>,
}
