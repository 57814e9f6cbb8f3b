//! Filling a target before it is tested: zeros, then random contents that describe themselves.
//!
//! A fresh drive answers reads of unwritten sectors without touching its flash, and takes writes
//! without making room. Both passes write every sector, the last ones too, and end with a sync.
//!
//! The target shows how far a preparation got: each piece of [`PIECE_BYTES`] ends with a unit that
//! says which run and pass wrote it, and pieces are written in order. A stopped preparation goes on
//! a little before the place where it stopped.

mod survey;

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_device::{
    Completion, Device, IoBuffer, Queue, QueueOptions, WriteBuffer, WriteMode, WriteRequest,
};
use entresol_workload::{Random, mix64};

use crate::load::{Content, Error, Marking, Place, Result, Target, UNIT_BYTES, fresh_number};
pub use survey::{Survey, survey};

/// What a preparation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// All of it.
    Whole,
    /// It was stopped; the next one goes on from there.
    Stopped,
}

/// One way over the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Zeros are written.
    Zeros,
    /// Random contents are written.
    Random,
    /// Everything is read and judged.
    Verify,
}

/// How far a pass is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassProgress {
    /// Which.
    pub pass: Pass,
    /// Bytes done; those of an earlier run count.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// What reading everything found, in units of 512 bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// As they were written.
    pub good: u64,
    /// No preparation and no load wrote them.
    pub foreign: u64,
    /// Something else than was written there.
    pub wrong: u64,
    /// Could not be read.
    pub unreadable: u64,
    /// The first that is wrong or unreadable, in words.
    pub first: Option<String>,
}

/// Bytes of one write.
pub const PIECE_BYTES: u64 = 1 << 20;
/// Pieces in flight.
const DEPTH: usize = 16;
/// The generation that pieces of the pass of zeros end with.
const ZEROS: u32 = u32::MAX;
/// The generation of the random pass.
const RANDOM: u32 = 0;

/// Prepares `target`, or goes on with a preparation that was stopped. `report` hears how far it is;
/// `stop` ends it early.
///
/// # Errors
/// The target fails a write or a sync.
pub fn prepare(
    target: &Target,
    stop: &AtomicBool,
    report: &mut dyn FnMut(PassProgress),
) -> Result<Prepared> {
    let (mut run, mut pass, mut from) = (fresh_number(), Pass::Zeros, 0);
    match survey(target)? {
        Survey::Unprepared | Survey::Prepared { .. } => {}
        Survey::Zeroing { run: begun, done_bytes } => (run, from) = (begun, done_bytes),
        Survey::Randomizing { run: begun, done_bytes } => {
            (run, pass, from) = (begun, Pass::Random, done_bytes);
        }
    }
    let marking = Marking::Described { run };
    let content = Content::new(mix64(run), 100, marking);
    if pass == Pass::Zeros {
        let filled = fill(target, (Pass::Zeros, from), &content, stop, report)?;
        if filled == Prepared::Stopped {
            return Ok(filled);
        }
        from = 0;
    }
    fill(target, (Pass::Random, from), &content, stop, report)
}

/// Reads all of `target` and judges it; `None`: it was stopped.
///
/// # Errors
/// The system refuses a queue. Reads that fail are counted.
pub fn verify(
    target: &Target,
    stop: &AtomicBool,
    report: &mut dyn FnMut(PassProgress),
) -> Result<Option<Verification>> {
    let device = device_of(target)?;
    let content = Content::new(1, 100, Marking::Described { run: 0 });
    let total_bytes = device.geometry().capacity_bytes;
    let mut queue = open_queue(device)?;
    let mut found = Verification::default();
    let mut completions = Vec::new();
    let (mut next, mut done_bytes) = (0, 0);
    while done_bytes < total_bytes {
        while next < total_bytes && queue.in_flight() < DEPTH {
            let length = PIECE_BYTES.min(total_bytes - next);
            queue.read(next, next, length as usize).map_err(system)?;
            next += length;
        }
        queue.reap(1, &mut completions).map_err(system)?;
        for completion in completions.drain(..) {
            let offset = completion.token;
            let length = PIECE_BYTES.min(total_bytes - offset);
            done_bytes += length;
            match (&completion.result, &completion.buffer) {
                (Ok(()), Some(bytes)) => found.add(&content, target, offset, bytes),
                (Err(error), _) => {
                    found.unreadable += length / UNIT_BYTES as u64;
                    found.first.get_or_insert_with(|| error.to_string());
                }
                (Ok(()), None) => {}
            }
        }
        report(PassProgress { pass: Pass::Verify, done_bytes, total_bytes });
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

impl Verification {
    /// Whether all is as a preparation and loads wrote it.
    pub fn is_good(&self) -> bool {
        self.foreign == 0 && self.wrong == 0 && self.unreadable == 0
    }

    fn add(&mut self, content: &Content, target: &Target, offset: u64, bytes: &[u8]) {
        for (index, unit) in bytes.chunks(UNIT_BYTES).enumerate() {
            let offset = offset + (index * UNIT_BYTES) as u64;
            let place = Place { device: target.identity(), offset };
            let judged = content.verify(place, unit);
            self.good += judged.good;
            self.foreign += judged.foreign;
            if let Some(wrong) = judged.wrong {
                self.wrong += 1;
                self.first.get_or_insert_with(|| format!("{}: {wrong}", target.name()));
            } else if judged.foreign > 0 {
                self.first.get_or_insert_with(|| {
                    format!("{}: nothing of ours is at offset {offset}", target.name())
                });
            }
        }
    }
}

/// One pass over the target from `from` on.
fn fill(
    target: &Target,
    (pass, from): (Pass, u64),
    content: &Content,
    stop: &AtomicBool,
    report: &mut dyn FnMut(PassProgress),
) -> Result<Prepared> {
    let device = device_of(target)?;
    let total_bytes = device.geometry().capacity_bytes;
    let mut queue = open_queue(device)?;
    let mut idle: Vec<WriteBuffer> = (0..DEPTH)
        .map(|_| WriteBuffer::anonymous(PIECE_BYTES as usize))
        .collect::<entresol_device::Result<_>>()
        .map_err(system)?;
    let mut writing: Vec<(u64, WriteBuffer)> = Vec::new();
    let mut random = Random::new(mix64(from ^ fresh_number()));
    let mut completions: Vec<Completion> = Vec::new();
    let (mut next, mut done_bytes) = (from, from);
    while done_bytes < total_bytes {
        let stopped = stop.load(Ordering::Relaxed);
        if stopped && writing.is_empty() {
            device.sync().map_err(system)?;
            return Ok(Prepared::Stopped);
        }
        while let Some(mut buffer) = idle.pop_if(|_| !stopped && next < total_bytes) {
            let length = PIECE_BYTES.min(total_bytes - next) as usize;
            let place = Place { device: target.identity(), offset: next };
            fill_piece(content, (pass, place), &mut random, &mut buffer.bytes_mut()[..length]);
            let request = WriteRequest {
                token: next,
                offset: next,
                buffer: &buffer,
                range: 0..length,
                mode: WriteMode::Flushed,
            };
            queue.write(request).map_err(system)?;
            writing.push((next, buffer));
            next += length as u64;
        }
        queue.reap(1, &mut completions).map_err(system)?;
        for completion in completions.drain(..) {
            completion.result.map_err(system)?;
            done_bytes += PIECE_BYTES.min(total_bytes - completion.token);
            if let Some(at) = writing.iter().position(|(token, _)| *token == completion.token) {
                idle.push(writing.swap_remove(at).1);
            }
        }
        report(PassProgress { pass, done_bytes, total_bytes });
    }
    fill_tail(target, total_bytes, (content, pass), &mut random)?;
    device.sync().map_err(system)?;
    Ok(Prepared::Whole)
}

/// Sectors behind the last whole 4 KiB, which loads do not use.
fn fill_tail(
    target: &Target,
    from: u64,
    (content, pass): (&Content, Pass),
    random: &mut Random,
) -> Result<()> {
    let whole = target.whole_bytes() / UNIT_BYTES as u64 * UNIT_BYTES as u64;
    let Some(file) = target.blocking().filter(|_| whole > from) else { return Ok(()) };
    let mut bytes = IoBuffer::aligned((whole - from) as usize);
    let place = Place { device: target.identity(), offset: from };
    fill_piece(content, (pass, place), random, &mut bytes);
    file.write_all_at(&bytes, from).map_err(|error| {
        let length = bytes.len();
        let name = target.name();
        Error::System(format!("{name}: write of {length} bytes at offset {from} failed: {error}"))
    })
}

fn fill_piece(
    content: &Content,
    (pass, place): (Pass, Place),
    random: &mut Random,
    bytes: &mut [u8],
) {
    if pass == Pass::Random {
        content.fill(random, place, RANDOM, bytes);
        return;
    }
    let last = bytes.len() - UNIT_BYTES;
    let end = Place { offset: place.offset + last as u64, ..place };
    let (zeros, unit) = bytes.split_at_mut(last);
    zeros.fill(0);
    if place.offset == 0 && zeros.len() >= UNIT_BYTES {
        zeros[..crate::load::OWN_MAGIC.len()].copy_from_slice(crate::load::OWN_MAGIC);
    }
    content.fill(random, end, ZEROS, unit);
}

fn device_of(target: &Target) -> Result<&dyn Device> {
    target.device().ok_or_else(|| {
        Error::Plan(format!("{}: is a file of the page cache; it is not prepared", target.name()))
    })
}

fn open_queue(device: &dyn Device) -> Result<Box<dyn Queue>> {
    device.queue(QueueOptions { depth: DEPTH, buffer_bytes: 0 }).map_err(system)
}

fn system(error: entresol_device::Error) -> Error {
    Error::System(error.to_string())
}

#[cfg(test)]
mod tests;
