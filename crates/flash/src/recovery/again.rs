//! Footers that there was no memory to keep, read once more.

use entresol_device::IoBuffer;

use super::footers::{Found, Lines, copy_lines};
use super::scan::{read_whole, scan_whole};

use crate::error::Result;
use crate::format::{
    FOOTER_ENTRY_BYTES, FooterEntry, FooterLine, LINE_WORDS, TRAILER_BYTES, Trailer,
};
use crate::log::read_footer;
use crate::shard::Shard;

/// Memory for one footer after the other.
pub(super) struct Again {
    bytes: IoBuffer,
    words: Vec<u64>,
}

/// What is read at once is a multiple of this.
const BLOCK_BYTES: usize = 4096;

impl Again {
    pub(super) fn new() -> Again {
        Again { bytes: IoBuffer::aligned(BLOCK_BYTES), words: Vec::new() }
    }

    /// Visits the lines of the footer of `segment`; without one its records speak for themselves.
    pub(super) fn for_each_line(
        &mut self,
        shard: &Shard,
        segment: &Found,
        mut visit: impl FnMut(FooterLine),
    ) -> Result<()> {
        if self.reads(shard, segment) {
            self.words.as_chunks::<LINE_WORDS>().0.iter().for_each(|line| visit(FooterLine(*line)));
            return Ok(());
        }
        let entries = read_entries(shard, segment)?;
        entries.iter().for_each(|entry| visit(FooterLine::of(entry)));
        Ok(())
    }

    /// Reads the footer, as long as it was found to be; whether it verifies.
    fn reads(&mut self, shard: &Shard, segment: &Found) -> bool {
        let shape = shard.log.shape();
        let region = segment.count as usize * FOOTER_ENTRY_BYTES + TRAILER_BYTES;
        let length = region.next_multiple_of(BLOCK_BYTES);
        if length > shape.segment_bytes as usize {
            return false;
        }
        if length > self.bytes.len() {
            self.bytes = IoBuffer::aligned(length);
        }
        let end = shape.offset_of(segment.segment) + u64::from(shape.segment_bytes);
        let tail = &mut self.bytes[..length];
        if shard.log.device().read_at(end - length as u64, tail).is_err() {
            return false;
        }
        let trailer = Trailer::decode_end(tail)
            .filter(|t| t.sequence == segment.header.sequence && t.region_bytes() == region);
        let Some(trailer) = trailer else { return false };
        self.words.resize((region - TRAILER_BYTES) / 8, 0);
        let lines = copy_lines(&trailer, shape.segment_bytes, [&[], tail], &mut self.words);
        matches!(lines, Lines::Kept(_))
    }
}

/// The footer of a segment, read from the device; without one the records speak for themselves.
fn read_entries(shard: &Shard, segment: &Found) -> Result<Vec<FooterEntry>> {
    let shape = shard.log.shape();
    let sequence = segment.header.sequence;
    let footer = read_footer(&**shard.log.device(), &shape, segment.segment, sequence)?;
    if let Some(footer) = footer {
        return Ok(footer);
    }
    let whole = read_whole(shard, segment.segment)?;
    scan_whole(shard, segment.segment, &segment.header, &whole)
}
