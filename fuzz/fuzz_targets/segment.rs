//! Any bytes as a segment; once as they are, once with headers and records whose checksums hold.
#![no_main]

#[path = "../sealing.rs"]
mod sealing;

use entresol_flash::fuzzing;

const HEADER_BYTES: usize = 64;
const RECORD_HEADER_BYTES: usize = 32;
const ALIGNMENT: usize = 32;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzzing::segment(bytes);
    let mut sealed = bytes.to_vec();
    sealing::seal(&mut sealed, 0, 4..HEADER_BYTES);
    let mut start = HEADER_BYTES;
    while let Some(end) = seal_record(&mut sealed, start) {
        start = end.next_multiple_of(ALIGNMENT);
    }
    fuzzing::segment(&sealed);
});

/// Makes a record of the segment's generation out of the bytes at `start`; where it ends.
fn seal_record(segment: &mut [u8], start: usize) -> Option<usize> {
    let generation: [u8; 4] = segment.get(16..20)?.try_into().ok()?;
    let header = segment.get_mut(start..start + RECORD_HEADER_BYTES)?;
    header[16..20].copy_from_slice(&generation);
    // As fuzzers like to think of them, lengths leave no room for a second record.
    (header[22], header[23], header[29]) = (0, 0, 0);
    let value_bytes = usize::from(header[20]) | usize::from(header[21]) << 8;
    let key_bytes = usize::from(header[28]) + 1;
    let payload = start + sealing::record_header_bytes(header[31]);
    let end = payload + key_bytes + value_bytes;
    sealing::seal(segment, start + 4, payload..end);
    sealing::seal(segment, start, start + 4..payload);
    Some(end)
}
