//! Reading a range of which a device may refuse parts: a latent error of a few sectors must not
//! hide what stands around them.
//!
//! What cannot be read is left as zeros, which no checksum of the format covers: to whoever
//! verifies it, it is as damaged. A device that refuses its root as well is taken to fail as a
//! whole; nothing is concluded from that, and the caller gets the error.

use std::ops::Range;

use entresol_device::{Device, ErrorKind, IoBuffer};

use crate::error::Result;

/// The smallest part that is tried alone, where sectors are not larger.
const PART_BYTES: usize = 4096;
/// Parts that may fail before all that is left counts as unreadable: each may take the device
/// seconds.
const FAILED_MAX: usize = 32;

/// The parts of a range that a device did not give.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// From its start, bytes, in order.
    ranges: Vec<Range<usize>>,
}

impl Gaps {
    /// Whether any byte of `range` is missing.
    pub(crate) fn touch(&self, range: &Range<usize>) -> bool {
        self.ranges.iter().any(|gap| gap.start < range.end && range.start < gap.end)
    }

    /// What of the first one stands before `end`.
    pub(crate) fn first_before(&self, end: usize) -> Option<Range<usize>> {
        self.until(end).next()
    }

    /// What of them stands before `end`.
    pub(crate) fn until(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        let ranges = self.ranges.iter().filter(move |gap| gap.start < end);
        ranges.map(move |gap| gap.start..gap.end.min(end))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn bytes(&self) -> usize {
        self.ranges.iter().map(ExactSizeIterator::len).sum()
    }
}

/// Fills `bytes` with what `device` holds at `offset`, and with zeros what it does not give.
pub(crate) fn read_around(device: &dyn Device, offset: u64, bytes: &mut [u8]) -> Result<Gaps> {
    let Err(error) = device.read_at(offset, bytes) else { return Ok(Gaps::default()) };
    if error.kind() != ErrorKind::Io {
        return Err(error.into());
    }
    let part = PART_BYTES.max(device.geometry().sector_bytes as usize);
    let mut gaps = Gaps::default();
    let mut left: Vec<Range<usize>> = std::iter::once(0..bytes.len()).collect();
    while let Some(range) = left.pop() {
        let enough = gaps.ranges.len() >= FAILED_MAX;
        let at = offset + range.start as u64;
        if !enough && device.read_at(at, &mut bytes[range.clone()]).is_ok() {
            continue;
        }
        if enough || range.len() <= part {
            bytes[range.clone()].fill(0);
            gaps.ranges.push(range);
            continue;
        }
        let middle = range.start + (range.len() / 2).next_multiple_of(part);
        left.extend([middle..range.end, range.start..middle]);
    }
    let mut root = IoBuffer::aligned(part);
    if gaps.bytes() == bytes.len() && device.read_at(0, &mut root).is_err() {
        return Err(error.into());
    }
    Ok(gaps)
}

#[cfg(test)]
mod tests {
    use entresol_sim::{SimDevice, SimOptions};

    use super::*;

    fn device_of(bytes: &[u8]) -> SimDevice {
        let device = SimDevice::new(SimOptions::new(1, bytes.len() as u64));
        let mut memory = IoBuffer::aligned(bytes.len());
        memory.copy_from_slice(bytes);
        device.write_at(0, &memory).unwrap();
        device
    }

    #[test]
    fn all_but_the_parts_around_unreadable_sectors_is_read() {
        let stands = [7u8; 256 << 10];
        let bad = [(0, 70_000..70_512), (64 << 10, 66_000..66_001), (128 << 10, 262_143..262_144)];
        for (offset, sectors) in bad {
            let device = device_of(&stands);
            device.fail_reads(sectors.clone());
            let mut bytes = IoBuffer::aligned(stands.len() - offset);
            let gaps = read_around(&device, offset as u64, &mut bytes).unwrap();
            let start = (sectors.start as usize - offset) / PART_BYTES * PART_BYTES;
            let gap = start..start + PART_BYTES;
            assert!(gaps.touch(&gap) && gaps.bytes() == PART_BYTES, "{gaps:?}");
            for (at, byte) in bytes.iter().enumerate() {
                assert_eq!(*byte, if gap.contains(&at) { 0 } else { 7 }, "byte {at}");
            }
        }
    }

    #[test]
    fn a_range_none_of_which_is_readable_is_a_gap_and_a_device_without_its_root_an_error() {
        let device = device_of(&[7; 1 << 20]);
        device.fail_reads(256 << 10..1 << 20);
        let mut bytes = IoBuffer::aligned(512 << 10);
        let before = device.reads();
        let gaps = read_around(&device, 512 << 10, &mut bytes).unwrap();
        assert_eq!(gaps.bytes(), bytes.len());
        assert!(device.reads() - before < 128, "{} reads", device.reads() - before);
        assert!(bytes.iter().all(|byte| *byte == 0));
        device.fail_reads(0..1 << 20);
        let failed = read_around(&device, 512 << 10, &mut bytes).unwrap_err();
        assert_eq!(failed.kind(), crate::ErrorKind::Io);
    }
}
