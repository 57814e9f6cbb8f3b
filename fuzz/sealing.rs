//! Checksums put right, so that what a fuzzer changes gets past them.

use std::ops::Range;

/// Makes the checksum at `checksum` hold for `body`, as far as `bytes` reach.
pub fn seal(bytes: &mut [u8], checksum: usize, body: Range<usize>) {
    let Some(sum) = bytes.get(body).map(crc32c::crc32c) else { return };
    if let Some(place) = bytes.get_mut(checksum..checksum + 4) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

/// Bytes of a record's header with these extras.
pub fn record_header_bytes(extras: u8) -> usize {
    let lengths = [8, 4, 8, 8, 4].into_iter().enumerate();
    32 + lengths.filter(|(bit, _)| extras >> bit & 1 == 1).map(|(_, bytes)| bytes).sum::<usize>()
}
