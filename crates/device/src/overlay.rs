//! A device of which some ranges are in memory: writes stay in memory, and reads see them.
//!
//! It is for a caller that may not write to a device, but has to show the contents that belong
//! there.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::device::{Completion, Counters, Device, Geometry, Queue, QueueOptions, WriteRequest};
use crate::error::{Error, ErrorKind, Result};
use crate::pending::PendingIo;
use crate::place::{Ground, Place};

/// A device whose writes go to memory. Its queues read.
pub struct OverlayDevice {
    under: Arc<dyn Device>,
    written: Arc<Written>,
}

/// Ranges by their offset; none overlaps another.
#[derive(Default)]
struct Written(RwLock<BTreeMap<u64, Box<[u8]>>>);

impl Written {
    /// Puts what was written of the range at `offset` over `bytes`.
    fn show(&self, offset: u64, bytes: &mut [u8]) {
        let end = offset + bytes.len() as u64;
        for (start, written) in self.0.read().range(..end).rev() {
            let written_end = start + written.len() as u64;
            if written_end <= offset {
                break;
            }
            let (from, to) = (offset.max(*start), end.min(written_end));
            bytes[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&written[(from - start) as usize..(to - start) as usize]);
        }
    }
}

impl OverlayDevice {
    /// All of `under`, with nothing over it.
    pub fn new(under: Arc<dyn Device>) -> OverlayDevice {
        OverlayDevice { under, written: Arc::default() }
    }
}

impl Device for OverlayDevice {
    fn geometry(&self) -> Geometry {
        self.under.geometry()
    }

    fn name(&self) -> String {
        self.under.name()
    }

    fn places(&self) -> Vec<Place> {
        self.under.places()
    }

    fn ground(&self) -> Ground {
        self.under.ground()
    }

    fn is_file(&self) -> bool {
        self.under.is_file()
    }

    fn answers_at_once(&self, length: usize) -> bool {
        self.under.answers_at_once(length)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.under.read_at(offset, buffer)?;
        self.written.show(offset, buffer);
        Ok(())
    }

    /// A range that begins where a former one did takes its place.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.geometry().check(&self.name(), offset, bytes.len())?;
        let mut ranges = self.written.0.write();
        let before = ranges.range(..offset + bytes.len() as u64).next_back();
        let overlaps = before.is_some_and(|(start, written)| {
            *start != offset && start + written.len() as u64 > offset
        });
        if overlaps {
            return Err(only_read(&self.name()));
        }
        ranges.insert(offset, bytes.into());
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, _offset: u64, _length: u64) -> Result<()> {
        Err(only_read(&self.name()))
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let (under, written) = (self.under.queue(options)?, Arc::clone(&self.written));
        Ok(Box::new(OverlayQueue { under, written, reads: Mutex::default() }))
    }

    fn oldest_pending(&self, now: Duration) -> Option<PendingIo> {
        self.under.oldest_pending(now)
    }

    fn counters(&self) -> &Counters {
        self.under.counters()
    }
}

struct OverlayQueue {
    under: Box<dyn Queue>,
    written: Arc<Written>,
    /// Token and offset of the reads in flight by the token that the queue below has.
    reads: Mutex<Vec<Option<(u64, u64)>>>,
}

impl OverlayQueue {
    fn show(&self, completions: &mut [Completion]) {
        let mut reads = self.reads.lock();
        for completion in completions {
            let Some((token, offset)) = reads[completion.token as usize].take() else { continue };
            completion.token = token;
            if let Some(buffer) = &mut completion.buffer {
                self.written.show(offset, buffer);
            }
        }
    }
}

impl Queue for OverlayQueue {
    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()> {
        let reads = self.reads.get_mut();
        let free = reads.iter().position(Option::is_none).unwrap_or_else(|| {
            reads.push(None);
            reads.len() - 1
        });
        self.under.read(free as u64, offset, length)?;
        reads[free] = Some((token, offset));
        Ok(())
    }

    fn write(&mut self, _request: WriteRequest<'_>) -> Result<()> {
        Err(only_read("an overlay"))
    }

    fn sync(&mut self, _token: u64) -> Result<()> {
        Err(only_read("an overlay"))
    }

    fn submit(&mut self) -> Result<()> {
        self.under.submit()
    }

    fn reap(&mut self, wait_for: usize, completions: &mut Vec<Completion>) -> Result<()> {
        let before = completions.len();
        let reaped = self.under.reap(wait_for, completions);
        self.show(&mut completions[before..]);
        reaped
    }

    fn in_flight(&self) -> usize {
        self.under.in_flight()
    }

    fn depth(&self) -> usize {
        self.under.depth()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.under.poll_fd()
    }
}

fn only_read(name: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("{name} was opened for reading only"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::IoBuffer;
    use crate::memory::MemoryDevice;

    #[test]
    fn what_is_written_over_a_device_is_read_and_the_device_stays_as_it_was() {
        let under = Arc::new(MemoryDevice::new(1 << 20).unwrap());
        let mut bytes = IoBuffer::aligned(64 << 10);
        bytes.fill(1);
        under.write_at(0, &bytes).unwrap();
        let over = OverlayDevice::new(Arc::<MemoryDevice>::clone(&under));
        bytes.fill(2);
        over.write_at(16 << 10, &bytes[..8192]).unwrap();
        over.write_at(32 << 10, &bytes[..4096]).unwrap();
        assert!(over.write_at(20 << 10, &bytes[..8192]).is_err(), "half over another");
        let at = |bytes: &[u8], kib: usize| bytes[kib << 10];
        over.read_at(0, &mut bytes).unwrap();
        let expected = [(15, 1), (16, 2), (23, 2), (24, 1), (32, 2), (35, 2), (36, 1)];
        assert!(expected.iter().all(|(kib, byte)| at(&bytes, *kib) == *byte));
        let mut queue = over.queue(QueueOptions { depth: 4, buffer_bytes: 4096 }).unwrap();
        let reads = [(77, 20 << 10, 8192), (77, 32 << 10, 4096), (5, 0, 4096)];
        for (token, offset, length) in reads {
            queue.read(token, offset, length).unwrap();
        }
        let mut completions = Vec::new();
        queue.reap(3, &mut completions).unwrap();
        let mut seen: Vec<_> = completions
            .into_iter()
            .map(|done| {
                let buffer = done.buffer.unwrap();
                (done.token, buffer[0], buffer[buffer.len() - 1])
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [(5, 1, 1), (77, 2, 1), (77, 2, 2)]);
        under.read_at(16 << 10, &mut bytes[..4096]).unwrap();
        assert_eq!(bytes[0], 1);
    }
}
