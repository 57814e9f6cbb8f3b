//! The medium under the simulated device: visible, durable and unsynced bytes.
//!
//! Invariants:
//! 1. `visible` holds what reads see: all completed writes, in the order of their completion.
//! 2. `durable` and the writes in `unsynced` together are all bytes that ever reached the medium. A
//!    write leaves the list only by becoming durable.
//! 3. A durable write takes the sectors it covers away from older unsynced writes: a cache never
//!    writes back older contents over newer ones.
//! 4. A failed sync leaves the writes it should have covered unsynced for good: later syncs do not
//!    cover them, as with kernels that mark pages clean after a failed write-back.

use std::sync::Arc;

use entresol_device::{Error, ErrorKind, Geometry, Result};
use entresol_random::SplitMix;

use crate::crash::{self, CrashChoice, Granularity, Unsynced};
use crate::fault::{Call, Faults};
use crate::image::Image;

#[derive(Debug)]
pub(crate) struct Medium {
    pub(crate) geometry: Geometry,
    pub(crate) random: SplitMix,
    pub(crate) faults: Faults,
    visible: Image,
    durable: Image,
    unsynced: Vec<Write>,
    log: Vec<Call>,
    reads: u64,
    writes: u64,
    crashed: bool,
}

#[derive(Debug)]
struct Write {
    id: u64,
    offset: u64,
    bytes: Arc<[u8]>,
    live: Vec<bool>,
    progress: Progress,
}

impl Write {
    fn unsynced(&self) -> Unsynced<'_> {
        Unsynced { offset: self.offset, bytes: &self.bytes, live: self.live.clone() }
    }
}

/// How far an unsynced write is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Handed over, not completed.
    Issued,
    /// Completed; the next sync covers it.
    Completed,
    /// It failed, or the sync that should have covered it did.
    Abandoned,
}

impl Medium {
    pub(crate) fn new(image: Image, geometry: Geometry, seed: u64) -> Medium {
        Medium {
            geometry,
            random: SplitMix::new(seed),
            faults: Faults::none(),
            visible: image.clone(),
            durable: image,
            unsynced: Vec::new(),
            log: Vec::new(),
            reads: 0,
            writes: 0,
            crashed: false,
        }
    }

    /// Fills `bytes` with what is visible at `offset`.
    pub(crate) fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.check_power()?;
        let read = self.reads;
        self.reads += 1;
        let range = offset..offset + bytes.len() as u64;
        if let Some(bad) = self.faults.unreadable_in(&range) {
            let detail = format!(
                "simulated: read of {} bytes at offset {offset} failed: unreadable sector at {bad}",
                bytes.len()
            );
            return Err(Error::new(ErrorKind::Io, detail));
        }
        let misdirected = self.faults.misdirected_reads.iter().find(|(at, _)| *at == read);
        let from = misdirected.map_or(offset, |&(_, instead)| self.inside(instead, bytes.len()));
        self.visible.read(from, bytes);
        Ok(())
    }

    /// Takes a write over; `complete_write` ends it.
    pub(crate) fn issue_write(&mut self, offset: u64, bytes: Arc<[u8]>) -> Result<u64> {
        let call = self.next_call(Call::Write { offset, length: bytes.len() });
        self.check_power()?;
        let misdirected = self.faults.misdirected_writes.iter().find(|(at, _)| *at == call);
        let to = misdirected.map_or(offset, |&(_, instead)| self.inside(instead, bytes.len()));
        let id = self.writes;
        self.writes += 1;
        let sectors = bytes.len() / self.geometry.sector_bytes as usize;
        let live = vec![true; sectors];
        let length = bytes.len();
        if self.faults.full_from.is_some_and(|from| call >= from) {
            let detail = format!("simulated: no room to write {length} bytes at offset {offset}");
            return Err(Error::new(ErrorKind::Full, detail));
        }
        self.unsynced.push(Write { id, offset: to, bytes, live, progress: Progress::Issued });
        if self.faults.crash_at == Some(call) {
            self.crashed = true;
            self.check_power()?;
        }
        if self.faults.write_fails(call) {
            self.show_part(id);
            self.write(id).progress = Progress::Abandoned;
            let detail = format!("simulated: write of {length} bytes at offset {offset} failed");
            return Err(Error::new(ErrorKind::Io, detail));
        }
        if self.random.one_in(4) {
            self.show_part(id);
        }
        Ok(id)
    }

    /// Ends a write: from now on it is seen in full, and synced if it is a durable one.
    pub(crate) fn complete_write(&mut self, id: u64, durability: Durability) -> Result<()> {
        self.check_power()?;
        let position = self.position(id);
        let mut write = self.unsynced.remove(position);
        self.visible.write(write.offset, &write.bytes);
        self.faults.heal(&(write.offset..write.offset + write.bytes.len() as u64));
        write.progress = Progress::Completed;
        let issued = |write: &Write| write.progress == Progress::Issued;
        let behind = self.unsynced.iter().position(issued).unwrap_or(self.unsynced.len());
        self.unsynced.insert(behind, write);
        if durability == Durability::Synced {
            self.make_durable(&[id]);
        }
        Ok(())
    }

    /// Takes a sync over: the writes it covers.
    pub(crate) fn issue_sync(&mut self) -> Result<Vec<u64>> {
        let call = self.next_call(Call::Sync);
        self.check_power()?;
        if self.faults.crash_at == Some(call) {
            self.crashed = true;
            self.check_power()?;
        }
        let completed = self.unsynced.iter().filter(|write| write.progress == Progress::Completed);
        let covered: Vec<u64> = completed.map(|write| write.id).collect();
        if self.faults.sync_fails(call) {
            for id in covered {
                self.write(id).progress = Progress::Abandoned;
            }
            return Err(Error::new(ErrorKind::Io, "simulated: sync failed"));
        }
        Ok(covered)
    }

    /// Ends a sync.
    pub(crate) fn complete_sync(&mut self, covered: &[u64]) -> Result<()> {
        self.check_power()?;
        self.make_durable(covered);
        Ok(())
    }

    /// A range whose contents no longer matter: they become garbage, durably.
    pub(crate) fn discard(&mut self, offset: u64, length: u64) -> Result<()> {
        let call = self.next_call(Call::Discard { offset, length });
        self.check_power()?;
        if self.faults.crash_at == Some(call) {
            self.crashed = true;
            self.check_power()?;
        }
        let mut garbage = vec![0; length as usize];
        if self.random.one_in(2) {
            SplitMix::new(offset).fill(&mut garbage);
        }
        let id = self.issue_unlogged(offset, garbage.into());
        self.visible.write(offset, &self.unsynced[self.position(id)].bytes.clone());
        self.make_durable(&[id]);
        Ok(())
    }

    pub(crate) fn crash_now(&mut self) {
        self.crashed = true;
    }

    pub(crate) fn is_crashed(&self) -> bool {
        self.crashed
    }

    pub(crate) fn log(&self) -> &[Call] {
        &self.log
    }

    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }

    pub(crate) fn visible(&self) -> &Image {
        &self.visible
    }

    /// Silent corruption: flips bits of one byte wherever it is kept.
    pub(crate) fn flip(&mut self, offset: u64, mask: u8) {
        self.visible.flip(offset, mask);
        self.durable.flip(offset, mask);
        for write in &mut self.unsynced {
            let end = write.offset + write.bytes.len() as u64;
            if (write.offset..end).contains(&offset) {
                Arc::make_mut(&mut write.bytes)[(offset - write.offset) as usize] ^= mask;
            }
        }
    }

    pub(crate) fn crash_choices(&self) -> Vec<CrashChoice> {
        let sectors: Vec<usize> = self.unsynced.iter().map(|write| write.live.len()).collect();
        crash::choices(&sectors)
    }

    pub(crate) fn image_after_crash(&self, choice: CrashChoice) -> Image {
        let mut image = self.durable.clone();
        let writes: Vec<Unsynced<'_>> = self.unsynced.iter().map(Write::unsynced).collect();
        let granularity = Granularity {
            sector: self.geometry.sector_bytes as usize,
            unit: u64::from(self.geometry.sync_unit_bytes),
        };
        crash::apply(&mut image, &writes, choice, granularity);
        image
    }

    fn next_call(&mut self, call: Call) -> u64 {
        if !self.crashed {
            self.log.push(call);
        }
        self.log.len() as u64 - u64::from(!self.crashed)
    }

    fn check_power(&self) -> Result<()> {
        if self.crashed {
            return Err(Error::new(ErrorKind::Io, "simulated: the device has no power"));
        }
        Ok(())
    }

    fn issue_unlogged(&mut self, offset: u64, bytes: Arc<[u8]>) -> u64 {
        let id = self.writes;
        self.writes += 1;
        let live = vec![true; bytes.len() / self.geometry.sector_bytes as usize];
        self.unsynced.push(Write { id, offset, bytes, live, progress: Progress::Issued });
        id
    }

    /// Lets reads see the first sectors of a write that is under way or failed.
    fn show_part(&mut self, id: u64) {
        let position = self.position(id);
        let write = &self.unsynced[position];
        let sectors = self.random.below(write.live.len() as u64 + 1) as usize;
        let length = sectors * self.geometry.sector_bytes as usize;
        self.visible.write(write.offset, &write.bytes[..length]);
    }

    fn make_durable(&mut self, ids: &[u64]) {
        let sector = self.geometry.sector_bytes as usize;
        while let Some(position) = self.unsynced.iter().position(|write| ids.contains(&write.id)) {
            let write = self.unsynced.remove(position);
            for (index, _) in write.live.iter().enumerate().filter(|(_, live)| **live) {
                let bytes = &write.bytes[index * sector..(index + 1) * sector];
                self.durable.write(write.offset + (index * sector) as u64, bytes);
            }
            let written = write.offset..write.offset + write.bytes.len() as u64;
            for older in &mut self.unsynced[..position] {
                for (index, live) in older.live.iter_mut().enumerate() {
                    *live &= !written.contains(&(older.offset + (index * sector) as u64));
                }
            }
        }
    }

    fn position(&self, id: u64) -> usize {
        let position = self.unsynced.iter().position(|write| write.id == id);
        position.expect("a write stays in the list until it is durable")
    }

    fn write(&mut self, id: u64) -> &mut Write {
        let position = self.position(id);
        &mut self.unsynced[position]
    }

    /// The nearest place to `offset` where `length` bytes fit.
    fn inside(&self, offset: u64, length: usize) -> u64 {
        let sector = u64::from(self.geometry.sector_bytes);
        offset.min(self.geometry.capacity_bytes - length as u64) / sector * sector
    }
}

/// Whether completion means durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Flushed,
    Synced,
}
