//! Any bytes as a record; once as they are, once with checksums that hold.
#![no_main]

#[path = "../sealing.rs"]
mod sealing;

use entresol_flash::fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzzing::record(bytes);
    let mut sealed = bytes.to_vec();
    let Some(extras) = bytes.get(31) else { return };
    let header_bytes = sealing::record_header_bytes(*extras);
    sealing::seal(&mut sealed, 4, header_bytes..bytes.len());
    sealing::seal(&mut sealed, 0, 4..header_bytes);
    fuzzing::record(&sealed);
});
