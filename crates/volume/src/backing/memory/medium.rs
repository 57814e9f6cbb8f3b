//! The contents of a medium in memory: visible, durable and unsynced bytes.

use std::ops::Range;

use bytes::Bytes;
use entresol_random::SplitMix;

use super::{Counts, Fault, Kind, Loss, Pace};
use crate::backing::{BackingRequest, Description, ExtentKind};
use crate::error::{Error, ErrorKind, Result};
use crate::request::Durable;

/// Allocation is known for each of these.
pub(super) const UNIT_BYTES: u64 = 4096;

/// A write is torn between two of these.
const SECTOR_BYTES: u64 = 512;

#[derive(Debug)]
pub(super) struct Medium {
    pub(super) description: Description,
    pub(super) visible: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) counts: Counts,
    pub(super) pace: Pace,
    pub(super) random: SplitMix,
    pub(super) faults: Vec<(Fault, SplitMix)>,
    pub(super) without_power: bool,
    /// How often power failed.
    pub(super) life: u64,
    kinds: Vec<ExtentKind>,
    /// Changes that are not durable, in the order of their issue. Those that overlap are never in
    /// flight together, so this is also the order of their completion.
    unsynced: Vec<Unsynced>,
    next_id: u64,
}

/// Bytes that replace others.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// How its range stands afterwards.
    pub(super) kind: ExtentKind,
}

#[derive(Debug)]
struct Unsynced {
    id: u64,
    change: Change,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Issued,
    /// The next flush covers it.
    Completed,
    /// It failed, or the flush that should have covered it did.
    Abandoned,
}

impl Change {
    pub(super) fn zeros(offset: u64, length: u64, kind: ExtentKind) -> Change {
        Change { offset, bytes: vec![0; length as usize], kind }
    }

    fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes.len() as u64
    }
}

impl Medium {
    pub(super) fn new(description: Description) -> Medium {
        let bytes = description.bytes as usize;
        Medium {
            kinds: vec![ExtentKind::Hole; description.bytes.div_ceil(UNIT_BYTES) as usize],
            description,
            visible: vec![0; bytes],
            durable: vec![0; bytes],
            counts: Counts::default(),
            pace: Pace::AtOnce,
            random: SplitMix::new(0),
            faults: Vec::new(),
            without_power: false,
            life: 0,
            unsynced: Vec::new(),
            next_id: 0,
        }
    }

    pub(super) fn count(&mut self, request: &BackingRequest) {
        let counts = &mut self.counts;
        match request {
            BackingRequest::Read { length, .. } => {
                counts.reads += 1;
                counts.read_bytes += u64::from(*length);
            }
            BackingRequest::Write { bytes, .. } => {
                counts.writes += 1;
                counts.written_bytes += bytes.len() as u64;
            }
            BackingRequest::Flush => counts.flushes += 1,
            BackingRequest::Trim { .. } => counts.trims += 1,
            BackingRequest::Zero { .. } => counts.zeroes += 1,
        }
    }

    pub(super) fn check_power(&self, life: u64) -> Result<()> {
        if !self.without_power && life == self.life {
            return Ok(());
        }
        let detail = format!("{}: has lost power; open it again", self.description.identity);
        Err(Error::new(ErrorKind::Unavailable, detail))
    }

    /// Power fails if it was ordered to at the change that was counted last.
    pub(super) fn lose_power(&mut self) -> Result<()> {
        let changes = self.counts.changes();
        let ordered = |fault: &Fault| matches!(fault, Fault::PowerAt(at) if at + 1 == changes);
        self.without_power |= self.faults.iter().any(|(fault, _)| ordered(fault));
        self.check_power(self.life)
    }

    /// Whether the request that was counted last is to fail.
    pub(super) fn check_faults(&mut self, request: &BackingRequest) -> Result<()> {
        let (asked, count) = match request {
            BackingRequest::Read { .. } => (Kind::Read, self.counts.reads),
            BackingRequest::Write { .. } => (Kind::Write, self.counts.writes),
            BackingRequest::Flush => (Kind::Flush, self.counts.flushes),
            BackingRequest::Trim { .. } => (Kind::Trim, self.counts.trims),
            BackingRequest::Zero { .. } => (Kind::Zero, self.counts.zeroes),
        };
        let call = count - 1;
        let (start, length) = request.range().unwrap_or_default();
        let mut fails = false;
        for (fault, random) in &mut self.faults {
            fails |= match *fault {
                Fault::Calls { kind, from, count } => {
                    kind == asked && call >= from && call - from < count
                }
                Fault::Sometimes { kind, one_in, .. } => kind == asked && random.one_in(one_in),
                Fault::Range { kind, ref bytes } => {
                    kind == asked && bytes.start < start + length && start < bytes.end
                }
                Fault::PowerAt(_) => false,
            };
        }
        if !fails {
            return Ok(());
        }
        let detail = format!(
            "{}: {} {call}, of {length} bytes at offset {start}, fails as the test ordered",
            self.description.identity,
            request.name()
        );
        Err(Error::new(ErrorKind::Io, detail))
    }

    pub(super) fn read(&self, offset: u64, length: u32) -> Bytes {
        let start = offset as usize;
        Bytes::copy_from_slice(&self.visible[start..start + length as usize])
    }

    pub(super) fn kind_at(&self, offset: u64) -> ExtentKind {
        self.kinds[(offset / UNIT_BYTES) as usize]
    }

    pub(super) fn issue(&mut self, change: Change) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.unsynced.push(Unsynced { id, change, progress: Progress::Issued });
        id
    }

    /// A change failed: a part of it may be seen, and none is ever durable for certain.
    pub(super) fn fail(&mut self, id: u64) {
        let position = self.position(id);
        let seen = self.part_of(position);
        let unsynced = &mut self.unsynced[position];
        unsynced.progress = Progress::Abandoned;
        write(&mut self.visible, unsynced.change.offset, &unsynced.change.bytes[..seen]);
    }

    /// So many of the first bytes of a change, drawn: whole sectors of the medium, or all.
    fn part_of(&mut self, position: usize) -> usize {
        let change = &self.unsynced[position].change;
        let (offset, length) = (change.offset, change.bytes.len() as u64);
        let drawn = self.random.below(length + 1);
        let end = (offset + drawn) / SECTOR_BYTES * SECTOR_BYTES;
        let seen = if drawn == length { length } else { end.saturating_sub(offset) };
        seen as usize
    }

    /// From now on a change is seen.
    pub(super) fn complete(&mut self, id: u64, durable: Durable) {
        let position = self.position(id);
        let Unsynced { change, progress, .. } = &mut self.unsynced[position];
        *progress = Progress::Completed;
        write(&mut self.visible, change.offset, &change.bytes);
        let range = change.range();
        let kind = change.kind;
        let last = self.kinds.len() as u64;
        let whole = match kind {
            ExtentKind::Data => range.start / UNIT_BYTES..range.end.div_ceil(UNIT_BYTES),
            // The last unit is whole if it is covered up to the end of the medium.
            _ if range.end == self.description.bytes => range.start.div_ceil(UNIT_BYTES)..last,
            _ => range.start.div_ceil(UNIT_BYTES)..range.end / UNIT_BYTES,
        };
        for unit in whole {
            self.kinds[unit as usize] = kind;
        }
        if durable == Durable::AtOnce {
            self.make_durable(&[id]);
        }
    }

    /// The changes that a flush would cover.
    pub(super) fn completed(&self) -> Vec<u64> {
        let completed = self.unsynced.iter().filter(|one| one.progress == Progress::Completed);
        completed.map(|one| one.id).collect()
    }

    /// A flush failed: no later one makes these durable for certain.
    pub(super) fn abandon(&mut self, ids: &[u64]) {
        for unsynced in self.unsynced.iter_mut().filter(|one| ids.contains(&one.id)) {
            unsynced.progress = Progress::Abandoned;
        }
    }

    /// Changes become durable; they may have become so already. Older contents never come back over
    /// them.
    pub(super) fn make_durable(&mut self, ids: &[u64]) {
        for id in ids {
            let Some(position) = self.unsynced.iter().position(|one| one.id == *id) else {
                continue;
            };
            if self.unsynced[position].progress != Progress::Completed {
                continue;
            }
            let done = self.unsynced.remove(position).change;
            write(&mut self.durable, done.offset, &done.bytes);
            for older in self.unsynced[..position].iter_mut() {
                let (ours, theirs) = (done.range(), older.change.range());
                let both = ours.start.max(theirs.start)..ours.end.min(theirs.end);
                if both.start < both.end {
                    let bytes =
                        (both.start - ours.start) as usize..(both.end - ours.start) as usize;
                    let at = both.start - theirs.start;
                    write(&mut older.change.bytes, at, &done.bytes[bytes]);
                }
            }
        }
    }

    /// Power fails, or only the process that used it dies.
    pub(super) fn crash(&mut self, loss: Loss) {
        match loss {
            Loss::None => self.outlive_process(),
            Loss::All => self.lose(&mut |_| false),
            Loss::Drawn(seed) => {
                let mut random = SplitMix::new(seed);
                let mut fate = 0;
                self.lose(&mut |begins| {
                    if begins {
                        fate = random.below(4);
                    }
                    fate == 0 || (fate > 1 && random.one_in(2))
                });
            }
        }
        self.faults.retain(|(fault, _)| !matches!(fault, Fault::PowerAt(_)));
        self.without_power = false;
        self.life += 1;
    }

    /// What is seen stays, and what was under way is done, or in part.
    fn outlive_process(&mut self) {
        let issued = self.unsynced.iter().filter(|one| one.progress == Progress::Issued);
        for id in issued.map(|one| one.id).collect::<Vec<u64>>() {
            if self.random.one_in(2) {
                let position = self.position(id);
                let seen = self.part_of(position);
                self.unsynced[position].change.bytes.truncate(seen);
            }
            self.complete(id, Durable::AtFlush);
        }
    }

    /// `keep` says for each sector of what is not durable whether it is kept; it hears with which
    /// sector a change begins.
    fn lose(&mut self, keep: &mut dyn FnMut(bool) -> bool) {
        let unsynced = std::mem::take(&mut self.unsynced);
        for Unsynced { change, .. } in &unsynced {
            for (offset, bytes) in sectors(change) {
                if keep(offset == change.offset) {
                    write(&mut self.durable, offset, bytes);
                }
            }
        }
        for Unsynced { change, .. } in &unsynced {
            let range = change.range().start as usize..change.range().end as usize;
            self.visible[range.clone()].copy_from_slice(&self.durable[range]);
            for unit in change.offset / UNIT_BYTES..change.range().end.div_ceil(UNIT_BYTES) {
                self.kinds[unit as usize] = ExtentKind::Data;
            }
        }
    }

    fn position(&self, id: u64) -> usize {
        let position = self.unsynced.iter().position(|one| one.id == id);
        position.expect("a change is in the list until it is durable, and power did not fail")
    }
}

/// A change, cut where a power failure may tear it.
fn sectors(change: &Change) -> impl Iterator<Item = (u64, &[u8])> {
    let range = change.range();
    let first = range.start / SECTOR_BYTES;
    (first..range.end.div_ceil(SECTOR_BYTES)).map(move |sector| {
        let start = (sector * SECTOR_BYTES).max(range.start);
        let end = ((sector + 1) * SECTOR_BYTES).min(range.end);
        let bytes = (start - range.start) as usize..(end - range.start) as usize;
        (start, &change.bytes[bytes])
    })
}

fn write(image: &mut [u8], offset: u64, bytes: &[u8]) {
    image[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
}
