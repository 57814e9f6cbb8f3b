//! Reading the footer of a sealed segment: from the bytes of the segment, or from the device.

use entresol_device::{Device, IoBuffer};

use super::Shape;
use crate::error::Result;
use crate::format::{FooterEntry, SegmentHeader, Trailer, decode_footer};
use crate::unreadable::read_around;

/// Bytes read first from a segment's end: most footers fit.
const FIRST_READ_BYTES: usize = 32 << 10;

/// The footer at the end of `bytes`, a whole segment in its use `sequence`; `None` if it does not
/// verify.
pub(crate) fn footer_of(bytes: &[u8], sequence: u64) -> Option<Vec<FooterEntry>> {
    let trailer = Trailer::decode_end(bytes).filter(|t| t.sequence == sequence)?;
    decode_footer(&trailer, bytes, bytes.len() as u32)
}

/// As [`footer_of`], where the header has to say the same.
pub(crate) fn footer_of_whole(bytes: &[u8], sequence: u64) -> Option<Vec<FooterEntry>> {
    let header = SegmentHeader::decode(bytes).filter(|header| header.sequence == sequence);
    header.and_then(|_| footer_of(bytes, sequence))
}

/// The footer of a sealed segment on the device; `None` if it does not verify or cannot be read.
pub(crate) fn read_footer(
    device: &dyn Device,
    shape: &Shape,
    segment: u32,
    sequence: u64,
) -> Result<Option<Vec<FooterEntry>>> {
    let end = shape.offset_of(segment) + u64::from(shape.segment_bytes);
    let mut length = FIRST_READ_BYTES.min(shape.segment_bytes as usize);
    loop {
        let mut bytes = IoBuffer::aligned(length);
        read_around(device, end - length as u64, &mut bytes)?;
        let Some(trailer) = Trailer::decode_end(&bytes).filter(|t| t.sequence == sequence) else {
            return Ok(None);
        };
        let needed = trailer.region_bytes().next_multiple_of(4096);
        if needed > shape.segment_bytes as usize {
            return Ok(None);
        }
        if needed <= length {
            return Ok(decode_footer(&trailer, &bytes, shape.segment_bytes));
        }
        length = needed;
    }
}
