//! Is a regular file somebody's data?
//!
//! What somebody keeps has a pattern, or begins as its kind does; what a test may take is blank,
//! holds what tests of ours wrote, or bytes without any pattern, as ACT leaves them.

use entresol_device::{Device, IoBuffer};

use crate::load::content::{UNIT_BYTES, Unit, read_unit};

/// Bytes at the beginning that are looked at.
const KNOWN_BYTES: u64 = 4 << 20;
const BLOCK_BYTES: usize = 4096;
/// Of 4096 bytes at random, chi-squared over the 256 values is 255 with a deviation of 23.
const CHI_SQUARED_MAX: f64 = 400.0;
/// How packed files begin, which look random otherwise.
const PACKED: [&[u8]; 10] = [
    b"\x1f\x8b\x08",
    b"PK\x03\x04",
    b"BZh",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf",
    b"\xff\xd8\xff",
    b"\x89PNG",
    b"Rar!",
    b"\x04\x22\x4d\x18",
];

/// The offset of the first bytes of `device`, a file, that somebody may miss.
pub(crate) fn somebodys(device: &dyn Device) -> entresol_device::Result<Option<u64>> {
    let length = device.geometry().capacity_bytes.min(KNOWN_BYTES) as usize;
    let mut bytes = IoBuffer::aligned(length);
    device.read_at(0, &mut bytes)?;
    if PACKED.iter().any(|magic| bytes.starts_with(magic)) {
        return Ok(Some(0));
    }
    let block = bytes.chunks(BLOCK_BYTES).position(|block| !is_nobodys(block));
    Ok(block.map(|block| (block * BLOCK_BYTES) as u64))
}

fn is_nobodys(block: &[u8]) -> bool {
    let ours = |unit: &[u8]| {
        unit.iter().all(|byte| *byte == 0)
            || (unit.len() == UNIT_BYTES && !matches!(read_unit(unit), Unit::Foreign))
    };
    block.chunks(UNIT_BYTES).all(ours) || chi_squared(block) < CHI_SQUARED_MAX
}

fn chi_squared(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let expected = bytes.len() as f64 / 256.0;
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}
