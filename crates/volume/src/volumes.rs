//! The interface for front ends: volumes that take requests and answer them later.

use std::os::fd::RawFd;
use std::sync::Arc;

use bytes::Bytes;

use crate::devices::Devices;
use crate::error::Result;
use crate::request::{Completion, Request};
use crate::types::{Mode, Moment, VolumeId, VolumeOptions};

/// Volumes, owned by one thread. Requests never wait: they are answered by a later
/// [`Volumes::turn`].
///
/// Invariants every implementation keeps:
/// 1. Every submitted request completes exactly once.
/// 2. Of requests that overlap, a later one sees what an earlier one wrote, and writes that overlap
///    take effect in the order they were submitted in.
pub trait Volumes {
    /// The volumes there are, in order of their numbers.
    fn list(&self) -> Vec<VolumeInfo>;

    /// Begins `request`; `token` comes back with its completion.
    fn submit(&mut self, volume: VolumeId, token: u64, request: Request, now: Moment);

    /// Makes progress and appends what has completed. Does not wait. To be called after a batch of
    /// submissions, when a descriptor of [`Volumes::poll_fds`] is readable, and at
    /// [`Volumes::wake_at`].
    fn turn(&mut self, now: Moment, completions: &mut Vec<Completion>);

    /// When to call [`Volumes::turn`] next although no descriptor is readable.
    fn wake_at(&self) -> Option<Moment>;

    /// Descriptors that poll readable when a turn has something to do; the same while it is open,
    /// but for volumes that come and go.
    fn poll_fds(&self) -> Vec<RawFd>;

    /// How a range stands, in runs from `offset` on; at most `most` (at least one). They may end
    /// before the range, where more would have to be looked for; adjacent runs differ. It waits for
    /// the backing where that tells of allocation; [`Request::Allocation`] does not.
    fn extents(
        &mut self,
        volume: VolumeId,
        context: Context,
        range: (u64, u64),
        most: usize,
    ) -> Result<Vec<Run>>;

    /// Adds a volume. Its backing is opened as [`VolumeOptions::backing`] says.
    fn create(&mut self, options: &VolumeOptions, now: Moment) -> Result<VolumeId>;

    /// The devices under them, for whoever watches these from another thread.
    fn devices(&self) -> Arc<Devices>;

    /// Figures of the cache and all volumes, as JSON text (`docs/reference/volume-json.md`).
    fn statistics(&self) -> String;
}

/// A volume, as a client is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its number.
    pub id: VolumeId,
    /// Its name.
    pub name: String,
    /// What people are told of it; may be empty.
    pub description: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// What it does with the cache.
    pub mode: Mode,
    /// Whether it may only be read.
    pub read_only: bool,
    /// Whether it takes [`Request::Trim`] with effect.
    pub can_trim: bool,
    /// The size and alignment of requests that cost least.
    pub preferred_bytes: u32,
}

/// What about a range is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// NBD's `base:allocation`: bit 0, a hole; bit 1, reads as zeros.
    Allocation,
    /// `x-entresol:residency`: bit 0, cached; bit 1, dirty.
    Residency,
}

/// A run of bytes that stand alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Its length in bytes.
    pub length: u64,
    /// Its flags, as [`Context`] says.
    pub flags: u32,
}

/// Bytes of a run that is handed on.
const RUN_BYTES: usize = 12;

impl Run {
    /// Runs as the bytes of a completion.
    pub fn encode(runs: &[Run]) -> Bytes {
        let mut bytes = Vec::with_capacity(runs.len() * RUN_BYTES);
        for Run { length, flags } in runs {
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&flags.to_le_bytes());
        }
        Bytes::from(bytes)
    }

    /// What [`Run::encode`] made bytes of.
    pub fn decode(bytes: &[u8]) -> Vec<Run> {
        let (each, _) = bytes.as_chunks::<RUN_BYTES>();
        let read = |one: &[u8; RUN_BYTES]| {
            let [a, b, c, d, e, f, g, h, flags @ ..] = *one;
            let length = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            Run { length, flags: u32::from_le_bytes(flags) }
        };
        each.iter().map(read).collect()
    }
}
