//! The paths of requests to the units: straight to a device, to a backing that is a file or a
//! server, or through the cache. One thread begins requests and collects completed ones.

use std::ops::{Deref, Range};
use std::os::fd::RawFd;

use bytes::Bytes;
use entresol_device::{Completion, IoBuffer, Queue, WriteBuffer, WriteMode, WriteRequest};
use entresol_volume::backing::{Backing, BackingCompletion, BackingRequest};
use entresol_volume::{Durable, VolumeId};
use entresol_workload::oltp::{BLOCK_BYTES, CacheCounters};

use super::cached::Cached;
use super::report::CacheName;
use super::units::Part;
use crate::failure::{Failure, Outcome};

/// Open ways to all pieces of all units.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    cached: Option<Cached>,
    places: usize,
    of_devices: Vec<Completion>,
    of_backings: Vec<BackingCompletion>,
}

/// The way to one piece.
pub(super) enum Lane {
    /// Direct transfers.
    Device(Box<dyn Queue>),
    /// A file through the page cache, or a server.
    Backing(Box<dyn Backing>),
    /// A volume of the cache.
    Volume(VolumeId),
}

/// A part of a request that is done.
pub(super) struct Done {
    /// The token it was begun with.
    pub(super) token: u64,
    /// What was read.
    pub(super) contents: Contents,
}

/// Bytes that were read, in the memory that they were read into; none after a write.
pub(super) enum Contents {
    Device(IoBuffer),
    Shared(Bytes),
    None,
}

impl Lanes {
    /// Ways for one thread with so many requests in flight.
    pub(super) fn new(lanes: Vec<Lane>, cached: Option<Cached>, places: usize) -> Lanes {
        let (of_devices, of_backings) = (Vec::new(), Vec::new());
        Lanes { lanes, cached, places, of_devices, of_backings }
    }

    /// What the report calls the cache.
    pub(super) fn cache_name(&self) -> Option<&CacheName> {
        self.cached.as_ref().map(Cached::name)
    }

    /// Whether the way of `part` takes so many parts more.
    pub(super) fn has_room(&self, part: &Part, parts: usize) -> bool {
        match &self.lanes[part.device] {
            Lane::Device(queue) => queue.in_flight() + parts <= queue.depth(),
            Lane::Backing(backing) => backing.in_flight() + parts <= self.places,
            Lane::Volume(_) => true,
        }
    }

    /// Begins to read `part`.
    pub(super) fn read(&mut self, token: u64, part: &Part) -> Outcome<()> {
        let length = part.blocks * BLOCK_BYTES as usize;
        match &mut self.lanes[part.device] {
            Lane::Device(queue) => queue.read(token, part.offset, length)?,
            Lane::Backing(backing) => {
                let (offset, length) = (part.offset, length as u32);
                backing.begin(token, BackingRequest::Read { offset, length });
            }
            Lane::Volume(volume) => {
                let cached = self.cached.as_mut().expect("a volume is one of the open cache");
                cached.read(*volume, token, part.offset, length as u32);
            }
        }
        Ok(())
    }

    /// Begins to write the blocks of `part` of a request whose blocks are in `buffer`.
    pub(super) fn write(&mut self, token: u64, part: &Part, buffer: &WriteBuffer) -> Outcome<()> {
        let range = part.range();
        match &mut self.lanes[part.device] {
            Lane::Device(queue) => {
                let (offset, mode) = (part.offset, WriteMode::Flushed);
                queue.write(WriteRequest { token, offset, buffer, range, mode })?;
            }
            Lane::Backing(backing) => {
                let bytes = Bytes::copy_from_slice(&buffer.bytes()[range]);
                let (offset, durable) = (part.offset, Durable::AtFlush);
                backing.begin(token, BackingRequest::Write { offset, bytes, durable });
            }
            Lane::Volume(volume) => {
                let bytes = Bytes::copy_from_slice(&buffer.bytes()[range]);
                let cached = self.cached.as_mut().expect("a volume is one of the open cache");
                cached.write(*volume, token, part.offset, bytes);
            }
        }
        Ok(())
    }

    /// Hands over what was begun and appends what is done, without waiting.
    pub(super) fn collect(&mut self, done: &mut Vec<Done>) -> Outcome<()> {
        for lane in &mut self.lanes {
            match lane {
                Lane::Device(queue) => {
                    queue.reap(0, &mut self.of_devices)?;
                }
                Lane::Backing(backing) => {
                    backing.submit();
                    backing.reap(&mut self.of_backings);
                }
                Lane::Volume(_) => {}
            }
        }
        for completion in self.of_devices.drain(..) {
            completion.result?;
            let contents = completion.buffer.map_or(Contents::None, Contents::Device);
            done.push(Done { token: completion.token, contents });
        }
        for completion in self.of_backings.drain(..) {
            let bytes = completion.result.map_err(|e| Failure::CannotRun(e.to_string()))?;
            done.push(Done { token: completion.token, contents: Contents::Shared(bytes) });
        }
        match &mut self.cached {
            Some(cached) => cached.collect(done),
            None => Ok(()),
        }
    }

    /// Parts that are begun and not done.
    pub(super) fn in_flight(&self) -> usize {
        let of = |lane: &Lane| match lane {
            Lane::Device(queue) => queue.in_flight(),
            Lane::Backing(backing) => backing.in_flight(),
            Lane::Volume(_) => 0,
        };
        let cached = self.cached.as_ref().map_or(0, Cached::in_flight);
        self.lanes.iter().map(of).sum::<usize>() + cached
    }

    /// Descriptors that poll readable once something is done.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let of = |lane: &Lane| match lane {
            Lane::Device(queue) if queue.in_flight() > 0 => queue.poll_fd(),
            Lane::Backing(backing) if backing.in_flight() > 0 => backing.poll_fd(),
            _ => None,
        };
        let cached = self.cached.as_ref().map_or(Vec::new(), Cached::descriptors);
        self.lanes.iter().filter_map(of).chain(cached).collect()
    }

    /// In how many ns [`Lanes::collect`] must be called although nothing is readable.
    pub(super) fn wake_in_ns(&self) -> Option<u64> {
        self.cached.as_ref()?.wake_in_ns()
    }

    /// What the cache counted since it was opened.
    pub(super) fn counters(&self) -> Option<CacheCounters> {
        Some(self.cached.as_ref()?.counters())
    }

    /// Ends the use of the cache, so that the next run finds it warm.
    pub(super) fn close(self) -> Outcome<()> {
        self.cached.map_or(Ok(()), Cached::close)
    }
}

impl Part {
    /// Its bytes, counted within the request.
    pub(super) fn range(&self) -> Range<usize> {
        let start = self.first * BLOCK_BYTES as usize;
        start..start + self.blocks * BLOCK_BYTES as usize
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Contents::Device(buffer) => buffer,
            Contents::Shared(bytes) => bytes,
            Contents::None => &[],
        }
    }
}
