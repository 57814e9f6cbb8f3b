//! Memory as the backing of a heap, whose bytes can be watched, copied and damaged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_heap::Result;
use entresol_heap::backing::{Backing, Counters, Site, Survival, Unit};
use parking_lot::Mutex;

const PAGE_BYTES: usize = 4096;

/// A medium in memory.
pub(crate) struct Memory {
    unit: Unit,
    bytes: Mutex<Vec<u8>>,
    watched: Vec<u8>,
    sightings: AtomicU64,
    counters: Counters,
}

impl Memory {
    pub(crate) fn new(unit: Unit) -> Arc<Memory> {
        Memory::with(unit, Vec::new(), Vec::new())
    }

    /// One that counts the writes with `words` in them.
    pub(crate) fn watching(words: &[u8]) -> Arc<Memory> {
        Memory::with(Unit::Page, Vec::new(), words.to_vec())
    }

    fn with(unit: Unit, bytes: Vec<u8>, watched: Vec<u8>) -> Arc<Memory> {
        let (sightings, counters) = (AtomicU64::new(0), Counters::default());
        Arc::new(Memory { unit, bytes: Mutex::new(bytes), watched, sightings, counters })
    }

    /// Another of the same bytes.
    pub(crate) fn copy(&self) -> Arc<Memory> {
        Memory::with(self.unit, self.bytes.lock().clone(), self.watched.clone())
    }

    pub(crate) fn flip(&self, at: u64, mask: u8) {
        self.bytes.lock()[at as usize] ^= mask;
    }

    pub(crate) fn swap_pages(&self, one: u64, other: u64) {
        let mut bytes = self.bytes.lock();
        for at in 0..PAGE_BYTES {
            bytes.swap(one as usize + at, other as usize + at);
        }
    }

    pub(crate) fn sightings(&self) -> u64 {
        self.sightings.load(Ordering::Relaxed)
    }
}

impl Backing for Memory {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn unit(&self) -> Unit {
        self.unit
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let from = offset as usize;
        out.copy_from_slice(&self.bytes.lock()[from..from + out.len()]);
        Ok(())
    }

    fn write(&self, _: Site, offset: u64, bytes: &[u8]) -> Result<()> {
        let is_seen = |words: &[u8]| bytes.windows(words.len()).any(|window| window == words);
        if !self.watched.is_empty() && is_seen(&self.watched) {
            self.sightings.fetch_add(1, Ordering::Relaxed);
        }
        let from = offset as usize;
        self.bytes.lock()[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn zero(&self, site: Site, offset: u64, length: u64) -> Result<()> {
        self.write(site, offset, &vec![0; length as usize])
    }

    fn sync(&self, _: Site) -> Result<()> {
        Ok(())
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        self.bytes.lock().resize(bytes as usize, 0);
        Ok(())
    }

    fn make_room(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn survival(&self) -> Survival {
        Survival::Unknown
    }

    fn release(&self) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
