//! A device in memory: for tests, for RAM tables, and as the fastest medium there is.
//!
//! Invariants:
//! 1. Within each stripe of the locks, overlapping ranges are transferred one after the other, so
//!    no reader sees a half-written sector.
//! 2. Locks are taken one at a time; there is no order to keep.
//!
//! Nothing here survives the process, so `sync` has nothing to do.
#![expect(unsafe_code, reason = "copies to and from mapped memory, under a lock")]

use std::sync::Arc;

use parking_lot::RwLock;

use crate::blocking::{BlockingQueue, Medium};
use crate::buffer::WriteHold;
use crate::device::{Counters, Device, Geometry, Queue, QueueOptions, WriteMode};
use crate::error::{Error, ErrorKind, Result};
use crate::mapping::Mapping;

/// Bytes that one lock guards in a row.
const STRIPE_BYTES: usize = 64 << 10;
/// Locks; stripes share them round-robin.
const LOCK_COUNT: usize = 64;

/// A device of zeroed memory, taken from the system as it is first touched.
#[derive(Debug)]
pub struct MemoryDevice {
    memory: Arc<Memory>,
}

#[derive(Debug)]
struct Memory {
    mapping: Mapping,
    geometry: Geometry,
    counters: Counters,
    locks: Vec<RwLock<()>>,
}

impl MemoryDevice {
    /// A device of `capacity_bytes`, a multiple of 4096 above 0; else `InvalidInput`.
    pub fn new(capacity_bytes: u64) -> Result<MemoryDevice> {
        let geometry = Geometry { capacity_bytes, sector_bytes: 512, sync_unit_bytes: 4096 };
        if capacity_bytes == 0 || !capacity_bytes.is_multiple_of(4096) {
            let detail =
                format!("memory: {capacity_bytes} bytes; expected a multiple of 4096 above 0");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let mapping = Mapping::anonymous(capacity_bytes as usize)?;
        let locks = (0..LOCK_COUNT).map(|_| RwLock::new(())).collect();
        let counters = Counters::default();
        Ok(MemoryDevice { memory: Arc::new(Memory { mapping, geometry, counters, locks }) })
    }
}

impl Device for MemoryDevice {
    fn geometry(&self) -> Geometry {
        self.memory.geometry
    }

    fn name(&self) -> String {
        self.memory.name().to_owned()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.memory.geometry.check_memory("memory", offset, buffer)?;
        self.memory.counters.count_read(buffer.len());
        self.memory.read(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.memory.geometry.check_memory("memory", offset, bytes)?;
        self.memory.counters.count_write(bytes.len(), WriteMode::Flushed);
        // SAFETY: a live slice, readable for the call; the range was checked.
        unsafe { self.memory.copy_in(offset as usize, bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.memory.counters.count_sync();
        Ok(())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.memory.geometry.check("memory", offset, length as usize)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        Ok(Box::new(BlockingQueue::new(Arc::clone(&self.memory), options)?))
    }

    fn counters(&self) -> &Counters {
        &self.memory.counters
    }
}

impl Memory {
    /// Visits the parts of a range with the lock that guards each: `(lock, position, length)`.
    fn parts(
        &self,
        offset: usize,
        length: usize,
    ) -> impl Iterator<Item = (&RwLock<()>, usize, usize)> {
        let end = offset + length;
        let mut at = offset;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let stripe = at / STRIPE_BYTES;
            let part = (end - at).min((stripe + 1) * STRIPE_BYTES - at);
            let from = at;
            at += part;
            Some((&self.locks[stripe % LOCK_COUNT], from, part))
        })
    }

    /// Copies into the device.
    ///
    /// # Safety
    /// `start` is readable for `length` bytes, and the range is within the device.
    unsafe fn copy_in(&self, offset: usize, start: *const u8, length: usize) {
        for (lock, at, part) in self.parts(offset, length) {
            let _guard = lock.write();
            // SAFETY: both ranges are valid by the caller's promise, they cannot overlap since no
            // reference into the mapping leaves this type, and the lock excludes other accesses.
            unsafe {
                let to = self.mapping.start().as_ptr().add(at);
                to.copy_from_nonoverlapping(start.add(at - offset), part);
            }
        }
    }
}

impl Medium for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let (offset, length) = (offset as usize, bytes.len());
        assert!(offset + length <= self.mapping.len(), "range was checked before");
        for (lock, at, part) in self.parts(offset, length) {
            let _guard = lock.read();
            let to = &mut bytes[at - offset..at - offset + part];
            // SAFETY: the range is within the mapping, `to` is exclusive memory outside of it, and
            // the lock excludes writers.
            unsafe {
                let from = self.mapping.start().as_ptr().add(at);
                from.copy_to_nonoverlapping(to.as_mut_ptr(), part);
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &WriteHold, _mode: WriteMode) -> Result<()> {
        let (start, length) = bytes.raw();
        // SAFETY: the hold keeps the memory alive, and the queue checked the range.
        unsafe { self.copy_in(offset as usize, start, length) };
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
