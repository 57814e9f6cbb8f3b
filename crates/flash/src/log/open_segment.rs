//! A segment that is being filled: how far, and the footer it will get.

use super::{Log, Stamp};
use crate::format::RECORD_ALIGNMENT;
use crate::format::{
    FOOTER_ENTRY_BYTES, FooterEntry, SEGMENT_HEADER_BYTES, TRAILER_BYTES, Trailer,
};
use crate::segment::Stream;

/// A segment that is being filled.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub segment: u32,
    pub buffer: u16,
    /// Bytes filled.
    pub used: u32,
    /// Bytes handed to the device; a multiple of the sync unit.
    pub submitted: u32,
    footer: Vec<u8>,
    age_sum: u128,
    /// Bytes of padding between the records.
    padding: u32,
    /// The stamp of the first append that the whole sync units filled do not hold to its end.
    begun_unit: Option<Stamp>,
}

impl OpenSegment {
    pub(crate) fn new(segment: u32, buffer: u16) -> OpenSegment {
        OpenSegment {
            segment,
            buffer,
            used: SEGMENT_HEADER_BYTES.next_multiple_of(RECORD_ALIGNMENT) as u32,
            submitted: 0,
            footer: Vec::with_capacity(32 << 10),
            age_sum: 0,
            padding: 0,
            begun_unit: None,
        }
    }

    /// Bytes that are left for records and what describes them.
    pub(crate) fn room(&self, segment_bytes: u32) -> u32 {
        segment_bytes.saturating_sub(self.used + (self.footer.len() + TRAILER_BYTES) as u32)
    }

    /// Whether a record of `aligned` bytes and its footer entry fit.
    pub(crate) fn fits(&self, aligned: usize, segment_bytes: u32) -> bool {
        let footer = self.footer.len() + FOOTER_ENTRY_BYTES + TRAILER_BYTES;
        self.used as usize + aligned + footer <= segment_bytes as usize
    }

    /// Takes the record of an append, whose stamp is `stamp`; sync units have `unit` bytes.
    pub(crate) fn push(&mut self, entry: &FooterEntry, age: u64, stamp: Stamp, unit: u32) {
        self.footer.extend_from_slice(&entry.encode());
        self.age_sum += u128::from(age);
        self.fill(entry.aligned_bytes(), stamp, unit);
    }

    /// Takes a record of `aligned` bytes that no line of the footer tells of; the segment is as old
    /// as the last of them.
    pub(crate) fn push_unlisted(&mut self, aligned: u32, sequence: u64, stamp: Stamp, unit: u32) {
        self.age_sum = u128::from(sequence);
        self.fill(aligned, stamp, unit);
    }

    fn fill(&mut self, aligned: u32, stamp: Stamp, unit: u32) {
        let before = self.used / unit;
        self.used += aligned;
        if self.used.is_multiple_of(unit) {
            self.begun_unit = None;
        } else if self.used / unit > before || self.begun_unit.is_none() {
            self.begun_unit = Some(stamp);
        }
    }

    /// Fills up to the end of a sync unit with `bytes` that are no record.
    pub(crate) fn pad(&mut self, bytes: u32) {
        self.used += bytes;
        self.padding += bytes;
        self.begun_unit = None;
    }

    /// The stamp of the first append that the whole sync units filled do not hold to its end.
    pub(crate) fn begun_unit(&self) -> Option<Stamp> {
        self.begun_unit
    }

    pub(crate) fn padding(&self) -> u32 {
        self.padding
    }

    /// Bytes that neither records nor what describes them take.
    pub(crate) fn lost_bytes(&self, segment_bytes: u32) -> u32 {
        let footer = (self.footer.len() + TRAILER_BYTES) as u32;
        segment_bytes - self.used - footer + self.padding
    }

    /// The lines of the footer that it will get, from number `first` on.
    pub(crate) fn lines(&self, first: usize) -> impl Iterator<Item = FooterEntry> + '_ {
        let bytes = self.footer.get(first * FOOTER_ENTRY_BYTES..).unwrap_or_default();
        bytes.chunks_exact(FOOTER_ENTRY_BYTES).filter_map(FooterEntry::decode)
    }

    pub(crate) fn entries(&self) -> u32 {
        (self.footer.len() / FOOTER_ENTRY_BYTES) as u32
    }

    /// Mean age of what was appended.
    pub(crate) fn age(&self) -> u64 {
        (self.age_sum / u128::from(self.entries().max(1))) as u64
    }

    /// Writes footer and trailer at the end of `bytes`, the segment's memory, and clears the gap.
    pub(crate) fn finish(&self, sequence: u64, bytes: &mut [u8]) {
        let trailer = Trailer {
            sequence,
            entries: self.entries(),
            used_bytes: self.used,
            footer_crc: crc32c::crc32c(&self.footer),
            age: self.age(),
        };
        let trailer_at = bytes.len() - TRAILER_BYTES;
        let footer_at = trailer_at - self.footer.len();
        bytes[self.used as usize..footer_at].fill(0);
        bytes[footer_at..trailer_at].copy_from_slice(&self.footer);
        trailer.encode(&mut bytes[trailer_at..]);
    }
}

impl Log {
    /// The open segment of `stream`, if there is one.
    pub(crate) fn being_filled(&self, stream: Stream) -> Option<&OpenSegment> {
        self.streams[stream as usize].as_ref()
    }

    /// Starts loading what the next record of `stream` will be copied over, `length` bytes from
    /// `start` in it: buffers are larger than caches.
    #[inline]
    pub(crate) fn prefetch(&self, stream: Stream, start: usize, length: usize) {
        if let Some(open) = &self.streams[stream as usize] {
            let memory = &self.buffers[open.buffer as usize].memory;
            memory.prefetch(open.used as usize + start, length);
        }
    }
}
