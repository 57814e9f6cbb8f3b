//! Any bytes as a superblock; once as they are, once with a checksum that holds.
#![no_main]

use entresol_flash::fuzzing;

const SUPERBLOCK_BYTES: usize = 64 << 10;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzzing::superblock(bytes);
    let mut sealed = bytes.to_vec();
    sealed.resize(SUPERBLOCK_BYTES, 0);
    let (body, checksum) = sealed.split_at_mut(SUPERBLOCK_BYTES - 4);
    checksum.copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    fuzzing::superblock(&sealed);
});
