//! A backing in memory, with faults, delays and power failures, for tests and for volumes that may
//! be lost.
//!
//! The contents belong to a [`MemoryMedium`], which outlives the backings opened on it: a test
//! opens it, uses it, lets power fail ([`MemoryMedium::crash`]) and opens it again. Everything
//! random comes from seeds, so that a failure replays.
//!
//! Invariants:
//! 1. A read sees the completed writes, in the order of their completion.
//! 2. A crash leaves the writes that flushes covered and the durable writes. Of all other writes it
//!    leaves the sectors of 512 bytes that [`Loss`] names.
//! 3. A later flush does not cover a write that a failed flush should have covered.

mod medium;

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use bytes::Bytes;
use entresol_random::SplitMix;
use parking_lot::Mutex;

use crate::backing::{Backing, BackingCompletion, BackingRequest, Description, Extent, ExtentKind};
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Durable, Hole};
use medium::{Change, Medium};

/// Memory that stands for a medium. Clones are the same medium. Thread-safe.
#[derive(Debug, Clone)]
pub struct MemoryMedium {
    medium: Arc<Mutex<Medium>>,
}

/// When requests complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// At the next [`Backing::reap`], in the order they were begun in.
    #[default]
    AtOnce,
    /// After up to so many calls of [`Backing::reap`], in any order.
    Drawn {
        /// What is drawn depends on this alone.
        seed: u64,
        /// Most calls that a request waits for.
        reaps_max: u32,
    },
    /// Not at all, until [`MemoryMedium::set_pace`] says otherwise; [`Backing::wait`] returns with
    /// nothing.
    Never,
}

/// What a power failure does to writes that no flush covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// None: only the process died. What was in flight is done, in part, or not; a power failure
    /// later may still take it.
    None,
    /// All are lost.
    All,
    /// Each is kept, lost or torn, drawn from the seed.
    Drawn(u64),
}

/// A kind of request, for faults and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes.
    Flush,
    /// Trims.
    Trim,
    /// Zeroings.
    Zero,
}

/// An error that is to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Requests of a kind fail, from the so-many-th (the medium's first is 0) on, so many of them.
    Calls {
        /// Which kind.
        kind: Kind,
        /// The first that fails.
        from: u64,
        /// How many fail; `u64::MAX`: all that follow.
        count: u64,
    },
    /// Requests of a kind fail once in so many times, drawn from the seed.
    Sometimes {
        /// Which kind.
        kind: Kind,
        /// What is drawn depends on this alone.
        seed: u64,
        /// One in so many fails, more than 0.
        one_in: u64,
    },
    /// Requests of a kind that touch these bytes fail.
    Range {
        /// Which kind.
        kind: Kind,
        /// The bytes.
        bytes: Range<u64>,
    },
    /// Power is gone from this change on (writes, flushes, trims and zeroings, the medium's first
    /// is 0): it may be kept or lost, it and all after it fail until [`MemoryMedium::crash`].
    PowerAt(u64),
}

/// How many requests a medium was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Trims.
    pub trims: u64,
    /// Zeroings.
    pub zeroes: u64,
}

impl Counts {
    /// Writes, flushes, trims and zeroings: what [`Fault::PowerAt`] counts.
    pub fn changes(&self) -> u64 {
        self.writes + self.flushes + self.trims + self.zeroes
    }
}

impl MemoryMedium {
    /// A medium of so many zeros.
    pub fn new(bytes: usize) -> MemoryMedium {
        let description = Description {
            bytes: bytes as u64,
            identity: format!("memory of {bytes} bytes"),
            version: String::new(),
            alignment: 1,
            request_bytes_max: 32 << 20,
            read_only: false,
            can_trim: true,
            zeroes_fast: true,
            rotational: false,
        };
        MemoryMedium { medium: Arc::new(Mutex::new(Medium::new(description))) }
    }

    /// What openings from now on say of it; its size must stay the same.
    pub fn set_description(&self, description: Description) {
        let mut medium = self.medium.lock();
        assert!(description.bytes == medium.description.bytes, "a medium keeps its size");
        medium.description = description;
    }

    /// When requests complete, from now on.
    pub fn set_pace(&self, pace: Pace) {
        let mut medium = self.medium.lock();
        if let Pace::Drawn { seed, .. } = pace {
            medium.random = SplitMix::new(seed);
        }
        medium.pace = pace;
    }

    /// Orders a fault, besides those ordered already.
    pub fn add_fault(&self, fault: Fault) {
        let mut medium = self.medium.lock();
        let seed = if let Fault::Sometimes { seed, .. } = fault { seed } else { 0 };
        medium.faults.push((fault, SplitMix::new(seed)));
    }

    /// Withdraws all faults. Does not bring power back.
    pub fn clear_faults(&self) {
        self.medium.lock().faults.clear();
    }

    /// Lets power fail and come back, or the process die: what was in flight fails, and what no
    /// flush covered is lost as said. Openings of before stay useless.
    pub fn crash(&self, loss: Loss) {
        self.medium.lock().crash(loss);
    }

    /// Whether power is gone, by [`Fault::PowerAt`].
    pub fn is_without_power(&self) -> bool {
        self.medium.lock().without_power
    }

    /// What reads see.
    pub fn contents(&self) -> Vec<u8> {
        self.medium.lock().visible.clone()
    }

    /// What a crash with [`Loss::All`] would leave.
    pub fn durable_contents(&self) -> Vec<u8> {
        self.medium.lock().durable.clone()
    }

    /// Changes bytes behind everybody's back, durably: damage, or another writer.
    pub fn overwrite(&self, offset: usize, bytes: &[u8]) {
        let mut medium = self.medium.lock();
        medium.visible[offset..offset + bytes.len()].copy_from_slice(bytes);
        medium.durable[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// How many requests it was asked for.
    pub fn counts(&self) -> Counts {
        self.medium.lock().counts
    }

    /// Opens it. Error: `Unavailable` while power is gone, or if the system has no descriptors.
    pub fn open(&self) -> Result<MemoryBacking> {
        let medium = self.medium.lock();
        medium.check_power(medium.life)?;
        let (reader, writer) = std::io::pipe().map_err(|source| {
            let detail = format!("memory: cannot make a pipe to be polled: {source}");
            Error::new(ErrorKind::Unavailable, detail)
        })?;
        Ok(MemoryBacking {
            description: medium.description.clone(),
            life: medium.life,
            medium: Arc::clone(&self.medium),
            gathered: Vec::new(),
            pending: Vec::new(),
            signal: (reader, writer),
        })
    }
}

/// An opened [`MemoryMedium`].
#[derive(Debug)]
pub struct MemoryBacking {
    medium: Arc<Mutex<Medium>>,
    description: Description,
    /// Which life of the medium it was opened in: a crash begins another.
    life: u64,
    gathered: Vec<(u64, BackingRequest)>,
    pending: Vec<Pending>,
    /// Holds one byte while something is pending.
    signal: (PipeReader, PipeWriter),
}

/// A submitted request.
#[derive(Debug)]
struct Pending {
    token: u64,
    work: Result<Work>,
    reaps_left: u32,
}

/// What a request does when it completes.
#[derive(Debug)]
enum Work {
    /// The bytes, if they were read at the submission already.
    Read(u64, u32, Option<Bytes>),
    Change(u64, Durable),
    /// The changes it covers.
    Flush(Vec<u64>),
}

impl Backing for MemoryBacking {
    fn description(&self) -> &Description {
        &self.description
    }

    fn begin(&mut self, token: u64, request: BackingRequest) {
        self.gathered.push((token, request));
    }

    fn submit(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        if self.pending.is_empty() {
            self.signal.1.write_all(&[0]).expect("the pipe is empty, and its reader is ours");
        }
        let mut medium = self.medium.lock();
        for (token, request) in self.gathered.drain(..) {
            let work = self
                .description
                .check(&request)
                .and_then(|()| issue(&mut medium, self.life, request));
            let reaps_left = match medium.pace {
                Pace::Drawn { reaps_max, .. } => {
                    medium.random.below(u64::from(reaps_max) + 1) as u32
                }
                Pace::AtOnce | Pace::Never => 0,
            };
            self.pending.push(Pending { token, work, reaps_left });
        }
    }

    fn reap(&mut self, completions: &mut Vec<BackingCompletion>) {
        let mut medium = self.medium.lock();
        if self.pending.is_empty() || medium.pace == Pace::Never {
            return;
        }
        let mut ready = Vec::new();
        for mut pending in std::mem::take(&mut self.pending) {
            if pending.reaps_left == 0 {
                ready.push(pending);
            } else {
                pending.reaps_left -= 1;
                self.pending.push(pending);
            }
        }
        if matches!(medium.pace, Pace::Drawn { .. }) {
            medium.random.shuffle(&mut ready);
        }
        for Pending { token, work, .. } in ready {
            let result = work.and_then(|work| complete(&mut medium, self.life, work));
            completions.push(BackingCompletion { token, result });
        }
        if self.pending.is_empty() {
            self.signal.0.read_exact(&mut [0]).expect("one byte stands in the pipe");
        }
    }

    fn wait(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.submit();
        let before = completions.len();
        while completions.len() == before && !self.pending.is_empty() {
            if self.medium.lock().pace == Pace::Never {
                return;
            }
            self.reap(completions);
        }
    }

    fn in_flight(&self) -> usize {
        self.gathered.len() + self.pending.len()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.signal.0.as_raw_fd())
    }

    fn allocation(&mut self, (offset, length): (u64, u64), most: usize) -> Result<Vec<Extent>> {
        let mut extents: Vec<Extent> = Vec::new();
        let medium = self.medium.lock();
        let mut add = |length: u64, kind: ExtentKind| match extents.last_mut() {
            Some(last) if last.kind == kind => last.length += length,
            _ => extents.push(Extent { length, kind }),
        };
        let end = offset.saturating_add(length).min(self.description.bytes);
        let mut at = offset;
        while at < end {
            let next = (at / medium::UNIT_BYTES + 1) * medium::UNIT_BYTES;
            add(next.min(end) - at, medium.kind_at(at));
            at = next;
        }
        extents.truncate(most);
        Ok(extents)
    }
}

impl Drop for MemoryBacking {
    /// What was submitted may still reach the medium, as with a server that outlives its client.
    fn drop(&mut self) {
        let mut medium = self.medium.lock();
        for pending in self.pending.drain(..) {
            if let Ok(work @ Work::Change(..)) = pending.work
                && (medium.pace == Pace::AtOnce || medium.random.one_in(2))
            {
                let _nobody_asks = complete(&mut medium, self.life, work);
            }
        }
    }
}

/// Hands a request to the medium.
fn issue(medium: &mut Medium, life: u64, request: BackingRequest) -> Result<Work> {
    medium.count(&request);
    medium.check_power(life)?;
    let (change, durable) = match request {
        BackingRequest::Read { offset, length } => {
            medium.check_faults(&request)?;
            let early = medium.pace != Pace::AtOnce && medium.random.one_in(2);
            let bytes = early.then(|| medium.read(offset, length));
            return Ok(Work::Read(offset, length, bytes));
        }
        BackingRequest::Flush => {
            let covered = medium.completed();
            if let Err(error) = medium.lose_power().and_then(|()| medium.check_faults(&request)) {
                medium.abandon(&covered);
                return Err(error);
            }
            return Ok(Work::Flush(covered));
        }
        BackingRequest::Write { offset, ref bytes, durable } => {
            (Change { offset, bytes: bytes.to_vec(), kind: ExtentKind::Data }, durable)
        }
        BackingRequest::Trim { offset, length } => {
            (Change::zeros(offset, length, ExtentKind::Hole), Durable::AtFlush)
        }
        BackingRequest::Zero { offset, length, hole } => {
            let kind = if hole == Hole::Allowed { ExtentKind::Hole } else { ExtentKind::Zero };
            (Change::zeros(offset, length, kind), Durable::AtFlush)
        }
    };
    let id = medium.issue(change);
    if let Err(error) = medium.lose_power().and_then(|()| medium.check_faults(&request)) {
        medium.fail(id);
        return Err(error);
    }
    Ok(Work::Change(id, durable))
}

fn complete(medium: &mut Medium, life: u64, work: Work) -> Result<Bytes> {
    medium.check_power(life)?;
    match work {
        Work::Read(_, _, Some(bytes)) => return Ok(bytes),
        Work::Read(offset, length, None) => return Ok(medium.read(offset, length)),
        Work::Change(id, durable) => medium.complete(id, durable),
        Work::Flush(covered) => medium.make_durable(&covered),
    }
    Ok(Bytes::new())
}
